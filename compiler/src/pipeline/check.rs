//! Symbolic execution of a list of operations: whether it is right for every interleaving that its queues and waits
//! allow.
//!
//! Each place of the buffer has a tag, the plane and the pass whose values it holds, with the operation that put them
//! there and those that used them. Each operation has a vector clock over queues. What an operation uses has to be
//! there, and everything that touches the same place before it in the list has to be over; so the list's order is one
//! of the interleavings, and no other one differs from it in what anybody reads.
//!
//! Towers of different time blocks touch the same planes without touching the same values. So their order is checked by
//! the groups that a group needs, not by planes.

use super::{Action, Block, Op, OpId, Pass, Queue, Window};
use crate::lattice::Interval;
use std::collections::BTreeMap;
use std::fmt;

/// What is wrong, at an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A plane lies outside of the buffer.
    Outside { op: OpId, plane: i64 },
    /// A plane is not at its place: it is not loaded yet, or gone.
    Missing { op: OpId, plane: i64 },
    /// The host does not have the values of the pass.
    Stale { op: OpId, plane: i64 },
    /// Two operations touch the same, and nothing orders them.
    Unordered { first: OpId, second: OpId },
    /// A group of a time block runs before a group of an earlier one that it needs.
    TooEarly { op: OpId, block: usize, need: i64 },
    /// A plane is stored or gathered, and written afterwards.
    NotFinal { op: OpId, plane: i64 },
    /// A plane is gathered when a later time block has written it.
    TooLate { op: OpId, plane: i64 },
    /// An operation waits for a later one, or is none of its pass.
    Order { op: OpId },
    /// A group does not run, or not in its turn.
    Group { pass: u64, block: usize, group: i64 },
    /// A plane that was written is not stored.
    Lost { pass: u64, plane: i64 },
    /// A plane of an output is not gathered.
    Output { pass: u64, block: usize, plane: i64 },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Outside { op, plane } => write!(f, "operation {op}: no place for plane {plane}"),
            Fault::Missing { op, plane } => write!(f, "operation {op}: plane {plane} is not there"),
            Fault::Stale { op, plane } => {
                write!(f, "operation {op}: plane {plane} is older on the host")
            }
            Fault::Unordered { first, second } => {
                write!(f, "operations {first} and {second} are not ordered")
            }
            Fault::TooEarly { op, block, need } => {
                write!(f, "operation {op} needs group {need} of block {block}")
            }
            Fault::NotFinal { op, plane } => {
                write!(
                    f,
                    "operation {op} writes plane {plane}, which was taken before"
                )
            }
            Fault::TooLate { op, plane } => {
                write!(f, "operation {op}: plane {plane} has changed since")
            }
            Fault::Order { op } => write!(f, "operation {op} is out of order"),
            Fault::Group { pass, block, group } => {
                write!(
                    f,
                    "pass {pass}: group {group} of block {block} is out of its turn"
                )
            }
            Fault::Lost { pass, plane } => write!(f, "pass {pass}: plane {plane} is not stored"),
            Fault::Output { pass, block, plane } => {
                write!(
                    f,
                    "pass {pass}: plane {plane} is not gathered after block {block}"
                )
            }
        }
    }
}

impl std::error::Error for Fault {}

/// What is over when an operation is.
#[derive(Clone, Debug)]
struct Clock {
    queue: Queue,
    position: u64,
    over: BTreeMap<Queue, u64>,
}

/// What a place of the buffer holds.
#[derive(Clone, Debug)]
struct Slot {
    pass: u64,
    plane: i64,
    /// What put it there.
    from: OpId,
    used: Vec<OpId>,
    /// Those that only read it.
    read: Vec<OpId>,
}

impl Slot {
    /// Whoever put it there or used it.
    fn all(&self) -> impl Iterator<Item = OpId> {
        let users = self.used.iter().chain(&self.read).copied();
        users.chain([self.from])
    }
}

/// What happened to a plane in a pass.
#[derive(Clone, Debug, Default)]
struct History {
    /// Blocks that wrote it, in the order of the list.
    writes: Vec<(usize, OpId)>,
    gathers: Vec<(usize, usize, OpId)>,
    stored: Option<OpId>,
}

struct Checker<'a> {
    window: &'a Window,
    passes: &'a [Pass],
    clocks: BTreeMap<OpId, Clock>,
    /// The last operation of each queue.
    last: BTreeMap<Queue, OpId>,
    /// Per pass, its last operation of each queue.
    ends: BTreeMap<u64, BTreeMap<Queue, OpId>>,
    slots: BTreeMap<i64, Slot>,
    base: Option<i64>,
    planes: BTreeMap<(u64, i64), History>,
    /// By pass and block, its runs in the order of groups.
    runs: BTreeMap<(u64, usize), Vec<OpId>>,
    /// Planes that the host has, by the pass after which they are, and who stored them.
    host: BTreeMap<i64, (u64, OpId)>,
}

/// Executes the operations of passes, numbered from 0 on, all of them to their end.
pub fn check(window: &Window, passes: &[Pass], ops: &[Op]) -> Result<(), Fault> {
    let mut checker = Checker {
        window,
        passes,
        clocks: BTreeMap::new(),
        last: BTreeMap::new(),
        ends: BTreeMap::new(),
        slots: BTreeMap::new(),
        base: None,
        planes: BTreeMap::new(),
        runs: BTreeMap::new(),
        host: BTreeMap::new(),
    };
    for op in ops {
        checker.order(op)?;
        match op.action {
            Action::Load { planes } => checker.load(op, planes),
            Action::Run { block, group } => checker.run(op, block, group),
            Action::Gather {
                block,
                output,
                planes,
            } => checker.gather(op, block, output, planes),
            Action::Store { planes } => checker.store(op, planes),
            Action::Slide { places, by } => checker.slide(op, places, by),
        }?;
    }
    checker.end()
}

impl Checker<'_> {
    /// Makes the clock of an operation.
    fn order(&mut self, op: &Op) -> Result<(), Fault> {
        let mut over: BTreeMap<Queue, u64> = BTreeMap::new();
        let host = self.ends.range(..op.pass.saturating_sub(1));
        let host = host.flat_map(|(_, ends)| ends.values().copied());
        let host: Vec<OpId> = host.filter(|_| op.pass >= 2).collect();
        let before = self.last.get(&op.queue).copied();
        for id in op.after.iter().copied().chain(before).chain(host) {
            let Some(clock) = self.clocks.get(&id) else {
                return Err(Fault::Order { op: op.id });
            };
            for (queue, position) in &clock.over {
                let own = over.entry(*queue).or_default();
                *own = (*own).max(*position);
            }
        }
        let position = over.get(&op.queue).copied().unwrap_or(0) + 1;
        over.insert(op.queue, position);
        let clock = Clock {
            queue: op.queue,
            position,
            over,
        };
        if self.clocks.insert(op.id, clock).is_some() || op.pass >= self.passes.len() as u64 {
            return Err(Fault::Order { op: op.id });
        }
        self.last.insert(op.queue, op.id);
        self.ends
            .entry(op.pass)
            .or_default()
            .insert(op.queue, op.id);
        Ok(())
    }

    /// Whether one operation is over when another one begins.
    fn ordered(&self, first: OpId, second: OpId) -> Result<(), Fault> {
        let [one, other] = [first, second].map(|id| self.clocks.get(&id));
        let known = one.zip(other).is_some_and(|(one, other)| {
            first == second
                || other
                    .over
                    .get(&one.queue)
                    .is_some_and(|n| *n >= one.position)
        });
        match known {
            true => Ok(()),
            false => Err(Fault::Unordered { first, second }),
        }
    }

    /// The place of a plane.
    fn place(&self, op: &Op, plane: i64) -> Result<i64, Fault> {
        let place = self.window.place(op.pass, plane, op.base);
        let places = self.window.places.unwrap_or(self.window.planes.len());
        match (0..places).contains(&place) && self.window.planes.contains(plane) {
            true => Ok(place),
            false => Err(Fault::Outside { op: op.id, plane }),
        }
    }

    /// An operation uses planes that have to be there.
    fn uses(&mut self, op: &Op, planes: Interval) -> Result<(), Fault> {
        for plane in planes.lo..planes.hi {
            let place = self.place(op, plane)?;
            if self.window.places.is_none() {
                continue;
            }
            let slot = self.slots.get(&place);
            let slot = slot.filter(|slot| (slot.pass, slot.plane) == (op.pass, plane));
            let missing = Fault::Missing { op: op.id, plane };
            let from = slot.ok_or(missing)?.from;
            self.ordered(from, op.id)?;
            if let Some(slot) = self.slots.get_mut(&place) {
                match op.action {
                    Action::Run { .. } => slot.used.push(op.id),
                    _ => slot.read.push(op.id),
                }
            }
        }
        Ok(())
    }

    /// What is at a place is over when an operation writes something else there.
    fn overwrites(&self, op: &Op, place: i64) -> Result<(), Fault> {
        let slot = self.slots.get(&place).into_iter();
        let mut before = slot.flat_map(Slot::all);
        before.try_for_each(|before| self.ordered(before, op.id))
    }

    /// What is at a place is there when an operation moves it.
    fn moves(&self, op: &Op, place: i64) -> Result<(), Fault> {
        let slot = self.slots.get(&place).into_iter();
        let mut before = slot.flat_map(|slot| slot.used.iter().copied().chain([slot.from]));
        before.try_for_each(|before| self.ordered(before, op.id))
    }

    fn load(&mut self, op: &Op, planes: Interval) -> Result<(), Fault> {
        if *self.base.get_or_insert(op.base) != op.base {
            return Err(Fault::Order { op: op.id });
        }
        for plane in planes.lo..planes.hi {
            let place = self.place(op, plane)?;
            self.overwrites(op, place)?;
            if let Some((after, stored)) = self.host.get(&plane).copied() {
                self.ordered(stored, op.id)?;
                if after != op.pass {
                    return Err(Fault::Stale { op: op.id, plane });
                }
            } else if (0..op.pass).any(|pass| self.is_written(pass, plane)) {
                return Err(Fault::Stale { op: op.id, plane });
            }
            let slot = Slot {
                pass: op.pass,
                plane,
                from: op.id,
                used: Vec::new(),
                read: Vec::new(),
            };
            self.slots.insert(place, slot);
        }
        Ok(())
    }

    fn is_written(&self, pass: u64, plane: i64) -> bool {
        let history = self.planes.get(&(pass, plane));
        history.is_some_and(|history| !history.writes.is_empty())
    }

    fn block(&self, op: &Op, block: usize) -> Result<&Block, Fault> {
        let pass = self.passes.get(op.pass as usize);
        let block = pass.and_then(|pass| pass.blocks.get(block));
        block.ok_or(Fault::Order { op: op.id })
    }

    fn run(&mut self, op: &Op, block: usize, group: i64) -> Result<(), Fault> {
        let own = self.block(op, block)?.clone();
        let (pass, id) = (op.pass, op.id);
        let out_of_turn = Fault::Group { pass, block, group };
        let runs = self.runs.get(&(pass, block)).map_or(0, Vec::len) as i64;
        let planes = own.group(group).copied().ok_or(out_of_turn)?;
        if own.first + runs != group {
            return Err(out_of_turn);
        }
        if let Some(before) = self.runs.get(&(pass, block)).and_then(|runs| runs.last()) {
            self.ordered(*before, id)?;
        }
        for earlier in 0..block {
            let need = own.need(earlier, group).ok_or(out_of_turn)?;
            let other = self.block(op, earlier)?;
            let index = need.min(other.end() - 1) - other.first;
            let Ok(index) = usize::try_from(index) else {
                continue;
            };
            let runs = self.runs.get(&(pass, earlier));
            let run = runs.and_then(|runs| runs.get(index)).copied();
            let run = run.ok_or(Fault::TooEarly {
                op: id,
                block: earlier,
                need,
            })?;
            self.ordered(run, id)?;
        }
        // The array of a device that holds all of it goes from pass to pass.
        if let (None, Some(before)) = (self.window.places, pass.checked_sub(1)) {
            for block in 0..self.passes[before as usize].blocks.len() {
                let last = self.runs.get(&(before, block)).and_then(|runs| runs.last());
                let early = Fault::TooEarly {
                    op: id,
                    block,
                    need: i64::MAX,
                };
                self.ordered(*last.ok_or(early)?, id)?;
            }
        }
        self.uses(op, planes.touched)?;
        for plane in planes.written.lo..planes.written.hi {
            let history = self.planes.entry((pass, plane)).or_default();
            let early = history.gathers.iter().any(|(of, ..)| *of >= block);
            if history.stored.is_some() || early {
                return Err(Fault::NotFinal { op: id, plane });
            }
            history.writes.push((block, id));
            let gathers: Vec<OpId> = history.gathers.iter().map(|(.., id)| *id).collect();
            for gather in gathers {
                self.ordered(gather, id)?;
            }
        }
        self.runs.entry((pass, block)).or_default().push(id);
        Ok(())
    }

    fn gather(
        &mut self,
        op: &Op,
        block: usize,
        output: usize,
        planes: Interval,
    ) -> Result<(), Fault> {
        self.uses(op, planes)?;
        for plane in planes.lo..planes.hi {
            let history = self.planes.entry((op.pass, plane)).or_default();
            if history.writes.iter().any(|(of, _)| *of > block) {
                return Err(Fault::TooLate { op: op.id, plane });
            }
            history.gathers.push((block, output, op.id));
            let writes = history.writes.clone();
            for (_, write) in writes {
                self.ordered(write, op.id)?;
            }
        }
        Ok(())
    }

    fn store(&mut self, op: &Op, planes: Interval) -> Result<(), Fault> {
        self.uses(op, planes)?;
        for plane in planes.lo..planes.hi {
            let history = self.planes.entry((op.pass, plane)).or_default();
            if history.stored.replace(op.id).is_some() {
                return Err(Fault::Order { op: op.id });
            }
            let writes = history.writes.clone();
            for (_, write) in writes {
                self.ordered(write, op.id)?;
            }
            if let Some((_, stored)) = self.host.insert(plane, (op.pass + 1, op.id)) {
                self.ordered(stored, op.id)?;
            }
        }
        Ok(())
    }

    fn slide(&mut self, op: &Op, places: Interval, by: i64) -> Result<(), Fault> {
        let size = self.window.places.unwrap_or(0);
        if by < 1 || self.base.map(|base| base - by) != Some(op.base) {
            return Err(Fault::Order { op: op.id });
        }
        if places.lo < 0 || places.hi + by > size {
            let plane = places.hi;
            return Err(Fault::Outside { op: op.id, plane });
        }
        self.base = Some(op.base);
        // Places between those that are read and those that are written are left alone.
        for place in places.lo..places.hi {
            self.moves(op, place)?;
        }
        for place in places.lo + by..places.hi + by {
            self.overwrites(op, place)?;
        }
        let held = |place: i64| Some((place, self.slots.get(&place)?.all().collect()));
        let held: BTreeMap<i64, Vec<OpId>> = (places.lo..places.lo + by).filter_map(held).collect();
        let moved: Vec<(i64, Slot)> = (places.lo..places.hi)
            .filter_map(|place| Some((place + by, self.slots.remove(&place)?)))
            .collect();
        // Where nothing is copied to, nothing is held any more, as the base has moved.
        let all = std::mem::take(&mut self.slots);
        self.slots = all
            .into_iter()
            .filter(|(place, _)| *place < places.hi + by)
            .collect();
        for place in places.lo..places.lo + by {
            // What is there may be overwritten when the slide is over, and whoever used it.
            let slot = Slot {
                pass: u64::MAX,
                plane: place,
                from: op.id,
                used: held.get(&place).cloned().unwrap_or_default(),
                read: Vec::new(),
            };
            self.slots.insert(place, slot);
        }
        for (place, slot) in moved {
            let slot = Slot {
                from: op.id,
                used: Vec::new(),
                read: Vec::new(),
                ..slot
            };
            self.slots.insert(place, slot);
        }
        Ok(())
    }

    /// Everything was done.
    fn end(&self) -> Result<(), Fault> {
        for (pass, blocks) in (0..).zip(self.passes) {
            for (block, own) in blocks.blocks.iter().enumerate() {
                let runs = self.runs.get(&(pass, block)).map_or(0, Vec::len) as i64;
                let group = own.first + runs;
                if group != own.end() {
                    return Err(Fault::Group { pass, block, group });
                }
                for (output, planes) in own.gathers.iter().enumerate() {
                    let gathered = |plane: i64| {
                        let history = self.planes.get(&(pass, plane));
                        let gathers = history.into_iter().flat_map(|h| &h.gathers);
                        let times = gathers.filter(|(b, o, _)| (*b, *o) == (block, output));
                        times.count() == 1
                    };
                    if let Some(plane) = (planes.lo..planes.hi).find(|plane| !gathered(*plane)) {
                        return Err(Fault::Output { pass, block, plane });
                    }
                }
            }
        }
        if self.window.places.is_some() {
            let lost = self
                .planes
                .iter()
                .find(|(_, history)| !history.writes.is_empty() && history.stored.is_none());
            if let Some(((pass, plane), _)) = lost {
                let (pass, plane) = (*pass, *plane);
                return Err(Fault::Lost { pass, plane });
            }
        }
        Ok(())
    }
}
