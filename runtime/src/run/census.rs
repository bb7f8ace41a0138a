//! How many values of the fields are finite numbers, counted at the end of a run.

use crate::simulation::{BlowUp, Simulation, Value};
use std::ops::Range;
use torre_compiler::lattice::{Axis, PerAxis};
use torre_compiler::real::Real;
use torre_compiler::scheme::ComponentId;

/// The values of a component after the last step, over its extent.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    pub component: String,
    pub values: u64,
    pub nan: u64,
    pub infinite: u64,
    /// The largest absolute value of the finite values; 0 if there are none.
    pub largest: f64,
    /// The first value that is not finite, in the order of indices.
    pub first: Option<BlowUp>,
}

/// The counts of one thread.
#[derive(Default)]
struct Part {
    nan: u64,
    infinite: u64,
    largest: f64,
    first: Option<(PerAxis<i64>, f64)>,
}

/// Counts the newest values of all components on some threads.
#[inline(never)]
pub fn census<T: Value>(simulation: &dyn Simulation<T>, threads: usize) -> Vec<Count> {
    let components = simulation.scheme().component_ids();
    components
        .map(|id| count(simulation, id, threads))
        .collect()
}

fn count<T: Value>(simulation: &dyn Simulation<T>, id: ComponentId, threads: usize) -> Count {
    let scheme = simulation.scheme();
    let extent = scheme.extent(id);
    let middle = extent[Axis::MIDDLE].hi;
    let rows = extent[Axis::OUTER].hi * middle;
    // Threads that cannot be started leave their rows to this one.
    let threads = (threads.max(1) as i64).min(rows.max(1));
    let share = |n: i64| rows * n / threads..rows * (n + 1) / threads;
    let part = |rows: Range<i64>| {
        let mut part = Part::default();
        for row in rows {
            let (x, y) = (row / middle, row % middle);
            part.add(simulation.row(id, 0, x, y), x, y);
        }
        part
    };
    let parts: Vec<Part> = std::thread::scope(|scope| {
        let start = |n| {
            let started = std::thread::Builder::new().spawn_scoped(scope, move || part(share(n)));
            (n, started.ok())
        };
        let others: Vec<_> = (1..threads).map(start).collect();
        let first = part(share(0));
        let others = others.into_iter().map(|(n, thread)| {
            let counted = thread.and_then(|thread| thread.join().ok());
            counted.unwrap_or_else(|| part(share(n)))
        });
        std::iter::once(first).chain(others).collect()
    });
    let sum = |of: fn(&Part) -> u64| parts.iter().map(of).sum();
    let first = parts.iter().find_map(|part| part.first);
    Count {
        component: scheme.component(id).name.clone(),
        values: extent.volume(),
        nan: sum(|part| part.nan),
        infinite: sum(|part| part.infinite),
        largest: parts.iter().map(|part| part.largest).fold(0.0, f64::max),
        first: first.map(|(at, value)| BlowUp::new(scheme, id, at, simulation.steps(), value)),
    }
}

impl Part {
    fn add<T: Value>(&mut self, row: &[T], x: i64, y: i64) {
        // Without an early end, so that it becomes vector instructions. NaN is no larger than anything.
        let largest = |most: f64, v: &T| {
            let size = Real::to_f64(*v).abs();
            if size > most { size } else { most }
        };
        let finite = |v: &T| Real::to_f64(*v).is_finite();
        if row.iter().fold(true, |all, v| all & finite(v)) {
            self.largest = row.iter().fold(self.largest, largest);
            return;
        }
        for (z, v) in row.iter().enumerate() {
            let value = Real::to_f64(*v);
            match value {
                _ if value.is_finite() => {
                    self.largest = largest(self.largest, v);
                    continue;
                }
                _ if value.is_nan() => self.nan += 1,
                _ => self.infinite += 1,
            }
            self.first.get_or_insert((PerAxis([x, y, z as i64]), value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Picture;
    use crate::simulation::Progress;
    use crate::simulation::RunError;
    use torre_compiler::problem::Problem;
    use torre_compiler::scheme::{Precision, Scheme, StateId};
    use torre_compiler::testing::maxwell;

    /// Values by component, one after the other.
    struct Fixed {
        scheme: Scheme,
        problem: Problem,
        values: Vec<Vec<f32>>,
    }

    impl Simulation<f32> for Fixed {
        fn scheme(&self) -> &Scheme {
            &self.scheme
        }
        fn problem(&self) -> &Problem {
            &self.problem
        }
        fn steps(&self) -> u64 {
            7
        }
        fn next_pause(&self) -> u64 {
            7
        }
        fn run(&mut self, _: u64, _: &Progress) -> Result<(), RunError> {
            Ok(())
        }
        fn row(&self, id: ComponentId, _: u8, x: i64, y: i64) -> &[f32] {
            let [_, ny, nz] = self.scheme.extent(id).map(|i| i.hi).0;
            let start = ((x * ny + y) * nz) as usize;
            &self.values[id.index()][start..start + nz as usize]
        }
        fn state(&self, _: StateId, _: PerAxis<i64>) -> f32 {
            0.0
        }
        fn probe(&self, _: usize) -> Vec<f64> {
            Vec::new()
        }
        fn take_pictures(&mut self) -> Vec<Picture> {
            Vec::new()
        }
    }

    #[test]
    fn all_values_are_counted_once_whatever_the_threads() {
        let scheme = maxwell(2, Precision::F32, [5, 4, 9]);
        let volume = |id| scheme.extent(id).volume() as usize;
        let ids: Vec<ComponentId> = scheme.component_ids().collect();
        let mut values: Vec<Vec<f32>> = ids.iter().map(|id| vec![-0.5; volume(*id)]).collect();
        let [_, ny, nz] = scheme.extent(ids[1]).map(|i| i.hi).0;
        let place = |at: [i64; 3]| ((at[0] * ny + at[1]) * nz + at[2]) as usize;
        values[1][place([1, 2, 3])] = f32::NAN;
        values[1][place([1, 2, 4])] = f32::NEG_INFINITY;
        values[1][place([4, 3, 0])] = f32::NAN;
        values[1][place([0, 0, 0])] = -3e38;
        *values[2].last_mut().unwrap() = f32::INFINITY;
        values[3].fill(f32::NAN);
        let simulation = Fixed {
            scheme: scheme.clone(),
            problem: Problem::default(),
            values,
        };
        for threads in [0, 1, 2, 7, 100] {
            let counts = census(&simulation, threads);
            assert_eq!(counts.len(), scheme.components.len());
            let bad: Vec<[u64; 2]> = counts.iter().map(|c| [c.nan, c.infinite]).collect();
            let all = volume(ids[3]) as u64;
            assert_eq!(bad[..5], [[0, 0], [2, 1], [0, 1], [all, 0], [0, 0]]);
            let first = counts[1].first.as_ref().unwrap();
            assert_eq!((first.at.as_slice(), first.step), (&[1, 2, 3][..], 7));
            assert!(first.value.is_nan() && first.component == counts[1].component);
            assert_eq!(counts[0].first, None);
            assert_eq!(counts[0].largest, 0.5);
            assert_eq!(counts[1].largest, f64::from(3e38f32));
            assert_eq!(counts[3].largest, 0.0);
            assert_eq!(counts[4].values, volume(ids[4]) as u64);
        }
    }
}
