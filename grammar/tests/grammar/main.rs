//! The language: texts, trees, messages and the formatter.

mod comments;
mod errors;
mod fuzz_findings;
mod hostile;
mod inverse;
mod layout;
mod parse;
mod words;
