//! Corrections near the faces of boxes of total fields, as a kernel finds them: a table of words.

use super::super::abi::{CorrectionParams, TowerParams, VolumeParams};
use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel};
use super::source_box::{Range, SourceBox};
use crate::incident::FarRows;

/// A source that adds a wave of its own at each place.
pub(super) struct Correction {
    pub source_box: SourceBox,
    /// The [`CorrectionTable`](super::super::abi::CorrectionTable).
    pub table: Operand,
    /// By how much the numbers of waves move with a row's index along the outer and the middle axis.
    pub shifts: [Operand; 2],
    /// The inside of the box along the inner axis, in which rows far from faces have no corrections.
    pub hole: Range,
    pub far_rows: FarRows,
}

/// The box of a source, by its number.
pub(super) fn box_of(k: &Kernel<'_>, number: usize) -> SourceBox {
    let param = |parameter: usize| k.param(TowerParams::of_volume(number, parameter));
    SourceBox([0, 1, 2].map(|axis| Range {
        lo: param(VolumeParams::lo(axis)),
        len: param(VolumeParams::len(axis)),
    }))
}

impl Correction {
    pub fn new(k: &Kernel<'_>, number: usize, far_rows: FarRows) -> Correction {
        let param = |parameter: usize| k.param(TowerParams::of_volume(number, parameter));
        Correction {
            source_box: box_of(k, number),
            table: param(CorrectionParams::TABLE),
            shifts: [0, 1].map(|axis| param(CorrectionParams::shift(axis))),
            hole: Range {
                lo: param(CorrectionParams::HOLE),
                len: param(CorrectionParams::HOLE_LENGTH),
            },
            far_rows,
        }
    }

    /// Whether a thread does not lie in the hole, if `there`.
    pub fn is_beside(&self, k: &mut Kernel<'_>, thread: Operand, there: Operand) -> Operand {
        let Range { lo, len } = self.hole;
        let from = k.int(IntOp::Sub, thread, lo);
        let within = k.compare(IntCmp::Below, from, len);
        let beside = k.int(IntOp::Xor, within, Operand::int(Type::I1, 1));
        k.int(IntOp::And, there, beside)
    }

    /// Whether a thread is at an index at which rows far from faces across the first two axes may be corrected.
    pub fn is_near_ends(&self, k: &mut Kernel<'_>, thread: Operand) -> Operand {
        let along = self.source_box.inner();
        let z = k.int(IntOp::Sub, thread, along.lo);
        let there = k.compare(IntCmp::Below, z, along.len);
        self.is_beside(k, thread, there)
    }

    /// Whether a thread is above where the hole begins.
    pub fn is_above(&self, k: &mut Kernel<'_>, thread: Operand) -> Operand {
        k.compare(IntCmp::Le, self.hole.lo, thread)
    }

    /// By how much the numbers of waves move with `by` rows along the outer and the middle axis.
    pub fn shift(&self, k: &mut Kernel<'_>, by: [Operand; 2]) -> Operand {
        let mut sum = Operand::i32(0);
        for (by, stride) in by.into_iter().zip(self.shifts) {
            let by = k.int(IntOp::Mul, by, stride);
            sum = k.int(IntOp::Add, sum, by);
        }
        sum
    }

    /// Loads a word of the table.
    pub fn word(&self, k: &mut Kernel<'_>, number: Operand) -> Operand {
        let number = k.resize(number, Type::I64);
        let from = k.advance(self.table, number, 4);
        k.load(Type::I32, from, 4, Access::ReadOnly)
    }
}
