//! Physics: the standard library's schemes against theory, and the examples. Every test states the formula that it
//! checks, and most show that they would notice a violation.

mod beam;
mod bloch;
mod cavity;
mod conservation;
mod convergence;
mod cylinder;
mod dispersion;
mod examples;
mod films;
mod force;
mod layers;
mod library;
mod media;
mod radiation;
mod stability;
mod summary;
mod surface;
mod tiny;
mod waves;
