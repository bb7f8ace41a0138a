//! Passes of lower time blocks around a periodic first axis.
//!
//! A pass loads planes once more that its last block has written, which bounds the number of groups from one of its
//! blocks to the next. Lower blocks end after fewer groups than the highest blocks, and have as many groups from one to
//! the next. So some passes of lower blocks cannot be laid out although passes of as many of the highest blocks can.
//!
//! In windows without a ring a pass of lower blocks takes no more room than a pass of the highest blocks, but beside a
//! pass of other heights it may take a few planes more than planned. It begins after that one then.

use std::collections::BTreeMap;
use std::sync::Mutex;
use torre_compiler::layout::Layout;
use torre_compiler::pipeline::{Footprints, LaidOut, Window};
use torre_compiler::scheme::Scheme;

/// How many time blocks passes have around a ring, by the heights of their blocks.
pub(super) struct LowPasses {
    footprints: Footprints,
    window: Window,
    /// The greatest height.
    highest: u64,
    /// By the heights of the blocks that are wanted.
    known: BTreeMap<Vec<u64>, usize>,
}

impl LowPasses {
    /// For passes in a window in which passes of blocks of the greatest height can be laid out; `None` where it does
    /// not go around a ring.
    pub fn around(
        footprints: &Footprints,
        window: &Window,
        highest: u64,
    ) -> Option<Mutex<LowPasses>> {
        window.ring?;
        Some(Mutex::new(LowPasses {
            footprints: footprints.clone(),
            window: window.clone(),
            highest,
            known: BTreeMap::new(),
        }))
    }

    /// How many blocks the next pass has, of blocks of such heights: the most that can be laid out, one at least.
    pub fn blocks(&mut self, scheme: &Scheme, layout: &Layout, heights: &[u64]) -> usize {
        let high = heights.iter().all(|steps| *steps == self.highest);
        if high || heights.len() < 2 {
            return heights.len();
        }
        if let Some(known) = self.known.get(heights) {
            return *known;
        }
        let mut several = (2..=heights.len()).rev();
        let most = several.find(|count| self.fits(scheme, layout, &heights[..*count]));
        let most = most.unwrap_or(1);
        self.known.insert(heights.to_vec(), most);
        most
    }

    /// Whether passes of blocks of such heights can be laid out after passes of the highest ones, and after each other.
    fn fits(&mut self, scheme: &Scheme, layout: &Layout, heights: &[u64]) -> bool {
        let highest = vec![self.highest; self.window.in_flight];
        let mut of = |heights: &[u64]| self.footprints.pass(scheme, layout, heights);
        let Some((highest, low)) = of(&highest).zip(of(heights)) else {
            return false;
        };
        let devices = self.window.devices.max(1);
        let mut passes = vec![highest; devices];
        passes.resize(3 * devices, low);
        LaidOut::new(self.window.clone(), passes, self.footprints.way()).is_ok()
    }
}
