//! Values that threads of a warp give each other.

use super::Kernel;
use crate::backend::gpu::ir::{Operand, Type};

impl Kernel<'_> {
    /// The number of the lane at a distance of `by`, or the own one where the warp has no such lane. All threads of the
    /// warp reach this place.
    pub fn from_lane(&mut self, number: Operand, by: i32) -> Operand {
        if number.ty.bytes() == 4 {
            return self.shuffle("f32", number, by);
        }
        let pair = self.result(
            Type::vector(crate::scheme::Precision::F32, 2),
            format_args!("bitcast {} to <2 x float>", number.typed()),
        );
        let halves = [0, 1].map(|lane| {
            let half = self.lane(pair, lane);
            self.shuffle("f32", half, by)
        });
        let pair = self.pack(&halves);
        self.result(
            number.ty,
            format_args!("bitcast {} to {}", pair.typed(), number.ty),
        )
    }

    /// The word of the lane of this number. All threads of the warp reach this place.
    pub fn of_lane(&mut self, word: Operand, number: i32) -> Operand {
        let args = [
            Operand::i32(-1),
            word,
            Operand::i32(number),
            Operand::i32(31),
        ];
        self.value_of("llvm.nvvm.shfl.sync.idx.i32", word.ty, &args)
    }

    fn shuffle(&mut self, suffix: &str, word: Operand, by: i32) -> Operand {
        // The last lane that a thread may read: below its own, or above.
        let (way, last) = if by < 0 { ("up", 0) } else { ("down", 31) };
        let name = format!("llvm.nvvm.shfl.sync.{way}.{suffix}");
        let by = by.unsigned_abs() as i32;
        let args = [Operand::i32(-1), word, Operand::i32(by), Operand::i32(last)];
        self.value_of(&name, word.ty, &args)
    }
}
