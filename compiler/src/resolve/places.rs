//! Places of a problem's statements: single values, boxes of cell indices, regions.

use super::codes;
use super::evaluate::Resolver;
use super::operate::{Operand, count};
use super::report::{Checked, Reported};
use super::value::Scope;
use crate::host::HostBinary;
use crate::lattice::{Interval, PerAxis, Region};
use torre_grammar::ast::{self, Expr, Within};
use torre_grammar::source::Span;

impl Resolver<'_> {
    /// The condition that a place sets beyond its box.
    pub fn place_condition(&mut self, scope: &Scope, at: &ast::Place) -> Checked<Option<Operand>> {
        let conditions: Vec<&Expr> = match at {
            ast::Place::Where(c) => vec![c],
            ast::Place::In(parts) => parts.iter().filter_map(region_of).collect(),
            ast::Place::At(_) | ast::Place::All => Vec::new(),
        };
        let mut all: Option<Operand> = None;
        let mut failed = false;
        for c in conditions {
            let Ok(condition) = self.condition(scope, c) else {
                failed = true;
                continue;
            };
            all = Some(match all {
                None => condition,
                Some(before) => {
                    let place = condition.place.clone();
                    let value = self.apply_binary(HostBinary::And, before, condition, &place)?;
                    Operand { value, place }
                }
            });
        }
        if failed { Err(Reported) } else { Ok(all) }
    }

    /// The cell indices of a component that a place names, within its extent.
    pub fn place_box(
        &mut self,
        scope: &Scope,
        at: &ast::Place,
        extent: Region,
        name: &str,
    ) -> Checked<Region> {
        let mut region = extent;
        match at {
            ast::Place::All | ast::Place::Where(_) => {}
            ast::Place::At(list) => {
                let at = self.index(scope, list, extent, name)?;
                return Ok(at.map(|i| Interval::new(i, i + 1)));
            }
            ast::Place::In(parts) => {
                for part in parts {
                    if let Within::Range { axis, from, to } = part {
                        let id = self.axis_named(scope, axis)?;
                        let range =
                            self.range(scope, (axis, from, to.as_ref()), extent[id], name)?;
                        region[id] = region[id].intersect(range);
                    }
                }
            }
        }
        Ok(region)
    }

    /// `x = from..to`, or the plane `x = from`.
    fn range(
        &mut self,
        scope: &Scope,
        (axis, from, to): (&ast::Name, &Expr, Option<&Expr>),
        whole: Interval,
        name: &str,
    ) -> Checked<Interval> {
        let Some(to) = to else {
            let i = self.index_along(scope, from, whole, &axis.node, name)?;
            return Ok(Interval::new(i, i + 1));
        };
        let range = Interval::new(self.integer(scope, from)?, self.integer(scope, to)?);
        if !range.is_empty() && range.lo >= whole.lo && range.hi <= whole.hi {
            return Ok(range);
        }
        let message = if range.is_empty() {
            format!("the range {range} along `{}` is empty", axis.node)
        } else {
            format!(
                "the range {range} leaves the indices of `{name}` along `{}`, {whole}",
                axis.node
            )
        };
        let d = self
            .error(codes::OUTSIDE, message, &scope.place(from.span.to(to.span)))
            .hint("ranges are half-open: `0..64` ends with 63");
        self.fail(d)
    }

    /// Cell indices, within the extent of a component.
    pub fn index(
        &mut self,
        scope: &Scope,
        list: &[Expr],
        extent: Region,
        name: &str,
    ) -> Checked<PerAxis<i64>> {
        let axes = self.frame.axes.clone();
        if list.len() != axes.len() {
            let span = match (list.first(), list.last()) {
                (Some(a), Some(b)) => a.span.to(b.span),
                _ => Span::default(),
            };
            let d = self.error(
                codes::OUTSIDE,
                format!(
                    "{} given, but the scheme has {}",
                    count(list.len(), "index is", "indices are"),
                    count(axes.len(), "axis", "axes")
                ),
                &scope.place(span),
            );
            return self.fail(d);
        }
        let mut at = PerAxis::splat(0);
        for ((axis_name, axis), e) in axes.iter().zip(list) {
            at[*axis] = self.index_along(scope, e, extent[*axis], axis_name, name)?;
        }
        Ok(at)
    }

    pub fn index_along(
        &mut self,
        scope: &Scope,
        e: &Expr,
        range: Interval,
        axis: &str,
        name: &str,
    ) -> Checked<i64> {
        let i = self.integer(scope, e)?;
        if range.contains(i) {
            return Ok(i);
        }
        let mut d = self
            .error(
                codes::OUTSIDE,
                format!("`{name}` has no index {i} along {axis}"),
                &scope.place(e.span),
            )
            .hint(format!(
                "its indices along {axis} go from {} to {}",
                range.lo,
                range.hi - 1
            ));
        d.labels[0].text = "outside of the domain".to_string();
        self.fail(d)
    }
}

fn region_of(part: &Within) -> Option<&Expr> {
    match part {
        Within::Region(condition) => Some(condition),
        Within::Range { .. } => None,
    }
}
