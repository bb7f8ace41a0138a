//! Sources in many columns of cells, which act in whole periods of towers.

use super::*;

#[test]
fn sources_in_many_columns_act_in_interior_periods() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    for (case, (scheme, schedule)) in cases_of_towers([3, 4, 2]).into_iter().enumerate() {
        for round in 0..2u64 {
            let seed = 2 * case as u64 + round;
            let mut rng = Rng::new(seed);
            let mut problem = random_problem(&mut rng, &scheme);
            problem.outputs.clear();
            if round == 0 {
                problem.probes.clear();
            }
            problem.sources = volume_sources(&mut rng, &scheme, 1 + round as usize);
            // Where nothing acts.
            let mut nowhere = problem.sources[0].clone();
            nowhere.condition = Some(HostExpr::Number(0.0));
            problem.sources.push(nowhere);
            let chosen = VolumeChoice::new(&scheme, &problem);
            assert!(!chosen.acting(&problem).is_empty(), "seed {seed}");
            let (plan, model) = plan_of(&device, &scheme, &problem, &schedule);
            assert_eq!(plan.note, None);
            problem.steps = plan.height() + 1;
            let towers = &compiled(library, &scheme, &plan, &model);
            let starts = |towers| starts(library, &device, seed, &scheme, &problem, towers);
            // A time block, and one of the last step.
            assert_eq!(starts(Some(towers)), 2, "seed {seed}");
            assert!(interior_periods(towers) > 0, "seed {seed}");
        }
    }
}

/// A plane wave enters through a plane across the last axis.
#[test]
fn plane_waves_go_by_towers() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    let plan_for = |cells| {
        let scheme = maxwell(2, Precision::F32, cells);
        let update = &scheme.stages[0].updates[0];
        let mut problem = random_problem(&mut Rng::new(5), &scheme);
        (problem.probes, problem.outputs) = Default::default();
        let mut region = update.region;
        region[Axis::INNER] = Interval::new(3, 4);
        problem.sources = vec![problem::Source {
            component: update.target,
            stage: StageId(0),
            region,
            condition: None,
            profile: HostExpr::Number(0.5),
            wave: HostExpr::unary(HostUnary::Cos, HostExpr::Time),
            replaces: false,
        }];
        let (plan, model) = plan_of(&device, &scheme, &problem, "torre(D = 2, TH = 2)");
        assert_eq!(plan.note, None);
        problem.steps = plan.height();
        (scheme, problem, plan, model)
    };
    // More columns than points could have.
    plan_for([1536, 1536, 256]);
    let (scheme, problem, plan, model) = plan_for([40, 41, 6]);
    let towers = &compiled(library, &scheme, &plan, &model);
    assert!(
        interior_periods(towers) > 100,
        "{}",
        interior_periods(towers)
    );
    let starts = starts(library, &device, 0, &scheme, &problem, Some(towers));
    assert_eq!(starts, 1);
}

#[test]
fn too_many_sources_in_many_columns_are_noted() {
    let device = Interpreted::new();
    let scheme = maxwell(2, Precision::F32, [64, 64, 12]);
    let mut problem = random_problem(&mut Rng::new(5), &scheme);
    problem.outputs.clear();
    problem.steps = 1000;
    let mut rng = Rng::new(7);
    let plane = volume_sources(&mut rng, &scheme, 1)[0].clone();
    let schedule = "torre(D = 1, TH = 8)";
    let mut notes = Vec::new();
    for count in [8, 9] {
        problem.sources = vec![plane.clone(); count];
        notes.push(plan_of(&device, &scheme, &problem, schedule).0.note);
    }
    assert_eq!(notes[0], None);
    let note = notes[1].clone().unwrap_or_default();
    assert!(note.starts_with("more sources add"), "{note}");
    // A source with a wave of its own at each place is added by points, for which there are too many rows.
    problem.sources = vec![plane];
    problem.sources[0].wave = HostExpr::Coordinate(Axis::OUTER, HalfIndex::ZERO);
    assert!(
        VolumeChoice::new(&scheme, &problem)
            .acting(&problem)
            .is_empty()
    );
}

/// Time blocks only add; with a source that replaces values steps run stage by stage, and say so.
#[test]
fn sources_that_replace_keep_steps_out_of_time_blocks() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    let (scheme, schedule) = cases_of_towers([3, 4, 2])
        .into_iter()
        .next()
        .expect("a case");
    let mut problem = random_problem(&mut Rng::new(3), &scheme);
    problem.outputs.clear();
    problem.sources.truncate(1);
    problem.sources[0].replaces = true;
    let (plan, gpu) = plan_of(&device, &scheme, &problem, &schedule);
    let note = plan.note.clone().expect("why there are no towers");
    assert!(note.contains("a source replaces values"), "{note}");
    problem.steps = plan.height() + 1;
    let towers = &compiled(library, &scheme, &plan, &gpu);
    let starts = |towers| starts(library, &device, 3, &scheme, &problem, towers);
    assert_eq!(starts(Some(towers)), starts(None));
}
