//! Texts as the formatter prints them.

use torre_grammar::source::Source;
use torre_grammar::{parse, print};

#[track_caller]
fn formatted(text: &str) -> String {
    let tree = parse(&Source::new("test", text)).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let printed = print(&tree);
    let again = parse(&Source::new("printed", printed.as_str()))
        .unwrap_or_else(|errors| panic!("{printed}\n{errors:#?}"));
    assert_eq!(again, tree, "{printed}");
    assert_eq!(print(&again), printed);
    printed
}

/// The reference's examples are in canonical layout but for numbers and the columns of comments.
#[test]
fn the_reference() {
    let reference = include_str!("../../../docs/src/language.md");
    let blocks: Vec<&str> = reference
        .split("```torre\n")
        .skip(1)
        .filter_map(|block| block.split("```").next())
        .collect();
    insta::assert_snapshot!(formatted(&blocks.concat()));
}

#[test]
fn what_authors_write() {
    insta::assert_snapshot!(formatted(
        "// licence\n\n\n//bare\n//\n///three\nuse a::{b,\n  c // why\n}\nscheme s{ //open\n\n\naxes x;axes y // \
         y\n\n\n\
         field v:{a on nodes, b on [+1/2,0]} at 1/2 levels 2\nparam alpha=1;param b=2.50e3\n\n//gap\nparam \
         longer_name = 1e-9\n\
         step{}\nstep { where x<3 and(y>2) {E=-(a+b)*c^(-2); // in\n} // behind where\n//end\n}}// behind scheme\n\
         def f(a,b=1)=a*(b*2)-(a-b)-(2*a)^b\ndef g(a) { // g\nlet b=a\n\n// value\nb // of g\n//done\n}\nconst \
         c=1\n// last"
    ));
}

#[test]
fn long_lines() {
    insta::assert_snapshot!(formatted(
        "def f(a) = some_function(first_argument_of_it, order = 4) * another_function(its_argument, [1, 2, 3]) + a * \
         yet_another(b)\n\
         def g(a) = [short(a), short(b), a_list_of_things_that_is_much_too_long_for_one_line(a, b, c), \
         and_one_more(a, b)] // first\n\
         problem p {\n boundary x: absorbing(width = 10, order = 3, strength = 0.5), y: absorbing(width = 10, order = \
         3, strength = 0.5), z: pec\n\
         source E.z where (x - 64*h)^2 + (y - 64*h)^2 < 100*h^2 and (x - 64*h)^2 + (y - 64*h)^2 > 90*h^2 or z > 3 += \
         ricker(t)\n}"
    ));
}
