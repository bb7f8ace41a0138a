//! Calculation windows on several devices that take passes in turns.

use super::windows::{
    CIRCULAR, Done, Trial, compiled_for_window, few_cells, identity, kernels, least_places,
    with_layers,
};
use super::*;
use torre_compiler::resolve::Resolved;
use torre_runtime::gpu::{Devices, HeldPlanes, InFlight};
use torre_runtime::run::checkpoint::Earlier;
use torre_suite::interpreted::{InterpretedPeers, MAPPING};

/// A run on a number of devices, with the bits of the reference; over files, too.
pub(super) fn in_turns(
    scheme: &Scheme,
    problem: &Problem,
    schedule: &str,
    devices: usize,
    mut how: InFlight,
) -> Done {
    let library = library().expect("a library that was found before");
    let (plan, model) = plan_of(&Interpreted::new(), scheme, problem, schedule);
    let towers = &compiled_for_window(library, scheme, plan, &model);
    how.held = HeldPlanes::window(0, (devices == 2).then_some(MAPPING));
    how = how.with_places(least_places(scheme, problem, towers, how).expect("groups"));
    let peers = InterpretedPeers::new(devices);
    peers.reseed(devices as u64);
    let several = Devices::InTurns(&peers);
    let done = Trial {
        library,
        scheme,
        problem,
        towers,
        how,
    }
    .in_flight(several)
    .expect("the bits of the reference");
    let launches = peers.launches();
    assert!(
        launches.iter().all(|launches| *launches > 4),
        "{launches:?}"
    );
    assert!(peers.changes() > 20);
    // The same over files: each chain has a pass of each device.
    let peers = InterpretedPeers::new(devices);
    peers.reseed(devices as u64 + 7);
    let folder = tempfile::tempdir().expect("a folder");
    let over = Trial {
        library,
        scheme,
        problem,
        towers,
        how,
    }
    .over_files(Devices::InTurns(&peers), folder.path());
    over.expect("the bits of the reference");
    assert!(peers.launches().iter().all(|launches| *launches > 4));
    done
}

/// Media in layers on a thin grid, for some steps.
pub(super) fn in_layers(steps: u64) -> Resolved {
    with_layers(&format!(
        "use std::maxwell::maxwell_media
problem p {{
  scheme maxwell_media
  domain 36 x 5 x 3
  boundary x: cpml(3), y: cpml(2) | pec, z: pec
  coef eps = if y < 3 then 2.5 else 1
  source E.z at (7, 3, 2) += exp(-((t - 3)/2)^2)
  probe E.z at (29, 4, 2)
  probe H.x at (12, 2, 1)
  steps {steps}
}}
"
    ))
}

/// A run over files on several devices that one of them gives up, after any number of launches, goes on with the last
/// whole chain of passes, with any number of devices, and ends with the same bits.
#[test]
fn chains_over_files_go_on_where_they_ended() {
    let Some(library) = library() else { return };
    let resolved = in_layers(24);
    let (scheme, problem) = (&resolved.scheme, &resolved.problem);
    let device = Interpreted::new();
    let (plan, model) = plan_of(&device, scheme, problem, "torre(D = 1, TH = 2)");
    let towers = &compiled_for_window(library, scheme, plan, &model);
    let mut how = InFlight {
        group: 5,
        ..CIRCULAR
    };
    how = how.with_places(least_places(scheme, problem, towers, how).expect("groups"));
    let run = |devices: usize, folder: &std::path::Path, last: Option<u64>| {
        let peers = InterpretedPeers::new(devices);
        peers.reseed(devices as u64);
        if let Some(last) = last {
            peers.fail_after(devices - 1, last);
        }
        let trial = Trial {
            library,
            scheme,
            problem,
            towers,
            how,
        };
        let done = trial.over_files(Devices::InTurns(&peers), folder);
        let launches = peers.launches();
        done.map(|_| launches[devices - 1])
    };
    let own = identity::<f32>(scheme, problem);
    // The last device has a pass of every chain, six passes in all.
    for (first, then, early) in [(2, 3, Some(2)), (3, 1, None)] {
        let folder = tempfile::tempdir().expect("a folder");
        let all = run(first, folder.path(), None).expect("the bits of the reference");
        let mut steps = std::collections::BTreeSet::new();
        for last in early.into_iter().chain([all - 1]) {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path();
            let error = run(first, path, Some(last)).expect_err("it gave up");
            assert!(error.contains("this many are enough"), "{error}");
            steps.insert(Earlier::open(path, &own).expect("a state").step());
            let rest = run(then, path, None);
            rest.unwrap_or_else(|error| panic!("{first} {then}: {error}"));
        }
        assert!(early.is_none() || steps.len() > 1, "{steps:?}");
    }
}

/// Two and three devices, with sources in points and volumes, probes, slices across all axes and volumes; some passes
/// are shorter, and the last ones leave a device without work.
#[test]
fn devices_in_turns_give_the_bits_of_the_reference() {
    if library().is_none() {
        return;
    }
    let cases = [
        (
            maxwell(4, Precision::F32, [60, 6, 3]),
            "torre(D = 2, TH = 2)",
            3,
            InFlight {
                blocks: 2,
                group: 6,
                ahead: 1,
                spread: true,
                held: HeldPlanes::All,
            },
        ),
        (
            maxwell(2, Precision::F64, [40, 7, 3]),
            "(x, y): diamond(W = 3) lean +x height 2; z: span",
            2,
            InFlight {
                blocks: 1,
                group: 5,
                ahead: 0,
                spread: false,
                held: HeldPlanes::All,
            },
        ),
    ];
    for (seed, (scheme, schedule, devices, how)) in cases.into_iter().enumerate() {
        let mut rng = Rng::new(seed as u64);
        let mut problem = random_problem(&mut rng, &scheme);
        few_cells(&mut problem);
        problem.sources.extend(volume_sources(&mut rng, &scheme, 1));
        slices_and_a_volume(&mut problem, &scheme, [6, 8], 10);
        problem.steps = 14;
        let done = in_turns(&scheme, &problem, schedule, devices, how);
        let moved = [done.slides > 2, done.around > 2.0][usize::from(devices == 2)];
        assert!(moved, "{seed}: {done:?}");
    }
}

/// The states of layers go from device to device, states beside planes, too.
#[test]
fn states_go_from_device_to_device() {
    if library().is_none() {
        return;
    }
    let text = "use std::maxwell::maxwell_media
problem p {
  scheme maxwell_media
  domain 40 x 5 x 4
  boundary x: cpml(3), y: cpml(2) | pec, z: pec
  coef eps = if y < 3 then 2.5 else 1
  source E.z at (7, 3, 2) += exp(-((t - 3)/2)^2)
  probe E.z at (33, 4, 2)
  steps 8
}
";
    let resolved = with_layers(text);
    let (scheme, problem) = (&resolved.scheme, &resolved.problem);
    let how = InFlight {
        blocks: 1,
        group: 5,
        ahead: 1,
        spread: true,
        held: HeldPlanes::All,
    };
    let layout = kernels(scheme, how.with_places(1)).layout;
    assert!(layout.zones.iter().any(|zone| zone.in_planes));
    assert!(layout.zones.iter().any(|zone| !zone.in_planes));
    let done = in_turns(scheme, problem, "torre(D = 1, TH = 2)", 2, how);
    assert!(done.slides == 0 && done.around > 2.0, "{done:?}");
}
