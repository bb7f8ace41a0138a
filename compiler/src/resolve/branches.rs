//! `where` with its branches: statements that act in one part of the grid, and others elsewhere.

use super::codes;
use super::order::{Advance, Statement};
use super::report::{Outcome, Reported};
use super::resolver::Resolver;
use super::value::{Operand, Scope, Typed, Value};
use crate::distinct::distinct;
use crate::host::{HostBinary, HostUnary};
use torre_grammar::ast::Branch;
use torre_grammar::diag::Diagnostic;

impl Resolver<'_> {
    /// The statements of a `where`: the statements of a branch where its condition holds and none before it did. Where
    /// two branches advance the same value there is one statement, so that the value advances once.
    pub fn branches(
        &mut self,
        scope: &mut Scope,
        branches: &[Branch],
        list: &mut Vec<Statement>,
    ) -> Outcome<()> {
        let mut failed = false;
        let mut rest: Vec<Statement> = Vec::new();
        for branch in branches.iter().rev() {
            let condition = branch.condition.as_ref().map(|c| self.condition(scope, c));
            let mut own = Vec::new();
            failed |= self.block(scope, &branch.body, &mut own).is_err();
            let joined = match condition {
                None => Ok(own),
                Some(Ok(condition)) => self.join(&condition, own, std::mem::take(&mut rest)),
                Some(Err(Reported)) => Err(Reported),
            };
            match joined {
                Ok(statements) => rest = statements,
                Err(Reported) => failed = true,
            }
        }
        list.append(&mut rest);
        if failed { Err(Reported) } else { Ok(()) }
    }

    /// `own` where the condition holds, `rest` elsewhere.
    fn join(
        &mut self,
        condition: &Operand,
        own: Vec<Statement>,
        rest: Vec<Statement>,
    ) -> Outcome<Vec<Statement>> {
        let Value::Scalar(holds) = condition.value else {
            return Err(Reported);
        };
        let elsewhere = Typed {
            node: self.graph.unary(HostUnary::Not, holds.node),
            position: holds.position,
        };
        let pairs = pairs(&own, &rest);
        self.check_pairs(&own, &rest, &pairs)?;
        let mut joined = Vec::new();
        let mut failed = false;
        let mut rest = rest.into_iter().enumerate();
        for (i, mut first) in own.into_iter().enumerate() {
            let partner = pairs.iter().find(|(a, _)| *a == i).map(|(_, b)| *b);
            let Some(partner) = partner else {
                failed |= self.confine_to(&mut first, holds, condition).is_err();
                joined.push(first);
                continue;
            };
            for (j, mut other) in rest.by_ref() {
                if j == partner {
                    failed |= self.check_position(&first, holds, condition).is_err();
                    joined.push(self.choose_statement(holds, first, other));
                    break;
                }
                failed |= self.confine_to(&mut other, elsewhere, condition).is_err();
                joined.push(other);
            }
        }
        for (_, mut other) in rest {
            failed |= self.confine_to(&mut other, elsewhere, condition).is_err();
            joined.push(other);
        }
        if failed { Err(Reported) } else { Ok(joined) }
    }

    /// Values that both branches advance have to be in pairs of statements.
    fn check_pairs(
        &mut self,
        own: &[Statement],
        rest: &[Statement],
        pairs: &[(usize, usize)],
    ) -> Outcome<()> {
        for (i, first) in own.iter().enumerate() {
            for (j, second) in rest.iter().enumerate() {
                let paired =
                    pairs.iter().any(|(a, _)| *a == i) && pairs.iter().any(|(_, b)| *b == j);
                let shared = first.targets().find(|t| second.advances(*t));
                let Some(shared) = shared.filter(|_| !paired) else {
                    continue;
                };
                let name = &self.frame.components[shared.index()].name;
                let d = Diagnostic::error(
                    codes::BRANCHES,
                    format!("the branches of this `where` advance `{name}` in different ways"),
                )
                .at(&second.place.source, second.place.span, "here")
                .at(&first.place.source, first.place.span, "and here")
                .hint(
                    "what both branches advance is one statement: give both the same targets \
                     in the same order; `u = u` keeps a value",
                );
                return self.fail(d);
            }
        }
        Ok(())
    }

    /// Limits a statement to where a condition holds.
    fn confine_to(
        &mut self,
        statement: &mut Statement,
        holds: Typed,
        condition: &Operand,
    ) -> Outcome<()> {
        self.check_position(statement, holds, condition)?;
        for advance in &mut statement.updates {
            let node = match advance.condition {
                None => holds.node,
                Some(inner) => self.graph.binary(HostBinary::And, holds.node, inner.node),
            };
            advance.condition = Some(Typed { node, ..holds });
        }
        Ok(())
    }

    /// A condition with a position can only be asked there.
    fn check_position(
        &mut self,
        statement: &Statement,
        holds: Typed,
        condition: &Operand,
    ) -> Outcome<()> {
        let Some(found) = holds.position else {
            return Ok(());
        };
        for advance in &statement.updates {
            let component = &self.frame.components[advance.target.index()];
            if component.position != found {
                let (name, at) = (component.name.clone(), component.position);
                return self.off_target(&name, at, found, &condition.place);
            }
        }
        Ok(())
    }

    /// `first` where the condition holds, `second` elsewhere, as one statement.
    fn choose_statement(&mut self, holds: Typed, first: Statement, second: Statement) -> Statement {
        let mut updates = Vec::new();
        for (a, b) in first.updates.iter().zip(&second.updates) {
            let node = self.graph.choose(holds.node, a.value.node, b.value.node);
            let condition = match (a.condition, b.condition) {
                (None, None) => None,
                (x, y) => {
                    let everywhere = self.graph.number(1.0);
                    let node = |c: Option<Typed>| c.map_or(everywhere, |c| c.node);
                    Some(Typed {
                        node: self.graph.choose(holds.node, node(x), node(y)),
                        position: a.value.position,
                    })
                }
            };
            updates.push(Advance {
                target: a.target,
                value: Typed { node, ..a.value },
                condition,
            });
        }
        let next = distinct([first.next, second.next].concat());
        Statement {
            updates,
            sets: first.sets && second.sets,
            next,
            ..first
        }
    }
}

/// Which statements advance the same components: each with the first one behind the partner of the one before.
fn pairs(own: &[Statement], rest: &[Statement]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let mut from = 0;
    for (i, first) in own.iter().enumerate() {
        let same = |s: &Statement| s.targets().eq(first.targets());
        if let Some(found) = rest[from..].iter().position(same) {
            pairs.push((i, from + found));
            from += found + 1;
        }
    }
    pairs
}
