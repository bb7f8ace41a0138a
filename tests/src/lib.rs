//! The test suite over the whole of Torre: what tests in `tests/` share.

pub mod physics;
