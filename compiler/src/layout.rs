//! Where values lie in memory on a CPU.
//!
//! All values of a calculation form one array of elements. A *group* holds everything that belongs to one (x, y) of the outer and
//! middle axes: one *row* along the inner axis for every (component, time level) and every coefficient. Groups follow each other
//! along the middle axis, then along the outer axis. So every operand of an update lies at a constant displacement from the
//! target's group, and one pointer serves a whole kernel.
//!
//! Element 0 along the inner axis of every row is aligned to [`ALIGNMENT`] bytes, for a GPU to [`GPU_ALIGNMENT`]. Between rows lies a pad wide enough for the
//! ghosts below and above; rows are an odd number of cache lines apart, so that rows do not collide in cache sets.
//! Likewise there are ghost groups below and above the domain along the outer and middle axes.

use crate::lattice::{Axis, Interval, PerAxis, div_ceil};
use crate::scheme::{CoefId, ComponentId, Read, Scheme, StageId};
use std::fmt;

/// Bytes; also the longest vector.
pub const ALIGNMENT: usize = 64;

/// Bytes of a line of a GPU's caches.
pub const GPU_ALIGNMENT: usize = 128;

/// Bytes that a GPU copies at a time; index 0 of a row begins a piece.
pub const PIECE: usize = 16;

/// A row of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u32);

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

/// Strides and displacements are in elements, and all fit `i64` in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    pub element_bytes: usize,
    /// Ghosts kept below and above the domain.
    pub reach: PerAxis<[i32; 2]>,
    /// Largest extent of a component along each axis.
    pub extent: PerAxis<i64>,
    /// Rows in a group.
    pub rows: u32,
    /// From a row to the next one of its group.
    pub row_stride: i64,
    /// From an index to the next along each axis.
    pub stride: PerAxis<i64>,
    /// The element of row 0 at index (0, 0, 0).
    pub origin: i64,
    /// Length of the array.
    pub elements: i64,
    first_row: Vec<u32>,
    time_levels: Vec<u32>,
    first_coef: u32,
}

/// The sizes that were asked for exceed what can be addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl Layout {
    pub fn new(scheme: &Scheme) -> Result<Layout, TooLarge> {
        Layout::aligned(scheme, ALIGNMENT)
    }

    /// For a GPU: what its threads access together lies in as few lines of its caches as possible.
    pub fn for_gpu(scheme: &Scheme) -> Result<Layout, TooLarge> {
        Layout::aligned(scheme, GPU_ALIGNMENT)
    }

    /// With index 0 of every row at a multiple of so many bytes, a power of two that is at least [`PIECE`].
    fn aligned(scheme: &Scheme, alignment: usize) -> Result<Layout, TooLarge> {
        let mut extent = PerAxis::splat(1);
        for id in scheme.component_ids() {
            for (axis, range) in scheme.extent(id).iter() {
                extent[axis] = extent[axis].max(range.hi);
            }
        }
        Layout::arranged(scheme, extent, scheme.reach(), alignment)
    }

    /// For values of the scheme's components and coefficients in a box that need not be the whole domain.
    pub fn sized(
        scheme: &Scheme,
        extent: PerAxis<i64>,
        reach: PerAxis<[i32; 2]>,
    ) -> Result<Layout, TooLarge> {
        Layout::arranged(scheme, extent, reach, ALIGNMENT)
    }

    fn arranged(
        scheme: &Scheme,
        extent: PerAxis<i64>,
        reach: PerAxis<[i32; 2]>,
        alignment: usize,
    ) -> Result<Layout, TooLarge> {
        let element_bytes = scheme.precision.bytes();
        let line = (alignment / element_bytes) as i64;
        let mut first_row = Vec::new();
        let mut time_levels = Vec::new();
        let mut rows = 0u32;
        for c in &scheme.components {
            first_row.push(rows);
            time_levels.push(u32::from(c.time_levels));
            rows += u32::from(c.time_levels);
        }
        let first_coef = rows;
        rows += scheme.coefs.len() as u32;
        let wide = |axis: Axis| {
            let [below, above] = reach[axis];
            extent[axis]
                .checked_add(i64::from(below) + i64::from(above))
                .ok_or(TooLarge)
        };
        // What a row shows, rounded to pieces on both sides, so that pieces belong to one row.
        let piece = (PIECE / element_bytes) as i64;
        let [below, above] = reach[Axis::INNER].map(i64::from);
        let shown = extent[Axis::INNER].checked_add(above).ok_or(TooLarge)?;
        let shown = div_ceil(below, piece) * piece + div_ceil(shown, piece).saturating_mul(piece);
        let lines = shown.div_euclid(line) + 1;
        let row_stride = (lines | 1).checked_mul(line).ok_or(TooLarge)?;
        let mul = |a: i64, b: i64| a.checked_mul(b).ok_or(TooLarge);
        let group = mul(row_stride, i64::from(rows.max(1)))?;
        let plane = mul(group, wide(Axis::MIDDLE)?)?;
        let total = mul(plane, wide(Axis::OUTER)?)?;
        let stride = PerAxis([plane, group, 1]);
        let lead = i64::from(reach[Axis::INNER][0]).div_euclid(line) * line + line;
        let origin = total
            .checked_add(lead)
            .and_then(|_| mul(i64::from(reach[Axis::OUTER][0]), plane).ok())
            .and_then(|n| n.checked_add(i64::from(reach[Axis::MIDDLE][0]) * group + lead))
            .ok_or(TooLarge)?;
        let elements = total.checked_add(lead + 2 * line).ok_or(TooLarge)?;
        // Bytes must be addressable with room to spare for displacements.
        if mul(elements, element_bytes as i64)? > i64::MAX / 4 {
            return Err(TooLarge);
        }
        Ok(Layout {
            element_bytes,
            reach,
            extent,
            rows,
            row_stride,
            stride,
            origin,
            elements,
            first_row,
            time_levels,
            first_coef,
        })
    }

    /// The indices along an axis that an array holds, ghosts included.
    pub fn visible(&self, axis: Axis) -> Interval {
        let [below, above] = self.reach[axis].map(i64::from);
        Interval::new(-below, self.extent[axis] + above)
    }

    pub fn bytes(&self) -> u64 {
        self.elements as u64 * self.element_bytes as u64
    }

    /// The row of a version of a component.
    pub fn row(&self, component: ComponentId, version: u64) -> RowId {
        let time_levels = self.time_levels[component.index()];
        RowId(self.first_row[component.index()] + (version % u64::from(time_levels)) as u32)
    }

    /// The component whose versions a row holds; `None` for a coefficient.
    pub fn component_of(&self, row: RowId) -> Option<ComponentId> {
        let after = self.first_row.partition_point(|first| *first <= row.0);
        let found = after.checked_sub(1).filter(|_| !self.is_coef(row));
        found.map(|i| ComponentId(i as u32))
    }

    /// Whether a row holds a coefficient.
    pub fn is_coef(&self, row: RowId) -> bool {
        row.0 >= self.first_coef
    }

    pub fn coef_row(&self, coef: CoefId) -> RowId {
        RowId(self.first_coef + coef.0)
    }

    /// The element of a row at an index.
    pub fn element(&self, row: RowId, at: PerAxis<i64>) -> i64 {
        self.group(at[Axis::OUTER], at[Axis::MIDDLE])
            + i64::from(row.0) * self.row_stride
            + at[Axis::INNER]
    }

    /// The element of row 0 at inner index 0 of a group.
    pub fn group(&self, x: i64, y: i64) -> i64 {
        self.origin + x * self.stride[Axis::OUTER] + y * self.stride[Axis::MIDDLE]
    }

    /// From the start of a target's group to what `read` sees at inner index 0, when `stage` runs in step `phase` (mod phases).
    pub fn displacement(&self, scheme: &Scheme, stage: StageId, phase: u32, read: &Read) -> i64 {
        let row = self.read_row(scheme, stage, phase, read);
        i64::from(row.0) * self.row_stride
            + Axis::ALL
                .iter()
                .map(|&a| i64::from(read.offset[a]) * self.stride[a])
                .sum::<i64>()
    }

    pub fn read_row(&self, scheme: &Scheme, stage: StageId, phase: u32, read: &Read) -> RowId {
        let time_levels = u64::from(self.time_levels[read.component.index()]);
        let newest = scheme.version(read.component, stage, u64::from(phase));
        // A whole cycle of time levels keeps the difference positive.
        self.row(
            read.component,
            newest + time_levels - u64::from(read.age) % time_levels,
        )
    }

    /// The row that an update of `stage` writes.
    pub fn target_row(
        &self,
        scheme: &Scheme,
        stage: StageId,
        phase: u32,
        target: ComponentId,
    ) -> RowId {
        self.row(target, scheme.version(target, stage, u64::from(phase)) + 1)
    }
}
