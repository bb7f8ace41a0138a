//! Curves over an axis: lines of a field, probes over time.

use std::path::Path;

use super::AxisText;
use super::canvas::{Canvas, Line, Point, Style};
use super::colour::{GRID, INK, LINES, SOFT};
use super::ticks::{axis_title, fitting_ticks, ticks};
use crate::output::error::FileError;

const WIDTH: usize = 720;
const HEIGHT: usize = 360;
const MARGIN: usize = 20;
const TICK: usize = 5;

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Points, in the order in which they are joined; where one is not finite, the curve has a gap.
    pub points: Vec<(f64, f64)>,
}

/// A plot of curves with common axes.
#[derive(Clone, Debug, PartialEq)]
pub struct LinePlot {
    /// The first line.
    pub title: String,
    /// A second line.
    pub subtitle: String,
    /// The horizontal axis.
    pub across: AxisText,
    /// The vertical axis.
    pub up: AxisText,
    /// The curves; a legend is drawn for more than one.
    pub series: Vec<Series>,
    /// The horizontal and the vertical range; where there is none, it is that of the points.
    pub ranges: [Option<[f64; 2]>; 2],
    /// Places on the horizontal axis with a line from top to bottom.
    pub marks: Vec<f64>,
}

impl LinePlot {
    /// Draws the plot and writes it as PNG.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        self.draw().write(path)
    }

    /// Draws the plot.
    pub fn draw(&self) -> Canvas {
        let [x_range, y_range] = self.ranges;
        let (x_low, x_high) = match x_range {
            Some([low, high]) => widened(low, high, 0.0),
            None => self.range(|point| point.0, 0.0),
        };
        let (y_low, y_high) = match y_range {
            Some([low, high]) => widened(low, high, 0.05),
            None => self.range(|point| point.1, 0.05),
        };
        let width_of = |text: &str| Style::LABEL.width(text);
        let x_ticks = fitting_ticks(x_low, x_high, WIDTH / 60, WIDTH, width_of);
        let y_ticks = ticks(y_low, y_high, HEIGHT / 50);
        let x_title = axis_title(&self.across, x_ticks.exponent);
        let y_title = axis_title(&self.up, y_ticks.exponent);
        let widest =
            |labels: &mut dyn Iterator<Item = &str>| labels.map(width_of).max().unwrap_or(0);
        let names = widest(&mut self.series.iter().map(|s| s.name.as_str()));
        let left = MARGIN + 18 + widest(&mut y_ticks.labels.iter().map(String::as_str)) + TICK + 6;
        let top = MARGIN + 28 + if self.subtitle.is_empty() { 0 } else { 20 };
        let legend = if self.series.len() > 1 {
            18 + 26 + 8 + names
        } else {
            12
        };
        let title = Style::TITLE.width(&self.title);
        let right = (WIDTH + legend).max(title).max(width_of(&self.subtitle));
        let rows = HEIGHT.max(22 * self.series.len().min(200));
        let mut canvas = Canvas::new(left + right + MARGIN, top + rows + 56);

        canvas.text(&self.title, left as f32, (MARGIN + 12) as f32, Style::TITLE);
        canvas.text(
            &self.subtitle,
            left as f32,
            (MARGIN + 33) as f32,
            Style::NOTE,
        );
        let base = top + HEIGHT;
        let x_pixel = |x: f64| ((x - x_low) / (x_high - x_low) * WIDTH as f64) as f32;
        let y_pixel = |y: f64| ((y_high - y) / (y_high - y_low) * HEIGHT as f64) as f32;
        for (value, label) in x_ticks.values.iter().zip(&x_ticks.labels) {
            let x = left + (x_pixel(*value) as usize).min(WIDTH - 1);
            canvas.fill(x, top, 1, HEIGHT, GRID);
            canvas.fill(x, base + 1, 1, TICK, INK);
            let middle = Style::LABEL.at(0.5);
            canvas.text(label, x as f32 + 0.5, (base + TICK + 15) as f32, middle);
        }
        for (value, label) in y_ticks.values.iter().zip(&y_ticks.labels) {
            let y = top + (y_pixel(*value) as usize).min(HEIGHT - 1);
            let colour = if *value == 0.0 { SOFT } else { GRID };
            canvas.fill(left, y, WIDTH, 1, colour);
            canvas.fill(left - 1 - TICK, y, TICK, 1, INK);
            let end = Style::LABEL.at(1.0);
            canvas.text(label, (left - TICK - 6) as f32, y as f32 + 5.0, end);
        }
        let clip = [left, top, left + WIDTH, base];
        let marked = |x: &&f64| **x > x_low && **x < x_high;
        for x in self.marks.iter().filter(marked) {
            let x = left + (x_pixel(*x) as usize).min(WIDTH - 1);
            canvas.stress([x, top], [1, HEIGHT]);
        }
        for (i, series) in self.series.iter().enumerate().rev() {
            let colour = LINES[i % LINES.len()];
            let place = |(x, y): (f64, f64)| (left as f32 + x_pixel(x), top as f32 + y_pixel(y));
            canvas.stroke(&curve(&series.points, place), Line::new(1.7, colour), clip);
        }
        canvas.frame(left, top, WIDTH, HEIGHT, INK);

        let middle = Style::LABEL.at(0.5);
        let across = (left + WIDTH / 2) as f32;
        canvas.text(&x_title, across, (base + 42) as f32, middle);
        let upward = Style {
            upward: true,
            ..middle
        };
        let up = (top + HEIGHT / 2) as f32;
        canvas.text(&y_title, (MARGIN + 10) as f32, up, upward);
        if self.series.len() > 1 {
            for (i, series) in self.series.iter().enumerate() {
                let (x, y) = ((left + WIDTH + 18) as f32, (top + 11 + 22 * i) as f32);
                let sample = [vec![(x, y), (x + 26.0, y)]];
                let all = [0, 0, canvas.width(), canvas.height()];
                canvas.stroke(&sample, Line::new(2.4, LINES[i % LINES.len()]), all);
                canvas.text(&series.name, x + 34.0, y + 4.5, Style::LABEL);
            }
        }
        canvas
    }

    /// The range of the finite points, widened by a part of itself; never empty.
    fn range(&self, part: impl Fn(&(f64, f64)) -> f64, wider: f64) -> (f64, f64) {
        let points = self.series.iter().flat_map(|series| &series.points);
        let points = points.filter(|(x, y)| is_finite([*x, *y]));
        let (low, high) = points.fold((f64::MAX, f64::MIN), |(a, b), point| {
            (a.min(part(point)), b.max(part(point)))
        });
        match low > high {
            true => (0.0, 1.0),
            false => widened(low, high, wider),
        }
    }
}

/// A range that is widened by a part of itself; never empty.
fn widened(low: f64, high: f64, wider: f64) -> (f64, f64) {
    // A quarter of the largest number, so that spans and margins are numbers too.
    let most = f64::MAX / 4.0;
    let (low, high) = (low.clamp(-most, most), high.clamp(-most, most));
    let span = high - low;
    // Narrower spans vanish in the precision of the values.
    if span > 1e-12 * low.abs().max(high.abs()) && span > 1e-300 {
        return (low - wider * span, high + wider * span);
    }
    let half = if low.abs() > 1e-290 {
        low.abs() / 2.0
    } else {
        1.0
    };
    (low - half, high + half)
}

fn is_finite([x, y]: [f64; 2]) -> bool {
    x.is_finite() && y.is_finite()
}

/// The lines of a curve. Of many points in one column of pixels only the first, the extremes and the last
/// are joined, in their order, which looks the same.
fn curve(points: &[(f64, f64)], place: impl Fn((f64, f64)) -> Point) -> Vec<Vec<Point>> {
    let mut lines = Vec::new();
    for part in points.split(|(x, y)| !is_finite([*x, *y])) {
        let mut joined: Vec<Point> = Vec::new();
        let placed: Vec<_> = part.iter().map(|&point| place(point)).collect();
        for column in placed.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
            if column.len() <= 4 {
                joined.extend(column);
                continue;
            }
            let by_height = |&a: &usize, &b: &usize| column[a].1.total_cmp(&column[b].1);
            let all = 0..column.len();
            let mut kept = [
                Some(0),
                all.clone().min_by(by_height),
                all.clone().max_by(by_height),
                all.last(),
            ];
            kept.sort();
            joined.extend(kept.into_iter().flatten().map(|i| column[i]));
        }
        if !joined.is_empty() {
            lines.push(joined);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::picture::colour::Rgb;

    fn plot(series: Vec<Series>) -> LinePlot {
        let axis = |name: &str| AxisText {
            name: name.into(),
            units: "s".into(),
        };
        LinePlot {
            title: "probes".into(),
            subtitle: String::new(),
            across: axis("t"),
            up: axis("E.z"),
            series,
            ranges: [None; 2],
            marks: Vec::new(),
        }
    }

    fn series(points: Vec<(f64, f64)>) -> Series {
        Series {
            name: "a".into(),
            points,
        }
    }

    fn has(canvas: &Canvas, colour: Rgb) -> bool {
        (0..canvas.height()).any(|y| (0..canvas.width()).any(|x| canvas.pixel(x, y) == colour))
    }

    #[test]
    fn every_curve_is_drawn_in_its_colour() {
        let line = |slope: f64| series((0..9).map(|i| (i as f64, slope * i as f64)).collect());
        let canvas = plot(vec![line(1.0), line(-1.0), line(0.2)]).draw();
        for colour in &LINES[..3] {
            assert!(has(&canvas, *colour));
        }
        assert!(!has(&canvas, LINES[3]));
        let alone = plot(vec![line(1.0)]).draw();
        assert!(alone.width() < canvas.width());
    }

    #[test]
    fn ranges_can_be_given_and_places_marked() {
        let mut one = plot(vec![series(vec![(0.0, 0.0), (1.0, 0.0)])]);
        let free = one.draw();
        one.ranges = [Some([0.0, 1.0]), Some([-7.0, 7.0])];
        let wide = one.draw();
        one.series[0].points = vec![(0.0, 3.0), (0.5, f64::NAN)];
        one.marks = vec![0.5, 2.0];
        let marked = one.draw();
        assert_ne!(free, wide);
        // The same axes, for any values.
        assert_eq!(
            (marked.width(), marked.height()),
            (wide.width(), wide.height())
        );
        let line = |canvas: &Canvas, y: usize| -> Vec<usize> {
            let row = (1..canvas.width()).map(|x| (x, canvas.pixel(x, y)));
            let dark = row.filter(|(_, c)| c[0] < 150);
            dark.map(|(x, _)| x).collect()
        };
        // A row without grid lines has the frame's sides, and the mark in their middle.
        let row = (60..400)
            .find(|&y| line(&marked, y).len() == 3)
            .expect("a row with one mark");
        let [left, mark, right] = line(&marked, row)[..] else {
            panic!()
        };
        assert!(mark.abs_diff((left + right) / 2) <= 1);
    }

    #[test]
    fn many_points_keep_their_extremes() {
        let mut points: Vec<_> = (0..100_000).map(|i| (i as f64, 0.0)).collect();
        points[50_000].1 = 1.0;
        points[50_010].1 = -1.0;
        let lines = curve(&points, |(x, y)| ((x / 1000.0) as f32, y as f32));
        assert!(lines.len() == 1 && lines[0].len() < 500);
        let heights = lines[0].iter().map(|point| point.1);
        let (low, high) = heights.fold((0f32, 0f32), |(a, b), y| (a.min(y), b.max(y)));
        assert_eq!((low, high), (-1.0, 1.0));
    }

    #[test]
    fn gaps_and_odd_values_do_no_harm() {
        let same = |point| point;
        let gap = [(0.0, 0.0), (1.0, 1.0), (2.0, f64::NAN), (3.0, 0.0)];
        let lines = curve(&gap, |(x, y)| (x as f32, y as f32));
        assert_eq!(lines, [vec![(0.0, 0.0), (1.0, 1.0)], vec![(3.0, 0.0)]]);
        let wild = [f64::NAN, f64::INFINITY, f64::MAX, -f64::MAX, 5e-324, 0.0];
        let points: Vec<_> = wild
            .iter()
            .flat_map(|&x| wild.iter().map(move |&y| same((x, y))))
            .collect();
        plot(vec![series(points)]).draw();
        plot(Vec::new()).draw();
        for y in [0.0, 1e300, -1e-300, f64::NAN, 1.0] {
            plot(vec![series(vec![(0.0, y); 3]), series(Vec::new())]).draw();
        }
    }
}
