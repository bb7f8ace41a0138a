//! The passes that are not over, by their numbers.

use super::pass_state::PassState;
use std::collections::VecDeque;

/// Passes that have begun and are not over. They begin and end in the order of their numbers, so their numbers are
/// consecutive.
#[derive(Debug, Default)]
pub(super) struct ActivePasses {
    states: VecDeque<PassState>,
    /// The number of the first of them.
    first: u64,
}

impl ActivePasses {
    /// The number of the first of them; of the next pass, if there are none.
    pub fn first(&self) -> u64 {
        self.first
    }

    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// In the order of their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, &PassState)> {
        (self.first..).zip(&self.states)
    }

    pub fn get(&self, pass: u64) -> Option<&PassState> {
        self.states.get(self.index(pass)?)
    }

    pub fn get_mut(&mut self, pass: u64) -> Option<&mut PassState> {
        let index = self.index(pass)?;
        self.states.get_mut(index)
    }

    /// Adds the next pass.
    pub fn begin(&mut self, state: PassState) {
        self.states.push_back(state);
    }

    /// Removes the first pass, and gives it with its number.
    pub fn end(&mut self) -> Option<(u64, PassState)> {
        let state = self.states.pop_front()?;
        let number = self.first;
        self.first += 1;
        Some((number, state))
    }

    fn index(&self, pass: u64) -> Option<usize> {
        usize::try_from(pass.checked_sub(self.first)?).ok()
    }
}
