//! The notations of the command line: a schedule, and an expression.
#![no_main]

use libfuzzer_sys::fuzz_target;
use torre_grammar::ast::{Ast, Comments, Item, ItemKind};
use torre_grammar::source::Source;
use torre_grammar::{parse_expr, parse_schedule, print, print_expr};

fuzz_target!(|text: &str| {
    let source = Source::new("fuzz", text);
    if let Ok(expr) = parse_expr(&source) {
        let printed = print_expr(&expr);
        let again = parse_expr(&Source::new("printed", printed.as_str()));
        assert_eq!(again.as_ref().ok(), Some(&expr), "{printed}\n{again:?}");
    }
    if let Ok(schedule) = parse_schedule(&source) {
        let item = Item { comments: Comments::default(), kind: ItemKind::Schedule(schedule) };
        print(&Ast { items: vec![item], end: Comments::default() });
    }
});
