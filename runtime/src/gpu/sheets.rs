//! Sources in many columns of cells, which towers run as [`Sheet`]s.

use super::around::Sources;
use super::device::{Address, Argument, Device, DeviceError};
use torre_compiler::backend::nvptx::tower::{Acting, Sheet};
use torre_compiler::lattice::{Axis, Interval, PerAxis, Region};
use torre_compiler::problem::{Problem, Source};
use torre_compiler::scheme::Scheme;

/// A source is a sheet if it acts in more columns of cells, or in a greater share of them: hooks keep periods from running as whole ones.
const MOST_HOOKED: i64 = 1 << 12;
const MOST_SHARE: i64 = 64;

/// Sheets after one update, and of a kernel: each costs instructions in every tower, and parameters.
const MOST_SHEETS: [usize; 2] = [8, 32];

/// Which sources of a problem are sheets, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dense(Vec<bool>);

/// Columns of cells of a region.
pub(super) fn columns(region: &Region) -> i64 {
    let [x, y] = [Axis::OUTER, Axis::MIDDLE].map(|axis| region[axis].len());
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
        let all: i64 = [Axis::OUTER, Axis::MIDDLE]
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

    /// Whether there are more of them than kernels should be made for.
    pub fn are_too_many(&self, problem: &Problem) -> bool {
        let acting = self.acting(problem);
        let same = |one: &Acting| acting.iter().filter(|other| *other == one).count();
        let [each, all] = MOST_SHEETS;
        acting.len() > all || acting.iter().any(|one| same(one) > each)
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

/// The sheet of a source that acts in some cells, and its profiles; `None` where these need more than half of what is available, or where one
/// is no number.
fn sheet(acting: &[(PerAxis<i64>, f64, i32)], available: u64) -> Option<(Sheet, Vec<u8>)> {
    let none = PerAxis::splat(Interval::new(0, 0));
    let region = acting.iter().fold(none, |region, (at, ..)| {
        PerAxis::from_fn(|axis| region[axis].hull(Interval::new(at[axis], at[axis] + 1)))
    });
    let cells = columns(&region).checked_mul(region[Axis::INNER].len())?;
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
    if count as u64 * 8 > available / 2 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use torre_compiler::host::{HostExpr, HostUnary};
    use torre_compiler::lattice::HalfIndex;
    use torre_compiler::scheme::{Precision, StageId};
    use torre_compiler::testing::maxwell;

    fn dense(sources: &[(Region, HostExpr)]) -> Vec<bool> {
        let scheme = maxwell(2, Precision::F32, [60, 60, 20]);
        let source = |(region, wave): &(Region, HostExpr)| Source {
            component: scheme.stages[0].updates[0].target,
            stage: StageId(0),
            region: *region,
            condition: None,
            profile: HostExpr::Number(1.0),
            replaces: false,
            wave: wave.clone(),
        };
        let problem = Problem {
            sources: sources.iter().map(source).collect(),
            ..Problem::default()
        };
        Dense::new(&scheme, &problem).0
    }

    #[test]
    fn what_comes_before_a_sheet_is_one() {
        let in_box = |x, y, z| PerAxis([x, y, z].map(|(lo, hi)| Interval::new(lo, hi)));
        let plane = || (in_box((1, 50), (1, 50), (9, 10)), HostExpr::Time);
        let cell = |z| (in_box((3, 4), (5, 6), (z, z + 1)), HostExpr::Time);
        let leaning = |z| {
            let wave = HostExpr::Coordinate(Axis::OUTER, HalfIndex::ZERO);
            (cell(z).0, HostExpr::unary(HostUnary::Sin, wave))
        };
        assert_eq!(dense(&[cell(9), plane(), cell(9)]), [true, true, false]);
        assert_eq!(dense(&[cell(8), plane()]), [false, true]);
        assert_eq!(dense(&[plane(), leaning(9)]), [true, false]);
        assert_eq!(dense(&[leaning(9), plane(), plane()]), [false; 3]);
        assert_eq!(dense(&[leaning(8), plane()]), [false, true]);
    }

    #[test]
    fn profiles_are_those_of_cells() {
        let cell = |x, z, profile: f64| (PerAxis([x, 4, z]), profile, 7);
        let of = |cells: &[_]| sheet(cells, 1 << 20);
        let (same, bytes) = of(&[cell(2, 5, -0.0), cell(3, 5, -0.0)]).expect("two cells");
        assert_eq!((same.stride, bytes.len()), (PerAxis::splat(0), 8));
        assert_eq!(
            same.words().expect("small"),
            [2, 2, 0, 4, 1, 0, 5, 1, 0, 56]
        );
        let (other, bytes) = of(&[cell(2, 5, 1.5), cell(3, 6, 1.5)]).expect("two cells");
        assert_eq!(other.stride, PerAxis([2, 2, 1]));
        let value = |n: usize| f64::from_le_bytes(bytes[8 * n..][..8].try_into().expect("eight"));
        let values = [0, 1, 2, 3].map(value);
        assert_eq!([values[0], values[3]], [1.5; 2]);
        assert!(values[1].is_nan() && values[2].is_nan());
        let (none, _) = of(&[]).expect("nothing");
        assert_eq!(none.region, PerAxis::splat(Interval::new(0, 0)));
        assert_eq!(of(&[cell(2, 5, f64::NAN)]), None);
        assert_eq!(sheet(&[cell(2, 5, 1.0), cell(9, 9, 1.0)], 64), None);
    }
}
