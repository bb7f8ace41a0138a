//! Where a thread's patch lies.

use super::context::Context;
use crate::backend::gpu::abi::Patches;
use crate::backend::gpu::ir::{Operand, Type};
use crate::backend::gpu::kernel::{Access, IntCmp, IntOp, Kernel, Special};
use crate::patch::{Shape, WARP};
use std::collections::BTreeMap;

/// A patch.
pub(super) struct Patch {
    /// The tile's first cell along the axes, and the patch's first cell counted from it.
    pub origin: [Operand; 3],
    pub local: [Operand; 3],
    /// The number of the tile.
    pub tile: Operand,
    /// The number of the tile's list of entries, or -1.
    pub list: Operand,
    /// The number of the tile's room, or -1, and the thread's own place in it; none where no update is amended.
    pub room: Option<[Operand; 2]>,
    /// The beginning of shared memory, and the thread's own place in a slot.
    pub shared: Operand,
    pub slot: Operand,
    /// The place in a slot of the same thread of other rows: of the nearest one where there is no such row.
    pub others: BTreeMap<i64, Operand>,
}

/// The row of a thread along the inner axis, and its number in the row.
#[derive(Clone, Copy)]
struct Thread {
    row: Operand,
    number: Operand,
}

impl Thread {
    fn new(k: &mut Kernel<'_>, shape: &Shape) -> Thread {
        let [lane, warp] = [Special::Thread(0), Special::Thread(1)].map(|s| k.special(s));
        let row = shape.threads[2];
        if row == WARP {
            return Thread {
                row: warp,
                number: lane,
            };
        }
        let before = k.int(IntOp::Mul, warp, Operand::i32((WARP / row) as i32));
        let own = k.int(IntOp::Div, lane, Operand::i32(row as i32));
        Thread {
            row: k.int(IntOp::Add, before, own),
            number: k.int(IntOp::Rem, lane, Operand::i32(row as i32)),
        }
    }

    /// Its number in the block; `row`: another one.
    fn of_row(self, k: &mut Kernel<'_>, shape: &Shape, row: Operand) -> Operand {
        let first = k.int(IntOp::Mul, row, Operand::i32(shape.threads[2] as i32));
        let thread = k.int(IntOp::Add, first, self.number);
        k.resize(thread, Type::I64)
    }
}

impl Patch {
    pub fn new(k: &mut Kernel<'_>, context: &Context<'_>, shared: Operand) -> Patch {
        let program = context.program;
        let shape = &program.shape;
        let thread = Thread::new(k, shape);
        let [inner, outer] = [Special::Block(0), Special::Block(1)].map(|s| k.special(s));
        let scaled = |k: &mut Kernel<'_>, a: Operand, by: i64, plus: i64| {
            let product = k.int(IntOp::Mul, a, Operand::i32(by as i32));
            k.int(IntOp::Add, product, Operand::i32(plus as i32))
        };
        let zero = Operand::i32(0);
        let (middle, [tx, ty]) = match program.three {
            false => (zero, [thread.row, zero]),
            true => {
                let ys = Operand::i32(shape.threads[1] as i32);
                let of = [IntOp::Div, IntOp::Rem].map(|op| k.int(op, thread.row, ys));
                (k.special(Special::Block(2)), of)
            }
        };
        let (mut origin, mut local) = ([zero; 3], [zero; 3]);
        let [px, py, pz] = shape.patch;
        let all = [
            (outer, tx, px),
            (middle, ty, py),
            (inner, thread.number, pz),
        ];
        for n in program.axes() {
            let (block, own, patch) = all[n];
            let along = &program.along[n];
            origin[n] = scaled(k, block, along.base, -along.halo[0]);
            // Else it is known where each cell lies in the tile.
            if shape.threads[n] > 1 {
                local[n] = scaled(k, own, patch, 0);
            }
        }
        let mut row = outer;
        if program.three {
            let first = k.int(IntOp::Mul, row, Operand::i32(program.along[1].tiles as i32));
            row = k.int(IntOp::Add, first, middle);
        }
        let row = k.int(IntOp::Mul, row, Operand::i32(program.along[2].tiles as i32));
        let tile = k.int(IntOp::Add, row, inner);
        let wide = k.resize(tile, Type::I64);
        let list = k.advance(k.param(Patches::LISTS), wide, 4);
        let list = k.load(Type::I32, list, 4, Access::ReadOnly);
        let room = program.rooms.any().then(|| {
            let number = k.advance(k.param(Patches::ROOM_NUMBERS), wide, 4);
            let number = k.load(Type::I32, number, 4, Access::ReadOnly);
            let own = thread.of_row(k, shape, thread.row);
            let each = program.rooms.each(shape, context.bytes as usize);
            let there = k.int(IntOp::Max, number, Operand::i32(0));
            let there = k.resize(there, Type::I64);
            let by = k.int(IntOp::Mul, there, Operand::i64(each as i64));
            let place = k.advance(k.param(Patches::ROOMS), by, 1);
            [number, k.advance(place, own, context.bytes as u32)]
        });
        let slot_of = |k: &mut Kernel<'_>, row: Operand| {
            let own = thread.of_row(k, shape, row);
            k.advance(shared, own, context.bytes as u32)
        };
        let slot = slot_of(k, thread.row);
        let most = Operand::i32(shape.rows() as i32 - 1);
        let others = program.slots.others.iter().map(|by| {
            let other = k.int(IntOp::Add, thread.row, Operand::i32(*by as i32));
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
            others: others.collect(),
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
        for n in context.program.axes() {
            let along = &context.program.along[n];
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
