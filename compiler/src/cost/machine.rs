//! The data of a computer for the compiler, measured by the runtime.

/// How many times as fast as main memory a shared cache is, for one core, where values that a sweep reads again may
/// come from it: measured are 2.8 on a Zen 4, where they may, and less than 2 on Xeons, where they should not.
const FASTER: f64 = 2.0;

/// A computer, as the model of [`super`] sees it. Rates are for reading and writing together.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Cores that a run uses.
    pub threads: usize,
    /// Bytes of a core's level-2 cache.
    pub l2: u64,
    /// Bytes of the cache that all cores share.
    pub l3: u64,
    /// Bytes per second of one core, from its level-2 cache and from the shared one.
    pub l2_rate: f64,
    pub l3_rate: f64,
    /// Bytes per second from main memory: one core alone, and all cores together.
    pub memory_rate: f64,
    pub memory_rate_all: f64,
    /// Fused multiply-adds of vectors per second of one core, and bytes of a vector.
    pub vector_rate: f64,
    pub vector_bytes: usize,
}

impl Machine {
    /// Main memory's bytes per second with all threads of a run.
    pub fn memory(&self) -> f64 {
        if self.threads == 1 {
            self.memory_rate
        } else {
            self.memory_rate_all
        }
    }

    /// Bytes that a core keeps from one index of the outer axis to the next while it sweeps over the grid: half of its
    /// share of the shared cache where that is much faster than main memory, else half of its own cache. With more
    /// bytes, streams of addresses are longer; but values that updates read again come from the slower cache.
    pub fn kept(&self) -> u64 {
        let own = self.l2 / 2;
        match self.l3_rate >= FASTER * self.memory_rate {
            true => own.max(self.l3 / self.threads.max(1) as u64 / 2),
            false => own,
        }
    }
}
