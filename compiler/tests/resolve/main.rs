//! The resolver on whole programs.

mod diagnostics;
mod examples;
mod support;
