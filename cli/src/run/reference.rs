//! Runs by the reference.

use super::{Made, Prepared, Run};
use crate::args::{self, BackendArg};
use crate::failure::Failure;
use crate::machine;
use std::time::Duration;
use torre_runtime::program::TargetChoice;
use torre_runtime::run::{Literal, Value};

/// Refuses options that the reference does not have.
pub(super) fn check_options(args: &args::Run) -> Result<(), Failure> {
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

impl<T: Value> Run<'_, T> {
    pub(super) fn run_reference(&self, prepared: &Prepared<'_>) -> Result<(), Failure> {
        let made = Made {
            backend: "reference".to_owned(),
            code: "reference".to_owned(),
            compiling: Duration::ZERO,
            cached: false,
            field_bytes: Literal::<T>::bytes(self.scheme),
            spilled: 0,
            devices: vec![machine::cpu_name()],
            as_planned: false,
        };
        let mut simulation = Literal::<T>::new(self.scheme, self.problem, prepared.files);
        self.execute(&mut simulation, prepared, None, made)
    }
}
