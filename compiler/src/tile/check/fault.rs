//! Faults of tile programs.

use crate::cone::Kind;
use crate::lattice::{Interval, PerAxis};
use crate::scheme::{ComponentId, Read, StageId};
use std::fmt;

/// An update at a cell index in some stage of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Stages since the start of the run.
    pub number: i64,
    pub stage: StageId,
    pub update: usize,
    pub at: PerAxis<i64>,
}

/// An outermost tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileName {
    pub time_block: usize,
    /// Per cut of the outermost level.
    pub indices: Vec<i64>,
}

/// The separation of two tiles: a cut along which their indices differ, against the running order if there is one like
/// that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// Only the time blocks differ.
    TimeBlock,
    /// They are parts of one tile, on two sides of a fold.
    Fold,
    Cut {
        level: usize,
        cut: usize,
        /// Of the tile that must come first, and of the one that must come later.
        indices: [i64; 2],
    },
}

/// Why a tile program does not compute its scheme.
#[derive(Clone, Debug, PartialEq)]
pub enum TileFault {
    /// A rule of [`super::super::verify`] is broken.
    Rule(String),
    /// Too many values or steps to look at one by one.
    TooLarge,
    /// A row goes beyond the region of an update.
    OutOfRegion { event: Event },
    /// A row goes beyond its tile.
    OutOfTile {
        event: Event,
        plane: usize,
        depth: i64,
        depths: Interval,
    },
    /// A read sees an index that the layout does not hold.
    OutOfBounds { event: Event, read: Read },
    /// A read finds another version than the scheme names.
    WrongVersion {
        event: Event,
        read: Read,
        expected: i64,
        found: i64,
        crossing: Option<Crossing>,
    },
    /// An update replaces another version than the one whose place it takes: it runs twice, too early or too late.
    WrongTurn {
        event: Event,
        expected: i64,
        found: i64,
        crossing: Option<Crossing>,
    },
    /// Two tiles touch the same value, one of them writes it, and nothing orders them.
    Race {
        kind: Kind,
        component: ComponentId,
        at: PerAxis<i64>,
        earlier: TileName,
        later: TileName,
        /// The access of the later tile.
        event: Event,
        /// Of the flow or the anti-dependence.
        read: Option<Read>,
        crossing: Crossing,
    },
    /// A value does not have its last version at the end.
    Missing {
        component: ComponentId,
        at: PerAxis<i64>,
        expected: i64,
        found: i64,
        event: Option<Event>,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.at.0;
        let Event { stage, update, .. } = self;
        write!(
            f,
            "update {update} of {stage} (number {}) at [{x}, {y}, {z}]",
            self.number
        )
    }
}

impl fmt::Display for TileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "tile {:?} of time block {}",
            self.indices, self.time_block
        )
    }
}

impl fmt::Display for Crossing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Crossing::TimeBlock => f.write_str("the time blocks"),
            Crossing::Fold => f.write_str("a fold"),
            Crossing::Cut {
                level,
                cut,
                indices: [earlier, later],
            } => write!(
                f,
                "cut {cut} of level {level} (from index {earlier} to {later})"
            ),
        }
    }
}

struct Across(Option<Crossing>);

impl fmt::Display for Across {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(crossing) => write!(f, ", across {crossing}"),
            None => Ok(()),
        }
    }
}

struct Tap(Read);

impl fmt::Display for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0.offset.0;
        let Read { component, age, .. } = self.0;
        write!(f, "the read {component}[{x}, {y}, {z}] of age {age}")
    }
}

impl fmt::Display for TileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TileFault::Rule(message) => f.write_str(message),
            TileFault::TooLarge => f.write_str("too many values to look at one by one"),
            TileFault::OutOfRegion { event } => write!(f, "{event} lies outside of its region"),
            TileFault::OutOfTile {
                event,
                plane,
                depth,
                depths,
            } => write!(
                f,
                "{event} has depth {depth} along plane {plane}, outside of its tile's {depths}"
            ),
            TileFault::OutOfBounds { event, read } => {
                write!(f, "{event}: {} leaves the layout", Tap(*read))
            }
            TileFault::WrongVersion {
                event,
                read,
                expected,
                found,
                crossing,
            } => write!(
                f,
                "{event}: {} finds version {found} instead of {expected}{}",
                Tap(*read),
                Across(*crossing)
            ),
            TileFault::WrongTurn {
                event,
                expected,
                found,
                crossing,
            } => write!(
                f,
                "{event} replaces version {found} instead of {expected}{}",
                Across(*crossing)
            ),
            TileFault::Race {
                kind,
                component,
                at,
                earlier,
                later,
                event,
                read,
                crossing,
            } => {
                let [x, y, z] = at.0;
                let kind = format!("{kind:?}").to_lowercase();
                write!(
                    f,
                    "nothing orders {earlier} and {later}: {kind} dependence on {component} at [{x}, {y}, {z}], {event}"
                )?;
                if let Some(read) = read {
                    write!(f, ", {}", Tap(*read))?;
                }
                write!(f, ", across {crossing}")
            }
            TileFault::Missing {
                component,
                at,
                expected,
                found,
                event,
            } => {
                let [x, y, z] = at.0;
                write!(
                    f,
                    "{component} at [{x}, {y}, {z}] ends with version {found} instead of {expected}"
                )?;
                match event {
                    Some(event) => write!(f, ": {event} did not run"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for TileFault {}
