//! GPUs as the command line knows them.

use crate::codes;
use crate::failure::{Exit, Failure};
use serde_json::{Value, json};
use torre_compiler::backend::nvptx::Gpu;
use torre_compiler::schedule::{Choice, Schedule};
use torre_compiler::scheme::Scheme;
use torre_grammar::diag::Diagnostic;
use torre_runtime::gpu::{CudaDevice, Device, DeviceError, Facts, predict};
use torre_runtime::host::SetupError;
use torre_runtime::plan::{Plan, Program};
use torre_runtime::program::{TargetChoice, layerwise_kernels};

/// What code is made for where no device says it.
const USUAL: &str = "sm_90";

/// Whether a target is the name of a GPU.
pub fn is_gpu(target: &TargetChoice) -> bool {
    matches!(target, TargetChoice::Named(name) if name.starts_with("sm_"))
}

/// The GPU to make code for: the one that is named, or that of this machine, or a usual one.
pub fn target(target: &TargetChoice) -> Result<Gpu, Failure> {
    let usual = || Gpu::named(USUAL).ok_or_else(|| unknown(USUAL));
    match target {
        TargetChoice::Named(name) => Gpu::named(name).ok_or_else(|| unknown(name)),
        TargetChoice::Host => match CudaDevice::open(0) {
            Ok(device) => torre_runtime::gpu::code::gpu_of(&device).map_err(Failure::from),
            Err(_) => usual(),
        },
    }
}

fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = Gpu::all().map(|gpu| gpu.name).collect();
    Failure::new(
        Exit::Usage,
        Diagnostic::error(codes::TARGET, format!("no GPU `{name}` is known"))
            .hint(format!("use one of {}", names.join(", "))),
    )
}

/// Refuses a schedule that GPUs do not run.
pub fn layerwise_only(schedule: &Schedule) -> Result<(), Failure> {
    match schedule {
        Schedule::Layerwise => Ok(()),
        _ => Err(no_tiles()),
    }
}

/// What is said about tiles.
pub fn no_tiles() -> Failure {
    Failure::usage("GPUs run no tiles: use `--schedule layerwise` or `auto`")
}

/// The plan of a layerwise run on a device.
pub fn plan(scheme: &Scheme, device: &CudaDevice) -> Result<Plan, Failure> {
    let choice: Choice = predict::layerwise(scheme, device.copy_rate()?);
    Ok(Plan {
        choice,
        program: Program::Layerwise,
        kernels: layerwise_kernels(scheme).map_err(SetupError::from)?,
    })
}

/// What is known about a device, for reports.
pub fn json(facts: &Facts, copy_rate: Option<f64>) -> Value {
    json!({
        "name": facts.name,
        "compute_capability": format!("{}.{}", facts.capability / 10, facts.capability % 10),
        "cuda": format!("{}.{}", facts.cuda / 1000, facts.cuda % 1000 / 10),
        "multiprocessors": facts.multiprocessors,
        "memory_bytes": facts.memory,
        "l2_bytes": facts.l2,
        "copy_gb_per_s": copy_rate.map(|rate| rate * 1e-9),
    })
}

/// All devices of this machine with the rates of their memory, or why there are none.
pub fn found() -> Result<Vec<(Facts, Option<f64>)>, DeviceError> {
    let (count, _) = CudaDevice::count()?;
    (0..count)
        .map(|number| {
            let device = CudaDevice::open(number)?;
            Ok((device.facts().clone(), device.copy_rate().ok()))
        })
        .collect()
}
