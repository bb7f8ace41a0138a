//! Where the values of a tower lie: registers of threads and shared rows.
//!
//! A thread has one index along the inner axis and keeps the values of its index in registers. A *shared row* holds
//! values that threads pass to each other: rows that come from memory, copied while the stage before runs, and rows
//! that are read at other indices. A *copy* is a value in a shared row from the stage in which it is put there to the
//! last one in which it is read. There is one barrier between stages, so two copies may have the same shared row if
//! they have no stage in common.

use super::group::Group;
use super::residency::{LiveRange, Residency, RowRef, RowUpdate, StageRows};
use std::collections::{BTreeMap, BTreeSet};

/// A value in a shared row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedCopy {
    pub row: RowRef,
    /// The number of the shared row.
    pub shared: usize,
    /// Threads read it at other indices along the inner axis.
    pub cross_lane: bool,
    pub uses: Uses,
}

/// A stage that needs a value, counted from the start of the period that sees it, and whether it reads it at other
/// indices along the inner axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    pub stage: i64,
    pub cross_lane: bool,
}

/// The first and the last use of a value of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uses {
    pub first: Use,
    pub last: Use,
}

impl Uses {
    /// The uses of a live range from stage `from` on, as seen by a period that starts with stage `start`. Both stages
    /// count from the period in which the live range begins.
    fn new(live: &LiveRange, from: i64, start: i64) -> Uses {
        let mut touches = live.touches.iter().filter(|t| t.stage as i64 >= from);
        let first = touches.next().unwrap_or(&live.touches[0]);
        let last = touches.next_back().unwrap_or(first);
        let [first, last] = [first, last].map(|touch| Use {
            stage: touch.stage as i64 - start,
            cross_lane: touch.cross_lane,
        });
        Uses { first, last }
    }

    /// From a stage to a later one, each at the same index.
    pub fn between(first: i64, last: i64) -> Uses {
        let [first, last] = [first, last].map(|stage| Use {
            stage,
            cross_lane: false,
        });
        Uses { first, last }
    }

    /// In a stage, also at other indices.
    pub fn cross_lane(stage: i64) -> Uses {
        let own = Use {
            stage,
            cross_lane: true,
        };
        Uses {
            first: own,
            last: own,
        }
    }

    /// The same uses, as seen from a period that begins `stages` stages later.
    pub fn seen_from(self, stages: i64) -> Uses {
        let [first, last] = [self.first, self.last].map(|used| Use {
            stage: used.stage - stages,
            ..used
        });
        Uses { first, last }
    }
}

/// The stages, negative before a period, in which a value was first and last written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Written {
    pub first: i64,
    pub last: i64,
}

/// A value that a thread keeps from one period to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Carried {
    /// As the new period sees it.
    pub row: RowRef,
    /// If memory does not have it yet.
    pub written: Option<Written>,
    /// In the new period or later; or from where it was first written on, as it will be stored wherever a thread had a
    /// part in that.
    pub uses: Uses,
}

/// Where the rows of a stage lie; rows as its period sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageAllocation {
    pub updates: Vec<RowUpdate>,
    /// Rows to copy from memory during this stage, for the next one. Loads of the last stage belong to the next period.
    pub loads: Vec<SharedCopy>,
    /// The shared rows of rows that are read at other indices.
    pub cross_lane: BTreeMap<RowRef, usize>,
    /// The shared rows of rows that enter and are read at the thread's own index, now or later.
    pub entering: BTreeMap<RowRef, usize>,
    /// Rows that enter now and are needed at the thread's own index later, or in a shared row again.
    pub wanted: BTreeSet<RowRef>,
    /// Rows that come from memory for this stage, because they are not kept in registers or shared rows from before.
    pub arriving: BTreeSet<RowRef>,
    /// Shared rows for rows that the stage writes.
    pub publish: BTreeMap<RowRef, usize>,
    /// Shared rows for rows that threads have from before.
    pub republish: Vec<SharedCopy>,
    /// Rows to store after this stage has written them, with how many stages before that they were first written.
    pub leaving: BTreeMap<RowRef, i64>,
}

/// Where the rows of a period lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    pub stages: Vec<StageAllocation>,
    /// How many shared rows there are.
    pub shared_rows: usize,
    /// Ascending.
    pub carried: Vec<Carried>,
    /// The contents of shared rows when a period begins.
    pub held: Vec<SharedCopy>,
}

/// A copy in stages from the period in which its live range begins.
#[derive(Clone, Copy, Debug)]
struct Arc {
    /// Index into the live ranges.
    live: usize,
    start: i64,
    /// Inclusive.
    end: i64,
    source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Memory,
    Update,
    Register,
}

impl Allocation {
    pub fn new(residency: &Residency, advance: Group) -> Allocation {
        let period = residency.stages.len() as i64;
        let live_ranges = &residency.live_ranges;
        let mut arcs: Vec<Arc> = Vec::new();
        for (i, live) in live_ranges.iter().enumerate() {
            copies(i, live, period, &mut arcs);
        }
        let colours = colour(&arcs, period);
        let stage = |rows: &StageRows| StageAllocation {
            updates: rows.updates.clone(),
            ..StageAllocation::default()
        };
        let mut allocation = Allocation {
            stages: residency.stages.iter().map(stage).collect(),
            shared_rows: colours.iter().map(|c| c + 1).max().unwrap_or(0),
            ..Allocation::default()
        };
        let placing = Placing {
            live_ranges,
            arcs: &arcs,
            advance,
            period,
        };
        for (arc, &shared) in arcs.iter().zip(&colours) {
            placing.copy(arc, shared, &mut allocation);
            if arc.source == Source::Memory {
                placing.enter(arc, shared, &mut allocation);
            }
        }
        for (index, live) in live_ranges.iter().enumerate() {
            placing.leave(live, &mut allocation);
            placing.carry(index, live, &mut allocation);
        }
        allocation.carried.sort_unstable();
        allocation.held.sort_unstable();
        for stage in &mut allocation.stages {
            stage.loads.sort_unstable();
            stage.republish.sort_unstable();
        }
        allocation
    }

    /// A stage, counted from the period in which a live range begins.
    fn stage(&mut self, number: i64) -> &mut StageAllocation {
        let period = self.stages.len() as i64;
        &mut self.stages[number.rem_euclid(period) as usize]
    }
}

/// The live ranges and their copies, from which an allocation is filled.
struct Placing<'a> {
    live_ranges: &'a [LiveRange],
    arcs: &'a [Arc],
    advance: Group,
    /// Stages of a period.
    period: i64,
}

impl Placing<'_> {
    /// A row as the period of a stage sees it.
    fn seen(&self, row: RowRef, stage: i64) -> RowRef {
        row.seen_from(self.advance * stage.div_euclid(self.period))
    }

    /// Puts a copy into its shared row, and finds it there in later stages and periods.
    fn copy(&self, arc: &Arc, shared: usize, allocation: &mut Allocation) {
        let live = &self.live_ranges[arc.live];
        let row = self.seen(live.row, arc.start);
        let within = |stage: usize| (arc.start + 1..=arc.end).contains(&(stage as i64));
        let touches = live.touches.iter();
        let reads = touches.filter(|t| t.cross_lane && within(t.stage));
        let cross_lane = reads.clone().next().is_some();
        let copy = SharedCopy {
            row,
            shared,
            cross_lane,
            uses: Uses::new(
                live,
                arc.start,
                arc.start.div_euclid(self.period) * self.period,
            ),
        };
        let stage = allocation.stage(arc.start);
        match arc.source {
            Source::Memory => stage.loads.push(copy),
            Source::Update => {
                stage.publish.insert(row, shared);
            }
            Source::Register => stage.republish.push(copy),
        }
        for touch in reads {
            let at = touch.stage as i64;
            let stage = allocation.stage(at);
            stage.cross_lane.insert(self.seen(live.row, at), shared);
        }
        let boundary = (arc.start.div_euclid(self.period) + 1) * self.period;
        if arc.end >= boundary {
            allocation.held.push(SharedCopy {
                row: self.seen(live.row, boundary),
                shared,
                cross_lane,
                uses: Uses::new(live, boundary, boundary),
            });
        }
    }

    /// A row that is copied from memory arrives, and threads may need it at their own index.
    fn enter(&self, arc: &Arc, shared: usize, allocation: &mut Allocation) {
        let live = &self.live_ranges[arc.live];
        let at = live.first() as i64;
        let row = self.seen(live.row, at);
        let first = live.touches[0];
        let mut own = self.arcs.iter().filter(|a| a.live == arc.live);
        let now = own.any(|a| a.source == Source::Register && a.start == at);
        let later = now || is_used(arc.live, live, at + 1, self.arcs);
        let later = later && first.write.is_none();
        let stage = allocation.stage(at);
        stage.arriving.insert(row);
        if first.read || first.old || later {
            stage.entering.insert(row, shared);
        }
        if later {
            stage.wanted.insert(row);
        }
    }

    /// Stores a row after its last write.
    fn leave(&self, live: &LiveRange, allocation: &mut Allocation) {
        if let (Some(first), Some(last)) = (live.writes().next(), live.stored()) {
            let at = last as i64;
            let row = self.seen(live.row, at);
            allocation.stage(at).leaving.insert(row, at - first as i64);
        }
    }

    /// Keeps a value in registers from period to period, as long as threads need it or memory does not have it.
    fn carry(&self, index: usize, live: &LiveRange, allocation: &mut Allocation) {
        let boundaries = (1..).map(|n| n * self.period);
        for boundary in boundaries.take_while(|b| *b <= live.last() as i64) {
            let begun = (live.first() as i64) < boundary;
            let written = written_before(live, boundary);
            if begun && (written.is_some() || is_used(index, live, boundary, self.arcs)) {
                let mut uses = Uses::new(live, boundary, boundary);
                if let Some(written) = written {
                    uses.first = Use {
                        stage: written.first,
                        cross_lane: false,
                    };
                }
                allocation.carried.push(Carried {
                    row: self.seen(live.row, boundary),
                    written,
                    uses,
                });
            }
        }
    }
}

/// The writes of a live range before a period that begins at a stage, if it is stored in that period or later.
fn written_before(live: &LiveRange, boundary: i64) -> Option<Written> {
    let writes = live.writes().map(|stage| stage as i64 - boundary);
    let mut before = writes.take_while(|stage| *stage < 0);
    let stored = live.stored().is_some_and(|s| s as i64 >= boundary);
    let first = before.next().filter(|_| stored)?;
    Some(Written {
        first,
        last: before.last().unwrap_or(first),
    })
}

/// Whether a thread needs the value of a live range, as it is before a stage, in or after that stage.
fn is_used(index: usize, live: &LiveRange, from: i64, arcs: &[Arc]) -> bool {
    let own = arcs.iter().filter(|a| a.live == index);
    let republished = own
        .filter(|a| a.source == Source::Register && a.start >= from)
        .map(|a| a.start)
        .min();
    for touch in live.touches.iter().filter(|t| t.stage as i64 >= from) {
        let before = republished.is_some_and(|stage| stage < touch.stage as i64);
        if before || touch.read || touch.old {
            return true;
        }
        if touch.write.is_some() {
            return false;
        }
    }
    republished.is_some()
}

/// The copies that a live range needs. None lasts longer than a period, so that every period can use the same shared
/// rows.
fn copies(index: usize, live: &LiveRange, period: i64, arcs: &mut Vec<Arc>) {
    let first = live.first() as i64;
    let arc = |start: i64, end: i64, source: Source| Arc {
        live: index,
        start,
        end,
        source,
    };
    let mut now = live
        .is_loaded()
        .then(|| arc(first - 1, first, Source::Memory));
    let mut written = first - period;
    for touch in &live.touches {
        let at = touch.stage as i64;
        if touch.cross_lane {
            match &mut now {
                Some(arc) if at - arc.start < period => arc.end = at,
                _ => {
                    arcs.extend(now);
                    now = Some(match at - written < period {
                        true => arc(written, at, Source::Update),
                        false => arc(at - 1, at, Source::Register),
                    });
                }
            }
        }
        if touch.write.is_some() {
            arcs.extend(now.take());
            written = at;
        }
    }
    arcs.extend(now);
}

/// A shared row for each copy. Copies that last from one period into the next get theirs first; the others follow where
/// there is room.
fn colour(arcs: &[Arc], period: i64) -> Vec<usize> {
    let stages = |arc: &Arc| (arc.start..=arc.end).map(move |s| s.rem_euclid(period) as usize);
    let crosses = |arc: &Arc| arc.start.div_euclid(period) != arc.end.div_euclid(period);
    let mut order: Vec<usize> = (0..arcs.len()).collect();
    order.sort_unstable_by_key(|&i| (!crosses(&arcs[i]), arcs[i].start.rem_euclid(period), i));
    let mut busy: Vec<Vec<bool>> = Vec::new();
    let mut colours = vec![0; arcs.len()];
    for i in order {
        let fits = |row: &Vec<bool>| stages(&arcs[i]).all(|s| !row[s]);
        let row = busy.iter().position(fits).unwrap_or_else(|| {
            busy.push(vec![false; period as usize]);
            busy.len() - 1
        });
        stages(&arcs[i]).for_each(|s| busy[row][s] = true);
        colours[i] = row;
    }
    colours
}
