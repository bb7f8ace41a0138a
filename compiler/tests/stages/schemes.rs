//! Schemes keep their rules, and break them after any one of some changes.

use torre_compiler::lattice::{Axis, HalfIndex, Interval, PerAxis};
use torre_compiler::scheme::{
    CoefId, ComponentId, MOST_ZONES, Op, Precision, Read, Scheme, StateId, Update, Value, ZoneId,
    verify,
};
use torre_compiler::testing::{add_layers, maxwell};

/// Maxwell's equations in layers along two axes: stage 0 updates H, stage 1 updates E.
fn scheme() -> Scheme {
    let mut scheme = maxwell(4, Precision::F32, [9, 8, 10]);
    add_layers(&mut scheme, PerAxis([2, 0, 3]));
    scheme
}

/// The first update of E.
fn update(scheme: &mut Scheme) -> &mut Update {
    &mut scheme.stages[1].updates[0]
}

/// Changes the first operation of an update that can be changed so.
fn change(update: &mut Update, change: impl Fn(&mut Op) -> bool) {
    let mut ops = update.body.ops.iter_mut();
    assert!(ops.any(change), "no operation can be changed so");
}

/// Changes the first read of a field, E or H, by its first component.
fn change_read(update: &mut Update, field: u32, to: impl Fn(&mut Read)) {
    change(update, |op| match op {
        Op::Read(read) if read.component.0 / 3 == field / 3 => {
            to(read);
            true
        }
        _ => false,
    });
}

#[test]
fn a_change_of_a_scheme_breaks_the_rule_that_it_is_about() {
    assert_eq!(verify(&scheme()), Ok(()));
    type Change = fn(&mut Scheme);
    let changes: [(u32, Change); 29] = [
        (1, |s| s.grid.cells[Axis::OUTER] = 0),
        (1, |s| s.grid.axes[Axis::MIDDLE] = None),
        (1, |s| s.components[2].position[Axis::INNER] = HalfIndex(2)),
        (1, |s| s.components[4].time = HalfIndex(3)),
        (1, |s| s.components[4].time_levels = 0),
        (1, |s| s.coefs[0].position[Axis::OUTER] = HalfIndex(-1)),
        (1, |s| update(s).target = ComponentId(6)),
        (1, |s| {
            change_read(update(s), 3, |read| read.component = ComponentId(6))
        }),
        (1, |s| update(s).mask = Some(CoefId(1000))),
        (1, |s| {
            let other = s
                .coefs
                .iter()
                .position(|c| c.position != s.components[0].position);
            let other = CoefId(other.expect("coefficients of other components") as u32);
            update(s).amendments[0].body.ops[0] = Op::Coef(other);
        }),
        (2, |s| update(s).region[Axis::INNER].hi += 2),
        (3, |s| s.stages[1].updates[1].target = ComponentId(0)),
        (4, |s| {
            change_read(update(s), 0, |read| read.offset[Axis::MIDDLE] = 1)
        }),
        (4, |s| {
            // The value of another component that the stage updates, at the same index.
            change_read(update(s), 0, |read| read.component = ComponentId(1))
        }),
        (5, |s| change_read(update(s), 3, |read| read.age = 1)),
        (6, |s| {
            s.components[0].time_levels = 2;
            update(s).region[Axis::OUTER] = Interval::new(1, 2);
        }),
        (7, |s| {
            let late = Value(update(s).body.ops.len() as u32 - 1);
            update(s).body.ops[0] = Op::Neg(late);
        }),
        (7, |s| update(s).body.result = Value(1000)),
        (7, |s| {
            // No number of single precision.
            change(update(s), |op| {
                let is_constant = matches!(op, Op::Const(_));
                if is_constant {
                    *op = Op::Const(0.1);
                }
                is_constant
            })
        }),
        (8, |s| {
            change_read(update(s), 3, |read| read.offset[Axis::MIDDLE] = 9)
        }),
        (9, |s| update(s).body.ops[0] = Op::Base),
        (9, |s| update(s).body.ops[0] = Op::State(StateId(0))),
        (9, |s| {
            let own = s.components[0].position;
            let of_axis = s
                .coefs
                .iter()
                .position(|c| c.only_axis.is_some() && c.position == own);
            let of_axis = CoefId(of_axis.expect("a coefficient of a layer") as u32);
            update(s).body.ops[0] = Op::Coef(of_axis);
        }),
        (9, |s| update(s).amendments[0].zone = ZoneId(7)),
        (9, |s| {
            let again = update(s).amendments[0].clone();
            update(s).amendments.push(again);
        }),
        (9, |s| update(s).amendments[0].advances.clear()),
        (9, |s| {
            update(s).amendments[0].advances[0].value = Value(1000)
        }),
        (9, |s| {
            let first = s.zones[0].boxes[0];
            s.zones[0].boxes.push(first);
        }),
        (9, |s| {
            let zone = s.zones[0].clone();
            s.zones.resize(MOST_ZONES + 1, zone);
        }),
    ];
    for (number, (rule, change)) in changes.into_iter().enumerate() {
        let mut changed = scheme();
        change(&mut changed);
        let broken = verify(&changed).expect_err("a rule is broken");
        let begin = format!("rule {rule}: ");
        assert!(broken.starts_with(&begin), "change {number}: {broken}");
    }
}

/// States belong to one amendment, of their zone and at the position of its update.
#[test]
fn states_of_other_amendments_are_refused() {
    let plain = scheme();
    let amended = plain.stages[1]
        .updates
        .iter()
        .position(|u| u.amendments.len() > 1);
    let at = amended.expect("an update in two layers");
    let [one, other] = [0, 1].map(|n| plain.stages[1].updates[at].amendments[n].advances[0].state);
    let mut exchanged = plain.clone();
    exchanged.stages[1].updates[at].amendments[0].advances[0].state = other;
    let mut shared = plain.clone();
    shared.states[other.index()] = shared.states[one.index()].clone();
    let mut unused = plain.clone();
    unused.states.push(plain.states[0].clone());
    for wrong in [exchanged, shared, unused] {
        let broken = verify(&wrong).expect_err("a rule is broken");
        assert!(broken.starts_with("rule 9: "), "{broken}");
    }
}
