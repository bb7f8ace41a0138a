//! Where a calculation goes: to the processor or to a GPU.

use crate::args::{BackendArg, Holding, How, WindowArg};
use crate::device;
use crate::devices::Devices;
use crate::failure::Failure;
use crate::gap::{self, Gap};
use crate::rates::{Expected, LearnedRates, Rates};
use crate::render::Voice;
use crate::report;
use crate::window::{self, Held, Question};
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::cost::{Choice, gcells};
use torre_compiler::resolve::Resolved;
use torre_grammar::source::Source;
use torre_runtime::gpu::{CudaDevice, CudaPeers, Device, DeviceModel, resident_bytes};
use torre_runtime::plan::gpu::DevicePlan;
use torre_runtime::program::TargetChoice;
use torre_runtime::rates::Computer;
use torre_runtime::simulation::SetupError;

/// Seconds that a run on a GPU takes to begin, beyond one on the processor: the driver and the device are opened, its
/// memory is measured, and code is compiled twice, to PTX and from there by the driver.
const START: f64 = 2.0;

/// The targets that `--backend` leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Gpu,
    Processor,
    /// The target that is expected to end first.
    Either,
}

/// A GPU that computes, and how.
pub struct OnGpu {
    /// One, or several that compute together.
    pub devices: CudaPeers,
    pub model: DeviceModel,
    pub plan: DevicePlan,
    /// All members of the family that it runs, best first.
    pub choices: Vec<Choice>,
    /// `None`: it holds all values, with one time block at a time.
    pub held: Option<Held>,
    /// Between planes, if that was decided.
    pub gap: Option<Gap>,
    pub learned_rates: LearnedRates,
    pub expected: Expected,
}

impl OnGpu {
    /// The first one.
    pub fn device(&self) -> &CudaDevice {
        &self.devices.devices()[0]
    }

    /// Decides how far planes lie from each other, and may time towers for that, before a share of the run.
    pub fn space_planes(
        &mut self,
        asked: &Asked<'_>,
        share: f64,
        voice: &Voice,
    ) -> Result<(), Failure> {
        let scheme = &asked.resolved.scheme;
        let (held, rates) = (self.held.as_ref(), asked.rates);
        let subject = gap::Subject::new(scheme, &self.plan, held, &self.model, rates);
        let Some(subject) = subject else {
            return Ok(());
        };
        let needed = match held {
            Some(Held::Stripes(stripes)) => stripes.bytes,
            _ => asked.device_bytes(self),
        };
        let free = device::free_memory(&self.devices, asked.how.numbers())?;
        let free = asked.holding.memory.map_or(free, |most| most.min(free));
        let memory = gap::DeviceMemory {
            needed,
            free: free.saturating_sub(needed),
        };
        let seconds = share * asked.work() / self.expected.rate();
        let gap = subject.choose(self.device(), memory, seconds, voice)?;
        if let (Some(gap), None) = (&gap, held) {
            let arranged = self.plan.arrange_with_gap(scheme, gap.rows);
            arranged.map_err(SetupError::from)?;
        }
        self.gap = gap;
        Ok(())
    }
}

/// A calculation and the options for it.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub how: &'a How,
    pub schedule: &'a str,
    pub source: &'a Source,
    pub resolved: &'a Resolved,
    pub holding: &'a Holding,
    /// Steps between checkpoints.
    pub every: Option<u64>,
    pub rates: &'a Rates,
}

impl How {
    /// The number of the GPU, where one was named, for a command that takes one.
    pub fn device(&self) -> Result<Option<usize>, Failure> {
        self.devices.as_ref().map(|d| d.one()).transpose()
    }

    /// The numbers of the GPUs: the first one if none was named.
    pub fn numbers(&self) -> &[usize] {
        self.devices.as_ref().map_or(&[0], |d| d.numbers())
    }

    /// Where the calculation may go. A user who names a device, a target or a number of threads has chosen.
    pub fn target(&self, threads: Option<u32>) -> Result<Target, Failure> {
        match (self.backend, &self.devices) {
            (BackendArg::Cuda, _) | (BackendArg::Auto, Some(_)) => Ok(Target::Gpu),
            (_, Some(_)) => Err(Failure::usage(
                "`--devices` goes with `--backend cuda` or `auto`",
            )),
            (BackendArg::Auto, None) if device::is_gpu(&self.target) => Ok(Target::Gpu),
            (BackendArg::Auto, None) if threads.is_none() && self.target == TargetChoice::Host => {
                Ok(Target::Either)
            }
            _ => Ok(Target::Processor),
        }
    }
}

impl Asked<'_> {
    /// The GPU that was asked for.
    pub fn open(&self) -> Result<OnGpu, Failure> {
        self.opened(self.how.numbers())
    }

    fn opened(&self, numbers: &[usize]) -> Result<OnGpu, Failure> {
        let (devices, mut model) = device::all(numbers, &self.how.target)?;
        let computer = Computer::of_devices(&model.facts, numbers.len());
        let computer = Some(computer).filter(|_| self.rates.is_learning());
        let learned_rates = self.rates.learned_rates(self.resolved, computer);
        let (source, resolved) = (self.source, self.resolved);
        let (mut plan, choices) =
            device::plan(self.schedule, source, resolved, &model, &learned_rates)?;
        let free = device::free_memory(&devices, numbers)?;
        let Resolved {
            scheme, problem, ..
        } = self.resolved;
        let needed = resident_bytes(scheme, problem, &plan.kernels);
        let moves = match &self.holding.window {
            WindowArg::None | WindowArg::Device => false,
            WindowArg::Auto => needed > self.holding.memory.map_or(free, |most| most.min(free)),
            WindowArg::Host | WindowArg::Slabs { .. } | WindowArg::Folder(_) => true,
        };
        if moves {
            model.link = devices.link_rate()?;
        }
        let question = Question {
            holding: self.holding,
            schedule: self.schedule,
            resolved: self.resolved,
            model: &model,
            devices: numbers.len(),
            share: self.how.devices.as_ref().map_or(1.0, Devices::share),
            free,
            every: self.every,
        };
        let held = question.decide(&mut plan, &choices)?;
        Ok(OnGpu {
            expected: window::expected(held.as_ref(), &learned_rates, &plan, &choices),
            learned_rates,
            devices,
            model,
            plan,
            choices,
            held,
            gap: None,
        })
    }

    /// The first GPU, if there is one and the run is expected to end earlier on it than on the processor, which does
    /// `here` cell-steps per second. Reports the choice where there was one.
    pub fn faster(&self, here: f64, voice: &Voice) -> Option<OnGpu> {
        let work = self.work();
        // A driver takes its time to open, so that short runs do not ask for one.
        if work / here <= START || !matches!(CudaDevice::count(), Ok((1.., _))) {
            return None;
        }
        let not = |why: &str| voice.note(format_args!("the GPU is not used: {why}"));
        if let Err(error) = Library::open() {
            not(&format!("its kernels need LLVM; {error}"));
            return None;
        }
        let gpu = match self.opened(&[0]) {
            Ok(gpu) => gpu,
            Err(failure) => {
                let first = failure.diagnostics.0.first();
                not(first.map_or("it cannot be opened", |d| &d.message));
                return None;
            }
        };
        let case = Case {
            work,
            here,
            there: gpu.expected.rate(),
            needed: self.device_bytes(&gpu),
            free: gpu.device().free_memory().unwrap_or(0),
        };
        let (takes, note) = case.decide(&gpu.model.facts.name);
        voice.note(note);
        takes.then_some(gpu)
    }

    /// Cell-steps of the run.
    fn work(&self) -> f64 {
        let scheme = &self.resolved.scheme;
        let cells = scheme.grid.cell_count();
        cells * self.resolved.problem.steps as f64
    }

    fn device_bytes(&self, gpu: &OnGpu) -> u64 {
        let Resolved {
            scheme, problem, ..
        } = self.resolved;
        resident_bytes(scheme, problem, &gpu.plan.kernels)
    }
}

/// The data for the choice between the processor and a GPU.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Cell-steps.
    work: f64,
    /// Cell-steps per second that are expected on the processor.
    here: f64,
    /// The same on the GPU.
    there: f64,
    /// Bytes of the GPU's memory that the run needs.
    needed: u64,
    /// Bytes that are free.
    free: u64,
}

impl Case {
    /// Whether the GPU is taken, and the message.
    fn decide(&self, name: &str) -> (bool, String) {
        if self.needed > self.free {
            let [needed, free] = [self.needed, self.free].map(report::bytes);
            let why =
                format!("the run needs {needed} of the memory of {name}, and {free} are free");
            return (false, format!("the processor computes: {why}"));
        }
        let [on_gpu, on_processor] = [self.there, self.here].map(gcells);
        match START + self.work / self.there < self.work / self.here {
            true => (
                true,
                format!(
                    "{name} computes: {on_gpu} Gcells/s are expected there, {on_processor} on the processor, where \
                     `--backend llvm` stays"
                ),
            ),
            false => (
                false,
                format!(
                    "the processor computes: {on_processor} Gcells/s are expected there, {on_gpu} on {name}, which \
                     `--backend cuda` takes"
                ),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn target(options: &str) -> Option<Target> {
        let words = ["torre", "run", "a.torre"].into_iter();
        let cli = Cli::try_parse_from(words.chain(options.split_whitespace())).ok()?;
        let Command::Run(run) = cli.command else {
            return None;
        };
        run.how.target(run.threads.threads).ok()
    }

    #[test]
    fn who_names_a_device_threads_or_a_back_end_has_chosen() {
        for (options, expected) in [
            ("", Some(Target::Either)),
            ("--threads 2", Some(Target::Processor)),
            ("--target x86-64-v3", Some(Target::Processor)),
            ("--target sm_90", Some(Target::Gpu)),
            ("--backend llvm", Some(Target::Processor)),
            ("--backend reference", Some(Target::Processor)),
            ("--backend cuda", Some(Target::Gpu)),
            ("--backend cuda --threads 2", Some(Target::Gpu)),
            ("--devices 1", Some(Target::Gpu)),
            ("--devices 0,1", Some(Target::Gpu)),
            ("--backend llvm --devices 0", None),
        ] {
            assert_eq!(target(options), expected, "{options}");
        }
    }

    #[test]
    fn a_gpu_is_taken_where_the_run_ends_earlier_on_it() {
        let case = Case {
            work: 2e9,
            here: 0.5e9,
            there: 100e9,
            needed: 5,
            free: 10,
        };
        let (takes, note) = case.decide("H200");
        assert!(takes);
        assert_eq!(
            note,
            "H200 computes: 100 Gcells/s are expected there, 0.500 on the processor, where `--backend llvm` stays"
        );
        for other in [
            // It would end before the GPU has begun.
            Case {
                work: 0.9e9,
                ..case
            },
            // A slower GPU is none for long runs either.
            Case {
                work: 1e12,
                there: 0.4e9,
                ..case
            },
            Case { needed: 11, ..case },
        ] {
            let (takes, note) = other.decide("H200");
            assert!(!takes, "{other:?}");
            assert!(note.starts_with("the processor computes: "), "{note}");
        }
    }
}
