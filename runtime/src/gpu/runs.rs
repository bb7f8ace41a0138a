//! The bytes of an array that have some of its values.

use crate::simulation::{Part, PartOf};
use std::ops::Range;
use torre_compiler::lattice::{Interval, PerAxis, Region};
use torre_compiler::layout::Layout;
use torre_compiler::scheme::Scheme;

/// Bytes between two runs that are copied with them: a copy of its own takes longer.
const BETWEEN: i64 = 128 << 10;

/// The bytes of an array after `steps` steps that have parts of its values: ascending runs, which do not overlap.
pub(super) fn runs(
    scheme: &Scheme,
    layout: &Layout,
    steps: u64,
    parts: &[Part],
) -> Vec<Range<usize>> {
    let bytes = layout.element_bytes as i64;
    let mut runs: Vec<[i64; 2]> = Vec::new();
    for Part { of, region } in parts {
        match *of {
            PartOf::Newest(id) => {
                let version = steps * u64::from(scheme.updates_per_step(id));
                let row = layout.row(id, version);
                let region = region.intersect(scheme.extent(id));
                add(&mut runs, region, bytes, |at| layout.element(row, at));
            }
            PartOf::State(id) => {
                let zone = &layout.zones[scheme.states[id.index()].zone.index()];
                let row = i64::from(layout.state_row(id)) * zone.row_stride;
                for own in &zone.boxes {
                    let region = region.intersect(own.region);
                    add(&mut runs, region, bytes, |at| {
                        let PerAxis([x, y, z]) = at;
                        own.group(zone, x, y) + row + z
                    });
                }
            }
        }
    }
    runs.sort_unstable();
    let mut merged: Vec<[i64; 2]> = Vec::new();
    for [from, to] in runs {
        match merged.last_mut() {
            Some([_, end]) if from - *end <= BETWEEN => *end = to.max(*end),
            _ => merged.push([from, to]),
        }
    }
    let as_range = |[from, to]: [i64; 2]| from as usize..to as usize;
    merged.into_iter().map(as_range).collect()
}

/// Adds the bytes of a box, by planes across the outer axis, or by rows where these lie far from each other.
fn add(
    runs: &mut Vec<[i64; 2]>,
    region: Region,
    bytes: i64,
    element: impl Fn(PerAxis<i64>) -> i64,
) {
    if region.is_empty() {
        return;
    }
    let [planes, rows, along] = region.0;
    let run = |x: i64, rows: Interval| {
        let first = element(PerAxis([x, rows.lo, along.lo]));
        let last = element(PerAxis([x, rows.hi - 1, along.hi - 1]));
        [first * bytes, (last + 1) * bytes]
    };
    let row = |y: i64| run(planes.lo, Interval::new(y, y + 1));
    let gap = match rows.len() {
        1 => 0,
        _ => row(rows.lo + 1)[0] - row(rows.lo)[1],
    };
    for x in planes.lo..planes.hi {
        match gap <= BETWEEN {
            true => runs.push(run(x, rows)),
            false => runs.extend((rows.lo..rows.hi).map(|y| run(x, Interval::new(y, y + 1)))),
        }
    }
}

/// The bytes of all runs.
pub(super) fn bytes(runs: &[Range<usize>]) -> u64 {
    runs.iter().map(|run| run.len() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_compiler::lattice::Axis;
    use torre_compiler::scheme::{ComponentId, Precision};
    use torre_compiler::testing::maxwell;

    fn box_of(lo: [i64; 3], hi: [i64; 3]) -> Region {
        PerAxis::from_fn(|axis| Interval::new(lo[axis.index()], hi[axis.index()]))
    }

    /// Runs have all elements of the parts, and no more than the planes of the parts but for bytes between them.
    #[test]
    fn runs_have_the_planes_of_the_parts() {
        let scheme = maxwell(4, Precision::F32, [40, 300, 400]);
        let layout = Layout::for_gpu(&scheme).expect("small");
        let plane = layout.stride[Axis::OUTER] as u64 * 4;
        let regions = [
            box_of([7, 10, 30], [8, 11, 31]),
            box_of([20, 0, 0], [23, 300, 400]),
            box_of([20, 5, 3], [22, 280, 9]),
        ];
        for region in regions {
            for id in [0, 4].map(ComponentId) {
                let of = PartOf::Newest(id);
                let found = runs(&scheme, &layout, 3, &[Part { of, region }]);
                let version = 3 * u64::from(scheme.updates_per_step(id));
                let row = layout.row(id, version);
                torre_compiler::reference::for_each_index(region, |at| {
                    let byte = layout.element(row, at) as usize * 4;
                    assert!(found.iter().any(|run| run.contains(&byte)), "{at:?}");
                });
                let planes = region[Axis::OUTER].len() as u64;
                assert!(bytes(&found) <= planes * plane, "{region:?}: {found:?}");
                assert!(found.is_sorted_by_key(|run| run.start));
            }
        }
        let part = |region| Part {
            of: PartOf::Newest(ComponentId(0)),
            region,
        };
        let one = runs(&scheme, &layout, 3, &[part(regions[0])]);
        assert_eq!(bytes(&one), 4);
        // Two planes that are far from each other are two runs.
        let two = [box_of([0; 3], [1; 3]), box_of([30, 0, 0], [31, 1, 1])];
        assert_eq!(runs(&scheme, &layout, 3, &two.map(part)).len(), 2);
        assert!(runs(&scheme, &layout, 3, &[part(box_of([0; 3], [0; 3]))]).is_empty());
    }
}
