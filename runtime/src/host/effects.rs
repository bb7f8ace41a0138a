//! Effects on single values right after an update: sources act, then probes and slices record.
//!
//! Effects belong to rows, so that they work in any order in which a schedule advances rows: a row has its step.

pub use super::injection::EffectContext;
pub use super::row::{AdvancedRow, AdvancedRows};

use super::corrections::Corrections;
use super::injection::RowInjections;
use super::memory::Cells;
use super::receivers::{Receivers, RecordedSlice};
use crate::simulation::Picture;
use torre_compiler::incident::Refusal;
use torre_compiler::lattice::{Axis, Group, Interval, Region};
use torre_compiler::layout::Layout;
use torre_compiler::problem::Problem;
use torre_compiler::real::Real;
use torre_compiler::scheme::{Scheme, StageId};
use torre_compiler::statics::Files;

/// Something acts on the row.
const INJECTS: u8 = 1;
/// Probes record values of the row.
const PROBES: u8 = 2;

/// Where a stage has effects.
#[derive(Clone, Default)]
struct StageEffects {
    /// One byte per (x, y), of [`INJECTS`] and [`PROBES`]; empty if no row has any.
    flags: Vec<u8>,
    /// Encloses the rows with flags along the outer and middle axes.
    flagged: [Interval; 2],
    slices: Vec<RecordedSlice>,
}

/// All effects of a problem.
pub struct Effects {
    corrections: Corrections,
    /// One for each source, in their order.
    injections: Vec<RowInjections>,
    receivers: Receivers,
    stages: Vec<StageEffects>,
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
            corrections: Corrections::new(scheme, problem, files)?,
            injections: Vec::new(),
            receivers: Receivers::new(scheme, problem),
            stages: vec![StageEffects::default(); scheme.stages.len()],
            middle: layout.extent[Axis::MIDDLE],
        };
        let count = (layout.extent[Axis::OUTER] * layout.extent[Axis::MIDDLE]) as usize;
        let corrected: Vec<_> = effects.corrections.rows().collect();
        for (stage, row) in corrected {
            effects.flag(stage, count, INJECTS, std::iter::once(row));
        }
        for (number, source) in problem.sources.iter().enumerate() {
            let injections = RowInjections::new(scheme, problem, files, number, source);
            effects.flag(source.stage, count, INJECTS, injections.rows());
            effects.injections.push(injections);
        }
        let probes: Vec<_> = effects.receivers.probe_rows().collect();
        for (stage, row) in probes {
            effects.flag(stage, count, PROBES, std::iter::once(row));
        }
        for slice in effects.receivers.slices() {
            effects.stages[slice.stage.index()].slices.push(slice);
        }
        Ok(effects)
    }

    /// The step up to which [`Effects::prepare`] gets ready for steps from `from` on, at most `until`.
    pub fn last(&self, from: u64, until: u64) -> u64 {
        self.corrections.last(from, until)
    }

    /// Gets ready for steps from `from` on: up to the step that is returned, at most `until`.
    pub fn prepare(&mut self, scheme: &Scheme, files: &dyn Files, from: u64, until: u64) -> u64 {
        self.corrections.prepare(scheme, files, from, until)
    }

    fn flag(&mut self, stage: StageId, count: usize, flag: u8, rows: impl Iterator<Item = Group>) {
        let own = &mut self.stages[stage.index()];
        for Group { x, y } in rows {
            own.flags.resize(count, 0);
            own.flags[(x * self.middle + y) as usize] |= flag;
            own.flagged[0] = own.flagged[0].hull(Interval::new(x, x + 1));
            own.flagged[1] = own.flagged[1].hull(Interval::new(y, y + 1));
        }
    }

    /// Whether a stage has effects anywhere.
    pub fn has(&self, stage: StageId) -> bool {
        let own = &self.stages[stage.index()];
        !own.flags.is_empty() || !own.slices.is_empty()
    }

    /// Whether some of these rows may have effects at a stage of a step.
    pub fn active(&self, stage: StageId, step: u64, rows: &Region) -> bool {
        let own = &self.stages[stage.index()];
        let [x, y] = own.flagged;
        let [outer, middle, _] = rows.0;
        let flagged = !x.intersect(outer).is_empty() && !y.intersect(middle).is_empty();
        let due = |s: &RecordedSlice| s.is_due(step) && !s.region.intersect(*rows).is_empty();
        flagged || own.slices.iter().any(due)
    }

    fn flags(&self, stage: StageId, Group { x, y }: Group) -> u8 {
        let flags = &self.stages[stage.index()].flags;
        let row = (x * self.middle + y) as usize;
        flags.get(row).copied().unwrap_or(0)
    }

    /// Whether something acts on a row at a stage.
    pub fn injects(&self, stage: StageId, row: Group) -> bool {
        self.flags(stage, row) & INJECTS != 0
    }

    /// Whether probes record values of a row at a stage.
    pub fn probes(&self, stage: StageId, row: Group) -> bool {
        self.flags(stage, row) & PROBES != 0
    }

    /// Whether slices record values of a stage in a step.
    pub fn slices(&self, stage: StageId, step: u64) -> bool {
        self.stages[stage.index()]
            .slices
            .iter()
            .any(|s| s.is_due(step))
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

    /// Probes record values of a row.
    ///
    /// # Safety
    /// No other thread writes the row meanwhile.
    pub unsafe fn record<T: Real>(&self, layout: &Layout, cells: Cells<T>, row: &AdvancedRow) {
        // SAFETY: passed on.
        unsafe { self.receivers.record(layout, cells, row) };
    }

    /// Slices record values of rows.
    ///
    /// # Safety
    /// No other thread writes the rows meanwhile.
    pub unsafe fn record_slices<T: Real>(
        &self,
        layout: &Layout,
        cells: Cells<T>,
        rows: &AdvancedRows,
    ) {
        // SAFETY: passed on.
        unsafe { self.receivers.record_slices(layout, cells, rows) };
    }

    /// The record of probe `index`, one value per step from step 1.
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

    /// Steps from the first one for which all probes of values that advance have a number.
    pub fn recorded(&self) -> Option<u64> {
        self.receivers.recorded()
    }

    /// Takes the pictures that are complete, of whichever steps.
    pub fn take_complete_pictures(&self, scheme: &Scheme) -> Vec<Picture> {
        self.receivers.take_complete_pictures(scheme)
    }

    /// Takes the pictures of all steps up to `steps`, which are done.
    pub fn take_pictures(&self, scheme: &Scheme, steps: u64) -> Vec<Picture> {
        self.receivers.take_pictures(scheme, steps)
    }
}
