//! How loops of kernels are written, and which form suits a processor.

use crate::backend::llvm::library::Cpu;
use crate::scheme::Precision;

/// How a kernel's loop is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The width of a vector: 128, 256 or 512.
    pub vector_bits: u32,
    /// Whether offsets along the inner axis are taken from a window of registers that moves along the row, instead of
    /// loads that cross cache lines. On Zen 5, Maxwell (4,2) gains 6 % in vectors of 128 bits, 15 % of 256 and 17 % of
    /// 512 where the data come from a level-1 or level-2 cache; from memory it may lose 5 %.
    pub window: bool,
}

impl Shape {
    /// The shape that measured best where the data lie in a cache.
    ///
    /// A value of f32 across two vectors of AVX2 takes two or three shuffles, and only every other load crosses a cache
    /// line: on Zen 3, Maxwell (4,2) loses 18 % by a window. In f64 the shuffles are fewer, and in vectors of 512 bits
    /// each such load crosses a line: on an Intel Xeon loads lose up to 9 %.
    pub fn of(cpu: &Cpu, precision: Precision) -> Shape {
        let many_shuffles = cpu.vector_bits == 256 && precision == Precision::F32;
        Shape {
            vector_bits: cpu.vector_bits,
            window: !many_shuffles,
        }
    }
}

/// The lanes of a vector that a store writes.
#[derive(Clone, Copy)]
pub(super) enum Lanes<'a> {
    All,
    /// The lanes of a mask.
    Of(&'a str),
    /// This number of lanes, from the first one on.
    First(i64),
}

/// The last vector of rows, if it has a block of its own.
#[derive(Clone, Copy)]
pub(super) struct Tail {
    /// The index of its first lane.
    pub at: i64,
    /// Its lanes that belong to the rows.
    pub lanes: i64,
}
