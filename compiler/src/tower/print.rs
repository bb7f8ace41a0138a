//! Tower programs as text: one line per row operation.
//!
//! Rows are written as component or coefficient, group relative to the origin, and time level where there are several:
//! `E.x[1, 0]`, `u'1[0, 0]`. `s3` is shared row 3, `w3` a slot of waves, `r` a register; `s3+2` is read two indices
//! farther along the inner axis. Where rows are packed, these are indices of packed rows.

use super::allocate::SharedCopy;
use super::block::{Block, Lines};
use super::program::{
    Amend, Amended, Operand, PeriodProgram, RowOp, StageProgram, TowerProgram, Update,
};
use super::residency::{RowRef, RowUpdate, StageAt};
use crate::layout::Layout;
use crate::scheme::{Scheme, ZoneSet};
use std::fmt::{self, Write};

/// A tower program with the names of its scheme.
pub struct Printed<'a> {
    pub scheme: &'a Scheme,
    pub layout: &'a Layout,
    pub program: &'a TowerProgram,
}

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TowerProgram {
            towers,
            block,
            periods,
            ..
        } = self.program;
        let (steps, advance) = (towers.steps, towers.advance);
        writeln!(
            f,
            "towers: a period has {} and advances by ({}, {}); {}",
            counted(steps as usize, "step"),
            advance.x,
            advance.y,
            counted(periods.len(), "alignment"),
        )?;
        self.block(f, block)?;
        let packed = self.packed();
        if !packed.is_empty() {
            writeln!(
                f,
                "rows: packed; thread n has index n + 1 of {} and of coefficients and states at their positions; \
                 offsets are of threads",
                packed.join(", ")
            )?;
        }
        for (number, period) in periods.iter().enumerate() {
            let allocation = &self.program.allocations[number];
            writeln!(
                f,
                "alignment {number}: {}, {} carried on",
                counted(allocation.shared_rows, "shared row"),
                counted(period.carried.len(), "register"),
            )?;
            let carried: Vec<String> = period.carried.iter().map(|c| self.row(c.row)).collect();
            list(f, "  carry   ", &carried)?;
            let held = period.held.iter();
            let held: Vec<String> = held.map(|copy| self.copy(copy)).collect();
            list(f, "  hold    ", &held)?;
            self.variants(f, period)?;
        }
        let rows = self.program.boundary.rows.len();
        writeln!(f, "boundary: {} in memory", counted(rows, "row"))
    }
}

fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

/// Items in lines of at most 110 columns.
fn list(f: &mut fmt::Formatter<'_>, head: &str, items: &[String]) -> fmt::Result {
    let mut line = head.to_owned();
    for item in items {
        if line.len() + item.len() + 2 > 110 {
            writeln!(f, "{}", line.trim_end())?;
            line = " ".repeat(head.len());
        }
        // Writing to a string cannot fail.
        let _ = write!(line, "{item}  ");
    }
    match items.is_empty() {
        true => Ok(()),
        false => writeln!(f, "{}", line.trim_end()),
    }
}

impl Printed<'_> {
    /// The names of the components whose rows leave index 0 out.
    fn packed(&self) -> Vec<&str> {
        let numbering = self.program.towers.numbering;
        let components = self.scheme.components.iter();
        let packed = components.filter(|c| numbering.first(&self.scheme.grid, c.position) > 0);
        packed.map(|c| c.name.as_str()).collect()
    }

    fn block(&self, f: &mut fmt::Formatter<'_>, block: &Block) -> fmt::Result {
        let lines = match &block.lines {
            Lines::Whole => "whole lines".to_owned(),
            Lines::Slabs(slabs) => format!(
                "slabs of {} values of a line, {} of them in a cluster",
                slabs.width, slabs.count
            ),
            Lines::ZBlocks(z_blocks) => format!("z blocks of {} values", z_blocks.threads),
        };
        let ghosts = match &block.ghosts {
            Some(_) => "made where rows arrive",
            None => "in memory",
        };
        writeln!(
            f,
            "block: {lines}; {} threads compute, {} registers each; {} bytes of shared memory; ghosts along the inner \
             axis {ghosts}",
            block.roles.compute,
            block.roles.registers,
            block.all_shared(),
        )
    }

    fn variants(&self, f: &mut fmt::Formatter<'_>, period: &PeriodProgram) -> fmt::Result {
        let all = &self.program.towers.variants.all;
        let mut shown = None;
        for (variant, stages) in all.iter().zip(&period.variants) {
            let names = self.zones(variant.zones);
            if variant.predicated {
                let mut with = match names.is_empty() {
                    true => String::new(),
                    false => format!(" in {names}"),
                };
                with += if variant.faces { " near faces" } else { "" };
                let mirrors = match self.program.towers.mirrored.any_closed() {
                    true => "; reads beyond mirrors take values that the row reads on this side",
                    false => "",
                };
                writeln!(
                    f,
                    "  predicated{with}: the same, with the old value of each row that is cut off{mirrors}"
                )?;
            }
            if shown == Some(variant.zones) {
                if variant.faces && !variant.predicated {
                    writeln!(
                        f,
                        "  near faces: the same, with corrections of whole rows, prefetched"
                    )?;
                }
                continue;
            }
            shown = Some(variant.zones);
            let near = if variant.faces { " near faces" } else { "" };
            match names.is_empty() {
                true if variant.faces => writeln!(f, " {near}:")?,
                true => {}
                false => writeln!(f, "  in {names}{near}:")?,
            }
            for (n, stage) in stages.iter().enumerate() {
                self.stage(f, n, stage)?;
            }
        }
        Ok(())
    }

    /// The names of zones.
    fn zones(&self, zones: ZoneSet) -> String {
        let names = zones.iter().map(|zone| self.scheme.zone(zone).name.clone());
        names.collect::<Vec<String>>().join(", ")
    }

    fn stage(
        &self,
        f: &mut fmt::Formatter<'_>,
        number: usize,
        stage: &StageProgram,
    ) -> fmt::Result {
        let at = StageAt::new(self.scheme, number as i64);
        writeln!(f, "  stage {number} ({}, phase {})", at.stage, at.phase)?;
        for copy in &stage.loads {
            writeln!(f, "    load    {}", self.copy(copy))?;
        }
        let waves = stage.waves.iter().map(|copy| {
            let row = self.rows(at, copy.row.update, &[copy.row]);
            format!("{row} -> w{}", copy.slot)
        });
        list(f, "    waves   ", &waves.collect::<Vec<String>>())?;
        for op in &stage.ops {
            write!(f, "    ")?;
            match op {
                RowOp::Prefetch { update, rows } => {
                    writeln!(f, "prefetch sources of {}", self.rows(at, *update, rows))?;
                }
                RowOp::Await => writeln!(f, "await")?,
                RowOp::Fetch(all) => {
                    let all = all.iter().map(|of| self.amended(at, of));
                    writeln!(f, "fetch   {}", all.collect::<Vec<String>>().join("; "))?;
                }
                RowOp::Amend(all) => {
                    let all = all.iter().map(|amend| self.amend(at, amend));
                    writeln!(f, "amend   {}", all.collect::<Vec<String>>().join("; "))?;
                }
                RowOp::Update(update) => writeln!(f, "update  {}", self.update(update))?,
                RowOp::Inject {
                    update,
                    rows,
                    copied,
                } => {
                    let slots = copied.iter().flatten().map(|slot| format!("w{slot}"));
                    let slots: Vec<String> = slots.collect();
                    let from = match slots.is_empty() {
                        true => String::new(),
                        false => format!(" from {}", slots.join(", ")),
                    };
                    writeln!(f, "inject  {}{from}", self.rows(at, *update, rows))?;
                }
                RowOp::Commit(row) => {
                    writeln!(f, "commit  {}", self.rows(at, row.update, &[*row]))?;
                }
                RowOp::Publish { row, shared, zeros } => {
                    let zeros = zeros.iter().map(|place| format!(", 0 at {place}"));
                    let zeros: String = zeros.collect();
                    writeln!(f, "publish {} -> s{shared}{zeros}", self.row(*row))?;
                }
                RowOp::Store { row, .. } => writeln!(f, "store   {}", self.row(*row))?,
                RowOp::Keep(operand) => writeln!(f, "keep    {}", self.operand(operand))?,
            }
        }
        Ok(())
    }

    fn copy(&self, copy: &SharedCopy) -> String {
        format!("{} -> s{}", self.row(copy.row), copy.shared)
    }

    fn rows(&self, at: StageAt, update: usize, rows: &[RowUpdate]) -> String {
        let of = &at.updates(self.scheme)[update];
        let target = at.target(self.scheme, self.layout, of);
        let row = |row: &RowUpdate| {
            self.row(RowRef {
                at: row.at,
                row: target,
            })
        };
        rows.iter().map(row).collect::<Vec<String>>().join(", ")
    }

    /// A row and the zone in which it is amended.
    fn amended(&self, at: StageAt, of: &Amended) -> String {
        let amendment = &at.updates(self.scheme)[of.row.update].amendments[of.amendment];
        let row = self.rows(at, of.row.update, &[of.row]);
        format!("{row} in {}", self.scheme.zone(amendment.zone).name)
    }

    fn amend(&self, at: StageAt, amend: &Amend) -> String {
        let operands = amend.operands.iter().flatten();
        let mut parts: Vec<String> = operands.map(|o| self.operand(o)).collect();
        let mask = amend.mask.iter();
        parts.extend(mask.map(|m| format!("mask {}", self.operand(m))));
        match parts.is_empty() {
            true => self.amended(at, &amend.of),
            false => format!("{} from {}", self.amended(at, &amend.of), parts.join(", ")),
        }
    }

    fn update(&self, update: &Update) -> String {
        let operands = update.operands.iter().flatten();
        let mut parts: Vec<String> = operands.map(|o| self.operand(o)).collect();
        parts.extend(
            update
                .mask
                .iter()
                .map(|m| format!("mask {}", self.operand(m))),
        );
        parts.extend(
            update
                .old
                .iter()
                .map(|o| format!("old {}", self.operand(o))),
        );
        format!("{} from {}", self.row(update.target), parts.join(", "))
    }

    fn operand(&self, operand: &Operand) -> String {
        let row = self.row(operand.row());
        match operand {
            Operand::Register(_) => format!("{row} r"),
            Operand::Old(_) => format!("{row} old"),
            Operand::Entering { shared, .. } => format!("{row} s{shared}"),
            Operand::CrossLane { shared, by: 0, .. } => format!("{row} s{shared}+0"),
            Operand::CrossLane { shared, by, .. } => format!("{row} s{shared}{by:+}"),
        }
    }

    fn row(&self, row: RowRef) -> String {
        let name = match self.layout.component_of(row.row) {
            Some(id) => {
                let component = self.scheme.component(id);
                let level = row.row.0 - self.layout.row(id, 0).0;
                match component.time_levels {
                    1 => component.name.clone(),
                    _ => format!("{}'{level}", component.name),
                }
            }
            None => {
                let coefs = self.scheme.coefs.iter().enumerate();
                let mut named = coefs.filter(|(n, _)| {
                    self.layout.coef_row(crate::scheme::CoefId(*n as u32)) == row.row
                });
                let found = named.next().map(|(_, coef)| coef.name.clone());
                found.unwrap_or_else(|| row.row.to_string())
            }
        };
        format!("{name}[{}, {}]", row.at.x, row.at.y)
    }
}
