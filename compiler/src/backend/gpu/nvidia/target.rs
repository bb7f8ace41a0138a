//! GPUs for which code is generated, and the features of each.
//!
//! LLVM ends the process where an instruction does not exist on its target, so the features that a kernel needs are
//! compared with this table before LLVM sees it.

use crate::backend::gpu::feature::Feature;
use crate::backend::llvm::library::{Error, Target};
use std::fmt;

/// A version of PTX, the assembly language that the driver translates: 86 is 8.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PtxVersion(pub u32);

impl PtxVersion {
    /// The newest version that a driver of some CUDA version, such as 12080 for 12.8, can translate.
    fn of_driver(cuda: u32) -> PtxVersion {
        // The numbers have gone side by side since CUDA 11 and PTX 7, but CUDA 12.6 brought no new version.
        let (major, minor) = (cuda / 1000, cuda % 1000 / 10);
        let minor = match (major, minor) {
            (12, 6..) => minor - 1,
            _ => minor.min(9),
        };
        PtxVersion((major.max(4) - 4) * 10 + minor)
    }
}

impl fmt::Display for PtxVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 10, self.0 % 10)
    }
}

/// The compute capability (major * 10 + minor) and the PTX version from which on a feature is there.
fn since(feature: Feature) -> (u32, PtxVersion) {
    let (capability, version) = match feature {
        Feature::AsyncCopy => (80, 70),
        Feature::SharedBarrier => (80, 71),
        Feature::BulkCopy => (90, 86),
        Feature::Cluster => (90, 81),
        Feature::RegisterShift => (90, 80),
        Feature::PairedSingle => (100, 86),
        Feature::EarlyLaunch => (90, 78),
    };
    (capability, PtxVersion(version))
}

/// Whether a feature is only there in code for one GPU and its family.
fn is_specific(feature: Feature) -> bool {
    feature == Feature::RegisterShift
}

/// A GPU, with the version of PTX that its code is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gpu {
    /// LLVM's name, such as `sm_90`.
    pub name: &'static str,
    /// Major * 10 + minor.
    pub capability: u32,
    /// Whether code for it uses features of this very GPU, and so runs on no other.
    pub specific: bool,
    pub ptx: PtxVersion,
    /// The oldest version of PTX that knows it.
    oldest_ptx: PtxVersion,
    /// Bytes of shared memory that a block can have, beyond 48 KiB on demand.
    pub shared_per_block: u32,
    /// Registers of 32 bits of a multiprocessor.
    pub registers: u32,
    /// Threads that a multiprocessor holds.
    pub threads: u32,
}

const fn gpu(
    name: &'static str,
    capability: u32,
    ptx: u32,
    oldest_ptx: u32,
    shared_kib: u32,
    threads: u32,
) -> Gpu {
    Gpu {
        name,
        capability,
        specific: matches!(name.as_bytes(), [.., b'a']),
        ptx: PtxVersion(ptx),
        oldest_ptx: PtxVersion(oldest_ptx),
        shared_per_block: shared_kib << 10,
        registers: 65536,
        threads,
    }
}

/// Ascending; where a GPU is listed twice, its specific form comes second. The version of PTX leaves room below the
/// newest driver and has all that Torre uses on that GPU.
const GPUS: [Gpu; 13] = [
    gpu("sm_70", 70, 80, 60, 96, 2048),
    gpu("sm_72", 72, 80, 61, 96, 2048),
    gpu("sm_75", 75, 80, 63, 64, 1024),
    gpu("sm_80", 80, 80, 70, 163, 2048),
    gpu("sm_86", 86, 80, 71, 99, 1536),
    gpu("sm_87", 87, 80, 74, 163, 1536),
    gpu("sm_89", 89, 80, 78, 99, 1536),
    gpu("sm_90", 90, 86, 78, 227, 2048),
    gpu("sm_90a", 90, 86, 80, 227, 2048),
    gpu("sm_100", 100, 86, 86, 227, 2048),
    gpu("sm_100a", 100, 86, 86, 227, 2048),
    gpu("sm_120", 120, 87, 87, 99, 1536),
    gpu("sm_120a", 120, 87, 87, 99, 1536),
];

impl Gpu {
    /// All that code can be generated for, oldest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Gpu> {
        GPUS.into_iter()
    }

    /// A GPU by its name, such as `sm_90`; `None` for a name that is not known.
    pub fn named(name: &str) -> Option<Gpu> {
        Self::all().find(|gpu| gpu.name == name)
    }

    /// The target for a device of some compute capability (major * 10 + minor) under a driver of some CUDA
    /// version: the newest that the device can run, in PTX that the driver knows. `None` where there is none.
    pub fn for_device(capability: u32, cuda: u32) -> Option<Gpu> {
        let driver = PtxVersion::of_driver(cuda);
        let gpu = Self::all()
            .filter(|gpu| gpu.capability <= capability && gpu.oldest_ptx <= driver)
            // Specific code runs on its own GPU only.
            .rfind(|gpu| !gpu.specific || gpu.capability == capability)?;
        Some(Gpu {
            ptx: gpu.ptx.min(driver),
            ..gpu
        })
    }

    /// The same GPU without its specific features: later GPUs run such code, too.
    pub fn portable(self) -> Gpu {
        Self::all()
            .find(|gpu| gpu.capability == self.capability && !gpu.specific)
            .map_or(self, |gpu| Gpu {
                ptx: self.ptx,
                ..gpu
            })
    }

    /// Whether code for it may use a feature.
    pub fn has(self, feature: Feature) -> bool {
        let (capability, version) = since(feature);
        self.capability >= capability
            && self.ptx >= version
            && (self.specific || !is_specific(feature))
    }

    /// The target in LLVM's terms.
    pub fn target(self) -> Target {
        Target {
            triple: "nvptx64-nvidia-cuda".to_owned(),
            cpu: self.name.to_owned(),
            features: format!("+ptx{}", self.ptx.0),
        }
    }

    /// Fails where code for it may not use a feature.
    pub fn check(self, feature: Feature) -> Result<(), Error> {
        if self.has(feature) {
            return Ok(());
        }
        Err(Error::Target {
            target: self.to_string(),
            message: format!("it has no {feature}"),
        })
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with PTX {}", self.name, self.ptx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_form_that_device_and_driver_know_is_taken() {
        let found = |capability, cuda| {
            let gpu = Gpu::for_device(capability, cuda)?;
            Some((gpu.name, gpu.ptx.0))
        };
        assert_eq!(found(90, 13000), Some(("sm_90a", 86)));
        assert_eq!(found(90, 12040), Some(("sm_90a", 84)));
        // A driver that does not know the GPU yet, and a GPU that this table does not know.
        assert_eq!(found(100, 12040), Some(("sm_90", 84)));
        assert_eq!(found(121, 13000), Some(("sm_120", 87)));
        assert_eq!(found(103, 12080), Some(("sm_100", 86)));
        assert_eq!(found(75, 12020), Some(("sm_75", 80)));
        assert_eq!(found(61, 12080), None);
        assert_eq!(found(70, 8000), None);
    }

    #[test]
    fn drivers_know_the_versions_that_the_manual_lists() {
        for (cuda, ptx) in [
            (11080, 78),
            (12000, 80),
            (12030, 83),
            (12060, 85),
            (12080, 87),
            (12090, 88),
            (13000, 90),
        ] {
            assert_eq!(PtxVersion::of_driver(cuda), PtxVersion(ptx), "{cuda}");
        }
    }

    #[test]
    fn features_belong_to_gpus() {
        let has = |name, feature| Gpu::named(name).is_some_and(|gpu| gpu.has(feature));
        assert!(has("sm_90", Feature::BulkCopy) && !has("sm_89", Feature::BulkCopy));
        assert!(has("sm_90a", Feature::RegisterShift) && !has("sm_90", Feature::RegisterShift));
        assert_eq!(
            Gpu::named("sm_90a").map(|g| g.portable().name),
            Some("sm_90")
        );
    }
}
