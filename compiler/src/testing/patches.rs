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
}

/// A small shape for a scheme with one axis or two.
fn random_shape(rng: &mut Rng, scheme: &Scheme) -> Shape {
    let one = scheme.grid.dimensions() == 1;
    Shape {
        warps: if one { 1 } else { rng.within(1, 4) },
        patch: [if one { 1 } else { rng.within(2, 7) }, rng.within(1, 5)],
        coefs: *rng.pick(&[CoefPlace::Registers, CoefPlace::Shared]),
        blocks: 0,
    }
}

/// A program of some shape, if there is one; its rules are checked.
pub fn random_patches(rng: &mut Rng, scheme: &Scheme) -> Option<PatchProgram> {
    let layout = Layout::for_gpu(scheme).ok()?;
    let shape = random_shape(rng, scheme);
    let base = |rng: &mut Rng| rng.once_in(2).then(|| rng.within(1, 40));
    let pyramid = Pyramid {
        height: rng.within(1, 6) as u64,
        base: PerAxis([base(rng), None, base(rng)]),
    };
    let program = PatchProgram::new(scheme, &layout, &pyramid, shape).ok()?;
    let verified = verify(scheme, &layout, &program);
    verified.unwrap_or_else(|fault| panic!("{fault}\n{program}\n{scheme}"));
    Some(program)
}
