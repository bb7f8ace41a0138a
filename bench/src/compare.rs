//! Rates of C and Torre, measured alternately.

use crate::args::Args;
use crate::baseline::{Baseline, Builder};
use crate::cases::Case;
use crate::machine::{self, Cores};
use crate::program::{Kernels, Running, Start, load};
use crate::report::Samples;
use crate::tiling::{Tiles, all_tiles, expected};
use crate::verify::three;
use serde_json::{Value, json};
use torre_compiler::kernel::Code;
use torre_compiler::layout::Layout;
use torre_compiler::real::Real;
use torre_compiler::resolve::Resolved;
use torre_compiler::schedule::Schedule;
use torre_compiler::scheme::Precision;
use torre_runtime::plan::Planner;

const LAYERWISE: &str = "layerwise";

/// The suffix of names of programs that start from a pulse instead of noise.
const PULSE: &str = "pulse";

/// Rounds in which a pulse is measured.
const PULSES: usize = 3;

/// One program's rate beside the others'.
#[derive(Clone, Debug)]
pub struct Rate {
    /// `c`, `layerwise`, or a tiling; with `, pulse` where it started from one.
    pub name: String,
    /// 1e9 cell-steps per second.
    pub gcells: Samples,
    /// The rate that the model expects, in the same unit.
    pub expected: Option<f64>,
    /// Whether the model looks at it where it is asked for the best.
    pub modelled: bool,
}

/// The results of a comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub rates: Vec<Rate>,
    pub memory: MemoryUse,
    /// Of kernels, for reports.
    pub code: String,
}

/// In bytes.
#[derive(Clone, Copy, Debug)]
pub struct MemoryUse {
    /// The bytes of the scheme's values: cells times bytes per cell.
    pub fields: u64,
    /// Torre's array.
    pub layout: u64,
    /// Of this process, with LLVM in it.
    pub peak: Option<u64>,
    pub baseline_peak: Option<u64>,
}

/// Why there are no figures.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The machine is too small.
    Memory {
        needed: u64,
        free: u64,
    },
    Other(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Failure::Other(message)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Memory { needed, free } => {
                let gb = |bytes: u64| bytes as f64 * 1e-9;
                write!(f, "needs {:.1} GB of {:.1} GB", gb(*needed), gb(*free))
            }
            Failure::Other(message) => f.write_str(message),
        }
    }
}

impl Comparison {
    /// The median rate of a program over that of another one.
    pub fn ratio(&self, index: usize, other: &str) -> Option<f64> {
        let other = self.rates.iter().find(|r| r.name == other)?;
        Some(self.rates[index].gcells.median() / other.gcells.median())
    }

    /// Of the tilings that the model looked at, if there are several: the fastest, and the one it expects to be.
    pub fn choice(&self) -> Option<(&Rate, &Rate)> {
        let modelled = || self.rates.iter().filter(|r| r.modelled);
        let best = modelled().max_by(|a, b| a.gcells.median().total_cmp(&b.gcells.median()))?;
        let expected = |r: &Rate| r.expected.unwrap_or(0.0);
        let chosen = modelled().max_by(|a, b| expected(a).total_cmp(&expected(b)))?;
        (modelled().count() > 1).then_some((best, chosen))
    }

    /// For the report's JSON, one value per program.
    pub fn json(
        &self,
        case: &Case,
        precision: Precision,
        cells: &[i64],
        threads: usize,
    ) -> Vec<Value> {
        let one = |(i, rate): (usize, &Rate)| {
            json!({
                "case": case.name,
                "precision": precision.to_string(),
                "cells": cells,
                "threads": threads,
                "program": rate.name,
                "gcells_per_s": rate.gcells.median(),
                "samples": rate.gcells.sorted(),
                "spread": rate.gcells.spread(),
                "expected_gcells_per_s": rate.expected,
                "ratio_to_c": self.ratio(i, "c"),
                "ratio_to_layerwise": self.ratio(i, "layerwise"),
                "field_bytes": self.memory.fields,
                "layout_bytes": self.memory.layout,
                "peak_bytes": self.memory.peak,
                "baseline_peak_bytes": self.memory.baseline_peak,
                "code": self.code,
            })
        };
        self.rates.iter().enumerate().map(one).collect()
    }
}

/// Measures a case on one grid by C, layerwise and in tiles, for several numbers of threads.
pub fn compare(
    case: &Case,
    precision: Precision,
    cells: &[i64],
    args: &Args,
    builder: &Builder,
    cores: &Cores,
) -> Result<Vec<(usize, Comparison)>, Failure> {
    match precision {
        Precision::F32 => compare_in::<f32>(case, cells, args, builder, cores),
        Precision::F64 => compare_in::<f64>(case, cells, args, builder, cores),
    }
}

fn compare_in<T: Real>(
    case: &Case,
    cells: &[i64],
    args: &Args,
    builder: &Builder,
    cores: &Cores,
) -> Result<Vec<(usize, Comparison)>, Failure> {
    machine::reset_peak();
    let resolved = load(case, T::PRECISION, cells)?;
    let texts = args.tilings(case);
    let tilings = all_tiles(&resolved.scheme, &texts)?;
    let layout = Layout::new(&resolved.scheme).map_err(|_| "the grid is too large".to_string())?;
    let programs = if args.baseline { 2 } else { 1 };
    let needed = layout.bytes().saturating_mul(programs);
    if let Some(free) = machine::free_bytes()
        && needed > free / 20 * 19
    {
        return Err(Failure::Memory { needed, free });
    }
    let kernels = Kernels::new(args.backend, &resolved.scheme, &tilings)?;
    let program = match args.baseline {
        true => Some(builder.build(case, T::PRECISION, resolved.scheme.grid.dt)?),
        false => None,
    };
    let planner =
        Planner::new(&resolved.scheme).map_err(|_| "the grid is too large".to_string())?;
    let most = args.threads.iter().copied().max().unwrap_or(1);
    let mut run = Running::<T>::new(case, &resolved, &kernels, most)?;
    let mut found = Vec::new();
    for &threads in &args.threads {
        // Its number of threads is fixed when it starts.
        let mut baseline = match &program {
            Some(path) => Some(Baseline::start(path, T::PRECISION, three(cells), threads)?),
            None => None,
        };
        let rates = in_rounds(
            &mut run,
            &mut baseline,
            &tilings,
            threads,
            cells,
            args,
            cores,
        )?;
        let expectations = Expectations {
            planner: &planner,
            tilings: &tilings,
            threads,
        };
        let memory = memory(&resolved, &layout, baseline.as_ref());
        let code = &*kernels.tiles.code;
        found.push((threads, comparison(rates, &expectations, memory, code)?));
    }
    Ok(found)
}

/// The model's predictions for programs.
struct Expectations<'a> {
    planner: &'a Planner<'a>,
    tilings: &'a [Tiles],
    threads: usize,
}

impl Expectations<'_> {
    /// A program by its name with its prediction.
    fn rate(&self, name: String, gcells: Samples) -> Rate {
        let tiles = self.tilings.iter().find(|t| t.name == name);
        let schedule = match name.as_str() {
            LAYERWISE => Some(&Schedule::Layerwise),
            _ => tiles.map(|t| &t.schedule),
        };
        Rate {
            expected: schedule.map(|s| expected(self.planner, s, self.threads)),
            modelled: tiles.is_some_and(|t| t.modelled),
            name,
            gcells,
        }
    }
}

fn comparison(
    rates: Vec<(String, Vec<f64>)>,
    expectations: &Expectations<'_>,
    memory: MemoryUse,
    code: &dyn Code,
) -> Result<Comparison, Failure> {
    let rates = rates.into_iter().map(|(name, values)| {
        let gcells = Samples::new(values).ok_or_else(|| format!("{name} was not measured"))?;
        Ok(expectations.rate(name, gcells))
    });
    Ok(Comparison {
        rates: rates.collect::<Result<_, String>>()?,
        memory,
        code: code.description(),
    })
}

fn memory(resolved: &Resolved, layout: &Layout, baseline: Option<&Baseline>) -> MemoryUse {
    let scheme = &resolved.scheme;
    let cells: u64 = scheme.grid.cells.0.iter().map(|&n| n as u64).product();
    MemoryUse {
        fields: cells * scheme.bytes_per_cell() as u64,
        layout: layout.bytes(),
        peak: machine::peak_bytes("self"),
        baseline_peak: baseline.and_then(|b| machine::peak_bytes(&b.process().to_string())),
    }
}

/// Rates of each program in 1e9 cell-steps per second, a value per round.
fn in_rounds<T: Real>(
    run: &mut Running<'_, T>,
    baseline: &mut Option<Baseline>,
    tilings: &[Tiles],
    threads: usize,
    cells: &[i64],
    args: &Args,
    cores: &Cores,
) -> Result<Vec<(String, Vec<f64>)>, String> {
    // The first round warms up; it also tells how many steps a round takes.
    let mut steps = 1;
    loop {
        let seconds = match baseline {
            Some(baseline) => baseline.run(steps)?,
            None => run.run(None, threads, steps, cores),
        };
        if seconds >= args.seconds / 2.0 {
            steps = ((steps as f64 * args.seconds / seconds).ceil() as u64).max(1);
            break;
        }
        steps *= 2;
    }
    let cell_count: f64 = cells.iter().map(|&n| n as f64).product();
    let rate = |steps: u64, seconds: f64| 1e-9 * cell_count * steps as f64 / seconds;
    let mut rates: Vec<(String, Vec<f64>)> = Vec::new();
    if baseline.is_some() {
        rates.push(("c".to_string(), Vec::new()));
    }
    rates.push((LAYERWISE.to_string(), Vec::new()));
    rates.extend(tilings.iter().map(|t| (t.name.clone(), Vec::new())));
    // The cost of a pulse beside noise: layerwise and by the first tiling.
    let beside: Vec<Option<&Tiles>> = [None]
        .into_iter()
        .chain(tilings.iter().map(Some))
        .take(2)
        .collect();
    for tiles in &beside {
        let name = tiles.map_or(LAYERWISE, |tiles| &tiles.name);
        rates.push((format!("{name}, {PULSE}"), Vec::new()));
    }
    // Round 0 is not counted.
    for round in 0..=args.rounds {
        let mut slots = rates.iter_mut();
        let mut keep = |value: f64| {
            if let Some((_, values)) = slots.next()
                && round > 0
            {
                values.push(value);
            }
        };
        if let Some(baseline) = baseline {
            keep(rate(steps, baseline.run(steps)?));
        }
        keep(rate(steps, run.run(None, threads, steps, cores)));
        for tiles in tilings {
            // Whole time blocks, and not fewer steps than the others.
            let steps = steps.next_multiple_of(tiles.program.height);
            keep(rate(steps, run.run(Some(tiles), threads, steps, cores)));
        }
        // To start anew takes longer than to be measured on large grids.
        if !(1..=PULSES).contains(&round) {
            continue;
        }
        run.start(Start::Pulse)?;
        for tiles in &beside {
            let height = tiles.map_or(1, |tiles| tiles.program.height);
            let steps = steps.next_multiple_of(height);
            keep(rate(steps, run.run(*tiles, threads, steps, cores)));
        }
        run.start(Start::Noise)?;
    }
    Ok(rates)
}
