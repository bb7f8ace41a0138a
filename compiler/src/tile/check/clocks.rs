//! Which tiles are done before which, as far as waits guarantee it: vector clocks.
//!
//! The clock of a moment in a strip says for every strip how many of its tiles are done then for sure. A strip that
//! waits until another has passed a place learns what that one knew when it had finished its last tile up to that
//! place, and no more.

use super::super::strips::Waits;

/// The clocks of the strips of two neighbouring time blocks: no wait goes farther back.
pub(super) struct Clocks {
    strips: Vec<Vec<Done>>,
}

/// The end of a tile.
struct Done {
    place: i64,
    clock: Vec<u32>,
}

impl Clocks {
    pub(super) fn new(strips: usize) -> Clocks {
        let mut all = Vec::new();
        all.resize_with(strips, Vec::new);
        Clocks { strips: all }
    }

    /// Nobody asks for strips below this one any more.
    pub(super) fn forget_below(&mut self, strip: usize) {
        for own in &mut self.strips[..strip] {
            *own = Vec::new();
        }
    }

    /// The clock with which the tile at a place starts.
    pub(super) fn start(&self, strip: usize, place: i64, waits: Waits) -> Vec<u32> {
        let own = self.strips[strip].last();
        let mut clock = own.map_or_else(|| vec![0; self.strips.len()], |d| d.clock.clone());
        for other in waits.iter() {
            let list = &self.strips[other];
            let done = list.partition_point(|d| d.place <= place);
            if let Some(last) = done.checked_sub(1).map(|i| &list[i]) {
                for (own, other) in clock.iter_mut().zip(&last.clock) {
                    *own = (*own).max(*other);
                }
            }
        }
        clock
    }

    /// A tile ends that started with this clock; it is the `sequence`-th of its strip.
    pub(super) fn end(&mut self, strip: usize, place: i64, sequence: u32, mut clock: Vec<u32>) {
        clock[strip] = sequence + 1;
        self.strips[strip].push(Done { place, clock });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_strip_knows_passes_on_to_those_that_wait_for_it() {
        let mut clocks = Clocks::new(3);
        let left = |other| Waits {
            left: Some(other),
            before: None,
        };
        for (sequence, place) in [(0, 0), (1, 5)] {
            let clock = clocks.start(0, place, Waits::default());
            clocks.end(0, place, sequence, clock);
        }
        // Strip 1 has passed place 2 of strip 0, which is its first tile only.
        let clock = clocks.start(1, 2, left(0));
        assert_eq!(clock, [1, 0, 0]);
        clocks.end(1, 2, 0, clock);
        // Strip 2 knows of strip 0 what strip 1 knew, not what is the case.
        assert_eq!(clocks.start(2, 7, left(1)), [1, 1, 0]);
        assert_eq!(clocks.start(2, 1, left(1)), [0, 0, 0]);
    }
}
