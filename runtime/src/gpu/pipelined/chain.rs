//! A chain of passes over files: the first pass reads a file, the last one writes the other file, and each pass takes
//! over the values that the one before stores, through page-locked memory of the host. So several devices advance all
//! values by a pass of each while a file is read and written once.
//!
//! Planes go through a *link* of the chain in the order of their bytes, which are counted on around a periodic first
//! axis. A place of it has a plane from when a pass
//! stores it until the next pass has loaded it, and then the plane that lies as many bytes farther as the link has.
//! How many bytes that takes follows from the operations of the chain, which are listed before.

use crate::gpu::device::DeviceError;
use crate::gpu::queues::Queues;
use memmap2::MmapMut;
use std::ops::Range;
use torre_compiler::pipeline::OpId;

/// Page-locked memory of the host, until it is dropped: no copy uses it then.
pub(super) struct Locked<'a> {
    device: &'a dyn Queues,
    memory: MmapMut,
    /// Where it begins.
    place: *mut u8,
    locked: bool,
}

// SAFETY: the pointer is a plain address; accesses through it are ordered by the users of the memory.
unsafe impl Send for Locked<'_> {}
// SAFETY: as above.
unsafe impl Sync for Locked<'_> {}

/// A link between two passes.
pub(super) struct Link<'a> {
    memory: Locked<'a>,
    /// The parts that the later pass has loaded, in the order of its operations.
    loads: Vec<(Range<i64>, OpId)>,
}

/// The passes that go over the files together.
#[derive(Default)]
pub(super) struct Chain<'a> {
    /// The numbers of these passes.
    pub passes: Range<u64>,
    /// One less than passes, or more.
    links: Vec<Link<'a>>,
    /// Bytes of a link.
    bytes: i64,
    /// Bytes of the array come from its end down.
    down: bool,
    /// The data beside planes, if several devices have them in turns, and where they begin in the array.
    pub beside: Option<(Locked<'a>, usize)>,
}

/// Where bytes of the array lie in a link: bytes of the array, and of the link from where on.
struct Piece {
    range: Range<i64>,
    place: i64,
}

impl<'a> Locked<'a> {
    pub fn new(device: &'a dyn Queues, bytes: u64) -> Result<Locked<'a>, DeviceError> {
        let memory = MmapMut::map_anon(bytes.max(1) as usize);
        let mut memory = memory.map_err(|error| DeviceError::Failed {
            operation: "taking memory for passes over files",
            message: error.to_string(),
        })?;
        let place = memory.as_mut_ptr();
        // SAFETY: the memory stays where it is until it is dropped, which unlocks it before.
        let locked = unsafe { device.lock(place, bytes) }?;
        Ok(Locked {
            device,
            memory,
            place,
            locked,
        })
    }

    pub fn is_locked(&self) -> bool {
        self.locked
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory
    }

    /// Where a byte of it lies.
    pub fn at(&self, byte: usize) -> *mut u8 {
        self.place.wrapping_add(byte)
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.memory.len()
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if self.locked {
            // SAFETY: it was locked, and all copies are over. A failure here cannot be reported.
            let _ = unsafe { self.device.unlock(self.place) };
        }
    }
}

impl<'a> Chain<'a> {
    /// A chain without passes, of towers that move up (1) or down (-1) along the first axis.
    pub fn new(way: i64) -> Chain<'a> {
        Chain {
            down: way > 0,
            ..Chain::default()
        }
    }

    pub fn is_locked(&self) -> bool {
        let links = self.links.iter().all(|link| link.memory.locked);
        links && self.beside.as_ref().is_none_or(|(beside, _)| beside.locked)
    }

    /// Begins with some passes, whose links need `bytes`; no copy is under way.
    pub fn begin(
        &mut self,
        device: &'a dyn Queues,
        passes: Range<u64>,
        bytes: u64,
    ) -> Result<(), DeviceError> {
        if self.bytes < bytes as i64 {
            self.links.clear();
            self.bytes = bytes as i64;
        }
        let links = (passes.end - passes.start).saturating_sub(1) as usize;
        while self.links.len() < links {
            self.links.push(Link {
                memory: Locked::new(device, self.bytes as u64)?,
                loads: Vec::new(),
            });
        }
        self.links.iter_mut().for_each(|link| link.loads.clear());
        self.passes = passes;
        Ok(())
    }

    /// The parts of a range of the array's bytes, as they lie in a link.
    fn pieces(&self, range: Range<i64>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let place = start.rem_euclid(self.bytes);
            let end = range.end.min(start + self.bytes - place);
            pieces.push(Piece {
                range: start..end,
                place,
            });
            start = end;
        }
        pieces
    }

    /// The link from which a pass takes the values that the one before has stored; `None` for the first one.
    fn before(&self, pass: u64) -> Option<usize> {
        let later = pass > self.passes.start && pass < self.passes.end;
        later.then(|| (pass - self.passes.start - 1) as usize)
    }

    /// The link to which a pass gives the values that it stores; `None` for the last one.
    fn after(&self, pass: u64) -> Option<usize> {
        (pass + 1 < self.passes.end).then(|| (pass - self.passes.start) as usize)
    }
}

/// Bytes of the array that go to or from memory of the host.
pub(super) struct Transfer {
    pub memory: *mut u8,
    pub range: Range<i64>,
}

impl Chain<'_> {
    /// Where bytes lie that a pass loads from the one before by an operation; `None` if it reads them from a file.
    pub fn taken(&mut self, pass: u64, id: OpId, range: Range<i64>) -> Option<Vec<Transfer>> {
        let link = self.before(pass)?;
        let pieces = self.pieces(range.clone());
        let link = &mut self.links[link];
        link.loads.push((range, id));
        Some(transfers(link, pieces))
    }

    /// Where a pass puts bytes for the next one, and the operations of that one which have to be over before; `None` if
    /// it writes them to a file.
    pub fn given(&self, pass: u64, range: Range<i64>) -> Option<(Vec<Transfer>, Vec<OpId>)> {
        let link = &self.links[self.after(pass)?];
        // The bytes that lay there before.
        let before = match self.down {
            true => range.start + self.bytes..range.end + self.bytes,
            false => range.start - self.bytes..range.end - self.bytes,
        };
        let met = |own: &Range<i64>| own.start < before.end && before.start < own.end;
        let users = link.loads.iter().filter(|(own, _)| met(own));
        let users = users.map(|(_, id)| *id).collect();
        Some((transfers(link, self.pieces(range)), users))
    }
}

fn transfers(link: &Link<'_>, pieces: Vec<Piece>) -> Vec<Transfer> {
    let transfer = |piece: Piece| Transfer {
        memory: link.memory.at(piece.place as usize),
        range: piece.range,
    };
    pieces.into_iter().map(transfer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A range lies in a link in at most two pieces, bytes that are as far apart as it is long at one place.
    #[test]
    fn ranges_go_around_links() {
        let chain = Chain {
            bytes: 100,
            ..Chain::default()
        };
        let places = |range: Range<i64>| {
            let pieces = chain.pieces(range);
            let places = pieces
                .iter()
                .map(|piece| (piece.range.clone(), piece.place));
            places.collect::<Vec<_>>()
        };
        assert_eq!(places(30..90), [(30..90, 30)]);
        assert_eq!(places(230..290), [(230..290, 30)]);
        assert_eq!(places(180..230), [(180..200, 80), (200..230, 0)]);
        assert_eq!(places(-30..10), [(-30..0, 70), (0..10, 0)]);
        assert_eq!(places(5..5), []);
    }
}
