//! Walks over a graph: its nodes in order, the calls in it, the same graph with other nodes in places.

use super::{Graph, HostBinary, Node, NodeId, StateKey, TableId};
use crate::resolve::graph::CallId;
use std::collections::HashMap;

impl Graph {
    /// The value of a table at an argument.
    pub fn value_in(&self, table: TableId, at: f64) -> f64 {
        self.tables[table.0 as usize].value(at)
    }

    /// The parts of a node, calls as they are outside.
    pub fn parts(&self, id: NodeId) -> ([NodeId; 3], usize) {
        match self.node(id) {
            Node::Unary(_, a)
            | Node::Table(_, a)
            | Node::Shift(a, _)
            | Node::Stencil(a, _)
            | Node::Next(_, a)
            | Node::Zoned(_, a) => ([a; 3], 1),
            Node::Binary(_, a, b) => ([a, b, b], 2),
            Node::If(a, b, c) => ([a, b, c], 3),
            _ => ([id; 3], 0),
        }
    }

    /// The nodes under a root, each once, their parts first; calls as they are outside.
    pub fn in_order(&mut self, root: NodeId) -> Vec<NodeId> {
        let mut done = std::collections::HashSet::new();
        let mut order = Vec::new();
        let mut open = vec![(root, false)];
        while let Some((id, is_ready)) = open.pop() {
            if is_ready {
                order.push(id);
            } else if done.insert(id) {
                open.push((id, true));
                let (parts, count) = self.parts(id);
                open.extend(parts[..count].iter().map(|p| (*p, false)));
            }
        }
        self.spend(order.len());
        order
    }

    /// The calls under a root.
    pub fn calls(&mut self, root: NodeId) -> Vec<CallId> {
        let order = self.in_order(root);
        let call = |id: &NodeId| match self.node(*id) {
            Node::Zoned(call, _) => Some(call),
            _ => None,
        };
        order.iter().filter_map(call).collect()
    }

    /// The node of a call under a root outside of its zone.
    pub fn outside_of(&mut self, root: NodeId, call: CallId) -> Option<NodeId> {
        let order = self.in_order(root);
        order.iter().find_map(|id| match self.node(*id) {
            Node::Zoned(own, outside) if own == call => Some(outside),
            _ => None,
        })
    }

    /// The same value with other nodes for some, and calls as they are outside.
    pub fn rewrite(&mut self, root: NodeId, to: &HashMap<NodeId, NodeId>) -> NodeId {
        let mut new: HashMap<NodeId, NodeId> = HashMap::new();
        for id in self.in_order(root) {
            let of = |a: NodeId| new.get(&a).copied().unwrap_or(a);
            let (parts, count) = self.parts(id);
            let is_same = parts[..count].iter().all(|p| of(*p) == *p);
            let node = match self.node(id) {
                _ if to.contains_key(&id) => to[&id],
                Node::Zoned(_, a) => of(a),
                Node::Next(key, a) => self.next(key, of(a)),
                _ if is_same => id,
                Node::Unary(op, a) => self.unary(op.0, of(a)),
                Node::Table(table, a) => self.table(table, of(a)),
                Node::Shift(a, by) => self.shift(of(a), by),
                Node::Stencil(a, kernel) => {
                    let kernel = (*self.kernel(kernel)).clone();
                    self.stencil(of(a), kernel)
                }
                Node::Binary(op, a, b) => self.simpler(op.0, of(a), of(b)),
                Node::If(c, a, b) => self.choose(of(c), of(a), of(b)),
                _ => id,
            };
            new.insert(id, node);
        }
        new.get(&root).copied().unwrap_or(root)
    }

    /// An operation without terms 0 and factors 1 or 0, where something was replaced by a number.
    fn simpler(&mut self, op: HostBinary, a: NodeId, b: NodeId) -> NodeId {
        let (x, y) = (self.as_number(a), self.as_number(b));
        match (op, x, y) {
            (HostBinary::Add, Some(0.0), _) | (HostBinary::Mul, Some(1.0), _) => b,
            (HostBinary::Add | HostBinary::Sub, _, Some(0.0)) => a,
            (HostBinary::Mul | HostBinary::Div, _, Some(1.0)) => a,
            (HostBinary::Mul, Some(0.0), _) | (HostBinary::Mul, _, Some(0.0)) => self.number(0.0),
            _ => self.binary(op, a, b),
        }
    }

    /// Gives a state its next value.
    pub fn advance_state(&mut self, key: StateKey, value: NodeId) {
        self.next_values.insert(key, value);
    }

    /// Calls `f` with every node under `root`, each once, in zones and next values of states, too.
    pub fn visit(&mut self, root: NodeId, f: &mut impl FnMut(Node)) {
        let mut seen = std::collections::HashSet::new();
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let node = self.node(id);
            f(node);
            match node {
                Node::Zoned(call, _) => {
                    if let Some((inside, states)) = self.insides.get(&call) {
                        open.push(*inside);
                        let next = states.iter().filter_map(|key| self.next_values.get(key));
                        open.extend(next);
                    }
                }
                Node::State(key) => open.extend(self.next_values.get(&key)),
                _ => {}
            }
            let (parts, count) = self.parts(id);
            open.extend(&parts[..count]);
        }
        self.spend(seen.len());
    }
}
