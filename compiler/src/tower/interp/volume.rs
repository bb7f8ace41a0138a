//! Injections of a time block, of points and of volumes.

use crate::injection::{Injection, inject};
use crate::real::Real;
use crate::tower::group::Group;
use crate::tower::points::PointPlan;
use crate::tower::program::VolumeSource;
use std::collections::BTreeMap;

/// The cells of a volume source.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeCells {
    pub source: VolumeSource,
    /// By their places.
    pub cells: BTreeMap<[i64; 3], Injection>,
}

/// What happens to values in a time block besides updates.
pub struct Injected<'a> {
    /// Whose stages are those of the task list.
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

/// Volume sources in a step.
pub(super) struct VolumeAt<'a, T> {
    pub injected: &'a Injected<'a>,
    pub step: u64,
    pub real: std::marker::PhantomData<T>,
}

impl<T: Real> VolumeAt<'_, T> {
    /// What volume sources make of a value, after an update of a component in a stage.
    pub fn add(&self, of: VolumeSource, group: Group, z: i64, mut value: Option<T>) -> Option<T> {
        for volume in self.injected.volumes.iter().filter(|v| v.source == of) {
            if let Some(cell) = volume.cells.get(&[group.x, group.y, z]) {
                let wave = (self.injected.wave)(self.step, cell.wave);
                value = value.map(|value| inject(value, cell.profile, wave));
            }
        }
        value
    }
}
