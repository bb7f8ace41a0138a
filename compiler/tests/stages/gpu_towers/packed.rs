//! Packed rows beside others: zeros and ghosts of rows that a shared row holds one after the other.

use super::*;
use torre_compiler::host::HostExpr;
use torre_compiler::lattice::{Axis, HalfIndex, Offset, PerAxis};
use torre_compiler::scheme::{
    Body, Boundary, Coef, CoefId, Component, ComponentId, OddPositions, Op, Read, Scheme, Stage,
    Update, Value,
};
use torre_compiler::tower::Numbering;

/// A component that is updated, with the components and the offsets that it reads.
type Reads<'a> = (u32, &'a [(u32, [i32; 3])]);

/// Adds the values that an update reads to a component.
fn sum(scheme: &Scheme, of: Reads<'_>) -> Update {
    let (target, reads) = of;
    let read = |component: u32, offset: [i32; 3]| {
        Op::Read(Read {
            component: ComponentId(component),
            offset: Offset::from_fn(|a| offset[a.index()]),
            age: 0,
        })
    };
    let mut ops = vec![read(target, [0; 3])];
    for &(component, offset) in reads {
        ops.extend([read(component, offset), Op::Const(0.125)]);
        let n = ops.len() as u32;
        ops.push(Op::Fma(Value(n - 2), Value(n - 1), Value(n - 3)));
    }
    let target = ComponentId(target);
    Update {
        target,
        region: scheme.grid.live(scheme.component(target).position),
        mask: None,
        body: Body {
            result: Value(ops.len() as u32 - 1),
            ops,
        },
        amendments: Vec::new(),
    }
}

/// Components at some positions, with a stage for each update, in lines that begin at an odd end.
fn sums(
    precision: Precision,
    cells: i64,
    above: Boundary,
    positions: &[[i64; 3]],
    updates: &[Reads<'_>],
) -> Scheme {
    let mut scheme = maxwell(2, precision, [24, 24, cells]);
    let even = [Boundary::Pmc; 2];
    scheme.grid.boundary = PerAxis([even, even, [Boundary::Pec, above]]);
    scheme.coefs.clear();
    let component = |(n, position): (usize, &[i64; 3])| Component {
        name: format!("c{n}"),
        position: PerAxis(position.map(HalfIndex)),
        time: HalfIndex::ZERO,
        time_levels: 1,
    };
    scheme.components = positions.iter().enumerate().map(component).collect();
    scheme.stages.clear();
    for reads in updates {
        let updates = vec![sum(&scheme, *reads)];
        scheme.stages.push(Stage { updates });
    }
    scheme
}

fn arrives(scheme: &Scheme, pitch: i64) {
    let Some(library) = library() else { return };
    torre_compiler::scheme::verify(scheme).expect("a scheme");
    assert!(Numbering::packs(scheme));
    let trial = Trial {
        packed: true,
        ..Trial::new(library, scheme, pitch, 2)
    };
    let report = trial.succeed();
    assert!(report.with_interior > 4, "{report:?}");
}

/// Two warps read the ghosts above the end of a line, and nothing is read below an end.
#[test]
fn ghosts_above_rows_that_end_earlier_arrive() {
    let updates: [Reads<'_>; 2] = [
        (0, &[(1, [0, 0, 0]), (1, [-1, 0, 1]), (1, [0, 1, 1])]),
        (1, &[(0, [0, 0, 1]), (0, [1, 0, 2]), (0, [0, -1, 1])]),
    ];
    let positions = [[0, 0, 0], [0, 0, 1]];
    let scheme = sums(Precision::F64, 33, Boundary::Pmc, &positions, &updates);
    arrives(&scheme, 4);
}

/// A component is 0 on the upper plane, where packed rows have a value, and nothing has a ghost.
#[test]
fn zeros_above_rows_that_end_earlier_arrive() {
    let updates: [Reads<'_>; 2] = [
        (1, &[(2, [0, -1, 0]), (0, [1, -1, 0])]),
        (0, &[(1, [1, 1, 0])]),
    ];
    let positions = [[0, 0, 0], [1, 0, 0], [0, 1, 0]];
    let mut odd = OddPositions::default();
    odd.insert(PerAxis(positions[1].map(HalfIndex)));
    let above = Boundary::Mirror(odd);
    let scheme = sums(Precision::F64, 32, above, &positions, &updates);
    arrives(&scheme, 5);
}

/// A coefficient has a value where a packed row that follows it in a shared row is 0.
#[test]
fn packed_rows_follow_coefficients() {
    let updates: [Reads<'_>; 1] = [(0, &[(0, [0, 0, -1]), (0, [0, 1, 2])])];
    let mut scheme = sums(Precision::F64, 32, Boundary::Pmc, &[[1, 0, 0]], &updates);
    scheme.components[0].time_levels = 2;
    scheme.coefs.push(Coef {
        name: "m".to_owned(),
        position: scheme.components[0].position,
        value: HostExpr::Number(-3.0),
        only_axis: None,
    });
    let body = &mut scheme.stages[0].updates[0].body;
    body.ops[0] = Op::Coef(CoefId(0));
    let along = scheme.grid.boundary[Axis::INNER];
    let ends = [
        [Boundary::Pec, Boundary::Pmc],
        [Boundary::Periodic; 2],
        along,
    ];
    arrives(&bounded(scheme, ends), 5);
}
