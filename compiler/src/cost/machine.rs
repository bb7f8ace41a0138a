//! The data of a computer for the compiler, measured by the runtime.

use crate::lattice::Axis;
use crate::scheme::Scheme;

/// How many times as fast as main memory a shared cache is, for one core, where values that a sweep reads again may
/// come from it: measured are 4 on a Zen 4, where they may, and less than 2 on Xeons, where they should not.
const FASTER: f64 = 2.0;

/// The least speed of a core, relative to the mean of all, that a model reckons with: a core that was slower was
/// disturbed while it was measured.
const SLOWEST: f64 = 0.4;

/// The most bytes of a piece of a row, where tiles advance long rows in pieces: on processors with a large level-1
/// cache and a fast level-2 cache, as a Zen 5 has. Whole rows are faster on a Zen 4, whose caches are neither, and on
/// Xeons, whose level-1 caches alone are large (`bench/NOTES.md`, *Pieces of long rows*).
const PIECE: u64 = 2 << 10;
/// The bytes from which on a level-1 cache is large, and the bytes per second from which on a level-2 cache is fast.
const LARGE_L1: u64 = 48 << 10;
const FAST_L2: f64 = 2.5e11;
/// Bytes of a piece on grids with two axes, where only the rows of one run have neighbours in common.
const PIECE_OF_TWO_AXES: u64 = 4 << 10;
/// Bytes of a cache line.
const LINE: u64 = 64;

/// How sweeps and tiles are blocked for the caches of a core. The speed depends on it, no result does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// Bytes that a core keeps from one index of the outer axis to the next while it sweeps over the grid.
    pub sweep: u64,
    /// Bytes of a row that tiles of a grid with three axes advance at a time, at most.
    pub piece: u64,
}

impl Blocking {
    /// Cells along the inner axis that tiles advance at a time: equal pieces of whole cache lines; `None` for whole
    /// rows.
    pub fn piece(&self, scheme: &Scheme) -> Option<i64> {
        let element = scheme.precision.bytes() as u64;
        let most = match scheme.grid.axes[Axis::MIDDLE] {
            Some(_) => self.piece,
            None => PIECE_OF_TWO_AXES,
        };
        let row = (scheme.grid.cells[Axis::INNER].max(0) as u64).saturating_mul(element);
        if row <= most {
            return None;
        }
        let pieces = row.div_ceil(most.max(LINE));
        // Values behind the last cell belong to the last piece.
        let bytes = row.saturating_add(LINE).div_ceil(pieces);
        Some((bytes.div_ceil(LINE) * LINE / element) as i64)
    }
}

/// A computer, as the model of [`super`] sees it. Rates are for reading and writing together.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Cores that a run uses, and all cores.
    pub threads: usize,
    pub cores: usize,
    /// Bytes of a core's level-1 cache for data, and of its level-2 cache.
    pub l1: u64,
    pub l2: u64,
    /// Bytes of the cache that all cores share, or of the part that this machine gets of it.
    pub l3: u64,
    /// Bytes per second of one core from its level-2 cache.
    pub l2_rate: f64,
    /// Bytes per second from the shared cache: one core alone, and all cores together, that sweep over a few times as
    /// much as their own caches hold; and one core alone that sweeps over a quarter of the size of the shared cache
    /// that the system says.
    pub l3_rate: f64,
    pub l3_rate_all: f64,
    pub l3_rate_far: f64,
    /// Bytes per second from main memory: one core alone, and all cores together.
    pub memory_rate: f64,
    pub memory_rate_all: f64,
    /// Fused multiply-adds of vectors per second: one core alone, all cores together, and the slowest one of them then.
    pub vector_rate: f64,
    pub vector_rate_all: f64,
    pub vector_rate_slowest: f64,
    /// Bytes of a vector.
    pub vector_bytes: usize,
}

impl Machine {
    /// Main memory's bytes per second with all threads of a run.
    pub fn memory(&self) -> f64 {
        let threads = self.threads.max(1) as f64;
        (threads * self.memory_rate).min(self.memory_rate_all.max(self.memory_rate))
    }

    /// Bytes per second from the shared cache of each of a run's threads that is as fast as one core alone.
    pub fn shared_cache(&self) -> f64 {
        // All cores together were measured at the speeds that they have then.
        let threads = self.threads.max(1) as f64 * self.mean_speed();
        self.l3_rate
            .min(self.l3_rate_all.max(self.l3_rate) / threads)
    }

    /// The speed of each thread of a run, relative to that of one core alone. Cores that are at work at the same time
    /// are slower, and not equally so: their clock falls, and on a host of virtual machines some share a core with
    /// others. Speeds are spread evenly around their mean, from the speed on that the slowest of as many cores has on
    /// average where the speeds of all cores are spread evenly from the slowest one on.
    pub fn speeds(&self) -> Vec<f64> {
        let threads = self.threads.max(1);
        if threads == 1 || self.cores <= 1 {
            return vec![1.0; threads];
        }
        let mean = (self.vector_rate_all / self.cores as f64 / self.vector_rate).min(1.0);
        let slowest = self.vector_rate_slowest / self.vector_rate;
        let slowest = slowest.max(SLOWEST * mean).min(mean);
        let range = |count: usize| (count as f64 - 1.0) / (count as f64 + 1.0);
        let part = (range(threads) / range(self.cores)).min(1.0);
        let slowest = mean - (mean - slowest) * part;
        let step = 2.0 * (mean - slowest) / (threads - 1) as f64;
        (0..threads).map(|n| slowest + n as f64 * step).collect()
    }

    /// The mean speed of a run's threads.
    pub fn mean_speed(&self) -> f64 {
        let speeds = self.speeds();
        speeds.iter().sum::<f64>() / speeds.len() as f64
    }

    /// The speed of the slowest of a run's threads, for which the others wait where all have equal shares of the work.
    pub fn least_speed(&self) -> f64 {
        self.speeds().into_iter().fold(f64::INFINITY, f64::min)
    }

    /// Sweeps keep half of a core's share of the shared cache where that is much faster than main memory, else half of
    /// its own cache. With more bytes, streams of addresses are longer; but values that updates read again come from
    /// the slower cache.
    pub fn blocking(&self) -> Blocking {
        let own = self.l2 / 2;
        Blocking {
            sweep: match self.l3_rate_far >= FASTER * self.memory_rate {
                true => own.max(self.l3 / self.threads.max(1) as u64 / 2),
                false => own,
            },
            piece: match self.l1 >= LARGE_L1 && self.l2_rate >= FAST_L2 {
                true => PIECE,
                false => u64::MAX,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::Precision;
    use crate::testing::{maxwell, maxwell_te};

    /// Four cores, of which the slowest has this rate while all are at work.
    fn machine(threads: usize, slowest: f64) -> Machine {
        Machine {
            threads,
            cores: 4,
            l1: 32 << 10,
            l2: 1 << 20,
            l3: 32 << 20,
            l2_rate: 1e11,
            l3_rate: 5e10,
            l3_rate_all: 1e11,
            l3_rate_far: 4e10,
            memory_rate: 2e10,
            memory_rate_all: 5e10,
            vector_rate: 4e9,
            vector_rate_all: 12e9,
            vector_rate_slowest: slowest,
            vector_bytes: 64,
        }
    }

    #[test]
    fn speeds_are_spread_around_their_mean() {
        assert_eq!(machine(1, 2e9).speeds(), [1.0]);
        assert_eq!(machine(4, 3e9).speeds(), [0.75; 4]);
        assert_eq!(machine(4, 1.5e9).speeds()[0], 0.375);
        // The slowest of three cores is not always among two of them.
        let few = machine(2, 1.5e9).speeds();
        assert!(
            (few[0] - (0.75 - 0.375 * 5.0 / 9.0)).abs() < 1e-9,
            "{few:?}"
        );
        assert_eq!(few[0] + few[1], 1.5);
        // More threads than cores, and a core that was disturbed.
        let speeds = machine(8, 1e7).speeds();
        assert_eq!(speeds.len(), 8);
        assert!((speeds[0] - SLOWEST * 0.75).abs() < 1e-9, "{speeds:?}");
        assert!((machine(8, 1e7).mean_speed() - 0.75).abs() < 1e-9);
        assert_eq!(machine(8, 2e9).least_speed(), 0.5);
        assert_eq!(machine(1, 2e9).least_speed(), 1.0);
        // A core alone that was measured while others used the machine.
        let doubtful = Machine {
            vector_rate: 1e9,
            ..machine(4, 2e9)
        };
        assert_eq!(doubtful.speeds(), [1.0; 4]);
    }

    /// Equal pieces of whole cache lines, which have the values behind the last cell, too.
    #[test]
    fn long_rows_are_advanced_in_equal_pieces() {
        let fast = Machine {
            l1: 48 << 10,
            l2_rate: 3e11,
            ..machine(1, 3e9)
        };
        let piece = |machine: &Machine, cells: i64| {
            let scheme = maxwell(2, Precision::F64, [8, 8, cells]);
            machine.blocking().piece(&scheme)
        };
        assert_eq!(piece(&fast, 256), None);
        assert_eq!(piece(&fast, 257), Some(136));
        assert_eq!(piece(&fast, 384), Some(200));
        assert_eq!(piece(&fast, 504), Some(256));
        assert_eq!(piece(&fast, 512), Some(264));
        assert_eq!(piece(&machine(1, 3e9), 512), None);
        let planar = maxwell_te(2, Precision::F32, [8, 4096]);
        assert_eq!(machine(1, 3e9).blocking().piece(&planar), Some(1040));
    }

    #[test]
    fn threads_share_what_all_cores_have() {
        let rates = |threads| {
            let machine = machine(threads, 3e9);
            (machine.shared_cache(), machine.memory())
        };
        assert_eq!(rates(1), (5e10, 2e10));
        assert_eq!(rates(2), (5e10, 4e10));
        assert_eq!(rates(4), (1e11 / 3.0, 5e10));
    }
}
