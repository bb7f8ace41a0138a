//! Loads and stores of a warp whose lanes all access one region of memory: what holds for the region is found once.
//!
//! Whatever is special about a lane is left to the accesses lane by lane ([`crate::access`]), which say what is wrong.

use crate::access::{Place, Region};
use crate::alu::{LANES, Row, lanes};
use crate::block::{ARRIVING, Block, OBJECT, WRITTEN};
use crate::error::Fault;
use crate::launch::Launch;
use crate::memory::{PARAM_BASE, SHARED_BASE};
use crate::op::{Access, Order, Space, mask, sign_extend};
use crate::order::Touch;

impl Launch<'_> {
    /// The region that an access lies in, if all lanes are in bounds and aligned.
    fn region(
        &mut self,
        block: &Block,
        space: Space,
        addresses: &Row,
        bytes: usize,
    ) -> Option<Region> {
        let active = self.at.active;
        let first = addresses[active.trailing_zeros() as usize];
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
        let (mut offsets, mut beyond, mut bits) = ([0; LANES], 0, 0);
        for (lane, address) in addresses.iter().enumerate() {
            let offset = address.wrapping_sub(base);
            let is_active = active >> lane & 1;
            beyond |= u32::from(offset > last) & is_active;
            bits |= address & u64::from(is_active).wrapping_neg();
            offsets[lane] = offset as usize;
        }
        let aligned = bytes.is_power_of_two() && bits & (bytes as u64 - 1) == 0;
        (beyond == 0 && aligned).then_some(Region {
            place,
            offsets,
            bytes,
        })
    }

    /// Whether every byte of a region is as it is for most accesses, so that nothing has to be said of any lane.
    fn plain(&self, block: &Block, region: &Region, is_plain: impl Fn(u8) -> bool) -> bool {
        let mut spans = lanes(self.at.active).map(|lane| region.span(lane));
        match region.place {
            Place::Global { buffer, .. } => {
                let written = self.memory.buffers[buffer].written.as_ref();
                self.claims.is_empty()
                    && written.is_none_or(|written| {
                        spans.all(|span| written[span].iter().all(|byte| is_plain(u8::from(*byte))))
                    })
            }
            Place::Shared(_) => {
                let state = &block.shared.state;
                spans.all(|span| state[span].iter().all(|state| is_plain(*state)))
            }
            _ => true,
        }
    }

    /// A load of all active lanes; where it went, unless it has to be done lane by lane.
    pub(crate) fn load_together(
        &mut self,
        block: &mut Block,
        warp: usize,
        access: &Access,
        addresses: &Row,
    ) -> Result<Option<Place>, Fault> {
        let size = access.ty.bytes() as usize;
        let bytes = size * usize::from(access.count);
        if access.order != Order::Weak {
            return Ok(None);
        }
        let Some(region) = self.region(block, access.space, addresses, bytes) else {
            return Ok(None);
        };
        let is_value = |state| state & (WRITTEN | ARRIVING | OBJECT) == WRITTEN;
        if !self.plain(block, &region, is_value) {
            return Ok(None);
        }
        self.touch_together(block, warp, &region, addresses, Touch::Read(access))?;
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
                1 => gather::<1>(row, memory, &region, skip, self.at.active),
                2 => gather::<2>(row, memory, &region, skip, self.at.active),
                4 => gather::<4>(row, memory, &region, skip, self.at.active),
                _ => gather::<8>(row, memory, &region, skip, self.at.active),
            }
            if access.ty.is_signed() {
                let (from, to) = (access.ty.bits(), mask(u32::from(access.width)));
                for lane in lanes(self.at.active) {
                    row[lane] = sign_extend(row[lane], from) as u64 & to;
                }
            }
        }
        Ok(Some(region.place))
    }

    /// A store of all active lanes; where it went, unless it has to be done lane by lane.
    pub(crate) fn store_together(
        &mut self,
        block: &mut Block,
        warp: usize,
        access: &Access,
        addresses: &Row,
    ) -> Result<Option<Place>, Fault> {
        let size = access.ty.bytes() as usize;
        let bytes = size * usize::from(access.count);
        if access.order != Order::Weak {
            return Ok(None);
        }
        let Some(region) = self.region(block, access.space, addresses, bytes) else {
            return Ok(None);
        };
        let writable = match region.place {
            Place::Global { buffer, .. } => !self.memory.buffers[buffer].constant,
            Place::Shared(_) => true,
            _ => false,
        };
        if !writable || !self.plain(block, &region, |state| state & !WRITTEN == 0) {
            return Ok(None);
        }
        self.touch_together(block, warp, &region, addresses, Touch::Write(access))?;
        let Block { warps, shared, .. } = block;
        let spans = || lanes(self.at.active).map(|lane| region.span(lane));
        let memory = match region.place {
            Place::Global { buffer, .. } => {
                let buffer = &mut self.memory.buffers[buffer];
                if let Some(written) = &mut buffer.written {
                    spans().for_each(|span| written[span].fill(true));
                }
                &mut buffer.bytes
            }
            _ => {
                spans().for_each(|span| shared.state[span].fill(WRITTEN));
                &mut shared.bytes
            }
        };
        let list = access.list as usize..access.list as usize + usize::from(access.count);
        for (index, slot) in self.entry.lists[list].iter().enumerate() {
            let row = &warps[warp].rows[*slot as usize];
            let skip = index * size;
            match size {
                1 => scatter::<1>(row, memory, &region, skip, self.at.active),
                2 => scatter::<2>(row, memory, &region, skip, self.at.active),
                4 => scatter::<4>(row, memory, &region, skip, self.at.active),
                _ => scatter::<8>(row, memory, &region, skip, self.at.active),
            }
        }
        Ok(Some(region.place))
    }
}

/// Values of N bytes into a row.
fn gather<const N: usize>(row: &mut Row, memory: &[u8], region: &Region, skip: usize, active: u32) {
    for lane in lanes(active) {
        let at = region.offsets[lane] + skip;
        let mut value = [0; 8];
        value[..N].copy_from_slice(&memory[at..at + N]);
        row[lane] = u64::from_le_bytes(value);
    }
}

/// Values of a row as N bytes, those of later lanes last.
fn scatter<const N: usize>(
    row: &Row,
    memory: &mut [u8],
    region: &Region,
    skip: usize,
    active: u32,
) {
    for lane in lanes(active) {
        let at = region.offsets[lane] + skip;
        memory[at..at + N].copy_from_slice(&row[lane].to_le_bytes()[..N]);
    }
}
