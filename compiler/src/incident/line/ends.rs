//! The ends of a plane wave's line, which take the waves that reach them.

use std::ops::Range;

/// Smaller values at an absorbing end become 0: subnormal numbers are slow.
const SMALLEST: f64 = 1e-200;

/// The factors that remain of a component's values at both ends.
///
/// Two fields that make waves together and both lose the rate s let waves in without a reflection. A component u that
/// makes waves alone, from two versions of its own, then has (d/dt + s)^2 u = c^2 u'', which reflects waves as long as
/// the end: in the two fields there is c s' u beside it for waves that go outwards, and no others are in the end.
/// Without it a tenth of a wave of 100 cells comes back, with it 2e-5. The operator
/// -c^2 d^2/dx^2 + s^2 - c s' = (s - c d/dx)(s + c d/dx) has no negative values, so that nothing grows.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// The stage of the last update in a step, after which the ends absorb.
    pub stage: usize,
    /// By point.
    pub left: Vec<f64>,
    /// c s' dt^2 by point, for a component that makes waves alone.
    pub outward: Option<Vec<f64>>,
    /// The points of which all is left.
    pub whole: Range<usize>,
}

impl Ends {
    pub fn new(stage: usize, left: Vec<f64>) -> Ends {
        let whole = |left: &f64| *left == 1.0;
        let first = left.iter().position(whole).unwrap_or(left.len());
        let last = left.iter().rposition(whole).map_or(first, |last| last + 1);
        Ends {
            stage,
            left,
            outward: None,
            whole: first..last,
        }
    }

    /// Prepares the term for outward waves of a component that makes waves alone; `speed`: points per step, by point.
    pub fn match_outward(&mut self, speed: impl Fn(usize) -> f64) {
        let rate = |i: usize| -self.left[i].ln();
        let last = self.left.len() - 1;
        let outward = (0..self.left.len()).map(|i| {
            let rise = rate((i + 1).min(last)) - rate(i.saturating_sub(1));
            speed(i) * rise.abs() / 2.0
        });
        self.outward = Some(outward.collect());
    }

    /// Adds the term for outward waves, from the version before the newest one.
    pub fn let_in(&self, newest: &mut [f64], before: &[f64]) {
        let Some(outward) = &self.outward else { return };
        let Range { start, end } = self.whole;
        for range in [0..start, end..newest.len()] {
            let parts = outward[range.clone()].iter().zip(&before[range.clone()]);
            for (value, (part, old)) in newest[range].iter_mut().zip(parts) {
                *value += part * old;
            }
        }
    }

    /// Takes the loss from the values of a version; values smaller than normal numbers become 0.
    pub fn absorb(&self, values: &mut [f64]) {
        let Range { start, end } = self.whole;
        for range in [0..start, end..values.len()] {
            for (value, left) in values[range.clone()].iter_mut().zip(&self.left[range]) {
                let rest = *value * left;
                *value = if rest.abs() < SMALLEST { 0.0 } else { rest };
            }
        }
    }
}
