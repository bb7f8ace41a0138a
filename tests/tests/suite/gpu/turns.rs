//! Calculation windows on several devices that take passes in turns.

use super::windows::{
    Done, Trial, compiled_for_window, few_cells, kernels, least_places, with_layers,
};
use super::*;
use torre_runtime::gpu::{Devices, InFlight};
use torre_suite::interpreted::{InterpretedPeers, MAPPING};

/// A run on so many devices, with the bits of the reference.
fn in_turns(
    scheme: &Scheme,
    problem: &Problem,
    schedule: &str,
    devices: usize,
    mut how: InFlight,
) -> Done {
    let library = library().expect("a library that was found before");
    let (plan, model) = plan_of(&Interpreted::new(), scheme, problem, schedule);
    let towers = &compiled_for_window(library, scheme, plan, &model);
    how.circular = (devices == 2).then_some(MAPPING);
    how.places = least_places(scheme, problem, towers, how);
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
    done
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
                places: None,
                slabs: None,
                circular: None,
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
                places: None,
                slabs: None,
                circular: None,
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

/// The states of layers go from device to device, those beside planes, too.
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
        places: None,
        slabs: None,
        circular: None,
    };
    let layout = kernels(
        scheme,
        InFlight {
            places: Some(1),
            ..how
        },
    )
    .layout;
    assert!(layout.zones.iter().any(|zone| zone.in_planes));
    assert!(layout.zones.iter().any(|zone| !zone.in_planes));
    let done = in_turns(scheme, problem, "torre(D = 1, TH = 2)", 2, how);
    assert!(done.slides == 0 && done.around > 2.0, "{done:?}");
}
