//! Rows of shared memory: values that the threads of a block pass to each other.

use crate::lattice::{Axis, Interval, div_ceil};
use crate::layout::{GPU_ALIGNMENT, Layout, PIECE};

/// Bytes that a copy from memory to a shared row moves at a time.
pub const CHUNK: i64 = PIECE as i64;
/// Index 0 of a shared row lies at a multiple of one of these numbers of bytes: the first one with which there is room.
/// If rows in memory have the same alignment, parts of rows that arrive together stay together.
pub(super) const ALIGNMENTS: [i64; 4] = [GPU_ALIGNMENT as i64, 64, 32, CHUNK];

/// The shape of a shared row, in elements. Values below index 0 and above the end of a row lie between it and the rows
/// beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedRow {
    /// Before index 0.
    pub before: i64,
    pub stride: i64,
    /// The indices that a copy moves: all that some thread reads, without values that are always zero.
    pub copied: Interval,
    /// The largest extent of a row.
    pub length: i64,
}

/// The part of a line that the shared rows of a block hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The block's own values.
    Own,
    /// Also the values beside them, of other blocks or of ghosts in memory.
    Neighbours,
}

impl SharedRow {
    /// For `own` values of a line; `alignment` in bytes.
    pub fn new(layout: &Layout, own: i64, shown: Shown, alignment: i64) -> SharedRow {
        let whole = |n: i64, bytes: i64| {
            let piece = bytes / layout.element_bytes as i64;
            div_ceil(n, piece) * piece
        };
        let [below, above] = layout.reach[Axis::INNER].map(i64::from);
        let length = layout.extent[Axis::INNER];
        // Rows that begin later end later.
        let own = own + layout.most_begin();
        let copied = match shown {
            Shown::Neighbours => Interval::new(-whole(below, CHUNK), whole(own + above, CHUNK)),
            Shown::Own => Interval::new(0, whole(own, CHUNK)),
        };
        let all = copied.hull(Interval::new(-below, own + above));
        SharedRow {
            before: whole(below, alignment),
            stride: whole(all.len(), alignment),
            copied,
            length,
        }
    }

    /// The elements of `rows` shared rows, with the values above the end of the last one.
    pub fn elements(&self, rows: usize) -> i64 {
        rows as i64 * self.stride + self.before
    }
}
