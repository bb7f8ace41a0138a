//! Conversions between types.

use crate::op::{Round, Ty, sign_extend};

/// A value of one type as another; narrower integers are extended to 64 bits by their sign or zeros.
pub(crate) fn convert(value: u64, to: Ty, from: Ty, round: Round, saturate: bool) -> u64 {
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
        (_, Ty::F32) => float_to_int(f64::from(f32::from_bits(value as u32)), to, true, round),
        (_, Ty::F64) => float_to_int(f64::from_bits(value), to, false, round),
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

/// Floats outside of the range give its end; a NaN gives zero or, where 64 bits take part, the bits of the least
/// number of the signed type.
fn float_to_int(value: f64, to: Ty, single: bool, round: Round) -> u64 {
    if value.is_nan() {
        let narrow = single && to.bits() < 64;
        return if narrow {
            0
        } else {
            truncate(1 << (to.bits() - 1), to)
        };
    }
    truncate(clamp(integral(value, round) as i128, to), to)
}

/// Moves a result that was rounded to nearest to the neighbour that another rounding asks for. `above` says that it
/// lies above the exact value, `below` that it lies below.
fn adjust<T>(
    value: T,
    above: bool,
    below: bool,
    negative: bool,
    round: Round,
    up: fn(T) -> T,
    down: fn(T) -> T,
) -> T {
    let (upwards, downwards) = match round {
        Round::Up => (true, false),
        Round::Down => (false, true),
        Round::Zero => (negative, !negative),
        _ => (false, false),
    };
    if downwards && above {
        down(value)
    } else if upwards && below {
        up(value)
    } else {
        value
    }
}

fn narrow(value: f64, round: Round) -> f32 {
    let near = value as f32;
    if value.is_nan() || value.is_infinite() {
        return near;
    }
    let (above, below) = (f64::from(near) > value, f64::from(near) < value);
    adjust(
        near,
        above,
        below,
        value < 0.0,
        round,
        f32::next_up,
        f32::next_down,
    )
}

fn int_to_f32(value: i128, round: Round) -> f32 {
    let near = value as f32;
    let (above, below) = (near as i128 > value, (near as i128) < value);
    adjust(
        near,
        above,
        below,
        value < 0,
        round,
        f32::next_up,
        f32::next_down,
    )
}

fn int_to_f64(value: i128, round: Round) -> f64 {
    let near = value as f64;
    let (above, below) = (near as i128 > value, (near as i128) < value);
    adjust(
        near,
        above,
        below,
        value < 0,
        round,
        f64::next_up,
        f64::next_down,
    )
}
