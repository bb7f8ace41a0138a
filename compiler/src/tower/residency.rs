//! The rows that a tower loads, keeps and stores: live ranges.
//!
//! From stage to stage the rows of a tower move by the slopes of its faces; after some steps, the *period*, everything
//! repeats, displaced by the tower's advance, with the same time levels. So the accesses of a tower that no end of the
//! grid cuts are known before it runs, in exact integers, for any place and height.
//!
//! Between a tower's first and its last access to a row of memory, only the tower itself writes it: each other tower
//! that writes it is ordered before or after this one, as this one reads or writes it on both sides. These accesses are
//! a *live range*. A value is loaded if the first access reads it, kept until the last one, and stored after the last
//! write.
//!
//! All rows are relative to the tower's *origin*, which lies at index (0, 0) when a period starts.

use super::geometry::Geometry;
use super::group::{Group, PerFace};
use super::unfit::Unfit;
use crate::lattice::Axis;
use crate::layout::{Layout, RowId};
use crate::scheme::{Body, CoefId, Read, Scheme, StageId, Update};
use crate::tile::TileProgram;
use std::collections::BTreeMap;

/// A row of memory, relative to the origin of a tower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowRef {
    pub at: Group,
    pub row: RowId,
}

impl RowRef {
    /// The same row as seen from an origin that is displaced.
    pub fn seen_from(self, displaced: Group) -> RowRef {
        RowRef {
            at: self.at - displaced,
            row: self.row,
        }
    }
}

/// An update of one row by a tower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowUpdate {
    pub at: Group,
    /// Index into the updates of the stage.
    pub update: usize,
}

/// The accesses to a row in a stage; a read sees the value before the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Counted from the start of the period in which the live range begins.
    pub stage: usize,
    /// Some update reads it at its own index along the inner axis.
    pub read: bool,
    /// Some update reads it at another index along the inner axis ([`is_cross_lane`]).
    pub cross_lane: bool,
    /// It is the old value of an update that writes it.
    pub old: bool,
    /// The update that writes it.
    pub write: Option<usize>,
}

impl Touch {
    fn new(stage: usize) -> Touch {
        Touch {
            stage,
            read: false,
            cross_lane: false,
            old: false,
            write: None,
        }
    }

    fn reads(&self) -> bool {
        self.read || self.cross_lane || self.old
    }
}

/// A row from the first to the last touch by the tower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveRange {
    /// Relative to the origin of the period in which the live range begins.
    pub row: RowRef,
    /// At most one per stage, ascending; not empty.
    pub touches: Vec<Touch>,
}

impl LiveRange {
    /// The stage of the first touch, in the period where the live range begins.
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

/// The rows of one stage of a period, each list ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageRows {
    /// Rows that are computed.
    pub updates: Vec<RowUpdate>,
    /// Rows that are read, other than as old values.
    pub read: Vec<RowRef>,
    /// Rows whose old values the updates need.
    pub old: Vec<RowRef>,
    /// Rows of `read` and `old` that enter: they come from memory.
    pub entering: Vec<RowRef>,
    /// Rows that are written for the last time: they go to memory.
    pub leaving: Vec<RowRef>,
}

/// The accesses of towers of one alignment in a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residency {
    /// Where the tile whose origin is index (0, 0) at stage 0 starts: its depths along the two faces.
    pub start: PerFace<i64>,
    /// The live ranges that begin in a period, ascending by row.
    pub live_ranges: Vec<LiveRange>,
    /// Per stage of the period.
    pub stages: Vec<StageRows>,
}

impl Residency {
    /// Values loaded per index along the inner axis and period.
    pub fn loads(&self) -> usize {
        self.live_ranges.iter().filter(|l| l.is_loaded()).count()
    }

    /// Values stored per index along the inner axis and period.
    pub fn stores(&self) -> usize {
        let stored = |l: &&LiveRange| l.stored().is_some();
        self.live_ranges.iter().filter(stored).count()
    }

    /// Values that are kept from a stage of a period to the next one.
    pub fn kept(&self, stage: usize) -> usize {
        let stages = self.stages.len();
        let kept = |l: &LiveRange| {
            let between = l.first()..l.last();
            between.filter(|k| k % stages == stage).count()
        };
        self.live_ranges.iter().map(kept).sum()
    }

    /// The most values that are kept between two stages.
    pub fn most_kept(&self) -> usize {
        let stages = 0..self.stages.len();
        stages.map(|s| self.kept(s)).max().unwrap_or(0)
    }

    /// Whether all updates need the old values of the rows that they write.
    pub fn keeps_all(&self) -> bool {
        let mut touches = self.live_ranges.iter().flat_map(|l| &l.touches);
        touches.all(|t| t.write.is_none() || t.read || t.old)
    }
}

/// A stage of a period: the stage of a step and the phase of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageAt {
    pub stage: StageId,
    pub phase: u32,
}

impl StageAt {
    /// Of a stage counted from the start of a period or of a time block.
    pub fn new(scheme: &Scheme, number: i64) -> StageAt {
        let count = scheme.stages.len() as i64;
        let phases = i64::from(scheme.phases().max(1));
        StageAt {
            stage: StageId(number.rem_euclid(count) as u32),
            phase: number.div_euclid(count).rem_euclid(phases) as u32,
        }
    }

    pub fn updates<'s>(&self, scheme: &'s Scheme) -> &'s [Update] {
        &scheme.stages[self.stage.index()].updates
    }

    /// The row of a group that an update writes.
    pub fn target(&self, scheme: &Scheme, layout: &Layout, update: &Update) -> RowId {
        layout.target_row(scheme, self.stage, self.phase, update.target)
    }

    /// The row of a group in which a read finds its value.
    pub fn read(&self, scheme: &Scheme, layout: &Layout, read: &Read) -> RowId {
        layout.read_row(scheme, self.stage, self.phase, read)
    }
}

/// Follows a tower through time.
pub(super) struct Tracer<'a> {
    pub scheme: &'a Scheme,
    pub layout: &'a Layout,
    pub program: &'a TileProgram,
    pub geometry: &'a Geometry,
    /// Of a period.
    pub steps: u64,
    /// In a period.
    pub advance: Group,
}

/// Updates of rows in a period, at most. The list of boundary periods holds fewer, and tracing more takes long.
const MOST_ROWS: usize = 28_000;

/// Periods for which a value may be kept.
const MOST_PERIODS: i64 = 256;

type Touches = BTreeMap<RowRef, Vec<Touch>>;

impl Tracer<'_> {
    /// The residency of towers that start at these depths.
    pub fn trace(&self, start: PerFace<i64>) -> Result<Residency, Unfit> {
        let per_period = self.steps as i64 * self.scheme.stages.len() as i64;
        // In a period all rows lie in a box, which moves on; so a live range lasts no longer than the box takes to
        // pass.
        let mut first = Touches::new();
        for stage in 0..per_period {
            self.stage(start, stage, &mut first)?;
        }
        let writes = first
            .values()
            .flatten()
            .filter(|touch| touch.write.is_some());
        if writes.count() > MOST_ROWS {
            return Err(Unfit::Size);
        }
        let axis = usize::from(self.advance.x == 0);
        let along = |row: &RowRef| row.at.array()[axis];
        let [lo, hi] =
            [first.keys().map(along).min(), first.keys().map(along).max()].map(|v| v.unwrap_or(0));
        let longest = (hi - lo) / self.advance.array()[axis].abs() + 1;
        if longest > MOST_PERIODS {
            return Err(Unfit::Size);
        }
        let mut touches = Touches::new();
        for stage in 0..per_period * (2 * longest + 1) {
            self.stage(start, stage, &mut touches)?;
        }
        // Live ranges that begin in this period have no touch before the first period, nor after the last one.
        let period = longest;
        let begins = |t: &[Touch]| t[0].stage as i64 / per_period == period;
        let live_ranges: Vec<LiveRange> = touches
            .into_iter()
            .filter(|(_, t)| begins(t))
            .map(|(row, mut touches)| {
                for touch in &mut touches {
                    touch.stage -= (period * per_period) as usize;
                }
                LiveRange {
                    row: row.seen_from(self.advance * period),
                    touches,
                }
            })
            .collect();
        let stages = self.rows(&live_ranges, per_period as usize);
        Ok(Residency {
            start,
            live_ranges,
            stages,
        })
    }

    /// Enters the rows that a stage touches. Stages come in ascending order.
    fn stage(&self, start: PerFace<i64>, number: i64, touches: &mut Touches) -> Result<(), Unfit> {
        let stage = StageAt::new(self.scheme, number);
        let updates = stage.updates(self.scheme);
        let mut touch = |row: RowRef, mark: &dyn Fn(&mut Touch)| {
            let of = touches.entry(row).or_default();
            if of.last().is_none_or(|t| t.stage != number as usize) {
                of.push(Touch::new(number as usize));
            }
            if let Some(last) = of.last_mut() {
                mark(last);
            }
        };
        for class in &self.program.stages[stage.stage.index()] {
            let groups = self.geometry.rows(start, number, class)?;
            for index in class.updates.iter() {
                let update = &updates[index];
                let target = stage.target(self.scheme, self.layout, update);
                for &at in &groups {
                    let target = RowRef { at, row: target };
                    for read in update.reads() {
                        let row = RowRef {
                            at: at + reach(read),
                            row: stage.read(self.scheme, self.layout, read),
                        };
                        let own = row == target;
                        let cross = !own && is_cross_lane(self.scheme, self.layout, read);
                        touch(row, &|t| match (cross, own) {
                            (true, _) => t.cross_lane = true,
                            (_, true) => t.old = true,
                            (_, false) => t.read = true,
                        });
                    }
                    for coef in row_coefs(self.scheme, update) {
                        let row = self.layout.coef_row(coef);
                        touch(RowRef { at, row }, &|t| t.read = true);
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

    fn rows(&self, live_ranges: &[LiveRange], per_period: usize) -> Vec<StageRows> {
        let mut stages = vec![StageRows::default(); per_period];
        for live in live_ranges {
            for touch in &live.touches {
                let stage = &mut stages[touch.stage % per_period];
                let periods = (touch.stage / per_period) as i64;
                let row = live.row.seen_from(self.advance * periods);
                if touch.read || touch.cross_lane {
                    stage.read.push(row);
                }
                if touch.old {
                    stage.old.push(row);
                }
                if touch.reads() && touch.stage == live.first() {
                    stage.entering.push(row);
                }
                if let Some(update) = touch.write {
                    stage.updates.push(RowUpdate { at: row.at, update });
                    if live.stored() == Some(touch.stage) {
                        stage.leaving.push(row);
                    }
                }
            }
        }
        for stage in &mut stages {
            stage.updates.sort_unstable();
            for list in [
                &mut stage.read,
                &mut stage.old,
                &mut stage.entering,
                &mut stage.leaving,
            ] {
                list.sort_unstable();
            }
        }
        stages
    }
}

/// How far a read reaches over the axes along which towers are cut.
pub fn reach(read: &Read) -> Group {
    Group::new(
        read.offset[Axis::OUTER].into(),
        read.offset[Axis::MIDDLE].into(),
    )
}

/// Whether a read finds values of other indices along the inner axis: at an offset, or because the rows that are read
/// are shorter than others, so that the last indices of the longer rows find ghosts there.
pub fn is_cross_lane(scheme: &Scheme, layout: &Layout, read: &Read) -> bool {
    let end = scheme.extent(read.component)[Axis::INNER].hi;
    read.offset[Axis::INNER] != 0 || end < layout.extent[Axis::INNER]
}

/// Whether an update needs the old value of its target where it acts not everywhere: behind a mask, or along the inner
/// axis.
pub fn keeps_old(scheme: &Scheme, update: &Update) -> bool {
    let live = scheme.grid.live(scheme.component(update.target).position);
    update.mask.is_some() || update.region[Axis::INNER] != live[Axis::INNER]
}

/// The coefficients that lie in rows of groups and that an update reads, in zones, too, with its mask.
pub fn row_coefs<'s>(scheme: &'s Scheme, update: &'s Update) -> impl Iterator<Item = CoefId> + 's {
    let coefs = update.bodies().flat_map(Body::coefs).chain(update.mask);
    coefs.filter(|coef| scheme.coefs[coef.index()].only_axis.is_none())
}
