//! Sources in many columns of cells, which towers run as [`Sheet`]s.

use super::around::Sources;
use super::device::{Address, Argument, Device, DeviceError};
use torre_compiler::backend::nvptx::tower::{Acting, Sheet};
use torre_compiler::lattice::{Axis, Interval, PerAxis, Region};
use torre_compiler::problem::{Problem, Source};
use torre_compiler::scheme::Scheme;

/// A source is a sheet if it acts in more columns of cells, or in a greater share of them: hooks keep turns from running as whole ones.
const MOST_HOOKED: i64 = 1 << 12;
const MOST_SHARE: i64 = 64;

/// Sheets after one update: each costs instructions in every tower.
const MOST_SHEETS: usize = 8;

/// Which sources of a problem are sheets, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dense(Vec<bool>);

/// Columns of cells of a region.
pub(super) fn columns(region: &Region) -> i64 {
    let [x, y] = [Axis::LEAN, Axis::DIAMOND].map(|axis| region[axis].len());
    x.saturating_mul(y)
}

fn meet(a: &Source, b: &Source) -> bool {
    let both = |axis: Axis| !a.region[axis].intersect(b.region[axis]).is_empty();
    (a.component, a.stage) == (b.component, b.stage) && Axis::ALL.into_iter().all(both)
}

impl Dense {
    /// Sheets act before hooks: what comes before a sheet on a cell is one, too. A source whose wave is another one at each place cannot be one.
    pub fn new(scheme: &Scheme, problem: &Problem) -> Dense {
        let sources = &problem.sources;
        let all: i64 = [Axis::LEAN, Axis::DIAMOND]
            .map(|axis| scheme.grid.cells[axis])
            .into_iter()
            .product();
        let many = |source: &Source| {
            let columns = columns(&source.region);
            columns > MOST_HOOKED || columns.saturating_mul(MOST_SHARE) > all
        };
        let mut possible: Vec<bool> = Vec::new();
        for (number, source) in sources.iter().enumerate() {
            let mut before = sources[..number].iter().zip(&possible);
            let can = before.all(|(other, can)| *can || !meet(other, source));
            possible.push(can && !source.wave.depends_on_place());
        }
        let mut dense = vec![false; sources.len()];
        for (number, source) in sources.iter().enumerate().rev() {
            let mut after = sources.iter().zip(&dense).skip(number + 1);
            let before_one = after.any(|(other, dense)| *dense && meet(source, other));
            dense[number] = possible[number] && (before_one || many(source));
        }
        Dense(dense)
    }

    pub fn has(&self, source: usize) -> bool {
        self.0.get(source).copied().unwrap_or(false)
    }

    /// The sources that are sheets, in their order.
    pub fn of<'p>(&'p self, problem: &'p Problem) -> impl Iterator<Item = &'p Source> {
        let sources = problem.sources.iter().zip(&self.0);
        sources
            .filter(|(_, dense)| **dense)
            .map(|(source, _)| source)
    }

    /// What kernels have to know of them.
    pub fn acting(&self, problem: &Problem) -> Vec<Acting> {
        let acting = |source: &Source| Acting {
            stage: source.stage,
            component: source.component,
        };
        self.of(problem).map(acting).collect()
    }

    /// Whether more of them act after one update than kernels should be made for.
    pub fn are_too_many(&self, problem: &Problem) -> bool {
        let acting = self.acting(problem);
        let same = |one: &Acting| acting.iter().filter(|other| *other == one).count();
        acting.iter().any(|one| same(one) > MOST_SHEETS)
    }
}

/// A sheet, and its profiles in a device's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    profiles: Address,
    words: [i32; Sheet::WORDS],
}

impl Placed {
    /// Brings the sheets of a problem to a device; `None` where they are too large, or where something is added that is no number.
    pub fn all(
        device: &dyn Device,
        sources: &Sources,
        dense: &Dense,
    ) -> Result<Option<Vec<Placed>>, DeviceError> {
        let mut placed = Vec::new();
        for (number, acting) in sources.acting.iter().enumerate() {
            if !dense.has(number) {
                continue;
            }
            let Some((sheet, bytes)) = sheet(acting, device.free_memory()?) else {
                return Ok(None);
            };
            let Some(words) = sheet.words() else {
                return Ok(None);
            };
            let profiles = device.take(bytes.len() as u64)?;
            device.write(profiles, &bytes)?;
            placed.push(Placed { profiles, words });
        }
        Ok(Some(placed))
    }

    /// As kernels take it.
    pub fn arguments(&self) -> impl Iterator<Item = Argument> {
        let place = std::iter::once(Argument::Place(self.profiles));
        place.chain(self.words.into_iter().map(Argument::Word))
    }
}

/// The sheet of a source that acts in some cells, and its profiles; `None` where these do not fit, or where one is no number.
fn sheet(acting: &[(PerAxis<i64>, f64, i32)], available: u64) -> Option<(Sheet, Vec<u8>)> {
    let none = PerAxis::splat(Interval::new(0, 0));
    let region = acting.iter().fold(none, |region, (at, ..)| {
        PerAxis::from_fn(|axis| region[axis].hull(Interval::new(at[axis], at[axis] + 1)))
    });
    let cells = columns(&region).checked_mul(region[Axis::VECTOR].len())?;
    let (profile, wave) = acting.first().map_or((0.0, 0), |(_, p, wave)| (*p, *wave));
    if acting.iter().any(|(_, profile, _)| profile.is_nan()) {
        return None;
    }
    let everywhere = acting.len() as i64 == cells;
    let same = |(_, other, _): &(PerAxis<i64>, f64, i32)| other.to_bits() == profile.to_bits();
    let mut sheet = Sheet {
        region,
        stride: PerAxis::splat(0),
        wave,
    };
    if everywhere && acting.iter().all(same) {
        return Some((sheet, profile.to_le_bytes().to_vec()));
    }
    // Indices of profiles are words.
    let count = i32::try_from(cells).ok()?;
    if count as u64 * 8 > available {
        return None;
    }
    let [_, y, z] = region.map(|i| i.len() as i32).0;
    sheet.stride = PerAxis([y * z, z, 1]);
    let mut bytes = f64::NAN.to_le_bytes().repeat(count as usize);
    for (at, profile, _) in acting {
        let from = PerAxis::from_fn(|axis| at[axis] - region[axis].lo);
        let along = Axis::ALL
            .into_iter()
            .map(|axis| from[axis] * i64::from(sheet.stride[axis]));
        let first = along.sum::<i64>() as usize * 8;
        bytes[first..first + 8].copy_from_slice(&profile.to_le_bytes());
    }
    Some((sheet, bytes))
}
