//! How long operations take together: each resource, such as the multiprocessors of a device or a way of a link, runs
//! one after the other, in the order in which they could begin.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// An operation of a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    pub resource: usize,
    /// Seconds for which it keeps others from the resource.
    pub occupies: f64,
    /// Seconds from its beginning to its end, no fewer: others wait for that.
    pub takes: f64,
    /// Operations that are over before it begins, by their index in the list, which is lower than its own.
    pub after: Vec<usize>,
}

/// Something that happens: an operation can begin, or a resource is free.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Happens {
    at: f64,
    /// Of events at one time the earlier operation is first.
    operation: usize,
    event: Event,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ready,
    Free,
    Ends,
}

impl Eq for Happens {}

impl Ord for Happens {
    // The heap has its largest entry in front.
    fn cmp(&self, other: &Self) -> Ordering {
        let time = other.at.total_cmp(&self.at);
        time.then(other.event.cmp(&self.event))
            .then(other.operation.cmp(&self.operation))
    }
}

impl PartialOrd for Happens {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// When each operation ends, in seconds from the beginning of the first one.
pub fn ends(works: &[Work]) -> Vec<f64> {
    let resources = works.iter().map(|work| work.resource + 1).max();
    let resources = resources.unwrap_or(0);
    let mut left: Vec<usize> = works.iter().map(|work| work.after.len()).collect();
    let mut later: Vec<Vec<usize>> = vec![Vec::new(); works.len()];
    for (own, work) in works.iter().enumerate() {
        for before in &work.after {
            later[*before].push(own);
        }
    }
    let mut ends = vec![0.0; works.len()];
    // Operations that can begin, by resource, and whether it is free.
    let mut ready: Vec<BinaryHeap<Happens>> = vec![BinaryHeap::new(); resources];
    let mut free = vec![true; resources];
    let happens = |at, operation, event| Happens {
        at,
        operation,
        event,
    };
    let first = (0..works.len()).filter(|own| left[*own] == 0);
    let mut next: BinaryHeap<Happens> = first.map(|own| happens(0.0, own, Event::Ready)).collect();
    while let Some(happening) = next.pop() {
        let Happens {
            at,
            operation,
            event,
        } = happening;
        let resource = works[operation].resource;
        match event {
            Event::Ready => ready[resource].push(happening),
            Event::Free => free[resource] = true,
            Event::Ends => {
                ends[operation] = at;
                for own in std::mem::take(&mut later[operation]) {
                    left[own] -= 1;
                    if left[own] == 0 {
                        next.push(happens(at, own, Event::Ready));
                    }
                }
            }
        }
        if free[resource]
            && let Some(begins) = ready[resource].pop()
        {
            let work = &works[begins.operation];
            free[resource] = false;
            next.push(happens(at + work.occupies, begins.operation, Event::Free));
            let takes = work.takes.max(work.occupies);
            next.push(happens(at + takes, begins.operation, Event::Ends));
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(resource: usize, occupies: f64, takes: f64, after: &[usize]) -> Work {
        Work {
            resource,
            occupies,
            takes,
            after: after.to_vec(),
        }
    }

    #[test]
    fn operations_wait_for_others_and_for_their_resource() {
        let works = [
            work(0, 2.0, 3.0, &[]),
            work(0, 2.0, 3.0, &[]),
            // It waits for the end of the first one, and the resource is free before.
            work(1, 1.0, 1.0, &[0]),
            work(0, 1.0, 1.0, &[2]),
        ];
        assert_eq!(ends(&works), [3.0, 5.0, 4.0, 5.0]);
        assert!(ends(&[]).is_empty());
    }

    /// Two devices in turns with one time block have half of the time each; with two all of it.
    #[test]
    fn turns_overlap_in_several_chains() {
        let chains = |count: usize| {
            let mut works = Vec::new();
            for turn in 0..100 {
                for chain in 0..count {
                    let before = works.len().checked_sub(count);
                    let before: Vec<usize> = before.into_iter().collect();
                    works.push(work((turn + chain) % 2, 1.0, 1.0, &before));
                }
            }
            ends(&works).into_iter().fold(0.0, f64::max)
        };
        assert_eq!((chains(1), chains(2), chains(4)), (100.0, 100.0, 200.0));
    }
}
