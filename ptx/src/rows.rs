//! The rows of a warp: its own, and the rows that all warps of a launch share.

use std::ops::{Index, IndexMut};
use std::rc::Rc;

use crate::alu::Row;
use crate::op::Slot;

/// Slots from here on are of rows that are the same in all warps, as they hold constants.
pub(crate) const FIXED: usize = 1 << 31;

/// A row whose vectors of values lie in one line of the processor's cache each.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Aligned(pub(crate) Row);

/// The rows of a warp, by slot.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) own: Vec<Aligned>,
    pub(crate) fixed: Rc<[Aligned]>,
}

impl Index<usize> for Rows {
    type Output = Row;

    #[inline(always)]
    fn index(&self, slot: usize) -> &Row {
        match slot.checked_sub(FIXED) {
            Some(slot) => &self.fixed[slot].0,
            None => &self.own[slot].0,
        }
    }
}

/// Nothing is written to rows that all warps share.
impl IndexMut<usize> for Rows {
    #[inline(always)]
    fn index_mut(&mut self, slot: usize) -> &mut Row {
        &mut self.own[slot].0
    }
}

impl Rows {
    /// The rows that an instruction reads, and the one that it writes, which may be one of them. They may be accessed
    /// as long as this is borrowed.
    #[inline(always)]
    pub(crate) fn places<const N: usize>(
        &mut self,
        sources: [Slot; N],
        result: Slot,
    ) -> ([*const Row; N], *mut Row) {
        let (own, count) = (self.own.as_mut_ptr(), self.own.len());
        let place = |slot: usize| {
            assert!(slot < count, "a row of the warp");
            // SAFETY: there are as many rows.
            unsafe { own.add(slot).cast::<Row>() }
        };
        let mut rows = [std::ptr::null(); N];
        for (row, slot) in rows.iter_mut().zip(sources) {
            *row = match (slot as usize).checked_sub(FIXED) {
                Some(slot) => &raw const self.fixed[slot].0,
                None => place(slot as usize).cast_const(),
            };
        }
        (rows, place(result as usize))
    }
}
