//! Overlapped slabs: a schedule for domains that exceed a device's memory, beside the calculation window.
//!
//! A *slab* is a range of planes across the outer axis, its *base*. It is loaded with all planes on which the base
//! depends at the end of a pass, goes through all time blocks of the pass there, and stores its base: a pyramid whose
//! base is a slab. Cells that slabs have in common are computed by each of them. So slabs of a pass depend only on the
//! host's array before it, and are loaded, run and stored beside each other in the two buffers of a device:
//!
//! ```text
//! planes     low                                                high
//! loaded          [-------------------------------------]
//! block 0             [-----------------------------]
//! block 1                [-----------------------]
//! base                      [-----------------]
//! ```
//!
//! Towers keep their places and the grid its ends: a slab runs the groups of each time block that have an event on
//! which the base depends ([`Footprints::slabs`]). Their other events, beyond the planes that are right, compute values
//! that are not used; the planes in which they do are in the buffer, too, and are never stored. The first group
//! of a block does not wait for towers above it.
//!
//! The host has one array. A base is stored when all slabs of the pass have loaded their part of it, which are the next
//! one beside the slab itself: [`SlabBuilder`] lists the loads of a slab before the stores of the one before. A base is
//! no narrower than the part that the slab after the next one would need of it.
//!
//! Towers of both slabs that a buffer has one after the other publish their progress in the same memory, so all runs of
//! the first one are over before the runs of the second one begin.
//!
//! Slabs are numbered on over all passes, in the order in which they run, from high planes to low ones along the way of
//! towers. In [`Op`]s that number stands for the pass, and the buffers stand for devices that take slabs in turns.

mod build;
mod check;
mod cone;
mod print;

pub use build::{LaidOutSlabs, SlabBuilder};
pub use check::check_slabs;
pub use print::PrintedSlabs;

use super::{DeviceBuffer, NoLayout, Pass, PassBlock, Planes, Queue, Window};
use crate::lattice::Interval;
use crate::layout::Layout;

/// Buffers of a device. Slabs go to devices in turns, and on each device to its buffers in turns; so a buffer of the
/// window belongs to the device of its number, modulo their count.
pub const BUFFERS: usize = 2;

/// A slab of a pass. Planes are counted as in the array, along the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slab {
    /// The number of its pass.
    pub pass: u64,
    /// The time blocks, each with the groups that the slab runs.
    pub work: Pass,
    /// Per block, the groups with an event on which the base depends.
    pub needed: Vec<Interval>,
    /// The planes that it stores.
    pub base: Interval,
    /// The planes that it loads: all on which the base depends.
    pub loaded: Interval,
    /// The planes with a place in the buffer: planes that are loaded, and planes that its towers touch.
    pub held: Interval,
}

impl Slab {
    /// The part of a block that consists of some of its groups.
    fn part(block: &PassBlock, groups: Interval) -> PassBlock {
        let own = groups.intersect(Interval::new(block.first, block.end()));
        if own.is_empty() {
            return PassBlock {
                groups: [].into(),
                needs: vec![[].into(); block.needs.len()],
                ..block.clone()
            };
        }
        let range = (own.lo - block.first) as usize..(own.hi - block.first) as usize;
        let needs = block.needs.iter();
        PassBlock {
            first: own.lo,
            groups: block.groups[range.clone()].into(),
            needs: needs.map(|needs| needs[range.clone()].into()).collect(),
            ..block.clone()
        }
    }

    /// The planes that its towers touch.
    fn touched(work: &Pass) -> Interval {
        let groups = work.blocks.iter().flat_map(|block| block.groups.iter());
        let touched = groups.map(|planes: &Planes| planes.touched);
        touched.fold(Interval::default(), Interval::hull)
    }
}

/// Whether a pass of slabs can be loaded from one array: of the planes that are stored in the pass before a slab is
/// loaded, the slab needs only planes that the slab before it stores. Otherwise, how wide bases would have to be.
pub fn wide_enough(slabs: &[Slab]) -> Result<(), NoLayout> {
    for (number, slab) in slabs.iter().enumerate() {
        let Some(stored) = number.checked_sub(2).map(|last| slabs[last].base) else {
            continue;
        };
        if slab.loaded.hi > stored.lo {
            return Err(NoLayout::Narrow {
                base: slabs[number - 1].base.len(),
                needed: slab.loaded.hi - slabs[number - 1].base.lo,
            });
        }
    }
    Ok(())
}

/// Where a buffer keeps the states of zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatePlaces {
    /// In the places of planes, if there are any.
    InPlanes,
    /// Some beside planes, by the plane's number ([`Layout::has_beside`]): slabs of a buffer that have a plane at
    /// different places have its states at the same one.
    Beside,
}

impl From<&Layout> for StatePlaces {
    fn from(layout: &Layout) -> Self {
        match layout.has_beside() {
            true => StatePlaces::Beside,
            false => StatePlaces::InPlanes,
        }
    }
}

/// The window that stands for the buffers of slabs on some devices: `places` places in each, and `in_flight` queues of
/// time blocks.
pub fn buffers(devices: usize, planes: Interval, places: i64, in_flight: usize) -> Window {
    Window {
        planes,
        ring: None,
        buffer: DeviceBuffer::Sliding { places },
        devices: BUFFERS * devices,
        in_flight: in_flight.max(1),
        ahead: 0,
        spread: false,
    }
}

/// The number of a queue of the device of a slab among the queues of all devices.
fn queue_of(window: &Window, slab: u64, queue: Queue) -> usize {
    let device = window.device(slab) % (window.devices / BUFFERS).max(1);
    let own = match queue {
        Queue::Loads => 0,
        Queue::Stores => 1,
        Queue::Blocks(n) => 2 + n,
    };
    device * (2 + window.in_flight.max(1)) + own
}
