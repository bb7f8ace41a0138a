//! The ends of a plane wave's line, which take the waves that reach them.

use std::ops::Range;

/// Smaller values at an absorbing end become 0: subnormal numbers are slow.
const SMALLEST: f64 = 1e-200;

/// ln of the ratio by which the field that stands still falls from point to point, at most.
const STEEPEST: f64 = 1.0;

/// The factors that remain of a component's values at both ends.
///
/// Two fields that make waves together and both lose the rate s let waves in without a reflection. A component u that
/// makes waves alone, from two versions of its own, then has (d/dt + s)^2 u = c^2 u'', which reflects waves as long as
/// the end: in the two fields there is c s' u beside it for waves that go outwards, and no others are in the end.
/// Without it a tenth of a wave of 100 cells comes back. The operator
/// -c^2 d^2/dx^2 + s^2 - c s' = (s - c d/dx)(s + c d/dx) has no negative values, so that nothing grows, and the value 0
/// for the field A with s A + c A' = 0. On the lattice c s' is the term for which this A stands still, too: with
/// another one the field behind a pulse grows or fades.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// The stage of the last update in a step, after which the ends absorb.
    pub stage: usize,
    /// By point.
    pub left: Vec<f64>,
    /// What is added for outward waves by a component that makes waves alone.
    pub outward: Option<Outward>,
    /// The points of which all is left.
    pub whole: Range<usize>,
}

/// The term for outward waves.
#[derive(Clone, Debug)]
pub(super) struct Outward {
    /// Per point the factor of the version before the newest one.
    parts: Vec<f64>,
    /// The points where it is 0.
    none: Range<usize>,
}

/// How a component that makes waves alone is updated at a point.
pub(super) struct OwnUpdate {
    /// Shifts and weights of the newest version.
    pub newest: Vec<(i64, f64)>,
    /// The speed of long waves, in points per step.
    pub speed: f64,
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

    /// Prepares the term for outward waves of a component that makes waves alone. `updates`: by point.
    pub fn match_outward(&mut self, updates: impl Fn(usize) -> Option<OwnUpdate>) {
        let count = self.left.len();
        let updates: Vec<Option<OwnUpdate>> = (0..count).map(updates).collect();
        let loss = |i: usize| -self.left[i].ln();
        // ln A, from the middle of the line outwards. Where waves are slow for the loss, A falls by less: any positive
        // A that stands still keeps the operator from negative values, but the step of a steep one is not stable.
        let fall = |inner: usize, outer: usize| match &updates[outer] {
            Some(update) if update.speed > 0.0 => {
                ((loss(inner) + loss(outer)) / (2.0 * update.speed)).min(STEEPEST)
            }
            _ => 0.0,
        };
        let mut log = vec![0.0; count];
        for i in self.whole.end.max(1)..count {
            log[i] = log[i - 1] - fall(i - 1, i);
        }
        for i in (0..self.whole.start.min(count - 1)).rev() {
            log[i] = log[i + 1] - fall(i + 1, i);
        }
        let mut reach = 0;
        let parts = updates.iter().enumerate().map(|(i, update)| {
            let Some(update) = update else { return 0.0 };
            let mut change = 0.0;
            for (shift, weight) in &update.newest {
                reach = reach.max(shift.unsigned_abs() as usize);
                let Some(there) = i.checked_add_signed(*shift as isize) else {
                    return 0.0;
                };
                let Some(there) = log.get(there) else {
                    return 0.0;
                };
                change += weight * (there - log[i]).exp_m1();
            }
            let half = (loss(i) / 2.0).sinh();
            4.0 * half * half - change
        });
        let parts = parts.collect();
        let Range { start, end } = self.whole;
        let none = (start + reach).min(end)..end.saturating_sub(reach).max(start);
        self.outward = Some(Outward { parts, none });
    }

    /// Adds the term for outward waves, from the version before the newest one.
    pub fn let_in(&self, newest: &mut [f64], before: &[f64]) {
        let Some(Outward { parts, none }) = &self.outward else {
            return;
        };
        let last = none.end.max(none.start);
        for range in [0..none.start, last..newest.len()] {
            let parts = parts[range.clone()].iter().zip(&before[range.clone()]);
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
