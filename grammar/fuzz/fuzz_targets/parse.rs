//! Any text gives a tree or errors that point into it; the text that the formatter prints of a tree is read back as the
//! same tree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use torre_grammar::source::Source;
use torre_grammar::{parse, print};

fuzz_target!(|text: &str| {
    let source = Source::new("fuzz", text);
    match parse(&source) {
        Ok(tree) => {
            let printed = print(&tree);
            let again = parse(&Source::new("printed", printed.as_str()));
            assert_eq!(again.as_ref().ok(), Some(&tree), "{printed}\n{again:?}");
            assert_eq!(print(&tree), printed);
        }
        Err(errors) => {
            assert!(!errors.0.is_empty() && errors.0.len() < 32);
            for label in errors.0.iter().flat_map(|error| &error.labels) {
                let (start, end) = (label.span.start as usize, label.span.end as usize);
                assert!(start <= end && text.get(start..end).is_some(), "{errors:?}");
            }
        }
    }
});
