//! From syntax to the graph: names are looked up, definitions inlined, shapes and positions checked.

use super::codes;
use super::graph::Node;
use super::report::{Outcome, Place, Reported, count, short};
use super::resolver::Resolver;
use super::space::Space;
use super::value::{Items, Kind, Operand, Scope, Typed, Value};
use crate::host::{HostBinary, HostUnary};
use crate::lattice::{Axis, HalfIndex, Position};
use torre_grammar::ast::{BinaryOp, Expr, ExprKind, Level, Name, UnaryOp};

/// Expressions evaluated for one scheme or problem, over all inlining.
pub const STEPS: u64 = 400_000;
/// Expressions inside expressions, over all inlining.
const NESTED: usize = 220;
/// The longest list.
const LIST: usize = 256;
impl Resolver<'_> {
    pub fn eval(&mut self, scope: &Scope, expr: &Expr) -> Outcome<Value> {
        self.steps += 1;
        if self.report.is_full() {
            return Err(Reported);
        }
        if self.steps > STEPS || self.nested > NESTED || self.graph.is_full() {
            return self.too_complex(&scope.place(expr.span));
        }
        self.nested += 1;
        let value = self.eval_kind(scope, expr);
        self.nested -= 1;
        if self.graph.is_full() {
            return self.too_complex(&scope.place(expr.span));
        }
        value
    }

    fn eval_kind(&mut self, scope: &Scope, expr: &Expr) -> Outcome<Value> {
        let place = scope.place(expr.span);
        match &expr.node {
            ExprKind::Number(n) => Ok(self.scalar(*n)),
            ExprKind::Text(text) => Ok(Value::Text(text.as_str().into())),
            ExprKind::Name(name) => self.lookup(scope, name, &place),
            ExprKind::Path(path) => {
                let item = self.item_at(scope, path, Space::Value, &place)?;
                self.constant(item, &place)
            }
            ExprKind::Member(of, name) => {
                let value = self.eval(scope, of)?;
                self.member(scope, value, name)
            }
            ExprKind::Level(of, level) => {
                let value = self.eval(scope, of)?;
                if let Value::Scalar(s) = &value
                    && let Node::State(key) = self.graph.node(s.node)
                    && *level == Level::Next
                {
                    return Ok(Value::Scalar(self.next_of_state(key, &place)?));
                }
                self.at_level(value, *level, &place)
            }
            ExprKind::Offset(of, offsets) => self.offset(scope, of, offsets, &place),
            ExprKind::List(items) => self.list(scope, items, &place),
            ExprKind::Call { callee, args } => self.call(scope, callee, args, &place),
            ExprKind::Unary(op, a) => {
                let a = self.operand(scope, a)?;
                let op = match op {
                    UnaryOp::Neg => HostUnary::Neg,
                    UnaryOp::Not => HostUnary::Not,
                };
                self.apply_unary(op, a)
            }
            ExprKind::Binary(..) => self.binary(scope, expr),
            ExprKind::If {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.operand(scope, condition);
                // A number is known now; the other branch need not even make sense.
                if let Ok(operand) = &condition
                    && let Value::Scalar(c) = operand.value
                    && let Some(n) = self.graph.as_number(c.node)
                {
                    return self.eval(scope, if n != 0.0 { then } else { otherwise });
                }
                let then = self.operand(scope, then);
                let otherwise = self.operand(scope, otherwise);
                self.choose(condition?, then?, otherwise?, &place)
            }
        }
    }

    /// Evaluates a chain of operators to the left without recursion: sums may have many terms.
    fn binary(&mut self, scope: &Scope, expr: &Expr) -> Outcome<Value> {
        let mut chain = Vec::new();
        let mut leftmost = expr;
        while let ExprKind::Binary(op, a, b) = &leftmost.node {
            chain.push((*op, b, leftmost.span));
            leftmost = a;
        }
        let mut left = self.operand(scope, leftmost);
        for (op, b, span) in chain.into_iter().rev() {
            let right = self.operand(scope, b);
            left = match (left, right) {
                (Ok(a), Ok(b)) => {
                    let place = scope.place(span);
                    if op == BinaryOp::Sub {
                        self.warn_of_raw_difference(&a.value, &b.value, &place);
                    }
                    self.apply_binary(host_op(op), a, b, &place)
                        .map(|value| Operand { value, place })
                }
                _ => Err(Reported),
            };
        }
        left.map(|l| l.value)
    }

    /// An expression with its place, for messages.
    pub fn operand(&mut self, scope: &Scope, expr: &Expr) -> Outcome<Operand> {
        let value = self.eval(scope, expr)?;
        Ok(Operand {
            value,
            place: scope.place(expr.span),
        })
    }

    pub fn scalar(&mut self, n: f64) -> Value {
        let node = self.graph.number(n);
        Value::Scalar(Typed {
            node,
            position: None,
        })
    }

    /// A number that is known now.
    pub fn number(&mut self, scope: &Scope, expr: &Expr) -> Outcome<f64> {
        let operand = self.operand(scope, expr)?;
        let place = operand.place.clone();
        let found = match &operand.value {
            Value::Scalar(s) => {
                if let Some(n) = self.graph.as_number(s.node) {
                    return Ok(n);
                }
                if self.graph.is_dynamic(s.node) {
                    "this depends on field values"
                } else if self.graph.facts(s.node).timed {
                    "this depends on time"
                } else {
                    "this depends on the place"
                }
            }
            Value::Axis(_) => "this is an axis",
            Value::Text(_) => "this is the name of a file",
            Value::Field(..) => "this is a field",
            Value::Vector(..) => "this is a vector",
            Value::Tensor(_) => "this is a tensor",
            Value::Poison => return Err(Reported),
        };
        let mut d = self.error(codes::NOT_A_NUMBER, "a number is needed here", &place);
        d.labels[0].text = found.to_string();
        self.fail(d)
    }

    /// A whole number that is known now.
    pub fn integer(&mut self, scope: &Scope, expr: &Expr) -> Outcome<i64> {
        self.counted(scope, expr, None)
    }

    /// A whole number that is known now; `hint`: another meaning where it is not whole.
    pub fn counted(&mut self, scope: &Scope, expr: &Expr, hint: Option<&str>) -> Outcome<i64> {
        let n = self.number(scope, expr)?;
        let whole = n.is_finite() && n == n.trunc();
        if whole && n.abs() <= 9e15 {
            return Ok(n as i64);
        }
        let message = match whole {
            true => "whole numbers go to 9e15 here",
            false => "a whole number is needed here",
        };
        let mut d = self.error(codes::NOT_A_NUMBER, message, &scope.place(expr.span));
        d.labels[0].text = format!("this is {}", short(n));
        d.hint = hint.filter(|_| !whole).map(str::to_string);
        self.fail(d)
    }

    pub fn member(&mut self, scope: &Scope, value: Value, name: &Name) -> Outcome<Value> {
        let place = scope.place(name.span);
        let names: Vec<String> = match &value {
            Value::Field(i, level) => {
                let field = &self.frame.fields[*i];
                if let Some(c) = self.frame.component_of(field, &name.node) {
                    let node = self.graph.field(c, level.map(Into::into));
                    let position = Some(self.frame.components[c.index()].position);
                    return Ok(Value::Scalar(Typed { node, position }));
                }
                field.names.clone()
            }
            Value::Vector(items, names) => {
                let axes = &self.frame.axes;
                let names: Vec<String> = match names {
                    Some(names) => names.to_vec(),
                    None if items.len() == axes.len() => {
                        axes.iter().map(|(n, _)| n.clone()).collect()
                    }
                    None => {
                        let message = format!("a list of {} values has no names", items.len());
                        let mut d = self.error(codes::UNKNOWN_COMPONENT, message, &place);
                        d.labels[0].text = "no such component".to_string();
                        return self.fail(d.hint("store it in a field, which has"));
                    }
                };
                if let Some(i) = names.iter().position(|n| *n == name.node) {
                    return Ok(Value::Scalar(items[i]));
                }
                names
            }
            Value::Tensor(items) => {
                if let Some(&item) = self
                    .frame
                    .tensor_index(&name.node)
                    .and_then(|i| items.get(i))
                {
                    return Ok(Value::Scalar(item));
                }
                self.frame.tensor_names()
            }
            Value::Scalar(_) | Value::Axis(_) | Value::Text(_) => Vec::new(),
            Value::Poison => return Err(Reported),
        };
        let mut d = if names.is_empty() || names == [""] {
            self.error(
                codes::UNKNOWN_COMPONENT,
                format!("a scalar has no component `{}`", name.node),
                &place,
            )
        } else {
            self.error(
                codes::UNKNOWN_COMPONENT,
                format!("there is no component `{}`", name.node),
                &place,
            )
            .hint(format!("the components are {}", names.join(", ")))
        };
        d.labels[0].text = "no such component".to_string();
        self.fail(d)
    }

    fn at_level(&mut self, value: Value, level: Level, place: &Place) -> Outcome<Value> {
        let index = match &value {
            Value::Field(i, None) => Some(*i),
            Value::Scalar(s) => match self.graph.node(s.node) {
                Node::Field {
                    component,
                    level: None,
                } => self.frame.field_of(component),
                _ => None,
            },
            Value::Poison => return Err(Reported),
            _ => None,
        };
        let Some(index) = index else {
            let d = self
                .error(
                    codes::LEVEL_OF,
                    "only a field has earlier and later values",
                    place,
                )
                .hint("write it behind the field's name: `u@prev`");
            return self.fail(d);
        };
        let field = &self.frame.fields[index];
        if level == Level::Prev && field.levels < 2 {
            let d = self
                .error(
                    codes::NO_PREVIOUS,
                    format!("`{}` keeps no earlier value", field.name),
                    place,
                )
                .hint(format!("declare `field {} : ... levels 2`", field.name));
            return self.fail(d);
        }
        Ok(match value {
            Value::Scalar(s) => match self.graph.node(s.node) {
                Node::Field { component, .. } => Value::Scalar(Typed {
                    node: self.graph.field(component, Some(level.into())),
                    position: s.position,
                }),
                _ => value,
            },
            _ => Value::Field(index, Some(level)),
        })
    }

    fn offset(
        &mut self,
        scope: &Scope,
        of: &Expr,
        offsets: &[Expr],
        place: &Place,
    ) -> Outcome<Value> {
        let value = self.eval(scope, of)?;
        let axes: Vec<Axis> = self.frame.axes.iter().map(|(_, a)| *a).collect();
        if axes.len() != offsets.len() {
            let message = format!(
                "{} offsets are given, but the scheme has {}",
                offsets.len(),
                count(axes.len(), "axis", "axes")
            );
            let d = self.error(codes::OFFSET, message, place);
            return self.fail(d);
        }
        let mut by = Position::default();
        for (axis, offset) in axes.into_iter().zip(offsets) {
            let n = self.number(scope, offset)?;
            let doubled = 2.0 * n;
            let place = scope.place(offset.span);
            if doubled != doubled.trunc() {
                let message = format!("an offset of {n} cells hits no lattice");
                let d = self
                    .error(codes::OFFSET, message, &place)
                    .hint("offsets are multiples of 1/2");
                return self.fail(d);
            }
            if doubled.abs() > 1e6 {
                let message = format!("an offset of {n} cells is too far");
                let d = self
                    .error(codes::OFFSET, message, &place)
                    .hint("updates read values of the cells around");
                return self.fail(d);
            }
            if self.frame.is_present(axis) {
                by[axis] = HalfIndex(doubled as i64);
            }
        }
        let Items { kind, items, names } = self.scalars(value, place)?;
        let items = items
            .into_iter()
            .map(|s| Typed {
                node: self.graph.shift(s.node, by),
                position: s
                    .position
                    .map(|p| Position::from_fn(|a| HalfIndex((p[a].0 - by[a].0).rem_euclid(2)))),
            })
            .collect();
        Ok(kind.named(items, names))
    }

    fn list(&mut self, scope: &Scope, items: &[Expr], place: &Place) -> Outcome<Value> {
        if items.is_empty() || items.len() > LIST {
            let message = if items.is_empty() {
                "an empty list is no vector"
            } else {
                "this list is too long"
            };
            let d = self.error(codes::LIST, message, place);
            return self.fail(d);
        }
        let mut list = Vec::new();
        for value in self.items(scope, items.iter()) {
            let value = value?;
            list.push(self.component_scalar(value)?);
        }
        Ok(Value::Vector(list, None))
    }

    /// A value that stands in a list.
    pub fn component_scalar(&mut self, operand: Operand) -> Outcome<Typed> {
        let Items { kind, items, .. } = self.scalars(operand.value, &operand.place)?;
        match (kind, items.as_slice()) {
            (Kind::Scalar, [s]) => Ok(*s),
            _ => {
                let d = self.error(
                    codes::LIST,
                    "the components of a vector must be scalars",
                    &operand.place,
                );
                self.fail(d)
            }
        }
    }
}

fn host_op(op: BinaryOp) -> HostBinary {
    match op {
        BinaryOp::Add => HostBinary::Add,
        BinaryOp::Sub => HostBinary::Sub,
        BinaryOp::Mul => HostBinary::Mul,
        BinaryOp::Div => HostBinary::Div,
        BinaryOp::Pow => HostBinary::Pow,
        BinaryOp::Lt => HostBinary::Lt,
        BinaryOp::Le => HostBinary::Le,
        BinaryOp::Gt => HostBinary::Gt,
        BinaryOp::Ge => HostBinary::Ge,
        BinaryOp::Eq => HostBinary::Eq,
        BinaryOp::Ne => HostBinary::Ne,
        BinaryOp::And => HostBinary::And,
        BinaryOp::Or => HostBinary::Or,
    }
}
