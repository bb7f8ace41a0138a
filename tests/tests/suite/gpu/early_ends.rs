//! Runs by several time blocks in flight on the whole array that end early.

use super::*;
use torre_compiler::scheme::Op;
use torre_runtime::gpu::{Devices, HeldPlanes, InFlight, Pipelined};
use torre_runtime::simulation::RunError;

/// FDTD whose weights are `times` as large as they should be, and a problem of some steps without sources.
fn weighted(times: f64) -> (Scheme, Problem) {
    let mut scheme = maxwell(4, Precision::F32, [24, 15, 8]);
    let updates = scheme.stages.iter_mut().flat_map(|s| &mut s.updates);
    for op in updates.flat_map(|update| &mut update.body.ops) {
        if let Op::Const(weight) = op {
            *weight *= times;
        }
    }
    let mut problem = random_problem(&mut Rng::new(1), &scheme);
    (problem.sources, problem.outputs) = Default::default();
    problem.steps = 24;
    (scheme, problem)
}

/// Gives a run of a problem on a device to a function.
fn with_run<R>(
    library: &Library,
    device: &Interpreted,
    scheme: &Scheme,
    problem: &Problem,
    then: impl FnOnce(&mut Pipelined<'_, f32>) -> R,
) -> R {
    let (plan, model) = plan_of(device, scheme, problem, "torre(D = 2, TH = 2)");
    let towers = &compiled(library, scheme, &plan, &model);
    let how = InFlight {
        blocks: 2,
        group: 6,
        ahead: 1,
        spread: false,
        held: HeldPlanes::All,
    };
    let (set, shape) = (&plan.kernels, Shape::of(scheme));
    let ptx = &code::ptx(library, scheme, set, shape, model.gpu).expect("valid IR");
    let layout = set.layout.clone();
    let calculation = Calculation::<f32>::arranged(layout, scheme, problem, &NoFiles, 1);
    let calculation = calculation.expect("a problem of finite values");
    let program = DeviceProgram { set, ptx, shape };
    let one = Devices::One(device);
    let run = Pipelined::new(calculation, &NoFiles, one, program, towers, how);
    then(&mut run.expect("a device").expect("towers"))
}

#[test]
fn values_that_are_no_numbers_end_a_run() {
    let Some(library) = library() else { return };
    for times in [1024.0, 1.0] {
        let (scheme, problem) = &weighted(times);
        let run = |progress: &Progress| {
            with_run(library, &Interpreted::new(), scheme, problem, |run| {
                run.run(problem.steps, progress)
            })
        };
        assert!(run(&Progress::default()).is_ok(), "nobody looks");
        match run(&Progress::guarded()) {
            Err(RunError::BlowUp(found)) => {
                let irregular = found.value.is_nan() || found.value.abs() > 1e30;
                assert!(irregular && times > 1.0, "{found}");
                assert!(found.step <= problem.steps, "{found}");
            }
            done => assert!(done.is_ok() && times == 1.0, "{done:?}"),
        }
    }
}

/// A run that a device gave up is not gone on with: the passes that had begun are lost.
#[test]
fn a_run_that_was_given_up_does_not_go_on() {
    let Some(library) = library() else { return };
    let (scheme, problem) = weighted(1.0);
    let device = Interpreted::new();
    let run = |run: &mut Pipelined<'_, f32>| {
        device.fail_after(device.launches() + 20);
        let mut run = |until| run.run(until, &Progress::default());
        [24, 24].map(|until| format!("{:?}", run(until).expect_err("it was given up")))
    };
    let [first, second] = with_run(library, &device, &scheme, &problem, run);
    assert!(first.contains("this many are enough"), "{first}");
    assert!(second.contains("a pass was given up"), "{second}");
}
