//! Asynchronous copies.
//!
//! A copy's data arrive as late as they may: copies of a thread when it waits for their group, bulk copies to shared
//! memory some time after their issue. Until then, their places in memory must not be touched; data that arrive count
//! as written by the thread that waited, or by the barrier object that counted it.

use crate::alu::{LANES, lanes};
use crate::block::{ARRIVING, Block, LEAVING, OBJECT, WRITTEN};
use crate::copies::{Cargo, Element, Flight, Source, Store, Transfers, WIDEST};
use crate::error::{Fault, FaultKind};
use crate::exec::Flow;
use crate::launch::Launch;
use crate::object::{OBJECT_BYTES, STRONG, WEAK, bad};
use crate::op::{AccessKind, Copy, CopyKind, CopyWait, Inst, NONE, Space};
use crate::order::{Copier, Touch};
use crate::place::Place;

pub(crate) fn pending(message: &str) -> Fault {
    Fault::new(FaultKind::AsyncPending, message)
}

/// Bytes of a copy.
struct Length {
    /// That are written.
    bytes: usize,
    /// That are read; the bytes of an element beyond them become zero.
    read: usize,
}

/// The source of a copy as it is issued.
struct Taken {
    /// Where it was read.
    source: Option<Source>,
    /// Its bytes, for copies of elements and for copies to global memory.
    few: [u8; WIDEST],
    data: Vec<u8>,
}

impl Launch<'_> {
    pub(crate) fn address(&self, block: &Block, warp: usize, inst: &Inst, operand: usize) -> u64 {
        let row = &block.warps[warp].rows[inst.src[operand] as usize];
        let index = if operand == 3 { 2 } else { operand };
        row[self.at.lane as usize].wrapping_add_signed(inst.imm[index])
    }

    /// Issues copies, lane by lane.
    pub(crate) fn copy(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
        copy: Copy,
    ) -> Result<Flow, Fault> {
        for lane in lanes(self.at.active) {
            self.at.lane = lane as u32;
            self.copy_of_lane(block, warp, inst, copy)?;
        }
        if copy == Copy::BulkLoad {
            self.tick(block, warp);
        }
        self.progress = true;
        Ok(Flow::Next)
    }

    /// Issues the copy of the lane that executes.
    fn copy_of_lane(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
        copy: Copy,
    ) -> Result<(), Fault> {
        let lane = self.at.lane as usize;
        let (to, from) = (
            self.address(block, warp, inst, 0),
            self.address(block, warp, inst, 1),
        );
        let Length { bytes, read } = self.length(block, warp, inst, copy)?;
        self.aligned(to, copy.unit())?;
        self.aligned(from, copy.unit())?;
        let to_space = match copy {
            Copy::BulkStore => Space::Global,
            _ => Space::Shared,
        };
        let to_place = self.resolve(block, to_space, to, bytes)?;
        let Taken { source, few, data } = self.take(block, warp, copy, from, read)?;
        self.check_copy(block, warp, to_place, bytes, AccessKind::Write, copy.kind())
            .map_err(|fault| fault.at(to))?;
        let thread = (warp * LANES + lane) as u32;
        self.counts.copies += 1;
        let pc = self.at.pc;
        match (copy, to_place, source) {
            (Copy::Element(_), Place::Shared(to), from) => {
                self.arriving(block, to, bytes)?;
                let data = few;
                let element = Element {
                    to,
                    lane: lane as u32,
                    from,
                    data,
                    bytes,
                    pc,
                };
                block.transfers.elements_of(thread).open.push(element);
            }
            (
                Copy::BulkStore,
                to,
                Some(Source {
                    place: Place::Shared(from),
                    ..
                }),
            ) => {
                let store = Store {
                    from,
                    to,
                    data,
                    read: false,
                    pc,
                };
                self.begin_store(block, thread, store, bytes)?;
            }
            (_, Place::Shared(to), Some(Source { place: from, .. })) => {
                let object = self.address(block, warp, inst, 3);
                let object = self.object_at(block, warp, object)?;
                self.arriving(block, to, bytes)?;
                self.claim(from, bytes, AccessKind::Read);
                self.begin_load(block, warp, object, Cargo::Bulk { to, from, bytes });
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads the source of a copy, `read` bytes at the address `from`; one that is not read may lie anywhere.
    fn take(
        &mut self,
        block: &mut Block,
        warp: usize,
        copy: Copy,
        from: u64,
        read: usize,
    ) -> Result<Taken, Fault> {
        let mut taken = Taken {
            source: None,
            few: [0; WIDEST],
            data: Vec::new(),
        };
        if read == 0 {
            return Ok(taken);
        }
        let space = match copy {
            Copy::BulkStore => Space::Shared,
            _ => Space::Global,
        };
        let place = self.resolve(block, space, from, read)?;
        let found = self.bytes(block, warp, place, read);
        let found = found.map_err(|fault| fault.at(from))?;
        match copy {
            Copy::Element(_) => taken.few[..read].copy_from_slice(found),
            Copy::BulkStore => taken.data = found.to_vec(),
            Copy::BulkLoad => {}
        }
        self.touch(block, warp, place, read, Touch::Read(&WEAK))
            .map_err(|fault| fault.at(from))?;
        self.check_copy(block, warp, place, read, AccessKind::Read, copy.kind())
            .map_err(|fault| fault.at(from))?;
        taken.source = Some(Source { place, bytes: read });
        Ok(taken)
    }

    /// The length of the copy of the lane that executes.
    ///
    /// # Errors
    /// No bytes, or no multiple of the unit of the copy.
    fn length(&self, block: &Block, warp: usize, inst: &Inst, copy: Copy) -> Result<Length, Fault> {
        let rows = &block.warps[warp].rows;
        let value = |slot| rows[slot as usize][self.at.lane as usize] as usize;
        let (bytes, unit) = (value(inst.src[2]), copy.unit());
        if bytes == 0 || !bytes.is_multiple_of(unit) {
            let message = format!("a bulk copy of {bytes} bytes: a multiple of {unit} is needed");
            return Err(Fault::new(FaultKind::Misaligned, message));
        }
        let read = match (copy, inst.src[3]) {
            (Copy::Element(_), slot) if slot != NONE => value(slot).min(bytes),
            _ => bytes,
        };
        Ok(Length { bytes, read })
    }

    /// A copy from shared memory begins; its source must not change before it is read.
    fn begin_store(
        &mut self,
        block: &mut Block,
        thread: u32,
        store: Store,
        bytes: usize,
    ) -> Result<(), Fault> {
        let states = &mut block.shared.state[store.from..store.from + bytes];
        if states.iter().any(|state| *state > u8::MAX - LEAVING) {
            return Err(Fault::new(
                FaultKind::Unsupported,
                "too many copies read one place",
            ));
        }
        states.iter_mut().for_each(|state| *state += LEAVING);
        self.claimed_by_copy(store.to, bytes)?;
        self.claim(store.to, bytes, AccessKind::Write);
        let stores = block.transfers.stores.entry(thread).or_default();
        stores.open.push(store);
        Ok(())
    }

    /// A copy to shared memory begins, and will arrive at a barrier object.
    fn begin_load(&mut self, block: &mut Block, warp: usize, object: usize, cargo: Cargo) {
        let flight = Flight {
            cargo,
            object,
            witness: self.known(block, warp),
            warp,
            lanes: 1 << self.at.lane,
            pc: self.at.pc,
            due: block.transfers.round + self.delay(),
        };
        block.transfers.flights.push(flight);
    }

    /// The place of a barrier object of the block's own, which something will arrive at.
    fn object_at(&mut self, block: &mut Block, warp: usize, address: u64) -> Result<usize, Fault> {
        self.aligned(address, OBJECT_BYTES)?;
        let place = self.resolve(block, Space::Shared, address, OBJECT_BYTES)?;
        self.touch(block, warp, place, OBJECT_BYTES, Touch::Read(&STRONG))?;
        match place {
            Place::Shared(at) if block.transfers.objects.get(at).is_some() => Ok(at),
            _ => Err(bad("there is no barrier object here").at(address)),
        }
    }

    /// Rounds until something arrives.
    fn delay(&mut self) -> u64 {
        match self.options.seed {
            0 => 1,
            _ => u64::from(self.random() % 8),
        }
    }

    /// The copies of the active lanes so far will arrive at a barrier object.
    pub(crate) fn copies_arrive(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
    ) -> Result<Flow, Fault> {
        let first = block.transfers.flights.len();
        let mut known = None;
        for lane in lanes(self.at.active) {
            self.at.lane = lane as u32;
            let address = self.address(block, warp, inst, 0);
            let object = match known {
                Some((known, object)) if known == address => object,
                _ => self.object_at(block, warp, address)?,
            };
            known = Some((address, object));
            let flight = Flight {
                cargo: Cargo::Elements(Vec::new()),
                object,
                witness: self.known(block, warp),
                warp,
                lanes: 0,
                pc: self.at.pc,
                due: block.transfers.round + self.delay(),
            };
            let thread = (warp * LANES + lane) as u32;
            block.transfers.embark(thread, first, flight);
        }
        self.tick(block, warp);
        self.progress = true;
        Ok(Flow::Next)
    }

    /// No thread may touch these bytes until the copy has arrived.
    fn arriving(&self, block: &mut Block, at: usize, bytes: usize) -> Result<(), Fault> {
        let states = &mut block.shared.state[at..at + bytes];
        if states.iter().any(|state| state & OBJECT != 0) {
            return Err(bad("a copy goes to a barrier object"));
        }
        if states.iter().any(|state| state & !WRITTEN != 0) {
            return Err(pending("a copy goes where another one is under way"));
        }
        states.iter_mut().for_each(|state| *state |= ARRIVING);
        Ok(())
    }

    fn arrived(&self, block: &mut Block, at: usize, data: &[u8]) {
        block.shared.state[at..at + data.len()].fill(WRITTEN);
        block.shared.bytes[at..at + data.len()].copy_from_slice(data);
    }

    /// Closes the groups of the active lanes.
    pub(crate) fn commit(&mut self, block: &mut Block, warp: usize, kind: CopyKind) -> Flow {
        for lane in lanes(self.at.active) {
            let thread = (warp * LANES + lane) as u32;
            let transfers = &mut block.transfers;
            match kind {
                CopyKind::Element => transfers.elements_of(thread).commit(),
                CopyKind::Bulk => transfers.stores.entry(thread).or_default().commit(),
            }
        }
        Flow::Next
    }

    /// Waits until at most a given number of groups of a lane are under way: the others' copies arrive now.
    pub(crate) fn wait(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
        wait: CopyWait,
    ) -> Result<Flow, Fault> {
        let keep = usize::try_from(inst.imm[0]).unwrap_or(0);
        if wait == CopyWait::All {
            self.commit(block, warp, CopyKind::Element);
        }
        for lane in lanes(self.at.active) {
            self.at.lane = lane as u32;
            let thread = (warp * LANES + lane) as u32;
            let transfers = &mut block.transfers;
            match wait {
                CopyWait::All | CopyWait::Group => {
                    let groups = transfers.elements.get_mut(thread as usize);
                    let done = groups.map(|groups| groups.take(keep)).unwrap_or_default();
                    self.elements_arrive(block, warp, done)?;
                }
                CopyWait::BulkGroup => {
                    let groups = transfers.stores.get_mut(&thread);
                    let done = groups.map(|groups| groups.take(keep)).unwrap_or_default();
                    self.stores_arrive(block, warp, done)?;
                }
                CopyWait::BulkGroupRead => {
                    let Some(mut groups) = transfers.stores.remove(&thread) else {
                        continue;
                    };
                    let count = groups.closed.len().saturating_sub(keep);
                    for store in groups.closed.iter_mut().take(count).flatten() {
                        self.source_read(block, warp, store)?;
                    }
                    block.transfers.stores.insert(thread, groups);
                }
            }
        }
        Ok(Flow::Next)
    }

    fn elements_arrive(
        &mut self,
        block: &mut Block,
        warp: usize,
        done: Vec<Element>,
    ) -> Result<(), Fault> {
        let pc = self.at.pc;
        for element in done {
            self.at.pc = element.pc;
            let bytes = element.bytes;
            if let Some(Source { place, bytes }) = element.from {
                self.touch(block, warp, place, bytes, Touch::Read(&WEAK))?;
            }
            self.arrived(block, element.to, element.data());
            self.touch(
                block,
                warp,
                Place::Shared(element.to),
                bytes,
                Touch::Write(&WEAK),
            )?;
            self.counts.copied_in += bytes as u64;
        }
        self.at.pc = pc;
        Ok(())
    }

    fn source_read(
        &mut self,
        block: &mut Block,
        warp: usize,
        store: &mut Store,
    ) -> Result<(), Fault> {
        if std::mem::replace(&mut store.read, true) {
            return Ok(());
        }
        let (at, bytes) = (store.from, store.data.len());
        block.shared.state[at..at + bytes]
            .iter_mut()
            .for_each(|state| *state -= LEAVING);
        self.touch(block, warp, Place::Shared(at), bytes, Touch::Read(&WEAK))
    }

    fn stores_arrive(
        &mut self,
        block: &mut Block,
        warp: usize,
        done: Vec<Store>,
    ) -> Result<(), Fault> {
        let pc = self.at.pc;
        for mut store in done {
            self.at.pc = store.pc;
            self.source_read(block, warp, &mut store)?;
            let bytes = store.data.len();
            self.unclaim(store.to, bytes, AccessKind::Write);
            self.touch(block, warp, store.to, bytes, Touch::Write(&WEAK))?;
            self.put(block, warp, store.to, &store.data)?;
            self.counts.copied_out += bytes as u64;
            self.progress = true;
        }
        self.at.pc = pc;
        Ok(())
    }

    /// Copies to shared memory for which no thread waits and whose time has come arrive.
    pub(crate) fn deliver(&mut self, block: &mut Block) -> Result<(), Fault> {
        let Transfers { flights, round, .. } = &mut block.transfers;
        let now = *round;
        *round += 1;
        if flights.iter().all(|flight| flight.due > now) {
            return Ok(());
        }
        let due: Vec<Flight> = flights.extract_if(.., |flight| flight.due <= now).collect();
        for flight in due {
            (self.at.pc, self.at.lane) = (flight.pc, flight.lanes.trailing_zeros());
            let warp = flight.warp;
            self.flight_arrives(block, flight)
                .map_err(|fault| self.place(fault, block, warp))?;
        }
        Ok(())
    }

    fn flight_arrives(&mut self, block: &mut Block, flight: Flight) -> Result<(), Fault> {
        let Some(mut object) = block.transfers.objects.take(flight.object) else {
            return Err(bad(
                "the barrier object of copies is gone before they have arrived",
            ));
        };
        self.progress = true;
        match &flight.cargo {
            Cargo::Bulk { to, from, bytes } => {
                let (from, bytes) = (*from, *bytes);
                self.unclaim(from, bytes, AccessKind::Read);
                let data = self.bytes(block, flight.warp, from, bytes)?.to_vec();
                let source = Source { place: from, bytes };
                let copier = flight.witness.as_ref().map(|witness| Copier {
                    agent: object.agent,
                    witness,
                });
                self.piece_arrives(block, copier, Some(source), *to, &data)?;
                object.bytes -= bytes as i64;
                self.complete(block.index, &mut block.transfers, &mut object);
            }
            Cargo::Elements(elements) => {
                let mut elements = elements.iter().peekable();
                for lane in lanes(flight.lanes) {
                    self.at.lane = lane as u32;
                    let witness = flight.witness.as_ref().map(|witness| witness.of(lane));
                    let copier = witness.as_ref().map(|witness| Copier {
                        agent: object.agent,
                        witness,
                    });
                    while let Some(element) = elements.next_if(|next| next.lane == lane as u32) {
                        self.at.pc = element.pc;
                        let Element { from, to, .. } = *element;
                        self.piece_arrives(block, copier, from, to, element.data())?;
                    }
                    self.at.pc = flight.pc;
                    object.arrive_with(witness.as_ref())?;
                    self.complete(block.index, &mut block.transfers, &mut object);
                }
            }
        }
        block.transfers.objects.put(flight.object, object);
        Ok(())
    }

    /// Data arrive; races with the copier are looked for, if there is one.
    fn piece_arrives(
        &mut self,
        block: &mut Block,
        copier: Option<Copier<'_>>,
        from: Option<Source>,
        to: usize,
        data: &[u8],
    ) -> Result<(), Fault> {
        self.arrived(block, to, data);
        if let Some(copier) = copier {
            if let Some(Source { place, bytes }) = from {
                self.touch_by_copy(block, copier, place, bytes, AccessKind::Read)?;
            }
            let to = Place::Shared(to);
            self.touch_by_copy(block, copier, to, data.len(), AccessKind::Write)?;
        }
        self.counts.copied_in += data.len() as u64;
        Ok(())
    }

    /// Threads end: their copies must not need the block any more.
    pub(crate) fn left(&mut self, block: &mut Block, warp: usize, mask: u32) -> Result<(), Fault> {
        for lane in lanes(mask) {
            self.at.lane = lane as u32;
            let thread = (warp * LANES + lane) as u32;
            if let Some(groups) = block.transfers.elements.get_mut(thread as usize) {
                let mut done = Vec::new();
                groups.move_all(&mut done);
                self.elements_arrive(block, warp, done)?;
            }
            if let Some(mut groups) = block.transfers.stores.remove(&thread) {
                groups.commit();
                let done = groups.take(0);
                if done.iter().any(|store| !store.read) {
                    return Err(pending(
                        "the thread ends before its bulk copies have read shared memory",
                    ));
                }
                self.stores_arrive(block, warp, done)?;
            }
        }
        if block.live == mask.count_ones() && block.transfers.under_way() {
            return Err(pending(
                "the block ends while bulk copies to its shared memory are under way",
            ));
        }
        Ok(())
    }
}
