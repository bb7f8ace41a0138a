//! Counts of the work of a launch.

use std::collections::BTreeMap;

use crate::alu::{Row, lanes};
use crate::place::LaneRun;

/// How often instructions were executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// By warps: once for the lanes that execute it together.
    pub warps: u64,
    /// By threads.
    pub threads: u64,
}

/// The pieces of an access of a warp.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pieces {
    pub taken: u64,
    /// The least possible number; 0 where it is not counted.
    pub ideal: u64,
}

/// Accesses to a kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Instructions of warps.
    pub accesses: u64,
    /// Bytes that threads asked for.
    pub bytes: u64,
    /// Global memory: aligned pieces of 32 bytes that the warps' accesses touch. Shared memory: passes over the 32
    /// banks that the accesses take. None where they are not to be counted.
    pub pieces: u64,
    /// Shared memory: passes that would be left without bank conflicts, where they are counted.
    pub ideal: u64,
}

/// The work of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All instructions; instructions that the guard disables count for warps only.
    pub instructions: Executed,
    /// By opcode as written, such as `fma.rn.f32`.
    pub opcodes: BTreeMap<String, Executed>,
    /// Loads from global memory.
    pub global_loads: Traffic,
    /// Stores to global memory.
    pub global_stores: Traffic,
    /// Atomic operations on global memory.
    pub global_atomics: Traffic,
    /// Loads from shared memory.
    pub shared_loads: Traffic,
    /// Stores to shared memory, atomic operations included.
    pub shared_stores: Traffic,
    /// Loads from and stores to local memory.
    pub local: Traffic,
    /// Bytes that asynchronous copies brought to shared memory.
    pub copied_in: u64,
    /// Bytes that asynchronous copies brought to global memory.
    pub copied_out: u64,
    /// Asynchronous copies.
    pub copies: u64,
    /// Barriers of blocks, named ones included, counted when they open.
    pub barriers: u64,
    /// Phases of barrier objects that were completed.
    pub phases: u64,
    /// Branches where lanes of a warp parted.
    pub divergences: u64,
    /// Turns of warps that ended where they wait for others: at sleeps, tests that failed, strong loads
    /// that the turn has been at before, and atomic operations that changed nothing.
    pub polls: u64,
}

impl Counts {
    /// How often opcodes that begin with this text were executed: `fma.rn` counts both precisions.
    pub fn opcode(&self, prefix: &str) -> Executed {
        let found = self.opcodes.range(prefix.to_string()..);
        let found = found.take_while(|(opcode, _)| opcode.starts_with(prefix));
        found.fold(Executed::default(), |sum, (_, executed)| Executed {
            warps: sum.warps + executed.warps,
            threads: sum.threads + executed.threads,
        })
    }
}

/// An access of a warp: the address of the first lane, whether all lanes have that one, and bytes of a lane.
pub(crate) struct Pattern {
    pub(crate) first: u64,
    pub(crate) alike: bool,
    pub(crate) bytes: u32,
}

impl Pattern {
    /// Distinct aligned pieces of 32 bytes, where all lanes access one place.
    #[inline(always)]
    pub(crate) fn sectors(&self) -> u64 {
        (self.first + u64::from(self.bytes) - 1) / 32 - self.first / 32 + 1
    }
}

/// Distinct aligned pieces of 32 bytes, of lanes in runs with their addresses.
#[inline(always)]
pub(crate) fn sectors_of(
    pattern: &Pattern,
    runs: impl Iterator<Item = (LaneRun, u64)>,
    mask: u32,
    addresses: impl Fn() -> Row,
) -> u64 {
    let bytes = u64::from(pattern.bytes);
    if pattern.alike {
        return pattern.sectors();
    }
    // The end of the last sector of the run before.
    let (mut count, mut end) = (0, 0);
    for (run, address) in runs {
        let (first, last) = (address / 32, (address + run.lanes as u64 * bytes - 1) / 32);
        if first + 1 < end {
            return sectors(&addresses(), mask, pattern.bytes);
        }
        count += last + 1 - first.max(end);
        end = last + 1;
    }
    count
}

/// Passes over the banks of shared memory and passes without conflicts, of lanes in runs with their addresses.
#[inline(always)]
pub(crate) fn bank_passes_of<R: Iterator<Item = (LaneRun, u64)>>(
    pattern: &Pattern,
    runs: impl Fn() -> R,
    mask: u32,
    addresses: impl Fn() -> Row,
) -> (u64, u64) {
    let together = match pattern.bytes {
        4 => 32,
        8 => 16,
        16 => 8,
        bytes => return bank_passes(&addresses(), mask, bytes),
    };
    // Which lanes are served together, and the banks that the lanes met so far need.
    let (mut part, mut banks, mut parts) = (usize::MAX, 0u32, 0);
    let words = pattern.bytes / 4;
    for (run, address) in runs() {
        let (mut lane, end, mut word) = (run.lane, run.lane + run.lanes, address / 4);
        while lane < end {
            if lane / together != part {
                (part, banks) = (lane / together, 0);
                parts += 1;
            }
            let count = (end - lane).min((part + 1) * together - lane);
            let all = (u64::from(u32::MAX) >> (32 - words * count as u32)) as u32;
            let needed = all.rotate_left((word % 32) as u32);
            if banks & needed != 0 && !pattern.alike {
                return bank_passes(&addresses(), mask, pattern.bytes);
            }
            banks |= needed;
            lane += count;
            word += u64::from(words) * count as u64;
        }
    }
    (parts, parts)
}

/// Distinct aligned pieces of 32 bytes.
pub(crate) fn sectors(addresses: &Row, mask: u32, bytes: u32) -> u64 {
    let mut found = [0u64; 64];
    let (mut count, mut ascending) = (0, true);
    for lane in lanes(mask) {
        let first = addresses[lane] / 32;
        let last = (addresses[lane] + u64::from(bytes) - 1) / 32;
        for sector in first..=last {
            if count > 0 && found[count - 1] == sector {
                continue;
            }
            ascending &= count == 0 || found[count - 1] < sector;
            if count < found.len() {
                found[count] = sector;
                count += 1;
            }
        }
    }
    if ascending {
        return count as u64;
    }
    let found = &mut found[..count];
    found.sort_unstable();
    1 + found.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64
}

/// Passes over the banks of shared memory: lanes are served 128 bytes at a time, and a bank gives one word to a pass.
/// Also the passes without conflicts.
pub(crate) fn bank_passes(addresses: &Row, mask: u32, bytes: u32) -> (u64, u64) {
    let together = if bytes <= 4 { 32 } else { 128 / bytes as usize };
    let (mut passes, mut ideal) = (0, 0);
    for first in (0..32).step_by(together.max(1)) {
        let part = mask & ((u64::from(u32::MAX) >> (32 - together.min(32))) << first) as u32;
        if part == 0 {
            continue;
        }
        ideal += 1;
        // Words that were met, and how many of them each bank holds.
        let mut words = [0u64; 32];
        let (mut met, mut banks) = (0, [0u8; 32]);
        for lane in lanes(part) {
            for word in addresses[lane] / 4..(addresses[lane] + u64::from(bytes)).div_ceil(4) {
                let known = met > 0 && words[met - 1] == word
                    || banks[(word % 32) as usize] > 0 && words[..met].contains(&word);
                if !known && met < words.len() {
                    words[met] = word;
                    met += 1;
                    banks[(word % 32) as usize] += 1;
                }
            }
        }
        passes += u64::from(banks.iter().copied().max().unwrap_or(1));
    }
    (passes, ideal)
}
