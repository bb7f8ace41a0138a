//! When operations of queues run: a mark before each of them and one behind it.
//!
//! Each device has a clock of its own. The origin of its times is a mark that its own queue reaches at once, so that
//! the host's time of the mark is known to half of the time of the call; origins are taken again after a second, as
//! clocks drift and differences of far marks lose digits.

use super::device::{DeviceError, Mark};
use super::queues::{Queues, WorkQueue};
use crate::timeline::{Kind, Operation, Timeline};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Seconds after which the origin of a device is taken again.
const LASTS: f64 = 1.0;

/// How often the host asks for an origin; the answer that took the least time counts.
const TRIES: usize = 8;

/// A device by its number.
pub(super) type Numbered<'a> = dyn Fn(usize) -> &'a (dyn Queues + 'a) + 'a;

/// A mark of a device whose time is known.
#[derive(Debug)]
struct Origin {
    mark: Mark,
    /// Seconds from the beginning of the record, by the host's clock.
    at: f64,
}

/// An operation whose times are not known yet.
#[derive(Debug)]
struct Open {
    operation: usize,
    marks: [Mark; 2],
}

/// An operation that is being asked for.
#[derive(Debug)]
pub(super) struct Begun {
    mark: Mark,
    asked: f64,
}

/// The description of an operation.
#[derive(Debug)]
pub(super) struct Description {
    pub device: usize,
    pub queue: WorkQueue,
    /// Such as `block 3`.
    pub queue_name: String,
    pub kind: Kind,
    pub name: String,
    /// Towers of a launch, values of a gathering, bytes of a copy.
    pub amount: u64,
    /// The operations for which it waits besides the operation before it in its queue, as [`Recorder::end`] numbers
    /// operations.
    pub after: Vec<usize>,
}

/// Records operations.
#[derive(Debug)]
pub(super) struct Recorder {
    start: Instant,
    /// By device.
    origins: Vec<Origin>,
    timeline: Timeline,
    open: Vec<Open>,
    last: BTreeMap<(usize, WorkQueue), usize>,
}

impl Recorder {
    /// A record that begins now, for `count` devices.
    pub fn new(count: usize, device: &Numbered<'_>) -> Result<Recorder, DeviceError> {
        let mut own = Recorder {
            start: Instant::now(),
            origins: Vec::new(),
            timeline: Timeline {
                devices: (0..count).map(|n| device(n).facts().name.clone()).collect(),
                ..Timeline::default()
            },
            open: Vec::new(),
            last: BTreeMap::new(),
        };
        for number in 0..count {
            let origin = own.origin(device(number))?;
            own.origins.push(origin);
        }
        Ok(own)
    }

    /// Operations that were recorded.
    pub fn count(&self) -> usize {
        self.timeline.operations.len()
    }

    fn now(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// An origin for the times of a device.
    fn origin(&self, device: &dyn Queues) -> Result<Origin, DeviceError> {
        let mut best: Option<(f64, Origin)> = None;
        for _ in 0..TRIES {
            let before = self.now();
            let mark = device.mark_in(WorkQueue::OWN)?;
            device.seconds(mark, mark)?;
            let after = self.now();
            let origin = Origin {
                mark,
                at: (before + after) / 2.0,
            };
            let worse = match &best {
                Some((least, _)) if *least <= after - before => Some(origin),
                _ => best
                    .replace((after - before, origin))
                    .map(|(_, origin)| origin),
            };
            if let Some(worse) = worse {
                device.reach(worse.mark)?;
            }
        }
        best.map(|(_, origin)| origin).ok_or(DeviceError::Failed {
            operation: "measuring time",
            message: "there is no origin".to_owned(),
        })
    }

    /// Marks the begin of an operation: before it is given to a queue, and behind the operations for which the queue
    /// waits.
    pub fn begin(&self, device: &dyn Queues, queue: WorkQueue) -> Result<Begun, DeviceError> {
        let asked = self.now();
        let mark = device.mark_in(queue)?;
        Ok(Begun { mark, asked })
    }

    /// After an operation was given to its queue; its number in the record.
    pub fn end(
        &mut self,
        device: &dyn Queues,
        begun: Begun,
        own: Description,
    ) -> Result<usize, DeviceError> {
        let mark = device.mark_in(own.queue)?;
        let number = self.timeline.operations.len();
        let mut after = own.after;
        after.extend(self.last.insert((own.device, own.queue), number));
        let names = &mut self.timeline.queues;
        let queue = names.iter().position(|name| *name == own.queue_name);
        let queue = queue.unwrap_or_else(|| {
            names.push(own.queue_name);
            names.len() - 1
        });
        self.timeline.operations.push(Operation {
            device: own.device,
            queue,
            kind: own.kind,
            name: own.name,
            amount: own.amount,
            after,
            asked: begun.asked,
            begin: begun.asked,
            end: begun.asked,
        });
        self.open.push(Open {
            operation: number,
            marks: [begun.mark, mark],
        });
        Ok(number)
    }

    /// Finds out when the operations ran that are over.
    pub fn settle(
        &mut self,
        device: &Numbered<'_>,
        is_over: impl Fn(usize) -> bool,
    ) -> Result<(), DeviceError> {
        let (over, open): (Vec<Open>, Vec<Open>) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|open| is_over(open.operation));
        self.open = open;
        let mut met = BTreeSet::new();
        for Open { operation, marks } in over {
            let number = self.timeline.operations[operation].device;
            met.insert(number);
            let of = device(number);
            let origin = &self.origins[number];
            let begin = origin.at + of.seconds(origin.mark, marks[0])?;
            let took = of.seconds(marks[0], marks[1])?.max(0.0);
            for mark in marks {
                of.reach(mark)?;
            }
            let operation = &mut self.timeline.operations[operation];
            (operation.begin, operation.end) = (begin, begin + took);
        }
        for number in met {
            if self.now() - self.origins[number].at > LASTS {
                let origin = self.origin(device(number))?;
                let old = std::mem::replace(&mut self.origins[number], origin);
                device(number).reach(old.mark)?;
            }
        }
        Ok(())
    }

    /// The timeline of the record; operations whose times are not known are left out at the end.
    pub fn timeline(&self) -> Timeline {
        let known = self.open.iter().map(|open| open.operation).min();
        let mut timeline = self.timeline.clone();
        timeline.operations.truncate(known.unwrap_or(usize::MAX));
        timeline
    }
}
