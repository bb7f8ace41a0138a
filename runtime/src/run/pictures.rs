//! Slices and probes as pictures.

use super::places::dimensions;
use super::simulation::{Simulation, Value};
use crate::host::hooks::{Picture, slice_shape};
use crate::output::picture::{AxisText, LinePlot, PictureAxis, Scale, Series, SlicePicture};
use crate::output::probes::ProbeTable;
use crate::output::{FileError, View};
use std::path::Path;
use torre_compiler::lattice::{Interval, PerAxis};
use torre_compiler::problem::{Output, OutputKind};
use torre_compiler::real::Real;
use torre_compiler::reference::for_each_index;
use torre_compiler::scheme::Scheme;
use torre_compiler::statics::{coordinate, physical_time};

/// The values of a slice before the first step.
pub fn start_picture<T: Value>(
    simulation: &dyn Simulation<T>,
    number: usize,
    output: &Output,
) -> Option<Picture> {
    let OutputKind::Slice { axis, index } = output.kind else {
        return None;
    };
    let (scheme, id) = (simulation.scheme(), output.component);
    let mut region = scheme.extent(id);
    region[axis] = Interval::new(index, index + 1);
    let mut values = Vec::with_capacity(region.volume() as usize);
    for_each_index(region, |PerAxis([x, y, z])| {
        values.push(Real::to_f64(simulation.row(id, 0, x, y)[z as usize]));
    });
    Some(Picture {
        output: number,
        step: simulation.steps(),
        shape: slice_shape(scheme, id, axis),
        values,
    })
}

/// Draws all probes over time.
pub fn plot<T: Value>(
    path: &Path,
    simulation: &dyn Simulation<T>,
    table: &ProbeTable<T>,
) -> Result<(), FileError> {
    let text = |name: &str| AxisText {
        name: name.to_owned(),
        units: String::new(),
    };
    let curve = |(column, name): (usize, &String)| Series {
        name: name.clone(),
        points: table
            .times()
            .iter()
            .zip(table.column(column))
            .map(|(t, v)| (*t, Real::to_f64(v)))
            .collect(),
    };
    LinePlot {
        title: format!("Probes of {}", simulation.problem().name),
        subtitle: String::new(),
        across: text("time"),
        up: text(match &table.names[..] {
            [name] => name,
            _ => "value",
        }),
        series: table.names.iter().enumerate().map(curve).collect(),
    }
    .write(path)
}

/// Draws a slice: a plane as a colour map, a line as a curve; false for a single value, which has no picture.
pub fn draw<T: Value>(
    path: &Path,
    scheme: &Scheme,
    output: &Output,
    picture: &Picture,
    view: &View<'_, T>,
) -> Result<bool, FileError> {
    let OutputKind::Slice { axis, index } = output.kind else {
        return Ok(false);
    };
    let id = output.component;
    let (grid, component) = (&scheme.grid, scheme.component(id));
    let text = |name: &str| AxisText {
        name: name.to_owned(),
        units: String::new(),
    };
    let axes: Vec<PictureAxis> = grid
        .present()
        .zip(dimensions(scheme, id))
        .filter(|(a, _)| *a != axis)
        .map(|(_, d)| PictureAxis {
            text: text(&d.name),
            start: d.start,
            spacing: d.spacing,
        })
        .collect();
    let at = coordinate(grid, axis, component.position[axis], index);
    let time = physical_time(scheme, id, picture.step as i64);
    let title = component.name.clone();
    let subtitle = format!(
        "step {}, time {time:.4e}, {} = {at:.4e}",
        picture.step,
        grid.axis_name(axis)
    );
    match &axes[..] {
        [across, up] => SlicePicture {
            title,
            subtitle,
            across: across.clone(),
            up: up.clone(),
            quantity: text(&component.name),
            scale: Scale::Auto,
        }
        .write(path, view)
        .map(|()| true),
        [across] => {
            let point = |(i, v): (usize, &f64)| (across.start + i as f64 * across.spacing, *v);
            LinePlot {
                title,
                subtitle,
                across: across.text.clone(),
                up: text(&component.name),
                series: vec![Series {
                    name: component.name.clone(),
                    points: picture.values.iter().enumerate().map(point).collect(),
                }],
            }
            .write(path)
            .map(|()| true)
        }
        _ => Ok(false),
    }
}
