//! Symbolic execution of a pass over several devices.
//!
//! The rows of a stripe are the rows that it alone accesses, and its overlaps with its neighbours, of which each device
//! has a copy. A plane of each has a version, which every launch that writes the plane raises. Vector clocks tell which
//! operations are over when one begins, so one execution proves all interleavings.

use super::{StripeAction, StripeOp, StripeQueue, StripedPass};
use crate::lattice::Interval;
use crate::tower::Planes;
use std::collections::BTreeMap;
use std::fmt;

/// A fault of a list of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StripeFault {
    /// The second operation uses data that the first one uses, too, and may begin before the first one is over.
    Unordered { first: usize, second: usize },
    /// An operation accesses a plane of an overlap of which the device has no newest copy.
    Stale { op: usize, plane: i64 },
    /// A launch runs before one of another time block or stripe whose planes it needs.
    TooEarly {
        op: usize,
        block: usize,
        stripe: usize,
        launch: i64,
    },
    /// An operation does not exist, is out of its turn, or waits for a later one.
    Order { op: usize },
    /// A launch does not run.
    Missing {
        block: usize,
        stripe: usize,
        launch: i64,
    },
    /// At the end a device has no newest copy of a plane of an overlap.
    Behind { stripe: usize, plane: i64 },
}

impl fmt::Display for StripeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StripeFault::Unordered { first, second } => {
                write!(
                    f,
                    "operation {second} may begin before operation {first} is over"
                )
            }
            StripeFault::Stale { op, plane } => {
                write!(
                    f,
                    "operation {op}: the copy of plane {plane} is out of date"
                )
            }
            StripeFault::TooEarly {
                op,
                block,
                stripe,
                launch,
            } => write!(
                f,
                "operation {op} runs before launch {launch} of stripe {stripe} in block {block}"
            ),
            StripeFault::Order { op } => write!(f, "operation {op} is out of order"),
            StripeFault::Missing {
                block,
                stripe,
                launch,
            } => write!(
                f,
                "launch {launch} of stripe {stripe} in block {block} does not run"
            ),
            StripeFault::Behind { stripe, plane } => write!(
                f,
                "stripe {stripe} has not the newest values of plane {plane} in the end"
            ),
        }
    }
}

impl std::error::Error for StripeFault {}

/// The operations that are over when an operation is.
#[derive(Clone, Debug)]
struct Clock {
    queue: StripeQueue,
    position: u64,
    over: BTreeMap<StripeQueue, u64>,
}

/// The history of a copy of a plane.
#[derive(Clone, Debug, Default)]
struct PlaneCopy {
    version: u64,
    written: Option<usize>,
    /// Operations that read it since.
    read: Vec<usize>,
}

/// Rows of a stripe: its overlap with another one, or, if that is the same, all that it alone accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    stripe: usize,
    with: usize,
}

impl Part {
    /// The stripes, by which the copies of a part are known.
    fn of_all(self) -> [usize; 2] {
        [self.stripe.min(self.with), self.stripe.max(self.with)]
    }
}

struct Checker<'a> {
    pass: &'a StripedPass,
    clocks: Vec<Clock>,
    last: BTreeMap<StripeQueue, usize>,
    copies: BTreeMap<(Part, i64), PlaneCopy>,
    /// The newest version of a plane of a part.
    newest: BTreeMap<([usize; 2], i64), u64>,
    /// By block, stripe and launch.
    runs: BTreeMap<(usize, usize, i64), usize>,
}

/// Executes the operations of a pass.
pub fn check_stripes(pass: &StripedPass, ops: &[StripeOp]) -> Result<(), StripeFault> {
    let mut checker = Checker {
        pass,
        clocks: Vec::new(),
        last: BTreeMap::new(),
        copies: BTreeMap::new(),
        newest: BTreeMap::new(),
        runs: BTreeMap::new(),
    };
    for (id, op) in ops.iter().enumerate() {
        checker.order(id, op)?;
        match op.action {
            StripeAction::Run {
                block,
                stripe,
                launch,
            } => checker.run(id, block, stripe, launch),
            StripeAction::Send {
                from, to, planes, ..
            } => checker.send(id, from, to, planes),
        }?;
    }
    checker.end()
}

impl Checker<'_> {
    /// Makes the clock of an operation.
    fn order(&mut self, id: usize, op: &StripeOp) -> Result<(), StripeFault> {
        let mut over: BTreeMap<StripeQueue, u64> = BTreeMap::new();
        let before = self.last.get(&op.queue).copied();
        for other in op.after.iter().copied().chain(before) {
            let clock = self.clocks.get(other);
            for (queue, position) in &clock.ok_or(StripeFault::Order { op: id })?.over {
                let own = over.entry(*queue).or_default();
                *own = (*own).max(*position);
            }
        }
        let position = over.get(&op.queue).copied().unwrap_or(0) + 1;
        over.insert(op.queue, position);
        self.clocks.push(Clock {
            queue: op.queue,
            position,
            over,
        });
        self.last.insert(op.queue, id);
        Ok(())
    }

    /// Whether one operation is over when another one begins.
    fn ordered(&self, first: usize, second: usize) -> Result<(), StripeFault> {
        let one = &self.clocks[first];
        let over = self.clocks[second].over.get(&one.queue);
        match over.is_some_and(|over| *over >= one.position) {
            true => Ok(()),
            false => Err(StripeFault::Unordered { first, second }),
        }
    }

    /// An operation reads a plane of a part.
    fn read(&mut self, op: usize, part: Part, plane: i64) -> Result<(), StripeFault> {
        let newest = self.newest(part, plane);
        let copy = self.copies.entry((part, plane)).or_default();
        if copy.version != newest {
            return Err(StripeFault::Stale { op, plane });
        }
        copy.read.push(op);
        let written = copy.written;
        written.map_or(Ok(()), |written| self.ordered(written, op))
    }

    fn newest(&self, part: Part, plane: i64) -> u64 {
        let newest = self.newest.get(&(part.of_all(), plane));
        newest.copied().unwrap_or(0)
    }

    /// An operation writes a plane of a part, which becomes the newest version.
    fn write(
        &mut self,
        op: usize,
        part: Part,
        plane: i64,
        version: u64,
    ) -> Result<(), StripeFault> {
        self.newest.insert((part.of_all(), plane), version);
        let copy = PlaneCopy {
            version,
            written: Some(op),
            read: Vec::new(),
        };
        let before = self.copies.insert((part, plane), copy).unwrap_or_default();
        let mut uses = before.read.into_iter().chain(before.written);
        uses.try_for_each(|other| self.ordered(other, op))
    }

    fn run(
        &mut self,
        id: usize,
        block: usize,
        stripe: usize,
        launch: i64,
    ) -> Result<(), StripeFault> {
        let out_of_turn = StripeFault::Order { op: id };
        let own = self.pass.blocks.get(block);
        let own = own.and_then(|block| block.stripes.get(stripe));
        let planes = own.and_then(|own| own.planes(launch)).ok_or(out_of_turn)?;
        if self.runs.insert((block, stripe, launch), id).is_some() {
            return Err(out_of_turn);
        }
        self.follows(id, block, stripe, launch, planes)?;
        self.takes_turns(id, block, stripe, launch)?;
        let parts: Vec<Part> = self
            .pass
            .neighbours(stripe)
            .chain([stripe])
            .map(|with| Part { stripe, with })
            .collect();
        for part in parts {
            for plane in planes.touched.lo..planes.touched.hi {
                self.read(id, part, plane)?;
            }
            for plane in planes.written.lo..planes.written.hi {
                // Its own reads are no uses by others.
                if let Some(copy) = self.copies.get_mut(&(part, plane)) {
                    copy.read.retain(|op| *op != id);
                }
                let version = self.newest(part, plane) + 1;
                self.write(id, part, plane, version)?;
            }
        }
        Ok(())
    }

    /// Whether the launches that access the planes of a launch before it have run: launches with lower numbers of its
    /// block, and of earlier blocks, in its own and in neighbouring stripes.
    fn follows(
        &self,
        op: usize,
        block: usize,
        stripe: usize,
        launch: i64,
        planes: Planes,
    ) -> Result<(), StripeFault> {
        let meet = |a: Interval, b: Interval| !a.intersect(b).is_empty();
        for earlier in 0..=block {
            for other in self.pass.neighbours(stripe).chain([stripe]) {
                let of = &self.pass.blocks[earlier].stripes[other];
                for number in of.numbers() {
                    if earlier == block && number >= launch {
                        continue;
                    }
                    let Planes { touched, written } = of.planes(number).unwrap_or_default();
                    let matters = meet(written, planes.touched) || meet(touched, planes.written);
                    if matters && !self.runs.contains_key(&(earlier, other, number)) {
                        return Err(StripeFault::TooEarly {
                            op,
                            block: earlier,
                            stripe: other,
                            launch: number,
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a launch begins when the launches of its number and stripe in earlier blocks are over: time blocks of
    /// one height have the same work queues and words of progress, whether these launches access planes or not.
    fn takes_turns(
        &self,
        op: usize,
        block: usize,
        stripe: usize,
        launch: i64,
    ) -> Result<(), StripeFault> {
        for earlier in 0..block {
            if self.pass.blocks[earlier].stripes[stripe]
                .planes(launch)
                .is_none()
            {
                continue;
            }
            match self.runs.get(&(earlier, stripe, launch)) {
                Some(before) => self.ordered(*before, op)?,
                None => {
                    return Err(StripeFault::TooEarly {
                        op,
                        block: earlier,
                        stripe,
                        launch,
                    });
                }
            }
        }
        Ok(())
    }

    fn send(
        &mut self,
        id: usize,
        from: usize,
        to: usize,
        planes: Interval,
    ) -> Result<(), StripeFault> {
        if !self.pass.neighbours(from).any(|other| other == to) {
            return Err(StripeFault::Order { op: id });
        }
        let [there, here] = [(from, to), (to, from)].map(|(stripe, with)| Part { stripe, with });
        for plane in planes.lo..planes.hi {
            self.read(id, there, plane)?;
            let version = self.newest(there, plane);
            self.write(id, here, plane, version)?;
        }
        Ok(())
    }

    /// Everything was done.
    fn end(&self) -> Result<(), StripeFault> {
        for (block, of) in self.pass.blocks.iter().enumerate() {
            for (stripe, own) in of.stripes.iter().enumerate() {
                let mut numbers = own.numbers();
                let missing =
                    numbers.find(|launch| !self.runs.contains_key(&(block, stripe, *launch)));
                if let Some(launch) = missing {
                    return Err(StripeFault::Missing {
                        block,
                        stripe,
                        launch,
                    });
                }
            }
        }
        for ([one, other], plane) in self.newest.keys().copied() {
            let newest = self.newest.get(&([one, other], plane)).copied();
            for (stripe, with) in [(one, other), (other, one)] {
                let copy = self.copies.get(&(Part { stripe, with }, plane));
                if copy.map_or(0, |copy| copy.version) != newest.unwrap_or(0) {
                    return Err(StripeFault::Behind { stripe, plane });
                }
            }
        }
        Ok(())
    }
}
