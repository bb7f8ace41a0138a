//! The `torre` command: a thin layer over the compiler and the runtime. It reads the command line, shows diagnostics
//! and progress, and gives the exit status of an outcome.

mod analyze;
mod args;
mod bench;
mod build;
mod check;
mod codes;
mod columns;
mod cone;
mod device;
mod devices;
mod emit;
mod exhausted;
mod explain;
mod failure;
mod format;
mod gap;
mod input;
mod interrupt;
mod machine;
mod new;
mod plan;
mod plot;
mod progress;
mod provenance;
mod rates;
mod render;
mod report;
mod run;
mod schedule;
mod shell;
mod stability;
mod sweep;
mod target;
mod window;
mod write;

use args::{Cli, Command};
use clap::Parser;
use failure::Failure;
use render::Voice;
use std::process::ExitCode;

/// Runs the command that the arguments of the process name, and gives its exit status.
pub fn main() -> ExitCode {
    write::take_signals_of_writes();
    device::connect_queues();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Wrong usage ends here with status 2, help and version with 0 if they can be shown.
        Err(error) => {
            let shown = error.print();
            let shown = shown.and_then(|()| write::stdout_is_open());
            return match shown {
                Err(shown) if !error.use_stderr() => {
                    end(&Voice::new(false), Err(write::stdout_failed(&shown)))
                }
                _ => ExitCode::from(error.exit_code() as u8),
            };
        }
    };
    let voice = Voice::new(cli.quiet);
    end(&voice, run_command(&cli.command, &voice))
}

fn run_command(command: &Command, voice: &Voice) -> Result<(), Failure> {
    for (written, subject) in command.writes_beside() {
        input::spare(written, subject)?;
        // A run may write its own results again.
        if !matches!(command, Command::Run(_)) {
            write::spare_results(written)?;
        }
    }
    match command {
        Command::New(args) => new::new(args, voice),
        Command::Explain(args) => explain::explain(args),
        Command::Check(args) => check::check(args, voice),
        Command::Run(args) => run::run(args, voice),
        Command::Plot(args) => plot::plot(args, voice),
        Command::Plan(args) => plan::plan(args, voice),
        Command::Analyze(args) => analyze::analyze(args, voice),
        Command::Cone(args) => cone::cone(args, voice),
        Command::Bench(args) => bench::bench(args, voice),
        Command::Emit(args) => emit::emit(args, voice),
        Command::Build(args) => build::build(args, voice),
        Command::Fmt(args) => format::format(args, voice),
        Command::Machine(args) => machine::machine(args),
    }
}

/// Shows the error, if there is one, and gives the exit status.
fn end(voice: &Voice, outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            voice.show(&failure.diagnostics);
            ExitCode::from(failure.exit as u8)
        }
    }
}
