//! Measures towers on a GPU against the layerwise kernels, in one run.
//!
//! ```text
//! device_towers PROGRAM PRECISION [set NAME=VALUE]... [check] [portable] [STEPS,WIDTH,HEIGHT,STRIP,OVERLAP]...
//! ```
//!
//! STEPS: how many are measured at a time, rounded to bands; WIDTH: the period of both faces in cells; HEIGHT: steps of a band; STRIP and
//! OVERLAP: the order of towers. With `check`, each schedule's values are compared with those of the layerwise kernels, bit by bit;
//! with `portable`, code is generated that later GPUs run, too.

use std::error::Error;
use std::path::Path;
use std::time::Instant;
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::backend::nvptx::layerwise::Shape;
use torre_compiler::backend::nvptx::tower::Order;
use torre_compiler::cone::{Rational, cones};
use torre_compiler::driver::load;
use torre_compiler::lattice::PerAxis;
use torre_compiler::real::Real;
use torre_compiler::resolve::{Options, Resolved};
use torre_compiler::schedule::{Cut, Frame, Level, Tiling};
use torre_compiler::scheme::Precision;
use torre_compiler::tile::{TileProgram, lower};
use torre_runtime::gpu::{CudaDevice, Device, DeviceProgram, OnDevice, TowerProgram, code};
use torre_runtime::host::{Calculation, Progress, threads};
use torre_runtime::program::{LoadedFiles, layerwise_bytes_per_cell_step, layerwise_kernels};
use torre_runtime::run::{Simulation, Value};
use torre_runtime::world::{FileWorld, read_source};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A schedule to measure.
#[derive(Clone, Copy)]
struct Asked {
    steps: u64,
    width: i64,
    height: u64,
    order: Order,
}

fn asked(text: &str) -> Outcome<Asked> {
    let numbers: Result<Vec<i64>, _> = text.split(',').map(str::parse).collect();
    match numbers?.as_slice() {
        &[steps, width, height, strip, overlap] => Ok(Asked {
            steps: steps.try_into()?,
            width,
            height: height.try_into()?,
            order: Order {
                width: strip,
                overlap,
            },
        }),
        _ => Err(format!("`{text}` is not STEPS,WIDTH,HEIGHT,STRIP,OVERLAP").into()),
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, precision, rest @ ..] = arguments.as_slice() else {
        return Err(
            "usage: device_towers PROGRAM PRECISION [NAME=VALUE]... [check] [SCHEDULE]...".into(),
        );
    };
    let path = Path::new(file);
    let world = FileWorld::beside(path);
    let overrides = rest.iter().filter_map(|r| r.split_once('='));
    let options = Options {
        precision: match precision.as_str() {
            "f64" => Precision::F64,
            _ => Precision::F32,
        },
        overrides: overrides
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        ..Options::default()
    };
    let source = read_source(path)?;
    let resolved = load(&world, &source, &options)
        .map_err(|found| found.0.first().map_or("wrong", |d| d.code.0).to_owned())?;
    let files = LoadedFiles::load(&world, &resolved.scheme)?;
    let flags = ["check", "portable"].map(|flag| rest.iter().any(|r| r == flag));
    let schedules = rest.iter().filter(|r| r.contains(','));
    let schedules = schedules.map(|r| asked(r)).collect::<Outcome<Vec<_>>>()?;
    match options.precision {
        Precision::F32 => measure::<f32>(&resolved, &files, &schedules, flags),
        Precision::F64 => measure::<f64>(&resolved, &files, &schedules, flags),
    }
}

fn tiles(resolved: &Resolved, width: i64, height: u64) -> TileProgram {
    let scheme = &resolved.scheme;
    let frame = Frame::new(scheme, &cones(scheme));
    let cut = |form| Cut {
        face: frame.fitting(PerAxis(form)),
        period: Rational::whole(width),
    };
    let cuts = vec![cut([1, 1, 0]), cut([1, -1, 0])];
    let tiling = Tiling {
        height,
        levels: vec![Level { cuts }],
    };
    lower(scheme, &frame, &tiling)
}

/// Seconds for some steps.
fn advance<T: Value>(simulation: &mut OnDevice<'_, T>, steps: u64) -> Outcome<f64> {
    let until = simulation.steps() + steps;
    let start = Instant::now();
    let done = simulation.run(until, &Progress::default());
    done.map_err(|error| format!("{error:?}"))?;
    Ok(start.elapsed().as_secs_f64())
}

fn median<T: Value>(simulation: &mut OnDevice<'_, T>, steps: u64) -> Outcome<[f64; 3]> {
    advance(simulation, steps)?;
    let mut seconds = [0.0; 3];
    for seconds in &mut seconds {
        *seconds = advance(simulation, steps)?;
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds)
}

fn measure<T: Value>(
    resolved: &Resolved,
    files: &LoadedFiles,
    schedules: &[Asked],
    [check, portable]: [bool; 2],
) -> Outcome<()> {
    let Resolved {
        scheme, problem, ..
    } = resolved;
    let library = Library::open()?;
    let set = layerwise_kernels(scheme).map_err(|_| "too large")?;
    let cells: f64 = scheme.grid.cells.0.iter().map(|&n| n as f64).product();
    let bytes = layerwise_bytes_per_cell_step(scheme);
    let device = CudaDevice::open(0)?;
    let gpu = code::gpu_of(&device)?;
    let gpu = if portable { gpu.portable() } else { gpu };
    println!(
        "{}, copies at {:.0} GB/s, {} of {:?} cells, {bytes:.1} bytes per cell-step",
        device.facts().name,
        device.copy_rate()? * 1e-9,
        scheme.precision,
        scheme.grid.cells.0,
    );
    let shape = Shape::of(scheme);
    let ptx = code::ptx(library, scheme, &set, shape, gpu)?;
    let program = DeviceProgram {
        set: &set,
        ptx: &ptx,
        shape,
    };
    let start = || -> Outcome<OnDevice<'_, T>> {
        let calculation: Calculation<'_, T> =
            Calculation::new(scheme, problem, files, threads::available())
                .map_err(|error| format!("{error:?}"))?;
        Ok(OnDevice::new(calculation, files, &device, program)?)
    };
    let mut simulation = start()?;
    let layer = (4e10 / cells).clamp(4.0, 1000.0) as u64;
    let seconds = median(&mut simulation, layer)?;
    let rate = |steps: u64, seconds: f64| cells * steps as f64 / seconds * 1e-9;
    let base = rate(layer, seconds[1]);
    println!(
        "layerwise {base:8.2} Gcells/s [{:.2}, {:.2}]",
        rate(layer, seconds[2]),
        rate(layer, seconds[0])
    );
    let mut last: Option<(i64, TowerProgram)> = None;
    for asked in schedules {
        let tiles = tiles(resolved, asked.width, asked.height);
        let begun = Instant::now();
        let same = last.take().filter(|(width, _)| *width == asked.width);
        let program = match same {
            Some((_, program)) => Some(program),
            None => TowerProgram::new(library, scheme, &set.layout, &tiles, gpu)?,
        };
        let layout = &set.layout;
        let program =
            program.and_then(|p| p.banded(scheme, layout, &tiles, asked.height, asked.order));
        let Some(program) = program else {
            println!("no towers of width {}", asked.width);
            continue;
        };
        let mut other = match check {
            true => Some((start()?, start()?)),
            false => None,
        };
        let compiling = begun.elapsed().as_secs_f64();
        simulation = simulation.by_towers(&program)?;
        let steps = (asked.steps / program.steps).max(1) * program.steps;
        let seconds = median(&mut simulation, steps)?;
        let speed = rate(steps, seconds[1]);
        println!(
            "towers {speed:11.2} Gcells/s [{:.2}, {:.2}] {:5.2} x, width {} height {} strip {} overlap {}, {} steps, {} tasks, {:.1} bytes, {compiling:.1} s",
            rate(steps, seconds[2]),
            rate(steps, seconds[0]),
            speed / base,
            asked.width,
            program.steps,
            asked.order.width,
            asked.order.overlap,
            steps,
            program.count(),
            program.towers.bytes_per_cell(scheme),
        );
        if let Some((one, two)) = &mut other {
            let mut two = std::mem::replace(two, start()?).by_towers(&program)?;
            let steps = 2 * program.steps;
            advance(one, steps)?;
            advance(&mut two, steps)?;
            let differ = difference(one, &mut two)?;
            println!("  {differ} rows differ after {steps} steps");
        }
        last = Some((asked.width, program));
    }
    Ok(())
}

/// How many rows of two simulations differ.
fn difference<T: Value>(one: &mut OnDevice<'_, T>, two: &mut OnDevice<'_, T>) -> Outcome<usize> {
    one.fetch().map_err(|error| format!("{error:?}"))?;
    two.fetch().map_err(|error| format!("{error:?}"))?;
    let scheme = Simulation::scheme(one);
    let mut count = 0;
    for id in scheme.component_ids() {
        let extent = scheme.extent(id);
        for x in extent.0[0].lo..extent.0[0].hi {
            for y in extent.0[1].lo..extent.0[1].hi {
                let bits = |simulation: &OnDevice<'_, T>| -> Vec<u64> {
                    let row = simulation.row(id, 0, x, y);
                    row.iter().map(|v| Real::to_f64(*v).to_bits()).collect()
                };
                count += usize::from(bits(one) != bits(two));
            }
        }
    }
    Ok(count)
}
