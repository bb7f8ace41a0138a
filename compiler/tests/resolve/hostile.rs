//! Programs that try to take forever or all memory. Each test checks that it ends, on a small stack.

use crate::support::*;
use std::fmt::Write as _;
use torre_compiler::resolve::Options;
use torre_grammar::diag::Diagnostics;

/// The codes of all diagnostics of a program, each once.
fn codes_of(text: &str) -> Vec<&'static str> {
    let diagnostics: Diagnostics = checked(&TestWorld::default(), text);
    let mut codes: Vec<_> = diagnostics.0.iter().map(|d| d.code.0).collect();
    codes.sort();
    codes.dedup();
    codes
}

fn step(lines: &str) -> String {
    format!(
        "scheme s {{\n  axes x\n  field u : scalar on nodes levels 2\n  step {{\n{lines}\n  }}\n}}\n"
    )
}

fn repeat(n: usize, line: impl Fn(usize) -> String) -> String {
    (0..n).fold(String::new(), |mut text, i| {
        writeln!(text, "{}", line(i)).expect("strings take all");
        text
    })
}

#[test]
fn doubled_sums_are_one_tap() {
    let lets = repeat(60, |i| format!("let a{} = a{i} + a{i}", i + 1));
    let text = format!("let a0 = u - u@prev\n{lets}\nu = u@prev + a60");
    assert_eq!(codes_of(&step(&text)), Vec::<&str>::new());
}

#[test]
fn doubled_products_are_shared() {
    let lets = repeat(150, |i| format!("let a{} = a{i} * a{i}", i + 1));
    let text = format!("let a0 = u - u@prev\n{lets}\nu = a150");
    assert_eq!(codes_of(&step(&text)), Vec::<&str>::new());
}

#[test]
fn doubled_coefficients_are_refused() {
    let lets = repeat(60, |i| format!("let a{} = sin(a{i}) + cos(a{i})", i + 1));
    let text = format!("let a0 = x\n{lets}\nu = u@prev + a60 * u");
    assert_eq!(codes_of(&step(&text)), ["E0407"]);
}

#[test]
fn doubled_definitions_are_refused() {
    let defs = repeat(50, |i| {
        format!("def f{}(a) = f{i}(a) + f{i}(a) * f{i}(a)", i + 1)
    });
    let text = format!("def f0(a) = a\n{defs}{}", step("u = f50(u)"));
    assert_eq!(codes_of(&text), ["E0111"]);
}

#[test]
fn deep_definitions_are_refused() {
    let brackets = |i: usize| format!("{}f{i}(a){}", "(1 + ".repeat(50), ")".repeat(50));
    let defs = repeat(60, |i| format!("def f{}(a) = {}", i + 1, brackets(i)));
    let text = format!("def f0(a) = a\n{defs}{}", step("u = f60(u)"));
    assert_eq!(codes_of(&text), ["E0111"]);
}

/// A sum of many terms, in bindings of 50 each that continue each other: it nests to the left.
fn long_sum(n: usize, term: impl Fn(usize) -> String) -> String {
    let terms: Vec<String> = (0..n).map(term).collect();
    let parts: Vec<String> = terms.chunks(50).map(|c| c.join(" + ")).collect();
    parts
        .iter()
        .enumerate()
        .fold(String::new(), |text, (i, part)| match i {
            0 => format!("let s0 = {part}\n"),
            _ => format!("{text}let s{i} = s{} + {part}\n", i - 1),
        })
}

#[test]
fn long_sums_are_fine() {
    let sum = long_sum(1500, |i| format!("u[{}]", i % 700));
    assert_eq!(
        codes_of(&step(&format!("{sum}u = s29 / 1500 - u@prev"))),
        Vec::<&str>::new()
    );
    let sum = long_sum(1500, |i| format!("u[{i}] * u"));
    assert_eq!(
        codes_of(&step(&format!("{sum}u = s29 - u@prev"))),
        Vec::<&str>::new()
    );
}

#[test]
fn a_long_chain_of_lets_is_refused() {
    let lets = repeat(900, |i| format!("let a{} = 1 + sqrt(a{i})", i + 1));
    assert_eq!(
        codes_of(&step(&format!("let a0 = u\n{lets}\nu = a900"))),
        ["E0111"]
    );
    let lets = repeat(3000, |i| format!("let a{i} = 1"));
    assert_eq!(codes_of(&step(&lets)), ["E0111"]);
}

#[test]
fn one_large_expression_in_many_statements_is_refused() {
    let sum = long_sum(1000, |i| format!("u[{i}] * u"));
    let text = format!("{sum}{}", repeat(4000, |_| "u = s19".into()));
    let codes = codes_of(&step(&text));
    assert!(
        codes.contains(&"E0111") || codes.contains(&"E0407"),
        "{codes:?}"
    );
}

#[test]
fn stencils_of_stencils_are_refused() {
    let mut deep = "u".to_string();
    for _ in 0..40 {
        deep = format!("d2({deep}, x, 32)");
    }
    assert_eq!(codes_of(&step(&format!("u += {deep}"))), ["E0407"]);
    assert_eq!(codes_of(&step(&format!("u += u * {deep}"))), ["E0407"]);
}

#[test]
fn many_errors_are_cut_short() {
    let text = repeat(20_000, |i| format!("const a{i} = b{i}"));
    let diagnostics = checked(&TestWorld::default(), &text);
    assert!((20..100).contains(&diagnostics.0.len()));
    let last = diagnostics.0.last().expect("errors");
    assert_eq!(last.code.0, "E0015");
    let few = repeat(20, |i| format!("const a{i} = b{i}"));
    let few = checked(&TestWorld::default(), &few);
    assert_eq!(few.0.len(), 20);
    assert!(few.0.iter().all(|d| d.code.0 == "E0101"), "{}", show(&few));
    let text = repeat(3_000, |i| format!("use nowhere{i}::f"));
    assert!(checked(&TestWorld::default(), &text).0.len() < 100);
}

#[test]
fn many_results_are_refused() {
    let probes = repeat(20_000, |_| "output volume u".into());
    let text = format!(
        "{}problem p {{\n scheme s\n domain 8\n steps 1\n{probes}}}",
        step("u = u@prev + u")
    );
    assert_eq!(codes_of(&text), ["E0111"]);
}

#[test]
fn large_sources_are_refused() {
    let lets = repeat(13, |i| format!("let a{} = a{i} + a{i}", i + 1));
    let sources = repeat(5_000, |i| format!("source u at (3) += f(t + {i})"));
    let text = format!(
        "def f(a0) {{\n{lets}\na13\n}}\n{}problem p {{\n scheme s\n domain 8\n steps 1\n{sources}}}",
        step("u = u@prev + u")
    );
    assert_eq!(codes_of(&text), ["E0111"]);
}

#[test]
fn many_schemes_are_refused_in_the_end() {
    let lets = repeat(200, |i| format!("let a{} = a{i} * a{i} + u[{i}]", i + 1));
    let scheme = |i: usize| {
        step(&format!("let a0 = u\n{lets}\nu = a200")).replace("scheme s", &format!("scheme s{i}"))
    };
    let text = repeat(100, scheme);
    let codes = codes_of(&text);
    assert!(!codes.contains(&"E0901"), "{codes:?}");
}

#[test]
fn chains_of_next_values_are_ordered() {
    let fields = repeat(80, |i| format!("field v{i} : scalar on nodes"));
    let updates = repeat(79, |i| format!("v{i} += v{}@next", i + 1));
    let text = format!(
        "scheme s {{\naxes x\n{fields}\nstep {{\n{updates}\nv79 += 1\n}}\n}}\nproblem p {{\nscheme s\ndomain 8\nsteps \
         1\n}}"
    );
    let scheme = resolved_with(&TestWorld::default(), &text, &Options::default()).scheme;
    let order: Vec<u32> = scheme
        .stages
        .iter()
        .map(|s| s.updates[0].target.0)
        .collect();
    assert_eq!(order, (0..80).rev().collect::<Vec<u32>>());
}

/// Problems that take a large part of the operations of one.
fn large_problems(n: usize) -> String {
    let defs = repeat(12, |i| format!("def f{}(a) = f{i}(a) + f{i}(2 * a)", i + 1));
    let scheme = "scheme s { axes x\n field u : scalar on nodes\n step { u = 0.5 * u } }\n";
    let problems = repeat(n, |i| {
        format!("problem p{i} {{ scheme s\n domain 8\n init u = f12(1)\n steps 1 }}")
    });
    format!("def f0(a) = a\n{defs}{scheme}{problems}")
}

#[test]
fn many_problems_are_each_within_the_limit() {
    assert_eq!(codes_of(&large_problems(1)), codes_of(&large_problems(40)));
}

#[test]
fn too_many_problems_are_said_to_be_unchecked() {
    let text = large_problems(1_000);
    let message = show(&checked(&TestWorld::default(), &text));
    assert_eq!(message.matches("error").count(), 1, "{message}");
    let expected = "error E0111: the rest of this file is not checked";
    assert!(message.contains(expected), "{message}");
}
