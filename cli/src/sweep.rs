//! Calculations in files that the processor advances: how many steps it does in a pass over them.

use crate::args::Holding;
use crate::codes;
use crate::failure::Failure;
use crate::report::{bytes, bytes_up};
use torre_compiler::cost::gcells;
use torre_compiler::lattice::Axis;
use torre_compiler::layout::Layout;
use torre_compiler::resolve::Resolved;
use torre_grammar::diag::Diagnostic;
use torre_runtime::budget;
use torre_runtime::disk;
use torre_runtime::run::{Passes, Pauses, SWEEP_PIECE, SweepPlan};
use torre_runtime::simulation::SetupError;

/// The share of free memory that is taken where nothing is said.
const SHARE: f64 = 0.75;

/// Pieces of files are no larger than this part of memory, and no smaller than some bytes.
const PARTS: u64 = 48;
const LEAST: u64 = 64 << 10;

/// The order of stages, as `--schedule` names it.
pub const SCHEDULE: &str = "layerwise";

/// Refuses options that have no meaning for the processor.
pub fn check_options(holding: &Holding, schedule: &str) -> Result<(), Failure> {
    if holding.in_flight.is_some() || holding.columns.is_some() {
        return Err(Failure::usage(
            "`--in-flight` and `--columns` go with `--backend cuda`",
        ));
    }
    if !["auto", SCHEDULE].contains(&schedule) {
        return Err(Failure::usage(
            "the processor sweeps over files stage by stage: `--schedule` is `auto` or `layerwise`",
        ));
    }
    Ok(())
}

/// A run over files.
#[derive(Clone, Copy, Debug)]
pub struct PlannedSweep {
    pub plan: SweepPlan,
    passes: Passes,
}

/// The passes of a run that begins at a step.
pub fn plan(
    holding: &Holding,
    resolved: &Resolved,
    from: u64,
    pauses: Pauses,
) -> Result<PlannedSweep, Failure> {
    let plan = sweep(holding, resolved)?;
    let passes = plan.passes(&resolved.problem, from, pauses);
    Ok(PlannedSweep { plan, passes })
}

fn sweep(holding: &Holding, resolved: &Resolved) -> Result<SweepPlan, Failure> {
    let Resolved {
        scheme, problem, ..
    } = resolved;
    let refuse = |message: &str| {
        Diagnostic::error(codes::DEVICE_SCHEDULE, message)
            .hint("the domain has to fit into memory: run without `--window`")
    };
    if scheme.grid.is_periodic(Axis::OUTER) {
        return Err(refuse(
            "a sweep over files does not go around the first axis, which is periodic",
        )
        .into());
    }
    if scheme.grid.axes[Axis::OUTER].is_none() {
        return Err(refuse("a sweep over files goes over the first of several axes").into());
    }
    let layout = Layout::for_files(scheme).map_err(SetupError::from)?;
    let free = budget::available().map(|free| (free.bytes as f64 * SHARE) as u64);
    let free = free.unwrap_or(u64::MAX);
    let available = holding.memory.map_or(free, |most| most.min(free));
    let piece = (available / PARTS).clamp(LEAST, SWEEP_PIECE);
    let mut piece: u64 = 1 << piece.ilog2();
    let plan = |piece| SweepPlan::new(scheme, &layout, problem.steps, available, piece);
    let mut planned = plan(piece);
    // Smaller pieces take less memory.
    while planned.is_err() && piece / 2 >= LEAST {
        piece /= 2;
        planned = plan(piece);
    }
    if planned.is_err() {
        planned = SweepPlan::narrow(scheme, &layout, problem.steps, available, LEAST);
    }
    planned.map_err(|needed| {
        let message = format!(
            "a sweep over files takes {} of memory at least, and {} are available",
            bytes_up(needed),
            bytes(available)
        );
        Diagnostic::error(codes::MEMORY, message)
            .hint("allow more with `--memory`, or make the last two axes shorter")
            .into()
    })
}

/// Cell-steps per second that passes allow over a disk.
fn rate(sweep: &PlannedSweep, resolved: &Resolved) -> f64 {
    let cells = resolved.scheme.grid.cell_count();
    // A run that is at its end already has no passes.
    let steps = match sweep.passes {
        Passes { count: 0, .. } => sweep.plan.steps as f64,
        Passes { count, steps, .. } => steps as f64 / count as f64,
    };
    let moved = 2.0 * sweep.plan.array as f64;
    steps * cells * crate::window::DISK / moved
}

/// Cell-steps per second that are expected, where the processor reaches some rate in memory.
pub fn expected_rate(sweep: &PlannedSweep, resolved: &Resolved, in_memory: f64) -> f64 {
    rate(sweep, resolved).min(in_memory)
}

/// How the files are gone over, in a sentence, if there is a step left to do.
pub fn note(sweep: &PlannedSweep, resolved: &Resolved, holding: &Holding) -> Option<String> {
    let PlannedSweep { plan, passes } = sweep;
    if passes.count == 0 {
        return None;
    }
    let folder = holding.folder().unwrap_or(std::path::Path::new("."));
    let count = passes.count;
    let shorter = match count > passes.steps.div_ceil(plan.steps) {
        true => format!(", in {count} passes, as results and checkpoints end one"),
        false => String::new(),
    };
    Some(format!(
        "the processor sweeps over the planes of files, {} steps at a time{shorter}; {} are written to `{}`, and as \
         many are read",
        passes.longest,
        bytes(plan.written(&resolved.problem, count)),
        folder.display()
    ))
}

/// A plan, line by line; the processor reaches some rate in memory.
pub fn text(sweep: &PlannedSweep, resolved: &Resolved, in_memory: f64) -> String {
    let PlannedSweep { plan, passes } = sweep;
    let layout = Layout::for_files(&resolved.scheme);
    let files = layout.map_or(0, |layout| disk::needed(&layout));
    format!(
        "sweeps over files\n  passes    {:>8} of {} steps at most; {} of memory\n  files     {:>8} on the disk; {} \
         written in a run, and as much read\n  expected  {:>8} Gcells/s; the disk allows {}\n",
        passes.count,
        passes.longest,
        bytes(plan.bytes),
        bytes(files),
        bytes(plan.written(&resolved.problem, passes.count)),
        gcells(expected_rate(sweep, resolved, in_memory)),
        gcells(rate(sweep, resolved)),
    )
}

/// The same for reports.
pub fn json(sweep: &PlannedSweep, resolved: &Resolved) -> serde_json::Value {
    let PlannedSweep { plan, passes } = sweep;
    serde_json::json!({
        "steps_of_a_pass": passes.longest,
        "passes": passes.count,
        "memory_bytes": plan.bytes,
        "bytes_of_an_array": plan.array,
        "written_bytes": plan.written(&resolved.problem, passes.count),
        "transfers_allow_gcells_per_s": rate(sweep, resolved) * 1e-9,
    })
}
