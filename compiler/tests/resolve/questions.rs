//! The programs of the chapters on the language, first questions, layers and incident waves are right: without errors,
//! warnings and, as they are rounded on purpose, with notes alone.

use crate::support::*;
use torre_grammar::diag::Severity;

const CHAPTER: &str = include_str!("../../../docs/src/questions.md");

/// A program around lines of a problem.
fn around(lines: &str) -> String {
    let steps = if lines.contains("steps") {
        ""
    } else {
        "steps 5"
    };
    format!(
        "use std::maxwell::maxwell_tm
use std::sources::ricker
problem q {{
  scheme maxwell_tm {{ h = 0.1 }}
  domain 60 x 40
  {steps}
{lines}
}}
"
    )
}

/// Whole programs; lines of them stand in these chapters, too.
#[test]
fn programs_of_whole_chapters_are_right() {
    let chapters = [
        include_str!("../../../docs/src/layers.md"),
        include_str!("../../../docs/src/waves.md"),
        include_str!("../../../docs/src/language.md"),
    ];
    let blocks = chapters.iter().flat_map(|c| c.split("```torre\n").skip(1));
    let blocks = blocks.filter_map(|block| block.split("```").next());
    let mut count = 0;
    for program in blocks.filter(|text| text.contains("problem ")) {
        let found = checked(&TestWorld::default(), program);
        let is_note = |d: &torre_grammar::diag::Diagnostic| d.severity == Severity::Note;
        assert!(found.0.iter().all(is_note), "{program}\n{}", show(&found));
        count += 1;
    }
    assert!(count >= 4, "{count}");
}

#[test]
fn all_programs_are_right() {
    let world = TestWorld {
        tables: vec![("wave.csv", "0, 1\n1, 2\n2, 3\n")],
        ..TestWorld::default()
    };
    let blocks = CHAPTER.split("```torre\n").skip(1);
    let mut count = 0;
    for block in blocks {
        let text = block.split("```").next().expect("a block ends");
        let program = match text.contains("problem ") {
            true => text.to_string(),
            false => around(text),
        };
        let found = checked(&world, &program);
        let is_note = |d: &&torre_grammar::diag::Diagnostic| d.severity == Severity::Note;
        assert!(
            found.0.iter().all(|d| is_note(&d)),
            "{program}\n{}",
            show(&found)
        );
        count += 1;
    }
    assert!(count >= 8, "{count}");
}
