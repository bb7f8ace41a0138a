//! The values of a calculation from which results are made.

use torre_compiler::lattice::Region;
use torre_compiler::scheme::{ComponentId, StateId};

/// The values that are wanted before a calculation goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    All,
    /// No others than these.
    Parts(Vec<Part>),
}

/// Values in a box of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub of: PartOf,
    pub region: Region,
}

/// The component or state whose values they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartOf {
    /// The newest version of a component.
    Newest(ComponentId),
    State(StateId),
}

impl Values {
    /// No values.
    pub fn nothing() -> Values {
        Values::Parts(Vec::new())
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: Values) -> Values {
        match (self, other) {
            (Values::Parts(mut all), Values::Parts(more)) => {
                all.extend(more);
                Values::Parts(all)
            }
            _ => Values::All,
        }
    }
}
