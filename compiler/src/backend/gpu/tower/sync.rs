//! The barriers of a tower's threads, and how compute threads go on from stage to stage.

use super::super::abi::{TaskWord, TowerParams};
use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel};
use super::cluster::{self, Across, ClusterBarrier};
use super::context::{Context, Lane};
use super::neighbours::Neighbours;
use super::pipeline::Pipeline;
use super::task;
use crate::tower::block::{Roles, WARP};

/// The barrier at the end of a stage.
const STAGE: u32 = 1;
/// The barrier between two towers, where the poller is, too.
const TOWER: u32 = 2;

/// How the threads of a block, or of a cluster, keep order.
#[derive(Clone, Copy)]
pub(super) struct Sync<'a> {
    pub roles: Roles,
    pub cluster: Option<ClusterBarrier>,
    /// How compute threads go on from stage to stage of interior periods. `None`: copies end with the stage in which
    /// they begin, and a barrier follows.
    pub pipeline: Option<(Pipeline, Neighbours<'a>)>,
}

impl Sync<'_> {
    /// All threads that work on a tower wait for each other.
    pub fn barrier(&self, k: &mut Kernel<'_>) {
        match self.cluster {
            Some(cluster) => cluster.barrier(k),
            None => k.barrier_of(STAGE, self.roles.working()),
        }
    }

    /// The same, and all see stores of others to memory.
    pub fn fenced_barrier(&self, k: &mut Kernel<'_>) {
        match self.cluster {
            Some(cluster) => cluster.fenced_barrier(k),
            None => k.barrier_of(STAGE, self.roles.working()),
        }
    }

    /// All threads that run a tower, the poller's included.
    fn tower_barrier(&self, k: &mut Kernel<'_>) {
        match self.cluster {
            Some(_) => cluster::barrier_of_all(k),
            None => k.barrier_of(TOWER, self.roles.working() + WARP as u32),
        }
    }

    /// Waits until no thread needs the task before, shows the next one, and ends threads where there is none.
    pub fn begin(&self, k: &mut Kernel<'_>, words: Operand, show: impl FnOnce(&mut Kernel<'_>)) {
        self.tower_barrier(k);
        show(k);
        self.tower_barrier(k);
        let number = task::place(k, words, TaskWord::NUMBER);
        let number = k.load(Type::I32, number, 4, Access::Volatile);
        let ended = k.compare(IntCmp::Ge, number, k.param(TowerParams::COUNT));
        k.exit_if(ended);
    }

    /// A stage of an interior period ends, in which threads have sent `sent` rows to other blocks.
    pub fn end_stage(&self, k: &mut Kernel<'_>, context: &Context<'_>, sent: usize) {
        match self.pipeline {
            Some((pipeline, neighbours)) => {
                pipeline.free(k);
                neighbours.tell(k, sent, context.bytes(1));
                neighbours.wait(k);
                pipeline.next(k);
            }
            None => self.barrier(k),
        }
    }

    /// The rows that a stage reads from memory have arrived.
    pub fn wait_for_loads(&self, k: &mut Kernel<'_>) {
        if let Some((pipeline, _)) = self.pipeline {
            pipeline.wait_for_full(k);
        }
    }

    /// How a thread's values reach other blocks, where blocks share lines.
    pub fn across(&self, k: &mut Kernel<'_>, context: &Context<'_>, lane: &Lane) -> Option<Across> {
        let (slabs, (_, neighbours)) = context.slabs().zip(self.pipeline)?;
        let bytes = context.bytes(1);
        let receiving = |k: &mut Kernel<'_>, up, rank| neighbours.receiving(k, up, rank);
        Some(Across::new(k, slabs, lane.own, bytes, receiving))
    }
}

/// Code for each stage of some periods.
pub(super) fn each_stage(
    k: &mut Kernel<'_>,
    from: Operand,
    until: Operand,
    stages: i32,
    body: impl FnOnce(&mut Kernel<'_>, Operand),
) {
    let from = k.int(IntOp::Mul, from, Operand::i32(stages));
    let until = k.int(IntOp::Mul, until, Operand::i32(stages));
    k.repeat(from, until, Operand::i32(1), Some(1), body);
}
