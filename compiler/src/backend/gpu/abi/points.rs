//! The table of points: injections and receivers inside of time blocks, as kernels read them.
//!
//! All is found by offsets in bytes from the table's beginning:
//!
//! ```text
//! header   bytes of the waves of a step, bytes of the records of a step
//! stages   per task with points, for each stage of its periods, and for their end: where the stage's rows begin
//! rows     the rows with points of a stage
//! row      the place of the value of thread 0 in the array (8 bytes), where its indices are looked up
//! indices  per thread of a line: the cell of its value in the row, or 0
//! cell     where its injections, ghosts and records begin, and the end of the last
//! injection  profile (8 bytes), number of the wave
//! ghost      the place in the array (8 bytes), whether it is negated
//! record     number of the receiver
//! ```

use crate::ghost::ComponentGhosts;
use crate::lattice::{Axis, PerAxis};
use crate::layout::Layout;
use crate::scheme::Scheme;
use crate::tower::{PhasedRow, PointCell, PointPlan, PointRow, Points, Task, TaskStage};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of the entries of a table, and where their fields lie in them.
pub struct PointEntry;

impl PointEntry {
    pub const BYTES: i32 = 16;
    pub const HEADER_WAVES: i64 = 0;
    pub const HEADER_RECORDS: i64 = 4;
    pub const ROW_PLACE: i64 = 0;
    pub const ROW_INDICES: i64 = 8;
    /// Where the injections, ghosts and records of a cell begin, and the end of the last.
    pub const CELL: [i64; 4] = [0, 4, 8, 12];
    pub const PROFILE: i64 = 0;
    pub const WAVE: i64 = 8;
    pub const GHOST_PLACE: i64 = 0;
    pub const GHOST_NEGATED: i64 = 8;
    pub const RECORD: i64 = 0;
}

/// The points of a time block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointTable {
    pub bytes: Vec<u8>,
    /// Per task, where its stages begin; 0 if it has no points.
    pub tasks: Vec<i32>,
}

/// Tables are no larger.
const MOST_BYTES: usize = 1 << 29;

/// `None` where that is too much for a table.
pub fn point_table(
    scheme: &Scheme,
    layout: &Layout,
    points: &Points,
    plan: &PointPlan,
    tasks: &[Task],
    per_period: usize,
) -> Option<PointTable> {
    let mut table = Bytes::default();
    let each = [
        points.waves * 8,
        points.receivers.len() * layout.element_bytes,
    ];
    for word in each {
        table.word(i32::try_from(word).ok()?);
    }
    table.pad();
    let used: BTreeSet<PhasedRow> = plan.stages.values().flatten().copied().collect();
    let mut rows: BTreeMap<PhasedRow, i32> = BTreeMap::new();
    for of in used {
        let writer = RowWriter {
            scheme,
            layout,
            row: &plan.rows[of.row],
            of,
        };
        rows.insert(of, writer.write(&mut table)?);
    }
    let mut starts = Vec::new();
    for (number, task) in tasks.iter().enumerate() {
        let stage_of = |task, period, stage| TaskStage {
            task,
            period,
            stage,
        };
        let own = stage_of(number, 0, 0)..stage_of(number + 1, 0, 0);
        if plan.stages.range(own).next().is_none() {
            starts.push(0);
            continue;
        }
        let mut stages = Vec::new();
        for period in task.placement.periods.clone() {
            for stage in 0..per_period {
                stages.push(table.end()?);
                let found = plan.stages.get(&stage_of(number, period, stage));
                for of in found.into_iter().flatten() {
                    table.word(rows[of]);
                }
            }
        }
        stages.push(table.end()?);
        starts.push(table.end()?);
        stages.into_iter().for_each(|stage| table.word(stage));
    }
    Some(PointTable {
        bytes: table.0,
        tasks: starts,
    })
}

/// A table that is being written.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn word(&mut self, word: i32) {
        self.0.extend(word.to_le_bytes());
    }

    fn pad(&mut self) {
        let entry = PointEntry::BYTES as usize;
        self.0.resize(self.0.len().next_multiple_of(entry), 0);
    }

    fn end(&self) -> Option<i32> {
        let end = Some(self.0.len()).filter(|n| *n <= MOST_BYTES);
        end.and_then(|n| i32::try_from(n).ok())
    }
}

/// A row with points, in a phase and a plane.
struct RowWriter<'a> {
    scheme: &'a Scheme,
    layout: &'a Layout,
    row: &'a PointRow,
    of: PhasedRow,
}

impl RowWriter<'_> {
    /// Writes it with its cells; gives where it is.
    fn write(&self, table: &mut Bytes) -> Option<i32> {
        let mut found = BTreeMap::new();
        for (z, cell) in &self.row.cells {
            found.insert(*z, self.cell(table, *z, cell)?);
        }
        let indices = table.end()?;
        let first = self.row.first;
        for thread in 0..self.layout.extent[Axis::INNER] {
            let cell = found.get(&(first + thread)).copied();
            table.word(cell.unwrap_or(0));
        }
        table.pad();
        let row = table.end()?;
        table.0.extend(self.place(self.at(first)).to_le_bytes());
        table.word(indices);
        table.pad();
        Some(row)
    }

    fn cell(&self, table: &mut Bytes, z: i64, cell: &PointCell) -> Option<i32> {
        let injections = table.end()?;
        for (profile, wave) in &cell.injections {
            table.0.extend(profile.to_le_bytes());
            table.word(i32::try_from(*wave).ok()?);
            table.pad();
        }
        let ghosts = table.end()?;
        // Without injections they are up to date.
        if !cell.injections.is_empty() {
            let target = self.scheme.stages[self.row.stage.index()].updates[self.row.update].target;
            let cells = ComponentGhosts::new(self.scheme, target).of_cell(self.at(z));
            let around = self.scheme.grid.is_periodic(Axis::OUTER) && self.layout.windowed;
            // Planes that are counted on around the outer axis have no ghosts across it.
            let is_there = |at: PerAxis<i64>| !around || at[Axis::OUTER] == self.row.at.x;
            let ghosts = cells.into_iter().skip(1);
            for (at, negated) in ghosts.filter(|(at, _)| is_there(*at)) {
                table.0.extend(self.place(at).to_le_bytes());
                table.word(i32::from(negated));
                table.pad();
            }
        }
        let records = table.end()?;
        for record in &cell.records {
            table.word(i32::try_from(*record).ok()?);
            table.pad();
        }
        let end = table.end()?;
        for word in [injections, ghosts, records, end] {
            table.word(word);
        }
        Some(end)
    }

    fn at(&self, z: i64) -> PerAxis<i64> {
        PerAxis([self.row.at.x, self.row.at.y, z])
    }

    /// In bytes from the start of the array.
    fn place(&self, at: PerAxis<i64>) -> i64 {
        let PointRow { stage, update, .. } = *self.row;
        let target = self.scheme.stages[stage.index()].updates[update].target;
        let row = self
            .layout
            .target_row(self.scheme, stage, self.of.phase, target);
        let planes = self.of.planes * self.layout.stride[Axis::OUTER];
        (self.layout.element(row, at) + planes) * self.layout.element_bytes as i64
    }
}
