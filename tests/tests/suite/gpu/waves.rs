//! Boxes of total fields on a GPU: corrections act after their updates, stage by stage and as points of towers.

use super::*;
use torre_compiler::incident;
use torre_compiler::problem::{Drive, Incident, IncidentField, PlaneWave, TotalBox};

#[test]
fn corrections_act_inside_of_time_blocks() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    // Lines that two blocks share take long, and differ in nothing.
    for (seed, (scheme, schedule)) in cases_of_towers([4, 4, 4]).into_iter().take(2).enumerate() {
        let mut problem = random_problem(&mut Rng::new(seed as u64), &scheme);
        (problem.outputs, problem.probes) = Default::default();
        problem.sources.truncate(1);
        problem.incidents = vec![Incident {
            name: "wave".to_owned(),
            field: IncidentField::Plane(PlaneWave {
                direction: PerAxis([1, -1, 2]),
                drives: vec![Drive {
                    component: scheme.stages[1].updates[0].target,
                    wave: HostExpr::unary(HostUnary::Cos, HostExpr::Time),
                }],
                loss: 0.2,
            }),
            boxes: vec![TotalBox {
                ends: scheme.grid.cells.map(|n| [4, n - 4]),
            }],
        }];
        assert_eq!(incident::check(&scheme, &problem, &NoFiles), Ok(()));
        // They are no volume sources, and nothing that follows them at a place is one.
        assert!(
            VolumeChoice::new(&scheme, &problem)
                .acting(&problem)
                .is_empty()
        );
        let (plan, model) = plan_of(&device, &scheme, &problem, &schedule);
        problem.steps = plan.height() + 1;
        let towers = &compiled(library, &scheme, &plan, &model);
        let by_towers = starts(library, &device, seed, &scheme, &problem, Some(towers));
        let each = starts_per_step(library, &device, seed, &scheme, &problem);
        assert!(
            by_towers < each * problem.steps,
            "{by_towers} starts, {each} of a step"
        );
    }
}
