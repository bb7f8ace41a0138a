//! A calculation on several devices, each of which computes a [stripe](torre_compiler::pipeline::Stripes).
//!
//! A device has the rows that its towers access, in a layout whose planes are only as wide as the widest stripe, so
//! that the same kernels serve all devices. It has the coefficients of axes and the room for the states of all zones,
//! too. In a pass, launches and copies between devices go to queues, ordered by signals. Between passes all devices
//! have the newest values of all that they access; the host gathers slices there, and gets values back when they are
//! wanted.

mod passes;
mod records;

use super::device::{Address, Device, DeviceError, Function};
use super::interruptions::Interruptions;
use super::queues::{Peers, WorkQueue, end_work};
use super::recorder::Recorder;
use super::time_block_error::TimeBlockError;
use super::tower_blocks::{MOST, Ready, TableMemory};
use super::towers::{CompiledTowers, TimeBlockOrder};
use super::volumes;
use crate::host::Calculation;
use crate::simulation::{
    Part, Picture, Progress, RunError, Simulation, Value, cell_stages_per_step, next_output,
};
use crate::timeline::Timeline;
use records::picture_bytes;
use std::collections::BTreeMap;
use torre_compiler::backend::gpu::abi::Volumes;
use torre_compiler::backend::gpu::{Gpu, Module, Ptx, compile, service, tower};
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::injection::{Injections, Receiver, receivers};
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::layout::{Layout, Lines, TooLarge};
use torre_compiler::pipeline::{StripeQueue, Stripes, check_stripes};
use torre_compiler::problem::{Probe, Problem};
use torre_compiler::scheme::{ComponentId, Scheme, StateId};
use torre_compiler::statics::Files;
use torre_compiler::tower::{Points, TowerProgram};

/// Time blocks of a pass, at most, for each that is in flight.
const PASS_BLOCKS: usize = 32;

/// Bytes of the waves of a pass, and of its records, if one time block does not need more.
const PASS_BYTES: u64 = 64 << 20;

/// The program of several devices.
#[derive(Clone, Debug)]
pub struct StripedProgram {
    pub stripes: Stripes,
    /// Of the values on a device.
    pub layout: Layout,
    /// For that layout.
    pub towers: CompiledTowers,
    /// The kernels of [`service`].
    pub services: Ptx,
    /// Time blocks at a time.
    pub in_flight: usize,
}

/// How devices share a grid.
#[derive(Clone, Debug)]
pub struct Striping {
    pub stripes: Stripes,
    /// Time blocks at a time.
    pub in_flight: usize,
    /// Groups between planes on each device; see [`Layout::for_gpu_with_gap`].
    pub gap: i64,
}

impl Striping {
    /// How values are arranged on each device.
    pub fn layout(&self, scheme: &Scheme) -> Result<Layout, TooLarge> {
        Layout::for_stripe(scheme, self.stripes.widest(), self.gap)
    }
}

impl StripedProgram {
    /// Compiles towers for stripes.
    pub fn new(
        library: &Library,
        scheme: &Scheme,
        program: TowerProgram,
        gpu: Gpu,
        order: TimeBlockOrder,
        striping: Striping,
    ) -> Result<StripedProgram, TimeBlockError> {
        let layout = striping.layout(scheme).map_err(|_| TimeBlockError::Order)?;
        let towers = CompiledTowers::new(library, scheme, &layout, program, gpu, order)?;
        let mut module = Module::new();
        service::emit(&mut module, scheme.precision);
        Ok(StripedProgram {
            services: compile(library, &module, gpu.portable())?,
            in_flight: striping.in_flight.max(1),
            stripes: striping.stripes,
            layout,
            towers,
        })
    }
}

/// Bytes of each device's memory that such a run takes, tables of time blocks and of sources aside: with values in an
/// array of `array` bytes, and time blocks of `steps` steps, each of which has `waves` waves, or fewer.
pub fn striped_bytes(
    scheme: &Scheme,
    problem: &Problem,
    array: u64,
    steps: u64,
    in_flight: usize,
    waves: u64,
) -> u64 {
    let records = (problem.probes.len() * scheme.precision.bytes()) as u64;
    let waves = waves.saturating_mul(8);
    let each = waves.saturating_add(records);
    let pass = pass_steps(steps, in_flight, waves.max(records)).saturating_mul(each);
    let pictures = picture_bytes(scheme, problem);
    array.saturating_add(pass).saturating_add(pictures)
}

/// Steps of a pass of time blocks of `steps` steps, at most, if a step has `bytes` bytes of waves or records.
fn pass_steps(steps: u64, in_flight: usize, bytes: u64) -> u64 {
    let blocks = (PASS_BLOCKS * in_flight.max(1)) as u64;
    let fit = PASS_BYTES / bytes.saturating_mul(steps).max(1);
    steps.max(1) * blocks.min(fit).max(1)
}

/// A device with its stripe.
struct Unit {
    function: Function,
    gather_plane: Function,
    /// Of single values.
    gather: Function,
    /// The most clusters of a launch.
    clusters: u32,
    array: Address,
    queues: BTreeMap<StripeQueue, WorkQueue>,
    volumes: Volumes,
    /// By height.
    ready: BTreeMap<u64, Ready>,
    /// Memory of their tables.
    table_memory: TableMemory,
    waves: Address,
    records: Address,
    slices: Address,
    /// The indices along the middle axis that it accesses, and those among them whose values the host gets from it.
    /// Values that no device accesses never change.
    rows: Interval,
    own: Interval,
    /// The cells that are looked at, once there were some: by phase, their places.
    looks: Option<(Vec<Probe>, Vec<Address>)>,
}

/// A calculation on several devices.
pub struct Striped<'a, T> {
    calculation: Calculation<'a, T>,
    files: &'a dyn Files,
    peers: &'a dyn Peers,
    program: StripedProgram,
    units: Vec<Unit>,
    injections: Injections,
    points: Points,
    receivers: Vec<Receiver>,
    interruptions: Interruptions,
    /// Steps done.
    steps: u64,
    /// Steps of a pass, at most.
    pass_steps: u64,
    /// Cell-stages of a step.
    per_step: u64,
    probes: Vec<Vec<f64>>,
    pictures: Vec<Picture>,
    launches: u64,
    sent: u64,
    passes: u64,
    /// When operations ran, if that is recorded.
    recorder: Option<Recorder>,
}

fn failed(operation: &'static str, message: impl ToString) -> DeviceError {
    DeviceError::Failed {
        operation,
        message: message.to_string(),
    }
}

/// Kernels by their names.
fn load<const N: usize>(
    device: &dyn Device,
    ptx: &str,
    names: [&str; N],
) -> Result<[Function; N], DeviceError> {
    let names = names.map(str::to_owned);
    let functions = device.load(ptx, &names)?;
    functions.try_into().map_err(|_| DeviceError::Code {
        message: "a kernel is missing".to_owned(),
    })
}

/// The bytes of a line.
fn line_bytes(layout: &Layout, lines: &Lines, line: i64) -> std::ops::Range<usize> {
    let size = layout.element_bytes;
    let first = (lines.first + line * lines.stride) as usize * size;
    first..first + lines.length as usize * size
}

impl<'a, T: Value> Striped<'a, T> {
    /// Takes a calculation, arranged for a GPU, to as many devices as there are stripes, at the step where it is.
    /// `None` where towers cannot run the problem.
    #[inline(never)]
    pub fn new(
        calculation: Calculation<'a, T>,
        files: &'a dyn Files,
        peers: &'a dyn Peers,
        mut program: StripedProgram,
    ) -> Result<Option<Self>, DeviceError> {
        let (scheme, problem) = (calculation.scheme, calculation.problem);
        let count = program.stripes.count();
        if peers.count() < count {
            return Err(DeviceError::NoSuchDevice {
                number: count - 1,
                count: peers.count(),
            });
        }
        let interruptions = Interruptions::new(scheme, problem);
        let towers = &program.towers;
        let unfit = !interruptions.always.is_empty();
        let volumes = &interruptions.volumes;
        if unfit || !volumes.are_those_of(&towers.program, problem) {
            return Ok(None);
        }
        towers.check_beginning(calculation.steps())?;
        let steps = towers.steps;
        // Two time blocks more than are in flight meet all that there is to wait for.
        let heights = vec![steps; program.in_flight + 2];
        let pass = program
            .stripes
            .pass(scheme, &calculation.layout, &heights, program.in_flight)
            .ok_or_else(|| failed("laying out stripes", "there are none"))?;
        let wrong = |error: &dyn std::fmt::Display| failed("laying out stripes", error);
        let ops = pass.operations().map_err(|error| wrong(&error))?;
        check_stripes(&pass, &ops).map_err(|fault| wrong(&fault))?;
        let injections = Injections::new(scheme, problem, files);
        let receivers = receivers(scheme, problem);
        let points = Points::new(&injections, receivers.clone(), |source| {
            interruptions.volumes.has(source)
        });
        let waves = injections.waves_per_step() as u64 * 8;
        let records = (receivers.len() * scheme.precision.bytes()) as u64;
        let mut run = Self {
            pass_steps: pass_steps(steps, program.in_flight, waves.max(records)),
            units: Vec::new(),
            injections,
            points,
            receivers,
            interruptions,
            steps: calculation.steps(),
            per_step: cell_stages_per_step(scheme).max(1),
            probes: (0..problem.probes.len())
                .map(|i| calculation.probe(i))
                .collect(),
            pictures: Vec::new(),
            launches: 0,
            sent: 0,
            passes: 0,
            recorder: None,
            calculation,
            files,
            peers,
            program,
        };
        for stripe in 0..count {
            let Some(unit) = run.unit(stripe)? else {
                return Ok(None);
            };
            run.units.push(unit);
        }
        run.distribute()?;
        let possible = run.make_ready(steps, &[])?;
        // Progress counts on through a pass.
        let ready = run.units.iter().filter_map(|unit| unit.ready.get(&steps));
        let over = ready.map(|ready| ready.time_block.over(0)).max();
        let most = u64::from(MOST / over.unwrap_or(1).max(1)).max(1);
        run.pass_steps = run.pass_steps.min(most * steps);
        Ok(possible.then_some(run))
    }

    /// Makes a device ready for its stripe.
    fn unit(&self, stripe: usize) -> Result<Option<Unit>, DeviceError> {
        let (scheme, problem) = (self.calculation.scheme, self.calculation.problem);
        let StripedProgram {
            stripes,
            layout,
            towers,
            services,
            in_flight,
        } = &self.program;
        let device = self.peers.device(stripe);
        let (array, waves) = (layout.bytes(), self.injections.waves_per_step() as u64);
        let needed = striped_bytes(scheme, problem, array, towers.steps, *in_flight, waves);
        let available = device.free_memory()?;
        if needed > available {
            return Err(DeviceError::Memory { needed, available });
        }
        let chosen = &self.interruptions.volumes;
        let placed = volumes::place(device, &self.injections, chosen, towers.steps)?;
        let Ok(volumes) = placed else {
            return Ok(None);
        };
        let [function] = load(device, &towers.ptx.text, [tower::TOWERS])?;
        let mut queues = BTreeMap::new();
        for slot in 0..*in_flight {
            queues.insert(StripeQueue::Blocks { stripe, slot }, device.queue()?);
            let neighbours = [(false, stripe > 0), (true, stripe + 1 < stripes.count())];
            for (up, _) in neighbours.into_iter().filter(|(_, there)| *there) {
                let links = StripeQueue::Links { stripe, slot, up };
                queues.insert(links, device.queue()?);
            }
        }
        let kernels = [service::GATHER_PLANE, service::GATHER];
        let [gather_plane, gather] = load(device, &services.text, kernels)?;
        let rows = stripes.rows()[stripe];
        Ok(Some(Unit {
            function,
            gather_plane,
            gather,
            clusters: towers.resident_clusters(device.facts()),
            array: device.take(layout.bytes())?,
            queues,
            volumes,
            ready: BTreeMap::new(),
            table_memory: TableMemory::default(),
            waves: device
                .take((self.pass_steps * self.injections.waves_per_step() as u64 * 8).max(8))?,
            records: device.take(self.pass_steps * self.record_bytes())?,
            slices: device.take(picture_bytes(scheme, problem))?,
            rows,
            own: stripes
                .own(stripe, &self.calculation.layout)
                .intersect(rows),
            looks: None,
        }))
    }

    /// The lines of planes and rows in the host's array, and in the arrays of devices.
    fn lines(
        &self,
        planes: Interval,
        rows: Interval,
    ) -> impl Iterator<Item = (Lines, Lines)> + use<T> {
        let host = &self.calculation.layout;
        let here = host.part(planes, rows);
        here.into_iter().zip(self.program.layout.part(planes, rows))
    }

    /// Brings the host's values to the devices. They are there at the end: queues of other devices, which send to these
    /// arrays, follow nothing of this device.
    fn distribute(&self) -> Result<(), DeviceError> {
        let (host, array) = (&self.calculation.layout, self.calculation.array());
        let layout = &self.program.layout;
        for (number, unit) in self.units.iter().enumerate() {
            let device = self.peers.device(number);
            let coefs = host.coef_part().into_iter().zip(layout.coef_part());
            let planes = host.visible(Axis::OUTER);
            for (here, there) in self.lines(planes, unit.rows).chain(coefs) {
                for line in 0..here.count {
                    let to = line_bytes(layout, &there, line).start;
                    let bytes = &array[line_bytes(host, &here, line)];
                    device.write(unit.array.offset(to as i64), bytes)?;
                }
            }
        }
        for number in 0..self.units.len() {
            let device = self.peers.device(number);
            let written = device.signal(WorkQueue::OWN)?;
            let arrived = device.arrive(written);
            device.forget(written);
            arrived?;
        }
        Ok(())
    }

    /// Brings the devices' values in some planes and rows to the host.
    fn collect(&mut self, planes: Interval, rows: Interval) -> Result<(), DeviceError> {
        for number in 0..self.units.len() {
            let unit = &self.units[number];
            let own = unit.own.intersect(rows);
            let (place, device) = (unit.array, self.peers.device(number));
            for (here, there) in self.lines(planes, own) {
                for line in 0..here.count {
                    let from = line_bytes(&self.program.layout, &there, line).start;
                    let bytes = line_bytes(&self.calculation.layout, &here, line);
                    let into = &mut self.calculation.array_mut()[bytes];
                    device.read(place.offset(from as i64), into)?;
                }
            }
        }
        Ok(())
    }

    /// Bytes that the array takes on the host.
    #[inline(never)]
    pub fn memory_bytes(&self) -> u64 {
        self.calculation.memory_bytes()
    }

    /// Bytes that devices sent to each other.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Records when operations run, from now on.
    #[inline(never)]
    pub fn with_timeline(mut self) -> Result<Self, DeviceError> {
        let peers = self.peers;
        let device = |number| peers.device(number);
        self.recorder = Some(Recorder::new(self.units.len(), &device)?);
        Ok(self)
    }

    /// Launches of groups of towers.
    pub fn launches(&self) -> u64 {
        self.launches
    }

    fn advance(&mut self, until: u64, progress: &Progress) -> Result<(), RunError> {
        while self.steps < until {
            self.pass(until, progress)?;
            if progress.guard.looks() {
                self.look()?;
            }
        }
        Ok(())
    }
}

impl<T> Drop for Striped<'_, T> {
    #[inline(never)]
    fn drop(&mut self) {
        // No memory is given back before the work that uses it is over.
        for (number, unit) in self.units.iter().enumerate() {
            end_work(self.peers.device(number), unit.queues.values().copied());
        }
    }
}

impl<T: Value> Simulation<T> for Striped<'_, T> {
    fn scheme(&self) -> &Scheme {
        self.calculation.scheme
    }

    fn problem(&self) -> &Problem {
        self.calculation.problem
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    #[inline(never)]
    fn next_pause(&self) -> u64 {
        // Slices are gathered between passes.
        next_output(self.calculation.problem, self.steps)
    }

    fn stride(&self) -> u64 {
        self.program.towers.program.towers.steps.max(1)
    }

    #[inline(never)]
    fn run(&mut self, until: u64, progress: &Progress) -> Result<(), RunError> {
        self.advance(until, progress)
    }

    #[inline(never)]
    fn fetch(&mut self) -> Result<(), RunError> {
        if !self.calculation.is_after(self.steps) {
            let layout = &self.calculation.layout;
            let [planes, rows] = [Axis::OUTER, Axis::MIDDLE].map(|axis| layout.visible(axis));
            self.collect(planes, rows)?;
            self.calculation.set_steps(self.steps);
        }
        Ok(())
    }

    #[inline(never)]
    fn fetch_parts(&mut self, parts: &[Part]) -> Result<(), RunError> {
        if parts.is_empty() || self.calculation.is_after(self.steps) {
            return Ok(());
        }
        // All values of a plane come together, once for all parts.
        let mut rows_of: BTreeMap<i64, Interval> = BTreeMap::new();
        for Part { region, .. } in parts.iter().filter(|part| !part.region.is_empty()) {
            let [planes, rows] = [Axis::OUTER, Axis::MIDDLE].map(|axis| region[axis]);
            for plane in planes.lo..planes.hi {
                let all = rows_of.get(&plane).map_or(rows, |known| known.hull(rows));
                rows_of.insert(plane, all);
            }
        }
        for (plane, rows) in rows_of {
            self.collect(Interval::new(plane, plane + 1), rows)?;
        }
        self.calculation.set_steps_of_parts(self.steps);
        Ok(())
    }

    fn row(&self, id: ComponentId, age: u8, x: i64, y: i64) -> &[T] {
        self.calculation.aged_row(id, age, x, y)
    }

    fn state(&self, id: StateId, at: PerAxis<i64>) -> T {
        self.calculation.state_value(id, at).unwrap_or_default()
    }

    #[inline(never)]
    fn probe(&self, index: usize) -> Vec<f64> {
        self.probes[index].clone()
    }

    #[inline(never)]
    fn take_pictures(&mut self) -> Vec<Picture> {
        let mut pictures = std::mem::take(&mut self.pictures);
        pictures.sort_by_key(|p| (p.step, p.output));
        pictures
    }

    #[inline(never)]
    fn timeline(&self) -> Option<Timeline> {
        self.recorder.as_ref().map(Recorder::timeline)
    }
}
