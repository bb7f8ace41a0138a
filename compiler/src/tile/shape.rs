//! Rows of whole tiles, walked once and used for every tile of the same shape.
//!
//! Without ends of the grid, two tiles that lie alike relative to the lattice are translates of each other. The rows of
//! one of each kind are kept relative to an origin: the cell where the lower depths of two of its planes meet, rounded
//! down. Rounding commutes with shifts by whole cells, so translates have the same rows relative to their origins.
//! Parts beyond the ends are cut off when a shape is placed.
//!
//! A folded axis is two sheets, on one of which positions count backwards. There a plane's form changes its sign along
//! that axis and its depths shift by the ring, so a tile has a shape on each sheet.

use super::sheets::SheetSet;
use super::{Segment, Tile, TileProgram};
use crate::lattice::{Axis, Interval, PerAxis, Region, div_floor};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Kinds of tiles that are kept, for each sheet.
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
    /// In running order, relative to the origin and to the time block's first stage.
    pub segments: Vec<Segment>,
    /// Where the segments of each stage begin, and the end of all.
    starts: Vec<usize>,
    /// Encloses the segments along the outer and middle axes.
    bounds: Region,
    /// Encloses the segments of each stage.
    stage_bounds: Vec<Region>,
}

impl Shape {
    /// The segments of a stage, counted from the time block's first.
    pub fn of_stage(&self, number: i64) -> &[Segment] {
        &self.segments[self.starts[number as usize]..self.starts[number as usize + 1]]
    }

    /// Encloses the segments of some stages along the outer and middle axes.
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
    sheets: Vec<Sheet>,
    /// A plane that cuts the inner axis.
    across: Option<usize>,
}

/// A part of the grid in which positions along each axis count one way.
#[derive(Debug)]
struct Sheet {
    /// The program on a grid without ends.
    open: TileProgram,
    /// Per plane, from the program's depths to this sheet's.
    shift: Vec<i64>,
    /// Per stage and class, where it lives.
    regions: Vec<Vec<Region>>,
    /// Where all classes of all stages live.
    inner: Region,
    /// Where some class of some stage lives.
    outer: Region,
    kept: BTreeMap<Vec<i64>, Option<Rc<Shape>>>,
}

/// The part of a tile that lies on one sheet.
#[derive(Clone, Debug)]
pub struct Part {
    pub shape: Rc<Shape>,
    /// The cell that the shape's rows are relative to.
    pub origin: PerAxis<i64>,
    /// Whether an end of the sheet cuts it along the outer and along the middle axis.
    pub cut: [bool; 2],
    /// By index.
    pub(super) sheet: usize,
}

/// The cut of a part. Parts of the same shape with the same cut are translates of each other.
pub type Cut = (usize, [Option<i64>; 2], i64);

impl Part {
    /// Whether no end of the sheet cuts it along the outer and middle axes.
    pub fn whole(&self) -> bool {
        self.cut == [false; 2]
    }

    /// The sheet, the origin along each axis along which the part is cut, and that along the inner axis.
    pub fn alike(&self) -> Cut {
        let [outer, middle, inner] = self.origin.0;
        let [x, y] = self.cut;
        (self.sheet, [x.then_some(outer), y.then_some(middle)], inner)
    }
}

impl Shapes {
    /// Shapes serve on grids with three axes where the inner axis is not both cut and folded and, if it is cut, all
    /// updates have the same range there.
    pub fn new(program: &TileProgram) -> Shapes {
        let across = program.planes.iter().position(|p| p.form[Axis::INNER] != 0);
        let ranges = || {
            program
                .stages
                .iter()
                .flatten()
                .map(|c| c.region[Axis::INNER])
        };
        let alike = ranges().all(|r| Some(r) == ranges().next());
        let usable = program.three_axes
            && (across.is_none() || (alike && program.fold(Axis::INNER).is_none()))
            && independent(program).is_some();
        let mut sheets = Vec::new();
        if usable {
            let ways = |axis| match program.fold(axis) {
                None => &[false][..],
                Some(_) => &[false, true],
            };
            for &outer in ways(Axis::OUTER) {
                for &middle in ways(Axis::MIDDLE) {
                    let far = PerAxis([outer, middle, false]);
                    sheets.push(Sheet::new(program, far, across));
                }
            }
        }
        Shapes { sheets, across }
    }

    /// The parts of a tile on some sheets, into a list without any; `false`: it has to be walked.
    pub fn parts(
        &mut self,
        tile: &Tile,
        numbers: Interval,
        sheets: SheetSet,
        parts: &mut Vec<Part>,
    ) -> bool {
        let across = self.across;
        let all = self.sheets.iter_mut().enumerate();
        for (index, sheet) in all.filter(|(index, _)| sheets >> index & 1 == 1) {
            let Some((shape, origin)) = sheet.find(across, tile, numbers) else {
                parts.clear();
                return false;
            };
            let mut empty = shape.segments.is_empty();
            let cut = [Axis::OUTER, Axis::MIDDLE].map(|axis| {
                let bounds = moved(shape.bounds[axis], origin[axis]);
                empty |= bounds.intersect(sheet.outer[axis]).is_empty();
                bounds.intersect(sheet.inner[axis]) != bounds
            });
            if !empty {
                parts.push(Part {
                    shape,
                    origin,
                    cut,
                    sheet: index,
                });
            }
        }
        !self.sheets.is_empty()
    }

    /// A box along the outer and middle axes that has all rows of a part in some stages, counted from the time block's
    /// first.
    pub(super) fn bounds(&self, part: &Part, stages: Interval) -> Region {
        let sheet = &self.sheets[part.sheet];
        let own = part.shape.bounds_in(stages);
        PerAxis::from_fn(|axis| moved(own[axis], part.origin[axis]).intersect(sheet.outer[axis]))
    }

    /// A range of the inner axis in a part of a tile, cut at the ends; may be empty.
    pub fn cut(&self, part: &Part, range: Interval) -> Interval {
        let inner = self.sheets[part.sheet].inner[Axis::INNER];
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
        let sheet = &self.sheets[part.sheet];
        let mut placed = *segment;
        placed.number += first;
        for axis in [Axis::OUTER, Axis::MIDDLE] {
            placed.rows[axis] = moved(segment.rows[axis], part.origin[axis]);
        }
        placed.rows[Axis::INNER] = self.cut(part, segment.rows[Axis::INNER]);
        if placed.rows[Axis::INNER].is_empty() {
            return;
        }
        let [x, y, _] = placed.rows.0;
        let within = |axis: Axis| {
            let own = placed.rows[axis];
            own.intersect(sheet.inner[axis]) == own
        };
        if part.whole() || (within(Axis::OUTER) && within(Axis::MIDDLE)) {
            visit(&placed);
            return;
        }
        let regions = &sheet.regions[segment.stage.index()];
        // The rows left to a class.
        let left = |class: usize| match segment.classes >> class & 1 == 1 {
            true => {
                let [outer, middle, _] = regions[class].0;
                (x.intersect(outer), y.intersect(middle))
            }
            false => (Interval::default(), Interval::default()),
        };
        let some = |rows: (Interval, Interval)| !rows.0.is_empty() && !rows.1.is_empty();
        // Segments are cut where a class ends: the next one begins at the least end above.
        let next = |at: i64, of: &dyn Fn((Interval, Interval)) -> Interval| {
            (0..regions.len())
                .map(left)
                .filter(|rows| some(*rows))
                .flat_map(|rows| [of(rows).lo, of(rows).hi])
                .filter(|end| *end > at)
                .min()
        };
        let mut outer = Interval::new(x.lo, x.lo);
        while let Some(end) = next(outer.lo, &|rows| rows.0) {
            outer.hi = end;
            let mut middle = Interval::new(y.lo, y.lo);
            while let Some(end) = next(middle.lo, &|rows| rows.1) {
                middle.hi = end;
                placed.classes = 0;
                for class in 0..regions.len() {
                    let rows = left(class);
                    if rows.0.contains(outer.lo) && rows.1.contains(middle.lo) {
                        placed.classes |= 1 << class;
                    }
                }
                if placed.classes != 0 {
                    placed.rows[Axis::OUTER] = outer;
                    placed.rows[Axis::MIDDLE] = middle;
                    visit(&placed);
                }
                middle.lo = end;
            }
            outer.lo = end;
        }
    }
}

fn moved(range: Interval, by: i64) -> Interval {
    Interval::new(range.lo + by, range.hi + by)
}

impl Sheet {
    /// The sheet on which positions count backwards along the `far` axes.
    fn new(program: &TileProgram, far: PerAxis<bool>, across: Option<usize>) -> Sheet {
        let mut open = program.clone();
        let mut shift = vec![0; open.planes.len()];
        for axis in [Axis::OUTER, Axis::MIDDLE] {
            let fold = program.fold(axis);
            open.ring[axis] = None;
            let Some(fold) = fold else {
                continue;
            };
            let near = |position: i64| div_floor(fold / 2 - position, 2) + 1;
            for class in open.stages.iter_mut().flatten() {
                let half = match far[axis] {
                    false => Interval::new(-FAR, near(class.position[axis])),
                    true => Interval::new(near(class.position[axis]), FAR),
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
        let mut inner = PerAxis::splat(Interval::new(-FAR, FAR));
        let mut outer = PerAxis::splat(Interval::default());
        let axes = match across {
            Some(_) => &Axis::ALL[..],
            None => &[Axis::OUTER, Axis::MIDDLE],
        };
        for class in open.stages.iter_mut().flatten() {
            for &axis in axes {
                inner[axis] = inner[axis].intersect(class.region[axis]);
                outer[axis] = outer[axis].hull(class.region[axis]);
                class.region[axis] = Interval::new(-FAR, FAR);
            }
        }
        Sheet {
            open,
            shift,
            regions,
            inner,
            outer,
            kept: BTreeMap::new(),
        }
    }

    /// The shape of a tile on this sheet, and its origin.
    fn find(
        &mut self,
        across: Option<usize>,
        tile: &Tile,
        numbers: Interval,
    ) -> Option<(Rc<Shape>, PerAxis<i64>)> {
        let open = &self.open;
        // Depths at the time block's first stage.
        let mut depths = Vec::with_capacity(tile.depths.len());
        for ((plane, depth), shift) in open.planes.iter().zip(&tile.depths).zip(&self.shift) {
            let by = shift - plane.slope * numbers.lo;
            depths.push(moved((*depth)?, by));
        }
        let (i, j, det) = independent(open)?;
        let form = |p: usize| {
            (
                open.planes[p].form[Axis::OUTER],
                open.planes[p].form[Axis::MIDDLE],
            )
        };
        let ((a, b), (c, d)) = (form(i), form(j));
        // -depth = form * 2 (x, y), solved by Cramer's rule.
        let (p, q) = (-depths[i].lo, -depths[j].lo);
        let sign = det.signum();
        let x = div_floor(sign * (p * d - q * b), 2 * det.abs());
        let y = div_floor(sign * (a * q - c * p), 2 * det.abs());
        // Along the inner axis likewise, from one plane; a multiple of the longest vector keeps rows aligned.
        let z = across.map_or(0, |p| {
            let step = 2 * LANES * open.planes[p].form[Axis::INNER];
            LANES * div_floor(-depths[p].lo * step.signum(), step.abs())
        });
        let mut key = vec![numbers.len()];
        for (plane, depth) in open.planes.iter().zip(&mut depths) {
            let [a, b, c] = plane.form.0;
            *depth = moved(*depth, 2 * (a * x + b * y + c * z));
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
        Some((shape, PerAxis([x, y, z])))
    }
}

/// Two planes whose forms are independent along the outer and middle axes, and their determinant.
fn independent(program: &TileProgram) -> Option<(usize, usize, i64)> {
    let planes = &program.planes;
    for i in 0..planes.len() {
        for j in 0..i {
            let (p, q) = (planes[j].form, planes[i].form);
            let det = p[Axis::OUTER] * q[Axis::MIDDLE] - p[Axis::MIDDLE] * q[Axis::OUTER];
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
    let mut stage_bounds = vec![bounds; stages as usize];
    open.walk(&tile, Interval::new(0, stages), &mut |segment| {
        for axis in [Axis::OUTER, Axis::MIDDLE] {
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
