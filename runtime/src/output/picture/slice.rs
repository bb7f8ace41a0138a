//! A plane of a field as a colour map with axes and a colour bar.

use std::path::Path;

use super::canvas::{Canvas, Style, text_width};
use super::colour::{ColourMap, INK, NAN, Rgb, TABLE};
use super::ticks::{axis_title, fitting_ticks, ticks};
use super::{AxisText, PictureAxis};
use crate::output::array::{self, Element, Rows};
use crate::output::error::{Attempt, Cause, FileError};

/// Small slices are enlarged to about this many pixels, large ones reduced to at most twice as many.
const SIDE: usize = 640;
const MARGIN: usize = 20;
const TICK: usize = 5;
const BAR: usize = 18;
/// The colour bar is at least this high.
const BAR_HEIGHT: usize = 160;

/// Which values have which colours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// `Signed` where a value is negative, `Positive` otherwise, each with its range from the values.
    Auto,
    /// Blue, white, red from minus to plus this value, or the largest absolute value.
    Signed(Option<f64>),
    /// Dark to light between these values, or the smallest and the largest.
    Positive(Option<(f64, f64)>),
}

/// What is written around a slice.
#[derive(Clone, Debug, PartialEq)]
pub struct SlicePicture {
    /// The first line.
    pub title: String,
    /// A second line: the step, the time, the plane.
    pub subtitle: String,
    /// The first axis of the array, drawn to the right.
    pub across: PictureAxis,
    /// The second axis of the array, drawn upward.
    pub up: PictureAxis,
    /// What the values are, above the colour bar.
    pub quantity: AxisText,
    /// Which values have which colours.
    pub scale: Scale,
}

/// The values as they are shown: one per block of `reduce` x `reduce` cells, the second axis contiguous.
struct Shown {
    values: Vec<f64>,
    size: [usize; 2],
    reduce: usize,
    nans: bool,
}

impl SlicePicture {
    /// Draws a plane and writes it as PNG.
    pub fn write<T: Element>(
        &self,
        path: &Path,
        rows: &(impl Rows<T> + ?Sized),
    ) -> Result<(), FileError> {
        match self.draw(rows) {
            Some(canvas) => canvas.write(path),
            None => {
                let (expected, found) = (vec![1, 1], rows.shape().to_vec());
                let cause = Cause::Shape { expected, found };
                Err(FileError::new(path, Attempt::Write, cause))
            }
        }
    }

    /// Draws a plane. None unless the array has two axes and at least one value.
    pub fn draw<T: Element>(&self, rows: &(impl Rows<T> + ?Sized)) -> Option<Canvas> {
        let &[nx, ny] = rows.shape() else { return None };
        if nx == 0 || ny == 0 {
            return None;
        }
        let shown = reduce(rows, [nx, ny]);
        let (map, low, high) = self.range(&shown.values);
        let [sx, sy] = self.cell_pixels(shown.size);
        let (width, height) = (shown.size[0] * sx, shown.size[1] * sy);

        let (x_low, x_high) = self.across.ends(nx);
        let x_ticks = fitting_ticks(x_low, x_high, (width / 60).clamp(2, 12), width, label_width);
        let (y_low, y_high) = self.up.ends(ny);
        let y_ticks = fitting_ticks(y_low, y_high, (height / 45).clamp(2, 12), height, |_| 8);
        let bar_height = height.max(BAR_HEIGHT);
        let bar_ticks = ticks(low, high, (bar_height / 45).max(4));
        let x_title = format!(
            "{} \u{2192}",
            axis_title(&self.across.text, x_ticks.exponent)
        );
        let y_title = format!("{} \u{2192}", axis_title(&self.up.text, y_ticks.exponent));
        let bar_title = axis_title(&self.quantity, bar_ticks.exponent);
        let widest = |labels: &[String]| labels.iter().map(|l| label_width(l)).max().unwrap_or(0);

        let subtitle = if shown.reduce > 1 {
            let n = shown.reduce;
            let note = format!("{n} \u{d7} {n} cells per pixel");
            [self.subtitle.as_str(), &note]
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect::<Vec<_>>()
                .join("  \u{b7}  ")
        } else {
            self.subtitle.clone()
        };
        let head = MARGIN + 14 + if subtitle.is_empty() { 0 } else { 20 };
        let left = MARGIN + 18 + widest(&y_ticks.labels) + TICK + 6;
        let bar_left = left + width + 26;
        let bar_right = bar_left + BAR + TICK + 5 + widest(&bar_ticks.labels);
        let right = [
            bar_right,
            bar_left + label_width(&bar_title),
            left + title_width(&self.title),
            left + label_width(&subtitle),
            left + label_width(&x_title),
        ];
        // The title of the colour bar stands above it, beside the head if that is short enough.
        let beside = label_width(&subtitle).max(title_width(&self.title)) < width;
        let top = head + if beside { 18 } else { 34 };
        let bar_bottom = bar_height + if shown.nans { 44 } else { 16 };
        let bottom = top + bar_bottom.max(height + 58);
        let total_width = right.into_iter().max().unwrap_or(0) + MARGIN;
        let mut canvas = Canvas::new(total_width, bottom);

        canvas.text(&self.title, left as f32, (MARGIN + 12) as f32, Style::TITLE);
        canvas.text(&subtitle, left as f32, (MARGIN + 33) as f32, Style::NOTE);

        let colours = map.table();
        let colour = |value: f64| colour_of(&colours, (value - low) / (high - low));
        for (i, column) in shown.values.chunks(shown.size[1]).enumerate() {
            for (j, &value) in column.iter().enumerate() {
                let y = top + (shown.size[1] - 1 - j) * sy;
                canvas.fill(left + i * sx, y, sx, sy, colour(value));
            }
        }
        canvas.frame(left, top, width, height, INK);
        let base = top + height;
        for (value, label) in x_ticks.values.iter().zip(&x_ticks.labels) {
            let x = left + self.across.pixel(*value, nx, width);
            canvas.fill(x, base + 1, 1, TICK, INK);
            canvas.text(
                label,
                x as f32 + 0.5,
                (base + TICK + 15) as f32,
                Style::LABEL.at(0.5),
            );
        }
        let middle = left as f32 + width as f32 / 2.0;
        let x_title_at = middle.max(left as f32 + text_width(&x_title, Style::LABEL.size) / 2.0);
        canvas.text(
            &x_title,
            x_title_at,
            (base + 42) as f32,
            Style::LABEL.at(0.5),
        );
        for (value, label) in y_ticks.values.iter().zip(&y_ticks.labels) {
            let y = base - 1 - self.up.pixel(*value, ny, height);
            canvas.fill(left - 1 - TICK, y, TICK, 1, INK);
            let x = (left - TICK - 6) as f32;
            canvas.text(label, x, y as f32 + 5.0, Style::LABEL.at(1.0));
        }
        let middle = top as f32 + height as f32 / 2.0;
        let upward = Style {
            upward: true,
            ..Style::LABEL.at(0.5)
        };
        canvas.text(&y_title, (MARGIN + 10) as f32, middle, upward);

        for row in 0..bar_height {
            let part = (bar_height - 1 - row) as f64 / (bar_height - 1) as f64;
            canvas.fill(bar_left, top + row, BAR, 1, colour_of(&colours, part));
        }
        canvas.frame(bar_left, top, BAR, bar_height, INK);
        canvas.text(&bar_title, bar_left as f32, (top - 14) as f32, Style::LABEL);
        for (value, label) in bar_ticks.values.iter().zip(&bar_ticks.labels) {
            let part = (value - low) / (high - low);
            let y = top + bar_height - 1 - (part * (bar_height - 1) as f64).round() as usize;
            canvas.fill(bar_left + BAR + 1, y, TICK, 1, INK);
            let x = (bar_left + BAR + TICK + 5) as f32;
            canvas.text(label, x, y as f32 + 5.0, Style::LABEL);
        }
        if shown.nans {
            let y = top + bar_height + 16;
            canvas.fill(bar_left, y, BAR, 12, NAN);
            canvas.frame(bar_left, y, BAR, 12, INK);
            let x = (bar_left + BAR + TICK + 5) as f32;
            canvas.text("NaN", x, y as f32 + 10.5, Style::LABEL);
        }
        Some(canvas)
    }

    /// The map and the values at its ends, which are finite and differ.
    fn range(&self, values: &[f64]) -> (ColourMap, f64, f64) {
        let finite = values.iter().copied().filter(|v| v.is_finite());
        let (min, max) = finite.fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
        let (min, max) = if min > max { (0.0, 0.0) } else { (min, max) };
        let usable = |v: f64| v.is_finite() && v > 0.0;
        let signed = |size: Option<f64>| {
            let size = size.unwrap_or(min.abs().max(max.abs()));
            // Not the largest number, so that the span of the range is a number too.
            let size = if usable(size) {
                size.min(f64::MAX / 4.0)
            } else {
                1.0
            };
            (ColourMap::Diverging, -size, size)
        };
        let positive = |range: Option<(f64, f64)>| {
            let most = f64::MAX / 4.0;
            let (low, high) = range.unwrap_or((min, max));
            let (low, high) = (low.clamp(-most, most), high.clamp(-most, most));
            let (low, high) = if usable(high - low) {
                (low, high)
            } else if low.is_finite() && usable(low.abs()) {
                (low - low.abs() / 2.0, low + low.abs() / 2.0)
            } else {
                (0.0, 1.0)
            };
            (ColourMap::Sequential, low, high)
        };
        match self.scale {
            Scale::Signed(size) => signed(size),
            Scale::Positive(range) => positive(range),
            Scale::Auto if min < 0.0 || max == 0.0 => signed(None),
            Scale::Auto => positive(None),
        }
    }

    /// Whole pixels per shown cell along both axes, in the ratio of the cell sizes as nearly as they allow.
    fn cell_pixels(&self, size: [usize; 2]) -> [usize; 2] {
        let ratio = self.up.spacing.abs() / self.across.spacing.abs();
        let ratio = if ratio.is_finite() {
            ratio.clamp(0.05, 20.0)
        } else {
            1.0
        };
        // Of the shorter side of a cell, relative to it.
        let shape = [(1.0 / ratio).max(1.0), ratio.max(1.0)];
        let long = (size[0] as f64 * shape[0]).max(size[1] as f64 * shape[1]);
        let unit = (SIDE as f64 / long).floor().clamp(1.0, 64.0);
        shape.map(|s| ((s * unit).round() as usize).max(1))
    }
}

impl PictureAxis {
    /// The lowest and the highest position.
    fn ends(&self, cells: usize) -> (f64, f64) {
        let end = self.start + (cells - 1) as f64 * self.spacing;
        (self.start.min(end), self.start.max(end))
    }

    /// Pixels from the first face to the middle of a position.
    fn pixel(&self, position: f64, cells: usize, pixels: usize) -> usize {
        let cell = (position - self.start) / self.spacing + 0.5;
        let at = cell / cells as f64 * pixels as f64;
        (at.max(0.0) as usize).min(pixels - 1)
    }
}

fn label_width(text: &str) -> usize {
    text_width(text, Style::LABEL.size).ceil() as usize
}

fn title_width(text: &str) -> usize {
    text_width(text, Style::TITLE.size).ceil() as usize
}

/// The colour at a part of the way from the first to the last of a table.
fn colour_of(colours: &[Rgb; TABLE], part: f64) -> Rgb {
    if part.is_nan() {
        return NAN;
    }
    colours[(part.clamp(0.0, 1.0) * (TABLE - 1) as f64).round() as usize]
}

/// Reads a plane row by row; averages blocks of cells where there are more than can be shown. A block with a value
/// that is not a number is not a number, so that none is overlooked.
fn reduce<T: Element>(rows: &(impl Rows<T> + ?Sized), [nx, ny]: [usize; 2]) -> Shown {
    let reduce = nx.max(ny).div_ceil(2 * SIDE);
    let size = [nx.div_ceil(reduce), ny.div_ceil(reduce)];
    let mut values = vec![0.0; size[0] * size[1]];
    let mut row = vec![T::default(); ny];
    for i in 0..nx {
        rows.read(&[i, 0], &mut row);
        let sums = &mut values[i / reduce * size[1]..][..size[1]];
        for (sum, part) in sums.iter_mut().zip(row.chunks(reduce)) {
            *sum += part.iter().map(|v| v.to_f64()).sum::<f64>();
        }
    }
    let length = |total: usize, block: usize| reduce.min(total - block * reduce);
    let mut index = [0, 0];
    for value in &mut values {
        if reduce > 1 {
            *value /= (length(nx, index[0]) * length(ny, index[1])) as f64;
        }
        array::advance(&mut index, &size, 2);
    }
    let nans = values.iter().any(|v| v.is_nan());
    Shown {
        values,
        size,
        reduce,
        nans,
    }
}

#[cfg(test)]
mod tests;
