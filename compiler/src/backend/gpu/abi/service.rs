//! The kernels of whole stages, and the small ones for the work around them.

use super::parameters;

parameters! {
    /// A layerwise kernel.
    pub struct Stage {
        /// Row 0, inner index 0 of the box's first group.
        FIRST => first: u64,
        /// Groups along the outer axis and along the middle axis.
        OUTER => outer: i32,
        MIDDLE => middle: i32,
        /// The first and the last inner index (exclusive).
        LO => lo: i32,
        HI => hi: i32,
        /// Groups that a thread marches over.
        MARCH => march: i32,
    }
}

parameters! {
    /// Amends the updates of a stage in a box of a zone.
    pub struct Amend {
        ARRAY => array: u64,
    }
}

parameters! {
    /// The same with the values that the updates of the stage overwrite; and the kernel that keeps these values.
    pub struct Kept {
        ARRAY => array: u64,
        /// Where they lie.
        KEPT => kept: u64,
    }
}

parameters! {
    /// Copies rows to their ghosts.
    pub struct CopyRows {
        ARRAY => array: u64,
        /// Of [`RowCopy`].
        TABLE => table: u64,
        COUNT => count: i32,
    }
}

parameters! {
    /// Sources add to cells.
    pub struct AddSources {
        ARRAY => array: u64,
        /// Of [`SourceCell`].
        TABLE => table: u64,
        COUNT => count: i32,
        /// Of [`CellGhost`].
        GHOSTS => ghosts: u64,
        /// Doubles, the waves of one step.
        WAVES => waves: u64,
    }
}

parameters! {
    /// Adds corrections near the faces of a box of total fields.
    pub struct CorrectRows {
        ARRAY => array: u64,
        /// Of [`CorrectedRow`].
        TABLE => table: u64,
        COUNT => count: i32,
        /// The words of a [`CorrectionTable`](super::CorrectionTable).
        WORDS => words: u64,
        /// The first index along the inner axis, and how many there are; the hole.
        LO => lo: i32,
        LEN => len: i32,
        HOLE => hole: i32,
        HOLE_LEN => hole_len: i32,
        /// Of [`RowGhost`].
        GHOSTS => ghosts: u64,
        GHOST_COUNT => ghost_count: i32,
        /// Doubles, the waves of one step.
        WAVES => waves: u64,
    }
}

parameters! {
    /// Collects single values.
    pub struct Gather {
        ARRAY => array: u64,
        /// Of byte offsets in the array.
        TABLE => table: u64,
        COUNT => count: i32,
        OUT => out: u64,
    }
}

parameters! {
    /// Collects a plane, row by row.
    pub struct GatherPlane {
        FIRST => first: u64,
        /// Bytes from a row to the next one, and from a value to the next one of its row.
        BETWEEN_ROWS => between_rows: i64,
        BETWEEN_VALUES => between_values: i64,
        ROWS => rows: i32,
        VALUES => values: i32,
        OUT => out: u64,
    }
}

parameters! {
    /// Makes all ghosts along the inner axis from the values of rows.
    pub struct GhostsOf {
        ARRAY => array: u64,
    }
}

/// A row and one of its ghosts. Places are in bytes from the start of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCopy {
    /// Index 0 of the row.
    pub from: i64,
    /// Index 0 of the ghost.
    pub to: i64,
    /// The indices that are copied.
    pub lo: i32,
    pub hi: i32,
    /// Two indices that are not: values on a plane about which they are odd are always 0, without a sign that a mirror
    /// could turn.
    pub holes: [i32; 2],
    pub negated: bool,
}

impl RowCopy {
    /// Its bytes in a table, and where its fields lie in them.
    pub const BYTES: usize = 40;
    pub const FROM: i64 = 0;
    pub const TO: i64 = 8;
    pub const LO: i64 = 16;
    pub const HI: i64 = 20;
    pub const HOLES: [i64; 2] = [24, 28];
    pub const NEGATED: i64 = 32;

    /// As the kernel reads it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.from.to_le_bytes());
        out.extend(self.to.to_le_bytes());
        for word in [self.lo, self.hi, self.holes[0], self.holes[1]] {
            out.extend(word.to_le_bytes());
        }
        out.extend(u64::from(self.negated).to_le_bytes());
    }
}

/// A cell to which a source adds `profile * wave`, rounded to the array's precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SourceCell {
    /// In bytes from the start of the array.
    pub place: i64,
    pub profile: f64,
    /// Which of the step's waves.
    pub wave: u32,
    /// Its ghosts along the inner axis: `first..first + count` of the table.
    pub first: i32,
    pub count: i32,
    /// The product becomes the cell's value, rather than being added to it.
    pub replaces: bool,
}

impl SourceCell {
    /// Its bytes in a table, and where its fields lie in them.
    pub const BYTES: usize = 32;
    pub const PLACE: i64 = 0;
    pub const PROFILE: i64 = 8;
    pub const WAVE: i64 = 16;
    pub const FIRST: i64 = 20;
    pub const COUNT: i64 = 24;
    pub const REPLACES: i64 = 28;

    /// As the kernel reads it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.place.to_le_bytes());
        out.extend(self.profile.to_le_bytes());
        out.extend(self.wave.to_le_bytes());
        for word in [self.first, self.count, i32::from(self.replaces)] {
            out.extend(word.to_le_bytes());
        }
    }
}

/// A row to which corrections are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorrectedRow {
    /// Index 0 of the row, in bytes from the start of the array.
    pub place: i64,
    /// Its words in the table.
    pub pattern: i32,
    pub shift: i32,
}

impl CorrectedRow {
    /// Its bytes in a table, and where its fields lie in them.
    pub const BYTES: usize = 16;
    pub const PLACE: i64 = 0;
    pub const PATTERN: i64 = 8;
    pub const SHIFT: i64 = 12;

    /// As the kernel reads it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.place.to_le_bytes());
        out.extend(self.pattern.to_le_bytes());
        out.extend(self.shift.to_le_bytes());
    }
}

/// A ghost along the inner axis that every row of a component has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowGhost {
    /// Indices along the inner axis.
    pub of: i32,
    pub at: i32,
    pub negated: bool,
}

impl RowGhost {
    /// Its bytes in a table, and where its fields lie in them.
    pub const BYTES: usize = 12;
    pub const OF: i64 = 0;
    pub const AT: i64 = 4;
    pub const NEGATED: i64 = 8;

    /// As the kernel reads it.
    pub fn write(&self, out: &mut Vec<u8>) {
        for word in [self.of, self.at, i32::from(self.negated)] {
            out.extend(word.to_le_bytes());
        }
    }
}

/// Another place where a cell's value appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellGhost {
    /// In bytes from the start of the array.
    pub place: i64,
    pub negated: bool,
}

impl CellGhost {
    /// Its bytes in a table, and where its fields lie in them.
    pub const BYTES: usize = 16;
    pub const PLACE: i64 = 0;
    pub const NEGATED: i64 = 8;

    /// As the kernel reads it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.place.to_le_bytes());
        out.extend(u64::from(self.negated).to_le_bytes());
    }
}
