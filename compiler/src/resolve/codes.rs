//! The codes of all diagnostics of this stage. A code never changes its meaning; the book has an example of each.

use torre_grammar::diag::Code;

macro_rules! codes {
    ($($name:ident = $code:literal, $title:literal;)*) => {
        $(#[doc = $title] pub const $name: Code = Code($code);)*

        /// Every code with its title, in ascending order within errors and within warnings.
        pub const TABLE: &[(Code, &str)] = &[$(($name, $title)),*];
    };
}

codes! {
    UNKNOWN_NAME = "E0101", "unknown name";
    UNKNOWN_MODULE = "E0102", "unknown module";
    DEFINED_TWICE = "E0103", "a name is defined twice";
    BUILT_IN = "E0104", "a built-in name is defined";
    UNKNOWN_ITEM = "E0105", "a module has no such item";
    WRONG_KIND = "E0106", "a name of the wrong kind";
    RECURSIVE = "E0107", "a recursive definition";
    MODULE_CYCLE = "E0108", "modules use each other in a circle";
    UNKNOWN_COMPONENT = "E0109", "unknown component";
    ARGUMENTS = "E0110", "wrong arguments";
    TOO_COMPLEX = "E0111", "the program is too complex";
    NOT_AN_AXIS = "E0112", "an axis was expected";
    NOT_SILENCED = "E0113", "a code that cannot be silenced";
    REQUIREMENT = "E0114", "a parameter that a definition does not take";

    POSITIONS_DIFFER = "E0201", "operands at different positions";
    OFF_TARGET = "E0202", "a value that is not at its target's position";
    OFFSET = "E0203", "an offset that is no multiple of half a cell";
    POSITION_OF_SHAPE = "E0204", "a position that the shape does not have";
    EXPLICIT_POSITION = "E0205", "a malformed position";

    NO_PREVIOUS = "E0301", "no earlier value is kept";
    CYCLE = "E0302", "dependence cycle within a step";
    LEVEL_OF = "E0303", "a time level of a value that has none";
    NEVER_NEXT = "E0304", "no next value is computed";
    TIME_IN_STEP = "E0305", "time in a static expression";
    FIELD_TIME = "E0306", "a time offset that is not 0 or 1/2";
    FIELD_LEVELS = "E0307", "a number of levels that is not 1 or 2";

    SHAPES_DIFFER = "E0401", "shapes do not fit";
    NOT_A_NUMBER = "E0402", "a number was expected";
    NOT_ON_FIELDS = "E0403", "a function that does not work on field values";
    ORDER = "E0405", "an order that is not available";
    DYNAMIC_CONDITION = "E0406", "a condition that depends on field values";
    TOO_MANY_TERMS = "E0407", "an update with too many terms";
    NOT_FINITE = "E0408", "a coefficient that is not finite";
    LIST = "E0409", "a list that is not a vector";
    AXES = "E0410", "axes that are missing, too many or named alike";
    STEP = "E0411", "a scheme without exactly one step";
    CELL_SIZE = "E0412", "a cell size or time step that is not a positive number";
    TOO_MANY_COMPONENTS = "E0413", "too many components";
    BRANCHES = "E0414", "branches that advance a value in different ways";
    SIDE = "E0415", "a side that cannot be";
    DERIVED = "E0416", "a derived scheme that does not fit its base";
    STATE = "E0417", "a state that cannot be";

    WHICH_PROBLEM = "E0501", "which problem is meant";
    MISSING = "E0502", "a statement is missing";
    STATED_TWICE = "E0503", "a statement is given twice";
    DOMAIN = "E0504", "a domain that cannot be";
    BOUNDARY = "E0505", "a boundary that cannot be";
    OUTSIDE = "E0506", "an index outside of the domain";
    STENCIL = "E0507", "a stencil wider than the domain";
    MEMORY = "E0508", "not enough memory";
    NOT_STATIC = "E0509", "field values where static ones are needed";
    NEVER_UPDATED = "E0510", "a source on a component that is never updated";
    SAME_NAME = "E0511", "two results with one name";
    COUNT = "E0512", "a number of steps that cannot be";
    NO_COEF = "E0513", "no such coefficient";
    OUTSIDE_UPDATE = "E0514", "a source where nothing is updated";
    NO_BOX = "E0515", "a region that is not a box";
    TOO_MANY_PROBES = "E0516", "too many values to record";
    LAYER = "E0517", "a layer that cannot be";
    REDUCTION = "E0518", "a record that is no reduction";
    INCIDENT = "E0519", "an incident field that cannot be";
    SPECTRUM = "E0520", "a spectrum that cannot be";

    UNREADABLE = "E0601", "a file that cannot be read";
    FILE_TYPE = "E0602", "a file with values of another type";
    FILE_SHAPE = "E0603", "a file of another shape";
    FILE_POSITION = "E0604", "a file without a position";
    NO_TABLE = "E0605", "a file that is no table";

    UNKNOWN_PARAMETER = "E0701", "no such parameter";
    BAD_VALUE = "E0702", "a value that cannot be read";

    INTERNAL = "E0901", "a defect of Torre";

    NEAREST = "N0501", "a place between values";
    ABSENT = "N0502", "axes on which nothing depends";

    NOT_CENTRED = "W0301", "an update that is not centred in time";
    NEXT_TWICE = "W0302", "a plain name beside `@next`";
    HALFWAY = "W0303", "an earlier value between two updates";
    AHEAD = "W0304", "a statement that runs before one above it";
    NEVER_ADVANCED = "W0401", "a field that is never updated";
    CELLS_OF_SIZE_1 = "W0402", "a cell size under another name";
    STEP_OF_1 = "W0403", "a time step under another name";
    VANISHED = "W0404", "a number that is too small for the precision of the scheme";
    HELD_AT_ZERO = "W0501", "a source where the boundary holds the value at 0";
    NO_PLACE = "W0502", "a place without values";
    UNUSED_REGION = "W0503", "a region that nothing uses";
    UNUSED_INCIDENT = "W0504", "an incident field without a box";
    STILL_DRIVE = "W0505", "a drive that stands still in part";
    RAW_DIFFERENCE = "W0506", "a difference that a layer does not change";
    CHANGED_LATER = "W0507", "a source whose values a later statement changes";
    NO_VALUES = "W0508", "a spectrum without values";
}

#[cfg(test)]
mod tests {
    use super::TABLE;

    #[test]
    fn codes_ascend() {
        assert!(TABLE.windows(2).all(|w| w[0].0 < w[1].0));
    }
}
