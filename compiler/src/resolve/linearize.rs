//! The normal form of updates that are linear in the values that they read.
//!
//! Before: `E + dt / eps * (d(H, x) + ...)`. After: groups of taps, one per factor that varies over the grid (here
//! `1 / eps`), each tap with a weight in which all numbers are folded (`dt / h` times the exact coefficient of the
//! difference).

use super::fraction::{Fraction, small_integer};
use super::graph::{Coefficient, Graph, KernelId, LevelKey, Node, NodeId, Shift};
use crate::host::{HostBinary, HostUnary};
use crate::lattice::{HalfIndex, PerAxis, Position};
use crate::scheme::ComponentId;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Taps of all intermediate forms of one update.
const WORK: usize = 300_000;
/// Taps of an update.
const TAPS: usize = 4_000;
/// Different scales in one weight before they are summed in doubles.
const SCALES: usize = 8;
/// Factors in a product before it is left as it is.
const FACTORS: usize = 16;

/// A number `num / den * exact`. The quotient is kept apart so that it is rounded once.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    num: f64,
    den: f64,
    exact: Fraction,
}

impl Scale {
    const ONE: Scale = Scale {
        num: 1.0,
        den: 1.0,
        exact: Fraction::ONE,
    };

    fn number(n: f64) -> Self {
        match small_integer(n) {
            Some(i) => Self {
                exact: Fraction::integer(i),
                ..Self::ONE
            },
            None => Self {
                num: n,
                ..Self::ONE
            },
        }
    }

    fn inverse_of(n: f64) -> Self {
        let exact = small_integer(n).and_then(|i| Fraction::new(1, i128::from(i)));
        match exact {
            Some(exact) => Self { exact, ..Self::ONE },
            None => Self {
                den: n,
                ..Self::ONE
            },
        }
    }

    fn mul(self, other: Self) -> Self {
        let (num, den) = (self.num * other.num, self.den * other.den);
        match self.exact.mul(other.exact) {
            Some(exact) => Self { num, den, exact },
            None => Self {
                num: num * self.exact.as_f64() * other.exact.as_f64(),
                den,
                exact: Fraction::ONE,
            },
        }
    }

    fn value(self) -> f64 {
        if self.exact.is_zero() {
            return 0.0;
        }
        let quotient = self.num / self.den;
        if self.exact == Fraction::ONE {
            quotient
        } else {
            quotient * self.exact.as_f64()
        }
    }

    fn is_zero(self) -> bool {
        self.exact.is_zero() || self.num == 0.0
    }
}

/// A sum of scales; empty: 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weight(Vec<Scale>);

impl Weight {
    fn add(&mut self, scale: Scale) {
        if scale.is_zero() {
            return;
        }
        let same = self.0.iter_mut().find(|s| {
            s.num.to_bits() == scale.num.to_bits() && s.den.to_bits() == scale.den.to_bits()
        });
        match same {
            Some(s) => match s.exact.add(scale.exact) {
                Some(sum) => s.exact = sum,
                None => {
                    let sum = s.value() + scale.value();
                    *s = Scale {
                        num: sum,
                        ..Scale::ONE
                    };
                }
            },
            None => self.0.push(scale),
        }
        self.0.retain(|s| !s.is_zero());
        if self.0.len() > SCALES {
            let sum = self.value();
            self.0 = vec![Scale {
                num: sum,
                ..Scale::ONE
            }];
        }
    }

    fn scaled(&self, scale: Scale) -> Self {
        let mut result = Self::default();
        for s in &self.0 {
            result.add(s.mul(scale));
        }
        result
    }

    pub fn value(&self) -> f64 {
        self.0.iter().map(|s| s.value()).fold(0.0, |a, b| a + b)
    }

    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }
}

/// A product of static nodes that vary over the grid, over such a product. Empty: 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Factor {
    num: Vec<NodeId>,
    den: Vec<NodeId>,
}

impl Factor {
    pub fn is_one(&self) -> bool {
        self.num.is_empty() && self.den.is_empty()
    }

    fn mul(&self, other: &Factor) -> Factor {
        let join = |a: &[NodeId], b: &[NodeId]| {
            let mut list = [a, b].concat();
            list.sort_unstable();
            list
        };
        Factor {
            num: join(&self.num, &other.num),
            den: join(&self.den, &other.den),
        }
    }

    /// The product as a node.
    pub fn node(&self, graph: &mut Graph) -> NodeId {
        let product = |graph: &mut Graph, list: &[NodeId]| {
            let mut list = list.iter().copied();
            let first = list.next();
            first.map(|first| list.fold(first, |a, b| graph.binary(HostBinary::Mul, a, b)))
        };
        let num = product(graph, &self.num);
        let den = product(graph, &self.den);
        let num = num.unwrap_or_else(|| graph.number(1.0));
        match den {
            None => num,
            Some(den) => graph.binary(HostBinary::Div, num, den),
        }
    }
}

/// A value that is read; the order is that in which taps are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tap {
    /// Where it lies, in half cells from the start of the target's cell.
    pub at: PerAxis<HalfIndex>,
    pub component: ComponentId,
    pub level: Option<LevelKey>,
}

#[derive(Clone, Debug)]
pub struct Group {
    pub factor: Factor,
    pub taps: BTreeMap<Tap, Weight>,
}

/// A sum of groups, in the order in which they first appear, and of a static node.
#[derive(Clone, Debug, Default)]
pub struct Linear {
    pub groups: Vec<Group>,
    pub constant: Option<NodeId>,
}

/// Why there is no normal form.
pub enum NotLinear {
    Nonlinear,
    /// A limit was reached.
    TooLarge,
}

pub struct Linearizer<'g> {
    graph: &'g mut Graph,
    /// The target's position.
    origin: Position,
    known: HashMap<(NodeId, Shift), Rc<Linear>>,
    work: usize,
}

impl<'g> Linearizer<'g> {
    pub fn new(graph: &'g mut Graph, origin: Position) -> Self {
        Self {
            graph,
            origin,
            known: HashMap::new(),
            work: 0,
        }
    }

    /// The normal form of a node at a point `by` half cells from the target.
    pub fn linear(&mut self, id: NodeId, by: Shift) -> Result<Rc<Linear>, NotLinear> {
        // Long sums nest to the left: their parts are taken from the bottom up, without recursion.
        let mut spine = vec![id];
        let mut top = id;
        while let Node::Binary(_, left, _) = self.graph.node(top)
            && self.graph.is_dynamic(left)
            && !self.known.contains_key(&(left, by))
        {
            spine.push(left);
            top = left;
        }
        let mut parts = spine.into_iter().rev();
        let bottom = parts.next().unwrap_or(id);
        let mut below = bottom;
        let mut sum = self.linear_once(bottom, by)?;
        for part in parts {
            let Node::Binary(op, _, right) = self.graph.node(part) else {
                return Err(NotLinear::Nonlinear);
            };
            if matches!(op.0, HostBinary::Add | HostBinary::Sub) {
                let right = self.linear(right, by)?;
                // The sum below is taken over where nothing else holds it.
                let mut total = Rc::try_unwrap(sum).unwrap_or_else(|shared| (*shared).clone());
                self.add(&mut total, op.0, &right)?;
                sum = Rc::new(total);
            } else {
                self.known.insert((below, by), sum);
                sum = self.linear_once(part, by)?;
            }
            below = part;
        }
        self.known.insert((id, by), sum.clone());
        Ok(sum)
    }

    /// `sum + right` or `sum - right`.
    fn add(&mut self, sum: &mut Linear, op: HostBinary, right: &Linear) -> Result<(), NotLinear> {
        if op == HostBinary::Sub {
            return self.negated(sum, right);
        }
        let one = self.graph.number(1.0);
        self.accumulate(sum, right, &Split::ONE, one)
    }

    fn linear_once(&mut self, id: NodeId, by: Shift) -> Result<Rc<Linear>, NotLinear> {
        if let Some(known) = self.known.get(&(id, by)) {
            return Ok(known.clone());
        }
        self.spend(1)?;
        let result = Rc::new(self.build(id, by)?);
        self.known.insert((id, by), result.clone());
        Ok(result)
    }

    fn spend(&mut self, work: usize) -> Result<(), NotLinear> {
        self.work += work;
        self.graph.spend(work);
        if self.work > WORK || self.graph.is_full() {
            return Err(NotLinear::TooLarge);
        }
        Ok(())
    }

    fn build(&mut self, id: NodeId, by: Shift) -> Result<Linear, NotLinear> {
        let mut sum = Linear::default();
        if !self.graph.is_dynamic(id) {
            // A number 0, such as a difference along an axis on which nothing depends, is no addend, nor are its
            // products.
            let is_zero = self.graph.as_number(id) == Some(0.0);
            sum.constant = (!is_zero).then(|| self.graph.shift(id, by));
            return Ok(sum);
        }
        match self.graph.node(id) {
            Node::Field { component, level } => {
                let tap = Tap {
                    at: PerAxis::from_fn(|a| self.origin[a] + by[a]),
                    component,
                    level,
                };
                let mut weight = Weight::default();
                weight.add(Scale::ONE);
                sum.groups.push(Group {
                    factor: Factor::default(),
                    taps: BTreeMap::from([(tap, weight)]),
                });
            }
            Node::Shift(a, further) => {
                let by = Shift::from_fn(|x| by[x] + further[x]);
                return self.linear(a, by).map(|l| (*l).clone());
            }
            Node::Stencil(a, kernel) => self.stencil(&mut sum, a, kernel, by)?,
            Node::Unary(op, a) if op.0 == HostUnary::Neg => {
                let part = self.linear(a, by)?;
                self.negated(&mut sum, &part)?;
            }
            Node::Binary(op, a, b) => match op.0 {
                HostBinary::Add | HostBinary::Sub => {
                    let left = self.linear(a, by)?;
                    let right = self.linear(b, by)?;
                    sum = (*left).clone();
                    self.spend(left.size())?;
                    self.add(&mut sum, op.0, &right)?;
                }
                HostBinary::Mul if !self.graph.is_dynamic(a) => self.times(&mut sum, b, a, by)?,
                HostBinary::Mul if !self.graph.is_dynamic(b) => self.times(&mut sum, a, b, by)?,
                HostBinary::Div if !self.graph.is_dynamic(b) => {
                    self.quotient(&mut sum, a, b, by)?;
                }
                _ => return Err(NotLinear::Nonlinear),
            },
            _ => return Err(NotLinear::Nonlinear),
        }
        Ok(sum)
    }

    fn negated(&mut self, sum: &mut Linear, part: &Linear) -> Result<(), NotLinear> {
        let split = Split {
            scale: Scale::number(-1.0),
            factor: Factor::default(),
        };
        let node = self.graph.number(-1.0);
        self.accumulate(sum, part, &split, node)
    }

    /// Adds the weighted sum that a kernel makes of a value along its axis, shifted by `by`.
    fn stencil(
        &mut self,
        sum: &mut Linear,
        value: NodeId,
        kernel: KernelId,
        by: Shift,
    ) -> Result<(), NotLinear> {
        let kernel = self.graph.kernel(kernel);
        let divided = Scale {
            den: kernel.divisor,
            ..Scale::ONE
        };
        for (offset, c) in &kernel.taps {
            let mut at = by;
            at[kernel.axis] = at[kernel.axis] + *offset;
            let scale = match c {
                Coefficient::Exact(exact) => Scale {
                    exact: *exact,
                    ..Scale::ONE
                },
                Coefficient::Real(r) => Scale::number(*r),
            };
            if scale.is_zero() {
                continue;
            }
            let part = self.linear(value, at)?;
            let split = Split {
                scale: scale.mul(divided),
                factor: Factor::default(),
            };
            let node = self.graph.number(split.scale.value());
            self.accumulate(sum, &part, &split, node)?;
        }
        Ok(())
    }

    /// Adds the quotient of a value and a divisor without fields, shifted by `by`, to a sum without a constant.
    fn quotient(
        &mut self,
        sum: &mut Linear,
        value: NodeId,
        divisor: NodeId,
        by: Shift,
    ) -> Result<(), NotLinear> {
        let part = self.linear(value, by)?;
        let divisor = self.graph.shift(divisor, by);
        let split = split(self.graph, divisor).inverse();
        let one = self.graph.number(1.0);
        let node = self.graph.binary(HostBinary::Div, one, divisor);
        self.accumulate(sum, &part, &split, node)?;
        if let (Some(part), Some(_)) = (part.constant, sum.constant) {
            sum.constant = Some(self.graph.binary(HostBinary::Div, part, divisor));
        }
        Ok(())
    }

    fn times(
        &mut self,
        sum: &mut Linear,
        linear: NodeId,
        factor: NodeId,
        by: Shift,
    ) -> Result<(), NotLinear> {
        let part = self.linear(linear, by)?;
        let factor = self.graph.shift(factor, by);
        let split = split(self.graph, factor);
        self.accumulate(sum, &part, &split, factor)
    }

    /// `sum += part * split`; `node` is the same factor as a node.
    fn accumulate(
        &mut self,
        sum: &mut Linear,
        part: &Linear,
        split: &Split,
        node: NodeId,
    ) -> Result<(), NotLinear> {
        self.spend(part.size())?;
        if !split.scale.is_zero() {
            for group in &part.groups {
                let factor = group.factor.mul(&split.factor);
                let index = match sum.groups.iter().position(|g| g.factor == factor) {
                    Some(index) => index,
                    None => {
                        sum.groups.push(Group {
                            factor,
                            taps: BTreeMap::new(),
                        });
                        sum.groups.len() - 1
                    }
                };
                let taps = &mut sum.groups[index].taps;
                for (tap, weight) in &group.taps {
                    let into = taps.entry(*tap).or_default();
                    for s in &weight.scaled(split.scale).0 {
                        into.add(*s);
                    }
                    if into.is_zero() {
                        taps.remove(tap);
                    }
                }
            }
            sum.groups.retain(|g| !g.taps.is_empty());
        }
        if let Some(constant) = part.constant {
            let term = match self.graph.as_number(node) {
                Some(1.0) => constant,
                _ => self.graph.binary(HostBinary::Mul, node, constant),
            };
            let total = match sum.constant {
                None => term,
                Some(old) => self.graph.binary(HostBinary::Add, old, term),
            };
            sum.constant = Some(total);
        }
        if sum.size() > TAPS {
            return Err(NotLinear::TooLarge);
        }
        Ok(())
    }
}

impl Linear {
    fn size(&self) -> usize {
        self.groups.iter().map(|g| g.taps.len()).sum::<usize>() + 1
    }
}

/// A static factor as a number and a node that varies over the grid; `None`: no part varies.
pub fn scaled_factor(graph: &mut Graph, id: NodeId) -> (f64, Option<NodeId>) {
    let Split { scale, factor } = split(graph, id);
    let node = (!factor.is_one()).then(|| factor.node(graph));
    (scale.value(), node)
}

/// A static factor as number times product.
struct Split {
    scale: Scale,
    factor: Factor,
}

impl Split {
    const ONE: Split = Split {
        scale: Scale::ONE,
        factor: Factor {
            num: Vec::new(),
            den: Vec::new(),
        },
    };

    fn mul(&self, other: &Split) -> Split {
        Split {
            scale: self.scale.mul(other.scale),
            factor: self.factor.mul(&other.factor),
        }
    }

    fn inverse(self) -> Split {
        let exact = Fraction::ONE.div(self.scale.exact);
        let scale = match exact {
            Some(exact) => Scale {
                num: self.scale.den,
                den: self.scale.num,
                exact,
            },
            // Only 0 has no inverse: the weight becomes infinite, which is reported.
            None => Scale {
                num: self.scale.den,
                den: 0.0,
                exact: Fraction::ONE,
            },
        };
        Split {
            scale,
            factor: Factor {
                num: self.factor.den,
                den: self.factor.num,
            },
        }
    }
}

/// Splits products and quotients of a static node; other nodes stay whole.
fn split(graph: &Graph, id: NodeId) -> Split {
    let whole = || Split {
        scale: Scale::ONE,
        factor: Factor {
            num: vec![id],
            den: Vec::new(),
        },
    };
    let result = match graph.node(id) {
        Node::Number(bits) => Split {
            scale: Scale::number(f64::from_bits(bits)),
            factor: Factor::default(),
        },
        Node::Unary(op, a) if op.0 == HostUnary::Neg => {
            let mut inner = split(graph, a);
            inner.scale = inner.scale.mul(Scale::number(-1.0));
            inner
        }
        Node::Binary(op, a, b) => match (op.0, graph.as_number(b)) {
            _ if graph.facts(id).size > 200 => whole(),
            (HostBinary::Mul, _) => split(graph, a).mul(&split(graph, b)),
            (HostBinary::Div, Some(b)) => {
                let mut inner = split(graph, a);
                inner.scale = inner.scale.mul(Scale::inverse_of(b));
                inner
            }
            (HostBinary::Div, None) => split(graph, a).mul(&split(graph, b).inverse()),
            (HostBinary::Pow, Some(n)) if n == 2.0 || n == 3.0 => {
                let base = split(graph, a);
                let square = base.mul(&base);
                if n == 2.0 { square } else { square.mul(&base) }
            }
            _ => whole(),
        },
        _ => whole(),
    };
    if result.factor.num.len() + result.factor.den.len() > FACTORS {
        whole()
    } else {
        result
    }
}
