//! Where coefficients and regions change from one cell to the next: the outlines of media over pictures.

use super::pictures::Shown;
use crate::output::picture::Edge;
use torre_compiler::lattice::{Axis, HalfIndex, Interval, PerAxis};
use torre_compiler::problem::Medium;
use torre_compiler::scheme::Scheme;
use torre_compiler::statics::{Files, coef_value};

/// A line is drawn where a medium changes by more than this part of its range in the plane.
const JUMP: f64 = 0.1;

/// A medium that changes between more than this part of the cells is rough, and has no outline.
const ROUGH: f64 = 0.25;

/// Values that are looked at along an axis, at the most: pictures show no more.
const MOST: i64 = 1280;

/// The outlines in one picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outlines {
    /// In a plane.
    pub edges: Vec<Edge>,
    /// On a line: positions in the unit of length.
    pub marks: Vec<f64>,
    /// The media that have any, by their names.
    pub names: Vec<String>,
}

/// Values of a medium where a picture shows them.
pub struct Sampled {
    /// Places in each shown axis, in cells from the picture's first value.
    pub places: [Vec<f64>; 2],
    /// The second axis is contiguous; where the picture is a line, it has one place.
    pub values: Vec<f64>,
}

impl Outlines {
    /// The lines of all media in a picture.
    pub fn of(scheme: &Scheme, media: &[Medium], files: &dyn Files, shown: &Shown) -> Self {
        let mut outlines = Self::default();
        for medium in media {
            let sampled = Sampled::of(scheme, medium, files, shown);
            let edges = sampled.edges();
            if edges.is_empty() {
                continue;
            }
            outlines.names.push(medium.name.clone());
            match shown.axes.len() {
                1 => {
                    let axis = shown.picture_axis(scheme, shown.axes[0]);
                    let marks = edges.iter().map(|e| axis.start + e.from[0] * axis.spacing);
                    outlines.marks.extend(marks);
                }
                _ => outlines.edges.extend(edges),
            }
        }
        outlines
    }
}

impl Sampled {
    /// Evaluates a medium at its own places nearest to the places of a picture.
    pub fn of(scheme: &Scheme, medium: &Medium, files: &dyn Files, shown: &Shown) -> Self {
        let extent = scheme.grid.extent(medium.position);
        let nearest = |axis: Axis, index: i64| {
            let place = HalfIndex::cells(index) + shown.position[axis] - medium.position[axis];
            let Interval { lo, hi } = extent[axis];
            place.0.div_euclid(2).clamp(lo, (hi - 1).max(lo))
        };
        let indices = |axis: Option<&Axis>| -> Vec<i64> {
            let Some(&axis) = axis else { return vec![0] };
            let Interval { lo, hi } = shown.region[axis];
            // One beyond either end, so that lines at the rim are found.
            let (first, last) = (nearest(axis, lo - 1), nearest(axis, hi));
            let stride = (last - first).div_euclid(MOST) + 1;
            (first..=last).step_by(stride as usize).collect()
        };
        let [first, second] = [0, 1].map(|i| indices(shown.axes.get(i)));
        let mut at = PerAxis::from_fn(|axis| nearest(axis, shown.region[axis].lo));
        let mut values = Vec::with_capacity(first.len() * second.len());
        for &i in &first {
            for &j in &second {
                for (axis, index) in shown.axes.iter().zip([i, j]) {
                    at[*axis] = index;
                }
                let value = coef_value(scheme, files, medium.position, &medium.value, at);
                values.push(value);
            }
        }
        let places = |axis: Option<&Axis>, indices: Vec<i64>| -> Vec<f64> {
            let Some(&axis) = axis else { return vec![0.0] };
            let start = HalfIndex::cells(shown.region[axis].lo) + shown.position[axis];
            let place = |i| (HalfIndex::cells(i) + medium.position[axis] - start).as_f64();
            indices.into_iter().map(place).collect()
        };
        Self {
            places: [
                places(shown.axes.first(), first),
                places(shown.axes.get(1), second),
            ],
            values,
        }
    }

    /// Lines between neighbours that differ; none of a medium that is rough all over.
    pub fn edges(&self) -> Vec<Edge> {
        let finite = || self.values.iter().copied().filter(|v| v.is_finite());
        let (low, high) = finite().fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
        let mut edges = Vec::new();
        if low >= high {
            return edges;
        }
        let counts = [0, 1].map(|i| self.places[i].len());
        let most = 64.max((ROUGH * (counts[0] * counts[1]) as f64) as usize);
        let value = |at: [usize; 2]| self.values[at[0] * counts[1] + at[1]];
        let half = |i: usize| match self.places[i][..] {
            [a, b, ..] => (b - a) / 2.0,
            _ => 0.5,
        };
        // `across` is the axis along which values jump, `along` the one in which the line runs.
        for (across, along) in [(0, 1), (1, 0)] {
            let cell = |near: usize, far: usize| {
                let mut at = [0; 2];
                (at[across], at[along]) = (near, far);
                at
            };
            for near in 1..counts[across] {
                let between = (self.places[across][near - 1] + self.places[across][near]) / 2.0;
                // The step from one cell to the next; none beyond the ends.
                let step = |near: usize, far: usize| match near {
                    1.. if near < counts[across] => {
                        value(cell(near, far)) - value(cell(near - 1, far))
                    }
                    _ => 0.0,
                };
                let jumps = |&far: &usize| {
                    let own = step(near, far);
                    // Of steps that follow each other the largest, so that cells with mean values have one line.
                    let [before, after] = [near.wrapping_sub(1), near + 1].map(|n| step(n, far));
                    own.abs() > JUMP * (high - low)
                        && !(before * own > 0.0 && before.abs() >= own.abs())
                        && !(after * own > 0.0 && after.abs() > own.abs())
                };
                let far: Vec<usize> = (0..counts[along]).filter(jumps).collect();
                for run in far.chunk_by(|a, b| a + 1 == *b) {
                    let (Some(&first), Some(&last)) = (run.first(), run.last()) else {
                        continue;
                    };
                    let end = |at: usize, by: f64| {
                        let mut place = [between; 2];
                        place[along] = self.places[along][at] + by * half(along);
                        place
                    };
                    edges.push(Edge {
                        from: end(first, -1.0),
                        to: end(last, 1.0),
                    });
                }
                if edges.len() > most {
                    return Vec::new();
                }
            }
        }
        edges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_run_between_values_that_differ() {
        let sampled = Sampled {
            places: [vec![0.0, 1.0, 2.0], vec![-0.5, 0.5]],
            values: vec![1.0, 1.0, 1.0, 4.0, 1.05, 4.0],
        };
        let edge = |from, to| Edge { from, to };
        assert_eq!(
            sampled.edges(),
            [edge([0.5, 0.0], [0.5, 1.0]), edge([0.5, 0.0], [2.5, 0.0]),]
        );
        // A cell with a mean value has one side, not two.
        let mean = Sampled {
            places: [vec![0.0, 1.0, 2.0, 3.0], vec![0.0]],
            values: vec![1.0, 2.0, 4.0, 4.0],
        };
        assert_eq!(mean.edges(), [edge([1.5, -0.5], [1.5, 0.5])]);
        let even = Sampled {
            places: [vec![0.0, 1.0], vec![0.0]],
            values: vec![2.0, 2.0],
        };
        assert!(even.edges().is_empty());
        let noise = |n: usize| Sampled {
            places: [0, 1].map(|_| (0..n).map(|i| i as f64).collect()),
            values: (0..n * n).map(|i| ((i * i) % 7) as f64).collect(),
        };
        assert!(noise(30).edges().is_empty() && !noise(5).edges().is_empty());
        let line = Sampled {
            places: [vec![0.0, 1.0, 2.0], vec![0.0]],
            values: vec![2.0, f64::NAN, 3.0],
        };
        assert!(line.edges().is_empty());
    }
}
