//! A picture in memory: rectangles, smooth strokes and text, written as PNG.

use std::path::Path;

use super::colour::{INK, Rgb, SOFT, WHITE};
use super::font::{self, CAPITAL, Segment};
use crate::output::atomic::AtomicFile;
use crate::output::error::{Attempt, Cause, FileError};

/// Pixels in rows from the top.
#[derive(Clone, Debug, PartialEq)]
pub struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<Rgb>,
}

/// How a text lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Style {
    /// Height of capitals in pixels.
    pub size: f32,
    /// Width of strokes in pixels.
    pub weight: f32,
    /// Which part of the text lies at the given point: 0 its start, 0.5 its middle, 1 its end.
    pub anchor: f32,
    /// Whether the text runs upward.
    pub upward: bool,
    /// Colour of the strokes.
    pub colour: Rgb,
}

impl Style {
    /// Marks and axes.
    pub const LABEL: Self = Self {
        size: 9.5,
        weight: 1.25,
        anchor: 0.0,
        upward: false,
        colour: INK,
    };
    /// The line below the title.
    pub const NOTE: Self = Self {
        colour: SOFT,
        ..Self::LABEL
    };
    /// The first line of a picture.
    pub const TITLE: Self = Self {
        size: 12.0,
        weight: 1.9,
        ..Self::LABEL
    };

    /// The same with another part of the text at the given point.
    pub const fn at(self, anchor: f32) -> Self {
        Self { anchor, ..self }
    }
}

impl Canvas {
    /// A white canvas.
    pub fn new(width: usize, height: usize) -> Self {
        Self {
            width,
            height,
            pixels: vec![WHITE; width * height],
        }
    }

    /// Pixels per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The colour of a pixel; white outside.
    pub fn pixel(&self, x: usize, y: usize) -> Rgb {
        if x < self.width && y < self.height {
            self.pixels[y * self.width + x]
        } else {
            WHITE
        }
    }

    /// Fills a rectangle given by its corner at the top left; what lies outside is left out.
    pub fn fill(&mut self, x: usize, y: usize, width: usize, height: usize, colour: Rgb) {
        let right = x.saturating_add(width).min(self.width);
        for row in y..y.saturating_add(height).min(self.height) {
            if x < right {
                self.pixels[row * self.width..][x..right].fill(colour);
            }
        }
    }

    /// A frame of one pixel around a rectangle, outside of it.
    pub fn frame(&mut self, x: usize, y: usize, width: usize, height: usize, colour: Rgb) {
        let (left, top) = (x.saturating_sub(1), y.saturating_sub(1));
        self.fill(left, top, width + 2, 1, colour);
        self.fill(left, y + height, width + 2, 1, colour);
        self.fill(left, top, 1, height + 2, colour);
        self.fill(x + width, top, 1, height + 2, colour);
    }

    /// Draws segments (in pixels, y downward) as one smooth line: where they overlap it is not darker. What
    /// lies outside of the rectangle `clip` (left, top, right, bottom) is left out.
    pub fn stroke(&mut self, segments: &[Segment], weight: f32, colour: Rgb, clip: [usize; 4]) {
        let [left, top, right, bottom] = clip;
        let (right, bottom) = (right.min(self.width), bottom.min(self.height));
        if left >= right || top >= bottom {
            return;
        }
        // Only the rectangle that the segments touch is looked at.
        let reach = weight / 2.0 + 1.0;
        let span = |values: [f32; 2], low: usize, high: usize| {
            let clamp = |v: f32| (v.max(low as f32) as usize).min(high);
            let (a, b) = (values[0].min(values[1]), values[0].max(values[1]));
            (clamp(a - reach), clamp((b + reach).ceil()))
        };
        let mut mask = vec![0f32; (right - left) * (bottom - top)];
        for &[(ax, ay), (bx, by)] in segments {
            if ![ax, ay, bx, by].iter().all(|v| v.is_finite()) {
                continue;
            }
            let (x0, x1) = span([ax, bx], left, right);
            let (y0, y1) = span([ay, by], top, bottom);
            let (dx, dy) = (bx - ax, by - ay);
            let length = dx * dx + dy * dy;
            for y in y0..y1 {
                for x in x0..x1 {
                    let (px, py) = (x as f32 + 0.5 - ax, y as f32 + 0.5 - ay);
                    let along = if length > 0.0 {
                        ((px * dx + py * dy) / length).clamp(0.0, 1.0)
                    } else {
                        0.0
                    };
                    let (rx, ry) = (px - along * dx, py - along * dy);
                    let cover = weight / 2.0 + 0.5 - (rx * rx + ry * ry).sqrt();
                    let held = &mut mask[(y - top) * (right - left) + x - left];
                    *held = held.max(cover.clamp(0.0, 1.0));
                }
            }
        }
        for (row, mask) in mask.chunks(right - left).enumerate() {
            let pixels = &mut self.pixels[(top + row) * self.width + left..];
            for (pixel, &cover) in pixels.iter_mut().zip(mask) {
                for (old, new) in pixel.iter_mut().zip(colour) {
                    let mixed = f32::from(*old) * (1.0 - cover) + f32::from(new) * cover;
                    *old = mixed.round() as u8;
                }
            }
        }
    }

    /// Draws a line of text with its baseline through (x, y).
    pub fn text(&mut self, text: &str, x: f32, y: f32, style: Style) {
        let (mut segments, width) = font::layout(text);
        let scale = style.size / CAPITAL;
        let (mut low, mut high) = ((f32::MAX, f32::MAX), (f32::MIN, f32::MIN));
        for point in segments.iter_mut().flatten() {
            let along = (point.0 - style.anchor * width) * scale;
            let across = point.1 * scale;
            *point = if style.upward {
                (x - across, y - along)
            } else {
                (x + along, y - across)
            };
            low = (low.0.min(point.0), low.1.min(point.1));
            high = (high.0.max(point.0), high.1.max(point.1));
        }
        let pixel = |v: f32| v.max(0.0) as usize;
        let clip = [
            pixel(low.0 - 3.0),
            pixel(low.1 - 3.0),
            pixel(high.0 + 4.0),
            pixel(high.1 + 4.0),
        ];
        self.stroke(&segments, style.weight, style.colour, clip);
    }

    /// Writes a PNG.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let mut file = AtomicFile::create(path)?;
        let side = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut encoder = png::Encoder::new(&mut file, side(self.width), side(self.height));
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
        encoder
            .write_header()
            .and_then(|mut writer| {
                writer.write_image_data(self.pixels.as_flattened())?;
                writer.finish()
            })
            .map_err(|error| {
                let error = match error {
                    png::EncodingError::IoError(error) => error,
                    other => std::io::Error::other(other),
                };
                FileError::new(path, Attempt::Write, Cause::Io(error))
            })?;
        file.commit()
    }
}

/// Width of a line of text with capitals of this height, in pixels.
pub fn text_width(text: &str, size: f32) -> f32 {
    font::layout(text).1 * size / CAPITAL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawing_stays_inside() {
        let mut canvas = Canvas::new(20, 10);
        canvas.fill(15, 5, 100, usize::MAX, INK);
        assert_eq!((canvas.pixel(19, 9), canvas.pixel(14, 9)), (INK, WHITE));
        canvas.frame(0, 0, 20, 10, INK);
        let far = [[(-1e9, -1e9), (1e9, 1e9)], [(f32::NAN, 0.0), (1.0, 1.0)]];
        canvas.stroke(&far, 2.0, INK, [0, 0, 100, 100]);
        canvas.stroke(&far, 2.0, INK, [30, 0, 10, 10]);
        let style = Style {
            upward: true,
            ..Style::LABEL.at(0.5)
        };
        canvas.text("outside", -50.0, 300.0, style);
        canvas.text("", 5.0, 5.0, style);
        assert_eq!(canvas.pixel(50, 50), WHITE);
    }

    #[test]
    fn strokes_are_smooth_and_do_not_add_up() {
        let mut canvas = Canvas::new(10, 10);
        let line = [[(2.0, 5.0), (8.0, 5.0)], [(2.0, 5.0), (8.0, 5.0)]];
        canvas.stroke(&line, 1.0, [0; 3], [0, 0, 10, 10]);
        assert_eq!(
            (canvas.pixel(5, 4), canvas.pixel(5, 5)),
            ([128; 3], [128; 3])
        );
        assert_eq!(canvas.pixel(5, 7), WHITE);
    }

    #[test]
    fn a_png_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        let mut canvas = Canvas::new(7, 3);
        canvas.fill(1, 1, 2, 1, [10, 20, 30]);
        canvas.write(&path).unwrap();
        let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!((info.width, info.height, bytes.len()), (7, 3, 63));
        assert_eq!(bytes, canvas.pixels.as_flattened());
        assert_eq!(bytes[(7 + 1) * 3..][..3], [10, 20, 30]);
    }
}
