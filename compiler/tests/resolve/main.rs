//! The resolver on whole programs.

mod book;
mod diagnostics;
mod examples;
mod garbage;
mod hostile;
mod problems;
mod random;
mod snapshots;
mod support;
