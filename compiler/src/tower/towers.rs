//! The towers of a tile program: how they lie, move and close around periodic axes.

use super::geometry::{Event, Geometry};
use super::group::{Group, PerFace};
use super::mirrored_reads::MirroredReads;
use super::numbering::{Numbering, View};
use super::residency::{Residency, RowUpdate, StageAt, Tracer};
use super::ring::Rings;
use super::unfit::Unfit;
use super::zones::Variants;
use crate::cone::mirrored_offsets;
use crate::distinct::distinct;
use crate::lattice::{Axis, div_floor};
use crate::layout::{Layout, RowId};
use crate::scheme::{Read, Scheme, Stage, Update};
use crate::tile::{Checked, Class, TileProgram};

/// The towers of a tile program whose only level has two cuts over the first two axes.
///
/// Towers may lie differently to the lattice: each such *alignment* has rows of its own (towers of odd width with
/// half-integer slopes have two).
#[derive(Clone, Debug, PartialEq)]
pub struct Towers {
    /// Steps of a period: a multiple of the scheme's phases, with two stages at least, so that in one there is time to
    /// load for the next.
    pub steps: u64,
    /// From the origin of a period to that of the next one.
    pub advance: Group,
    /// One for each way to lie on the lattice.
    pub alignments: Vec<Residency>,
    /// How they close around periodic axes.
    pub rings: Rings,
    /// The variants of the code of interior periods.
    pub variants: Variants,
    /// How predicated periods read beyond mirrors.
    pub mirrored: MirroredReads,
    /// The numbering of threads to which live ranges and programs refer.
    pub numbering: Numbering,
    pub(super) geometry: Geometry,
    /// See [`Dependences::span`].
    span: Option<i64>,
    /// The classes of the tile program, per stage of a step.
    pub(super) classes: Vec<Vec<Class>>,
}

/// Values that a tower moves between memory and the chip, per index along the inner axis and period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    pub loads: f64,
    pub stores: f64,
}

/// A tower's way to lie on the lattice, and the group of its origin at stage 0 of a time block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    pub alignment: usize,
    pub origin: Group,
}

/// Steps after which a tower has to lie on the lattice as before.
const MOST_STEPS: u64 = 16;

impl Towers {
    pub fn new(
        scheme: &Scheme,
        layout: &Layout,
        program: &Checked<TileProgram>,
        numbering: Numbering,
    ) -> Result<Towers, Unfit> {
        let View { scheme, layout } = &numbering.view(scheme, layout);
        // No tower has rows of such a stage, so none would go on through it for towers behind it.
        let idle = |stage: &Stage| stage.updates.iter().all(|update| update.region.is_empty());
        if scheme.stages.iter().any(idle) {
            return Err(Unfit::Idle);
        }
        let geometry = Geometry::new(program)?;
        let stages = scheme.stages.len() as i64;
        let phases = u64::from(scheme.phases());
        let period = (1..=MOST_STEPS / phases.max(1)).find_map(|n| {
            let steps = n * phases;
            let advance = geometry.advance(steps as i64 * stages)?;
            let moves = advance != Group::default();
            (moves && steps as i64 * stages > 1).then_some((steps, advance))
        });
        let (steps, advance) = period.ok_or(Unfit::Advance)?;
        let rings = Rings::new(scheme, program, &geometry)?;
        if rings.cells[1].is_some() && advance.y != 0 {
            return Err(Unfit::Ring);
        }
        let tracer = Tracer {
            scheme,
            layout,
            program,
            geometry: &geometry,
            steps,
            advance,
        };
        let starts = geometry.alignments(&rings.generators())?;
        let alignments: Result<Vec<Residency>, Unfit> = starts
            .into_iter()
            .map(|start| tracer.trace(start))
            .collect();
        let alignments = alignments?;
        let dependences = Dependences {
            scheme,
            layout,
            program,
            geometry: &geometry,
            period: steps as i64 * stages,
        };
        let span = dependences.span();
        // Rows that ends of the grid cut off keep their values.
        let keeps_all = alignments.iter().all(Residency::keeps_all);
        let mut towers = Towers {
            steps,
            advance,
            alignments,
            rings,
            variants: Variants::default(),
            mirrored: match keeps_all {
                true => MirroredReads::new(scheme),
                false => MirroredReads::default(),
            },
            numbering,
            geometry,
            span,
            classes: program.stages.clone(),
        };
        towers.variants = match towers.may_predicate(scheme) {
            true => Variants::new(scheme, layout).with_predicates(),
            false => Variants::new(scheme, layout),
        };
        Ok(towers)
    }

    /// Where a tile lies, by its indices along both faces.
    pub fn locate(&self, tile: PerFace<i64>) -> Option<Located> {
        self.locate_start(self.rings.start(tile))
    }

    fn locate_start(&self, start: PerFace<i64>) -> Option<Located> {
        let (near, origin) = self.geometry.reduce(start);
        let found = self.alignments.iter().position(|a| a.start == near);
        found.map(|alignment| Located { alignment, origin })
    }

    /// After how many tiles along the second face towers lie on the lattice as before, if the middle axis is not
    /// periodic, and the displacement to these towers.
    pub(super) fn repeats(&self) -> Option<(usize, Group)> {
        self.geometry.repeats()
    }

    /// Whether the neighbours of a tower with a lower index along one face or both lie no less far along the way.
    pub fn follow_neighbours(&self) -> bool {
        let along = self.geometry.outer_by_start();
        along.iter().all(|by| by * self.advance.x.signum() <= 0)
    }

    /// How deep a row lies in a tower, along both faces, from 0 on: that of an update in a stage of a period.
    pub fn depths(
        &self,
        alignment: usize,
        stage: usize,
        update: RowUpdate,
    ) -> Option<PerFace<i64>> {
        self.depths_at(alignment, stage as i64, update)
    }

    /// The same of a row that may lie in another tower, in a stage that may lie before the period.
    fn depths_at(&self, alignment: usize, stage: i64, update: RowUpdate) -> Option<PerFace<i64>> {
        let stages = self.classes.len().max(1) as i64;
        let of = self.classes.get(stage.rem_euclid(stages) as usize)?;
        let class = of.iter().find(|c| c.updates.contains(update.update))?;
        let start = self.alignments.get(alignment)?.start;
        let event = Event {
            stage,
            class,
            at: update.at,
        };
        Some(self.geometry.within(start, event))
    }

    /// By how many, along one of the faces, the index of the tower differs that runs an update in a stage.
    pub(super) fn tiles_to(&self, alignment: usize, stage: i64, update: RowUpdate) -> Option<i64> {
        let depths = self.depths_at(alignment, stage, update)?;
        let pitches = self.geometry.pitches();
        let tiles = |face: usize| div_floor(depths[face], pitches[face]).abs();
        Some(tiles(0).max(tiles(1)))
    }

    /// Whether waits for neighbours reach all towers on which a tower depends: towers of which one is m stages ahead of
    /// the other depend on each other only if their indices differ by at most m along each face. Then it is enough that
    /// a tower waits, before each stage, until its neighbours with an index one lower along one face or both have done
    /// all stages before: they have waited for theirs.
    pub fn waits_reach_all(&self) -> bool {
        self.span.is_some()
    }

    /// Rows beyond an end of the grid in which a tower still runs. Where a dependence spans two tiles, the tower
    /// between them passes the wait on, so it has to run until the last row that both may write. Between two stages
    /// that change a row it may have rows of other components only: their ends lie half a cell farther in, and their
    /// nearest row is the next one. 0 where dependences span one tile, and in schemes with one stage.
    pub(super) fn margin(&self) -> i64 {
        let across = self.span.is_some_and(|span| span > 1);
        if across && self.classes.len() > 1 {
            2
        } else {
            0
        }
    }

    /// Stages of a period.
    pub fn per_period(&self) -> i64 {
        self.steps as i64 * self.classes.len() as i64
    }

    /// Cells that a tower advances by one stage, on average over the alignments: the area of a tile.
    pub fn cells(&self) -> f64 {
        self.geometry.cells()
    }

    /// The traffic of a tower, on average over the alignments.
    pub fn traffic(&self) -> Traffic {
        let mean = |count: fn(&Residency) -> usize| {
            let sum: usize = self.alignments.iter().map(count).sum();
            sum as f64 / self.alignments.len() as f64
        };
        Traffic {
            loads: mean(Residency::loads),
            stores: mean(Residency::stores),
        }
    }

    /// The same in bytes per cell-step.
    pub fn bytes_per_cell(&self, scheme: &Scheme) -> f64 {
        let Traffic { loads, stores } = self.traffic();
        (loads + stores) * scheme.precision.bytes() as f64 / (self.cells() * self.steps as f64)
    }

    /// The traffic of all towers of a column together, per tower, each value counted once. Towers whose indices have
    /// the same sum form a column.
    pub fn traffic_of_column(&self) -> Traffic {
        let column = self.geometry.column();
        let (mut loads, mut stores) = (Vec::new(), Vec::new());
        for start in &column.starts {
            let Some(Located { alignment, origin }) = self.locate_start(*start) else {
                continue;
            };
            for live in &self.alignments[alignment].live_ranges {
                let at = column.canonical(self.advance, live.row.at + origin);
                let row = (at, live.row.row);
                if live.is_loaded() {
                    loads.push(row);
                }
                if live.stored().is_some() {
                    stores.push(row);
                }
            }
        }
        let towers = column.starts.len() as f64;
        Traffic {
            loads: distinct(loads).len() as f64 / towers,
            stores: distinct(stores).len() as f64 / towers,
        }
    }
}

/// The dependences among the towers of a tile program.
struct Dependences<'a> {
    scheme: &'a Scheme,
    layout: &'a Layout,
    program: &'a TileProgram,
    geometry: &'a Geometry,
    /// Stages of a period.
    period: i64,
}

impl Dependences<'_> {
    /// The most by which the indices of a tower and one on which it depends differ along a face; `None` where that is
    /// more than the stages between them.
    fn span(&self) -> Option<i64> {
        (self.period..2 * self.period)
            .try_fold(0, |most, number| Some(most.max(self.span_of(number)?)))
    }

    fn class(&self, number: i64, update: usize) -> Option<&Class> {
        let stage = StageAt::new(self.scheme, number).stage;
        let classes = &self.program.stages[stage.index()];
        classes.iter().find(|c| c.updates.contains(update))
    }

    /// The class whose update in a stage writes a row.
    fn writer(&self, number: i64, row: RowId) -> Option<&Class> {
        let stage = StageAt::new(self.scheme, number);
        let updates = stage.updates(self.scheme);
        let own = updates
            .iter()
            .position(|u| stage.target(self.scheme, self.layout, u) == row);
        own.and_then(|update| self.class(number, update))
    }

    /// Where a read finds its values: beyond an end it may see them through a mirror.
    fn reaches(&self, update: &Update, read: &Read) -> impl Iterator<Item = Group> {
        let [target, source] = [update.target, read.component]
            .map(|component| self.scheme.component(component).position);
        let offsets = mirrored_offsets(&self.scheme.grid, target, source, read.offset);
        offsets.map(|by| Group::new(by[Axis::OUTER], by[Axis::MIDDLE]))
    }

    /// The span of states, which pass on from an update to the next one of the same kind.
    fn span_of_states(&self, number: i64, update: usize, class: &Class) -> Option<i64> {
        let stage = StageAt::new(self.scheme, number);
        let of = &stage.updates(self.scheme)[update];
        let steps = self.scheme.stages.len() as i64;
        let event = |stage: i64| Event {
            stage,
            class,
            at: Group::default(),
        };
        if of.amendments.iter().all(|a| a.advances.is_empty()) {
            return Some(0);
        }
        self.near(event(number), event(number - steps))
    }

    /// By how much the indices of the towers of two events can differ, if that is at most the stages between them.
    fn near(&self, one: Event<'_>, other: Event<'_>) -> Option<i64> {
        let far = self.geometry.farthest(one, other);
        (far <= (one.stage - other.stage).abs()).then_some(far)
    }

    /// The span of a stage: to the last writers before it, and the first ones after it, of all rows that it accesses.
    fn span_of(&self, number: i64) -> Option<i64> {
        let stage = StageAt::new(self.scheme, number);
        let mut updates = stage.updates(self.scheme).iter().enumerate();
        updates.try_fold(0, |most, (index, update)| {
            let Some(class) = self.class(number, index) else {
                return Some(most);
            };
            let own = stage.target(self.scheme, self.layout, update);
            let mut rows = update
                .reads()
                .flat_map(|read| {
                    let row = stage.read(self.scheme, self.layout, read);
                    self.reaches(update, read).map(move |by| (row, by))
                })
                .chain([(own, Group::default())]);
            let most = most.max(self.span_of_states(number, index, class)?);
            rows.try_fold(most, |most, (row, by)| {
                let mut before = (number - self.period..number).rev();
                let mut after = number + 1..=number + self.period;
                let writers = |n: i64| Some((n, self.writer(n, row)?));
                let all = [before.find_map(writers), after.find_map(writers)];
                all.into_iter()
                    .flatten()
                    .try_fold(most, |most, (n, class_of_other)| {
                        // The difference depends on where the row is, but is largest at some place of a pitch.
                        let event = Event {
                            stage: number,
                            class,
                            at: Group::default(),
                        };
                        let other = Event {
                            stage: n,
                            class: class_of_other,
                            at: by,
                        };
                        Some(most.max(self.near(event, other)?))
                    })
            })
        })
    }
}
