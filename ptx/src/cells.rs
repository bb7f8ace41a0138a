//! Cells of shadow memory, eight together: lanes that access neighbouring places are checked at once.
//!
//! The fields of eight cells lie side by side, so that the compiler turns the checks into vector instructions. The
//! remaining cells are checked one by one ([`crate::race`]).

use crate::clock::{Floors, MOST_WARPS};
use crate::race::Stamp;

/// Cells that are checked at once.
pub(crate) const EIGHT: usize = 8;

/// One number of each of eight cells; truths are 0 or all ones.
pub(crate) type Eight = [u32; EIGHT];

#[inline(always)]
pub(crate) fn each(of: impl Fn(usize) -> u32) -> Eight {
    let mut all = [0; EIGHT];
    for (index, one) in all.iter_mut().enumerate() {
        *one = of(index);
    }
    all
}

/// Conditions as words of which all bits are alike.
pub(crate) trait Truth {
    fn mask(self) -> u32;
}

impl Truth for bool {
    #[inline(always)]
    fn mask(self) -> u32 {
        u32::from(self).wrapping_neg()
    }
}

/// Which weak reads are kept at once, as they are in order with all writes before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Reads that are known to come after the last writes.
    Known,
    /// Reads of memory that was never written.
    Unwritten,
}

/// Eight stamps.
#[derive(Clone, Copy, Debug, Default)]
struct Stamps {
    time: Eight,
    block: Eight,
    lanes: Eight,
    packed: Eight,
}

impl Stamps {
    #[inline(always)]
    fn get(&self, index: usize) -> Stamp {
        Stamp {
            block: self.block[index],
            time: self.time[index],
            lanes: self.lanes[index],
            packed: self.packed[index],
        }
    }

    #[inline(always)]
    fn set(&mut self, index: usize, stamp: Stamp) {
        self.block[index] = stamp.block;
        self.time[index] = stamp.time;
        self.lanes[index] = stamp.lanes;
        self.packed[index] = stamp.packed;
    }

    /// Which accesses are known to come before, or none: all threads of their warp are known up to then, or it was the
    /// same thread.
    #[inline(always)]
    fn known(&self, lanes: &Lanes) -> Eight {
        let Accessor { stamp, floors } = lanes.accessor;
        each(|i| {
            let warp = self.packed[i] & Stamp::WARP;
            let floor = floors[(warp >> Stamp::WARP_AT) as usize % MOST_WARPS];
            let early = (self.time[i] <= floor).mask();
            let own = (warp == stamp.packed & Stamp::WARP).mask()
                & (self.lanes[i] & !lanes.bits[i] == 0).mask();
            (self.time[i] == 0).mask() | (self.block[i] == stamp.block).mask() & (early | own)
        })
    }

    /// Which accesses are of this warp at this time.
    #[inline(always)]
    fn same(&self, stamp: &Stamp) -> Eight {
        each(|i| {
            (self.time[i] == stamp.time).mask()
                & (self.block[i] == stamp.block).mask()
                & ((self.packed[i] ^ stamp.packed) & Stamp::WARP == 0).mask()
        })
    }
}

/// The lanes that access cells, and the knowledge that all of them have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accessor<'a> {
    /// The stamp of the access, but for the lanes.
    pub(crate) stamp: Stamp,
    /// The time up to which all of them know all threads of each warp of their block.
    pub(crate) floors: &'a Floors,
}

/// The lanes that access eight cells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes<'a> {
    pub(crate) accessor: Accessor<'a>,
    /// The bit of each cell's lane.
    pub(crate) bits: Eight,
    /// Which cells are accessed.
    pub(crate) active: Eight,
}

/// The state of eight neighbouring pieces of memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cells {
    write: Stamps,
    read: Stamps,
    /// The lists of further reads; 0 for none. With [`LISTED`], there was a list before the last write, and the read
    /// stands where the first one of the list would.
    more: Eight,
}

/// Beside the number of a list of reads.
pub(crate) const LISTED: u32 = 1 << 31;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) write: Stamp,
    pub(crate) read: Stamp,
    pub(crate) more: u32,
}

impl Cells {
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> Cell {
        Cell {
            write: self.write.get(index),
            read: self.read.get(index),
            more: self.more[index],
        }
    }

    /// Forgets all accesses.
    pub(crate) fn clear(&mut self) {
        (self.write.time, self.read.time) = ([0; EIGHT], [0; EIGHT]);
        self.more = [0; EIGHT];
    }

    #[inline(always)]
    pub(crate) fn written(&self, index: usize) -> Stamp {
        self.write.get(index)
    }

    #[inline(always)]
    pub(crate) fn set_read(&mut self, index: usize, stamp: Stamp) {
        self.read.set(index, stamp);
    }

    pub(crate) fn set_more(&mut self, index: usize, list: u32) {
        self.more[index] = list;
    }

    /// A write; reads before it are forgotten.
    #[inline(always)]
    pub(crate) fn set_write(&mut self, index: usize, stamp: Stamp) {
        self.write.set(index, stamp);
        self.read.time[index] = 0;
    }

    /// Keeps weak reads of one kind; which ones are left.
    #[inline(always)]
    pub(crate) fn read(&mut self, lanes: &Lanes, kept: Kept) -> u32 {
        let stamp = &lanes.accessor.stamp;
        let mut follows = self.write.known(lanes);
        if kept == Kept::Unwritten {
            follows = each(|i| (self.write.time[i] == 0).mask());
        }
        let same = self.read.same(stamp);
        let known = self.read.known(lanes);
        let done = each(|i| {
            let alone = (self.more[i] & !LISTED == 0).mask() & known[i];
            lanes.active[i] & follows[i] & (same[i] | alone)
        });
        let (all, read) = (lanes.bits, &mut self.read);
        let pick = |done: u32, new: u32, old: u32| new & done | old & !done;
        read.lanes = each(|i| pick(done[i], all[i] | read.lanes[i] & same[i], read.lanes[i]));
        read.time = each(|i| pick(done[i], stamp.time, read.time[i]));
        read.block = each(|i| pick(done[i], stamp.block, read.block[i]));
        // Reads in lists keep the instruction that was first.
        let kept = each(|i| same[i] & (self.more[i] & LISTED != 0).mask());
        read.packed = each(|i| pick(done[i] & !kept[i], stamp.packed, read.packed[i]));
        left(&each(|i| lanes.active[i] & !done[i]))
    }

    /// Which cells it is not known of that the accesses before come before writes.
    #[inline(always)]
    fn unknown(&self, lanes: &Lanes) -> Eight {
        let (written, read) = (self.write.known(lanes), self.read.known(lanes));
        let known = each(|i| written[i] & read[i] & (self.more[i] & !LISTED == 0).mask());
        each(|i| lanes.active[i] & !known[i])
    }

    /// Checks weak writes; which ones are left.
    #[inline(always)]
    pub(crate) fn check(&self, lanes: &Lanes) -> u32 {
        left(&self.unknown(lanes))
    }

    /// Keeps weak writes that are known to come after the accesses before; which ones are left.
    #[inline(always)]
    pub(crate) fn write(&mut self, lanes: &Lanes) -> u32 {
        let stamp = &lanes.accessor.stamp;
        let unknown = self.unknown(lanes);
        let done = each(|i| lanes.active[i] & !unknown[i]);
        let pick = |done: u32, new: u32, old: u32| new & done | old & !done;
        let write = &mut self.write;
        write.lanes = each(|i| pick(done[i], lanes.bits[i], write.lanes[i]));
        write.time = each(|i| pick(done[i], stamp.time, write.time[i]));
        write.block = each(|i| pick(done[i], stamp.block, write.block[i]));
        write.packed = each(|i| pick(done[i], stamp.packed, write.packed[i]));
        self.read.time = each(|i| self.read.time[i] & !done[i]);
        left(&unknown)
    }
}

/// A bit for each truth.
#[inline(always)]
fn left(truths: &Eight) -> u32 {
    if truths.iter().fold(0, |all, truth| all | truth) == 0 {
        return 0;
    }
    let truths = truths.iter().enumerate();
    truths.fold(0, |bits, (index, truth)| bits | (truth & 1) << index)
}
