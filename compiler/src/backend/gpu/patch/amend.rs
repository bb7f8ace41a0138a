//! Amendments of zones to the updates of a stage. Lines of a patch are amended some at a time, in warps that have cells
//! of the zone there: all loads are under way together, before the first store.

use super::context::{Context, Values};
use super::ends::{AXES, Coordinates};
use super::place::Patch;
use super::stage::Reader;
use crate::backend::gpu::abi::Patches;
use crate::backend::gpu::ir::{Operand, Type};
use crate::backend::gpu::kernel::{Access, IntOp, Kernel, Variable};
use crate::backend::gpu::numbers::number;
use crate::evaluate::evaluate_all;
use crate::lattice::Interval;
use crate::patch::{AmendmentPlan, Place, StagePlan, TOGETHER, WARP};
use crate::scheme::{Amendment, CoefId, Op, Update};
use std::collections::BTreeMap;

/// An amendment of an update.
struct Amended<'a> {
    update: &'a Update,
    amendment: &'a Amendment,
    plan: &'a AmendmentPlan,
    /// Where it acts: boxes of the zone, along the axes.
    boxes: &'a [[Interval; 3]],
    /// The new values of the update.
    new: &'a [Variable],
}

/// The values that were loaded for a cell.
struct Loaded {
    /// Whether the amendment acts there.
    acts: Operand,
    /// For each operation of its body, the value that it reads.
    operands: Vec<Operand>,
}

impl Context<'_> {
    /// Amends new values of the updates of a stage, and advances states.
    pub(super) fn amend(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        stage: &StagePlan,
        at: &Coordinates,
        values: &Values,
        new: &mut [Vec<Operand>],
    ) {
        let Some(has) = patch.has_room(k) else {
            return;
        };
        let updates = &self.scheme.stages[stage.stage.index()].updates;
        for (own, new) in stage.updates.iter().zip(new) {
            if own.amendments.is_empty() {
                continue;
            }
            let variables: Vec<Variable> = new.iter().map(|value| k.variable_of(*value)).collect();
            k.when(has, |k| {
                let update = &updates[own.update];
                for (plan, amendment) in own.amendments.iter().zip(&update.amendments) {
                    let boxes = self.layout.zones[plan.zone.index()].boxes.iter();
                    let boxes = boxes.map(|b| b.region.intersect(update.region));
                    let boxes = boxes.filter(|region| !region.is_empty());
                    let boxes: Vec<_> = boxes.map(|r| AXES.map(|axis| r[axis])).collect();
                    let amended = Amended {
                        update,
                        amendment,
                        plan,
                        boxes: &boxes,
                        new: &variables,
                    };
                    self.amendment(k, patch, at, values, &amended);
                }
            });
            for (value, variable) in new.iter_mut().zip(&variables) {
                *value = k.get(*variable);
            }
        }
    }

    fn amendment(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        at: &Coordinates,
        values: &Values,
        own: &Amended<'_>,
    ) {
        let mut at = at.clone();
        let [px, py, pz] = self.program.shape.patch;
        let not = |k: &mut Kernel<'_>, one| k.int(IntOp::Xor, one, Operand::int(Type::I1, 1));
        // Whether threads of the warp have cells of a box along the inner axis: all of them take the same way, as they
        // read of each other.
        let across: Vec<Operand> = (own.boxes.iter())
            .map(|[_, _, range]| {
                let none = (0..pz).fold(Operand::int(Type::I1, 1), |none, j| {
                    let inside = at.within(k, 2, j, *range);
                    let outside = not(k, inside);
                    k.int(IntOp::And, none, outside)
                });
                let none = k.all(none);
                not(k, none)
            })
            .collect();
        let lines: Vec<[i64; 2]> = self.lines().collect();
        let together = (TOGETHER / (pz * self.bytes)).clamp(1, px * py);
        for lines in lines.chunks(together as usize) {
            let mut some = Operand::int(Type::I1, 0);
            for ([xs, ys, _], across) in own.boxes.iter().zip(&across) {
                for [i, l] in lines {
                    let mut inside = at.within(k, 0, *i, *xs);
                    if self.program.three {
                        let along = at.within(k, 1, *l, *ys);
                        inside = k.int(IntOp::And, inside, along);
                    }
                    let both = k.int(IntOp::And, inside, *across);
                    some = k.int(IntOp::Or, some, both);
                }
            }
            if self.program.shape.threads[2] < WARP {
                // A warp has several rows of threads.
                let none = not(k, some);
                let none = k.all(none);
                some = not(k, none);
            }
            k.when(some, |k| {
                self.amend_lines(k, patch, &at, values, own, lines)
            });
        }
    }

    fn amend_lines(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        at: &Coordinates,
        values: &Values,
        own: &Amended<'_>,
        lines: &[[i64; 2]],
    ) {
        let [_, room] = match patch.room {
            Some(room) => room,
            None => return,
        };
        let shape = &self.program.shape;
        let mut loader = Loader {
            context: self,
            patch,
            values,
            at: at.clone(),
            reader: Reader::default(),
            along: BTreeMap::new(),
        };
        let inner = shape.patch[2];
        let cells = lines
            .iter()
            .flat_map(|[i, l]| (0..inner).map(move |j| [*i, *l, j]));
        let cells: Vec<[i64; 3]> = cells.collect();
        let loaded: Vec<Loaded> = cells
            .iter()
            .map(|cell| loader.load(k, own, *cell, room))
            .collect();
        let mut stores = Vec::new();
        for (cell, loaded) in cells.iter().zip(&loaded) {
            let variable = own.new[shape.number(*cell)];
            let all = evaluate_all(
                k,
                &own.amendment.body,
                |_, n| loaded.operands[n],
                |k, op, values| number(k, self.real, op, values),
            );
            let before = k.get(variable);
            let value = k.choose(loaded.acts, all[own.amendment.body.result.index()], before);
            k.set(variable, value);
            for advance in &own.amendment.advances {
                let place = self.state_place(advance.state, shape.number(*cell));
                stores.push((loaded.acts, all[advance.value.index()], place));
            }
        }
        for (acts, value, place) in stores {
            let to = k.offset(room, place);
            k.store_if(acts, value, to);
        }
    }
}

/// Loads the values that an amendment needs in some lines.
struct Loader<'s, 'a> {
    context: &'s Context<'a>,
    patch: &'s Patch,
    values: &'s Values,
    at: Coordinates,
    reader: Reader,
    /// Coefficients of an axis, by the cell of the patch along it.
    along: BTreeMap<(CoefId, i64), Operand>,
}

impl Loader<'_, '_> {
    fn load(
        &mut self,
        k: &mut Kernel<'_>,
        own: &Amended<'_>,
        cell: [i64; 3],
        room: Operand,
    ) -> Loaded {
        let (context, values) = (self.context, self.values);
        let number = context.program.shape.number(cell);
        let mut acts = Operand::int(Type::I1, 0);
        for region in own.boxes {
            let inside = self.at.inside(k, cell, *region);
            acts = k.int(IntOp::Or, acts, inside);
        }
        if let Some(mask) = own.update.mask {
            let mask = context.coef_number(mask);
            let mask = context.coef(k, self.patch, values, mask, number);
            let here = k.differs(mask, Operand::real(context.real, 0));
            acts = k.int(IntOp::And, acts, here);
        }
        let mut operands = vec![Operand::poison(context.real); own.amendment.body.ops.len()];
        for (n, op) in own.amendment.body.ops.iter().enumerate() {
            operands[n] = match (op, &own.plan.reads[n]) {
                (_, Some(read)) => {
                    let place = Place::of(&context.program.shape, cell, read);
                    let reader = &mut self.reader;
                    reader.value(k, context, self.patch, values, place)
                }
                (Op::Base, _) => k.get(own.new[number]),
                (Op::State(state), _) => {
                    let from = k.offset(room, context.state_place(*state, number));
                    k.load_if(acts, context.real, from)
                }
                (Op::Coef(coef), _) => self.coef(k, *coef, cell, acts),
                // All others are computed.
                _ => continue,
            };
        }
        Loaded { acts, operands }
    }

    fn coef(&mut self, k: &mut Kernel<'_>, coef: CoefId, cell: [i64; 3], acts: Operand) -> Operand {
        let context = self.context;
        let Some(axis) = context.scheme.coefs[coef.index()].only_axis else {
            if let Ok(known) = context.program.coefs.binary_search(&coef) {
                let number = context.program.shape.number(cell);
                return context.coef(k, self.patch, self.values, known, number);
            }
            let row = context.layout.coef_row(coef);
            let mut index = [Operand::i32(0); 3];
            for n in context.program.axes() {
                index[n] = self.at.index(k, n, cell[n]);
            }
            let from = context.pointer(k, k.param(Patches::FROM), row, index);
            return k.load_if(acts, context.real, from);
        };
        // One of an axis serves all cells across it.
        let n = AXES.iter().position(|own| *own == axis);
        let own = n.map_or(0, |n| cell[n]);
        if let Some(value) = self.along.get(&(coef, own)) {
            return *value;
        }
        let first = context.layout.axis_coef_element(axis, coef, 0) * context.bytes;
        let mut from = k.offset(k.param(Patches::FROM), first);
        if let Some(n) = n {
            let whole = Interval::new(0, context.layout.extent[axis]);
            let index = self.at.clamped(k, n, own, whole);
            let index = k.resize(index, Type::I64);
            let stride = context.layout.axis_coefs[axis].stride * context.bytes;
            let by = k.int(IntOp::Mul, index, Operand::i64(stride));
            from = k.advance(from, by, 1);
        }
        let bytes = context.bytes as u32;
        let value = k.load(context.real, from, bytes, Access::ReadOnly);
        self.along.insert((coef, own), value);
        value
    }
}
