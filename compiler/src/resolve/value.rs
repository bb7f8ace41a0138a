//! The values of expressions, and the places where they are evaluated.

use super::graph::NodeId;
use super::load::{ItemId, ModuleId};
use super::report::Place;
use crate::lattice::{Axis, Position};
use std::rc::Rc;
use torre_grammar::ast::Level;
use torre_grammar::source::{Source, Span};

/// A scalar on the lattice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Typed {
    pub node: NodeId,
    /// `None`: it is evaluated where it is used.
    pub position: Option<Position>,
}

/// The names of the components of a field that names them. `None`: the axes, or none.
pub type Names = Option<Rc<[String]>>;

#[derive(Clone, Debug)]
pub enum Value {
    Scalar(Typed),
    /// With the names of its components, where these are not the axes.
    Vector(Vec<Typed>, Names),
    Tensor(Vec<Typed>),
    /// A field, by its index in the frame.
    Field(usize, Option<Level>),
    Axis(Axis),
    /// The name of a file.
    Text(Rc<str>),
    /// Its error has been reported.
    Poison,
}

/// Which names a text sees beyond its own locals and the items of its module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Definitions and constants of modules: the axes alone.
    Item,
    /// The names of the scheme and the extents of the domain.
    Scheme,
    /// The names of the problem, then the names of its scheme.
    Problem,
}

/// The tables of names, in the order in which a problem's text sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Constants of the problem.
    Problem,
    /// Axes, parameters, constants, fields and coefficients of the scheme.
    Scheme,
    /// Cells of the domain per axis: `nx`. Any other item with such a name hides them.
    Extents,
}

/// Where an expression is evaluated.
#[derive(Clone)]
pub struct Scope {
    pub source: Source,
    pub module: ModuleId,
    /// Later ones hide earlier ones.
    pub locals: Vec<(String, Value)>,
    pub sight: Sight,
}

impl Sight {
    /// The tables of names that are seen.
    pub fn tables(self) -> &'static [Table] {
        match self {
            Sight::Item => &[],
            Sight::Scheme => &[Table::Scheme],
            Sight::Problem => &[Table::Problem, Table::Scheme],
        }
    }
}

impl Scope {
    pub fn place(&self, span: Span) -> Place {
        Place::new(&self.source, span)
    }
}

/// A use of a definition that is being inlined.
#[derive(Clone)]
pub struct Use {
    pub place: Place,
    pub item: ItemId,
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
    pub fn with(self, items: Vec<Typed>) -> Value {
        self.named(items, None)
    }

    pub fn named(self, mut items: Vec<Typed>, names: Names) -> Value {
        match self {
            Kind::Scalar => items.pop().map_or(Value::Poison, Value::Scalar),
            Kind::Vector => Value::Vector(items, names),
            Kind::Tensor => Value::Tensor(items),
        }
    }
}

/// The scalars that a value is made of.
pub struct Items {
    pub kind: Kind,
    pub items: Vec<Typed>,
    pub names: Names,
}

/// The names of a value that is made of two by component: of the one that has names, or of both where they are the
/// same.
pub fn common_names(a: Names, b: Names) -> Names {
    match (a, b) {
        (Some(a), Some(b)) => (a == b).then_some(a),
        (a, b) => a.or(b),
    }
}

/// A position with the place in the text of the expression there, for messages.
#[derive(Clone, Copy)]
pub struct Located<'a> {
    /// `None`: it is evaluated where it is used.
    pub position: Option<Position>,
    /// The value, if it is one.
    pub node: Option<NodeId>,
    pub place: &'a Place,
}

impl Typed {
    pub fn located(self, place: &Place) -> Located<'_> {
        Located {
            position: self.position,
            node: Some(self.node),
            place,
        }
    }
}
