//! How many tiles are visited to run a time block.

use super::TileProgram;
use crate::lattice::Interval;

/// Tiles of a time block that are visited in little time, whatever they hold.
const FEW: f64 = (1_u64 << 20) as f64;
/// Tiles for each cell and stage of a time block, at most: of more, nearly all are empty.
const PER_EVENT: f64 = 4.0;

impl TileProgram {
    /// Whether a run does not come to an end because of the number of tiles of a time block, nearly all of them empty.
    pub fn is_endless(&self) -> bool {
        let classes = self.stages.iter().flatten();
        let cells: f64 = classes.map(|class| class.region.volume() as f64).sum();
        let events = cells * self.height as f64;
        self.visited() > FEW.max(PER_EVENT * events)
    }

    /// The tiles of a time block that are visited, empty ones included, about as many as there are around its middle.
    fn visited(&self) -> f64 {
        let height = i64::try_from(self.height).unwrap_or(i64::MAX);
        let numbers = Interval::new(0, height.saturating_mul(self.stages_per_step()));
        let mut tile = self.whole();
        let mut count = 1.0;
        for cuts in &self.levels {
            for cut in cuts {
                let indices = self.indices(&tile, *cut, numbers);
                count *= indices.len() as f64;
                self.narrow(&mut tile, *cut, indices.lo + indices.len() / 2);
            }
        }
        count
    }
}
