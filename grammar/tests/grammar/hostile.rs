//! Texts that would overflow a stack, take for ever or exhaust memory if nothing were bounded. Each is read on a small
//! stack.

use torre_grammar::ast::Ast;
use torre_grammar::diag::Diagnostics;
use torre_grammar::source::Source;
use torre_grammar::{parse, parse_expr, print};

/// Less than a thread has by default.
const STACK: usize = 1 << 20;

fn on_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(work)
        .expect("a thread can be started");
    thread.join().expect("no panic")
}

/// Reads a text, and prints and drops the result, all on the small stack.
#[track_caller]
fn codes(text: String) -> Vec<&'static str> {
    on_small_stack(move || {
        let read = parse(&Source::new("hostile", text));
        if let Ok(tree) = &read {
            let printed = print(tree);
            assert_eq!(
                parse(&Source::new("printed", printed)).as_ref().ok(),
                Some(tree)
            );
        }
        distinct(&read)
    })
}

fn distinct(read: &Result<Ast, Diagnostics>) -> Vec<&'static str> {
    let mut codes: Vec<&'static str> = Vec::new();
    for error in read.as_ref().err().iter().flat_map(|errors| &errors.0) {
        if !codes.contains(&error.code.0) {
            codes.push(error.code.0);
        }
    }
    codes
}

fn constant(value: &str) -> String {
    format!("const a = {value}\n")
}

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    constant(&(open.repeat(depth) + inner + &close.repeat(depth)))
}

const NONE: [&str; 0] = [];

#[test]
fn nesting_is_bounded() {
    for depth in [65, 1000, 50_000] {
        assert_eq!(codes(nested("(", "1", ")", depth)), ["E0009"]);
        assert_eq!(codes(nested("[", "1", "]", depth)), ["E0009"]);
        assert_eq!(codes(nested("f(", "1", ")", depth)), ["E0009"]);
        assert_eq!(
            codes(nested("if 1 then 2 else ", "1", "", depth)),
            ["E0009"]
        );
        assert_eq!(
            codes(nested("if ", "1", " then 2 else 3", depth)),
            ["E0009"]
        );
        let blocks = format!(
            "scheme s {{ step {{ {} {} }} }}",
            "where a {".repeat(depth),
            "}".repeat(depth)
        );
        assert_eq!(codes(blocks), ["E0009"]);
    }
}

#[test]
fn nesting_within_the_bound_is_read() {
    assert_eq!(codes(nested("(", "1", ")", 64)), NONE);
    assert_eq!(codes(nested("[-f(1 + ", "1", ") ^ 2]", 32)), NONE);
    assert_eq!(codes(nested("f(a = [x.y, (2 * ", "1", ") - 1])", 21)), NONE);
    assert_eq!(codes(nested("if 1 then 2 else ", "1", "", 64)), NONE);
    assert_eq!(codes(nested("(if 1 then 2 else ", "1", ")", 64)), NONE);
    assert_eq!(codes(nested("f(if 1 then 2 else ", "1", ")", 64)), NONE);
    assert_eq!(codes(nested("if ", "1", " then 2 else 3", 64)), NONE);
    assert_eq!(codes(nested("if 1 then ", "1", " else 3", 64)), NONE);
    assert_eq!(codes(nested("[", "(3).x", "]", 63)), NONE);
    assert_eq!(codes(nested("if (", "1", ") then 2 else 3", 32)), NONE);
    let blocks = format!(
        "scheme s {{ step {{ {} a = (1) {} }} }}",
        "where a {\n".repeat(61),
        "\n}".repeat(61)
    );
    assert_eq!(codes(blocks), NONE);
}

#[test]
fn chains_are_bounded() {
    for length in [300, 20_000] {
        assert_eq!(codes(constant(&("-".repeat(length) + "1"))), ["E0017"]);
        assert_eq!(codes(constant(&("not ".repeat(length) + "1"))), ["E0017"]);
        for op in [" + ", " * ", " ^ ", " and ", "^-"] {
            assert_eq!(
                codes(constant(
                    &("a".to_string() + &format!("{op}a").repeat(length))
                )),
                ["E0017"]
            );
        }
        for postfix in [".a", "@prev", "[0]", "(1)"] {
            assert_eq!(
                codes(constant(&("a".to_string() + &postfix.repeat(length)))),
                ["E0017"]
            );
        }
    }
    assert_eq!(
        codes(constant(&("a".to_string() + &" + a".repeat(255)))),
        NONE
    );
    assert_eq!(
        codes(constant(&("a".to_string() + &" ^ a".repeat(255)))),
        NONE
    );
    assert_eq!(codes(constant(&("-".repeat(255) + "a"))), NONE);
}

#[test]
fn sums_of_products_are_read() {
    assert_eq!(
        codes(constant(
            &("a*b*c".to_string() + &" + a*b*c*d*e".repeat(200))
        )),
        NONE
    );
    assert_eq!(
        codes(constant(
            &("(a*b*c)".to_string() + &" + (-a*b^c)".repeat(200))
        )),
        NONE
    );
}

/// Texts that a bound on each kind of nesting alone would allow: brackets full of long chains.
#[test]
fn depth_is_bounded_over_brackets() {
    let wide = " + a".repeat(20) + ")";
    assert_eq!(codes(nested("(", "1", &wide, 60)), ["E0017"]);
    assert_eq!(codes(nested("(", "1", " + a + a + a)", 60)), NONE);
}

#[test]
fn long_statements() {
    assert_eq!(codes(constant(&("a + ".repeat(100_000) + "a"))), ["E0017"]);
    assert_eq!(
        codes(constant(&format!("[{}]", "1, ".repeat(100_000)))),
        NONE
    );
}

#[test]
fn files_are_bounded() {
    assert_eq!(codes("// comment\n".repeat(100_000)), ["E0010"]);
}

#[test]
fn large_files_are_read() {
    assert_eq!(codes("const a = 1 + b * c\n".repeat(50_000)), NONE);
    assert_eq!(codes("\n".repeat(1_000_000)), NONE);
    assert_eq!(
        codes(format!(
            "const {} = {}\n",
            "a".repeat(1_000_000),
            "1".repeat(300)
        )),
        NONE
    );
    assert_eq!(
        codes(format!(
            "scheme s {{\nstep {{\n{}}} }}",
            "E += a\n".repeat(50_000)
        )),
        NONE
    );
}

#[test]
fn errors_are_bounded() {
    for text in [
        ")",
        "}",
        "(",
        "{",
        "[",
        "(]",
        "\"\n",
        "é ",
        "a\n",
        ". ",
        "scheme s {\n",
        "1x1x1 ",
        "use\n",
        ";",
        "..",
        "/*",
        "=",
        "{;",
        "(,",
    ] {
        let read = on_small_stack(move || parse(&Source::new("hostile", text.repeat(100_000))));
        let count = read.err().map_or(0, |errors| errors.0.len());
        assert!(count <= 21, "{text}: {count}");
    }
    let wrong = "a b\n".repeat(20_000);
    let read =
        on_small_stack(move || parse(&Source::new("hostile", format!("scheme s {{\n{wrong}}}"))));
    assert_eq!(read.err().map_or(0, |errors| errors.0.len()), 20);
}

#[test]
fn numbers_out_of_range() {
    let code = |text: &str| {
        parse_expr(&Source::new("number", text))
            .err()
            .map(|errors| errors.0[0].code.0)
    };
    assert_eq!(code("1e308"), None);
    assert_eq!(code("1e309"), Some("E0008"));
    assert_eq!(code(&"9".repeat(400)), Some("E0008"));
    assert_eq!(code("1e-400"), Some("E0008"));
    assert_eq!(code("0e-400"), None);
    assert_eq!(code("1e99999999999999999999"), Some("E0008"));
    assert_eq!(code("4.9e-324"), None);
}
