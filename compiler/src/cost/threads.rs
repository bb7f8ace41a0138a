//! The number of threads that strips keep busy, by a simulation of the order in which threads take their tiles.
//!
//! A thread that is free takes the lowest tile that may run: of the first time block, and there of the first strip. A
//! tile, or a part of it on one side of a fold, waits for the one before in its strip and for the strips of
//! [`crate::tile::Strips::waits`]. So grids with few strips fill and drain slowly, and strips near the corners of a
//! grid are short. Where threads are not equally fast, the ones that follow a slow one wait for it, unless there are
//! other strips to take.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::lattice::Interval;
use crate::tile::{Outermost, SheetSet, Strips, TileProgram, members};

/// Strips of a time block for each thread, with which all threads are taken to be busy.
const ENOUGH: usize = 8;
/// Steps that are simulated, as of a run between two pauses, and the most time blocks.
const STEPS: u64 = 128;
const TIME_BLOCKS: u64 = 6;
/// About how many tiles of a time block are simulated, and the least number of a strip. Longer strips are cut to their
/// first tiles.
const SIMULATED: usize = 4096;
const OF_STRIP: usize = 8;

/// A tile of a strip.
#[derive(Clone, Debug, PartialEq)]
struct Work {
    place: i64,
    /// The place of the same tile in the next time block.
    later: i64,
    /// Its parts that run apart, with how many cells each has.
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    sheets: SheetSet,
    cells: u64,
}

/// The strips of a time block.
struct Block {
    strips: Vec<Vec<Work>>,
    sheets: usize,
    /// By how much the index of a strip rises from one time block to the next.
    shift: usize,
}

/// Units of time in which a thread of speed 1 advances a cell.
const CELL: f64 = 256.0;

/// The mean number of threads of speed 1 that would do as much as threads of these speeds.
pub(super) fn busy(program: &TileProgram, speeds: &[f64]) -> f64 {
    let threads = speeds.len();
    let all = speeds.iter().sum();
    let strips = Strips::new(program, program.height.max(1).saturating_mul(2));
    let [first, second] = strips.time_blocks.as_slice() else {
        return all;
    };
    let count = first.strips.len() as usize;
    if threads <= 1 || count >= ENOUGH.saturating_mul(threads) {
        return all;
    }
    let most = (SIMULATED / count.max(1)).max(OF_STRIP);
    let of = |strip| strips.first_of_strip(program, strip, most);
    let later = |strip: usize| match strip < second.strips.len() as usize {
        true => of(second.first + strip),
        false => Vec::new(),
    };
    let block = Block {
        strips: (0..count)
            .map(|strip| tiles(program, &strips, &of(strip), &later(strip)))
            .collect(),
        sheets: program.sheets(),
        shift: (second.strips.lo - first.strips.lo).max(0) as usize,
    };
    let time_blocks = (STEPS / program.height.max(1)).clamp(1, TIME_BLOCKS);
    simulate(&block, time_blocks, speeds)
}

/// Tiles of a strip of the first time block, measured in the middle of it.
fn tiles(
    program: &TileProgram,
    strips: &Strips,
    all: &[Outermost],
    later: &[Outermost],
) -> Vec<Work> {
    let numbers = strips.time_blocks[0].numbers;
    let middle = numbers.lo + numbers.len() / 2;
    let part = |tile, sheets| {
        let mut cells = 0;
        let numbers = Interval::new(middle, middle + 1);
        program.walk_on(tile, numbers, sheets, &mut |segment| {
            cells += segment.rows.volume();
        });
        Part { sheets, cells }
    };
    let own = all.iter().enumerate().map(|(number, own)| Work {
        place: own.place,
        later: later.get(number).map_or(own.place, |tile| tile.place),
        parts: own
            .joint
            .sets(program.sheets())
            .map(|sheets| part(&own.tile, sheets))
            .collect(),
    });
    own.collect()
}

/// Parts of tiles, in the order in which they are taken.
#[derive(Default)]
struct Tasks {
    cells: Vec<u64>,
    /// For how many others each still waits, and which ones wait for it.
    waits: Vec<usize>,
    followers: Vec<Vec<usize>>,
}

impl Tasks {
    fn new(block: &Block, time_blocks: u64) -> Tasks {
        let mut tasks = Tasks::default();
        // The task of each tile on each sheet, by strip, for this time block and the one before.
        let mut before: Vec<Vec<Vec<usize>>> = Vec::new();
        for _ in 0..time_blocks {
            let mut own: Vec<Vec<Vec<usize>>> = Vec::new();
            for (index, strip) in block.strips.iter().enumerate() {
                own.push(Vec::new());
                for (number, work) in strip.iter().enumerate() {
                    let mut of_sheets = vec![0; block.sheets];
                    for part in &work.parts {
                        let passed = |strip: &[Work], place| {
                            strip.partition_point(|other| other.place <= place)
                        };
                        let mut needed: Vec<&Vec<usize>> = Vec::new();
                        if number > 0 {
                            needed.push(&own[index][number - 1]);
                        }
                        if let Some(left) = index.checked_sub(1) {
                            let count = passed(&block.strips[left], work.place);
                            needed.extend(count.checked_sub(1).map(|n| &own[left][n]));
                        }
                        let same = (index + block.shift).min(block.strips.len() - 1);
                        if let Some(other) = before.get(same) {
                            let count = passed(&block.strips[same], work.later);
                            needed.extend(count.checked_sub(1).map(|n| &other[n]));
                        }
                        let mut others: Vec<usize> = needed
                            .iter()
                            .flat_map(|tile| members(part.sheets).map(|sheet| tile[sheet]))
                            .collect();
                        others.sort_unstable();
                        others.dedup();
                        let task = tasks.cells.len();
                        tasks.cells.push(part.cells);
                        tasks.waits.push(others.len());
                        tasks.followers.push(Vec::new());
                        for other in others {
                            tasks.followers[other].push(task);
                        }
                        members(part.sheets).for_each(|sheet| of_sheets[sheet] = task);
                    }
                    own[index].push(of_sheets);
                }
            }
            before = own;
        }
        tasks
    }
}

/// The same for the tiles of each strip of a time block, in some time blocks that follow each other. A task goes to the
/// thread that has been free for longest.
fn simulate(block: &Block, time_blocks: u64, speeds: &[f64]) -> f64 {
    let mut tasks = Tasks::new(block, time_blocks);
    let first = (0..tasks.cells.len()).filter(|task| tasks.waits[*task] == 0);
    let mut ready: BinaryHeap<Reverse<usize>> = first.map(Reverse).collect();
    // The running tasks, by their ends, with their threads.
    let mut running: BinaryHeap<Reverse<(u64, usize, usize)>> = BinaryHeap::new();
    let mut free: VecDeque<usize> = mixed(speeds.len()).collect();
    let mut now = 0;
    loop {
        while !free.is_empty()
            && let Some(Reverse(task)) = ready.pop()
            && let Some(thread) = free.pop_front()
        {
            let time = tasks.cells[task] as f64 * CELL / speeds[thread];
            running.push(Reverse((now + time as u64, task, thread)));
        }
        let Some(Reverse((end, task, thread))) = running.pop() else {
            break;
        };
        now = end;
        free.push_back(thread);
        for follower in std::mem::take(&mut tasks.followers[task]) {
            tasks.waits[follower] -= 1;
            if tasks.waits[follower] == 0 {
                ready.push(Reverse(follower));
            }
        }
    }
    let done: u64 = tasks.cells.iter().sum();
    done as f64 * CELL / now.max(1) as f64
}

/// The numbers below `count`, alternately from both ends, so that slow and fast threads begin side by side.
fn mixed(count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |n| match n % 2 {
        0 => n / 2,
        _ => count - 1 - n / 2,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(threads: usize) -> Vec<f64> {
        vec![1.0; threads]
    }

    fn strip(cells: &[u64]) -> Vec<Work> {
        let places = (0..).zip(cells);
        places
            .map(|(place, cells)| Work {
                place,
                later: place,
                parts: vec![Part {
                    sheets: 1,
                    cells: *cells,
                }],
            })
            .collect()
    }

    fn block(strips: Vec<Vec<Work>>) -> Block {
        Block {
            strips,
            sheets: 1,
            shift: 0,
        }
    }

    #[test]
    fn one_strip_of_one_tile_keeps_one_thread_busy() {
        assert_eq!(
            simulate(&block(vec![strip(&[7])]), TIME_BLOCKS, &even(4)),
            1.0
        );
    }

    #[test]
    fn strips_follow_each_other_by_a_tile() {
        // Three tiles each, one after the other: a diagonal of tiles runs at a time, across time blocks as well.
        let mut all = block(vec![strip(&[1, 1, 1]); 3]);
        let tiles = 3 * 3 * TIME_BLOCKS as usize;
        // The last strip begins when its neighbours have passed its first place: two diagonals and one per time block.
        let end = 2 + (TIME_BLOCKS - 1) + 3;
        assert_eq!(
            simulate(&all, TIME_BLOCKS, &even(99)),
            tiles as f64 / end as f64
        );
        assert_eq!(simulate(&all, TIME_BLOCKS, &even(1)), 1.0);
        // Where indices rise, the first strip waits for the second one of the time block before.
        all.shift = 1;
        let end = 2 + 2 * (TIME_BLOCKS - 1) + 3;
        assert_eq!(
            simulate(&all, TIME_BLOCKS, &even(99)),
            tiles as f64 / end as f64
        );
    }

    #[test]
    fn threads_beyond_the_longest_diagonal_add_nothing() {
        let all = block(vec![strip(&[2; 4]); 6]);
        let [few, many, more] =
            [2, 8, 64].map(|threads| simulate(&all, TIME_BLOCKS, &even(threads)));
        assert!(few > 1.8 && few <= 2.0, "{few}");
        assert!(many > few && more >= many, "{few} {many} {more}");
        assert_eq!(simulate(&all, TIME_BLOCKS, &even(1000)), more);
    }

    #[test]
    fn parts_that_are_not_joined_run_side_by_side() {
        let tile = |place, sets: &[SheetSet]| Work {
            place,
            later: place,
            parts: sets
                .iter()
                .map(|&sheets| Part {
                    sheets,
                    cells: 2 * u64::from(sheets.count_ones()),
                })
                .collect(),
        };
        // Joined at both ends, as strips on a fold are.
        let strip = vec![
            tile(0, &[3]),
            tile(1, &[1, 2]),
            tile(2, &[1, 2]),
            tile(3, &[3]),
        ];
        let all = Block {
            strips: vec![strip],
            sheets: 2,
            shift: 0,
        };
        // A time block begins when the joined tile of the one before is done.
        let end = 4 * TIME_BLOCKS + 8;
        assert_eq!(
            simulate(&all, TIME_BLOCKS, &even(99)),
            (16 * TIME_BLOCKS) as f64 / end as f64
        );
        assert_eq!(simulate(&all, TIME_BLOCKS, &even(1)), 1.0);
    }

    #[test]
    fn slow_threads_keep_the_others_waiting_where_tiles_are_few() {
        let of = |strips: usize, tiles: usize, speeds: &[f64]| {
            let all = block(vec![strip(&vec![64; tiles]); strips]);
            simulate(&all, TIME_BLOCKS, speeds)
        };
        assert_eq!(of(3, 24, &[0.5]), 0.5);
        // The slower half of the threads does a third of the work, unless others wait for its tiles.
        let [equal, unequal] = [[0.75; 8], [0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0]];
        for (strips, tiles, least, most) in
            [(1, 1, 0.88, 0.9), (4, 4, 0.75, 0.85), (64, 24, 0.97, 1.0)]
        {
            let kept = of(strips, tiles, &unequal) / of(strips, tiles, &equal);
            assert!((least..=most).contains(&kept), "{strips} {tiles}: {kept}");
        }
        assert_eq!(mixed(5).collect::<Vec<_>>(), [0, 4, 1, 3, 2]);
    }
}
