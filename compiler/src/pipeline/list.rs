//! Operations in a list, each of which waits for the operations that it needs unless that is implied.
//!
//! Each operation carries a clock, the number of operations of every queue that are over when it is.

use super::OpId;
use std::collections::{BTreeMap, VecDeque};

/// Operations that are over, per queue.
pub(super) type Clock = Vec<u64>;

/// Where an operation is, and the operations that are over when it is.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pass: u64,
    pub queue: usize,
    /// From 1 on.
    pub position: u64,
    pub clock: Clock,
}

/// A list of operations, as far as it is made.
#[derive(Clone, Debug)]
pub(super) struct List {
    known: VecDeque<Known>,
    /// The number of the first operation that is known.
    oldest: OpId,
    /// The last operation of each queue, and their number.
    last: Vec<Option<OpId>>,
    count: Vec<u64>,
    /// The operations that are over for all operations from now on.
    over: Clock,
    /// Of each of the last passes, where its last operations are in their queues.
    ends: BTreeMap<u64, Clock>,
}

fn join(clock: &mut Clock, other: &Clock) {
    for (own, other) in clock.iter_mut().zip(other) {
        *own = (*own).max(*other);
    }
}

impl List {
    /// An empty list of operations of `queues` queues.
    pub fn new(queues: usize) -> List {
        List {
            known: VecDeque::new(),
            oldest: 0,
            last: vec![None; queues],
            count: vec![0; queues],
            over: vec![0; queues],
            ends: BTreeMap::new(),
        }
    }

    /// All operations of the passes before one are over for the operations that follow.
    pub fn end_before(&mut self, first: u64) {
        while let Some(entry) = self.ends.first_entry()
            && *entry.key() < first
        {
            let (pass, clock) = entry.remove_entry();
            join(&mut self.over, &clock);
            while self.known.front().is_some_and(|known| known.pass <= pass) {
                self.known.pop_front();
                self.oldest += 1;
            }
        }
    }

    /// The last operation of each queue.
    pub fn last(&self) -> impl Iterator<Item = OpId> + '_ {
        self.last.iter().flatten().copied()
    }

    pub fn of(&self, id: OpId) -> Option<&Known> {
        let index = id.checked_sub(self.oldest)?;
        self.known.get(usize::try_from(index).ok()?)
    }

    /// Adds an operation of a pass to a queue: its number, and the numbers of the needed operations for which it waits.
    pub fn add(&mut self, pass: u64, queue: usize, mut needed: Vec<OpId>) -> (OpId, Vec<OpId>) {
        let mut clock = self.over.clone();
        if let Some(before) = self.last[queue].and_then(|id| self.of(id)) {
            join(&mut clock, &before.clock);
        }
        needed.sort_unstable();
        needed.dedup();
        let mut after = Vec::new();
        // Later operations in the list imply more.
        for id in needed.into_iter().rev() {
            let Some(other) = self.of(id) else { continue };
            if clock[other.queue] < other.position {
                join(&mut clock, &other.clock);
                after.push(id);
            }
        }
        self.count[queue] += 1;
        let position = self.count[queue];
        clock[queue] = position;
        let id = self.oldest + self.known.len() as u64;
        let queues = self.count.len();
        self.ends.entry(pass).or_insert_with(|| vec![0; queues])[queue] = position;
        self.known.push_back(Known {
            pass,
            queue,
            position,
            clock,
        });
        self.last[queue] = Some(id);
        after.reverse();
        (id, after)
    }
}
