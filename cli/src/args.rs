//! The command line as data.

mod holding;
mod numbers;
mod pictures;
mod rates;
mod threads;
mod unstable;

pub use holding::{Holding, WindowArg};
pub use rates::{RatesArg, RatesArgs};
pub use threads::ThreadsArg;
pub use unstable::Unstable;

use crate::devices::Devices;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use numbers::{from_one, seconds};
use std::path::{Path, PathBuf};
use torre_compiler::scheme::Precision;
use torre_runtime::program::{Backend, BackendChoice, TargetChoice};
use torre_runtime::run::VolumeFormat;
use unstable::unstable;

/// Compiles and runs explicit schemes on staggered grids.
///
/// Results go to stdout, messages to stderr. The exit status is 0 on success, 1 on errors in the program or its input,
/// 2 on wrong usage, 3 where hardware or a library that was asked for is missing, 4 where values of a run become
/// infinite or NaN, or grow without bound.
#[derive(Debug, Parser)]
#[command(name = "torre", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Print nothing but errors and results
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a first program, with comments, that runs at once
    New(New),
    /// Report all errors and warnings of a program, and its time step and Courant number
    Check(Check),
    /// Compile and run a program
    Run(Run),
    /// Show the schedule that a run would use, and its expected rate
    Plan(Plan),
    /// Draw the results of a run again, with other ranges or as animations
    Plot(Plot),
    /// Show which time steps are stable, and how accurate waves are
    Analyze(Analyze),
    /// Show which value depends on which, and how fast dependences spread
    Cone(Cone),
    /// Measure schedules side by side on this machine
    Bench(Bench),
    /// Show a program at some stage of its compilation
    Emit(Emit),
    /// Compile a program for use from C and other languages
    Build(Build),
    /// Bring source files into canonical layout, in place
    Fmt(Fmt),
    /// Show the processor, libraries, GPUs and rates of this machine
    Machine(Machine),
    /// Explain the code of a message
    Explain(Explain),
}

impl Command {
    /// The files that the command line names for results, each with the calculation that the command reads.
    pub fn writes_beside(&self) -> Vec<(&Path, &Subject)> {
        let (written, subject) = match self {
            Command::Run(args) => {
                let report = report_file(args.report.as_deref());
                (vec![report, args.timeline.as_deref()], &args.subject)
            }
            Command::Plan(args) => (vec![report_file(args.report.as_deref())], &args.subject),
            Command::Bench(args) => (vec![report_file(args.report.as_deref())], &args.subject),
            Command::Analyze(args) => {
                let report = report_file(args.report.as_deref());
                (vec![args.output.as_deref(), report], &args.subject)
            }
            Command::Emit(args) => (vec![args.output.as_deref()], &args.subject),
            Command::Cone(args) => (vec![args.output.as_deref()], &args.subject),
            Command::Check(args) => (vec![args.picture.as_deref()], &args.subject),
            Command::Plot(_)
            | Command::New(_)
            | Command::Build(_)
            | Command::Fmt(_)
            | Command::Machine(_)
            | Command::Explain(_) => return Vec::new(),
        };
        let written = written.into_iter().flatten();
        written.map(|file| (file, subject)).collect()
    }
}

/// The file of a report, if it does not go to stdout.
pub fn report_file(place: Option<&Path>) -> Option<&Path> {
    place.filter(|path| *path != Path::new("json"))
}

/// Which calculation is meant.
#[derive(Debug, Args)]
pub struct Subject {
    /// The program, a `.torre` file
    pub file: PathBuf,
    /// The problem, where the file has several
    #[arg(long, value_name = "NAME")]
    pub problem: Option<String>,
    /// Set a parameter, `domain=AxBxC` or `steps=N`; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// The floating-point format of all values
    #[arg(long, value_enum, default_value_t = PrecisionArg::F32)]
    pub precision: PrecisionArg,
}

/// How code is made.
#[derive(Debug, Args)]
pub struct How {
    /// The back end: the hardware and the code generator of the run
    #[arg(long, value_enum, default_value_t = BackendArg::Auto)]
    pub backend: BackendArg,
    /// The GPUs that compute, by their numbers: `0` is the first GPU, `0,1` are the first two
    #[arg(long, value_name = "N,...", value_parser = Devices::read)]
    pub devices: Option<Devices>,
    /// The processor or GPU to compile for: `host`, or a name such as `x86-64-v3`, `znver5` or `sm_90`; `plan` takes
    /// GPUs only
    #[arg(long, value_name = "NAME", default_value = "host", value_parser = target)]
    pub target: TargetChoice,
}

#[derive(Debug, Args)]
pub struct New {
    /// The name of the program: NAME.torre is written
    #[arg(value_name = "NAME", default_value = "first")]
    pub name: PathBuf,
    /// Space dimensions: 1 for a string, 2 for sound around a disc, 3 for Maxwell's equations
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=3))]
    pub dims: u8,
}

#[derive(Debug, Args)]
pub struct Explain {
    /// The code, such as `E0302`; without one, all codes are listed
    #[arg(value_name = "CODE")]
    pub code: Option<String>,
}

#[derive(Debug, Args)]
pub struct Check {
    #[command(flatten)]
    pub subject: Subject,
    /// Write the diagnostics to stdout in this format
    #[arg(long, value_name = "FORMAT")]
    pub report: Option<JsonOnly>,
    /// Draw media, regions, sources, probes and outputs as they are set up
    #[arg(long, value_name = "FILE.png", value_parser = pictures::png())]
    pub picture: Option<PathBuf>,
    /// An axis that points downward in the picture
    #[arg(long, value_name = "AXIS", requires = "picture")]
    pub down: Option<String>,
    /// Do not refuse a time step for which waves grow
    #[arg(long = "allow-unstable", action = ArgAction::SetTrue, value_parser = unstable())]
    pub unstable: Unstable,
}

#[derive(Debug, Args)]
pub struct Analyze {
    #[command(flatten)]
    pub subject: Subject,
    /// The parameter whose largest stable value is looked for
    #[arg(long, value_name = "NAME", default_value = "dt")]
    pub vary: String,
    /// Draw the errors of phase velocities, as SVG or PNG
    #[arg(
        long = "out",
        short,
        alias = "output",
        value_name = "FILE.svg|FILE.png",
        value_parser = pictures::svg_or_png()
    )]
    pub output: Option<PathBuf>,
    /// Write all results to this file, or to stdout where it is `json`
    #[arg(long, value_name = "FILE|json")]
    pub report: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    pub subject: Subject,
    #[command(flatten)]
    pub how: How,
    #[command(flatten)]
    pub holding: Holding,
    #[command(flatten)]
    pub rates: RatesArgs,
    #[command(flatten)]
    pub threads: ThreadsArg,
    /// The order of execution: `auto`, `layerwise`, the name of a schedule of the program, or a schedule written out,
    /// such as "torre(D = 2, TH = 16)"
    #[arg(long, value_name = "SCHEDULE", default_value = "auto")]
    pub schedule: String,
    /// The folder for results; without it no results are written
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The format of volumes and final fields
    #[arg(long, value_enum, default_value_t = FormatArg::Npy)]
    pub format: FormatArg,
    /// Write slices and volumes of the start values too, as step 0
    #[arg(long, requires = "out")]
    pub save_initial: bool,
    /// Write every field after the last step
    #[arg(long, requires = "out")]
    pub save_final: bool,
    /// Remove the results of another run from the folder first
    #[arg(long, requires = "out")]
    pub overwrite: bool,
    #[command(flatten)]
    pub pictures: PictureArgs,
    /// Write a report to this file, or to stdout where it is `json`
    #[arg(long, value_name = "FILE|json")]
    pub report: Option<PathBuf>,
    /// Record when each launch and copy of GPUs ran, and write that to this file: a trace for `chrome://tracing` and
    /// Perfetto, or a table
    #[arg(long, value_name = "FILE.json|FILE.csv")]
    pub timeline: Option<PathBuf>,
    /// Compare every value with a layerwise reference, bit by bit
    #[arg(long)]
    pub verify: bool,
    /// Write the state to this folder at the end, and every N steps with `--every`
    #[arg(long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// Steps between checkpoints
    #[arg(long, value_name = "N", requires = "checkpoint", value_parser = from_one::<u64>)]
    pub every: Option<u64>,
    /// Continue from the state in this folder
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
    /// Run with a time step for which waves grow
    #[arg(long = "allow-unstable", action = ArgAction::SetTrue, value_parser = unstable())]
    pub unstable: Unstable,
    /// Go on where values become infinite or NaN, or grow without bound
    #[arg(long)]
    pub allow_nonfinite: bool,
}

/// How pictures of results are drawn.
#[derive(Debug, Args)]
pub struct PictureArgs {
    /// The range of the colours, or of a curve's axis, for one output or all outputs of a component; may be repeated
    #[arg(
        long,
        value_name = "NAME=LOW..HIGH",
        requires = "out",
        allow_hyphen_values = true
    )]
    pub range: Vec<String>,
    /// Put the frames of each output together to an animation (APNG)
    #[arg(long, requires = "out")]
    pub movie: bool,
    /// An axis that points downward in pictures where it is not drawn to the right
    #[arg(long, value_name = "AXIS", requires = "out")]
    pub down: Option<String>,
}

#[derive(Debug, Args)]
pub struct Plot {
    #[command(flatten)]
    pub subject: Subject,
    /// The folder with the results of a run of this program
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    #[command(flatten)]
    pub pictures: PictureArgs,
}

#[derive(Debug, Args)]
pub struct Cone {
    #[command(flatten)]
    pub subject: Subject,
    /// Draw, as SVG, instead of writing the tables
    #[arg(long = "out", short, alias = "output", value_name = "FILE.svg", value_parser = pictures::svg())]
    pub output: Option<PathBuf>,
    /// The kind of drawing
    #[arg(long, value_enum, default_value_t = ViewArg::Section, requires = "output")]
    pub view: ViewArg,
    /// The component whose past is drawn [default: a component that a step computes last]
    #[arg(long, value_name = "NAME", requires = "output")]
    pub component: Option<String>,
    /// The axis of a section [default: the first]
    #[arg(long, value_name = "NAME", requires = "output")]
    pub axis: Option<String>,
    /// The schedule whose faces are listed, or whose tiles are drawn: a name, or a schedule written out
    #[arg(long, value_name = "SCHEDULE")]
    pub schedule: Option<String>,
}

#[derive(Debug, Args)]
pub struct Plan {
    #[command(flatten)]
    pub subject: Subject,
    #[command(flatten)]
    pub how: How,
    #[command(flatten)]
    pub holding: Holding,
    #[command(flatten)]
    pub rates: RatesArgs,
    #[command(flatten)]
    pub threads: ThreadsArg,
    /// The order of execution, as for `run`
    #[arg(long, value_name = "SCHEDULE", default_value = "auto")]
    pub schedule: String,
    /// Write the plan to this file, or to stdout where it is `json`
    #[arg(long, value_name = "FILE|json")]
    pub report: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Bench {
    #[command(flatten)]
    pub subject: Subject,
    #[command(flatten)]
    pub how: How,
    #[command(flatten)]
    pub threads: ThreadsArg,
    /// A schedule to measure besides `layerwise`, as for `run`; may be repeated [default: the best 3 of `auto`]
    #[arg(long, value_name = "SCHEDULE")]
    pub schedule: Vec<String>,
    /// Number of members to measure of each family, the fastest by the model [default: 1; of `auto` 3]
    #[arg(long, value_name = "N", value_parser = from_one::<u32>)]
    pub count: Option<u32>,
    /// Measure all members of each family
    #[arg(long, conflicts_with = "count")]
    pub all: bool,
    /// Seconds for each schedule, all rounds together
    #[arg(long, value_name = "S", default_value = "3", value_parser = seconds)]
    pub seconds: f64,
    /// Number of rounds; each measures every schedule once
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// First compare every value of a short run with a layerwise run, bit by bit
    #[arg(long)]
    pub verify: bool,
    /// Write the results to this file, or to stdout where it is `json`
    #[arg(long, value_name = "FILE|json")]
    pub report: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Emit {
    #[command(flatten)]
    pub subject: Subject,
    #[command(flatten)]
    pub holding: Holding,
    /// The GPUs whose pipeline is shown, as for `run`
    #[arg(long, value_name = "N,...", value_parser = Devices::read)]
    pub devices: Option<Devices>,
    /// The stage of the compilation
    #[arg(long, value_enum)]
    pub stage: StageArg,
    /// The schedule whose tiles or kernels are shown, as for `run`
    #[arg(long, value_name = "SCHEDULE", default_value = "layerwise")]
    pub schedule: String,
    /// The processor or GPU to compile for: `host`, or a name such as `x86-64-v3`, `znver5` or `sm_90`
    #[arg(long, value_name = "NAME", default_value = "host", value_parser = target)]
    pub target: TargetChoice,
    /// Write to this file instead of stdout
    #[arg(long = "out", short, alias = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Build {
    #[command(flatten)]
    pub subject: Subject,
    /// The folder for the object file, the C header and the description in JSON
    #[arg(long = "out", short, alias = "output", value_name = "DIR")]
    pub output: PathBuf,
    /// The processor to compile for: `host`, or a name such as `x86-64-v3` or `znver5`
    #[arg(long, value_name = "NAME", default_value = "host", value_parser = target)]
    pub target: TargetChoice,
    /// Build a calculation with a time step for which waves grow
    #[arg(long = "allow-unstable", action = ArgAction::SetTrue, value_parser = unstable())]
    pub unstable: Unstable,
}

#[derive(Debug, Args)]
pub struct Fmt {
    /// Source files
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Change no file; name the files that would change, and exit with 1 if there are any
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, Args)]
pub struct Machine {
    /// Measure the rates again; without this option earlier measurements are shown
    #[arg(long)]
    pub measure: bool,
    /// Remove the learned rates of runs, and the distances of planes
    #[arg(long)]
    pub forget: bool,
    /// Write to stdout in this format
    #[arg(long, value_name = "FORMAT")]
    pub report: Option<JsonOnly>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum JsonOnly {
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrecisionArg {
    F32,
    F64,
}

impl From<PrecisionArg> for Precision {
    fn from(arg: PrecisionArg) -> Self {
        match arg {
            PrecisionArg::F32 => Precision::F32,
            PrecisionArg::F64 => Precision::F64,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendArg {
    /// A GPU where there is one and the run is expected to end earlier on it; else LLVM where it is found, or Cranelift
    Auto,
    /// Machine code by LLVM, on the processor
    Llvm,
    /// Machine code by Cranelift, on the processor: compiled faster, runs slower
    Cranelift,
    /// The interpreter: operation by operation; slow, for comparisons
    Interp,
    /// The reference: the literal execution of the program, one cell at a time; slower, for comparisons
    Reference,
    /// An NVIDIA GPU
    Cuda,
}

impl BackendArg {
    /// The back end for kernels on the processor; the reference has none, and the GPU has others.
    pub fn choice(self) -> Option<BackendChoice> {
        Some(match self {
            BackendArg::Auto => BackendChoice::Auto,
            BackendArg::Llvm => BackendChoice::Only(Backend::Llvm),
            BackendArg::Cranelift => BackendChoice::Only(Backend::Cranelift),
            BackendArg::Interp => BackendChoice::Only(Backend::Interp),
            BackendArg::Reference | BackendArg::Cuda => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    Npy,
    Zarr,
    Vtk,
}

impl From<FormatArg> for VolumeFormat {
    fn from(arg: FormatArg) -> Self {
        match arg {
            FormatArg::Npy => VolumeFormat::Npy,
            FormatArg::Zarr => VolumeFormat::Zarr,
            FormatArg::Vtk => VolumeFormat::Vtk,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ViewArg {
    /// One axis and time: the past of a value, its cone, and the tiles
    Section,
    /// Two axes, stage by stage: the cells of a tile
    Footprint,
    /// Two axes and time: towers, or the cone of a value
    Solid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StageArg {
    /// The syntax tree, as canonical source text
    Ast,
    /// The resolved scheme: components, stages, operations
    Scheme,
    /// Dependence vectors and slopes
    Cones,
    /// The faces of the tiles
    Schedule,
    /// The tiles in integers: planes, levels, and which updates run together
    Tiles,
    /// The rows that a GPU's towers load, compute, publish and store, one operation per line
    Towers,
    /// Copies and launches of time blocks in flight, with the waits of each
    Pipeline,
    /// The plan of a run: the tiles, the places of values in memory, and the kernels
    Plan,
    /// LLVM IR of the kernels
    Llvm,
    /// Assembly of the kernels
    Asm,
    /// The kernels for a GPU
    Ptx,
    /// Cranelift IR of the kernels
    #[cfg(feature = "cranelift")]
    Clif,
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// Bytes with a unit.
fn size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 9] = [
        ("KiB", 1024.0),
        ("MiB", 1048576.0),
        ("GiB", 1073741824.0),
        ("TiB", 1099511627776.0),
        ("kB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
        ("B", 1.0),
    ];
    let unit = UNITS
        .iter()
        .find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)));
    let value = unit.and_then(|(number, bytes)| Some(number.trim().parse::<f64>().ok()? * bytes));
    match value {
        Some(bytes) if (1.0..=1e18).contains(&bytes) => Ok(bytes as u64),
        _ => Err("expected a size with its unit, such as 20GB or 16GiB".to_owned()),
    }
}

fn target(text: &str) -> Result<TargetChoice, std::convert::Infallible> {
    Ok(match text {
        "host" => TargetChoice::Host,
        name => TargetChoice::Named(name.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn settings_have_a_name_and_a_value() {
        assert_eq!(setting("h = 2*dx").unwrap(), ("h".into(), "2*dx".into()));
        for wrong in ["h", "=1", "h=", ""] {
            assert!(setting(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("20GB"), Ok(20_000_000_000));
        assert_eq!(size("1.5 MiB"), Ok(1_572_864));
        assert_eq!(size("7B"), Ok(7));
        for wrong in ["20", "GB", "-1GB", "0B", "nanGB", "infTB", "1e9TB", "2gb"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_positive_and_end() {
        assert_eq!(seconds("0.5"), Ok(0.5));
        for wrong in ["0", "-1", "nan", "inf", "1e9", "soon"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
