//! How far planes lie from each other, found by timing towers.
//!
//! Addresses of a GPU's memory are hashed, so the share of reads that the L2 cache serves depends on the distance of
//! planes across the outer axis, and no rule tells good distances from bad ones. So towers run on an array of zeros
//! with several [gaps](Layout::for_gpu_with_gap) between planes, and a run takes the gap with which they are fastest.

use super::device::{Address, Device, DeviceError};
use super::no_time_blocks::NoTimeBlocks;
use super::time_block_error::TimeBlockError;
use super::tower_blocks::{Injected, TowerBlocks};
use super::towers::{CompiledTowers, TimeBlockOrder, module};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fmt::Write;
use std::panic::resume_unwind;
use std::thread::Builder;
use torre_compiler::backend::gpu::Gpu;
use torre_compiler::backend::gpu::abi::Volumes;
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::lattice::Axis;
use torre_compiler::layout::{Layout, TooLarge};
use torre_compiler::pipeline::Stripes;
use torre_compiler::scheme::Scheme;
use torre_compiler::tower::{Points, TowerProgram};

/// Gaps that are timed, at most, and the largest one in groups.
const TRIED: i64 = 8;
const MOST: i64 = 16;

/// The part of a plane that a gap takes, at most.
const PART: i64 = 64;

/// Another gap than none is taken where towers take less than this part of the time.
const WORTHWHILE: f64 = 0.99;

/// Seconds in which the device gets ready, and of one measurement; time blocks of one, at most.
const WARM: f64 = 0.1;
const MEASURED: f64 = 0.04;
const MOST_BLOCKS: f64 = 64.0;

/// Measurements of each gap, the fastest of which counts.
const ROUNDS: usize = 2;

/// Hexadecimal digits of a key.
const DIGITS: usize = 32;

/// Towers whose planes get gaps.
#[derive(Clone, Copy, Debug)]
pub struct GapTrial<'a> {
    pub scheme: &'a Scheme,
    pub program: &'a TowerProgram,
    pub gpu: Gpu,
    pub order: TimeBlockOrder,
    /// Where devices have stripes: towers of the first one are timed.
    pub stripes: Option<&'a Stripes>,
}

/// The time that a time block takes with a gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedGap {
    /// In groups.
    pub gap: i64,
    pub seconds: f64,
}

/// Why gaps were not timed.
#[derive(Debug)]
pub enum NoTrial {
    Size,
    Towers(TimeBlockError),
    Device(DeviceError),
    TimeBlocks(NoTimeBlocks),
    /// Towers do not run without the sources of the problem.
    Sources,
}

impl From<TimeBlockError> for NoTrial {
    fn from(error: TimeBlockError) -> Self {
        NoTrial::Towers(error)
    }
}

impl From<DeviceError> for NoTrial {
    fn from(error: DeviceError) -> Self {
        NoTrial::Device(error)
    }
}

impl From<TooLarge> for NoTrial {
    fn from(_: TooLarge) -> Self {
        NoTrial::Size
    }
}

impl fmt::Display for NoTrial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoTrial::Size => f.write_str("the array would be too large"),
            NoTrial::Towers(error) => error.fmt(f),
            NoTrial::Device(error) => error.fmt(f),
            NoTrial::TimeBlocks(reason) => reason.fmt(f),
            NoTrial::Sources => f.write_str("the towers have sources in many cells"),
        }
    }
}

impl std::error::Error for NoTrial {}

/// The gap to take of some that were timed: the one with which towers are fastest, if that is worth it; else none.
pub fn best_gap(timed: &[TimedGap]) -> TimedGap {
    let none = timed.iter().find(|timed| timed.gap == 0).copied();
    let none = none.unwrap_or(TimedGap {
        gap: 0,
        seconds: f64::INFINITY,
    });
    let fastest = timed
        .iter()
        .min_by(|a, b| a.seconds.total_cmp(&b.seconds))
        .copied();
    let worth = |timed: &TimedGap| timed.seconds < WORTHWHILE * none.seconds;
    fastest.filter(worth).unwrap_or(none)
}

/// Towers with a gap, ready on a device.
struct Candidate {
    gap: i64,
    blocks: TowerBlocks,
    /// Of a time block, the fastest so far.
    seconds: f64,
}

impl GapTrial<'_> {
    /// How values are arranged with a gap.
    pub fn layout(&self, gap: i64) -> Result<Layout, TooLarge> {
        let widest = self.stripes.map_or(i64::MAX, Stripes::widest);
        Layout::for_stripe(self.scheme, widest, gap)
    }

    /// The gaps that are worth a trial, ascending from 0 on: spread over a small part of a plane.
    pub fn gaps(&self) -> Vec<i64> {
        let Ok(layout) = self.layout(0) else {
            return vec![0];
        };
        let [plane, group] = [Axis::OUTER, Axis::MIDDLE].map(|axis| layout.stride[axis]);
        let most = (plane / group.max(1) / PART).min(MOST);
        let count = most.min(TRIED - 1);
        (0..=count).map(|n| n * most / count.max(1)).collect()
    }

    /// Whether all gaps that were timed are among these.
    pub fn tries(&self, timed: &[TimedGap]) -> bool {
        let gaps = self.gaps();
        timed.iter().all(|timed| gaps.contains(&timed.gap))
    }

    /// Bytes that the largest of these gaps adds to an array.
    pub fn bytes(&self) -> Result<u64, TooLarge> {
        let gap = self.gaps().last().copied().unwrap_or(0);
        let with = self.layout(gap)?.bytes();
        Ok(with.saturating_sub(self.layout(0)?.bytes()))
    }

    /// A name of the kernel, its order and its layout, the same in each run.
    pub fn key(&self) -> Result<String, TooLarge> {
        let layout = self.layout(0)?;
        let mut hash = Sha256::new();
        hash.update(module(self.scheme, &layout, self.program).text());
        let columns = self.stripes.map(Stripes::columns);
        let (gpu, bytes, order) = (self.gpu, layout.bytes(), self.order);
        hash.update(format!("{gpu:?} {bytes} {order:?} {columns:?}"));
        let mut key = String::new();
        for byte in hash.finalize().iter().take(DIGITS / 2) {
            // Writing to a string cannot fail.
            let _ = write!(key, "{byte:02x}");
        }
        Ok(key)
    }

    /// Times towers with each gap on an array of the device. All memory is given back.
    pub fn time(
        &self,
        library: &Library,
        device: &dyn Device,
        gaps: &[i64],
    ) -> Result<Vec<TimedGap>, NoTrial> {
        if !self.program.sources.is_empty() {
            return Err(NoTrial::Sources);
        }
        let layouts: Result<Vec<Layout>, TooLarge> =
            gaps.iter().map(|gap| self.layout(*gap)).collect();
        let bytes = layouts?.iter().map(Layout::bytes).max().unwrap_or(0);
        let array = device.take(bytes)?;
        let timed = self.time_on(library, device, gaps, array);
        device.give_back(array)?;
        timed
    }

    fn time_on(
        &self,
        library: &Library,
        device: &dyn Device,
        gaps: &[i64],
        array: Address,
    ) -> Result<Vec<TimedGap>, NoTrial> {
        // The driver translates in several threads at a time.
        let made: Vec<Result<Candidate, NoTrial>> = std::thread::scope(|scope| {
            let make = |gap: &i64| {
                let gap = *gap;
                let thread = Builder::new();
                let thread =
                    thread.spawn_scoped(scope, move || self.candidate(library, device, gap));
                thread.map_err(|_| gap)
            };
            let threads: Vec<_> = gaps.iter().map(make).collect();
            let made = threads.into_iter().map(|thread| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // Where a thread cannot be started, this one does its work.
                Err(gap) => self.candidate(library, device, gap),
            });
            made.collect()
        });
        let (mut candidates, mut failed) = (Vec::new(), None);
        for made in made {
            match made {
                Ok(candidate) => candidates.push(candidate),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let done = match failed {
            Some(error) => Err(error),
            None => measure(device, &mut candidates, array).map_err(NoTrial::Device),
        };
        let timed = candidates.iter().map(|candidate| TimedGap {
            gap: candidate.gap,
            seconds: candidate.seconds,
        });
        let timed = timed.collect();
        for candidate in candidates {
            candidate.blocks.give_back(device)?;
        }
        done.map(|()| timed)
    }

    fn candidate(
        &self,
        library: &Library,
        device: &dyn Device,
        gap: i64,
    ) -> Result<Candidate, NoTrial> {
        let layout = self.layout(gap)?;
        let program = self.program.clone();
        let (scheme, gpu, order) = (self.scheme, self.gpu, self.order);
        let mut towers = CompiledTowers::new(library, scheme, &layout, program, gpu, order)?;
        if let Some(stripes) = self.stripes {
            let known = stripes.known(towers.steps);
            let list = known.and_then(|height| height.lists.first());
            towers = towers.with_list(list.ok_or(TimeBlockError::Order)?.clone());
        }
        let injected = Injected {
            points: Points::default(),
            volumes: Volumes::default(),
        };
        let blocks = TowerBlocks::new(device, &towers, scheme, &layout, injected)?;
        Ok(Candidate {
            gap,
            blocks: blocks.map_err(NoTrial::TimeBlocks)?,
            seconds: f64::INFINITY,
        })
    }
}

/// Measures all candidates in turns.
fn measure(
    device: &dyn Device,
    candidates: &mut [Candidate],
    array: Address,
) -> Result<(), DeviceError> {
    let Some(first) = candidates.first_mut() else {
        return Ok(());
    };
    let (mut warm, mut each) = (0.0, 0.0);
    for _ in 0..MOST_BLOCKS as usize {
        each = time_blocks(device, &mut first.blocks, array, 1)?;
        warm += each;
        // A device without a clock needs no rest.
        if warm >= WARM || each <= 0.0 {
            break;
        }
    }
    let count = (MEASURED / each).ceil().clamp(1.0, MOST_BLOCKS);
    let count = if each > 0.0 { count as u64 } else { 1 };
    for _ in 0..ROUNDS {
        for candidate in candidates.iter_mut() {
            let seconds = time_blocks(device, &mut candidate.blocks, array, count)?;
            candidate.seconds = candidate.seconds.min(seconds);
        }
        // What changes slowly favours none.
        candidates.reverse();
    }
    Ok(())
}

/// Seconds of a time block, from some in a row.
fn time_blocks(
    device: &dyn Device,
    blocks: &mut TowerBlocks,
    array: Address,
    count: u64,
) -> Result<f64, DeviceError> {
    let from = device.mark()?;
    for _ in 0..count {
        let steps = blocks.steps();
        // Nothing reads waves or stores records.
        blocks.run(device, steps, array, array, array)?;
    }
    let to = device.mark()?;
    Ok(device.between(from, to)?.as_secs_f64() / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(all: &[(i64, f64)]) -> Vec<TimedGap> {
        let all = all.iter();
        all.map(|&(gap, seconds)| TimedGap { gap, seconds })
            .collect()
    }

    #[test]
    fn a_gap_is_taken_where_it_is_worth_it() {
        let best = |all: &[(i64, f64)]| best_gap(&timed(all)).gap;
        assert_eq!(best(&[]), 0);
        assert_eq!(best(&[(0, 1.0)]), 0);
        assert_eq!(best(&[(0, 1.0), (3, 0.995), (6, 1.2)]), 0);
        assert_eq!(best(&[(0, 1.0), (3, 0.98), (6, 0.97), (9, 1.0)]), 6);
        assert_eq!(best(&[(3, 0.98), (6, 0.97)]), 6);
    }
}
