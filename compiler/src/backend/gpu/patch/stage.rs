//! A stage of a round.

use super::context::{Context, Surroundings, Values};
use super::ends::{AXES, Coordinates, resting};
use super::memory::Store;
use super::place::Patch;
use crate::backend::gpu::abi::Patches;
use crate::backend::gpu::ir::Operand;
use crate::backend::gpu::kernel::{Access, IntOp, Kernel};
use crate::backend::gpu::numbers::number;
use crate::evaluate::evaluate;
use crate::patch::{PatchProgram, Place, Read, StagePlan, UpdatePlan};
use crate::scheme::{Op, Update};
use std::collections::BTreeMap;

/// The values that a thread has read of others in a stage.
#[derive(Default)]
pub(super) struct Reader {
    known: BTreeMap<Place, Operand>,
}

impl Reader {
    pub fn value(
        &mut self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        patch: &Patch,
        values: &Values,
        place: Place,
    ) -> Operand {
        if let Some(value) = self.known.get(&place) {
            return *value;
        }
        let own = || values.rows[place.row][context.program.shape.number(place.cell)];
        let value = match place.thread {
            [0, 0, 0] => return own(),
            [_, _, 0] => match context.program.slots.of(place.row, place.cell) {
                Some(slot) => {
                    let rows = context.program.shape.rows_to(place.thread);
                    let from =
                        k.offset(patch.others[&rows], i64::from(slot) * context.slot_bytes());
                    k.load(context.real, from, context.bytes as u32, Access::Plain)
                }
                // There is one row: values beyond are wrong anyway.
                None => own(),
            },
            [outer, middle, lane] => {
                let beside = Place {
                    thread: [outer, middle, 0],
                    ..place
                };
                let value = self.value(k, context, patch, values, beside);
                k.from_lane(value, lane as i32)
            }
        };
        self.known.insert(place, value);
        value
    }
}

/// The conditions after a stage.
#[derive(Clone, Copy)]
pub(super) struct After {
    /// Whether rows that are not held are stored.
    pub leaves: Operand,
    /// Whether another stage reads values that it publishes before they are published anew.
    pub is_read: bool,
}

impl Context<'_> {
    /// `round`: where the tile may meet ends of the grid, sources and probes, which one it is.
    pub(super) fn stage(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        plan: &StagePlan,
        round: Option<Operand>,
        after: After,
        values: &mut Values,
    ) {
        let mut at = round.map(|_| self.coordinates(k, patch));
        let new = self.new_values(k, patch, plan, at.as_mut(), values);
        for (own, new) in plan.updates.iter().zip(new) {
            values.rows[own.target] = new;
        }
        if let Some((round, at)) = round.zip(at.as_mut()) {
            let first = k.int(IntOp::Mul, round, Operand::i32(self.program.round as i32));
            let step = k.int(IntOp::Add, first, Operand::i32(plan.phase as i32));
            for own in &plan.updates {
                let number = PatchProgram::first_update(self.scheme, plan.stage) + own.update;
                self.points(k, patch, number, step, &mut values.rows[own.target]);
            }
            let rows: Vec<usize> = plan.updates.iter().map(|own| own.target).collect();
            self.ghosts(k, patch, at, &rows, values);
        }
        let to = Store {
            array: k.param(Patches::TO),
            rims: None,
            surroundings: match round {
                Some(_) => Surroundings::Ends,
                None => Surroundings::Bare,
            },
        };
        for row in &plan.leave {
            let own = &values.rows[*row];
            k.when(after.leaves, |k| self.store(k, patch, *row, own, to));
        }
        if after.is_read {
            self.publish_rows(k, patch, plan, values);
        }
    }

    /// The values that the updates of a stage give: per update, of all cells of a patch. `at`: where the tile may meet
    /// ends of the grid.
    fn new_values(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        plan: &StagePlan,
        mut at: Option<&mut Coordinates>,
        values: &Values,
    ) -> Vec<Vec<Operand>> {
        let updates = &self.scheme.stages[plan.stage.index()].updates;
        let mut reader = Reader::default();
        let mut new = vec![Vec::new(); plan.updates.len()];
        let rests: Vec<[Vec<i64>; 3]> = plan
            .updates
            .iter()
            .map(|own| match at {
                Some(_) => self.rests(own, &updates[own.update]),
                None => Default::default(),
            })
            .collect();
        let [px, py, pz] = self.program.shape.patch;
        let lines = |i| (0..py).flat_map(move |l| (0..pz).map(move |j| [i, l, j]));
        for i in 0..px {
            for ((own, rests), new) in plan.updates.iter().zip(&rests).zip(&mut new) {
                for cell in lines(i) {
                    let mut writer = Cell {
                        context: self,
                        patch,
                        values,
                        reader: &mut reader,
                        cell,
                        rests,
                    };
                    let update = &updates[own.update];
                    let value = writer.update(k, own, update);
                    let value = writer.where_it_acts(k, own, update, value, at.as_deref_mut());
                    // Else old values stay alive until later code reads the new ones.
                    new.push(match at {
                        Some(_) => k.here(value),
                        None => value,
                    });
                }
            }
        }
        if let Some(at) = at {
            self.amend(k, patch, plan, at, values, &mut new);
        }
        new
    }

    /// Publishes the rows that the next stage reads of others, and waits where threads have to.
    fn publish_rows(&self, k: &mut Kernel<'_>, patch: &Patch, plan: &StagePlan, values: &Values) {
        if plan.frees {
            k.barrier();
        }
        plan.publish
            .iter()
            .for_each(|row| self.publish(k, patch, *row, values));
        if plan.barrier {
            k.barrier();
        }
    }

    /// Along the axes, the cells of a patch at which an update may have to keep a value that is read.
    fn rests(&self, own: &UpdatePlan, update: &Update) -> [Vec<i64>; 3] {
        let seen = self.scheme.visible(own.component);
        let mut rests: [Vec<i64>; 3] = Default::default();
        for n in self.program.axes() {
            let axis = AXES[n];
            rests[n] = resting(self.program, n, update.region[axis], seen[axis]);
        }
        rests
    }

    /// Writes the values of a row that other rows of threads read.
    pub(super) fn publish(&self, k: &mut Kernel<'_>, patch: &Patch, row: usize, values: &Values) {
        for (cell, slot) in self.program.slots.of_row(row) {
            let to = k.offset(patch.slot, i64::from(slot) * self.slot_bytes());
            let value = values.rows[row][self.program.shape.number(cell)];
            k.store(value, to, self.bytes as u32, Access::Plain);
        }
    }

    /// The number of updates of a step.
    pub(super) fn updates(&self) -> usize {
        self.scheme.stages.iter().map(|s| s.updates.len()).sum()
    }

    /// A pointer parameter, moved by a number of elements.
    pub(super) fn element(
        &self,
        k: &mut Kernel<'_>,
        param: usize,
        index: Operand,
        bytes: usize,
    ) -> Operand {
        debug_assert!(param < Patches::TYPES.len());
        let index = k.resize(index, crate::backend::gpu::ir::Type::I64);
        k.advance(k.param(param), index, bytes as u32)
    }
}

/// An update of a cell that is being written.
struct Cell<'s, 'a> {
    context: &'s Context<'a>,
    patch: &'s Patch,
    values: &'s Values,
    reader: &'s mut Reader,
    cell: [i64; 3],
    /// Along the axes, the cells at which the update may not act.
    rests: &'s [Vec<i64>; 3],
}

impl Cell<'_, '_> {
    fn number(&self) -> usize {
        self.context.program.shape.number(self.cell)
    }

    fn read(&mut self, k: &mut Kernel<'_>, read: &Read) -> Operand {
        let place = Place::of(&self.context.program.shape, self.cell, read);
        self.reader
            .value(k, self.context, self.patch, self.values, place)
    }

    fn coef(&mut self, k: &mut Kernel<'_>, coef: crate::scheme::CoefId) -> Operand {
        let number = self.context.coef_number(coef);
        self.context
            .coef(k, self.patch, self.values, number, self.number())
    }

    /// The value that the body gives; where a mask is 0, the old one.
    fn update(&mut self, k: &mut Kernel<'_>, own: &UpdatePlan, update: &Update) -> Operand {
        let real = self.context.real;
        let mut state = (k, self);
        let value = evaluate(
            &mut state,
            &update.body,
            |(k, cell), n| match (&own.reads[n], &update.body.ops[n]) {
                (Some(read), _) => cell.read(k, read),
                (None, Op::Coef(coef)) => cell.coef(k, *coef),
                // Operands are reads and coefficients.
                (None, _) => Operand::poison(real),
            },
            |(k, _), op, values| number(k, real, op, values),
        );
        let (k, cell) = state;
        let Some(mask) = update.mask else {
            return value;
        };
        let mask = cell.coef(k, mask);
        let acts = k.differs(mask, Operand::real(real, 0));
        let old = cell.values.rows[own.target][cell.number()];
        k.choose(acts, value, old)
    }

    /// The new value in the region of the update, and the value elsewhere, as far as it is read.
    fn where_it_acts(
        &mut self,
        k: &mut Kernel<'_>,
        own: &UpdatePlan,
        update: &Update,
        value: Operand,
        at: Option<&mut Coordinates>,
    ) -> Operand {
        let Some(at) = at else { return value };
        let along = |n: &usize| self.rests[*n].contains(&self.cell[*n]);
        let along = (0..3)
            .filter(along)
            .map(|n| at.within(k, n, self.cell[n], update.region[AXES[n]]));
        let along: Vec<Operand> = along.collect();
        let acts = along.into_iter().reduce(|a, b| k.int(IntOp::And, a, b));
        let Some(acts) = acts else { return value };
        let elsewhere = match self.context.scheme.component(own.component).time_levels {
            1 => self.values.rows[own.target][self.number()],
            _ => Operand::real(self.context.real, 0),
        };
        k.choose(acts, value, elsewhere)
    }
}
