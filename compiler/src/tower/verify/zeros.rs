//! Rule 12: zeros of published rows.

use super::fault::{Fault, fault};
use crate::layout::{Layout, RowId};
use crate::scheme::Scheme;
use crate::tower::end_zeros::EndZeros;
use crate::tower::program::{RowOp, StageProgram, TowerProgram};

pub(super) fn check(scheme: &Scheme, layout: &Layout, program: &TowerProgram) -> Result<(), Fault> {
    let expected = EndZeros::new(scheme, layout, held(program));
    for (alignment, period) in program.periods.iter().enumerate() {
        let stages = period
            .variants
            .iter()
            .flat_map(|own| own.iter().enumerate());
        for (number, stage) in stages {
            for op in &stage.ops {
                let RowOp::Publish { row, shared, zeros } = op else {
                    continue;
                };
                if *zeros != expected.places(layout, row.row, *shared) {
                    let message =
                        format!("{row:?} brings 0 to {zeros:?} in shared row {shared}, or too few");
                    return Err(fault(12, alignment, number, message));
                }
            }
        }
    }
    Ok(())
}

/// The rows that shared rows hold at some time.
fn held(program: &TowerProgram) -> impl Iterator<Item = (usize, RowId)> {
    let stages = program
        .periods
        .iter()
        .flat_map(|period| period.variants.iter().flatten());
    let rows = |stage: &StageProgram| -> Vec<(usize, RowId)> {
        let loads = stage.loads.iter().map(|copy| (copy.shared, copy.row.row));
        let published = stage.ops.iter().filter_map(|op| match op {
            RowOp::Publish { row, shared, .. } => Some((*shared, row.row)),
            _ => None,
        });
        loads.chain(published).collect()
    };
    stages.flat_map(rows)
}
