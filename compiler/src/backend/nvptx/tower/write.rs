//! Writes the kernel of a plan.

use super::super::gpu::Feature;
use super::super::ir::{Launch, Module, Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Special, Variable};
use super::arrivals::Arrivals;
use super::beyond::Beyond;
use super::clip::Clip;
use super::copies::Chunks;
use super::ends::{Ends, Round};
use super::line::{Barrier, Split, WARP, rank};
use super::links::Links;
use super::pipe::Pipe;
use super::plan::Plan;
use super::planes::Planes;
use super::sheets::Acting;
use super::spans::{Between, Spans};
use super::stage::Stage;
use super::{Options, Slot, TowerKernel};
use crate::lattice::{Axis, Interval};
use crate::layout::Layout;
use crate::scheme::{Scheme, Update};
use crate::tile::residency::{Place, Towers};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Writes the kernel that runs whole towers, one per block.
pub(super) fn write(
    module: &mut Module,
    writer: &Writer<'_>,
    kernel: &TowerKernel,
    shared: Operand,
    registers: u32,
) {
    let launch = Launch {
        threads: [kernel.threads, 1, 1],
        registers,
        ..Launch::default()
    };
    let params = [Type::GLOBAL, Type::GLOBAL, Type::I32];
    let mut k = module.kernel(&kernel.symbol, &params, launch);
    writer.need(&mut k);
    let thread = k.special(Special::Thread(0));
    let writer = writer.prepared(&mut k, shared, thread);
    let threads = writer.threads;
    let writer = writer.copying(&mut k, shared, thread, threads);
    writer.clear(&mut k, shared, writer.plan.slots, thread, writer.threads);
    let block = k.special(Special::Block(0));
    let block = k.resize(block, Type::I64);
    let entry = k.advance(k.param(1), block, 8);
    let offset = k.load(Type::I64, entry, 8, Access::Plain);
    let origin = k.advance(k.param(0), offset, 1);
    let period = writer.period_at(&mut k, origin);
    k.barrier();
    let periods = [Operand::i32(0), k.param(2)];
    writer.whole(&mut k, period, periods);
    k.finish();
}

#[derive(Clone)]
pub(super) struct Writer<'a> {
    pub scheme: &'a Scheme,
    pub layout: &'a Layout,
    pub towers: &'a Towers,
    pub plan: &'a Plan,
    pub slot: Slot,
    pub split: Option<Split>,
    pub spans: Option<&'a Spans>,
    pub asynchronous: bool,
    /// See [`Options::near`].
    pub near: i64,
    /// Of a tower.
    pub threads: i64,
    pub real: Type,
    /// The first row of this alignment in the list of all rows.
    pub first_row: i64,
    pub thread: Operand,
    /// The thread's index, in 64 bits; threads beyond the end of rows see the last index, and write nothing.
    pub index: Operand,
    /// The thread's own value in slot 0.
    pub own: Operand,
    /// `None`: other threads copy rows.
    pub chunks: Option<Chunks>,
    /// Where those who work on a tower meet; `None`: all threads of the block do, and copy themselves.
    pub meeting: Option<Meeting>,
    /// Along the inner axis, per component.
    pub ghosts: Vec<Vec<Round>>,
    /// In their order; and the block's task, where there are some.
    pub sheets: &'a [Acting],
    pub task: Option<Operand>,
    /// How threads write ghosts.
    pub ends: Option<Rc<Ends>>,
    /// Periods may be clipped.
    pub clips: bool,
    /// Where memory holds no ghosts along the inner axis; and what makes those of rows that arrive, with the list of all.
    pub beyond: Option<&'a Beyond>,
    pub arrivals: Option<(&'a Arrivals, Operand)>,
    /// The beginning of shared memory.
    pub slots: Operand,
}

/// How those who work on a tower keep order.
#[derive(Clone, Copy)]
pub(super) struct Meeting {
    /// Where all meet.
    pub all: Barrier,
    /// How those that compute go on from stage to stage. `None`: copies end with the stage in which they begin, and all meet there.
    pub pipe: Option<(Pipe, Links)>,
}

/// Where a period is in memory.
#[derive(Clone, Copy)]
pub(super) struct Period {
    /// Row 0 of the origin's group at the thread's index.
    pub own: Operand,
    /// The same at the thread's chunk.
    pub chunk: Operand,
    /// `None`: nothing cuts rows off.
    pub clip: Option<Clip>,
    /// Where the block's first index is, if the thread copies parts of lines that are cut into spans.
    pub base: Option<Between>,
}

impl<'a> Writer<'a> {
    pub fn new(
        scheme: &'a Scheme,
        layout: &'a Layout,
        towers: &'a Towers,
        (slot, split, spans): (Slot, Option<Split>, Option<&'a Spans>),
        kernel: &'a TowerKernel,
        sheets: &'a [Acting],
        options: Options,
    ) -> Writer<'a> {
        let none = Operand::poison(Type::I32);
        let mut writer = Writer {
            scheme,
            layout,
            towers,
            plan: &kernel.plan,
            slot,
            split,
            spans,
            asynchronous: options.asynchronous,
            near: options.near,
            threads: match spans {
                Some(spans) => spans.end(),
                None => i64::from(kernel.threads * options.parts),
            },
            real: Type::scalar(scheme.precision),
            first_row: kernel.first_row,
            thread: none,
            index: none,
            own: none,
            chunks: None,
            meeting: None,
            ghosts: Vec::new(),
            sheets,
            task: None,
            ends: None,
            clips: towers.may_clip(scheme),
            beyond: None,
            arrivals: None,
            slots: none,
        };
        let components = scheme.component_ids();
        writer.ghosts = components.map(|id| writer.rounds(id)).collect();
        writer
    }

    pub fn need(&self, k: &mut Kernel<'_>) {
        if self.asynchronous {
            k.need(Feature::AsyncCopy);
        }
    }

    /// Computes what a thread that advances values has to know all the time.
    pub fn prepared(&self, k: &mut Kernel<'_>, shared: Operand, thread: Operand) -> Writer<'a> {
        let part = self.split.map(|split| {
            let rank = rank(k);
            split.first(k, rank)
        });
        let part = part.or_else(|| self.base(k));
        let own = self.split.map_or(self.slot.length, |split| split.part);
        let idle = self.split.is_some_and(|_| own % WARP != 0);
        let mut local = thread;
        if idle {
            // Threads beyond the end of a part see its last index.
            local = k.int(IntOp::Min, thread, Operand::i32(own as i32 - 1));
        }
        let [mut thread, mut seen] = [thread, local];
        if let Some(first) = part {
            [thread, seen] = [thread, local].map(|n| k.int(IntOp::Add, n, first));
        }
        if idle {
            let same = k.compare(IntCmp::Eq, thread, seen);
            thread = k.choose(same, thread, Operand::i32(self.threads as i32));
        }
        let mut writer = Writer {
            ghosts: self.ghosts.clone(),
            ends: self.ends.clone(),
            thread,
            slots: shared,
            ..*self
        };
        let last = Operand::i32(self.slot.length as i32 - 1);
        let index = k.int(IntOp::Min, seen, last);
        writer.index = k.resize(index, Type::I64);
        let lead = k.offset(shared, self.bytes(self.slot.lead));
        let within = match part {
            Some(first) => {
                let mut within = k.int(IntOp::Sub, index, first);
                if let Some((split, beyond)) = self.split.and_then(|s| Some((s, s.beyond?))) {
                    // Nobody keeps order with warps beyond the end of the line.
                    let idle = (split.last - 1) / WARP * WARP + WARP;
                    let idle = k.compare(IntCmp::Ge, local, Operand::i32(idle as i32));
                    let rank = rank(k);
                    let is_last = split.is_last(k, rank);
                    let idle = k.int(IntOp::And, idle, is_last);
                    let beyond = k.int(IntOp::Max, local, Operand::i32(beyond as i32));
                    within = k.choose(idle, beyond, within);
                }
                k.resize(within, Type::I64)
            }
            None => writer.index,
        };
        writer.own = k.advance(lead, within, self.real.bytes());
        writer
    }

    /// The block's task is in shared memory.
    pub fn of_task(self, task: Operand) -> Writer<'a> {
        Writer {
            task: Some(task),
            ..self
        }
    }

    /// Threads meet at barriers of some of the block's threads.
    pub fn meeting(self, meeting: Meeting) -> Writer<'a> {
        Writer {
            meeting: Some(meeting),
            ..self
        }
    }

    /// The period whose origin is at a pointer.
    pub fn period_at(&self, k: &mut Kernel<'_>, origin: Operand) -> Period {
        // Who only copies has no index.
        let own = match self.index.ty {
            Type::I64 => k.advance(origin, self.index, self.real.bytes()),
            _ => origin,
        };
        let chunk = match self.chunks {
            Some(chunks) => k.advance(origin, chunks.by, 1),
            None => origin,
        };
        Period {
            own,
            chunk,
            clip: None,
            base: None,
        }
    }

    pub fn bytes(&self, elements: i64) -> i64 {
        elements * self.layout.element_bytes as i64
    }

    /// From the origin's group to a row, in bytes.
    pub fn distance(&self, place: Place) -> i64 {
        let group =
            place.x * self.layout.stride[Axis::OUTER] + place.y * self.layout.stride[Axis::MIDDLE];
        self.bytes(group + i64::from(place.row.0) * self.layout.row_stride)
    }

    /// Runs the periods of a range that nothing cuts.
    pub fn whole(&self, k: &mut Kernel<'_>, first: Period, periods: [Operand; 2]) {
        self.clone().with_ends(k).periods(k, first, periods);
    }

    /// The thread knows where its ghosts along the inner axis lie.
    pub fn with_ends(self, k: &mut Kernel<'_>) -> Writer<'a> {
        Writer {
            ends: Ends::new(k, &self).map(Rc::new),
            ..self
        }
    }

    fn periods(&self, k: &mut Kernel<'_>, first: Period, periods: [Operand; 2]) {
        let [from, until] = periods;
        // Counted to zero: there is no register for the last one.
        let from = k.int(IntOp::Sub, from, until);
        let period = Period {
            clip: self.clip(k, from),
            ..first
        };
        let between = self.between(k, periods[0], self.thread);
        let variables = self.begin(k, period, between);
        let own = k.variable_of(first.own);
        let chunk = k.variable_of(first.chunk);
        let advance = self.advance();
        let between = between.map(|Between(n)| k.variable_of(n));
        let [zero, one] = [0, 1].map(Operand::i32);
        k.repeat(from, zero, one, Some(1), |k, number| {
            let next = k.int(IntOp::Add, number, one);
            let more = k.compare(IntCmp::Lt, next, zero);
            let period = Period {
                own: k.get(own),
                chunk: k.get(chunk),
                clip: None,
                base: None,
            };
            let place = between.map(|between| Between(k.get(between)));
            let whole =
                |k: &mut Kernel<'_>| self.period(k, (period, number, place), &variables, more);
            match self.is_busy(k, place) {
                Some(busy) => k.either(busy, whole, |k| self.pass(k)),
                None => whole(k),
            }
            if let (Some(variable), Some(Between(now))) = (between, place) {
                let next = k.int(IntOp::Add, now, Operand::i32(self.period_lean() as i32));
                k.set(variable, next);
            }
            for (pointer, now) in [(own, period.own), (chunk, period.chunk)] {
                let next = k.offset(now, advance);
                k.set(pointer, next);
            }
        });
        let zero = Operand::i32(0);
        let period = Period {
            own: k.get(own),
            chunk: k.get(chunk),
            clip: self.clip(k, zero),
            base: None,
        };
        let place = between.map(|between| Between(k.get(between)));
        self.end(k, period, place, &variables);
    }

    /// All copies have arrived, and all who work on a tower are here.
    pub fn meet(&self, k: &mut Kernel<'_>) {
        self.arrived(k);
        match self.meeting {
            Some(Meeting { all, .. }) => all.meet(k),
            None => k.barrier(),
        }
    }

    /// The same, and all see what others have stored in memory.
    pub fn settle(&self, k: &mut Kernel<'_>) {
        self.arrived(k);
        match self.meeting {
            Some(Meeting { all, .. }) => all.settle(k),
            None => k.barrier(),
        }
    }

    /// How those that compute go on from stage to stage, unless all meet.
    pub fn pipe(&self) -> Option<(Pipe, Links)> {
        self.meeting.and_then(|meeting| meeting.pipe)
    }

    /// A stage of a period that nothing cuts ends, in which threads have sent so many rows to other blocks.
    fn meet_after(&self, k: &mut Kernel<'_>, sent: usize) {
        match self.pipe() {
            Some((pipe, links)) => {
                pipe.free(k);
                links.tell(k, sent, self.bytes(1));
                links.wait(k);
                pipe.next(k);
            }
            None => self.meet(k),
        }
    }

    /// What a stage reads of memory has arrived.
    pub fn wait_for_copies(&self, k: &mut Kernel<'_>) {
        if let Some((pipe, _)) = self.pipe() {
            pipe.wait_for_full(k);
        }
    }

    /// Loads what is kept when a period begins; of parts of lines, what somebody needs.
    fn begin(
        &self,
        k: &mut Kernel<'_>,
        period: Period,
        place: Option<Between>,
    ) -> BTreeMap<Place, Variable> {
        self.copy(k, period, &self.plan.held);
        let mut variables = BTreeMap::new();
        let mut planes = Planes::new(period.own);
        let mut needed: BTreeMap<[i64; 2], Operand> = BTreeMap::new();
        for carried in &self.plan.carried {
            let from = planes.row(k, self, carried.place);
            let there = period.clip.map(|clip| clip.has(k, self, carried.place));
            let part = place.zip(self.spans).map(|(place, spans)| {
                let ends = spans.needed(carried.uses);
                *needed
                    .entry(ends)
                    .or_insert_with(|| self.lies(k, place, ends, 1))
            });
            let has = match (there, part) {
                (Some(there), Some(part)) => Some(k.int(IntOp::And, there, part)),
                (there, part) => there.or(part),
            };
            let value = match has {
                None => k.load(self.real, from, self.real.bytes(), Access::Plain),
                Some(has) => k.load_if(has, self.real, from),
            };
            variables.insert(carried.place, k.variable_of(value));
        }
        self.meet(k);
        self.show_held(k);
        variables
    }

    /// Stores what only the tower has.
    fn end(
        &self,
        k: &mut Kernel<'_>,
        period: Period,
        place: Option<Between>,
        variables: &BTreeMap<Place, Variable>,
    ) {
        let mut planes = Planes::new(period.own);
        for carried in &self.plan.carried {
            let (Some(written), Some(variable)) = (carried.written, variables.get(&carried.place))
            else {
                continue;
            };
            let value = k.get(*variable);
            if let Some(component) = self.layout.component_of(carried.place.row) {
                let to = planes.row(k, self, carried.place);
                let component = (component, carried.place);
                self.leave(k, (period, (place, written)), component, to, value);
            }
        }
    }

    /// Whether some thread of the warp has something to do in a period; `None` where all have.
    fn is_busy(&self, k: &mut Kernel<'_>, place: Option<Between>) -> Option<Operand> {
        let (place, spans) = place.zip(self.spans)?;
        let one = Operand::int(Type::I1, 1);
        let does = self.lies(k, place, spans.busy(self.plan), 1);
        let none = k.int(IntOp::Xor, does, one);
        let none = k.all(none);
        Some(k.int(IntOp::Xor, none, one))
    }

    /// A period in which the warp only keeps order with others.
    fn pass(&self, k: &mut Kernel<'_>) {
        for _ in &self.plan.stages {
            self.wait_for_copies(k);
            self.meet_after(k, 0);
        }
    }

    fn period(
        &self,
        k: &mut Kernel<'_>,
        (period, which, place): (Period, Operand, Option<Between>),
        variables: &BTreeMap<Place, Variable>,
        more: Operand,
    ) {
        let mut values: BTreeMap<Place, Operand> = BTreeMap::new();
        for (place, variable) in variables {
            values.insert(*place, k.get(*variable));
        }
        for number in 0..self.plan.stages.len() {
            let stage = &self.plan.stages[number];
            // There are no registers to keep it from stage to stage.
            let period = Period {
                clip: self.clip(k, which),
                ..period
            };
            if number + 1 == self.plan.stages.len() {
                k.when(more, |k| self.copy(k, period, &stage.loads));
            } else {
                self.copy(k, period, &stage.loads);
            }
            let sent = Stage::new(self, number, (period, which, place), &mut values).write(k);
            self.meet_after(k, sent);
        }
        let [x, y] = self.towers.advance;
        for (place, variable) in variables {
            let now = Place {
                x: place.x + x,
                y: place.y + y,
                row: place.row,
            };
            if let Some(value) = values.get(&now) {
                k.set(*variable, *value);
            }
        }
    }

    pub fn slot(&self, k: &mut Kernel<'_>, slot: usize, index: i64) -> Operand {
        let by = self.bytes(slot as i64 * self.slot.stride + index);
        k.offset(self.own, by)
    }

    /// What only threads with an index in a range do.
    pub fn within(&self, k: &mut Kernel<'_>, range: Interval, body: impl FnOnce(&mut Kernel<'_>)) {
        if range.hi >= self.threads && range.lo <= 0 {
            body(k);
            return;
        }
        let inside = self.is_within(k, range);
        k.when(inside, body);
    }

    pub fn is_within(&self, k: &mut Kernel<'_>, range: Interval) -> Operand {
        let from = k.int(IntOp::Sub, self.thread, Operand::i32(range.lo as i32));
        k.compare(IntCmp::Below, from, Operand::i32(range.len() as i32))
    }

    /// The new value where an update acts along the inner axis, the old one elsewhere, and 0 where it is known to be.
    pub fn in_range(
        &self,
        k: &mut Kernel<'_>,
        update: &Update,
        value: Operand,
        old: impl FnOnce(&mut Kernel<'_>) -> Operand,
    ) -> Operand {
        let position = self.scheme.component(update.target).position;
        let live = self.scheme.grid.live(position)[Axis::INNER];
        let range = update.region[Axis::INNER];
        if range == live && live.lo == 0 {
            return value;
        }
        let otherwise = match range == live {
            true => Operand::real(self.real, 0f64.to_bits()),
            false => old(k),
        };
        let inside = self.is_within(k, range);
        k.choose(inside, value, otherwise)
    }
}
