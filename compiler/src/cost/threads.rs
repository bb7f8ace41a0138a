//! The number of threads that strips keep busy, by a simulation of the order in which threads take them.
//!
//! Threads take strips in the order of their numbers, and a strip waits at each of its tiles for the strips of
//! [`crate::tile::Strips::waits`]. So grids with few strips fill and drain slowly, and strips near the corners of a
//! grid are short. Time is counted in cells, as if all threads were equally fast and nothing else made them wait.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::lattice::Interval;
use crate::tile::{Strips, TileProgram};

/// Strips of a time block for each thread, with which all threads are taken to be busy.
const ENOUGH: usize = 8;
/// Time blocks that are simulated.
const TIME_BLOCKS: usize = 6;

/// A tile of a strip: its place, and how many cells it has.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Work {
    place: i64,
    cells: u64,
}

/// The mean number of `threads` that are at work.
pub(super) fn busy(program: &TileProgram, threads: usize) -> f64 {
    let strips = Strips::new(program, program.height.max(1));
    if threads <= 1 || strips.len() >= ENOUGH.saturating_mul(threads) {
        return threads.max(1) as f64;
    }
    let all: Vec<Vec<Work>> = (0..strips.len())
        .map(|strip| tiles(program, &strips, strip))
        .collect();
    simulate(&all, threads)
}

/// The tiles of a strip of a single time block, measured in the middle of it.
fn tiles(program: &TileProgram, strips: &Strips, strip: usize) -> Vec<Work> {
    let numbers = strips.time_blocks[0].numbers;
    let middle = numbers.lo + numbers.len() / 2;
    let mut all = Vec::new();
    strips.tiles(program, strip, &mut |place, _, tile| {
        let mut cells = 0;
        program.walk(tile, Interval::new(middle, middle + 1), &mut |segment| {
            cells += segment.rows.volume();
        });
        all.push(Work { place, cells });
    });
    all
}

/// The same for the tiles of each strip of a time block, in time blocks that follow each other.
fn simulate(strips: &[Vec<Work>], threads: usize) -> f64 {
    let mut free: BinaryHeap<Reverse<u64>> = (0..threads).map(|_| Reverse(0)).collect();
    // When the tiles of each strip end, by place, for this time block and the one before.
    let mut before: Vec<Vec<(i64, u64)>> = vec![Vec::new(); strips.len()];
    let (mut done, mut end) = (0, 0);
    for _ in 0..TIME_BLOCKS {
        let mut own: Vec<Vec<(i64, u64)>> = Vec::with_capacity(strips.len());
        for (index, strip) in strips.iter().enumerate() {
            let Some(Reverse(mut now)) = free.pop() else {
                return 1.0;
            };
            let left = index.checked_sub(1).map(|left| &own[left]);
            let waits: Vec<&Vec<(i64, u64)>> = left.into_iter().chain([&before[index]]).collect();
            let mut ends = Vec::with_capacity(strip.len());
            for work in strip {
                for other in &waits {
                    now = now.max(passed(other, work.place));
                }
                now += work.cells;
                done += work.cells;
                ends.push((work.place, now));
            }
            end = end.max(now);
            own.push(ends);
            free.push(Reverse(now));
        }
        before = own;
    }
    if end == 0 {
        return 1.0;
    }
    (done as f64 / end as f64).max(1.0)
}

/// When a strip has passed a place.
fn passed(ends: &[(i64, u64)], place: i64) -> u64 {
    let count = ends.partition_point(|(own, _)| *own <= place);
    count.checked_sub(1).map_or(0, |last| ends[last].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(cells: &[u64]) -> Vec<Work> {
        let places = (0..).zip(cells);
        places
            .map(|(place, cells)| Work {
                place,
                cells: *cells,
            })
            .collect()
    }

    #[test]
    fn one_strip_of_one_tile_keeps_one_thread_busy() {
        assert_eq!(simulate(&[strip(&[7])], 4), 1.0);
    }

    #[test]
    fn strips_follow_each_other_by_a_tile() {
        // Three tiles each, one after the other: a diagonal of tiles runs at a time, across time blocks as well.
        let all = vec![strip(&[1, 1, 1]); 3];
        let tiles = 3 * 3 * TIME_BLOCKS;
        // The last strip begins when its neighbours have passed its first place: two diagonals and one per time block.
        let end = 2 + (TIME_BLOCKS - 1) + 3;
        assert_eq!(simulate(&all, 99), tiles as f64 / end as f64);
        assert_eq!(simulate(&all, 1), 1.0);
    }

    #[test]
    fn threads_beyond_the_longest_diagonal_add_nothing() {
        let all = vec![strip(&[2; 4]); 6];
        let [few, many, more] = [2, 8, 64].map(|threads| simulate(&all, threads));
        assert!(few > 1.8 && few <= 2.0, "{few}");
        assert!(many > few && more >= many, "{few} {many} {more}");
        assert_eq!(simulate(&all, 1000), more);
    }
}
