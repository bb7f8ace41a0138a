//! The kernel as PTX in an interpreter that looks for races: same bits as row kernels stage by stage.

mod ghosts;
mod layers;
mod packed;
mod random;
mod slabs;
mod trial;
mod z_blocks;

use torre_compiler::backend::gpu::tower::*;
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::layout::Layout;
use torre_compiler::scheme::{Boundary, Precision, Scheme};
use torre_compiler::testing::{Effort, bounded, elasticity, maxwell};
use torre_compiler::tower::block::{Abilities, Division, Options};
use torre_compiler::tower::{Numbering, TowerProgram};
use trial::Trial;

/// `None`, with a word about it, where there is no LLVM.
fn library() -> Option<&'static Library> {
    Effort::Least.choose();
    Library::open()
        .inspect_err(|error| eprintln!("skipped: {error}"))
        .ok()
}

const ZERO: [[Boundary; 2]; 3] = [[Boundary::Zero; 2]; 3];
/// Ghosts beyond all ends.
const WALLS: [[Boundary; 2]; 3] = {
    use Boundary::*;
    [[Pec, Pmc], [Pmc, Pec], [Pec, Pmc]]
};
/// Ghosts along the outer and the inner axis.
const MIRRORS: [[Boundary; 2]; 3] = {
    use Boundary::*;
    [[Pec, Pmc], [Zero; 2], [Pmc, Pec]]
};
/// The inner axis is periodic.
const RING: [[Boundary; 2]; 3] = {
    use Boundary::*;
    [[Zero, Pec], [Zero; 2], [Periodic; 2]]
};

/// FDTD of an order with such ends.
fn fdtd(order: u32, precision: Precision, cells: [i64; 3], ends: [[Boundary; 2]; 3]) -> Scheme {
    bounded(maxwell(order, precision, cells), ends)
}

#[test]
fn towers_give_the_bits_of_rows() {
    let Some(library) = library() else { return };
    let (f32, f64) = (Precision::F32, Precision::F64);
    let usual = Abilities {
        moves_registers: true,
        ..Abilities::default()
    };
    let plain = Abilities {
        asynchronous: false,
        ..usual
    };
    let hungry = Abilities {
        working_registers: 200,
        ..usual
    };
    for (number, (scheme, pitch, periods, abilities)) in [
        (fdtd(4, f32, [23, 25, 37], ZERO), 6, 4, usual),
        (fdtd(4, f32, [13, 16, 32], WALLS), 3, 3, usual),
        (fdtd(4, f64, [13, 14, 20], RING), 3, 2, usual),
        (fdtd(2, f32, [13, 12, 24], WALLS), 3, 4, plain),
        // Lines for which a shared row ends with the values above the last index, and a copy goes beyond that.
        (fdtd(4, f32, [12, 13, 27], WALLS), 3, 2, usual),
        (fdtd(4, f32, [12, 13, 28], RING), 3, 2, usual),
        // Lines of which two warps copy each row, and a third one does not.
        (fdtd(2, f64, [9, 11, 128], ZERO), 3, 2, usual),
        // Lines for which registers are moved, with an idle warp.
        (fdtd(2, f32, [9, 11, 200], WALLS), 3, 2, hungry),
        // With three, which copy.
        (fdtd(2, f32, [9, 11, 150], WALLS), 3, 2, hungry),
        (elasticity(f32, [14, 15, 12]), 3, 3, plain),
        (elasticity(f64, [13, 16, 12]), 3, 2, usual),
    ]
    .into_iter()
    .enumerate()
    {
        // All that users get for a scheme of each kind; that takes far longer, and the kernels are the same.
        let effort = match number {
            3 | 4 | 9 => Effort::Full,
            _ => Effort::Least,
        };
        effort.choose();
        let trial = Trial {
            options: Options {
                abilities,
                ..Options::default()
            },
            seed: number as u64,
            ..Trial::new(library, &scheme, pitch, periods)
        };
        let packed = [false, true].map(|packed| Trial { packed, ..trial });
        let trials = 1 + usize::from(Numbering::packs(&scheme));
        for trial in packed.iter().take(trials) {
            let report = trial.succeed();
            assert!(report.with_interior > 4, "{number}: {report:?}");
        }
    }
}

/// Rings that towers divide evenly, with a narrow face, with towers that lie on the lattice in two ways, with a seam,
/// with both; of one block and of two.
#[test]
fn towers_go_around_periodic_axes() {
    use Boundary::*;
    let Some(library) = library() else { return };
    let walls = [Pec, Pmc];
    let (f32, f64) = (Precision::F32, Precision::F64);
    let second = [walls, [Periodic; 2], [Zero; 2]];
    let first = [[Periodic; 2], walls, [Periodic; 2]];
    let both = [[Periodic; 2], [Periodic; 2], walls];
    for (number, (scheme, pitch, periods, slabs)) in [
        (fdtd(4, f32, [14, 15, 20], second), 3, 3, 1),
        (fdtd(4, f32, [13, 17, 17], second), 3, 3, 1),
        (fdtd(2, f64, [14, 19, 16], second), 3, 4, 1),
        (fdtd(4, f32, [44, 14, 20], first), 3, 3, 1),
        (fdtd(2, f32, [33, 17, 24], both), 3, 4, 1),
        (fdtd(4, f64, [36, 15, 12], both), 3, 2, 1),
        (fdtd(2, f32, [26, 16, 40], both), 3, 2, 2),
        (bounded(elasticity(f32, [36, 16, 12]), both), 3, 2, 1),
    ]
    .into_iter()
    .enumerate()
    {
        let options = Options {
            division: Division::Shared(slabs),
            abilities: Abilities {
                moves_registers: number % 2 == 0,
                ..Abilities::default()
            },
        };
        let report = Trial {
            options,
            seed: number as u64,
            ..Trial::new(library, &scheme, pitch, periods)
        }
        .succeed();
        assert!(report.with_interior > 4, "{number}: {report:?}");
    }
}
