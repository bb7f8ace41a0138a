//! Packed rows where not all planes are on a device at a time, or several devices share them.

use super::slabs::by_slabs;
use super::windows::{Trial, compiled_for_window, few_cells, least_places};
use super::*;
use torre_compiler::problem::OutputKind;
use torre_compiler::testing::bounded;
use torre_compiler::tower::Numbering;
use torre_runtime::gpu::{Devices, HeldPlanes, InFlight};
use torre_suite::interpreted::MAPPING;

/// Lines between an end about which half of the components are odd, and one about which they are even.
fn between(scheme: Scheme) -> Scheme {
    let [x, y] = [[Boundary::Pec, Boundary::Zero], [Boundary::Pmc; 2]];
    bounded(scheme, [x, y, [Boundary::Pec, Boundary::Pmc]])
}

/// Sources on cells, probes, a volume, and slices at ends of lines.
pub(super) fn problem_at_ends(seed: u64, scheme: &Scheme) -> Problem {
    let mut rng = Rng::new(seed);
    let mut problem = random_problem(&mut rng, scheme);
    few_cells(&mut problem);
    slices_and_a_volume(&mut problem, scheme, [4, 6], 8);
    for (n, output) in problem.outputs.iter_mut().enumerate() {
        if let OutputKind::Slice { axis, index } = &mut output.kind {
            *axis = [Axis::INNER, Axis::OUTER][n / 2 % 2];
            let extent = scheme.extent(output.component)[*axis];
            *index = [extent.lo, extent.hi - 1][n % 2];
        }
    }
    for (n, probe) in problem.probes.iter_mut().enumerate() {
        let live = scheme.grid.live(scheme.component(probe.component).position)[Axis::INNER];
        probe.at[Axis::INNER] = [live.lo, live.hi - 1][n % 2];
    }
    problem.steps = 10;
    problem
}

fn how() -> InFlight {
    InFlight {
        blocks: 2,
        group: 6,
        ahead: 0,
        spread: false,
        held: HeldPlanes::All,
    }
}

/// Windows that slide and that go around, over memory and over files.
#[test]
fn windows_of_packed_rows_give_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let cases = [
        (
            maxwell(4, Precision::F32, [44, 7, 32]),
            "torre(D = 1, TH = 2)",
        ),
        (
            maxwell(2, Precision::F64, [40, 7, 32]),
            "(x, y): diamond(W = 3) lean +x height 4; z: span",
        ),
    ];
    for (seed, (scheme, schedule)) in cases.into_iter().enumerate() {
        let scheme = between(scheme);
        let problem = problem_at_ends(seed as u64, &scheme);
        let device = Interpreted::new();
        let (plan, model) = plan_of(&device, &scheme, &problem, schedule);
        let towers = &compiled_for_window(library, &scheme, plan, &model);
        assert_eq!(towers.program.towers.numbering, Numbering::Packed);
        for circular in [None, Some(MAPPING)] {
            let least = least_places(&scheme, &problem, towers, how()).expect("groups");
            let how = InFlight {
                held: HeldPlanes::window(least, circular),
                ..how()
            };
            let device = Interpreted::new();
            device.reseed(seed as u64);
            let trial = Trial {
                library,
                scheme: &scheme,
                problem: &problem,
                towers,
                how,
            };
            let done = trial.in_flight(Devices::One(&device));
            done.expect("the bits of the reference");
            let folder = tempfile::tempdir().expect("a folder");
            let device = Interpreted::new();
            let done = trial.over_files(Devices::One(&device), folder.path());
            done.expect("the bits of the reference");
        }
    }
}

#[test]
fn slabs_of_packed_rows_give_the_bits_of_the_reference() {
    if library().is_none() {
        return;
    }
    let scheme = between(maxwell(4, Precision::F32, [50, 6, 32]));
    let problem = problem_at_ends(3, &scheme);
    by_slabs(&scheme, &problem, "torre(D = 1, TH = 2)", how(), 13);
}
