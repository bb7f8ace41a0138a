//! The resolver, and tower programs, on whole programs.

mod accuracy;
mod bloch;
mod book;
mod derive;
mod diagnostics;
mod dimensions;
mod examples;
mod extents;
mod files;
mod garbage;
mod hostile;
mod incoming;
mod lattice;
mod layers;
mod missing;
mod places;
mod problems;
mod questions;
mod random;
mod regions;
mod sizes;
mod snapshots;
mod states;
mod support;
mod times;
mod towers;
