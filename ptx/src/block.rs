//! Blocks and warps under way.

use std::rc::Rc;

use crate::alu::{LANES, uniform};
use crate::clock::{Presence, View, Witness};
use crate::copies::Transfers;
use crate::error::{Fault, FaultKind};
use crate::module::{Content, Entry, Special};
use crate::op::{Slot, WarpAlignment};
use crate::order::{Seen, Ties};
use crate::poll::Poll;
use crate::rows::{Aligned, Rows};
use crate::shadow::Shadow;
use crate::sync::Named;

/// Lanes of a warp at the same instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) pc: u32,
    pub(crate) mask: u32,
}

/// The reason for which lanes wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// A barrier of the block.
    Barrier(u32),
    /// The other lanes of an instruction of the warp.
    Warp { members: u32 },
}

/// Lanes that wait at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) group: Group,
    pub(crate) why: Why,
    pub(crate) alignment: WarpAlignment,
}

/// Instructions after which a warp that does not poll counts as one that works.
pub(crate) const BUSY: u32 = 1 << 12;

/// A warp: its lanes run together as long as they take the same way.
#[derive(Debug, Default)]
pub(crate) struct Warp {
    pub(crate) rows: Rows,
    /// For each slot the lanes in which it has a value.
    pub(crate) defined: Vec<u32>,
    pub(crate) groups: Vec<Group>,
    /// The group that runs; with several, the one that is least far, unless `keep`.
    pub(crate) current: usize,
    pub(crate) keep: bool,
    pub(crate) waiting: Vec<Waiting>,
    /// Instructions since it tested something that others have to change.
    pub(crate) since_poll: u32,
    pub(crate) poll: Poll,
    /// All lanes of the warp, and the lanes that have ended.
    pub(crate) lanes: u32,
    pub(crate) exited: u32,
    /// Local memory of lane after lane, and which of its bytes are written.
    pub(crate) local: Vec<u8>,
    pub(crate) local_written: Vec<bool>,
    /// The time of the present accesses of its lanes.
    pub(crate) clock: u32,
    /// The accesses that each lane knows to have happened before.
    pub(crate) views: Vec<View>,
    /// The state that each lane keeps for fences.
    pub(crate) ties: Vec<Ties>,
    pub(crate) seen: Seen,
    /// Lanes that have arrived at the cluster's barrier and not waited yet, and its phase then.
    pub(crate) arrived: u32,
    pub(crate) phases: [u32; LANES],
}

/// Shared memory of a block.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) bytes: Vec<u8>,
    /// The state of each byte: the bits below.
    pub(crate) state: Vec<u8>,
    pub(crate) shadow: Option<Box<Shadow>>,
}

impl Shared {
    /// Writes bytes.
    pub(crate) fn put(&mut self, at: usize, data: &[u8]) -> Result<(), Fault> {
        let states = &mut self.state[at..at + data.len()];
        if let Some(state) = states.iter().find(|state| **state & !WRITTEN != 0) {
            let (kind, message) = match state {
                state if *state & OBJECT != 0 => (
                    FaultKind::BadBarrier,
                    "a barrier object is written like data",
                ),
                _ => (
                    FaultKind::AsyncPending,
                    "shared memory is written that an asynchronous copy still needs",
                ),
            };
            return Err(Fault::new(kind, message));
        }
        states.fill(WRITTEN);
        self.bytes[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }
}

/// A byte that was written.
pub(crate) const WRITTEN: u8 = 1;
/// A byte that an asynchronous copy will write.
pub(crate) const ARRIVING: u8 = 2;
/// A byte of a barrier object.
pub(crate) const OBJECT: u8 = 4;
/// Added for each asynchronous copy that will read the byte.
pub(crate) const LEAVING: u8 = 8;

/// A block.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) id: [u32; 3],
    pub(crate) index: u32,
    pub(crate) warps: Vec<Warp>,
    pub(crate) shared: Shared,
    pub(crate) barriers: Vec<Named>,
    pub(crate) transfers: Transfers,
    /// Threads that have not ended.
    pub(crate) live: u32,
}

/// The shape of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) threads: u32,
    pub(crate) warps: u32,
    /// Blocks of a cluster.
    pub(crate) cluster: u32,
    /// Bytes of shared memory before the dynamic part, and of that.
    pub(crate) dynamic_at: u32,
    pub(crate) dynamic: u32,
}

impl Shape {
    /// The coordinates of a thread of a block.
    pub(crate) fn thread(&self, index: u32) -> [u32; 3] {
        coordinates(index, self.block)
    }

    /// The coordinates of a block of the grid.
    pub(crate) fn block_id(&self, index: u32) -> [u32; 3] {
        coordinates(index, self.grid)
    }
}

fn coordinates(index: u32, extents: [u32; 3]) -> [u32; 3] {
    let rest = index / extents[0];
    [index % extents[0], rest % extents[1], rest / extents[1]]
}

impl Block {
    /// A block before its first instruction. `addresses` are the addresses of the module's variables, `fixed` the rows
    /// that all warps share.
    pub(crate) fn new(
        index: u32,
        shape: &Shape,
        entry: &Entry,
        addresses: &[u64],
        fixed: &Rc<[Aligned]>,
    ) -> Block {
        let id = shape.block_id(index);
        let mut view = View::new(shape.warps);
        if shape.cluster > 1 {
            view = view.in_cluster();
        }
        let warps = (0..shape.warps).map(|number| {
            let first = number * LANES as u32;
            let count = (shape.threads - first).min(LANES as u32);
            let all = u32::MAX >> (LANES as u32 - count);
            let mut rows = vec![Aligned([0; LANES]); entry.slots.len()];
            let mut defined = vec![0; entry.slots.len()];
            for (slot, content) in entry.slots.iter().enumerate() {
                let value =
                    |lane: usize| content_value(*content, shape, index, id, first, lane, addresses);
                match content {
                    Content::Register | Content::Sink => {}
                    Content::Shared => defined[slot] = u32::MAX,
                    _ => {
                        defined[slot] = u32::MAX;
                        rows[slot].0 = std::array::from_fn(value);
                    }
                }
            }
            let local = entry.local_bytes as usize * LANES;
            Warp {
                rows: Rows {
                    own: rows,
                    fixed: Rc::clone(fixed),
                },
                defined,
                groups: vec![Group { pc: 0, mask: all }],
                lanes: all,
                local: vec![0; local],
                local_written: vec![false; local],
                since_poll: BUSY,
                clock: 1,
                views: vec![view.clone(); LANES],
                ties: (0..LANES).map(|_| Ties::default()).collect(),
                ..Warp::default()
            }
        });
        let shared = (shape.dynamic_at + shape.dynamic) as usize;
        Block {
            id,
            index,
            warps: warps.collect(),
            shared: Shared {
                // No byte is read before it is written.
                bytes: vec![0; shared],
                state: vec![0; shared],
                shadow: None,
            },
            barriers: vec![Named::default(); 16],
            transfers: Transfers::default(),
            live: shape.threads,
        }
    }

    /// The knowledge of a lane with its own accesses so far.
    pub(crate) fn witness(&self, warp: usize, lane: usize) -> Witness {
        let state = &self.warps[warp];
        Witness {
            view: state.views[lane].clone(),
            own: Presence {
                warp: warp as u32,
                lanes: 1 << lane,
                time: state.clock,
            },
        }
    }

    /// The value of a slot that is the same in all these lanes, if it is.
    pub(crate) fn uniform(&self, warp: usize, slot: Slot, mask: u32) -> Option<u64> {
        uniform(&self.warps[warp].rows[slot as usize], mask)
    }
}

/// The rows that all warps of a launch share.
pub(crate) fn fixed_rows(entry: &Entry, shape: &Shape, addresses: &[u64]) -> Rc<[Aligned]> {
    let rows = entry.fixed.iter().map(|content| {
        let value = |lane| content_value(*content, shape, 0, [0; 3], 0, lane, addresses);
        Aligned(std::array::from_fn(value))
    });
    rows.collect()
}

fn content_value(
    content: Content,
    shape: &Shape,
    index: u32,
    id: [u32; 3],
    first: u32,
    lane: usize,
    addresses: &[u64],
) -> u64 {
    let number = first + lane as u32;
    let special = |special| match special {
        Special::Thread(axis) => shape.thread(number)[usize::from(axis)],
        Special::Threads(axis) => shape.block[usize::from(axis)],
        Special::Block(axis) => id[usize::from(axis)],
        Special::Blocks(axis) => shape.grid[usize::from(axis)],
        Special::Lane => lane as u32,
        Special::Warp => first / LANES as u32,
        Special::Warps => shape.warps,
        Special::Multiprocessor => index,
        Special::Multiprocessors => shape.grid.iter().product(),
        Special::DynamicShared => shape.dynamic,
        Special::Rank => index % shape.cluster,
        Special::Ranks => shape.cluster,
        Special::Cluster => id[0] / shape.cluster,
        Special::Clusters => shape.grid[0] / shape.cluster,
        Special::LaneMask(order, equal) => {
            let bits =
                (0..LANES).filter(|other| other.cmp(&lane) == order || equal && *other == lane);
            bits.fold(0, |mask, other| mask | 1 << other)
        }
    };
    match content {
        Content::Const(bits) => bits,
        Content::Special(register) => u64::from(special(register)),
        Content::Variable(variable) => addresses.get(variable as usize).copied().unwrap_or(0),
        Content::DynamicShared => crate::memory::SHARED_BASE + u64::from(shape.dynamic_at),
        Content::Register | Content::Shared | Content::Sink => 0,
    }
}
