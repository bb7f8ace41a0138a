//! Which kernels advance rows, and how much of them at a time.

use std::collections::BTreeSet;
use torre_compiler::cost::Blocking;
use torre_compiler::kernel::{KernelSet, RowKernel, UpdateSet, ZoneSplitter, run_axis};
use torre_compiler::lattice::Axis;
use torre_compiler::layout::{Layout, RowId};
use torre_compiler::scheme::{ComponentId, Scheme, Stage, StageId, ZoneSet};

/// Narrower strips of rows would begin anew too often.
const LEAST_WIDTH: i64 = 8;

/// Finds the kernels that advance a set of updates.
pub struct KernelTable {
    phases: u64,
    /// Per stage and phase the kernels, with the updates that each runs.
    entries: Vec<Vec<Entry>>,
    /// Per stage and update, the zones that amend it.
    zones: Vec<Vec<ZoneSet>>,
    pub(super) split: ZoneSplitter,
    /// Indices of the inner axis that a batch of rows is advanced over at a time.
    pub(super) piece: i64,
    pub(super) run_axis: Axis,
    /// Per stage, the rows along the middle axis that are advanced for one index of the outer axis after the other.
    pub(super) widths: Vec<i64>,
    /// Per stage and phase, the target of each update with its row.
    pub(super) targets: Vec<Vec<(ComponentId, RowId)>>,
}

/// Updates of a stage in a step.
#[derive(Clone, Copy)]
pub(super) struct Advance {
    pub stage: StageId,
    pub step: u64,
    pub updates: UpdateSet,
}

/// The kernels that were found before.
#[derive(Default)]
pub(super) struct Found(Vec<(Wanted, Vec<usize>)>);

/// A set of updates of a stage, in a phase, in some zones.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Wanted {
    stage_phase: usize,
    updates: UpdateSet,
    zones: ZoneSet,
}

impl Found {
    /// As [`KernelTable::find`].
    pub fn kernels(&mut self, table: &KernelTable, advance: Advance, zones: ZoneSet) -> &[usize] {
        let Advance {
            stage,
            step,
            updates,
        } = advance;
        let wanted = Wanted {
            stage_phase: table.stage_phase(stage, step),
            updates,
            zones,
        };
        let known = self.0.iter().position(|(own, _)| *own == wanted);
        let index = known.unwrap_or_else(|| {
            let kernels = table.find(stage, step, updates, zones);
            self.0.push((wanted, kernels));
            self.0.len() - 1
        });
        &self.0[index].1
    }
}

/// A kernel.
#[derive(Clone, Copy)]
struct Entry {
    updates: UpdateSet,
    zones: ZoneSet,
    /// The zones that amend some of its updates.
    relevant: ZoneSet,
    kernel: usize,
}

/// How many rows along the middle axis are advanced for one index of the outer axis after the other, such that they
/// read at most `kept` bytes for one index.
fn width(stage: &Stage, layout: &Layout, kept: u64) -> i64 {
    let mut read = BTreeSet::new();
    let mut others = 0;
    for update in &stage.updates {
        others += 1 + update.body.coefs().chain(update.mask).count() as i64;
        read.extend(
            update
                .reads()
                .map(|r| (r.component, r.age, r.offset[Axis::OUTER])),
        );
    }
    let rows = read.len() as i64 + others;
    let row = layout.row_length * layout.element_bytes as i64;
    (kept.min(i64::MAX as u64) as i64 / (rows * row).max(1)).max(LEAST_WIDTH)
}

impl KernelTable {
    pub fn new(scheme: &Scheme, set: &KernelSet, blocking: Blocking) -> Self {
        let phases = u64::from(scheme.phases());
        let mut entries = vec![Vec::new(); scheme.stages.len() * phases as usize];
        for (index, kernel) in set.kernels.iter().enumerate() {
            let RowKernel {
                stage,
                phase,
                updates,
                zones,
            } = *kernel;
            let stage_phase = stage.index() * phases as usize + phase as usize;
            entries[stage_phase].push(Entry {
                updates,
                zones,
                relevant: RowKernel::relevant(scheme, stage, updates, ZoneSet(u32::MAX)),
                kernel: index,
            });
        }
        let stage_phases = scheme
            .stage_ids()
            .flat_map(|stage| (0..scheme.phases()).map(move |phase| (stage, phase)));
        let targets = stage_phases.map(|(stage, phase)| {
            let row = |id| (id, set.layout.target_row(scheme, stage, phase, id));
            let updates = scheme.stages[stage.index()].updates.iter();
            updates.map(|u| row(u.target)).collect()
        });
        Self {
            phases,
            entries,
            zones: (scheme.stages.iter())
                .map(|s| s.updates.iter().map(|u| u.zones()).collect())
                .collect(),
            split: ZoneSplitter::new(scheme, &set.layout),
            piece: blocking.piece(scheme).unwrap_or(i64::MAX / 2),
            run_axis: run_axis(scheme),
            widths: (scheme.stages.iter())
                .map(|stage| width(stage, &set.layout, blocking.sweep))
                .collect(),
            targets: targets.collect(),
        }
    }

    /// The zones that amend some of a set of updates.
    pub fn relevant(&self, stage: StageId, updates: UpdateSet) -> ZoneSet {
        let own = updates.iter().map(|u| self.zones[stage.index()][u]);
        own.fold(ZoneSet::default(), ZoneSet::union)
    }

    /// The kernels for a set of updates in some zones: one that runs them all, or several that each run a part of it.
    pub fn find(
        &self,
        stage: StageId,
        step: u64,
        updates: UpdateSet,
        zones: ZoneSet,
    ) -> Vec<usize> {
        let entries = &self.entries[self.stage_phase(stage, step)];
        let in_zones = |e: &&Entry| e.zones == e.relevant.intersect(zones);
        let fitting = || entries.iter().filter(in_zones);
        if let Some(entry) = fitting().find(|e| e.updates == updates) {
            return vec![entry.kernel];
        }
        // Largest parts first; parts must be disjoint.
        let mut parts: Vec<&Entry> = fitting()
            .filter(|e| e.updates.0 & !updates.0 == 0 && !e.updates.is_empty())
            .collect();
        parts.sort_by_key(|e| std::cmp::Reverse(e.updates.0.count_ones()));
        let mut left = updates.0;
        let mut kernels = Vec::new();
        for entry in parts {
            if entry.updates.0 & !left == 0 {
                left &= !entry.updates.0;
                kernels.push(entry.kernel);
            }
        }
        assert_eq!(
            left, 0,
            "the plan compiles kernels for all updates of {stage}"
        );
        kernels
    }

    /// The number of a stage in the phase of a step, among all stages in all phases.
    pub(super) fn stage_phase(&self, stage: StageId, step: u64) -> usize {
        stage.index() * self.phases as usize + (step % self.phases) as usize
    }
}
