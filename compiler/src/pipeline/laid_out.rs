//! A pipeline of given passes, laid out as a whole.

use super::{Builder, Fault, Op, Pass, Window, check};
use std::fmt;

/// Why passes cannot be laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLayout {
    /// The buffer is too small.
    TooFewPlaces {
        /// Planes that it has to hold at a time.
        needed: i64,
        places: i64,
    },
    /// Slabs are narrower than the part that others need of them.
    Narrow {
        /// Planes of a slab, and the planes that it would have to have.
        base: i64,
        needed: i64,
    },
    /// Nothing can run any more: a defect.
    Stuck,
}

impl fmt::Display for NoLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoLayout::TooFewPlaces { needed, places } => write!(
                f,
                "{needed} planes are needed at a time, and there is room for {places}"
            ),
            NoLayout::Narrow { base, needed } => write!(
                f,
                "a slab has {base} planes, and the one after the next one needs {needed} of it"
            ),
            NoLayout::Stuck => f.write_str("time blocks wait for each other"),
        }
    }
}

impl std::error::Error for NoLayout {}

/// A pipeline of some passes, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct LaidOut {
    pub window: Window,
    pub passes: Vec<Pass>,
    pub ops: Vec<Op>,
    /// Along the outer axis towers move up (1) or down (-1).
    pub way: i64,
    /// The most planes that are held at a time.
    pub peak: i64,
}

impl LaidOut {
    pub fn new(window: Window, passes: Vec<Pass>, way: i64) -> Result<LaidOut, NoLayout> {
        let mut builder = Builder::new(window.clone());
        let mut left = passes.iter();
        let mut ops = Vec::new();
        loop {
            if builder.may_begin() {
                match left.next() {
                    Some(pass) => builder.begin(pass.clone()),
                    None if builder.is_idle() => break,
                    None => {}
                }
            }
            ops.extend(builder.tick()?);
        }
        let peak = builder.peak();
        Ok(LaidOut {
            window,
            passes,
            ops,
            way,
            peak,
        })
    }

    /// Whether it is right for every interleaving.
    pub fn check(&self) -> Result<(), Fault> {
        check(&self.window, &self.passes, &self.ops)
    }
}
