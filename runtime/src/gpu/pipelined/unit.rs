//! The devices of a calculation by time blocks in flight, and the objects on each.

use super::beside::Beside;
use super::in_flight::InFlight;
use super::planes::PlaneBytes;
use super::slices::Sizes;
use crate::gpu::code::DeviceProgram;
use crate::gpu::device::{Address, Device, DeviceError, Function};
use crate::gpu::queues::{Peers, Queues, Signal, WorkQueue};
use crate::gpu::tower_blocks::{Ready, RotatedTables, TableMemory};
use crate::gpu::towers::CompiledTowers;
use crate::gpu::volumes::{self, VolumeChoice};
use crate::host::Calculation;
use crate::simulation::Value;
use std::collections::BTreeMap;
use torre_compiler::backend::gpu::abi::Volumes;
use torre_compiler::backend::gpu::{service, tower};
use torre_compiler::injection::Injections;
use torre_compiler::pipeline::Queue;

/// The devices of a calculation.
#[derive(Clone, Copy)]
pub enum Devices<'a> {
    One(&'a dyn Queues),
    /// They take passes in turns, or slabs.
    InTurns(&'a dyn Peers),
}

impl<'a> Devices<'a> {
    pub fn count(self) -> usize {
        match self {
            Devices::One(_) => 1,
            Devices::InTurns(peers) => peers.count().max(1),
        }
    }

    /// The device of a unit: buffers of slabs have units of their own, on all devices in turns.
    pub fn device(self, number: usize) -> &'a dyn Queues {
        match self {
            Devices::One(device) => device,
            Devices::InTurns(peers) => peers.device(self.index(number)),
        }
    }

    /// The number of the device of a unit.
    pub(super) fn index(self, number: usize) -> usize {
        number % self.count()
    }

    /// Lets a queue of a device wait for a signal.
    pub(super) fn follow(
        self,
        number: usize,
        queue: WorkQueue,
        signal: DeviceSignal,
    ) -> Result<(), DeviceError> {
        let [own, other] = [number, signal.device].map(|number| self.index(number));
        match self {
            Devices::InTurns(peers) if own != other => {
                peers.follow_peer(own, queue, other, signal.signal)
            }
            _ => self.device(number).follow(queue, signal.signal),
        }
    }
}

/// A signal of the device of a unit, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceSignal {
    pub device: usize,
    pub signal: Signal,
}

/// Memory that the passes of a device have in turns: one of them runs while another one ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct PassMemory {
    places: [Address; 2],
}

impl PassMemory {
    pub fn new(device: &dyn Device, bytes: u64) -> Result<PassMemory, DeviceError> {
        Ok(PassMemory {
            places: [device.take(bytes)?, device.take(bytes)?],
        })
    }

    /// The place of a pass, by the number of passes that the device has had before.
    pub fn of(&self, before: u64) -> Address {
        self.places[(before % 2) as usize]
    }
}

/// The queues of a device for the queues of a pipeline.
#[derive(Clone, Debug)]
pub(super) struct DeviceQueues {
    pub loads: WorkQueue,
    pub stores: WorkQueue,
    pub blocks: Vec<WorkQueue>,
}

impl DeviceQueues {
    pub fn new(device: &dyn Queues, blocks: usize) -> Result<DeviceQueues, DeviceError> {
        Ok(DeviceQueues {
            loads: device.queue()?,
            stores: device.queue()?,
            blocks: (0..blocks.max(1))
                .map(|_| device.queue())
                .collect::<Result<_, _>>()?,
        })
    }

    pub fn of(&self, queue: Queue) -> WorkQueue {
        match queue {
            Queue::Loads => self.loads,
            Queue::Stores => self.stores,
            Queue::Blocks(n) => self.blocks[n % self.blocks.len()],
        }
    }

    pub fn all(&self) -> impl Iterator<Item = WorkQueue> + '_ {
        [self.loads, self.stores]
            .into_iter()
            .chain(self.blocks.iter().copied())
    }
}

/// How the towers of a time block lie: its height, and the rotation of planes that are counted on around a ring, where
/// tables depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lie {
    pub steps: u64,
    pub rotation: i64,
}

/// A device with its objects for a calculation.
pub(super) struct Unit {
    pub function: Function,
    pub gather: Option<Function>,
    /// Of single values, if the device holds the whole array.
    pub gather_values: Option<Function>,
    pub queues: DeviceQueues,
    pub volumes: Volumes,
    pub buffer: Address,
    /// The data beside planes, if they are not in the buffer.
    pub beside: Option<Beside>,
    /// By their steps.
    pub ready: BTreeMap<u64, Ready>,
    /// Tables for other rotations.
    pub rotated: BTreeMap<Lie, RotatedTables>,
    pub table_memory: TableMemory,
    pub waves: PassMemory,
    pub records: PassMemory,
    pub slices: PassMemory,
}

/// The data from which the units of a run are made.
pub(super) struct UnitParts<'s, 'a, T> {
    pub calculation: &'s Calculation<'a, T>,
    pub devices: Devices<'a>,
    pub program: DeviceProgram<'s>,
    pub towers: &'s CompiledTowers,
    pub how: InFlight,
    pub injections: &'s Injections,
    pub volumes: &'s VolumeChoice,
    pub planes: &'s PlaneBytes,
    pub sizes: Sizes,
    /// Bytes of a device's memory.
    pub needed: u64,
    /// Queues of time blocks.
    pub in_flight: usize,
}

impl<T: Value> UnitParts<'_, '_, T> {
    /// The unit with a number, after the ones before it. `None` where towers cannot run the sources.
    pub fn unit(&self, number: usize, before: &[Unit]) -> Result<Option<Unit>, DeviceError> {
        let (how, sizes, calculation) = (self.how, self.sizes, self.calculation);
        let layout = &calculation.layout;
        let device = self.devices.device(number);
        let available = device.free_memory()?;
        let first = number.checked_sub(self.devices.count());
        if self.needed > available && first.is_none() {
            return Err(DeviceError::Memory {
                needed: self.needed,
                available,
            });
        }
        let steps = self.towers.steps;
        let Ok(volumes) = volumes::place(device, self.injections, self.volumes, steps)? else {
            return Ok(None);
        };
        let bytes = self.planes.buffer_bytes();
        let buffer = match self.planes.is_circular() {
            true => device.take_circular(bytes)?,
            false => device.take(bytes)?,
        };
        let beside = match how.held.places() {
            Some(_) => Beside::new(device, layout, calculation.array(), calculation.steps())?,
            None => {
                device.write(buffer, calculation.array())?;
                None
            }
        };
        Ok(Some(Unit {
            function: load(device, &self.towers.ptx.text, tower::TOWERS)?,
            gather: match sizes.slices > 0 {
                true => Some(load(device, &self.program.ptx.text, service::GATHER_PLANE)?),
                false => None,
            },
            gather_values: match how.held.places() {
                Some(_) => None,
                None => Some(load(device, &self.program.ptx.text, service::GATHER)?),
            },
            // Both buffers of a device have its queues.
            queues: match first.and_then(|first| before.get(first)) {
                Some(first) => first.queues.clone(),
                None => DeviceQueues::new(device, self.in_flight)?,
            },
            volumes,
            buffer,
            beside,
            ready: BTreeMap::new(),
            rotated: BTreeMap::new(),
            table_memory: TableMemory::default(),
            waves: PassMemory::new(device, sizes.waves)?,
            records: PassMemory::new(device, sizes.probes)?,
            slices: PassMemory::new(device, sizes.slices)?,
        }))
    }
}

/// A kernel.
fn load(device: &dyn Device, ptx: &str, name: &str) -> Result<Function, DeviceError> {
    let functions = device.load(ptx, &[name.to_owned()])?;
    functions.first().copied().ok_or(DeviceError::Code {
        message: "a kernel is missing".to_owned(),
    })
}
