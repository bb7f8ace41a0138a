//! Measures the back ends: how long they compile, and how fast their kernels run where the data lie in a level-2 cache,
//! in a level-3 cache and in memory. One thread, layerwise. `cargo run --release -p torre-compiler --features testing
//! --example row_kernels`

use std::hint::black_box;
#[cfg(feature = "cranelift")]
use torre_compiler::backend::cranelift::{CraneliftCode, Features};
use torre_compiler::backend::llvm::cpu::{LlvmCode, Shape};
use torre_compiler::backend::llvm::library::{Cpu, Library};
use torre_compiler::kernel::{Code, KernelSet, RowKernel, Run, UpdateSet};
use torre_compiler::lattice::Interval;
use torre_compiler::layout::Layout;
use torre_compiler::scheme::{Precision, Scheme, ZoneSet};
use torre_compiler::testing::{Memory, Rng, elasticity, maxwell};

/// A scheme for a number of cells.
type Make<'a> = &'a dyn Fn([i64; 3]) -> Scheme;

fn kernels(scheme: &Scheme) -> KernelSet {
    let kernels = scheme.stage_ids().map(|stage| RowKernel {
        stage,
        phase: 0,
        updates: UpdateSet::all(scheme.stages[stage.index()].updates.len()),
        zones: ZoneSet::default(),
    });
    let layout = Layout::new(scheme).expect("a size that can be addressed");
    KernelSet::new(scheme, layout, kernels)
}

/// Nanoseconds that this thread has run, so that other work on the machine counts less.
fn running() -> f64 {
    // The kernel brings the figure up to date when the thread gives way.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let field = text.split_whitespace().next();
    field.and_then(|n| n.parse().ok()).unwrap_or(0.0)
}

/// Cycles per nanosecond, from a chain of multiplications of three cycles each.
fn clock() -> f64 {
    let n = 100_000_000u64;
    let start = running();
    let mut x = black_box(3u64);
    for _ in 0..n {
        x = x.wrapping_mul(black_box_register(x));
    }
    black_box(x);
    3.0 * n as f64 / (running() - start)
}

/// Hides a value from the optimiser without a trip to memory.
fn black_box_register(mut x: u64) -> u64 {
    // SAFETY: the empty assembly only claims to change the register.
    unsafe { std::arch::asm!("/* {0} */", inout(reg) x, options(nomem, nostack, preserves_flags)) };
    x
}

fn compile(name: &str, scheme: &Scheme, mut make: impl FnMut(&KernelSet) -> Box<dyn Code>) {
    let set = kernels(scheme);
    let times = (0..7).map(|_| {
        let start = running();
        drop(black_box(make(&set)));
        (running() - start) * 1e-6
    });
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    println!("  compile {name:28} {:7.2} ms", times[times.len() / 2]);
}

/// Nanoseconds per cell and step, best of some.
fn run(scheme: &Scheme, code: &dyn Code) -> f64 {
    let set = kernels(scheme);
    let mut memory = Memory::new(&set.layout);
    memory.fill(&mut Rng::new(1), 0);
    let [nx, ny, nz] = scheme.grid.cells.0;
    let cells = (nx * ny * nz) as f64;
    let steps = ((4e7 / cells) as usize).max(2);
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = running();
        for _ in 0..steps {
            for kernel in 0..set.kernels.len() {
                for x in 0..nx {
                    let group = memory.pointer(set.layout.group(x, 0));
                    let run = Run {
                        offset: 0,
                        groups: ny,
                    };
                    // SAFETY: the range is the domain of the layout.
                    unsafe { code.run(kernel, group, &[run], Interval::new(0, nz)) };
                }
            }
        }
        best = best.min((running() - start) / steps as f64);
    }
    best / cells
}

fn main() {
    let library = Library::open().expect("an LLVM");
    let cpu = Cpu::host(library).expect("this processor");
    let filter = std::env::args().nth(1).unwrap_or_default();
    let ghz = clock();
    println!("{} at {ghz:.2} GHz", cpu.target.cpu);
    let shapes: Vec<Shape> = [
        (128, false),
        (256, false),
        (256, true),
        (512, false),
        (512, true),
    ]
    .into_iter()
    .filter(|s| s.0 <= cpu.vector_bits)
    .map(|(vector_bits, window)| Shape {
        vector_bits,
        window,
    })
    .collect();
    for precision in [Precision::F32, Precision::F64] {
        let half = if precision == Precision::F64 { 2 } else { 1 };
        let schemes: [(&str, Make); 3] = [
            ("maxwell 2", &|cells| maxwell(2, precision, cells)),
            ("maxwell 4", &|cells| maxwell(4, precision, cells)),
            ("elasticity", &|cells| elasticity(precision, cells)),
        ];
        for (name, make) in schemes {
            let title = format!("{name} {precision}");
            if !title.contains(&filter) {
                continue;
            }
            println!("{title}");
            let scheme = make([4, 4, 64]);
            #[cfg(feature = "cranelift")]
            compile("Cranelift", &scheme, |set| {
                Box::new(CraneliftCode::new(&scheme, set, Features::Host).expect("valid code"))
            });
            for &shape in &shapes {
                compile(&format!("{shape:?}"), &scheme, |set| {
                    let code = LlvmCode::with_shape(library, &cpu, shape, &scheme, set);
                    Box::new(code.expect("valid IR"))
                });
            }
            let sizes = [
                ("L2", [6, 8, 256 / half]),
                ("L3", [40, 40, 256 / half]),
                ("DRAM", [128, 160, 320 / half]),
            ];
            for (level, cells) in sizes {
                let scheme = make(cells);
                let bytes = kernels(&scheme).layout.bytes() as f64 / 1e6;
                let report = |name: &str, code: &dyn Code| {
                    let ns = run(&scheme, code);
                    println!(
                        "  {level:4} {bytes:6.1} MB {name:10} {:7.1} Mcell/s, {:6.1} cycles per 16 cells",
                        1e3 / ns,
                        ns * 16.0 * ghz,
                    );
                };
                #[cfg(feature = "cranelift")]
                report(
                    "Cranelift",
                    &CraneliftCode::new(&scheme, &kernels(&scheme), Features::Host)
                        .expect("valid code"),
                );
                for &shape in &shapes {
                    let code =
                        LlvmCode::with_shape(library, &cpu, shape, &scheme, &kernels(&scheme))
                            .expect("valid IR");
                    let window = if shape.window { " window" } else { "" };
                    report(&format!("{}{window}", shape.vector_bits), &code);
                }
            }
        }
    }
}
