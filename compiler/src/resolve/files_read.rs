//! Which files a program has read values from, and where the arrays that it names lie.

use super::graph::TableId;
use super::value::Use;
use crate::lattice::Position;
use crate::scheme::StaticFile;
use std::collections::BTreeMap;
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::Source;

/// Where the values of an expression lie, for arrays that it names.
#[derive(Clone, Debug, Default)]
pub enum Site {
    /// An expression that is not evaluated on a lattice of its own.
    #[default]
    Nowhere,
    /// The place of a declaration with this name and without a position.
    Unplaced(String),
    At(Position),
}

/// An array whose shape is not the one that a position needs.
pub struct Unfit {
    pub array: StaticFile,
    pub fault: Diagnostic,
    /// The definitions in which it was named.
    pub inlined: Vec<Use>,
}

/// The values that were read of files.
#[derive(Default)]
pub struct FilesRead {
    pub site: Site,
    /// The same for the components of the target of an expression, whose lists have an item for each.
    pub(super) sites: Vec<Site>,
    /// Arrays that do not fit, while an expression is evaluated at each of several positions, of which each value is
    /// used at its own alone.
    pub(super) unfit: Option<Vec<Unfit>>,
    /// How often an expression has named an array.
    pub(super) arrays: u64,
    /// Texts of tables by the names that the program uses.
    pub(super) texts: BTreeMap<String, Source>,
    pub(super) tables: BTreeMap<(String, String), TableId>,
}

impl FilesRead {
    /// The texts of tables.
    pub fn tables(&self) -> Vec<Source> {
        self.texts.values().cloned().collect()
    }

    /// Forgets the tables that belong to a graph.
    pub fn reset(&mut self) {
        self.tables.clear();
        self.site = Site::Nowhere;
        self.sites.clear();
        self.unfit = None;
    }
}
