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
//! that are called. This folder alone holds the unsafe code of the LLVM back end. It is also the one part of the
//! compiler that looks at the file system and the environment: to find the library.

#[cfg(all(feature = "llvm-dlopen", feature = "llvm-static"))]
compile_error!(
    "LLVM is opened at run time (`llvm-dlopen`, a default feature) or linked (`llvm-static`), not both: \
     to link it, build with `--no-default-features --features cranelift,llvm-static`"
);

mod api;
mod compile;
mod cpu;
mod error;
mod handle;
mod jit;
mod options;
#[cfg(feature = "llvm-dlopen")]
mod search;
mod target;
mod version;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use compile::{Object, compile, compile_to_asm, optimise};
pub use cpu::Cpu;
pub use error::{Attempt, Error, NotFound};
pub use jit::{Entry, Jit};
pub use options::{Level, Options, Passes};
pub use target::Target;
pub use version::{SUPPORTED_VERSIONS, Version};

use api::Api;

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
    /// remembered as well, so that the answer is the same for all callers.
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
