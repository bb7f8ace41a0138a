//! Boxes of cell indices in which a stage runs one set of updates, with no conditions inside, and the kernels of a
//! layerwise run, which advance such boxes.

use super::{KernelSet, RowKernel, UpdateSet};
use crate::distinct::distinct;
use crate::lattice::{Axis, Interval, PerAxis, Region};
use crate::layout::Layout;
use crate::scheme::{Scheme, StageId, Update, ZoneSet};
use std::collections::BTreeSet;

/// A box in which exactly these updates of a stage run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageBox {
    pub updates: UpdateSet,
    pub region: Region,
}

impl StageBox {
    /// The cell-stages of a step in it: cells times updates.
    pub fn cell_stages(&self) -> u64 {
        self.region.volume() * u64::from(self.updates.0.count_ones())
    }
}

/// The kernels that a layerwise run needs: one for each set of updates that runs together somewhere, in each phase.
pub fn layerwise_kernels(scheme: &Scheme, layout: Layout) -> KernelSet {
    let mut kernels = BTreeSet::new();
    for stage in scheme.stage_ids() {
        for block in stage_boxes(scheme, stage) {
            for phase in 0..scheme.phases() {
                kernels.insert(RowKernel {
                    stage,
                    phase,
                    updates: block.updates,
                    zones: ZoneSet::default(),
                });
            }
        }
    }
    KernelSet::new(scheme, layout, kernels)
}

/// The region of an update as kernels run it. Where only the plane at inner index 0 is left out because its values are
/// 0 by the boundary, the plane is run too and set to 0 afterwards, so that all components of a stage run the same
/// range.
pub fn row_region(scheme: &Scheme, update: &Update) -> Region {
    let position = scheme.component(update.target).position;
    let live = scheme.grid.live(position)[Axis::INNER];
    let mut region = update.region;
    if region[Axis::INNER].lo == live.lo {
        region[Axis::INNER].lo = 0;
    }
    region
}

/// Cuts the grid at the ends of all regions of a stage's updates and lists the boxes in which any update runs. The
/// boxes are disjoint and cover each update's region.
pub fn stage_boxes(scheme: &Scheme, stage: StageId) -> Vec<StageBox> {
    let regions: Vec<Region> = scheme.stages[stage.index()]
        .updates
        .iter()
        .map(|u| row_region(scheme, u))
        .collect();
    let cuts: PerAxis<Vec<i64>> = PerAxis::from_fn(|axis| {
        let regions = regions.iter().filter(|r| !r.is_empty());
        distinct(regions.flat_map(|r| [r[axis].lo, r[axis].hi]))
    });
    let parts = |axis: Axis| cuts[axis].windows(2).map(|w| Interval::new(w[0], w[1]));
    let mut boxes: Vec<StageBox> = Vec::new();
    for x in parts(Axis::OUTER) {
        for y in parts(Axis::MIDDLE) {
            for z in parts(Axis::INNER) {
                let region = PerAxis([x, y, z]);
                let corner = region.map(|i| i.lo);
                let mut updates = UpdateSet::default();
                for (i, r) in regions.iter().enumerate() {
                    if r.contains(corner) {
                        updates.insert(i);
                    }
                }
                if !updates.is_empty() {
                    push_merged(&mut boxes, StageBox { updates, region });
                }
            }
        }
    }
    boxes
}

/// Joins the next box to the last one where they differ only along the inner axis and touch.
fn push_merged(boxes: &mut Vec<StageBox>, next: StageBox) {
    if let Some(last) = boxes.last_mut() {
        let same = last.updates == next.updates
            && last.region[Axis::OUTER] == next.region[Axis::OUTER]
            && last.region[Axis::MIDDLE] == next.region[Axis::MIDDLE]
            && last.region[Axis::INNER].hi == next.region[Axis::INNER].lo;
        if same {
            last.region[Axis::INNER].hi = next.region[Axis::INNER].hi;
            return;
        }
    }
    boxes.push(next);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_boxes_touch() {
        let region = |lo, hi| {
            PerAxis([
                Interval::new(0, 1),
                Interval::new(0, 1),
                Interval::new(lo, hi),
            ])
        };
        let updates = UpdateSet(1);
        let mut boxes = Vec::new();
        for (lo, hi) in [(0, 3), (3, 5), (6, 7)] {
            push_merged(
                &mut boxes,
                StageBox {
                    updates,
                    region: region(lo, hi),
                },
            );
        }
        let regions: Vec<Region> = boxes.iter().map(|b| b.region).collect();
        assert_eq!(regions, [region(0, 5), region(6, 7)]);
    }
}
