//! Why a GPU does not run a schedule, and the messages.

use std::fmt;
use torre_compiler::lattice::Axis;
use torre_compiler::layout::Layout;
use torre_compiler::patch::Misfit as PatchMisfit;
use torre_compiler::pipeline::NoStripes;
use torre_compiler::tile::NoTiles;
use torre_compiler::tower::block::{MOST_THREADS, Misfit};
use torre_compiler::tower::{NoProgram, Unfit};

/// Why a GPU does not run a schedule.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// It is none of towers, but of these.
    Shape(&'static str),
    /// There are no tiles.
    Tiles(NoTiles),
    Unfit(Unfit),
    /// Towers depend on towers that lie farther away in tiles than in stages, so waits for neighbours do not reach
    /// them.
    Far,
    /// A line has more values than a block has threads.
    Line {
        values: i64,
    },
    /// More rows than code can list, or farther from each other.
    Rows {
        rows: usize,
    },
    Shared {
        rows: usize,
        bytes: u64,
        most: u64,
    },
    Registers {
        kept: usize,
        needed: u64,
        threads: u32,
        most: u64,
    },
    /// Z blocks lean too much in time blocks of `steps` steps.
    Lean {
        steps: u64,
    },
    /// Pyramids do not fit.
    Patches(PatchMisfit),
    /// Two arrays take `bytes` bytes, and there are `memory` for them.
    SecondArray {
        bytes: u64,
        memory: u64,
    },
    /// The same with `rooms` bytes of states that pyramids compute redundantly.
    Rooms {
        bytes: u64,
        rooms: u64,
        memory: u64,
    },
    /// Sources act in more cells than pyramids have tables for.
    Points,
    /// A time block has more towers than can be counted.
    Many,
    /// There are no time blocks in flight, or no calculation window.
    Window(NoWindow),
    /// Several devices do not compute it.
    Devices(NoDevices),
    /// The first axis is periodic, and too short for time blocks of `steps` steps.
    Ring {
        steps: u64,
    },
}

/// Why a run has no time blocks in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoWindow {
    /// The schedule is not by towers.
    Layerwise,
    /// The first axis is periodic, and it is no window over the host's memory or over files.
    Ring,
    /// The first axis is periodic, and no window is so much shorter that the planes that it leaves can be loaded again.
    ShortRing,
    /// Towers do not move along the first axis, or not in the order of planes across it.
    Way,
    /// Time blocks have whole periods, and something is due in between.
    Steps { period: u64, every: u64 },
    /// Sources and probes keep steps out of time blocks.
    Points(String),
    /// The least window does not fit.
    Memory { needed: u64, available: u64 },
    /// There are no overlapped slabs.
    Slabs(NoSlabs),
}

/// Why a run is not by overlapped slabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSlabs {
    /// Several devices have no slabs over files.
    Devices,
    /// The height is no whole number of time blocks, or not of as many as are to be in flight.
    Height { height: u64, block: u64 },
    /// A slab has fewer planes than others need of it.
    Narrow { base: i64, needed: i64 },
    /// The buffers do not fit.
    Memory { needed: u64, available: u64 },
}

impl fmt::Display for NoSlabs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSlabs::Devices => f.write_str("overlapped slabs over files are for one GPU"),
            NoSlabs::Height { height, block } => write!(
                f,
                "slabs advance by whole time blocks, which have {block} steps, and a pass of {height} steps \
                 is none of up to 64 of them, or not of as many as `--in-flight` says"
            ),
            NoSlabs::Narrow { base, needed } => write!(
                f,
                "a slab of {base} planes is too narrow: the slab after the next one would need {needed} planes of it"
            ),
            NoSlabs::Memory { needed, available } => write!(
                f,
                "the buffers of two slabs take {needed} bytes of the GPU's memory, and {available} are available"
            ),
        }
    }
}

impl fmt::Display for NoWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoWindow::Layerwise => f.write_str("a calculation window advances by towers only"),
            NoWindow::Ring => {
                f.write_str("only a calculation window over the host's memory, or over files, \
                 goes around the first axis, which is periodic")
            }
            NoWindow::ShortRing => {
                f.write_str("the first axis, which is periodic, is too short for a calculation window: \
                 the planes with which it begins come back at its end, when it has left them")
            }
            NoWindow::Way => f.write_str(
                "a calculation window needs towers that move along the first axis, one group of planes after the other",
            ),
            NoWindow::Steps { period, every } => write!(
                f,
                "towers advance by {period} steps at a time, and something is due after {every} steps"
            ),
            NoWindow::Points(reason) => f.write_str(reason),
            NoWindow::Slabs(reason) => reason.fmt(f),
            NoWindow::Memory { needed, available } => write!(
                f,
                "the least calculation window takes {needed} bytes of the GPU's memory, and {available} are available"
            ),
        }
    }
}

/// Why several devices do not compute a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoDevices {
    /// The schedule is not by towers.
    Layerwise,
    /// Time blocks have whole periods, and something is due in between.
    Steps {
        period: u64,
        every: u64,
    },
    /// Sources and probes keep steps out of time blocks.
    Points(String),
    Stripes(NoStripes),
    /// One time block at a time was asked for.
    Window,
    /// A device has no memory for a stripe.
    Memory {
        needed: u64,
        available: u64,
    },
}

impl fmt::Display for NoDevices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoDevices::Layerwise => f.write_str("several devices advance by towers only"),
            NoDevices::Steps { period, every } => write!(
                f,
                "towers advance by {period} steps at a time, and something is due after {every} steps"
            ),
            NoDevices::Points(reason) => f.write_str(reason),
            NoDevices::Stripes(reason) => reason.fmt(f),
            NoDevices::Window => f.write_str(
                "several devices hold all values together, with several time blocks in flight, \
                 or go over the host's memory or over files in turns, with `--window host` or `--window DIR`",
            ),
            NoDevices::Memory { needed, available } => write!(
                f,
                "a stripe takes {needed} bytes of a GPU's memory, and {available} are available"
            ),
        }
    }
}

impl Refusal {
    /// The bytes of a GPU's memory that a window takes at least, where they are too many.
    pub fn lacking_memory(&self) -> Option<u64> {
        match self {
            Refusal::Window(
                NoWindow::Memory { needed, .. } | NoWindow::Slabs(NoSlabs::Memory { needed, .. }),
            ) => Some(*needed),
            _ => None,
        }
    }

    pub fn from_misfit(misfit: Misfit, layout: &Layout) -> Refusal {
        match misfit {
            Misfit::Line => Refusal::Line {
                values: layout.extent[Axis::INNER],
            },
            Misfit::Rows(rows) => Refusal::Rows { rows },
            Misfit::Far => Refusal::Far,
        }
    }

    pub fn from_no_program(reason: NoProgram, layout: &Layout) -> Refusal {
        match reason {
            NoProgram::Unfit(unfit) => Refusal::Unfit(unfit),
            NoProgram::Misfit(misfit) => Refusal::from_misfit(misfit, layout),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Shape(shape) => write!(f, "GPUs do not run {shape}"),
            Refusal::Tiles(reason) => reason.fmt(f),
            Refusal::Unfit(unfit) => unfit.fmt(f),
            Refusal::Far => f.write_str(
                "the towers are so narrow that waits for neighbours do not reach all towers on which they depend",
            ),
            Refusal::Line { values } => write!(
                f,
                "a tower needs a thread for each of the {values} values of a line, \
                 and a block has {MOST_THREADS}, of which some serve the others"
            ),
            Refusal::Rows { rows } => write!(
                f,
                "a period has {rows} rows, which are more than code for GPUs can list, or too far from each other"
            ),
            Refusal::Shared { rows, bytes, most } => write!(
                f,
                "a tower needs {bytes} bytes of shared memory for {rows} rows, and a block has {most}"
            ),
            Refusal::Registers {
                kept,
                needed,
                threads,
                most,
            } => write!(
                f,
                "each thread keeps {kept} values, for which it needs {needed} registers, \
                 and a thread of {threads} has {most}"
            ),
            Refusal::Ring { steps } => write!(
                f,
                "towers of {steps} steps reach once around the first axis, which is periodic"
            ),
            Refusal::Lean { steps } => write!(
                f,
                "a block does not hold lines, and in {steps} steps the ends of parts that it holds lean too much"
            ),
            Refusal::Patches(misfit) => misfit.fmt(f),
            Refusal::SecondArray { bytes, memory } => write!(
                f,
                "pyramids need {bytes} bytes for two arrays, and the GPU has {memory} for them"
            ),
            Refusal::Rooms {
                bytes,
                rooms,
                memory,
            } => write!(
                f,
                "pyramids need {bytes} bytes for two arrays and states of zones, of which the states take {rooms}, \
                 and the GPU has {memory} for them"
            ),
            Refusal::Points => {
                f.write_str("sources act in more cells than pyramids have tables for")
            }
            Refusal::Window(reason) => reason.fmt(f),
            Refusal::Devices(reason) => reason.fmt(f),
            Refusal::Many => f.write_str("a time block has too many towers to be counted"),
        }
    }
}
