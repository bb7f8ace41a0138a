//! Parts of a scheme that are judged alone: components whose values depend on each other.
//!
//! Values of one part may drive another part, and not the other way round, so the eigenvalues of a step are the
//! eigenvalues of its parts. Which cells make a medium for the waves of one part, where these are most vigorous, and
//! which growth they may have, does not depend on statements that advance other parts.

use crate::scheme::{ComponentId, Scheme, Stage};
use std::sync::Arc;

/// Components whose values depend on each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// In ascending order.
    components: Arc<[ComponentId]>,
}

impl Part {
    /// All components of a scheme.
    pub fn whole(scheme: &Scheme) -> Self {
        Self {
            components: scheme.component_ids().collect(),
        }
    }

    pub fn has(&self, component: ComponentId) -> bool {
        self.components.binary_search(&component).is_ok()
    }

    /// Whether parts have a component in common.
    pub fn meets(&self, other: &Part) -> bool {
        other.components.iter().any(|c| self.has(*c))
    }

    /// This part with all parts of a scheme that it meets: with other numbers, other values may depend on each other.
    pub fn within(&self, parts: &Parts) -> Self {
        let all = parts.cyclic.iter().filter(|part| self.meets(part));
        let all = all.flat_map(|part| part.components.iter());
        let mut components: Vec<ComponentId> = all.chain(self.components.iter()).copied().collect();
        components.sort();
        components.dedup();
        Self {
            components: components.into(),
        }
    }

    /// Versions of values in a cell.
    pub fn values(&self, scheme: &Scheme) -> usize {
        let levels = self.components.iter();
        levels
            .map(|c| usize::from(scheme.component(*c).time_levels))
            .sum()
    }

    /// A scheme with the updates of this part alone.
    pub fn scheme(&self, scheme: &Scheme) -> Scheme {
        let own = |stage: &Stage| {
            let updates = stage.updates.iter().filter(|u| self.has(u.target));
            Stage {
                updates: updates.cloned().collect(),
            }
        };
        Scheme {
            stages: scheme.stages.iter().map(own).collect(),
            name: scheme.name.clone(),
            precision: scheme.precision,
            grid: scheme.grid.clone(),
            components: scheme.components.clone(),
            coefs: scheme.coefs.clone(),
            files: scheme.files.clone(),
            zones: scheme.zones.clone(),
            states: scheme.states.clone(),
        }
    }
}

/// The parts of a scheme.
pub struct Parts {
    /// Parts with values that depend on themselves: only these can grow of themselves.
    pub cyclic: Vec<Part>,
    /// All other components that are advanced.
    pub driven: Part,
}

impl Parts {
    pub fn new(scheme: &Scheme) -> Self {
        let n = scheme.components.len();
        let mut edges = vec![0.0; n * n];
        let mut is_advanced = vec![false; n];
        for update in scheme.stages.iter().flat_map(|s| &s.updates) {
            is_advanced[update.target.index()] = true;
            for read in update.body.reads() {
                edges[update.target.index() * n + read.component.index()] = 1.0;
            }
        }
        let reaches = closure(&edges, n);
        let id = |index: usize| ComponentId(index as u32);
        let mut cyclic = Vec::new();
        let mut is_done = vec![false; n];
        for i in (0..n).filter(|i| reaches[i * n + i]) {
            if is_done[i] {
                continue;
            }
            let members = (i..n).filter(|j| reaches[i * n + j] && reaches[j * n + i]);
            let members: Vec<usize> = members.collect();
            for member in &members {
                is_done[*member] = true;
            }
            cyclic.push(Part {
                components: members.into_iter().map(id).collect(),
            });
        }
        let driven = (0..n).filter(|i| is_advanced[*i] && !is_done[*i]);
        Self {
            driven: Part {
                components: driven.map(id).collect(),
            },
            cyclic,
        }
    }
}

/// Which element is reached from which over one or more edges, where element (i, j) of the matrix is an edge unless it
/// is 0.
pub fn closure(matrix: &[f64], n: usize) -> Vec<bool> {
    let mut reaches: Vec<bool> = matrix.iter().map(|v| *v != 0.0).collect();
    for middle in 0..n {
        for i in 0..n {
            if reaches[i * n + middle] {
                for j in 0..n {
                    if reaches[middle * n + j] {
                        reaches[i * n + j] = true;
                    }
                }
            }
        }
    }
    reaches
}
