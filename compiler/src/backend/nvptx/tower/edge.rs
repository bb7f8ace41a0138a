//! Towers that an end of the grid cuts: row by row in memory, with a condition for each row.
//!
//! The same rows in the same stages as in a whole tower, with the same barriers. A row that lies in the region of its update is computed
//! from memory and stored, together with its ghosts; but those along the inner axis, where memory does not hold them: then threads near an
//! end read their sources.

use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel};
use super::beyond::Met;
use super::hooks::Hooked;
use super::sheets::{Acting, Places, Rows};
use super::stage::row_op;
use super::write::{Period, Writer};
use crate::ghost::{AxisGhosts, Fold};
use crate::lattice::{Axis, Interval, div_ceil};
use crate::layout::RowId;
use crate::scheme::{Cmp, ComponentId, Op, StageId, Update, Value};
use crate::tile::residency::{self, Towers, keeps_old, without_ghosts};

/// The rows of a period, by stage and update, as kernels read them: the index along the outer axis, relative to the origin, in the lower half
/// of a word, that along the middle axis in the upper half; in a second word, where towers may be narrow, how deep the row lies along
/// both faces. `None` where a number is larger than that.
pub(super) fn rows(towers: &Towers, alignment: usize) -> Option<Vec<i32>> {
    let pair = |[low, high]: [i64; 2]| {
        let [low, high] = [low, high].map(i16::try_from);
        Some(i32::from(high.ok()?) << 16 | i32::from(low.ok()?) & 0xffff)
    };
    let mut rows = Vec::new();
    for (number, stage) in towers.alignments[alignment].stages.iter().enumerate() {
        let mut own = stage.own.clone();
        own.sort_by_key(|o| (o.update, o.x, o.y));
        for own in own {
            rows.push(pair([own.x, own.y])?);
            if towers.rings.narrow {
                rows.push(pair(towers.depths(alignment, number, own)?)?);
            }
        }
    }
    Some(rows)
}

/// Rows of a period of each alignment, together.
pub(super) fn count(towers: &Towers) -> usize {
    let stages = towers.alignments.iter().flat_map(|a| &a.stages);
    stages.map(|stage| stage.own.len()).sum()
}

/// Words of a row.
pub(super) fn words(towers: &Towers) -> usize {
    if towers.rings.narrow { 2 } else { 1 }
}

/// A period of a tower that may be cut.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    /// Where the origin lies; where an axis is periodic, where index 0 of all axes does.
    pub period: Period,
    /// The index of the origin, counted on around periodic axes.
    pub at: [Operand; 2],
    /// Of the task.
    pub limits: [Operand; 2],
    /// The rows of all alignments.
    pub rows: Operand,
    /// The period's number, a step of the period, and what is done to single values.
    pub number: Operand,
    pub step: i32,
    pub hooked: Hooked,
}

/// Values that are loaded together, so that they are under way at the same time: as many rows' as this allows.
const AT_ONCE: usize = 108;
/// Rows that are advanced together at most, by towers of one alignment, of several, and of several that run spans; and the same where axes are periodic,
/// so that more has to be known of each.
const MOST_ROWS: [usize; 3] = [10, 10, 6];
const MOST_ON_RINGS: [usize; 3] = [8, 6, 4];

/// A row of a tower that may be cut.
struct Row {
    /// The thread has something to do.
    inside: Operand,
    /// Its index along the first two axes.
    at: [Operand; 2],
    /// Row 0 of its group, at the thread's index.
    from: Operand,
}

/// What an update reads: elements from row 0 of the target's group; and how some threads find it elsewhere, with the distance along the vector
/// axis.
struct Place {
    at: i64,
    folded: Option<(Met, i64)>,
}

impl Writer<'_> {
    /// All stages of a period; threads meet after each.
    pub(super) fn cut_period(&self, k: &mut Kernel<'_>, cut: Cut) {
        let stages = self.scheme.stages.len();
        let phases = self.scheme.phases().max(1);
        let mut first = self.first_row;
        for (number, plan) in self.plan.stages.iter().enumerate() {
            let stage = StageId((number % stages) as u32);
            let phase = (number / stages) as u32 % phases;
            let place = self.between(k, cut.number, self.thread);
            let active = place.map(|place| self.takes_part(k, place, [number as i64; 2]));
            let hooked = Hooked {
                active,
                ..cut.hooked
            };
            for (index, update) in self.scheme.stages[stage.index()].updates.iter().enumerate() {
                let count = plan.own.iter().filter(|o| o.update == index).count();
                if count > 0 {
                    let step = (number / stages) as i32;
                    let cut = Cut {
                        step,
                        hooked,
                        ..cut
                    };
                    let list = Interval::new(first, first + count as i64);
                    let lean = self.window(k, cut.number, number, index);
                    self.cut_rows(k, cut, (list, lean), update, stage, phase);
                    first = list.hi;
                }
            }
            self.hooks(k, hooked, cut.number, number);
            self.settle(k);
        }
    }

    fn cut_rows(
        &self,
        k: &mut Kernel<'_>,
        cut: Cut,
        (list, lean): (Interval, Option<(Operand, i64)>),
        update: &Update,
        stage: StageId,
        phase: u32,
    ) {
        let [from, until] = [list.lo, list.hi].map(|n| Operand::i32(n as i32));
        let places = self.places(update, stage, phase);
        let loads = places.iter().flatten().count().max(1) * self.real.bytes() as usize / 4;
        let which = match (self.towers.alignments.len(), &self.spans) {
            (0 | 1, _) => 0,
            (_, None) => 1,
            (_, Some(_)) => 2,
        };
        let most = match self.towers.rings.is_any() {
            true => MOST_ON_RINGS[which],
            false => MOST_ROWS[which],
        };
        let most = (AT_ONCE / loads).clamp(1, most) as i64;
        // As many each time, so that none is computed in vain.
        let together = div_ceil(list.len(), div_ceil(list.len(), most)) as u32;
        let step = Operand::i32(together as i32);
        k.repeat(from, until, step, Some(1), |k, first| {
            let sights = self.of_folded(&places, |met, by| self.sight(k, met, by));
            // All loads of some rows come before all their stores, so that they are under way together.
            let rows: Vec<Row> = (0..together)
                .map(|n| self.cut_row(k, cut, [first, until], n, (update, lean)))
                .collect();
            let loaded: Vec<Vec<Option<Operand>>> = rows
                .iter()
                .map(|row| self.load_row(k, row, &places, &sights))
                .collect();
            let negated = self.of_folded(&places, |met, by| self.is_negated(k, met, by));
            let mut values: Vec<Operand> = loaded
                .into_iter()
                .map(|loaded| {
                    let loaded = negated_as_seen(k, loaded, &negated);
                    self.compute_row(k, update, &loaded)
                })
                .collect();
            let places: Vec<_> = rows.iter().map(|row| (row.at, row.inside)).collect();
            let dense = Rows {
                acting: Acting {
                    stage,
                    component: update.target,
                },
                active: None,
                period: cut.number,
                step: cut.step,
                places: Places::Cut(&places),
            };
            self.add_sheets(k, &dense, &mut values);
            let target = self
                .layout
                .target_row(self.scheme, stage, phase, update.target);
            let target = self.bytes(i64::from(target.0) * self.layout.row_stride);
            let inner = without_ghosts(self.scheme, update);
            for (row, value) in rows.iter().zip(values) {
                k.when(row.inside, |k| {
                    let to = k.offset(row.from, target);
                    self.store(k, update.target, to, value);
                    // Most rows have none: one jump then, and the same one for all threads.
                    let mut near = Operand::int(Type::I1, 0);
                    for (at, inner) in row.at.into_iter().zip(inner) {
                        let far = in_interval(k, at, inner);
                        let at_end = k.int(IntOp::Xor, far, Operand::int(Type::I1, 1));
                        near = k.int(IntOp::Or, near, at_end);
                    }
                    k.when(near, |k| {
                        self.write_ghosts(k, update.target, to, row.at, value);
                    });
                });
            }
        });
    }

    /// Where the outer axis is periodic, the first index that counts for an update in a stage of a period, and how many do.
    fn window(
        &self,
        k: &mut Kernel<'_>,
        period: Operand,
        number: usize,
        update: usize,
    ) -> Option<(Operand, i64)> {
        let seam = self.towers.rings.seam.as_ref()?;
        let window = seam.window(number % self.scheme.stages.len(), update);
        let stages = self.plan.stages.len() as i64;
        // Divisions are without a sign.
        let more = div_ceil((-window.from).max(0), window.unit);
        let from = window.from + window.rate * number as i64 + more * window.unit;
        let wide = k.resize(period, Type::I64);
        let passed = k.int(IntOp::Mul, wide, Operand::i64(window.rate * stages));
        let passed = k.int(IntOp::Add, passed, Operand::i64(from));
        let edge = k.int(IntOp::Div, passed, Operand::i64(window.unit));
        let edge = k.int(IntOp::Sub, edge, Operand::i64(more));
        let edge = k.resize(edge, Type::I32);
        let first = if window.begins {
            k.int(IntOp::Sub, Operand::i32(0), edge)
        } else {
            k.int(IntOp::Add, edge, Operand::i32((1 - window.cells) as i32))
        };
        Some((first, window.cells))
    }

    /// One of some rows that are advanced together, from a list.
    fn cut_row(
        &self,
        k: &mut Kernel<'_>,
        cut: Cut,
        [first, until]: [Operand; 2],
        number: u32,
        (update, lean): (&Update, Option<(Operand, i64)>),
    ) -> Row {
        let rings = &self.towers.rings;
        let number = k.int(IntOp::Add, first, Operand::i32(number as i32));
        let there = k.compare(IntCmp::Lt, number, until);
        let last = k.int(IntOp::Sub, until, Operand::i32(1));
        let number = k.int(IntOp::Min, number, last);
        let number = k.resize(number, Type::I64);
        let entry = k.advance(cut.rows, number, 4 * words(self.towers) as u32);
        let half = Operand::i32(16);
        let pair = |k: &mut Kernel<'_>, from: Operand| {
            let word = k.load(Type::I32, from, 4, Access::ReadOnly);
            let low = k.int(IntOp::Left, word, half);
            [low, word].map(|word| k.int(IntOp::RightSigned, word, half))
        };
        let offsets = pair(k, entry);
        // Where rows are shorter than others, ghosts lie beyond their ends, which other threads write.
        let extent = self.scheme.extent(update.target)[Axis::INNER];
        let within = self.is_within(k, extent);
        let mut inside = k.int(IntOp::And, there, within);
        if let Some(active) = cut.hooked.active {
            inside = k.int(IntOp::And, inside, active);
        }
        if rings.narrow {
            let second = k.offset(entry, 4);
            for (depth, limit) in pair(k, second).into_iter().zip(cut.limits) {
                let own = k.compare(IntCmp::Lt, depth, limit);
                inside = k.int(IntOp::And, inside, own);
            }
        }
        let mut at = cut.at;
        let mut pointer = cut.period.own;
        for (n, axis) in [Axis::OUTER, Axis::MIDDLE].into_iter().enumerate() {
            let mut by = offsets[n];
            at[n] = k.int(IntOp::Add, at[n], by);
            if let (Axis::OUTER, Some((first, cells))) = (axis, lean) {
                let on = k.int(IntOp::Sub, at[n], first);
                let counts = k.compare(IntCmp::Below, on, Operand::i32(cells as i32));
                inside = k.int(IntOp::And, inside, counts);
            }
            if let Some(around) = rings.cells[n] {
                at[n] = wrapped(k, at[n], around);
            }
            let within = in_interval(k, at[n], update.region[axis]);
            inside = k.int(IntOp::And, inside, within);
            if rings.is_any() {
                by = at[n];
            }
            let by = k.resize(by, Type::I64);
            let stride = self.bytes(self.layout.stride[axis]);
            let by = k.int(IntOp::Mul, by, Operand::i64(stride));
            pointer = k.advance(pointer, by, 1);
        }
        Row {
            inside,
            at,
            from: pointer,
        }
    }

    /// Where an update reads, from the target's group: in the order of its operations, then mask and old value.
    fn places(&self, update: &Update, stage: StageId, phase: u32) -> Vec<Option<Place>> {
        let own = |row: RowId| Place {
            at: i64::from(row.0) * self.layout.row_stride,
            folded: None,
        };
        let of = |op: &Op| match op {
            Op::Read(read) => {
                let by = i64::from(read.offset[Axis::INNER]);
                let met = self.folds(read.component, by);
                Some(Place {
                    at: self.layout.displacement(self.scheme, stage, phase, read),
                    folded: (met != Met::default()).then_some((met, by)),
                })
            }
            Op::Coef(coef) => Some(own(self.layout.coef_row(*coef))),
            _ => None,
        };
        let target = self
            .layout
            .target_row(self.scheme, stage, phase, update.target);
        let mask = update.mask.map(|mask| own(self.layout.coef_row(mask)));
        let old = keeps_old(self.scheme, update).then(|| own(target));
        update.body.ops.iter().map(of).chain([mask, old]).collect()
    }

    /// What is known of places that may be folded, computed once for those that are in the same way.
    fn of_folded<T: Copy>(
        &self,
        places: &[Option<Place>],
        mut compute: impl FnMut(Met, i64) -> T,
    ) -> Vec<Option<T>> {
        let mut known: Vec<((Met, i64), T)> = Vec::new();
        let folded = places.iter().map(|place| place.as_ref()?.folded);
        let folded = folded.map(|folded| {
            let key = folded?;
            let found = known.iter().find(|(other, _)| *other == key);
            if let Some((_, value)) = found {
                return Some(*value);
            }
            let value = compute(key.0, key.1);
            known.push((key, value));
            Some(value)
        });
        folded.collect()
    }

    fn load_row(
        &self,
        k: &mut Kernel<'_>,
        row: &Row,
        places: &[Option<Place>],
        sights: &[Option<Operand>],
    ) -> Vec<Option<Operand>> {
        let load = |(place, sight): (&Option<Place>, &Option<Operand>)| {
            place.as_ref().map(|place| {
                let from = match sight {
                    Some(by) => k.advance_by_word(row.from, *by),
                    None => row.from,
                };
                let from = k.offset(from, self.bytes(place.at));
                k.load_if(row.inside, self.real, from)
            })
        };
        places.iter().zip(sights).map(load).collect()
    }

    fn compute_row(
        &self,
        k: &mut Kernel<'_>,
        update: &Update,
        loaded: &[Option<Operand>],
    ) -> Operand {
        let mut values: Vec<Operand> = Vec::with_capacity(update.body.ops.len());
        for (op, loaded) in update.body.ops.iter().zip(loaded) {
            let of = |v: Value| values[v.index()];
            let value = match op {
                Op::Const(c) => Some(Operand::real(self.real, c.to_bits())),
                op => loaded.or_else(|| row_op(op).and_then(|op| k.number(&op, of))),
            };
            values.push(value.unwrap_or(Operand::poison(self.real)));
        }
        let mut value = values[update.body.result.index()];
        let [mask, old] = [2, 1].map(|n| loaded.get(loaded.len() - n).copied().flatten());
        let zero = Operand::real(self.real, 0f64.to_bits());
        if let (Some(mask), Some(old)) = (mask, old) {
            value = k.select(Cmp::Ne, mask, zero, value, old);
        }
        self.in_range(k, update, value, |_| old.unwrap_or(zero))
    }

    /// Writes a row to where it appears again along the first two axes.
    fn write_ghosts(
        &self,
        k: &mut Kernel<'_>,
        id: ComponentId,
        to: Operand,
        at: [Operand; 2],
        value: Operand,
    ) {
        let axes = [Axis::OUTER, Axis::MIDDLE];
        let mut ghosts = axes.map(|axis| {
            let folds = AxisGhosts::new(self.scheme, id, axis).folds();
            let folds = folds.into_iter().flatten().map(Some);
            std::iter::once(None)
                .chain(folds)
                .collect::<Vec<Option<Fold>>>()
        });
        let second = std::mem::take(&mut ghosts[1]);
        for a in &ghosts[0] {
            for b in second.iter().filter(|b| a.is_some() || b.is_some()) {
                let mut seen = Operand::int(Type::I1, 1);
                let mut by = Operand::i64(0);
                let mut negated = false;
                for (n, ghost) in [a, b].into_iter().enumerate() {
                    let Some(ghost) = ghost else { continue };
                    let visible = self.scheme.visible(id)[axes[n]];
                    let extent = self.scheme.extent(id)[axes[n]];
                    let sign = Operand::i32(ghost.sign as i32);
                    let index = k.int(IntOp::Mul, at[n], sign);
                    let index = k.int(IntOp::Add, index, Operand::i32(ghost.by as i32));
                    let shown = in_interval(k, index, visible);
                    let stored = in_interval(k, index, extent);
                    let beyond = k.int(IntOp::Xor, stored, Operand::int(Type::I1, 1));
                    let shown = k.int(IntOp::And, shown, beyond);
                    seen = k.int(IntOp::And, seen, shown);
                    let cells = k.int(IntOp::Sub, index, at[n]);
                    let cells = k.resize(cells, Type::I64);
                    let stride = self.bytes(self.layout.stride[axes[n]]);
                    let bytes = k.int(IntOp::Mul, cells, Operand::i64(stride));
                    by = k.int(IntOp::Add, by, bytes);
                    negated ^= ghost.negated;
                }
                k.when(seen, |k| {
                    let to = k.advance(to, by, 1);
                    let value = if negated {
                        self.negated(k, id, value)
                    } else {
                        value
                    };
                    self.store(k, id, to, value);
                });
            }
        }
    }

    /// A row with the other sign, but for the zeros on a plane about which it is odd.
    fn negated(&self, k: &mut Kernel<'_>, id: ComponentId, value: Operand) -> Operand {
        let opposite = k.negated(value);
        let live = self.scheme.grid.live(self.scheme.component(id).position)[Axis::INNER];
        if live.lo == 0 {
            return opposite;
        }
        let inside = self.is_within(k, live);
        k.choose(inside, opposite, Operand::real(self.real, 0f64.to_bits()))
    }

    /// The place of an origin after a period.
    pub(super) fn advance(&self) -> i64 {
        let [x, y] = self.towers.advance;
        self.distance(residency::Place {
            x,
            y,
            row: RowId(0),
        })
    }
}

/// Values with the sign that they have where the thread reads.
fn negated_as_seen(
    k: &mut Kernel<'_>,
    loaded: Vec<Option<Operand>>,
    negated: &[Option<Option<Operand>>],
) -> Vec<Option<Operand>> {
    let seen = |(value, negated): (Option<Operand>, &Option<Option<Operand>>)| {
        let (Some(value), Some(Some(negated))) = (value, negated) else {
            return value;
        };
        let other = k.negated(value);
        Some(k.choose(*negated, other, value))
    };
    loaded.into_iter().zip(negated).map(seen).collect()
}

/// An index on a ring of so many cells that is at most once around too far.
fn wrapped(k: &mut Kernel<'_>, index: Operand, around: i64) -> Operand {
    let around = Operand::i32(around as i32);
    let below = k.compare(IntCmp::Lt, index, Operand::i32(0));
    let up = k.int(IntOp::Add, index, around);
    let index = k.choose(below, up, index);
    let above = k.compare(IntCmp::Ge, index, around);
    let down = k.int(IntOp::Sub, index, around);
    k.choose(above, down, index)
}

pub(super) fn in_interval(k: &mut Kernel<'_>, index: Operand, range: Interval) -> Operand {
    let from = k.int(IntOp::Sub, index, Operand::i32(range.lo as i32));
    k.compare(IntCmp::Below, from, Operand::i32(range.len() as i32))
}
