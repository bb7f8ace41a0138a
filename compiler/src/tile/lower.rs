//! From a tiling in cells and fractions to a tile program in integers.

use super::blocks::row_region;
use super::{Class, Plane, PlaneCut, TileProgram};
use crate::cone::Rational;
use crate::kernel::UpdateSet;
use crate::lattice::Axis;
use crate::schedule::{Cut, Frame, Tiling};
use crate::scheme::Scheme;

/// Before: a legal tiling (`check_tiling`). After: the same tiles in integers.
pub fn lower(scheme: &Scheme, frame: &Frame, tiling: &Tiling) -> TileProgram {
    let mut planes: Vec<Plane> = Vec::new();
    let levels = tiling
        .levels
        .iter()
        .map(|level| {
            level
                .cuts
                .iter()
                .map(|cut| {
                    let (plane, period) = scale(cut);
                    let index = planes.iter().position(|p| *p == plane).unwrap_or_else(|| {
                        planes.push(plane);
                        planes.len() - 1
                    });
                    PlaneCut {
                        plane: index,
                        period,
                    }
                })
                .collect()
        })
        .collect();
    let stages = scheme
        .stage_ids()
        .map(|stage| {
            let mut classes: Vec<Class> = Vec::new();
            for (i, update) in scheme.stages[stage.index()].updates.iter().enumerate() {
                let region = row_region(scheme, update);
                if region.is_empty() {
                    continue;
                }
                let position = frame.position(stage, i).map(|h| h.0);
                let same = classes
                    .iter_mut()
                    .find(|c| c.region == region && c.position == position);
                match same {
                    Some(class) => class.updates.insert(i),
                    None => {
                        let mut updates = UpdateSet::default();
                        updates.insert(i);
                        classes.push(Class {
                            updates,
                            region,
                            position,
                        });
                    }
                }
            }
            classes
        })
        .collect();
    TileProgram {
        height: tiling.height,
        planes,
        levels,
        stages,
        ring: crate::lattice::PerAxis::from_fn(|a| {
            frame.folded[a].then_some(2 * scheme.grid.cells[a])
        }),
        three_axes: scheme.grid.axes[Axis::DIAMOND].is_some(),
    }
}

/// The smallest integers: one unit of depth is 1 / (2 * common denominator) of a cell; events lie on multiples of it.
fn scale(cut: &Cut) -> (Plane, i64) {
    // In half cells: form * (2 p), slope 2 s, period 2 P; then all times the common denominator.
    let slope = cut.face.slope * Rational::whole(2);
    let period = cut.period * Rational::whole(2);
    let den = lcm(slope.den(), period.den());
    let plane = Plane {
        form: cut.face.form.map(|c| i64::from(c) * den),
        slope: slope.num() * (den / slope.den()),
    };
    (plane, (period.num() * (den / period.den())).max(1))
}

fn lcm(a: i64, b: i64) -> i64 {
    let gcd = |mut a: i64, mut b: i64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a.max(1)
    };
    (a / gcd(a, b)).saturating_mul(b)
}
