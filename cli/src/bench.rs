//! `torre bench`: schedules side by side on this machine.
//!
//! All schedules advance one calculation in turns: round by round, A B C A B C. So they see the same fields, and what
//! else happens on the machine hits them alike. Nothing is recorded meanwhile; sources act.

mod contest;
mod device;
mod processor;

use crate::args::{self, BackendArg};
use crate::failure::Failure;
use crate::render::Voice;

pub fn bench(args: &args::Bench, voice: &Voice) -> Result<(), Failure> {
    match (args.how.backend, args.devices) {
        (BackendArg::Cuda, _) => device::bench(args, voice),
        (_, Some(_)) => Err(Failure::usage("`--devices` goes with `--backend cuda`")),
        (backend, None) => match backend.choice() {
            Some(choice) => processor::bench(args, voice, choice),
            None => Err(Failure::usage(
                "the reference goes stage by stage and knows no schedules: `torre run --backend reference` times it",
            )),
        },
    }
}
