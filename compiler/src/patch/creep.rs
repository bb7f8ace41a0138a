//! How far wrong values come into a tile from its ends.

use crate::cone::mirrored_offsets;
use crate::lattice::Axis;
use crate::layout::Layout;
use crate::scheme::{Read, Scheme, Update};

/// Cells from the lower and the upper end of a tile along an axis that are wrong after `steps` steps, at most, in any
/// row, if all cells were right before, and cells beyond the tile are unknown. Where the axis has a mirror,
/// the larger of both on both sides.
///
/// A state is wrong where an update that keeps it is wrong, and a value that reads it is wrong where the state is:
/// [`Scheme::states`] lie at the places of their updates.
///
/// At a mirror, a ghost that is right has a source that is right: if `k` cells beyond the lower end are right, the tile
/// reaches at least as far above its base as below it, and the source is at most `k` cells above the end. At the upper
/// end the source may lie one index farther down, so reads through mirrors count, too.
pub fn creep(scheme: &Scheme, layout: &Layout, axis: Axis, steps: u64) -> [i64; 2] {
    let rows = vec![[0; 2]; layout.rows as usize];
    let mut wrong = Wrong::new(scheme, rows);
    (0..steps).for_each(|step| wrong.advance(scheme, layout, axis, step));
    wrong.most
}

/// The same for each row, where some cells of rows were wrong before, and no states.
pub(super) fn creep_of_rows(
    scheme: &Scheme,
    layout: &Layout,
    axis: Axis,
    steps: u64,
    before: Vec<[i64; 2]>,
) -> Vec<[i64; 2]> {
    let mut wrong = Wrong::new(scheme, before);
    (0..steps).for_each(|step| wrong.advance(scheme, layout, axis, step));
    wrong.rows
}

/// Cells that are wrong from the lower and the upper end of a tile on.
struct Wrong {
    rows: Vec<[i64; 2]>,
    states: Vec<[i64; 2]>,
    /// The most of any row so far.
    most: [i64; 2],
}

/// The larger one on each side.
fn larger([a, b]: [i64; 2], [c, d]: [i64; 2]) -> [i64; 2] {
    [a.max(c), b.max(d)]
}

/// On both sides the larger one, where the axis has a mirror.
fn mirrored(scheme: &Scheme, axis: Axis, [lo, hi]: [i64; 2]) -> [i64; 2] {
    match scheme.grid.boundary[axis].iter().any(|b| b.is_mirror()) {
        true => [lo.max(hi); 2],
        false => [lo, hi],
    }
}

/// The offsets along an axis at which an update finds the values of a read, also through mirrors: nodes at an upper end
/// find a ghost between nodes one index farther down than it lies beyond them.
fn offsets(scheme: &Scheme, update: &Update, read: &Read, axis: Axis) -> impl Iterator<Item = i64> {
    let [target, source] =
        [update.target, read.component].map(|component| scheme.component(component).position);
    mirrored_offsets(&scheme.grid, target, source, read.offset).map(move |by| by[axis])
}

/// The states that an update keeps.
fn states_of(update: &Update) -> Vec<usize> {
    let advances = update.amendments.iter().flat_map(|a| &a.advances);
    advances.map(|a| a.state.index()).collect()
}

impl Wrong {
    fn new(scheme: &Scheme, rows: Vec<[i64; 2]>) -> Wrong {
        Wrong {
            rows,
            states: vec![[0; 2]; scheme.states.len()],
            most: [0; 2],
        }
    }

    fn advance(&mut self, scheme: &Scheme, layout: &Layout, axis: Axis, step: u64) {
        let phase = (step % u64::from(scheme.phases())) as u32;
        for stage in scheme.stage_ids() {
            let updates = &scheme.stages[stage.index()].updates;
            let after = updates.iter().map(|update| {
                let target = layout.target_row(scheme, stage, phase, update.target);
                // Where it does not act, the old value stays, if there is only one time level.
                let mut own = match scheme.component(update.target).time_levels {
                    1 => self.rows[target.0 as usize],
                    _ => [0; 2],
                };
                let states = states_of(update);
                for state in &states {
                    own = larger(own, self.states[*state]);
                }
                for read in update.reads() {
                    let row = layout.read_row(scheme, stage, phase, read);
                    let [below, above] = self.rows[row.0 as usize];
                    for by in offsets(scheme, update, read, axis) {
                        own = larger(own, [below - by, above + by]);
                    }
                }
                (target, states, mirrored(scheme, axis, own))
            });
            for (row, states, own) in after.collect::<Vec<_>>() {
                self.rows[row.0 as usize] = own;
                states.iter().for_each(|state| self.states[*state] = own);
                self.most = larger(self.most, own);
            }
        }
    }
}

/// Cells below and above a base that have to be right in each row before some steps, so that all states, and all rows
/// that are held, are right in the base after these steps. As [`creep`] the other way round.
pub fn needed(
    scheme: &Scheme,
    layout: &Layout,
    axis: Axis,
    steps: u64,
    held: &[bool],
) -> Vec<[i64; 2]> {
    let some = |held: &bool| held.then_some([0i64; 2]);
    let mut rows: Vec<Option<[i64; 2]>> = held.iter().map(some).collect();
    let mut of_states = vec![[0i64; 2]; scheme.states.len()];
    let with = |own: Option<[i64; 2]>, other| Some(own.map_or(other, |own| larger(own, other)));
    for step in (0..steps).rev() {
        let phase = (step % u64::from(scheme.phases())) as u32;
        let stages: Vec<_> = scheme.stage_ids().collect();
        for stage in stages.into_iter().rev() {
            let updates = &scheme.stages[stage.index()].updates;
            let (mut before, mut states_before) = (rows.clone(), of_states.clone());
            let target = |u: &Update| layout.target_row(scheme, stage, phase, u.target).0 as usize;
            for update in updates {
                let levels = scheme.component(update.target).time_levels;
                if levels > 1 && update.mask.is_none() {
                    before[target(update)] = None;
                }
            }
            for update in updates {
                let mut own = rows[target(update)];
                let states = states_of(update);
                for state in &states {
                    own = with(own, of_states[*state]);
                }
                let Some(own) = own.map(|own| mirrored(scheme, axis, own)) else {
                    continue;
                };
                for state in states {
                    states_before[state] = larger(states_before[state], own);
                }
                if before[target(update)].is_some() {
                    before[target(update)] = with(before[target(update)], own);
                }
                for read in update.reads() {
                    let row = layout.read_row(scheme, stage, phase, read).0 as usize;
                    for by in offsets(scheme, update, read, axis) {
                        before[row] = with(before[row], [own[0] - by, own[1] + by]);
                    }
                }
            }
            (rows, of_states) = (before, states_before);
        }
    }
    let of_row = |own: Option<[i64; 2]>| {
        let own = larger(own.unwrap_or([0; 2]), [0; 2]);
        // Sources of ghosts, too.
        mirrored(scheme, axis, own)
    };
    rows.into_iter().map(of_row).collect()
}
