//! Lines with ghosts at their ends.

use super::*;
use crate::ghost::AxisGhosts;

/// Walls and a ring along the inner axis: what reads a ghost is in the warp of its source, in another one, at both ends of one warp; towers that
/// lie on the lattice in two ways take turns with the same slots.
#[test]
fn lines_have_ghosts_at_their_ends() {
    use Boundary::*;
    let Some(library) = library() else { return };
    let (f32, f64) = (Precision::F32, Precision::F64);
    let of = |order, precision, cells, z| {
        let ends = [[Pec, Pmc], [Pmc, Pec], z];
        bounded(maxwell(order, precision, cells), ends)
    };
    for (seed, (scheme, pitch, periods, made)) in [
        (of(4, f32, [20, 22, 32], [Pec; 2]), 3, 2, true),
        (of(4, f32, [22, 29, 72], [Pec; 2]), 6, 2, true),
        (of(4, f32, [22, 25, 31], [Pmc; 2]), 6, 2, true),
        (of(4, f64, [22, 25, 39], [Pmc, Pec]), 9, 2, true),
        (of(4, f32, [22, 25, 40], [Pec, Zero]), 6, 2, true),
        (of(4, f32, [22, 25, 40], [Periodic; 2]), 6, 2, true),
        // The last warp has one value, two, and one again.
        (of(4, f32, [22, 25, 32], [Pec, Pmc]), 6, 2, false),
        (of(4, f32, [22, 25, 65], [Pmc; 2]), 3, 2, true),
        (of(2, f64, [12, 13, 33], [Periodic; 2]), 3, 3, true),
        (of(2, f64, [12, 13, 64], [Pec, Pmc]), 3, 3, true),
    ]
    .into_iter()
    .enumerate()
    {
        let options = Options {
            single: true,
            ..Options::default()
        };
        let pitches = [Rational::whole(pitch); 2];
        for flow in [false, true] {
            let report = differ(
                library,
                &scheme,
                pitches,
                periods,
                options,
                seed as u64,
                flow,
            );
            let report = report.unwrap_or_else(|| panic!("towers of {} {seed}", scheme.name));
            assert!(report.whole > 4, "{seed}: {report:?}");
            assert_eq!(report.made, made, "{seed}");
        }
    }
}

/// Writes to all ghosts along the inner axis what nobody may read.
pub(super) fn spoil(host: &mut Host<'_>, device: &mut Device, array: Buffer) {
    let bytes = device.read(array).to_vec();
    host.bytes().copy_from_slice(&bytes);
    let scheme = host.scheme;
    let [lean, diamond] = [Axis::OUTER, Axis::MIDDLE].map(|axis| host.layout.visible(axis));
    for id in scheme.component_ids() {
        for slot in 0..scheme.component(id).time_levels {
            let row = host.layout.row(id, slot.into());
            for (_, ghost) in AxisGhosts::new(scheme, id, Axis::INNER).pairs() {
                for x in lean.lo..lean.hi {
                    for y in diamond.lo..diamond.hi {
                        let at = PerAxis([x, y, ghost.index]);
                        let element = host.layout.element(row, at) as usize;
                        // Rows on a plane about which they are odd stay 0.
                        if host.memory.bits(element) != 0 {
                            host.memory.set(element, 1e30);
                        }
                    }
                }
            }
        }
    }
    let bytes = host.bytes().to_vec();
    device.write(array, 0, &bytes).expect("it fits");
}
