//! Sources and probes in a tile.

use super::context::Context;
use super::place::Patch;
use crate::backend::gpu::abi::{PatchEntry, Patches};
use crate::backend::gpu::ir::{Operand, Type};
use crate::backend::gpu::kernel::{Access, IntCmp, IntOp, Kernel, Variable};
use crate::scheme::Precision;

/// An entry that a thread has read.
struct Entry {
    lo: [Operand; 3],
    hi: [Operand; 3],
    pointer: Operand,
    /// Of which kind it is.
    replaces: Operand,
    records: Operand,
}

/// A cell of a patch, and the patch's first cell in the tile.
#[derive(Clone, Copy)]
struct At {
    local: [Operand; 3],
    cell: [i64; 3],
}

impl Context<'_> {
    /// The sources and probes after an update of a step of the time block.
    pub(super) fn points(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        update: usize,
        step: Operand,
        values: &mut [Operand],
    ) {
        let own: Vec<Variable> = values.iter().map(|value| k.variable_of(*value)).collect();
        let some = k.compare(IntCmp::Ge, patch.list, Operand::i32(0));
        k.when(some, |k| {
            let width = self.updates() + 1;
            let list = k.again(patch.list);
            let first = k.int(IntOp::Mul, list, Operand::i32(width as i32));
            let first = k.int(IntOp::Add, first, Operand::i32(update as i32));
            let range = self.element(k, Patches::RANGES, first, 4);
            let next = k.offset(range, 4);
            let [begin, end] = [range, next].map(|at| k.load(Type::I32, at, 4, Access::ReadOnly));
            k.repeat(begin, end, Operand::i32(1), Some(1), |k, number| {
                let entry = self.entry(k, number);
                let near = self.near(k, patch, &entry);
                k.when(near, |k| self.act(k, patch, &entry, step, &own));
            });
        });
        for (value, variable) in values.iter_mut().zip(&own) {
            *value = k.get(*variable);
        }
    }

    fn entry(&self, k: &mut Kernel<'_>, number: Operand) -> Entry {
        let pointer = self.element(k, Patches::ENTRIES, number, PatchEntry::BYTES);
        let word = |k: &mut Kernel<'_>, at: i64| {
            let from = k.offset(pointer, at);
            k.load(Type::I32, from, 4, Access::ReadOnly)
        };
        let lo = PatchEntry::LO.map(|at| word(k, at));
        let hi = PatchEntry::HI.map(|at| word(k, at));
        let kind = word(k, PatchEntry::KIND);
        let [replaces, records] = [PatchEntry::REPLACE, PatchEntry::RECORD]
            .map(|own| k.compare(IntCmp::Eq, kind, Operand::i32(own)));
        Entry {
            lo,
            hi,
            pointer,
            replaces,
            records,
        }
    }

    /// Whether the patch has cells of an entry.
    fn near(&self, k: &mut Kernel<'_>, patch: &Patch, entry: &Entry) -> Operand {
        let mut near = Operand::int(Type::I1, 1);
        for n in self.program.axes() {
            let cells = Operand::i32(self.program.shape.patch[n] as i32);
            let local = k.again(patch.local[n]);
            let end = k.int(IntOp::Add, local, cells);
            let begun = k.compare(IntCmp::Gt, end, entry.lo[n]);
            let before = k.compare(IntCmp::Lt, local, entry.hi[n]);
            let both = k.int(IntOp::And, begun, before);
            near = k.int(IntOp::And, near, both);
        }
        near
    }

    fn act(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        entry: &Entry,
        step: Operand,
        own: &[Variable],
    ) {
        let shape = &self.program.shape;
        let [px, py, pz] = shape.patch;
        // Found anew: there are no registers to keep the places of all cells.
        let local = self.local(k, patch);
        let inside = |k: &mut Kernel<'_>, n: usize, cell: i64| {
            let local = k.int(IntOp::Add, local[n], Operand::i32(cell as i32));
            let begun = k.compare(IntCmp::Ge, local, entry.lo[n]);
            let before = k.compare(IntCmp::Lt, local, entry.hi[n]);
            k.int(IntOp::And, begun, before)
        };
        for i in 0..px {
            let here_x = inside(k, 0, i);
            k.when(here_x, |k| {
                for l in 0..py {
                    let here_y = self.program.three.then(|| inside(k, 1, l));
                    for j in 0..pz {
                        let cell = [i, l, j];
                        let (variable, at) = (own[shape.number(cell)], At { local, cell });
                        let mut here = inside(k, 2, j);
                        if let Some(here_y) = here_y {
                            here = k.int(IntOp::And, here, here_y);
                        }
                        k.when(here, |k| {
                            k.either(
                                entry.records,
                                |k| self.record(k, entry, step, variable),
                                |k| self.inject(k, entry, at, step, variable),
                            );
                        });
                    }
                }
            });
        }
    }

    /// A number that counts up from step to step.
    fn of_step(&self, k: &mut Kernel<'_>, step: Operand, count: usize, number: Operand) -> Operand {
        let first = k.int(IntOp::Mul, step, k.param(count));
        k.int(IntOp::Add, first, number)
    }

    fn record(&self, k: &mut Kernel<'_>, entry: &Entry, step: Operand, variable: Variable) {
        let number = k.offset(entry.pointer, PatchEntry::NUMBER);
        let number = k.load(Type::I32, number, 4, Access::ReadOnly);
        let number = self.of_step(k, step, Patches::RECORD_COUNT, number);
        let to = self.element(k, Patches::RECORDS, number, self.bytes as usize);
        let value = k.get(variable);
        k.store(value, to, self.bytes as u32, Access::Plain);
    }

    fn inject(&self, k: &mut Kernel<'_>, entry: &Entry, at: At, step: Operand, variable: Variable) {
        let double = Type::scalar(Precision::F64);
        let along = |k: &mut Kernel<'_>, n: usize| {
            let cell = Operand::i32(at.cell[n] as i32);
            let local = k.int(IntOp::Add, at.local[n], cell);
            k.int(IntOp::Sub, local, entry.lo[n])
        };
        let mut number = along(k, 2);
        for n in self.program.axes().filter(|n| *n < 2) {
            let stride = k.offset(entry.pointer, PatchEntry::STRIDES[n]);
            let stride = k.load(Type::I32, stride, 4, Access::ReadOnly);
            let index = along(k, n);
            let before = k.int(IntOp::Mul, index, stride);
            number = k.int(IntOp::Add, before, number);
        }
        let number = k.resize(number, Type::I64);
        let cells = k.offset(entry.pointer, PatchEntry::CELLS);
        let cells = k.load(Type::GLOBAL, cells, 8, Access::ReadOnly);
        let at = k.advance(cells, number, PatchEntry::CELL_BYTES as u32);
        let profile = k.offset(at, PatchEntry::PROFILE);
        let profile = k.load(double, profile, 8, Access::ReadOnly);
        let wave = k.offset(at, PatchEntry::WAVE);
        let wave = k.load(Type::I32, wave, 4, Access::ReadOnly);
        let acts = k.compare(IntCmp::Ge, wave, Operand::i32(0));
        k.when(acts, |k| {
            let wave = self.of_step(k, step, Patches::WAVE_COUNT, wave);
            let wave = self.element(k, Patches::WAVES, wave, 8);
            let wave = k.load(double, wave, 8, Access::ReadOnly);
            let given = k.product(profile, wave);
            let given = k.convert(given, self.real);
            let before = k.get(variable);
            let sum = k.sum(before, given);
            let value = k.choose(entry.replaces, given, sum);
            k.set(variable, value);
        });
    }
}
