//! How much LLVM does for the kernels of a test.

use crate::backend::llvm::library::{Level, Options, Passes};
use std::cell::Cell;

/// How much LLVM does for PTX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// As for users.
    #[default]
    Full,
    /// Little: the full pipeline takes most of the time of tests that compile large kernels for a few cells. It changes
    /// only LLVM's work; the tests that compile with it are about kernels that users get.
    Quick,
    /// Less still: LLVM's code generator, which takes nearly all of the time of `Quick`, does not optimise. That takes
    /// a fifth of the time, and kernels have up to half as many instructions more.
    Least,
}

thread_local! {
    static EFFORT: Cell<Effort> = const { Cell::new(Effort::Full) };
}

impl Effort {
    /// From now on this thread compiles so. Each test says so at its beginning, as tests may share a thread.
    pub fn choose(self) {
        EFFORT.set(self);
    }

    /// The options for PTX of this thread.
    pub(crate) fn options() -> Options {
        let quick = |level| Options {
            passes: Passes::new(
                "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg)",
            ),
            level,
        };
        match EFFORT.get() {
            Effort::Full => Options::PTX,
            Effort::Quick => quick(Level::Less),
            Effort::Least => quick(Level::None),
        }
    }
}
