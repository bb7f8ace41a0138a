//! Runs over files that are given up and go on with another schedule.

use super::windows::{CIRCULAR, Trial, compiled_for_window, few_cells, identity, least_places};
use super::*;
use torre_runtime::gpu::Devices;
use torre_runtime::run::checkpoint::Earlier;

/// Towers that make ghosts along the inner axis where rows arrive leave those in files out of date. Towers that read
/// them there are refused; the other way round a run goes on.
#[test]
fn ghosts_that_are_out_of_date_are_not_read() {
    let Some(library) = library() else { return };
    // Lines of the second schedule are shared by two blocks.
    let (open, around) = ([Boundary::Zero; 2], [Boundary::Periodic; 2]);
    let mut scheme = maxwell(4, Precision::F64, [26, 7, 190]);
    scheme.grid.boundary = PerAxis([open, open, around]);
    everywhere(&mut scheme);
    let scheme = &scheme;
    let mut problem = random_problem(&mut Rng::new(3), scheme);
    few_cells(&mut problem);
    problem.outputs.clear();
    problem.steps = 8;
    let problem = &problem;
    let by = |schedule, ghosts| {
        let (plan, model) = plan_of(&Interpreted::new(), scheme, problem, schedule);
        let towers = compiled_for_window(library, scheme, plan, &model);
        assert_eq!(towers.row_ghosts(scheme), ghosts);
        towers
    };
    let on_arrival = &by("torre(D = 1, TH = 2)", RowGhosts::OnArrival);
    let in_memory = &by("torre(D = 2, TH = 2)", RowGhosts::InMemory);
    let run = |towers, device: &Interpreted, folder: &Path| {
        let places = least_places(scheme, problem, towers, CIRCULAR);
        Trial {
            library,
            scheme,
            problem,
            towers,
            how: CIRCULAR.with_places(places.expect("groups")),
        }
        .over_files(Devices::One(device), folder)
    };
    let own = identity::<f64>(scheme, problem);
    for (first, then) in [(on_arrival, in_memory), (in_memory, on_arrival)] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let device = Interpreted::new();
        run(first, &device, folder).expect("the bits of the reference");
        let launches = device.launches();
        std::fs::remove_file(folder.join("state.checkpoint")).expect("a state");

        let device = Interpreted::new();
        device.fail_after(launches * 2 / 3);
        let error = run(first, &device, folder).expect_err("it gave up");
        assert!(error.contains("this many are enough"), "{error}");
        let step = Earlier::open(folder, &own).expect("a state").step();
        assert!((1..problem.steps).contains(&step), "{step}");
        let other = run(then, &Interpreted::new(), folder);
        if std::ptr::eq(then, in_memory) {
            let error = other.expect_err("ghosts are out of date");
            assert!(error.contains("may be out of date"), "{error}");
            // The state is as it was.
            run(first, &Interpreted::new(), folder).expect("the bits of the reference");
        } else {
            other.expect("the bits of the reference");
        }
    }
}
