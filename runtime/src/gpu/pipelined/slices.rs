//! Slices that a pass takes, and the bytes of its records.

use crate::gpu::device::Address;
use crate::gpu::step_tables::{PlanePlace, slice_place};
use torre_compiler::lattice::{Axis, Interval};
use torre_compiler::layout::Layout;
use torre_compiler::problem::{OutputKind, Problem};
use torre_compiler::scheme::Scheme;

/// Bytes of slices that a pass gathers, if one is not larger.
const PICTURE_BYTES: u64 = 64 << 20;

/// Bytes of the waves and records of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub waves: u64,
    pub probes: u64,
    pub slices: u64,
}

impl Sizes {
    /// For passes of at most `steps` steps, each with `waves` waves.
    pub fn new(
        scheme: &Scheme,
        problem: &Problem,
        layout: &Layout,
        steps: u64,
        waves: u64,
    ) -> Sizes {
        let each = (problem.probes.len() * layout.element_bytes) as u64;
        let bytes = |output: usize| slice_bytes(scheme, problem, layout, output);
        let all: u64 = (0..problem.outputs.len()).map(bytes).sum();
        Sizes {
            // Threads without a correction read the first one.
            waves: steps.saturating_mul(waves).saturating_mul(8).max(8),
            probes: steps * each,
            // Room for all slices of one step, and for the slices of all steps up to [`PICTURE_BYTES`].
            slices: all.max(PICTURE_BYTES.min(all.saturating_mul(steps))),
        }
    }

    pub fn all(&self) -> u64 {
        let records = self.probes.saturating_add(self.slices);
        self.waves.saturating_add(records)
    }
}

/// Bytes of the slices of an output; 0 for one that has none.
pub(super) fn slice_bytes(
    scheme: &Scheme,
    problem: &Problem,
    layout: &Layout,
    output: usize,
) -> u64 {
    let place = slice_place(scheme, problem, layout, output, 0);
    place.map_or(0, |place| place.count() * layout.element_bytes as u64)
}

/// A slice that a pass takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub output: usize,
    pub step: u64,
    pub place: PlanePlace,
    /// Where it is put, in bytes.
    pub offset: u64,
    /// The planes that it has values in, as the array counts them.
    pub planes: Interval,
    /// Its rows lie along the first axis, one in each plane.
    row_of_plane: bool,
}

impl Slice {
    /// The slice of an output after `step` steps.
    pub fn new(
        scheme: &Scheme,
        problem: &Problem,
        layout: &Layout,
        output: usize,
        step: u64,
        offset: u64,
    ) -> Option<Slice> {
        let place = slice_place(scheme, problem, layout, output, step)?;
        let OutputKind::Slice { axis, index } = problem.outputs[output].kind else {
            return None;
        };
        let planes = match axis {
            Axis::OUTER => Interval::new(index, index + 1),
            _ => Interval::new(0, place.rows),
        };
        Some(Slice {
            row_of_plane: axis != Axis::OUTER,
            output,
            step,
            place,
            offset,
            planes,
        })
    }

    /// Where values of it lie among all of them that are in some of its planes.
    pub fn values(&self, planes: Interval) -> std::ops::Range<usize> {
        if !self.row_of_plane {
            return 0..self.place.count() as usize;
        }
        let first = (planes.lo - self.planes.lo) * self.place.values;
        first as usize..(first + planes.len() * self.place.values) as usize
    }

    /// The part of it that lies in some planes, and where that is put.
    pub fn part(&self, planes: Interval, out: Address, bytes: usize) -> (PlanePlace, Address) {
        let out = out.offset(self.offset as i64);
        if !self.row_of_plane {
            return (self.place, out);
        }
        let from = planes.lo - self.planes.lo;
        let values = from * self.place.values * bytes as i64;
        let place = PlanePlace {
            first: self.place.first + from * self.place.between_rows,
            rows: planes.len(),
            ..self.place
        };
        (place, out.offset(values))
    }
}
