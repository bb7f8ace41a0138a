//! The codes of errors outside of the program's text.

use torre_grammar::diag::Code;

/// A file cannot be read.
pub const UNREADABLE: Code = Code("E0801");
/// A result cannot be written.
pub const UNWRITABLE: Code = Code("E0802");
/// A checkpoint cannot be continued.
pub const CHECKPOINT: Code = Code("E0803");
/// A back end or library that was asked for is not there.
pub const MISSING: Code = Code("E0804");
/// A target is unknown, or its code cannot run here.
pub const TARGET: Code = Code("E0805");
/// The run does not fit into memory.
pub const MEMORY: Code = Code("E0806");
/// A start value or coefficient is not a finite number in the chosen precision.
pub const NOT_FINITE: Code = Code("E0807");
/// Two ways to compute the same gave different bits.
pub const DIFFERENCE: Code = Code("E0808");
/// Options that contradict each other.
pub const OPTIONS: Code = Code("E0809");
/// A file that is not in canonical layout.
pub const LAYOUT: Code = Code("E0810");
/// Another run writes to a folder.
pub const IN_USE: Code = Code("E0811");
/// A folder has results of another run.
pub const OTHER_RESULTS: Code = Code("E0812");
/// Threads cannot be started.
pub const THREADS: Code = Code("E0813");
/// Results would take the place of the program.
pub const OVERWRITES: Code = Code("E0814");
/// A time step for which waves grow.
pub const UNSTABLE: Code = Code("E0815");
/// A scheme of which growth and frequencies of waves cannot be told.
pub const NOT_ANALYSED: Code = Code("E0816");
/// Values that became infinite, or none, or grew without bound.
pub const BLOW_UP: Code = Code("E0817");
/// More devices than a run can use.
pub const DEVICES: Code = Code("E0818");
/// The files of a calculation do not fit on a disk.
pub const DISK: Code = Code("E0819");
/// A range of values for pictures that is none, or of nothing that is drawn.
pub const RANGE: Code = Code("E0820");
/// A schedule that the scheme does not allow.
pub const SLOPE: Code = Code("E0852");
/// A schedule that the GPU cannot run.
pub const DEVICE_SCHEDULE: Code = Code("E0853");
/// A back end failed.
pub const BACKEND: Code = Code("E0902");

/// All of them.
#[cfg(test)]
pub const ALL: [Code; 23] = [
    UNREADABLE,
    UNWRITABLE,
    CHECKPOINT,
    MISSING,
    TARGET,
    MEMORY,
    NOT_FINITE,
    DIFFERENCE,
    OPTIONS,
    LAYOUT,
    IN_USE,
    OTHER_RESULTS,
    THREADS,
    OVERWRITES,
    UNSTABLE,
    NOT_ANALYSED,
    BLOW_UP,
    DEVICES,
    DISK,
    RANGE,
    SLOPE,
    DEVICE_SCHEDULE,
    BACKEND,
];
