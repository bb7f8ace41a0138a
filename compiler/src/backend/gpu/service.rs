//! Small kernels for the work around the updates: ghosts of rows, sources, probes and slices. Their work is listed in
//! tables in the device's memory, so that the kernels are the same for all schemes.

use super::abi::{
    AddSources, CellGhost, CopyRows, CorrectRows, CorrectedRow, Gather, GatherPlane, RowCopy,
    RowGhost, SourceCell,
};
use super::ir::{Launch, Module, Operand, Type};
use super::kernel::{Access, IntCmp, IntOp, Kernel, Special};
use crate::scheme::Precision;

/// Threads of a block of all these kernels.
pub const THREADS: u32 = 128;

/// Rows that a block of [`COPY_ROWS`] copies or one of [`CORRECT_ROWS`] corrects, each by a warp.
pub const ROWS_PER_BLOCK: u32 = THREADS / 32;

/// Copies rows to their ghosts: [`CopyRows`].
pub const COPY_ROWS: &str = "torre_copy_rows";

/// Sources add to cells: [`AddSources`].
pub const ADD_SOURCES: &str = "torre_add_sources";

/// Adds corrections to rows, each by a warp: [`CorrectRows`].
pub const CORRECT_ROWS: &str = "torre_correct_rows";

/// Collects single values: [`Gather`].
pub const GATHER: &str = "torre_gather";

/// Collects a plane, row by row: [`GatherPlane`].
pub const GATHER_PLANE: &str = "torre_gather_plane";

/// Adds all these kernels to a module.
pub fn emit(module: &mut Module, precision: Precision) {
    copy_rows(module, precision);
    add_sources(module, precision);
    correct_rows(module, precision);
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

/// The number of the block times `per_block`, plus the number of the thread along `axis`, in 64 bits.
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
    let mut k = module.kernel(COPY_ROWS, CopyRows::TYPES, launch([32, ROWS_PER_BLOCK, 1]));
    let [array, table, count] =
        [CopyRows::ARRAY, CopyRows::TABLE, CopyRows::COUNT].map(|i| k.param(i));
    let number = number(&mut k, ROWS_PER_BLOCK, 1);
    let count = k.resize(count, Type::I64);
    let beyond = k.compare(IntCmp::Ge, number, count);
    k.exit_if(beyond);
    let entry = k.advance(table, number, RowCopy::BYTES as u32);
    let [from, to] = [RowCopy::FROM, RowCopy::TO].map(|at| field(&mut k, entry, at, Type::I64));
    let [hole, other] = RowCopy::HOLES;
    let [lo, hi, hole, other] =
        [RowCopy::LO, RowCopy::HI, hole, other].map(|at| field(&mut k, entry, at, Type::I32));
    let negated = field(&mut k, entry, RowCopy::NEGATED, Type::I32);
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
            let opposite = k.negated(value);
            let value = k.choose(negated, opposite, value);
            let to = k.advance(to, wide, real.bytes());
            k.store(value, to, real.bytes(), Access::Plain);
        });
    });
    k.finish();
}

fn add_sources(module: &mut Module, precision: Precision) {
    let real = Type::scalar(precision);
    let double = Type::scalar(Precision::F64);
    let mut k = module.kernel(ADD_SOURCES, AddSources::TYPES, launch([THREADS, 1, 1]));
    let params = [
        AddSources::ARRAY,
        AddSources::TABLE,
        AddSources::COUNT,
        AddSources::GHOSTS,
        AddSources::WAVES,
    ];
    let [array, table, count, ghosts, waves] = params.map(|i| k.param(i));
    let (_, entry) = entry(&mut k, table, count, SourceCell::BYTES);
    let place = field(&mut k, entry, SourceCell::PLACE, Type::I64);
    let profile = field(&mut k, entry, SourceCell::PROFILE, double);
    let [wave, first, count] = [SourceCell::WAVE, SourceCell::FIRST, SourceCell::COUNT]
        .map(|at| field(&mut k, entry, at, Type::I32));
    let wave = k.resize(wave, Type::I64);
    let wave = k.advance(waves, wave, 8);
    let wave = k.load(double, wave, 8, Access::ReadOnly);
    let added = k.product(profile, wave);
    let added = k.convert(added, real);
    let cell = k.advance(array, place, 1);
    let value = k.load(real, cell, real.bytes(), Access::Plain);
    let sum = k.sum(value, added);
    let replaces = field(&mut k, entry, SourceCell::REPLACES, Type::I32);
    let replaces = k.compare(IntCmp::Ne, replaces, Operand::i32(0));
    let value = k.choose(replaces, added, sum);
    k.store(value, cell, real.bytes(), Access::Plain);
    let opposite = k.negated(value);
    let until = k.int(IntOp::Add, first, count);
    k.repeat(first, until, Operand::i32(1), None, |k, i| {
        let wide = k.resize(i, Type::I64);
        let ghost = k.advance(ghosts, wide, CellGhost::BYTES as u32);
        let place = field(k, ghost, CellGhost::PLACE, Type::I64);
        let negated = field(k, ghost, CellGhost::NEGATED, Type::I32);
        let negated = k.compare(IntCmp::Ne, negated, Operand::i32(0));
        let value = k.choose(negated, opposite, value);
        let to = k.advance(array, place, 1);
        k.store(value, to, real.bytes(), Access::Plain);
    });
    k.finish();
}

fn correct_rows(module: &mut Module, precision: Precision) {
    let real = Type::scalar(precision);
    let double = Type::scalar(Precision::F64);
    let threads = [32, ROWS_PER_BLOCK, 1];
    let mut k = module.kernel(CORRECT_ROWS, CorrectRows::TYPES, launch(threads));
    let number = number(&mut k, ROWS_PER_BLOCK, 1);
    let count = k.resize(k.param(CorrectRows::COUNT), Type::I64);
    let beyond = k.compare(IntCmp::Ge, number, count);
    k.exit_if(beyond);
    let table = k.param(CorrectRows::TABLE);
    let entry = k.advance(table, number, CorrectedRow::BYTES as u32);
    let place = field(&mut k, entry, CorrectedRow::PLACE, Type::I64);
    let [pattern, shift] =
        [CorrectedRow::PATTERN, CorrectedRow::SHIFT].map(|at| field(&mut k, entry, at, Type::I32));
    let row = k.advance(k.param(CorrectRows::ARRAY), place, 1);
    let (zero, one) = (Operand::i32(0), Operand::i32(1));
    let odd = k.int(IntOp::And, pattern, one);
    let partial = k.compare(IntCmp::Ne, odd, zero);
    let [lo, len, hole, hole_len] = [
        CorrectRows::LO,
        CorrectRows::LEN,
        CorrectRows::HOLE,
        CorrectRows::HOLE_LEN,
    ]
    .map(|number| k.param(number));
    let left_out = k.choose(partial, hole_len, zero);
    let count = k.int(IntOp::Sub, len, left_out);
    let first = k.int(IntOp::Right, pattern, one);
    let first = k.resize(first, Type::I64);
    let words = k.advance(k.param(CorrectRows::WORDS), first, 4);
    let thread = k.special(Special::Thread(0));
    k.repeat(thread, count, Operand::i32(32), None, |k, i| {
        let wide = k.resize(i, Type::I64);
        let word = k.advance(words, wide, 4);
        let word = k.load(Type::I32, word, 4, Access::ReadOnly);
        let some = k.compare(IntCmp::Le, zero, word);
        k.when(some, |k| {
            let wave = k.int(IntOp::Add, word, shift);
            let wave = k.resize(wave, Type::I64);
            let wave = k.advance(k.param(CorrectRows::WAVES), wave, 8);
            let wave = k.load(double, wave, 8, Access::ReadOnly);
            let added = k.convert(wave, real);
            let z = k.int(IntOp::Add, lo, i);
            let below = k.compare(IntCmp::Lt, z, hole);
            let left_out = k.choose(below, zero, left_out);
            let z = k.int(IntOp::Add, z, left_out);
            let at = |k: &mut Kernel<'_>, z: Operand| {
                let z = k.resize(z, Type::I64);
                k.advance(row, z, real.bytes())
            };
            let cell = at(k, z);
            let value = k.load(real, cell, real.bytes(), Access::Plain);
            let value = k.sum(value, added);
            k.store(value, cell, real.bytes(), Access::Plain);
            let opposite = k.negated(value);
            let ghosts = k.param(CorrectRows::GHOST_COUNT);
            k.repeat(zero, ghosts, one, None, |k, number| {
                let number = k.resize(number, Type::I64);
                let ghosts = k.param(CorrectRows::GHOSTS);
                let ghost = k.advance(ghosts, number, RowGhost::BYTES as u32);
                let of = field(k, ghost, RowGhost::OF, Type::I32);
                let own = k.compare(IntCmp::Eq, of, z);
                k.when(own, |k| {
                    let to = field(k, ghost, RowGhost::AT, Type::I32);
                    let negated = field(k, ghost, RowGhost::NEGATED, Type::I32);
                    let negated = k.compare(IntCmp::Ne, negated, zero);
                    let value = k.choose(negated, opposite, value);
                    let to = at(k, to);
                    k.store(value, to, real.bytes(), Access::Plain);
                });
            });
        });
    });
    k.finish();
}

fn gather(module: &mut Module, precision: Precision) {
    let real = Type::scalar(precision);
    let mut k = module.kernel(GATHER, Gather::TYPES, launch([THREADS, 1, 1]));
    let params = [Gather::ARRAY, Gather::TABLE, Gather::COUNT, Gather::OUT];
    let [array, table, count, out] = params.map(|i| k.param(i));
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
    let mut k = module.kernel(GATHER_PLANE, GatherPlane::TYPES, launch([THREADS, 1, 1]));
    let params = [
        GatherPlane::FIRST,
        GatherPlane::BETWEEN_ROWS,
        GatherPlane::BETWEEN_VALUES,
        GatherPlane::ROWS,
        GatherPlane::VALUES,
        GatherPlane::OUT,
    ];
    let [first, between_rows, between_values, rows, values, out] = params.map(|i| k.param(i));
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
