//! Errors between IR text and running code, and the handler of errors that end the process.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use super::version::SUPPORTED_VERSIONS;

/// A failure of the LLVM back end's library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No usable LLVM on this machine.
    NotFound(NotFound),
    /// The text is not LLVM IR. This is a bug of the code that printed it.
    Parse { message: String },
    /// The IR breaks a rule of LLVM. This is a bug of the code that printed it.
    Verify { message: String },
    /// The pass pipeline is not one that LLVM knows, or a pass failed.
    Passes { passes: String, message: String },
    /// LLVM cannot make code for this machine.
    Target { target: String, message: String },
    /// The code generator reported errors.
    Codegen { message: String },
    /// The object could not be loaded into the process.
    Load { message: String },
    /// The object has no such symbol, or refers to one that does not exist.
    Symbol { name: String, message: String },
    /// A text that goes to LLVM has a zero byte in it.
    ZeroByte { name: &'static str },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(tried) => tried.fmt(f),
            Self::Parse { message } => write!(f, "LLVM cannot parse the printed IR: {message}"),
            Self::Verify { message } => write!(f, "LLVM rejects the printed IR: {message}"),
            Self::Passes { passes, message } => {
                write!(f, "LLVM cannot run the passes `{passes}`: {message}")
            }
            Self::Target { target, message } => {
                write!(f, "LLVM cannot make code for {target}: {message}")
            }
            Self::Codegen { message } => write!(f, "LLVM cannot generate code: {message}"),
            Self::Load { message } => write!(f, "compiled code cannot be loaded: {message}"),
            Self::Symbol { name, message } => {
                write!(f, "compiled code has no usable symbol `{name}`: {message}")
            }
            Self::ZeroByte { name } => {
                write!(f, "the {name} for LLVM has a zero byte in it")
            }
        }
    }
}

impl std::error::Error for Error {}

/// The search for a libLLVM ended without one; cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound {
    /// Libraries that were looked at, in order, each with the reason why it does not serve.
    pub rejected: Arc<[Attempt]>,
    /// Directories that hold no libLLVM, or do not exist.
    pub empty: Arc<[PathBuf]>,
}

/// One library that does not serve, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Where it lies.
    pub path: PathBuf,
    /// Why it does not serve.
    pub reason: String,
}

#[cfg(not(feature = "llvm-dlopen"))]
impl NotFound {
    /// The LLVM linked into this executable has a version that the IR is not written for.
    pub(super) fn linked(version: super::version::Version) -> Self {
        let attempt = Attempt {
            path: PathBuf::from("the LLVM linked into this executable"),
            reason: unsupported(&version.to_string()),
        };
        Self {
            rejected: Arc::new([attempt]),
            empty: Arc::new([]),
        }
    }
}

/// Why a library of another version does not serve.
pub(super) fn unsupported(version: &str) -> String {
    let (first, last) = (SUPPORTED_VERSIONS.start(), SUPPORTED_VERSIONS.end());
    format!("is LLVM {version}; versions {first} to {last} serve")
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (SUPPORTED_VERSIONS.start(), SUPPORTED_VERSIONS.end());
        writeln!(f, "no LLVM {first} to {last} was found")?;
        for attempt in self.rejected.iter() {
            writeln!(f, "  {}: {}", attempt.path.display(), attempt.reason)?;
        }
        for directory in self.empty.iter() {
            writeln!(f, "  {}: no libLLVM there", directory.display())?;
        }
        write!(
            f,
            "  set TORRE_LLVM to a libLLVM.so or its directory, install the Rust toolchain through rustup, \
             or install llvm-{first}"
        )
    }
}

thread_local! {
    /// The work of LLVM in this thread, for the message of a fatal error.
    static WORK: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Notes the work that this thread is about to ask of LLVM; the note is dropped with the value.
pub(super) struct Work;

impl Work {
    pub fn on(name: String) -> Self {
        WORK.with(|work| *work.borrow_mut() = name);
        Self
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        WORK.with(|work| work.borrow_mut().clear());
    }
}

/// The exit status after a fatal error of LLVM: that of a Rust panic, since it is a bug or a limitation of ours.
const FATAL_STATUS: c_int = 101;

/// Ends the process with a message. LLVM calls this where it cannot go on, for instance for an intrinsic that the
/// chosen processor cannot execute; returning would abort, and unwinding through C++ is not possible.
///
/// Only LLVM may call it; the type of handlers in `llvm-sys` has no `unsafe` to say so.
pub(super) extern "C" fn on_fatal_error(reason: *const c_char) {
    let reason = if reason.is_null() {
        "no reason given".into()
    } else {
        // SAFETY: LLVM passes a string that ends in zero and lives during the call.
        unsafe { CStr::from_ptr(reason) }.to_string_lossy()
    };
    let work = WORK
        .try_with(|work| {
            work.try_borrow()
                .map(|work| work.clone())
                .unwrap_or_default()
        })
        .unwrap_or_default();
    let mut message = format!("torre: LLVM gave up: {}\n", reason.trim_end());
    if !work.is_empty() {
        message.push_str(&format!("  while {work}\n"));
    }
    message.push_str("  this is a bug or a limitation of Torre, not of your program\n");
    // Nothing is left to be told if standard error is closed.
    let _ = std::io::stderr().write_all(message.as_bytes());
    // SAFETY: `_exit` ends the process at once and takes any status. `exit` would run the destructors of LLVM's global
    // state while other threads may still compile.
    unsafe { _exit(FATAL_STATUS) }
}

unsafe extern "C" {
    fn _exit(status: c_int) -> !;
}
