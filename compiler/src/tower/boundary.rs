//! Periods that ends of the grid cut: the rows of a tower, run in memory with a condition for each.
//!
//! The rows and stages are the same as in an interior period, with a barrier after each stage. A row that lies in the
//! region of its update is computed from memory and stored together with its ghosts. Ghosts along the inner axis are
//! left out where towers make them when they read them.

use super::group::Group;
use super::residency::{RowUpdate, StageAt, keeps_old};
use super::towers::Towers;
use super::width::Width;
use super::zones::{Memory, memory_of};
use crate::lattice::div_ceil;
use crate::scheme::{Amendment, Op, Scheme, Update};
use std::ops::Range;

/// The rows of all alignments, in one list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoundaryRows {
    /// Relative to the origin.
    pub rows: Vec<Group>,
    /// The widths that towers have, the usual one first.
    pub widths: Vec<Width>,
    /// Per alignment and stage of a period, the updates that have rows, in their order.
    pub periods: Vec<Vec<Vec<BoundaryUpdate>>>,
}

/// The rows of an update in a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundaryUpdate {
    pub update: usize,
    /// A range of the list for towers of each width.
    pub rows: Vec<Range<usize>>,
}

/// Words of constant memory, in which the list lies.
const MOST_WORDS: usize = 65536 / 4;
/// The most values that are loaded together, so that they are under way at the same time. As many rows are computed
/// together as this allows.
const AT_ONCE: usize = 108;
/// The same where rows are amended: blocks have more registers then.
const AT_ONCE_AMENDED: usize = 144;

/// Rows that are advanced together at most, by towers of one alignment, of several, and of several that run z blocks.
struct Most {
    one: usize,
    several: usize,
    in_z_blocks: usize,
}

const MOST_ROWS: Most = Most {
    one: 10,
    several: 10,
    in_z_blocks: 6,
};
/// The same where axes are periodic, so that more has to be known of each row.
const MOST_ON_RINGS: Most = Most {
    one: 8,
    several: 6,
    in_z_blocks: 4,
};

impl BoundaryRows {
    /// `None` where there are more rows than constant memory holds, or they lie too far from each other.
    pub fn new(towers: &Towers) -> Option<BoundaryRows> {
        let mut all = BoundaryRows {
            widths: towers.rings.widths(),
            ..BoundaryRows::default()
        };
        for (alignment, residency) in towers.alignments.iter().enumerate() {
            let mut stages = Vec::new();
            for (number, stage) in residency.stages.iter().enumerate() {
                let mut rows: Vec<RowUpdate> = stage.updates.clone();
                rows.sort_unstable_by_key(|row| (row.update, row.at));
                let of_updates = rows.chunk_by(|a, b| a.update == b.update);
                let mut updates = Vec::new();
                for rows in of_updates {
                    updates.push(all.of_update(towers, alignment, number, rows)?);
                }
                stages.push(updates);
            }
            all.periods.push(stages);
        }
        let short = |n: i64| i16::try_from(n).is_ok();
        let fits = |row: &Group| row.array().into_iter().all(short);
        (all.rows.len() <= MOST_WORDS && all.rows.iter().all(fits)).then_some(all)
    }

    /// Enters the rows of an update in a stage of an alignment: for narrow towers, the rows below their limits.
    fn of_update(
        &mut self,
        towers: &Towers,
        alignment: usize,
        stage: usize,
        rows: &[RowUpdate],
    ) -> Option<BoundaryUpdate> {
        let mut ranges = Vec::new();
        for width in self.widths.clone() {
            let limits = towers.rings.limits_of(width);
            let first = self.rows.len();
            for row in rows {
                let depths = towers.depths(alignment, stage, *row)?;
                let mut own = depths.iter().zip(limits);
                if own.all(|(depth, limit)| limit.is_none_or(|limit| *depth < limit)) {
                    self.rows.push(row.at);
                }
            }
            ranges.push(first..self.rows.len());
        }
        let update = rows.first()?.update;
        Some(BoundaryUpdate {
            update,
            rows: ranges,
        })
    }

    /// The number in the list of the width of a tower.
    pub fn width(&self, width: Width) -> Option<usize> {
        self.widths.iter().position(|own| *own == width)
    }

    /// Rows of a period of each alignment, together.
    pub fn count(towers: &Towers) -> usize {
        let stages = towers.alignments.iter().flat_map(|a| &a.stages);
        stages.map(|stage| stage.updates.len()).sum()
    }
}

/// The part of lines that a block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineParts {
    /// Whole lines, or slabs.
    Slabs,
    ZBlocks,
}

impl BoundaryUpdate {
    /// The rows of towers that are not narrow.
    pub fn usual(&self) -> Range<usize> {
        self.rows.first().cloned().unwrap_or_default()
    }

    /// Rows that are advanced together: as many each time, so that none is computed in vain.
    pub fn together(
        &self,
        scheme: &Scheme,
        towers: &Towers,
        stage: StageAt,
        parts: LineParts,
    ) -> u32 {
        let update = &stage.updates(scheme)[self.update];
        let loads = loads(scheme, update).max(1) * scheme.precision.bytes() / 4;
        let most = match towers.rings.is_any() {
            true => MOST_ON_RINGS,
            false => MOST_ROWS,
        };
        let most = match (towers.alignments.len(), parts) {
            (0 | 1, _) => most.one,
            (_, LineParts::Slabs) => most.several,
            (_, LineParts::ZBlocks) => most.in_z_blocks,
        };
        let at_once = match update.amendments.is_empty() {
            true => AT_ONCE,
            false => AT_ONCE_AMENDED,
        };
        let most = (at_once / loads).clamp(1, most) as i64;
        let count = self.usual().len() as i64;
        div_ceil(count, div_ceil(count, most)) as u32
    }
}

/// Values that a row of an update loads.
fn loads(scheme: &Scheme, update: &Update) -> usize {
    let read = |op: &&Op| matches!(op, Op::Read(_) | Op::Coef(_));
    let body = update.body.ops.iter().filter(read).count();
    // Amendments read the same rows as their update, as a rule; each has a condition and a place, too.
    let memory = |op: &&Op| !matches!(memory_of(scheme, op), None | Some(Memory::Lane));
    let amended = |a: &Amendment| a.body.ops.iter().filter(memory).count() + 3;
    let amended: usize = update.amendments.iter().map(amended).sum();
    amended + body + usize::from(update.mask.is_some()) + usize::from(keeps_old(scheme, update))
}
