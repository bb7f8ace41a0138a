//! `torre bench`: schedules side by side on this machine.
//!
//! All schedules advance one calculation in turns: round by round, A B C A B C. So they see the same fields, and other
//! work on the machine affects them alike. Nothing is recorded meanwhile; sources act.

mod contest;
mod device;
mod processor;

use crate::args;
use crate::failure::Failure;
use crate::input::Input;
use crate::rates::Rates;
use crate::render::Voice;
use crate::schedule;
use crate::target::{Asked, Target};

pub fn bench(args: &args::Bench, voice: &Voice) -> Result<(), Failure> {
    let processor = || match args.how.backend.choice() {
        Some(choice) => processor::bench(args, voice, choice),
        None => Err(Failure::usage(
            "the reference goes stage by stage and knows no schedules: `torre run --backend reference` times it",
        )),
    };
    match args.how.target(args.threads.threads)? {
        Target::Gpu => device::bench(args, voice),
        Target::Processor => processor(),
        Target::Either => match is_for_gpu(args, voice)? {
            true => device::bench(args, voice),
            false => processor(),
        },
    }
}

/// Whether a run of the problem would go to a GPU.
fn is_for_gpu(args: &args::Bench, voice: &Voice) -> Result<bool, Failure> {
    // Messages about the program appear when it is read to be measured.
    let input = Input::read(&args.subject, &Voice::new(true))?;
    let (source, resolved) = (&input.source, &input.resolved);
    // Measurements do not depend on earlier runs.
    let rates = Rates::modelled();
    let threads = schedule::threads(None, resolved);
    let planned = schedule::plan("auto", source, resolved, threads, &rates)?;
    let asked = Asked {
        how: &args.how,
        schedule: "auto",
        source,
        resolved,
        holding: &args::Holding::default(),
        every: None,
        rates: &rates,
    };
    Ok(asked.faster(planned.expected.rate(), voice).is_some())
}
