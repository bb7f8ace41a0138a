//! Races.

use crate::access::Place;
use crate::block::Block;
use crate::error::Fault;
use crate::launch::Launch;
use crate::op::Access;

/// What a lane knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {}

/// Accesses.
#[derive(Debug, Default)]
pub(crate) struct Shadow {}

/// Threads that arrived somewhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {}

/// An access.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Touch<'a> {
    Read(&'a Access),
    Write(&'a Access),
    Update(&'a Access),
}

impl Launch<'_> {
    pub(crate) fn arrive(
        &mut self,
        _block: &mut Block,
        _warp: usize,
        _lanes: u32,
        _arrivals: &mut Arrivals,
    ) {
    }
    pub(crate) fn meet(&mut self, _block: &Block, _arrivals: &Arrivals) -> View {
        View {}
    }
    pub(crate) fn learn(&mut self, _block: &mut Block, _warp: usize, _lanes: u32, _view: &View) {}
    pub(crate) fn touch(
        &mut self,
        _block: &mut Block,
        _warp: usize,
        _place: Place,
        _bytes: usize,
        _touch: Touch,
    ) -> Result<(), Fault> {
        Ok(())
    }
    pub(crate) fn left(
        &mut self,
        _block: &mut Block,
        _warp: usize,
        _lanes: u32,
    ) -> Result<(), Fault> {
        Ok(())
    }
}
