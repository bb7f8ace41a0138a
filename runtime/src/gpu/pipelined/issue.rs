//! Operations of a pipeline as work for queues of the device.

use super::Pipelined;
use super::beside::Beside;
use super::chain::Transfer;
use super::ends::{End, Ends};
use super::pass_state::PassState;
use super::planes::Move;
use super::unit::{DeviceSignal, Unit};
use crate::gpu::device::{Address, DeviceError};
use crate::gpu::gather::PlaneGather;
use crate::gpu::queues::{Queues, WorkQueue};
use crate::gpu::tower_blocks::tower_threads;
use crate::simulation::Value;
use std::ops::Range;
use torre_compiler::backend::gpu::abi::TowerBuffers;
use torre_compiler::lattice::Interval;
use torre_compiler::pipeline::{Action, Op};

fn unknown() -> DeviceError {
    DeviceError::Failed {
        operation: "running an operation",
        message: "its pass has not begun".to_owned(),
    }
}

/// A part of the array that is copied.
#[derive(Clone, Copy)]
struct ArrayPart {
    /// On the device.
    place: Address,
    bytes: u64,
    /// Bytes before it in the array of the host, or in a file.
    array_offset: usize,
    /// Bytes before it in links between passes, which count planes on around a ring.
    link_offset: i64,
    ends: Ends<*mut u8>,
}

impl ArrayPart {
    /// A part of the array that is copied from there or back.
    fn new(place: Address, offset: i64, bytes: u64) -> ArrayPart {
        ArrayPart {
            place,
            bytes,
            array_offset: offset as usize,
            link_offset: offset,
            ends: Ends::OUTSIDE,
        }
    }

    /// Its bytes in files.
    fn in_files(&self) -> Range<u64> {
        self.array_offset as u64..self.array_offset as u64 + self.bytes
    }

    /// Its bytes in links.
    fn in_links(&self) -> Range<i64> {
        self.link_offset..self.link_offset + self.bytes as i64
    }

    /// Copies it to memory that keeps it, if there is one for it.
    fn keep(
        &self,
        device: &dyn Queues,
        queue: WorkQueue,
        memory: Option<*mut u8>,
    ) -> Result<(), DeviceError> {
        match memory {
            // SAFETY: there is room for it, which passes before have left.
            Some(memory) => unsafe { device.download(queue, self.place, memory, self.bytes) },
            None => Ok(()),
        }
    }
}

/// The direction of a copy between the host and a device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Load,
    Store,
}

impl<T: Value> Pipelined<'_, T> {
    /// Gives an operation to its queue, behind the operations for which it waits.
    pub(super) fn issue(&mut self, op: &Op) -> Result<(), DeviceError> {
        let number = self.builder.window().device(op.pass);
        let queue = self.units[number].queues.of(op.queue);
        for before in &op.after {
            // Operations that are not known any more are over.
            if let Some(signal) = self.signals.get(before) {
                self.devices.follow(number, queue, *signal)?;
            }
        }
        let begun = self.begin_record(op, queue)?;
        let amount = match op.action {
            Action::Load { planes } => self.load(op, queue, planes),
            Action::Store { planes } => self.store(op, queue, planes),
            Action::Slide { places, by } => self.slide(op, queue, places, by),
            Action::Run { block, group } => self.run_group(op, queue, block, group),
            Action::Gather {
                block,
                output,
                planes,
            } => self.gather(op, queue, block, output, planes),
        }?;
        if let Some(begun) = begun {
            self.end_record(op, queue, begun, amount)?;
        }
        let signal = DeviceSignal {
            device: number,
            signal: self.devices.device(number).signal(queue)?,
        };
        self.signals.insert(op.id, signal);
        let state = self.active.get_mut(op.pass).ok_or_else(unknown)?;
        state.ends.insert(op.queue, op.id);
        state.ops.push(op.id);
        Ok(())
    }

    /// The pass of an operation.
    fn pass_of_op(&self, op: &Op) -> Option<&PassState> {
        self.active.get(op.pass)
    }

    /// The device of an operation, and its unit.
    fn unit(&self, op: &Op) -> (&dyn Queues, &Unit) {
        let number = self.builder.window().device(op.pass);
        (self.devices.device(number), &self.units[number])
    }

    /// Planes of a pass, in parts that follow each other in the array and come from one place, or go to one.
    fn array_parts(&self, op: &Op, planes: Interval, direction: Direction) -> Vec<ArrayPart> {
        let window = self.builder.window();
        let array = self
            .planes
            .array(self.unit(op).1.buffer, window, op.pass, op.base);
        let rotation = self.rotation_of(op);
        let kept = self.over.as_ref().and_then(|over| over.kept.as_ref());
        let mut found = Vec::new();
        // As planes go through a pass: from high to low ones along the way.
        let all = kept.map_or(vec![planes], |kept| kept.parts(op.pass, planes));
        for planes in all.into_iter().rev() {
            let mut parts = self.planes.parts(planes, window.ring, rotation);
            if self.footprints.way() > 0 {
                parts.reverse();
            }
            for part in parts {
                let place = array.offset(self.planes.offset(part.planes));
                let bytes = part.planes.len() as u64 * self.planes.each();
                let mut own = ArrayPart::new(place, self.planes.offset(part.of_array), bytes);
                if let Some(kept) = kept {
                    own.ends = match direction {
                        Direction::Load => kept.loaded(op.pass, planes, part),
                        Direction::Store => kept.stored(op.pass, planes, part),
                    };
                    own.link_offset = kept.offset(op.pass, part).unwrap_or(own.link_offset);
                }
                found.push(own);
            }
        }
        found
    }

    /// The rotation of the pass of an operation.
    fn rotation_of(&self, op: &Op) -> i64 {
        self.pass_of_op(op).map_or(0, |pass| pass.rotation)
    }

    /// Copies a part of the array to the device, from a file, from a link to the pass before, from
    /// memory that keeps planes, or from the host's array.
    fn bring(&mut self, op: &Op, queue: WorkQueue, own: ArrayPart) -> Result<(), DeviceError> {
        let ArrayPart { place, bytes, .. } = own;
        let device = self.devices.device(self.builder.window().device(op.pass));
        let Some(over) = &mut self.over else {
            // SAFETY: the planes lie in the host's array, which no other thread accesses while passes run; operations
            // that store them are ordered.
            return unsafe { device.upload(queue, self.host.add(own.array_offset), place, bytes) };
        };
        match own.ends.end {
            // SAFETY: the planes lie there; the operation that put them there is waited for, or comes before in this
            // queue.
            End::Kept(memory) => unsafe { device.upload(queue, memory, place, bytes) }?,
            End::Outside => match over.chain.taken(op.pass, op.id, own.in_links()) {
                None => over.load(device, queue, own.in_files(), place)?,
                Some(taken) => {
                    for Transfer { memory, range } in taken {
                        let to = place.offset(range.start - own.link_offset);
                        let bytes = (range.end - range.start) as u64;
                        // SAFETY: the link has room from there on, and the operation that stored it there is ordered;
                        // others that put something else there wait for this one.
                        unsafe { device.upload(queue, memory, to, bytes) }?;
                    }
                }
            },
        }
        own.keep(device, queue, own.ends.also_keep)
    }

    /// The other way round.
    fn take_back(&mut self, op: &Op, queue: WorkQueue, own: ArrayPart) -> Result<(), DeviceError> {
        let ArrayPart { place, bytes, .. } = own;
        let number = self.builder.window().device(op.pass);
        let device = self.devices.device(number);
        let Some(over) = &mut self.over else {
            // SAFETY: as in `bring`.
            return unsafe {
                device.download(queue, place, self.host.add(own.array_offset), bytes)
            };
        };
        own.keep(device, queue, own.ends.also_keep)?;
        if let End::Kept(memory) = own.ends.end {
            return own.keep(device, queue, Some(memory));
        }
        let Some((given, users)) = over.chain.given(op.pass, own.in_links()) else {
            return over.store(device, queue, own.in_files(), place);
        };
        for user in users {
            if let Some(signal) = self.signals.get(&user) {
                self.devices.follow(number, queue, *signal)?;
            }
        }
        given
            .into_iter()
            .try_for_each(|Transfer { memory, range }| {
                let from = place.offset(range.start - own.link_offset);
                let bytes = (range.end - range.start) as u64;
                // SAFETY: the link has room from there on, and the bytes that were there have been loaded.
                unsafe { device.download(queue, from, memory, bytes) }
            })
    }

    /// Bytes that are copied.
    fn load(&mut self, op: &Op, queue: WorkQueue, planes: Interval) -> Result<u64, DeviceError> {
        let mut all = 0;
        for own in self.array_parts(op, planes, Direction::Load) {
            all += own.bytes;
            self.bring(op, queue, own)?;
        }
        for ArrayPart {
            place,
            array_offset,
            bytes,
            ..
        } in self.beside_planes(op, planes)
        {
            let (device, _) = self.unit(op);
            // SAFETY: the states of these planes lie there, and operations that store them are ordered.
            unsafe { device.upload(queue, self.beside_on_host(array_offset), place, bytes) }?;
            all += bytes;
        }
        Ok(all)
    }

    /// Where the host has something that lies beside planes, by its offset in the array.
    fn beside_on_host(&self, offset: usize) -> *mut u8 {
        let beside = self
            .over
            .as_ref()
            .and_then(|over| over.chain.beside.as_ref());
        match beside {
            Some((beside, first)) => beside.at(offset - first),
            // SAFETY: it lies in the host's array.
            None => unsafe { self.host.add(offset) },
        }
    }

    /// The same for the states of planes that lie beside them, which go from device to device with the planes.
    fn beside_planes(&self, op: &Op, planes: Interval) -> Vec<ArrayPart> {
        let (_, unit) = self.unit(op);
        let Some(beside) = unit.beside.as_ref().filter(|_| self.units.len() > 1) else {
            return Vec::new();
        };
        let layout = &self.calculation.layout;
        let size = layout.element_bytes as i64;
        let ring = self.builder.window().ring;
        let parts = self.planes.parts(planes, ring, self.rotation_of(op));
        let lines = parts
            .into_iter()
            .flat_map(|part| layout.beside_part(part.of_array));
        let parts = lines.map(|lines| {
            let first = lines.first * size;
            let place = beside.array().offset(first);
            ArrayPart::new(place, first, (lines.length * size) as u64)
        });
        parts.collect()
    }

    /// Bytes that are copied.
    fn store(&mut self, op: &Op, queue: WorkQueue, planes: Interval) -> Result<u64, DeviceError> {
        let mut all = 0;
        for own in self.array_parts(op, planes, Direction::Store) {
            all += own.bytes;
            self.take_back(op, queue, own)?;
        }
        for ArrayPart {
            place,
            array_offset,
            bytes,
            ..
        } in self.beside_planes(op, planes)
        {
            let (device, _) = self.unit(op);
            // SAFETY: as in `load`.
            unsafe { device.download(queue, place, self.beside_on_host(array_offset), bytes) }?;
            all += bytes;
        }
        Ok(all)
    }

    /// Bytes that are copied.
    fn slide(
        &self,
        op: &Op,
        queue: WorkQueue,
        places: Interval,
        by: i64,
    ) -> Result<u64, DeviceError> {
        let (device, unit) = self.unit(op);
        let mut all = 0;
        for Move { from, to, bytes } in self.planes.moves(unit.buffer, places, by) {
            device.copy_in(queue, from, to, bytes)?;
            all += bytes;
        }
        Ok(all)
    }

    /// Towers that are run.
    fn run_group(
        &self,
        op: &Op,
        queue: WorkQueue,
        block: usize,
        group: i64,
    ) -> Result<u64, DeviceError> {
        let state = self
            .pass_of_op(op)
            .and_then(|pass| pass.blocks.get(block))
            .ok_or_else(unknown)?;
        let (device, unit) = self.unit(op);
        let ready = unit.ready.get(&state.steps).ok_or_else(unknown)?;
        let scheme = self.calculation.scheme;
        let first = self
            .footprints
            .known(state.steps)
            .map(|height| height.first);
        let number = first.and_then(|first| usize::try_from(group - first).ok());
        let number = number.ok_or_else(unknown)?;
        let waves = state.from * self.waves.per_step() as u64 * 8;
        let each = (self.receivers.len() * scheme.precision.bytes()) as u64;
        let window = self.builder.window();
        let before = window.passes_before(op.pass);
        let array = self.planes.array(unit.buffer, window, op.pass, op.base);
        let array = self.planes.farther(array, state.moved);
        let beside = unit.beside.as_ref().map_or(array, Beside::array);
        let cut = Self::cut_at(state, group).and_then(|above| ready.cut.get(above));
        let rotated = unit.rotated.get(&state.lie);
        let tasks = rotated.map_or(ready.buffers.tasks, |tables| tables.tasks.0);
        let buffers = TowerBuffers {
            array: array.0,
            tasks: cut.copied().unwrap_or(tasks),
            points: rotated.map_or(ready.buffers.points, |tables| tables.points.0),
            beside: ready.buffers.beside.map(|_| beside.0),
            waves: unit.waves.of(before).offset(waves as i64).0,
            records: unit.records.of(before).offset((state.from * each) as i64).0,
            ..ready.buffers.clone()
        };
        let time_block = &ready.time_block;
        let mut all = 0;
        for z_block in 0..time_block.z_blocks.len() {
            let launch = time_block.launch(&buffers, &unit.volumes, state.since, z_block, number);
            let towers = u32::try_from(launch.towers).unwrap_or(u32::MAX);
            if towers == 0 {
                continue;
            }
            let threads = tower_threads(time_block, towers.min(self.clusters));
            // SAFETY: the parameters are the ones that the compiler lists; the planes that the group's towers access
            // lie in the buffer where an array that begins there has them, profiles in arrays over the boxes of volume
            // sources, and there are waves of all steps of the pass, and room for their records.
            unsafe { device.start_in(queue, unit.function, threads, &launch.arguments) }?;
            all += u64::from(towers);
        }
        Ok(all)
    }

    /// Values that are gathered.
    fn gather(
        &self,
        op: &Op,
        queue: WorkQueue,
        block: usize,
        output: usize,
        planes: Interval,
    ) -> Result<u64, DeviceError> {
        let state = self
            .pass_of_op(op)
            .and_then(|pass| pass.blocks.get(block))
            .ok_or_else(unknown)?;
        let slice = state.slices.get(output).ok_or_else(unknown)?;
        let (device, unit) = self.unit(op);
        let function = unit.gather.ok_or_else(unknown)?;
        let window = self.builder.window();
        let array = self.planes.array(unit.buffer, window, op.pass, op.base);
        let bytes = self.calculation.layout.element_bytes;
        let planes = self.planes.of_array(planes);
        let (place, out) = slice.part(planes, unit.slices.of(window.passes_before(op.pass)), bytes);
        let PlaneGather { threads, arguments } = PlaneGather::new(&place, array, out)?;
        // SAFETY: the parameters are the kernel's; the planes lie in the buffer, and there is room for the slice.
        unsafe { device.start_in(queue, function, threads, &arguments) }?;
        Ok(place.count())
    }
}
