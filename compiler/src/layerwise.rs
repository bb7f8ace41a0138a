//! How threads of a GPU cover a box of the grid when it advances stage by stage: the shape of kernels, and the groups
//! that a thread marches over. Kernels are made of it in [`crate::backend::gpu::layerwise`]; models count with it.

use crate::lattice::{Axis, Region, div_ceil};
use crate::scheme::Scheme;

/// Bytes of a vector, and of the widest access that all GPUs have.
pub const VECTOR_BYTES: u32 = 16;

/// The shape of kernels: parameters that may be tuned, without an effect on results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Threads of a block along the inner axis and the middle axis.
    pub threads: [u32; 2],
    /// Groups that a thread marches over, where the grid is large enough.
    pub march: u32,
    /// Groups whose code follows each other without a jump.
    pub unroll: u32,
    /// Registers of 32 bits for values that are kept along the march.
    pub kept: u32,
    /// Registers of 32 bits for the thread's own vectors of the next group, which are loaded one group ahead. Vectors
    /// of its neighbours then come from the caches. Where more registers were needed, none are loaded ahead.
    pub ahead: u32,
    /// Blocks that a multiprocessor should hold at least; 0: as many as the values of a thread leave room for. Without
    /// a number, the assembler aims at more, and spills registers or loads late.
    pub blocks: u32,
    /// Blocks along the outer axis, at most: threads march farther where more were needed.
    pub most_outer: u32,
}

/// The most blocks of a launch along its second and its third axis.
pub const MOST_BLOCKS: u32 = 65535;

/// Threads of a block.
const THREADS: u32 = 128;

/// Registers of a thread besides registers for the values that it loads.
const OTHER_REGISTERS: i64 = 40;

impl Shape {
    /// For grids with or without a middle axis.
    pub fn of(scheme: &Scheme) -> Shape {
        let rows = scheme.grid.cells[Axis::MIDDLE];
        let threads = match scheme.grid.axes[Axis::MIDDLE] {
            Some(_) => {
                let fit = |deep: &u32| rows / i64::from(*deep) < i64::from(MOST_BLOCKS);
                let deep = [4, 8, 16, 32, 64].into_iter().find(fit).unwrap_or(64);
                [THREADS / deep, deep]
            }
            None => [THREADS, 1],
        };
        Shape {
            threads,
            march: 16,
            unroll: 2,
            kept: 96,
            ahead: 64,
            blocks: 0,
            most_outer: MOST_BLOCKS,
        }
    }

    /// Blocks that a multiprocessor should hold whose threads have `words` words of values: as many as are asked for,
    /// or as there are registers for.
    pub fn resident(self, words: i64) -> u32 {
        if self.blocks > 0 {
            return self.blocks;
        }
        let threads = i64::from((self.threads[0] * self.threads[1]).max(1));
        let registers = (words + OTHER_REGISTERS).clamp(32, 255);
        (65536 / (registers * threads)).clamp(1, 16) as u32
    }
}

/// Elements of a vector.
pub fn lanes(scheme: &Scheme) -> u32 {
    VECTOR_BYTES / scheme.precision.bytes() as u32
}

/// The threads of a kernel over a box, and their work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Covering {
    /// Blocks along the inner and the middle axis.
    pub blocks: [i64; 2],
    /// Values along the inner axis for which there are threads.
    pub values: i64,
    /// Groups that a thread marches over.
    pub march: i64,
}

impl Covering {
    /// The threads of a kernel of this shape, on a device that needs at least `threads` threads at a time.
    pub fn new(scheme: &Scheme, shape: Shape, region: Region, threads: u64) -> Covering {
        let [outer, middle, inner] = region.0;
        let lanes = i64::from(lanes(scheme));
        let [wide, deep] = shape.threads.map(i64::from);
        let first = inner.lo.div_euclid(lanes) * lanes;
        let along = div_ceil(inner.hi - first, wide * lanes);
        let across = div_ceil(middle.len(), deep);
        // Enough threads are more important than long marches.
        let most = i64::from(shape.march.max(1)).min(outer.len().max(1));
        let wanted = (threads as i64).max(1);
        let line = along.saturating_mul(across).saturating_mul(wide * deep);
        let marches = div_ceil(wanted, line.max(1)).max(div_ceil(outer.len(), most));
        let marches = marches.min(i64::from(shape.most_outer.max(1)));
        Covering {
            blocks: [along, across],
            values: along * wide * lanes,
            march: div_ceil(outer.len(), marches.min(outer.len()).max(1)).max(1),
        }
    }
}
