//! States of zones on their way between arrays and the rooms of tiles. A thread moves the states of its patch, line by
//! line.

use super::context::{Context, within};
use super::ends::AXES;
use super::memory::Store;
use super::place::Patch;
use crate::backend::gpu::abi::Patches;
use crate::backend::gpu::ir::{Operand, Type};
use crate::backend::gpu::kernel::{IntOp, Kernel};
use crate::lattice::Interval;
use crate::layout::{BoxLayout, ZoneLayout};
use crate::scheme::{StateId, ZoneId};

/// The cells of a tile whose states are moved.
#[derive(Clone, Copy)]
enum Cells {
    All,
    /// The cells of the base; if there are rims, only cells in one of them.
    Base(Option<[[i64; 2]; 3]>),
    /// The cells of the halo.
    Halo,
}

/// A move between an array and the room.
#[derive(Clone, Copy)]
struct Move {
    array: Operand,
    cells: Cells,
}

/// Where a cell lies along an axis: its index in the grid, and whether it is in the halo or the base, in the base, and
/// in a rim.
#[derive(Clone, Copy)]
struct Along {
    index: Operand,
    near: Operand,
    own: Operand,
    rim: Operand,
}

impl Context<'_> {
    /// Brings states of all cells of a tile into its room.
    pub(super) fn load_states(&self, k: &mut Kernel<'_>, patch: &Patch) {
        let (array, cells) = (k.param(Patches::FROM), Cells::All);
        self.move_states(k, patch, Move { array, cells });
    }

    /// Stores the states of the base, or of its rims.
    pub(super) fn store_states(&self, k: &mut Kernel<'_>, patch: &Patch, to: Store) {
        let cells = Cells::Base(to.rims);
        let array = to.array;
        self.move_states(k, patch, Move { array, cells });
    }

    /// Brings the states of the halo into the room, from the rims of other tiles.
    pub(super) fn load_halo_states(&self, k: &mut Kernel<'_>, patch: &Patch, array: Operand) {
        let cells = Cells::Halo;
        self.move_states(k, patch, Move { array, cells });
    }

    /// Where a thread keeps a state of a cell of its patch, from its place in the room.
    pub(super) fn state_place(&self, state: StateId, cell: usize) -> i64 {
        let count = self.program.shape.count();
        (state.index() * count + cell) as i64 * self.slot_bytes()
    }

    fn move_states(&self, k: &mut Kernel<'_>, patch: &Patch, own: Move) {
        let Some((has, [_, room])) = patch.has_room(k).zip(patch.room) else {
            return;
        };
        if self.scheme.states.is_empty() {
            return;
        }
        let [px, py, pz] = self.program.shape.patch;
        k.when(has, |k| {
            let (first, end) = (Operand::i32(0), Operand::i32((px * py) as i32));
            k.repeat(first, end, Operand::i32(1), Some(1), |k, line| {
                let (i, l) = match self.program.three {
                    false => (line, None),
                    true => {
                        let width = Operand::i32(py as i32);
                        let l = k.int(IntOp::Rem, line, width);
                        (k.int(IntOp::Div, line, width), Some(l))
                    }
                };
                let x = k.int(IntOp::Add, patch.local[0], i);
                let x = self.along(k, patch, own.cells, 0, x);
                let y = l.map(|l| {
                    let y = k.int(IntOp::Add, patch.local[1], l);
                    self.along(k, patch, own.cells, 1, y)
                });
                let line = k.resize(line, Type::I64);
                let by = Operand::i64(pz * self.slot_bytes());
                let by = k.int(IntOp::Mul, line, by);
                let room = k.advance(room, by, 1);
                let cells: Vec<Along> = (0..pz)
                    .map(|j| {
                        let z = k.int(IntOp::Add, patch.local[2], Operand::i32(j as i32));
                        self.along(k, patch, own.cells, 2, z)
                    })
                    .collect();
                for (number, zone) in self.layout.zones.iter().enumerate() {
                    let states: Vec<StateId> =
                        self.scheme.states_of(ZoneId(number as u32)).collect();
                    for part in zone.boxes.iter().filter(|_| !states.is_empty()) {
                        let mut inside = within(k, x.index, part.region[AXES[0]]);
                        if let Some(y) = &y {
                            let along = within(k, y.index, part.region[AXES[1]]);
                            inside = k.int(IntOp::And, inside, along);
                        }
                        k.when(inside, |k| {
                            let line = Line {
                                zone,
                                part,
                                states: &states,
                                x,
                                y,
                                cells: &cells,
                                room,
                            };
                            self.move_line(k, own, &line);
                        });
                    }
                }
            });
        });
    }

    fn along(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        cells: Cells,
        n: usize,
        local: Operand,
    ) -> Along {
        let along = &self.program.along[n];
        let base = Interval::new(along.halo[0], along.halo[0] + along.base);
        let near = within(k, local, Interval::new(0, along.needed()));
        let own = within(k, local, base);
        let rim = match cells {
            Cells::Base(Some(rims)) => {
                let [below, above] = rims[n];
                let lower = within(k, local, Interval::new(base.lo, base.lo + below));
                let upper = within(k, local, Interval::new(base.hi - above, base.hi));
                k.int(IntOp::Or, lower, upper)
            }
            _ => own,
        };
        let index = k.int(IntOp::Add, patch.origin[n], local);
        let index = match (along.ring, cells) {
            // A base has cells of its own alone.
            (None, _) | (_, Cells::Base(_)) => index,
            (Some(ring), _) => self.around(k, n, index, ring),
        };
        Along {
            index,
            near,
            own,
            rim,
        }
    }

    /// Whether the states of a cell are moved, and lie in the zone along the inner axis. `all`: along the axes that
    /// there are, the inner one last.
    fn moved(&self, k: &mut Kernel<'_>, cells: Cells, all: &[Along], range: Interval) -> Operand {
        let [rest @ .., z] = all else {
            return Operand::int(Type::I1, 0);
        };
        let inside = within(k, z.index, range);
        let of = |k: &mut Kernel<'_>, op: IntOp, get: fn(&Along) -> Operand| {
            let first = get(z);
            rest.iter()
                .fold(first, |all, along| k.int(op, get(along), all))
        };
        let own = |along: &Along| along.own;
        let chosen = match cells {
            Cells::All => return inside,
            Cells::Base(None) => of(k, IntOp::And, own),
            Cells::Base(Some(_)) => {
                let rim = of(k, IntOp::Or, |along| along.rim);
                let own = of(k, IntOp::And, own);
                k.int(IntOp::And, own, rim)
            }
            Cells::Halo => {
                let near = of(k, IntOp::And, |along| along.near);
                let own = of(k, IntOp::And, own);
                let other = k.int(IntOp::Xor, own, Operand::int(Type::I1, 1));
                k.int(IntOp::And, near, other)
            }
        };
        k.int(IntOp::And, inside, chosen)
    }

    fn move_line(&self, k: &mut Kernel<'_>, own: Move, line: &Line<'_>) {
        let Line {
            zone, part, room, ..
        } = *line;
        let first = k.offset(own.array, part.group(zone, 0, 0) * self.bytes);
        let x = k.resize(line.x.index, Type::I64);
        let by = k.int(IntOp::Mul, x, Operand::i64(zone.plane * self.bytes));
        let mut first = k.advance(first, by, 1);
        if let Some(y) = &line.y {
            let index = k.resize(y.index, Type::I64);
            let by = k.int(IntOp::Mul, index, Operand::i64(zone.group * self.bytes));
            first = k.advance(first, by, 1);
        }
        let mut moves = Vec::new();
        for (number, z) in line.cells.iter().enumerate() {
            let range = part.region[AXES[2]];
            let all: Vec<Along> = [line.x].into_iter().chain(line.y).chain([*z]).collect();
            let moved = self.moved(k, own.cells, &all, range);
            let index = k.resize(z.index, Type::I64);
            let cell = k.advance(first, index, self.bytes as u32);
            for state in line.states {
                let row = i64::from(self.layout.state_row(*state)) * zone.row_stride;
                let there = k.offset(cell, row * self.bytes);
                let here = k.offset(room, self.state_place(*state, number));
                let [from, to] = match own.cells {
                    Cells::All | Cells::Halo => [there, here],
                    Cells::Base(_) => [here, there],
                };
                moves.push((moved, k.load_if(moved, self.real, from), to));
            }
        }
        for (moved, value, to) in moves {
            k.store_if(moved, value, to);
        }
    }
}

/// A line of a patch in a box of a zone.
struct Line<'a> {
    zone: &'a ZoneLayout,
    part: &'a BoxLayout,
    states: &'a [StateId],
    x: Along,
    /// Along the middle axis, if there is one.
    y: Option<Along>,
    cells: &'a [Along],
    /// The thread's place in the room for the first cell of the line.
    room: Operand,
}
