//! Pipelines of random schemes: no fault, exact sizes, and every wait and every plane needed.

mod events;
mod lower;
mod pictures;
mod rotated;
mod slabs;
mod stripes;

use torre_compiler::cone::{Form, Rational, cones};
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::layout::Layout;
use torre_compiler::pipeline::*;
use torre_compiler::schedule::Frame;
use torre_compiler::scheme::{Precision, Scheme};
use torre_compiler::testing::{Limits, Rng, diamonds, lengthen, maxwell, random_scheme};
use torre_compiler::tile::lower;
use torre_compiler::tower::{Located, Numbering, Order, Towers};

pub(super) const ORDER: Order = Order {
    width: 4,
    overlap: 2,
    head_start: 0,
    partitions: 1,
};

/// Places of a buffer that has room for everything.
const LARGE: i64 = 1 << 40;

/// The forms of faces whose towers move up the outer axis (1) or down (-1).
pub(super) fn forms(way: i32) -> [Form; 2] {
    [[way, 1, 0], [way, -1, 0]].map(PerAxis)
}

/// The towers of a scheme by two faces with at least some slope, and pitches; `None` where there are none.
pub(super) fn towers_by(
    scheme: &Scheme,
    slope: Rational,
    pitches: [i64; 2],
) -> Option<(Layout, Towers)> {
    towers_along(1, scheme, slope, pitches)
}

/// The same of towers that move up the outer axis (1) or down (-1).
pub(super) fn towers_along(
    way: i32,
    scheme: &Scheme,
    slope: Rational,
    pitches: [i64; 2],
) -> Option<(Layout, Towers)> {
    // Around a ring planes are counted on in windows alone.
    let layout = match scheme.grid.is_periodic(Axis::OUTER) {
        true => Layout::for_window(scheme).ok()?,
        false => Layout::for_gpu(scheme).ok()?,
    };
    let frame = Frame::new(scheme, &cones(scheme)).opened();
    let mut tiling = diamonds(&frame, pitches.map(Rational::whole), 1 << 20);
    for (cut, form) in tiling.levels[0].cuts.iter_mut().zip(forms(way)) {
        cut.face = frame.fitting(form);
        cut.face.slope = cut.face.slope.max(slope);
    }
    let tiles = lower(scheme, &frame, &tiling).ok()?;
    let towers = Towers::new(scheme, &layout, &tiles, Numbering::Grid).ok()?;
    towers.waits_reach_all().then_some((layout, towers))
}

/// A scheme with towers in groups, and passes of them.
struct Case {
    scheme: Scheme,
    layout: Layout,
    footprints: Footprints,
    window: Window,
    passes: Vec<Pass>,
}

impl Case {
    /// Such a case, if the scheme has towers that move along the outer axis.
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
        if scheme.grid.dimensions() < 3 {
            return None;
        }
        let ring = scheme.grid.is_periodic(Axis::OUTER);
        let frame = Frame::new(&scheme, &cones(&scheme)).opened();
        let way = if seed % 4 == 1 { -1 } else { 1 };
        let slopes = forms(way).map(|form| frame.slope(form));
        let doubled = slopes.map(|slope| (slope * Rational::whole(2)).ceil());
        let slope = Rational::new(doubled[0].max(doubled[1]).max(1), 2)?;
        let width = rng.within(2, 5);
        let other = if rng.once_in(4) {
            rng.within(2, 5)
        } else {
            width
        };
        let around = if scheme.grid.is_periodic(Axis::MIDDLE) {
            4 * width.max(other)
        } else {
            0
        };
        let by = (around - scheme.grid.cells[Axis::MIDDLE]).max(0);
        lengthen(&mut scheme, Axis::MIDDLE, by);
        let more = if ring {
            rng.within(30, 90)
        } else {
            rng.within(8, 40)
        };
        lengthen(&mut scheme, Axis::OUTER, more);
        let (layout, towers) = towers_along(way, &scheme, slope, [width, other])?;
        let planes = rng.within(2, 14);
        let steps = rng.within(1, 3) as u64 * towers.steps;
        let mut footprints = Footprints::new(&scheme, &layout, &towers, ORDER, planes, steps);
        let in_flight = rng.within(1, 4) as usize;
        let resident = rng.once_in(4) && !ring;
        let blocks = if resident { 6 } else { in_flight as i64 };
        let devices = match resident || rng.once_in(2) {
            true => 1,
            false => rng.within(2, 3),
        };
        let mut passes = Vec::new();
        let held = footprints.held();
        for _ in 0..rng.within(devices, 2 * devices + 1) {
            let periods = |rng: &mut Rng| rng.within(1, 3) as u64 * towers.steps;
            let heights: Vec<u64> = (0..rng.within(1, blocks))
                .map(|_| periods(&mut rng))
                .collect();
            let mut pass = footprints.pass(&scheme, &layout, &heights)?;
            for block in pass.blocks.iter_mut().filter(|_| !ring) {
                for _ in 0..rng.within(0, 2) {
                    let lo = rng.within(held.lo, held.hi - 1);
                    let hi = if rng.once_in(2) {
                        lo + 1
                    } else {
                        rng.within(lo + 1, held.hi)
                    };
                    block.gathers.push(Interval::new(lo, hi));
                }
            }
            passes.push(pass);
        }
        let loaded = passes
            .iter()
            .filter_map(|pass| Some(pass.ring_part?.loaded));
        let mut window = Window {
            planes: loaded.reduce(Interval::hull).unwrap_or(held),
            ring: footprints.ring(),
            buffer: match seed.is_multiple_of(3) {
                true => DeviceBuffer::Sliding { places: LARGE },
                false => DeviceBuffer::Circular { places: LARGE },
            },
            devices: devices as usize,
            in_flight,
            ahead: rng.within(0, 2),
            spread: rng.once_in(2),
        };
        let way = footprints.way();
        let large = LaidOut::new(window.clone(), passes.clone(), way);
        if ring && large == Err(NoLayout::Stuck) {
            // Its ring is shorter than a window.
            return None;
        }
        let large = large.expect("a large buffer");
        window.buffer = match resident {
            true => DeviceBuffer::Whole,
            false => {
                let places = large.peak + rng.within(0, 2) * rng.within(0, 10);
                window.buffer.with_places(places)
            }
        };
        Some(Case {
            scheme,
            layout,
            footprints,
            window,
            passes,
        })
    }

    fn set_places(&mut self, places: i64) {
        self.window.buffer = self.window.buffer.with_places(places);
    }

    fn laid_out(&self) -> Result<LaidOut, NoLayout> {
        let (window, passes) = (self.window.clone(), self.passes.clone());
        LaidOut::new(window, passes, self.footprints.way())
    }

    fn operations(&self) -> Vec<Op> {
        self.laid_out().expect("enough places").ops
    }

    fn check(&self, ops: &[Op]) -> Result<(), Fault> {
        check(&self.window, &self.passes, ops)
    }
}

/// Cases of some seeds.
fn cases(seeds: std::ops::Range<u64>) -> impl Iterator<Item = (u64, Case)> {
    seeds.filter_map(|seed| Some((seed, Case::random(seed)?)))
}

#[test]
fn pipelines_of_random_schemes_have_no_fault() {
    let (mut tried, mut slides, mut down, mut several) = (0, 0, 0, 0);
    let (mut around, mut rings, mut rings_down) = (0, 0, 0);
    for (seed, case) in cases(0..900) {
        rings += usize::from(case.window.ring.is_some());
        let ops = case.operations();
        assert_eq!(case.check(&ops), Ok(()), "seed {seed}");
        tried += 1;
        let slide = |op: &Op| matches!(op.action, Action::Slide { .. });
        slides += ops.iter().filter(|op| slide(op)).count();
        down += usize::from(case.footprints.way() < 0);
        rings_down += usize::from(case.footprints.way() < 0 && case.window.ring.is_some());
        several += usize::from(case.window.devices > 1);
        let again = |op: &Op| matches!(op.action, Action::Load { .. }) && !op.after.is_empty();
        around += usize::from(case.window.is_circular() && ops.iter().any(again));
    }
    assert!(
        tried > 60 && slides > 20 && down > 20 && several > 20 && around > 20 && rings > 20,
        "{tried} {slides} {down} {several} {around} {rings}"
    );
    assert!(rings_down > 5, "{rings_down}");
}

/// Of the places that are needed, one less is found when the list is made.
#[test]
fn buffers_are_as_small_as_possible() {
    let mut tried = 0;
    for (seed, mut case) in cases(0..500) {
        if case.window.places().is_none() {
            continue;
        }
        case.set_places(LARGE);
        let peak = case.laid_out().expect("a large buffer").peak;
        for (places, fits) in [(peak, true), (peak - 1, false)] {
            case.set_places(places);
            assert_eq!(case.laid_out().is_ok(), fits, "seed {seed}");
        }
        tried += 1;
    }
    assert!(tried > 30, "{tried}");
}

/// Planes that are loaded take the places of others, so a list for a larger buffer is wrong for the least one.
#[test]
fn circular_buffers_are_not_smaller_than_they_say() {
    let (mut found, mut tried) = (0, 0);
    for (seed, mut case) in cases(0..500) {
        let Some(places) = case.window.places().filter(|_| case.window.is_circular()) else {
            continue;
        };
        case.set_places(LARGE);
        let peak = case.laid_out().expect("a large buffer").peak;
        case.set_places(places + 8);
        let ops = case.operations();
        assert_eq!(case.check(&ops), Ok(()), "seed {seed}");
        let slide = |op: &Op| matches!(op.action, Action::Slide { .. });
        assert!(!ops.iter().any(slide), "seed {seed}");
        case.set_places(peak - 1);
        assert!(case.check(&ops).is_err(), "seed {seed}");
        // Where a load waits for the users of a place, it would not wait for enough with a place less.
        case.set_places(places + 7);
        found += usize::from(case.check(&ops).is_err());
        tried += 1;
    }
    assert!(tried > 20 && found > 5, "{found} of {tried}");
}

/// Without any one of the waits, some interleaving would be wrong.
#[test]
fn every_wait_is_needed() {
    let mut removed = 0;
    for (seed, case) in cases(0..500) {
        let ops = case.operations();
        for (index, op) in ops.iter().enumerate() {
            for wait in 0..op.after.len() {
                let mut less = ops.clone();
                less[index].after.remove(wait);
                let found = case.check(&less);
                assert!(
                    found.is_err(),
                    "seed {seed}: {op:?} without {}",
                    op.after[wait]
                );
                removed += 1;
            }
        }
    }
    assert!(removed > 300, "{removed}");
}

/// Without any one of the planes that are moved, or with one that is elsewhere, something is wrong.
#[test]
fn every_plane_is_needed() {
    let mut removed = 0;
    for (seed, case) in cases(0..500) {
        let ops = case.operations();
        for (index, op) in ops.iter().enumerate() {
            let less = |planes: Interval| Interval::new(planes.lo + 1, planes.hi);
            let mut changed = ops.clone();
            changed[index].action = match op.action {
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
                Action::Slide { places, by } => Action::Slide {
                    places: less(places),
                    by,
                },
                Action::Run { block, group } => Action::Run {
                    block,
                    group: group + 1,
                },
            };
            // A ghost plane that no update writes need not be stored, nor loaded or moved for its own sake.
            let plane = match op.action {
                Action::Load { planes } | Action::Store { planes } => Some(planes.lo),
                _ => None,
            };
            let matters = plane.is_none_or(|plane| {
                let blocks = case.passes[op.pass as usize].blocks.iter();
                let mut groups = blocks.flat_map(|b| b.groups.iter());
                groups.any(|group| group.written.contains(plane))
            });
            let slides = matches!(op.action, Action::Slide { .. });
            let found = case.check(&changed);
            assert!(found.is_err() || !matters || slides, "seed {seed}: {op:?}");
            removed += usize::from(found.is_err());
        }
    }
    assert!(removed > 500, "{removed}");
}

/// The window of FDTD(4,2): passes of 6 time blocks of 16 steps in groups of 16 columns.
#[test]
fn windows_have_the_planes_of_the_formula() {
    let scheme = maxwell(4, Precision::F32, [1400, 30, 2]);
    let (layout, towers) = towers_by(&scheme, Rational::ONE, [6, 6]).expect("towers");
    let (height, columns, in_flight) = (16, 16, 6);
    // Cells that a tower moves in a step, and of a group.
    let (moves, group) = (3, 3 * columns);
    let mut footprints = Footprints::new(&scheme, &layout, &towers, ORDER, group, 16);
    let heights = [height as u64; 6];
    let pass = footprints.pass(&scheme, &layout, &heights).expect("groups");
    let block = &pass.blocks[1];
    let lags = block.needs[0]
        .iter()
        .zip(block.first..)
        .map(|(need, own)| need - own);
    assert_eq!(lags.max(), Some((columns - 1 + height) / columns));
    for (spread, offset) in [(true, 3 * (in_flight - 1) / 2), (false, in_flight - 1)] {
        let window = Window {
            planes: footprints.held(),
            ring: None,
            buffer: match spread {
                true => DeviceBuffer::Circular { places: LARGE },
                false => DeviceBuffer::Sliding { places: LARGE },
            },
            devices: 1,
            in_flight: in_flight as usize,
            ahead: 0,
            spread,
        };
        assert_eq!(window.offsets(&pass).last(), Some(&offset));
        let passes = vec![pass.clone()];
        let laid_out = LaidOut::new(window, passes, 1).expect("a large buffer");
        assert_eq!(laid_out.check(), Ok(()));
        let planes = moves * height + group * (1 + offset) + 4;
        assert_eq!(laid_out.peak, planes, "spread {spread}");
    }
}

/// A window takes no less time than its launches, nor than its copies one way, and little more than the longer of both
/// where there is room; planes that slide make everything wait.
#[test]
fn windows_take_as_long_as_launches_or_copies() {
    let scheme = maxwell(4, Precision::F32, [1400, 30, 2]);
    let (layout, towers) = towers_by(&scheme, Rational::ONE, [6, 6]).expect("towers");
    let mut footprints = Footprints::new(&scheme, &layout, &towers, ORDER, 24, 8);
    let pass = footprints.pass(&scheme, &layout, &[8; 4]).expect("groups");
    let mut time = |circular: bool, plane: f64| {
        let mut window = Window {
            planes: footprints.held(),
            ring: None,
            buffer: match circular {
                true => DeviceBuffer::Circular { places: LARGE },
                false => DeviceBuffer::Sliding { places: LARGE },
            },
            devices: 1,
            in_flight: 4,
            ahead: 1,
            spread: !circular,
        };
        let least = footprints.least_places(&scheme, &layout, &[8; 4], &window, &[]);
        let least = least.expect("a large buffer");
        window.buffer = window.buffer.with_places(least + 80);
        let passes = vec![pass.clone(); 3];
        let laid_out = LaidOut::new(window, passes, footprints.way()).expect("enough places");
        assert_eq!(laid_out.check(), Ok(()));
        laid_out.time(&WindowSeconds {
            launch: &|_, _| 1.0,
            tail: 0.1,
            plane,
            moved: 0.02,
            signal: 0.01,
        })
    };
    let launches = 3.0 * pass.blocks.iter().map(|b| b.groups.len()).sum::<usize>() as f64;
    let planes = 3.0 * layout.visible(Axis::OUTER).len() as f64;
    for plane in [0.01, 0.1, 1.0] {
        let [around, slides] = [true, false].map(|circular| time(circular, plane));
        let least = launches.max(planes * plane);
        assert!(
            around >= least && around < 1.15 * least,
            "{plane} {around} {least}"
        );
        assert!(slides > around, "{plane} {slides} {around}");
    }
}

/// A group needs the latest group that any of its towers needs.
#[test]
fn groups_need_as_much_as_any_of_their_towers() {
    let mut groups = 0;
    for mut case in (0..40).filter_map(Case::random) {
        let towers = case.footprints.towers().clone();
        let grouping = case.footprints.grouping();
        for block in case.passes.iter().flat_map(|pass| &pass.blocks) {
            let list = case
                .footprints
                .tasks(&case.scheme, &case.layout, block.steps)
                .expect("groups");
            let height = case
                .footprints
                .height(&case.scheme, &case.layout, block.steps)
                .expect("groups");
            let counts: Vec<usize> = (0..list.launches.len())
                .map(|launch| list.of_launch(launch).len())
                .collect();
            assert_eq!((&height.towers, height.all), (&counts, list.tasks.len()));
            let heights = [block.steps; 2];
            let pass = case.footprints.pass(&case.scheme, &case.layout, &heights);
            let needs = pass.expect("groups").blocks[1].needs[0].clone();
            assert_eq!(needs.len(), list.launches.len());
            let stages = (block.steps as usize * case.scheme.stages.len()) as i64;
            for (launch, found) in needs.iter().enumerate() {
                let own = list.tasks[list.of_launch(launch)].iter();
                let need = own.map(|task| {
                    let origin = towers.last_before(
                        Located {
                            alignment: task.placement.alignment,
                            origin: task.placement.origin,
                        },
                        stages,
                        0,
                    );
                    grouping.number(origin)
                });
                assert_eq!(Some(*found), need.max());
                groups += 1;
            }
        }
    }
    assert!(groups > 50, "{groups}");
}
