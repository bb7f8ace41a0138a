//! Source text, syntax tree, formatter and diagnostics of the Torre language.
//!
//! `parse` turns a [`source::Source`] into an [`ast::Ast`]; `print` is its inverse. Names are not resolved here.

pub mod ast;
pub mod diag;
pub mod source;
