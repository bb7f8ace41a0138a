//! This computer as the model of schedules sees it: measured once, and kept in the user's cache folder.

use super::speeds;
use super::threads;
use sha2::{Digest, Sha256};
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use torre_compiler::cost::Machine;
use torre_trust::{Fault, Folder, Refusal};

/// Changes when the measured quantities, or the ways of measuring, change.
const VERSION: &str = "torre-machine 6";

/// The file of measurements in the user's cache folder. Machines that share a home directory, and numbers of cores,
/// have sections of their own, with an empty line between them; the latest is the first.
const FILE: &str = "machine.txt";

/// Sections of the file.
const MACHINES: usize = 32;

/// The time for which measurements hold that were made while others used the machine.
const DOUBTFUL: Duration = Duration::from_secs(1800);

/// Held while a process measures: two that measure at once would each find half a machine.
const LOCK: &str = "machine.lock";

/// How long another process is waited for. A measurement takes about a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// Longer files are not read.
const MAX_BYTES: u64 = 1 << 16;

/// The age after which a temporary file is taken for one that a killed process left behind.
const ABANDONED: Duration = Duration::from_secs(3600);

/// A machine, and how far its measurements can be relied on.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub machine: Machine,
    /// Others used the machine meanwhile, or it could not be kept: it is measured again before long.
    pub doubtful: bool,
}

impl Measured {
    /// The processor, the threads of a run, and the measured rates, in a line: two that are equal give equal
    /// predictions.
    pub fn key(&self) -> String {
        let Machine {
            threads, l2, l3, ..
        } = self.machine;
        let rates = Sha256::digest(write(&self.machine, None).as_bytes());
        let rates: String = rates.iter().take(4).map(|b| format!("{b:02x}")).collect();
        format!(
            "{}, {threads} threads, L2 {l2}, L3 {l3}, measured {rates}",
            processor()
        )
    }
}

/// The machine as measured before, or now; `threads` is the number of threads of the run.
///
/// Sizes of caches come from the system, but for the shared one of machines that get only a part of it. Takes a
/// second or two the first time.
pub fn machine(threads: usize) -> Machine {
    measured(threads).machine
}

/// The same, with how far it can be relied on.
pub fn measured(threads: usize) -> Measured {
    find(
        Folder::of_user(&["torre"]).ok().as_ref(),
        threads,
        Stored::Used,
    )
}

/// Measures in any case, and stores the result.
pub fn measure_again(threads: usize) -> Measured {
    find(
        Folder::of_user(&["torre"]).ok().as_ref(),
        threads,
        Stored::Ignored,
    )
}

/// Earlier measurements of the machine.
#[derive(Clone, Copy)]
enum Stored {
    Used,
    Ignored,
}

fn find(folder: Option<&Folder>, threads: usize, stored: Stored) -> Measured {
    let Some(folder) = folder else {
        let (machine, _) = speeds::measure(threads);
        return Measured {
            machine,
            doubtful: true,
        };
    };
    let known = || match stored {
        Stored::Used => read(folder, threads),
        Stored::Ignored => None,
    };
    if let Some(known) = known() {
        return known;
    }
    let lock = folder.lock(LOCK, PATIENCE);
    // Another process may have measured meanwhile.
    if let Some(known) = known() {
        return known;
    }
    let (machine, busy) = speeds::measure(threads);
    // Measurements that two processes make at once are not kept. Where locks do not work at all, no other process is
    // known.
    let alone = !matches!(
        lock,
        Err(Refusal::Place {
            fault: Fault::Locked,
            ..
        })
    );
    let mut kept = false;
    if alone {
        // A file that cannot be written costs a second next time.
        let _ = folder.remove_abandoned(|name| name == FILE, ABANDONED);
        let text = beside_others(folder, &write(&machine, busy.then(now)));
        kept = folder.write(FILE, text.as_bytes()).is_ok();
    }
    Measured {
        machine,
        doubtful: busy || !kept,
    }
}

/// The processor's name as its maker gives it.
fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|l| l.strip_prefix("model name"));
    let name = name.and_then(|l| l.split_once(':'));
    name.map_or("unknown", |(_, name)| name.trim()).to_owned()
}

/// The key of a measurement: it tells machines apart that share a home directory, and builds for debugging, whose code
/// is slow, from others.
fn identity() -> String {
    let model = processor();
    let slow = match cfg!(debug_assertions) {
        true => ", not optimised",
        false => "",
    };
    format!("{VERSION}{slow}; {model}; {} cores", threads::available())
}

/// Seconds since 1970.
fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

/// With the time at which it was measured if it is to be measured again.
fn write(m: &Machine, doubtful_since: Option<f64>) -> String {
    let doubtful = doubtful_since.map_or(String::new(), |at| format!("doubtful {at:.0}\n"));
    let sizes = [
        ("l1", m.l1),
        ("l2", m.l2),
        ("l3", m.l3),
        ("vector_bytes", m.vector_bytes as u64),
    ];
    let rates = [
        ("l2_rate", m.l2_rate),
        ("l3_rate", m.l3_rate),
        ("l3_rate_all", m.l3_rate_all),
        ("l3_rate_far", m.l3_rate_far),
        ("memory_rate", m.memory_rate),
        ("memory_rate_all", m.memory_rate_all),
        ("vector_rate", m.vector_rate),
        ("vector_rate_all", m.vector_rate_all),
        ("vector_rate_slowest", m.vector_rate_slowest),
    ];
    let sizes = sizes.map(|(name, bytes)| format!("{name} {bytes}\n"));
    let rates = rates.map(|(name, rate)| format!("{name} {rate:e}\n"));
    let [sizes, rates] = [sizes.concat(), rates.concat()];
    format!("{}\n{doubtful}{sizes}{rates}", identity())
}

/// The stored text, if the file is the user's.
fn stored(folder: &Folder) -> Option<String> {
    let (_, bytes) = folder.read(FILE, MAX_BYTES).ok()?;
    String::from_utf8(bytes).ok()
}

/// A section with the latest sections of other machines that this version measured, as the file's text.
fn beside_others(folder: &Folder, section: &str) -> String {
    let stored = stored(folder).unwrap_or_default();
    let name = |section: &str| section.lines().next().unwrap_or_default().to_owned();
    let others = stored.split("\n\n");
    let others = others.filter(|o| name(o).starts_with(VERSION) && name(o) != name(section));
    let sections = std::iter::once(section).chain(others).map(str::trim_end);
    let sections: Vec<&str> = sections.take(MACHINES).collect();
    format!("{}\n", sections.join("\n\n"))
}

/// The earlier measurements, if they are of this machine, and possible.
fn read(folder: &Folder, threads: usize) -> Option<Measured> {
    let text = stored(folder)?;
    let is_own = |section: &&str| section.lines().next() == Some(identity().as_str());
    let lines = text.split("\n\n").find(is_own)?.lines().skip(1);
    let values: Vec<(&str, f64)> = lines
        .filter_map(|l| l.split_once(' '))
        .filter_map(|(k, v)| Some((k, v.parse().ok()?)))
        .collect();
    let get = |name: &str, least: f64, most: f64| {
        let found = values.iter().find(|(k, _)| *k == name).map(|(_, v)| *v);
        found.filter(|v| (least..=most).contains(v))
    };
    let doubtful = values.iter().any(|(k, _)| *k == "doubtful");
    if doubtful {
        let oldest = now() - DOUBTFUL.as_secs_f64();
        get("doubtful", oldest, now() + 1.0)?;
    }
    let bytes = |name| get(name, 1024.0, 1e13).map(|bytes| bytes as u64);
    let rate = |name| get(name, 1e6, 1e16);
    let machine = Machine {
        threads,
        cores: threads::available(),
        l1: bytes("l1")?,
        l2: bytes("l2")?,
        l3: bytes("l3")?,
        l2_rate: rate("l2_rate")?,
        l3_rate: rate("l3_rate")?,
        l3_rate_all: rate("l3_rate_all")?,
        l3_rate_far: rate("l3_rate_far")?,
        memory_rate: rate("memory_rate")?,
        memory_rate_all: rate("memory_rate_all")?,
        vector_rate: rate("vector_rate")?,
        vector_rate_all: rate("vector_rate_all")?,
        vector_rate_slowest: rate("vector_rate_slowest")?,
        vector_bytes: get("vector_bytes", 8.0, 1024.0)? as usize,
    };
    Some(Measured { machine, doubtful })
}

/// A machine as there are many.
#[cfg(test)]
pub(crate) fn usual(threads: usize) -> Machine {
    Machine {
        threads,
        cores: threads::available(),
        l1: 32 << 10,
        l2: 1 << 20,
        l3: 32 << 20,
        l2_rate: 1.5e11,
        l3_rate: 7.25e10,
        l3_rate_all: 1.45e11,
        l3_rate_far: 7e10,
        memory_rate: 3e10,
        memory_rate_all: 6e10,
        vector_rate: 8.9e9,
        vector_rate_all: 8.9e9 * threads::available() as f64,
        vector_rate_slowest: 8.9e9,
        vector_bytes: 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_stored_machine_reads_back() {
        let machine = usual(2);
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::below(scratch.path(), &["torre"]).expect("a folder");
        let put = |text: &str| folder.write(FILE, text.as_bytes()).expect("a file");
        put(&write(&machine, None));
        let measured = Measured {
            machine: machine.clone(),
            doubtful: false,
        };
        assert_eq!(read(&folder, 2).as_ref(), Some(&measured));
        assert_eq!(find(Some(&folder), 2, Stored::Used), measured);
        let mut other = measured.clone();
        assert_eq!(other.key(), measured.key());
        other.machine.l3_rate *= 1.0 + f64::EPSILON;
        assert_ne!(other.key(), measured.key());
        for (age, holds) in [
            (1.0, true),
            (DOUBTFUL.as_secs_f64() + 5.0, false),
            (-60.0, false),
        ] {
            put(&write(&machine, Some(now() - age)));
            let found = read(&folder, 2);
            assert_eq!(found.map(|m| m.doubtful), holds.then_some(true), "{age}");
        }
        put("another machine\nl2 3\n");
        assert_eq!(read(&folder, 2), None);
        let own = write(&machine, None);
        let other = |n: usize| format!("{VERSION}; another machine; {n} cores\nl2 3\n");
        put(&other(0));
        for n in 1..MACHINES + 5 {
            put(&beside_others(&folder, &own));
            assert_eq!(read(&folder, 2).as_ref(), Some(&measured));
            put(&beside_others(&folder, &other(n)));
            assert_eq!(read(&folder, 2).as_ref(), Some(&measured));
        }
        let text = stored(&folder).expect("a text");
        assert_eq!(text.split("\n\n").count(), MACHINES);
        assert_eq!(text.matches(&identity()).count(), 1);
        put(&text.replace(VERSION, "torre-machine 1"));
        assert_eq!(beside_others(&folder, &own), own);
        for (value, other) in [
            ("l2 1048576", "l2 nan"),
            ("l2 1048576", "l2 1e300"),
            ("l2 1048576", "l2 0"),
            ("l2_rate 1.5e11", "l2_rate inf"),
            ("l2_rate 1.5e11", "l2_rate -1"),
            ("vector_bytes 64", "vector_bytes 1e18"),
            ("vector_rate_slowest", "vector_rate_least"),
            ("l1 32768\n", ""),
        ] {
            let text = write(&machine, None);
            let changed = text.replace(value, other);
            assert_ne!(text, changed);
            put(&changed);
            assert_eq!(read(&folder, 2), None, "{other}");
        }
        put(&(write(&machine, None) + &"\n".repeat(1 << 16)));
        assert_eq!(read(&folder, 2), None, "too long");
        // Any user could have written it.
        put(&write(&machine, None));
        let path = folder.path().join(FILE);
        fs::set_permissions(path, fs::Permissions::from_mode(0o666)).expect("a mode");
        assert_eq!(read(&folder, 2), None);
    }
}
