//! Which tiles are done before which, as far as waits guarantee it: vector clocks.
//!
//! The clock of a moment in a track says for every track how many of its tasks are done then for sure. A track that
//! waits until another one has passed a place takes over the clock that the other one had when it had finished its last
//! task up to that place, and no more. A task of several tracks has the maximum of their clocks.

/// The clocks of the tracks of two neighbouring time blocks: no wait goes farther back.
pub(super) struct Clocks {
    tracks: Vec<Track>,
}

#[derive(Default)]
struct Track {
    tasks: u32,
    done: Vec<Done>,
}

/// The end of a task.
struct Done {
    place: i64,
    clock: Vec<u32>,
}

impl Clocks {
    pub(super) fn new(tracks: usize) -> Clocks {
        let mut all = Vec::new();
        all.resize_with(tracks, Track::default);
        Clocks { tracks: all }
    }

    /// Tracks below this one are not asked for any more.
    pub(super) fn forget_below(&mut self, track: usize) {
        for own in &mut self.tracks[..track] {
            own.done = Vec::new();
        }
    }

    /// How many tasks of a track have ended.
    pub(super) fn tasks(&self, track: usize) -> u32 {
        self.tracks[track].tasks
    }

    /// The clock with which a task of some tracks starts at a place, where these other tracks have passed it.
    pub(super) fn start(&self, own: &[usize], place: i64, waits: &[usize]) -> Vec<u32> {
        let mut clock = vec![0; self.tracks.len()];
        let mut learn = |done: Option<&Done>| {
            for (own, other) in clock.iter_mut().zip(done.iter().flat_map(|d| &d.clock)) {
                *own = (*own).max(*other);
            }
        };
        for track in own {
            learn(self.tracks[*track].done.last());
        }
        for other in waits {
            let list = &self.tracks[*other].done;
            let done = list.partition_point(|d| d.place <= place);
            learn(done.checked_sub(1).map(|i| &list[i]));
        }
        clock
    }

    /// A task of some tracks ends that started with this clock.
    pub(super) fn end(&mut self, own: &[usize], place: i64, clock: &[u32]) {
        let mut clock = clock.to_vec();
        for track in own {
            self.tracks[*track].tasks += 1;
            clock[*track] = self.tracks[*track].tasks;
        }
        for track in own {
            let clock = clock.clone();
            self.tracks[*track].done.push(Done { place, clock });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_track_knows_passes_on_to_those_that_wait_for_it() {
        let mut clocks = Clocks::new(3);
        for (task, place) in [(0, 0), (1, 5)] {
            assert_eq!(clocks.tasks(0), task);
            let clock = clocks.start(&[0], place, &[]);
            clocks.end(&[0], place, &clock);
        }
        // Track 1 has passed place 2 of track 0, which is its first task only.
        let clock = clocks.start(&[1], 2, &[0]);
        assert_eq!(clock, [1, 0, 0]);
        clocks.end(&[1], 2, &clock);
        // Track 2 has the count of track 0 that track 1 had, not the true one.
        assert_eq!(clocks.start(&[2], 7, &[1]), [1, 1, 0]);
        assert_eq!(clocks.start(&[2], 1, &[1]), [0, 0, 0]);
    }

    #[test]
    fn a_task_of_two_tracks_joins_what_they_know() {
        let mut clocks = Clocks::new(3);
        for track in [0, 1] {
            let clock = clocks.start(&[track], 0, &[]);
            clocks.end(&[track], 0, &clock);
        }
        let clock = clocks.start(&[0, 1], 1, &[]);
        assert_eq!(clock, [1, 1, 0]);
        clocks.end(&[0, 1], 1, &clock);
        // Either track knows of both tasks of the other.
        assert_eq!(clocks.start(&[2], 1, &[1]), [2, 2, 0]);
        assert_eq!(clocks.start(&[0], 2, &[]), [2, 2, 0]);
        assert_eq!(clocks.start(&[2], 0, &[1]), [0, 1, 0]);
    }
}
