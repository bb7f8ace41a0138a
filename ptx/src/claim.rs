//! Global memory that bulk copies under way still read or write.

use crate::error::Fault;
use crate::launch::Launch;
use crate::op::AccessKind;
use crate::place::Place;
use crate::transfer::pending;

/// Global memory that a bulk copy under way reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    buffer: usize,
    at: usize,
    bytes: usize,
    access: AccessKind,
}

impl Launch<'_> {
    /// Whether no bulk copy under way needs this piece of global memory.
    pub(crate) fn claimed(
        &self,
        buffer: usize,
        at: usize,
        bytes: usize,
        access: AccessKind,
    ) -> Result<(), Fault> {
        let hit = |claim: &&Claim| {
            claim.buffer == buffer
                && claim.at < at + bytes
                && at < claim.at + claim.bytes
                && [access, claim.access].contains(&AccessKind::Write)
        };
        match self.claims.iter().find(hit) {
            None => Ok(()),
            Some(claim) if claim.access == AccessKind::Write => Err(pending(
                "global memory is used that a bulk copy may still write",
            )),
            Some(_) => Err(pending(
                "global memory is written that a bulk copy may still read",
            )),
        }
    }

    pub(crate) fn claim(&mut self, place: Place, bytes: usize, access: AccessKind) {
        if let Place::Global { buffer, at } = place {
            self.claims.push(Claim {
                buffer,
                at,
                bytes,
                access,
            });
        }
    }

    pub(crate) fn unclaim(&mut self, place: Place, bytes: usize, access: AccessKind) {
        if let Place::Global { buffer, at } = place {
            let claim = Claim {
                buffer,
                at,
                bytes,
                access,
            };
            if let Some(index) = self.claims.iter().position(|other| *other == claim) {
                self.claims.swap_remove(index);
            }
        }
    }

    pub(crate) fn claimed_by_copy(&self, place: Place, bytes: usize) -> Result<(), Fault> {
        match place {
            Place::Global { buffer, at } => self.claimed(buffer, at, bytes, AccessKind::Write),
            _ => Ok(()),
        }
    }
}
