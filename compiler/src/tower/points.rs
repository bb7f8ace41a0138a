//! Sources and probes inside of time blocks: injections into single values, and records of them, right after their
//! updates.
//!
//! A period with a cell to which a source adds, or that a probe records, is run row by row in memory, as if an end of
//! the grid cut it. After the rows of a stage, each thread looks whether a point acts on a value that it has just
//! written. So the injections, their order and the ghosts are the same as in a run stage by stage.

use super::bounds::Bounds;
use super::group::Group;
use super::numbering::Numbering;
use super::residency::RowUpdate;
use super::tasks::Task;
use super::towers::Towers;
use crate::injection::{Injections, Receiver};
use crate::lattice::{Axis, PerAxis};
use crate::layout::Layout;
use crate::scheme::{ComponentId, Scheme, StageId};
use std::collections::BTreeMap;

/// Injections into single values and records of them, in each step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    /// Injections into the same cell act in their order.
    pub injections: Vec<PointInjection>,
    pub receivers: Vec<Receiver>,
    /// Waves of a step.
    pub waves: usize,
}

/// An injection into a cell, after the updates of a stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointInjection {
    pub stage: StageId,
    pub component: ComponentId,
    pub at: PerAxis<i64>,
    pub profile: f64,
    /// Index into the waves of a step.
    pub wave: u32,
}

/// The injections into a cell and the receivers there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PointCell {
    /// In their order: profile, and the number of the wave.
    pub injections: Vec<(f64, u32)>,
    /// The numbers of the receivers that record it.
    pub records: Vec<usize>,
}

/// A row of an update with cells on which points act.
#[derive(Clone, Debug, PartialEq)]
pub struct PointRow {
    pub stage: StageId,
    /// Index into the updates of the stage.
    pub update: usize,
    pub at: Group,
    /// The index along the inner axis of thread 0.
    pub first: i64,
    /// By their index along the inner axis.
    pub cells: BTreeMap<i64, PointCell>,
}

/// A row, in a phase of the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PhasedRow {
    /// Index into the rows.
    pub row: usize,
    pub phase: u32,
    /// From the index of its plane to that plane in the array: 0 unless planes are counted on around the outer axis.
    pub planes: i64,
}

/// A stage of a period of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskStage {
    pub task: usize,
    /// Counted from the start of the time block.
    pub period: u64,
    /// Of the period.
    pub stage: usize,
}

/// The points of the towers of a time block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PointPlan {
    pub rows: Vec<PointRow>,
    /// The rows of each stage that has some.
    pub stages: BTreeMap<TaskStage, Vec<PhasedRow>>,
    /// Periods of towers that points keep from running as interior ones, and interior ones left.
    pub cut: u64,
    pub interior: u64,
}

/// A row of an update.
type RowKey = (StageId, usize, Group);

impl Points {
    /// Injections of sources and records of receivers, except sources that towers run as volume sources, like
    /// corrections.
    pub fn new(
        injections: &Injections,
        receivers: Vec<Receiver>,
        is_volume: impl Fn(usize) -> bool,
    ) -> Points {
        let sources = injections.sources.iter().enumerate();
        let points = sources.filter(|(number, _)| !is_volume(*number));
        let points = points.map(|(_, source)| source);
        let all = points.flat_map(|source| {
            source.cells.iter().map(|cell| PointInjection {
                stage: source.stage,
                component: source.component,
                at: cell.at,
                profile: cell.profile,
                wave: cell.wave,
            })
        });
        Points {
            injections: all.collect(),
            receivers,
            waves: injections.waves_per_step(),
        }
    }

    /// Whether a receiver records a value that no update changes: towers leave such a receiver out.
    pub fn leave_out(&self) -> bool {
        self.receivers.iter().any(|r| r.stage.is_none())
    }

    /// `None` where a source adds to a value that its stage does not update, or a receiver records a value that is not
    /// the newest version after its last update.
    fn rows(
        &self,
        scheme: &Scheme,
        layout: &Layout,
        numbering: Numbering,
    ) -> Option<Vec<PointRow>> {
        let updating = |stage: StageId, id: ComponentId, at: PerAxis<i64>| {
            let updates = &scheme.stages[stage.index()].updates;
            let own = updates
                .iter()
                .position(|u| u.target == id && u.region.contains(at));
            own.map(|update| (stage, update, Group::new(at[Axis::OUTER], at[Axis::MIDDLE])))
        };
        let mut rows: BTreeMap<RowKey, BTreeMap<i64, PointCell>> = BTreeMap::new();
        for add in &self.injections {
            let row = updating(add.stage, add.component, add.at)?;
            let cells = rows.entry(row).or_default();
            let cell = cells.entry(add.at[Axis::INNER]).or_default();
            cell.injections.push((add.profile, add.wave));
        }
        for (number, receiver) in self.receivers.iter().enumerate() {
            let (id, at) = (receiver.component, receiver.at);
            // A value that no update changes is recorded otherwise.
            let Some(stage) = receiver.stage else {
                continue;
            };
            let row = updating(stage, id, at)?;
            let newest = (0..scheme.phases().max(1)).all(|phase| {
                let updates = (u64::from(phase) + 1) * u64::from(scheme.updates_per_step(id));
                layout.row(id, updates) == layout.target_row(scheme, stage, phase, id)
            });
            if !newest {
                return None;
            }
            let cells = rows.entry(row).or_default();
            let cell = cells.entry(at[Axis::INNER]).or_default();
            cell.records.push(number);
        }
        let row = |((stage, update, at), cells): (RowKey, _)| {
            let target = scheme.stages[stage.index()].updates[update].target;
            let position = scheme.component(target).position;
            PointRow {
                stage,
                update,
                at,
                first: numbering.first(&scheme.grid, position),
                cells,
            }
        };
        Some(rows.into_iter().map(row).collect())
    }

    /// Attaches the points to the towers of a time block of `periods` periods. Interior periods become fewer. `None`
    /// where time blocks cannot run the points.
    pub fn attach(
        &self,
        scheme: &Scheme,
        layout: &Layout,
        towers: &Towers,
        periods: u64,
        tasks: &mut [Task],
    ) -> Option<PointPlan> {
        let mut plan = PointPlan {
            rows: self.rows(scheme, layout, towers.numbering)?,
            ..PointPlan::default()
        };
        let place = |task: &Task| (task.placement.alignment, task.placement.origin);
        let known: BTreeMap<(usize, Group), usize> = tasks
            .iter()
            .enumerate()
            .map(|(n, task)| (place(task), n))
            .collect();
        let stages = scheme.stages.len();
        let phases = scheme.phases().max(1);
        let unrolled = towers.is_unrolled(layout);
        for (number, row) in plan.rows.iter().enumerate() {
            for update in RowInTowers::all(towers, row, stages) {
                for start in origins(towers, row.at, update.own, periods) {
                    let Some(&task) = known.get(&(update.alignment, start.origin)) else {
                        continue;
                    };
                    if !update.is_of(&tasks[task], start.period, row.stage)? {
                        continue;
                    }
                    let at = TaskStage {
                        task,
                        period: start.period,
                        stage: update.stage,
                    };
                    plan.stages.entry(at).or_default().push(PhasedRow {
                        row: number,
                        phase: (update.stage / stages) as u32 % phases,
                        planes: if unrolled { -start.shift } else { 0 },
                    });
                }
            }
        }
        plan.shorten_interiors(towers, &towers.bounds(scheme, layout), tasks);
        Some(plan)
    }
}

impl PointPlan {
    /// Leaves the periods that have points out of interior ones.
    fn shorten_interiors(&mut self, towers: &Towers, bounds: &[Bounds], tasks: &mut [Task]) {
        for (number, task) in tasks.iter_mut().enumerate() {
            let first = |task| TaskStage {
                task,
                period: 0,
                stage: 0,
            };
            let all = self.stages.range(first(number)..first(number + 1));
            let cut: Vec<u64> = all.map(|(at, _)| at.period).collect();
            let placement = &mut task.placement;
            let before = placement.interior.end - placement.interior.start;
            if !cut.is_empty() {
                let origin = placement.origin + placement.shift;
                let bounds = &bounds[placement.alignment];
                let begins = |period: u64| {
                    let at = origin + towers.advance * period as i64;
                    towers.variants.all[placement.variant].predicated || bounds.may_begin(at)
                };
                placement.interior = longest(placement.interior.clone(), &cut, begins);
            }
            let left = placement.interior.end - placement.interior.start;
            self.cut += before - left;
            self.interior += left;
        }
    }
}

/// An update of a row of points in a stage of the towers of an alignment.
struct RowInTowers<'a> {
    towers: &'a Towers,
    alignment: usize,
    stage: usize,
    own: RowUpdate,
}

impl<'a> RowInTowers<'a> {
    /// All updates of a row's stage that may be the one of the row; a step has `stages` stages.
    fn all(
        towers: &'a Towers,
        row: &'a PointRow,
        stages: usize,
    ) -> impl Iterator<Item = RowInTowers<'a>> {
        let alignments = towers.alignments.iter().enumerate();
        alignments.flat_map(move |(alignment, residency)| {
            let of_stage = residency.stages.iter().enumerate();
            let of_stage = of_stage.filter(move |(stage, _)| stage % stages == row.stage.index());
            of_stage.flat_map(move |(stage, of)| {
                let own = of.updates.iter().filter(|own| own.update == row.update);
                own.map(move |own| RowInTowers {
                    towers,
                    alignment,
                    stage,
                    own: *own,
                })
            })
        })
    }

    /// Whether the row of a period is a task's: within its limits, and on the right side of a seam.
    fn is_of(&self, task: &Task, period: u64, stage: StageId) -> Option<bool> {
        let depths = self.towers.depths(self.alignment, self.stage, self.own)?;
        let limits = task.placement.limits;
        let within = (0..2).all(|n| limits[n].is_none_or(|limit| depths[n] < limit));
        let x = task.placement.origin.x + period as i64 * self.towers.advance.x + self.own.at.x;
        let passed = period as i64 * self.towers.per_period() + self.stage as i64;
        let seam = self.towers.rings.seam.as_ref();
        let side = seam.map(|s| s.side(stage.index(), self.own.update).at(passed));
        Some(within && side.is_none_or(|side| side.contains(x)))
    }
}

/// Where a tower begins a time block, and a period in which a row of it lies at a place.
#[derive(Clone, Copy)]
struct Start {
    period: u64,
    origin: Group,
    /// From planes as towers count them to their indices.
    shift: i64,
}

/// The periods, and where a tower begins a time block, such that a row of a period lies at a place of the array: around
/// periodic axes, too.
fn origins(
    towers: &Towers,
    at: Group,
    own: RowUpdate,
    periods: u64,
) -> impl Iterator<Item = Start> {
    let shifts = towers.rings.shifts();
    let advance = towers.advance;
    (0..periods).flat_map(move |period| {
        let start = at - own.at - advance * period as i64;
        let moved = move |by: &Group| Start {
            period,
            origin: start - *by,
            shift: by.x,
        };
        shifts.iter().map(moved).collect::<Vec<_>>()
    })
}

/// The longest part of a range without some of its periods, ascending, that begins where interior periods can.
fn longest(
    all: std::ops::Range<u64>,
    without: &[u64],
    begins: impl Fn(u64) -> bool,
) -> std::ops::Range<u64> {
    let mut best = all.end..all.end;
    let mut start = all.start;
    let inside = without.iter().filter(|t| all.contains(t));
    for end in inside.copied().chain([all.end]) {
        let first = (start..end).find(|t| begins(*t)).unwrap_or(end);
        if end - first > best.end - best.start {
            best = first..end;
        }
        start = end + 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::longest;

    #[test]
    fn the_longest_part_without_points_is_interior() {
        let any = |_: u64| true;
        assert_eq!(longest(2..9, &[], any), 2..9);
        assert_eq!(longest(2..9, &[0, 4, 5], any), 6..9);
        assert_eq!(longest(2..9, &[4, 5], |t| t > 7), 8..9);
        assert_eq!(longest(2..9, &[8], |t| t != 2), 3..8);
        assert_eq!(longest(2..4, &[2, 3], any), 4..4);
    }
}
