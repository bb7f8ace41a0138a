//! What happens to single values right after an update: sources act, then probes and slices record.
//!
//! Effects belong to rows, so that they work in whatever order a schedule advances rows: a row knows its step.

pub use super::injection::EffectContext;
pub use super::row::AdvancedRow;

use super::corrections::Corrections;
use super::injection::RowInjections;
use super::memory::Cells;
use super::receivers::{Picture, Receivers};
use torre_compiler::incident::Refusal;
use torre_compiler::lattice::Axis;
use torre_compiler::layout::Layout;
use torre_compiler::problem::Problem;
use torre_compiler::real::Real;
use torre_compiler::scheme::{Scheme, StageId};
use torre_compiler::statics::Files;

/// All effects of a problem.
pub struct Effects {
    corrections: Corrections,
    /// One for each source, in their order.
    injections: Vec<RowInjections>,
    receivers: Receivers,
    /// Per stage one byte per (x, y): whether the row has any effect.
    flags: Vec<Vec<u8>>,
    /// Whether a stage has any effect.
    stages: Vec<bool>,
    /// Rows along the middle axis.
    middle: i64,
}

impl Effects {
    pub fn new(
        scheme: &Scheme,
        problem: &Problem,
        files: &dyn Files,
        layout: &Layout,
    ) -> Result<Effects, Refusal> {
        let mut effects = Effects {
            corrections: Corrections::new(scheme, problem, files, layout)?,
            injections: Vec::new(),
            receivers: Receivers::new(scheme, problem),
            flags: vec![Vec::new(); scheme.stages.len()],
            stages: vec![false; scheme.stages.len()],
            middle: layout.extent[Axis::MIDDLE],
        };
        let count = (layout.extent[Axis::OUTER] * layout.extent[Axis::MIDDLE]) as usize;
        let corrected: Vec<_> = effects.corrections.rows().collect();
        for (stage, row) in corrected {
            effects.flag(stage, count, std::iter::once(row));
        }
        for (number, source) in problem.sources.iter().enumerate() {
            let injections = RowInjections::new(scheme, problem, files, number, source);
            effects.flag(source.stage, count, injections.rows());
            effects.injections.push(injections);
        }
        let recorded: Vec<_> = effects.receivers.rows().collect();
        for recorded in recorded {
            effects.flag(recorded.stage, count, recorded.rows.into_iter());
        }
        Ok(effects)
    }

    /// Gets ready for steps from `from` on: up to the step that is returned, at most `until`.
    pub fn prepare(&mut self, scheme: &Scheme, files: &dyn Files, from: u64, until: u64) -> u64 {
        self.corrections.prepare(scheme, files, from, until)
    }

    fn flag(&mut self, stage: StageId, count: usize, rows: impl Iterator<Item = (i64, i64)>) {
        for (x, y) in rows {
            let flags = &mut self.flags[stage.index()];
            flags.resize(count, 0);
            flags[(x * self.middle + y) as usize] = 1;
            self.stages[stage.index()] = true;
        }
    }

    /// Whether a stage has effects anywhere.
    pub fn has(&self, stage: StageId) -> bool {
        self.stages[stage.index()]
    }

    /// Whether a row has effects at a stage.
    pub fn at(&self, stage: StageId, (x, y): (i64, i64)) -> bool {
        self.flags[stage.index()]
            .get((x * self.middle + y) as usize)
            .is_some_and(|flag| *flag != 0)
    }

    /// Values of a row are corrected, and sources act on them.
    ///
    /// # Safety
    /// No other thread touches the row meanwhile.
    pub unsafe fn inject<T: Real>(
        &self,
        context: &EffectContext<'_>,
        cells: Cells<T>,
        row: &AdvancedRow,
    ) {
        // SAFETY: passed on.
        unsafe { self.corrections.act(context.layout, cells, row) };
        for injections in &self.injections {
            // SAFETY: passed on.
            unsafe { injections.act(context, cells, row) };
        }
    }

    /// Probes and slices record the values of a row.
    ///
    /// # Safety
    /// No other thread writes the row meanwhile.
    pub unsafe fn record<T: Real>(&self, layout: &Layout, cells: Cells<T>, row: &AdvancedRow) {
        // SAFETY: passed on.
        unsafe { self.receivers.record(layout, cells, row) };
    }

    /// What probe `index` has recorded, one value per step from step 1.
    pub fn probe(&self, index: usize) -> Vec<f64> {
        self.receivers.probe(index)
    }

    /// Continues a probe after a resumed checkpoint.
    pub fn restore_probe(&self, index: usize, record: Vec<f64>) {
        self.receivers.restore_probe(index, record);
    }

    /// Whether rows record the pictures of an output; otherwise they must be taken from memory between runs.
    pub fn records(&self, output: usize) -> bool {
        self.receivers.records(output)
    }

    /// Takes the pictures that are complete: all steps up to `steps` are done.
    pub fn take_pictures(&self, scheme: &Scheme, steps: u64) -> Vec<Picture> {
        self.receivers.take_pictures(scheme, steps)
    }
}
