//! Results that are made of values of many steps.

use super::series::SeriesRecords;
use super::spectra::Spectra;

/// Where results go that are made of values of many steps; `None` if they are not wanted.
#[derive(Clone, Copy, Default)]
pub struct Records<'a> {
    /// Of reductions over time and of states.
    pub series: Option<&'a SeriesRecords<'a>>,
    pub spectra: Option<&'a Spectra>,
}
