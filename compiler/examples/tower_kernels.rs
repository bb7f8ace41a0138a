//! Prints the PTX of tower kernels: `tower_kernels SCHEME PRECISION NX NY NZ WIDTH GPU [direct] [registers=N] [ir]`.

use torre_compiler::backend::llvm::library::Library;
use torre_compiler::backend::nvptx::{Gpu, Module, compile, tower};
use torre_compiler::cone::{Rational, cones};
use torre_compiler::lattice::PerAxis;
use torre_compiler::layout::Layout;
use torre_compiler::schedule::{Cut, Frame, Level, Tiling};
use torre_compiler::scheme::{Boundary, Precision};
use torre_compiler::testing::{elasticity, maxwell};
use torre_compiler::tile::{lower, residency};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, precision, nx, ny, nz, width, gpu, rest @ ..] = args.as_slice() else {
        return Err("seven arguments are needed".into());
    };
    let precision = match precision.as_str() {
        "f64" => Precision::F64,
        _ => Precision::F32,
    };
    let cells = [nx.parse()?, ny.parse()?, nz.parse()?];
    let mut scheme = match name.as_str() {
        "elastic" => elasticity(precision, cells),
        "maxwell2" => maxwell(2, precision, cells),
        _ => maxwell(4, precision, cells),
    };
    if rest.iter().any(|r| r == "zero") {
        scheme.grid.boundary = PerAxis::splat([Boundary::Zero; 2]);
        for stage in &mut scheme.stages {
            for update in &mut stage.updates {
                let position = scheme.components[update.target.index()].position;
                update.region = scheme.grid.live(position);
            }
        }
    }
    let cones = cones(&scheme);
    let frame = Frame::new(&scheme, &cones);
    let period = Rational::new((2.0 * width.parse::<f64>()?) as i64, 2).ok_or("a width")?;
    let cut = |form| Cut {
        face: frame.fitting(PerAxis(form)),
        period,
    };
    let cuts = vec![cut([1, 1, 0]), cut([1, -1, 0])];
    let tiling = Tiling {
        height: 1 << 20,
        levels: vec![Level { cuts }],
    };
    let program = lower(&scheme, &frame, &tiling);
    let layout = Layout::new(&scheme).map_err(|_| "too large")?;
    let towers = residency::towers(&scheme, &layout, &program)?;
    let registers = rest
        .iter()
        .find_map(|r| r.strip_prefix("registers=")?.parse().ok());
    let options = tower::Options {
        direct: rest.iter().any(|r| r == "direct"),
        registers: registers.unwrap_or(0),
        ..tower::Options::default()
    };
    let mut module = Module::new();
    let kernels = tower::emit(&mut module, &scheme, &layout, &towers, options).ok_or("too long")?;
    for kernel in &kernels {
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
    eprintln!(
        "moved {:?} bytes per cell-step {}",
        towers.moved(),
        towers.bytes_per_cell(&scheme)
    );
    if rest.iter().any(|r| r == "ir") {
        print!("{}", module.text());
        return Ok(());
    }
    let library = Library::open()?;
    let gpu = Gpu::named(gpu).ok_or("an unknown GPU")?;
    print!("{}", compile(library, &module, gpu)?.text);
    Ok(())
}
