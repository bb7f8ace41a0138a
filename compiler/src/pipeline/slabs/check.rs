//! Symbolic execution of the operations of slabs: whether they are right for every interleaving that queues and waits
//! allow.
//!
//! As with a calculation window, each place of a buffer has a tag, and each operation a vector clock; operations that
//! touch the same place have to be ordered. Planes that a slab does not load hold values that are not used: towers may
//! touch them before they have values. Each plane of the host's array has the number of passes that it has been
//! through: a slab loads it before its pass, and stores it once in a pass.

use super::{BUFFERS, Slab, StatePlaces, queue_of};
use crate::lattice::Interval;
use crate::pipeline::history::{History, Output};
use crate::pipeline::{Action, Fault, Op, OpId, Window};
use std::collections::BTreeMap;

/// The contents of a place of a buffer.
#[derive(Clone, Debug)]
struct Slot {
    slab: u64,
    plane: i64,
    /// The operation that loaded it, if it was loaded.
    load: Option<OpId>,
    used: Vec<OpId>,
}

/// A plane of the host's array.
#[derive(Clone, Debug, Default)]
struct HostPlane {
    passes: u64,
    stored: Option<OpId>,
    /// Since then.
    loads: Vec<OpId>,
}

struct Checker<'a> {
    window: &'a Window,
    slabs: &'a [Slab],
    history: History,
    /// Per buffer, by place.
    buffers: Vec<BTreeMap<i64, Slot>>,
    /// By plane from the lowest one on.
    host: Vec<HostPlane>,
    states: StatePlaces,
    /// By slab.
    stores: BTreeMap<u64, Vec<OpId>>,
}

/// Executes the operations of slabs, numbered from 0 on, all of them to their end.
pub fn check_slabs(
    window: &Window,
    states: StatePlaces,
    slabs: &[Slab],
    ops: &[Op],
) -> Result<(), Fault> {
    let queues = (window.devices / BUFFERS).max(1) * (2 + window.in_flight.max(1));
    let mut checker = Checker {
        window,
        slabs,
        history: History::new(queues),
        buffers: vec![BTreeMap::new(); window.devices.max(1)],
        host: vec![HostPlane::default(); window.planes.len().max(0) as usize],
        states,
        stores: BTreeMap::new(),
    };
    for op in ops {
        checker.add(op)?;
        match op.action {
            Action::Load { planes } => checker.load(op, planes),
            Action::Run { block, group } => checker.run(op, block, group),
            Action::Gather {
                block,
                output: number,
                planes,
            } => checker.gather(op, Output { block, number }, planes),
            Action::Store { planes } => checker.store(op, planes),
            Action::Slide { .. } => Err(Fault::Order { op: op.id }),
        }?;
    }
    checker.end()
}

impl Checker<'_> {
    fn add(&mut self, op: &Op) -> Result<(), Fault> {
        if op.pass >= self.slabs.len() as u64 {
            return Err(Fault::Order { op: op.id });
        }
        let queue = queue_of(self.window, op.pass, op.queue);
        let first_active = self.window.first_active(op.pass);
        self.history.add(op, queue, first_active)
    }

    fn slab(&self, op: &Op) -> &Slab {
        &self.slabs[op.pass as usize]
    }

    fn place(&self, op: &Op, plane: i64) -> Result<i64, Fault> {
        let place = self.window.place(op.pass, plane, op.base);
        let inside = (0..self.window.places().unwrap_or(0)).contains(&place);
        match inside && self.slab(op).held.contains(plane) {
            true => Ok(place),
            false => Err(Fault::Outside { op: op.id, plane }),
        }
    }

    fn slots(&mut self, op: &Op) -> &mut BTreeMap<i64, Slot> {
        &mut self.buffers[self.window.device(op.pass)]
    }

    fn host(&mut self, op: &Op, plane: i64) -> Result<&mut HostPlane, Fault> {
        let index = usize::try_from(plane - self.window.planes.lo);
        let own = index.ok().and_then(|index| self.host.get_mut(index));
        own.ok_or(Fault::Outside { op: op.id, plane })
    }

    /// A plane of a slab takes a place of its buffer; operations of another slab there are over.
    fn takes(&mut self, op: &Op, plane: i64, load: Option<OpId>) -> Result<(), Fault> {
        let place = self.place(op, plane)?;
        let slot = Slot {
            slab: op.pass,
            plane,
            load,
            used: Vec::new(),
        };
        let before = self.slots(op).insert(place, slot).into_iter();
        let users = before.flat_map(|slot| slot.used.into_iter().chain(slot.load));
        self.history.ordered(users, op.id)
    }

    /// An operation uses a plane of its slab.
    fn uses(&mut self, op: &Op, plane: i64) -> Result<(), Fault> {
        let place = self.place(op, plane)?;
        let is_loaded = self.slab(op).loaded.contains(plane);
        let own = |slot: &&mut Slot| (slot.slab, slot.plane) == (op.pass, plane);
        let found = self.slots(op).get_mut(&place).filter(own);
        let load = match found {
            Some(slot) => {
                slot.used.push(op.id);
                slot.load
            }
            // It was never loaded, and its values are not used.
            None if !is_loaded => {
                self.takes(op, plane, None)?;
                return self.uses(op, plane);
            }
            None => return Err(Fault::Missing { op: op.id, plane }),
        };
        self.history.ordered(load, op.id)
    }

    /// The slab that had the buffer of an operation before, where the states of both lie at the same places.
    fn before_with_states(&self, op: &Op) -> Option<u64> {
        let before = op.pass.checked_sub(self.window.devices as u64);
        before.filter(|_| self.states == StatePlaces::Beside)
    }

    fn load(&mut self, op: &Op, planes: Interval) -> Result<(), Fault> {
        let pass = self.slab(op).pass;
        if let Some(before) = self.before_with_states(op) {
            let runs = self.history.runs_of_pass(before);
            self.history.ordered(runs, op.id)?;
        }
        for plane in planes.lo..planes.hi {
            self.takes(op, plane, Some(op.id))?;
            let host = self.host(op, plane)?;
            if host.passes != pass {
                return Err(Fault::Stale { op: op.id, plane });
            }
            host.loads.push(op.id);
            let stored = host.stored;
            self.history.ordered(stored, op.id)?;
        }
        Ok(())
    }

    fn run(&mut self, op: &Op, block: usize, group: i64) -> Result<(), Fault> {
        let blocks = &self.slabs[op.pass as usize].work.blocks;
        let planes = self.history.run(op, blocks, block, group)?;
        // Towers of a buffer say in common memory how far they are.
        if let Some(before) = op.pass.checked_sub(self.window.devices as u64) {
            let runs = self.history.runs_of_pass(before);
            self.history.ordered(runs, op.id)?;
        }
        let before = self.before_with_states(op);
        if let Some(stores) = before.and_then(|before| self.stores.get(&before)) {
            self.history.ordered(stores.iter().copied(), op.id)?;
        }
        for plane in planes.touched.lo..planes.touched.hi {
            self.uses(op, plane)?;
        }
        let mut written = planes.written.lo..planes.written.hi;
        written.try_for_each(|plane| self.history.write(op, block, plane))
    }

    fn gather(&mut self, op: &Op, output: Output, planes: Interval) -> Result<(), Fault> {
        for plane in planes.lo..planes.hi {
            self.in_base(op, plane)?;
            self.uses(op, plane)?;
            self.history.gather(op, output, plane)?;
        }
        Ok(())
    }

    /// A plane lies in the base of an operation's slab.
    fn in_base(&self, op: &Op, plane: i64) -> Result<(), Fault> {
        match self.slab(op).base.contains(plane) {
            true => Ok(()),
            false => Err(Fault::Outside { op: op.id, plane }),
        }
    }

    fn store(&mut self, op: &Op, planes: Interval) -> Result<(), Fault> {
        let pass = self.slab(op).pass;
        self.stores.entry(op.pass).or_default().push(op.id);
        for plane in planes.lo..planes.hi {
            self.in_base(op, plane)?;
            self.uses(op, plane)?;
            self.history.store(op, plane)?;
            let host = self.host(op, plane)?;
            if host.passes != pass {
                return Err(Fault::Stale { op: op.id, plane });
            }
            host.passes += 1;
            let loads = std::mem::take(&mut host.loads);
            let before = host.stored.replace(op.id);
            let uses = loads.into_iter().chain(before);
            self.history.ordered(uses, op.id)?;
        }
        Ok(())
    }

    /// Everything was done.
    fn end(&self) -> Result<(), Fault> {
        for (pass, slab) in (0..).zip(self.slabs) {
            for (block, own) in slab.work.blocks.iter().enumerate() {
                self.history.all_ran(pass, block, own)?;
                let ran = Interval::new(own.first, own.end());
                let needed = slab.needed[block];
                if let Some(group) = (needed.lo..needed.hi).find(|group| !ran.contains(*group)) {
                    return Err(Fault::Group { pass, block, group });
                }
                for (number, planes) in own.gathers.iter().enumerate() {
                    let output = Output { block, number };
                    let planes = planes.intersect(slab.base);
                    self.history.all_gathered(pass, output, planes)?;
                }
            }
        }
        let passes = self.slabs.last().map_or(0, |slab| slab.pass + 1);
        let lost = self.host.iter().position(|host| host.passes != passes);
        lost.map_or(Ok(()), |index| {
            Err(Fault::Lost {
                pass: passes - 1,
                plane: self.window.planes.lo + index as i64,
            })
        })
    }
}
