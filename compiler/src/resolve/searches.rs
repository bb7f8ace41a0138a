//! Searches in other modules.

use super::elsewhere::{Elsewhere, Wanted};
use super::load::ModuleId;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The items of other modules for a name: only items that can really be used.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// An item of the name that fits its place.
    pub fitting: Option<Elsewhere>,
    /// An item of the name that is something else.
    pub other: Option<Elsewhere>,
    /// An item that fits and has nearly this name.
    pub near: Option<Elsewhere>,
}

/// The searches so far, so that no name is searched for twice.
#[derive(Debug, Default)]
pub struct Searches {
    pub items: RefCell<BTreeMap<ModuleId, Rc<[Elsewhere]>>>,
    pub found: RefCell<BTreeMap<(ModuleId, String, Wanted), Search>>,
}
