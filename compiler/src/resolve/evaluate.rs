//! From syntax to the graph: names are looked up, definitions inlined, shapes and positions checked.

use super::built_in::is_built_in;
use super::codes;
use super::graph::Node;
use super::load::{Found, ItemId, Space};
use super::report::{Checked, Place, Reported, count};
use super::resolver::{Constant, Resolver, Scope};
use super::suggest::did_you_mean;
use super::value::{Items, Kind, Operand, Typed, Value};
use crate::host::{HostBinary, HostUnary};
use crate::lattice::{Axis, HalfIndex, Position};
use torre_grammar::ast::{BinaryOp, Expr, ExprKind, ItemKind, Level, Name, UnaryOp};

/// Expressions evaluated in one go, over all inlining.
const STEPS: u64 = 400_000;
/// Expressions inside expressions, over all inlining.
const NESTED: usize = 220;
/// The longest list.
const LIST: usize = 256;
impl Resolver<'_> {
    pub fn eval(&mut self, scope: &Scope, expr: &Expr) -> Checked<Value> {
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

    fn eval_kind(&mut self, scope: &Scope, expr: &Expr) -> Checked<Value> {
        let place = scope.place(expr.span);
        match &expr.node {
            ExprKind::Number(n) => Ok(self.scalar(*n)),
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
                let then = self.operand(scope, then);
                let otherwise = self.operand(scope, otherwise);
                self.choose(condition?, then?, otherwise?, &place)
            }
        }
    }

    /// Evaluates a chain of operators to the left without recursion: sums may have many terms.
    fn binary(&mut self, scope: &Scope, expr: &Expr) -> Checked<Value> {
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
                    self.apply_binary(host_op(op), a, b, &place)
                        .map(|value| Operand { value, place })
                }
                _ => Err(Reported),
            };
        }
        left.map(|l| l.value)
    }

    /// An expression with its place, for messages.
    pub fn operand(&mut self, scope: &Scope, expr: &Expr) -> Checked<Operand> {
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

    fn lookup(&mut self, scope: &Scope, name: &str, place: &Place) -> Checked<Value> {
        let local = scope.locals.iter().rev().find(|(n, _)| n == name);
        let value = match local {
            Some((_, value)) => Some(value.clone()),
            None if scope.in_scheme => self.frame.names.get(name).cloned(),
            None => None,
        };
        if let Some(value) = value {
            return match value {
                Value::Poison => Err(Reported),
                value => Ok(value),
            };
        }
        match self.library.find(scope.module, Space::Value, name) {
            Found::Item(item) => return self.constant(item, place),
            Found::Broken => return Err(Reported),
            Found::Nothing => {}
        }
        if let Some(axis) = self.frame.axis(name) {
            return Ok(Value::Axis(axis));
        }
        match name {
            "pi" => return Ok(self.scalar(std::f64::consts::PI)),
            "t" => {
                let node = self.graph.time();
                return Ok(Value::Scalar(Typed {
                    node,
                    position: None,
                }));
            }
            _ => {}
        }
        if is_built_in(name) {
            let message = format!("`{name}` is an operator and needs arguments");
            let d = self
                .error(codes::WRONG_KIND, message, place)
                .hint(format!("write `{name}(...)`"));
            return self.fail(d);
        }
        let mut d = self.error(
            codes::UNKNOWN_NAME,
            format!("there is no `{name}` here"),
            place,
        );
        d.labels[0].text = "not found".to_string();
        d.hint = self.hint_for(scope, name);
        self.fail(d)
    }

    fn hint_for(&self, scope: &Scope, name: &str) -> Option<String> {
        if !scope.in_scheme && self.frame.names.contains_key(name) {
            return Some(format!(
                "definitions see only their parameters: add a parameter and pass `{name}`"
            ));
        }
        let mut known: Vec<&str> = scope.locals.iter().rev().map(|(n, _)| n.as_str()).collect();
        if scope.in_scheme {
            known.extend(self.frame.names.keys().map(String::as_str));
        }
        known.extend(self.library.names(scope.module, Space::Value));
        known.extend(self.frame.axes.iter().map(|(n, _)| n.as_str()));
        known.extend(["pi", "t"]);
        if let Some(hint) = did_you_mean(name, known) {
            return Some(hint);
        }
        if ["x", "y", "z"].contains(&name) && !self.frame.axes.is_empty() {
            let axes: Vec<&str> = self.frame.axes.iter().map(|(n, _)| n.as_str()).collect();
            return Some(format!("the axes of the scheme are {}", axes.join(", ")));
        }
        None
    }

    /// The item that a path such as `std::curl::curl` names.
    pub fn item_at(
        &mut self,
        scope: &Scope,
        path: &[Name],
        space: Space,
        place: &Place,
    ) -> Checked<ItemId> {
        let Some((name, module)) = path.split_last() else {
            let d = self.error(codes::UNKNOWN_NAME, "a name is missing here", place);
            return self.fail(d);
        };
        if module.is_empty() {
            return match self.library.find(scope.module, space, &name.node) {
                Found::Item(item) => Ok(item),
                Found::Broken => Err(Reported),
                Found::Nothing => {
                    let what = match space {
                        Space::Value => "definition",
                        Space::Scheme => "scheme",
                        Space::Problem => "problem",
                        Space::Schedule => "schedule",
                    };
                    let message = format!("there is no {what} `{}` here", name.node);
                    let mut d = self.error(codes::UNKNOWN_NAME, message, place);
                    d.hint = did_you_mean(&name.node, self.library.names(scope.module, space));
                    self.fail(d)
                }
            };
        }
        let opened = self
            .library
            .open(self.world, &mut self.report, scope.module, module);
        let from = opened.ok_or(Reported)?;
        if let Found::Item(item) = self.library.find(from, space, &name.node)
            && item.module == from
        {
            return Ok(item);
        }
        let own = self.library.own(from, space);
        let module = self.library.module(from).source.name();
        let message = format!("`{module}` has no item `{}`", name.node);
        let mut d = self.error(codes::UNKNOWN_ITEM, message, place);
        d.hint = did_you_mean(&name.node, own.iter().map(|(_, n)| n.node.as_str()));
        self.fail(d)
    }

    /// The value of a constant.
    fn constant(&mut self, item: ItemId, place: &Place) -> Checked<Value> {
        match self.constants.get(&item) {
            Some(Constant::Done(Value::Poison)) => return Err(Reported),
            Some(Constant::Done(value)) => return Ok(value.clone()),
            Some(Constant::Running) => {
                let d = self.error(
                    codes::RECURSIVE,
                    "this constant is defined by itself",
                    place,
                );
                return self.fail(d);
            }
            None => {}
        }
        let module = self.library.module(item.module);
        let (source, ast) = (module.source.clone(), module.ast.clone());
        let value = match ast.items.get(item.index).map(|i| &i.kind) {
            Some(ItemKind::Const { value, .. }) => value,
            Some(ItemKind::Def(def)) => {
                let name = &def.name.node;
                let message = format!("`{name}` is an operator and needs arguments");
                let d = self
                    .error(codes::WRONG_KIND, message, place)
                    .hint(format!("write `{name}(...)`"));
                return self.fail(d);
            }
            _ => return Err(Reported),
        };
        self.constants.insert(item, Constant::Running);
        let scope = Scope {
            source,
            module: item.module,
            locals: Vec::new(),
            in_scheme: false,
        };
        // A constant sees no axes: it is the same for all schemes.
        let frame = std::mem::take(&mut self.frame);
        let result = self.number(&scope, value);
        self.frame = frame;
        let result = match result {
            Ok(n) => self.scalar(n),
            Err(Reported) => Value::Poison,
        };
        self.constants.insert(item, Constant::Done(result.clone()));
        match result {
            Value::Poison => Err(Reported),
            value => Ok(value),
        }
    }

    /// A number that is known now.
    pub fn number(&mut self, scope: &Scope, expr: &Expr) -> Checked<f64> {
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
            Value::Field(..) => "this is a field",
            Value::Vector(_) => "this is a vector",
            Value::Tensor(_) => "this is a tensor",
            Value::Poison => return Err(Reported),
        };
        let mut d = self.error(codes::NOT_A_NUMBER, "a number is needed here", &place);
        d.labels[0].text = found.to_string();
        self.fail(d)
    }

    /// A whole number that is known now.
    pub fn integer(&mut self, scope: &Scope, expr: &Expr) -> Checked<i64> {
        let n = self.number(scope, expr)?;
        if n == n.trunc() && n.abs() <= 9e15 {
            return Ok(n as i64);
        }
        let mut d = self.error(
            codes::NOT_A_NUMBER,
            "a whole number is needed here",
            &scope.place(expr.span),
        );
        d.labels[0].text = format!("this is {n}");
        self.fail(d)
    }

    fn member(&mut self, scope: &Scope, value: Value, name: &Name) -> Checked<Value> {
        let place = scope.place(name.span);
        let names: Vec<String> = match &value {
            Value::Field(i, level) => {
                let field = &self.frame.fields[*i];
                if let Some(c) = field.component(&name.node) {
                    let node = self.graph.field(c, level.map(Into::into));
                    let position = Some(self.frame.components[c.index()].position);
                    return Ok(Value::Scalar(Typed { node, position }));
                }
                field.names.clone()
            }
            Value::Vector(items) => {
                let axes = &self.frame.axes;
                if items.len() == axes.len() {
                    if let Some(i) = axes.iter().position(|(n, _)| *n == name.node) {
                        return Ok(Value::Scalar(items[i]));
                    }
                    axes.iter().map(|(n, _)| n.clone()).collect()
                } else {
                    Vec::new()
                }
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
            Value::Scalar(_) | Value::Axis(_) => Vec::new(),
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

    fn at_level(&mut self, value: Value, level: Level, place: &Place) -> Checked<Value> {
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
    ) -> Checked<Value> {
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
            if doubled != doubled.trunc() || doubled.abs() > 1e6 {
                let d = self
                    .error(
                        codes::OFFSET,
                        format!("an offset of {n} cells hits no lattice"),
                        &scope.place(offset.span),
                    )
                    .hint("offsets are multiples of 1/2");
                return self.fail(d);
            }
            by[axis] = HalfIndex(doubled as i64);
        }
        let Items { kind, items } = self.scalars(value, place)?;
        let items = items
            .into_iter()
            .map(|s| Typed {
                node: self.graph.shift(s.node, by),
                position: s
                    .position
                    .map(|p| Position::from_fn(|a| HalfIndex((p[a].0 - by[a].0).rem_euclid(2)))),
            })
            .collect();
        Ok(kind.with(items))
    }

    fn list(&mut self, scope: &Scope, items: &[Expr], place: &Place) -> Checked<Value> {
        if items.is_empty() || items.len() > LIST {
            let message = if items.is_empty() {
                "an empty list is no vector"
            } else {
                "this list is too long"
            };
            let d = self.error(codes::LIST, message, place);
            return self.fail(d);
        }
        let values: Vec<_> = items.iter().map(|e| self.operand(scope, e)).collect();
        let mut list = Vec::new();
        for value in values {
            let value = value?;
            list.push(self.component_scalar(value)?);
        }
        Ok(Value::Vector(list))
    }

    /// A value that stands in a list.
    pub fn component_scalar(&mut self, operand: Operand) -> Checked<Typed> {
        let Items { kind, items } = self.scalars(operand.value, &operand.place)?;
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
