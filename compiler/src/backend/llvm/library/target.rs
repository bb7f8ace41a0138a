//! The target for which code is generated.

use std::fmt;

/// A processor in LLVM's terms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Architecture, vendor and system: `x86_64-unknown-linux-gnu`.
    pub triple: String,
    /// The processor's name: `znver5`, `x86-64-v3`, `sm_90`.
    pub cpu: String,
    /// Features that it has beyond its name, or lacks: `+avx512f,-sse4a`.
    pub features: String,
}

impl Target {
    /// The set of instructions: `x86_64`, `aarch64`.
    pub fn architecture(&self) -> &str {
        architecture(&self.triple)
    }

    /// Whether this is a CPU rather than a GPU.
    pub fn is_cpu(&self) -> bool {
        !self.triple.starts_with("nvptx")
    }
}

/// The first part of a triple.
pub(super) fn architecture(triple: &str) -> &str {
    triple.split('-').next().unwrap_or(triple)
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.cpu, self.triple)
    }
}
