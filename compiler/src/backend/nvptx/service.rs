//! Small kernels for what happens around the updates: ghosts of rows, sources, probes and slices. What they do is in tables that
//! lie in the device's memory, so that they are the same for all schemes.

use super::ir::{Launch, Module, Operand, Type};
use super::kernel::{Access, IntCmp, IntOp, Kernel, Special};
use crate::scheme::Precision;

/// Threads of a block of all these kernels.
pub const THREADS: u32 = 128;

/// Rows that a block of [`COPY_ROWS`] copies, each by a warp.
pub const ROWS_PER_BLOCK: u32 = THREADS / 32;

/// `(array, table of RowCopy, count)`: copies rows to their ghosts.
pub const COPY_ROWS: &str = "torre_copy_rows";

/// `(array, table of SourceCell, count, table of CellGhost, waves)`: sources add to cells; `waves` are doubles, those of one step.
pub const ADD_SOURCES: &str = "torre_add_sources";

/// `(array, table of byte offsets, count, out)`: collects single values.
pub const GATHER: &str = "torre_gather";

/// `(first value, bytes between rows, bytes between values, rows, values of a row, out)`: collects a plane, row by row.
pub const GATHER_PLANE: &str = "torre_gather_plane";

/// A row and one of its ghosts. Places are in bytes from the start of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCopy {
    /// Index 0 of the row.
    pub from: i64,
    /// Index 0 of the ghost.
    pub to: i64,
    /// The indices that are copied.
    pub lo: i32,
    pub hi: i32,
    /// Two indices that are not: values on a plane about which they are odd are always 0, without a sign that a mirror could turn.
    pub holes: [i32; 2],
    pub negated: bool,
}

impl RowCopy {
    /// Its bytes in a table.
    pub const BYTES: usize = 40;

    /// As the kernel reads it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.from.to_le_bytes());
        out.extend(self.to.to_le_bytes());
        for word in [self.lo, self.hi, self.holes[0], self.holes[1]] {
            out.extend(word.to_le_bytes());
        }
        out.extend(u64::from(self.negated).to_le_bytes());
    }
}

/// A cell to which a source adds `profile * wave`, rounded to the array's precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SourceCell {
    /// In bytes from the start of the array.
    pub place: i64,
    pub profile: f64,
    /// Which of the step's waves.
    pub wave: i32,
    /// Its ghosts along the inner axis: `first..first + count` of the table.
    pub first: i32,
    pub count: i32,
    /// The product becomes the cell's value, rather than being added to it.
    pub replaces: bool,
}

impl SourceCell {
    /// Its bytes in a table.
    pub const BYTES: usize = 32;

    /// As the kernel reads it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.place.to_le_bytes());
        out.extend(self.profile.to_le_bytes());
        for word in [self.wave, self.first, self.count, i32::from(self.replaces)] {
            out.extend(word.to_le_bytes());
        }
    }
}

/// Another place where a cell's value appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellGhost {
    /// In bytes from the start of the array.
    pub place: i64,
    pub negated: bool,
}

impl CellGhost {
    /// Its bytes in a table.
    pub const BYTES: usize = 16;

    /// As the kernel reads it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.place.to_le_bytes());
        out.extend(u64::from(self.negated).to_le_bytes());
    }
}

/// Adds all these kernels to a module.
pub fn emit(module: &mut Module, precision: Precision) {
    copy_rows(module, precision);
    add_sources(module, precision);
    gather(module, precision);
    gather_plane(module, precision);
}

fn launch(threads: [u32; 3]) -> Launch {
    Launch {
        threads,
        ..Launch::default()
    }
}

/// A field of an entry, in 32 or 64 bits.
fn field(k: &mut Kernel<'_>, entry: Operand, at: i64, ty: Type) -> Operand {
    let from = k.offset(entry, at);
    k.load(ty, from, ty.bytes(), Access::ReadOnly)
}

/// The number of the block times so many, plus that of the thread along an axis, in 64 bits.
fn number(k: &mut Kernel<'_>, per_block: u32, axis: usize) -> Operand {
    let block = k.special(Special::Block(0));
    let block = k.resize(block, Type::I64);
    let first = k.int(IntOp::Mul, block, Operand::i64(i64::from(per_block)));
    let thread = k.special(Special::Thread(axis));
    let thread = k.resize(thread, Type::I64);
    k.int(IntOp::Add, first, thread)
}

/// The entry of a table whose number is that of the thread; threads beyond `count` end.
fn entry(k: &mut Kernel<'_>, table: Operand, count: Operand, bytes: usize) -> (Operand, Operand) {
    let number = number(k, THREADS, 0);
    let count = k.resize(count, Type::I64);
    let beyond = k.compare(IntCmp::Ge, number, count);
    k.exit_if(beyond);
    let entry = k.advance(table, number, bytes as u32);
    (number, entry)
}

fn copy_rows(module: &mut Module, precision: Precision) {
    let real = Type::scalar(precision);
    let params = [Type::GLOBAL, Type::GLOBAL, Type::I32];
    let mut k = module.kernel(COPY_ROWS, &params, launch([32, ROWS_PER_BLOCK, 1]));
    let [array, table, count] = [0, 1, 2].map(|i| k.param(i));
    let number = number(&mut k, ROWS_PER_BLOCK, 1);
    let count = k.resize(count, Type::I64);
    let beyond = k.compare(IntCmp::Ge, number, count);
    k.exit_if(beyond);
    let entry = k.advance(table, number, RowCopy::BYTES as u32);
    let [from, to] = [0, 8].map(|at| field(&mut k, entry, at, Type::I64));
    let [lo, hi, hole, other] = [16, 20, 24, 28].map(|at| field(&mut k, entry, at, Type::I32));
    let negated = field(&mut k, entry, 32, Type::I32);
    let negated = k.compare(IntCmp::Ne, negated, Operand::i32(0));
    let [from, to] = [from, to].map(|by| k.advance(array, by, 1));
    let thread = k.special(Special::Thread(0));
    let first = k.int(IntOp::Add, lo, thread);
    k.repeat(first, hi, Operand::i32(32), Some(4), |k, i| {
        let [a, b] = [hole, other].map(|hole| k.compare(IntCmp::Ne, i, hole));
        let copied = k.int(IntOp::And, a, b);
        k.when(copied, |k| {
            let wide = k.resize(i, Type::I64);
            let from = k.advance(from, wide, real.bytes());
            let value = k.load(real, from, real.bytes(), Access::Plain);
            let turned = k.negated(value);
            let value = k.choose(negated, turned, value);
            let to = k.advance(to, wide, real.bytes());
            k.store(value, to, real.bytes(), Access::Plain);
        });
    });
    k.finish();
}

fn add_sources(module: &mut Module, precision: Precision) {
    let real = Type::scalar(precision);
    let double = Type::scalar(Precision::F64);
    let params = [
        Type::GLOBAL,
        Type::GLOBAL,
        Type::I32,
        Type::GLOBAL,
        Type::GLOBAL,
    ];
    let mut k = module.kernel(ADD_SOURCES, &params, launch([THREADS, 1, 1]));
    let [array, table, count, ghosts, waves] = [0, 1, 2, 3, 4].map(|i| k.param(i));
    let (_, entry) = entry(&mut k, table, count, SourceCell::BYTES);
    let place = field(&mut k, entry, 0, Type::I64);
    let profile = field(&mut k, entry, 8, double);
    let [wave, first, count] = [16, 20, 24].map(|at| field(&mut k, entry, at, Type::I32));
    let wave = k.resize(wave, Type::I64);
    let wave = k.advance(waves, wave, 8);
    let wave = k.load(double, wave, 8, Access::ReadOnly);
    let added = k.product(profile, wave);
    let added = k.convert(added, real);
    let cell = k.advance(array, place, 1);
    let value = k.load(real, cell, real.bytes(), Access::Plain);
    let sum = k.sum(value, added);
    let replaces = field(&mut k, entry, 28, Type::I32);
    let replaces = k.compare(IntCmp::Ne, replaces, Operand::i32(0));
    let value = k.choose(replaces, added, sum);
    k.store(value, cell, real.bytes(), Access::Plain);
    let turned = k.negated(value);
    let until = k.int(IntOp::Add, first, count);
    k.repeat(first, until, Operand::i32(1), None, |k, i| {
        let wide = k.resize(i, Type::I64);
        let ghost = k.advance(ghosts, wide, CellGhost::BYTES as u32);
        let place = field(k, ghost, 0, Type::I64);
        let negated = field(k, ghost, 8, Type::I32);
        let negated = k.compare(IntCmp::Ne, negated, Operand::i32(0));
        let value = k.choose(negated, turned, value);
        let to = k.advance(array, place, 1);
        k.store(value, to, real.bytes(), Access::Plain);
    });
    k.finish();
}

fn gather(module: &mut Module, precision: Precision) {
    let real = Type::scalar(precision);
    let params = [Type::GLOBAL, Type::GLOBAL, Type::I32, Type::GLOBAL];
    let mut k = module.kernel(GATHER, &params, launch([THREADS, 1, 1]));
    let [array, table, count, out] = [0, 1, 2, 3].map(|i| k.param(i));
    let (number, entry) = entry(&mut k, table, count, 8);
    let place = field(&mut k, entry, 0, Type::I64);
    let from = k.advance(array, place, 1);
    let value = k.load(real, from, real.bytes(), Access::Plain);
    let to = k.advance(out, number, real.bytes());
    k.store(value, to, real.bytes(), Access::Plain);
    k.finish();
}

fn gather_plane(module: &mut Module, precision: Precision) {
    let real = Type::scalar(precision);
    let params = [
        Type::GLOBAL,
        Type::I64,
        Type::I64,
        Type::I32,
        Type::I32,
        Type::GLOBAL,
    ];
    let mut k = module.kernel(GATHER_PLANE, &params, launch([THREADS, 1, 1]));
    let [first, between_rows, between_values, rows, values, out] =
        [0, 1, 2, 3, 4, 5].map(|i| k.param(i));
    let column = number(&mut k, THREADS, 0);
    let width = k.resize(values, Type::I64);
    let beyond = k.compare(IntCmp::Ge, column, width);
    k.exit_if(beyond);
    let by = k.int(IntOp::Mul, column, between_values);
    let start = k.advance(first, by, 1);
    let [block, blocks] = [Special::Block(1), Special::Blocks(1)].map(|s| k.special(s));
    k.repeat(block, rows, blocks, None, |k, row| {
        let row = k.resize(row, Type::I64);
        let by = k.int(IntOp::Mul, row, between_rows);
        let from = k.advance(start, by, 1);
        let value = k.load(real, from, real.bytes(), Access::Plain);
        let at = k.int(IntOp::Mul, row, width);
        let at = k.int(IntOp::Add, at, column);
        let to = k.advance(out, at, real.bytes());
        k.store(value, to, real.bytes(), Access::Plain);
    });
    k.finish();
}
