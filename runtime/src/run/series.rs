//! Reductions and states over time: taken from the values of a simulation at pauses.
//!
//! A pause after each recorded step costs as much as a volume: time blocks end there, and a GPU brings the values that
//! are read to the host.

use super::fields::state_value;
use crate::host::threads;
use crate::simulation::{Part, PartOf, Simulation, Value, Values};
use std::cell::RefCell;
use torre_compiler::lattice::{Interval, PerAxis};
use torre_compiler::problem::{Problem, Series, SeriesTerm};
use torre_compiler::real::Real;
use torre_compiler::scheme::{ComponentId, Op, Read, Scheme};
use torre_compiler::series::{Partial, RowValues, plane, planes, total};
use torre_compiler::statics::Files;

/// The records of a run.
pub struct SeriesRecords<'a> {
    files: &'a dyn Files,
    /// Series of the problem.
    series: usize,
    /// Per series of the problem, and then per probe of a state, one value for each step after which it was due.
    values: RefCell<Vec<Vec<f64>>>,
}

/// The rows of a simulation.
struct Rows<'a, T>(&'a dyn Simulation<T>);

impl<T: Value> RowValues for Rows<'_, T> {
    fn copy_row(&self, id: ComponentId, age: u8, x: i64, y: i64, to: &mut Vec<f64>) {
        to.clear();
        let row = self.0.row(id, age, x, y);
        to.extend(row.iter().map(|value| Real::to_f64(*value)));
    }
}

/// The number of series that are recorded.
fn number(problem: &Problem) -> usize {
    problem.series.len() + problem.state_probes.len()
}

impl<'a> SeriesRecords<'a> {
    /// Whether a problem has anything to record here.
    pub fn has(problem: &Problem) -> bool {
        number(problem) > 0
    }

    /// Empty records, or the records of the steps before a run goes on.
    pub fn new(problem: &Problem, files: &'a dyn Files, before: Option<Vec<Vec<f64>>>) -> Self {
        let values = before.unwrap_or_else(|| vec![Vec::new(); number(problem)]);
        Self {
            files,
            series: problem.series.len(),
            values: RefCell::new(values),
        }
    }

    /// The record of a series: value i is the value after step `(i + 1) * every`.
    pub fn of(&self, index: usize) -> Vec<f64> {
        self.values.borrow()[index].clone()
    }

    /// The same for a probe of a state.
    pub fn of_state(&self, index: usize) -> Vec<f64> {
        let values = self.values.borrow();
        values[self.series + index].clone()
    }

    /// Records the values that are due after the current step.
    #[inline(never)]
    pub fn take<T: Value>(&self, simulation: &dyn Simulation<T>, threads: usize) {
        let step = simulation.steps();
        // After a pause for something else it may be there.
        let due = |values: &Vec<f64>, every: u64| {
            step.is_multiple_of(every) && (values.len() as u64) < step / every
        };
        let problem = simulation.problem();
        let mut values = self.values.borrow_mut();
        let (series, states) = values.split_at_mut(self.series);
        for (series, values) in problem.series.iter().zip(series) {
            if due(values, series.every) {
                values.push(reduce(simulation, self.files, series, threads));
            }
        }
        for (probe, values) in problem.state_probes.iter().zip(states) {
            if due(values, probe.every) {
                values.push(Real::to_f64(state_value(simulation, probe.state, probe.at)));
            }
        }
    }
}

/// After multiples of how many steps something is recorded.
fn intervals(problem: &Problem) -> impl Iterator<Item = u64> + '_ {
    let states = problem.state_probes.iter().map(|p| p.every);
    problem.series.iter().map(|s| s.every).chain(states)
}

/// The values from which something is recorded after a step.
pub fn values_due(scheme: &Scheme, problem: &Problem, step: u64) -> Values {
    let due = |every: u64| step > 0 && step.is_multiple_of(every);
    let series = problem.series.iter().filter(|series| due(series.every));
    let terms = series.flat_map(|series| &series.terms);
    let reduced = terms.map(|term| term_values(scheme, term));
    let states = problem.state_probes.iter().filter(|p| due(p.every));
    let states = states.map(|probe| Part {
        of: PartOf::State(probe.state),
        region: probe.at.map(|i| Interval::new(i, i + 1)),
    });
    reduced.fold(Values::Parts(states.collect()), Values::and)
}

/// The values that a term reads: boxes, if all of them are newest ones within the domain.
fn term_values(scheme: &Scheme, term: &SeriesTerm) -> Values {
    let part = |read: &Read| {
        let extent = scheme.extent(read.component);
        let region = PerAxis::from_fn(|axis| {
            let by = i64::from(read.offset[axis]);
            let Interval { lo, hi } = term.region[axis];
            Interval::new(lo + by, hi + by)
        });
        let inside = read.age == 0 && region.intersect(extent) == region;
        let of = PartOf::Newest(read.component);
        inside.then_some(Part { of, region })
    };
    let reads = term.body.ops.iter().filter_map(|op| match op {
        Op::Read(read) => Some(part(read)),
        _ => None,
    });
    let parts: Option<Vec<Part>> = reads.collect();
    parts.map_or(Values::All, Values::Parts)
}

/// The next step behind `steps` after which something is recorded.
pub fn next(problem: &Problem, steps: u64) -> u64 {
    let next = |every: u64| (steps / every + 1).saturating_mul(every);
    intervals(problem).map(next).min().unwrap_or(u64::MAX)
}

/// Planes in parallel, added up in their order.
fn reduce<T: Value>(
    simulation: &dyn Simulation<T>,
    files: &dyn Files,
    series: &Series,
    threads: usize,
) -> f64 {
    let (scheme, step) = (simulation.scheme(), simulation.steps());
    let range = planes(series);
    let count = range.len().max(0);
    let number = (threads.max(1) as i64).min(count.max(1));
    let shares: Vec<[i64; 2]> = (0..number)
        .map(|n| [n, n + 1].map(|n| range.lo + count * n / number))
        .collect();
    let parts = threads::map(&shares, |[from, to]| {
        let rows = Rows(simulation);
        let one = |x| plane(scheme, files, series, &rows, step, x);
        (*from..*to).map(one).collect::<Vec<Partial>>()
    });
    total(series, parts.into_iter().flatten())
}
