//! Time blocks of pyramids: two arrays, of which each time block reads one and stores into the other.

use super::device::{Address, Device, DeviceError, Function, Threads};
use super::ghost_kernel::GhostKernel;
use super::interruptions::Heights;
use super::no_time_blocks::NoTimeBlocks;
use super::towers::TowerError;
use torre_compiler::backend::gpu::abi::{Patches, patch_tables};
use torre_compiler::backend::gpu::{Gpu, Module, Ptx, compile, patch};
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::injection::{Injections, Receiver};
use torre_compiler::layout::Layout;
use torre_compiler::patch::{Lists, PatchProgram, WARP, verify};
use torre_compiler::scheme::Scheme;

/// The pyramids of a schedule, compiled for a device.
#[derive(Clone, Debug)]
pub struct CompiledPatches {
    pub ptx: Ptx,
    pub program: PatchProgram,
}

/// The kernels of a patch program, as IR.
pub fn module(scheme: &Scheme, layout: &Layout, program: &PatchProgram) -> Module {
    let mut module = Module::new();
    patch::emit(&mut module, scheme, layout, program);
    module
}

impl CompiledPatches {
    /// Verifies and compiles a program.
    pub fn new(
        library: &Library,
        scheme: &Scheme,
        layout: &Layout,
        program: PatchProgram,
        gpu: Gpu,
    ) -> Result<CompiledPatches, TowerError> {
        verify(scheme, layout, &program).map_err(TowerError::Patches)?;
        let module = module(scheme, layout, &program);
        Ok(CompiledPatches {
            ptx: compile(library, &module, gpu.portable())?,
            program,
        })
    }
}

/// The pyramids of a calculation, on a device.
#[derive(Debug)]
pub struct PatchBlocks {
    function: Function,
    /// Makes ghosts in memory, if there are some: they are out of date after a time block.
    pub(super) ghosts: Option<GhostKernel>,
    threads: Threads,
    heights: Heights,
    /// Steps of a round.
    round: u64,
    lists: u64,
    ranges: u64,
    entries: u64,
    /// Waves and records of a step.
    counts: [i32; 2],
    /// Receivers record what no update does: that has to be recorded before each time block.
    pub(super) leaves_out: bool,
}

/// A time block that comes next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub steps: u64,
    /// The array that has the values, and the one that will have them.
    pub from: Address,
    pub to: Address,
    pub waves: Address,
    pub records: Address,
    /// Somebody may look at all time levels after it.
    pub all: bool,
}

fn table(device: &dyn Device, bytes: &[u8]) -> Result<u64, DeviceError> {
    let place = device.take(bytes.len().max(16) as u64)?;
    if !bytes.is_empty() {
        device.write(place, bytes)?;
    }
    Ok(place.0)
}

impl PatchBlocks {
    /// Brings pyramids with their sources and probes to a device, for an array of the layout; or says why they cannot
    /// do what the problem asks for.
    pub(super) fn new(
        device: &dyn Device,
        compiled: &CompiledPatches,
        (scheme, layout): (&Scheme, &Layout),
        (injections, receivers): (&Injections, &[Receiver]),
    ) -> Result<Result<PatchBlocks, NoTimeBlocks>, DeviceError> {
        let program = &compiled.program;
        let Ok(lists) = Lists::new(scheme, program, injections, receivers) else {
            return Ok(Err(NoTimeBlocks::Points));
        };
        let ghosts = patch::ghost_threads(scheme, layout);
        let names = [patch::PATCHES, patch::GHOSTS].map(str::to_owned);
        let functions = device.load(&compiled.ptx.text, &names)?;
        let [function, ghost_function] = *functions.as_slice() else {
            return Err(DeviceError::Code {
                message: "a kernel is missing".to_owned(),
            });
        };
        let mut failed = None;
        let tables = patch_tables(&lists, |cells| {
            let place = table(device, cells);
            place.map_err(|error| failed = Some(error)).ok()
        });
        if let Some(error) = failed {
            return match error {
                DeviceError::Memory { .. } => Ok(Err(NoTimeBlocks::LargeSources)),
                error => Err(error),
            };
        }
        let [of_tile, ranges, entries] = tables.ok_or(DeviceError::TooLong)?;
        let number = |n: i64| u32::try_from(n).map_err(|_| DeviceError::TooLong);
        let count = |n: usize| i32::try_from(n).map_err(|_| DeviceError::TooLong);
        let [inner, outer] = program.blocks();
        let shared = program.shared_bytes(layout.element_bytes);
        Ok(Ok(PatchBlocks {
            function,
            ghosts: ghosts
                .map(|(blocks, of_block)| GhostKernel::new(ghost_function, blocks, of_block)),
            threads: Threads {
                blocks: [number(inner)?, number(outer)?, 1],
                threads: [WARP as u32, program.shape.warps as u32, 1],
                shared: u32::try_from(shared).map_err(|_| DeviceError::TooLong)?,
            },
            heights: Heights::of_rounds(program.height, program.round),
            round: program.round,
            lists: table(device, &of_tile)?,
            ranges: table(device, &ranges)?,
            entries: table(device, &entries)?,
            counts: [count(injections.waves_per_step())?, count(receivers.len())?],
            leaves_out: receivers.iter().any(|receiver| receiver.stage.is_none()),
        }))
    }

    /// The steps of the time block that begins at a step, if nothing is due for so many.
    pub(super) fn next(&self, step: u64, room: u64) -> Option<u64> {
        self.heights.next(step, room)
    }

    /// Runs a time block.
    pub(super) fn run(&self, device: &dyn Device, next: Next) -> Result<(), DeviceError> {
        let arguments = Patches {
            from: next.from.0,
            to: next.to.0,
            rounds: (next.steps / self.round) as i32,
            all: i32::from(next.all),
            lists: self.lists,
            ranges: self.ranges,
            entries: self.entries,
            waves: next.waves.0,
            wave_count: self.counts[0],
            records: next.records.0,
            record_count: self.counts[1],
        };
        // SAFETY: the parameters are those that the compiler lists; both arrays have the layout, lists are those of the
        // program's tiles, and there are waves of all steps of the time block, and room for their records.
        unsafe { device.start(self.function, self.threads, &arguments.arguments()) }
    }
}
