//! What keeps steps out of bands of towers: they run stage by stage.

use torre_compiler::problem::Problem;

/// What a problem asks for besides values at its end, as far as bands do not do it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    /// What happens in every step, in words: then there are no bands at all.
    pub always: Vec<&'static str>,
    /// Nothing of a band may lie on both sides of a multiple of these steps.
    intervals: Vec<u64>,
}

/// Steps that are looked at to find a share.
const LOOKED_AT: u64 = 1 << 14;

impl Apart {
    /// Decides what of a problem does not happen inside of bands.
    pub fn new(problem: &Problem) -> Apart {
        let each = [
            (!problem.sources.is_empty(), "sources act"),
            (!problem.probes.is_empty(), "probes record"),
        ];
        Apart {
            always: each.iter().filter(|(is, _)| *is).map(|e| e.1).collect(),
            intervals: problem.outputs.iter().map(|o| o.every.max(1)).collect(),
        }
    }

    /// Whether a band of so many steps, at least 1, may begin at a step.
    pub fn allows(&self, step: u64, steps: u64) -> bool {
        let last = step + steps - 1;
        let inside = |every: &u64| step / every == last / every;
        self.always.is_empty() && self.intervals.iter().all(inside)
    }

    /// The share of the steps of a run, from the first one on, that bands of a height advance.
    pub fn share(&self, height: u64, steps: u64) -> f64 {
        if !self.always.is_empty() || height == 0 {
            return 0.0;
        }
        let end = steps.min(LOOKED_AT.max(8 * height));
        let (mut step, mut banded) = (0, 0);
        while step < end {
            match step + height <= end && self.allows(step, height) {
                true => {
                    banded += height;
                    step += height;
                }
                false => step += 1,
            }
        }
        banded as f64 / end.max(1) as f64
    }

    /// Why a run is not by towers in all steps, or in few, for people.
    pub fn note(&self, height: u64, steps: u64) -> Option<String> {
        let each = self.always.join(" and ");
        if !each.is_empty() {
            return Some(format!(
                "{each} in every step, so a GPU goes stage by stage: it runs towers where nothing happens between their steps"
            ));
        }
        let share = self.share(height, steps);
        (share < 0.5).then(|| {
            format!(
                "only {:.0} % of the steps run by towers {height} steps high: they end where a slice or a volume is due, and at the last step",
                100.0 * share
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_lie_between_what_is_due() {
        let every = |intervals: &[u64]| Apart {
            intervals: intervals.to_vec(),
            ..Apart::default()
        };
        let apart = every(&[6]);
        assert!(apart.allows(0, 6) && apart.allows(6, 4) && !apart.allows(4, 4));
        assert_eq!(apart.share(4, 600), 4.0 / 6.0);
        assert_eq!(every(&[]).share(8, 20), 0.8);
        assert_eq!(apart.share(8, 600), 0.0);
        assert!(apart.note(8, 600).is_some_and(|n| n.contains("only 0 %")));
        assert_eq!(apart.note(3, 600), None);
        let busy = Apart {
            always: vec!["sources act", "probes record"],
            ..Apart::default()
        };
        assert!(!busy.allows(0, 1) && busy.share(1, 10) == 0.0);
        let note = busy.note(4, 10).unwrap_or_default();
        assert!(
            note.starts_with("sources act and probes record in every step"),
            "{note}"
        );
    }
}
