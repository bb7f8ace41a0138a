//! Sources and probes inside of time blocks: what happens to single values right after their updates.
//!
//! A period with a cell that a source adds to, or that a probe records, is run row by row in memory, as if an end of the grid cut it. After
//! the rows of a stage, each thread looks whether there is a hook on what it has just written. So the additions, their order and
//! the ghosts are those of a run stage by stage.
//!
//! What there is to do lies in one [`Table`], by offsets in bytes:
//!
//! ```text
//! header   bytes of the waves of a step, bytes of the records of a step
//! starts   per task with hooks, for each stage of its periods, and for their end: where the stage's list begins
//! list     the rows with hooks of a stage
//! row      the place of its index 0 in the array (8 bytes), where its indices are looked up
//! indices  per index of a row: its cell, or 0
//! cell     where its additions, ghosts and records begin, and the end of the last
//! addition profile (8 bytes), number of the wave
//! ghost    the place in the array (8 bytes), whether it is negated
//! record   number of the probe
//! ```

use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel};
use super::Task;
use super::write::Writer;
use crate::ghost::ComponentGhosts;
use crate::lattice::{Axis, Interval, PerAxis};
use crate::layout::Layout;
use crate::scheme::{ComponentId, Precision, Scheme, StageId};
use crate::tile::residency::{Own, Towers};
use std::collections::BTreeMap;

/// A source adds `profile * wave` to a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Addition {
    /// After whose updates it acts; one of them updates the cell.
    pub stage: StageId,
    pub component: ComponentId,
    pub at: PerAxis<i64>,
    pub profile: f64,
    /// Which of the step's waves.
    pub wave: i32,
}

/// What happens to single values in each step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hooks {
    /// Those to the same cell act in their order.
    pub additions: Vec<Addition>,
    /// The component and the place of each probe.
    pub probes: Vec<(ComponentId, PerAxis<i64>)>,
    /// Waves of a step.
    pub waves: usize,
}

/// The hooks of the towers of a time block, as kernels read them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub bytes: Vec<u8>,
    /// Periods of towers that hooks keep from running as whole ones, and of whole ones left.
    pub cut: u64,
    pub whole: u64,
}

/// Tables are no larger.
const MOST_BYTES: usize = 1 << 29;
/// Bytes of an entry of most parts of a table.
const ENTRY: i32 = 16;

/// A row of an update: stage, update, and index along the first two axes.
type RowKey = (StageId, usize, [i64; 2]);

/// What happens to a cell.
#[derive(Default)]
struct Cell {
    additions: Vec<(f64, i32)>,
    records: Vec<i32>,
}

type Rows = BTreeMap<RowKey, BTreeMap<i64, Cell>>;

impl Hooks {
    /// Whether a probe records what no update changes: towers leave that out.
    pub fn leave_out(&self, scheme: &Scheme) -> bool {
        let changes = |(id, at): &(ComponentId, PerAxis<i64>)| {
            let mut updates = scheme.stages.iter().flat_map(|s| &s.updates);
            updates.any(|u| u.target == *id && u.region.contains(*at))
        };
        !self.probes.iter().all(changes)
    }

    /// `None` where a source adds to what its stage does not update, or a probe records what its last update does not leave as the newest
    /// version.
    fn rows(&self, scheme: &Scheme, layout: &Layout) -> Option<Rows> {
        let updating = |stage: StageId, id: ComponentId, at: PerAxis<i64>| {
            let updates = &scheme.stages[stage.index()].updates;
            let own = updates
                .iter()
                .position(|u| u.target == id && u.region.contains(at));
            own.map(|update| (stage, update, [at[Axis::OUTER], at[Axis::MIDDLE]]))
        };
        let mut rows = Rows::new();
        for add in &self.additions {
            let row = updating(add.stage, add.component, add.at)?;
            let cells = rows.entry(row).or_default();
            let cell = cells.entry(add.at[Axis::INNER]).or_default();
            cell.additions.push((add.profile, add.wave));
        }
        for (number, &(id, at)) in self.probes.iter().enumerate() {
            let last = scheme
                .stage_ids()
                .filter_map(|s| updating(s, id, at))
                .last();
            // What no update changes is recorded otherwise.
            let Some(row) = last else { continue };
            let newest = (0..scheme.phases().max(1)).all(|phase| {
                let updates = (u64::from(phase) + 1) * u64::from(scheme.updates_per_step(id));
                layout.row(id, updates) == layout.target_row(scheme, row.0, phase, id)
            });
            if !newest {
                return None;
            }
            let cells = rows.entry(row).or_default();
            let cell = cells.entry(at[Axis::INNER]).or_default();
            cell.records.push(i32::try_from(number).ok()?);
        }
        Some(rows)
    }

    /// Attaches the hooks to the towers of a time block of so many periods. `None` where time blocks cannot do what is asked for, or where that is too
    /// much for a table.
    pub fn attach(
        &self,
        scheme: &Scheme,
        layout: &Layout,
        towers: &Towers,
        periods: u64,
        tasks: &mut [Task],
    ) -> Option<Table> {
        let rows = self.rows(scheme, layout)?;
        let mut bytes = Bytes::default();
        let each = [self.waves * 8, self.probes.len() * layout.element_bytes];
        for word in each {
            bytes.word(i32::try_from(word).ok()?);
        }
        bytes.pad();
        // Per task, period and stage of a period its rows; per alignment the rows of a period.
        let mut found: BTreeMap<(usize, u64, usize), Vec<i32>> = BTreeMap::new();
        let place = |task: &Task| (task.alignment, task.at.map(i64::from));
        let known: BTreeMap<(i32, [i64; 2]), usize> = tasks
            .iter()
            .enumerate()
            .map(|(n, t)| (place(t), n))
            .collect();
        let stages = scheme.stages.len();
        let of_period = towers.alignments.first()?.stages.len() as i64;
        for ((stage, update, at), cells) in &rows {
            let target = scheme.stages[stage.index()].updates[*update].target;
            let mut phases = Vec::new();
            for phase in 0..scheme.phases().max(1) {
                let row = Row {
                    scheme,
                    layout,
                    target,
                    stage: *stage,
                    phase,
                    at: *at,
                };
                phases.push(row.write(&mut bytes, cells)?);
            }
            for (alignment, sets) in towers.alignments.iter().enumerate() {
                for (number, of) in sets.stages.iter().enumerate() {
                    if number % stages != stage.index() {
                        continue;
                    }
                    let phase = number / stages % phases.len();
                    for own in of.own.iter().filter(|o: &&Own| o.update == *update) {
                        let depths = towers.depths(alignment, number, *own)?;
                        for (period, start) in origins(towers, *at, *own, periods) {
                            let Some(&task) = known.get(&(alignment as i32, start)) else {
                                continue;
                            };
                            let within = (0..2).all(|n| depths[n] < tasks[task].limits[n].into());
                            let x = start[0] + period as i64 * towers.advance[0] + own.x;
                            let passed = period as i64 * of_period + number as i64;
                            let window = towers.rings.seam.as_ref();
                            let window =
                                window.map(|s| s.window(stage.index(), *update).at(passed));
                            if within && window.is_none_or(|window| window.contains(x)) {
                                let list = found.entry((task, period, number)).or_default();
                                list.push(phases[phase]);
                            }
                        }
                    }
                }
            }
        }
        let mut table = Table {
            bytes: Vec::new(),
            cut: 0,
            whole: 0,
        };
        let rooms = towers.rooms(scheme, layout);
        let per_period = of_period as usize;
        for (number, task) in tasks.iter_mut().enumerate() {
            let all = found.range((number, 0, 0)..(number + 1, 0, 0));
            let lists: Vec<(u64, usize, &Vec<i32>)> = all
                .map(|((_, period, stage), list)| (*period, *stage, list))
                .collect();
            if lists.is_empty() {
                table.whole += (task.whole[1] - task.whole[0]) as u64;
                continue;
            }
            let hooked: Vec<i32> = lists.iter().map(|(period, ..)| *period as i32).collect();
            let [x, y] = [0, 1].map(|a| i64::from(task.at[a]) + i64::from(task.shift[a]));
            let begins = |period: i32| {
                let [by_x, by_y] = towers.advance.map(|n| n * i64::from(period));
                task.clipped || rooms[task.alignment as usize].may_begin([x + by_x, y + by_y])
            };
            let before = task.whole[1] - task.whole[0];
            task.whole = longest(task.whole, &hooked, begins);
            let left = task.whole[1] - task.whole[0];
            table.cut += (before - left) as u64;
            table.whole += left as u64;
            let mut starts = Vec::new();
            let mut lists = lists.into_iter().peekable();
            for period in task.first..task.end {
                for stage in 0..per_period {
                    starts.push(bytes.end()?);
                    let this = |l: &(u64, usize, &Vec<i32>)| (l.0 as i32, l.1) == (period, stage);
                    if let Some((_, _, list)) = lists.next_if(this) {
                        list.iter().for_each(|row| bytes.word(*row));
                    }
                }
            }
            starts.push(bytes.end()?);
            task.hooks = bytes.end()?;
            starts.into_iter().for_each(|start| bytes.word(start));
        }
        table.bytes = bytes.0;
        Some(table)
    }
}

/// The periods, and where a tower begins a time block, such that a row of a period lies at a place of the array: around periodic axes, too.
fn origins(
    towers: &Towers,
    at: [i64; 2],
    own: Own,
    periods: u64,
) -> impl Iterator<Item = (u64, [i64; 2])> {
    let shifts = towers.rings.shifts();
    (0..periods).flat_map(move |period| {
        let there = [at[0] - own.x, at[1] - own.y];
        let start = [0, 1].map(|a| there[a] - period as i64 * towers.advance[a]);
        let moved = move |by: &[i64; 2]| (period, [0, 1].map(|a| start[a] - by[a]));
        shifts.iter().map(moved).collect::<Vec<_>>()
    })
}

/// The longest part of a range without some of its periods, ascending, that begins where a whole tower can.
fn longest(whole: [i32; 2], without: &[i32], begins: impl Fn(i32) -> bool) -> [i32; 2] {
    let [from, until] = whole;
    let mut best = [until, until];
    let mut start = from;
    let inside = without.iter().filter(|t| (from..until).contains(*t));
    for end in inside.copied().chain([until]) {
        let first = (start..end).find(|t| begins(*t)).unwrap_or(end);
        if end - first > best[1] - best[0] {
            best = [first, end];
        }
        start = end + 1;
    }
    best
}

/// A table that is being written.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn word(&mut self, word: i32) {
        self.0.extend(word.to_le_bytes());
    }

    fn pad(&mut self) {
        self.0
            .resize(self.0.len().next_multiple_of(ENTRY as usize), 0);
    }

    fn end(&self) -> Option<i32> {
        let end = Some(self.0.len()).filter(|n| *n <= MOST_BYTES);
        end.and_then(|n| i32::try_from(n).ok())
    }
}

/// A row with hooks, in a phase.
struct Row<'a> {
    scheme: &'a Scheme,
    layout: &'a Layout,
    target: ComponentId,
    stage: StageId,
    phase: u32,
    at: [i64; 2],
}

impl Row<'_> {
    /// Writes it with its cells; gives where it is.
    fn write(&self, bytes: &mut Bytes, cells: &BTreeMap<i64, Cell>) -> Option<i32> {
        let mut found = BTreeMap::new();
        for (z, cell) in cells {
            let additions = bytes.end()?;
            for (profile, wave) in &cell.additions {
                bytes.0.extend(profile.to_le_bytes());
                bytes.word(*wave);
                bytes.pad();
            }
            let ghosts = bytes.end()?;
            // Without additions they are up to date.
            if !cell.additions.is_empty() {
                let [x, y] = self.at;
                let cells =
                    ComponentGhosts::new(self.scheme, self.target).of_cell(PerAxis([x, y, *z]));
                for (at, negated) in cells.into_iter().skip(1) {
                    bytes.0.extend(self.place(at).to_le_bytes());
                    bytes.word(i32::from(negated));
                    bytes.pad();
                }
            }
            let records = bytes.end()?;
            for record in &cell.records {
                bytes.word(*record);
                bytes.pad();
            }
            let end = bytes.end()?;
            found.insert(*z, end);
            for word in [additions, ghosts, records, end] {
                bytes.word(word);
            }
        }
        let indices = bytes.end()?;
        for z in 0..self.layout.extent[Axis::INNER] {
            bytes.word(found.get(&z).copied().unwrap_or(0));
        }
        bytes.pad();
        let row = bytes.end()?;
        let [x, y] = self.at;
        bytes.0.extend(self.place(PerAxis([x, y, 0])).to_le_bytes());
        bytes.word(indices);
        bytes.pad();
        Some(row)
    }

    fn place(&self, at: PerAxis<i64>) -> i64 {
        let row = self
            .layout
            .target_row(self.scheme, self.stage, self.phase, self.target);
        self.layout.element(row, at) * self.layout.element_bytes as i64
    }
}

/// What a kernel has of hooks.
#[derive(Clone, Copy)]
pub(super) struct Hooked {
    /// The array, the table, the waves and the records of the first step.
    pub array: Operand,
    pub table: Operand,
    pub waves: Operand,
    pub records: Operand,
    /// Where the task's word of hooks and its first period are.
    pub task: [Operand; 2],
    /// Whether the thread takes part in the stage, where lines are cut into spans.
    pub active: Option<Operand>,
}

fn at(k: &mut Kernel<'_>, base: Operand, by: Operand) -> Operand {
    let by = k.resize(by, Type::I64);
    k.advance(base, by, 1)
}

fn word(k: &mut Kernel<'_>, from: Operand, by: i64) -> Operand {
    let from = k.offset(from, by);
    k.load(Type::I32, from, 4, Access::ReadOnly)
}

impl Writer<'_> {
    /// The hooks of a stage of a period, both counted from the time block's start and the period's: each thread looks after its own index, if it takes
    /// part in the stage.
    pub(super) fn hooks(&self, k: &mut Kernel<'_>, hooked: Hooked, period: Operand, stage: usize) {
        let [of, first] = hooked
            .task
            .map(|from| k.load(Type::I32, from, 4, Access::Volatile));
        let some = k.compare(IntCmp::Ne, of, Operand::i32(0));
        k.when(some, |k| {
            let periods = k.int(IntOp::Sub, period, first);
            let stages = Operand::i32(4 * self.plan.stages.len() as i32);
            let by = k.int(IntOp::Mul, periods, stages);
            let by = k.int(IntOp::Add, by, of);
            let starts = at(k, hooked.table, by);
            let [from, until] = [0, 1].map(|n| word(k, starts, 4 * (stage as i64 + n)));
            let mut within = self.is_within(k, Interval::new(0, self.slot.length));
            if let Some(active) = hooked.active {
                within = k.int(IntOp::And, within, active);
            }
            k.repeat(from, until, Operand::i32(4), Some(1), |k, entry| {
                let entry = at(k, hooked.table, entry);
                let row = word(k, entry, 0);
                let row = at(k, hooked.table, row);
                let place = k.load(Type::I64, row, 8, Access::ReadOnly);
                let indices = word(k, row, 8);
                let indices = at(k, hooked.table, indices);
                let cell = k.advance(indices, self.index, 4);
                let cell = k.load(Type::I32, cell, 4, Access::ReadOnly);
                let has = k.compare(IntCmp::Ne, cell, Operand::i32(0));
                let has = k.int(IntOp::And, has, within);
                k.when(has, |k| {
                    let cell = at(k, hooked.table, cell);
                    let to = k.advance(hooked.array, place, 1);
                    let to = k.advance(to, self.index, self.real.bytes());
                    let step = k.int(IntOp::Mul, period, Operand::i32(self.towers.steps as i32));
                    let within_period = (stage / self.scheme.stages.len()) as i32;
                    let step = k.int(IntOp::Add, step, Operand::i32(within_period));
                    self.hook(k, hooked, cell, to, step);
                });
            });
        });
    }

    /// What happens to a value of the thread's.
    fn hook(&self, k: &mut Kernel<'_>, hooked: Hooked, cell: Operand, to: Operand, step: Operand) {
        let bytes = self.real.bytes();
        let double = Type::scalar(Precision::F64);
        let wide = k.resize(step, Type::I64);
        let [waves, records] = [(hooked.waves, 0), (hooked.records, 4)].map(|(base, n)| {
            let each = word(k, hooked.table, n);
            let each = k.resize(each, Type::I64);
            let by = k.int(IntOp::Mul, wide, each);
            k.advance(base, by, 1)
        });
        let [additions, ghosts, probes, end] = [0, 4, 8, 12].map(|n| word(k, cell, n));
        let value = k.load(self.real, to, bytes, Access::Plain);
        let value = k.variable_of(value);
        let step = Operand::i32(ENTRY);
        k.repeat(additions, ghosts, step, Some(1), |k, entry| {
            let entry = at(k, hooked.table, entry);
            let profile = k.load(double, entry, 8, Access::ReadOnly);
            let wave = word(k, entry, 8);
            let wave = k.resize(wave, Type::I64);
            let wave = k.advance(waves, wave, 8);
            let wave = k.load(double, wave, 8, Access::ReadOnly);
            let added = k.product(profile, wave);
            let added = k.convert(added, self.real);
            let before = k.get(value);
            let after = k.sum(before, added);
            k.set(value, after);
        });
        let value = k.get(value);
        k.store(value, to, bytes, Access::Plain);
        let opposite = k.negated(value);
        k.repeat(ghosts, probes, step, Some(1), |k, entry| {
            let entry = at(k, hooked.table, entry);
            let place = k.load(Type::I64, entry, 8, Access::ReadOnly);
            let negated = word(k, entry, 8);
            let negated = k.compare(IntCmp::Ne, negated, Operand::i32(0));
            let ghost = k.choose(negated, opposite, value);
            let to = k.advance(hooked.array, place, 1);
            k.store(ghost, to, bytes, Access::Plain);
        });
        k.repeat(probes, end, step, Some(1), |k, entry| {
            let entry = at(k, hooked.table, entry);
            let number = word(k, entry, 0);
            let number = k.resize(number, Type::I64);
            let to = k.advance(records, number, bytes);
            k.store(value, to, bytes, Access::Plain);
        });
    }
}

#[cfg(test)]
mod tests;
