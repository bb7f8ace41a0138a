//! Values that are no numbers end a run where the device holds the whole array.

use super::*;
use torre_compiler::scheme::Op;
use torre_runtime::gpu::{Devices, InFlight, Pipelined};
use torre_runtime::run::RunError;

/// Several time blocks in flight on the whole array: regular values are looked at and let a run go on.
#[test]
fn a_run_in_flight_whose_values_blow_up_ends() {
    let Some(library) = library() else { return };
    for weight in [1024.0, 1.0] {
        let mut scheme = maxwell(4, Precision::F32, [24, 15, 8]);
        let updates = scheme.stages.iter_mut().flat_map(|s| &mut s.updates);
        for op in updates.flat_map(|update| &mut update.body.ops) {
            if let Op::Const(own) = op {
                *own *= weight;
            }
        }
        let scheme = &scheme;
        let mut problem = random_problem(&mut Rng::new(1), scheme);
        (problem.sources, problem.outputs) = Default::default();
        problem.steps = 24;
        let problem = &problem;
        let device = Interpreted::new();
        let (plan, model) = plan_of(&device, scheme, problem, "torre(D = 2, TH = 2)");
        let towers = &compiled(library, scheme, &plan, &model);
        let how = InFlight {
            blocks: 2,
            group: 6,
            ahead: 1,
            spread: false,
            places: None,
            slabs: None,
            circular: None,
        };
        let (set, shape) = (&plan.kernels, Shape::of(scheme));
        let ptx = code::ptx(library, scheme, set, shape, model.gpu).expect("valid IR");
        let run = |progress: &Progress| {
            let layout = set.layout.clone();
            let calculation = Calculation::<f32>::arranged(layout, scheme, problem, &NoFiles, 1);
            let calculation = calculation.expect("a problem of finite values");
            let program = DeviceProgram {
                set,
                ptx: &ptx,
                shape,
            };
            let one = Devices::One(&device);
            let run = Pipelined::new(calculation, &NoFiles, one, program, towers, how);
            let mut run = run.expect("a device").expect("towers");
            run.run(problem.steps, progress)
        };
        assert!(run(&Progress::default()).is_ok(), "nobody looks");
        match run(&Progress::guarded()) {
            Err(RunError::BlowUp(found)) => {
                let irregular = found.value.is_nan() || found.value.abs() > 1e30;
                assert!(irregular && weight > 1.0, "{found}");
                assert!(found.step <= problem.steps, "{found}");
            }
            done => assert!(done.is_ok() && weight == 1.0, "{done:?}"),
        }
    }
}
