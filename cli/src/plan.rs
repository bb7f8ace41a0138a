//! `torre plan`: the schedule, and what the model expects of it; runs nothing.

use crate::args;
use crate::failure::Failure;
use crate::input;
use crate::render::Voice;
use crate::report::bytes;
use crate::schedule;
use crate::write;
use std::fmt::Write;
use torre_runtime::host::{SetupError, threads};
use torre_runtime::plan::Planner;

/// Alternatives that are listed.
const MOST: usize = 8;

pub fn plan(args: &args::Plan, voice: &Voice) -> Result<(), Failure> {
    let source = input::source(&args.what.file)?;
    let resolved = input::inspected(&args.what, voice)?;
    let threads = args.threads.map_or_else(threads::available, |n| n as usize);
    let planner = Planner::new(&resolved.scheme).map_err(SetupError::from)?;
    let template = schedule::template(&args.schedule, &source, &resolved, &planner)?;
    let machine = schedule::machine(threads);
    let choices = planner.choices(&template, &machine);
    let mut out = String::new();
    if let Some(best) = choices.first() {
        let plan = planner
            .plan(best.clone())
            .map_err(|error| schedule::refused(error, &planner))?;
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", schedule::title(&plan));
        let _ = writeln!(out, "  {}", best.schedule);
        let _ = write!(out, "{}", best.prediction);
        let _ = writeln!(out, "  threads   {threads:8}");
        let _ = writeln!(out, "  kernels   {:8}", plan.kernels.kernels.len());
        let _ = writeln!(out, "  fields    {}", bytes(planner.layout.bytes()));
    }
    if choices.len() > 1 {
        let _ = writeln!(out, "\nexpected    Mcells/s  bytes from memory  schedule");
        for choice in choices.iter().take(MOST) {
            let p = &choice.prediction;
            let _ = writeln!(
                out,
                "            {:8.0}  {:17.1}  {}",
                p.rate * 1e-6,
                p.memory_bytes,
                choice.name
            );
        }
    }
    write::result(&out);
    Ok(())
}
