//! The operations of a pass.
//!
//! The list is made in rounds: in each of them every time block runs the launches with its next number, if all
//! operations that they need are in the list. An operation waits for the operations on which it depends unless that is
//! implied by another wait: each operation carries a clock, the number of operations of every queue that are over when
//! it is.

use super::{StripeAction, StripeLaunches, StripeOp, StripeQueue, StripedPass};
use crate::pipeline::NoLayout;
use std::collections::BTreeMap;

/// The operations that are over when an operation is, by queue.
type Clock = BTreeMap<StripeQueue, u64>;

#[derive(Default)]
struct List {
    ops: Vec<StripeOp>,
    clocks: Vec<Clock>,
    last: BTreeMap<StripeQueue, usize>,
}

fn join(clock: &mut Clock, other: &Clock) {
    for (queue, over) in other {
        let own = clock.entry(*queue).or_default();
        *own = (*own).max(*over);
    }
}

impl List {
    /// Adds an operation; of the operations that it needs it waits for the ones that are not implied.
    fn push(&mut self, action: StripeAction, queue: StripeQueue, mut needed: Vec<usize>) -> usize {
        let before = self.last.get(&queue);
        let mut clock = before.map_or_else(Clock::new, |last| self.clocks[*last].clone());
        needed.sort_unstable();
        needed.dedup();
        let mut after = Vec::new();
        // Later operations in the list imply more.
        for id in needed.into_iter().rev() {
            let other = &self.clocks[id];
            let of = self.ops[id].queue;
            if clock.get(&of) < other.get(&of) {
                join(&mut clock, other);
                after.push(id);
            }
        }
        after.reverse();
        *clock.entry(queue).or_default() += 1;
        let id = self.ops.len();
        self.ops.push(StripeOp {
            action,
            queue,
            after,
        });
        self.clocks.push(clock);
        self.last.insert(queue, id);
        id
    }
}

/// The operations of a launch of a stripe in the list.
#[derive(Clone, Debug, Default)]
struct Done {
    run: Option<usize>,
    /// By the stripe that it was sent to.
    sends: Vec<(usize, usize)>,
}

/// The operations of a pass, listed round by round: operations of the first rounds can begin before the others are
/// listed.
pub struct StripeOps<'a>(Maker<'a>);

impl StripeOps<'_> {
    /// The operations that are listed.
    pub fn listed(&self) -> &[StripeOp] {
        &self.0.list.ops
    }

    /// Lists the operations of another round; `false`: there are none left.
    pub fn advance(&mut self) -> Result<bool, NoLayout> {
        let maker = &mut self.0;
        let mut goes_on = false;
        let mut left = false;
        for block in 0..maker.pass.blocks.len() {
            goes_on |= maker.round(block);
            left |= maker.next[block] <= maker.last[block];
        }
        match (left, goes_on) {
            (true, false) => Err(NoLayout::Stuck),
            _ => Ok(left),
        }
    }
}

struct Maker<'a> {
    pass: &'a StripedPass,
    list: List,
    /// By block, stripe and launch.
    done: BTreeMap<(usize, usize, i64), Done>,
    /// Per block, the number of its next launch, and of its last one.
    next: Vec<i64>,
    last: Vec<i64>,
}

impl StripedPass {
    /// The operations of the pass.
    pub fn operations(&self) -> Result<Vec<StripeOp>, NoLayout> {
        let mut ops = self.list();
        while ops.advance()? {}
        Ok(ops.0.list.ops)
    }

    /// The same, none of which is listed yet.
    pub fn list(&self) -> StripeOps<'_> {
        let numbers = |pick: fn(i64, i64) -> i64, of: fn(&StripeLaunches) -> i64| {
            let block = |block: &super::StripedBlock| {
                let stripes = block.stripes.iter().filter(|s| !s.is_empty());
                stripes.map(of).reduce(pick).unwrap_or(0)
            };
            self.blocks.iter().map(block).collect()
        };
        StripeOps(Maker {
            pass: self,
            list: List::default(),
            done: BTreeMap::new(),
            next: numbers(i64::min, |stripe| stripe.first),
            last: numbers(i64::max, |stripe| stripe.end() - 2),
        })
    }
}

impl Maker<'_> {
    /// Runs the next launches of a block, if all that they need is in the list.
    fn round(&mut self, block: usize) -> bool {
        let launch = self.next[block];
        if launch > self.last[block] {
            return false;
        }
        // A queue takes the next block when the one before is over.
        if let Some(before) = block.checked_sub(self.pass.in_flight)
            && self.next[before] <= self.last[before]
        {
            return false;
        }
        let stripes = 0..self.pass.stripes();
        let needed: Option<Vec<Vec<usize>>> = stripes
            .clone()
            .map(|stripe| self.needed(block, stripe, launch))
            .collect();
        let Some(needed) = needed else {
            return false;
        };
        for (stripe, needed) in stripes.zip(needed) {
            self.run(block, stripe, launch, needed);
        }
        self.next[block] += 1;
        true
    }

    /// The operations that a launch needs; `None`: some are not in the list yet.
    fn needed(&self, block: usize, stripe: usize, launch: i64) -> Option<Vec<usize>> {
        let blocks = &self.pass.blocks;
        let Some(planes) = blocks[block].stripes[stripe].planes(launch) else {
            return Some(Vec::new());
        };
        let mut needed = Vec::new();
        // Copies from neighbours in this time block.
        let accesses = !planes.touched.is_empty() || !planes.written.is_empty();
        for other in self.pass.neighbours(stripe).filter(|_| accesses) {
            let numbers = blocks[block].stripes[other].numbers();
            if let Some(before) = numbers.rev().find(|number| *number < launch) {
                needed.extend(self.sent(block, other, before, stripe)?);
            }
        }
        for (earlier, of) in blocks.iter().enumerate().take(block) {
            let of = &of.stripes;
            // Time blocks of one height have the same work queues and words of progress.
            if of[stripe].planes(launch).is_some() {
                needed.extend(self.done.get(&(earlier, stripe, launch))?.run);
            }
            if let Some(before) = of[stripe].last_conflict(planes) {
                needed.push(self.done.get(&(earlier, stripe, before))?.run?);
                for other in self.pass.neighbours(stripe) {
                    needed.extend(self.sent(earlier, stripe, before, other)?);
                }
            }
            for other in self.pass.neighbours(stripe) {
                if let Some(before) = of[other].last_conflict(planes) {
                    needed.extend(self.sent(earlier, other, before, stripe)?);
                }
            }
        }
        Some(needed)
    }

    /// A launch, and the last copy that it or the launches before it sent to a stripe; `None`: it is not in the list.
    fn sent(&self, block: usize, stripe: usize, launch: i64, to: usize) -> Option<Vec<usize>> {
        let run = self.done.get(&(block, stripe, launch))?.run;
        let until = (block, stripe, i64::MIN)..=(block, stripe, launch);
        let mut sends = self.done.range(until).rev().flat_map(|(_, d)| &d.sends);
        let send = sends.find(|(other, _)| *other == to).map(|(_, id)| *id);
        Some(run.into_iter().chain(send).collect())
    }

    fn run(&mut self, block: usize, stripe: usize, launch: i64, needed: Vec<usize>) {
        let Some(planes) = self.pass.blocks[block].stripes[stripe].planes(launch) else {
            return;
        };
        let slot = block % self.pass.in_flight;
        let queue = StripeQueue::Blocks { stripe, slot };
        let action = StripeAction::Run {
            block,
            stripe,
            launch,
        };
        let run = self.list.push(action, queue, needed);
        let mut done = Done {
            run: Some(run),
            sends: Vec::new(),
        };
        for to in self.pass.neighbours(stripe) {
            if planes.written.is_empty() {
                continue;
            }
            let action = StripeAction::Send {
                block,
                from: stripe,
                to,
                planes: planes.written,
            };
            let up = to > stripe;
            let queue = StripeQueue::Links { stripe, slot, up };
            done.sends
                .push((to, self.list.push(action, queue, vec![run])));
        }
        self.done.insert((block, stripe, launch), done);
    }
}
