//! Options that contradict each other.

use crate::args::{self, BackendArg};
use crate::failure::Failure;
use torre_runtime::program::TargetChoice;

/// Refuses options that the reference does not have.
pub(super) fn check(args: &args::Run) -> Result<(), Failure> {
    let order = !matches!(args.schedule.as_str(), "auto" | "layerwise");
    let options = [
        ("--schedule", order),
        ("--target", args.how.target != TargetChoice::Host),
        ("--verify", args.verify),
        ("--checkpoint", args.checkpoint.is_some()),
        ("--resume", args.resume.is_some()),
    ];
    let given = options.iter().find(|(_, given)| *given);
    match given.filter(|_| args.how.backend == BackendArg::Reference) {
        Some((option, _)) => Err(Failure::usage(format!(
            "`{option}` does not go with `--backend reference`"
        ))),
        None => Ok(()),
    }
}
