//! Which thread runs which tile next.
//!
//! A thread keeps a track ([`Strips`]) as long as its next tile may run. Where it may not, and still may not a moment
//! later, the thread gives the track back and takes the lowest one whose next tile may run, of any strip and time
//! block. So no thread waits while there is something to do: where the strips of a time block follow each other
//! closely, some threads go ahead into the next time blocks, and where the parts on two sides of a fold are joined, the
//! thread of one side leaves both to the other.
//!
//! The lowest tile that is not done waits for nothing but tiles that are done, so that it runs, or some thread that
//! looks for work finds it: the run ends with any number of threads.

use super::waiting::{Patience, Rising};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use torre_compiler::tile::{Outermost, SheetSet, Strips, TileProgram, Waits, members};

/// The place of a track that is done.
const DONE: i64 = i64::MAX;

/// The outermost tiles of a strip.
type Tiles = Arc<Vec<Outermost>>;

/// How far all tracks of a run have come.
pub(super) struct Board<'a> {
    program: &'a TileProgram,
    strips: &'a Strips,
    sheets: usize,
    /// By strip and sheet.
    tracks: Vec<Track>,
    chooser: Mutex<Chooser>,
    /// Rises with each event that may let a waiting thread go on, as long as there are waiting threads.
    changes: Rising,
    waiting: AtomicUsize,
}

/// The parts of a strip's tiles on one sheet.
#[repr(align(128))]
struct Track {
    /// Parts at places below are done; that of the next one, once a thread has looked.
    place: AtomicI64,
    /// A thread keeps it.
    taken: AtomicBool,
}

/// The state of strips for threads that look for work.
struct Chooser {
    /// Of strips that have begun or may begin soon, and are not done.
    tiles: Vec<Option<Tiles>>,
    /// Per time block, the first strip that is not done.
    begin: Vec<usize>,
    /// The first time block that is not done.
    time_block: usize,
}

/// A track that a thread keeps, and its next tile.
pub(super) struct Kept {
    strip: usize,
    sheet: usize,
    waits: Waits,
    tiles: Tiles,
    next: usize,
}

/// The work of a thread: the parts of a tile on some sheets.
pub(super) struct Task(Kept);

impl Task {
    pub fn strip(&self) -> usize {
        self.0.strip
    }

    pub fn sheets(&self) -> SheetSet {
        let joint = self.joint;
        joint.with(self.0.sheet)
    }
}

impl Deref for Task {
    type Target = Outermost;

    fn deref(&self) -> &Outermost {
        &self.0.tiles[self.0.next]
    }
}

/// The result of a look for work.
enum Found {
    Work(Task),
    Nothing,
    /// All is done.
    End,
}

impl<'a> Board<'a> {
    pub fn new(program: &'a TileProgram, strips: &'a Strips) -> Self {
        let sheets = program.sheets();
        let track = |_| Track {
            place: AtomicI64::new(-1),
            taken: AtomicBool::new(false),
        };
        Self {
            program,
            strips,
            sheets,
            tracks: (0..strips.len() * sheets).map(track).collect(),
            chooser: Mutex::new(Chooser {
                tiles: vec![None; strips.len()],
                begin: strips.time_blocks.iter().map(|b| b.first).collect(),
                time_block: 0,
            }),
            changes: Rising::new(0),
            waiting: AtomicUsize::new(0),
        }
    }

    /// How many threads there may be something to do for.
    pub fn tracks(&self) -> usize {
        self.tracks.len()
    }

    fn track(&self, strip: usize, sheet: usize) -> &Track {
        &self.tracks[strip * self.sheets + sheet]
    }

    /// Waits for something to do, best on a track that the thread keeps; `None`: all is done, or will be without it.
    pub fn next(&self, kept: Option<Kept>, patience: Patience) -> Option<Task> {
        if let Some(kept) = kept {
            let tile = &kept.tiles[kept.next];
            let set = tile.joint.with(kept.sheet);
            let own = members(set).next() == Some(kept.sheet);
            let ready = || self.is_ready(kept.strip, kept.waits, tile, set);
            if own && (ready() || patience.briefly(ready)) {
                return Some(Task(kept));
            }
            let track = self.track(kept.strip, kept.sheet);
            track.taken.store(false, Ordering::SeqCst);
            self.tell();
        }
        match self.choose() {
            Found::Work(task) => return Some(task),
            Found::End => return None,
            Found::Nothing => {}
        }
        // A thread that changes something from now on wakes waiting threads: either it sees this count, or the look
        // below sees the change.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let found = loop {
            let seen = self.changes.get();
            fence(Ordering::SeqCst);
            match self.choose() {
                Found::Work(task) => break Some(task),
                Found::End => break None,
                Found::Nothing => self.changes.wait(seen, patience),
            }
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        found
    }

    /// A task is done; gives the part that the thread keeps of it.
    pub fn done(&self, task: Task) -> Option<Kept> {
        let sheets = task.sheets();
        let Task(mut kept) = task;
        kept.next += 1;
        let next = kept.tiles.get(kept.next);
        let place = next.map_or(DONE, |tile| tile.place);
        for sheet in members(sheets) {
            let track = self.track(kept.strip, sheet);
            track.place.store(place, Ordering::SeqCst);
        }
        self.tell();
        next.is_some().then_some(kept)
    }

    /// Something has changed.
    fn tell(&self) {
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) != 0 {
            self.changes.step();
        }
    }

    /// Whether the parts of a tile on some sheets may run.
    fn is_ready(&self, strip: usize, waits: Waits, tile: &Outermost, set: SheetSet) -> bool {
        let place = |strip, sheet| self.track(strip, sheet).place.load(Ordering::Acquire);
        members(set).all(|sheet| {
            let passed = waits.iter().all(|other| place(other, sheet) > tile.place);
            passed && place(strip, sheet) == tile.place
        })
    }

    /// Looks for the lowest track whose next tile may run, and takes it.
    fn choose(&self) -> Found {
        let mut chooser = self.chooser();
        let first = chooser.time_block;
        for (number, block) in self.strips.time_blocks.iter().enumerate().skip(first) {
            let end = block.first + block.strips.len() as usize;
            let mut begun = chooser.begin[number] > block.first;
            for strip in chooser.begin[number]..end {
                let look = self.look(&mut chooser, strip);
                if let Look::Ready(kept) = look {
                    return Found::Work(Task(kept));
                }
                if let (Look::Done, true) = (&look, chooser.begin[number] == strip) {
                    chooser.begin[number] = strip + 1;
                    chooser.tiles[strip] = None;
                }
                // Strips of a time block begin one after the other.
                if let Look::Waits = look {
                    break;
                }
                begun = true;
            }
            if chooser.begin[number] == end && chooser.time_block == number {
                chooser.time_block = number + 1;
            }
            // And so do time blocks.
            if !begun && end > block.first {
                break;
            }
        }
        match chooser.time_block == self.strips.time_blocks.len() {
            true => Found::End,
            false => Found::Nothing,
        }
    }

    /// Looks at the tracks of a strip.
    fn look(&self, chooser: &mut Chooser, strip: usize) -> Look {
        let tiles = chooser.tiles[strip].get_or_insert_with(|| {
            let tiles = self.strips.of_strip(self.program, strip);
            let place = tiles.first().map_or(DONE, |tile| tile.place);
            for sheet in 0..self.sheets {
                let track = self.track(strip, sheet);
                // Nothing lies at places below.
                track.place.store(place, Ordering::SeqCst);
            }
            Arc::new(tiles)
        });
        let waits = self.strips.waits(strip);
        let (mut done, mut begun) = (true, false);
        for sheet in 0..self.sheets {
            let track = self.track(strip, sheet);
            let taken = track.taken.load(Ordering::SeqCst);
            let place = track.place.load(Ordering::SeqCst);
            let next = tiles.partition_point(|tile| tile.place < place);
            begun |= taken || next > 0;
            let Some(tile) = tiles.get(next) else {
                continue;
            };
            done = false;
            let set = tile.joint.with(sheet);
            let own = members(set).next() == Some(sheet);
            if own && !taken && self.is_ready(strip, waits, tile, set) {
                track.taken.store(true, Ordering::SeqCst);
                return Look::Ready(Kept {
                    strip,
                    sheet,
                    waits,
                    tiles: Arc::clone(tiles),
                    next,
                });
            }
        }
        match (done, begun) {
            (true, _) => Look::Done,
            (_, true) => Look::Runs,
            _ => Look::Waits,
        }
    }

    fn chooser(&self) -> MutexGuard<'_, Chooser> {
        // A thread that panics beside others ends the process.
        self.chooser.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of a look at a strip.
enum Look {
    /// A track whose next tile may run; it is taken.
    Ready(Kept),
    /// Others are at it, or its next tiles wait.
    Runs,
    /// It has not begun, and has to wait.
    Waits,
    Done,
}

#[cfg(test)]
mod tests {
    use super::super::threads;
    use super::*;
    use std::collections::BTreeSet;
    use std::time::Duration;
    use torre_compiler::cone::{Rational, cones};
    use torre_compiler::lattice::Axis;
    use torre_compiler::schedule::Frame;
    use torre_compiler::scheme::{Boundary, Precision};
    use torre_compiler::testing::{
        Rng, diamonds, everywhere, maxwell, random_folded_scheme, tower_pitches,
    };
    use torre_compiler::tile::lower;

    /// The tasks that are done, by strip, sheet and place.
    type Done = BTreeSet<(usize, usize, i64)>;

    /// A task runs after all tasks for which it waits.
    fn check_waits(strips: &Strips, plan: &[Vec<Outermost>], done: &Done, task: &Task) {
        let places = |strip: usize| plan[strip].iter().map(|tile| tile.place);
        for sheet in members(task.sheets()) {
            let strip = task.strip();
            assert!(!done.contains(&(strip, sheet, task.place)));
            for place in places(strip).filter(|place| *place < task.place) {
                assert!(done.contains(&(strip, sheet, place)));
            }
            for other in strips.waits(strip).iter() {
                for place in places(other).filter(|place| *place <= task.place) {
                    assert!(done.contains(&(other, sheet, place)));
                }
            }
        }
    }

    #[test]
    fn every_task_runs_once_after_all_that_it_waits_for() {
        let mut apart = 0;
        for seed in 0..60 {
            let mut rng = Rng::new(seed);
            let scheme = random_folded_scheme(&mut rng);
            let frame = Frame::new(&scheme, &cones(&scheme));
            let height = rng.within(1, 4) as u64;
            let tiling = diamonds(&frame, tower_pitches(&mut rng), height);
            let program = lower(&scheme, &frame, &tiling).expect("fitting faces are legal");
            let strips = Strips::new(&program, 3 * height + 1);
            let plan: Vec<_> = (0..strips.len())
                .map(|strip| strips.of_strip(&program, strip))
                .collect();
            let sheets = program.sheets();
            let all = plan.iter().enumerate().flat_map(|(strip, tiles)| {
                tiles.iter().flat_map(move |tile| {
                    let place = tile.place;
                    (0..sheets).map(move |sheet| (strip, sheet, place))
                })
            });
            let all: Done = all.collect();
            for count in [1, 2, 5] {
                let board = Board::new(&program, &strips);
                let done = Mutex::new(Done::new());
                let lock = || done.lock().unwrap();
                let pauses = Mutex::new(rng.clone());
                threads::run(count, |_| {
                    let mut kept = None;
                    while let Some(task) = board.next(kept.take(), Patience::of(count)) {
                        check_waits(&strips, &plan, &lock(), &task);
                        if pauses.lock().unwrap().once_in(20) {
                            std::thread::sleep(Duration::from_micros(30));
                        }
                        let own = members(task.sheets());
                        lock().extend(own.map(|sheet| (task.strip(), sheet, task.place)));
                        kept = board.done(task);
                    }
                })
                .unwrap();
                assert!(*lock() == all, "seed {seed}, {count} threads");
            }
            let sets = |tile: &Outermost| tile.joint.sets(sheets).count();
            apart += plan.iter().flatten().filter(|tile| sets(tile) > 1).count();
        }
        assert!(apart > 1000, "{apart}");
    }

    /// A strip alone keeps several threads busy where its tiles have parts on two sides.
    #[test]
    fn a_thread_that_has_to_wait_takes_what_may_run() {
        let mut scheme = maxwell(4, Precision::F32, [96, 96, 4]);
        scheme.grid.boundary[Axis::MIDDLE] = [Boundary::Periodic; 2];
        everywhere(&mut scheme);
        let frame = Frame::new(&scheme, &cones(&scheme));
        let pitch = Rational::whole(12);
        let tiling = diamonds(&frame, [pitch; 2], 4);
        let program = lower(&scheme, &frame, &tiling).expect("fitting faces are legal");
        let strips = Strips::new(&program, 12);
        let board = Board::new(&program, &strips);
        // One thread that holds as many tasks as may run at a time.
        let (mut running, mut most, mut blocks) = (Vec::new(), 0, BTreeSet::new());
        let mut tasks = 0;
        loop {
            while let Found::Work(task) = board.choose() {
                running.push(task);
            }
            most = most.max(running.len());
            let of = |task: &Task| strips.time_block(task.strip());
            blocks.insert(running.iter().map(of).collect::<BTreeSet<_>>().len());
            if running.is_empty() {
                break;
            }
            for task in std::mem::take(&mut running) {
                tasks += 1;
                if let Some(kept) = board.done(task) {
                    let track = board.track(kept.strip, kept.sheet);
                    track.taken.store(false, Ordering::SeqCst);
                }
            }
        }
        assert!(board.next(None, Patience::of(1)).is_none());
        assert!(tasks > 3 * strips.len(), "{tasks}");
        assert!(most > 8, "{most}");
        assert!(blocks.contains(&3), "{blocks:?}");
    }
}
