//! Memory that a thread can do without, where the process ends if other memory cannot be had.

use std::cell::Cell;
use std::collections::TryReserveError;

thread_local! {
    static MAY_BE_REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread asks for memory that it can do without. For allocators: it takes no memory itself.
pub fn may_be_refused() -> bool {
    MAY_BE_REFUSED.try_with(Cell::get).unwrap_or(false)
}

/// An empty list with room for some elements, or the fact that there is no memory for them.
pub fn try_list<T>(elements: usize) -> Result<Vec<T>, TryReserveError> {
    let mut list = Vec::new();
    MAY_BE_REFUSED.set(true);
    let reserved = list.try_reserve_exact(elements);
    MAY_BE_REFUSED.set(false);
    reserved.map(|()| list)
}
