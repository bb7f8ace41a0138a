//! How long passes of stripes take.

use super::{StripeAction, StripeOp, StripedPass};
use crate::lattice::Interval;
use crate::pipeline::pace::{self, Work};

/// Seconds of operations.
pub struct StripeSeconds<'a> {
    /// For which a launch, by stripe and number, keeps others from its device.
    pub launch: &'a dyn Fn(usize, i64) -> f64,
    /// From the time at which a device could go on with another launch to the end of a launch.
    pub tail: f64,
    /// Of a copy of planes to another device.
    pub send: &'a dyn Fn(Interval) -> f64,
}

/// How long a pass takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StripedTime {
    pub seconds: f64,
    /// In which the device with most work computes.
    pub computing: f64,
}

impl StripedPass {
    /// How long its operations take, each device doing one launch after the other.
    pub fn time(&self, ops: &[StripeOp], of: &StripeSeconds<'_>) -> StripedTime {
        let stripes = self.stripes();
        let mut works: Vec<Work> = Vec::with_capacity(ops.len());
        let mut computing = vec![0.0; stripes];
        let mut last = std::collections::BTreeMap::new();
        for (number, op) in ops.iter().enumerate() {
            let mut after = op.after.clone();
            after.extend(last.insert(op.queue, number));
            works.push(match op.action {
                StripeAction::Run { stripe, launch, .. } => {
                    let occupies = (of.launch)(stripe, launch);
                    computing[stripe] += occupies;
                    Work {
                        resource: stripe,
                        occupies,
                        takes: occupies + of.tail,
                        after,
                    }
                }
                StripeAction::Send {
                    from, to, planes, ..
                } => {
                    let takes = (of.send)(planes);
                    Work {
                        resource: stripes + 2 * from + usize::from(to > from),
                        occupies: takes,
                        takes,
                        after,
                    }
                }
            });
        }
        StripedTime {
            seconds: pace::ends(&works).into_iter().fold(0.0, f64::max),
            computing: computing.into_iter().fold(0.0, f64::max),
        }
    }
}
