//! Kills at system calls and at instants, damaged checkpoints and damaged arrays: no data are lost or mistaken for
//! others.
//!
//! `TORRE_TEST_SOAK=1000` does a thousand of each, instead of a few.

use crate::support::*;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How many of each are done: `usual`, or the number in the environment.
fn count(usual: u64) -> u64 {
    let asked = std::env::var("TORRE_TEST_SOAK").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// A sequence of numbers without a pattern (splitmix64).
struct Numbers(u64);

impl Numbers {
    /// A number below a limit, which is not 0.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// How a traced process ended.
#[derive(Debug, PartialEq)]
enum Ended {
    /// By itself, with a status, after a number of calls.
    Exited {
        status: i32,
        calls: u64,
    },
    Killed,
}

/// System calls that change files on the disk, or lock them.
const CALLS: [libc::c_long; 15] = [
    libc::SYS_openat,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_ftruncate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_flock,
    libc::SYS_close,
    libc::SYS_exit_group,
    libc::SYS_linkat,
];

/// Runs a command to its end, or kills it before the call of a number, counted over all its threads. Nothing where
/// processes must not be traced.
fn traced(command: &mut Command, kill_before: Option<u64>) -> Option<Ended> {
    let stop = |_: ()| {
        // SAFETY: only marks this process as traced by its parent, between fork and exec.
        match unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: the closure makes one system call, which may be made there.
    unsafe { command.pre_exec(move || stop(())) };
    let child = match command.stdin(Stdio::null()).spawn() {
        Ok(child) => child,
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            println!("skipped: processes must not be traced");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let pid = child.id() as libc::pid_t;
    // Threads of the process, and no threads that other tests started from other threads.
    let wait = |id| {
        let mut status = 0;
        // SAFETY: `status` is a number that may be written.
        let found = unsafe { libc::waitpid(id, &mut status, libc::__WALL | libc::__WNOTHREAD) };
        assert!(found > 0, "{}", std::io::Error::last_os_error());
        (found, status)
    };
    let (_, status) = wait(pid);
    assert!(libc::WIFSTOPPED(status), "{status}");
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
    // SAFETY: the process is stopped, and traced by this thread.
    let set = unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    let go_on = |thread: libc::pid_t, signal: i32| {
        // SAFETY: the thread is stopped, and traced by this one. It may be gone if the process is being killed.
        unsafe { libc::ptrace(libc::PTRACE_SYSCALL, thread, 0, signal) };
    };
    let mut calls = 0;
    let mut killed = false;
    go_on(pid, 0);
    loop {
        let (thread, status) = wait(-1);
        if !libc::WIFSTOPPED(status) {
            if thread != pid {
                continue;
            }
            return Some(match libc::WIFEXITED(status) {
                true => Ended::Exited {
                    status: libc::WEXITSTATUS(status),
                    calls,
                },
                false => {
                    assert!(killed, "a signal ended it: {}", libc::WTERMSIG(status));
                    Ended::Killed
                }
            });
        }
        let signal = match libc::WSTOPSIG(status) {
            call if call == libc::SIGTRAP | 0x80 => {
                if changes_files(thread) {
                    if kill_before == Some(calls) && !killed {
                        // SAFETY: a signal to a process of this test that has not been waited for.
                        unsafe { libc::kill(pid, libc::SIGKILL) };
                        killed = true;
                    }
                    calls += 1;
                }
                0
            }
            libc::SIGTRAP | libc::SIGSTOP => 0,
            other => other,
        };
        go_on(thread, signal);
    }
}

/// Whether a stopped thread is about to make one of these calls.
fn changes_files(thread: libc::pid_t) -> bool {
    // SAFETY: it is plain numbers, for which zeros are valid.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: the thread is stopped, and traced by this one; there is room for the result.
    let got = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size, &raw mut info) };
    if got <= 0 || info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return false;
    }
    // SAFETY: at the entry of a call, this is the part that is written.
    let number = unsafe { info.u.entry.nr };
    CALLS.contains(&(number as libc::c_long))
}

/// Runs a command and kills it after a time, if it has not ended.
fn killed_after(command: &mut Command, time: Duration) -> Ended {
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while begun.elapsed() < time {
        if let Some(status) = child.try_wait().unwrap() {
            let status = status.code().expect("no signal");
            return Ended::Exited { status, calls: 0 };
        }
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    Ended::Killed
}

#[test]
fn kills_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 24);
    let path = |name: &str| folder.path().join(name);
    let run = |format: &str, out: &Path, state: &Path| {
        let mut command = torre();
        let arguments = "run --quiet --save-final --threads 1 --every 5 --format";
        command.args(arguments.split(' ')).arg(format).arg(&source);
        command.arg("--out").arg(out).arg("--checkpoint").arg(state);
        if state.join("state.checkpoint").exists() {
            command.arg("--resume").arg(state);
        }
        command
    };
    let mut numbers = Numbers(1);
    let mut kills = [0; 2];
    for format in ["npy", "zarr", "vtk"] {
        let (whole, state) = (path(&format!("whole-{format}")), path("whole-state"));
        let begun = Instant::now();
        let Some(ended) = traced(&mut run(format, &whole, &state), None) else {
            return;
        };
        let usual = begun.elapsed();
        let Ended::Exited { status: 0, calls } = ended else {
            panic!("{ended:?}");
        };
        assert!(calls > 50, "{calls} calls");
        fs::remove_dir_all(&state).unwrap();
        let whole = results(&whole);
        for number in 0..count(8).div_ceil(3) {
            let (out, state) = (path("out"), path("state"));
            let mut command = run(format, &out, &state);
            let ended = match number % 4 {
                3 => killed_after(&mut command, usual * numbers.below(256) as u32 / 256),
                _ => traced(&mut command, Some(numbers.below(calls))).unwrap(),
            };
            match ended {
                Ended::Killed => kills[usize::from(number % 4 == 3)] += 1,
                Ended::Exited { status, .. } => assert_eq!(status, 0),
            }
            for folder in [&out, &state] {
                if folder.exists() {
                    let found = files(folder);
                    let finished = found.iter().filter(|(name, _)| {
                        !is_temporary(name) && !name.contains(".part/") && !name.contains(".zarr/")
                    });
                    finished.for_each(|(name, bytes)| assert_complete(name, bytes));
                }
            }
            let output = run(format, &out, &state).output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{format} {number}: {error}");
            let mut found = results(&out);
            if format == "zarr" {
                // A run that may be continued keeps the files of which a longer one makes its store.
                found.retain(|name, _| whole.contains_key(name) || !name.starts_with("volumes/"));
            }
            assert_same_files(&whole, &found, &format!("{format} {number}"));
            fs::remove_dir_all(&out).unwrap();
            fs::remove_dir_all(&state).unwrap();
        }
    }
    let [calls, instants] = kills;
    println!("{calls} kills before calls, {instants} at instants");
    assert!(calls > 2);
}

/// A run over files that is killed goes on with the last whole pass, and writes the files of one that was not.
#[test]
fn kills_over_files_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 24);
    let path = |name: &str| folder.path().join(name);
    let run = |out: &Path, window: &Path| {
        let mut command = torre();
        let arguments = "run --quiet --save-final --threads 2 --backend cranelift --memory 4MB";
        command.args(arguments.split(' ')).arg(&source);
        command.arg("--out").arg(out).arg("--window").arg(window);
        if window.join("state.checkpoint").exists() {
            command.arg("--resume").arg(window);
        }
        command
    };
    let plain = path("plain");
    let arguments = "run {0} --quiet --save-final --backend cranelift --out {1}";
    succeed(arguments, &[&source, &plain]);
    let (whole, window) = (path("whole"), path("window"));
    let Some(ended) = traced(&mut run(&whole, &window), None) else {
        return;
    };
    let Ended::Exited { status: 0, calls } = ended else {
        panic!("{ended:?}");
    };
    let whole = results(&whole);
    assert_same_files(&results(&plain), &whole, "in memory and in files");
    // A state is not begun anew by mistake.
    let out = path("out");
    let again = "run {0} --quiet --out {1} --window {2} --memory 4MB --backend cranelift";
    let error = fail(1, again, &[&source, &out, &window]);
    assert!(error.contains("E0812"), "{error}");
    fs::remove_dir_all(&window).unwrap();
    let mut numbers = Numbers(4);
    let (mut kills, mut resumed) = (0, 0);
    for number in 0..count(8) {
        let (out, window) = (path("out"), path("window"));
        let kill = numbers.below(calls);
        match traced(&mut run(&out, &window), Some(kill)).unwrap() {
            Ended::Killed => kills += 1,
            Ended::Exited { status, .. } => assert_eq!(status, 0),
        }
        resumed += u64::from(window.join("state.checkpoint").exists());
        let output = run(&out, &window).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{number} {kill}: {error}");
        assert_same_files(&whole, &results(&out), &format!("{number} {kill}"));
        fs::remove_dir_all(&out).unwrap();
        fs::remove_dir_all(&window).unwrap();
    }
    println!("{kills} kills before calls, {resumed} runs with a state");
    assert!(kills > 2 && resumed > 2, "{kills} {resumed}");
}

/// How a file is damaged.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Bit,
    Byte,
    Zeros,
    Cut,
    More,
    /// The end of the file is that of an earlier one.
    Mixed,
}

const DAMAGES: [Damage; 6] = [
    Damage::Bit,
    Damage::Byte,
    Damage::Zeros,
    Damage::Cut,
    Damage::More,
    Damage::Mixed,
];

/// A damaged copy of a file, different from it.
fn damaged(bytes: &[u8], earlier: &[u8], damage: Damage, numbers: &mut Numbers) -> Vec<u8> {
    loop {
        let mut own = bytes.to_vec();
        // Half of them at the beginning, where the meaning of the rest is written.
        let span = [bytes.len(), bytes.len().min(200)][numbers.below(2) as usize];
        let at = numbers.below(span as u64) as usize;
        match damage {
            Damage::Bit => own[at] ^= 1 << numbers.below(8),
            Damage::Byte => own[at] = numbers.below(256) as u8,
            Damage::Zeros => {
                let end = own.len().min(at + 512);
                own[at..end].fill(0);
            }
            Damage::Cut => own.truncate(at),
            Damage::More => own.extend(vec![0x20; 1 + at]),
            Damage::Mixed => {
                own.truncate(at);
                own.extend(earlier.iter().skip(at));
            }
        }
        if own != bytes {
            return own;
        }
    }
}

#[test]
fn damaged_checkpoints_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 24);
    let path = |name: &str| folder.path().join(name);
    let (state, out) = (path("state"), path("out"));
    let file = state.join("state.checkpoint");
    let common = "run {0} --quiet --threads 1 --out {1}";
    let after = |steps: u64| {
        let arguments = format!("{common} --overwrite --set steps={steps} --checkpoint {{2}}");
        succeed(&arguments, &[&source, &out, &state]);
        fs::read(&file).unwrap()
    };
    let (earlier, bytes) = (after(7), after(13));
    let before = results(&out);
    let mut numbers = Numbers(2);
    let count = count(12);
    for number in 0..count {
        let damage = DAMAGES[(number % 6) as usize];
        let content = damaged(&bytes, &earlier, damage, &mut numbers);
        // A file that is wholly the earlier one is not damaged.
        if content == earlier {
            continue;
        }
        fs::write(&file, &content).unwrap();
        let resume = format!("{common} --resume {{2}}");
        let error = fail(1, &resume, &[&source, &out, &state]);
        assert!(error.contains("E0803"), "{number} {damage:?}: {error}");
        assert!(fs::read(&file).unwrap() == content);
        assert_same_files(&before, &results(&out), "results of before");
    }
    println!("{count} damaged checkpoints");
    fs::write(&file, &bytes).unwrap();
    succeed(
        &format!("{common} --resume {{2}}"),
        &[&source, &out, &state],
    );
}

#[test]
fn damaged_arrays_are_refused_or_read() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("media.torre");
    let text = "
use std::wave::wave_2d
problem media {
  scheme wave_2d
  domain 30 x 20
  coef   c = min(max(file(\"c.npy\"), 0.5), 1)
  init   u = exp(-((x - 20) / 4)^2)
  steps  2
}
";
    fs::write(&source, text).unwrap();
    let array = |value: f32| {
        let values: Vec<f32> = (0..600).map(|n| value + n as f32 / 1e4).collect();
        npy_of_f32("(30, 20)", &values)
    };
    let file = folder.path().join("c.npy");
    let (earlier, bytes) = (array(0.6), array(0.8));
    let arguments = "run {0} --quiet --threads 1 --verify";
    fs::write(&file, &bytes).unwrap();
    succeed(arguments, &[&source]);
    let mut numbers = Numbers(3);
    let mut refused = 0;
    let count = count(12);
    for number in 0..count {
        let damage = DAMAGES[(number % 6) as usize];
        let content = damaged(&bytes, &earlier, damage, &mut numbers);
        fs::write(&file, &content).unwrap();
        let output = run(arguments, &[&source]);
        let error = String::from_utf8_lossy(&output.stderr);
        let is_shorter = content.len() < bytes.len();
        match output.status.code() {
            Some(1) => {
                assert!(error.contains("E0"), "{number} {damage:?}: {error}");
                refused += 1;
            }
            // Values have no checksum, so other ones are values, too.
            Some(0) => assert!(!is_shorter, "{number} {damage:?}"),
            _ => panic!("{number} {damage:?}: {}: {error}", output.status),
        }
    }
    println!("{count} damaged arrays, {refused} refused");
    // All files that were cut short, and some of the damaged headers.
    assert!(refused >= count / 6);
}
