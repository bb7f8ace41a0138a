//! What a tower loads, keeps and stores.
//!
//! A *tower* is a tile of two faces over the outer and the middle axis. From stage to stage its rows move by the slopes; after a
//! *period* of so many steps everything repeats, displaced by the [`Towers::advance`], with the same slots. So what a tower that no
//! end of the grid cuts does is known before it runs, in exact integers, whatever its place and height.
//!
//! A *place* is a row of memory. Between a tower's first and its last touch of a place, only the tower itself writes it: whoever
//! else writes it is ordered before or after the tower, as the tower reads or writes it on both sides. This is a *life*. A value
//! is loaded if the first touch reads it, kept until the last one, and stored after the last write.
//!
//! All places are relative to the tower's *origin*, which lies at index (0, 0) when a period starts. Towers may lie differently to the
//! lattice: each such *alignment* has sets of its own (towers of odd width with half-integer slopes have two).

mod geometry;
mod ring;
mod room;
#[cfg(test)]
mod tests;

use super::{Class, TileProgram};
use crate::lattice::Axis;
use crate::layout::{Layout, RowId};
use crate::scheme::{Read, Scheme, StageId, Update};
use geometry::Geometry;
pub use ring::{Halves, Rings, Seam, Window};
pub use room::{Part, Room, without_ghosts};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A row of memory, relative to the origin of a tower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub x: i64,
    pub y: i64,
    pub row: RowId,
}

/// An update of one row by a tower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Own {
    pub x: i64,
    pub y: i64,
    /// Index into the updates of the stage.
    pub update: usize,
}

/// What happens to a place in a stage; what is read is read before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Counted from the start of the period in which the life begins.
    pub stage: usize,
    /// Some update reads it at its own index along the inner axis.
    pub read: bool,
    /// Some update reads it at another index along the inner axis ([`is_tapped`]).
    pub tapped: bool,
    /// It is the old value of an update that writes it.
    pub old: bool,
    /// The update that writes it.
    pub write: Option<usize>,
}

impl Touch {
    fn reads(&self) -> bool {
        self.read || self.tapped || self.old
    }
}

/// A place from the first to the last touch by the tower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// Relative to the origin of the period in which the life begins.
    pub place: Place,
    /// At most one per stage, ascending; not empty.
    pub touches: Vec<Touch>,
}

impl Life {
    /// The stage of the first touch, in the period where the life begins.
    pub fn first(&self) -> usize {
        self.touches[0].stage
    }

    pub fn last(&self) -> usize {
        self.touches[self.touches.len() - 1].stage
    }

    /// Whether the value comes from memory.
    pub fn is_loaded(&self) -> bool {
        self.touches[0].reads()
    }

    /// The stages of its writes, ascending.
    pub fn writes(&self) -> impl DoubleEndedIterator<Item = usize> {
        let written = self.touches.iter().filter(|t| t.write.is_some());
        written.map(|t| t.stage)
    }

    /// The stage of the last write, after which the value is stored; `None` if the tower only reads it.
    pub fn stored(&self) -> Option<usize> {
        self.writes().next_back()
    }
}

/// The sets of one stage of a period, each ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageSets {
    /// Rows computed.
    pub own: Vec<Own>,
    /// Places that are read, other than as old values.
    pub need: Vec<Place>,
    /// Places whose old values the updates of `own` need.
    pub old: Vec<Place>,
    /// Places of `need` and `old` that enter: they come from memory.
    pub strip: Vec<Place>,
    /// Places of `own` that are written for the last time: they go to memory.
    pub leave: Vec<Place>,
}

/// What towers of one alignment do in a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residency {
    /// Where the tile whose origin is index (0, 0) at stage 0 starts: its depths along the two cuts.
    pub start: [i64; 2],
    /// The lives that begin in a period, ascending.
    pub lives: Vec<Life>,
    /// Per stage of the period.
    pub stages: Vec<StageSets>,
}

/// The towers of a tile program.
#[derive(Clone, Debug, PartialEq)]
pub struct Towers {
    /// Steps of a period: a multiple of the scheme's phases, with two stages at least, so that in one there is time to load for the next.
    pub steps: u64,
    /// From the origin of a period to that of the next one, in cells along the outer and the middle axis.
    pub advance: [i64; 2],
    /// One for each way to lie on the lattice.
    pub alignments: Vec<Residency>,
    /// How they close around periodic axes.
    pub rings: Rings,
    geometry: Geometry,
    adjacent: bool,
    /// The classes of the tile program, per stage of a step.
    classes: Vec<Vec<Class>>,
}

/// Why a tile program has no towers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It needs one level of two cuts over the outer and the middle axis.
    Faces,
    /// A periodic axis is folded, or too short for the faces, or they do not close around it.
    Ring,
    /// The tower does not move, or only returns to the lattice after too many steps.
    Advance,
    /// It has more rows than a tower can keep.
    Size,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unfit::Faces => "towers are cut by two faces over the first two axes",
            Unfit::Ring => {
                "a periodic axis is shorter than four towers, or its faces do not close around it"
            }
            Unfit::Advance => "the tower does not come back to the lattice within a few steps",
            Unfit::Size => "the tower is too wide",
        })
    }
}

impl std::error::Error for Unfit {}

/// Steps after which a tower has to lie on the lattice as before.
const MOST_STEPS: u64 = 16;
/// Ways to lie on the lattice.
const MOST_ALIGNMENTS: usize = 16;

/// The sets of the towers of a tile program whose only level has two cuts over the first two axes.
pub fn towers(scheme: &Scheme, layout: &Layout, program: &TileProgram) -> Result<Towers, Unfit> {
    let geometry = Geometry::new(program)?;
    let stages = scheme.stages.len() as i64;
    let phases = u64::from(scheme.phases());
    let period = (1..=MOST_STEPS / phases.max(1)).find_map(|n| {
        let steps = n * phases;
        let advance = geometry.advance(steps as i64 * stages)?;
        (advance != [0, 0] && steps as i64 * stages > 1).then_some((steps, advance))
    });
    let (steps, advance) = period.ok_or(Unfit::Advance)?;
    let rings = Rings::new(scheme, program, &geometry)?;
    if rings.cells[1].is_some() && advance[1] != 0 {
        return Err(Unfit::Ring);
    }
    let tracer = Tracer::new(scheme, layout, program, &geometry, steps, advance);
    let starts = geometry.alignments(&rings.generators())?;
    let alignments: Result<Vec<Residency>, Unfit> = starts
        .into_iter()
        .map(|start| tracer.trace(start))
        .collect();
    let alignments = alignments?;
    let adjacent = adjacent(scheme, layout, program, &geometry, steps as i64 * stages);
    Ok(Towers {
        steps,
        advance,
        alignments,
        rings,
        geometry,
        adjacent,
        classes: program.stages.clone(),
    })
}

/// See [`Towers::are_adjacent`].
fn adjacent(
    scheme: &Scheme,
    layout: &Layout,
    program: &TileProgram,
    geometry: &Geometry,
    period: i64,
) -> bool {
    let count = scheme.stages.len() as i64;
    let phase = |number: i64| (number.div_euclid(count) % i64::from(scheme.phases().max(1))) as u32;
    let stage = |number: i64| StageId(number.rem_euclid(count) as u32);
    let class_of = |number: i64, index: usize| {
        let classes = &program.stages[stage(number).index()];
        classes.iter().find(|c| c.updates.contains(index))
    };
    // The class whose update in a stage writes a row.
    let writer = |number: i64, row: RowId| {
        let updates = &scheme.stages[stage(number).index()].updates;
        let own =
            |u: &Update| layout.target_row(scheme, stage(number), phase(number), u.target) == row;
        updates
            .iter()
            .position(own)
            .and_then(|index| class_of(number, index))
    };
    let number_of = |n: i64| period + n;
    (0..period).map(number_of).all(|number| {
        let updates = &scheme.stages[stage(number).index()].updates;
        updates.iter().enumerate().all(|(index, update)| {
            let Some(class) = class_of(number, index) else {
                return true;
            };
            let own = layout.target_row(scheme, stage(number), phase(number), update.target);
            let reads = update.body.reads().map(|read| {
                let [x, y, _] = read.offset.0;
                (
                    layout.read_row(scheme, stage(number), phase(number), read),
                    [x, y].map(i64::from),
                )
            });
            reads.chain([(own, [0, 0])]).all(|(row, by)| {
                let before = (number - period..number)
                    .rev()
                    .find_map(|n| Some((n, writer(n, row)?)));
                let after = (number + 1..=number + period).find_map(|n| Some((n, writer(n, row)?)));
                let near = |(n, other): (i64, &Class)| {
                    // The difference depends on where the row is, but is largest at some place of a pitch.
                    geometry.farthest((number, class, [0, 0]), (n, other, by)) <= (n - number).abs()
                };
                before.is_none_or(near) && after.is_none_or(near)
            })
        })
    })
}

impl Towers {
    /// The alignment of a tile, and the index of its origin at stage 0 of a time block.
    pub fn locate(&self, tile: [i64; 2]) -> Option<(usize, [i64; 2])> {
        self.locate_start(self.rings.start(tile))
    }

    fn locate_start(&self, start: [i64; 2]) -> Option<(usize, [i64; 2])> {
        let (near, origin) = self.geometry.reduce(start);
        let found = self.alignments.iter().position(|a| a.start == near);
        found.map(|alignment| (alignment, origin))
    }

    /// How deep a row lies in a tower, along both cuts, from 0 on: that of an update in a stage of a period.
    pub fn depths(&self, alignment: usize, number: usize, own: Own) -> Option<[i64; 2]> {
        let of = self.classes.get(number % self.classes.len().max(1))?;
        let class = of.iter().find(|c| c.updates.contains(own.update))?;
        let start = self.alignments.get(alignment)?.start;
        Some(
            self.geometry
                .within(start, number as i64, class, [own.x, own.y]),
        )
    }

    /// Whether a tower that is m stages ahead of another one depends on it only if their indices differ by at most m along each face, and
    /// the other way round. Then it is enough that a tower waits, before each stage, until its neighbours with an index one lower along one
    /// face or both have done all stages before: they have waited for theirs.
    pub fn are_adjacent(&self) -> bool {
        self.adjacent
    }

    /// Cells that a tower advances by one stage, on average over the alignments: the area of a tile.
    pub fn cells(&self) -> f64 {
        self.geometry.cells()
    }

    /// Values loaded and stored per index along the inner axis and period, on average over the alignments.
    pub fn moved(&self) -> [f64; 2] {
        let mean = |count: fn(&Residency) -> usize| {
            let sum: usize = self.alignments.iter().map(count).sum();
            sum as f64 / self.alignments.len() as f64
        };
        [mean(Residency::loads), mean(Residency::stores)]
    }

    /// The same as bytes per cell-step.
    pub fn bytes_per_cell(&self, scheme: &Scheme) -> f64 {
        let [loads, stores] = self.moved();
        (loads + stores) * scheme.precision.bytes() as f64 / (self.cells() * self.steps as f64)
    }

    /// Values that all towers of a column together load and store per tower and period, each counted once, on average: towers whose
    /// indices have the same sum form a column.
    pub fn moved_by_column(&self) -> [f64; 2] {
        let ways = self.geometry.tiles_around_column();
        let mut loads = BTreeSet::new();
        let mut stores = BTreeSet::new();
        for start in &ways.starts {
            let Some((alignment, origin)) = self.locate_start(*start) else {
                continue;
            };
            for life in &self.alignments[alignment].lives {
                let key = ways.canonical(
                    self.advance,
                    [life.place.x + origin[0], life.place.y + origin[1]],
                );
                if life.is_loaded() {
                    loads.insert((key, life.place.row));
                }
                if life.stored().is_some() {
                    stores.insert((key, life.place.row));
                }
            }
        }
        let towers = ways.starts.len() as f64;
        [loads.len() as f64 / towers, stores.len() as f64 / towers]
    }
}

impl Residency {
    /// Values loaded per index along the inner axis and period.
    pub fn loads(&self) -> usize {
        self.lives.iter().filter(|l| l.is_loaded()).count()
    }

    /// Values stored per index along the inner axis and period.
    pub fn stores(&self) -> usize {
        self.lives.iter().filter(|l| l.stored().is_some()).count()
    }

    /// Values that are kept from a stage of a period to the next one.
    pub fn kept(&self, stage: usize) -> usize {
        let stages = self.stages.len();
        self.lives
            .iter()
            .map(|l| {
                (l.first()..l.last())
                    .filter(|k| k % stages == stage)
                    .count()
            })
            .sum()
    }

    /// The most values that are kept between two stages.
    pub fn most_kept(&self) -> usize {
        let stages = 0..self.stages.len();
        stages.map(|s| self.kept(s)).max().unwrap_or(0)
    }
}

/// Follows a tower through time.
struct Tracer<'a> {
    scheme: &'a Scheme,
    layout: &'a Layout,
    program: &'a TileProgram,
    geometry: &'a Geometry,
    steps: i64,
    advance: [i64; 2],
}

impl<'a> Tracer<'a> {
    fn new(
        scheme: &'a Scheme,
        layout: &'a Layout,
        program: &'a TileProgram,
        geometry: &'a Geometry,
        steps: u64,
        advance: [i64; 2],
    ) -> Self {
        Tracer {
            scheme,
            layout,
            program,
            geometry,
            steps: steps as i64,
            advance,
        }
    }

    fn trace(&self, start: [i64; 2]) -> Result<Residency, Unfit> {
        let per_period = self.steps * self.scheme.stages.len() as i64;
        // In a period all places lie in a box, which moves on; so a life lasts no longer than the box takes to pass.
        let mut first = BTreeMap::new();
        for number in 0..per_period {
            self.stage(start, number, &mut first)?;
        }
        let axis = usize::from(self.advance[0] == 0);
        let along = |p: &Place| [p.x, p.y][axis];
        let [lo, hi] =
            [first.keys().map(along).min(), first.keys().map(along).max()].map(|v| v.unwrap_or(0));
        let longest = (hi - lo) / self.advance[axis].abs() + 1;
        if longest > MOST_PERIODS {
            return Err(Unfit::Size);
        }
        let mut touches = BTreeMap::new();
        for number in 0..per_period * (2 * longest + 1) {
            self.stage(start, number, &mut touches)?;
        }
        // Lives that begin in this period have no touch before the first period, nor after the last one.
        let period = longest;
        let begins = |t: &[Touch]| t[0].stage as i64 / per_period == period;
        let lives: Vec<Life> = touches
            .into_iter()
            .filter(|(_, t)| begins(t))
            .map(|(place, mut touches)| {
                for touch in &mut touches {
                    touch.stage -= (period * per_period) as usize;
                }
                Life {
                    place: self.moved(place, -period),
                    touches,
                }
            })
            .collect();
        let stages = self.sets(&lives, per_period as usize);
        Ok(Residency {
            start,
            lives,
            stages,
        })
    }

    /// A place as seen from another period.
    fn moved(&self, place: Place, periods: i64) -> Place {
        Place {
            x: place.x + periods * self.advance[0],
            y: place.y + periods * self.advance[1],
            row: place.row,
        }
    }

    /// Enters what a stage touches; stages in ascending order.
    fn stage(
        &self,
        start: [i64; 2],
        number: i64,
        touches: &mut BTreeMap<Place, Vec<Touch>>,
    ) -> Result<(), Unfit> {
        let count = self.scheme.stages.len() as i64;
        let stage = StageId((number % count) as u32);
        let phase = (number / count % i64::from(self.scheme.phases().max(1))) as u32;
        let updates = &self.scheme.stages[stage.index()].updates;
        for class in &self.program.stages[stage.index()] {
            let rows = self.geometry.rows(start, number, class)?;
            for index in class.updates.iter() {
                let update = &updates[index];
                for &[x, y] in &rows {
                    let mut touch = |place, mark: &dyn Fn(&mut Touch)| {
                        let of: &mut Vec<Touch> = touches.entry(place).or_default();
                        if of.last().is_none_or(|t| t.stage != number as usize) {
                            of.push(Touch {
                                stage: number as usize,
                                read: false,
                                tapped: false,
                                old: false,
                                write: None,
                            });
                        }
                        if let Some(last) = of.last_mut() {
                            mark(last);
                        }
                    };
                    let target = Place {
                        x,
                        y,
                        row: self
                            .layout
                            .target_row(self.scheme, stage, phase, update.target),
                    };
                    for read in update.body.reads() {
                        let place = Place {
                            x: x + i64::from(read.offset[Axis::OUTER]),
                            y: y + i64::from(read.offset[Axis::MIDDLE]),
                            row: self.layout.read_row(self.scheme, stage, phase, read),
                        };
                        let tapped = place != target && is_tapped(self.scheme, self.layout, read);
                        touch(place, &|t| match (tapped, place == target) {
                            (true, _) => t.tapped = true,
                            (_, true) => t.old = true,
                            (_, false) => t.read = true,
                        });
                    }
                    for coef in update.body.coefs().chain(update.mask) {
                        let row = self.layout.coef_row(coef);
                        touch(Place { x, y, row }, &|t| t.read = true);
                    }
                    touch(target, &|t| {
                        t.old |= keeps_old(self.scheme, update);
                        t.write = Some(index);
                    });
                }
            }
        }
        Ok(())
    }

    fn sets(&self, lives: &[Life], per_period: usize) -> Vec<StageSets> {
        let mut sets = vec![StageSets::default(); per_period];
        for life in lives {
            for touch in &life.touches {
                let stage = &mut sets[touch.stage % per_period];
                let place = self.moved(life.place, -((touch.stage / per_period) as i64));
                if touch.read || touch.tapped {
                    stage.need.push(place);
                }
                if touch.old {
                    stage.old.push(place);
                }
                if touch.reads() && touch.stage == life.first() {
                    stage.strip.push(place);
                }
                if let Some(update) = touch.write {
                    let Place { x, y, .. } = place;
                    stage.own.push(Own { x, y, update });
                    if life.stored() == Some(touch.stage) {
                        stage.leave.push(place);
                    }
                }
            }
        }
        for stage in &mut sets {
            stage.own.sort_unstable();
            for list in [
                &mut stage.need,
                &mut stage.old,
                &mut stage.strip,
                &mut stage.leave,
            ] {
                list.sort_unstable();
            }
        }
        sets
    }
}

/// Periods that a value may be kept.
const MOST_PERIODS: i64 = 256;

/// Whether a read finds values of other indices along the inner axis: at an offset, or because the rows that are read are shorter than
/// others, so that the last indices of those find ghosts there.
pub fn is_tapped(scheme: &Scheme, layout: &Layout, read: &Read) -> bool {
    let end = scheme.extent(read.component)[Axis::INNER].hi;
    read.offset[Axis::INNER] != 0 || end < layout.extent[Axis::INNER]
}

/// Whether an update needs the old value of its target where it acts not everywhere: behind a mask, or along the inner axis.
pub fn keeps_old(scheme: &Scheme, update: &Update) -> bool {
    let live = scheme.grid.live(scheme.component(update.target).position);
    update.mask.is_some() || update.region[Axis::INNER] != live[Axis::INNER]
}
