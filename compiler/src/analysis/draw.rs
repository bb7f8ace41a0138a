//! A picture of numerical dispersion and anisotropy, as SVG: for each kind of waves the error of the phase velocity
//! over the points per wavelength, and over the direction in the plane of the first two axes.

use super::dispersion::{AROUND, Dispersion, Kind};
use crate::scheme::Scheme;
use crate::svg::{FAINT, Frame, GREY, INK, Label, PALETTE, Point, Style, Svg, stroke};

/// Kinds of waves that are drawn.
const ROWS: usize = 4;
/// Of each panel, in pixels.
const PANEL: Point = [330.0, 230.0];
const ROW: f64 = 320.0;
const DASHES: [&str; 3] = ["", "7 4", "2 4"];
/// Shortest and longest waves, in points.
const SHORTEST: f64 = 3.0;
const LONGEST: f64 = 40.0;

/// The picture as an SVG document.
pub fn draw(scheme: &Scheme, dispersion: &Dispersion) -> String {
    let kinds: Vec<&Kind> = dispersion.kinds.iter().take(ROWS).collect();
    let plane = kinds.iter().any(|k| !k.around.is_empty());
    let columns = if plane { 2.0 } else { 1.0 };
    let width = columns * (PANEL[0] + 180.0);
    let mut svg = Svg::new(width, 24.0 + ROW * kinds.len() as f64);
    for (i, kind) in kinds.iter().enumerate() {
        let top = 34.0 + ROW * i as f64;
        let title = match kinds.len() {
            1 => String::new(),
            _ => format!("{}. ", i + 1),
        };
        over_points(&mut svg, dispersion, kind, &title, [84.0, top]);
        if !kind.around.is_empty() {
            over_angles(&mut svg, scheme, kind, [84.0 + PANEL[0] + 180.0, top]);
        }
    }
    let description = format!("Numerical dispersion of {}", scheme.name);
    svg.finish(&description)
}

fn quantity(kind: &Kind) -> &'static str {
    match kind.moves {
        true => "error of the phase velocity, %",
        false => "error of the rate of decay, %",
    }
}

/// Curves over points per wavelength, one for each direction.
fn over_points(svg: &mut Svg, dispersion: &Dispersion, kind: &Kind, number: &str, corner: Point) {
    let curves: Vec<Vec<Point>> = kind
        .curves
        .iter()
        .map(|curve| {
            let shown = curve
                .iter()
                .filter(|s| s.points >= SHORTEST * 0.999 && s.points <= LONGEST * 1.05);
            shown
                .map(|s| [s.points.log2(), 100.0 * (s.ratio - 1.0)])
                .collect()
        })
        .collect();
    let frame = Frame {
        corner,
        size: PANEL,
        x: [SHORTEST.log2(), LONGEST.log2()],
        y: bounds(curves.iter().flatten().map(|p| p[1])),
    };
    let labels = [3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 40.0_f64];
    let ticks: Vec<(f64, String)> = labels.iter().map(|l| (l.log2(), l.to_string())).collect();
    axes(svg, &frame, &ticks, "points per wavelength", quantity(kind));
    let heading = match (kind.moves, kind.power) {
        (true, 1) => format!("{number}waves of speed {}", short(kind.coefficients[0])),
        (false, 2) => format!(
            "{number}decay with diffusivity {}",
            short(kind.coefficients[0])
        ),
        (true, _) => format!("{number}waves"),
        (false, _) => format!("{number}decay"),
    };
    title(svg, &frame, &heading);
    frame.clip(svg);
    for (i, curve) in curves.iter().enumerate() {
        let points: Vec<Point> = curve.iter().map(|[x, y]| frame.place(*x, *y)).collect();
        svg.polyline(&points, style(i));
    }
    svg.unclip();
    let names = dispersion.directions.iter().map(|d| d.name.clone());
    legend(svg, &frame, names);
}

/// Curves over the angle from the first axis to the second, one for each number of points.
fn over_angles(svg: &mut Svg, scheme: &Scheme, kind: &Kind, corner: Point) {
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    let frame = Frame {
        corner,
        size: PANEL,
        x: [0.0, 90.0],
        y: bounds(kind.around.iter().flatten().map(|(_, r)| percent(*r))),
    };
    let ticks: Vec<(f64, String)> = (0..=6)
        .map(|n| (15.0 * f64::from(n), format!("{}°", 15 * n)))
        .collect();
    let names: Vec<&str> = scheme
        .grid
        .present()
        .map(|a| scheme.grid.axis_name(a))
        .collect();
    let across = format!("direction from {} to {}", names[0], names[1]);
    axes(svg, &frame, &ticks, &across, quantity(kind));
    title(svg, &frame, "anisotropy");
    frame.clip(svg);
    for (i, curve) in kind.around.iter().enumerate() {
        let points: Vec<Point> = curve
            .iter()
            .map(|(a, r)| frame.place(*a, percent(*r)))
            .collect();
        svg.polyline(&points, style(i));
    }
    svg.unclip();
    legend(svg, &frame, AROUND.iter().map(|p| format!("{p} points")));
}

fn style(i: usize) -> Style<'static> {
    let dash = DASHES[i / PALETTE.len() % DASHES.len()];
    stroke(PALETTE[i % PALETTE.len()], 1.8).dashed(dash)
}

/// A range that contains some values and 0, with some room.
fn bounds(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let (lo, hi) = values
        .filter(|v| v.is_finite())
        .fold((0.0_f64, 0.0_f64), |(lo, hi), v| (lo.min(v), hi.max(v)));
    let room = 0.06 * (hi - lo).max(1e-6);
    [(lo - room).max(-100.0), (hi + room).min(200.0)]
}

/// Grid lines, ticks and titles.
fn axes(svg: &mut Svg, frame: &Frame, ticks: &[(f64, String)], across: &str, up: &str) {
    let [left, top] = frame.corner;
    let [width, height] = frame.size;
    let base = top + height;
    for (x, text) in ticks {
        let [at, _] = frame.place(*x, frame.y[0]);
        svg.line([at, top], [at, base], stroke(FAINT, 1.0));
        let label = Label {
            anchor: "middle",
            size: 12.0,
            ..Label::default()
        };
        svg.text([at, base + 18.0], text, label);
    }
    let step = tick_step(frame.y[1] - frame.y[0]);
    let (first, last) = (
        (frame.y[0] / step).ceil() as i64,
        (frame.y[1] / step).floor() as i64,
    );
    for n in first..=last {
        let [_, y] = frame.place(frame.x[0], n as f64 * step);
        let colour = if n == 0 { GREY } else { FAINT };
        svg.line([left, y], [left + width, y], stroke(colour, 1.0));
        let label = Label {
            anchor: "end",
            size: 12.0,
            ..Label::default()
        };
        let text = short(n as f64 * step).replace('-', "\u{2212}");
        svg.text([left - 8.0, y + 4.0], &text, label);
    }
    frame.border(svg);
    let middle = Label {
        anchor: "middle",
        ..Label::default()
    };
    svg.text([left + width / 2.0, base + 38.0], across, middle);
    let upright = Label {
        turn: -90.0,
        ..middle
    };
    svg.text([left - 58.0, top + height / 2.0], up, upright);
}

fn title(svg: &mut Svg, frame: &Frame, text: &str) {
    let label = Label {
        bold: true,
        colour: INK,
        ..Label::default()
    };
    svg.text([frame.corner[0], frame.corner[1] - 10.0], text, label);
}

/// Names to the right of a panel.
fn legend(svg: &mut Svg, frame: &Frame, names: impl Iterator<Item = String>) {
    let left = frame.corner[0] + frame.size[0] + 12.0;
    for (i, name) in names.enumerate() {
        let y = frame.corner[1] + 10.0 + 17.0 * i as f64;
        svg.line([left, y], [left + 22.0, y], style(i));
        let label = Label {
            size: 12.0,
            ..Label::default()
        };
        svg.text([left + 28.0, y + 4.0], &name, label);
    }
}

/// 1, 2 or 5 times a power of ten, about five to a range.
fn tick_step(range: f64) -> f64 {
    let rough = range / 5.0;
    let power = 10.0_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    steps
        .map(|s| s * power)
        .into_iter()
        .find(|s| *s >= rough)
        .unwrap_or(rough)
}

/// Four significant digits at most.
fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}
