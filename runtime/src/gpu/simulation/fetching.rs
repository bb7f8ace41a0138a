//! Values that come back to the host: runs of the array that it lacks, at once, or as a copy while the device goes on.

use super::{OnDevice, too_late};
use crate::gpu::device::{DeviceError, Reading};
use crate::gpu::runs;
use crate::simulation::{Value, Values};
use std::ops::Range;

impl<T: Value> OnDevice<'_, T> {
    /// Begins to read a copy of runs of the array as they are now; `None` where there is no room for one.
    pub(super) fn begin_copy(
        &mut self,
        runs: &[Range<usize>],
    ) -> Result<Option<Reading>, DeviceError> {
        let bytes = runs::bytes(runs);
        let shadow = match self.shadow {
            Some((shadow, size)) if size >= bytes => shadow,
            smaller => {
                if let Some((shadow, _)) = smaller {
                    self.shadow = None;
                    self.device.give_back(shadow)?;
                }
                // Some memory is left for later uses.
                if bytes > self.device.free_memory()? / 4 * 3 {
                    return Ok(None);
                }
                match self.device.take(bytes) {
                    Err(DeviceError::Memory { .. }) => return Ok(None),
                    taken => taken?,
                }
            }
        };
        self.shadow = self.shadow.or(Some((shadow, bytes)));
        let mut to = shadow;
        for run in runs {
            let bytes = run.len() as u64;
            self.device
                .copy(self.array.offset(run.start as i64), to, bytes)?;
            to = to.offset(bytes as i64);
        }
        self.device.begin_read(shadow, bytes).map(Some)
    }

    /// Ends to read them.
    pub(super) fn end_copy(
        &mut self,
        copy: Reading,
        runs: &[Range<usize>],
    ) -> Result<(), DeviceError> {
        let array = self.calculation.array_mut();
        if let [run] = runs {
            return self.device.end_read(copy, &mut array[run.clone()]);
        }
        let mut bytes = vec![0; runs::bytes(runs) as usize];
        self.device.end_read(copy, &mut bytes)?;
        let mut rest = &bytes[..];
        for run in runs {
            let (own, after) = rest.split_at(run.len());
            array[run.clone()].copy_from_slice(own);
            rest = after;
        }
        Ok(())
    }

    /// The runs of the array that the host lacks of some values.
    pub(super) fn lacking(&self, values: &Values) -> Vec<Range<usize>> {
        let calculation = &self.calculation;
        match values {
            _ if calculation.is_after(self.steps) => Vec::new(),
            Values::All => std::iter::once(0..calculation.array().len()).collect(),
            Values::Parts(parts) => {
                let (scheme, layout) = (calculation.scheme, &calculation.layout);
                runs::runs(scheme, layout, self.steps, parts)
            }
        }
    }

    /// Brings runs of the array back, when nothing has begun after them.
    pub(super) fn fetch_runs(&mut self, runs: &[Range<usize>]) -> Result<(), DeviceError> {
        if !runs.is_empty() && self.asked != self.steps {
            return Err(too_late("reading values"));
        }
        for run in runs {
            let from = self.array.offset(run.start as i64);
            let to = &mut self.calculation.array_mut()[run.clone()];
            self.device.read(from, to)?;
        }
        Ok(())
    }

    /// Notes that the host has some values.
    pub(super) fn note(&mut self, values: &Values) {
        match values {
            Values::All => self.calculation.set_steps(self.steps),
            Values::Parts(parts) if parts.is_empty() => {}
            Values::Parts(_) => self.calculation.set_steps_of_parts(self.steps),
        }
    }
}
