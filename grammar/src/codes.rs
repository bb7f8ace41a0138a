//! The codes of the diagnostics that the front end gives. A code keeps its meaning for ever; new ones are added at the
//! end.

use crate::diag::Code;

/// Something else was expected here.
pub const UNEXPECTED: Code = Code("E0001");
/// A line outside of every block begins no item.
pub const UNKNOWN_ITEM: Code = Code("E0002");
/// A bracket is not closed.
pub const UNCLOSED: Code = Code("E0003");
/// A closing bracket closes nothing.
pub const UNMATCHED: Code = Code("E0004");
/// A string does not end on its line.
pub const UNTERMINATED_STRING: Code = Code("E0005");
/// A character that the language does not use.
pub const UNEXPECTED_CHARACTER: Code = Code("E0006");
/// A number that is not written as one.
pub const MALFORMED_NUMBER: Code = Code("E0007");
/// A number that does not fit the range of double precision.
pub const NUMBER_RANGE: Code = Code("E0008");
/// Brackets, blocks or conditions are nested too deeply.
pub const TOO_DEEP: Code = Code("E0009");
/// A file is too large.
pub const TOO_LARGE: Code = Code("E0010");
/// A word with a meaning stands where a name is needed.
pub const KEYWORD_AS_NAME: Code = Code("E0011");
/// Comparisons do not chain.
pub const COMPARISON_CHAIN: Code = Code("E0012");
/// `=` where two values are compared.
pub const ASSIGNMENT_IN_EXPRESSION: Code = Code("E0013");
/// A line of a block begins no statement of that block.
pub const UNKNOWN_STATEMENT: Code = Code("E0014");
/// There are more errors than are shown.
pub const TOO_MANY: Code = Code("E0015");
/// `not` or `if` as an operand needs parentheses.
pub const NEEDS_PARENTHESES: Code = Code("E0016");
/// An expression has too many operations in a row.
pub const TOO_LONG: Code = Code("E0017");
