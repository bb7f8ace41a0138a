//! Statements of a problem of which a second one would make the first void.

use super::codes;
use super::report::{Outcome, Reported};
use super::resolver::Resolver;
use super::value::Scope;
use torre_grammar::ast::{self, Level, ProblemStmt};
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::Span;

/// The subject of a statement.
#[derive(PartialEq)]
enum Said<'a> {
    Scheme,
    Domain,
    Boundary,
    Steps,
    /// A coefficient, or one component of it.
    Coef(&'a str, Option<&'a str>),
    /// Start values of a field or of one component, and whether of the time before.
    Init(&'a str, Option<&'a str>, bool),
}

impl Said<'_> {
    fn of(stmt: &ProblemStmt) -> Option<Said<'_>> {
        Some(match stmt {
            ProblemStmt::Scheme { .. } => Said::Scheme,
            ProblemStmt::Domain(_) => Said::Domain,
            ProblemStmt::Boundary(_) => Said::Boundary,
            ProblemStmt::Steps(_) => Said::Steps,
            ProblemStmt::Coef {
                name, component, ..
            } => Said::Coef(&name.node, component.as_ref().map(|c| &*c.node)),
            ProblemStmt::Init { target, .. } => Said::Init(
                &target.field.node,
                target.component.as_ref().map(|c| &*c.node),
                target.level.as_ref().is_some_and(|l| l.node == Level::Prev),
            ),
            _ => return None,
        })
    }

    /// Whether nothing is left of an earlier statement.
    fn replaces(&self, earlier: &Self) -> bool {
        match (self, earlier) {
            // Of a whole field or coefficient, after one component of it.
            (Said::Init(field, None, prev), Said::Init(of, Some(_), at)) => {
                field == of && prev == at
            }
            (Said::Coef(coef, None), Said::Coef(of, Some(_))) => coef == of,
            _ => self == earlier,
        }
    }

    fn text(&self) -> String {
        let whole = |name: &str, component: Option<&str>| match component {
            Some(component) => format!("{name}.{component}"),
            None => name.to_owned(),
        };
        match self {
            Said::Scheme => "scheme".to_owned(),
            Said::Domain => "domain".to_owned(),
            Said::Boundary => "boundary".to_owned(),
            Said::Steps => "steps".to_owned(),
            Said::Coef(name, component) => format!("coef {}", whole(name, *component)),
            Said::Init(name, component, prev) => {
                let level = if *prev { "@prev" } else { "" };
                format!("init {}{level}", whole(name, *component))
            }
        }
    }
}

impl Resolver<'_> {
    pub fn stated_once(&mut self, scope: &Scope, problem: &ast::Problem) -> Outcome<()> {
        let mut earlier: Vec<(Said<'_>, Span)> = Vec::new();
        let mut failed = false;
        for stmt in &problem.body {
            let Some(said) = Said::of(&stmt.kind.node) else {
                continue;
            };
            let span = stmt.kind.span;
            let first = earlier.iter().find(|(other, _)| said.replaces(other));
            if let Some((other, first)) = first {
                let message = format!("`{}` is given twice", other.text());
                let d = Diagnostic::error(codes::STATED_TWICE, message)
                    .at(&scope.source, span, "again here")
                    .at(&scope.source, *first, "first here");
                failed |= self.fail::<()>(d).is_err();
            } else {
                earlier.push((said, span));
            }
        }
        if failed { Err(Reported) } else { Ok(()) }
    }
}
