//! The world outside, as the compiler sees it: modules and the shapes of files. The only way out of this crate.

use torre_grammar::source::Source;

/// The head of a `.npy` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayInfo {
    /// As in the file: `<f4`, `<f8`, `<i4`, ...
    pub dtype: String,
    pub shape: Vec<u64>,
}

pub trait World {
    /// The source of a module: `["std", "curl"]`, or `["lib"]` for a file beside `from`. `None`: there is none.
    fn module(&self, from: &Source, path: &[&str]) -> Option<Source>;

    /// Why a module cannot be read that is there, in a few words. `None`: it is not there.
    fn unreadable(&self, _from: &Source, _path: &[&str]) -> Option<String> {
        None
    }

    /// The modules that could have been meant, for suggestions.
    fn modules(&self) -> Vec<String> {
        Vec::new()
    }

    /// The shape and type of a `.npy` file named in `from`; the error says in a few words why it can't be read.
    fn array(&self, from: &Source, path: &str) -> Result<ArrayInfo, String>;

    /// The text of a table named in `from`; the error says in a few words why it can't be read.
    fn table(&self, from: &Source, path: &str) -> Result<String, String>;
}
