//! The state of a pass while it runs.

use super::slices::Slice;
use super::unit::Lie;
use crate::gpu::recorder::Recorder;
use std::collections::BTreeMap;
use torre_compiler::lattice::Interval;
use torre_compiler::pipeline::{OpId, Queue};

/// A time block of a pass.
#[derive(Clone, Debug)]
pub(super) struct BlockState {
    pub steps: u64,
    /// Around a ring, by how many planes its planes lie against the way of the planes that its towers count, and where
    /// its towers lie.
    pub moved: i64,
    pub lie: Lie,
    /// Steps of the pass before it.
    pub from: u64,
    /// The value from which progress counts.
    pub since: u32,
    /// In the order of the pipeline's outputs of the block.
    pub slices: Vec<Slice>,
    /// The first group of a slab.
    pub first: Option<i64>,
}

/// The state of a slab while it runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlabPart {
    /// Along the way.
    pub base: Interval,
    /// It is the last one of its pass.
    pub ends: bool,
}

/// When operations ran, and their numbers in that record.
#[derive(Debug)]
pub(super) struct Record {
    pub recorder: Recorder,
    pub numbers: BTreeMap<OpId, usize>,
}

/// A pass that is not over, or a slab of one.
#[derive(Clone, Debug, Default)]
pub(super) struct PassState {
    /// Around a ring, from planes along the way to their indices, but for whole lengths of the ring.
    pub rotation: i64,
    pub blocks: Vec<BlockState>,
    /// The last operation of each queue.
    pub ends: BTreeMap<Queue, OpId>,
    pub ops: Vec<OpId>,
    /// Where it is one of the slabs of a pass.
    pub slab: Option<SlabPart>,
}
