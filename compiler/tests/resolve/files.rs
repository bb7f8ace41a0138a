//! Tables, and arrays from files inside of expressions.

use crate::support::*;
use torre_compiler::host::{At, HostExpr};
use torre_compiler::problem::StaticValue;
use torre_compiler::resolve::{Options, Resolved};
use torre_compiler::scheme::Precision;

fn world() -> TestWorld {
    TestWorld {
        arrays: vec![("eps.npy", "<f4", vec![16, 8])],
        tables: vec![("wave.csv", "t, a, b\n0, 0, 5\n2, 4, 6\n4, 0, 7\n")],
        ..TestWorld::default()
    }
}

const SCHEME: &str = "
def scaled(name, x) = 2 * table(name, x)
scheme s {
  axes x, y
  param a = table(\"wave.csv\", 1)
  coef k on cells = 1
  coef e : vector on faces = 1
  field u : scalar on cells
  field E : vector on faces
  step { u = k * u; E = e * E }
}
";

fn problem(text: &str) -> Resolved {
    let text = format!("{SCHEME}problem p {{\nscheme s\ndomain 16 x 8\nsteps 1\n{text}\n}}");
    let options = Options {
        precision: Precision::F64,
        ..Options::default()
    };
    resolved_with(&world(), &text, &options)
}

fn refused(text: &str) -> String {
    let text = format!("{SCHEME}problem p {{\nscheme s\ndomain 16 x 8\nsteps 1\n{text}\n}}");
    show(&refused_with(&world(), &text, &Options::default()))
}

fn value(e: &HostExpr, position: [f64; 3], time: f64) -> f64 {
    e.eval(&At { position, time })
}

/// The places of a record are its own.
#[test]
fn values_from_files_after_a_record_have_its_places_no_more() {
    let said = |before: &str| {
        refused(&format!(
            "{before}\n  source u in file(\"eps.npy\") > 3 += 1"
        ))
    };
    let alone = said("");
    assert!(alone.contains("E0604"), "{alone}");
    let after = said("record energy = sum(u)");
    assert!(
        after.contains("E0604") && !after.contains("energy` needs"),
        "{after}"
    );
}

#[test]
fn tables_are_functions_of_anything_static() {
    let r = problem(
        "const c = table(\"wave.csv\", a, column = 3)
  coef k = table(\"wave.csv\", x + c, column = \"b\")
  source u at (1, 2) += scaled(\"wave.csv\", t) * y
  source u at (1, 2) += table(\"wave.csv\")
  source u at (1, 2) += table(\"wave.csv\", outside = -1)",
    );
    // a = 2, c = 6.
    let k = &r.scheme.coefs[0].value;
    assert_eq!(value(k, [0.0, 0.0, 0.0], 0.0), 7.0);
    assert_eq!(value(k, [-5.0, 0.0, 0.0], 0.0), 5.5);
    let [first, second, third] = r.problem.sources.as_slice() else {
        panic!()
    };
    assert_eq!(value(&first.profile, [0.0, 0.0, 3.0], 9.0), 3.0);
    assert_eq!(value(&first.wave, [0.0, 0.0, 3.0], 1.5), 6.0);
    assert_eq!(value(&second.wave, [0.0; 3], 1.5), 3.0);
    assert_eq!(value(&second.wave, [0.0; 3], 5.0), 0.0);
    assert_eq!(value(&third.wave, [0.0; 3], 5.0), -1.0);
    // The text that stands for the calculation tells the table's values.
    assert!(r.scheme.to_string().contains("table(\"wave.csv\" "));
}

#[test]
fn files_are_read_where_they_are_used() {
    let r = problem(
        "coef k = 1 + 3 * file(\"eps.npy\")
  coef e = 2 * file(\"eps.npy\")
  init u = file(\"eps.npy\")
  init E = [file(\"eps.npy\"), 1 - file(\"eps.npy\")]
  source u += file(\"eps.npy\") * sin(t)",
    );
    let dump = r.scheme.to_string();
    assert!(dump.contains("(1.0 + (3.0 * f0[0, 0, 0]))"), "{dump}");
    assert!(dump.contains("f0 \"eps.npy\" at [1/2, 1/2]"), "{dump}");
    assert!(dump.contains("f1 \"eps.npy\" at [0, 1/2]"), "{dump}");
    assert!(dump.contains("f2 \"eps.npy\" at [1/2, 0]"), "{dump}");
    assert!(
        dump.contains("e.y at [1/2, 0] = (2.0 * f2[0, 0, 0])"),
        "{dump}"
    );
    assert!(matches!(r.problem.init[0].value, StaticValue::File(_)));
    let init: Vec<String> = r
        .problem
        .init
        .iter()
        .map(|i| match &i.value {
            StaticValue::Expr(e) => e.to_string(),
            StaticValue::File(f) => f.to_string(),
        })
        .collect();
    assert_eq!(init, ["f0", "f1", "(1.0 - f2[0, 0, 0])"]);
    assert_eq!(
        r.problem.sources[0].profile.to_string(),
        "(f0[0, 0, 0] * 1.0)"
    );
}

/// Each component reads the arrays that its own value is made of, whatever its definition takes for the others.
#[test]
fn definitions_take_arrays_for_each_component() {
    let world = TestWorld {
        arrays: vec![("x.npy", "<f4", vec![17, 8]), ("y.npy", "<f4", vec![16, 9])],
        ..TestWorld::default()
    };
    let text = |value: &str| {
        format!(
            "def pair(a, b) = [a, 2 * b]
             def swapped(a, b) = pair(b, a)
             scheme s {{
               axes x, y
               coef e : vector on faces = 1
               field E : vector on faces
               step {{ E = e * E }}
             }}
             problem p {{ scheme s; domain 16 x 8; boundary all: even; steps 1; coef e = {value} }}"
        )
    };
    let both = "file(\"x.npy\"), file(\"y.npy\")";
    let listed = "[file(\"x.npy\"), 2 * file(\"y.npy\")]".to_owned();
    let expected = resolved_with(&world, &text(&listed), &Options::default())
        .scheme
        .to_string();
    for value in [
        format!("pair({both})"),
        "swapped(file(\"y.npy\"), file(\"x.npy\"))".to_owned(),
    ] {
        let found = resolved_with(&world, &text(&value), &Options::default())
            .scheme
            .to_string();
        assert_eq!(found, expected, "{value}");
    }
    let wrong = text(&format!("swapped({both})"));
    let message = show(&refused_with(&world, &wrong, &Options::default()));
    assert_eq!(message.matches("error E0603: `").count(), 2, "{message}");
}

#[test]
fn files_without_a_place_are_refused() {
    let message = refused("const a = file(\"eps.npy\")");
    assert!(
        message.contains("error E0604: values from a file have no position here"),
        "{message}"
    );
    let message = refused("coef k = file(\"none.npy\") + 1");
    assert!(
        message.contains("error E0601: `none.npy` cannot be read"),
        "{message}"
    );
    let message = refused("region metal = file(\"eps.npy\") > 1");
    assert!(
        message.contains("error E0604: `metal` needs a position for its values from a file"),
        "{message}"
    );
    let message = refused("coef k = \"eps.npy\"");
    assert!(
        message.contains("error E0106: the name of a file is no value"),
        "{message}"
    );
    let message = refused("coef k = file(3)");
    assert!(
        message.contains("error E0110: the name of a file is needed here"),
        "{message}"
    );
}

#[test]
fn tables_that_cannot_be_are_refused() {
    let message = refused("coef k = table(\"none.csv\", x)");
    assert!(
        message.contains("error E0601: `none.csv` cannot be read"),
        "{message}"
    );
    let message = refused("coef k = table(\"wave.csv\", x, column = \"c\")");
    assert!(
        message.contains(
            "error E0605: `wave.csv` is no table: it has no column `c`, but `t`, `a`, `b`"
        ),
        "{message}"
    );
    let message = refused("coef k = table(\"wave.csv\", x, column = 1)");
    assert!(
        message.contains("error E0110: the values of a table are in its second"),
        "{message}"
    );
    let message = refused("coef k = table(\"wave.csv\")");
    assert!(message.contains("error E0305"), "{message}");
    let text = "scheme s { axes x; field u : scalar on nodes; step { u = table(\"wave.csv\", u) } }
problem p { scheme s; domain 8; steps 1 }";
    let message = show(&refused_with(&world(), text, &Options::default()));
    assert!(
        message.contains("error E0403: `table` does not work on field values"),
        "{message}"
    );
}

/// A region from a file is one on the file's lattice.
#[test]
fn regions_from_files_have_a_position() {
    let r = problem("region metal on cells = file(\"eps.npy\") > 0.5\nsource u in metal += 1");
    let condition = r.problem.sources[0].condition.as_ref().expect("a mask");
    assert_eq!(condition.to_string(), "(f0[0, 0, 0] > 0.5)");
}

/// The items of a list lie at the positions of the components that they are of, and nowhere else.
#[test]
fn items_of_lists_are_read_at_their_own_positions() {
    let world = TestWorld {
        arrays: vec![
            ("ex.npy", "<f4", vec![6, 6]),
            ("ey.npy", "<f4", vec![7, 5]),
            ("a.npy", "<f4", vec![6, 5]),
            ("b.npy", "<f4", vec![6, 5]),
            ("c.npy", "<f4", vec![6, 5]),
        ],
        ..TestWorld::default()
    };
    let files = |text: &str| {
        let r = resolved_with(&world, text, &Options::default());
        let files = r.scheme.files.iter();
        let shown: Vec<String> = files
            .map(|f| format!("{} at {:?}", f.path, f.position.0.map(|h| h.0)))
            .collect();
        shown
    };
    for value in [
        "[file(\"ex.npy\"), file(\"ey.npy\")]",
        "2 * [file(\"ex.npy\"), -file(\"ey.npy\")]",
        "pair(\"ex.npy\", \"ey.npy\")",
        "if x < 2 then [file(\"ex.npy\"), file(\"ey.npy\")] else [0, 1]",
    ] {
        // E.x lies at [1/2, 0], and a mirror with a plane of values adds one along y.
        let found = files(&format!(
            "use std::maxwell::maxwell_te
def pair(a, b) = [file(a), file(b)]
problem p {{ scheme maxwell_te; domain 6 x 5; boundary all: pmc; steps 1; init E = {value} }}"
        ));
        assert_eq!(
            found,
            ["ex.npy at [1, 0, 0]", "ey.npy at [0, 0, 1]"],
            "{value}"
        );
    }
    let found = files(
        "scheme s {
  axes x, y
  coef e on cells = 2
  coef k : vector on faces = [avg(e, x) * file(\"a.npy\"), avg(e, y) * file(\"b.npy\")]
  field v : vector on faces
  field s : tensor on cells
  step { v = k * v; s = s }
}
problem p {
  scheme s
  domain 6 x 5
  init s = sym(file(\"a.npy\"), file(\"b.npy\"), xy = file(\"c.npy\"))
  steps 1
}",
    );
    assert_eq!(
        found,
        [
            "a.npy at [0, 0, 1]",
            "b.npy at [1, 0, 0]",
            "a.npy at [1, 0, 1]",
            "b.npy at [1, 0, 1]",
            "c.npy at [0, 0, 0]"
        ]
    );
    let scalar = "[file(\"ex.npy\"), file(\"ey.npy\")] * file(\"ex.npy\")";
    let text = format!(
        "use std::maxwell::maxwell_te
problem p {{ scheme maxwell_te; domain 6 x 5; boundary all: pmc; steps 1; init E = {scalar} }}"
    );
    let shown = show(&refused_with(&world, &text, &Options::default()));
    assert!(shown.contains("E0603"), "{shown}");
}
