//! Runs by the reference: the meaning of the language, one cell at a time.

use crate::simulation::guard::irregular;
use crate::simulation::{
    BlowUp, Picture, Progress, RunError, Simulation, Value, cell_stages_per_step, next_output,
    slice_shape,
};
use std::sync::atomic::Ordering;
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::problem::{OutputKind, Problem};
use torre_compiler::real::Real;
use torre_compiler::reference::{Reference, for_each_index};
use torre_compiler::scheme::{ComponentId, Scheme, StateId};
use torre_compiler::statics::Files;

/// The reference as an executor of a run.
pub struct Literal<'a, T> {
    scheme: &'a Scheme,
    problem: &'a Problem,
    reference: Reference<'a, T>,
    pictures: Vec<Picture>,
}

impl<'a, T: Value> Literal<'a, T> {
    #[inline(never)]
    pub fn new(scheme: &'a Scheme, problem: &'a Problem, files: &'a dyn Files) -> Self {
        Self {
            scheme,
            problem,
            reference: Reference::new(scheme, problem, files),
            pictures: Vec::new(),
        }
    }

    /// The bytes that the reference takes for a scheme.
    pub fn bytes(scheme: &Scheme) -> u64 {
        let values = scheme.component_ids().map(|id| {
            let time_levels = u64::from(scheme.component(id).time_levels);
            // One more for the values of a stage that are not stored yet, with their indices.
            let each = time_levels * size_of::<T>() as u64 + 32;
            scheme.extent(id).volume().saturating_mul(each)
        });
        let coefs = scheme.coefs.iter().map(|coef| {
            let volume = scheme.grid.extent(coef.position).volume();
            volume.saturating_mul(size_of::<T>() as u64)
        });
        let states = scheme.states.iter().map(|state| {
            let volume = scheme.grid.extent(state.position).volume();
            volume.saturating_mul(size_of::<T>() as u64)
        });
        values
            .chain(coefs)
            .chain(states)
            .fold(0, u64::saturating_add)
    }
}

impl<T: Value> Simulation<T> for Literal<'_, T> {
    fn scheme(&self) -> &Scheme {
        self.scheme
    }

    fn problem(&self) -> &Problem {
        self.problem
    }

    fn steps(&self) -> u64 {
        self.reference.steps()
    }

    #[inline(never)]
    fn next_pause(&self) -> u64 {
        next_output(self.problem, self.steps())
    }

    #[inline(never)]
    fn run(&mut self, until: u64, progress: &Progress) -> Result<(), RunError> {
        let cells = cell_stages_per_step(self.scheme);
        while self.reference.steps() < until {
            self.reference.step();
            self.record();
            progress.done.fetch_add(cells, Ordering::Relaxed);
            if progress.guard.looks() {
                self.look()
                    .map_or(Ok(()), |found| Err(RunError::BlowUp(found)))?;
            }
        }
        Ok(())
    }

    fn row(&self, id: ComponentId, age: u8, x: i64, y: i64) -> &[T] {
        let extent = self.scheme.extent(id);
        let length = extent[Axis::INNER].hi as usize;
        let start = (x * extent[Axis::MIDDLE].hi + y) as usize * length;
        &self.reference.aged_values(id, age)[start..start + length]
    }

    fn state(&self, id: StateId, at: PerAxis<i64>) -> T {
        let position = self.scheme.states[id.index()].position;
        let [_, ny, nz] = self.scheme.grid.extent(position).map(|i| i.hi).0;
        let [x, y, z] = at.0;
        self.reference.state_values(id)[((x * ny + y) * nz + z) as usize]
    }

    #[inline(never)]
    fn probe(&self, index: usize) -> Vec<f64> {
        let record = self.reference.probe(index).iter();
        record.map(|v| Real::to_f64(*v)).collect()
    }

    #[inline(never)]
    fn take_pictures(&mut self) -> Vec<Picture> {
        std::mem::take(&mut self.pictures)
    }
}

impl<T: Value> Literal<'_, T> {
    /// The first value that is not regular.
    fn look(&self) -> Option<BlowUp> {
        self.scheme.component_ids().find_map(|id| {
            let values = self.reference.values(id);
            let index = irregular(values)? as i64;
            let extent = self.scheme.extent(id).map(|i| i.hi);
            let [_, ny, nz] = extent.0;
            let at = PerAxis([index / (ny * nz), index / nz % ny, index % nz]);
            let value = Real::to_f64(values[index as usize]);
            Some(BlowUp::new(
                self.scheme,
                id,
                at,
                self.reference.steps(),
                value,
            ))
        })
    }

    /// Takes the pictures that are due after the current step.
    fn record(&mut self) {
        let step = self.reference.steps();
        for (output, o) in self.problem.outputs.iter().enumerate() {
            let OutputKind::Slice { axis, index } = o.kind else {
                continue;
            };
            if o.state.is_some() || !step.is_multiple_of(o.every) {
                continue;
            }
            let mut region = self.scheme.extent(o.component);
            region[axis] = Interval::new(index, index + 1);
            let mut values = Vec::with_capacity(region.volume() as usize);
            for_each_index(region, |at| {
                values.push(Real::to_f64(self.reference.value(o.component, at)));
            });
            self.pictures.push(Picture {
                output,
                step,
                shape: slice_shape(self.scheme, o.component, axis),
                values,
            });
        }
    }
}
