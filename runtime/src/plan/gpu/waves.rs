//! Waves of sources and incident fields: the host computes them while the device is at work, and sends them.

use super::DevicePlanner;
use crate::host::threads;
use torre_compiler::cost::Prediction;
use torre_compiler::incident::Sizes;
use torre_compiler::injection::{EVALUATION, has_one_wave};
use torre_compiler::problem::Problem;
use torre_compiler::scheme::Scheme;

/// Seconds of a multiplication of waves in a thread of the host.
const EACH: f64 = 0.35e-9;
/// Bytes of waves per second on their way to the device, which waits for them.
const SENT: f64 = 8e9;

/// The waves of a step, and their time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct HostWaves {
    /// How many there are, at most.
    count: u64,
    /// Seconds of the host, by as many threads as have work.
    computed: f64,
    /// Seconds of sending them.
    sent: f64,
}

impl HostWaves {
    pub fn new(scheme: &Scheme, problem: &Problem) -> HostWaves {
        let sizes = Sizes::new(scheme, problem);
        let sources = problem.sources.iter();
        let own = sources.map(|source| match has_one_wave(source) {
            true => 1,
            false => source.region.volume(),
        });
        let own = own.fold(0, u64::saturating_add);
        let [serial, parallel] = sizes.operations.map(|n| n as f64);
        let all = serial + parallel + own as f64 * EVALUATION as f64;
        let threads = threads::available() as f64;
        let count = sizes.waves.saturating_add(own);
        HostWaves {
            count,
            computed: EACH * (all / threads).max(serial),
            sent: 8.0 * count as f64 / SENT,
        }
    }

    /// The prediction of a run of `cells` cells with them. The device computes while the host does.
    pub fn with(&self, prediction: Prediction, cells: f64) -> Prediction {
        let step = cells / prediction.rate;
        let step = step.max(self.computed) + self.sent;
        Prediction {
            rate: cells / step,
            ..prediction
        }
    }
}

impl DevicePlanner<'_> {
    pub(super) fn host_waves(&self) -> &HostWaves {
        let scheme = self.planner.scheme;
        self.waves
            .get_or_init(|| HostWaves::new(scheme, self.problem))
    }

    /// The number of waves of a step, or an upper bound.
    pub fn waves_per_step(&self) -> u64 {
        self.host_waves().count
    }
}
