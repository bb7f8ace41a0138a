//! Running the `torre` command and looking at the files that it leaves.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The command under test; its code cache stays out of the user's, and no run changes the choice of another one.
pub fn torre() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_torre"));
    command
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env("TORRE_RATES", "modelled")
        .env_remove("NO_COLOR")
        .current_dir(root());
    command
}

/// The command, which ends at signals even where its parent ignores them, as shells let programs in the background do.
pub fn ended_by_signals(mut command: Command) -> Command {
    let reset = || {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: there are no handlers in the new process.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: between fork and exec `signal` alone is called, which may be.
    unsafe { command.pre_exec(reset) };
    command
}

/// The command, which can write no file of more bytes than these.
pub fn limited(mut command: Command, bytes: u64) -> Command {
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    let set = move || {
        // SAFETY: it reads the limit only.
        match unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec `setrlimit` alone is called, which may be.
    unsafe { command.pre_exec(set) };
    command
}

/// What is known of this machine, which is measured once for all tests.
pub fn machine_file() -> String {
    succeed("machine", &[]);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("torre/machine.txt");
    std::fs::read_to_string(path).unwrap()
}

/// Tells the command what is known of this machine, in a folder of the user for caches.
pub fn plant_machine(cache: &Path, text: &str) {
    use std::os::unix::fs::DirBuilderExt;
    let folder = cache.join("torre");
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .unwrap();
    std::fs::write(folder.join("machine.txt"), text).unwrap();
}

/// The folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs the command with arguments separated by blanks, and paths put in for `{0}`, `{1}`, ...
pub fn run(arguments: &str, paths: &[&Path]) -> Output {
    run_by(torre(), arguments, paths)
}

/// Runs a command with such arguments.
pub fn run_by(mut command: Command, arguments: &str, paths: &[&Path]) -> Output {
    let words = arguments.split_whitespace().map(|word| {
        paths
            .iter()
            .enumerate()
            .fold(word.to_owned(), |word, (i, path)| {
                word.replace(&format!("{{{i}}}"), path.to_str().unwrap())
            })
    });
    command.args(words).output().unwrap()
}

/// Runs the command, which must succeed, and returns its stdout.
#[track_caller]
pub fn succeed(arguments: &str, paths: &[&Path]) -> String {
    let output = run(arguments, paths);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "torre {arguments}: {}\n{stderr}",
        output.status
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the command, which must end with this status, and returns its stderr.
#[track_caller]
pub fn fail(status: i32, arguments: &str, paths: &[&Path]) -> String {
    let output = run(arguments, paths);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        output.status.code(),
        Some(status),
        "torre {arguments}\n{stderr}"
    );
    stderr
}

/// Whether LLVM is there; a test that needs it says that it is skipped.
pub fn has_llvm() -> bool {
    let facts: serde_json::Value =
        serde_json::from_str(&succeed("machine --report json", &[])).unwrap();
    let found = !facts["llvm"].is_null();
    if !found {
        println!("skipped: no LLVM");
    }
    found
}

/// All files under a folder by their relative paths, in order.
pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// The files of results: all but the report, which has times in it.
pub fn results(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = files(folder);
    found.remove("report.json");
    found
}

#[track_caller]
pub fn assert_same_files(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>, case: &str) {
    let names = |m: &BTreeMap<String, Vec<u8>>| m.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(a), names(b), "{case}");
    for (name, bytes) in a {
        assert!(*bytes == b[name], "{case}: {name} differs");
    }
}

/// A file for NumPy in single precision. `shape`: as Python writes it.
pub fn npy_of_f32(shape: &str, values: &[f32]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    let head = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    bytes.extend(format!("{head:117}\n").bytes());
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

/// The bytes of the values of a `.npy` file.
pub fn npy_values(bytes: &[u8]) -> &[u8] {
    assert_eq!(&bytes[..6], b"\x93NUMPY");
    let length = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    &bytes[10 + length..]
}

/// The examples with their texts, in order, made small enough for every back end.
pub fn examples() -> Vec<(String, String)> {
    let folder = root().join("examples");
    let mut found: Vec<(String, String)> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "torre"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            let text = match name.as_str() {
                "08-maxwell42" => text
                    .replace("256 x 256 x 256", "52 x 40 x 36")
                    .replace("(64, 64, 64)", "(21, 20, 18)")
                    .replace("(100, 64, 64)", "(30, 20, 18)")
                    .replace("z = 128 every 20", "z = 17 every 2")
                    .replace("64*h", "20*h"),
                "03-wave3d-order8" => text.replace("96 x 64 x 64", "72 x 40 x 36"),
                "12-elastic3d" => text
                    .replace("72 x 72 x 72", "40 x 36 x 36")
                    .replace("z < 54", "z < 27")
                    .replace("(36, 36, 36)", "(20, 18, 18)")
                    .replace("(36, 50, 36)", "(20, 25, 18)")
                    .replace("z = 36", "z = 18"),
                _ => text,
            };
            (name, text)
        })
        .collect();
    found.sort();
    assert!(found.len() >= 10);
    found
}

/// Writes an example, with its arrays, into a folder.
pub fn place_example(folder: &Path, name: &str, text: &str) -> PathBuf {
    let media = folder.join("media");
    std::fs::create_dir_all(&media).unwrap();
    for entry in std::fs::read_dir(root().join("examples/media")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "npy") {
            std::fs::copy(&path, media.join(path.file_name().unwrap())).unwrap();
        }
    }
    let path = folder.join(format!("{name}.torre"));
    std::fs::write(&path, text).unwrap();
    path
}

/// A calculation with two time levels, a source, probes, reductions, recorded slices, slices from memory, and volumes.
const POND: &str = "
use std::wave::wave_2d

problem pond {
  scheme   wave_2d
  domain   SIZE x 70
  boundary x: pmc | pec, y: periodic
  init     u = exp(-((x - 20) / 4)^2 - ((y - 30) / 6)^2)
  source   u at (10, 11) += sin(t / 3)
  probe    u at (25, 31) as near
  probe    u at (40, 69) as far
  record   energy = sum(u^2) every 4
  record   top = max(abs(u)) in y = 9..33
  output   slice u x = 20 every 3
  output   volume u every 8
  steps    STEPS
}
";

/// The calculation of `POND` on `size` times 70 cells, as a file in a folder.
pub fn pond(folder: &Path, size: u32, steps: u32) -> PathBuf {
    let path = folder.join("pond.torre");
    let text = POND
        .replace("SIZE", &size.to_string())
        .replace("STEPS", &steps.to_string());
    std::fs::write(&path, text).unwrap();
    path
}

/// Whether a file is complete, as far as its format shows.
pub fn assert_complete(name: &str, bytes: &[u8]) {
    let whole = match name.rsplit('.').next().unwrap() {
        "npy" => {
            let header = String::from_utf8_lossy(&bytes[..128]);
            let size = if header.contains("<f8") { 8 } else { 4 };
            let shape = header.split("'shape': (").nth(1).unwrap();
            let shape = shape.split(')').next().unwrap();
            let count: usize = shape
                .split(',')
                .filter_map(|n| n.trim().parse::<usize>().ok())
                .product();
            header.contains('[') || npy_values(bytes).len() == count * size
        }
        "png" | "apng" => bytes.ends_with(b"IEND\xaeB`\x82"),
        "json" => serde_json::from_slice::<serde_json::Value>(bytes).is_ok(),
        "csv" => bytes.ends_with(b"\n"),
        "vti" | "pvd" => bytes.trim_ascii_end().ends_with(b"</VTKFile>"),
        // Its checksums are tested by resuming from it.
        "checkpoint" => true,
        other => panic!("a file of an unknown kind: {name} ({other})"),
    };
    assert!(whole, "{name} is cut short");
}

/// Temporary names and locks are allowed after a kill, and only then.
pub fn is_temporary(name: &str) -> bool {
    name.ends_with(".part") || name == ".torre.lock"
}

/// Text as it is without the lines that a narrow terminal needs.
pub fn unwrapped(text: &str) -> String {
    text.replace("\n  | ", " ")
}

/// A folder with a program.
pub fn written(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program.torre");
    std::fs::write(&path, text).unwrap();
    let name = path.display().to_string();
    (folder, name)
}

/// A run that ends when this is dropped.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// The error with which the run ends.
    pub fn error(&mut self) -> String {
        let mut error = String::new();
        let stderr = self.0.stderr.as_mut().unwrap();
        std::io::Read::read_to_string(stderr, &mut error).unwrap();
        assert_eq!(self.0.wait().unwrap().code(), Some(1), "{error}");
        error
    }
}

/// A pond for a run that takes long, with few pictures.
pub fn long_pond(folder: &Path) -> PathBuf {
    let source = pond(folder, 300, 40_000_000);
    let every = std::fs::read_to_string(&source).unwrap();
    std::fs::write(&source, every.replace("every 8", "every 80")).unwrap();
    source
}

/// Starts a run with results and checkpoints in two folders, and waits until it has written a checkpoint.
pub fn start_with_checkpoints(source: &Path, [out, state]: [&Path; 2]) -> Running {
    let mut command = torre();
    command.args(["run", "--quiet", "--threads", "1", "--backend", "cranelift"]);
    command.arg(source).arg("--out").arg(out);
    command.arg("--checkpoint").arg(state);
    command.args(["--every", "160"]).stderr(Stdio::piped());
    start_until(&mut command, &state.join("state.checkpoint"))
}

/// Starts a run that takes long, and waits until there is a file of it.
pub fn start_until(command: &mut Command, file: &Path) -> Running {
    let running = Running(command.stdin(Stdio::null()).spawn().unwrap());
    let begun = Instant::now();
    while !file.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(2));
    }
    running
}
