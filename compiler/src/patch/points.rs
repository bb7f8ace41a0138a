//! Sources and probes as tiles meet them: entries in lists, one for each update.
//!
//! A source acts in all tiles that compute its cells, a probe records in the one whose base has its cell. Around a ring
//! a tile can have a cell several times; then each of them is an entry of its own.

use super::program::PatchProgram;
use super::shape::{AXES, Along};
use crate::injection::{Injection, InjectionSource, Injections, Receiver};
use crate::lattice::{Interval, PerAxis, div_ceil};
use crate::scheme::{ComponentId, Scheme, StageId};

/// The operation on the cells of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// The product of profile and wave is added.
    Add,
    /// It becomes the value.
    Replace,
    /// The value is recorded under this number.
    Record(u32),
}

/// Cells of a tile in which something happens after an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: EntryKind,
    /// Along the axes, counted from the tile's first cell.
    pub cells: [Interval; 3],
    /// The number of its table, and the cell of it that belongs to the first one.
    pub table: usize,
    pub first: i64,
}

/// The cells of a source, in the box that holds them: for each its profile and the number of its wave; none where it
/// does not act. The last index varies fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct CellTable {
    pub lo: [i64; 3],
    pub widths: [i64; 3],
    pub cells: Vec<Option<(f64, u32)>>,
}

/// All entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lists {
    pub tables: Vec<CellTable>,
    /// The list of each tile, if it has one; along the inner axis fastest.
    pub of_tile: Vec<Option<u32>>,
    /// For each list and each update of a step its first entry, and behind them the end of the list.
    pub ranges: Vec<Vec<u32>>,
    pub entries: Vec<Entry>,
}

/// Sources or probes are more than tables hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPoints;

/// Cells of all tables, and entries, at most.
const MOST_CELLS: i64 = 1 << 24;
const MOST_ENTRIES: usize = 1 << 22;

/// Something that acts after an update.
struct Act {
    update: usize,
    kind: EntryKind,
    table: usize,
    lo: [i64; 3],
    widths: [i64; 3],
}

/// Corrections near the faces of boxes of total fields, as sources: corrections of each face by themselves, since a
/// table has a box of cells.
fn corrections(injections: &Injections) -> Vec<InjectionSource> {
    let first = injections.first_correction() as u32;
    let mut sources: Vec<InjectionSource> = Vec::new();
    for rows in injections.corrected() {
        // Both faces across the inner axis, then the faces across the other ones.
        let mut of_faces: [Vec<Injection>; 6] = Default::default();
        for row in rows.rows() {
            let own = rows.is_whole(row).then(|| rows.nearest_face(row));
            for (z, wave) in rows.row(row) {
                let across = || usize::from(z >= rows.hole.hi);
                of_faces[own.map_or_else(across, |face| 2 + face)].push(Injection {
                    at: PerAxis([row[0], row[1], z]),
                    profile: 1.0,
                    wave: first + wave,
                });
            }
        }
        let of_faces = of_faces.into_iter().filter(|cells| !cells.is_empty());
        sources.extend(of_faces.map(|cells| InjectionSource {
            stage: rows.group.stage,
            component: rows.group.component,
            replaces: false,
            cells,
        }));
    }
    sources
}

impl Lists {
    pub fn new(
        scheme: &Scheme,
        program: &PatchProgram,
        injections: &Injections,
        receivers: &[Receiver],
    ) -> Result<Lists, TooManyPoints> {
        let mut lists = Lists::default();
        let mut acts = Vec::new();
        let mut cells = 0i64;
        let corrections = corrections(injections);
        for source in corrections.iter().chain(&injections.sources) {
            let update = number_of(scheme, source.stage, source.component);
            let (Some(update), Some((lo, widths))) = (update, bounds(source)) else {
                continue;
            };
            let own = (widths.iter()).fold(1i64, |all, width| all.saturating_mul(*width));
            cells = cells.saturating_add(own);
            if cells > MOST_CELLS {
                return Err(TooManyPoints);
            }
            lists.tables.push(table(source, lo, widths));
            acts.push(Act {
                update,
                kind: if source.replaces {
                    EntryKind::Replace
                } else {
                    EntryKind::Add
                },
                table: lists.tables.len() - 1,
                lo,
                widths,
            });
        }
        // A receiver sees values after the sources.
        for (number, receiver) in receivers.iter().enumerate() {
            let update = receiver
                .stage
                .and_then(|s| number_of(scheme, s, receiver.component));
            let Some(update) = update else { continue };
            acts.push(Act {
                update,
                kind: EntryKind::Record(number as u32),
                table: 0,
                lo: AXES.map(|axis| receiver.at[axis]),
                widths: [1; 3],
            });
        }
        lists.distribute(scheme, program, &acts)?;
        Ok(lists)
    }

    fn distribute(
        &mut self,
        scheme: &Scheme,
        program: &PatchProgram,
        acts: &[Act],
    ) -> Result<(), TooManyPoints> {
        let updates: usize = scheme.stages.iter().map(|s| s.updates.len()).sum();
        // Per tile, the entries with their updates.
        let mut of_tile: Vec<Vec<(usize, Entry)>> = vec![Vec::new(); program.tiles() as usize];
        let mut count = 0;
        for act in acts {
            let [xs, ys, zs] = [0, 1, 2].map(|n| {
                let cells = program.shape.tile()[n];
                places(&program.along[n], cells, act, n)
            });
            let planes = xs.iter().flat_map(|x| ys.iter().map(move |y| [x, y]));
            for [x, y, z] in planes.flat_map(|[x, y]| zs.iter().map(move |z| [x, y, z])) {
                count += 1;
                if count > MOST_ENTRIES {
                    return Err(TooManyPoints);
                }
                let entry = Entry {
                    kind: act.kind,
                    cells: [x, y, z].map(|met| met.cells),
                    table: act.table,
                    first: (x.before * act.widths[1] + y.before) * act.widths[2] + z.before,
                };
                let tile = program.tile_number([x, y, z].map(|met| met.tile));
                of_tile[tile].push((act.update, entry));
            }
        }
        for mut own in of_tile {
            if own.is_empty() {
                self.of_tile.push(None);
                continue;
            }
            // The order of the entries of an update stays.
            own.sort_by_key(|(update, _)| *update);
            let first = self.entries.len();
            let begin = |update: usize| first + own.partition_point(|(u, _)| *u < update);
            let ranges = (0..=updates).map(|update| begin(update) as u32);
            self.of_tile.push(Some(self.ranges.len() as u32));
            self.ranges.push(ranges.collect());
            self.entries.extend(own.into_iter().map(|(_, entry)| entry));
        }
        Ok(())
    }
}

/// The number of the update of a component in a stage, counted through all stages.
fn number_of(scheme: &Scheme, stage: StageId, component: ComponentId) -> Option<usize> {
    let updates = &scheme.stages[stage.index()].updates;
    let own = updates.iter().position(|u| u.target == component)?;
    Some(PatchProgram::first_update(scheme, stage) + own)
}

/// The first cell of the box that holds the cells of a source, and its widths; `None` if there are none.
fn bounds(source: &InjectionSource) -> Option<([i64; 3], [i64; 3])> {
    let first = source.cells.first()?.at;
    let mut lo = AXES.map(|axis| first[axis]);
    let mut last = lo;
    for cell in &source.cells {
        for (n, axis) in AXES.into_iter().enumerate() {
            lo[n] = lo[n].min(cell.at[axis]);
            last[n] = last[n].max(cell.at[axis]);
        }
    }
    Some((lo, [0, 1, 2].map(|n| last[n] - lo[n] + 1)))
}

fn table(source: &InjectionSource, lo: [i64; 3], widths: [i64; 3]) -> CellTable {
    let mut cells = vec![None; widths.iter().product::<i64>() as usize];
    for cell in &source.cells {
        let [x, y, z] = [0, 1, 2].map(|n| cell.at[AXES[n]] - lo[n]);
        cells[((x * widths[1] + y) * widths[2] + z) as usize] = Some((cell.profile, cell.wave));
    }
    CellTable { lo, widths, cells }
}

/// A tile that something acts in, as far as an axis tells.
struct Met {
    tile: i64,
    /// Cells of the box that come before the cells in the tile.
    before: i64,
    /// The cells in the tile, counted from its first cell.
    cells: Interval,
}

/// The tiles along an axis that something acts in.
fn places(along: &Along, cells: i64, act: &Act, n: usize) -> Vec<Met> {
    let mut found = Vec::new();
    for tile in 0..along.tiles {
        let origin = along.origin(tile);
        let seen = match act.kind {
            // The tile that stores a cell records it.
            EntryKind::Record(_) => Interval::new(tile * along.base, (tile + 1) * along.base),
            _ => Interval::new(origin, origin + cells),
        };
        let images = match (along.ring, act.kind) {
            (Some(ring), EntryKind::Add | EntryKind::Replace) => {
                let first = div_ceil(seen.lo - act.lo[n] - act.widths[n] + 1, ring);
                let last = (seen.hi - 1 - act.lo[n]).div_euclid(ring);
                (first..=last).map(|turn| turn * ring).collect()
            }
            _ => vec![0],
        };
        for by in images {
            let lo = act.lo[n] + by;
            let part = Interval::new(lo, lo + act.widths[n]).intersect(seen);
            if !part.is_empty() {
                found.push(Met {
                    tile,
                    before: part.lo - lo,
                    cells: Interval::new(part.lo - origin, part.hi - origin),
                });
            }
        }
    }
    found
}
