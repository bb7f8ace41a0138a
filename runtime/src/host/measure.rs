//! Measures this computer for the model of schedules, once; the result is kept in the user's cache folder.

use super::contention::Waiting;
use super::threads;
use super::vectors::{Block, Vectors};
use super::waiting::Barrier;
use sha2::{Digest, Sha256};
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use torre_compiler::cost::Machine;
use torre_trust::{Fault, Folder, Refusal};

/// Changes when the measured quantities, or the ways of measuring, change.
const VERSION: &str = "torre-machine 6";

/// The file of measurements in the user's cache folder.
const FILE: &str = "machine.txt";

/// The time for which measurements hold that were made while others used the machine.
const DOUBTFUL: Duration = Duration::from_secs(1800);

/// Held while a process measures: two that measure at once would each find half a machine.
const LOCK: &str = "machine.lock";

/// How long another process is waited for. A measurement takes about a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many times as much as its own cache a core sweeps over in the shared cache.
const NEAR: u64 = 4;

/// The share of the shared cache that cores sweep over when it is asked whether they have it, and the factor by which
/// less is tried where they do not.
const TRIED: f64 = 0.9;
const LESS: f64 = std::f64::consts::FRAC_1_SQRT_2;
/// The part of the way from the rate of memory to the one of the shared cache beyond which data stay there.
const NEARER: f64 = 2.0 / 3.0;

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
    find(Folder::of_user(&["torre"]).ok().as_ref(), threads)
}

/// Measures in any case, and stores the result.
pub fn measure_again(threads: usize) -> Measured {
    let folder = Folder::of_user(&["torre"]).ok();
    let _ = folder.as_ref().map(|folder| folder.remove(FILE));
    find(folder.as_ref(), threads)
}

fn find(folder: Option<&Folder>, threads: usize) -> Measured {
    let Some(folder) = folder else {
        let (machine, _) = measure(threads);
        return Measured {
            machine,
            doubtful: true,
        };
    };
    if let Some(known) = read(folder, threads) {
        return known;
    }
    let lock = folder.lock(LOCK, PATIENCE);
    // Another process may have measured meanwhile.
    if let Some(known) = read(folder, threads) {
        return known;
    }
    let (machine, busy) = measure(threads);
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
        let text = write(&machine, busy.then(now));
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

/// The earlier measurements, if the file is the user's, of this machine, and possible.
fn read(folder: &Folder, threads: usize) -> Option<Measured> {
    let (_, bytes) = folder.read(FILE, MAX_BYTES).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let mut lines = text.lines();
    if lines.next()? != identity() {
        return None;
    }
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

/// Bytes of the first core's cache of a level, from sysfs; `None` where it does not say.
fn cache_bytes(level: u32) -> Option<u64> {
    let base = Path::new("/sys/devices/system/cpu/cpu0/cache");
    let mut found = None;
    for entry in fs::read_dir(base).ok()?.flatten() {
        let text = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        if text("level").trim() == level.to_string() && text("type").trim() != "Instruction" {
            let size = text("size");
            let size = size.trim();
            let (digits, unit) = size.split_at(size.trim_end_matches(char::is_alphabetic).len());
            let factor = match unit {
                "K" => 1 << 10,
                "M" => 1 << 20,
                _ => 1,
            };
            found = digits.parse::<u64>().ok().map(|n| n * factor);
        }
    }
    found
}

/// Measurements that take some hundredths of a second. Where the host of a virtual machine lets others share its cores,
/// cores are slow at times: the best round counts for one core alone, and the mean for cores side by side.
struct Round {
    l2_rate: f64,
    l3_rate: f64,
    l3_rate_all: f64,
    l3_rate_far: f64,
    /// Vector operations of one core alone, and of each of all cores at the same time.
    alone: f64,
    together: Vec<f64>,
}

impl Round {
    fn mean(&self) -> f64 {
        self.together.iter().sum::<f64>() / self.together.len() as f64
    }

    fn slowest(&self) -> f64 {
        self.together.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// Also says whether others used the machine meanwhile.
fn measure(threads: usize) -> (Machine, bool) {
    let l1 = cache_bytes(1).unwrap_or(32 << 10);
    let l2 = cache_bytes(2).unwrap_or(1 << 20);
    let l3 = cache_bytes(3).unwrap_or(8 << 20).max(l2);
    // Far more than the shared cache, which may be larger than this machine can see, but a small part of free memory.
    let free = crate::budget::available().map_or(1 << 30, |a| a.bytes / 4);
    let far = (16 * l3).clamp(256 << 20, 1 << 30).min(free);
    // A few times as much as the cores' own caches hold, as tiles have of which some rows do not stay there; a quarter
    // of the shared cache is more where many cores have it in common, and others of the same host as well.
    let near_l3 = |cores: u64| (NEAR * l2 * cores).min(l3 / 2).max(2 * l2 * cores).min(l3);
    let cores = threads::available();
    let waiting = Waiting::default();
    let round = || Round {
        l2_rate: sweep_rate(1, l2 / 2, &waiting),
        l3_rate: sweep_rate(1, near_l3(1), &waiting),
        l3_rate_all: sweep_rate(cores, near_l3(cores as u64), &waiting),
        l3_rate_far: sweep_rate(1, (l3 / 4).max(2 * l2).min(l3), &waiting),
        alone: vector_rates(1, &waiting)[0],
        together: vector_rates(cores, &waiting),
    };
    // Rounds lie between the longer measurements, so that they meet the machine at different moments.
    let first = round();
    let memory_rate = sweep_rate(1, far, &waiting);
    let second = round();
    let memory_rate_all = sweep_rate(cores, far, &waiting);
    let rounds = [first, second, round()];
    let l3_rate_all = rounds.iter().map(|r| r.l3_rate_all).fold(0.0, f64::max);
    // A cache that is larger than the memory which may be swept over counts as large as that.
    let faster = l3_rate_all - memory_rate_all;
    let nearness = |bytes| {
        let rate = sweep_rate(cores, bytes, &waiting);
        // The size of a cache that is no faster than memory does not matter.
        if faster > 0.0 {
            (rate - memory_rate_all) / faster
        } else {
            1.0
        }
    };
    let usable = usable(l3.min(far), near_l3(cores as u64), nearness);
    let most = |rate: fn(&Round) -> f64| rounds.iter().map(rate).fold(0.0, f64::max);
    let mean = |rate: fn(&Round) -> f64| rounds.iter().map(rate).sum::<f64>() / rounds.len() as f64;
    let machine = Machine {
        threads,
        cores,
        l1,
        l2,
        l3: usable,
        l2_rate: most(|round| round.l2_rate),
        l3_rate: most(|round| round.l3_rate),
        l3_rate_all,
        l3_rate_far: most(|round| round.l3_rate_far),
        memory_rate,
        memory_rate_all,
        vector_rate: most(|round| round.alone),
        vector_rate_all: mean(Round::mean) * cores as f64,
        vector_rate_slowest: mean(Round::slowest),
        vector_bytes: Vectors::of_this_processor().bytes,
    };
    (machine, waiting.is_busy())
}

/// The part of a shared cache of `bytes` that all cores of this machine have together, at least `least`, which they
/// were seen to have. The host of a virtual machine gives a part of it to each, or others fill it; the system says the
/// size of the whole. `nearness`: where the rate of a sweep over a number of bytes lies between the rate of memory, 0,
/// and the rate of the cache, 1.
fn usable(bytes: u64, least: u64, mut nearness: impl FnMut(u64) -> f64) -> u64 {
    let mut of = |part: f64| nearness((TRIED * part) as u64);
    let least = least as f64;
    let mut part = (bytes as f64).max(least);
    let mut near = of(part);
    while part > least && near < NEARER {
        let less = (LESS * part).max(least);
        let found = if less > least { of(less) } else { 1.0 };
        // Between two sizes the logarithm is in proportion: a little more or less of it changes no choice.
        let back = if found < NEARER {
            1.0
        } else {
            (NEARER - near) / (found - near)
        };
        part *= (less / part).powf(back);
        near = found;
    }
    part as u64
}

/// Multiply-adds of vectors per second of each of `count` cores at the same time; of one core where `count` threads
/// cannot be started.
fn vector_rates(count: usize, waiting: &Waiting) -> Vec<f64> {
    let vectors = Vectors::of_this_processor();
    let barrier = Barrier::new(count);
    let rates = Mutex::new(Vec::new());
    let run = threads::run(count, |_| {
        barrier.wait();
        let rate = waiting.during(|| vectors.rate());
        if let Ok(mut rates) = rates.lock() {
            rates.push(rate);
        }
    });
    match (run, rates.into_inner()) {
        (Ok(()), Ok(rates)) if !rates.is_empty() => rates,
        _ => vec![vectors.rate()],
    }
}

/// Bytes read and written per second by `count` cores that each sweep over their part of `bytes`, in place and by
/// vectors as long as the ones of kernels; by one core where `count` threads cannot be started, and a guess where
/// not even one can. The memory asks for huge pages, as the one of calculations does.
fn sweep_rate(count: usize, bytes: u64, waiting: &Waiting) -> f64 {
    let each = (bytes as usize / count / size_of::<Block>()).max(16);
    let each_bytes = each * size_of::<Block>();
    let sweeps = (64 << 20) / each_bytes + 2;
    let vectors = Vectors::of_this_processor();
    let barrier = Barrier::new(count);
    let total = Mutex::new(0.0f64);
    let run = threads::run(count, |_| {
        let mut data: Vec<Block> = Vec::with_capacity(each);
        ask_for_huge_pages(&mut data);
        data.resize(each, Block::ONES);
        let mut sweep = || {
            vectors.sweep(&mut data);
            black_box(data.first());
        };
        sweep();
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            barrier.wait();
            let seconds = waiting.during(|| {
                let start = Instant::now();
                for _ in 0..sweeps {
                    sweep();
                }
                start.elapsed().as_secs_f64()
            });
            best = best.min(seconds);
        }
        if let Ok(mut total) = total.lock() {
            *total += (sweeps * each_bytes * 2) as f64 / best.max(1e-9);
        }
    });
    match (run, total.into_inner()) {
        (Ok(()), Ok(total)) if total > 0.0 => total,
        _ if count == 1 => 1e9,
        _ => sweep_rate(1, bytes, waiting),
    }
}

/// A wish, before the memory is first used.
fn ask_for_huge_pages(data: &mut Vec<Block>) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        const PAGE: usize = 4096;
        let start = data.as_mut_ptr().cast::<u8>();
        let skipped = start.align_offset(PAGE);
        let bytes = data.capacity() * size_of::<Block>();
        if skipped < bytes {
            // SAFETY: the pages begin in the vector's memory; the advice changes no values, on the last page either.
            let _ = unsafe {
                let first = start.add(skipped).cast();
                madvise(first, bytes - skipped, Advice::LinuxHugepage)
            };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = data;
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
    fn what_is_measured_is_possible() {
        let vectors = Vectors::of_this_processor();
        assert!([8, 16, 32, 64].contains(&vectors.bytes));
        // From a slow interpreter of instructions to two units of 10 GHz.
        assert!((1e6..2e10).contains(&vectors.rate()));
        for blocks in [0, 1, 3] {
            let mut data = vec![Block::ONES; blocks];
            vectors.sweep(&mut data);
            assert!(data.iter().all(Block::is_swept));
        }
        let waiting = Waiting::default();
        waiting.during(|| black_box(sweep_rate(1, 1 << 16, &Waiting::default())));
        assert!(
            (0.0..=1.0).contains(&waiting.share()),
            "{}",
            waiting.share()
        );
    }

    #[test]
    fn a_machine_has_the_part_of_a_cache_that_stays() {
        for (bytes, least, stay) in [
            (480 << 20, 16 << 20, 80 << 20),
            (300 << 20, 128 << 20, 290 << 20),
            (32 << 20, 8 << 20, 1 << 20),
            (8 << 20, 8 << 20, 0),
            (1 << 40, 1, 0),
        ] {
            let mut tried = 0;
            let part = usable(bytes, least, |n| {
                tried += 1;
                if n <= stay { 1.0 } else { 0.0 }
            });
            assert!((least..=bytes).contains(&part), "{bytes}");
            let whole = stay as f64 / TRIED;
            assert!(part as f64 <= whole / LESS || part == least, "{part}");
            assert!(part as f64 >= whole * LESS || part == bytes, "{part}");
            assert!(tried <= 81, "{tried}");
        }
    }

    /// A rate that falls slowly gives a size near the one at which it falls below the limit, whatever sizes were tried.
    #[test]
    fn the_part_of_a_cache_that_stays_does_not_jump() {
        for bytes in (100..=480).step_by(5) {
            let of = |n: u64| {
                let log = (n as f64 / f64::from(60 << 20)).log2();
                (1.0 - log / 2.0).clamp(0.0, 1.0)
            };
            let part = usable(bytes << 20, 8 << 20, of) as f64;
            let exact = f64::from(60 << 20) * (2.0 * (1.0 - NEARER)).exp2() / TRIED;
            assert!(
                (0.93..1.07).contains(&(part / exact)),
                "{bytes}: {part} of {exact}"
            );
        }
    }

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
        assert_eq!(find(Some(&folder), 2), measured);
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
