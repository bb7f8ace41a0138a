//! Options for the passes between IR and code.

use std::borrow::Cow;

/// A pipeline in the notation of LLVM's `opt -passes=`.
///
/// Two of its rules: `licm` needs `loop-mssa(licm)`, and `instcombine` needs `<no-verify-fixpoint>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Passes(Cow<'static, str>);

impl Passes {
    /// Nothing.
    pub const NONE: Self = Self(Cow::Borrowed(""));
    /// The passes that explicit vector code for a CPU needs: its arithmetic is in the right form already, so only
    /// addresses and repeated loads are left to simplify. On large kernels this takes a fraction of the time of
    /// `default<O3>`.
    pub const CPU: Self = Self(Cow::Borrowed(
        "function(early-cse,instcombine<no-verify-fixpoint>,loop-mssa(licm),gvn)",
    ));
    /// The passes that PTX needs: the full pipeline, which puts arrays of a thread into registers and saves some.
    pub const PTX: Self = Self(Cow::Borrowed("default<O3>"));

    /// A pipeline of one's own.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self(text.into())
    }

    /// The pipeline's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How hard the code generator tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// The fastest compilation, poor code.
    None,
    /// Quick compilation, tolerable code.
    Less,
    /// Good code.
    Default,
    /// The best code that LLVM knows how to make.
    Aggressive,
}

impl Level {
    /// LLVM's number for it.
    pub fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Less => 1,
            Self::Default => 2,
            Self::Aggressive => 3,
        }
    }
}

/// Options for the passes between IR and code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// The pipeline over the IR.
    pub passes: Passes,
    /// The effort of the code generator after it.
    pub level: Level,
}

impl Options {
    /// The choice for explicit vector code on a CPU.
    pub const CPU: Self = Self {
        passes: Passes::CPU,
        level: Level::Default,
    };
    /// The choice for PTX.
    pub const PTX: Self = Self {
        passes: Passes::PTX,
        level: Level::Aggressive,
    };
}
