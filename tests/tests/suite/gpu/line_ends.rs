//! Ends of lines about which components are odd, where rows of others take turns with theirs in a shared row.

use super::*;
use torre_compiler::tower::{Numbering, RowOp, TowerProgram};

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

/// Lines of a whole number of warps between an end about which half of the components are odd, and one about which they
/// are even: sources, probes and slices at both ends, layers with states, media, ghosts across other axes.
#[test]
fn packed_rows_give_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    let maxwell = "scheme maxwell42\n  init E = [sin(1.7*x + z), cos(y + 2*z), sin(x*y + z)]";
    let media =
        "scheme maxwell_media\n  coef eps = 1 + 0.5*sin(x + 2*z)^2\n  init E.x = cos(x + y - z)";
    let sound = "scheme acoustics\n  init p = sin(1.3*x + 0.7*y + 2*z)";
    for (scheme, ends, source, domain, precision) in [
        (
            maxwell,
            "x: pec, y: periodic, z: pec | pmc",
            "E.x",
            "12 x 14 x 32",
            Precision::F32,
        ),
        (
            maxwell,
            "x: cpml(3), y: pmc, z: pec | pmc",
            "E.x",
            "14 x 12 x 64",
            Precision::F64,
        ),
        (
            media,
            "x: zero, y: cpml(3), z: pec | pmc",
            "H.z",
            "12 x 13 x 32",
            Precision::F32,
        ),
        (
            sound,
            "x: pec, y: zero, z: pec | pmc",
            "v.z",
            "12 x 13 x 32",
            Precision::F32,
        ),
    ] {
        let text = format!(
            "use std::maxwell::maxwell42
use std::maxwell::maxwell_media
use std::acoustics::acoustics
problem p {{
  {scheme}
  domain {domain}
  boundary {ends}
  source {source} at (5, 6, 1) += sin(3*t)
  source {source} at (6, 6, 31) += cos(2*t)
  probe {source} at (5, 6, 1)
  probe {source} at (5, 6, 2)
  probe {source} at (6, 7, 31)
  output volume {source} every 4
  steps 9
}}
"
        );
        let resolved = resolved_in(&text, precision);
        let (scheme, problem) = (&resolved.scheme, &resolved.problem);
        let (plan, model) = plan_of(&device, scheme, problem, "torre(D = 1, TH = 2)");
        let towers = &compiled(library, scheme, &plan, &model);
        let numbering = towers.program.towers.numbering;
        assert_eq!(numbering, Numbering::Packed, "{ends}");
        starts(library, &device, ends, scheme, problem, Some(towers));
    }
}
