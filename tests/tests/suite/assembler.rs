//! NVIDIA's assembler, and a record of the kernels that it has taken.
//!
//! Compiling and assembling them takes a fifth of the time of all tests, and most changes leave most kernels as they
//! are. So the file `assembled.txt` keeps, for each kernel, the hash of its text for LLVM, with target and version, and
//! the assembler's answer; a kernel whose hash is not there is compiled and assembled. The variable
//! `TORRE_ASSEMBLED=record` makes tests assemble all kernels and write the file anew:
//! `TORRE_ASSEMBLED=record cargo test --release -p torre-suite --test suite assembly::`.

use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};
use tempfile::TempDir;
use torre_compiler::testing::look_first;

const RECORD: &str = include_str!("assembled.txt");
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/assembled.txt");
const HEAD: &str = "# Kernels that NVIDIA's assembler has taken: the hash of the text for LLVM, and the bytes\n\
    # of memory that a thread needs for itself. Tests write this file (assembler.rs).\n";

/// By hash, bytes of memory of a thread.
type Record = BTreeMap<String, u64>;

fn read(text: &str) -> Option<Record> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let entry = |line: &str| {
        let (hash, bytes) = line.split_once(' ')?;
        Some((hash.to_owned(), bytes.parse().ok()?))
    };
    lines.map(entry).collect()
}

/// The kernels of the file.
static KNOWN: LazyLock<Record> = LazyLock::new(|| read(RECORD).expect("lines of the record"));
/// The kernels that this process has assembled for the file.
static RECORDED: Mutex<Record> = Mutex::new(BTreeMap::new());

thread_local! {
    /// Hashes of the texts that this thread has compiled, or would have, since its last check.
    static TEXTS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// What stands for the PTX of a known kernel, which is not compiled.
fn known(text: &str) -> Option<String> {
    let hash = hash(text);
    let found = KNOWN.contains_key(&hash) && !records();
    TEXTS.with_borrow_mut(|texts| texts.push(hash));
    found.then(|| "// A kernel of the record.\n".to_owned())
}

/// Whether the file is written anew.
fn records() -> bool {
    std::env::var_os("TORRE_ASSEMBLED").is_some_and(|value| value == "record")
}

/// The first half of the SHA-256 of a text, in hexadecimal digits.
fn hash(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// While it lives, its thread compiles no kernels of the record.
pub struct Assembler {
    /// The assembler that `TORRE_PTXAS` names, or the one in the path, if there is one.
    program: Option<PathBuf>,
    folder: TempDir,
}

impl Assembler {
    pub fn new() -> Assembler {
        let named = std::env::var_os("TORRE_PTXAS").map_or_else(|| "ptxas".into(), PathBuf::from);
        let output = Command::new(&named).arg("--version").output();
        let works = output.is_ok_and(|output| output.status.success());
        assert!(works || !records(), "no ptxas (`TORRE_PTXAS` names one)");
        look_first(known);
        Assembler {
            program: works.then_some(named),
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    /// Checks that a kernel, of a text that this thread has just compiled, is assembled and that no thread needs memory
    /// of its own.
    pub fn check(&self, ptx: &str, target: &str, name: &str) {
        self.check_up_to(0, ptx, target, name);
    }

    /// The same with at most `most` bytes of memory for a thread.
    pub fn check_up_to(&self, most: u64, ptx: &str, target: &str, name: &str) {
        let bytes = self.frames(ptx, target, name).unwrap_or(0);
        assert!(bytes <= most, "{name}: {bytes} bytes of a thread");
    }

    /// The same for PTX that is written by hand.
    pub fn check_text(&self, ptx: &str, target: &str) {
        known(&format!("{target}\n{ptx}"));
        self.check(ptx, target, target);
    }

    /// The bytes of memory that a thread needs for itself. Nothing, with a line on standard error, if the kernel is not
    /// in the record and there is no assembler.
    pub fn frames(&self, ptx: &str, target: &str, name: &str) -> Option<u64> {
        let [hash] = &TEXTS.take()[..] else {
            panic!("{name}: one text was compiled");
        };
        if let (false, Some(bytes)) = (records(), KNOWN.get(hash)) {
            return Some(*bytes);
        }
        let Some(program) = &self.program else {
            eprintln!("skipped: {name}: not in the record, and no ptxas (`TORRE_PTXAS` names one)");
            return None;
        };
        let bytes = assemble(program, ptx, target, self.folder.path());
        let bytes = bytes.unwrap_or_else(|report| panic!("{name}: {report}"));
        if records() {
            record(hash.clone(), bytes);
        }
        Some(bytes)
    }
}

impl Drop for Assembler {
    fn drop(&mut self) {
        look_first(|_| None);
    }
}

/// Adds a kernel to the file.
fn record(hash: String, bytes: u64) {
    let mut all = RECORDED.lock().expect("no test panics while it writes");
    all.insert(hash, bytes);
    let lines = all.iter().map(|(hash, bytes)| format!("{hash} {bytes}\n"));
    let text: String = std::iter::once(HEAD.to_owned()).chain(lines).collect();
    std::fs::write(FILE, text).expect("a file that can be written");
}

fn assemble(program: &Path, ptx: &str, target: &str, folder: &Path) -> Result<u64, String> {
    let file = folder.join("kernels.ptx");
    std::fs::write(&file, ptx).map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args(["-v", "-arch", target, "-o"])
        .arg(folder.join("kernels.cubin"))
        .arg(&file)
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let frames = text.lines().filter(|line| line.contains("stack frame"));
    let bytes = frames.map(|line| line.split_whitespace().next()?.parse().ok());
    let bytes: Option<Vec<u64>> = bytes.collect();
    match bytes.filter(|_| output.status.success()) {
        Some(bytes) => Ok(bytes.into_iter().max().unwrap_or(0)),
        None => Err(text),
    }
}

/// The record holds kernels by hashes that tell texts apart, and the assembler's errors are found.
#[test]
fn hashes_tell_kernels_apart_and_errors_are_found() {
    let kernel =
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n ret;\n}\n";
    let wrong = kernel.replace("ret;", "add.f33 %r0;");
    let assembler = Assembler::new();
    assert!(!KNOWN.is_empty() && KNOWN.keys().all(|hash| hash.len() == 32));
    assert_ne!(hash(kernel), hash(&wrong));
    let Some(program) = &assembler.program else {
        return;
    };
    let folder = assembler.folder.path();
    assert_eq!(assemble(program, kernel, "sm_90", folder), Ok(0));
    let report = assemble(program, &wrong, "sm_90", folder).expect_err("no instruction");
    assert!(report.contains("line"), "{report}");
}
