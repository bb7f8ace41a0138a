//! Every instruction on registers against Rust, over combinations of values that matter.

use crate::common::values::Kind::{self, F32, F64, Int, Pred};
use crate::common::values::check;

fn f(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn g(value: f32) -> u64 {
    u64::from(value.to_bits())
}

fn d(bits: u64) -> f64 {
    f64::from_bits(bits)
}

fn w(value: i32) -> u64 {
    u64::from(value as u32)
}

fn s(bits: u64) -> i32 {
    bits as i32
}

#[test]
fn floats() {
    let (one, two, three) = ([F32], [F32; 2], [F32; 3]);
    check(
        "add.rn.f32 $d, $a, $b;",
        &two,
        F32,
        |x| g(f(x[0]) + f(x[1])),
    );
    check(
        "sub.rn.f32 $d, $a, $b;",
        &two,
        F32,
        |x| g(f(x[0]) - f(x[1])),
    );
    check(
        "mul.rn.f32 $d, $a, $b;",
        &two,
        F32,
        |x| g(f(x[0]) * f(x[1])),
    );
    check(
        "div.rn.f32 $d, $a, $b;",
        &two,
        F32,
        |x| g(f(x[0]) / f(x[1])),
    );
    check("fma.rn.f32 $d, $a, $b, $c;", &three, F32, |x| {
        g(f(x[0]).mul_add(f(x[1]), f(x[2])))
    });
    check("sqrt.rn.f32 $d, $a;", &one, F32, |x| g(f(x[0]).sqrt()));
    check("rcp.rn.f32 $d, $a;", &one, F32, |x| g(1.0 / f(x[0])));
    check("neg.f32 $d, $a;", &one, F32, |x| g(-f(x[0])));
    check("abs.f32 $d, $a;", &one, F32, |x| g(f(x[0]).abs()));
    check("copysign.f32 $d, $a, $b;", &two, F32, |x| {
        g(f(x[1]).copysign(f(x[0])))
    });
    let zeros = |x: &[u64]| f(x[0]) == 0.0 && f(x[1]) == 0.0;
    check("min.f32 $d, $a, $b;", &two, F32, |x| {
        if zeros(x) {
            x[0] | x[1]
        } else {
            g(f(x[0]).min(f(x[1])))
        }
    });
    check("max.f32 $d, $a, $b;", &two, F32, |x| {
        if zeros(x) {
            x[0] & x[1]
        } else {
            g(f(x[0]).max(f(x[1])))
        }
    });
    let nan = |x: &[u64]| f(x[0]).is_nan() || f(x[1]).is_nan();
    check("max.NaN.f32 $d, $a, $b;", &two, F32, |x| {
        match (nan(x), zeros(x)) {
            (true, _) => 0x7fff_ffff,
            (_, true) => x[0] & x[1],
            _ => g(f(x[0]).max(f(x[1]))),
        }
    });
    let (one, two, three) = ([F64], [F64; 2], [F64; 3]);
    check("add.rn.f64 $d, $a, $b;", &two, F64, |x| {
        (d(x[0]) + d(x[1])).to_bits()
    });
    check("sub.rn.f64 $d, $a, $b;", &two, F64, |x| {
        (d(x[0]) - d(x[1])).to_bits()
    });
    check("mul.rn.f64 $d, $a, $b;", &two, F64, |x| {
        (d(x[0]) * d(x[1])).to_bits()
    });
    check("div.rn.f64 $d, $a, $b;", &two, F64, |x| {
        (d(x[0]) / d(x[1])).to_bits()
    });
    check("fma.rn.f64 $d, $a, $b, $c;", &three, F64, |x| {
        d(x[0]).mul_add(d(x[1]), d(x[2])).to_bits()
    });
    check("sqrt.rn.f64 $d, $a;", &one, F64, |x| {
        d(x[0]).sqrt().to_bits()
    });
    check("rcp.rn.f64 $d, $a;", &one, F64, |x| {
        (1.0 / d(x[0])).to_bits()
    });
    check("neg.f64 $d, $a;", &one, F64, |x| (-d(x[0])).to_bits());
    check("testp.subnormal.f64 $d, $a;", &one, Pred, |x| {
        u64::from(d(x[0]).is_subnormal())
    });
    check("testp.finite.f64 $d, $a;", &one, Pred, |x| {
        u64::from(d(x[0]).is_finite())
    });
    check("testp.normal.f32 $d, $a;", &[F32], Pred, |x| {
        u64::from(f(x[0]).is_normal())
    });
    check("testp.notanumber.f32 $d, $a;", &[F32], Pred, |x| {
        u64::from(f(x[0]).is_nan())
    });
    check("testp.infinite.f32 $d, $a;", &[F32], Pred, |x| {
        u64::from(f(x[0]).is_infinite())
    });
    check("testp.number.f32 $d, $a;", &[F32], Pred, |x| {
        u64::from(!f(x[0]).is_nan())
    });
}

#[test]
fn integers() {
    let (one, two, three) = ([Int(32)], [Int(32); 2], [Int(32); 3]);
    check("add.s32 $d, $a, $b;", &two, Int(32), |x| {
        w(s(x[0]).wrapping_add(s(x[1])))
    });
    check("sub.u32 $d, $a, $b;", &two, Int(32), |x| {
        w(s(x[0]).wrapping_sub(s(x[1])))
    });
    check("mul.lo.s32 $d, $a, $b;", &two, Int(32), |x| {
        w(s(x[0]).wrapping_mul(s(x[1])))
    });
    check("mul.hi.s32 $d, $a, $b;", &two, Int(32), |x| {
        w(((i64::from(s(x[0])) * i64::from(s(x[1]))) >> 32) as i32)
    });
    check("mul.hi.u32 $d, $a, $b;", &two, Int(32), |x| {
        (x[0] * x[1]) >> 32
    });
    check("mul.wide.s32 $d, $a, $b;", &two, Int(64), |x| {
        (i64::from(s(x[0])) * i64::from(s(x[1]))) as u64
    });
    check("mul.wide.u32 $d, $a, $b;", &two, Int(64), |x| x[0] * x[1]);
    check("mad.lo.s32 $d, $a, $b, $c;", &three, Int(32), |x| {
        w(s(x[0]).wrapping_mul(s(x[1])).wrapping_add(s(x[2])))
    });
    check(
        "mad.wide.u32 $d, $a, $b, $c;",
        &[Int(32), Int(32), Int(64)],
        Int(64),
        |x| (x[0] * x[1]).wrapping_add(x[2]),
    );
    check("mul.hi.u64 $d, $a, $b;", &[Int(64); 2], Int(64), |x| {
        ((u128::from(x[0]) * u128::from(x[1])) >> 64) as u64
    });
    check("mul.hi.s64 $d, $a, $b;", &[Int(64); 2], Int(64), |x| {
        ((i128::from(x[0] as i64) * i128::from(x[1] as i64)) >> 64) as u64
    });
    check("mul.wide.s16 $d, $a, $b;", &[Int(16); 2], Int(32), |x| {
        w(i32::from(x[0] as i16) * i32::from(x[1] as i16))
    });
    check("add.s16 $d, $a, $b;", &[Int(16); 2], Int(16), |x| {
        u64::from((x[0] as u16).wrapping_add(x[1] as u16))
    });
    let by = |x: u64| if x == 0 { 1 } else { x };
    check(
        "max.u32 $b, $b, 1;\ndiv.u32 $d, $a, $b;",
        &two,
        Int(32),
        |x| x[0] / by(x[1]),
    );
    check(
        "max.u32 $b, $b, 1;\nrem.u32 $d, $a, $b;",
        &two,
        Int(32),
        |x| x[0] % by(x[1]),
    );
    check(
        "max.u32 $b, $b, 1;\ndiv.s32 $d, $a, $b;",
        &two,
        Int(32),
        |x| w(s(x[0]).wrapping_div(s(by(x[1])))),
    );
    check(
        "max.u64 $b, $b, 1;\nrem.s64 $d, $a, $b;",
        &[Int(64); 2],
        Int(64),
        |x| (x[0] as i64).wrapping_rem(by(x[1]) as i64) as u64,
    );
    check("min.s32 $d, $a, $b;", &two, Int(32), |x| {
        w(s(x[0]).min(s(x[1])))
    });
    check("max.s64 $d, $a, $b;", &[Int(64); 2], Int(64), |x| {
        (x[0] as i64).max(x[1] as i64) as u64
    });
    check("max.u32 $d, $a, $b;", &two, Int(32), |x| x[0].max(x[1]));
    check("abs.s32 $d, $a;", &one, Int(32), |x| {
        w(s(x[0]).wrapping_abs())
    });
    check("neg.s32 $d, $a;", &one, Int(32), |x| {
        w(s(x[0]).wrapping_neg())
    });
    check("and.b32 $d, $a, $b;", &two, Int(32), |x| x[0] & x[1]);
    check("or.b64 $d, $a, $b;", &[Int(64); 2], Int(64), |x| {
        x[0] | x[1]
    });
    check("xor.b16 $d, $a, $b;", &[Int(16); 2], Int(16), |x| {
        x[0] ^ x[1]
    });
    check("not.b32 $d, $a;", &one, Int(32), |x| {
        u64::from(!(x[0] as u32))
    });
    check("not.pred $d, $a;", &[Pred], Pred, |x| 1 - x[0]);
    check("and.pred $d, $a, $b;", &[Pred; 2], Pred, |x| x[0] & x[1]);
    check("shl.b32 $d, $a, $b;", &two, Int(32), |x| {
        if x[1] < 32 {
            u64::from((x[0] as u32) << x[1])
        } else {
            0
        }
    });
    check("shr.u64 $d, $a, $b;", &[Int(64), Int(32)], Int(64), |x| {
        if x[1] < 64 { x[0] >> x[1] } else { 0 }
    });
    check("shr.s32 $d, $a, $b;", &two, Int(32), |x| {
        w(s(x[0]) >> x[1].min(31))
    });
    check("clz.b64 $d, $a;", &[Int(64)], Int(32), |x| {
        u64::from(x[0].leading_zeros())
    });
    check("clz.b32 $d, $a;", &one, Int(32), |x| {
        u64::from((x[0] as u32).leading_zeros())
    });
    check("popc.b32 $d, $a;", &one, Int(32), |x| {
        u64::from(x[0].count_ones())
    });
    check("brev.b32 $d, $a;", &one, Int(32), |x| {
        u64::from((x[0] as u32).reverse_bits())
    });
    let field = |x: &[u64]| (x[1] & 0xff, x[2] & 0xff);
    check("bfe.u32 $d, $a, $b, $c;", &three, Int(32), |x| {
        let (from, length) = field(x);
        (0..32)
            .filter(|i| *i < length && from + i < 32)
            .fold(0, |sum, i| sum | (x[0] >> (from + i) & 1) << i)
    });
    check("bfe.s32 $d, $a, $b, $c;", &three, Int(32), |x| {
        let (from, length) = field(x);
        let sign = if length == 0 {
            0
        } else {
            x[0] >> (from + length - 1).min(31) & 1
        };
        (0..32).fold(0, |sum, i| {
            sum | if i < length && from + i < 32 {
                x[0] >> (from + i) & 1
            } else {
                sign
            } << i
        })
    });
    check("bfi.b32 $d, $a, $b, 5, 9;", &two, Int(32), |x| {
        x[1] & !(0x1ff << 5) | (x[0] & 0x1ff) << 5
    });
    check("bfi.b32 $d, $a, 77, $b, 40;", &two, Int(32), |x| {
        let from = x[1] & 0xff;
        if from > 31 {
            77
        } else {
            (77 & ((1 << from) - 1)) | u64::from((x[0] as u32) << from)
        }
    });
    check("prmt.b32 $d, $a, $b, 0x4bf0;", &two, Int(32), |x| {
        let byte = |value: u64, index: u32| value >> (8 * index) & 0xff;
        let sign = |value: u64| if value & 0x80 == 0 { 0 } else { 0xff };
        byte(x[0], 0) | sign(byte(x[1], 3)) << 8 | sign(byte(x[0], 3)) << 16 | byte(x[1], 0) << 24
    });
    check("shf.l.wrap.b32 $d, $a, $b, $c;", &three, Int(32), |x| {
        ((x[1] << 32 | x[0]) << (x[2] & 31)) >> 32
    });
    check("shf.r.clamp.b32 $d, $a, $b, $c;", &three, Int(32), |x| {
        (x[1] << 32 | x[0]) >> x[2].min(32) & 0xffff_ffff
    });
    check("lop3.b32 $d, $a, $b, $c, 0xd8;", &three, Int(32), |x| {
        // 0xd8 takes b where c, a elsewhere.
        x[1] & x[2] | x[0] & !x[2]
    });
    check(
        "mov.b64 {%r20, %r21}, $a;\nmov.b64 $d, {%r21, %r20};",
        &[Int(64)],
        Int(64),
        |x| x[0].rotate_left(32),
    );
    check(
        "mov.b32 {%h8, %h9}, $a;\nmov.b32 $d, {%h9, %h8};",
        &one,
        Int(32),
        |x| u64::from((x[0] as u32).rotate_left(16)),
    );
}

#[test]
fn comparisons() {
    for (name, holds) in [
        ("eq", [false, true, false]),
        ("ne", [true, false, true]),
        ("lt", [true, false, false]),
        ("le", [true, true, false]),
        ("gt", [false, false, true]),
        ("ge", [false, true, true]),
    ] {
        let truth = |order: Option<std::cmp::Ordering>, nan: bool| match order {
            Some(order) => u64::from(holds[(order as i8 + 1) as usize]),
            None => u64::from(nan),
        };
        let set = |ty: &str, kind: Kind, rust: &dyn Fn(&[u64]) -> u64| {
            check(
                &format!("setp.{name}.{ty} $d, $a, $b;"),
                &[kind; 2],
                Pred,
                rust,
            );
        };
        set("s32", Int(32), &|x| {
            truth(Some(s(x[0]).cmp(&s(x[1]))), false)
        });
        set("u32", Int(32), &|x| truth(Some(x[0].cmp(&x[1])), false));
        set("s64", Int(64), &|x| {
            truth(Some((x[0] as i64).cmp(&(x[1] as i64))), false)
        });
        set("u16", Int(16), &|x| truth(Some(x[0].cmp(&x[1])), false));
        // PTX's plain `ne` is false for NaN, unlike Rust's.
        set("f32", F32, &|x| truth(f(x[0]).partial_cmp(&f(x[1])), false));
        set("f64", F64, &|x| truth(d(x[0]).partial_cmp(&d(x[1])), false));
        check(
            &format!("setp.{name}u.f32 $d, $a, $b;"),
            &[F32; 2],
            Pred,
            |x| truth(f(x[0]).partial_cmp(&f(x[1])), true),
        );
        check(
            &format!("set.{name}.u32.s32 $d, $a, $b;"),
            &[Int(32); 2],
            Int(32),
            |x| truth(Some(s(x[0]).cmp(&s(x[1]))), false) * 0xffff_ffff,
        );
    }
    let less = |x: &[u64]| s(x[0]) < s(x[1]);
    let mixed = [Int(32), Int(32), Pred];
    check("setp.lt.and.s32 $d, $a, $b, $c;", &mixed, Pred, |x| {
        u64::from(less(x) && x[2] == 1)
    });
    check("setp.lt.or.s32 $d, $a, $b, !$c;", &mixed, Pred, |x| {
        u64::from(less(x) || x[2] == 0)
    });
    check(
        "setp.lt.xor.s32 $c, $a, $b, $c;\nmov.pred $d, $c;",
        &mixed,
        Pred,
        |x| u64::from(less(x) != (x[2] == 1)),
    );
    check("setp.lt.and.s32 %p8|$d, $a, $b, $c;", &mixed, Pred, |x| {
        u64::from(!less(x) && x[2] == 1)
    });
    check("setp.lt.s32 %p8|$d, $a, $b;", &mixed[..2], Pred, |x| {
        u64::from(!less(x))
    });
    check("setp.lo.u32 $d, $a, $b;", &[Int(32); 2], Pred, |x| {
        u64::from(x[0] < x[1])
    });
    check("setp.num.f32 $d, $a, $b;", &[F32; 2], Pred, |x| {
        u64::from(!f(x[0]).is_nan() && !f(x[1]).is_nan())
    });
    check("setp.nan.f64 $d, $a, $b;", &[F64; 2], Pred, |x| {
        u64::from(d(x[0]).is_nan() || d(x[1]).is_nan())
    });
    check("set.gt.f32.f32 $d, $a, $b;", &[F32; 2], F32, |x| {
        g(f32::from(f(x[0]) > f(x[1])))
    });
    check("selp.b32 $d, $a, $b, $c;", &mixed, Int(32), |x| {
        if x[2] == 1 { x[0] } else { x[1] }
    });
    check(
        "slct.b32.s32 $d, $a, $b, $c;",
        &[Int(32); 3],
        Int(32),
        |x| if s(x[2]) >= 0 { x[0] } else { x[1] },
    );
    check("slct.f32.f32 $d, $a, $b, $c;", &[F32; 3], F32, |x| {
        if f(x[2]) >= 0.0 { x[0] } else { x[1] }
    });
}

#[test]
fn conversions() {
    let int = [Int(32)];
    check("cvt.s64.s32 $d, $a;", &int, Int(64), |x| {
        i64::from(s(x[0])) as u64
    });
    check("cvt.u64.u32 $d, $a;", &int, Int(64), |x| x[0]);
    check("cvt.u32.u64 $d, $a;", &[Int(64)], Int(32), |x| {
        x[0] & 0xffff_ffff
    });
    check("cvt.s32.s8 $d, $a;", &int, Int(32), |x| {
        w(i32::from(x[0] as i8))
    });
    check("cvt.u16.u32 $d, $a;", &int, Int(16), |x| x[0] & 0xffff);
    check("cvt.sat.s16.s32 $d, $a;", &int, Int(16), |x| {
        u64::from(s(x[0]).clamp(-32768, 32767) as u16)
    });
    check("cvt.rn.f32.s32 $d, $a;", &int, F32, |x| g(s(x[0]) as f32));
    check(
        "cvt.rn.f32.u64 $d, $a;",
        &[Int(64)],
        F32,
        |x| g(x[0] as f32),
    );
    check("cvt.rn.f64.s64 $d, $a;", &[Int(64)], F64, |x| {
        (x[0] as i64 as f64).to_bits()
    });
    check("cvt.rz.f32.u32 $d, $a;", &int, F32, |x| {
        let near = x[0] as f32;
        g(if f64::from(near) > x[0] as f64 {
            near.next_down()
        } else {
            near
        })
    });
    check("cvt.rp.f32.s32 $d, $a;", &int, F32, |x| {
        let near = s(x[0]) as f32;
        g(if f64::from(near) < f64::from(s(x[0])) {
            near.next_up()
        } else {
            near
        })
    });
    check("cvt.rzi.s32.f32 $d, $a;", &[F32], Int(32), |x| {
        w(f(x[0]) as i32)
    });
    check("cvt.rni.s32.f32 $d, $a;", &[F32], Int(32), |x| {
        w(f(x[0]).round_ties_even() as i32)
    });
    check("cvt.rmi.u32.f32 $d, $a;", &[F32], Int(32), |x| {
        u64::from(f(x[0]).floor() as u32)
    });
    check("cvt.rpi.s64.f64 $d, $a;", &[F64], Int(64), |x| {
        match d(x[0]) {
            nan if nan.is_nan() => 1 << 63,
            value => value.ceil() as i64 as u64,
        }
    });
    check("cvt.f64.f32 $d, $a;", &[F32], F64, |x| {
        f64::from(f(x[0])).to_bits()
    });
    check("cvt.rn.f32.f64 $d, $a;", &[F64], F32, |x| g(d(x[0]) as f32));
    check("cvt.rm.f32.f64 $d, $a;", &[F64], F32, |x| {
        let near = d(x[0]) as f32;
        g(if f64::from(near) > d(x[0]) {
            near.next_down()
        } else {
            near
        })
    });
    check("cvt.rz.f32.f64 $d, $a;", &[F64], F32, |x| {
        let near = d(x[0]) as f32;
        let outwards = f64::from(near).abs() > d(x[0]).abs();
        g(match outwards {
            true if near > 0.0 => near.next_down(),
            true => near.next_up(),
            false => near,
        })
    });
    check("cvt.rmi.f32.f32 $d, $a;", &[F32], F32, |x| {
        g(f(x[0]).floor())
    });
    check("cvt.rni.f64.f64 $d, $a;", &[F64], F64, |x| {
        d(x[0]).round_ties_even().to_bits()
    });
    check("cvt.sat.f32.f32 $d, $a;", &[F32], F32, |x| {
        g(if f(x[0]).is_nan() {
            0.0
        } else {
            f(x[0]).clamp(0.0, 1.0)
        })
    });
}
