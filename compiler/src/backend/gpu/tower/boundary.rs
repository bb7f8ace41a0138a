//! Boundary periods: row by row in memory, with a condition for each row.
//!
//! The rows, stages and barriers are the same as in an interior period. A row that lies in the region of its update is
//! computed from memory and stored together with its ghosts. Where memory does not hold ghosts along the inner axis,
//! they are not stored, and threads near an end read their sources.

use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel};
use super::super::numbers;
use super::amended::AmendedValues;
use super::amended_row::{self, AmendedRow};
use super::context::{Context, Lane, in_interval, word};
use super::ghosts_folded as folded;
use super::points::{PointStage, PointTable};
use super::source_box::RowPlace;
use super::source_rows::{Places, Rows};
use super::volume;
use super::worker::{GhostRow, Worker};
use super::z_block::Between;
use super::zone::OfLane;
use crate::evaluate::evaluate;
use crate::ghost::{AxisGhosts, Fold};
use crate::lattice::{Axis, div_ceil};
use crate::layout::RowId;
use crate::scheme::{Cmp, ComponentId, Op, Update};
use crate::tower::block::LineFolds;
use crate::tower::{
    BoundaryUpdate, GroupBox, LineParts, StageAt, keeps_old, memory_of, without_ghosts,
};

/// A period of a tower that ends of the grid may cut.
#[derive(Clone, Copy)]
pub(super) struct BoundaryPeriod {
    /// Where the origin's group lies, at the thread's index; where an axis is periodic, where that of index 0 of all
    /// axes does.
    pub own: Operand,
    /// The index of the origin, counted on around periodic axes.
    pub at: [Operand; 2],
    /// From the plane of the origin to its index, where planes are counted on around the outer axis and are not alike.
    pub rotation: Option<Operand>,
    /// The number of the task's width, where some towers are narrow.
    pub width: Option<Operand>,
    /// The list of the rows of all alignments.
    pub rows: Operand,
    /// The period's number.
    pub number: Operand,
    pub points: PointTable,
}

/// Some rows of an update that are advanced together.
struct Batch<'p> {
    period: BoundaryPeriod,
    /// The first one, and the end of the update's rows, as numbers of the list.
    first: Operand,
    until: Operand,
    update: &'p Update,
    /// Where the outer axis is periodic, the first index that counts, and how many do.
    side: Option<(Operand, i64)>,
    /// Whether the thread takes part in the stage, where lines are cut into z blocks.
    active: Option<Operand>,
}

/// A row.
struct Row {
    /// Where it is, and whether the thread has something to do.
    place: RowPlace,
    /// Row 0 of its group, at the thread's index.
    from: Operand,
}

/// A value that an update reads: its distance in elements from row 0 of the target's group; and how threads near an end
/// find it elsewhere, with the distance along the inner axis.
struct Read {
    at: i64,
    folded: Option<(LineFolds, i64)>,
}

/// The values that an update reads: in the order of its operations, then mask and old value.
struct Reads {
    operands: Vec<Option<Read>>,
    mask: Option<Read>,
    old: Option<Read>,
    /// Of rows, that amendments read and the update does not.
    more: Vec<Read>,
    /// Per amendment and operation of its body, which of all it is.
    amended: Vec<Vec<Option<usize>>>,
}

impl Reads {
    fn iter(&self) -> impl Iterator<Item = Option<&Read>> {
        let operands = self.operands.iter().map(Option::as_ref);
        let operands = operands.chain([self.mask.as_ref(), self.old.as_ref()]);
        operands.chain(self.more.iter().map(Some))
    }
}

impl Worker<'_> {
    /// All stages of a period, with a barrier after each.
    pub fn boundary(&self, k: &mut Kernel<'_>, period: BoundaryPeriod) {
        let context = &self.context;
        let boundary = &context.program.boundary;
        let stages = &boundary.periods[context.alignment];
        for (number, updates) in stages.iter().enumerate() {
            let stage = StageAt::new(context.scheme, number as i64);
            let between = Between::new(k, context, period.number, self.lane.thread);
            let stage_number = number as i64;
            let active =
                between.map(|between| between.takes_part(k, context, stage_number, stage_number));
            for rows in updates {
                self.update_rows(k, period, rows, stage, number, active);
            }
            let points = PointStage {
                period: period.number,
                stage: number,
                active,
            };
            period.points.act(k, context, &self.lane, points);
            self.sync.fenced_barrier(k);
        }
    }

    /// All rows of an update of a stage, some at a time. `number`: of the stage in the period.
    fn update_rows(
        &self,
        k: &mut Kernel<'_>,
        period: BoundaryPeriod,
        rows: &BoundaryUpdate,
        stage: StageAt,
        number: usize,
        active: Option<Operand>,
    ) {
        let Worker { context, lane, .. } = self;
        let scheme = context.scheme;
        let update = &stage.updates(scheme)[rows.update];
        let side = self.side(k, period.number, number, rows.update);
        let [from, until] = self.range(k, period, rows);
        let reads = self.reads(update, stage);
        let parts = match context.z_blocks() {
            Some(_) => LineParts::ZBlocks,
            None => LineParts::Slabs,
        };
        let together = rows.together(scheme, context.towers(), stage, parts);
        let step = Operand::i32(together as i32);
        k.repeat(from, until, step, Some(1), |k, first| {
            let displaced = of_folded(&reads, |folds, by| {
                folded::displacement(k, context, lane, folds, by)
            });
            let batch = Batch {
                period,
                first,
                until,
                update,
                side,
                active,
            };
            // All loads of some rows come before all their stores, so that they are under way together.
            let rows: Vec<Row> = (0..together).map(|n| self.row(k, &batch, n)).collect();
            let loaded: Vec<Vec<Option<Operand>>> = rows
                .iter()
                .map(|row| load_row(k, context, row, &reads, &displaced))
                .collect();
            let of_lane = amended_row::lane_coefs(k, context, lane, update);
            let amended: Vec<Vec<AmendedRow>> = rows
                .iter()
                .map(|row| self.amended_row(k, update, row.place, &of_lane))
                .collect();
            let negated = of_folded(&reads, |folds, by| folded::is_negated(k, lane, folds, by));
            let mut values: Vec<Operand> = loaded
                .into_iter()
                .zip(amended)
                .map(|(loaded, amended)| {
                    let loaded = negated_as_seen(k, loaded, &negated);
                    let value = compute_row(k, context, lane, update, &loaded);
                    amend_row(k, context, update, value, &loaded, &reads.amended, &amended)
                })
                .collect();
            let places: Vec<RowPlace> = rows.iter().map(|row| row.place).collect();
            let volumes = Rows {
                of: (stage.stage, update.target),
                active: None,
                period: period.number,
                step: (number / scheme.stages.len()) as i32,
                places: Places::Boundary(&places),
            };
            volume::add(k, context, lane, &volumes, &mut values);
            let target = stage.target(scheme, context.layout, update);
            let target = context.bytes(context.layout.row_start(target));
            for (row, value) in rows.iter().zip(values) {
                k.when(row.place.inside, |k| {
                    let to = k.offset(row.from, target);
                    self.store_row(k, update, row.place.at, to, value);
                });
            }
        });
    }

    /// The rows of an update, as numbers of the list: its first one, and after its last one.
    fn range(
        &self,
        k: &mut Kernel<'_>,
        period: BoundaryPeriod,
        rows: &BoundaryUpdate,
    ) -> [Operand; 2] {
        let ends = |of: &std::ops::Range<usize>| [of.start, of.end].map(|n| word(n as i64));
        let mut range = ends(&rows.usual());
        let Some(number) = period.width else {
            return range;
        };
        let widths = &self.context.program.boundary.widths;
        for (width, own) in widths.iter().zip(&rows.rows).skip(1) {
            let is_own = k.compare(IntCmp::Eq, number, Operand::i32(width.number() as i32));
            let own = ends(own);
            range = [0, 1].map(|n| k.choose(is_own, own[n], range[n]));
        }
        range
    }

    /// Stores a value of a row at `at` across the inner axis, at the thread's index, and the ghosts that are made of
    /// it. `to`: where it lies in memory.
    fn store_row(
        &self,
        k: &mut Kernel<'_>,
        update: &Update,
        at: [Operand; 2],
        to: Operand,
        value: Operand,
    ) {
        let Worker { context, lane, .. } = self;
        let own = self.target(update.target, to);
        context.store(k, lane, own, value);
        // Most rows have no ghosts: one jump then, and the same one for all threads.
        let GroupBox { x, y } = without_ghosts(context.scheme, update);
        let mut near = Operand::int(Type::I1, 0);
        let across = [(at[0], x), (at[1], y)];
        for (at, inner) in across.into_iter().skip(usize::from(context.unrolled())) {
            let far = in_interval(k, at, inner);
            let at_end = k.int(IntOp::Xor, far, Operand::int(Type::I1, 1));
            near = k.int(IntOp::Or, near, at_end);
        }
        k.when(near, |k| {
            self.write_ghosts(k, update.target, to, at, value);
        });
    }

    /// Where the outer axis is periodic, the first index that counts for an update in a stage of a period, and how many
    /// do.
    fn side(
        &self,
        k: &mut Kernel<'_>,
        period: Operand,
        number: usize,
        update: usize,
    ) -> Option<(Operand, i64)> {
        let Context { scheme, .. } = self.context;
        let seam = self.context.towers().rings.seam.as_ref()?;
        let side = seam.side(number % scheme.stages.len(), update);
        let stages = self.context.towers().per_period();
        // Divisions are without a sign.
        let more = div_ceil((-side.from).max(0), side.unit);
        let from = side.from + side.rate * number as i64 + more * side.unit;
        let wide = k.resize(period, Type::I64);
        let passed = k.int(IntOp::Mul, wide, Operand::i64(side.rate * stages));
        let passed = k.int(IntOp::Add, passed, Operand::i64(from));
        let edge = k.int(IntOp::Div, passed, Operand::i64(side.unit));
        let edge = k.int(IntOp::Sub, edge, Operand::i64(more));
        let edge = k.resize(edge, Type::I32);
        let first = if side.begins {
            k.int(IntOp::Sub, Operand::i32(0), edge)
        } else {
            k.int(IntOp::Add, edge, Operand::i32((1 - side.cells) as i32))
        };
        Some((first, side.cells))
    }

    /// One of some rows that are advanced together.
    fn row(&self, k: &mut Kernel<'_>, batch: &Batch<'_>, number: u32) -> Row {
        let Worker { context, lane, .. } = self;
        let rings = &context.towers().rings;
        let number = k.int(IntOp::Add, batch.first, Operand::i32(number as i32));
        let there = k.compare(IntCmp::Lt, number, batch.until);
        let last = k.int(IntOp::Sub, batch.until, Operand::i32(1));
        let number = k.int(IntOp::Min, number, last);
        let number = k.resize(number, Type::I64);
        let entry = k.advance(batch.period.rows, number, 4);
        let half = Operand::i32(16);
        let pair = |k: &mut Kernel<'_>, from: Operand| {
            let word = k.load(Type::I32, from, 4, Access::ReadOnly);
            let low = k.int(IntOp::Left, word, half);
            [low, word].map(|word| k.int(IntOp::RightSigned, word, half))
        };
        let offsets = pair(k, entry);
        // Where rows are shorter than others, ghosts lie beyond their ends, which other threads write.
        let extent = context.scheme.extent(batch.update.target)[Axis::INNER];
        let within = lane.is_within(k, extent);
        let mut inside = k.int(IntOp::And, there, within);
        if let Some(active) = batch.active {
            inside = k.int(IntOp::And, inside, active);
        }
        let mut at = batch.period.at;
        let mut planes = at[0];
        let mut pointer = batch.period.own;
        for (n, axis) in [Axis::OUTER, Axis::MIDDLE].into_iter().enumerate() {
            let mut by = offsets[n];
            at[n] = k.int(IntOp::Add, at[n], by);
            if let (Axis::OUTER, Some((first, cells))) = (axis, batch.side) {
                let on = k.int(IntOp::Sub, at[n], first);
                let counts = k.compare(IntCmp::Below, on, Operand::i32(cells as i32));
                inside = k.int(IntOp::And, inside, counts);
            }
            // Planes lie as they are counted, where that goes on around the axis.
            let counted = axis == Axis::OUTER && context.unrolled();
            let mut in_array = at[n];
            if let (Some(rotation), true) = (batch.period.rotation, counted) {
                at[n] = k.int(IntOp::Add, at[n], rotation);
            }
            let alike = counted && context.planes_alike();
            if let Some(around) = rings.cells[n].filter(|_| !alike) {
                at[n] = wrapped(k, at[n], around);
            }
            if !counted {
                in_array = at[n];
            }
            if axis == Axis::OUTER {
                planes = in_array;
            }
            if !alike {
                let within = in_interval(k, at[n], batch.update.region[axis]);
                inside = k.int(IntOp::And, inside, within);
            }
            if rings.is_any() {
                by = in_array;
            }
            let by = k.resize(by, Type::I64);
            let stride = context.bytes(context.layout.stride[axis]);
            let by = k.int(IntOp::Mul, by, Operand::i64(stride));
            pointer = k.advance(pointer, by, 1);
        }
        Row {
            place: RowPlace {
                at,
                plane: planes,
                inside,
            },
            from: pointer,
        }
    }

    fn reads(&self, update: &Update, stage: StageAt) -> Reads {
        let Context { scheme, layout, .. } = self.context;
        let own = |row: RowId| Read {
            at: layout.row_start(row),
            folded: None,
        };
        let of = |op: &Op| match op {
            Op::Read(read) => {
                let by = i64::from(read.offset[Axis::INNER]);
                let folds = folded::folds(&self.context, read.component, by);
                Some(Read {
                    at: layout.displacement(scheme, stage.stage, stage.phase, read),
                    folded: (folds != LineFolds::default()).then_some((folds, by)),
                })
            }
            Op::Coef(coef) => Some(own(layout.coef_row(*coef))),
            _ => None,
        };
        let target = stage.target(scheme, layout, update);
        let count = update.body.ops.len();
        let mut more = Vec::new();
        // The update reads most of these values anyway. Mask and old value come after its operands.
        let mut known: Vec<Op> = Vec::new();
        let mut find = |op: &Op| {
            let from = if memory_of(scheme, op).is_some() {
                None
            } else {
                of(op)
            }?;
            if let Some(at) = update.body.ops.iter().position(|own| own == op) {
                return Some(at);
            }
            let at = known.iter().position(|other| other == op);
            let at = at.unwrap_or_else(|| {
                more.push(from);
                known.push(*op);
                known.len() - 1
            });
            Some(count + 2 + at)
        };
        let amendments = update.amendments.iter();
        let amended = amendments.map(|a| a.body.ops.iter().map(&mut find).collect());
        let amended = amended.collect();
        Reads {
            more,
            amended,
            operands: update.body.ops.iter().map(of).collect(),
            mask: update.mask.map(|mask| own(layout.coef_row(mask))),
            old: keeps_old(scheme, update).then(|| own(target)),
        }
    }

    /// The values that amendments of a row need from memory besides rows.
    fn amended_row(
        &self,
        k: &mut Kernel<'_>,
        update: &Update,
        place: RowPlace,
        of_lane: &OfLane,
    ) -> Vec<AmendedRow> {
        let Worker { context, lane, .. } = self;
        let amendments = update.amendments.iter();
        amendments
            .map(|amendment| AmendedRow::new(k, context, lane, update, amendment, place, of_lane))
            .collect()
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
        let context = &self.context;
        let scheme = context.scheme;
        let axes = [Axis::OUTER, Axis::MIDDLE];
        let mut ghosts = axes.map(|axis| {
            let folds = AxisGhosts::new(scheme, id, axis).folds();
            let folds = folds.into_iter().flatten().map(Some);
            std::iter::once(None)
                .chain(folds)
                .collect::<Vec<Option<Fold>>>()
        });
        if context.unrolled() {
            ghosts[0].truncate(1);
        }
        let second = std::mem::take(&mut ghosts[1]);
        for a in &ghosts[0] {
            for b in second.iter().filter(|b| a.is_some() || b.is_some()) {
                let mut seen = Operand::int(Type::I1, 1);
                let mut by = Operand::i64(0);
                let mut negated = false;
                for (n, fold) in [a, b].into_iter().enumerate() {
                    let Some(fold) = fold else { continue };
                    let visible = scheme.visible(id)[axes[n]];
                    let extent = scheme.extent(id)[axes[n]];
                    let sign = Operand::i32(fold.sign as i32);
                    let index = k.int(IntOp::Mul, at[n], sign);
                    let index = k.int(IntOp::Add, index, Operand::i32(fold.by as i32));
                    let shown = in_interval(k, index, visible);
                    let stored = in_interval(k, index, extent);
                    let beyond = k.int(IntOp::Xor, stored, Operand::int(Type::I1, 1));
                    let shown = k.int(IntOp::And, shown, beyond);
                    seen = k.int(IntOp::And, seen, shown);
                    let cells = k.int(IntOp::Sub, index, at[n]);
                    let cells = k.resize(cells, Type::I64);
                    let stride = context.bytes(context.layout.stride[axes[n]]);
                    let bytes = k.int(IntOp::Mul, cells, Operand::i64(stride));
                    by = k.int(IntOp::Add, by, bytes);
                    negated ^= fold.negated;
                }
                k.when(seen, |k| {
                    let ghost = GhostRow {
                        component: id,
                        to: k.advance(to, by, 1),
                        negated,
                    };
                    self.write_ghost(k, ghost, value);
                });
            }
        }
    }
}

/// Values for reads that may be folded, computed once for all reads with the same fold.
fn of_folded<T: Copy>(
    reads: &Reads,
    mut compute: impl FnMut(LineFolds, i64) -> T,
) -> Vec<Option<T>> {
    let mut known: Vec<((LineFolds, i64), T)> = Vec::new();
    let folded = reads.iter().map(|read| read?.folded);
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
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    row: &Row,
    reads: &Reads,
    displaced: &[Option<Operand>],
) -> Vec<Option<Operand>> {
    let load = |(read, by): (Option<&Read>, &Option<Operand>)| {
        read.map(|read| {
            let from = match by {
                Some(by) => k.advance_by_word(row.from, *by),
                None => row.from,
            };
            let from = k.offset(from, context.bytes(read.at));
            k.load_if(row.place.inside, context.real, from)
        })
    };
    reads.iter().zip(displaced).map(load).collect()
}

/// `loaded`: of the operations, then mask and old value.
fn compute_row(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    lane: &Lane,
    update: &Update,
    loaded: &[Option<Operand>],
) -> Operand {
    let real = context.real;
    let mut value = evaluate(
        k,
        &update.body,
        |_, n| loaded[n].unwrap_or(Operand::poison(real)),
        |k, op, values| numbers::number(k, real, op, values),
    );
    let count = update.body.ops.len();
    let [mask, old] = [0, 1].map(|n| loaded.get(count + n).copied().flatten());
    let zero = Operand::real(real, 0f64.to_bits());
    if let (Some(mask), Some(old)) = (mask, old) {
        value = k.select(Cmp::Ne, mask, zero, value, old);
    }
    context.in_range(k, lane, update, value, old)
}

/// A value after amendments; `loaded`: values of rows, and which of them the operations of each amendment's body read.
fn amend_row(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    update: &Update,
    mut value: Operand,
    loaded: &[Option<Operand>],
    reads: &[Vec<Option<usize>>],
    amended: &[AmendedRow],
) -> Operand {
    let mask = loaded.get(update.body.ops.len()).copied().flatten();
    for (number, (amendment, row)) in update.amendments.iter().zip(amended).enumerate() {
        let own = reads[number].iter().map(|at| at.and_then(|at| loaded[at]));
        let own: Vec<Option<Operand>> = own.collect();
        let values = AmendedValues {
            base: value,
            mask,
            reads: own,
        };
        value = row.amend(k, context, amendment, values);
    }
    value
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

/// An index on a ring of `around` cells, for an index that is at most once around too far.
fn wrapped(k: &mut Kernel<'_>, index: Operand, around: i64) -> Operand {
    let around = Operand::i32(around as i32);
    let below = k.compare(IntCmp::Lt, index, Operand::i32(0));
    let up = k.int(IntOp::Add, index, around);
    let index = k.choose(below, up, index);
    let above = k.compare(IntCmp::Ge, index, around);
    let down = k.int(IntOp::Sub, index, around);
    k.choose(above, down, index)
}
