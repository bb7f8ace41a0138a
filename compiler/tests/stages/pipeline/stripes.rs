//! Stripes of random schemes: no fault, and every wait and every plane needed.

use super::{ORDER, towers_by};
use torre_compiler::cone::{Rational, cones};
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::pipeline::*;
use torre_compiler::schedule::Frame;
use torre_compiler::scheme::Precision;
use torre_compiler::testing::{Limits, Rng, lengthen, maxwell, random_scheme};
use torre_compiler::tower::last_column;

/// Stripes of a scheme, and a pass over them.
struct Case {
    stripes: Stripes,
    pass: StripedPass,
    /// The last column of the highest time block.
    last: i64,
}

impl Case {
    /// Such a case, if the scheme has towers that move along the outer axis.
    fn random(seed: u64, widths: [i64; 2]) -> Option<Case> {
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
        let open = |axis| !scheme.grid.is_periodic(axis);
        if scheme.grid.dimensions() < 3 || !open(Axis::OUTER) || !open(Axis::MIDDLE) {
            return None;
        }
        let frame = Frame::new(&scheme, &cones(&scheme)).opened();
        let slopes = [[1, 1, 0], [1, -1, 0]].map(|form| frame.slope(PerAxis(form)));
        let doubled = slopes.map(|slope| (slope * Rational::whole(2)).ceil());
        let slope = Rational::new(doubled[0].max(doubled[1]).max(1), 2)?;
        let width = rng.within(widths[0], widths[1]);
        let count = rng.within(2, 3);
        lengthen(&mut scheme, Axis::OUTER, rng.within(8, 30));
        lengthen(&mut scheme, Axis::MIDDLE, count * rng.within(16, 30));
        let (layout, towers) = towers_by(&scheme, slope, [width, width])?;
        let cells = scheme.grid.cells[Axis::MIDDLE];
        let borders: Vec<i64> = (1..count).map(|n| n * cells / count).collect();
        let columns = rng.within(1, 4);
        let heights: Vec<u64> = (0..rng.within(1, 6))
            .map(|_| rng.within(1, 3) as u64 * towers.steps)
            .collect();
        let most = 3 * towers.steps;
        let stripes = Stripes::new(&scheme, &layout, &towers, ORDER, columns, &borders, most);
        let mut stripes = stripes.ok()?;
        let in_flight = rng.within(1, 4) as usize;
        let pass = stripes.pass(&scheme, &layout, &heights, in_flight)?;
        Some(Case {
            stripes,
            pass,
            last: last_column(&scheme, &layout, &towers, 3)?,
        })
    }
}

fn cases(seeds: std::ops::Range<u64>) -> impl Iterator<Item = (u64, Case)> {
    seeds.filter_map(|seed| Some((seed, Case::random(seed, [2, 4])?)))
}

/// Launches of towers that are as narrow as the distance of rows may access no planes.
#[test]
fn stripes_of_narrow_towers_have_no_fault() {
    let (mut tried, mut idle) = (0, 0);
    for seed in 0..600 {
        let Some(Case { pass, .. }) = Case::random(seed, [1, 1]) else {
            continue;
        };
        let ops = pass.operations().expect("each block goes on");
        assert_eq!(check_stripes(&pass, &ops), Ok(()), "seed {seed}");
        tried += 1;
        idle += usize::from(ops.iter().any(|op| match op.action {
            StripeAction::Run {
                block,
                stripe,
                launch,
            } => {
                let planes = pass.blocks[block].stripes[stripe].planes(launch);
                planes.is_some_and(|planes| planes.touched.is_empty())
            }
            StripeAction::Send { .. } => false,
        }));
    }
    assert!(tried > 20 && idle > 2, "{tried} {idle}");
}

#[test]
fn stripes_of_random_schemes_have_no_fault() {
    let (mut tried, mut three, mut sends) = (0, 0, 0);
    for (seed, case) in cases(0..600) {
        let Case {
            stripes,
            pass,
            last,
        } = case;
        let ops = pass.operations().expect("each block goes on");
        assert_eq!(check_stripes(&pass, &ops), Ok(()), "seed {seed}");
        tried += 1;
        three += usize::from(stripes.count() > 2);
        let send = |op: &&StripeOp| matches!(op.action, StripeAction::Send { .. });
        sends += ops.iter().filter(send).count();
        for device in 0..stripes.count() - 1 {
            assert!(!stripes.overlap(device).is_empty(), "seed {seed}");
        }
        // The last group of the highest time block has all of its columns but one at most.
        let begin = last + 2 - stripes.columns();
        let whole = stripes.group(begin) == stripes.group(last);
        assert!(whole && stripes.group(last + 2) > stripes.group(last));
    }
    assert!(
        tried > 20 && three > 5 && sends > 100,
        "{tried} {three} {sends}"
    );
}

/// Without any one of the waits, some interleaving would be wrong; without any one of the planes that are sent, too.
#[test]
fn every_wait_and_every_plane_is_needed() {
    let (mut waits, mut planes) = (0, 0);
    for (seed, Case { pass, .. }) in cases(0..200) {
        let ops = pass.operations().expect("each block goes on");
        for (index, op) in ops.iter().enumerate() {
            for wait in 0..op.after.len() {
                let mut less = ops.clone();
                less[index].after.remove(wait);
                let found = check_stripes(&pass, &less);
                assert!(
                    found.is_err(),
                    "seed {seed}: {op:?} without {}",
                    op.after[wait]
                );
                waits += 1;
            }
            let StripeAction::Send {
                from,
                to,
                planes: sent,
                ..
            } = op.action
            else {
                continue;
            };
            for (cut, plane) in [([1, 0], sent.lo), ([0, 1], sent.hi - 1)] {
                // Planes that are sent once more may not have been used in between.
                let again = ops[index + 1..].iter().any(|op| match op.action {
                    StripeAction::Send {
                        from: other,
                        to: there,
                        planes,
                        ..
                    } => (other, there) == (from, to) && planes.contains(plane),
                    StripeAction::Run { .. } => false,
                });
                let mut less = ops.clone();
                if let StripeAction::Send { planes, .. } = &mut less[index].action {
                    *planes = Interval::new(sent.lo + cut[0], sent.hi - cut[1]);
                }
                let found = check_stripes(&pass, &less);
                assert!(found.is_err() || again, "seed {seed}: {op:?}");
                planes += usize::from(found.is_err());
            }
        }
    }
    assert!(waits > 200 && planes > 100, "{waits} {planes}");
}

/// The stripes of FDTD(4,2) on three devices: overlaps are as wide as a border and the reach of towers, and the least
/// buffers have the size of a stripe.
#[test]
fn overlaps_are_no_wider_than_borders() {
    let scheme = maxwell(4, Precision::F32, [200, 300, 2]);
    let (layout, towers) = towers_by(&scheme, Rational::ONE, [6, 6]).expect("towers");
    let columns = 8;
    let borders = [100, 200];
    let stripes = Stripes::new(&scheme, &layout, &towers, ORDER, columns, &borders, 8);
    let stripes = stripes.expect("wide stripes");
    for device in 0..2 {
        let overlap = stripes.overlap(device).len();
        let border = 3 * columns;
        assert!((border + 1..=border + 16).contains(&overlap), "{overlap}");
    }
    assert!(
        stripes.widest() <= 100 + 2 * 24 + 16,
        "{}",
        stripes.widest()
    );
    let own: Vec<Interval> = (0..3).map(|n| stripes.own(n, &layout)).collect();
    let all = layout.visible(Axis::MIDDLE);
    assert_eq!((own[0].lo, own[2].hi), (all.lo, all.hi));
    assert!(own.windows(2).all(|pair| pair[0].hi == pair[1].lo));
    let narrow = Stripes::new(&scheme, &layout, &towers, ORDER, columns, &[100, 110], 8);
    assert!(matches!(narrow, Err(NoStripes::Narrow { .. })));
}
