//! The chapter on diagnostics is right: every code has a section, and every example gives the diagnostics of its
//! section.

use crate::support::*;
use torre_compiler::resolve::{Options, check, codes, resolve};
use torre_grammar::diag::{Diagnostics, Severity};
use torre_grammar::source::Source;

const CHAPTER: &str = include_str!("../../../docs/src/diagnostics.md");

struct Section<'a> {
    code: &'a str,
    title: &'a str,
    settings: Vec<(String, String)>,
    problem: Option<String>,
    program: Option<&'a str>,
    message: Option<&'a str>,
}

fn sections() -> Vec<Section<'static>> {
    CHAPTER
        .split("\n### ")
        .skip(1)
        .map(|text| {
            let text = text.split("\n## ").next().unwrap_or(text);
            let (head, body) = text.split_once('\n').expect("a section has a body");
            let (code, title) = head.split_once(": ").expect("`CODE: title`");
            let mut section = Section {
                code,
                title,
                settings: Vec::new(),
                problem: None,
                program: None,
                message: body.lines().find_map(|l| l.strip_prefix("> ")),
            };
            let line = body.lines().find_map(|l| l.strip_prefix("Command line: `"));
            let words: Vec<&str> = line.map_or(Vec::new(), |l| {
                l.trim_end_matches('`').split_whitespace().collect()
            });
            for pair in words.chunks(2) {
                match pair {
                    ["--set", setting] => {
                        let (name, value) = setting.split_once('=').expect("`NAME=VALUE`");
                        section.settings.push((name.to_string(), value.to_string()));
                    }
                    ["--problem", name] => section.problem = Some(name.to_string()),
                    other => panic!("{code}: {other:?}"),
                }
            }
            if let Some((_, rest)) = body.split_once("```torre\n") {
                section.program = rest.split("```").next();
            }
            section
        })
        .collect()
}

/// The module that the sections on problems use.
fn string_module() -> &'static str {
    CHAPTER
        .split("`string.torre`:\n```torre\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("the chapter has it")
}

fn diagnose(section: &Section<'_>, program: &str) -> Diagnostics {
    let world = TestWorld {
        modules: vec![
            ("string", string_module()),
            ("ring", "use chain::f"),
            ("chain", "use ring::f"),
        ],
        arrays: vec![
            ("complex.npy", "<c8", vec![100]),
            ("fifty.npy", "<f4", vec![50]),
        ],
        tables: vec![("wave.csv", "0, 1\n1, 2\n1, 3\n")],
    };
    let options = Options {
        problem: section.problem.clone(),
        overrides: section.settings.clone(),
        memory: Some(1 << 30),
        ..Options::default()
    };
    let source = Source::new("test.torre", program);
    match torre_grammar::parse(&source) {
        Err(d) => d,
        Ok(ast) if section.problem.is_some() => match resolve(&world, &source, &ast, &options) {
            Ok(resolved) => resolved.warnings,
            Err(d) => d,
        },
        Ok(ast) => check(&world, &source, &ast, &options),
    }
}

#[test]
fn every_example_gives_its_message() {
    let mut wrong = String::new();
    for section in sections() {
        let Some(program) = section.program else {
            continue;
        };
        let diagnostics = diagnose(&section, program);
        let severity = match section.code.as_bytes()[0] {
            b'W' => Severity::Warning,
            b'N' => Severity::Note,
            _ => Severity::Error,
        };
        let first = diagnostics.0.iter().find(|d| d.severity == severity);
        let found = first.map(|d| (d.code.0, d.message.as_str()));
        if found != Some((section.code, section.message.unwrap_or("none"))) {
            wrong += &format!("{}: {found:?}\n{}", section.code, show(&diagnostics));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_code_has_a_section() {
    let sections = sections();
    for (code, title) in codes::TABLE {
        let section = sections.iter().find(|s| s.code == code.0);
        let section = section.unwrap_or_else(|| panic!("{} is missing", code.0));
        assert_eq!(section.title, *title, "{}", code.0);
        // These need programs that are too long for a book, or a defect.
        let without = ["E0413", "E0901"];
        assert!(
            section.program.is_some() != without.contains(&code.0),
            "{}",
            code.0
        );
    }
}
