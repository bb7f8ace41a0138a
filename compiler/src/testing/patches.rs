//! Patch programs of random shapes.

use super::random::{Limits, Rng};
use crate::lattice::PerAxis;
use crate::layout::Layout;
use crate::patch::{CoefPlace, PatchProgram, Shape, verify};
use crate::schedule::Pyramid;
use crate::scheme::Scheme;

impl Limits {
    /// Schemes with one or two axes, on grids that take several tiles.
    pub const PATCHES: Limits = Limits {
        dimensions: 2,
        components: 3,
        stages: 3,
        ops: 8,
        length: 90,
        width: 40,
        reach: 3,
    };

    /// Schemes with three axes, and some with fewer, on grids that take several tiles.
    pub const PATCHES_IN_SPACE: Limits = Limits {
        dimensions: 3,
        components: 3,
        stages: 3,
        ops: 8,
        length: 24,
        width: 16,
        reach: 2,
    };
}

/// A small shape for a scheme.
fn random_shape(rng: &mut Rng, scheme: &Scheme) -> Shape {
    let coefs = |rng: &mut Rng| *rng.pick(&[CoefPlace::Registers, CoefPlace::Shared]);
    match scheme.grid.dimensions() {
        dimensions @ (1 | 2) => {
            let one = dimensions == 1;
            let warps = if one { 1 } else { rng.within(1, 4) };
            let lines = if one { 1 } else { rng.within(2, 7) };
            let patch = [lines, rng.within(1, 5)];
            Shape::of_lines(warps, patch, coefs(rng))
        }
        _ => Shape {
            threads: *rng.pick(&[
                [1, 4, 8],
                [2, 4, 8],
                [4, 2, 4],
                [2, 4, 16],
                [1, 8, 16],
                [1, 6, 32],
                [3, 2, 32],
                [4, 8, 2],
            ]),
            patch: [rng.within(3, 7), rng.within(2, 4), rng.within(1, 4)],
            coefs: coefs(rng),
            reuses_slots: false,
            blocks: 1,
        },
    }
}

/// A program of some shape, if there is one; its rules are checked.
pub fn random_patches(rng: &mut Rng, scheme: &Scheme) -> Option<PatchProgram> {
    let layout = Layout::for_gpu(scheme).ok()?;
    let mut shape = random_shape(rng, scheme);
    let three = scheme.grid.dimensions() == 3;
    let [least, most, height] = if three { [4, 12, 2] } else { [1, 40, 6] };
    let base = |rng: &mut Rng| rng.once_in(2).then(|| rng.within(least, most));
    let pyramid = Pyramid {
        height: rng.within(1, height) as u64,
        base: PerAxis([base(rng), if three { base(rng) } else { None }, base(rng)]),
    };
    shape.reuses_slots = rng.once_in(2);
    let program = PatchProgram::new(scheme, &layout, &pyramid, shape).ok()?;
    let verified = verify(scheme, &layout, &program);
    verified.unwrap_or_else(|fault| panic!("{fault}\n{program}\n{scheme}"));
    Some(program)
}
