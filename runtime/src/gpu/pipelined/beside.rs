//! Data beside planes: coefficients of axes, and the states of short zones. All of it is on the device for a whole
//! run; the host's states are as old as the last time when they came back.

use crate::gpu::device::{Address, Device, DeviceError};
use std::ops::Range;
use torre_compiler::layout::Layout;

/// The part of an array beside planes, on a device that does not have the whole array.
#[derive(Clone, Debug)]
pub(super) struct Beside {
    place: Address,
    /// Bytes of the host's array.
    part: Range<usize>,
    /// The steps after which the host's states are.
    steps: u64,
}

/// The bytes of an array beside planes, where kernels find them by an address of their own.
fn part(layout: &Layout) -> Option<Range<usize>> {
    let first = layout.after_planes() as usize * layout.element_bytes;
    layout.has_beside().then(|| first..layout.bytes() as usize)
}

impl Beside {
    /// Bytes that it takes on a device.
    pub fn bytes(layout: &Layout) -> u64 {
        part(layout).map_or(0, |part| part.len() as u64)
    }

    /// Brings the data to a device, after `steps` steps.
    pub fn new(
        device: &dyn Device,
        layout: &Layout,
        array: &[u8],
        steps: u64,
    ) -> Result<Option<Beside>, DeviceError> {
        let Some(part) = part(layout) else {
            return Ok(None);
        };
        let place = device.take(part.len() as u64)?;
        device.write(place, &array[part.clone()])?;
        Ok(Some(Beside { place, part, steps }))
    }

    /// Where an array would begin that has it.
    pub fn array(&self) -> Address {
        self.place.offset(-(self.part.start as i64))
    }

    /// Brings the states back to the host's array, if it does not have the states after `steps` steps.
    pub fn fetch(
        &mut self,
        device: &dyn Device,
        array: &mut [u8],
        steps: u64,
    ) -> Result<(), DeviceError> {
        if self.steps != steps {
            device.read(self.place, &mut array[self.part.clone()])?;
            self.steps = steps;
        }
        Ok(())
    }
}
