//! Where the rows of a tower lie, and how towers lie to each other.

use super::{MOST_ALIGNMENTS, Unfit};
use crate::lattice::{Axis, div_floor};
use crate::tile::{Class, TileProgram};

/// Two faces over the outer and the middle axis, in the integers of the tile program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Geometry {
    /// Per face, per half cell along the two axes.
    forms: [[i64; 2]; 2],
    slopes: [i64; 2],
    pitches: [i64; 2],
    /// Of the forms; not 0.
    det: i64,
    /// The faces' planes in the tile program.
    planes: [usize; 2],
}

/// Rows of one update in one stage of a tower.
const MOST_ROWS: i64 = 4096;
/// Towers of a column after which the alignments repeat.
const MOST_WAYS: i64 = 4096;
/// Bounds all numbers, so that products fit.
const LARGEST: i64 = 1 << 28;

/// The towers of a column until they lie on the lattice as before.
pub(super) struct Ways {
    /// The depths at which they start.
    pub starts: Vec<[i64; 2]>,
    /// From the first one to the first that repeats it, in cells.
    pub around: [i64; 2],
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
    fn solve(&self, by: [i64; 2]) -> Option<[i64; 2]> {
        let [[a, b], [c, d]] = self.forms.map(|f| f.map(i128::from));
        let [u, v] = by.map(i128::from);
        let cells = |n: i128| {
            let unit = 2 * i128::from(self.det);
            (n % unit == 0)
                .then(|| i64::try_from(n / unit).ok())
                .flatten()
        };
        Some([cells(u * d - v * b)?, cells(a * v - c * u)?])
    }

    /// How far towers move in so many stages, if they lie on the lattice as before then.
    pub fn advance(&self, stages: i64) -> Option<[i64; 2]> {
        self.solve(self.slopes.map(|s| s.saturating_mul(stages)))
    }

    /// The cell near which a tower lies that starts at these depths, and the depths at which one lies in the same way near cell 0.
    pub fn reduce(&self, start: [i64; 2]) -> ([i64; 2], [i64; 2]) {
        let [[a, b], [c, d]] = self.forms.map(|f| f.map(i128::from));
        let [u, v] = start.map(|depth| -i128::from(depth));
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
        ([near(0), near(1)], [x, y])
    }

    /// The ways in which towers lie on the lattice that start at whole pitches from each other, or at sums of those and other distances.
    pub fn alignments(&self, others: &[[i64; 2]]) -> Result<Vec<[i64; 2]>, Unfit> {
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

    pub fn forms(&self) -> [[i64; 2]; 2] {
        self.forms
    }

    pub fn slopes(&self) -> [i64; 2] {
        self.slopes
    }

    pub fn pitches(&self) -> [i64; 2] {
        self.pitches
    }

    /// The planes of the faces in the tile program.
    pub fn planes(&self) -> [usize; 2] {
        self.planes
    }

    /// How deep an event lies in a tower that starts at these depths.
    pub fn within(&self, start: [i64; 2], number: i64, class: &Class, at: [i64; 2]) -> [i64; 2] {
        [0, 1].map(|cut| self.depth(cut, number, class, at) - start[cut])
    }

    /// The depth of an event: of an update of a class at a stage and a cell.
    fn depth(&self, cut: usize, number: i64, class: &Class, at: [i64; 2]) -> i64 {
        let [a, b] = self.forms[cut];
        let px = 2 * at[0] + class.position[Axis::OUTER];
        let py = 2 * at[1] + class.position[Axis::MIDDLE];
        self.slopes[cut] * number + class.leads[self.planes[cut]] - a * px - b * py
    }

    /// The most by which the indices of the tiles of two events can differ along a face: of updates of two classes at two stages, with a
    /// given displacement between their indices.
    pub fn farthest(
        &self,
        (number, class, at): (i64, &Class, [i64; 2]),
        (other_number, other, other_at): (i64, &Class, [i64; 2]),
    ) -> i64 {
        let far = |cut: usize| {
            let apart =
                self.depth(cut, number, class, at) - self.depth(cut, other_number, other, other_at);
            crate::lattice::div_ceil(apart.abs(), self.pitches[cut])
        };
        far(0).max(far(1))
    }

    pub fn tiles_around_column(&self) -> Ways {
        let at = |n: i64| [n * self.pitches[0], -n * self.pitches[1]];
        let ahead = |n: &i64| Some((*n, self.solve(at(-*n))?));
        let (count, around) = (1..=MOST_WAYS)
            .find_map(|n| ahead(&n))
            .unwrap_or((1, [0, 0]));
        Ways {
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
        start: [i64; 2],
        number: i64,
        class: &Class,
    ) -> Result<Vec<[i64; 2]>, Unfit> {
        let position = [class.position[Axis::OUTER], class.position[Axis::MIDDLE]];
        // start <= slope * k + lead - form < start + pitch
        let range = [0, 1].map(|cut| {
            let lead = class.leads[self.planes[cut]];
            let top = self.slopes[cut] * number + lead - start[cut];
            [top - self.pitches[cut] + 1, top]
        });
        let [[a, b], [c, d]] = self.forms.map(|f| f.map(i128::from));
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
        let inside = |at: &[i64; 2]| {
            let [px, py] = [2 * at[0] + position[0], 2 * at[1] + position[1]];
            (0..2).all(|cut| {
                let form = self.forms[cut][0] * px + self.forms[cut][1] * py;
                range[cut][0] <= form && form <= range[cut][1]
            })
        };
        let along = |x| (y.0..=y.1).map(move |y| [x, y]);
        Ok((x.0..=x.1).flat_map(along).filter(inside).collect())
    }
}

impl Ways {
    /// The same for all places that periods or whole rounds of the column displace into each other.
    pub fn canonical(&self, advance: [i64; 2], at: [i64; 2]) -> [i64; 2] {
        // Towers move along the outer axis, columns lie along the middle axis; if not, nothing is found to be the same.
        if advance[0] == 0 || self.around[1] == 0 || self.around[0] != 0 {
            return at;
        }
        let periods = div_floor(at[0] * advance[0].signum(), advance[0].abs());
        let x = at[0] - periods * advance[0];
        let y = at[1] - periods * advance[1];
        [x, y.rem_euclid(self.around[1].abs())]
    }
}
