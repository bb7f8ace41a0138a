//! Kernels for towers: a block of threads runs a tower from its first to its last period, with all values that evolve on the chip.
//!
//! ```text
//! thread            one index along the inner axis; the values of that index in registers
//!   begin             load what a tower of this alignment keeps
//!   period after period:  straight-line code for all rows of all stages of a period
//!     stage             start copying the rows that the next stage reads for the first time, to shared memory
//!                       compute; tell neighbours along the inner axis through shared memory; store what leaves
//!                       wait for the copies and for each other
//!   end               store what memory does not have yet
//! ```
//!
//! The sets come from [`crate::tile::residency`], where values lie from [`Plan`]. A kernel runs whole towers: those that no end of
//! the grid cuts. It reads and writes ghosts like any other place, but those along the inner axis: it makes them where rows arrive (`beyond`),
//! or keeps them up to date in memory (`ends`). Lines that are longer than what a block holds are shared by the blocks of a cluster, `line`, or
//! run in parts one after the other, `spans`.

mod arrivals;
mod beyond;
mod clip;
mod copies;
mod edge;
mod ends;
mod flow;
mod hooks;
mod line;
mod links;
pub mod lists;
mod pipe;
mod plan;
mod planes;
mod progress;
mod refresh;
mod roles;
mod sheets;
mod spans;
mod stage;
mod tasks;
#[cfg(test)]
mod tests;
mod ticket;
mod write;

pub use hooks::{Addition, Hooks, Table};
pub use line::MOST_PARTS;
pub use plan::{Carried, Copy, Plan, StagePlan};
pub use refresh::Refresh;
pub use sheets::{Acting, Sheet};
pub use spans::{Span, Spans, keep_old};
pub use tasks::{Order, TaskList, tasks};

use super::ir::Module;
use crate::ghost::AxisGhosts;
use crate::lattice::{Axis, Interval};
use crate::layout::Layout;
use crate::scheme::Scheme;
use crate::tile::residency::{Life, Towers};
use arrivals::Arrivals;
use beyond::Beyond;
use line::Split;
use links::Chain;
use roles::Roles;
use write::Writer;

/// Choices that do not change results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Coefficients are read from memory where they are used, instead of being kept.
    pub direct: bool,
    /// Rows are copied to shared memory while threads compute, where the GPU can do so.
    pub asynchronous: bool,
    /// Registers of a thread; 0: as the assembler likes.
    pub registers: u32,
    /// Threads that only copy give registers to those that compute if these need more, where the GPU can do so.
    pub shift: bool,
    /// Registers that a thread needs beside those for the values that it keeps. Usually what the assembler takes for FDTD(4,2); it takes
    /// [`ACROSS`] more where blocks share lines.
    pub beside: u32,
    /// Threads that wait for copies are suspended, where the GPU can do so.
    pub patient: bool,
    /// There are kernels for whole towers, one per block, too, unless blocks share lines or these are cut.
    pub single: bool,
    /// Blocks that share the lines along the inner axis, where the GPU has clusters: 1 to [`MOST_PARTS`]. More than one copy rows while they
    /// compute.
    pub parts: u32,
    /// Warps that compute of a block, if lines are cut into spans instead; then all updates have to [keep what they do not write](keep_old).
    pub spans: Option<u32>,
    /// Bytes of shared memory that a block can have. Rows lie as close to each other as that takes, and no closer.
    pub room: u32,
    /// What accesses to memory add to a pointer by themselves lies between this and its negative: signed numbers of 24 bits. Less is for tests.
    pub near: i64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            direct: false,
            asynchronous: true,
            registers: 0,
            shift: false,
            beside: 48,
            patient: false,
            single: false,
            parts: 1,
            spans: None,
            room: u32::MAX,
            near: 1 << 23,
        }
    }
}

/// A kernel for the towers of one alignment.
///
/// Its parameters are the array's first element, a list of byte offsets from there to row 0, inner index 0 of the origins' groups,
/// one for each block, and the number of periods (32 bits).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TowerKernel {
    pub symbol: String,
    pub threads: u32,
    /// Bytes of shared memory, given at the start.
    pub shared: u32,
    pub plan: Plan,
    /// Of the rows of all alignments.
    first_row: i64,
}

/// The kernel that runs all towers of a time block, whole ones and others.
///
/// Its parameters are the array's first element, the tasks, their number, one word of progress for each task and one more
/// ([`PROGRESS_BYTES`] apart; as many for each as a cluster has blocks), and the start's [lists](TaskList::lists); then four words:
/// [`Order::partitions`], what progress counts from in this time block, that plus the stages of the time block, plus 1, and [`Order::lead`]; then the bytes of a [`Table`] of
/// hooks, the waves of the time block's steps, and where probes record. If it is made for sheets, the bytes of the waves of a step follow (32 bits),
/// and for each sheet where its profiles begin, and [`Sheet::words`]; if it is made for spans, [`Span::words`] come last. Progress of earlier time blocks lies at or below what this one counts from; the
/// last words of progress are `i32::MAX`. After a start its lists are as before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowKernel {
    pub symbol: String,
    pub threads: u32,
    /// Bytes of shared memory, given at the start.
    pub shared: u32,
    /// Those that the kernel has besides.
    pub named: u32,
    /// Blocks of a cluster, which run a tower together.
    pub cluster: u32,
    /// Values of a line that a block has, at most.
    pub part: u32,
    /// If it runs one span of all lines: a time block has a start for each.
    pub spans: Option<Spans>,
    /// Registers that a thread that computes can have.
    pub registers: u32,
    /// What makes ghosts along the inner axis, where towers neither read them in memory nor keep them up to date there.
    pub ghosts: Option<Refresh>,
}

impl FlowKernel {
    /// Bytes of shared memory of a block.
    pub fn all_shared(&self) -> u32 {
        self.shared.saturating_add(self.named)
    }
}

/// A tower that a block runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Bytes from the array's first element to row 0, inner index 0 of the origin's group at the start of the time block. It may lie outside.
    pub offset: i64,
    pub alignment: i32,
    /// The first period with rows in the grid.
    pub first: i32,
    /// The periods that nothing cuts, or only clips, in the range of all.
    pub whole: [i32; 2],
    /// After the last period with rows in the grid.
    pub end: i32,
    /// The index of the origin at the start of the time block, counted on around periodic axes.
    pub at: [i32; 2],
    /// The tasks with an index one lower along the first face, the second, and both; the number of tasks where there is none.
    pub neighbours: [i32; 3],
    /// Where its [`Hooks`] begin in their table; 0 if it has none.
    pub hooks: i32,
    /// Below which depths along both faces rows are its own, where a face around a periodic axis is narrow; otherwise `i32::MAX`.
    pub limits: [i32; 2],
    /// Cells from the origin to where it lies in the array while the tower is whole: lengths of periodic axes.
    pub shift: [i32; 2],
    /// Ends of the grid may cut rows off while it is.
    pub clipped: bool,
}

impl Task {
    /// Of a task in memory.
    pub const BYTES: u32 = 76;

    /// As kernels read it.
    pub fn words(&self) -> [i32; 19] {
        let [w, e] = self.whole;
        let [x, y] = self.at;
        let [a, b, c] = self.neighbours;
        let low = self.offset as i32;
        let high = (self.offset >> 32) as i32;
        let [below, beside] = self.limits;
        let narrow = self.limits.iter().any(|limit| *limit < i32::MAX);
        [
            low,
            high,
            self.alignment,
            self.first,
            w,
            e,
            self.end,
            x,
            y,
            a,
            b,
            c,
            self.hooks,
            below,
            beside,
            i32::from(narrow),
            self.shift[0],
            self.shift[1],
            i32::from(self.clipped),
        ]
    }
}

/// From the word of progress of a task to that of the next one: many look at each of them, and no two should wait for the same piece of
/// a cache.
pub const PROGRESS_BYTES: u32 = 128;

/// The kernels of some towers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernels {
    /// Per alignment: whole towers, one per block.
    pub towers: Vec<TowerKernel>,
    /// All towers in one launch, if [`Towers::are_adjacent`].
    pub flow: Option<FlowKernel>,
}

/// Bytes that a copy to shared memory moves at a time.
const CHUNK: i64 = crate::layout::PIECE as i64;
/// Index 0 of a slot lies at a multiple of so many bytes: the first one with which there is room. With that of a row in memory, parts of
/// rows that arrive together stay together.
const LINES: [i64; 4] = [LINE, 64, 32, CHUNK];
const LINE: i64 = crate::layout::GPU_ALIGNMENT as i64;
/// Parts of lines have a multiple of so many values: the first one with which there is room. Whole warps store whole lines of the cache.
const UNITS: [i64; 4] = [32, 16, 8, 4];
/// Bytes of shared memory that a block has beside slots, at most.
const NAMED: i64 = 1024;
/// Registers that a thread needs at least where updates read coefficients, which periods that are cut load with the rest.
const MEDIA: u32 = 184;
/// Registers that a thread needs where blocks share lines, beside others; it gets them where registers are moved, too.
const ACROSS: u32 = 24;
/// The most threads of a block.
pub const MOST_THREADS: i64 = 1024;

/// The shape of a slot, in elements. What lies below index 0 and above the end of a row is between it and the rows beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    /// Before index 0.
    lead: i64,
    stride: i64,
    /// What a copy moves: what anyone sees, without what is always zero.
    copied: Interval,
    /// The largest extent of a row.
    length: i64,
}

impl Slot {
    /// For so many values of a line; `beside`: rows show others, blocks that have them or ghosts in memory. `line`: one of [`LINES`].
    fn new(layout: &Layout, own: i64, beside: bool, line: i64) -> Slot {
        let whole = |n: i64, bytes: i64| {
            let piece = bytes / layout.element_bytes as i64;
            crate::lattice::div_ceil(n, piece) * piece
        };
        let [below, above] = layout.reach[Axis::INNER].map(i64::from);
        let length = layout.extent[Axis::INNER];
        let copied = match beside {
            true => Interval::new(-whole(below, CHUNK), whole(own + above, CHUNK)),
            false => Interval::new(0, whole(own, CHUNK)),
        };
        let all = copied.hull(Interval::new(-below, own + above));
        Slot {
            lead: whole(below, line),
            stride: whole(all.len(), line),
            copied,
            length,
        }
    }

    /// The elements of so many slots. What lies above the end of the last one is there, too.
    fn elements(&self, slots: usize) -> i64 {
        slots as i64 * self.stride + self.lead
    }
}

/// Whether any value has a ghost along the inner axis.
fn has_ghosts(scheme: &Scheme) -> bool {
    let has = |id| !AxisGhosts::new(scheme, id, Axis::INNER).is_empty();
    scheme.component_ids().any(has)
}

/// How lines lie in the shared memory of blocks.
struct Shape {
    split: Option<Split>,
    spans: Option<Spans>,
    chain: Option<Chain>,
    slot: Slot,
}

/// The first shape that leaves room for so many slots, or the closest one.
fn shape(scheme: &Scheme, layout: &Layout, slots: usize, options: Options) -> Option<Shape> {
    let of = |unit| {
        let split = match options.parts {
            1 => None,
            parts => Some(Split::new(scheme, layout, parts, unit)?),
        };
        let spans = match options.spans {
            None => None,
            Some(_) if split.is_some() => return None,
            Some(warps) => Some(Spans::new(scheme, layout, warps)?),
        };
        let chain = options.asynchronous.then(|| match options.spans {
            Some(warps) => Some(Chain::of_span(warps)),
            None => Chain::new(scheme, layout, split.as_ref()),
        });
        let chain = chain.flatten();
        (split.is_none() || chain.is_some()).then_some((split, spans, chain))
    };
    // Only parts of lines have such units.
    let units = if options.parts > 1 { UNITS.len() } else { 1 };
    let shapes = UNITS.into_iter().take(units).filter_map(of);
    let ghosts = has_ghosts(scheme);
    let shapes = shapes.flat_map(|(split, spans, chain)| {
        let length = layout.extent[Axis::INNER];
        let own = match (&split, &spans) {
            (Some(split), _) => split.part,
            (_, Some(spans)) => spans.threads,
            _ => length,
        };
        let made = Beyond::new(scheme, layout, (split.as_ref(), spans.as_ref())).is_some();
        let beside = split.is_some() || ghosts && !made;
        LINES.map(|line| Shape {
            split,
            spans: spans.clone(),
            chain,
            slot: Slot::new(layout, own, beside, line),
        })
    });
    let fits = |shape: &Shape| {
        let bytes = shape.slot.elements(slots) * layout.element_bytes as i64;
        bytes + NAMED <= i64::from(options.room)
    };
    let mut closest: Option<Shape> = None;
    for shape in shapes {
        if fits(&shape) {
            return Some(shape);
        }
        if closest
            .as_ref()
            .is_none_or(|c| shape.slot.stride < c.slot.stride)
        {
            closest = Some(shape);
        }
    }
    closest
}

/// Why there are no kernels for some towers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// A block cannot have a line, or the part of it that it should have.
    Line,
    /// A period of each alignment has so many rows together, more than code can list, or farther from each other.
    Rows(usize),
}

/// All of the kernels of some towers but their code.
struct Draft {
    shape: Shape,
    /// What cut periods have to know of rows, for all alignments.
    rows: Vec<i32>,
    roles: Roles,
    kernels: Kernels,
}

impl Draft {
    fn new(
        scheme: &Scheme,
        layout: &Layout,
        towers: &Towers,
        options: Options,
    ) -> Result<Draft, Misfit> {
        let plan = |sets| Plan::new(layout, sets, towers.advance, options.direct);
        let plans: Vec<Plan> = towers.alignments.iter().map(plan).collect();
        let slots = plans.iter().map(|plan| plan.slots).max().unwrap_or(0);
        let shape = shape(scheme, layout, slots, options).ok_or(Misfit::Line)?;
        let Shape {
            split, spans, slot, ..
        } = &shape;
        if spans.is_some() && !keep_old(towers) {
            return Err(Misfit::Line);
        }
        let length = match spans {
            Some(spans) => spans.threads,
            None => split.map_or(slot.length, |split| split.part),
        };
        let threads = crate::lattice::div_ceil(length, 32) * 32;
        if threads + i64::from(roles::HELPERS) > MOST_THREADS {
            return Err(Misfit::Line);
        }
        let many = || Misfit::Rows(edge::count(towers));
        let mut kernels = Vec::new();
        let mut rows = Vec::new();
        for ((number, sets), plan) in towers.alignments.iter().enumerate().zip(plans) {
            // Blocks that share lines store parts of a row that another one copies for the stage after.
            let clash = |life: &Life| life.touches[0].tapped && life.touches[0].write.is_some();
            if split.is_some() && sets.lives.iter().any(clash) {
                return Err(Misfit::Line);
            }
            let bytes = slot.elements(plan.slots) * layout.element_bytes as i64;
            kernels.push(TowerKernel {
                symbol: format!("torre_tower_{number}"),
                threads: threads as u32,
                shared: u32::try_from(bytes).map_err(|_| Misfit::Line)?,
                plan,
                first_row: (rows.len() / edge::words(towers)) as i64,
            });
            rows.extend(edge::rows(towers, number).ok_or_else(many)?);
        }
        let kept = kernels.iter().map(|k| k.plan.carried.len()).max();
        let registers = (kept.unwrap_or(0) * layout.element_bytes / 4) as u32 + options.beside;
        let mut wanted = registers + ACROSS;
        let mut needed = split.map_or(registers, |_| wanted);
        let mut updates = scheme.stages.iter().flat_map(|s| &s.updates);
        if updates.any(|u| u.mask.is_some() || u.body.coefs().next().is_some()) {
            [needed, wanted] = [needed, wanted].map(|n| n.max(MEDIA));
        }
        let roles = Roles::new(threads as u32, [needed, wanted], options.shift);
        let ghosts = match Beyond::new(scheme, layout, (split.as_ref(), spans.as_ref())) {
            Some(_) if towers.are_adjacent() => Some(Refresh::new(layout).ok_or(Misfit::Line)?),
            _ => None,
        };
        let flow = towers.are_adjacent().then(|| FlowKernel {
            symbol: flow::SYMBOL.to_string(),
            threads: roles.all(),
            shared: kernels.iter().map(|k| k.shared).max().unwrap_or(0),
            named: flow::named(roles, options.parts).next_multiple_of(LINE as u32),
            cluster: options.parts,
            part: length as u32,
            spans: spans.clone(),
            registers: roles.registers(),
            ghosts,
        });
        if !Module::holds(rows.len()) {
            return Err(many());
        }
        Ok(Draft {
            shape,
            rows,
            roles,
            kernels: Kernels {
                towers: kernels,
                flow,
            },
        })
    }
}

/// The kernels that [`emit`] adds to an empty module, without their code.
pub fn design(
    scheme: &Scheme,
    layout: &Layout,
    towers: &Towers,
    options: Options,
) -> Result<Kernels, Misfit> {
    Draft::new(scheme, layout, towers, options).map(|draft| draft.kernels)
}

/// Adds the kernels of some towers, with sheets that act in their order. `None` where [`design`] finds none.
pub fn emit(
    module: &mut Module,
    scheme: &Scheme,
    layout: &Layout,
    towers: &Towers,
    sheets: &[Acting],
    options: Options,
) -> Option<Kernels> {
    let Draft {
        shape,
        rows,
        roles,
        kernels,
    } = Draft::new(scheme, layout, towers, options).ok()?;
    let Shape {
        split,
        spans,
        chain,
        slot,
    } = shape;
    let shared = module.shared_on_demand(LINE as u32);
    let rows = module.constants(&rows)?;
    let beyond = Beyond::new(scheme, layout, (split.as_ref(), spans.as_ref()));
    let mut list = Vec::new();
    let arrivals: Vec<Option<Arrivals>> = kernels
        .towers
        .iter()
        .map(|kernel| {
            let beyond = beyond.as_ref()?;
            Some(Arrivals::new(beyond, layout, slot, &kernel.plan, &mut list))
        })
        .collect();
    let list = beyond.is_some().then(|| {
        Arrivals::end(&arrivals, &mut list);
        module.table(&list)
    });
    let mut writers = Vec::new();
    for (kernel, arrivals) in kernels.towers.iter().zip(&arrivals) {
        let slot = (slot, split, spans.as_ref());
        writers.push(Writer {
            beyond: beyond.as_ref(),
            arrivals: arrivals.as_ref().zip(list),
            ..Writer::new(scheme, layout, towers, slot, kernel, sheets, options)
        });
    }
    if options.single && split.is_none() && spans.is_none() {
        for (writer, kernel) in writers.iter().zip(&kernels.towers) {
            write::write(module, writer, kernel, shared, options.registers);
        }
    }
    if let Some(flow) = &kernels.flow {
        let places = [shared, rows];
        flow::write(module, &writers, roles, places, chain, options.patient);
        if let Some(ghosts) = &flow.ghosts {
            refresh::write(module, scheme, layout, ghosts);
        }
    }
    Some(kernels)
}
