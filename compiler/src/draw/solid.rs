//! Two axes and time as solids: the cone of a value, and towers.

use super::scene::{Bounds, Camera, ScenePoint, Side, edge};
use super::shape::{Plane, cut, hull};
use super::{Cones, Cut, columns_in_words, names};
use crate::cone::{Kind, past};
use crate::lattice::{Axis, PerAxis};
use crate::scheme::{ComponentId, Scheme};
use crate::svg::{Label, Mark, PALETTE, Point, Svg, fill, stroke};
use std::collections::BTreeSet;

/// The contents of a view.
#[derive(Clone, Debug)]
pub struct Solid {
    /// To the right, and away from the viewer.
    pub axes: [Axis; 2],
    pub subject: Subject,
}

#[derive(Clone, Debug)]
pub enum Subject {
    /// The past of the newest value after `steps` steps.
    Cone { component: ComponentId, steps: u32 },
    /// Tiles by their numbers along each cut, from one time index to another. Tiles with the same sum of numbers form a
    /// column, and look alike.
    Towers {
        cuts: Vec<Cut>,
        tiles: Vec<Vec<i64>>,
        stages: std::ops::Range<i64>,
    },
}

/// The view as an SVG document.
pub fn solid(scheme: &Scheme, cones: &Cones, view: &Solid) -> String {
    match &view.subject {
        Subject::Cone { component, steps } => cone(scheme, cones, view.axes, *component, *steps),
        Subject::Towers {
            cuts,
            tiles,
            stages,
        } => towers(scheme, view.axes, cuts, tiles, stages.clone()),
    }
}

/// How far the past spreads in one stage: the hull of all reads, per stage.
fn spread(cones: &Cones, [ax, ay]: [Axis; 2]) -> Vec<Plane> {
    let flow = cones.local().filter(|d| d.kind == Kind::Flow);
    let points = flow.map(|d| [ax, ay].map(|a| -d.space[a].as_f64() / d.stages as f64));
    hull(points.collect())
}

fn cone(
    scheme: &Scheme,
    cones: &Cones,
    axes: [Axis; 2],
    component: ComponentId,
    steps: u32,
) -> String {
    let past = past(scheme, cones, component, steps);
    let top = past.events.last().map_or(0, |e| e.time);
    let home = scheme.component(component).position;
    let apex = [home[axes[0]].as_f64(), home[axes[1]].as_f64(), top as f64];
    let spread = spread(cones, axes);
    let ring = |time: f64| -> Vec<ScenePoint> {
        let back = apex[2] - time;
        let at = |p: &Plane| [apex[0] + back * p[0], apex[1] + back * p[1], time];
        spread.iter().map(at).collect()
    };
    let base = ring(0.0);
    let mut corners = base.clone();
    corners.push(apex);
    let bounds = Bounds::around(corners.iter());
    let (camera, size) = bounds.camera(&corners);
    let mut svg = Svg::new(size[0], size[1] + 30.0);
    bounds.floor(&mut svg, &camera);
    let stages = i64::from(cones.stages.max(1));
    let inside = [apex[0], apex[1], 0.0];
    // One side of the cone, with a line per stage.
    let side = |svg: &mut Svg, i: usize, front: bool| {
        let next = (i + 1) % base.len();
        let side = Side::new(vec![apex, base[i], base[next]], inside, &camera);
        if side.is_front() != front {
            return;
        }
        side.draw(svg, &camera, PALETTE[5], if front { 0.45 } else { 0.25 });
        for time in 1..top {
            let ring = ring(time as f64);
            let width = if time % stages == 0 { 1.3 } else { 0.6 };
            let width = if front { width } else { 0.4 };
            let ends = [camera.page(ring[i]), camera.page(ring[next])];
            svg.line(ends[0], ends[1], stroke(PALETTE[0], width));
        }
    };
    let sides = if base.len() > 2 { base.len() } else { 0 };
    for i in 0..sides {
        side(&mut svg, i, false);
    }
    // The first values that it comes from.
    let first = past.events.iter().filter(|e| e.time == 0);
    let places: BTreeSet<Place2> = first
        .clone()
        .map(|e| {
            let [x, y] = axes.map(|a| (home[a] + e.space[a]).0);
            (y, x)
        })
        .collect();
    let dot = (0.12 * camera.scale).clamp(1.2, 3.2);
    for &(y, x) in places.iter().rev() {
        let at = camera.page([x as f64 / 2.0, y as f64 / 2.0, 0.0]);
        svg.mark(Mark::Circle, at, dot, fill(PALETTE[0]));
    }
    for i in 0..sides {
        side(&mut svg, i, true);
    }
    let tip = camera.page(apex);
    let style = fill(PALETTE[1]).outline("#ffffff", 1.0);
    svg.mark(Mark::Circle, tip, 5.0, style);
    let name = &scheme.component(component).name;
    let bold = Label {
        bold: true,
        ..Label::default()
    };
    svg.text([tip[0] + 12.0, tip[1] + 1.0], name, bold);
    bounds.axes(&mut svg, &camera, axes.map(|a| scheme.grid.axis_name(a)));
    let components: BTreeSet<ComponentId> = first.map(|e| e.component).collect();
    let components: Vec<ComponentId> = components.into_iter().collect();
    let y = size[1] + 12.0;
    svg.mark(Mark::Circle, [64.0, y - 4.5], 3.2, fill(PALETTE[0]));
    let text = format!(
        "{} of stage 0 that influence {name}",
        names(scheme, &components)
    );
    svg.text([76.0, y], &text, Label::default());
    svg.finish(&format!("The cone of {name} of {}", scheme.name))
}

/// y and x in half cells: in this order the nearest come first.
type Place2 = (i64, i64);

fn towers(
    scheme: &Scheme,
    axes: [Axis; 2],
    cuts: &[Cut],
    tiles: &[Vec<i64>],
    stages: std::ops::Range<i64>,
) -> String {
    /// Tiles without an end are shown up to this distance, in cells.
    const FAR: f64 = 30.0;
    let value = |c: &Cut, [x, y, time]: ScenePoint| {
        let mut at = PerAxis::splat(0.0);
        at[axes[0]] = x;
        at[axes[1]] = y;
        c.at(at, time)
    };
    let outline = |tile: &[i64], time: f64| -> Vec<ScenePoint> {
        let whole = vec![[-FAR, -FAR], [FAR, -FAR], [FAR, FAR], [-FAR, FAR]];
        let polygon = cuts.iter().zip(tile).fold(whole, |polygon, (c, &n)| {
            let at = |p: Plane| value(c, [p[0], p[1], time]);
            let above = cut(&polygon, |p| at(p) - n as f64);
            cut(&above, |p| (n + 1) as f64 - at(p))
        });
        polygon.iter().map(|p| [p[0], p[1], time]).collect()
    };
    let (first, last) = (stages.start as f64, stages.end as f64);
    let ends: Vec<ScenePoint> = tiles
        .iter()
        .flat_map(|t| [outline(t, first), outline(t, last)])
        .flatten()
        .collect();
    let bounds = Bounds::around(ends.iter());
    let (camera, size) = bounds.camera(&ends);
    let sum = |tile: &Vec<i64>| tile.iter().sum::<i64>();
    let columns: BTreeSet<i64> = tiles.iter().map(sum).collect();
    let mut svg = Svg::new(size[0], size[1] + 8.0 + 21.0 * columns.len() as f64);
    bounds.floor(&mut svg, &camera);
    // Planes of a face separate tiles: one on the viewer's side of a plane hides the others, so it comes later.
    let towards = camera.towards();
    let signs: Vec<f64> = cuts
        .iter()
        .map(|c| (value(c, towards) - value(c, [0.0; 3])).signum())
        .collect();
    let order = |tile: &[i64]| -> f64 {
        let pairs = tile.iter().zip(&signs);
        pairs.map(|(&n, s)| n as f64 * s).sum()
    };
    let mut sorted: Vec<&Vec<i64>> = tiles.iter().collect();
    sorted.sort_by(|a, b| order(a).total_cmp(&order(b)));
    // Columns run from high to low.
    let nth = |tile: &Vec<i64>| columns.iter().rev().position(|&c| c == sum(tile));
    let colour = |nth: usize| [PALETTE[0], PALETTE[4], PALETTE[2], PALETTE[3]][nth % 4];
    let step = scheme.stages.len().max(1) as i64;
    for tile in sorted {
        let (bottom, top) = (outline(tile, first), outline(tile, last));
        if bottom.len() == top.len() && bottom.len() > 2 {
            let colour = colour(nth(tile).unwrap_or(0));
            prism(&mut svg, &camera, [&bottom, &top], &stages, step, colour);
        }
    }
    bounds.axes(&mut svg, &camera, axes.map(|a| scheme.grid.axis_name(a)));
    for n in 0..columns.len() {
        let y = size[1] + 12.0 + 21.0 * n as f64;
        let colour = colour(n);
        let style = fill(colour).opacity(0.7);
        svg.rect([58.0, y - 11.0], [16.0, 12.0], style);
        svg.text([82.0, y], &columns_in_words(n), Label::default());
    }
    svg.finish(&format!("Towers of {}", scheme.name))
}

/// A tower from its outline below to the outline above, with a line per stage, stronger where a step begins.
fn prism(
    svg: &mut Svg,
    camera: &Camera,
    [bottom, top]: [&[ScenePoint]; 2],
    stages: &std::ops::Range<i64>,
    step: i64,
    colour: &str,
) {
    let count = bottom.len();
    let middle = |i: usize| {
        let both = bottom.iter().chain(top);
        both.map(|p| p[i]).sum::<f64>() / (2 * count) as f64
    };
    let inside = [middle(0), middle(1), middle(2)];
    let edge = edge(colour);
    for i in 0..count {
        let j = (i + 1) % count;
        let side = Side::new(vec![bottom[i], bottom[j], top[j], top[i]], inside, camera);
        if !side.is_front() {
            continue;
        }
        side.draw(svg, camera, colour, 1.0);
        for time in stages.start + 1..stages.end {
            let part = (time - stages.start) as f64 / (stages.end - stages.start) as f64;
            let between = |a: ScenePoint, b: ScenePoint| -> Point {
                camera.page([0, 1, 2].map(|i| a[i] + part * (b[i] - a[i])))
            };
            let width = if time % step == 0 { 0.9 } else { 0.35 };
            let ends = [between(bottom[i], top[i]), between(bottom[j], top[j])];
            svg.line(ends[0], ends[1], stroke(&edge, width));
        }
    }
    Side::new(top.to_vec(), inside, camera).draw(svg, camera, colour, 1.0);
}
