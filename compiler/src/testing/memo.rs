//! Texts that take long to compile and are wanted again.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The results for texts, in this process.
static MADE: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

thread_local! {
    static KNOWN: Cell<fn(&str) -> Option<String>> = const { Cell::new(|_| None) };
}

/// From now on this thread looks for the result of a text here before it makes one.
pub fn look_first(known: fn(&str) -> Option<String>) {
    KNOWN.set(known);
}

/// The result of `make` for a text, which depends on nothing else; it runs once for each. Failures are not kept.
pub fn once<E>(text: &str, make: impl FnOnce() -> Result<String, E>) -> Result<String, E> {
    if let Some(known) = KNOWN.get()(text) {
        return Ok(known);
    }
    let lock = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let known = lock().get(text).cloned();
    match known {
        Some(made) => Ok(made),
        None => {
            // Other threads compile meanwhile; two that want the same text may both make it.
            let made = make()?;
            lock().insert(text.to_owned(), made.clone());
            Ok(made)
        }
    }
}
