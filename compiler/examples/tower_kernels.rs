//! Writes tower kernels, for a look at them and for measurements: `tower_kernels SCHEME PRECISION NX NY NZ WIDTH GPU [OPTION...]`.
//!
//! Prints the PTX, or the IR with the option `ir`. With `out=PREFIX` it writes instead PREFIX.ptx, PREFIX.txt (sizes and starts of kernels,
//! those of a layerwise run, too), PREFIX.tasks and PREFIX.lists (of each start, for one partition) for time blocks of `periods=N` periods in strips of `strip=N` tiles that overlap by `overlap=N` columns. Other options: `zero` (zeros beyond all
//! ends), `direct` (coefficients are not kept), `registers=N`, `shift` (registers are moved), `single` (kernels for single towers),
//! `parts=N` (blocks share lines), `spans=N` (lines are cut into spans, for blocks of N warps that compute), `room=N` (bytes of shared memory of a block), `patient`, `sheets=E.z,H.x` (sources in many columns of
//! cells).

use std::fmt::Write;
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::backend::nvptx::{Gpu, Module, Ptx, compile, layerwise, tower};
use torre_compiler::cone::{Rational, cones};
use torre_compiler::kernel::{KernelSet, RowKernel, UpdateSet};
use torre_compiler::lattice::PerAxis;
use torre_compiler::layout::Layout;
use torre_compiler::schedule::{Cut, Frame, Level, Tiling};
use torre_compiler::scheme::{Boundary, ComponentId, Precision, Scheme, StageId};
use torre_compiler::testing::{elasticity, maxwell};
use torre_compiler::tile::residency::{Towers, towers};
use torre_compiler::tile::{TileProgram, lower};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn scheme(name: &str, precision: Precision, cells: [i64; 3], zero: bool) -> Scheme {
    let mut scheme = match name {
        "elastic" => elasticity(precision, cells),
        "maxwell2" => maxwell(2, precision, cells),
        _ => maxwell(4, precision, cells),
    };
    if zero {
        scheme.grid.boundary = PerAxis::splat([Boundary::Zero; 2]);
        for update in scheme.stages.iter_mut().flat_map(|s| &mut s.updates) {
            let position = scheme.components[update.target.index()].position;
            update.region = scheme.grid.live(position);
        }
    }
    scheme
}

/// A source in many columns of cells for each component that is named.
fn sheets(scheme: &Scheme, names: &str) -> Vec<tower::Acting> {
    let of = |name: &str| {
        let named = |id: &ComponentId| scheme.component(*id).name == name;
        let component = scheme.component_ids().find(named)?;
        let updates = |stage: &StageId| {
            let updates = &scheme.stages[stage.index()].updates;
            updates.iter().any(|u| u.target == component)
        };
        let stage = scheme.stage_ids().find(updates)?;
        Some(tower::Acting { stage, component })
    };
    names.split(',').filter_map(of).collect()
}

fn tiles(scheme: &Scheme, width: f64) -> Outcome<TileProgram> {
    let frame = Frame::new(scheme, &cones(scheme));
    let pitch = Rational::new((2.0 * width) as i64, 2).ok_or("a width")?;
    let cut = |form| Cut {
        face: frame.fitting(PerAxis(form)),
        pitch,
    };
    let cuts = vec![cut([1, 1, 0]), cut([1, -1, 0])];
    let tiling = Tiling {
        height: 1 << 20,
        levels: vec![Level { cuts }],
    };
    Ok(lower(scheme, &frame, &tiling))
}

/// What a program needs to know that starts the kernels.
fn sizes(
    scheme: &Scheme,
    set: &KernelSet,
    towers: &Towers,
    kernels: &tower::Kernels,
    periods: u64,
    tasks: usize,
) -> Outcome<String> {
    let layout = &set.layout;
    let flow = kernels.flow.as_ref().ok_or("the towers are not adjacent")?;
    let cells = scheme.grid.cells;
    let mut out = String::new();
    writeln!(out, "cells {} {} {}", cells.0[0], cells.0[1], cells.0[2])?;
    writeln!(out, "bytes {} {}", layout.element_bytes, layout.elements)?;
    let [x, y, _] = layout.stride.0;
    writeln!(
        out,
        "layout {} {x} {y} {}",
        layout.group(0, 0),
        layout.row_stride
    )?;
    for id in scheme.component_ids() {
        let live = scheme.grid.live(scheme.component(id).position);
        let [x, y, z] = live.0;
        let row = layout.row(id, 0).0;
        writeln!(
            out,
            "row {row} {} {} {} {} {} {}",
            x.lo, x.hi, y.lo, y.hi, z.lo, z.hi
        )?;
    }
    let stages = periods * towers.steps * scheme.stages.len() as u64;
    writeln!(
        out,
        "time block {periods} {} {stages} {tasks}",
        periods * towers.steps
    )?;
    writeln!(
        out,
        "flow {} {} {} {}",
        flow.symbol, flow.threads, flow.shared, flow.cluster
    )?;
    for kernel in &set.kernels {
        let updates: Vec<_> = kernel.updates(scheme).collect();
        let region = updates.first().ok_or("a stage without updates")?.region;
        let shape = layerwise::Shape::of(scheme);
        let start = layerwise::start(scheme, set, shape, region, 132 * 2048).ok_or("too long")?;
        let words = [start.blocks, start.threads].concat();
        let words: Vec<String> = words.iter().map(u32::to_string).collect();
        let params: Vec<String> = start.params.iter().map(i32::to_string).collect();
        writeln!(
            out,
            "layer torre_{kernel} {} {} {}",
            words.join(" "),
            start.element,
            params.join(" ")
        )?;
    }
    Ok(out)
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, precision, nx, ny, nz, width, gpu, rest @ ..] = args.as_slice() else {
        return Err("seven arguments are needed".into());
    };
    let has = |name: &str| rest.iter().any(|r| r == name);
    let value = |name: &str| rest.iter().find_map(|r| r.strip_prefix(name));
    let precision = match precision.as_str() {
        "f64" => Precision::F64,
        _ => Precision::F32,
    };
    let cells = [nx.parse()?, ny.parse()?, nz.parse()?];
    let scheme = scheme(name, precision, cells, has("zero"));
    let program = tiles(&scheme, width.parse()?)?;
    let layout = Layout::for_gpu(&scheme).map_err(|_| "too large")?;
    let towers = towers(&scheme, &layout, &program)?;
    let options = tower::Options {
        direct: has("direct"),
        registers: value("registers=").map_or(Ok(0), str::parse)?,
        shift: has("shift"),
        single: has("single"),
        parts: value("parts=").map_or(Ok(1), str::parse)?,
        spans: value("spans=").map(str::parse).transpose()?,
        room: value("room=").map_or(Ok(u32::MAX), str::parse)?,
        patient: has("patient"),
        ..tower::Options::default()
    };
    let mut module = Module::new();
    let sheets = sheets(&scheme, value("sheets=").unwrap_or_default());
    let kernels = tower::emit(&mut module, &scheme, &layout, &towers, &sheets, options);
    let kernels = kernels.ok_or("too long")?;
    for kernel in &kernels.towers {
        eprintln!(
            "{} threads {} shared {} slots {} carried {} loads {}",
            kernel.symbol,
            kernel.threads,
            kernel.shared,
            kernel.plan.slots,
            kernel.plan.carried.len(),
            kernel.plan.loads()
        );
    }
    if let Some(flow) = &kernels.flow {
        eprintln!("{flow:?}");
    }
    eprintln!(
        "moved {:?}, {} bytes per cell-step",
        towers.moved(),
        towers.bytes_per_cell(&scheme)
    );
    if has("ir") {
        print!("{}", module.text());
        return Ok(());
    }
    let library = Library::open()?;
    let gpu = Gpu::named(gpu).ok_or("an unknown GPU")?;
    let Some(prefix) = value("out=") else {
        print!("{}", compile(library, &module, gpu)?.text);
        return Ok(());
    };
    let periods = value("periods=").map_or(Ok(16), str::parse)?;
    let order = tower::Order {
        width: value("strip=").map_or(Ok(8), str::parse)?,
        overlap: value("overlap=").map_or(Ok(0), str::parse)?,
        lead: value("lead=").map_or(Ok(0), str::parse)?,
        partitions: 1,
    };
    let list = tower::tasks(&scheme, &layout, &towers, periods, order).ok_or("too large")?;
    let lists = (0..list.starts.len()).map(|start| list.lists(start, &[]).ok_or("too large"));
    let lists: Vec<Vec<i32>> = lists.collect::<Result<_, _>>()?;
    let tasks = list.tasks;
    let kernel = |stage| RowKernel {
        stage,
        phase: 0,
        updates: UpdateSet::all(scheme.stages[stage.index()].updates.len()),
    };
    let set = KernelSet {
        layout,
        kernels: scheme.stage_ids().map(kernel).collect(),
    };
    layerwise::emit(&mut module, &scheme, &set, layerwise::Shape::of(&scheme));
    let Ptx { text, .. } = compile(library, &module, gpu)?;
    let bytes = |words: &mut dyn Iterator<Item = i32>| -> Vec<u8> {
        words.flat_map(i32::to_le_bytes).collect()
    };
    std::fs::write(format!("{prefix}.ptx"), text)?;
    std::fs::write(
        format!("{prefix}.tasks"),
        bytes(&mut tasks.iter().flat_map(tower::Task::words)),
    )?;
    std::fs::write(
        format!("{prefix}.lists"),
        bytes(&mut lists.into_iter().flatten()),
    )?;
    let whole: i64 = tasks
        .iter()
        .map(|t| i64::from(t.whole[1] - t.whole[0]))
        .sum();
    let all: i64 = tasks.iter().map(|t| i64::from(t.end - t.first)).sum();
    eprintln!("{} tasks, {} of {all} periods whole", tasks.len(), whole);
    let text = sizes(&scheme, &set, &towers, &kernels, periods, tasks.len())?;
    std::fs::write(format!("{prefix}.txt"), text)?;
    Ok(())
}
