//! Learned rates: measured rates of runs over the rates that the model expected.
//!
//! ```text
//! Case       a run: family of the scheme, kind and sizes of the schedule, size of the grid; no names
//! Record     a case on a computer, with its last ratios of measured over expected rates
//! Store      the records in the user's cache folder
//! Evidence   the records of one computer: corrected rates with their uncertainty, and the choice among schedules
//! GapStore   the gaps between planes that were timed, beside them
//! ```
//! Planning itself knows nothing of learned rates: callers that ask for them correct plans with them. They decide which
//! schedule runs, and no bit of its results.

mod case;
mod evidence;
mod gap_store;
mod store;

pub use case::{Case, Family, Kind, Subject};
pub use evidence::{Evidence, Learned};
pub use gap_store::{GapRecord, GapStore};
pub use store::{Computer, Found, Record, Store};

use std::time::Duration;

/// Runs that computed for a shorter time are not recorded.
pub const LEAST: Duration = Duration::from_millis(300);
