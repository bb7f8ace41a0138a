//! Where and when the values of a component are, as files say it.

use crate::output::vtk;
use crate::output::zarr::{Attributes, Dimension};
use torre_compiler::lattice::{Position, Region};
use torre_compiler::scheme::{ComponentId, Scheme};
use torre_compiler::statics::coordinate;

/// The attributes of a store for a scheme.
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

/// The axes of a box of values that lie at a position of their cells.
pub fn dimensions(scheme: &Scheme, position: Position, region: Region) -> Vec<Dimension> {
    let present = scheme.grid.present();
    present
        .map(|axis| Dimension {
            name: scheme.grid.axis_name(axis).to_owned(),
            start: coordinate(&scheme.grid, axis, position[axis], region[axis].lo),
            spacing: scheme.grid.spacing[axis],
            units: None,
        })
        .collect()
}

/// Where the values of a box lie, for ParaView.
pub fn vtk_grid(
    scheme: &Scheme,
    position: Position,
    region: Region,
    time: Option<f64>,
) -> vtk::Grid {
    let dimensions = dimensions(scheme, position, region);
    let axis =
        |i: usize, f: fn(&Dimension) -> f64, absent: f64| dimensions.get(i).map_or(absent, f);
    vtk::Grid {
        axes: std::array::from_fn(|i| i < dimensions.len()),
        origin: std::array::from_fn(|i| axis(i, |d| d.start, 0.0)),
        spacing: std::array::from_fn(|i| axis(i, |d| d.spacing, 1.0)),
        time,
    }
}
