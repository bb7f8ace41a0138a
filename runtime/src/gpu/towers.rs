//! Time blocks of many steps by towers, one start of a kernel each.
//!
//! Sources act and probes record inside of time blocks, by tables that are made for each height of a time block. Time blocks end where slices or volumes are due;
//! what is left before is run by lower time blocks, and by single steps.

mod time_blocks;

pub(super) use time_blocks::Ghosts;
pub use time_blocks::TimeBlocks;

use super::apart::Heights;
use super::device::Facts;
use super::predict;
use torre_compiler::backend::llvm::library::{Error, Library};
use torre_compiler::backend::nvptx::tower::{
    self, Acting, FlowKernel, Kernels, Misfit, Options, Order, Span, Task, TaskList,
};
use torre_compiler::backend::nvptx::{Feature, Gpu, Module, Ptx, compile};
use torre_compiler::lattice::Axis;
use torre_compiler::layout::Layout;
use torre_compiler::scheme::Scheme;
use torre_compiler::tile::TileProgram;
use torre_compiler::tile::residency::{Towers, towers};

/// What the towers of a column may load and store in a time block, by the size of a partition of the cache that all multiprocessors share; and the least of
/// them, and the most. More towers side by side keep blocks from waiting for each other, and make fewer strips, at whose ends many wait for cut
/// towers; fewer let what one column stores be there for the next.
const COLUMN: (f64, [f64; 2]) = (0.42, [4.0, 16.0]);

/// The same share where a period has more arithmetic instructions than so many: fetching them takes longer than bytes do, and more slack is worth more.
const LONG: (f64, f64) = (1500.0, 0.72);

/// Columns of a strip that alternate with those of the next one of its partition, where all ends clip towers and where some cut them.
const OVERLAP: [i64; 2] = [12, 16];

/// The order of the towers of a time block of so many steps, unless something else is asked for.
pub(super) fn usual_order(
    scheme: &Scheme,
    towers: &Towers,
    flow: &FlowKernel,
    steps: u64,
    facts: &Facts,
) -> Order {
    let line = f64::from(flow.part) * f64::from(flow.cluster.max(1));
    let moved = towers.bytes_per_cell(scheme) * towers.cells() * line * steps as f64;
    let (usual, [least, most]) = COLUMN;
    let (long, more) = LONG;
    let period = towers.cells() * (towers.steps as usize * towers.alignments.len()) as f64;
    let share = match period * predict::arithmetic(scheme) as f64 > long {
        true => more,
        false => usual,
    };
    let held = share * facts.l2 as f64 / f64::from(facts.partitions());
    let clips = towers.clipping(scheme).as_flattened().iter().all(|c| *c);
    let [open, cut] = OVERLAP;
    Order {
        width: (held / moved.max(1.0)).round().clamp(least, most) as i64,
        overlap: if clips { open } else { cut },
        lead: 0,
        partitions: facts.partitions().min(most_lists(flow, facts)),
    }
}

/// Lists of towers that a device can run: there is a cluster for each at any time.
fn most_lists(flow: &FlowKernel, facts: &Facts) -> u32 {
    (facts.multiprocessors / flow.cluster.max(1)).max(1)
}

/// Registers of a thread for anything but what it keeps, at least; [`Options::beside`] is what it takes where there are more.
const WORKING: u64 = 24;

/// Registers for the values that a thread of towers keeps, and what it works with, at least.
fn kept(scheme: &Scheme, towers: &Towers) -> u64 {
    let kept = towers.alignments.iter().map(|a| a.most_kept());
    let kept = kept.max().unwrap_or(0);
    (kept * scheme.precision.bytes()).div_ceil(4) as u64 + WORKING
}

/// Registers beside them for threads of spans that may be at an end where ghosts are made: with fewer, they keep periods and places in memory.
const ENDED: u64 = 28;

/// Registers that a thread of towers needs at least.
pub fn registers(scheme: &Scheme, towers: &Towers, flow: &FlowKernel) -> u64 {
    let ended = flow.spans.is_some() && flow.ghosts.is_some();
    kept(scheme, towers) + if ended { ENDED } else { 0 }
}

/// The most registers of a thread.
const MOST_REGISTERS: u64 = 255;

/// Registers beyond those that a thread needs at least, with which it usually spills none.
const PLENTY: u64 = 32;

/// How many numbers of blocks that could share lines are looked at, from the least one on, and how many sizes of spans, from the largest one on.
const TRIED: [usize; 2] = [3, 5];

/// How blocks get the lines along the last axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// The blocks of a cluster share them, so many. 1: each block has whole ones.
    Shared(u32),
    /// They are cut into spans, for blocks with so many warps that compute.
    Spans(u32),
}

impl Lines {
    /// How a kernel gets them.
    pub fn of(flow: &FlowKernel) -> Lines {
        match &flow.spans {
            Some(spans) => Lines::Spans((spans.threads / WARP) as u32),
            None => Lines::Shared(flow.cluster),
        }
    }
}

/// Threads of a warp.
const WARP: i64 = 32;

/// Warps that compute of a block by which sizes of spans are estimated.
const USUAL_WARPS: u32 = 8;

/// The kernels of towers for a GPU, by how blocks get lines. If one block holds them, that is all; else as few blocks as possible share them, or
/// some more, where the GPU has clusters; or they are cut into spans that are as long as possible, or somewhat shorter. If nothing fits, those for
/// one block, or why there are none.
pub fn candidates(
    scheme: &Scheme,
    layout: &Layout,
    towers: &Towers,
    gpu: Gpu,
) -> Vec<Result<Kernels, Misfit>> {
    let of = |lines| design(scheme, layout, towers, gpu, lines);
    let kept = kept(scheme, towers);
    let needed = |flow: &FlowKernel| registers(scheme, towers, flow);
    let fits = |kernels: &Result<Kernels, Misfit>| {
        let flow = kernels.as_ref().ok().and_then(|k| k.flow.as_ref());
        flow.is_some_and(|flow| {
            flow.all_shared() <= gpu.shared_per_block && needed(flow) <= u64::from(flow.registers)
        })
    };
    let plenty = |kernels: &Result<Kernels, Misfit>| {
        let flow = kernels.as_ref().ok().and_then(|k| k.flow.as_ref());
        let enough = (kept + PLENTY).min(MOST_REGISTERS - PLENTY / 2);
        fits(kernels) && flow.is_some_and(|flow| enough <= u64::from(flow.registers))
    };
    let alone = of(Lines::Shared(1));
    if kept > MOST_REGISTERS || !towers.are_adjacent() || plenty(&alone) {
        return vec![alone];
    }
    let [by_parts, by_spans] = TRIED;
    let best = |some: &mut dyn Iterator<Item = Lines>, tried| {
        let mut some: Vec<Result<Kernels, Misfit>> =
            some.map(of).filter(fits).take(tried).collect();
        if some.iter().any(plenty) {
            some.retain(plenty);
        }
        some
    };
    // Shorter spans take less memory.
    let usual = of(Lines::Spans(USUAL_WARPS));
    let usual = usual.as_ref().ok().and_then(|k| k.flow.as_ref());
    let most = usual.map_or(0, |flow| {
        USUAL_WARPS * gpu.shared_per_block / flow.all_shared().max(1)
    });
    let length = layout.extent[Axis::INNER];
    let most = most.min((length.min(tower::MOST_THREADS) / WARP) as u32);
    let spans = best(&mut (1..=most).rev().map(Lines::Spans), by_spans);
    // Fewer blocks than this have too little memory or too few threads.
    let flow = alone.as_ref().ok().and_then(|k| k.flow.as_ref());
    let least = flow.map_or(2, |flow| flow.all_shared().div_ceil(gpu.shared_per_block));
    let most = if gpu.has(Feature::Cluster) {
        tower::MOST_PARTS
    } else {
        0
    };
    let mut all = best(&mut (least.max(2)..=most).map(Lines::Shared), by_parts);
    all.extend(spans);
    if all.iter().any(plenty) {
        all.retain(plenty);
    }
    match all.first() {
        Some(first) if plenty(first) || !fits(&alone) => all,
        _ => vec![alone],
    }
}

/// What kernels of towers for a GPU may do, if blocks get lines in some way.
fn options(gpu: Gpu, lines: Lines) -> Options {
    let (parts, spans) = match lines {
        Lines::Shared(parts) => (parts, None),
        Lines::Spans(warps) => (1, Some(warps)),
    };
    Options {
        asynchronous: gpu.has(Feature::AsyncCopy),
        shift: gpu.has(Feature::RegisterShift),
        patient: gpu.has(Feature::Cluster),
        parts,
        spans,
        room: gpu.shared_per_block,
        ..Options::default()
    }
}

/// The kernels of towers for a GPU without their code, if blocks get lines in some way.
pub fn design(
    scheme: &Scheme,
    layout: &Layout,
    towers: &Towers,
    gpu: Gpu,
    lines: Lines,
) -> Result<Kernels, Misfit> {
    tower::design(scheme, layout, towers, options(gpu, lines))
}

/// The same with their code, as IR; `None` for those that blocks cannot run.
pub fn emit(
    scheme: &Scheme,
    layout: &Layout,
    towers: &Towers,
    sheets: &[Acting],
    gpu: Gpu,
    lines: Lines,
) -> (Module, Option<Kernels>) {
    let mut module = Module::new();
    let options = options(gpu, lines);
    let kernels = tower::emit(&mut module, scheme, layout, towers, sheets, options);
    (module, kernels)
}

/// The towers of a schedule, compiled.
#[derive(Clone, Debug)]
pub struct TowerProgram {
    pub ptx: Ptx,
    pub kernels: Kernels,
    pub towers: Towers,
    /// What acts in many columns of cells.
    pub sheets: Vec<Acting>,
    /// Steps of a time block, at most.
    pub steps: u64,
    /// All towers of such a time block.
    tasks: TaskList,
    order: Order,
    /// Lists of towers, at most.
    lists: u32,
}

impl TowerProgram {
    /// The towers of a tile program, if blocks get lines in some way; `None` where it has none that a GPU can run.
    pub fn new(
        library: &Library,
        scheme: &Scheme,
        layout: &Layout,
        tiles: &TileProgram,
        sheets: &[Acting],
        (gpu, facts): (Gpu, &Facts),
        lines: Lines,
    ) -> Result<Option<TowerProgram>, Error> {
        let Ok(towers) = towers(scheme, layout, tiles) else {
            return Ok(None);
        };
        let (module, emitted) = emit(scheme, layout, &towers, sheets, gpu, lines);
        let fits = |k: &Kernels| {
            let flow = k.flow.as_ref()?;
            let order = usual_order(scheme, &towers, flow, tiles.height, facts);
            let fits = flow.all_shared() <= gpu.shared_per_block;
            fits.then_some((order, most_lists(flow, facts)))
        };
        let Some((kernels, (order, lists))) = emitted.and_then(|k| fits(&k).map(|o| (k, o))) else {
            return Ok(None);
        };
        let program = TowerProgram {
            ptx: compile(library, &module, gpu)?,
            kernels,
            steps: 0,
            tasks: TaskList::default(),
            order,
            lists,
            towers,
            sheets: sheets.to_vec(),
        };
        Ok(program.with_time_blocks(scheme, layout, tiles.height, order))
    }

    /// The same towers in time blocks of at most so many steps, in an order; `None` where there are too many, or the order has lists that no block would
    /// take from.
    pub fn with_time_blocks(
        mut self,
        scheme: &Scheme,
        layout: &Layout,
        steps: u64,
        order: Order,
    ) -> Option<TowerProgram> {
        let periods = (steps / self.towers.steps).max(1);
        if !(1..=self.lists).contains(&order.partitions) {
            return None;
        }
        self.tasks = tower::tasks(scheme, layout, &self.towers, periods, order)?;
        self.order = order;
        self.steps = periods * self.towers.steps;
        Some(self)
    }

    /// Towers of a time block.
    pub fn count(&self) -> usize {
        self.tasks.tasks.len()
    }

    /// The towers of the highest time blocks, without what hooks cut.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks.tasks
    }

    /// Whether a time block leaves ghosts along the inner axis out of date in memory.
    pub fn leaves_ghosts(&self) -> bool {
        let flow = self.kernels.flow.as_ref();
        flow.is_some_and(|flow| flow.ghosts.is_some())
    }

    /// The spans of a time block of so many steps, one of all if lines are not cut; `None` where it would lean too much.
    fn spans(&self, scheme: &Scheme, steps: u64) -> Option<Vec<Option<Span>>> {
        let flow = self.kernels.flow.as_ref();
        let Some(spans) = flow.and_then(|flow| flow.spans.as_ref()) else {
            return Some(vec![None]);
        };
        let spans = spans.of(steps * scheme.stages.len() as u64)?;
        Some(spans.into_iter().map(Some).collect())
    }

    /// The heights of its time blocks.
    pub fn heights(&self, scheme: &Scheme) -> Heights {
        Heights::new(self.steps, &self.towers, scheme)
    }

    /// The towers of a time block of so many steps.
    fn tasks_of(&self, scheme: &Scheme, layout: &Layout, steps: u64) -> Option<TaskList> {
        if steps == self.steps {
            return Some(self.tasks.clone());
        }
        let periods = steps / self.towers.steps;
        tower::tasks(scheme, layout, &self.towers, periods, self.order)
    }
}
