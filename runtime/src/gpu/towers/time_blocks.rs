//! The time blocks of a calculation on a device: lists of their towers, and starts of the kernel.

use super::super::device::{Address, Argument, Device, DeviceError, Function, Threads};
use super::super::sheets::Placed;
use super::{Heights, TowerProgram};
use std::collections::BTreeMap;
use torre_compiler::backend::nvptx::tower::{self, Hooks, Span, Task};
use torre_compiler::layout::Layout;
use torre_compiler::scheme::Scheme;

/// Blocks per multiprocessor that are started; those that find no room wait without harm.
const BLOCKS: u32 = 4;

/// A kernel that makes ghosts along the inner axis, which towers have left out of date in memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::gpu) struct Ghosts {
    function: Function,
    threads: Threads,
}

impl Ghosts {
    /// Makes those of an array of the layout.
    pub(in crate::gpu) fn make(
        &self,
        device: &dyn Device,
        array: Address,
    ) -> Result<(), DeviceError> {
        // SAFETY: the kernel's parameter is the array, all places are in the layout.
        unsafe { device.start(self.function, self.threads, &[Argument::Place(array)]) }
    }
}

/// The towers of a calculation, on a device.
#[derive(Debug)]
pub struct TimeBlocks {
    function: Function,
    threads: Threads,
    /// If these neither read ghosts along the inner axis in memory nor keep them there.
    ghosts: Option<Ghosts>,
    /// Blocks of a cluster, and the most clusters of a start.
    cluster: u32,
    clusters: u32,
    pub(in crate::gpu) heights: Heights,
    program: TowerProgram,
    hooks: Hooks,
    sheets: Vec<Placed>,
    /// Probes record what no tower does: that has to be recorded before each time block.
    pub(in crate::gpu) leaves_out: bool,
    /// Made when they are needed, by their steps; `None` for those that cannot be run.
    lists: BTreeMap<u64, Option<List>>,
}

/// A start of the kernel.
#[derive(Clone, Copy, Debug)]
struct Start {
    /// What blocks take from.
    lists: Address,
    /// Towers of all starts up to this one.
    until: u32,
    clusters: u32,
}

/// The towers of a time block of some height.
#[derive(Clone, Debug)]
struct List {
    tasks: Address,
    count: u32,
    /// If lines are cut: one after the other.
    spans: Vec<Option<Span>>,
    starts: Vec<Start>,
    progress: Address,
    /// Of its hooks.
    table: Address,
    stages: u32,
    /// What progress has reached.
    since: u32,
}

/// Progress starts anew beyond this.
const MOST: u32 = 1 << 30;

fn words(device: &dyn Device, words: impl Iterator<Item = i32>) -> Result<Address, DeviceError> {
    let bytes: Vec<u8> = words.flat_map(i32::to_le_bytes).collect();
    let place = device.take(bytes.len().max(4) as u64)?;
    device.write(place, &bytes)?;
    Ok(place)
}

impl TimeBlocks {
    /// Makes towers ready; `None` where they cannot do what the hooks ask for.
    pub(in crate::gpu) fn new(
        device: &dyn Device,
        program: &TowerProgram,
        scheme: &Scheme,
        layout: &Layout,
        (hooks, sheets): (Hooks, Vec<Placed>),
    ) -> Result<Option<TimeBlocks>, DeviceError> {
        let Some(flow) = &program.kernels.flow else {
            return Ok(None);
        };
        let ghosts = flow.ghosts.as_ref();
        let names = ghosts.map(|ghosts| ghosts.symbol.clone());
        let names: Vec<String> = names.into_iter().chain([flow.symbol.clone()]).collect();
        let functions = device.load(&program.ptx.text, &names)?;
        let [.., function] = *functions else {
            return Err(DeviceError::Code {
                message: "a kernel is missing".to_owned(),
            });
        };
        let ghosts = ghosts.zip(functions.first()).map(|(ghosts, first)| Ghosts {
            function: *first,
            threads: Threads {
                blocks: [ghosts.blocks, 1, 1],
                threads: [ghosts.threads, 1, 1],
                shared: 0,
            },
        });
        let cluster = flow.cluster.max(1);
        let most = device.facts().multiprocessors.max(1).saturating_mul(BLOCKS);
        let mut time_blocks = TimeBlocks {
            function,
            threads: Threads {
                blocks: [1; 3],
                threads: [flow.threads, 1, 1],
                shared: flow.shared,
            },
            ghosts,
            cluster,
            clusters: (most / cluster).max(1),
            heights: program.heights(scheme),
            program: program.clone(),
            leaves_out: hooks.leave_out(scheme),
            hooks,
            sheets,
            lists: BTreeMap::new(),
        };
        let possible = time_blocks.has(device, scheme, layout, program.steps)?;
        Ok(possible.then_some(time_blocks))
    }

    /// What has to be run after a time block, before anyone but such towers looks at ghosts along the inner axis.
    pub(in crate::gpu) fn ghosts(&self) -> Option<Ghosts> {
        self.ghosts
    }

    /// Makes the towers of a time block ready, if it can be run.
    pub(in crate::gpu) fn has(
        &mut self,
        device: &dyn Device,
        scheme: &Scheme,
        layout: &Layout,
        steps: u64,
    ) -> Result<bool, DeviceError> {
        if !self.lists.contains_key(&steps) {
            let list = match self.list(device, scheme, layout, steps) {
                // Single steps do what lower time blocks would have done.
                Err(DeviceError::Memory { .. }) if !self.lists.is_empty() => None,
                other => other?,
            };
            self.lists.insert(steps, list);
        }
        Ok(matches!(self.lists.get(&steps), Some(Some(_))))
    }

    fn list(
        &self,
        device: &dyn Device,
        scheme: &Scheme,
        layout: &Layout,
        steps: u64,
    ) -> Result<Option<List>, DeviceError> {
        let Some(mut list) = self.program.tasks_of(scheme, layout, steps) else {
            return Ok(None);
        };
        let Some(spans) = self.program.spans(scheme, steps) else {
            return Ok(None);
        };
        let towers = &self.program.towers;
        let periods = steps / towers.steps;
        let Some(table) = self
            .hooks
            .attach(scheme, layout, towers, periods, &mut list.tasks)
        else {
            return Ok(None);
        };
        let small = |n: u64| u32::try_from(n).ok().filter(|n| *n < MOST / 4);
        let count = small(list.tasks.len() as u64).ok_or(DeviceError::TooLong)?;
        let stages = small(steps * scheme.stages.len() as u64).ok_or(DeviceError::TooLong)?;
        let bytes =
            (u64::from(count) + 1) * u64::from(self.cluster) * u64::from(tower::PROGRESS_BYTES);
        let [needed, available] = [
            bytes + table.bytes.len() as u64 + u64::from(Task::BYTES) * u64::from(count),
            device.free_memory()?,
        ];
        if needed > available {
            return Err(DeviceError::Memory { needed, available });
        }
        let place = device.take(table.bytes.len() as u64)?;
        device.write(place, &table.bytes)?;
        let near = &device.facts().near;
        let mut starts = Vec::new();
        for (start, counts) in list.starts.iter().enumerate() {
            let towers = small(counts.iter().sum::<usize>() as u64);
            let lists = list.lists(start, near).ok_or(DeviceError::TooLong)?;
            starts.push(Start {
                lists: words(device, lists.into_iter())?,
                until: small(list.until(start) as u64).ok_or(DeviceError::TooLong)?,
                clusters: towers.map_or(self.clusters, |towers| towers.min(self.clusters)),
            });
        }
        let mut list = List {
            tasks: words(device, list.tasks.iter().flat_map(Task::words))?,
            count,
            spans,
            starts,
            progress: device.take(bytes)?,
            table: place,
            stages,
            since: 0,
        };
        list.reset(device, self.cluster)?;
        Ok(Some(list))
    }

    /// Runs a time block of so many steps, which has to be ready, on an array of the layout, with the waves of its steps; probes record from a
    /// place on. Gives the number of starts.
    pub(in crate::gpu) fn run(
        &mut self,
        device: &dyn Device,
        steps: u64,
        array: Address,
        waves: Address,
        records: Address,
    ) -> Result<u64, DeviceError> {
        let Some(Some(list)) = self.lists.get_mut(&steps) else {
            return Err(DeviceError::TooLong);
        };
        let mut starts = 0;
        for span in list.spans.clone() {
            if list.since > MOST {
                list.reset(device, self.cluster)?;
            }
            let over = list.since + list.stages + 1;
            let word = |n: u32| Argument::Word(n as i32);
            for start in list.starts.clone() {
                let mut arguments = vec![
                    Argument::Place(array),
                    Argument::Place(list.tasks),
                    word(start.until),
                    Argument::Place(list.progress),
                    Argument::Place(start.lists),
                    word(self.program.order.partitions),
                    word(list.since),
                    word(over),
                    word(self.program.order.lead),
                    Argument::Place(list.table),
                    Argument::Place(waves),
                    Argument::Place(records),
                ];
                if !self.sheets.is_empty() {
                    let each =
                        i32::try_from(self.hooks.waves * 8).map_err(|_| DeviceError::TooLong)?;
                    arguments.push(Argument::Word(each));
                    arguments.extend(self.sheets.iter().flat_map(Placed::arguments));
                }
                if let Some(span) = span {
                    arguments.extend(span.words().map(Argument::Word));
                }
                let threads = Threads {
                    blocks: [start.clusters * self.cluster, 1, 1],
                    ..self.threads
                };
                // SAFETY: the parameters are those that the compiler lists; the tasks' rows and the hooks' places lie in the array of the layout, profiles
                // in arrays over the boxes of sheets, and there are waves of all steps of the time block, and room for their records.
                unsafe { device.start(self.function, threads, &arguments) }?;
                starts += 1;
            }
            list.since = over;
        }
        Ok(starts)
    }
}

impl List {
    /// Blocks of a cluster have progress of their own.
    fn reset(&mut self, device: &dyn Device, cluster: u32) -> Result<(), DeviceError> {
        let [count, cluster] = [self.count, cluster].map(|n| n as usize);
        let ended = std::iter::repeat_n(i32::MAX, cluster);
        let progress = std::iter::repeat_n(0, count * cluster).chain(ended);
        let mut bytes = vec![0; (count + 1) * cluster * tower::PROGRESS_BYTES as usize];
        for (word, value) in bytes
            .chunks_mut(tower::PROGRESS_BYTES as usize)
            .zip(progress)
        {
            word[..4].copy_from_slice(&i32::to_le_bytes(value));
        }
        device.write(self.progress, &bytes)?;
        self.since = 0;
        Ok(())
    }
}
