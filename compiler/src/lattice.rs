//! Axes, indices and regions on the staggered lattice: exact integers only.
//!
//! Cell `i` of an axis spans positions `i` to `i + 1` in units of the cell size. Nodes lie at `i`, cell centres at
//! `i + 1/2`. Positions are integers on the doubled lattice ([`HalfIndex`]), so no position is ever a float.

use std::fmt;
use std::ops::{Add, Index, IndexMut, Mul, Neg, Rem, Sub};

/// A role of an axis. Schemes with fewer axes use fewer roles: two axes are `OUTER` and `INNER`, one is `INNER`.
/// An absent axis has one cell, position 0 and no reach, so that later stages need not know the dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Axis(u8);

impl Axis {
    /// The first axis: slowest in memory; towers lean along it.
    pub const OUTER: Axis = Axis(0);
    /// The middle axis of three: carries parallel towers.
    pub const MIDDLE: Axis = Axis(1);
    /// The last axis: contiguous in memory, carries vector lanes.
    pub const INNER: Axis = Axis(2);
    pub const ALL: [Axis; 3] = [Axis::OUTER, Axis::MIDDLE, Axis::INNER];

    /// The roles that a scheme with `count` axes uses, in the order of its axes.
    pub fn roles(count: usize) -> &'static [Axis] {
        match count {
            1 => &[Axis::INNER],
            2 => &[Axis::OUTER, Axis::INNER],
            _ => &Axis::ALL,
        }
    }

    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(["outer", "middle", "inner"][self.index()])
    }
}

/// One value for each of the three roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PerAxis<T>(pub [T; 3]);

impl<T> PerAxis<T> {
    // Written out, since `array::map` is not inlined across code generation units.
    #[inline]
    pub fn from_fn(mut f: impl FnMut(Axis) -> T) -> Self {
        let [outer, middle, inner] = Axis::ALL;
        Self([f(outer), f(middle), f(inner)])
    }

    #[inline]
    pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> PerAxis<U> {
        let [outer, middle, inner] = self.0;
        PerAxis([f(outer), f(middle), f(inner)])
    }

    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (Axis, &T)> {
        Axis::ALL.into_iter().zip(&self.0)
    }
}

impl<T: Copy> PerAxis<T> {
    #[inline]
    pub fn splat(value: T) -> Self {
        Self([value; 3])
    }

    /// The same with another value along an axis.
    #[inline]
    pub fn with(mut self, axis: Axis, value: T) -> Self {
        self[axis] = value;
        self
    }
}

impl<T> Index<Axis> for PerAxis<T> {
    type Output = T;
    #[inline]
    fn index(&self, axis: Axis) -> &T {
        &self.0[axis.index()]
    }
}

impl<T> IndexMut<Axis> for PerAxis<T> {
    #[inline]
    fn index_mut(&mut self, axis: Axis) -> &mut T {
        &mut self.0[axis.index()]
    }
}

/// A length or position in half cells: `HalfIndex(3)` is 3/2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HalfIndex(pub i64);

impl HalfIndex {
    pub const ZERO: HalfIndex = HalfIndex(0);
    pub const HALF: HalfIndex = HalfIndex(1);

    #[inline]
    pub fn cells(n: i64) -> Self {
        Self(2 * n)
    }

    #[inline]
    pub fn is_half(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whole cells, without a half.
    #[inline]
    pub fn whole(self) -> i64 {
        self.0.div_euclid(2)
    }

    #[inline]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 2.0
    }
}

impl Add for HalfIndex {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for HalfIndex {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Neg for HalfIndex {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl fmt::Display for HalfIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_half() {
            write!(f, "{}/2", self.0)
        } else {
            write!(f, "{}", self.0 / 2)
        }
    }
}

/// Where a component lies in its cell: 0 or 1/2 along each axis.
pub type Position = PerAxis<HalfIndex>;

/// A distance in whole cells, from a target's cell index to the cell index of a value that it reads.
pub type Offset = PerAxis<i32>;

/// A half-open range `lo..hi` of cell indices; empty if `lo >= hi`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interval {
    pub lo: i64,
    pub hi: i64,
}

impl Interval {
    #[inline]
    pub fn new(lo: i64, hi: i64) -> Self {
        Self { lo, hi }
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self.lo >= self.hi
    }

    #[inline]
    pub fn len(self) -> i64 {
        (self.hi - self.lo).max(0)
    }

    #[inline]
    pub fn contains(self, i: i64) -> bool {
        self.lo <= i && i < self.hi
    }

    #[inline]
    pub fn intersect(self, other: Self) -> Self {
        Self::new(self.lo.max(other.lo), self.hi.min(other.hi))
    }

    /// The smallest interval that covers both; an empty one counts as nothing.
    #[inline]
    pub fn hull(self, other: Self) -> Self {
        if self.is_empty() {
            other
        } else if other.is_empty() {
            self
        } else {
            Self::new(self.lo.min(other.lo), self.hi.max(other.hi))
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.lo, self.hi)
    }
}

/// A box of cell indices.
pub type Region = PerAxis<Interval>;

impl Region {
    #[inline]
    pub fn intersect(self, other: Region) -> Region {
        Region::from_fn(|a| self[a].intersect(other[a]))
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().any(|i| i.is_empty())
    }

    #[inline]
    pub fn contains(&self, at: PerAxis<i64>) -> bool {
        self.iter().all(|(a, i)| i.contains(at[a]))
    }

    /// The number of cells; saturates.
    #[inline]
    pub fn volume(&self) -> u64 {
        if self.is_empty() {
            return 0;
        }
        self.0
            .iter()
            .fold(1u64, |n, i| n.saturating_mul(i.len() as u64))
    }
}

/// Calls `f` for every index of a region, inner axis fastest.
pub fn for_each_index(region: Region, mut f: impl FnMut(PerAxis<i64>)) {
    let [x, y, z] = region.0;
    for i in x.lo..x.hi {
        for j in y.lo..y.hi {
            for k in z.lo..z.hi {
                f(PerAxis([i, j, k]));
            }
        }
    }
}

/// Floor division for any sign of `a`; `b` must be positive.
#[inline]
pub fn div_floor(a: i64, b: i64) -> i64 {
    a.div_euclid(b)
}

/// Ceiling division for any sign of `a`; `b` must be positive.
#[inline]
pub fn div_ceil(a: i64, b: i64) -> i64 {
    -(-a).div_euclid(b)
}

/// The greatest common divisor of numbers that are not negative; that of 0 and a number is the number.
pub fn gcd<N: Copy + Default + PartialEq + Rem<Output = N>>(mut a: N, mut b: N) -> N {
    while b != N::default() {
        (a, b) = (b, a % b);
    }
    a
}

/// Indices, or a displacement, along the outer and the middle axis: where a group of rows lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
    pub x: i64,
    pub y: i64,
}

impl Group {
    pub fn new(x: i64, y: i64) -> Group {
        Group { x, y }
    }

    /// Along the outer axis, then along the middle axis.
    pub fn array(self) -> [i64; 2] {
        [self.x, self.y]
    }

    pub fn map(self, mut f: impl FnMut(i64) -> i64) -> Group {
        Group::new(f(self.x), f(self.y))
    }
}

impl From<[i64; 2]> for Group {
    fn from([x, y]: [i64; 2]) -> Group {
        Group { x, y }
    }
}

impl Add for Group {
    type Output = Group;
    fn add(self, other: Group) -> Group {
        Group::new(self.x + other.x, self.y + other.y)
    }
}

impl Sub for Group {
    type Output = Group;
    fn sub(self, other: Group) -> Group {
        Group::new(self.x - other.x, self.y - other.y)
    }
}

impl Mul<i64> for Group {
    type Output = Group;
    fn mul(self, by: i64) -> Group {
        self.map(|n| n * by)
    }
}
