//! Where the values of a tower lie: registers of threads and rows of shared memory.
//!
//! A thread has one index along the inner axis and keeps the values of its index in registers. A row of shared memory, a *slot*,
//! holds what threads tell each other: rows that come from memory, copied while the stage before runs, and rows that are read at other
//! indices. A *copy* is a value in a slot from the stage in which it is put there to the last one in which it is read. There is one
//! barrier between stages, so two copies may have the same slot if they have no stage in common.

use crate::layout::Layout;
use crate::tile::residency::{Life, Own, Place, Residency};
use std::collections::{BTreeMap, BTreeSet};

/// A value in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Copy {
    pub place: Place,
    pub slot: usize,
    /// Threads read it at other indices along the inner axis.
    pub tapped: bool,
    pub uses: Uses,
}

/// The first and the last stage that need a value of memory, counted from the start of the period that sees it, and whether they read it at other
/// indices along the inner axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uses {
    pub stages: [i64; 2],
    pub tapped: [bool; 2],
}

impl Uses {
    /// Those of a life from a stage on, as a period sees them that starts with another one; both counted from the period in which the life begins.
    fn new(life: &Life, from: i64, start: i64) -> Uses {
        let mut touches = life.touches.iter().filter(|t| t.stage as i64 >= from);
        let first = touches.next().unwrap_or(&life.touches[0]);
        let both = [first, touches.next_back().unwrap_or(first)];
        Uses {
            stages: both.map(|t| t.stage as i64 - start),
            tapped: both.map(|t| t.tapped),
        }
    }
}

/// A value that a thread keeps from one period to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Carried {
    /// As the new period sees it.
    pub place: Place,
    /// If memory does not have it yet: the stages before the new period in which it was first and last written, which are negative.
    pub written: Option<[i64; 2]>,
    /// In the new period or later; or from where it was first written on, as it will be stored wherever a thread had a part in that.
    pub uses: Uses,
}

/// What a stage of a period does besides computing; places as its period sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StagePlan {
    pub own: Vec<Own>,
    /// Rows to copy from memory during this stage, for the next one. Those of the last stage belong to the next period.
    pub loads: Vec<Copy>,
    /// Where rows lie that are read at other indices.
    pub taps: BTreeMap<Place, usize>,
    /// Where values lie that enter and are read at the thread's own index, now or later.
    pub enter: BTreeMap<Place, usize>,
    /// Values that enter now and are read at the thread's own index later.
    pub wanted: BTreeSet<Place>,
    /// Rows that come from memory for this stage: those that are not kept in registers or slots from before.
    pub arriving: BTreeSet<Place>,
    /// Slots for rows that the stage writes.
    pub publish: BTreeMap<Place, usize>,
    /// Slots for rows that threads have from before.
    pub again: Vec<Copy>,
    /// Rows to store after this stage has written them, with how many stages before that they were first written.
    pub leave: BTreeMap<Place, i64>,
}

/// A period of a tower.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub stages: Vec<StagePlan>,
    /// Rows of shared memory.
    pub slots: usize,
    /// Ascending.
    pub carried: Vec<Carried>,
    /// What slots hold when a period begins.
    pub held: Vec<Copy>,
}

/// A value in shared memory, in stages from the period in which its life begins.
#[derive(Clone, Copy, Debug)]
struct Arc {
    life: usize,
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

impl Plan {
    /// `direct`: coefficients are read from memory where they are used.
    pub fn new(layout: &Layout, sets: &Residency, advance: [i64; 2], direct: bool) -> Plan {
        let period = sets.stages.len() as i64;
        let lives: Vec<&Life> = sets
            .lives
            .iter()
            .filter(|l| !(direct && layout.is_coef(l.place.row)))
            .collect();
        let mut plan = Plan {
            stages: vec![StagePlan::default(); sets.stages.len()],
            ..Plan::default()
        };
        for (stage, sets) in plan.stages.iter_mut().zip(&sets.stages) {
            stage.own = sets.own.clone();
        }
        let mut arcs: Vec<Arc> = Vec::new();
        for (i, life) in lives.iter().enumerate() {
            copies(i, life, period, &mut arcs);
        }
        let slots = color(&arcs, period);
        plan.slots = slots.iter().map(|s| s + 1).max().unwrap_or(0);
        // The place of a life in the period of a stage.
        let seen = |place: Place, stage: i64| {
            let periods = stage.div_euclid(period);
            Place {
                x: place.x - periods * advance[0],
                y: place.y - periods * advance[1],
                row: place.row,
            }
        };
        for (arc, &slot) in arcs.iter().zip(&slots) {
            let life = lives[arc.life];
            let begin = seen(life.place, arc.start);
            let stage = &mut plan.stages[arc.start.rem_euclid(period) as usize];
            let tapped = life.touches.iter().any(|t| {
                let at = t.stage as i64;
                t.tapped && arc.start < at && at <= arc.end
            });
            let copy = Copy {
                place: begin,
                slot,
                tapped,
                uses: Uses::new(life, arc.start, arc.start.div_euclid(period) * period),
            };
            match arc.source {
                Source::Memory => stage.loads.push(copy),
                Source::Update => {
                    stage.publish.insert(begin, slot);
                }
                Source::Register => stage.again.push(copy),
            }
            for touch in &life.touches {
                let at = touch.stage as i64;
                if touch.tapped && arc.start < at && at <= arc.end {
                    let stage = &mut plan.stages[at.rem_euclid(period) as usize];
                    stage.taps.insert(seen(life.place, at), slot);
                }
            }
            if arc.source == Source::Memory {
                let at = life.first() as i64;
                let stage = &mut plan.stages[at.rem_euclid(period) as usize];
                stage.arriving.insert(seen(life.place, at));
                let first = life.touches[0];
                let later = is_used(arc.life, life, at + 1, &arcs) && first.write.is_none();
                if first.read || first.old || later {
                    stage.enter.insert(seen(life.place, at), slot);
                }
                if later {
                    stage.wanted.insert(seen(life.place, at));
                }
            }
            let boundary = (arc.start.div_euclid(period) + 1) * period;
            if arc.end >= boundary {
                plan.held.push(Copy {
                    place: seen(life.place, boundary),
                    slot,
                    tapped,
                    uses: Uses::new(life, boundary, boundary),
                });
            }
        }
        for (i, life) in lives.iter().enumerate() {
            if let (Some(first), Some(last)) = (life.writes().next(), life.stored()) {
                let at = last as i64;
                let stage = &mut plan.stages[at.rem_euclid(period) as usize];
                stage.leave.insert(seen(life.place, at), at - first as i64);
            }
            let mut boundary = period;
            while boundary <= life.last() as i64 {
                let begun = (life.first() as i64) < boundary;
                let mut writes = life.writes().map(|s| s as i64 - boundary);
                let before = |s: &i64| *s < 0;
                let stored = life.stored().is_some_and(|s| s as i64 >= boundary);
                let first = writes.next().filter(|s| before(s) && stored);
                let written = first.map(|s| [s, writes.take_while(before).last().unwrap_or(s)]);
                if begun && (written.is_some() || is_used(i, life, boundary, &arcs)) {
                    let mut uses = Uses::new(life, boundary, boundary);
                    if let Some([first, _]) = written {
                        (uses.stages[0], uses.tapped[0]) = (first, false);
                    }
                    plan.carried.push(Carried {
                        place: seen(life.place, boundary),
                        written,
                        uses,
                    });
                }
                boundary += period;
            }
        }
        plan.carried.sort_unstable();
        plan.held.sort_unstable();
        for stage in &mut plan.stages {
            stage.loads.sort_unstable();
            stage.again.sort_unstable();
        }
        plan
    }

    /// Rows copied from memory per period.
    pub fn loads(&self) -> usize {
        self.stages.iter().map(|s| s.loads.len()).sum()
    }
}

/// Whether a thread needs the value of a life, as it is before a stage, in or after that stage.
fn is_used(index: usize, life: &Life, from: i64, arcs: &[Arc]) -> bool {
    let again = arcs
        .iter()
        .filter(|a| a.life == index && a.source == Source::Register && a.start >= from)
        .map(|a| a.start)
        .min();
    for touch in life.touches.iter().filter(|t| t.stage as i64 >= from) {
        if again.is_some_and(|a| a < touch.stage as i64) || touch.read || touch.old {
            return true;
        }
        if touch.write.is_some() {
            return false;
        }
    }
    again.is_some()
}

/// The copies that a life needs. None lasts longer than a period, so that every period can use the same slots.
fn copies(index: usize, life: &Life, period: i64, arcs: &mut Vec<Arc>) {
    let first = life.first() as i64;
    let mut now = life.is_loaded().then_some(Arc {
        life: index,
        start: first - 1,
        end: first,
        source: Source::Memory,
    });
    let mut written = first - period;
    for touch in &life.touches {
        let at = touch.stage as i64;
        if touch.tapped {
            match &mut now {
                Some(arc) if at - arc.start < period => arc.end = at,
                _ => {
                    arcs.extend(now);
                    let (start, source) = match at - written < period {
                        true => (written, Source::Update),
                        false => (at - 1, Source::Register),
                    };
                    now = Some(Arc {
                        life: index,
                        start,
                        end: at,
                        source,
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

/// A slot for each copy: those that last from one period into the next get slots first, the others where there is room.
fn color(arcs: &[Arc], period: i64) -> Vec<usize> {
    let stages = |arc: &Arc| (arc.start..=arc.end).map(move |s| s.rem_euclid(period) as usize);
    let crosses = |arc: &Arc| arc.start.div_euclid(period) != arc.end.div_euclid(period);
    let mut order: Vec<usize> = (0..arcs.len()).collect();
    order.sort_by_key(|&i| (!crosses(&arcs[i]), arcs[i].start.rem_euclid(period), i));
    let mut busy: Vec<Vec<bool>> = Vec::new();
    let mut slots = vec![0; arcs.len()];
    for i in order {
        let fits = |slot: &Vec<bool>| stages(&arcs[i]).all(|s| !slot[s]);
        let slot = busy.iter().position(fits).unwrap_or_else(|| {
            busy.push(vec![false; period as usize]);
            busy.len() - 1
        });
        stages(&arcs[i]).for_each(|s| busy[slot][s] = true);
        slots[i] = slot;
    }
    slots
}
