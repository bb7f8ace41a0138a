//! Why a call of a definition with states cannot become an amendment.

pub enum Misplaced {
    /// The update is not linear in it.
    Nonlinear,
    /// It is not taken at the update's own place.
    Elsewhere,
    /// It has another such value in it.
    Nested,
    /// It has a difference along an axis in it that layers change.
    InLayer(String),
    /// It reads its states at other places.
    State,
}

impl Misplaced {
    /// The message and the remedy.
    pub fn said(&self) -> (String, String) {
        let (message, hint) = match self {
            Self::InLayer(axis) => {
                let message = format!(
                    "a definition with states takes a difference along `{axis}`, which is another one in a layer \
                     (such as `boundary {axis}: cpml(10)`)"
                );
                let hint = format!(
                    "give the difference a field of its own, which a statement before this one sets, \
                     `g = d(f, {axis})`, and call the definition with this field"
                );
                return (message, hint);
            }
            Self::Nonlinear => (
                "this update is not linear in a value that is another one in a layer or region",
                "let the value enter it as a term or with a factor",
            ),
            Self::Elsewhere => (
                "a difference in a layer (such as `boundary x: cpml(10)`), or a definition with states, is averaged, \
                 shifted or differenced once more",
                "take the mean first, `d(avg(f, x), x)` for `avg(d(f, x), x)`; or give the value a field of its own, \
                 which the next update reads",
            ),
            Self::Nested => (
                "a definition with states calls another one with states, or takes its value",
                "add both calls in the statement, `outer(f, body) - inner(f, body)`, or keep the states of both in one \
                 definition",
            ),
            Self::State => (
                "a state is read at its own place alone, and here a difference or mean of one is taken",
                "keep it in a field instead, `field kept : scalar on nodes`, which a statement in the region advances, \
                 `where body { kept += .. }`; the chapter on layers has a program",
            ),
        };
        (message.to_owned(), hint.to_owned())
    }
}
