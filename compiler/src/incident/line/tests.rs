//! Reflections from the ends of a line.

use super::*;
use crate::host::{HostBinary, HostUnary};
use crate::lattice::{Axis, HalfIndex};
use crate::problem::{Drive, TotalBox};
use crate::scheme::{Body, Component, Op, Precision, Read, Scheme, Stage, Update, Value};
use crate::statics::NoFiles;
use crate::testing::{maxwell, star};

/// A pulse of waves of 20 cells.
fn pulse() -> HostExpr {
    let number = |n: f64| HostExpr::Number(n);
    let of = |op, a, b| HostExpr::binary(op, a, b);
    let late = of(HostBinary::Sub, HostExpr::Time, number(32.0));
    let s = of(
        HostBinary::Mul,
        number(std::f64::consts::PI / 20.0),
        late.clone(),
    );
    let square = of(HostBinary::Mul, s.clone(), s);
    let twice = of(HostBinary::Mul, number(2.0), square.clone());
    let envelope = HostExpr::unary(HostUnary::Exp, HostExpr::unary(HostUnary::Neg, square));
    of(
        HostBinary::Mul,
        of(HostBinary::Sub, number(1.0), twice),
        envelope,
    )
}

/// The line before its first step with more points beyond both ends, none of which absorbs.
fn longer(line: &Line, by: usize) -> Line {
    let mut far = line.clone();
    far.start -= by as i64;
    for slot in &mut far.slots {
        *slot = vec![0.0; slot.len() + 2 * by];
    }
    for point in far.drivers.iter_mut().flat_map(|driver| &mut driver.parts) {
        point.0 += by;
    }
    for ends in far.ends.iter_mut().flatten() {
        *ends = Ends::new(ends.stage, vec![1.0; ends.left.len() + 2 * by]);
    }
    far
}

/// The largest difference to a line without ends, where nothing is absorbed, over the largest value there, in dB.
fn reflection(order: u32, direction: [i64; 3], loss: f64) -> f64 {
    let mut scheme = maxwell(order, Precision::F64, [40, 40, 40]);
    scheme.grid.dt = 0.4;
    let shell = Shell::new(
        &scheme,
        &TotalBox {
            ends: PerAxis([[15, 25]; 3]),
        },
    );
    // E along x and y, and no wave along z alone.
    let across = [-direction[1] as f64, direction[0] as f64];
    let drives = across.iter().zip(0..).map(|(part, component)| Drive {
        component: ComponentId(component),
        wave: HostExpr::binary(HostBinary::Mul, HostExpr::Number(*part), pulse()),
    });
    let wave = PlaneWave {
        direction: PerAxis(direction),
        drives: drives.collect(),
        loss: loss * scheme.grid.dt,
    };
    let near = Line::new(&scheme, &wave, &[shell], &NoFiles).expect("a line");
    // There and back through both ends.
    let steps = (400.0 / scheme.grid.dt) as u64;
    let length: f64 = direction.iter().map(|m| (m * m) as f64).sum::<f64>().sqrt();
    let found = echo(&scheme, near, (400.0 * length) as usize, steps);
    20.0 * found.log10()
}

/// The largest difference to a line without ends, where nothing is absorbed, over the largest value there; it has `by`
/// points more at both ends.
fn echo(scheme: &Scheme, mut near: Line, by: usize, steps: u64) -> f64 {
    let mut far = longer(&near, by);
    let [mut largest, mut error] = [0.0f64; 2];
    for step in 0..steps {
        for stage in 0..scheme.stages.len() {
            near.advance(scheme, &NoFiles, stage, step);
            far.advance(scheme, &NoFiles, stage, step);
        }
        for id in scheme.component_ids() {
            let Some(ends) = &near.ends[id.index()] else {
                continue;
            };
            let slot = near.slot(id, 0);
            for point in ends.whole.clone() {
                let (a, b) = (near.values(slot)[point], far.values(slot)[point + by]);
                largest = largest.max(b.abs());
                error = error.max((a - b).abs());
            }
        }
    }
    assert!(largest > 0.1, "{largest}");
    error / largest
}

#[test]
fn ends_of_lines_take_waves() {
    for (order, direction) in [
        (2, [1, 0, 0]),
        (4, [0, -1, 0]),
        (4, [1, 2, 0]),
        (4, [-2, 1, 3]),
    ] {
        let found = reflection(order, direction, 0.4);
        println!("order {order}, {direction:?}: {found:.1} dB");
        assert!(found < -152.0, "order {order}, {direction:?}: {found} dB");
    }
    // A quarter of the loss lets much more back.
    let weak = reflection(2, [1, 0, 0], 0.1);
    assert!(weak > -100.0, "{weak} dB");
}

/// The wave equation of second order, with the squares of c dt / h and of the cutoff frequency times dt.
fn waves(square: f64, cutoff: f64) -> Scheme {
    let mut scheme = star(1, Precision::F64, [40, 40, 40]);
    let read = |offset: PerAxis<i32>, age: u8| {
        Op::Read(Read {
            component: ComponentId(0),
            offset,
            age,
        })
    };
    let here = PerAxis::splat(0);
    let mut ops = vec![
        read(here, 1),
        Op::Neg(Value(0)),
        read(here, 0),
        Op::Const(2.0 - 6.0 * square - cutoff),
        Op::Fma(Value(2), Value(3), Value(1)),
    ];
    for axis in Axis::ALL {
        for by in [-1, 1] {
            let mut offset = here;
            offset[axis] = by;
            ops.extend([read(offset, 0), Op::Const(square)]);
            let n = ops.len() as u32;
            ops.push(Op::Fma(Value(n - 2), Value(n - 1), Value(n - 3)));
        }
    }
    let result = Value(ops.len() as u32 - 1);
    scheme.stages[0].updates[0].body = Body { ops, result };
    scheme
}

/// The part of steady waves of some cells that comes back from an end, for a wave of one component with two versions.
fn standing(wavelength: f64, direction: [i64; 3]) -> f64 {
    let courant = 0.4;
    let scheme = waves(courant * courant, 0.0);
    let ends = PerAxis([[15, 25]; 3]);
    let shell = Shell::new(&scheme, &TotalBox { ends });
    let number = HostExpr::Number;
    let of = HostExpr::binary;
    let omega = 2.0 * std::f64::consts::PI * courant / wavelength / scheme.grid.dt;
    let phase = of(HostBinary::Mul, number(omega), HostExpr::Time);
    let wave = PlaneWave {
        direction: PerAxis(direction),
        drives: vec![Drive {
            component: ComponentId(0),
            wave: HostExpr::unary(HostUnary::Sin, phase.clone()),
        }],
        loss: 0.4 * courant,
    };
    let mut line = Line::new(&scheme, &wave, &[shell], &NoFiles).expect("a line");
    let ends = line.ends[0].as_ref().expect("an end").whole.clone();
    let first = line.drivers[0]
        .parts
        .iter()
        .map(|(n, _)| *n)
        .max()
        .expect("a drive")
        + 4;
    let period = wavelength / courant;
    let begin = (8.0 * period) as u64;
    let mut sums = vec![[0.0f64; 2]; ends.end - first];
    let count = (4.0 * period).round() as u64;
    for step in 0..begin + count {
        (0..scheme.stages.len()).for_each(|n| line.advance(&scheme, &NoFiles, n, step));
        if step >= begin {
            let angle = omega * scheme.grid.dt * step as f64;
            for (sum, value) in sums.iter_mut().zip(&line.values(0)[first..]) {
                sum[0] += value * angle.cos();
                sum[1] += value * angle.sin();
            }
        }
    }
    let sizes = sums.iter().map(|[a, b]| a.hypot(*b));
    let [most, least] = [f64::max, f64::min].map(|f| sizes.clone().reduce(f).expect("points"));
    (most - least) / (most + least)
}

/// Ends take waves of one component with two versions, too, also waves that are longer than the ends.
#[test]
fn ends_take_long_waves_of_one_component() {
    for direction in [[1, 0, 0], [0, 2, -1]] {
        for wavelength in [50.0, 100.0, 200.0] {
            let found = standing(wavelength, direction);
            println!("{wavelength} cells, {direction:?}: {found:.2e}");
            assert!(found < 6e-4, "{wavelength} cells, {direction:?}: {found}");
        }
    }
}

/// Behind a pulse with a mean waves of one component leave a constant field, which the ends neither raise nor lower.
#[test]
fn the_field_behind_a_pulse_stays() {
    let courant = 0.5;
    let scheme = waves(courant * courant, 0.0);
    let ends = PerAxis([[15, 25]; 3]);
    let of = HostExpr::binary;
    let late = of(HostBinary::Sub, HostExpr::Time, HostExpr::Number(20.0));
    let part = of(HostBinary::Mul, late, HostExpr::Number(0.2));
    let square = of(HostBinary::Mul, part.clone(), part);
    let gauss = HostExpr::unary(HostUnary::Exp, HostExpr::unary(HostUnary::Neg, square));
    for direction in [[1, 0, 0], [-1, 0, 2], [0, 1, 1]] {
        let shell = Shell::new(&scheme, &TotalBox { ends });
        let wave = PlaneWave {
            direction: PerAxis(direction),
            drives: vec![Drive {
                component: ComponentId(0),
                wave: gauss.clone(),
            }],
            loss: 0.4 * courant,
        };
        let mut line = Line::new(&scheme, &wave, &[shell], &NoFiles).expect("a line");
        let Range { start, end } = line.ends[0].as_ref().expect("an end").whole;
        let mut values = Vec::new();
        for step in 0..60_000 {
            (0..scheme.stages.len()).for_each(|n| line.advance(&scheme, &NoFiles, n, step));
            if step % 20_000 == 5_000 {
                values.push(line.values(0)[(start + end) / 2]);
            }
        }
        println!("{direction:?}: {values:?}");
        let [first, .., last] = values.as_slice() else {
            panic!("{values:?}");
        };
        assert!(first.abs() > 1.0, "{direction:?}: {values:?}");
        // It fades by 4e-10 in a step, as an end is not infinitely deep.
        let change = last / first - 1.0;
        assert!(
            (-2.2e-5..1e-9).contains(&change),
            "{direction:?}: {values:?}"
        );
    }
}

/// Ends do not let values grow in media where waves are far slower than the loss is made for.
#[test]
fn ends_of_slow_media_are_stable() {
    for (courant, loss) in [(0.02, 0.2), (1e-4, 0.2), (0.012, 0.36)] {
        let scheme = waves(courant * courant, 0.0);
        let ends = PerAxis([[15, 25]; 3]);
        let shell = Shell::new(&scheme, &TotalBox { ends });
        let wave = PlaneWave {
            direction: PerAxis([1, 0, 0]),
            drives: vec![Drive {
                component: ComponentId(0),
                wave: HostExpr::Number(1e-3),
            }],
            loss,
        };
        let mut line = Line::new(&scheme, &wave, &[shell], &NoFiles).expect("a line");
        for step in 0..4000 {
            (0..scheme.stages.len()).for_each(|n| line.advance(&scheme, &NoFiles, n, step));
        }
        // The drive adds some thousands in all steps.
        let values = line.values(0);
        assert!(values.iter().all(|v| v.abs() < 1e5), "{courant}, {loss}");
    }
}

/// Cells of one size are their own length along a wave, to the last bit.
#[test]
fn equal_cells_have_their_length_along_waves() {
    let mut scheme = maxwell(2, Precision::F64, [40, 40, 40]);
    for k in 1..3000 {
        let size = f64::from(k) / 1000.0;
        scheme.grid.spacing = PerAxis([size; 3]);
        for m in [[1, 0, 0], [3, 4, 0], [1, -2, 2], [0, 1, 1]] {
            assert_eq!(cell_along(&scheme.grid, PerAxis(m)), size, "{size}, {m:?}");
        }
    }
}

/// Ends are as deep for waves across long cells as for waves across short cells.
#[test]
fn ends_take_waves_across_unlike_cells() {
    for (spacing, direction) in [
        ([1.0, 0.02, 0.02], [1, 0, 0]),
        ([1.0, 0.02, 1.0], [1, 1, 0]),
        ([0.05, 1.0, 1.0], [0, 2, -1]),
    ] {
        let mut scheme = maxwell(2, Precision::F64, [40, 40, 40]);
        scheme.grid.spacing = PerAxis(spacing);
        let cell = cell_along(&scheme.grid, PerAxis(direction));
        let density = point_density(&scheme.grid, PerAxis(direction));
        let most = direction.iter().map(|m: &i64| m.abs()).max().unwrap_or(0);
        assert!(cell * density > most as f64 - 1e-9, "{spacing:?}");
        let shell = Shell::new(
            &scheme,
            &TotalBox {
                ends: PerAxis([[15, 25]; 3]),
            },
        );
        let wave = PlaneWave {
            direction: PerAxis(direction),
            drives: vec![Drive {
                component: ComponentId(2),
                wave: pulse(),
            }],
            loss: 0.4 * scheme.grid.dt / cell,
        };
        let line = Line::new(&scheme, &wave, &[shell], &NoFiles).expect("a line");
        let ends = line.ends[2].as_ref().expect("an end");
        assert!(ends.whole.start as i64 >= 100 * most, "{spacing:?}");
        assert!(ends.left.len() - ends.whole.end >= 100 * most as usize);
    }
}

/// The displacement u and the velocity v of waves, v += (c dt / h)^2 h^2 u'' and u += v.
fn displacement_and_velocity(square: f64) -> Scheme {
    let mut scheme = waves(square, 0.0);
    let u = &mut scheme.components[0];
    u.time_levels = 1;
    let velocity = Component {
        name: "v".to_owned(),
        ..u.clone()
    };
    scheme.components.push(velocity);
    let read = |id: u32, offset: PerAxis<i32>| {
        Op::Read(Read {
            component: ComponentId(id),
            offset,
            age: 0,
        })
    };
    let here = PerAxis::splat(0);
    let mut ops = vec![
        read(1, here),
        read(0, here),
        Op::Const(-6.0 * square),
        Op::Fma(Value(1), Value(2), Value(0)),
    ];
    for (axis, by) in Axis::ALL
        .into_iter()
        .flat_map(|axis| [(axis, -1), (axis, 1)])
    {
        let mut offset = here;
        offset[axis] = by;
        ops.extend([read(0, offset), Op::Const(square)]);
        let n = ops.len() as u32;
        ops.push(Op::Fma(Value(n - 2), Value(n - 1), Value(n - 3)));
    }
    let body = |ops: Vec<Op>| {
        let result = Value(ops.len() as u32 - 1);
        Body { ops, result }
    };
    let moving = vec![
        read(0, here),
        read(1, here),
        Op::Const(1.0),
        Op::Fma(Value(1), Value(2), Value(0)),
    ];
    let update = |target: u32, ops: Vec<Op>| Update {
        target: ComponentId(target),
        body: body(ops),
        ..scheme.stages[0].updates[0].clone()
    };
    let updates = [update(1, ops), update(0, moving)];
    let stages = updates.map(|update| Stage {
        updates: vec![update],
    });
    scheme.stages = stages.into();
    scheme
}

/// Sums that no other place reads are no part of a wave. A value that is read from half a cell away is, as a face may
/// lie between both.
#[test]
fn values_that_no_other_place_reads_are_left_out() {
    let mut scheme = displacement_and_velocity(0.16);
    let sum = Component {
        name: "sum".to_owned(),
        ..scheme.components[0].clone()
    };
    scheme.components.push(sum);
    let read = |id: u32| {
        Op::Read(Read {
            component: ComponentId(id),
            offset: PerAxis::splat(0),
            age: 0,
        })
    };
    let update = |target: u32, reads: [u32; 2]| Update {
        target: ComponentId(target),
        body: Body {
            ops: vec![
                read(reads[0]),
                read(reads[1]),
                Op::Const(1.0),
                Op::Fma(Value(1), Value(2), Value(0)),
            ],
            result: Value(3),
        },
        ..scheme.stages[0].updates[0].clone()
    };
    let [adds, beside] = [update(2, [2, 0]), update(3, [2, 2])];
    scheme.stages.push(Stage {
        updates: vec![adds],
    });
    assert_eq!(read_elsewhere(&scheme), [true, true, false]);
    let mut other = Component {
        name: "beside".to_owned(),
        ..scheme.components[0].clone()
    };
    other.position[Axis::INNER] = HalfIndex::HALF;
    scheme.components.push(other);
    scheme.stages.push(Stage {
        updates: vec![beside],
    });
    assert_eq!(read_elsewhere(&scheme), [true, true, true, false]);
}

/// The part of a pulse that comes back from the ends: of some waves in a Gaussian of 150 steps, with a frequency per
/// step.
fn echo_of_pulse(scheme: &Scheme, frequency: f64) -> f64 {
    echo(scheme, line_of_pulse(scheme, frequency), 1500, 5000)
}

/// The line of such a pulse.
fn line_of_pulse(scheme: &Scheme, frequency: f64) -> Line {
    let dt = scheme.grid.dt;
    let ends = PerAxis([[15, 25]; 3]);
    let shell = Shell::new(scheme, &TotalBox { ends });
    let number = HostExpr::Number;
    let of = HostExpr::binary;
    let phase = of(HostBinary::Mul, number(frequency / dt), HostExpr::Time);
    let late = of(HostBinary::Sub, HostExpr::Time, number(500.0 * dt));
    let late = of(HostBinary::Div, late, number(150.0 * dt));
    let square = of(HostBinary::Mul, late.clone(), late);
    let envelope = HostExpr::unary(HostUnary::Exp, HostExpr::unary(HostUnary::Neg, square));
    let sine = HostExpr::unary(HostUnary::Sin, phase);
    let wave = PlaneWave {
        direction: PerAxis([1, 0, 0]),
        drives: vec![Drive {
            component: ComponentId(0),
            wave: of(HostBinary::Mul, sine, envelope),
        }],
        loss: 0.16,
    };
    Line::new(scheme, &wave, &[shell], &NoFiles).expect("a line")
}

/// Waves with a cutoff frequency change their impedance in an end, and a second derivative in one of two updates
/// reflects waves as long as the end: ends are deeper then.
#[test]
fn deep_ends_take_waves_that_losses_reflect() {
    // 1.33 times the cutoff frequency, and waves of 95 cells; waves of 63 cells.
    let dispersive = echo_of_pulse(&waves(0.16, 0.03_f64.powi(2)), 0.04);
    let coupled = echo_of_pulse(&displacement_and_velocity(0.16), 0.04);
    println!("{dispersive:.2e}, {coupled:.2e}");
    // Rounding of weights is no cutoff frequency.
    let mut single = waves(f64::from(0.2237_f32), 0.0);
    single.precision = Precision::F32;
    for op in &mut single.stages[0].updates[0].body.ops {
        if let Op::Const(n) = op {
            *n = f64::from(*n as f32);
        }
    }
    assert!(!line_of_pulse(&single, 0.04).needs_deep_ends(&single));
    let maxwell = maxwell(4, Precision::F32, [40, 40, 40]);
    assert!(!line_of_pulse(&maxwell, 0.04).needs_deep_ends(&maxwell));
    // Diffusion: the only version of a component, and its second difference.
    let mut heat = waves(0.16, 0.0);
    heat.components[0].time_levels = 1;
    let ops = &mut heat.stages[0].updates[0].body.ops;
    ops[0] = ops[2];
    ops[1] = Op::Const(1.0 - 6.0 * 0.16);
    ops[4] = Op::Mul(Value(0), Value(1));
    assert!(line_of_pulse(&heat, 0.04).needs_deep_ends(&heat));
    assert!(
        dispersive < 3e-4 && coupled < 5e-5,
        "{dispersive}, {coupled}"
    );
}

/// The largest size of E in front of the drive, over the height that a drive of this size is to give.
fn height(order: u32, direction: [i64; 3], across: [f64; 3]) -> f64 {
    let mut scheme = maxwell(order, Precision::F64, [40, 40, 40]);
    scheme.grid.dt = 0.4;
    let ends = PerAxis([[15, 25]; 3]);
    let shell = Shell::new(&scheme, &TotalBox { ends });
    let length = |of: [f64; 3]| of.iter().map(|n| n * n).sum::<f64>().sqrt();
    let [size, steep] = [across, direction.map(|m| m as f64)].map(length);
    let drives = across.iter().zip(0..).map(|(part, component)| Drive {
        component: ComponentId(component),
        wave: HostExpr::binary(HostBinary::Mul, HostExpr::Number(part / size), pulse()),
    });
    let wave = PlaneWave {
        direction: PerAxis(direction),
        drives: drives.collect(),
        loss: 0.4 * scheme.grid.dt,
    };
    let mut line = Line::new(&scheme, &wave, &[shell], &NoFiles).expect("a line");
    let driven = line.drivers.iter().flat_map(|d| &d.parts).map(|(n, _)| *n);
    let point = driven.max().expect("a drive") + steep as usize;
    let mut largest = 0.0f64;
    for step in 0..200 {
        (0..scheme.stages.len()).for_each(|n| line.advance(&scheme, &NoFiles, n, step));
        let field = [0, 1, 2].map(|n| line.values(line.slot(ComponentId(n), 0))[point]);
        largest = largest.max(length(field));
    }
    largest * 2.0 * steep * scheme.grid.dt
}

/// Directions of large numbers, too, have one wave: no other one that the same fronts would send into other directions.
#[test]
fn waves_of_all_directions_have_the_height_of_their_drive() {
    for (direction, across) in [
        ([1, 0, 0], [0.0, 0.0, 1.0]),
        ([1, 1, 0], [0.0, 0.0, 1.0]),
        ([-2, 1, 3], [1.0, 2.0, 0.0]),
        ([3, 4, 0], [0.0, 0.0, 1.0]),
        ([7, -11, 0], [0.0, 0.0, 1.0]),
        ([1, 1, 30], [1.0, -1.0, 0.0]),
        ([31, 17, 0], [0.0, 0.0, 1.0]),
        ([60, 1, 0], [1.0, -60.0, 0.0]),
    ] {
        for order in [2, 4] {
            let found = height(order, direction, across);
            println!("order {order}, {direction:?}: {found:.4}");
            assert!(
                (found - 1.0).abs() < 0.03,
                "order {order}, {direction:?}: {found}"
            );
        }
    }
}
