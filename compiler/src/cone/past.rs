//! The past of a value: everything that it was computed from.

use super::vectors::Writers;
use super::{Cones, Kind, Site, Via};
use crate::lattice::{HalfIndex, PerAxis};
use crate::scheme::{ComponentId, Scheme, StageId};
use std::collections::{BTreeMap, BTreeSet};

/// An update at one place, relative to the value whose past is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Event {
    /// Time index: stage + stages per step * step, counted from the start.
    pub time: i64,
    pub component: ComponentId,
    /// From the place of the value.
    pub space: PerAxis<HalfIndex>,
}

/// A value at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Initial {
    pub component: ComponentId,
    /// 0: the newest version at the start, 1: the one before it, ...
    pub age: i64,
    /// From the place of the value.
    pub space: PerAxis<HalfIndex>,
}

/// The past of a value, back to the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// The event that computed the value, and all that it was computed from, in ascending order.
    pub events: Vec<Event>,
    /// The initial values that it was computed from.
    pub initial: Vec<Initial>,
}

/// The past of the newest value of `component` after `steps` steps, far from the ends of the domain.
///
/// Components that no stage updates have no events, and their values are left out.
pub fn past(scheme: &Scheme, cones: &Cones, component: ComponentId, steps: u32) -> Past {
    let writers = Writers::new(scheme);
    let updates = i64::from(scheme.updates_per_step(component));
    let mut into: BTreeMap<Site, Vec<_>> = BTreeMap::new();
    for d in &cones.dependences {
        if d.kind == Kind::Flow && d.via == PerAxis::splat(Via::Direct) {
            into.entry(d.to).or_default().push(d);
        }
    }
    let stages = i64::from(cones.stages.max(1));
    let mut initial = BTreeSet::new();
    let mut events = BTreeSet::new();
    let space = PerAxis::default();
    match writers.time(component, updates * i64::from(steps)) {
        Some(time) if time >= 0 => {
            events.insert(Event {
                time,
                component,
                space,
            });
        }
        _ => {
            initial.insert(Initial {
                component,
                age: 0,
                space,
            });
        }
    }
    let mut done = Vec::new();
    // Dependences lead to earlier events only, so the latest one is complete.
    while let Some(event) = events.pop_last() {
        done.push(event);
        let site = Site {
            stage: StageId(event.time.rem_euclid(stages) as u32),
            component: event.component,
        };
        for d in into.get(&site).into_iter().flatten() {
            let time = event.time - d.stages;
            let component = d.from.component;
            let space = PerAxis::from_fn(|a| event.space[a] - d.space[a]);
            if time >= 0 {
                events.insert(Event {
                    time,
                    component,
                    space,
                });
            } else {
                initial.insert(Initial {
                    component,
                    age: -writers.version(component, time),
                    space,
                });
            }
        }
    }
    done.reverse();
    Past {
        events: done,
        initial: initial.into_iter().collect(),
    }
}
