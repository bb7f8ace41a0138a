//! Towers that a GPU can run.

use super::Refusal;
use std::sync::Arc;
use torre_compiler::layout::Layout;
use torre_compiler::schedule::Level;
use torre_compiler::scheme::Scheme;
use torre_compiler::tower::block::{Block, Division};
use torre_compiler::tower::{AllocatedTowers, TowerProgram, Towers};

/// Towers that a GPU can run.
#[derive(Clone, Debug)]
pub struct Fit {
    pub allocated: AllocatedTowers,
    pub block: Block,
    /// Values that a thread keeps from one stage to the next, at most.
    pub kept: usize,
    /// Registers of a thread for them, and for its work.
    pub registers: u64,
    /// Accesses to shared memory per cell-step.
    pub accesses: f64,
    /// Values of a row that two z blocks load where they meet, if lines are cut into such.
    pub in_common: f64,
}

impl Fit {
    pub fn towers(&self) -> &Towers {
        &self.allocated.towers
    }

    /// Z blocks into which lines are cut in time blocks of `steps` steps, if they are; 0 where that is not possible.
    pub fn z_blocks(&self, scheme: &Scheme, steps: u64) -> Option<usize> {
        let z_blocks = self.block.lines.z_blocks()?;
        let z_blocks = z_blocks.of(steps * scheme.stages.len() as u64);
        Some(z_blocks.map_or(0, |all| all.len()))
    }

    /// The program that a run executes.
    pub fn program(&self, scheme: &Scheme, layout: &Layout) -> TowerProgram {
        let (allocated, block) = (self.allocated.clone(), self.block.clone());
        allocated.program(scheme, layout, block)
    }
}

/// The blocks that run towers of some tiling.
pub(super) struct Known {
    pub(super) levels: Vec<Level>,
    pub(super) division: Option<Division>,
    pub(super) fits: Result<Arc<Vec<Fit>>, Refusal>,
}
