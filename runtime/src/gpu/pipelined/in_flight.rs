//! Time blocks in flight, as a run asks for them.

#[cfg(doc)]
use crate::gpu::device::Facts;
use torre_compiler::layout::Layout;
use torre_compiler::pipeline::{DeviceBuffer, Footprints, Window};
use torre_compiler::scheme::Scheme;

/// The planes that a device holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldPlanes {
    /// All of them.
    All,
    /// A window of `places` planes, which slide in its buffer.
    Sliding { places: i64 },
    /// A window of `places` planes, which go around in its buffer. That has a multiple of `unit` bytes
    /// ([`Facts::mapping`]).
    Circular { places: i64, unit: u64 },
    /// Overlapped slabs with bases of `base` planes, in two buffers of `places` planes.
    Slabs { places: i64, base: i64 },
}

impl HeldPlanes {
    /// A window of some planes, which go around where a device maps memory twice, in pieces of `mapping` bytes.
    pub fn window(places: i64, mapping: Option<u64>) -> HeldPlanes {
        match mapping {
            Some(unit) => HeldPlanes::Circular { places, unit },
            None => HeldPlanes::Sliding { places },
        }
    }

    /// Planes of a buffer; `None`: the device holds all planes.
    pub fn places(self) -> Option<i64> {
        match self {
            HeldPlanes::All => None,
            HeldPlanes::Sliding { places }
            | HeldPlanes::Circular { places, .. }
            | HeldPlanes::Slabs { places, .. } => Some(places),
        }
    }

    /// The bytes of which the buffer has a multiple, if planes go around.
    pub fn unit(self) -> Option<u64> {
        match self {
            HeldPlanes::Circular { unit, .. } => Some(unit),
            HeldPlanes::All | HeldPlanes::Sliding { .. } | HeldPlanes::Slabs { .. } => None,
        }
    }

    /// Planes of the bases of slabs, if there are slabs.
    pub fn base(self) -> Option<i64> {
        match self {
            HeldPlanes::Slabs { base, .. } => Some(base),
            HeldPlanes::All | HeldPlanes::Sliding { .. } | HeldPlanes::Circular { .. } => None,
        }
    }

    fn buffer(self) -> DeviceBuffer {
        match self {
            HeldPlanes::All => DeviceBuffer::Whole,
            HeldPlanes::Circular { places, .. } => DeviceBuffer::Circular { places },
            HeldPlanes::Sliding { places } | HeldPlanes::Slabs { places, .. } => {
                DeviceBuffer::Sliding { places }
            }
        }
    }
}

/// The number of time blocks in flight, and the planes that the device holds meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Time blocks at a time.
    pub blocks: usize,
    /// Planes across the first axis of a group of towers.
    pub group: i64,
    /// Groups whose planes are loaded ahead.
    pub ahead: i64,
    /// See [`Window::spread`].
    pub spread: bool,
    pub held: HeldPlanes,
}

impl InFlight {
    /// The same with buffers of some planes; of a device that holds all planes, with a window whose planes slide.
    pub fn with_places(self, places: i64) -> InFlight {
        let held = match self.held {
            HeldPlanes::Circular { unit, .. } => HeldPlanes::Circular { places, unit },
            HeldPlanes::Slabs { base, .. } => HeldPlanes::Slabs { places, base },
            HeldPlanes::All | HeldPlanes::Sliding { .. } => HeldPlanes::Sliding { places },
        };
        InFlight { held, ..self }
    }

    /// The window of some devices, for time blocks of `steps` steps. `None` where these have no groups.
    pub(crate) fn window(
        self,
        footprints: &mut Footprints,
        scheme: &Scheme,
        layout: &Layout,
        steps: u64,
        devices: usize,
    ) -> Option<Window> {
        let in_flight = self.blocks.max(1);
        Some(Window {
            planes: footprints.planes(scheme, layout, &vec![steps; in_flight])?,
            ring: footprints.ring(),
            buffer: self.held.buffer(),
            devices,
            in_flight,
            ahead: self.ahead,
            spread: self.spread,
        })
    }
}
