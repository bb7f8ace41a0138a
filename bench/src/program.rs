//! From a case to code that runs.

use crate::cases::{Case, noise, pulse};
use crate::machine::Cores;
use crate::tiling::Tiles;
use std::collections::BTreeSet;
use std::time::Instant;
#[cfg(feature = "cranelift")]
use torre_compiler::backend::cranelift::{CraneliftCode, Features};
use torre_compiler::backend::interp::Interp;
use torre_compiler::backend::llvm::cpu::LlvmCode;
use torre_compiler::backend::llvm::library::{Cpu, Library};
use torre_compiler::kernel::{
    Code, KernelSet, RowKernel, UpdateSet, layerwise_kernels, stage_boxes,
};
use torre_compiler::lattice::Axis;
use torre_compiler::layout::Layout;
use torre_compiler::real::Real;
use torre_compiler::resolve::{Options, Resolved, resolve};
use torre_compiler::scheme::{ComponentId, Precision, Scheme, ZoneSet};
use torre_compiler::statics::NoFiles;
use torre_compiler::world::{ArrayInfo, World};
use torre_grammar::diag::Diagnostics;
use torre_grammar::source::Source;
use torre_runtime::host::{Calculation, Execution, measure};
use torre_runtime::simulation::Progress;

include!("../../stdlib/index.rs");

/// The standard library and nothing else.
struct Standard;

impl World for Standard {
    fn module(&self, _: &Source, path: &[&str]) -> Option<Source> {
        let ["std", name] = path else { return None };
        let (_, text) = MODULES.iter().find(|(n, _)| n == name)?;
        Some(Source::new(path.join("::"), *text))
    }

    fn array(&self, _: &Source, _: &str) -> Result<ArrayInfo, String> {
        Err("there are no files here".to_string())
    }

    fn table(&self, _: &Source, _: &str) -> Result<String, String> {
        Err("there are no files here".to_string())
    }
}

/// The calculation of a case on a grid.
pub fn load(case: &Case, precision: Precision, cells: &[i64]) -> Result<Resolved, String> {
    load_for(case, precision, cells, 1)
}

/// The same for a given number of steps, for which waves of sources are computed.
pub fn load_for(
    case: &Case,
    precision: Precision,
    cells: &[i64],
    steps: u64,
) -> Result<Resolved, String> {
    let source = Source::new(format!("{}.torre", case.name), case.text);
    let domain: Vec<String> = cells.iter().map(i64::to_string).collect();
    let overrides = [("domain", domain.join("x")), ("steps", steps.to_string())];
    let options = Options {
        precision,
        overrides: overrides
            .map(|(name, value)| (name.to_string(), value))
            .to_vec(),
        ..Options::default()
    };
    let ast = torre_grammar::parse(&source).map_err(|d| messages(&d))?;
    resolve(&Standard, &source, &ast, &options).map_err(|d| messages(&d))
}

/// The errors of a text, in a line.
pub fn messages(diagnostics: &Diagnostics) -> String {
    let messages = diagnostics.0.iter().map(|d| d.message.as_str());
    messages.collect::<Vec<_>>().join("; ")
}

/// A set of kernels with its code.
pub struct Compiled {
    pub set: KernelSet,
    pub code: Box<dyn Code>,
}

/// The kernels of a case.
pub struct Kernels {
    /// A layerwise run has its own.
    layerwise: Compiled,
    pub tiles: Compiled,
}

impl Kernels {
    pub fn new(backend: Backend, scheme: &Scheme, tilings: &[Tiles]) -> Result<Kernels, String> {
        let compiled = |set| -> Result<Compiled, String> {
            Ok(Compiled {
                code: backend.compile(scheme, &set)?,
                set,
            })
        };
        let layout = Layout::new(scheme).map_err(|_| TOO_LARGE.to_string())?;
        let layerwise = layerwise_kernels(scheme, layout);
        Ok(Kernels {
            layerwise: compiled(layerwise)?,
            tiles: compiled(kernels(scheme, tilings)?)?,
        })
    }
}

const TOO_LARGE: &str = "the grid is too large";

/// All kernels that a layerwise run and some tilings need: each set of updates that may run together, in each phase.
pub fn kernels(scheme: &Scheme, tilings: &[Tiles]) -> Result<KernelSet, String> {
    let layout = Layout::new(scheme).map_err(|_| TOO_LARGE.to_string())?;
    let mut kernels = BTreeSet::new();
    for stage in scheme.stage_ids() {
        let mut sets: BTreeSet<UpdateSet> = stage_boxes(scheme, stage)
            .iter()
            .map(|b| b.updates)
            .collect();
        for tiles in tilings {
            let classes = &tiles.program.stages[stage.index()];
            let all = 0..1u32 << classes.len().min(16);
            // Beyond a few classes, tiles run one class at a time where not all run.
            let wanted = all
                .filter(|set| classes.len() <= 4 || set.count_ones() == 1)
                .chain([u32::MAX]);
            for set in wanted {
                let mut updates = UpdateSet::default();
                let members = classes.iter().enumerate();
                for (_, class) in members.filter(|(i, _)| set >> i.min(&31) & 1 == 1) {
                    updates.0 |= class.updates.0;
                }
                sets.insert(updates);
            }
        }
        for updates in sets.into_iter().filter(|s| !s.is_empty()) {
            kernels.extend((0..scheme.phases()).map(|phase| RowKernel {
                stage,
                phase,
                updates,
                zones: ZoneSet::default(),
            }));
        }
    }
    Ok(KernelSet::new(scheme, layout, kernels))
}

/// The back end that makes code of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Llvm,
    Cranelift,
    Interp,
}

impl Backend {
    pub fn parse(text: &str) -> Option<Backend> {
        match text {
            "llvm" => Some(Backend::Llvm),
            "cranelift" => Some(Backend::Cranelift),
            "interp" => Some(Backend::Interp),
            _ => None,
        }
    }

    pub fn compile(self, scheme: &Scheme, set: &KernelSet) -> Result<Box<dyn Code>, String> {
        match self {
            Backend::Llvm => {
                let library = Library::open().map_err(|e| e.to_string())?;
                let cpu = Cpu::host(library).map_err(|e| e.to_string())?;
                let code = LlvmCode::new(library, &cpu, scheme, set).map_err(|e| e.to_string())?;
                Ok(Box::new(code))
            }
            #[cfg(feature = "cranelift")]
            Backend::Cranelift => {
                let code = CraneliftCode::new(scheme, set, Features::Host);
                Ok(Box::new(code.map_err(|e| e.to_string())?))
            }
            #[cfg(not(feature = "cranelift"))]
            Backend::Cranelift => Err("built without Cranelift".to_string()),
            Backend::Interp => Ok(Box::new(Interp::new(scheme, set))),
        }
    }
}

/// The start values of a calculation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Noise,
    /// A Gaussian in the first field amid zeros, at whose front values are tiny.
    Pulse,
}

/// A calculation with its code.
pub struct Running<'a, T> {
    pub calculation: Calculation<'a, T>,
    kernels: &'a Kernels,
    /// The component and age of each field of the baseline.
    fields: Vec<(ComponentId, u8)>,
}

impl<'a, T: Real> Running<'a, T> {
    pub fn new(
        case: &Case,
        resolved: &'a Resolved,
        kernels: &'a Kernels,
        threads: usize,
    ) -> Result<Self, String> {
        let Resolved {
            scheme, problem, ..
        } = resolved;
        let mut fields = Vec::new();
        for (name, age) in case.fields {
            let id = scheme
                .component_ids()
                .find(|id| scheme.component(*id).name == *name)
                .ok_or_else(|| format!("the scheme has no component {name}"))?;
            fields.push((id, *age));
        }
        let mut calculation = Calculation::new(scheme, problem, &NoFiles, threads)
            .map_err(|e| format!("cannot start: {e:?}"))?;
        calculation.blocking = measure::machine(threads).blocking();
        let mut running = Self {
            calculation,
            kernels,
            fields,
        };
        running.start(Start::Noise)?;
        Ok(running)
    }

    /// Starts anew, at step 0.
    pub fn start(&mut self, start: Start) -> Result<(), String> {
        let scheme = self.calculation.scheme;
        let cells = scheme.grid.cells;
        let number = |id, age| self.fields.iter().position(|f| *f == (id, age));
        self.calculation.restore(0, |id, age, x, y, row: &mut [T]| {
            let field = number(id, age)
                .ok_or_else(|| format!("the baseline lacks {}", scheme.component(id).name))?;
            for (z, value) in row.iter_mut().enumerate() {
                let at = [x, y, z as i64];
                *value = match start {
                    Start::Noise => T::from_f64(noise(field as u32, at)),
                    // As start values of problems are.
                    Start::Pulse => T::from_f64(pulse(field as u32, at, cells.0)).flush(),
                };
            }
            Ok::<(), String>(())
        })
    }

    /// Advances some steps; seconds.
    pub fn run(&mut self, tiles: Option<&Tiles>, threads: usize, steps: u64, cores: &Cores) -> f64 {
        let (execution, Compiled { set, code }) = match tiles {
            Some(tiles) => (
                &Execution::Tiles(tiles.program.clone()),
                &self.kernels.tiles,
            ),
            None => (&Execution::Layerwise, &self.kernels.layerwise),
        };
        let until = self.calculation.steps() + steps;
        let calculation = &mut self.calculation;
        cores.pinned(threads, || {
            let start = Instant::now();
            calculation
                .run(
                    set,
                    &**code,
                    execution,
                    threads,
                    until,
                    &Progress::default(),
                )
                .expect("as many threads as cores");
            start.elapsed().as_secs_f64()
        })
    }

    /// Field `index` of the baseline, its inner axis last.
    pub fn field(&self, index: usize) -> Vec<f64> {
        let (id, age) = self.fields[index];
        let extent = self.calculation.scheme.extent(id);
        let (outer, middle) = (extent[Axis::OUTER], extent[Axis::MIDDLE]);
        let mut values = Vec::with_capacity(extent.volume() as usize);
        for x in outer.lo..outer.hi {
            for y in middle.lo..middle.hi {
                let row = self.calculation.aged_row(id, age, x, y);
                values.extend(row.iter().map(|v| v.to_f64()));
            }
        }
        values
    }
}
