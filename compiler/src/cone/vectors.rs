//! Derives the dependence vectors from ages, time levels and offsets.

use super::{Cones, Dependence, Kind, Site, Via};
use crate::distinct::distinct;
use crate::lattice::{Axis, HalfIndex, Interval, PerAxis, Position};
use crate::scheme::{Boundary, ComponentId, Grid, Scheme, StageId, Update};

/// All dependence vectors of a verified scheme.
pub fn cones(scheme: &Scheme) -> Cones {
    let writers = Writers::new(scheme);
    let mut found = Vec::new();
    for stage in scheme.stage_ids() {
        for update in &scheme.stages[stage.index()].updates {
            from_reads(scheme, &writers, stage, update, &mut found);
            from_time_levels(scheme, &writers, stage, update, &mut found);
        }
    }
    let found = distinct(found);
    let dependences = found.iter().filter(|d| !repeats(d, &found)).copied();
    Cones {
        scheme: scheme.name.clone(),
        stages: scheme.stages.len() as u32,
        components: scheme.components.iter().map(|c| c.name.clone()).collect(),
        axes: scheme.grid.axes.clone(),
        dependences: dependences.collect(),
    }
}

/// A mirror often gives a vector that a direct read has as well; `found` is ascending.
fn repeats(d: &Dependence, found: &[Dependence]) -> bool {
    let direct = Dependence {
        via: PerAxis::default(),
        ..*d
    };
    d.via != direct.via && d.is_local() && found.binary_search(&direct).is_ok()
}

/// When each version of each component is computed.
pub(super) struct Writers {
    stages: i64,
    /// The stages of a step that update each component.
    of: Vec<Vec<i64>>,
}

impl Writers {
    pub(super) fn new(scheme: &Scheme) -> Writers {
        let mut of = vec![Vec::new(); scheme.components.len()];
        for (k, stage) in scheme.stages.iter().enumerate() {
            for update in &stage.updates {
                of[update.target.index()].push(k as i64);
            }
        }
        Writers {
            stages: scheme.stages.len() as i64,
            of,
        }
    }

    /// The time index of the event that computes a version (the first of step 0 is 1; older ones come before time index
    /// 0, as if there had been steps before); `None` if no stage updates the component.
    pub(super) fn time(&self, component: ComponentId, version: i64) -> Option<i64> {
        let of = &self.of[component.index()];
        let count = of.len() as i64;
        if count == 0 {
            return None;
        }
        let step = (version - 1).div_euclid(count);
        let nth = (version - 1).rem_euclid(count);
        Some(step * self.stages + of[nth as usize])
    }

    /// The inverse of [`Writers::time`]: the version of a component that the event at time index `time` computes.
    pub(super) fn version(&self, component: ComponentId, time: i64) -> i64 {
        let of = &self.of[component.index()];
        let stage = time.rem_euclid(self.stages);
        let nth = of.iter().take_while(|&&k| k < stage).count() as i64;
        time.div_euclid(self.stages) * of.len() as i64 + nth + 1
    }

    fn site(&self, component: ComponentId, time: i64) -> Site {
        Site {
            stage: StageId(time.rem_euclid(self.stages) as u32),
            component,
        }
    }
}

/// Flow and anti-dependences of one update.
fn from_reads(
    scheme: &Scheme,
    writers: &Writers,
    stage: StageId,
    update: &Update,
    found: &mut Vec<Dependence>,
) {
    let now = i64::from(stage.0);
    let here = writers.site(update.target, now);
    let target = scheme.component(update.target);
    let mut add = |component: ComponentId, age: u8, ways: &[(PerAxis<HalfIndex>, PerAxis<Via>)]| {
        let newest = i64::from(scheme.updates_before(component, stage));
        let version = newest - i64::from(age);
        let time_levels = i64::from(scheme.component(component).time_levels);
        if let Some(time) = writers.time(component, version) {
            found.extend(ways.iter().map(|&(space, via)| Dependence {
                kind: Kind::Flow,
                from: writers.site(component, time),
                to: here,
                stages: now - time,
                space,
                via,
            }));
        }
        if let Some(time) = writers.time(component, version + time_levels)
            && time > now
        {
            found.extend(ways.iter().map(|&(space, via)| Dependence {
                kind: Kind::Anti,
                from: here,
                to: writers.site(component, time),
                stages: time - now,
                space: space.map(|h| -h),
                via,
            }));
        }
    };
    for read in update.reads() {
        let position = scheme.component(read.component).position;
        let ways = ways(&scheme.grid, target.position, position, read.offset);
        add(read.component, read.age, &ways);
    }
    let live = scheme.grid.live(target.position);
    let keeps_states = update.amendments.iter().any(|a| !a.advances.is_empty());
    if update.mask.is_some() || update.region != live || keeps_states {
        // Where the update does not act, its target's old value passes on; and states pass on from one update to the
        // next.
        add(update.target, 0, &[Default::default()]);
    }
}

/// Output dependences: the version that an update computes, and the next one in the same time level.
fn from_time_levels(
    scheme: &Scheme,
    writers: &Writers,
    stage: StageId,
    update: &Update,
    found: &mut Vec<Dependence>,
) {
    let now = i64::from(stage.0);
    let version = i64::from(scheme.updates_before(update.target, stage)) + 1;
    let time_levels = i64::from(scheme.component(update.target).time_levels);
    if let Some(time) = writers.time(update.target, version + time_levels) {
        found.push(Dependence {
            kind: Kind::Output,
            from: writers.site(update.target, now),
            to: writers.site(update.target, time),
            stages: time - now,
            space: PerAxis::default(),
            via: PerAxis::default(),
        });
    }
}

/// The offsets in cells at which a read at `offset` finds its values, itself first: the others are seen through mirrors
/// at ends.
pub fn mirrored_offsets(
    grid: &Grid,
    target: Position,
    source: Position,
    offset: PerAxis<i32>,
) -> impl Iterator<Item = PerAxis<i64>> {
    let ways = ways(grid, target, source, offset).into_iter();
    let within = ways.filter(|(_, via)| Axis::ALL.iter().all(|axis| via[*axis] != Via::Wrap));
    within.map(move |(space, _)| {
        PerAxis::from_fn(|axis| (target[axis].0 - source[axis].0 - space[axis].0) / 2)
    })
}

/// The displacements that a read at `offset` can have, from the value to its reader, directly and through the domain's
/// ends.
fn ways(
    grid: &Grid,
    target: Position,
    source: Position,
    offset: PerAxis<i32>,
) -> Vec<(PerAxis<HalfIndex>, PerAxis<Via>)> {
    let mut ways = vec![(PerAxis::default(), PerAxis::default())];
    for axis in Axis::ALL {
        let along = ways_along(grid, axis, target, source, i64::from(offset[axis]));
        ways = ways
            .iter()
            .flat_map(|way| along.iter().map(move |step| (way, step)))
            .map(|(&(mut space, mut via), &(h, v))| {
                space[axis] = HalfIndex(h);
                via[axis] = v;
                (space, via)
            })
            .collect();
    }
    ways
}

/// The same along one axis, in half cells.
///
/// A target at cell index i sees the index j = i + offset. Beyond the end plane at index P (0 or N), the mirror shows
/// the value at j' = 2 P - j - half; with positions 2 i + t and 2 j' + half, the displacement is 4 (i - P) + 2 offset +
/// t + half.
fn ways_along(
    grid: &Grid,
    axis: Axis,
    target: Position,
    source: Position,
    offset: i64,
) -> Vec<(i64, Via)> {
    let (t, half) = (target[axis].0, source[axis].0);
    let direct = t - half - 2 * offset;
    let mut ways = vec![(direct, Via::Direct)];
    if grid.axes[axis].is_none() {
        return ways;
    }
    let n = grid.cells[axis];
    let targets = grid.live(target)[axis];
    let stored = grid.extent(source)[axis];
    // The targets whose read leaves the extent below and above.
    let below = Interval::new(targets.lo, stored.lo - offset).intersect(targets);
    let above = Interval::new(stored.hi - offset, targets.hi).intersect(targets);
    for (side, plane, leaving) in [(0, 0, below), (1, n, above)] {
        match grid.boundary[axis][side] {
            _ if leaving.is_empty() => {}
            Boundary::Zero => {}
            Boundary::Periodic => {
                let around = plane.saturating_mul(4).saturating_sub(n.saturating_mul(2));
                ways.push((direct.saturating_add(around), Via::Wrap));
            }
            Boundary::Pec | Boundary::Pmc | Boundary::Mirror(_) => {
                let shown = |&i: &i64| stored.contains(2 * plane - (i + offset) - half);
                let vector = |i: i64| 4 * (i - plane) + 2 * offset + t + half;
                let Some(last) = (leaving.lo..leaving.hi).rev().find(shown) else {
                    continue;
                };
                // Reads that reach absurdly far keep the two ends, between which all others lie.
                let spacing = if leaving.len() > MIRRORED {
                    leaving.len()
                } else {
                    1
                };
                let places = (leaving.lo..last).step_by(spacing as usize).chain([last]);
                ways.extend(places.filter(shown).map(|i| (vector(i), Via::Mirror)));
            }
        }
    }
    ways
}

/// How many mirrored vectors of one read are kept.
const MIRRORED: i64 = 256;
