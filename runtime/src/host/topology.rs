//! The places of threads: which processors of the system are threads of one core.

use core_affinity::CoreId;
use std::fs;
use std::sync::OnceLock;

/// The processors that a process may use, by cores; in ascending order of the first processor of each core.
#[derive(Debug, Default, PartialEq, Eq)]
struct Cores(Vec<Vec<usize>>);

impl Cores {
    /// By the processors that share a core with each one, where that is known.
    fn new(allowed: &[usize], siblings: impl Fn(usize) -> Option<Vec<usize>>) -> Cores {
        let mut cores: Vec<Vec<usize>> = Vec::new();
        for &processor in allowed {
            let same = siblings(processor).unwrap_or_default();
            let known = cores
                .iter_mut()
                .find(|core| core.iter().any(|other| same.contains(other)));
            match known {
                Some(core) => core.push(processor),
                None => cores.push(vec![processor]),
            }
        }
        Cores(cores)
    }

    /// A processor for each of some threads: of all cores the first ones, then the second ones. None where there are
    /// fewer threads than cores: the system finds cores that are idle, and moves threads where others need theirs.
    fn places(&self, threads: usize) -> Vec<usize> {
        if threads < self.0.len() {
            return Vec::new();
        }
        let most = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let rounds = (0..most).flat_map(|n| self.0.iter().filter_map(move |core| core.get(n)));
        rounds.copied().take(threads).collect()
    }
}

/// Numbers and ranges of numbers, such as `0-2,8`, as Linux writes them.
fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut list = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        list.extend(first..=last);
    }
    Some(list)
}

/// The processors of the core of a processor. `None` where the system does not say it.
fn siblings(processor: usize) -> Option<Vec<usize>> {
    let path = format!("/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list");
    parse_list(&fs::read_to_string(path).ok()?)
}

/// A processor for each of the first of some threads, as many as have one of their own.
pub fn places(threads: usize) -> Vec<CoreId> {
    static CORES: OnceLock<Cores> = OnceLock::new();
    let cores = CORES.get_or_init(|| {
        let allowed = core_affinity::get_core_ids().unwrap_or_default();
        let allowed: Vec<usize> = allowed.iter().map(|core| core.id).collect();
        Cores::new(&allowed, siblings)
    });
    let places = cores.places(threads);
    places.into_iter().map(|id| CoreId { id }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(parse_list("3\n"), Some(vec![3]));
        assert_eq!(parse_list("0,8"), Some(vec![0, 8]));
        assert_eq!(parse_list("0-2,7-8\n"), Some(vec![0, 1, 2, 7, 8]));
        for none in ["", "a", "1-", "-"] {
            assert_eq!(parse_list(none), None, "{none}");
        }
    }

    #[test]
    fn each_core_has_a_thread_before_one_has_two() {
        // Processors n and n + 4 share a core, or 2 n and 2 n + 1.
        let far = Cores::new(&[0, 1, 2, 3, 4, 5, 6, 7], |p| Some(vec![p % 4, p % 4 + 4]));
        let near = Cores::new(&[0, 1, 2, 3, 4, 5, 6, 7], |p| Some(vec![p & !1, p | 1]));
        assert_eq!(far.places(4), [0, 1, 2, 3]);
        assert_eq!(near.places(4), [0, 2, 4, 6]);
        assert_eq!(near.places(6), [0, 2, 4, 6, 1, 3]);
        assert_eq!(far.places(8), [0, 1, 2, 3, 4, 5, 6, 7]);
        // More threads than processors.
        assert_eq!(near.places(20).len(), 8);
        // Parts of cores, and no topology.
        let part = Cores::new(&[1, 2, 3, 7], |p| Some(vec![p & !1, p | 1]));
        assert_eq!(part.places(3), [1, 2, 7]);
        assert_eq!(part.places(4), [1, 2, 7, 3]);
        assert_eq!(Cores::new(&[4, 9], |_| None).places(2), [4, 9]);
        assert!(Cores::new(&[], |_| None).places(2).is_empty());
    }

    #[test]
    fn fewer_threads_than_cores_have_no_places() {
        let cores = Cores::new(&[0, 1, 2, 3], |p| Some(vec![p & !1, p | 1]));
        assert!(cores.places(1).is_empty());
        assert_eq!(cores.places(2), [0, 2]);
    }
}
