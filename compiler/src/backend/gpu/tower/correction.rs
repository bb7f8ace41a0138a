//! Corrections near the faces of boxes of total fields: volume sources that add a wave of its own at each place.
//!
//! A table has the pattern of each row of the region ([`CorrectionTable`]). From a row's indices follows its pattern,
//! from that a thread's own word, and from that the number of its wave. All rows of an operation are found together,
//! so that their loads are under way at the same time. In interior periods near faces across the first two axes a lane
//! of each warp finds the pattern of a row when the stage begins ([`super::volume::find_patterns`]), and tells the
//! others when the row is corrected. Far from these faces rows have the same pattern where media do not vary, so that a
//! thread has one word for all of them.

use super::super::abi::{CorrectionTable, TowerParams};
use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Special, Variable};
use super::context::Context;
use super::correction_words::Correction;
use super::source_box::{Range, RowPlace, SourceBox, Within, origin};
use super::source_rows::{Faces, Places, Rows, any_is_there};
use crate::incident::FarRows;
use crate::scheme::Precision;
use crate::tower::{Group, RowUpdate};

/// More than words of a table.
const FAR_AWAY: i32 = 1 << 30;

/// The address of the wave that a thread adds to a row, and whether it adds one.
struct Found {
    has: Operand,
    wave: Operand,
}

/// Where a thread lies along the inner axis.
struct Along {
    /// In the hole.
    within: Operand,
    /// Its word in the pattern of a row that is whole, and of another one.
    words: [Operand; 2],
}

impl Along {
    /// Whether a pattern has a word for the thread, and its number.
    fn of(&self, k: &mut Kernel<'_>, pattern: Operand) -> (Operand, Operand) {
        let (zero, one) = (Operand::i32(0), Operand::i32(1));
        let some = k.compare(IntCmp::Le, zero, pattern);
        let odd = k.int(IntOp::And, pattern, one);
        let partial = k.compare(IntCmp::Ne, odd, zero);
        let none = k.int(IntOp::And, partial, self.within);
        let here = k.int(IntOp::Xor, none, Operand::int(Type::I1, 1));
        let has = k.int(IntOp::And, some, here);
        let first = k.int(IntOp::Right, pattern, one);
        let [whole, other] = self.words;
        let by = k.choose(partial, other, whole);
        (has, k.int(IntOp::Add, first, by))
    }
}

impl Correction {
    /// Whether the rows of a period are far from faces across the first two axes, and have the same pattern if they are
    /// in the region.
    pub fn are_alike(&self, context: &Context<'_>, rows: &Rows<'_>) -> bool {
        self.far_rows == FarRows::Alike && Faces::of(context, rows.places) == Faces::Far
    }

    fn place_along(&self, k: &mut Kernel<'_>, z: Operand) -> Along {
        let (along, Range { lo, len }) = (self.source_box.inner(), self.hole);
        let thread = k.int(IntOp::Add, z, along.lo);
        let from = k.int(IntOp::Sub, thread, lo);
        let within = k.compare(IntCmp::Below, from, len);
        let below = k.compare(IntCmp::Lt, from, Operand::i32(0));
        let left_out = k.choose(below, Operand::i32(0), len);
        let word = k.int(IntOp::Sub, z, left_out);
        Along {
            within,
            words: [z, word],
        }
    }

    /// Finds the waves of the thread in some rows, and calls `body` with them if there may be some.
    fn find(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        rows: &Rows<'_>,
        at: Within,
        places: &[RowPlace],
        body: impl FnOnce(&mut Kernel<'_>, Vec<Found>),
    ) {
        if self.are_alike(context, rows) {
            let words = self.words_far(k, at, places);
            let found = self.waves_of(k, context, rows, at, places, words);
            body(k, found);
            return;
        }
        let along = self.place_along(k, at.z);
        let patterns = self.patterns(k, places);
        let mut any = Operand::int(Type::I1, 0);
        let numbers = patterns.into_iter().map(|(inside, pattern)| {
            let (has, number) = along.of(k, pattern);
            let has = k.int(IntOp::And, inside, has);
            any = k.int(IntOp::Or, any, has);
            (has, number)
        });
        let numbers: Vec<(Operand, Operand)> = numbers.collect();
        k.when(any, |k| {
            let words = self.words_of(k, numbers);
            let found = self.waves_of(k, context, rows, at, places, words);
            body(k, found);
        });
    }

    /// Whether the threads of a warp find the patterns of rows together: in interior periods that may be near faces.
    pub fn finds_by_lanes(&self, context: &Context<'_>, rows: &Rows<'_>) -> bool {
        let interior = matches!(rows.places, Places::Interior { .. });
        interior && !self.are_alike(context, rows)
    }

    /// The pattern of one of some rows of an interior period, as many as a warp has lanes at most: a row for each lane.
    /// It is the least word where the row has none.
    pub fn pattern_of_lane(
        &self,
        k: &mut Kernel<'_>,
        at: [Operand; 2],
        rows: &[RowUpdate],
    ) -> Operand {
        let half = Operand::i32(16);
        let pair = |row: &RowUpdate| {
            let Group { x, y } = row.at;
            Operand::i32((x as i32) << 16 | y as i32 & 0xffff)
        };
        let lane = k.special(Special::Lane);
        let mut own = Operand::i32(0);
        for (n, row) in rows.iter().enumerate() {
            let mine = k.compare(IntCmp::Le, Operand::i32(n as i32), lane);
            own = k.choose(mine, pair(row), own);
        }
        let x = k.int(IntOp::RightSigned, own, half);
        let y = k.int(IntOp::Left, own, half);
        let y = k.int(IntOp::RightSigned, y, half);
        let at = [k.int(IntOp::Add, at[0], x), k.int(IntOp::Add, at[1], y)];
        let place = RowPlace {
            at,
            plane: at[0],
            inside: Operand::int(Type::I1, 1),
        };
        let none = Operand::i32(i32::MIN);
        let patterns = self.patterns(k, &[place]).into_iter();
        patterns.fold(none, |none, (inside, pattern)| {
            let some = k.compare(IntCmp::Le, Operand::i32(0), pattern);
            let some = k.int(IntOp::And, inside, some);
            k.choose(some, pattern, none)
        })
    }

    /// The number of a thread's word by the pattern of each row, negative where it has none.
    fn numbers_by(&self, k: &mut Kernel<'_>, z: Operand, patterns: Vec<Operand>) -> Vec<Operand> {
        let (along, Range { lo, len }) = (self.source_box.inner(), self.hole);
        let (zero, one) = (Operand::i32(0), Operand::i32(1));
        let thread = k.int(IntOp::Add, z, along.lo);
        let from = k.int(IntOp::Sub, thread, lo);
        // The words that a row without words for the hole lacks before the thread's; no word is there within the hole.
        let within = k.compare(IntCmp::Below, from, len);
        let below = k.compare(IntCmp::Lt, from, zero);
        let less = k.choose(below, zero, len);
        let less = k.choose(within, Operand::i32(FAR_AWAY), less);
        let more = k.int(IntOp::Sub, zero, less);
        let numbers = patterns.into_iter().map(|pattern| {
            let partial = k.int(IntOp::And, pattern, one);
            let first = k.int(IntOp::RightSigned, pattern, one);
            let whole = k.int(IntOp::Add, first, z);
            let by = k.int(IntOp::Mul, partial, more);
            k.int(IntOp::Add, whole, by)
        });
        numbers.collect()
    }

    /// Adds to the values of rows whose patterns are known.
    pub fn correct_by(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        rows: &Rows<'_>,
        at: Within,
        patterns: Vec<Operand>,
        variables: &[Variable],
    ) {
        let Places::Interior {
            rows: own, words, ..
        } = rows.places
        else {
            // Rows of boundary periods have no patterns.
            return;
        };
        let zero = Operand::i32(0);
        let numbers = self.numbers_by(k, at.z, patterns);
        let any = any_is_there(k, &numbers);
        k.when(any, |k| {
            let known = numbers.iter().map(|number| {
                let there = k.int(IntOp::Max, *number, zero);
                self.word(k, there)
            });
            let known: Vec<Operand> = known.collect();
            let known = numbers.iter().zip(known).map(|(number, word)| {
                let least = k.int(IntOp::Or, *number, word);
                (k.compare(IntCmp::Le, zero, least), word)
            });
            let known = known.collect();
            let origin = origin(k, context, at.period, words);
            // There are no registers to keep numbers of rows in.
            let strides = self.shifts.map(|stride| k.again(stride));
            let shift = self.shift(k, origin);
            let base = self.word(k, Operand::i32(CorrectionTable::BASE));
            let first = k.int(IntOp::Add, shift, base);
            let shifts = own.iter().map(|row| {
                let mut shift = first;
                for (by, stride) in row.at.array().into_iter().zip(strides) {
                    let by = k.int(IntOp::Mul, Operand::i32(by as i32), stride);
                    shift = k.int(IntOp::Add, shift, by);
                }
                shift
            });
            let shifts = shifts.collect();
            let found = self.waves_at(k, context, rows, at, shifts, known);
            self.add_found(k, context, found, variables);
        });
    }

    /// Where the waves lie whose words the thread has.
    fn waves_of(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        rows: &Rows<'_>,
        at: Within,
        places: &[RowPlace],
        words: Vec<(Operand, Operand)>,
    ) -> Vec<Found> {
        let base = self.word(k, Operand::i32(CorrectionTable::BASE));
        let shifts = places.iter().map(|place| {
            let shift = self.shift(k, place.at);
            k.int(IntOp::Add, shift, base)
        });
        let shifts = shifts.collect();
        self.waves_at(k, context, rows, at, shifts, words)
    }

    /// The same, by `shifts`: the number of a wave in each row, less the row's word.
    fn waves_at(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        rows: &Rows<'_>,
        at: Within,
        shifts: Vec<Operand>,
        words: Vec<(Operand, Operand)>,
    ) -> Vec<Found> {
        let step = rows.step(k, context, at);
        let step = k.resize(step, Type::I64);
        let bytes = k.resize(k.param(TowerParams::WAVE_BYTES), Type::I64);
        let by = k.int(IntOp::Mul, step, bytes);
        let waves = k.advance(k.param(TowerParams::WAVES), by, 1);
        let zero = Operand::i32(0);
        let found = words.into_iter().zip(shifts).map(|((has, word), shift)| {
            let number = k.int(IntOp::Add, word, shift);
            let number = k.choose(has, number, zero);
            // Else LLVM chooses among numbers of 64 bits.
            let number = k.again(number);
            let number = k.resize(number, Type::I64);
            let wave = k.advance(waves, number, 8);
            Found { has, wave }
        });
        found.collect()
    }

    /// The patterns of some rows, each with whether the row is in the region and the thread has something to do there.
    ///
    /// Of rows beside the region it is that of another row. Rows with the same index along an axis have one class
    /// there.
    fn patterns(&self, k: &mut Kernel<'_>, places: &[RowPlace]) -> Vec<(Operand, Operand)> {
        let (zero, head) = (Operand::i32(0), Operand::i32(CorrectionTable::HEAD));
        let SourceBox(ranges) = self.source_box;
        let [xs, ..] = ranges;
        let middle = k.int(IntOp::Add, head, xs.len);
        let of_rows = places.iter().map(|place| {
            let inside = self.source_box.has(k, *place);
            let mut classes = zero;
            for ((at, range), begin) in place.at.into_iter().zip(ranges).zip([head, middle]) {
                let last = k.int(IntOp::Sub, range.len, Operand::i32(1));
                let from = k.int(IntOp::Sub, at, range.lo);
                let from = k.int(IntOp::Max, from, zero);
                let from = k.int(IntOp::Min, from, last);
                let number = k.int(IntOp::Add, from, begin);
                let class = self.word(k, number);
                classes = k.int(IntOp::Add, classes, class);
            }
            (inside, classes)
        });
        let of_rows: Vec<(Operand, Operand)> = of_rows.collect();
        let patterns = of_rows.into_iter().map(|(inside, classes)| {
            let pattern = self.word(k, classes);
            (inside, pattern)
        });
        patterns.collect()
    }

    /// The thread's own words of some rows, each with whether there is a wave: by numbers of words, if they are there.
    ///
    /// Words that are not there are the first ones of their kind, which are.
    fn words_of(
        &self,
        k: &mut Kernel<'_>,
        numbers: Vec<(Operand, Operand)>,
    ) -> Vec<(Operand, Operand)> {
        let zero = Operand::i32(0);
        let words = numbers.into_iter().map(|(has, number)| {
            let number = k.choose(has, number, zero);
            (has, self.word(k, number))
        });
        let words: Vec<(Operand, Operand)> = words.collect();
        let some = words.into_iter().map(|(has, word)| {
            let some = k.compare(IntCmp::Le, zero, word);
            (k.int(IntOp::And, has, some), word)
        });
        some.collect()
    }

    /// The same where all rows are in the region and far from faces across the first two axes, and have the same
    /// pattern.
    fn words_far(
        &self,
        k: &mut Kernel<'_>,
        at: Within,
        places: &[RowPlace],
    ) -> Vec<(Operand, Operand)> {
        let zero = Operand::i32(0);
        let along = self.place_along(k, at.z);
        let pattern = self.word(k, Operand::i32(CorrectionTable::FAR));
        let (has, number) = along.of(k, pattern);
        let number = k.choose(has, number, zero);
        let word = self.word(k, number);
        let some = k.compare(IntCmp::Le, zero, word);
        let has = k.int(IntOp::And, has, some);
        vec![(has, word); places.len()]
    }

    /// Adds to the values of some rows.
    pub fn correct(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        rows: &Rows<'_>,
        at: Within,
        places: &[RowPlace],
        variables: &[Variable],
    ) {
        self.find(k, context, rows, at, places, |k, found| {
            self.add_found(k, context, found, variables);
        });
    }

    fn add_found(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        found: Vec<Found>,
        variables: &[Variable],
    ) {
        let double = Type::scalar(Precision::F64);
        let waves = found
            .iter()
            .map(|found| k.load(double, found.wave, 8, Access::ReadOnly));
        let waves: Vec<Operand> = waves.collect();
        for ((found, wave), variable) in found.iter().zip(waves).zip(variables) {
            let added = k.convert(wave, context.real);
            let before = k.get(*variable);
            let after = k.sum(before, added);
            let after = k.choose(found.has, after, before);
            k.set(*variable, after);
        }
    }

    /// Prefetches the waves that will be added to some rows.
    pub fn prefetch_waves(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        rows: &Rows<'_>,
        at: Within,
        places: &[RowPlace],
    ) {
        self.find(k, context, rows, at, places, |k, found| {
            for found in found {
                k.prefetch_if(found.has, found.wave);
            }
        });
    }
}
