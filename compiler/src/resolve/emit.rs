//! From the graph to the operations of one update.
//!
//! An update that is linear in the values that it reads becomes one chain of fused multiply-adds in the normal form of
//! [`super::linearize`]; anything else is computed as written, each difference as a chain over its taps.

mod amend;
mod ops;
mod sum;

use super::graph::{Graph, LevelKey, Node, NodeId, Shift, StateKey, TREE};
use super::linearize::{Group, Linearizer, NotLinear, Tap, scaled_factor};
use crate::elementary::{self, Sequence};
use crate::host::{HostBinary, HostUnary, is_product};
use crate::lattice::{PerAxis, Position};
use crate::scheme::{
    Body, Cmp, Coef, CoefId, Component, ComponentId, Op, Precision, Read, StateId, Value,
};
pub use amend::Weight;
pub use ops::pruned_to;
use ops::{OpKey, key, pruned};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Operations of one update.
const OPS: usize = 20_000;
/// Coefficient arrays of a scheme.
const COEFS: usize = 1_000;

/// Why an update cannot be written down.
#[derive(Clone, Debug)]
pub enum Refused {
    TooLarge,
    /// A weight or constant is not finite in the scheme's precision.
    NotFinite(f64),
    /// A value is read further away than the domain is wide.
    TooFar(PerAxis<i64>),
}

/// The coefficient arrays of a scheme; equal ones are one.
#[derive(Debug, Default)]
pub struct Coefs {
    pub list: Vec<Coef>,
    /// A weight or constant that is 0 in the scheme's precision and not in double precision.
    pub vanished: Option<f64>,
    known: HashMap<(NodeId, Position), CoefId>,
    size: u32,
}

impl Coefs {
    pub fn id(
        &mut self,
        graph: &mut Graph,
        node: NodeId,
        position: Position,
    ) -> Result<CoefId, Refused> {
        if let Some(&id) = self.known.get(&(node, position)) {
            return Ok(id);
        }
        self.size = self.size.saturating_add(graph.facts(node).size);
        if self.list.len() >= COEFS || self.size > 10 * TREE {
            return Err(Refused::TooLarge);
        }
        let value = graph.host(node, position).ok_or(Refused::TooLarge)?;
        let id = CoefId(self.list.len() as u32);
        self.list.push(Coef {
            name: graph.describe(node),
            position,
            value,
            only_axis: None,
        });
        self.known.insert((node, position), id);
        Ok(id)
    }
}

/// Writes the body of one update.
pub struct Emitter<'a> {
    pub graph: &'a mut Graph,
    pub components: &'a [Component],
    pub coefs: &'a mut Coefs,
    pub precision: Precision,
    pub target: ComponentId,
    /// The age of `@prev` of each component.
    pub ages: &'a [u8],
    pub cells: PerAxis<i64>,
    /// Where values lie, if not at the target's places.
    place: Option<Position>,
    ops: Vec<Op>,
    known: HashMap<OpKey, Value>,
    values: HashMap<(NodeId, Shift), Value>,
    /// The states of an amendment; empty for the body of an update.
    pub states: BTreeMap<StateKey, StateId>,
}

impl<'a> Emitter<'a> {
    pub fn new(
        graph: &'a mut Graph,
        components: &'a [Component],
        coefs: &'a mut Coefs,
        precision: Precision,
        target: ComponentId,
        ages: &'a [u8],
        cells: PerAxis<i64>,
    ) -> Self {
        Self {
            graph,
            components,
            coefs,
            precision,
            target,
            ages,
            cells,
            place: None,
            ops: Vec::new(),
            known: HashMap::new(),
            values: HashMap::new(),
            states: BTreeMap::new(),
        }
    }

    /// The body that computes `node`.
    pub fn body(mut self, node: NodeId) -> Result<Body, Refused> {
        let result = self.value(node)?;
        Ok(pruned(&self.ops, result))
    }

    /// The body that computes `node` as it is written, at a position where no target need be.
    pub fn body_at(mut self, position: Position, node: NodeId) -> Result<Body, Refused> {
        self.place = Some(position);
        let result = self.as_written(node, Shift::default())?;
        Ok(pruned(&self.ops, result))
    }

    /// The value of `node`. Where the place alone decides between two, each has its own normal form.
    fn value(&mut self, node: NodeId) -> Result<Value, Refused> {
        if let Node::If(condition, a, b) = self.graph.node(node)
            && self.graph.is_dynamic(node)
            && !self.graph.is_dynamic(condition)
        {
            let then = self.value(a)?;
            let otherwise = self.value(b)?;
            let condition = self.graph.truth(condition);
            return self.select(condition, Shift::default(), then, otherwise);
        }
        let origin = self.origin();
        let linear = Linearizer::new(self.graph, origin).linear(node, Shift::default());
        match linear {
            Ok(linear) => {
                let linear = Rc::try_unwrap(linear).unwrap_or_else(|shared| (*shared).clone());
                self.chain(linear.groups, linear.constant)
            }
            Err(NotLinear::Nonlinear) => self.as_written(node, Shift::default()),
            Err(NotLinear::TooLarge) => Err(Refused::TooLarge),
        }
    }

    fn origin(&self) -> Position {
        let of_target = || self.components[self.target.index()].position;
        self.place.unwrap_or_else(of_target)
    }

    fn push(&mut self, op: Op) -> Result<Value, Refused> {
        let key = key(&op);
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        if self.ops.len() >= OPS {
            return Err(Refused::TooLarge);
        }
        let value = Value(self.ops.len() as u32);
        self.ops.push(op);
        self.known.insert(key, value);
        Ok(value)
    }

    fn constant(&mut self, n: f64) -> Result<Value, Refused> {
        let rounded = self.precision.round(n);
        if !rounded.is_finite() {
            return Err(Refused::NotFinite(n));
        }
        if self.precision.is_tiny(n) {
            self.coefs.vanished = Some(n);
        }
        self.push(Op::Const(rounded))
    }

    /// A static node: a constant if it is the same everywhere.
    fn coef(&mut self, node: NodeId) -> Result<Value, Refused> {
        if let Some(n) = self.graph.as_number(node) {
            return self.constant(n);
        }
        let position = self.origin();
        let id = self.coefs.id(self.graph, node, position)?;
        self.push(Op::Coef(id))
    }

    fn own(&mut self) -> Result<Value, Refused> {
        let tap = Tap {
            at: self.origin(),
            component: self.target,
            level: None,
        };
        self.read(tap)
    }

    fn read(&mut self, tap: Tap) -> Result<Value, Refused> {
        let position = self.components[tap.component.index()].position;
        let cells = PerAxis::from_fn(|a| (tap.at[a].0 - position[a].0).div_euclid(2));
        if cells.iter().any(|(a, n)| n.abs() > self.cells[a]) {
            return Err(Refused::TooFar(cells));
        }
        let offset = cells.map(|n| i32::try_from(n).ok());
        let [Some(x), Some(y), Some(z)] = offset.0 else {
            return Err(Refused::TooFar(cells));
        };
        let age = match tap.level {
            None | Some(LevelKey::Next) => 0,
            Some(LevelKey::Prev) => self.ages[tap.component.index()],
        };
        self.push(Op::Read(Read {
            component: tap.component,
            offset: PerAxis([x, y, z]),
            age,
        }))
    }

    /// The normal form: the own old value, uniform taps, then each group with a coefficient, then the terms that depend
    /// on the place alone.
    fn chain(
        &mut self,
        mut groups: Vec<Group>,
        constant: Option<NodeId>,
    ) -> Result<Value, Refused> {
        let own = Tap {
            at: self.origin(),
            component: self.target,
            level: None,
        };
        let mut acc = None;
        let mut varying: Option<NodeId> = None;
        let mut uniform = None;
        for group in &mut groups {
            // A factor that is stored for other taps serves the own value too: less memory to read than a factor more.
            if !group.factor.is_one() && group.taps.len() > 1 {
                continue;
            }
            let Some(weight) = group.taps.remove(&own) else {
                continue;
            };
            let weight = weight.value();
            if group.factor.is_one() {
                uniform = Some(weight);
                continue;
            }
            let mut part = group.factor.node(self.graph);
            if weight != 1.0 {
                let w = self.graph.number(weight);
                part = self.graph.binary(HostBinary::Mul, w, part);
            }
            varying = Some(match varying {
                None => part,
                Some(old) => self.graph.binary(HostBinary::Add, old, part),
            });
        }
        match (varying, uniform) {
            (None, None) => {}
            (None, Some(weight)) => {
                let old = self.own()?;
                acc = Some(self.weighted(weight, old)?);
            }
            (Some(part), uniform) => {
                let mut total = part;
                if let Some(weight) = uniform {
                    let w = self.graph.number(weight);
                    total = self.graph.binary(HostBinary::Add, w, part);
                }
                let factor = self.coef(total)?;
                let old = self.own()?;
                acc = Some(self.push(Op::Mul(factor, old))?);
            }
        }
        if let Some(group) = groups.iter().find(|g| g.factor.is_one()) {
            acc = self.sum(acc, group.taps.iter())?;
        }
        for group in groups.iter().filter(|g| !g.factor.is_one()) {
            let Some(sum) = self.sum(None, group.taps.iter())? else {
                continue;
            };
            let node = group.factor.node(self.graph);
            let factor = self.coef(node)?;
            acc = Some(match acc {
                None => self.push(Op::Mul(factor, sum))?,
                Some(acc) => self.push(Op::Fma(factor, sum, acc))?,
            });
        }
        let constant = constant.filter(|&c| self.graph.as_number(c) != Some(0.0));
        match (acc, constant) {
            (Some(acc), None) => Ok(acc),
            (Some(acc), Some(c)) => {
                let c = self.coef(c)?;
                self.push(Op::Add(acc, c))
            }
            (None, Some(c)) => self.coef(c),
            (None, None) => self.constant(0.0),
        }
    }

    /// The value of a node at a point `by` half cells further, in the order as written.
    fn as_written(&mut self, id: NodeId, by: Shift) -> Result<Value, Refused> {
        // Long sums nest to the left: their parts are taken from the bottom up, without recursion.
        let mut spine = vec![id];
        let mut top = id;
        while let Node::Binary(op, left, _) = self.graph.node(top)
            && !matches!(op.0, HostBinary::And | HostBinary::Or)
            && self.graph.is_dynamic(left)
            && !self.values.contains_key(&(left, by))
        {
            spine.push(left);
            top = left;
        }
        let mut value = Value(0);
        for id in spine.into_iter().rev() {
            value = self.as_written_once(id, by)?;
        }
        Ok(value)
    }

    fn as_written_once(&mut self, id: NodeId, by: Shift) -> Result<Value, Refused> {
        if let Some(&known) = self.values.get(&(id, by)) {
            return Ok(known);
        }
        if self.values.len() > OPS || self.graph.is_full() {
            return Err(Refused::TooLarge);
        }
        let value = self.as_written_new(id, by)?;
        self.values.insert((id, by), value);
        self.graph.spend(4);
        Ok(value)
    }

    fn as_written_new(&mut self, id: NodeId, by: Shift) -> Result<Value, Refused> {
        if !self.graph.is_dynamic(id) {
            let moved = self.graph.shift(id, by);
            return self.coef(moved);
        }
        match self.graph.node(id) {
            Node::Field { component, level } => {
                let origin = self.origin();
                self.read(Tap {
                    at: PerAxis::from_fn(|a| origin[a] + by[a]),
                    component,
                    level,
                })
            }
            Node::Shift(a, further) => self.as_written(a, Shift::from_fn(|x| by[x] + further[x])),
            Node::Stencil(a, kernel) => {
                let kernel = self.graph.kernel(kernel);
                let mut acc: Option<Value> = None;
                for (offset, c) in &kernel.taps {
                    let weight = c.as_f64() / kernel.divisor;
                    if weight == 0.0 {
                        continue;
                    }
                    let mut at = by;
                    at[kernel.axis] = at[kernel.axis] + *offset;
                    let value = self.as_written(a, at)?;
                    acc = Some(match acc {
                        None => self.weighted(weight, value)?,
                        Some(acc) => {
                            let w = self.constant(weight)?;
                            self.push(Op::Fma(w, value, acc))?
                        }
                    });
                }
                match acc {
                    Some(acc) => Ok(acc),
                    None => self.constant(0.0),
                }
            }
            Node::Unary(op, a) => match op.0 {
                HostUnary::Not => self.truth(id, by),
                op => {
                    let a = self.as_written(a, by)?;
                    match op {
                        HostUnary::Neg => self.push(Op::Neg(a)),
                        HostUnary::Abs => self.push(Op::Abs(a)),
                        HostUnary::Sqrt => self.push(Op::Sqrt(a)),
                        op => match elementary::function(op, self.precision) {
                            Some(function) => self.sequence(&function, &[a]),
                            // The truth is written above.
                            None => self.constant(f64::NAN),
                        },
                    }
                }
            },
            Node::Binary(op, a, b) => self.binary(id, op.0, a, b, by),
            Node::If(c, a, b) => {
                let then = self.as_written(a, by)?;
                let otherwise = self.as_written(b, by)?;
                self.select(c, by, then, otherwise)
            }
            // Static nodes are coefficients.
            Node::Next(_, a) => self.as_written(a, by),
            Node::State(key) => match self.states.get(&key).copied() {
                Some(state) if by == Shift::default() => self.push(Op::State(state)),
                _ => self.constant(f64::NAN),
            },
            // Calls are replaced before.
            Node::Number(_)
            | Node::Coordinate(..)
            | Node::Time
            | Node::File(..)
            | Node::Zoned(..)
            | Node::Table(..) => self.constant(f64::NAN),
        }
    }

    fn binary(
        &mut self,
        id: NodeId,
        op: HostBinary,
        a: NodeId,
        b: NodeId,
        by: Shift,
    ) -> Result<Value, Refused> {
        use HostBinary as H;
        if matches!(
            op,
            H::Lt | H::Le | H::Gt | H::Ge | H::Eq | H::Ne | H::And | H::Or
        ) {
            return self.truth(id, by);
        }
        if op == H::Pow {
            let base = self.as_written(a, by)?;
            if let Some(n) = self.graph.as_number(b).filter(|n| is_product(*n)) {
                return self.power(base, n);
            }
            let exponent = self.as_written(b, by)?;
            let power = elementary::power(self.precision);
            return self.sequence(&power, &[base, exponent]);
        }
        // In amendments a product and a sum are one operation, rounded once.
        if op == H::Add && !self.states.is_empty() {
            for (product, other) in [(a, b), (b, a)] {
                if let Node::Binary(inner, p, q) = self.graph.node(product)
                    && inner.0 == H::Mul
                    && self.graph.is_dynamic(product)
                {
                    let p = self.as_written(p, by)?;
                    let q = self.as_written(q, by)?;
                    let other = self.as_written(other, by)?;
                    return self.push(Op::Fma(p, q, other));
                }
            }
        }
        let x = self.as_written(a, by)?;
        let y = self.as_written(b, by)?;
        match op {
            H::Add => self.push(Op::Add(x, y)),
            H::Sub => self.push(Op::Sub(x, y)),
            H::Mul => self.push(Op::Mul(x, y)),
            H::Div => self.push(Op::Div(x, y)),
            H::Max => self.push(Op::Select {
                cmp: Cmp::Lt,
                a: y,
                b: x,
                then: x,
                otherwise: y,
            }),
            // The minimum; other functions of two values are refused on field values.
            _ => self.push(Op::Select {
                cmp: Cmp::Lt,
                a: x,
                b: y,
                then: x,
                otherwise: y,
            }),
        }
    }

    /// A whole power by squaring, in the order in which the host takes it.
    fn power(&mut self, base: Value, n: f64) -> Result<Value, Refused> {
        let mut rest = n.abs() as u32;
        let mut square = base;
        let mut result = None;
        while rest > 0 {
            if rest & 1 == 1 {
                result = Some(match result {
                    None => square,
                    Some(r) => self.push(Op::Mul(r, square))?,
                });
            }
            rest >>= 1;
            if rest > 0 {
                square = self.push(Op::Mul(square, square))?;
            }
        }
        let one = |e: &mut Self| e.constant(1.0);
        match result {
            None => one(self),
            Some(r) if n < 0.0 => {
                let one = one(self)?;
                self.push(Op::Div(one, r))
            }
            Some(r) => Ok(r),
        }
    }

    /// The operations of a function with these arguments.
    fn sequence(&mut self, function: &Sequence, arguments: &[Value]) -> Result<Value, Refused> {
        let mut values = arguments.to_vec();
        for op in &function.ops {
            let value = self.push(op.map(|v| values[v.index()]))?;
            values.push(value);
        }
        Ok(values[function.result.index()])
    }

    /// A condition as a number: 1 or 0.
    fn truth(&mut self, id: NodeId, by: Shift) -> Result<Value, Refused> {
        let one = self.constant(1.0)?;
        let zero = self.constant(0.0)?;
        self.select(id, by, one, zero)
    }

    /// `then` where the condition holds, else `otherwise`.
    fn select(
        &mut self,
        mut condition: NodeId,
        by: Shift,
        mut then: Value,
        mut otherwise: Value,
    ) -> Result<Value, Refused> {
        use HostBinary as H;
        while self.graph.is_dynamic(condition) {
            let (op, a, b) = match self.graph.node(condition) {
                Node::Unary(op, a) if op.0 == HostUnary::Not => {
                    std::mem::swap(&mut then, &mut otherwise);
                    condition = a;
                    continue;
                }
                Node::Binary(op, a, b) => (op.0, a, b),
                _ => break,
            };
            let (cmp, a, b) = match op {
                H::And => {
                    then = self.select(b, by, then, otherwise)?;
                    condition = a;
                    continue;
                }
                H::Or => {
                    otherwise = self.select(b, by, then, otherwise)?;
                    condition = a;
                    continue;
                }
                H::Lt => (Cmp::Lt, a, b),
                H::Le => (Cmp::Le, a, b),
                H::Gt => (Cmp::Lt, b, a),
                H::Ge => (Cmp::Le, b, a),
                H::Eq => (Cmp::Eq, a, b),
                H::Ne => (Cmp::Ne, a, b),
                _ => break,
            };
            let a = self.as_written(a, by)?;
            let b = self.as_written(b, by)?;
            return self.push(Op::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            });
        }
        let value = self.as_written(condition, by)?;
        let zero = self.constant(0.0)?;
        self.push(Op::Select {
            cmp: Cmp::Ne,
            a: value,
            b: zero,
            then,
            otherwise,
        })
    }
}

#[cfg(test)]
mod tests;
