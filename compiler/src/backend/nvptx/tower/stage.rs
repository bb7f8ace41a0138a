//! The straight-line code of a stage of a period that nothing cuts.

use super::super::ir::Operand;
use super::super::kernel::{Access, Kernel};
use super::line::Across;
use super::planes::Planes;
use super::sheets::{Acting, Places, Rows};
use super::spans::Between;
use super::write::{Period, Writer};
use crate::backend::rows::RowOp;
use crate::lattice::Axis;
use crate::scheme::{Op, Read, StageId, Update, Value};
use crate::tile::residency::{Own, Place, is_tapped};
use std::collections::BTreeMap;

/// A stage of a period that is being written.
pub(super) struct Stage<'s, 'a> {
    writer: &'s Writer<'a>,
    number: usize,
    /// Where rows are, from the period's own place on.
    planes: Planes,
    period: Period,
    /// Which period it is, from the end of the whole part on.
    which: Operand,
    /// Where lines are cut into spans, where the thread is, and whether it takes part in the stage.
    place: Option<Between>,
    active: Option<Operand>,
    /// What the thread has in registers.
    values: &'s mut BTreeMap<Place, Operand>,
    /// What it has read of other threads, by the distance along the inner axis.
    taps: BTreeMap<(Place, i64), Operand>,
    /// How other blocks get values; `None` before there are any.
    across: Option<Across>,
    /// Rows of which they do.
    sent: usize,
    /// Values that sheets have yet to add to, by update; and old ones, where rows may be cut off.
    pending: Vec<Vec<(Own, Operand, Option<Operand>)>>,
}

/// Bytes of values to which a sheet adds together, so that what it reads is under way at the same time: more spill.
const TOGETHER: u32 = 24;

impl<'s, 'a> Stage<'s, 'a> {
    pub fn new(
        writer: &'s Writer<'a>,
        number: usize,
        (period, which, place): (Period, Operand, Option<Between>),
        values: &'s mut BTreeMap<Place, Operand>,
    ) -> Self {
        Stage {
            writer,
            number,
            planes: Planes::new(period.own),
            period,
            which,
            place,
            active: None,
            values,
            taps: BTreeMap::new(),
            across: None,
            sent: 0,
            pending: Vec::new(),
        }
    }

    /// Gives the number of rows of which other blocks get values.
    pub fn write(mut self, k: &mut Kernel<'_>) -> usize {
        let writer = self.writer;
        let plan = &writer.plan.stages[self.number];
        let number = self.number as i64;
        let active = self.place;
        self.active = active.map(|place| writer.takes_part(k, place, [number, number]));
        self.fetch(k);
        // What needs nothing that has to arrive, nor overwrites what neighbours may not have read, comes first.
        let (late, early): (Vec<&Own>, Vec<&Own>) = plan
            .own
            .iter()
            .partition(|own| self.is_late(own) || self.is_shared(own));
        for own in early {
            self.update(k, own);
        }
        writer.wait_for_copies(k);
        writer.show_arrived(k, self.number);
        for own in late {
            self.update(k, own);
        }
        for update in 0..self.pending.len() {
            self.add(k, update);
        }
        for copy in &plan.again {
            let value = self.value(k, copy.place);
            self.publish(k, copy.place, copy.slot, value);
        }
        for place in &plan.wanted {
            self.value(k, *place);
        }
        self.sent
    }

    /// Whether an update reads something that arrives in this stage.
    fn is_late(&self, own: &Own) -> bool {
        let Writer {
            scheme,
            layout,
            plan,
            ..
        } = self.writer;
        let (stage, phase) = self.stage();
        let update = &scheme.stages[stage.index()].updates[own.update];
        let arriving = &plan.stages[self.number].arriving;
        let arrives = |x: i64, y: i64, row| {
            let (x, y) = (own.x + x, own.y + y);
            arriving.contains(&Place { x, y, row })
        };
        let reads = |read: &Read| {
            let [x, y] = [Axis::OUTER, Axis::MIDDLE].map(|axis| i64::from(read.offset[axis]));
            arrives(x, y, layout.read_row(scheme, stage, phase, read))
        };
        let coefs = update.body.coefs().chain(update.mask);
        update.body.reads().any(reads)
            || coefs
                .into_iter()
                .any(|coef| arrives(0, 0, layout.coef_row(coef)))
            || arrives(0, 0, layout.target_row(scheme, stage, phase, update.target))
    }

    /// Whether another tower may have read or written the target in the stage before: only what arrives says that it has done so.
    fn is_shared(&self, own: &Own) -> bool {
        let Writer {
            scheme,
            layout,
            plan,
            towers,
            ..
        } = self.writer;
        let (stage, phase) = self.stage();
        let target = scheme.stages[stage.index()].updates[own.update].target;
        let row = layout.target_row(scheme, stage, phase, target);
        let last = plan.stages.len() - 1;
        // In the period before, the origin was elsewhere.
        let (number, [x, y]) = match self.number.checked_sub(1) {
            Some(number) => (number, [own.x, own.y]),
            None => (last, [own.x + towers.advance[0], own.y + towers.advance[1]]),
        };
        let before = &plan.stages[number].own;
        let (stage, phase) = self.stage_of(number);
        let updates = scheme.stages[stage.index()].updates.iter().enumerate();
        let mut events = updates.flat_map(|(index, update)| {
            let reads = update.body.reads();
            let same = |read: &&Read| layout.read_row(scheme, stage, phase, read) == row;
            let by = |read: &Read| [Axis::OUTER, Axis::MIDDLE].map(|a| i64::from(read.offset[a]));
            let writes = layout.target_row(scheme, stage, phase, update.target) == row;
            let reads = reads.filter(same).map(by).chain(writes.then_some([0, 0]));
            reads.map(move |[dx, dy]| (index, x - dx, y - dy))
        });
        events.any(|(update, x, y)| !before.contains(&Own { x, y, update }))
    }

    fn stage(&self) -> (StageId, u32) {
        self.stage_of(self.number)
    }

    /// The stage of a step, and the phase of that, in which a stage of a period is.
    fn stage_of(&self, number: usize) -> (StageId, u32) {
        let stages = self.writer.scheme.stages.len();
        let phases = self.writer.scheme.phases().max(1);
        let stage = StageId((number % stages) as u32);
        (stage, (number / stages) as u32 % phases)
    }

    /// A value at the thread's own index.
    fn value(&mut self, k: &mut Kernel<'_>, place: Place) -> Operand {
        let writer = self.writer;
        if let Some(value) = self.values.get(&place) {
            return *value;
        }
        let value = match writer.plan.stages[self.number].enter.get(&place) {
            Some(&slot) => {
                let from = writer.slot(k, slot, 0);
                k.load(writer.real, from, writer.real.bytes(), Access::Plain)
            }
            None => {
                // A coefficient that is not kept.
                let from = self.planes.row(k, writer, place);
                match self.period.clip {
                    None => k.load(writer.real, from, writer.real.bytes(), Access::ReadOnly),
                    Some(clip) => {
                        let has = clip.has(k, writer, place);
                        k.load_if(has, writer.real, from)
                    }
                }
            }
        };
        self.values.insert(place, value);
        value
    }

    /// A value at another index.
    fn tap(&mut self, k: &mut Kernel<'_>, place: Place, by: i64) -> Operand {
        let writer = self.writer;
        if let Some(value) = self.taps.get(&(place, by)) {
            return *value;
        }
        let slot = writer.plan.stages[self.number].taps.get(&place);
        let from = writer.slot(k, slot.copied().unwrap_or(0), by);
        let value = k.load(writer.real, from, writer.real.bytes(), Access::Plain);
        self.taps.insert((place, by), value);
        value
    }

    /// How other blocks get values. It is not kept from stage to stage: there are no registers for it.
    fn across(&mut self, k: &mut Kernel<'_>) -> Option<Across> {
        let writer = self.writer;
        if let (None, Some(split), Some((_, links))) = (self.across, writer.split, writer.pipe()) {
            self.across = Some(Across::new(k, &split, &links, writer.own, writer.bytes(1)));
        }
        self.across
    }

    fn publish(&mut self, k: &mut Kernel<'_>, place: Place, slot: usize, value: Operand) {
        let writer = self.writer;
        if let Some(component) = writer.layout.component_of(place.row) {
            match writer.split {
                // Ghosts are what neighbours send.
                Some(split) if split.is_ring() => {
                    let to = writer.slot(k, slot, 0);
                    writer.write_values(k, component, to, value);
                }
                _ => writer.write_slot(k, component, slot, value),
            }
            if let Some(across) = self.across(k) {
                let by = writer.bytes(slot as i64 * writer.slot.stride);
                across.send(k, value, by);
                self.sent += 1;
            }
        }
    }

    fn update(&mut self, k: &mut Kernel<'_>, own: &Own) {
        let writer = self.writer;
        let (stage, phase) = self.stage();
        let update = &writer.scheme.stages[stage.index()].updates[own.update];
        let row = writer
            .layout
            .target_row(writer.scheme, stage, phase, update.target);
        let target = Place {
            x: own.x,
            y: own.y,
            row,
        };
        let mut value = self.body(k, update, own, stage, phase);
        if let Some(mask) = update.mask {
            let row = writer.layout.coef_row(mask);
            let mask = self.value(k, Place { row, ..target });
            let old = self.value(k, target);
            let zero = Operand::real(writer.real, 0f64.to_bits());
            value = k.select(crate::scheme::Cmp::Ne, mask, zero, value, old);
        }
        value = writer.in_range(k, update, value, |k| self.value(k, target));
        let keeps = self.period.clip.is_some() || self.active.is_some();
        let old = keeps.then(|| self.value(k, target));
        if let (Some(active), Some(old)) = (self.active, old) {
            value = k.choose(active, value, old);
        }
        let acting = Acting {
            stage,
            component: update.target,
        };
        if writer.task.is_none() || !writer.has_sheets(acting) {
            self.give(k, own, value, old);
            return;
        }
        self.values.insert(target, value);
        if self.pending.len() <= own.update {
            self.pending.resize(own.update + 1, Vec::new());
        }
        self.pending[own.update].push((*own, value, old));
        let bytes = self.pending[own.update].len() as u32 * writer.real.bytes();
        if bytes >= TOGETHER {
            self.add(k, own.update);
        }
    }

    /// What sheets know of some rows of an update.
    fn rows<'r>(&self, update: usize, own: &'r [Own]) -> Option<Rows<'r>> {
        let scheme = self.writer.scheme;
        let (stage, _) = self.stage();
        let component = scheme.stages[stage.index()].updates[update].target;
        Some(Rows {
            acting: Acting { stage, component },
            active: self.active,
            period: self.which,
            step: (self.number / scheme.stages.len()) as i32,
            places: Places::Whole(own, self.writer.task?),
        })
    }

    /// Fetches what sheets will add.
    fn fetch(&self, k: &mut Kernel<'_>) {
        let plan = &self.writer.plan.stages[self.number];
        let (stage, _) = self.stage();
        for update in 0..self.writer.scheme.stages[stage.index()].updates.len() {
            let own = plan.own.iter().filter(|own| own.update == update);
            let own: Vec<Own> = own.copied().collect();
            if let Some(rows) = self.rows(update, &own).filter(|_| !own.is_empty()) {
                self.writer.fetch_sheets(k, &rows);
            }
        }
    }

    /// Sheets add to the values of an update that wait for it.
    fn add(&mut self, k: &mut Kernel<'_>, update: usize) {
        let pending = std::mem::take(&mut self.pending[update]);
        let own: Vec<Own> = pending.iter().map(|(own, ..)| *own).collect();
        let mut values: Vec<Operand> = pending.iter().map(|(_, value, _)| *value).collect();
        if let Some(rows) = self.rows(update, &own).filter(|_| !own.is_empty()) {
            self.writer.add_sheets(k, &rows, &mut values);
        }
        for ((own, _, old), value) in pending.iter().zip(values) {
            self.give(k, own, value, *old);
        }
    }

    /// Keeps the new value of a row, unless it is cut off, and gives it to those who need it.
    fn give(&mut self, k: &mut Kernel<'_>, own: &Own, mut value: Operand, old: Option<Operand>) {
        let writer = self.writer;
        let (stage, phase) = self.stage();
        let update = &writer.scheme.stages[stage.index()].updates[own.update];
        let component = update.target;
        if let (Some(clip), Some(old)) = (self.period.clip, old) {
            let acts = clip.acts(k, update, own);
            value = k.choose(acts, value, old);
        }
        let target = Place {
            x: own.x,
            y: own.y,
            row: writer
                .layout
                .target_row(writer.scheme, stage, phase, component),
        };
        self.values.insert(target, value);
        let plan = &writer.plan.stages[self.number];
        if let Some(&slot) = plan.publish.get(&target) {
            self.publish(k, target, slot, value);
        }
        if let Some(before) = plan.leave.get(&target) {
            let to = self.planes.row(k, writer, target);
            let number = self.number as i64;
            let written = (self.place, [number - before, number]);
            writer.leave(k, (self.period, written), (component, target), to, value);
        }
    }

    fn body(
        &mut self,
        k: &mut Kernel<'_>,
        update: &Update,
        own: &Own,
        stage: StageId,
        phase: u32,
    ) -> Operand {
        let writer = self.writer;
        let mut values: Vec<Operand> = Vec::with_capacity(update.body.ops.len());
        for op in &update.body.ops {
            let value = match op {
                Op::Const(c) => Operand::real(writer.real, c.to_bits()),
                Op::Read(read) => {
                    let place = Place {
                        x: own.x + i64::from(read.offset[Axis::OUTER]),
                        y: own.y + i64::from(read.offset[Axis::MIDDLE]),
                        row: writer.layout.read_row(writer.scheme, stage, phase, read),
                    };
                    let target =
                        writer
                            .layout
                            .target_row(writer.scheme, stage, phase, update.target);
                    let own = (place.x, place.y, place.row) == (own.x, own.y, target);
                    match !own && is_tapped(writer.scheme, writer.layout, read) {
                        false => self.value(k, place),
                        true => self.tap(k, place, read.offset[Axis::INNER].into()),
                    }
                }
                Op::Coef(coef) => {
                    let row = writer.layout.coef_row(*coef);
                    self.value(
                        k,
                        Place {
                            x: own.x,
                            y: own.y,
                            row,
                        },
                    )
                }
                op => {
                    let of = |v: Value| values[v.index()];
                    let number = row_op(op).and_then(|op| k.number(&op, of));
                    number.unwrap_or(Operand::poison(writer.real))
                }
            };
            values.push(value);
        }
        values[update.body.result.index()]
    }
}

/// An operation on numbers as row programs have it.
pub(super) fn row_op(op: &Op) -> Option<RowOp> {
    Some(match *op {
        Op::Const(_) | Op::Read(_) | Op::Coef(_) => return None,
        Op::Neg(a) => RowOp::Neg(a),
        Op::Abs(a) => RowOp::Abs(a),
        Op::Sqrt(a) => RowOp::Sqrt(a),
        Op::Add(a, b) => RowOp::Add(a, b),
        Op::Sub(a, b) => RowOp::Sub(a, b),
        Op::Mul(a, b) => RowOp::Mul(a, b),
        Op::Div(a, b) => RowOp::Div(a, b),
        Op::Fma(a, b, c) => RowOp::Fma(a, b, c),
        Op::Select {
            cmp,
            a,
            b,
            then,
            otherwise,
        } => RowOp::Select {
            cmp,
            a,
            b,
            then,
            otherwise,
        },
    })
}
