//! Corrections at the faces of boxes of total fields, by rows.
//!
//! Before steps are run, the waves of all of them are computed, so that threads only read them; a run goes in parts
//! whose waves have room.

use super::memory::Cells;
use super::row::AdvancedRow;
use torre_compiler::incident::{self, Group, Refusal, Sizes};
use torre_compiler::injection::given;
use torre_compiler::lattice::{self, PerAxis};
use torre_compiler::layout::Layout;
use torre_compiler::problem::Problem;
use torre_compiler::real::Real;
use torre_compiler::scheme::{Scheme, StageId};
use torre_compiler::statics::Files;

/// Bytes of the waves that are known at a time.
const WAVE_BYTES: u64 = 64 << 20;

/// The least number of steps whose waves are known at a time, for any number of bytes; and the greatest.
const LEAST_STEPS: u64 = 16;
const MOST_STEPS: u64 = 1 << 12;

/// An upper bound of the bytes that the corrections of a problem take: tables, and the waves of some steps.
pub fn bytes(sizes: &Sizes) -> u64 {
    let waves = WAVE_BYTES.min(sizes.waves.saturating_mul(8 * MOST_STEPS));
    let waves = waves.max(sizes.waves.saturating_mul(8 * LEAST_STEPS));
    sizes.bytes.saturating_add(waves)
}

/// The corrections of a problem.
#[derive(Default)]
pub(super) struct Corrections {
    corrections: incident::Corrections,
    /// The waves of some steps, one step after the other.
    waves: Vec<f64>,
    steps: std::ops::Range<u64>,
}

impl Corrections {
    pub fn new(
        scheme: &Scheme,
        problem: &Problem,
        files: &dyn Files,
    ) -> Result<Corrections, Refusal> {
        Ok(Corrections {
            corrections: incident::Corrections::new(scheme, problem, files)?,
            waves: Vec::new(),
            steps: 0..0,
        })
    }

    /// The rows that are corrected after each stage.
    pub fn rows(&self) -> impl Iterator<Item = (StageId, lattice::Group)> + '_ {
        let all = self.corrections.rows.iter();
        all.flat_map(|rows| {
            rows.rows()
                .map(|[x, y]| (rows.group.stage, lattice::Group { x, y }))
        })
    }

    /// The step up to which the waves of steps from `from` on have room, at most `until`.
    pub fn last(&self, from: u64, until: u64) -> u64 {
        let each = self.corrections.len() as u64 * 8;
        match each {
            0 => until,
            _ => {
                let steps = (WAVE_BYTES / each).clamp(LEAST_STEPS, MOST_STEPS);
                until.min(from.saturating_add(steps))
            }
        }
    }

    /// Computes the waves of steps from `from` on: up to the step that is returned, at most `until`.
    pub fn prepare(&mut self, scheme: &Scheme, files: &dyn Files, from: u64, until: u64) -> u64 {
        let until = self.last(from, until);
        if self.corrections.is_empty() {
            return until;
        }
        self.waves.clear();
        for step in from..until {
            self.corrections.waves(scheme, files, step, &mut self.waves);
        }
        self.steps = from..until;
        until
    }

    /// Corrects the values of a row that were just computed.
    ///
    /// # Safety
    /// No other thread touches the row meanwhile.
    pub unsafe fn act<T: Real>(&self, layout: &Layout, cells: Cells<T>, of: &AdvancedRow) {
        let group = Group {
            stage: of.stage,
            component: of.component,
        };
        let all = self.corrections.rows.iter();
        for rows in all.filter(|rows| rows.group == group) {
            let lattice::Group { x, y } = of.group;
            let mut places = rows.row([x, y]).peekable();
            if places.peek().is_none() {
                continue;
            }
            debug_assert!(self.steps.contains(&of.step));
            let first = (of.step - self.steps.start) as usize * self.corrections.len();
            let waves = &self.waves[first..first + self.corrections.len()];
            let start = layout.element(of.row, PerAxis([x, y, 0]));
            for (z, wave) in places {
                if of.range.contains(z) {
                    let value: T = given(1.0, waves[wave as usize]);
                    // SAFETY: z lies in the component's extent; the caller excludes other threads.
                    unsafe { cells.set(start + z, cells.get(start + z).add(value)) };
                }
            }
        }
    }
}
