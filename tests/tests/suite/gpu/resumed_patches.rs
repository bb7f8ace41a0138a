//! Runs by pyramids whose tiles have states of layers: checkpoints in the middle, which any other way of running goes
//! on from, and runs that are killed.

use super::windows::with_layers;
use super::*;
use std::collections::BTreeSet;
use std::path::Path;
use torre_compiler::backend::interp::Interp;
use torre_compiler::kernel::{KernelSet, RowKernel, UpdateSet};
use torre_compiler::layout::Layout;
use torre_compiler::scheme::ZoneSet;
use torre_compiler::testing::random_tiling;
use torre_compiler::tile::lower;
use torre_runtime::files::LoadedFiles;
use torre_runtime::gpu::CompiledBlocks;
use torre_runtime::host::{Compiled, Execution};
use torre_runtime::output::checkpoint::Identity;
use torre_runtime::plan::gpu::TimeBlockPlan;
use torre_runtime::run::checkpoint::Earlier;
use torre_runtime::run::{Checkpoints, checkpoint, verify};
use torre_runtime::simulation::{Progress, RunError, Simulation};

/// How a part of a run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// Time blocks of pyramids, each of which is a launch.
    Pyramids(&'static str),
    /// Tiles that stay on the chip from one time block to the next.
    Staying(&'static str),
    /// Stage by stage, on a GPU.
    Stages,
    /// On the processor, stage by stage and in tiles.
    Host,
    HostTiles,
}

struct Case {
    scheme: Scheme,
    problem: Problem,
}

impl Case {
    fn new(text: &str) -> Case {
        let resolved = with_layers(text);
        let (scheme, problem) = (resolved.scheme, resolved.problem);
        assert!(!scheme.states.is_empty());
        Case { scheme, problem }
    }

    fn identity(&self) -> Identity {
        checkpoint::identity::<f32>(&self.scheme, &self.problem, &LoadedFiles::default())
    }

    fn calculation<'a>(&'a self, layout: &Layout, folder: &Path) -> Calculation<'a, f32> {
        let (scheme, problem) = (&self.scheme, &self.problem);
        let calculation = Calculation::arranged(layout.clone(), scheme, problem, &NoFiles, 1);
        let mut calculation = calculation.expect("a problem of finite values");
        if folder.join("state.checkpoint").is_file() {
            let earlier = Earlier::open(folder, &self.identity()).expect("a checkpoint");
            let resumed = earlier.resume(&mut calculation);
            resumed.expect("a checkpoint of this run");
        }
        calculation
    }

    /// Runs to a step from the checkpoint of a folder, if there is one, with checkpoints after each multiple of `every`
    /// steps, and compares all kept values with the reference. The device gives up after `last` launches. Gives the
    /// number of its launches.
    fn run(
        &self,
        by: By,
        until: u64,
        every: u64,
        folder: &Path,
        last: Option<u64>,
    ) -> Result<u64, String> {
        let part = Case {
            scheme: self.scheme.clone(),
            problem: Problem {
                steps: until,
                ..self.problem.clone()
            },
        };
        let device = Interpreted::new();
        if let Some(last) = last {
            device.fail_after(last);
        }
        match by {
            By::Host | By::HostTiles => part.on_host(by, every, folder)?,
            _ => part.on_device(&device, by, every, folder)?,
        }
        Ok(device.launches())
    }

    fn on_device(
        &self,
        device: &Interpreted,
        by: By,
        every: u64,
        folder: &Path,
    ) -> Result<(), String> {
        let library = library().expect("a library that was found before");
        let scheme = &self.scheme;
        let set = code::kernels(scheme).expect("a size that can be addressed");
        let gpu = code::gpu_of(device).expect("a GPU that is known");
        let shape = Shape::of(scheme);
        let ptx = code::ptx(library, scheme, &set, shape, gpu).expect("valid IR");
        let program = DeviceProgram {
            set: &set,
            ptx: &ptx,
            shape,
        };
        let calculation = self.calculation(&set.layout, folder);
        let run = OnDevice::new(calculation, &NoFiles, device, program);
        let mut run = run.map_err(|error| error.to_string())?;
        if let Some(blocks) = self.blocks(library, device, by) {
            run = run.by(&blocks).map_err(|error| error.to_string())?;
            assert!(run.without_towers().is_none(), "{:?}", run.without_towers());
        }
        self.to_end(&mut run, every, folder)
    }

    /// The kernels of pyramids, if a part goes by them.
    fn blocks(&self, library: &Library, device: &Interpreted, by: By) -> Option<CompiledBlocks> {
        let (scheme, problem) = (&self.scheme, &self.problem);
        let (By::Pyramids(schedule) | By::Staying(schedule)) = by else {
            return None;
        };
        let (mut plan, model) = plan_of(device, scheme, problem, schedule);
        let Some(TimeBlockPlan::Patches(patches)) = &mut plan.time_blocks else {
            panic!("pyramids");
        };
        let program = &mut patches.program;
        assert!(program.rooms.count > 0);
        match by {
            By::Staying(_) => program.stay(&plan.kernels.layout),
            _ => program.stays = None,
        }
        assert_eq!(program.stays.is_some(), matches!(by, By::Staying(_)));
        let blocks = plan.compile_blocks(library, scheme, &model);
        blocks.expect("valid IR")
    }

    fn on_host(&self, by: By, every: u64, folder: &Path) -> Result<(), String> {
        let scheme = &self.scheme;
        let phases = 0..scheme.phases();
        let all = phases.flat_map(|phase| scheme.stage_ids().map(move |stage| (phase, stage)));
        let kernels = all.flat_map(|(phase, stage)| {
            let count = scheme.stages[stage.index()].updates.len();
            let singles = (0..count).map(|i| UpdateSet(1 << i));
            let sets: BTreeSet<UpdateSet> = singles.chain([UpdateSet::all(count)]).collect();
            sets.into_iter().map(move |updates| RowKernel {
                stage,
                phase,
                updates,
                zones: ZoneSet::default(),
            })
        });
        let layout = Layout::new(scheme).expect("a size that can be addressed");
        let calculation = self.calculation(&layout, folder);
        let set = KernelSet::new(scheme, layout, kernels.collect::<Vec<_>>());
        let frame = Frame::new(scheme, &cones(scheme));
        let tiling = random_tiling(&mut Rng::new(5), scheme, &frame);
        let program = lower(scheme, &frame, &tiling).expect("fitting faces are legal");
        let mut run = Compiled {
            calculation,
            set: &set,
            code: &Interp::new(scheme, &set),
            execution: &match by {
                By::HostTiles => Execution::Tiles(program),
                _ => Execution::Layerwise,
            },
            threads: 2,
            tuning: None,
        };
        self.to_end(&mut run, every, folder)
    }

    fn to_end(
        &self,
        run: &mut dyn Simulation<f32>,
        every: u64,
        folder: &Path,
    ) -> Result<(), String> {
        let checkpoints = Checkpoints::new(folder, every, self.identity());
        let company = Company {
            checkpoints: Some(&checkpoints),
            threads: 1,
            ..Company::default()
        };
        let done = execute(run, None, company, &Watch::default());
        done.map_err(|error: RunError| format!("{error:?}"))?;
        let mut check = Literal::<f32>::new(&self.scheme, &self.problem, &NoFiles);
        let checked = check.run(self.problem.steps, &Progress::default());
        checked.map_err(|error| format!("{error:?}"))?;
        verify::compare(run, &check).map_err(|difference| difference.to_string())
    }
}

/// Layers on three sides, whose states cells of several tiles have, and a probe in one.
fn layers() -> Case {
    Case::new(
        "use std::maxwell::maxwell_te
problem p {
  scheme maxwell_te
  domain 30 x 52
  boundary x: cpml(5), y: pec | cpml(4)
  source Hz at (12, 40) += exp(-((t - 3)/2)^2)
  probe Hz at (2, 49)
  probe E.x at (20, 30)
  steps 24
}
",
    )
}

/// A body with a state of its own, within a ring.
fn body() -> Case {
    Case::new(
        "def late(f, part) {
  state kept in part
  kept@next = 0.9 * kept + 0.1 * f
  f - kept@next
}
scheme slow {
  axes x, y
  region body = x > 10 and x < 26 and y > 5 and y < 50
  field T : scalar on nodes
  step {
    allow W0301
    T += 0.1 * (d2(T, x) + d2(T, y)) + 0.01 * late(T, body)
  }
}
problem p {
  scheme slow
  domain 30 x 56
  boundary x: periodic, y: zero
  init T = sin(0.3 * x * y)
  probe T at (12, 40)
  steps 24
}
",
    )
}

const LOW: &str = "pyramid(B = 10, TH = 2, Z = 30)";
const HIGH: &str = "pyramid(B = 12, TH = 4, Z = 36)";

/// Pyramids of other sizes, tiles that stay, and the processor go on from each other's checkpoints, in the middle of a
/// time block, too.
#[test]
fn checkpoints_of_pyramids_go_on_anywhere() {
    if library().is_none() {
        return;
    }
    for case in [layers(), body()] {
        let folder = tempfile::tempdir().expect("a folder");
        let parts = [
            (By::Pyramids(HIGH), 6),
            (By::HostTiles, 7),
            (By::Staying(LOW), 12),
            (By::Host, 13),
            (By::Pyramids(LOW), 17),
            (By::Stages, 18),
            (By::Staying(HIGH), 23),
            (By::HostTiles, 24),
        ];
        for (by, until) in parts {
            let done = case.run(by, until, 100, folder.path(), None);
            assert!(done.is_ok(), "{by:?} to {until}: {}", done.unwrap_err());
            let found = Earlier::open(folder.path(), &case.identity());
            assert_eq!(found.expect("a checkpoint").step(), until);
        }
    }
}

/// A run that is killed goes on from its last checkpoint, by pyramids or otherwise.
#[test]
fn pyramids_that_were_killed_go_on() {
    if library().is_none() {
        return;
    }
    for case in [layers(), body()] {
        for by in [By::Pyramids(HIGH), By::Staying(LOW)] {
            let folder = tempfile::tempdir().expect("a folder");
            let whole = case.run(by, 24, 4, folder.path(), None);
            let whole = whole.expect("the bits of the reference");
            for (part, then) in [(3, by), (3, By::HostTiles), (4, By::Stages)] {
                let folder = tempfile::tempdir().expect("a folder");
                let killed = case.run(by, 24, 4, folder.path(), Some(whole * part / 5));
                let error = killed.expect_err("it gave up");
                assert!(error.contains("this many are enough"), "{error}");
                let found = Earlier::open(folder.path(), &case.identity());
                let found = found.expect("a checkpoint").step();
                assert!((4..24).contains(&found), "{by:?} {part}: {found}");
                let rest = case.run(then, 24, 4, folder.path(), None);
                assert!(rest.is_ok(), "{by:?}, {then:?}: {}", rest.unwrap_err());
                assert!(rest != Ok(whole), "{by:?}, {then:?}: all steps ran again");
            }
        }
    }
}
