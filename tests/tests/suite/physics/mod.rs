//! Physics: the standard library's schemes against theory, and the examples. Every test states the formula that it
//! checks, and most show that they would notice a violation.

mod bloch;
mod cavity;
mod conservation;
mod convergence;
mod dispersion;
mod examples;
mod force;
mod layers;
mod library;
mod media;
mod stability;
mod surface;
mod tiny;
mod waves;
