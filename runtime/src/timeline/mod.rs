//! When operations of devices ran: the record of the launches and copies of a run with time blocks in flight, and the
//! operations for which devices waited.

mod files;
mod summary;

pub use files::{Format, chrome_json, csv};
pub use summary::{Cause, DeviceTimes, summary};

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Towers of a group, or of a launch of a stripe.
    Run,
    /// Collects planes of a slice.
    Gather,
    /// Copies planes from the host.
    Load,
    /// Copies planes to the host.
    Store,
    /// Copies planes within the buffer of a window.
    Slide,
    /// Copies planes to another device.
    Send,
}

impl Kind {
    pub const ALL: [Kind; 6] = [
        Kind::Run,
        Kind::Gather,
        Kind::Load,
        Kind::Store,
        Kind::Slide,
        Kind::Send,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Run => "run",
            Kind::Gather => "gather",
            Kind::Load => "load",
            Kind::Store => "store",
            Kind::Slide => "slide",
            Kind::Send => "send",
        }
    }

    /// Whether it is work of a kernel; others are copies.
    pub fn computes(self) -> bool {
        matches!(self, Kind::Run | Kind::Gather)
    }
}

/// An operation of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    pub device: usize,
    /// Among the names of [`Timeline::queues`].
    pub queue: usize,
    pub kind: Kind,
    /// Such as `block 3, group 7`.
    pub name: String,
    /// Towers of a launch, bytes of a copy.
    pub amount: u64,
    /// Operations that are over before it begins, by their place in the list, the one before it in its queue among
    /// them.
    pub after: Vec<usize>,
    /// When the host asked for it, in seconds from the beginning of the record, as `begin` and `end`.
    pub asked: f64,
    /// When all that it waits for was over.
    pub begin: f64,
    pub end: f64,
}

/// The operations of devices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Names of devices, by their numbers.
    pub devices: Vec<String>,
    /// Names of queues.
    pub queues: Vec<String>,
    /// In the order in which they were asked for.
    pub operations: Vec<Operation>,
}
