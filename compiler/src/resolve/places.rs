//! Places of a problem's statements: single values, boxes of cell indices, regions.

use super::codes;
use super::graph::NodeId;
use super::report::{Outcome, Place, Reported, count};
use super::resolver::Resolver;
use super::value::{Operand, Scope, Value};
use crate::host::HostBinary;
use crate::lattice::{HalfIndex, Interval, PerAxis, Position, Region};
use crate::scheme::Component;
use torre_grammar::ast::{self, Expr, Within};
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::Span;

/// The index of a component along an axis that is nearest to a length.
pub struct Nearest {
    pub index: i64,
    /// Where it lies, for people.
    pub shown: String,
    /// It lies elsewhere than was asked for.
    pub is_moved: bool,
}

impl Resolver<'_> {
    /// The condition that a place sets beyond its box.
    pub fn place_condition(&mut self, scope: &Scope, at: &ast::Place) -> Outcome<Option<Operand>> {
        match at {
            ast::Place::Where(c) => self.condition(scope, c).map(Some),
            ast::Place::In(parts) => self.condition_of(scope, parts),
            ast::Place::At(_) | ast::Place::Near(_) | ast::Place::All => Ok(None),
        }
    }

    /// The condition that the regions of `in` set together.
    pub fn condition_of(&mut self, scope: &Scope, parts: &[Within]) -> Outcome<Option<Operand>> {
        let mut all: Option<Operand> = None;
        let mut failed = false;
        for c in parts.iter().filter_map(region_of) {
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

    /// A condition for the values at a position.
    pub fn at_position(
        &mut self,
        condition: &Operand,
        name: &str,
        position: Position,
    ) -> Outcome<NodeId> {
        let Value::Scalar(c) = condition.value else {
            return Err(Reported);
        };
        match c.position {
            Some(p) if p != position => self.off_target(name, position, p, &condition.place),
            _ => Ok(c.node),
        }
    }

    /// The cell indices of a component that a place names, within its extent.
    pub fn place_box(
        &mut self,
        scope: &Scope,
        at: &ast::Place,
        extent: Region,
        component: &Component,
    ) -> Outcome<Region> {
        match at {
            ast::Place::All | ast::Place::Where(_) => Ok(extent),
            ast::Place::At(list) => {
                let at = self.index(scope, list, extent, &component.name)?;
                Ok(at.map(|i| Interval::new(i, i + 1)))
            }
            ast::Place::Near(coordinates) => self.near(scope, coordinates, extent, component),
            ast::Place::In(parts) => self.box_of(scope, parts, extent, &component.name),
        }
    }

    /// The indices nearest to a place, whole along the axes that it leaves out.
    fn near(
        &mut self,
        scope: &Scope,
        coordinates: &[(ast::Name, Expr)],
        extent: Region,
        component: &Component,
    ) -> Outcome<Region> {
        let mut region = extent;
        let mut found = Vec::new();
        let mut is_moved = false;
        for (i, (axis, e)) in coordinates.iter().enumerate() {
            let id = self.axis_named(scope, axis)?;
            if coordinates[..i]
                .iter()
                .any(|(other, _)| other.node == axis.node)
            {
                let d = self.error(
                    codes::STATED_TWICE,
                    format!("`{}` is given twice", axis.node),
                    &scope.place(axis.span),
                );
                return self.fail(d);
            }
            let nearest = self.nearest(scope, axis, e, component.position[id], extent[id])?;
            region[id] = Interval::new(nearest.index, nearest.index + 1);
            found.push(format!("{} = {}", axis.node, nearest.shown));
            is_moved |= nearest.is_moved;
        }
        if let (true, Some((first, _)), Some((_, last))) =
            (is_moved, coordinates.first(), coordinates.last())
        {
            let place = scope.place(first.span.to(last.span));
            self.note_nearest(&component.name, &found, &place);
        }
        Ok(region)
    }

    /// The index nearest to a length from the lower end of the domain; of two the upper one.
    pub fn nearest(
        &mut self,
        scope: &Scope,
        axis: &ast::Name,
        e: &Expr,
        stagger: HalfIndex,
        range: Interval,
    ) -> Outcome<Nearest> {
        let id = self.axis_named(scope, axis)?;
        self.frame.coordinates[id] = true;
        let at = self.number(scope, e)?;
        let grid = self.frame.grid.as_ref().ok_or(Reported)?;
        let (h, cells, periodic) = (grid.spacing[id], grid.cells[id], grid.is_periodic(id));
        let length = cells as f64 * h;
        // A place at an end may have been computed with another rounding.
        let slack = 1e-9 * h;
        if !(at >= -slack && at <= length + slack) {
            let mut d = self
                .error(
                    codes::OUTSIDE,
                    format!("`{} = {}` lies outside of the domain", axis.node, short(at)),
                    &scope.place(e.span),
                )
                .hint(format!(
                    "along {} it goes from 0 to {}",
                    axis.node,
                    short(length)
                ));
            d.labels[0].text = "outside of the domain".to_string();
            return self.fail(d);
        }
        let index = (at / h - stagger.as_f64() + 0.5 + 1e-9).floor() as i64;
        let index = match periodic {
            true => index.rem_euclid(cells),
            false => index.clamp(range.lo, range.hi - 1),
        };
        let position = (HalfIndex::cells(index) + stagger).as_f64() * h;
        Ok(Nearest {
            index,
            shown: short(position),
            is_moved: (position - at).abs() > slack,
        })
    }

    /// The cell indices that the ranges of `in` have in common.
    pub fn box_of(
        &mut self,
        scope: &Scope,
        parts: &[Within],
        extent: Region,
        name: &str,
    ) -> Outcome<Region> {
        let mut region = extent;
        for part in parts {
            if let Within::Range { axis, from, to } = part {
                let id = self.axis_named(scope, axis)?;
                let whole = extent[id];
                let range = match to {
                    Some(to) => self.range(scope, &axis.node, [from, to], whole, name)?,
                    None => {
                        let i = self.index_along(scope, from, whole, &axis.node, name)?;
                        Interval::new(i, i + 1)
                    }
                };
                region[id] = region[id].intersect(range);
            }
        }
        Ok(region)
    }

    /// `x = from..to`.
    fn range(
        &mut self,
        scope: &Scope,
        axis: &str,
        [from, to]: [&Expr; 2],
        whole: Interval,
        name: &str,
    ) -> Outcome<Interval> {
        let mut end = |e| self.counted(scope, e, Some(LENGTHS_OF_PARTS));
        let range = Interval::new(end(from)?, end(to)?);
        if !range.is_empty() && range.lo >= whole.lo && range.hi <= whole.hi {
            return Ok(range);
        }
        let message = if range.is_empty() {
            format!("the range {range} along `{axis}` is empty")
        } else {
            format!("the range {range} leaves the indices of `{name}` along `{axis}`, {whole}")
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
    ) -> Outcome<PerAxis<i64>> {
        let axes = self.frame.present();
        if list.len() != axes.len() {
            let span = match (list.first(), list.last()) {
                (Some(a), Some(b)) => a.span.to(b.span),
                _ => Span::default(),
            };
            let d = self.error(
                codes::OUTSIDE,
                format!(
                    "{} given, but the domain has {}",
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
    ) -> Outcome<i64> {
        let i = self.counted(scope, e, Some(LENGTHS))?;
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

    /// Warns where a statement concerns no value.
    pub fn warn_of_no_place(&mut self, name: &str, does: &str, place: &Place) {
        self.report.push(
            Diagnostic::warning(
                codes::NO_PLACE,
                format!("no value of `{name}` lies where {does}"),
            )
            .at(&place.source, place.span, "this has no effect"),
        );
    }

    /// Says where the values nearest to a place lie.
    pub fn note_nearest(&mut self, name: &str, places: &[String], at: &Place) {
        let message = format!(
            "`{name}` is taken at {}, its nearest place",
            places.join(", ")
        );
        let note = Diagnostic::note(codes::NEAREST, message);
        self.report
            .push(note.at(&at.source, at.span, "between values"));
    }
}

/// Where an index is no whole number, a length may be meant.
const LENGTHS: &str = "cells are counted; a length is given with `at`, as in `at x = 1.5`";
const LENGTHS_OF_PARTS: &str =
    "cells are counted; a part is given by lengths as a region, `in x > 0.5 and x < 2`";

/// A length for people: six digits, with an exponent where it is very small or large.
fn short(value: f64) -> String {
    let rounded = format!("{value:.5e}").parse::<f64>();
    let text = format!("{:?}", rounded.unwrap_or(value));
    text.trim_end_matches(".0").to_owned()
}

pub fn region_of(part: &Within) -> Option<&Expr> {
    match part {
        Within::Region(condition) => Some(condition),
        Within::Range { .. } => None,
    }
}
