//! A schedule: which tiles, of which sizes, one inside the other.

use super::face::Face;
use super::frame::{Frame, Needed};
use crate::cone::Rational;
use crate::lattice::{Axis, PerAxis};
use std::fmt;

/// An order of execution.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// Each stage over the whole grid, then the next.
    Layerwise,
    Tiled(Tiling),
    Pyramids(Pyramid),
    Boxes(Boxes),
}

/// Overlapped tiles: each computes its base at the end of a time block from all that it comes from. Legal by
/// construction.
#[derive(Clone, Debug, PartialEq)]
pub struct Pyramid {
    /// Steps in a time block; at least 1.
    pub height: u64,
    /// Cells of a base along each axis, at least 1; `None`: the whole axis.
    pub base: PerAxis<Option<i64>>,
}

/// Each stage over the whole grid, then the next, in boxes of cells. Legal, as the updates of a stage are independent.
#[derive(Clone, Debug, PartialEq)]
pub struct Boxes {
    /// Cells of a box along each axis, at least 1; `None`: the whole of the box outside. Outermost first.
    pub levels: Vec<PerAxis<Option<i64>>>,
}

/// Tiles in space and time. Time is cut into time blocks of `height` steps; in a time block, each level cuts the tiles
/// of the level before.
///
/// Tiles run from high to low values of their faces. At the outermost level, tiles with the same index along the first
/// cut form a strip that one thread runs in order, while other threads run other strips as far as the dependences
/// allow; the levels inside run in order on one thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Tiling {
    /// Steps; at least 1.
    pub height: u64,
    /// Outermost first.
    pub levels: Vec<Level>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Level {
    pub cuts: Vec<Cut>,
}

/// Equidistant faces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    pub face: Face,
    /// The distance of neighbouring faces in units of the form, in cells; positive.
    pub pitch: Rational,
}

/// Why a tiling is refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Illegal {
    /// Dependences cross a face against the running order.
    Slope { cut: Cut, needed: Box<Needed> },
    /// The inner axis can only be cut by faces of its own.
    Mixed { cut: Cut },
    /// Pitch or height is not positive.
    Size,
    /// A time block has far more tiles than updates.
    Endless,
    /// Overlapped tiles compute values twice, so they cannot keep states.
    States,
}

/// A tiling is legal iff every face is: there are leads such that for each dependence that counts in the frame,
/// form(space) <= slope * stages + lead of the later update - lead of the earlier one. They exist iff no closed chain
/// of dependences moves up the form faster than the slope. Then no tile waits for one that runs later, for any pitches.
pub fn check_tiling(frame: &Frame, tiling: &Tiling) -> Result<(), Illegal> {
    if tiling.height == 0 {
        return Err(Illegal::Size);
    }
    for cut in tiling.levels.iter().flat_map(|l| &l.cuts) {
        if cut.pitch <= Rational::ZERO {
            return Err(Illegal::Size);
        }
        let form = cut.face.form;
        if form[Axis::INNER] != 0 && (form[Axis::OUTER] != 0 || form[Axis::MIDDLE] != 0) {
            return Err(Illegal::Mixed { cut: *cut });
        }
        if let Some(needed) = frame.needed(form)
            && needed.slope > cut.face.slope
        {
            return Err(Illegal::Slope {
                cut: *cut,
                needed: Box::new(needed),
            });
        }
    }
    Ok(())
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Schedule::Layerwise => f.write_str("layerwise"),
            Schedule::Tiled(tiling) => tiling.fmt(f),
            Schedule::Pyramids(pyramid) => {
                write!(
                    f,
                    "height {}; pyramids of base {}",
                    pyramid.height,
                    Cells(pyramid.base)
                )
            }
            Schedule::Boxes(boxes) => {
                f.write_str("stage by stage")?;
                for level in &boxes.levels {
                    write!(f, "; boxes of {}", Cells(*level))?;
                }
                Ok(())
            }
        }
    }
}

/// Extents of a box; `*` is the whole axis.
struct Cells(PerAxis<Option<i64>>);

impl fmt::Display for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extent = |n: &Option<i64>| n.map_or("*".to_string(), |n| n.to_string());
        let extents: Vec<String> = self.0.0.iter().map(extent).collect();
        f.write_str(&extents.join(" x "))
    }
}

impl fmt::Display for Tiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "height {}", self.height)?;
        for level in &self.levels {
            for (i, cut) in level.cuts.iter().enumerate() {
                write!(f, "{} {cut}", if i > 0 { "," } else { ";" })?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut form = String::new();
        for axis in Axis::ALL {
            let name = ["x", "y", "z"][axis.index()];
            match self.face.form[axis] {
                0 => continue,
                1 if form.is_empty() => form.push_str(name),
                1 => form.push_str(&format!("+{name}")),
                -1 => form.push_str(&format!("-{name}")),
                n if form.is_empty() => form.push_str(&format!("{n}{name}")),
                n => form.push_str(&format!("{n:+}{name}")),
            }
        }
        if form.is_empty() {
            form.push('t');
        }
        write!(f, "{form} slope {} pitch {}", self.face.slope, self.pitch)
    }
}
