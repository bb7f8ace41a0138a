//! From a window and passes to operations.
//!
//! The list is made in *ticks*: in each of them every time block of a pass runs one group, the first one the next
//! group, the others the groups that they are behind. An operation waits for the operations on which it depends unless
//! that is implied: each operation carries a clock, the number of operations of every queue of every device that are
//! over when it is.

use super::active::Active;
use super::list::List;
use super::{Action, DeviceBuffer, NoLayout, Op, OpId, Pass, PassBlock, Queue, Window};
use crate::lattice::Interval;
use std::collections::{BTreeMap, VecDeque};

/// Ticks without an operation, at most, besides the ticks by which time blocks are behind others.
const MOST_IDLE: i64 = 1 << 10;

/// Places that an operation uses; in a circular buffer, numbers of planes.
#[derive(Clone, Copy, Debug)]
struct Use {
    places: Interval,
    id: OpId,
    /// Runs write, stores and gathers read only.
    writes: bool,
}

/// The buffer of a device.
#[derive(Clone, Debug)]
struct Buffer {
    /// The plane number at place 0; 0 if it is circular.
    base: i64,
    slide: Option<OpId>,
    /// Operations since the last slide, and the operations before it for which it did not wait, with the places that
    /// they use; loads aside, which have the queue of slides. Of a circular buffer operations for which no load has
    /// waited.
    uses: [Vec<Use>; 2],
}

/// Makes the list of operations.
#[derive(Clone, Debug)]
pub struct Builder {
    window: Window,
    list: List,
    active: VecDeque<Active>,
    passes: u64,
    buffers: Vec<Buffer>,
    /// The operations for which every operation of a pass waits, except stores of the planes that it leaves.
    join: Vec<OpId>,
    /// The operation that stored a plane of the array last; around a ring, the one that loaded it last, too.
    stores: BTreeMap<i64, OpId>,
    loads: BTreeMap<i64, OpId>,
    /// The rotation of the next pass.
    rotation: i64,
    peak: i64,
    slides: u64,
    /// Ticks without an operation up to now.
    idle: i64,
}

/// The uses in `uses` of places of a range.
fn users(uses: &[Use], places: Interval) -> impl Iterator<Item = Use> {
    let used = move |user: &Use| !user.places.intersect(places).is_empty();
    uses.iter().copied().filter(used)
}

impl Builder {
    pub fn new(window: Window) -> Builder {
        let devices = window.devices.max(1);
        let queues = devices * (2 + window.in_flight.max(1));
        let buffer = Buffer {
            base: match window.buffer {
                DeviceBuffer::Circular { .. } => 0,
                DeviceBuffer::Sliding { places } => window.planes.hi - places,
                DeviceBuffer::Whole => window.planes.lo,
            },
            slide: None,
            uses: Default::default(),
        };
        Builder {
            list: List::new(queues),
            active: VecDeque::new(),
            passes: 0,
            buffers: vec![buffer; devices],
            join: Vec::new(),
            stores: BTreeMap::new(),
            loads: BTreeMap::new(),
            rotation: 0,
            peak: 0,
            slides: 0,
            idle: 0,
            window,
        }
    }

    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The most planes that were held at a time.
    pub fn peak(&self) -> i64 {
        self.peak
    }

    /// How often planes were moved in the buffer.
    pub fn slides(&self) -> u64 {
        self.slides
    }

    /// Whether another pass can begin: with a window, when the first block of the last pass on its device is in the
    /// list, and no earlier pass of that device is unfinished.
    pub fn may_begin(&self) -> bool {
        let mut same = self.active_on(self.window.device(self.passes));
        match (same.next(), same.next()) {
            (None, _) => true,
            (Some(active), None) => {
                // Numbers of planes go on below the numbers of the highest pass, so one that has fewer ends first.
                let ring_part = active.pass.ring_part;
                let whole = ring_part.is_none_or(|own| own.loaded.lo == self.window.planes.lo);
                let begun = active.runs.is_empty() || active.next(0).is_none();
                self.window.places().is_some() && whole && begun
            }
            _ => false,
        }
    }

    /// The passes of a device that are not finished.
    fn active_on(&self, device: usize) -> impl DoubleEndedIterator<Item = &Active> {
        let own = move |active: &&Active| self.window.device(active.number) == device;
        self.active.iter().filter(own)
    }

    /// The buffer of the device of a pass.
    fn buffer(&self, pass: u64) -> &Buffer {
        &self.buffers[self.window.device(pass)]
    }

    fn buffer_mut(&mut self, pass: u64) -> &mut Buffer {
        let device = self.window.device(pass);
        &mut self.buffers[device]
    }

    /// Whether everything is in the list.
    pub fn is_idle(&self) -> bool {
        self.active.is_empty()
    }

    /// Whether a pass finds room in the buffer if it begins now. Beside other passes, one of lower time blocks may need
    /// a few planes more than passes of the highest time blocks do beside each other.
    pub fn has_room_for(&self, pass: Pass) -> bool {
        let mut after = self.clone();
        after.begin(pass);
        while !after.is_idle() {
            if after.tick().is_err() {
                return false;
            }
        }
        true
    }

    /// The number of the pass that begins next.
    pub fn passes(&self) -> u64 {
        self.passes
    }

    /// The first pass that may still run when the next one begins. The host waits for all passes before it.
    pub fn first_active(&self) -> u64 {
        self.window.first_active(self.passes)
    }

    /// Begins a pass. All operations of passes two turns before are over then.
    pub fn begin(&mut self, pass: Pass) {
        let number = self.passes;
        self.passes += 1;
        self.list.end_before(self.window.first_active(number));
        if self.window.places().is_none() {
            self.join = self.list.last().collect();
            self.buffer_mut(number).base = self.window.number(number, self.window.planes.lo);
        }
        let rotation = self.rotation;
        if let (Some(ring), Some(ring_part)) = (self.window.ring, pass.ring_part) {
            self.rotation = (rotation - ring_part.drift(ring)).rem_euclid(ring);
        }
        self.active
            .push_back(Active::new(pass, number, rotation, &self.window));
    }

    /// From a plane of the pass that begins next to its index, where planes are counted on around a ring.
    pub fn rotation(&self) -> i64 {
        self.rotation
    }

    /// Has the next pass begin around a ring as the first one did, when everything that was listed is over.
    pub fn turn_back(&mut self) {
        self.rotation = 0;
        self.stores.clear();
        self.loads.clear();
    }

    /// The number of a queue of the device of a pass.
    fn index(&self, pass: u64, queue: Queue) -> usize {
        let each = 2 + self.window.in_flight.max(1);
        let own = match queue {
            Queue::Loads => 0,
            Queue::Stores => 1,
            Queue::Blocks(n) => 2 + n,
        };
        self.window.device(pass) * each + own
    }

    /// Adds an operation; of the operations that it needs it waits for the ones that are not implied.
    fn push(&mut self, pass: u64, action: Action, needed: Vec<OpId>) -> Op {
        let queue = match action {
            Action::Load { .. } | Action::Slide { .. } => Queue::Loads,
            Action::Store { .. } => Queue::Stores,
            Action::Run { block, .. } | Action::Gather { block, .. } => self.window.queue(block),
        };
        let (id, after) = self.list.add(pass, self.index(pass, queue), needed);
        Op {
            id,
            pass,
            action,
            queue,
            after,
            base: self.buffer(pass).base,
        }
    }

    /// The same for an operation that uses planes of the pass, which is kept in mind.
    fn push_use(&mut self, pass: u64, action: Action, planes: Interval, needed: Vec<OpId>) -> Op {
        let mut op = self.push(pass, action, needed);
        if self.window.is_circular() {
            op.base = self.window.number(pass, planes.lo);
        }
        if self.window.places().is_some() && !matches!(action, Action::Load { .. }) {
            let own = Use {
                places: self.places(pass, planes),
                id: op.id,
                writes: matches!(action, Action::Run { .. }),
            };
            self.buffer_mut(pass).uses[0].push(own);
        }
        op
    }

    /// The operations of the next tick.
    pub fn tick(&mut self) -> Result<Vec<Op>, NoLayout> {
        let mut ops = Vec::new();
        for index in 0..self.active.len() {
            if !self.may_load(index) || !self.may_load_again(index) {
                break;
            }
            self.load(index, &mut ops)?;
            let blocks = self.active[index].pass.blocks.len();
            let parts: &[(usize, usize)] = match self.window.spread {
                true => &[(0, 2), (1, 2)],
                false => &[(0, 1)],
            };
            for (from, step) in parts {
                for block in (*from..blocks).step_by(*step) {
                    self.run(index, block, &mut ops);
                }
            }
            self.store(index, &mut ops);
            self.active[index].tick += 1;
        }
        while self
            .active
            .front()
            .is_some_and(|a| a.is_stored(&self.window))
        {
            self.active.pop_front();
        }
        self.idle = if ops.is_empty() { self.idle + 1 } else { 0 };
        let offsets = self.active.iter().flat_map(|active| &active.offsets);
        match self.idle > MOST_IDLE + offsets.sum::<i64>() {
            true => Err(NoLayout::Stuck),
            false => Ok(ops),
        }
    }

    /// Whether the pass before has stored the planes that the next tick loads.
    fn may_load(&self, index: usize) -> bool {
        let (Some(before), Some(_)) = (index.checked_sub(1), self.window.places()) else {
            return true;
        };
        let active = &self.active[index];
        let lowest = active.lowest(active.tick + self.window.ahead);
        let before = &self.active[before];
        let below = self.window.below(&before.pass);
        lowest.is_none_or(|lowest| lowest - below >= before.stored || before.all_stored())
    }

    /// Whether a pass around a ring has stored the planes that its next tick loads once more.
    fn may_load_again(&self, index: usize) -> bool {
        let (Some(ring), Some(_)) = (self.window.ring, self.window.places()) else {
            return true;
        };
        let active = &self.active[index];
        let lowest = active.lowest(active.tick + self.window.ahead);
        lowest.is_none_or(|lowest| lowest + ring >= active.stored)
    }

    /// The plane of the array that a plane of a pass is.
    fn in_array(&self, index: usize, plane: i64) -> i64 {
        match self.window.ring {
            Some(ring) => (plane + self.active[index].rotation).rem_euclid(ring),
            None => plane,
        }
    }

    fn load(&mut self, index: usize, ops: &mut Vec<Op>) -> Result<(), NoLayout> {
        let Some(places) = self.window.places() else {
            return Ok(());
        };
        let active = &self.active[index];
        let (number, loaded) = (active.number, active.loaded);
        let until = active.lowest(active.tick + self.window.ahead);
        let Some(until) = until.filter(|until| *until < loaded) else {
            return Ok(());
        };
        let lowest = self.window.number(number, until);
        let device = self.window.device(number);
        let top = self.top(device);
        let top = top.unwrap_or(self.window.number(number, loaded));
        self.peak = self.peak.max(top - lowest);
        let planes = Interval::new(until, loaded);
        let left: Vec<OpId> = if self.window.is_circular() {
            self.go_around(device, Interval::new(lowest, top), places)?
        } else {
            if lowest < self.buffer(number).base {
                self.slide(device, Interval::new(lowest, top), places, ops)?;
            }
            let left = users(&self.buffer(number).uses[1], self.places(number, planes));
            left.map(|user| user.id).collect()
        };
        let of_array: Vec<i64> = (planes.lo..planes.hi)
            .map(|plane| self.in_array(index, plane))
            .collect();
        let stored = of_array.iter().filter_map(|plane| self.stores.get(plane));
        let stored = stored.copied().chain(left);
        let needed = stored.chain(self.buffer(number).slide).collect();
        let op = self.push_use(number, Action::Load { planes }, planes, needed);
        if self.window.ring.is_some() {
            self.loads
                .extend(of_array.iter().map(|plane| (*plane, op.id)));
        }
        let active = &mut self.active[index];
        active.loaded = until;
        active.hold(planes, op.id);
        ops.push(op);
        Ok(())
    }

    /// The operations that used the places of a load and for which no load has waited, if planes of the numbers
    /// `needed` have to be there after it. In bytes planes need not go around evenly, so all planes as far above are
    /// gone.
    fn go_around(
        &mut self,
        device: usize,
        needed: Interval,
        places: i64,
    ) -> Result<Vec<OpId>, NoLayout> {
        if needed.len() > places {
            return Err(NoLayout::TooFewPlaces {
                needed: needed.len(),
                places,
            });
        }
        let gone = needed.lo + places;
        let uses = &mut self.buffers[device].uses[0];
        let users = uses.iter().filter(|user| user.places.hi > gone);
        let users = users.map(|user| user.id).collect();
        uses.retain(|user| user.places.hi <= gone);
        Ok(users)
    }

    /// The places of planes of a pass.
    fn places(&self, pass: u64, planes: Interval) -> Interval {
        let base = self.buffer(pass).base;
        let place = |plane| self.window.place(pass, plane, base);
        Interval::new(place(planes.lo), place(planes.hi))
    }

    /// One above the highest plane that a device still needs, as a number.
    fn top(&self, device: usize) -> Option<i64> {
        let of = |active: &Active| {
            let touched = active.remaining(&active.touch, usize::MAX);
            let unstored = active.has_unstored().then_some(active.stored);
            let top = touched.max(unstored)?.min(self.window.planes.hi);
            // Planes that are not loaded yet are no reason.
            (active.loaded < self.window.planes.hi).then(|| self.window.number(active.number, top))
        };
        self.active_on(device).filter_map(of).max()
    }

    /// Makes room below by moving planes that are needed to the top of the buffer.
    fn slide(
        &mut self,
        device: usize,
        needed: Interval,
        places: i64,
        ops: &mut Vec<Op>,
    ) -> Result<(), NoLayout> {
        let (lowest, top) = (needed.lo, needed.hi);
        let base = top - places;
        let before = self.buffers[device].base;
        if lowest < base || base >= before {
            return Err(NoLayout::TooFewPlaces {
                needed: top - lowest,
                places,
            });
        }
        let loaded = self.active_on(device);
        let loaded = loaded.filter(|a| a.loaded < self.window.planes.hi);
        let held = loaded
            .map(|a| self.window.number(a.number, a.loaded))
            .min()
            .unwrap_or(top);
        let moved = Interval::new(held - before, top - before);
        let by = before - base;
        self.buffers[device].base = base;
        let pass = self.active_on(device).next_back().map_or(0, |a| a.number);
        // An operation that writes none of the places that are moved, and uses none of the places that are written,
        // goes on beside it.
        let written = Interval::new(moved.lo + by, moved.hi + by);
        let uses = self.buffers[device].uses.iter();
        let needed = uses.flat_map(|uses| {
            let writers = users(uses, moved).filter(|user| user.writes);
            writers.chain(users(uses, written)).map(|user| user.id)
        });
        let needed = needed.collect();
        let action = Action::Slide { places: moved, by };
        let op = self.push(pass, action, needed);
        let over = self.list.of(op.id).map(|known| known.clock.clone());
        let over = over.unwrap_or_default();
        let [recent, left] = std::mem::take(&mut self.buffers[device].uses);
        let goes_on = |id: OpId| {
            let other = self.list.of(id);
            other.is_some_and(|other| other.position > over[other.queue])
        };
        let left = left.into_iter().chain(recent);
        let left = left.filter(|user| goes_on(user.id)).collect();
        let buffer = &mut self.buffers[device];
        buffer.uses = [Vec::new(), left];
        buffer.slide = Some(op.id);
        self.slides += 1;
        ops.push(op);
        Ok(())
    }

    /// The next group of a block, if it is due and can run.
    fn run(&mut self, index: usize, block: usize, ops: &mut Vec<Op>) {
        let active = &self.active[index];
        let Some(group) = active.next(block) else {
            return;
        };
        if group - active.first + active.offsets[block] > active.tick {
            return;
        }
        let own = &active.pass.blocks[block];
        let slide = self.buffer(active.number).slide;
        // A group without towers uses no planes.
        let is_empty = own.group(group).is_some_and(|of| of.touched.is_empty());
        let slide = slide.filter(|_| !is_empty);
        let mut needed: Vec<OpId> = self.join.iter().copied().chain(slide).collect();
        // A queue takes the next block when the one before is over.
        if let Some(before) = block.checked_sub(self.window.in_flight.max(1))
            && active.next(before).is_some()
        {
            return;
        }
        for earlier in 0..block {
            let Some(need) = own.need(earlier, group) else {
                continue;
            };
            match active.run_of(earlier, need) {
                Ok(run) => needed.extend(run),
                Err(()) => return,
            }
        }
        let Some(planes) = own.group(group).copied() else {
            return;
        };
        // Towers of two blocks may write different rows of a plane at a time, but a gather takes whole planes.
        let waits = |(of, gathered): (&PassBlock, &Vec<i64>)| {
            let mut outputs = of.gathers.iter().zip(gathered);
            outputs.any(|(output, until)| {
                let left = Interval::new(output.lo, *until);
                !left.intersect(planes.written).is_empty()
            })
        };
        let mut before = active.pass.blocks.iter().zip(&active.gathered).take(block);
        if before.any(waits) {
            return;
        }
        let held = active.held(planes.touched);
        needed.extend(
            held.map(|held| held.load)
                .filter(|_| self.window.places().is_some()),
        );
        let gathers = active.held(planes.written).flat_map(|held| &held.gathers);
        needed.extend(gathers.filter(|(of, _)| *of < block).map(|(_, id)| *id));
        let number = active.number;
        let action = Action::Run { block, group };
        let op = self.push_use(number, action, planes.touched, needed);
        let active = &mut self.active[index];
        active.runs[block].push(op.id);
        active.hold(planes.written, op.id);
        for held in active.held_mut(planes.written) {
            held.writers.insert(block, op.id);
        }
        ops.push(op);
        // Planes that a later block has left wait for earlier blocks that reach farther.
        for later in block..self.active[index].runs.len() {
            if !self.active[index].runs[later].is_empty() {
                self.gather(index, later, ops);
            }
        }
    }

    /// Gathers planes that a block and the blocks before it have left final.
    fn gather(&mut self, index: usize, block: usize, ops: &mut Vec<Op>) {
        let active = &self.active[index];
        let bound = active.remaining(&active.write, block + 1);
        let outputs = active.pass.blocks[block].gathers.clone();
        for (output, planes) in outputs.into_iter().enumerate() {
            let active = &self.active[index];
            let until = active.gathered[block][output];
            let from = bound.map_or(planes.lo, |bound| bound.max(planes.lo));
            if from >= until {
                continue;
            }
            let planes = Interval::new(from, until);
            let held = active.held(planes);
            let writers = held.flat_map(|held| held.writers.range(..=block));
            let mut needed: Vec<OpId> = writers.map(|(_, id)| *id).collect();
            needed.extend(active.held(planes).map(|held| held.load));
            let number = active.number;
            needed.extend(self.buffer(number).slide);
            let action = Action::Gather {
                block,
                output,
                planes,
            };
            let op = self.push_use(number, action, planes, needed);
            let active = &mut self.active[index];
            active.gathered[block][output] = from;
            for held in active.held_mut(planes) {
                held.gathers.push((block, op.id));
            }
            ops.push(op);
        }
    }

    /// Stores planes that are final.
    fn store(&mut self, index: usize, ops: &mut Vec<Op>) {
        if self.window.places().is_none() {
            return;
        }
        let active = &self.active[index];
        let bound = active.remaining(&active.write, usize::MAX);
        let least = active.storable();
        let from = bound.map_or(least, |bound| bound.max(least));
        // Nothing runs yet.
        if from >= active.stored || active.runs.iter().all(Vec::is_empty) {
            return;
        }
        let planes = Interval::new(from, active.stored);
        let of_array: Vec<i64> = (planes.lo..planes.hi)
            .map(|plane| self.in_array(index, plane))
            .collect();
        let mut needed: Vec<OpId> = Vec::new();
        needed.extend(of_array.iter().filter_map(|plane| self.loads.get(plane)));
        for held in active.held(planes) {
            needed.extend(held.writers.values());
            needed.push(held.load);
        }
        let number = active.number;
        needed.extend(self.buffer(number).slide);
        let op = self.push_use(number, Action::Store { planes }, planes, needed);
        let active = &mut self.active[index];
        active.stored = from;
        self.stores
            .extend(of_array.into_iter().map(|plane| (plane, op.id)));
        ops.push(op);
    }
}
