//! What an expression of a program stands for.

use super::graph::NodeId;
use super::report::Place;
use crate::lattice::{Axis, Position};
use torre_grammar::ast::Level;

/// A scalar on the lattice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Typed {
    pub node: NodeId,
    /// `None`: it is evaluated where it is used.
    pub position: Option<Position>,
}

#[derive(Clone, Debug)]
pub enum Value {
    Scalar(Typed),
    Vector(Vec<Typed>),
    Tensor(Vec<Typed>),
    /// A field, by its index in the frame.
    Field(usize, Option<Level>),
    Axis(Axis),
    /// Its error has been reported.
    Poison,
}

/// A value with the place where it was written.
#[derive(Clone, Debug)]
pub struct Operand {
    pub value: Value,
    pub place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Scalar,
    Vector,
    Tensor,
}

impl Kind {
    pub fn with(self, mut items: Vec<Typed>) -> Value {
        match self {
            Kind::Scalar => items.pop().map_or(Value::Poison, Value::Scalar),
            Kind::Vector => Value::Vector(items),
            Kind::Tensor => Value::Tensor(items),
        }
    }
}

/// The scalars that a value is made of.
pub struct Items {
    pub kind: Kind,
    pub items: Vec<Typed>,
}

/// A position with the place of what lies there, for messages.
#[derive(Clone, Copy)]
pub struct Located<'a> {
    /// `None`: it is evaluated where it is used.
    pub position: Option<Position>,
    pub place: &'a Place,
}

impl Typed {
    pub fn located(self, place: &Place) -> Located<'_> {
        Located {
            position: self.position,
            place,
        }
    }
}
