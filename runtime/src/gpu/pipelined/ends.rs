//! From where planes come to a pass, and where they go to.

use torre_compiler::lattice::Interval;

/// Where planes come from, or go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    /// They come from a file or the pass before, or go to a file or the next pass.
    pub through: bool,
    /// The memory that they come from, by the number of its pass in a chain.
    pub from: Option<usize>,
    /// They go to memory of the pass, too.
    pub keep: bool,
}

/// Planes cut at some of them.
pub(super) fn split(planes: Interval, mut at: Vec<i64>) -> Vec<Interval> {
    at.push(planes.hi);
    at.sort_unstable();
    let mut from = planes.lo;
    let mut parts = Vec::new();
    for end in at.into_iter().map(|end| end.clamp(planes.lo, planes.hi)) {
        if from < end {
            parts.push(Interval::new(from, end));
            from = end;
        }
    }
    parts
}
