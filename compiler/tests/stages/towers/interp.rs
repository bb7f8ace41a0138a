//! Tower programs, interpreted: same bits as row kernels stage by stage, for schemes of all kinds, with every division
//! of lines, with injections and receivers. Values that were never written are unknown to the interpreter, so it also
//! finds reads that are right by chance.

use super::*;
use torre_compiler::injection::{Injection, Receiver, inject};
use torre_compiler::real::Real;
use torre_compiler::testing::{
    Stagewise, add_random_zones, between_odd_and_even, diamonds, lengthen, make_room_for_towers,
    tower_pitch, tower_pitches,
};
use torre_compiler::tower::block::{Division, Options};

/// A comparison.
pub(super) struct Trial<'a> {
    pub scheme: &'a Scheme,
    pub pitches: [Rational; 2],
    /// Of both faces; `None`: the least that fits.
    pub slope: Option<Rational>,
    pub periods: u64,
    pub options: Options,
    /// Rows are packed where they can be.
    pub packed: bool,
    pub points: Points,
    pub volumes: Vec<VolumeCells>,
    pub seed: u64,
}

#[derive(Debug, Default)]
pub(super) struct Report {
    pub interior: u64,
    pub cut: u64,
    pub records: usize,
    pub amended: usize,
    /// Towers of which ends of the grid may cut rows off.
    pub predicated: usize,
}

/// The value of a wave in a step.
fn wave(step: u64, wave: u32) -> f64 {
    0.25 + (step * 7 + u64::from(wave) * 3) as f64 / 64.0
}

fn values<T: Real>(own: &mut Stagewise<'_>) -> Vec<T> {
    let of = |element: usize| match T::PRECISION {
        Precision::F32 => f64::from(f32::from_bits(own.memory.bits(element) as u32)),
        Precision::F64 => f64::from_bits(own.memory.bits(element)),
    };
    let count = own.layout.elements as usize;
    (0..count).map(|element| T::from_f64(of(element))).collect()
}

impl Trial<'_> {
    /// A step stage by stage, with all that happens to single values; gives the records.
    fn step<T: Real>(
        &self,
        own: &mut Stagewise<'_>,
        step: u64,
        records: &mut Vec<Recorded<T>>,
        block: u64,
    ) {
        let scheme = self.scheme;
        let phase = (step % u64::from(scheme.phases())) as u32;
        for stage in scheme.stage_ids() {
            for (number, update) in scheme.stages[stage.index()].updates.iter().enumerate() {
                own.advance(stage, step, number, update.region);
            }
            let volumes = self.volumes.iter().flat_map(|volume| {
                let of = volume.source;
                volume
                    .cells
                    .values()
                    .map(move |c| (of.stage, of.component, c.at, c.profile, c.wave))
            });
            let points = self.points.injections.iter();
            let points = points.map(|p| (p.stage, p.component, p.at, p.profile, p.wave));
            for (_, id, at, profile, number) in volumes.chain(points).filter(|i| i.0 == stage) {
                let row = own.layout.target_row(scheme, stage, phase, id);
                let element = own.layout.element(row, at) as usize;
                let before: T = self.read(own, element);
                let value = inject(before, profile, wave(step - block, number));
                for (to, negated) in
                    torre_compiler::ghost::ComponentGhosts::new(scheme, id).of_cell(at)
                {
                    let to = own.layout.element(row, to) as usize;
                    let value = if negated { value.neg() } else { value };
                    own.memory.set(to, value.to_f64());
                }
            }
            for (number, receiver) in self.points.receivers.iter().enumerate() {
                if receiver.stage != Some(stage) {
                    continue;
                }
                let row = own
                    .layout
                    .target_row(scheme, stage, phase, receiver.component);
                let element = own.layout.element(row, receiver.at) as usize;
                records.push(Recorded {
                    step: step - block,
                    receiver: number,
                    value: self.read(own, element),
                });
            }
        }
    }

    fn read<T: Real>(&self, own: &Stagewise<'_>, element: usize) -> T {
        let bits = own.memory.bits(element);
        T::from_f64(match T::PRECISION {
            Precision::F32 => f64::from(f32::from_bits(bits as u32)),
            Precision::F64 => f64::from_bits(bits),
        })
    }

    pub fn run(&self) -> Result<Report, String> {
        match self.scheme.precision {
            Precision::F32 => self.run_in::<f32>(),
            Precision::F64 => self.run_in::<f64>(),
        }
    }

    /// Compares two time blocks; an error where there are no towers, or no such time blocks.
    fn run_in<T: Real>(&self) -> Result<Report, String> {
        let Trial { scheme, seed, .. } = *self;
        let mut rng = Rng::new(seed);
        let mut own = Stagewise::new(scheme, &mut rng);
        let layout = own.layout.clone();
        let frame = Frame::new(scheme, &cones(scheme)).opened();
        let mut tiling = diamonds(&frame, self.pitches, 1 << 20);
        if let Some(slope) = self.slope {
            let cuts = tiling.levels.iter_mut().flat_map(|level| &mut level.cuts);
            cuts.for_each(|cut| cut.face.slope = slope);
        }
        let tiles = lower(scheme, &frame, &tiling).expect("fitting faces are legal");
        let sources: Vec<VolumeSource> = self.volumes.iter().map(|v| v.source).collect();
        let program = match self.packed && Numbering::packs(scheme) {
            true => TowerProgram::packed(scheme, &layout, &tiles, self.options),
            false => TowerProgram::new(scheme, &layout, &tiles, &sources, self.options),
        };
        let program = program.map_err(|reason| reason.to_string())?;
        let verified = verify(scheme, &layout, &program);
        verified.unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{scheme}"));
        let view = program.view(scheme, &layout);
        let start = values::<T>(&mut own);
        let mut interp = TowerInterp::new(&view.scheme, &view.layout, &program, &start);
        let mut report = Report::default();
        let steps = self.periods * program.towers.steps;
        if let Some(z_blocks) = program.block.lines.z_blocks() {
            let lean = z_blocks.of(steps * scheme.stages.len() as u64);
            lean.ok_or("z blocks lean too much")?;
        }
        for block in [0, steps] {
            let order = Order {
                width: rng.within(1, 4),
                overlap: rng.within(0, 3),
                head_start: rng.within(0, 4) as u32,
                partitions: rng.within(1, 3) as u32,
            };
            let list = tasks(scheme, &layout, &program.towers, self.periods, order);
            let mut list = list.ok_or("no such ring")?;
            let points = self.points.attach(
                scheme,
                &layout,
                &program.towers,
                self.periods,
                &mut list.tasks,
            );
            let points = points.ok_or("no such points")?;
            report.interior += points.interior;
            report.cut += points.cut;
            let amends = |task: &&Task| {
                let placement = &task.placement;
                let variant = program.towers.variants.all[placement.variant];
                !placement.interior.is_empty() && !variant.zones.is_empty()
            };
            report.amended += list.tasks.iter().filter(amends).count();
            let predicated = |task: &&Task| {
                let placement = &task.placement;
                let variant = program.towers.variants.all[placement.variant];
                !placement.interior.is_empty() && variant.predicated
            };
            report.predicated += list.tasks.iter().filter(predicated).count();
            let injected = Injected {
                points: &points,
                volumes: &self.volumes,
                wave: &wave,
            };
            let workers = rng.within(1, 6) as usize;
            let mut pick = |n: usize| rng.below(n as u64) as usize;
            let found = interp
                .time_block(
                    &list,
                    steps,
                    order.head_start,
                    &injected,
                    workers,
                    &mut pick,
                )
                .unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{scheme}"));
            let mut expected = Vec::new();
            for step in block..block + steps {
                self.step::<T>(&mut own, step, &mut expected, block);
            }
            let sorted = |mut records: Vec<Recorded<T>>| {
                records.sort_by_key(|r| (r.step, r.receiver));
                let bits = records.iter().map(|r| (r.step, r.receiver, r.value.bits()));
                bits.collect::<Vec<(u64, usize, u64)>>()
            };
            report.records += expected.len();
            assert_eq!(sorted(found), sorted(expected), "seed {seed}\n{scheme}");
        }
        let array = interp.array();
        let array = array.unwrap_or_else(|| panic!("seed {seed}: unknown values\n{scheme}"));
        let mut after = Stagewise::new(scheme, &mut Rng::new(seed));
        for (element, value) in array.iter().enumerate() {
            after.memory.set(element, value.to_f64());
        }
        let difference = after.difference(&own);
        assert_eq!(difference, None, "seed {seed}\n{scheme}");
        Ok(report)
    }
}

/// Random injections, receivers and volume sources.
pub(super) fn random_points(rng: &mut Rng, scheme: &Scheme) -> (Points, Vec<VolumeCells>) {
    let place = |rng: &mut Rng| {
        let stage = StageId(rng.below(scheme.stages.len() as u64) as u32);
        let updates = &scheme.stages[stage.index()].updates;
        let update = rng.pick(updates);
        let cells = update.region;
        let at = PerAxis::from_fn(|axis| {
            rng.within(cells[axis].lo, cells[axis].hi.max(cells[axis].lo + 1))
        });
        cells.contains(at).then_some((stage, update.target, at))
    };
    let mut points = Points {
        waves: 4,
        ..Points::default()
    };
    for _ in 0..rng.below(4) {
        if let Some((stage, component, at)) = place(rng) {
            points.injections.push(PointInjection {
                stage,
                component,
                at,
                profile: rng.float(),
                wave: rng.below(4) as u32,
            });
        }
    }
    for _ in 0..rng.below(3) {
        if let Some((_, component, at)) = place(rng) {
            points.receivers.push(Receiver {
                component,
                at,
                stage: torre_compiler::injection::last_stage(scheme, component, Some(at)),
            });
        }
    }
    let mut volumes = Vec::new();
    for wave in 0..rng.below(3) as u32 {
        let Some((stage, component, at)) = place(rng) else {
            continue;
        };
        let updates = &scheme.stages[stage.index()].updates;
        let all = updates.iter().filter(|u| u.target == component);
        let mut cells = BTreeMap::new();
        for update in all {
            torre_compiler::reference::for_each_index(update.region, |other| {
                let near = (other[Axis::INNER] - at[Axis::INNER]).abs() < 4;
                if near && other[Axis::OUTER] >= at[Axis::OUTER] {
                    let injection = Injection {
                        at: other,
                        profile: other[Axis::MIDDLE] as f64 * 0.125,
                        wave,
                    };
                    cells.insert(other.0, injection);
                }
            });
        }
        let source = VolumeSource {
            stage,
            component,
            adds: Adds::Product,
        };
        let hole = Interval::new(0, 0);
        volumes.push(VolumeCells {
            source,
            cells,
            hole,
        });
    }
    (points, volumes)
}

/// Updates add to the rows that they write, so that lanes of z blocks may keep the old values.
fn adding(scheme: &mut Scheme) {
    use torre_compiler::scheme::{Op, Read, Value};
    for update in scheme.stages.iter_mut().flat_map(|s| &mut s.updates) {
        let age = scheme.components[update.target.index()].time_levels - 1;
        let ops = &mut update.body.ops;
        ops.push(Op::Read(Read {
            component: update.target,
            offset: torre_compiler::lattice::Offset::splat(0),
            age,
        }));
        let old = Value(ops.len() as u32 - 1);
        ops.push(Op::Add(update.body.result, old));
        update.body.result = Value(ops.len() as u32 - 1);
    }
}

#[derive(Debug, Default)]
struct Tried {
    schemes: u64,
    interior: u64,
    cut: u64,
    records: usize,
    rings: u64,
    z_blocks: u64,
    volumes: usize,
    /// Towers whose interior periods have amendments.
    amended: usize,
    /// Schemes with packed rows.
    packed: u64,
}

#[test]
fn programs_of_random_schemes_give_the_bits_of_rows() {
    let mut tried = Tried::default();
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &Limits::TOWERS);
        if scheme.grid.dimensions() < 3 || scheme.grid.cells[Axis::INNER] < 6 {
            continue;
        }
        let z_blocks = seed % 3 == 0 && !scheme.grid.is_periodic(Axis::INNER);
        if z_blocks {
            adding(&mut scheme);
            let longer = 32 + rng.within(4, 30);
            lengthen(&mut scheme, Axis::INNER, longer);
        }
        make_room_for_towers(&mut rng, &mut scheme, 20);
        let amended = seed % 4 > 1;
        if amended {
            add_random_zones(&mut Rng::new(seed), &Limits::TOWERS, &mut scheme);
        }
        if torre_compiler::scheme::verify(&scheme).is_err() {
            continue;
        }
        let packed = !z_blocks && seed % 3 == 1;
        if packed {
            between_odd_and_even(&mut scheme);
        }
        let (points, mut volumes) = random_points(&mut rng, &scheme);
        if packed && Numbering::packs(&scheme) {
            volumes.clear();
        }
        let pitches = match seed % 4 {
            0 => tower_pitches(&mut rng),
            _ => [tower_pitch(&mut rng); 2],
        };
        let trial = Trial {
            scheme: &scheme,
            pitches,
            slope: None,
            periods: 1 + rng.below(3),
            options: Options {
                division: match z_blocks {
                    true => Division::ZBlocks(1),
                    false => Division::Shared(1),
                },
                ..Options::default()
            },
            packed,
            points,
            volumes,
            seed,
        };
        if let Ok(report) = trial.run() {
            tried.packed += u64::from(packed && Numbering::packs(&scheme));
            let ring = |axis: &Axis| scheme.grid.is_periodic(*axis);
            tried.schemes += 1;
            tried.interior += report.interior;
            tried.cut += report.cut;
            tried.records += report.records;
            tried.rings += u64::from([Axis::OUTER, Axis::MIDDLE].iter().any(ring));
            tried.z_blocks += u64::from(z_blocks);
            tried.volumes += trial.volumes.len();
            tried.amended += report.amended;
        }
    }
    let Tried {
        schemes,
        interior,
        cut,
        records,
        rings,
        z_blocks,
        volumes,
        amended,
        packed,
    } = tried;
    assert!(schemes > 15 && interior > 10 * schemes, "{tried:?}");
    assert!(cut > schemes && records as u64 > schemes, "{tried:?}");
    assert!(5 * rings > schemes && z_blocks > 4, "{tried:?}");
    assert!(5 * volumes as u64 > schemes, "{tried:?}");
    assert!(amended as u64 > schemes && packed > 2, "{tried:?}");
}
