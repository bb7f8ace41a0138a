//! Ends of the grid: where cells lie, and the ghosts that lie beyond.

use super::context::{Context, Values};
use super::memory::within;
use super::place::Patch;
use crate::backend::gpu::ir::{Operand, Type};
use crate::backend::gpu::kernel::{Access, IntCmp, IntOp, Kernel};
use crate::ghost::{AxisGhosts, Ghost};
use crate::lattice::{Axis, Interval};
use crate::patch::{Along, PatchProgram};
use std::collections::BTreeMap;

pub(super) const AXES: [Axis; 2] = [Axis::OUTER, Axis::INNER];

/// The indices of the cells of a patch, around a ring those in the grid. They are computed anew in each stage, as there
/// are no registers to keep all that follows from them.
#[derive(Clone)]
pub(super) struct Coordinates {
    /// Of the first cell.
    first: [Operand; 2],
    /// Of all cells, around a ring.
    around: [Option<Vec<Operand>>; 2],
    known: BTreeMap<(usize, i64, [i64; 2]), Operand>,
}

impl Coordinates {
    /// Whether an index along an axis lies in an interval.
    pub fn within(&mut self, k: &mut Kernel<'_>, n: usize, cell: i64, own: Interval) -> Operand {
        let known = self.known.entry((n, cell, [own.lo, own.hi]));
        // No index but the first one is kept in a register.
        *known.or_insert_with(|| match &self.around[n] {
            Some(of) => within(k, of[cell as usize], own),
            None => within(
                k,
                self.first[n],
                Interval::new(own.lo.saturating_sub(cell), own.hi.saturating_sub(cell)),
            ),
        })
    }

    /// Whether a cell lies in a box.
    pub fn inside(&mut self, k: &mut Kernel<'_>, cell: [i64; 2], own: [Interval; 2]) -> Operand {
        let [x, z] = [0, 1].map(|n| self.within(k, n, cell[n], own[n]));
        k.int(IntOp::And, x, z)
    }

    /// Whether an index lies in one of some intervals.
    fn in_one(&mut self, k: &mut Kernel<'_>, n: usize, cell: i64, all: &[Interval]) -> Operand {
        let mut found = Operand::int(Type::I1, 0);
        for own in all {
            let inside = self.within(k, n, cell, *own);
            found = k.int(IntOp::Or, found, inside);
        }
        found
    }

    /// The index of a cell of the patch along an axis.
    pub fn index(&self, k: &mut Kernel<'_>, n: usize, cell: i64) -> Operand {
        match &self.around[n] {
            Some(of) => of[cell as usize],
            None => k.int(IntOp::Add, self.first[n], Operand::i32(cell as i32)),
        }
    }

    /// The index of an interval that is nearest.
    pub fn clamped(&self, k: &mut Kernel<'_>, n: usize, cell: i64, own: Interval) -> Operand {
        let index = self.index(k, n, cell);
        let index = k.int(IntOp::Max, index, Operand::i32(own.lo as i32));
        k.int(IntOp::Min, index, Operand::i32(own.hi as i32 - 1))
    }

    fn is(&self, k: &mut Kernel<'_>, n: usize, cell: i64, index: i64) -> Operand {
        let [own, index] = match &self.around[n] {
            Some(of) => [of[cell as usize], Operand::i32(index as i32)],
            None => [self.first[n], Operand::i32((index - cell) as i32)],
        };
        k.compare(IntCmp::Eq, own, index)
    }
}

/// The cells of a patch along an axis that have an index in some tile.
fn cells_with(program: &PatchProgram, n: usize, index: i64) -> Vec<i64> {
    let along: &Along = &program.along[n];
    let [length, patch] = [program.shape.tile()[n], program.shape.patch[n]];
    let last = (index + along.halo[0])
        .div_euclid(along.base)
        .min(along.tiles - 1);
    let mut cells = Vec::new();
    for tile in (0..=last).rev() {
        let local = index - along.origin(tile);
        if local >= length || cells.len() as i64 == patch {
            break;
        }
        if local >= 0 && !cells.contains(&local.rem_euclid(patch)) {
            cells.push(local.rem_euclid(patch));
        }
    }
    cells
}

/// Where a value is that ghosts along an axis are made of.
#[derive(Clone, Copy)]
struct GhostPlace {
    /// The number of the axis in [`AXES`].
    axis: usize,
    /// Along the axis: of the source that is stored, of the ghost that is loaded.
    index: i64,
    /// Among those of the axis in shared memory.
    place: i64,
}

/// A row of which a thread takes ghosts.
struct Exchanged<'v> {
    row: usize,
    negated: bool,
    values: &'v mut Values,
}

impl Context<'_> {
    pub(super) fn coordinates(&self, k: &mut Kernel<'_>, patch: &Patch) -> Coordinates {
        let first = [0, 1].map(|n| {
            let first = patch.first(k, n);
            k.again(first)
        });
        let around = [0, 1].map(|n| {
            let ring = self.program.along[n].ring?;
            let cells = 0..self.program.shape.patch[n];
            let index = cells.map(|cell| {
                let index = k.int(IntOp::Add, first[n], Operand::i32(cell as i32));
                self.around(k, n, index, ring)
            });
            Some(index.collect::<Vec<_>>())
        });
        Coordinates {
            first,
            around,
            known: BTreeMap::new(),
        }
    }

    /// An index in the grid, from one that may lie beyond an end of a ring of `ring` cells along an axis.
    pub(super) fn around(
        &self,
        k: &mut Kernel<'_>,
        n: usize,
        index: Operand,
        ring: i64,
    ) -> Operand {
        let by = Operand::i32((self.program.along[n].turns() * ring) as i32);
        let above = k.int(IntOp::Add, index, by);
        k.int(IntOp::Rem, above, Operand::i32(ring as i32))
    }

    /// Makes the ghosts of rows, along the outer axis first: along the inner axis they are those of ghosts, too.
    pub(super) fn ghosts(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        at: &mut Coordinates,
        rows: &[usize],
        values: &mut Values,
    ) {
        let mut exchanged = false;
        for (n, axis) in AXES.into_iter().enumerate() {
            let of = |row: &usize| {
                let id = self.program.components[*row];
                (*row, AxisGhosts::new(self.scheme, id, axis).pairs())
            };
            let pairs: Vec<(usize, Vec<(i64, Ghost)>)> = match self.program.along[n].ring {
                None => rows.iter().map(of).collect(),
                // A ring goes on beyond its ends.
                Some(_) => Vec::new(),
            };
            if pairs.iter().all(|(_, pairs)| pairs.is_empty()) {
                continue;
            }
            exchanged = true;
            let places = |number: usize| (number as i64) * self.program.shape.tile()[1 - n];
            let mut number = 0;
            for (row, pairs) in &pairs {
                for (source, _) in pairs {
                    self.give(
                        k,
                        patch,
                        at,
                        GhostPlace {
                            axis: n,
                            index: *source,
                            place: places(number),
                        },
                        &values.rows[*row],
                    );
                    number += 1;
                }
            }
            k.barrier();
            let mut number = 0;
            for (row, pairs) in &pairs {
                for (_, ghost) in pairs {
                    let from = GhostPlace {
                        axis: n,
                        index: ghost.index,
                        place: places(number),
                    };
                    let own = Exchanged {
                        row: *row,
                        negated: ghost.negated,
                        values,
                    };
                    self.take(k, patch, at, from, own);
                    number += 1;
                }
            }
        }
        if exchanged {
            k.barrier();
        }
    }

    /// Where the first cell of a patch lies among ghosts along an axis.
    fn ghost_place(&self, k: &mut Kernel<'_>, patch: &Patch, at: GhostPlace) -> Operand {
        let GhostPlace { axis: n, place, .. } = at;
        let first = k.offset(patch.shared, self.areas()[1 + n] + place * self.bytes);
        let local = k.again(patch.local[1 - n]);
        let local = k.resize(local, Type::I64);
        k.advance(first, local, self.bytes as u32)
    }

    /// The cells of a patch at an index along axis `n`, in their order along the other one.
    fn line(&self, n: usize, cell: i64) -> impl Iterator<Item = [i64; 2]> + use<> {
        let across = 0..self.program.shape.patch[1 - n];
        across.map(move |other| match n {
            0 => [cell, other],
            _ => [other, cell],
        })
    }

    fn give(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        at: &Coordinates,
        to: GhostPlace,
        values: &[Operand],
    ) {
        let (n, source) = (to.axis, to.index);
        let shape = &self.program.shape;
        for cell in cells_with(self.program, n, source) {
            let has = at.is(k, n, cell, source);
            k.when(has, |k| {
                let to = self.ghost_place(k, patch, to);
                for (number, own) in self.line(n, cell).enumerate() {
                    let to = k.offset(to, number as i64 * self.bytes);
                    k.store(
                        values[shape.number(own)],
                        to,
                        self.bytes as u32,
                        Access::Plain,
                    );
                }
            });
        }
    }

    fn take(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        at: &mut Coordinates,
        from: GhostPlace,
        own: Exchanged<'_>,
    ) {
        let n = from.axis;
        let Exchanged {
            row,
            negated,
            values,
        } = own;
        let shape = &self.program.shape;
        let id = self.program.components[row];
        let other = AxisGhosts::new(self.scheme, id, AXES[1 - n]);
        // What lies on a plane about which it is odd is a zero without a sign, in ghosts, too.
        let free = match n {
            0 => vec![self.scheme.grid.live(self.scheme.component(id).position)[Axis::INNER]],
            _ => other.held(),
        };
        for cell in cells_with(self.program, n, from.index) {
            let across: Vec<[i64; 2]> = self.line(n, cell).collect();
            let has = at.is(k, n, cell, from.index);
            let free: Vec<Operand> = across
                .iter()
                .map(|own| at.in_one(k, 1 - n, own[1 - n], &free))
                .collect();
            let own: Vec<_> = across
                .iter()
                .map(|cell| k.variable_of(values.rows[row][shape.number(*cell)]))
                .collect();
            k.when(has, |k| {
                let from = self.ghost_place(k, patch, from);
                for (number, variable) in own.iter().enumerate() {
                    let from = k.offset(from, number as i64 * self.bytes);
                    let value = k.load(self.real, from, self.bytes as u32, Access::Plain);
                    let value = match negated {
                        true => k.negated(value),
                        false => value,
                    };
                    let before = k.get(*variable);
                    let value = k.choose(free[number], value, before);
                    k.set(*variable, value);
                }
            });
            for (cell, variable) in across.iter().zip(&own) {
                values.rows[row][shape.number(*cell)] = k.get(*variable);
            }
        }
    }
}
