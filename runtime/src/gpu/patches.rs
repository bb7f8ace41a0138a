//! Time blocks of pyramids: two arrays, of which each launch reads one and stores into the other. A launch has one time
//! block, or several where tiles stay on the chip.

use super::device::{Address, Device, DeviceError, Function, Threads};
use super::ghost_kernel::GhostKernel;
use super::interruptions::Heights;
use super::no_time_blocks::NoTimeBlocks;
use super::time_block_error::TimeBlockError;
use torre_compiler::backend::gpu::abi::{PROGRESS_BYTES, Patches, patch_tables};
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
pub fn module(scheme: &Scheme, layout: &Layout, program: &PatchProgram, gpu: Gpu) -> Module {
    let mut module = Module::new();
    patch::emit(&mut module, scheme, layout, program, gpu);
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
    ) -> Result<CompiledPatches, TimeBlockError> {
        verify(scheme, layout, &program).map_err(TimeBlockError::Patches)?;
        let module = module(scheme, layout, &program, gpu);
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
    /// Bytes of memory that a thread has of its own.
    pub(super) spilled: u64,
    /// Makes ghosts in memory, if there are some: they are out of date after a time block.
    pub(super) ghosts: Option<GhostKernel>,
    threads: Threads,
    /// Whether blocks of a launch may begin before the launch before has ended.
    begins_early: bool,
    program: PatchProgram,
    /// Data for the exchange of tiles that stay on the chip, if they do.
    staying: Option<StayingTiles>,
    /// The numbers of rooms of all tiles, and the rooms, if there are some.
    rooms: Option<[u64; 2]>,
    heights: Heights,
    lists: u64,
    ranges: u64,
    entries: u64,
    /// Waves and records of a step.
    counts: [i32; 2],
    /// Receivers record values that no update changes: they have to be recorded before each time block.
    pub(super) leaves_out: bool,
}

/// Data for the exchange of tiles that stay on the chip.
#[derive(Debug)]
struct StayingTiles {
    rims: u64,
    progress: Address,
    neighbours: u64,
    /// The progress that tiles have reached.
    since: u64,
}

/// The numbers of the rooms of all tiles, and memory for the rooms; `None` where no update is amended.
fn rooms(
    memory: &mut Taken<'_>,
    layout: &Layout,
    program: &PatchProgram,
) -> Result<Option<[u64; 2]>, DeviceError> {
    if !program.rooms.any() {
        return Ok(None);
    }
    let numbers = program.rooms.table();
    let numbers: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let bytes = program.rooms.bytes(&program.shape, layout.element_bytes);
    let numbers = memory.table(&numbers)?;
    Ok(Some([numbers, memory.take(bytes.max(16))?.0]))
}

/// Progress starts anew beyond this.
const MOST_PROGRESS: u64 = 1 << 30;

impl StayingTiles {
    fn new(
        memory: &mut Taken<'_>,
        layout: &Layout,
        program: &PatchProgram,
    ) -> Result<Option<StayingTiles>, DeviceError> {
        let Some(staying) = &program.stays else {
            return Ok(None);
        };
        let words = staying.table();
        let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let progress = progress_of(program);
        let place = memory.take(progress.len() as u64)?;
        memory.device.write(place, &progress)?;
        Ok(Some(StayingTiles {
            rims: memory.take(2 * layout.bytes())?.0,
            progress: place,
            neighbours: memory.table(&words)?,
            since: 0,
        }))
    }
}

/// The progress of all tiles before the first launch.
fn progress_of(program: &PatchProgram) -> Vec<u8> {
    vec![0; program.tiles() as usize * PROGRESS_BYTES as usize]
}

/// Time blocks that come next, in one launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub steps: u64,
    /// The array that has the values, and the one that will have them.
    pub from: Address,
    pub to: Address,
    pub waves: Address,
    pub records: Address,
    /// All time levels may be read after it.
    pub all: bool,
}

/// Memory of a device that is given back where pyramids cannot be made.
struct Taken<'a> {
    device: &'a dyn Device,
    places: Vec<Address>,
}

impl Taken<'_> {
    fn take(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        let place = self.device.take(bytes)?;
        self.places.push(place);
        Ok(place)
    }

    fn table(&mut self, bytes: &[u8]) -> Result<u64, DeviceError> {
        let place = self.take(bytes.len().max(16) as u64)?;
        if !bytes.is_empty() {
            self.device.write(place, bytes)?;
        }
        Ok(place.0)
    }

    fn give_back(self) -> Result<(), DeviceError> {
        let mut places = self.places.into_iter();
        places.try_for_each(|place| self.device.give_back(place))
    }
}

impl PatchBlocks {
    /// Brings pyramids with their sources and probes to a device, for an array of the layout; or says why they cannot
    /// run the problem.
    pub(super) fn new(
        device: &dyn Device,
        compiled: &CompiledPatches,
        scheme: &Scheme,
        layout: &Layout,
        injections: &Injections,
        receivers: &[Receiver],
    ) -> Result<Result<PatchBlocks, NoTimeBlocks>, DeviceError> {
        let mut memory = Taken {
            device,
            places: Vec::new(),
        };
        let made = PatchBlocks::make(&mut memory, compiled, scheme, layout, injections, receivers);
        if !matches!(made, Ok(Ok(_))) {
            memory.give_back()?;
        }
        made
    }

    fn make(
        memory: &mut Taken<'_>,
        compiled: &CompiledPatches,
        scheme: &Scheme,
        layout: &Layout,
        injections: &Injections,
        receivers: &[Receiver],
    ) -> Result<Result<PatchBlocks, NoTimeBlocks>, DeviceError> {
        let device = memory.device;
        let program = &compiled.program;
        let Ok(cells) = Lists::new(scheme, program, injections, receivers) else {
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
        let tables = patch_tables(&cells, |own| {
            let place = memory.table(own);
            place.map_err(|error| failed = Some(error)).ok()
        });
        if let Some(error) = failed {
            return match error {
                DeviceError::Memory { .. } => Ok(Err(NoTimeBlocks::LargeSources)),
                error => Err(error),
            };
        }
        let [of_tile, ranges, entries] = tables.ok_or(DeviceError::TooLong)?;
        let mut take = || {
            let staying = StayingTiles::new(memory, layout, program)?;
            let rooms = rooms(memory, layout, program)?;
            let lists = [
                memory.table(&of_tile)?,
                memory.table(&ranges)?,
                memory.table(&entries)?,
            ];
            Ok((staying, rooms, lists))
        };
        let (staying, rooms, [lists, ranges, entries]) = match take() {
            Err(DeviceError::Memory { .. }) => {
                let steps = program.height;
                return Ok(Err(NoTimeBlocks::Memory { steps }));
            }
            taken => taken?,
        };
        let number = |n: i64| u32::try_from(n).map_err(|_| DeviceError::TooLong);
        let count = |n: usize| i32::try_from(n).map_err(|_| DeviceError::TooLong);
        let blocks = program.blocks().map(number);
        let [inner, outer, middle] = blocks;
        let shared = program.shared_bytes(layout.element_bytes);
        Ok(Ok(PatchBlocks {
            function,
            spilled: device.spilled(function)?,
            ghosts: ghosts
                .map(|(blocks, of_block)| GhostKernel::new(ghost_function, blocks, of_block)),
            threads: Threads {
                blocks: [inner?, outer?, middle?],
                threads: [WARP as u32, program.shape.warps() as u32, 1],
                shared: u32::try_from(shared).map_err(|_| DeviceError::TooLong)?,
            },
            begins_early: patch::begins_early(program, compiled.ptx.gpu),
            heights: Heights::of_rounds(program.launch_steps(), program.round),
            staying,
            rooms,
            program: program.clone(),
            lists,
            ranges,
            entries,
            counts: [count(injections.waves_per_step())?, count(receivers.len())?],
            leaves_out: receivers.iter().any(|receiver| receiver.stage.is_none()),
        }))
    }

    /// The steps of the launch that begins at a step, if nothing is due for `room` steps.
    pub(super) fn next(&self, step: u64, room: u64) -> Option<u64> {
        self.heights.next(step, room)
    }

    /// Runs time blocks.
    pub(super) fn run(&mut self, device: &dyn Device, next: Next) -> Result<(), DeviceError> {
        let exchanges = self.program.exchanges(next.steps);
        if let Some(staying) = &mut self.staying
            && staying.since + exchanges > MOST_PROGRESS
        {
            device.write(staying.progress, &progress_of(&self.program))?;
            staying.since = 0;
        }
        let staying = self.staying.as_ref();
        let arguments = Patches {
            from: next.from.0,
            to: next.to.0,
            rounds: (next.steps / self.program.round) as i32,
            all: i32::from(next.all),
            lists: self.lists,
            ranges: self.ranges,
            entries: self.entries,
            waves: next.waves.0,
            wave_count: self.counts[0],
            records: next.records.0,
            record_count: self.counts[1],
            rims: staying.map_or(0, |own| own.rims),
            progress: staying.map_or(0, |own| own.progress.0),
            neighbours: staying.map_or(0, |own| own.neighbours),
            since: staying.map_or(0, |own| own.since as i32),
            room_numbers: self.rooms.map_or(0, |[numbers, _]| numbers),
            rooms: self.rooms.map_or(0, |[_, rooms]| rooms),
        };
        let arguments = arguments.arguments();
        // SAFETY: the parameters are the ones that the compiler lists; both arrays have the layout, lists belong to the
        // program's tiles, and there are waves of all steps of the time block, and room for their records.
        unsafe {
            match &mut self.staying {
                None if self.begins_early => {
                    device.start_early(self.function, self.threads, &arguments)
                }
                None => device.start(self.function, self.threads, &arguments),
                Some(staying) => {
                    staying.since += exchanges;
                    device.start_together(self.function, self.threads, &arguments)
                }
            }
        }
    }
}
