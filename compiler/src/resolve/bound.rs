//! The grid of a problem: the number of cells, and the boundaries.

use super::codes;
use super::frame::{Definition, Named};
use super::report::{Outcome, Reported, count};
use super::resolver::Resolver;
use super::revise::Settings;
use super::value::{Scope, Table, Value};
use crate::lattice::{Axis, PerAxis};
use crate::scheme::Boundary;
use std::rc::Rc;
use torre_grammar::ast::{self, Expr, Name, ProblemStmt};
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::Span;

/// Cells along an axis.
const CELLS: i64 = 1 << 40;

impl Resolver<'_> {
    /// Notes how many cells each axis has. They are computed when they are needed: parameters may depend on them, or
    /// they on parameters.
    pub fn declare_extents(
        &mut self,
        scope: &Scope,
        problem: &ast::Problem,
        settings: &Settings,
    ) -> Outcome<()> {
        let axes: Vec<String> = self.frame.present().into_iter().map(|(n, _)| n).collect();
        for axis in self.frame.absent.clone() {
            let one = Named::Known(self.scalar(1.0));
            let name = self.frame.name_of(axis);
            self.frame.extents.set(&format!("n{name}"), one);
        }
        if let Some(list) = &settings.domain {
            if list.len() != axes.len() {
                // A problem may leave out axes of its scheme.
                let whose = match domain_of(problem) {
                    Some(_) => "the problem's domain",
                    None => "the scheme",
                };
                let d = Diagnostic::error(
                    codes::BAD_VALUE,
                    format!(
                        "`domain` is set for {}, but {whose} has {}",
                        count(list.len(), "axis", "axes"),
                        axes.len()
                    ),
                );
                return self.fail(d);
            }
            if list.iter().any(|&n| n > CELLS) {
                let d =
                    Diagnostic::error(codes::BAD_VALUE, format!("an axis has up to {CELLS} cells"));
                return self.fail(d);
            }
            for (axis, &cells) in axes.iter().zip(list) {
                let cells = Named::Known(self.scalar(cells as f64));
                self.frame.extents.set(&format!("n{axis}"), cells);
            }
        }
        let Some((list, span)) = domain_of(problem) else {
            if settings.domain.is_some() {
                return Ok(());
            }
            let example = vec!["64"; axes.len()].join(" x ");
            return self.missing(scope, problem, "domain", &format!("domain {example}"));
        };
        if list.len() != axes.len() {
            let d = self.error(
                codes::DOMAIN,
                format!(
                    "the domain has {}, but the scheme has {}",
                    count(list.len(), "extent", "extents"),
                    count(self.frame.axes.len(), "axis", "axes")
                ),
                &scope.place(span),
            );
            return self.fail(d);
        }
        if settings.domain.is_none() {
            let scope = Rc::new(scope.clone());
            for (axis, cells) in axes.iter().zip(list) {
                let definition = Definition::Cells {
                    value: cells.clone(),
                    scope: scope.clone(),
                };
                let extents = &mut self.frame.extents;
                extents.set(&format!("n{axis}"), Named::Open(definition));
            }
        }
        Ok(())
    }

    /// The grid, once the parameters are known. The inner result is that of its sides: sides of zeros stand in for
    /// wrong ones, so that the rest of the problem is checked, too. Sides with arguments give names to values, which
    /// nothing stands in for.
    pub fn place_grid(
        &mut self,
        scope: &Scope,
        problem: &ast::Problem,
        settings: &Settings,
    ) -> Outcome<Outcome<()>> {
        let mut boundary = PerAxis::splat([Boundary::Zero; 2]);
        let mut failed = false;
        let mut sides = Ok(());
        for stmt in &problem.body {
            match &stmt.kind.node {
                // The command line replaces its value, but it is checked all the same.
                ProblemStmt::Domain(list) if settings.domain.is_some() => {
                    for e in list {
                        failed |= self.cells(scope, e).is_err();
                    }
                }
                ProblemStmt::Boundary(clauses) => {
                    let stated = self.boundaries(scope, clauses, &mut boundary);
                    failed |= stated.is_err() && clauses.iter().any(has_arguments);
                    sides = sides.and(stated);
                }
                _ => {}
            }
        }
        let mut cells = PerAxis::splat(1);
        let place = scope.place(problem.name.span);
        for (name, axis) in self.frame.present() {
            match self.named(Table::Extents, &format!("n{name}"), &place) {
                Some(Ok(Value::Scalar(n))) => {
                    cells[axis] = self.graph.as_number(n.node).map_or(1, |n| n as i64);
                }
                _ => failed = true,
            }
        }
        if failed {
            return Err(Reported);
        }
        self.set_grid(cells, boundary);
        self.place_layers()?;
        Ok(sides)
    }

    /// Cells along an axis.
    pub fn cells(&mut self, scope: &Scope, e: &Expr) -> Outcome<f64> {
        let n = self.integer(scope, e)?;
        if (1..=CELLS).contains(&n) {
            return Ok(n as f64);
        }
        let mut d = self.error(
            codes::DOMAIN,
            format!("an axis has from 1 to {CELLS} cells"),
            &scope.place(e.span),
        );
        d.labels[0].text = format!("this is {n}");
        self.fail(d)
    }

    fn boundaries(
        &mut self,
        scope: &Scope,
        clauses: &[ast::BoundaryClause],
        boundary: &mut PerAxis<[Boundary; 2]>,
    ) -> Outcome<()> {
        let mut failed = false;
        let mut done: Vec<Axis> = Vec::new();
        let axes: Vec<Axis> = self.frame.present().iter().map(|(_, a)| *a).collect();
        // `all` comes first, wherever it stands: a clause for a single axis replaces it.
        let is_all = |clause: &&ast::BoundaryClause| {
            clause.axis.node == "all" && self.frame.axis("all").is_none()
        };
        let (all, single): (Vec<_>, Vec<_>) = clauses.iter().partition(is_all);
        if let Some(again) = all.get(1) {
            let d = self.error(
                codes::STATED_TWICE,
                "the boundary of `all` axes is given twice",
                &scope.place(again.axis.span),
            );
            failed |= self.fail::<()>(d).is_err();
        }
        for clause in all.into_iter().take(1) {
            for &axis in &axes {
                match self.clause(scope, clause, axis) {
                    Ok(sides) => boundary[axis] = sides,
                    Err(Reported) => failed = true,
                }
            }
        }
        for clause in single {
            let Ok(axis) = self.axis_named(scope, &clause.axis) else {
                failed = true;
                continue;
            };
            if done.contains(&axis) {
                let d = self.error(
                    codes::STATED_TWICE,
                    format!("the boundary along `{}` is given twice", clause.axis.node),
                    &scope.place(clause.axis.span),
                );
                failed |= self.fail::<()>(d).is_err();
            }
            done.push(axis);
            match self.clause(scope, clause, axis) {
                Ok(sides) => boundary[axis] = sides,
                Err(Reported) => failed = true,
            }
        }
        if failed { Err(Reported) } else { Ok(()) }
    }

    /// Says along which axes the domain has no extent.
    pub fn note_absent_axes(&mut self, scope: &Scope, span: Span) {
        let absent = self.frame.absent.clone();
        if absent.is_empty() {
            return;
        }
        let names: Vec<String> = absent.iter().map(|a| self.frame.name_of(*a)).collect();
        let message = format!(
            "the domain has {}: nothing depends on `{}`",
            count(self.frame.present().len(), "extent", "extents"),
            names.join("` and `")
        );
        let note = Diagnostic::note(codes::ABSENT, message);
        self.report.push(note.at(&scope.source, span, "here"));
    }

    /// Both sides of an axis.
    fn clause(
        &mut self,
        scope: &Scope,
        clause: &ast::BoundaryClause,
        axis: Axis,
    ) -> Outcome<[Boundary; 2]> {
        // `all` may have said something else.
        self.frame.bloch[axis] = None;
        let lower = self.side_with_layer(scope, &clause.lower, axis, 0);
        let one = self.frame.bloch[axis];
        let upper = clause.upper.as_ref().unwrap_or(&clause.lower);
        let upper = self.side_with_layer(scope, upper, axis, 1);
        let (lower, upper) = (lower?, upper?);
        let bloch = |kind: &ast::BoundaryKind| kind.name.node == "bloch";
        let alike = one == self.frame.bloch[axis]
            && bloch(&clause.lower) == clause.upper.as_ref().map_or(bloch(&clause.lower), bloch);
        if (lower == Boundary::Periodic) != (upper == Boundary::Periodic) || !alike {
            let span = clause.upper.as_ref().map_or(clause.lower.name.span, |u| {
                clause.lower.name.span.to(u.name.span)
            });
            let d = self.error(
                codes::BOUNDARY,
                format!(
                    "along `{}` both sides must be periodic or neither",
                    clause.axis.node
                ),
                &scope.place(span),
            );
            return self.fail(d);
        }
        Ok([lower, upper])
    }

    pub fn axis_named(&mut self, scope: &Scope, name: &Name) -> Outcome<Axis> {
        if let Some(axis) = self.frame.axis(&name.node) {
            if self.frame.is_present(axis) {
                return Ok(axis);
            }
            let message = format!("the domain has no extent along `{}`", name.node);
            let d = self
                .error(codes::NOT_AN_AXIS, message, &scope.place(name.span))
                .hint("a domain has one extent for each axis on which something depends");
            return self.fail(d);
        }
        let present = self.frame.present();
        let names: Vec<&str> = present.iter().map(|(n, _)| n.as_str()).collect();
        let hint = format!("the axes are {}", names.join(", "));
        let d = self
            .error(
                codes::NOT_AN_AXIS,
                format!("the scheme has no axis `{}`", name.node),
                &scope.place(name.span),
            )
            .hint(hint);
        self.fail(d)
    }
}

fn has_arguments(clause: &ast::BoundaryClause) -> bool {
    let kinds = [Some(&clause.lower), clause.upper.as_ref()];
    kinds
        .into_iter()
        .flatten()
        .any(|kind| !kind.args.is_empty())
}

/// The extents that a problem states, and where.
pub fn domain_of(problem: &ast::Problem) -> Option<(&[Expr], Span)> {
    problem.body.iter().find_map(|stmt| match &stmt.kind.node {
        ProblemStmt::Domain(list) => Some((list.as_slice(), stmt.kind.span)),
        _ => None,
    })
}
