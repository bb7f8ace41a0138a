//! Sheets: the sides of folded axes, and which parts of a tile run apart from each other.
//!
//! Along a folded axis a tile has a part on each side, so with two folded axes it has a part on each of four sheets. An
//! update reads no farther than the program's reach, so a dependence goes from one side of an axis to the other only
//! where both of its events lie that near to the same end of the fold. A tile all of whose events are farther from both
//! ends has no dependence across that axis, for any other tiles: its parts on the two sides are independent of
//! everything on the other side. Where a tile comes near an end, its parts on the two sides are a *joint*, which runs
//! as a whole.

use super::span::Span;
use super::{Tile, TileProgram};
use crate::lattice::{Axis, Interval, div_ceil, div_floor};

/// A set of sheets, by index.
pub type SheetSet = u32;

/// The axes across which parts of a tile are joined, by the bits in which the indices of their sheets differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Joint(SheetSet);

impl Joint {
    /// Parts are joined across no axis.
    pub const NONE: Joint = Joint(0);

    /// The sheets of a tile that run together with one.
    pub fn with(self, sheet: usize) -> SheetSet {
        let Joint(bits) = self;
        let least = sheet as SheetSet & !bits;
        let members = (0..=bits).filter(|more| more & !bits == 0);
        members.fold(0, |set, more| set | 1 << (least | more))
    }

    /// The sets of sheets that run together, of a number of sheets.
    pub fn sets(self, sheets: usize) -> impl Iterator<Item = SheetSet> {
        let least = (0..sheets).filter(move |sheet| *sheet as SheetSet & self.0 == 0);
        least.map(move |sheet| self.with(sheet))
    }
}

/// The sheets of a set, in ascending order.
pub fn members(set: SheetSet) -> impl Iterator<Item = usize> {
    let mut rest = set;
    std::iter::from_fn(move || {
        let sheet = (rest != 0).then(|| rest.trailing_zeros() as usize);
        rest &= rest.wrapping_sub(1);
        sheet
    })
}

impl TileProgram {
    /// The axes along which tiles have parts that may run apart: the folded axes, except the inner one.
    fn sided(&self) -> impl Iterator<Item = Axis> {
        [Axis::OUTER, Axis::MIDDLE]
            .into_iter()
            .filter(|&axis| self.fold(axis).is_some())
    }

    /// How many sheets there are.
    pub fn sheets(&self) -> usize {
        1 << self.sided().count()
    }

    /// The bit in which the indices of two sheets differ that lie on different sides of an axis.
    fn bit(&self, axis: Axis) -> SheetSet {
        match axis {
            Axis::OUTER if self.fold(Axis::MIDDLE).is_some() => 2,
            _ => 1,
        }
    }

    /// The sides of an axis on which some of a set of sheets lie.
    pub(super) fn sides(&self, axis: Axis, set: SheetSet) -> impl Iterator<Item = Side> {
        let (fold, bit) = (self.fold(axis), self.bit(axis));
        let inner = axis == Axis::INNER;
        let on = move |far: bool| {
            inner || members(set).any(|sheet| (sheet as SheetSet & bit != 0) == far)
        };
        let sides = match fold {
            None => [Some(Side::Whole), None],
            Some(fold) => [
                on(false).then_some(Side::Near(fold)),
                on(true).then_some(Side::Far(fold)),
            ],
        };
        sides.into_iter().flatten()
    }

    /// The axes across which the parts of a tile are joined in some stages.
    pub fn joint(&self, tile: &Tile, numbers: Interval) -> Joint {
        let mut bits = 0;
        for axis in self.sided() {
            let Some(fold) = self.fold(axis) else {
                continue;
            };
            // In half cells; components of a cell lie up to half a cell apart.
            let near = 2 * self.reach[axis] + 1;
            let span = self.span(tile, numbers, axis);
            if !span.is_empty() && (span.lo <= near || 2 * span.hi >= fold - 2 * near) {
                bits |= self.bit(axis);
            }
        }
        Joint(bits)
    }
}

/// A side of a folded axis, or the whole of one that is not folded.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Whole,
    /// Positions up to half the fold, measured as they are.
    Near(i64),
    /// The others, measured backwards.
    Far(i64),
}

impl Side {
    /// Cell indices on this side whose folded positions lie in `span`, within `range`.
    pub fn indices(self, span: Span, stagger: i64, range: Interval) -> Interval {
        let place = match self {
            Side::Whole => span,
            Side::Near(fold) => span.meet(Span {
                lo: i64::MIN / 4,
                hi: fold / 2,
            }),
            Side::Far(fold) => Span {
                lo: (fold - span.hi).max(fold / 2 + 1),
                hi: fold - span.lo,
            },
        };
        if span.is_empty() || place.is_empty() {
            return Interval::new(0, 0);
        }
        Interval::new(
            div_ceil(place.lo - stagger, 2),
            div_floor(place.hi - stagger, 2) + 1,
        )
        .intersect(range)
    }

    /// The folded position of a cell index; `None` if it lies on the other side.
    pub fn position(self, index: i64, stagger: i64) -> Option<i64> {
        let place = 2 * index + stagger;
        match self {
            Side::Whole => Some(place),
            Side::Near(fold) => (place <= fold / 2).then_some(place),
            Side::Far(fold) => (place > fold / 2).then_some(fold - place),
        }
    }
}
