//! `allow W0301`: warnings that are not wanted in the block in which this stands.

use super::codes;
use super::report::{Place, Report, Silence};
use torre_grammar::ast::{Ast, ItemKind, Name, ProblemStmt, SchemeStmt, StepStmt, Stmt};
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::{Source, Span};

/// Tells the report which warnings a module does not want.
pub fn silence(report: &mut Report, source: &Source, ast: &Ast) {
    for item in &ast.items {
        match &item.kind {
            ItemKind::Scheme(scheme) => {
                block(report, source, &scheme.body, |stmt| match stmt {
                    SchemeStmt::Allow(codes) => Some(codes),
                    _ => None,
                });
                for stmt in &scheme.body {
                    if let SchemeStmt::Step { body, .. } = &stmt.kind.node {
                        step(report, source, body);
                    }
                }
            }
            ItemKind::Problem(problem) => {
                block(report, source, &problem.body, |stmt| match stmt {
                    ProblemStmt::Allow(codes) => Some(codes),
                    _ => None,
                });
            }
            ItemKind::Use(_)
            | ItemKind::Const { .. }
            | ItemKind::Def(_)
            | ItemKind::Layer(_)
            | ItemKind::Schedule(_) => {}
        }
    }
}

fn step(report: &mut Report, source: &Source, body: &[Stmt<StepStmt>]) {
    block(report, source, body, |stmt| match stmt {
        StepStmt::Allow(codes) => Some(codes),
        _ => None,
    });
    for stmt in body {
        if let StepStmt::Where(branches) = &stmt.kind.node {
            for branch in branches {
                step(report, source, &branch.body);
            }
        }
    }
}

/// From the first statement of a block to the last one.
pub fn block_of<T>(body: &[Stmt<T>]) -> Option<Span> {
    let (first, last) = (body.first()?, body.last()?);
    Some(first.kind.span.to(last.kind.span))
}

fn block<T>(
    report: &mut Report,
    source: &Source,
    body: &[Stmt<T>],
    allowed: impl Fn(&T) -> Option<&Vec<Name>>,
) {
    let Some(span) = block_of(body) else {
        return;
    };
    for code in body.iter().filter_map(|s| allowed(&s.kind.node)).flatten() {
        match is_silenceable(&code.node) {
            true => report.silence(Silence {
                code: code.node.clone(),
                place: Place::new(source, span),
            }),
            false => report.push(refused(source, code)),
        }
    }
}

fn is_silenceable(code: &str) -> bool {
    let known = codes::TABLE.iter().any(|(c, _)| c.0 == code);
    known && code.starts_with(['W', 'N'])
}

fn refused(source: &Source, code: &Name) -> Diagnostic {
    let name = &code.node;
    let is_error = codes::TABLE.iter().any(|(c, _)| c.0 == name);
    let (message, label) = match is_error {
        true => (
            format!("`{name}` is an error, which cannot be silenced"),
            "an error",
        ),
        false => (format!("there is no warning `{name}`"), "not found"),
    };
    Diagnostic::error(codes::NOT_SILENCED, message)
        .at(source, code.span, label)
        .hint("`allow` takes codes of warnings and notes, such as `W0301`")
}
