//! Passes around a periodic first axis, whose planes are counted on.
//!
//! The planes of a time block lie where the seam of the one before has ended, so what happens to single cells, and in
//! parts of the axis, happens elsewhere in each time block: its towers have tables of their own then. Where planes are
//! alike and nothing happens to single cells, all time blocks of a height have the same tables.

use super::Pipelined;
use super::pass_state::PassState;
use super::unit::Lie;
use crate::simulation::Value;
use torre_compiler::pipeline::Pass;
use torre_compiler::problem::OutputKind;
use torre_compiler::tower::{TaskList, Towers};

impl<T: Value> Pipelined<'_, T> {
    /// Whether tables depend on where planes are around a ring.
    fn tables_differ(&self) -> bool {
        let points = !self.points.injections.is_empty() || !self.points.receivers.is_empty();
        let uniform = self.towers.program.towers.rings.uniform;
        self.footprints.ring().is_some() && (points || !uniform)
    }

    /// Says where the time blocks of a pass that begins next lie around a ring.
    pub(super) fn turn_blocks(&self, pass: &Pass, state: &mut PassState) {
        state.turn = self.builder.turn();
        let Some(ring) = self.footprints.ring() else {
            return;
        };
        for (own, block) in state.blocks.iter_mut().zip(&pass.blocks) {
            own.moved = block.moved;
            if self.tables_differ() {
                let turn = self.footprints.way() * (state.turn - block.moved);
                own.lie.turn = turn.rem_euclid(ring);
            }
        }
    }

    /// The towers with planes that are counted on from elsewhere.
    pub(super) fn turned(&self, turn: i64) -> Option<Towers> {
        (turn != 0).then(|| self.towers.program.towers.turned(turn))
    }

    /// The towers of a time block.
    pub(super) fn list_of(&mut self, lie: Lie) -> Option<TaskList> {
        let (scheme, layout) = (self.calculation.scheme, &self.calculation.layout);
        let Lie { steps, turn } = lie;
        if !self.tables_differ() {
            return self.footprints.tasks(scheme, layout, steps);
        }
        if !self.towers.program.towers.rings.uniform {
            let turned = self.footprints.turned(turn);
            return turned.tasks(scheme, layout, steps);
        }
        if !self.lists.contains_key(&steps) {
            let list = self.footprints.tasks(scheme, layout, steps)?;
            self.lists.insert(steps, list);
        }
        self.lists.get(&steps).cloned()
    }

    /// Leaves the tables of a pass that is over to later ones, if no other pass has them and they differ.
    pub(super) fn leave_lists(&mut self, pass: u64) {
        if !self.tables_differ() {
            return;
        }
        let device = self.builder.window().device(pass);
        let used = |lie: &Lie| {
            let passes = (self.first_pass..).zip(&self.passes);
            let mut same =
                passes.filter(|(number, _)| self.builder.window().device(*number) == device);
            same.any(|(_, state)| state.blocks.iter().any(|block| block.lie == *lie))
        };
        let ready = self.units[device].ready.keys();
        let unused: Vec<Lie> = ready.filter(|lie| !used(lie)).copied().collect();
        let unit = &mut self.units[device];
        for lie in unused {
            if let Some(ready) = unit.ready.remove(&lie) {
                unit.room.leave(&ready);
            }
        }
    }

    /// The next step after which a slice is due, where passes around a ring end for it.
    pub(super) fn next_slice_around(&self) -> u64 {
        if self.footprints.ring().is_none() {
            return u64::MAX;
        }
        let outputs = self.calculation.problem.outputs.iter();
        let slices = outputs.filter(|output| matches!(output.kind, OutputKind::Slice { .. }));
        let next =
            slices.map(|output| (self.steps / output.every.max(1) + 1) * output.every.max(1));
        next.min().unwrap_or(u64::MAX)
    }

    /// Takes the slices that are due after a pass around a ring from the host's array.
    pub(super) fn take_slices_around(&mut self) {
        if self.footprints.ring().is_some() {
            self.pictures.extend(self.calculation.slices_due());
        }
    }
}
