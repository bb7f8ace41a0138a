//! The groups that a group needs, and the planes that it has, are enough: proved on the events of the towers
//! themselves. Each value has its last write and its reads since; the next event that touches it, in another operation,
//! is ordered after them.

use super::*;
use std::collections::HashMap;
use torre_compiler::lattice::Region;
use torre_compiler::scheme::{ComponentId, Located, StageId};
use torre_compiler::tower::{Group, Task, reach};

/// Which operations are over when each begins, and it itself.
fn over(window: &Window, ops: &[Op]) -> Vec<Vec<bool>> {
    let mut over: Vec<Vec<bool>> = Vec::new();
    let mut last: HashMap<(usize, Queue), usize> = HashMap::new();
    for (index, op) in ops.iter().enumerate() {
        let mut own = vec![false; ops.len()];
        own[index] = true;
        let host = (0..index).filter(|n| ops[*n].pass < window.first_active(op.pass));
        let queue = (window.device(op.pass), op.queue);
        let after = op.after.iter().map(|id| *id as usize);
        for before in after.chain(last.get(&queue).copied()).chain(host) {
            for (own, other) in own.iter_mut().zip(&over[before]) {
                *own |= other;
            }
        }
        last.insert(queue, index);
        over.push(own);
    }
    over
}

/// An event of a block: its operation, and its plane as the pass counts it.
#[derive(Clone, Copy)]
struct Event {
    op: usize,
    plane: i64,
}

/// The events of a block, by stage, update and group of rows.
type Events = HashMap<(i64, usize, Group), Event>;

struct Proof<'a> {
    case: &'a mut Case,
    towers: &'a Towers,
    over: Vec<Vec<bool>>,
}

impl Proof<'_> {
    /// Around a ring, from planes of a pass to their indices in the array.
    fn rotation(&self, pass: u64) -> i64 {
        let Case { window, passes, .. } = &*self.case;
        let before = passes[..pass as usize].iter();
        let drift = |pass: &Pass| window.below(pass);
        -self.case.footprints.way() * before.map(drift).sum::<i64>()
    }

    fn events(&mut self, pass: u64, number: usize, ops: &[Op]) -> Events {
        let rotation = self.rotation(pass);
        let Case {
            scheme,
            layout,
            footprints,
            passes,
            ..
        } = &mut *self.case;
        let block = &passes[pass as usize].blocks[number];
        let grouping = footprints.grouping();
        let list = footprints.tasks(scheme, layout, block.steps);
        let list = list.expect("groups");
        let run = |task: &Task| {
            let own = grouping.number(task.placement.origin.x);
            let found = ops.iter().position(|op| {
                let Action::Run { block, group } = op.action else {
                    return false;
                };
                (op.pass, block, group) == (pass, number, own)
            });
            found.expect("each group runs")
        };
        let rings = &self.towers.rings;
        let moved = block.moved * footprints.way();
        let per_period = self.towers.per_period();
        let mut events = Events::new();
        for task in &list.tasks {
            let (placement, op) = (&task.placement, run(task));
            let alignment = placement.alignment;
            for period in placement.periods.clone() {
                let origin = placement.origin + self.towers.advance * period as i64;
                let stages = self.towers.alignments[alignment].stages.iter();
                for (n, stage) in stages.enumerate() {
                    let updates = &scheme.stages[n % scheme.stages.len()].updates;
                    for own in &stage.updates {
                        let depths = self.towers.depths(alignment, n, *own).expect("a row");
                        if (0..2).any(|c| placement.limits[c].is_some_and(|l| depths[c] >= l)) {
                            continue;
                        }
                        let mut at = origin + own.at;
                        if let Some(around) = rings.cells[1] {
                            at.y = at.y.rem_euclid(around);
                        }
                        let number = period as i64 * per_period + n as i64;
                        let mut plane = at.x;
                        if let (Some(seam), Some(around)) = (&rings.seam, rings.cells[0]) {
                            // On the right side of the seam planes are counted on around the ring.
                            let side = seam.side(n % scheme.stages.len(), own.update);
                            if !side.at(number).contains(at.x) {
                                continue;
                            }
                            plane = at.x - moved;
                            at.x = (plane + rotation).rem_euclid(around);
                        }
                        let region: Region = updates[own.update].region;
                        if region[Axis::OUTER].contains(at.x) && region[Axis::MIDDLE].contains(at.y)
                        {
                            let key = (number, own.update, at);
                            let event = Event { op, plane };
                            assert!(events.insert(key, event).is_none(), "{key:?} twice");
                        }
                    }
                }
            }
        }
        events
    }

    /// Where the row lies that is read at a place, perhaps as a ghost; `None` for constant zeros.
    fn stored(&self, id: ComponentId, at: Group) -> Option<Group> {
        let scheme = &self.case.scheme;
        let position = scheme.component(id).position;
        let z = scheme.grid.live(position)[Axis::INNER].lo;
        match scheme.grid.resolve(position, PerAxis([at.x, at.y, z])) {
            Located::Stored { at, .. } => Some(Group::new(at[Axis::OUTER], at[Axis::MIDDLE])),
            Located::Zero => None,
        }
    }

    /// Goes through the events of all passes.
    fn run(&mut self, ops: &[Op]) {
        type Uses = (Option<usize>, Vec<usize>);
        let mut places: HashMap<(Group, u32), Uses> = HashMap::new();
        let mut steps = 0;
        for pass in 0..self.case.passes.len() as u64 {
            for number in 0..self.case.passes[pass as usize].blocks.len() {
                let events = self.events(pass, number, ops);
                let block = self.case.passes[pass as usize].blocks[number].clone();
                let stages = self.case.scheme.stages.len() as i64;
                for n in 0..block.steps as i64 * stages {
                    let step = steps + (n / stages) as u64;
                    let stage = StageId((n % stages) as u32);
                    let touched = self.touched(&events, n, stage, step, &block, ops);
                    for (place, row, op, write) in touched {
                        let (last, reads) = places.entry((place, row)).or_default();
                        let before = last.iter().chain(reads.iter().filter(|_| write));
                        for other in before {
                            assert!(
                                self.over[op][*other],
                                "{:?} needs {:?} at {place:?}",
                                ops[op], ops[*other]
                            );
                        }
                        match write {
                            true => (*last, *reads) = (Some(op), Vec::new()),
                            false => reads.push(op),
                        }
                    }
                }
                steps += block.steps;
            }
        }
    }

    /// The rows that a stage touches: the reads first.
    fn touched(
        &self,
        events: &Events,
        number: i64,
        stage: StageId,
        step: u64,
        block: &PassBlock,
        ops: &[Op],
    ) -> Vec<(Group, u32, usize, bool)> {
        let Case { scheme, layout, .. } = &*self.case;
        let phase = (step % u64::from(scheme.phases().max(1))) as u32;
        let visible = layout.visible(Axis::OUTER);
        let mut touched = Vec::new();
        for (index, update) in scheme.stages[stage.index()].updates.iter().enumerate() {
            let [outer, middle, inner] = update.region.0;
            if inner.is_empty() {
                continue;
            }
            let lines = (outer.lo..outer.hi)
                .flat_map(|x| (middle.lo..middle.hi).map(move |y| Group::new(x, y)));
            for at in lines {
                let Event { op, plane } = *events
                    .get(&(number, index, at))
                    .expect("each event has a tower");
                let Action::Run { group, .. } = ops[op].action else {
                    panic!("{:?}", ops[op]);
                };
                let planes = block.group(group).expect("a group");
                let along = |x: i64| self.case.footprints.along(Interval::new(x, x + 1)).lo;
                let ghosts =
                    torre_compiler::ghost::AxisGhosts::new(scheme, update.target, Axis::OUTER);
                let ghosts = ghosts.of(at.x).map(|ghost| ghost.index);
                let around = self.case.window.ring.is_some();
                for x in ghosts.filter(|_| !around).chain([plane]) {
                    assert!(planes.written.contains(along(x)), "{planes:?} {x}");
                }
                for read in update.body.reads() {
                    let there = at + reach(read);
                    if around || visible.contains(there.x) {
                        let plane = plane + reach(read).x;
                        assert!(planes.touched.contains(along(plane)), "{planes:?}");
                    }
                    let Some(place) = self.stored(read.component, there) else {
                        continue;
                    };
                    let row = layout.read_row(scheme, stage, phase, read);
                    touched.push((place, row.0, op, false));
                }
                let row = layout.target_row(scheme, stage, phase, update.target);
                touched.push((at, row.0, op, true));
            }
        }
        touched.sort_by_key(|(.., write)| *write);
        touched
    }
}

#[test]
fn groups_need_no_more_than_they_say() {
    let mut tried = 0;
    for (_, mut case) in cases(0..160) {
        let towers = case.footprints.towers().clone();
        let ops = case.operations();
        let over = over(&case.window, &ops);
        let mut proof = Proof {
            case: &mut case,
            towers: &towers,
            over,
        };
        proof.run(&ops);
        tried += 1;
    }
    assert!(tried > 25, "{tried}");
}
