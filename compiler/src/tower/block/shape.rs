//! The shape of a block: the first one that leaves room for all shared rows.

use super::chain::WarpChain;
use super::ghosts::{BlockGhosts, GhostPass, InnerGhosts};
use super::lines::{Division, Lines};
use super::roles::{Demand, HELPERS, Roles};
use super::shared::{ALIGNMENTS, SharedRow, Shown};
use super::slabs::WARP;
use crate::ghost::AxisGhosts;
use crate::lattice::{Axis, div_ceil};
use crate::layout::{GPU_ALIGNMENT, Layout};
use crate::scheme::{Op, Precision, Scheme};
use crate::tower::allocate::Allocation;
use crate::tower::boundary::BoundaryRows;
use crate::tower::residency::row_coefs;
use crate::tower::towers::Towers;
use crate::tower::wave_slots::{WAVE, WaveSlots};
use crate::tower::zone_coefs::ZoneCoefs;
use crate::tower::zones::Variants;
use std::fmt;

/// The wanted division of lines, and the abilities of the GPU. Results depend on neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub division: Division,
    pub abilities: Abilities,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            division: Division::Shared(1),
            abilities: Abilities::default(),
        }
    }
}

/// The abilities of a GPU that towers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Rows are copied to shared memory while threads compute.
    pub asynchronous: bool,
    /// Threads that only copy give registers to compute threads, if the latter need more.
    pub moves_registers: bool,
    /// Threads that wait for copies are suspended.
    pub suspends: bool,
    /// Bytes of shared memory that a block can have. Rows lie as close to each other as that takes, and no closer.
    pub shared_bytes: u32,
    /// Registers that a thread needs beside registers for the values that it keeps. Usually the number that the
    /// assembler takes for FDTD(4,2); it takes [`ACROSS`] more where blocks share lines.
    pub working_registers: u32,
}

impl Default for Abilities {
    fn default() -> Abilities {
        Abilities {
            asynchronous: true,
            moves_registers: false,
            suspends: false,
            shared_bytes: u32::MAX,
            working_registers: 48,
        }
    }
}

/// Why a block cannot run towers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// A block cannot have a line, or the part of it that it should have.
    Line,
    /// The rows of the periods of all alignments together: more than a list can hold, or rows too far from each other.
    Rows(usize),
    /// Towers depend on towers that lie farther away in tiles than in stages, so waits for neighbours do not reach
    /// them.
    Far,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misfit::Line => f.write_str("a block of threads cannot have lines as long as these"),
            Misfit::Rows(rows) => write!(
                f,
                "a period has {rows} rows, which are more than a list can hold, or too far from each other"
            ),
            Misfit::Far => f.write_str(
                "the towers are so narrow that waits for neighbours do not reach all towers on which they depend",
            ),
        }
    }
}

impl std::error::Error for Misfit {}

/// The width of a slab is a multiple of one of these numbers of values: the first one with which there is room. Whole
/// warps store whole lines of the cache.
const UNITS: [i64; 4] = [32, 16, 8, 4];
/// Bytes of shared memory that a block has beside shared rows, at most.
const NAMED: i64 = 1024;
/// Registers that a thread needs at least where updates read coefficients, which boundary periods load with the rest.
const MEDIA: u32 = 184;
/// Registers that a thread needs where rows are amended, beside others: places of states and coefficients, and values
/// that have been fetched for rows.
const AMENDING: u32 = 40;
/// Registers for old values that amendments read, of the rows that are amended together.
const OLD: u32 = 6;
/// Registers for quotients of amendments in f64, which keep others from being used: FDTD(4,2) with a medium of two
/// states in half of the grid keeps up to 21 more values of 32 bits in memory with them than without.
const QUOTIENTS: u32 = 24;
/// Registers that a thread needs where blocks share lines, beside others; it gets them where registers are moved, too.
pub const ACROSS: u32 = 24;
/// The most threads of a block.
pub const MOST_THREADS: i64 = 1024;

/// Bytes of a barrier object.
const BARRIER: u32 = 8;
/// Words in which a block keeps its task and the next one, besides the progress of the blocks of its neighbours.
pub const TASK_WORDS: u32 = 24;
/// Towers that a tower waits for.
pub const NEIGHBOURS: u32 = 3;
/// Barrier objects of a block: per stage in flight one for rows that have arrived and one for rows that are free.
pub const PIPELINE_BARRIERS: u32 = 4;
/// Barrier objects between the blocks of a cluster.
pub const CLUSTER_BARRIERS: u32 = 2;
/// Bytes for the order of a warp with the two beside it: for each side two barrier objects, the address of the
/// neighbour's objects, and the number of values of a row that are sent there.
pub const WARP_BYTES: u32 = 2 * (2 * BARRIER + 8);

/// A block that runs towers.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub lines: Lines,
    /// Which warps read values of other warps. `None`: each stage ends with a barrier.
    pub chain: Option<WarpChain>,
    pub shared_row: SharedRow,
    /// Shared rows, the most of all alignments.
    pub shared_rows: usize,
    /// Ghosts along the inner axis that towers make. `None`: memory holds them, or there are none.
    pub ghosts: Option<BlockGhosts>,
    pub roles: Roles,
    /// Values of a line that a block has, at most.
    pub values: u32,
    /// Bytes of shared memory for shared rows, and for slots behind them.
    pub shared_bytes: u32,
    /// Slots of waves that are copied. `None`: there is no room, or nothing to copy.
    pub slots: Option<WaveSlots>,
    /// Coefficients of zones that it keeps.
    pub coefs: ZoneCoefs,
    /// The abilities of the GPU.
    pub abilities: Abilities,
}

/// How lines lie in the shared memory of blocks.
struct LineShape {
    lines: Lines,
    chain: Option<WarpChain>,
    shared_row: SharedRow,
    ghosts: Option<InnerGhosts>,
}

impl Block {
    pub fn new(
        scheme: &Scheme,
        layout: &Layout,
        towers: &Towers,
        allocations: &[Allocation],
        options: Options,
    ) -> Result<Block, Misfit> {
        if !towers.waits_reach_all() {
            return Err(Misfit::Far);
        }
        let shared_rows = allocations.iter().map(|a| a.shared_rows).max().unwrap_or(0);
        let abilities = options.abilities;
        let shape = shape(scheme, layout, shared_rows, options).ok_or(Misfit::Line)?;
        let LineShape {
            lines,
            chain,
            shared_row,
            ghosts,
        } = shape;
        if lines.z_blocks().is_some() && !keep_old(towers) {
            return Err(Misfit::Line);
        }
        let values = lines.own(shared_row.length);
        let threads = div_ceil(values, WARP) * WARP;
        if threads + i64::from(HELPERS) > MOST_THREADS {
            return Err(Misfit::Line);
        }
        // Blocks that share lines store parts of a row that another one copies for the stage after.
        let live_ranges = towers.alignments.iter().flat_map(|a| &a.live_ranges);
        let mut first = live_ranges.map(|live| live.touches[0]);
        let clashes = first.any(|touch| touch.cross_lane && touch.write.is_some());
        if lines.slabs().is_some() && clashes {
            return Err(Misfit::Line);
        }
        let bytes = shared_row.elements(shared_rows) * layout.element_bytes as i64;
        let with_pass = |inner| {
            let pass = GhostPass::new(layout).ok_or(Misfit::Line)?;
            Ok(BlockGhosts { inner, pass })
        };
        let ghosts = ghosts.map(with_pass).transpose()?;
        Ok(Block {
            roles: Roles::new(
                threads as u32,
                demand(scheme, &towers.variants, &lines, allocations, abilities),
                abilities,
            ),
            lines,
            chain,
            shared_row,
            shared_rows,
            ghosts,
            values: values as u32,
            shared_bytes: u32::try_from(bytes).map_err(|_| Misfit::Line)?,
            slots: None,
            coefs: ZoneCoefs::default(),
            abilities,
        })
    }

    /// The same with coefficients of zones, where there is room for them.
    pub(in crate::tower) fn with_coefs(mut self, coefs: ZoneCoefs, layout: &Layout) -> Block {
        let first = self.shared_bytes.next_multiple_of(WAVE);
        let bytes = coefs.values() * layout.element_bytes as i64;
        let all = u32::try_from(bytes).ok().and_then(|n| n.checked_add(first));
        let fits = |all: u32| all.saturating_add(self.named_bytes()) <= self.abilities.shared_bytes;
        if let Some(all) = all.filter(|all| bytes > 0 && fits(*all)) {
            self.shared_bytes = all;
            self.coefs = coefs.at(first);
        }
        self
    }

    /// The same with slots of waves, where there is room for them.
    pub fn with_slots(mut self, slots: WaveSlots) -> Block {
        let first = self.shared_bytes.next_multiple_of(WAVE);
        let all = first.saturating_add(slots.bytes());
        if all.saturating_add(self.named_bytes()) <= self.abilities.shared_bytes {
            self.shared_bytes = all;
            self.slots = Some(slots);
        }
        self
    }

    /// From the first shared row to the slots of waves, in bytes, if there are some.
    pub fn slots_at(&self) -> Option<i64> {
        let slots = self.slots?;
        Some(i64::from(self.shared_bytes - slots.bytes()))
    }

    /// Bytes of shared memory beside shared rows: the block's task, and barriers.
    pub fn named_bytes(&self) -> u32 {
        let task = 4 * (TASK_WORDS + NEIGHBOURS * self.lines.cluster());
        let cluster = match self.lines {
            Lines::Slabs(_) => CLUSTER_BARRIERS * BARRIER,
            _ => 0,
        };
        let warps = self.roles.warps() * WARP_BYTES;
        let pieces = [task, PIPELINE_BARRIERS * BARRIER, cluster, warps];
        let all = pieces.iter().map(|bytes| bytes.next_multiple_of(16));
        all.sum::<u32>().next_multiple_of(GPU_ALIGNMENT as u32)
    }

    /// Bytes of shared memory of a block.
    pub fn all_shared(&self) -> u32 {
        self.shared_bytes.saturating_add(self.named_bytes())
    }

    /// Indices of lines that threads have, of all blocks that run a tower. Indices of the last block may lie behind the
    /// end.
    pub fn line_threads(&self) -> i64 {
        match &self.lines {
            Lines::ZBlocks(z_blocks) => z_blocks.end(),
            lines => i64::from(self.roles.compute * lines.cluster()),
        }
    }
}

/// Registers that a thread needs where rows are amended, beside others.
pub fn amending_registers(scheme: &Scheme) -> u32 {
    let updates = scheme.stages.iter().flat_map(|s| &s.updates);
    let mut old = 0;
    let mut quotients = 0;
    for update in updates {
        for amendment in &update.amendments {
            if scheme.needs_old(update, amendment) {
                old = OLD;
            }
            let is_quotient = |op: &Op| matches!(op, Op::Div(..) | Op::Sqrt(_));
            if scheme.precision == Precision::F64 && amendment.body.ops.iter().any(is_quotient) {
                quotients = QUOTIENTS;
            }
        }
    }
    AMENDING + old + quotients
}

/// Registers that a thread should have. Variants that only some towers run may spill.
fn demand(
    scheme: &Scheme,
    variants: &Variants,
    lines: &Lines,
    allocations: &[Allocation],
    abilities: Abilities,
) -> Demand {
    let kept = allocations.iter().map(|a| a.carried.len()).max();
    let kept = kept.unwrap_or(0) * scheme.precision.bytes() / 4;
    let registers = kept as u32 + abilities.working_registers;
    let across = if lines.slabs().is_some() { ACROSS } else { 0 };
    let amending = |has: bool| if has { amending_registers(scheme) } else { 0 };
    let demand = Demand {
        needed: registers + across + amending(variants.all_have_zones()),
        wanted: registers + ACROSS + amending(variants.any_zones()),
    };
    let mut updates = scheme.stages.iter().flat_map(|s| &s.updates);
    let loads = updates.any(|u| row_coefs(scheme, u).next().is_some());
    match loads || variants.any_zones() {
        true => Demand {
            needed: demand.needed.max(MEDIA),
            wanted: demand.wanted.max(MEDIA),
        },
        false => demand,
    }
}

/// The first shape that leaves room for `rows` shared rows, or the one whose rows are closest to each other.
fn shape(scheme: &Scheme, layout: &Layout, rows: usize, options: Options) -> Option<LineShape> {
    let of = |unit| {
        let lines = Lines::new(scheme, layout, options.division, unit)?;
        let chain = options
            .abilities
            .asynchronous
            .then(|| match options.division {
                Division::ZBlocks(warps) => Some(WarpChain::of_z_block(warps)),
                Division::Shared(_) => WarpChain::new(scheme, layout, lines.slabs()),
            });
        let chain = chain.flatten();
        (lines.slabs().is_none() || chain.is_some()).then_some((lines, chain))
    };
    // Only slabs have such units.
    let units = match options.division {
        Division::Shared(2..) => UNITS.len(),
        _ => 1,
    };
    let has_ghosts = scheme
        .component_ids()
        .any(|id| !AxisGhosts::new(scheme, id, Axis::INNER).is_empty());
    let shapes = UNITS.into_iter().take(units).filter_map(of);
    let shapes = shapes.flat_map(|(lines, chain)| {
        let own = lines.own(layout.extent[Axis::INNER]);
        let ghosts = InnerGhosts::new(scheme, layout, &lines);
        let shown = match lines.slabs().is_some() || has_ghosts && ghosts.is_none() {
            true => Shown::Neighbours,
            false => Shown::Own,
        };
        ALIGNMENTS.map(|alignment| LineShape {
            lines: lines.clone(),
            chain,
            shared_row: SharedRow::new(layout, own, shown, alignment),
            ghosts: ghosts.clone(),
        })
    });
    let fits = |shape: &LineShape| {
        let bytes = shape.shared_row.elements(rows) * layout.element_bytes as i64;
        bytes + NAMED <= i64::from(options.abilities.shared_bytes)
    };
    let mut closest: Option<LineShape> = None;
    for shape in shapes {
        if fits(&shape) {
            return Some(shape);
        }
        let closer = |c: &LineShape| shape.shared_row.stride < c.shared_row.stride;
        if closest.as_ref().is_none_or(closer) {
            closest = Some(shape);
        }
    }
    closest
}

/// Whether all updates need the old values of the rows that they write: a thread of a z block keeps these values where
/// it has no part in an update.
fn keep_old(towers: &Towers) -> bool {
    let live_ranges = towers.alignments.iter().flat_map(|a| &a.live_ranges);
    let mut touches = live_ranges.flat_map(|live| &live.touches);
    touches.all(|touch| touch.write.is_none() || touch.old)
}

/// The list of rows of boundary periods, or why there is none.
pub fn boundary_rows(towers: &Towers) -> Result<BoundaryRows, Misfit> {
    BoundaryRows::new(towers).ok_or_else(|| Misfit::Rows(BoundaryRows::count(towers)))
}
