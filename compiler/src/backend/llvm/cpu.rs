//! Row kernels as LLVM IR for a CPU, in explicit vectors.
//!
//! ```text
//! run:                        for each run
//!   row:                        for each group
//!     step:                       from the vector that contains `lo`, a vector at a time
//!       part:                       the first and the last one, where not all lanes belong to lo..hi: masked stores
//!       tail:                       instead of that at the end of rows, where masks are slow
//!       main:                       the loop over all others
//!     ends:                       ghosts of the row along the inner axis
//! ```
//!
//! - Vectors start at multiples of their length, for any `lo`, so all rows are accessed in aligned vectors. A value
//!   at an offset along the inner axis is put together from two neighbouring vectors, and the loop carries the vectors
//!   that it will need again ([`Shape::window`]).
//! - All operands lie at constant displacements from one pointer.
//! - No operation carries fast-math flags, so LLVM keeps all of them as they are. A multiply-add is fused exactly where
//!   it is written as `llvm.fma`.
//! - Lanes outside of `lo..hi` are computed from the arbitrary values there, and dropped.

mod bands;
mod ends;
mod part;
mod powers;
mod shape;
mod streams;
#[cfg(test)]
mod tests;

use super::library::{Cpu, Error, Jit, Library, Object, Options, compile};
use super::types::Types;
use crate::backend::rows::{LaneOp, OperandPlace, RowProgram, StreamPlace};
use crate::kernel::{Code, KernelSet, RowFn, Run, record_width};
use crate::lattice::Interval;
use crate::scheme::{Cmp, Scheme, Value};
use bands::Banded;
pub use shape::Shape;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

/// Compiled kernels.
#[derive(Debug)]
pub struct LlvmCode {
    functions: Vec<RowFn>,
    /// Keeps the functions alive.
    _jit: Option<Jit>,
    description: String,
    /// Which kernels are of no zones.
    bare: Vec<bool>,
    /// Numbers in a record of a zoned kernel.
    record: usize,
}

impl LlvmCode {
    /// Compiles the kernels of a set for a processor, which must be this one or have no features beyond it.
    pub fn new(
        library: &'static Library,
        cpu: &Cpu,
        scheme: &Scheme,
        set: &KernelSet,
    ) -> Result<LlvmCode, Error> {
        Self::with_shape(library, cpu, Shape::of(cpu, scheme.precision), scheme, set)
    }

    /// Like [`LlvmCode::new`], with a shape to try.
    pub fn with_shape(
        library: &'static Library,
        cpu: &Cpu,
        shape: Shape,
        scheme: &Scheme,
        set: &KernelSet,
    ) -> Result<LlvmCode, Error> {
        let object = match set.kernels.is_empty() {
            true => None,
            false => Some(compile(
                library,
                &emit(scheme, set, shape),
                &cpu.target,
                &Options::CPU,
            )?),
        };
        // SAFETY: the object was just made from this IR.
        unsafe { Self::load(library, cpu, shape, scheme, set, object.as_ref()) }
    }

    /// Takes compiled kernels, for instance from a cache; `None` for a set without kernels.
    ///
    /// # Safety
    /// The object was compiled from [`emit`]'s IR for this scheme, set and shape, for a processor that this one can
    /// replace.
    pub unsafe fn load(
        library: &'static Library,
        cpu: &Cpu,
        shape: Shape,
        scheme: &Scheme,
        set: &KernelSet,
        object: Option<&Object>,
    ) -> Result<LlvmCode, Error> {
        let description = format!(
            "LLVM {}, {}, {}-bit",
            library.version(),
            cpu.target.cpu,
            shape.vector_bits
        );
        let jit = object.map(|o| Jit::load(library, o)).transpose()?;
        let functions = match &jit {
            None => Vec::new(),
            Some(jit) => RowProgram::all(scheme, set)
                .map(|program| {
                    // SAFETY: the IR defines this symbol with the signature of `RowFn` and the C calling convention.
                    // The copies of the pointer live beside the handle of the code. The caller vouches for object and
                    // processor.
                    unsafe { jit.entry::<RowFn>(&program.symbol) }.map(|entry| *entry)
                })
                .collect::<Result<_, _>>()?,
        };
        Ok(LlvmCode {
            functions,
            _jit: jit,
            description,
            bare: (set.kernels.iter())
                .map(|kernel| kernel.zones.is_empty())
                .collect(),
            record: record_width(&set.layout),
        })
    }
}

impl Code for LlvmCode {
    unsafe fn run_zoned(&self, kernel: usize, base: *mut u8, records: &[i64], range: Interval) {
        // A kernel of no zones takes runs without streams, one at a time here.
        let calls = match self.bare[kernel] {
            true => self.record,
            false => records.len().max(1),
        };
        for records in records.chunks(calls) {
            let count = (records.len() / self.record) as i64;
            let records = records.as_ptr().cast::<Run>();
            // SAFETY: the caller keeps the contract of `RowFn`, and the code lives as long as `self`; a record begins
            // with a run.
            unsafe { self.functions[kernel](base, records, count, range.lo, range.hi) }
        }
    }

    unsafe fn run(&self, kernel: usize, base: *mut u8, runs: &[Run], range: Interval) {
        let count = runs.len() as i64;
        // SAFETY: the caller keeps the contract of `RowFn`, and the code lives as long as `self`.
        unsafe { self.functions[kernel](base, runs.as_ptr(), count, range.lo, range.hi) }
    }

    fn description(&self) -> String {
        self.description.clone()
    }
}

/// The module of a set: a function with the signature of [`RowFn`] for each kernel, under the name of its
/// [`RowProgram`].
pub fn emit(scheme: &Scheme, set: &KernelSet, shape: Shape) -> String {
    let types = Types::new(scheme.precision, shape.vector_bits);
    let stride = set.run_stride(scheme) * types.bytes;
    let mut out = String::new();
    let mut symbols = BTreeSet::new();
    for program in RowProgram::all(scheme, set) {
        // A kernel that the set lists twice has one function.
        if symbols.insert(program.symbol.clone()) {
            let mut function = Function {
                types: &types,
                program: &program,
                windows: windows(&program, shape, types.lanes),
                together: together(&program),
                banded: Banded::new(&program, &set.bands, types.lanes),
                out: &mut out,
            };
            // Writing to a string cannot fail.
            let _ = function.emit(stride);
        }
    }
    let _ = types.declare(&mut out);
    out
}

/// The vectors of a row that an index needs, by their distance in vectors: `first..=last`.
type Window = std::ops::RangeInclusive<i64>;

/// The rows whose vectors are carried from one index to the next, by their displacement.
fn windows(program: &RowProgram, shape: Shape, lanes: i64) -> BTreeMap<i64, Window> {
    let mut windows = BTreeMap::new();
    if !shape.window {
        return windows;
    }
    for place in program.loads() {
        let (first, last) = vectors(place.shift, lanes);
        let window = windows.entry(place.row).or_insert(first..=last);
        *window = first.min(*window.start())..=last.max(*window.end());
    }
    windows.retain(|_, window| window.start() != window.end());
    windows
}

/// How many vectors to compute at a time. One long chain of operations leaves the processor waiting, since few vectors
/// fit its schedulers: two at once gain 9 % for the scalar wave of order 8 on Zen 5, and nothing where a kernel has
/// several chains.
fn together(program: &RowProgram) -> i64 {
    let mut depths: Vec<u32> = Vec::with_capacity(program.ops.len());
    let mut work = 0;
    for op in &program.ops[..program.common] {
        let below = op.operands().into_iter().flatten();
        let below = below.map(|v| depths[v.index()]).max().unwrap_or(0);
        let own = u32::from(!matches!(
            op,
            LaneOp::Load(_) | LaneOp::Stream(_) | LaneOp::Const(_)
        ));
        work += own;
        depths.push(below + own);
    }
    let depth = depths.into_iter().max().unwrap_or(0);
    if depth >= 12 && work < 2 * depth {
        2
    } else {
        1
    }
}

/// A comparison as LLVM has it.
fn predicate(cmp: Cmp) -> &'static str {
    match cmp {
        Cmp::Lt => "olt",
        Cmp::Le => "ole",
        Cmp::Eq => "oeq",
        Cmp::Ne => "une",
    }
}

/// The first and last vector that the value at a distance along the row touches.
fn vectors(shift: i64, lanes: i64) -> (i64, i64) {
    let first = shift.div_euclid(lanes);
    (first, first + i64::from(shift.rem_euclid(lanes) != 0))
}

struct Function<'a> {
    types: &'a Types,
    program: &'a RowProgram,
    windows: BTreeMap<i64, Window>,
    /// Vectors that the main loop computes at a time.
    together: i64,
    banded: Banded<'a>,
    out: &'a mut String,
}

impl Function<'_> {
    fn emit(&mut self, stride: i64) -> fmt::Result {
        let lanes = self.types.lanes;
        let loops = match self.together {
            1 => vec![1],
            many => vec![many, 1],
        };
        let widest = loops[0];
        let behind: String = loops
            .iter()
            .map(|n| format!(", [ %main{n}.next, %behind{n} ]"))
            .collect();
        let record = self.program.record;
        let runs_end = match record == size_of::<Run>() as i64 {
            true => "  %runs.end = getelementptr { i64, i64 }, ptr %runs, i64 %count".to_string(),
            false => format!(
                "  %runs.length = mul i64 %count, {record}
  %runs.end = getelementptr i8, ptr %runs, i64 %runs.length"
            ),
        };
        let (begin, streams) = self.streams();
        let masks = self.tail_end() + &self.end_masks();
        writeln!(
            self.out,
            "define void @{}(ptr noundef %base, ptr noundef %runs, i64 noundef %count, i64 noundef %lo, i64 noundef \
             %hi) #0 {{
entry:
  %some = icmp sgt i64 %count, 0
  %wide = icmp slt i64 %lo, %hi
  %work = and i1 %some, %wide
  br i1 %work, label %start, label %done
start:
  %first = and i64 %lo, -{lanes}
  %full = sub i64 %hi, {lanes}
{runs_end}
{masks}  br label %run
run:
  %r = phi ptr [ %runs, %start ], [ %r.next, %behind.run ]
  %offset = load i64, ptr %r
  %groups.p = getelementptr i8, ptr %r, i64 8
  %groups = load i64, ptr %groups.p
  %group = getelementptr i8, ptr %base, i64 %offset
{begin}  %any = icmp sgt i64 %groups, 0
  br i1 %any, label %row, label %behind.run
row:
  %g = phi ptr [ %group, %run ], [ %g.next, %next ]
  %left = phi i64 [ %groups, %run ], [ %left.next, %next ]
{streams}  br label %step
step:
  %z = phi i64 [ %first, %row ], [ %part.next, %part ]{behind}{}
  %started = icmp sge i64 %z, %lo
  %fits = icmp sle i64 %z, %full
  %whole = and i1 %started, %fits{}",
            self.program.symbol,
            self.behind_bands(),
            self.is_tail(),
        )?;
        self.choose(&format!("ahead{widest}"))?;
        self.part()?;
        writeln!(
            self.out,
            "  br i1 %part.more, label %step, label %{}",
            self.after_row()
        )?;
        self.bands()?;
        self.tail_block()?;
        for (i, &copies) in loops.iter().enumerate() {
            self.main(copies, loops.get(i + 1).copied())?;
        }
        self.ends()?;
        let bytes = self.types.bytes;
        let streams_next: String = (self.program.streams.iter().enumerate())
            .map(|(n, s)| {
                let stride = s.stride * bytes;
                format!("  %q{n}.next = getelementptr i8, ptr %q{n}, i64 {stride}\n")
            })
            .collect();
        writeln!(
            self.out,
            "next:
  %g.next = getelementptr i8, ptr %g, i64 {stride}
{streams_next}  %left.next = sub i64 %left, 1
  %again = icmp sgt i64 %left.next, 0
  br i1 %again, label %row, label %behind.run
behind.run:
  %r.next = getelementptr i8, ptr %r, i64 {record}
  %r.more = icmp ult ptr %r.next, %runs.end
  br i1 %r.more, label %run, label %done
done:
  ret void
}}"
        )
    }

    /// The loop over `copies` whole vectors at a time, and the code before it; where fewer are left, the loop over
    /// `fewer`.
    fn main(&mut self, copies: i64, fewer: Option<i64>) -> fmt::Result {
        let Types {
            lanes,
            scalar,
            vector,
            bytes,
            ..
        } = self.types;
        let windows = self.windows.clone();
        let (ahead, main) = (format!("ahead{copies}"), format!("main{copies}"));
        writeln!(
            self.out,
            "{ahead}:
  %{main}.full = sub i64 {}, {}",
            self.full(),
            (copies - 1) * lanes
        )?;
        if let Some(fewer) = fewer {
            writeln!(
                self.out,
                "  %{main}.fits = icmp sle i64 %z, %{main}.full
  br i1 %{main}.fits, label %{ahead}.loads, label %ahead{fewer}
{ahead}.loads:"
            )?;
        }
        writeln!(
            self.out,
            "  %{ahead}.p = getelementptr {scalar}, ptr %g, i64 %z"
        )?;
        for (n, (row, window)) in windows.iter().enumerate() {
            for k in *window.start()..*window.end() {
                self.load(&carried(&ahead, n, k), &ahead, row + k * lanes)?;
            }
        }
        let before = match fewer {
            Some(_) => format!("{ahead}.loads"),
            None => ahead.clone(),
        };
        writeln!(
            self.out,
            "  br label %{main}
{main}:
  %{main}.z = phi i64 [ %z, %{before} ], [ %{main}.next, %{main} ]"
        )?;
        for (n, window) in windows.values().enumerate() {
            for k in *window.start()..*window.end() {
                writeln!(
                    self.out,
                    "  {} = phi {vector} [ {}, %{before} ], [ {}, %{main} ]",
                    carried(&main, n, k),
                    carried(&ahead, n, k),
                    carried(&main, n, k + copies),
                )?;
            }
        }
        writeln!(
            self.out,
            "  %{main}.p = getelementptr {scalar}, ptr %g, i64 %{main}.z"
        )?;
        self.stream_pointers(&main, &format!("%{main}.z"))?;
        for (n, (row, window)) in windows.iter().enumerate() {
            for k in *window.end()..*window.end() + copies {
                self.load(&carried(&main, n, k), &main, row + k * lanes)?;
            }
        }
        self.values(&main, &windows, copies)?;
        for copy in 0..copies {
            for (i, store) in self.program.stores.iter().enumerate() {
                writeln!(
                    self.out,
                    "  %{main}.t{copy}.{i} = getelementptr i8, ptr {}, i64 {}
  store {vector} {}, ptr %{main}.t{copy}.{i}, align {bytes}",
                    Self::stored_from(&main, store),
                    (store.row + copy * lanes) * bytes,
                    self.types.name(self.program, &main, copy, store.value),
                )?;
            }
        }
        writeln!(
            self.out,
            "  %{main}.next = add i64 %{main}.z, {}
  %{main}.again = icmp sle i64 %{main}.next, %{main}.full
  br i1 %{main}.again, label %{main}, label %behind{copies}
behind{copies}:
  %{main}.more = icmp slt i64 %{main}.next, %hi
  br i1 %{main}.more, label %step, label %{}",
            copies * lanes,
            self.after_row()
        )
    }

    /// The vector at a displacement in elements from the pointer of a block.
    fn load(&mut self, name: &str, block: &str, displacement: i64) -> fmt::Result {
        let Types { vector, bytes, .. } = self.types;
        writeln!(
            self.out,
            "  {name}.p = getelementptr i8, ptr %{block}.p, i64 {}
  {name} = load {vector}, ptr {name}.p, align {bytes}",
            displacement * bytes
        )
    }

    /// All operations for the vectors from the pointer of a block on; operations of different vectors alternate.
    fn values(&mut self, block: &str, windows: &BTreeMap<i64, Window>, copies: i64) -> fmt::Result {
        for op in 0..self.program.common {
            for copy in 0..copies {
                self.value(block, windows, op, copy)?;
            }
        }
        Ok(())
    }

    /// One operation for one of the vectors.
    fn value(
        &mut self,
        block: &str,
        windows: &BTreeMap<i64, Window>,
        op: usize,
        copy: i64,
    ) -> fmt::Result {
        let types = self.types;
        let program = self.program;
        let Types {
            vector: v, suffix, ..
        } = types;
        let to = format!("%{block}.{copy}.{op}");
        let name = |value: Value| types.name(program, block, copy, value);
        match program.ops[op] {
            LaneOp::Const(_) => Ok(()),
            LaneOp::Load(place) => self.operand(&to, block, place, windows, copy),
            LaneOp::Stream(place) if place.uniform => Ok(()),
            LaneOp::Stream(StreamPlace { stream, at, .. }) => {
                let bytes = types.bytes;
                writeln!(
                    self.out,
                    "  {to}.p = getelementptr i8, ptr %{block}.q{stream}, i64 {}
  {to} = load {v}, ptr {to}.p, align {bytes}",
                    (at + copy * types.lanes) * bytes
                )
            }
            LaneOp::Neg(a) => writeln!(self.out, "  {to} = fneg {v} {}", name(a)),
            LaneOp::Abs(a) => {
                let a = name(a);
                writeln!(self.out, "  {to} = call {v} @llvm.fabs.{suffix}({v} {a})")
            }
            LaneOp::Flush(a) => self.flush(&to, &name(a)),
            LaneOp::Sqrt(a) => {
                let a = name(a);
                writeln!(self.out, "  {to} = call {v} @llvm.sqrt.{suffix}({v} {a})")
            }
            LaneOp::Power2(a) => self.power2(&to, &name(a)),
            LaneOp::Exponent(a) => self.exponent(&to, &name(a)),
            LaneOp::Add(a, b) => writeln!(self.out, "  {to} = fadd {v} {}, {}", name(a), name(b)),
            LaneOp::Sub(a, b) => writeln!(self.out, "  {to} = fsub {v} {}, {}", name(a), name(b)),
            LaneOp::Mul(a, b) => writeln!(self.out, "  {to} = fmul {v} {}, {}", name(a), name(b)),
            LaneOp::Div(a, b) => writeln!(self.out, "  {to} = fdiv {v} {}, {}", name(a), name(b)),
            LaneOp::Fma(a, b, c) => writeln!(
                self.out,
                "  {to} = call {v} @llvm.fma.{suffix}({v} {}, {v} {}, {v} {})",
                name(a),
                name(b),
                name(c)
            ),
            LaneOp::InBand {
                zone,
                then,
                otherwise,
            } => writeln!(
                self.out,
                "  {to} = select <{} x i1> %{block}.in{}, {v} {}, {v} {}",
                types.lanes,
                zone.index(),
                name(then),
                name(otherwise)
            ),
            LaneOp::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            } => {
                let [a, b, then, otherwise] = [a, b, then, otherwise].map(name);
                let holds = format!("fcmp {} {v} {a}, {b}", predicate(cmp));
                self.select(&to, &holds, [&then, &otherwise])
            }
        }
    }

    /// The value `a`, or 0 where it is tiny.
    fn flush(&mut self, to: &str, a: &str) -> fmt::Result {
        let types = self.types;
        let Types {
            vector: v,
            suffix,
            lanes,
            ..
        } = types;
        let threshold = types.splat(types.precision.flush_threshold().to_bits());
        writeln!(
            self.out,
            "  {to}.size = call {v} @llvm.fabs.{suffix}({v} {a})
  {to}.tiny = fcmp olt {v} {to}.size, {threshold}
  {to} = select <{lanes} x i1> {to}.tiny, {v} zeroinitializer, {v} {a}"
        )
    }

    /// The first value where a comparison holds, else the second.
    fn select(&mut self, to: &str, holds: &str, [then, otherwise]: [&str; 2]) -> fmt::Result {
        let Types {
            vector: v, lanes, ..
        } = self.types;
        writeln!(
            self.out,
            "  {to}.c = {holds}
  {to} = select <{lanes} x i1> {to}.c, {v} {then}, {v} {otherwise}"
        )
    }

    /// A value in memory: loaded, or put together from the vectors of its row's window.
    fn operand(
        &mut self,
        to: &str,
        block: &str,
        place: OperandPlace,
        windows: &BTreeMap<i64, Window>,
        copy: i64,
    ) -> fmt::Result {
        let Types {
            lanes, vector: v, ..
        } = self.types;
        let Some(n) = windows.keys().position(|&row| row == place.row) else {
            return self.load(to, block, place.displacement() + copy * lanes);
        };
        let (first, last) = vectors(place.shift, *lanes);
        let (first, last) = (first + copy, last + copy);
        let shift = place.shift.rem_euclid(*lanes);
        let indices: Vec<String> = (shift..shift + lanes).map(|i| format!("i32 {i}")).collect();
        // With a shift of 0 this is the first vector itself.
        writeln!(
            self.out,
            "  {to} = shufflevector {v} {}, {v} {}, <{lanes} x i32> <{}>",
            carried(block, n, first),
            carried(block, n, last),
            indices.join(", ")
        )
    }
}

/// The name of vector `k` of the n-th window.
fn carried(block: &str, n: usize, k: i64) -> String {
    let side = if k < 0 { "m" } else { "" };
    format!("%{block}.w{n}.{side}{}", k.abs())
}
