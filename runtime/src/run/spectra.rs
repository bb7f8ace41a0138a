//! Spectra: sums of `value * exp(2 pi i f t)` over time, for each value of an output and each frequency.
//!
//! A value is in its sums in the order of its steps, in double precision, so sums have the same bits for every schedule,
//! back end and number of threads, and after a checkpoint. The time is that of the value: components half a step later
//! have phases of their own. Phases are those of the fraction of `f t`, so late ones are as exact as early ones.

use super::fields::{FieldRows, StateRows};
use super::pictures::{part_of, plane_shape};
use crate::host::receivers::Picture;
use crate::output::array;
use crate::simulation::{Simulation, Value};
use std::cell::{Ref, RefCell};
use std::f64::consts::TAU;
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use torre_compiler::problem::{Output, Problem};
use torre_compiler::real::Real;
use torre_compiler::scheme::Scheme;
use torre_compiler::statics::physical_time;

/// Places whose sums stay in a core's cache while all samples are added.
const BLOCK: usize = 1024;
/// Products for which another thread is worth its start.
const LEAST_OF_A_THREAD: usize = 1 << 17;

/// The spectra of a run.
#[derive(Debug)]
pub struct Spectra {
    sums: RefCell<Vec<Sums>>,
}

/// The sums of one output.
#[derive(Debug)]
struct Sums {
    /// Its number in the problem.
    output: usize,
    /// Samples that are in the sums.
    samples: u64,
    /// Its places.
    places: usize,
    /// For each frequency the sums of all places with cosines, and then with sines.
    rows: Vec<f64>,
}

/// The values of an output after one step.
struct Sample {
    /// Cosine and sine for each frequency.
    phases: Vec<f64>,
    values: Vec<f64>,
}

/// Sums of one output, for its file.
pub struct Spectrum<'a> {
    sums: Ref<'a, [f64]>,
    /// Frequencies, then values per axis.
    pub shape: Vec<usize>,
    /// The time between samples.
    interval: f64,
}

impl Spectra {
    /// Whether a problem has any.
    pub fn has(problem: &Problem) -> bool {
        problem.spectra().next().is_some()
    }

    /// Bytes of all sums.
    pub fn bytes(problem: &Problem) -> u64 {
        let sizes = problem.spectra().map(|(_, output, spectrum)| {
            let values = output.region.volume();
            values.saturating_mul(16 * spectrum.frequencies.len() as u64)
        });
        sizes.fold(0, u64::saturating_add)
    }

    /// Empty sums, or the sums after `step` steps before a run goes on.
    pub fn new(problem: &Problem, before: Option<(u64, Vec<Vec<f64>>)>) -> Self {
        let (step, rows) = before.map_or((0, None), |(step, rows)| (step, Some(rows)));
        let mut rows = rows.map(Vec::into_iter);
        let sums = problem.spectra().map(|(number, output, spectrum)| {
            let places = output.region.volume() as usize;
            let before = rows.as_mut().and_then(Iterator::next);
            Sums {
                output: number,
                samples: step / output.every,
                places,
                rows: before.unwrap_or_else(|| vec![0.0; 2 * spectrum.frequencies.len() * places]),
            }
        });
        Self {
            sums: RefCell::new(sums.collect()),
        }
    }

    /// The sums of each spectrum, as [`Self::new`] takes them.
    pub fn kept(&self) -> Vec<Vec<f64>> {
        let sums = self.sums.borrow();
        sums.iter().map(|sums| sums.rows.clone()).collect()
    }

    /// The lengths of these lists.
    pub fn lengths(problem: &Problem) -> impl Iterator<Item = usize> + '_ {
        problem.spectra().map(|(_, output, spectrum)| {
            2 * spectrum.frequencies.len() * output.region.volume() as usize
        })
    }

    /// Adds the values that are due after the steps since the last call: pictures, and what is taken from the values
    /// after the current step.
    #[inline(never)]
    pub fn take<T: Value>(
        &self,
        simulation: &dyn Simulation<T>,
        pictures: &[Picture],
        threads: usize,
    ) {
        let (scheme, step) = (simulation.scheme(), simulation.steps());
        let problem = simulation.problem();
        for sums in self.sums.borrow_mut().iter_mut() {
            let output = &problem.outputs[sums.output];
            let mut samples: Vec<Sample> = Vec::new();
            let mut add = |step: u64, values: Vec<f64>| {
                // After a pause for something else it may be there.
                if step / output.every > sums.samples {
                    sums.samples += 1;
                    let phases = phases(scheme, output, step);
                    samples.push(Sample { phases, values });
                }
            };
            if !output.needs_values() {
                let own = pictures.iter().filter(|p| p.output == sums.output);
                own.for_each(|picture| add(picture.step, part_of(scheme, output, picture)));
            } else if step > 0 && step.is_multiple_of(output.every) {
                add(step, values(simulation, output));
            }
            sums.add(&samples, threads);
        }
    }

    /// The spectrum of an output, by its number.
    pub fn of(&self, scheme: &Scheme, problem: &Problem, output: usize) -> Option<Spectrum<'_>> {
        let sums = self.sums.borrow();
        let index = sums.iter().position(|sums| sums.output == output)?;
        let output = &problem.outputs[output];
        let mut shape = vec![output.spectrum.as_ref()?.frequencies.len()];
        shape.extend(plane_shape(scheme, output.kind, output.region));
        Some(Spectrum {
            sums: Ref::map(sums, |sums| sums[index].rows.as_slice()),
            shape,
            interval: output.every as f64 * scheme.grid.dt,
        })
    }
}

impl Spectrum<'_> {
    /// Its values at the frequency of a number, real and imaginary parts in turns.
    pub fn at(&self, frequency: usize) -> impl Iterator<Item = [f64; 2]> + '_ {
        let places = self.sums.len() / (2 * self.shape[0]);
        let rows = &self.sums[2 * frequency * places..][..2 * places];
        let (cosines, sines) = rows.split_at(places);
        let interval = self.interval;
        let parts = cosines.iter().zip(sines);
        parts.map(move |(re, im)| [re * interval, im * interval])
    }
}

impl Sums {
    /// Adds samples in their order; threads take rows.
    fn add(&mut self, samples: &[Sample], threads: usize) {
        let places = self.places;
        if samples.is_empty() || self.rows.is_empty() {
            return;
        }
        let products = self.rows.len().saturating_mul(samples.len());
        let threads = threads.min(products / LEAST_OF_A_THREAD).max(1);
        let each = (self.rows.len() / places).div_ceil(threads);
        let parts = Mutex::new(self.rows.chunks_mut(each * places).enumerate());
        let work = || {
            let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
            while let Some((part, rows)) = next() {
                add_to(rows, part * each, samples, places);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // Threads that cannot be started leave their rows to the others.
                let _ = Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
    }
}

/// Adds samples to rows of sums, of which the first one has the number `first`.
fn add_to(rows: &mut [f64], first: usize, samples: &[Sample], places: usize) {
    for start in (0..places).step_by(BLOCK) {
        let block = start..(start + BLOCK).min(places);
        for (number, row) in rows.chunks_mut(places).enumerate() {
            let sums = &mut row[block.clone()];
            for sample in samples {
                let phase = sample.phases[first + number];
                for (sum, value) in sums.iter_mut().zip(&sample.values[block.clone()]) {
                    *sum += value * phase;
                }
            }
        }
    }
}

/// The values of an output after the current step.
fn values<T: Value>(simulation: &dyn Simulation<T>, output: &Output) -> Vec<f64> {
    let values = match output.state {
        Some(state) => array::collect(&StateRows::within(simulation, state, output.region)),
        None => {
            let rows = FieldRows::within(simulation, output.component, 0, output.region);
            array::collect(&rows)
        }
    };
    values.into_iter().map(Real::to_f64).collect()
}

/// Cosine and sine for each frequency of an output after a step.
fn phases(scheme: &Scheme, output: &Output, step: u64) -> Vec<f64> {
    let time = physical_time(scheme, output.component, step as i64);
    let frequencies = output.spectrum.iter().flat_map(|s| &s.frequencies);
    let phases = frequencies.flat_map(|frequency| {
        let cycles = frequency * time;
        let (sine, cosine) = (TAU * (cycles - cycles.round())).sin_cos();
        [cosine, sine]
    });
    phases.collect()
}
