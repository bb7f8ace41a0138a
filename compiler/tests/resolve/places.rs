//! Places by length, sides by name, sources that replace, probes in boxes, outputs of parts and of coefficients.

use crate::support::*;
use torre_compiler::host::{At, HostExpr};
use torre_compiler::lattice::{Axis, HalfIndex, Interval, PerAxis};
use torre_compiler::problem::OutputKind;
use torre_compiler::resolve::{Options, Resolved};
use torre_compiler::scheme::{Boundary, Located, Precision};

const SOUND: &str = "
scheme sound {
  axes x, y
  param h  = 0.5
  param dt = 0.1
  boundary fixed: v odd
  boundary free:  p odd, v even
  boundary odder: v odd, p odd
  region body = nowhere
  coef k = 2 + x
  coef e : vector on faces = [1, y]
  field v : vector on faces at 1/2
  field p : scalar on cells
  step {
    v -= dt * k * [d(p, x), d(p, y)]
    p -= dt * (d(v.x, x) + d(v.y, y))
  }
}
";

fn sound(problem: &str) -> Resolved {
    let text = format!("{SOUND}problem s {{\nscheme sound\ndomain 20 x 12\n{problem}\n}}");
    let options = Options {
        precision: Precision::F64,
        ..Options::default()
    };
    resolved_with(&TestWorld::default(), &text, &options)
}

fn refused(problem: &str) -> String {
    let text = format!("{SOUND}problem s {{\nscheme sound\ndomain 20 x 12\n{problem}\n}}");
    let options = Options::default();
    show(&refused_with(&TestWorld::default(), &text, &options))
}

fn indices(r: &Resolved) -> Vec<(&str, i64, i64)> {
    let probes = r.problem.probes.iter();
    probes
        .map(|p| (p.name.as_str(), p.at[Axis::OUTER], p.at[Axis::INNER]))
        .collect()
}

#[test]
fn lengths_are_rounded_to_each_components_own_places() {
    let r = sound("steps 1\nprobe p, v at x = 3.05, y = 1 as near\nprobe p at x = 2.75, y = 0.25");
    // Cells of 1/2: p lies at 2.75, 3.25 and so on, v.x along x at 3, v.y along y at 1.
    assert_eq!(
        indices(&r),
        [
            ("near.p", 6, 2),
            ("near.v.x", 6, 2),
            ("near.v.y", 6, 2),
            ("p_5_0", 5, 0)
        ]
    );
    let notes = show(&r.warnings);
    assert!(
        notes.contains("note N0501: `p` is taken at x = 3.25, y = 1.25, its nearest place"),
        "{notes}"
    );
    assert!(
        notes.contains("`v.x` is taken at x = 3, y = 1.25"),
        "{notes}"
    );
    assert!(
        notes.contains("`v.y` is taken at x = 3.25, y = 1,"),
        "{notes}"
    );
    // A value that lies where it was asked for needs no note.
    assert_eq!(notes.matches("N0501").count(), 3, "{notes}");
}

#[test]
fn lengths_reach_from_end_to_end() {
    let r = sound(
        "steps 1\nboundary x: periodic\nprobe v.x at x = lx, y = ly\nprobe v.y at x = 0, y = ly",
    );
    // Around a periodic axis the end is the beginning; along y the plane at the end is not stored.
    assert_eq!(indices(&r), [("v.x_0_11", 0, 11), ("v.y_0_11", 0, 11)]);
    let message = refused("steps 1\nprobe p at x = 10.1, y = 1");
    assert!(
        message.contains("error E0506: `x = 10.1` lies outside of the domain"),
        "{message}"
    );
    let message = refused("steps 1\nprobe p at x = 1, x = 2");
    assert!(
        message.contains("error E0503: `x` is given twice"),
        "{message}"
    );
}

#[test]
fn sources_lie_on_lines_and_planes() {
    let r = sound(
        "steps 1\nsource p at x = 3.25 += t\nsource p in y = 4 = sin(t)\nsource p at (1, 2) -= x * t",
    );
    let [line, plane, less] = r.problem.sources.as_slice() else {
        panic!()
    };
    assert_eq!(line.region[Axis::OUTER], Interval::new(6, 7));
    assert_eq!(line.region[Axis::INNER], Interval::new(0, 12));
    assert_eq!(plane.region[Axis::INNER], Interval::new(4, 5));
    assert!(plane.replaces && !line.replaces && !less.replaces);
    let at = At {
        position: [2.0, 0.0, 0.0],
        time: 3.0,
    };
    assert_eq!(less.profile.eval(&at) * less.wave.eval(&at), -6.0);
    // Sources of a region look at no more than a box around it.
    let r = sound("steps 1\nregion disc = (x - 4)^2 + (y - 3)^2 < 1\nsource p in disc = 1");
    assert_eq!(
        r.problem.sources[0].region[Axis::OUTER],
        Interval::new(6, 10)
    );
    assert_eq!(
        r.problem.sources[0].region[Axis::INNER],
        Interval::new(4, 8)
    );
    assert!(r.problem.sources[0].condition.is_some());
}

#[test]
fn all_sides_are_set_at_once() {
    let r = sound("steps 1\nboundary y: odd | even, all: pec");
    let boundary = r.scheme.grid.boundary;
    assert_eq!(boundary[Axis::OUTER], [Boundary::Pec; 2]);
    assert_eq!(boundary[Axis::INNER], [Boundary::Pec, Boundary::Pmc]);
    assert_eq!(boundary[Axis::MIDDLE], [Boundary::Zero; 2]);
    let message = refused("steps 1\nboundary all: pec, all: pmc");
    assert!(message.contains("error E0503"), "{message}");
}

#[test]
fn schemes_name_sides() {
    let r = sound("steps 1\nboundary x: fixed | free, y: odder");
    let grid = &r.scheme.grid;
    assert!(matches!(grid.boundary[Axis::INNER][0], Boundary::Mirror(_)));
    let half = HalfIndex::HALF;
    // Pressures on cells are even about a fixed side and odd about a free one, velocities across it the other way
    // round.
    let across = PerAxis([HalfIndex::ZERO, HalfIndex::ZERO, half]);
    let [lower, upper] = grid.boundary[Axis::OUTER];
    for position in [across, PerAxis([half, HalfIndex::ZERO, half])] {
        let odd = |side: Boundary| side.is_odd(Axis::OUTER, position);
        assert_eq!(
            [odd(lower), odd(upper)],
            [odd(Boundary::Pec), odd(Boundary::Pmc)]
        );
    }
    let (cells, along) = (
        PerAxis([half, HalfIndex::ZERO, half]),
        PerAxis([half, HalfIndex::ZERO, HalfIndex::ZERO]),
    );
    let at = |y| PerAxis([3, 0, y]);
    let stored = |y| Located::Stored {
        at: at(y),
        negated: true,
    };
    assert_eq!(grid.resolve(cells, at(-1)), stored(0));
    assert_eq!(grid.resolve(cells, at(12)), stored(11));
    assert_eq!(grid.resolve(along, at(-1)), stored(1));
    assert_eq!(grid.resolve(along, at(0)), Located::Zero);
    assert_eq!(grid.resolve(along, at(12)), Located::Zero);
    assert_eq!(grid.extent(along)[Axis::INNER], Interval::new(0, 12));
}

#[test]
fn sides_that_cannot_be_are_refused() {
    let message = refused("steps 1\nboundary x: fred");
    assert!(
        message.contains("error E0505: there is no boundary `fred`"),
        "{message}"
    );
    assert!(message.contains("did you mean `free`?"), "{message}");
    let text = |side: &str| {
        format!(
            "scheme s {{ axes x; boundary {side}; field u : scalar on nodes; field w : scalar on nodes; step {{ u = w \
             }} }}"
        )
    };
    let of = |side: &str| show(&checked(&TestWorld::default(), &text(side)));
    let message = of("free: u odd, w even");
    assert!(
        message
            .contains("error E0415: `u` is odd about the side `free`, `w` is even, and both lie at one position"),
        "{message}"
    );
    // All components that a side does not name are even.
    let message = of("free: u odd");
    assert!(message.contains("error E0415: `u` is odd"), "{message}");
    assert!(!of("free: u odd, w odd").contains("error"));
    assert!(of("pec: u odd").contains("error E0104: the side `pec` is built in"));
    assert!(of("free: q odd").contains("error E0101: there is no field `q`"));
    // A problem that names such a side has no fault of its own.
    for side in [
        "free: u odd, w even",
        "free: q odd",
        "free: u odd, w odd; boundary free: u odd, w odd",
    ] {
        let problem = "problem p { scheme s; domain 8; boundary x: free | zero; steps 1 }";
        let program = format!("{}\n{problem}", text(side));
        let message = show(&checked(&TestWorld::default(), &program));
        assert_eq!(message.matches("error E").count(), 1, "{message}");
    }
    let maxwell = "use std::maxwell::maxwell_1d\nproblem p { scheme maxwell_1d; domain 8; boundary x: free; steps 1 }";
    let d = refused_with(&TestWorld::default(), maxwell, &Options::default());
    let message = show(&d);
    assert!(
        message.contains("scheme `maxwell_1d` does not say what is odd about a free side"),
        "{message}"
    );
}

#[test]
fn probes_record_boxes_and_lines() {
    let r = sound(
        "steps 9\nprobe p in x = 3..5, y = 2..4 every 3\nprobe v.x at y = 2.25 as row\nregion left = x < 1\nprobe p \
         in left, y = 0 as l",
    );
    let probes = indices(&r);
    assert_eq!(
        probes[..4],
        [
            ("p_3_2", 3, 2),
            ("p_3_3", 3, 3),
            ("p_4_2", 4, 2),
            ("p_4_3", 4, 3)
        ]
    );
    assert_eq!(r.problem.probes[3].every, 3);
    assert_eq!(probes[4], ("row_0", 0, 4));
    assert_eq!(probes.len(), 4 + 20 + 2);
    assert_eq!(probes[25], ("l_1", 1, 0));
    let message = refused("steps 1\nregion disc = x^2 + y^2 < 4\nprobe p in disc");
    assert!(message.contains("error E0515"), "{message}");
    let text = format!(
        "{SOUND}problem s {{ scheme sound; domain 100 x 100; steps 1; probe p in x = 0..99 }}"
    );
    let message = show(&refused_with(
        &TestWorld::default(),
        &text,
        &Options::default(),
    ));
    assert!(
        message
            .contains("error E0516: a probe records up to 4096 values, but 9900 of `p` lie here"),
        "{message}"
    );
}

#[test]
fn outputs_show_parts_and_coefficients() {
    let r = sound(
        "steps 9
  region body = (x - 4)^2 + (y - 3)^2 < 1
  output slice p, k at y = 1.1 in x = 2..6 every 4
  output volume v in body every 5
  output volume e.x, body",
    );
    let outputs: Vec<_> = r
        .problem
        .outputs
        .iter()
        .map(|o| (o.name.as_str(), o.region))
        .collect();
    let part =
        |x: [i64; 2], y: [i64; 2]| PerAxis([x, [0, 1], y]).map(|[lo, hi]| Interval::new(lo, hi));
    assert_eq!(
        outputs,
        [
            ("p-y2", part([2, 6], [2, 3])),
            ("v.x", part([7, 10], [4, 8])),
            ("v.y", part([6, 10], [5, 8])),
        ]
    );
    assert_eq!(r.problem.outputs[0].every, 4);
    let statics: Vec<&str> = r.problem.statics.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(statics, ["k-y2", "e.x", "body"]);
    let [k, e, body] = r.problem.statics.as_slice() else {
        panic!()
    };
    assert_eq!(
        k.kind,
        OutputKind::Slice {
            axis: Axis::INNER,
            index: 2
        }
    );
    assert_eq!(k.position, PerAxis([1, 0, 1]).map(HalfIndex));
    assert_eq!(k.value.to_string(), "(2.0 + pos.outer)");
    assert_eq!(e.value, HostExpr::Number(1.0));
    assert_eq!(e.position, PerAxis([0, 0, 1]).map(HalfIndex));
    assert!(body.value.to_string().ends_with("< 1.0)"));
    let message = refused("steps 1\noutput volume q");
    assert!(
        message.contains("error E0101: there is no field, coefficient or region `q`"),
        "{message}"
    );
    let message = refused("steps 1\noutput volume k@prev");
    assert!(
        message.contains("error E0303: `k` does not change"),
        "{message}"
    );
}

#[test]
fn runs_last_until_a_time() {
    let steps = |text: &str| sound(text).problem.steps;
    assert_eq!(steps("steps until 1"), 10);
    assert_eq!(steps("steps until 1.01"), 11);
    assert_eq!(steps("steps until 3 * dt"), 3);
    assert_eq!(steps("steps until 0"), 0);
    let message = refused("steps until -1");
    assert!(
        message.contains("error E0512: a run lasts until a time from 0 up"),
        "{message}"
    );
    for text in ["steps until 1e300", "steps until 1e308 * 10", "steps 8e15"] {
        let message = refused(text);
        let found = message.contains("error E0512: there may be 2^52 steps at most");
        assert!(found, "{text}: {message}");
    }
}

#[test]
fn numbers_of_steps_are_whole_and_bounded() {
    let message = refused("steps 2.5");
    assert!(
        message.contains("error E0402: a whole number is needed here"),
        "{message}"
    );
    assert!(message.contains("`steps until 2.5`"), "{message}");
    let message = refused("steps 1e30");
    assert!(
        message.contains("error E0402: whole numbers go to 9e15 here"),
        "{message}"
    );
    assert!(!message.contains("steps until"), "{message}");
    let message = refused("steps 0 - 1");
    assert!(
        message.contains("error E0512: a number of steps from 0 up is needed"),
        "{message}"
    );
}

#[test]
fn cell_sizes_and_time_steps_are_positive_and_normal() {
    for (dt, reason) in [
        ("0", "must be a positive number"),
        ("-1", "must be a positive number"),
        ("1e-310", "must be at least 2.3e-308"),
        ("1e308 * 10", "must be finite"),
    ] {
        let text = format!(
            "scheme s {{\n  axes x\n  param dt = {dt}\n  field u : scalar on nodes\n  step {{ u += dt * d2(u, x) }}\n}}
problem p {{ scheme s; domain 8; steps 1 }}"
        );
        let message = show(&refused_with(
            &TestWorld::default(),
            &text,
            &Options::default(),
        ));
        let expected = format!("E0412: the time step `dt` {reason}");
        assert!(message.contains(&expected), "{dt}: {message}");
    }
}

/// An update in a small part of the grid is computed there alone.
#[test]
fn masked_updates_are_limited_to_a_box() {
    let text = "
scheme s {
  axes x, y
  field u : scalar on nodes
  field w : scalar on nodes
  step {
    u = 2 * u
    where (x - 30)^2 + (y - 40)^2 < 25 { w += u }
    where (x - 30)^2 + (y - 40)^2 > 25 { w -= u }
  }
}
problem p { scheme s; domain 64 x 64; steps 1 }";
    let r = resolved(text);
    let small = &r.scheme.stages[1].updates[0];
    assert_eq!(small.region[Axis::OUTER], Interval::new(26, 35));
    assert_eq!(small.region[Axis::INNER], Interval::new(36, 45));
    assert!(small.mask.is_some());
    let large = &r.scheme.stages[2].updates[0];
    assert_eq!(large.region[Axis::OUTER], Interval::new(0, 64));
}

#[test]
fn sides_need_the_axes_by_which_parities_differ() {
    let of = |domain: &str, side: &str| {
        let text = format!(
            "scheme s {{ axes x, y; boundary free: s odd; field p : scalar on nodes\n\
             field s : scalar on [0, 1/2] at 1/2\n\
             step {{ s -= 0.1 * d(p, y); p -= 0.1 * d(s, y) }} }}\n\
             problem q {{ scheme s; domain {domain}; boundary x: {side}; steps 1 }}"
        );
        show(&checked(&TestWorld::default(), &text))
    };
    assert!(!of("8 x 8", "free").contains("error"));
    assert!(!of("8", "pec").contains("error"));
    let message = of("8", "free");
    assert!(
        message.contains(
            "error E0415: about the side `free` `s` is odd and `p` even, and in this domain both"
        ),
        "{message}"
    );
    assert!(message.contains("no extent along `y`"), "{message}");
}

/// The box of a region is the smallest one, by functions and products of coordinates, too.
#[test]
fn boxes_of_regions_are_the_smallest() {
    let program = |region: &str, lines: &str| {
        format!(
            "scheme s {{ axes x, y; field u : scalar on nodes; step {{ allow W0301; u += 1 }} }}
problem p {{ scheme s; domain 12 x 11; steps 1; region R = {region}\n{lines} }}"
        )
    };
    let [three, five] = [[4, 7], [3, 8]].map(|[lo, hi]| Interval::new(lo, hi));
    for (region, side) in [
        ("(x-5)^2 + (y-5)^2 < 2.5", three),
        ("exp(-((x-5)^2 + (y-5)^2)) > 0.1", three),
        ("sqrt(abs(tan((x-5)/9)) + abs(tan((y-5)/9))) < 0.4", three),
        ("(x-5)^2 + (y-5)^2 - 1.8*(x-5)*(y-5) < 0.9", five),
        ("cos((x-5)/3)^2.5 * cos((y-5)/3) > 0.8 and x < 9", three),
    ] {
        let text = program(region, "output volume u in R\nsource u in R += 1");
        let r = resolved(&text);
        let [output] = r.problem.outputs.as_slice() else {
            panic!("one output");
        };
        for found in [output.region, r.problem.sources[0].region] {
            let sides = [found[Axis::OUTER], found[Axis::INNER]];
            assert_eq!(sides, [side; 2], "{region}");
        }
    }
    for region in ["exp(-((x-5)^2 + (y-5)^2)) > 2", "sin(x * y) > 1"] {
        let text = program(region, "output volume u in R\nsource u in R += 1");
        let found = checked(&TestWorld::default(), &text);
        let nowhere = found.0.iter().filter(|d| d.code.0 == "W0502");
        assert_eq!(nowhere.count(), 2, "{region}: {}", show(&found));
    }
}
