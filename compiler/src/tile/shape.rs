//! Rows of whole tiles, walked once and used for every tile of the same shape.
//!
//! Without ends of the grid, two tiles that lie alike relative to the lattice are translates of each other. The rows of
//! one of each kind are kept relative to an origin: the cell where the lower depths of some of its planes meet, rounded
//! down. Rounding commutes with shifts by whole cells, so translates have the same rows relative to their origins.
//! Parts beyond the ends are cut off when a shape is placed. Along an axis that no plane cuts all tiles reach from end
//! to end; there the origin is 0, and shapes have the ends of the grid.
//!
//! A folded axis is two sides, on one of which positions count backwards. There a plane's form changes its sign along
//! that axis and its depths shift by the ring, so a tile has a shape on each sector.

use super::sheets::SheetSet;
use super::{Plane, Segment, Tile, TileProgram};
use crate::distinct::distinct;
use crate::lattice::{Axis, Interval, PerAxis, Region, div_floor};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Kinds of tiles that are kept, for each sector.
const MOST_SHAPES: usize = 64;
/// Segments of a shape that are kept.
const MOST_SEGMENTS: usize = 1 << 16;
/// Elements of the longest vector.
const LANES: i64 = 16;
/// Farther than any grid and any tile of a shape reach.
const FAR: i64 = 1 << 32;

/// The rows of one kind of tile.
#[derive(Debug)]
pub struct Shape {
    /// In running order, relative to the origin and to the time block's first stage.
    pub segments: Vec<Segment>,
    /// Where the segments of each stage begin, and the end of all.
    starts: Vec<usize>,
    /// Encloses the segments.
    bounds: Region,
    /// Encloses the segments of each stage.
    stage_bounds: Vec<Region>,
}

impl Shape {
    /// The segments of a stage, counted from the time block's first.
    pub fn of_stage(&self, number: i64) -> &[Segment] {
        &self.segments[self.starts[number as usize]..self.starts[number as usize + 1]]
    }

    /// Encloses the segments of some stages.
    fn bounds_in(&self, stages: Interval) -> Region {
        let own = &self.stage_bounds[stages.lo as usize..stages.hi as usize];
        let none = PerAxis::splat(Interval::default());
        own.iter()
            .fold(none, |all, b| PerAxis::from_fn(|a| all[a].hull(b[a])))
    }
}

/// The kinds of tiles met so far.
#[derive(Debug)]
pub struct Shapes {
    /// Empty where shapes cannot be used.
    sectors: Vec<Sector>,
}

/// A part of the grid in which positions along each axis count one way.
#[derive(Debug)]
struct Sector {
    /// The sheet that it lies on; its index.
    sheet: usize,
    anchor: Anchor,
    /// The program on a grid without ends along the axes that planes cut.
    open: TileProgram,
    /// Per plane, from the program's depths to this sector's.
    shift: Vec<i64>,
    /// Per stage and class, where it lives.
    regions: Vec<Vec<Region>>,
    /// Where all classes of all stages live; everything along axes that no plane cuts.
    inner: Region,
    /// Where some class of some stage lives; likewise.
    outer: Region,
    /// All classes have the same ends along the inner axis.
    even: bool,
    kept: BTreeMap<Vec<i64>, Option<Rc<Shape>>>,
}

/// The part of a tile that lies on one sector.
#[derive(Clone, Debug)]
pub struct Part {
    pub shape: Rc<Shape>,
    /// The cell that the shape's rows are relative to.
    pub origin: PerAxis<i64>,
    /// Whether an end of the sector cuts it along an axis, so that some of its rows are cut or lack classes. Where all
    /// classes have the same ends along the inner axis, [`Shapes::cut`] does that cut.
    pub cut: PerAxis<bool>,
    /// The index of its sheet.
    pub(super) sheet: usize,
    /// The index of its sector.
    sector: usize,
}

/// The cut of a part. Parts of the same shape with the same cut are translates of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CutKey {
    /// The index of the sector.
    sector: usize,
    /// The origin along the outer and the middle axis, as far as the part is cut there.
    across: [Option<i64>; 2],
    /// The origin along the inner axis.
    inner: i64,
}

impl Part {
    /// Whether no end of the sector cuts it.
    pub fn whole(&self) -> bool {
        self.cut == PerAxis::splat(false)
    }

    /// The cut that it has in common with translates of it.
    pub fn cut_key(&self) -> CutKey {
        let [outer, middle, inner] = self.origin.0;
        let [x, y, _] = self.cut.0;
        CutKey {
            sector: self.sector,
            across: [x.then_some(outer), y.then_some(middle)],
            inner,
        }
    }
}

impl Shapes {
    /// Shapes serve on all grids whose planes tell tiles along each axis that they cut.
    pub fn new(program: &TileProgram) -> Shapes {
        let mut sectors = Vec::new();
        if let Some(anchor) = Anchor::new(program) {
            let ways = |axis| match program.fold(axis) {
                None => &[false][..],
                Some(_) => &[false, true],
            };
            let mut sheet = 0;
            for &outer in ways(Axis::OUTER) {
                for &middle in ways(Axis::MIDDLE) {
                    // All rows of grids without a middle axis lie on its near side.
                    let none = middle && !program.three_axes;
                    for &inner in ways(Axis::INNER).iter().filter(|_| !none) {
                        let far = PerAxis([outer, middle, inner]);
                        sectors.push(Sector::new(program, anchor, far, sheet));
                    }
                    sheet += 1;
                }
            }
        }
        Shapes { sectors }
    }

    /// The parts of a tile on some sheets, into a list without any; `false`: it has to be walked.
    pub fn parts(
        &mut self,
        tile: &Tile,
        numbers: Interval,
        sheets: SheetSet,
        parts: &mut Vec<Part>,
    ) -> bool {
        // Tiles without rows are of as many kinds as there are such tiles.
        let (Some(first), false) = (self.sectors.first(), numbers.is_empty()) else {
            return !self.sectors.is_empty();
        };
        if first.open.alive(tile, numbers).is_empty() {
            return true;
        }
        let all = self.sectors.iter_mut().enumerate();
        for (index, sector) in all.filter(|(_, sector)| sheets >> sector.sheet & 1 == 1) {
            let Some((shape, origin)) = sector.find(tile, numbers) else {
                parts.clear();
                return false;
            };
            let bounds = PerAxis::from_fn(|axis| moved(shape.bounds[axis], origin[axis]));
            let beyond = |axis: &Axis| bounds[*axis].intersect(sector.outer[*axis]).is_empty();
            if shape.segments.is_empty() || Axis::ALL.iter().any(beyond) {
                continue;
            }
            let mut cut = PerAxis::from_fn(|axis| !within(bounds[axis], sector.inner[axis]));
            cut[Axis::INNER] &= !sector.even;
            parts.push(Part {
                shape,
                origin,
                cut,
                sheet: sector.sheet,
                sector: index,
            });
        }
        true
    }

    /// A box along the outer and middle axes that has all rows of a part in some stages, counted from the time block's
    /// first.
    pub(super) fn bounds(&self, part: &Part, stages: Interval) -> Region {
        let sector = &self.sectors[part.sector];
        let own = part.shape.bounds_in(stages);
        PerAxis::from_fn(|axis| moved(own[axis], part.origin[axis]).intersect(sector.outer[axis]))
    }

    /// A range of the inner axis in a part of a tile that is whole, cut at the ends; may be empty.
    pub fn cut(&self, part: &Part, range: Interval) -> Interval {
        let inner = self.sectors[part.sector].inner[Axis::INNER];
        moved(range, part.origin[Axis::INNER]).intersect(inner)
    }

    /// Visits the part that the ends of the grid leave of a segment, as it lies in a part of a tile; `first` is the
    /// time block's first stage.
    pub fn place(
        &self,
        part: &Part,
        segment: &Segment,
        first: i64,
        visit: &mut impl FnMut(&Segment),
    ) {
        let sector = &self.sectors[part.sector];
        let mut placed = *segment;
        placed.number += first;
        placed.rows = PerAxis::from_fn(|axis| moved(segment.rows[axis], part.origin[axis]));
        let rows = placed.rows;
        if Axis::ALL.iter().all(|&a| within(rows[a], sector.inner[a])) {
            visit(&placed);
            return;
        }
        // The rows left to each class.
        let classes = sector.regions[segment.stage.index()].iter().enumerate();
        let own = classes.filter(|(class, _)| segment.classes >> class & 1 == 1);
        let left = own.map(|(class, region)| {
            let rows = PerAxis::from_fn(|axis| rows[axis].intersect(region[axis]));
            (class, rows)
        });
        let left: Vec<(usize, Region)> = left.filter(|(_, rows)| !rows.is_empty()).collect();
        // Segments are cut where a class begins or ends.
        let pieces = |axis: Axis, left: &[(usize, Region)]| {
            let ends = left
                .iter()
                .flat_map(|(_, rows)| [rows[axis].lo, rows[axis].hi]);
            let ends = distinct(ends);
            let pieces = ends.windows(2).map(|w| Interval::new(w[0], w[1]));
            pieces.collect::<Vec<_>>()
        };
        let living = |axis: Axis, piece: Interval, left: &[(usize, Region)]| {
            let left = left
                .iter()
                .filter(|(_, rows)| rows[axis].contains(piece.lo));
            left.copied().collect::<Vec<_>>()
        };
        for outer in pieces(Axis::OUTER, &left) {
            let left = living(Axis::OUTER, outer, &left);
            for middle in pieces(Axis::MIDDLE, &left) {
                let left = living(Axis::MIDDLE, middle, &left);
                for inner in pieces(Axis::INNER, &left) {
                    let left = living(Axis::INNER, inner, &left);
                    placed.classes = left.iter().fold(0, |set, (class, _)| set | 1 << class);
                    placed.rows = PerAxis([outer, middle, inner]);
                    if placed.classes != 0 {
                        visit(&placed);
                    }
                }
            }
        }
    }
}

/// The planes whose lower depths meet at a tile's origin.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    plane: AnchorPlane,
    /// A plane that cuts the inner axis.
    across: Option<usize>,
}

/// The part of an anchor along the outer and middle axes.
#[derive(Clone, Copy, Debug)]
enum AnchorPlane {
    /// No plane cuts these axes.
    None,
    /// All planes that cut these axes cut this one alone.
    Along(Axis, usize),
    /// Two planes whose forms are independent there.
    Both([usize; 2]),
}

impl Anchor {
    /// `None`: planes cut the outer and middle axes in one direction that is none of the two.
    fn new(program: &TileProgram) -> Option<Anchor> {
        let across = program.planes.iter().position(|p| p.form[Axis::INNER] != 0);
        let forms = program.planes.iter().map(|plane| plane.form).enumerate();
        // On two axes and on one all rows lie at index 0 of the middle axis, whether a form has that axis or not.
        let forms = forms.map(|(plane, PerAxis([x, y, _]))| match program.three_axes {
            true => (plane, x, y),
            false => (plane, x, 0),
        });
        let mut cut = forms.filter(|(_, x, y)| (*x, *y) != (0, 0));
        let both = independent(program).filter(|_| program.three_axes);
        let plane = match (both, cut.next()) {
            (Some(planes), _) => AnchorPlane::Both(planes),
            (None, None) => AnchorPlane::None,
            (None, Some((plane, _, 0))) => AnchorPlane::Along(Axis::OUTER, plane),
            (None, Some((plane, 0, _))) => AnchorPlane::Along(Axis::MIDDLE, plane),
            (None, Some(_)) => return None,
        };
        Some(Anchor { plane, across })
    }

    /// The axes that planes cut.
    fn cuts(self, axis: Axis) -> bool {
        match (axis, self.plane) {
            (Axis::INNER, _) => self.across.is_some(),
            (_, AnchorPlane::None) => false,
            (_, AnchorPlane::Along(own, _)) => own == axis,
            (_, AnchorPlane::Both(..)) => true,
        }
    }

    /// The origin of a tile with these depths at its first stage.
    fn origin(self, planes: &[Plane], depths: &[Interval]) -> PerAxis<i64> {
        let mut origin = PerAxis::splat(0);
        match self.plane {
            AnchorPlane::None => {}
            AnchorPlane::Along(axis, plane) => {
                let form = planes[plane].form[axis];
                origin[axis] = div_floor(-depths[plane].lo * form.signum(), 2 * form.abs());
            }
            AnchorPlane::Both([i, j]) => {
                let form = |p: usize| (planes[p].form[Axis::OUTER], planes[p].form[Axis::MIDDLE]);
                let ((a, b), (c, d)) = (form(i), form(j));
                // -depth = form * 2 (x, y), solved by Cramer's rule.
                let (p, q) = (-depths[i].lo, -depths[j].lo);
                let det = a * d - b * c;
                let sign = det.signum();
                origin[Axis::OUTER] = div_floor(sign * (p * d - q * b), 2 * det.abs());
                origin[Axis::MIDDLE] = div_floor(sign * (a * q - c * p), 2 * det.abs());
            }
        }
        // Along the inner axis likewise, from one plane; a multiple of the longest vector keeps rows aligned.
        if let Some(plane) = self.across {
            let step = 2 * LANES * planes[plane].form[Axis::INNER];
            let at = div_floor(-depths[plane].lo * step.signum(), step.abs());
            origin[Axis::INNER] = LANES * at;
        }
        origin
    }

    /// Cells that a tile with these depths spans along each axis that planes cut, over some stages.
    fn extents(self, planes: &[Plane], depths: &[Interval], stages: i64) -> PerAxis<i64> {
        let form = |plane: usize, axis: Axis| i128::from(planes[plane].form[axis]).abs();
        let depth = |plane: usize| {
            let moved = i128::from(planes[plane].slope).abs() * i128::from(stages);
            i128::from(depths[plane].len()) + moved
        };
        let along = |plane: usize, axis: Axis| depth(plane) / (2 * form(plane, axis)) + 1;
        let mut extents = PerAxis::splat(0);
        match self.plane {
            AnchorPlane::None => {}
            AnchorPlane::Along(axis, plane) => extents[axis] = along(plane, axis),
            AnchorPlane::Both([i, j]) => {
                let [a, b] =
                    [Axis::OUTER, Axis::MIDDLE].map(|axis| i128::from(planes[i].form[axis]));
                let [c, d] =
                    [Axis::OUTER, Axis::MIDDLE].map(|axis| i128::from(planes[j].form[axis]));
                let det = 2 * (a * d - b * c).abs();
                extents[Axis::OUTER] = (depth(i) * d.abs() + depth(j) * b.abs()) / det + 1;
                extents[Axis::MIDDLE] = (depth(i) * c.abs() + depth(j) * a.abs()) / det + 1;
            }
        }
        if let Some(plane) = self.across {
            extents[Axis::INNER] = along(plane, Axis::INNER);
        }
        extents.map(|cells| i64::try_from(cells).unwrap_or(i64::MAX))
    }
}

fn within(range: Interval, bounds: Interval) -> bool {
    range.intersect(bounds) == range
}

fn moved(range: Interval, by: i64) -> Interval {
    Interval::new(range.lo + by, range.hi + by)
}

impl Sector {
    /// The sector on which positions count backwards along the `far` axes.
    fn new(program: &TileProgram, anchor: Anchor, far: PerAxis<bool>, sheet: usize) -> Sector {
        let mut open = program.clone();
        let mut shift = vec![0; open.planes.len()];
        for axis in Axis::ALL {
            let fold = program.fold(axis);
            open.ring[axis] = None;
            let Some(fold) = fold else {
                continue;
            };
            let near = |position: i64| div_floor(fold / 2 - position, 2) + 1;
            for class in open.stages.iter_mut().flatten() {
                let half = match far[axis] {
                    false => Interval::new(i64::MIN, near(class.position[axis])),
                    true => Interval::new(near(class.position[axis]), i64::MAX),
                };
                class.region[axis] = class.region[axis].intersect(half);
            }
            if far[axis] {
                for (plane, shift) in open.planes.iter_mut().zip(&mut shift) {
                    *shift += plane.form[axis] * fold;
                    plane.form[axis] = -plane.form[axis];
                }
            }
        }
        let regions: Vec<Vec<Region>> = open
            .stages
            .iter()
            .map(|classes| classes.iter().map(|c| c.region).collect())
            .collect();
        let ends = |region: &Region| region[Axis::INNER];
        let mut all = regions.iter().flatten().map(ends);
        let first = all.next();
        let even = !anchor.cuts(Axis::INNER) || all.all(|range| Some(range) == first);
        let everything = Interval::new(-FAR, FAR);
        let mut inner = PerAxis::splat(everything);
        let mut outer = PerAxis::splat(everything);
        for axis in Axis::ALL.into_iter().filter(|axis| anchor.cuts(*axis)) {
            outer[axis] = Interval::default();
            for class in open.stages.iter_mut().flatten() {
                inner[axis] = inner[axis].intersect(class.region[axis]);
                outer[axis] = outer[axis].hull(class.region[axis]);
                class.region[axis] = everything;
            }
        }
        Sector {
            sheet,
            anchor,
            open,
            shift,
            regions,
            inner,
            outer,
            even,
            kept: BTreeMap::new(),
        }
    }

    /// The shape of a tile on this sector, and its origin.
    fn find(&mut self, tile: &Tile, numbers: Interval) -> Option<(Rc<Shape>, PerAxis<i64>)> {
        let open = &self.open;
        // Depths at the time block's first stage.
        let mut depths = Vec::with_capacity(tile.depths.len());
        for ((plane, depth), shift) in open.planes.iter().zip(&tile.depths).zip(&self.shift) {
            let by = shift - plane.slope * numbers.lo;
            depths.push(moved((*depth)?, by));
        }
        let origin = self.anchor.origin(&open.planes, &depths);
        let mut key = Vec::with_capacity(1 + 2 * depths.len());
        key.push(numbers.len());
        for (plane, depth) in open.planes.iter().zip(&mut depths) {
            let along = Axis::ALL.map(|axis| plane.form[axis] * origin[axis]);
            *depth = moved(*depth, 2 * along.iter().sum::<i64>());
            key.extend([depth.lo, depth.hi]);
        }
        if let Some(shape) = self.kept.get(&key) {
            return Some((shape.clone()?, origin));
        }
        if self.is_large(&depths, numbers.len()) || self.kept.len() >= MOST_SHAPES {
            return None;
        }
        let shape = walk_shape(open, &depths, numbers.len()).map(Rc::new);
        self.kept.insert(key, shape.clone());
        Some((shape?, origin))
    }

    /// Whether a tile with these depths has more segments than are kept, or reaches far.
    fn is_large(&self, depths: &[Interval], stages: i64) -> bool {
        let planes = &self.open.planes;
        let places = self.anchor.extents(planes, depths, 1)[Axis::OUTER];
        // Where there is a middle axis, a segment lies at one place of the outer one.
        let segments = places.saturating_mul(stages);
        let many = self.open.three_axes && segments > MOST_SEGMENTS as i64;
        let extents = self.anchor.extents(planes, depths, stages);
        many || extents.iter().any(|(_, cells)| *cells > FAR / 4)
    }
}

/// Two planes whose forms are independent along the outer and middle axes.
fn independent(program: &TileProgram) -> Option<[usize; 2]> {
    let planes = &program.planes;
    for i in 0..planes.len() {
        for j in 0..i {
            let (p, q) = (planes[j].form, planes[i].form);
            if p[Axis::OUTER] * q[Axis::MIDDLE] != p[Axis::MIDDLE] * q[Axis::OUTER] {
                return Some([j, i]);
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
    let mut stage_bounds = vec![bounds; stages as usize];
    open.walk(&tile, Interval::new(0, stages), &mut |segment| {
        for axis in Axis::ALL {
            for bounds in [&mut bounds, &mut stage_bounds[segment.number as usize]] {
                bounds[axis] = bounds[axis].hull(segment.rows[axis]);
            }
        }
        if segments.len() <= MOST_SEGMENTS {
            segments.push(*segment);
        }
    });
    let starts = (0..=stages)
        .map(|number| segments.partition_point(|s: &Segment| s.number < number))
        .collect();
    (segments.len() <= MOST_SEGMENTS).then_some(Shape {
        segments,
        starts,
        bounds,
        stage_bounds,
    })
}
