//! Distances between rows and planes.

use super::sets;
use crate::lattice::{Axis, PerAxis, div_ceil};

/// Bytes that a GPU copies at a time; index 0 of a row begins a piece.
pub const PIECE: usize = 16;

/// For calculation windows, planes begin at multiples of this number of bytes, as blocks of files do.
pub const PAGE: usize = 4096;

/// How rows follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Group by group along the middle axis: a GPU's towers copy all rows of a group, and a pyramid's patch stays in a
    /// cache.
    ByGroup,
    /// Component by component: the rows of one follow each other along the middle axis, so that each operand of a
    /// kernel that walks along this axis is a stream of addresses which ends with the plane. The prefetchers of a CPU
    /// follow such streams; they lose a row of a kilobyte between rows of other components.
    ByComponent,
    /// All planes of a row before the next row: on two axes, where kernels walk along the outer axis, each component
    /// is one piece of memory.
    ByRow,
}

/// How far planes across the outer axis are from each other.
#[derive(Clone, Copy, Debug)]
pub(super) enum Planes {
    /// By their rows.
    Whole(Order),
    /// By the groups of a stripe of this number of indices, at most all of them, and a gap.
    Stripe { indices: i64, gap: i64 },
    /// By the groups of a plane and this number of elements, rounded up to pages.
    Window(i64),
}

/// The sizes that were asked for are too large for addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// An array whose rows are to be placed.
pub(super) struct Arranging {
    /// Largest extent of a component along each axis, and the ghosts below and above it.
    pub extent: PerAxis<i64>,
    pub reach: PerAxis<[i32; 2]>,
    pub element_bytes: usize,
    /// Elements of a cache line.
    pub line: i64,
    /// Rows of a group, at least 1.
    pub in_group: i64,
}

/// Distances in elements.
pub(super) struct Strides {
    /// From a row to the next one of its group.
    pub row: i64,
    /// From an index to the next along the middle and the outer axis.
    pub middle: i64,
    pub plane: i64,
    /// Elements before the first row.
    pub before: i64,
    /// Elements of all rows.
    pub total: i64,
}

impl Arranging {
    /// Elements of a row, its pad included: an odd number of cache lines.
    pub fn row_length(&self, order: Order) -> Result<i64, TooLarge> {
        // The visible indices of a row, rounded to pieces on both sides, so that pieces belong to one row.
        let piece = (PIECE / self.element_bytes) as i64;
        let [below, above] = self.reach[Axis::INNER].map(i64::from);
        let shown = self.extent[Axis::INNER].checked_add(above);
        let shown = div_ceil(shown.ok_or(TooLarge)?, piece).saturating_mul(piece);
        let shown = div_ceil(below, piece) * piece + shown;
        let lines = match (shown.div_euclid(self.line) + 1) | 1 {
            lines if order == Order::ByRow => sets::spread(lines),
            lines => lines,
        };
        mul(lines, self.line)
    }

    /// The distances for rows of `row_length` elements.
    pub fn strides(
        &self,
        planes: Planes,
        order: Order,
        row_length: i64,
    ) -> Result<Strides, TooLarge> {
        let (line, in_group) = (self.line, self.in_group);
        let (lines, all) = (row_length / line, self.wide(Axis::MIDDLE)?);
        let group = mul(row_length, in_group)?;
        let (row, middle) = match order {
            Order::ByGroup => (row_length, group),
            // An odd number of cache lines again, so that rows of a group do not collide in cache sets.
            Order::ByComponent => (mul(mul(lines, all)? | 1, line)?, row_length),
            Order::ByRow => {
                let groups = mul(all, self.wide(Axis::OUTER)?)?;
                (mul(mul(lines, groups)? | 1, line)?, row_length)
            }
        };
        let below = i64::from(self.reach[Axis::INNER][0]);
        let mut before = below.div_euclid(line) * line + line;
        let mut beyond = 0;
        let plane = match planes {
            Planes::Whole(Order::ByGroup) => mul(group, all)?,
            Planes::Whole(Order::ByComponent) => mul(row, in_group)?,
            Planes::Whole(Order::ByRow) => mul(row_length, all)?,
            Planes::Stripe { indices, gap } => {
                let distance = indices.clamp(1, all).checked_add(gap.max(0));
                let distance = distance.ok_or(TooLarge)?;
                beyond = mul(group, (all - distance).max(0))?;
                mul(group, distance)?
            }
            Planes::Window(more) => {
                let page = (PAGE / self.element_bytes) as i64;
                before += (div_ceil(below, line) * line - before).rem_euclid(page);
                // Kernels read up to two lines more than they need, and a plane begins up to a line before its rows.
                let plane = mul(group, all)?.checked_add(more);
                let plane = plane.and_then(|plane| plane.checked_add(3 * line));
                mul(div_ceil(plane.ok_or(TooLarge)?, page), page)?
            }
        };
        let total = match order {
            Order::ByRow => mul(row, in_group)?,
            _ => mul(plane, self.wide(Axis::OUTER)?)?,
        };
        Ok(Strides {
            row,
            middle,
            plane,
            before,
            total: total.checked_add(beyond).ok_or(TooLarge)?,
        })
    }

    /// Indices along an axis, ghosts included.
    fn wide(&self, axis: Axis) -> Result<i64, TooLarge> {
        let [below, above] = self.reach[axis].map(i64::from);
        self.extent[axis].checked_add(below + above).ok_or(TooLarge)
    }
}

pub(super) fn mul(a: i64, b: i64) -> Result<i64, TooLarge> {
    a.checked_mul(b).ok_or(TooLarge)
}
