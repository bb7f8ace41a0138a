//! GPUs: the baseline in CUDA, Torre layerwise and by towers or pyramids, one after the other on the same device.
//!
//! ```text
//! open                device and compiler, or the missing part
//!   copies              the driver's, for the rate that memory allows
//!   point               a case in a precision on a grid                          points
//!     baseline            a process of its own, timed by events                  nvcc
//!     layerwise, towers   in this process, from noise                            runs, fill
//! ```

pub mod asked;
pub mod cases;
pub mod fill;
pub mod nvcc;
pub mod points;
pub mod problems;
pub mod runs;

pub use cases::{GPU_CASES, GpuCase};

use crate::args::Args;
use crate::report::{Report, Table, domain};
use nvcc::Programs;
use points::{Check, Point, Rate, Setting};
use serde_json::json;
use torre_compiler::scheme::Precision;
use torre_runtime::gpu::{CudaDevice, Device};
use torre_runtime::plan::gpu as plan;

/// Tiny grids for `--quick`, and the grids of `--check`: no multiples of anything.
fn tiny(axes: usize) -> Vec<i64> {
    match axes {
        1 => vec![4096],
        2 => vec![96, 96],
        _ => vec![48, 48, 64],
    }
}

fn checked(axes: usize) -> Vec<i64> {
    match axes {
        1 => vec![100_003],
        2 => vec![611, 523],
        _ => vec![61, 83, 256],
    }
}

/// The points to measure: programs in files, if there are any, else cases.
pub fn all_points(args: &Args) -> Result<Vec<Point>, String> {
    let mut points = Vec::new();
    let mut cases: Vec<GpuCase> = Vec::new();
    for path in &args.gpu_files {
        cases.push(GpuCase::in_file(path, &args.set)?);
    }
    if cases.is_empty() {
        cases.extend(args.gpu_cases.iter().map(|case| (*case).clone()));
    }
    for case in &cases {
        let precisions = args.precisions.clone();
        for precision in precisions.unwrap_or_else(|| vec![Precision::F32, Precision::F64]) {
            let axes = case.axes();
            let all = |g: &Vec<i64>| match g.as_slice() {
                [n] => vec![*n; axes],
                _ => g.clone(),
            };
            let mut grids: Vec<Vec<i64>> = match (args.quick, args.check) {
                _ if !args.sizes.is_empty() => args.sizes.iter().map(all).collect(),
                _ if case.is_in_file() => case.grids(precision),
                (true, _) => vec![tiny(axes)],
                (_, true) => vec![checked(axes)],
                _ => case.grids(precision),
            };
            grids.retain(|g| g.len() == axes);
            points.extend(grids.into_iter().map(|cells| Point {
                case: case.clone(),
                precision,
                cells,
            }));
        }
    }
    Ok(points)
}

/// The section of GPUs. Whether all could be done that this machine can do.
pub fn gpu(args: &Args, report: &mut Report) -> bool {
    let device = match CudaDevice::open(args.device) {
        Ok(device) => device,
        Err(error) => {
            println!("\nGPU: skipped: {error}");
            return true;
        }
    };
    let facts = device.facts().clone();
    let copies = match device.copy_rate() {
        Ok(rate) => rate,
        Err(error) => {
            eprintln!("GPU: {error}");
            return false;
        }
    };
    drop(device);
    let line = plan::line(&facts);
    println!("\nGPU: {line}; copies {:.0} GB/s", copies * 1e-9);
    let mut programs = match args.baseline {
        true => Programs::find(
            args.built.as_deref(),
            args.nvcc.as_deref(),
            facts.capability,
        ),
        false => Err("not wanted".to_string()),
    };
    let description = match &programs {
        Ok(programs) => programs.description(),
        Err(missing) => missing.clone(),
    };
    println!("baseline: {description}");
    report.set(
        "gpu_device",
        json!({ "name": facts.name, "line": line, "copy_gb_per_s": copies * 1e-9, "baseline": description }),
    );
    let mut complete = true;
    let mut found = Vec::new();
    let mut checks = Vec::new();
    let points = match all_points(args) {
        Ok(points) => points,
        Err(message) => {
            eprintln!("{message}");
            return false;
        }
    };
    for point in points {
        eprintln!("{point}");
        let programs = programs.as_mut().ok();
        // Fresh for each point: memory is given back with the device.
        let outcome = CudaDevice::open(args.device).map_err(|e| e.to_string());
        let outcome = outcome.and_then(|device| {
            let setting = Setting {
                args,
                device: &device,
                copies,
            };
            match args.check {
                true => points::check(&point, setting, programs).map(|c| checks.extend(c)),
                false => {
                    let rates = points::measure(&point, setting, programs);
                    rates.map(|rates| found.push((point.clone(), rates)))
                }
            }
        });
        if let Err(message) = outcome {
            eprintln!("{point}: {message}");
            complete = false;
        }
    }
    for (point, rates) in &found {
        for value in points::json(point, rates) {
            report.push("gpu", value);
        }
    }
    for check in &checks {
        complete &= check.holds();
        report.push("gpu_check", check.json());
    }
    match args.check {
        true => println!("\nOn the GPU\n{}", check_table(&checks).text()),
        false => println!(
            "\nOn the GPU, 1e9 cell-steps per second\n{}",
            table(&found).text()
        ),
    }
    complete
}

/// A row for each program of each point.
fn table(found: &[(Point, Vec<Rate>)]) -> Table {
    let mut table = Table::new(&[
        "case",
        "cells",
        "precision",
        "Gcells/s",
        "least",
        "most",
        "to CUDA",
        "to layerwise",
        "expected",
        "measured / expected",
        "program",
        "notes",
    ]);
    let ratio = |r: Option<f64>| r.map_or("-".to_string(), |r| format!("{r:.2}"));
    for (point, rates) in found {
        for rate in rates {
            let [least, median, most] = rate.gcells;
            table.row(vec![
                point.case.name.to_string(),
                domain(&point.cells),
                point.precision.to_string(),
                format!("{median:.2}"),
                format!("{least:.2}"),
                format!("{most:.2}"),
                ratio(rate.over(points::BASELINE, rates)),
                ratio(rate.over(points::LAYERWISE, rates)),
                rate.expected.map_or("-".to_string(), |e| format!("{e:.1}")),
                ratio(rate.expected.map(|e| median / e)),
                rate.name.clone(),
                rate.notes.clone(),
            ]);
        }
    }
    table
}

fn check_table(checks: &[Check]) -> Table {
    let mut table = Table::new(&["case", "cells", "precision", "what", "result"]);
    for check in checks {
        table.row(vec![
            check.point.case.name.to_string(),
            domain(&check.point.cells),
            check.point.precision.to_string(),
            check.name.clone(),
            check.result(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_compare_programs_of_a_point() {
        let rate = |name: &str, median, expected| Rate {
            name: name.to_string(),
            gcells: [median - 1.0, median, median + 1.0],
            expected,
            notes: String::new(),
        };
        let point = Point {
            case: GPU_CASES[0].clone(),
            precision: Precision::F32,
            cells: vec![64, 32, 16],
        };
        let rates = vec![
            rate(points::BASELINE, 40.0, None),
            rate(points::LAYERWISE, 50.0, Some(40.0)),
            rate("towers 6,16,16,8", 100.0, None),
        ];
        let text = table(&[(point, rates)]).text();
        let line = |i: usize| text.lines().nth(i).unwrap_or_default().split_whitespace();
        let row: Vec<&str> = line(3).take(10).collect();
        let expected = [
            "maxwell42",
            "64x32x16",
            "f32",
            "100.00",
            "99.00",
            "101.00",
            "2.50",
            "2.00",
            "-",
            "-",
        ];
        assert_eq!(row, expected);
        assert_eq!(line(2).nth(9), Some("1.25"));
    }
}
