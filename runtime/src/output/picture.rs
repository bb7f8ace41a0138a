//! Pictures as PNG: slices as colour maps, lines and probes as plots, and series of them as animations.
//!
//! A slice is drawn with whole pixels per cell, its first axis to the right and its second one upward, with a
//! colour bar; values of both signs are white at 0. Values that are not numbers are green.

pub mod canvas;
pub mod colour;
pub mod movie;
pub mod plot;
pub mod scale;
pub mod slice;
mod text;
mod ticks;

pub use canvas::Canvas;
pub use plot::{LinePlot, Series};
pub use scale::{Scale, Spread};
pub use slice::{Edge, Reduced, SlicePicture};
pub use text::text_width;
pub use ticks::plain;

/// Text of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisText {
    /// Name: `x`.
    pub name: String,
    /// Unit, or empty.
    pub units: String,
}

impl AxisText {
    /// A name without a unit.
    pub fn of(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            units: String::new(),
        }
    }
}

/// Positions along an axis of a slice.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureAxis {
    /// Name and unit.
    pub text: AxisText,
    /// Position of the first value.
    pub start: f64,
    /// Distance of neighbouring values.
    pub spacing: f64,
}
