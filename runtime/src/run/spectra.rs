//! Spectra: sums of `value * exp(2 pi i f t)` over time, for each value of an output and each frequency.
//!
//! A value is in its sums in the order of its steps, in double precision, so sums have the same bits for every
//! schedule, back end and number of threads, and after a checkpoint. The time is that of the value: components half a
//! step later have phases of their own.

use super::fields::{FieldRows, StateRows};
use super::pictures::{part_of, plane_shape};
use crate::output::array;
use crate::simulation::{Picture, Simulation, Value};
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
/// Samples that are added together.
const AT_ONCE: usize = 32;
/// Sums for which another thread is worth its start.
const LEAST_OF_A_THREAD: usize = 1 << 14;

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

/// The values of an output after some steps.
#[derive(Default)]
struct Samples {
    steps: Vec<u64>,
    /// One list for each step.
    values: Vec<Vec<f64>>,
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

    /// Bytes of the samples that are added together, and of their phases, at the most; `waiting`: of the pictures that
    /// wait for a pause.
    pub fn bytes_of_samples(problem: &Problem, waiting: u64) -> u64 {
        let sizes = problem.spectra().map(|(_, output, spectrum)| {
            let values = output.region.volume().saturating_mul(8);
            // A box is taken at a pause, in the precision of the fields at first.
            let (most, each) = match output.needs_values() {
                true => (1, values.saturating_mul(2)),
                false => (waiting / values.max(1) + 1, values),
            };
            let samples = most
                .min(AT_ONCE as u64)
                .min(problem.steps / output.every + 1);
            let phases = 16 * spectrum.frequencies.len() as u64;
            samples.saturating_mul(each.saturating_add(phases))
        });
        sizes.max().unwrap_or(0)
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
        let spectra = problem.spectra().zip(Self::lengths(problem));
        let sums = spectra.map(|((number, output, _), length)| {
            let places = output.region.volume() as usize;
            let before = rows.as_mut().and_then(Iterator::next);
            Sums {
                output: number,
                samples: step / output.every,
                places,
                rows: before.unwrap_or_else(|| vec![0.0; length]),
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
            let number = sums.output;
            let output = &problem.outputs[number];
            let mut samples = Samples::default();
            // After a pause for something else it may be there.
            let is_new = |sums: &Sums, step: u64| step / output.every > sums.samples;
            if !output.needs_values() {
                for picture in pictures.iter().filter(|p| p.output == number) {
                    if is_new(sums, picture.step) {
                        samples.push(picture.step, part_of(scheme, output, picture));
                        sums.samples += 1;
                    }
                    if samples.steps.len() == AT_ONCE {
                        sums.add(scheme, output, &mut samples, threads);
                    }
                }
            } else if step > 0 && step.is_multiple_of(output.every) && is_new(sums, step) {
                samples.push(step, values(simulation, output));
                sums.samples += 1;
            }
            sums.add(scheme, output, &mut samples, threads);
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
    /// Its values at the frequency of a number, each with its real and its imaginary part.
    pub fn at(&self, frequency: usize) -> impl Iterator<Item = [f64; 2]> + '_ {
        let places = self.sums.len() / (2 * self.shape[0]);
        let rows = &self.sums[2 * frequency * places..][..2 * places];
        let (cosines, sines) = rows.split_at(places);
        let interval = self.interval;
        let parts = cosines.iter().zip(sines);
        parts.map(move |(re, im)| [re * interval, im * interval])
    }
}

impl Samples {
    fn push(&mut self, step: u64, values: Vec<f64>) {
        self.steps.push(step);
        self.values.push(values);
    }
}

impl Sums {
    /// Adds samples in their order, and leaves none.
    fn add(&mut self, scheme: &Scheme, output: &Output, samples: &mut Samples, threads: usize) {
        let Samples { steps, values } = std::mem::take(samples);
        let Some(spectrum) = output.spectrum.as_ref().filter(|_| !steps.is_empty()) else {
            return;
        };
        let times = steps.iter().map(|step| *step as i64);
        let times: Vec<f64> = times
            .map(|step| physical_time(scheme, output.component, step))
            .collect();
        let (places, count) = (self.places, times.len());
        // For each frequency the cosines of all samples, and then the sines.
        let mut phases = vec![0.0; 2 * spectrum.frequencies.len() * count];
        share(&mut phases, 2 * count, threads, |first, phases| {
            let frequencies = &spectrum.frequencies[first..];
            for (phases, frequency) in phases.chunks_mut(2 * count).zip(frequencies) {
                let (cosines, sines) = phases.split_at_mut(count);
                for (i, time) in times.iter().enumerate() {
                    (sines[i], cosines[i]) = angle(*frequency, *time).sin_cos();
                }
            }
        });
        share(&mut self.rows, places, threads, |first, rows| {
            for start in (0..places).step_by(BLOCK) {
                let block = start..(start + BLOCK).min(places);
                for (number, row) in rows.chunks_mut(places).enumerate() {
                    let sums = &mut row[block.clone()];
                    let phases = &phases[(first + number) * count..][..count];
                    for (values, phase) in values.iter().zip(phases) {
                        for (sum, value) in sums.iter_mut().zip(&values[block.clone()]) {
                            *sum += value * phase;
                        }
                    }
                }
            }
        });
    }
}

/// Gives threads parts of a list, in groups of `each` elements; the work gets the number of its first group.
fn share(list: &mut [f64], each: usize, threads: usize, work: impl Fn(usize, &mut [f64]) + Sync) {
    if list.is_empty() {
        return;
    }
    let groups = list.len() / each;
    let threads = threads.min(list.len() / LEAST_OF_A_THREAD).max(1);
    let of_a_thread = groups.div_ceil(threads);
    let parts = Mutex::new(list.chunks_mut(of_a_thread * each).enumerate());
    let one = || {
        let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((part, list)) = next() {
            work(part * of_a_thread, list);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // Threads that cannot be started leave their parts to the others.
            let _ = Builder::new().spawn_scoped(scope, one);
        }
        one();
    });
}

/// The phase of a frequency at a time. Whole cycles are left out, so that late phases lose no more than the rounding of
/// their cycles, 1e-16 of them.
fn angle(frequency: f64, time: f64) -> f64 {
    let cycles = frequency * time;
    TAU * (cycles - cycles.round())
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
