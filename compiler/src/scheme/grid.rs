//! The grid: axes, cells, and boundaries at the ends of the domain.

use crate::lattice::{Axis, HalfIndex, Interval, PerAxis, Position, Region};

/// The values that a read beyond one end of an axis sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// Zeros.
    Zero,
    /// The other end (both sides of an axis).
    Periodic,
    /// The mirror image about the end plane (position 0 or N): components at integer positions are odd (and 0 on the
    /// plane), components at half-integer positions even. The perfect electric conductor of Maxwell's equations.
    Pec,
    /// The opposite parities.
    Pmc,
    /// A mirror about the end plane with parities of its own.
    Mirror(OddPositions),
}

impl Boundary {
    /// Whether components at a position are odd about the plane of an end of `axis`. `None`: the end is no mirror.
    #[inline]
    pub fn is_odd(self, axis: Axis, position: Position) -> Option<bool> {
        match self {
            Boundary::Zero | Boundary::Periodic => None,
            Boundary::Pec => Some(!position[axis].is_half()),
            Boundary::Pmc => Some(position[axis].is_half()),
            Boundary::Mirror(odd) => Some(odd.contains(position)),
        }
    }

    #[inline]
    pub fn is_mirror(self) -> bool {
        !matches!(self, Boundary::Zero | Boundary::Periodic)
    }
}

/// Positions in a cell: the positions of the components that are odd about a plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OddPositions(u8);

impl OddPositions {
    /// One bit for each of the eight positions: its number has the half of axis n in bit n.
    pub fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    pub fn insert(&mut self, position: Position) {
        self.0 |= Self::bit(position);
    }

    pub fn contains(self, position: Position) -> bool {
        self.0 & Self::bit(position) != 0
    }

    fn bit(position: Position) -> u8 {
        let place = |(axis, p): (Axis, &HalfIndex)| u8::from(p.is_half()) << axis.index();
        1 << position.iter().map(place).sum::<u8>()
    }

    pub fn positions(self) -> impl Iterator<Item = Position> {
        let position = |i: u8| Position::from_fn(|a| HalfIndex(i64::from(i >> a.index() & 1)));
        (0..8).map(position).filter(move |p| self.contains(*p))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// The names of the axes that the scheme has; `None`: absent.
    pub axes: PerAxis<Option<String>>,
    /// Cells per axis; 1 for an absent one.
    pub cells: PerAxis<i64>,
    /// The size of a cell.
    pub spacing: PerAxis<f64>,
    /// The time step.
    pub dt: f64,
    /// Lower and upper side.
    pub boundary: PerAxis<[Boundary; 2]>,
}

/// Where a read beyond the domain finds its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Located {
    Stored { at: PerAxis<i64>, negated: bool },
    Zero,
}

impl Grid {
    pub fn dimensions(&self) -> usize {
        self.axes.0.iter().flatten().count()
    }

    /// The cells of the grid, as models count with them.
    pub fn cell_count(&self) -> f64 {
        self.cells.0.iter().map(|&n| n as f64).product()
    }

    /// The axes that exist, in the user's order.
    pub fn present(&self) -> impl Iterator<Item = Axis> + '_ {
        Axis::ALL.into_iter().filter(|&a| self.axes[a].is_some())
    }

    /// The name of an axis; empty for an absent one.
    pub fn axis_name(&self, axis: Axis) -> &str {
        self.axes[axis].as_deref().unwrap_or("")
    }

    #[inline]
    pub fn is_periodic(&self, axis: Axis) -> bool {
        self.boundary[axis][0] == Boundary::Periodic
    }

    /// The index of the same place among the indices from `first` on around a periodic axis; on other axes the index
    /// itself.
    #[inline]
    pub fn around(&self, axis: Axis, index: i64, first: i64) -> i64 {
        match self.is_periodic(axis) {
            true => first + (index - first).rem_euclid(self.cells[axis]),
            false => index,
        }
    }

    /// The indices that a component at `position` stores: one per cell, and the end plane of an axis on which its
    /// upper mirror is even. Index 0 lies at the position: a component at position 1 has no value at 0.
    #[inline]
    pub fn extent(&self, position: Position) -> Region {
        Region::from_fn(|a| {
            let plane = !position[a].is_half()
                && self.axes[a].is_some()
                && self.boundary[a][1].is_odd(a, position) == Some(false);
            Interval::new(0, self.cells[a] + i64::from(plane) - position[a].whole())
        })
    }

    /// The indices whose values are free; the others are 0 because they lie on a plane about which they are odd.
    #[inline]
    pub fn live(&self, position: Position) -> Region {
        let mut live = self.extent(position);
        for axis in Axis::ALL {
            if self.axes[axis].is_some()
                && self.boundary[axis][0].is_odd(axis, position) == Some(true)
                && position[axis] == HalfIndex::ZERO
            {
                live[axis].lo = 1;
            }
        }
        live
    }

    /// Where the value at `at` of a component at `position` comes from. `at` may lie outside by less than the domain's
    /// width.
    #[inline]
    pub fn resolve(&self, position: Position, at: PerAxis<i64>) -> Located {
        let extent = self.extent(position);
        let live = self.live(position);
        let mut found = at;
        let mut negated = false;
        for axis in Axis::ALL {
            let range = extent[axis];
            let i = at[axis];
            if !range.contains(i) {
                let n = self.cells[axis];
                let side = usize::from(i >= range.hi);
                let plane = if side == 0 { 0 } else { n };
                let boundary = self.boundary[axis][side];
                let (index, odd) = match boundary.is_odd(axis, position) {
                    Some(odd) => (2 * plane - i - position[axis].0, odd),
                    None if boundary == Boundary::Periodic => (i.rem_euclid(n), false),
                    None => return Located::Zero,
                };
                if !range.contains(index) {
                    return Located::Zero;
                }
                found[axis] = index;
                negated ^= odd;
            }
            if !live[axis].contains(found[axis]) {
                return Located::Zero;
            }
        }
        Located::Stored { at: found, negated }
    }
}
