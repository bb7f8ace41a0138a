//! Writes the kernel of a plan.

use super::super::gpu::Feature;
use super::super::ir::{Launch, Module, Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Special, Variable};
use super::line::{Across, Barrier, Split, rank};
use super::pipe::Pipe;
use super::plan::{Copy, Plan};
use super::{CHUNK, Options, Slot, TowerKernel};
use crate::backend::rows::RowOp;
use crate::lattice::{Axis, Interval};
use crate::layout::Layout;
use crate::scheme::{ComponentId, Image, Op, Read, Scheme, StageId, Update, Value};
use crate::tile::residency::{Own, Place, Towers, is_tapped};
use std::collections::BTreeMap;

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
    let turn = writer.turn_at(&mut k, origin);
    k.barrier();
    let turns = [Operand::i32(0), k.param(2)];
    writer.whole(&mut k, turn, turns);
    k.finish();
}

/// Images along the vector axis that threads have, at most one each.
#[derive(Clone)]
struct Round {
    pairs: Vec<(i64, Image)>,
    /// The thread has one.
    has: Operand,
    /// From the thread's own value to it, in bytes.
    by: Operand,
    /// It is negated.
    negated: Operand,
}

/// How threads share the copying of rows: chunks of 16 bytes, groups of whole warps that take rows in turns.
#[derive(Clone, Copy)]
struct Chunks {
    group: Operand,
    groups: i64,
    /// Chunks of a thread, its group's threads apart.
    rounds: i64,
    /// Threads of a group.
    threads: i64,
    /// The thread's first chunk.
    first: Operand,
    /// The thread's first chunk in slot 0.
    to: Operand,
    /// From index 0 of a row to the thread's first chunk, in bytes.
    by: Operand,
    /// Chunks of a row, where blocks have different numbers of them.
    count: Option<Operand>,
}

#[derive(Clone)]
pub(super) struct Writer<'a> {
    pub scheme: &'a Scheme,
    pub layout: &'a Layout,
    pub towers: &'a Towers,
    pub plan: &'a Plan,
    pub slot: Slot,
    pub split: Option<Split>,
    pub asynchronous: bool,
    /// Of a tower.
    pub threads: i64,
    pub real: Type,
    /// The first row of this alignment in the list of all rows.
    pub first_row: i64,
    thread: Operand,
    /// The thread's index, in 64 bits; threads beyond the end of rows see the last index, and write nothing.
    pub index: Operand,
    /// The thread's own value in slot 0.
    own: Operand,
    /// `None`: other threads copy rows.
    chunks: Option<Chunks>,
    /// Where those who work on a tower meet; `None`: all threads of the block do, and copy themselves.
    meeting: Option<Meeting>,
    /// Per component.
    images: Vec<Vec<Round>>,
}

/// Barriers of those who work on a tower.
#[derive(Clone, Copy)]
pub(super) struct Meeting {
    /// Of all.
    pub all: Barrier,
    /// Of those that compute, and the herald.
    pub computing: Barrier,
    /// `None`: copies end with the stage in which they begin, and all meet there.
    pub pipe: Option<Pipe>,
}

impl Meeting {
    /// Where stages of turns end that nothing cuts, for those that compute.
    pub fn end(&self) -> Barrier {
        match self.pipe {
            Some(_) => self.computing,
            None => self.all,
        }
    }
}

/// Where a turn is in memory.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    /// Row 0 of the origin's group at the thread's index.
    pub own: Operand,
    /// The same at the thread's chunk.
    pub chunk: Operand,
}

impl<'a> Writer<'a> {
    pub fn new(
        scheme: &'a Scheme,
        layout: &'a Layout,
        towers: &'a Towers,
        (slot, split): (Slot, Option<Split>),
        kernel: &'a TowerKernel,
        options: Options,
    ) -> Writer<'a> {
        let none = Operand::poison(Type::I32);
        Writer {
            scheme,
            layout,
            towers,
            plan: &kernel.plan,
            slot,
            split,
            asynchronous: options.asynchronous,
            threads: i64::from(kernel.threads * options.parts),
            real: Type::scalar(scheme.precision),
            first_row: kernel.first_row,
            thread: none,
            index: none,
            own: none,
            chunks: None,
            meeting: None,
            images: Vec::new(),
        }
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
        let thread = match part {
            Some(first) => k.int(IntOp::Add, thread, first),
            None => thread,
        };
        let mut writer = Writer {
            images: Vec::new(),
            thread,
            ..*self
        };
        let last = Operand::i32(self.slot.length as i32 - 1);
        let index = k.int(IntOp::Min, thread, last);
        writer.index = k.resize(index, Type::I64);
        let lead = k.offset(shared, self.bytes(self.slot.lead));
        let within = match part {
            Some(first) => {
                let within = k.int(IntOp::Sub, index, first);
                k.resize(within, Type::I64)
            }
            None => writer.index,
        };
        writer.own = k.advance(lead, within, self.real.bytes());
        writer.images = writer.rounds(k);
        writer
    }

    /// Computes what one of so many threads that copy rows has to know.
    pub fn copying(
        &self,
        k: &mut Kernel<'_>,
        shared: Operand,
        thread: Operand,
        threads: i64,
    ) -> Writer<'a> {
        let lead = k.offset(shared, self.bytes(self.slot.lead));
        let copied = self.slot.copied;
        let each = self.bytes(copied.len()) / CHUNK;
        let warps = crate::lattice::div_ceil(each, 32) * 32;
        // Threads that make no whole group join the only one.
        let groups = (threads / warps).max(1);
        let group_threads = if groups > 1 { warps } else { threads };
        let (mut group, mut place) = (Operand::i32(0), thread);
        if groups > 1 {
            let size = Operand::i32(group_threads as i32);
            group = k.int(IntOp::Div, thread, size);
            place = k.int(IntOp::Rem, thread, size);
        }
        let first = k.resize(place, Type::I64);
        let by = k.int(IntOp::Mul, first, Operand::i64(CHUNK));
        let by = k.int(IntOp::Add, by, Operand::i64(self.bytes(copied.lo)));
        let to = k.advance(lead, by, 1);
        let (mut from, mut count) = (by, None);
        if let Some(split) = self.split {
            let rank = rank(k);
            let first = split.first(k, rank);
            let first = k.resize(first, Type::I64);
            let first = k.int(IntOp::Mul, first, Operand::i64(self.bytes(1)));
            from = k.int(IntOp::Add, by, first);
            let less = self.bytes(split.part) - self.bytes(split.last);
            let last = crate::lattice::div_ceil(self.bytes(copied.len()) - less, CHUNK);
            count = Some(split.of_part(k, rank, each, last));
        }
        let chunks = Chunks {
            group,
            groups,
            rounds: crate::lattice::div_ceil(each, group_threads),
            threads: group_threads,
            first: place,
            to,
            by: from,
            count,
        };
        Writer {
            chunks: Some(chunks),
            images: self.images.clone(),
            ..*self
        }
    }

    /// Threads meet at barriers of some of the block's threads.
    pub fn meeting(self, meeting: Meeting) -> Writer<'a> {
        Writer {
            meeting: Some(meeting),
            ..self
        }
    }

    /// The turn whose origin is at a pointer.
    pub fn turn_at(&self, k: &mut Kernel<'_>, origin: Operand) -> Turn {
        // Who only copies has no index.
        let own = match self.index.ty {
            Type::I64 => k.advance(origin, self.index, self.real.bytes()),
            _ => origin,
        };
        let chunk = match self.chunks {
            Some(chunks) => k.advance(origin, chunks.by, 1),
            None => origin,
        };
        Turn { own, chunk }
    }

    pub fn bytes(&self, elements: i64) -> i64 {
        elements * self.layout.element_bytes as i64
    }

    /// From the origin's group to a row, in bytes.
    pub fn distance(&self, place: Place) -> i64 {
        let group =
            place.x * self.layout.stride[Axis::LEAN] + place.y * self.layout.stride[Axis::DIAMOND];
        self.bytes(group + i64::from(place.row.0) * self.layout.row_stride)
    }

    /// Runs the turns of a range that nothing cuts.
    pub fn whole(&self, k: &mut Kernel<'_>, first: Turn, turns: [Operand; 2]) {
        let variables = self.begin(k, first);
        let own = k.variable_of(first.own);
        let chunk = k.variable_of(first.chunk);
        let [from, until] = turns;
        let advance = self.advance();
        k.repeat(from, until, Operand::i32(1), Some(1), |k, number| {
            let next = k.int(IntOp::Add, number, Operand::i32(1));
            let more = k.compare(IntCmp::Lt, next, until);
            let turn = Turn {
                own: k.get(own),
                chunk: k.get(chunk),
            };
            self.turn(k, turn, &variables, more);
            for (pointer, now) in [(own, turn.own), (chunk, turn.chunk)] {
                let next = k.offset(now, advance);
                k.set(pointer, next);
            }
        });
        let turn = Turn {
            own: k.get(own),
            chunk: k.get(chunk),
        };
        self.end(k, turn, &variables);
    }

    /// Zeros in all slots: what lies beyond the ends of rows.
    pub fn clear(
        &self,
        k: &mut Kernel<'_>,
        shared: Operand,
        slots: usize,
        thread: Operand,
        threads: i64,
    ) {
        let words = self.bytes(self.slot.elements(slots)) / 4;
        let step = Operand::i32(threads as i32);
        k.repeat(
            thread,
            Operand::i32(words as i32),
            step,
            Some(1),
            |k, word| {
                let word = k.resize(word, Type::I64);
                let to = k.advance(shared, word, 4);
                k.store(Operand::i32(0), to, 4, Access::Plain);
            },
        );
    }

    /// The images along the vector axis of each component.
    fn rounds(&self, k: &mut Kernel<'_>) -> Vec<Vec<Round>> {
        let mut known: Vec<Round> = Vec::new();
        let components = self.scheme.component_ids().map(|id| {
            let grid = &self.scheme.grid;
            let position = self.scheme.component(id).position;
            let visible = self.scheme.visible(id)[Axis::VECTOR];
            let extent = grid.extent(position)[Axis::VECTOR];
            let mut rounds: Vec<Vec<(i64, Image)>> = Vec::new();
            for i in extent.lo..extent.hi {
                for (n, image) in grid.images(Axis::VECTOR, position, i, visible).enumerate() {
                    if n == rounds.len() {
                        rounds.push(Vec::new());
                    }
                    rounds[n].push((i, image));
                }
            }
            let mut all = Vec::new();
            for pairs in rounds {
                let same = known.iter().find(|r| r.pairs == pairs).cloned();
                all.push(same.unwrap_or_else(|| {
                    let round = self.round(k, pairs);
                    known.push(round.clone());
                    round
                }));
            }
            all
        });
        components.collect()
    }

    fn round(&self, k: &mut Kernel<'_>, pairs: Vec<(i64, Image)>) -> Round {
        let mut has = Operand::int(Type::I1, 0);
        let mut by = Operand::i64(0);
        let mut negated = Operand::int(Type::I1, 0);
        for &(source, image) in &pairs {
            let this = k.compare(IntCmp::Eq, self.thread, Operand::i32(source as i32));
            has = k.int(IntOp::Or, has, this);
            by = k.choose(this, Operand::i64(self.bytes(image.index - source)), by);
            let sign = Operand::int(Type::I1, i64::from(image.negated));
            negated = k.choose(this, sign, negated);
        }
        Round {
            pairs,
            has,
            by,
            negated,
        }
    }

    /// Starts copying rows to their slots, if that is what the thread is for.
    pub fn copy(&self, k: &mut Kernel<'_>, turn: Turn, copies: &[Copy]) {
        let Some(chunks) = self.chunks else {
            return;
        };
        let each = self.bytes(self.slot.copied.len()) / CHUNK;
        for group in 0..chunks.groups {
            let mine = copies.iter().skip(group as usize);
            let mine: Vec<&Copy> = mine.step_by(chunks.groups as usize).collect();
            if mine.is_empty() {
                continue;
            }
            let mut this = Operand::int(Type::I1, 1);
            if chunks.groups > 1 {
                this = k.compare(IntCmp::Eq, chunks.group, Operand::i32(group as i32));
            }
            for round in 0..chunks.rounds {
                let before = round * chunks.threads;
                let left = Operand::i32((each - before) as i32);
                let mut has = this;
                if let Some(count) = chunks.count {
                    let left = k.int(IntOp::Sub, count, Operand::i32(before as i32));
                    let there = k.compare(IntCmp::Lt, chunks.first, left);
                    has = k.int(IntOp::And, has, there);
                } else if each - before < chunks.threads {
                    let there = k.compare(IntCmp::Lt, chunks.first, left);
                    has = k.int(IntOp::And, has, there);
                }
                k.when(has, |k| {
                    for copy in &mine {
                        let slot = copy.slot as i64 * self.slot.stride;
                        let distance = self.distance(copy.place) + before * CHUNK;
                        let from = k.offset(turn.chunk, distance);
                        let to = k.offset(chunks.to, self.bytes(slot) + before * CHUNK);
                        self.copy_chunk(k, from, to);
                    }
                });
            }
        }
    }

    fn copy_chunk(&self, k: &mut Kernel<'_>, from: Operand, to: Operand) {
        if self.asynchronous {
            k.call("llvm.nvvm.cp.async.cg.shared.global.16", &[to, from]);
            return;
        }
        let lanes = CHUNK as u32 / self.real.bytes();
        let vector = Type::vector(self.scheme.precision, lanes);
        let value = k.load(vector, from, CHUNK as u32, Access::Plain);
        k.store(value, to, CHUNK as u32, Access::Plain);
    }

    /// All copies of the thread have arrived.
    pub fn arrived(&self, k: &mut Kernel<'_>) {
        if self.asynchronous && self.chunks.is_some() {
            k.call("llvm.nvvm.cp.async.wait.all", &[]);
        }
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

    /// A stage of a turn that nothing cuts ends.
    fn meet_after(&self, k: &mut Kernel<'_>) {
        match self.meeting {
            Some(Meeting {
                pipe: Some(pipe),
                computing,
                ..
            }) => {
                pipe.free(k);
                computing.meet(k);
                pipe.next(k);
            }
            _ => self.meet(k),
        }
    }

    /// What a stage reads of memory has arrived.
    fn wait_for_copies(&self, k: &mut Kernel<'_>) {
        if let Some(Meeting {
            pipe: Some(pipe), ..
        }) = self.meeting
        {
            pipe.wait_for_full(k);
        }
    }

    /// Loads what is kept when a turn begins.
    fn begin(&self, k: &mut Kernel<'_>, turn: Turn) -> BTreeMap<Place, Variable> {
        self.copy(k, turn, &self.plan.held);
        let mut variables = BTreeMap::new();
        for carried in &self.plan.carried {
            let from = k.offset(turn.own, self.distance(carried.place));
            let value = k.load(self.real, from, self.real.bytes(), Access::Plain);
            variables.insert(carried.place, k.variable_of(value));
        }
        self.meet(k);
        variables
    }

    /// Stores what only the tower has.
    fn end(&self, k: &mut Kernel<'_>, turn: Turn, variables: &BTreeMap<Place, Variable>) {
        for carried in self.plan.carried.iter().filter(|c| c.dirty) {
            let Some(variable) = variables.get(&carried.place) else {
                continue;
            };
            let value = k.get(*variable);
            if let Some(component) = self.layout.component_of(carried.place.row) {
                self.store(k, turn, component, carried.place, value);
            }
        }
    }

    fn turn(
        &self,
        k: &mut Kernel<'_>,
        turn: Turn,
        variables: &BTreeMap<Place, Variable>,
        more: Operand,
    ) {
        let mut values: BTreeMap<Place, Operand> = BTreeMap::new();
        for (place, variable) in variables {
            values.insert(*place, k.get(*variable));
        }
        for number in 0..self.plan.stages.len() {
            let stage = &self.plan.stages[number];
            if number + 1 == self.plan.stages.len() {
                k.when(more, |k| self.copy(k, turn, &stage.loads));
            } else {
                self.copy(k, turn, &stage.loads);
            }
            Stage {
                writer: self,
                number,
                turn,
                values: &mut values,
                taps: BTreeMap::new(),
                across: None,
                sent: 0,
            }
            .write(k);
            self.meet_after(k);
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

    fn slot(&self, k: &mut Kernel<'_>, slot: usize, index: i64) -> Operand {
        let by = self.bytes(slot as i64 * self.slot.stride + index);
        k.offset(self.own, by)
    }

    /// What only threads with an index in a range do.
    fn within(&self, k: &mut Kernel<'_>, range: Interval, body: impl FnOnce(&mut Kernel<'_>)) {
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

    /// Writes a value and its images along the vector axis to a row.
    pub fn write_row(
        &self,
        k: &mut Kernel<'_>,
        component: ComponentId,
        to: Operand,
        value: Operand,
    ) {
        self.write_values(k, component, to, value);
        let bytes = self.real.bytes();
        for round in &self.images[component.index()] {
            let Round {
                has, by, negated, ..
            } = *round;
            k.when(has, |k| {
                let turned = k.negated(value);
                let image = k.choose(negated, turned, value);
                let to = k.advance(to, by, 1);
                k.store(image, to, bytes, Access::Plain);
            });
        }
    }

    fn write_values(
        &self,
        k: &mut Kernel<'_>,
        component: ComponentId,
        to: Operand,
        value: Operand,
    ) {
        let extent = self.scheme.extent(component)[Axis::VECTOR];
        let bytes = self.real.bytes();
        self.within(k, extent, |k| k.store(value, to, bytes, Access::Plain));
    }

    /// The new value where an update acts along the vector axis, the old one elsewhere, and 0 where it is known to be.
    pub fn in_range(
        &self,
        k: &mut Kernel<'_>,
        update: &Update,
        value: Operand,
        old: impl FnOnce(&mut Kernel<'_>) -> Operand,
    ) -> Operand {
        let position = self.scheme.component(update.target).position;
        let live = self.scheme.grid.live(position)[Axis::VECTOR];
        let range = update.region[Axis::VECTOR];
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

    fn store(
        &self,
        k: &mut Kernel<'_>,
        turn: Turn,
        component: ComponentId,
        place: Place,
        value: Operand,
    ) {
        let to = k.offset(turn.own, self.distance(place));
        self.write_row(k, component, to, value);
    }
}

/// A stage of a turn that is being written.
struct Stage<'s, 'a> {
    writer: &'s Writer<'a>,
    number: usize,
    turn: Turn,
    /// What the thread has in registers.
    values: &'s mut BTreeMap<Place, Operand>,
    /// What it has read of other threads, by the distance along the vector axis.
    taps: BTreeMap<(Place, i64), Operand>,
    /// How other blocks get values; `None` before there are any.
    across: Option<Across>,
    /// Rows of which they do.
    sent: usize,
}

impl Stage<'_, '_> {
    fn write(mut self, k: &mut Kernel<'_>) {
        let writer = self.writer;
        let plan = &writer.plan.stages[self.number];
        // What needs nothing that has to arrive comes first.
        let (late, early): (Vec<&Own>, Vec<&Own>) =
            plan.own.iter().partition(|own| self.is_late(own));
        for own in early {
            self.update(k, own);
        }
        writer.wait_for_copies(k);
        for own in late {
            self.update(k, own);
        }
        for copy in &plan.again {
            let value = self.value(k, copy.place);
            self.publish(k, copy.place, copy.slot, value);
        }
        for place in &plan.wanted {
            self.value(k, *place);
        }
        if let Some(across) = self.across {
            across.expect(k, self.sent, writer.bytes(1));
        }
    }

    /// Whether an update reads something that arrives in this stage.
    fn is_late(&self, own: &Own) -> bool {
        let Writer {
            scheme,
            layout,
            plan,
            ..
        } = self.writer;
        let (stage, phase) = self.stage();
        let update = &scheme.stages[stage.index()].updates[own.update];
        let arriving = &plan.stages[self.number].arriving;
        let arrives = |x: i64, y: i64, row| {
            let (x, y) = (own.x + x, own.y + y);
            arriving.contains(&Place { x, y, row })
        };
        let reads = |read: &Read| {
            let [x, y] = [Axis::LEAN, Axis::DIAMOND].map(|axis| i64::from(read.offset[axis]));
            arrives(x, y, layout.read_row(scheme, stage, phase, read))
        };
        let coefs = update.body.coefs().chain(update.mask);
        update.body.reads().any(reads)
            || coefs
                .into_iter()
                .any(|coef| arrives(0, 0, layout.coef_row(coef)))
            || arrives(0, 0, layout.target_row(scheme, stage, phase, update.target))
    }

    fn stage(&self) -> (StageId, u32) {
        let stages = self.writer.scheme.stages.len();
        let phases = self.writer.scheme.phases().max(1);
        let stage = StageId((self.number % stages) as u32);
        (stage, (self.number / stages) as u32 % phases)
    }

    /// A value at the thread's own index.
    fn value(&mut self, k: &mut Kernel<'_>, place: Place) -> Operand {
        let writer = self.writer;
        if let Some(value) = self.values.get(&place) {
            return *value;
        }
        let value = match writer.plan.stages[self.number].enter.get(&place) {
            Some(&slot) => {
                let from = writer.slot(k, slot, 0);
                k.load(writer.real, from, writer.real.bytes(), Access::Plain)
            }
            None => {
                // A coefficient that is not kept.
                let from = k.offset(self.turn.own, writer.distance(place));
                k.load(writer.real, from, writer.real.bytes(), Access::ReadOnly)
            }
        };
        self.values.insert(place, value);
        value
    }

    /// A value at another index.
    fn tap(&mut self, k: &mut Kernel<'_>, place: Place, by: i64) -> Operand {
        let writer = self.writer;
        if let Some(value) = self.taps.get(&(place, by)) {
            return *value;
        }
        let slot = writer.plan.stages[self.number].taps.get(&place);
        let from = writer.slot(k, slot.copied().unwrap_or(0), by);
        let value = k.load(writer.real, from, writer.real.bytes(), Access::Plain);
        self.taps.insert((place, by), value);
        value
    }

    /// How other blocks get values. It is not kept from stage to stage: there are no registers for it.
    fn across(&mut self, k: &mut Kernel<'_>) -> Option<Across> {
        let writer = self.writer;
        let end = writer.meeting.map(|meeting| meeting.end());
        if let (None, Some(split), Some(Barrier::Cluster(meet))) = (self.across, writer.split, end)
        {
            self.across = Some(Across::new(k, &split, meet, writer.own, writer.bytes(1)));
        }
        self.across
    }

    fn publish(&mut self, k: &mut Kernel<'_>, place: Place, slot: usize, value: Operand) {
        let writer = self.writer;
        if let Some(component) = writer.layout.component_of(place.row) {
            let to = writer.slot(k, slot, 0);
            match writer.split {
                // Images are what neighbours send.
                Some(split) if split.is_ring() => writer.write_values(k, component, to, value),
                _ => writer.write_row(k, component, to, value),
            }
            if let Some(across) = self.across(k) {
                let by = writer.bytes(slot as i64 * writer.slot.stride);
                across.send(k, value, by);
                self.sent += 1;
            }
        }
    }

    fn update(&mut self, k: &mut Kernel<'_>, own: &Own) {
        let writer = self.writer;
        let (stage, phase) = self.stage();
        let update = &writer.scheme.stages[stage.index()].updates[own.update];
        let row = writer
            .layout
            .target_row(writer.scheme, stage, phase, update.target);
        let target = Place {
            x: own.x,
            y: own.y,
            row,
        };
        let mut value = self.body(k, update, own, stage, phase);
        if let Some(mask) = update.mask {
            let row = writer.layout.coef_row(mask);
            let mask = self.value(k, Place { row, ..target });
            let old = self.value(k, target);
            let zero = Operand::real(writer.real, 0f64.to_bits());
            value = k.select(crate::scheme::Cmp::Ne, mask, zero, value, old);
        }
        value = writer.in_range(k, update, value, |k| self.value(k, target));
        self.values.insert(target, value);
        let plan = &writer.plan.stages[self.number];
        if let Some(&slot) = plan.publish.get(&target) {
            self.publish(k, target, slot, value);
        }
        if plan.leave.contains(&target) {
            writer.store(k, self.turn, update.target, target, value);
        }
    }

    fn body(
        &mut self,
        k: &mut Kernel<'_>,
        update: &Update,
        own: &Own,
        stage: StageId,
        phase: u32,
    ) -> Operand {
        let writer = self.writer;
        let mut values: Vec<Operand> = Vec::with_capacity(update.body.ops.len());
        for op in &update.body.ops {
            let value = match op {
                Op::Const(c) => Operand::real(writer.real, c.to_bits()),
                Op::Read(read) => {
                    let place = Place {
                        x: own.x + i64::from(read.offset[Axis::LEAN]),
                        y: own.y + i64::from(read.offset[Axis::DIAMOND]),
                        row: writer.layout.read_row(writer.scheme, stage, phase, read),
                    };
                    let target =
                        writer
                            .layout
                            .target_row(writer.scheme, stage, phase, update.target);
                    let own = (place.x, place.y, place.row) == (own.x, own.y, target);
                    match !own && is_tapped(writer.scheme, writer.layout, read) {
                        false => self.value(k, place),
                        true => self.tap(k, place, read.offset[Axis::VECTOR].into()),
                    }
                }
                Op::Coef(coef) => {
                    let row = writer.layout.coef_row(*coef);
                    self.value(
                        k,
                        Place {
                            x: own.x,
                            y: own.y,
                            row,
                        },
                    )
                }
                op => {
                    let of = |v: Value| values[v.index()];
                    let number = row_op(op).and_then(|op| k.number(&op, of));
                    number.unwrap_or(Operand::poison(writer.real))
                }
            };
            values.push(value);
        }
        values[update.body.result.index()]
    }
}

/// An operation on numbers as row programs have it.
pub(super) fn row_op(op: &Op) -> Option<RowOp> {
    Some(match *op {
        Op::Const(_) | Op::Read(_) | Op::Coef(_) => return None,
        Op::Neg(a) => RowOp::Neg(a),
        Op::Abs(a) => RowOp::Abs(a),
        Op::Sqrt(a) => RowOp::Sqrt(a),
        Op::Add(a, b) => RowOp::Add(a, b),
        Op::Sub(a, b) => RowOp::Sub(a, b),
        Op::Mul(a, b) => RowOp::Mul(a, b),
        Op::Div(a, b) => RowOp::Div(a, b),
        Op::Fma(a, b, c) => RowOp::Fma(a, b, c),
        Op::Select {
            cmp,
            a,
            b,
            then,
            otherwise,
        } => RowOp::Select {
            cmp,
            a,
            b,
            then,
            otherwise,
        },
    })
}
