//! The claim of a run to its folder of results.

use super::Outputs;
use crate::output::FileError;
use crate::output::claim::Claim;

impl Outputs {
    /// Results are written as long as the run has the folder by its claim.
    pub fn claimed(mut self, claim: &Claim) -> Self {
        self.lock = claim.guard();
        self
    }

    /// An error where the lock of the folder was removed, moved or replaced: another run may write there.
    pub(super) fn check_claim(&self) -> Result<(), FileError> {
        self.lock.as_ref().map_or(Ok(()), |lock| lock.check())
    }
}
