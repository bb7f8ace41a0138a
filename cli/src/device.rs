//! GPUs as the command line knows them.

use crate::codes;
use crate::failure::{Exit, Failure};
use crate::rates::LearnedRates;
use crate::schedule;
use serde_json::{Value, json};
use torre_compiler::backend::gpu::Gpu;
use torre_compiler::cost::Choice;
use torre_compiler::resolve::Resolved;
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::Source;
use torre_runtime::gpu::{CudaDevice, CudaPeers, Device, DeviceError, DeviceModel, Facts};
use torre_runtime::plan::gpu::{DevicePlan, DevicePlanner, NoDevicePlan};
use torre_runtime::program::TargetChoice;
use torre_runtime::simulation::SetupError;

/// The target of code where no device determines it.
const USUAL: &str = "sm_90";

/// Lets as many queues of a GPU run beside each other as its driver can. By default it has 8 connections for them, and
/// a queue that waits holds up the queues that share its connection.
pub fn connect_queues() {
    const CONNECTIONS: &str = "CUDA_DEVICE_MAX_CONNECTIONS";
    if std::env::var_os(CONNECTIONS).is_none_or(|text| text.is_empty()) {
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var(CONNECTIONS, "32") };
    }
}

/// Whether a target is the name of a GPU.
pub fn is_gpu(target: &TargetChoice) -> bool {
    matches!(target, TargetChoice::Named(name) if name.starts_with("sm_"))
}

/// The GPU that computes, with its device model; code for it or for another one whose code it runs.
pub fn opened(
    number: Option<usize>,
    choice: &TargetChoice,
) -> Result<(CudaDevice, DeviceModel), Failure> {
    let named = match choice {
        TargetChoice::Named(name) => Some(Gpu::named(name).ok_or_else(|| unknown(name))?),
        TargetChoice::Host => None,
    };
    let device = CudaDevice::open(number.unwrap_or(0))?;
    let model = DeviceModel::of(&device, named, device.copy_rate()?)?;
    Ok((device, model))
}

/// The GPUs that compute together, with the device model of the first one; all are of its kind.
pub fn all(numbers: &[usize], choice: &TargetChoice) -> Result<(CudaPeers, DeviceModel), Failure> {
    let (first, model) = opened(numbers.first().copied(), choice)?;
    let mut devices = vec![first];
    for number in numbers.iter().skip(1) {
        let other = CudaDevice::open(*number)?;
        let [one, another] = [devices[0].facts(), other.facts()];
        if (one.capability, one.multiprocessors) != (another.capability, another.multiprocessors) {
            let message = format!(
                "devices of a run are of one kind, and `--devices` names {} and {}",
                one.name, another.name
            );
            return Err(Failure::new(
                Exit::Usage,
                Diagnostic::error(codes::DEVICES, message),
            ));
        }
        devices.push(other);
    }
    Ok((CudaPeers::new(devices)?, model))
}

/// Bytes of a GPU's memory that no plan counts: the code of modules, the memory of threads for values that registers do
/// not hold, and the rest of the last 2 MiB of each part that is taken. A run loads up to eight modules and takes some
/// ten such parts after its plan was made.
const RESERVE: u64 = 64 << 20;

/// Bytes of memory that plans may take on each of some GPUs; the bytes of a GPU that has several numbers are shared
/// out.
pub fn free_memory(devices: &CudaPeers, numbers: &[usize]) -> Result<u64, Failure> {
    let mut least = u64::MAX;
    for (device, number) in devices.devices().iter().zip(numbers) {
        let shares = numbers.iter().filter(|other| *other == number).count();
        let own = device.free_memory()? / shares.max(1) as u64;
        least = least.min(own.saturating_sub(RESERVE));
    }
    Ok(least)
}

/// Bytes of memory that plans may take on GPUs to make code for: the free memory of this machine's GPUs, or all memory
/// of a usual GPU.
pub fn memory(
    choice: &TargetChoice,
    numbers: &[usize],
    model: &DeviceModel,
) -> Result<u64, Failure> {
    match (choice, CudaDevice::count()) {
        (TargetChoice::Host, Ok((count, _))) if numbers.iter().all(|n| *n < count) => {
            let (devices, _) = all(numbers, choice)?;
            free_memory(&devices, numbers)
        }
        _ => Ok(model.facts.memory),
    }
}

/// The GPU to make code for: a usual one of the kind that is named, or that of this machine, or a usual one.
pub fn target(choice: &TargetChoice) -> Result<DeviceModel, Failure> {
    match choice {
        TargetChoice::Named(name) => usual(name),
        TargetChoice::Host => match CudaDevice::open(0) {
            Ok(device) => Ok(DeviceModel::of(&device, None, device.copy_rate()?)?),
            Err(_) => usual(USUAL),
        },
    }
}

/// A usual GPU of a kind.
fn usual(name: &str) -> Result<DeviceModel, Failure> {
    let model = Gpu::named(name).and_then(DeviceModel::usual);
    model.ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = Gpu::all().map(|gpu| gpu.name).collect();
    Failure::new(
        Exit::Usage,
        Diagnostic::error(codes::TARGET, format!("no GPU `{name}` is known"))
            .hint(format!("use one of {}", names.join(", "))),
    )
}

/// The choice of a schedule for a GPU, by the model and by learned rates, with all members of the family that it runs,
/// the one that the model likes best first.
pub fn plan(
    text: &str,
    source: &Source,
    resolved: &Resolved,
    model: &DeviceModel,
    learned_rates: &LearnedRates,
) -> Result<(DevicePlan, Vec<Choice>), Failure> {
    let planner = DevicePlanner::new(&resolved.scheme, &resolved.problem, model);
    let planner = planner.map_err(SetupError::from)?;
    let template = schedule::template(text, source, resolved, &planner.planner)?;
    let best = planner.best_by(&template, |choices| learned_rates.pick(choices));
    best.map_err(|error| refused(error, &planner, model))
}

/// The diagnostic for a schedule that a GPU cannot run.
pub fn refused(error: NoDevicePlan, planner: &DevicePlanner<'_>, model: &DeviceModel) -> Failure {
    match error {
        NoDevicePlan::Any(error) => schedule::refused(error, &planner.planner),
        NoDevicePlan::Refused {
            schedule,
            refusal,
            fits,
        } => Diagnostic::error(
            codes::DEVICE_SCHEDULE,
            format!("{} cannot run `{schedule}`: {refusal}", model.facts.name),
        )
        .hint(fits)
        .into(),
    }
}

/// The newest CUDA that a device's driver knows.
pub fn cuda(facts: &Facts) -> String {
    format!("{}.{}", facts.cuda / 1000, facts.cuda % 1000 / 10)
}

/// The facts of a device, for reports.
pub fn json(facts: &Facts, copy_rate: Option<f64>) -> Value {
    json!({
        "name": facts.name,
        "compute_capability": format!("{}.{}", facts.capability / 10, facts.capability % 10),
        "cuda": cuda(facts),
        "multiprocessors": facts.multiprocessors,
        "memory_bytes": facts.memory,
        "l2_bytes": facts.l2,
        "l2_partitions": facts.partitions(),
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
