//! The number of vector multiply-adds that a core does per second, each with an operand from its level-1 cache, as
//! kernels do them.
//!
//! Some processors have two units for vectors of their full length, others one, or take such vectors in two halves; the
//! clock is no safe guide to it. Where vectors are short, two per cycle are assumed.

use std::hint::black_box;
use std::time::Instant;

/// The vectors of a processor.
pub(super) struct Vectors {
    /// Bytes of the longest ones that kernels use.
    pub bytes: usize,
    /// Takes a number of times [`TOGETHER`] multiply-adds of vectors of that length.
    multiply_adds: Option<unsafe fn(u64)>,
    /// Multiplies values in place and adds to them, by vectors of that length.
    in_place: Option<unsafe fn(&mut [Block])>,
}

/// Values that a loop takes at a time.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Block([f32; 64]);

impl Block {
    pub const ONES: Block = Block([1.0; 64]);

    /// Whether one sweep has made these values of ones.
    #[cfg(test)]
    pub fn is_swept(&self) -> bool {
        self.0
            .iter()
            .all(|v| *v == FACTOR.mul_add(1.0, SUMMAND) || *v == FACTOR + SUMMAND)
    }
}

impl Vectors {
    #[cfg(target_arch = "x86_64")]
    pub fn of_this_processor() -> Vectors {
        if std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512vl") {
            Vectors {
                bytes: 64,
                multiply_adds: Some(x86::of_512_bits),
                in_place: Some(x86::in_place_of_512_bits),
            }
        } else if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            Vectors {
                bytes: 32,
                multiply_adds: Some(x86::of_256_bits),
                in_place: Some(x86::in_place_of_256_bits),
            }
        } else {
            Vectors {
                bytes: 16,
                multiply_adds: None,
                in_place: None,
            }
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub fn of_this_processor() -> Vectors {
        Vectors {
            bytes: 16,
            multiply_adds: None,
            in_place: None,
        }
    }

    /// Reads and writes all values, as fast as vectors do.
    pub fn sweep(&self, data: &mut [Block]) {
        if let Some(in_place) = self.in_place {
            // SAFETY: this processor's features were looked at when the function was chosen.
            unsafe { in_place(data) };
            return;
        }
        let [a, b] = black_box([FACTOR, SUMMAND]);
        for v in data.iter_mut().flat_map(|block| &mut block.0) {
            *v = *v * a + b;
        }
    }

    /// Multiply-adds of vectors per second of the core of the calling thread.
    pub fn rate(&self) -> f64 {
        let Some(multiply_adds) = self.multiply_adds else {
            return 2.0 * clock();
        };
        // About 10 microseconds.
        const TIMES: u64 = 6000;
        let mut best = f64::INFINITY;
        // The first ones wake the units for long vectors.
        for _ in 0..200 {
            let start = Instant::now();
            // SAFETY: this processor's features were looked at when the function was chosen.
            unsafe { multiply_adds(TIMES) };
            best = best.min(start.elapsed().as_secs_f64());
        }
        (TIMES * TOGETHER) as f64 / best
    }
}

/// Multiply-adds that do not depend on each other: more than hide the latency of four cycles on two units.
const TOGETHER: u64 = 12;

/// Values stay near 1 for as long as they are measured.
const FACTOR: f32 = 1.000_001;
const SUMMAND: f32 = 1e-9;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Block;
    use std::arch::asm;

    /// Zeros, which are no slower than other numbers.
    #[repr(align(64))]
    struct Operands([u8; 12 * 64]);

    static OPERANDS: Operands = Operands([0; 12 * 64]);

    macro_rules! multiply_adds {
        ($times:expr, $vector:literal, $bytes:literal) => {
            // SAFETY: the instructions read `OPERANDS`, which hold 12 of the longest vectors, and change registers
            // alone.
            unsafe {
                asm!(
                    "vxorps xmm0, xmm0, xmm0", "vxorps xmm1, xmm1, xmm1", "vxorps xmm2, xmm2, xmm2",
                    "vxorps xmm3, xmm3, xmm3", "vxorps xmm4, xmm4, xmm4", "vxorps xmm5, xmm5, xmm5",
                    "vxorps xmm6, xmm6, xmm6", "vxorps xmm7, xmm7, xmm7", "vxorps xmm8, xmm8, xmm8",
                    "vxorps xmm9, xmm9, xmm9", "vxorps xmm10, xmm10, xmm10", "vxorps xmm11, xmm11, xmm11",
                    "vxorps xmm12, xmm12, xmm12",
                    "2:",
                    concat!("vfmadd231ps ", $vector, "0, ", $vector, "12, [{at}]"),
                    concat!("vfmadd231ps ", $vector, "1, ", $vector, "12, [{at} + ", $bytes, "]"),
                    concat!("vfmadd231ps ", $vector, "2, ", $vector, "12, [{at} + 2 * ", $bytes, "]"),
                    concat!("vfmadd231ps ", $vector, "3, ", $vector, "12, [{at} + 3 * ", $bytes, "]"),
                    concat!("vfmadd231ps ", $vector, "4, ", $vector, "12, [{at} + 4 * ", $bytes, "]"),
                    concat!("vfmadd231ps ", $vector, "5, ", $vector, "12, [{at} + 5 * ", $bytes, "]"),
                    concat!("vfmadd231ps ", $vector, "6, ", $vector, "12, [{at} + 6 * ", $bytes, "]"),
                    concat!("vfmadd231ps ", $vector, "7, ", $vector, "12, [{at} + 7 * ", $bytes, "]"),
                    concat!("vfmadd231ps ", $vector, "8, ", $vector, "12, [{at} + 8 * ", $bytes, "]"),
                    concat!("vfmadd231ps ", $vector, "9, ", $vector, "12, [{at} + 9 * ", $bytes, "]"),
                    concat!("vfmadd231ps ", $vector, "10, ", $vector, "12, [{at} + 10 * ", $bytes, "]"),
                    concat!("vfmadd231ps ", $vector, "11, ", $vector, "12, [{at} + 11 * ", $bytes, "]"),
                    "dec {left}",
                    "jnz 2b",
                    at = in(reg) OPERANDS.0.as_ptr(),
                    left = inout(reg) u64::max($times, 1) => _,
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                    out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                    out("xmm12") _,
                    options(nostack, readonly),
                )
            }
        };
    }

    /// Four vectors at a time.
    macro_rules! in_place {
        ($data:expr, $vector:literal, $bytes:literal) => {
            if !$data.is_empty() {
                let factors = [super::FACTOR, super::SUMMAND];
                // SAFETY: the instructions read the two factors, read and write the blocks, each of which is a whole
                // number of four vectors, and change registers alone.
                unsafe {
                    asm!(
                        concat!("vbroadcastss ", $vector, "4, [{factors}]"),
                        concat!("vbroadcastss ", $vector, "5, [{factors} + 4]"),
                        "2:",
                        concat!("vmovups ", $vector, "0, [{at}]"),
                        concat!("vmovups ", $vector, "1, [{at} + ", $bytes, "]"),
                        concat!("vmovups ", $vector, "2, [{at} + 2 * ", $bytes, "]"),
                        concat!("vmovups ", $vector, "3, [{at} + 3 * ", $bytes, "]"),
                        concat!("vfmadd132ps ", $vector, "0, ", $vector, "5, ", $vector, "4"),
                        concat!("vfmadd132ps ", $vector, "1, ", $vector, "5, ", $vector, "4"),
                        concat!("vfmadd132ps ", $vector, "2, ", $vector, "5, ", $vector, "4"),
                        concat!("vfmadd132ps ", $vector, "3, ", $vector, "5, ", $vector, "4"),
                        concat!("vmovups [{at}], ", $vector, "0"),
                        concat!("vmovups [{at} + ", $bytes, "], ", $vector, "1"),
                        concat!("vmovups [{at} + 2 * ", $bytes, "], ", $vector, "2"),
                        concat!("vmovups [{at} + 3 * ", $bytes, "], ", $vector, "3"),
                        concat!("add {at}, 4 * ", $bytes),
                        "dec {left}",
                        "jnz 2b",
                        factors = in(reg) factors.as_ptr(),
                        at = inout(reg) $data.as_mut_ptr() => _,
                        left = inout(reg) size_of_val($data) / (4 * $bytes) => _,
                        out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                        options(nostack),
                    )
                }
            }
        };
    }

    #[target_feature(enable = "avx512f")]
    pub fn in_place_of_512_bits(data: &mut [Block]) {
        in_place!(data, "zmm", 64);
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn in_place_of_256_bits(data: &mut [Block]) {
        in_place!(data, "ymm", 32);
    }

    #[target_feature(enable = "avx512f")]
    pub fn of_512_bits(times: u64) {
        multiply_adds!(times, "zmm", "64");
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn of_256_bits(times: u64) {
        multiply_adds!(times, "ymm", "32");
    }
}

/// Cycles per second, from a chain of dependent operations of known latency.
fn clock() -> f64 {
    let mut best = f64::INFINITY;
    let n = 4_000_000u64;
    for _ in 0..5 {
        let start = Instant::now();
        let mut x = black_box(1u64);
        for _ in 0..n {
            // A multiplication of 64-bit integers takes three cycles on current processors.
            x = black_box_register(x.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        }
        black_box(x);
        best = best.min(start.elapsed().as_secs_f64());
    }
    3.0 * n as f64 / best
}

/// Hides a value from the optimiser without a trip to memory.
#[cfg(target_arch = "x86_64")]
fn black_box_register(mut x: u64) -> u64 {
    // SAFETY: the empty assembly only claims to change the register.
    unsafe { std::arch::asm!("/* {0} */", inout(reg) x, options(nomem, nostack, preserves_flags)) };
    x
}

#[cfg(not(target_arch = "x86_64"))]
fn black_box_register(x: u64) -> u64 {
    black_box(x)
}
