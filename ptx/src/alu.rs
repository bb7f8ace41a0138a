//! Arithmetic on rows: the same operation for all lanes of a mask.
//!
//! Floats follow IEEE 754 as Rust computes them, without flushing and contraction; fused operations round once. The
//! bits of a NaN that an operation makes are the host's.

use crate::convert::convert;
use crate::op::{
    Bin, Cmp, FloatOrder, Inst, Join, NONE, Op, Polarity, Saturation, Signedness, Slot, Tri, Ty,
    Un, mask as ones, sign_extend,
};
use crate::rows::Rows;

/// Lanes of a warp.
pub(crate) const LANES: usize = 32;

/// Lanes that are computed together.
const PART: usize = 8;

/// Values of lanes that are computed together.
type Part = [u64; PART];

/// One value for each lane.
pub(crate) type Row = [u64; LANES];

/// The NaN that operations return which choose it themselves.
const NAN_32: u64 = 0x7fff_ffff;
const NAN_64: u64 = 0x7fff_ffff_ffff_ffff;

/// The lanes of a mask, ascending.
pub(crate) fn lanes(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}

/// The value that a row has in all lanes of a mask, if there is one.
#[inline(always)]
pub(crate) fn uniform(row: &Row, mask: u32) -> Option<u64> {
    let first = row[mask.trailing_zeros() as usize % LANES];
    let mut others = 0;
    for (lane, value) in row.iter().enumerate() {
        others |= (value ^ first) & u64::from(mask >> lane & 1).wrapping_neg();
    }
    if others == 0 && mask != 0 {
        Some(first)
    } else {
        None
    }
}

/// Whether the processor has instructions for vectors of 32 bytes, multiply-adds and counts of bits.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn has_vectors() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("fma") && has!("bmi1") && has!("bmi2") && has!("popcnt") && has!("lzcnt")
}

/// Executes an instruction that works on registers only; whether it was one. Without `VECTORS` it does so lane by lane,
/// which takes little time to compile.
#[inline(always)]
pub(crate) fn execute<const VECTORS: bool>(
    rows: &mut Rows,
    lists: &[u32],
    inst: &Inst,
    mask: u32,
) -> bool {
    let mut lane = Lanes::<VECTORS> { rows, inst, mask };
    match inst.op {
        Op::Nop => {}
        Op::Move => lane.map(|[a]| a),
        Op::Un(un, ty) => unary(&mut lane, un, ty),
        Op::Bin(bin, Ty::F32) => binary_f32(&mut lane, bin),
        Op::Bin(bin, Ty::F64) => binary_f64(&mut lane, bin),
        Op::Bin(bin, ty) => binary_int(&mut lane, bin, ty),
        Op::Tri(tri, ty) => ternary(&mut lane, tri, ty),
        Op::Convert {
            to,
            from,
            round,
            saturation,
            width,
        } => {
            let register = ones(u32::from(width));
            let integers = !to.is_float() && !from.is_float();
            if integers && saturation == Saturation::Off {
                // Extended by the sign or zeros, cut, and extended once more.
                let (in_bits, out_bits) = (from.bits(), to.bits());
                let keep = |signed: bool| if signed { 0 } else { u64::MAX };
                let (zeros_in, zeros_out) = (keep(from.is_signed()), keep(to.is_signed()));
                let extend = |value: u64, bits: u32, zeros: u64| {
                    sign_extend(value, bits) as u64 & !zeros | value & ones(bits) & zeros
                };
                lane.map(|[a]| {
                    extend(extend(a, in_bits, zeros_in), out_bits, zeros_out) & register
                });
            } else {
                lane.rarely(|[a]| convert(a, to, from, round, saturation) & register);
            }
        }
        Op::Compare {
            cmp,
            order,
            ty,
            join,
            polarity,
        } => {
            let other = match join {
                Join::None => [0; LANES],
                _ => lane.rows[inst.src[2] as usize],
            };
            compare(&mut lane, cmp, order, ty);
            if join != Join::None || inst.dst2 != NONE {
                lane.join(join, polarity, &other);
            }
        }
        Op::Set { cmp, order, ty, to } => {
            compare(&mut lane, cmp, order, ty);
            let one = match to {
                Ty::F32 => u64::from(1f32.to_bits()),
                Ty::F64 => 1f64.to_bits(),
                to => to.mask(),
            };
            let truth = [inst.dst];
            lane.map_to(inst.dst, truth, |[a]| if a == 1 { one } else { 0 });
        }
        Op::Pack { bits, count, list } => {
            let mut row = [0; LANES];
            for part in 0..u32::from(count) {
                let source = rows[lists[(list + part) as usize] as usize];
                for (row, source) in row.iter_mut().zip(source) {
                    *row |= source << (part * u32::from(bits));
                }
            }
            lanes(mask).for_each(|lane| rows[inst.dst as usize][lane] = row[lane]);
        }
        Op::Unpack { bits, count, list } => {
            let row = rows[inst.src[0] as usize];
            for part in 0..u32::from(count) {
                let to = &mut rows[lists[(list + part) as usize] as usize];
                for lane in lanes(mask) {
                    to[lane] = row[lane] >> (part * u32::from(bits)) & ones(u32::from(bits));
                }
            }
        }
        _ => return false,
    }
    true
}

struct Lanes<'a, const VECTORS: bool> {
    rows: &'a mut Rows,
    inst: &'a Inst,
    mask: u32,
}

impl<const VECTORS: bool> Lanes<'_, VECTORS> {
    #[inline(always)]
    fn map<const N: usize>(&mut self, f: impl Fn([u64; N]) -> u64) {
        let mut sources = [0; N];
        sources.copy_from_slice(&self.inst.src[..N]);
        self.map_to(self.inst.dst, sources, f);
    }

    #[inline(always)]
    fn map_to<const N: usize>(&mut self, dst: Slot, src: [Slot; N], f: impl Fn([u64; N]) -> u64) {
        if !VECTORS {
            return self.one_by_one(dst, src, &f);
        }
        let (sources, result) = self.rows.places(src, dst);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the rows are borrowed, and the processor has the features where there are vectors.
        unsafe {
            rows_avx2(sources, result, self.mask, f);
        }
        #[cfg(not(target_arch = "x86_64"))]
        // SAFETY: the rows are borrowed.
        unsafe {
            rows_any(sources, result, self.mask, f);
        }
    }

    /// An operation that is rarely executed, lane by lane.
    #[inline(always)]
    fn rarely<const N: usize>(&mut self, f: impl Fn([u64; N]) -> u64) {
        let mut sources = [0; N];
        sources.copy_from_slice(&self.inst.src[..N]);
        self.one_by_one(self.inst.dst, sources, &f);
    }

    #[inline(never)]
    fn one_by_one<const N: usize>(
        &mut self,
        dst: Slot,
        src: [Slot; N],
        f: &dyn Fn([u64; N]) -> u64,
    ) {
        for lane in lanes(self.mask) {
            let value = f(src.map(|slot| self.rows[slot as usize][lane]));
            self.rows[dst as usize][lane] = value;
        }
    }

    #[inline(always)]
    fn f32<const N: usize>(&mut self, f: impl Fn([f32; N]) -> f32) {
        self.map(|bits: [u64; N]| {
            let mut floats = [0.0; N];
            for (float, bits) in floats.iter_mut().zip(&bits) {
                *float = f32::from_bits(*bits as u32);
            }
            u64::from(f(floats).to_bits())
        });
    }

    #[inline(always)]
    fn f64<const N: usize>(&mut self, f: impl Fn([f64; N]) -> f64) {
        self.map(|bits: [u64; N]| {
            let mut floats = [0.0; N];
            for (float, bits) in floats.iter_mut().zip(&bits) {
                *float = f64::from_bits(*bits);
            }
            f(floats).to_bits()
        });
    }

    /// Combines the comparison in `dst` with another predicate; `dst2` becomes the same of the negated comparison.
    fn join(&mut self, join: Join, polarity: Polarity, other: &Row) {
        let inst = self.inst;
        for lane in lanes(self.mask) {
            let truth = self.rows[inst.dst as usize][lane] == 1;
            let other = (other[lane] == 1) != polarity.is_negated();
            let joined = |truth: bool| match join {
                Join::None => truth,
                Join::And => truth && other,
                Join::Or => truth || other,
                Join::Xor => truth != other,
            };
            self.rows[inst.dst as usize][lane] = u64::from(joined(truth));
            if inst.dst2 != NONE {
                self.rows[inst.dst2 as usize][lane] = u64::from(joined(!truth));
            }
        }
    }
}

/// One operation on the rows at these places, compiled by itself: all operations in one function take a compiler three
/// times as long.
///
/// # Safety
///
/// The places are those of rows that nothing else uses meanwhile, and the processor has the features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
#[inline(never)]
unsafe fn rows_avx2<const N: usize>(
    sources: [*const Row; N],
    result: *mut Row,
    mask: u32,
    f: impl Fn([u64; N]) -> u64,
) {
    // SAFETY: as the caller says.
    unsafe { rows_any(sources, result, mask, f) }
}

/// Computes the active lanes of a row, which may be one of the sources, from those of others.
///
/// # Safety
///
/// The places are those of rows that nothing else uses meanwhile.
#[cfg_attr(target_arch = "x86_64", inline(always))]
#[cfg_attr(not(target_arch = "x86_64"), inline(never))]
unsafe fn rows_any<const N: usize>(
    sources: [*const Row; N],
    result: *mut Row,
    mask: u32,
    f: impl Fn([u64; N]) -> u64,
) {
    // SAFETY: as the caller says.
    let kept = (mask != u32::MAX).then(|| unsafe { result.read() });
    // The values that are read before a part is written fit into vector registers.
    for first in (0..LANES).step_by(PART) {
        let mut parts = [[0; PART]; N];
        for (part, row) in parts.iter_mut().zip(sources) {
            // SAFETY: the part lies in a row.
            *part = unsafe { row.cast::<u64>().add(first).cast::<Part>().read() };
        }
        // Lanes that are not active are computed, too: any bits have a result.
        let mut results = [0; PART];
        for (lane, result) in results.iter_mut().enumerate() {
            let mut operands = [0; N];
            for (operand, part) in operands.iter_mut().zip(&parts) {
                *operand = part[lane];
            }
            *result = f(operands);
        }
        // SAFETY: the same.
        unsafe {
            result
                .cast::<u64>()
                .add(first)
                .cast::<Part>()
                .write(results)
        };
    }
    if let Some(kept) = kept {
        // SAFETY: the same; no other reference to the row exists.
        restore(unsafe { &mut *result }, &kept, mask);
    }
}

/// Gives the lanes that are not active their values back.
#[inline(never)]
fn restore(row: &mut Row, kept: &Row, mask: u32) {
    for (lane, (value, kept)) in row.iter_mut().zip(kept).enumerate() {
        if mask >> lane & 1 == 0 {
            *value = *kept;
        }
    }
}

#[inline(always)]
fn unary<const VECTORS: bool>(lane: &mut Lanes<VECTORS>, un: Un, ty: Ty) {
    let (bits, all) = (ty.bits(), ty.mask());
    let sign = 1 << (bits - 1);
    // The exponent's ones and the mantissa's of a float.
    let (exponent, mantissa) = match ty {
        Ty::F32 => (0x7f80_0000, 0x007f_ffff),
        _ => (0x7ff0_0000_0000_0000, 0x000f_ffff_ffff_ffff),
    };
    let test = |lane: &mut Lanes<VECTORS>, holds: &dyn Fn(u64, u64) -> bool| {
        lane.rarely(|[a]| u64::from(holds(a & exponent, a & mantissa)));
    };
    match un {
        Un::Neg if ty.is_float() => lane.map(|[a]| a ^ sign),
        Un::Abs if ty.is_float() => lane.map(|[a]| a & !sign),
        Un::Neg => lane.map(|[a]| a.wrapping_neg() & all),
        Un::Abs => lane.map(|[a]| sign_extend(a, bits).unsigned_abs() & all),
        Un::Not => lane.map(|[a]| !a & all),
        Un::Clz => lane.rarely(|[a]| u64::from(a.leading_zeros() + bits - 64)),
        Un::Popc => lane.rarely(|[a]| u64::from(a.count_ones())),
        Un::Brev => lane.rarely(|[a]| a.reverse_bits() >> (64 - bits)),
        Un::Sqrt if ty == Ty::F32 => lane.f32(|[a]| a.sqrt()),
        Un::Sqrt => lane.f64(|[a]| a.sqrt()),
        Un::Rcp if ty == Ty::F32 => lane.f32(|[a]| 1.0 / a),
        Un::Rcp => lane.f64(|[a]| 1.0 / a),
        Un::IsFinite => test(lane, &|e, _| e != exponent),
        Un::IsInfinite => test(lane, &|e, m| e == exponent && m == 0),
        Un::IsNumber => test(lane, &|e, m| e != exponent || m == 0),
        Un::IsNan => test(lane, &|e, m| e == exponent && m != 0),
        Un::IsNormal => test(lane, &|e, _| e != exponent && e != 0),
        Un::IsSubnormal => test(lane, &|e, m| e == 0 && m != 0),
    }
}

/// The smaller or larger of two numbers as PTX orders them: -0 below +0; a NaN gives the other unless `strict`.
macro_rules! extremum {
    ($lane:expr, $float:ty, $bits:ty, $nan:expr, $strict:expr, $max:expr) => {
        $lane.rarely(|[a, b]| {
            let (x, y) = (
                <$float>::from_bits(a as $bits),
                <$float>::from_bits(b as $bits),
            );
            let nan = x.is_nan() as u8 + y.is_nan() as u8;
            if nan == 2 || nan == 1 && $strict {
                $nan
            } else if nan == 1 {
                if x.is_nan() { b } else { a }
            } else if (x < y || x == y && x.is_sign_negative()) != $max {
                a
            } else {
                b
            }
        })
    };
}

#[inline(always)]
fn binary_f32<const VECTORS: bool>(lane: &mut Lanes<VECTORS>, bin: Bin) {
    match bin {
        Bin::Add => lane.f32(|[a, b]| a + b),
        Bin::Sub => lane.f32(|[a, b]| a - b),
        Bin::Div => lane.f32(|[a, b]| a / b),
        Bin::Min => extremum!(lane, f32, u32, NAN_32, false, false),
        Bin::Max => extremum!(lane, f32, u32, NAN_32, false, true),
        Bin::MinNan => extremum!(lane, f32, u32, NAN_32, true, false),
        Bin::MaxNan => extremum!(lane, f32, u32, NAN_32, true, true),
        Bin::CopySign => lane.f32(|[a, b]| a.copysign(b)),
        _ => lane.f32(|[a, b]| a * b),
    }
}

#[inline(always)]
fn binary_f64<const VECTORS: bool>(lane: &mut Lanes<VECTORS>, bin: Bin) {
    match bin {
        Bin::Add => lane.f64(|[a, b]| a + b),
        Bin::Sub => lane.f64(|[a, b]| a - b),
        Bin::Div => lane.f64(|[a, b]| a / b),
        Bin::Min => extremum!(lane, f64, u64, NAN_64, false, false),
        Bin::Max => extremum!(lane, f64, u64, NAN_64, false, true),
        Bin::MinNan => extremum!(lane, f64, u64, NAN_64, true, false),
        Bin::MaxNan => extremum!(lane, f64, u64, NAN_64, true, true),
        Bin::CopySign => lane.f64(|[a, b]| a.copysign(b)),
        _ => lane.f64(|[a, b]| a * b),
    }
}

#[inline(always)]
fn binary_int<const VECTORS: bool>(lane: &mut Lanes<VECTORS>, bin: Bin, ty: Ty) {
    let (bits, all, signed) = (ty.bits(), ty.mask(), ty.is_signed());
    let signedness = ty.signedness();
    let s = |value| sign_extend(value, bits);
    match bin {
        Bin::Add => lane.map(|[a, b]| a.wrapping_add(b) & all),
        Bin::Sub => lane.map(|[a, b]| a.wrapping_sub(b) & all),
        Bin::Mul => lane.map(|[a, b]| a.wrapping_mul(b) & all),
        Bin::MulHi => lane.rarely(|[a, b]| mul_high(a, b, bits, signedness)),
        Bin::MulWide => lane.map(|[a, b]| mul_wide(a, b, bits, signedness)),
        // Division by zero gives all ones, as GPUs do.
        Bin::Div if signed => lane.rarely(|[a, b]| match s(b) {
            0 => all,
            b => s(a).wrapping_div(b) as u64 & all,
        }),
        Bin::Div => lane.rarely(|[a, b]| a.checked_div(b).unwrap_or(all)),
        Bin::Rem if signed => lane.rarely(|[a, b]| match s(b) {
            0 => a,
            b => s(a).wrapping_rem(b) as u64 & all,
        }),
        Bin::Rem => lane.rarely(|[a, b]| a.checked_rem(b).unwrap_or(a)),
        Bin::Min | Bin::MinNan if signed => lane.map(|[a, b]| if s(a) < s(b) { a } else { b }),
        Bin::Max | Bin::MaxNan if signed => lane.map(|[a, b]| if s(a) > s(b) { a } else { b }),
        Bin::Min | Bin::MinNan => lane.map(|[a, b]| a.min(b)),
        Bin::Max | Bin::MaxNan => lane.map(|[a, b]| a.max(b)),
        Bin::And => lane.map(|[a, b]| a & b),
        Bin::Or => lane.map(|[a, b]| a | b),
        Bin::Xor => lane.map(|[a, b]| a ^ b),
        // Amounts beyond the width shift everything out.
        Bin::Shl => lane.map(|[a, b]| if b < 64 { a << b & all } else { 0 }),
        Bin::Shr if signed => lane.map(|[a, b]| (s(a) >> b.min(63)) as u64 & all),
        Bin::Shr => lane.map(|[a, b]| if b < 64 { a >> b } else { 0 }),
        Bin::CopySign => lane.map(|[a, _]| a),
    }
}

#[inline(always)]
fn mul_wide(a: u64, b: u64, bits: u32, signedness: Signedness) -> u64 {
    if signedness == Signedness::Signed {
        let product = sign_extend(a, bits).wrapping_mul(sign_extend(b, bits));
        product as u64 & ones(2 * bits)
    } else {
        a.wrapping_mul(b)
    }
}

#[inline(always)]
fn mul_high(a: u64, b: u64, bits: u32, signedness: Signedness) -> u64 {
    let product = if signedness == Signedness::Signed {
        (i128::from(sign_extend(a, bits)) * i128::from(sign_extend(b, bits))) >> bits
    } else {
        ((u128::from(a) * u128::from(b)) >> bits) as i128
    };
    product as u64 & ones(bits)
}

#[inline(always)]
fn ternary<const VECTORS: bool>(lane: &mut Lanes<VECTORS>, tri: Tri, ty: Ty) {
    let (bits, all, signedness) = (ty.bits(), ty.mask(), ty.signedness());
    match tri {
        Tri::Fma if ty == Ty::F32 => lane.f32(|[a, b, c]| a.mul_add(b, c)),
        Tri::Fma => lane.f64(|[a, b, c]| a.mul_add(b, c)),
        Tri::Mad => lane.map(|[a, b, c]| a.wrapping_mul(b).wrapping_add(c) & all),
        Tri::MadHi => {
            lane.rarely(|[a, b, c]| mul_high(a, b, bits, signedness).wrapping_add(c) & all);
        }
        Tri::MadWide => {
            lane.map(|[a, b, c]| mul_wide(a, b, bits, signedness).wrapping_add(c) & ones(2 * bits))
        }
        Tri::Extract => lane.rarely(|[a, from, length]| extract(a, from, length, ty)),
        Tri::Insert => lane.rarely(|[a, b, from, length]| {
            let (from, length) = ((from & 0xff) as u32, (length & 0xff) as u32);
            let field = if from >= bits {
                0
            } else {
                (ones(length) << from) & all
            };
            b & !field | a.checked_shl(from).unwrap_or(0) & field
        }),
        Tri::Permute => lane.rarely(|[a, b, selector]| permute(a | b << 32, selector)),
        Tri::Logic => lane.rarely(|[a, b, c, table]| {
            (0..8)
                .filter(|index| table >> index & 1 == 1)
                .fold(0, |sum, index| {
                    let pick = |value: u64, bit: u64| if index & bit != 0 { value } else { !value };
                    sum | pick(a, 4) & pick(b, 2) & pick(c, 1)
                })
                & all
        }),
        Tri::ShiftLeftWrap => lane.rarely(|[a, b, n]| (a | b << 32) << (n & 31) >> 32),
        Tri::ShiftLeftClamp => lane.rarely(|[a, b, n]| (a | b << 32) << n.min(32) >> 32),
        Tri::ShiftRightWrap => lane.rarely(|[a, b, n]| (a | b << 32) >> (n & 31) & all),
        Tri::ShiftRightClamp => lane.rarely(|[a, b, n]| (a | b << 32) >> n.min(32) & all),
        Tri::Select => lane.map(|[a, b, c]| if c == 1 { a } else { b }),
        Tri::SelectSign if ty == Ty::F32 => {
            lane.rarely(|[a, b, c]| {
                if f32::from_bits(c as u32) >= 0.0 {
                    a
                } else {
                    b
                }
            });
        }
        Tri::SelectSign => lane.rarely(|[a, b, c]| if sign_extend(c, bits) >= 0 { a } else { b }),
    }
}

fn extract(a: u64, from: u64, length: u64, ty: Ty) -> u64 {
    let (bits, signed) = (ty.bits(), ty.is_signed());
    let (from, length) = ((from & 0xff) as u32, (length & 0xff) as u32);
    let shifted = match signed {
        true => sign_extend(a, bits) >> from.min(63),
        false => a.checked_shr(from).unwrap_or(0) as i64,
    };
    match length {
        0 => 0,
        length if length >= 64 => shifted as u64 & ones(bits),
        length if signed => sign_extend(shifted as u64, length) as u64 & ones(bits),
        length => shifted as u64 & ones(length),
    }
}

fn permute(bytes: u64, selector: u64) -> u64 {
    (0..4).fold(0, |result, index| {
        let choice = selector >> (4 * index);
        let byte = bytes >> (8 * (choice & 7)) & 0xff;
        let byte = if choice & 8 == 0 {
            byte
        } else {
            (byte >> 7) * 0xff
        };
        result | byte << (8 * index)
    })
}

#[inline(always)]
fn compare<const VECTORS: bool>(lane: &mut Lanes<VECTORS>, cmp: Cmp, order: FloatOrder, ty: Ty) {
    let unordered = order == FloatOrder::Unordered;
    macro_rules! ordered {
        ($value:expr, $ordered:expr) => {{
            let value = $value;
            let ordered = $ordered;
            match cmp {
                Cmp::Eq => lane.map(|[a, b]| u64::from(ordered(a, b, value(a) == value(b)))),
                Cmp::Ne => lane.map(|[a, b]| u64::from(ordered(a, b, value(a) != value(b)))),
                Cmp::Lt => lane.map(|[a, b]| u64::from(ordered(a, b, value(a) < value(b)))),
                Cmp::Le => lane.map(|[a, b]| u64::from(ordered(a, b, value(a) <= value(b)))),
                Cmp::Gt => lane.map(|[a, b]| u64::from(ordered(a, b, value(a) > value(b)))),
                Cmp::Ge => lane.map(|[a, b]| u64::from(ordered(a, b, value(a) >= value(b)))),
                Cmp::Num => lane.map(|[a, b]| u64::from(ordered(a, b, true))),
                Cmp::Nan => lane.map(|[a, b]| u64::from(!ordered(a, b, true))),
            }
        }};
    }
    let bits = ty.bits();
    match ty {
        Ty::F32 => {
            let value = |a: u64| f32::from_bits(a as u32);
            let nan = |a, b| value(a).is_nan() || value(b).is_nan();
            ordered!(value, |a, b, holds| if nan(a, b) {
                unordered
            } else {
                holds
            });
        }
        Ty::F64 => {
            let nan = |a, b| f64::from_bits(a).is_nan() || f64::from_bits(b).is_nan();
            ordered!(f64::from_bits, |a, b, holds| if nan(a, b) {
                unordered
            } else {
                holds
            });
        }
        ty if ty.is_signed() => ordered!(|a| sign_extend(a, bits), |_, _, holds: bool| holds),
        _ => ordered!(|a: u64| a, |_, _, holds: bool| holds),
    }
}
