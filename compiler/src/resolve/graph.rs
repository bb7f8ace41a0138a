//! Expressions on the lattice, as a graph in which equal expressions are one node.
//!
//! A node describes a computation at a point that is given when it is used: the value of `Shift` at point q is the
//! value of its child at q + by, a `Stencil` sums its child at several points. Static nodes (which read no field) have
//! no shifts and no stencils inside: these are pushed down to coordinates and files when the node is made.

mod arrays;
mod walk;

use super::fraction::Fraction;
use crate::host::{HostBinary, HostExpr, HostUnary};
use crate::lattice::{Axis, HalfIndex, PerAxis, Position};
use crate::scheme::{ComponentId, FileId, StaticFile};
use crate::table::Table;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use torre_grammar::ast::Level;

/// Nodes of one scheme or problem; more mean that the program is too complex.
const NODES: usize = 200_000;
/// The deepest nesting to the right; sums and products nest to the left and may be long.
const DEPTH: u16 = 200;
/// The deepest nesting of static expressions, which others walk as trees.
const HEIGHT: u16 = 400;
/// Different sets of coefficients of differences.
const KERNELS: usize = 4_096;
/// Steps of all algorithms on the graph of one scheme or problem.
pub const WORK: usize = 10_000_000;
/// The most operations of one static expression written out as a tree.
pub const TREE: u32 = 20_000;

/// A call that is another value in a zone, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u32);

/// A state of a call, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateKey(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

/// A displacement in half cells.
pub type Shift = PerAxis<HalfIndex>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// The bits of a double.
    Number(u64),
    /// The coordinate along an axis of a point this many half cells farther.
    Coordinate(Axis, HalfIndex),
    Time,
    File(FileId, Shift),
    /// The value of a table at an argument.
    Table(TableId, NodeId),
    Field {
        component: ComponentId,
        /// `None`: the newest value.
        level: Option<LevelKey>,
    },
    Unary(UnaryKey, NodeId),
    Binary(BinaryKey, NodeId, NodeId),
    If(NodeId, NodeId, NodeId),
    Shift(NodeId, Shift),
    Stencil(NodeId, KernelId),
    /// The old value of a state.
    State(StateKey),
    /// The next value of a state where it is read: the node that computes it.
    Next(StateKey, NodeId),
    /// A call that is another value in a zone, with its value outside.
    Zoned(CallId, NodeId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(u32);

/// Time levels in a form with an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LevelKey {
    Next,
    Prev,
}

impl From<Level> for LevelKey {
    fn from(level: Level) -> Self {
        match level {
            Level::Next => LevelKey::Next,
            Level::Prev => LevelKey::Prev,
        }
    }
}

macro_rules! hashed {
    ($name:ident($op:ty)) => {
        /// An operation that can be a key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub $op);
        impl std::hash::Hash for $name {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                (self.0 as u8).hash(state);
            }
        }
    };
}
hashed!(UnaryKey(HostUnary));
hashed!(BinaryKey(HostBinary));

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelId(u32);

/// A weighted sum of values along an axis, divided by `divisor`.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    pub axis: Axis,
    /// In ascending order of the offset.
    pub taps: Vec<(HalfIndex, Coefficient)>,
    /// A power of the cell size.
    pub divisor: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Coefficient {
    Exact(Fraction),
    Real(f64),
}

impl Coefficient {
    pub fn as_f64(self) -> f64 {
        match self {
            Coefficient::Exact(r) => r.as_f64(),
            Coefficient::Real(r) => r,
        }
    }
}

/// Facts on a node.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Reads fields.
    pub dynamic: bool,
    /// Depends on time other than through fields.
    pub timed: bool,
    /// Operations written out as a tree; saturates.
    pub size: u32,
    depth: u16,
    height: u16,
}

#[derive(Debug, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    facts: Vec<Facts>,
    known: HashMap<Node, NodeId>,
    kernels: Vec<Rc<Kernel>>,
    /// Per call its value in its zone, and the states that it keeps.
    insides: HashMap<CallId, (NodeId, Vec<StateKey>)>,
    /// Per state that has been given one, its next value.
    next_values: HashMap<StateKey, NodeId>,
    shifted: HashMap<(NodeId, Shift), NodeId>,
    /// The names of nodes for people.
    names: HashMap<NodeId, String>,
    pub files: Vec<StaticFile>,
    /// Arrays of another shape than their positions need, which may be in values that are not used.
    unfit: Vec<StaticFile>,
    tables: Vec<Arc<Table>>,
    pub spacing: PerAxis<f64>,
    /// The names of the axes.
    pub axes: PerAxis<String>,
    work: usize,
    full: bool,
}

impl Graph {
    /// The steps of algorithms so far.
    pub fn work(&self) -> usize {
        self.work
    }

    /// Counts work; after too much of it the graph is full.
    pub fn spend(&mut self, work: usize) {
        self.work = self.work.saturating_add(work);
        self.full |= self.work > WORK;
    }

    /// Whether a limit was reached; from then on nodes mean nothing.
    pub fn is_full(&self) -> bool {
        self.full
    }

    pub fn node(&self, id: NodeId) -> Node {
        self.nodes[id.0 as usize]
    }

    pub fn facts(&self, id: NodeId) -> Facts {
        self.facts[id.0 as usize]
    }

    pub fn is_dynamic(&self, id: NodeId) -> bool {
        self.facts(id).dynamic
    }

    pub fn as_number(&self, id: NodeId) -> Option<f64> {
        match self.node(id) {
            Node::Number(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    pub fn kernel(&self, id: KernelId) -> Rc<Kernel> {
        self.kernels[id.0 as usize].clone()
    }

    pub fn name(&mut self, id: NodeId, name: String) {
        if self.as_number(id).is_none() {
            self.names.entry(id).or_insert(name);
        }
    }

    fn add(&mut self, node: Node) -> NodeId {
        if let Some(&id) = self.known.get(&node) {
            return id;
        }
        let mut facts = Facts {
            dynamic: matches!(
                node,
                Node::Field { .. } | Node::State(_) | Node::Next(..) | Node::Zoned(..)
            ),
            timed: node == Node::Time,
            size: 1,
            depth: 0,
            height: 0,
        };
        let mut operand = |id: NodeId, deeper: u16| {
            let f = self.facts[id.0 as usize];
            facts.dynamic |= f.dynamic;
            facts.timed |= f.timed;
            facts.size = facts.size.saturating_add(f.size);
            facts.depth = facts.depth.max(f.depth.saturating_add(deeper));
            facts.height = facts.height.max(f.height.saturating_add(1));
        };
        match node {
            Node::Number(_)
            | Node::Coordinate(..)
            | Node::Time
            | Node::File(..)
            | Node::State(_)
            | Node::Field { .. } => {}
            Node::Unary(_, a)
            | Node::Table(_, a)
            | Node::Shift(a, _)
            | Node::Stencil(a, _)
            | Node::Next(_, a)
            | Node::Zoned(_, a) => {
                operand(a, 1);
            }
            Node::Binary(_, a, b) => {
                operand(a, 0);
                operand(b, 1);
            }
            Node::If(a, b, c) => {
                operand(a, 1);
                operand(b, 1);
                operand(c, 1);
            }
        }
        let too_high = !facts.dynamic && facts.height > HEIGHT;
        if facts.depth > DEPTH || too_high || self.nodes.len() >= NODES {
            self.full = true;
            // Any leaf will do: the caller asks `is_full` and drops the result.
            if !self.nodes.is_empty() {
                return NodeId(0);
            }
        }
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.facts.push(facts);
        self.known.insert(node, id);
        id
    }

    pub fn number(&mut self, value: f64) -> NodeId {
        let value = if value.is_nan() { f64::NAN } else { value };
        self.add(Node::Number(value.to_bits()))
    }

    pub fn coordinate(&mut self, axis: Axis) -> NodeId {
        self.add(Node::Coordinate(axis, HalfIndex::ZERO))
    }

    pub fn time(&mut self) -> NodeId {
        self.add(Node::Time)
    }

    /// Takes a table in; equal ones are one.
    pub fn table_id(&mut self, table: Table) -> TableId {
        let known = self.tables.iter().position(|t| **t == table);
        let index = known.unwrap_or_else(|| {
            self.tables.push(Arc::new(table));
            self.tables.len() - 1
        });
        TableId(index as u32)
    }

    pub fn table(&mut self, table: TableId, a: NodeId) -> NodeId {
        match self.as_number(a) {
            Some(a) => {
                let value = self.tables[table.0 as usize].value(a);
                self.number(value)
            }
            None => self.add(Node::Table(table, a)),
        }
    }

    pub fn field(&mut self, component: ComponentId, level: Option<LevelKey>) -> NodeId {
        self.add(Node::Field { component, level })
    }

    pub fn unary(&mut self, op: HostUnary, a: NodeId) -> NodeId {
        match self.as_number(a) {
            Some(a) => self.number(op.apply(a)),
            None => self.add(Node::Unary(UnaryKey(op), a)),
        }
    }

    pub fn binary(&mut self, op: HostBinary, a: NodeId, b: NodeId) -> NodeId {
        let (n, rest) = match (self.as_number(a), self.as_number(b)) {
            (Some(a), Some(b)) => return self.number(op.apply(a, b)),
            (Some(n), None) => (n, b),
            (None, Some(n)) => (n, a),
            (None, None) => return self.add(Node::Binary(BinaryKey(op), a, b)),
        };
        match op {
            HostBinary::And if n == 0.0 => self.number(0.0),
            HostBinary::Or if n != 0.0 => self.number(1.0),
            HostBinary::And | HostBinary::Or => self.truth(rest),
            _ => self.add(Node::Binary(BinaryKey(op), a, b)),
        }
    }

    /// A condition as 0 or 1, so that rounding cannot change it.
    pub fn truth(&mut self, id: NodeId) -> NodeId {
        use HostBinary as H;
        let is_truth = match self.node(id) {
            Node::Number(bits) => [0.0, 1.0].contains(&f64::from_bits(bits)),
            Node::Unary(op, _) => op.0 == HostUnary::Not,
            Node::Binary(op, ..) => matches!(
                op.0,
                H::Lt | H::Le | H::Gt | H::Ge | H::Eq | H::Ne | H::And | H::Or
            ),
            _ => false,
        };
        if is_truth {
            return id;
        }
        let zero = self.number(0.0);
        self.binary(H::Ne, id, zero)
    }

    pub fn choose(&mut self, condition: NodeId, then: NodeId, otherwise: NodeId) -> NodeId {
        match self.as_number(condition) {
            Some(c) if c != 0.0 => then,
            Some(_) => otherwise,
            None => self.add(Node::If(condition, then, otherwise)),
        }
    }

    /// The value of `a` at a point `by` further.
    pub fn shift(&mut self, a: NodeId, by: Shift) -> NodeId {
        if by == Shift::default() {
            a
        } else if self.is_dynamic(a) {
            self.add(Node::Shift(a, by))
        } else {
            self.shift_static(a, by)
        }
    }

    fn shift_static(&mut self, a: NodeId, by: Shift) -> NodeId {
        if let Some(&known) = self.shifted.get(&(a, by)) {
            return known;
        }
        if self.full {
            return a;
        }
        let result = match self.node(a) {
            Node::Coordinate(axis, s) => self.add(Node::Coordinate(axis, s + by[axis])),
            Node::File(file, s) => self.add(Node::File(file, Shift::from_fn(|x| s[x] + by[x]))),
            Node::Table(table, x) => {
                let x = self.shift_static(x, by);
                self.table(table, x)
            }
            Node::Unary(op, x) => {
                let x = self.shift_static(x, by);
                self.unary(op.0, x)
            }
            Node::Binary(op, x, y) => {
                let x = self.shift_static(x, by);
                let y = self.shift_static(y, by);
                self.binary(op.0, x, y)
            }
            Node::If(c, x, y) => {
                let c = self.shift_static(c, by);
                let x = self.shift_static(x, by);
                let y = self.shift_static(y, by);
                self.choose(c, x, y)
            }
            Node::Number(_)
            | Node::Time
            | Node::Field { .. }
            | Node::State(_)
            | Node::Next(..)
            | Node::Zoned(..)
            | Node::Shift(..)
            | Node::Stencil(..) => a,
        };
        if let Some(name) = self.names.get(&a).cloned() {
            self.name(result, name);
        }
        self.shifted.insert((a, by), result);
        result
    }

    pub fn stencil(&mut self, a: NodeId, kernel: Kernel) -> NodeId {
        if self.is_dynamic(a) {
            let known = self.kernels.iter().position(|k| **k == kernel);
            let index = known.unwrap_or_else(|| {
                self.full |= self.kernels.len() >= KERNELS;
                self.kernels.push(Rc::new(kernel));
                self.kernels.len() - 1
            });
            return self.add(Node::Stencil(a, KernelId(index as u32)));
        }
        let mut sum = None;
        for (offset, c) in &kernel.taps {
            let mut by = Shift::default();
            by[kernel.axis] = *offset;
            let value = self.shift(a, by);
            let c = self.number(c.as_f64());
            let term = self.binary(HostBinary::Mul, c, value);
            sum = Some(match sum {
                None => term,
                Some(sum) => self.binary(HostBinary::Add, sum, term),
            });
        }
        let divisor = self.number(kernel.divisor);
        match sum {
            Some(sum) if kernel.divisor == 1.0 => sum,
            Some(sum) => self.binary(HostBinary::Div, sum, divisor),
            None => self.number(0.0),
        }
    }

    pub fn state(&mut self, key: StateKey) -> NodeId {
        self.add(Node::State(key))
    }

    /// The next value of a state, told apart from the same value elsewhere.
    pub fn next(&mut self, key: StateKey, value: NodeId) -> NodeId {
        self.add(Node::Next(key, value))
    }

    /// A call that is `inside` in its zone and `outside` elsewhere.
    /// `states`: all states that it keeps.
    pub fn zoned(
        &mut self,
        call: CallId,
        inside: NodeId,
        outside: NodeId,
        states: &[StateKey],
    ) -> NodeId {
        self.insides.insert(call, (inside, states.to_vec()));
        self.add(Node::Zoned(call, outside))
    }

    /// A static node as an expression at the points of `position`. `None` if it is too large.
    pub fn host(&mut self, id: NodeId, position: Position) -> Option<HostExpr> {
        let size = self.facts(id).size;
        // A tree costs more memory than time.
        self.spend(16 * size as usize);
        if self.full || size > TREE {
            return None;
        }
        Some(self.host_tree(id, position))
    }

    fn host_tree(&self, id: NodeId, position: Position) -> HostExpr {
        let tree = |a| Box::new(self.host_tree(a, position));
        match self.node(id) {
            Node::Number(bits) => HostExpr::Number(f64::from_bits(bits)),
            Node::Coordinate(axis, by) => HostExpr::Coordinate(axis, by),
            Node::Time => HostExpr::Time,
            Node::File(file, by) => {
                let stored = self.array(file).position;
                let offset =
                    PerAxis::from_fn(|a| (position[a].0 + by[a].0 - stored[a].0).div_euclid(2));
                HostExpr::File {
                    file,
                    offset: offset
                        .map(|n| n.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32),
                }
            }
            Node::Table(table, a) => {
                HostExpr::Table(self.tables[table.0 as usize].clone(), tree(a))
            }
            Node::Unary(op, a) => HostExpr::Unary(op.0, tree(a)),
            Node::Binary(op, a, b) => HostExpr::Binary(op.0, tree(a), tree(b)),
            Node::If(c, a, b) => HostExpr::If(tree(c), tree(a), tree(b)),
            // Not in static nodes.
            Node::Field { .. }
            | Node::State(_)
            | Node::Next(..)
            | Node::Zoned(..)
            | Node::Shift(..)
            | Node::Stencil(..) => HostExpr::Number(f64::NAN),
        }
    }

    /// A short text for people.
    pub fn describe(&self, id: NodeId) -> String {
        let mut text = String::new();
        self.write(id, &mut text);
        if text.len() > 60 {
            text.truncate(text.floor_char_boundary(57));
            text.push_str("...");
        }
        text
    }

    fn write(&self, id: NodeId, text: &mut String) {
        if text.len() > 60 {
            return;
        }
        if let Some(name) = self.names.get(&id) {
            text.push_str(name);
            return;
        }
        match self.node(id) {
            Node::Number(bits) => text.push_str(&f64::from_bits(bits).to_string()),
            Node::Coordinate(axis, _) => text.push_str(&self.axes[axis]),
            Node::Time => text.push('t'),
            Node::File(file, _) => text.push_str(&self.array(file).path),
            Node::Table(table, a) => {
                text.push_str(self.tables[table.0 as usize].name());
                text.push('(');
                self.write(a, text);
                text.push(')');
            }
            Node::Unary(op, a) => {
                text.push_str(&format!("{:?}(", op.0).to_lowercase());
                self.write(a, text);
                text.push(')');
            }
            Node::Binary(op, a, b) => {
                let sign = op.0.sign();
                let [before, between] = match op.0.is_function() {
                    true => [format!("{sign}("), ", ".to_string()],
                    false => ["(".to_string(), format!(" {sign} ")],
                };
                text.push_str(&before);
                self.write(a, text);
                text.push_str(&between);
                self.write(b, text);
                text.push(')');
            }
            Node::If(c, a, b) => {
                text.push_str("if ");
                self.write(c, text);
                text.push_str(" then ");
                self.write(a, text);
                text.push_str(" else ");
                self.write(b, text);
            }
            Node::Field { .. }
            | Node::State(_)
            | Node::Next(..)
            | Node::Zoned(..)
            | Node::Shift(..)
            | Node::Stencil(..) => text.push('_'),
        }
    }
}
