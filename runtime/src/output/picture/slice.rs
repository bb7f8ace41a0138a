//! A plane of a field as a colour map with axes, a colour bar and outlines.

use std::path::Path;

use super::canvas::{Canvas, Point, Style};
use super::colour::{INK, NAN, Rgb};
use super::scale::Scale;
use super::ticks::{Ticks, axis_title, fitting_ticks, ticks};
use super::{AxisText, PictureAxis};
use crate::output::array::{self, Element, Rows};
use crate::output::error::{Attempt, Cause, FileError};

/// Small slices are enlarged to about this many pixels, large ones reduced to at most twice as many.
const SIDE: usize = 640;
/// Planes whose second axis is another quantity are about so high, a single row less.
const FREE_HEIGHT: usize = 420;
const ROW_HEIGHT: usize = 120;
const MARGIN: usize = 20;
const TICK: usize = 5;
const BAR: usize = 18;
/// The colour bar is at least this high.
const BAR_HEIGHT: usize = 160;
/// The swatch for values that are not numbers, below the colour bar.
const SWATCH: usize = 12;

/// The text around a slice.
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
    /// The second axis is drawn downward instead.
    pub downward: bool,
    /// Both axes are lengths: cells have their true shape.
    pub true_shape: bool,
    /// The name of the values, above the colour bar; without it there is none.
    pub quantity: Option<AxisText>,
    /// Which values have which colours.
    pub scale: Scale,
    /// Lines over the values.
    pub edges: Vec<Edge>,
    /// Pixels that the subtitle has at least, so that pictures of different steps have one size.
    pub room: usize,
}

/// A line along one of the axes, from place to place, in cells from the middle of the first one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    pub from: [f64; 2],
    pub to: [f64; 2],
}

/// A picture with the place of its plane on it.
#[derive(Clone, Debug)]
pub struct Panel {
    pub canvas: Canvas,
    /// The pixel at the top left of the plane.
    pub corner: [usize; 2],
    /// Pixels of the plane.
    pub size: [usize; 2],
    /// Cells of the plane.
    pub cells: [usize; 2],
    /// The second axis runs downward.
    pub downward: bool,
}

impl Panel {
    /// The point of a place, in cells from the middle of the first one.
    pub fn place(&self, [x, y]: [f64; 2]) -> Point {
        let part = |at: f64, i: usize| (at + 0.5) / self.cells[i] as f64 * self.size[i] as f64;
        let [left, top] = self.corner.map(|n| n as f64);
        let base = top + self.size[1] as f64;
        let y = match self.downward {
            true => top + part(y, 1),
            false => base - part(y, 1),
        };
        ((left + part(x, 0)) as f32, y as f32)
    }

    /// The sides of the plane: left, top, right, bottom.
    pub fn clip(&self) -> [usize; 4] {
        let ([left, top], [width, height]) = (self.corner, self.size);
        [left, top, left + width, top + height]
    }

    /// Draws lines over the values.
    pub fn draw_edges(&mut self, edges: &[Edge]) {
        let [left, top, right, bottom] = self.clip();
        for edge in edges {
            let (a, b) = (self.place(edge.from), self.place(edge.to));
            let pixel = |at: f32, low: usize, high: usize| {
                (at.round().max(low as f32) as usize).min(high.saturating_sub(1))
            };
            let (x0, x1) = (
                pixel(a.0.min(b.0), left, right),
                pixel(a.0.max(b.0), left, right),
            );
            let (y0, y1) = (
                pixel(a.1.min(b.1), top, bottom),
                pixel(a.1.max(b.1), top, bottom),
            );
            self.canvas
                .stress([x0, y0], [(x1 - x0).max(1), (y1 - y0).max(1)]);
        }
    }
}

/// The values as they are shown: one per block of cells, the second axis contiguous.
pub struct Reduced {
    pub values: Vec<f64>,
    pub size: [usize; 2],
    /// Cells of a block along both axes.
    pub block: [usize; 2],
    /// Whether a value is not a number.
    pub nans: bool,
}

impl SlicePicture {
    /// Draws a plane and writes it as PNG.
    pub fn write<T: Element>(
        &self,
        path: &Path,
        rows: &(impl Rows<T> + ?Sized),
    ) -> Result<(), FileError> {
        self.drawn(path, rows)?.canvas.write(path)
    }

    /// Draws a plane for a file.
    pub fn drawn<T: Element>(
        &self,
        path: &Path,
        rows: &(impl Rows<T> + ?Sized),
    ) -> Result<Panel, FileError> {
        self.draw(rows).ok_or_else(|| {
            let (expected, found) = (vec![1, 1], rows.shape().to_vec());
            let cause = Cause::Shape { expected, found };
            FileError::new(path, Attempt::Write, cause)
        })
    }

    /// Draws a plane. None unless the array has two axes and at least one value.
    pub fn draw<T: Element>(&self, rows: &(impl Rows<T> + ?Sized)) -> Option<Panel> {
        let &[nx, ny] = rows.shape() else { return None };
        if nx == 0 || ny == 0 {
            return None;
        }
        let shown = self.reduced(rows, [nx, ny]);
        let [sx, sy] = self.cell_pixels(shown.size, shown.block);
        let (width, height) = (shown.size[0] * sx, shown.size[1] * sy);
        let Scale { low, high, .. } = self.scale;

        let (x_low, x_high) = self.across.ends(nx);
        let label = |text: &str| Style::LABEL.width(text);
        let x_ticks = fitting_ticks(x_low, x_high, (width / 60).clamp(2, 12), width, label);
        let (y_low, y_high) = self.up.ends(ny);
        let y_ticks = fitting_ticks(y_low, y_high, (height / 45).clamp(2, 12), height, |_| 8);
        let bar_height = height.max(BAR_HEIGHT);
        let bar_ticks = ticks(low, high, (bar_height / 45).max(4));
        let x_title = axis_title(&self.across.text, x_ticks.exponent);
        let y_title = axis_title(&self.up.text, y_ticks.exponent);
        let quantity = self.quantity.as_ref();
        let bar_title = quantity.map(|text| axis_title(text, bar_ticks.exponent));
        let widest = |ticks: &Ticks| ticks.labels.iter().map(|l| label(l)).max().unwrap_or(0);

        let subtitle = self.whole_subtitle(shown.block);
        let note = label(&subtitle).max(self.room);
        let title = Style::TITLE.width(&self.title);
        let head = MARGIN + 14 + if subtitle.is_empty() { 0 } else { 20 };
        let left = MARGIN + 18 + widest(&y_ticks) + TICK + 6;
        let bar_left = left + width + 26;
        let bar_right = match &bar_title {
            Some(title) => {
                let numbers = BAR + TICK + 5 + widest(&bar_ticks).max(label("NaN"));
                bar_left + numbers.max(label(title))
            }
            None => left + width + widest(&x_ticks) / 2,
        };
        let right = [bar_right, left + title, left + note, left + label(&x_title)];
        // The title of the colour bar stands above it, beside the head if that is short enough.
        let beside = note.max(title) < width;
        let top = head + if beside { 18 } else { 34 };
        let below = match bar_title {
            Some(_) => (bar_height + 28 + SWATCH).max(height + 58),
            None => height + 58,
        };
        let total_width = right.into_iter().max().unwrap_or(0) + MARGIN;
        let mut panel = Panel {
            canvas: Canvas::new(total_width, top + below),
            corner: [left, top],
            size: [width, height],
            cells: [nx, ny],
            downward: self.downward,
        };
        let canvas = &mut panel.canvas;
        let at = |n: usize| n as f32;
        canvas.text(&self.title, at(left), at(MARGIN + 12), Style::TITLE);
        canvas.text(&subtitle, at(left), at(MARGIN + 33), Style::NOTE);

        let colour = self.scale.colours();
        self.fill(canvas, &shown, [left, top], &colour);
        canvas.frame(left, top, width, height, INK);
        let base = top + height;
        let middle = Style::LABEL.at(0.5);
        for (value, text) in x_ticks.values.iter().zip(&x_ticks.labels) {
            let x = left + self.across.pixel(*value, nx, width);
            canvas.fill(x, base + 1, 1, TICK, INK);
            canvas.text(text, at(x) + 0.5, at(base + TICK + 15), middle);
        }
        let centre = at(left) + (at(width) / 2.0).max(at(label(&x_title)) / 2.0);
        canvas.text(&x_title, centre, at(base + 42), middle);
        for (value, text) in y_ticks.values.iter().zip(&y_ticks.labels) {
            let y = match self.downward {
                true => top + self.up.pixel(*value, ny, height),
                false => base - 1 - self.up.pixel(*value, ny, height),
            };
            canvas.fill(left - 1 - TICK, y, TICK, 1, INK);
            canvas.text(text, at(left - TICK - 6), at(y) + 5.0, Style::LABEL.at(1.0));
        }
        let upward = Style {
            upward: true,
            ..middle
        };
        canvas.text(
            &y_title,
            at(MARGIN + 10),
            at(top) + at(height) / 2.0,
            upward,
        );

        if let Some(title) = &bar_title {
            let bar = Bar {
                corner: [bar_left, top],
                height: bar_height,
                ticks: &bar_ticks,
                title,
                nans: shown.nans,
            };
            bar.draw(canvas, self.scale, &colour);
        }
        panel.draw_edges(&self.edges);
        Some(panel)
    }

    /// The second line, with the number of values that a pixel shows if it is more than one.
    fn whole_subtitle(&self, block: [usize; 2]) -> String {
        match block {
            [1, 1] => self.subtitle.clone(),
            [x, y] => [
                self.subtitle.as_str(),
                &format!("{x} \u{d7} {y} values per pixel"),
            ]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("  \u{b7}  "),
        }
    }

    /// Fills the cells of a plane, from its upper left corner.
    fn fill(
        &self,
        canvas: &mut Canvas,
        shown: &Reduced,
        corner: [usize; 2],
        colour: &impl Fn(f64) -> Rgb,
    ) {
        let [left, top] = corner;
        let [sx, sy] = self.cell_pixels(shown.size, shown.block);
        for (i, column) in shown.values.chunks(shown.size[1]).enumerate() {
            for (j, &value) in column.iter().enumerate() {
                let row = match self.downward {
                    true => j,
                    false => shown.size[1] - 1 - j,
                };
                canvas.fill(left + i * sx, top + row * sy, sx, sy, colour(value));
            }
        }
    }

    /// Reads a plane row by row; averages blocks of cells where there are more than can be shown. A block with a value
    /// that is not a number is not a number, so that none is overlooked.
    fn reduced<T: Element>(&self, rows: &(impl Rows<T> + ?Sized), cells: [usize; 2]) -> Reduced {
        let [nx, ny] = cells;
        let block = match self.true_shape {
            true => {
                let shape = self.cell_shape();
                let long = (nx as f64 * shape[0]).max(ny as f64 * shape[1]);
                shape.map(|side| (long / (2 * SIDE) as f64 / side).ceil().max(1.0) as usize)
            }
            false => cells.map(|n| n.div_ceil(2 * SIDE)),
        };
        let size = [nx.div_ceil(block[0]), ny.div_ceil(block[1])];
        let mut values = vec![0.0; size[0] * size[1]];
        let mut row = vec![T::default(); ny];
        for i in 0..nx {
            rows.read(&[i, 0], &mut row);
            let sums = &mut values[i / block[0] * size[1]..][..size[1]];
            for (sum, part) in sums.iter_mut().zip(row.chunks(block[1])) {
                *sum += part.iter().map(|v| v.to_f64()).sum::<f64>();
            }
        }
        let length = |axis: usize, at: usize| block[axis].min(cells[axis] - at * block[axis]);
        let mut index = [0, 0];
        for value in &mut values {
            if block != [1, 1] {
                *value /= (length(0, index[0]) * length(1, index[1])) as f64;
            }
            array::advance(&mut index, &size, 2);
        }
        let nans = values.iter().any(|v| v.is_nan());
        Reduced {
            values,
            size,
            block,
            nans,
        }
    }

    /// Whole pixels per shown cell along both axes, in the ratio of the sizes of blocks as nearly as they allow.
    fn cell_pixels(&self, size: [usize; 2], block: [usize; 2]) -> [usize; 2] {
        if !self.true_shape {
            let sides = [
                SIDE,
                if size[1] == 1 {
                    ROW_HEIGHT
                } else {
                    FREE_HEIGHT
                },
            ];
            return [0, 1].map(|i| (sides[i] / size[i]).clamp(1, SIDE));
        }
        let shape = self.cell_shape();
        let shape = [0, 1].map(|i| shape[i] * block[i] as f64);
        let least = shape[0].min(shape[1]);
        let shape = shape.map(|side| side / least);
        let long = (size[0] as f64 * shape[0]).max(size[1] as f64 * shape[1]);
        let unit = match SIDE as f64 / long {
            large if large >= 1.0 => large.floor().min(64.0),
            small => (2.0 * small).min(1.0),
        };
        shape.map(|s| ((s * unit).round() as usize).max(1))
    }

    /// The sides of a cell relative to the shorter one.
    fn cell_shape(&self) -> [f64; 2] {
        let ratio = self.up.spacing.abs() / self.across.spacing.abs();
        let ratio = if ratio.is_finite() {
            ratio.clamp(0.05, 20.0)
        } else {
            1.0
        };
        [(1.0 / ratio).max(1.0), ratio.max(1.0)]
    }
}

/// A colour bar with numbers.
struct Bar<'a> {
    /// Its pixel at the top left.
    corner: [usize; 2],
    height: usize,
    ticks: &'a Ticks,
    title: &'a str,
    /// A swatch below it says which colour values have that are not numbers.
    nans: bool,
}

impl Bar<'_> {
    fn draw(&self, canvas: &mut Canvas, scale: Scale, colour: &impl Fn(f64) -> Rgb) {
        let ([left, top], height) = (self.corner, self.height);
        let span = scale.high - scale.low;
        for row in 0..height {
            let part = (height - 1 - row) as f64 / (height - 1) as f64;
            let colour = colour(scale.low + part * span);
            canvas.fill(left, top + row, BAR, 1, colour);
        }
        canvas.frame(left, top, BAR, height, INK);
        canvas.text(self.title, left as f32, (top - 14) as f32, Style::LABEL);
        let text_left = (left + BAR + TICK + 5) as f32;
        for (value, text) in self.ticks.values.iter().zip(&self.ticks.labels) {
            let part = (value - scale.low) / span;
            let y = top + height - 1 - (part * (height - 1) as f64).round() as usize;
            canvas.fill(left + BAR + 1, y, TICK, 1, INK);
            canvas.text(text, text_left, y as f32 + 5.0, Style::LABEL);
        }
        if self.nans {
            let y = top + height + 16;
            canvas.fill(left, y, BAR, SWATCH, NAN);
            canvas.frame(left, y, BAR, SWATCH, INK);
            canvas.text("NaN", text_left, y as f32 + 10.5, Style::LABEL);
        }
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

#[cfg(test)]
mod tests;
