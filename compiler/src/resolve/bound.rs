//! The grid of a problem: how many cells, and what lies beyond them.

use super::codes;
use super::report::{Checked, Place, Reported, count};
use super::resolver::{Resolver, Scope};
use super::revise::Settings;
use super::suggest::did_you_mean;
use crate::lattice::{Axis, PerAxis};
use crate::scheme::Boundary;
use torre_grammar::ast::{self, Expr, Name, ProblemStmt};
use torre_grammar::diag::Diagnostic;

/// Cells along an axis.
const CELLS: i64 = 1 << 40;

impl Resolver<'_> {
    pub fn place_grid(
        &mut self,
        scope: &Scope,
        problem: &ast::Problem,
        settings: &Settings,
    ) -> Checked<()> {
        let mut cells = None;
        let mut boundary = PerAxis::splat([Boundary::Zero; 2]);
        let mut failed = false;
        for stmt in &problem.body {
            match &stmt.kind.node {
                ProblemStmt::Domain(list) => {
                    let place = scope.place(stmt.kind.span);
                    match self.domain(scope, list, &place) {
                        Ok(c) => cells = Some(c),
                        Err(Reported) => failed = true,
                    }
                }
                ProblemStmt::Boundary(clauses) => {
                    failed |= self.boundaries(scope, clauses, &mut boundary).is_err();
                }
                _ => {}
            }
        }
        if let Some(list) = &settings.domain {
            if list.len() != self.frame.axes.len() {
                let d = Diagnostic::error(
                    codes::BAD_VALUE,
                    format!(
                        "`domain` is set for {}, but the scheme has {}",
                        count(list.len(), "axis", "axes"),
                        self.frame.axes.len()
                    ),
                );
                return self.fail(d);
            }
            if list.iter().any(|&n| n > CELLS) {
                let d =
                    Diagnostic::error(codes::BAD_VALUE, format!("an axis has up to {CELLS} cells"));
                return self.fail(d);
            }
            cells = Some(self.per_axis(list, 1));
        }
        if failed {
            return Err(Reported);
        }
        let Some(cells) = cells else {
            let example = vec!["64"; self.frame.axes.len()].join(" x ");
            return self.missing(scope, problem, "domain", &format!("domain {example}"));
        };
        self.set_grid(cells, boundary);
        Ok(())
    }

    /// Values in the order of the scheme's axes, by role.
    fn per_axis<T: Copy>(&self, list: &[T], absent: T) -> PerAxis<T> {
        let mut values = PerAxis::splat(absent);
        for ((_, axis), value) in self.frame.axes.iter().zip(list) {
            values[*axis] = *value;
        }
        values
    }

    fn domain(&mut self, scope: &Scope, list: &[Expr], place: &Place) -> Checked<PerAxis<i64>> {
        let axes = self.frame.axes.len();
        if list.len() != axes {
            let d = self.error(
                codes::DOMAIN,
                format!(
                    "the domain has {}, but the scheme has {}",
                    count(list.len(), "extent", "extents"),
                    count(axes, "axis", "axes")
                ),
                place,
            );
            return self.fail(d);
        }
        let mut cells = Vec::new();
        let mut failed = false;
        for e in list {
            match self.integer(scope, e) {
                Ok(n) if (1..=CELLS).contains(&n) => cells.push(n),
                Ok(n) => {
                    let mut d = self.error(
                        codes::DOMAIN,
                        format!("an axis has from 1 to {CELLS} cells"),
                        &scope.place(e.span),
                    );
                    d.labels[0].text = format!("this is {n}");
                    failed |= self.fail::<()>(d).is_err();
                }
                Err(Reported) => failed = true,
            }
        }
        if failed {
            return Err(Reported);
        }
        Ok(self.per_axis(&cells, 1))
    }

    fn boundaries(
        &mut self,
        scope: &Scope,
        clauses: &[ast::BoundaryClause],
        boundary: &mut PerAxis<[Boundary; 2]>,
    ) -> Checked<()> {
        let mut failed = false;
        let mut done: Vec<Axis> = Vec::new();
        for clause in clauses {
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
            let lower = self.boundary_kind(scope, &clause.lower);
            let upper = clause
                .upper
                .as_ref()
                .map_or(lower, |k| self.boundary_kind(scope, k));
            let (Ok(lower), Ok(upper)) = (lower, upper) else {
                failed = true;
                continue;
            };
            if (lower == Boundary::Periodic) != (upper == Boundary::Periodic) {
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
                failed |= self.fail::<()>(d).is_err();
            }
            boundary[axis] = [lower, upper];
        }
        if failed { Err(Reported) } else { Ok(()) }
    }

    fn boundary_kind(&mut self, scope: &Scope, kind: &ast::BoundaryKind) -> Checked<Boundary> {
        const KINDS: [(&str, Boundary); 4] = [
            ("zero", Boundary::Zero),
            ("periodic", Boundary::Periodic),
            ("pec", Boundary::Pec),
            ("pmc", Boundary::Pmc),
        ];
        let name = &kind.name;
        let found = KINDS.iter().find(|(n, _)| *n == name.node);
        let Some((_, boundary)) = found else {
            let mut d = self.error(
                codes::BOUNDARY,
                format!("there is no boundary `{}`", name.node),
                &scope.place(name.span),
            );
            d.labels[0].text = "unknown".to_string();
            d.hint = did_you_mean(&name.node, KINDS.iter().map(|(n, _)| *n)).or(Some(
                "boundaries are zero, periodic, pec and pmc".to_string(),
            ));
            return self.fail(d);
        };
        if !kind.args.is_empty() {
            let d = self.error(
                codes::BOUNDARY,
                format!("the boundary `{}` takes no arguments", name.node),
                &scope.place(name.span),
            );
            return self.fail(d);
        }
        Ok(*boundary)
    }

    pub fn axis_named(&mut self, scope: &Scope, name: &Name) -> Checked<Axis> {
        if let Some(axis) = self.frame.axis(&name.node) {
            return Ok(axis);
        }
        let names: Vec<&str> = self.frame.axes.iter().map(|(n, _)| n.as_str()).collect();
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
