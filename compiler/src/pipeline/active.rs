//! A pass whose operations are not all in the list.

use super::{OpId, Pass, Window};
use crate::lattice::Interval;
use std::collections::BTreeMap;

/// A plane on the device.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub load: OpId,
    /// The last operation of each block that wrote it.
    pub writers: BTreeMap<usize, OpId>,
    /// Operations that gathered it, by block.
    pub gathers: Vec<(usize, OpId)>,
}

/// A pass whose operations are not all in the list.
#[derive(Clone, Debug)]
pub(super) struct Active {
    pub pass: Pass,
    pub number: u64,
    /// Around a ring, from a plane of the pass to its index, but for whole lengths of the ring.
    pub rotation: i64,
    pub tick: i64,
    /// The number of the first group that runs.
    pub first: i64,
    pub offsets: Vec<i64>,
    /// Per block, its runs.
    pub runs: Vec<Vec<OpId>>,
    /// Per block and group, the highest planes that it and later groups touch and write; one more entry after the last.
    pub touch: Vec<Vec<Option<i64>>>,
    pub write: Vec<Vec<Option<i64>>>,
    /// Per block and number of groups, the lowest plane that this number of groups from the first one on touch.
    pub reached: Vec<Vec<Option<i64>>>,
    /// The lowest planes loaded, stored, and gathered per block and output.
    pub loaded: i64,
    pub stored: i64,
    /// Nothing below is stored: planes around a ring that the pass only reads.
    floor: i64,
    pub gathered: Vec<Vec<i64>>,
    /// By plane of the array, from the lowest one on.
    planes: Vec<Option<Held>>,
    lowest: i64,
}

/// The highest planes of a group and of the groups after it.
fn suffixes(highest: impl DoubleEndedIterator<Item = Option<i64>>) -> Vec<Option<i64>> {
    let mut all = vec![None];
    let mut most = None;
    for own in highest.rev() {
        most = most.max(own);
        all.push(most);
    }
    all.reverse();
    all
}

/// The lowest planes of each number of groups from the first one on.
fn prefixes(lowest: impl Iterator<Item = Option<i64>>) -> Vec<Option<i64>> {
    let mut all = vec![None];
    let mut least = None::<i64>;
    for own in lowest {
        least = match (least, own) {
            (Some(least), Some(own)) => Some(least.min(own)),
            (least, own) => least.or(own),
        };
        all.push(least);
    }
    all
}

impl Active {
    pub fn new(pass: Pass, number: u64, rotation: i64, window: &Window) -> Active {
        let end = |range: Interval| (!range.is_empty()).then_some(range.hi);
        let of = |pick: fn(&crate::tower::Planes) -> Interval| {
            let blocks = pass.blocks.iter();
            let suffix = |groups: &[crate::tower::Planes]| {
                suffixes(groups.iter().map(|group| end(pick(group))))
            };
            blocks.map(|block| suffix(&block.groups)).collect()
        };
        let gathered = pass.blocks.iter();
        let gathered = gathered.map(|b| b.gathers.iter().map(|planes| planes.hi).collect());
        Active {
            number,
            rotation,
            tick: 0,
            first: pass.blocks.iter().map(|b| b.first).min().unwrap_or(0),
            offsets: window.offsets(&pass),
            runs: vec![Vec::new(); pass.blocks.len()],
            touch: of(|planes| planes.touched),
            write: of(|planes| planes.written),
            reached: pass
                .blocks
                .iter()
                .map(|block| {
                    let touched = block.groups.iter().map(|group| group.touched);
                    prefixes(touched.map(|p| (!p.is_empty()).then_some(p.lo)))
                })
                .collect(),
            loaded: window.planes.hi,
            stored: pass.ring_part.map_or(window.planes.hi, |own| own.stored.hi),
            floor: pass.ring_part.map_or(i64::MIN, |own| own.stored.lo),
            gathered: gathered.collect(),
            planes: vec![None; window.planes.len().max(0) as usize],
            lowest: window.planes.lo,
            pass,
        }
    }

    fn indices(&self, planes: Interval) -> std::ops::Range<usize> {
        let index = |plane: i64| (plane - self.lowest).clamp(0, self.planes.len() as i64) as usize;
        index(planes.lo)..index(planes.hi).max(index(planes.lo))
    }

    /// The planes of `planes` that are on the device.
    pub fn held(&self, planes: Interval) -> impl Iterator<Item = &Held> {
        self.planes[self.indices(planes)].iter().flatten()
    }

    pub fn held_mut(&mut self, planes: Interval) -> impl Iterator<Item = &mut Held> {
        let indices = self.indices(planes);
        self.planes[indices].iter_mut().flatten()
    }

    /// Some planes come to the device by an operation, unless they are there.
    pub fn hold(&mut self, planes: Interval, load: OpId) {
        let indices = self.indices(planes);
        for plane in &mut self.planes[indices] {
            plane.get_or_insert_with(|| Held {
                load,
                writers: BTreeMap::new(),
                gathers: Vec::new(),
            });
        }
    }

    /// The number of the next group of a block; `None` when all have run.
    pub fn next(&self, block: usize) -> Option<i64> {
        let own = &self.pass.blocks[block];
        let number = own.first + self.runs[block].len() as i64;
        (number < own.end()).then_some(number)
    }

    fn has_run(&self) -> bool {
        (0..self.runs.len()).all(|block| self.next(block).is_none())
    }

    /// The highest planes that blocks, up to one or all, still touch or write.
    pub fn remaining(&self, of: &[Vec<Option<i64>>], until: usize) -> Option<i64> {
        let blocks = of.iter().zip(&self.runs).take(until);
        blocks.filter_map(|(of, runs)| of[runs.len()]).max()
    }

    /// The lowest plane that groups touch which run up to some tick.
    pub fn lowest(&self, tick: i64) -> Option<i64> {
        let blocks = self.pass.blocks.iter().zip(&self.offsets);
        let lowest = blocks
            .zip(&self.reached)
            .filter_map(|((block, offset), reached)| {
                let last = self.first + tick - offset;
                let count = usize::try_from(last + 1 - block.first).unwrap_or(0);
                let count = count.min(block.groups.len());
                // After the last group, the remaining planes of outputs are gathered.
                let outputs = block.gathers.iter().filter(|_| count == block.groups.len());
                let outputs = outputs.filter(|planes| !planes.is_empty());
                let all = outputs.map(|planes| planes.lo).chain(reached[count]);
                all.min()
            });
        lowest.min()
    }

    /// The run of a group of a block that has to be over; `Err`: it is not in the list yet.
    pub fn run_of(&self, block: usize, number: i64) -> Result<Option<OpId>, ()> {
        let own = &self.pass.blocks[block];
        let number = number.min(own.end() - 1);
        let Ok(index) = usize::try_from(number - own.first) else {
            return Ok(None);
        };
        self.runs[block].get(index).copied().map(Some).ok_or(())
    }

    pub fn is_stored(&self, window: &Window) -> bool {
        self.has_run() && (window.places().is_none() || !self.has_unstored())
    }

    /// Down to which plane everything that is loaded may be stored.
    pub fn storable(&self) -> i64 {
        self.loaded.max(self.floor)
    }

    /// Whether a pass around a ring has stored all planes that it writes.
    pub fn all_stored(&self) -> bool {
        self.stored <= self.floor
    }

    /// Whether planes that are loaded have to be stored.
    pub fn has_unstored(&self) -> bool {
        self.stored > self.storable()
    }
}
