//! Parts of an array that are copied: lines of elements at equal distances.

use super::{AxisCoefs, BoxLayout, GPU_ALIGNMENT, Layout, Lines, Order, PIECE, ZoneLayout};
use crate::lattice::{Axis, Interval, div_ceil, div_floor};

impl Layout {
    /// The data of planes across the outer axis at some indices along the middle axis: rows of the grid, and after them
    /// the states of each box of a zone there, in the order of boxes. Layouts of the same scheme for the same alignment
    /// and with the same order have the same lines.
    pub fn part(&self, planes: Interval, rows: Interval) -> Vec<Lines> {
        let [planes, rows] = [
            planes.intersect(self.visible(Axis::OUTER)),
            rows.intersect(self.visible(Axis::MIDDLE)),
        ];
        // The first row of a group begins with its ghosts.
        let piece = (PIECE / self.element_bytes) as i64;
        let below = div_ceil(i64::from(self.reach[Axis::INNER][0]), piece) * piece;
        let streams = match self.order {
            Order::ByGroup => 1,
            Order::ByComponent | Order::ByRow => i64::from(self.rows),
        };
        let grid = (0..streams).map(|n| Lines {
            first: self.group(planes.lo, rows.lo) + n * self.row_stride - below,
            length: rows.len() * self.stride[Axis::MIDDLE],
            stride: self.stride[Axis::OUTER],
            count: planes.len(),
        });
        let line = (GPU_ALIGNMENT / self.element_bytes) as i64;
        let of_box = |(zone, own): (&ZoneLayout, &BoxLayout)| {
            let [x, y] = [(Axis::OUTER, planes), (Axis::MIDDLE, rows)]
                .map(|(axis, range)| own.region[axis].intersect(range));
            let begin = div_floor(own.region[Axis::INNER].lo, line) * line;
            Lines {
                first: own.group(zone, x.lo, y.lo) + begin,
                length: y.len() * zone.group,
                stride: zone.plane,
                count: x.len(),
            }
        };
        let boxes = self.zones.iter();
        let boxes = boxes.flat_map(|zone| zone.boxes.iter().map(move |own| (zone, own)));
        let all = grid.chain(boxes.map(of_box));
        all.filter(|lines| lines.length > 0 && lines.count > 0)
            .collect()
    }

    /// The coefficients that depend on one axis only.
    pub fn coef_part(&self) -> Vec<Lines> {
        let of_axis = |(axis, own): (Axis, &AxisCoefs)| Lines {
            first: own.origin,
            length: self.extent[axis].max(own.coef_stride) * i64::from(own.count),
            stride: 0,
            count: 1,
        };
        let all = self.axis_coefs.iter().map(of_axis);
        all.filter(|lines| lines.length > 0).collect()
    }
}
