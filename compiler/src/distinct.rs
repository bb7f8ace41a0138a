//! Lists without repetitions.

/// The different ones of some items, in ascending order.
pub(crate) fn distinct<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = items.into_iter().collect();
    all.sort_unstable();
    all.dedup();
    all
}
