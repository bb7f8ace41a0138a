//! Loads and stores of a warp whose lanes all access one region of memory: properties of the region are found once, and
//! lanes that access neighbouring places are served together.
//!
//! Lanes with a special case are left to the accesses lane by lane ([`crate::access`]), which report faults.

use std::ops::Range;

use crate::access::number;
use crate::alu::{LANES, Row, has_vectors, lanes, uniform};
use crate::block::{ARRIVING, Block, OBJECT, WRITTEN};
use crate::counts::{Pattern, Pieces, bank_passes_of, sectors_of};
use crate::error::Fault;
use crate::launch::Launch;
use crate::memory::{PARAM_BASE, SHARED_BASE};
use crate::op::{Access, AccessKind, Inst, Order, Space, mask, sign_extend};
use crate::order::Touch;
use crate::place::{Place, Region};
use crate::poll::Polled;

/// A function compiled for processors where rows are a few registers; on others of the kind all is left to the accesses
/// lane by lane.
macro_rules! vectorised {
    ($name:ident, $any:ident, $avx2:ident) => {
        pub(crate) fn $name(
            &mut self,
            block: &mut Block,
            warp: usize,
            inst: &Inst,
            access: &Access,
        ) -> Result<Option<Place>, Fault> {
            #[cfg(target_arch = "x86_64")]
            if has_vectors() {
                // SAFETY: the processor has the features.
                return unsafe { self.$avx2(block, warp, inst, access) };
            }
            #[cfg(target_arch = "x86_64")]
            return Ok(None);
            #[cfg(not(target_arch = "x86_64"))]
            self.$any(block, warp, inst, access)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
        fn $avx2(
            &mut self,
            block: &mut Block,
            warp: usize,
            inst: &Inst,
            access: &Access,
        ) -> Result<Option<Place>, Fault> {
            self.$any(block, warp, inst, access)
        }
    };
}

impl Launch<'_> {
    /// The region that an access lies in, if all lanes are in bounds and aligned.
    #[inline(always)]
    fn region(
        &mut self,
        block: &Block,
        warp: usize,
        inst: &Inst,
        space: Space,
        bytes: usize,
    ) -> Option<Region> {
        let addresses = &self.addresses(block, warp, inst);
        let active = self.at.active;
        let first = addresses[active.trailing_zeros() as usize % LANES];
        let (space, start) = space.of(first);
        let (place, base, size) = match space {
            Space::Shared => (Place::Shared(0), SHARED_BASE, block.shared.bytes.len()),
            Space::Param => (Place::Param(0), PARAM_BASE, self.params.len()),
            Space::Global | Space::Const => {
                let (buffer, _) = self.memory.find(first - start, bytes).ok()?;
                let allocation = &self.memory.buffers[buffer];
                if space == Space::Const && !allocation.constant {
                    return None;
                }
                let place = Place::Global { buffer, at: 0 };
                (place, allocation.base, allocation.bytes.len())
            }
            _ => return None,
        };
        let (base, last) = (start + base, size.checked_sub(bytes)? as u64);
        if size > u32::MAX as usize || !bytes.is_power_of_two() {
            return None;
        }
        if uniform(addresses, active).is_some() {
            let at = first.wrapping_sub(base);
            if at > last || first & (bytes as u64 - 1) != 0 {
                return None;
            }
            return Some(Region::of_one(place, base, at as u32, active, bytes as u32));
        }
        let (mut beyond, mut bits) = (0, 0);
        for (lane, address) in addresses.iter().enumerate() {
            let is_active = u64::from(active >> lane & 1).wrapping_neg();
            beyond |= u64::from(address.wrapping_sub(base) > last).wrapping_neg() & is_active;
            bits |= address & is_active;
        }
        if beyond != 0 || bits & (bytes as u64 - 1) != 0 {
            return None;
        }
        Some(Region::new(place, base, addresses, active, bytes as u32))
    }

    /// Whether every byte of a region is as it is for most accesses, so that no lane needs a report: of the state of a
    /// byte in shared memory, the bits `looked_at` equal `needed`.
    #[inline(always)]
    fn plain(&self, block: &Block, region: &Region, looked_at: u8, needed: u8) -> bool {
        let spans = region.spans();
        match region.place {
            Place::Global { buffer, .. } => {
                if !self.claims.is_empty() {
                    let kind = match needed {
                        WRITTEN => AccessKind::Read,
                        _ => AccessKind::Write,
                    };
                    let claimed = |span: Range<usize>| {
                        self.claimed(buffer, span.start, span.len(), kind).is_err()
                    };
                    if region.spans().any(claimed) {
                        return false;
                    }
                }
                if let (Some(written), WRITTEN) = (&self.memory.buffers[buffer].written, needed) {
                    let mut all = true;
                    spans.for_each(|span| {
                        all &= written[span].iter().fold(true, |all, byte| all & byte)
                    });
                    return all;
                }
                true
            }
            Place::Shared(_) => {
                let states = spans.map(|span| &block.shared.state[span]);
                let all = states.map(|states| unlike(states, looked_at, needed));
                all.fold(0, |all, bits| all | bits) == 0
            }
            _ => true,
        }
    }

    vectorised!(load_together, load_together_any, load_together_avx2);

    /// A load of all active lanes; where it went, unless it has to be done lane by lane.
    #[inline(always)]
    fn load_together_any(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
        access: &Access,
    ) -> Result<Option<Place>, Fault> {
        let size = access.ty.bytes() as usize;
        let bytes = size * usize::from(access.count);
        if access.order != Order::Weak {
            return Ok(None);
        }
        let Some(region) = self.region(block, warp, inst, access.space, bytes) else {
            return Ok(None);
        };
        if !self.plain(block, &region, WRITTEN | ARRIVING | OBJECT, WRITTEN) {
            return Ok(None);
        }
        self.touch_together(block, warp, &region, Touch::Read(access))?;
        self.fill(block, warp, access, &region);
        self.count_region(&region, AccessKind::Read);
        Ok(Some(region.place))
    }

    /// Brings the values of a region to registers.
    #[inline(always)]
    fn fill(&self, block: &mut Block, warp: usize, access: &Access, region: &Region) {
        let size = access.ty.bytes() as usize;
        let Block { warps, shared, .. } = block;
        let memory = match region.place {
            Place::Global { buffer, .. } => &self.memory.buffers[buffer].bytes,
            Place::Shared(_) => &shared.bytes,
            _ => &self.params,
        };
        let list = access.list as usize..access.list as usize + usize::from(access.count);
        for (index, slot) in self.entry.lists[list].iter().enumerate() {
            let row = &mut warps[warp].rows[*slot as usize];
            let skip = index * size;
            match size {
                1 => gather::<1>(row, memory, region, skip),
                2 => gather::<2>(row, memory, region, skip),
                4 => gather::<4>(row, memory, region, skip),
                _ => gather::<8>(row, memory, region, skip),
            }
            if access.ty.is_signed() {
                let (from, to) = (access.ty.bits(), mask(u32::from(access.width)));
                for lane in lanes(region.active) {
                    row[lane] = sign_extend(row[lane], from) as u64 & to;
                }
            }
        }
    }

    vectorised!(store_together, store_together_any, store_together_avx2);

    /// A store of all active lanes; where it went, unless it has to be done lane by lane.
    #[inline(always)]
    fn store_together_any(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
        access: &Access,
    ) -> Result<Option<Place>, Fault> {
        let size = access.ty.bytes() as usize;
        let bytes = size * usize::from(access.count);
        if access.order != Order::Weak {
            return Ok(None);
        }
        let Some(region) = self.region(block, warp, inst, access.space, bytes) else {
            return Ok(None);
        };
        let writable = match region.place {
            Place::Global { buffer, .. } => !self.memory.buffers[buffer].constant,
            Place::Shared(_) => true,
            _ => false,
        };
        if !writable || !self.plain(block, &region, !WRITTEN, 0) {
            return Ok(None);
        }
        self.touch_together(block, warp, &region, Touch::Write(access))?;
        let Block { warps, shared, .. } = block;
        let memory = match region.place {
            Place::Global { buffer, .. } => {
                let buffer = &mut self.memory.buffers[buffer];
                if let Some(written) = &mut buffer.written {
                    region.spans().for_each(|span| written[span].fill(true));
                }
                &mut buffer.bytes
            }
            _ => {
                let state = &mut shared.state;
                region.spans().for_each(|span| state[span].fill(WRITTEN));
                &mut shared.bytes
            }
        };
        let list = access.list as usize..access.list as usize + usize::from(access.count);
        for (index, slot) in self.entry.lists[list].iter().enumerate() {
            let row = &warps[warp].rows[*slot as usize];
            let skip = index * size;
            match size {
                1 => scatter::<1>(row, memory, &region, skip),
                2 => scatter::<2>(row, memory, &region, skip),
                4 => scatter::<4>(row, memory, &region, skip),
                _ => scatter::<8>(row, memory, &region, skip),
            }
        }
        self.count_region(&region, AccessKind::Write);
        Ok(Some(region.place))
    }

    /// Counts an access to a region.
    #[inline(always)]
    fn count_region(&mut self, region: &Region, kind: AccessKind) {
        if !self.options.pieces {
            return self.add_traffic(region.place, kind, region.bytes, Pieces::default());
        }
        let pattern = Pattern {
            first: region.address(region.active.trailing_zeros() as usize % LANES),
            alike: region.alike,
            bytes: region.bytes,
        };
        let runs = || region.runs().map(|run| (run, region.address(run.lane)));
        let addresses = || std::array::from_fn(|lane| region.address(lane));
        let (taken, ideal) = match region.place {
            Place::Global { .. } => (sectors_of(&pattern, runs(), region.active, addresses), 0),
            Place::Shared(_) => bank_passes_of(&pattern, runs, region.active, addresses),
            _ => return,
        };
        self.add_traffic(region.place, kind, region.bytes, Pieces { taken, ideal });
    }

    vectorised!(load_strongly, load_strongly_any, load_strongly_avx2);

    /// A strong load of all active lanes, in the same way; the warp keeps the values for its next poll.
    #[inline(always)]
    fn load_strongly_any(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
        access: &Access,
    ) -> Result<Option<Place>, Fault> {
        let bytes = access.ty.bytes() as usize * usize::from(access.count);
        if bytes > 8 {
            return Ok(None);
        }
        let Some(region) = self.region(block, warp, inst, access.space, bytes) else {
            return Ok(None);
        };
        if matches!(region.place, Place::Param(_))
            || !self.plain(block, &region, WRITTEN | ARRIVING | OBJECT, WRITTEN)
            || !self.touch_strongly(block, warp, &region, access)
        {
            return Ok(None);
        }
        self.fill(block, warp, access, &region);
        self.count_region(&region, AccessKind::Read);
        let Block { warps, shared, .. } = block;
        let memory = match region.place {
            Place::Global { buffer, .. } => &self.memory.buffers[buffer].bytes,
            _ => &shared.bytes,
        };
        let asked = match region.alike {
            true => region.active & region.active.wrapping_neg(),
            false => region.active,
        };
        let mut last = None;
        let places = lanes(asked).filter_map(|lane| {
            let at = region.offsets[lane] as usize;
            (last.replace(at) != Some(at)).then_some(at)
        });
        let values = places.map(|at| Polled::Value {
            place: match region.place {
                Place::Global { buffer, .. } => Place::Global { buffer, at },
                _ => Place::Shared(at),
            },
            bytes,
            value: number(&memory[at..at + bytes]),
        });
        warps[warp].keep_poll(self.at.pc, values);
        Ok(Some(region.place))
    }
}

/// The bits of states that are looked at and are not as needed. Most states come by four.
#[inline(always)]
fn unlike(states: &[u8], looked_at: u8, needed: u8) -> u32 {
    let (words, rest) = states.as_chunks::<4>();
    let [all_looked_at, all_needed] = [looked_at, needed].map(|bits| u32::from_le_bytes([bits; 4]));
    let rest = rest
        .iter()
        .fold(0, |all, state| all | (state & looked_at) ^ needed);
    words.iter().fold(u32::from(rest), |all, word| {
        all | (u32::from_le_bytes(*word) & all_looked_at) ^ all_needed
    })
}

/// Values of N bytes into a row.
#[inline(always)]
fn gather<const N: usize>(row: &mut Row, memory: &[u8], region: &Region, skip: usize) {
    if region.alike {
        let at = region.offsets[region.active.trailing_zeros() as usize % LANES] as usize + skip;
        let value = number(&memory[at..at + N]);
        if region.active == u32::MAX {
            row.fill(value);
            return;
        }
        // Chosen by bits: stores by masks take long on some processors.
        for (lane, to) in row.iter_mut().enumerate() {
            let kept = u64::from(region.active >> lane & 1).wrapping_sub(1);
            *to = value & !kept | *to & kept;
        }
        return;
    }
    let value = |bytes: &[u8]| {
        let mut value = [0; 8];
        value[..N].copy_from_slice(&bytes[..N]);
        u64::from_le_bytes(value)
    };
    if region.bytes as usize == N {
        for run in region.runs() {
            let from = memory[region.span(run)].chunks_exact(N);
            let to = &mut row[run.lane..run.lane + run.lanes];
            to.iter_mut()
                .zip(from)
                .for_each(|(to, from)| *to = value(from));
        }
        return;
    }
    for lane in lanes(region.active) {
        row[lane] = value(&memory[region.offsets[lane] as usize + skip..]);
    }
}

/// Values of a row as N bytes, values of later lanes last.
#[inline(always)]
fn scatter<const N: usize>(row: &Row, memory: &mut [u8], region: &Region, skip: usize) {
    if region.bytes as usize == N {
        for run in region.runs() {
            let to = memory[region.span(run)].chunks_exact_mut(N);
            let from = &row[run.lane..run.lane + run.lanes];
            to.zip(from)
                .for_each(|(to, from)| to.copy_from_slice(&from.to_le_bytes()[..N]));
        }
        return;
    }
    for lane in lanes(region.active) {
        let at = region.offsets[lane] as usize + skip;
        memory[at..at + N].copy_from_slice(&row[lane].to_le_bytes()[..N]);
    }
}
