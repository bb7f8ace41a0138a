//! Reads of memory that was not written in a launch: they race with nothing, and are only kept, in order, for the
//! first write.

use crate::clock::{Presence, View};
use crate::race::{Actor, Crew, Run, Views};

/// Reads by lanes that know the same.
#[derive(Debug)]
pub(crate) struct Reads {
    run: Run,
    /// Lanes that read all of it; 0 if each reads its own pieces.
    mask: u32,
    view: View,
    block: u32,
    warp: u32,
    time: u32,
    pc: u32,
    near: bool,
    agents: u32,
    issuer: Option<Presence>,
}

impl Reads {
    /// Reads by the lanes of a run, or of all of it by the lanes of a mask.
    pub(crate) fn new(run: Run, mask: u32, actor: &Actor) -> Reads {
        Reads {
            run,
            mask,
            view: actor.view.clone(),
            block: actor.block,
            warp: actor.warp,
            time: actor.time,
            pc: actor.pc,
            near: actor.near,
            agents: actor.agents,
            issuer: actor.issuer,
        }
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    pub(crate) fn mask(&self) -> u32 {
        self.mask
    }

    /// The lanes that read.
    pub(crate) fn crew(&self) -> Crew<'_> {
        let view = &self.view;
        let actor = Actor {
            block: self.block,
            warp: self.warp,
            lane: self.run.lane as u32,
            time: self.time,
            pc: self.pc,
            strength: crate::op::Strength::Weak,
            near: self.near,
            view,
            floor: view.floor(),
            agents: self.agents,
            issuer: self.issuer,
        };
        Crew {
            actor,
            views: Views::One(view),
            floors: view.floors(),
        }
    }
}
