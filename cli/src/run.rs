//! `torre run`: compile and run.

mod beside;
mod clock;
mod devices;
mod disks;
mod ended;
mod executor;
mod files;
mod folders;
mod learning;
mod memory;
mod on_device;
mod options;
mod planned;
mod reference;
mod timeline;
mod tuning;

use crate::args;
use crate::failure::Failure;
use crate::input::Input;
use crate::interrupt;
use crate::machine;
use crate::progress::{self, Extent};
use crate::rates::Rates;
use crate::render::Voice;
use crate::report::Report;
use crate::stability::Subject;
use crate::write;
use clock::Clock;
use executor::{Executor, OnProcessor, Storage};
use folders::Folders;
use std::time::Duration;
use torre_compiler::analysis::still_drives;
use torre_compiler::cost::Blocking;
use torre_compiler::incident;
use torre_compiler::kernel::KernelSet;
use torre_compiler::kernel::layerwise_kernels;
use torre_compiler::layout::Layout;
use torre_compiler::problem::Problem;
use torre_compiler::resolve::codes::{INCIDENT, VANISHED};
use torre_compiler::scheme::{Coef, Precision, Scheme};
use torre_grammar::diag::Diagnostic;
use torre_runtime::cache::{Cache, Origin};
use torre_runtime::files::LoadedFiles;
use torre_runtime::host::{Calculation, Compiled, Execution, TinyCoef, contention};
use torre_runtime::output::checkpoint::Identity;
use torre_runtime::program::{self, Backend, BackendChoice, TargetChoice};
use torre_runtime::run::{
    Company, Literal, Outcome, Records, SeriesRecords, Spectra, Watch, checkpoint, execute,
};
use torre_runtime::simulation::{
    Progress, RunError, SetupError, Simulation, Value, cell_stages_per_step,
};

pub fn run(args: &args::Run, voice: &Voice) -> Result<(), Failure> {
    interrupt::end_tidily();
    write::outlive_readers();
    if args.holding.folder().is_some() {
        interrupt::end_at_faults_of_files();
    }
    options::check(args)?;
    timeline::format(args)?;
    let mut clock = Clock::start();
    let input = match args.holding.folder() {
        Some(_) => Input::read_of_any_size(&args.subject, voice)?,
        None => Input::read(&args.subject, voice)?,
    };
    clock.reading = clock.total();
    match input.resolved.scheme.precision {
        Precision::F32 => Run::<f32>::new(args, voice, &input, clock)?.run(),
        Precision::F64 => Run::<f64>::new(args, voice, &input, clock)?.run(),
    }
}

/// Why towers do not run the sources and probes of a problem, found when they are attached.
const TOO_MUCH: &str = "what sources and probes do is too much for the tables of a time block";

/// The calculation with which `--verify` compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// By the reference: checks small runs from their start.
    Reference,
    /// By compiled code on the processor: checks runs on a GPU, for which the interpreter takes too long.
    Processor,
    /// By the interpreter: checks large runs, and resumed ones, which the reference cannot enter in the middle.
    Interpreter,
}

struct Run<'a, T> {
    clock: Clock,
    executor: Executor,
    args: &'a args::Run,
    voice: &'a Voice,
    input: &'a Input,
    scheme: &'a Scheme,
    problem: &'a Problem,
    rates: Rates,
    threads: usize,
    /// Where the machine was measured.
    blocking: Option<Blocking>,
    check: Option<Check>,
    /// The step at which it begins: that of its checkpoint, as far as this can be read. Whether it is one of this
    /// calculation is found out later.
    start: u64,
    precision: std::marker::PhantomData<T>,
}

/// The data that are there before the first step.
struct Prepared<'a> {
    set: &'a KernelSet,
    files: &'a LoadedFiles,
    folders: Folders,
    identity: Identity,
}

/// How kernels were made, for the report.
struct Made {
    backend: String,
    code: String,
    compiling: Duration,
    cached: bool,
    field_bytes: u64,
    /// Bytes of values of a thread on a GPU that registers do not hold.
    spilled: u64,
    /// The names of the processor or of the devices that compute.
    devices: Vec<String>,
    /// The schedule is executed as it was planned, on code that the model knows.
    as_planned: bool,
}

impl<'a, T: Value> Run<'a, T> {
    fn run(&self) -> Result<(), Failure> {
        let set = match &self.executor {
            Executor::Reference => layerwise_kernels(self.scheme, self.whole_layout()?),
            Executor::Gpu(gpu) => gpu.plan.kernels.clone(),
            Executor::Processor(processor) => match &processor.storage {
                Storage::Memory { others, .. } => {
                    let others = others.iter().map(|other| &other.plan.kernels);
                    others.fold(processor.plan.kernels.clone(), KernelSet::and)
                }
                Storage::Files(_) => {
                    let layout = Layout::for_files(self.scheme).map_err(SetupError::from)?;
                    layerwise_kernels(self.scheme, layout)
                }
            },
        };
        self.check_memory()?;
        self.check_files()?;
        self.check_disks(&set.layout)?;
        self.check_beside()?;
        let claims = self.claim()?;
        let files = &LoadedFiles::load(&self.input.world, self.scheme)?;
        if let Some(warning) =
            Subject::new(self.input, files).announce(self.voice, self.args.unstable)?
        {
            self.voice.show(&warning.into());
        }
        self.check_conditions(files)?;
        self.check_drives(files)?;
        // Other back ends find out when they begin.
        if matches!(self.executor, Executor::Reference) {
            incident::check(self.scheme, self.problem, files)
                .map_err(|refusal| SetupError::incident(self.scheme, &refusal))?;
        }
        let identity = checkpoint::identity::<T>(self.scheme, self.problem, files);
        let prepared = Prepared {
            set: &set,
            files,
            folders: self.folders(claims, files, &identity)?,
            identity,
        };
        match &self.executor {
            Executor::Reference => self.run_reference(&prepared),
            Executor::Processor(processor) => self.run_compiled(&prepared, processor),
            Executor::Gpu(gpu) => self.run_on_device(&prepared, gpu),
        }
    }

    /// Looks at the drives of plane waves in media of files, which the program alone does not tell.
    fn check_drives(&self, files: &LoadedFiles) -> Result<(), Failure> {
        if !self.scheme.coefs.iter().any(Coef::is_of_file) {
            return Ok(());
        }
        let silences = &self.input.resolved.silences;
        for drive in still_drives(self.scheme, self.problem, files) {
            if drive.is_all() {
                let [message, remedy] = drive.describe(self.problem);
                return Err(Diagnostic::error(INCIDENT, message).hint(remedy).into());
            }
            if let Some(warning) = silences.still_drive(&drive, self.problem) {
                self.voice.show(&warning.into());
            }
        }
        Ok(())
    }

    fn run_compiled(
        &self,
        prepared: &Prepared<'_>,
        processor: &OnProcessor,
    ) -> Result<(), Failure> {
        let &Prepared { set, files, .. } = prepared;
        let target = &self.args.how.target;
        let cache = Cache::of_user();
        let compiled = program::compile(self.scheme, set, processor.backend, target, &cache)?;
        if let Some(missing) = &compiled.fallback {
            self.voice.note(format_args!(
                "LLVM is not there, so `{}` is used, which is slower; {missing}",
                compiled.backend
            ));
        }
        let tuned = match processor.storage {
            Storage::Memory { tuned, .. } => tuned,
            Storage::Files(sweep) => return self.run_sweep(prepared, &compiled, sweep.plan),
        };
        let mut simulation =
            self.compiled(set, &*compiled.code, files, &processor.plan.execution)?;
        self.warn_of_tiny(simulation.calculation.tiny.as_ref());
        prepared.folders.resume(&mut simulation.calculation)?;
        // The model knows the rates of LLVM's code.
        if compiled.backend == Backend::Llvm {
            simulation.tuning = self.tuning(tuned, simulation.calculation.steps());
        }
        let made = Made {
            backend: compiled.backend.to_string(),
            code: compiled.code.description(),
            compiling: compiled.time,
            cached: compiled.origin == Some(Origin::Cached),
            field_bytes: simulation.calculation.memory_bytes(),
            spilled: 0,
            devices: vec![machine::cpu_name()],
            as_planned: compiled.backend == Backend::Llvm,
        };
        self.run_checked(&mut simulation, prepared, made)
    }

    /// Runs beside the calculation with which it is compared.
    fn run_checked(
        &self,
        simulation: &mut dyn Simulation<T>,
        prepared: &Prepared<'_>,
        made: Made,
    ) -> Result<(), Failure> {
        let &Prepared { set, files, .. } = prepared;
        let backend = match self.check {
            None => return self.execute(simulation, prepared, None, made),
            Some(Check::Reference) => {
                let mut check = Literal::<T>::new(self.scheme, self.problem, files);
                return self.execute(simulation, prepared, Some(&mut check), made);
            }
            Some(Check::Interpreter) => BackendChoice::Only(Backend::Interp),
            Some(Check::Processor) => BackendChoice::Auto,
        };
        // Pyramids and files have kernels for other layouts.
        let layout = self.whole_layout()?;
        let set = match set.layout == layout {
            true => set,
            false => &layerwise_kernels(self.scheme, layout),
        };
        let code = program::compile(
            self.scheme,
            set,
            backend,
            &TargetChoice::Host,
            &Cache::off(),
        )?;
        let mut check = self.compiled(set, &*code.code, files, &Execution::Layerwise)?;
        prepared.folders.resume(&mut check.calculation)?;
        self.execute(simulation, prepared, Some(&mut check), made)
    }

    /// Where values lie that the processor has in memory, all of them.
    fn whole_layout(&self) -> Result<Layout, SetupError> {
        Layout::new(self.scheme).map_err(SetupError::from)
    }

    /// Warns of a coefficient that the precision of the scheme does not have.
    fn warn_of_tiny(&self, found: Option<&TinyCoef>) {
        let silences = &self.input.resolved.silences;
        let found = found.filter(|_| !silences.of_blocks(VANISHED));
        let Some(TinyCoef { name, largest }) = found else {
            return;
        };
        let precision = self.scheme.precision;
        let is = match precision.round(*largest) {
            0.0 => "0".to_owned(),
            rounded => format!("{rounded:.3e}"),
        };
        let message = format!(
            "the largest value of the coefficient `{name}`, {largest:e}, is {is} in {precision}"
        );
        let warning = Diagnostic::warning(VANISHED, message);
        let warning = warning.hint("choose other units or `--precision f64`");
        self.voice.show(&warning.into());
    }

    fn compiled<'b>(
        &'b self,
        set: &'b KernelSet,
        code: &'b dyn torre_compiler::kernel::Code,
        files: &'b LoadedFiles,
        execution: &'b Execution,
    ) -> Result<Compiled<'b, T>, SetupError> {
        let mut calculation = Calculation::new(self.scheme, self.problem, files, self.threads)?;
        calculation.blocking = self.blocking.unwrap_or(calculation.blocking);
        Ok(Compiled {
            calculation,
            set,
            code,
            execution,
            threads: self.threads,
            tuning: None,
        })
    }

    fn execute(
        &self,
        simulation: &mut dyn Simulation<T>,
        prepared: &Prepared<'_>,
        check: Option<&mut dyn Simulation<T>>,
        made: Made,
    ) -> Result<(), Failure> {
        let folders = &prepared.folders;
        let series = self.series(prepared)?;
        let spectra = self.spectra(prepared)?;
        // All of it was read.
        folders.earlier.take();
        self.begin(prepared)?;
        let mut watch = Watch::default();
        if !self.args.allow_nonfinite {
            watch.run = Progress::guarded();
        }
        let start = simulation.steps();
        let extent = Extent {
            cells: self.cells(),
            steps: self.problem.steps - start,
            cell_stages: cell_stages_per_step(self.scheme),
            check: check.is_some(),
        };
        let company = Company {
            outputs: folders.outputs.as_ref(),
            checkpoints: folders.checkpoints.as_ref(),
            records: Records {
                series: series.as_ref(),
                spectra: spectra.as_ref(),
            },
            threads: self.threads,
        };
        let before = self.clock.total();
        let (outcome, waiting) = progress::show(self.voice, &extent, &watch, || {
            contention::during_runs(|| execute(simulation, check, company, &watch))
        });
        if simulation.is_unwatched() {
            self.voice.note(
                "the GPU had no memory to look at values while steps ran: infinite values and NaN are found at the \
                 end",
            );
        }
        let outcome = outcome?;
        let blown_up = outcome.blow_up.is_some();
        // Not all operations may have ended.
        let timeline = simulation.timeline().filter(|_| !blown_up);
        let preparing = before - self.clock.reading - self.clock.planning - made.compiling;
        let last = outcome.blow_up.as_ref().map(|found| found.step);
        let steps_run = last.unwrap_or(self.problem.steps).saturating_sub(start);
        let tuning = simulation.tuning();
        let tuning = tuning.as_ref();
        let record = self.learn(&made, &outcome, steps_run, &waiting, tuning);
        let report = self.report(made, &outcome, steps_run, folders, tuning);
        let report = Report {
            preparing,
            total: self.clock.total(),
            learned: Self::learned_json(report.learned, record),
            timeline: timeline.as_ref().map(timeline::json),
            ..report
        };
        if self.publish(&report.json(), folders)? && !blown_up {
            write::result(&report.text())?;
            if let Some(timeline) = &timeline {
                write::result(&timeline::text(timeline))?;
            }
        }
        if let Some(found) = outcome.blow_up {
            return Err(RunError::BlowUp(found).into());
        }
        if steps_run > 0 && !self.cells_are_set(&outcome) {
            let why = match self.problem.incidents.is_empty() {
                true => format!(
                    "no `init` and no `source` reaches a value, or they are below {:.1e} and count as 0; coordinates \
                     have the unit of the cell size",
                    self.scheme.precision.flush_threshold()
                ),
                false => "no incident wave has reached its box in these steps, and no `init` and no `source` reaches a \
                          value"
                    .to_owned(),
            };
            self.voice
                .note(format_args!("all values are 0 at the end: {why}"));
        }
        timeline::write(self.args, timeline.as_ref())?;
        if let Some(error) = outcome.unsaved.into_error() {
            return Err(error.into());
        }
        let lost = outcome.counts.into_iter().find_map(|count| count.first);
        match lost {
            None => Ok(()),
            Some(found) if self.args.allow_nonfinite => Err(Failure::allowed_values(&found)),
            Some(found) => Err(RunError::BlowUp(found).into()),
        }
    }

    /// Whether any value is not 0 in the end.
    fn cells_are_set(&self, outcome: &Outcome) -> bool {
        let mut counts = outcome.counts.iter();
        counts.any(|count| count.largest != 0.0 || count.nan > 0 || count.infinite > 0)
    }

    /// Whether records of many steps will be read: from results or from a state, which files have, too.
    fn keeps_records(&self, folders: &Folders) -> bool {
        let kept = folders.checkpoints.is_some() || self.args.holding.folder().is_some();
        kept || folders.outputs.is_some()
    }

    /// Where spectra are summed, if they will be read.
    fn spectra(&self, prepared: &Prepared<'_>) -> Result<Option<Spectra>, Failure> {
        let folders = &prepared.folders;
        if !self.keeps_records(folders) || !Spectra::has(self.problem) {
            return Ok(None);
        }
        let earlier = folders.earlier.borrow();
        let before = earlier
            .as_ref()
            .map(|earlier| earlier.spectra(self.problem));
        Ok(Some(Spectra::new(self.problem, before.transpose()?)))
    }

    /// Where reductions go, if they will be read.
    fn series<'b>(&self, prepared: &'b Prepared<'_>) -> Result<Option<SeriesRecords<'b>>, Failure> {
        let folders = &prepared.folders;
        if !self.keeps_records(folders) || !SeriesRecords::has(self.problem) {
            return Ok(None);
        }
        let earlier = folders.earlier.borrow();
        let before = earlier.as_ref().map(|earlier| earlier.series(self.problem));
        let before = before.transpose()?;
        Ok(Some(SeriesRecords::new(
            self.problem,
            prepared.files,
            before,
        )))
    }

    fn cells(&self) -> u64 {
        let cells = self.scheme.grid.cells.0;
        cells.iter().map(|&n| n as u64).product()
    }
}
