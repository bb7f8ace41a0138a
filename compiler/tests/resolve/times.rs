//! Warnings about updates that are not centred in time: at the right value, once, and silenced where they are not
//! wanted.

use crate::support::*;
use torre_compiler::resolve::Options;

fn scheme(fields: &str, step: &str) -> String {
    format!(
        "scheme s {{\n  axes x\n  coef c = 0.5 + 0.1 * x\n{fields}\n  step {{\n{step}\n  }}\n}}"
    )
}

/// Codes and messages of the warnings of a scheme.
fn warned(fields: &str, step: &str) -> Vec<String> {
    let found = checked(&TestWorld::default(), &scheme(fields, step));
    assert!(!found.has_errors(), "{}", show(&found));
    found
        .0
        .iter()
        .map(|d| format!("{}: {}", d.code.0, d.message))
        .collect()
}

const EH: &str = "  field E : scalar on nodes\n  field H : scalar on cells at 1/2\n";

fn with(more: &str) -> String {
    format!("{EH}{more}")
}

#[test]
fn second_order_methods_are_not_warned_of() {
    let leapfrog = "H -= 0.5 * d(E, x)\n E -= 0.5 * d(H, x)";
    assert!(warned(EH, leapfrog).is_empty());
    // The memory of a damping layer, on the declared times of its field and on default ones.
    for time in ["", " at 1/2"] {
        let psi = with(&format!("  field psi : scalar on nodes{time}\n"));
        let step =
            "H -= 0.5 * d(E, x)\n psi = c * psi + 0.2 * d(H, x)\n E -= 0.5 * (d(H, x) + psi)";
        assert!(warned(&psi, step).is_empty(), "{:?}", warned(&psi, step));
    }
    // Runge and Kutta's midpoint, with its stage as a field and as a rate; Heun's method.
    let one =
        "  field u : scalar on nodes\n  field k : scalar on nodes\n  field l : scalar on nodes\n";
    for step in [
        "k = u + 0.1 * d2(u, x); l = 0.0; u += 0.2 * d2(k, x)",
        "k = u - 0.1 * u; l = 0.0; u -= 0.2 * k",
        "k = 0.2 * d2(u, x); l = 0.2 * d2(u + 0.5 * k, x); u += l",
        "k = 0.2 * d2(u, x); l = 0.2 * d2(u + k, x); u += (k + l) / 2",
        "k = c * u^2; l = c * (u + k / 2)^2; u += l",
    ] {
        assert!(
            warned(one, step).is_empty(),
            "{step}: {:?}",
            warned(one, step)
        );
    }
    // A polarization with the difference of its values; a relation between D and E.
    let p = with("  field P : scalar on nodes levels 2\n");
    let step = "H -= 0.5 * d(E, x)\n E -= 0.5 * d(H, x) + P@next - P@prev\n P = c * P + 0.1 * E";
    assert!(warned(&p, step).is_empty(), "{:?}", warned(&p, step));
    let d = with("  field D : scalar on nodes\n");
    assert!(
        warned(
            &d,
            "H -= 0.5 * d(E, x); D -= 0.5 * d(H, x); E = D / (1 + c)"
        )
        .is_empty()
    );
    // Methods of Lax and Wendroff, of Warming and Beam, and of Fromm, whose errors of cells and steps cancel.
    let one = "  field u : scalar on nodes levels 2\n  const r = 0.3\n";
    for step in [
        "u@next = u - r / 2 * (u[1] - u[-1]) + r^2 / 2 * (u[1] - 2*u + u[-1])",
        "u -= 0.15 * (u[1] - u[-1]) - 0.045 * (u[1] - 2 * u + u[-1])",
        "u@next = u - r / 2 * (3*u - 4*u[-1] + u[-2]) + r^2 / 2 * (u - 2*u[-1] + u[-2])",
        "u@next = u - r / 4 * (u[1] + 3*u - 5*u[-1] + u[-2]) + r^2 / 4 * (u[1] - u - u[-1] + u[-2])",
    ] {
        let found = warned(one, step);
        assert!(found.is_empty(), "{step}: {found:?}");
    }
    // With a coefficient that varies: the second difference of a flux, and of the nearest values.
    for step in [
        "u += -c * dc(u, x) + 0.5 * c * dc(c * dc(u, x), x)",
        "u += -0.5 * c * (u[1] - u[-1]) + 0.5 * c * d(avg(c, x) * d(u, x), x)",
    ] {
        let found = warned("  field u : scalar on nodes\n", step);
        assert!(found.is_empty(), "{step}: {found:?}");
    }
    // Upwind differences, and Euler's step with central ones, are of first order; so is a step of a nonlinear equation.
    for step in [
        "u@next = u - c * (u - u[-1])",
        "u@next = u - c / 2 * (u[1] - u[-1])",
        // Exact in a part of the domain.
        "u@next = u - (if x < 30000 then 1 else 0.5) * (u - u[-1])",
        "u@next = u - c * u * (u[1] - u[-1]) + c^2 / 2 * u * (u[1] - 2*u + u[-1])",
    ] {
        let found = warned(one, step);
        assert!(
            found.len() == 1 && found[0].starts_with("W0301"),
            "{step}: {found:?}"
        );
    }
    // Stages in the value of the update: of diffusion, of a nonlinear equation, of a system, of Runge and Kutta's
    // method of fourth order.
    let system = "  field q : { p on nodes, v on nodes }\n";
    let one = "  field u : scalar on nodes\n";
    for (fields, step) in [
        (
            one,
            "let k1 = d2(u, x)\n let k2 = d2(u + 0.05 * k1, x)\n u += 0.1 * k2",
        ),
        (
            one,
            "let k1 = -u * dc(u, x)\n let m = u + 0.05 * k1\n u -= 0.1 * m * dc(m, x)",
        ),
        (
            one,
            "let k1 = d2(u, x) - u^3\n let m = k1 * 0.05 + u\n u += 0.1 * (d2(m, x) - m^3)",
        ),
        (
            system,
            "let m = q + 0.05 * [-dc(q.v, x), -c * dc(q.p, x)]\n q += 0.1 * [-dc(m.v, x), -c * dc(m.p, x)]",
        ),
        (
            one,
            "let k1 = -dc(u, x)\n let k2 = -dc(u + 0.05 * k1, x)\n let k3 = -dc(u + 0.05 * k2, x)\n let k4 = \
             -dc(u + 0.1 * k3, x)\n u += 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)",
        ),
    ] {
        let found = warned(fields, step);
        assert!(found.is_empty(), "{step}: {found:?}");
    }
    // Euler's steps with differences of differences and products of sums.
    for step in [
        "u -= 0.1 * d2(d2(u, x), x)",
        "u += 0.1 * (d2(u, x) + u - u^3)",
        "u += 0.1 * d2(u^3 - u - 0.5 * d2(u, x), x)",
        "u += 0.1 * u * (1 - u) + 0.1 * d(c[1/2] * d(u, x), x)",
        "u -= 0.1 * (u - u[-1]) * (u - 0.3)",
        "u += 0.1 * d2(u - 2 * u[-1] + u[-2], x)",
    ] {
        let found = warned(one, step);
        assert!(
            found.len() == 1 && found[0].starts_with("W0301"),
            "{step}: {found:?}"
        );
    }
    // Methods of Adams and Bashforth, whose weights lie at n + 1/2.
    let two = "  field u : scalar on nodes levels 2\n  field w : scalar on cells levels 2\n";
    let rest = "w = w";
    for step in [
        "u@next = u - 0.1 * (1.5 * dc(u, x) - 0.5 * dc(u@prev, x))",
        "u@next = u + 0.1 * (1.5 * (d2(u, x) - c * u) - 0.5 * (d2(u@prev, x) - c * u@prev))",
        "u@next = u - 0.1 * (1.5 * d(w, x) - 0.5 * d(w@prev, x))",
    ] {
        let step = format!("{step}\n {rest}");
        assert!(warned(two, &step).is_empty(), "{:?}", warned(two, &step));
    }
    // A sum over time, which nothing reads.
    let sum = with("  field S : scalar on nodes\n");
    assert!(warned(&sum, "H -= 0.5 * d(E, x); E -= 0.5 * d(H, x); S += E^2").is_empty());
}

/// By the second term of Taylor's series: velocity Verlet's method, and methods of Lax and Wendroff's kind for systems.
#[test]
fn methods_by_taylors_series_are_not_warned_of() {
    let two = "  field u : scalar on nodes\n  field v : scalar on nodes\n";
    let three = "  field u : scalar on nodes levels 2\n  field v : scalar on nodes\n  field a : scalar on nodes\n";
    let sound = "  field p : scalar on cells\n  field v : scalar on nodes\n";
    for (fields, step) in [
        (
            three,
            "a = c * d2(u, x)\n u += 0.1 * v + 0.005 * a\n v += 0.05 * (a + c * d2(u, x))",
        ),
        (
            three,
            "u += 0.1 * v + 0.005 * a\n v += 0.05 * (a + c * d2(u, x) - 0.3 * u)\n a = c * d2(u, x) - 0.3 * u",
        ),
        (
            three,
            "a = a\n u += 0.1 * v + 0.005 * c * d2(u, x)\n v += 0.05 * c * (d2(u@prev, x) + d2(u, x))",
        ),
        (
            sound,
            "p -= 0.2 * d(v, x) - 0.02 * d2(p, x)\n v -= 0.2 * (d(p, x) + d(p@prev, x)) / 2",
        ),
    ] {
        let fields = match step.contains("p@prev") {
            true => fields.replace("on cells", "on cells levels 2"),
            false => fields.to_owned(),
        };
        let found = warned(&fields, step);
        assert!(found.is_empty(), "{step}: {found:?}");
    }
    // Of two fields at once, and with a coefficient of a file.
    let system = "  field q : { p on nodes, v on nodes }\n";
    let step =
        "q += [-0.2 * dc(q.v, x) + 0.02 * d2(q.p, x), -0.2 * dc(q.p, x) + 0.02 * d2(q.v, x)]";
    let found = warned(system, step);
    assert!(found.is_empty(), "{found:?}");
    let world = TestWorld {
        arrays: vec![("k.npy", "<f4", vec![16])],
        ..TestWorld::default()
    };
    let of_file = |second: &str| {
        format!(
            "scheme s {{ axes x; coef k on nodes = 0.5; field u : scalar on nodes
               step {{ u += -k / 2 * (u[1] - u[-1]) + {second} * (u[1] - 2*u + u[-1]) }} }}
             problem p {{ scheme s; domain 16; coef k = 0.2 * file(\"k.npy\"); steps 1 }}"
        )
    };
    for (second, count) in [("k^2 / 2", 0), ("k^2", 1)] {
        let warnings = resolved_with(&world, &of_file(second), &Options::default()).warnings;
        assert_eq!(warnings.0.len(), count, "{second}: {}", show(&warnings));
    }
    // With another factor the second term is none.
    let wrong = [
        (
            two,
            "u += 0.1 * v + 0.01 * c * d2(u, x)\n v += 0.1 * c * d2(u, x)",
        ),
        (
            two,
            "u += 0.1 * v - 0.005 * c * d2(u, x)\n v += 0.1 * c * d2(u, x)",
        ),
        (
            sound,
            "p -= 0.2 * d(v, x) - 0.04 * d2(p, x)\n v -= 0.2 * d(p, x)",
        ),
        (sound, "p -= 0.2 * d(v, x)\n v -= 0.2 * d(p, x)"),
    ];
    for (fields, step) in wrong {
        let found = warned(fields, step);
        assert!(
            found.len() == 1 && found[0].starts_with("W0301"),
            "{step}: {found:?}"
        );
    }
}

/// The increment of a stage decides: half of the change of the rate, or anything else.
#[test]
fn differences_of_advanced_values_are_stages_with_the_right_increment_alone() {
    let one = "  field u : scalar on nodes\n";
    for (increment, is_stage) in [
        ("0.05", true),
        ("0.02", false),
        ("-1 / 12", false),
        ("0.1", false),
    ] {
        for step in [
            format!("u += 0.1 * d2(u + {increment} * d2(u, x), x)"),
            format!("let m = u + {increment} * c * dc(u, x)\n u += 0.1 * c * dc(m, x)"),
        ] {
            let found = warned(one, &step);
            assert_eq!(found.is_empty(), is_stage, "{step}: {found:?}");
        }
    }
    // Heun's method, and one of third order that keeps sums below a bound.
    for step in [
        "let k = d2(u, x)\n u += 0.05 * (k + d2(u + 0.1 * k, x))",
        "let a = u + 0.1 * d2(u, x)\n let b = 0.75 * u + 0.25 * (a + 0.1 * d2(a, x))\n \
         u = u / 3 + 2 / 3 * (b + 0.1 * d2(b, x))",
    ] {
        let found = warned(one, step);
        assert!(found.is_empty(), "{step}: {found:?}");
    }
}

#[test]
fn the_value_off_the_middle_is_named() {
    let v = "  field v : scalar on nodes at 1/2\n  field p : scalar on cells\n";
    let damped = "v -= 0.5 * d(p, x) - 0.1 * d2(v, x)\n p -= 0.5 * d(v, x)";
    assert_eq!(
        warned(v, damped),
        [
            "W0301: this update is not centred in time: it takes `v` from n - 1/2 to n + 1/2, but reads `v` at n - 1/2"
        ]
    );
    let older = "  field u : scalar on nodes levels 2\n";
    assert_eq!(
        warned(older, "u@next = u - 0.1 * dc(u@prev, x)"),
        [
            "W0301: this update is not centred in time: it takes `u` from n to n + 1, but reads `u` at n - 1"
        ]
    );
    let q = with("  field q : scalar on nodes\n");
    let step = "H -= 0.5 * d(E, x)\n q += 0.1 * d(H, x)\n E -= 0.5 * d(H, x) + q";
    assert_eq!(
        warned(&q, step),
        [
            "W0301: this update is not centred in time: it takes `E` from n to n + 1, but reads `q` at n + 1"
        ]
    );
    // A flux lies at the time of the field that it is a difference of.
    let flux = "  field T : scalar on nodes\n  field q : scalar on cells\n";
    assert_eq!(
        warned(flux, "q = -c * d(T, x)\n T -= 0.1 * d(q, x)"),
        [
            "W0301: this update is not centred in time: it takes `T` from n to n + 1, but reads `q` at n"
        ]
    );
}

#[test]
fn a_plain_name_beside_the_next_value_is_that_value() {
    let p = with("  field P : scalar on nodes\n");
    let step = "H -= 0.5 * d(E, x)\n E -= 0.5 * d(H, x) + P@next - P\n P = c * P + 0.1 * E";
    assert_eq!(
        warned(&p, step),
        [
            "W0302: `P` is the next value here, as `P@next` is: the statement that computes it runs first"
        ]
    );
}

#[test]
fn a_statement_ahead_of_one_above_it_is_pointed_at() {
    let fields = ["E", "a", "s"]
        .map(|name| format!("  field {name} : scalar on nodes\n"))
        .concat();
    let ahead = |other: &str| {
        format!(
            "W0304: `a` is computed before `{other}`, which stands above it and reads or changes the same values"
        )
    };
    let found = |step: &str| -> Vec<String> {
        let all = warned(&fields, step).into_iter();
        all.filter(|w| w.starts_with("W0304")).collect()
    };
    // It reads a value that the other one advances; the other one reads its value.
    assert_eq!(found("E = a@next\n s += 1\n a += s"), [ahead("s")]);
    assert_eq!(found("E = a@next\n s += a\n a += 1"), [ahead("s")]);
    // The reader itself, and statements that have nothing to do with it.
    assert_eq!(found("E = a@next\n s += 1\n a += E"), [""; 0]);
    assert_eq!(found("s = a\n a = 2 * a\n E = a@next\n a += 1"), [""; 0]);
    assert_eq!(found("a += s\n s += 1\n E = a@next"), [""; 0]);
}

#[test]
fn an_earlier_value_between_two_updates_is_that_of_the_update_before() {
    let u = "  field u : scalar on nodes levels 2\n  field old : scalar on nodes\n";
    let wave = "u@next = 2 * u - u@prev + 0.2 * d2(u, x)";
    // A condition at the end that needs the old value there.
    let end = "where x < 0.5 { u = u@prev[1] - 0.3 * (u[1] - u@prev) }";
    assert_eq!(
        warned(u, &format!("old = u\n {wave}\n {end}")),
        [
            "W0303: `u@prev` is not the value at the end of the last step here, but the one after update 1 of 2 of \
             `u` in it"
        ]
    );
    // Before the first update and after the last one it is a value at the end of a step.
    let kept = end.replace("u@prev", "old");
    assert!(warned(u, &format!("old = u\n {wave}\n {kept}")).is_empty());
    assert!(warned(u, &format!("{wave}\n {kept}\n old = u - u@prev")).is_empty());
    // So it is where branches advance the value once.
    let branches = format!("where x < 3 {{ {wave} }} else {{ u@next = u@prev }}\n old = u@prev");
    assert!(warned(u, &branches).is_empty());
}

#[test]
fn the_warning_comes_once_with_all_places_and_says_what_to_declare() {
    let fields = "  field v : scalar on nodes\n  field p : scalar on cells\n";
    let text = scheme(fields, "v -= 0.5 * d(p, x)\n p -= 0.5 * d(v, x)");
    assert_eq!(
        show(&checked(&TestWorld::default(), &text)),
        "warning W0301: this update is not centred in time: it takes `v` from n to n + 1, but reads `p` at n
  test.torre `0.5 * d(p, x)`: first order in time
  test.torre `0.5 * d(v, x)`: takes `p` from n to n + 1, but reads `v` at n + 1
  hint: if the values of `v` lie half a step later, declare its field `at 1/2`; `allow W0301` in the step silences this
"
    );
    let mended = text.replace(
        "field v : scalar on nodes",
        "field v : scalar on nodes at 1/2",
    );
    assert!(checked(&TestWorld::default(), &mended).0.is_empty());
}

#[test]
fn allowed_warnings_are_silent_in_their_block() {
    let u = "  field u : scalar on nodes\n";
    assert_eq!(warned(u, "u += 0.1 * d2(u, x)").len(), 1);
    assert!(warned(u, "allow W0301\n u += 0.1 * d2(u, x)").is_empty());
    assert!(
        warned(
            "  allow W0301, W0401\n  field u : scalar on nodes\n",
            "u += 0.1 * d2(u, x)"
        )
        .is_empty()
    );
    let two = "  field u : scalar on nodes\n  field w : scalar on nodes\n";
    let step = "w += 0.1 * d2(w, x)\n where x < 3 {\n allow W0301\n u += 0.1 * d2(u, x)\n }";
    assert_eq!(
        warned(two, step).len(),
        1,
        "the other statement is warned of"
    );
    let problem = "use std::wave::wave_1d\nproblem p { scheme wave_1d; domain 20; boundary x: pec; ALLOW source u at \
        (0) += 1; steps 2 }";
    let count = |allow: &str| {
        checked(&TestWorld::default(), &problem.replace("ALLOW", allow))
            .0
            .len()
    };
    assert_eq!(
        (count(""), count("allow W0501;"), count("allow W0502;")),
        (1, 0, 1)
    );
}

#[test]
fn only_warnings_can_be_silenced() {
    let text = "problem p { allow W9999 }";
    let shown = show(&checked(&TestWorld::default(), text));
    assert!(
        shown.contains("error E0113: there is no warning `W9999`"),
        "{shown}"
    );
    let fields = "  field allow : scalar on nodes\n";
    assert_eq!(
        warned(fields, "allow += 0.1 * d2(allow, x)").len(),
        1,
        "a field may have this name"
    );
}
