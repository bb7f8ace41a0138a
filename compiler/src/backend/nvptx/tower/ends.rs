//! Images along the vector axis, as the threads of a tower write them.
//!
//! Near an end of a line a value has an image beyond that end. All components have theirs in the same place but for a constant: on the lower side
//! that of index z is at -z, or a length of the ring farther; half-integer positions lie one index lower. So a thread knows one
//! displacement, and what few kinds of components need: whether the thread has an image of them. An image is then one store more, with a
//! condition. That matters, as the warps at the ends of a line write them for each row, and all others wait for these.

use super::super::ir::Operand;
use super::super::kernel::{IntCmp, IntOp, Kernel};
use super::write::{Round, Writer, holds};
use crate::lattice::Axis;
use crate::scheme::Boundary;

/// The image of a component that a thread writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct One {
    /// The thread has one.
    pub has: Operand,
    /// Elements from the thread's image to it.
    pub by: i64,
    /// Whether images have the other sign, on the lower and on the upper side.
    pub negated: [bool; 2],
}

/// What a thread knows of the ends of its line.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// Bytes from the thread's value to its image.
    pub by: Operand,
    /// The thread's image in slot 0.
    pub own: Operand,
    /// The thread is in the upper half of the line.
    pub upper: Operand,
    /// Per component; `None`: it has no images, or others than these.
    pub images: Vec<Option<One>>,
}

/// Where images lie: elements from index z, `factor * z + by`, on the lower and on the upper side.
type Sides = [(i64, i64); 2];

impl Ends {
    /// `None` where there is none.
    pub fn new(k: &mut Kernel<'_>, writer: &Writer<'_>) -> Option<Ends> {
        let axis = Axis::VECTOR;
        let grid = &writer.scheme.grid;
        let cells = grid.cells[axis];
        let half = cells / 2;
        let [below, above] = grid.boundary[axis];
        let sides = [
            if below == Boundary::Periodic {
                (0, cells)
            } else {
                (-2, 0)
            },
            if above == Boundary::Periodic {
                (0, -cells)
            } else {
                (-2, 2 * cells)
            },
        ];
        let found = writer.images.iter().map(|rounds| one(rounds, sides, half));
        let found: Vec<Option<(i64, [bool; 2])>> = found.collect();
        if found.iter().all(Option::is_none) {
            return None;
        }
        let upper = k.compare(IntCmp::Ge, writer.thread, Operand::i32(half as i32));
        let [below, above] = sides.map(|(factor, by)| {
            let of = k.int(
                IntOp::Mul,
                writer.thread,
                Operand::i32(writer.bytes(factor) as i32),
            );
            k.int(IntOp::Add, of, Operand::i32(writer.bytes(by) as i32))
        });
        let by = k.choose(upper, above, below);
        // Those that have an image of one kind have one of all that lie there.
        let mut known: Vec<(Vec<i64>, Operand)> = Vec::new();
        let mut images = Vec::new();
        for (found, rounds) in found.into_iter().zip(&writer.images) {
            images.push(found.map(|(by, negated)| {
                let sources: Vec<i64> = rounds[0].iter().map(|&(source, _)| source).collect();
                let same = known.iter().find(|(other, _)| *other == sources);
                let has = same.map(|(_, has)| *has).unwrap_or_else(|| {
                    let has = holds(k, writer.thread, sources.iter().copied());
                    known.push((sources, has));
                    has
                });
                One { has, by, negated }
            }));
        }
        Some(Ends {
            by,
            own: k.advance_by_word(writer.own, by),
            upper,
            images,
        })
    }
}

/// Whether a component's images lie where a thread has its image, but for a constant.
fn one(rounds: &[Round], sides: Sides, half: i64) -> Option<(i64, [bool; 2])> {
    let [round] = rounds else { return None };
    let side = |source: i64| usize::from(source >= half);
    let mut by = None;
    let mut negated = [None; 2];
    for &(source, image) in round {
        let (factor, constant) = sides[side(source)];
        let here = image.index - source - (factor * source + constant);
        let sign = &mut negated[side(source)];
        if *by.get_or_insert(here) != here || *sign.get_or_insert(image.negated) != image.negated {
            return None;
        }
    }
    let either = negated[0].or(negated[1]).unwrap_or(false);
    Some((by?, negated.map(|sign| sign.unwrap_or(either))))
}
