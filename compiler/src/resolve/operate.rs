//! Arithmetic on values: shapes by component, positions as types.

use super::built_in::{name_of, unary_of};
use super::codes;
use super::difference::Operator;
use super::report::{Outcome, Place, Reported, count};
use super::resolver::Resolver;
use super::value::{Items, Kind, Located, Names, Operand, Scope, Typed, Value, common_names};
use crate::host::{HostBinary, HostUnary};
use crate::lattice::Position;
use torre_grammar::ast::Arg;
use torre_grammar::diag::Diagnostic;

/// `a vector of 3`, for messages.
fn shape(kind: Kind, n: usize) -> String {
    match kind {
        Kind::Scalar => "a scalar".to_string(),
        Kind::Vector => format!("a vector of {}", count(n, "component", "components")),
        Kind::Tensor => format!("a tensor of {}", count(n, "component", "components")),
    }
}

impl Resolver<'_> {
    /// The scalars that a value is made of.
    pub fn scalars(&mut self, value: Value, place: &Place) -> Outcome<Items> {
        let mut names = None;
        let (kind, items) = match value {
            Value::Scalar(s) => (Kind::Scalar, vec![s]),
            Value::Vector(v, of) => {
                names = of;
                (Kind::Vector, v)
            }
            Value::Tensor(t) => (Kind::Tensor, t),
            Value::Axis(axis) => {
                self.frame.coordinates[axis] = true;
                let node = match self.frame.absent.contains(&axis) {
                    true => self.graph.number(0.0),
                    false => self.graph.coordinate(axis),
                };
                let position = None;
                (Kind::Scalar, vec![Typed { node, position }])
            }
            Value::Field(index, level) => {
                let Some(field) = self.frame.fields.get(index) else {
                    let d = self.error(codes::WRONG_KIND, "this is not a value", place);
                    return self.fail(d);
                };
                let kind = field.kind;
                let axes = self.frame.axes.iter().map(|(name, _)| name);
                if kind == Kind::Vector && !field.names.iter().eq(axes) {
                    names = Some(field.names.as_slice().into());
                }
                let items = field
                    .components
                    .iter()
                    .map(|&c| Typed {
                        node: self.graph.field(c, level.map(Into::into)),
                        position: Some(self.frame.components[c.index()].position),
                    })
                    .collect();
                (kind, items)
            }
            Value::Text(_) => {
                let d = self
                    .error(codes::WRONG_KIND, "the name of a file is no value", place)
                    .hint("its values are `file(\"name.npy\")` or `table(\"name.csv\", x)`");
                return self.fail(d);
            }
            Value::Poison => return Err(Reported),
        };
        Ok(Items { kind, items, names })
    }

    /// A single scalar; `user` names its use.
    pub fn one_scalar(&mut self, operand: Operand, user: &str) -> Outcome<Typed> {
        let Items { kind, items, .. } = self.scalars(operand.value, &operand.place)?;
        match (kind, items.as_slice()) {
            (Kind::Scalar, [s]) => Ok(*s),
            _ => {
                let message = format!("{user} needs a scalar");
                let mut d = self.error(codes::SHAPES_DIFFER, message, &operand.place);
                d.labels[0].text = format!("this is {}", shape(kind, items.len()));
                if kind != Kind::Scalar {
                    d = d.hint("select a component, as in `E.x`");
                }
                self.fail(d)
            }
        }
    }

    /// The common position of two operands.
    fn unify(&mut self, a: Located<'_>, b: Located<'_>) -> Outcome<Option<Position>> {
        match (a.position, b.position) {
            (None, p) | (p, None) => Ok(p),
            (Some(p), Some(q)) if p == q => Ok(Some(p)),
            (Some(p), Some(q)) => {
                let mut d = Diagnostic::error(
                    codes::POSITIONS_DIFFER,
                    format!(
                        "these values lie at different positions: {} and {}",
                        self.frame.show(p),
                        self.frame.show(q)
                    ),
                )
                .at(
                    &a.place.source,
                    a.place.span,
                    format!("at {}", self.frame.show(p)),
                )
                .at(
                    &b.place.source,
                    b.place.span,
                    format!("at {}", self.frame.show(q)),
                );
                // Media are averaged; a name is more likely to be one than a difference is.
                let is_medium =
                    |of: &Located<'_>| of.node.is_some_and(|n| !self.graph.is_dynamic(n));
                let first = match (is_medium(&a), is_medium(&b)) {
                    (true, false) => true,
                    (false, true) => false,
                    _ => is_name(a.place) && !is_name(b.place),
                };
                let (from, to, moved) = match first {
                    true => (p, q, a),
                    false => (q, p, b),
                };
                d.hint = Some(match is_medium(&moved) && !is_name(moved.place) {
                    true => self.medium_hint(from, to, moved.place),
                    false => self.move_hint(from, to, moved.place),
                });
                self.fail(d)
            }
        }
    }

    /// How an expression of coefficients at `from` gets to `to`.
    fn medium_hint(&self, from: Position, to: Position, place: &Place) -> String {
        let axes = self.frame.axes.iter().filter(|(_, a)| from[*a] != to[*a]);
        let axes: Vec<&str> = axes.map(|(name, _)| name.as_str()).collect();
        let first = "...".to_owned();
        let mean = axes
            .iter()
            .fold(first, |inner, axis| format!("avg({inner}, {axis})"));
        format!(
            "move the coefficients in `{}`: their means along {} are `{mean}`",
            place.text().unwrap_or("..."),
            axes.join(" and "),
        )
    }

    /// How a value at `from` gets to `to`.
    fn move_hint(&self, from: Position, to: Position, place: &Place) -> String {
        let text = place.text().unwrap_or("...");
        let plain = is_name(place);
        let moved: Vec<&str> = self
            .frame
            .axes
            .iter()
            .filter(|(_, a)| from[*a] != to[*a])
            .map(|(n, _)| n.as_str())
            .collect();
        let average = moved.iter().fold(text.to_string(), |inner, axis| {
            format!("avg({inner}, {axis})")
        });
        let offsets: Vec<&str> = self
            .frame
            .axes
            .iter()
            .map(|(_, a)| if from[*a] != to[*a] { "+1/2" } else { "0" })
            .collect();
        if moved.len() > 1 && !plain {
            return format!(
                "is a field at {} meant? A mean moves a value by half a cell: `avg(..., {})`",
                self.frame.show(to),
                moved[0],
            );
        }
        let shifted = if plain {
            text.to_string()
        } else {
            format!("({text})")
        };
        format!(
            "take the mean along {}: `{average}`, or the value half a cell away: `{shifted}[{}]`",
            moved.join(" and "),
            offsets.join(", ")
        )
    }

    pub fn off_target<T>(
        &mut self,
        target: &str,
        at: Position,
        found: Position,
        place: &Place,
    ) -> Outcome<T> {
        self.off_target_with(None, target, at, found, place)
    }

    /// The same with a remedy, if there is a better one than to move the value.
    pub fn off_target_with<T>(
        &mut self,
        hint: Option<String>,
        target: &str,
        at: Position,
        found: Position,
        place: &Place,
    ) -> Outcome<T> {
        let (at_text, found_text) = (self.frame.show(at), self.frame.show(found));
        let mut d = self.error(
            codes::OFF_TARGET,
            format!("`{target}` lies at {at_text}, but this value at {found_text}"),
            place,
        );
        d.labels[0].text = format!("at {found_text}");
        d.hint = Some(hint.unwrap_or_else(|| self.move_hint(found, at, place)));
        self.fail(d)
    }

    pub fn apply_unary(&mut self, op: HostUnary, a: Operand) -> Outcome<Value> {
        let Items { kind, items, names } = match op {
            HostUnary::Neg => self.scalars(a.value, &a.place)?,
            _ => {
                let user = match op {
                    HostUnary::Not => "`not`".to_string(),
                    op => format!("`{}`", name_of(op)),
                };
                let s = self.one_scalar(a, &user)?;
                Items {
                    kind: Kind::Scalar,
                    items: vec![s],
                    names: None,
                }
            }
        };
        let items = items
            .into_iter()
            .map(|s| Typed {
                node: self.graph.unary(op, s.node),
                position: s.position,
            })
            .collect();
        Ok(kind.named(items, names))
    }

    pub fn not_on_fields<T>(&mut self, name: &str, place: &Place) -> Outcome<T> {
        let mut d = self
            .error(
                codes::NOT_ON_FIELDS,
                format!("`{name}` does not work on field values"),
                place,
            )
            .hint("on field values there are + - * / ^, if, and all functions of one value, min and max");
        d.labels[0].text = "this depends on field values".to_string();
        self.fail(d)
    }

    pub fn apply_binary(
        &mut self,
        op: HostBinary,
        a: Operand,
        b: Operand,
        place: &Place,
    ) -> Outcome<Value> {
        let Items {
            kind: ka,
            items: xs,
            names: of_a,
        } = self.scalars(a.value, &a.place)?;
        let Items {
            kind: kb,
            items: ys,
            names: of_b,
        } = self.scalars(b.value, &b.place)?;
        let scalars = ka == Kind::Scalar && kb == Kind::Scalar;
        let same = ka == kb && xs.len() == ys.len();
        let fixed = |list: &[Typed]| list.iter().all(|s| !self.graph.is_dynamic(s.node));
        let fits = match op {
            HostBinary::Add | HostBinary::Sub => same,
            // The product of two vectors is that of their components if one is a coefficient, such as an anisotropic
            // medium.
            HostBinary::Mul => {
                ka == Kind::Scalar || kb == Kind::Scalar || (same && (fixed(&xs) || fixed(&ys)))
            }
            HostBinary::Div => kb == Kind::Scalar || (same && fixed(&ys)),
            _ => scalars,
        };
        if !fits {
            let sign = op.sign();
            let mut d = Diagnostic::error(
                codes::SHAPES_DIFFER,
                format!(
                    "`{sign}` does not work on {} and {}",
                    shape(ka, xs.len()),
                    shape(kb, ys.len())
                ),
            )
            .at(&a.place.source, a.place.span, shape(ka, xs.len()))
            .at(&b.place.source, b.place.span, shape(kb, ys.len()));
            if ka != kb || matches!(op, HostBinary::Mul | HostBinary::Div) {
                d = d.hint("select components, as in `E.x`");
            }
            return self.fail(d);
        }
        self.not_reordered([&of_a, &of_b], [&a.place, &b.place])?;
        let n = xs.len().max(ys.len());
        let pick = |list: &[Typed], i: usize| list.get(i).or(list.first()).copied();
        let mut items = Vec::with_capacity(n);
        for i in 0..n {
            let (Some(x), Some(y)) = (pick(&xs, i), pick(&ys, i)) else {
                return Err(Reported);
            };
            let position = self.unify(x.located(&a.place), y.located(&b.place))?;
            let dynamic = self.graph.is_dynamic(x.node) || self.graph.is_dynamic(y.node);
            if dynamic {
                self.check_dynamic(op, place)?;
            }
            items.push(Typed {
                node: self.graph.binary(op, x.node, y.node),
                position,
            });
        }
        let kind = if ka == Kind::Scalar { kb } else { ka };
        Ok(kind.named(items, common_names(of_a, of_b)))
    }

    /// Refuses components that go together in their order where their names say otherwise.
    pub fn not_reordered(&mut self, names: [&Names; 2], places: [&Place; 2]) -> Outcome<()> {
        let [Some(a), Some(b)] = names else {
            return Ok(());
        };
        if a == b || a.len() != b.len() || !a.iter().all(|name| b.contains(name)) {
            return Ok(());
        }
        let [first, second] = places;
        let d = Diagnostic::error(
            codes::SHAPES_DIFFER,
            "components go together in their order, and these have the same names in another one",
        )
        .at(&first.source, first.span, a.join(", "))
        .at(&second.source, second.span, b.join(", "))
        .hint("write the components in the order that is meant, as in `[q.f, q.e]`");
        self.fail(d)
    }

    fn check_dynamic(&mut self, op: HostBinary, place: &Place) -> Outcome<()> {
        match op {
            HostBinary::Atan2 => self.not_on_fields("atan2", place),
            _ => Ok(()),
        }
    }

    pub fn choose(
        &mut self,
        condition: Operand,
        then: Operand,
        otherwise: Operand,
        place: &Place,
    ) -> Outcome<Value> {
        let at = condition.place.clone();
        let c = self.one_scalar(condition, "a condition")?;
        let Items {
            kind: ka,
            items: xs,
            names: of_a,
        } = self.scalars(then.value, &then.place)?;
        let Items {
            kind: kb,
            items: ys,
            names: of_b,
        } = self.scalars(otherwise.value, &otherwise.place)?;
        if ka != kb || xs.len() != ys.len() {
            let mut d = self.error(
                codes::SHAPES_DIFFER,
                "both sides of an `if` must have the same shape",
                place,
            );
            d.labels[0].text = format!("{} and {}", shape(ka, xs.len()), shape(kb, ys.len()));
            return self.fail(d);
        }
        self.not_reordered([&of_a, &of_b], [&then.place, &otherwise.place])?;
        let mut items = Vec::with_capacity(xs.len());
        for (x, y) in xs.into_iter().zip(ys) {
            let sides = self.unify(x.located(&then.place), y.located(&otherwise.place))?;
            let sides = Located {
                position: sides,
                node: None,
                place: &then.place,
            };
            let position = self.unify(sides, c.located(&at))?;
            items.push(Typed {
                node: self.graph.choose(c.node, x.node, y.node),
                position,
            });
        }
        Ok(ka.named(items, common_names(of_a, of_b)))
    }

    pub fn call_built_in(
        &mut self,
        scope: &Scope,
        name: &str,
        args: &[Arg],
        place: &Place,
    ) -> Outcome<Value> {
        let operator = match name {
            "d" => Some(Operator::Staggered),
            "dc" => Some(Operator::Centred),
            "d2" => Some(Operator::Second),
            "avg" => Some(Operator::Mean),
            _ => None,
        };
        if let Some(operator) = operator {
            return self.lattice_operator(scope, name, operator, args, place);
        }
        if let Some(unary) = unary_of(name) {
            let [a] = self.positional(scope, name, ["a"], args, place)?;
            return self.apply_unary(unary, a);
        }
        match name {
            "min" | "max" => {
                if args.len() < 2 || args.iter().any(|a| a.name.is_some()) {
                    let message = format!("`{name}` takes two or more values");
                    let d = self.error(codes::ARGUMENTS, message, place);
                    return self.fail(d);
                }
                let op = match name {
                    "min" => HostBinary::Min,
                    _ => HostBinary::Max,
                };
                let values: Vec<_> = args.iter().map(|a| self.operand(scope, &a.value)).collect();
                let mut result: Option<Operand> = None;
                for value in values {
                    let value = value?;
                    result = Some(match result {
                        None => value,
                        Some(left) => Operand {
                            value: self.apply_binary(op, left, value, place)?,
                            place: place.clone(),
                        },
                    });
                }
                result.map(|r| r.value).ok_or(Reported)
            }
            "atan2" => {
                let [a, b] = self.positional(scope, name, ["y", "x"], args, place)?;
                self.apply_binary(HostBinary::Atan2, a, b, place)
            }
            "sym" => self.tensor(scope, args, place),
            "file" => self.call_file(scope, args, place),
            "table" => self.call_table(scope, args, place),
            _ => Err(Reported),
        }
    }

    /// Arguments that are all needed.
    fn positional<const N: usize>(
        &mut self,
        scope: &Scope,
        callee: &str,
        params: [&str; N],
        args: &[Arg],
        place: &Place,
    ) -> Outcome<[Operand; N]> {
        let slots = self.arguments(scope, callee, &params, args, place)?;
        let mut operands = Vec::new();
        for (slot, param) in slots.into_iter().zip(params) {
            let Some(arg) = slot else {
                return self.missing_argument(callee, param, place);
            };
            operands.push(self.operand(scope, &arg.value));
        }
        let operands = operands.into_iter().collect::<Outcome<Vec<_>>>()?;
        operands.try_into().map_err(|_| Reported)
    }

    pub fn missing_argument<T>(&mut self, callee: &str, param: &str, place: &Place) -> Outcome<T> {
        let message = format!("`{callee}` needs a value for `{param}`");
        let d = self.error(codes::ARGUMENTS, message, place);
        self.fail(d)
    }

    fn tensor(&mut self, scope: &Scope, args: &[Arg], place: &Place) -> Outcome<Value> {
        let names = self.frame.tensor_names();
        let params: Vec<&str> = names.iter().map(String::as_str).collect();
        let slots = self.arguments(scope, "sym", &params, args, place)?;
        let mut items = Vec::new();
        for (slot, param) in slots.into_iter().zip(params) {
            let Some(arg) = slot else {
                return self.missing_argument("sym", param, place);
            };
            items.push(&arg.value);
        }
        let mut list = Vec::new();
        for item in self.items(scope, items.into_iter()) {
            let item = item?;
            list.push(self.component_scalar(item)?);
        }
        Ok(Value::Tensor(list))
    }
}

/// Whether a place has the name of a field, coefficient or component.
fn is_name(place: &Place) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    place.text().is_some_and(|text| text.chars().all(ends))
}
