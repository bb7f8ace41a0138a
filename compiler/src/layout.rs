//! Where values lie in memory: on CPUs, on GPUs and in files.
//!
//! All values of a calculation form one array of elements. A *group* holds everything that belongs to one (x, y) of the
//! outer and middle axes: one *row* along the inner axis for every (component, time level) and every coefficient.
//! Every operand of an update lies at a constant displacement from the target's group, so that one pointer serves a
//! whole kernel. Planes across the outer axis follow each other, and in a plane rows have one of two orders; or all
//! planes of a row follow each other ([`Order`]).
//!
//! Element 0 along the inner axis of every row is aligned to [`ALIGNMENT`] bytes, for a GPU to [`GPU_ALIGNMENT`].
//! Between rows lies a pad wide enough for the ghosts below and above; rows are an odd number of cache lines apart, so
//! that rows do not collide in cache sets. On two axes, where a tile has parts of many long rows, the distance is one
//! that spreads them ([`sets`]). Likewise there are ghost groups below and above the domain along the outer
//! and middle axes.
//!
//! Behind the groups lie the coefficients that depend on one axis only, and the states of each zone, box by box
//! ([`ZoneLayout`]): as groups of rows again, one row for each state, so that the states of an update lie at constant
//! displacements from each other.
//!
//! For a calculation window ([`Layout::for_window`]) planes across the outer axis hold all data that move with them:
//! zones that are long along that axis have their states behind the groups of each plane. The remaining data lie
//! *beside* the planes, and kernels find them by an address of their own.

mod lines;
mod packed;
mod rows;
mod sets;
mod strides;
mod zones;

pub use rows::RowId;
pub use strides::{Order, PAGE, PIECE, TooLarge};
pub use zones::{BoxLayout, ZoneLayout};

use crate::lattice::{Axis, Interval, PerAxis, div_ceil, div_floor};
use crate::scheme::{CoefId, ComponentId, Read, Scheme, StageId, StateId, ZoneId};
use rows::PackedRows;
use strides::{Arranging, Planes, Strides, mul};

/// Bytes; also the longest vector.
pub const ALIGNMENT: usize = 64;

/// Bytes of a line of a GPU's caches.
pub const GPU_ALIGNMENT: usize = 128;

/// The states of a zone lie in planes if the longest of its boxes has at least 1/`LONG` of the outer axis's planes.
const LONG: i64 = 8;

/// Strides and displacements are in elements, and all fit `i64` in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    pub element_bytes: usize,
    /// Whether it is the layout of the whole domain, so that indices are the grid's.
    pub whole: bool,
    /// Whether it is for a calculation window.
    pub windowed: bool,
    pub order: Order,
    /// Ghosts kept below and above the domain.
    pub reach: PerAxis<[i32; 2]>,
    /// Largest extent of a component along each axis.
    pub extent: PerAxis<i64>,
    /// Rows in a group.
    pub rows: u32,
    /// Elements of a row, its pad included.
    pub row_length: i64,
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
    /// Per coefficient, where it is stored.
    coefs: Vec<CoefPlace>,
    pub axis_coefs: PerAxis<AxisCoefs>,
    pub zones: Vec<ZoneLayout>,
    /// Per state, its row in the groups of its zone.
    state_rows: Vec<u32>,
    packed: PackedRows,
}

/// Where a coefficient is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CoefPlace {
    /// In a row of every group.
    Row(RowId),
    /// Among the coefficients of an axis, by its number there.
    Axis(u32),
}

/// The coefficients that depend on one axis only: their values at index 0, then their values at index 1, and so on;
/// along the inner axis a row for each coefficient.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AxisCoefs {
    pub count: u32,
    /// The element of coefficient 0 at index 0.
    pub origin: i64,
    /// From a coefficient to the next.
    pub coef_stride: i64,
    /// From an index to the next.
    pub stride: i64,
}

/// Elements at equal distances in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    pub first: i64,
    /// Elements of a line.
    pub length: i64,
    /// From a line to the next.
    pub stride: i64,
    pub count: i64,
}

/// The numbers of rows.
struct RowNumbers {
    /// Rows of a group.
    rows: u32,
    /// Of each component.
    first_row: Vec<u32>,
    time_levels: Vec<u32>,
    first_coef: u32,
    coefs: Vec<CoefPlace>,
    /// Of each state, in its zone.
    state_rows: Vec<u32>,
}

impl RowNumbers {
    fn of(scheme: &Scheme) -> RowNumbers {
        let mut first_row = Vec::new();
        let mut time_levels = Vec::new();
        let mut rows = 0u32;
        for c in &scheme.components {
            first_row.push(rows);
            time_levels.push(u32::from(c.time_levels));
            rows += u32::from(c.time_levels);
        }
        let first_coef = rows;
        let mut of_axis = PerAxis::splat(0u32);
        let next = |count: &mut u32| {
            *count += 1;
            *count - 1
        };
        let coefs = scheme.coefs.iter().map(|coef| match coef.only_axis {
            None => CoefPlace::Row(RowId(next(&mut rows))),
            Some(axis) => CoefPlace::Axis(next(&mut of_axis[axis])),
        });
        let coefs = coefs.collect();
        let mut of_zone = vec![0u32; scheme.zones.len()];
        let states = scheme.states.iter();
        let state_rows = states.map(|s| next(&mut of_zone[s.zone.index()])).collect();
        RowNumbers {
            rows,
            first_row,
            time_levels,
            first_coef,
            coefs,
            state_rows,
        }
    }
}

impl Layout {
    pub fn new(scheme: &Scheme) -> Result<Layout, TooLarge> {
        let order = match &scheme.grid.axes[Axis::MIDDLE] {
            Some(_) => Order::ByComponent,
            None => Order::ByRow,
        };
        Layout::placed(scheme, ALIGNMENT, Planes::Whole(order))
    }

    /// For a CPU whose array is in a file, of which some planes across the outer axis are in memory at a time.
    pub fn for_files(scheme: &Scheme) -> Result<Layout, TooLarge> {
        Layout::placed(scheme, ALIGNMENT, Planes::Whole(Order::ByComponent))
    }

    /// For a GPU: values that its threads access together lie in as few lines of its caches as possible.
    pub fn for_gpu(scheme: &Scheme) -> Result<Layout, TooLarge> {
        Layout::placed(scheme, GPU_ALIGNMENT, Planes::Whole(Order::ByGroup))
    }

    /// The same with a *gap* of some groups between planes across the outer axis, which hold nothing.
    pub fn for_gpu_with_gap(scheme: &Scheme, gap: i64) -> Result<Layout, TooLarge> {
        Layout::for_stripe(scheme, i64::MAX, gap)
    }

    /// For a GPU that computes a stripe of the grid and accesses no more than `indices` indices along the middle axis,
    /// at any place. Planes across the outer axis lie that number of groups and a gap from each other, so that groups
    /// that are not accessed have the places of others. All data that are not in groups lie behind the groups of any
    /// stripe.
    pub fn for_stripe(scheme: &Scheme, indices: i64, gap: i64) -> Result<Layout, TooLarge> {
        let planes = Planes::Stripe { indices, gap };
        Layout::placed(scheme, GPU_ALIGNMENT, planes)
    }

    /// For a GPU that has some planes across the outer axis at a time.
    pub fn for_window(scheme: &Scheme) -> Result<Layout, TooLarge> {
        Layout::placed(scheme, GPU_ALIGNMENT, Planes::Window(0))
    }

    /// With index 0 of every row at a multiple of `alignment` bytes, a power of two that is at least [`PIECE`].
    fn placed(scheme: &Scheme, alignment: usize, planes: Planes) -> Result<Layout, TooLarge> {
        let mut extent = PerAxis::splat(1);
        for id in scheme.component_ids() {
            for (axis, range) in scheme.extent(id).iter() {
                extent[axis] = extent[axis].max(range.hi);
            }
        }
        let line = (alignment / scheme.precision.bytes()) as i64;
        let mut zones = zones::sized(scheme, extent, line)?;
        let planes = match planes {
            Planes::Window(_) => Planes::Window(zones::put_into_planes(&mut zones, extent)?),
            other => other,
        };
        let mut layout = Layout::arranged(scheme, extent, scheme.reach(), alignment, planes)?;
        layout.whole = true;
        layout.windowed = matches!(planes, Planes::Window(_));
        layout.append_axis_coefs(scheme, alignment)?;
        layout.append_zones(zones, alignment)?;
        Ok(layout)
    }

    /// Takes `elements` elements behind all others, from the start of a line on.
    fn append(&mut self, elements: i64, alignment: usize) -> Result<i64, TooLarge> {
        let line = (alignment / self.element_bytes) as i64;
        let origin = div_ceil(self.elements, line) * line;
        // Kernels read up to two lines more than they need.
        let end = origin
            .checked_add(elements)
            .and_then(|e| e.checked_add(2 * line));
        self.elements = end.ok_or(TooLarge)?;
        let bytes = self.elements.checked_mul(self.element_bytes as i64);
        match bytes.is_some_and(|b| b <= i64::MAX / 4) {
            true => Ok(origin),
            false => Err(TooLarge),
        }
    }

    fn append_axis_coefs(&mut self, scheme: &Scheme, alignment: usize) -> Result<(), TooLarge> {
        for axis in Axis::ALL {
            let of_axis = scheme.coefs.iter().filter(|c| c.only_axis == Some(axis));
            let count = of_axis.count() as i64;
            if count == 0 {
                continue;
            }
            let line = (alignment / self.element_bytes) as i64;
            let extent = self.extent[axis];
            let (coef_stride, stride) = match axis {
                Axis::INNER => (div_ceil(extent, line) * line, 1),
                _ => (1, count),
            };
            let elements = extent.max(coef_stride).checked_mul(count).ok_or(TooLarge)?;
            self.axis_coefs[axis] = AxisCoefs {
                count: count as u32,
                origin: self.append(elements, alignment)?,
                coef_stride,
                stride,
            };
        }
        Ok(())
    }

    /// Gives the boxes of zones their places: boxes in planes have displacements behind the groups of a plane up to
    /// now.
    fn append_zones(&mut self, zones: Vec<ZoneLayout>, alignment: usize) -> Result<(), TooLarge> {
        let line = (alignment / self.element_bytes) as i64;
        let behind = self.group(0, self.visible(Axis::MIDDLE).hi);
        for mut own in zones {
            for part in &mut own.boxes {
                let begin = div_floor(part.region[Axis::INNER].lo, line) * line;
                let range = part.region[Axis::OUTER];
                part.origin = match own.in_planes {
                    true => behind + range.lo * self.stride[Axis::OUTER] + part.origin - begin,
                    false => {
                        let elements = own.plane.checked_mul(range.len());
                        self.append(elements.ok_or(TooLarge)?, alignment)? - begin
                    }
                };
            }
            if own.in_planes {
                own.plane = self.stride[Axis::OUTER];
            }
            self.zones.push(own);
        }
        Ok(())
    }

    /// The element with which the lowest plane across the outer axis begins, its ghosts included.
    pub fn first_plane(&self) -> i64 {
        let each = match self.windowed {
            true => GPU_ALIGNMENT / self.element_bytes,
            false => PIECE / self.element_bytes,
        } as i64;
        let below = div_ceil(i64::from(self.reach[Axis::INNER][0]), each) * each;
        let [x, y] = [Axis::OUTER, Axis::MIDDLE].map(|axis| self.visible(axis).lo);
        self.group(x, y) - below
    }

    /// After the highest plane: the data beside planes begin there.
    pub fn after_planes(&self) -> i64 {
        self.first_plane() + self.visible(Axis::OUTER).len() * self.stride[Axis::OUTER]
    }

    /// Whether kernels find the data beside planes by an address of their own.
    pub fn has_beside(&self) -> bool {
        self.windowed && !self.zones.is_empty()
    }

    /// Elements that hold states, pads within rows included.
    pub fn state_elements(&self) -> i64 {
        let planes = |zone: &ZoneLayout| -> i64 {
            let boxes = zone.boxes.iter();
            boxes.map(|b| b.region[Axis::OUTER].len()).sum()
        };
        let of_zone = |zone: &ZoneLayout| zone.own_plane() * planes(zone);
        self.zones.iter().map(of_zone).sum()
    }

    /// The row of a state in the groups of its zone.
    pub fn state_row(&self, state: StateId) -> u32 {
        self.state_rows[state.index()]
    }

    /// The box of a zone that has a cell, with the states of the zone.
    pub fn state_box(&self, zone: ZoneId, at: PerAxis<i64>) -> Option<&BoxLayout> {
        let boxes = &self.zones[zone.index()].boxes;
        boxes.iter().find(|b| b.region.contains(at))
    }

    /// The element of a state at a cell; `None` outside of its zone.
    pub fn state_element(&self, zone: ZoneId, state: StateId, at: PerAxis<i64>) -> Option<i64> {
        let own = &self.zones[zone.index()];
        let group = self
            .state_box(zone, at)?
            .group(own, at[Axis::OUTER], at[Axis::MIDDLE]);
        Some(group + self.state_start(zone, state) + at[Axis::INNER])
    }

    /// The element of a coefficient that depends on one axis, at an index of it.
    pub fn axis_coef_element(&self, axis: Axis, coef: CoefId, i: i64) -> i64 {
        let own = &self.axis_coefs[axis];
        let number = self.axis_coef_number(coef).map_or(0, i64::from);
        own.origin + number * own.coef_stride + i * own.stride
    }

    /// The number of a coefficient among the coefficients of its axis; `None` if it is stored in rows of groups.
    pub fn axis_coef_number(&self, coef: CoefId) -> Option<u32> {
        match self.coefs[coef.index()] {
            CoefPlace::Row(_) => None,
            CoefPlace::Axis(number) => Some(number),
        }
    }

    /// For values of the scheme's components and coefficients in a box that need not be the whole domain, without
    /// zones.
    pub fn sized(
        scheme: &Scheme,
        extent: PerAxis<i64>,
        reach: PerAxis<[i32; 2]>,
    ) -> Result<Layout, TooLarge> {
        let planes = Planes::Whole(Order::ByGroup);
        Layout::arranged(scheme, extent, reach, ALIGNMENT, planes)
    }

    fn arranged(
        scheme: &Scheme,
        extent: PerAxis<i64>,
        reach: PerAxis<[i32; 2]>,
        alignment: usize,
        planes: Planes,
    ) -> Result<Layout, TooLarge> {
        let element_bytes = scheme.precision.bytes();
        let line = (alignment / element_bytes) as i64;
        let numbers = RowNumbers::of(scheme);
        let order = match planes {
            Planes::Whole(order) => order,
            Planes::Stripe { .. } | Planes::Window(_) => Order::ByGroup,
        };
        let arranging = Arranging {
            extent,
            reach,
            element_bytes,
            line,
            in_group: i64::from(numbers.rows.max(1)),
        };
        let row_length = arranging.row_length(order)?;
        let Strides {
            row,
            middle,
            plane,
            before,
            total,
        } = arranging.strides(planes, order, row_length)?;
        let stride = PerAxis([plane, middle, 1]);
        let origin = total
            .checked_add(before)
            .and_then(|_| mul(i64::from(reach[Axis::OUTER][0]), plane).ok())
            .and_then(|n| n.checked_add(i64::from(reach[Axis::MIDDLE][0]) * middle + before))
            .ok_or(TooLarge)?;
        let elements = total.checked_add(before + 2 * line).ok_or(TooLarge)?;
        // Bytes must be addressable with room to spare for displacements.
        if mul(elements, element_bytes as i64)? > i64::MAX / 4 {
            return Err(TooLarge);
        }
        Ok(Layout {
            element_bytes,
            whole: false,
            windowed: false,
            order,
            reach,
            extent,
            rows: numbers.rows,
            row_length,
            row_stride: row,
            stride,
            origin,
            elements,
            first_row: numbers.first_row,
            time_levels: numbers.time_levels,
            first_coef: numbers.first_coef,
            coefs: numbers.coefs,
            axis_coefs: PerAxis::splat(AxisCoefs::default()),
            zones: Vec::new(),
            state_rows: numbers.state_rows,
            packed: PackedRows::default(),
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

    /// The row of a coefficient that is stored for every cell.
    pub fn coef_row(&self, coef: CoefId) -> RowId {
        match self.coefs[coef.index()] {
            CoefPlace::Row(row) => row,
            CoefPlace::Axis(_) => RowId(self.rows),
        }
    }

    /// The element of a row at an index.
    pub fn element(&self, row: RowId, at: PerAxis<i64>) -> i64 {
        self.group(at[Axis::OUTER], at[Axis::MIDDLE]) + self.row_start(row) + at[Axis::INNER]
    }

    /// From the start of a group to inner index 0 of a row.
    pub fn row_start(&self, row: RowId) -> i64 {
        i64::from(row.0) * self.row_stride + self.packed.row(row)
    }

    /// The same of a state of a zone.
    pub fn state_start(&self, zone: ZoneId, state: StateId) -> i64 {
        let stride = self.zones[zone.index()].row_stride;
        i64::from(self.state_row(state)) * stride + self.packed.state(state)
    }

    /// The element of row 0 at inner index 0 of a group.
    pub fn group(&self, x: i64, y: i64) -> i64 {
        self.origin + x * self.stride[Axis::OUTER] + y * self.stride[Axis::MIDDLE]
    }

    /// From the start of a target's group to the value of `read` at inner index 0, when `stage` runs in step `phase`
    /// (mod phases).
    pub fn displacement(&self, scheme: &Scheme, stage: StageId, phase: u32, read: &Read) -> i64 {
        let row = self.read_row(scheme, stage, phase, read);
        self.row_start(row)
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
