//! Operators that need no definition: their names and signs.

use crate::host::HostUnary;

/// Every operator that needs no definition.
pub const BUILT_IN: &[&str] = &[
    "d", "dc", "d2", "avg", "sym", "sqrt", "abs", "min", "max", "exp", "log", "sin", "cos", "tan",
    "tanh", "atan2", "floor", "ceil", "round", "file", "table",
];

/// Every value that needs no definition.
pub const VALUES: [&str; 5] = ["pi", "t", "dimensions", "everywhere", "nowhere"];

/// The values of a layer at a place that its text sees beside its parameters.
pub const VALUES_OF_LAYERS: [&str; 4] = ["depth", "f", "a", "order"];

/// The sizes of a cell along a layer's axis and of a step, which its text sees, too.
pub const SIZES_OF_LAYERS: [&str; 2] = ["h", "dt"];

/// Whether a name is an operator or a value that needs no definition.
pub fn is_taken(name: &str) -> bool {
    is_built_in(name) || VALUES.contains(&name)
}

pub fn is_built_in(name: &str) -> bool {
    BUILT_IN.contains(&name)
}

/// The built-in operator of one argument with this name.
pub fn unary_of(name: &str) -> Option<HostUnary> {
    UNARY.iter().find(|(n, _)| *n == name).map(|(_, op)| *op)
}

/// The name of a built-in operator of one argument; empty for a sign.
pub fn name_of(op: HostUnary) -> &'static str {
    UNARY.iter().find(|(_, o)| *o == op).map_or("", |(n, _)| n)
}

const UNARY: &[(&str, HostUnary)] = &[
    ("abs", HostUnary::Abs),
    ("sqrt", HostUnary::Sqrt),
    ("exp", HostUnary::Exp),
    ("log", HostUnary::Log),
    ("sin", HostUnary::Sin),
    ("cos", HostUnary::Cos),
    ("tan", HostUnary::Tan),
    ("tanh", HostUnary::Tanh),
    ("floor", HostUnary::Floor),
    ("ceil", HostUnary::Ceil),
    ("round", HostUnary::Round),
];
