//! Spaces of names: the kinds of items for which a name can stand at its place.

use torre_grammar::ast::{ItemKind, Name};

/// Kinds of items with names of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// Definitions and constants.
    Value,
    Scheme,
    Problem,
    Schedule,
}

impl Space {
    pub const ALL: [Space; 4] = [Space::Value, Space::Scheme, Space::Problem, Space::Schedule];
}

/// The kind and name of an item; `use` has none.
pub fn item_name(kind: &ItemKind) -> Option<(Space, &Name)> {
    match kind {
        ItemKind::Use(_) => None,
        ItemKind::Const { name, .. } => Some((Space::Value, name)),
        ItemKind::Def(def) => Some((Space::Value, &def.name)),
        ItemKind::Layer(layer) => Some((Space::Value, &layer.def.name)),
        ItemKind::Scheme(s) => Some((Space::Scheme, &s.name)),
        ItemKind::Problem(p) => Some((Space::Problem, &p.name)),
        ItemKind::Schedule(s) => Some((Space::Schedule, &s.name)),
    }
}
