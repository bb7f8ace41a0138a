//! The check of a pipeline before a run: whether its passes fit and are right for every interleaving.

use super::slices::Slice;
use crate::gpu::device::DeviceError;
use crate::host::Calculation;
use crate::simulation::Value;
use torre_compiler::pipeline::{Footprints, LaidOut, LaidOutSlabs, SlabBuilder, Window};

/// Whether two passes of each device, of the highest time blocks, fit and are right for every interleaving, with the
/// outputs of a problem after each time block.
pub(super) fn check_layout<T: Value>(
    footprints: &mut Footprints,
    calculation: &Calculation<'_, T>,
    window: &Window,
    steps: u64,
) -> Result<(), DeviceError> {
    let failed = |message: String| DeviceError::Failed {
        operation: "laying out time blocks in flight",
        message,
    };
    let (scheme, problem) = (calculation.scheme, calculation.problem);
    let layout = &calculation.layout;
    let heights = vec![steps; window.in_flight];
    let mut pass = footprints
        .pass(scheme, layout, &heights)
        .ok_or_else(|| failed("there are no groups".to_owned()))?;
    let slices = (0..problem.outputs.len())
        .filter_map(|output| Slice::new(scheme, problem, layout, output, 0, 0));
    let gathers: Vec<_> = slices.map(|slice| footprints.along(slice.planes)).collect();
    // Around a ring, slices that are gathered end passes.
    for block in pass.blocks.iter_mut().filter(|_| window.ring.is_none()) {
        block.gathers = gathers.clone();
    }
    let passes = vec![pass; 2 * window.devices];
    let laid_out = LaidOut::new(window.clone(), passes, footprints.way());
    let laid_out = laid_out.map_err(|error| failed(error.to_string()))?;
    laid_out.check().map_err(|fault| failed(fault.to_string()))
}

/// The same of two passes by slabs, with bases of `base` planes.
pub(super) fn check_slabs<T: Value>(
    footprints: &mut Footprints,
    calculation: &Calculation<'_, T>,
    builder: &SlabBuilder,
    base: i64,
    steps: u64,
) -> Result<(), DeviceError> {
    let failed = |message: String| DeviceError::Failed {
        operation: "laying out slabs",
        message,
    };
    let (scheme, problem) = (calculation.scheme, calculation.problem);
    let layout = &calculation.layout;
    let heights = vec![steps; builder.window().in_flight];
    let mut all = footprints
        .slabs(scheme, layout, &heights, base)
        .ok_or_else(|| failed("there are none".to_owned()))?;
    let slices = (0..problem.outputs.len())
        .filter_map(|output| Slice::new(scheme, problem, layout, output, 0, 0));
    let gathers: Vec<_> = slices.map(|slice| footprints.along(slice.planes)).collect();
    for block in all.iter_mut().flat_map(|slab| &mut slab.work.blocks) {
        block.gathers = gathers.clone();
    }
    let laid_out = LaidOutSlabs::new(builder.clone(), &all, 2, footprints.way());
    let laid_out = laid_out.map_err(|error| failed(error.to_string()))?;
    laid_out.check().map_err(|fault| failed(fault.to_string()))
}
