//! Which cells of a patch other threads read, and where they find them.

use super::shape::{Read, Shape};
use std::collections::BTreeMap;

/// Where a thread finds a value of a cell of the tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The row, as the layout counts them.
    pub row: usize,
    /// Threads along the axes from the thread to the one whose patch has the cell.
    pub thread: [i64; 3],
    /// The cell in that patch.
    pub cell: [i64; 3],
}

impl Place {
    /// The value that a cell of the thread's own patch reads.
    pub fn of(shape: &Shape, cell: [i64; 3], read: &Read) -> Place {
        let at = [0, 1, 2].map(|n| cell[n] + read.offset[n]);
        let patch = shape.patch;
        Place {
            row: read.row,
            thread: [0, 1, 2].map(|n| at[n].div_euclid(patch[n])),
            cell: [0, 1, 2].map(|n| at[n].rem_euclid(patch[n])),
        }
    }

    /// Whether another row of threads has the cell.
    pub fn is_elsewhere(&self) -> bool {
        self.thread[..2] != [0, 0]
    }
}

/// The cells that threads publish: the cells of each row that rows of threads read of each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    numbers: BTreeMap<(usize, [i64; 3]), u32>,
    /// Rows of threads from a thread to the rows whose slots it reads.
    pub others: Vec<i64>,
}

impl Slots {
    pub(super) fn new<'a>(shape: &Shape, reads: impl Iterator<Item = &'a Read>) -> Slots {
        let mut slots = Slots::default();
        if shape.rows() == 1 {
            return slots;
        }
        for read in reads {
            for cell in shape.cells() {
                let place = Place::of(shape, cell, read);
                if place.is_elsewhere() {
                    slots.numbers.insert((place.row, place.cell), 0);
                    slots.others.push(shape.rows_to(place.thread));
                }
            }
        }
        for (number, slot) in slots.numbers.values_mut().enumerate() {
            *slot = number as u32;
        }
        slots.others.sort_unstable();
        slots.others.dedup();
        slots
    }

    /// The slot of a cell of a row; `None` if no other row of threads reads it.
    pub fn of(&self, row: usize, cell: [i64; 3]) -> Option<u32> {
        self.numbers.get(&(row, cell)).copied()
    }

    /// The cells of a row that are published, with their slots.
    pub fn of_row(&self, row: usize) -> impl Iterator<Item = ([i64; 3], u32)> + '_ {
        let all = self.numbers.iter().filter(move |((r, _), _)| *r == row);
        all.map(|((_, cell), slot)| (*cell, *slot))
    }

    pub fn count(&self) -> usize {
        self.numbers.len()
    }

    /// Bytes of shared memory.
    pub fn bytes(&self, shape: &Shape, element: usize) -> u64 {
        (self.count() * element) as u64 * shape.all_threads() as u64
    }
}
