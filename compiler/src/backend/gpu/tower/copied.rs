//! Corrections of rows far from faces across the first two axes, by waves that are copied to shared memory.
//!
//! A thread near a face across the inner axis has a *place* in slots ([`WaveSlots`]). While a stage runs, a producer
//! warp for each source copies the waves that the next one adds, a lane for each place; they arrive with the rows of
//! that stage. The words of places for a source are copied once, when the kernel begins. So a compute thread keeps one
//! word: its place, and for which sources it has waves. A correction of a row then costs one read of a wave.

use super::super::abi::{CorrectionTable, TowerParams};
use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Variable};
use super::context::{Context, Lane, word};
use super::correction_words::Correction;
use super::source_box::origin;
use super::task;
use crate::incident::FarRows;
use crate::lattice::div_ceil;
use crate::scheme::Precision;
use crate::tower::block::WARP;
use crate::tower::{BESIDE, RowUpdate, StageAt, WAVE, WaveCopy, WaveSlots};

/// Of a thread that computes: its place in the upper half of a word, and a bit for each source that corrects it in the
/// lower half.
pub(super) type Known = Variable;

/// Where a word has the place.
const PLACE: i32 = 16;

/// Where waves of rows are, and which of a thread's.
#[derive(Clone, Copy)]
pub(super) struct Copied<'r> {
    pub known: Known,
    /// Of each row, that of the first source.
    pub slots: &'r [usize],
    /// Sources before.
    pub before: usize,
}

/// The slots, and the words of places.
struct Slots {
    slots: WaveSlots,
    begin: Operand,
}

impl Slots {
    /// `shared`: where shared rows begin.
    fn of(k: &mut Kernel<'_>, context: &Context<'_>, shared: Operand) -> Option<Slots> {
        let block = context.block();
        let (slots, first) = (block.slots?, block.slots_at()?);
        let begin = k.offset(shared, first);
        Some(Slots { slots, begin })
    }

    /// Where the wave of a place is.
    fn wave(&self, k: &mut Kernel<'_>, slot: usize, place: Operand) -> Operand {
        let place = k.resize(place, Type::I64);
        let first = k.advance(self.begin, place, WAVE);
        k.offset(first, self.slots.slot(slot))
    }

    /// Where a word of a source is.
    fn word(&self, k: &mut Kernel<'_>, source: usize, number: Operand) -> Operand {
        let number = k.resize(number, Type::I64);
        let first = k.advance(self.begin, number, 4);
        k.offset(first, self.slots.words(source))
    }
}

/// The sources whose waves are copied, by their numbers.
fn sources(context: &Context<'_>) -> Vec<usize> {
    let all = context.program.sources.iter().enumerate();
    let copied = all.filter(|(_, source)| source.is_copied());
    copied.map(|(number, _)| number).collect()
}

/// Copies the words of places: by all threads of a block, before they wait for each other.
pub(super) fn prepare(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    shared: Operand,
    thread: Operand,
    threads: u32,
) {
    let Some(slots) = Slots::of(k, context, shared) else {
        return;
    };
    let count = word(i64::from(slots.slots.places + BESIDE));
    for (n, source) in sources(context).into_iter().enumerate() {
        let correction = Correction::new(k, source, FarRows::Alike);
        let places = correction.word(k, Operand::i32(CorrectionTable::PLACES));
        k.repeat(thread, count, word(threads.into()), Some(1), |k, number| {
            let of_place = k.compare(IntCmp::Ge, number, word(BESIDE.into()));
            let from = k.choose(of_place, places, Operand::i32(CorrectionTable::BELOW));
            let less = k.choose(of_place, word(BESIDE.into()), Operand::i32(0));
            let by = k.int(IntOp::Sub, number, less);
            let from = k.int(IntOp::Add, from, by);
            let value = correction.word(k, from);
            let to = slots.word(k, n, number);
            k.store(value, to, 4, Access::Plain);
        });
    }
}

/// The rows of all stages of a period that a source corrects.
fn rows_of(context: &Context<'_>, source: usize) -> Vec<RowUpdate> {
    let stages = 0..context.stages().len();
    let all = stages.flat_map(|stage| copies_of(context, source, stage));
    all.map(|(copy, _)| copy.row).collect()
}

/// The rows of a stage that a source corrects, each with the source's slot.
fn copies_of(context: &Context<'_>, source: usize, stage: usize) -> Vec<(WaveCopy, usize)> {
    let at = StageAt::new(context.scheme, stage as i64);
    let sources = &context.program.sources;
    let copies = context.stages()[stage].waves.iter();
    let own = copies.filter_map(|copy| {
        let component = at.updates(context.scheme)[copy.row.update].target;
        let corrects =
            |n: usize| sources[n].is_copied() && sources[n].is_after(at.stage, component);
        let before = (0..source).filter(|n| corrects(*n)).count();
        corrects(source).then_some((*copy, copy.slot + before))
    });
    own.collect()
}

/// The word of a thread when interior periods begin.
pub(super) fn begin(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    lane: &Lane,
    words: Operand,
    period: Operand,
) -> Option<Known> {
    context.block().slots?;
    let known = k.variable_of(Operand::i32(0));
    learn(k, context, lane, words, period, known);
    Some(known)
}

/// A thread learns its place, and which sources correct it in a period. Towers that do not meet faces across the first
/// two axes afterwards are in a box from then on, or beside it.
pub(super) fn learn(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    lane: &Lane,
    words: Operand,
    period: Operand,
    known: Known,
) {
    let Some(slots) = Slots::of(k, context, lane.rows) else {
        return;
    };
    let thread = k.again(lane.thread);
    let sources = sources(context);
    let mut any = Operand::int(Type::I1, 0);
    for source in &sources {
        let correction = Correction::new(k, *source, FarRows::Alike);
        let near = correction.is_near_ends(k, thread);
        any = k.int(IntOp::Or, any, near);
    }
    k.when(any, |k| {
        let at = origin(k, context, period, words);
        let (mut place, mut bits) = (Operand::i32(0), Operand::i32(0));
        for (n, source) in sources.iter().enumerate() {
            let correction = Correction::new(k, *source, FarRows::Alike);
            let near = correction.is_near_ends(k, thread);
            let above = correction.is_above(k, thread);
            let side = k.choose(above, Operand::i32(1), Operand::i32(0));
            let from = slots.word(k, n, side);
            let less = k.load(Type::I32, from, 4, Access::Plain);
            let own = k.int(IntOp::Sub, thread, less);
            let own = k.choose(near, own, Operand::i32(0));
            let number = k.int(IntOp::Add, own, word(BESIDE.into()));
            let from = slots.word(k, n, number);
            let of_place = k.load(Type::I32, from, 4, Access::Plain);
            let some = k.compare(IntCmp::Ne, of_place, Operand::i32(CorrectionTable::NONE));
            let around = correction
                .source_box
                .is_around(k, at, &rows_of(context, *source));
            let has = k.int(IntOp::And, near, some);
            let has = k.int(IntOp::And, has, around);
            let bit = k.choose(has, Operand::i32(1 << n), Operand::i32(0));
            bits = k.int(IntOp::Or, bits, bit);
            place = k.choose(near, own, place);
        }
        let place = k.int(IntOp::Left, place, Operand::i32(PLACE));
        let all = k.int(IntOp::Or, place, bits);
        k.set(known, all);
    });
}

/// Copies the waves that a stage of a period adds: `thread` is a number below the number of producer threads.
#[derive(Clone, Copy)]
pub(super) struct Copier {
    pub shared: Operand,
    pub thread: Operand,
    pub threads: i64,
}

impl Copier {
    pub fn copy(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        words: Operand,
        period: Operand,
        stage: usize,
    ) {
        if context.stages()[stage].waves.is_empty() {
            return;
        }
        let Some(slots) = Slots::of(k, context, self.shared) else {
            return;
        };
        let warps = (self.threads / WARP).max(1);
        let thread = k.again(self.thread);
        let warp = k.int(IntOp::Right, thread, word(WARP.trailing_zeros().into()));
        let lane = k.int(IntOp::And, thread, word(WARP - 1));
        for (n, source) in sources(context).into_iter().enumerate() {
            let copies = copies_of(context, source, stage);
            if copies.is_empty() {
                continue;
            }
            let mine = k.compare(IntCmp::Eq, warp, word(n as i64 % warps));
            k.when(mine, |k| {
                let correction = Correction::new(k, source, FarRows::Alike);
                let at = origin(k, context, period, words);
                let mut there = correction
                    .source_box
                    .is_around(k, at, &rows_of(context, source));
                if context.towers().variants.any_faces() {
                    let near = task::is_near(k, words, period);
                    let far = k.int(IntOp::Xor, near, Operand::int(Type::I1, 1));
                    there = k.int(IntOp::And, there, far);
                }
                let first = self.first_wave(k, context, period, stage);
                let shift = correction.shift(k, at);
                for lanes in 0..div_ceil(slots.slots.places.into(), WARP) {
                    let place = k.int(IntOp::Add, lane, word(lanes * WARP));
                    let inside = k.compare(IntCmp::Below, place, word(slots.slots.places.into()));
                    let place = k.choose(inside, place, Operand::i32(0));
                    let number = k.int(IntOp::Add, place, word(BESIDE.into()));
                    let from = slots.word(k, n, number);
                    let own = k.load(Type::I32, from, 4, Access::Plain);
                    let some = k.compare(IntCmp::Ne, own, Operand::i32(CorrectionTable::NONE));
                    let has = k.int(IntOp::And, inside, some);
                    let has = k.int(IntOp::And, has, there);
                    let own = k.int(IntOp::Add, own, shift);
                    for (copy, slot) in &copies {
                        let by = copy.row.at.array().map(word);
                        let by = correction.shift(k, by);
                        let number = k.int(IntOp::Add, own, by);
                        let number = k.resize(number, Type::I64);
                        let from = k.advance(first, number, WAVE);
                        let to = slots.wave(k, *slot, place);
                        copy_wave(k, context, has, [from, to]);
                    }
                }
            });
        }
    }

    /// The first wave of the step of the time block in which a stage of a period is.
    fn first_wave(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        period: Operand,
        stage: usize,
    ) -> Operand {
        let step = k.int(IntOp::Mul, period, word(context.towers().steps as i64));
        let own = stage / context.scheme.stages.len();
        let step = k.int(IntOp::Add, step, word(own as i64));
        let [step, bytes] =
            [step, k.param(TowerParams::WAVE_BYTES)].map(|n| k.resize(n, Type::I64));
        let by = k.int(IntOp::Mul, step, bytes);
        k.advance(k.param(TowerParams::WAVES), by, 1)
    }
}

fn copy_wave(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    condition: Operand,
    [from, to]: [Operand; 2],
) {
    if context.block().abilities.asynchronous {
        k.copy_wave_if(condition, from, to);
        return;
    }
    k.when(condition, |k| {
        let wave = k.load(Type::scalar(Precision::F64), from, WAVE, Access::Plain);
        k.store(wave, to, WAVE, Access::Plain);
    });
}

impl Copied<'_> {
    /// Adds the waves of a source to rows: that of this number, where threads that are active have some.
    pub fn add(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        lane: &Lane,
        source: usize,
        active: Option<Operand>,
        variables: &[Variable],
    ) {
        let before = context.program.sources[..source].iter();
        let number = before.filter(|source| source.is_copied()).count();
        let known = k.get(self.known);
        let bit = k.int(IntOp::And, known, Operand::i32(1 << number));
        let mut has = k.compare(IntCmp::Ne, bit, Operand::i32(0));
        if let Some(active) = active {
            has = k.int(IntOp::And, has, active);
        }
        k.when(has, |k| {
            let Some(slots) = Slots::of(k, context, lane.rows) else {
                return;
            };
            let place = k.int(IntOp::Right, known, Operand::i32(PLACE));
            let double = Type::scalar(Precision::F64);
            let waves = self.slots.iter().map(|slot| {
                let from = slots.wave(k, slot + self.before, place);
                k.load(double, from, WAVE, Access::Plain)
            });
            let waves: Vec<Operand> = waves.collect();
            for (wave, variable) in waves.into_iter().zip(variables) {
                let added = k.convert(wave, context.real);
                let before = k.get(*variable);
                let after = k.sum(before, added);
                k.set(*variable, after);
            }
        });
    }
}
