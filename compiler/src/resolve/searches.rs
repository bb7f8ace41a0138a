//! What was searched for in other modules.

use super::elsewhere::{Elsewhere, Wanted};
use super::load::ModuleId;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What other modules have for a name: only what can really be used.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// An item of the name that fits its place.
    pub fitting: Option<Elsewhere>,
    /// One of the name that is something else.
    pub other: Option<Elsewhere>,
    /// One that fits and has nearly this name.
    pub near: Option<Elsewhere>,
}

/// What was searched for, so that nothing is searched for twice.
#[derive(Debug, Default)]
pub struct Searches {
    pub items: RefCell<BTreeMap<ModuleId, Rc<[Elsewhere]>>>,
    pub found: RefCell<BTreeMap<(ModuleId, String, Wanted), Search>>,
}
