//! The resolver on whole programs.

mod book;
mod diagnostics;
mod examples;
mod garbage;
mod hostile;
mod lattice;
mod problems;
mod random;
mod sizes;
mod snapshots;
mod support;
