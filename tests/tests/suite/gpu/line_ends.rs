//! Ends of lines about which components are odd, where rows of others take turns with theirs in a shared row.

use super::*;
use torre_compiler::tower::{RowOp, TowerProgram};

/// Published rows that bring zeros beyond their ends.
fn zeros(program: &TowerProgram) -> usize {
    let stages = program
        .periods
        .iter()
        .flat_map(|p| p.variants.iter().flatten());
    let ops = stages.flat_map(|stage| &stage.ops);
    let brings = |op: &&RowOp| matches!(op, RowOp::Publish { zeros, .. } if !zeros.is_empty());
    ops.filter(brings).count()
}

/// A line of one block, one that two blocks share, and one in z blocks.
#[test]
fn zeros_beyond_ends_of_lines_stay() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    for (schedule, domain, precision) in [
        ("torre(D = 1, TH = 4)", "12 x 13 x 10", Precision::F32),
        ("torre(W = 5, TH = 2)", "13 x 12 x 10", Precision::F64),
        ("torre(D = 1, TH = 2)", "10 x 11 x 190", Precision::F64),
        ("torre(W = 5, TH = 2)", "12 x 11 x 420", Precision::F32),
    ] {
        let text = format!(
            "use std::maxwell::maxwell42
problem p {{
  scheme maxwell42
  domain {domain}
  boundary all: pec
  init E = [sin(1.7*x + 2.3*y + 3.1*z), cos(0.9*x - y + 2*z), sin(x*y + z)]
  init H = [cos(x + 1.3*y - z), sin(2.1*x + y + z), cos(1.1*x*z - y)]
  steps 6
}}
"
        );
        let resolved = resolved_in(&text, precision);
        let (scheme, problem) = (&resolved.scheme, &resolved.problem);
        let (plan, model) = plan_of(&device, scheme, problem, schedule);
        let towers = &compiled(library, scheme, &plan, &model);
        assert!(zeros(&towers.program) > 0, "{schedule}, {domain}");
        starts(library, &device, domain, scheme, problem, Some(towers));
    }
}
