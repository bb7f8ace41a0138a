//! Shadow memory: who read and wrote each piece of memory last, and whether the next access comes after.
//!
//! Each piece has its last write and the reads since (Flanagan and Freund, FastTrack, 2009). An access is a race if
//! the thread does not know of an access before it and one of the two writes; accesses that are both strong (atomic,
//! relaxed, acquire, release or volatile) never race with each other.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::cells::{Cell, Cells, EIGHT, LISTED, Lanes, Who, each as eight, truth};
use crate::clock::{Floors, MOST_WARPS, Published, Sight, View};
use crate::op::{AccessKind, Scope, Strength};

/// An access: by which lanes of a warp, at what time of the warp, by which instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamp {
    pub(crate) block: u32,
    /// 0 for no access.
    pub(crate) time: u32,
    pub(crate) lanes: u32,
    /// The instruction in 24 bits, the warp in 7, whether it is strong in one.
    pub(crate) packed: u32,
}

/// The most instructions that a kernel may have.
pub(crate) const MOST_INSTRUCTIONS: usize = 1 << 24;

impl Stamp {
    /// Where the warp lies among the packed bits.
    pub(crate) const WARP_AT: u32 = 24;
    pub(crate) const WARP: u32 = 0x7f << Stamp::WARP_AT;

    pub(crate) fn pc(&self) -> u32 {
        self.packed & 0xff_ffff
    }

    pub(crate) fn warp(&self) -> u32 {
        (self.packed & Stamp::WARP) >> Stamp::WARP_AT
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
        let packed = self.pc
            | self.warp << Stamp::WARP_AT
            | u32::from(self.strength == Strength::Strong) << 31;
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
        strong(self.strength) && strong(stamp.strength()) || self.knows(stamp)
    }
}

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conflict {
    pub(crate) before: Stamp,
    pub(crate) kind: AccessKind,
}

/// Lanes of a warp that access memory by one instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crew<'a> {
    /// One of them.
    pub(crate) actor: Actor<'a>,
    pub(crate) views: &'a [View],
    /// The least of what all of them know of each warp of their block.
    pub(crate) floors: &'a Floors,
}

impl<'a> Crew<'a> {
    pub(crate) fn actor(&self, lane: usize) -> Actor<'a> {
        let view = &self.views[lane];
        Actor {
            lane: lane as u32,
            view,
            floor: view.floor(),
            ..self.actor
        }
    }

    #[inline(always)]
    fn who(&self) -> Who<'a> {
        Who {
            stamp: self.actor.stamp(),
            floors: self.floors,
        }
    }

    /// Whether all of them know an access that was not their own.
    #[inline(always)]
    fn knows(&self, before: &Stamp) -> bool {
        let early = before.time <= self.floors[before.warp() as usize % MOST_WARPS];
        before.time == 0 || early && before.block == self.actor.block
    }
}

/// Pieces that lanes access one after the other, each the same power of two of them.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) pieces: std::ops::Range<usize>,
    pub(crate) lane: usize,
    /// Pieces of a lane, as a power of two.
    pub(crate) each: u32,
}

impl Run {
    /// The lane that accesses a piece.
    #[inline(always)]
    pub(crate) fn lane(&self, piece: usize) -> usize {
        self.lane + (piece.wrapping_sub(self.pieces.start) >> self.each)
    }

    /// The part of it in the eight cells from the one of `first` on.
    #[inline(always)]
    fn lanes<'a>(&self, first: usize, who: Who<'a>) -> Lanes<'a> {
        let (from, to) = (self.pieces.start, self.pieces.end);
        let (from, to) = (
            from.saturating_sub(first) as u32,
            (to - first).min(EIGHT) as u32,
        );
        let ahead = (first as u32).wrapping_sub(self.pieces.start as u32);
        let (lane, each) = (self.lane as u32, self.each);
        Lanes {
            who,
            bits: eight(|i| 1 << (lane.wrapping_add(ahead.wrapping_add(i as u32) >> each) & 31)),
            active: eight(|i| truth(i as u32 >= from) & truth((i as u32) < to)),
        }
    }
}

/// What strong writes to a place have published.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    pub(crate) published: Published,
    pub(crate) scope: Scope,
}

/// Pieces of one allocation of a page of the shadow.
const PAGE: usize = 256;

type Page = [Cells; PAGE / EIGHT];

/// The shadow of a buffer or of a block's shared memory.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    pages: Vec<Option<Box<Page>>>,
    more: Vec<Vec<Stamp>>,
    /// Numbers of lists that are not in use.
    free: Vec<u32>,
    /// In boxes, as places come and go all the time.
    releases: BTreeMap<usize, Box<Release>>,
}

/// The most pages that a thread keeps for later launches.
const MOST_SPARE: usize = 1 << 12;

thread_local! {
    /// Pages that are not in use: launches are short, and others follow them.
    static SPARE: RefCell<Vec<Box<Page>>> = const { RefCell::new(Vec::new()) };
}

#[cold]
fn spare_page() -> Box<Page> {
    let spare = SPARE.with_borrow_mut(Vec::pop);
    match spare {
        Some(mut page) => {
            page.iter_mut().for_each(Cells::clear);
            page
        }
        None => Box::new([Cells::default(); PAGE / EIGHT]),
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        if self.pages.is_empty() {
            return;
        }
        // A thread that ends keeps nothing.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            let free = MOST_SPARE.saturating_sub(spare.len());
            spare.extend(self.pages.drain(..).flatten().take(free));
        });
    }
}

impl Shadow {
    /// The eight cells of which a piece has one.
    #[inline(always)]
    fn cells(&mut self, piece: usize) -> &mut Cells {
        let page = piece / PAGE;
        if !matches!(self.pages.get(page), Some(Some(_))) {
            self.add_page(page);
        }
        match &mut self.pages[page] {
            Some(page) => &mut page[piece % PAGE / EIGHT],
            None => unreachable!("the page was added"),
        }
    }

    fn add_page(&mut self, page: usize) {
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        self.pages[page] = Some(spare_page());
    }

    /// A read. Strong ones are not kept: who writes weakly where others read strongly is found by their next read.
    pub(crate) fn read(
        &mut self,
        pieces: std::ops::Range<usize>,
        actor: &Actor,
    ) -> Result<(), Conflict> {
        for piece in pieces {
            let (cells, index) = (self.cells(piece), piece % EIGHT);
            let Cell {
                write: before,
                mut read,
                more,
            } = cells.get(index);
            if !actor.follows(&before) {
                return Err(Conflict {
                    before,
                    kind: AccessKind::Write,
                });
            }
            if actor.strength == Strength::Strong {
                continue;
            }
            let stamp = actor.stamp();
            if same_time(&read, &stamp) {
                read.lanes |= stamp.lanes;
                if more & LISTED == 0 {
                    read.packed = stamp.packed;
                }
                cells.set_read(index, read);
            } else if more & !LISTED == 0 && actor.knows(&read) {
                cells.set_read(index, stamp);
            } else {
                self.read_more(piece, actor);
            }
        }
        Ok(())
    }

    fn read_more(&mut self, piece: usize, actor: &Actor) {
        let Cell { read, mut more, .. } = self.cells(piece).get(piece % EIGHT);
        if more & !LISTED == 0 {
            let list = self.free.pop().unwrap_or_else(|| {
                self.more.push(Vec::new());
                self.more.len() as u32
            });
            more |= list;
            self.cells(piece).set_more(piece % EIGHT, more);
        }
        let index = (more & !LISTED) as usize - 1;
        let (list, stamp) = (&mut self.more[index], actor.stamp());
        match list.iter_mut().rev().find(|read| same_time(read, &stamp)) {
            Some(read) => read.lanes |= stamp.lanes,
            None if more & LISTED != 0 && actor.knows(&read) => {
                self.cells(piece).set_read(piece % EIGHT, stamp);
            }
            None => match list.iter_mut().find(|read| actor.knows(read)) {
                Some(read) => *read = stamp,
                None => list.push(stamp),
            },
        }
    }

    /// Weak reads by the lanes of a run; `left` does those that are not known to be in order at once. With `unwritten`,
    /// only those of what nobody has written are.
    #[inline(always)]
    pub(crate) fn read_run<E>(
        &mut self,
        run: &Run,
        crew: &Crew,
        unwritten: bool,
        left: impl FnMut(&mut Shadow, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        self.run(run, crew, |cells, lanes| cells.read(lanes, unwritten), left)
    }

    /// Weak writes by the lanes of a run, in the same way.
    #[inline(always)]
    pub(crate) fn write_run<E>(
        &mut self,
        run: &Run,
        crew: &Crew,
        left: impl FnMut(&mut Shadow, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        self.run(run, crew, |cells, lanes| cells.write(lanes), left)
    }

    #[inline(always)]
    fn run<E>(
        &mut self,
        run: &Run,
        crew: &Crew,
        access: impl Fn(&mut Cells, &Lanes) -> u32,
        mut left: impl FnMut(&mut Shadow, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let who = crew.who();
        let mut first = run.pieces.start / EIGHT * EIGHT;
        while first < run.pieces.end {
            let lanes = run.lanes(first, who);
            let mut rest = access(self.cells(first), &lanes);
            while rest != 0 {
                left(self, first + rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
            }
            first += EIGHT;
        }
        Ok(())
    }

    /// A weak read of the same pieces by all lanes of a mask, if it is known to be in order at once; whether it was
    /// kept.
    #[inline(always)]
    pub(crate) fn read_by_all(
        &mut self,
        pieces: std::ops::Range<usize>,
        crew: &Crew,
        mask: u32,
    ) -> bool {
        let stamp = Stamp {
            lanes: mask,
            ..crew.actor.stamp()
        };
        for piece in pieces {
            let (cells, index) = (self.cells(piece), piece % EIGHT);
            let Cell {
                write,
                mut read,
                more,
            } = cells.get(index);
            let same = same_time(&read, &stamp);
            if !crew.knows(&write) || !same && !(more & !LISTED == 0 && crew.knows(&read)) {
                return false;
            }
            read.lanes = if same { read.lanes | mask } else { mask };
            let packed = match same && more & LISTED != 0 {
                true => read.packed,
                false => stamp.packed,
            };
            let lanes = read.lanes;
            let read = Stamp {
                lanes,
                packed,
                ..stamp
            };
            cells.set_read(index, read);
        }
        true
    }

    /// Whether all lanes of a crew may read pieces strongly.
    #[inline(always)]
    pub(crate) fn may_read(&mut self, mut pieces: std::ops::Range<usize>, crew: &Crew) -> bool {
        pieces.all(|piece| {
            let before = self.cells(piece).written(piece % EIGHT);
            before.strength() == Strength::Strong || crew.knows(&before)
        })
    }

    /// A write; what was before is forgotten, for who comes after this comes after that.
    pub(crate) fn write(
        &mut self,
        pieces: std::ops::Range<usize>,
        actor: &Actor,
    ) -> Result<(), Conflict> {
        for piece in pieces {
            self.check_write(piece, actor)?;
            let cells = self.cells(piece);
            cells.set_write(piece % EIGHT, actor.stamp());
            let more = cells.get(piece % EIGHT).more;
            if more & !LISTED != 0 {
                cells.set_more(piece % EIGHT, LISTED);
                self.more[(more & !LISTED) as usize - 1].clear();
                self.free.push(more & !LISTED);
            }
        }
        Ok(())
    }

    /// Whether all accesses to a piece come before a write.
    pub(crate) fn check_write(&mut self, piece: usize, actor: &Actor) -> Result<(), Conflict> {
        let Cell { write, read, more } = self.cells(piece).get(piece % EIGHT);
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
        let list = match more & !LISTED {
            0 => &[][..],
            list => &self.more[list as usize - 1],
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
            let before = self.cells(piece).written(piece % EIGHT);
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
            let write = self.cells(piece).written(piece % EIGHT);
            (write.time > 0).then_some(write)
        })
    }

    /// What the last write to a piece has published, if it was strong.
    pub(crate) fn release(&mut self, piece: usize) -> Option<Release> {
        if self.releases.is_empty()
            || self.cells(piece).written(piece % EIGHT).strength() == Strength::Weak
        {
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
