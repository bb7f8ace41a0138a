//! Volume sources: the parameters of a kernel for the box, the profiles and the wave of each.

use super::Argument;
use crate::backend::gpu::ir::Type;
use crate::incident::{CorrectedRows, RowPlace};
use crate::lattice::{Axis, Interval, PerAxis, Region};
use std::collections::HashMap;
use std::hash::Hash;

/// The values to which a volume source adds, and its profile and wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeBox {
    /// Within the region of the update.
    pub region: Region,
    /// From a profile to the next one along an axis, in numbers of double precision from that of the region's first
    /// index; all 0 where it is the same everywhere. NaN where the source does not act.
    pub stride: PerAxis<i32>,
    /// Which of the step's waves.
    pub wave: u32,
}

/// The corrections of an update in a box, as threads find them, in words of one table.
///
/// The first word is the number that all places add to their waves' numbers. The second word is the pattern of rows far
/// from faces across the first two axes, if all such rows have the same one. For these rows, two words give the
/// distance of a place's number from its index along the inner axis, below the hole and above it. One word more gives
/// the position of the words of their places: for each place the number of its wave less the row's shift, or
/// [`CorrectionTable::NONE`]. Rows at indices along the outer axis that have the same patterns are of one *class*; the
/// same holds along the middle axis. A word for each index of the region along the outer axis follows, the place of the
/// patterns of its class, then a word for each index along the middle axis, the number of its class, then the pattern
/// of each pair of classes, then patterns.
///
/// A pattern is negative where there are no corrections; otherwise it is twice its place in the table, and one more if
/// it has no words for the hole. It has a word for each index of the region along the inner axis: the number of the
/// wave less the first word and the row's shift, negative where there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorrectionTable {
    pub words: Vec<i32>,
    pub region: Region,
    /// The inside of the box along the inner axis, in which rows far from faces have no corrections.
    pub hole: Interval,
    /// By which the waves of a row move with its index along the outer and the middle axis.
    shift: [i32; 2],
}

/// Rows of the same patterns along an axis: the class of each index, and an index of each class.
struct Classes {
    of: Vec<usize>,
    first: Vec<usize>,
}

impl Classes {
    /// Indices with equal keys are of one class.
    fn new<K: Eq + Hash>(keys: impl Iterator<Item = K>) -> Classes {
        let mut known = HashMap::new();
        let (mut of, mut first) = (Vec::new(), Vec::new());
        for (index, key) in keys.enumerate() {
            let class = *known.entry(key).or_insert(first.len());
            if class == first.len() {
                first.push(index);
            }
            of.push(class);
        }
        Classes { of, first }
    }
}

impl CorrectionTable {
    /// Where the number that all places add lies.
    pub const BASE: i32 = 0;
    /// Where the pattern of rows far from faces lies.
    pub const FAR: i32 = 1;
    /// Where the distance of places below the hole from their indices lies.
    pub const BELOW: i32 = 2;
    /// Where the distance of places above the hole from their indices lies.
    pub const ABOVE: i32 = 3;
    /// Where the words of places are.
    pub const PLACES: i32 = 4;
    /// Words before the words of indices.
    pub const HEAD: i32 = 5;
    /// No wave.
    pub const NONE: i32 = i32::MIN;

    fn word(&self, number: i64) -> i32 {
        self.words[number as usize]
    }

    /// The pattern of a row of the region, if it has corrections, and by which its waves move.
    pub fn row(&self, [x, y]: [i64; 2]) -> Option<[i32; 2]> {
        let [xs, ys] = [Axis::OUTER, Axis::MIDDLE].map(|axis| self.region[axis]);
        let head = i64::from(CorrectionTable::HEAD);
        let patterns = self.word(head + x - xs.lo);
        let class = self.word(head + xs.len() + y - ys.lo);
        let pattern = self.word(i64::from(patterns) + i64::from(class));
        let [by_x, by_y] = self.shift.map(i64::from);
        let shift = by_x * x + by_y * y + i64::from(self.word(CorrectionTable::BASE.into()));
        (pattern >= 0).then_some([pattern, shift as i32])
    }

    /// As kernels read it.
    pub fn bytes(&self) -> Vec<u8> {
        self.words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    /// Waves are counted from a number on; `None` where there are too many words, or numbers are too large.
    /// `places`: the indices along the inner axis at which rows far from faces are corrected, ascending.
    pub fn new(rows: &CorrectedRows, first: usize, places: &[i64]) -> Option<CorrectionTable> {
        let (region, hole) = (rows.region, rows.hole);
        let word = |n: i64| i32::try_from(n).ok();
        let [xs, ys, along] = region.0;
        let of_rows = rows.of_rows();
        let columns = ys.len().max(1) as usize;
        let by_x = Classes::new(of_rows.chunks(columns));
        let column = |y: usize| {
            let of_class = by_x.first.iter().map(|x| of_rows[x * columns + y]);
            of_class.collect::<Vec<_>>()
        };
        let by_y = Classes::new((0..ys.len() as usize).map(column));
        let head = i64::from(CorrectionTable::HEAD) + xs.len() + ys.len();
        let pairs = by_x.first.len() as i64 * by_y.first.len() as i64;

        let mut starts = Vec::new();
        let mut patterns: Vec<i32> = Vec::new();
        // Waves that are counted from a shift may have negative numbers.
        let least = rows.patterns().iter().flatten().map(|place| place.wave);
        let least = least.min().unwrap_or(0).min(0);
        let mut most = 0;
        for pattern in rows.patterns() {
            let whole = pattern.iter().any(|place| hole.contains(place.z));
            let left_out = if whole { Interval::new(0, 0) } else { hole };
            let start = word((head + pairs + patterns.len() as i64).checked_mul(2)?)?;
            starts.push(start.checked_add(i32::from(!whole))?);
            let mut places = pattern.iter().peekable();
            for z in (along.lo..along.hi).filter(|z| !left_out.contains(*z)) {
                let place = places.next_if(|place| place.z == z);
                most = most.max(place.map_or(0, |place| place.wave - least));
                patterns.push(place.map_or(Some(-1), |place| word(place.wave - least))?);
            }
        }
        // Twice the place of any word is one.
        word((head + pairs + patterns.len() as i64).checked_mul(2)?)?;
        let base = least + i64::try_from(first).ok()?;
        for x in [xs.lo, xs.hi] {
            for y in [ys.lo, ys.hi] {
                word(rows.shift([x, y]) + base + most)?;
            }
        }
        let start = |pattern: Option<usize>| pattern.map_or(-1, |pattern| starts[pattern]);
        let far = rows.far_pattern().flatten();
        let mut words = Vec::with_capacity((head + pairs) as usize + patterns.len());
        words.extend([word(base)?, start(far)]);
        for z in [along.lo, hole.hi] {
            let number = places.iter().position(|place| *place == z);
            words.push(number.map_or(Some(0), |number| word(z - number as i64))?);
        }
        words.push(word(head + pairs + patterns.len() as i64)?);
        for class in &by_x.of {
            words.push(word(head + (*class * by_y.first.len()) as i64)?);
        }
        for class in &by_y.of {
            words.push(word(*class as i64)?);
        }
        for x in &by_x.first {
            let of_class = by_y.first.iter().map(|y| of_rows[x * columns + y]);
            words.extend(of_class.map(start));
        }
        words.extend(patterns);
        let far = far.map_or(&[][..], |pattern| &rows.patterns()[pattern]);
        for z in places {
            let place = far.iter().find(|place| place.z == *z);
            let wave = |place: &RowPlace| word(place.wave + first as i64);
            words.push(place.map_or(Some(CorrectionTable::NONE), wave)?);
        }
        let [by_x, by_y] = rows.shifts();
        Some(CorrectionTable {
            words,
            region,
            hole,
            shift: [word(by_x)?, word(by_y)?],
        })
    }

    /// The parameters of the volume source that it is for, with a table at a place.
    pub fn params(&self, table: u64) -> Option<VolumeParams> {
        let hole = i32::try_from(self.hole.lo).ok()?;
        let length = i32::try_from(self.hole.len()).ok()?;
        let volume = VolumeBox {
            region: self.region,
            stride: PerAxis::splat(0),
            wave: 0,
        };
        let mut params = VolumeParams::new(table, &volume)?;
        let mut set = |number: usize, word: i32| params.words[number - 1] = word;
        for (axis, by) in self.shift.into_iter().enumerate() {
            set(CorrectionParams::shift(axis), by);
        }
        set(CorrectionParams::HOLE, hole);
        set(CorrectionParams::HOLE_LENGTH, length);
        Some(params)
    }
}

/// The parameters of a volume source: where its profiles lie, for each axis three words, and one for the wave. The
/// words of corrections mean something else ([`CorrectionParams`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeParams {
    /// Where the profiles lie, or the table of corrections.
    pub data: u64,
    words: [i32; VolumeParams::WORDS],
}

impl VolumeParams {
    const WORDS: usize = 3 * Axis::ALL.len() + 1;
    /// How many there are.
    pub const COUNT: usize = 1 + VolumeParams::WORDS;
    /// Their numbers: of the profiles; of an axis, the first index, the length and the stride; of the wave's offset in
    /// bytes.
    pub const PROFILES: usize = 0;
    pub const WAVE: usize = VolumeParams::COUNT - 1;

    pub const fn lo(axis: usize) -> usize {
        1 + 3 * axis
    }

    pub const fn len(axis: usize) -> usize {
        2 + 3 * axis
    }

    pub const fn stride(axis: usize) -> usize {
        3 + 3 * axis
    }

    /// `None` where indices are too large.
    pub fn new(data: u64, volume: &VolumeBox) -> Option<VolumeParams> {
        let mut words = [0; VolumeParams::WORDS];
        for (n, axis) in Axis::ALL.into_iter().enumerate() {
            let range = volume.region[axis];
            words[VolumeParams::lo(n) - 1] = i32::try_from(range.lo).ok()?;
            words[VolumeParams::len(n) - 1] = i32::try_from(range.len()).ok()?;
            words[VolumeParams::stride(n) - 1] = volume.stride[axis];
        }
        words[VolumeParams::WAVE - 1] = i32::try_from(volume.wave).ok()?.checked_mul(8)?;
        Some(VolumeParams { data, words })
    }

    pub fn types() -> impl Iterator<Item = Type> {
        std::iter::once(Type::GLOBAL).chain([Type::I32; VolumeParams::WORDS])
    }

    pub fn arguments(&self) -> impl Iterator<Item = Argument> + use<> {
        let data = std::iter::once(Argument::Place(self.data));
        data.chain(self.words.map(Argument::Word))
    }
}

/// The numbers of the parameters of corrections, besides the indices and lengths of [`VolumeParams`].
pub struct CorrectionParams;

impl CorrectionParams {
    /// The [`CorrectionTable`].
    pub const TABLE: usize = VolumeParams::PROFILES;
    /// Where the hole begins, along the inner axis.
    pub const HOLE: usize = VolumeParams::stride(2);
    pub const HOLE_LENGTH: usize = VolumeParams::WAVE;

    /// By how much the numbers of waves move with a row's index along the outer or the middle axis.
    pub const fn shift(axis: usize) -> usize {
        VolumeParams::stride(axis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostExpr;
    use crate::incident::{Corrections, FarRows, alike_places, corrected_updates};
    use crate::problem::{Drive, Incident, IncidentField, PlaneWave, Problem, TotalBox};
    use crate::scheme::{Boundary, Precision, Scheme};
    use crate::statics::NoFiles;
    use crate::testing::{bounded, maxwell};

    fn with_wave(scheme: &Scheme, direction: [i64; 3], ends: [[i64; 2]; 3]) -> Problem {
        let drive = Drive {
            component: scheme.stages[1].updates[1].target,
            wave: HostExpr::Time,
        };
        let incident = Incident {
            name: "wave".to_owned(),
            field: IncidentField::Plane(PlaneWave {
                direction: PerAxis(direction),
                drives: vec![drive],
                loss: 0.0,
            }),
            boxes: vec![TotalBox {
                ends: PerAxis(ends),
            }],
        };
        Problem {
            incidents: vec![incident],
            ..Problem::default()
        }
    }

    /// The waves of a row as a thread finds them from a pattern.
    fn waves(table: &CorrectionTable, pattern: i32, shift: i32) -> Vec<(i64, u32)> {
        let along = table.region[Axis::INNER];
        let partial = pattern & 1 == 1;
        let indices = (along.lo..along.hi).filter(|z| !(partial && table.hole.contains(*z)));
        let words = table.words[(pattern >> 1) as usize..].iter();
        let some = indices.zip(words).filter(|(_, word)| **word >= 0);
        some.map(|(z, word)| (z, (word + shift) as u32)).collect()
    }

    /// Each row of a table has the waves of its corrections; alike rows have the pattern of rows far from faces.
    #[test]
    fn tables_have_the_waves_of_rows() {
        let (open, ring) = ([Boundary::Zero; 2], [Boundary::Periodic; 2]);
        let scheme = |sides| bounded(maxwell(4, Precision::F64, [25, 26, 24]), sides);
        let cases = [
            (
                scheme([open; 3]),
                [1, 2, -3],
                [[5, 20], [6, 21], [5, 19]],
                true,
            ),
            (
                scheme([open, ring, open]),
                [2, 0, 1],
                [[5, 20], [0, 26], [5, 19]],
                true,
            ),
            // Rows near a mirror read mirrored values; a box without a hole has no rows far from faces.
            (
                scheme([[Boundary::Pmc; 2], ring, open]),
                [0, 0, 1],
                [[0, 20], [0, 26], [5, 19]],
                false,
            ),
            (
                scheme([open; 3]),
                [1, 1, 1],
                [[5, 20], [6, 21], [9, 11]],
                false,
            ),
        ];
        for (scheme, direction, ends, alike) in cases {
            let problem = with_wave(&scheme, direction, ends);
            let corrections = Corrections::new(&scheme, &problem, &NoFiles).expect("a wave");
            let updates = corrected_updates(&scheme, &problem);
            let places = alike_places(&updates);
            assert_eq!(updates.len(), corrections.rows.len());
            for (rows, update) in corrections.rows.iter().zip(&updates) {
                let first = 7;
                let table = CorrectionTable::new(rows, first, &places).expect("a small box");
                assert_eq!(update.far_rows != FarRows::Various, alike);
                let far = table.words[CorrectionTable::FAR as usize];
                let [xs, ys, _] = rows.region.0;
                for at in (xs.lo..xs.hi).flat_map(|x| (ys.lo..ys.hi).map(move |y| [x, y])) {
                    let expected = rows.row(at).map(|(z, wave)| (z, wave + first as u32));
                    let expected: Vec<(i64, u32)> = expected.collect();
                    let row = table.row(at);
                    let found = row.map(|[pattern, shift]| waves(&table, pattern, shift));
                    assert_eq!(found.unwrap_or_default(), expected, "{at:?}");
                    if alike && rows.is_far(at) {
                        assert_eq!(row.map_or(-1, |[pattern, _]| pattern), far, "{at:?}");
                    }
                }
            }
        }
    }
}
