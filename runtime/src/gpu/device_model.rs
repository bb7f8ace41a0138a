//! The model of a GPU for planning: the GPU that is here, or a usual one of its kind.

use super::code;
use super::device::{Device, DeviceError, Facts};
use torre_compiler::backend::gpu::Gpu;
use torre_compiler::scheme::Precision;
use torre_compiler::tower::block::Block;

/// A GPU, with the rate of its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceModel {
    /// The target of code.
    pub gpu: Gpu,
    pub facts: Facts,
    /// Bytes read and written per second by copies within its memory.
    pub copy_rate: f64,
    /// Bytes per second from page-locked memory of the host, while as many come back, if that was measured: of each
    /// device while all devices of a run do so.
    pub link: Option<f64>,
}

/// A GPU of each kind that is often met, from its maker's data sheets; partitions where these tell of some.
struct Usual {
    capability: u32,
    name: &'static str,
    multiprocessors: u32,
    l2_kib: u64,
    /// Of that cache.
    partitions: u32,
    memory_gb: u64,
    /// GB/s between memory and chip.
    memory_rate: f64,
    mhz: u64,
}

const USUAL: [Usual; 10] = [
    Usual {
        capability: 70,
        name: "Tesla V100",
        multiprocessors: 80,
        l2_kib: 6 << 10,
        partitions: 1,
        memory_gb: 32,
        memory_rate: 900.0,
        mhz: 1530,
    },
    Usual {
        capability: 72,
        name: "Jetson AGX Xavier",
        multiprocessors: 8,
        l2_kib: 512,
        partitions: 1,
        memory_gb: 32,
        memory_rate: 137.0,
        mhz: 1377,
    },
    Usual {
        capability: 75,
        name: "Tesla T4",
        multiprocessors: 40,
        l2_kib: 4 << 10,
        partitions: 1,
        memory_gb: 16,
        memory_rate: 320.0,
        mhz: 1590,
    },
    Usual {
        capability: 80,
        name: "A100",
        multiprocessors: 108,
        l2_kib: 40 << 10,
        partitions: 2,
        memory_gb: 80,
        memory_rate: 2039.0,
        mhz: 1410,
    },
    Usual {
        capability: 86,
        name: "GeForce RTX 3090",
        multiprocessors: 82,
        l2_kib: 6 << 10,
        partitions: 1,
        memory_gb: 24,
        memory_rate: 936.0,
        mhz: 1695,
    },
    Usual {
        capability: 87,
        name: "Jetson AGX Orin",
        multiprocessors: 16,
        l2_kib: 4 << 10,
        partitions: 1,
        memory_gb: 64,
        memory_rate: 205.0,
        mhz: 1300,
    },
    Usual {
        capability: 89,
        name: "GeForce RTX 4090",
        multiprocessors: 128,
        l2_kib: 72 << 10,
        partitions: 1,
        memory_gb: 24,
        memory_rate: 1008.0,
        mhz: 2520,
    },
    Usual {
        capability: 90,
        name: "H200",
        multiprocessors: 132,
        l2_kib: 60 << 10,
        partitions: 2,
        memory_gb: 141,
        memory_rate: 4800.0,
        mhz: 1980,
    },
    Usual {
        capability: 100,
        name: "B200",
        multiprocessors: 148,
        l2_kib: 126 << 10,
        partitions: 1,
        memory_gb: 180,
        memory_rate: 8000.0,
        mhz: 1965,
    },
    Usual {
        capability: 120,
        name: "GeForce RTX 5090",
        multiprocessors: 170,
        l2_kib: 96 << 10,
        partitions: 1,
        memory_gb: 32,
        memory_rate: 1792.0,
        mhz: 2407,
    },
];

/// Share of the rate on a data sheet that copies reach: 4.28 of 4.8 TB/s on an H200.
const COPIES: f64 = 0.89;

/// Share of the rate of copies alone that copies reach beside kernels.
const BESIDE_KERNELS: f64 = 0.95;

/// Bytes in multiples of which GPUs map memory.
const MAPPING: u64 = 2 << 20;

/// Shared memory that a block takes beside the bytes that it asks for.
const PER_BLOCK: u64 = 1 << 10;

impl DeviceModel {
    /// A device whose copies run at some rate, and code for it or for another GPU whose code it runs.
    pub fn of(
        device: &dyn Device,
        gpu: Option<Gpu>,
        copy_rate: f64,
    ) -> Result<DeviceModel, DeviceError> {
        Ok(DeviceModel {
            gpu: gpu.map_or_else(|| code::gpu_of(device), Ok)?,
            facts: device.facts().clone(),
            copy_rate,
            link: None,
        })
    }

    /// A usual one of a kind; `None` where none is known.
    pub fn usual(gpu: Gpu) -> Option<DeviceModel> {
        let own = USUAL.iter().find(|u| u.capability == gpu.capability)?;
        Some(DeviceModel {
            gpu,
            facts: Facts {
                name: own.name.to_owned(),
                capability: gpu.capability,
                // The first that knows this version of PTX.
                cuda: 1000 * (gpu.ptx.0 / 10 + 4) + 10 * (gpu.ptx.0 % 10),
                multiprocessors: own.multiprocessors,
                threads: gpu.threads,
                clock: own.mhz * 1_000_000,
                memory: own.memory_gb * 1_000_000_000,
                l2: own.l2_kib << 10,
                l2_partition: (0..own.multiprocessors)
                    .map(|n| n % own.partitions)
                    .collect(),
                mapping: Some(MAPPING),
            },
            copy_rate: COPIES * own.memory_rate * 1e9,
            link: None,
        })
    }

    /// Bytes per second from page-locked memory of the host, and at the same time back, beside kernels: passes of
    /// windows reach 34e9 to 42e9 over PCIe 5.0 with an H200, where copies alone reach 50e9; shares of the rates of
    /// PCIe 4.0 and 3.0 for older ones. Hosts differ more than GPUs: 25e9 were met with an H100, so a rate that was
    /// measured here counts.
    pub fn link_rate(&self) -> f64 {
        match (self.link, self.facts.capability) {
            (Some(link), _) => BESIDE_KERNELS * link,
            (None, 90..) => 40e9,
            (None, 80..90) => 18e9,
            (None, _) => 9e9,
        }
    }

    /// Bytes per second from this GPU's memory to that of another one, while as many come back: over NVLink, as the
    /// GPUs of a data centre have it, or through the host. 392e9 were measured between two H200.
    pub fn peer_rate(&self) -> f64 {
        match self.facts.capability {
            100 => 780e9,
            90 => 390e9,
            80 => 260e9,
            70 => 130e9,
            _ => self.link_rate() / 2.0,
        }
    }

    /// Multiply-adds that a multiprocessor begins per cycle.
    pub fn lanes(&self, precision: Precision) -> f64 {
        let [single, double] = match self.facts.capability {
            ..75 => [64.0, 32.0],
            75 => [64.0, 2.0],
            80 => [64.0, 32.0],
            90 | 100 => [128.0, 64.0],
            _ => [128.0, 2.0],
        };
        match precision {
            Precision::F32 => single,
            Precision::F64 => double,
        }
    }

    /// Blocks that run side by side on a multiprocessor, at least 1; `registers` per thread.
    pub fn resident(&self, block: &Block, registers: u64) -> u64 {
        self.blocks(block.roles.all(), block.all_shared(), registers)
    }

    /// The same for blocks of `threads` threads with `shared_bytes` bytes of shared memory.
    fn blocks(&self, threads: u32, shared_bytes: u32, registers: u64) -> u64 {
        let threads = u64::from(threads.max(1));
        let shared = u64::from(self.gpu.shared_per_block) + PER_BLOCK;
        let by_shared = shared / (u64::from(shared_bytes) + PER_BLOCK);
        let by_registers = u64::from(self.gpu.registers) / (registers.max(1) * threads);
        let by_threads = u64::from(self.facts.threads) / threads;
        by_shared.min(by_registers).min(by_threads).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gpu_that_code_is_made_for_has_a_usual_one() {
        for gpu in Gpu::all() {
            let model = DeviceModel::usual(gpu).expect("a usual GPU");
            assert_eq!(model.facts.capability, gpu.capability);
            let known = Gpu::for_device(model.facts.capability, model.facts.cuda);
            assert!(known.is_some_and(|known| known.ptx <= gpu.ptx), "{gpu}");
        }
    }

    #[test]
    fn blocks_share_a_multiprocessor() {
        let model = DeviceModel::usual(Gpu::named("sm_90").expect("a GPU")).expect("a usual GPU");
        assert_eq!(model.blocks(288, 173_184, 128), 1);
        assert_eq!(model.blocks(96, 50_000, 128), 4);
        assert_eq!(model.blocks(96, 10_000, 255), 2);
    }
}
