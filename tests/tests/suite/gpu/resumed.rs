//! Runs over the host's memory that are killed between two checkpoints, and go on with another number of devices, or by
//! slabs instead of a window.

use super::slabs::slabs_of;
use super::turns::in_layers;
use super::windows::{compiled_for_window, kernels, least_places};
use super::*;
use std::path::Path;
use torre_runtime::files::LoadedFiles;
use torre_runtime::gpu::{Devices, HeldPlanes, InFlight, Pipelined};
use torre_runtime::output::checkpoint::Identity;
use torre_runtime::run::checkpoint::Earlier;
use torre_runtime::run::{Checkpoints, checkpoint, verify};
use torre_runtime::simulation::{Progress, Simulation};
use torre_suite::interpreted::InterpretedPeers;

/// How a part of a run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// A window of each of this number of devices.
    Turns(usize),
    Slabs,
    SlabsInTurns(usize),
}

struct Resumed<'a> {
    scheme: &'a Scheme,
    problem: &'a Problem,
    towers: &'a CompiledTowers,
    how: InFlight,
}

/// Steps of a pass, which ends with a checkpoint.
const PASS: u64 = 4;

impl Resumed<'_> {
    fn identity(&self) -> Identity {
        checkpoint::identity::<f32>(self.scheme, self.problem, &LoadedFiles::default())
    }

    /// Runs to the end from the checkpoint of a folder, if there is one; the last device gives up after `last`
    /// launches. Gives the number of launches of all devices, and compares values at the end with the reference.
    fn run(&self, by: By, folder: &Path, last: Option<u64>) -> Result<u64, String> {
        let library = library().expect("a library that was found before");
        let Resumed {
            scheme,
            problem,
            towers,
            ..
        } = *self;
        let (count, how) = match by {
            By::Turns(count) => {
                let places = least_places(scheme, problem, towers, self.how);
                let how = self.how.with_places(places.expect("groups"));
                (count, how)
            }
            By::Slabs => (1, slabs_of(scheme, towers, self.how, 8).expect("groups")),
            By::SlabsInTurns(count) => {
                let how = slabs_of(scheme, towers, self.how, 8).expect("groups");
                (count, how)
            }
        };
        let peers = InterpretedPeers::new(count);
        peers.reseed(count as u64);
        if let Some(last) = last {
            peers.fail_after(count - 1, last);
        }
        let set = kernels(scheme, how);
        let several = Devices::InTurns(&peers);
        let gpu = code::gpu_of(several.device(0)).expect("a GPU that is known");
        let shape = Shape::of(scheme);
        let ptx = code::ptx(library, scheme, &set, shape, gpu).expect("valid IR");
        let layout = set.layout.clone();
        let calculation = Calculation::<f32>::arranged(layout, scheme, problem, &NoFiles, 1);
        let mut calculation = calculation.expect("a problem of finite values");
        if folder.join("state.checkpoint").is_file() {
            let earlier = Earlier::open(folder, &self.identity()).expect("a checkpoint");
            let resumed = earlier.resume(&mut calculation);
            resumed.expect("a checkpoint of this run");
        }
        let program = DeviceProgram {
            set: &set,
            ptx: &ptx,
            shape,
        };
        let run = Pipelined::new(calculation, &NoFiles, several, program, towers, how);
        let run = run.map_err(|error| error.to_string())?;
        let mut run = run.ok_or("time blocks cannot do that")?;
        let checkpoints = Checkpoints::new(folder, PASS, self.identity());
        let company = Company {
            checkpoints: Some(&checkpoints),
            threads: 1,
            ..Company::default()
        };
        let done = execute(&mut run, None, company, &Watch::default());
        done.map_err(|error| format!("{error:?}"))?;
        let mut check = Literal::<f32>::new(scheme, problem, &NoFiles);
        let checked = check.run(problem.steps, &Progress::default());
        checked.map_err(|error| format!("{error:?}"))?;
        verify::compare(&run, &check).map_err(|difference| difference.to_string())?;
        Ok(peers.launches().into_iter().sum())
    }
}

/// A killed run goes on with any other devices, with states of layers that move with planes and states that lie beside
/// them.
#[test]
fn runs_that_were_killed_go_on_with_other_devices() {
    let Some(library) = library() else { return };
    let resolved = in_layers(12);
    let (scheme, problem) = (&resolved.scheme, &resolved.problem);
    let device = Interpreted::new();
    let (plan, model) = plan_of(&device, scheme, problem, "torre(D = 1, TH = 2)");
    let towers = &compiled_for_window(library, scheme, plan, &model);
    let case = Resumed {
        scheme,
        problem,
        towers,
        how: InFlight {
            blocks: 2,
            group: 5,
            ahead: 1,
            spread: true,
            held: HeldPlanes::All,
        },
    };
    let folder = tempfile::tempdir().expect("a folder");
    let whole = case.run(By::Slabs, folder.path(), None);
    let of_pass = whole.expect("the bits of the reference") / (problem.steps / PASS);
    // The last device of several has its first pass last.
    let parts = [
        (By::Turns(2), By::Turns(3), 3, PASS),
        (By::Turns(3), By::Turns(1), 3, 2 * PASS),
        (By::Turns(2), By::SlabsInTurns(2), 4, PASS),
        (By::Slabs, By::Turns(2), 2 * of_pass + 3, 2 * PASS),
    ];
    for (first, then, launches, step) in parts {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let killed = case.run(first, path, Some(launches));
        let error = killed.expect_err("it gave up");
        assert!(error.contains("this many are enough"), "{error}");
        let found = Earlier::open(path, &case.identity());
        assert_eq!(found.expect("a checkpoint").step(), step, "{first:?}");
        let rest = case.run(then, path, None);
        let rest = rest.unwrap_or_else(|error| panic!("{first:?} {then:?}: {error}"));
        assert!(rest > 0);
    }
}
