//! States that probes and outputs name: `psi of E.z`, the states that the updates of `E.z` keep.

use super::codes;
use super::order::Targeted;
use super::places::region_of;
use super::report::{Outcome, Place, Reported};
use super::resolver::Resolver;
use super::suggest::did_you_mean;
use super::value::{Scope, Value};
use super::zones::Kept;
use crate::scheme::{ComponentId, StateId};
use torre_grammar::ast::{Name, Target, Within};

/// A state that a result shows.
#[derive(Clone, Debug)]
pub struct ShownState {
    pub id: StateId,
    pub component: ComponentId,
    /// Tells it from the others of the same target.
    pub name: String,
    /// Of its zone, among the zones of the frame.
    pub zone: usize,
}

/// The states that a result names.
pub struct ShownStates {
    pub list: Vec<ShownState>,
    pub place: Place,
    /// The parts of the place without layers that have chosen states: these are where the states are kept.
    pub parts: Vec<Within>,
}

impl Resolver<'_> {
    /// The states of this name that the updates of a target keep. Where regions of states are among the parts, only the
    /// states that are kept there.
    pub fn states_of(
        &mut self,
        scope: &Scope,
        state: &Name,
        target: &Target,
        parts: &[Within],
    ) -> Outcome<ShownStates> {
        let Targeted {
            components, place, ..
        } = self.newest(scope, target)?;
        // Where there is no scheme, something else has been reported.
        let kept = self.zoned.kept.clone().ok_or(Reported)?;
        let own: Vec<Kept> = (kept.into_iter())
            .filter(|k| components.contains(&k.target))
            .collect();
        let named = own.iter().filter(|k| k.name == state.node);
        let named: Vec<Kept> = named.cloned().collect();
        if named.is_empty() {
            return self.no_state(scope, state, &components, &own);
        }
        let (chosen, parts) = self.in_regions(scope, &named, parts)?;
        let shown = chosen.iter().map(|k| {
            let of = &self.frame.components[k.target.index()].name;
            let same: Vec<&Kept> = chosen.iter().filter(|o| o.target == k.target).collect();
            let in_zone = same.iter().filter(|o| o.zone == k.zone);
            let before = in_zone.clone().filter(|o| o.id < k.id).count();
            let mut name = format!("{} of {of}", k.name);
            if same.iter().any(|o| o.zone != k.zone) {
                name.push_str(&format!(" in {}", self.frame.zones[k.zone].name));
            }
            if in_zone.count() > 1 {
                name.push_str(&format!(" {}", before + 1));
            }
            ShownState {
                id: k.id,
                component: k.target,
                name,
                zone: k.zone,
            }
        });
        Ok(ShownStates {
            list: shown.collect(),
            place,
            parts,
        })
    }

    fn no_state<T>(
        &mut self,
        scope: &Scope,
        state: &Name,
        components: &[ComponentId],
        own: &[Kept],
    ) -> Outcome<T> {
        let of = components.iter().map(|c| &self.frame.components[c.index()]);
        let of: Vec<String> = of.map(|c| format!("`{}`", c.name)).collect();
        let message = format!(
            "the updates of {} keep no state `{}`",
            of.join(", "),
            state.node
        );
        let mut names: Vec<&str> = own.iter().map(|k| k.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let hint = match names.as_slice() {
            [] => {
                "states are those of layers, as in `boundary x: cpml(10)`, and of definitions with `state`"
                    .to_string()
            }
            names => did_you_mean(&state.node, names.iter().copied())
                .unwrap_or_else(|| format!("they keep {}", names.join(", "))),
        };
        let mut d = self.error(codes::UNKNOWN_NAME, message, &scope.place(state.span));
        d.labels[0].text = "not found".to_string();
        self.fail(d.hint(hint))
    }

    /// The states whose regions are among the parts, all if none is, and the parts without layers that chose some.
    fn in_regions(
        &mut self,
        scope: &Scope,
        states: &[Kept],
        parts: &[Within],
    ) -> Outcome<(Vec<Kept>, Vec<Within>)> {
        let mut chosen: Vec<Kept> = Vec::new();
        let mut rest = Vec::new();
        for part in parts {
            let Some(region) = region_of(part) else {
                rest.push(part.clone());
                continue;
            };
            let mut of_layers = false;
            let condition = self.condition(scope, region)?;
            let Value::Scalar(condition) = condition.value else {
                return Err(Reported);
            };
            let layers = self.zoned.layers.get(&condition.node);
            let layers = layers.map(|zone| self.frame.zones[*zone].clone());
            for kept in states {
                let zone = &self.frame.zones[kept.zone];
                let in_layers = layers.as_ref().is_some_and(|layers| {
                    zone.in_layers && zone.boxes.iter().all(|b| layers.boxes.contains(b))
                });
                of_layers |= in_layers;
                let known = chosen.iter().any(|k| k.id == kept.id);
                if !known && (in_layers || zone.mask == Some(condition.node)) {
                    chosen.push(kept.clone());
                }
            }
            if !of_layers {
                rest.push(part.clone());
            }
        }
        if chosen.is_empty() {
            chosen = states.to_vec();
        }
        chosen.sort_by_key(|k| k.id);
        Ok((chosen, rest))
    }
}
