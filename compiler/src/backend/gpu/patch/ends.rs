//! Ends of the grid: where cells lie, and the ghosts that lie beyond.

use super::context::{Context, Values, within};
use super::place::Patch;
use crate::backend::gpu::ir::{Operand, Type};
use crate::backend::gpu::kernel::{Access, IntCmp, IntOp, Kernel};
use crate::ghost::{AxisGhosts, Ghost};
use crate::lattice::{Axis, Interval};
use crate::patch::{Along, PatchProgram};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const AXES: [Axis; 3] = Axis::ALL;

/// The indices of the cells of a patch, around a ring the indices in the grid. They are computed anew in each stage, as
/// there are no registers to keep the values that follow from them.
#[derive(Clone)]
pub(super) struct Coordinates {
    /// Of the first cell.
    first: [Operand; 3],
    /// Of all cells, around a ring.
    around: [Option<Vec<Operand>>; 3],
    /// Cells of the axes that are rings.
    rings: [Option<i64>; 3],
    /// Whether there is a middle axis.
    three: bool,
    known: BTreeMap<(usize, i64, [i64; 2]), Operand>,
}

impl Coordinates {
    /// Whether an index along an axis lies in an interval.
    pub fn within(&mut self, k: &mut Kernel<'_>, n: usize, cell: i64, own: Interval) -> Operand {
        if self.rings[n].is_some_and(|ring| own.lo <= 0 && own.hi >= ring) {
            return Operand::int(Type::I1, 1);
        }
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
    pub fn inside(&mut self, k: &mut Kernel<'_>, cell: [i64; 3], own: [Interval; 3]) -> Operand {
        let mut inside = self.within(k, 0, cell[0], own[0]);
        for n in 1..3 {
            if n != 1 || self.three {
                let along = self.within(k, n, cell[n], own[n]);
                inside = k.int(IntOp::And, inside, along);
            }
        }
        inside
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

/// The cells of a patch along an axis at which an update that acts in an interval does not act, in some tile, though
/// the row is stored or read there. Values beyond are read without an effect.
pub(super) fn resting(
    program: &PatchProgram,
    n: usize,
    acts: Interval,
    seen: Interval,
) -> Vec<i64> {
    let all = 0..program.shape.patch[n];
    if program.along[n].ring.is_some() {
        return all.collect();
    }
    let below = seen.lo..acts.lo.min(seen.hi);
    let above = acts.hi.max(seen.lo)..seen.hi;
    let mut cells = BTreeSet::new();
    for index in below.chain(above) {
        cells.extend(cells_with(program, n, index));
        if cells.len() as i64 == all.end {
            break;
        }
    }
    cells.into_iter().collect()
}

/// Where a value is that ghosts along an axis are made of.
#[derive(Clone, Copy)]
struct GhostPlace {
    /// The number of the axis in [`AXES`].
    axis: usize,
    /// Along the axis: of the source that is stored, of the ghost that is loaded.
    index: i64,
    /// Among the ghosts of the axis in shared memory.
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
        let first = self.found_anew(k, [0, 1, 2].map(|n| [patch.origin[n], patch.local[n]]));
        let around = [0, 1, 2].map(|n| {
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
            rings: self.program.along.map(|along| along.ring),
            three: self.program.three,
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
        let along = &self.program.along[n];
        let cells = Operand::i32(ring as i32);
        if along.is_near_ring(self.program.shape.tile()[n]) {
            let [above, below] = [IntOp::Add, IntOp::Sub].map(|op| k.int(op, index, cells));
            let begun = k.compare(IntCmp::Ge, index, Operand::i32(0));
            let before = k.compare(IntCmp::Lt, index, cells);
            let index = k.choose(before, index, below);
            return k.choose(begun, index, above);
        }
        let by = Operand::i32((along.turns() * ring) as i32);
        let above = k.int(IntOp::Add, index, by);
        k.int(IntOp::Rem, above, cells)
    }

    /// Makes the ghosts of rows, axis by axis: along later ones there are ghosts of ghosts, too.
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
            let places = |number: usize| (number as i64) * self.program.section(n);
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

    /// The two axes across one, in their order.
    fn across(n: usize) -> [usize; 2] {
        match n {
            0 => [1, 2],
            1 => [0, 2],
            _ => [0, 1],
        }
    }

    /// Where the first cell of a patch lies among ghosts along an axis.
    fn ghost_place(&self, k: &mut Kernel<'_>, patch: &Patch, at: GhostPlace) -> Operand {
        let GhostPlace { axis: n, place, .. } = at;
        let first = k.offset(patch.shared, self.areas()[1 + n] + place * self.bytes);
        let [a, b] = Context::across(n);
        let has = |n: usize| n != 1 || self.program.three;
        let scaled = |k: &mut Kernel<'_>, n: usize, by: i64| {
            let local = k.again(patch.local[n]);
            match by {
                1 => local,
                by => k.int(IntOp::Mul, local, Operand::i32(by as i32)),
            }
        };
        let local = match (has(a), has(b)) {
            (true, true) => {
                let line = scaled(k, a, self.program.shape.tile()[b]);
                let own = scaled(k, b, 1);
                k.int(IntOp::Add, line, own)
            }
            (true, false) => scaled(k, a, 1),
            (false, _) => scaled(k, b, 1),
        };
        let local = k.resize(local, Type::I64);
        k.advance(first, local, self.bytes as u32)
    }

    /// The cells of a patch at an index along axis `n`, each with its distance from the first of them among ghosts.
    fn section(&self, n: usize, cell: i64) -> Vec<([i64; 3], i64)> {
        let [a, b] = Context::across(n);
        let (patch, line) = (self.program.shape.patch, self.program.shape.tile()[b]);
        let cells = (0..patch[a]).flat_map(move |own| (0..patch[b]).map(move |other| [own, other]));
        let place = |[own, other]: [i64; 2]| {
            let mut at = [cell; 3];
            (at[a], at[b]) = (own, other);
            (at, own * line + other)
        };
        cells.map(place).collect()
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
                for (own, by) in self.section(n, cell) {
                    let to = k.offset(to, by * self.bytes);
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
        // An odd component is a zero without a sign on its plane of symmetry, in ghosts, too: in ghosts along earlier
        // axes.
        let live = self.scheme.grid.live(self.scheme.component(id).position);
        let free = |m: usize| match m < n {
            true => AxisGhosts::new(self.scheme, id, AXES[m]).held(),
            false => vec![live[AXES[m]]],
        };
        let across = Context::across(n).into_iter();
        let across = across.filter(|m| *m != 1 || self.program.three);
        let free: Vec<(usize, Vec<Interval>)> = across.map(|m| (m, free(m))).collect();
        for cell in cells_with(self.program, n, from.index) {
            let across = self.section(n, cell);
            let has = at.is(k, n, cell, from.index);
            let free: Vec<Operand> = across
                .iter()
                .map(|(own, _)| {
                    let along = free.iter().map(|(m, free)| at.in_one(k, *m, own[*m], free));
                    let along: Vec<Operand> = along.collect();
                    let both = along.into_iter().reduce(|a, b| k.int(IntOp::And, a, b));
                    both.unwrap_or(Operand::int(Type::I1, 1))
                })
                .collect();
            let own: Vec<_> = across
                .iter()
                .map(|(cell, _)| k.variable_of(values.rows[row][shape.number(*cell)]))
                .collect();
            k.when(has, |k| {
                let from = self.ghost_place(k, patch, from);
                for (number, (variable, (_, by))) in own.iter().zip(&across).enumerate() {
                    let from = k.offset(from, by * self.bytes);
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
            for ((cell, _), variable) in across.iter().zip(&own) {
                values.rows[row][shape.number(*cell)] = k.get(*variable);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::PerAxis;
    use crate::layout::Layout;
    use crate::patch::{CoefPlace, Shape};
    use crate::schedule::Pyramid;
    use crate::scheme::Precision;
    use crate::testing::maxwell;

    /// The cells beside both ends, of the 16 of a patch.
    #[test]
    fn updates_rest_at_few_cells_of_a_patch() {
        let scheme = maxwell(2, Precision::F32, [40, 9, 10]);
        let layout = Layout::for_gpu(&scheme).expect("a small scheme");
        let pyramid = Pyramid {
            height: 1,
            base: PerAxis([Some(12), Some(9), Some(10)]),
        };
        let shape = Shape {
            threads: [1, 4, 8],
            patch: [16, 3, 2],
            coefs: CoefPlace::Registers,
            reuses_slots: false,
            blocks: 1,
        };
        let program = PatchProgram::new(&scheme, &layout, &pyramid, shape).expect("a program");
        let resting = |acts, seen| resting(&program, 0, acts, seen);
        let grid = Interval::new(0, 40);
        let begins: Vec<i64> = (0..4).map(|tile| program.along[0].origin(tile)).collect();
        assert_eq!(begins, [-2, 10, 22, 34]);
        assert_eq!(resting(grid, Interval::new(-1, 41)), [1, 6]);
        assert_eq!(resting(grid, Interval::new(-1, 40)), [1]);
        assert_eq!(
            resting(Interval::new(1, 40), Interval::new(0, 42)),
            [2, 6, 7]
        );
        assert_eq!(resting(grid, grid), []);
    }
}
