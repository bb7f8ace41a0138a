//! The number of threads that strips keep busy, by a simulation of the order in which threads take their tiles.
//!
//! A thread that is free takes the lowest tile that may run: of the first time block, and there of the first strip. A
//! tile, or a part of it on one side of a fold, waits for the one before in its strip and for the strips of
//! [`crate::tile::Strips::waits`]. So grids with few strips fill and drain slowly, and strips near the corners of a
//! grid are short. Where threads are not equally fast, the ones that follow a slow one wait for it, unless there are
//! other strips to take.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::ControlFlow;

use super::touched;
use crate::lattice::Interval;
use crate::tile::{SheetSet, Strips, Tile, TileProgram, members};

/// Strips of a time block for each thread, with which all threads are taken to be busy.
const ENOUGH: usize = 8;
/// Tiles for each thread, or time blocks, with which all threads are taken to be busy where these run side by side.
const AT_ONCE: usize = 2;
/// Steps that are simulated, as of a run between two pauses, and the most time blocks where strips are long.
const STEPS: u64 = 1024;
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
    if threads <= 1 {
        return all;
    }
    let enough = ENOUGH.saturating_mul(threads);
    // Strips follow each other by a tile: no more run side by side than one of them has tiles, if all begin at the same
    // place.
    let wide = first_tiles(program, &strips, count / 2, threads.max(OF_STRIP)).len();
    // Tiles that end within a time block do not follow each other by much.
    let ends = touched::end(program, 1) && count >= AT_ONCE.saturating_mul(threads);
    if ends || count >= enough && wide >= threads {
        return all;
    }
    // The strips in the middle stand for all.
    let taken = count.min(enough);
    let begin = (count - taken) / 2;
    let most = (SIMULATED / taken.max(1)).max(OF_STRIP);
    let of = |strip| first_tiles(program, &strips, strip, most);
    let tiles: Vec<Vec<Placed>> = (begin..begin + taken).map(of).collect();
    let later = |strip: usize| match strip < second.strips.len() as usize {
        true => of(second.first + strip),
        false => Vec::new(),
    };
    let parts = filled(
        taken,
        &|strip| strip_parts(program, first.numbers, &tiles[strip]),
        &|parts| parts.iter().flatten().all(|part| part.cells == 0),
    );
    let works = tiles.iter().zip(parts).enumerate();
    let works = works.map(|(strip, (tiles, parts))| {
        let later = later(begin + strip);
        let work = |(number, (own, parts)): (usize, (&Placed, Vec<Part>))| Work {
            place: own.place,
            later: later.get(number).map_or(own.place, |tile| tile.place),
            parts,
        };
        tiles.iter().zip(parts).enumerate().map(work).collect()
    });
    let block = Block {
        strips: works.collect(),
        sheets: program.sheets(),
        shift: (second.strips.lo - first.strips.lo).max(0) as usize,
    };
    // Short strips keep threads busy only in many time blocks.
    let most = match wide < OF_STRIP {
        true => TIME_BLOCKS.max(AT_ONCE.saturating_mul(threads) as u64),
        false => TIME_BLOCKS,
    };
    let time_blocks = (STEPS / program.height.max(1)).clamp(1, most);
    simulate(&block, time_blocks, speeds)
}

/// An outermost tile of a strip.
struct Placed {
    place: i64,
    tile: Tile,
    /// The number of tiles right before it from which it differs along the last cut only.
    along: usize,
}

/// The first outermost tiles of a strip, `most` of them at most.
fn first_tiles(program: &TileProgram, strips: &Strips, strip: usize, most: usize) -> Vec<Placed> {
    let mut all: Vec<Placed> = Vec::new();
    let mut line = Vec::new();
    let occupied = TileProgram::occupied;
    let _ = strips.visit(program, strip, occupied, &mut |place, indices, tile| {
        if all.len() >= most {
            return ControlFlow::Break(());
        }
        let others = indices.split_last().map_or(&[][..], |(_, others)| others);
        let along = match all.last() {
            Some(before) if line == others => before.along + 1,
            _ => 0,
        };
        line.clear();
        line.extend_from_slice(others);
        all.push(Placed {
            place,
            tile: tile.clone(),
            along,
        });
        ControlFlow::Continue(())
    });
    all
}

/// The parts of the tiles of a strip.
fn strip_parts(program: &TileProgram, numbers: Interval, tiles: &[Placed]) -> Vec<Vec<Part>> {
    let lines = tiles.chunk_by(|_, next| next.along > 0);
    let of_line = |line: &[Placed]| {
        filled(
            line.len(),
            &|n| tile_parts(program, numbers, &line[n].tile),
            &|parts| parts.iter().all(|part| part.cells == 0),
        )
    };
    lines.flat_map(of_line).collect()
}

/// The parts of a tile, measured in the middle of its time block, or as a whole where tiles end before it does.
fn tile_parts(program: &TileProgram, numbers: Interval, tile: &Tile) -> Vec<Part> {
    let middle = numbers.lo + numbers.len() / 2;
    let measured = match touched::end(program, 1) {
        true => numbers,
        false => Interval::new(middle, middle + 1),
    };
    let part = |sheets| {
        let mut cells = 0;
        program.walk_on(tile, measured, sheets, &mut |segment| {
            cells += segment.rows.volume();
        });
        Part { sheets, cells }
    };
    let joint = program.joint(tile, numbers);
    joint.sets(program.sheets()).map(part).collect()
}

/// The first values of a sequence, few of which are computed. The size of a convex tile that moves through a convex
/// grid rises, stays, and falls, so it is taken to be constant between two places where it is the same as half way
/// between them, and not zero.
fn filled<T: Clone + PartialEq>(
    count: usize,
    value: &impl Fn(usize) -> T,
    is_zero: &impl Fn(&T) -> bool,
) -> Vec<T> {
    let mut values = vec![None; count];
    let mut spans = Vec::new();
    spans.extend(count.checked_sub(1).map(|last| (0, last)));
    while let Some((first, last)) = spans.pop() {
        let middle = first + (last - first) / 2;
        for place in [first, middle, last] {
            if values[place].is_none() {
                values[place] = Some(value(place));
            }
        }
        let same = values[first] == values[middle] && values[middle] == values[last];
        if same && !values[first].as_ref().is_none_or(is_zero) {
            let all = values[first].clone();
            values[first..last].fill(all);
        } else if last - first > 2 {
            spans.extend([(first, middle), (middle, last)]);
        }
    }
    values.into_iter().flatten().collect()
}

/// How many tiles of two other strips each track has to pass before a tile runs.
#[derive(Clone, Copy)]
struct Needed {
    left: usize,
    before: usize,
}

/// A part of a tile, in the order in which parts are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Task {
    time_block: usize,
    strip: usize,
    tile: usize,
    part: usize,
}

/// The state of a simulation.
struct Progress<'a> {
    block: &'a Block,
    /// For each tile of each strip.
    needed: Vec<Vec<Needed>>,
    /// The tiles that each track of each strip has passed, and begun, by time blocks.
    passed: Vec<usize>,
    begun: Vec<usize>,
}

impl<'a> Progress<'a> {
    fn new(block: &'a Block, time_blocks: usize) -> Self {
        let until = |strip: Option<usize>, place: i64| {
            strip.map_or(0, |strip| {
                block.strips[strip].partition_point(|other| other.place <= place)
            })
        };
        let needed = block.strips.iter().enumerate().map(|(strip, tiles)| {
            let of = |work: &Work| Needed {
                left: until(strip.checked_sub(1), work.place),
                before: until(Some(block.same(strip)), work.later),
            };
            tiles.iter().map(of).collect()
        });
        let tracks = time_blocks * block.strips.len() * block.sheets;
        Progress {
            block,
            needed: needed.collect(),
            passed: vec![0; tracks],
            begun: vec![0; tracks],
        }
    }

    fn track(&self, time_block: usize, strip: usize, sheet: usize) -> usize {
        (time_block * self.block.strips.len() + strip) * self.block.sheets + sheet
    }

    fn part(&self, task: Task) -> Part {
        self.block.strips[task.strip][task.tile].parts[task.part]
    }

    /// Puts the next part of a track to the ready ones, if it waits for nothing.
    fn ready(
        &mut self,
        time_block: usize,
        strip: usize,
        sheet: usize,
        ready: &mut BinaryHeap<Reverse<Task>>,
    ) {
        let track = self.track(time_block, strip, sheet);
        let tile = self.passed[track];
        let Some(work) = self.block.strips[strip].get(tile) else {
            return;
        };
        let own = |part: &Part| part.sheets >> sheet & 1 == 1;
        let Some(part) = work.parts.iter().position(own) else {
            return;
        };
        let Needed { left, before } = self.needed[strip][tile];
        let same = self.block.same(strip);
        let is_ready = |sheet: usize| {
            let track = self.track(time_block, strip, sheet);
            let passed = |time_block, strip| self.passed[self.track(time_block, strip, sheet)];
            self.passed[track] == tile
                && self.begun[track] == tile
                && (strip == 0 || passed(time_block, strip - 1) >= left)
                && (time_block == 0 || passed(time_block - 1, same) >= before)
        };
        let sheets = work.parts[part].sheets;
        if members(sheets).all(is_ready) {
            for sheet in members(sheets) {
                let track = self.track(time_block, strip, sheet);
                self.begun[track] = tile + 1;
            }
            ready.push(Reverse(Task {
                time_block,
                strip,
                tile,
                part,
            }));
        }
    }
}

impl Block {
    /// The strip of the time block before for which a strip waits.
    fn same(&self, strip: usize) -> usize {
        (strip + self.shift).min(self.strips.len().saturating_sub(1))
    }

    /// The strips of the next time block that wait for a strip.
    fn followers(&self, strip: usize) -> std::ops::Range<usize> {
        let first = strip.saturating_sub(self.shift);
        let all = self.strips.len();
        match strip + 1 == all {
            true => first..all,
            false if strip < self.shift => 0..0,
            false => first..first + 1,
        }
    }
}

/// The mean number of threads of speed 1 that would do as much as threads of these speeds, by the order in which they
/// take the tiles of some time blocks that follow each other. A task goes to the thread that has been free for longest.
fn simulate(block: &Block, time_blocks: u64, speeds: &[f64]) -> f64 {
    let time_blocks = time_blocks as usize;
    let mut progress = Progress::new(block, time_blocks);
    let mut ready = BinaryHeap::new();
    let mut done = 0;
    for time_block in 0..time_blocks {
        for (strip, tiles) in block.strips.iter().enumerate() {
            let parts = tiles.iter().flat_map(|work| &work.parts);
            done += parts.map(|part| part.cells).sum::<u64>();
            for sheet in 0..block.sheets {
                progress.ready(time_block, strip, sheet, &mut ready);
            }
        }
    }
    // The running tasks, by their ends, with their threads.
    let mut running: BinaryHeap<Reverse<(u64, Task, usize)>> = BinaryHeap::new();
    let mut free: VecDeque<usize> = mixed(speeds.len()).collect();
    let mut now = 0;
    loop {
        while !free.is_empty()
            && let Some(Reverse(task)) = ready.pop()
            && let Some(thread) = free.pop_front()
        {
            let time = progress.part(task).cells as f64 * CELL / speeds[thread];
            running.push(Reverse((now + time as u64, task, thread)));
        }
        let Some(Reverse((end, task, thread))) = running.pop() else {
            break;
        };
        now = end;
        free.push_back(thread);
        let Task {
            time_block, strip, ..
        } = task;
        let sheets = progress.part(task).sheets;
        for sheet in members(sheets) {
            let track = progress.track(time_block, strip, sheet);
            progress.passed[track] = task.tile + 1;
        }
        for sheet in members(sheets) {
            progress.ready(time_block, strip, sheet, &mut ready);
            if strip + 1 < block.strips.len() {
                progress.ready(time_block, strip + 1, sheet, &mut ready);
            }
            if time_block + 1 < time_blocks {
                for other in block.followers(strip) {
                    progress.ready(time_block + 1, other, sheet, &mut ready);
                }
            }
        }
    }
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
    use crate::cone::cones;
    use crate::schedule::template::{Size, diamond, skewed};
    use crate::schedule::{Frame, Schedule, TiledTemplate};
    use crate::scheme::Precision;
    use crate::testing::maxwell_te;
    use crate::tile::in_integers;

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
    fn few_sizes_are_asked_for_where_most_are_equal() {
        let asked = std::cell::Cell::new(0);
        let of = |sizes: &[u64]| {
            asked.set(0);
            let value = |n: usize| {
                asked.set(asked.get() + 1);
                sizes[n]
            };
            filled(sizes.len(), &value, &|size| *size == 0)
        };
        let mut sizes = vec![9; 1000];
        sizes[0] = 3;
        sizes[998] = 5;
        sizes[999] = 1;
        assert_eq!(of(&sizes), sizes);
        assert!(asked.get() < 50, "{}", asked.get());
        // Nothing is concluded from tiles that are empty.
        for sizes in [
            &[0, 0, 0, 0, 0, 7, 0, 0, 0][..],
            &[4],
            &[],
            &[1, 2],
            &[0, 1, 1, 0],
        ] {
            assert_eq!(of(sizes), sizes);
        }
    }

    #[test]
    fn strips_of_one_tile_follow_each_other_and_diamonds_do_not() {
        let scheme = maxwell_te(2, Precision::F32, [256, 64]);
        let frame = Frame::new(&scheme, &cones(&scheme));
        let of = |family: TiledTemplate, threads: usize| {
            let Schedule::Tiled(tiling) = family.members(&frame).remove(0).1 else {
                panic!("a tiling");
            };
            busy(&in_integers(&scheme, &frame, &tiling), &even(threads))
        };
        let size = |value| Size::of("N", &[value]);
        let skew = |threads| of(skewed(size(4), size(8), size(0)), threads);
        assert!((2.5..3.95).contains(&skew(4)), "{}", skew(4));
        assert_eq!(skew(1), 1.0);
        assert_eq!(of(diamond(size(8), size(8), size(0)), 4), 4.0);
        // Two rows of four diamonds each.
        let few = of(diamond(size(64), size(64), size(0)), 16);
        assert!((2.0..8.0).contains(&few), "{few}");
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
