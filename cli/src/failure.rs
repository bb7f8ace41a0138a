//! How a command fails: the message, and the exit status.

use crate::codes;
use torre_compiler::backend::llvm::library as llvm;
use torre_compiler::resolve;
use torre_grammar::diag::{Diagnostic, Diagnostics};
use torre_runtime::gpu::{DeviceError, TimeBlockError};
use torre_runtime::output::checkpoint::CheckpointFault;
use torre_runtime::output::{Attempt, Cause, FileError};
use torre_runtime::program::{Backend, CompileError};
use torre_runtime::simulation::{BlowUp, NoThreads, RunError, SetupError};

/// Exit statuses other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The user's program or its input is wrong.
    Program = 1,
    /// The command line is wrong.
    Usage = 2,
    /// Hardware or a library that was asked for is missing.
    Missing = 3,
    /// Values became infinite, or none.
    BlowUp = 4,
}

/// The end of a command that did not succeed.
#[derive(Debug)]
pub struct Failure {
    pub diagnostics: Diagnostics,
    pub exit: Exit,
}

impl Failure {
    pub fn new(exit: Exit, diagnostic: Diagnostic) -> Self {
        Self {
            diagnostics: diagnostic.into(),
            exit,
        }
    }

    /// Fails without another word.
    pub fn silent() -> Self {
        Self {
            diagnostics: Diagnostics::default(),
            exit: Exit::Program,
        }
    }

    /// Values that are infinite, or none, at the end of a run that was to go on with them.
    pub fn allowed_values(first: &BlowUp) -> Self {
        let message = format!("values are NaN or infinite at the end; the first is: {first}");
        Self::new(Exit::BlowUp, Diagnostic::note(codes::BLOW_UP, message))
    }

    /// Options that contradict each other.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, Diagnostic::error(codes::OPTIONS, message))
    }
}

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Self {
        Self {
            diagnostics,
            exit: Exit::Program,
        }
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Diagnostics::from(diagnostic).into()
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        let code = match (&error.cause, error.attempt) {
            (Cause::Checkpoint(_), Attempt::Open | Attempt::Read) => codes::CHECKPOINT,
            (Cause::InUse(_), _) => codes::IN_USE,
            (Cause::OtherResults(_), _) => codes::OTHER_RESULTS,
            (_, Attempt::Open | Attempt::Read) => codes::UNREADABLE,
            _ => codes::UNWRITABLE,
        };
        let hint = match (code, &error.cause) {
            (codes::CHECKPOINT, Cause::Checkpoint(fault)) if fault.is_damage() => {
                Some("begin anew, or go on from another checkpoint")
            }
            (codes::CHECKPOINT, Cause::Checkpoint(CheckpointFault::NoSum(_))) => {
                Some("begin anew, or end the run with the version that began it")
            }
            (codes::CHECKPOINT, Cause::Checkpoint(CheckpointFault::Ghosts(_))) => Some(
                "go on with a `--schedule` whose towers make ghosts where rows arrive, such as that of the run that \
                 wrote it; or begin anew",
            ),
            (codes::CHECKPOINT, Cause::Checkpoint(CheckpointFault::InFiles)) => {
                Some("`--window DIR --resume DIR` goes on with it where it is")
            }
            (codes::CHECKPOINT, Cause::Checkpoint(CheckpointFault::InCheckpoint)) => Some(
                "go on with it in memory, or name another folder for the files: `--window OTHER --resume DIR`",
            ),
            (codes::CHECKPOINT, _) => Some(
                "continue with the same scheme, parameters, precision, sources, probes, records and spectra as the run \
                 that wrote it",
            ),
            (codes::IN_USE, _) => Some("wait for its end, or choose another folder"),
            (codes::OTHER_RESULTS, _) => {
                Some("`--overwrite` removes those results first; or choose another folder")
            }
            (_, Cause::ForeignFolder { .. }) => Some("choose another folder, or remove this one"),
            _ => None,
        };
        let mut diagnostic = Diagnostic::error(code, error.to_string());
        diagnostic.hint = hint.map(str::to_owned);
        diagnostic.into()
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Setup(error) => error.into(),
            RunError::File(error) => error.into(),
            RunError::Device(error) => error.into(),
            RunError::Threads(error) => error.into(),
            RunError::Difference(difference) => Diagnostic::error(
                codes::DIFFERENCE,
                format!("verification failed: {difference}"),
            )
            .hint("this is a defect of Torre, not of your program: please report it")
            .into(),
            RunError::BlowUp(found) => {
                let mut diagnostic = Diagnostic::error(codes::BLOW_UP, found.to_string());
                let place = match &found.zone {
                    Some(zone) => format!(
                        "the value lies in {zone}; some waves grow in layers (book, Layers, Waves that grow); "
                    ),
                    None => String::new(),
                };
                diagnostic.hint = Some(format!(
                    "{place}a shorter step may help, and `torre analyze` tells the largest stable one of a linear \
                     scheme; `--allow-nonfinite` goes on all the same"
                ));
                Failure::new(Exit::BlowUp, diagnostic)
            }
            RunError::Finished { step, steps } => Diagnostic::error(
                codes::CHECKPOINT,
                format!("the checkpoint is at step {step}, after the last of this run, {steps}"),
            )
            .hint("give a later end with `--set steps=N`")
            .into(),
        }
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        let missing = |hint: &str| {
            Failure::new(
                Exit::Missing,
                Diagnostic::error(codes::MISSING, error.to_string()).hint(hint),
            )
        };
        match &error {
            DeviceError::NoDriver | DeviceError::NoDevice | DeviceError::NoSuchDevice { .. } => {
                missing("`torre machine` shows what is there; other back ends run on the processor")
            }
            DeviceError::Refused(_) => {
                missing("take the folder out of `LD_LIBRARY_PATH`, or let nobody else write to it")
            }
            DeviceError::OldDriver { .. } => missing("install a newer driver"),
            DeviceError::Unsupported { .. } => {
                missing("a newer driver may help; other back ends run on the processor")
            }
            DeviceError::Memory { needed, available } => Diagnostic::error(
                codes::MEMORY,
                format!(
                    "the run needs {} of the GPU's memory, and {} are available",
                    crate::report::bytes_up(*needed),
                    crate::report::bytes(*available)
                ),
            )
            .hint("make the domain smaller: `--set domain=AxBxC`, or run on the processor")
            .into(),
            DeviceError::TooLong => Diagnostic::error(codes::MEMORY, error.to_string())
                .hint("make the domain smaller: `--set domain=AxBxC`, or run on the processor")
                .into(),
            DeviceError::Code { .. } | DeviceError::Failed { .. } => {
                Diagnostic::error(codes::BACKEND, format!("the back end `cuda` failed: {error}"))
                    .hint("another `--backend` may work; if the GPU is fine, this is a defect of Torre: please report \
                        it")
                    .into()
            }
        }
    }
}

impl From<NoThreads> for Failure {
    fn from(error: NoThreads) -> Self {
        Diagnostic::error(codes::THREADS, error.to_string())
            .hint("ask for fewer with `--threads N`, or raise the limit of the process")
            .into()
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        let diagnostic = match error {
            SetupError::Threads(error) => return error.into(),
            SetupError::TooLarge => Diagnostic::error(
                codes::MEMORY,
                "the fields are larger than any memory can be addressed",
            )
            .hint("make the domain smaller: `--set domain=AxBxC`"),
            SetupError::Memory { bytes, error } => Diagnostic::error(
                codes::MEMORY,
                format!("{} for the fields cannot be had: {error}", crate::report::bytes(bytes)),
            )
            .hint("make the domain smaller with `--set domain=AxBxC`, or raise the limit of the process"),
            SetupError::InitialNotFinite { component, at, value, file } => NotFinite {
                name: format!("the initial value of {component}"),
                at,
                value,
                file,
            }
            .diagnostic(""),
            SetupError::CoefNotFinite { coef, at, value, file } => NotFinite {
                name: format!("the coefficient {coef}"),
                at,
                value,
                file,
            }
            .diagnostic("; coefficients count at all places where an update takes them"),
            SetupError::Incident(message, hint) => {
                Diagnostic::error(resolve::codes::INCIDENT, message).hint(hint)
            }
        };
        diagnostic.into()
    }
}

impl From<CompileError> for Failure {
    fn from(error: CompileError) -> Self {
        let missing = |message: String| Diagnostic::error(codes::MISSING, message);
        match error {
            CompileError::Llvm(error @ llvm::Error::NotFound(_)) => {
                let mut lines = error.to_string();
                lines.insert_str(0, "LLVM is needed: ");
                Failure::new(Exit::Missing, missing(lines))
            }
            CompileError::NotBuilt(backend) => Failure::new(
                Exit::Missing,
                missing(format!("this `torre` was built without the back end `{backend}`"))
                    .hint("build with the default features"),
            ),
            CompileError::UnknownTarget(name) => Failure::new(
                Exit::Usage,
                Diagnostic::error(codes::TARGET, format!("no processor `{name}` is known"))
                    .hint("use `host`, `x86-64-v2`, `x86-64-v3`, `x86-64-v4`, `aarch64`, `riscv64`, or a name such as \
                        `znver5` or `neoverse-n1`"),
            ),
            CompileError::ForeignTarget { target, host } => Failure::new(
                Exit::Missing,
                Diagnostic::error(
                    codes::TARGET,
                    format!("code for `{target}` may not run on this processor, `{host}`"),
                )
                .hint("`emit` and `build` make code for any processor; to run, use `host` or a level such as \
                    `x86-64-v3`"),
            ),
            CompileError::HostOnly(backend) => Failure::usage(format!(
                "the back end `{backend}` makes code for this machine only, so `--target` needs `--backend llvm`"
            )),
            CompileError::Llvm(error) => bug(Backend::Llvm, &error.to_string()),
            CompileError::Cranelift(error) => bug(Backend::Cranelift, &error),
        }
    }
}

impl From<TimeBlockError> for Failure {
    fn from(error: TimeBlockError) -> Self {
        match error {
            TimeBlockError::Code(error) => CompileError::Llvm(error).into(),
            TimeBlockError::Towers(_) | TimeBlockError::Patches(_) => {
                const HINT: &str = "this is a defect of Torre, not of your program: please report it; \
                                    `--schedule layerwise` works without time blocks";
                let fault = Diagnostic::error(codes::BACKEND, error.to_string());
                fault.hint(HINT).into()
            }
            TimeBlockError::Order => {
                Diagnostic::error(codes::DEVICE_SCHEDULE, error.to_string()).into()
            }
        }
    }
}

/// For numbers that double precision has.
const WIDER_RANGE: &str = "`--precision f64` has a wider range";
const IN_FILE: &str = "the file needs a finite number there";
const CONDITION: &str =
    "a division by zero needs a condition, such as `if x > 0 then 1 / x else 0`";

/// A start value that a precision does not have.
struct NotFinite {
    name: String,
    at: Vec<i64>,
    value: f64,
    file: Option<String>,
}

impl NotFinite {
    /// `more`: behind the hint.
    fn diagnostic(self, more: &str) -> Diagnostic {
        let Self {
            name,
            at,
            value,
            file,
        } = self;
        let at: Vec<String> = at.iter().map(i64::to_string).collect();
        let from = file
            .as_ref()
            .map_or(String::new(), |path| format!(", from `{path}`,"));
        let message = format!(
            "{name} at cell ({}){from} is {value:e}, which the precision cannot hold",
            at.join(", ")
        );
        let hint = match (value.is_finite(), file) {
            (true, _) => WIDER_RANGE,
            (false, Some(_)) => IN_FILE,
            (false, None) => CONDITION,
        };
        Diagnostic::error(codes::NOT_FINITE, message).hint(format!("{hint}{more}"))
    }
}

fn bug(backend: Backend, error: &str) -> Failure {
    Diagnostic::error(codes::BACKEND, format!("the back end `{backend}` failed: {error}"))
        .hint("this is a defect of Torre, not of your program: please report it; another `--backend` may work")
        .into()
}
