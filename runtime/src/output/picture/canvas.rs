//! A picture in memory: rectangles, smooth strokes and text, written as PNG.

use std::io::Write;
use std::path::Path;

use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Mask, Paint, PathBuilder, Pixmap, PremultipliedColorU8,
    Rect, Stroke, StrokeDash, Transform,
};

use super::colour::{INK, Rgb, SOFT, WHITE};
use super::text::{outline, text_width};
use crate::output::atomic::AtomicFile;
use crate::output::error::{Attempt, Cause, FileError};

/// A point in pixels from the top left corner.
pub type Point = (f32, f32);

/// Larger pictures are cut off, in pixels per side.
const MOST: usize = 16_384;

/// Pixels in rows from the top, none of them transparent.
#[derive(Clone, Debug, PartialEq)]
pub struct Canvas {
    pixels: Pixmap,
}

/// How a text lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Style {
    /// Height of capitals in pixels.
    pub size: f32,
    /// Which part of the text lies at the given point: 0 its start, 0.5 its middle, 1 its end.
    pub anchor: f32,
    /// Whether the text runs upward.
    pub upward: bool,
    pub colour: Rgb,
}

impl Style {
    /// Marks and axes.
    pub const LABEL: Self = Self {
        size: 9.5,
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
        ..Self::LABEL
    };

    /// The same with another part of the text at the given point.
    pub const fn at(self, anchor: f32) -> Self {
        Self { anchor, ..self }
    }

    /// Width of a text in whole pixels.
    pub fn width(self, text: &str) -> usize {
        text_width(text, self.size).ceil() as usize
    }
}

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Width in pixels.
    pub weight: f32,
    pub colour: Rgb,
    /// Pixels of a dash and of the gap after it; none: no gaps.
    pub dash: Option<f32>,
}

impl Line {
    /// A line without gaps.
    pub const fn new(weight: f32, colour: Rgb) -> Self {
        Self {
            weight,
            colour,
            dash: None,
        }
    }
}

impl Canvas {
    /// A white canvas of at least one pixel.
    pub fn new(width: usize, height: usize) -> Self {
        let side = |n: usize| n.clamp(1, MOST) as u32;
        let mut pixels = Pixmap::new(side(width), side(height)).expect("sides are within limits");
        pixels.fill(Color::WHITE);
        Self { pixels }
    }

    /// Pixels per row.
    pub fn width(&self) -> usize {
        self.pixels.width() as usize
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.pixels.height() as usize
    }

    /// The colour of a pixel; white outside.
    pub fn pixel(&self, x: usize, y: usize) -> Rgb {
        if x >= self.width() || y >= self.height() {
            return WHITE;
        }
        let pixel = self.pixels.pixels()[y * self.width() + x];
        [pixel.red(), pixel.green(), pixel.blue()]
    }

    /// The same picture with these sides: cut off, or with white added, on the right and below.
    pub fn resized(&self, width: usize, height: usize) -> Self {
        let mut canvas = Self::new(width, height);
        canvas.place(self, 0, 0);
        canvas
    }

    /// Copies another picture to a place; pixels outside are left out.
    pub fn place(&mut self, other: &Canvas, x: usize, y: usize) {
        let (width, height) = (self.width(), self.height());
        let columns = other.width().min(width.saturating_sub(x));
        for row in 0..other.height().min(height.saturating_sub(y)) {
            let from = &other.pixels.pixels()[row * other.width()..][..columns];
            self.pixels.pixels_mut()[(y + row) * width + x..][..columns].copy_from_slice(from);
        }
    }

    /// Fills a rectangle given by its corner at the top left; pixels outside are left out.
    pub fn fill(&mut self, x: usize, y: usize, width: usize, height: usize, colour: Rgb) {
        let columns = self.width();
        let right = x.saturating_add(width).min(columns);
        let bottom = y.saturating_add(height).min(self.height());
        let colour = solid(colour);
        for row in y..bottom {
            if x < right {
                self.pixels.pixels_mut()[row * columns..][x..right].fill(colour);
            }
        }
    }

    /// Makes a rectangle darker where it is light, and lighter where it is dark, so that it shows over any colour.
    pub fn stress(&mut self, corner: [usize; 2], size: [usize; 2]) {
        const COVER: f32 = 0.6;
        let [left, top] = corner;
        let right = left.saturating_add(size[0]).min(self.width());
        let bottom = top.saturating_add(size[1]).min(self.height());
        for y in top..bottom {
            for x in left..right {
                let under = self.pixel(x, y).map(f32::from);
                // Luma of ITU-R BT.601.
                let light = 0.299 * under[0] + 0.587 * under[1] + 0.114 * under[2];
                let over = if light > 110.0 { INK } else { WHITE };
                let mixed = |i: usize| under[i] * (1.0 - COVER) + f32::from(over[i]) * COVER;
                self.fill(x, y, 1, 1, std::array::from_fn(|i| mixed(i).round() as u8));
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

    /// Draws smooth lines through points, joined where they meet. Parts outside of the rectangle `clip` (left, top,
    /// right, bottom) are left out, and so is a line through a point that is not finite.
    pub fn stroke(&mut self, lines: &[Vec<Point>], line: Line, clip: [usize; 4]) {
        let mut path = PathBuilder::new();
        for points in lines {
            let finite = |(x, y): &Point| x.is_finite() && y.is_finite();
            if !points.iter().all(finite) {
                continue;
            }
            for (i, &(x, y)) in points.iter().enumerate() {
                // Far points would lose the places of near ones to rounding.
                let (x, y) = (x.clamp(-1e5, 1e5), y.clamp(-1e5, 1e5));
                match i {
                    0 => path.move_to(x, y),
                    _ => path.line_to(x, y),
                }
            }
            if let [(x, y)] = points[..] {
                // A point alone is a dot.
                path.line_to(x.clamp(-1e5, 1e5), y.clamp(-1e5, 1e5));
            }
        }
        let (Some(path), Some(mask)) = (path.finish(), self.mask(clip)) else {
            return;
        };
        let stroke = Stroke {
            width: line.weight,
            line_cap: LineCap::Round,
            line_join: LineJoin::Round,
            dash: line
                .dash
                .and_then(|dash| StrokeDash::new(vec![dash, dash], 0.0)),
            ..Stroke::default()
        };
        let paint = paint(line.colour);
        self.pixels
            .stroke_path(&path, &paint, &stroke, Transform::identity(), Some(&mask));
    }

    /// Fills a disc.
    pub fn disc(&mut self, centre: Point, radius: f32, colour: Rgb) {
        let (x, y) = centre;
        if let Some(path) = PathBuilder::from_circle(x, y, radius) {
            let paint = paint(colour);
            let rule = FillRule::Winding;
            self.pixels
                .fill_path(&path, &paint, rule, Transform::identity(), None);
        }
    }

    /// The rectangle (left, top, right, bottom) as far as it lies inside; none where nothing does.
    fn mask(&self, [left, top, right, bottom]: [usize; 4]) -> Option<Mask> {
        let (right, bottom) = (right.min(self.width()), bottom.min(self.height()));
        if left >= right || top >= bottom {
            return None;
        }
        let sides = [left, top, right, bottom].map(|side| side as f32);
        let rectangle = Rect::from_ltrb(sides[0], sides[1], sides[2], sides[3])?;
        let mut mask = Mask::new(self.pixels.width(), self.pixels.height())?;
        let path = PathBuilder::from_rect(rectangle);
        mask.fill_path(&path, FillRule::Winding, false, Transform::identity());
        Some(mask)
    }

    /// Draws a line of text with its baseline through (x, y).
    pub fn text(&mut self, text: &str, x: f32, y: f32, style: Style) {
        let Some(path) = outline(text, style.size) else {
            return;
        };
        let back = -style.anchor * text_width(text, style.size);
        let place = match style.upward {
            true => Transform::from_row(0.0, -1.0, 1.0, 0.0, x, y - back),
            false => Transform::from_translate(x + back, y),
        };
        let paint = paint(style.colour);
        self.pixels
            .fill_path(&path, &paint, FillRule::Winding, place, None);
    }

    /// Writes a PNG.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let mut file = AtomicFile::create(path)?;
        let encoder = self.encoder(&mut file);
        encoder
            .write_header()
            .and_then(|mut writer| {
                writer.write_image_data(&self.bytes())?;
                writer.finish()
            })
            .map_err(|error| failed(path, error))?;
        file.commit()
    }

    /// An encoder for pictures of this size.
    pub(super) fn encoder<'a, W: Write>(&self, to: W) -> png::Encoder<'a, W> {
        let mut encoder = png::Encoder::new(to, self.pixels.width(), self.pixels.height());
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fastest);
        encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
        encoder
    }

    /// Red, green and blue of all pixels.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let pixels = self.pixels.pixels();
        let mut bytes = vec![0; 3 * pixels.len()];
        for (colours, p) in bytes.chunks_exact_mut(3).zip(pixels) {
            colours.copy_from_slice(&[p.red(), p.green(), p.blue()]);
        }
        bytes
    }
}

/// A picture that could not be written.
pub(super) fn failed(path: &Path, error: png::EncodingError) -> FileError {
    let error = match error {
        png::EncodingError::IoError(error) => error,
        other => std::io::Error::other(other),
    };
    FileError::new(path, Attempt::Write, Cause::Io(error))
}

fn solid([r, g, b]: Rgb) -> PremultipliedColorU8 {
    PremultipliedColorU8::from_rgba(r, g, b, 255).unwrap_or(PremultipliedColorU8::TRANSPARENT)
}

fn paint<'a>([r, g, b]: Rgb) -> Paint<'a> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(r, g, b, 255);
    paint
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawing_stays_inside() {
        let mut canvas = Canvas::new(20, 10);
        canvas.fill(15, 5, 100, usize::MAX, INK);
        assert_eq!((canvas.pixel(19, 9), canvas.pixel(14, 9)), (INK, WHITE));
        canvas.stress([18, 8], [9, 9]);
        canvas.stress([0, 0], [1, 1]);
        let [dark, light] = [canvas.pixel(0, 0), canvas.pixel(18, 8)].map(|c| c[0]);
        assert!(dark < 130 && light > 160, "{dark} {light}");
        canvas.frame(0, 0, 20, 10, INK);
        let far = [
            vec![(-1e9, -1e9), (1e9, 1e9)],
            vec![(f32::NAN, 0.0), (1.0, 1.0)],
            vec![(3.0, 3.0)],
            vec![],
        ];
        let line = Line::new(2.0, INK);
        canvas.stroke(&far, line, [0, 0, 100, 100]);
        canvas.stroke(&far, line, [30, 0, 10, 10]);
        let style = Style {
            upward: true,
            ..Style::LABEL.at(0.5)
        };
        canvas.text("outside", -50.0, 300.0, style);
        canvas.text("", 5.0, 5.0, style);
        canvas.disc((500.0, f32::NAN), 3.0, INK);
        assert_eq!(canvas.pixel(50, 50), WHITE);
        assert_eq!(Canvas::new(0, usize::MAX).height(), MOST);
    }

    #[test]
    fn strokes_are_smooth_clipped_and_do_not_add_up() {
        let mut canvas = Canvas::new(10, 10);
        let line = vec![(2.0, 5.5), (8.0, 5.5)];
        let black = Line::new(2.0, [0; 3]);
        canvas.stroke(&[line.clone(), line], black, [0, 0, 6, 10]);
        for y in [4, 6] {
            let [grey, ..] = canvas.pixel(4, y);
            assert!((100..156).contains(&grey), "{grey}");
        }
        assert_eq!(canvas.pixel(4, 5), [0; 3]);
        assert_eq!((canvas.pixel(5, 8), canvas.pixel(6, 5)), (WHITE, WHITE));
    }

    #[test]
    fn text_runs_right_or_upward_from_its_anchor() {
        let inked = |style: Style| {
            let mut canvas = Canvas::new(60, 60);
            canvas.text("HH", 30.0, 30.0, style);
            let all = (0..60 * 60).map(|i| (i % 60, i / 60));
            let marked: Vec<_> = all.filter(|&(x, y)| canvas.pixel(x, y) != WHITE).collect();
            let side = |part: fn(&(usize, usize)) -> usize| {
                let (low, high) = (marked.iter().map(part).min(), marked.iter().map(part).max());
                (low.unwrap(), high.unwrap())
            };
            (side(|p| p.0), side(|p| p.1))
        };
        let ((left, right), (top, bottom)) = inked(Style::LABEL);
        assert!(left >= 30 && right > 40 && top >= 19 && bottom <= 30);
        let ((left, right), _) = inked(Style::LABEL.at(1.0));
        assert!(left < 20 && right <= 30);
        let upward = Style {
            upward: true,
            ..Style::LABEL
        };
        let ((left, right), (top, bottom)) = inked(upward);
        assert!(left >= 19 && right <= 30 && top < 20 && bottom <= 30);
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
        assert_eq!(bytes, canvas.bytes());
        assert_eq!(bytes[(7 + 1) * 3..][..3], [10, 20, 30]);
        let large = canvas.resized(9, 2);
        assert_eq!((large.width(), large.height()), (9, 2));
        assert_eq!(
            (large.pixel(1, 1), large.pixel(8, 1)),
            ([10, 20, 30], WHITE)
        );
    }
}
