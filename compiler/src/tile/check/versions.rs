//! Which version of which value is where and when, by the scheme alone.

use super::fault::Event;
use crate::kernel::row_region;
use crate::lattice::{Axis, PerAxis, Region};
use crate::scheme::{ComponentId, Located, Scheme, StageId};

/// The updates that compute the versions of each component.
pub(super) struct Versions {
    stages: i64,
    components: Vec<Writers>,
}

struct Writers {
    time_levels: i64,
    /// The updates of a step, in the order of stages.
    updates: Vec<Writer>,
    /// Per stage, how many of them come before it.
    before: Vec<i64>,
}

struct Writer {
    stage: StageId,
    update: usize,
    region: Region,
}

impl Versions {
    pub(super) fn new(scheme: &Scheme) -> Versions {
        let components = scheme
            .component_ids()
            .map(|id| {
                let mut updates = Vec::new();
                for stage in scheme.stage_ids() {
                    let all = scheme.stages[stage.index()].updates.iter().enumerate();
                    updates.extend(
                        all.filter(|(_, u)| u.target == id)
                            .map(|(update, u)| Writer {
                                stage,
                                update,
                                region: row_region(scheme, u),
                            }),
                    );
                }
                Writers {
                    time_levels: i64::from(scheme.component(id).time_levels),
                    updates,
                    before: scheme
                        .stage_ids()
                        .map(|s| i64::from(scheme.updates_before(id, s)))
                        .collect(),
                }
            })
            .collect();
        Versions {
            stages: scheme.stages.len() as i64,
            components,
        }
    }

    /// The newest version of a component when a stage starts.
    pub(super) fn newest(&self, id: ComponentId, number: i64) -> i64 {
        let own = &self.components[id.index()];
        let (step, stage) = (number / self.stages, number % self.stages);
        step * own.updates.len() as i64 + own.before[stage as usize]
    }

    /// The newest version of a component after some steps.
    pub(super) fn last(&self, id: ComponentId, steps: i64) -> i64 {
        steps * self.components[id.index()].updates.len() as i64
    }

    /// The time level that holds a version.
    pub(super) fn time_level(&self, id: ComponentId, version: i64) -> usize {
        version.rem_euclid(self.components[id.index()].time_levels) as usize
    }

    /// Where `version` of a component is asked for: the version of the update that acted last at this place.
    pub(super) fn acted(&self, id: ComponentId, version: i64, at: PerAxis<i64>) -> i64 {
        let own = &self.components[id.index()];
        if version <= 0 {
            return version;
        }
        let count = own.updates.len() as i64;
        let oldest = (version - count + 1).max(1);
        // Only components with one time level are updated in a part of the grid.
        let oldest = if own.time_levels > 1 { version } else { oldest };
        let found = (oldest..=version)
            .rev()
            .find(|v| own.updates[((v - 1) % count) as usize].region.contains(at));
        found.unwrap_or(-(-version).rem_euclid(own.time_levels))
    }

    /// The event that computes a version; `None` for initial ones.
    pub(super) fn event(&self, id: ComponentId, version: i64, at: PerAxis<i64>) -> Option<Event> {
        let own = &self.components[id.index()];
        let count = own.updates.len() as i64;
        if version <= 0 || count == 0 {
            return None;
        }
        let writer = &own.updates[((version - 1) % count) as usize];
        Some(Event {
            number: (version - 1) / count * self.stages + i64::from(writer.stage.0),
            stage: writer.stage,
            update: writer.update,
            at,
        })
    }
}

/// Where a value that is read lies in memory, and whether it is 0 by the boundary; `None` where no row ever goes.
pub(super) fn source(
    scheme: &Scheme,
    id: ComponentId,
    at: PerAxis<i64>,
) -> Option<(PerAxis<i64>, bool)> {
    let position = scheme.component(id).position;
    let grid = &scheme.grid;
    if let Located::Stored { at, .. } = grid.resolve(position, at) {
        return Some((at, false));
    }
    let (live, extent) = (grid.live(position), grid.extent(position));
    if at[Axis::INNER] != 0 || live[Axis::INNER].lo == 0 || extent[Axis::INNER].hi < 2 {
        return None;
    }
    // The plane beside the first free values; along the other axes it is mirrored as these are.
    let mut beside = at;
    beside[Axis::INNER] = live[Axis::INNER].lo;
    match grid.resolve(position, beside) {
        Located::Stored { mut at, .. } => {
            at[Axis::INNER] = 0;
            Some((at, true))
        }
        Located::Zero => None,
    }
}
