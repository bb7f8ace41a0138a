//! Programs that break a rule are refused.

use super::*;

#[test]
fn programs_that_break_a_rule_are_refused() {
    let mut scheme = maxwell(2, Precision::F32, [6, 6, 6]);
    scheme.grid.boundary[Axis::OUTER] = [Boundary::Periodic; 2];
    everywhere(&mut scheme);
    let program = towers(2, 2, &scheme);
    assert_eq!(verify(&scheme, &program), Ok(()));
    type Change = fn(&mut TileProgram);
    let changes: [(&str, Change); 14] = [
        ("rule 1", |p| p.height = 0),
        ("rule 1", |p| p.stages.truncate(1)),
        ("rule 2", |p| p.planes[1].slope = -1),
        ("rule 2", |p| p.planes[0].form.0 = [1, 0, 1]),
        ("rule 2", |p| p.planes[1] = p.planes[0]),
        ("rule 3", |p| p.levels[0][1].pitch = 0),
        ("rule 3", |p| p.levels[0][1].plane = 2),
        ("rule 4", |p| p.stages[0][0].region[Axis::OUTER].lo += 1),
        ("rule 4", |p| p.stages[1][0].updates.0 = 0),
        ("rule 5", |p| p.stages[1][0].position[Axis::OUTER] ^= 1),
        ("rule 6", |p| p.ring = PerAxis::default()),
        ("rule 7", |p| p.three_axes = false),
        ("rule 8", |p| p.reach[Axis::MIDDLE] = 0),
        // The axis is folded.
        ("rule 9", |p| p.seam = Some(0)),
    ];
    for (rule, change) in changes {
        let mut broken = program.clone();
        change(&mut broken);
        let message = verify(&scheme, &broken).expect_err(rule);
        assert!(message.starts_with(rule), "{rule}: {message}");
        let fault = *check(&scheme, &broken, 1).expect_err(rule);
        assert_eq!(fault, TileFault::Rule(message));
    }
}

/// Where the outer axis is open, the seam lies against both faces along it.
#[test]
fn seams_at_other_planes_are_refused() {
    let mut scheme = maxwell(2, Precision::F32, [24, 24, 6]);
    scheme.grid.boundary[Axis::OUTER] = [Boundary::Periodic; 2];
    everywhere(&mut scheme);
    let frame = Frame::new(&scheme, &cones(&scheme)).opened();
    let cuts = [[1, 1, 0], [1, -1, 0]].map(|form| Cut {
        face: frame.fitting(PerAxis(form)),
        pitch: Rational::whole(2),
    });
    let levels = vec![Level { cuts: cuts.into() }];
    let program = in_integers(&scheme, &frame, &Tiling { height: 2, levels });
    assert!(program.seam.is_some() && program.open[Axis::OUTER]);
    assert_eq!(verify(&scheme, &program), Ok(()));
    let count = program.planes.len();
    for seam in [
        program.levels[0][0].plane,
        program.levels[0][1].plane,
        count,
    ] {
        let broken = TileProgram {
            seam: Some(seam),
            ..program.clone()
        };
        let message = verify(&scheme, &broken).expect_err("another plane");
        assert!(message.starts_with("rule 9"), "{message}");
    }
}
