//! Programs as text, a line for each stage.

use super::program::PatchProgram;
use super::rooms::Rooms;
use super::shape::{AXES, CoefPlace};
use std::fmt;

impl fmt::Display for PatchProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patch = self.of_axes(&self.shape.patch, " x ");
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
            "  {} warps, patches of {patch} cells",
            self.shape.warps()
        )?;
        if self.three {
            let threads = self.of_axes(&self.shape.threads, " x ");
            writeln!(f, "  {threads} threads")?;
        }
        for n in self.axes() {
            let (axis, along) = (AXES[n], &self.along[n]);
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
            let rims = self.axes().map(|n| {
                let [low, high] = staying.of_states[n];
                format!("{low} and {high} along {}", AXES[n])
            });
            writeln!(
                f,
                "  tiles stay: rims {}, at most {} neighbours",
                rims.collect::<Vec<_>>().join(", "),
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
            if stage.frees {
                f.write_str(", barrier")?;
            }
            for row in &stage.publish {
                write!(f, ", publish r{row} in {}", self.slots.of_row(*row).count())?;
            }
            writeln!(f, "{}", if stage.barrier { ", barrier" } else { "" })?;
        }
        Ok(())
    }
}

impl PatchProgram {
    /// Numbers of the axes that tiles have, as text.
    pub fn of_axes(&self, numbers: &[i64; 3], between: &str) -> String {
        let all: Vec<String> = self.axes().map(|n| numbers[n].to_string()).collect();
        all.join(between)
    }
}
