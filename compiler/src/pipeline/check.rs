//! Symbolic execution of a list of operations: whether it is right for every interleaving that its queues and waits
//! allow.
//!
//! Each place of the buffer has a tag, the plane and the pass whose values it holds, with the operation that put them
//! there and the operations that used them. Each operation has a vector clock over queues. The values that an operation
//! uses have to be there, and all operations that touch the same place before it in the list have to be over. So the
//! list's order is one of the interleavings, and in all others every operation reads the same values.
//!
//! In a circular buffer a plane that is loaded takes the places of all planes whose numbers differ from its own by the
//! number of places, or more: these are gone, and the operations that touched them have to be over.
//!
//! Towers of different time blocks touch the same planes without touching the same values. So their order is checked by
//! the groups that a group needs, not by planes.
//!
//! Around a ring the host has one place for planes of a pass that lie whole lengths of the ring apart. A load has to
//! find the values that the pass itself has stored of such a plane above, or else the values of the last pass that
//! stored one, and a store comes after all loads of its place.

use super::fault::Fault;
use super::history::{History, Output};
use super::{Action, Op, OpId, Pass, Queue, Window};
use crate::lattice::Interval;
use std::collections::BTreeMap;

/// The number of a queue among the queues of all devices.
type DeviceQueue = usize;

/// The contents of a place of the buffer, or of a plane's number in a circular one.
#[derive(Clone, Debug)]
struct Slot {
    pass: u64,
    plane: i64,
    /// The operation that put it there.
    from: OpId,
    used: Vec<OpId>,
    /// The operations that only read it.
    read: Vec<OpId>,
}

impl Slot {
    /// The operations that put it there or used it.
    fn all(&self) -> impl Iterator<Item = OpId> {
        let users = self.used.iter().chain(&self.read).copied();
        users.chain([self.from])
    }
}

/// The buffer of a device.
#[derive(Clone, Debug, Default)]
struct Buffer {
    slots: BTreeMap<i64, Slot>,
    base: Option<i64>,
}

struct Checker<'a> {
    window: &'a Window,
    passes: &'a [Pass],
    /// Per pass, the planes that it writes.
    written: Vec<Vec<bool>>,
    history: History,
    buffers: Vec<Buffer>,
    /// Planes that the host has, by their index.
    host: BTreeMap<i64, OnHost>,
    /// Per pass, from its planes to their indices, where they are counted on around a ring.
    rotations: Vec<i64>,
}

/// A plane that the host has.
#[derive(Clone, Debug, Default)]
struct OnHost {
    /// The pass that stored it, the plane of the pass, and the operation.
    stored: Option<(u64, i64, OpId)>,
    /// Operations that have loaded it since.
    loads: Vec<OpId>,
}

/// The planes that a pass writes.
fn written(window: &Window, pass: &Pass) -> Vec<bool> {
    // By how much more groups write a plane than the one below.
    let mut changes = vec![0i64; window.planes.len().max(0) as usize + 1];
    for group in pass.blocks.iter().flat_map(|block| block.groups.iter()) {
        let written = group.written.intersect(window.planes);
        if !written.is_empty() {
            changes[(written.lo - window.planes.lo) as usize] += 1;
            changes[(written.hi - window.planes.lo) as usize] -= 1;
        }
    }
    let mut groups = 0;
    let of = changes.iter().map(|change| {
        groups += change;
        groups > 0
    });
    of.collect()
}

/// Executes the operations of passes, numbered from 0 on, all of them to their end.
pub fn check(window: &Window, passes: &[Pass], ops: &[Op]) -> Result<(), Fault> {
    let each = 2 + window.in_flight.max(1);
    let mut rotation = 0;
    let rotations = passes.iter().map(|pass| {
        let own = rotation;
        rotation -= window.below(pass);
        own
    });
    let rotations = rotations.collect();
    let mut checker = Checker {
        rotations,
        window,
        passes,
        written: passes.iter().map(|pass| written(window, pass)).collect(),
        history: History::new(each * window.devices.max(1)),
        buffers: vec![Buffer::default(); window.devices.max(1)],
        host: BTreeMap::new(),
    };
    for op in ops {
        checker.order(op)?;
        match op.action {
            Action::Load { planes } => checker.load(op, planes),
            Action::Run { block, group } => checker.run(op, block, group),
            Action::Gather {
                block,
                output: number,
                planes,
            } => checker.gather(op, Output { block, number }, planes),
            Action::Store { planes } => checker.store(op, planes),
            Action::Slide { places, by } => checker.slide(op, places, by),
        }?;
    }
    checker.end()
}

impl Checker<'_> {
    /// Makes the clock of an operation.
    fn order(&mut self, op: &Op) -> Result<(), Fault> {
        if op.pass >= self.passes.len() as u64 {
            return Err(Fault::Order { op: op.id });
        }
        let queue = self.queue(op);
        let first_active = self.window.first_active(op.pass);
        self.history.add(op, queue, first_active)
    }

    /// The queue of an operation.
    fn queue(&self, op: &Op) -> DeviceQueue {
        let each = 2 + self.window.in_flight.max(1);
        let own = match op.queue {
            Queue::Loads => 0,
            Queue::Stores => 1,
            Queue::Blocks(n) => 2 + n % (each - 2),
        };
        self.window.device(op.pass) * each + own
    }

    /// The buffer of the device of a pass.
    fn buffer(&mut self, pass: u64) -> &mut Buffer {
        &mut self.buffers[self.window.device(pass)]
    }

    /// The contents of a place of an operation's buffer.
    fn slot(&self, op: &Op, place: i64) -> Option<&Slot> {
        self.buffers[self.window.device(op.pass)].slots.get(&place)
    }

    /// The place of a plane.
    fn place(&self, op: &Op, plane: i64) -> Result<i64, Fault> {
        let place = self.window.place(op.pass, plane, op.base);
        let places = self.window.places().unwrap_or(self.window.planes.len());
        match (0..places).contains(&place) && self.window.planes.contains(plane) {
            true if self.window.is_circular() => Ok(self.window.number(op.pass, plane)),
            true => Ok(place),
            false => Err(Fault::Outside { op: op.id, plane }),
        }
    }

    /// An operation uses planes that have to be there.
    fn uses(&mut self, op: &Op, planes: Interval) -> Result<(), Fault> {
        for plane in planes.lo..planes.hi {
            let place = self.place(op, plane)?;
            if self.window.places().is_none() {
                continue;
            }
            let slot = self.slot(op, place);
            let slot = slot.filter(|slot| (slot.pass, slot.plane) == (op.pass, plane));
            let missing = Fault::Missing { op: op.id, plane };
            let from = slot.ok_or(missing)?.from;
            self.history.ordered([from], op.id)?;
            if let Some(slot) = self.buffer(op.pass).slots.get_mut(&place) {
                match op.action {
                    Action::Run { .. } => slot.used.push(op.id),
                    _ => slot.read.push(op.id),
                }
            }
        }
        Ok(())
    }

    /// Planes that lie where a circular buffer gets a plane of some number are not used any more, and gone.
    fn goes_around(&mut self, op: &Op, number: i64) -> Result<(), Fault> {
        let places = self.window.places().unwrap_or(0);
        let slots = &self.buffers[self.window.device(op.pass)].slots;
        let below = slots.range(..=number - places);
        let gone = below.chain(slots.range(number + places..));
        let gone: Vec<i64> = gone.map(|(other, _)| *other).collect();
        for other in gone {
            self.overwrites(op, other)?;
            self.buffer(op.pass).slots.remove(&other);
        }
        Ok(())
    }

    /// The operations on the contents of a place are over when an operation writes something else there.
    fn overwrites(&self, op: &Op, place: i64) -> Result<(), Fault> {
        let slot = self.slot(op, place).into_iter();
        self.history.ordered(slot.flat_map(Slot::all), op.id)
    }

    /// The contents of a place are there when an operation moves them.
    fn moves(&self, op: &Op, place: i64) -> Result<(), Fault> {
        let slot = self.slot(op, place).into_iter();
        let before = slot.flat_map(|slot| slot.used.iter().copied().chain([slot.from]));
        self.history.ordered(before, op.id)
    }

    fn load(&mut self, op: &Op, planes: Interval) -> Result<(), Fault> {
        let circular = self.window.is_circular();
        if !circular && *self.buffer(op.pass).base.get_or_insert(op.base) != op.base {
            return Err(Fault::Order { op: op.id });
        }
        for plane in planes.lo..planes.hi {
            let place = self.place(op, plane)?;
            self.overwrites(op, place)?;
            if circular {
                self.goes_around(op, place)?;
            }
            let of_array = self.in_array(op.pass, plane);
            let stored = self.host.get(&of_array).and_then(|host| host.stored);
            self.history.ordered(stored.map(|(.., id)| id), op.id)?;
            let is_newest = match self.window.ring {
                Some(ring) => {
                    let found = stored.map(|(pass, plane, _)| (pass, plane));
                    found == self.stored_last(op.pass, plane, ring)
                }
                None => {
                    let mut since = stored.map_or(0, |(pass, ..)| pass + 1)..op.pass;
                    !since.any(|pass| self.writes(pass, plane))
                }
            };
            if !is_newest {
                return Err(Fault::Stale { op: op.id, plane });
            }
            if self.window.ring.is_some() {
                self.host.entry(of_array).or_default().loads.push(op.id);
            }
            let slot = Slot {
                pass: op.pass,
                plane,
                from: op.id,
                used: Vec::new(),
                read: Vec::new(),
            };
            self.buffer(op.pass).slots.insert(place, slot);
        }
        Ok(())
    }

    /// The plane of the array that a plane of a pass is.
    fn in_array(&self, pass: u64, plane: i64) -> i64 {
        match (self.window.ring, self.rotations.get(pass as usize)) {
            (Some(ring), Some(rotation)) => (plane + rotation).rem_euclid(ring),
            _ => plane,
        }
    }

    /// The pass and the plane of the store that a load has to find: the pass itself, if it has the plane higher
    /// up, too, or the last one before.
    fn stored_last(&self, pass: u64, plane: i64, ring: i64) -> Option<(u64, i64)> {
        let ring_part = |pass: u64| {
            self.passes
                .get(pass as usize)
                .and_then(|pass| pass.ring_part)
        };
        let above = plane + ring;
        if ring_part(pass).is_some_and(|own| own.stored.contains(above)) {
            return Some((pass, above));
        }
        let rotation = |pass: u64| self.rotations[pass as usize];
        (0..pass).rev().find_map(|before| {
            let own = ring_part(before)?;
            let last = own.last(ring, plane + rotation(pass) - rotation(before));
            own.stored.contains(last).then_some((before, last))
        })
    }

    /// Whether a pass writes a plane, now or later.
    fn writes(&self, pass: u64, plane: i64) -> bool {
        let index = plane - self.window.planes.lo;
        let of = self.written.get(pass as usize);
        of.is_some_and(|planes| planes.get(index as usize).copied().unwrap_or(false))
    }

    fn run(&mut self, op: &Op, block: usize, group: i64) -> Result<(), Fault> {
        let own = self.passes.get(op.pass as usize);
        let blocks = own.map_or(&[][..], |pass| &pass.blocks);
        let planes = self.history.run(op, blocks, block, group)?;
        // The array of a device that holds all of it goes from pass to pass.
        if let (None, Some(before)) = (self.window.places(), op.pass.checked_sub(1)) {
            for block in 0..self.passes[before as usize].blocks.len() {
                let last = self.history.runs(before, block).last().copied();
                let early = Fault::TooEarly {
                    op: op.id,
                    block,
                    need: i64::MAX,
                };
                self.history.ordered([last.ok_or(early)?], op.id)?;
            }
        }
        self.uses(op, planes.touched)?;
        for plane in planes.written.lo..planes.written.hi {
            if !self.window.planes.contains(plane) {
                return Err(Fault::Outside { op: op.id, plane });
            }
            self.history.write(op, block, plane)?;
        }
        Ok(())
    }

    fn gather(&mut self, op: &Op, output: Output, planes: Interval) -> Result<(), Fault> {
        self.uses(op, planes)?;
        (planes.lo..planes.hi).try_for_each(|plane| self.history.gather(op, output, plane))
    }

    fn store(&mut self, op: &Op, planes: Interval) -> Result<(), Fault> {
        self.uses(op, planes)?;
        for plane in planes.lo..planes.hi {
            self.history.store(op, plane)?;
            let of_array = self.in_array(op.pass, plane);
            let stored = OnHost {
                stored: Some((op.pass, plane, op.id)),
                loads: Vec::new(),
            };
            let before = self.host.insert(of_array, stored).unwrap_or_default();
            let stored = before.stored.map(|(.., id)| id);
            let uses = before.loads.into_iter().chain(stored);
            self.history.ordered(uses, op.id)?;
        }
        Ok(())
    }

    fn slide(&mut self, op: &Op, places: Interval, by: i64) -> Result<(), Fault> {
        let size = self.window.places().unwrap_or(0);
        if self.window.is_circular() {
            return Err(Fault::Order { op: op.id });
        }
        let buffer = &self.buffers[self.window.device(op.pass)];
        if by < 1 || buffer.base.map(|base| base - by) != Some(op.base) {
            return Err(Fault::Order { op: op.id });
        }
        if places.lo < 0 || places.hi + by > size {
            let plane = places.hi;
            return Err(Fault::Outside { op: op.id, plane });
        }
        // Places between the places that are read and the places that are written are left alone.
        for place in places.lo..places.hi {
            self.moves(op, place)?;
        }
        for place in places.lo + by..places.hi + by {
            self.overwrites(op, place)?;
        }
        let Buffer { slots, base } = self.buffer(op.pass);
        *base = Some(op.base);
        let held = |place: i64| Some((place, slots.get(&place)?.all().collect()));
        let held: BTreeMap<i64, Vec<OpId>> = (places.lo..places.lo + by).filter_map(held).collect();
        let moved: Vec<(i64, Slot)> = (places.lo..places.hi)
            .filter_map(|place| Some((place + by, slots.remove(&place)?)))
            .collect();
        // Where nothing is copied to, nothing is held any more, as the base has moved.
        let all = std::mem::take(slots);
        *slots = all
            .into_iter()
            .filter(|(place, _)| *place < places.hi + by)
            .collect();
        for place in places.lo..places.lo + by {
            // The contents may be overwritten when the slide and the operations that used them are over.
            let slot = Slot {
                pass: u64::MAX,
                plane: place,
                from: op.id,
                used: held.get(&place).cloned().unwrap_or_default(),
                read: Vec::new(),
            };
            slots.insert(place, slot);
        }
        for (place, slot) in moved {
            let slot = Slot {
                from: op.id,
                used: Vec::new(),
                read: Vec::new(),
                ..slot
            };
            slots.insert(place, slot);
        }
        Ok(())
    }

    /// Everything was done.
    fn end(&self) -> Result<(), Fault> {
        for (pass, blocks) in (0..).zip(self.passes) {
            for (block, own) in blocks.blocks.iter().enumerate() {
                self.history.all_ran(pass, block, own)?;
                for (number, planes) in own.gathers.iter().enumerate() {
                    let output = Output { block, number };
                    self.history.all_gathered(pass, output, *planes)?;
                }
            }
        }
        match self.window.places() {
            Some(_) => self.history.all_stored(),
            None => Ok(()),
        }
    }
}
