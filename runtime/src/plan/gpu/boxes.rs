//! The cost of boxes of total fields for towers.

use torre_compiler::lattice::Axis;
use torre_compiler::scheme::Scheme;
use torre_compiler::tower::{GroupBox, Towers};

/// How many more times a period takes near faces across the first two axes, where threads look for the wave of each
/// value. Fitted with the factor below to FDTD(4,2) in f32, layers on six sides, a box 16 cells from the ends, W = 4,
/// TH = 8, on an H200: 0.79, 0.72 and 0.63 of the rate without the box for 768^3, 512^3 and 256^3 cells.
const NEAR: f64 = 5.0;
/// The same elsewhere, where threads at both ends of lines add waves that were copied, and the others wait for them;
/// and where these look for waves: 0.46 for 768^3 cells when all did so.
const ALONG: [f64; 2] = [0.04, 0.8];

/// The cost of boxes for towers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Boxes {
    /// Share of the periods whose rows may be near faces across the first two axes.
    near: f64,
    /// How many more times a period takes elsewhere.
    along: f64,
}

/// How rows far from faces across the first two axes are corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FarFrom {
    /// Not at all.
    Bare,
    /// By waves that were copied.
    Copied,
    /// By waves for which threads look.
    Looked,
}

impl Boxes {
    /// `faces`: where whole rows are corrected, along the outer and the middle axis.
    pub fn new(scheme: &Scheme, towers: &Towers, faces: &[GroupBox], far: FarFrom) -> Boxes {
        let wide = (2.0 * towers.cells()).sqrt().ceil() as i64;
        let all = [Axis::OUTER, Axis::MIDDLE].map(|axis| scheme.grid.cells[axis].max(1));
        let [copied, looked] = ALONG;
        Boxes {
            near: (covered(faces, wide) / (all[0] * all[1]) as f64).min(1.0),
            along: match far {
                FarFrom::Bare => 0.0,
                FarFrom::Copied => copied,
                FarFrom::Looked => looked,
            },
        }
    }

    /// How many times as long a period takes.
    pub fn times(&self) -> f64 {
        1.0 + self.near * NEAR + (1.0 - self.near) * self.along
    }
}

/// The area that boxes cover together, each a length wider along both axes.
fn covered(boxes: &[GroupBox], wide: i64) -> f64 {
    let of = |b: &GroupBox| [[b.x.lo, b.x.hi + wide], [b.y.lo, b.y.hi + wide]];
    let boxes: Vec<[[i64; 2]; 2]> = boxes.iter().map(of).collect();
    let ends = |axis: usize| {
        let mut ends: Vec<i64> = boxes.iter().flat_map(|b| b[axis]).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    };
    let (xs, ys) = (ends(0), ends(1));
    let mut area = 0.0;
    for x in xs.windows(2) {
        for y in ys.windows(2) {
            let inside = |b: &[[i64; 2]; 2]| {
                let [[x0, x1], [y0, y1]] = *b;
                x0 <= x[0] && x[1] <= x1 && y0 <= y[0] && y[1] <= y1
            };
            if boxes.iter().any(inside) {
                area += ((x[1] - x[0]) * (y[1] - y[0])) as f64;
            }
        }
    }
    area
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_compiler::lattice::Interval;

    #[test]
    fn boxes_that_meet_count_once() {
        let of = |x: [i64; 2], y: [i64; 2]| GroupBox {
            x: Interval::new(x[0], x[1]),
            y: Interval::new(y[0], y[1]),
        };
        let frame = [
            of([0, 10], [0, 2]),
            of([0, 10], [8, 10]),
            of([0, 2], [0, 10]),
            of([8, 10], [0, 10]),
        ];
        assert_eq!(covered(&frame, 0), 64.0);
        assert_eq!(covered(&frame[..1], 3), 65.0);
        assert_eq!(covered(&[], 3), 0.0);
    }
}
