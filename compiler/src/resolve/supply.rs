//! Coefficients: from expressions and from files, from the scheme and from the problem.

use super::codes;
use super::declare::Parts;
use super::files_read::Site;
use super::report::{Outcome, Place, count};
use super::resolver::Resolver;
use super::suggest::did_you_mean;
use super::value::{Items, Kind, Scope, Typed, Value};
use crate::lattice::Position;
use torre_grammar::ast::{self, Expr, Shape};

impl Resolver<'_> {
    /// The values of a coefficient, with the statements of the problem about it.
    pub fn coef(&mut self, scope: &Scope, coef: &ast::Coef, place: &Place) -> Outcome<Value> {
        self.needs_grid(&coef.name.node, "coefficient", place)?;
        let mut given = Vec::new();
        for g in &mut self.frame.given_coefs {
            if g.name.node == coef.name.node {
                g.used = true;
                given.push(g.clone());
            }
        }
        let shape = match &coef.shape {
            None => Shape::Scalar,
            Some(s) => s.node.clone(),
        };
        let place = scope.place(coef.name.span);
        if matches!(shape, Shape::Named(_)) {
            let d = self
                .error(
                    codes::SHAPES_DIFFER,
                    "a coefficient is a scalar, a vector or a tensor",
                    &place,
                )
                .hint("declare one coefficient for each component");
            return self.fail(d);
        }
        // Without a position the components' names still follow from the shape.
        let nodes = torre_grammar::source::Spanned::new(ast::Position::Nodes, coef.name.span);
        let at = coef.position.as_ref().unwrap_or(&nodes);
        let Parts { kind, parts } = self.positions(scope, &shape, Some(at), &place)?;
        let parts: Vec<(String, Option<Position>)> = parts
            .into_iter()
            .map(|(n, p)| (n, coef.position.is_some().then_some(p)))
            .collect();
        let whole = given.iter().rposition(|g| g.component.is_none());
        let own = self.coef_values(scope, &coef.value, kind, &parts, &coef.name.node);
        let mut items = match whole {
            // The declaration is checked all the same.
            Some(i) => {
                let (value, scope) = (given[i].value.clone(), given[i].scope.clone());
                let result = self.coef_values(&scope, &value, kind, &parts, &coef.name.node);
                own?;
                result?
            }
            None => own?,
        };
        for g in &given {
            let Some(component) = &g.component else {
                continue;
            };
            let names: Vec<&str> = parts.iter().map(|(n, _)| n.as_str()).collect();
            let Some(i) = names.iter().position(|n| *n == component.node) else {
                let message = format!("`{}` has no component `{}`", coef.name.node, component.node);
                let mut d = self.error(
                    codes::UNKNOWN_COMPONENT,
                    message,
                    &g.scope.place(component.span),
                );
                d.hint = did_you_mean(&component.node, names.iter().copied());
                return self.fail(d);
            };
            let one = self.coef_values(
                &g.scope.clone(),
                &g.value,
                Kind::Scalar,
                &parts[i..=i],
                &coef.name.node,
            )?;
            items[i] = one[0];
        }
        for (item, (part, _)) in items.iter().zip(&parts) {
            let name = if part.is_empty() {
                coef.name.node.clone()
            } else {
                format!("{}.{part}", coef.name.node)
            };
            self.graph.name(item.node, name);
        }
        Ok(kind.with(items))
    }

    /// One static scalar per component.
    fn coef_values(
        &mut self,
        scope: &Scope,
        value: &Expr,
        kind: Kind,
        parts: &[(String, Option<Position>)],
        name: &str,
    ) -> Outcome<Vec<Typed>> {
        let site = |p: &(String, Option<Position>)| match p.1 {
            Some(position) => Site::At(position),
            None => Site::Unplaced(name.to_string()),
        };
        let sites: Vec<Site> = parts.iter().map(site).collect();
        let operand = self.operand_at(scope, value, kind, &sites)?;
        let place = operand.place.clone();
        let found = self.scalars(operand.value, &place)?;
        let Items {
            kind: found, items, ..
        } = found;
        let spread = found == Kind::Scalar;
        if !spread && (found != kind || items.len() != parts.len()) {
            let d = self.error(
                codes::SHAPES_DIFFER,
                format!(
                    "`{name}` has {}, but this has {}",
                    count(parts.len(), "component", "components"),
                    count(items.len(), "component", "components")
                ),
                &place,
            );
            return self.fail(d);
        }
        let mut list = Vec::new();
        for (i, (_, position)) in parts.iter().enumerate() {
            let item = if spread { items[0] } else { items[i] };
            self.check_static(item, &place, "a coefficient")?;
            if let (Some(p), Some(q)) = (item.position, *position)
                && p != q
            {
                return self.off_target(name, q, p, &place);
            }
            list.push(Typed {
                node: item.node,
                position: position.or(item.position),
            });
        }
        Ok(list)
    }

    /// Reads no fields and no time.
    fn check_static(&mut self, item: Typed, place: &Place, name: &str) -> Outcome<()> {
        let facts = self.graph.facts(item.node);
        if facts.dynamic {
            let mut d = self.error(
                codes::NOT_STATIC,
                format!("{name} cannot depend on field values"),
                place,
            );
            d.labels[0].text = "this depends on field values".to_string();
            return self.fail(d);
        }
        if facts.timed {
            let mut d = self
                .error(
                    codes::TIME_IN_STEP,
                    format!("{name} cannot depend on time"),
                    place,
                )
                .hint(
                    "a value that changes with time is a field that a `source` of the problem sets: `c = c` in the \
                     step, `source c = ...`",
                );
            d.labels[0].text = "this depends on `t`".to_string();
            return self.fail(d);
        }
        Ok(())
    }
}
