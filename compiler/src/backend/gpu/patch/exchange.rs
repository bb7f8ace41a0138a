//! Exchanges of tiles that stay on the chip: what they store for others, how they wait, and what they load.

use super::context::{Context, Surroundings, Values};
use super::memory::Store;
use super::place::Patch;
use crate::backend::gpu::abi::{PROGRESS_BYTES, Patches};
use crate::backend::gpu::ir::{Operand, Type};
use crate::backend::gpu::kernel::{Access, IntCmp, IntOp, Kernel, Special};
use crate::lattice::Interval;
use crate::layout::RowId;
use crate::patch::Staying;

/// Whom a warp waits for.
pub(super) struct Waiting {
    /// Where the tile publishes its progress.
    own: Operand,
    /// The progress that the lane looks at.
    other: Operand,
}

impl Waiting {
    pub fn new(k: &mut Kernel<'_>, staying: &Staying, tile: Operand) -> Waiting {
        let width = staying.width() as i32;
        let lane = k.special(Special::Lane);
        let lane = k.int(IntOp::Min, lane, Operand::i32(width - 1));
        let first = k.int(IntOp::Mul, tile, Operand::i32(width));
        let word = k.int(IntOp::Add, first, lane);
        let word = k.resize(word, Type::I64);
        let from = k.advance(k.param(Patches::NEIGHBOURS), word, 4);
        let other = k.load(Type::I32, from, 4, Access::ReadOnly);
        let progress = |k: &mut Kernel<'_>, tile: Operand| {
            let tile = k.resize(tile, Type::I64);
            k.advance(k.param(Patches::PROGRESS), tile, PROGRESS_BYTES)
        };
        Waiting {
            own: progress(k, tile),
            other: progress(k, other),
        }
    }

    /// Tells others that the tile has done so much; all threads of the block are here.
    fn publish(&self, k: &mut Kernel<'_>, done: Operand) {
        k.barrier();
        let [lane, warp] = [Special::Thread(0), Special::Thread(1)].map(|s| k.special(s));
        let thread = k.int(IntOp::Or, lane, warp);
        let first = k.compare(IntCmp::Eq, thread, Operand::i32(0));
        k.when(first, |k| {
            let code = "st.release.gpu.global.u32 [$0], $1;";
            k.assembly(code, "l,r,~{memory}", &[], &[self.own, done]);
        });
    }

    /// Waits until all neighbours have done as much.
    fn wait(&self, k: &mut Kernel<'_>, done: Operand) {
        let (test, after) = (k.label(), k.label());
        k.place(test);
        let code = "ld.acquire.gpu.global.u32 $0, [$1];";
        let other = k.assembly(code, "=r,l,~{memory}", &[Type::I32], &[self.other])[0];
        let enough = k.compare(IntCmp::Ge, other, done);
        let enough = k.all(enough);
        k.branch(enough, after, test);
        k.place(after);
        k.warp_barrier();
    }
}

/// The halo of tiles that stay on the chip.
#[derive(Clone, Copy)]
pub(super) struct Halo<'a> {
    pub waiting: &'a Waiting,
    pub staying: &'a Staying,
    pub surroundings: Surroundings,
}

impl Context<'_> {
    /// Brings the halo of a tile up to date between two time blocks. `number`: of the exchange in the launch.
    pub(super) fn exchange(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        halo: Halo<'_>,
        number: Operand,
        values: &mut Values,
    ) {
        let held = || (0..self.program.held.len()).filter(|row| self.program.held[*row]);
        // Two arrays, one after the other.
        let odd = k.int(IntOp::And, number, Operand::i32(1));
        let odd = k.resize(odd, Type::I64);
        let bytes = Operand::i64(self.layout.bytes() as i64);
        let by = k.int(IntOp::Mul, odd, bytes);
        let array = k.advance(k.param(Patches::RIMS), by, 1);
        for row in held() {
            let to = Store {
                array,
                rims: Some(halo.staying.rims),
                surroundings: halo.surroundings,
            };
            self.store(k, patch, row, &values.rows[row], to);
        }
        if halo.surroundings == Surroundings::Ends {
            let rims = Some(halo.staying.rims);
            let surroundings = halo.surroundings;
            self.store_states(
                k,
                patch,
                Store {
                    array,
                    rims,
                    surroundings,
                },
            );
        }
        let done = k.int(IntOp::Add, number, k.param(Patches::SINCE));
        let done = k.int(IntOp::Add, done, Operand::i32(1));
        halo.waiting.publish(k, done);
        halo.waiting.wait(k, done);
        for row in held() {
            let from = array;
            self.load_halo(
                k,
                patch,
                halo.surroundings,
                row,
                from,
                &mut values.rows[row],
            );
        }
        if halo.surroundings == Surroundings::Ends {
            self.load_halo_states(k, patch, array);
            for row in held() {
                let mut at = self.coordinates(k, patch);
                self.ghosts(k, patch, &mut at, &[row], values);
            }
        }
        held().for_each(|row| self.publish(k, patch, row, values));
        if self.program.slots.count() > 0 {
            k.barrier();
        }
    }

    /// Loads the cells of a tile that other tiles have in their bases.
    fn load_halo(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        surroundings: Surroundings,
        row: usize,
        array: Operand,
        values: &mut [Operand],
    ) {
        let [px, py, pz] = self.program.shape.patch;
        // Whether a cell is needed, and whether it is the tile's own, along an axis; found anew in each exchange.
        let local = self.local(k, patch);
        let place = |k: &mut Kernel<'_>, n: usize, cell: i64| {
            let along = &self.program.along[n];
            let base = Interval::new(along.halo[0], along.halo[0] + along.base);
            let local = k.int(IntOp::Add, local[n], Operand::i32(cell as i32));
            [Interval::new(0, along.needed()), base].map(|own| super::memory::within(k, local, own))
        };
        let lanes = self.lanes_in(surroundings);
        let outer: Vec<_> = (0..px).map(|i| place(k, 0, i)).collect();
        let middle = (0..py).filter(|_| self.program.three);
        let middle: Vec<_> = middle.map(|l| place(k, 1, l)).collect();
        let inner = (0..pz).step_by(lanes as usize);
        let inner: Vec<_> = inner.map(|j| place(k, 2, j)).collect();
        let foreign = |k: &mut Kernel<'_>, [i, l, j]: [i64; 3]| {
            let [mut near, mut own] = outer[i as usize];
            for [near_too, own_too] in middle.get(l as usize).into_iter().chain([&inner[(j / lanes) as usize]]) {
                near = k.int(IntOp::And, near, *near_too);
                own = k.int(IntOp::And, own, *own_too);
            }
            let other = k.int(IntOp::Xor, own, Operand::int(Type::I1, 1));
            k.int(IntOp::And, near, other)
        };
        let number = |cell| self.program.shape.number(cell);
        if surroundings == Surroundings::Ends {
            let component = self.program.components[row];
            let extent = self.scheme.extent(component);
            let extent = super::ends::AXES.map(|axis| extent[axis]);
            let mut at = self.coordinates(k, patch);
            for [i, l] in self.lines() {
                let line = self.line_pointer(k, &at, array, RowId(row as u32), [i, l], extent);
                for j in 0..pz {
                    let z = at.clamped(k, 2, j, extent[2]);
                    let z = k.resize(z, Type::I64);
                    let from = k.advance(line, z, self.bytes as u32);
                    let foreign = foreign(k, [i, l, j]);
                    let there = at.inside(k, [i, l, j], extent);
                    let loaded = k.int(IntOp::And, foreign, there);
                    let value = k.load_if(loaded, self.real, from);
                    let own = &mut values[number([i, l, j])];
                    *own = k.choose(foreign, value, *own);
                }
            }
            return;
        }
        let first = [0, 1, 2].map(|n| patch.first(k, n));
        let first = self.pointer(k, array, RowId(row as u32), first);
        for [i, l] in self.lines() {
            let line = k.offset(first, self.line_bytes(i, l));
            for j in (0..pz).step_by(lanes as usize) {
                let from = k.offset(line, j * self.bytes);
                let foreign = foreign(k, [i, l, j]);
                let own = &mut values[number([i, l, j])..][..lanes as usize];
                let new = k.load_over(foreign, from, own);
                own.copy_from_slice(&new);
            }
        }
    }
}
