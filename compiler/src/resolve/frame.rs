//! The scheme at hand, as far as it is declared.

use super::report::Place;
use super::value::{Kind, Scope, Table, Value};
use super::zones::{SideLayer, ZoneFacts};
use crate::lattice::{Axis, PerAxis, Position};
use crate::scheme::{Component, ComponentId, Grid, Scheme};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use torre_grammar::ast::{self, Expr, Name};
use torre_grammar::source::Span;

/// A field as declared.
#[derive(Clone, Debug)]
pub struct FieldFacts {
    pub name: String,
    pub kind: Kind,
    /// Behind the dot; one empty name for a scalar.
    pub names: Vec<String>,
    pub components: Vec<ComponentId>,
    pub levels: u8,
    pub place: Place,
}

/// The text that a name stands for.
#[derive(Clone)]
pub enum Definition {
    Number {
        value: Expr,
        scope: Rc<Scope>,
    },
    /// Cells along an axis.
    Cells {
        value: Expr,
        scope: Rc<Scope>,
    },
    /// A condition on the place, which is known once the domain is.
    Region {
        region: Rc<ast::Region>,
        scope: Rc<Scope>,
    },
    /// A static field, which is known once the domain is.
    Coef {
        coef: Rc<ast::Coef>,
        scope: Rc<Scope>,
    },
}

/// A parameter that a problem or a command line sets.
pub struct GivenParam {
    pub name: String,
    /// Where the name stands in the problem; absent: on the command line.
    pub named: Option<Span>,
    pub value: Expr,
    pub scope: Rc<Scope>,
    pub used: bool,
}

/// A coefficient that a problem sets.
#[derive(Clone)]
pub struct GivenCoef {
    pub name: Name,
    pub component: Option<Name>,
    pub value: Expr,
    pub scope: Rc<Scope>,
    pub used: bool,
}

/// A name: its value is computed when it is first needed, so the order of definitions does not matter.
#[derive(Clone)]
pub enum Named {
    Open(Definition),
    /// Being computed: a value that needs it now is part of a circle.
    Running,
    Known(Value),
}

/// Names with their meanings.
#[derive(Default)]
pub struct Names {
    table: BTreeMap<String, Named>,
    /// Where names are defined.
    places: BTreeMap<String, Place>,
    /// Names that an expression has used.
    used: BTreeSet<String>,
}

impl Names {
    pub fn get(&self, name: &str) -> Option<&Named> {
        self.table.get(name)
    }

    pub fn value(&self, name: &str) -> Option<&Value> {
        match self.table.get(name) {
            Some(Named::Known(value)) => Some(value),
            _ => None,
        }
    }

    pub fn contains(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    pub fn set(&mut self, name: &str, named: Named) {
        self.table.insert(name.to_string(), named);
    }

    /// Takes a new name in. A name that is taken gives the place of its first definition.
    pub fn introduce(&mut self, name: &str, place: Place, named: Named) -> Result<(), Place> {
        if let Some(first) = self.places.get(name) {
            return Err(first.clone());
        }
        self.places.insert(name.to_string(), place);
        self.set(name, named);
        Ok(())
    }

    pub fn place(&self, name: &str) -> Option<Place> {
        self.places.get(name).cloned()
    }

    pub fn note_use(&mut self, name: &str) {
        if !self.used.contains(name) {
            self.used.insert(name.to_string());
        }
    }

    pub fn is_used(&self, name: &str) -> bool {
        self.used.contains(name)
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.table.keys().map(String::as_str)
    }
}

/// The scheme at hand.
#[derive(Default)]
pub struct Frame {
    pub name: String,
    /// All declarations of the scheme.
    pub axes: Vec<(String, Axis)>,
    /// The axes along which the domain has no extent, so that nothing depends on them: the last ones.
    pub absent: Vec<Axis>,
    pub names: Names,
    /// Names of the problem.
    pub problem: Names,
    pub extents: Names,
    pub params: Vec<String>,
    pub given_coefs: Vec<GivenCoef>,
    pub fields: Vec<FieldFacts>,
    pub components: Vec<Component>,
    /// Kinds of sides that the scheme names, with the components that are odd about them.
    pub sides: BTreeMap<String, BTreeSet<ComponentId>>,
    /// The words with which the problem states its sides.
    pub stated: PerAxis<[Option<String>; 2]>,
    pub dt: f64,
    pub grid: Option<Grid>,
    /// Whether the grid is that of a problem.
    pub has_domain: bool,
    /// The right-hand sides from which stages are made.
    pub statements: Vec<Place>,
    /// Axes for whose cell size there is no parameter, and whether there is none for the step: they are 1.
    pub unsized_axes: PerAxis<bool>,
    pub no_step: bool,
    /// Axes along which differences are taken.
    pub differences: PerAxis<bool>,
    /// The layers at the sides of the domain.
    pub layers: PerAxis<[Option<Rc<SideLayer>>; 2]>,
    /// The wave numbers of Bloch-periodic axes.
    pub bloch: PerAxis<Option<f64>>,
    /// Whether the second half of the components are the imaginary parts of the first.
    pub paired: bool,
    /// The scheme as it would be with periodic sides, where these have a phase.
    pub without_phases: Option<Scheme>,
    /// Whether a layer takes the speed of the fastest waves.
    pub asks_speed: bool,
    /// Axes along which layers have changed a difference.
    pub layered: PerAxis<bool>,
    pub zones: Vec<ZoneFacts>,
    /// Axes whose coordinates are used.
    pub coordinates: PerAxis<bool>,
}

impl Frame {
    pub fn table(&mut self, table: Table) -> &mut Names {
        match table {
            Table::Problem => &mut self.problem,
            Table::Scheme => &mut self.names,
            Table::Extents => &mut self.extents,
        }
    }

    pub fn axis(&self, name: &str) -> Option<Axis> {
        self.axes.iter().find(|(n, _)| n == name).map(|(_, a)| *a)
    }

    pub fn is_present(&self, axis: Axis) -> bool {
        self.axes.iter().any(|(_, a)| *a == axis) && !self.absent.contains(&axis)
    }

    /// The axes along which the domain has an extent.
    pub fn present(&self) -> Vec<(String, Axis)> {
        let present = |(_, axis): &&(String, Axis)| !self.absent.contains(axis);
        self.axes.iter().filter(present).cloned().collect()
    }

    pub fn name_of(&self, axis: Axis) -> String {
        let found = self.axes.iter().find(|(_, a)| *a == axis);
        found.map_or(String::new(), |(name, _)| name.clone())
    }

    /// The component whose statement updates this one: of an imaginary part the real one.
    pub fn real_part(&self, component: ComponentId) -> ComponentId {
        let half = self.components.len() as u32 / 2;
        match self.paired && component.0 >= half {
            true => ComponentId(component.0 - half),
            false => component,
        }
    }

    pub fn field_of(&self, component: ComponentId) -> Option<usize> {
        self.fields
            .iter()
            .position(|f| f.components.contains(&component))
    }

    /// `[1/2, 0, 0]`
    pub fn show(&self, position: Position) -> String {
        let parts: Vec<String> = self
            .axes
            .iter()
            .map(|(_, a)| position[*a].to_string())
            .collect();
        format!("[{}]", parts.join(", "))
    }

    /// Pairs of axes, by their place in the scheme's list.
    pub fn tensor_pairs(&self) -> &'static [(usize, usize)] {
        match self.axes.len() {
            0 => &[],
            1 => &[(0, 0)],
            2 => &[(0, 0), (1, 1), (0, 1)],
            _ => &[(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)],
        }
    }

    pub fn tensor_names(&self) -> Vec<String> {
        self.tensor_pairs()
            .iter()
            .map(|&(a, b)| format!("{}{}", self.axes[a].0, self.axes[b].0))
            .collect()
    }

    /// The component that a name means, in either order of its axes.
    pub fn tensor_index(&self, name: &str) -> Option<usize> {
        let axes = &self.axes;
        self.tensor_pairs().iter().position(|&(a, b)| {
            let (a, b) = (&axes[a].0, &axes[b].0);
            name == format!("{a}{b}") || name == format!("{b}{a}")
        })
    }

    /// The component of a field with this name behind the dot.
    pub fn component_of(&self, field: &FieldFacts, name: &str) -> Option<ComponentId> {
        let index = match field.kind {
            Kind::Tensor => self.tensor_index(name),
            _ => field.names.iter().position(|own| own == name),
        };
        field.components.get(index?).copied()
    }
}
