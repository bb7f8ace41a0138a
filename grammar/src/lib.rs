//! Source text, syntax tree, formatter and diagnostics of the Torre language.
//!
//! `parse` turns a [`source::Source`] into an [`ast::Ast`]; `print` is its inverse. Names are not resolved here.

pub mod ast;
pub mod codes;
pub mod diag;
mod explain;
mod layout;
mod parse;
mod print;
pub mod source;
mod tree;
pub mod words;

pub use explain::{KEYWORDS, closest};
pub use layout::MAX_BYTES;
pub use parse::{parse, parse_expr, parse_schedule};
pub use print::{print, print_expr};
