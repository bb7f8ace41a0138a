//! The scheme: the computation of one time step, resolved and typed.
//!
//! A [`Scheme`] is a list of [`Stage`]s that a step runs in order. A stage advances some components, each by one
//! [`Update`]; the updates of one stage are independent of each other. The value of a component after its k-th update
//! is its version k; version 0 is the initial value. A component keeps its newest `time_levels` versions.
//!
//! Meaning, which every back end and schedule reproduces bit for bit (`crate::reference` executes it literally):
//! - An update computes, for each cell index of its region (and where its mask is not zero), the value of its [`Body`],
//!   and stores it as the next version of its target there. Elsewhere in the target's extent the old version carries
//!   over; that is only allowed for components with one time level, where nothing has to be done.
//! - Operations are IEEE 754 in the scheme's precision, round to nearest even, subnormals kept; `Fma` rounds once. No
//!   operation may be reordered, contracted or approximated. All NaNs are one value. `Flush` keeps fields free of
//!   subnormals; initial values are flushed, too.
//! - A read outside of a component's extent follows the grid's boundary ([`Grid::resolve`]).
//! - In a zone, each amendment of the update then turns this value into another one, and advances its states, in the
//!   order of the amendments. All read values from before the stage.
//! - Sources (see [`crate::problem`]) add to a value right after the update that computed it.
//!
//! Rules (checked by `verify`):
//! 1. Ids are in range; positions and times are 0 or 1/2; absent axes have one cell, position 0, offset 0. Towers refer
//!    to schemes with position 1, too, where rows are packed (`crate::tower::Numbering`).
//! 2. Regions lie in the target's live region ([`Grid::live`]).
//! 3. No component is updated twice in one stage.
//! 4. A stage may read the version that it overwrites (age `time_levels - 1` of a component that it updates) only in
//!    the update of that component, at offset 0.
//! 5. A read's age is below the component's time levels.
//! 6. A component with more than one time level is updated everywhere (region = live region, no mask).
//! 7. Operands come before their users; constants are exact in the scheme's precision.
//! 8. Reads reach less far than the domain is wide.
//! 9. Boxes of a zone are disjoint; an update has at most one amendment for a zone; a state belongs to one amendment,
//!    whose zone and position it has and which advances it; only bodies of amendments read the value so far and states;
//!    a coefficient of one axis is read by amendments only.

mod body;
mod grid;
mod print;
mod verify;
mod zone;

pub use body::{Body, Cmp, Op, Read, Value};
pub use grid::{Boundary, Grid, Located, OddPositions};
pub use verify::verify;
pub use zone::{
    Amendment, MOST_ZONES, State, StateAdvance, StateId, Zone, ZoneId, ZoneMap, ZoneSet,
};

use crate::host::HostExpr;
use crate::lattice::{Axis, Interval, Offset, PerAxis, Position, Region, gcd};
use std::fmt;

/// The floating-point format of all values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    F32,
    F64,
}

/// The error relative to a tiny number with which it counts as another one.
const TINY_ERROR: f64 = 1e-6;

impl Precision {
    pub fn bytes(self) -> usize {
        match self {
            Precision::F32 => 4,
            Precision::F64 => 8,
        }
    }

    /// Magnitudes below it are 0 where a body flushes its value. Differences of numbers that are not below it are
    /// normal numbers, and so are their products with factors down to 2^-3 (f32) and 2^-10 (f64) where nothing cancels.
    pub fn flush_threshold(self) -> f64 {
        let exponent: u64 = match self {
            Precision::F32 => 1023 - 100,
            Precision::F64 => 1023 - 960,
        };
        f64::from_bits(exponent << 52)
    }

    /// Whether this format has no number near a value, as that is too small: there is 0, or a number with fewer digits.
    pub fn is_tiny(self, value: f64) -> bool {
        let smallest = match self {
            Precision::F32 => f64::from(f32::MIN_POSITIVE),
            Precision::F64 => f64::MIN_POSITIVE,
        };
        let error = (self.round(value) - value).abs();
        value.abs() < smallest && error > TINY_ERROR * value.abs()
    }

    /// The nearest value of this format.
    pub fn round(self, value: f64) -> f64 {
        match self {
            Precision::F32 => f64::from(value as f32),
            Precision::F64 => value,
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Precision::F32 => "f32",
            Precision::F64 => "f64",
        })
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);
        impl $name {
            pub fn index(self) -> usize { self.0 as usize }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, concat!($prefix, "{}"), self.0) }
        }
    )* };
}

ids! {
    /// An evolving component of a field, such as Ex.
    ComponentId = "c";
    /// A static array of coefficients.
    CoefId = "m";
    /// A stage of the step.
    StageId = "s";
    /// A file that holds static values.
    FileId = "f";
}

#[derive(Clone, Debug)]
pub struct Scheme {
    pub name: String,
    pub precision: Precision,
    pub grid: Grid,
    pub components: Vec<Component>,
    pub coefs: Vec<Coef>,
    /// Files that coefficients and initial values name.
    pub files: Vec<StaticFile>,
    pub stages: Vec<Stage>,
    /// Parts of the grid in which updates are amended.
    pub zones: Vec<Zone>,
    /// The states that amendments keep.
    pub states: Vec<State>,
}

/// One evolving array of values.
#[derive(Clone, Debug)]
pub struct Component {
    /// As the user writes it: `E.z`, or `p` for a scalar.
    pub name: String,
    pub position: Position,
    /// 0 or 1/2: after n steps the newest value has the time n or n - 1/2, in steps.
    pub time: crate::lattice::HalfIndex,
    /// How many versions are kept: 1 where the update can be done in place.
    pub time_levels: u8,
}

/// A static array, at the position and with the extent of the updates that use it.
#[derive(Clone, Debug)]
pub struct Coef {
    /// A name for people: the user's name, or the expression.
    pub name: String,
    pub position: Position,
    /// Evaluated in double precision at each index, then rounded.
    pub value: HostExpr,
    /// The axis that it depends on, if only amendments read it and it depends on no other one: it is stored once for
    /// each index of this axis.
    pub only_axis: Option<Axis>,
}

impl Coef {
    /// Whether its values depend on a file.
    pub fn is_of_file(&self) -> bool {
        self.value.any(&mut |e| matches!(e, HostExpr::File { .. }))
    }
}

/// A `.npy` file with one value per cell index of a component at `position`.
#[derive(Clone, Debug, PartialEq)]
pub struct StaticFile {
    pub path: String,
    pub position: Position,
}

#[derive(Clone, Debug)]
pub struct Stage {
    pub updates: Vec<Update>,
}

#[derive(Clone, Debug)]
pub struct Update {
    pub target: ComponentId,
    /// Cell indices of the target that are advanced.
    pub region: Region,
    /// Where this coefficient is 0, the old value stays.
    pub mask: Option<CoefId>,
    pub body: Body,
    /// Applied to the body's result one after the other, each in its zone; at most one for a zone.
    pub amendments: Vec<Amendment>,
}

impl Update {
    /// All bodies.
    pub fn bodies(&self) -> impl Iterator<Item = &Body> {
        std::iter::once(&self.body).chain(self.amendments.iter().map(|a| &a.body))
    }

    /// The reads of the update, in zones too.
    pub fn reads(&self) -> impl Iterator<Item = &Read> {
        self.bodies().flat_map(Body::reads)
    }

    /// The zones in which it is amended.
    pub fn zones(&self) -> ZoneSet {
        let zones = self.amendments.iter().map(|a| ZoneSet::of(a.zone));
        zones.fold(ZoneSet::default(), ZoneSet::union)
    }
}

impl Scheme {
    #[inline]
    pub fn component(&self, id: ComponentId) -> &Component {
        &self.components[id.index()]
    }

    pub fn component_ids(&self) -> impl Iterator<Item = ComponentId> + use<> {
        (0..self.components.len() as u32).map(ComponentId)
    }

    pub fn stage_ids(&self) -> impl Iterator<Item = StageId> + use<> {
        (0..self.stages.len() as u32).map(StageId)
    }

    /// The indices that a component stores.
    pub fn extent(&self, id: ComponentId) -> Region {
        self.grid.extent(self.component(id).position)
    }

    /// How many times a step updates the component in stages before `stage`.
    pub fn updates_before(&self, id: ComponentId, stage: StageId) -> u32 {
        self.stages[..stage.index()]
            .iter()
            .filter(|s| s.updates.iter().any(|u| u.target == id))
            .count() as u32
    }

    /// How many times a step updates the component.
    pub fn updates_per_step(&self, id: ComponentId) -> u32 {
        self.updates_before(id, StageId(self.stages.len() as u32))
    }

    /// The newest version of a component when `stage` of step `step` starts.
    pub fn version(&self, id: ComponentId, stage: StageId, step: u64) -> u64 {
        step * u64::from(self.updates_per_step(id)) + u64::from(self.updates_before(id, stage))
    }

    /// The number of steps after which the time levels of all components repeat: code is specialised for each of them.
    pub fn phases(&self) -> u32 {
        self.component_ids().fold(1, |n, id| {
            let time_levels = u32::from(self.component(id).time_levels).max(1);
            let own = time_levels / gcd(time_levels, self.updates_per_step(id) % time_levels);
            n / gcd(n, own) * own
        })
    }

    pub fn zone(&self, id: ZoneId) -> &Zone {
        &self.zones[id.index()]
    }

    /// The parts of the grid in which zones are the same.
    pub fn zone_map(&self) -> ZoneMap {
        ZoneMap::new(&self.zones)
    }

    /// The states of a zone, in their order.
    pub fn states_of(&self, zone: ZoneId) -> impl Iterator<Item = StateId> + '_ {
        let ids = (0..self.states.len() as u32).map(StateId);
        ids.filter(move |s| self.states[s.index()].zone == zone)
    }

    /// How far reads reach below and above an index along each axis, over all updates.
    pub fn reach(&self) -> PerAxis<[i32; 2]> {
        let mut reach = PerAxis::splat([0, 0]);
        for read in self.reads() {
            for (axis, &o) in read.offset.iter() {
                let [lo, hi] = &mut reach[axis];
                *lo = (*lo).max(-o);
                *hi = (*hi).max(o);
            }
        }
        reach
    }

    /// The indices of a component that updates read, including ghosts beyond its extent. An update counts at all
    /// positions of its target from 0 on.
    pub fn visible(&self, id: ComponentId) -> Region {
        let mut visible = self.extent(id);
        for update in self.stages.iter().flat_map(|s| &s.updates) {
            let target = self.extent(update.target);
            let position = self.component(update.target).position;
            for read in update.reads().filter(|r| r.component == id) {
                visible = Region::from_fn(|a| {
                    let o = i64::from(read.offset[a]);
                    let first = target[a].lo - position[a].whole();
                    visible[a].hull(Interval::new(first + o, target[a].hi + o))
                });
            }
        }
        visible
    }

    /// Whether a read of an update is of the value that the update overwrites: its own old value (rule 4).
    pub fn is_overwritten(&self, update: &Update, read: &Read) -> bool {
        let levels = self.component(read.component).time_levels;
        read.component == update.target && read.age + 1 == levels
    }

    /// Whether an amendment of an update reads the value that the update overwrites.
    pub fn needs_old(&self, update: &Update, amendment: &Amendment) -> bool {
        let mut reads = amendment.body.reads();
        reads.any(|read| self.is_overwritten(update, read))
    }

    fn reads(&self) -> impl Iterator<Item = &Read> {
        self.stages
            .iter()
            .flat_map(|s| &s.updates)
            .flat_map(Update::reads)
    }

    /// The time of a component's value after `steps` steps, in steps.
    pub fn time(&self, id: ComponentId, steps: u64) -> f64 {
        steps as f64 - self.component(id).time.as_f64()
    }

    /// Coefficients that are stored for every cell.
    pub fn full_coefs(&self) -> usize {
        self.coefs.iter().filter(|c| c.only_axis.is_none()).count()
    }

    /// Bytes of the values that a cell has: evolving ones with all their time levels, and coefficients; without states.
    pub fn bytes_per_cell(&self) -> usize {
        let time_levels: usize = self
            .components
            .iter()
            .map(|c| usize::from(c.time_levels))
            .sum();
        (time_levels + self.full_coefs()) * self.precision.bytes()
    }
}

/// The offset of `read` from an update's target, in half cells on the doubled lattice.
pub fn displacement(from: Position, to: Position, offset: Offset) -> Position {
    Position::from_fn(|a| to[a] + crate::lattice::HalfIndex::cells(i64::from(offset[a])) - from[a])
}
