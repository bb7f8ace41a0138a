//! Tables of values over time: probes and reductions.

use super::Outputs;
use crate::output::FileError;
use crate::output::probes::ProbeTable;
use crate::run::pictures::plot;
use crate::run::series::SeriesRecords;
use crate::simulation::{Simulation, Value};
use torre_compiler::real::Real;

impl Outputs {
    /// Writes the records of probes up to a step.
    pub(super) fn probes<T: Value>(
        &self,
        simulation: &dyn Simulation<T>,
        records: Option<&SeriesRecords<'_>>,
        until: u64,
    ) -> Result<(), FileError> {
        let problem = simulation.problem();
        let curves = problem.probes.iter().enumerate().map(|(i, probe)| {
            let record = simulation.probe(i);
            let due = record
                .iter()
                .skip(probe.every as usize - 1)
                .step_by(probe.every as usize);
            Curve {
                name: probe.name.clone(),
                every: probe.every,
                values: due.map(|value| Real::from_f64(*value)).collect(),
            }
        });
        let states = problem.state_probes.iter().enumerate();
        let states = states.filter_map(|(i, probe)| {
            let values = records?.of_state(i);
            Some(Curve {
                name: probe.name.clone(),
                every: probe.every,
                values: values.into_iter().map(Real::from_f64).collect(),
            })
        });
        let curves = curves.chain(states).collect();
        let table = Table {
            stem: "probes",
            title: "Probes",
            until,
        };
        self.table::<T, T>(simulation, table, curves)
    }

    /// Writes the reductions of the steps that are done.
    pub(super) fn series<T: Value>(
        &self,
        simulation: &dyn Simulation<T>,
        records: &SeriesRecords<'_>,
    ) -> Result<(), FileError> {
        let series = simulation.problem().series.iter().enumerate();
        let curves = series.map(|(i, series)| Curve {
            name: series.name.clone(),
            every: series.every,
            values: records.of(i),
        });
        let table = Table {
            stem: "series",
            title: "Reductions",
            until: simulation.steps(),
        };
        self.table::<T, f64>(simulation, table, curves.collect())
    }

    /// Writes values over time as a table in two formats and as a picture.
    fn table<T: Value, V: Value>(
        &self,
        simulation: &dyn Simulation<T>,
        Table { stem, title, until }: Table,
        curves: Vec<Curve<V>>,
    ) -> Result<(), FileError> {
        if curves.is_empty() {
            return Ok(());
        }
        let names = curves.iter().map(|c| c.name.clone()).collect();
        let mut table = ProbeTable::<V>::new("t", names);
        let mut steps = Vec::new();
        for step in 1..=until {
            if !curves.iter().any(|c| step.is_multiple_of(c.every)) {
                continue;
            }
            steps.push(step);
            let values: Vec<V> = curves.iter().map(|c| c.after(step)).collect();
            let time = step as f64 * simulation.scheme().grid.dt;
            let fits = table.push(time, &values);
            debug_assert!(fits);
        }
        let every: Vec<u64> = curves.iter().map(|c| c.every).collect();
        drop(curves);
        let [csv, npy, png] = ["csv", "npy", "png"].map(|ending| format!("{stem}.{ending}"));
        table.write_csv(&self.folder.place(&csv)?)?;
        self.note(&csv);
        table.write_npy(&self.folder.place(&npy)?)?;
        self.note(&npy);
        let title = format!("{title} of {}", simulation.problem().name);
        plot(&self.folder.place(&png)?, title, &table, &steps, &every)?;
        self.note(&png);
        Ok(())
    }
}

/// The files of a table, and its last step.
struct Table {
    stem: &'static str,
    title: &'static str,
    until: u64,
}

/// Values over time.
struct Curve<V> {
    name: String,
    every: u64,
    /// Value i is that after step `(i + 1) * every`.
    values: Vec<V>,
}

impl<V: Value> Curve<V> {
    /// A value that is not due together with others is no number.
    fn after(&self, step: u64) -> V {
        let index = (step / self.every) as usize;
        let due = step.is_multiple_of(self.every);
        let value = index.checked_sub(1).and_then(|i| self.values.get(i));
        value
            .copied()
            .filter(|_| due)
            .unwrap_or(Real::from_f64(f64::NAN))
    }
}
