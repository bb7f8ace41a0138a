//! The common parameters of the code of a tower's alignment, and the values that each thread keeps.

use super::super::abi::{ParamsOf, TowerParams};
use super::super::ir::{Operand, Type};
use super::super::kernel::{IntCmp, IntOp, Kernel};
use crate::evaluate::{Elsewhere, range};
use crate::lattice::{Axis, Interval};
use crate::layout::{Layout, RowId, ZoneLayout};
use crate::scheme::{Scheme, Update};
use crate::tower::block::{Block, InnerGhosts, Slabs, ZBlocks};
use crate::tower::{Allocation, Group, PeriodProgram, RowRef, StageProgram, TowerProgram, Towers};

/// Parameters that are known when a kernel is written, the same for all of its threads.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub scheme: &'a Scheme,
    pub layout: &'a Layout,
    pub program: &'a TowerProgram,
    pub alignment: usize,
    /// The variant of interior periods.
    pub variant: usize,
    pub real: Type,
    /// Offsets within an instruction that accesses memory lie between this and its negative.
    pub near: i64,
}

impl<'a> Context<'a> {
    pub fn towers(&self) -> &'a Towers {
        &self.program.towers
    }

    pub fn block(&self) -> &'a Block {
        &self.program.block
    }

    pub fn period(&self) -> &'a PeriodProgram {
        &self.program.periods[self.alignment]
    }

    pub fn allocation(&self) -> &'a Allocation {
        &self.program.allocations[self.alignment]
    }

    /// The stages of a period, as its variant has them.
    pub fn stages(&self) -> &'a [StageProgram] {
        &self.period().variants[self.variant]
    }

    /// Whether ends of the grid may cut rows off.
    pub fn predicated(&self) -> bool {
        self.towers().variants.all[self.variant].predicated
    }

    /// Whether towers may meet faces of boxes of total fields across the first two axes.
    pub fn near_faces(&self) -> bool {
        self.towers().variants.all[self.variant].faces
    }

    pub fn slabs(&self) -> Option<&'a Slabs> {
        self.block().lines.slabs()
    }

    pub fn z_blocks(&self) -> Option<&'a ZBlocks> {
        self.block().lines.z_blocks()
    }

    /// Ghosts along the inner axis that towers make.
    pub fn ghosts(&self) -> Option<&'a InnerGhosts> {
        self.block().ghosts.as_ref().map(|ghosts| &ghosts.inner)
    }

    pub fn bytes(&self, elements: i64) -> i64 {
        elements * self.layout.element_bytes as i64
    }

    /// Which parameters the kernel has.
    pub fn params(&self) -> ParamsOf {
        ParamsOf {
            sources: self.program.sources.len(),
            z_blocks: self.z_blocks().is_some(),
            beside: self.layout.has_beside(),
        }
    }

    /// Whether planes are counted on around a periodic outer axis.
    pub fn unrolled(&self) -> bool {
        self.towers().is_unrolled(self.layout)
    }

    /// Whether they are, and all planes are alike: then nothing depends on their indices.
    pub fn planes_alike(&self) -> bool {
        self.unrolled() && self.towers().rings.uniform
    }

    /// Where the array begins for rows that lie beside planes.
    pub fn beside(&self, k: &Kernel<'_>) -> Operand {
        let params = self.params();
        k.param(match params.beside {
            true => params.beside(),
            false => TowerParams::ARRAY,
        })
    }

    /// The same for the states of a zone.
    pub fn states(&self, k: &Kernel<'_>, zone: &ZoneLayout) -> Operand {
        match zone.in_planes {
            true => k.param(TowerParams::ARRAY),
            false => self.beside(k),
        }
    }

    /// From the origin's group to index 0 of a row, in bytes.
    pub fn distance(&self, row: RowRef) -> i64 {
        self.group_distance(row.at) + self.bytes(self.layout.row_start(row.row))
    }

    /// From the place of an origin to that of the next period, in bytes.
    pub fn advance(&self) -> i64 {
        self.group_distance(self.towers().advance)
    }

    fn group_distance(&self, at: Group) -> i64 {
        let stride = &self.layout.stride;
        self.bytes(at.x * stride[Axis::OUTER] + at.y * stride[Axis::MIDDLE])
    }

    /// Where a pointer into the origin's group is some periods later.
    pub fn shifted(&self, k: &mut Kernel<'_>, pointer: Operand, periods: Operand) -> Operand {
        let wide = k.resize(periods, Type::I64);
        let by = k.int(IntOp::Mul, wide, Operand::i64(self.advance()));
        k.advance(pointer, by, 1)
    }

    /// Code that only threads with an index in `range` run.
    pub fn within(
        &self,
        k: &mut Kernel<'_>,
        lane: &Lane,
        range: Interval,
        body: impl FnOnce(&mut Kernel<'_>),
    ) {
        if range.hi >= self.block().line_threads() && range.lo <= 0 {
            body(k);
            return;
        }
        let inside = lane.is_within(k, range);
        k.when(inside, body);
    }

    /// The new value where an update acts along the inner axis, the old one elsewhere, and 0 where it is known to be.
    pub fn in_range(
        &self,
        k: &mut Kernel<'_>,
        lane: &Lane,
        update: &Update,
        value: Operand,
        old: Option<Operand>,
    ) -> Operand {
        let (range, elsewhere) = range(self.scheme, update);
        let zero = Operand::real(self.real, 0f64.to_bits());
        let otherwise = match elsewhere {
            Elsewhere::Nothing => return value,
            Elsewhere::Zero => zero,
            Elsewhere::Old => old.unwrap_or(zero),
        };
        let inside = lane.is_within(k, range);
        k.choose(inside, value, otherwise)
    }
}

/// The values that a compute thread keeps all the time.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    /// Its index along the inner axis; behind the end of a line for threads that write nothing.
    pub thread: Operand,
    /// The index at which it reads, in 64 bits: threads behind the end of rows see the last index.
    pub index: Operand,
    /// Its own value in shared row 0.
    pub own: Operand,
    /// The beginning of shared rows.
    pub rows: Operand,
}

impl Lane {
    /// The value of a row in shared row `shared`, at the index `by` away from the thread's.
    pub fn shared(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        row: RowId,
        shared: usize,
        by: i64,
    ) -> Operand {
        let stride = context.block().shared_row.stride;
        let begin = context.layout.row_begin(row);
        k.offset(self.own, context.bytes(shared as i64 * stride + begin + by))
    }

    pub fn is_within(&self, k: &mut Kernel<'_>, range: Interval) -> Operand {
        in_interval(k, self.thread, range)
    }
}

/// Whether an index lies in a range.
pub(super) fn in_interval(k: &mut Kernel<'_>, index: Operand, range: Interval) -> Operand {
    let from = k.int(IntOp::Sub, index, word(range.lo));
    k.compare(IntCmp::Below, from, word(range.len()))
}

/// A constant of 32 bits.
pub(super) fn word(n: i64) -> Operand {
    Operand::i32(n as i32)
}
