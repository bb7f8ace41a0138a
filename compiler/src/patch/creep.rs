//! How far wrong values come into a tile from its ends.

use crate::lattice::Axis;
use crate::layout::Layout;
use crate::scheme::Scheme;

/// Cells from the lower and the upper end of a tile along an axis that are wrong after so many steps, at most, in any
/// row, if all cells were right before, and nothing is known of what lies beyond the tile. Where the axis has a mirror,
/// the larger of both on both sides.
///
/// A state is wrong where an update that keeps it is, and what reads it is wrong where it is: [`Scheme::states`] lie at
/// the places of their updates.
///
/// At a mirror, a ghost that is right has a source that is right: if `k` cells beyond the lower end are right, the tile
/// reaches at least as far above its base as below it, and the source is at most `k` cells above the end.
pub fn creep(scheme: &Scheme, layout: &Layout, axis: Axis, steps: u64) -> [i64; 2] {
    let mirrored = scheme.grid.boundary[axis].iter().any(|b| b.is_mirror());
    let mut wrong = vec![[0i64; 2]; layout.rows as usize];
    let mut wrong_states = vec![[0i64; 2]; scheme.states.len()];
    let mut most = [0i64; 2];
    for step in 0..steps {
        let phase = (step % u64::from(scheme.phases())) as u32;
        for stage in scheme.stage_ids() {
            let updates = &scheme.stages[stage.index()].updates;
            let after = updates.iter().map(|update| {
                let target = layout.target_row(scheme, stage, phase, update.target);
                // Where it does not act, the old value stays, if there is only one time level.
                let kept = match scheme.component(update.target).time_levels {
                    1 => wrong[target.0 as usize],
                    _ => [0; 2],
                };
                let [mut lo, mut hi] = kept;
                let advances = update.amendments.iter().flat_map(|a| &a.advances);
                let states: Vec<usize> = advances.map(|a| a.state.index()).collect();
                for [below, above] in states.iter().map(|state| wrong_states[*state]) {
                    (lo, hi) = (lo.max(below), hi.max(above));
                }
                for read in update.reads() {
                    let row = layout.read_row(scheme, stage, phase, read);
                    let [below, above] = wrong[row.0 as usize];
                    let by = i64::from(read.offset[axis]);
                    lo = lo.max(below - by);
                    hi = hi.max(above + by);
                }
                if mirrored {
                    (lo, hi) = (lo.max(hi), lo.max(hi));
                }
                (target, states, [lo, hi])
            });
            for (row, states, [lo, hi]) in after.collect::<Vec<_>>() {
                wrong[row.0 as usize] = [lo, hi];
                states
                    .iter()
                    .for_each(|state| wrong_states[*state] = [lo, hi]);
                most = [most[0].max(lo), most[1].max(hi)];
            }
        }
    }
    most
}
