//! Differences and means along an axis.

use super::central;
use super::codes;
use super::fraction::{Fraction, small_integer};
use super::graph::{Coefficient, Graph, Kernel, LevelKey, Node, NodeId, Shift, StateKey};
use super::layers::LayeredDifference;
use super::report::{Outcome, Place, Reported};
use super::resolver::Resolver;
use super::value::{Items, Operand, Scope, Typed, Value};
use crate::host::{HostBinary, HostUnary};
use crate::lattice::{Axis, HalfIndex, Position};
use torre_grammar::ast::Arg;
use torre_grammar::diag::Diagnostic;

/// The highest order of a difference.
const HIGHEST_ORDER: i64 = 32;
/// The longest list of coefficients.
const COEFFICIENTS: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Staggered,
    Centred,
    Second,
    Mean,
}

impl Resolver<'_> {
    /// Warns of a difference of values at raw offsets along an axis with layers: these change the built-in difference
    /// alone.
    pub fn warn_of_raw_difference(&mut self, a: &Value, b: &Value, place: &Place) {
        let (Value::Scalar(a), Value::Scalar(b), false) = (a, b, self.zoned.plain) else {
            return;
        };
        let [(a, at), (b, other)] = [a, b].map(|value| self.graph.unscaled(value.node));
        if a != b || !self.graph.is_dynamic(a) {
            return;
        }
        let axes = self.frame.present();
        let along = axes.into_iter().find(|(_, axis)| {
            at[*axis] != other[*axis] && self.frame.layers[*axis].iter().any(Option::is_some)
        });
        let Some((name, axis)) = along else { return };
        let message = format!(
            "the layers along `{name}` do not change this difference, so that waves come back from their sides"
        );
        let by = HalfIndex(at[axis].0 - other[axis].0);
        let d = Diagnostic::warning(codes::RAW_DIFFERENCE, message)
            .at(&place.source, place.span, format!("raw offsets with a distance of {by} cells"))
            .hint(format!(
                "in layers `d(f, {name}, order)` is another difference: write this one with `d`, also with \
                 coefficients of your own, as in `d(f, {name}, [1])`; `allow {}` silences this",
                codes::RAW_DIFFERENCE.0
            ));
        self.report.push(d);
    }

    /// The remedy for a difference of values a whole cell from each other, where the one between them is meant.
    pub fn difference_hint(&self, value: NodeId, from: Position, to: Position) -> Option<String> {
        let (value, _) = self.graph.unscaled(value);
        let Node::Binary(op, a, b) = self.graph.node(value) else {
            return None;
        };
        let [(a, at), (b, other)] = [a, b].map(|side| self.graph.unscaled(side));
        let Node::Field { component, level } = self.graph.node(a) else {
            return None;
        };
        let level = match level {
            None => "",
            Some(LevelKey::Prev) => "@prev",
            Some(LevelKey::Next) => "@next",
        };
        let axes = self.frame.present();
        let mut moved = axes.iter().filter(|(_, axis)| from[*axis] != to[*axis]);
        let (Some((name, along)), None) = (moved.next(), moved.next()) else {
            return None;
        };
        let by = Shift::from_fn(|axis| HalfIndex(at[axis].0 - other[axis].0));
        let whole_cell = Shift::from_fn(|axis| HalfIndex(if axis == *along { 2 } else { 0 }));
        if op.0 != HostBinary::Sub || a != b || by.map(|h| HalfIndex(h.0.abs())) != whole_cell {
            return None;
        }
        let name_of_field = &self.frame.components[component.index()].name;
        let field = format!("{name_of_field}{level}");
        let list = |half: &str| {
            let all = axes.iter();
            let all = all.map(|(_, axis)| if axis == along { half } else { "0" });
            all.collect::<Vec<_>>().join(", ")
        };
        Some(format!(
            "the difference between two cells is, but for its sign, `d({field}, {name})`, which is divided by the cell \
             size, or `{field}[{}] - {field}[{}]`",
            list("+1/2"),
            list("-1/2")
        ))
    }

    pub fn lattice_operator(
        &mut self,
        scope: &Scope,
        name: &str,
        operator: Operator,
        args: &[Arg],
        place: &Place,
    ) -> Outcome<Value> {
        let slots = self.arguments(scope, name, &["f", "a", "order"], args, place)?;
        let [f, axis, order] = slots.as_slice() else {
            return Err(Reported);
        };
        let Some(f) = f else {
            return self.missing_argument(name, "f", place);
        };
        let Some(axis_arg) = axis else {
            return self.missing_argument(name, "a", place);
        };
        let f = self.operand(scope, &f.value);
        let axis = self.operand(scope, &axis_arg.value);
        let order = order.map(|o| self.operand(scope, &o.value)).transpose();
        let (f, axis, order) = (f?, axis?, order?);
        let axis = match axis.value {
            Value::Axis(axis) => axis,
            _ => {
                let names: Vec<&str> = self.frame.axes.iter().map(|(n, _)| n.as_str()).collect();
                let mut d = self.error(
                    codes::NOT_AN_AXIS,
                    format!("the second argument of `{name}` is an axis"),
                    &axis.place,
                );
                if !names.is_empty() {
                    d = d.hint(format!("the axes are {}", names.join(", ")));
                }
                return self.fail(d);
            }
        };
        let of_order = order.as_ref().map(|o| o.value.clone());
        let kernel = self.kernel(name, operator, axis, order)?;
        let Items { kind, items, names } = self.scalars(f.value, &f.place)?;
        if self.frame.absent.contains(&axis) {
            let items = self.without_extent(operator, &kernel, items);
            return Ok(kind.named(items, names));
        }
        let moves = matches!(operator, Operator::Staggered | Operator::Mean);
        let sources = items.clone();
        let items: Vec<Typed> = items
            .into_iter()
            .map(|s| Typed {
                node: self.graph.stencil(s.node, kernel.clone()),
                position: s.position.map(|mut p| {
                    if moves {
                        p[axis] = HalfIndex(1 - p[axis].0);
                    }
                    p
                }),
            })
            .collect();
        if self.zoned.plain || !self.frame.zones.iter().any(|z| z.is_layer_of(axis)) {
            return Ok(kind.named(items, names));
        }
        // Waves are in field values alone.
        let carries_waves = items.iter().any(|item| self.graph.is_dynamic(item.node));
        match operator {
            Operator::Mean => return Ok(kind.named(items, names)),
            _ if !carries_waves => return Ok(kind.named(items, names)),
            Operator::Centred | Operator::Second => {
                return self.refuse_in_layers(name, axis, place);
            }
            Operator::Staggered => {}
        }
        let order = match of_order {
            Some(order) => order,
            None => self.scalar(2.0),
        };
        let mut layered = Vec::new();
        for (of, plain) in sources.into_iter().zip(items) {
            let difference = LayeredDifference {
                value: Value::Scalar(of),
                order: order.clone(),
                place,
            };
            layered.push(self.layered(axis, plain, &difference)?);
        }
        Ok(kind.named(layered, names))
    }

    /// A difference that is as the layers at the sides of its axis say, in them.
    fn layered(
        &mut self,
        axis: Axis,
        plain: Typed,
        difference: &LayeredDifference<'_>,
    ) -> Outcome<Typed> {
        if !self.graph.is_dynamic(plain.node) {
            return Ok(plain);
        }
        self.frame.layered[axis] = true;
        let mut node = plain.node;
        for zone in 0..self.frame.zones.len() {
            let Some((of, sides)) = self.frame.zones[zone].layer.clone() else {
                continue;
            };
            let layer = sides.iter().flatten().next();
            let Some(layer) = layer.filter(|_| of == axis) else {
                continue;
            };
            let key = (zone, plain.node);
            if let Some(known) = self.zoned.known.get(&key) {
                node = *known;
                continue;
            }
            let first = self.zoned.states.len();
            let inside = self.inside_layer(zone, layer, difference)?;
            let Items { items, .. } = self.scalars(inside, difference.place)?;
            let [inside] = items.as_slice() else {
                return Err(Reported);
            };
            self.not_timed(inside.node, "the value of a layer", difference.place)?;
            if let (Some(found), Some(at)) = (inside.position, plain.position)
                && found != at
            {
                let [at, found] = [at, found].map(|p| self.frame.show(p));
                let message =
                    format!("the value of this layer lies at {found}, and the difference at {at}");
                let d = self.error(codes::POSITIONS_DIFFER, message, difference.place);
                return self.fail(d);
            }
            let states = (first..self.zoned.states.len()).map(|i| StateKey(i as u32));
            let states: Vec<StateKey> = states.collect();
            for key in &states {
                self.given_next(*key)?;
            }
            node = self.zoned_node(zone, inside.node, node, states, difference.place);
            self.zoned.known.insert(key, node);
        }
        Ok(Typed { node, ..plain })
    }

    /// Along an axis on which nothing depends differences are 0, and means are the values, times the sum of the
    /// coefficients. A difference of next values is a sum of no terms, so that it still decides the order of
    /// statements: that order is the same for all numbers of extents.
    fn without_extent(
        &mut self,
        operator: Operator,
        kernel: &Kernel,
        items: Vec<Typed>,
    ) -> Vec<Typed> {
        let sum = match operator {
            Operator::Mean => kernel.taps.iter().map(|(_, c)| c.as_f64()).sum(),
            _ => 0.0,
        };
        if sum == 1.0 {
            return items;
        }
        let factor = self.graph.number(sum);
        let nothing = Kernel {
            axis: kernel.axis,
            taps: Vec::new(),
            divisor: 1.0,
        };
        let mut times = |s: Typed| {
            let node = match operator {
                Operator::Mean => self.graph.binary(HostBinary::Mul, factor, s.node),
                _ if self.reads_next(s.node) => self.graph.stencil(s.node, nothing.clone()),
                _ => factor,
            };
            Typed { node, ..s }
        };
        items.into_iter().map(&mut times).collect()
    }

    fn kernel(
        &mut self,
        name: &str,
        operator: Operator,
        axis: Axis,
        order: Option<Operand>,
    ) -> Outcome<Kernel> {
        let coefficients: Vec<Coefficient> = match order {
            None => self.exact(name, operator, 2, None)?,
            Some(operand) => match &operand.value {
                Value::Vector(list, _) => {
                    let list = list.clone();
                    self.own_coefficients(name, operator, &list, &operand.place)?
                }
                Value::Scalar(s) if self.graph.as_number(s.node).is_some() => {
                    let n = self.graph.as_number(s.node).unwrap_or(f64::NAN);
                    let even = n == n.trunc() && (n / 2.0) == (n / 2.0).trunc();
                    if !even || n < 2.0 || n > HIGHEST_ORDER as f64 {
                        let d = self
                            .error(
                                codes::ORDER,
                                format!("there is no difference of order {n}"),
                                &operand.place,
                            )
                            .hint(format!(
                                "the order is an even number from 2 to {HIGHEST_ORDER}"
                            ));
                        return self.fail(d);
                    }
                    self.exact(name, operator, n as u32, Some(&operand.place))?
                }
                Value::Poison => return Err(Reported),
                _ => {
                    let d = self.error(
                        codes::ORDER,
                        format!("`{name}` takes an order or a list of coefficients"),
                        &operand.place,
                    );
                    return self.fail(d);
                }
            },
        };
        let h = self.graph.spacing[axis];
        if operator != Operator::Mean {
            self.frame.differences[axis] = true;
        }
        // Distances in half cells, sign of the lower side, and the divisor of the sum.
        let (first, step, odd, divisor) = match operator {
            Operator::Staggered => (1, 2, true, h),
            Operator::Centred => (2, 2, true, h),
            Operator::Second => (0, 2, false, h * h),
            Operator::Mean => (1, 2, false, 1.0),
        };
        let mut taps = Vec::new();
        for (k, &c) in coefficients.iter().enumerate() {
            let distance = first + step * k as i64;
            let below = match (odd, c) {
                (false, c) => Some(c),
                (true, Coefficient::Exact(r)) => r.neg().map(Coefficient::Exact),
                (true, Coefficient::Real(r)) => Some(Coefficient::Real(-r)),
            };
            let Some(below) = below else {
                return Err(Reported);
            };
            taps.push((HalfIndex(distance), c));
            if distance != 0 {
                taps.push((HalfIndex(-distance), below));
            }
        }
        taps.sort_by_key(|(offset, _)| *offset);
        Ok(Kernel {
            axis,
            taps,
            divisor,
        })
    }

    fn exact(
        &mut self,
        name: &str,
        operator: Operator,
        order: u32,
        place: Option<&Place>,
    ) -> Outcome<Vec<Coefficient>> {
        let list = match operator {
            Operator::Staggered => central::staggered_first(order),
            Operator::Centred => central::centred_first(order),
            Operator::Second => central::centred_second(order),
            Operator::Mean => central::staggered_mean(order),
        };
        match list {
            Some(list) => Ok(list.into_iter().map(Coefficient::Exact).collect()),
            None => {
                let message = format!("`{name}` is not available at order {order}");
                let mut d = Diagnostic::error(codes::ORDER, message);
                if let Some(p) = place {
                    d = d.at(&p.source, p.span, "here");
                }
                self.fail(d)
            }
        }
    }

    fn own_coefficients(
        &mut self,
        name: &str,
        operator: Operator,
        list: &[Typed],
        place: &Place,
    ) -> Outcome<Vec<Coefficient>> {
        if operator == Operator::Second {
            let d = self.error(
                codes::ORDER,
                "`d2` takes an order, not a list of coefficients",
                place,
            );
            return self.fail(d);
        }
        if list.len() > COEFFICIENTS {
            let message = format!("`{name}` takes up to {COEFFICIENTS} coefficients");
            let d = self.error(codes::ORDER, message, place);
            return self.fail(d);
        }
        let numbers: Option<Vec<f64>> = list.iter().map(|s| self.graph.as_number(s.node)).collect();
        let Some(numbers) = numbers else {
            let d = self.error(
                codes::NOT_A_NUMBER,
                "the coefficients of a difference are numbers",
                place,
            );
            return self.fail(d);
        };
        Ok(numbers
            .into_iter()
            .map(|n| match small_integer(n) {
                Some(i) => Coefficient::Exact(Fraction::integer(i)),
                None => Coefficient::Real(n),
            })
            .collect())
    }
}

impl Graph {
    /// The value of which a multiple is taken at an offset, without factors that no field value is in; and the offset.
    fn unscaled(&self, mut a: NodeId) -> (NodeId, Shift) {
        let mut by = Shift::default();
        loop {
            a = match self.node(a) {
                Node::Shift(of, own) => {
                    by = Shift::from_fn(|axis| by[axis] + own[axis]);
                    of
                }
                Node::Unary(op, of) if op.0 == HostUnary::Neg => of,
                Node::Binary(op, x, y) if op.0 == HostBinary::Mul && !self.is_dynamic(x) => y,
                Node::Binary(op, x, y)
                    if matches!(op.0, HostBinary::Mul | HostBinary::Div) && !self.is_dynamic(y) =>
                {
                    x
                }
                _ => return (a, by),
            };
        }
    }
}
