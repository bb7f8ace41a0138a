//! The kernel of a patch program: its parameters, and the tables in which it finds sources and probes.

use super::parameters;
use crate::patch::{EntryKind, Lists};

parameters! {
    /// A time block of pyramids, or several where tiles stay.
    pub struct Patches {
        /// The array that is read, and the one in which bases are stored.
        FROM => from: u64,
        TO => to: u64,
        /// Rounds of the launch.
        ROUNDS => rounds: i32,
        /// Not 0: rows that the next round does not need are stored, too.
        ALL => all: i32,
        /// For each tile the number of its list, or -1.
        LISTS => lists: u64,
        /// For each list where the entries of each update begin, and the end of the last ones.
        RANGES => ranges: u64,
        /// Of [`PatchEntry`].
        ENTRIES => entries: u64,
        /// Doubles, and how many a step has.
        WAVES => waves: u64,
        WAVE_COUNT => wave_count: i32,
        /// Of values, and how many a step has.
        RECORDS => records: u64,
        RECORD_COUNT => record_count: i32,
        /// Where tiles stay: two arrays for rims, one after the other.
        RIMS => rims: u64,
        /// How many exchanges each tile has begun, in words as many bytes apart as the words of towers.
        PROGRESS => progress: u64,
        /// Words: for each tile the tiles for which it waits.
        NEIGHBOURS => neighbours: u64,
        /// The progress that tiles have reached before.
        SINCE => since: i32,
        /// For each tile the number of its room, or -1, where zones amend updates; and the rooms, one after the other.
        ROOM_NUMBERS => room_numbers: u64,
        ROOMS => rooms: u64,
    }
}

/// An entry as kernels read it, and a cell of its table.
#[derive(Clone, Copy, Debug)]
pub struct PatchEntry;

impl PatchEntry {
    pub const BYTES: usize = 56;
    /// The address of the cell of the table that belongs to the first one.
    pub const CELLS: i64 = 0;
    /// The first cell along the axes, and where they end.
    pub const LO: [i64; 3] = [8, 12, 16];
    pub const HI: [i64; 3] = [20, 24, 28];
    /// Cells of the table from one index along the outer and the middle axis to the next.
    pub const STRIDES: [i64; 2] = [32, 36];
    pub const KIND: i64 = 40;
    /// Under which a value is recorded.
    pub const NUMBER: i64 = 44;

    /// Kinds.
    pub const ADD: i32 = 0;
    pub const REPLACE: i32 = 1;
    pub const RECORD: i32 = 2;

    /// A cell of a table: its profile, and the number of its wave, negative where the source does not act.
    pub const CELL_BYTES: usize = 16;
    pub const PROFILE: i64 = 0;
    pub const WAVE: i64 = 8;
}

/// The tables of lists as bytes: cells of all tables one after the other, the lists of tiles, ranges, and entries,
/// which need to know where the cells will lie.
pub fn patch_tables(
    lists: &Lists,
    cells_at: impl FnOnce(&[u8]) -> Option<u64>,
) -> Option<[Vec<u8>; 3]> {
    let mut cells = Vec::new();
    let mut begins = Vec::new();
    for table in &lists.tables {
        begins.push((cells.len() / PatchEntry::CELL_BYTES) as i64);
        for cell in &table.cells {
            let (profile, wave) = cell.map_or((0.0, -1), |(profile, wave)| (profile, wave as i32));
            cells.extend(f64::to_le_bytes(profile));
            cells.extend(wave.to_le_bytes());
            cells.extend([0; 4]);
        }
    }
    let at = cells_at(&cells)?;
    let words = |words: &mut dyn Iterator<Item = i32>| words.flat_map(i32::to_le_bytes).collect();
    let of_tile = words(
        &mut lists
            .of_tile
            .iter()
            .map(|list| list.map_or(-1, |n| n as i32)),
    );
    let ranges = words(&mut lists.ranges.iter().flatten().map(|n| *n as i32));
    let mut entries = Vec::with_capacity(lists.entries.len() * PatchEntry::BYTES);
    for entry in &lists.entries {
        let begin = begins.get(entry.table).copied().unwrap_or(0);
        let widths = lists.tables.get(entry.table).map(|table| table.widths);
        let [_, ys, zs] = widths.unwrap_or_default();
        let (kind, number) = match entry.kind {
            EntryKind::Add => (PatchEntry::ADD, 0),
            EntryKind::Replace => (PatchEntry::REPLACE, 0),
            EntryKind::Record(number) => (PatchEntry::RECORD, number as i32),
        };
        let first = at + ((begin + entry.first) * PatchEntry::CELL_BYTES as i64) as u64;
        entries.extend(first.to_le_bytes());
        let [x, y, z] = entry.cells;
        let (lo, hi) = ([x.lo, y.lo, z.lo], [x.hi, y.hi, z.hi]);
        let rest = [ys * zs, zs, kind.into(), number.into(), 0, 0];
        let numbers = lo.into_iter().chain(hi).chain(rest);
        entries.extend(numbers.flat_map(|n| (n as i32).to_le_bytes()));
    }
    Some([of_tile, ranges, entries])
}
