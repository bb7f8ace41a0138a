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
    /// The levels of x86-64 that its processors have, of [`LEVELS`].
    levels: usize,
    /// A feature that they have besides.
    besides: Option<&'static str>,
}

const X86: Family = Family {
    triple: "x86_64-unknown-linux-gnu",
    vector_bits: 128,
    fma: false,
    features: "",
    levels: 1,
    besides: None,
};

/// SSE: 128 bits, no fused multiply-add.
const SSE: Family = X86;

/// The same with the encodings of AVX.
const AVX: Family = Family {
    besides: Some("avx"),
    ..SSE
};

/// AVX2 and FMA: 256 bits.
const AVX2: Family = Family {
    vector_bits: 256,
    fma: true,
    levels: 2,
    ..X86
};

/// AVX-512 F and VL: 512 bits.
const AVX512: Family = Family {
    vector_bits: 512,
    fma: true,
    levels: 3,
    ..X86
};

/// AArch64 with NEON, which all of its processors have.
const NEON: Family = Family {
    triple: "aarch64-unknown-linux-gnu",
    vector_bits: 128,
    fma: true,
    features: "",
    levels: 0,
    besides: None,
};

/// RISC-V with the extensions that Linux requires. Without that for vectors LLVM splits vectors into scalars.
const RISCV: Family = Family {
    triple: "riscv64-unknown-linux-gnu",
    vector_bits: 128,
    fma: true,
    features: "+m,+a,+f,+d,+c",
    levels: 0,
    besides: None,
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
    ("sandybridge", None, AVX),
    ("ivybridge", None, AVX),
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

/// Features by LLVM's names that the levels of x86-64 add to the level before.
const LEVELS: [(&str, &[&str]); 3] = [
    (
        "x86-64-v2",
        &[
            "cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2",
        ],
    ),
    (
        "x86-64-v3",
        &[
            "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave",
        ],
    ),
    (
        "x86-64-v4",
        &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"],
    ),
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
        let has = |feature: &str| has(&target, feature);
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

    /// Whether this processor, whose features have to be listed as for the host, runs code for a named processor.
    pub fn runs(&self, name: &str) -> bool {
        let Some((_, cpu, family)) = CPUS.into_iter().find(|(own, ..)| *own == name) else {
            return false;
        };
        if self.target.architecture() != architecture(family.triple) {
            return false;
        }
        let has_levels = |count: usize| {
            let mut needed = LEVELS[..count].iter().flat_map(|(_, own)| *own);
            needed.all(|feature| has(&self.target, feature))
        };
        match name {
            "x86-64" | "aarch64" | "riscv64" => true,
            "riscv64v" => has(&self.target, "v"),
            _ => match LEVELS.iter().position(|(level, _)| *level == name) {
                Some(last) => has_levels(last + 1),
                // A hypervisor may hide features of a processor and leave its name.
                None => {
                    let besides = family.besides.is_none_or(|own| has(&self.target, own));
                    self.target.cpu == cpu.unwrap_or(name) && has_levels(family.levels) && besides
                }
            },
        }
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

/// Whether the features of a processor have one, by LLVM's name.
fn has(target: &Target, feature: &str) -> bool {
    let mut listed = target.features.split(',');
    listed.any(|entry| entry.strip_prefix('+') == Some(feature))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host with the features of some levels and others besides.
    fn host(levels: usize, more: &str, vector_bits: u32) -> Cpu {
        let own = LEVELS[..levels].iter().flat_map(|(_, own)| *own);
        let own: Vec<String> = own.map(|feature| format!("+{feature}")).collect();
        Cpu {
            target: Target {
                triple: X86.triple.to_owned(),
                cpu: "znver4".to_owned(),
                features: format!("{},{more}", own.join(",")),
            },
            vector_bits,
            fma: levels > 1,
        }
    }

    #[test]
    fn code_runs_where_all_its_features_are() {
        let runs = |host: &Cpu| {
            let names = Cpu::names().filter(|name| host.runs(name));
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(runs(&host(0, "+sse3,-ssse3", 128)), "x86-64");
        assert_eq!(runs(&host(1, "-avx", 128)), "x86-64 x86-64-v2");
        // Some features of a level are not the level, and vectors are as wide as a hypervisor leaves them.
        assert_eq!(runs(&host(1, "+avx,+avx2,+fma", 256)), "x86-64 x86-64-v2");
        let masked = host(2, "-avx512f,+avx512vl", 256);
        assert_eq!(runs(&masked), "x86-64 x86-64-v2 x86-64-v3");
        let whole = "x86-64 x86-64-v2 x86-64-v3 x86-64-v4 znver4";
        assert_eq!(runs(&host(3, "", 512)), whole);
        // A feature beside the level.
        for (more, runs) in [("+avx", true), ("-avx", false)] {
            let mut old = host(1, more, 128);
            old.target.cpu = "sandybridge".to_owned();
            assert_eq!(old.runs("sandybridge"), runs, "{more}");
        }
    }
}
