//! Interruptions of time blocks: steps that they cannot contain run in lower time blocks, or stage by stage.

use super::volumes::{VolumeChoice, columns};
use std::collections::BTreeMap;
use torre_compiler::host::HostExpr;
use torre_compiler::incident::{corrected_updates, places};
use torre_compiler::lattice::{Axis, Interval, Region, div_ceil};
use torre_compiler::problem::{Problem, Source};
use torre_compiler::scheme::Scheme;
use torre_compiler::tower::Towers;

/// Outputs, records and sources of a problem, and how they affect time blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interruptions {
    /// The parts of the problem that time blocks cannot run, in words: then there are none.
    pub always: Vec<&'static str>,
    /// Nothing of a time block may lie on both sides of a multiple of these steps.
    intervals: Vec<u64>,
    /// Where points lie along the outer and the middle axis: cells of sources that are no volume sources, and of
    /// probes.
    points: Vec<[Interval; 2]>,
    /// Sources act in more cells than time blocks of pyramids have tables for.
    pub too_many_cells: bool,
    pub volumes: VolumeChoice,
    volume_costs: Vec<VolumeCost>,
    /// Updates that are corrected near faces of total fields.
    corrected: usize,
}

/// A volume source, as far as it costs time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct VolumeCost {
    region: Region,
    /// It adds the same everywhere.
    same: bool,
}

impl VolumeCost {
    fn new(source: &Source) -> VolumeCost {
        VolumeCost {
            region: source.region,
            same: source.condition.is_none() && matches!(source.profile, HostExpr::Number(_)),
        }
    }
}

/// The heights of time blocks, in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heights {
    /// The height of as many time blocks as possible.
    most: u64,
    /// All heights are multiples of it.
    period: u64,
    /// Time blocks begin at multiples of it.
    phases: u64,
    /// All multiples of the period are heights; otherwise there are few, each half of the one before.
    any: bool,
}

/// The heights of the time blocks of windows and stripes: up to the next step after which something is due they are
/// about alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvenHeights {
    most: u64,
    period: u64,
}

impl EvenHeights {
    /// The heights of time blocks of towers; `most`: the greatest one, a whole number of periods.
    pub fn new(most: u64, towers: &Towers) -> EvenHeights {
        let period = towers.steps.max(1);
        EvenHeights {
            most: most.max(period),
            period,
        }
    }

    /// The height of the next time block, if nothing is due for `room` steps: as high as possible, or a little lower.
    pub fn next(self, room: u64) -> Option<u64> {
        let room = room / self.period;
        let blocks = room.div_ceil(self.most / self.period);
        (room > 0).then(|| room.div_ceil(blocks) * self.period)
    }
}

/// The shares of the steps of a run that time blocks advance, by the height of the blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeightShares {
    of: BTreeMap<u64, f64>,
}

impl HeightShares {
    /// The shares of the steps of some time blocks.
    pub fn of_blocks(blocks: &[u64]) -> HeightShares {
        let steps = blocks.iter().sum::<u64>() as f64;
        let mut shares = HeightShares::default();
        for height in blocks {
            *shares.of.entry(*height).or_default() += *height as f64 / steps;
        }
        shares
    }

    /// The share of all time blocks.
    pub fn all(&self) -> f64 {
        self.of
            .values()
            .fold(0.0, |all, share| all + share)
            .min(1.0)
    }

    /// Heights and their shares.
    pub fn iter(&self) -> impl Iterator<Item = (u64, f64)> {
        self.of.iter().map(|(height, share)| (*height, *share))
    }
}

/// Of the greatest height: lower time blocks are not worth it.
const LOWEST: u64 = 8;

/// Steps that are looked at to find a share.
const LOOKED_AT: u64 = 1 << 14;

/// Cells of sources for which there may be tables.
const MOST_CELLS: i64 = 1 << 22;

/// The same for time blocks of pyramids: cells of the boxes of all sources.
const MOST_TABLE_CELLS: i64 = 1 << 24;

/// Instructions of a cell for a volume source outside its box; more inside of it where one profile serves all cells;
/// and more where profiles are loaded.
const ADDED: [f64; 3] = [1.1, 8.0, 15.0];

/// Threads of a warp.
const WARP: i64 = 32;

/// Rows with points, at most, for which there are tables of a time block.
const MOST_ROWS: i64 = 1 << 15;

/// Cells of the boxes of all sources, and cells near faces of total fields.
fn all_cells(scheme: &Scheme, problem: &Problem) -> i64 {
    let corrected = i64::try_from(places(scheme, problem)).unwrap_or(i64::MAX);
    let cells = problem.sources.iter().map(|s| s.region.volume() as i64);
    cells.fold(corrected, i64::saturating_add)
}

impl Heights {
    /// The heights of time blocks of towers; `most`: the greatest one, a whole number of periods.
    pub fn new(most: u64, towers: &Towers, scheme: &Scheme) -> Heights {
        Heights {
            most,
            period: towers.steps,
            phases: u64::from(scheme.phases()).max(1),
            any: false,
        }
    }

    /// All multiples of `round` steps up to `most` steps; time blocks begin with a round.
    pub fn of_rounds(most: u64, round: u64) -> Heights {
        Heights {
            most,
            period: round.max(1),
            phases: round.max(1),
            any: true,
        }
    }

    /// The height of the time block that begins at a step, if nothing is due for `room` steps.
    pub fn next(self, step: u64, room: u64) -> Option<u64> {
        if !step.is_multiple_of(self.phases) {
            return None;
        }
        if self.any {
            let height = room.min(self.most) / self.period * self.period;
            return (height > 0).then_some(height);
        }
        let mut height = self.most;
        while height >= self.period.max(self.most / LOWEST).max(1) {
            if height <= room {
                return Some(height);
            }
            height = height / 2 / self.period.max(1) * self.period;
        }
        None
    }
}

impl Interruptions {
    /// Finds the interruptions of a problem.
    pub fn new(scheme: &Scheme, problem: &Problem) -> Interruptions {
        let lines = |region: Region| [region[Axis::OUTER], region[Axis::MIDDLE]];
        let area = |[x, y]: &[Interval; 2]| x.len().saturating_mul(y.len());
        let volumes = VolumeChoice::new(scheme, problem);
        let sources = problem.sources.iter().enumerate();
        let others = sources.filter(|(number, _)| !volumes.has(*number));
        let sources: Vec<Region> = others.map(|(_, source)| source.region).collect();
        let cells = sources
            .iter()
            .map(|region| columns(region).saturating_mul(region[Axis::INNER].len()));
        let cells = cells.fold(0i64, i64::saturating_add);
        let probes = problem.probes.iter().map(|p| {
            let at = |axis: Axis| Interval::new(p.at[axis], p.at[axis] + 1);
            [at(Axis::OUTER), at(Axis::MIDDLE)]
        });
        let points: Vec<[Interval; 2]> = sources.into_iter().map(lines).chain(probes).collect();
        let rows = points.iter().map(area).fold(0i64, i64::saturating_add);
        let many = cells > MOST_CELLS || rows > MOST_ROWS;
        let many = many.then_some("sources act, or probes record, in too many cells");
        let too_many = volumes.are_too_many(problem).then_some(
            "more sources add to many cells of a field than towers have instructions for",
        );
        let replacing = problem.sources.iter().any(|source| source.replaces);
        let replacing = replacing.then_some("a source replaces values");
        Interruptions {
            too_many_cells: all_cells(scheme, problem) > MOST_TABLE_CELLS,
            always: many.into_iter().chain(too_many).chain(replacing).collect(),
            volume_costs: volumes.of(problem).map(VolumeCost::new).collect(),
            corrected: corrected_updates(scheme, problem).len(),
            volumes,
            intervals: problem.intervals().map(|every| every.max(1)).collect(),
            points,
        }
    }

    /// Steps from one on, up to another one, in which nothing is due but after the last.
    pub fn room(&self, step: u64, until: u64) -> u64 {
        let due = self.intervals.iter().map(|every| every - step % every);
        due.chain([until.saturating_sub(step)]).min().unwrap_or(0)
    }

    /// The shares of the steps of a run, from the first one on, that time blocks of each height advance.
    pub fn shares(&self, heights: Heights, steps: u64) -> HeightShares {
        match self.always.is_empty() {
            true => self.shares_of(heights, steps),
            false => HeightShares::default(),
        }
    }

    /// The same for time blocks that nothing keeps from running.
    pub fn shares_of(&self, heights: Heights, steps: u64) -> HeightShares {
        let end = steps.min(LOOKED_AT.max(8 * heights.most));
        let mut shares = HeightShares::default();
        // A run of no steps has none that time blocks do not advance.
        if end == 0 {
            return HeightShares::of_blocks(&[heights.most]);
        }
        let mut step = 0;
        while step < end {
            match heights.next(step, self.room(step, end)) {
                Some(height) if height > 0 => {
                    *shares.of.entry(height).or_default() += height as f64 / end as f64;
                    step += height;
                }
                _ => step += 1,
            }
        }
        shares
    }

    /// The heights of the time blocks of a window or of stripes, in the order of a run, as far as one looks: a list up
    /// to each step after which something is due.
    pub fn even_blocks(&self, heights: EvenHeights, steps: u64) -> Vec<Vec<u64>> {
        let end = steps.min(LOOKED_AT.max(8 * heights.most));
        let (mut step, mut all) = (0, Vec::new());
        while step < end {
            let mut room = self.room(step, end);
            step += room;
            let mut blocks = Vec::new();
            while let Some(height) = heights.next(room) {
                blocks.push(height);
                room -= height;
            }
            all.push(blocks);
        }
        all
    }

    /// The share of the periods of towers that points keep from running as interior ones, about.
    pub fn cut(&self, scheme: &Scheme, towers: &Towers) -> f64 {
        let reach = (2.0 * towers.cells()).sqrt();
        let [x, y] = [Axis::OUTER, Axis::MIDDLE].map(|axis| scheme.grid.cells[axis].max(1) as f64);
        let area = self.points.iter().map(|[a, b]| {
            let [a, b] = [a, b].map(|i| i.len().max(0) as f64);
            a * b + (a + b) * reach + towers.cells()
        });
        (area.sum::<f64>() / (x * y)).min(1.0)
    }

    /// Instructions of a cell-step for volume sources.
    pub fn added(&self, scheme: &Scheme) -> f64 {
        let [x, y, z] = scheme.grid.cells.0.map(|n| n.max(1) as f64);
        let of = |VolumeCost { region, same }: &VolumeCost| {
            let Interval { lo, hi } = region[Axis::INNER];
            let warps = div_ceil(hi.max(lo), WARP) - lo / WARP;
            let threads = ((warps * WARP) as f64 / z).min(1.0);
            let share = (columns(region) as f64 / (x * y)).min(1.0);
            let [always, here, more] = ADDED;
            let here = if *same { here } else { here + more };
            always + here * threads * share
        };
        // Few threads correct, others have the same condition.
        let corrected = self.corrected as f64 * ADDED[0];
        corrected + self.volume_costs.iter().map(of).sum::<f64>()
    }

    /// Why there are no time blocks at all, for people.
    pub fn refusal(&self) -> Option<String> {
        let each = self.always.join(" and ");
        (!each.is_empty()).then(|| format!("{each}, so a GPU goes stage by stage"))
    }

    /// Why a run is not by towers in all steps, or in few, for people.
    pub fn note(&self, heights: Heights, steps: u64) -> Option<String> {
        if let Some(refusal) = self.refusal() {
            return Some(refusal);
        }
        self.few(heights, steps, "towers")
    }

    /// Why few steps run by time blocks of towers or pyramids that nothing keeps from running, for people.
    pub fn few(&self, heights: Heights, steps: u64, tiles: &str) -> Option<String> {
        let share = self.shares_of(heights, steps).all();
        (share < 0.5).then(|| {
            format!(
                "only {:.0} % of the steps run by {tiles} up to {} steps high: they end where an output, a record or \
                 a probe of a state is due, and at the last step",
                100.0 * share,
                heights.most
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_blocks_lie_between_what_is_due() {
        let every = |intervals: &[u64]| Interruptions {
            intervals: intervals.to_vec(),
            ..Interruptions::default()
        };
        let heights = |most, period| Heights {
            most,
            period,
            phases: 1,
            any: false,
        };
        let interruptions = every(&[6]);
        assert_eq!(
            [0, 4, 6].map(|step| interruptions.room(step, 100)),
            [6, 2, 6]
        );
        assert_eq!(interruptions.room(96, 97), 1);
        // In hundredths of the steps.
        let shares = |of: &Interruptions, heights, steps| {
            let shares = of.shares(heights, steps);
            let each = shares.iter();
            let each = each.map(|(height, share)| (height, (100.0 * share).round() as i64));
            each.collect::<Vec<_>>()
        };
        assert_eq!(shares(&interruptions, heights(4, 4), 600), [(4, 67)]);
        assert_eq!(
            shares(&interruptions, heights(4, 1), 600),
            [(2, 33), (4, 67)]
        );
        assert_eq!(shares(&every(&[]), heights(8, 8), 20), [(8, 80)]);
        assert_eq!(shares(&interruptions, heights(8, 8), 600), []);
        assert_eq!(shares(&interruptions, heights(64, 1), 600), []);
        assert_eq!(shares(&every(&[100]), heights(16, 1), 0), [(16, 100)]);
        assert_eq!(
            shares(&every(&[100]), heights(16, 1), 6000),
            [(4, 4), (16, 96)]
        );
        let note = interruptions.note(heights(8, 8), 600).unwrap_or_default();
        assert!(note.contains("only 0 %"), "{note}");
        assert_eq!(interruptions.note(heights(3, 1), 600), None);
        let blocks = |of: &[u64], most, steps| {
            let heights = EvenHeights { most, period: 1 };
            every(of).even_blocks(heights, steps).concat()
        };
        assert_eq!(blocks(&[20, 32], 16, 64), [10, 10, 12, 8, 10, 10, 4]);
        assert_eq!(blocks(&[], 4, 10), [4, 3, 3]);
        assert_eq!(blocks(&[1], 16, 3), [1, 1, 1]);
        assert!(blocks(&[], 16, 0).is_empty());
        let even = EvenHeights { most: 4, period: 2 };
        let passes = every(&[10]).even_blocks(even, 13);
        assert_eq!(passes, [vec![4, 4, 2], vec![2]]);
        let shares = HeightShares::of_blocks(&passes.concat());
        let shares = shares.iter().collect::<Vec<_>>();
        assert_eq!(shares, [(2, 4.0 / 12.0), (4, 8.0 / 12.0)]);
        let busy = Interruptions {
            always: vec!["sources act everywhere"],
            ..Interruptions::default()
        };
        assert_eq!(busy.shares(heights(1, 1), 10).all(), 0.0);
        let note = busy.note(heights(4, 1), 10).unwrap_or_default();
        assert!(note.starts_with("sources act everywhere, so"), "{note}");
    }

    #[test]
    fn heights_are_few() {
        let heights = Heights {
            most: 24,
            period: 2,
            phases: 2,
            any: false,
        };
        let next = |room| heights.next(4, room);
        assert_eq!([100, 24, 23, 11].map(next), [24, 24, 12, 6].map(Some));
        assert_eq!([4, 2].map(next), [None; 2]);
        assert_eq!(heights.next(3, 100), None);
    }
}
