//! Faults of a list of operations.

use super::OpId;
use std::fmt;

/// A fault at an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A plane lies outside of the buffer.
    Outside { op: OpId, plane: i64 },
    /// A plane is not at its place: it is not loaded yet, or gone.
    Missing { op: OpId, plane: i64 },
    /// The host does not have the values of the pass.
    Stale { op: OpId, plane: i64 },
    /// Two operations touch the same, and nothing orders them.
    Unordered { first: OpId, second: OpId },
    /// A group of a time block runs before a group of an earlier one that it needs.
    TooEarly { op: OpId, block: usize, need: i64 },
    /// A plane is stored or gathered, and written afterwards.
    NotFinal { op: OpId, plane: i64 },
    /// A plane is gathered when a later time block has written it.
    TooLate { op: OpId, plane: i64 },
    /// An operation waits for a later one, or is none of its pass.
    Order { op: OpId },
    /// A group does not run, or not in its turn.
    Group { pass: u64, block: usize, group: i64 },
    /// A plane that was written is not stored.
    Lost { pass: u64, plane: i64 },
    /// A plane of an output is not gathered.
    Output { pass: u64, block: usize, plane: i64 },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Outside { op, plane } => write!(f, "operation {op}: no place for plane {plane}"),
            Fault::Missing { op, plane } => write!(f, "operation {op}: plane {plane} is not there"),
            Fault::Stale { op, plane } => {
                write!(f, "operation {op}: plane {plane} is older on the host")
            }
            Fault::Unordered { first, second } => {
                write!(f, "operations {first} and {second} are not ordered")
            }
            Fault::TooEarly { op, block, need } => {
                write!(f, "operation {op} needs group {need} of block {block}")
            }
            Fault::NotFinal { op, plane } => {
                write!(
                    f,
                    "operation {op} writes plane {plane}, which was taken before"
                )
            }
            Fault::TooLate { op, plane } => {
                write!(f, "operation {op}: plane {plane} has changed since")
            }
            Fault::Order { op } => write!(f, "operation {op} is out of order"),
            Fault::Group { pass, block, group } => {
                write!(
                    f,
                    "pass {pass}: group {group} of block {block} is out of its turn"
                )
            }
            Fault::Lost { pass, plane } => write!(f, "pass {pass}: plane {plane} is not stored"),
            Fault::Output { pass, block, plane } => {
                write!(
                    f,
                    "pass {pass}: plane {plane} is not gathered after block {block}"
                )
            }
        }
    }
}

impl std::error::Error for Fault {}
