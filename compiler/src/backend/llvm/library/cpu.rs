//! CPUs: their features and their vectors.

use super::handle::take_message;
use super::target::{Target, architecture};
use super::{Error, Library};

/// A CPU: the processor for which code is generated, and the features that the code may use.
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

/// Properties that all processors of a family have in common.
#[derive(Clone, Copy)]
struct Family {
    triple: &'static str,
    vector_bits: u32,
    fma: bool,
    /// Features that the names of its processors do not stand for.
    features: &'static str,
}

const X86: Family = Family {
    triple: "x86_64-unknown-linux-gnu",
    vector_bits: 128,
    fma: false,
    features: "",
};

/// SSE: 128 bits, no fused multiply-add.
const SSE: Family = X86;

/// AVX2 and FMA: 256 bits.
const AVX2: Family = Family {
    vector_bits: 256,
    fma: true,
    ..X86
};

/// AVX-512 F and VL: 512 bits.
const AVX512: Family = Family {
    vector_bits: 512,
    fma: true,
    ..X86
};

/// AArch64 with NEON, which all of its processors have.
const NEON: Family = Family {
    triple: "aarch64-unknown-linux-gnu",
    vector_bits: 128,
    fma: true,
    features: "",
};

/// RISC-V with the extensions that Linux requires. Without that for vectors LLVM splits vectors into scalars.
const RISCV: Family = Family {
    triple: "riscv64-unknown-linux-gnu",
    vector_bits: 128,
    fma: true,
    features: "+m,+a,+f,+d,+c",
};

/// RISC-V with vectors of 128 bits or more.
const RISCV_VECTORS: Family = Family {
    features: "+m,+a,+f,+d,+c,+v",
    ..RISCV
};

/// Processors that can be named as targets: the name, LLVM's name if it is another one, the family.
const CPUS: [(&str, Option<&str>, Family); 40] = [
    ("x86-64", None, SSE),
    ("x86-64-v2", None, SSE),
    ("x86-64-v3", None, AVX2),
    ("x86-64-v4", None, AVX512),
    ("nehalem", None, SSE),
    ("westmere", None, SSE),
    ("sandybridge", None, SSE),
    ("ivybridge", None, SSE),
    ("haswell", None, AVX2),
    ("broadwell", None, AVX2),
    ("skylake", None, AVX2),
    ("alderlake", None, AVX2),
    ("arrowlake", None, AVX2),
    ("skylake-avx512", None, AVX512),
    ("cascadelake", None, AVX512),
    ("cooperlake", None, AVX512),
    ("icelake-client", None, AVX512),
    ("icelake-server", None, AVX512),
    ("tigerlake", None, AVX512),
    ("sapphirerapids", None, AVX512),
    ("emeraldrapids", None, AVX512),
    ("graniterapids", None, AVX512),
    ("znver1", None, AVX2),
    ("znver2", None, AVX2),
    ("znver3", None, AVX2),
    ("znver4", None, AVX512),
    ("znver5", None, AVX512),
    ("aarch64", Some("generic"), NEON),
    ("cortex-a53", None, NEON),
    ("cortex-a72", None, NEON),
    ("cortex-a76", None, NEON),
    ("neoverse-n1", None, NEON),
    ("neoverse-n2", None, NEON),
    ("neoverse-v1", None, NEON),
    ("neoverse-v2", None, NEON),
    ("a64fx", None, NEON),
    ("ampere1", None, NEON),
    ("apple-m1", None, NEON),
    ("riscv64", Some("generic-rv64"), RISCV),
    ("riscv64v", Some("generic-rv64"), RISCV_VECTORS),
];

impl Cpu {
    /// The processor that this process runs on, with the features that the operating system enables.
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
        let alike = |family: &Family| target.architecture() == architecture(family.triple);
        if let Some(family) = [NEON, RISCV].iter().find(|f| alike(f)) {
            return Ok(Self {
                target,
                vector_bits: family.vector_bits,
                fma: family.fma,
            });
        }
        if !alike(&X86) {
            return Err(Error::Target {
                target: target.to_string(),
                message: "of CPUs, x86-64, AArch64 and 64-bit RISC-V are targets".to_owned(),
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

    /// A processor by its name, such as `x86-64-v3`; `None` for a name that is not known.
    pub fn named(name: &str) -> Option<Self> {
        let (_, llvm_name, family) = CPUS.into_iter().find(|(own, ..)| *own == name)?;
        Some(Self {
            target: Target {
                triple: family.triple.to_owned(),
                cpu: llvm_name.unwrap_or(name).to_owned(),
                features: family.features.to_owned(),
            },
            vector_bits: family.vector_bits,
            fma: family.fma,
        })
    }

    /// The names that [`Cpu::named`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        CPUS.into_iter().map(|(cpu, ..)| cpu)
    }

    /// The elements of a vector, if an element has `element_bytes` bytes.
    pub fn lanes(&self, element_bytes: u32) -> u32 {
        self.vector_bits / (8 * element_bytes)
    }
}
