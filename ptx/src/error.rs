//! Errors: a text that is not understood, and a launch with a fault.

use std::fmt;

/// A text that is not PTX, or more of PTX than is interpreted here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Counted from one.
    pub line: u32,
    /// The error.
    pub message: String,
    /// The line itself, without surrounding blanks.
    pub text: String,
}

impl Error {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> Self {
        Error {
            line,
            message: message.into(),
            text: String::new(),
        }
    }

    pub(crate) fn with_text(mut self, source: &str) -> Self {
        self.text = line_of(source, self.line);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}: {}", self.line, self.message)?;
        if self.text.is_empty() {
            Ok(())
        } else {
            write!(out, ": `{}`", self.text)
        }
    }
}

impl std::error::Error for Error {}

pub(crate) fn line_of(source: &str, line: u32) -> String {
    let index = usize::try_from(line).unwrap_or(0).wrapping_sub(1);
    source.lines().nth(index).unwrap_or("").trim().to_string()
}

/// The kinds of faults of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// Arguments, sizes or options that do not fit the kernel.
    Launch,
    /// An address that lies in no buffer, variable or parameter.
    OutOfBounds,
    /// An address that is no multiple of the access's size.
    Misaligned,
    /// A register that is read before it is written.
    UninitialisedRegister,
    /// Memory that is read before it is written.
    UninitialisedMemory,
    /// A write to constants or parameters, or a read through the read-only path of memory that the launch writes.
    ReadOnly,
    /// Two accesses to the same bytes, one of them a write, that are not ordered.
    Race,
    /// A bulk copy of values that threads wrote, without a fence between that makes it visible to such copies.
    ProxyFence,
    /// Memory that an asynchronous copy may still read or write.
    AsyncPending,
    /// A barrier that some of the threads it waits for cannot reach.
    DivergentBarrier,
    /// A barrier object or number that is used against its rules.
    BadBarrier,
    /// No thread can go on.
    Deadlock,
    /// More instructions than the options allow.
    Limit,
    /// The kernel executed `trap`.
    Trap,
    /// Behaviour that PTX leaves undefined or that is not interpreted.
    Unsupported,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            FaultKind::Launch => "bad launch",
            FaultKind::OutOfBounds => "access out of bounds",
            FaultKind::Misaligned => "misaligned access",
            FaultKind::UninitialisedRegister => "uninitialised register",
            FaultKind::UninitialisedMemory => "uninitialised memory",
            FaultKind::ReadOnly => "read-only memory",
            FaultKind::Race => "race",
            FaultKind::ProxyFence => "missing proxy fence",
            FaultKind::AsyncPending => "asynchronous copy under way",
            FaultKind::DivergentBarrier => "divergent barrier",
            FaultKind::BadBarrier => "bad barrier",
            FaultKind::Deadlock => "deadlock",
            FaultKind::Limit => "limit reached",
            FaultKind::Trap => "trap",
            FaultKind::Unsupported => "not supported",
        })
    }
}

/// Why a launch ended before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind, for tests to match on.
    pub kind: FaultKind,
    /// The fault in words.
    pub message: String,
    /// The line of the instruction; 0 if the fault belongs to none.
    pub line: u32,
    /// That line's text.
    pub text: String,
    /// The block's coordinates.
    pub block: [u32; 3],
    /// The thread's coordinates in its block.
    pub thread: [u32; 3],
    /// The address, for accesses to memory, as the instruction gave it.
    pub address: Option<u64>,
}

impl Fault {
    pub(crate) fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Fault {
            kind,
            message: message.into(),
            line: 0,
            text: String::new(),
            block: [0; 3],
            thread: [0; 3],
            address: None,
        }
    }

    pub(crate) fn at(mut self, address: u64) -> Self {
        self.address = Some(address);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.kind, self.message)?;
        if let Some(address) = self.address {
            write!(out, ", address 0x{address:x}")?;
        }
        if self.line > 0 {
            let (block, thread) = (self.block, self.thread);
            write!(out, ", at line {} `{}`", self.line, self.text)?;
            write!(out, ", block {block:?}, thread {thread:?}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
