//! Several devices, each with a stripe of the grid.

use super::*;
use torre_compiler::pipeline::{NoStripes, Stripes};
use torre_compiler::problem::OutputKind;
use torre_runtime::gpu::{Striped, StripedProgram};
use torre_suite::interpreted::InterpretedPeers;

/// How a grid is cut, and how it is computed.
#[derive(Clone, Debug)]
struct Cut {
    /// Indices along the second axis.
    borders: Vec<i64>,
    /// Columns of a group.
    columns: i64,
    in_flight: usize,
}

/// What a run did.
#[derive(Debug)]
struct Done {
    launches: Vec<u64>,
    sent: u64,
    changes: u64,
}

/// The towers of a plan in stripes, compiled.
fn striped_program(
    library: &Library,
    scheme: &Scheme,
    plan: &DevicePlan,
    model: &DeviceModel,
    cut: &Cut,
) -> Result<StripedProgram, NoStripes> {
    let towers = plan.towers.as_ref().expect("towers");
    let stripes = Stripes::new(
        scheme,
        &plan.kernels.layout,
        &towers.program.towers,
        towers.order.order,
        cut.columns,
        &cut.borders,
        towers.order.steps,
    )?;
    let program = towers.program.clone();
    let (gpu, order) = (model.gpu, towers.order);
    let made = StripedProgram::new(library, scheme, program, gpu, order, stripes, cut.in_flight);
    Ok(made.expect("valid IR"))
}

/// Runs a problem on as many devices as there are stripes, and by the reference, and compares all that can be seen.
fn on_devices<T: Value>(
    scheme: &Scheme,
    problem: &Problem,
    program: StripedProgram,
    seed: u64,
) -> Result<Done, String> {
    let set = code::kernels(scheme).expect("a size that can be addressed");
    let calculation: Calculation<'_, T> =
        Calculation::arranged(set.layout, scheme, problem, &NoFiles, 1)
            .expect("a problem of finite values");
    let peers = InterpretedPeers::new(program.stripes.count());
    peers.reseed(seed);
    let run = Striped::new(calculation, &NoFiles, &peers, program);
    let run = run.map_err(|error| error.to_string())?;
    let mut run = run.ok_or("towers cannot do that")?;
    let mut check = Literal::<T>::new(scheme, problem, &NoFiles);
    let done = execute(
        &mut run,
        Some(&mut check),
        Company::default(),
        &Watch::default(),
    );
    done.map_err(|error| format!("{error:?}\n{scheme}"))?;
    Ok(Done {
        launches: peers.launches(),
        sent: run.sent(),
        changes: peers.changes(),
    })
}

fn on_devices_any(
    scheme: &Scheme,
    problem: &Problem,
    program: StripedProgram,
    seed: u64,
) -> Done {
    let run = match scheme.precision {
        Precision::F32 => on_devices::<f32>,
        Precision::F64 => on_devices::<f64>,
    };
    let done = run(scheme, problem, program, seed);
    done.unwrap_or_else(|error| panic!("seed {seed}: {error}"))
}

/// FDTD of two orders and elastic waves on two and three devices with stripes of different widths: sources in points and
/// volumes, probes, slices across all axes, volumes.
#[test]
fn several_devices_give_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let cases = [
        (
            maxwell(4, Precision::F32, [26, 44, 6]),
            "torre(D = 1, TH = 3)",
            Cut {
                borders: vec![19],
                columns: 2,
                in_flight: 3,
            },
        ),
        (
            maxwell(2, Precision::F64, [17, 50, 5]),
            "(x, y): diamond(W = 3) lean +x height 4; z: span",
            Cut {
                borders: vec![15, 33],
                columns: 2,
                in_flight: 2,
            },
        ),
        (
            elasticity(Precision::F32, [20, 62, 6]),
            "torre(W = 6, TH = 2)",
            Cut {
                borders: vec![34],
                columns: 2,
                in_flight: 2,
            },
        ),
    ];
    for (seed, (scheme, schedule, cut)) in cases.into_iter().enumerate() {
        let mut rng = Rng::new(seed as u64);
        let mut problem = random_problem(&mut rng, &scheme);
        problem.sources.extend(volume_sources(&mut rng, &scheme, 1));
        for (n, output) in problem.outputs.iter_mut().enumerate() {
            let axis = Axis::ALL[n % 3];
            let index = scheme.extent(output.component)[axis].hi / 2;
            output.kind = OutputKind::Slice { axis, index };
            output.every = [6, 8][n % 2];
        }
        problem.outputs.truncate(4);
        let mut volume = problem.outputs[0].clone();
        volume.kind = OutputKind::Volume;
        volume.every = 10;
        problem.outputs.push(volume);
        problem.steps = 14;
        let device = Interpreted::new();
        let (plan, model) = plan_of(&device, &scheme, &problem, schedule);
        let program = striped_program(library, &scheme, &plan, &model, &cut);
        let program = program.expect("stripes");
        // A device has memory for its stripe.
        let whole = plan.kernels.layout.bytes();
        assert!(program.layout.bytes() < whole, "{seed}: {whole}");
        let done = on_devices_any(&scheme, &problem, program, seed as u64);
        let all = done.launches.iter().all(|launches| *launches > 4);
        assert!(all && done.sent > 0 && done.changes > 20, "{seed}: {done:?}");
    }
}
