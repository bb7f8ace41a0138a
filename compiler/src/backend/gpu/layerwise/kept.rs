//! Old values that amendments read: before the updates of a stage overwrite them, a kernel for each box of a zone
//! copies them to memory of their own.
//!
//! The memory is as large as the stage needs that keeps most, and all stages share it. In a box, all old values
//! of an update lie together, in rows that begin at lines of the cache.

use super::amend::ZoneKernel;
use crate::kernel::UpdateSet;
use crate::lattice::{Axis, PerAxis, div_ceil};
use crate::layout::{GPU_ALIGNMENT, Layout};
use crate::scheme::{Scheme, StageId, ZoneId};

/// More elements than any memory has: offsets of larger sizes stop here.
const MOST: i64 = 1 << 56;

/// The old values of a stage in a box of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptBox {
    zone: ZoneId,
    /// By its number in the zone's layout.
    part: usize,
    /// The updates whose old values are kept.
    pub updates: UpdateSet,
    /// Elements to where the values of the first update would be at index 0 of all axes.
    pub first: i64,
    /// From an index to the next along each axis.
    pub stride: PerAxis<i64>,
    /// From an update to the next one.
    each: i64,
}

impl KeptBox {
    /// Elements from the values of the first update to the values of another one.
    pub fn of_update(&self, update: usize) -> i64 {
        let before = self.updates.iter().take_while(|other| *other < update);
        self.each.saturating_mul(before.count() as i64).min(MOST)
    }

    /// All boxes of a stage in which old values are kept, and the elements that they take.
    fn all(scheme: &Scheme, layout: &Layout, stage: StageId) -> (Vec<KeptBox>, i64) {
        let line = (GPU_ALIGNMENT / layout.element_bytes) as i64;
        let (mut all, mut end) = (Vec::new(), 0i64);
        for (zone, places) in layout.zones.iter().enumerate() {
            let zone = ZoneId(zone as u32);
            let updates = kept_updates(scheme, stage, zone);
            if updates.is_empty() {
                continue;
            }
            for (part, own) in places.boxes.iter().enumerate() {
                let [outer, middle, inner] = own.region.0;
                let row = div_ceil(inner.len(), line) * line;
                let plane = row.saturating_mul(middle.len()).min(MOST);
                let each = plane.saturating_mul(outer.len()).min(MOST);
                let stride = PerAxis([plane, row, 1]);
                let below = Axis::ALL.map(|axis| own.region[axis].lo.saturating_mul(stride[axis]));
                let below = below.iter().map(|elements| *elements.min(&MOST));
                all.push(KeptBox {
                    zone,
                    part,
                    updates,
                    first: end - below.sum::<i64>(),
                    stride,
                    each,
                });
                let taken = each.saturating_mul(updates.iter().count() as i64);
                end = end.saturating_add(taken).min(MOST);
            }
        }
        (all, end)
    }

    /// The box of a kernel, if old values are kept in it.
    pub fn of(scheme: &Scheme, layout: &Layout, kernel: &ZoneKernel) -> Option<KeptBox> {
        let (all, _) = KeptBox::all(scheme, layout, kernel.stage);
        let is_own = |own: &KeptBox| (own.zone, own.part) == (kernel.zone, kernel.part);
        all.into_iter().find(is_own)
    }
}

/// The updates of a stage that overwrite values which their amendments in a zone read.
pub(super) fn kept_updates(scheme: &Scheme, stage: StageId, zone: ZoneId) -> UpdateSet {
    let mut kept = UpdateSet::default();
    for (number, update) in scheme.stages[stage.index()].updates.iter().enumerate() {
        let mut own = update.amendments.iter().filter(|a| a.zone == zone);
        if own.any(|amendment| scheme.needs_old(update, amendment)) {
            kept.insert(number);
        }
    }
    kept
}

/// Bytes of memory for old values, as many as the stage needs that keeps most.
pub fn kept_bytes(scheme: &Scheme, layout: &Layout) -> u64 {
    let stages = scheme.stage_ids();
    let elements = stages.map(|stage| KeptBox::all(scheme, layout, stage).1);
    elements.max().unwrap_or(0) as u64 * layout.element_bytes as u64
}
