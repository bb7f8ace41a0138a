//! Exchanges of tiles that stay on the chip: their stores for others, their waits, and their loads.

use super::cells::{InTile, Known};
use super::context::{Context, Surroundings, Values};
use super::memory::Store;
use super::place::Patch;
use crate::backend::gpu::abi::{PROGRESS_BYTES, Patches};
use crate::backend::gpu::ir::{Operand, Type};
use crate::backend::gpu::kernel::{Access, IntCmp, IntOp, Kernel, Special};
use crate::lattice::PerAxis;
use crate::layout::RowId;
use crate::patch::{StagePlan, Staying};
use std::collections::BTreeMap;

/// The progress of the tile, and of the neighbour for which the lane waits.
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

    /// Publishes the progress `done` of the tile. All threads of the block are here.
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

/// Cells of a line of a patch that are loaded together.
struct Piece {
    cell: [i64; 3],
    /// Where its line begins in the first row, and bytes from there.
    from: Operand,
    by: i64,
    /// For each row that is held, where other tiles have it and a time block needs it.
    foreign: Vec<Known>,
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
        let array = self.rims(k, number);
        let early = self.final_early();
        let late = held().filter(|row| !early.iter().any(|(_, own)| own == row));
        let late: Vec<usize> = late.collect();
        self.store_rims(k, patch, halo, array, &late, values);
        if halo.surroundings == Surroundings::Ends {
            let rims = Some(halo.staying.of_states);
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
        self.load_halo(k, patch, halo.surroundings, array, values);
        if halo.surroundings == Surroundings::Ends {
            self.load_halo_states(k, patch, array);
            for row in held() {
                let mut at = self.coordinates(k, patch);
                self.ghosts(k, patch, &mut at, &[row], values);
            }
        }
        let begin = &self.program.begin;
        begin
            .iter()
            .for_each(|row| self.publish(k, patch, *row, values));
        if self.program.slots.count() > 0 {
            k.barrier();
        }
    }

    /// The rims of an exchange of a launch: in two arrays, one after the other.
    pub(super) fn rims(&self, k: &mut Kernel<'_>, number: Operand) -> Operand {
        let odd = k.int(IntOp::And, number, Operand::i32(1));
        let odd = k.resize(odd, Type::I64);
        let bytes = Operand::i64(self.layout.bytes() as i64);
        let by = k.int(IntOp::Mul, odd, bytes);
        k.advance(k.param(Patches::RIMS), by, 1)
    }

    /// Rows that are held and final in a time block before its last stage, each with the stage that writes it last;
    /// none where the last round of a time block is not known.
    pub(super) fn final_early(&self) -> Vec<(usize, usize)> {
        let program = self.program;
        if !program.exchanges_each_round() {
            return Vec::new();
        }
        let held = (0..program.held.len()).filter(|row| program.held[*row]);
        let last = held.filter_map(|row| {
            let writes = |own: &StagePlan| own.updates.iter().any(|u| u.target == row);
            Some((program.stages.iter().rposition(writes)?, row))
        });
        last.filter(|(stage, _)| stage + 1 < program.stages.len())
            .collect()
    }

    /// Stores rims of some rows: of the ones that are final early before the exchange of a time block, so that they are
    /// under way while other rows are updated.
    pub(super) fn store_rims(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        halo: Halo<'_>,
        array: Operand,
        rows: &[usize],
        values: &Values,
    ) {
        for row in rows {
            let to = Store {
                array,
                rims: Some(halo.staying.rims[*row]),
                surroundings: halo.surroundings,
            };
            self.store(k, patch, *row, &values.rows[*row], to);
        }
    }

    /// Loads the cells of a tile that other tiles have in their bases, of all rows that are held, as far as a time
    /// block needs them. Beyond the grid values stay: no update changes them, and ghosts are made anew.
    fn load_halo(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        surroundings: Surroundings,
        array: Operand,
        values: &mut Values,
    ) {
        let pz = self.program.shape.patch[2];
        let lanes = self.lanes_of_rims();
        let cells = InTile::new(k, self, patch);
        let mut at = self.coordinates(k, patch);
        let rings = self.program.along.each_ref().map(|along| along.ring);
        let around = |n: usize| surroundings == Surroundings::Ends && rings[n].is_some();
        // Places of rows differ by constants.
        let first_row = |row: usize| {
            let [first, own] = [0, row as u32].map(RowId);
            let [first, own] = [first, own].map(|row| self.layout.element(row, PerAxis::splat(0)));
            (own - first) * self.bytes
        };
        let held: Vec<usize> = (0..self.program.held.len())
            .filter(|row| self.program.held[*row])
            .collect();
        let mut pointers: BTreeMap<[i64; 3], Operand> = BTreeMap::new();
        let mut known: BTreeMap<(usize, i64, [i64; 2]), Known> = BTreeMap::new();
        let mut near = |k: &mut Kernel<'_>, n: usize, cell: i64, by: [i64; 2]| {
            let found = known.entry((n, cell, by));
            *found.or_insert_with(|| cells.near(k, n, cell, by))
        };
        let pieces: Vec<[i64; 3]> = self
            .lines()
            .flat_map(|[i, l]| (0..pz).step_by(lanes as usize).map(move |j| [i, l, j]))
            .collect();
        // Where a tile exchanges after each step, conditions depend on the thread: the assembler makes no jumps then,
        // and alternating pieces would cost 1 %.
        let together = match self.program.exchanges_each_round() {
            true => 1,
            false => 2,
        };
        for pair in pieces.chunks(together) {
            let mut found_pieces = Vec::new();
            for cell in pair.iter().copied() {
                let mut within = |k: &mut Kernel<'_>, by: [[i64; 2]; 3]| {
                    (0..3).fold(Known::Always, |all, n| {
                        let along = near(k, n, cell[n], by[n]);
                        all.and(k, along)
                    })
                };
                let other = within(k, [[0; 2]; 3]).not(k);
                let foreign = |row: &usize| {
                    let needed = within(k, self.program.needs[*row]);
                    needed.and(k, other)
                };
                let foreign: Vec<Known> = held.iter().map(foreign).collect();
                if foreign.iter().all(|own| matches!(own, Known::Never)) {
                    continue;
                }
                // The computed part of the distance, and the constant part.
                let found = [0, 1, 2].map(|n| if around(n) { cell[n] } else { 0 });
                let rest = [0, 1, 2].map(|n| cell[n] - found[n]);
                let from = *pointers.entry(found).or_insert_with(|| {
                    let mut place = [Operand::i32(0); 3];
                    for n in self.program.axes() {
                        place[n] = match surroundings {
                            Surroundings::Bare => patch.first(k, n),
                            Surroundings::Ends => at.index(k, n, found[n]),
                        };
                    }
                    self.pointer(k, array, RowId(0), place)
                });
                let by = self.line_bytes(rest[0], rest[1]) + rest[2] * self.bytes;
                found_pieces.push(Piece {
                    cell,
                    from,
                    by,
                    foreign,
                });
            }
            // The rows of two pieces alternate, so that successive loads have different conditions. For several loads
            // with one condition the assembler makes a jump over them, and each waits for the loads before it.
            for (n, row) in held.iter().enumerate() {
                for piece in &found_pieces {
                    let mut loaded = piece.foreign[n];
                    if matches!(loaded, Known::Never) {
                        continue;
                    }
                    let number = self.program.shape.number(piece.cell);
                    let by = piece.by + first_row(*row);
                    let own = &mut values.rows[*row][number..][..lanes as usize];
                    if surroundings == Surroundings::Ends {
                        let extent = self.scheme.extent(self.program.components[*row]);
                        let mut there = Known::Always;
                        for n in self.program.axes() {
                            let along = extent[super::ends::AXES[n]];
                            if rings[n].is_none_or(|ring| along.lo > 0 || along.hi < ring) {
                                let touching = self.touching(n, along, lanes);
                                let cell = piece.cell[n];
                                let along = Known::Where(at.within(k, n, cell, touching));
                                there = there.and(k, along);
                            }
                        }
                        loaded = loaded.and(k, there);
                    }
                    let new = k.load_over(loaded.operand(), piece.from, by, own);
                    own.copy_from_slice(&new);
                }
            }
        }
    }
}
