//! Where rows are in memory, as the assembler should compute it.

use super::super::ir::Operand;
use super::super::kernel::{IntOp, Kernel};
use super::write::Writer;
use crate::lattice::Axis;
use crate::tile::residency::Place;
use std::collections::BTreeMap;

/// Pointers to rows, from one in the origin's group on. Where planes across the first axis are so far apart that accesses to memory do not
/// add that by themselves, each plane has a pointer, made in a way that the assembler does not see through. Else it makes one for each
/// access, well before it is needed: dozens of registers.
pub(super) struct Planes {
    origin: Operand,
    /// Bytes between planes, as the assembler does not know them.
    stride: Option<Operand>,
    known: BTreeMap<i64, Operand>,
}

impl Planes {
    pub fn new(origin: Operand) -> Planes {
        Planes {
            origin,
            stride: None,
            known: BTreeMap::new(),
        }
    }

    /// Where a row is.
    pub fn row(&mut self, k: &mut Kernel<'_>, writer: &Writer<'_>, place: Place) -> Operand {
        let far = writer.distance(place);
        let stride = writer.bytes(writer.layout.stride[Axis::OUTER]);
        let (Ok(by), Ok(x)) = (i32::try_from(stride), i32::try_from(place.x)) else {
            return k.offset(self.origin, far);
        };
        if x == 0 || (-writer.near..writer.near).contains(&far) {
            return k.offset(self.origin, far);
        }
        let stride = *self.stride.get_or_insert_with(|| {
            let zero = k.unknown_zero(false);
            k.int(IntOp::Add, zero, Operand::i32(by))
        });
        let plane = *self.known.entry(place.x).or_insert_with(|| {
            let code = "mad.wide.s32 $0, $1, $2, $3;";
            let args = [stride, Operand::i32(x), self.origin];
            k.assembly(code, "=l,r,n,l", &[self.origin.ty], &args, false)[0]
        });
        k.offset(plane, far - place.x * i64::from(by))
    }
}
