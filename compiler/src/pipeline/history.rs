//! The operations of a list so far, and the rules of planes and groups that passes with a calculation window and
//! overlapped slabs have in common.
//!
//! A plane of a pass is gathered for an output of a time block when all groups that write it up to this block have run,
//! and no later group has; it is stored once, and not written afterwards. Groups of a time block run in their order,
//! each after the groups of earlier blocks that it needs. All these operations have to be ordered by queues and waits.

use super::order::Ordered;
use super::{Fault, Op, OpId, PassBlock};
use crate::lattice::Interval;
use crate::tower::Planes;
use std::collections::BTreeMap;

/// An output of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Output {
    /// The time block after which it is taken.
    pub block: usize,
    /// Among the outputs of the block.
    pub number: usize,
}

/// The history of a plane in a pass.
#[derive(Clone, Debug, Default)]
struct PlaneHistory {
    /// Blocks that wrote it, in the order of the list.
    writes: Vec<(usize, OpId)>,
    gathers: Vec<(Output, OpId)>,
    stored: Option<OpId>,
}

/// The operations of a list so far. Slabs have numbers as passes have.
#[derive(Clone, Debug)]
pub(super) struct History {
    order: Ordered,
    /// By pass and plane.
    planes: BTreeMap<(u64, i64), PlaneHistory>,
    /// By pass and block, the operations that have run its groups, from its first group on.
    runs: BTreeMap<(u64, usize), Vec<OpId>>,
}

impl History {
    /// No operations of `queues` queues.
    pub fn new(queues: usize) -> History {
        History {
            order: Ordered::new(queues),
            planes: BTreeMap::new(),
            runs: BTreeMap::new(),
        }
    }

    /// Adds the next operation, of a queue; all passes before `first_active` are over.
    pub fn add(&mut self, op: &Op, queue: usize, first_active: u64) -> Result<(), Fault> {
        self.order.add(op, queue, first_active)
    }

    /// Whether operations are over when another one begins.
    pub fn ordered(&self, before: impl IntoIterator<Item = OpId>, op: OpId) -> Result<(), Fault> {
        let mut before = before.into_iter();
        before.try_for_each(|first| self.order.ordered(first, op))
    }

    /// The operations that have run groups of a block of a pass, from its first group on.
    pub fn runs(&self, pass: u64, block: usize) -> &[OpId] {
        self.runs.get(&(pass, block)).map_or(&[], Vec::as_slice)
    }

    /// The operations that have run groups of a pass.
    pub fn runs_of_pass(&self, pass: u64) -> impl Iterator<Item = OpId> + '_ {
        let of = self.runs.range((pass, 0)..(pass + 1, 0));
        of.flat_map(|(_, runs)| runs.iter().copied())
    }

    /// An operation runs a group of a block of its pass: the planes of the group.
    ///
    /// # Errors
    /// The group is out of its turn, or runs before groups that it needs.
    pub fn run(
        &mut self,
        op: &Op,
        blocks: &[PassBlock],
        block: usize,
        group: i64,
    ) -> Result<Planes, Fault> {
        let Op { id, pass, .. } = *op;
        let own = blocks.get(block).ok_or(Fault::Order { op: id })?;
        let out_of_turn = Fault::Group { pass, block, group };
        let planes = own.group(group).copied().ok_or(out_of_turn)?;
        let runs = self.runs(pass, block);
        if own.first + runs.len() as i64 != group {
            return Err(out_of_turn);
        }
        self.ordered(runs.last().copied(), id)?;
        for (number, earlier) in blocks[..block].iter().enumerate() {
            let need = own.need(number, group).ok_or(out_of_turn)?;
            // The last group where it needs more groups than there are; none where it needs no group.
            let last = need.min(earlier.end() - 1);
            let Ok(index) = usize::try_from(last - earlier.first) else {
                continue;
            };
            let run = self.runs(pass, number).get(index).copied();
            let run = run.ok_or(Fault::TooEarly {
                op: id,
                block: number,
                need,
            })?;
            self.ordered([run], id)?;
        }
        self.runs.entry((pass, block)).or_default().push(id);
        Ok(planes)
    }

    /// An operation writes a plane for a block of its pass.
    pub fn write(&mut self, op: &Op, block: usize, plane: i64) -> Result<(), Fault> {
        let id = op.id;
        let history = self.planes.entry((op.pass, plane)).or_default();
        let is_gathered = history.gathers.iter().any(|(of, _)| of.block >= block);
        if history.stored.is_some() || is_gathered {
            return Err(Fault::NotFinal { op: id, plane });
        }
        history.writes.push((block, id));
        let mut gathers = history.gathers.iter();
        gathers.try_for_each(|(_, gather)| self.order.ordered(*gather, id))
    }

    /// An operation gathers a plane of its pass for an output.
    pub fn gather(&mut self, op: &Op, output: Output, plane: i64) -> Result<(), Fault> {
        let id = op.id;
        let history = self.planes.entry((op.pass, plane)).or_default();
        if history.writes.iter().any(|(of, _)| *of > output.block) {
            return Err(Fault::TooLate { op: id, plane });
        }
        history.gathers.push((output, id));
        let mut writes = history.writes.iter();
        writes.try_for_each(|(_, write)| self.order.ordered(*write, id))
    }

    /// An operation stores a plane of its pass.
    pub fn store(&mut self, op: &Op, plane: i64) -> Result<(), Fault> {
        let id = op.id;
        let history = self.planes.entry((op.pass, plane)).or_default();
        if history.stored.replace(id).is_some() {
            return Err(Fault::Order { op: id });
        }
        let mut writes = history.writes.iter();
        writes.try_for_each(|(_, write)| self.order.ordered(*write, id))
    }

    /// All groups of a block of a pass have run.
    pub fn all_ran(&self, pass: u64, block: usize, own: &PassBlock) -> Result<(), Fault> {
        let group = own.first + self.runs(pass, block).len() as i64;
        match group == own.end() {
            true => Ok(()),
            false => Err(Fault::Group { pass, block, group }),
        }
    }

    /// Each plane of an interval was gathered once for an output of a pass.
    pub fn all_gathered(&self, pass: u64, output: Output, planes: Interval) -> Result<(), Fault> {
        let is_gathered = |plane: i64| {
            let history = self.planes.get(&(pass, plane)).into_iter();
            let gathers = history.flat_map(|history| &history.gathers);
            gathers.filter(|(of, _)| *of == output).count() == 1
        };
        let block = output.block;
        match (planes.lo..planes.hi).find(|plane| !is_gathered(*plane)) {
            Some(plane) => Err(Fault::Output { pass, block, plane }),
            None => Ok(()),
        }
    }

    /// Each plane that was written is stored.
    pub fn all_stored(&self) -> Result<(), Fault> {
        let is_lost = |own: &PlaneHistory| !own.writes.is_empty() && own.stored.is_none();
        match self.planes.iter().find(|(_, own)| is_lost(own)) {
            Some(((pass, plane), _)) => Err(Fault::Lost {
                pass: *pass,
                plane: *plane,
            }),
            None => Ok(()),
        }
    }
}
