//! Calculation windows around a periodic first axis.

use super::windows::{CIRCULAR, Done, Trial, compiled_for_window, identity, least_places};
use super::*;
use std::collections::BTreeSet;
use std::path::Path;
use torre_runtime::gpu::{Devices, HeldPlanes, InFlight};
use torre_runtime::run::checkpoint::Earlier;
use torre_suite::interpreted::{InterpretedPeers, MAPPING};

/// A problem around the first axis, and how a window goes over it.
struct Case<'a> {
    text: &'a str,
    schedule: &'a str,
    precision: Precision,
    how: InFlight,
}

impl Case<'_> {
    /// Runs on a number of devices, with `more` planes than a window needs, and compares with the reference.
    fn run(&self, devices: usize, more: i64) -> Done {
        self.run_over(devices, more, None)
    }

    /// The same over the files of a folder.
    fn run_over(&self, devices: usize, more: i64, folder: Option<&Path>) -> Done {
        self.tried(more, |trial| {
            let done = match devices {
                1 => {
                    let device = Interpreted::new();
                    device.reseed(more as u64);
                    match folder {
                        Some(folder) => trial.over_files(Devices::One(&device), folder),
                        None => trial.in_flight(Devices::One(&device)),
                    }
                }
                _ => {
                    let peers = InterpretedPeers::new(devices);
                    peers.reseed(more as u64);
                    let several = Devices::InTurns(&peers);
                    match folder {
                        Some(folder) => trial.over_files(several, folder),
                        None => trial.in_flight(several),
                    }
                }
            };
            done.unwrap_or_else(|error| panic!("{error}\n{}", self.text))
        })
    }

    /// Tries something with `more` planes than a window needs.
    fn tried<R>(&self, more: i64, run: impl FnOnce(&Trial<'_>) -> R) -> R {
        let library = library().expect("a library that was found before");
        let options = Options {
            precision: self.precision,
            ..Options::default()
        };
        let world = FileWorld::beside(std::path::Path::new("."));
        let resolved = load(&world, &Source::new("ring", self.text), &options);
        let resolved = resolved.unwrap_or_else(|errors| panic!("{errors:?}"));
        let (scheme, problem) = (&resolved.scheme, &resolved.problem);
        assert!(scheme.grid.is_periodic(Axis::OUTER));
        let (plan, model) = plan_of(&Interpreted::new(), scheme, problem, self.schedule);
        let towers = &compiled_for_window(library, scheme, plan, &model);
        let least = least_places(scheme, problem, towers, self.how);
        let how = self.how.with_places(least.expect("a long ring") + more);
        run(&Trial {
            library,
            scheme,
            problem,
            towers,
            how,
        })
    }
}

/// Fields with a phase around two axes.
const BLOCH: &str = "use std::maxwell::maxwell
problem p {
  scheme maxwell
  domain 72 x 6 x 4
  boundary x: bloch(1.2), y: bloch(0.4), z: pec
  init E.z = sin(x) * cos(2*y)
  steps 16
}
";

/// Ends of a periodic first axis of 80 cells, and sources and probes beside its seam.
const POINTS: &str = "  boundary x: periodic, y: pec, z: pec | pmc
  source E.z at (3, 4, 3) += exp(-((t - 3)/2)^2)
  source H.x at (77, 3, 2) += sin(t)
  probe E.z at (0, 3, 3)
  probe H.y at (79, 2, 2)
";

/// Points, slices across all axes and a volume; the domain is longer than the buffer, and passes come around.
#[test]
fn windows_go_around_the_first_axis() {
    if library().is_none() {
        return;
    }
    let text = &format!(
        "use std::maxwell::maxwell42
problem p {{
  scheme maxwell42
  domain 80 x 7 x 6
{POINTS}  output slice E.z z = 3 every 6
  output slice H.y x = 78 every 9
  output volume E.x every 9
  steps 18
}}
"
    );
    for (circular, more) in [(None, 0), (Some(MAPPING), 0), (Some(MAPPING), 9)] {
        let case = Case {
            text,
            schedule: "torre(D = 2, TH = 2)",
            precision: Precision::F32,
            how: InFlight {
                held: HeldPlanes::window(0, circular),
                ..CIRCULAR
            },
        };
        let folder = tempfile::tempdir().expect("a folder");
        // Over files, too, where planes slide and where there is room for more of them.
        let over = (circular.is_none() || more > 0).then_some(Some(folder.path()));
        for folder in [None].into_iter().chain(over) {
            let done = case.run_over(1, more, folder);
            assert!(done.times > 1.0, "{done:?}");
            assert_eq!(done.slides > 0, circular.is_none(), "{done:?}");
        }
    }
}

/// Planes that come back from memory, with layers, whose coefficients lie beside them, a slice, and phases.
#[test]
fn windows_over_files_go_around_the_first_axis() {
    if library().is_none() {
        return;
    }
    let layers = "use std::maxwell::maxwell_media
problem p {
  scheme maxwell_media
  domain 64 x 6 x 8
  boundary x: periodic, y: cpml(2) | pec, z: pec | cpml(2)
  coef eps = if y < 4 then 2.5 else 1 + x/100
  source E.z at (7, 4, 3) += exp(-((t - 3)/2)^2)
  probe E.z at (60, 5, 6)
  output slice E.z z = 3 every 6
  steps 14
}
";
    for (text, precision) in [(layers, Precision::F32), (BLOCH, Precision::F64)] {
        let case = Case {
            text,
            schedule: "torre(D = 1, TH = 2)",
            precision,
            how: CIRCULAR,
        };
        let folder = tempfile::tempdir().expect("a folder");
        case.run_over(1, 1, Some(folder.path()));
    }
}

/// Towers that move down the first axis, whose planes are counted backwards: in memory, over files, and on two devices.
#[test]
fn towers_that_move_down_go_around_the_first_axis() {
    if library().is_none() {
        return;
    }
    let points = "use std::maxwell::maxwell
problem p {
  scheme maxwell
  domain 72 x 7 x 5
  boundary x: periodic, y: pec, z: pec | pmc
  source E.z at (3, 4, 3) += exp(-((t - 3)/2)^2)
  probe E.z at (0, 3, 3)
  probe H.y at (71, 2, 2)
  output slice H.y x = 70 every 6
  steps 14
}
";
    let phases = &BLOCH.replace("72 x 6", "72 x 8");
    for (text, precision, circular) in [
        (points, Precision::F32, Some(MAPPING)),
        (points, Precision::F32, None),
        (phases, Precision::F64, Some(MAPPING)),
    ] {
        let case = Case {
            text,
            schedule: "(x, y): diamond(W = 2) lean -x height 2; z: span",
            precision,
            how: InFlight {
                held: HeldPlanes::window(0, circular),
                ..CIRCULAR
            },
        };
        let way = case.tried(1, |trial| trial.towers.program.towers.way());
        assert_eq!(way, -1);
        let folder = tempfile::tempdir().expect("a folder");
        // Everything for the first one, and two of four for the others.
        if circular.is_none() || text == points {
            case.run_over(1, 1, Some(folder.path()));
            case.run(2, 0);
        }
        if circular.is_some() {
            case.run(1, 2);
            let folder = tempfile::tempdir().expect("a folder");
            case.run_over(2, 0, Some(folder.path()));
        }
    }
}

/// A run over files around the first axis that a device gives up, after any number of launches, goes on with the last
/// whole pass, or chain of passes, with any number of devices, and ends with the same bits; towers that move down, too.
#[test]
fn windows_around_the_first_axis_go_on_where_they_ended() {
    if library().is_none() {
        return;
    }
    let text = "use std::maxwell::maxwell
problem p {
  scheme maxwell
  domain 60 x 5 x 3
  boundary x: periodic, y: pec, z: pec
  source E.z at (3, 3, 2) += exp(-((t - 3)/2)^2)
  probe E.z at (55, 2, 2)
  steps 24
}
";
    let down = "(x, y): diamond(W = 2) lean -x height 2; z: span";
    // Quarters of the launches after which it gives up.
    for (schedule, first, then, quarters) in [
        ("torre(D = 1, TH = 2)", 1, 2, &[0, 4][..]),
        ("torre(D = 1, TH = 2)", 3, 2, &[3]),
        (down, 2, 1, &[3]),
    ] {
        let case = Case {
            text,
            schedule,
            precision: Precision::F32,
            how: CIRCULAR,
        };
        case.tried(1, |trial| {
            let run = |devices: usize, folder: &Path, last: Option<u64>| {
                let peers = InterpretedPeers::new(devices);
                peers.reseed(devices as u64);
                if let Some(last) = last {
                    peers.fail_after(devices - 1, last);
                }
                let done = trial.over_files(Devices::InTurns(&peers), folder);
                done.map(|_| peers.launches()[devices - 1])
            };
            let folder = tempfile::tempdir().expect("a folder");
            let launches = run(first, folder.path(), None).expect("the bits of the reference");
            let own = identity::<f32>(trial.scheme, trial.problem);
            let mut steps = BTreeSet::new();
            for quarter in quarters {
                let last = 1 + (launches - 2) * quarter / 4;
                let folder = tempfile::tempdir().expect("a folder");
                let path = folder.path();
                let error = run(first, path, Some(last)).expect_err("it gave up");
                assert!(error.contains("this many are enough"), "{error}");
                steps.insert(Earlier::open(path, &own).expect("a state").step());
                run(then, path, None).expect("the bits of the reference");
            }
            let most = steps.len() > 1 || quarters.len() == 1;
            assert!(most, "{schedule}: {steps:?}");
        });
    }
}

/// Chains of passes of several devices over files: points, slices across all axes and a volume, for which some chains
/// have fewer passes and some passes fewer steps; layers, whose coefficients lie beside planes; and phases.
#[test]
fn chains_over_files_go_around_the_first_axis() {
    if library().is_none() {
        return;
    }
    let points = &format!(
        "use std::maxwell::maxwell42
problem p {{
  scheme maxwell42
  domain 80 x 5 x 4
{POINTS}  output slice E.z z = 3 every 14
  output slice H.y x = 78 every 14
  output volume E.x every 22
  steps 22
}}
"
    );
    let layers = "use std::maxwell::maxwell_media
problem p {
  scheme maxwell_media
  domain 64 x 6 x 5
  boundary x: periodic, y: cpml(2) | pec, z: pec | cpml(2)
  coef eps = if y < 4 then 2.5 else 1 + x/100
  source E.z at (7, 4, 3) += exp(-((t - 3)/2)^2)
  probe E.z at (60, 4, 3)
  steps 14
}
";
    let cases = [
        (
            points.as_str(),
            "torre(D = 2, TH = 2)",
            Precision::F32,
            3,
            &[None, Some(MAPPING)][..],
        ),
        (
            layers,
            "torre(D = 1, TH = 2)",
            Precision::F32,
            2,
            &[Some(MAPPING)],
        ),
        (BLOCH, "torre(D = 1, TH = 2)", Precision::F64, 3, &[None]),
    ];
    for (text, schedule, precision, devices, buffers) in cases {
        for circular in buffers.iter().copied() {
            let case = Case {
                text,
                schedule,
                precision,
                how: InFlight {
                    held: HeldPlanes::window(0, circular),
                    ..CIRCULAR
                },
            };
            let folder = tempfile::tempdir().expect("a folder");
            case.run_over(devices, 2, Some(folder.path()));
        }
    }
}

/// Two and three devices that take passes in turns.
#[test]
fn devices_in_turns_go_around_the_first_axis() {
    if library().is_none() {
        return;
    }
    let text = "use std::maxwell::maxwell22
problem p {
  scheme maxwell22
  domain 70 x 6 x 4
  boundary x: periodic, y: periodic, z: pec
  source E.z at (3, 4, 3) += exp(-((t - 3)/2)^2)
  probe E.z at (66, 3, 3)
  output slice E.z y = 3 every 8
  steps 16
}
";
    for devices in [2, 3] {
        let case = Case {
            text,
            schedule: "torre(D = 1, TH = 2)",
            precision: Precision::F64,
            how: CIRCULAR,
        };
        case.run(devices, 3);
    }
}

/// Fields that come back with another phase, layers along other axes, whose states move with planes, and nothing that
/// happens in single cells, so that all time blocks have the same tables.
#[test]
fn planes_around_the_first_axis_may_be_alike() {
    if library().is_none() {
        return;
    }
    let layers = "use std::maxwell::maxwell_media
problem p {
  scheme maxwell_media
  domain 64 x 6 x 8
  boundary x: periodic, y: cpml(2) | pec, z: pec | cpml(2)
  coef eps = if y < 4 then 2.5 else 1 + x/100
  init E.z = sin(x) * cos(2*y)
  steps 12
}
";
    for (text, devices) in [(BLOCH, 2), (layers, 1), (layers, 2)] {
        let case = Case {
            text,
            schedule: "torre(D = 1, TH = 2)",
            precision: Precision::F32,
            how: CIRCULAR,
        };
        case.run(devices, devices as i64 % 2);
    }
}

/// Layers with sources, and boxes of total fields and volume sources in a part of the axis: each time block has its own
/// tables.
#[test]
fn planes_around_the_first_axis_may_differ() {
    if library().is_none() {
        return;
    }
    let layers = "use std::maxwell::maxwell_media
problem p {
  scheme maxwell_media
  domain 64 x 6 x 8
  boundary x: periodic, y: cpml(2) | pec, z: pec | cpml(2)
  coef eps = if y < 4 then 2.5 else 1
  source E.z at (7, 4, 3) += exp(-((t - 3)/2)^2)
  probe E.z at (60, 5, 6)
  steps 12
}
";
    let total = "use std::maxwell::maxwell
use std::sources::ricker
problem p {
  scheme maxwell
  domain 72 x 8 x 9
  boundary x: periodic, y: zero, z: pec
  incident wave { direction (1, 2, 3); drive E.z = ricker(t, f0 = 0.1) }
  total x = 50..66, y = 2..6, z = 2..6 from wave
  probe E.z at (70, 5, 4)
  steps 16
}
";
    let volume = "use std::maxwell::maxwell
problem p {
  scheme maxwell
  domain 72 x 6 x 8
  boundary x: periodic, y: zero, z: pec
  source E.z in x = 40..70, y = 1..5, z = 1..7 += sin(t) * cos(x) * cos(y)
  probe E.z at (4, 5, 4)
  steps 16
}
";
    for (text, devices) in [(layers, 1), (total, 1), (total, 2), (volume, 2)] {
        let case = Case {
            text,
            schedule: "torre(D = 1, TH = 2)",
            precision: Precision::F32,
            how: CIRCULAR,
        };
        case.run(devices, devices as i64 % 2);
    }
}

/// A record after each step cuts time blocks down to one step: passes of as many low blocks as high ones cannot be
/// laid out, so they have fewer blocks.
#[test]
fn passes_of_low_blocks_around_the_first_axis_have_fewer() {
    if library().is_none() {
        return;
    }
    let text = "use std::maxwell::maxwell42
problem p {
  scheme maxwell42
  domain 94 x 12 x 3
  boundary x: periodic, y: pec, z: pec
  init E.z = sin(x) * cos(2*y)
  probe E.z at (90, 3, 2)
  record energy = sum(E.z^2) in x = 32
  steps 9
}
";
    for (group, ahead, in_memory) in [(48, 0, 1), (30, 1, 2)] {
        let case = Case {
            text,
            schedule: "torre(D = 1, TH = 4)",
            precision: Precision::F64,
            how: InFlight {
                blocks: 4,
                group,
                ahead,
                ..CIRCULAR
            },
        };
        // One device in memory and two over files, and the other way round.
        case.run(in_memory, 0);
        let folder = tempfile::tempdir().expect("a folder");
        case.run_over(3 - in_memory, 0, Some(folder.path()));
    }
}
