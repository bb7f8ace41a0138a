//! Layerwise kernels: each advances a set of updates of one stage over a box of the grid.
//!
//! ```text
//! thread            one vector of 16 bytes along the inner axis, one place along the middle axis
//!   march:            group after group along the outer axis, some tens of them
//!     load              new pieces; pieces that later groups need stay in registers
//!     compute           all updates, in the order of their bodies
//!     store             vectors; single lanes at the ends of the range
//! ```
//!
//! Ghosts along the inner axis are stored by the thread that has their source, since every row has some. Ghosts along
//! the other axes, where few rows have any, are copied afterwards ([`super::service`]).

mod amend;
mod kept;
mod march;
mod pieces;
#[cfg(test)]
mod tests;

pub use amend::{ZoneAct, ZoneKernel};
pub use kept::kept_bytes;

use super::abi::Stage;
use super::ir::{Launch, Module, Operand, Type};
use super::kernel::{IntCmp, IntOp, Kernel, Special};
use crate::backend::rows::RowProgram;
use crate::kernel::{KernelSet, RowKernel};
use crate::lattice::{Axis, Region, div_ceil};
use crate::layerwise::{Covering, MOST_BLOCKS, Shape, lanes};
use crate::scheme::Scheme;
use march::{Marching, ThreadPlace};
use pieces::Streams;
use std::collections::BTreeSet;

/// How a kernel is started over a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    pub blocks: [u32; 3],
    pub threads: [u32; 3],
    /// If the array lies at 0.
    params: Stage,
}

impl Start {
    /// The parameters of the kernel for an array at the address `array`.
    pub fn params(&self, array: u64) -> Stage {
        Stage {
            first: self.params.first.wrapping_add(array),
            ..self.params
        }
    }
}

/// How to run a kernel of this shape over a box, on a device that needs at least `threads` threads at a time.
/// `None` where the box is too large for one launch.
pub fn start(
    scheme: &Scheme,
    set: &KernelSet,
    shape: Shape,
    region: Region,
    threads: u64,
) -> Option<Start> {
    let [outer, middle, inner] = region.0;
    let Covering { blocks, march, .. } = Covering::new(scheme, shape, region, threads);
    let [along, across] = blocks;
    let small = |n: i64, most: i64| u32::try_from(n).ok().filter(|_| n <= most);
    let number = |n: i64| i32::try_from(n).ok().filter(|n| *n < i32::MAX - 1024);
    Some(Start {
        blocks: [
            small(along, i64::from(i32::MAX))?,
            small(across, i64::from(MOST_BLOCKS))?,
            small(div_ceil(outer.len(), march), i64::from(MOST_BLOCKS))?,
        ],
        threads: [shape.threads[0], shape.threads[1], 1],
        params: Stage {
            first: (set.layout.group(outer.lo, middle.lo) * set.layout.element_bytes as i64) as u64,
            outer: number(outer.len())?,
            middle: number(middle.len())?,
            lo: number(inner.lo)?,
            hi: number(inner.hi)?,
            march: number(march)?,
        },
    })
}

/// Adds a kernel for each one of a set, under the name of its [`RowProgram`], with the parameters of [`Stage`].
pub fn emit(module: &mut Module, scheme: &Scheme, set: &KernelSet, shape: Shape) {
    amend::emit(module, scheme, &set.layout, shape);
    // A kernel that the set lists twice is written once; zones have kernels of their own.
    let bare = set.kernels.iter().filter(|k| k.zones.is_empty());
    let kernels: BTreeSet<&RowKernel> = bare.collect();
    for kernel in kernels {
        let program = RowProgram::new(scheme, set, kernel);
        let lanes = lanes(scheme);
        let streams = Streams::new(
            &program,
            &set.layout,
            i64::from(lanes),
            i64::from(shape.kept),
        );
        let [x, y] = shape.threads;
        let element = scheme.precision.bytes() as u32;
        let own = streams.own_words(element).min(i64::from(shape.ahead));
        let launch = Launch {
            threads: [x, y, 1],
            blocks: shape.resident(streams.words(element) + own),
            ..Launch::default()
        };
        let writer = module.kernel(&program.symbol, Stage::TYPES, launch);
        StageCode {
            k: writer,
            scheme,
            set,
            kernel,
            program: &program,
            streams: &streams,
            shape,
            vector: Type::vector(scheme.precision, lanes),
        }
        .write();
    }
}

/// A kernel for updates of a stage.
struct StageCode<'a, 'm> {
    k: Kernel<'m>,
    scheme: &'a Scheme,
    set: &'a KernelSet,
    kernel: &'a RowKernel,
    program: &'a RowProgram,
    streams: &'a Streams,
    shape: Shape,
    /// The type of a thread's vector.
    vector: Type,
}

impl StageCode<'_, '_> {
    fn write(mut self) {
        let place = self.place();
        let [count, chunk] = [Stage::OUTER, Stage::MARCH].map(|i| self.k.param(i));
        let block = self.k.special(Special::Block(2));
        let from = self.k.int(IntOp::Mul, block, chunk);
        let until = self.k.int(IntOp::Add, from, chunk);
        let until = self.k.int(IntOp::Min, until, count);
        let stride = self.bytes(self.set.layout.stride[Axis::OUTER]);
        let wide = self.k.resize(from, Type::I64);
        let by = self.k.int(IntOp::Mul, wide, Operand::i64(stride));
        let first = self.k.advance(place.pointer, by, 1);
        let pointer = self.k.variable_of(first);
        let marching = Marching {
            scheme: self.scheme,
            kernel: self.kernel,
            program: self.program,
            streams: self.streams,
            vector: self.vector,
            place: &place,
        };
        let mut k = self.k;
        let kept = marching.keep(&mut k, first);
        let words = self.streams.own_words(self.vector.element().bytes());
        let ahead = match words <= i64::from(self.shape.ahead) {
            true => marching.load_ahead(&mut k, first),
            false => Vec::new(),
        };
        let last = k.int(IntOp::Sub, until, Operand::i32(1));
        k.repeat(
            from,
            until,
            Operand::i32(1),
            Some(self.shape.unroll),
            |k, group| {
                let here = k.get(pointer);
                let next = k.offset(here, stride);
                // Behind the last group lies nothing that could be read.
                let more = k.compare(IntCmp::Lt, group, last);
                let readable = k.choose(more, next, here);
                marching.group(k, here, readable, &kept, &ahead);
                k.set(pointer, next);
            },
        );
        k.finish();
    }

    fn bytes(&self, elements: i64) -> i64 {
        elements * self.set.layout.element_bytes as i64
    }

    /// Finds the thread's place; threads outside of the box end.
    fn place(&mut self) -> ThreadPlace {
        let lanes = self.vector.lanes() as i32;
        let element = self.vector.element().bytes();
        let group = self.bytes(self.set.layout.stride[Axis::MIDDLE]);
        let [wide, deep] = self.shape.threads.map(|n| n as i32);
        let k = &mut self.k;
        let [across, lo, hi] = [Stage::MIDDLE, Stage::LO, Stage::HI].map(|i| k.param(i));
        let [block_z, thread_z] = [Special::Block(0), Special::Thread(0)].map(|s| k.special(s));
        let number = k.int(IntOp::Mul, block_z, Operand::i32(wide));
        let number = k.int(IntOp::Add, number, thread_z);
        let by = k.int(IntOp::Mul, number, Operand::i32(lanes));
        let first = k.int(IntOp::And, lo, Operand::i32(-lanes));
        let z = k.int(IntOp::Add, first, by);
        let behind = k.compare(IntCmp::Ge, z, hi);
        k.exit_if(behind);
        let [block_y, thread_y] = [Special::Block(1), Special::Thread(1)].map(|s| k.special(s));
        let y = k.int(IntOp::Mul, block_y, Operand::i32(deep));
        let y = k.int(IntOp::Add, y, thread_y);
        let beside = k.compare(IntCmp::Ge, y, across);
        k.exit_if(beside);
        let y = k.resize(y, Type::I64);
        let by = k.int(IntOp::Mul, y, Operand::i64(group));
        let row = k.advance(k.param(Stage::FIRST), by, 1);
        let wide_z = k.resize(z, Type::I64);
        let pointer = k.advance(row, wide_z, element);
        let end = k.int(IntOp::Add, z, Operand::i32(lanes));
        let begun = k.compare(IntCmp::Ge, z, lo);
        let ended = k.compare(IntCmp::Le, end, hi);
        let whole = k.int(IntOp::And, begun, ended);
        ThreadPlace {
            pointer,
            z,
            lo,
            hi,
            whole,
        }
    }
}
