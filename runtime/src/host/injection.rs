//! Injections into rows: additions of sources to values right after their updates.

use super::memory::Cells;
use super::row::AdvancedRow;
use std::collections::BTreeMap;
use torre_compiler::injection::{for_each_cell, given, has_one_wave, inject};
use torre_compiler::lattice::{Axis, Group, PerAxis};
use torre_compiler::layout::Layout;
use torre_compiler::problem::{Problem, Source};
use torre_compiler::real::Real;
use torre_compiler::scheme::{ComponentId, Scheme, StageId};
use torre_compiler::statics::{Files, source_wave};

/// Longer runs evaluate the waves of sources when they are needed.
pub const MOST_TABLED_STEPS: u64 = 1 << 20;

/// The data with which sources are evaluated.
#[derive(Clone, Copy)]
pub struct EffectContext<'a> {
    pub scheme: &'a Scheme,
    pub problem: &'a Problem,
    pub files: &'a dyn Files,
    pub layout: &'a Layout,
}

/// The injections of a source, by rows.
pub(super) struct RowInjections {
    pub component: ComponentId,
    pub stage: StageId,
    /// Index into the problem's sources.
    source: usize,
    /// The inner indices where it acts, with their profiles, per (x, y); rows of equal content are not shared.
    rows: BTreeMap<Group, Vec<(i64, f64)>>,
    /// Where the wave does not depend on the place: its values per step, computed beforehand.
    waves: Option<Vec<f64>>,
    replaces: bool,
}

impl RowInjections {
    pub fn new(
        scheme: &Scheme,
        problem: &Problem,
        files: &dyn Files,
        number: usize,
        source: &Source,
    ) -> RowInjections {
        let mut rows: BTreeMap<Group, Vec<(i64, f64)>> = BTreeMap::new();
        let mut row = Vec::new();
        let mut group = None;
        let mut finish = |group: Option<Group>, row: &mut Vec<(i64, f64)>| {
            if let Some(group) = group.filter(|_| !row.is_empty()) {
                // A copy has no more room than it needs, as the memory of a run is counted (`run::memory`).
                rows.insert(group, row.clone());
                row.clear();
            }
        };
        for_each_cell(scheme, files, source, |at, profile| {
            let here = Some(Group::new(at[Axis::OUTER], at[Axis::MIDDLE]));
            if here != group {
                finish(group, &mut row);
                group = here;
            }
            row.push((at[Axis::INNER], profile));
        });
        finish(group, &mut row);
        let tabled = has_one_wave(source) && problem.steps <= MOST_TABLED_STEPS;
        let waves = tabled.then(|| {
            let wave = |step| source_wave(scheme, files, source, step, PerAxis::splat(0));
            (0..problem.steps).map(wave).collect()
        });
        RowInjections {
            component: source.component,
            stage: source.stage,
            source: number,
            rows,
            waves,
            replaces: source.replaces,
        }
    }

    /// The rows in which the source acts.
    pub fn rows(&self) -> impl Iterator<Item = Group> + '_ {
        self.rows.keys().copied()
    }

    /// Acts on the values of a row that were just computed.
    ///
    /// # Safety
    /// No other thread touches the row meanwhile.
    pub unsafe fn act<T: Real>(
        &self,
        context: &EffectContext<'_>,
        cells: Cells<T>,
        of: &AdvancedRow,
    ) {
        if self.component != of.component || self.stage != of.stage {
            return;
        }
        let Some(acting) = self.rows.get(&of.group) else {
            return;
        };
        let Group { x, y } = of.group;
        let start = context.layout.element(of.row, PerAxis([x, y, 0]));
        for &(z, profile) in acting.iter().filter(|(z, _)| of.range.contains(*z)) {
            let tabled = self.waves.as_ref().and_then(|w| w.get(of.step as usize));
            let wave = match tabled {
                Some(wave) => *wave,
                None => source_wave(
                    context.scheme,
                    context.files,
                    &context.problem.sources[self.source],
                    of.step,
                    PerAxis([x, y, z]),
                ),
            };
            // SAFETY: z lies in the component's extent; the caller excludes other threads.
            unsafe {
                let value = match self.replaces {
                    true => given(profile, wave),
                    false => inject(cells.get(start + z), profile, wave),
                };
                cells.set(start + z, value);
            }
        }
    }
}
