//! Transfers.

/// Copies under way.
#[derive(Debug, Default)]
pub(crate) struct Transfers {}
