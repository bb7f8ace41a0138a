//! Slopes are means over closed chains of dependences; leads make up for the rest.

use super::*;
use crate::cone::{Dependence, Site};

/// A closed chain moves up a form as fast as it is said to need.
pub(super) fn check_chain(frame: &Frame, chain: &[Dependence], form: Form, slope: Rational) {
    let up = chain.iter().fold(Rational::ZERO, |sum, d| {
        sum + frame.slope_of(d, form) * Rational::whole(d.stages)
    });
    let stages: i64 = chain.iter().map(|d| d.stages).sum();
    assert_eq!(up, slope * Rational::whole(stages));
    let next = chain.iter().cycle().skip(1);
    assert!(chain.iter().zip(next).all(|(d, next)| d.to == next.from));
}

/// Leads make up for single dependences that move more than the slope.
fn check_leads(case: &Case, face: &Face, seed: u64) {
    let Case {
        scheme,
        cones,
        frame,
        ..
    } = case;
    let leads = frame.leads(face);
    let lead = |site: Site| {
        let updates = &scheme.stages[site.stage.index()].updates;
        let own = updates.iter().position(|u| u.target == site.component);
        leads[site.stage.index()][own.expect("the site of an update")]
    };
    for d in cones.local() {
        let stages = Rational::whole(d.stages);
        let up = frame.slope_of(d, face.form) * stages;
        let most = face.slope * stages + lead(d.to) - lead(d.from);
        assert!(up <= most, "seed {seed}: {d:?}");
    }
}

#[test]
fn leads_make_up_for_steep_dependences() {
    let (mut uneven, mut shared) = (0, 0);
    for seed in seeds() {
        let mut case = Case::new(seed);
        for form in [[1, 1, 0], [1, -2, 0], [1, 0, 0], [0, 0, 1], [0, 0, -1]].map(PerAxis) {
            let mut face = case.frame.fitting(form);
            let needed = case.frame.needed(form).expect("a scheme with updates");
            assert_eq!(needed.slope, face.slope);
            check_chain(&case.frame, &needed.chain, form, face.slope);
            check_leads(&case, &face, seed);
            let leads = case.frame.leads(&face);
            if leads.iter().flatten().any(|l| !l.is_zero()) {
                uneven += 1;
                let alike = |stage: &Vec<Rational>| stage.iter().all(|l| *l == stage[0]);
                shared += u64::from(leads.iter().all(alike));
            }
            // A bit less is illegal; more needs smaller leads or none.
            let cuts = vec![Cut {
                face: Face {
                    form,
                    slope: face.slope - Rational::new(1, 1000).expect("not 0"),
                },
                pitch: Rational::ONE,
            }];
            case.tiling.levels = vec![Level { cuts }];
            let refused = check_tiling(&case.frame, &case.tiling);
            assert!(matches!(refused, Err(Illegal::Slope { .. })), "seed {seed}");
            face.slope = face.slope + Rational::halves(1);
            check_leads(&case, &face, seed);
        }
    }
    assert!(uneven > seeds().end / 4, "{uneven}");
    assert!(2 * shared > uneven, "{shared} of {uneven}");
}

#[test]
fn splitting_stages_costs_no_slope() {
    let whole = maxwell(4, Precision::F32, [12, 12, 12]);
    let split = one_update_per_stage(whole.clone());
    let frame = Frame::new(&split, &cones(&split));
    for form in [[1, 1, 0], [1, -1, 0], [1, 0, 0], [0, -1, 0], [0, 0, 1]].map(PerAxis) {
        // 3 cells in a step, however many stages it has; the steepest dependence moves faster.
        let face = frame.fitting(form);
        assert_eq!(
            face.slope * Rational::whole(6),
            Rational::whole(3),
            "{form:?}"
        );
        assert!(cones(&split).slope(form) > face.slope, "{form:?}");
        assert!(frame.leads(&face).iter().flatten().any(|l| !l.is_zero()));
    }
    let own = Frame::new(&whole, &cones(&whole));
    for form in [[1, 1, 0], [1, -1, 0], [0, 0, 1]].map(PerAxis) {
        let leads = own.leads(&own.fitting(form));
        assert!(leads.iter().flatten().all(|l| l.is_zero()), "{form:?}");
    }
    let program = towers(3, 6, &split);
    assert!(program.to_string().contains("leads"), "{program}");
    check(&split, &program, 7).unwrap_or_else(|fault| panic!("{fault}\n{program}"));
}
