//! The levels of schedules.

use super::{Builder, Ordinal, Rule, first, parts};
use crate::ast::*;
use pest::iterators::Pair;

/// The first part that matches a rule.
fn part(pair: Pair<'_, Rule>, rule: Rule) -> Option<Pair<'_, Rule>> {
    parts(pair).find(|part| part.as_rule() == rule)
}

impl Builder<'_> {
    pub(super) fn schedule_levels(
        &mut self,
        pair: Pair<'_, Rule>,
    ) -> Option<Vec<Stmt<ScheduleLevel>>> {
        let mut levels = Vec::new();
        for part in parts(pair) {
            levels.push(self.stmt(part, Ordinal::after(&levels), &mut Self::schedule_level)?);
        }
        Some(levels)
    }

    pub(super) fn schedule_level(
        &mut self,
        pair: Pair<'_, Rule>,
        comments: &mut Comments,
    ) -> Option<ScheduleLevel> {
        let span = self.span(&pair);
        self.simple(span, comments, |b| b.level_line(pair))
    }

    fn level_line(&mut self, pair: Pair<'_, Rule>) -> Option<ScheduleLevel> {
        let mut parts = parts(pair);
        let mut next = parts.next()?;
        let mut axes = Vec::new();
        if next.as_rule() == Rule::level_axes {
            axes = super::parts(next).map(|name| self.name(name)).collect();
            next = parts.next()?;
        }
        let mut term = super::parts(next);
        let name = self.name(term.next()?);
        let mut args = Vec::new();
        for arg in term.flat_map(super::parts) {
            args.push(self.term_arg(arg)?);
        }
        let clauses = parts.map(|pair| self.clause(pair)).collect::<Option<_>>()?;
        Some(ScheduleLevel {
            axes,
            shape: ScheduleTerm { name, args },
            clauses,
        })
    }

    fn term_arg(&mut self, pair: Pair<'_, Rule>) -> Option<ScheduleArg> {
        let mut name = None;
        for part in parts(pair) {
            if part.as_rule() == Rule::arg_name {
                name = Some(self.name(first(part)?));
            } else {
                return Some(ScheduleArg {
                    name,
                    value: self.schedule_value(part)?,
                });
            }
        }
        None
    }

    fn schedule_value(&mut self, pair: Pair<'_, Rule>) -> Option<ScheduleValue> {
        if pair.as_rule() == Rule::auto_value || pair.as_str().trim() == "auto" {
            return Some(ScheduleValue::Auto);
        }
        let mut parts = parts(pair);
        let from = self.expr(parts.next()?)?;
        Some(match parts.next() {
            Some(to) => ScheduleValue::Range(from, self.expr(to)?),
            None => ScheduleValue::Expr(from),
        })
    }

    fn clause(&mut self, pair: Pair<'_, Rule>) -> Option<ScheduleClause> {
        if pair.as_rule() == Rule::lean {
            let positive = pair
                .clone()
                .into_inner()
                .any(|part| part.as_rule() == Rule::sign && part.as_str() == "+");
            return Some(ScheduleClause::Lean {
                positive,
                axis: self.name(part(pair, Rule::name)?),
            });
        }
        let mut parts = parts(pair);
        let word = self.name(parts.next()?);
        let value = match parts.next() {
            Some(pair) => Some(self.schedule_value(pair)?),
            None => None,
        };
        Some(ScheduleClause::Word { word, value })
    }
}
