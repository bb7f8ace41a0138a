//! Types, constants and names of values in the IR of a CPU's kernels.

use crate::backend::rows::{LaneOp, RowProgram};
use crate::scheme::{Precision, Value};
use std::fmt::{self, Write};

/// The types of a module, as LLVM writes them.
pub struct Types {
    pub precision: Precision,
    pub lanes: i64,
    pub bytes: i64,
    pub scalar: &'static str,
    /// `<16 x float>`
    pub vector: String,
    /// `v16f32`
    pub suffix: String,
}

impl Types {
    pub fn new(precision: Precision, vector_bits: u32) -> Types {
        let bytes = precision.bytes() as i64;
        let lanes = (i64::from(vector_bits) / (8 * bytes)).max(1);
        let (scalar, bits) = match precision {
            Precision::F32 => ("float", 32),
            Precision::F64 => ("double", 64),
        };
        Types {
            precision,
            lanes,
            bytes,
            scalar,
            vector: format!("<{lanes} x {scalar}>"),
            suffix: format!("v{lanes}f{bits}"),
        }
    }

    /// Whether the processor's vectors have masks, so that a masked store costs as much as any other.
    pub fn has_masks(&self) -> bool {
        self.lanes * self.bytes >= 64
    }

    /// The integer type with the bits of a number.
    pub fn word(&self) -> &'static str {
        match self.precision {
            Precision::F32 => "i32",
            Precision::F64 => "i64",
        }
    }

    /// A vector of [`Types::word`].
    pub fn words(&self) -> String {
        format!("<{} x {}>", self.lanes, self.word())
    }

    /// A constant in all lanes. LLVM writes floats of all formats with the bits of a double.
    pub fn splat(&self, bits: u64) -> String {
        // LLVM takes a float's constant only if no bit is lost, which a NaN's payload could be.
        let bits = if f64::from_bits(bits).is_nan() {
            f64::NAN.to_bits()
        } else {
            self.precision.round(f64::from_bits(bits)).to_bits()
        };
        format!("splat ({} 0x{bits:016X})", self.scalar)
    }

    /// A value as an operand, for one of the vectors that a block computes; a constant needs no instruction.
    pub fn name(&self, program: &RowProgram, block: &str, copy: i64, value: Value) -> String {
        match program.ops[value.index()] {
            LaneOp::Const(bits) => self.splat(bits),
            LaneOp::Stream(place) if place.uniform => format!("%u{}", value.0),
            _ => format!("%{block}.{copy}.{}", value.0),
        }
    }

    pub fn declare(&self, out: &mut String) -> fmt::Result {
        let Types {
            lanes,
            vector: v,
            suffix,
            ..
        } = self;
        writeln!(out, "declare {v} @llvm.fma.{suffix}({v}, {v}, {v})")?;
        writeln!(out, "declare {v} @llvm.sqrt.{suffix}({v})")?;
        writeln!(out, "declare {v} @llvm.fabs.{suffix}({v})")?;
        writeln!(
            out,
            "declare void @llvm.masked.store.{suffix}.p0({v}, ptr, <{lanes} x i1>)"
        )?;
        writeln!(out, "declare i64 @llvm.smin.i64(i64, i64)")?;
        writeln!(out, "declare i64 @llvm.smax.i64(i64, i64)")?;
        writeln!(
            out,
            "attributes #0 = {{ nounwind \"prefer-vector-width\"=\"{}\" }}",
            lanes * self.bytes * 8
        )
    }
}
