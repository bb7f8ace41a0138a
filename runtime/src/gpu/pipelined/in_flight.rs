//! Time blocks in flight, as a run asks for them.

#[cfg(doc)]
use crate::gpu::device::Facts;
use torre_compiler::layout::Layout;
use torre_compiler::pipeline::{Footprints, Window};
use torre_compiler::scheme::Scheme;

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
    /// Planes of the device's buffer; `None`: the device holds the whole array.
    pub places: Option<i64>,
    /// Planes of the bases of overlapped slabs, which have two buffers of `places` planes; `None`: a window that moves.
    pub slabs: Option<i64>,
    /// The bytes of which the buffer has a multiple ([`Facts::mapping`]) if planes go around; `None`: they slide.
    pub circular: Option<u64>,
}

impl InFlight {
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
            places: self.places,
            circular: self.circular.is_some(),
            devices,
            in_flight,
            ahead: self.ahead,
            spread: self.spread,
        })
    }
}
