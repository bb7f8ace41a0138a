//! Measuring and checking a case on a grid.

use super::cases::GpuCase;
use super::nvcc::Programs;
use super::runs::{Prepared, TimeBlock, advance, digests};
use crate::args::Args;
use crate::machine;
use crate::report::{Samples, domain};
use serde_json::{Value as Json, json};
use std::fmt;
use std::time::Instant;
use torre_compiler::scheme::Precision;
use torre_runtime::gpu::{Device, OnDevice, resident_bytes};
use torre_runtime::plan::gpu as plan;
use torre_runtime::simulation::Value;

/// Names of programs in tables.
pub const BASELINE: &str = "CUDA";
pub const LAYERWISE: &str = "layerwise";

/// Fewer rounds have no median worth the name.
const LEAST_ROUNDS: usize = 3;

/// The setting that all points of a device share.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    pub args: &'a Args,
    pub device: &'a dyn Device,
    /// Bytes that copies on the device read and write per second.
    pub copies: f64,
}

/// A case in a precision on a grid.
#[derive(Clone, Debug)]
pub struct Point {
    pub case: GpuCase,
    pub precision: Precision,
    pub cells: Vec<i64>,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (case, precision) = (&self.case.name, self.precision);
        write!(f, "{case} {precision} {}", domain(&self.cells))
    }
}

impl Point {
    fn count(&self) -> f64 {
        self.cells.iter().map(|&n| n as f64).product()
    }

    /// The first arguments of the baseline: the grid and the precision.
    fn words(&self, cells: &[i64]) -> Vec<String> {
        let cells = match *cells {
            [x, z] => vec![x, 1, z],
            _ => cells.to_vec(),
        };
        let cells = cells.iter().map(i64::to_string);
        cells.chain([self.precision.to_string()]).collect()
    }

    fn prepared(&self, setting: Setting<'_>) -> Result<Prepared, String> {
        let Setting { args, device, .. } = setting;
        let gpu = torre_runtime::gpu::code::gpu_of(device).map_err(|e| e.to_string())?;
        // Code for later devices as well.
        let gpu = if args.portable { gpu.portable() } else { gpu };
        Prepared::new(&self.case, self.precision, &self.cells, gpu)
    }
}

/// The rate of a program on a point, in 1e9 cell-steps per second.
#[derive(Clone, Debug)]
pub struct Rate {
    pub name: String,
    /// Least, median, most.
    pub gcells: [f64; 3],
    pub expected: Option<f64>,
    pub notes: String,
}

impl Rate {
    /// The median over that of another program.
    pub fn over(&self, name: &str, all: &[Rate]) -> Option<f64> {
        let other = all.iter().find(|r| r.name == name)?;
        Some(self.gcells[1] / other.gcells[1])
    }
}

/// For the report, one value per program.
pub fn json(point: &Point, rates: &[Rate]) -> Vec<Json> {
    let one = |rate: &Rate| {
        json!({
            "case": point.case.name,
            "precision": point.precision.to_string(),
            "cells": point.cells,
            "program": rate.name,
            "gcells_per_s": rate.gcells,
            "ratio_to_cuda": rate.over(BASELINE, rates),
            "ratio_to_layerwise": rate.over(LAYERWISE, rates),
            "expected_gcells_per_s": rate.expected,
            "notes": rate.notes,
        })
    };
    rates.iter().map(one).collect()
}

/// The baseline, layerwise kernels and towers, in this order. Points that do not fit into memory have no rates.
pub fn measure(
    point: &Point,
    setting: Setting<'_>,
    programs: Option<&mut Programs>,
) -> Result<Vec<Rate>, String> {
    match point.precision {
        Precision::F32 => measure_in::<f32>(point, setting, programs),
        Precision::F64 => measure_in::<f64>(point, setting, programs),
    }
}

fn measure_in<T: Value>(
    point: &Point,
    setting: Setting<'_>,
    programs: Option<&mut Programs>,
) -> Result<Vec<Rate>, String> {
    let Setting { args, device, .. } = setting;
    let begun = Instant::now();
    let in_time = || begun.elapsed().as_secs_f64() < args.limit;
    let rounds = args.rounds.max(LEAST_ROUNDS);
    let prepared = point.prepared(setting)?;
    let scheme = prepared.scheme();
    if let Some(short) = short_of_memory(&prepared, device)? {
        eprintln!("{point}: skipped: {short}");
        return Ok(Vec::new());
    }
    let mut rates = Vec::new();
    if let (Some((file, options)), Some(programs)) = (point.case.baseline, programs) {
        let mut words = point.words(&point.cells);
        words.extend(options.iter().map(|o| o.to_string()));
        words.extend(["--seconds".to_string(), args.seconds.to_string()]);
        words.extend(["--rounds".to_string(), rounds.to_string()]);
        match programs
            .run(file, &words)
            .and_then(|answer| baseline(&answer))
        {
            Ok(rate) => rates.push(rate),
            // Torre's own figures are still worth having.
            Err(message) => eprintln!("{point}: {message}"),
        }
    }
    let model = prepared.model(device, setting.copies)?;
    let expected = plan::layerwise(scheme, &model).prediction.rate;
    let steps_in = |rate: f64| ((args.seconds * rate / point.count()).ceil() as u64).max(1);
    let mut simulation = prepared.start::<T>(device)?;
    let array = simulation.memory_bytes() as f64 * 1e-9;
    let gcells = in_rounds(&mut simulation, point, steps_in(expected), rounds)?;
    let layerwise = gcells[1];
    rates.push(Rate {
        name: LAYERWISE.to_string(),
        gcells,
        expected: Some(expected * 1e-9),
        notes: format!("{array:.1} GB"),
    });
    let schedules = prepared.schedules(&args.towers, args.division, &model)?;
    if schedules.is_empty() {
        eprintln!("{point}: this device can run no towers");
    }
    for scheduled in &schedules {
        let name = &scheduled.name;
        if !in_time() {
            eprintln!("{point}: not {name}: {} s are over", args.limit);
            continue;
        }
        let time_block = match prepared.blocks(scheduled, &model) {
            Ok(time_block) => time_block,
            Err(reason) => {
                eprintln!("{point}: not {name}: {reason}");
                continue;
            }
        };
        simulation = by_towers(simulation, &time_block)?;
        // Whole time blocks, as many as may take the time that layerwise kernels would take for half as many steps.
        let steps = (2 * steps_in(layerwise * 1e9)).div_ceil(time_block.steps) * time_block.steps;
        rates.push(Rate {
            name: name.clone(),
            gcells: in_rounds(&mut simulation, point, steps, rounds)?,
            expected: scheduled.expected.map(|e| e * 1e-9),
            notes: format!(
                "{} steps, {}, {:.1} s to compile",
                time_block.steps, time_block.notes, time_block.compiling,
            ),
        });
    }
    Ok(rates)
}

/// Lets a calculation go by towers; an error if it would not.
fn by_towers<'a, T: Value>(
    simulation: OnDevice<'a, T>,
    time_block: &TimeBlock,
) -> Result<OnDevice<'a, T>, String> {
    let simulation = simulation
        .by(&time_block.blocks)
        .map_err(|e| e.to_string())?;
    match simulation.without_towers() {
        None => Ok(simulation),
        Some(reason) => Err(format!(
            "towers cannot do what the problem asks for: {reason}"
        )),
    }
}

/// Why a calculation cannot be held, by the device and by the host.
fn short_of_memory(prepared: &Prepared, device: &dyn Device) -> Result<Option<String>, String> {
    let needed = resident_bytes(prepared.scheme(), &prepared.resolved.problem, &prepared.set);
    let free = device.free_memory().map_err(|e| e.to_string())?;
    let gb = |bytes: u64| bytes as f64 * 1e-9;
    let short = |free: u64, whose: &str| {
        (needed > free / 20 * 19).then(|| {
            format!(
                "needs {:.1} GB of the {whose}'s {:.1} GB",
                gb(needed),
                gb(free)
            )
        })
    };
    let host = || machine::free_bytes().and_then(|free| short(free, "host"));
    Ok(short(free, "GPU").or_else(host))
}

/// Least, median and most of some rounds, after one that does not count.
fn in_rounds<T: Value>(
    simulation: &mut OnDevice<'_, T>,
    point: &Point,
    steps: u64,
    rounds: usize,
) -> Result<[f64; 3], String> {
    advance(simulation, steps)?;
    let mut rates = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let seconds = advance(simulation, steps)?;
        rates.push(point.count() * steps as f64 / seconds * 1e-9);
    }
    let samples = Samples::new(rates).ok_or("nothing was measured")?;
    let sorted = samples.sorted();
    Ok([sorted[0], samples.median(), sorted[sorted.len() - 1]])
}

/// The answer of the baseline.
fn baseline(answer: &Json) -> Result<Rate, String> {
    let three = |key: &str| -> Option<[f64; 3]> {
        let values = answer.get(key)?.as_array()?;
        let values: Option<Vec<f64>> = values.iter().map(Json::as_f64).collect();
        values?.try_into().ok()
    };
    let gcells = three("gcells").ok_or_else(|| format!("the baseline answered {answer}"))?;
    let copies = ["copy_kernel_gb", "copy_driver_gb"].map(|key| {
        let rate = three(key).map(|[_, median, _]| format!("{median:.0}"));
        rate.unwrap_or("-".to_string())
    });
    let launch = answer.get("launch").and_then(Json::as_str);
    Ok(Rate {
        name: BASELINE.to_string(),
        gcells,
        expected: None,
        notes: format!(
            "copies {} and {} GB/s; {}",
            copies[0],
            copies[1],
            launch.unwrap_or_default()
        ),
    })
}

/// Whether two programs agree.
#[derive(Clone, Debug)]
pub struct Check {
    pub point: Point,
    pub name: String,
    pub found: Agreement,
}

/// How far they agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Agreement {
    /// Bits: rows that differ, of all.
    Rows { differ: usize, all: usize },
    /// Relative to a reference on the CPU in double precision.
    Error { relative: f64, allowed: f64 },
}

impl Check {
    pub fn holds(&self) -> bool {
        match self.found {
            Agreement::Rows { differ, all } => differ == 0 && all > 0,
            Agreement::Error { relative, allowed } => relative <= allowed,
        }
    }

    pub fn result(&self) -> String {
        match self.found {
            Agreement::Rows { differ: 0, all } => format!("same bits in {all} rows"),
            Agreement::Rows { differ, all } => format!("{differ} of {all} rows DIFFER"),
            Agreement::Error { relative, .. } if self.holds() => format!("{relative:.1e}"),
            Agreement::Error { relative, .. } => format!("{relative:.1e} IS WRONG"),
        }
    }

    pub fn json(&self) -> Json {
        json!({
            "case": self.point.case.name,
            "precision": self.point.precision.to_string(),
            "cells": self.point.cells,
            "what": self.name,
            "holds": self.holds(),
            "result": self.result(),
        })
    }
}

/// A few roundings of each value.
fn allowed(precision: Precision) -> f64 {
    match precision {
        Precision::F32 => 16.0 * f64::from(f32::EPSILON),
        Precision::F64 => 16.0 * f64::EPSILON,
    }
}

/// Compares the baseline with a reference on the CPU, and towers with layerwise kernels.
pub fn check(
    point: &Point,
    setting: Setting<'_>,
    programs: Option<&mut Programs>,
) -> Result<Vec<Check>, String> {
    let mut checks = Vec::new();
    if let (Some((file, options)), Some(programs)) = (point.case.baseline, programs) {
        // Enough for several blocks; the reference takes a thousand times longer.
        let small: &[i64] = match point.case.axes() {
            3 => &[37, 29, 150],
            _ => &[307, 259],
        };
        let mut words = point.words(small);
        words.extend(options.iter().map(|o| o.to_string()));
        words.push("--check".to_string());
        let answer = programs.run(file, &words)?;
        let relative = answer.get("relative_l2").and_then(Json::as_f64);
        checks.push(Check {
            point: point.clone(),
            name: format!("{BASELINE} on {} beside the CPU", domain(small)),
            found: Agreement::Error {
                relative: relative.unwrap_or(f64::NAN),
                allowed: allowed(point.precision),
            },
        });
    }
    checks.extend(match point.precision {
        Precision::F32 => check_towers::<f32>(point, setting),
        Precision::F64 => check_towers::<f64>(point, setting),
    }?);
    Ok(checks)
}

fn check_towers<T: Value>(point: &Point, setting: Setting<'_>) -> Result<Vec<Check>, String> {
    let Setting { args, device, .. } = setting;
    let prepared = point.prepared(setting)?;
    let mut checks = Vec::new();
    let model = prepared.model(device, setting.copies)?;
    for scheduled in prepared.schedules(&args.towers, args.division, &model)? {
        let name = &scheduled.name;
        let time_block = match prepared.blocks(&scheduled, &model) {
            Ok(time_block) => time_block,
            Err(reason) => {
                eprintln!("{point}: not {name}: {reason}");
                continue;
            }
        };
        // Two time blocks, which is where a time block's end could go wrong, and a step behind them.
        let steps = 2 * time_block.steps + 1;
        let run = |towers: bool| {
            let mut simulation = prepared.start::<T>(device)?;
            if towers {
                simulation = by_towers(simulation, &time_block)?;
            }
            advance(&mut simulation, steps)?;
            digests(&mut simulation)
        };
        let (layerwise, towers) = (run(false)?, run(true)?);
        let differ = layerwise.iter().zip(&towers).filter(|(a, b)| a != b);
        checks.push(Check {
            point: point.clone(),
            name: format!("{name} beside layerwise, {steps} steps"),
            found: Agreement::Rows {
                differ: differ.count(),
                all: layerwise.len().min(towers.len()),
            },
        });
    }
    Ok(checks)
}
