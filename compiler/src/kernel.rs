//! Row kernels: the unit of compiled code on a CPU.
//!
//! A kernel runs some updates of one stage over a list of runs of consecutive groups and a range of the inner axis: for
//! each group in turn, for each index of the range, all its updates. It contains no boundary conditions and no
//! conditions on indices: the caller decides which groups, ranges and updates are right, and ghosts
//! ([`crate::scheme::Grid::ghosts`]) are kept in memory. A tile has many short runs, so one call takes all runs that
//! share a set of updates.

mod bands;
mod stage_boxes;
mod zoned;

pub use bands::{Band, BandPart, Bands};
pub use stage_boxes::{StageBox, layerwise_kernels, row_region, stage_boxes};
pub use zoned::{RunStart, ZoneParts, ZoneSplitter, ZonedRuns};

use crate::distinct::distinct;
use crate::lattice::{Axis, Interval, PerAxis};
use crate::layout::Layout;
use crate::scheme::{Scheme, StageId, Update, ZoneId, ZoneMap, ZoneSet};
use std::fmt;

/// A set of updates of one stage, by index; a stage has at most 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpdateSet(pub u64);

impl UpdateSet {
    pub fn all(count: usize) -> Self {
        Self(if count >= 64 {
            u64::MAX
        } else {
            (1 << count) - 1
        })
    }

    pub fn contains(self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }

    pub fn insert(&mut self, index: usize) {
        self.0 |= 1 << index;
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let next = (left != 0).then(|| left.trailing_zeros() as usize);
            left &= left.wrapping_sub(1);
            next
        })
    }
}

/// The computation of one compiled function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKernel {
    pub stage: StageId,
    /// The step's number modulo [`Scheme::phases`].
    pub phase: u32,
    pub updates: UpdateSet,
    /// The zones in which it runs, without zones that amend none of the updates. In zones that lie in bands ([`Bands`])
    /// it runs for a part of each row only.
    pub zones: ZoneSet,
}

impl RowKernel {
    /// The zones of a set that amend some of the updates of a stage.
    pub fn relevant(
        scheme: &Scheme,
        stage: StageId,
        updates: UpdateSet,
        zones: ZoneSet,
    ) -> ZoneSet {
        let all = &scheme.stages[stage.index()].updates;
        let own = updates.iter().map(|i| all[i].zones());
        own.fold(ZoneSet::default(), ZoneSet::union)
            .intersect(zones)
    }

    pub fn updates<'a>(&self, scheme: &'a Scheme) -> impl Iterator<Item = &'a Update> {
        let set = self.updates;
        scheme.stages[self.stage.index()]
            .updates
            .iter()
            .enumerate()
            .filter(move |(i, _)| set.contains(*i))
            .map(|(_, u)| u)
    }
}

impl fmt::Display for RowKernel {
    /// Also the symbol's name, behind a prefix.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_p{}_u{:x}", self.stage, self.phase, self.updates.0)?;
        match self.zones.is_empty() {
            true => Ok(()),
            false => write!(f, "_z{:x}", self.zones.0),
        }
    }
}

/// Everything that a back end needs to know to compile a calculation.
#[derive(Clone, Debug)]
pub struct KernelSet {
    pub layout: Layout,
    pub kernels: Vec<RowKernel>,
    /// The zones that act in parts of rows.
    pub bands: Bands,
    /// Whether kernels write the ghosts along the inner axis of all that they compute. They do where the layout is that
    /// of the whole domain.
    pub ends: bool,
}

impl KernelSet {
    /// The kernels, and each of them for every set of zones that occurs.
    pub fn new(
        scheme: &Scheme,
        layout: Layout,
        kernels: impl IntoIterator<Item = RowKernel>,
    ) -> Self {
        let bands = Bands::new(scheme, &layout);
        let sets = ZoneMap::new(&bands.uncut(&scheme.zones)).occurring();
        let mut all = Vec::new();
        for bare in kernels {
            all.push(bare);
            all.extend(sets.iter().map(|&zones| RowKernel {
                zones: RowKernel::relevant(scheme, bare.stage, bare.updates, zones),
                ..bare
            }));
        }
        Self {
            ends: layout.whole,
            bands,
            layout,
            kernels: distinct(all),
        }
    }

    /// The same with the kernels of another set for the same layout.
    pub fn and(mut self, other: &KernelSet) -> Self {
        debug_assert_eq!(self.layout, other.layout);
        self.kernels.extend(&other.kernels);
        self.kernels = distinct(self.kernels);
        self
    }

    /// From a group to the next one of a kernel's run, in elements: along the middle axis, or the outer axis if there
    /// is no middle axis.
    pub fn run_stride(&self, scheme: &Scheme) -> i64 {
        self.layout.stride[run_axis(scheme)]
    }
}

/// Operands of a zoned kernel that do not lie at a constant displacement from the group: where they begin is said by
/// each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// The coefficients that depend on one axis: from their values at the run's index, along the inner axis at index 0.
    AxisCoefs(Axis),
    /// The states of a zone: from inner index 0 of the group's row 0.
    Zone(ZoneId),
}

impl Stream {
    /// The streams of a layout in their order.
    pub fn all(layout: &Layout) -> impl Iterator<Item = Stream> {
        let zones = (0..layout.zones.len() as u32).map(|z| Stream::Zone(ZoneId(z)));
        Axis::ALL.into_iter().map(Stream::AxisCoefs).chain(zones)
    }

    pub fn index(self) -> usize {
        match self {
            Stream::AxisCoefs(axis) => axis.index(),
            Stream::Zone(zone) => Axis::ALL.len() + zone.index(),
        }
    }

    /// From a group of a run to the next one, in elements.
    pub fn run_stride(self, layout: &Layout, run_axis: Axis) -> i64 {
        match self {
            Stream::AxisCoefs(axis) if axis == Axis::INNER || axis != run_axis => 0,
            Stream::AxisCoefs(axis) => layout.axis_coefs[axis].stride,
            Stream::Zone(zone) => layout.zones[zone.index()].group,
        }
    }

    /// Where it begins, as an element of the array, for a run that starts at a cell.
    pub fn start(self, layout: &Layout, at: PerAxis<i64>) -> i64 {
        match self {
            Stream::AxisCoefs(Axis::INNER) => layout.axis_coefs[Axis::INNER].origin,
            Stream::AxisCoefs(axis) => {
                let own = &layout.axis_coefs[axis];
                own.origin + at[axis] * own.stride
            }
            Stream::Zone(zone) => layout.state_box(zone, at).map_or(0, |own| {
                own.group(
                    &layout.zones[zone.index()],
                    at[Axis::OUTER],
                    at[Axis::MIDDLE],
                )
            }),
        }
    }
}

/// Numbers of 8 bytes in a run of a zoned kernel: the numbers of [`Run`], then where each stream begins, in bytes from
/// the call's base.
pub fn record_width(layout: &Layout) -> usize {
    2 + Stream::all(layout).count()
}

/// The axis along which a kernel's groups follow each other.
pub fn run_axis(scheme: &Scheme) -> Axis {
    if scheme.grid.axes[Axis::MIDDLE].is_some() {
        Axis::MIDDLE
    } else {
        Axis::OUTER
    }
}

/// Consecutive groups along [`run_axis`], as kernels take them.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Of the first group, in bytes from the call's base.
    pub offset: i64,
    /// Nothing happens if this is not positive.
    pub groups: i64,
}

/// `kernel(base, runs, count, lo, hi)`: `base` points at the element of row 0, inner index 0 of some group, from which
/// the `count` runs count their offsets; inner indices `lo..hi`. Nothing happens if `count <= 0` or `lo >= hi`.
///
/// The caller guarantees that `lo..hi` lies in the extents of the targets, that all that the updates read and write at
/// these groups and indices lies in the array of the layout, and that no other thread writes it meanwhile. Kernels may
/// read up to two lines of [`crate::layout::ALIGNMENT`] bytes more to either side (and drop the values); of places
/// beyond `lo..hi` they write only the ghosts along the inner axis of the values that they compute
/// ([`KernelSet::ends`]).
pub type RowFn =
    unsafe extern "C" fn(base: *mut u8, runs: *const Run, count: i64, lo: i64, hi: i64);

/// Executable kernels, in the order of their [`KernelSet`].
pub trait Code: Send + Sync {
    /// Runs the kernel with this index, of no zones.
    ///
    /// # Safety
    /// As for [`RowFn`]. The index must be one of the set's.
    unsafe fn run(&self, kernel: usize, base: *mut u8, runs: &[Run], range: Interval);
    /// Runs a kernel in zones, whether these amend its updates or only others of the stage, with [`record_width`]
    /// numbers for each run.
    ///
    /// # Safety
    /// As for [`Code::run`].
    unsafe fn run_zoned(&self, kernel: usize, base: *mut u8, records: &[i64], range: Interval);
    /// For reports: `llvm 22.1.2, znver5, 512-bit`.
    fn description(&self) -> String;
}
