//! The statements of problems.

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
        self.simple(span, comments, |b| b.problem_line(first(pair)?))
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
                    path: super::parts(head).map(|name| self.name(name)).collect(),
                    params,
                }
            }
            Rule::steps_stmt => ProblemStmt::Steps(self.expr(head)?),
            Rule::problem_coef => {
                let name = self.name(head);
                let mut component = None;
                let mut next = parts.next()?;
                if next.as_rule() == Rule::member {
                    component = Some(self.name(first(next)?));
                    next = parts.next()?;
                }
                ProblemStmt::Coef {
                    name,
                    component,
                    value: self.expr(next)?,
                }
            }
            Rule::init_stmt => ProblemStmt::Init {
                target: self.target(head)?,
                value: self.expr(parts.next()?)?,
            },
            Rule::source_stmt => {
                let target = self.target(head)?;
                let next = parts.next()?;
                match parts.next() {
                    Some(value) => ProblemStmt::Source {
                        target,
                        place: self.place(next)?,
                        value: self.expr(value)?,
                    },
                    None => ProblemStmt::Source {
                        target,
                        place: Place::All,
                        value: self.expr(next)?,
                    },
                }
            }
            Rule::probe_stmt => {
                let target = self.target(head)?;
                let at = self.exprs(super::parts(parts.next()?))?;
                let name = match parts.next() {
                    Some(pair) => Some(self.name(first(pair)?)),
                    None => None,
                };
                ProblemStmt::Probe { target, at, name }
            }
            Rule::slice_stmt => {
                let target = self.target(head)?;
                let axis = self.name(parts.next()?);
                let index = self.expr(parts.next()?)?;
                ProblemStmt::Slice {
                    target,
                    axis,
                    index,
                    every: self.every(parts.next())?,
                }
            }
            _ => ProblemStmt::Volume {
                target: self.target(head)?,
                every: self.every(parts.next())?,
            },
        })
    }

    /// The outer `None` is a fault, as everywhere here.
    fn every(&mut self, pair: Option<Pair<'_, Rule>>) -> Option<Option<Expr>> {
        match pair {
            Some(pair) => Some(Some(self.expr(first(pair)?)?)),
            None => Some(None),
        }
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
            Rule::place_where => Place::Where(self.expr(first(pair)?)?),
            _ => {
                let mut list = Vec::new();
                for part in parts(pair) {
                    list.push(self.within_part(part)?);
                }
                Place::In(list)
            }
        })
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
