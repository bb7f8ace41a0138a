//! `torre machine`: the facts of this machine.

use crate::args;
use crate::codes;
use crate::device;
use crate::failure::Failure;
use crate::rates;
use crate::report::bytes;
use crate::write;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use torre_compiler::backend::llvm::library::{Cpu, Library};
use torre_compiler::cost::Machine;
use torre_grammar::diag::Diagnostic;
use torre_runtime::budget;
use torre_runtime::cache::Cache;
use torre_runtime::host::{measure, threads};
use torre_runtime::plan::gpu as plan;
use torre_runtime::rates::{GapStore, Store};

pub fn machine(args: &args::Machine) -> Result<(), Failure> {
    let threads = threads::available();
    let store = Store::of_user();
    let forgotten = !args.forget || (store.forget() & GapStore::of_user().forget());
    if !forgotten {
        let place = store.path().map_err(ToString::to_string);
        let place = place.map_or_else(|error| error, |path| format!("`{}`", path.display()));
        let message = format!("learned rates cannot be removed: {place}");
        return Err(Diagnostic::error(codes::UNWRITABLE, message).into());
    }
    let measured = match args.measure {
        true => measure::measure_again(threads),
        false => measure::measured(threads),
    };
    let mut facts = facts();
    facts.push(fact(
        "measured",
        "measured",
        json(&measured.machine),
        format!(
            "{}; {} of the last level",
            measured_rates(&measured.machine),
            bytes(measured.machine.l3)
        ),
    ));
    let (value, text) = rates::shown(&store, &measured);
    facts.push(fact("learned", "learned", value, text));
    if args.report.is_some() {
        let map: serde_json::Map<String, Value> = facts
            .iter()
            .map(|fact| (fact.key.to_owned(), fact.value.clone()))
            .collect();
        write::result(&format!("{:#}\n", Value::from(map)))
    } else {
        let mut text = String::new();
        for fact in &facts {
            text.push_str(&format!("{:<12}{}\n", fact.title, fact.text));
        }
        write::result(&text)
    }
}

/// The data of a machine for the model of schedules, for reports.
pub fn json(machine: &Machine) -> Value {
    json!({
        "cpu": cpu_name(),
        "threads": machine.threads,
        "l1_bytes": machine.l1,
        "l2_bytes": machine.l2,
        "l3_bytes": machine.l3,
        "l2_gb_per_s": machine.l2_rate * 1e-9,
        "l3_gb_per_s": machine.l3_rate * 1e-9,
        "l3_gb_per_s_of_all": machine.l3_rate_all * 1e-9,
        "l3_gb_per_s_from_a_quarter": machine.l3_rate_far * 1e-9,
        "memory_gb_per_s_of_one_core": machine.memory_rate * 1e-9,
        "memory_gb_per_s": machine.memory_rate_all * 1e-9,
        "vector_operations_per_s": machine.vector_rate,
        "vector_operations_per_s_of_all": machine.vector_rate_all,
        "vector_operations_per_s_of_slowest": machine.vector_rate_slowest,
        "vector_bytes": machine.vector_bytes,
    })
}

/// The same in a line.
pub fn line(machine: &Machine) -> String {
    format!(
        "{}, {} thread{}, L2 {}, L3 {}; {}",
        cpu_name(),
        machine.threads,
        if machine.threads == 1 { "" } else { "s" },
        bytes(machine.l2),
        bytes(machine.l3),
        measured_rates(machine),
    )
}

/// The measured rates, in GB/s read and written together.
fn measured_rates(machine: &Machine) -> String {
    let gb = |rate: f64| format!("{:.0}", rate * 1e-9);
    format!(
        "a core {} GB/s from L2, {} from L3, {} from memory; all cores {} from memory",
        gb(machine.l2_rate),
        gb(machine.l3_rate),
        gb(machine.memory_rate),
        gb(machine.memory_rate_all),
    )
}

struct Fact {
    key: &'static str,
    title: &'static str,
    value: Value,
    text: String,
}

fn fact(
    key: &'static str,
    title: &'static str,
    value: impl Into<Value>,
    text: impl Into<String>,
) -> Fact {
    Fact {
        key,
        title,
        value: value.into(),
        text: text.into(),
    }
}

fn facts() -> Vec<Fact> {
    let name = cpu_name();
    let cores = threads::available();
    let mut facts = vec![
        fact("cpu", "processor", name.clone(), name),
        fact("threads", "threads", cores, cores.to_string()),
    ];
    let caches = caches();
    let texts: Vec<String> = caches
        .iter()
        .map(|c| format!("L{} {}", c.level, bytes(c.bytes)))
        .collect();
    let values: Vec<Value> = caches
        .iter()
        .map(|c| json!({"level": c.level, "bytes": c.bytes, "shared_by": c.shared_by}))
        .collect();
    facts.push(fact("caches", "caches", values, texts.join(", ")));
    if let Some(memory) = budget::available() {
        let text = format!("{} available", bytes(memory.bytes));
        facts.push(fact("memory_bytes", "memory", memory.bytes, text));
    }
    facts.push(llvm());
    facts.push(gpus());
    let cranelift = cfg!(feature = "cranelift");
    let text = match cranelift {
        true => "built in",
        false => "not built in",
    };
    facts.push(fact("cranelift", "Cranelift", cranelift, text));
    let cache = Cache::of_user();
    let path = cache.directory().map(|d| d.display().to_string());
    let text = match (&path, cache.refusal()) {
        (Some(path), _) => path.clone(),
        (None, Some(refusal)) => format!("none: {refusal}"),
        (None, None) => "none".to_owned(),
    };
    facts.push(fact("cache", "code cache", path, text));
    facts
}

fn gpus() -> Fact {
    match device::found() {
        Ok(devices) => {
            let values: Vec<Value> = devices
                .iter()
                .map(|(f, rate)| device::json(f, *rate))
                .collect();
            let texts: Vec<String> = devices
                .iter()
                .map(|(facts, rate)| {
                    let rate = rate.map_or_else(String::new, |rate| {
                        format!(", copies at {:.0} GB/s", rate * 1e-9)
                    });
                    format!("{}, {}{rate}", plan::line(facts), bytes(facts.memory))
                })
                .collect();
            fact("gpus", "GPUs", values, texts.join("; "))
        }
        Err(error) => fact("gpus", "GPUs", Value::Array(Vec::new()), error.to_string()),
    }
}

fn llvm() -> Fact {
    match Library::open() {
        Ok(library) => {
            let version = library.version().to_string();
            let path = library.path().map(|p| p.display().to_string());
            let cpu = Cpu::host(library).ok();
            let vectors = cpu.as_ref().map(|c| c.vector_bits);
            let target = cpu.map(|c| c.target.cpu);
            let mut text = version.clone();
            if let (Some(target), Some(bits)) = (&target, vectors) {
                text.push_str(&format!(" for {target} with vectors of {bits} bits"));
            }
            if let Some(path) = &path {
                text.push_str(&format!(", {path}"));
            }
            let value =
                json!({"version": version, "path": path, "cpu": target, "vector_bits": vectors});
            fact("llvm", "LLVM", value, text)
        }
        Err(error) => fact("llvm", "LLVM", Value::Null, error.to_string()),
    }
}

/// The processor's name as its maker gives it.
pub fn cpu_name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("model name"))
        .and_then(|rest| rest.split_once(':'))
        .map_or_else(
            || std::env::consts::ARCH.to_owned(),
            |(_, name)| name.trim().to_owned(),
        )
}

struct CacheLevel {
    level: u32,
    bytes: u64,
    /// Threads of the machine that share it.
    shared_by: usize,
}

/// The data caches that the first core sees, from the innermost out.
fn caches() -> Vec<CacheLevel> {
    let root = Path::new("/sys/devices/system/cpu/cpu0/cache");
    let mut found: Vec<CacheLevel> = (0..16)
        .filter_map(|i| {
            let folder = root.join(format!("index{i}"));
            let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
            if read("type")?.trim() == "Instruction" {
                return None;
            }
            let size = read("size")?;
            let kib: u64 = size.trim().strip_suffix('K')?.parse().ok()?;
            Some(CacheLevel {
                level: read("level")?.trim().parse().ok()?,
                bytes: kib * 1024,
                shared_by: shared(read("shared_cpu_list")?.trim()),
            })
        })
        .collect();
    found.sort_by_key(|c| c.level);
    found
}

/// The number of CPUs in a list such as `0-3,8`.
fn shared(list: &str) -> usize {
    list.split(',')
        .filter_map(|part| match part.split_once('-') {
            Some((lo, hi)) => {
                let (lo, hi): (usize, usize) = (lo.parse().ok()?, hi.parse().ok()?);
                Some(hi.saturating_sub(lo) + 1)
            }
            None => part.parse::<usize>().ok().map(|_| 1),
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::shared;

    #[test]
    fn lists_of_cpus_are_counted() {
        assert_eq!(shared("0-3,8,10-11"), 7);
        assert_eq!(shared("0"), 1);
        assert_eq!(shared(""), 0);
    }
}
