//! Rows of whole tiles, walked once and used for every tile of the same shape.
//!
//! A tile that no end of the grid cuts is the translate of another one if it lies alike relative to the lattice. The rows of one of
//! each kind are kept relative to an origin: the cell where the lower depths of two of its planes meet, rounded down. Rounding
//! commutes with shifts by whole cells, so translates have the same rows relative to their origins.

use super::{Segment, Tile, TileProgram};
use crate::lattice::{Axis, Interval, PerAxis, Region, div_floor};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Kinds of tiles that are kept.
const MOST_SHAPES: usize = 64;
/// Segments of a shape that are kept.
const MOST_SEGMENTS: usize = 1 << 16;
/// Elements of the longest vector.
const LANES: i64 = 16;
/// Farther from the origin than any tile reaches.
const FAR: i64 = 1 << 24;

/// The rows of one kind of tile.
#[derive(Debug)]
pub struct Shape {
    /// In running order, relative to the origin and to the band's first stage.
    pub segments: Vec<Segment>,
    /// Encloses the segments along the lean and diamond axes.
    bounds: Region,
}

/// The kinds of tiles met so far.
#[derive(Debug)]
pub struct Shapes {
    /// The program on a grid without ends; `None` where shapes cannot be used.
    open: Option<TileProgram>,
    /// Where all classes of all stages live.
    inner: Region,
    /// A plane that cuts the vector axis.
    across: Option<usize>,
    kept: BTreeMap<Vec<i64>, Option<Rc<Shape>>>,
}

impl Shapes {
    /// Shapes serve where no cut axis is folded and, if the vector axis is cut, all updates have the same range there.
    pub fn new(program: &TileProgram) -> Shapes {
        let across = program
            .planes
            .iter()
            .position(|p| p.form[Axis::VECTOR] != 0);
        let folded = program.ring[Axis::LEAN].is_some()
            || program.ring[Axis::DIAMOND].is_some()
            || (across.is_some() && program.ring[Axis::VECTOR].is_some());
        let ranges = || {
            program
                .stages
                .iter()
                .flatten()
                .map(|c| c.region[Axis::VECTOR])
        };
        let alike = ranges().all(|r| Some(r) == ranges().next());
        let usable = program.three_axes && !folded && (across.is_none() || alike);
        let mut open = program.clone();
        let mut inner = PerAxis::splat(Interval::new(-FAR, FAR));
        let axes = match across {
            Some(_) => &Axis::ALL[..],
            None => &[Axis::LEAN, Axis::DIAMOND],
        };
        for class in open.stages.iter_mut().flatten() {
            for &axis in axes {
                inner[axis] = inner[axis].intersect(class.region[axis]);
                class.region[axis] = Interval::new(-FAR, FAR);
            }
        }
        Shapes {
            open: usable.then_some(open),
            inner,
            across,
            kept: BTreeMap::new(),
        }
    }

    /// The shape of a tile and its origin; `None` if an end of the grid may cut the tile along the lean or diamond axis.
    pub fn find(&mut self, tile: &Tile, numbers: Interval) -> Option<(Rc<Shape>, PerAxis<i64>)> {
        let open = self.open.as_ref()?;
        // Depths at the band's first stage.
        let mut depths = Vec::with_capacity(tile.depths.len());
        for (plane, depth) in open.planes.iter().zip(&tile.depths) {
            let shift = plane.slope * numbers.lo;
            depths.push(Interval::new((*depth)?.lo - shift, (*depth)?.hi - shift));
        }
        let (i, j, det) = independent(open)?;
        let form = |p: usize| {
            (
                open.planes[p].form[Axis::LEAN],
                open.planes[p].form[Axis::DIAMOND],
            )
        };
        let ((a, b), (c, d)) = (form(i), form(j));
        // -depth = form * 2 (x, y), solved by Cramer's rule.
        let (p, q) = (-depths[i].lo, -depths[j].lo);
        let sign = det.signum();
        let x = div_floor(sign * (p * d - q * b), 2 * det.abs());
        let y = div_floor(sign * (a * q - c * p), 2 * det.abs());
        // Along the vector axis likewise, from one plane; a multiple of the longest vector keeps rows aligned.
        let z = self.across.map_or(0, |p| {
            let step = 2 * LANES * open.planes[p].form[Axis::VECTOR];
            LANES * div_floor(-depths[p].lo * step.signum(), step.abs())
        });
        let mut key = vec![numbers.len()];
        for (plane, depth) in open.planes.iter().zip(&mut depths) {
            let [a, b, c] = plane.form.0;
            let shift = 2 * (a * x + b * y + c * z);
            *depth = Interval::new(depth.lo + shift, depth.hi + shift);
            key.extend([depth.lo, depth.hi]);
        }
        if !self.kept.contains_key(&key) {
            if self.kept.len() >= MOST_SHAPES {
                return None;
            }
            let shape = walk_shape(open, &depths, numbers.len());
            self.kept.insert(key.clone(), shape.map(Rc::new));
        }
        let shape = self.kept.get(&key)?.clone()?;
        let within = |axis: Axis, origin: i64| {
            let b = shape.bounds[axis];
            let moved = Interval::new(b.lo + origin, b.hi + origin);
            b.is_empty() || moved.intersect(self.inner[axis]) == moved
        };
        (within(Axis::LEAN, x) && within(Axis::DIAMOND, y)).then_some((shape, PerAxis([x, y, z])))
    }

    /// A segment of a shape moved to an origin and cut at the ends of the vector axis; may be empty.
    pub fn place(&self, segment: &Segment, origin: PerAxis<i64>) -> Segment {
        let mut placed = *segment;
        for axis in Axis::ALL {
            placed.rows[axis].lo += origin[axis];
            placed.rows[axis].hi += origin[axis];
        }
        placed.rows[Axis::VECTOR] = placed.rows[Axis::VECTOR].intersect(self.inner[Axis::VECTOR]);
        placed
    }
}

/// Two planes whose forms are independent along the lean and diamond axes, and their determinant.
fn independent(program: &TileProgram) -> Option<(usize, usize, i64)> {
    let planes = &program.planes;
    for i in 0..planes.len() {
        for j in 0..i {
            let (p, q) = (planes[j].form, planes[i].form);
            let det = p[Axis::LEAN] * q[Axis::DIAMOND] - p[Axis::DIAMOND] * q[Axis::LEAN];
            if det != 0 {
                return Some((j, i, det));
            }
        }
    }
    None
}

fn walk_shape(open: &TileProgram, depths: &[Interval], stages: i64) -> Option<Shape> {
    let tile = Tile {
        depths: depths.iter().copied().map(Some).collect(),
    };
    let mut segments = Vec::new();
    let mut bounds: Region = PerAxis::splat(Interval::default());
    open.walk(&tile, Interval::new(0, stages), &mut |segment| {
        for axis in [Axis::LEAN, Axis::DIAMOND] {
            bounds[axis] = bounds[axis].hull(segment.rows[axis]);
        }
        if segments.len() <= MOST_SEGMENTS {
            segments.push(*segment);
        }
    });
    (segments.len() <= MOST_SEGMENTS).then_some(Shape { segments, bounds })
}
