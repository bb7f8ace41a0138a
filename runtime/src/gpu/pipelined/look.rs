//! Whether values are finite and of usual size, between passes.

use super::Pipelined;
use crate::gpu::device::DeviceError;
use crate::gpu::lookout::{self, Lookout};
use crate::simulation::{BlowUp, RunError, Value};
use torre_compiler::real::Real;

impl<T: Value> Pipelined<'_, T> {
    /// Looks at some of the values that the device has, all of whose passes are over. Without memory for that it looks
    /// at none.
    pub(super) fn look_on_device(&mut self) -> Result<(), RunError> {
        let (scheme, layout) = (self.calculation.scheme, &self.calculation.layout);
        let (device, unit) = (self.devices.device(0), &self.units[0]);
        let Some(gather) = unit.gather_values else {
            return Ok(());
        };
        if self.lookout.get().is_none() {
            let made = match Lookout::new(device, gather, scheme, layout) {
                Err(DeviceError::Memory { .. }) => None,
                made => Some(made?),
            };
            self.lookout.get_or_init(|| made);
        }
        let Some(Some(lookout)) = self.lookout.get_mut() else {
            return Ok(());
        };
        let found = lookout.look(device, scheme, unit.buffer, self.steps)?;
        let found = found.or(lookout.end(device, scheme)?);
        found.map_or(Ok(()), |found| Err(RunError::BlowUp(found)))
    }

    /// Looks at some of the values that the host has.
    pub(super) fn look(&self) -> Result<(), RunError> {
        let scheme = self.calculation.scheme;
        let bound = crate::simulation::guard::bound(scheme.precision);
        for cell in lookout::cells(scheme) {
            let value = Real::to_f64(self.calculation.value(cell.component, cell.at));
            let regular = value.abs() <= bound;
            if !regular {
                let found = BlowUp::new(scheme, cell.component, cell.at, self.steps, value);
                return Err(RunError::BlowUp(found));
            }
        }
        Ok(())
    }
}
