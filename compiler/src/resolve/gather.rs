//! The inputs of a calculation from a problem: initial values and sources.

use super::codes;
use super::confine::{confine, conjuncts};
use super::enclose::{Claim, Implied, enclose, implied};
use super::files_read::Site;
use super::graph::NodeId;
use super::order::{Statement, Targeted};
use super::output::OutputPart;
use super::report::{Outcome, Place, Reported};
use super::resolver::Resolver;
use super::results::{Recorded, Results, SourceText};
use super::value::{Operand, Scope, Typed};
use crate::host::{HostExpr, HostUnary};
use crate::lattice::{Position, Region};
use crate::problem::{Init, Source, StaticValue};
use crate::scheme::{ComponentId, Grid, Scheme, StageId};
use torre_grammar::ast::{self, Expr, Level, ProblemStmt, Target, UpdateOp};
use torre_grammar::diag::Diagnostic;

/// Results of one problem.
const RESULTS: usize = 10_000;
/// The values that are bounded to find out whether updates act at all places of the sources of a problem.
const COVERING: usize = 4_000_000;
/// The same for later statements that act at some of these places.
const LATER: usize = 100_000;

/// A source as the problem states it.
struct Stated<'a> {
    target: &'a Target,
    place: &'a ast::Place,
    op: UpdateOp,
    value: &'a Expr,
}

/// The places of a component at which a source acts.
struct SourcePlaces {
    /// A box around them.
    region: Region,
    /// The condition that holds at them, as far as the box does not say it.
    rest: Option<HostExpr>,
    /// The whole condition.
    condition: Option<NodeId>,
    /// Whether the boundary holds the component at 0 at all places that the source names.
    is_held: bool,
}

/// Where an update acts.
struct Acts<'a> {
    grid: &'a Grid,
    /// A box around its places.
    region: Region,
    /// The condition of its statement, if it has one.
    condition: Option<NodeId>,
}

impl Resolver<'_> {
    pub fn results(
        &mut self,
        scope: &Scope,
        problem: &ast::Problem,
        statements: &[Statement],
    ) -> Outcome<Results> {
        let grid = self.frame.grid.clone().ok_or(Reported)?;
        let mut results = Results::default();
        let incoming = self.incoming(scope, problem);
        let mut failed = incoming.is_err();
        results.incoming = incoming.unwrap_or_default();
        for stmt in &problem.body {
            let place = scope.place(stmt.kind.span);
            let recorded = |resolver: &mut Self, every: &Option<Expr>| {
                Ok(Recorded {
                    scope,
                    place: &place,
                    every: resolver.every(scope, every.as_ref())?,
                })
            };
            let r = &mut results;
            let done = match &stmt.kind.node {
                ProblemStmt::Init { target, value } => self.init(scope, target, value, r),
                ProblemStmt::Source {
                    target,
                    place,
                    op,
                    value,
                } => {
                    let source = Stated {
                        target,
                        place,
                        op: *op,
                        value,
                    };
                    self.source(scope, &source, &grid, statements, r)
                }
                ProblemStmt::Probe {
                    targets,
                    place: at,
                    name,
                    every,
                } => recorded(self, every)
                    .and_then(|recorded| self.probe(&recorded, targets, at, name.as_ref(), r)),
                ProblemStmt::Record {
                    name,
                    value,
                    within,
                    every,
                } => {
                    // A record is no part of the equations, so layers do not change its differences.
                    let plain = std::mem::replace(&mut self.zoned.plain, true);
                    let done = recorded(self, every)
                        .and_then(|recorded| self.record(&recorded, name, value, within, r));
                    self.zoned.plain = plain;
                    // Its places are its own.
                    self.files.site = Site::Nowhere;
                    done
                }
                ProblemStmt::Slice {
                    targets,
                    plane,
                    within,
                    every,
                } => recorded(self, every).and_then(|recorded| {
                    let part = OutputPart {
                        plane: Some(plane),
                        within,
                    };
                    self.output(&recorded, targets, &part, None, r)
                }),
                ProblemStmt::Volume {
                    targets,
                    within,
                    every,
                } => recorded(self, every).and_then(|recorded| {
                    let part = OutputPart {
                        plane: None,
                        within,
                    };
                    self.output(&recorded, targets, &part, None, r)
                }),
                ProblemStmt::Spectrum {
                    targets,
                    plane,
                    within,
                    frequencies,
                    every,
                } => recorded(self, every).and_then(|recorded| {
                    let part = OutputPart {
                        plane: plane.as_ref(),
                        within,
                    };
                    let spectrum = self.spectrum(&recorded, frequencies)?;
                    self.output(&recorded, targets, &part, Some(&spectrum), r)
                }),
                _ => Ok(()),
            };
            failed |= done.is_err();
            let total = results.init.len()
                + results.sources.len()
                + results.probes.len()
                + results.state_probes.len()
                + results.series.len()
                + results.outputs.len()
                + results.statics.len();
            if total > RESULTS {
                let d = self.error(codes::TOO_COMPLEX, "the problem is too long", &place);
                return self.fail(d);
            }
        }
        if failed { Err(Reported) } else { Ok(results) }
    }

    /// A target whose newest value is meant.
    pub fn newest(&mut self, scope: &Scope, target: &Target) -> Outcome<Targeted> {
        let named = self.target(scope, target)?;
        if let Some(level) = &target.level {
            let d = self.error(
                codes::LEVEL_OF,
                "only the newest value can stand here",
                &scope.place(level.span),
            );
            return self.fail(d);
        }
        Ok(named)
    }

    fn init(
        &mut self,
        scope: &Scope,
        target: &Target,
        value: &Expr,
        results: &mut Results,
    ) -> Outcome<()> {
        let Targeted {
            field,
            kind,
            components,
            place,
        } = self.target(scope, target)?;
        let mut age = 0;
        if let Some(level) = &target.level {
            let facts = &self.frame.fields[field];
            let (name, levels) = (facts.name.clone(), facts.levels);
            let at = scope.place(level.span);
            if level.node == Level::Next {
                let d = self.error(codes::LEVEL_OF, "there is no next value at the start", &at);
                return self.fail(d);
            }
            if levels < 2 {
                let d = self
                    .error(
                        codes::NO_PREVIOUS,
                        format!("`{name}` keeps no earlier value"),
                        &at,
                    )
                    .hint(format!("declare `field {name} : ... levels 2`"));
                return self.fail(d);
            }
            age = 1;
        }
        let sites = self.sites(&components);
        let operand = self.operand_at(scope, value, kind, &sites)?;
        let at = operand.place.clone();
        let items = self.values_for(kind, &components, operand, &place)?;
        for (component, item) in components.into_iter().zip(items) {
            let value = match self.host(item, component, &at, "an initial value")? {
                HostExpr::File { file, offset } if offset.0 == [0; 3] => StaticValue::File(file),
                value => StaticValue::Expr(value),
            };
            results.init.push(Init {
                component,
                age,
                value,
            });
        }
        Ok(())
    }

    /// Where the values of components lie.
    pub fn sites(&self, components: &[ComponentId]) -> Vec<Site> {
        let position = |c: &ComponentId| self.frame.components[c.index()].position;
        components.iter().map(|c| Site::At(position(c))).collect()
    }

    /// A value of the problem at a component's position, as the host computes it.
    pub fn host(
        &mut self,
        item: Typed,
        component: ComponentId,
        place: &Place,
        name: &str,
    ) -> Outcome<HostExpr> {
        let position = self.frame.components[component.index()].position;
        self.host_at(item, position, place, name)
    }

    /// A static value at a position, as the host computes it.
    pub fn host_at(
        &mut self,
        item: Typed,
        position: Position,
        place: &Place,
        name: &str,
    ) -> Outcome<HostExpr> {
        if self.graph.is_dynamic(item.node) {
            let mut d = self.error(
                codes::NOT_STATIC,
                format!("{name} cannot depend on field values"),
                place,
            );
            d.labels[0].text = "this depends on field values".to_string();
            return self.fail(d);
        }
        match self.graph.host(item.node, position) {
            Some(e) => Ok(e),
            None => {
                let d = self.error(
                    codes::TOO_COMPLEX,
                    "this expression is too long once all definitions are inlined",
                    place,
                );
                self.fail(d)
            }
        }
    }

    fn source(
        &mut self,
        scope: &Scope,
        source: &Stated<'_>,
        grid: &Grid,
        statements: &[Statement],
        results: &mut Results,
    ) -> Outcome<()> {
        let Targeted {
            kind,
            components,
            place,
            ..
        } = self.newest(scope, source.target)?;
        let sites = self.sites(&components);
        let operand = self.operand_at(scope, source.value, kind, &sites);
        let condition = self.place_condition(scope, source.place)?;
        let operand = operand?;
        let value_place = operand.place.clone();
        let items = self.values_for(kind, &components, operand, &place)?;
        for (component, item) in components.into_iter().zip(items) {
            let name = self.frame.components[component.index()].name.clone();
            let acting = self.source_places(scope, source.place, &condition, component, grid)?;
            let value = self.host(item, component, &value_place, "a source")?;
            if acting.is_held {
                self.report.push(
                    Diagnostic::warning(
                        codes::HELD_AT_ZERO,
                        format!("the boundary holds `{name}` at 0 here"),
                    )
                    .at(&place.source, place.span, "this source has no effect")
                    .hint(
                        "move it one cell into the domain; or drive an end with another kind of side, such as `zero`",
                    ),
                );
                continue;
            }
            let Some(stage) = self.source_stage(component, statements, &place)? else {
                continue;
            };
            if acting.region.is_empty() {
                self.warn_of_no_place(&name, "this source acts", &place);
                continue;
            }
            let (mut profile, wave) = value.separate().unwrap_or((HostExpr::Number(1.0), value));
            if source.op == UpdateOp::Sub {
                profile = HostExpr::unary(HostUnary::Neg, profile);
            }
            results.source_texts.push(SourceText {
                place: place.clone(),
                condition: acting.condition,
            });
            results.sources.push(Source {
                component,
                stage,
                region: acting.region,
                condition: acting.rest,
                profile,
                wave,
                replaces: source.op == UpdateOp::Set,
            });
        }
        Ok(())
    }

    /// The places of a component at which a source acts that stands at `at`, under the condition of this place.
    fn source_places(
        &mut self,
        scope: &Scope,
        at: &ast::Place,
        condition: &Option<Operand>,
        component: ComponentId,
        grid: &Grid,
    ) -> Outcome<SourcePlaces> {
        let facts = self.frame.components[component.index()].clone();
        let extent = grid.extent(facts.position);
        let live = grid.live(facts.position);
        let asked = self.place_box(scope, at, extent, &facts)?;
        let mut places = SourcePlaces {
            region: asked.intersect(live),
            rest: None,
            condition: None,
            is_held: !asked.is_empty() && asked.intersect(live).is_empty(),
        };
        let Some(condition) = condition else {
            return Ok(places);
        };
        let node = self.at_position(condition, &facts.name, facts.position)?;
        places.condition = Some(node);
        let confined = confine(&mut self.graph, Some(node), facts.position, places.region);
        places.region = confined.region;
        if let Some(node) = confined.rest {
            places.region = enclose(&mut self.graph, grid, node, facts.position, places.region);
            let typed = Typed {
                node,
                position: None,
            };
            places.rest = Some(self.host(typed, component, &condition.place, "a condition")?);
        }
        Ok(places)
    }

    /// The last stage that updates a component; `None` where the step has errors, so that no statement is known.
    fn source_stage(
        &mut self,
        component: ComponentId,
        statements: &[Statement],
        place: &Place,
    ) -> Outcome<Option<StageId>> {
        // Imaginary parts are updated with real ones.
        let updated = self.frame.real_part(component);
        let stage = statements
            .iter()
            .rposition(|s| s.updates.iter().any(|u| u.target == updated));
        if stage.is_some() || statements.is_empty() {
            return Ok(stage.map(|stage| StageId(stage as u32)));
        }
        let name = &self.frame.components[component.index()].name;
        let d = self
            .error(
                codes::NEVER_UPDATED,
                format!("the step never updates `{name}`"),
                place,
            )
            .hint("a source adds to a value after its update: use `init` instead");
        self.fail(d)
    }

    /// Attaches each source to the last stage that updates all values that it adds to.
    pub fn attach_sources(
        &mut self,
        scheme: &Scheme,
        statements: &[Statement],
        results: &mut Results,
    ) -> Outcome<()> {
        let mut failed = false;
        let (mut work, mut looking) = (COVERING, LATER);
        for (source, text) in results.sources.iter_mut().zip(&results.source_texts) {
            let mut found = None;
            let target = self.frame.real_part(source.component);
            for stage in scheme.stage_ids() {
                let updates = &scheme.stages[stage.index()].updates;
                let update = updates.iter().find(|u| u.target == source.component);
                let Some(update) = update else { continue };
                let acts = Acts {
                    grid: &scheme.grid,
                    region: update.region,
                    condition: statements[stage.index()].condition_of(target),
                };
                let region = self.covered(source, text, &acts, &mut work);
                found = region.map(|region| (stage, region)).or(found);
            }
            match found {
                Some((stage, region)) => {
                    (source.stage, source.region) = (stage, region);
                    let later = scheme.stage_ids().skip(stage.index() + 1);
                    let mut later = later.map(|id| (id, &scheme.stages[id.index()]));
                    let changes = later.find(|(id, own)| {
                        let update = own.updates.iter().find(|u| u.target == source.component);
                        update.is_some_and(|update| {
                            let acts = Acts {
                                grid: &scheme.grid,
                                region: update.region,
                                condition: statements[id.index()].condition_of(target),
                            };
                            self.touches(source, text, &acts, &mut looking)
                        })
                    });
                    if let Some((id, _)) = changes {
                        let name = &scheme.component(source.component).name;
                        self.warn_of_later(name, &text.place, &statements[id.index()]);
                    }
                }
                None => {
                    let name = &scheme.component(source.component).name;
                    let place = &text.place;
                    let d = Diagnostic::error(
                        codes::OUTSIDE_UPDATE,
                        format!("no update of `{name}` covers all places of this source"),
                    )
                    .at(&place.source, place.span, "reaches beyond the `where` of the updates")
                    .hint("a source adds to a value after its update: confine it to where one acts, or split it");
                    failed |= self.fail::<()>(d).is_err();
                }
            }
        }
        if failed { Err(Reported) } else { Ok(()) }
    }

    /// The box around the places of a source if an update acts at all of them. Where conditions are too long to be
    /// decided for each place, or read arrays, the box of the update has to cover that of the source.
    fn covered(
        &mut self,
        source: &Source,
        text: &SourceText,
        acts: &Acts<'_>,
        work: &mut usize,
    ) -> Option<Region> {
        let common = source.region.intersect(acts.region);
        let given = conjuncts(&mut self.graph, text.condition);
        let mut wanted = conjuncts(&mut self.graph, acts.condition);
        wanted.retain(|node| !given.contains(node));
        let claim = Claim {
            grid: acts.grid,
            given: &given,
            wanted: &wanted,
            position: self.frame.components[source.component.index()].position,
            region: source.region,
        };
        match implied(&self.graph, &claim, work) {
            Implied::Yes if !common.is_empty() => Some(common),
            Implied::No => None,
            _ => (common == source.region).then_some(common),
        }
    }

    /// Whether an update surely acts at some places of a source.
    fn touches(
        &mut self,
        source: &Source,
        text: &SourceText,
        acts: &Acts<'_>,
        work: &mut usize,
    ) -> bool {
        let region = source.region.intersect(acts.region);
        let Some(condition) = acts.condition else {
            return !region.is_empty();
        };
        let given = conjuncts(&mut self.graph, text.condition);
        let never = self.graph.unary(HostUnary::Not, condition);
        if given.contains(&never) {
            return false;
        }
        let claim = Claim {
            grid: acts.grid,
            given: &given,
            wanted: &[never],
            position: self.frame.components[source.component.index()].position,
            region,
        };
        !region.is_empty() && implied(&self.graph, &claim, work) == Implied::No
    }

    fn warn_of_later(&mut self, name: &str, place: &Place, later: &Statement) {
        let message = format!(
            "this source acts before a later statement of the step, which changes some of its values of `{name}`"
        );
        let d = Diagnostic::warning(codes::CHANGED_LATER, message)
            .at(
                &place.source,
                place.span,
                "acts after the last statement at all of its places",
            )
            .at(
                &later.value.source,
                later.value.span,
                "acts at some of them",
            )
            .hint("split the source, so that each part lies where one statement is the last");
        self.report.push(d);
    }

    /// Warns of spectra whose first value is due after the last step.
    pub fn warn_of_empty_spectra(&mut self, scope: &Scope, problem: &ast::Problem, steps: u64) {
        for stmt in &problem.body {
            let ProblemStmt::Spectrum { every, .. } = &stmt.kind.node else {
                continue;
            };
            let first = self.every(scope, every.as_ref());
            if let Ok(first) = first
                && first > steps
            {
                let message = format!("a run of {steps} steps has no value of this spectrum");
                let label = format!("the first one would be of step {first}");
                let d = Diagnostic::warning(codes::NO_VALUES, message);
                self.report
                    .push(d.at(&scope.source, stmt.kind.span, label.as_str()));
            }
        }
    }

    fn every(&mut self, scope: &Scope, every: Option<&Expr>) -> Outcome<u64> {
        every.map_or(Ok(1), |e| self.count_of(scope, e, 1))
    }
}
