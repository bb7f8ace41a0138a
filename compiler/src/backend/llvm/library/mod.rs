//! LLVM's C API: the library, compilation of textual IR, and machine code in memory.
//!
//! ```text
//! Library::open() ──> &'static Library                     found once per process, versions 22 to 23
//! Cpu::host(library) | Cpu::named("x86-64-v3") | Gpu::named("sm_90")
//! compile(library, ir, &target, &Options)  ──> Object      relocatable machine code, as bytes
//! Jit::load(library, &object)              ──> Jit         the same in memory, ready to run
//! unsafe { jit.entry::<F>("kernel") }      ──> Entry<F>    a function pointer that keeps its code alive
//! ```
//!
//! Types, constants and declarations of the C API come from the crate `llvm-sys`; `api` is the table of the functions
//! that are called. This folder alone holds the unsafe code of the LLVM back end. It is also the one part of the compiler that looks
//! at the file system and the environment: to find the library.

#[cfg(all(feature = "llvm-dlopen", feature = "llvm-static"))]
compile_error!(
    "LLVM is opened at run time (`llvm-dlopen`, a default feature) or linked (`llvm-static`), not both: \
     to link it, build with `--no-default-features --features cranelift,llvm-static`"
);

mod api;
mod compile;
mod error;
mod handle;
mod jit;
#[cfg(feature = "llvm-dlopen")]
mod search;
mod target;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use compile::{Level, Object, Options, Passes, compile, compile_to_asm, optimise};
pub use error::{Attempt, Error, NotFound};
pub use jit::{Entry, Jit};
pub use target::{Cpu, Target};

use api::Api;

/// The major versions of LLVM that the printed IR is written for. Older versions do not reject intrinsics that they
/// do not know, but call them as functions, so the lower end is strict.
pub const SUPPORTED_VERSIONS: std::ops::RangeInclusive<u32> = 22..=23;

/// A version of LLVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Decides whether the library serves.
    pub major: u32,
    /// The release within the major version.
    pub minor: u32,
    /// The correction of the release.
    pub patch: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A usable LLVM: its functions bound, its code generators registered, its fatal errors routed to us.
///
/// There is one per process, and it is never unloaded: LLVM keeps global state that outlives every user.
pub struct Library {
    api: Api,
    version: Version,
    /// The file, or nothing where LLVM is linked into the executable.
    path: Option<PathBuf>,
}

impl Library {
    /// The LLVM of this process. The first call searches and loads it, which takes milliseconds; a failure is
    /// remembered as well, so that the answer is the same for all who ask.
    pub fn open() -> Result<&'static Library, Error> {
        static LIBRARY: OnceLock<Result<Library, NotFound>> = OnceLock::new();
        LIBRARY
            .get_or_init(Self::load)
            .as_ref()
            .map_err(|tried| Error::NotFound(tried.clone()))
    }

    /// The version that the library reports.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The file the library was loaded from, or `None` where it is linked into the executable.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    #[cfg(feature = "llvm-dlopen")]
    fn load() -> Result<Self, NotFound> {
        let opened = search::open(&search::Places::of_process())?;
        Ok(Self::start(opened.api, Some(opened.path)))
    }

    #[cfg(not(feature = "llvm-dlopen"))]
    fn load() -> Result<Self, NotFound> {
        let api = Api::linked();
        let version = api.version();
        if !SUPPORTED_VERSIONS.contains(&version.major) {
            return Err(NotFound::linked(version));
        }
        Ok(Self::start(api, None))
    }

    /// Registers the code generators and the handler of fatal errors, once per process.
    fn start(api: Api, path: Option<PathBuf>) -> Self {
        // SAFETY: the handler is a function and so lives for ever, and it does not unwind. The initialisers take
        // no arguments and only fill LLVM's registry of targets; no other thread uses this LLVM before the `OnceLock`
        // that runs us has its value.
        unsafe {
            (api.LLVMInstallFatalErrorHandler)(Some(error::on_fatal_error));
            for initialise in api.target_initialisers() {
                initialise();
            }
        }
        let version = api.version();
        Self { api, version, path }
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library")
            .field("version", &self.version)
            .field("path", &self.path)
            .finish()
    }
}
