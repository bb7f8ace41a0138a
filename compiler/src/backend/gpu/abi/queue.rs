//! The work queues from which blocks take tasks: one for each partition of the cache that all multiprocessors share.
//!
//! They lie in memory, in lines of the cache: the first line has the number of blocks that have arrived and that of
//! multiprocessors; then one line for each partition has how many of its tasks were taken, the number of the first of
//! them and how many there are; then there is a word for each multiprocessor, the number of its partition.

use crate::tower::TaskList;

/// Bytes from one queue to the next.
pub const QUEUE_BYTES: u32 = 128;

/// Bytes of the words in the first line.
pub struct QueueHeader;

impl QueueHeader {
    pub const ARRIVED: i64 = 0;
    pub const MULTIPROCESSORS: i64 = 4;
}

/// Bytes of the words in the line of a queue.
pub struct QueueLine;

impl QueueLine {
    pub const TAKEN: i64 = 0;
    pub const FIRST: i64 = 4;
    pub const COUNT: i64 = 8;
}

/// The work queues of a launch, if the multiprocessors with the numbers 0, 1, 2 ... are near these partitions. `None`
/// where a number is too large.
pub fn queues(list: &TaskList, launch: usize, near: &[u32]) -> Option<Vec<i32>> {
    let counts = list.launches.get(launch)?;
    let mut first = list.of_launch(launch).start;
    let near = if near.is_empty() { &[0] } else { near };
    let line = (QUEUE_BYTES / 4) as usize;
    let word = |byte: i64| byte as usize / 4;
    let mut words = vec![0; line * (1 + counts.len())];
    words[word(QueueHeader::MULTIPROCESSORS)] = i32::try_from(near.len()).ok()?;
    for (queue, count) in words.chunks_mut(line).skip(1).zip(counts) {
        queue[word(QueueLine::FIRST)] = i32::try_from(first).ok()?;
        queue[word(QueueLine::COUNT)] = i32::try_from(*count).ok()?;
        first += count;
    }
    let partition = |n: &u32| (*n as usize % counts.len()) as i32;
    words.extend(near.iter().map(partition));
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_say_what_is_theirs() {
        let list = TaskList::new(Vec::new(), vec![vec![3, 5], vec![2, 0]]);
        assert_eq!([list.until(0), list.until(1)], [8, 10]);
        let line = QUEUE_BYTES as usize / 4;
        for (launch, ranges) in [(0, [(0, 3), (3, 5)]), (1, [(8, 2), (10, 0)])] {
            let words = queues(&list, launch, &[1, 0, 3]).expect("few tasks");
            assert_eq!(words.len(), 3 * line + 3);
            assert_eq!(words[..2], [0, 3]);
            for (n, (first, count)) in ranges.into_iter().enumerate() {
                assert_eq!(words[(n + 1) * line..][..3], [0, first, count]);
            }
            assert_eq!(words[3 * line..], [1, 0, 1]);
        }
        assert_eq!(queues(&list, 2, &[]), None);
        let words = queues(&list, 0, &[]).expect("few tasks");
        assert_eq!((words[1], words[3 * line..].to_vec()), (1, vec![0]));
    }
}
