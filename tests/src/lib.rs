//! The test suite over the whole of Torre: what tests in `tests/` share.

pub mod interpreted;
pub mod physics;
pub mod random;
