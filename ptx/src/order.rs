//! The order of accesses, and the check of each access against it.

use crate::alu::{LANES, lanes};
use crate::block::Block;
use crate::clock::{Arrivals, Presence, Promise, Published, View, Witness, learn};
use crate::error::{Fault, FaultKind};
use crate::launch::Launch;
use crate::op::{Access, AccessKind, CopyKind, Scope, Strength};
use crate::place::Place;
use crate::race::{Actor, Agent, Conflict, Release, Stamp};
use crate::shadow::Shadow;

/// A kind of access.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Touch<'a> {
    Read(&'a Access),
    Write(&'a Access),
    /// Both at once.
    Update(&'a Access),
}

impl<'a> Touch<'a> {
    pub(crate) fn access(self) -> &'a Access {
        let (Touch::Read(access) | Touch::Write(access) | Touch::Update(access)) = self;
        access
    }

    pub(crate) fn kind(self) -> AccessKind {
        match self {
            Touch::Read(_) => AccessKind::Read,
            Touch::Write(_) | Touch::Update(_) => AccessKind::Write,
        }
    }
}

/// A copy that a barrier object counts: the agent that stands for it, and the knowledge of the thread that issued it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copier<'a> {
    pub(crate) agent: Agent,
    pub(crate) witness: &'a Witness,
}

/// Checks an access against earlier ones, and keeps it.
#[inline(always)]
pub(crate) fn access_shadow(
    shadow: &mut Shadow,
    pieces: std::ops::Range<usize>,
    actor: &Actor,
    touch: Touch,
) -> Result<(), (Conflict, FaultKind)> {
    let result = match touch {
        Touch::Read(access) => {
            if access.constant
                && let Some(before) = shadow.written(pieces.clone())
            {
                let kind = AccessKind::Write;
                return Err((Conflict { before, kind }, FaultKind::ReadOnly));
            }
            match actor.strength {
                Strength::Weak => shadow.read_by_one(pieces, actor),
                Strength::Strong => shadow.read(pieces, actor),
            }
        }
        _ if actor.strength == Strength::Weak => shadow.write_by_one(pieces, actor),
        _ => shadow.write(pieces, actor),
    };
    result.map_err(|conflict| (conflict, FaultKind::Race))
}

/// The state that a lane keeps for fences.
#[derive(Debug, Default)]
pub(crate) struct Ties {
    /// The knowledge that its strong writes publish since a fence, and the scope.
    fence: Option<(Promise, Scope)>,
    /// The knowledge that its strong reads found, which a fence adds to its own.
    pending: Option<Published>,
}

/// The knowledge that lanes of a warp learned last.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    news: Option<Published>,
    lanes: u32,
}

impl Seen {
    /// The lanes of a mask that have not learned this; from now on they have.
    fn unaware(&mut self, mask: u32, news: &Published) -> u32 {
        match &self.news {
            Some(last) if last.same(news) => {}
            _ => {
                *self = Seen {
                    news: Some(news.clone()),
                    lanes: 0,
                }
            }
        }
        let unaware = mask & !self.lanes;
        self.lanes |= mask;
        unaware
    }
}

impl Launch<'_> {
    pub(crate) fn actor<'b>(
        &self,
        block: &'b Block,
        warp: usize,
        place: Place,
        strength: Strength,
    ) -> Actor<'b> {
        let (state, lane) = (&block.warps[warp], self.at.lane);
        let view = &state.views[lane as usize];
        let (warp, time, pc) = (warp as u32, state.clock, self.at.pc);
        Actor {
            block: block.index,
            warp,
            lane,
            time,
            pc,
            strength,
            near: !matches!(place, Place::Global { .. }),
            view,
            floor: view.floor(),
            agents: self.shape.warps,
            issuer: None,
        }
    }

    pub(crate) fn pieces(&self, at: usize, bytes: usize) -> std::ops::Range<usize> {
        at >> self.piece..(at + bytes).div_ceil(1 << self.piece)
    }

    /// Checks an access of a lane against earlier ones, and keeps it.
    pub(crate) fn touch(
        &mut self,
        block: &mut Block,
        warp: usize,
        place: Place,
        bytes: usize,
        touch: Touch,
    ) -> Result<(), Fault> {
        if !self.options.races {
            return Ok(());
        }
        let at = match place {
            Place::Global { buffer, .. } if self.memory.buffers[buffer].constant => return Ok(()),
            Place::Global { at, .. } | Place::Shared(at) | Place::Peer { at, .. } => at,
            Place::Local(_) | Place::Param(_) => return Ok(()),
        };
        let access = touch.access();
        let strength = access.order.strength();
        let pieces = self.pieces(at, bytes);
        // The shadow leaves its place while the block's views are read.
        let mut shadow = self.shadow(block, place)?.take().unwrap_or_default();
        let actor = self.actor(block, warp, place, strength);
        let result = access_shadow(&mut shadow, pieces.clone(), &actor, touch);
        if strength == Strength::Strong && result.is_ok() {
            self.tie(block, warp, &mut shadow, pieces.start, touch);
        }
        *self.shadow(block, place)? = Some(shadow);
        result.map_err(|(conflict, fault)| self.conflict(conflict, fault, touch.kind()))
    }

    /// Lanes read published knowledge, and have it at once or after a fence.
    pub(crate) fn hear(
        &mut self,
        block: &mut Block,
        warp: usize,
        mask: u32,
        release: &Release,
        access: &Access,
    ) {
        let near = release.published.block == block.index;
        let wide = release.scope == Scope::Device && access.scope == Scope::Device;
        if !near && !wide {
            return;
        }
        let news = &release.published;
        if access.order.acquires() {
            self.learn(block, warp, mask, news);
            return;
        }
        // The knowledge that lanes had heard before, and the joined one.
        let mut last: Option<(Published, Published)> = None;
        for lane in lanes(mask) {
            let pending = &mut block.warps[warp].ties[lane].pending;
            if let Some(old) = pending
                && old.same(news)
            {
                continue;
            }
            let all = match pending.take() {
                Some(old) => {
                    let known = last.take().filter(|(before, _)| before.same(&old));
                    let (_, all) = last.insert(known.unwrap_or_else(|| {
                        let all = old.join(news);
                        (old, all)
                    }));
                    all.clone()
                }
                None => news.clone(),
            };
            *pending = Some(all);
        }
    }

    pub(crate) fn shadow<'b>(
        &'b mut self,
        block: &'b mut Block,
        place: Place,
    ) -> Result<&'b mut Option<Box<Shadow>>, Fault> {
        Ok(match place {
            Place::Global { buffer, .. } => &mut self.shadows[buffer],
            Place::Peer { rank, .. } => &mut self.peer(rank)?.shared.shadow,
            _ => &mut block.shared.shadow,
        })
    }

    /// The fault of an access that conflicts with one before it.
    pub(crate) fn conflict(&self, conflict: Conflict, fault: FaultKind, kind: AccessKind) -> Fault {
        let Stamp { block, lanes, .. } = conflict.before;
        let line = self
            .entry
            .code
            .get(conflict.before.pc() as usize)
            .map_or(0, |inst| inst.line);
        let text = self.entry.line_text(line);
        let writer = if conflict.before.warp() == self.shape.warps {
            format!(
                "an asynchronous copy of block {:?}",
                self.shape.block_id(block)
            )
        } else {
            let thread = conflict.before.warp() * LANES as u32 + lanes.trailing_zeros();
            let (thread, block) = (self.shape.thread(thread), self.shape.block_id(block));
            format!("thread {thread:?} of block {block:?}")
        };
        let (this, that) = (kind.verb(), conflict.kind.verb());
        let message = match fault {
            FaultKind::ReadOnly => {
                format!(
                    "a read through the read-only path of a value that {writer} writes at line {line} `{text}`"
                )
            }
            FaultKind::ProxyFence => {
                format!(
                    "no `fence.proxy.async` lies between this copy and the write by {writer} at line {line} `{text}`"
                )
            }
            _ => format!(
                "nothing orders this {this} and the {that} by {writer} at line {line} `{text}`"
            ),
        };
        Fault::new(fault, message)
    }

    /// Publishes and learns by a strong access.
    fn tie(
        &mut self,
        block: &mut Block,
        warp: usize,
        shadow: &mut Shadow,
        piece: usize,
        touch: Touch,
    ) {
        let access = touch.access();
        let lane = self.at.lane as usize;
        if let (false, Some(release)) = (matches!(touch, Touch::Write(_)), shadow.release(piece)) {
            self.hear(block, warp, 1 << lane, release, access);
        }
        if matches!(touch, Touch::Read(_)) {
            return;
        }
        let published = if access.order.releases() {
            Some((self.publish(block, warp, lane), access.scope))
        } else {
            let fence = block.warps[warp].ties[lane].fence.as_mut();
            fence.map(|(promise, scope)| (promise.published(block.index), *scope))
        };
        let release = published.map(|(published, scope)| {
            let narrow = scope == Scope::Block || access.scope == Scope::Block;
            Release {
                published,
                scope: if narrow { Scope::Block } else { Scope::Device },
            }
        });
        if matches!(touch, Touch::Update(_)) {
            shadow.add_release(piece, release);
        } else {
            shadow.set_release(piece, release);
        }
    }

    /// The knowledge of a lane with its own accesses; its later accesses are not part of it.
    fn publish(&mut self, block: &mut Block, warp: usize, lane: usize) -> Published {
        let published = block.witness(warp, lane).published(block.index);
        self.tick(block, warp);
        published
    }

    /// Lanes learn published knowledge.
    pub(crate) fn learn(&mut self, block: &mut Block, warp: usize, mask: u32, news: &Published) {
        if !self.options.races {
            return;
        }
        let index = block.index;
        let state = &mut block.warps[warp];
        // The knowledge of the lane before, and the learned one.
        let mut last: Option<(View, View)> = None;
        for lane in lanes(state.seen.unaware(mask, news)) {
            let view = &mut state.views[lane];
            if let Some((before, after)) = &last
                && before.same(view)
            {
                *view = after.clone();
                continue;
            }
            let known = learn(index, view, news);
            last = Some((std::mem::replace(view, known.clone()), known));
        }
    }

    /// Lanes arrive where others wait for them, and publish their accesses; the warp's time is to grow after that.
    pub(crate) fn arrive(
        &mut self,
        block: &mut Block,
        warp: usize,
        mask: u32,
        arrivals: &mut Arrivals,
    ) {
        if !self.options.races {
            return;
        }
        let state = &mut block.warps[warp];
        let presence = Presence {
            warp: warp as u32,
            lanes: mask,
            time: state.clock,
        };
        arrivals.add(presence, &state.views);
    }

    /// Later accesses of a warp are no part of what its threads have published.
    pub(crate) fn tick(&self, block: &mut Block, warp: usize) {
        block.warps[warp].clock += 1;
    }

    /// The joined knowledge of the lanes that arrived.
    pub(crate) fn meet(&mut self, block: &Block, arrivals: &Arrivals) -> Option<Published> {
        arrivals.meet(block.index).map(|view| Published {
            block: block.index,
            view,
        })
    }

    /// Orders earlier accesses of lanes before their later ones, through strong accesses on either side.
    pub(crate) fn fence(&mut self, block: &mut Block, warp: usize, scope: Scope) {
        if !self.options.races {
            return;
        }
        let index = block.index;
        let near = |news: &mut Published| scope == Scope::Device || news.block == index;
        // Lanes that have heard the same learn it together.
        let mut heard: Option<(Published, u32)> = None;
        for lane in lanes(self.at.active) {
            let Some(news) = block.warps[warp].ties[lane].pending.take_if(near) else {
                continue;
            };
            match &mut heard {
                Some((before, mask)) if before.same(&news) => *mask |= 1 << lane,
                _ => {
                    if let Some((before, mask)) = heard.replace((news, 1 << lane)) {
                        self.learn(block, warp, mask, &before);
                    }
                }
            }
        }
        if let Some((news, mask)) = heard {
            self.learn(block, warp, mask, &news);
        }
        for lane in lanes(self.at.active) {
            let promise = Promise::new(block.witness(warp, lane));
            block.warps[warp].ties[lane].fence = Some((promise, scope));
        }
        self.tick(block, warp);
    }

    /// The knowledge of a lane with its own accesses, for a copy that it issues; the warp's time is to grow after that.
    pub(crate) fn known(&self, block: &Block, warp: usize) -> Option<Witness> {
        if !self.options.races {
            return None;
        }
        Some(block.witness(warp, self.at.lane as usize))
    }

    /// Makes the accesses and the knowledge of the active lanes visible to copies in bulk.
    pub(crate) fn fence_proxy(&mut self, block: &mut Block, warp: usize) {
        if !self.options.races {
            return;
        }
        for lane in lanes(self.at.active) {
            let published = self.publish(block, warp, lane);
            block.warps[warp].views[lane].fence_proxy(&published);
        }
    }

    /// Checks, when a copy is issued, that all uses of the memory that it will write are known to have finished, and
    /// that a copy in bulk sees the writes of threads.
    pub(crate) fn check_copy(
        &mut self,
        block: &mut Block,
        warp: usize,
        place: Place,
        bytes: usize,
        kind: AccessKind,
        copy: CopyKind,
    ) -> Result<(), Fault> {
        let (Place::Global { at, .. } | Place::Shared(at)) = place else {
            return Ok(());
        };
        if !self.options.races {
            return Ok(());
        }
        let pieces = self.pieces(at, bytes);
        let mut shadow = self.shadow(block, place)?.take().unwrap_or_default();
        let actor = self.actor(block, warp, place, Strength::Weak);
        let mut result = Ok(());
        if kind == AccessKind::Write {
            result = shadow.check_by_one(pieces.clone(), &actor);
        }
        let mut result = result.map_err(|conflict| (conflict, FaultKind::Race));
        if copy == CopyKind::Bulk && result.is_ok() {
            let seen = shadow.check_proxy(pieces, &actor, self.shape.warps);
            result = seen.map_err(|conflict| (conflict, FaultKind::ProxyFence));
        }
        *self.shadow(block, place)? = Some(shadow);
        result.map_err(|(conflict, fault)| self.conflict(conflict, fault, kind))
    }

    /// An access by a copy that a barrier object counts.
    pub(crate) fn touch_by_copy(
        &mut self,
        block: &mut Block,
        copier: Copier<'_>,
        place: Place,
        bytes: usize,
        kind: AccessKind,
    ) -> Result<(), Fault> {
        let (Place::Global { at, .. } | Place::Shared(at)) = place else {
            return Ok(());
        };
        let mut shadow = self.shadow(block, place)?.take().unwrap_or_default();
        let actor = Actor {
            block: block.index,
            warp: self.shape.warps,
            lane: copier.agent.lane,
            time: copier.agent.time,
            pc: self.at.pc,
            strength: Strength::Weak,
            near: !matches!(place, Place::Global { .. }),
            view: &copier.witness.view,
            floor: copier.witness.view.floor(),
            agents: self.shape.warps,
            issuer: Some(copier.witness.own),
        };
        let pieces = self.pieces(at, bytes);
        let result = match kind {
            AccessKind::Read => shadow.read_by_one(pieces, &actor),
            AccessKind::Write => shadow.write_by_one(pieces, &actor),
        };
        *self.shadow(block, place)? = Some(shadow);
        result.map_err(|conflict| self.conflict(conflict, FaultKind::Race, kind))
    }
}
