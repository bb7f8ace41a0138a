//! Passes over the planes of files: how many steps one has, and how much they read and write.

use super::spectra::Spectra;
use crate::host::sweep::Sweep;
use torre_compiler::lattice::Axis;
use torre_compiler::layout::Layout;
use torre_compiler::problem::{Output, Problem};
use torre_compiler::scheme::Scheme;

/// Bytes of a file that are read or written at a time.
pub const PIECE: u64 = 16 << 20;

/// Pieces that are read ahead, and as many that wait to be written, at most.
pub(super) const SLACK: u64 = 4;

/// Pauses of a run that are counted one by one.
const MOST_PAUSES: u64 = 1 << 16;

/// A slab takes no more than this part of memory.
const PARTS: u64 = 8;

/// Where planes are in an array, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planes {
    /// Of the first one.
    pub start: u64,
    pub each: u64,
    /// Ghost planes below plane 0.
    pub ghosts: i64,
    /// Planes without ghosts.
    pub count: i64,
    /// After the last one.
    pub end: u64,
    /// Of the array.
    pub all: u64,
}

impl Planes {
    pub fn new(layout: &Layout) -> Planes {
        let element = layout.element_bytes as u64;
        let held = layout.visible(Axis::OUTER);
        let start = layout.first_plane() as u64 * element;
        let each = layout.stride[Axis::OUTER] as u64 * element;
        Planes {
            start,
            each,
            ghosts: -held.lo,
            count: layout.extent[Axis::OUTER],
            end: start + held.len() as u64 * each,
            all: layout.bytes(),
        }
    }

    /// Where planes below one end; with all of them go the ghosts above.
    pub fn below(&self, plane: i64) -> u64 {
        match plane >= self.count {
            true => self.end,
            false => {
                let planes = (plane + self.ghosts).max(0) as u64;
                self.start + planes * self.each
            }
        }
    }

    /// Bytes that stay in memory for a whole pass: the data behind planes.
    pub fn resident(&self) -> u64 {
        self.all.saturating_sub(self.end)
    }
}

/// The results for which a run pauses, beside reductions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// Steps between checkpoints.
    pub every: Option<u64>,
    /// Whether outputs are written.
    pub frames: bool,
}

/// The passes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passes {
    pub count: u64,
    /// Steps of the longest one; 0 without any.
    pub longest: u64,
    /// Steps of all.
    pub steps: u64,
}

/// How a calculation in files is advanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepPlan {
    pub sweep: Sweep,
    /// Steps of a pass, at most.
    pub steps: u64,
    /// Bytes of memory.
    pub bytes: u64,
    /// Bytes of an array.
    pub array: u64,
    pub piece: u64,
}

/// The parts in which planes come and go.
#[derive(Clone, Copy)]
struct Parts {
    /// Bytes of a file that are read or written at a time.
    piece: u64,
    /// Planes that a stage advances at a time, at most.
    slab: i64,
}

impl SweepPlan {
    /// As many steps in a pass as some memory has room for; `Err`: the bytes that one step takes.
    pub fn new(
        scheme: &Scheme,
        layout: &Layout,
        steps: u64,
        available: u64,
        piece: u64,
    ) -> Result<SweepPlan, u64> {
        let each = Planes::new(layout).each.max(1);
        let slab = (available / PARTS / each).min(1 << 30) as i64;
        Self::with_slab(scheme, layout, steps, available, Parts { piece, slab })
    }

    /// The same by slabs of one plane, which take least.
    pub fn narrow(
        scheme: &Scheme,
        layout: &Layout,
        steps: u64,
        available: u64,
        piece: u64,
    ) -> Result<SweepPlan, u64> {
        Self::with_slab(scheme, layout, steps, available, Parts { piece, slab: 1 })
    }

    fn with_slab(
        scheme: &Scheme,
        layout: &Layout,
        steps: u64,
        available: u64,
        Parts { piece, slab }: Parts,
    ) -> Result<SweepPlan, u64> {
        let (mut sweep, planes) = (Sweep::new(scheme), Planes::new(layout));
        sweep.slab = sweep.slab.min(slab).max(1);
        let bytes = |steps: u64| {
            let window = (sweep.planes(steps) as u64).min(planes.count as u64);
            let window = window.saturating_mul(planes.each);
            // Pieces at both ends of the window are there as a whole.
            window
                .saturating_add((2 * SLACK + 2) * piece)
                .saturating_add(planes.resident())
        };
        if bytes(1) > available {
            return Err(bytes(1));
        }
        let (mut fits, mut over) = (1, steps.max(1) + 1);
        while over - fits > 1 {
            let middle = fits + (over - fits) / 2;
            match bytes(middle) <= available {
                true => fits = middle,
                false => over = middle,
            }
        }
        Ok(SweepPlan {
            sweep,
            steps: fits,
            bytes: bytes(fits),
            array: layout.bytes(),
            piece,
        })
    }

    /// The passes of a run of a problem from a step on: each ends with its steps, or where the run pauses for results.
    pub fn passes(&self, problem: &Problem, from: u64, Pauses { every, frames }: Pauses) -> Passes {
        let taken = |o: &&Output| o.needs_values() && (frames || o.spectrum.is_some());
        let outputs = problem.outputs.iter().filter(taken);
        let series = problem.series.iter().map(|series| series.every);
        let states = problem.state_probes.iter().map(|probe| probe.every);
        let pauses = outputs.map(|o| o.every).chain(series).chain(states);
        let pauses: Vec<u64> = pauses.chain(every).collect();
        let all = problem.steps.saturating_sub(from);
        let (mut count, mut longest, mut at) = (0u64, 0, from);
        for _ in 0..MOST_PAUSES {
            if at >= problem.steps {
                break;
            }
            let next = |every: &u64| (at / every + 1).saturating_mul(*every);
            let pause = pauses.iter().map(next).fold(problem.steps, u64::min);
            count += (pause - at).div_ceil(self.steps);
            longest = longest.max((pause - at).min(self.steps));
            at = pause;
        }
        if at < problem.steps {
            // The rest of a long run is like its first part.
            count = (count as f64 / (at - from) as f64 * all as f64) as u64;
        }
        Passes {
            count,
            longest,
            steps: all,
        }
    }

    /// Bytes that a run of a problem writes in some passes: after each one the array and the sums of spectra.
    pub fn written(&self, problem: &Problem, passes: u64) -> u64 {
        passes.saturating_mul(self.array.saturating_add(Spectra::bytes(problem)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_compiler::lattice::PerAxis;
    use torre_compiler::problem::StateProbe;
    use torre_compiler::scheme::StateId;

    #[test]
    fn results_and_checkpoints_end_passes() {
        let plan = SweepPlan {
            sweep: Sweep {
                lag: 1,
                slab: 1,
                stages: 1,
            },
            steps: 8,
            bytes: 0,
            array: 10,
            piece: 4096,
        };
        let passes_from = |from: u64, steps: u64, probes: &[u64], every: u64| {
            let probe = |every: &u64| StateProbe {
                name: String::new(),
                state: StateId(0),
                at: PerAxis::splat(0),
                every: *every,
            };
            let problem = Problem {
                steps,
                state_probes: probes.iter().map(probe).collect(),
                ..Problem::default()
            };
            let pauses = Pauses {
                every: Some(every).filter(|every| *every > 0),
                frames: true,
            };
            plan.passes(&problem, from, pauses)
        };
        let passes =
            |steps: u64, probes: &[u64], every: u64| passes_from(0, steps, probes, every).count;
        assert_eq!(passes(100, &[], 0), 13);
        assert_eq!(passes(100, &[1], 0), 100);
        // 10 = 8 + 2; 12 and 24 end passes, 20 does, too.
        assert_eq!(passes(24, &[10, 12], 0), 2 + 1 + 1 + 1);
        assert_eq!(passes(24, &[12], 10), 2 + 1 + 1 + 1);
        let long = passes(1 << 40, &[1], 0);
        assert_eq!(long, 1 << 40);
        // A run that goes on has the rest.
        let rest = |from| {
            let found = passes_from(from, 24, &[12], 10);
            (found.count, found.longest, found.steps)
        };
        assert_eq!(rest(0), (5, 8, 24));
        assert_eq!(rest(11), (3, 8, 13));
        assert_eq!(rest(20), (1, 4, 4));
        assert_eq!(rest(24), (0, 0, 0));
        let long = passes_from(1 << 39, 1 << 40, &[1], 0);
        assert_eq!((long.count, long.longest), (1 << 39, 1));
        assert_eq!(plan.written(&Problem::default(), 13), 130);
    }
}
