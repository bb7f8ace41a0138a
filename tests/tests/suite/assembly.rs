//! NVIDIA's assembler takes the kernels of all examples, and on servers' GPUs no thread needs memory of its own.

use crate::assembler::Assembler;
use crate::gpu::LORENTZ;
use std::path::{Path, PathBuf};
use torre_compiler::backend::gpu::Gpu;
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::driver::load;
use torre_compiler::host::HostExpr;
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::layerwise::Shape;
use torre_compiler::problem::{Problem, Source};
use torre_compiler::resolve::Options;
use torre_compiler::schedule::Template;
use torre_compiler::scheme::{Boundary, Precision, StageId, Update};
use torre_compiler::testing::{Effort, everywhere, maxwell};
use torre_grammar::source::Source as Text;
use torre_runtime::gpu::{DeviceModel, code, l2_partitions};
use torre_runtime::plan::gpu::DevicePlanner;
use torre_runtime::world::{FileWorld, read_source};

/// LLVM, which compiles kernels as it does for users.
fn library() -> Result<&'static Library, torre_compiler::backend::llvm::library::Error> {
    Effort::Full.choose();
    Library::open()
}

#[test]
fn what_measures_latencies_is_assembled() {
    let assembler = Assembler::new();
    for target in ["sm_80", "sm_90", "sm_120"] {
        assembler.check_text(l2_partitions::PTX, target);
    }
}

#[test]
fn kernels_are_assembled_without_spills() {
    let paths = torre_suite::examples();
    let targets = ["sm_80", "sm_90", "sm_120"];
    let Ok(library) = library() else {
        let count = paths.len() * targets.len() * 2;
        eprintln!("skipped: {count} assemblies: no LLVM");
        return;
    };
    let assembler = Assembler::new();
    for path in paths {
        for precision in [Precision::F32, Precision::F64] {
            let world = FileWorld::beside(&path);
            let source = read_source(&path).expect("a text");
            let options = Options {
                precision,
                ..Options::default()
            };
            let scheme = load(&world, &source, &options)
                .expect("an example without errors")
                .scheme;
            let set = code::kernels(&scheme).expect("a size that can be addressed");
            for target in targets {
                let gpu = Gpu::named(target).expect("a known name");
                let shape = Shape::of(&scheme);
                let ptx = code::ptx(library, &scheme, &set, shape, gpu).expect("valid IR");
                let name = format!("{} {precision} {target}", path.display());
                assembler.check(&ptx.text, target, &name);
            }
        }
    }
}

/// A source on the plane of the cells of index 9 along the last axis.
fn plane(update: &Update) -> Source {
    let mut region = update.region;
    region[Axis::INNER] = Interval::new(9, 10);
    Source {
        component: update.target,
        stage: StageId(0),
        region,
        condition: None,
        profile: HostExpr::Number(0.5),
        wave: HostExpr::Time,
        replaces: false,
    }
}

/// A problem of FDTD(4,2) on rows of a length: the GPU, the ends of the axes, and sources on planes across the last
/// axis, after the updates of some components.
struct Towers {
    target: &'static str,
    precision: Precision,
    length: i64,
    ends: [[Boundary; 2]; 3],
    planes: usize,
}

const OPEN: [Boundary; 2] = [Boundary::Zero; 2];
const WALLS: [Boundary; 2] = [Boundary::Pec; 2];
const RING: [Boundary; 2] = [Boundary::Periodic; 2];

/// Towers with these ends and without sources.
fn towers(ends: [[Boundary; 2]; 3], cases: &[(&'static str, Precision, i64)]) -> Vec<Towers> {
    let case = |&(target, precision, length)| Towers {
        target,
        precision,
        length,
        ends,
        planes: 0,
    };
    cases.iter().map(case).collect()
}

/// The towers that are expected to be fastest, by the kind of GPU.
#[test]
fn towers_with_open_ends_are_assembled_without_spills() {
    let cases = towers(
        [OPEN; 3],
        &[
            ("sm_90a", Precision::F32, 256),
            ("sm_90a", Precision::F64, 128),
            ("sm_90", Precision::F32, 256),
            ("sm_80", Precision::F32, 128),
            // One block that rows hardly fit, and blocks that share lines.
            ("sm_90a", Precision::F32, 336),
            ("sm_90a", Precision::F32, 512),
            ("sm_90a", Precision::F32, 1000),
            ("sm_90a", Precision::F64, 256),
        ],
    );
    assemble_towers(&cases, 0);
}

/// Bytes of a thread in memory where mirrors cut rows off: threads of two blocks have 96 registers, and W = 4 is the
/// fastest all the same.
const AT_MIRRORS: u64 = 192;
/// The same with plane sources, for which threads need registers, too.
const WITH_PLANES: u64 = 328;

#[test]
fn towers_with_walls_are_assembled_with_few_spills() {
    let cases = towers(
        [WALLS; 3],
        &[
            ("sm_90a", Precision::F32, 256),
            ("sm_90a", Precision::F64, 128),
            ("sm_90a", Precision::F32, 1000),
            ("sm_90a", Precision::F64, 500),
            ("sm_90", Precision::F32, 1000),
            ("sm_80", Precision::F32, 256),
        ],
    );
    assemble_towers(&cases, AT_MIRRORS);
}

#[test]
fn towers_with_rings_and_planes_are_assembled_with_few_spills() {
    let mut cases = towers([WALLS, RING, WALLS], &[("sm_90a", Precision::F32, 1000)]);
    cases.extend(towers(
        [RING, RING, WALLS],
        &[("sm_90a", Precision::F32, 256)],
    ));
    cases.extend(towers(
        [WALLS, RING, RING],
        &[("sm_90a", Precision::F64, 128)],
    ));
    let mut planes = towers(
        [WALLS; 3],
        &[
            ("sm_90a", Precision::F32, 256),
            ("sm_90a", Precision::F64, 128),
            ("sm_90a", Precision::F32, 512),
        ],
    );
    for (case, planes) in planes.iter_mut().zip([2, 2, 1]) {
        case.planes = planes;
    }
    assemble_towers(&cases, AT_MIRRORS);
    assemble_towers(&planes, WITH_PLANES);
}

/// `spilled`: bytes of a thread that may be in memory.
fn assemble_towers(cases: &[Towers], spilled: u64) {
    let Ok(library) = library() else {
        eprintln!("skipped: {} assemblies: no LLVM", cases.len());
        return;
    };
    let assembler = Assembler::new();
    for case in cases {
        let Towers {
            target,
            precision,
            length,
            ends,
            planes,
        } = *case;
        // Rows of neighbours are far apart.
        let mut scheme = maxwell(4, precision, [1536, 1536, length]);
        scheme.grid.boundary = PerAxis(ends);
        everywhere(&mut scheme);
        let problem = Problem {
            name: "empty".to_owned(),
            steps: 1000,
            sources: scheme.stages[0].updates[..planes]
                .iter()
                .map(plane)
                .collect(),
            ..Problem::default()
        };
        let gpu = Gpu::named(target).expect("a known name");
        let model = DeviceModel::usual(gpu).expect("a usual GPU");
        let planner = DevicePlanner::new(&scheme, &problem, &model).expect("a small grid");
        let (plan, _) = planner.best(&Template::Auto).expect("a plan");
        let name = format!(
            "{} {precision} {length} {planes} {target}",
            plan.choice.name
        );
        let towers = plan.compile_towers(library, &scheme, &model);
        let towers = towers.expect("valid IR").expect("towers are faster");
        assembler.check_up_to(spilled, &towers.ptx.text, target, &name);
    }
}

/// A program whose towers are compiled for a GPU.
struct Planned {
    target: &'static str,
    precision: Precision,
    text: String,
    /// Bytes of a thread that may be in memory.
    spilled: u64,
}

/// The towers that are expected to be fastest for some programs.
fn assemble_planned(cases: &[Planned]) {
    let Ok(library) = library() else {
        eprintln!("skipped: {} assemblies: no LLVM", cases.len());
        return;
    };
    let assembler = Assembler::new();
    for case in cases {
        let Planned {
            target,
            precision,
            text,
            spilled,
        } = case;
        let options = Options {
            precision: *precision,
            ..Options::default()
        };
        let world = FileWorld::beside(Path::new("."));
        let resolved = load(&world, &Text::new("layers", text), &options);
        let resolved = resolved.expect("a problem without errors");
        let (scheme, problem) = (&resolved.scheme, &resolved.problem);
        let gpu = Gpu::named(target).expect("a known name");
        let model = DeviceModel::usual(gpu).expect("a usual GPU");
        let planner = DevicePlanner::new(scheme, problem, &model).expect("a small grid");
        let (plan, _) = planner.best(&Template::Auto).expect("a plan");
        let name = format!("{} {precision} {target} {text}", plan.choice.name);
        let towers = plan.compile_towers(library, scheme, &model);
        let towers = towers.expect("valid IR");
        let towers = towers.unwrap_or_else(|| panic!("{name}: towers are faster"));
        assembler.check_up_to(*spilled, &towers.ptx.text, target, &name);
    }
}

/// Absorbing layers on all sides, and on the sides of one axis.
#[test]
fn towers_with_layers_are_assembled_without_spills() {
    let all = "x: cpml(10), y: cpml(10), z: cpml(10)";
    let cases = [
        ("sm_90a", Precision::F32, "maxwell42", 256, all),
        ("sm_90a", Precision::F64, "maxwell42", 128, all),
        ("sm_90a", Precision::F32, "maxwell42", 768, all),
        ("sm_90a", Precision::F64, "maxwell42", 512, all),
        ("sm_90a", Precision::F32, "maxwell22", 512, all),
        ("sm_90a", Precision::F64, "maxwell22", 256, all),
        ("sm_80", Precision::F32, "maxwell42", 256, all),
        (
            "sm_90a",
            Precision::F32,
            "maxwell42",
            256,
            "x: cpml(10), z: pec",
        ),
    ];
    let cases = cases.map(|(target, precision, name, length, sides)| Planned {
        target,
        precision,
        text: format!(
            "use std::maxwell::{name}\nproblem p {{\n  scheme {name}\n  domain 768 x 768 x {length}\n  boundary \
             {sides}\n  steps 1000\n}}\n"
        ),
        spilled: 0,
    });
    assemble_planned(&cases);
}

/// A medium with memory in half of the grid, whose states follow old values of fields.
#[test]
fn towers_with_states_that_follow_old_values_are_assembled_without_spills() {
    let body = |sides: &str| {
        format!(
            "use std::maxwell::maxwell42
use std::curl::curl
{LORENTZ}
scheme dispersive : maxwell42 {{
  region body = x > 384
  step {{
    E += dt * (curl(H, order) - [lorentz(E.x, body, dt), lorentz(E.y, body, dt), lorentz(E.z, body, dt)])
  }}
}}
problem p {{
  scheme dispersive
  domain 768 x 768 x 256
  boundary {sides}
  steps 1000
}}
"
        )
    };
    // Without warps that pass registers on, eight values of the variant with the medium lie in memory.
    let cases = [
        ("sm_90a", "all: zero", 0),
        ("sm_90a", "all: cpml(10)", 0),
        ("sm_80", "all: zero", 32),
    ];
    let cases = cases.map(|(target, sides, spilled)| Planned {
        target,
        precision: Precision::F32,
        text: body(sides),
        spilled,
    });
    assemble_planned(&cases);
}

/// The pyramids that are expected to be fastest for programs with one or two axes, on grids of any size: large ones,
/// and small ones whose tiles stay on the chip. A sixth of them spill, and none more than an eighth of the registers of
/// a thread.
#[test]
fn pyramids_are_assembled_with_few_spills() {
    let Ok(library) = library() else {
        eprintln!("skipped: the assemblies of pyramids: no LLVM");
        return;
    };
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/planar"));
    let large = std::fs::read_dir(folder).expect("a folder");
    let large = large.map(|file| file.expect("a file").path());
    let large = large.filter(|path| path.extension().is_some_and(|e| e == "torre"));
    let large: Vec<PathBuf> = large.collect();
    let (single, double) = (Precision::F32, Precision::F64);
    let mut cases = Vec::new();
    for path in &large {
        for precision in [single, double] {
            let sizes: &[i64] = match path.file_stem().and_then(|name| name.to_str()) {
                Some("layers" | "heat") => &[512, 1024, 4096, 8192],
                _ => &[8192],
            };
            cases.extend(sizes.iter().map(|n| (path.clone(), precision, *n)));
        }
    }
    let examples = torre_suite::examples().into_iter();
    cases.extend(examples.map(|path| (path, single, 0)));
    let assembler = Assembler::new();
    let (mut found, mut spilling) = (0, Vec::new());
    for (path, precision, size) in cases {
        let source = read_source(&path).expect("a text");
        let domain = format!("{size} x {size}");
        let text = source.text().replace("8192 x 8192", &domain);
        let options = Options {
            precision,
            ..Options::default()
        };
        let source = Text::new(source.name(), text);
        let resolved = load(&FileWorld::beside(&path), &source, &options);
        let resolved = resolved.expect("a program without errors");
        let (scheme, problem) = (&resolved.scheme, &resolved.problem);
        if scheme.grid.dimensions() == 3 {
            continue;
        }
        let gpu = Gpu::named("sm_90").expect("a known name");
        let model = DeviceModel::usual(gpu).expect("a usual GPU");
        let planner = DevicePlanner::new(scheme, problem, &model).expect("a grid");
        let (plan, _) = planner.best(&Template::Auto).expect("a plan");
        let blocks = plan.compile_blocks(library, scheme, &model);
        let Some(blocks) = blocks.expect("valid IR") else {
            continue;
        };
        found += 1;
        let name = &plan.choice.name;
        let name = format!("{} {precision} {size} {name}", path.display());
        let Some(bytes) = assembler.frames(&blocks.ptx().text, "sm_90", &name) else {
            continue;
        };
        if bytes > 0 {
            let shape = plan.patches().expect("pyramids").program.shape;
            let threads = shape.all_threads() as u64 * u64::from(shape.blocks.max(1));
            let registers = (u64::from(gpu.registers) / threads).min(255);
            let name = format!("{name}: {bytes} bytes, {shape:?}");
            assert!(2 * bytes <= registers, "{name}");
            spilling.push(name);
        }
    }
    assert!(found > 2 * large.len(), "{found}");
    assert!(5 * spilling.len() <= found, "{found}: {spilling:#?}");
}
