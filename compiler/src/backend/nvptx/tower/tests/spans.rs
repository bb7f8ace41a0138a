//! Lines that are cut into spans: same bits as row kernels stage by stage.

use super::*;
use crate::lattice::Offset;
use crate::scheme::{Op, Read, Value};
use crate::testing::star;

#[test]
fn spans_give_the_bits_of_rows() {
    use Boundary::*;
    let Some(library) = library() else { return };
    let zero = [[Zero; 2]; 3];
    let walls = [[Pec, Pmc], [Pmc, Pec], [Pec, Pmc]];
    let mirrors = [[Pec, Pmc], [Zero; 2], [Pmc, Pec]];
    let rings = [[Periodic; 2], [Periodic; 2], [Pmc, Pec]];
    let (f32, f64) = (Precision::F32, Precision::F64);
    let of = |order, precision, cells, ends| bounded(maxwell(order, precision, cells), ends);
    for (seed, (scheme, period, turns, warps)) in [
        (of(4, f32, [20, 23, 75], zero), 6, 2, 1),
        (of(4, f32, [20, 23, 75], walls), 6, 2, 1),
        (of(4, f64, [22, 24, 71], mirrors), 6, 3, 1),
        (of(2, f32, [17, 16, 150], walls), 3, 3, 2),
        (of(2, f64, [17, 16, 96], zero), 3, 5, 1),
        (of(4, f32, [24, 27, 121], walls), 9, 1, 1),
        (bounded(star(1, f32, [17, 18, 70]), zero), 4, 2, 1),
        (bounded(star(4, f64, [30, 31, 90]), zero), 8, 1, 2),
        (bounded(star(4, f32, [30, 31, 131]), walls), 8, 2, 2),
        (of(4, f32, [52, 29, 70], rings), 6, 2, 1),
        (elasticity(f32, [19, 24, 70]), 3, 2, 1),
        (elasticity(f64, [19, 24, 100]), 6, 3, 2),
    ]
    .into_iter()
    .enumerate()
    {
        let options = Options {
            shift: seed % 2 == 0,
            spans: Some(warps),
            ..Options::default()
        };
        same_bits(library, (seed, &scheme, period, turns), options, 1);
    }
}

#[test]
fn what_has_no_spans_is_refused() {
    use Boundary::*;
    let Some(library) = library() else { return };
    let options = Options {
        spans: Some(1),
        ..Options::default()
    };
    let periods = [Rational::whole(3); 2];
    let of = |cells, ends| bounded(maxwell(2, Precision::F32, cells), ends);
    let differ = |scheme: &Scheme, turns, options| {
        differ(library, scheme, periods, turns, options, 0, true).is_some()
    };
    let zero = [[Zero; 2]; 3];
    assert!(differ(&of([9, 11, 40], zero), 1, options));
    // Around a ring there is no first span.
    let ring = [[Zero; 2], [Zero; 2], [Periodic; 2]];
    assert!(!differ(&of([9, 11, 40], ring), 1, options));
    // Faces lean as far as threads reach.
    assert!(!differ(&of([9, 11, 40], zero), 32, options));
    let both = Options {
        parts: 2,
        ..options
    };
    assert!(!differ(&of([9, 11, 80], zero), 1, both));
    // An update that does not need the old value.
    let mut scheme = of([9, 11, 40], zero);
    let target = scheme.stages[0].updates[0].target;
    for op in &mut scheme.stages[0].updates[0].body.ops {
        if matches!(op, Op::Read(read) if read.component == target) {
            *op = Op::Const(0.5);
        }
    }
    assert_eq!(crate::scheme::verify(&scheme), Ok(()));
    assert!(!differ(&scheme, 1, options));
}

/// Updates add to what they write, so that threads keep that.
fn adding(scheme: &mut Scheme) {
    for update in scheme.stages.iter_mut().flat_map(|s| &mut s.updates) {
        let age = scheme.components[update.target.index()].slots - 1;
        let ops = &mut update.body.ops;
        ops.push(Op::Read(Read {
            component: update.target,
            offset: Offset::splat(0),
            age,
        }));
        let old = Value(ops.len() as u32 - 1);
        ops.push(Op::Add(update.body.result, old));
        update.body.result = Value(ops.len() as u32 - 1);
    }
}

#[test]
fn spans_of_random_schemes_give_the_bits_of_rows() {
    let Some(library) = library() else { return };
    let limits = Limits {
        dimensions: 3,
        components: 3,
        stages: 3,
        ops: 8,
        length: 14,
        width: 18,
        reach: 2,
    };
    let (mut tried, mut whole, mut rings) = (0, 0, 0);
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits);
        let is_short = scheme.grid.cells[Axis::VECTOR] < 6;
        if scheme.grid.dimensions() < 3 || is_short || scheme.grid.is_periodic(Axis::VECTOR) {
            continue;
        }
        adding(&mut scheme);
        let warps = rng.within(1, 2);
        let longer = 32 * warps + rng.within(4, 30);
        crate::testing::lengthen(&mut scheme, Axis::VECTOR, longer);
        for axis in [Axis::LEAN, Axis::DIAMOND] {
            let ring = if scheme.grid.is_periodic(axis) { 14 } else { 0 };
            let cells = ring + rng.within(12, 18);
            let by = cells - scheme.grid.cells[axis];
            crate::testing::lengthen(&mut scheme, axis, by);
        }
        for update in scheme.stages.iter_mut().flat_map(|s| &mut s.updates) {
            // Zones along the vector axis alone.
            let range = update.region[Axis::VECTOR];
            update.region = scheme
                .grid
                .live(scheme.components[update.target.index()].position);
            if !range.is_empty() {
                update.region[Axis::VECTOR] = range;
            }
        }
        assert_eq!(crate::scheme::verify(&scheme), Ok(()));
        let period = Rational::new(rng.within(4, 12), 2).unwrap_or(Rational::ONE);
        let options = Options {
            direct: rng.once_in(2),
            asynchronous: !rng.once_in(4),
            shift: rng.once_in(2),
            patient: seed % 4 < 2,
            spans: Some(warps as u32),
            room: if seed % 5 < 2 { 0 } else { u32::MAX },
            near: if seed % 3 == 0 { 64 } else { 1 << 23 },
            ..Options::default()
        };
        let turns = 1 + rng.below(2);
        if let Some(report) = differ(library, &scheme, [period; 2], turns, options, seed, true) {
            tried += 1;
            let ring = |axis: &Axis| scheme.grid.is_periodic(*axis);
            rings += usize::from([Axis::LEAN, Axis::DIAMOND].iter().any(ring));
            whole += report.whole;
        }
    }
    assert!(tried > 8 && whole > 5 * tried, "{whole} in {tried}");
    assert!(rings > 1, "{rings} of {tried}");
}
