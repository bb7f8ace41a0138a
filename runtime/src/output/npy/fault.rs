//! Faults of a `.npy` file.

use std::fmt;

/// Headers longer than this are refused: headers of plain arrays are far shorter.
pub const MAX_HEADER: usize = 1 << 16;
/// NumPy's own limit of axes.
pub const MAX_AXES: usize = 64;

/// Why bytes are no `.npy` that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NpyFault {
    /// The file does not start with `\x93NUMPY`.
    Magic,
    /// A version of the format that does not exist yet.
    Version(u8, u8),
    /// The file ends inside its header.
    HeaderEnds,
    /// The header is longer than `MAX_HEADER`.
    HeaderLength(usize),
    /// The dictionary of the header cannot be read at this byte.
    Syntax {
        /// Byte of the dictionary.
        at: usize,
        /// The text that would have fitted there.
        expected: &'static str,
    },
    /// A key that headers do not have, or that comes twice.
    Key(String),
    /// A key that headers must have.
    Missing(&'static str),
    /// A type that is no real number.
    Dtype(String),
    /// Records with named fields.
    Structured,
    /// More axes than NumPy can have.
    Axes(usize),
    /// The number of bytes does not fit the machine.
    TooLarge,
    /// The file is shorter than its shape says.
    Short {
        /// Bytes of a complete file.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
}

impl fmt::Display for NpyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("not a .npy file: it does not start with \\x93NUMPY"),
            Self::Version(major, minor) => {
                write!(
                    f,
                    "version {major}.{minor} of the .npy format is not known (1.0 to 3.0 are)"
                )
            }
            Self::HeaderEnds => f.write_str("the file ends inside its .npy header"),
            Self::HeaderLength(length) => {
                write!(
                    f,
                    "the .npy header claims {length} bytes, more than {MAX_HEADER}"
                )
            }
            Self::Syntax { at, expected } => {
                write!(f, "broken .npy header: expected {expected} at byte {at}")
            }
            Self::Key(key) => {
                write!(f, "broken .npy header: unknown or repeated key {key:?}")
            }
            Self::Missing(key) => write!(f, "broken .npy header: no key {key:?}"),
            Self::Dtype(dtype) => write!(
                f,
                "the type {dtype:?} is not supported (floats of 2, 4 or 8 bytes, integers and bool are)"
            ),
            Self::Structured => f.write_str("the file holds records, not plain numbers"),
            Self::Axes(n) => write!(f, "{n} axes are more than the {MAX_AXES} of NumPy"),
            Self::TooLarge => f.write_str("the size of the array does not fit this machine"),
            Self::Short { expected, found } => write!(
                f,
                "the file is cut short: {found} bytes where its shape needs {expected}"
            ),
        }
    }
}

impl std::error::Error for NpyFault {}
