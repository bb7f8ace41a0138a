//! Sources in many columns of cells, which towers run as volume sources.

use super::device::{Device, DeviceError};
use super::no_time_blocks::NoTimeBlocks;
use torre_compiler::backend::gpu::abi::{CorrectionTable, VolumeBox, VolumeParams, Volumes};
use torre_compiler::incident::{FarRows, alike_places, corrected_updates, whole_rows};
use torre_compiler::injection::{Injection, Injections};
use torre_compiler::lattice::{Axis, Interval, PerAxis, Region};
use torre_compiler::problem::{Problem, Source};
use torre_compiler::scheme::Scheme;
use torre_compiler::tower::{Adds, GroupBox, TowerProgram, VolumeSource};

/// A source is a volume source if it acts in more columns of cells, or in a greater share of them: points keep periods
/// from being interior ones.
const MOST_COLUMNS: i64 = 1 << 12;
const MOST_SHARE: i64 = 64;

/// Volume sources after one update, and of a kernel: each costs instructions in every tower, and parameters.
const MOST_VOLUMES: [usize; 2] = [8, 64];

/// Which sources of a problem are volume sources, by their numbers; corrections at the faces of total fields always
/// are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeChoice {
    chosen: Vec<bool>,
    corrections: Vec<VolumeSource>,
    /// Where rows may be corrected at each place.
    whole_rows: Vec<GroupBox>,
    /// Indices along the inner axis at which alike rows are corrected elsewhere.
    places: Vec<i64>,
}

/// Columns of cells of a region.
pub(super) fn columns(region: &Region) -> i64 {
    let [x, y] = [Axis::OUTER, Axis::MIDDLE].map(|axis| region[axis].len());
    x.saturating_mul(y)
}

fn meet(a: &Source, b: &Source) -> bool {
    let same = (a.component, a.stage) == (b.component, b.stage);
    same && !a.region.intersect(b.region).is_empty()
}

impl VolumeChoice {
    /// Volume sources act before points: a source that acts before a volume source on a cell is one, too. A source with
    /// a wave of its own at each place cannot be one.
    pub fn new(scheme: &Scheme, problem: &Problem) -> VolumeChoice {
        let sources = &problem.sources;
        let all: i64 = [Axis::OUTER, Axis::MIDDLE]
            .map(|axis| scheme.grid.cells[axis])
            .into_iter()
            .product();
        let many = |source: &Source| {
            let columns = columns(&source.region);
            columns > MOST_COLUMNS || columns.saturating_mul(MOST_SHARE) > all
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
        let updates = corrected_updates(scheme, problem);
        let places = alike_places(&updates);
        let corrections = updates.into_iter();
        let corrections = corrections.map(|update| VolumeSource {
            stage: update.stage,
            component: update.component,
            adds: Adds::Correction(update.far_rows),
        });
        let whole = whole_rows(scheme, problem).into_iter();
        VolumeChoice {
            chosen: dense,
            corrections: corrections.collect(),
            whole_rows: whole.map(|[x, y]| GroupBox { x, y }).collect(),
            places,
        }
    }

    pub fn has(&self, source: usize) -> bool {
        self.chosen.get(source).copied().unwrap_or(false)
    }

    /// Where rows may be corrected at each place, along the outer and the middle axis.
    pub fn whole_rows(&self) -> &[GroupBox] {
        &self.whole_rows
    }

    /// Indices along the inner axis at which alike rows are corrected elsewhere, ascending.
    pub fn places(&self) -> &[i64] {
        &self.places
    }

    /// The volume sources, in their order.
    pub fn of<'p>(&'p self, problem: &'p Problem) -> impl Iterator<Item = &'p Source> {
        let sources = problem.sources.iter().zip(&self.chosen);
        sources
            .filter(|(_, dense)| **dense)
            .map(|(source, _)| source)
    }

    /// The volume sources for kernels, in the order in which they act.
    pub fn acting(&self, problem: &Problem) -> Vec<VolumeSource> {
        let acting = |source: &Source| VolumeSource {
            stage: source.stage,
            component: source.component,
            adds: Adds::Product,
        };
        let sources = self.of(problem).map(acting);
        self.corrections.iter().copied().chain(sources).collect()
    }

    /// Bytes of the waves of a step, for time blocks of at most `steps` steps. `None` where kernels cannot count them:
    /// with volume sources they count the waves of a time block in words.
    fn wave_bytes(&self, waves: usize, steps: u64) -> Option<i32> {
        let bytes = i32::try_from(waves.checked_mul(8)?).ok()?;
        let steps = i32::try_from(steps).unwrap_or(i32::MAX);
        let in_words = !self.chosen.contains(&true) || bytes.checked_mul(steps).is_some();
        in_words.then_some(bytes)
    }

    /// Whether a program is for these sources.
    pub fn are_those_of(&self, program: &TowerProgram, problem: &Problem) -> bool {
        let slots = program.block.slots;
        let fits = slots.is_none_or(|slots| slots.places as usize == self.places.len());
        fits && program.sources == self.acting(problem)
    }

    /// Whether there are more of them than kernels should be made for.
    pub fn are_too_many(&self, problem: &Problem) -> bool {
        let acting = self.acting(problem);
        let same = |one: &VolumeSource| {
            let others = acting.iter();
            others
                .filter(|other| other.is_after(one.stage, one.component))
                .count()
        };
        let [each, all] = MOST_VOLUMES;
        acting.len() > all || acting.iter().any(|one| same(one) > each)
    }
}

/// Brings the volume sources of a problem to a device, for time blocks of at most `steps` steps, or says why not.
pub(super) fn place(
    device: &dyn Device,
    injections: &Injections,
    chosen: &VolumeChoice,
    steps: u64,
) -> Result<Result<Volumes, NoTimeBlocks>, DeviceError> {
    let Some(wave_bytes) = chosen.wave_bytes(injections.waves_per_step(), steps) else {
        return Ok(Err(NoTimeBlocks::LargeSources));
    };
    let mut sources = Vec::new();
    for (rows, source) in injections.corrected().iter().zip(&chosen.corrections) {
        // Kernels were made for one pattern, or for none.
        let fits = match source.adds {
            Adds::Correction(FarRows::Alike) => rows.far_pattern().is_some(),
            Adds::Correction(FarRows::Bare) => rows.far_pattern() == Some(None),
            _ => true,
        };
        if !fits {
            return Err(DeviceError::Failed {
                operation: "placing corrections",
                message: "rows far from faces have different patterns".to_owned(),
            });
        }
        let table = CorrectionTable::new(rows, injections.first_correction(), &chosen.places);
        let Some(table) = table else {
            return Ok(Err(NoTimeBlocks::LargeSources));
        };
        let bytes = table.bytes();
        if bytes.len() as u64 > device.free_memory()? / 2 {
            return Ok(Err(NoTimeBlocks::LargeSources));
        }
        let place = device.take(bytes.len().max(4) as u64)?;
        device.write(place, &bytes)?;
        let Some(params) = table.params(place.0) else {
            return Ok(Err(NoTimeBlocks::LargeSources));
        };
        sources.push(params);
    }
    for (number, source) in injections.sources.iter().enumerate() {
        if !chosen.has(number) {
            continue;
        }
        let (volume, bytes) = match volume(&source.cells, device.free_memory()?) {
            Ok(made) => made,
            Err(reason) => return Ok(Err(reason)),
        };
        let profiles = device.take(bytes.len() as u64)?;
        device.write(profiles, &bytes)?;
        let Some(params) = VolumeParams::new(profiles.0, &volume) else {
            return Ok(Err(NoTimeBlocks::LargeSources));
        };
        sources.push(params);
    }
    Ok(Ok(Volumes {
        wave_bytes,
        sources,
    }))
}

/// The box of a source that acts in some cells, and its profiles, which may take half of the `available` bytes.
fn volume(cells: &[Injection], available: u64) -> Result<(VolumeBox, Vec<u8>), NoTimeBlocks> {
    if cells.iter().any(|cell| cell.profile.is_nan()) {
        return Err(NoTimeBlocks::NotANumber);
    }
    let none = PerAxis::splat(Interval::new(0, 0));
    let region = cells.iter().fold(none, |region, cell| {
        PerAxis::from_fn(|axis| {
            let at = cell.at[axis];
            region[axis].hull(Interval::new(at, at + 1))
        })
    });
    let count = columns(&region)
        .checked_mul(region[Axis::INNER].len())
        .ok_or(NoTimeBlocks::LargeSources)?;
    let (profile, wave) = cells.first().map_or((0.0, 0), |c| (c.profile, c.wave));
    let everywhere = cells.len() as i64 == count;
    let same = |cell: &Injection| cell.profile.to_bits() == profile.to_bits();
    let mut volume = VolumeBox {
        region,
        stride: PerAxis::splat(0),
        wave,
    };
    if everywhere && cells.iter().all(same) {
        return Ok((volume, profile.to_le_bytes().to_vec()));
    }
    // Indices of profiles are words.
    let count = i32::try_from(count).map_err(|_| NoTimeBlocks::LargeSources)?;
    if count as u64 * 8 > available / 2 {
        return Err(NoTimeBlocks::LargeSources);
    }
    let [_, y, z] = region.map(|i| i.len() as i32).0;
    volume.stride = PerAxis([y * z, z, 1]);
    let mut bytes = f64::NAN.to_le_bytes().repeat(count as usize);
    for cell in cells {
        let along = Axis::ALL
            .into_iter()
            .map(|axis| (cell.at[axis] - region[axis].lo) * i64::from(volume.stride[axis]));
        let first = along.sum::<i64>() as usize * 8;
        bytes[first..first + 8].copy_from_slice(&cell.profile.to_le_bytes());
    }
    Ok((volume, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_compiler::backend::gpu::abi::Argument;
    use torre_compiler::host::{HostExpr, HostUnary};
    use torre_compiler::lattice::HalfIndex;
    use torre_compiler::scheme::{Precision, StageId};
    use torre_compiler::testing::maxwell;

    fn chosen(sources: &[(Region, HostExpr)]) -> Vec<bool> {
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
        VolumeChoice::new(&scheme, &problem).chosen
    }

    #[test]
    fn what_comes_before_a_volume_source_is_one() {
        let in_box = |x, y, z| PerAxis([x, y, z].map(|(lo, hi)| Interval::new(lo, hi)));
        let plane = || (in_box((1, 50), (1, 50), (9, 10)), HostExpr::Time);
        let cell = |z| (in_box((3, 4), (5, 6), (z, z + 1)), HostExpr::Time);
        let leaning = |z| {
            let wave = HostExpr::Coordinate(Axis::OUTER, HalfIndex::ZERO);
            (cell(z).0, HostExpr::unary(HostUnary::Sin, wave))
        };
        assert_eq!(chosen(&[cell(9), plane(), cell(9)]), [true, true, false]);
        assert_eq!(chosen(&[cell(8), plane()]), [false, true]);
        assert_eq!(chosen(&[plane(), leaning(9)]), [true, false]);
        assert_eq!(chosen(&[leaning(9), plane(), plane()]), [false; 3]);
        assert_eq!(chosen(&[leaning(8), plane()]), [false, true]);
    }

    #[test]
    fn waves_of_a_time_block_are_counted_in_words() {
        let of = |chosen: &[bool]| VolumeChoice {
            chosen: chosen.to_vec(),
            ..VolumeChoice::default()
        };
        let (dense, points) = (of(&[false, true]), of(&[false]));
        // A wave for each place of a large box of total fields.
        let waves = 10_000_000;
        assert_eq!(dense.wave_bytes(waves, 26), Some(80_000_000));
        assert_eq!(dense.wave_bytes(waves, 27), None);
        assert_eq!(points.wave_bytes(waves, 27), Some(80_000_000));
        assert_eq!(points.wave_bytes(1 << 28, 1), None);
        assert_eq!(dense.wave_bytes(0, u64::MAX), Some(0));
    }

    #[test]
    fn profiles_are_those_of_cells() {
        let cell = |x, z, profile: f64| Injection {
            at: PerAxis([x, 4, z]),
            profile,
            wave: 7,
        };
        let of = |cells: &[_]| volume(cells, 1 << 20);
        let (same, bytes) = of(&[cell(2, 5, -0.0), cell(3, 5, -0.0)]).expect("two cells");
        assert_eq!((same.stride, bytes.len()), (PerAxis::splat(0), 8));
        let words: Vec<Argument> = [2, 2, 0, 4, 1, 0, 5, 1, 0, 56].map(Argument::Word).to_vec();
        let params = VolumeParams::new(3, &same).expect("small");
        let arguments: Vec<Argument> = params.arguments().collect();
        assert_eq!(arguments[0], Argument::Place(3));
        assert_eq!(arguments[1..], words);
        let (other, bytes) = of(&[cell(2, 5, 1.5), cell(3, 6, 1.5)]).expect("two cells");
        assert_eq!(other.stride, PerAxis([2, 2, 1]));
        let value = |n: usize| f64::from_le_bytes(bytes[8 * n..][..8].try_into().expect("eight"));
        let values = [0, 1, 2, 3].map(value);
        assert_eq!([values[0], values[3]], [1.5; 2]);
        assert!(values[1].is_nan() && values[2].is_nan());
        let (none, _) = of(&[]).expect("nothing");
        assert_eq!(none.region, PerAxis::splat(Interval::new(0, 0)));
        assert_eq!(of(&[cell(2, 5, f64::NAN)]), Err(NoTimeBlocks::NotANumber));
        let far = Injection {
            at: PerAxis([9, 9, 1]),
            ..cell(0, 0, 1.0)
        };
        assert_eq!(
            volume(&[cell(2, 5, 1.0), far], 64),
            Err(NoTimeBlocks::LargeSources)
        );
    }
}
