//! Regions: conditions on the place with names, of schemes and of problems.

use super::codes;
use super::derive::{Declared, SchemeText};
use super::files_read::Site;
use super::frame::{Definition, Named};
use super::load::twice;
use super::report::{Outcome, Place, Reported};
use super::resolver::Resolver;
use super::value::{Scope, Table, Typed, Value};
use std::collections::BTreeMap;
use std::rc::Rc;
use torre_grammar::ast::{self, ProblemStmt, SchemeStmt};
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::Span;

impl Resolver<'_> {
    /// Notes the regions of a scheme and of a problem, which replace regions of the scheme with the same names.
    pub fn declare_regions(&mut self, text: &SchemeText, problem: Option<(&Scope, &ast::Problem)>) {
        let mut positions = BTreeMap::new();
        for Declared { scope, stmt, .. } in &text.body {
            if let SchemeStmt::Region(region) = stmt {
                let open = open(region, scope);
                self.introduce_into(Table::Scheme, scope, &region.name, open);
                positions.insert(&region.name.node, &region.position);
            }
        }
        let Some((scope, problem)) = problem else {
            return;
        };
        let shared = Rc::new(scope.clone());
        let mut replaced: BTreeMap<&str, Span> = BTreeMap::new();
        for region in regions_of(problem) {
            let name = &region.name;
            let Some(position) = positions.get(&name.node) else {
                self.introduce_into(Table::Problem, scope, name, open(region, &shared));
                continue;
            };
            if let Some(first) = replaced.insert(&name.node, name.span) {
                let first = scope.place(first);
                let d = twice(&scope.source, &name.node, &first, name.span);
                self.report.push(d);
            } else {
                // It lies where the scheme's region lies, unless it says otherwise.
                let mut region = region.clone();
                region.position = region.position.or_else(|| (*position).clone());
                self.frame.names.set(&name.node, open(&region, &shared));
            }
        }
    }

    /// Evaluates the regions of a problem that nothing has needed so far.
    pub fn compute_regions(&mut self, scope: &Scope, problem: &ast::Problem) -> Outcome<()> {
        let mut failed = false;
        for region in regions_of(problem) {
            let place = scope.place(region.name.span);
            let found = self.named(Table::Problem, &region.name.node, &place);
            failed |= matches!(found, Some(Err(Reported)));
        }
        if failed { Err(Reported) } else { Ok(()) }
    }

    /// The value of a region: 0 or 1.
    pub fn region(&mut self, scope: &Scope, region: &ast::Region, place: &Place) -> Outcome<Value> {
        let name = &region.name.node;
        self.needs_grid(name, "region", place)?;
        let stated = match &region.position {
            None => None,
            Some(p) => Some(self.scalar_position(scope, &p.node, p.span)?),
        };
        self.files.site = match stated {
            Some(position) => Site::At(position),
            None => Site::Unplaced(name.clone()),
        };
        let condition = self.condition(scope, &region.condition)?;
        let Value::Scalar(found) = condition.value else {
            return Err(Reported);
        };
        let position = stated.or(found.position);
        if let (Some(at), Some(found)) = (position, found.position)
            && at != found
        {
            return self.off_target(name, at, found, &condition.place);
        }
        Ok(Value::Scalar(Typed {
            node: self.graph.truth(found.node),
            position,
        }))
    }

    /// Says which regions of a problem nothing uses: names that the scheme does not have are easily mistyped.
    pub fn warn_of_unused_regions(&mut self, scope: &Scope, problem: &ast::Problem) {
        for region in regions_of(problem) {
            let name = &region.name.node;
            let own = self.frame.problem.contains(name);
            if !own || self.frame.problem.is_used(name) {
                continue;
            }
            self.report.push(
                Diagnostic::warning(
                    codes::UNUSED_REGION,
                    format!("nothing uses region `{name}`"),
                )
                .at(&scope.source, region.name.span, "defined here")
                .hint(format!(
                    "scheme `{}` has no region of this name that it would replace",
                    self.frame.name
                )),
            );
        }
    }
}

fn open(region: &ast::Region, scope: &Rc<Scope>) -> Named {
    Named::Open(Definition::Region {
        region: Rc::new(region.clone()),
        scope: scope.clone(),
    })
}

fn regions_of(problem: &ast::Problem) -> impl Iterator<Item = &ast::Region> {
    problem
        .body
        .iter()
        .filter_map(|stmt| match &stmt.kind.node {
            ProblemStmt::Region(region) => Some(region),
            _ => None,
        })
}
