//! The window of a run, in a sentence.

use crate::args::{Holding, WindowArg};
use crate::report::bytes;
use std::fmt::Write;
use torre_runtime::plan::gpu::{WindowKind, WindowPlan};

/// Why and how a window moves over the domain, in a sentence.
pub fn note(plan: &WindowPlan, holding: &Holding) -> String {
    let places = plan.how.held.places().unwrap_or(0);
    let why = match holding.window {
        WindowArg::Auto if plan.devices > 1 => "the GPUs cannot hold stripes of the domain, so ",
        WindowArg::Auto => "the fields do not fit into the GPU's memory, so ",
        _ => "",
    };
    if let WindowKind::Slabs(slabs) = &plan.kind {
        let note = format!(
            "{} overlapped slabs of {} of {} planes go through {}, {} steps at a time",
            slabs.count,
            slabs.base,
            plan.planes,
            match plan.devices {
                0 | 1 => "the GPU".to_owned(),
                devices => format!("{devices} GPUs in turns"),
            },
            plan.steps,
        );
        return note + &written(plan, holding);
    }
    let mut note = format!(
        "{why}a calculation window of {} of {} planes moves over the domain, {} steps at a time",
        places.min(plan.planes),
        plan.planes,
        plan.steps,
    );
    if plan.devices > 1 {
        let _ = write!(note, ", on each of {} GPUs in turns", plan.devices);
    }
    if plan.how.held.unit().is_none() {
        note += "; its planes slide, as the GPU does not map memory twice";
    }
    note + &written(plan, holding)
}

/// The bytes that a run writes to files, as a note.
fn written(plan: &WindowPlan, holding: &Holding) -> String {
    let all = bytes(plan.copied);
    holding.folder().map_or(String::new(), |folder| {
        let folder = folder.display();
        format!("; {all} are written to `{folder}`, and as many are read")
    })
}
