//! The order of towers in time blocks: how wide strips are, and how many work queues there are.

use super::predict;
use crate::gpu::device::Facts;
use torre_compiler::scheme::Scheme;
use torre_compiler::tower::block::Block;
use torre_compiler::tower::{Order, Towers};

/// Bytes that the towers of a column may load and store in a time block, as a share of a partition of the L2 cache; and
/// the least number of them, and the most. More towers side by side keep blocks from waiting for each other, and make
/// fewer strips, at whose ends many wait for towers with boundary periods. With fewer, more values that one column
/// stores are there for the next.
const COLUMN: (f64, [f64; 2]) = (0.42, [4.0, 16.0]);

/// The same share where a period has more arithmetic instructions than the first number: fetching them takes longer
/// than moving bytes, and more slack is worth more.
const LONG: (f64, f64) = (1500.0, 0.72);

/// Columns of a strip that alternate with columns of the next one of its partition: where all ends of the grid only
/// predicate rows, and where some make boundary periods.
const OVERLAP: [i64; 2] = [12, 16];

/// The usual order of the towers of a time block of `steps` steps.
pub fn usual_order(
    scheme: &Scheme,
    towers: &Towers,
    block: &Block,
    steps: u64,
    facts: &Facts,
) -> Order {
    let line = f64::from(block.values) * f64::from(block.lines.cluster());
    let moved = towers.bytes_per_cell(scheme) * towers.cells() * line * steps as f64;
    let (usual, [least, most]) = COLUMN;
    let (long, more) = LONG;
    let period = towers.cells() * (towers.steps as usize * towers.alignments.len()) as f64;
    let share = match period * predict::arithmetic(scheme) as f64 > long {
        true => more,
        false => usual,
    };
    let held = share * facts.l2 as f64 / f64::from(facts.partitions());
    let ends = towers.predicating_ends(scheme);
    let [predicated, cut] = OVERLAP;
    Order {
        width: (held / moved.max(1.0)).round().clamp(least, most) as i64,
        overlap: if ends.as_flattened().iter().all(|p| *p) {
            predicated
        } else {
            cut
        },
        head_start: 0,
        partitions: facts.partitions().min(most_queues(block, facts)),
    }
}

/// Work queues that a device can serve: there is a cluster for each at any time.
pub fn most_queues(block: &Block, facts: &Facts) -> u32 {
    (facts.multiprocessors / block.lines.cluster()).max(1)
}
