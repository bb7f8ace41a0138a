//! Ghosts along the inner axis, which kernels write after each row: ghosts of the values that they have just computed.
//!
//! A source that acts on a value afterwards has to write its ghosts again.

use crate::ghost::AxisGhosts;
use crate::kernel::{KernelSet, RowKernel};
use crate::lattice::{Axis, Interval};
use crate::real::Real;
use crate::scheme::{ComponentId, Precision, Scheme};

/// The ghosts of a target's row along the inner axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowEnds {
    /// From the start of the target's group to index 0 of the row, in elements.
    pub row: i64,
    /// The value at index 0 lies on a plane about which values are odd: it is 0.
    pub zero: bool,
    /// Sources ascending.
    pub ghosts: Vec<EndGhost>,
}

/// A value near an end, and where it appears again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndGhost {
    pub source: i64,
    pub ghost: i64,
    pub negated: bool,
}

impl RowEnds {
    /// The ghosts of a component along the inner axis, if it has any there; the row's place is left open.
    pub fn of(scheme: &Scheme, id: ComponentId) -> Option<RowEnds> {
        let pairs = AxisGhosts::new(scheme, id, Axis::INNER).pairs();
        let ends = RowEnds {
            row: 0,
            zero: scheme.grid.live(scheme.component(id).position)[Axis::INNER].lo > 0,
            ghosts: (pairs.into_iter())
                .map(|(source, ghost)| EndGhost {
                    source,
                    ghost: ghost.index,
                    negated: ghost.negated,
                })
                .collect(),
        };
        (ends.zero || !ends.ghosts.is_empty()).then_some(ends)
    }

    /// The ends of the rows that a kernel computes; none where the kernels of the set do not write ghosts.
    pub fn of_kernel(scheme: &Scheme, set: &KernelSet, kernel: &RowKernel) -> Vec<RowEnds> {
        if !set.ends {
            return Vec::new();
        }
        let RowKernel { stage, phase, .. } = *kernel;
        let of = |id| {
            let row = set.layout.target_row(scheme, stage, phase, id);
            let row = i64::from(row.0) * set.layout.row_stride;
            RowEnds::of(scheme, id).map(|ends| RowEnds { row, ..ends })
        };
        kernel
            .updates(scheme)
            .filter_map(|u| of(u.target))
            .collect()
    }

    /// Writes the ghosts of a range of a group's row.
    ///
    /// # Safety
    /// The row with its ghosts lies in an array of elements of this type, and no other thread touches it meanwhile.
    unsafe fn write<T: Real>(&self, group: *mut T, range: Interval) {
        // SAFETY: passed on.
        unsafe {
            let at = |index: i64| group.wrapping_offset((self.row + index) as isize);
            if self.zero && range.contains(0) {
                *at(0) = T::default();
            }
            for end in self.ghosts.iter().filter(|end| range.contains(end.source)) {
                let value = *at(end.source);
                *at(end.ghost) = if end.negated { value.neg() } else { value };
            }
        }
    }
}

/// Writes the ghosts of the rows of a run, for back ends whose code does not.
///
/// # Safety
/// As for [`crate::kernel::RowFn`]: `first` is the run's first group, `stride` the distance between groups in bytes.
pub unsafe fn write(
    ends: &[RowEnds],
    precision: Precision,
    first: *mut u8,
    groups: i64,
    stride: i64,
    range: Interval,
) {
    for n in 0..groups {
        let group = first.wrapping_offset((n * stride) as isize);
        for row in ends {
            // SAFETY: passed on; elements of an array of this precision are aligned.
            unsafe {
                match precision {
                    Precision::F32 => row.write(group.cast::<f32>(), range),
                    Precision::F64 => row.write(group.cast::<f64>(), range),
                }
            }
        }
    }
}
