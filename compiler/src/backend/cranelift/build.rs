//! Row kernels as Cranelift's intermediate form: a loop over vectors and a loop over the remaining values, for each
//! group.

use crate::backend::rows::{LaneOp, OperandPlace, RowProgram, Store, StreamPlace};
use crate::kernel::Run;
use crate::scheme::{Cmp, Precision};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::{F32, F32X4, F64, F64X2, I8, I32, I32X4, I64, I64X2, Type};
use cranelift_codegen::ir::{
    AbiParam, Block, Endianness, Function, InstBuilder, MemFlagsData, Value,
};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use std::mem::offset_of;

/// For bits taken as another type, lane by lane.
const AS_IS: MemFlagsData = MemFlagsData::new().with_endianness(Endianness::Little);

/// For accesses at an address that may have any alignment, where memory is known to be.
const ANYWHERE: MemFlagsData = MemFlagsData::new().with_notrap();

/// The same for values that a kernel does not overwrite: a value that it does not overwrite at this very place it does
/// not overwrite at all (rule 4 of the scheme). So these loads may move to where they are used, which saves registers.
const CONSTANT: MemFlagsData = ANYWHERE.with_readonly().with_can_move();

/// One kernel to be built.
pub(super) struct Kernel<'a> {
    pub program: &'a RowProgram,
    pub precision: Precision,
    /// Between groups, in bytes.
    pub stride: i64,
    /// Whether instructions take vectors from memory at any address.
    pub unaligned: bool,
}

/// The form of a value: one element, or a vector.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Scalar,
    Vector,
}

/// Where the streams are at a group.
struct Frame<'a> {
    streams: &'a [Value],
    /// Differences from an address in the group to the one at the same index of the stream.
    bases: &'a [Value],
}

/// Of two values.
#[derive(Clone, Copy)]
struct Comparison {
    cmp: Cmp,
    x: Value,
    y: Value,
}

impl Comparison {
    fn less(x: Value, y: Value) -> Comparison {
        Comparison { cmp: Cmp::Lt, x, y }
    }
}

/// The parts of a kernel's code.
struct Blocks {
    /// Values that all runs share.
    start: Block,
    run: Block,
    /// One group of a run.
    row: Block,
    vectors: Block,
    rest: Block,
    scalars: Block,
    next: Block,
    next_run: Block,
    done: Block,
}

impl Blocks {
    fn new(b: &mut FunctionBuilder<'_>) -> Blocks {
        let mut new = || b.create_block();
        Blocks {
            start: new(),
            run: new(),
            row: new(),
            vectors: new(),
            rest: new(),
            scalars: new(),
            next: new(),
            next_run: new(),
            done: new(),
        }
    }
}

/// Bytes from the start of a group to the first value of a row and behind the last one.
#[derive(Clone, Copy)]
struct Range {
    lo: Value,
    hi: Value,
}

/// The addresses of a loop over a row's values.
#[derive(Clone, Copy)]
struct Loop {
    end: Value,
    /// The last place where a whole vector fits.
    full: Value,
}

impl Kernel<'_> {
    /// Fills an empty function; its signature gets the parameters of [`crate::kernel::RowFn`].
    pub fn build(
        &self,
        function: &mut Function,
        scratch: &mut FunctionBuilderContext,
        target: TargetFrontendConfig,
    ) {
        for _ in 0..5 {
            function.signature.params.push(AbiParam::new(I64));
        }
        let element = self.bytes();
        let mut b = FunctionBuilder::new(function, scratch);
        let entry = b.create_block();
        let blocks = Blocks::new(&mut b);

        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let params = b.block_params(entry).try_into();
        let [base, runs, count, lo, hi]: [Value; 5] = params.expect("five parameters");
        let some = b.ins().icmp_imm_s(IntCC::SignedGreaterThan, count, 0);
        let wide = b.ins().icmp(IntCC::SignedLessThan, lo, hi);
        let work = b.ins().band(some, wide);
        b.ins().brif(work, blocks.start, &[], blocks.done, &[]);

        b.switch_to_block(blocks.start);
        let range = Range {
            lo: b.ins().imul_imm_s(lo, element),
            hi: b.ins().imul_imm_s(hi, element),
        };
        let constants = self.constants(&mut b);
        b.ins().jump(blocks.run, &[runs.into(), count.into()]);

        self.run(&mut b, &blocks, base);
        self.row(&mut b, &blocks, range, &constants);

        b.switch_to_block(blocks.next_run);
        let [at_run, runs_left] = [0, 1].map(|n| b.block_params(blocks.run)[n]);
        let at_run = b.ins().iadd_imm_s(at_run, self.program.record);
        let left = b.ins().iadd_imm_s(runs_left, -1);
        let more = b.ins().icmp_imm_s(IntCC::SignedGreaterThan, left, 0);
        let again = [at_run.into(), left.into()];
        b.ins().brif(more, blocks.run, &again, blocks.done, &[]);

        b.switch_to_block(blocks.done);
        b.ins().return_(&[]);
        b.seal_all_blocks();
        b.finalize(target);
    }

    /// The beginning of a run, whose place and the number of runs that are left are the block's parameters.
    fn run(&self, b: &mut FunctionBuilder<'_>, blocks: &Blocks, base: Value) {
        b.append_block_param(blocks.run, I64);
        b.append_block_param(blocks.run, I64);
        b.switch_to_block(blocks.run);
        let at_run = b.block_params(blocks.run)[0];
        let plain = MemFlagsData::new().with_notrap();
        let field = |b: &mut FunctionBuilder<'_>, at: i32| b.ins().load(I64, plain, at_run, at);
        let offset = field(b, offset_of!(Run, offset) as i32);
        let groups = field(b, offset_of!(Run, groups) as i32);
        let group = b.ins().iadd(base, offset);
        let mut begin = vec![group.into(), groups.into()];
        for used in &self.program.streams {
            let offset = field(b, used.record as i32);
            begin.push(b.ins().iadd(base, offset).into());
        }
        let any = b.ins().icmp_imm_s(IntCC::SignedGreaterThan, groups, 0);
        b.ins().brif(any, blocks.row, &begin, blocks.next_run, &[]);
        for _ in &begin {
            b.append_block_param(blocks.row, I64);
        }
    }

    /// One group of a run after the other. The block's parameters are the group's place, the number of groups that are
    /// left, and the places of the streams.
    fn row(
        &self,
        b: &mut FunctionBuilder<'_>,
        blocks: &Blocks,
        range: Range,
        constants: &[Option<Value>],
    ) {
        let element = self.bytes();
        b.switch_to_block(blocks.row);
        let (group, left) = (b.block_params(blocks.row)[0], b.block_params(blocks.row)[1]);
        let streams = b.block_params(blocks.row)[2..].to_vec();
        let bases: Vec<Value> = streams.iter().map(|s| b.ins().isub(*s, group)).collect();
        let frame = Frame {
            streams: &streams,
            bases: &bases,
        };
        let first = b.ins().iadd(group, range.lo);
        let end = b.ins().iadd(group, range.hi);
        let vector = i64::from(self.ty(Form::Vector).bytes());
        let full = b.ins().iadd_imm_s(end, -vector);
        let fits = if self.vectorised() {
            b.ins().icmp(IntCC::UnsignedLessThanOrEqual, first, full)
        } else {
            b.ins().iconst(I8, 0)
        };
        let first = [first.into()];
        b.ins()
            .brif(fits, blocks.vectors, &first, blocks.scalars, &first);
        self.values(b, blocks, Loop { end, full }, &frame, constants);

        b.switch_to_block(blocks.next);
        let group = b.ins().iadd_imm_s(group, self.stride);
        let left = b.ins().iadd_imm_s(left, -1);
        let more = b.ins().icmp_imm_s(IntCC::SignedGreaterThan, left, 0);
        let mut again = vec![group.into(), left.into()];
        for (used, at) in self.program.streams.iter().zip(&streams) {
            again.push(b.ins().iadd_imm_s(*at, used.stride * element).into());
        }
        b.ins().brif(more, blocks.row, &again, blocks.next_run, &[]);
    }

    /// The loops over the vectors of a row and over the values that are left; both have the place as their parameter.
    fn values(
        &self,
        b: &mut FunctionBuilder<'_>,
        blocks: &Blocks,
        Loop { end, full }: Loop,
        frame: &Frame<'_>,
        constants: &[Option<Value>],
    ) {
        let begin = |b: &mut FunctionBuilder<'_>, block| {
            b.append_block_param(block, I64);
            b.switch_to_block(block);
            b.block_params(block)[0]
        };
        let at = begin(b, blocks.vectors);
        self.cell(b, Form::Vector, at, frame, constants);
        let vector = i64::from(self.ty(Form::Vector).bytes());
        let at = b.ins().iadd_imm_s(at, vector);
        let fits = b.ins().icmp(IntCC::UnsignedLessThanOrEqual, at, full);
        let at = [at.into()];
        b.ins().brif(fits, blocks.vectors, &at, blocks.rest, &at);

        let at = begin(b, blocks.rest);
        let more = b.ins().icmp(IntCC::UnsignedLessThan, at, end);
        b.ins()
            .brif(more, blocks.scalars, &[at.into()], blocks.next, &[]);

        let at = begin(b, blocks.scalars);
        self.cell(b, Form::Scalar, at, frame, &[]);
        let at = b.ins().iadd_imm_s(at, self.bytes());
        let more = b.ins().icmp(IntCC::UnsignedLessThan, at, end);
        b.ins()
            .brif(more, blocks.scalars, &[at.into()], blocks.next, &[]);
    }

    /// Cranelift 0.135 lets a packed comparison of SSE take an operand from memory that is not aligned, which faults
    /// (`x64_cmpps` in its `inst.isle`; the forms of AVX allow it). So kernels with comparisons stay scalar there.
    fn vectorised(&self) -> bool {
        let compares = |op: &LaneOp| matches!(op, LaneOp::Select { .. } | LaneOp::Power2(_));
        self.unaligned || !self.program.ops.iter().any(compares)
    }

    fn bytes(&self) -> i64 {
        self.precision.bytes() as i64
    }

    fn ty(&self, form: Form) -> Type {
        match (self.precision, form) {
            (Precision::F32, Form::Scalar) => F32,
            (Precision::F32, Form::Vector) => F32X4,
            (Precision::F64, Form::Scalar) => F64,
            (Precision::F64, Form::Vector) => F64X2,
        }
    }

    fn constant(&self, b: &mut FunctionBuilder<'_>, bits: u64) -> Value {
        let value = f64::from_bits(bits);
        match self.precision {
            Precision::F32 => b.ins().f32const(value as f32),
            Precision::F64 => b.ins().f64const(value),
        }
    }

    /// Vectors of the program's constants, by operation, made before the loops.
    fn constants(&self, b: &mut FunctionBuilder<'_>) -> Vec<Option<Value>> {
        let ops = self.program.ops.iter();
        ops.map(|op| match *op {
            LaneOp::Const(bits) => {
                let element = self.constant(b, bits);
                Some(b.ins().splat(self.ty(Form::Vector), element))
            }
            _ => None,
        })
        .collect()
    }

    /// All updates at one address.
    fn cell(
        &self,
        b: &mut FunctionBuilder<'_>,
        form: Form,
        at: Value,
        frame: &Frame<'_>,
        ready: &[Option<Value>],
    ) {
        let mut values: Vec<Value> = Vec::with_capacity(self.program.ops.len());
        for (i, op) in self.program.ops.iter().enumerate() {
            let of = |v: crate::scheme::Value| values[v.index()];
            let value = match *op {
                LaneOp::Const(bits) => match ready.get(i).copied().flatten() {
                    Some(value) => value,
                    None => self.constant(b, bits),
                },
                LaneOp::Load(place) => self.loaded(b, form, at, place),
                LaneOp::Stream(place) => self.streamed(b, form, at, frame, place),
                // Programs without bands have none.
                LaneOp::InBand { then, .. } => of(then),
                LaneOp::Neg(x) => b.ins().fneg(of(x)),
                LaneOp::Abs(x) => b.ins().fabs(of(x)),
                LaneOp::Flush(x) => self.flush(b, form, of(x)),
                LaneOp::Sqrt(x) => b.ins().sqrt(of(x)),
                LaneOp::Power2(x) => self.power2(b, form, of(x)),
                LaneOp::Exponent(x) => self.exponent(b, form, of(x)),
                LaneOp::Add(x, y) => b.ins().fadd(of(x), of(y)),
                LaneOp::Sub(x, y) => b.ins().fsub(of(x), of(y)),
                LaneOp::Mul(x, y) => b.ins().fmul(of(x), of(y)),
                LaneOp::Div(x, y) => b.ins().fdiv(of(x), of(y)),
                LaneOp::Fma(x, y, z) => b.ins().fma(of(x), of(y), of(z)),
                LaneOp::Select {
                    cmp,
                    a: x,
                    b: y,
                    then,
                    otherwise,
                } => {
                    let holds = Comparison {
                        cmp,
                        x: of(x),
                        y: of(y),
                    };
                    self.select(b, form, holds, [of(then), of(otherwise)])
                }
            };
            values.push(value);
        }
        self.store_all(b, at, frame, &values);
    }

    /// The value of an operand at the address of an update.
    fn loaded(
        &self,
        b: &mut FunctionBuilder<'_>,
        form: Form,
        at: Value,
        place: OperandPlace,
    ) -> Value {
        let (at, offset) = self.address(b, at, place);
        let own = |s: &Store| {
            let stored = OperandPlace {
                row: s.row,
                shift: 0,
            };
            s.stream.is_none() && place == stored
        };
        let flags = match self.program.stores.iter().any(own) {
            true => ANYWHERE,
            false => CONSTANT,
        };
        b.ins().load(self.ty(form), flags, at, offset)
    }

    /// The value of a stream at the address of an update.
    fn streamed(
        &self,
        b: &mut FunctionBuilder<'_>,
        form: Form,
        at: Value,
        frame: &Frame<'_>,
        place: StreamPlace,
    ) -> Value {
        let ty = self.ty(form);
        if !place.uniform {
            let from = b.ins().iadd(at, frame.bases[place.stream as usize]);
            let (at, offset) = self.offset(b, from, place.at);
            return b.ins().load(ty, ANYWHERE, at, offset);
        }
        let from = frame.streams[place.stream as usize];
        let (at, offset) = self.offset(b, from, place.at);
        let element = b.ins().load(self.ty(Form::Scalar), CONSTANT, at, offset);
        match form {
            Form::Scalar => element,
            Form::Vector => b.ins().splat(ty, element),
        }
    }

    /// Stores the new values, of `values` by operation.
    fn store_all(
        &self,
        b: &mut FunctionBuilder<'_>,
        at: Value,
        frame: &Frame<'_>,
        values: &[Value],
    ) {
        for store in &self.program.stores {
            let place = OperandPlace {
                row: store.row,
                shift: 0,
            };
            let (at, offset) = match store.stream {
                None => self.address(b, at, place),
                Some(stream) => {
                    let from = b.ins().iadd(at, frame.bases[stream as usize]);
                    self.offset(b, from, store.row)
                }
            };
            b.ins()
                .store(ANYWHERE, values[store.value.index()], at, offset);
        }
    }

    /// The first value where the comparison holds, else the second.
    fn select(
        &self,
        b: &mut FunctionBuilder<'_>,
        form: Form,
        Comparison { cmp, x, y }: Comparison,
        [then, otherwise]: [Value; 2],
    ) -> Value {
        let cmp = match cmp {
            Cmp::Lt => FloatCC::LessThan,
            Cmp::Le => FloatCC::LessThanOrEqual,
            Cmp::Eq => FloatCC::Equal,
            Cmp::Ne => FloatCC::NotEqual,
        };
        let holds = b.ins().fcmp(cmp, x, y);
        match form {
            Form::Scalar => b.ins().select(holds, then, otherwise),
            Form::Vector => {
                let mask = b.ins().bitcast(self.ty(form), AS_IS, holds);
                b.ins().bitselect(mask, then, otherwise)
            }
        }
    }

    /// The value, or 0 if its magnitude is below the flush threshold.
    fn flush(&self, b: &mut FunctionBuilder<'_>, form: Form, x: Value) -> Value {
        let magnitude = b.ins().fabs(x);
        let threshold = self.number(b, form, self.precision.flush_threshold());
        let zero = self.number(b, form, 0.0);
        self.select(b, form, Comparison::less(magnitude, threshold), [zero, x])
    }

    /// A number in all lanes.
    fn number(&self, b: &mut FunctionBuilder<'_>, form: Form, value: f64) -> Value {
        let element = self.constant(b, value.to_bits());
        match form {
            Form::Scalar => element,
            Form::Vector => b.ins().splat(self.ty(form), element),
        }
    }

    fn power2(&self, b: &mut FunctionBuilder<'_>, form: Form, x: Value) -> Value {
        let bits = self.precision.power_bits();
        let [lo, hi, shift] = [bits.least, bits.most, bits.shift].map(|n| self.number(b, form, n));
        let x = self.select(b, form, Comparison::less(lo, x), [x, lo]);
        let x = self.select(b, form, Comparison::less(x, hi), [x, hi]);
        let sum = b.ins().fadd(x, shift);
        let word = b.ins().bitcast(self.words(form), AS_IS, sum);
        let places = b.ins().iconst(I32, i64::from(bits.mantissa));
        let field = b.ins().ishl(word, places);
        b.ins().bitcast(self.ty(form), AS_IS, field)
    }

    fn exponent(&self, b: &mut FunctionBuilder<'_>, form: Form, x: Value) -> Value {
        let bits = self.precision.power_bits();
        let magnitude = b.ins().fabs(x);
        let word = b.ins().bitcast(self.words(form), AS_IS, magnitude);
        let places = b.ins().iconst(I32, i64::from(bits.mantissa));
        let field = b.ins().ushr(word, places);
        let whole = self.number(b, form, bits.whole);
        let whole = b.ins().bitcast(self.words(form), AS_IS, whole);
        let sum = b.ins().bor(field, whole);
        let sum = b.ins().bitcast(self.ty(form), AS_IS, sum);
        let start = self.number(b, form, bits.start);
        b.ins().fsub(sum, start)
    }

    /// The type of the bits of values.
    fn words(&self, form: Form) -> Type {
        match (self.precision, form) {
            (Precision::F32, Form::Scalar) => I32,
            (Precision::F32, Form::Vector) => I32X4,
            (Precision::F64, Form::Scalar) => I64,
            (Precision::F64, Form::Vector) => I64X2,
        }
    }

    /// An address and an offset that fits an instruction.
    fn address(
        &self,
        b: &mut FunctionBuilder<'_>,
        at: Value,
        place: OperandPlace,
    ) -> (Value, Offset32) {
        self.offset(b, at, place.displacement())
    }

    /// The same for a distance in elements.
    fn offset(&self, b: &mut FunctionBuilder<'_>, at: Value, elements: i64) -> (Value, Offset32) {
        let distance = elements * self.bytes();
        match i32::try_from(distance) {
            Ok(offset) => (at, Offset32::new(offset)),
            Err(_) => (b.ins().iadd_imm_s(at, distance), Offset32::new(0)),
        }
    }
}
