//! CPUs: their features and their vectors.

use super::handle::take_message;
use super::target::Target;
use super::{Error, Library};

/// A CPU: what code is generated for, and what that code may use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cpu {
    /// The processor in LLVM's terms.
    pub target: Target,
    /// The width of the vectors to generate, in bits: 512, 256 or 128.
    pub vector_bits: u32,
    /// Whether a fused multiply-add is an instruction. Where it is not, it is a call for each element: slow, with the
    /// same result.
    pub fma: bool,
}

/// The vectors of a family of processors.
#[derive(Clone, Copy)]
enum Vectors {
    /// SSE: 128 bits, no fused multiply-add.
    Sse,
    /// AVX2 and FMA: 256 bits.
    Avx2,
    /// AVX-512 F and VL: 512 bits.
    Avx512,
}

/// Processors that can be named as targets, under LLVM's names.
const CPUS: [(&str, Vectors); 27] = [
    ("x86-64", Vectors::Sse),
    ("x86-64-v2", Vectors::Sse),
    ("x86-64-v3", Vectors::Avx2),
    ("x86-64-v4", Vectors::Avx512),
    ("nehalem", Vectors::Sse),
    ("westmere", Vectors::Sse),
    ("sandybridge", Vectors::Sse),
    ("ivybridge", Vectors::Sse),
    ("haswell", Vectors::Avx2),
    ("broadwell", Vectors::Avx2),
    ("skylake", Vectors::Avx2),
    ("alderlake", Vectors::Avx2),
    ("arrowlake", Vectors::Avx2),
    ("skylake-avx512", Vectors::Avx512),
    ("cascadelake", Vectors::Avx512),
    ("cooperlake", Vectors::Avx512),
    ("icelake-client", Vectors::Avx512),
    ("icelake-server", Vectors::Avx512),
    ("tigerlake", Vectors::Avx512),
    ("sapphirerapids", Vectors::Avx512),
    ("emeraldrapids", Vectors::Avx512),
    ("graniterapids", Vectors::Avx512),
    ("znver1", Vectors::Avx2),
    ("znver2", Vectors::Avx2),
    ("znver3", Vectors::Avx2),
    ("znver4", Vectors::Avx512),
    ("znver5", Vectors::Avx512),
];

impl Cpu {
    /// The processor that this process runs on, with what the operating system lets it use.
    pub fn host(library: &Library) -> Result<Self, Error> {
        let api = &library.api;
        // SAFETY: the functions take nothing, and each gives a string that is ours to free.
        let [triple, cpu, features] = unsafe {
            [
                take_message(api, (api.LLVMGetDefaultTargetTriple)()),
                take_message(api, (api.LLVMGetHostCPUName)()),
                take_message(api, (api.LLVMGetHostCPUFeatures)()),
            ]
        };
        let target = Target {
            triple,
            cpu,
            features,
        };
        if !target.triple.starts_with("x86_64-") {
            return Err(Error::Target {
                target: target.to_string(),
                message: "of CPUs, only x86-64 is a target".to_owned(),
            });
        }
        let has = |feature: &str| {
            target
                .features
                .split(',')
                .any(|entry| entry.strip_prefix('+') == Some(feature))
        };
        let fma = has("fma");
        let vector_bits = if has("avx512f") && has("avx512vl") {
            512
        } else if has("avx2") && fma {
            256
        } else {
            128
        };
        Ok(Self {
            target,
            vector_bits,
            fma,
        })
    }

    /// A processor by LLVM's name for it, such as `x86-64-v3`; `None` for a name that is not known.
    pub fn named(name: &str) -> Option<Self> {
        let (cpu, vectors) = CPUS.into_iter().find(|(cpu, _)| *cpu == name)?;
        let (vector_bits, fma) = match vectors {
            Vectors::Sse => (128, false),
            Vectors::Avx2 => (256, true),
            Vectors::Avx512 => (512, true),
        };
        Some(Self {
            target: Target {
                triple: "x86_64-unknown-linux-gnu".to_owned(),
                cpu: cpu.to_owned(),
                features: String::new(),
            },
            vector_bits,
            fma,
        })
    }

    /// The names that [`Cpu::named`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        CPUS.into_iter().map(|(cpu, _)| cpu)
    }

    /// The elements of a vector whose elements have so many bytes.
    pub fn lanes(&self, element_bytes: u32) -> u32 {
        self.vector_bits / (8 * element_bytes)
    }
}
