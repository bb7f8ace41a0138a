//! Rows that one call of a kernel advances.

use torre_compiler::kernel::Run;
use torre_compiler::lattice::{Axis, Group, Interval, PerAxis, Region};
use torre_compiler::layout::Layout;
use torre_compiler::scheme::StageId;
use torre_compiler::tile::{ClassSet, Segment};

/// Rows of one stage that are advanced by the same updates over the same range of the inner axis.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// Stages since the start of the collected rows.
    pub number: i64,
    pub stage: StageId,
    pub classes: ClassSet,
    pub range: Interval,
    /// As kernels take them, from the group (0, 0).
    pub runs: Vec<Run>,
    /// The first group of each run.
    pub places: Vec<Group>,
    /// Encloses the rows along the outer and middle axes.
    hull: [Interval; 2],
}

impl Batch {
    /// A box that has all rows, moved to an origin.
    pub fn bounds(&self, range: Interval, Group { x, y }: Group) -> Region {
        let [outer, middle] = self.hull;
        PerAxis([
            Interval::new(outer.lo + x, outer.hi + x),
            Interval::new(middle.lo + y, middle.hi + y),
            range,
        ])
    }

    /// The rows of a run, moved to an origin along the outer and middle axes, with a range of the inner axis.
    pub fn rows(&self, run: usize, axis: Axis, range: Interval, origin: Group) -> Region {
        let Group { x, y } = self.places[run] + origin;
        let mut rows = PerAxis([Interval::new(x, x + 1), Interval::new(y, y + 1), range]);
        rows[axis].hi = rows[axis].lo + self.runs[run].groups;
        rows
    }
}

/// Collects segments into batches. Within a stage the order of rows is free.
#[derive(Debug)]
pub(super) struct Collector {
    /// From an index to the next along the outer and the middle axis, in bytes.
    stride: [i64; 2],
    /// The axis along which a run's groups follow each other.
    axis: Axis,
    /// Groups in a run.
    most: i64,
    pub batches: Vec<Batch>,
    /// Batches whose lists can be filled again.
    spare: Vec<Batch>,
}

impl Collector {
    pub fn new(layout: &Layout, axis: Axis, most: i64) -> Self {
        let bytes = layout.element_bytes as i64;
        Self {
            stride: [Axis::OUTER, Axis::MIDDLE].map(|a| layout.stride[a] * bytes),
            axis,
            most: most.max(1),
            batches: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Takes back batches that were run, for their memory.
    pub fn reuse(&mut self, batches: Vec<Batch>) {
        if self.spare.is_empty() {
            self.spare = batches;
        }
    }

    pub fn add(&mut self, segment: &Segment) {
        let [outer, middle, range] = segment.rows.0;
        if segment.rows.is_empty() {
            return;
        }
        // Batches of a stage follow each other.
        let newest_first = self.batches.iter().enumerate().rev();
        let known = newest_first
            .take_while(|(_, batch)| batch.number == segment.number)
            .find(|(_, batch)| batch.classes == segment.classes && batch.range == range)
            .map(|(index, _)| index);
        let index = known.unwrap_or_else(|| {
            let (mut runs, mut places) = match self.spare.pop() {
                Some(batch) => (batch.runs, batch.places),
                None => (Vec::new(), Vec::new()),
            };
            runs.clear();
            places.clear();
            self.batches.push(Batch {
                number: segment.number,
                stage: segment.stage,
                classes: segment.classes,
                range,
                runs,
                places,
                hull: [Interval::default(); 2],
            });
            self.batches.len() - 1
        });
        let batch = &mut self.batches[index];
        batch.hull = [batch.hull[0].hull(outer), batch.hull[1].hull(middle)];
        let (across, along) = match self.axis {
            Axis::MIDDLE => (outer, middle),
            _ => (middle, outer),
        };
        for of_run in across.lo..across.hi {
            let mut lo = along.lo;
            while lo < along.hi {
                let groups = self.most.min(along.hi - lo);
                let (x, y) = match self.axis {
                    Axis::MIDDLE => (of_run, lo),
                    _ => (lo, of_run),
                };
                batch.runs.push(Run {
                    offset: x * self.stride[0] + y * self.stride[1],
                    groups,
                });
                batch.places.push(Group { x, y });
                lo += groups;
            }
        }
    }
}
