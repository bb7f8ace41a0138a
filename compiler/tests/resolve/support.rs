//! A world with the standard library and files made up for a test.

use std::fmt::Write as _;
use torre_compiler::resolve::{Options, Resolved, check, resolve};
use torre_compiler::scheme::verify;
use torre_compiler::world::{ArrayInfo, World};
use torre_grammar::diag::{Diagnostics, Severity};
use torre_grammar::source::Source;

include!("../../../stdlib/index.rs");

#[derive(Default)]
pub struct TestWorld {
    /// Modules beside the file, by name.
    pub modules: Vec<(&'static str, &'static str)>,
    pub arrays: Vec<(&'static str, &'static str, Vec<u64>)>,
    pub tables: Vec<(&'static str, &'static str)>,
}

impl World for TestWorld {
    fn module(&self, _: &Source, path: &[&str]) -> Option<Source> {
        let (table, name): (&[(&str, &str)], &str) = match path {
            ["std", name] => (MODULES, name),
            [name] => (&self.modules, name),
            _ => return None,
        };
        let (_, text) = table.iter().find(|(n, _)| n == &name)?;
        Some(Source::new(path.join("::"), *text))
    }

    fn modules(&self) -> Vec<String> {
        MODULES.iter().map(|(n, _)| format!("std::{n}")).collect()
    }

    fn array(&self, _: &Source, path: &str) -> Result<ArrayInfo, String> {
        let found = self.arrays.iter().find(|(n, ..)| *n == path);
        let (_, dtype, shape) = found.ok_or("No such file or directory (os error 2)")?;
        Ok(ArrayInfo {
            dtype: dtype.to_string(),
            shape: shape.clone(),
        })
    }

    fn table(&self, _: &Source, path: &str) -> Result<String, String> {
        let found = self.tables.iter().find(|(n, _)| *n == path);
        let (_, text) = found.ok_or("No such file or directory (os error 2)")?;
        Ok(text.to_string())
    }
}

/// Resolves a program that must be right.
pub fn resolved(text: &str) -> Resolved {
    resolved_with(&TestWorld::default(), text, &Options::default())
}

pub fn resolved_with(world: &TestWorld, text: &str, options: &Options) -> Resolved {
    let source = Source::new("test.torre", text);
    let ast =
        torre_grammar::parse(&source).unwrap_or_else(|d| panic!("does not parse:\n{}", show(&d)));
    let resolved = resolve(world, &source, &ast, options)
        .unwrap_or_else(|d| panic!("does not resolve:\n{}", show(&d)));
    verify(&resolved.scheme).expect("the scheme keeps its rules");
    resolved
}

/// The diagnostics of `resolve` for a wrong program.
pub fn refused_with(world: &TestWorld, text: &str, options: &Options) -> Diagnostics {
    let source = Source::new("test.torre", text);
    let ast =
        torre_grammar::parse(&source).unwrap_or_else(|d| panic!("does not parse:\n{}", show(&d)));
    match resolve(world, &source, &ast, options) {
        Ok(_) => panic!("this should be refused"),
        Err(d) => d,
    }
}

pub fn checked(world: &TestWorld, text: &str) -> Diagnostics {
    let source = Source::new("test.torre", text);
    match torre_grammar::parse(&source) {
        Ok(ast) => check(world, &source, &ast, &Options::default()),
        Err(d) => d,
    }
}

/// Diagnostics as text: code, message, then each label with the text that it marks, then the hint.
pub fn show(diagnostics: &Diagnostics) -> String {
    let mut out = String::new();
    for d in &diagnostics.0 {
        let severity = match d.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        writeln!(out, "{severity} {}: {}", d.code.0, d.message).expect("strings take all");
        for label in &d.labels {
            let range = label.span.start as usize..label.span.end as usize;
            let text = label.source.text().get(range).unwrap_or("?");
            writeln!(
                out,
                "  {} `{}`: {}",
                label.source.name(),
                text.replace('\n', " "),
                label.text
            )
            .expect("strings take all");
        }
        if let Some(hint) = &d.hint {
            writeln!(out, "  hint: {hint}").expect("strings take all");
        }
    }
    out
}
