//! Barrier objects in shared memory: they count arrivals and the bytes of bulk copies, phase after phase.

use crate::alu::{LANES, lanes};
use crate::block::{ARRIVING, Block, LEAVING, OBJECT};
use crate::clock::{Arrivals, Presence, Published, View, Witness, learn};
use crate::copies::Transfers;
use crate::error::{Fault, FaultKind};
use crate::exec::Flow;
use crate::launch::Launch;
use crate::op::{Access, ArriveScope, Inst, MBarrier, NONE, Order, Scope, Space, Ty};
use crate::order::Touch;
use crate::place::Place;
use crate::poll::Polled;
use crate::race::Agent;
use crate::transfer::pending;

/// Bytes of a barrier object.
pub(crate) const OBJECT_BYTES: usize = 8;
/// The largest count of arrivals and of bytes.
const MOST_PENDING: i64 = (1 << 20) - 1;

/// Accesses as race detection sees them: ordinary ones, and accesses of barrier objects.
pub(crate) const WEAK: Access = access(Order::Weak);
pub(crate) const STRONG: Access = access(Order::Relaxed);

const fn access(order: Order) -> Access {
    let (space, ty, scope, constant) = (Space::Shared, Ty::B64, Scope::Block, false);
    Access {
        space,
        ty,
        order,
        scope,
        constant,
        count: 1,
        list: 0,
        width: 64,
    }
}

/// A barrier object.
#[derive(Debug)]
pub(crate) struct Object {
    /// Arrivals that complete a phase, and arrivals that this one still needs.
    expected: i64,
    pending: i64,
    /// Bytes that are announced and have not arrived.
    pub(crate) bytes: i64,
    /// The number of the present phase.
    phase: u64,
    arrivals: Arrivals,
    /// The knowledge of threads that see a completed phase.
    done: Option<Published>,
    pub(crate) agent: Agent,
}

/// The barrier object of another block of the cluster.
#[derive(Clone, Copy)]
struct FarObject {
    rank: usize,
    at: usize,
}

/// Arrivals at a barrier object, and bytes that they announce.
#[derive(Clone, Copy)]
struct Arrival {
    count: i64,
    bytes: i64,
}

impl Arrival {
    /// The value of an operation is a number of bytes if it announces some, and a count otherwise.
    fn of(op: MBarrier, value: u64) -> Arrival {
        let value = value as i64;
        match op {
            MBarrier::ArriveExpect | MBarrier::ArriveAnywhere { expects: true, .. } => Arrival {
                count: 1,
                bytes: value,
            },
            _ => Arrival {
                count: value,
                bytes: 0,
            },
        }
    }
}

pub(crate) fn bad(message: impl Into<String>) -> Fault {
    Fault::new(FaultKind::BadBarrier, message)
}

impl Launch<'_> {
    /// An operation on barrier objects, lane by lane.
    pub(crate) fn barrier_object(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
        op: MBarrier,
    ) -> Result<Flow, Fault> {
        let mut flow = Flow::Next;
        if matches!(op, MBarrier::Test { .. })
            && let Some(open) = self.test_together(block, warp, inst, op)?
        {
            return Ok(if open { Flow::Next } else { Flow::Yield });
        }
        for lane in lanes(self.at.active) {
            self.at.lane = lane as u32;
            let address = self.address(block, warp, inst, 0);
            let value = match inst.src[1] {
                NONE => 0,
                slot => block.warps[warp].rows[slot as usize][lane],
            };
            let result = self
                .object_op(block, warp, address, op, value)
                .map_err(|fault| fault.at(address))?;
            if op == (MBarrier::Test { parity: true }) || op == (MBarrier::Test { parity: false }) {
                flow = if result == 0 { Flow::Yield } else { flow };
            }
            if inst.dst != NONE {
                block.warps[warp].rows[inst.dst as usize][lane] = result;
            }
        }
        let arrives = matches!(
            op,
            MBarrier::Arrive
                | MBarrier::ArriveAnywhere { .. }
                | MBarrier::ArriveExpect
                | MBarrier::ArriveDrop
        );
        if arrives {
            self.tick(block, warp);
        }
        Ok(flow)
    }

    /// An access of one object by all active lanes. Lanes that know the same find the same, but for the one that made
    /// the object itself: two lanes of each view are checked.
    pub(crate) fn touch_object(
        &mut self,
        block: &mut Block,
        warp: usize,
        at: usize,
    ) -> Result<(), Fault> {
        if self.may_touch(block, warp, at, OBJECT_BYTES) {
            return Ok(());
        }
        let (mut last, mut alike) = (None::<View>, 0);
        for lane in lanes(self.at.active) {
            let view = &block.warps[warp].views[lane];
            alike = match &last {
                Some(last) if last.same(view) => alike + 1,
                _ => 0,
            };
            if alike > 1 {
                continue;
            }
            if alike == 0 {
                last = Some(view.clone());
            }
            self.at.lane = lane as u32;
            let place = Place::Shared(at);
            self.touch(block, warp, place, OBJECT_BYTES, Touch::Read(&STRONG))?;
        }
        Ok(())
    }

    /// A test of one phase of one object by all active lanes; whether the phase is over.
    fn test_together(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
        op: MBarrier,
    ) -> Result<Option<bool>, Fault> {
        let active = self.at.active;
        let mut operands = inst.src[..2].iter().map(|slot| match *slot {
            NONE => None,
            slot => block.uniform(warp, slot, active),
        });
        let (Some(Some(base)), Some(Some(value))) = (operands.next(), operands.next()) else {
            return Ok(None);
        };
        let address = base.wrapping_add_signed(inst.imm[0]);
        self.aligned(address, OBJECT_BYTES)?;
        let Place::Shared(at) = self.resolve(block, Space::Shared, address, OBJECT_BYTES)? else {
            return Ok(None);
        };
        self.touch_object(block, warp, at)
            .map_err(|fault| fault.at(address))?;
        let object = block.transfers.objects.get(at);
        let object = object.ok_or_else(|| bad("there is no barrier object here").at(address))?;
        let phase = object.phase;
        let open = object.is_over(op, value);
        if let (true, Some(done)) = (open, object.done.clone()) {
            self.learn(block, warp, active, &done);
        }
        let state = &mut block.warps[warp];
        if inst.dst != NONE {
            let row = &mut state.rows[inst.dst as usize];
            lanes(active).for_each(|lane| row[lane] = u64::from(open));
        }
        if !open {
            let polled = Polled::Phase { at, phase };
            state.keep_poll(self.at.pc, std::iter::once(polled));
        }
        Ok(Some(open))
    }

    fn object_op(
        &mut self,
        block: &mut Block,
        warp: usize,
        address: u64,
        op: MBarrier,
        value: u64,
    ) -> Result<u64, Fault> {
        self.aligned(address, OBJECT_BYTES)?;
        let space = match op {
            MBarrier::ArriveAnywhere { .. } => Space::Cluster,
            _ => Space::Shared,
        };
        let place = self.resolve(block, space, address, OBJECT_BYTES)?;
        let at = match (place, op) {
            (Place::Shared(at), _) => at,
            (Place::Peer { rank, at }, MBarrier::ArriveAnywhere { scope, .. }) => {
                let object = FarObject { rank, at };
                return self.arrive_far(block, warp, object, Arrival::of(op, value), scope);
            }
            _ => return Err(bad("barrier objects lie in shared memory")),
        };
        if op == MBarrier::Init {
            self.touch(block, warp, place, OBJECT_BYTES, Touch::Write(&WEAK))?;
            return self.init_object(block, at, value as i64);
        }
        self.touch(block, warp, place, OBJECT_BYTES, Touch::Read(&STRONG))?;
        let mut object = block
            .transfers
            .objects
            .take(at)
            .ok_or_else(|| bad("there is no barrier object here"))?;
        let token = object.phase;
        let result = match op {
            MBarrier::Test { .. } => {
                let open = object.is_over(op, value);
                if let (true, Some(done)) = (open, &object.done) {
                    self.learn(block, warp, 1 << self.at.lane, done);
                }
                Ok(u64::from(open))
            }
            MBarrier::Invalidate => {
                self.touch(block, warp, place, OBJECT_BYTES, Touch::Write(&WEAK))?;
                block.shared.state[at..at + OBJECT_BYTES].fill(0);
                return Ok(0);
            }
            MBarrier::Expect => object.expect(value as i64).map(|()| token),
            _ => {
                let arrival = Arrival::of(op, value);
                let mut arrivals = std::mem::take(&mut object.arrivals);
                self.arrive(block, warp, 1 << self.at.lane, &mut arrivals);
                object.arrivals = arrivals;
                if op == MBarrier::ArriveDrop {
                    object.expected -= arrival.count;
                }
                object.receive(arrival).map(|()| token)
            }
        };
        self.complete(block.index, &mut block.transfers, &mut object);
        block.transfers.objects.put(at, object);
        result
    }

    /// A lane arrives at an object of another block. With the scope of a block, that orders shared memory alone.
    fn arrive_far(
        &mut self,
        block: &mut Block,
        warp: usize,
        FarObject { rank, at }: FarObject,
        arrival: Arrival,
        scope: ArriveScope,
    ) -> Result<u64, Fault> {
        let place = Place::Peer { rank, at };
        self.touch(block, warp, place, OBJECT_BYTES, Touch::Read(&STRONG))?;
        let known = self.known(block, warp);
        let known = known.map(|witness| witness.published(block.index));
        let warps = self.shape.warps;
        let peer = self.peer(rank)?;
        let (index, mut transfers) = (peer.index, std::mem::take(&mut peer.transfers));
        let object = transfers.objects.take(at);
        let mut object = object.ok_or_else(|| bad("there is no barrier object here"))?;
        if let Some(mut known) = known {
            if scope == ArriveScope::Cta {
                known.view = known.view.of_shared(warps);
            }
            let view = learn(index, &View::new(warps).in_cluster(), &known);
            object.arrivals.add_view(&view);
        }
        let token = object.phase;
        let result = object.receive(arrival).map(|()| token);
        self.complete(index, &mut transfers, &mut object);
        transfers.objects.put(at, object);
        self.peer(rank)?.transfers = transfers;
        result
    }

    fn init_object(&mut self, block: &mut Block, at: usize, count: i64) -> Result<u64, Fault> {
        if !(1..=MOST_PENDING).contains(&count) {
            return Err(bad(format!("{count} is no count of arrivals")));
        }
        if block
            .transfers
            .objects
            .places()
            .any(|other| other.abs_diff(at) < OBJECT_BYTES)
        {
            return Err(bad("there is a barrier object here already"));
        }
        let state = &mut block.shared.state[at..at + OBJECT_BYTES];
        if state
            .iter()
            .any(|state| *state & (ARRIVING | !(LEAVING - 1)) != 0)
        {
            return Err(pending(
                "a barrier object is made where an asynchronous copy is under way",
            ));
        }
        state.fill(OBJECT);
        let agent = Agent {
            lane: block.transfers.agents % LANES as u32,
            time: 1 + block.transfers.latest,
        };
        block.transfers.agents += 1;
        let arrivals = Arrivals::default();
        let (bytes, phase, done) = (0, 0, None);
        let object = Object {
            expected: count,
            pending: count,
            bytes,
            phase,
            arrivals,
            done,
            agent,
        };
        block.transfers.objects.put(at, Box::new(object));
        Ok(0)
    }

    /// Begins the next phase if all have arrived.
    pub(crate) fn complete(&mut self, block: u32, transfers: &mut Transfers, object: &mut Object) {
        if object.pending != 0 || object.bytes != 0 {
            return;
        }
        let mut arrivals = std::mem::take(&mut object.arrivals);
        let Agent { lane, time } = object.agent;
        arrivals.stamp(Presence {
            warp: self.shape.warps,
            lanes: 1 << lane,
            time,
        });
        transfers.latest = transfers.latest.max(time);
        object.agent.time += 1;
        object.phase += 1;
        object.pending = object.expected;
        let met = arrivals.meet(block).map(|view| Published { block, view });
        object.done = match (met, object.done.take()) {
            (Some(now), Some(before)) => Some(now.join(&before)),
            (now, before) => now.or(before),
        };
        self.counts.phases += 1;
        self.progress = true;
    }
}

impl Transfers {
    /// The present phase of the object at an offset of shared memory.
    pub(crate) fn phase(&self, at: usize) -> Option<u64> {
        self.objects.get(at).map(|object| object.phase)
    }
}

/// The barrier objects of a block. They leave their place while they change.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    /// Ascending by place.
    places: Vec<(usize, Option<Box<Object>>)>,
}

impl Objects {
    fn find(&self, at: usize) -> Result<usize, usize> {
        self.places.binary_search_by_key(&at, |(place, _)| *place)
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Object> {
        self.places[self.find(at).ok()?].1.as_deref()
    }

    pub(crate) fn take(&mut self, at: usize) -> Option<Box<Object>> {
        let index = self.find(at).ok()?;
        self.places[index].1.take()
    }

    pub(crate) fn put(&mut self, at: usize, object: Box<Object>) {
        match self.find(at) {
            Ok(index) => self.places[index].1 = Some(object),
            Err(index) => self.places.insert(index, (at, Some(object))),
        }
    }

    /// The places of all objects.
    fn places(&self) -> impl Iterator<Item = usize> {
        let objects = self.places.iter().filter(|(_, object)| object.is_some());
        objects.map(|(at, _)| *at)
    }
}

impl Object {
    /// Whether the phase that a test names is over: the last one of a parity, or that of a token.
    fn is_over(&self, test: MBarrier, value: u64) -> bool {
        match test {
            MBarrier::Test { parity: true } => self.phase & 1 != value & 1,
            _ => self.phase != value,
        }
    }

    fn expect(&mut self, bytes: i64) -> Result<(), Fault> {
        self.bytes += bytes;
        if self.bytes > MOST_PENDING {
            return Err(bad(format!(
                "{} bytes are expected, at most {MOST_PENDING} may be",
                self.bytes
            )));
        }
        Ok(())
    }

    fn receive(&mut self, arrival: Arrival) -> Result<(), Fault> {
        self.expect(arrival.bytes)?;
        self.arrive(arrival.count)
    }

    /// A thread arrives with its knowledge at the time when it asked for that.
    pub(crate) fn arrive_with(&mut self, witness: Option<&Witness>) -> Result<(), Fault> {
        if let Some(witness) = witness {
            self.arrivals.add_witness(witness);
        }
        self.arrive(1)
    }

    fn arrive(&mut self, count: i64) -> Result<(), Fault> {
        if count < 1 || count > self.pending {
            return Err(bad(format!(
                "{count} arrive, {} are awaited in this phase",
                self.pending
            )));
        }
        self.pending -= count;
        Ok(())
    }
}
