//! Kernels where zones amend some of the updates of a stage, and not others.

use super::kernels::{compare_codes, compiled, kernel_set};
use torre_compiler::kernel::{RowKernel, UpdateSet};
use torre_compiler::scheme::Stage;
use torre_compiler::testing::{
    Limits, Rng, add_random_bands, add_random_zones, random_kernels, random_scheme,
};

/// Kernels of updates that no zone amends run in the zones of other updates, too: where a stage has no kernel for some
/// of its updates, their kernels run one after the other, over runs that are cut at all zones of these updates.
#[test]
fn kernels_run_in_zones_of_other_updates() {
    let limits = Limits {
        dimensions: 2,
        components: 3,
        stages: 1,
        ops: 4,
        length: 60,
        width: 8,
        reach: 2,
    };
    let mut tried = 0;
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits);
        match seed % 2 {
            0 => add_random_zones(&mut rng, &limits, &mut scheme),
            _ => add_random_bands(&mut rng, &limits, &mut scheme),
        }
        let is_mixed = |stage: &Stage| {
            let amended = stage.updates.iter().map(|u| !u.amendments.is_empty());
            amended.clone().any(|is| is) && amended.clone().any(|is| !is)
        };
        if !scheme.stages.iter().any(is_mixed) {
            continue;
        }
        let singles = random_kernels(&mut rng, &scheme).into_iter();
        let singles = singles.flat_map(|kernel| {
            kernel.updates.iter().map(move |update| RowKernel {
                updates: UpdateSet(1 << update),
                ..kernel
            })
        });
        let set = kernel_set(&scheme, singles.collect());
        let codes = compiled(&scheme, &set, &mut rng, &[false]);
        for _ in 0..20 {
            let compared = compare_codes(&scheme, &set, &codes, &mut rng, 0);
            assert_eq!(compared, Ok(()), "{seed}");
        }
        tried += 1;
    }
    assert!(tried >= 5, "{tried}");
}
