//! The work of a scheme in a step by pyramids, as far as it costs time.

use super::layers::amendments;
use super::predict::arithmetic;
use super::zones::InZones;
use std::collections::BTreeMap;
use torre_compiler::layout::Layout;
use torre_compiler::patch::{AMENDED, AXES, CoefPlace, Shape, halos_of_rows};
use torre_compiler::scheme::{Op, Precision, Scheme, Update};

/// Steps of time blocks that `auto` tries with three axes.
pub(super) const LOW: [u64; 3] = [1, 2, 3];

/// The work of a scheme in a step, as far as it costs time.
#[derive(Clone, Debug)]
pub(super) struct Work {
    /// Instructions of a cell: arithmetic, and loads of coefficients from shared memory.
    pub arithmetic: f64,
    pub coefs: f64,
    /// Rows, each in a stage, times cells beyond a patch that are read of them, along each axis.
    pub across: [f64; 3],
    /// The same of the stage that reads most.
    pub most_across: [f64; 3],
    pub stages: f64,
    /// Of a scheme with three axes, for some heights: the halo that each held row needs, along the axes.
    pub needs: BTreeMap<u64, Vec<[[i64; 2]; 3]>>,
    /// Rows that are loaded and stored, and coefficients.
    pub held: f64,
    pub loaded_coefs: usize,
    /// Lines of cells that a stage needs beside the values that are held.
    pub window: i64,
    /// Words of a value.
    pub words: f64,
    /// Registers of a thread beside the registers of its values.
    pub beside: f64,
    pub zones: InZones,
}

impl Work {
    /// Words of values that a thread holds.
    pub fn words_of(&self, shape: &Shape) -> f64 {
        let coefs = match shape.coefs {
            CoefPlace::Registers => self.loaded_coefs as f64,
            CoefPlace::Shared => 0.0,
        };
        // Tiles that use slots again are as large as registers allow: threads keep lines in flight in memory, as far as
        // registers do not hold them.
        let window = match shape.reuses_slots {
            false => (self.window * shape.patch[1] * shape.patch[2]) as f64,
            true => 0.0,
        };
        let amended = if self.zones.any() {
            AMENDED as f64
        } else {
            0.0
        };
        ((self.held + coefs) * shape.count() as f64 + window + amended) * self.words
    }

    /// Registers of a thread that holds `words` words of values.
    pub fn registers(&self, shape: &Shape, words: f64) -> f64 {
        // Their lines in flight are not among the words.
        let more = match shape.reuses_slots {
            false => MORE * (words - LARGE).max(0.0),
            true => 0.0,
        };
        words + self.beside + more
    }

    /// Values that a tile loads of others where it stays, of all rows that are held; `tile`: its cells.
    pub fn halo(&self, base: [i64; 3], height: u64, tile: i64) -> f64 {
        let stored = base.iter().product::<i64>();
        let of_row = |row: &[[i64; 2]; 3]| {
            let along = |n: usize| base[n] + row[n].iter().sum::<i64>();
            ((0..3).map(along).product::<i64>() - stored) as f64
        };
        match self.needs.get(&height) {
            Some(rows) => rows.iter().map(of_row).sum(),
            None => (tile - stored) as f64 * self.held,
        }
    }

    pub fn new(scheme: &Scheme, layout: &Layout) -> Work {
        let mut work = Work {
            arithmetic: arithmetic(scheme) as f64,
            coefs: 0.0,
            across: [0.0; 3],
            most_across: [0.0; 3],
            needs: BTreeMap::new(),
            stages: scheme.stages.len() as f64,
            held: 0.0,
            loaded_coefs: scheme.full_coefs(),
            window: 0,
            words: scheme.precision.bytes() as f64 / 4.0,
            beside: beside(scheme),
            zones: InZones::new(scheme),
        };
        if scheme.grid.dimensions() == 3 {
            let needs = LOW.map(|height| (height, halos_of_rows(scheme, layout, height)));
            work.needs.extend(needs);
        }
        let mut rows = Vec::new();
        for stage in scheme.stage_ids() {
            let updates = &scheme.stages[stage.index()].updates;
            let mut reach = BTreeMap::new();
            for read in updates.iter().flat_map(|u| u.body.reads()) {
                let row = layout.read_row(scheme, stage, 0, read);
                let own: &mut [[i64; 2]; 3] = reach.entry(row).or_default();
                for (n, axis) in AXES.into_iter().enumerate() {
                    let by = i64::from(read.offset[axis]);
                    own[n] = [own[n][0].max(-by), own[n][1].max(by)];
                }
                rows.push(row);
            }
            let all = reach.values();
            for n in 0..3 {
                let across = all.clone().map(|r| (r[n][0] + r[n][1]) as f64).sum::<f64>();
                work.across[n] += across;
                work.most_across[n] = work.most_across[n].max(across);
            }
            let widest = all.map(|r| r[0][0].max(r[0][1]) + 1).max().unwrap_or(1);
            work.window = work.window.max(widest * updates.len() as i64);
            work.coefs += updates.iter().map(|u| coefs(u) as f64).sum::<f64>();
        }
        let newest = scheme.component_ids().map(|id| layout.row(id, 0));
        rows.extend(newest);
        rows.sort_unstable();
        rows.dedup();
        work.held = rows.len() as f64;
        work
    }
}

/// Registers of a thread beside the registers of its values, from the needs of NVIDIA's assembler for 24 shapes of 12
/// schemes: for places and counters, where updates are amended, and for new values that do not take the places of old
/// ones, as the assembler begins lines before it ends others.
const BESIDE: f64 = 24.0;
/// Words of a patch beyond which the assembler needs twice as many registers for each: at 255 registers it spilled 58
/// words of a patch of 48 cells of TM waves with media, and 38 of one of 40 cells of TE waves.
const LARGE: f64 = 128.0;
const MORE: f64 = 1.0;
const AMENDING: f64 = 24.0;
const APART: [f64; 2] = [16.0, 48.0];

fn beside(scheme: &Scheme) -> f64 {
    let amends = amendments(scheme).next().is_some();
    let apart = scheme.components.iter().any(|c| c.time_levels > 1);
    let of_apart = match scheme.precision {
        Precision::F32 => APART[0],
        Precision::F64 => APART[1],
    };
    BESIDE + if amends { AMENDING } else { 0.0 } + if apart { of_apart } else { 0.0 }
}

fn coefs(update: &Update) -> usize {
    let read = update
        .body
        .ops
        .iter()
        .filter(|op| matches!(op, Op::Coef(_)));
    read.count() + usize::from(update.mask.is_some())
}
