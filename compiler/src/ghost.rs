//! Ghosts: the places beyond the ends of the domain in which a value appears again.
//!
//! Updates read plain memory everywhere. A read beyond a mirror or around a periodic axis finds a *ghost*, a copy of a
//! value of the domain, perhaps negated. This is the one map from values to ghosts: host, GPU kernels, generated C and
//! tests of back ends use it. The reference does not: it resolves each read anew ([`crate::scheme::Grid::resolve`]).
//!
//! Along each axis a few [`Fold`]s say where ghosts lie; a value has the ghosts of all axes together, so at most 5^3 -
//! 1.

use crate::distinct::distinct;
use crate::lattice::{Axis, Interval, PerAxis};
use crate::scheme::{Boundary, ComponentId, Scheme};

/// A place along an axis in which a value appears again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ghost {
    pub index: i64,
    /// It has the other sign there.
    pub negated: bool,
}

/// A rule of one end of an axis: the value at index `i` appears again at `sign * i + by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// -1 at a mirror, 1 around a periodic axis.
    pub sign: i64,
    pub by: i64,
    pub negated: bool,
}

impl Fold {
    pub fn ghost(self, index: i64) -> Ghost {
        Ghost {
            index: self.sign * index + self.by,
            negated: self.negated,
        }
    }
}

/// The ghosts of a component along one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisGhosts {
    folds: [Option<Fold>; 2],
    /// The indices that are stored, and the indices that are read, ghosts included.
    extent: Interval,
    visible: Interval,
    /// The indices whose values are free: others lie on a plane about which they are odd, and are 0.
    live: Interval,
}

impl AxisGhosts {
    pub fn new(scheme: &Scheme, id: ComponentId, axis: Axis) -> AxisGhosts {
        let grid = &scheme.grid;
        let position = scheme.component(id).position;
        let cells = grid.cells[axis];
        let fold = |side: usize| {
            let plane = if side == 0 { 0 } else { cells };
            let mirror = |negated: bool| Fold {
                sign: -1,
                by: 2 * plane - position[axis].0,
                negated,
            };
            let boundary = grid.boundary[axis][side];
            if boundary == Boundary::Periodic {
                let by = if side == 0 { -cells } else { cells };
                return Some(Fold {
                    sign: 1,
                    by,
                    negated: false,
                });
            }
            boundary.is_odd(axis, position).map(mirror)
        };
        let there = grid.axes[axis].is_some();
        AxisGhosts {
            folds: [0, 1].map(|side| fold(side).filter(|_| there)),
            extent: grid.extent(position)[axis],
            visible: scheme.visible(id)[axis],
            live: grid.live(position)[axis],
        }
    }

    /// The rules of the lower and the upper end.
    pub fn folds(&self) -> [Option<Fold>; 2] {
        self.folds
    }

    /// The ghosts of the value at an index that updates read.
    pub fn of(&self, index: i64) -> impl Iterator<Item = Ghost> + '_ {
        let folds = self.folds.iter().flatten();
        folds
            .filter(move |_| self.live.contains(index))
            .map(move |fold| fold.ghost(index))
            .filter(|ghost| !self.extent.contains(ghost.index))
            .filter(|ghost| self.visible.contains(ghost.index))
    }

    /// All ghosts, each with the index of its source, sources ascending.
    pub fn pairs(&self) -> Vec<(i64, Ghost)> {
        let Interval { lo, hi } = self.extent;
        let far = self.margin();
        let below = lo..hi.min(lo + far);
        let above = below.end.max(hi - far)..hi;
        let of = |index| self.of(index).map(move |ghost| (index, ghost));
        below.chain(above).flat_map(of).collect()
    }

    /// Whether no value has a ghost.
    pub fn is_empty(&self) -> bool {
        self.pairs().is_empty()
    }

    /// The largest part of a range of indices, the middle of the domain in it, whose values have no ghosts.
    pub fn without(&self, range: Interval) -> Interval {
        let Interval { lo, hi } = range;
        let has = |index: &i64| self.of(*index).next().is_some();
        let far = self.margin();
        let first = (lo..hi.min(lo + far)).rev().find(has);
        let last = (lo.max(hi - far)..hi).find(has);
        Interval::new(first.map_or(lo, |i| i + 1), last.unwrap_or(hi))
    }

    /// The indices, ghosts included, at which values can be other than 0: ranges, ascending.
    pub fn held(&self) -> Vec<Interval> {
        let beyond = distinct(self.pairs().iter().map(|(_, ghost)| ghost.index));
        let (below, above) = beyond.split_at(beyond.partition_point(|index| *index < self.live.lo));
        let one = |index: &i64| Interval::new(*index, *index + 1);
        let all = below.iter().map(one).chain([self.live]);
        let mut ranges: Vec<Interval> = Vec::new();
        for range in all.chain(above.iter().map(one)) {
            match ranges.last_mut() {
                Some(last) if last.hi == range.lo => last.hi = range.hi,
                _ => ranges.push(range),
            }
        }
        ranges
    }

    /// Sources of ghosts are fewer indices than this from an end of the extent, and of any range in it that begins or
    /// ends there.
    fn margin(&self) -> i64 {
        let below = self.extent.lo - self.visible.lo;
        let above = self.visible.hi - self.extent.hi;
        below.max(above).max(0) + 3
    }
}

/// The ghosts of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentGhosts(pub PerAxis<AxisGhosts>);

impl ComponentGhosts {
    pub fn new(scheme: &Scheme, id: ComponentId) -> ComponentGhosts {
        ComponentGhosts(PerAxis::from_fn(|axis| AxisGhosts::new(scheme, id, axis)))
    }

    /// The cells in which the value of a cell appears, and whether it is negated there; the cell itself comes first.
    pub fn of_cell(&self, at: PerAxis<i64>) -> Vec<(PerAxis<i64>, bool)> {
        self.along(&Axis::ALL, at)
    }

    /// The same of a row: along the outer and the middle axis alone.
    pub fn of_row(&self, at: PerAxis<i64>) -> Vec<(PerAxis<i64>, bool)> {
        self.along(&[Axis::OUTER, Axis::MIDDLE], at)
    }

    /// The last axis varies fastest.
    fn along(&self, axes: &[Axis], at: PerAxis<i64>) -> Vec<(PerAxis<i64>, bool)> {
        let mut all = vec![(at, false)];
        for &axis in axes {
            let ghosts: Vec<Ghost> = self.0[axis].of(at[axis]).collect();
            // As of most cells.
            if ghosts.is_empty() {
                continue;
            }
            let found = all.iter().flat_map(|&(cell, negated)| {
                let moved = ghosts.iter().map(move |ghost| {
                    let mut there = cell;
                    there[axis] = ghost.index;
                    (there, negated != ghost.negated)
                });
                std::iter::once((cell, negated)).chain(moved)
            });
            all = found.collect();
        }
        all
    }
}

/// Whether an update reads, beyond an end of lines, a negated ghost in rows that stay 0 because of an end of another
/// axis. Such a ghost is a zero without a sign, as the row has no values of its own.
pub fn reads_ghosts_of_zeros(scheme: &Scheme) -> bool {
    let zeros = |id: ComponentId, axis: Axis| {
        let held = AxisGhosts::new(scheme, id, axis).held();
        let visible = scheme.visible(id)[axis];
        (visible.lo..visible.hi).filter(move |i| !held.iter().any(|range| range.contains(*i)))
    };
    let updates = scheme.stages.iter().flat_map(|stage| &stage.updates);
    let mut reads = updates.flat_map(|update| update.reads().map(move |read| (update, read)));
    reads.any(|(update, read)| {
        let reaches = |axis: Axis, index: i64| {
            let target = index - i64::from(read.offset[axis]);
            update.region[axis].contains(target)
        };
        let inner = AxisGhosts::new(scheme, read.component, Axis::INNER).pairs();
        let mut negated = inner.iter().filter(|(_, ghost)| ghost.negated);
        let beyond = negated.any(|(_, ghost)| reaches(Axis::INNER, ghost.index));
        beyond
            && [Axis::OUTER, Axis::MIDDLE]
                .into_iter()
                .any(|axis| zeros(read.component, axis).any(|index| reaches(axis, index)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::Located;
    use crate::testing::{Limits, Rng, random_scheme};

    /// For all components of random schemes: a cell beyond the ends that updates can read is the ghost of exactly the
    /// cell in which the reference finds it, with the same sign; other cells are ghosts of none.
    #[test]
    fn ghosts_are_what_reads_resolve_to() {
        let limits = Limits {
            dimensions: 3,
            components: 3,
            stages: 2,
            ops: 6,
            length: 9,
            width: 4,
            reach: 3,
        };
        let (mut ghosts, mut held) = (0, 0);
        for seed in 0..150 {
            let scheme = random_scheme(&mut Rng::new(seed), &limits);
            for id in scheme.component_ids() {
                let position = scheme.component(id).position;
                let (extent, visible) = (scheme.extent(id), scheme.visible(id));
                let map = ComponentGhosts::new(&scheme, id);
                let mut found = std::collections::BTreeMap::new();
                crate::reference::for_each_index(extent, |at| {
                    for (cell, negated) in map.of_cell(at).into_iter().skip(1) {
                        assert!(!extent.contains(cell) && visible.contains(cell));
                        assert_eq!(found.insert(cell.0, (at, negated)), None, "two sources");
                    }
                });
                crate::reference::for_each_index(visible, |cell| {
                    if extent.contains(cell) {
                        return;
                    }
                    let expected = match scheme.grid.resolve(position, cell) {
                        Located::Stored { at, negated } => Some((at, negated)),
                        Located::Zero => None,
                    };
                    let live = scheme.grid.live(position);
                    let found = found.get(&cell.0).copied();
                    if found.is_some_and(|(at, _)| !live.contains(at)) {
                        // A ghost of a cell that no update writes, which is zero for ever.
                        assert_eq!(expected, None, "{:?}", cell.0);
                        return;
                    }
                    assert_eq!(found, expected, "{:?}", cell.0);
                    let within = |axis: Axis| {
                        let all = map.0[axis].held();
                        all.iter().any(|range| range.contains(cell[axis]))
                    };
                    assert_eq!(Axis::ALL.into_iter().all(within), expected.is_some());
                    held += 1;
                });
                ghosts += found.len();
            }
        }
        assert!(ghosts > 1000 && held > ghosts, "{ghosts} {held}");
    }

    /// For each part of the extent, the part that is left has no ghosts, and the cells beside it have some.
    #[test]
    fn parts_without_ghosts_are_as_large_as_can_be() {
        let limits = Limits {
            dimensions: 3,
            components: 2,
            stages: 2,
            ops: 6,
            length: 20,
            width: 20,
            reach: 3,
        };
        let mut cut = 0;
        for seed in 0..300 {
            let scheme = random_scheme(&mut Rng::new(seed), &limits);
            for id in scheme.component_ids() {
                for axis in Axis::ALL {
                    let ghosts = AxisGhosts::new(&scheme, id, axis);
                    let whole = ghosts.extent;
                    let part = ghosts.without(whole);
                    let sources: Vec<i64> = ghosts.pairs().iter().map(|(i, _)| *i).collect();
                    assert!(sources.iter().all(|i| !part.contains(*i)));
                    if part.is_empty() {
                        continue;
                    }
                    let beside = [
                        (part.lo - 1, part.lo > whole.lo),
                        (part.hi, part.hi < whole.hi),
                    ];
                    for (index, cuts) in beside {
                        assert!(!cuts || sources.contains(&index));
                        cut += usize::from(cuts);
                    }
                }
            }
        }
        assert!(cut > 100, "{cut}");
    }
}
