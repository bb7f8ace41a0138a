//! The dump of a tile program: the text that `torre emit --stage tiles` prints and snapshots show.

use super::{Class, Plane, TileProgram};
use crate::lattice::Axis;
use std::fmt;

impl fmt::Display for Plane {
    /// Axes by their roles x, y, z; in units of depth per half cell and per stage.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for axis in Axis::ALL {
            let factor = self.form[axis];
            if factor == 0 {
                continue;
            }
            let sign = match (factor < 0, first) {
                (true, _) => "-",
                (false, true) => "",
                (false, false) => "+",
            };
            f.write_str(sign)?;
            if factor.abs() != 1 {
                write!(f, "{}", factor.abs())?;
            }
            f.write_str(["x", "y", "z"][axis.index()])?;
            first = false;
        }
        if first {
            f.write_str("0")?;
        }
        write!(f, " slope {}", self.slope)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("updates")?;
        for update in self.updates.iter() {
            write!(f, " {update}")?;
        }
        let [x, y, z] = self.region.0;
        let [a, b, c] = self.position.0;
        write!(f, " in [{x}, {y}, {z}] at [{a}, {b}, {c}]")?;
        if self.leads.iter().any(|&l| l != 0) {
            write!(f, " leads {:?}", self.leads)?;
        }
        Ok(())
    }
}

impl fmt::Display for TileProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tiles of height {}", self.height)?;
        for axis in Axis::ALL {
            if let Some(ring) = self.ring[axis] {
                writeln!(f, "  ring of {ring} half cells along {axis}")?;
            }
        }
        for (i, plane) in self.planes.iter().enumerate() {
            writeln!(f, "  plane {i}: {plane}")?;
        }
        for (i, level) in self.levels.iter().enumerate() {
            write!(f, "  level {i}:")?;
            for (n, cut) in level.iter().enumerate() {
                let comma = if n > 0 { "," } else { "" };
                write!(f, "{comma} plane {} pitch {}", cut.plane, cut.pitch)?;
            }
            writeln!(f)?;
        }
        for (i, classes) in self.stages.iter().enumerate() {
            writeln!(f, "  stage s{i}")?;
            for (n, class) in classes.iter().enumerate() {
                writeln!(f, "    class {n}: {class}")?;
            }
        }
        Ok(())
    }
}
