//! Rows that a tower overwrites while towers behind its neighbours may still read them.

use super::interp::Trial;
use super::*;
use torre_compiler::lattice::{HalfIndex, Offset};
use torre_compiler::scheme::{Body, Component, Op, Read, Stage, Value};
use torre_compiler::tower::block::Options;

/// `v` is read in the first and in the second stage, and set from `u` alone in the third one.
fn scheme() -> Scheme {
    let mut scheme = star(1, Precision::F64, [20, 24, 3]);
    let halves = |h: [i64; 3]| PerAxis(h.map(HalfIndex));
    let like = scheme.components[0].clone();
    let component = |name: &str, position: [i64; 3]| Component {
        name: name.to_owned(),
        position: halves(position),
        time_levels: 1,
        ..like.clone()
    };
    scheme.components = vec![
        component("u", [1, 0, 0]),
        component("v", [0, 1, 0]),
        component("w", [0, 1, 0]),
    ];
    let read = |id: u32, offset: [i32; 3]| {
        Op::Read(Read {
            component: ComponentId(id),
            offset: Offset::from_fn(|axis| offset[axis.index()]),
            age: 0,
        })
    };
    // The first read, and the other one times a factor.
    let stage = |target: u32, first: Op, factor: f64, other: Op| Stage {
        updates: vec![Update {
            target: ComponentId(target),
            region: scheme
                .grid
                .live(scheme.components[target as usize].position),
            mask: None,
            body: Body {
                ops: vec![
                    first,
                    Op::Const(factor),
                    other,
                    Op::Fma(Value(1), Value(2), Value(0)),
                ],
                result: Value(3),
            },
            amendments: Vec::new(),
        }],
    };
    scheme.stages = vec![
        stage(2, read(2, [0; 3]), 0.5, read(1, [0, -1, 0])),
        stage(0, read(0, [0; 3]), 0.25, read(1, [1, 0, 0])),
        stage(1, Op::Const(0.125), 0.5, read(0, [-1, 0, 0])),
    ];
    everywhere(&mut scheme);
    scheme
}

#[test]
fn rows_are_overwritten_after_towers_behind_neighbours_have_read_them() {
    let scheme = &scheme();
    assert_eq!(torre_compiler::scheme::verify(scheme), Ok(()));
    for seed in 0..60 {
        let trial = Trial {
            scheme,
            pitches: [Rational::whole(2); 2],
            slope: Some(Rational::ONE),
            periods: 3,
            options: Options::default(),
            packed: false,
            points: Points::default(),
            volumes: Vec::new(),
            seed,
        };
        trial.run().expect("towers");
    }
}
