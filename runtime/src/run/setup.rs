//! A picture of a calculation before its first step: media, regions, sources, probes, outputs and the ends of the
//! domain, in the plane of two axes, in three planes through the middle, or along one axis.

use super::outlines::{Outlines, Sampled};
use super::pictures::Shown;
use crate::output::View;
use crate::output::picture::canvas::{Line, Style};
use crate::output::picture::colour::{ColourMap, INK, LINES, Rgb, SOFT, WHITE};
use crate::output::picture::slice::Panel;
use crate::output::picture::{AxisText, Canvas, Edge, PictureAxis, Scale, SlicePicture, Spread};
use torre_compiler::lattice::{Axis, HalfIndex, Interval, PerAxis, Position, Region};
use torre_compiler::problem::{Medium, OutputKind, Problem, Source};
use torre_compiler::scheme::{Boundary, Scheme};
use torre_compiler::statics::{Files, coef_value};

const SOURCE: Rgb = LINES[1];
const PROBE: Rgb = LINES[0];
const OUTPUT: Rgb = LINES[2];

/// Values of a medium along an axis, at the most: pictures show no more.
const MOST: i64 = 1280;
/// With more of them, probes have no names in the picture.
const MOST_NAMES: usize = 12;
const MARGIN: usize = 20;
const ROW: usize = 24;

/// The words with which a problem states its sides, where it does.
pub type Sides = PerAxis<[Option<String>; 2]>;

/// Draws a calculation as it is set up.
pub fn setup(
    scheme: &Scheme,
    problem: &Problem,
    sides: &Sides,
    files: &dyn Files,
    down: Option<Axis>,
) -> Canvas {
    let setup = Setup {
        scheme,
        problem,
        sides,
        files,
        medium: coloured(scheme, problem, files),
    };
    let planes = planes(scheme).into_iter().map(|p| p.pointing(down));
    let panels: Vec<Canvas> = planes.map(|p| setup.panel(&p)).collect();
    let head = MARGIN + 2 * ROW + 4;
    let across: usize = panels.iter().map(Canvas::width).sum();
    let high = panels.iter().map(Canvas::height).max().unwrap_or(0);
    let texts = [setup.title(), setup.ends()];
    let legend = setup.legend();
    let legend_width: usize = legend.iter().map(|(_, text)| entry_width(text)).sum();
    let widest = [
        Style::TITLE.width(&texts[0]) + 2 * MARGIN,
        Style::NOTE.width(&texts[1]) + 2 * MARGIN,
        legend_width + MARGIN,
        across,
    ];
    let width = widest.into_iter().max().unwrap_or(0);
    let mut canvas = Canvas::new(width, head + high + ROW + MARGIN);
    let at = |n: usize| n as f32;
    canvas.text(&texts[0], at(MARGIN), at(MARGIN + 12), Style::TITLE);
    canvas.text(&texts[1], at(MARGIN), at(MARGIN + 12 + ROW), Style::NOTE);
    let mut left = 0;
    for panel in &panels {
        canvas.place(panel, left, head);
        left += panel.width();
    }
    let (mut x, y) = (MARGIN, head + high + 12);
    for (colour, text) in &legend {
        canvas.disc((at(x) + 6.0, at(y) - 5.0), 5.0, *colour);
        canvas.text(text, at(x) + 18.0, at(y), Style::LABEL);
        x += entry_width(text);
    }
    canvas
}

fn entry_width(text: &str) -> usize {
    Style::LABEL.width(text) + 18 + 26
}

/// The planes that are drawn: all of a domain with one or two axes, three through the middle of one with three.
fn planes(scheme: &Scheme) -> Vec<Shown> {
    let grid = &scheme.grid;
    let present: Vec<Axis> = grid.present().collect();
    let position = Position::from_fn(|a| HalfIndex(i64::from(present.contains(&a))));
    let whole = grid.extent(position);
    let plane = |normal: Option<Axis>| {
        let mut region = whole;
        if let Some(normal) = normal {
            let middle = grid.cells[normal] / 2;
            region[normal] = Interval::new(middle, middle + 1);
        }
        Shown {
            name: String::new(),
            position,
            region,
            axes: present
                .iter()
                .copied()
                .filter(|a| Some(*a) != normal)
                .collect(),
            down: None,
        }
    };
    match present.len() {
        3 => present.iter().rev().map(|a| plane(Some(*a))).collect(),
        _ => vec![plane(None)],
    }
}

/// The medium that gives colours: the first one with more values than yes and no, or the first one.
fn coloured<'a>(scheme: &Scheme, problem: &'a Problem, files: &dyn Files) -> Option<&'a Medium> {
    let planes = planes(scheme);
    let values = |medium: &Medium| -> Vec<f64> {
        let sampled = planes.iter().map(|p| Sampled::of(scheme, medium, files, p));
        sampled.flat_map(|s| s.values).collect()
    };
    let is_region = |medium: &&Medium| values(medium).iter().all(|v| *v == 0.0 || *v == 1.0);
    let media = &problem.media;
    media.iter().find(|m| !is_region(m)).or(media.first())
}

struct Setup<'a> {
    scheme: &'a Scheme,
    problem: &'a Problem,
    sides: &'a Sides,
    files: &'a dyn Files,
    medium: Option<&'a Medium>,
}

/// Light colours, on which marks can be seen, for all values.
fn background(spread: Option<Spread>) -> Scale {
    let scale = spread.map_or(Scale::UNIT, Spread::whole_scale);
    match scale.map {
        ColourMap::Diverging => scale,
        _ => Scale {
            map: ColourMap::Pale,
            ..scale
        },
    }
}

/// A plane that is being drawn: cells are shown in blocks where there are many.
struct Plane<'a> {
    shown: &'a Shown,
    /// Cells of a block, per shown axis.
    block: [i64; 2],
    panel: Panel,
}

impl Setup<'_> {
    fn title(&self) -> String {
        let grid = &self.scheme.grid;
        let cells: Vec<String> = grid.present().map(|a| grid.cells[a].to_string()).collect();
        let steps = self.problem.steps;
        format!(
            "{}: {}, {} cells, {steps} step{}",
            self.problem.name,
            self.scheme.name,
            cells.join(" \u{d7} "),
            if steps == 1 { "" } else { "s" }
        )
    }

    /// The boundaries of the domain in words.
    fn ends(&self) -> String {
        let grid = &self.scheme.grid;
        let side = |axis: Axis| {
            let stated = self.sides[axis].iter().zip(grid.boundary[axis]);
            let words = stated.map(|(stated, b)| stated.clone().unwrap_or_else(|| b.to_string()));
            let words: Vec<String> = words.collect();
            let [low, high] = [&words[0], &words[1]];
            match low == high {
                true => format!("{}: {low}", grid.axis_name(axis)),
                false => format!("{}: {low} | {high}", grid.axis_name(axis)),
            }
        };
        let sides: Vec<String> = grid.present().map(side).collect();
        format!("ends  {}", sides.join(", "))
    }

    /// The meaning of the colours of marks.
    fn legend(&self) -> Vec<(Rgb, String)> {
        let Problem {
            incidents,
            sources,
            probes,
            state_probes,
            outputs,
            media,
            ..
        } = self.problem;
        let mut legend = Vec::new();
        let boxes = incidents.iter().any(|incident| !incident.boxes.is_empty());
        match (sources.is_empty(), boxes) {
            (true, false) => {}
            (false, false) => legend.push((SOURCE, "source".to_owned())),
            (true, true) => legend.push((SOURCE, "dotted: total field".to_owned())),
            (false, true) => legend.push((SOURCE, "source, dotted: total field".to_owned())),
        }
        if !probes.is_empty() || !state_probes.is_empty() {
            legend.push((PROBE, "probe".to_owned()));
        }
        if !outputs.is_empty() {
            legend.push((OUTPUT, "output".to_owned()));
        }
        let names: Vec<&str> = media.iter().map(|m| m.name.as_str()).collect();
        if !names.is_empty() {
            legend.push((SOFT, format!("lines: {}", names.join(", "))));
        }
        legend
    }

    fn panel(&self, shown: &Shown) -> Canvas {
        let cells = [0, 1].map(|i| shown.axes.get(i).map_or(1, |a| shown.region[*a].len()));
        let block = [(cells[0].max(cells[1]) - 1).div_euclid(MOST) + 1; 2];
        let count = [0, 1].map(|i| ((cells[i] - 1).div_euclid(block[i]) + 1) as usize);
        let values = self.values(shown, block, count);
        let spread = Spread::of(values.iter().copied());
        let axis = |i: usize| match shown.axes.get(i) {
            Some(axis) => {
                let cells = shown.picture_axis(self.scheme, *axis);
                PictureAxis {
                    start: cells.start + (block[i] - 1) as f64 / 2.0 * cells.spacing,
                    spacing: cells.spacing * block[i] as f64,
                    ..cells
                }
            }
            None => PictureAxis {
                text: AxisText::of(""),
                start: 0.0,
                spacing: 1.0,
            },
        };
        let picture = SlicePicture {
            title: String::new(),
            subtitle: shown.subtitle(self.scheme, None, &Outlines::default()),
            across: axis(0),
            up: axis(1),
            downward: shown.downward(),
            true_shape: shown.axes.len() > 1,
            quantity: self.medium.map(|medium| AxisText::of(&medium.name)),
            scale: background(spread),
            edges: Vec::new(),
            room: 0,
        };
        let view = View::contiguous(&values, &count);
        let Some(panel) = view.and_then(|view| picture.draw(&view)) else {
            return Canvas::new(1, 1);
        };
        let mut plane = Plane {
            shown,
            block,
            panel,
        };
        for medium in &self.problem.media {
            let edges = Sampled::of(self.scheme, medium, self.files, shown).edges();
            for edge in edges {
                let [from, to] = [edge.from, edge.to].map(|p| plane.blocks(p));
                plane.panel.draw_edges(&[Edge { from, to }]);
            }
        }
        self.draw_outputs(&mut plane);
        self.draw_boxes(&mut plane);
        for source in &self.problem.sources {
            self.draw_source(&mut plane, source);
        }
        self.draw_probes(&mut plane);
        self.draw_ends(&mut plane);
        plane.panel.canvas
    }

    /// The medium in the middle of blocks.
    fn values(&self, shown: &Shown, block: [i64; 2], count: [usize; 2]) -> Vec<f64> {
        let Some(medium) = self.medium else {
            return vec![0.0; count[0] * count[1]];
        };
        let extent = self.scheme.grid.extent(medium.position);
        let nearest = |axis: Axis, index: i64| {
            let place = HalfIndex::cells(index) + shown.position[axis] - medium.position[axis];
            place.0.div_euclid(2).clamp(0, extent[axis].hi - 1)
        };
        let mut at = PerAxis::from_fn(|a| nearest(a, shown.region[a].lo));
        let mut values = Vec::with_capacity(count[0] * count[1]);
        for i in 0..count[0] as i64 {
            for j in 0..count[1] as i64 {
                for (n, (axis, number)) in shown.axes.iter().zip([i, j]).enumerate() {
                    at[*axis] = nearest(*axis, number * block[n] + block[n] / 2);
                }
                let (scheme, position) = (self.scheme, medium.position);
                values.push(coef_value(scheme, self.files, position, &medium.value, at));
            }
        }
        values
    }

    /// Where a source acts: a disc for one value, otherwise the sides of its box, or of where its condition holds.
    fn draw_source(&self, plane: &mut Plane<'_>, source: &Source) {
        let component = self.scheme.component(source.component);
        let (region, position) = (source.region, component.position);
        let whole = self.scheme.grid.live(position);
        if let Some(condition) = &source.condition {
            let medium = Medium {
                name: String::new(),
                position,
                value: condition.clone(),
            };
            let sampled = Sampled::of(self.scheme, &medium, self.files, plane.shown);
            for edge in sampled.edges() {
                plane.line(&[edge.from, edge.to], Line::new(2.0, SOURCE));
            }
            let lies = sampled.values.iter().any(|v| *v != 0.0);
            if lies || region == whole {
                return;
            }
        }
        plane.draw_box(region, position, Line::new(2.0, SOURCE));
        if region != whole {
            plane.name(region, position, &component.name);
        }
    }

    /// The faces of boxes of total fields.
    fn draw_boxes(&self, plane: &mut Plane<'_>) {
        let dotted = Line {
            weight: 1.6,
            colour: SOURCE,
            dash: Some(3.0),
        };
        for of in self.problem.incidents.iter().flat_map(|i| &i.boxes) {
            let region = of.ends.map(|[lo, hi]| Interval::new(lo, hi + 1));
            plane.draw_box(region, PerAxis::splat(HalfIndex::ZERO), dotted);
        }
    }

    fn draw_probes(&self, plane: &mut Plane<'_>) {
        let probes = self.problem.probes.iter();
        let probes = probes.map(|p| {
            let position = self.scheme.component(p.component).position;
            (&p.name, position, p.at)
        });
        let states = self.problem.state_probes.iter();
        let states = states.map(|p| {
            let position = self.scheme.states[p.state.index()].position;
            (&p.name, position, p.at)
        });
        let all: Vec<_> = probes.chain(states).collect();
        for (name, position, at) in &all {
            let region = at.map(|i| Interval::new(i, i + 1));
            plane.draw_box(region, *position, Line::new(2.0, PROBE));
            if all.len() <= MOST_NAMES {
                plane.name(region, *position, name);
            }
        }
    }

    /// Planes are lines where they cross this one; boxes have their sides. An output of the whole grid has none.
    fn draw_outputs(&self, plane: &mut Plane<'_>) {
        let dashed = Line {
            weight: 1.6,
            colour: OUTPUT,
            dash: Some(6.0),
        };
        for output in &self.problem.outputs {
            let position = self.scheme.component(output.component).position;
            let extent = self.scheme.grid.extent(position);
            let covers = |a: &Axis| output.region[*a] == extent[*a];
            let crosses = match output.kind {
                OutputKind::Slice { axis, .. } => plane.shown.axes.contains(&axis),
                OutputKind::Volume => false,
            };
            if crosses || !plane.shown.axes.iter().all(covers) {
                plane.draw_box(output.region, position, dashed);
            }
        }
    }

    /// Periodic ends are dashed.
    fn draw_ends(&self, plane: &mut Plane<'_>) {
        let [left, top, right, bottom] = plane.panel.clip();
        let canvas = &mut plane.panel.canvas;
        let all = [0, 0, canvas.width(), canvas.height()];
        for (i, axis) in plane.shown.axes.iter().enumerate() {
            for (side, end) in self.scheme.grid.boundary[*axis].iter().enumerate() {
                let [x, y] = match (i, side) {
                    (0, 0) => [[left; 2], [top, bottom]],
                    (0, _) => [[right; 2], [top, bottom]],
                    (_, side) => match (side == 0) == plane.panel.downward {
                        true => [[left, right], [top; 2]],
                        false => [[left, right], [bottom; 2]],
                    },
                };
                let points = [0, 1].map(|n| (x[n] as f32, y[n] as f32));
                let line = match end {
                    Boundary::Periodic => Line {
                        weight: 3.0,
                        colour: WHITE,
                        dash: Some(7.0),
                    },
                    _ => Line::new(3.0, INK),
                };
                canvas.stroke(&[points.to_vec()], line, all);
            }
        }
    }
}

impl Plane<'_> {
    /// A place in cells from the first value, in blocks from the first one.
    fn blocks(&self, place: [f64; 2]) -> [f64; 2] {
        [0, 1].map(|i| {
            let block = self.block[i] as f64;
            (place[i] - (block - 1.0) / 2.0) / block
        })
    }

    fn line(&mut self, places: &[[f64; 2]], line: Line) {
        let points = places.iter().map(|p| self.panel.place(self.blocks(*p)));
        let points = points.collect();
        let clip = self.panel.clip();
        self.panel.canvas.stroke(&[points], line, clip);
    }

    /// The first and the last value of a box along the shown axes, in cells from the first value of the plane.
    fn span(&self, region: Region, position: Position) -> [[f64; 2]; 2] {
        [0, 1].map(|i| match self.shown.axes.get(i) {
            Some(&axis) => {
                let start =
                    HalfIndex::cells(self.shown.region[axis].lo) + self.shown.position[axis];
                let place = |n: i64| (HalfIndex::cells(n) + position[axis] - start).as_f64();
                [place(region[axis].lo), place(region[axis].hi - 1)]
            }
            // Of a line there is only one row.
            None => [0.0; 2],
        })
    }

    /// Whether a box meets the plane, to a cell.
    fn meets(&self, region: Region, position: Position) -> bool {
        Axis::ALL.iter().all(|&axis| {
            let place = HalfIndex::cells(self.shown.region[axis].lo) + self.shown.position[axis];
            let [low, high] = [region[axis].lo, region[axis].hi - 1]
                .map(|n| (HalfIndex::cells(n) + position[axis]).0);
            self.shown.axes.contains(&axis) || (low - 1..=high + 1).contains(&place.0)
        })
    }

    /// Draws a box: a disc for a single value, a line for a row of values, otherwise its sides. A box before or behind
    /// the plane is drawn thinner, a disc as a ring.
    fn draw_box(&mut self, region: Region, position: Position, line: Line) {
        let [[x0, x1], [y0, y1]] = self.span(region, position);
        let meets = self.meets(region, position);
        let line = Line {
            weight: if meets { line.weight } else { 1.0 },
            ..line
        };
        if x0 == x1 && y0 == y1 {
            let centre = self.panel.place(self.blocks([x0, y0]));
            self.panel.canvas.disc(centre, 5.5, WHITE);
            self.panel.canvas.disc(centre, 4.5, line.colour);
            if !meets {
                self.panel.canvas.disc(centre, 3.0, WHITE);
            }
            return;
        }
        let beyond = |first: f64, last: f64| if first == last { 0.0 } else { 0.5 };
        let (dx, dy) = (beyond(x0, x1), beyond(y0, y1));
        let (l, r, b, t) = (x0 - dx, x1 + dx, y0 - dy, y1 + dy);
        let corners = match dx == 0.0 || dy == 0.0 {
            true => vec![[l, b], [r, t]],
            false => vec![[l, b], [r, b], [r, t], [l, t], [l, b]],
        };
        self.line(&corners, line);
    }

    /// Writes a name beside a box, on white.
    fn name(&mut self, region: Region, position: Position, name: &str) {
        let [[_, x], [_, y]] = self.span(region, position);
        let (x, y) = self.panel.place(self.blocks([x, y]));
        let [left, top, right, bottom] = self.panel.clip().map(|n| n as f32);
        let width = Style::LABEL.width(name) as f32;
        let x = (x + 8.0).min(right - width - 3.0).max(left + 2.0);
        let y = (y - 6.0).min(bottom - 3.0).max(top + 13.0);
        let canvas = &mut self.panel.canvas;
        let corner = [(x - 2.0) as usize, (y - 11.0) as usize];
        canvas.fill(corner[0], corner[1], width as usize + 4, 14, WHITE);
        canvas.text(name, x, y, Style::LABEL);
    }
}
