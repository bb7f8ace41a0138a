//! Wrong texts, one error a line where possible, and their messages.

use std::fmt::Write;
use torre_grammar::diag::{Diagnostic, Diagnostics};
use torre_grammar::source::Source;
use torre_grammar::{parse, parse_expr, parse_schedule};

/// The lines that labels point at, with carets, as a terminal would show them.
fn rendered(errors: &[Diagnostic]) -> String {
    let mut out = String::new();
    for error in errors {
        writeln!(out, "{}: {}", error.code.0, error.message).expect("memory");
        for label in &error.labels {
            let text = label.source.text();
            let (start, end) = (label.span.start as usize, label.span.end as usize);
            let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
            let stop = text[start..].find('\n').map_or(text.len(), |at| start + at);
            let number = text[..start].matches('\n').count() + 1;
            let before = " ".repeat(text[line..start].chars().count());
            let carets = "^".repeat(text[start..end.min(stop.max(start))].chars().count().max(1));
            writeln!(out, "{number:4} | {}", &text[line..stop]).expect("memory");
            writeln!(out, "     | {before}{carets} {}", label.text).expect("memory");
        }
        if let Some(hint) = &error.hint {
            writeln!(out, "  hint: {hint}").expect("memory");
        }
    }
    out
}

#[track_caller]
fn errors<T>(read: Result<T, Diagnostics>) -> String {
    match read {
        Ok(_) => panic!("no errors"),
        Err(errors) => rendered(&errors.0),
    }
}

#[track_caller]
fn of(text: &str) -> String {
    errors(parse(&Source::new("test", text)))
}

/// Several texts, each with its errors.
#[track_caller]
fn of_each(texts: &[&str]) -> String {
    texts
        .iter()
        .map(|text| of(text))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn carriage_returns_alone_end_no_line() {
    for text in ["// A comment.\rconst a = 1\r", "const a = 1\n\n// b\rc"] {
        let found = of(text);
        assert!(found.starts_with("E0006: line "), "{found}");
        assert!(
            found.contains("of `test` has a carriage return without a line feed"),
            "{found}"
        );
    }
    assert!(of("const a = 1\n\n// b\rc").contains("line 3"));
    for text in [
        "// A comment.\r\nconst a = 1\r\n",
        "const a = 1\r\r\n// b\r",
    ] {
        let tree = parse(&Source::new("test", text));
        assert!(tree.is_ok(), "{text:?}");
    }
}

/// Marks are shown as they stand in the text, and only invisible ones by their number.
#[test]
fn marks_are_shown_as_they_are() {
    for (text, shown) in [
        ("const a = 'x'", "`'` has no meaning here"),
        ("const a = \\", "`\\` has no meaning here"),
        ("const a = \u{7}", "`\\u{7}` has no meaning here"),
    ] {
        let found = of(text);
        assert!(found.contains(shown), "{text}: {found}");
    }
}

#[test]
fn indices_on_the_left_and_lists_of_parameters_are_explained() {
    let found = of("scheme s {
  axes x
  step { u[0] = u[1] }
}");
    assert!(
        found.contains("hint: an update advances all values, and has no index on its left"),
        "{found}"
    );
    let found = of("scheme s {
  axes x
  param a = 1, b = 2
}");
    assert!(
        found.contains(
            "hint: a `param` is written `param h = 0.1`; each stands in a line of its own or behind a `;`"
        ),
        "{found}"
    );
}

#[test]
fn habits_of_other_languages() {
    insta::assert_snapshot!(of("scheme m {
  axes x, y, z
  step {
    H -= dt * curl E
    E(x) = 3
    dE/dt = curl(H)
  }
}

problem p {
  scheme m(h = 0.1)
  init   u = 1 if x < 3 else 0
  source at x = 1 : sin(t)
  output u
  dt = 3
  param h = 3
}
"));
}

#[test]
fn in_a_scheme() {
    insta::assert_snapshot!(of("scheme m {
  axes x, y z
  param step = 1
  filed E : vector on edges
  field E : vector on corners
  field H vector on edges
  field p : scalar
  E += 1
  coef eps = \"a.npy\"
  step {
    E += a b
    let x 3
    H = = 4
    E = curl(H, )
    E -= 2 *
    where a = b { E = 1 }
    u@prv = 3
    a = 1e999 + 1 < 2 < 3
    b = 2 * if a then b else c
    param c = 3
    c == 4
    d = e = 5
  }
}
"));
}

#[test]
fn in_a_problem() {
    insta::assert_snapshot!(of("problem p {
  scheme m { h = }
  domain 256 x 256x128 x
  steps 10 20
  probe E at 3
  output E
  boundary x pec
  boundary x: pec, y: step
  source E at (1, 2) 3
  source E in x = 3.. += 3
  inti E = 3
  output slice E z 3
  field E
  incident w { direction 3 }
  total x = 3 from w
  total x = 3..4
}
"));
}

#[test]
fn in_other_items() {
    insta::assert_snapshot!(of("schem a { }
use foo
use std::
schedule s for m {
  (x, y): diamond(D = 2) lean x height 64
  z:
  k: cut height TH
  diamond(D = )
}
def f(a) {
  let b = 3
}
def g(a, 3) = 4
def h = 4
const if = 3
const pi 3
x = 3
import std::curl
"));
}

#[test]
fn of_brackets() {
    insta::assert_snapshot!(of_each(&[
        "scheme a {\n  step {\n    E += f(a, b\n    H += g(c)\n  }\n}\nconst b = 1 +\n",
        "scheme a {\n  step {\n    E += 1\n}\n\nproblem b {\n  steps 10 20\n}\n",
        "scheme a {\n  axes x\n}\n}\nconst c = (1 + 2\nconst d = [1)\n",
        "scheme a\n{\n  axes x\n}\n",
        "scheme a\n",
        "problem",
    ]));
}

#[test]
fn of_characters() {
    insta::assert_snapshot!(of("const a = 0.5x + .5
const b = 0xff
const c = 2e
const d = a ** 2 && b || !c
const e = a − b × c² // ≤ is fine here
const f = file(\"abc
const g = größe % 2
const h = 1 /* one */
const i = π < 3 ? 1 : √2
# comment
"));
}

#[test]
fn on_the_command_line() {
    let schedule = |text: &str| errors(parse_schedule(&Source::new("--schedule", text)));
    let expr = |text: &str| errors(parse_expr(&Source::new("--set", text)));
    let all = [
        schedule(""),
        schedule("torre(D=2"),
        schedule("(x,y) diamond"),
        schedule("torre D=2"),
        expr(""),
        expr("1 2"),
        expr("a)"),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn many_are_cut_short() {
    let text = of(&"a b\n".repeat(100));
    assert_eq!(text.matches("E0002").count(), 20);
    assert_eq!(text.matches("E0015").count(), 1);
}

/// A line that goes on with an operator, and words that are almost right.
#[test]
fn beginnings_of_lines_and_slips() {
    insta::assert_snapshot!(of("const a = 1
  + 2

scheme m {
  axes x
  field u : scalar on nodes level 2
  step {
    u += 1
      - 2 * u
    let q = u > 1
      and u < 2
  }
}

problem p {
  scheme m
  domain 30
  source u += sin(t)
    * cos(t)
  probe u at (3) evry 3
  record e = sum(u) evry 3
  total x = 3..4 form w
  coef c = if x < 1 1 else 2
  init u: 3
  steps untill 5
}
"));
}

/// Statements behind the end of an item that has one too early belong to it.
#[test]
fn statements_of_a_failed_item_are_no_items() {
    let codes = |text: &str| {
        let errors = parse(&Source::new("text", text)).expect_err("an error");
        let codes = errors.0.iter().map(|error| error.code.0);
        codes.collect::<Vec<_>>().join(" ")
    };
    let rest = "\n  probe u at (1)\n  source u at (2) += 1\n  steps 20\n";
    let bracket = codes(&format!("problem p {{\n  probe u at (0}} 3){rest}}}\n"));
    assert!(!bracket.contains("E0002"), "{bracket}");
    let separator = codes(&format!("problem p ;{rest}"));
    assert_eq!(separator, "E0001");
    // Other words may be items that are spelt wrongly, also behind a failed one.
    let item = codes(&format!("problem p ;{rest}schem s {{ axes x }}\n"));
    assert_eq!(item, "E0001 E0002");
    // Without a failed item before it, a statement is an error of its own.
    assert_eq!(codes("probe u at (1)\n"), "E0002");
}

/// A token is named once, also where it stands alone and in a list of several.
#[test]
fn no_token_is_expected_twice() {
    for place in ["in x", "in x = 1, y", "in x = 1..3, disc, y"] {
        let found = of(&format!("problem p {{\n  source u {place} 1\n}}\n"));
        let message = found.lines().next().expect("a message");
        assert_eq!(message.matches("`=`").count(), 1, "{message}");
        assert!(message.contains("`=`, `+=` or `-=`"), "{message}");
    }
}
