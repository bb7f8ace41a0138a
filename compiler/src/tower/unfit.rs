//! Why a tile program has no towers.

use std::fmt;

/// Why a tile program has no towers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It needs one level of two cuts over the outer and the middle axis.
    Faces,
    /// A periodic axis is folded, or too short for the faces, or they do not close around it.
    Ring,
    /// The tower does not move, or only returns to the lattice after too many steps.
    Advance,
    /// It has more rows than a tower can keep.
    Size,
    /// Updates read ghosts of rows that stay 0: towers would give these zeros a sign.
    Zeros,
    /// The updates of a stage act nowhere: no tower goes on through such a stage for the towers that wait for it.
    Idle,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unfit::Faces => "towers are cut by two faces over the first two axes",
            Unfit::Ring => {
                "a periodic axis is shorter than four towers, or its faces do not close around it"
            }
            Unfit::Advance => "the tower does not come back to the lattice within a few steps",
            Unfit::Size => "the tower is too wide",
            Unfit::Zeros => {
                "an update reads beyond an end of the last axis, where values are negated, in rows that stay 0 at an \
                 end of another axis"
            }
            Unfit::Idle => "the statements of a stage act nowhere",
        })
    }
}

impl std::error::Error for Unfit {}
