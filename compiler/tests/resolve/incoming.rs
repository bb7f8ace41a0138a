//! Incident fields and boxes of total fields: their results, and refusals.

use crate::support::*;
use torre_compiler::lattice::PerAxis;
use torre_compiler::problem::IncidentField;
use torre_compiler::resolve::Options;

fn problem(statements: &str) -> String {
    format!(
        "use std::maxwell::maxwell_tm\nproblem p {{\n  scheme maxwell_tm\n  domain 60 x 50\n  steps \
         10\n{statements}\n}}\n"
    )
}

const WAVE: &str = "incident w { direction (2, -4); drive Ez = sin(0.3 * t) }";

#[test]
fn a_direction_has_no_common_factor_and_a_box_is_whole_where_nothing_is_said() {
    let text = "boundary y: periodic
incident w { direction (-3, 0); drive Ez = sin(t) }
total x = 20..40 from w";
    let r = resolved(&problem(text));
    let incident = &r.problem.incidents[0];
    let IncidentField::Plane(wave) = &incident.field else {
        panic!("a plane wave");
    };
    assert_eq!(wave.direction, PerAxis([-1, 0, 0]));
    assert_eq!(wave.drives.len(), 1);
    assert!((0.1..0.3).contains(&wave.loss), "{}", wave.loss);
    assert_eq!(incident.boxes[0].ends.0, [[20, 40], [0, 1], [0, 50]]);
}

/// The code and the message of the only error.
fn refused(statements: &str) -> (String, String) {
    let found = refused_with(
        &TestWorld::default(),
        &problem(statements),
        &Options::default(),
    );
    assert_eq!(found.0.len(), 1, "{}", show(&found));
    (found.0[0].code.0.to_string(), found.0[0].message.clone())
}

#[test]
fn fields_and_boxes_that_cannot_be_are_refused() {
    let total = |rest: &str| format!("{WAVE}\n{rest}");
    let cases = [
        (
            "incident w { }\ntotal x = 20..30 from w",
            "E0519",
            "says nothing",
        ),
        (
            "incident w { direction (1, 0) }\ntotal x = 20..30 from w",
            "E0519",
            "nothing drives it",
        ),
        (
            "incident w { direction (1, 0); drive Ez = 1; drive Ez = 2 }\ntotal x = 20..30 from w",
            "E0503",
            "`Ez` is driven twice",
        ),
        (
            "incident w { drive Ez = 1 }\ntotal x = 20..30 from w",
            "E0519",
            "has no direction",
        ),
        (
            "incident w { direction (1, 0); Ez = sin(t) }\ntotal x = 20..30 from w",
            "E0519",
            "with other values",
        ),
        (
            "incident w { direction (0, 0); drive Ez = 1 }",
            "E0519",
            "a direction that is 0 is none",
        ),
        (
            "incident w { direction (1, 0, 0); drive Ez = 1 }",
            "E0519",
            "a number for each axis, here 2, not 3",
        ),
        (
            "incident w { direction (1, 9999999); drive Ez = 1 }",
            "E0519",
            "at most 1048576",
        ),
        (
            "incident w { direction (1, 0.5); drive Ez = 1 }",
            "E0402",
            "whole number",
        ),
        (
            "incident w { direction (1, 0); drive Ez = sin(x - t) }",
            "E0519",
            "a drive depends on time only",
        ),
        (
            "incident w { direction (1, 0); direction (1, 0); drive Ez = 1 }",
            "E0503",
            "`direction` is given twice",
        ),
        (
            "incident w { Ez = t; Ez = t }",
            "E0503",
            "`Ez` is given twice",
        ),
        (
            "total x = 20..30 from v",
            "E0101",
            "there is no incident field `v`",
        ),
    ];
    for (statements, code, message) in cases {
        let found = refused(statements);
        assert!(found.0 == code && found.1.contains(message), "{found:?}");
    }
    let boxes = [
        (total(WAVE), "E0103", "is defined twice"),
        (
            total("total x = 20..61 from w"),
            "E0506",
            "is no part of the domain",
        ),
        (
            total("total x = 20..20 from w"),
            "E0506",
            "is no part of the domain",
        ),
        (
            total("total x = 20..30, x = 3..9 from w"),
            "E0503",
            "`x` is given twice",
        ),
        (total("total q = 20..30 from w"), "E0112", "no axis `q`"),
        (
            total("total x = 0..60, y = 0..50 from w\nboundary all: pec"),
            "E0519",
            "does not go along it",
        ),
        (
            total("total x = 20..40, y = 20..30 from w\ntotal x = 40..50, y = 30..35 from w"),
            "E0519",
            "two boxes of the incident field `w` meet",
        ),
        (
            total("total x = 20..40, y = 20..30 from w\nboundary all: zero\nallow W0501"),
            "",
            "",
        ),
        (
            total("total x = 20..30, y = 20..30 from w\ntotal x = 31..40, y = 20..30 from w"),
            "",
            "",
        ),
        (
            total("total x = 0..40, y = 20..30 from w\nboundary all: zero"),
            "E0519",
            "too near to the lower end of `x`, which is `zero`",
        ),
        (
            total("total y = 20..30 from w\nboundary x: periodic"),
            "E0519",
            "the wave does not go straight along `x`",
        ),
        (
            total("total x = 0..30 from w\nboundary x: periodic"),
            "E0519",
            "keeps away from its ends",
        ),
        (
            total("total x = 20..40, y = 12..30 from w\nboundary all: cpml(12)"),
            "E0519",
            "a face of the box lies in",
        ),
        (
            total("total x = 20..40, y = 12..30 from w\ncoef eps = if y < 12 then 2 else 1"),
            "E0519",
            "the medium outside of the faces is not the same everywhere",
        ),
    ];
    for (statements, code, message) in boxes {
        if code.is_empty() {
            resolved(&problem(&statements));
            continue;
        }
        let found = refused(&statements);
        assert!(found.0 == code && found.1.contains(message), "{found:?}");
    }
}

/// Ghosts behind a mirror have sources outside of the box, which lack the incident field.
#[test]
fn boxes_keep_away_from_mirrors_that_they_do_not_reach() {
    let order = |order: u32, ends: &str| {
        let text = problem(&format!(
            "{WAVE}\ntotal x = {ends}, y = 20..30 from w\nboundary all: pec"
        ));
        text.replace(
            "scheme maxwell_tm",
            &format!("scheme maxwell_tm {{ order = {order} }}"),
        )
    };
    // `Ez` lies on the mirror and is 0 there, but no update in a box from cell 1 on reads it there.
    for (text, upper) in [
        (order(4, "1..58"), false),
        (order(4, "2..59"), true),
        (order(6, "2..57"), false),
        (order(6, "3..58"), true),
    ] {
        let found = refused_with(&TestWorld::default(), &text, &Options::default());
        let side = if upper { "upper" } else { "lower" };
        let message =
            format!("too near to the {side} side of `x`, a mirror, which it does not reach");
        assert_eq!(found.0.len(), 1, "{}", show(&found));
        assert_eq!(found.0[0].code.0, "E0519");
        assert!(found.0[0].message.contains(&message), "{}", show(&found));
    }
    for text in [order(2, "1..59"), order(4, "2..58"), order(6, "3..57")] {
        resolved(&text);
    }
    // The waves of nodes read odd nodes on the mirror itself.
    let wave = |mirror: &str, lo: i64| {
        format!(
            "use std::wave::wave_1d\nproblem p {{ scheme wave_1d; domain 40; steps 10; boundary x: {mirror} | zero\n\
             incident w {{ direction (1); drive u = sin(0.3 * t) }}\ntotal x = {lo}..30 from w\n}}"
        )
    };
    resolved(&wave("even", 1));
    resolved(&wave("odd", 2));
    let found = refused_with(&TestWorld::default(), &wave("odd", 1), &Options::default());
    assert!(
        show(&found).contains("a mirror, which it does not reach"),
        "{}",
        show(&found)
    );
}

#[test]
fn mirrors_let_along_what_they_leave_as_it_is() {
    let text = |mirror: &str| {
        problem(&format!(
            "boundary x: pec, y: {mirror}\nincident w {{ direction (1, 0); drive Ez = sin(t) }}\ntotal x = 20..40 \
             from w"
        ))
    };
    resolved(&text("pmc"));
    let found = refused_with(&TestWorld::default(), &text("pec"), &Options::default());
    let message = &found.0[0].message;
    assert!(
        message.contains("`Ez`, which is odd about the lower side of `y`"),
        "{message}"
    );
}

#[test]
fn given_fields_name_what_is_read_across_faces() {
    let total = "total x = 20..40, y = 10..20 from w";
    resolved(&problem(&format!(
        "incident w {{ Ez = sin(x - t); H.x = 0; H.y = sin(x - t) }}\n{total}"
    )));
    let (code, message) = refused(&format!("incident w {{ Ez = sin(x - t) }}\n{total}"));
    assert_eq!(code, "E0519");
    assert!(message.contains("does not say what `H"), "{message}");
}

#[test]
fn media_may_be_nonlinear_in_a_box_and_not_at_its_faces() {
    let text = |place: &str| {
        format!(
            "scheme kerr {{
  axes x
  coef chi = 0
  field E : scalar on nodes
  field H : scalar on [1/2] at 1/2
  step {{
    H += 0.5 * d(E, x)
    E += 0.5 * d(H, x) / (1 + chi * E^2)
  }}
}}
problem p {{
  scheme kerr
  domain 100
  coef chi = if x > {place} then 1 else 0
  incident w {{ direction (1); drive E = sin(0.3 * t) }}
  total x = 20..80 from w
  steps 10
}}
"
        )
    };
    let inside = text("40 and x < 60");
    resolved(&inside);
    let found = refused_with(&TestWorld::default(), &text("40"), &Options::default());
    let message = &found.0[0].message;
    assert!(
        message.contains("has a quotient by field values"),
        "{message}"
    );
}

#[test]
fn media_along_a_wave_have_to_be_seen_at_faces() {
    let text = |medium: &str, total: &str| {
        format!(
            "boundary y: periodic
coef eps = {medium}
incident w {{ direction (1, 0); drive Ez = sin(0.3 * t) }}
total {total} from w"
        )
    };
    let (layers, both) = ("x = 20..40", "x = 20..40, y = 10..30");
    // Faces across y see where the medium changes.
    resolved(&problem(&text("if x < 30 then 1 else 2", both)));
    resolved(&problem(&text(
        "if x > 25 and x < 30 then 3 else 1",
        layers,
    )));
    let (code, message) = refused(&text("if x < 30 then 1 else 2", layers));
    assert_eq!(code, "E0519");
    assert!(
        message.contains("no faces there that show where"),
        "{message}"
    );
    let (code, message) = refused(&text("if y < 20 then 1 else 2", both));
    assert_eq!(code, "E0519");
    assert!(message.contains("is not the same everywhere"), "{message}");
}

/// Drives along a direction in which their fields stand still make no wave; waves of all others are as large as the
/// rest.
#[test]
fn drives_across_the_direction_make_waves() {
    let text = |scheme: &str, wave: &str| {
        format!(
            "use std::maxwell::{{maxwell, maxwell_te}}\nuse std::acoustics::acoustics_2d\n\
             use std::elastic::elastic_2d\nproblem p {{\n  scheme {scheme}\n  domain {}\n  \
             incident w {{ {wave} }}\n  total x = 20..30, y = 20..30{} from w\n  steps 100\n}}\n",
            if scheme == "maxwell" {
                "50 x 50 x 50"
            } else {
                "50 x 50"
            },
            if scheme == "maxwell" {
                ", z = 20..30"
            } else {
                ""
            },
        )
    };
    let f = "sin(0.3 * t)";
    for (scheme, wave, expected) in [
        ("maxwell_te", "direction (1, 2); drive E = [2*F, -F]", ""),
        ("maxwell_te", "direction (1, 2); drive E.x = F", "45 %"),
        ("maxwell_te", "direction (1, 2); drive Hz = F", ""),
        (
            "maxwell_te { hx = 2 }",
            "direction (1, 1); drive E = [2*F, -F]",
            "",
        ),
        ("maxwell_te", "direction (3, 0); drive E.x = F", "no wave"),
        (
            "maxwell_te",
            "direction (1, 1); drive E = [F, F]",
            "no wave",
        ),
        ("maxwell", "direction (1, 2, 3); drive E = [3*F, 0, -F]", ""),
        ("maxwell", "direction (1, 2, 2); drive E.z = F", "67 %"),
        (
            "maxwell",
            "direction (0, 0, 1); drive E = [F, cos(0.3 * t), 0]",
            "",
        ),
        ("acoustics_2d", "direction (1, 0); drive p = F", ""),
        ("acoustics_2d", "direction (1, 0); drive v.x = F", ""),
        ("acoustics_2d", "direction (1, 0); drive v.y = F", "no wave"),
        ("elastic_2d", "direction (2, 1); drive v = [F, 0]", ""),
    ] {
        let text = text(scheme, &wave.replace('F', f));
        let case = format!("{scheme}, {wave}");
        if expected == "no wave" {
            let found = refused_with(&TestWorld::default(), &text, &Options::default());
            assert_eq!(found.0[0].code.0, "E0519", "{case}");
            assert!(show(&found).contains("makes no wave"), "{case}");
            continue;
        }
        let warnings = show(&resolved(&text).warnings);
        assert_eq!(
            warnings.contains("W0505"),
            !expected.is_empty(),
            "{case}: {warnings}"
        );
        assert!(warnings.contains(expected), "{case}: {warnings}");
    }
}

/// The length of a line follows from its direction: large boxes, of which no place is looked at, are no exception.
#[test]
fn lines_of_large_boxes_are_measured() {
    let text = "use std::maxwell::maxwell42
problem p {
  scheme maxwell42
  domain 400 x 400 x 400
  boundary all: cpml(10)
  incident wave { direction (1048575, 1048573, 1); drive E.z = sin(0.1 * t) }
  total x = 30..370, y = 30..370, z = 30..370 from wave
  steps 10
}";
    let found = refused_with(&TestWorld::default(), text, &Options::default());
    assert_eq!(found.0.len(), 1, "{}", show(&found));
    assert_eq!(found.0[0].code.0, "E0519");
    assert!(
        found.0[0]
            .message
            .starts_with("the line of the plane wave would have")
    );
}
