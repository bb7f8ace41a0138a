//! `torre plan`: the schedule, and what the model expects of it; runs nothing.

use crate::args::{self, BackendArg};
use crate::columns::{Set, table};
use crate::device;
use crate::failure::Failure;
use crate::input;
use crate::machine;
use crate::render::Voice;
use crate::report::{self, bytes};
use crate::schedule;
use crate::write;
use serde_json::{Value, json};
use std::fmt::Write;
use torre_compiler::resolve::Resolved;
use torre_compiler::schedule::{Choice, Machine, Prediction};
use torre_grammar::source::Source;
use torre_runtime::budget;
use torre_runtime::gpu::{CudaDevice, Device, OnDevice, predict};
use torre_runtime::host::{SetupError, threads};
use torre_runtime::plan::{Plan, Planner};
use torre_runtime::program::LoadedFiles;

/// Alternatives that are listed.
const MOST: usize = 8;

pub fn plan(args: &args::Plan, voice: &Voice) -> Result<(), Failure> {
    let source = input::source(&args.what.file)?;
    let resolved = input::inspected(&args.what, voice)?;
    if args.backend == BackendArg::Cuda {
        return plan_on_device(args, &source, &resolved);
    }
    let threads = args.threads.map_or_else(threads::available, |n| n as usize);
    let planner = Planner::new(&resolved.scheme).map_err(SetupError::from)?;
    let template = schedule::template(&args.schedule, &source, &resolved, &planner)?;
    let machine = schedule::machine(threads);
    let choices = planner.choices(&template, &machine);
    let plan = match choices.first() {
        Some(best) => planner.plan(best.clone()),
        None => planner.best(&template, &machine),
    };
    let plan = plan.map_err(|error| schedule::refused(error, &planner))?;
    let shown = Shown {
        problem: &resolved.problem.name,
        planner: &planner,
        machine: &machine,
        plan: &plan,
        choices: &choices,
        file_bytes: LoadedFiles::bytes(&resolved.scheme),
        available: budget::available().map(|a| a.bytes),
    };
    if !write::report(args.report.as_deref(), &shown.json())? {
        write::result(&shown.text());
    }
    Ok(())
}

/// The plan of a run on a GPU.
fn plan_on_device(args: &args::Plan, source: &Source, resolved: &Resolved) -> Result<(), Failure> {
    let Resolved {
        scheme, problem, ..
    } = resolved;
    schedule::layerwise(&args.schedule, source, resolved)?;
    let found = CudaDevice::open(args.devices.unwrap_or(0))?;
    let rate = found.copy_rate()?;
    let plan = device::plan(scheme, &found)?;
    let needed = OnDevice::<f64>::device_bytes(scheme, problem, &plan.kernels);
    let available = found.free_memory()?;
    let mut value = choice_json(&plan.choice);
    if let Value::Object(all) = &mut value {
        all.insert("scheme".to_owned(), json!(scheme.name));
        all.insert("problem".to_owned(), json!(problem.name));
        all.insert("domain".to_owned(), json!(report::domain(scheme)));
        all.insert("precision".to_owned(), json!(scheme.precision.to_string()));
        all.insert("device".to_owned(), device::json(found.facts(), Some(rate)));
        all.insert("device_memory_bytes".to_owned(), json!(needed));
        all.insert("available_memory_bytes".to_owned(), json!(available));
    }
    if write::report(args.report.as_deref(), &format!("{value:#}\n"))? {
        return Ok(());
    }
    let Prediction {
        rate: cells,
        memory_bytes,
        ..
    } = plan.choice.prediction;
    write::result(&format!(
        "layerwise\n  rate      {:8.1} Mcells/s\n  memory    {memory_bytes:8.1} bytes per cell-step\n  kernels   {:8}\n  \
         fields    {}; {} of the GPU's memory available\n  device    {}, copies at {:.0} GB/s\n",
        cells * 1e-6,
        plan.kernels.kernels.len(),
        bytes(needed),
        bytes(available),
        predict::line(found.facts()),
        rate * 1e-9,
    ));
    Ok(())
}

struct Shown<'a> {
    problem: &'a str,
    planner: &'a Planner<'a>,
    machine: &'a Machine,
    plan: &'a Plan,
    /// All members of the family, best first.
    choices: &'a [Choice],
    file_bytes: u64,
    available: Option<u64>,
}

impl Shown<'_> {
    fn text(&self) -> String {
        let Choice {
            schedule,
            prediction,
            ..
        } = &self.plan.choice;
        let domain = report::domain(self.planner.scheme);
        let domain: Vec<String> = domain.iter().map(i64::to_string).collect();
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", schedule::title(self.plan));
        let _ = writeln!(out, "  {schedule}");
        let _ = write!(out, "{prediction}");
        let _ = writeln!(out, "  threads   {:8}", self.machine.threads);
        let _ = writeln!(out, "  kernels   {:8}", self.plan.kernels.kernels.len());
        let _ = writeln!(
            out,
            "  fields    {} of {} cells{}",
            bytes(self.planner.layout.bytes()),
            domain.join(" x "),
            match self.available {
                Some(available) => format!("; {} of memory available", bytes(available)),
                None => String::new(),
            },
        );
        let more = self
            .plan
            .more_bytes(&self.planner.layout, self.machine.threads);
        if more > 0 {
            let _ = writeln!(
                out,
                "  overlap   {} for a second array and the tiles",
                bytes(more)
            );
        }
        if self.file_bytes > 0 {
            let _ = writeln!(out, "  files     {}", bytes(self.file_bytes));
        }
        let _ = writeln!(out, "  machine   {}", machine::line(self.machine));
        if self.choices.len() > 1 {
            let head = ["Mcells/s", "memory", "caches", "tile", "schedule"];
            let mut rows = vec![head.map(str::to_owned)];
            rows.extend(self.choices.iter().take(MOST).map(|choice| {
                let p = &choice.prediction;
                [
                    format!("{:.0}", p.rate * 1e-6),
                    format!("{:.1}", p.memory_bytes),
                    format!("{:.1}", p.cache_bytes),
                    bytes(p.footprint as u64),
                    choice.name.clone(),
                ]
            }));
            let _ = writeln!(
                out,
                "\nthe best of {} that were considered; memory and caches in bytes per cell-step",
                self.choices.len()
            );
            let (left, right) = (Set::Left, Set::Right);
            out.push_str(&table([right, right, right, right, left], &rows));
        }
        out
    }

    fn json(&self) -> String {
        let scheme = self.planner.scheme;
        let alternatives: Vec<Value> = self
            .choices
            .iter()
            .filter(|choice| **choice != self.plan.choice)
            .map(choice_json)
            .collect();
        let mut value = choice_json(&self.plan.choice);
        let more = json!({
            "torre": env!("CARGO_PKG_VERSION"),
            "scheme": scheme.name,
            "problem": self.problem,
            "domain": report::domain(scheme),
            "precision": scheme.precision.to_string(),
            "threads": self.machine.threads,
            "kernels": self.plan.kernels.kernels.len(),
            "field_memory_bytes": self.planner.layout.bytes(),
            "file_memory_bytes": self.file_bytes,
            "available_memory_bytes": self.available,
            "machine": machine::json(self.machine),
            "alternatives": alternatives,
        });
        if let (Value::Object(all), Value::Object(more)) = (&mut value, more) {
            all.extend(more);
        }
        format!("{value:#}\n")
    }
}

/// A schedule and what is expected of it, for reports.
pub fn choice_json(choice: &Choice) -> Value {
    let Prediction {
        rate,
        compute,
        cache_bytes,
        memory_bytes,
        footprint,
    } = &choice.prediction;
    json!({
        "schedule": choice.name,
        "tiling": choice.schedule.to_string(),
        "predicted_gcells_per_s": rate * 1e-9,
        "computing_ns_per_cell_step": compute * 1e9,
        "bytes_per_cell_step": {"memory": memory_bytes, "cache": cache_bytes},
        "tile_bytes": footprint,
    })
}
