//! The statements of a step, and the order in which they run.

use super::built_in::is_taken;
use super::codes;
use super::derive::SchemeText;
use super::graph::{LevelKey, Node, NodeId};
use super::load::taken;
use super::report::{Outcome, Place, Reported, count};
use super::resolver::{LOCALS, Resolver};
use super::suggest::did_you_mean;
use super::value::{Items, Kind, Operand, Scope, Typed, Value};
use crate::host::HostBinary;
use crate::scheme::ComponentId;
use std::collections::BTreeSet;
use std::rc::Rc;
use torre_grammar::ast::{self, Level, StepStmt, Stmt, Target, UpdateOp};
use torre_grammar::diag::Diagnostic;

/// The most statements of a step.
const STATEMENTS: usize = 4096;

/// One statement: its targets advance together.
#[derive(Clone, Debug)]
pub struct Statement {
    pub updates: Vec<Advance>,
    /// `=` rather than `+=` or `-=`.
    pub sets: bool,
    /// The target, as written.
    pub place: Place,
    /// The right-hand side.
    pub value: Place,
    /// Components whose next value it reads, where that is written.
    pub next: Vec<ComponentId>,
}

/// A component's part of a statement.
#[derive(Clone, Debug)]
pub struct Advance {
    pub target: ComponentId,
    /// Its new value.
    pub value: Typed,
    /// Where it advances; absent: everywhere.
    pub condition: Option<Typed>,
}

/// The meaning of a target.
pub struct Targeted {
    /// Its field, by its index in the frame.
    pub field: usize,
    /// The shape of the target: of the field, or of one component.
    pub kind: Kind,
    pub components: Vec<ComponentId>,
    /// Where it is written.
    pub place: Place,
}

impl Statement {
    pub fn targets(&self) -> impl Iterator<Item = ComponentId> + '_ {
        self.updates.iter().map(|u| u.target)
    }

    /// The condition under which it advances a component.
    pub fn condition_of(&self, component: ComponentId) -> Option<NodeId> {
        let advance = self.updates.iter().find(|u| u.target == component)?;
        advance.condition.map(|condition| condition.node)
    }

    pub fn advances(&self, component: ComponentId) -> bool {
        self.targets().any(|t| t == component)
    }
}

impl Resolver<'_> {
    /// The statements of a scheme in the order in which they run.
    pub fn statements(&mut self, text: &SchemeText) -> Outcome<Vec<Statement>> {
        if text.steps.is_empty() {
            let message = format!("scheme `{}` has no step", text.name.node);
            let d = self
                .error(codes::STEP, message, &text.place())
                .hint("add `step { ... }` with the updates of the fields");
            return self.fail(d);
        }
        let parts = self.step_parts(text)?;
        let mut list = Vec::new();
        // Values of `let`s, with the step from which on they are seen.
        let mut locals: Vec<(usize, (String, Value))> = Vec::new();
        let mut failed = false;
        for part in parts {
            let seen = locals.iter().filter(|(from, _)| *from <= part.level);
            let mut scope = Scope {
                locals: seen.map(|(_, local)| local.clone()).collect(),
                ..(**part.scope).clone()
            };
            let (known, before) = (scope.locals.len(), list.len());
            failed |= self.step_stmt(&mut scope, part.stmt, &mut list).is_err();
            let new = scope.locals.into_iter().skip(known);
            locals.extend(new.map(|local| (part.seen_from, local)));
            let place = part.scope.place(part.stmt.kind.span);
            self.check_length(list.len(), locals.len(), &place)?;
            if !part.replaced.is_empty() {
                let own = list.split_off(before);
                list.extend(
                    own.into_iter()
                        .filter_map(|s| self.without(s, &part.replaced)),
                );
            }
        }
        if failed {
            return Err(Reported);
        }
        self.warn_of_idle_fields(&list);
        self.order(list)
    }

    /// The rest of a statement without some components.
    fn without(
        &mut self,
        mut statement: Statement,
        gone: &BTreeSet<ComponentId>,
    ) -> Option<Statement> {
        statement.updates.retain(|u| !gone.contains(&u.target));
        statement.next.clear();
        for advance in &statement.updates {
            self.next_read_by(advance.value.node, &mut statement.next);
        }
        statement.next.sort_unstable();
        statement.next.dedup();
        (!statement.updates.is_empty()).then_some(statement)
    }

    /// Components whose next value an expression reads.
    fn next_read_by(&mut self, node: NodeId, next: &mut Vec<ComponentId>) {
        self.graph.visit(node, &mut |node| {
            if let Node::Field {
                component,
                level: Some(LevelKey::Next),
            } = node
            {
                next.push(component);
            }
        });
    }

    /// Whether a value is made of next values.
    pub fn reads_next(&mut self, node: NodeId) -> bool {
        let mut next = Vec::new();
        self.next_read_by(node, &mut next);
        !next.is_empty()
    }

    /// Evaluates all statements of a block, going on after errors.
    pub fn block(
        &mut self,
        scope: &mut Scope,
        body: &[Stmt<StepStmt>],
        list: &mut Vec<Statement>,
    ) -> Outcome<()> {
        let outer = scope.locals.len();
        let mut failed = false;
        for stmt in body {
            failed |= self.step_stmt(scope, stmt, list).is_err();
            let place = scope.place(stmt.kind.span);
            let short = self.check_length(list.len(), scope.locals.len(), &place);
            if short.is_err() {
                scope.locals.truncate(outer);
                return short;
            }
        }
        scope.locals.truncate(outer);
        if failed { Err(Reported) } else { Ok(()) }
    }

    fn check_length(&mut self, statements: usize, locals: usize, place: &Place) -> Outcome<()> {
        if locals > LOCALS {
            return self.too_complex(place);
        }
        if statements > STATEMENTS {
            let message = format!("a step has up to {STATEMENTS} statements");
            let d = self.error(codes::TOO_COMPLEX, message, place);
            return self.fail(d);
        }
        Ok(())
    }

    /// Evaluates one statement; a `let` adds to the locals.
    fn step_stmt(
        &mut self,
        scope: &mut Scope,
        stmt: &Stmt<StepStmt>,
        list: &mut Vec<Statement>,
    ) -> Outcome<()> {
        match &stmt.kind.node {
            StepStmt::Allow(_) => Ok(()),
            StepStmt::Let(bound) => {
                if is_taken(&bound.name.node) {
                    return self.fail(taken(&scope.source, &bound.name));
                }
                let value = self.eval(scope, &bound.value);
                let result = value.as_ref().map(|_| ()).map_err(|e| *e);
                let value = value.unwrap_or(Value::Poison);
                scope.locals.push((bound.name.node.clone(), value));
                result
            }
            StepStmt::Update { target, op, value } => {
                let statement = self.statement(scope, target, *op, value)?;
                list.push(statement);
                Ok(())
            }
            StepStmt::Where(branches) => self.branches(scope, branches, list),
        }
    }

    /// A condition on the place alone.
    pub fn condition(&mut self, scope: &Scope, expr: &ast::Expr) -> Outcome<Operand> {
        let operand = self.operand(scope, expr)?;
        let place = operand.place.clone();
        let c = self.one_scalar(operand, "a condition")?;
        let facts = self.graph.facts(c.node);
        if facts.dynamic || facts.timed {
            let (label, hint) = match facts.dynamic {
                true => (
                    "this depends on field values",
                    "for a choice by field values write `if ... then ... else ...` in the expression",
                ),
                false => (
                    "this depends on `t`",
                    "a source can change with time: multiply it by `if t > 5 then 1 else 0`",
                ),
            };
            let message = "a `where` condition is made of coordinates and parameters";
            let mut d = self
                .error(codes::DYNAMIC_CONDITION, message, &place)
                .hint(hint);
            d.labels[0].text = label.to_string();
            return self.fail(d);
        }
        Ok(Operand {
            value: Value::Scalar(c),
            place,
        })
    }

    /// The field that a target names, its components, and where it is written.
    pub fn target(&mut self, scope: &Scope, target: &Target) -> Outcome<Targeted> {
        let mut span = target.field.span;
        if let Some(c) = &target.component {
            span = span.to(c.span);
        }
        let place = scope.place(span);
        let name = &target.field.node;
        let field = match self.frame.names.value(name) {
            Some(Value::Field(index, _)) => *index,
            Some(Value::Poison) => return Err(Reported),
            Some(_) => {
                let d = self.error(
                    codes::WRONG_KIND,
                    format!("`{name}` is not a field"),
                    &scope.place(target.field.span),
                );
                return self.fail(d);
            }
            None if self.lacks_part(name) => return Err(Reported),
            None => {
                let mut d = self.error(
                    codes::UNKNOWN_NAME,
                    format!("there is no field `{name}`"),
                    &scope.place(target.field.span),
                );
                d.labels[0].text = "not found".to_string();
                let known: Vec<&str> = self.frame.fields.iter().map(|f| f.name.as_str()).collect();
                d.hint = did_you_mean(name, known.iter().copied()).or_else(|| {
                    (!known.is_empty() && known.len() <= 8)
                        .then(|| format!("the fields are {}", known.join(", ")))
                });
                return self.fail(d);
            }
        };
        let facts = &self.frame.fields[field];
        let Some(component) = &target.component else {
            return Ok(Targeted {
                field,
                kind: facts.kind,
                components: facts.components.clone(),
                place,
            });
        };
        if let Some(c) = self.frame.component_of(facts, &component.node) {
            return Ok(Targeted {
                field,
                kind: Kind::Scalar,
                components: vec![c],
                place,
            });
        }
        let names = facts.names.clone();
        let mut d = self.error(
            codes::UNKNOWN_COMPONENT,
            format!("`{name}` has no component `{}`", component.node),
            &scope.place(component.span),
        );
        d.labels[0].text = "no such component".to_string();
        d.hint = if names == [""] {
            Some(format!("`{name}` is a scalar"))
        } else {
            Some(format!("the components are {}", names.join(", ")))
        };
        self.fail(d)
    }

    /// The values for the components of a target, each at its position.
    pub fn values_for(
        &mut self,
        kind: Kind,
        components: &[ComponentId],
        operand: Operand,
        target: &Place,
    ) -> Outcome<Vec<Typed>> {
        let place = operand.place.clone();
        let found = self.scalars(operand.value, &place)?;
        let Items {
            kind: found,
            items,
            names,
        } = found;
        if found != kind || items.len() != components.len() {
            let describe = |kind: Kind, n: usize| match kind {
                Kind::Scalar => "a scalar".to_string(),
                Kind::Vector => format!("a vector of {}", count(n, "component", "components")),
                Kind::Tensor => format!("a tensor of {}", count(n, "component", "components")),
            };
            let (target_shape, value_shape) = (
                describe(kind, components.len()),
                describe(found, items.len()),
            );
            let mut d = Diagnostic::error(
                codes::SHAPES_DIFFER,
                format!("the target is {target_shape}, the value {value_shape}"),
            )
            .at(&place.source, place.span, value_shape)
            .at(&target.source, target.span, target_shape);
            if found == Kind::Scalar {
                d = d.hint("give a value for each component: `[a, b, c]`");
            } else if kind == Kind::Scalar {
                d = d.hint("select a component of the value, as in `E.x`");
            }
            return self.fail(d);
        }
        let parts = components.iter().map(|c| {
            let name = &self.frame.components[c.index()].name;
            name.split_once('.').map(|(_, part)| part.to_owned())
        });
        let own: Option<Vec<String>> = parts.collect();
        self.not_reordered([&names, &own.map(Rc::from)], [&place, target])?;
        for (&c, item) in components.iter().zip(&items) {
            let component = &self.frame.components[c.index()];
            if let Some(p) = item.position
                && p != component.position
            {
                let (name, at) = (component.name.clone(), component.position);
                let hint = self.difference_hint(item.node, p, at);
                return self.off_target_with(hint, &name, at, p, &place);
            }
        }
        Ok(items)
    }

    fn statement(
        &mut self,
        scope: &Scope,
        target: &Target,
        op: UpdateOp,
        value: &ast::Expr,
    ) -> Outcome<Statement> {
        let value = self.operand(scope, value);
        let Targeted {
            kind,
            components,
            place,
            ..
        } = self.target(scope, target)?;
        let value = value?;
        if let Some(level) = &target.level
            && level.node == Level::Prev
        {
            let d = self.error(
                codes::LEVEL_OF,
                "an earlier value cannot be changed",
                &scope.place(level.span),
            );
            return self.fail(d);
        }
        let value_place = value.place.clone();
        let items = self.values_for(kind, &components, value, &place)?;
        let mut statement = Statement {
            updates: Vec::new(),
            sets: op == UpdateOp::Set,
            place,
            value: value_place.clone(),
            next: Vec::new(),
        };
        for (&c, item) in components.iter().zip(items) {
            self.not_timed(item.node, "an update", &value_place)?;
            let position = self.frame.components[c.index()].position;
            self.next_read_by(item.node, &mut statement.next);
            let node = match op {
                UpdateOp::Set => item.node,
                UpdateOp::Add | UpdateOp::Sub => {
                    let old = self.graph.field(c, None);
                    let sign = match op {
                        UpdateOp::Sub => HostBinary::Sub,
                        _ => HostBinary::Add,
                    };
                    self.graph.binary(sign, old, item.node)
                }
            };
            statement.updates.push(Advance {
                target: c,
                value: Typed {
                    node,
                    position: Some(position),
                },
                condition: None,
            });
        }
        statement.next.sort_unstable();
        statement.next.dedup();
        Ok(statement)
    }

    /// Statements in the order of the text, except that one whose result is read as `@next` runs before its reader.
    fn order(&mut self, list: Vec<Statement>) -> Outcome<Vec<Statement>> {
        let mut makers: Vec<Vec<usize>> = vec![Vec::new(); self.frame.components.len()];
        for (i, statement) in list.iter().enumerate() {
            for advance in &statement.updates {
                makers[advance.target.index()].push(i);
            }
        }
        let mut needs: Vec<Vec<usize>> = Vec::new();
        for (i, statement) in list.iter().enumerate() {
            let mut before: Vec<usize> = Vec::new();
            for &c in &statement.next {
                if makers[c.index()].is_empty() {
                    let name = &self.frame.components[c.index()].name;
                    let d = self.error(
                        codes::NEVER_NEXT,
                        format!("the step computes no next value of `{name}`"),
                        &list[i].value,
                    );
                    return self.fail(d);
                }
                before.extend(&makers[c.index()]);
            }
            before.sort_unstable();
            before.dedup();
            needs.push(before);
        }
        // A statement is open while the statements that it needs are placed.
        let mut state = vec![State::New; list.len()];
        let mut sequence = Vec::new();
        for start in 0..list.len() {
            let mut path: Vec<(usize, usize)> = vec![(start, 0)];
            while let Some((i, next)) = path.pop() {
                match state[i] {
                    State::Placed => continue,
                    State::Open if next == 0 => {
                        return self.report_cycle(&list, &path, i);
                    }
                    _ => state[i] = State::Open,
                }
                match needs[i].get(next) {
                    Some(&j) => {
                        path.push((i, next + 1));
                        path.push((j, 0));
                    }
                    None => {
                        state[i] = State::Placed;
                        sequence.push(i);
                    }
                }
            }
        }
        self.warn_of_statements_ahead(&list, &needs, &sequence);
        let mut slots: Vec<Option<Statement>> = list.into_iter().map(Some).collect();
        Ok(sequence
            .into_iter()
            .filter_map(|i| slots[i].take())
            .collect())
    }

    fn report_cycle<T>(
        &mut self,
        list: &[Statement],
        path: &[(usize, usize)],
        again: usize,
    ) -> Outcome<T> {
        let from = path.iter().position(|(i, _)| *i == again).unwrap_or(0);
        let members: Vec<usize> = path[from..].iter().map(|(i, _)| *i).collect();
        let mut d = Diagnostic::error(codes::CYCLE, "dependence cycle within a step");
        for i in members.iter().take(4) {
            let name = list[*i].place.text().unwrap_or("this").to_string();
            d = d.at(
                &list[*i].value.source,
                list[*i].value.span,
                format!("the next value of `{name}` depends on a next value that depends on it"),
            );
        }
        d = d.hint(match members.len() {
            1 => "solve the statement for its new value, or read the old one, also where a state gets its next value",
            _ => "an explicit scheme computes one value after the other: read an older value in one of these",
        });
        self.fail(d)
    }

    fn warn_of_idle_fields(&mut self, list: &[Statement]) {
        for field in &self.frame.fields {
            let idle: Vec<&ComponentId> = field
                .components
                .iter()
                .filter(|c| {
                    !list
                        .iter()
                        .any(|s| s.updates.iter().any(|u| u.target == **c))
                })
                .collect();
            let Some(first) = idle.first() else { continue };
            let name = if idle.len() == field.components.len() {
                field.name.clone()
            } else {
                self.frame.components[first.index()].name.clone()
            };
            self.report.push(
                Diagnostic::warning(
                    codes::NEVER_ADVANCED,
                    format!("the step never updates `{name}`"),
                )
                .at(&field.place.source, field.place.span, "declared here")
                .hint("values that do not change are a `coef`"),
            );
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Placed,
}
