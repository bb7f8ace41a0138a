//! Shadow memory: the last reads and writes of each piece of memory, and whether the next access comes after.
//!
//! Each piece has its last write and the reads since (Flanagan and Freund, FastTrack, 2009; see [`crate::race`]).
//!
//! Of memory that was not written in the launch, reads are kept as they come; with the first write to a page they
//! are put into its cells.

use std::cell::RefCell;

use crate::alu::lanes;
use crate::cells::{Cell, Cells, EIGHT, Kept, LISTED, Lanes};
use crate::op::{AccessKind, Scope, Strength};
use crate::race::{Actor, Conflict, Crew, Release, Run, Stamp, Views};
use crate::reads::Reads;

/// Pieces of one allocation of a page of the shadow.
const PAGE: usize = 256;

type Page = [Cells; PAGE / EIGHT];

/// The shadow of a buffer or of a block's shared memory.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    /// The pages of memory that was written in the launch, or read too often to keep each read.
    pages: Vec<Option<Box<Page>>>,
    /// The reads of other pages.
    reads: Vec<Vec<Reads>>,
    more: Vec<Vec<Stamp>>,
    /// Numbers of lists that are not in use.
    free: Vec<u32>,
    /// The knowledge that strong writes have published, by piece.
    releases: Vec<Option<Box<[Option<Release>; PAGE]>>>,
}

/// The most pages that a thread keeps for later launches.
const MOST_SPARE: usize = 1 << 12;

/// The most reads that are kept of a page.
const MOST_READS: usize = 512;

thread_local! {
    /// Pages that are not in use: launches are short, and others follow them.
    static SPARE: RefCell<Vec<Box<Page>>> = const { RefCell::new(Vec::new()) };
}

/// Fewer pieces of a lane than these are checked one by one.
const FEW: usize = 3;

/// Pieces that one lane accesses.
fn alone<'a>(pieces: std::ops::Range<usize>, actor: &Actor<'a>) -> (Run, Crew<'a>) {
    let run = Run {
        pieces,
        lane: actor.lane as usize,
        each: u32::BITS - 1,
    };
    let crew = Crew {
        actor: *actor,
        views: Views::One(actor.view),
        floors: actor.view.floors(),
    };
    (run, crew)
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

    /// The last write to a piece.
    #[inline(always)]
    fn written_at(&self, piece: usize) -> Stamp {
        match self.pages.get(piece / PAGE) {
            Some(Some(page)) => page[piece % PAGE / EIGHT].written(piece % EIGHT),
            _ => Stamp::default(),
        }
    }

    fn add_page(&mut self, page: usize) {
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        self.pages[page] = Some(spare_page());
        let Some(reads) = self.reads.get_mut(page) else {
            return;
        };
        for reads in std::mem::take(reads) {
            self.replay(&reads);
        }
    }

    /// Keeps reads in cells. None of them races, as nothing was written.
    fn replay(&mut self, reads: &Reads) {
        let (run, mask, crew) = (reads.run(), reads.mask(), reads.crew());
        if mask == 0 {
            let left = |shadow: &mut Shadow, piece: usize| {
                shadow.read(piece..piece + 1, &crew.actor(run.lane(piece)))
            };
            let _ = self.read_run(run, &crew, Kept::Known, left);
        } else if !self.read_by_all(run.pieces.clone(), &crew, mask, Kept::Known) {
            for lane in lanes(mask) {
                let _ = self.read(run.pieces.clone(), &crew.actor(lane));
            }
        }
    }

    /// Whether nothing was written to the page of a piece, and reads of it may be kept as they are.
    #[inline(always)]
    fn is_blank(&self, piece: usize) -> bool {
        !matches!(self.pages.get(piece / PAGE), Some(Some(_)))
    }

    /// Keeps reads of a page where nothing was written.
    fn keep(&mut self, page: usize, reads: Reads) {
        if page >= self.reads.len() {
            self.reads.resize_with(page + 1, Vec::new);
        }
        self.reads[page].push(reads);
        if self.reads[page].len() >= MOST_READS {
            self.add_page(page);
        }
    }

    /// A read. Strong ones are not kept: a weak write where others read strongly is found by their next read.
    pub(crate) fn read(
        &mut self,
        pieces: std::ops::Range<usize>,
        actor: &Actor,
    ) -> Result<(), Conflict> {
        let mut rest = pieces;
        while let Some(piece) = rest.next() {
            if self.is_blank(piece) {
                let end = (piece / PAGE + 1) * PAGE;
                if actor.strength == Strength::Weak {
                    let run = Run {
                        pieces: piece..(rest.end).min(end),
                        lane: actor.lane as usize,
                        each: u32::BITS - 1,
                    };
                    self.keep(piece / PAGE, Reads::new(run, 0, actor));
                }
                rest.start = end.min(rest.end);
                continue;
            }
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

    /// Weak reads by the lanes of a run; `left` handles the reads that are not kept at once.
    #[inline(always)]
    pub(crate) fn read_run<E>(
        &mut self,
        run: &Run,
        crew: &Crew,
        kept: Kept,
        left: impl FnMut(&mut Shadow, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        self.run(
            run,
            crew,
            AccessKind::Read,
            |cells, lanes| cells.read(lanes, kept),
            left,
        )
    }

    /// Weak writes by the lanes of a run, in the same way.
    #[inline(always)]
    pub(crate) fn write_run<E>(
        &mut self,
        run: &Run,
        crew: &Crew,
        left: impl FnMut(&mut Shadow, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        self.run(
            run,
            crew,
            AccessKind::Write,
            |cells, lanes| cells.write(lanes),
            left,
        )
    }

    #[inline(always)]
    fn run<E>(
        &mut self,
        run: &Run,
        crew: &Crew,
        kind: AccessKind,
        access: impl Fn(&mut Cells, &Lanes) -> u32,
        mut left: impl FnMut(&mut Shadow, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let accessor = crew.accessor();
        let mut first = run.pieces.start / EIGHT * EIGHT;
        while first < run.pieces.end {
            let from = first.max(run.pieces.start);
            if kind == AccessKind::Read
                && self.is_blank(from)
                && let Views::One(_) = crew.views
            {
                let end = (from / PAGE + 1) * PAGE;
                let part = run.from(from).before(end);
                self.keep(from / PAGE, Reads::new(part, 0, &crew.actor));
                first = end;
                continue;
            }
            let lanes = run.lanes(first, accessor);
            let mut rest = access(self.cells(first), &lanes);
            while rest != 0 {
                left(self, first + rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
            }
            first += EIGHT;
        }
        Ok(())
    }

    /// A weak read by one lane.
    pub(crate) fn read_by_one(
        &mut self,
        pieces: std::ops::Range<usize>,
        actor: &Actor,
    ) -> Result<(), Conflict> {
        if pieces.len() < FEW {
            return self.read(pieces, actor);
        }
        let (run, crew) = alone(pieces, actor);
        self.read_run(&run, &crew, Kept::Known, |shadow, piece| {
            shadow.read(piece..piece + 1, actor)
        })
    }

    /// A weak write by one lane.
    pub(crate) fn write_by_one(
        &mut self,
        pieces: std::ops::Range<usize>,
        actor: &Actor,
    ) -> Result<(), Conflict> {
        if pieces.len() < FEW {
            return self.write(pieces, actor);
        }
        let (run, crew) = alone(pieces, actor);
        self.write_run(&run, &crew, |shadow, piece| {
            shadow.write(piece..piece + 1, actor)
        })
    }

    /// Whether all accesses to pieces come before a weak write by one lane.
    pub(crate) fn check_by_one(
        &mut self,
        pieces: std::ops::Range<usize>,
        actor: &Actor,
    ) -> Result<(), Conflict> {
        let (run, crew) = alone(pieces, actor);
        let check = |cells: &mut Cells, lanes: &Lanes| cells.check(lanes);
        self.run(&run, &crew, AccessKind::Write, check, |shadow, piece| {
            shadow.check_write(piece, actor)
        })
    }

    /// A weak read of the same pieces by all lanes of a mask, if it is known to be in order at once; whether it was
    /// kept.
    #[inline(always)]
    pub(crate) fn read_by_all(
        &mut self,
        pieces: std::ops::Range<usize>,
        crew: &Crew,
        mask: u32,
        kept: Kept,
    ) -> bool {
        if self.is_blank(pieces.start)
            && pieces.start / PAGE == (pieces.end - 1) / PAGE
            && let Views::One(_) = crew.views
        {
            let run = Run {
                pieces: pieces.clone(),
                lane: crew.actor.lane as usize,
                each: 0,
            };
            self.keep(pieces.start / PAGE, Reads::new(run, mask, &crew.actor));
            return true;
        }
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
            let follows = write.time == 0 || kept == Kept::Known && crew.knows(&write);
            let alone = more & !LISTED == 0 && crew.knows(&read);
            if !follows || !(same || alone) {
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
    pub(crate) fn may_read(&self, pieces: std::ops::Range<usize>, crew: &Crew) -> bool {
        for piece in pieces {
            let before = self.written_at(piece);
            if before.strength() == Strength::Weak && !crew.knows(&before) {
                return false;
            }
        }
        true
    }

    /// A write; earlier accesses are forgotten, for an access that comes after this one comes after them.
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
        &self,
        mut pieces: std::ops::Range<usize>,
        actor: &Actor,
        agents: u32,
    ) -> Result<(), Conflict> {
        let hidden = pieces.find_map(|piece| {
            let before = self.written_at(piece);
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
    pub(crate) fn written(&self, mut pieces: std::ops::Range<usize>) -> Option<Stamp> {
        pieces.find_map(|piece| {
            let write = self.written_at(piece);
            (write.time > 0).then_some(write)
        })
    }

    /// The knowledge that the last write to a piece has published, if it was strong.
    pub(crate) fn release(&self, piece: usize) -> Option<&Release> {
        let page = self.releases.get(piece / PAGE)?.as_ref()?;
        let release = page[piece % PAGE].as_ref()?;
        match self.written_at(piece).strength() {
            Strength::Weak => None,
            Strength::Strong => Some(release),
        }
    }

    /// Adds the knowledge that a strong update of a piece publishes to the knowledge that was published there.
    pub(crate) fn add_release(&mut self, piece: usize, release: Option<Release>) {
        let all = match (self.release(piece).cloned(), release) {
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

    /// Sets the knowledge that a strong write to a piece publishes.
    pub(crate) fn set_release(&mut self, piece: usize, release: Option<Release>) {
        let page = piece / PAGE;
        if page >= self.releases.len() {
            if release.is_none() {
                return;
            }
            self.releases.resize_with(page + 1, || None);
        }
        let places = self.releases[page].get_or_insert_with(|| Box::new([const { None }; PAGE]));
        places[piece % PAGE] = release;
    }
}

fn same_time(read: &Stamp, stamp: &Stamp) -> bool {
    read.time == stamp.time && read.block == stamp.block && read.warp() == stamp.warp()
}
