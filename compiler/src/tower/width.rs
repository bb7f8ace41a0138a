//! Narrow towers.

use super::group::PerFace;

/// Along which faces towers are narrow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Width(pub PerFace<bool>);

impl Width {
    /// A bit for each face.
    pub fn number(self) -> usize {
        let [first, second] = self.0.map(usize::from);
        first + 2 * second
    }
}
