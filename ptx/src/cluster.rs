//! Clusters: blocks that run side by side, meet at a barrier of their own and see each other's shared memory.
//!
//! While a block runs, its cluster's other blocks lend the parts that it can see of them.

use crate::alu::lanes;
use crate::block::{Block, Shared};
use crate::clock::{Arrivals, Published, View, learn};
use crate::copies::Transfers;
use crate::error::{Fault, FaultKind};
use crate::exec::Flow;
use crate::launch::Launch;
use crate::memory::SHARED_BASE;
use crate::object::{OBJECT_BYTES, bad};
use crate::op::{Access, AccessKind, Inst, Order, Space, Strength, WarpAlignment};
use crate::place::Place;
use crate::race::Actor;

/// The part of a block that the others of its cluster see.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) index: u32,
    pub(crate) shared: Shared,
    pub(crate) transfers: Transfers,
}

/// The barrier of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    /// Threads that have not ended, and the ones of them that have arrived.
    live: u32,
    arrived: u32,
    phase: u32,
    /// By block.
    arrivals: Vec<(u32, Arrivals)>,
    /// The knowledge of all threads that arrived last time.
    done: Option<Published>,
}

/// A store to shared memory that a barrier object counts.
struct CountedStore<'a> {
    at: usize,
    object: usize,
    data: &'a [u8],
}

/// Addresses of another block's shared memory have its rank and 1 above this bit.
const RANK: u32 = 24;

fn ended() -> Fault {
    let message = "shared memory of a block of the cluster that has ended";
    Fault::new(FaultKind::OutOfBounds, message)
}

impl Launch<'_> {
    /// A cluster is about to start.
    pub(crate) fn begin_cluster(&mut self, cluster: u32) {
        let live = self.shape.threads * self.shape.cluster;
        let gathering = Gathering {
            live,
            ..Gathering::default()
        };
        self.clusters.insert(cluster, gathering);
    }

    /// The cluster's other blocks lend a block the parts that it sees of them.
    pub(crate) fn lend(&mut self, blocks: &mut [Block], index: usize) {
        let count = self.shape.cluster;
        if count == 1 {
            return;
        }
        self.peers = (0..count).map(|_| None).collect();
        let own = blocks[index].index;
        for block in blocks.iter_mut() {
            if block.index != own && block.index / count == own / count {
                self.peers[(block.index % count) as usize] = Some(Peer {
                    index: block.index,
                    shared: std::mem::take(&mut block.shared),
                    transfers: std::mem::take(&mut block.transfers),
                });
            }
        }
    }

    pub(crate) fn take_back(&mut self, blocks: &mut [Block]) {
        for peer in self.peers.drain(..).flatten() {
            if let Some(block) = blocks.iter_mut().find(|block| block.index == peer.index) {
                (block.shared, block.transfers) = (peer.shared, peer.transfers);
            }
        }
    }

    pub(crate) fn peer(&mut self, rank: usize) -> Result<&mut Peer, Fault> {
        let peer = self.peers.get_mut(rank).and_then(Option::as_mut);
        peer.ok_or_else(ended)
    }

    pub(crate) fn peer_of(&self, rank: usize) -> Result<&Peer, Fault> {
        let peer = self.peers.get(rank).and_then(Option::as_ref);
        peer.ok_or_else(ended)
    }

    /// Where an address of the cluster's shared memory lies.
    pub(crate) fn resolve_in_cluster(
        &mut self,
        block: &Block,
        address: u64,
        bytes: usize,
    ) -> Result<Place, Fault> {
        let (tag, within) = (address >> RANK, address & ((1 << RANK) - 1));
        let own = u64::from(block.index % self.shape.cluster);
        let place = self
            .resolve(block, Space::Shared, within, bytes)
            .map_err(|fault| fault.at(address))?;
        let Place::Shared(at) = place else {
            return Ok(place);
        };
        if tag == 0 || tag == own + 1 {
            return Ok(place);
        }
        let rank = (tag - 1) as usize;
        self.peer(rank).map_err(|fault| fault.at(address))?;
        Ok(Place::Peer { rank, at })
    }

    /// Addresses in the shared memory of a block of the cluster.
    pub(crate) fn map_rank(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
    ) -> Result<Flow, Fault> {
        for lane in lanes(self.at.active) {
            self.at.lane = lane as u32;
            let rows = &mut block.warps[warp].rows;
            let address = rows[inst.src[0] as usize][lane];
            let rank = rows[inst.src[1] as usize][lane];
            if rank >= u64::from(self.shape.cluster) {
                let message = format!("rank {rank} of {} blocks", self.shape.cluster);
                return Err(Fault::new(FaultKind::OutOfBounds, message));
            }
            if !(SHARED_BASE..1 << RANK).contains(&address) {
                let message = "this is no address of shared memory";
                return Err(Fault::new(FaultKind::OutOfBounds, message).at(address));
            }
            rows[inst.dst as usize][lane] = address | (rank + 1) << RANK;
        }
        Ok(Flow::Next)
    }

    /// Whether all lanes of a warp that have not ended are here, where they have to be.
    fn whole_warp(
        &self,
        block: &Block,
        warp: usize,
        alignment: WarpAlignment,
    ) -> Result<(), Fault> {
        let state = &block.warps[warp];
        let whole = self.at.active == state.lanes & !state.exited;
        if whole || alignment == WarpAlignment::Unaligned {
            return Ok(());
        }
        let message = "not all lanes of the warp are here";
        Err(Fault::new(FaultKind::DivergentBarrier, message))
    }

    /// Lanes arrive at the barrier of their cluster.
    pub(crate) fn cluster_arrive(
        &mut self,
        block: &mut Block,
        warp: usize,
        alignment: WarpAlignment,
        order: Order,
    ) -> Result<Flow, Fault> {
        self.whole_warp(block, warp, alignment)?;
        let active = self.at.active;
        let cluster = block.index / self.shape.cluster;
        let mut gathering = self.clusters.remove(&cluster).unwrap_or_default();
        let state = &mut block.warps[warp];
        if state.arrived & active != 0 {
            self.at.lane = (state.arrived & active).trailing_zeros();
            return Err(bad("the lane has arrived before and not waited"));
        }
        state.arrived |= active;
        lanes(active).for_each(|lane| state.phases[lane] = gathering.phase);
        gathering.arrived += active.count_ones();
        if order.releases() {
            let known = gathering.arrivals.iter_mut();
            let mut known = known.filter(|(index, _)| *index == block.index);
            let mut new = (block.index, Arrivals::default());
            match known.next() {
                Some((_, arrivals)) => self.arrive(block, warp, active, arrivals),
                None => {
                    self.arrive(block, warp, active, &mut new.1);
                    gathering.arrivals.push(new);
                }
            }
            self.tick(block, warp);
        }
        self.gather(&mut gathering);
        self.clusters.insert(cluster, gathering);
        Ok(Flow::Next)
    }

    /// Opens the barrier if all have arrived.
    fn gather(&mut self, gathering: &mut Gathering) {
        if gathering.arrived == 0 || gathering.arrived < gathering.live {
            return;
        }
        let all = std::mem::take(&mut gathering.arrivals).into_iter();
        let all = all.filter_map(|(block, arrivals)| {
            let view = arrivals.meet(block)?;
            Some(Published { block, view })
        });
        gathering.done = all.reduce(|one, other| one.join(&other));
        gathering.arrived = 0;
        gathering.phase += 1;
        self.counts.barriers += 1;
        self.progress = true;
    }

    /// Lanes wait until all threads of their cluster have arrived.
    pub(crate) fn cluster_wait(
        &mut self,
        block: &mut Block,
        warp: usize,
        alignment: WarpAlignment,
    ) -> Result<Flow, Fault> {
        self.whole_warp(block, warp, alignment)?;
        let active = self.at.active;
        let state = &mut block.warps[warp];
        if state.arrived & active != active {
            self.at.lane = (active & !state.arrived).trailing_zeros();
            return Err(bad("the lane waits, but has not arrived"));
        }
        let cluster = block.index / self.shape.cluster;
        let Some(gathering) = self.clusters.get(&cluster) else {
            return Ok(Flow::Next);
        };
        if lanes(active).any(|lane| state.phases[lane] == gathering.phase) {
            return Ok(Flow::Again);
        }
        state.arrived &= !active;
        if let Some(done) = gathering.done.clone() {
            self.learn(block, warp, active, &done);
        }
        Ok(Flow::Next)
    }

    /// Threads have ended: others of the cluster do not wait for them.
    pub(crate) fn cluster_left(&mut self, block: &Block, mask: u32) {
        let cluster = block.index / self.shape.cluster;
        if let Some(mut gathering) = self.clusters.remove(&cluster) {
            gathering.live -= mask.count_ones();
            self.gather(&mut gathering);
            if gathering.live > 0 {
                self.clusters.insert(cluster, gathering);
            }
        }
    }

    /// Stores that a barrier object beside the destination counts: threads that see its phase completed see them.
    pub(crate) fn store_async(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
        access: &Access,
    ) -> Result<Flow, Fault> {
        let bytes = access.ty.bytes() as usize;
        for lane in lanes(self.at.active) {
            self.at.lane = lane as u32;
            let [to, object] = [0, 2].map(|operand| self.address(block, warp, inst, operand));
            self.aligned(to, bytes)?;
            self.aligned(object, OBJECT_BYTES)?;
            let place = self.resolve(block, Space::Cluster, to, bytes)?;
            let counter = self.resolve(block, Space::Cluster, object, OBJECT_BYTES)?;
            let value = block.warps[warp].rows[inst.src[1] as usize][lane].to_le_bytes();
            let known = self.known(block, warp);
            let known = known.map(|witness| witness.published(block.index));
            self.tick(block, warp);
            let data = &value[..bytes];
            match (place, counter) {
                (Place::Shared(at), Place::Shared(object)) => {
                    let store = CountedStore { at, object, data };
                    let (index, shared) = (block.index, &mut block.shared);
                    self.arrives(index, shared, &mut block.transfers, store, known)
                }
                (
                    Place::Peer { rank, at },
                    Place::Peer {
                        rank: near,
                        at: object,
                    },
                ) if rank == near => {
                    let Some(mut peer) = self.peers[rank].take() else {
                        return Err(ended());
                    };
                    let store = CountedStore { at, object, data };
                    let Peer {
                        index,
                        shared,
                        transfers,
                    } = &mut peer;
                    let result = self.arrives(*index, shared, transfers, store, known);
                    self.peers[rank] = Some(peer);
                    result
                }
                _ => Err(bad("the barrier object lies in another block")),
            }
            .map_err(|fault| fault.at(to))?;
        }
        Ok(Flow::Next)
    }

    fn arrives(
        &mut self,
        block: u32,
        shared: &mut Shared,
        transfers: &mut Transfers,
        CountedStore { at, object, data }: CountedStore<'_>,
        known: Option<Published>,
    ) -> Result<(), Fault> {
        let counter = transfers.objects.get(object);
        let counter = counter.ok_or_else(|| bad("there is no barrier object here"))?;
        if let Some(known) = known {
            let view = learn(block, &View::new(self.shape.warps).in_cluster(), &known);
            let actor = |strength| Actor {
                block,
                warp: self.shape.warps,
                lane: counter.agent.lane,
                time: counter.agent.time,
                pc: self.at.pc,
                strength,
                near: true,
                view: &view,
                floor: view.floor(),
                agents: self.shape.warps,
                issuer: None,
            };
            let race = |conflict, kind: AccessKind| self.conflict(conflict, FaultKind::Race, kind);
            let counts = self.pieces(object, OBJECT_BYTES);
            let seen = shared
                .shadow
                .get_or_insert_default()
                .read(counts, &actor(Strength::Strong));
            seen.map_err(|conflict| race(conflict, AccessKind::Read))?;
            let stored = self.pieces(at, data.len());
            let written = shared
                .shadow
                .get_or_insert_default()
                .write(stored, &actor(Strength::Weak));
            written.map_err(|conflict| race(conflict, AccessKind::Write))?;
        }
        shared.put(at, data)?;
        self.counts.copies += 1;
        self.counts.copied_in += data.len() as u64;
        let Some(mut counter) = transfers.objects.take(object) else {
            return Ok(());
        };
        counter.bytes -= data.len() as i64;
        self.complete(block, transfers, &mut counter);
        transfers.objects.put(object, counter);
        self.progress = true;
        Ok(())
    }
}
