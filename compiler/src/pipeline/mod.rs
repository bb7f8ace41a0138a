//! Pipelines of time blocks: which towers run when, and which planes of the domain a device holds meanwhile.
//!
//! The unit of work is a *launch*: the towers of one time block whose origins lie in one *group* of planes across the
//! outer axis. A launch of a time block depends on launches of the time block before only up to some group, so several
//! time blocks are in flight, each some groups behind the one before it. A *pass* is a number of time blocks that every
//! plane goes through one after the other.
//!
//! With a *calculation window*, a device holds only the planes that time blocks in flight access; slabs of planes are
//! loaded ahead of the first time block of a pass, and stored behind its last one:
//!
//! ```text
//! plane    low                                                                         high
//!          | not loaded | loading | block 0 | block 1 | ... | last block | storing | stored |
//!                       '-------------------- buffer of the device ------------------'
//! ```
//!
//! A buffer is circular where the device can map its memory twice in a row: planes go around, and a load takes the
//! places of the highest planes when the operations that used them are over. Elsewhere it is filled downwards, and when
//! it is full, planes that are still needed are copied to its upper end, a *slide*.
//!
//! A [`Window`] and the [`Pass`]es of a run yield a list of [`Op`]s, each with a queue and the operations for which it
//! waits ([`Builder`]). Operations of a queue run in their order; everything else is ordered by these waits alone.
//! [`check`] executes such a list symbolically and finds faults of any interleaving. Nothing here knows
//! towers: [`Footprints`] derives the groups of a time block from them.
//!
//! Several devices take passes in turns: each has a buffer of its own, and a pass begins on the next device when the
//! pass before has stored the first planes. Only copies to and from the host order them.
//!
//! Around a periodic outer axis planes are counted on. In each time block the ring is cut at a seam, which moves
//! against the way, and the seam of a time block begins where that of the one before has ended. So a pass has planes
//! in one row as along an open axis, some more than the ring has: planes that the seam passes are loaded and stored
//! twice, at the top of the pass as far as time blocks go before the seam, and at its bottom for the rest. The next
//! pass begins below all planes that the bottom has in common with the top; so a pass needs nothing of the one before
//! but planes that this has stored.
//!
//! Planes are counted along the *way* of towers: planes of an array whose towers move down are counted backwards.
//! Groups are numbered against the way, in the order in which they run. On a device planes of later passes go on below
//! the planes of earlier ones, so that a plane of a pass is one number.

mod active;
mod build;
mod check;
mod draw;
mod fault;
mod footprint;
mod history;
mod laid_out;
mod list;
mod order;
pub mod pace;
mod predict;
mod print;
mod slabs;
mod stripes;
mod window_time;

pub use build::Builder;
pub use check::check;
pub use draw::{Durations, timelines};
pub use fault::Fault;
pub use footprint::{Footprints, Height};
pub use laid_out::{LaidOut, NoLayout};
pub use predict::{
    LaunchTowers, Rates, SlabWork, SlabsRate, StripeWork, StripesRate, WindowRate, WindowWork,
    mean_time,
};
pub use print::Printed;
pub use slabs::{
    BUFFERS, LaidOutSlabs, PrintedSlabs, Slab, SlabBuilder, StatePlaces, check_slabs, wide_enough,
};
pub use stripes::{
    NoStripes, PrintedStripes, StripeAction, StripeFault, StripeLaunches, StripeOp, StripeOps,
    StripeQueue, StripeSeconds, StripedBlock, StripedHeight, StripedPass, StripedTime, Stripes,
    check_stripes,
};

pub use window_time::WindowSeconds;

use crate::lattice::Interval;
use crate::tower::Planes;
use std::sync::Arc;

/// The room that a device has for planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceBuffer {
    /// For the whole array: nothing is loaded or stored.
    Whole,
    /// For some planes one after the other; those of a window slide to make room for others.
    Sliding { places: i64 },
    /// For some planes, which go around: planes whose numbers differ by the number of places, about, lie at the same
    /// place.
    Circular { places: i64 },
}

impl DeviceBuffer {
    /// Planes that it has room for; `None`: all.
    pub fn places(self) -> Option<i64> {
        match self {
            DeviceBuffer::Whole => None,
            DeviceBuffer::Sliding { places } | DeviceBuffer::Circular { places } => Some(places),
        }
    }

    /// A buffer with room for some planes, which go around if they do so in this one.
    pub fn with_places(self, places: i64) -> DeviceBuffer {
        match self {
            DeviceBuffer::Circular { .. } => DeviceBuffer::Circular { places },
            DeviceBuffer::Whole | DeviceBuffer::Sliding { .. } => DeviceBuffer::Sliding { places },
        }
    }
}

/// The planes that a device holds, and the layout of operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The planes of the array along the way, ghosts included; around a ring the planes of the highest pass.
    pub planes: Interval,
    /// Planes of the ring, where the outer axis is periodic and planes are counted on around it.
    pub ring: Option<i64>,
    pub buffer: DeviceBuffer,
    /// Devices that take passes in turns, at least 1; with the whole array there is one.
    pub devices: usize,
    /// Queues of time blocks of a device: the most that are in flight.
    pub in_flight: usize,
    /// Groups whose planes are loaded ahead of the one that runs.
    pub ahead: i64,
    /// Every second time block is one more group behind, so that launches that are next in the list do not wait for
    /// each other.
    pub spread: bool,
}

/// The time blocks that planes go through while they are on the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// In their order; no more than are in flight, if there is a window.
    pub blocks: Vec<PassBlock>,
    /// The part of a ring that it has, if there is one.
    pub ring_part: Option<RingPart>,
}

/// The planes that a pass has of a ring, counted on around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPart {
    /// From the lowest plane that it touches to the top of all passes.
    pub loaded: Interval,
    /// From the lowest plane that it writes to the highest.
    pub stored: Interval,
}

impl RingPart {
    /// Planes of the ring by which the next pass begins below this one: then it has no plane in common with the planes
    /// that this one has twice.
    pub fn drift(&self, ring: i64) -> i64 {
        self.loaded.len() - ring
    }

    /// The plane as which a pass stores a plane of the ring for the last time, if it has it as such a plane or as one
    /// whole lengths of the ring away.
    pub(super) fn last(&self, ring: i64, plane: i64) -> i64 {
        self.stored.lo + (plane - self.stored.lo).rem_euclid(ring)
    }
}

/// A time block of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassBlock {
    pub steps: u64,
    /// The number of the first group.
    pub first: i64,
    /// By how many planes the accessed planes lie against the way from the planes that its towers count: the distance
    /// by which the seams of earlier blocks of the pass have moved.
    pub moved: i64,
    /// The planes of each group.
    pub groups: Arc<[Planes]>,
    /// For each earlier block of the pass, and each group, the last group of that block that has to be done before.
    pub needs: Vec<Arc<[i64]>>,
    /// The planes of each output that is taken after the time block.
    pub gathers: Vec<Interval>,
}

impl PassBlock {
    /// After the last group.
    pub fn end(&self) -> i64 {
        self.first + self.groups.len() as i64
    }

    /// The planes of a group, if there is such a group.
    pub fn group(&self, number: i64) -> Option<&Planes> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.groups.get(index)
    }

    /// The last group of an earlier block, by its number in the pass, that has to be done before a group of this one.
    pub fn need(&self, earlier: usize, number: i64) -> Option<i64> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.needs.get(earlier)?.get(index).copied()
    }
}

/// The number of an operation, from 0 on over all passes.
pub type OpId = u64;

/// A queue of the device of a pass. Operations of a queue run one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Queue {
    Loads,
    Stores,
    /// Every so-manyth time block of a pass.
    Blocks(usize),
}

/// The action of an operation. Planes are counted as in the array, along the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Copies planes from the host to the buffer.
    Load { planes: Interval },
    /// Runs the towers of a group of a block of the pass.
    Run { block: usize, group: i64 },
    /// Collects planes of an output, by its number among the outputs of the block, after the block.
    Gather {
        block: usize,
        output: usize,
        planes: Interval,
    },
    /// Copies planes from the buffer to the host.
    Store { planes: Interval },
    /// Copies places of the buffer to places `by` farther up.
    Slide { places: Interval, by: i64 },
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    pub id: OpId,
    /// The number of its pass.
    pub pass: u64,
    pub action: Action,
    pub queue: Queue,
    /// Operations that are over before it begins, besides the one before it in its queue. Operations of passes two
    /// turns before are over, too: the host waits for them.
    pub after: Vec<OpId>,
    /// The plane number at place 0 of the buffer while it runs; after it, if it slides. In a circular buffer places are
    /// counted from the lowest plane that the operation uses.
    pub base: i64,
}

impl Window {
    /// By how much plane numbers of a pass lie below the numbers of the pass before on the same device.
    pub fn numbers_per_pass(&self) -> i64 {
        self.planes.len()
    }

    /// The device of a pass.
    pub fn device(&self, pass: u64) -> usize {
        (pass % self.devices.max(1) as u64) as usize
    }

    /// How many passes the device of a pass has had before.
    pub fn passes_before(&self, pass: u64) -> u64 {
        pass / self.devices.max(1) as u64
    }

    /// By how many planes the planes of the next pass lie below the planes of a pass with the same index.
    pub fn below(&self, pass: &Pass) -> i64 {
        let ring_part = self.ring.zip(pass.ring_part);
        ring_part.map_or(0, |(ring, part)| part.drift(ring))
    }

    /// A plane of a pass as one number.
    pub fn number(&self, pass: u64, plane: i64) -> i64 {
        plane - self.passes_before(pass) as i64 * self.numbers_per_pass()
    }

    /// The first pass that may still run when `pass` begins. All passes before it are over, as the host waits for them.
    pub fn first_active(&self, pass: u64) -> u64 {
        pass.saturating_sub(2 * self.devices.max(1) as u64 - 1)
    }

    /// Planes of the device's buffer; `None`: it holds the whole array.
    pub fn places(&self) -> Option<i64> {
        self.buffer.places()
    }

    /// Whether planes go around in the buffer.
    pub fn is_circular(&self) -> bool {
        matches!(self.buffer, DeviceBuffer::Circular { .. })
    }

    /// The place of the buffer where a plane of a pass lies, if plane number `base` lies at place 0.
    pub fn place(&self, pass: u64, plane: i64, base: i64) -> i64 {
        self.number(pass, plane) - base
    }

    /// The queue of a block of a pass.
    pub fn queue(&self, block: usize) -> Queue {
        Queue::Blocks(block % self.in_flight.max(1))
    }

    /// How many groups each block of a pass is behind the first one at least, in the order of the list.
    pub fn offsets(&self, pass: &Pass) -> Vec<i64> {
        let mut offsets = Vec::new();
        let mut last = 0;
        for (number, block) in pass.blocks.iter().enumerate() {
            if let Some(before) = number.checked_sub(1) {
                let needs = block.needs.get(before);
                let needs = needs.map_or(&[][..], |needs| &needs[..]);
                let behind = needs
                    .iter()
                    .zip(block.first..)
                    .map(|(need, own)| need - own);
                last += behind.max().unwrap_or(0).max(0);
                last += i64::from(self.spread && number % 2 == 0);
            }
            offsets.push(last);
        }
        offsets
    }
}
