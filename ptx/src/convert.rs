//! Conversions between types.

use std::cmp::Ordering;

use crate::op::{Round, Saturation, Ty, sign_extend};

/// A value of one type as another; narrower integers are extended to 64 bits by their sign or zeros.
pub(crate) fn convert(value: u64, to: Ty, from: Ty, round: Round, saturation: Saturation) -> u64 {
    let saturate = saturation == Saturation::On;
    match (to, from) {
        (Ty::F32, Ty::F32) => {
            let value = f32::from_bits(value as u32);
            let value = integral(f64::from(value), round) as f32;
            u64::from(if saturate { unit(value) } else { value }.to_bits())
        }
        (Ty::F64, Ty::F64) => {
            let value = integral(f64::from_bits(value), round);
            if saturate { unit_f64(value) } else { value }.to_bits()
        }
        (Ty::F64, Ty::F32) => f64::from(f32::from_bits(value as u32)).to_bits(),
        (Ty::F32, Ty::F64) => {
            let value = narrow(f64::from_bits(value), round);
            u64::from(if saturate { unit(value) } else { value }.to_bits())
        }
        (Ty::F32, _) => u64::from(int_to_f32(integer(value, from), round).to_bits()),
        (Ty::F64, _) => int_to_f64(integer(value, from), round).to_bits(),
        (_, Ty::F32) => float_to_int(f64::from(f32::from_bits(value as u32)), to, from, round),
        (_, Ty::F64) => float_to_int(f64::from_bits(value), to, from, round),
        _ => {
            let value = integer(value, from);
            let value = if saturate { clamp(value, to) } else { value };
            truncate(value, to)
        }
    }
}

fn integer(value: u64, ty: Ty) -> i128 {
    let value = value & ty.mask();
    if ty.is_signed() {
        i128::from(sign_extend(value, ty.bits()))
    } else {
        i128::from(value)
    }
}

fn truncate(value: i128, ty: Ty) -> u64 {
    let value = value as u64 & ty.mask();
    if ty.is_signed() {
        sign_extend(value, ty.bits()) as u64
    } else {
        value
    }
}

fn clamp(value: i128, ty: Ty) -> i128 {
    let (low, high) = match ty.is_signed() {
        true => (-(1i128 << (ty.bits() - 1)), (1i128 << (ty.bits() - 1)) - 1),
        false => (0, i128::from(ty.mask())),
    };
    value.clamp(low, high)
}

fn unit(value: f32) -> f32 {
    if value.is_nan() {
        0.0
    } else {
        value.clamp(0.0, 1.0)
    }
}

fn unit_f64(value: f64) -> f64 {
    if value.is_nan() {
        0.0
    } else {
        value.clamp(0.0, 1.0)
    }
}

fn integral(value: f64, round: Round) -> f64 {
    match round {
        Round::NearInt => value.round_ties_even(),
        Round::ZeroInt => value.trunc(),
        Round::DownInt => value.floor(),
        Round::UpInt => value.ceil(),
        _ => value,
    }
}

/// A value of the float type `from`. Values outside of the range give its end; a NaN gives zero or, where 64 bits take
/// part, the bits of the least number of the signed type.
fn float_to_int(value: f64, to: Ty, from: Ty, round: Round) -> u64 {
    if value.is_nan() {
        let narrow = from == Ty::F32 && to.bits() < 64;
        return if narrow {
            0
        } else {
            truncate(1 << (to.bits() - 1), to)
        };
    }
    truncate(clamp(integral(value, round) as i128, to), to)
}

/// A result that was rounded to nearest.
struct Nearest<T> {
    value: T,
    /// How it compares with the exact value, and how that one compares with zero.
    to_exact: Ordering,
    sign: Ordering,
}

impl<T> Nearest<T> {
    /// The result, or its neighbour on the side of the exact value that another rounding asks for.
    fn rounded(self, round: Round, up: fn(T) -> T, down: fn(T) -> T) -> T {
        let wrong = match round {
            Round::Up => Ordering::Less,
            Round::Down => Ordering::Greater,
            Round::Zero if self.sign.is_lt() => Ordering::Less,
            Round::Zero => Ordering::Greater,
            _ => Ordering::Equal,
        };
        match wrong {
            Ordering::Less if self.to_exact == wrong => up(self.value),
            Ordering::Greater if self.to_exact == wrong => down(self.value),
            _ => self.value,
        }
    }
}

fn narrow(value: f64, round: Round) -> f32 {
    let near = value as f32;
    if value.is_nan() || value.is_infinite() {
        return near;
    }
    let compare = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or(Ordering::Equal);
    let nearest = Nearest {
        value: near,
        to_exact: compare(f64::from(near), value),
        sign: compare(value, 0.0),
    };
    nearest.rounded(round, f32::next_up, f32::next_down)
}

fn int_to_f32(value: i128, round: Round) -> f32 {
    let near = value as f32;
    let nearest = Nearest {
        value: near,
        to_exact: (near as i128).cmp(&value),
        sign: value.cmp(&0),
    };
    nearest.rounded(round, f32::next_up, f32::next_down)
}

fn int_to_f64(value: i128, round: Round) -> f64 {
    let near = value as f64;
    let nearest = Nearest {
        value: near,
        to_exact: (near as i128).cmp(&value),
        sign: value.cmp(&0),
    };
    nearest.rounded(round, f64::next_up, f64::next_down)
}
