//! Learned rates: measured rates of runs over the rates that the model expected.
//!
//! ```text
//! Case        a run: family of the scheme, kind and sizes of the schedule, size of the grid; no names
//! CaseRuns    the runs of a case on a computer: their last ratios of measured over expected rates
//! Store       the file of records
//! Evidence    the records of one computer: corrected rates with their uncertainty, and the choice among schedules
//! GapRecord   the gaps between planes that were timed with a kernel, in a file of their own, GapStore
//! LineFile    a file in the user's cache folder with a record in each line
//! ```
//! Planning itself knows nothing of learned rates: callers that ask for them correct plans with them. They decide which
//! schedule runs, and no bit of its results.

mod case;
mod case_runs;
mod computer;
mod evidence;
mod gap_record;
mod line_file;

pub use case::{Case, Family, Kind, Subject};
pub use case_runs::{CaseRuns, Found, Store};
pub use computer::Computer;
pub use evidence::{Evidence, Learned};
pub use gap_record::{GapRecord, GapStore};
pub use line_file::{Line, LineFile, Lines};

use std::time::Duration;

/// Runs that computed for a shorter time are not recorded.
pub const LEAST: Duration = Duration::from_millis(300);
