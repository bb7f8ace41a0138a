//! Which operations of a list are over when others begin, by vector clocks over queues.

use super::{Fault, Op, OpId};
use std::collections::BTreeMap;

/// The operations that are over when an operation is.
#[derive(Clone, Debug)]
struct Clock {
    queue: usize,
    position: u64,
    /// Of each queue, how many operations.
    over: Vec<u64>,
}

/// The operations of a list, in its order.
#[derive(Clone, Debug)]
pub(super) struct Ordered {
    /// By operation.
    clocks: Vec<Clock>,
    /// The last operation of each queue.
    last: Vec<Option<OpId>>,
    /// Per pass, its last operation of each queue.
    ends: BTreeMap<u64, BTreeMap<usize, OpId>>,
}

impl Ordered {
    /// No operations of `queues` queues.
    pub fn new(queues: usize) -> Ordered {
        Ordered {
            clocks: Vec::new(),
            last: vec![None; queues],
            ends: BTreeMap::new(),
        }
    }

    /// Adds the next operation, of a queue; all passes before one are over.
    pub fn add(&mut self, op: &Op, queue: usize, first_active: u64) -> Result<(), Fault> {
        let out_of_order = Fault::Order { op: op.id };
        if op.id != self.clocks.len() as OpId {
            return Err(out_of_order);
        }
        let mut over = vec![0u64; self.last.len()];
        let host = self.ends.range(..first_active);
        let host: Vec<OpId> = host.flat_map(|(_, ends)| ends.values().copied()).collect();
        let before = self.last.get(queue).copied().ok_or(out_of_order)?;
        for id in op.after.iter().copied().chain(before).chain(host) {
            let clock = self.clocks.get(id as usize).ok_or(out_of_order)?;
            for (own, other) in over.iter_mut().zip(&clock.over) {
                *own = (*own).max(*other);
            }
        }
        over[queue] += 1;
        self.clocks.push(Clock {
            queue,
            position: over[queue],
            over,
        });
        self.last[queue] = Some(op.id);
        self.ends.entry(op.pass).or_default().insert(queue, op.id);
        Ok(())
    }

    /// Whether one operation is over when another one begins.
    pub fn ordered(&self, first: OpId, second: OpId) -> Result<(), Fault> {
        let [one, other] = [first, second].map(|id| self.clocks.get(id as usize));
        let known = one
            .zip(other)
            .is_some_and(|(one, other)| first == second || other.over[one.queue] >= one.position);
        match known {
            true => Ok(()),
            false => Err(Fault::Unordered { first, second }),
        }
    }
}
