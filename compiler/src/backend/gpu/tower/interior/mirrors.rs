//! Rows that read beyond mirrors, where an end of the grid may cut them off.

use super::stage::Stage;
use crate::backend::gpu::ir::Operand;
use crate::backend::gpu::kernel::Kernel;
use crate::backend::gpu::tower::predicate::Predicate;
use crate::tower::{self, Group, MirroredRead, Operands, RowUpdate};

/// The operands of a row in a period of which mirrors may cut rows off.
struct Mirrors<'v, 'k, 'n> {
    k: &'v mut Kernel<'n>,
    predicate: Predicate,
    /// The row, from the origin.
    at: Group,
    /// The values that operations read where they read nothing beyond a mirror.
    plain: &'k [Operand],
}

impl Operands for Mirrors<'_, '_, '_> {
    type Value = Operand;

    fn plain(&mut self, op: usize) -> Operand {
        self.plain[op]
    }

    fn choose(&mut self, axis: usize, read: MirroredRead, seen: Operand, own: Operand) -> Operand {
        let there = self.predicate.is_at(self.k, self.at, axis, read.at);
        let seen = match read.negated {
            true => self.k.negated(seen),
            false => seen,
        };
        self.k.choose(there, seen, own)
    }
}

impl Stage<'_, '_> {
    /// The values that a body of an update reads in a row, its own or that of an amendment, where ends of the grid may
    /// cut rows off and it reads beyond mirrors.
    pub fn seen(
        &mut self,
        k: &mut Kernel<'_>,
        row: RowUpdate,
        body: usize,
        operands: &[Option<tower::Operand>],
    ) -> Option<Vec<Option<Operand>>> {
        let predicate = self.predicate?;
        let towers = self.worker.context.towers();
        let all = towers.mirrored.bodies(self.at.stage.index(), row.update);
        let body = all.get(body).filter(|body| !body.is_empty())?;
        let none = Operand::poison(self.worker.context.real);
        let plain = operands
            .iter()
            .map(|of| of.map_or(none, |of| self.value(k, of)));
        let plain: Vec<Operand> = plain.collect();
        let mut mirrors = Mirrors {
            k,
            predicate,
            at: row.at,
            plain: &plain,
        };
        let ops = operands.iter().enumerate();
        let seen = ops.map(|(op, own)| own.map(|_| body.value(&mut mirrors, op)));
        Some(seen.collect())
    }
}
