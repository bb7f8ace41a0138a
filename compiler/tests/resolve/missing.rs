//! Suggestions where a name is not known: a `use` that works, or no wrong one.

use crate::support::*;
use torre_compiler::resolve::Options;
use torre_compiler::world::{ArrayInfo, World};
use torre_grammar::source::Source;

/// The hints of all diagnostics with a code.
fn hints(text: &str, code: &str) -> Vec<String> {
    let found = checked(&TestWorld::default(), text);
    let with = found.0.iter().filter(|d| d.code.0 == code);
    with.map(|d| d.hint.clone().unwrap_or_default()).collect()
}

/// A problem with one more statement.
fn problem(stmt: &str) -> String {
    format!(
        "scheme s {{
  axes x, y, z
  param h = 0.5
  field E : vector on edges
  field H : vector on faces at 1/2
  step {{ H -= 0.1 * d(E.x, y); E += 0.1 * H.x }}
}}
problem p {{ scheme s; domain 8 x 8 x 8; steps 1; {stmt} }}"
    )
}

fn hint(stmt: &str) -> String {
    let all = hints(&problem(stmt), "E0101");
    all.into_iter().next().unwrap_or_else(|| "no E0101".into())
}

#[test]
fn a_missing_use_is_found_in_the_whole_library() {
    for (stmt, hint_of) in [
        (
            "source E.x at (1, 1, 1) += ricker(t, f0 = 1)",
            "add `use std::sources::ricker`",
        ),
        ("init E.x = curl(x)", "add `use std::curl::curl`"),
        ("init E.x = c0 * x", "add `use std::constants::c0`"),
        (
            "init E.x = packet(t, 1, 2, 3)",
            "add `use std::sources::packet`",
        ),
        ("init E.x = d_fang(x, x)", "add `use std::diff::d_fang`"),
    ] {
        assert_eq!(hint(stmt), hint_of, "{stmt}");
    }
    let text = "problem p { scheme maxwell; domain 8 x 8; steps 1 }";
    assert_eq!(hints(text, "E0101"), ["add `use std::maxwell::maxwell`"]);
    let text = "scheme mine : maxwell_tm { }";
    assert_eq!(hints(text, "E0101"), ["add `use std::maxwell::maxwell_tm`"]);
}

#[test]
fn a_field_that_is_called_is_read_beside_its_place() {
    let text = "scheme s {
  axes x, y
  param h = 0.5
  field u : scalar on nodes
  step { u += u(x + h) - u }
}";
    assert_eq!(
        hints(text, "E0106"),
        ["a value beside it is read by its distance in cells: `u[1, 0]`"]
    );
    assert_eq!(hints("const c = 3\nconst a = c(2)", "E0106"), [""]);
}

#[test]
fn a_medium_beside_a_difference_is_the_one_to_be_averaged() {
    let text = |product: &str| {
        format!(
            "scheme s {{
  axes x
  coef D on nodes = 1 + x
  field u : scalar on nodes
  field q : scalar on cells
  step {{ q = {product}; u -= d(q, x) }}
}}"
        )
    };
    let mean = "take the mean along x: `avg(D, x)`, or the value half a cell away: `D[+1/2]`";
    assert_eq!(hints(&text("D * d(u, x)"), "E0201"), [mean]);
    assert_eq!(hints(&text("d(u, x) * D"), "E0201"), [mean]);
}

#[test]
fn lengths_outside_of_a_small_domain_are_written_with_exponents() {
    let text = "use std::wave::wave_1d
problem p { scheme wave_1d { h = 1e-9, dt = 5e-10 }; domain 20; probe u at x = 10; steps 1 }";
    let found = checked(&TestWorld::default(), text);
    assert_eq!(found.0[0].message, "`x = 10` lies outside of the domain");
    assert_eq!(hints(text, "E0506"), ["along x it goes from 0 to 2e-8"]);
}

#[test]
fn the_suggested_use_works() {
    let text = problem("source E.x at (1, 1, 1) += ricker(t, f0 = 1) * c0");
    let all = hints(&text, "E0101");
    let uses: Vec<&str> = all.iter().map(|h| h.split('`').nth(1).unwrap()).collect();
    assert_eq!(uses, ["use std::sources::ricker", "use std::constants::c0"]);
    let mended = format!("{}\n{text}", uses.join("\n"));
    assert!(hints(&mended, "E0101").is_empty());
}

#[test]
fn a_name_of_another_kind_is_said_to_be_that() {
    for (stmt, part) in [
        ("source E.x at (1, 1, 1) += ricker", "write `ricker(...)`"),
        ("init E.x = c0(x)", "is a number"),
        ("init E.x = maxwell(x)", "is a scheme"),
    ] {
        let hint = hint(stmt);
        assert!(hint.contains(part), "{stmt}: {hint}");
    }
}

#[test]
fn slips_are_mended_and_words_are_not_guessed() {
    assert_eq!(
        hint("source E.x at (1, 1, 1) += rickre(t, 1)"),
        "did you mean `ricker`? Then add `use std::sources::ricker`"
    );
    for stmt in [
        "init E.x = dx",
        "init E.x = k * x",
        "init E.x = foo(x)",
        "init E.x = hh",
    ] {
        let hint = hint(stmt);
        let guesses = hint.contains("did you mean") || hint.contains("`use ");
        assert!(!guesses, "{stmt}: {hint}");
    }
    for name in ["pml", "absorbing", "Mur"] {
        let all = hints(&problem(&format!("boundary x: {name}")), "E0505");
        assert_eq!(
            all,
            ["`cpml(10)` is an absorbing layer of 10 cells"],
            "{name}"
        );
    }
    for (name, help) in [
        ("dirichlet", "`odd` holds values on the side at 0"),
        ("Neumann", "`even` holds the slope across the side at 0"),
    ] {
        let all = hints(&problem(&format!("boundary x: {name}")), "E0505");
        assert_eq!(all, [help], "{name}");
    }
    assert_eq!(
        hint("init E.x = e^(-x^2)"),
        "the exponential function is `exp(x)`"
    );
}

#[test]
fn wrong_modules_are_named_right() {
    assert_eq!(
        hints("use std::maxwell::ricker", "E0105"),
        ["it is in `std::sources`: `use std::sources::ricker`"]
    );
    let all = hints("use std::maxwell", "E0102");
    assert!(
        all[0].starts_with("write `use std::maxwell::maxwell`; it has "),
        "{all:?}"
    );
    let all = hints("use lib::inner::f", "E0102");
    assert!(all[0].starts_with("modules are files beside"), "{all:?}");
    let all = hints("use std::sources", "E0102");
    assert!(
        all[0].starts_with("write `use std::sources::gaussian`;"),
        "{all:?}"
    );
}

#[test]
fn a_problem_is_not_used_from_another_file() {
    let world = TestWorld {
        modules: vec![(
            "lib",
            "use std::wave::wave_1d\nproblem pluck { scheme wave_1d; domain 9; steps 1 }",
        )],
        ..TestWorld::default()
    };
    let said = show(&checked(&world, "use lib::pluck"));
    assert!(
        said.contains("E0106") && said.contains("only its own file runs"),
        "{said}"
    );
}

/// Two modules beside the file, of which one uses the file itself.
struct Circle;

impl World for Circle {
    fn module(&self, _: &Source, path: &[&str]) -> Option<Source> {
        let text = match path {
            ["test.torre"] => "def twice(a) = 2 * a",
            ["circle"] => "use test::twice\ndef thrice(a) = 3 * a",
            ["test"] => "",
            ["broken"] => "def broken(",
            _ => return None,
        };
        Some(Source::new(path.join("::"), text))
    }

    fn modules(&self) -> Vec<String> {
        ["circle", "broken"].map(str::to_string).to_vec()
    }

    fn array(&self, _: &Source, _: &str) -> Result<ArrayInfo, String> {
        Err("there is none".into())
    }

    fn table(&self, _: &Source, _: &str) -> Result<String, String> {
        Err("there is none".into())
    }
}

#[test]
fn a_use_that_would_fail_is_not_suggested() {
    for text in ["const a = thrice(1)", "const a = broken(1)"] {
        let source = Source::new("test.torre", text);
        let ast = torre_grammar::parse(&source).unwrap();
        let found = torre_compiler::resolve::check(&Circle, &source, &ast, &Default::default());
        assert_eq!(found.0.len(), 1, "{}", show(&found));
        assert_eq!(found.0[0].hint, None, "{}", show(&found));
    }
}

#[test]
fn numbers_without_names_and_lengths_are_helped() {
    assert_eq!(
        hint("init E.x = sin(k * x)"),
        "a number gets a name by `const k = ...`, a part of the grid by `region k = ...`"
    );
    for (stmt, part) in [
        ("output slice E.x z = 1.5", "a length is given with `at`"),
        ("probe E.x at (1, 1.5, 1)", "a length is given with `at`"),
        ("output volume E.x in x = 0.5..2", "as a region"),
        ("output volume E.x every 0.5", "steps are counted"),
    ] {
        let all = hints(&problem(stmt), "E0402");
        assert!(all.iter().any(|h| h.contains(part)), "{stmt}: {all:?}");
    }
}

#[test]
fn names_of_built_in_values_are_defined_nowhere() {
    let text = |outside: &str, inside: &str| {
        format!(
            "{outside}
scheme s {{
  axes x
  field u : scalar on nodes
  step {{
    {inside}
    u = 0.5 * u
  }}
}}
problem p {{ scheme s; domain 9; init u = x; source u at (3) += sin(t); steps 9 }}
"
        )
    };
    resolved(&text("const c = 3", "let c = 2"));
    for name in ["t", "pi", "dimensions", "everywhere", "nowhere"] {
        for (outside, inside) in [
            (format!("const {name} = 3"), String::new()),
            (format!("def {name}(x) = 3 * x"), String::new()),
            (String::new(), format!("let {name} = 3")),
        ] {
            let options = Options::default();
            let refused = refused_with(&TestWorld::default(), &text(&outside, &inside), &options);
            let said = show(&refused);
            assert!(said.contains("E0104"), "{outside} {inside}: {said}");
        }
    }
}
