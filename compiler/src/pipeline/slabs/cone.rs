//! The cone of a slab: planes, stage by stage, and the groups of towers that compute them.

use super::Slab;
use crate::lattice::{Axis, Interval};
use crate::layout::Layout;
use crate::pipeline::{Footprints, Pass};
use crate::scheme::Scheme;

/// The cone of some planes that have been through a number of steps. Planes are numbered as in the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cone {
    /// Before the first step, ghosts included.
    pub input: Interval,
    /// The planes that each stage computes, of all steps in their order.
    pub stages: Vec<Interval>,
}

impl Cone {
    /// Before: planes of an array that holds others, too. Planes of a component that were needed once stay needed in
    /// all earlier stages, so that states and old values beside them are, too.
    pub fn new(scheme: &Scheme, base: Interval, held: Interval, steps: u64) -> Cone {
        let whole = |planes: Interval| with_sources(scheme, planes).intersect(held);
        let mut needed = vec![whole(base); scheme.component_ids().count()];
        let mut stages = Vec::new();
        for _ in 0..steps {
            for stage in scheme.stages.iter().rev() {
                let before = needed.clone();
                let mut computed = Interval::default();
                for update in &stage.updates {
                    let own = before[update.target.index()];
                    computed = computed.hull(own);
                    for read in update.reads() {
                        let by = i64::from(read.offset[Axis::OUTER]);
                        let seen = Interval::new(own.lo + by, own.hi + by);
                        let of = &mut needed[read.component.index()];
                        *of = whole(of.hull(seen));
                    }
                }
                stages.push(computed);
            }
        }
        stages.reverse();
        Cone {
            input: needed.into_iter().fold(base, Interval::hull),
            stages,
        }
    }
}

/// Some planes with the sources of their ghosts at mirrors.
fn with_sources(scheme: &Scheme, planes: Interval) -> Interval {
    let Interval { mut lo, mut hi } = planes;
    let cells = scheme.grid.cells[Axis::OUTER];
    let [low, high] = scheme.grid.boundary[Axis::OUTER].map(|end| end.is_mirror());
    if low && planes.lo < 0 {
        hi = hi.max(1 - planes.lo);
    }
    if high && planes.hi > cells {
        lo = lo.min(2 * cells - planes.hi);
    }
    Interval::new(lo, hi)
}

impl Footprints {
    /// The slabs of a pass of time blocks of such heights, with bases of `base` planes; the last one may have fewer.
    /// `None` where there are no groups, or around a periodic outer axis.
    pub fn slabs(
        &mut self,
        scheme: &Scheme,
        layout: &Layout,
        heights: &[u64],
        base: i64,
    ) -> Option<Vec<Slab>> {
        if base < 1 || scheme.grid.is_periodic(Axis::OUTER) {
            return None;
        }
        let pass = self.pass(scheme, layout, heights)?;
        let extents = scheme
            .component_ids()
            .map(|id| scheme.extent(id)[Axis::OUTER].hi);
        let grid = Interval::new(0, extents.max()?);
        let (held, cells) = (self.held(), self.along(grid));
        let count = (cells.len() - 1).div_euclid(base) + 1;
        let steps = heights.iter().sum();
        let slabs = (0..count).map(|number| {
            // Ghosts beyond the ends belong to the slabs there.
            let hi = match number {
                0 => held.hi,
                _ => cells.hi - number * base,
            };
            let lo = match number + 1 == count {
                true => held.lo,
                false => cells.hi - (number + 1) * base,
            };
            let base = Interval::new(lo, hi);
            let cone = Cone::new(scheme, self.along(base), self.along(held), steps);
            let needed = self.groups_of(&pass, &cone, grid);
            let blocks = pass.blocks.iter().zip(&needed);
            let work = Pass {
                blocks: blocks
                    .map(|(block, groups)| Slab::part(block, *groups))
                    .collect(),
                ring_part: None,
            };
            let loaded = self.along(cone.input).intersect(held).hull(base);
            Slab {
                pass: 0,
                held: loaded.hull(Slab::touched(&work)),
                work,
                needed,
                base,
                loaded,
            }
        });
        Some(slabs.collect())
    }

    /// Planes that a slab holds at least, whatever its base: the cone of one plane in the middle of the grid.
    pub fn least_held(&self, scheme: &Scheme, heights: &[u64]) -> i64 {
        let middle = scheme.grid.cells[Axis::OUTER] / 2;
        let base = Interval::new(middle, middle + 1);
        let cone = Cone::new(scheme, base, self.along(self.held()), heights.iter().sum());
        cone.input.len()
    }

    /// Per block of a pass, the groups whose towers compute events of a cone.
    fn groups_of(&self, pass: &Pass, cone: &Cone, grid: Interval) -> Vec<Interval> {
        let (towers, grouping) = (self.towers(), self.grouping());
        let per_period = towers.per_period().max(1) as usize;
        // Where rows of each stage of a period lie, relative to the origin.
        let rows = |stage: usize| {
            let alignments = towers.alignments.iter();
            let rows = alignments.filter_map(|own| own.stages.get(stage));
            let rows = rows.flat_map(|stage| &stage.updates);
            let planes = rows.map(|row| Interval::new(row.at.x, row.at.x + 1));
            planes.fold(Interval::default(), Interval::hull)
        };
        let rows: Vec<Interval> = (0..per_period).map(rows).collect();
        let stages_of_step = per_period / towers.steps.max(1) as usize;
        let mut left = cone.stages.as_slice();
        let mut groups = Vec::new();
        for block in &pass.blocks {
            let count = (block.steps as usize * stages_of_step).min(left.len());
            let (own, rest) = left.split_at(count);
            left = rest;
            let mut all = Interval::default();
            for (number, planes) in own.iter().enumerate() {
                let (planes, rows) = (planes.intersect(grid), rows[number % per_period]);
                if planes.is_empty() || rows.is_empty() {
                    continue;
                }
                let moved = towers.advance.x * (number / per_period) as i64;
                let origins = [planes.lo - (rows.hi - 1), planes.hi - 1 - rows.lo];
                let ends = origins.map(|origin| grouping.number(origin - moved));
                let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
                all = all.hull(Interval::new(low, high + 1));
            }
            groups.push(all.intersect(Interval::new(block.first, block.end())));
        }
        groups
    }
}
