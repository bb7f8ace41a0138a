//! Pictures as PNG: slices as colour maps, lines and probes as plots.
//!
//! A slice is drawn with whole pixels per cell, its first axis to the right and its second one upward, with a
//! colour bar; signed values are white at 0 and symmetric about it. Values that are not numbers are green.

pub mod canvas;
pub mod colour;
mod font;
pub mod plot;
pub mod slice;
mod ticks;

pub use canvas::Canvas;
pub use plot::{LinePlot, Series};
pub use slice::{Scale, SlicePicture};

/// Text of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisText {
    /// Name: `x`.
    pub name: String,
    /// Unit, or empty.
    pub units: String,
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
