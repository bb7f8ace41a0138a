//! The places that a tile computes in each stage, seen from above: one panel per stage.

use super::shape::{Plane, cut};
use super::{Cut, Group, groups, names, tiles};
use crate::lattice::{Axis, HalfIndex, PerAxis};
use crate::scheme::Scheme;
use crate::svg::{
    FAINT, Frame, GREY, INK, Label, Mark, PALETTE, Svg, TILE, TILE_EDGE, fill, pale, stroke,
};

/// The contents of the panels.
#[derive(Clone, Debug)]
pub struct Footprint {
    /// To the right and upwards.
    pub axes: [Axis; 2],
    pub cuts: Vec<Cut>,
    /// The number of the tile along each cut.
    pub tile: Vec<i64>,
    /// Time indices.
    pub stages: std::ops::Range<i64>,
}

/// Tiles without an end are shown up to this distance, in cells.
const FAR: f64 = 24.0;
const PANELS_IN_ROW: usize = 2;

/// The footprint as an SVG document: the values with cell index 0 along the third axis.
pub fn footprint(scheme: &Scheme, view: &Footprint) -> String {
    let panels = Panels::new(scheme, view);
    let times = view.stages.clone();
    let rows = times.clone().count().max(1).div_ceil(panels.columns);
    let legend = CORNER[1] + rows as f64 * panels.pitch[1];
    let width = 64.0 + panels.columns as f64 * panels.pitch[0];
    let height = legend + 22.0 * (scheme.stages.len() + 1) as f64 + 4.0;
    let mut svg = Svg::new(width, height);
    for (number, time) in times.enumerate() {
        panels.draw(&mut svg, number, time);
    }
    draw_legend(&mut svg, scheme, &panels.groups, legend);
    svg.finish(&format!(
        "What a tile of {} computes in each stage",
        scheme.name
    ))
}

/// The depth of a place along a cut.
fn value(view: &Footprint, cut: &Cut, place: Plane, time: f64) -> f64 {
    let mut at = PerAxis::splat(0.0);
    for (axis, coordinate) in view.axes.into_iter().zip(place) {
        at[axis] = coordinate;
    }
    cut.at(at, time)
}

/// The polygon of a tile.
fn outline(view: &Footprint, tile: &[i64], time: f64) -> Vec<Plane> {
    let square = vec![[-FAR, -FAR], [FAR, -FAR], [FAR, FAR], [-FAR, FAR]];
    let pairs = view.cuts.iter().zip(tile);
    pairs.fold(square, |polygon, (c, &n)| {
        let above = cut(&polygon, |p| value(view, c, p, time) - n as f64);
        cut(&above, |p| (n + 1) as f64 - value(view, c, p, time))
    })
}

/// The upper left corner of the first panel, in pixels.
const CORNER: [f64; 2] = [58.0, 34.0];

/// Panels of the same size, which show the same places.
struct Panels<'a> {
    scheme: &'a Scheme,
    view: &'a Footprint,
    groups: Vec<Group>,
    /// The first and the last place to the right and upwards, in cells.
    x: [f64; 2],
    y: [f64; 2],
    /// Pixels of a cell, of a panel, and from one panel to the next.
    scale: f64,
    size: [f64; 2],
    pitch: [f64; 2],
    /// Panels beside each other.
    columns: usize,
}

impl<'a> Panels<'a> {
    fn new(scheme: &'a Scheme, view: &'a Footprint) -> Panels<'a> {
        let [ax, ay] = view.axes;
        let times = view.stages.clone();
        let columns = times.clone().count().clamp(1, PANELS_IN_ROW);
        let corners = times.flat_map(|k| outline(view, &view.tile, k as f64));
        let corners: Vec<Plane> = corners.collect();
        let range = |i: usize| {
            let lo = corners.iter().map(|p| p[i]).fold(f64::MAX, f64::min);
            let hi = corners.iter().map(|p| p[i]).fold(f64::MIN, f64::max);
            if lo > hi {
                [-1.0, 1.0]
            } else {
                [lo.floor() - 0.75, hi.ceil() + 0.75]
            }
        };
        let (x, y) = (range(0), range(1));
        let scale = (860.0 / (columns as f64 * (x[1] - x[0])))
            .min(420.0 / (y[1] - y[0]))
            .min(40.0);
        let size = [(x[1] - x[0]) * scale, (y[1] - y[0]) * scale];
        Panels {
            scheme,
            view,
            groups: groups(scheme, |c| {
                let position = scheme.component(c).position;
                (position[ax], position[ay])
            }),
            x,
            y,
            scale,
            size,
            pitch: [size[0] + 22.0, size[1] + 78.0],
            columns,
        }
    }

    /// The panel of a stage.
    fn draw(&self, svg: &mut Svg, number: usize, time: i64) {
        let [column, row] = [number % self.columns, number / self.columns];
        let frame = Frame {
            corner: [
                CORNER[0] + column as f64 * self.pitch[0],
                CORNER[1] + row as f64 * self.pitch[1],
            ],
            size: self.size,
            x: self.x,
            y: self.y,
        };
        frame.clip(svg);
        self.draw_tiles(svg, &frame, number, time);
        let inside = self.draw_values(svg, &frame, time);
        svg.unclip();
        frame.border(svg);
        let [right, up] = self.view.axes;
        let axis = |axis: Axis| format!("{} / cells", self.scheme.grid.axis_name(axis));
        frame.bottom_axis(svg, &axis(right));
        if column == 0 {
            frame.left_axis(svg, &axis(up));
        }
        let left = [frame.corner[0], frame.corner[1] - 9.0];
        let bold = Label {
            bold: true,
            ..Label::default()
        };
        svg.text(left, &format!("k = {time}"), bold);
        let right = [frame.corner[0] + frame.size[0], left[1]];
        let label = Label {
            anchor: "end",
            colour: GREY,
            size: 12.0,
            ..Label::default()
        };
        svg.text(right, &format!("{inside} values"), label);
    }

    /// Lines at whole cells, the tiles, and the tile in the stage before.
    fn draw_tiles(&self, svg: &mut Svg, frame: &Frame, number: usize, time: i64) {
        let Panels { view, x, y, .. } = self;
        let to_page = |polygon: Vec<Plane>| -> Vec<[f64; 2]> {
            polygon.iter().map(|p| frame.place(p[0], p[1])).collect()
        };
        for i in x[0].ceil() as i64..=x[1] as i64 {
            let ends = [y[0], y[1]].map(|v| frame.place(i as f64, v));
            svg.line(ends[0], ends[1], stroke(FAINT, 0.8));
        }
        for j in y[0].ceil() as i64..=y[1] as i64 {
            let ends = [x[0], x[1]].map(|v| frame.place(v, j as f64));
            svg.line(ends[0], ends[1], stroke(FAINT, 0.8));
        }
        let seen = [[x[0], y[0]], [x[1], y[0]], [x[1], y[1]], [x[0], y[1]]];
        for tile in neighbours(&view.cuts, |c| {
            tiles(seen.iter().map(|&p| value(view, c, p, time as f64)))
        }) {
            let polygon = to_page(outline(view, &tile, time as f64));
            if tile == view.tile {
                svg.polygon(&polygon, fill(TILE).opacity(0.75));
            }
            if polygon.len() > 2 {
                svg.polygon(&polygon, stroke("#cbb98a", 0.9));
            }
        }
        if number > 0 {
            let before = to_page(outline(view, &view.tile, (time - 1) as f64));
            svg.polygon(&before, stroke(GREY, 1.0).dashed("3 3"));
        }
        let now = to_page(outline(view, &view.tile, time as f64));
        svg.polygon(&now, stroke(TILE_EDGE, 1.8));
    }

    /// The values of a stage, with large marks in the tile; the number of these.
    fn draw_values(&self, svg: &mut Svg, frame: &Frame, time: i64) -> usize {
        let Panels { view, x, y, .. } = self;
        let [ax, ay] = view.axes;
        let stages = self.scheme.stages.len() as i64;
        let stage = time.rem_euclid(stages.max(1)) as u32;
        let mut inside = 0;
        let groups = self.groups.iter().enumerate();
        for (g, group) in groups.filter(|(_, g)| g.stage == stage) {
            let position = self.scheme.component(group.components[0]).position;
            let (mark, colour) = look(&self.groups, g);
            let pale = pale(colour, 0.55);
            for i in x[0] as i64 - 1..=x[1] as i64 {
                for j in y[0] as i64 - 1..=y[1] as i64 {
                    let mut at = position;
                    at[ax] = at[ax] + HalfIndex::cells(i);
                    at[ay] = at[ay] + HalfIndex::cells(j);
                    let place = frame.place(at[ax].as_f64(), at[ay].as_f64());
                    if holds(view, at, time) {
                        inside += group.components.len();
                        let r = (0.14 * self.scale).clamp(2.2, 4.8);
                        svg.mark(mark, place, r, fill(colour).outline("#ffffff", 0.7));
                    } else {
                        let style = fill(&pale).opacity(0.9);
                        svg.mark(mark, place, (0.07 * self.scale).clamp(1.2, 2.0), style);
                    }
                }
            }
        }
        inside
    }
}

/// The meaning of marks and outlines, from a height on the page on.
fn draw_legend(svg: &mut Svg, scheme: &Scheme, groups: &[Group], legend: f64) {
    for (g, group) in groups.iter().enumerate() {
        let stage = |g: &&Group| g.stage == group.stage;
        let x = 64.0 + 170.0 * groups[..g].iter().filter(stage).count() as f64;
        let y = legend + 22.0 * f64::from(group.stage);
        let (mark, colour) = look(groups, g);
        svg.mark(mark, [x, y - 4.5], 4.8, fill(colour));
        let text = format!(
            "{}, stage {}",
            names(scheme, &group.components),
            group.stage
        );
        svg.text(
            [x + 14.0, y],
            &text,
            Label {
                colour: INK,
                ..Label::default()
            },
        );
    }
    let y = legend + 22.0 * scheme.stages.len() as f64;
    let box_at = |x: f64| [x - 8.0, y - 11.0];
    let style = fill(TILE).opacity(0.75).outline(TILE_EDGE, 1.8);
    svg.rect(box_at(64.0), [16.0, 12.0], style);
    svg.text([78.0, y], "the tile", Label::default());
    let style = stroke(GREY, 1.0).dashed("3 3");
    svg.rect(box_at(234.0), [16.0, 12.0], style);
    svg.text([248.0, y], "one stage before", Label::default());
}

/// The event lies in the tile, exactly.
fn holds(view: &Footprint, at: PerAxis<HalfIndex>, time: i64) -> bool {
    let mut pairs = view.cuts.iter().zip(&view.tile);
    pairs.all(|(c, &n)| c.tile(at, time) == Some(n))
}

/// A mark per position of a stage, and a colour per stage.
fn look(groups: &[Group], index: usize) -> (Mark, &'static str) {
    let stage = groups[index].stage;
    let earlier = groups[..index].iter().filter(|g| g.stage == stage).count();
    (Mark::ALL[earlier % 4], PALETTE[stage as usize % 4])
}

/// The numbers of all tiles whose numbers lie in the given ranges.
fn neighbours(
    cuts: &[Cut],
    range: impl Fn(&Cut) -> std::ops::RangeInclusive<i64>,
) -> Vec<Vec<i64>> {
    let mut out = vec![Vec::new()];
    for c in cuts {
        out = out
            .into_iter()
            .flat_map(|numbers: Vec<i64>| {
                range(c).map(move |n| {
                    let mut longer = numbers.clone();
                    longer.push(n);
                    longer
                })
            })
            .collect();
    }
    out
}
