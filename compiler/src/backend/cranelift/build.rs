//! Row kernels as Cranelift's intermediate form: a loop over vectors and a loop over what is left, for each group.

use crate::backend::rows::{Place, RowOp, RowProgram, Store};
use crate::kernel::Run;
use crate::scheme::{Cmp, Precision};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::{F32, F32X4, F64, F64X2, I8, I64, Type};
use cranelift_codegen::ir::{AbiParam, Endianness, Function, InstBuilder, MemFlagsData, Value};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use std::mem::offset_of;

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
        let vector = i64::from(self.ty(Form::Vector).bytes());
        let mut b = FunctionBuilder::new(function, scratch);
        let entry = b.create_block();
        let start = b.create_block();
        let run = b.create_block();
        let row = b.create_block();
        let vectors = b.create_block();
        let rest = b.create_block();
        let scalars = b.create_block();
        let next = b.create_block();
        let next_run = b.create_block();
        let done = b.create_block();

        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let (base, runs, count, lo, hi) = {
            let params = b.block_params(entry);
            (params[0], params[1], params[2], params[3], params[4])
        };
        let some = b.ins().icmp_imm_s(IntCC::SignedGreaterThan, count, 0);
        let wide = b.ins().icmp(IntCC::SignedLessThan, lo, hi);
        let work = b.ins().band(some, wide);
        b.ins().brif(work, start, &[], done, &[]);

        b.switch_to_block(start);
        let lo = b.ins().imul_imm_s(lo, element);
        let hi = b.ins().imul_imm_s(hi, element);
        let constants = self.constants(&mut b);
        b.ins().jump(run, &[runs.into(), count.into()]);

        b.append_block_param(run, I64);
        b.append_block_param(run, I64);
        b.switch_to_block(run);
        let (at_run, runs_left) = (b.block_params(run)[0], b.block_params(run)[1]);
        let plain = MemFlagsData::new().with_notrap();
        let offset = b
            .ins()
            .load(I64, plain, at_run, offset_of!(Run, offset) as i32);
        let groups = b
            .ins()
            .load(I64, plain, at_run, offset_of!(Run, groups) as i32);
        let group = b.ins().iadd(base, offset);
        let any = b.ins().icmp_imm_s(IntCC::SignedGreaterThan, groups, 0);
        b.ins()
            .brif(any, row, &[group.into(), groups.into()], next_run, &[]);

        b.append_block_param(row, I64);
        b.append_block_param(row, I64);
        b.switch_to_block(row);
        let (group, left) = (b.block_params(row)[0], b.block_params(row)[1]);
        let first = b.ins().iadd(group, lo);
        let end = b.ins().iadd(group, hi);
        // The last place where a whole vector fits.
        let full = b.ins().iadd_imm_s(end, -vector);
        let fits = if self.vectorised() {
            b.ins().icmp(IntCC::UnsignedLessThanOrEqual, first, full)
        } else {
            b.ins().iconst(I8, 0)
        };
        b.ins()
            .brif(fits, vectors, &[first.into()], scalars, &[first.into()]);

        b.append_block_param(vectors, I64);
        b.switch_to_block(vectors);
        let at = b.block_params(vectors)[0];
        self.cell(&mut b, Form::Vector, at, &constants);
        let at = b.ins().iadd_imm_s(at, vector);
        let fits = b.ins().icmp(IntCC::UnsignedLessThanOrEqual, at, full);
        b.ins()
            .brif(fits, vectors, &[at.into()], rest, &[at.into()]);

        b.append_block_param(rest, I64);
        b.switch_to_block(rest);
        let at = b.block_params(rest)[0];
        let more = b.ins().icmp(IntCC::UnsignedLessThan, at, end);
        b.ins().brif(more, scalars, &[at.into()], next, &[]);

        b.append_block_param(scalars, I64);
        b.switch_to_block(scalars);
        let at = b.block_params(scalars)[0];
        self.cell(&mut b, Form::Scalar, at, &[]);
        let at = b.ins().iadd_imm_s(at, element);
        let more = b.ins().icmp(IntCC::UnsignedLessThan, at, end);
        b.ins().brif(more, scalars, &[at.into()], next, &[]);

        b.switch_to_block(next);
        let group = b.ins().iadd_imm_s(group, self.stride);
        let left = b.ins().iadd_imm_s(left, -1);
        let more = b.ins().icmp_imm_s(IntCC::SignedGreaterThan, left, 0);
        b.ins()
            .brif(more, row, &[group.into(), left.into()], next_run, &[]);

        b.switch_to_block(next_run);
        let at_run = b.ins().iadd_imm_s(at_run, size_of::<Run>() as i64);
        let left = b.ins().iadd_imm_s(runs_left, -1);
        let more = b.ins().icmp_imm_s(IntCC::SignedGreaterThan, left, 0);
        b.ins()
            .brif(more, run, &[at_run.into(), left.into()], done, &[]);

        b.switch_to_block(done);
        b.ins().return_(&[]);
        b.seal_all_blocks();
        b.finalize(target);
    }

    /// Cranelift 0.135 lets a packed comparison of SSE take an operand from memory that is not aligned, which faults
    /// (`x64_cmpps` in its `inst.isle`; the forms of AVX allow it). So kernels with comparisons stay scalar there.
    fn vectorised(&self) -> bool {
        let compares = |op: &RowOp| matches!(op, RowOp::Select { .. });
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
            RowOp::Const(bits) => {
                let element = self.constant(b, bits);
                Some(b.ins().splat(self.ty(Form::Vector), element))
            }
            _ => None,
        })
        .collect()
    }

    /// All updates at one address.
    fn cell(&self, b: &mut FunctionBuilder<'_>, form: Form, at: Value, ready: &[Option<Value>]) {
        let ty = self.ty(form);
        // The address may have any alignment, and memory is known to be there.
        let flags = MemFlagsData::new().with_notrap();
        // What a kernel does not overwrite at this very place it does not overwrite at all (rule 4 of the scheme). So
        // these loads may move to where they are used, which saves registers.
        let constant = flags.with_readonly().with_can_move();
        let mut values: Vec<Value> = Vec::with_capacity(self.program.ops.len());
        for (i, op) in self.program.ops.iter().enumerate() {
            let of = |v: crate::scheme::Value| values[v.index()];
            let value = match *op {
                RowOp::Const(bits) => match ready.get(i).copied().flatten() {
                    Some(value) => value,
                    None => self.constant(b, bits),
                },
                RowOp::Load(place) => {
                    let (at, offset) = self.address(b, at, place);
                    let own = |s: &Store| {
                        place
                            == Place {
                                row: s.row,
                                shift: 0,
                            }
                    };
                    let flags = if self.program.stores.iter().any(own) {
                        flags
                    } else {
                        constant
                    };
                    b.ins().load(ty, flags, at, offset)
                }
                RowOp::Neg(x) => b.ins().fneg(of(x)),
                RowOp::Abs(x) => b.ins().fabs(of(x)),
                RowOp::Sqrt(x) => b.ins().sqrt(of(x)),
                RowOp::Add(x, y) => b.ins().fadd(of(x), of(y)),
                RowOp::Sub(x, y) => b.ins().fsub(of(x), of(y)),
                RowOp::Mul(x, y) => b.ins().fmul(of(x), of(y)),
                RowOp::Div(x, y) => b.ins().fdiv(of(x), of(y)),
                RowOp::Fma(x, y, z) => b.ins().fma(of(x), of(y), of(z)),
                RowOp::Select {
                    cmp,
                    a: x,
                    b: y,
                    then,
                    otherwise,
                } => {
                    let cmp = match cmp {
                        Cmp::Lt => FloatCC::LessThan,
                        Cmp::Le => FloatCC::LessThanOrEqual,
                        Cmp::Eq => FloatCC::Equal,
                        Cmp::Ne => FloatCC::NotEqual,
                    };
                    let holds = b.ins().fcmp(cmp, of(x), of(y));
                    match form {
                        Form::Scalar => b.ins().select(holds, of(then), of(otherwise)),
                        Form::Vector => {
                            let as_is = MemFlagsData::new().with_endianness(Endianness::Little);
                            let mask = b.ins().bitcast(ty, as_is, holds);
                            b.ins().bitselect(mask, of(then), of(otherwise))
                        }
                    }
                }
            };
            values.push(value);
        }
        for store in &self.program.stores {
            let place = Place {
                row: store.row,
                shift: 0,
            };
            let (at, offset) = self.address(b, at, place);
            b.ins()
                .store(flags, values[store.value.index()], at, offset);
        }
    }

    /// An address and an offset that fits an instruction.
    fn address(&self, b: &mut FunctionBuilder<'_>, at: Value, place: Place) -> (Value, Offset32) {
        let distance = place.displacement() * self.bytes();
        match i32::try_from(distance) {
            Ok(offset) => (at, Offset32::new(offset)),
            Err(_) => (b.ins().iadd_imm_s(at, distance), Offset32::new(0)),
        }
    }
}
