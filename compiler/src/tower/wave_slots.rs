//! Slots of shared memory for the corrections of rows far from faces of boxes of total fields.
//!
//! Threads near the faces across the inner axis add a wave to each such row. Waves are copied to shared memory while
//! the stage before runs, as entering rows are, so that no thread that computes waits for memory, nor looks for them.
//! There they lie in *slots*: one for each row of a period and each source that adds to it, with a wave for each
//! *place*, which is an index along the inner axis near a face.

use super::allocate::{Allocation, StageAllocation};
use super::residency::{RowUpdate, StageAt};
use super::volume_source::VolumeSource;
use crate::scheme::Scheme;

/// The slots of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaveSlots {
    /// Indices along the inner axis at which rows far from faces are corrected.
    pub places: u32,
    /// Sources whose waves are copied.
    pub sources: u32,
    /// Slots of the alignment that has most.
    pub slots: u32,
}

/// Waves that are copied for a row. The waves of its sources have consecutive slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaveCopy {
    pub row: RowUpdate,
    pub slot: usize,
}

/// Bytes of a wave.
pub const WAVE: u32 = 8;
/// Bytes of the word of a place for a source.
const WORD: u32 = 4;
/// Words of a source besides the words of places.
pub const BESIDE: u32 = 2;
/// Sources of which a thread can know in a word, next to its place, whether they have waves for it.
const MOST_SOURCES: u32 = 16;
/// Numbers of places that fit into such a word.
const MOST_PLACES: u32 = 1 << 15;

/// The waves that the sources need in a stage of a period, in slots from `slot` on.
pub(super) fn wave_copies(
    scheme: &Scheme,
    number: usize,
    allocation: &StageAllocation,
    sources: &[VolumeSource],
    mut slot: usize,
) -> Vec<WaveCopy> {
    let stage = StageAt::new(scheme, number as i64);
    let mut copies = Vec::new();
    for row in &allocation.updates {
        let component = stage.updates(scheme)[row.update].target;
        let own = sources.iter();
        let own = own.filter(|s| s.is_copied() && s.is_after(stage.stage, component));
        let count = own.count();
        if count > 0 {
            copies.push(WaveCopy { row: *row, slot });
            slot += count;
        }
    }
    copies
}

impl WaveSlots {
    /// `None` where no waves can be copied. A stage's waves are copied while the one before runs, so there have to be
    /// two in a period.
    pub(super) fn new(
        scheme: &Scheme,
        allocations: &[Allocation],
        sources: &[VolumeSource],
        places: u32,
    ) -> Option<WaveSlots> {
        let copied = || sources.iter().filter(|source| source.is_copied());
        let of_stage = |number: usize, allocation: &Allocation| {
            let stage = StageAt::new(scheme, number as i64);
            let rows = allocation.stages[number].updates.iter();
            let sources = rows.map(|row| {
                let component = stage.updates(scheme)[row.update].target;
                let after = copied().filter(|source| source.is_after(stage.stage, component));
                after.count()
            });
            sources.sum::<usize>()
        };
        let of_period = |allocation: &Allocation| {
            let stages = 0..allocation.stages.len();
            stages.map(|n| of_stage(n, allocation)).sum::<usize>()
        };
        let slots = allocations.iter().map(of_period).max().unwrap_or(0);
        let count = copied().count() as u32;
        let several = allocations.iter().all(|a| a.stages.len() > 1);
        let some = slots > 0 && places > 0 && several;
        let few = count <= MOST_SOURCES && places < MOST_PLACES;
        (some && few).then_some(WaveSlots {
            places,
            sources: count,
            slots: u32::try_from(slots).ok()?,
        })
    }

    /// Bytes of the slots, and of the words of each place.
    pub fn bytes(&self) -> u32 {
        let slots = self.slots.saturating_mul(self.places).saturating_mul(WAVE);
        let words = self.sources.saturating_mul(self.places + BESIDE);
        let words = words.saturating_mul(WORD).next_multiple_of(WAVE);
        slots.saturating_add(words)
    }

    /// From the first slot to the wave of the first place in another one, in bytes.
    pub fn slot(&self, number: usize) -> i64 {
        number as i64 * i64::from(self.places * WAVE)
    }

    /// From the first slot to the words of a source, by its number among the sources whose waves are copied.
    pub fn words(&self, number: usize) -> i64 {
        let each = i64::from((self.places + BESIDE) * WORD);
        self.slot(self.slots as usize) + number as i64 * each
    }
}
