//! The time blocks of towers of a calculation on a device: tasks, work queues and points of each height, and the
//! launches of the kernel.

use super::device::{Address, Device, DeviceError, Function, Threads};
use super::ghost_kernel::GhostKernel;
use super::interruptions::Heights;
use super::no_time_blocks::NoTimeBlocks;
use super::towers::CompiledTowers;
use std::collections::{BTreeMap, BTreeSet};
use torre_compiler::backend::gpu::abi::{
    TaskWord, TimeBlock, TowerBuffers, Volumes, point_table, queues, task_words,
};
use torre_compiler::backend::gpu::tower;
use torre_compiler::layout::Layout;
use torre_compiler::scheme::Scheme;
use torre_compiler::tower::{Points, TaskList, Towers};

/// Injections and records inside of time blocks.
#[derive(Clone, Debug)]
pub(super) struct Injected {
    pub points: Points,
    pub volumes: Volumes,
}

/// The threads of some clusters that run towers of a time block.
pub(super) fn tower_threads(time_block: &TimeBlock, clusters: u32) -> Threads {
    Threads {
        blocks: [clusters * time_block.cluster, 1, 1],
        threads: [time_block.threads, 1, 1],
        shared: time_block.shared_bytes,
    }
}

/// The towers of a calculation, on a device.
#[derive(Debug)]
pub struct TowerBlocks {
    function: Function,
    /// Bytes of memory that a thread has of its own.
    pub(super) spilled: u64,
    /// If these neither read ghosts along the inner axis in memory nor keep them there.
    ghosts: Option<GhostKernel>,
    /// The most clusters of a launch.
    clusters: u32,
    pub(super) heights: Heights,
    towers: CompiledTowers,
    injected: Injected,
    /// Receivers record values that no tower records: they have to be recorded before each time block.
    pub(super) leaves_out: bool,
    /// Made when they are needed, by their steps, or why they cannot be run.
    ready: BTreeMap<u64, Result<Ready, NoTimeBlocks>>,
    /// Memory of their tables.
    memory: TableMemory,
}

/// A time block of some height, ready to run.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    pub time_block: TimeBlock,
    /// But for the array, waves and records.
    pub buffers: TowerBuffers,
    /// The progress that towers have reached.
    pub since: u32,
    /// The same tasks for slabs, whose towers do not wait for towers of groups that a slab does not run: by how many
    /// groups a task's group comes after the first one of the slab. See [`Ready::cut_off`].
    pub cut: Vec<u64>,
    /// All memory of its tables.
    places: Vec<Address>,
}

/// Tables of a time block as the host makes them.
#[derive(Debug)]
pub(super) struct HostTables {
    /// The words of all tasks.
    tasks: Vec<i32>,
    points: Vec<u8>,
}

/// Tables of a time block with planes that are counted on around a ring from another plane than in [`Ready`]: the same
/// tasks, in the same queues and with the same progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct RotatedTables {
    pub tasks: Address,
    pub points: Address,
}

/// Progress starts anew beyond this.
pub(super) const MOST: u32 = 1 << 30;

/// The least distance of queues of tasks in bytes.
const QUEUES_APART: usize = 256;

/// The towers of a time block.
#[derive(Debug)]
pub(super) struct Listed<'a> {
    /// As they lie, where planes are counted on around a ring.
    pub towers: &'a Towers,
    pub list: TaskList,
    pub steps: u64,
}

/// Memory of a device for tables of time blocks. Memory that is not used any more goes to later time blocks: to give it
/// back would make the device wait for all of its work.
#[derive(Clone, Debug, Default)]
pub(super) struct TableMemory {
    /// Bytes and place of unused memory.
    spare: Vec<(u64, Address)>,
    /// The same of all that was taken.
    taken: BTreeMap<Address, u64>,
}

impl TableMemory {
    fn take(&mut self, device: &dyn Device, bytes: u64) -> Result<Address, DeviceError> {
        let enough = |(size, _): &(u64, Address)| *size >= bytes;
        let fits = self.spare.iter().enumerate();
        let fits = fits.filter(|(_, spare)| enough(spare));
        if let Some(index) = fits.min_by_key(|(_, spare)| spare.0).map(|(n, _)| n) {
            return Ok(self.spare.swap_remove(index).1);
        }
        let place = device.take(bytes)?;
        self.taken.insert(place, bytes);
        Ok(place)
    }

    /// Takes memory by an attempt. Memory of an attempt that fails is spare.
    pub fn attempt<R>(
        &mut self,
        take: impl FnOnce(&mut TableMemory) -> Result<R, DeviceError>,
    ) -> Result<R, DeviceError> {
        let spare = self.spare.clone();
        let is_spare = |place: &Address| spare.iter().any(|(_, other)| other == place);
        let used = self.taken.keys().filter(|place| !is_spare(place));
        let used: BTreeSet<Address> = used.copied().collect();
        let done = take(self);
        if done.is_err() {
            let unused = self.taken.iter().filter(|(place, _)| !used.contains(place));
            self.spare = unused.map(|(place, bytes)| (*bytes, *place)).collect();
        }
        done
    }

    /// Leaves the tables of a time block to others; no launch uses them any more.
    pub fn leave(&mut self, tables: RotatedTables) {
        for place in [tables.tasks, tables.points] {
            self.spare
                .extend(self.taken.get(&place).map(|bytes| (*bytes, place)));
        }
    }

    /// Gives the memory of a time block back, and all unused memory; no launch uses it any more.
    pub fn give_back_of(&mut self, device: &dyn Device, ready: Ready) -> Result<(), DeviceError> {
        let known = ready.places.into_iter();
        let known = known.filter_map(|place| Some((*self.taken.get(&place)?, place)));
        self.spare.extend(known);
        self.give_back_spare(device)
    }

    /// Gives all unused memory back.
    pub fn give_back_spare(&mut self, device: &dyn Device) -> Result<(), DeviceError> {
        for (_, place) in std::mem::take(&mut self.spare) {
            if self.taken.remove(&place).is_some() {
                device.give_back(place)?;
            }
        }
        Ok(())
    }

    /// Gives all memory back; no launch uses it any more.
    fn give_back(self, device: &dyn Device) -> Result<(), DeviceError> {
        self.taken
            .into_keys()
            .try_for_each(|place| device.give_back(place))
    }

    fn words(&mut self, device: &dyn Device, words: &[i32]) -> Result<Address, DeviceError> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let place = self.take(device, bytes.len().max(4) as u64)?;
        device.write(place, &bytes)?;
        Ok(place)
    }
}

impl HostTables {
    /// The tables of the towers of a list, whose interior periods become fewer where there are points; or says why they
    /// cannot run the points.
    pub fn new(
        towers: &CompiledTowers,
        scheme: &Scheme,
        layout: &Layout,
        points: &Points,
        of: &mut Listed<'_>,
    ) -> Result<Result<HostTables, NoTimeBlocks>, DeviceError> {
        let program = &towers.program;
        let Listed {
            towers: own,
            list,
            steps,
        } = of;
        let periods = *steps / program.towers.steps;
        let plan = points.attach(scheme, layout, own, periods, &mut list.tasks);
        let table = plan.and_then(|plan| {
            let per_period = program.per_period();
            point_table(scheme, layout, points, &plan, &list.tasks, per_period)
        });
        let Some(table) = table else {
            return Ok(Err(NoTimeBlocks::Points));
        };
        let count = list.tasks.len();
        let mut tasks = Vec::with_capacity(count * TaskWord::COUNT as usize);
        for (task, points) in list.tasks.iter().zip(&table.tasks) {
            let words = task_words(layout, task, count, *points);
            tasks.extend(words.ok_or(DeviceError::TooLong)?);
        }
        Ok(Ok(HostTables {
            tasks,
            points: table.bytes,
        }))
    }

    /// Brings them to a device.
    pub fn send(
        &self,
        memory: &mut TableMemory,
        device: &dyn Device,
    ) -> Result<RotatedTables, DeviceError> {
        let points = memory.take(device, self.points.len() as u64)?;
        device.write(points, &self.points)?;
        let tasks = memory.words(device, &self.tasks)?;
        Ok(RotatedTables { tasks, points })
    }
}

impl Ready {
    /// Brings the towers of a list with their points to a device; or says why they cannot run the points.
    pub fn new(
        memory: &mut TableMemory,
        device: &dyn Device,
        towers: &CompiledTowers,
        scheme: &Scheme,
        layout: &Layout,
        points: &Points,
        mut of: Listed<'_>,
    ) -> Result<Result<Ready, NoTimeBlocks>, DeviceError> {
        let tables = match HostTables::new(towers, scheme, layout, points, &mut of)? {
            Ok(tables) => tables,
            Err(reason) => return Ok(Err(reason)),
        };
        let Listed { list, steps, .. } = of;
        let Some(time_block) = towers.time_block(scheme, list, steps) else {
            return Ok(Err(NoTimeBlocks::Lean { steps }));
        };
        if time_block.over(0) > MOST / 4 {
            return Err(DeviceError::TooLong);
        }
        let progress = time_block.progress(0);
        let near = &device.facts().l2_partition;
        let launches = 0..time_block.list.launches.len();
        let (mut starts, mut all) = (Vec::new(), Vec::new());
        for launch in launches {
            let queue = queues(&time_block.list, launch, near).ok_or(DeviceError::TooLong)?;
            starts.push(all.len() as u64 * 4);
            all.extend(queue);
            all.resize(all.len().next_multiple_of(QUEUES_APART / 4), 0);
        }
        let sent = memory.attempt(|memory| {
            let tables = tables.send(memory, device)?;
            let queues = memory.words(device, &all)?;
            let place = memory.take(device, progress.len() as u64)?;
            device.write(place, &progress)?;
            Ok((tables, queues, place))
        });
        let (RotatedTables { tasks, points }, queues, place) = sent?;
        Ok(Ok(Ready {
            buffers: TowerBuffers {
                array: 0,
                tasks: tasks.0,
                progress: place.0,
                queues: starts.into_iter().map(|start| queues.0 + start).collect(),
                points: points.0,
                waves: 0,
                records: 0,
                beside: layout.has_beside().then_some(0),
            },
            time_block,
            since: 0,
            cut: Vec::new(),
            places: vec![tasks, points, queues, place],
        }))
    }

    /// Brings tasks to a device that have no neighbours in launches before the first one of a slab, for each number of
    /// launches between it and a task's where that matters.
    pub fn cut_off(
        &mut self,
        memory: &mut TableMemory,
        device: &dyn Device,
    ) -> Result<(), DeviceError> {
        let list = &self.time_block.list;
        let mut launch_of = vec![0; list.tasks.len()];
        for launch in 0..list.launches.len() {
            launch_of[list.of_launch(launch)].fill(launch);
        }
        let above = |task: usize, other: Option<usize>| {
            other.map_or(0, |other| launch_of[task].saturating_sub(launch_of[other]))
        };
        let tasks = || list.tasks.iter().enumerate();
        let reach = tasks().flat_map(|(n, task)| task.neighbours.map(|other| above(n, other)));
        let reach = reach.max().unwrap_or(0);
        let mut bytes = vec![0; list.tasks.len() * TaskWord::BYTES as usize];
        device.read(Address(self.buffers.tasks), &mut bytes)?;
        let none = i32::try_from(list.tasks.len()).map_err(|_| DeviceError::TooLong)?;
        for launches in 0..reach {
            let mut own = bytes.clone();
            for (number, task) in tasks() {
                for (word, other) in TaskWord::NEIGHBOURS.into_iter().zip(task.neighbours) {
                    if above(number, other) > launches {
                        let at = number * TaskWord::BYTES as usize + 4 * word as usize;
                        own[at..at + 4].copy_from_slice(&none.to_le_bytes());
                    }
                }
            }
            let place = memory.take(device, own.len().max(4) as u64)?;
            device.write(place, &own)?;
            self.cut.push(place.0);
            self.places.push(place);
        }
        Ok(())
    }

    /// Lets progress start anew if it has come far; nothing of it is in flight.
    pub fn renew(&mut self, device: &dyn Device) -> Result<(), DeviceError> {
        if self.since > MOST {
            let progress = Address(self.buffers.progress);
            device.write(progress, &self.time_block.progress(0))?;
            self.since = 0;
        }
        Ok(())
    }
}

impl TowerBlocks {
    /// Makes towers ready, or says why they cannot run the points.
    pub(super) fn new(
        device: &dyn Device,
        towers: &CompiledTowers,
        scheme: &Scheme,
        layout: &Layout,
        injected: Injected,
    ) -> Result<Result<TowerBlocks, NoTimeBlocks>, DeviceError> {
        let block = &towers.program.block;
        let mut names = vec![tower::TOWERS.to_owned()];
        if block.ghosts.is_some() {
            names.push(tower::GHOSTS.to_owned());
        }
        let functions = device.load(&towers.ptx.text, &names)?;
        let Some(function) = functions.first().copied() else {
            return Err(DeviceError::Code {
                message: "a kernel is missing".to_owned(),
            });
        };
        let ghosts = block.ghosts.as_ref().zip(functions.get(1));
        let mut time_blocks = TowerBlocks {
            function,
            spilled: device.spilled(function)?,
            ghosts: ghosts.map(|(ghosts, function)| {
                let pass = &ghosts.pass;
                GhostKernel::new(*function, [pass.blocks, 1, 1], [pass.threads, 1, 1])
            }),
            clusters: towers.clusters(device.facts()),
            heights: towers.heights(scheme),
            towers: towers.clone(),
            leaves_out: injected.points.leave_out(),
            injected,
            ready: BTreeMap::new(),
            memory: TableMemory::default(),
        };
        let made = time_blocks.make(device, scheme, layout, towers.steps);
        let reason = match time_blocks.ready.get(&towers.steps) {
            Some(Ok(_)) => return Ok(Ok(time_blocks)),
            Some(Err(reason)) => reason.clone(),
            None => NoTimeBlocks::Towers {
                steps: towers.steps,
            },
        };
        time_blocks.give_back(device)?;
        made.map(|()| Err(reason))
    }

    /// The kernel that has to run after a time block, before any code other than such towers reads ghosts along the
    /// inner axis.
    pub(super) fn ghosts(&self) -> Option<GhostKernel> {
        self.ghosts
    }

    /// Makes the towers of a time block ready, if it can be run.
    pub(super) fn has(
        &mut self,
        device: &dyn Device,
        scheme: &Scheme,
        layout: &Layout,
        steps: u64,
    ) -> Result<bool, DeviceError> {
        self.make(device, scheme, layout, steps)?;
        Ok(matches!(self.ready.get(&steps), Some(Ok(_))))
    }

    fn make(
        &mut self,
        device: &dyn Device,
        scheme: &Scheme,
        layout: &Layout,
        steps: u64,
    ) -> Result<(), DeviceError> {
        if !self.ready.contains_key(&steps) {
            let ready = match self.prepare(device, scheme, layout, steps) {
                // Single steps replace time blocks.
                Err(DeviceError::Memory { .. }) => Err(NoTimeBlocks::Memory { steps }),
                other => other?,
            };
            self.ready.insert(steps, ready);
        }
        Ok(())
    }

    fn prepare(
        &mut self,
        device: &dyn Device,
        scheme: &Scheme,
        layout: &Layout,
        steps: u64,
    ) -> Result<Result<Ready, NoTimeBlocks>, DeviceError> {
        let Some(list) = self.towers.list_of(scheme, layout, steps) else {
            return Ok(Err(NoTimeBlocks::Towers { steps }));
        };
        let points = &self.injected.points;
        let of = Listed {
            towers: &self.towers.program.towers,
            list,
            steps,
        };
        let memory = &mut self.memory;
        Ready::new(memory, device, &self.towers, scheme, layout, points, of)
    }

    /// Steps of a time block, at most.
    pub(super) fn steps(&self) -> u64 {
        self.towers.steps
    }

    /// Gives the memory of their tables back; no launch uses it any more.
    pub(super) fn give_back(self, device: &dyn Device) -> Result<(), DeviceError> {
        self.memory.give_back(device)
    }

    /// Runs a time block of `steps` steps, which has to be ready, on an array of the layout, with the waves of its
    /// steps; receivers record from a place on. Gives the number of launches.
    pub(super) fn run(
        &mut self,
        device: &dyn Device,
        steps: u64,
        array: Address,
        waves: Address,
        records: Address,
    ) -> Result<u64, DeviceError> {
        let Some(Ok(ready)) = self.ready.get_mut(&steps) else {
            return Err(DeviceError::TooLong);
        };
        ready.renew(device)?;
        let time_block = &ready.time_block;
        let buffers = TowerBuffers {
            array: array.0,
            waves: waves.0,
            records: records.0,
            beside: ready.buffers.beside.map(|_| array.0),
            ..ready.buffers.clone()
        };
        let launches = time_block.launches(&buffers, &self.injected.volumes, ready.since);
        for launch in &launches {
            let towers = u32::try_from(launch.towers).unwrap_or(u32::MAX);
            let threads = tower_threads(time_block, towers.min(self.clusters));
            // SAFETY: the parameters are the ones that the compiler lists; the tasks' rows and the places of points lie
            // in the array of the layout, profiles in arrays over the boxes of volume sources, and there are waves of
            // all steps of the time block, and room for their records.
            unsafe { device.start(self.function, threads, &launch.arguments) }?;
        }
        ready.since = time_block.over(ready.since);
        Ok(launches.len() as u64)
    }
}
