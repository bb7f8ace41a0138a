//! Kernels for towers: a block of threads runs a tower from its first to its last turn, with all values that evolve on the chip.
//!
//! ```text
//! thread            one index along the vector axis; the values of that index in registers
//!   begin             load what a tower of this alignment keeps
//!   turn after turn:  straight-line code for all rows of all stages of a turn
//!     stage             start copying the rows that the next stage reads for the first time, to shared memory
//!                       compute; tell neighbours along the vector axis through shared memory; store what leaves
//!                       wait for the copies and for each other
//!   end               store what memory does not have yet
//! ```
//!
//! The sets come from [`crate::tile::residency`], where values lie from [`Plan`]. A kernel runs whole towers: those that no end of
//! the grid cuts. It reads and writes images like any other place, and keeps those along the vector axis up to date.

mod plan;
#[cfg(test)]
mod tests;
mod write;

pub use plan::{Carried, Copy, Plan, StagePlan};

use super::ir::Module;
use crate::lattice::Axis;
use crate::layout::Layout;
use crate::scheme::Scheme;
use crate::tile::residency::Towers;

/// Choices that do not change results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Coefficients are read from memory where they are used, instead of being kept.
    pub direct: bool,
    /// Rows are copied to shared memory while threads compute, where the GPU can do so.
    pub asynchronous: bool,
    /// Registers of a thread; 0: as the assembler likes.
    pub registers: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            direct: false,
            asynchronous: true,
            registers: 0,
        }
    }
}

/// A kernel for the towers of one alignment.
///
/// Its parameters are the array's first element, a list of byte offsets from there to row 0, vector index 0 of the origins' groups,
/// one for each block, and the number of turns (32 bits).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TowerKernel {
    pub symbol: String,
    pub threads: u32,
    /// Bytes of shared memory, given at the start.
    pub shared: u32,
    pub plan: Plan,
}

/// Bytes that a copy to shared memory moves at a time.
const CHUNK: i64 = 16;
/// The most threads of a block.
const MOST_THREADS: i64 = 1024;

/// The shape of a slot, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    /// Before index 0.
    lead: i64,
    stride: i64,
    /// Some row has images along the vector axis.
    images: bool,
    /// The largest extent of a row.
    length: i64,
}

impl Slot {
    fn new(scheme: &Scheme, layout: &Layout) -> Slot {
        let chunk = CHUNK / layout.element_bytes as i64;
        let whole = |n: i64| crate::lattice::div_ceil(n, chunk) * chunk;
        let [below, above] = layout.reach[Axis::VECTOR].map(i64::from);
        let length = layout.extent[Axis::VECTOR];
        let images = scheme.component_ids().any(|id| {
            let visible = scheme.visible(id)[Axis::VECTOR];
            let position = scheme.component(id).position;
            let images = |i| {
                scheme
                    .grid
                    .images(Axis::VECTOR, position, i, visible)
                    .count()
            };
            (0..length).any(|i| scheme.extent(id)[Axis::VECTOR].contains(i) && images(i) > 0)
        });
        Slot {
            lead: whole(below),
            stride: whole(below) + whole(length + above),
            images,
            length,
        }
    }

    /// The elements that a copy moves: all that anyone sees.
    fn copied(&self) -> crate::lattice::Interval {
        match self.images {
            true => crate::lattice::Interval::new(-self.lead, self.stride - self.lead),
            false => crate::lattice::Interval::new(0, self.stride - self.lead),
        }
    }
}

/// Adds the kernels for all alignments of some towers. `None` where a block cannot hold a row.
pub fn emit(
    module: &mut Module,
    scheme: &Scheme,
    layout: &Layout,
    towers: &Towers,
    options: Options,
) -> Option<Vec<TowerKernel>> {
    let slot = Slot::new(scheme, layout);
    let threads = crate::lattice::div_ceil(slot.length, 32) * 32;
    if threads > MOST_THREADS {
        return None;
    }
    let shared = module.shared_on_demand(128);
    let mut kernels = Vec::new();
    for (number, sets) in towers.alignments.iter().enumerate() {
        let plan = Plan::new(layout, sets, towers.advance, options.direct);
        let bytes = plan.slots as i64 * slot.stride * layout.element_bytes as i64;
        let kernel = TowerKernel {
            symbol: format!("torre_tower_{number}"),
            threads: threads as u32,
            shared: u32::try_from(bytes).ok()?,
            plan,
        };
        write::write(
            module, scheme, layout, towers, slot, &kernel, shared, options,
        );
        kernels.push(kernel);
    }
    Some(kernels)
}
