//! Zones of a scheme while it is resolved: the parts of the grid where something is kept, the calls that have other
//! values there, and the states of these.

use super::graph::{CallId, LevelKey, NodeId, StateKey};
use super::load::ItemId;
use super::report::Place;
use super::value::Value;
use crate::lattice::{Axis, Position, Region};
use crate::scheme::{ComponentId, StateId};
use std::collections::HashMap;
use std::rc::Rc;

/// A layer as a problem asks for it.
#[derive(Clone)]
pub struct SideLayer {
    pub item: ItemId,
    /// The values of the item's parameters; the first one is the number of cells.
    pub values: Vec<f64>,
    pub place: Place,
}

/// A part of the grid where something is kept, while a scheme is resolved.
#[derive(Clone)]
pub struct ZoneFacts {
    pub name: String,
    pub boxes: Vec<Region>,
    /// The condition for a cell to be in the zone, where the boxes alone do not decide.
    pub mask: Option<NodeId>,
    /// Whether it is in layers of an axis, where definitions with states define differences themselves.
    pub in_layers: bool,
    /// Where it changes the differences of an axis by itself: the axis, and its lower and upper side.
    pub layer: Option<(Axis, [Option<Rc<SideLayer>>; 2])>,
}

impl ZoneFacts {
    pub fn is_layer_of(&self, axis: Axis) -> bool {
        self.layer.as_ref().is_some_and(|(own, _)| *own == axis)
    }
}

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// In the frame.
    pub zone: usize,
    pub inside: NodeId,
    pub states: Vec<StateKey>,
    pub place: Place,
}

/// A state while a scheme is resolved.
#[derive(Clone, Debug)]
pub struct StateFacts {
    pub name: String,
    /// In the frame, once it is known.
    pub zone: usize,
    pub next: Option<NodeId>,
    /// Where its next value lies.
    pub position: Option<Position>,
    /// Where it is declared.
    pub place: Place,
}

/// The parts of a scheme that depend on zones.
#[derive(Default)]
pub struct Zoned {
    pub calls: Vec<Call>,
    pub states: Vec<StateFacts>,
    /// The differences of layers that were met: by zone and plain difference.
    pub known: HashMap<(usize, NodeId), NodeId>,
    /// Calls of definitions with states, by definition and arguments.
    pub inlined: HashMap<(ItemId, Vec<ArgumentKey>), Value>,
    /// Differences are plain: a layer's own definition is being evaluated.
    pub plain: bool,
    /// Depths in layers, which are 0 outside.
    pub depths: Vec<NodeId>,
    /// Regions that are layers: their conditions and zones.
    pub layers: HashMap<NodeId, usize>,
    /// The states that the updates of the scheme keep; `None` until it is assembled.
    pub kept: Option<Vec<Kept>>,
}

/// A state of the scheme, as results can name it.
#[derive(Clone, Debug)]
pub struct Kept {
    pub id: StateId,
    /// As its definition calls it.
    pub name: String,
    /// Whose update keeps it.
    pub target: ComponentId,
    /// Among the zones of the frame.
    pub zone: usize,
}

impl Zoned {
    pub fn note_depth(&mut self, node: NodeId) {
        if !self.depths.contains(&node) {
            self.depths.push(node);
        }
    }

    pub fn new_call(&mut self, call: Call) -> CallId {
        self.calls.push(call);
        CallId(self.calls.len() as u32 - 1)
    }
}

/// An argument of a definition, to tell calls apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ArgumentKey {
    Nodes(Vec<NodeId>),
    Field(usize, Option<LevelKey>),
    Axis(Axis),
    Text(std::rc::Rc<str>),
}

impl ArgumentKey {
    /// `None` for a value whose error has been reported.
    pub fn of(value: &Value) -> Option<ArgumentKey> {
        Some(match value {
            Value::Scalar(s) => ArgumentKey::Nodes(vec![s.node]),
            Value::Vector(items, _) | Value::Tensor(items) => {
                ArgumentKey::Nodes(items.iter().map(|s| s.node).collect())
            }
            Value::Field(index, level) => ArgumentKey::Field(*index, level.map(Into::into)),
            Value::Axis(axis) => ArgumentKey::Axis(*axis),
            Value::Text(text) => ArgumentKey::Text(text.clone()),
            Value::Poison => return None,
        })
    }
}
