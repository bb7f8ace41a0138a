//! The probes of a problem: values of fields and states in boxes of cells.

use super::codes;
use super::confine::confine;
use super::kept::ShownStates;
use super::order::Targeted;
use super::report::{Outcome, Place, Reported};
use super::resolver::Resolver;
use super::results::{Recorded, Results};
use super::value::Kind;
use crate::lattice::{Axis, PerAxis, Region};
use crate::problem::{Probe, StateProbe};
use crate::reference::for_each_index;
use crate::scheme::Component;
use torre_grammar::ast::{self, Name, Target};

/// Values that one statement records.
const PROBES: u64 = 4_096;
/// The column of tables over time that has the times.
const TIMES: &str = "t";

/// How the probes of a box are called.
struct Names {
    prefix: String,
    /// The program names the box.
    given: bool,
}

impl Resolver<'_> {
    /// Probes of components, or of states.
    pub fn probe(
        &mut self,
        recorded: &Recorded<'_>,
        targets: &[Target],
        at: &ast::Place,
        name: Option<&Name>,
        results: &mut Results,
    ) -> Outcome<()> {
        let scope = recorded.scope;
        for target in targets {
            if let Some(state) = &target.state {
                self.probe_states(recorded, state, target, at, name, results)?;
                continue;
            }
            let Targeted {
                kind,
                components,
                place,
                ..
            } = self.newest(scope, target)?;
            for component in components {
                let facts = self.frame.components[component.index()].clone();
                let Some(region) = self.probed(recorded, at, &facts, &place)? else {
                    continue;
                };
                self.not_too_many(recorded, region.volume(), &facts.name)?;
                let prefix = match (name, targets.len()) {
                    (None, _) => facts.name.clone(),
                    (Some(n), 1) if kind == Kind::Scalar => n.node.clone(),
                    (Some(n), 1) => match facts.name.split_once('.') {
                        Some((_, part)) => format!("{}.{part}", n.node),
                        None => n.node.clone(),
                    },
                    (Some(n), _) => format!("{}.{}", n.node, facts.name),
                };
                let names = Names {
                    prefix,
                    given: name.is_some(),
                };
                self.record_box(recorded, region, names, results, |results, name, at| {
                    results.probes.push(Probe {
                        name,
                        component,
                        at,
                        every: recorded.every,
                    });
                })?;
            }
        }
        Ok(())
    }

    /// Refuses the name of the column that has the times.
    pub fn not_times(&mut self, name: &str, place: &Place) -> Outcome<()> {
        if name != TIMES {
            return Ok(());
        }
        let message = format!("`{TIMES}` is the name of the times in this table");
        let d = self
            .error(codes::SAME_NAME, message, place)
            .hint("choose another name for the values");
        self.fail(d)
    }

    /// Probes of states, where they are kept.
    fn probe_states(
        &mut self,
        recorded: &Recorded<'_>,
        state: &Name,
        target: &Target,
        at: &ast::Place,
        name: Option<&Name>,
        results: &mut Results,
    ) -> Outcome<()> {
        let parts = match at {
            ast::Place::In(parts) => parts.as_slice(),
            _ => &[],
        };
        let ShownStates { list, place, parts } =
            self.states_of(recorded.scope, state, target, parts)?;
        let at = &match at {
            ast::Place::In(_) => ast::Place::In(parts),
            at => at.clone(),
        };
        // Whether there is a place, or it was said that there is none.
        let mut found = false;
        for shown in &list {
            let facts = Component {
                name: shown.name.clone(),
                ..self.frame.components[shown.component.index()].clone()
            };
            let Some(region) = self.probed(recorded, at, &facts, &place)? else {
                found = true;
                continue;
            };
            let boxes = self.frame.zones[shown.zone].boxes.clone();
            let boxes: Vec<Region> = boxes.iter().map(|b| b.intersect(region)).collect();
            let volume = boxes.iter().map(Region::volume).sum();
            self.not_too_many(recorded, volume, &facts.name)?;
            let prefix = match (name, list.len()) {
                (None, _) => shown.name.clone(),
                (Some(n), 1) => n.node.clone(),
                (Some(n), _) => format!("{}.{}", n.node, shown.name),
            };
            for own in boxes {
                if own.is_empty() {
                    continue;
                }
                found = true;
                let names = Names {
                    prefix: prefix.clone(),
                    given: name.is_some(),
                };
                self.record_box(recorded, own, names, results, |results, name, at| {
                    results.state_probes.push(StateProbe {
                        name,
                        state: shown.id,
                        at,
                        every: recorded.every,
                    });
                })?;
            }
        }
        if !found {
            let component = target.component.as_ref();
            let part = component.map_or(String::new(), |c| format!(".{}", c.node));
            let name = format!("{} of {}{part}", state.node, target.field.node);
            self.warn_of_no_place(&name, "this probe records", &place);
        }
        Ok(())
    }

    /// The box that a probe of a component records; `None` where there is nothing.
    fn probed(
        &mut self,
        recorded: &Recorded<'_>,
        at: &ast::Place,
        facts: &Component,
        place: &Place,
    ) -> Outcome<Option<Region>> {
        let scope = recorded.scope;
        let grid = self.frame.grid.as_ref().ok_or(Reported)?;
        let extent = grid.extent(facts.position);
        let mut region = self.place_box(scope, at, extent, facts)?;
        let condition = self.place_condition(scope, at)?;
        if let Some(condition) = condition {
            let node = self.at_position(&condition, &facts.name, facts.position)?;
            let confined = confine(&mut self.graph, Some(node), facts.position, region);
            if confined.rest.is_some() {
                let d = self
                    .error(
                        codes::NO_BOX,
                        "a probe records a box of cells, and this region is none",
                        &condition.place,
                    )
                    .hint("write the values around it with `output volume ... in ...`");
                return self.fail(d);
            }
            region = confined.region;
        }
        if region.is_empty() {
            self.warn_of_no_place(&facts.name, "this probe records", place);
            return Ok(None);
        }
        Ok(Some(region))
    }

    /// Refuses a probe of more values than a table takes.
    fn not_too_many(&mut self, recorded: &Recorded<'_>, volume: u64, name: &str) -> Outcome<()> {
        if volume <= PROBES {
            return Ok(());
        }
        let message =
            format!("a probe records up to {PROBES} values, but {volume} of `{name}` lie here");
        let d = self
            .error(codes::TOO_MANY_PROBES, message, recorded.place)
            .hint("write them with `output volume ... in ... every ...`");
        self.fail(d)
    }

    /// One probe for each index of a box. Names have the indices; if the box itself is named, only the indices that
    /// vary.
    fn record_box(
        &mut self,
        recorded: &Recorded<'_>,
        region: Region,
        names: Names,
        results: &mut Results,
        mut add: impl FnMut(&mut Results, String, PerAxis<i64>),
    ) -> Outcome<()> {
        let axes = self.frame.present().into_iter().map(|(_, a)| a);
        let shown: Vec<Axis> = axes
            .filter(|a| !names.given || region[*a].len() > 1)
            .collect();
        let mut failed = false;
        for_each_index(region, |at| {
            let indices = shown.iter().map(|a| format!("_{}", at[*a]));
            let name = format!("{}{}", names.prefix, indices.collect::<String>());
            failed |= self.not_times(&name, recorded.place).is_err();
            if !results.probe_names.insert(name.clone()) {
                let d = self
                    .error(
                        codes::SAME_NAME,
                        format!("there is another probe `{name}`"),
                        recorded.place,
                    )
                    .hint("name one of them: `probe ... as name`");
                failed |= self.fail::<()>(d).is_err();
            }
            add(results, name, at);
        });
        if failed { Err(Reported) } else { Ok(()) }
    }
}
