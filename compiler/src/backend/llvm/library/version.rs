//! Versions of LLVM.

use std::fmt;

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
