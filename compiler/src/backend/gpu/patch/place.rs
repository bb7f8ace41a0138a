//! Where a thread's patch lies.

use super::context::Context;
use crate::backend::gpu::abi::Patches;
use crate::backend::gpu::ir::{Operand, Type};
use crate::backend::gpu::kernel::{Access, IntCmp, IntOp, Kernel, Special};
use crate::patch::WARP;
use std::collections::BTreeMap;

/// A patch.
pub(super) struct Patch {
    /// The tile's first cell along the outer and the inner axis, and the patch's first cell counted from it.
    pub origin: [Operand; 2],
    pub local: [Operand; 2],
    /// The number of the tile.
    pub tile: Operand,
    /// The number of the tile's list of entries, or -1.
    pub list: Operand,
    /// The number of the tile's room, or -1, and the thread's own place in it; none where no update is amended.
    pub room: Option<[Operand; 2]>,
    /// The beginning of shared memory, and the thread's own place in a slot.
    pub shared: Operand,
    pub slot: Operand,
    /// The place in a slot of the same lane of other warps: of the nearest one where there is no such warp.
    pub warps: BTreeMap<i64, Operand>,
}

impl Patch {
    pub fn new(k: &mut Kernel<'_>, context: &Context<'_>, shared: Operand) -> Patch {
        let program = context.program;
        let [lane, warp] = [Special::Thread(0), Special::Thread(1)].map(|s| k.special(s));
        let [inner, outer] = [Special::Block(0), Special::Block(1)].map(|s| k.special(s));
        let scaled = |k: &mut Kernel<'_>, a: Operand, by: i64, plus: i64| {
            let product = k.int(IntOp::Mul, a, Operand::i32(by as i32));
            k.int(IntOp::Add, product, Operand::i32(plus as i32))
        };
        let [along_x, along_z] = &program.along;
        let origin = [
            scaled(k, outer, along_x.base, -along_x.halo[0]),
            scaled(k, inner, along_z.base, -along_z.halo[0]),
        ];
        let [px, pz] = program.shape.patch;
        let local = [scaled(k, warp, px, 0), scaled(k, lane, pz, 0)];
        let row = k.int(IntOp::Mul, outer, Operand::i32(along_z.tiles as i32));
        let tile = k.int(IntOp::Add, row, inner);
        let wide = k.resize(tile, Type::I64);
        let list = k.advance(k.param(Patches::LISTS), wide, 4);
        let list = k.load(Type::I32, list, 4, Access::ReadOnly);
        let room = program.rooms.any().then(|| {
            let number = k.advance(k.param(Patches::ROOM_NUMBERS), wide, 4);
            let number = k.load(Type::I32, number, 4, Access::ReadOnly);
            let first = k.int(IntOp::Mul, warp, Operand::i32(WARP as i32));
            let thread = k.int(IntOp::Add, first, lane);
            let thread = k.resize(thread, Type::I64);
            let each = program.rooms.each(&program.shape, context.bytes as usize);
            let there = k.int(IntOp::Max, number, Operand::i32(0));
            let there = k.resize(there, Type::I64);
            let by = k.int(IntOp::Mul, there, Operand::i64(each as i64));
            let place = k.advance(k.param(Patches::ROOMS), by, 1);
            [number, k.advance(place, thread, context.bytes as u32)]
        });
        let slot_of = |k: &mut Kernel<'_>, warp: Operand| {
            let first = k.int(IntOp::Mul, warp, Operand::i32(WARP as i32));
            let thread = k.int(IntOp::Add, first, lane);
            let thread = k.resize(thread, Type::I64);
            k.advance(shared, thread, context.bytes as u32)
        };
        let slot = slot_of(k, warp);
        let most = Operand::i32(program.shape.warps as i32 - 1);
        let warps = program.slots.warps.iter().map(|by| {
            let other = k.int(IntOp::Add, warp, Operand::i32(*by as i32));
            let other = k.int(IntOp::Max, other, Operand::i32(0));
            let other = k.int(IntOp::Min, other, most);
            (*by, slot_of(k, other))
        });
        Patch {
            origin,
            local,
            tile,
            list,
            room,
            shared,
            slot,
            warps: warps.collect(),
        }
    }

    /// Whether the tile has cells in which updates are amended; `None`: no tile has.
    pub fn has_room(&self, k: &mut Kernel<'_>) -> Option<Operand> {
        let [number, _] = self.room?;
        Some(k.compare(IntCmp::Ge, number, Operand::i32(0)))
    }

    /// Whether no end of the grid lies in the tile, and nothing acts in it but updates, everywhere.
    pub fn is_bare(&self, k: &mut Kernel<'_>, context: &Context<'_>) -> Operand {
        let mut bare = k.compare(IntCmp::Lt, self.list, Operand::i32(0));
        if let Some([number, _]) = self.room {
            let without = k.compare(IntCmp::Lt, number, Operand::i32(0));
            bare = k.int(IntOp::And, bare, without);
        }
        let tile = context.program.shape.tile();
        for (n, along) in context.program.along.iter().enumerate() {
            let bound = |n: i64| n.clamp(-1, i64::from(i32::MAX)) as i32;
            let first = Operand::i32(bound(along.bare.lo));
            // A grid that is shorter than a tile has no bare ones.
            let last = Operand::i32(bound(along.bare.hi - tile[n]));
            let begins = k.compare(IntCmp::Ge, self.origin[n], first);
            let ends = k.compare(IntCmp::Le, self.origin[n], last);
            let inside = k.int(IntOp::And, begins, ends);
            bare = k.int(IntOp::And, bare, inside);
        }
        bare
    }

    /// The patch's first cell along an axis.
    pub fn first(&self, k: &mut Kernel<'_>, n: usize) -> Operand {
        k.int(IntOp::Add, self.origin[n], self.local[n])
    }
}
