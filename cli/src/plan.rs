//! `torre plan`: the schedule, and the prediction of the model; runs nothing.

mod blocks;
mod choices;

pub use blocks::time_blocks_text;
pub use choices::choice_json;

use crate::args;
use crate::device;
use crate::devices::Devices;
use crate::failure::Failure;
use crate::gap::{self, Gap};
use crate::input;
use crate::machine;
use crate::rates::{Expected, LearnedRates, Rates};
use crate::render::Voice;
use crate::report::{self, bytes};
use crate::schedule::{self, Compiler, Planned, Weighed};
use crate::sweep;
use crate::target::{Asked, OnGpu, Target};
use crate::window::{self, Held, Question};
use crate::write;
use blocks::{patches_json, towers_json};
use choices::{alternatives, considered, learned_text};
use serde_json::{Value, json};
use std::fmt::Write;
use torre_compiler::cost::{Choice, gcells};
use torre_compiler::incident::Sizes;
use torre_compiler::problem::Problem;
use torre_compiler::resolve::Resolved;
use torre_grammar::source::Source;
use torre_runtime::budget;
use torre_runtime::files::LoadedFiles;
use torre_runtime::gpu::{CudaDevice, Device, DeviceModel, resident_bytes};
use torre_runtime::plan::Planner;
use torre_runtime::plan::gpu::{self, DevicePlan};
use torre_runtime::program::TargetChoice;
use torre_runtime::rates::Computer;
use torre_runtime::run::{Pauses, memory};
use torre_runtime::simulation::SetupError;

pub fn plan(args: &args::Plan, voice: &Voice) -> Result<(), Failure> {
    let source = input::source(&args.subject.file)?;
    let resolved = input::inspected(&args.subject, voice)?;
    let target = args.how.target(args.threads.threads)?;
    if target == Target::Gpu {
        return plan_on_device(args, voice, &source, &resolved);
    }
    let swept = args.holding.is_window_in_files();
    if args.holding.is_given() && !swept {
        return Err(Failure::usage(window::ONLY_CUDA));
    }
    if args.how.target != TargetChoice::Host {
        return Err(Failure::usage(
            "`--target` names a GPU here, such as `sm_90`: for processors, plans are made where the rates were \
             measured",
        ));
    }
    let threads = schedule::threads(args.threads.threads, &resolved);
    let planner = Planner::new(&resolved.scheme).map_err(SetupError::from)?;
    if swept {
        return plan_sweep(args, &resolved, &source, threads);
    }
    let rates = Rates::asked(args.rates.rates, &args.how, voice)?;
    let planned = schedule::plan(&args.schedule, &source, &resolved, threads, &rates)?;
    let planned = planned.weighed(&resolved, Compiler::of(args.how.backend))?;
    if target == Target::Either {
        let asked = Asked {
            how: &args.how,
            schedule: &args.schedule,
            source: &source,
            resolved: &resolved,
            holding: &args.holding,
            every: None,
            rates: &rates,
        };
        if let Some(gpu) = asked.faster(planned.expected.rate(), voice) {
            let available = gpu.device().free_memory()?;
            let OnGpu {
                model,
                plan,
                choices,
                held,
                learned_rates,
                expected,
                ..
            } = &gpu;
            let subject = gap::Subject::new(&resolved.scheme, plan, held.as_ref(), model, &rates);
            let gap = subject.map(|subject| subject.known()).transpose()?;
            return show_on_device(
                args,
                voice,
                &ShownOnDevice {
                    gap: gap.flatten(),
                    resolved: &resolved,
                    plan,
                    held: held.as_ref(),
                    choices,
                    learned_rates,
                    expected,
                    model,
                    available,
                },
            );
        }
    }
    let shown = Shown {
        problem: &resolved.problem,
        planner: &planner,
        planned: &planned,
        file_bytes: LoadedFiles::bytes(&resolved.scheme),
        available: budget::available().map(|a| a.bytes),
    };
    if !write::report(args.report.as_deref(), &format!("{:#}\n", shown.json()))? {
        write::result(&shown.text())?;
    }
    Ok(())
}

/// The plan of a run over files on the processor.
fn plan_sweep(
    args: &args::Plan,
    resolved: &Resolved,
    source: &Source,
    threads: usize,
) -> Result<(), Failure> {
    sweep::check_options(&args.holding, &args.schedule)?;
    let plan = sweep::plan(
        &args.holding,
        resolved,
        0,
        Pauses {
            every: None,
            frames: true,
        },
    )?;
    let rates = Rates::modelled();
    let in_memory = schedule::plan(sweep::SCHEDULE, source, resolved, threads, &rates)?;
    let rate = in_memory.expected.modelled;
    let planner = Planner::new(&resolved.scheme).map_err(SetupError::from)?;
    let shown = Shown {
        problem: &resolved.problem,
        planner: &planner,
        planned: &in_memory,
        file_bytes: LoadedFiles::bytes(&resolved.scheme),
        available: budget::available().map(|a| a.bytes),
    };
    let mut json = shown.json();
    let expected = sweep::expected_rate(&plan, resolved, rate);
    let more = json!({
        "predicted_gcells_per_s": expected * 1e-9,
        "in_memory_gcells_per_s": rate * 1e-9,
        "window": sweep::json(&plan, resolved),
    });
    report::extend(&mut json, more);
    if !write::report(args.report.as_deref(), &format!("{json:#}\n"))? {
        write::result(&sweep::text(&plan, resolved, rate))?;
    }
    Ok(())
}

/// The plan of a run on a GPU: the one that is here, or a usual one of the kind that is named.
fn plan_on_device(
    args: &args::Plan,
    voice: &Voice,
    source: &Source,
    resolved: &Resolved,
) -> Result<(), Failure> {
    let numbers = args.how.numbers();
    let here =
        || matches!(CudaDevice::count(), Ok((count, _)) if numbers.iter().all(|n| *n < count));
    let (model, available) = match (&args.how.target, &args.how.devices) {
        (TargetChoice::Host, _) => {
            let (devices, model) = device::all(numbers, &args.how.target)?;
            (model, device::free_memory(&devices, numbers)?)
        }
        (_, Some(_)) if here() => {
            let (devices, model) = device::all(numbers, &args.how.target)?;
            (model, device::free_memory(&devices, numbers)?)
        }
        (named, _) => {
            let model = device::target(named)?;
            let memory = model.facts.memory;
            (model, memory)
        }
    };
    let rates = Rates::asked(args.rates.rates, &args.how, voice)?;
    let computer = Computer::of_devices(&model.facts, numbers.len());
    let learned_rates =
        rates.learned_rates(resolved, Some(computer).filter(|_| rates.is_learning()));
    let (mut plan, choices) =
        device::plan(&args.schedule, source, resolved, &model, &learned_rates)?;
    let question = Question {
        holding: &args.holding,
        schedule: &args.schedule,
        resolved,
        model: &model,
        devices: numbers.len(),
        share: args.how.devices.as_ref().map_or(1.0, Devices::share),
        free: available,
        every: None,
    };
    let held = question.decide(&mut plan, &choices)?;
    let subject = gap::Subject::new(&resolved.scheme, &plan, held.as_ref(), &model, &rates);
    let gap = subject.map(|subject| subject.known()).transpose()?;
    let shown = ShownOnDevice {
        gap: gap.flatten(),
        resolved,
        plan: &plan,
        held: held.as_ref(),
        choices: &choices,
        learned_rates: &learned_rates,
        expected: &window::expected(held.as_ref(), &learned_rates, &plan, &choices),
        model: &model,
        available,
    };
    show_on_device(args, voice, &shown)
}

fn show_on_device(
    args: &args::Plan,
    voice: &Voice,
    shown: &ShownOnDevice<'_>,
) -> Result<(), Failure> {
    if let Some(note) = &shown.plan.note {
        voice.note(note);
    }
    if !write::report(args.report.as_deref(), &shown.json())? {
        write::result(&shown.text())?;
    }
    Ok(())
}

struct ShownOnDevice<'a> {
    resolved: &'a Resolved,
    plan: &'a DevicePlan,
    /// `None`: all values, with one time block at a time.
    held: Option<&'a Held>,
    /// Between planes, if that is known.
    gap: Option<Gap>,
    /// All members of the family that the GPU runs, the one that the model likes best first.
    choices: &'a [Choice],
    learned_rates: &'a LearnedRates,
    expected: &'a Expected,
    model: &'a DeviceModel,
    /// Bytes of its memory.
    available: u64,
}

impl ShownOnDevice<'_> {
    /// Bytes of the GPU's memory that a run needs.
    fn needed(&self) -> u64 {
        let Resolved {
            scheme, problem, ..
        } = self.resolved;
        resident_bytes(scheme, problem, &self.plan.kernels)
    }

    fn sizes(&self) -> Sizes {
        Sizes::new(&self.resolved.scheme, &self.resolved.problem)
    }

    fn text(&self) -> String {
        let Choice {
            schedule: order,
            prediction,
            ..
        } = &self.plan.choice;
        let mut out = schedule::title(&self.plan.choice);
        out.push('\n');
        // Writing to a string cannot fail.
        if self.plan.time_blocks.is_some() {
            let _ = writeln!(out, "  {order}");
        }
        let _ = writeln!(out, "  rate      {:>8} Gcells/s", gcells(prediction.rate));
        if self.held.is_none() {
            out.push_str(&learned_text(self.expected, &self.plan.choice));
        }
        for (name, value) in [
            ("caches", prediction.cache_bytes),
            ("memory", prediction.memory_bytes),
        ] {
            let _ = writeln!(out, "  {name}    {value:8.1} bytes per cell-step");
        }
        if let Some(time_blocks) = &self.plan.time_blocks {
            out.push_str(&time_blocks_text(time_blocks));
        }
        if let Some(held) = self.held {
            out.push_str(&window::text(held));
            out.push_str(&learned_text(self.expected, &self.plan.choice));
        }
        if let Some(gap) = &self.gap {
            let _ = writeln!(out, "  {}", gap.text());
        }
        let _ = writeln!(
            out,
            "  kernels   {:8}\n  fields    {}; {} of the GPU's memory available",
            self.plan.kernels.kernels.len(),
            bytes(self.needed()),
            bytes(self.available),
        );
        out.push_str(&incoming_text(&self.sizes()));
        let _ = writeln!(
            out,
            "  device    {}, copies at {:.0} GB/s",
            gpu::line(&self.model.facts),
            self.model.copy_rate * 1e-9,
        );
        out.push_str(&considered(
            &self.plan.choice,
            self.choices,
            self.learned_rates,
        ));
        out
    }

    fn json(&self) -> String {
        let Resolved {
            scheme, problem, ..
        } = self.resolved;
        let mut value = choice_json(&self.plan.choice);
        let learned = self.expected.learned();
        let towers = self.plan.towers().map(towers_json);
        let patches = self.plan.patches().map(patches_json);
        let more = json!({
            "torre": env!("CARGO_PKG_VERSION"),
            "scheme": scheme.name,
            "problem": problem.name,
            "domain": report::domain(scheme),
            "precision": scheme.precision.to_string(),
            "towers": towers,
            "pyramids": patches,
            "note": self.plan.note,
            "window": self.held.map(window::json),
            "planes": self.gap.as_ref().map(Gap::json),
            "target": self.model.gpu.name,
            "device": device::json(&self.model.facts, Some(self.model.copy_rate)),
            "device_memory_bytes": self.needed(),
            "incident": incoming_json(&self.sizes()),
            "available_memory_bytes": self.available,
            "predicted_gcells_per_s": self.expected.modelled * 1e-9,
            "in_memory_gcells_per_s": self.plan.choice.prediction.rate * 1e-9,
            "learned_gcells_per_s": learned.map(|rate| rate * 1e-9),
            "learned": self.expected.json(),
            "alternatives": alternatives(&self.plan.choice, self.choices, self.learned_rates),
        });
        report::extend(&mut value, more);
        format!("{value:#}\n")
    }
}

/// The cost of the incident fields of a problem, if it has any.
fn incoming_text(sizes: &Sizes) -> String {
    if sizes.places == 0 {
        return String::new();
    }
    let most = if sizes.exact { "" } else { "at most " };
    format!(
        "  incident  {most}{} corrected values, {} of them unlike each other in a step; {} of tables\n",
        sizes.places,
        sizes.waves,
        bytes(memory::corrections(sizes)),
    )
}

fn incoming_json(sizes: &Sizes) -> Option<Value> {
    (sizes.places > 0).then(|| {
        json!({
            "corrected_values": sizes.places,
            "waves_per_step": sizes.waves,
            "table_bytes": memory::corrections(sizes),
            "exact": sizes.exact,
        })
    })
}

struct Shown<'a> {
    problem: &'a Problem,
    planner: &'a Planner<'a>,
    planned: &'a Planned,
    file_bytes: u64,
    available: Option<u64>,
}

impl Shown<'_> {
    fn sizes(&self) -> Sizes {
        Sizes::new(self.planner.scheme, self.problem)
    }

    fn text(&self) -> String {
        let Planned {
            machine,
            plan,
            choices,
            learned_rates,
            expected,
            weighed,
            ..
        } = self.planned;
        let Choice {
            schedule,
            prediction,
            ..
        } = &plan.choice;
        let domain = report::domain(self.planner.scheme);
        let domain: Vec<String> = domain.iter().map(i64::to_string).collect();
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", schedule::title(&plan.choice));
        let _ = writeln!(out, "  {schedule}");
        let _ = write!(out, "{prediction}");
        out.push_str(&learned_text(expected, &plan.choice));
        let _ = writeln!(out, "  threads   {:8}", machine.threads);
        let _ = writeln!(out, "  kernels   {:8}", plan.kernels.kernels.len());
        out.push_str(&weighed.as_ref().map_or(String::new(), Weighed::text));
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
        let more = plan.more_bytes(&self.planner.layout, machine.threads);
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
        out.push_str(&incoming_text(&self.sizes()));
        let _ = writeln!(out, "  machine   {}", machine::line(machine));
        out.push_str(&considered(&plan.choice, choices, learned_rates));
        out
    }

    fn json(&self) -> Value {
        let scheme = self.planner.scheme;
        let Planned {
            machine,
            plan,
            choices,
            learned_rates,
            expected,
            weighed,
            ..
        } = self.planned;
        let mut value = choice_json(&plan.choice);
        let more = json!({
            "torre": env!("CARGO_PKG_VERSION"),
            "scheme": scheme.name,
            "problem": self.problem.name,
            "domain": report::domain(scheme),
            "precision": scheme.precision.to_string(),
            "threads": machine.threads,
            "kernels": plan.kernels.kernels.len(),
            "compiling": weighed.as_ref().map(Weighed::json),
            "field_memory_bytes": self.planner.layout.bytes(),
            "file_memory_bytes": self.file_bytes,
            "incident": incoming_json(&self.sizes()),
            "available_memory_bytes": self.available,
            "machine": machine::json(machine),
            "in_memory_gcells_per_s": plan.choice.prediction.rate * 1e-9,
            "learned_gcells_per_s": expected.learned().map(|rate| rate * 1e-9),
            "learned": expected.json(),
            "alternatives": alternatives(&plan.choice, choices, learned_rates),
        });
        report::extend(&mut value, more);
        value
    }
}
