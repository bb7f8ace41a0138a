//! Outputs and probes as pictures: planes as colour maps, lines as curves.

use super::outlines::Outlines;
use super::places::dimensions;
use crate::output::picture::{
    AxisText, Canvas, Edge, LinePlot, PictureAxis, Scale, Series, SlicePicture, Spread, plain,
};
use crate::output::probes::ProbeTable;
use crate::output::{FileError, View};
use crate::simulation::{Picture, Simulation, Value, slice_shape};
use std::path::Path;
use torre_compiler::lattice::{Axis, Interval, PerAxis, Position, Region};
use torre_compiler::problem::{Output, OutputKind, StaticOutput};
use torre_compiler::real::Real;
use torre_compiler::reference::for_each_index;
use torre_compiler::scheme::Scheme;
use torre_compiler::statics::{coordinate, physical_time};

/// Where the values of a picture lie: in a plane or on a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The name of the values.
    pub name: String,
    /// Where values lie in their cells.
    pub position: Position,
    pub region: Region,
    /// The axes with more than one value: two, or one for a line.
    pub axes: Vec<Axis>,
    /// An axis that points downward where it is the second one.
    pub down: Option<Axis>,
}

/// The range of a picture's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// Of the colours of a plane.
    Plane(Scale),
    /// Of the vertical axis of a curve.
    Line([f64; 2]),
}

/// The vertical axis of rows above each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rows {
    /// Its quantity, such as time.
    pub over: &'static str,
    /// Of the first row.
    pub start: f64,
    pub spacing: f64,
}

/// A frame of an output: its step, and the time of its values in units of the program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct When {
    pub step: u64,
    pub time: f64,
}

impl Shown {
    /// An output; none if its values lie neither in a plane nor on a line.
    pub fn of_output(scheme: &Scheme, output: &Output) -> Option<Self> {
        let component = scheme.component(output.component);
        Self {
            name: output.quantity(scheme).to_owned(),
            position: component.position,
            region: output.region,
            axes: Vec::new(),
            down: None,
        }
        .with_axes(scheme)
    }

    /// A field that does not change.
    pub fn of_static(scheme: &Scheme, output: &StaticOutput) -> Option<Self> {
        Self {
            name: output.name.split('-').next().unwrap_or("").to_owned(),
            position: output.position,
            region: output.region,
            axes: Vec::new(),
            down: None,
        }
        .with_axes(scheme)
    }

    /// The moduli of a spectrum, whose values may be a single one.
    pub fn of_spectrum(scheme: &Scheme, output: &Output) -> Option<Self> {
        let shown = Self {
            name: format!("|{}|", output.quantity(scheme)),
            position: scheme.component(output.component).position,
            region: output.region,
            axes: Vec::new(),
            down: None,
        };
        match shown.count() {
            1 => Some(shown),
            _ => shown.with_axes(scheme),
        }
    }

    fn with_axes(mut self, scheme: &Scheme) -> Option<Self> {
        let long = |a: &Axis| self.region[*a].len() > 1;
        self.axes = scheme.grid.present().filter(long).collect();
        matches!(self.axes.len(), 1 | 2).then_some(self)
    }

    /// The same with an axis that points downward.
    pub fn pointing(self, down: Option<Axis>) -> Self {
        Self { down, ..self }
    }

    /// Whether the second axis points downward.
    pub fn downward(&self) -> bool {
        self.axes
            .get(1)
            .is_some_and(|axis| self.down == Some(*axis))
    }

    /// The number of values.
    pub fn count(&self) -> usize {
        self.region.volume() as usize
    }

    /// The step and the time of the values of an output after a step.
    pub fn when(scheme: &Scheme, output: &Output, step: u64) -> When {
        let time = physical_time(scheme, output.component, step as i64);
        When { step, time }
    }

    /// An axis of the picture.
    pub fn picture_axis(&self, scheme: &Scheme, axis: Axis) -> PictureAxis {
        let dimensions = dimensions(scheme, self.position, self.region);
        let all = scheme.grid.present().zip(dimensions);
        let found = all.into_iter().find(|(a, _)| *a == axis);
        let (start, spacing) = found.map_or((0.0, 1.0), |(_, d)| (d.start, d.spacing));
        PictureAxis {
            text: AxisText::of(scheme.grid.axis_name(axis)),
            start,
            spacing,
        }
    }

    /// The range of values as far as they are known.
    pub fn measure(&self, spread: Spread) -> Measure {
        match self.axes.len() {
            1 => Measure::Line(spread.whole()),
            _ => Measure::Plane(spread.inner_scale()),
        }
    }

    /// The second line: the step, the time, the plane, and which media have outlines.
    pub fn subtitle(&self, scheme: &Scheme, when: Option<When>, outlines: &Outlines) -> String {
        let mut parts = Vec::new();
        if let Some(When { step, time }) = when {
            parts.push(format!("step {step}"));
            parts.push(format!("time {}", plain(time)));
        }
        for axis in scheme.grid.present() {
            if !self.axes.contains(&axis) {
                let index = self.region[axis].lo;
                let at = coordinate(&scheme.grid, axis, self.position[axis], index);
                parts.push(format!("{} = {}", scheme.grid.axis_name(axis), plain(at)));
            }
        }
        let mut subtitle = parts.join(", ");
        if !outlines.names.is_empty() {
            let blank = if subtitle.is_empty() {
                ""
            } else {
                "  \u{b7}  "
            };
            subtitle += &format!("{blank}lines: {}", outlines.names.join(", "));
        }
        subtitle
    }

    /// Draws the values of a frame.
    pub fn draw(
        &self,
        scheme: &Scheme,
        values: &[f64],
        measure: Measure,
        subtitle: String,
        outlines: &Outlines,
        room: usize,
    ) -> Canvas {
        let title = self.name.clone();
        let axis = |i: usize| self.picture_axis(scheme, self.axes[i]);
        let scale = match measure {
            Measure::Plane(scale) => scale,
            Measure::Line(range) => {
                let across = axis(0);
                let place = |i: usize| across.start + i as f64 * across.spacing;
                let last = place(values.len().saturating_sub(1));
                let points = values.iter().enumerate();
                return LinePlot {
                    title,
                    subtitle,
                    up: AxisText::of(&self.name),
                    series: vec![Series {
                        name: self.name.clone(),
                        points: points.map(|(i, v)| (place(i), *v)).collect(),
                    }],
                    ranges: [Some([across.start, last]), Some(range)],
                    marks: outlines.marks.clone(),
                    across: across.text,
                }
                .draw();
            }
        };
        let picture = SlicePicture {
            title,
            subtitle,
            across: axis(0),
            up: axis(1),
            downward: self.downward(),
            true_shape: true,
            quantity: Some(AxisText::of(&self.name)),
            scale,
            edges: outlines.edges.clone(),
            room,
        };
        let shape = [0, 1].map(|i| self.region[self.axes[i]].len() as usize);
        let panel = View::contiguous(values, &shape).and_then(|view| picture.draw(&view));
        panel.map_or_else(|| Canvas::new(1, 1), |panel| panel.canvas)
    }

    /// Draws rows of values on a line above each other: `values` has the first row, then the next ones.
    pub fn diagram(
        &self,
        scheme: &Scheme,
        values: &[f64],
        scale: Scale,
        rows: Rows,
        outlines: &Outlines,
    ) -> Option<Canvas> {
        let across = self.picture_axis(scheme, *self.axes.first()?);
        let cells = self.count();
        let frames = values.len() / cells.max(1);
        let mut upward = Vec::with_capacity(values.len());
        for cell in 0..cells {
            upward.extend((0..frames).map(|frame| values[frame * cells + cell]));
        }
        let edge = |mark: &f64| {
            let x = (mark - across.start) / across.spacing;
            Edge {
                from: [x, -0.5],
                to: [x, frames as f64 - 0.5],
            }
        };
        let picture = SlicePicture {
            title: format!("{} over {}", self.name, rows.over),
            subtitle: self.subtitle(scheme, None, outlines),
            edges: outlines.marks.iter().map(edge).collect(),
            across,
            up: PictureAxis {
                text: AxisText::of(rows.over),
                start: rows.start,
                spacing: rows.spacing,
            },
            downward: false,
            true_shape: false,
            quantity: Some(AxisText::of(&self.name)),
            scale,
            room: 0,
        };
        let view = View::contiguous(&upward, &[cells, frames])?;
        picture.draw(&view).map(|panel| panel.canvas)
    }
}

/// The values of a recorded slice that its output asks for.
pub fn part_of(scheme: &Scheme, output: &Output, picture: &Picture) -> Vec<f64> {
    let mut whole = scheme.extent(output.component);
    if let OutputKind::Slice { axis, .. } = output.kind {
        whole[axis] = output.region[axis];
    }
    let mut values = Vec::with_capacity(output.region.volume() as usize);
    let mut all = picture.values.iter();
    for_each_index(whole, |at| {
        if let Some(value) = all.next()
            && output.region.contains(at)
        {
            values.push(*value);
        }
    });
    values
}

/// Values per axis of a slice; that of a scheme with one axis is a single value.
pub fn plane_shape(scheme: &Scheme, kind: OutputKind, region: Region) -> Vec<usize> {
    let across = match kind {
        OutputKind::Slice { axis, .. } => Some(axis),
        OutputKind::Volume => None,
    };
    let axes = scheme.grid.present().filter(|a| Some(*a) != across);
    let shape: Vec<usize> = axes.map(|a| region[a].len() as usize).collect();
    match shape.is_empty() {
        true => vec![1],
        false => shape,
    }
}

/// The values of a slice before the first step; `None` where it is taken from the values in every step.
#[inline(never)]
pub fn start_picture<T: Value>(
    simulation: &dyn Simulation<T>,
    number: usize,
    output: &Output,
) -> Option<Picture> {
    let OutputKind::Slice { axis, index } = output.kind else {
        return None;
    };
    if output.needs_values() {
        return None;
    }
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
#[inline(never)]
pub fn plot<T: Value>(
    path: &Path,
    title: String,
    table: &ProbeTable<T>,
    steps: &[u64],
    every: &[u64],
) -> Result<(), FileError> {
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
        across: AxisText::of("time"),
        up: AxisText::of(match &table.names[..] {
            [name] => name,
            _ => "value",
        }),
        series: table.names.iter().enumerate().map(curve).collect(),
        ranges: [None; 2],
        marks: Vec::new(),
    }
    .write(path)
}
