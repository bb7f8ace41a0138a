//! Which events of other towers are over when a tower runs rows of a stage before its wait.
//!
//! A wait shows that the neighbours have done all stages before, and they have waited for theirs: a tower whose index
//! differs by d along a face has done all but the last d - 1 of these stages. Before the wait of a stage, only what the
//! wait of the stage before has shown is known: an event m stages ago is over if its tower's index differs by less than
//! m. A dependence may span as many tiles as stages ([`Towers::waits_reach_all`]), so such an event may still lie ahead.

use super::group::Group;
use super::residency::{RowUpdate, StageAt, reach};
use super::towers::Towers;
use crate::layout::Layout;
use crate::scheme::{Read, Scheme};

impl Towers {
    /// Whether a tower of an alignment has to wait before it overwrites a row in a stage of a period: another tower may
    /// not have read or written it yet.
    pub(super) fn waits_for_row(
        &self,
        scheme: &Scheme,
        layout: &Layout,
        alignment: usize,
        stage: usize,
        row: RowUpdate,
    ) -> bool {
        let number = stage as i64;
        let at = StageAt::new(scheme, number);
        let target = at.target(scheme, layout, &at.updates(scheme)[row.update]);
        for before in 1..=self.per_period() {
            let earlier = number - before;
            let at = StageAt::new(scheme, earlier);
            let mut written = false;
            for (index, update) in at.updates(scheme).iter().enumerate() {
                // Of an update that never acts there is no event.
                let tiles = |by: Group| {
                    let event = RowUpdate {
                        at: row.at - by,
                        update: index,
                    };
                    self.tiles_to(alignment, earlier, event)
                };
                let same = |read: &&Read| at.read(scheme, layout, read) == target;
                let mut reads = update.reads().filter(same).map(reach);
                let writes = at.target(scheme, layout, update) == target;
                let own = writes.then(|| tiles(Group::default())).flatten();
                let ahead = |tiles: Option<i64>| tiles.is_some_and(|tiles| tiles >= before);
                if ahead(own) || reads.any(|by| ahead(tiles(by))) {
                    return true;
                }
                written |= own.is_some();
            }
            // Events before that are over when it is.
            if written {
                return false;
            }
        }
        false
    }

    /// Whether a tower has to wait before it reads states: another tower may not have advanced them yet.
    pub(super) fn waits_for_states(&self) -> bool {
        let stages = self.classes.len() as i64;
        stages == 1 || self.geometry.farthest_after(stages) >= stages
    }
}
