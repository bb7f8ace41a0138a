//! The statements of problems.

use super::item::update_op;
use super::{Builder, Rule, first, parts};
use crate::ast::*;
use pest::iterators::Pair;

impl Builder<'_> {
    pub(super) fn problem_stmt(
        &mut self,
        pair: Pair<'_, Rule>,
        comments: &mut Comments,
    ) -> Option<ProblemStmt> {
        let span = self.span(&pair);
        let pair = first(pair)?;
        if pair.as_rule() == Rule::incident_stmt {
            let mut parts = parts(pair);
            let name = self.name(parts.next()?);
            let (lines, end) = self.block(parts.next()?, comments, Self::incident_line)?;
            return Some(ProblemStmt::Incident { name, lines, end });
        }
        self.simple(span, comments, |b| b.problem_line(pair))
    }

    fn incident_line(
        &mut self,
        pair: Pair<'_, Rule>,
        comments: &mut Comments,
    ) -> Option<IncidentLine> {
        let span = self.span(&pair);
        let pair = first(pair)?;
        self.simple(span, comments, |b| {
            let rule = pair.as_rule();
            let mut parts = parts(pair);
            let head = parts.next()?;
            if rule == Rule::direction_line {
                let list = super::parts(head).map(|pair| b.expr(pair));
                return list.collect::<Option<_>>().map(IncidentLine::Direction);
            }
            let (target, value) = (b.target(head)?, b.expr(parts.next()?)?);
            Some(match rule {
                Rule::drive_line => IncidentLine::Drive { target, value },
                _ => IncidentLine::Given { target, value },
            })
        })
    }

    /// `total x = 20..80 from wave`
    fn total(&mut self, pair: Pair<'_, Rule>) -> Option<ProblemStmt> {
        let mut ranges = Vec::new();
        let mut from = None;
        for part in parts(pair) {
            if part.as_rule() != Rule::ends_of {
                from = Some(self.name(part));
                continue;
            }
            let mut ends = parts(part);
            ranges.push(Ends {
                axis: self.name(ends.next()?),
                from: self.expr(ends.next()?)?,
                to: self.expr(ends.next()?)?,
            });
        }
        let from = from?;
        Some(ProblemStmt::Total { ranges, from })
    }

    fn problem_coef<'p>(
        &mut self,
        name: Pair<'p, Rule>,
        mut parts: impl Iterator<Item = Pair<'p, Rule>>,
    ) -> Option<ProblemStmt> {
        let name = self.name(name);
        let mut component = None;
        let mut next = parts.next()?;
        if next.as_rule() == Rule::member {
            component = Some(self.name(first(next)?));
            next = parts.next()?;
        }
        Some(ProblemStmt::Coef {
            name,
            component,
            value: self.expr(next)?,
        })
    }

    fn source<'p>(
        &mut self,
        target: Pair<'p, Rule>,
        mut parts: impl Iterator<Item = Pair<'p, Rule>>,
    ) -> Option<ProblemStmt> {
        let target = self.target(target)?;
        let mut next = parts.next()?;
        let mut place = Place::All;
        if next.as_rule() != Rule::update_op {
            place = self.place(next)?;
            next = parts.next()?;
        }
        Some(ProblemStmt::Source {
            target,
            place,
            op: update_op(&next),
            value: self.expr(parts.next()?)?,
        })
    }

    fn probe<'p>(
        &mut self,
        targets: Pair<'p, Rule>,
        mut parts: impl Iterator<Item = Pair<'p, Rule>>,
    ) -> Option<ProblemStmt> {
        let targets = self.targets(targets)?;
        let place = self.place(parts.next()?)?;
        let (mut name, mut every) = (None, None);
        for part in parts {
            match part.as_rule() {
                Rule::probe_name => name = Some(self.name(first(part)?)),
                _ => every = Some(self.expr(first(part)?)?),
            }
        }
        Some(ProblemStmt::Probe {
            targets,
            place,
            name,
            every,
        })
    }

    fn problem_line(&mut self, pair: Pair<'_, Rule>) -> Option<ProblemStmt> {
        let rule = pair.as_rule();
        if rule == Rule::const_item {
            let (name, value) = self.name_and_value(pair)?;
            return Some(ProblemStmt::Const { name, value });
        }
        if rule == Rule::region_stmt {
            return self.region(pair).map(ProblemStmt::Region);
        }
        if rule == Rule::allow_stmt {
            return Some(ProblemStmt::Allow(self.names(pair)));
        }
        if rule == Rule::total_stmt {
            return self.total(pair);
        }
        let mut parts = parts(pair);
        if rule == Rule::boundary_stmt {
            let clauses = parts
                .map(|pair| self.boundary(pair))
                .collect::<Option<_>>()?;
            return Some(ProblemStmt::Boundary(clauses));
        }
        if rule == Rule::domain_stmt {
            return Some(ProblemStmt::Domain(self.exprs(parts)?));
        }
        let head = parts.next()?;
        Some(match rule {
            Rule::use_scheme => {
                let mut params = Vec::new();
                for pair in parts.flat_map(super::parts) {
                    params.push(self.name_and_value(pair)?);
                }
                ProblemStmt::Scheme {
                    path: self.path(head),
                    params,
                }
            }
            Rule::steps_stmt => ProblemStmt::Steps(match head.as_rule() {
                Rule::until => Steps::Until(self.expr(first(head)?)?),
                _ => Steps::Count(self.expr(head)?),
            }),
            Rule::problem_coef => self.problem_coef(head, parts)?,
            Rule::init_stmt => ProblemStmt::Init {
                target: self.target(head)?,
                value: self.expr(parts.next()?)?,
            },
            Rule::source_stmt => self.source(head, parts)?,
            Rule::probe_stmt => self.probe(head, parts)?,
            Rule::record_stmt => {
                let name = self.name(head);
                let value = self.expr(parts.next()?)?;
                let (within, every) = self.window(parts)?;
                ProblemStmt::Record {
                    name,
                    value,
                    within,
                    every,
                }
            }
            Rule::slice_stmt => {
                let targets = self.targets(head)?;
                let plane = self.plane(parts.next()?)?;
                let (within, every) = self.window(parts)?;
                ProblemStmt::Slice {
                    targets,
                    plane,
                    within,
                    every,
                }
            }
            Rule::spectrum_stmt => self.spectrum(head, parts)?,
            _ => {
                let targets = self.targets(head)?;
                let (within, every) = self.window(parts)?;
                ProblemStmt::Volume {
                    targets,
                    within,
                    every,
                }
            }
        })
    }

    fn spectrum<'i>(
        &mut self,
        targets: Pair<'i, Rule>,
        parts: impl Iterator<Item = Pair<'i, Rule>>,
    ) -> Option<ProblemStmt> {
        let targets = self.targets(targets)?;
        let (mut plane, mut within) = (None, Vec::new());
        let (mut frequencies, mut every) = (None, None);
        for part in parts {
            match part.as_rule() {
                Rule::within => within = self.within_parts(part)?,
                Rule::frequencies => frequencies = Some(self.expr(first(part)?)?),
                Rule::every => every = Some(self.expr(first(part)?)?),
                _ => plane = Some(self.plane(part)?),
            }
        }
        Some(ProblemStmt::Spectrum {
            targets,
            plane,
            within,
            frequencies: frequencies?,
            every,
        })
    }

    fn targets(&mut self, pair: Pair<'_, Rule>) -> Option<Vec<Target>> {
        parts(pair).map(|pair| self.seen(pair)).collect()
    }

    /// A target, or a state that its updates keep.
    fn seen(&mut self, pair: Pair<'_, Rule>) -> Option<Target> {
        if pair.as_rule() != Rule::state_of {
            return self.target(pair);
        }
        let mut parts = parts(pair);
        let state = self.name(parts.next()?);
        let target = self.target(parts.next()?)?;
        Some(Target {
            state: Some(state),
            ..target
        })
    }

    fn plane(&mut self, pair: Pair<'_, Rule>) -> Option<Plane> {
        let is_length = pair.as_rule() == Rule::plane_near;
        let pair = if is_length { first(pair)? } else { pair };
        let (axis, at) = self.name_and_value(pair)?;
        Some(Plane {
            axis,
            at,
            is_length,
        })
    }

    /// `in ...` and `every ...` behind an output.
    fn window<'i>(
        &mut self,
        parts: impl Iterator<Item = Pair<'i, Rule>>,
    ) -> Option<(Vec<Within>, Option<Expr>)> {
        let (mut within, mut every) = (Vec::new(), None);
        for part in parts {
            match part.as_rule() {
                Rule::within => within = self.within_parts(part)?,
                _ => every = Some(self.expr(first(part)?)?),
            }
        }
        Some((within, every))
    }

    fn boundary(&mut self, pair: Pair<'_, Rule>) -> Option<BoundaryClause> {
        let mut parts = parts(pair);
        let axis = self.name(parts.next()?);
        let lower = self.side(parts.next()?)?;
        let upper = match parts.next() {
            Some(pair) => Some(self.side(pair)?),
            None => None,
        };
        Some(BoundaryClause { axis, lower, upper })
    }

    fn side(&mut self, pair: Pair<'_, Rule>) -> Option<BoundaryKind> {
        let mut parts = parts(pair);
        let name = self.name(parts.next()?);
        let args = match parts.next() {
            Some(pair) => self.args(pair)?,
            None => Vec::new(),
        };
        Some(BoundaryKind { name, args })
    }

    fn place(&mut self, pair: Pair<'_, Rule>) -> Option<Place> {
        Some(match pair.as_rule() {
            Rule::place_at => Place::At(self.exprs(parts(first(pair)?))?),
            Rule::place_near => {
                let coordinates = parts(pair).map(|pair| self.name_and_value(pair));
                Place::Near(coordinates.collect::<Option<_>>()?)
            }
            Rule::place_where => Place::Where(self.expr(first(pair)?)?),
            _ => Place::In(self.within_parts(pair)?),
        })
    }

    fn within_parts(&mut self, pair: Pair<'_, Rule>) -> Option<Vec<Within>> {
        parts(pair).map(|pair| self.within_part(pair)).collect()
    }

    fn within_part(&mut self, pair: Pair<'_, Rule>) -> Option<Within> {
        if pair.as_rule() != Rule::interval {
            return Some(Within::Region(self.expr(pair)?));
        }
        let mut parts = parts(pair);
        let axis = self.name(parts.next()?);
        let from = self.expr(parts.next()?)?;
        let to = match parts.next() {
            Some(pair) => Some(self.expr(pair)?),
            None => None,
        };
        Some(Within::Range { axis, from, to })
    }
}
