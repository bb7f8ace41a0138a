//! From where planes come to a pass, and where they go to.

use torre_compiler::lattice::Interval;

/// Where planes come from that are loaded, or go to that are stored. `M` says where memory of the host keeps planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End<M> {
    /// The array, a file, or another pass: the pass before for loads, the next one for stores.
    Outside,
    /// Memory that keeps them.
    Kept(M),
}

/// The end of a copy of planes, and the memory that keeps the same planes besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends<M> {
    pub end: End<M>,
    /// The planes go to this memory, too.
    pub also_keep: Option<M>,
}

impl<M> Ends<M> {
    /// From or to the outside alone.
    pub const OUTSIDE: Ends<M> = Ends {
        end: End::Outside,
        also_keep: None,
    };

    /// From or to memory alone.
    pub fn kept(memory: M) -> Ends<M> {
        Ends {
            end: End::Kept(memory),
            also_keep: None,
        }
    }

    /// The same with memory in other terms.
    pub fn map<N>(self, of: impl Fn(M) -> N) -> Ends<N> {
        Ends {
            end: match self.end {
                End::Outside => End::Outside,
                End::Kept(memory) => End::Kept(of(memory)),
            },
            also_keep: self.also_keep.map(of),
        }
    }
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
