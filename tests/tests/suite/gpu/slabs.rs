//! Overlapped slabs: domains that go through a device slab by slab, each with all planes on which its base depends.

use super::turns::in_layers;
use super::windows::{
    CIRCULAR, Done, Trial, compiled_for_window, few_cells, identity, kernels, least_places,
    with_layers,
};
use super::*;
use std::collections::BTreeSet;
use std::path::Path;
use torre_compiler::layout::Layout;
use torre_compiler::pipeline::{Footprints, NoLayout, wide_enough};
use torre_runtime::gpu::{Devices, HeldPlanes, InFlight, device_bytes};
use torre_runtime::run::checkpoint::Earlier;
use torre_suite::interpreted::InterpretedPeers;

/// Slabs of a problem with bases of some planes, or of as many more as others need of them, in buffers that are as
/// small as can be; `None` where towers cannot be put into groups.
pub(super) fn slabs_of(
    scheme: &Scheme,
    towers: &CompiledTowers,
    how: InFlight,
    mut base: i64,
) -> Option<InFlight> {
    let layout = &Layout::for_window(scheme).expect("a size that can be addressed");
    let of = &towers.program.towers;
    let mut footprints = Footprints::new(scheme, layout, of, towers.order, how.group, towers.steps);
    footprints.height(scheme, layout, towers.steps)?;
    let heights = vec![towers.steps; how.blocks];
    loop {
        let slabs = footprints.slabs(scheme, layout, &heights, base)?;
        match wide_enough(&slabs) {
            Err(NoLayout::Narrow { needed, .. }) => base = needed,
            fits => {
                fits.expect("nothing else is asked");
                let places = slabs.iter().map(|slab| slab.held.len()).max()?;
                return Some(InFlight {
                    held: HeldPlanes::Slabs { places, base },
                    ..how
                });
            }
        }
    }
}

/// A run by slabs, with the bits of the reference; over files and on several devices, too.
pub(super) fn by_slabs(
    scheme: &Scheme,
    problem: &Problem,
    schedule: &str,
    how: InFlight,
    base: i64,
) -> (Done, InFlight) {
    let library = library().expect("a library that was found before");
    let device = Interpreted::new();
    let (plan, model) = plan_of(&device, scheme, problem, schedule);
    let towers = &compiled_for_window(library, scheme, plan, &model);
    let how = slabs_of(scheme, towers, how, base).expect("groups");
    let trial = Trial {
        library,
        scheme,
        problem,
        towers,
        how,
    };
    let device = Interpreted::new();
    device.reseed(base as u64);
    let done = trial.in_flight(Devices::One(&device));
    let done = done.expect("the bits of the reference");
    assert!(device.changes() > 20, "queues take turns");
    let device = Interpreted::new();
    device.reseed(base as u64 + 1);
    let folder = tempfile::tempdir().expect("a folder");
    let over = trial.over_files(Devices::One(&device), folder.path());
    over.expect("the bits of the reference");
    // Several devices take slabs in turns, over the host's memory.
    let peers = InterpretedPeers::new(2 + base as usize % 2);
    peers.reseed(base as u64);
    let several = Devices::InTurns(&peers);
    trial.in_flight(several).expect("the bits of the reference");
    assert!(peers.launches().iter().all(|launches| *launches > 4));
    let folder = tempfile::tempdir().expect("a folder");
    let refused = trial.over_files(several, folder.path());
    assert!(refused.is_err_and(|error| error.contains("one device")));
    (done, how)
}

/// Points and volumes of sources, probes, slices across all axes and volumes act once, though slabs compute them more
/// than once; some passes are shorter, and the last slab is narrower.
#[test]
fn slabs_give_the_bits_of_the_reference() {
    if library().is_none() {
        return;
    }
    let cases = [
        (
            maxwell(4, Precision::F32, [70, 6, 3]),
            "torre(D = 2, TH = 2)",
            16,
            InFlight {
                blocks: 2,
                group: 6,
                ahead: 0,
                spread: false,
                held: HeldPlanes::All,
            },
        ),
        (
            maxwell(2, Precision::F64, [48, 7, 3]),
            "(x, y): diamond(W = 3) lean +x height 4; z: span",
            11,
            InFlight {
                blocks: 2,
                group: 3,
                ahead: 0,
                spread: false,
                held: HeldPlanes::All,
            },
        ),
        (
            elasticity(Precision::F32, [50, 6, 3]),
            "torre(W = 6, TH = 2)",
            13,
            InFlight {
                blocks: 1,
                group: 5,
                ahead: 0,
                spread: false,
                held: HeldPlanes::All,
            },
        ),
    ];
    for (seed, (scheme, schedule, base, how)) in cases.into_iter().enumerate() {
        let mut rng = Rng::new(seed as u64);
        let mut problem = random_problem(&mut rng, &scheme);
        few_cells(&mut problem);
        problem.sources.extend(volume_sources(&mut rng, &scheme, 1));
        slices_and_a_volume(&mut problem, &scheme, [6, 8], 10);
        problem.steps = 14;
        let (_, how) = by_slabs(&scheme, &problem, schedule, how, base);
        let base = how.held.base().expect("slabs");
        let cells = scheme.grid.cells[Axis::OUTER];
        assert!(cells > 2 * base, "{seed}: slabs of {base}");
    }
}

/// States of layers go with their planes, states beside planes, too, in media.
#[test]
fn slabs_amend_layers_with_the_bits_of_the_reference() {
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
  probe E.z at (19, 2, 2)
  steps 8
}
";
    let resolved = with_layers(text);
    let (scheme, problem) = (&resolved.scheme, &resolved.problem);
    let how = InFlight {
        blocks: 2,
        group: 5,
        ahead: 0,
        spread: false,
        held: HeldPlanes::Sliding { places: 1 },
    };
    let layout = kernels(scheme, how).layout;
    assert!(layout.zones.iter().any(|zone| zone.in_planes));
    assert!(layout.zones.iter().any(|zone| !zone.in_planes));
    by_slabs(scheme, problem, "torre(D = 1, TH = 2)", how, 9);
}

/// A run by slabs over files that the device gives up, after any number of launches, goes on with the last whole pass,
/// by slabs or with windows of two devices, and ends with the same bits.
#[test]
fn slabs_over_files_go_on_where_they_ended() {
    let Some(library) = library() else { return };
    let resolved = in_layers(20);
    let (scheme, problem) = (&resolved.scheme, &resolved.problem);
    let device = Interpreted::new();
    let (plan, model) = plan_of(&device, scheme, problem, "torre(D = 1, TH = 2)");
    let towers = &compiled_for_window(library, scheme, plan, &model);
    let how = InFlight {
        group: 5,
        ..CIRCULAR
    };
    let least = least_places(scheme, problem, towers, how).expect("groups");
    let window = how.with_places(least);
    let slabs = InFlight { ahead: 0, ..how };
    let slabs = slabs_of(scheme, towers, slabs, 8).expect("groups");
    let run = |how: InFlight, devices: Devices<'_>, folder: &Path| {
        let trial = Trial {
            library,
            scheme,
            problem,
            towers,
            how,
        };
        trial.over_files(devices, folder)
    };
    let by_slabs = |last: Option<u64>, folder: &Path| {
        let device = Interpreted::new();
        if let Some(last) = last {
            device.fail_after(last);
        }
        let done = run(slabs, Devices::One(&device), folder);
        done.map(|_| device.launches())
    };
    let folder = tempfile::tempdir().expect("a folder");
    let launches = by_slabs(None, folder.path()).expect("the bits of the reference");
    let own = identity::<f32>(scheme, problem);
    let mut steps = BTreeSet::new();
    for (number, last) in [2, launches / 2, launches - 1].into_iter().enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let error = by_slabs(Some(last), path).expect_err("it gave up");
        assert!(error.contains("this many are enough"), "{error}");
        steps.insert(Earlier::open(path, &own).expect("a state").step());
        let peers = InterpretedPeers::new(2);
        let rest = match number {
            0 => run(window, Devices::InTurns(&peers), path).map(|_| ()),
            _ => by_slabs(None, path).map(|_| ()),
        };
        rest.expect("the bits of the reference");
    }
    assert!(steps.len() > 2, "{steps:?}");
}

/// The device has less memory than the array; with less than two buffers it says so, and a place less is found before
/// anything runs.
#[test]
fn slabs_keep_to_the_memory_of_the_device() {
    let Some(library) = library() else { return };
    let scheme = maxwell(4, Precision::F32, [260, 6, 4]);
    let mut problem = random_problem(&mut Rng::new(1), &scheme);
    (problem.sources, problem.outputs) = Default::default();
    problem.steps = 4;
    let device = Interpreted::new();
    let (plan, model) = plan_of(&device, &scheme, &problem, "torre(D = 2, TH = 2)");
    let towers = &compiled_for_window(library, &scheme, plan, &model);
    let how = InFlight {
        blocks: 1,
        group: 6,
        ahead: 0,
        spread: false,
        held: HeldPlanes::All,
    };
    let mut how = slabs_of(&scheme, towers, how, 20).expect("groups");
    let set = kernels(&scheme, how);
    let needed = device_bytes(&scheme, &problem, &set.layout, towers.steps, how, 0);
    assert!(set.layout.bytes() > 2 * needed, "{needed}");
    // Tables of the time blocks lie beside that.
    let device = Interpreted::with_memory(needed + (2 << 20));
    let trial = Trial {
        library,
        scheme: &scheme,
        problem: &problem,
        towers,
        how,
    };
    let done = trial.in_flight(Devices::One(&device));
    done.expect("the bits of the reference");
    let small = Interpreted::with_memory(needed - 1);
    let refused = trial.in_flight(Devices::One(&small));
    assert!(refused.is_err_and(|error| error.contains("bytes of the GPU's memory")));
    let HeldPlanes::Slabs { places, base } = how.held else {
        panic!("slabs");
    };
    let places = places - 1;
    how.held = HeldPlanes::Slabs { places, base };
    let device = Interpreted::new();
    let refused = Trial { how, ..trial }.in_flight(Devices::One(&device));
    assert!(refused.is_err_and(|error| error.contains("planes are needed at a time")));
    // Bases that are narrower than the part that others need of them.
    how.held = HeldPlanes::Slabs { places, base: 3 };
    let refused = Trial { how, ..trial }.in_flight(Devices::One(&device));
    assert!(refused.is_err_and(|error| error.contains("the one after the next one needs")));
}
