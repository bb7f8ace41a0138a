//! Programs as text, a line for each stage.

use super::program::PatchProgram;
use super::rooms::Rooms;
use super::shape::{AXES, CoefPlace};
use std::fmt;

impl fmt::Display for PatchProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [outer, inner] = self.shape.patch;
        let coefs = match self.shape.coefs {
            CoefPlace::Registers => "registers",
            CoefPlace::Shared => "shared memory",
        };
        writeln!(
            f,
            "pyramids of height {}, in rounds of {}",
            self.height, self.round
        )?;
        writeln!(
            f,
            "  {} warps, patches of {outer} x {inner} cells",
            self.shape.warps
        )?;
        for (axis, along) in AXES.into_iter().zip(&self.along) {
            let [below, above] = along.halo;
            let ring = if along.ring.is_some() {
                ", around the ends"
            } else {
                ""
            };
            writeln!(
                f,
                "  {axis}: {} bases of {}, halo {below} below and {above} above{ring}",
                along.tiles, along.base
            )?;
        }
        let held = self.held.iter().enumerate().filter(|(_, held)| **held);
        let held: Vec<String> = held.map(|(row, _)| format!("r{row}")).collect();
        writeln!(
            f,
            "  held {}; {} coefficients in {coefs}",
            held.join(" "),
            self.coefs.len()
        )?;
        if self.rooms.any() {
            let Rooms { count, states, .. } = &self.rooms;
            writeln!(
                f,
                "  {count} tiles have rooms for {states} states of a cell"
            )?;
        }
        if let Some(staying) = &self.stays {
            let [[low, high], [begin, end]] = staying.rims;
            writeln!(
                f,
                "  tiles stay: rims {low} and {high} along {}, {begin} and {end} along {}, at most {} neighbours",
                AXES[0],
                AXES[1],
                staying.width()
            )?;
        }
        for stage in &self.stages {
            write!(f, "  step {} {}:", stage.phase, stage.stage)?;
            for update in &stage.updates {
                write!(f, " update r{}", update.target)?;
                for amendment in &update.amendments {
                    write!(f, " amended in {}", amendment.zone)?;
                }
            }
            for row in &stage.leave {
                write!(f, ", leave r{row}")?;
            }
            for row in &stage.publish {
                write!(f, ", publish r{row} in {}", self.slots.of_row(*row).count())?;
            }
            writeln!(f, "{}", if stage.meets { ", meet" } else { "" })?;
        }
        Ok(())
    }
}
