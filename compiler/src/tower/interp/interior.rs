//! Interior periods: the row operations of a program, one after the other.

use super::line::Line;
use super::state::{Begun, SlotWaves, Tower, UnderWay};
use super::value::{kept, number};
use super::volume::{Corrected, VolumeAt, VolumeCell};
use super::{Launch, TowerInterp};
use crate::evaluate::evaluate;
use crate::lattice::{Axis, Interval};
use crate::layout::RowId;
use crate::real::Real;
use crate::scheme::ComponentId;
use crate::tower::group::Group;
use crate::tower::program::{Operand, PeriodProgram, RowOp, StageProgram, Update};
use crate::tower::residency::{RowRef, RowUpdate, StageAt};
use crate::tower::{MirroredRead, Operands, Placement, SharedCopy, Written, written_groups};
use std::collections::BTreeMap;

/// A stage of an interior period.
#[derive(Clone, Copy)]
pub(super) struct Interior<'p> {
    pub launch: Launch,
    pub placement: &'p Placement,
    pub period: u64,
    /// Of the period.
    pub stage: usize,
    pub copies: Copies,
}

/// When copies read their values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Copies {
    /// As early as possible.
    Early,
    /// As late.
    Late,
}

impl Interior<'_> {
    /// The origin of the period, in the array.
    pub(super) fn origin(&self, advance: Group) -> Group {
        let Placement { origin, shift, .. } = self.placement;
        *origin + *shift + advance * self.period as i64
    }

    /// The number of a stage of the period, from the start of the time block on.
    fn number(&self, per_period: i64, stage: i64) -> i64 {
        self.period as i64 * per_period + stage
    }
}

impl<T: Real> TowerInterp<'_, T> {
    fn period_of(&self, of: Interior<'_>) -> &PeriodProgram {
        &self.program.periods[of.placement.alignment]
    }

    pub(super) fn stages_of(&self, of: Interior<'_>) -> &[StageProgram] {
        &self.period_of(of).variants[of.placement.variant]
    }

    /// The number of a stage of the time block.
    pub(super) fn stage_of(&self, of: Interior<'_>) -> i64 {
        of.number(self.program.per_period() as i64, of.stage as i64)
    }

    fn is_predicated(&self, of: Interior<'_>) -> bool {
        self.program.towers.variants.all[of.placement.variant].predicated
    }

    /// The first interior period begins: registers and shared rows get the values that are kept from before.
    pub(super) fn begin(&self, of: Interior<'_>, tower: &mut Tower<T>, shared: &mut [Line<T>]) {
        let origin = of.origin(self.program.towers.advance);
        let lanes = self.lanes(of.launch);
        let per_period = self.program.per_period() as i64;
        let start = of.number(per_period, 0);
        tower.registers.clear();
        for carried in &self.period_of(of).carried {
            let needed = match lanes.z_blocks {
                Some(z_blocks) => lanes.between(z_blocks.needed(carried.uses), start),
                None => Interval::new(0, lanes.length),
            };
            let row = self.held_row(of, carried.row.row, origin + carried.row.at);
            let needed = needed.intersect(lanes.present());
            tower.registers.insert(carried.row, only(&row, needed));
        }
        let held = self.period_of(of).held.clone();
        let copies = self.copies(of, &held, origin, start);
        for (copy, line) in held.iter().zip(copies) {
            shared[copy.shared] = line;
        }
        self.make_shown_ghosts(&held, shared);
    }

    /// The last interior period is over: memory gets the values that only the tower has.
    pub(super) fn end(&mut self, of: Interior<'_>, tower: &Tower<T>) -> Result<(), String> {
        let next = Interior {
            period: of.period + 1,
            ..of
        };
        let carried = self.period_of(of).carried.clone();
        for carried in &carried {
            if let (Some(written), Some(line)) =
                (carried.written, tower.registers.get(&carried.row))
            {
                self.leave(next, carried.row, written, &line.clone())?;
            }
        }
        Ok(())
    }

    /// A row of memory. Ghosts beyond mirrors that cut rows off are unknown.
    fn held_row(&self, of: Interior<'_>, row: RowId, group: Group) -> Line<T> {
        let component = self.layout.component_of(row);
        let own = component.map(|id| self.program.towers.mirrored.own(id));
        let beyond = own.is_some_and(|own| !own.contains(group));
        match beyond && self.is_predicated(of) {
            true => self.unknown_row(row),
            false => self.row(row, group),
        }
    }

    /// The values that copies bring, as memory is now: values that some lane needs of rows that are copied together.
    fn copies(
        &self,
        of: Interior<'_>,
        copies: &[SharedCopy],
        origin: Group,
        start: i64,
    ) -> Vec<Line<T>> {
        let lanes = self.lanes(of.launch);
        let window = lanes.z_blocks.and_then(|z_blocks| z_blocks.window(copies));
        let copy = |copy: &SharedCopy| {
            let row = self.held_row(of, copy.row.row, origin + copy.row.at);
            let Some(ends) = window else { return row };
            only(&row, lanes.between(ends, start))
        };
        copies.iter().map(copy).collect()
    }

    /// Towers make ghosts along the inner axis of rows that have arrived.
    fn make_shown_ghosts(&self, copies: &[SharedCopy], shared: &mut [Line<T>]) {
        let Some(ghosts) = &self.program.block.ghosts else {
            return;
        };
        for copy in copies {
            let component = self.layout.component_of(copy.row.row);
            let (Some(component), true) = (component, copy.cross_lane) else {
                continue;
            };
            let line = &mut shared[copy.shared];
            for shown in &ghosts.inner.shown[component.index()] {
                let value = match shown.source {
                    Some(source) if shown.negated => line.get(source).map(T::neg),
                    Some(source) => line.get(source),
                    None => Some(T::from_f64(0.0)),
                };
                line.set(shown.index, value);
            }
        }
    }

    /// A stage of an interior period.
    pub(super) fn interior(
        &mut self,
        of: Interior<'_>,
        tower: &mut Tower<T>,
        shared: &mut [Line<T>],
        volumes: &VolumeAt<'_, T>,
    ) -> Result<(), String> {
        let per_period = self.program.per_period() as i64;
        let advance = self.program.towers.advance;
        let stage = self.stages_of(of)[of.stage].clone();
        let arriving = std::mem::take(&mut tower.under_way);
        let is_last = of.stage as i64 + 1 == per_period;
        // Copies of the last stage are for the next period, if there is one.
        let more = !is_last || of.period + 1 < of.placement.interior.end;
        if more {
            let (origin, start) = (of.origin(advance), of.number(per_period, 0));
            let early = of.copies == Copies::Early;
            let lines = early.then(|| self.copies(of, &stage.loads, origin, start));
            let mut lines = lines.into_iter().flatten();
            tower.under_way = stage.loads.iter().map(|c| (*c, lines.next())).collect();
            for copy in &stage.loads {
                shared[copy.shared] = self.line();
            }
        }
        let begun = tower.begun.take().unwrap_or_default();
        let first = begun.ops;
        let mut lane = self.lane(of, tower, shared, begun);
        for op in &stage.ops[first..] {
            self.op(op, &mut lane, &arriving, volumes)?;
        }
        for (row, line) in std::mem::take(&mut lane.stage.published) {
            lane.shared[row] = line;
        }
        if is_last {
            // Only rows that a period names are there in the next one.
            let carried = self.period_of(of).carried.iter();
            let moved = carried.filter_map(|carried| {
                let now = RowRef {
                    at: carried.row.at + advance,
                    row: carried.row.row,
                };
                Some((carried.row, lane.tower.registers.get(&now)?.clone()))
            });
            lane.tower.registers = moved.collect();
        }
        Ok(())
    }

    pub(super) fn op(
        &mut self,
        op: &RowOp,
        lane: &mut Lane<'_, '_, T>,
        arriving: &UnderWay<T>,
        volumes: &VolumeAt<'_, T>,
    ) -> Result<(), String> {
        match op {
            RowOp::Prefetch { .. } => {}
            RowOp::Await => {
                let copies: Vec<SharedCopy> = arriving.iter().map(|(copy, _)| *copy).collect();
                // The last stage of the period before has begun the copies that arrive in a first stage.
                let begun = Interior {
                    period: lane.of.period - u64::from(lane.of.stage == 0 && !copies.is_empty()),
                    ..lane.of
                };
                let origin = begun.origin(self.program.towers.advance);
                let start = begun.number(self.program.per_period() as i64, 0);
                let late = self.copies(begun, &copies, origin, start);
                for ((copy, early), late) in arriving.iter().zip(late) {
                    lane.shared[copy.shared] = early.clone().unwrap_or(late);
                }
                self.make_shown_ghosts(&copies, lane.shared);
                lane.tower.waves = self.waves(lane.of, volumes).into_iter().collect();
            }
            RowOp::Fetch(all) => all.iter().for_each(|of| self.fetch(*of, lane)),
            RowOp::Update(update) => self.update(update, lane)?,
            RowOp::Amend(all) => {
                for amend in all {
                    self.amend(amend, lane)?;
                }
            }
            RowOp::Inject {
                update,
                rows,
                copied,
            } => self.inject(*update, rows, copied.as_deref(), lane, volumes)?,
            RowOp::Commit(row) => self.commit(row, lane),
            RowOp::Publish { row, shared, zeros } => {
                let line = lane.register(*row)?.clone();
                if let Some(id) = self.layout.component_of(row.row) {
                    // Other lanes see it when the stage is over; until then they may or may not find it.
                    let unknown = self.line();
                    let before = std::mem::replace(&mut lane.shared[*shared], unknown);
                    let mut published = before.beginning(self.layout.row_begin(row.row));
                    self.publish(id, &line, &mut published);
                    for place in zeros {
                        published.set(*place, Some(T::default()));
                    }
                    lane.stage.published.push((*shared, published));
                }
            }
            RowOp::Store { row, before } => {
                let line = lane.register(*row)?.clone();
                let last = lane.of.stage as i64;
                let first = last - before;
                self.leave(lane.of, *row, Written { first, last }, &line)?;
            }
            RowOp::Keep(operand) => {
                lane.fetch(*operand)?;
            }
        }
        Ok(())
    }

    fn update(&mut self, op: &Update, lane: &mut Lane<'_, '_, T>) -> Result<(), String> {
        let updates = lane.at.updates(self.scheme);
        let update = &updates[op.row.update];
        let operands = op.operands.iter().copied().flatten();
        for operand in operands.chain(op.mask).chain(op.old) {
            lane.fetch(operand)?;
        }
        let lanes = self.lanes(lane.of.launch);
        let stage = self.stage_of(lane.of);
        let active = lanes.active(stage, stage);
        let (mut target, mut before) = (self.line(), self.line());
        for z in lanes.present().lo..lanes.present().hi {
            let value = evaluate(
                &mut *lane,
                &update.body,
                |lane, n| self.seen(lane, op.row, 0, &op.operands, n, z),
                |_, op, values| number(op, values),
            );
            let old = op.old.and_then(|operand| lane.value(operand, z));
            let mask = op.mask.map(|operand| lane.value(operand, z));
            let value = kept(self.scheme, update, z, value, mask, old);
            target.set(z, if active.contains(z) { value } else { old });
            before.set(z, old);
        }
        lane.tower.registers.insert(op.target, target);
        if op.old.is_some() {
            lane.stage.old.insert(op.target, before);
        }
        Ok(())
    }

    /// The value that an operation of a body of an update, its own or that of an amendment, reads at an index: through
    /// mirrors, where they may cut rows off.
    pub(super) fn seen(
        &self,
        lane: &Lane<'_, '_, T>,
        row: RowUpdate,
        body: usize,
        operands: &[Option<Operand>],
        op: usize,
        z: i64,
    ) -> Option<T> {
        let all = &self.program.towers.mirrored;
        let all = all.bodies(lane.at.stage.index(), row.update);
        let mut mirrors = Mirrors {
            lane,
            group: lane.origin + row.at,
            operands,
            z,
        };
        match all.get(body).filter(|_| self.is_predicated(lane.of)) {
            Some(body) => body.value(&mut mirrors, op),
            None => mirrors.plain(op),
        }
    }

    /// Rows that an end of the grid cuts off keep their old value.
    fn commit(&self, row: &RowUpdate, lane: &mut Lane<'_, '_, T>) {
        let update = &lane.at.updates(self.scheme)[row.update];
        let group = lane.origin + row.at;
        let [outer, middle, _] = update.region.0;
        let acts = outer.contains(group.x) && middle.contains(group.y);
        let target = self.target(row, lane);
        let old = lane.stage.old.remove(&target);
        if let (true, false, Some(old)) = (self.is_predicated(lane.of), acts, old) {
            lane.tower.registers.insert(target, old);
        }
    }

    fn target(&self, row: &RowUpdate, lane: &Lane<'_, '_, T>) -> RowRef {
        let update = &lane.at.updates(self.scheme)[row.update];
        RowRef {
            at: row.at,
            row: lane.at.target(self.scheme, self.layout, update),
        }
    }

    fn inject(
        &self,
        update: usize,
        rows: &[RowUpdate],
        slots: Option<&[usize]>,
        lane: &mut Lane<'_, '_, T>,
        volumes: &VolumeAt<'_, T>,
    ) -> Result<(), String> {
        let component = lane.at.updates(self.scheme)[update].target;
        let stage = self.stage_of(lane.of);
        let lanes = self.lanes(lane.of.launch);
        let active = lanes.active(stage, stage).intersect(lanes.present());
        let corrected = match lane.of.placement.near.contains(&lane.of.period) {
            true => Corrected::All,
            false => Corrected::OutsideHoles,
        };
        let copied = self.copied_sources(lane.at.stage, component);
        let slots = slots.filter(|_| corrected == Corrected::OutsideHoles);
        for (number, row) in rows.iter().enumerate() {
            let group = lane.origin + row.at;
            let target = self.target(row, lane);
            let mut own: BTreeMap<usize, SlotWaves> = BTreeMap::new();
            for (n, source) in copied.iter().enumerate() {
                if let Some(slots) = slots {
                    let slot = slots[number] + n;
                    let waves = lane.tower.waves.remove(&slot);
                    let waves = waves.ok_or_else(|| format!("no waves are in slot {slot}"))?;
                    own.insert(*source, waves);
                }
            }
            let Some(line) = lane.tower.registers.get_mut(&target) else {
                continue;
            };
            for z in active.lo..active.hi {
                let cell = VolumeCell {
                    stage: lane.at.stage,
                    component,
                    group,
                    z,
                };
                let copied = |n: usize| own.get(&n).map(|waves| waves.get(&z).copied());
                let value = volumes.add(cell, corrected, line.get(z), copied);
                line.set(z, value);
            }
        }
        Ok(())
    }

    /// Writes a row to a shared row, with its ghosts along the inner axis.
    fn publish(&self, id: ComponentId, line: &Line<T>, to: &mut Line<T>) {
        let extent = self.scheme.extent(id)[Axis::INNER];
        for z in extent.intersect(line.own()).lo..extent.intersect(line.own()).hi {
            to.set(z, line.get(z));
        }
        for (source, ghost) in self.inner_ghosts(id).pairs() {
            let value = line.get(source);
            to.set(
                ghost.index,
                if ghost.negated {
                    value.map(T::neg)
                } else {
                    value
                },
            );
        }
    }

    /// Writes a row to memory where lanes had a part in the stages that wrote it, with its ghosts along the inner axis
    /// if memory keeps them.
    fn leave(
        &mut self,
        of: Interior<'_>,
        row: RowRef,
        written: Written,
        line: &Line<T>,
    ) -> Result<(), String> {
        let Some(id) = self.layout.component_of(row.row) else {
            return Err(format!("{row:?} of a coefficient is written"));
        };
        let group = of.origin(self.program.towers.advance) + row.at;
        let inner = self.scheme.extent(id)[Axis::INNER];
        if self.is_predicated(of) && !written_groups(self.scheme, id).contains(group) {
            return Ok(());
        }
        let per_period = self.program.per_period() as i64;
        let [first, last] = [written.first, written.last].map(|n| of.number(per_period, n));
        let lanes = self.lanes(of.launch);
        let indices = inner
            .intersect(lanes.active(first, last))
            .intersect(lanes.present());
        let live = self.scheme.grid.live(self.scheme.component(id).position)[Axis::INNER];
        let mut ghosts = vec![(group, false)];
        if self.is_predicated(of) {
            let at = group.array();
            let all = self.program.towers.mirrored.ghosts(id).iter();
            let own = all.filter(|ghost| {
                let mut of = ghost.of.iter().zip(at);
                of.all(|(index, at)| index.is_none_or(|index| index == at))
            });
            let own = own.map(|ghost| {
                let [x, y] = ghost.by;
                (group + Group::new(x, y), ghost.negated)
            });
            ghosts.extend(own);
        }
        for z in indices.lo..indices.hi {
            for (group, negated) in &ghosts {
                // The zeros on a plane about which a component is odd have no sign.
                let value = match *negated && live.contains(z) {
                    true => line.get(z).map(T::neg),
                    false => line.get(z),
                };
                self.write(id, row.row, *group, z, value)?;
            }
        }
        Ok(())
    }

    /// Writes a value to memory, with its ghosts along the inner axis if memory keeps them.
    pub(super) fn write(
        &mut self,
        id: ComponentId,
        row: crate::layout::RowId,
        group: Group,
        z: i64,
        value: Option<T>,
    ) -> Result<(), String> {
        let name = &self.scheme.component(id).name;
        let Some(value) = value else {
            return Err(format!("{name} at {group:?}, {z} gets an unknown value"));
        };
        let at = self.element(row, group, z);
        self.memory[at] = Some(value);
        if self.program.block.ghosts.is_some() {
            return Ok(());
        }
        let ghosts: Vec<crate::ghost::Ghost> = self.inner_ghosts(id).of(z).collect();
        for ghost in ghosts {
            let at = self.element(row, group, ghost.index);
            self.memory[at] = Some(if ghost.negated { value.neg() } else { value });
        }
        Ok(())
    }
}

/// The visible values at indices of `range`; a value beyond an end of the line belongs to the index at that end.
fn only<T: Real>(line: &Line<T>, range: Interval) -> Line<T> {
    let mut some = line.clone();
    for z in line.visible() {
        if !range.contains(z) {
            some.set(z, None);
        }
    }
    some
}

/// The operands of a row at an index.
struct Mirrors<'l, 's, 'p, T> {
    lane: &'l Lane<'s, 'p, T>,
    /// Where the row is.
    group: Group,
    operands: &'l [Option<Operand>],
    z: i64,
}

impl<T: Real> Operands for Mirrors<'_, '_, '_, T> {
    type Value = Option<T>;

    fn plain(&mut self, op: usize) -> Option<T> {
        self.operands[op].and_then(|operand| self.lane.value(operand, self.z))
    }

    fn choose(
        &mut self,
        axis: usize,
        read: MirroredRead,
        seen: Option<T>,
        own: Option<T>,
    ) -> Option<T> {
        match self.group.array()[axis] == read.at {
            true if read.negated => seen.map(T::neg),
            true => seen,
            false => own,
        }
    }
}

/// The context of the lanes of a tower in a stage.
pub(super) struct Lane<'s, 'p, T> {
    pub of: Interior<'p>,
    pub at: StageAt,
    pub origin: Group,
    pub tower: &'s mut Tower<T>,
    pub shared: &'s mut [Line<T>],
    pub stage: Begun<T>,
}

impl<T: Real> Lane<'_, '_, T> {
    pub fn register(&self, row: RowRef) -> Result<&Line<T>, String> {
        let found = self.tower.registers.get(&row);
        found.ok_or_else(|| format!("{row:?} is in no register"))
    }

    /// Brings an operand to registers, if that is where it will be.
    pub fn fetch(&mut self, operand: Operand) -> Result<(), String> {
        match operand {
            Operand::Register(row) => self.register(row).map(|_| ()),
            Operand::Entering { row, shared } => {
                let line = self.shared[shared].clone();
                self.tower.registers.insert(row, line);
                Ok(())
            }
            Operand::Old(row) => match self.stage.old.contains_key(&row) {
                true => Ok(()),
                false => Err(format!("the old value of {row:?} is in no register")),
            },
            Operand::CrossLane { .. } => Ok(()),
        }
    }

    /// An operand of the lane at an index.
    pub fn value(&self, operand: Operand, z: i64) -> Option<T> {
        match operand {
            Operand::Register(row) | Operand::Entering { row, .. } => {
                self.tower.registers.get(&row)?.get(z)
            }
            Operand::Old(row) => self.stage.old.get(&row)?.get(z),
            Operand::CrossLane { shared, by, .. } => self.shared[shared].get(z + by),
        }
    }
}
