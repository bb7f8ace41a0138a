//! Accesses of all active lanes of a warp at once, checked against earlier accesses.

use crate::alu::{LANES, lanes};
use crate::block::Block;
use crate::cells::Kept;
use crate::clock::NO_FLOORS;
use crate::error::{Fault, FaultKind};
use crate::launch::Launch;
use crate::op::{Access, Strength};
use crate::order::{Touch, access_shadow};
use crate::place::{Place, Region};
use crate::race::{Conflict, Crew, Release, Run, Views};
use crate::shadow::Shadow;

impl Launch<'_> {
    /// Checks a weak access of all active lanes to one region against earlier accesses, and keeps it.
    #[inline(always)]
    pub(crate) fn touch_together(
        &mut self,
        block: &mut Block,
        warp: usize,
        region: &Region,
        touch: Touch,
    ) -> Result<(), Fault> {
        let is_constant = match region.place {
            Place::Global { buffer, .. } => self.memory.buffers[buffer].constant,
            Place::Shared(_) => false,
            _ => true,
        };
        if !self.options.races || is_constant {
            return Ok(());
        }
        let mut shadow = self.shadow(block, region.place)?.take().unwrap_or_default();
        let crew = self.crew(block, warp, region.place, Strength::Weak);
        let found = self.touch_region(&mut shadow, &crew, region, touch);
        *self.shadow(block, region.place)? = Some(shadow);
        let Err((lane, (conflict, fault))) = found else {
            return Ok(());
        };
        self.at.lane = lane as u32;
        let fault = self.conflict(conflict, fault, touch.kind());
        Err(fault.at(region.address(lane)))
    }

    /// Checks accesses of a crew, and keeps them; the lane that one of another thread conflicts with, if there is one.
    #[inline(always)]
    fn touch_region(
        &self,
        shadow: &mut Shadow,
        crew: &Crew,
        region: &Region,
        touch: Touch,
    ) -> Result<(), (usize, (Conflict, FaultKind))> {
        // No thread may write memory that is read as constant.
        let kept = match touch {
            Touch::Read(access) if access.constant => Kept::Unwritten,
            _ => Kept::Known,
        };
        let bytes = region.bytes as usize;
        if region.alike && matches!(touch, Touch::Read(_)) {
            let pieces = self.pieces(region.offsets[crew.actor.lane as usize] as usize, bytes);
            if shadow.read_by_all(pieces, crew, region.active, kept) {
                return Ok(());
            }
        }
        for run in region.runs() {
            let run = Run {
                pieces: self.pieces(run.at, run.lanes * bytes),
                lane: run.lane,
                each: bytes.trailing_zeros() - self.piece,
            };
            let left = |shadow: &mut Shadow, piece: usize| {
                let lane = run.lane(piece);
                let actor = crew.actor(lane);
                access_shadow(shadow, piece..piece + 1, &actor, touch)
                    .map_err(|conflict| (lane, conflict))
            };
            match touch {
                Touch::Read(_) => shadow.read_run(&run, crew, kept, left)?,
                _ => shadow.write_run(&run, crew, left)?,
            }
        }
        Ok(())
    }

    /// The active lanes, as race detection sees them.
    #[inline(always)]
    fn crew<'b>(
        &mut self,
        block: &'b Block,
        warp: usize,
        place: Place,
        strength: Strength,
    ) -> Crew<'b> {
        let (state, active) = (&block.warps[warp], self.at.active);
        self.at.lane = active.trailing_zeros() % LANES as u32;
        let actor = self.actor(block, warp, place, strength);
        let others = state.views.iter().enumerate();
        let others = others.fold(0, |others, (lane, view)| {
            others | u32::from(!view.is(actor.view)) << lane
        });
        let (views, floors) = match others & active {
            0 => (Views::One(actor.view), actor.view.floors()),
            _ => (Views::Each(&state.views), &NO_FLOORS),
        };
        Crew {
            actor,
            views,
            floors,
        }
    }

    /// Whether strong reads of a place of the block's shared memory by all active lanes are known to be in order, and
    /// find no published knowledge.
    pub(crate) fn may_touch(
        &mut self,
        block: &Block,
        warp: usize,
        at: usize,
        bytes: usize,
    ) -> bool {
        if !self.options.races {
            return true;
        }
        let Some(shadow) = &block.shared.shadow else {
            return false;
        };
        let crew = self.crew(block, warp, Place::Shared(at), Strength::Strong);
        let pieces = self.pieces(at, bytes);
        shadow.may_read(pieces.clone(), &crew) && shadow.release(pieces.start).is_none()
    }

    /// Strong reads of a region by all active lanes, if they are in order at once; whether they were.
    pub(crate) fn touch_strongly(
        &mut self,
        block: &mut Block,
        warp: usize,
        region: &Region,
        access: &Access,
    ) -> bool {
        let is_constant = match region.place {
            Place::Global { buffer, .. } => self.memory.buffers[buffer].constant,
            _ => false,
        };
        if !self.options.races || is_constant {
            return true;
        }
        let Ok(shadow) = self.shadow(block, region.place) else {
            return false;
        };
        let shadow = shadow.take().unwrap_or_default();
        let crew = self.crew(block, warp, region.place, Strength::Strong);
        let mut may_read = true;
        for span in region.spans() {
            may_read &= shadow.may_read(self.pieces(span.start, span.len()), &crew);
        }
        if may_read {
            self.hear_all(block, warp, &shadow, region, access);
        }
        if let Ok(own) = self.shadow(block, region.place) {
            *own = Some(shadow);
        }
        may_read
    }

    /// The active lanes hear what strong writes to a region have published, lanes that hear the same together.
    fn hear_all(
        &mut self,
        block: &mut Block,
        warp: usize,
        shadow: &Shadow,
        region: &Region,
        access: &Access,
    ) {
        let piece = self.piece;
        let place = |lane: usize| region.offsets[lane] as usize >> piece;
        if region.alike {
            let first = region.active.trailing_zeros() as usize % LANES;
            if let Some(release) = shadow.release(place(first)) {
                self.hear(block, warp, region.active, release, access);
            }
            return;
        }
        let mut published: Option<(&Release, u32)> = None;
        for lane in lanes(region.active) {
            let Some(release) = shadow.release(place(lane)) else {
                continue;
            };
            match &mut published {
                Some((last, mask)) if last.same(release) => *mask |= 1 << lane,
                _ => {
                    if let Some((last, mask)) = published.replace((release, 1 << lane)) {
                        self.hear(block, warp, mask, last, access);
                    }
                }
            }
        }
        if let Some((last, mask)) = published {
            self.hear(block, warp, mask, last, access);
        }
    }
}
