//! From slabs to operations.

use super::{BUFFERS, Slab, StatePlaces, buffers, queue_of, wide_enough};
use crate::lattice::Interval;
use crate::pipeline::list::List;
use crate::pipeline::{Action, Fault, NoLayout, Op, OpId, Queue, Window};

/// The planes or places that an operation uses.
#[derive(Clone, Copy, Debug)]
struct Use {
    range: Interval,
    id: OpId,
}

fn users(uses: &[Use], range: Interval) -> impl Iterator<Item = OpId> + '_ {
    let used = move |user: &&Use| !user.range.intersect(range).is_empty();
    uses.iter().filter(used).map(|user| user.id)
}

/// A plane of the host's array.
#[derive(Clone, Debug, Default)]
struct HostPlane {
    /// The operation that stored it last, and the operations that loaded it since.
    stored: Option<OpId>,
    loads: Vec<OpId>,
}

/// A slab whose base is not stored yet.
#[derive(Clone, Debug)]
struct Pending {
    number: u64,
    slab: Slab,
    /// By planes.
    loads: Vec<Use>,
    writers: Vec<Use>,
}

/// Makes the list of operations of slabs. Queues of loads, stores and time blocks belong to a device; its buffers share
/// them.
#[derive(Clone, Debug)]
pub struct SlabBuilder {
    window: Window,
    /// Planes of a load or a store, at most.
    piece: i64,
    list: List,
    slabs: u64,
    host: Vec<HostPlane>,
    /// Per buffer, by places: the operations of its slab, and of the one before.
    uses: Vec<Vec<Use>>,
    left: Vec<Vec<Use>>,
    /// Per buffer, the last run of each block of the slab before: towers of a buffer say in common memory how far they
    /// are.
    ended: Vec<Vec<OpId>>,
    /// Per buffer, the stores of the slab before.
    stored: Vec<Vec<OpId>>,
    states: StatePlaces,
    pending: Option<Pending>,
}

impl SlabBuilder {
    /// For the planes of an array, in buffers of `places` places of one device; copies have `piece` planes at most. No
    /// states lie beside planes.
    pub fn new(planes: Interval, places: i64, in_flight: usize, piece: i64) -> SlabBuilder {
        SlabBuilder::on(1, planes, places, in_flight, piece)
    }

    /// The same in buffers of several devices, which take slabs in turns.
    pub fn on(
        devices: usize,
        planes: Interval,
        places: i64,
        in_flight: usize,
        piece: i64,
    ) -> SlabBuilder {
        let devices = devices.max(1);
        let of_buffers = BUFFERS * devices;
        SlabBuilder {
            window: buffers(devices, planes, places, in_flight),
            piece: piece.max(1),
            list: List::new(devices * (2 + in_flight.max(1))),
            slabs: 0,
            host: vec![HostPlane::default(); planes.len().max(0) as usize],
            uses: vec![Vec::new(); of_buffers],
            left: vec![Vec::new(); of_buffers],
            ended: vec![Vec::new(); of_buffers],
            stored: vec![Vec::new(); of_buffers],
            states: StatePlaces::InPlanes,
            pending: None,
        }
    }

    /// The same with states at these places.
    pub fn with_states(self, states: StatePlaces) -> SlabBuilder {
        SlabBuilder { states, ..self }
    }

    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The number of the slab that begins next.
    pub fn slabs(&self) -> u64 {
        self.slabs
    }

    /// The first slab that may still be in flight when the next one begins. The host waits for all slabs before it.
    pub fn first_active(&self) -> u64 {
        self.window.first_active(self.slabs)
    }

    /// The plane number that lies at place 0 of the buffer of a slab.
    fn base(&self, number: u64, slab: &Slab) -> i64 {
        self.window.number(number, slab.held.lo)
    }

    fn push(
        &mut self,
        number: u64,
        slab: &Slab,
        action: Action,
        queue: Queue,
        needed: Vec<OpId>,
    ) -> Op {
        let index = queue_of(&self.window, number, queue);
        let (id, after) = self.list.add(number, index, needed);
        Op {
            id,
            pass: number,
            action,
            queue,
            after,
            base: self.base(number, slab),
        }
    }

    fn hosts(&mut self, planes: Interval) -> &mut [HostPlane] {
        let lowest = self.window.planes.lo;
        &mut self.host[(planes.lo - lowest) as usize..(planes.hi - lowest) as usize]
    }

    /// The places of planes of a slab.
    fn places(slab: &Slab, planes: Interval) -> Interval {
        Interval::new(planes.lo - slab.held.lo, planes.hi - slab.held.lo)
    }

    /// Planes in pieces, from high to low.
    fn pieces(&self, planes: Interval) -> Vec<Interval> {
        let count = (planes.len() - 1).div_euclid(self.piece) + 1;
        let hi = |n: i64| planes.hi - n * self.piece;
        let pieces = (0..count).map(|n| Interval::new(hi(n + 1).max(planes.lo), hi(n)));
        pieces.collect()
    }

    /// The operations of the next slab up to its last run, and the stores of the one before. Operations of slabs two
    /// turns before are over.
    pub fn begin(&mut self, slab: Slab) -> Result<Vec<Op>, NoLayout> {
        let places = self.window.places().unwrap_or(0);
        if slab.held.len() > places {
            let needed = slab.held.len();
            return Err(NoLayout::TooFewPlaces { needed, places });
        }
        let number = self.slabs;
        self.slabs += 1;
        self.list.end_before(self.window.first_active(number));
        let mut ops = Vec::new();
        // Planes that the one before stores in another pass are loaded afterwards.
        let follows = self.pending.as_ref().is_some_and(|before| {
            let common = before.slab.base.intersect(slab.loaded);
            before.slab.pass != slab.pass && !common.is_empty()
        });
        if follows {
            self.store(&mut ops);
        }
        let buffer = self.window.device(number);
        self.left[buffer] = std::mem::take(&mut self.uses[buffer]);
        let mut pending = Pending {
            number,
            slab,
            loads: Vec::new(),
            writers: Vec::new(),
        };
        self.load(&mut pending, &mut ops);
        self.store(&mut ops);
        self.run(&mut pending, &mut ops);
        self.pending = Some(pending);
        Ok(ops)
    }

    /// The stores of the last slab.
    pub fn end(&mut self) -> Vec<Op> {
        let mut ops = Vec::new();
        self.store(&mut ops);
        ops
    }

    fn note(&mut self, op: &Op, slab: &Slab, planes: Interval) {
        let range = SlabBuilder::places(slab, planes);
        self.uses[self.window.device(op.pass)].push(Use { range, id: op.id });
    }

    fn load(&mut self, pending: &mut Pending, ops: &mut Vec<Op>) {
        let (number, slab) = (pending.number, &pending.slab);
        let buffer = self.window.device(number);
        for planes in self.pieces(slab.loaded) {
            let places = SlabBuilder::places(slab, planes);
            let mut needed: Vec<OpId> = users(&self.left[buffer], places).collect();
            let stored = self.hosts(planes).iter().filter_map(|host| host.stored);
            needed.extend(stored);
            // It brings states of planes that the slab before may still amend.
            if self.states == StatePlaces::Beside {
                needed.extend(&self.ended[buffer]);
            }
            let action = Action::Load { planes };
            let op = self.push(number, slab, action, Queue::Loads, needed);
            for host in self.hosts(planes) {
                host.loads.push(op.id);
            }
            self.note(&op, slab, planes);
            pending.loads.push(Use {
                range: planes,
                id: op.id,
            });
            ops.push(op);
        }
    }

    fn run(&mut self, pending: &mut Pending, ops: &mut Vec<Op>) {
        let (number, slab) = (pending.number, &pending.slab);
        let buffer = self.window.device(number);
        let mut runs: Vec<Vec<OpId>> = Vec::new();
        let mut gathers: Vec<Use> = Vec::new();
        for (block, own) in slab.work.blocks.iter().enumerate() {
            let queue = self.window.queue(block);
            let mut of_block = Vec::new();
            for (group, planes) in (own.first..).zip(own.groups.iter()) {
                let mut needed: Vec<OpId> = users(&pending.loads, planes.touched).collect();
                let places = SlabBuilder::places(slab, planes.touched);
                needed.extend(users(&self.left[buffer], places));
                needed.extend(users(&gathers, planes.written));
                needed.extend(&self.ended[buffer]);
                // Towers amend planes that the slab has not loaded, of which the slab before stores the states.
                if self.states == StatePlaces::Beside {
                    needed.extend(&self.stored[buffer]);
                }
                for (earlier, runs) in runs.iter().enumerate() {
                    let first = slab.work.blocks[earlier].first;
                    let need = own.need(earlier, group);
                    // Groups that it would need beyond the slab's are not computed here.
                    let index = need.and_then(|need| usize::try_from(need - first).ok());
                    let last = runs.len().checked_sub(1);
                    let index = index.zip(last).map(|(index, last)| index.min(last));
                    needed.extend(index.map(|index| runs[index]));
                }
                let op = self.push(number, slab, Action::Run { block, group }, queue, needed);
                self.note(&op, slab, planes.touched);
                of_block.push(op.id);
                pending.writers.push(Use {
                    range: planes.written,
                    id: op.id,
                });
                ops.push(op);
            }
            runs.push(of_block);
            for (output, planes) in own.gathers.iter().enumerate() {
                let planes = planes.intersect(slab.base);
                if planes.is_empty() {
                    continue;
                }
                let writers = users(&pending.writers, planes);
                let needed = writers.chain(users(&pending.loads, planes)).collect();
                let action = Action::Gather {
                    block,
                    output,
                    planes,
                };
                let op = self.push(number, slab, action, queue, needed);
                self.note(&op, slab, planes);
                gathers.push(Use {
                    range: planes,
                    id: op.id,
                });
                ops.push(op);
            }
        }
        self.ended[buffer] = runs
            .iter()
            .filter_map(|runs| runs.last().copied())
            .collect();
    }

    /// Stores the base that the slab before has left.
    fn store(&mut self, ops: &mut Vec<Op>) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        let (number, slab) = (pending.number, &pending.slab);
        let buffer = self.window.device(number);
        self.stored[buffer].clear();
        for planes in self.pieces(slab.base) {
            let writers = users(&pending.writers, planes);
            let mut needed: Vec<OpId> = writers.chain(users(&pending.loads, planes)).collect();
            for host in self.hosts(planes) {
                needed.append(&mut host.loads);
                needed.extend(host.stored);
            }
            let action = Action::Store { planes };
            let op = self.push(number, slab, action, Queue::Stores, needed);
            for host in self.hosts(planes) {
                host.stored = Some(op.id);
            }
            self.note(&op, slab, planes);
            self.stored[buffer].push(op.id);
            ops.push(op);
        }
    }
}

/// The operations of some slabs, one after the other, laid out as a whole.
#[derive(Clone, Debug)]
pub struct LaidOutSlabs {
    pub window: Window,
    pub slabs: Vec<Slab>,
    pub ops: Vec<Op>,
    pub states: StatePlaces,
    /// Along the outer axis towers move up (1) or down (-1).
    pub way: i64,
}

impl LaidOutSlabs {
    /// A number of passes with the slabs of one, in the buffers of `builder`.
    pub fn new(
        mut builder: SlabBuilder,
        of_pass: &[Slab],
        passes: u64,
        way: i64,
    ) -> Result<LaidOutSlabs, NoLayout> {
        wide_enough(of_pass)?;
        let (mut slabs, mut ops) = (Vec::new(), Vec::new());
        for pass in 0..passes {
            for slab in of_pass {
                let slab = Slab {
                    pass,
                    ..slab.clone()
                };
                slabs.push(slab.clone());
                ops.extend(builder.begin(slab)?);
            }
        }
        ops.extend(builder.end());
        Ok(LaidOutSlabs {
            states: builder.states,
            window: builder.window,
            slabs,
            ops,
            way,
        })
    }

    /// Whether it is right for every interleaving.
    pub fn check(&self) -> Result<(), Fault> {
        super::check_slabs(&self.window, self.states, &self.slabs, &self.ops)
    }
}
