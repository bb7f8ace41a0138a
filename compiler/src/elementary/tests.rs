//! Functions against their exact values.

use super::*;
use crate::real::Real;
use HostUnary as H;
use astro_float_num::{BigFloat, Consts, RoundingMode, Sign};

/// Bits of exact values, more than enough for arguments near multiples of a quarter turn.
const BITS: usize = 320;

const FUNCTIONS: [H; 9] = [
    H::Exp,
    H::Log,
    H::Sin,
    H::Cos,
    H::Tan,
    H::Tanh,
    H::Floor,
    H::Ceil,
    H::Round,
];

/// The results for lists of arguments.
fn run<T: Real>(sequence: &Sequence, arguments: &[&[T]]) -> Vec<T> {
    let mut values: Vec<Vec<T>> = arguments.iter().map(|a| a.to_vec()).collect();
    for op in &sequence.ops {
        let of = |v: Value| values[v.index()].iter().copied();
        let map = |a: Value, f: fn(T) -> T| of(a).map(f).collect::<Vec<T>>();
        let map2 = |a: Value, b: Value, f: fn(T, T) -> T| {
            of(a).zip(of(b)).map(|(a, b)| f(a, b)).collect::<Vec<T>>()
        };
        let result = match *op {
            Op::Const(c) => vec![T::from_f64(c); arguments[0].len()],
            Op::Neg(a) => map(a, T::neg),
            Op::Abs(a) => map(a, T::abs),
            Op::Flush(a) => map(a, T::flush),
            Op::Power2(a) => map(a, T::power2),
            Op::Exponent(a) => map(a, T::exponent),
            Op::Add(a, b) => map2(a, b, T::add),
            Op::Sub(a, b) => map2(a, b, T::sub),
            Op::Mul(a, b) => map2(a, b, T::mul),
            Op::Div(a, b) => map2(a, b, T::div),
            Op::Fma(a, b, c) => of(a)
                .zip(of(b))
                .zip(of(c))
                .map(|((a, b), c)| a.mul_add(b, c))
                .collect(),
            Op::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            } => of(a)
                .zip(of(b))
                .zip(of(then).zip(of(otherwise)))
                .map(|((a, b), (then, otherwise))| if a.compare(cmp, b) { then } else { otherwise })
                .collect(),
            Op::Sqrt(_) | Op::Read(_) | Op::Coef(_) | Op::Base | Op::State(_) => {
                panic!("{op:?} is in no function")
            }
        };
        values.push(result);
    }
    values.swap_remove(sequence.result.index())
}

fn one<T: Real>(op: H, x: T) -> T {
    let sequence = function(op, T::PRECISION).expect("a function");
    run(&sequence, &[&[x]])[0]
}

fn powered<T: Real>(x: T, y: T) -> T {
    run(&power(T::PRECISION), &[&[x], &[y]])[0]
}

/// Numbers between 0 and 1.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / 9007199254740992.0
    }

    fn within(&mut self, [lo, hi]: [f64; 2]) -> f64 {
        lo + (hi - lo) * self.next()
    }
}

/// Arguments that reach all cases of a function: evenly, by magnitude, and near whole multiples of quarter turns.
fn arguments(op: H, precision: Precision, count: usize) -> Vec<f64> {
    let mut draw = Draw(op as u64 + 1);
    let table = tables::of(precision);
    let (even, powers) = match (op, precision) {
        (H::Exp, _) => (table.exp_range, [-60.0, 9.0]),
        (H::Log, Precision::F32) => ([0.5, 2.0], [-149.0, 127.0]),
        (H::Log, Precision::F64) => ([0.5, 2.0], [-1074.0, 1023.0]),
        (H::Tanh, _) => ([-table.tanh_is_1, table.tanh_is_1], [-60.0, 6.0]),
        _ => ([-8.0, 8.0], [-60.0, table.largest_angle.log2()]),
    };
    let mut all = Vec::with_capacity(count);
    while all.len() < count {
        let sign = if draw.next() < 0.5 || op == H::Log {
            1.0
        } else {
            -1.0
        };
        all.push(precision.round(draw.within(even)));
        all.push(precision.round(sign * draw.within(powers).exp2()));
        if matches!(op, H::Sin | H::Cos | H::Tan) {
            let whole = draw
                .within([0.0, table.largest_angle.log2()])
                .exp2()
                .floor();
            let near = precision.round(sign * whole * std::f64::consts::FRAC_PI_2);
            all.push(near.clamp(-table.largest_angle, table.largest_angle));
        }
    }
    all
}

/// The last bit of the format near a number, as a power of 2.
fn last_bit(precision: Precision, value: f64) -> f64 {
    let (bits, least) = match precision {
        Precision::F32 => (23, -149),
        Precision::F64 => (52, -1074),
    };
    // A number that is not normal has a small exponent here.
    let exponent = Real::exponent(value) as i32;
    f64::from((exponent - bits).max(least)).exp2()
}

fn to_f64(x: &BigFloat) -> f64 {
    match x.as_raw_parts() {
        Some((words, _, sign, exponent, _)) => {
            let top = words.last().copied().unwrap_or(0) as f64;
            let sign = if sign == Sign::Neg { -1.0 } else { 1.0 };
            let half = (exponent - 64) / 2;
            sign * top * f64::from(half).exp2() * f64::from(exponent - 64 - half).exp2()
        }
        None => f64::NAN,
    }
}

/// A number exactly; subnormal numbers by way of larger ones.
fn big(x: f64) -> BigFloat {
    let scale = 128f64.exp2();
    match x.abs() < 1e-290 {
        true => BigFloat::from_f64(x * scale, BITS).div(
            &BigFloat::from_f64(scale, BITS),
            BITS,
            RoundingMode::ToEven,
        ),
        false => BigFloat::from_f64(x, BITS),
    }
}

/// The error of a result in units of the last place.
fn error(precision: Precision, exact: &BigFloat, result: f64) -> f64 {
    if result.is_infinite() {
        // A number that is too large for the format is infinite.
        let right = precision.round(to_f64(exact)) == result;
        return if right { 0.0 } else { f64::INFINITY };
    }
    let difference = big(result).sub(exact, BITS, RoundingMode::ToEven);
    (to_f64(&difference) / last_bit(precision, to_f64(exact))).abs()
}

fn exact(op: H, x: f64, consts: &mut Consts) -> BigFloat {
    let round = RoundingMode::ToEven;
    let x = big(x);
    match op {
        H::Exp => x.exp(BITS, round, consts),
        H::Log => x.ln(BITS, round, consts),
        H::Sin => x.sin(BITS, round, consts),
        H::Cos => x.cos(BITS, round, consts),
        H::Tan => x.tan(BITS, round, consts),
        H::Tanh => x.tanh(BITS, round, consts),
        _ => panic!("{op:?} is exact"),
    }
}

/// The bound in the book.
fn bound(op: H) -> f64 {
    match op {
        H::Exp | H::Sin | H::Cos => 1.0,
        H::Log => 1.0,
        H::Tan | H::Tanh => 2.5,
        _ => 0.0,
    }
}

fn largest_error<T: Real>(op: H, count: usize) -> (f64, f64) {
    let given = arguments(op, T::PRECISION, count);
    let typed: Vec<T> = given.iter().map(|x| T::from_f64(*x)).collect();
    let sequence = function(op, T::PRECISION).expect("a function");
    let results = run(&sequence, &[&typed]);
    let mut consts = Consts::new().expect("memory");
    let mut worst = (0.0, 0.0);
    for (x, result) in given.iter().zip(results) {
        let result = result.to_f64();
        let error = match op {
            H::Floor | H::Ceil | H::Round => f64::from(result.to_bits() != op.apply(*x).to_bits()),
            _ => error(T::PRECISION, &exact(op, *x, &mut consts), result),
        };
        // Also where the error is no number.
        if error.is_nan() || error > worst.0 {
            worst = (error, *x);
        }
    }
    worst
}

#[test]
fn errors_stay_within_what_the_book_says() {
    for op in FUNCTIONS {
        let (double, at_double) = largest_error::<f64>(op, 3_000);
        let (single, at_single) = largest_error::<f32>(op, 3_000);
        println!("{op:?}: f64 {double:.3} at {at_double:?}, f32 {single:.3} at {at_single:?}");
        assert!(double <= bound(op), "{op:?} f64: {double} at {at_double:?}");
        assert!(single <= bound(op), "{op:?} f32: {single} at {at_single:?}");
    }
}

/// Many more single-precision arguments, against double precision, whose own error is 2^-29 of theirs.
#[test]
fn errors_of_single_precision_over_many_arguments() {
    for op in FUNCTIONS {
        let sequence = function(op, Precision::F32).expect("a function");
        let (mut worst, mut at) = (0.0, 0.0);
        let given = arguments(op, Precision::F32, 200_000);
        for block in given.chunks(4096) {
            let typed: Vec<f32> = block.iter().map(|x| *x as f32).collect();
            for (x, result) in block.iter().zip(run(&sequence, &[&typed])) {
                let exact = op.apply(*x);
                let infinite = exact.abs() >= f64::from(f32::MAX);
                let error = match infinite {
                    true => f64::from(f64::from(result) != f64::from(exact as f32)),
                    false => (f64::from(result) - exact).abs() / last_bit(Precision::F32, exact),
                };
                if error.is_nan() || error > worst {
                    (worst, at) = (error, *x);
                }
            }
        }
        println!("{op:?}: {worst:.3} at {at:?}");
        assert!(worst <= bound(op) + 1e-3, "{op:?}: {worst} at {at:?}");
    }
}

fn largest_error_of_powers<T: Real>(count: usize) -> (f64, [f64; 2]) {
    let precision = T::PRECISION;
    let mut draw = Draw(7);
    let most = match precision {
        Precision::F32 => 125.0,
        Precision::F64 => 1020.0,
    };
    let mut given = Vec::new();
    for i in 0..count {
        let log: f64 = match i % 3 {
            0 => draw.within([-1.0, 1.0]) * 1e-3,
            1 => draw.within([-1.0, 1.0]),
            _ => draw.within([-most, most]),
        };
        let x = precision.round(log.exp2());
        let y = precision.round(draw.within([-most, most]) / log.abs().max(1e-9));
        given.push([x, y]);
    }
    let [xs, ys] = [0, 1].map(|i| given.iter().map(|g| T::from_f64(g[i])).collect::<Vec<T>>());
    let results = run(&power(precision), &[&xs, &ys]);
    let mut consts = Consts::new().expect("memory");
    let mut worst = (0.0, [0.0; 2]);
    for ([x, y], result) in given.into_iter().zip(results) {
        let [a, b] = [x, y].map(big);
        let exact = a.pow(&b, BITS, RoundingMode::ToEven, &mut consts);
        let error = error(precision, &exact, result.to_f64());
        if error.is_nan() || error > worst.0 {
            worst = (error, [x, y]);
        }
    }
    worst
}

#[test]
fn errors_of_powers_stay_within_what_the_book_says() {
    for (worst, at) in [
        largest_error_of_powers::<f64>(2_000),
        largest_error_of_powers::<f32>(2_000),
    ] {
        println!("power: {worst:.3} at {at:?}");
        assert!(worst <= 1.0, "{worst} at {at:?}");
    }
}

fn special<T: Real>() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let table = tables::of(T::PRECISION);
    let tiny = match T::PRECISION {
        Precision::F32 => f64::from(f32::from_bits(1)),
        Precision::F64 => f64::from_bits(1),
    };
    let beyond = 1.01 * table.largest_angle;
    for (op, x, result) in [
        (H::Exp, 0.0, 1.0),
        (H::Exp, inf, inf),
        (H::Exp, -inf, 0.0),
        (H::Exp, 1e30, inf),
        (H::Exp, -1e30, 0.0),
        (H::Log, 1.0, 0.0),
        (H::Log, 0.0, -inf),
        (H::Log, -0.0, -inf),
        (H::Log, -1.0, nan),
        (H::Log, -inf, nan),
        (H::Log, inf, inf),
        (H::Sin, 0.0, 0.0),
        (H::Sin, -0.0, -0.0),
        (H::Sin, tiny, tiny),
        (H::Sin, inf, nan),
        (H::Sin, beyond, nan),
        (H::Cos, -0.0, 1.0),
        (H::Cos, tiny, 1.0),
        (H::Cos, -inf, nan),
        (H::Cos, -beyond, nan),
        (H::Tan, -0.0, -0.0),
        (H::Tan, inf, nan),
        (H::Tan, beyond, nan),
        (H::Tanh, -0.0, -0.0),
        (H::Tanh, tiny, tiny),
        (H::Tanh, inf, 1.0),
        (H::Tanh, -inf, -1.0),
        (H::Floor, -0.0, -0.0),
        (H::Floor, -0.5, -1.0),
        (H::Floor, inf, inf),
        (H::Ceil, -0.5, -0.0),
        (H::Ceil, 0.5, 1.0),
        (H::Round, -2.5, -3.0),
        (H::Round, 0.5, 1.0),
        (H::Round, -inf, -inf),
    ] {
        let got = one::<T>(op, T::from_f64(x));
        assert_eq!(
            got.bits(),
            T::from_f64(result).bits(),
            "{op:?} of {x:?}: {got:?}"
        );
    }
    for op in FUNCTIONS {
        let got = one::<T>(op, T::from_f64(nan)).to_f64();
        assert!(got.is_nan(), "{op:?} of NaN: {got}");
    }
    for [x, y, result] in [
        [2.0, 10.0, 1024.0],
        [-2.0, 3.0, -8.0],
        [-2.0, 4.0, 16.0],
        [-2.0, -1.0, -0.5],
        [-2.0, 0.5, nan],
        [0.0, 0.5, 0.0],
        [0.0, -0.5, inf],
        [0.0, 0.0, 1.0],
        [nan, 0.0, 1.0],
        [1.0, nan, 1.0],
        [1.0, inf, 1.0],
        [nan, 1.0, nan],
        [0.0, nan, nan],
        [inf, nan, nan],
        [inf, 0.5, inf],
        [inf, -0.5, 0.0],
        [-inf, 3.0, -inf],
        [0.5, inf, 0.0],
        [0.5, -inf, inf],
        [2.0, inf, inf],
        [2.0, 1e30, inf],
        [0.5, 1e30, 0.0],
        [tiny, 0.5, tiny.sqrt()],
        [tiny, 1.0, tiny],
    ] {
        let got = powered::<T>(T::from_f64(x), T::from_f64(y));
        assert_eq!(
            got.bits(),
            T::from_f64(result).bits(),
            "{x:?} ^ {y:?}: {got:?}"
        );
    }
}

#[test]
fn special_values() {
    special::<f32>();
    special::<f64>();
}

#[test]
fn powers_of_2_and_exponents() {
    fn check<T: Real>() {
        let bits = T::PRECISION.power_bits();
        for n in (bits.least as i32..=bits.most as i32).map(f64::from) {
            let power = T::from_f64(n).power2();
            assert_eq!(power.to_f64(), n.exp2());
            assert_eq!(power.exponent().to_f64(), n);
            assert_eq!(power.neg().mul(T::from_f64(1.75)).exponent().to_f64(), n);
        }
        for n in [-1e30, f64::NEG_INFINITY, f64::NAN] {
            assert_eq!(T::from_f64(n).power2().to_f64(), bits.least.exp2());
        }
        for n in [1e30, f64::INFINITY] {
            assert_eq!(T::from_f64(n).power2().to_f64(), bits.most.exp2());
        }
        assert_eq!(T::from_f64(2.5).power2().to_f64(), 8.0);
        for n in [0.0, -0.0, 0.25 * bits.least.exp2()] {
            assert_eq!(T::from_f64(n).exponent().to_f64(), bits.least - 1.0);
        }
        for n in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert_eq!(T::from_f64(n).exponent().to_f64(), bits.most + 1.0);
        }
    }
    check::<f32>();
    check::<f64>();
}
