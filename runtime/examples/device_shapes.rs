//! Measures layerwise kernels of several shapes on a GPU.
//!
//! ```text
//! device_shapes emit PROGRAM PRECISION TARGET DIR     writes the PTX of each shape to DIR; needs LLVM, and no GPU
//! device_shapes run PROGRAM PRECISION DIR STEPS       measures PTX from DIR; needs a GPU, and no LLVM
//! ```

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;
use torre_compiler::backend::gpu::{Gpu, Ptx};
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::cost::layerwise_bytes;
use torre_compiler::driver::load;
use torre_compiler::layerwise::{MOST_BLOCKS, Shape};
use torre_compiler::resolve::{Options, Resolved};
use torre_compiler::scheme::Precision;
use torre_runtime::files::LoadedFiles;
use torre_runtime::gpu::{CudaDevice, Device, DeviceProgram, OnDevice, code};
use torre_runtime::host::{Calculation, threads};
use torre_runtime::simulation::{Progress, Simulation, Value};
use torre_runtime::world::{FileWorld, read_source};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The shapes that are tried, best guess first.
fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for (ahead, unroll, blocks) in [
        (64, 2, 0),
        (64, 1, 0),
        (64, 4, 0),
        (64, 2, 5),
        (0, 2, 0),
        (0, 1, 0),
    ] {
        for (threads, march) in [([32, 4], 16), ([32, 4], 32), ([64, 2], 32), ([32, 8], 8)] {
            shapes.push(Shape {
                threads,
                march,
                unroll,
                kept: 96,
                ahead,
                blocks,
                most_outer: MOST_BLOCKS,
            });
        }
    }
    shapes
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["emit", file, precision, target, folder] => {
            let (resolved, _) = resolved(file, precision)?;
            emit(&resolved, target, Path::new(folder))
        }
        ["run", file, precision, folder, steps] => {
            let (resolved, files) = resolved(file, precision)?;
            let folder = Path::new(folder);
            let steps = steps.parse()?;
            match resolved.scheme.precision {
                Precision::F32 => run::<f32>(&resolved, &files, folder, steps),
                Precision::F64 => run::<f64>(&resolved, &files, folder, steps),
            }
        }
        _ => Err("usage: device_shapes emit PROGRAM PRECISION TARGET DIR | run PROGRAM PRECISION DIR STEPS".into()),
    }
}

fn resolved(file: &str, precision: &str) -> Outcome<(Resolved, LoadedFiles)> {
    let path = Path::new(file);
    let world = FileWorld::beside(path);
    let options = Options {
        precision: match precision {
            "f64" => Precision::F64,
            _ => Precision::F32,
        },
        ..Options::default()
    };
    let source = read_source(path)?;
    let resolved = load(&world, &source, &options)
        .map_err(|found| found.0.first().map_or("wrong", |d| d.code.0).to_owned())?;
    let files = LoadedFiles::load(&world, &resolved.scheme)?;
    Ok((resolved, files))
}

fn emit(resolved: &Resolved, target: &str, folder: &Path) -> Outcome<()> {
    let library = Library::open()?;
    let gpu = Gpu::named(target).ok_or("no such GPU")?;
    let set = code::kernels(&resolved.scheme).map_err(|_| "too large")?;
    fs::create_dir_all(folder)?;
    for (i, shape) in shapes().into_iter().enumerate() {
        let ptx = code::ptx(library, &resolved.scheme, &set, shape, gpu)?;
        fs::write(folder.join(format!("{i}.ptx")), ptx.text)?;
    }
    Ok(())
}

fn run<T: Value>(
    resolved: &Resolved,
    files: &LoadedFiles,
    folder: &Path,
    steps: u64,
) -> Outcome<()> {
    let Resolved {
        scheme, problem, ..
    } = resolved;
    let set = code::kernels(scheme).map_err(|_| "too large")?;
    let cells = scheme.grid.cell_count();
    let bytes = layerwise_bytes(scheme);
    let found = CudaDevice::open(0)?;
    println!(
        "{}, copies at {:.0} GB/s, {} of {:?} cells, {bytes:.1} bytes per cell-step",
        found.facts().name,
        found.copy_rate()? * 1e-9,
        scheme.precision,
        scheme.grid.cells.0,
    );
    println!("  Gcells/s     GB/s  threads  march unroll ahead blocks");
    drop(found);
    for (i, shape) in shapes().into_iter().enumerate() {
        let device = CudaDevice::open(0)?;
        let Ok(text) = fs::read_to_string(folder.join(format!("{i}.ptx"))) else {
            continue;
        };
        let ptx = Ptx {
            text,
            gpu: code::gpu_of(&device)?.portable(),
        };
        let calculation: Calculation<'_, T> = Calculation::arranged(
            set.layout.clone(),
            scheme,
            problem,
            files,
            threads::available(),
        )
        .map_err(|error| format!("{error:?}"))?;
        let program = DeviceProgram {
            set: &set,
            ptx: &ptx,
            shape,
        };
        let mut simulation = OnDevice::new(calculation, files, &device, program)?;
        let progress = Progress::default();
        let mut until = 2;
        let mut advance = |simulation: &mut OnDevice<'_, T>, count: u64| {
            let start = Instant::now();
            let done = simulation.run(until, &progress);
            until += count;
            done.map(|()| start.elapsed().as_secs_f64())
                .map_err(|error| format!("{error:?}"))
        };
        advance(&mut simulation, steps)?;
        let mut seconds = Vec::new();
        for _ in 0..3 {
            seconds.push(advance(&mut simulation, steps)?);
        }
        seconds.sort_by(f64::total_cmp);
        let rate = cells * steps as f64 / seconds[1];
        println!(
            "{:10.2} {:8.0} {:>8?} {:5} {:6} {:5} {:6}",
            rate * 1e-9,
            rate * bytes * 1e-9,
            shape.threads,
            shape.march,
            shape.unroll,
            shape.ahead,
            shape.blocks,
        );
    }
    Ok(())
}
