//! Loads, stores and atomic operations.

use crate::alu::{LANES, lanes};
use crate::block::{ARRIVING, Block, OBJECT, WRITTEN};
use crate::counts::{Pieces, bank_passes, sectors};
use crate::error::{Fault, FaultKind};
use crate::exec::Flow;
use crate::launch::Launch;
use crate::memory::{LOCAL_BASE, PARAM_BASE, SHARED_BASE};
use crate::op::{Access, AccessKind, Inst, NONE, Order, Rmw, Space, mask, sign_extend};
use crate::order::Touch;
use crate::place::Place;
use crate::poll::Polled;
use crate::sync::combine;

/// Bytes of the widest access of a thread.
const WIDEST: usize = 64;

impl Launch<'_> {
    /// Where an access goes, if it is in bounds and aligned.
    pub(crate) fn resolve(
        &mut self,
        block: &Block,
        space: Space,
        address: u64,
        bytes: usize,
    ) -> Result<Place, Fault> {
        let inside = |base: u64, size: usize, name: &str| {
            let at = address.wrapping_sub(base);
            if address >= base
                && at
                    .checked_add(bytes as u64)
                    .is_some_and(|end| end <= size as u64)
            {
                return Ok(at as usize);
            }
            let message =
                format!("{bytes} bytes of {name}, which has {size} bytes from 0x{base:x}");
            Err(Fault::new(FaultKind::OutOfBounds, message).at(address))
        };
        let (space, start) = space.of(address);
        if start != 0 {
            return self.resolve(block, space, address - start, bytes);
        }
        if space == Space::Cluster {
            return self.resolve_in_cluster(block, address, bytes);
        }
        let place = match space {
            Space::Shared => Place::Shared(inside(
                SHARED_BASE,
                block.shared.bytes.len(),
                "shared memory",
            )?),
            Space::Local => Place::Local(inside(
                LOCAL_BASE,
                self.entry.local_bytes as usize,
                "local memory",
            )?),
            Space::Param => Place::Param(inside(PARAM_BASE, self.params.len(), "parameters")?),
            _ => {
                let (buffer, at) = self.memory.find(address, bytes)?;
                if space == Space::Const && !self.memory.buffers[buffer].constant {
                    let message = "this is no constant memory";
                    return Err(Fault::new(FaultKind::OutOfBounds, message).at(address));
                }
                Place::Global { buffer, at }
            }
        };
        Ok(place)
    }

    pub(crate) fn aligned(&self, address: u64, bytes: usize) -> Result<(), Fault> {
        if bytes.is_power_of_two() && address & (bytes as u64 - 1) == 0 {
            return Ok(());
        }
        let message = format!("an access of {bytes} bytes needs a multiple of them");
        Err(Fault::new(FaultKind::Misaligned, message).at(address))
    }

    /// The bytes at a place, all of them written before.
    pub(crate) fn bytes<'b>(
        &'b self,
        block: &'b Block,
        warp: usize,
        place: Place,
        count: usize,
    ) -> Result<&'b [u8], Fault> {
        let unwritten = |written: &[bool], name: &str| match written.iter().position(|byte| !byte) {
            None => Ok(()),
            Some(byte) => {
                let message = format!("byte {byte} of {count} bytes of {name} was never written");
                Err(Fault::new(FaultKind::UninitialisedMemory, message))
            }
        };
        match place {
            Place::Global { buffer, at } => {
                self.claimed(buffer, at, count, AccessKind::Read)?;
                let buffer = &self.memory.buffers[buffer];
                if let Some(written) = &buffer.written {
                    unwritten(&written[at..at + count], "global memory")?;
                }
                Ok(&buffer.bytes[at..at + count])
            }
            Place::Shared(at) => {
                let states = &block.shared.state[at..at + count];
                let is = |bit| states.iter().any(|state| state & bit != 0);
                if states
                    .iter()
                    .any(|state| state & (WRITTEN | ARRIVING | OBJECT) != WRITTEN)
                {
                    if is(ARRIVING) {
                        let message =
                            "shared memory is read that an asynchronous copy may still write";
                        return Err(Fault::new(FaultKind::AsyncPending, message));
                    }
                    if is(OBJECT) {
                        let message = "a barrier object is read like data";
                        return Err(Fault::new(FaultKind::BadBarrier, message));
                    }
                    let written: Vec<bool> =
                        states.iter().map(|state| state & WRITTEN != 0).collect();
                    unwritten(&written, "shared memory")?;
                }
                Ok(&block.shared.bytes[at..at + count])
            }
            Place::Peer { rank, at } => {
                let shared = &self.peer_of(rank)?.shared;
                let states = &shared.state[at..at + count];
                if states
                    .iter()
                    .any(|state| state & (WRITTEN | ARRIVING | OBJECT) != WRITTEN)
                {
                    let message = "shared memory of another block is read that holds no value";
                    return Err(Fault::new(FaultKind::UninitialisedMemory, message));
                }
                Ok(&shared.bytes[at..at + count])
            }
            Place::Local(at) => {
                let at = at + self.at.lane as usize * self.entry.local_bytes as usize;
                let warp = &block.warps[warp];
                unwritten(&warp.local_written[at..at + count], "local memory")?;
                Ok(&warp.local[at..at + count])
            }
            Place::Param(at) => Ok(&self.params[at..at + count]),
        }
    }

    /// Writes bytes at a place.
    pub(crate) fn put(
        &mut self,
        block: &mut Block,
        warp: usize,
        place: Place,
        data: &[u8],
    ) -> Result<(), Fault> {
        let (bytes, written, at) = match place {
            Place::Global { buffer, at } => {
                self.claimed(buffer, at, data.len(), AccessKind::Write)?;
                let buffer = &mut self.memory.buffers[buffer];
                if buffer.constant {
                    let message = "constant memory is written";
                    return Err(Fault::new(FaultKind::ReadOnly, message));
                }
                (&mut buffer.bytes, buffer.written.as_mut(), at)
            }
            Place::Shared(at) => return block.shared.put(at, data),
            Place::Peer { rank, at } => return self.peer(rank)?.shared.put(at, data),
            Place::Local(at) => {
                let at = at + self.at.lane as usize * self.entry.local_bytes as usize;
                let warp = &mut block.warps[warp];
                (&mut warp.local, Some(&mut warp.local_written), at)
            }
            Place::Param(_) => {
                return Err(Fault::new(FaultKind::ReadOnly, "a parameter is written"));
            }
        };
        bytes[at..at + data.len()].copy_from_slice(data);
        if let Some(written) = written {
            written[at..at + data.len()].fill(true);
        }
        Ok(())
    }

    /// Counts an access of a warp; all lanes go to the same kind of memory.
    fn count(&mut self, place: Place, addresses: &[u64; LANES], bytes: usize, kind: AccessKind) {
        let bytes = bytes as u32;
        let counts = match place {
            _ if !self.options.pieces => Pieces::default(),
            Place::Global { .. } => Pieces {
                taken: sectors(addresses, self.at.active, bytes),
                ideal: 0,
            },
            Place::Shared(_) | Place::Peer { .. } => {
                let (taken, ideal) = bank_passes(addresses, self.at.active, bytes);
                Pieces { taken, ideal }
            }
            _ => Pieces::default(),
        };
        self.add_traffic(place, kind, bytes, counts);
    }

    /// Adds an access of a warp.
    pub(crate) fn add_traffic(
        &mut self,
        place: Place,
        kind: AccessKind,
        bytes: u32,
        pieces: Pieces,
    ) {
        let counts = &mut self.counts;
        let traffic = match (place, kind) {
            (Place::Global { .. }, AccessKind::Read) => &mut counts.global_loads,
            (Place::Global { .. }, AccessKind::Write) => &mut counts.global_stores,
            (Place::Shared(_) | Place::Peer { .. }, AccessKind::Read) => &mut counts.shared_loads,
            (Place::Shared(_) | Place::Peer { .. }, AccessKind::Write) => &mut counts.shared_stores,
            (Place::Local(_), _) => &mut counts.local,
            (Place::Param(_), _) => return,
        };
        traffic.accesses += 1;
        traffic.bytes += u64::from(bytes * self.at.active.count_ones());
        traffic.pieces += pieces.taken;
        traffic.ideal += pieces.ideal;
    }

    #[inline(always)]
    pub(crate) fn addresses(&self, block: &Block, warp: usize, inst: &Inst) -> [u64; LANES] {
        let bases = &block.warps[warp].rows[inst.src[0] as usize];
        let mut addresses = [0; LANES];
        for (address, base) in addresses.iter_mut().zip(bases) {
            *address = base.wrapping_add_signed(inst.imm[0]);
        }
        addresses
    }

    /// A load into registers.
    pub(crate) fn load(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
        access: &Access,
    ) -> Result<Flow, Fault> {
        let size = access.ty.bytes() as usize;
        let total = size * usize::from(access.count);
        let done = match access.order {
            Order::Weak => self.load_together(block, warp, inst, access)?,
            _ => self.load_strongly(block, warp, inst, access)?,
        };
        if done.is_some() {
            if inst.tracked {
                self.define_list(
                    &mut block.warps[warp],
                    access.list,
                    access.count,
                    self.at.active,
                );
            }
            return Ok(match access.order {
                Order::Weak => Flow::Next,
                _ => Flow::Looked,
            });
        }
        let addresses = self.addresses(block, warp, inst);
        let mut first = None;
        let mut polled = Vec::new();
        let list = access.list as usize..access.list as usize + usize::from(access.count);
        // The address that the lane before read, and where its data were.
        let mut last: Option<(u64, Place)> = None;
        let mut data = [0; WIDEST];
        for lane in lanes(self.at.active) {
            self.at.lane = lane as u32;
            let address = addresses[lane];
            let known = last.filter(|(before, _)| *before == address);
            let place = match known {
                Some((_, place)) => place,
                None => {
                    self.aligned(address, total)?;
                    let place = self.resolve(block, access.space, address, total)?;
                    let bytes = self
                        .bytes(block, warp, place, total)
                        .map_err(|fault| fault.at(address))?;
                    data[..total].copy_from_slice(bytes);
                    // Each lane has local memory of its own.
                    last = Some((address, place)).filter(|_| !matches!(place, Place::Local(_)));
                    place
                }
            };
            first.get_or_insert(place);
            self.touch(block, warp, place, total, Touch::Read(access))
                .map_err(|fault| fault.at(address))?;
            let list = &self.entry.lists[list.clone()];
            for (slot, bytes) in list.iter().zip(data.chunks_exact(size)) {
                let mut value = number(bytes);
                if access.ty.is_signed() {
                    value =
                        sign_extend(value, access.ty.bits()) as u64 & mask(u32::from(access.width));
                }
                block.warps[warp].rows[*slot as usize][lane] = value;
            }
            if access.order != Order::Weak && total <= 8 && known.is_none() {
                polled.push(Polled::Value {
                    place,
                    bytes: total,
                    value: number(&data[..total]),
                });
            }
        }
        if let Some(place) = first {
            self.count(place, &addresses, total, AccessKind::Read);
        }
        self.define_list(
            &mut block.warps[warp],
            access.list,
            access.count,
            self.at.active,
        );
        if access.order == Order::Weak {
            return Ok(Flow::Next);
        }
        block.warps[warp].keep_poll(self.at.pc, polled.into_iter());
        Ok(Flow::Looked)
    }

    /// A store of registers.
    pub(crate) fn store(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
        access: &Access,
    ) -> Result<Flow, Fault> {
        if inst.tracked {
            self.list_defined(
                &block.warps[warp],
                access.list,
                access.count,
                self.at.active,
            )?;
        }
        let size = access.ty.bytes() as usize;
        let total = size * usize::from(access.count);
        self.progress = true;
        if self.store_together(block, warp, inst, access)?.is_some() {
            return Ok(Flow::Next);
        }
        let addresses = self.addresses(block, warp, inst);
        let mut first = None;
        for lane in lanes(self.at.active) {
            self.at.lane = lane as u32;
            let address = addresses[lane];
            self.aligned(address, total)?;
            let place = self.resolve(block, access.space, address, total)?;
            first.get_or_insert(place);
            let mut data = [0; WIDEST];
            let list = access.list as usize..access.list as usize + usize::from(access.count);
            for (slot, bytes) in self.entry.lists[list]
                .iter()
                .zip(data.chunks_exact_mut(size))
            {
                let value = block.warps[warp].rows[*slot as usize][lane];
                bytes.copy_from_slice(&value.to_le_bytes()[..size]);
            }
            self.touch(block, warp, place, total, Touch::Write(access))
                .map_err(|fault| fault.at(address))?;
            self.put(block, warp, place, &data[..total])
                .map_err(|fault| fault.at(address))?;
        }
        if let Some(place) = first {
            self.count(place, &addresses, total, AccessKind::Write);
        }
        Ok(Flow::Next)
    }

    /// A read, an operation and a write that nothing comes between.
    pub(crate) fn atomic(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
        rmw: Rmw,
        access: &Access,
    ) -> Result<Flow, Fault> {
        let addresses = self.addresses(block, warp, inst);
        let size = access.ty.bytes() as usize;
        let mut changed = false;
        let mut first = None;
        for lane in lanes(self.at.active) {
            self.at.lane = lane as u32;
            let address = addresses[lane];
            self.aligned(address, size)?;
            let place = self.resolve(block, access.space, address, size)?;
            if matches!(place, Place::Local(_) | Place::Param(_)) {
                let message = "atomic operations work on global and shared memory";
                return Err(Fault::new(FaultKind::Unsupported, message).at(address));
            }
            first.get_or_insert(place);
            let bytes = self
                .bytes(block, warp, place, size)
                .map_err(|fault| fault.at(address))?;
            let old = number(bytes);
            let rows = &block.warps[warp].rows;
            let value = rows[inst.src[1] as usize][lane];
            let new = match rmw {
                Rmw::CompareExchange if old != value => old,
                Rmw::CompareExchange => rows[inst.src[2] as usize][lane],
                _ => combine(rmw, access.ty, old, value),
            };
            changed |= new != old;
            self.touch(block, warp, place, size, Touch::Update(access))
                .map_err(|fault| fault.at(address))?;
            self.put(block, warp, place, &new.to_le_bytes()[..size])
                .map_err(|fault| fault.at(address))?;
            if inst.dst != NONE {
                block.warps[warp].rows[inst.dst as usize][lane] = old;
            }
        }
        match first {
            Some(Place::Global { .. }) => {
                let traffic = &mut self.counts.global_atomics;
                traffic.accesses += 1;
                traffic.bytes += size as u64 * u64::from(self.at.active.count_ones());
                if self.options.pieces {
                    traffic.pieces += sectors(&addresses, self.at.active, size as u32);
                }
            }
            Some(place) => self.count(place, &addresses, size, AccessKind::Write),
            None => {}
        }
        self.progress |= changed;
        Ok(if changed { Flow::Next } else { Flow::Yield })
    }
}

/// An integer of up to eight bytes.
#[inline(always)]
pub(crate) fn number(bytes: &[u8]) -> u64 {
    // Of known lengths, which are read at once.
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return u64::from(u32::from_le_bytes(four));
    }
    if let Ok(eight) = <[u8; 8]>::try_from(bytes) {
        return u64::from_le_bytes(eight);
    }
    let bytes = bytes.iter().rev();
    bytes.fold(0, |value, byte| value << 8 | u64::from(*byte))
}
