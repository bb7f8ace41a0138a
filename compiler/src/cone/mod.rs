//! Which value depends on which: dependence vectors, the cones that they span, and slopes.
//!
//! Time is counted in stages: stage k of step n has the time index k + S n, with S stages per step. An *event* is one
//! update at one place, (component, position, time index). An event B *depends* on an earlier event A if B must run
//! after A:
//! - **flow**: B reads the value that A computes. A read of age a in stage c sees the version `newest - a`; the event
//!   that computed that version lies one stage back or many, in this step or an earlier one.
//! - **anti**: A reads a value that B overwrites. With L time levels, version v + L of a component takes the memory of
//!   version v.
//! - **output**: A and B write to the same memory, B later: versions v and v + L of one value.
//!
//! The *dependence vector* is the position of B minus the position of A, in half cells, and the number of stages from A
//! to B. It is the same for all places, so a scheme has a finite set of them. They follow from the scheme alone.
//!
//! The set covers:
//! - Anti-dependences inside of one stage come from an update that reads the value that it overwrites, at the same
//!   place (rule 4 of [`crate::scheme`]). They order nothing, and are left out. So every vector spans at least one
//!   stage.
//! - A region or mask limits where an update acts, not its vectors. Where it does not act, the old version passes on:
//!   that counts as a read of it at the same place. All slopes are at least 0 (output dependences have no
//!   displacement), so a vector with the same displacement and more stages is never the one that decides.
//! - Mirrors ([`crate::scheme::Boundary`]) turn a read beyond the domain's end into one inside. The fold q -> |q| about
//!   the end plane never lengthens a distance, |p - |q|| <= |p - q| for p inside; but it can turn its direction, which
//!   matters where reads are one-sided. So mirrored reads are in the set, with the vectors that they really have
//!   ([`Via::Mirror`]).
//! - A periodic end turns a short read into one across the whole domain ([`Via::Wrap`]). On the circle it is as short
//!   as any other; a tiling that is not periodic itself must respect the long vector.

mod cycle;
mod past;
mod print;
mod rational;
mod slope;
mod vectors;

pub(crate) use cycle::{Link, fastest_cycle, leads};
pub use past::{Event, Initial, Past, past};
pub use rational::Rational;
pub use slope::axis_form;
pub use vectors::{cones, mirrored_offsets};

use crate::lattice::{HalfIndex, PerAxis};
use crate::scheme::{ComponentId, StageId};

/// A linear form on positions: `PerAxis([1, -1, 0])` is x - y.
pub type Form = PerAxis<i32>;

/// All dependence vectors of a scheme.
#[derive(Clone, Debug, PartialEq)]
pub struct Cones {
    /// The name of the scheme.
    pub scheme: String,
    /// Stages per step.
    pub stages: u32,
    /// The names of the components, by their ids.
    pub components: Vec<String>,
    /// The names of the axes that exist.
    pub axes: PerAxis<Option<String>>,
    /// In ascending order, each once.
    pub dependences: Vec<Dependence>,
}

/// One component's update in one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    pub stage: StageId,
    pub component: ComponentId,
}

/// Why the later event must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Flow,
    Anti,
    Output,
}

/// How a read gets to its value along one axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Via {
    /// Inside of the domain.
    #[default]
    Direct,
    /// Through a mirror at an end of the axis.
    Mirror,
    /// Around a periodic axis.
    Wrap,
}

/// `to` must run `stages` stages after `from`, at the place of `from` plus `space`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dependence {
    pub kind: Kind,
    /// The earlier event: the producer of a value, or the reader of a value that is overwritten.
    pub from: Site,
    /// The later event.
    pub to: Site,
    /// At least 1.
    pub stages: i64,
    /// From the place of `from` to that of `to`.
    pub space: PerAxis<HalfIndex>,
    pub via: PerAxis<Via>,
}

impl Dependence {
    /// It goes around no periodic axis.
    pub fn is_local(&self) -> bool {
        self.via.0.iter().all(|&v| v != Via::Wrap)
    }
}

impl Cones {
    /// The dependences that go around no periodic axis.
    pub fn local(&self) -> impl Iterator<Item = &Dependence> {
        self.dependences.iter().filter(|d| d.is_local())
    }

    /// The axes around which some read goes.
    pub fn wraps(&self) -> PerAxis<bool> {
        PerAxis::from_fn(|a| self.dependences.iter().any(|d| d.via[a] == Via::Wrap))
    }
}
