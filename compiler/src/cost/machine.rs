//! The data of a computer for the compiler, measured by the runtime.

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
}
