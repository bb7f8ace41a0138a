//! Runs a tile program symbolically: the oracle for every shape, order and executor.
//!
//! Instead of a value, each place in memory holds the number of the version that was written there last. The tiles run
//! in their sequential order: by time block, strip, place and parts that run apart, then the levels inside; rows come
//! from [`Shapes`] where these serve, as in a real run. It is checked that
//! - every row lies in the region of its updates and, by the definition of depth, in its tile;
//! - every read finds exactly the version that the scheme names, and so has no writer taken it away;
//! - every update replaces exactly the version whose place it takes, and all places end with their last version: so
//!   every event runs exactly once;
//! - two outermost tiles that touch the same place, and one of them writes it, are ordered by the waits of [`Strips`],
//!   and so are parts of one tile that run apart. This is decided by vector clocks of the strips' tracks, so that the
//!   order of one run does not matter.
//!
//! Values on a plane where they are 0 are part of it as far as rows run over them: for a moment they have other values
//! there.

mod clocks;
mod fault;
mod memory;
mod pyramids;
mod report;
#[cfg(test)]
mod tests;
mod versions;

pub use fault::{Crossing, Event, TileFault, TileName};
pub use pyramids::{PyramidReport, check_pyramids};
pub use report::{LevelReport, TileReport};

use super::sheets::{Joint, SheetSet, members};
use super::strips::{Strips, Waits, time_blocks_at_once};
use super::{Class, PlaneCut, Segment, Shapes, Tile, TileProgram, Work, verify};
use crate::cone::Kind;
use crate::lattice::{Axis, Interval, PerAxis};
use crate::layout::Layout;
use crate::reference::for_each_index;
use crate::scheme::{ComponentId, Read, Scheme};
use clocks::Clocks;
use memory::{Memory, Reader};
use versions::{Versions, source};

/// Outermost tiles times tracks between two barriers; likewise.
const MOST_CLOCKS: u64 = 1 << 26;

/// Runs `steps` steps of a tile program and counts its work.
pub fn check(
    scheme: &Scheme,
    program: &TileProgram,
    steps: u64,
) -> Result<TileReport, Box<TileFault>> {
    check_with(scheme, program, steps, &Order::default())
}

/// The waits of tiles, and the parts that run together.
struct Order<'a> {
    waits: &'a dyn Fn(&Strips, usize) -> Waits,
    joint: &'a dyn Fn(Joint) -> Joint,
}

impl Default for Order<'_> {
    fn default() -> Self {
        Self {
            waits: &Strips::waits,
            joint: &|joint| joint,
        }
    }
}

/// The same in an order of one's own.
fn check_with(
    scheme: &Scheme,
    program: &TileProgram,
    steps: u64,
    order: &Order<'_>,
) -> Result<TileReport, Box<TileFault>> {
    let mut run = Run::new(scheme, program, steps)?;
    let group = program.height.saturating_mul(time_blocks_at_once(program));
    let mut start = 0;
    while start < steps {
        let end = steps.min(start.saturating_add(group));
        run.start = start as i64 * program.stages_per_step();
        run.time_blocks(end - start, order)?;
        run.group += 1;
        run.report.barriers += 1;
        start = end;
    }
    run.finish(steps as i64)?;
    Ok(run.report)
}

type Checked = Result<(), Box<TileFault>>;

/// The tile of a level that runs now.
#[derive(Clone, Default)]
struct Inner {
    /// Per cut of the level.
    indices: Vec<i64>,
    /// Counts the tiles of the level, from 1.
    stamp: u64,
    counted: bool,
}

/// An outermost tile that has run, or the parts of it that run together.
struct Outer {
    group: usize,
    time_block: usize,
    /// The first of its tracks, and how many tasks of this track have run before.
    track: usize,
    sequence: u32,
    /// Per cut of the outermost level.
    indices: Vec<i64>,
}

struct Run<'a> {
    scheme: &'a Scheme,
    program: &'a TileProgram,
    layout: Layout,
    versions: Versions,
    memory: Memory,
    report: TileReport,
    /// All so far; the last one runs.
    tiles: Vec<Outer>,
    /// The tasks that are done for sure when the running tile starts.
    clock: Vec<u32>,
    /// Time blocks up to a barrier, and their first stage.
    group: usize,
    start: i64,
    levels: Vec<Inner>,
}

impl<'a> Run<'a> {
    fn new(
        scheme: &'a Scheme,
        program: &'a TileProgram,
        steps: u64,
    ) -> Result<Run<'a>, Box<TileFault>> {
        verify(scheme, program).map_err(TileFault::Rule)?;
        i64::try_from(steps)
            .ok()
            .and_then(|n| n.checked_mul(program.stages_per_step().max(1)))
            .filter(|n| *n < i64::from(u32::MAX))
            .ok_or(TileFault::TooLarge)?;
        let levels = program.levels.len().max(1);
        Ok(Run {
            scheme,
            program,
            layout: Layout::new(scheme).map_err(|_| TileFault::TooLarge)?,
            versions: Versions::new(scheme),
            memory: Memory::new(scheme, levels)?,
            report: TileReport {
                steps,
                variants: vec![Default::default(); scheme.stages.len()],
                levels: vec![LevelReport::default(); levels],
                ..TileReport::default()
            },
            tiles: Vec::new(),
            clock: Vec::new(),
            group: 0,
            start: 0,
            levels: vec![Inner::default(); levels],
        })
    }
}

impl Run<'_> {
    /// Runs the time blocks up to a barrier.
    fn time_blocks(&mut self, steps: u64, order: &Order<'_>) -> Checked {
        let strips = Strips::new(self.program, steps);
        let sheets = self.program.sheets();
        let tracks = strips.len().saturating_mul(sheets);
        let tasks = strips.most_tiles().saturating_mul(sheets as u64);
        if tasks.saturating_mul(tracks as u64) > MOST_CLOCKS {
            return Err(Box::new(TileFault::TooLarge));
        }
        let mut clocks = Clocks::new(tracks);
        let mut shapes = Shapes::new(self.program);
        self.report.time_blocks += strips.time_blocks.len() as u64;
        self.report.strips += strips.len() as u64;
        for (number, time_block) in strips.time_blocks.iter().enumerate() {
            if let Some(before) = number.checked_sub(1) {
                clocks.forget_below(strips.time_blocks[before].first * sheets);
            }
            for strip in time_block.first..time_block.first + time_block.strips.len() as usize {
                let waits = (order.waits)(&strips, strip);
                for outermost in strips.of_strip(self.program, strip) {
                    let first = self.program.levels.first().filter(|cuts| !cuts.is_empty());
                    let first = first.map(|_| strips.index(strip));
                    let indices: Vec<i64> = first.into_iter().chain(outermost.indices).collect();
                    self.enter(0, Vec::new());
                    for set in (order.joint)(outermost.joint).sets(sheets) {
                        let track = |strip: usize, sheet| strip * sheets + sheet;
                        let own: Vec<usize> = members(set).map(|s| track(strip, s)).collect();
                        let others: Vec<usize> = waits
                            .iter()
                            .flat_map(|other| members(set).map(move |s| track(other, s)))
                            .collect();
                        self.clock = clocks.start(&own, outermost.place, &others);
                        self.report.waits += others.len() as u64;
                        self.tiles.push(Outer {
                            group: self.group,
                            time_block: number,
                            track: own[0],
                            sequence: clocks.tasks(own[0]),
                            indices: indices.clone(),
                        });
                        self.tile(&mut shapes, &outermost.tile, time_block.numbers, set)?;
                        let clock = std::mem::take(&mut self.clock);
                        clocks.end(&own, outermost.place, &clock);
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs an outermost tile on some sheets.
    fn tile(
        &mut self,
        shapes: &mut Shapes,
        tile: &Tile,
        numbers: Interval,
        sheets: SheetSet,
    ) -> Checked {
        let program = self.program;
        let mut result = Ok(());
        let mut course = Vec::new();
        shapes.course(program, tile, numbers, sheets, &mut course);
        for work in &course {
            let Work {
                tile: inner,
                parts,
                sheets,
                stages,
            } = work;
            let mut same = true;
            for (level, cuts) in program.levels.iter().enumerate().skip(1) {
                let indices: Vec<i64> = cuts.iter().map(|c| index_of(c, inner)).collect();
                same &= self.levels[level].indices == indices && self.levels[level].stamp != 0;
                if !same {
                    self.enter(level, indices);
                }
            }
            let mut run = |segment: &Segment| {
                if result.is_ok() && !segment.rows.is_empty() {
                    result = self.segment(inner, segment);
                }
            };
            let Some(parts) = parts else {
                program.walk_on(inner, numbers, *sheets, &mut run);
                continue;
            };
            for number in stages.lo..stages.hi {
                for part in parts {
                    for segment in part.shape.of_stage(number) {
                        shapes.place(part, segment, numbers.lo, &mut run);
                    }
                }
            }
        }
        result
    }

    /// A tile of a level begins.
    fn enter(&mut self, level: usize, indices: Vec<i64>) {
        self.levels[level].indices = indices;
        self.levels[level].stamp += 1;
        self.levels[level].counted = false;
        // Tiles of the levels inside begin with it, for any indices.
        for inner in &mut self.levels[level + 1..] {
            inner.indices.clear();
            inner.stamp += 1;
            inner.counted = false;
        }
    }

    fn segment(&mut self, tile: &Tile, segment: &Segment) -> Checked {
        let Segment {
            stage,
            number,
            classes,
            rows,
        } = *segment;
        let [x, y, _] = rows.0;
        let updates = self.program.updates(stage, classes);
        self.report.variants[stage.index()].insert(updates);
        self.report.rows += (x.len() * y.len()) as u64;
        self.report.segments += 1;
        let all = self.program.stages[stage.index()].iter().enumerate();
        for (_, class) in all.filter(|(i, _)| classes >> i & 1 == 1) {
            let mut result = Ok(());
            for_each_index(rows, |at| {
                for update in class.updates.iter() {
                    if result.is_ok() {
                        let event = Event {
                            number: self.start + number,
                            stage,
                            update,
                            at,
                        };
                        result = self.inside(tile, class, number, event);
                        if result.is_ok() {
                            result = self.event(event);
                        }
                    }
                }
            });
            result?;
        }
        Ok(())
    }

    /// An event lies where its region and its tile are.
    fn inside(&self, tile: &Tile, class: &Class, number: i64, event: Event) -> Checked {
        if !class.region.contains(event.at) {
            return Err(Box::new(TileFault::OutOfRegion { event }));
        }
        for (index, depths) in tile.depths.iter().enumerate() {
            let depth = self.depth(index, class, number, event.at);
            if let Some(depths) = depths.filter(|d| !d.contains(depth)) {
                return Err(Box::new(TileFault::OutOfTile {
                    event,
                    plane: index,
                    depth,
                    depths,
                }));
            }
        }
        Ok(())
    }

    /// The depth of an event, by definition.
    fn depth(&self, plane: usize, class: &Class, number: i64, at: PerAxis<i64>) -> i64 {
        let lead = class.leads[plane];
        let plane = &self.program.planes[plane];
        let along: i64 = Axis::ALL
            .iter()
            .map(|&a| {
                let place = 2 * at[a] + class.position[a];
                let place = match self.program.fold(a) {
                    Some(fold) => place.min(fold - place),
                    None => place,
                };
                plane.form[a] * place
            })
            .sum();
        plane.slope * number + lead - along
    }

    fn event(&mut self, event: Event) -> Checked {
        let update = &self.scheme.stages[event.stage.index()].updates[event.update];
        // Elsewhere rows run over a plane of zeros, and the computed values are dropped.
        let acts = update.region.contains(event.at);
        if acts {
            self.report.events += 1;
            for (level, report) in self.levels.iter_mut().zip(&mut self.report.levels) {
                if !level.counted {
                    level.counted = true;
                    report.tiles += 1;
                }
            }
            for read in update.reads() {
                self.read(event, *read)?;
            }
        }
        let target = update.target;
        let version = self.versions.newest(target, event.number) + 1;
        let time_levels = i64::from(self.scheme.component(target).time_levels);
        let place = self
            .memory
            .place(target, self.versions.time_level(target, version), event.at);
        let expected = self.versions.acted(target, version - time_levels, event.at);
        let found = self.memory.versions[place];
        if found != expected {
            let first = self.versions.event(target, expected, event.at);
            return Err(Box::new(TileFault::WrongTurn {
                event,
                expected,
                found,
                crossing: self.against(first, Some(event)),
            }));
        }
        let race = |run: &Self, kind, earlier, read| {
            run.race(kind, target, event.at, earlier, event, read)
        };
        if let Some(writer) = self.memory.writer[place] {
            race(self, Kind::Output, writer, None)?;
        }
        for reader in &self.memory.readers[place] {
            race(self, Kind::Anti, reader.tile, Some(reader.read))?;
        }
        self.memory.versions[place] = version;
        self.memory.writer[place] = Some(self.tiles.len() as u32 - 1);
        self.memory.readers[place].clear();
        if acts {
            for (n, level) in self.levels.iter().enumerate() {
                if self.memory.stored[n][place] != level.stamp {
                    self.memory.stored[n][place] = level.stamp;
                    self.report.levels[n].stores += 1;
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, event: Event, read: Read) -> Checked {
        let id = read.component;
        let at = PerAxis::from_fn(|a| event.at[a] + i64::from(read.offset[a]));
        let held = Axis::ALL
            .iter()
            .all(|&a| self.layout.visible(a).contains(at[a]));
        if !held {
            return Err(Box::new(TileFault::OutOfBounds { event, read }));
        }
        let Some((at, zero)) = source(self.scheme, id, at) else {
            return Ok(());
        };
        let version = self.versions.newest(id, event.number) - i64::from(read.age);
        let place = self
            .memory
            .place(id, self.versions.time_level(id, version), at);
        let expected = self.versions.acted(id, version, at);
        let found = self.memory.versions[place];
        if found != expected {
            // Either the event that computes the version has not run yet, or the event that takes it away has run
            // already.
            let producer = self.versions.event(id, expected, at);
            let taker = self.versions.event(id, found, at);
            let crossing = if found < expected {
                self.against(producer, Some(event))
            } else {
                self.against(Some(event), taker)
            };
            return Err(Box::new(TileFault::WrongVersion {
                event,
                read,
                expected,
                found,
                crossing,
            }));
        }
        if let Some(writer) = self.memory.writer[place] {
            self.race(Kind::Flow, id, at, writer, event, Some(read))?;
        }
        let tile = self.tiles.len() as u32 - 1;
        let track = self.tiles[tile as usize].track;
        let readers = &mut self.memory.readers[place];
        let (tiles, group) = (&self.tiles, self.group);
        let own = readers.iter_mut().find(|r| {
            let other = &tiles[r.tile as usize];
            other.track == track && other.group == group
        });
        match own {
            Some(reader) => *reader = Reader { tile, read },
            None => readers.push(Reader { tile, read }),
        }
        if zero {
            return Ok(());
        }
        self.report.reads += 1;
        for (n, level) in self.levels.iter().enumerate() {
            let known = [&self.memory.loaded[n], &self.memory.stored[n]];
            if known.iter().all(|list| list[place] != level.stamp) {
                self.memory.loaded[n][place] = level.stamp;
                self.report.levels[n].loads += 1;
            }
        }
        Ok(())
    }

    /// The running tile touches a place that `earlier` touched: is it ordered after it?
    fn race(
        &self,
        kind: Kind,
        component: ComponentId,
        at: PerAxis<i64>,
        earlier: u32,
        event: Event,
        read: Option<Read>,
    ) -> Checked {
        let Some(later) = self.tiles.last() else {
            return Ok(());
        };
        let same = earlier as usize + 1 == self.tiles.len();
        let earlier = &self.tiles[earlier as usize];
        let ordered =
            earlier.group < later.group || same || self.clock[earlier.track] > earlier.sequence;
        if ordered {
            return Ok(());
        }
        let pairs = || earlier.indices.iter().zip(&later.indices);
        let against = pairs().position(|(a, b)| a > b);
        let differing = against.or_else(|| pairs().position(|(a, b)| a != b));
        let crossing = match differing {
            Some(cut) => Crossing::Cut {
                level: 0,
                cut,
                indices: [earlier.indices[cut], later.indices[cut]],
            },
            None if earlier.time_block == later.time_block => Crossing::Fold,
            None => Crossing::TimeBlock,
        };
        let name = |tile: &Outer| TileName {
            time_block: tile.time_block,
            indices: tile.indices.clone(),
        };
        Err(Box::new(TileFault::Race {
            kind,
            component,
            at,
            earlier: name(earlier),
            later: name(later),
            event,
            read,
            crossing,
        }))
    }

    /// The outermost cut that puts `first` behind `then`.
    fn against(&self, first: Option<Event>, then: Option<Event>) -> Option<Crossing> {
        let (first, then) = (first?, then?);
        for (level, cuts) in self.program.levels.iter().enumerate() {
            for (cut, plane) in cuts.iter().enumerate() {
                let indices = [self.index(plane, first)?, self.index(plane, then)?];
                if indices[0] > indices[1] {
                    return Some(Crossing::Cut {
                        level,
                        cut,
                        indices,
                    });
                }
            }
        }
        None
    }

    /// The index of an event along a cut.
    fn index(&self, cut: &PlaneCut, event: Event) -> Option<i64> {
        let classes = &self.program.stages[event.stage.index()];
        let class = classes.iter().find(|c| c.updates.contains(event.update))?;
        let depth = self.depth(cut.plane, class, event.number - self.start, event.at);
        Some(depth.div_euclid(cut.pitch))
    }

    /// Everything has its last version.
    fn finish(&self, steps: i64) -> Checked {
        for id in self.scheme.component_ids() {
            let last = self.versions.last(id, steps);
            for age in 0..i64::from(self.scheme.component(id).time_levels) {
                let version = last - age;
                let mut result = Ok(());
                for_each_index(self.scheme.extent(id), |at| {
                    let place = self
                        .memory
                        .place(id, self.versions.time_level(id, version), at);
                    let expected = self.versions.acted(id, version, at);
                    let found = self.memory.versions[place];
                    if result.is_ok() && found != expected {
                        result = Err(Box::new(TileFault::Missing {
                            component: id,
                            at,
                            expected,
                            found,
                            event: self.versions.event(id, expected, at),
                        }));
                    }
                });
                result?;
            }
        }
        Ok(())
    }
}

/// The index along a cut of a tile that the cut has narrowed.
fn index_of(cut: &PlaneCut, tile: &Tile) -> i64 {
    tile.depths[cut.plane].map_or(0, |d| d.lo.div_euclid(cut.pitch))
}
