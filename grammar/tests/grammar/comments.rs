//! Comments inside of statements: each stays beside the words that it stands beside.

use torre_grammar::source::Source;
use torre_grammar::{parse, print};

#[track_caller]
fn formatted(text: &str) -> String {
    let tree = parse(&Source::new("test", text)).unwrap_or_else(|errors| panic!("{errors:#?}"));
    print(&tree)
}

/// The canonical text of a text, which is that of itself.
#[track_caller]
fn assert_formatted(text: &str, expected: &str) {
    let found = formatted(text);
    assert_eq!(found, expected, "\n{found}");
    assert_eq!(formatted(&found), found);
}

#[test]
fn elements_of_lists_keep_their_comments() {
    assert_formatted(
        "use a::{ // all of these\n  b, // first\n  // second\n  c,\n} // end\n",
        "use a::{  // all of these\n  b,      // first\n  // second\n  c,\n}  // end\n",
    );
    assert_formatted(
        "use a::{b,\n  c // why\n}\n",
        "use a::{\n  b,\n  c,  // why\n}\n",
    );
    assert_formatted(
        "def f(\n  a, // one\n  b = 2 // two\n) = a*b // product\n",
        "def f(\n  a,       // one\n  b = 2,   // two\n) = a * b  // product\n",
    );
    assert_formatted(
        "const c = [\n  // x\n  1,\n  f(2, 3), // y\n  // nothing more\n]\n",
        "const c = [\n  // x\n  1,\n  f(2, 3),  // y\n  // nothing more\n]\n",
    );
    assert_formatted(
        "const c = f(g(a), // one\n  [b,\n  c // of the list\n  ])\n",
        "const c = f(\n  g(a),  // one\n  [\n    b,\n    c,  // of the list\n  ],\n)\n",
    );
}

#[test]
fn statements_without_brackets_keep_their_comments() {
    assert_formatted(
        "scheme s {\n  axes x, // first\n    y // second\n}\n",
        "scheme s {\n  axes x,  // first\n    y      // second\n}\n",
    );
    assert_formatted(
        "const c = a + // one\n  b*d + // two\n  e // three\n",
        "const c = a +  // one\n  b*d +        // two\n  e            // three\n",
    );
    // Where no line can end, comments come above in their order.
    assert_formatted(
        "const c = // one\n  a // two\n",
        "// one\nconst c = a  // two\n",
    );
    assert_formatted("const c = // one\n  a\n", "const c = a  // one\n");
    assert_formatted(
        "problem p {\n  domain 8\n  boundary x: pec | // left\n    pmc, // right\n    y: pec\n}\n",
        "problem p {\n  domain   8\n  // left\n  boundary x: pec | pmc,  // right\n    y: pec\n}\n",
    );
    assert_formatted(
        "scheme s {\n  step {\n    where x > 1 and // low\n      x < 3 { // both\n      u = 1\n    }\n  }\n}\n",
        "scheme s {\n  step {\n    where x > 1 and  // low\n      x < 3 {        // both\n      u = 1\n    }\n  }\n}\n",
    );
}

/// Comments after any token behind which a line may end: all are there, in their order, and the text stays as it is.
#[test]
fn no_comment_is_lost_or_changes_its_place() {
    let text = "use a::{b, c}\ndef f(a, b = [1, 2]) = a*b + f(g(a), (a + b)*c, [1, b])\n\
                scheme s {\n  axes x, y\n  field E : { a on nodes, b on [1/2, 0] }\n  step {\n    \
                where x > 1 and y < 2 { E.a = f(a, g(b + c))[+1/2, 0] - (if x > 1 then 2 else f(3, 4)) }\n  }\n}\n\
                problem p {\n  scheme s { a = 1, b = 2 }\n  domain 8 x 9\n  \
                boundary x: pec | pmc(1, 2), y: pec\n  source E.a in x = 1..2, y = 3 += sin(t)\n  \
                probe E.a, E.b at (1, 2) as p\n}\n";
    let places: Vec<usize> = text
        .char_indices()
        .filter(|(_, c)| matches!(c, '(' | '[' | ',' | '+' | '*' | '='))
        .map(|(at, c)| at + c.len_utf8())
        .filter(|at| !text[*at..].starts_with("=") && !text[*at..].starts_with("1/2"))
        .collect();
    let mut tried = 0;
    for step in 1..places.len() {
        let mut commented = String::new();
        let mut from = 0;
        let mut wanted = Vec::new();
        for (n, at) in places
            .iter()
            .enumerate()
            .filter(|(n, _)| n % step == step / 2)
        {
            commented += &text[from..*at];
            let alone = if n % 3 == 0 { "\n" } else { "" };
            commented += &format!("{alone} // c{n}.\n");
            wanted.push(format!("// c{n}."));
            from = *at;
        }
        commented += &text[from..];
        let Ok(tree) = parse(&Source::new("test", commented.as_str())) else {
            continue;
        };
        tried += 1;
        let found = print(&tree);
        let order: Vec<&str> = found
            .match_indices("// c")
            .map(|(at, _)| &found[at..at + 1 + found[at..].find('.').unwrap()])
            .collect();
        assert_eq!(order, wanted, "{commented}\n{found}");
        assert_eq!(formatted(&found), found);
    }
    assert!(tried > 20, "{tried}");
}
