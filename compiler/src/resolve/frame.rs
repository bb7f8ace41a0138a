//! The scheme at hand: its names, axes, fields and grid.

use super::report::Place;
use super::value::{Kind, Value};
use crate::lattice::{Axis, PerAxis, Position};
use crate::scheme::{Component, ComponentId, Grid};
use std::collections::BTreeMap;
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

impl FieldFacts {
    pub fn component(&self, name: &str) -> Option<ComponentId> {
        let find = |name: &str| self.names.iter().position(|n| n == name);
        let index = find(name).or_else(|| {
            // `S.yx` is `S.xy`.
            let swapped: String = name.chars().rev().collect();
            (self.kind == Kind::Tensor)
                .then(|| find(&swapped))
                .flatten()
        })?;
        self.components.get(index).copied()
    }
}

/// The scheme at hand.
#[derive(Default)]
pub struct Frame {
    pub name: String,
    pub axes: Vec<(String, Axis)>,
    /// Parameters, constants, fields, coefficients and axes.
    pub names: BTreeMap<String, Value>,
    pub params: Vec<String>,
    pub fields: Vec<FieldFacts>,
    pub components: Vec<Component>,
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
    /// Where each name is declared.
    pub spans: BTreeMap<String, Span>,
}

impl Frame {
    pub fn axis(&self, name: &str) -> Option<Axis> {
        self.axes.iter().find(|(n, _)| n == name).map(|(_, a)| *a)
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

    pub fn tensor_index(&self, name: &str) -> Option<usize> {
        let axes = &self.axes;
        self.tensor_pairs().iter().position(|&(a, b)| {
            let (a, b) = (&axes[a].0, &axes[b].0);
            name == format!("{a}{b}") || name == format!("{b}{a}")
        })
    }
}
