//! The blocks of threads that could run towers on a GPU, by how lines are divided.

use super::layers;
use torre_compiler::backend::gpu::{Feature, Gpu};
use torre_compiler::lattice::Axis;
use torre_compiler::layout::Layout;
use torre_compiler::scheme::{Precision, Scheme};
use torre_compiler::tower::block::{
    Abilities, Block, Division, MOST_REGISTERS, MOST_SLABS, MOST_THREADS, Misfit, Options, WARP,
    amending_registers,
};
use torre_compiler::tower::{AllocatedTowers, Towers};

/// Registers of a thread for all but the values that it keeps, at least. It takes [`Abilities::working_registers`]
/// where there are more.
const WORKING: u64 = 24;

/// Registers beside them for threads of z blocks that may be at an end where ghosts are made: with fewer, they keep
/// periods and places in memory.
const AT_ENDS: u64 = 28;

/// Registers beside them for amendments of several variants where warps pass no registers on, in f32 and f64: with 168
/// registers and six layers, W = 4 keeps all values of FDTD(4,2) in them, W = 5 spills 292 bytes; in f64 W = 5 with 255
/// registers, six layers and a medium spills 44 bytes.
const FIXED: [u64; 2] = [40, 56];

/// The same in f64 where warps pass registers on: with six layers, W = 5 has eight bytes in memory with 240 registers,
/// W = 4 has none with 200.
const FIXED_AND_MOVED: u64 = 40;

/// Registers beyond the least number of a thread with which it keeps few values in memory: usually, and around rings or
/// where all towers run amendments; and the number that is enough at any rate. On 512^3 cells of an H200, FDTD(4,2)
/// with walls, lines in one block with W = 4 and 80 registers do 101e9 cell-steps/s, 2 z blocks with W = 6 90e9; around
/// three rings they do 63e9, and 88e9 with W = 3. In layers along x and z lines in one block with W = 3 do 80e9, and 2
/// slabs with W = 4 84e9.
const PLENTY: [u64; 2] = [16, 32];
const ENOUGH: u64 = 239;

/// How many fewer registers for amendments are enough where all towers run the same amendments: on an H200 layers along
/// the last axis alone have none in memory with 160 registers, W = 5 and 2 slabs of 384, and do 75.0e9 cell-steps/s, W
/// = 4 70.5e9; on six sides W = 5 keeps values in memory and does 56.9e9, W = 4 64.4e9.
const ALONE: u32 = 8;

/// Share of towers up to which variants that only some towers run may keep values in memory: in f64 a medium in half of
/// the grid has 360 bytes there with D = 2 and 255 registers.
const FEW: f64 = 0.3;

/// How many numbers of slabs are tried, from the least one on, and how many sizes of z blocks, from the largest one on.
const TRIED_SLABS: usize = 3;
const TRIED_Z_BLOCKS: usize = 5;

/// Warps that compute of a block by which sizes of z blocks are estimated.
const USUAL_WARPS: u32 = 8;

/// Values that a thread keeps from one stage to the next, at most.
pub fn most_kept(towers: &Towers) -> usize {
    let kept = towers.alignments.iter().map(|a| a.most_kept());
    kept.max().unwrap_or(0)
}

/// Registers for the values that a thread of towers keeps, and for its work, at least. Variants that only few towers
/// run may spill.
fn least_registers(scheme: &Scheme, towers: &Towers) -> u64 {
    let variants = &towers.variants;
    let amending = match (variants.all_have_zones(), variants.plain()) {
        (true, 1) => u64::from(amending_registers(scheme) - ALONE),
        (true, _) => u64::from(amending_registers(scheme)),
        (false, _) if layers::share_of_low(scheme, towers) > FEW => {
            u64::from(amending_registers(scheme))
        }
        (false, _) => 0,
    };
    (most_kept(towers) * scheme.precision.bytes()).div_ceil(4) as u64 + WORKING + amending
}

/// Registers that a thread of a block needs at least.
pub fn registers(scheme: &Scheme, towers: &Towers, block: &Block) -> u64 {
    let variants = &towers.variants;
    let at_ends = block.lines.z_blocks().is_some() && block.ghosts.is_some();
    let double = usize::from(scheme.precision == Precision::F64);
    let moved = block.roles.moved.is_some();
    let amending = variants.all_have_zones() && variants.plain() != 1;
    let more = [
        (at_ends, AT_ENDS),
        (amending && !moved, FIXED[double]),
        (amending && moved && double == 1, FIXED_AND_MOVED),
    ];
    let more = more
        .iter()
        .map(|(has, registers)| if *has { *registers } else { 0 });
    least_registers(scheme, towers) + more.sum::<u64>()
}

/// The options of a GPU for towers whose lines are divided in some way.
pub fn options(gpu: Gpu, division: Division) -> Options {
    let abilities = Abilities {
        asynchronous: gpu.has(Feature::AsyncCopy),
        moves_registers: gpu.has(Feature::RegisterShift),
        suspends: gpu.has(Feature::Cluster),
        shared_bytes: gpu.shared_per_block,
        ..Abilities::default()
    };
    Options {
        division,
        abilities,
    }
}

/// The blocks of a GPU that may run towers. If one block holds whole lines, that is all; else as few slabs as possible,
/// or some more, where the GPU has clusters; or z blocks that are as long as possible, or somewhat shorter. If nothing
/// fits, the block with whole lines, or why there is none.
pub fn candidates(
    scheme: &Scheme,
    layout: &Layout,
    towers: &AllocatedTowers,
    gpu: Gpu,
) -> Vec<Result<Block, Misfit>> {
    let of = |division| towers.block(scheme, layout, options(gpu, division));
    let towers = &towers.towers;
    let least = least_registers(scheme, towers);
    let block_fits = |block: &Block| {
        block.all_shared() <= gpu.shared_per_block
            && registers(scheme, towers, block) <= u64::from(block.roles.registers)
    };
    let fits = |block: &Result<Block, Misfit>| block.as_ref().is_ok_and(block_fits);
    let is_ring = |axis: &Axis| scheme.grid.is_periodic(*axis);
    let tight = Axis::ALL.iter().any(is_ring) || towers.variants.all_have_zones();
    let beyond = PLENTY[usize::from(tight)];
    let enough = (least + beyond).min(ENOUGH);
    let plenty = |block: &Result<Block, Misfit>| {
        let has = |block: &Block| block_fits(block) && enough <= u64::from(block.roles.registers);
        block.as_ref().is_ok_and(has)
    };
    let whole = of(Division::Shared(1));
    if least > u64::from(MOST_REGISTERS) || !towers.waits_reach_all() || plenty(&whole) {
        return vec![whole];
    }
    let best = |divisions: &mut dyn Iterator<Item = Division>, tried| {
        let mut some: Vec<Result<Block, Misfit>> =
            divisions.map(of).filter(fits).take(tried).collect();
        if some.iter().any(plenty) {
            some.retain(plenty);
        }
        some
    };
    // Shorter z blocks take less memory.
    let most = of(Division::ZBlocks(USUAL_WARPS)).map_or(0, |block| {
        USUAL_WARPS * gpu.shared_per_block / block.all_shared().max(1)
    });
    let length = layout.extent[Axis::INNER];
    let most = most.min((length.min(MOST_THREADS) / WARP) as u32);
    let z_blocks = best(&mut (1..=most).rev().map(Division::ZBlocks), TRIED_Z_BLOCKS);
    // Fewer slabs than this have too little memory or too few threads.
    let least = whole
        .as_ref()
        .map_or(2, |block| block.all_shared().div_ceil(gpu.shared_per_block));
    let most = if gpu.has(Feature::Cluster) {
        MOST_SLABS
    } else {
        0
    };
    let mut all = best(
        &mut (least.max(2)..=most).map(Division::Shared),
        TRIED_SLABS,
    );
    all.extend(z_blocks);
    if all.iter().any(plenty) {
        all.retain(plenty);
    }
    match all.first() {
        Some(first) if plenty(first) || !fits(&whole) => all,
        _ => vec![whole],
    }
}
