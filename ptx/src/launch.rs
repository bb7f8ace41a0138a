//! Launches: blocks are started, their warps take turns, until all have ended.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::alu::LANES;
use crate::block::{Block, Shape, fixed_rows};
use crate::claim::Claim;
use crate::cluster::{Gathering, Peer};
use crate::counts::{Counts, Executed};
use crate::error::{Fault, FaultKind};
use crate::exec::Turn;
use crate::memory::{Memory, SHARED_BASE};
use crate::module::Entry;
use crate::op::{Copy, Op};
use crate::rows::Aligned;
use crate::shadow::Shadow;

/// How a launch is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// 0 runs warps in order, each as far as it gets; other seeds run them in other orders and shorter turns, and let
    /// bulk copies arrive in other orders. Races are found in any order, unless it decides which way threads take.
    pub seed: u64,
    /// Blocks that are under way at once: as many as the device would have room for. Blocks that wait for each other
    /// need to be.
    pub resident: u32,
    /// Whether races are looked for.
    pub races: bool,
    /// Whether the sectors and the passes over banks are counted that accesses take.
    pub pieces: bool,
    /// Rounds over all warps in which nothing is written, while all warps test or wait, before the launch is given up
    /// as a deadlock.
    pub idle_rounds: u32,
    /// Instructions of warps before the launch is given up.
    pub limit: u64,
    /// The most shared memory that a block may have.
    pub most_shared: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            seed: 0,
            resident: 16,
            races: true,
            pieces: true,
            idle_rounds: 2000,
            limit: 1 << 31,
            most_shared: 227 << 10,
        }
    }
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    /// 32 bits, signed or not.
    U32(u32),
    /// 64 bits; also addresses.
    U64(u64),
    /// A float of 32 bits.
    F32(f32),
    /// A float of 64 bits.
    F64(f64),
    /// Any bytes, for parameters that are arrays.
    Bytes(Vec<u8>),
}

impl Param {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Param::U32(value) => value.to_le_bytes().to_vec(),
            Param::U64(value) => value.to_le_bytes().to_vec(),
            Param::F32(value) => value.to_le_bytes().to_vec(),
            Param::F64(value) => value.to_le_bytes().to_vec(),
            Param::Bytes(bytes) => bytes.clone(),
        }
    }
}

/// The turns of one warp after another, when the seed is 0.
const QUANTUM: u32 = 1 << 14;

/// Where the execution is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct At {
    pub(crate) pc: u32,
    pub(crate) lane: u32,
    /// Lanes that execute the instruction.
    pub(crate) active: u32,
}

/// A launch under way.
pub(crate) struct Launch<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) memory: &'a mut Memory,
    /// Accesses to each buffer.
    pub(crate) shadows: Vec<Option<Box<Shadow>>>,
    pub(crate) options: &'a Options,
    pub(crate) shape: Shape,
    pub(crate) params: Vec<u8>,
    /// The rows that all warps share.
    pub(crate) fixed: Rc<[Aligned]>,
    pub(crate) counts: Counts,
    /// By opcode.
    pub(crate) executed: Vec<Executed>,
    pub(crate) steps: u64,
    pub(crate) at: At,
    /// Whether anything was written that others could wait for.
    pub(crate) progress: bool,
    /// No thread went on in the last round.
    pub(crate) idle: bool,
    /// Accesses to memory are followed in pieces of this number of bytes, as a power of two.
    pub(crate) piece: u32,
    /// Global memory that bulk copies under way read or write.
    pub(crate) claims: Vec<Claim>,
    /// The parts of its cluster that the running block sees, by rank.
    pub(crate) peers: Vec<Option<Peer>>,
    /// The barriers of clusters that are under way, by number.
    pub(crate) clusters: BTreeMap<u32, Gathering>,
    random: u64,
    /// The most instructions of a turn, a power of two.
    longest: u32,
}

/// Runs a kernel on a grid of blocks.
pub(crate) fn launch(
    memory: &mut Memory,
    entry: &Entry,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic: u32,
    params: &[Param],
    options: &Options,
) -> Result<Counts, Fault> {
    let shape = shape(entry, grid, block, dynamic, options)?;
    let params = arguments(entry, params)?;
    let buffers = memory.buffers.len();
    let mut addresses = Vec::new();
    for variable in entry.variables.iter() {
        addresses.push(memory.alloc(variable.bytes.clone()).address());
        if let Some(buffer) = memory.buffers.last_mut() {
            buffer.constant = variable.constant;
        }
    }
    let shadows = memory.buffers.iter().map(|_| None);
    let mut launch = Launch {
        entry,
        shadows: shadows.collect(),
        memory,
        options,
        shape,
        params,
        fixed: fixed_rows(entry, &shape, &addresses),
        counts: Counts::default(),
        executed: vec![Executed::default(); entry.opcodes.len()],
        steps: 0,
        at: At::default(),
        progress: false,
        idle: false,
        piece: smallest_access(entry),
        claims: Vec::new(),
        peers: Vec::new(),
        clusters: BTreeMap::new(),
        random: options.seed,
        longest: longest_turn(options.seed),
    };
    let result = launch.run(&addresses);
    let mut counts = launch.counts;
    for (opcode, executed) in entry.opcodes.iter().zip(launch.executed) {
        counts.instructions.warps += executed.warps;
        counts.instructions.threads += executed.threads;
        if executed.warps > 0 {
            counts.opcodes.insert(opcode.clone(), executed);
        }
    }
    memory.truncate(buffers);
    result.map(|()| counts)
}

fn shape(
    entry: &Entry,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic: u32,
    options: &Options,
) -> Result<Shape, Fault> {
    let bad = |message: String| Fault::new(FaultKind::Launch, message);
    let volume = |extents: [u32; 3]| {
        extents
            .iter()
            .try_fold(1u32, |all, extent| all.checked_mul(*extent))
    };
    let threads = volume(block).filter(|threads| (1..=1024).contains(threads));
    let threads = threads.ok_or_else(|| bad(format!("{block:?} is no size of a block")))?;
    volume(grid)
        .filter(|blocks| *blocks > 0)
        .ok_or_else(|| bad(format!("{grid:?} is no grid")))?;
    let [cluster, others @ ..] = entry.cluster;
    if !(1..=8).contains(&cluster) || others != [1, 1] {
        return Err(bad(format!(
            "clusters of {:?} blocks are not interpreted",
            entry.cluster
        )));
    }
    if !grid[0].is_multiple_of(cluster) {
        return Err(bad(format!(
            "{grid:?} is no grid of clusters of {cluster} blocks"
        )));
    }
    if entry.max_threads.is_some_and(|most| threads > most) {
        return Err(bad(format!(
            "{threads} threads are more than `.maxntid` allows"
        )));
    }
    if entry
        .required_threads
        .is_some_and(|required| required != block)
    {
        return Err(bad(format!(
            "blocks of {block:?} are not what `.reqntid` says"
        )));
    }
    // The start of shared memory is aligned to anything, so offsets have the alignment.
    debug_assert!(SHARED_BASE.is_multiple_of(1024));
    let dynamic_at = entry.static_shared.next_multiple_of(entry.shared_align);
    let shared = dynamic_at
        .checked_add(dynamic)
        .filter(|shared| *shared <= options.most_shared);
    shared.ok_or_else(|| {
        bad(format!(
            "{dynamic_at} + {dynamic} bytes of shared memory are too many"
        ))
    })?;
    let warps = threads.div_ceil(LANES as u32);
    Ok(Shape {
        grid,
        block,
        threads,
        warps,
        cluster,
        dynamic_at,
        dynamic,
    })
}

/// Short turns order accesses in more ways, and long ones waste fewer polls: seeds in turn do with 64 instructions at
/// most, 256, 1024 and 4096.
fn longest_turn(seed: u64) -> u32 {
    64 << (2 * (seed % 4))
}

/// The size of the smallest access to memory of a kernel, as a power of two, at most of 8 bytes.
fn smallest_access(entry: &Entry) -> u32 {
    let sizes = entry.code.iter().filter_map(|inst| match inst.op {
        Op::Load(access) | Op::Store(access) | Op::StoreAsync(access) | Op::Atomic(_, access) => {
            Some(access.ty.bytes())
        }
        Op::Copy(Copy::Element(bytes)) => Some(u32::from(bytes)),
        _ => None,
    });
    sizes.min().unwrap_or(8).min(8).trailing_zeros()
}

fn arguments(entry: &Entry, params: &[Param]) -> Result<Vec<u8>, Fault> {
    let bad = |message: String| Err(Fault::new(FaultKind::Launch, message));
    if params.len() != entry.params.len() {
        return bad(format!(
            "{} arguments, the kernel takes {}",
            params.len(),
            entry.params.len()
        ));
    }
    let end = entry
        .params
        .last()
        .map_or(0, |last| last.offset + last.bytes);
    let mut bytes = vec![0; end as usize];
    for (index, (param, declared)) in params.iter().zip(&entry.params).enumerate() {
        let value = param.bytes();
        // Small integers may be given in 32 bits.
        let small = declared.bytes < 4 && matches!(param, Param::U32(_));
        if value.len() != declared.bytes as usize && !small {
            let (given, needed) = (value.len(), declared.bytes);
            return bad(format!(
                "argument {index} has {given} bytes, {needed} are needed"
            ));
        }
        let at = declared.offset as usize;
        bytes[at..at + declared.bytes as usize].copy_from_slice(&value[..declared.bytes as usize]);
    }
    Ok(bytes)
}

impl Launch<'_> {
    fn run(&mut self, addresses: &[u64]) -> Result<(), Fault> {
        let total: u32 = self.shape.grid.iter().product();
        let mut blocks: Vec<Block> = Vec::new();
        let (mut next, mut idle) = (0, 0);
        loop {
            let together = self.shape.cluster;
            while next < total
                && blocks.len() as u32 + together <= self.options.resident.max(together)
            {
                self.begin_cluster(next / together);
                for _ in 0..together {
                    let fixed = &self.fixed;
                    blocks.push(Block::new(next, &self.shape, self.entry, addresses, fixed));
                    next += 1;
                }
            }
            if blocks.is_empty() {
                return Ok(());
            }
            self.progress = false;
            let mut spent = false;
            let start = self.order(blocks.len());
            for index in 0..blocks.len() {
                let index = start + index;
                let index = index.checked_sub(blocks.len()).unwrap_or(index);
                self.lend(&mut blocks, index);
                spent |= self.turns(&mut blocks[index])?;
                self.take_back(&mut blocks);
            }
            blocks.retain(|block| block.live > 0);
            idle = if self.progress || spent { 0 } else { idle + 1 };
            self.idle = idle > 0;
            let asleep = |block: &Block| block.warps.iter().all(|warp| warp.groups.is_empty());
            if idle > self.options.idle_rounds || idle > 0 && blocks.iter().all(asleep) {
                return Err(self.deadlock(&blocks));
            }
            if self.steps > self.options.limit {
                return Err(Fault::new(
                    FaultKind::Limit,
                    format!("{} instructions", self.steps),
                ));
            }
        }
    }

    /// One turn for each warp of a block; whether any was ended by the quantum.
    fn turns(&mut self, block: &mut Block) -> Result<bool, Fault> {
        let mut spent = false;
        let start = self.order(block.warps.len());
        for index in 0..block.warps.len() {
            let warp = start + index;
            let warp = warp.checked_sub(block.warps.len()).unwrap_or(warp);
            let quantum = match self.options.seed {
                0 => QUANTUM,
                _ => 1 + (self.random() & (self.longest - 1)),
            };
            if block.warps[warp].groups.is_empty() || self.sleeps(block, warp) {
                continue;
            }
            let turn = self.turn(block, warp, quantum);
            spent |= turn.map_err(|fault| self.place(fault, block, warp))? == Turn::Spent;
        }
        self.deliver(block)?;
        // Copies under way arrive by themselves.
        Ok(spent || block.transfers.under_way())
    }

    /// Which of several goes first.
    fn order(&mut self, count: usize) -> usize {
        if self.options.seed == 0 {
            0
        } else {
            self.random() as usize % count.max(1)
        }
    }

    /// The next number of a generator (xorshift, Marsaglia 2003).
    pub(crate) fn random(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 32) as u32
    }

    /// Says where a fault happened.
    pub(crate) fn place(&self, mut fault: Fault, block: &Block, warp: usize) -> Fault {
        let line = self
            .entry
            .code
            .get(self.at.pc as usize)
            .map_or(0, |inst| inst.line);
        fault.line = line;
        fault.text = self.entry.line_text(line);
        fault.block = block.id;
        fault.thread = self.shape.thread(warp as u32 * LANES as u32 + self.at.lane);
        fault
    }

    fn deadlock(&self, blocks: &[Block]) -> Fault {
        const SHOWN: usize = 8;
        let mut kind = FaultKind::Deadlock;
        let mut places: Vec<String> = Vec::new();
        let mut first = None;
        for block in blocks {
            for (number, warp) in block.warps.iter().enumerate() {
                let waiting = warp.waiting.iter().map(|waiting| (waiting.group, "waits"));
                let groups = warp.groups.iter().map(|group| (*group, "is"));
                for (group, verb) in waiting.chain(groups) {
                    let line = self
                        .entry
                        .code
                        .get(group.pc as usize)
                        .map_or(0, |inst| inst.line);
                    let thread = number as u32 * LANES as u32 + group.mask.trailing_zeros();
                    let thread = self.shape.thread(thread);
                    first.get_or_insert((line, block.id, thread));
                    let text = self.entry.line_text(line);
                    places.push(format!(
                        "thread {thread:?} of block {:?} and {} of its warp: {verb} at line {line} `{text}`",
                        block.id,
                        group.mask.count_ones() - 1
                    ));
                }
            }
        }
        // Threads that wait at different barriers of one block, and nothing else: no flag is at fault.
        let waits = |block: &Block| block.warps.iter().any(|warp| !warp.waiting.is_empty());
        let polls = |block: &Block| block.warps.iter().any(|warp| !warp.groups.is_empty());
        if blocks.iter().any(waits) && !blocks.iter().any(polls) {
            kind = FaultKind::DivergentBarrier;
        }
        let more = places.len().saturating_sub(SHOWN);
        places.truncate(SHOWN);
        let mut message = format!("no thread can go on: {}", places.join("; "));
        if more > 0 {
            message += &format!("; and {more} groups more");
        }
        let mut fault = Fault::new(kind, message);
        if let Some((line, block, thread)) = first {
            (fault.line, fault.block, fault.thread) = (line, block, thread);
            fault.text = self.entry.line_text(line);
        }
        fault
    }
}
