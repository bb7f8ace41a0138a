//! The resolver on whole programs.

mod book;
mod diagnostics;
mod examples;
mod support;
