//! Volume sources: what a kernel is told of the box, the profiles and the wave of each.

use super::Argument;
use crate::backend::gpu::ir::Type;
use crate::incident::CorrectedRows;
use crate::lattice::{Axis, Interval, PerAxis, Region};

/// Where a volume source adds, and what.
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

/// The corrections of an update in a box, as threads find them: for each row of the region, the middle axis fastest,
/// two words, then patterns.
///
/// The first word of a row is negative where it has no corrections; otherwise it is twice the place of its pattern in
/// the table, and one more if the pattern has no words for the hole. The second one is the row's shift. A pattern has a
/// word for each index of the region along the inner axis: the number of the wave less the shift, negative where there
/// is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorrectionTable {
    pub words: Vec<i32>,
    pub region: Region,
    pub hole: Interval,
}

impl CorrectionTable {
    /// The words of a row of the region, if it has corrections: its pattern and its shift.
    pub fn row(&self, [x, y]: [i64; 2]) -> Option<[i32; 2]> {
        let [xs, ys] = [Axis::OUTER, Axis::MIDDLE].map(|axis| self.region[axis]);
        let number = 2 * ((x - xs.lo) * ys.len() + y - ys.lo) as usize;
        let words = [self.words[number], self.words[number + 1]];
        (words[0] >= 0).then_some(words)
    }

    /// As kernels read it.
    pub fn bytes(&self) -> Vec<u8> {
        self.words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    /// Waves are counted from a number on; `None` where there are too many words, or numbers are too large.
    pub fn new(rows: &CorrectedRows, first: usize) -> Option<CorrectionTable> {
        let (region, hole) = (rows.region, rows.hole);
        let word = |n: i64| i32::try_from(n).ok();
        let of_rows = 2 * region[Axis::OUTER].len() * region[Axis::MIDDLE].len();
        let along = region[Axis::INNER];
        let mut starts = Vec::new();
        let mut patterns: Vec<i32> = Vec::new();
        // Waves that are counted from a shift may have negative numbers.
        let least = rows.patterns().iter().flatten().map(|place| place.wave);
        let least = least.min().unwrap_or(0).min(0);
        for pattern in rows.patterns() {
            let whole = pattern.iter().any(|place| hole.contains(place.z));
            let left_out = if whole { Interval::new(0, 0) } else { hole };
            let start = word((of_rows + patterns.len() as i64).checked_mul(2)?)?;
            starts.push(start.checked_add(i32::from(!whole))?);
            let mut places = pattern.iter().peekable();
            for z in (along.lo..along.hi).filter(|z| !left_out.contains(*z)) {
                patterns.push(match places.next_if(|place| place.z == z) {
                    Some(place) => word(place.wave - least)?,
                    None => -1,
                });
            }
        }
        let first = i64::try_from(first).ok()?;
        let mut words = Vec::with_capacity(of_rows as usize + patterns.len());
        let [xs, ys] = [Axis::OUTER, Axis::MIDDLE].map(|axis| region[axis]);
        for row in (xs.lo..xs.hi).flat_map(|x| (ys.lo..ys.hi).map(move |y| [x, y])) {
            let start = rows.pattern(row).map_or(-1, |pattern| starts[pattern]);
            words.extend([start, word(rows.shift(row) + least + first)?]);
        }
        words.extend(patterns);
        Some(CorrectionTable {
            words,
            region,
            hole,
        })
    }

    /// The parameters of the volume source that it is for, with a table at a place.
    pub fn params(&self, table: u64) -> Option<VolumeParams> {
        let columns = i32::try_from(self.region[Axis::MIDDLE].len()).ok()?;
        let between = columns.checked_mul(2)?;
        let hole = i32::try_from(self.hole.lo).ok()?;
        let volume = VolumeBox {
            region: self.region,
            stride: PerAxis([between, 2, hole]),
            wave: 0,
        };
        let mut params = VolumeParams::new(table, &volume)?;
        params.words[VolumeParams::WAVE - 1] = i32::try_from(self.hole.len()).ok()?;
        Some(params)
    }
}

/// The parameters of a volume source: where its profiles lie, for each axis three words, and one for the wave.
///
/// Of corrections there is a [`CorrectionTable`] instead; the stride of the inner axis is where the hole begins, and
/// the word of the wave how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeParams {
    pub profiles: u64,
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
    pub fn new(profiles: u64, volume: &VolumeBox) -> Option<VolumeParams> {
        let mut words = [0; VolumeParams::WORDS];
        for (n, axis) in Axis::ALL.into_iter().enumerate() {
            let range = volume.region[axis];
            words[VolumeParams::lo(n) - 1] = i32::try_from(range.lo).ok()?;
            words[VolumeParams::len(n) - 1] = i32::try_from(range.len()).ok()?;
            words[VolumeParams::stride(n) - 1] = volume.stride[axis];
        }
        words[VolumeParams::WAVE - 1] = i32::try_from(volume.wave).ok()?.checked_mul(8)?;
        Some(VolumeParams { profiles, words })
    }

    pub fn types() -> impl Iterator<Item = Type> {
        std::iter::once(Type::GLOBAL).chain([Type::I32; VolumeParams::WORDS])
    }

    pub fn arguments(&self) -> impl Iterator<Item = Argument> + use<> {
        let profiles = std::iter::once(Argument::Place(self.profiles));
        profiles.chain(self.words.map(Argument::Word))
    }
}
