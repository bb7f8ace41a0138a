//! Volume sources: what a kernel is told of the box, the profiles and the wave of each.

use super::Argument;
use crate::backend::gpu::ir::Type;
use crate::lattice::{Axis, PerAxis, Region};

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

/// The parameters of a volume source: where its profiles lie, for each axis three words, and one for the wave.
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
