//! Where and when the values of a component are, as files say it.

use crate::output::zarr::{Attributes, Dimension};
use torre_compiler::scheme::{ComponentId, Scheme};
use torre_compiler::statics::coordinate;

/// What a store says of a scheme.
pub fn attributes(scheme: &Scheme) -> Attributes {
    let mut attributes = Attributes::new();
    attributes.insert("scheme".into(), scheme.name.clone().into());
    attributes.insert("dt".into(), scheme.grid.dt.into());
    attributes
}

/// Where the values of a component lie in a cell, in the order of axes, and by how much of a step they are earlier than
/// the end of a step.
pub fn staggering(scheme: &Scheme, id: ComponentId) -> Attributes {
    let component = scheme.component(id);
    let axes = scheme.grid.present();
    let stagger: Vec<f64> = axes.map(|a| component.position[a].as_f64()).collect();
    let mut attributes = Attributes::new();
    attributes.insert("stagger".into(), stagger.into());
    attributes.insert("time_stagger".into(), component.time.as_f64().into());
    attributes
}

/// The positions of a component along the axes that there are.
pub fn dimensions(scheme: &Scheme, id: ComponentId) -> Vec<Dimension> {
    let position = scheme.component(id).position;
    let present = scheme.grid.present();
    present
        .map(|axis| Dimension {
            name: scheme.grid.axis_name(axis).to_owned(),
            start: coordinate(&scheme.grid, axis, position[axis], 0),
            spacing: scheme.grid.spacing[axis],
            units: None,
        })
        .collect()
}
