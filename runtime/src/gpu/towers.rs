//! Bands of many steps by towers, one start of a kernel each.
//!
//! Only values are advanced in a band: where sources act or probes record in every step, steps run one by one.

use super::device::{Address, Argument, Device, DeviceError, Function, Threads};
use torre_compiler::backend::llvm::library::{Error, Library};
use torre_compiler::backend::nvptx::tower::{self, Kernels, Options, Order, Task};
use torre_compiler::backend::nvptx::{Feature, Gpu, Module, Ptx, compile};
use torre_compiler::layout::Layout;
use torre_compiler::scheme::Scheme;
use torre_compiler::tile::TileProgram;
use torre_compiler::tile::residency::{Towers, towers};

/// The order of the towers of a band, unless something else is asked for.
pub(super) const ORDER: Order = Order {
    width: 16,
    overlap: 16,
    lead: 0,
};

/// Blocks per multiprocessor that are started; those that find no room wait without harm.
const BLOCKS: u32 = 4;

/// The kernels of towers for a GPU, as IR; `None` for those that a block cannot run.
pub fn emit(
    scheme: &Scheme,
    layout: &Layout,
    towers: &Towers,
    gpu: Gpu,
) -> (Module, Option<Kernels>) {
    let options = Options {
        asynchronous: gpu.has(Feature::AsyncCopy),
        shift: gpu.has(Feature::RegisterShift),
        patient: gpu.has(Feature::Cluster),
        ..Options::default()
    };
    let mut module = Module::new();
    let kernels = tower::emit(&mut module, scheme, layout, towers, options);
    (module, kernels)
}

/// The towers of a schedule, compiled.
#[derive(Clone, Debug)]
pub struct TowerProgram {
    pub ptx: Ptx,
    pub kernels: Kernels,
    pub towers: Towers,
    /// Steps of a band.
    pub steps: u64,
    /// All towers of a band.
    tasks: Vec<Task>,
    stages: u64,
    lead: u32,
}

impl TowerProgram {
    /// The towers of a tile program; `None` where it has none that a GPU can run.
    pub fn new(
        library: &Library,
        scheme: &Scheme,
        layout: &Layout,
        tiles: &TileProgram,
        gpu: Gpu,
    ) -> Result<Option<TowerProgram>, Error> {
        let Ok(towers) = towers(scheme, layout, tiles) else {
            return Ok(None);
        };
        let (module, emitted) = emit(scheme, layout, &towers, gpu);
        let fits = |k: &Kernels| {
            let flow = k.flow.as_ref()?;
            (flow.shared <= gpu.shared_per_block).then_some(())
        };
        let Some(kernels) = emitted.filter(|k| fits(k).is_some()) else {
            return Ok(None);
        };
        let program = TowerProgram {
            ptx: compile(library, &module, gpu)?,
            kernels,
            steps: 0,
            tasks: Vec::new(),
            stages: 0,
            lead: 0,
            towers,
        };
        Ok(program.banded(scheme, layout, tiles, tiles.height, ORDER))
    }

    /// The same towers in bands of at most so many steps, in an order; `None` where there are too many.
    pub fn banded(
        mut self,
        scheme: &Scheme,
        layout: &Layout,
        tiles: &TileProgram,
        steps: u64,
        order: Order,
    ) -> Option<TowerProgram> {
        let turns = (steps / self.towers.steps).max(1);
        self.tasks = tower::tasks(scheme, layout, tiles, &self.towers, turns, order)?;
        self.lead = order.lead;
        self.steps = turns * self.towers.steps;
        self.stages = self.steps * scheme.stages.len() as u64;
        Some(self)
    }

    /// Towers of a band.
    pub fn count(&self) -> usize {
        self.tasks.len()
    }
}

/// The towers of a calculation, on a device.
#[derive(Debug)]
pub struct Bands {
    /// Steps of a band: a multiple of the scheme's phases.
    pub(super) steps: u64,
    function: Function,
    threads: Threads,
    rows: Address,
    tasks: Address,
    count: u32,
    progress: Address,
    counter: Address,
    /// Of a band.
    stages: u32,
    lead: u32,
    /// What the counter and progress have reached.
    taken: u32,
    since: u32,
}

/// Progress and counter start anew beyond this.
const MOST: u32 = 1 << 30;

fn words(device: &dyn Device, words: impl Iterator<Item = i32>) -> Result<Address, DeviceError> {
    let bytes: Vec<u8> = words.flat_map(i32::to_le_bytes).collect();
    let place = device.take(bytes.len().max(4) as u64)?;
    device.write(place, &bytes)?;
    Ok(place)
}

impl Bands {
    pub(super) fn new(
        device: &dyn Device,
        program: &TowerProgram,
    ) -> Result<Option<Bands>, DeviceError> {
        let Some(flow) = &program.kernels.flow else {
            return Ok(None);
        };
        let names = [flow.symbol.clone()];
        let functions = device.load(&program.ptx.text, &names)?;
        let function = *functions.first().ok_or_else(|| DeviceError::Code {
            message: "a kernel is missing".to_owned(),
        })?;
        let small = |n: u64| u32::try_from(n).ok().filter(|n| *n < MOST / 4);
        let count = small(program.tasks.len() as u64).ok_or(DeviceError::TooLong)?;
        let stages = small(program.stages).ok_or(DeviceError::TooLong)?;
        let most = device.facts().multiprocessors.max(1).saturating_mul(BLOCKS);
        let mut bands = Bands {
            steps: program.steps,
            function,
            threads: Threads {
                blocks: [most.min(count.max(1)), 1, 1],
                threads: [flow.threads, 1, 1],
                shared: flow.shared,
            },
            rows: words(device, program.kernels.rows.iter().flatten().copied())?,
            tasks: words(device, program.tasks.iter().flat_map(Task::words))?,
            count,
            progress: device.take((u64::from(count) + 1) * u64::from(tower::PROGRESS_BYTES))?,
            counter: words(device, std::iter::once(0))?,
            stages,
            lead: program.lead,
            taken: 0,
            since: 0,
        };
        bands.reset(device)?;
        Ok(Some(bands))
    }

    fn reset(&mut self, device: &dyn Device) -> Result<(), DeviceError> {
        let progress = (0..self.count).map(|_| 0).chain(std::iter::once(i32::MAX));
        let mut bytes = vec![0; (self.count as usize + 1) * tower::PROGRESS_BYTES as usize];
        for (word, value) in bytes
            .chunks_mut(tower::PROGRESS_BYTES as usize)
            .zip(progress)
        {
            word[..4].copy_from_slice(&i32::to_le_bytes(value));
        }
        device.write(self.progress, &bytes)?;
        device.write(self.counter, &0i32.to_le_bytes())?;
        (self.taken, self.since) = (0, 0);
        Ok(())
    }

    /// Runs a band on an array of the layout.
    pub(super) fn run(&mut self, device: &dyn Device, array: Address) -> Result<(), DeviceError> {
        if self.taken > MOST || self.since > MOST {
            self.reset(device)?;
        }
        let over = self.since + self.stages + 1;
        let word = |n: u32| Argument::Word(n as i32);
        let arguments = [
            Argument::Place(array),
            Argument::Place(self.rows),
            Argument::Place(self.tasks),
            word(self.count),
            Argument::Place(self.progress),
            Argument::Place(self.counter),
            word(self.taken),
            word(self.since),
            word(over),
            word(self.lead),
        ];
        // SAFETY: the parameters are those that the compiler lists; the tasks' rows lie in the array of the layout.
        unsafe { device.start(self.function, self.threads, &arguments) }?;
        self.taken += self.count + self.threads.blocks[0];
        self.since = over;
        Ok(())
    }
}
