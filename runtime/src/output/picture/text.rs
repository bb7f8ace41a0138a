//! Lines of text as outlines, in the font DejaVu Sans, which the program carries.

use std::sync::LazyLock;
use tiny_skia::{Path, PathBuilder, Transform};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// Height of capitals in parts of the height of the font, where the font does not say.
const CAPITAL: f32 = 0.729;

static FACE: LazyLock<Option<Face<'static>>> =
    LazyLock::new(|| Face::parse(dejavu::sans::regular(), 0).ok());

/// Width of a line of text with capitals of this height, in pixels.
pub fn text_width(text: &str, size: f32) -> f32 {
    match &*FACE {
        Some(face) => advance(face, text) * scale(face, size),
        None => 0.0,
    }
}

/// A line of text from (0, 0) to the right, y downward, its baseline at 0; none where nothing is to be drawn.
pub(super) fn outline(text: &str, size: f32) -> Option<Path> {
    let face = FACE.as_ref()?;
    let mut letters = Letters {
        path: PathBuilder::new(),
        left: 0.0,
    };
    for glyph in glyphs(face, text) {
        // A blank has no outline.
        let _ = face.outline_glyph(glyph, &mut letters);
        letters.left += f32::from(face.glyph_hor_advance(glyph).unwrap_or(0));
    }
    let scale = scale(face, size);
    letters
        .path
        .finish()?
        .transform(Transform::from_scale(scale, -scale))
}

/// Signs that the font lacks are shown as a box.
fn glyphs<'a>(face: &'a Face<'static>, text: &'a str) -> impl Iterator<Item = GlyphId> + 'a {
    text.chars()
        .map(|c| face.glyph_index(c).unwrap_or(GlyphId(0)))
}

/// In units of the font.
fn advance(face: &Face<'static>, text: &str) -> f32 {
    glyphs(face, text)
        .map(|glyph| f32::from(face.glyph_hor_advance(glyph).unwrap_or(0)))
        .sum()
}

/// Pixels per unit of the font.
fn scale(face: &Face<'_>, size: f32) -> f32 {
    let capital = match face.capital_height() {
        Some(height) if height > 0 => f32::from(height),
        _ => CAPITAL * f32::from(face.units_per_em()),
    };
    size / capital
}

/// The outlines of letters beside each other.
struct Letters {
    path: PathBuilder,
    /// Where the next letter begins.
    left: f32,
}

impl OutlineBuilder for Letters {
    fn move_to(&mut self, x: f32, y: f32) {
        self.path.move_to(self.left + x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.path.line_to(self.left + x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.path.quad_to(self.left + x1, y1, self.left + x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let left = self.left;
        self.path
            .cubic_to(left + x1, y1, left + x2, y2, left + x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_add_up_and_capitals_have_their_height() {
        let (one, two) = (text_width("E", 10.0), text_width("EE", 10.0));
        assert!(one > 5.0 && (two - 2.0 * one).abs() < 1e-4);
        assert_eq!(text_width("", 10.0), 0.0);
        let bounds = outline("E", 10.0).unwrap().bounds();
        assert!((bounds.top() + 10.0).abs() < 0.05 && bounds.bottom().abs() < 0.05);
        assert!(outline(" ", 10.0).is_none() && outline("", 10.0).is_none());
    }

    #[test]
    fn the_font_has_the_signs_that_pictures_use() {
        let face = FACE.as_ref().unwrap();
        for c in "E.z = \u{2212}1.5\u{b7}10\u{207b}\u{2079} \u{d7} \u{2192} \u{3bb}\u{b5}".chars() {
            assert!(face.glyph_index(c).is_some(), "{c}");
        }
    }
}
