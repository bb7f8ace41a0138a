//! The lanes of a line: the indices of a launch, and the indices with a part in a stage.

use crate::lattice::Interval;
use crate::tower::block::{Ends, ZBlock, ZBlocks};

#[derive(Clone, Copy)]
pub(super) struct Lanes<'a> {
    pub z_blocks: Option<&'a ZBlocks>,
    pub z_block: Option<ZBlock>,
    pub length: i64,
}

impl Lanes<'_> {
    fn all(&self) -> Interval {
        Interval::new(0, self.length)
    }

    /// The indices that have a lane.
    pub fn present(&self) -> Interval {
        match (self.z_blocks, self.z_block) {
            (Some(z_blocks), Some(z_block)) => {
                let base = i64::from(z_block.base);
                Interval::new(base, base + z_blocks.threads).intersect(self.all())
            }
            _ => self.all(),
        }
    }

    /// The indices with a part in some of these stages of the time block.
    pub fn active(&self, first: i64, last: i64) -> Interval {
        let (Some(z_blocks), Some(z_block)) = (self.z_blocks, self.z_block) else {
            return self.all();
        };
        let low = i64::from(z_block.low);
        let high = low + i64::from(z_block.width);
        Interval::new(low - z_blocks.lean(last), high - z_blocks.lean(first))
    }

    /// The indices between ends that are relative to the faces at the start of a period, whose first stage is given.
    pub fn between(&self, ends: Ends, start: i64) -> Interval {
        let (Some(z_blocks), Some(z_block)) = (self.z_blocks, self.z_block) else {
            return self.all();
        };
        let face = i64::from(z_block.low) - (z_blocks.lean(start) - z_blocks.lean(0));
        Interval::new(
            face - ends.lower,
            face + i64::from(z_block.width) - ends.upper,
        )
    }
}
