//! Rule 11: waves that are copied to slots.

use super::fault::{Fault, fault};
use crate::scheme::Scheme;
use crate::tower::program::{RowOp, StageProgram, TowerProgram};
use crate::tower::residency::StageAt;
use std::collections::BTreeSet;

/// Checks the rule for a variant of an alignment.
pub(super) fn check(
    scheme: &Scheme,
    program: &TowerProgram,
    alignment: usize,
    stages: &[StageProgram],
) -> Result<(), Fault> {
    let broken = |stage: usize, message: String| Err(fault(11, alignment, stage, message));
    let most = program.block.slots.map_or(0, |slots| slots.slots as usize);
    let mut used = BTreeSet::new();
    for (number, stage) in stages.iter().enumerate() {
        let at = StageAt::new(scheme, number as i64);
        for copy in &stage.waves {
            let component = at.updates(scheme)[copy.row.update].target;
            let sources = program.sources.iter();
            let own = sources.filter(|s| s.is_copied() && s.is_after(at.stage, component));
            let mut slots = copy.slot..copy.slot + own.count();
            if slots.end > most || slots.any(|slot| !used.insert(slot)) {
                let message = format!("slot {} is not there, or has several rows", copy.slot);
                return broken(number, message);
            }
        }
        if !stage.waves.is_empty() && stages.len() < 2 {
            return broken(
                number,
                "waves are copied in the stage that adds them".to_owned(),
            );
        }
        let mut awaited = false;
        let mut added = BTreeSet::new();
        for op in &stage.ops {
            awaited |= *op == RowOp::Await;
            let RowOp::Inject {
                rows,
                copied: Some(slots),
                ..
            } = op
            else {
                continue;
            };
            let known = |(row, slot)| {
                let copies = stage.waves.iter();
                copies
                    .filter(|copy| (&copy.row, &copy.slot) == (row, slot))
                    .count()
                    == 1
            };
            let fits = slots.len() == rows.len() && rows.iter().zip(slots).all(known);
            let once = slots.iter().all(|slot| added.insert(*slot));
            if !awaited || !fits || !once {
                let message =
                    format!("waves of {rows:?} are not in slots {slots:?} yet, or no more");
                return broken(number, message);
            }
        }
    }
    Ok(())
}
