//! The kernel that runs the towers of a time block: its parameters, and its launches.

use super::{Argument, PROGRESS_BYTES, VolumeParams, parameters};
use crate::backend::gpu::ir::Type;
use crate::scheme::Scheme;
use crate::tower::block::{Block, Lines, ZBlock};
use crate::tower::{Order, TaskList, Towers};

parameters! {
    /// The parameters of every launch of towers. Progress of earlier time blocks lies at or below the value from which
    /// this one counts. After a launch its work queues are as before.
    pub struct TowerParams {
        ARRAY => array: u64,
        TASKS => tasks: u64,
        /// Of tasks.
        COUNT => count: i32,
        /// One word of progress for each task and one more, [`PROGRESS_BYTES`] apart; as many for each as a cluster has
        /// blocks. The last ones are `i32::MAX`.
        PROGRESS => progress: u64,
        QUEUES => queues: u64,
        /// How many work queues there are.
        PARTITIONS => partitions: i32,
        /// The value from which progress counts.
        SINCE => since: i32,
        /// The progress of a tower that is done.
        OVER => over: i32,
        /// See [`Order::head_start`].
        HEAD_START => head_start: i32,
        /// The table of points.
        POINTS => points: u64,
        /// The waves of the time block's steps, and where receivers record.
        WAVES => waves: u64,
        RECORDS => records: u64,
    }
}

parameters! {
    /// Further parameters of launches that run a z block.
    pub struct ZBlockParams {
        /// The first thread's index.
        BASE => base: i32,
        /// Where the lower face begins, and how far above it the upper one does.
        LOW => low: i32,
        WIDTH => width: i32,
    }
}

impl TowerParams {
    /// After them, if there are volume sources: the bytes of the waves of a step, and the parameters of each source.
    const VOLUMES: usize = TowerParams::TYPES.len();
    /// The bytes of the waves of a step.
    pub const WAVE_BYTES: usize = TowerParams::VOLUMES;

    /// The number of a parameter of a volume source.
    pub const fn of_volume(source: usize, parameter: usize) -> usize {
        TowerParams::VOLUMES + 1 + source * VolumeParams::COUNT + parameter
    }

    /// The number of a parameter of a z block, after the parameters of `sources` volume sources.
    pub const fn of_z_block(sources: usize, parameter: usize) -> usize {
        let volumes = match sources {
            0 => 0,
            n => 1 + n * VolumeParams::COUNT,
        };
        TowerParams::VOLUMES + volumes + parameter
    }
}

/// The parameters of a kernel beside the parameters that all kernels have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamsOf {
    /// Volume sources.
    pub sources: usize,
    pub z_blocks: bool,
    /// The array has a part beside planes ([`Layout::has_beside`](crate::layout::Layout::has_beside)).
    pub beside: bool,
}

impl ParamsOf {
    /// The number of the last parameter, where there is one: the address that an array would have whose part beside
    /// planes lies where the kernel finds it.
    pub const fn beside(&self) -> usize {
        let z_block = if self.z_blocks {
            ZBlockParams::TYPES.len()
        } else {
            0
        };
        TowerParams::of_z_block(self.sources, z_block)
    }

    /// The types of all parameters.
    pub fn types(&self) -> Vec<Type> {
        let mut types = TowerParams::TYPES.to_vec();
        if self.sources > 0 {
            types.push(Type::I32);
            (0..self.sources).for_each(|_| types.extend(VolumeParams::types()));
        }
        if self.z_blocks {
            types.extend(ZBlockParams::TYPES);
        }
        types.extend(self.beside.then_some(Type::GLOBAL));
        types
    }
}

/// The volume sources of a calculation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volumes {
    /// Bytes of the waves of a step.
    pub wave_bytes: i32,
    pub sources: Vec<VolumeParams>,
}

/// The launches of a time block of some height.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeBlock {
    pub list: TaskList,
    pub order: Order,
    /// One after the other; `None`: lines are not cut.
    pub z_blocks: Vec<Option<ZBlock>>,
    /// Stages of the time block.
    pub stages: u32,
    /// Blocks of a cluster.
    pub cluster: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory that a block gets.
    pub shared_bytes: u32,
}

/// Where a time block finds its data on a device, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TowerBuffers {
    pub array: u64,
    pub tasks: u64,
    pub progress: u64,
    /// Of each launch of the list.
    pub queues: Vec<u64>,
    pub points: u64,
    pub waves: u64,
    pub records: u64,
    /// See [`ParamsOf::beside`].
    pub beside: Option<u64>,
}

/// A launch of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Of the list.
    pub number: usize,
    /// Towers that it runs.
    pub towers: usize,
    pub arguments: Vec<Argument>,
}

impl TimeBlock {
    /// `None` where z blocks would lean too much, or there are too many towers or stages.
    pub fn new(
        scheme: &Scheme,
        towers: &Towers,
        block: &Block,
        list: TaskList,
        order: Order,
        periods: u64,
    ) -> Option<TimeBlock> {
        let stages = periods
            .checked_mul(towers.steps)?
            .checked_mul(scheme.stages.len() as u64)?;
        let z_blocks = match &block.lines {
            Lines::ZBlocks(z_blocks) => z_blocks.of(stages)?.into_iter().map(Some).collect(),
            _ => vec![None],
        };
        Some(TimeBlock {
            list,
            order,
            z_blocks,
            stages: u32::try_from(stages).ok()?,
            cluster: block.lines.cluster(),
            threads: block.roles.all(),
            shared_bytes: block.shared_bytes,
        })
    }

    /// Bytes of progress, before a first time block that counts from `since`.
    pub fn progress(&self, since: i32) -> Vec<u8> {
        let (count, cluster) = (self.list.tasks.len(), self.cluster as usize);
        let ended = std::iter::repeat_n(i32::MAX, cluster);
        let words = std::iter::repeat_n(since, count * cluster).chain(ended);
        let each = PROGRESS_BYTES as usize;
        let mut bytes = vec![0; (count + 1) * cluster * each];
        for (line, word) in bytes.chunks_mut(each).zip(words) {
            line[..4].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The progress at the end of a time block that counts from `since`.
    pub fn over(&self, since: u32) -> u32 {
        since + self.z_blocks.len() as u32 * (self.stages + 1)
    }

    /// The launches, one after the other, if progress counts from `since`.
    pub fn launches(&self, buffers: &TowerBuffers, volumes: &Volumes, since: u32) -> Vec<Launch> {
        let numbers = 0..self.list.launches.len();
        let each = |n: usize| numbers.clone().map(move |number| (n, number));
        let all = (0..self.z_blocks.len()).flat_map(each);
        let launch = |(z_block, number)| self.launch(buffers, volumes, since, z_block, number);
        all.map(launch).collect()
    }

    /// The launch with a number of the list that runs a z block, if progress of the time block counts from `since`.
    pub fn launch(
        &self,
        buffers: &TowerBuffers,
        volumes: &Volumes,
        since: u32,
        z_block: usize,
        number: usize,
    ) -> Launch {
        let since = since + z_block as u32 * (self.stages + 1);
        let params = TowerParams {
            array: buffers.array,
            tasks: buffers.tasks,
            count: self.list.until(number) as i32,
            progress: buffers.progress,
            queues: buffers.queues[number],
            partitions: self.order.partitions as i32,
            since: since as i32,
            over: (since + self.stages + 1) as i32,
            head_start: self.order.head_start as i32,
            points: buffers.points,
            waves: buffers.waves,
            records: buffers.records,
        };
        let mut arguments = params.arguments();
        if !volumes.sources.is_empty() {
            arguments.push(Argument::Word(volumes.wave_bytes));
            arguments.extend(volumes.sources.iter().flat_map(VolumeParams::arguments));
        }
        if let Some(ZBlock { base, low, width }) = self.z_blocks[z_block] {
            arguments.extend(ZBlockParams { base, low, width }.arguments());
        }
        arguments.extend(buffers.beside.map(Argument::Place));
        Launch {
            number,
            towers: self.list.of_launch(number).len(),
            arguments,
        }
    }
}
