//! Exchanges of tiles that stay on the chip: their stores for others, their waits, and their loads.

use super::cells::{InTile, Known};
use super::context::{Context, Surroundings, Values};
use super::ends::{AXES, Coordinates};
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
        let array = self.rims(k, number);
        let early = self.final_early();
        let held = self.program.held_rows();
        let late = held.filter(|row| !early.iter().any(|(_, own)| own == row));
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
            self.ghosts_of_held(k, patch, values);
        }
        self.publish_begin(k, patch, values);
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
        let last = program.held_rows().filter_map(|row| {
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
        let mut loads = HaloLoads {
            context: self,
            patch,
            surroundings,
            array,
            cells: InTile::new(k, self, patch),
            at: self.coordinates(k, patch),
            pointers: BTreeMap::new(),
            known: BTreeMap::new(),
        };
        let cells: Vec<[i64; 3]> = self
            .lines()
            .flat_map(|[i, l]| (0..pz).step_by(lanes as usize).map(move |j| [i, l, j]))
            .collect();
        // Where a tile exchanges after each step, conditions depend on the thread: the assembler makes no jumps then,
        // and alternating pieces would cost 1 %.
        let together = match self.program.exchanges_each_round() {
            true => 1,
            false => 2,
        };
        for pair in cells.chunks(together) {
            let pieces = pair.iter().filter_map(|cell| loads.piece(k, *cell));
            let pieces: Vec<Piece> = pieces.collect();
            // The rows of two pieces alternate, so that successive loads have different conditions. For several loads
            // with one condition the assembler makes a jump over them, and each waits for the loads before it.
            for (n, row) in self.program.held_rows().enumerate() {
                for piece in &pieces {
                    loads.load(k, piece, piece.foreign[n], row, values);
                }
            }
        }
    }
}

/// The loads of the halo of a tile, piece by piece.
struct HaloLoads<'s, 'a> {
    context: &'s Context<'a>,
    patch: &'s Patch,
    surroundings: Surroundings,
    /// Where the rims are.
    array: Operand,
    cells: InTile<'s>,
    at: Coordinates,
    /// Pointers to lines of the first row, by the cells on which they depend.
    pointers: BTreeMap<[i64; 3], Operand>,
    /// Which threads have a cell near the base: by axis, cell, and distances below and above the base.
    known: BTreeMap<(usize, i64, [i64; 2]), Known>,
}

impl HaloLoads<'_, '_> {
    /// The piece that begins at a cell of the patch; `None` where no other tile has any of its rows, or no time block
    /// needs them.
    fn piece(&mut self, k: &mut Kernel<'_>, cell: [i64; 3]) -> Option<Piece> {
        let context = self.context;
        let other = self.within(k, cell, [[0; 2]; 3]).not(k);
        let foreign = context.program.held_rows().map(|row| {
            let needed = self.within(k, cell, context.program.needs[row]);
            needed.and(k, other)
        });
        let foreign: Vec<Known> = foreign.collect();
        if foreign.iter().all(|own| matches!(own, Known::Never)) {
            return None;
        }
        // The computed part of the distance, and the constant part.
        let found = [0, 1, 2].map(|n| if self.goes_around(n) { cell[n] } else { 0 });
        let rest = [0, 1, 2].map(|n| cell[n] - found[n]);
        Some(Piece {
            cell,
            from: self.pointer(k, found),
            by: context.line_bytes(rest[0], rest[1]) + rest[2] * context.bytes,
            foreign,
        })
    }

    /// Whether a cell lies in the base, or within distances below and above it, in cells along each axis.
    fn within(&mut self, k: &mut Kernel<'_>, cell: [i64; 3], by: [[i64; 2]; 3]) -> Known {
        (0..3).fold(Known::Always, |all, n| {
            let found = self.known.entry((n, cell[n], by[n]));
            let along = *found.or_insert_with(|| self.cells.near(k, n, cell[n], by[n]));
            all.and(k, along)
        })
    }

    /// Whether cells along an axis may lie beyond its end, and are found at its beginning then.
    fn goes_around(&self, n: usize) -> bool {
        self.surroundings == Surroundings::Ends && self.context.program.along[n].ring.is_some()
    }

    /// Where a cell has its value in the first row.
    fn pointer(&mut self, k: &mut Kernel<'_>, cell: [i64; 3]) -> Operand {
        let context = self.context;
        *self.pointers.entry(cell).or_insert_with(|| {
            let mut place = [Operand::i32(0); 3];
            for n in context.program.axes() {
                place[n] = match self.surroundings {
                    Surroundings::Bare => self.patch.first(k, n),
                    Surroundings::Ends => self.at.index(k, n, cell[n]),
                };
            }
            context.pointer(k, self.array, RowId(0), place)
        })
    }

    /// Loads the values of a row in a piece over the old ones, in threads for which `foreign` holds.
    fn load(
        &mut self,
        k: &mut Kernel<'_>,
        piece: &Piece,
        foreign: Known,
        row: usize,
        values: &mut Values,
    ) {
        if matches!(foreign, Known::Never) {
            return;
        }
        let context = self.context;
        // Places of rows differ by constants.
        let [first, own] =
            [0, row as u32].map(|row| context.layout.element(RowId(row), PerAxis::splat(0)));
        let by = piece.by + (own - first) * context.bytes;
        let loaded = match self.surroundings {
            Surroundings::Bare => foreign,
            Surroundings::Ends => {
                let there = self.is_stored(k, piece.cell, row);
                foreign.and(k, there)
            }
        };
        let number = context.program.shape.number(piece.cell);
        let own = &mut values.rows[row][number..][..context.lanes_of_rims() as usize];
        let new = k.load_over(loaded.operand(), piece.from, by, own);
        own.copy_from_slice(&new);
    }

    /// Whether the row has values of the grid in a piece at a cell.
    fn is_stored(&mut self, k: &mut Kernel<'_>, cell: [i64; 3], row: usize) -> Known {
        let Context {
            scheme, program, ..
        } = self.context;
        let extent = scheme.extent(program.components[row]);
        let mut there = Known::Always;
        for n in program.axes() {
            let along = extent[AXES[n]];
            let ring = program.along[n].ring;
            if ring.is_none_or(|ring| along.lo > 0 || along.hi < ring) {
                let lanes = self.context.lanes_of_rims();
                let touching = self.context.touching(n, along, lanes);
                let along = Known::Where(self.at.within(k, n, cell[n], touching));
                there = there.and(k, along);
            }
        }
        there
    }
}
