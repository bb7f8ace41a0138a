//! Shadow memory: who read and wrote each piece of memory last, and whether the next access comes after.
//!
//! Each piece has its last write and the reads since (Flanagan and Freund, FastTrack, 2009). An access is a race if
//! the thread does not know of an access before it and one of the two writes; accesses that are both strong (atomic,
//! relaxed, acquire, release or volatile) never race with each other.

use std::collections::BTreeMap;

use crate::clock::{Published, Sight, View};
use crate::op::{AccessKind, Scope, Strength};

/// An access: by which lanes of a warp, at what time of the warp, by which instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamp {
    pub(crate) block: u32,
    /// 0 for no access.
    pub(crate) time: u32,
    pub(crate) lanes: u32,
    /// The instruction in 24 bits, the warp in 7, whether it is strong in one.
    packed: u32,
}

/// The most instructions that a kernel may have.
pub(crate) const MOST_INSTRUCTIONS: usize = 1 << 24;

impl Stamp {
    pub(crate) fn pc(&self) -> u32 {
        self.packed & 0xff_ffff
    }

    pub(crate) fn warp(&self) -> u32 {
        self.packed >> 24 & 0x7f
    }

    fn strength(&self) -> Strength {
        match self.packed >> 31 {
            0 => Strength::Weak,
            _ => Strength::Strong,
        }
    }
}

/// Who stands for the copies that a barrier object counts: a lane of the warp after a block's last one, and its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agent {
    pub(crate) lane: u32,
    pub(crate) time: u32,
}

/// Who makes an access, and what it knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor<'a> {
    pub(crate) block: u32,
    pub(crate) warp: u32,
    pub(crate) lane: u32,
    pub(crate) time: u32,
    pub(crate) pc: u32,
    pub(crate) strength: Strength,
    /// It goes to shared memory.
    pub(crate) near: bool,
    pub(crate) view: &'a View,
    /// The time up to which it knows all threads of its block, of whatever memory.
    pub(crate) floor: u32,
    /// The warp of copies.
    pub(crate) agents: u32,
}

impl Actor<'_> {
    fn stamp(&self) -> Stamp {
        let packed = self.pc | self.warp << 24 | u32::from(self.strength == Strength::Strong) << 31;
        Stamp {
            block: self.block,
            time: self.time,
            lanes: 1 << self.lane,
            packed,
        }
    }

    /// Whether an access is known to come before.
    fn knows(&self, stamp: &Stamp) -> bool {
        let sight = if self.near {
            Sight::Shared
        } else {
            Sight::Global
        };
        self.knows_by(stamp, sight)
    }

    /// Whether a read is known to be over: whatever came after it saw its value, so that what orders shared memory is
    /// enough.
    fn knows_over(&self, stamp: &Stamp) -> bool {
        self.knows_by(stamp, Sight::Shared)
    }

    #[inline(always)]
    fn knows_by(&self, stamp: &Stamp, sight: Sight) -> bool {
        let early = stamp.time <= self.floor && stamp.block == self.block;
        if stamp.time == 0 || early && stamp.warp() != self.agents {
            return true;
        }
        self.knows_lanes(stamp, sight)
    }

    fn knows_lanes(&self, stamp: &Stamp, sight: Sight) -> bool {
        let mut lanes = stamp.lanes;
        if stamp.block == self.block && stamp.warp() == self.warp {
            lanes &= !(1 << self.lane);
            if lanes == 0 {
                return true;
            }
        }
        let times = self.view.times(self.block, stamp.block, sight);
        times.is_some_and(|times| times.covers(stamp.warp(), lanes, stamp.time))
    }

    /// Whether a write of a thread is visible to copies in bulk that this thread issues.
    fn shows(&self, stamp: &Stamp, agents: u32) -> bool {
        if stamp.time == 0 || stamp.warp() == agents {
            return true;
        }
        let times = self.view.times(self.block, stamp.block, Sight::Bulk);
        times.is_some_and(|times| times.covers(stamp.warp(), stamp.lanes, stamp.time))
    }

    fn follows(&self, stamp: &Stamp) -> bool {
        let strong = |strength| strength == Strength::Strong;
        self.knows(stamp) || strong(self.strength) && strong(stamp.strength())
    }
}

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conflict {
    pub(crate) before: Stamp,
    pub(crate) kind: AccessKind,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    write: Stamp,
    read: Stamp,
    /// The list of further reads; 0 for none.
    more: u32,
}

/// What strong writes to a place have published.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    pub(crate) published: Published,
    pub(crate) scope: Scope,
}

/// Pieces of one allocation of a page of the shadow.
const PAGE: usize = 256;

/// The shadow of a buffer or of a block's shared memory.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    pages: Vec<Option<Box<[Cell]>>>,
    more: Vec<Vec<Stamp>>,
    /// In boxes, as places come and go all the time.
    releases: BTreeMap<usize, Box<Release>>,
}

impl Shadow {
    fn cell(&mut self, piece: usize) -> &mut Cell {
        let page = piece / PAGE;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(|| vec![Cell::default(); PAGE].into());
        &mut page[piece % PAGE]
    }

    /// A read. Strong ones are not kept: who writes weakly where others read strongly is found by their next read.
    pub(crate) fn read(
        &mut self,
        pieces: std::ops::Range<usize>,
        actor: &Actor,
    ) -> Result<(), Conflict> {
        for piece in pieces {
            let cell = self.cell(piece);
            let before = cell.write;
            if !actor.follows(&before) {
                return Err(Conflict {
                    before,
                    kind: AccessKind::Write,
                });
            }
            if actor.strength == Strength::Strong {
                continue;
            }
            let (stamp, read) = (actor.stamp(), &mut cell.read);
            if same_time(read, &stamp) {
                read.lanes |= stamp.lanes;
                read.packed = stamp.packed;
            } else if cell.more == 0 && actor.knows(read) {
                *read = stamp;
            } else {
                self.read_more(piece, actor);
            }
        }
        Ok(())
    }

    fn read_more(&mut self, piece: usize, actor: &Actor) {
        let next = self.more.len() as u32 + 1;
        let cell = self.cell(piece);
        if cell.more == 0 {
            cell.more = next;
            self.more.push(Vec::new());
        }
        let more = self.cell(piece).more;
        let (list, stamp) = (&mut self.more[more as usize - 1], actor.stamp());
        match list.iter_mut().rev().find(|read| same_time(read, &stamp)) {
            Some(read) => read.lanes |= stamp.lanes,
            None => match list.iter_mut().find(|read| actor.knows(read)) {
                Some(read) => *read = stamp,
                None => list.push(stamp),
            },
        }
    }

    /// A write; what was before is forgotten, for who comes after this comes after that.
    pub(crate) fn write(
        &mut self,
        pieces: std::ops::Range<usize>,
        actor: &Actor,
    ) -> Result<(), Conflict> {
        for piece in pieces {
            self.check_write(piece, actor)?;
            let cell = self.cell(piece);
            (cell.write, cell.read.time) = (actor.stamp(), 0);
            let more = cell.more;
            if more != 0 {
                self.more[more as usize - 1].clear();
            }
        }
        Ok(())
    }

    /// Whether all accesses to a piece come before a write.
    pub(crate) fn check_write(&mut self, piece: usize, actor: &Actor) -> Result<(), Conflict> {
        let Cell { write, read, more } = *self.cell(piece);
        if !actor.follows(&write) {
            return Err(Conflict {
                before: write,
                kind: AccessKind::Write,
            });
        }
        if !actor.knows_over(&read) {
            return Err(Conflict {
                before: read,
                kind: AccessKind::Read,
            });
        }
        let list = if more == 0 {
            &[][..]
        } else {
            &self.more[more as usize - 1]
        };
        match list.iter().find(|read| !actor.knows_over(read)) {
            Some(read) => Err(Conflict {
                before: *read,
                kind: AccessKind::Read,
            }),
            None => Ok(()),
        }
    }

    /// Whether the last writes are visible to a copy in bulk; the warp of number `agents` stands for copies themselves.
    pub(crate) fn check_proxy(
        &mut self,
        mut pieces: std::ops::Range<usize>,
        actor: &Actor,
        agents: u32,
    ) -> Result<(), Conflict> {
        let hidden = pieces.find_map(|piece| {
            let before = self.cell(piece).write;
            (!actor.shows(&before, agents)).then_some(before)
        });
        hidden.map_or(Ok(()), |before| {
            Err(Conflict {
                before,
                kind: AccessKind::Write,
            })
        })
    }

    /// The last write of the launch to any of these pieces.
    pub(crate) fn written(&mut self, mut pieces: std::ops::Range<usize>) -> Option<Stamp> {
        pieces.find_map(|piece| {
            let write = self.cell(piece).write;
            (write.time > 0).then_some(write)
        })
    }

    /// What the last write to a piece has published, if it was strong.
    pub(crate) fn release(&mut self, piece: usize) -> Option<Release> {
        if self.releases.is_empty() || self.cell(piece).write.strength() == Strength::Weak {
            return None;
        }
        self.releases.get(&piece).map(|release| (**release).clone())
    }

    /// Adds what a strong update of a piece publishes to what was published there.
    pub(crate) fn add_release(&mut self, piece: usize, release: Option<Release>) {
        let all = match (self.release(piece), release) {
            (Some(old), Some(new)) => {
                let scope = if old.scope == Scope::Block {
                    old.scope
                } else {
                    new.scope
                };
                Some(Release {
                    published: new.published.join(&old.published),
                    scope,
                })
            }
            (old, new) => new.or(old),
        };
        self.set_release(piece, all);
    }

    /// Sets what a strong write to a piece publishes.
    pub(crate) fn set_release(&mut self, piece: usize, release: Option<Release>) {
        match release {
            Some(release) => match self.releases.get_mut(&piece) {
                Some(old) => **old = release,
                None => drop(self.releases.insert(piece, Box::new(release))),
            },
            None => drop(self.releases.remove(&piece)),
        }
    }
}

fn same_time(read: &Stamp, stamp: &Stamp) -> bool {
    read.time == stamp.time && read.block == stamp.block && read.warp() == stamp.warp()
}
