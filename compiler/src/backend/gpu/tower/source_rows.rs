//! Rows to which volume sources add.

use super::super::ir::Operand;
use super::super::kernel::{IntCmp, IntOp, Kernel, Variable};
use super::context::Context;
use super::copied::Copied;
use super::source_box::{RowPlace, Within};
use super::task;
use crate::scheme::{ComponentId, StageId};
use crate::tower::RowUpdate;
use crate::tower::block::WARP;

/// The patterns, in the lanes of a warp, of the rows of a stage that an update writes, in periods near faces of boxes
/// of total fields: for a source, by its number.
pub(super) struct RowPatterns {
    pub source: usize,
    pub rows: Vec<RowUpdate>,
    /// The pattern of the row whose number is the lane's, and of each row that is a multiple of a warp's lanes farther.
    pub words: Vec<Variable>,
}

/// Rows of one update to which sources add.
pub(super) struct Rows<'r> {
    pub of: (StageId, ComponentId),
    /// Whether the thread writes rows of interior periods, if that is not all of them.
    pub active: Option<Operand>,
    /// The period of the time block, which interior ones count from the last one's end on; and the step of the period.
    pub period: Operand,
    pub step: i32,
    pub places: Places<'r>,
}

impl<'r> Rows<'r> {
    /// Where waves are that were copied.
    pub fn copied(&self) -> Option<Copied<'r>> {
        match self.places {
            Places::Interior { copied, .. } => copied,
            Places::Boundary(_) => None,
        }
    }

    /// Their patterns for a source, from the lanes of the warp.
    pub fn patterns_of(&self, k: &mut Kernel<'_>, source: usize) -> Vec<Operand> {
        let Places::Interior { rows, patterns, .. } = self.places else {
            return Vec::new();
        };
        let of_source = patterns.iter().find(|known| known.source == source);
        let known = of_source.into_iter().flat_map(|known| {
            let numbers = rows
                .iter()
                .filter_map(|row| known.rows.iter().position(|r| r == row));
            numbers.map(|number| (known.words[number / WARP as usize], number % WARP as usize))
        });
        let known: Vec<(Variable, usize)> = known.collect();
        let own = known.into_iter().map(|(word, lane)| {
            let word = k.get(word);
            k.of_lane(word, lane as i32)
        });
        own.collect()
    }

    /// Their period, counted in periods of the time block.
    pub fn period_of_block(&self, k: &mut Kernel<'_>) -> Operand {
        match self.places {
            Places::Interior { words, .. } => {
                let end = task::interior_end(k, words);
                k.int(IntOp::Add, self.period, end)
            }
            Places::Boundary(_) => self.period,
        }
    }

    /// The number of the time block's step.
    pub fn step(&self, k: &mut Kernel<'_>, context: &Context<'_>, at: Within) -> Operand {
        let steps = Operand::i32(context.towers().steps as i32);
        let step = k.int(IntOp::Mul, at.period, steps);
        k.int(IntOp::Add, step, Operand::i32(self.step))
    }
}

/// Where rows are.
#[derive(Clone, Copy)]
pub(super) enum Places<'r> {
    /// Relative to the origin of an interior period; the block's task, from which that follows.
    Interior {
        rows: &'r [RowUpdate],
        words: Operand,
        /// Where waves are that were copied.
        copied: Option<Copied<'r>>,
        /// Whether the period is near faces of boxes of total fields, where it may be.
        near: Option<Operand>,
        /// Of rows of the stage.
        patterns: &'r [RowPatterns],
    },
    Boundary(&'r [RowPlace]),
}

/// Whether faces of boxes across the first two axes may be near, where whole rows are corrected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Faces {
    Near,
    Far,
}

impl Faces {
    /// In boundary periods they may always be.
    pub fn of(context: &Context<'_>, places: Places<'_>) -> Faces {
        let interior = matches!(places, Places::Interior { .. });
        match interior && !context.near_faces() {
            true => Faces::Far,
            false => Faces::Near,
        }
    }
}

/// Whether one of some numbers is not negative.
pub(super) fn any_is_there(k: &mut Kernel<'_>, numbers: &[Operand]) -> Operand {
    let numbers = numbers.iter();
    let all = numbers.fold(Operand::i32(-1), |all, number| {
        k.int(IntOp::And, all, *number)
    });
    k.compare(IntCmp::Le, Operand::i32(0), all)
}
