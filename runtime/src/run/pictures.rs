//! Slices and probes as pictures.

use super::places::dimensions;
use super::simulation::{Simulation, Value};
use crate::host::receivers::{Picture, slice_shape};
use crate::output::picture::{AxisText, LinePlot, PictureAxis, Scale, Series, SlicePicture};
use crate::output::probes::ProbeTable;
use crate::output::{FileError, Rows, View};
use std::path::Path;
use torre_compiler::lattice::{Axis, Interval, PerAxis, Position, Region};
use torre_compiler::problem::{Output, OutputKind, StaticOutput};
use torre_compiler::real::Real;
use torre_compiler::reference::for_each_index;
use torre_compiler::scheme::Scheme;
use torre_compiler::statics::{coordinate, physical_time};

/// What a slice shows.
pub struct Drawing {
    /// What the values are.
    name: String,
    /// Where values lie in their cells.
    position: Position,
    /// One index along the axis that the plane is across.
    region: Region,
    axis: Axis,
    /// Step and time, of what changes.
    when: Option<(u64, f64)>,
}

impl Drawing {
    /// A recorded slice: the part that the output asks for, and its values.
    pub fn of_picture(scheme: &Scheme, output: &Output, picture: &Picture) -> (Drawing, Vec<f64>) {
        let component = scheme.component(output.component);
        let time = physical_time(scheme, output.component, picture.step as i64);
        let drawing = Drawing {
            name: component.name.clone(),
            position: component.position,
            region: output.region,
            axis: across(output.kind),
            when: Some((picture.step, time)),
        };
        let mut whole = scheme.extent(output.component);
        whole[drawing.axis] = output.region[drawing.axis];
        let mut values = Vec::with_capacity(output.region.volume() as usize);
        let mut all = picture.values.iter();
        for_each_index(whole, |at| {
            if let Some(value) = all.next()
                && output.region.contains(at)
            {
                values.push(*value);
            }
        });
        (drawing, values)
    }

    /// A plane of what does not change.
    pub fn of_static(output: &StaticOutput) -> Drawing {
        Drawing {
            name: output.name.split('-').next().unwrap_or("").to_owned(),
            position: output.position,
            region: output.region,
            axis: across(output.kind),
            when: None,
        }
    }

    /// Values per axis of the plane; a slice of a scheme with one axis is a single value.
    pub fn shape(&self, scheme: &Scheme) -> Vec<usize> {
        let axes = scheme.grid.present().filter(|a| *a != self.axis);
        let shape: Vec<usize> = axes.map(|a| self.region[a].len() as usize).collect();
        match shape.is_empty() {
            true => vec![1],
            false => shape,
        }
    }

    /// Draws a plane as a colour map, a line as a curve; false for a single value, which has no picture.
    pub fn write<T: Value>(
        &self,
        path: &Path,
        scheme: &Scheme,
        view: &View<'_, T>,
    ) -> Result<bool, FileError> {
        let grid = &scheme.grid;
        let text = |name: &str| AxisText {
            name: name.to_owned(),
            units: String::new(),
        };
        let axes: Vec<PictureAxis> = grid
            .present()
            .zip(dimensions(scheme, self.position, self.region))
            .filter(|(a, _)| *a != self.axis)
            .map(|(_, d)| PictureAxis {
                text: text(&d.name),
                start: d.start,
                spacing: d.spacing,
            })
            .collect();
        let index = self.region[self.axis].lo;
        let at = coordinate(grid, self.axis, self.position[self.axis], index);
        let when = self.when.map_or(String::new(), |(step, time)| {
            format!("step {step}, time {time:.4e}, ")
        });
        let title = self.name.clone();
        let subtitle = format!("{when}{} = {at:.4e}", grid.axis_name(self.axis));
        match &axes[..] {
            [across, up] => SlicePicture {
                title,
                subtitle,
                across: across.clone(),
                up: up.clone(),
                quantity: text(&self.name),
                scale: Scale::Auto,
            }
            .write(path, view)
            .map(|()| true),
            [across] => {
                let mut values = vec![T::default(); view.shape().iter().product()];
                view.read(&[0], &mut values);
                let place = |i: usize| across.start + i as f64 * across.spacing;
                let points = values.iter().enumerate();
                LinePlot {
                    title,
                    subtitle,
                    across: across.text.clone(),
                    up: text(&self.name),
                    series: vec![Series {
                        name: self.name.clone(),
                        points: points.map(|(i, v)| (place(i), Real::to_f64(*v))).collect(),
                    }],
                }
                .write(path)
                .map(|()| true)
            }
            _ => Ok(false),
        }
    }
}

/// The axis that a slice is across; a volume is across none, for which any axis does.
fn across(kind: OutputKind) -> Axis {
    match kind {
        OutputKind::Slice { axis, .. } => axis,
        OutputKind::Volume => Axis::INNER,
    }
}

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

/// Draws values over time, each at the steps after which it is due.
pub fn plot<T: Value>(
    path: &Path,
    title: String,
    table: &ProbeTable<T>,
    steps: &[u64],
    every: &[u64],
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
            .zip(steps)
            .filter(|(_, step)| step.is_multiple_of(every[column]))
            .map(|(point, _)| point)
            .collect(),
    };
    LinePlot {
        title,
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
