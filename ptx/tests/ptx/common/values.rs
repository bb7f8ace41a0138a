//! Instructions on combinations of values that matter.

use super::{launch, module, pointers, seed};
use torre_ptx::Device;

/// The kind of an operand.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Int(u32),
    F32,
    F64,
    Pred,
}

use Kind::{F32, F64, Int, Pred};

impl Kind {
    fn bits(self) -> u32 {
        match self {
            Int(bits) => bits,
            F32 => 32,
            F64 => 64,
            Pred => 1,
        }
    }

    /// Bits of values that matter.
    fn values(self) -> Vec<u64> {
        let ones = if self.bits() == 64 {
            u64::MAX
        } else {
            (1 << self.bits()) - 1
        };
        match self {
            Int(_) => [
                0,
                1,
                2,
                3,
                7,
                31,
                32,
                33,
                0xff,
                0x8000,
                0x7fff,
                0xdead_beef,
                0x0123_4567_89ab_cdef,
                1 << 31,
                1 << 63,
                u64::MAX,
                u64::MAX - 1,
                ones >> 1,
                (ones >> 1) + 1,
            ]
            .iter()
            .map(|value| value & ones)
            .collect(),
            F32 => [
                0.0,
                -0.0,
                1.0,
                -1.0,
                0.1,
                2.5,
                -2.5,
                3.5,
                0.49999997,
                1e-42,
                -3e-39,
                1.7e38,
                -3e38,
                16777217.0,
                -2147483648.0,
                4e9,
                1e19,
                f32::INFINITY,
                f32::NEG_INFINITY,
                f32::NAN,
            ]
            .map(|value: f32| u64::from(value.to_bits()))
            .to_vec(),
            F64 => [
                0.0,
                -0.0,
                1.0,
                -1.0,
                0.1,
                2.5,
                -3.5,
                1e-310,
                1.7e308,
                16777217.0,
                -16777217.0,
                1.0 + 1e-9,
                -1.0 - 1e-9,
                9.3e18,
                1e30,
                1e-45,
                -1e-46,
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::NAN,
            ]
            .map(|value: f64| value.to_bits())
            .to_vec(),
            Pred => vec![0, 1],
        }
    }

    fn register(self, name: char) -> String {
        let class = match self.bits() {
            64 => "%d3",
            32 => "%r3",
            16 => "%h",
            _ => "%p",
        };
        format!("{class}{}", name as u32 - 'a' as u32 + 1)
    }

    /// Statements that load a register from `[%d1+offset]`, or store it.
    fn load(self, name: char, offset: usize) -> String {
        let register = self.register(name);
        match self.bits() {
            1 => format!("ld.global.b32 %r20, [%d1+{offset}];\nsetp.ne.s32 {register}, %r20, 0;\n"),
            bits => format!("ld.global.b{bits} {register}, [%d1+{offset}];\n"),
        }
    }

    fn store(self, name: char, offset: usize) -> String {
        let register = self.register(name);
        match self.bits() {
            1 => format!("selp.b32 %r20, 1, 0, {register};\nst.global.b32 [%d1+{offset}], %r20;\n"),
            bits => format!("st.global.b{bits} [%d1+{offset}], {register};\n"),
        }
    }

    /// Whether two results are the same: all NaN are.
    fn same(self, a: u64, b: u64) -> bool {
        match self {
            F32 => a == b || f32::from_bits(a as u32).is_nan() && f32::from_bits(b as u32).is_nan(),
            F64 => a == b || f64::from_bits(a).is_nan() && f64::from_bits(b).is_nan(),
            _ => a == b,
        }
    }
}

/// Runs `text`, in which `$a`, `$b` and `$c` are operands and `$d` is the result, on all combinations of values.
pub fn check(text: &str, operands: &[Kind], result: Kind, rust: impl Fn(&[u64]) -> u64) {
    check_against(text, operands, result, &rust);
}

/// One function for all instructions, so that it is compiled once.
fn check_against(text: &str, operands: &[Kind], result: Kind, rust: &dyn Fn(&[u64]) -> u64) {
    let mut cases: Vec<Vec<u64>> = vec![vec![]];
    for kind in operands {
        let mut values = kind.values();
        if operands.len() > 2 {
            values = values.into_iter().step_by(2).collect();
        }
        cases = cases
            .iter()
            .flat_map(|case| {
                values
                    .iter()
                    .map(move |value| [&case[..], &[*value]].concat())
            })
            .collect();
    }
    let mut statement = text.replace("$d", &result.register('d'));
    let mut loads = String::new();
    for (index, (kind, name)) in operands.iter().zip("abc".chars()).enumerate() {
        statement = statement.replace(&format!("${name}"), &kind.register(name));
        loads += &kind.load(name, 8 * index);
    }
    let body = format!(
        "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.s32 %r1, %r1, %r2, %r3;\n\
         ld.param.u64 %d1, [a];\nmul.wide.u32 %d2, %r1, 32;\nadd.s64 %d1, %d1, %d2;\n{loads}{statement}\n{}",
        result.store('d', 24)
    );
    let module = module(&pointers(&["a"]), &body);
    let blocks = cases.len().div_ceil(64);
    let mut words = vec![0u64; blocks * 64 * 4];
    for (case, words) in cases.iter().zip(words.chunks_exact_mut(4)) {
        words[..case.len()].copy_from_slice(case);
    }
    let mut device = Device::new();
    let buffer = device.upload(&words);
    launch(&mut device, &module, blocks as u32, 64, &[buffer], &seed(0))
        .unwrap_or_else(|fault| panic!("{text}: {fault}"));
    for (case, words) in cases
        .iter()
        .zip(device.download::<u64>(buffer).chunks_exact(4))
    {
        let expected = rust(case);
        assert!(
            result.same(words[3], expected),
            "{text} {case:x?}: {:x}, expected {expected:x}",
            words[3]
        );
    }
}
