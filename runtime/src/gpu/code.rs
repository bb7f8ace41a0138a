//! From a scheme to kernels on a device, and the list of starts that a step is.

use super::device::{Address, Device, DeviceError, Function, Threads};
use super::step_tables::{corrected_rows, probe_places, row_copies, source_groups};
use torre_compiler::backend::gpu::abi::{
    AddSources, Argument, CellGhost, CopyRows, CorrectRows, CorrectedRow, CorrectionTable, RowCopy,
    RowGhost, SourceCell,
};
use torre_compiler::backend::gpu::layerwise::{self, Start, ZoneAct, ZoneKernel};
use torre_compiler::backend::gpu::{Gpu, Module, Ptx, compile, service};
use torre_compiler::backend::llvm::library::{Error, Library};
use torre_compiler::injection::Injections;
use torre_compiler::kernel::{KernelSet, RowKernel, layerwise_kernels, stage_boxes};
use torre_compiler::lattice::Axis;
use torre_compiler::layerwise::Shape;
use torre_compiler::layout::{Layout, TooLarge};
use torre_compiler::problem::Problem;
use torre_compiler::scheme::{Scheme, StageId, ZoneSet};

/// The kernels that a layerwise run on a device needs, for values as [`Layout::for_gpu`] arranges them.
pub fn kernels(scheme: &Scheme) -> Result<KernelSet, TooLarge> {
    Ok(layerwise_kernels(scheme, Layout::for_gpu(scheme)?))
}

/// The kernels of a layerwise run as IR, with the kernels for the work around them.
pub fn module(scheme: &Scheme, set: &KernelSet, shape: Shape) -> Module {
    let mut module = Module::new();
    layerwise::emit(&mut module, scheme, set, shape);
    service::emit(&mut module, scheme.precision);
    module
}

/// The same as PTX.
pub fn ptx(
    library: &Library,
    scheme: &Scheme,
    set: &KernelSet,
    shape: Shape,
    gpu: Gpu,
) -> Result<Ptx, Error> {
    compile(library, &module(scheme, set, shape), gpu.portable())
}

/// The kernels of a layerwise run, compiled.
#[derive(Clone, Copy, Debug)]
pub struct DeviceProgram<'a> {
    pub set: &'a KernelSet,
    /// Of the set in this shape.
    pub ptx: &'a Ptx,
    pub shape: Shape,
}

/// The target of code for a device.
pub fn gpu_of(device: &dyn Device) -> Result<Gpu, DeviceError> {
    let facts = device.facts();
    Gpu::for_device(facts.capability, facts.cuda).ok_or_else(|| DeviceError::Unsupported {
        name: facts.name.clone(),
        capability: facts.capability,
    })
}

/// The kernels of [`service`], on a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Services {
    copy_rows: Function,
    add_sources: Function,
    correct_rows: Function,
    pub gather: Function,
    pub gather_plane: Function,
}

/// A kernel with its parameters, ready to be started.
#[derive(Clone, Debug)]
struct Job {
    function: Function,
    threads: Threads,
    arguments: Vec<Argument>,
}

/// Cells that sources add to after a stage.
#[derive(Clone, Debug)]
struct SourceJob {
    cells: Address,
    count: i32,
    ghosts: Address,
}

/// Rows near the faces of a box that are corrected after a stage.
#[derive(Clone, Debug)]
struct CorrectionJob {
    /// But for the waves.
    rows: CorrectRows,
    threads: Threads,
}

/// The kernels of a stage in a phase.
#[derive(Clone, Debug, Default)]
struct StageJobs {
    updates: Vec<Job>,
    corrections: Vec<CorrectionJob>,
    sources: Vec<SourceJob>,
    copies: Option<Job>,
}

/// Everything on a device that a run starts.
#[derive(Debug)]
pub(super) struct DeviceCode {
    pub services: Services,
    array: Address,
    /// Old values that amendments read; nothing accesses it where there are none.
    kept: Address,
    /// Per phase and stage.
    stages: Vec<Vec<StageJobs>>,
    /// Per phase the places of the probes.
    pub probes: Vec<Address>,
}

/// Blocks of `per_block` threads for `items` items.
pub(super) fn blocks(items: u64, per_block: u32) -> Result<u32, DeviceError> {
    let blocks = items.div_ceil(u64::from(per_block));
    u32::try_from(blocks)
        .ok()
        .filter(|n| *n <= i32::MAX as u32)
        .ok_or(DeviceError::TooLong)
}

/// Bytes as a table in the device's memory; one without entries has a place, too.
fn table(device: &dyn Device, bytes: &[u8]) -> Result<Address, DeviceError> {
    let place = device.take(bytes.len().max(1) as u64)?;
    if !bytes.is_empty() {
        device.write(place, bytes)?;
    }
    Ok(place)
}

/// Entries one after the other.
fn packed<T>(entries: &[T], bytes: usize, write: impl Fn(&T, &mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(entries.len() * bytes);
    entries.iter().for_each(|entry| write(entry, &mut out));
    out
}

/// The functions of a layerwise run on a device.
struct Functions {
    services: Services,
    /// In ascending order.
    kernels: Vec<RowKernel>,
    in_zones: Vec<ZoneKernel>,
    /// Of all kernels, then of all that act in zones.
    all: Vec<Function>,
}

fn missing() -> DeviceError {
    DeviceError::Code {
        message: "a kernel is missing".to_owned(),
    }
}

impl Functions {
    fn load(
        device: &dyn Device,
        program: DeviceProgram<'_>,
        scheme: &Scheme,
    ) -> Result<Functions, DeviceError> {
        let DeviceProgram { set, ptx, .. } = program;
        let bare = set.kernels.iter().filter(|k| k.zones.is_empty());
        let mut kernels: Vec<RowKernel> = bare.copied().collect();
        kernels.sort_unstable();
        kernels.dedup();
        let own = [
            service::COPY_ROWS,
            service::ADD_SOURCES,
            service::CORRECT_ROWS,
            service::GATHER,
            service::GATHER_PLANE,
        ];
        let in_zones = |stage| {
            let all = move |phase| ZoneKernel::all(scheme, &set.layout, stage, phase);
            (0..scheme.phases()).flat_map(all)
        };
        let in_zones: Vec<ZoneKernel> = scheme.stage_ids().flat_map(in_zones).collect();
        let names: Vec<String> = kernels
            .iter()
            .map(|kernel| format!("torre_{kernel}"))
            .chain(in_zones.iter().map(ZoneKernel::symbol))
            .chain(own.map(str::to_owned))
            .collect();
        let all = device.load(&ptx.text, &names)?;
        if all.len() != names.len() {
            return Err(missing());
        }
        let [copy_rows, add_sources, correct_rows, gather, gather_plane] =
            *all.last_chunk().ok_or_else(missing)?;
        let services = Services {
            copy_rows,
            add_sources,
            correct_rows,
            gather,
            gather_plane,
        };
        Ok(Functions {
            services,
            kernels,
            in_zones,
            all,
        })
    }

    fn of(&self, kernel: RowKernel) -> Result<Function, DeviceError> {
        let index = self.kernels.binary_search(&kernel).ok();
        let function = index.and_then(|index| self.all.get(index));
        function.copied().ok_or_else(missing)
    }

    /// The kernels that act in zones in a stage of a phase, with their functions.
    fn in_zones(
        &self,
        stage: StageId,
        phase: u32,
    ) -> impl Iterator<Item = (&ZoneKernel, Function)> {
        let functions = self.all.iter().skip(self.kernels.len()).copied();
        let all = self.in_zones.iter().zip(functions);
        all.filter(move |(kernel, _)| (kernel.stage, kernel.phase) == (stage, phase))
    }
}

/// The data from which the jobs of stages are made.
struct Parts<'a> {
    device: &'a dyn Device,
    program: DeviceProgram<'a>,
    scheme: &'a Scheme,
    injections: &'a Injections,
    functions: Functions,
    corrections: Vec<PlacedTable>,
}

impl DeviceCode {
    /// Loads the kernels and writes the tables.
    pub fn new(
        device: &dyn Device,
        program: DeviceProgram<'_>,
        scheme: &Scheme,
        problem: &Problem,
        injections: &Injections,
        array: Address,
    ) -> Result<DeviceCode, DeviceError> {
        let functions = Functions::load(device, program, scheme)?;
        let kept = match layerwise::kept_bytes(scheme, &program.set.layout) {
            0 => array,
            bytes => device.take(bytes)?,
        };
        let mut code = DeviceCode {
            services: functions.services,
            array,
            kept,
            stages: Vec::new(),
            probes: Vec::new(),
        };
        let parts = Parts {
            device,
            program,
            scheme,
            injections,
            functions,
            corrections: correction_tables(device, injections)?,
        };
        for phase in 0..scheme.phases() {
            let stages = scheme.stage_ids();
            let stages: Result<_, _> = stages.map(|s| code.stage(&parts, s, phase)).collect();
            code.stages.push(stages?);
            let probes = probe_places(scheme, problem, &program.set.layout, phase);
            let probes = packed(&probes, 8, |place, out| out.extend(place.to_le_bytes()));
            code.probes.push(table(device, &probes)?);
        }
        Ok(code)
    }

    fn stage(
        &self,
        parts: &Parts<'_>,
        stage: StageId,
        phase: u32,
    ) -> Result<StageJobs, DeviceError> {
        let Parts {
            device,
            program: DeviceProgram { set, shape, .. },
            scheme,
            injections,
            functions,
            corrections,
        } = parts;
        let layout = &set.layout;
        let mut jobs = StageJobs::default();
        let in_zones = functions.in_zones(stage, phase);
        let (before, after): (Vec<_>, Vec<_>) =
            in_zones.partition(|(kernel, _)| kernel.act == ZoneAct::Keep);
        for (kernel, function) in before {
            let job = self.in_zone(function, kernel, scheme, set, *shape)?;
            jobs.updates.push(job);
        }
        for block in stage_boxes(scheme, stage) {
            let kernel = RowKernel {
                stage,
                phase,
                updates: block.updates,
                zones: ZoneSet::default(),
            };
            let wanted = device.facts().threads_at_once();
            let start = layerwise::start(scheme, set, *shape, block.region, wanted)
                .ok_or(DeviceError::TooLong)?;
            jobs.updates
                .push(self.update(functions.of(kernel)?, &start));
        }
        for (kernel, function) in after {
            let job = self.in_zone(function, kernel, scheme, set, *shape)?;
            jobs.updates.push(job);
        }
        for (rows, table) in injections.corrected().iter().zip(corrections) {
            if rows.group.stage == stage {
                let (found, ghosts) = corrected_rows(rows, &table.words, scheme, layout, phase);
                // Values that are read across faces may have no weight.
                if !found.is_empty() {
                    jobs.corrections
                        .push(self.correction(*device, table, &found, &ghosts)?);
                }
            }
        }
        for group in source_groups(injections, scheme, layout, stage, phase) {
            let cells = packed(&group.cells, SourceCell::BYTES, SourceCell::write);
            let ghosts = packed(&group.ghosts, CellGhost::BYTES, CellGhost::write);
            jobs.sources.push(SourceJob {
                cells: table(*device, &cells)?,
                count: i32::try_from(group.cells.len()).map_err(|_| DeviceError::TooLong)?,
                ghosts: table(*device, &ghosts)?,
            });
        }
        jobs.copies = self.copies(*device, scheme, set, stage, phase)?;
        Ok(jobs)
    }

    fn correction(
        &self,
        device: &dyn Device,
        table_of: &PlacedTable,
        rows: &[CorrectedRow],
        ghosts: &[RowGhost],
    ) -> Result<CorrectionJob, DeviceError> {
        let count = |n: usize| i32::try_from(n).map_err(|_| DeviceError::TooLong);
        let words = &table_of.words;
        let along = words.region[Axis::INNER];
        let of_rows = packed(rows, CorrectedRow::BYTES, CorrectedRow::write);
        let of_ghosts = packed(ghosts, RowGhost::BYTES, RowGhost::write);
        Ok(CorrectionJob {
            rows: CorrectRows {
                array: self.array.0,
                table: table(device, &of_rows)?.0,
                count: count(rows.len())?,
                words: table_of.place.0,
                lo: along.lo as i32,
                len: along.len() as i32,
                hole: words.hole.lo as i32,
                hole_len: words.hole.len() as i32,
                ghosts: table(device, &of_ghosts)?.0,
                ghost_count: count(ghosts.len())?,
                waves: 0,
            },
            threads: Threads {
                blocks: [blocks(rows.len() as u64, service::ROWS_PER_BLOCK)?, 1, 1],
                threads: [32, service::ROWS_PER_BLOCK, 1],
                shared: 0,
            },
        })
    }

    fn update(&self, function: Function, start: &Start) -> Job {
        Job {
            function,
            threads: Threads {
                blocks: start.blocks,
                threads: start.threads,
                shared: 0,
            },
            arguments: start.params(self.array.0).arguments(),
        }
    }

    fn in_zone(
        &self,
        function: Function,
        kernel: &ZoneKernel,
        scheme: &Scheme,
        set: &KernelSet,
        shape: Shape,
    ) -> Result<Job, DeviceError> {
        let (blocks, threads) = kernel
            .start(&set.layout, shape)
            .ok_or(DeviceError::TooLong)?;
        Ok(Job {
            function,
            threads: Threads {
                blocks,
                threads,
                shared: 0,
            },
            arguments: kernel.arguments(scheme, self.array.0, self.kept.0),
        })
    }

    fn copies(
        &self,
        device: &dyn Device,
        scheme: &Scheme,
        set: &KernelSet,
        stage: StageId,
        phase: u32,
    ) -> Result<Option<Job>, DeviceError> {
        let copies = row_copies(scheme, &set.layout, stage, phase);
        if copies.is_empty() {
            return Ok(None);
        }
        let count = i32::try_from(copies.len()).map_err(|_| DeviceError::TooLong)?;
        let bytes = packed(&copies, RowCopy::BYTES, RowCopy::write);
        let table = table(device, &bytes)?;
        Ok(Some(Job {
            function: self.services.copy_rows,
            threads: Threads {
                blocks: [blocks(copies.len() as u64, service::ROWS_PER_BLOCK)?, 1, 1],
                threads: [32, service::ROWS_PER_BLOCK, 1],
                shared: 0,
            },
            arguments: CopyRows {
                array: self.array.0,
                table: table.0,
                count,
            }
            .arguments(),
        }))
    }

    /// Starts all that a step does to values; `waves` is where the step's waves lie.
    pub fn step(&self, device: &dyn Device, step: u64, waves: Address) -> Result<(), DeviceError> {
        let phase = (step % self.stages.len() as u64) as usize;
        for stage in &self.stages[phase] {
            // A stage's sources act on the results of its updates, and ghosts are copies of final values.
            for job in &stage.updates {
                run(device, job)?;
            }
            for CorrectionJob { rows, threads } in &stage.corrections {
                let rows = CorrectRows {
                    waves: waves.0,
                    ..*rows
                };
                run(
                    device,
                    &Job {
                        function: self.services.correct_rows,
                        threads: *threads,
                        arguments: rows.arguments(),
                    },
                )?;
            }
            for source in &stage.sources {
                run(
                    device,
                    &Job {
                        function: self.services.add_sources,
                        threads: Threads {
                            blocks: [blocks(source.count as u64, service::THREADS)?, 1, 1],
                            threads: [service::THREADS, 1, 1],
                            shared: 0,
                        },
                        arguments: AddSources {
                            array: self.array.0,
                            table: source.cells.0,
                            count: source.count,
                            ghosts: source.ghosts.0,
                            waves: waves.0,
                        }
                        .arguments(),
                    },
                )?;
            }
            if let Some(job) = &stage.copies {
                run(device, job)?;
            }
        }
        Ok(())
    }

    /// Starts of kernels in a step without records.
    pub fn starts_per_step(&self) -> usize {
        let stages = self.stages.first();
        let of = |s: &StageJobs| {
            let acting = s.corrections.len() + s.sources.len();
            s.updates.len() + acting + usize::from(s.copies.is_some())
        };
        stages.map_or(0, |stages| stages.iter().map(of).sum())
    }
}

/// The words of corrections, and where they lie on a device.
struct PlacedTable {
    words: CorrectionTable,
    place: Address,
}

/// The tables of the corrections of a problem, with their places.
fn correction_tables(
    device: &dyn Device,
    injections: &Injections,
) -> Result<Vec<PlacedTable>, DeviceError> {
    let first = injections.first_correction();
    let tables = injections.corrected().iter().map(|rows| {
        let words = CorrectionTable::new(rows, first, &[]).ok_or(DeviceError::TooLong)?;
        let place = table(device, &words.bytes())?;
        Ok(PlacedTable { words, place })
    });
    tables.collect()
}

fn run(device: &dyn Device, job: &Job) -> Result<(), DeviceError> {
    // SAFETY: the parameters are the ones that the compiler lists for the kernel; boxes and tables lie in the array of
    // the layout.
    unsafe { device.start(job.function, job.threads, &job.arguments) }
}
