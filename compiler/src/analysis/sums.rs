//! Sums over values of others: components whose updates are not linear, and on which no other value depends.

use super::linear::own_weight;
use super::number::Number;
use crate::host_range::Range;
use crate::scheme::{ComponentId, Scheme};

/// The most that the old values of a sum weigh together after a step, over all of its updates that act or may act.
/// `None` where another value depends on the component, or its own values do not enter linearly.
pub fn own_weight_of_sum<N: Number>(
    scheme: &Scheme,
    sum: ComponentId,
    coefs: &[N],
    active: impl Fn(usize, usize) -> Option<bool>,
) -> Option<f64> {
    let ranges: Vec<Range> = coefs.iter().map(|c| c.range()).collect();
    let mut weights = Vec::new();
    for (stage, updates) in scheme.stages.iter().map(|s| &s.updates).enumerate() {
        for (number, update) in updates.iter().enumerate() {
            if update.target != sum {
                if update.body.reads().any(|read| read.component == sum) {
                    return None;
                }
                continue;
            }
            let weight = || own_weight(&update.body, &ranges, sum);
            match active(stage, number) {
                Some(false) => {}
                Some(true) => weights.push(weight()?),
                // Where it does not act, the old value stays.
                None => weights.push(weight()?.max(1.0)),
            }
        }
    }
    Some(match scheme.component(sum).time_levels {
        // Each update has nothing but the result of the one before it.
        0 | 1 => weights.into_iter().product(),
        _ => weights.into_iter().fold(0.0, f64::max),
    })
}
