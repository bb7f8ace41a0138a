//! Where the rows of a tower lie, and how towers lie to each other.

use super::group::{Group, PerFace};
use super::unfit::Unfit;
use crate::lattice::{Axis, Interval, div_ceil, div_floor};
use crate::tile::{Class, TileProgram};

/// Two faces over the outer and the middle axis, in the integers of the tile program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Geometry {
    /// Per half cell along the two axes.
    forms: PerFace<[i64; 2]>,
    slopes: PerFace<i64>,
    pitches: PerFace<i64>,
    /// Of the forms; not 0.
    det: i64,
    /// The faces' planes in the tile program.
    planes: PerFace<usize>,
}

/// Ways to lie on the lattice.
const MOST_ALIGNMENTS: usize = 16;
/// Rows of one update in one stage of a tower.
const MOST_ROWS: i64 = 4096;
/// Towers of a column after which the alignments repeat.
const MOST_WAYS: i64 = 4096;
/// Bounds all numbers, so that products fit.
const LARGEST: i64 = 1 << 28;

/// An event: an update of a class in a stage of a tower, at the indices of a group.
#[derive(Clone, Copy)]
pub(super) struct Event<'a> {
    /// Counted from the start of the time block.
    pub stage: i64,
    pub class: &'a Class,
    pub at: Group,
}

/// The towers of a column until they lie on the lattice as before.
pub(super) struct Column {
    /// The depths at which they start.
    pub starts: Vec<PerFace<i64>>,
    /// From the first one to the first that repeats it.
    pub around: Group,
}

impl Geometry {
    pub fn new(program: &TileProgram) -> Result<Geometry, Unfit> {
        let [level] = program.levels.as_slice() else {
            return Err(Unfit::Faces);
        };
        let [first, second] = level.as_slice() else {
            return Err(Unfit::Faces);
        };
        let cuts = [first, second];
        let planes = cuts.map(|c| &program.planes[c.plane]);
        if !program.three_axes || planes.iter().any(|p| p.form[Axis::INNER] != 0) {
            return Err(Unfit::Faces);
        }
        let forms = planes.map(|p| [p.form[Axis::OUTER], p.form[Axis::MIDDLE]]);
        let geometry = Geometry {
            forms,
            slopes: planes.map(|p| p.slope),
            pitches: cuts.map(|c| c.pitch),
            planes: cuts.map(|c| c.plane),
            det: forms[0][0].saturating_mul(forms[1][1]) - forms[0][1].saturating_mul(forms[1][0]),
        };
        if geometry.det == 0 {
            return Err(Unfit::Faces);
        }
        if [Axis::OUTER, Axis::MIDDLE]
            .iter()
            .any(|a| program.ring[*a].is_some())
        {
            return Err(Unfit::Ring);
        }
        let numbers = geometry.forms.iter().flatten().chain(&geometry.slopes);
        if numbers.chain(&geometry.pitches).any(|n| n.abs() > LARGEST) {
            return Err(Unfit::Size);
        }
        Ok(geometry)
    }

    /// The displacement, in cells, along which both forms grow by these; `None` if it is no lattice vector.
    fn solve(&self, by: PerFace<i64>) -> Option<Group> {
        let [[a, b], [c, d]] = self.wide_forms();
        let [u, v] = by.map(i128::from);
        let cells = |n: i128| {
            let unit = 2 * i128::from(self.det);
            (n % unit == 0)
                .then(|| i64::try_from(n / unit).ok())
                .flatten()
        };
        Some(Group::new(cells(u * d - v * b)?, cells(a * v - c * u)?))
    }

    /// How far towers move in `stages` stages; `None` if they do not lie on the lattice as before then.
    pub fn advance(&self, stages: i64) -> Option<Group> {
        self.solve(self.slopes.map(|s| s.saturating_mul(stages)))
    }

    /// The forms of both faces. Written out, since `array::map` is not inlined across code generation units.
    #[inline]
    fn wide_forms(&self) -> PerFace<[i128; 2]> {
        let wide = |[x, y]: [i64; 2]| [i128::from(x), i128::from(y)];
        [wide(self.forms[0]), wide(self.forms[1])]
    }

    /// The cell near which a tower lies that starts at these depths, and the depths at which one lies in the same way
    /// near cell 0.
    pub fn reduce(&self, start: PerFace<i64>) -> (PerFace<i64>, Group) {
        let [[a, b], [c, d]] = self.wide_forms();
        let [u, v] = [-i128::from(start[0]), -i128::from(start[1])];
        let unit = 2 * i128::from(self.det);
        let cell = |n: i128| {
            let n = n * unit.signum();
            i64::try_from(n.div_euclid(unit.abs())).unwrap_or(0)
        };
        let [x, y] = [cell(u * d - v * b), cell(a * v - c * u)];
        let near = |cut: usize| {
            let [a, b] = self.forms[cut];
            start[cut] + 2 * (a * x + b * y)
        };
        ([near(0), near(1)], Group::new(x, y))
    }

    /// Whether towers lie higher (1) or lower (-1) along the outer axis if they start at greater depths, per face.
    pub fn outer_by_start(&self) -> PerFace<i64> {
        let [[_, b], [_, d]] = self.forms;
        [-d, b].map(|n| n.signum() * self.det.signum())
    }

    /// After how many pitches along the second face towers lie on the lattice as before, and the displacement to these
    /// towers.
    pub fn repeats(&self) -> Option<(usize, Group)> {
        let after = |n: i64| self.solve([0, -n * self.pitches[1]]);
        (1..=MOST_WAYS).find_map(|n| Some((n as usize, after(n)?)))
    }

    /// The depths along the second face at which towers start that have depth `first` along the first face and lie near
    /// `cells` along the outer or the middle axis. `None`: any depths.
    pub fn beside(&self, first: i64, axis: Axis, cells: Interval) -> Option<Interval> {
        // The cell of `reduce` along the outer axis is x where unit * x <= b * second - d * first < unit * (x + 1), for
        // units above 0, and along the middle axis y where unit * y <= c * first - a * second < unit * (y + 1).
        let unit = 2 * i128::from(self.det);
        let [[a, b], [c, d]] = self.wide_forms();
        let [of_first, of_second] = match axis {
            Axis::OUTER => [-d, b],
            _ => [c, -a],
        };
        let (sign, by) = (unit.signum(), of_second * unit.signum());
        if by == 0 {
            return None;
        }
        let bound = |cell: i64| {
            let at = i128::from(cell) * unit.abs() - sign * of_first * i128::from(first);
            // The least depth that reaches the cell, or the first one beyond it where cells fall as depths grow.
            let depth = match by > 0 {
                true => -(-at).div_euclid(by),
                false => (-at).div_euclid(-by) + 1,
            };
            i64::try_from(depth).ok()
        };
        let [one, other] = [bound(cells.lo)?, bound(cells.hi)?];
        Some(Interval::new(one.min(other), one.max(other)))
    }

    /// The ways in which towers lie on the lattice that start at whole pitches from each other, or at sums of whole
    /// pitches and `others`.
    pub fn alignments(&self, others: &[PerFace<i64>]) -> Result<Vec<PerFace<i64>>, Unfit> {
        let [first, second] = self.pitches;
        let mut found = vec![[0; 2]];
        let mut next = 0;
        while let Some(&[u, v]) = found.get(next) {
            next += 1;
            for [du, dv] in [[0, second], [first, 0]].iter().chain(others) {
                let (near, _) = self.reduce([u + du, v + dv]);
                if !found.contains(&near) {
                    if found.len() == MOST_ALIGNMENTS {
                        return Err(Unfit::Advance);
                    }
                    found.push(near);
                }
            }
        }
        Ok(found)
    }

    pub fn forms(&self) -> PerFace<[i64; 2]> {
        self.forms
    }

    pub fn slopes(&self) -> PerFace<i64> {
        self.slopes
    }

    pub fn pitches(&self) -> PerFace<i64> {
        self.pitches
    }

    /// The planes of the faces in the tile program.
    pub fn planes(&self) -> PerFace<usize> {
        self.planes
    }

    /// How deep an event lies in a tower that starts at these depths.
    pub fn within(&self, start: PerFace<i64>, event: Event<'_>) -> PerFace<i64> {
        let depth = |face: usize| self.depth(face, event) - start[face];
        [depth(0), depth(1)]
    }

    fn depth(&self, face: usize, Event { stage, class, at }: Event<'_>) -> i64 {
        let [a, b] = self.forms[face];
        let px = 2 * at.x + class.position[Axis::OUTER];
        let py = 2 * at.y + class.position[Axis::MIDDLE];
        self.slopes[face] * stage + class.leads[self.planes[face]] - a * px - b * py
    }

    /// The most by which the indices of the tiles of two events can differ along a face.
    pub fn farthest(&self, one: Event<'_>, other: Event<'_>) -> i64 {
        let far = |face: usize| {
            let between = self.depth(face, one) - self.depth(face, other);
            div_ceil(between.abs(), self.pitches[face])
        };
        far(0).max(far(1))
    }

    /// The most by which the indices of the tiles of two events at a place can differ along a face, `stages` stages
    /// apart.
    pub fn farthest_after(&self, stages: i64) -> i64 {
        let far = |face: usize| div_ceil(self.slopes[face].abs() * stages, self.pitches[face]);
        far(0).max(far(1))
    }

    /// Towers whose indices have the same sum form a column.
    pub fn column(&self) -> Column {
        let at = |n: i64| [n * self.pitches[0], -n * self.pitches[1]];
        let ahead = |n: &i64| Some((*n, self.solve(at(-*n))?));
        let (count, around) = (1..=MOST_WAYS)
            .find_map(|n| ahead(&n))
            .unwrap_or((1, Group::default()));
        Column {
            starts: (0..count).map(at).collect(),
            around,
        }
    }

    /// The area of a tile.
    pub fn cells(&self) -> f64 {
        let [u, v] = self.pitches.map(|p| p as f64);
        u * v / (4.0 * self.det.abs() as f64)
    }

    /// The indices, ascending, of the rows of a class that a tower holds at a stage, if it starts at these depths.
    pub fn rows(
        &self,
        start: PerFace<i64>,
        stage: i64,
        class: &Class,
    ) -> Result<Vec<Group>, Unfit> {
        let position = [class.position[Axis::OUTER], class.position[Axis::MIDDLE]];
        // start <= slope * k + lead - form < start + pitch
        let range = [0, 1].map(|cut| {
            let lead = class.leads[self.planes[cut]];
            let top = self.slopes[cut] * stage + lead - start[cut];
            [top - self.pitches[cut] + 1, top]
        });
        let [[a, b], [c, d]] = self.wide_forms();
        // A corner of the tile, in half cells times the determinant.
        let corner = |i: usize, j: usize| {
            let [u, v] = [range[0][i], range[1][j]].map(i128::from);
            [u * d - v * b, a * v - c * u]
        };
        let corners = [corner(0, 0), corner(0, 1), corner(1, 0), corner(1, 1)];
        let span = |axis: usize| {
            let all = corners.map(|c| c[axis] * i128::from(self.det.signum()));
            let unit = 2 * i128::from(self.det.abs());
            let at = i128::from(position[axis]) * i128::from(self.det.abs());
            let lo = all.into_iter().min().unwrap_or(0) - at;
            let hi = all.into_iter().max().unwrap_or(0) - at;
            let lo = i64::try_from(-(-lo).div_euclid(unit));
            let hi = i64::try_from(hi.div_euclid(unit));
            (lo.unwrap_or(0), hi.unwrap_or(-1))
        };
        let (x, y) = (span(0), span(1));
        if (x.1 - x.0 + 1)
            .max(0)
            .saturating_mul((y.1 - y.0 + 1).max(0))
            > 4 * MOST_ROWS
        {
            return Err(Unfit::Size);
        }
        let inside = |at: &Group| {
            let [px, py] = [2 * at.x + position[0], 2 * at.y + position[1]];
            (0..2).all(|cut| {
                let form = self.forms[cut][0] * px + self.forms[cut][1] * py;
                range[cut][0] <= form && form <= range[cut][1]
            })
        };
        let along = |x| (y.0..=y.1).map(move |y| Group::new(x, y));
        Ok((x.0..=x.1).flat_map(along).filter(inside).collect())
    }
}

impl Column {
    /// The same for all places that periods or whole rounds of the column displace into each other.
    pub fn canonical(&self, advance: Group, at: Group) -> Group {
        // Towers move along the outer axis, columns lie along the middle axis; if not, nothing is found to be the same.
        if advance.x == 0 || self.around.y == 0 || self.around.x != 0 {
            return at;
        }
        let periods = div_floor(at.x * advance.x.signum(), advance.x.abs());
        let reduced = at - advance * periods;
        Group::new(reduced.x, reduced.y.rem_euclid(self.around.y.abs()))
    }
}
