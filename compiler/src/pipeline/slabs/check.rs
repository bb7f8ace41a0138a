//! Symbolic execution of the operations of slabs: whether they are right for every interleaving that queues and waits
//! allow.
//!
//! As with a calculation window, each place of a buffer has a tag, and each operation a vector clock; operations that
//! touch the same place have to be ordered. Planes that a slab does not load hold values that are not used: towers may
//! touch them before they have values. Each plane of the host's array has the number of passes that it has been
//! through: a slab loads it before its pass, and stores it once in a pass.

use super::{BUFFERS, Slab, queue_of};
use crate::lattice::Interval;
use crate::pipeline::order::{Earlier, Ordered};
use crate::pipeline::{Action, Block, Fault, Op, OpId, Window};
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

/// The history of a plane in a slab.
#[derive(Clone, Debug, Default)]
struct History {
    writes: Vec<(usize, OpId)>,
    gathers: Vec<(usize, usize, OpId)>,
    stored: Option<OpId>,
}

struct Checker<'a> {
    window: &'a Window,
    slabs: &'a [Slab],
    order: Ordered,
    /// Per buffer, by place.
    buffers: Vec<BTreeMap<i64, Slot>>,
    /// By plane from the lowest one on.
    host: Vec<HostPlane>,
    /// Per slab, by plane.
    planes: Vec<BTreeMap<i64, History>>,
    /// Per slab and block, its runs in the order of groups.
    runs: BTreeMap<(u64, usize), Vec<OpId>>,
}

/// Executes the operations of slabs, numbered from 0 on, all of them to their end.
pub fn check_slabs(window: &Window, slabs: &[Slab], ops: &[Op]) -> Result<(), Fault> {
    let mut checker = Checker {
        window,
        slabs,
        order: Ordered::new((window.devices / BUFFERS).max(1) * (2 + window.in_flight.max(1))),
        buffers: vec![BTreeMap::new(); window.devices.max(1)],
        host: vec![HostPlane::default(); window.planes.len().max(0) as usize],
        planes: vec![BTreeMap::new(); slabs.len()],
        runs: BTreeMap::new(),
    };
    for op in ops {
        checker.add(op)?;
        match op.action {
            Action::Load { planes } => checker.load(op, planes),
            Action::Run { block, group } => checker.run(op, block, group),
            Action::Gather {
                block,
                output,
                planes,
            } => checker.gather(op, block, output, planes),
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
        let first = self.window.first_active(op.pass);
        self.order.add(op, queue, first)
    }

    fn ordered(&self, first: OpId, second: OpId) -> Result<(), Fault> {
        self.order.ordered(first, second)
    }

    fn slab(&self, op: &Op) -> &Slab {
        &self.slabs[op.pass as usize]
    }

    fn place(&self, op: &Op, plane: i64) -> Result<i64, Fault> {
        let place = self.window.place(op.pass, plane, op.base);
        let inside = (0..self.window.places.unwrap_or(0)).contains(&place);
        match inside && self.slab(op).held.contains(plane) {
            true => Ok(place),
            false => Err(Fault::Outside { op: op.id, plane }),
        }
    }

    fn slots(&mut self, op: &Op) -> &mut BTreeMap<i64, Slot> {
        &mut self.buffers[self.window.device(op.pass)]
    }

    fn history(&mut self, op: &Op, plane: i64) -> &mut History {
        let planes = &mut self.planes[op.pass as usize];
        planes.entry(plane).or_default()
    }

    fn host(&mut self, op: &Op, plane: i64) -> Result<&mut HostPlane, Fault> {
        let index = usize::try_from(plane - self.window.planes.lo);
        let own = index.ok().and_then(|index| self.host.get_mut(index));
        own.ok_or(Fault::Outside { op: op.id, plane })
    }

    /// A plane of a slab takes a place of its buffer; operations of another slab there are over.
    fn takes(&mut self, op: &Op, plane: i64, load: Option<OpId>) -> Result<(), Fault> {
        let place = self.place(op, plane)?;
        let before = self.slots(op).get(&place).cloned();
        if let Some(slot) = &before {
            for user in slot.used.iter().copied().chain(slot.load) {
                self.ordered(user, op.id)?;
            }
        }
        let slot = Slot {
            slab: op.pass,
            plane,
            load,
            used: Vec::new(),
        };
        self.slots(op).insert(place, slot);
        Ok(())
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
        load.map_or(Ok(()), |load| self.ordered(load, op.id))
    }

    fn load(&mut self, op: &Op, planes: Interval) -> Result<(), Fault> {
        let pass = self.slab(op).pass;
        for plane in planes.lo..planes.hi {
            self.takes(op, plane, Some(op.id))?;
            let host = self.host(op, plane)?;
            if host.passes != pass {
                return Err(Fault::Stale { op: op.id, plane });
            }
            host.loads.push(op.id);
            let stored = host.stored;
            stored.map_or(Ok(()), |stored| self.ordered(stored, op.id))?;
        }
        Ok(())
    }

    fn block(&self, op: &Op, block: usize) -> Result<&Block, Fault> {
        let block = self.slab(op).work.blocks.get(block);
        block.ok_or(Fault::Order { op: op.id })
    }

    fn run(&mut self, op: &Op, block: usize, group: i64) -> Result<(), Fault> {
        let own = self.block(op, block)?.clone();
        let (pass, id) = (op.pass, op.id);
        let out_of_turn = Fault::Group { pass, block, group };
        let planes = own.group(group).copied().ok_or(out_of_turn)?;
        let runs = self.runs.entry((pass, block)).or_default();
        let before = runs.last().copied();
        if own.first + runs.len() as i64 != group {
            return Err(out_of_turn);
        }
        runs.push(id);
        before.map_or(Ok(()), |before| self.ordered(before, id))?;
        // Towers of a buffer say in common memory how far they are.
        let same = pass.checked_sub(self.window.devices as u64).into_iter();
        for other in same.flat_map(|same| self.runs.range((same, 0)..(same + 1, 0))) {
            for run in other.1 {
                self.ordered(*run, id)?;
            }
        }
        for earlier in 0..block {
            let need = own.need(earlier, group).ok_or(out_of_turn)?;
            let other = Earlier {
                number: earlier,
                block: self.block(op, earlier)?,
                runs: self.runs.get(&(pass, earlier)).map_or(&[], Vec::as_slice),
            };
            if let Some(run) = other.run(need, id)? {
                self.ordered(run, id)?;
            }
        }
        for plane in planes.touched.lo..planes.touched.hi {
            self.uses(op, plane)?;
        }
        for plane in planes.written.lo..planes.written.hi {
            let history = self.history(op, plane);
            if history.stored.is_some() {
                return Err(Fault::NotFinal { op: id, plane });
            }
            history.writes.push((block, id));
            let gathers = history.gathers.clone();
            for (of, _, gather) in gathers {
                if of >= block {
                    return Err(Fault::NotFinal { op: id, plane });
                }
                self.ordered(gather, id)?;
            }
        }
        Ok(())
    }

    fn gather(
        &mut self,
        op: &Op,
        block: usize,
        output: usize,
        planes: Interval,
    ) -> Result<(), Fault> {
        for plane in planes.lo..planes.hi {
            if !self.slab(op).base.contains(plane) {
                return Err(Fault::Outside { op: op.id, plane });
            }
            self.uses(op, plane)?;
            let history = self.history(op, plane);
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
        let Slab { pass, base, .. } = *self.slab(op);
        for plane in planes.lo..planes.hi {
            if !base.contains(plane) {
                return Err(Fault::Outside { op: op.id, plane });
            }
            self.uses(op, plane)?;
            let history = self.history(op, plane);
            if history.stored.replace(op.id).is_some() {
                return Err(Fault::Order { op: op.id });
            }
            let writes = history.writes.clone();
            for (_, write) in writes {
                self.ordered(write, op.id)?;
            }
            let host = self.host(op, plane)?;
            if host.passes != pass {
                return Err(Fault::Stale { op: op.id, plane });
            }
            host.passes += 1;
            let loads = std::mem::take(&mut host.loads);
            let before = host.stored.replace(op.id);
            for other in loads.into_iter().chain(before) {
                self.ordered(other, op.id)?;
            }
        }
        Ok(())
    }

    /// Everything was done.
    fn end(&self) -> Result<(), Fault> {
        for (pass, slab) in (0..).zip(self.slabs) {
            for (block, own) in slab.work.blocks.iter().enumerate() {
                let runs = self.runs.get(&(pass, block)).map_or(0, Vec::len) as i64;
                let ran = Interval::new(own.first, own.first + runs);
                if ran.len() != own.groups.len() as i64 {
                    let group = ran.hi;
                    return Err(Fault::Group { pass, block, group });
                }
                let needed = slab.needed[block];
                if let Some(group) = (needed.lo..needed.hi).find(|group| !ran.contains(*group)) {
                    return Err(Fault::Group { pass, block, group });
                }
                for (output, planes) in own.gathers.iter().enumerate() {
                    let own = planes.intersect(slab.base);
                    let gathered = |plane: i64| {
                        let history = self.planes[pass as usize].get(&plane);
                        let gathers = history.into_iter().flat_map(|h| &h.gathers);
                        let times = gathers.filter(|(b, o, _)| (*b, *o) == (block, output));
                        times.count() == 1
                    };
                    if let Some(plane) = (own.lo..own.hi).find(|plane| !gathered(*plane)) {
                        return Err(Fault::Output { pass, block, plane });
                    }
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
