//! Slabs of random schemes: no fault, every wait and every plane needed, and values that are right where they are
//! stored.

use super::{ORDER, forms, towers_along, towers_by};
use std::collections::{HashMap, HashSet};
use torre_compiler::cone::{Rational, cones};
use torre_compiler::lattice::{Axis, Interval, PerAxis, Region};
use torre_compiler::layout::Layout;
use torre_compiler::pipeline::*;
use torre_compiler::schedule::Frame;
use torre_compiler::scheme::{ComponentId, Located, Scheme, StageId};
use torre_compiler::testing::{Limits, Rng, lengthen, random_scheme};
use torre_compiler::tower::{Group, Task, reach};

/// A scheme with towers in groups, and slabs of them.
struct Case {
    scheme: Scheme,
    layout: Layout,
    footprints: Footprints,
    slabs: Vec<Slab>,
    passes: u64,
    in_flight: usize,
    piece: i64,
    devices: usize,
    states: StatePlaces,
}

impl Case {
    fn random(seed: u64) -> Option<Case> {
        let limits = Limits {
            dimensions: 3,
            components: 3,
            stages: 3,
            ops: 6,
            length: 12,
            width: 3,
            reach: 2,
        };
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits);
        if scheme.grid.dimensions() < 3 || scheme.grid.is_periodic(Axis::OUTER) {
            return None;
        }
        let frame = Frame::new(&scheme, &cones(&scheme)).opened();
        let way = if seed % 4 == 1 { -1 } else { 1 };
        let slopes = forms(way).map(|form| frame.slope(form));
        let doubled = slopes.map(|slope| (slope * Rational::whole(2)).ceil());
        let slope = Rational::new(doubled[0].max(doubled[1]).max(1), 2)?;
        let width = rng.within(1, 5);
        let around = 4 * width * i64::from(scheme.grid.is_periodic(Axis::MIDDLE));
        let by = (around - scheme.grid.cells[Axis::MIDDLE]).max(0);
        lengthen(&mut scheme, Axis::MIDDLE, by);
        lengthen(&mut scheme, Axis::OUTER, rng.within(8, 70));
        let (layout, towers) = towers_along(way, &scheme, slope, [width, width])?;
        let planes = rng.within(2, 9);
        let steps = rng.within(1, 2) as u64 * towers.steps;
        let mut footprints = Footprints::new(&scheme, &layout, &towers, ORDER, planes, steps);
        let blocks = rng.within(1, 3);
        let heights: Vec<u64> = (0..blocks)
            .map(|_| rng.within(1, 2) as u64 * towers.steps)
            .collect();
        let mut base = rng.within(4, 12);
        let mut slabs = footprints.slabs(&scheme, &layout, &heights, base)?;
        while let Err(NoLayout::Narrow { needed, .. }) = wide_enough(&slabs) {
            assert!(needed > base, "{seed}");
            base = needed;
            slabs = footprints.slabs(&scheme, &layout, &heights, base)?;
        }
        let held = footprints.held();
        for block in 0..blocks as usize {
            for _ in 0..rng.within(0, 2) {
                let lo = rng.within(held.lo, held.hi - 1);
                let gather = Interval::new(lo, rng.within(lo + 1, held.hi));
                for slab in &mut slabs {
                    slab.work.blocks[block].gathers.push(gather);
                }
            }
        }
        Some(Case {
            scheme,
            layout,
            footprints,
            slabs,
            passes: rng.within(1, 3) as u64,
            in_flight: rng.within(1, 3) as usize,
            piece: rng.within(1, 9),
            devices: rng.within(1, 3) as usize,
            states: match rng.within(0, 1) {
                0 => StatePlaces::InPlanes,
                _ => StatePlaces::Beside,
            },
        })
    }

    fn places(&self) -> i64 {
        let held = self.slabs.iter().map(|slab| slab.held.len());
        held.max().expect("a slab")
    }

    fn laid_out(&self, places: i64) -> Result<LaidOutSlabs, NoLayout> {
        let held = self.footprints.held();
        let builder = SlabBuilder::on(self.devices, held, places, self.in_flight, self.piece);
        let builder = builder.with_states(self.states);
        LaidOutSlabs::new(builder, &self.slabs, self.passes, self.footprints.way())
    }
}

fn cases(seeds: std::ops::Range<u64>) -> impl Iterator<Item = (u64, Case, LaidOutSlabs)> {
    seeds.filter_map(|seed| {
        let case = Case::random(seed)?;
        let laid_out = case.laid_out(case.places()).expect("enough places");
        Some((seed, case, laid_out))
    })
}

#[test]
fn slabs_of_random_schemes_have_no_fault() {
    let (mut tried, mut several, mut down, mut devices) = (0, 0, 0, 0);
    for (seed, case, laid_out) in cases(0..600) {
        assert_eq!(laid_out.check(), Ok(()), "seed {seed}");
        let places = case.places();
        let less = case.laid_out(places - 1);
        assert!(
            matches!(less, Err(NoLayout::TooFewPlaces { .. })),
            "seed {seed}"
        );
        tried += 1;
        several += usize::from(case.slabs.len() > 2);
        down += usize::from(case.footprints.way() < 0);
        devices += usize::from(case.devices > 1 && case.slabs.len() > case.devices);
    }
    assert!(
        tried > 40 && several > 15 && down > 10 && devices > 10,
        "{tried} {several} {down} {devices}"
    );
}

/// Without any one of the waits, some interleaving would be wrong.
#[test]
fn every_wait_of_slabs_is_needed() {
    let mut removed = 0;
    for (seed, _, laid_out) in cases(0..300) {
        for (index, op) in laid_out.ops.iter().enumerate() {
            for wait in 0..op.after.len() {
                let mut less = laid_out.clone();
                less.ops[index].after.remove(wait);
                let without = op.after[wait];
                assert!(
                    less.check().is_err(),
                    "seed {seed}: {op:?} without {without}"
                );
                removed += 1;
            }
        }
    }
    assert!(removed > 300, "{removed}");
}

/// With any one plane or group less, or one that is elsewhere, something is wrong.
#[test]
fn every_plane_and_group_of_slabs_is_needed() {
    let mut removed = 0;
    for (seed, _, laid_out) in cases(0..300) {
        for (index, op) in laid_out.ops.iter().enumerate() {
            let less = |planes: Interval| Interval::new(planes.lo + 1, planes.hi);
            let mut changed = laid_out.clone();
            changed.ops[index].action = match op.action {
                Action::Load { planes } => Action::Load {
                    planes: less(planes),
                },
                Action::Store { planes } => Action::Store {
                    planes: less(planes),
                },
                Action::Gather {
                    block,
                    output,
                    planes,
                } => Action::Gather {
                    block,
                    output,
                    planes: less(planes),
                },
                Action::Run { block, group } => Action::Run {
                    block,
                    group: group + 1,
                },
                Action::Slide { .. } => panic!("{op:?}"),
            };
            // Planes that are loaded beyond the base for a group as a whole may be touched by no tower.
            let slab = &laid_out.slabs[op.pass as usize];
            let mut groups = slab.work.blocks.iter().flat_map(|b| b.groups.iter());
            let matters = match op.action {
                Action::Load { planes } => {
                    slab.base.contains(planes.lo) || groups.any(|g| g.touched.contains(planes.lo))
                }
                _ => true,
            };
            assert!(changed.check().is_err() || !matters, "seed {seed}: {op:?}");
            removed += 1;
        }
        let mut less = laid_out.clone();
        for slab in &mut less.slabs {
            let blocks = slab.needed.iter_mut().filter(|needed| !needed.is_empty());
            for needed in blocks {
                *needed = Interval::new(needed.lo - 1, needed.hi);
            }
        }
        assert!(less.check().is_err(), "seed {seed}");
    }
    assert!(removed > 500, "{removed}");
}

/// A location of a row of some component.
type Place = (Group, u32);

/// The number of the stage that wrote a value last, or nothing where the value is not right.
type Values = HashMap<Place, Option<i64>>;

/// Goes through the events of a pass, of all groups or of the groups of a slab.
struct Execution<'a> {
    scheme: &'a Scheme,
    layout: &'a Layout,
    footprints: &'a Footprints,
}

impl Execution<'_> {
    /// Which groups run an event of a block, by stage, update and row.
    fn events(&self, steps: u64) -> HashMap<(i64, usize, Group), i64> {
        let towers = self.footprints.towers();
        let grouping = self.footprints.grouping();
        let list = self
            .footprints
            .tasks(self.scheme, self.layout, steps)
            .expect("groups");
        let per_period = towers.per_period();
        let mut events = HashMap::new();
        for Task { placement, .. } in &list.tasks {
            let group = grouping.number(placement.origin.x);
            let alignment = placement.alignment;
            for period in placement.periods.clone() {
                let origin = placement.origin + towers.advance * period as i64;
                for (n, stage) in towers.alignments[alignment].stages.iter().enumerate() {
                    let updates = &self.scheme.stages[n % self.scheme.stages.len()].updates;
                    for own in &stage.updates {
                        let depths = towers.depths(alignment, n, *own).expect("a row");
                        if (0..2).any(|c| placement.limits[c].is_some_and(|l| depths[c] >= l)) {
                            continue;
                        }
                        let mut at = origin + own.at;
                        if let Some(around) = towers.rings.cells[1] {
                            at.y = at.y.rem_euclid(around);
                        }
                        let region: Region = updates[own.update].region;
                        if region[Axis::OUTER].contains(at.x) && region[Axis::MIDDLE].contains(at.y)
                        {
                            let stage = period as i64 * per_period + n as i64;
                            events.insert((stage, own.update, at), group);
                        }
                    }
                }
            }
        }
        events
    }

    fn stored(&self, id: ComponentId, at: Group) -> Option<Group> {
        let position = self.scheme.component(id).position;
        let z = self.scheme.grid.live(position)[Axis::INNER].lo;
        match self.scheme.grid.resolve(position, PerAxis([at.x, at.y, z])) {
            Located::Stored { at, .. } => Some(Group::new(at[Axis::OUTER], at[Axis::MIDDLE])),
            Located::Zero => None,
        }
    }

    /// Runs the events of a stage that belong to some groups: each counts its reads as right if all of them were
    /// written as in a run of all groups.
    fn stage(
        &self,
        number: i64,
        step: u64,
        groups: &dyn Fn(usize, Group) -> bool,
        truth: &Values,
        values: &mut Values,
    ) {
        let stages = self.scheme.stages.len() as i64;
        let stage = StageId((number % stages) as u32);
        let phase = (step % u64::from(self.scheme.phases().max(1))) as u32;
        let mut written = Vec::new();
        for (index, update) in self.scheme.stages[stage.index()].updates.iter().enumerate() {
            let [outer, middle, inner] = update.region.0;
            if inner.is_empty() {
                continue;
            }
            let row = self
                .layout
                .target_row(self.scheme, stage, phase, update.target);
            for x in outer.lo..outer.hi {
                for y in middle.lo..middle.hi {
                    let at = Group::new(x, y);
                    if !groups(index, at) {
                        continue;
                    }
                    let right = update.body.reads().all(|read| {
                        let there = self.stored(read.component, at + reach(read));
                        there.is_none_or(|there| {
                            let row = self.layout.read_row(self.scheme, stage, phase, read);
                            let of = |values: &Values| values.get(&(there, row.0)).copied();
                            of(values) == of(truth)
                        })
                    });
                    let step = (step as i64) * stages + number % stages;
                    written.push(((at, row.0), right.then_some(step)));
                }
            }
        }
        values.extend(written);
    }
}

/// The stored values are the values of a run of all groups: the groups and the planes of a slab are enough.
#[test]
fn slabs_store_what_is_right() {
    let (mut tried, mut wrong) = (0, 0);
    for (seed, case, laid_out) in cases(0..250) {
        let execution = Execution {
            scheme: &case.scheme,
            layout: &case.layout,
            footprints: &case.footprints,
        };
        let along = |x: i64| case.footprints.along(Interval::new(x, x + 1)).lo;
        let heights = case.slabs[0].work.blocks.iter().map(|block| block.steps);
        let heights: Vec<u64> = heights.collect();
        let known: HashSet<u64> = heights.iter().copied().collect();
        let events: HashMap<u64, _> = known
            .into_iter()
            .map(|steps| (steps, execution.events(steps)))
            .collect();
        let stages = case.scheme.stages.len() as i64;
        let mut truth = Values::new();
        // Every place that is ever written, as it is at first.
        for step in 0..4 {
            for number in 0..stages {
                execution.stage(number, step, &|_, _| true, &HashMap::new(), &mut truth);
            }
        }
        for value in truth.values_mut() {
            *value = Some(-1);
        }
        let start = truth.clone();
        let each = laid_out.slabs.iter().filter(|slab| slab.pass == 0);
        let mut slabs: Vec<(&Slab, Values)> = each
            .map(|slab| {
                let load = |(place, value): (&Place, &Option<i64>)| {
                    let loaded = slab.loaded.contains(along(place.0.x));
                    (*place, value.filter(|_| loaded))
                };
                (slab, start.iter().map(load).collect())
            })
            .collect();
        let mut step = 0;
        for (block, steps) in heights.iter().enumerate() {
            let of = &events[steps];
            for number in 0..*steps as i64 * stages {
                let now = step + (number / stages) as u64;
                for (slab, values) in &mut slabs {
                    let own = &slab.work.blocks[block];
                    let runs = |update: usize, at: Group| {
                        let group = of.get(&(number, update, at)).expect("a tower");
                        own.group(*group).is_some()
                    };
                    execution.stage(number, now, &runs, &truth, values);
                }
                let before = truth.clone();
                execution.stage(number, now, &|_, _| true, &before, &mut truth);
            }
            step += steps;
        }
        for (slab, values) in &slabs {
            for (place, value) in values {
                let right = truth.get(place) == Some(value);
                if slab.base.contains(along(place.0.x)) {
                    assert!(right, "seed {seed}: {place:?} of {:?}", slab.base);
                }
                wrong += usize::from(!right);
            }
        }
        tried += 1;
    }
    assert!(tried > 15 && wrong > 1000, "{tried} {wrong}");
}

/// Slabs of FDTD(4,2) need three planes for each step on both sides, and compute the steps between them.
#[test]
fn slabs_have_the_planes_of_the_formula() {
    use torre_compiler::scheme::Precision;
    use torre_compiler::testing::maxwell;
    let scheme = maxwell(4, Precision::F32, [600, 20, 2]);
    let (layout, towers) = towers_by(&scheme, Rational::ONE, [6, 6]).expect("towers");
    let mut footprints = Footprints::new(&scheme, &layout, &towers, ORDER, 12, 8);
    let slabs = footprints.slabs(&scheme, &layout, &[8; 3], 150);
    let slabs = slabs.expect("groups");
    assert_eq!(slabs.len(), 4);
    let inner = &slabs[1];
    assert_eq!(inner.base.len(), 150);
    let halo = 3 * 24;
    let by = [
        inner.base.lo - inner.loaded.lo,
        inner.loaded.hi - inner.base.hi,
    ];
    assert!(by.iter().all(|by| (halo..=halo + 1).contains(by)), "{by:?}");
    // Towers go three planes up in a step, and so do the planes that they touch above.
    assert!(inner.held.hi - inner.loaded.hi <= 3 * 8 + 12 + 4);
    let ops: Vec<Op> = {
        let places = slabs.iter().map(|slab| slab.held.len()).max().expect("one");
        let builder = SlabBuilder::new(footprints.held(), places, 3, 12);
        let laid_out = LaidOutSlabs::new(builder, &slabs, 2, 1).expect("room");
        assert_eq!(laid_out.check(), Ok(()));
        laid_out.ops
    };
    let runs = ops
        .iter()
        .filter(|op| matches!(op.action, Action::Run { .. }));
    let groups = |slab: &Slab| {
        let blocks = slab.work.blocks.iter();
        blocks.map(|block| block.groups.len()).sum::<usize>()
    };
    assert_eq!(runs.count(), 2 * slabs.iter().map(groups).sum::<usize>());
    // On average a block of an inner slab computes the base and half of the halo on both sides, some groups more.
    let mean = groups(inner) as f64 * 12.0 / 3.0;
    assert!(
        mean < 150.0 + halo as f64 + 3.0 * 8.0 + 2.0 * 12.0,
        "{mean}"
    );
    let narrow = footprints
        .slabs(&scheme, &layout, &[8; 3], 60)
        .expect("groups");
    let refused = wide_enough(&narrow);
    assert!(
        matches!(refused, Err(NoLayout::Narrow { base: 60, .. })),
        "{refused:?}"
    );
}
