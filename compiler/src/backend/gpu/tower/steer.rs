//! Code that steers the assembler, without an effect on results.
//!
//! Threads that compute have no register to spare. The assembler would keep every value that it can compute once:
//! places of rows, numbers of threads, values that follow from them. The code here hides from it that these values are
//! the same each time, so that it computes them anew.

use super::super::ir::{Operand, Type};
use super::super::kernel::{IntOp, Kernel};
use super::context::Context;
use crate::lattice::Axis;
use crate::tower::RowRef;
use std::collections::BTreeMap;

/// Bound of the offsets within an instruction that accesses memory: signed numbers of 24 bits.
pub const NEAR: i64 = 1 << 23;

/// Pointers to rows, from one in the origin's group on. Where planes across the first axis are so far apart that
/// accesses to memory do not add that by themselves, each plane has a pointer, made in a way that the assembler does
/// not see through. Else it makes one for each access, well before it is needed: dozens of registers.
pub(super) struct RowPointers {
    origin: Operand,
    /// Bytes between planes, as the assembler does not know them.
    stride: Option<Operand>,
    known: BTreeMap<i64, Operand>,
}

impl RowPointers {
    pub fn new(origin: Operand) -> RowPointers {
        RowPointers {
            origin,
            stride: None,
            known: BTreeMap::new(),
        }
    }

    /// Where a row is.
    pub fn row(&mut self, k: &mut Kernel<'_>, context: &Context<'_>, row: RowRef) -> Operand {
        let far = context.distance(row);
        let stride = context.bytes(context.layout.stride[Axis::OUTER]);
        self.plane(k, context, row.at.x, stride, far)
    }

    /// The address at a distance in bytes; `stride`: the bytes between planes, always the same.
    pub fn plane(
        &mut self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        plane: i64,
        stride: i64,
        far: i64,
    ) -> Operand {
        let (Ok(by), Ok(x)) = (i32::try_from(stride), i32::try_from(plane)) else {
            return k.offset(self.origin, far);
        };
        if x == 0 || (-context.near..context.near).contains(&far) {
            return k.offset(self.origin, far);
        }
        let stride = *self.stride.get_or_insert_with(|| {
            let zero = k.unknown_zero(1);
            k.int(IntOp::Add, zero, Operand::i32(by))
        });
        let pointer = *self.known.entry(plane).or_insert_with(|| {
            let code = "mad.wide.s32 $0, $1, $2, $3;";
            let args = [stride, Operand::i32(x), self.origin];
            k.pure_assembly(code, "=l,r,n,l", &[self.origin.ty], &args)[0]
        });
        k.offset(pointer, far - plane * i64::from(by))
    }
}

/// The thread's number, such that values that follow from it are not kept from one part of a tower to the next.
pub(super) fn thread(k: &mut Kernel<'_>) -> Operand {
    let thread = k.assembly("mov.u32 $0, %tid.x;", "=r", &[Type::I32], &[]);
    thread[0]
}

/// The block's number in its cluster, such that values that follow from it are not kept.
pub(super) fn rank(k: &mut Kernel<'_>) -> Operand {
    k.assembly("mov.u32 $0, %cluster_ctarank;", "=r", &[Type::I32], &[])[0]
}

/// A pointer for one stage of a period, such that the assembler does not keep where rows are from one stage to the
/// next.
pub(super) fn distinct(k: &mut Kernel<'_>, pointer: Operand, stage: usize) -> Operand {
    let zero = k.unknown_zero(stage);
    k.advance_by_word(pointer, zero)
}
