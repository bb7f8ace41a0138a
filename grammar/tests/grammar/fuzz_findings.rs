//! Texts that fuzzing found to break something, its seeds and the programs that come with Torre, checked as the fuzz
//! target does.

use std::fs;
use std::path::Path;
use torre_grammar::source::Source;
use torre_grammar::{parse, parse_expr, parse_schedule, print, print_expr};

fn check(name: &str, text: &str) {
    let source = Source::new(name, text);
    match parse(&source) {
        Ok(tree) => {
            let printed = print(&tree);
            let again = parse(&Source::new("printed", printed.as_str()));
            assert_eq!(
                again.as_ref().ok(),
                Some(&tree),
                "{name}:\n{printed}\n{again:?}"
            );
            assert_eq!(print(&tree), printed, "{name}");
        }
        Err(errors) => {
            assert!(!errors.0.is_empty(), "{name}");
            for label in errors.0.iter().flat_map(|error| &error.labels) {
                let (start, end) = (label.span.start as usize, label.span.end as usize);
                assert!(
                    start <= end && text.get(start..end).is_some(),
                    "{name}: {errors:?}"
                );
            }
        }
    }
    if let Ok(expr) = parse_expr(&source) {
        let printed = print_expr(&expr);
        let again = parse_expr(&Source::new("printed", printed.as_str()));
        assert_eq!(
            again.as_ref().ok(),
            Some(&expr),
            "{name}:\n{printed}\n{again:?}"
        );
    }
    let _: Result<_, _> = parse_schedule(&source);
}

#[test]
fn findings_stay_fixed_and_programs_are_read_back() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for folder in [
        "tests/fuzz_findings",
        "fuzz/seeds",
        "../examples",
        "../stdlib",
    ] {
        for entry in fs::read_dir(root.join(folder)).expect("the folder is there") {
            let path = entry.expect("the folder can be read").path();
            if path
                .extension()
                .is_none_or(|extension| extension != "torre")
            {
                continue;
            }
            let bytes = fs::read(&path).expect("the file can be read");
            check(
                &path.display().to_string(),
                &String::from_utf8_lossy(&bytes),
            );
            seen += 1;
        }
    }
    assert!(seen > 3);
}
