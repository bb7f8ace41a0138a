//! Which cells of a patch other threads read, and where they find them.

use super::shape::{Read, Shape};
use super::stages::StagePlan;
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

impl Shape {
    /// Whether some cells of a patch read values of another row of threads.
    pub(super) fn is_across(&self, read: &Read) -> bool {
        let mut places = self.cells().map(|cell| Place::of(self, cell, read));
        self.rows() > 1 && places.any(|place| place.is_elsewhere())
    }
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
    count: usize,
    /// Rows of threads from a thread to the rows whose slots it reads.
    pub others: Vec<i64>,
}

/// Less than all cells.
const FIRST: [i64; 3] = [i64::MIN; 3];

/// Rows that have the same slots, one after the other.
struct Group {
    rows: Vec<usize>,
    slots: usize,
    /// The stages before which the slots have values that are still read.
    lives: Vec<bool>,
}

impl Group {
    fn is_free(&self, lives: &[bool]) -> bool {
        self.lives
            .iter()
            .zip(lives)
            .all(|(own, other)| !(own & other))
    }

    fn take(&mut self, row: usize, cells: usize, lives: &[bool]) {
        self.rows.push(row);
        self.slots = self.slots.max(cells);
        let own = self.lives.iter_mut().zip(lives);
        own.for_each(|(own, other)| *own |= other);
    }
}

/// For each stage of a round, whether other rows of threads read a row's values in it or later, before the row is
/// published anew.
pub(super) fn lives(shape: &Shape, stages: &[StagePlan], row: usize) -> Vec<bool> {
    let is_read = |stage: usize| {
        let rest = (stage..stage + stages.len()).map(|n| &stages[n % stages.len()]);
        for stage in rest {
            let mut own = stage.all_reads().filter(|read| read.row == row);
            if own.any(|read| shape.is_across(read)) {
                return true;
            }
            if stage.publish.contains(&row) {
                return false;
            }
        }
        false
    };
    (0..stages.len()).map(is_read).collect()
}

impl Slots {
    pub(super) fn new(shape: &Shape, stages: &[StagePlan]) -> Slots {
        let mut slots = Slots::default();
        if shape.rows() == 1 {
            return slots;
        }
        for read in stages.iter().flat_map(StagePlan::all_reads) {
            for cell in shape.cells() {
                let place = Place::of(shape, cell, read);
                if place.is_elsewhere() {
                    slots.numbers.insert((place.row, place.cell), 0);
                    slots.others.push(shape.rows_to(place.thread));
                }
            }
        }
        let mut groups: Vec<Group> = Vec::new();
        for (row, cells) in slots.cells_of_rows() {
            let lives = lives(shape, stages, row);
            let other = groups
                .iter_mut()
                .find(|group| shape.reuses_slots && group.is_free(&lives));
            match other {
                Some(group) => group.take(row, cells, &lives),
                None => groups.push(Group {
                    rows: vec![row],
                    slots: cells,
                    lives,
                }),
            }
        }
        for group in groups {
            for row in group.rows {
                let own = slots.numbers.range_mut((row, FIRST)..(row + 1, FIRST));
                let numbers = slots.count as u32..;
                own.zip(numbers)
                    .for_each(|((_, slot), number)| *slot = number);
            }
            slots.count += group.slots;
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
        self.count
    }

    /// Whether two rows have a slot in common.
    pub fn share(&self, row: usize, other: usize) -> bool {
        self.of_row(row)
            .any(|(_, slot)| self.of_row(other).any(|(_, of_other)| of_other == slot))
    }

    /// The rows with slots, and how many cells of each are published.
    fn cells_of_rows(&self) -> BTreeMap<usize, usize> {
        let mut rows = BTreeMap::new();
        for (row, _) in self.numbers.keys() {
            *rows.entry(*row).or_default() += 1;
        }
        rows
    }

    /// Bytes of shared memory.
    pub fn bytes(&self, shape: &Shape, element: usize) -> u64 {
        (self.count() * element) as u64 * shape.all_threads() as u64
    }
}
