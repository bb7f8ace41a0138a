//! Injections of a time block, of points and of volumes.

use crate::incident::{CorrectedRows, FarRows};
use crate::injection::{Injection, InjectionSource, inject};
use crate::lattice::Interval;
use crate::real::Real;
use crate::scheme::{ComponentId, StageId};
use crate::tower::group::Group;
use crate::tower::points::PointPlan;
use crate::tower::volume_source::{Adds, VolumeSource};
use std::collections::BTreeMap;

/// The cells of a volume source.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeCells {
    pub source: VolumeSource,
    /// By their places.
    pub cells: BTreeMap<[i64; 3], Injection>,
    /// Indices along the inner axis where it acts in rows near faces across the first two axes only.
    pub hole: Interval,
}

impl VolumeCells {
    /// The cells of a source of a problem.
    pub fn of_source(source: &InjectionSource) -> VolumeCells {
        VolumeCells {
            source: VolumeSource {
                stage: source.stage,
                component: source.component,
                adds: Adds::Product,
            },
            cells: source.cells.iter().map(|c| (c.at.0, *c)).collect(),
            hole: Interval::new(0, 0),
        }
    }

    /// The cells of corrections, whose waves are counted from `first` on.
    pub fn of_corrections(rows: &CorrectedRows, first: u32) -> VolumeCells {
        let cells = rows.places().map(|(at, wave)| {
            let wave = first + wave;
            let profile = 1.0;
            (at.0, Injection { at, profile, wave })
        });
        VolumeCells {
            source: VolumeSource {
                stage: rows.group.stage,
                component: rows.group.component,
                adds: Adds::Correction(FarRows::Various),
            },
            cells: cells.collect(),
            hole: rows.hole,
        }
    }
}

/// Changes and records of values in a time block besides updates.
pub struct Injected<'a> {
    /// Its stages count as in the task list.
    pub points: &'a PointPlan,
    /// In the order of the program's sources.
    pub volumes: &'a [VolumeCells],
    /// The value of a wave in a step of the time block.
    pub wave: &'a dyn Fn(u64, u32) -> f64,
}

/// A value that a receiver has recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recorded<T> {
    /// Of the time block.
    pub step: u64,
    pub receiver: usize,
    pub value: T,
}

/// A value that an update of a stage made.
#[derive(Clone, Copy)]
pub(super) struct VolumeCell {
    pub stage: StageId,
    pub component: ComponentId,
    pub group: Group,
    pub z: i64,
}

/// Which rows are corrected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Corrected {
    /// All cells, also cells near faces across the first two axes.
    All,
    /// Cells with indices outside of the holes of volumes.
    OutsideHoles,
}

/// Volume sources in a step.
pub(super) struct VolumeAt<'a, T> {
    pub injected: &'a Injected<'a>,
    pub step: u64,
    pub real: std::marker::PhantomData<T>,
}

impl<T: Real> VolumeAt<'_, T> {
    /// A value after volume sources have added to it after an update. `copied` gives the wave of a source that was
    /// copied, if the source has one there; `None` for sources that read their waves now.
    pub fn add(
        &self,
        cell: VolumeCell,
        corrected: Corrected,
        mut value: Option<T>,
        copied: impl Fn(usize) -> Option<Option<f64>>,
    ) -> Option<T> {
        let VolumeCell {
            stage,
            component,
            group,
            z,
        } = cell;
        let all = corrected == Corrected::All;
        let volumes = self.injected.volumes.iter().enumerate();
        let acts = |(_, v): &(usize, &VolumeCells)| {
            v.source.is_after(stage, component) && (all || !v.hole.contains(z))
        };
        for (number, volume) in volumes.filter(acts) {
            if let Some(wave) = copied(number) {
                value = match wave {
                    Some(wave) => value.map(|value| inject(value, 1.0, wave)),
                    None => value,
                };
                continue;
            }
            if let Some(cell) = volume.cells.get(&[group.x, group.y, z]) {
                let wave = (self.injected.wave)(self.step, cell.wave);
                value = value.map(|value| inject(value, cell.profile, wave));
            }
        }
        value
    }
}
