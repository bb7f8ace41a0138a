//! What a problem puts into a calculation and takes out of it: initial values, sources, probes, outputs.

use super::codes;
use super::confine::confine;
use super::order::{Named, Statement};
use super::report::{Checked, Place, Reported, count};
use super::resolver::{Resolver, Scope};
use super::value::{Kind, Operand, Typed, Value};
use crate::host::HostExpr;
use crate::lattice::{Interval, PerAxis, Region};
use crate::problem::{Init, Output, OutputKind, Probe, Source, StaticValue};
use crate::scheme::{ComponentId, Grid, Scheme, StageId};
use std::collections::{BTreeMap, BTreeSet};
use torre_grammar::ast::{self, CoefValue, Expr, Level, Name, ProblemStmt, Target};
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::Span;

/// Results of one problem.
const RESULTS: usize = 10_000;

/// Results of a problem while they are gathered.
#[derive(Default)]
pub struct Results {
    pub init: Vec<Init>,
    pub sources: Vec<Source>,
    /// Where each source is written.
    pub source_places: Vec<Place>,
    pub probes: Vec<Probe>,
    pub outputs: Vec<Output>,
    probe_names: BTreeSet<String>,
    /// How often an output's name was wanted.
    output_names: BTreeMap<String, u64>,
}

impl Resolver<'_> {
    pub fn results(
        &mut self,
        scope: &Scope,
        problem: &ast::Problem,
        statements: &[Statement],
    ) -> Checked<Results> {
        let grid = self.frame.grid.clone().ok_or(Reported)?;
        let mut results = Results::default();
        let mut failed = false;
        for stmt in &problem.body {
            let place = scope.place(stmt.kind.span);
            let r = &mut results;
            let done = match &stmt.kind.node {
                ProblemStmt::Init { target, value } => self.init(scope, target, value, r),
                ProblemStmt::Source {
                    target,
                    place: at,
                    value,
                } => self.source(scope, target, at, value, &grid, statements, r),
                ProblemStmt::Probe { target, at, name } => {
                    self.probe(scope, target, at, name.as_ref(), &grid, &place, r)
                }
                ProblemStmt::Slice {
                    target,
                    axis,
                    index,
                    every,
                } => self.slice(scope, target, axis, index, every.as_ref(), &grid, r),
                ProblemStmt::Volume { target, every } => {
                    self.volume(scope, target, every.as_ref(), r)
                }
                _ => Ok(()),
            };
            failed |= done.is_err();
            let total = results.init.len()
                + results.sources.len()
                + results.probes.len()
                + results.outputs.len();
            if total > RESULTS {
                let d = self.error(codes::TOO_COMPLEX, "the problem is too long", &place);
                return self.fail(d);
            }
        }
        if failed { Err(Reported) } else { Ok(results) }
    }

    /// A target whose newest value is meant.
    fn newest(&mut self, scope: &Scope, target: &Target) -> Checked<Named> {
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
        value: &CoefValue,
        results: &mut Results,
    ) -> Checked<()> {
        let Named {
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
        match value {
            CoefValue::File(path) => {
                for component in components {
                    let position = self.frame.components[component.index()].position;
                    self.check_file(&scope.place(path.span), &path.node, position)?;
                    let file = self.graph.file_id(&path.node, position);
                    results.init.push(Init {
                        component,
                        age,
                        value: StaticValue::File(file),
                    });
                }
            }
            CoefValue::Expr(e) => {
                let operand = self.operand(scope, e)?;
                let at = operand.place.clone();
                let items = self.values_for(kind, &components, operand, &place)?;
                for (component, item) in components.into_iter().zip(items) {
                    let value = self.host(item, component, &at, "an initial value")?;
                    results.init.push(Init {
                        component,
                        age,
                        value: StaticValue::Expr(value),
                    });
                }
            }
        }
        Ok(())
    }

    /// A value of the problem as the host computes it.
    fn host(
        &mut self,
        item: Typed,
        component: ComponentId,
        place: &Place,
        what: &str,
    ) -> Checked<HostExpr> {
        if self.graph.is_dynamic(item.node) {
            let mut d = self.error(
                codes::NOT_STATIC,
                format!("{what} cannot depend on field values"),
                place,
            );
            d.labels[0].text = "this depends on field values".to_string();
            return self.fail(d);
        }
        let position = self.frame.components[component.index()].position;
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

    #[expect(clippy::too_many_arguments, reason = "the parts of the statement")]
    fn source(
        &mut self,
        scope: &Scope,
        target: &Target,
        at: &ast::Place,
        value: &Expr,
        grid: &Grid,
        statements: &[Statement],
        results: &mut Results,
    ) -> Checked<()> {
        let operand = self.operand(scope, value);
        let Named {
            kind,
            components,
            place,
            ..
        } = self.newest(scope, target)?;
        let condition = match at {
            ast::Place::Where(c) => Some(self.condition(scope, c)?),
            _ => None,
        };
        let operand = operand?;
        let value_place = operand.place.clone();
        let items = self.values_for(kind, &components, operand, &place)?;
        for (component, item) in components.into_iter().zip(items) {
            let facts = self.frame.components[component.index()].clone();
            let extent = grid.extent(facts.position);
            let live = grid.live(facts.position);
            let asked = self.source_region(scope, at, extent, &facts.name)?;
            let mut region = asked.intersect(live);
            let mut rest = None;
            if let Some(Operand {
                value: Value::Scalar(c),
                place,
            }) = &condition
            {
                if let Some(p) = c.position
                    && p != facts.position
                {
                    return self.off_target(&facts.name, facts.position, p, place);
                }
                let confined = confine(&mut self.graph, Some(c.node), facts.position, region);
                region = confined.region;
                if let Some(node) = confined.rest {
                    let typed = Typed {
                        node,
                        position: None,
                    };
                    rest = Some(self.host(typed, component, place, "a condition")?);
                }
            }
            let value = self.host(item, component, &value_place, "a source")?;
            if !asked.is_empty() && asked.intersect(live).is_empty() {
                self.report.push(
                    Diagnostic::warning(
                        codes::HELD_AT_ZERO,
                        format!("the boundary holds `{}` at 0 here", facts.name),
                    )
                    .at(&place.source, place.span, "this source has no effect")
                    .hint("move it one cell into the domain"),
                );
                continue;
            }
            let stage = statements
                .iter()
                .rposition(|s| s.updates.iter().any(|(t, _)| *t == component));
            let Some(stage) = stage else {
                if statements.is_empty() {
                    continue;
                }
                let d = self
                    .error(
                        codes::NEVER_UPDATED,
                        format!("the step never updates `{}`", facts.name),
                        &place,
                    )
                    .hint("a source adds to a value after its update: use `init` instead");
                return self.fail(d);
            };
            if region.is_empty() {
                continue;
            }
            let (profile, wave) = value.separate().unwrap_or((HostExpr::Number(1.0), value));
            results.source_places.push(place.clone());
            results.sources.push(Source {
                component,
                stage: StageId(stage as u32),
                region,
                condition: rest,
                profile,
                wave,
            });
        }
        Ok(())
    }

    /// Attaches each source to the last stage that updates all values that it adds to.
    pub fn attach_sources(&mut self, scheme: &Scheme, results: &mut Results) -> Checked<()> {
        let mut failed = false;
        for (source, place) in results.sources.iter_mut().zip(&results.source_places) {
            let covers = |stage: &StageId| {
                let updates = &scheme.stages[stage.index()].updates;
                updates.iter().any(|u| {
                    u.target == source.component
                        && u.region.intersect(source.region) == source.region
                })
            };
            match scheme.stage_ids().filter(covers).last() {
                Some(stage) => source.stage = stage,
                None => {
                    let name = &scheme.component(source.component).name;
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

    fn source_region(
        &mut self,
        scope: &Scope,
        at: &ast::Place,
        extent: Region,
        name: &str,
    ) -> Checked<Region> {
        match at {
            ast::Place::All | ast::Place::Where(_) => Ok(extent),
            ast::Place::At(list) => {
                let at = self.index(scope, list, extent, name)?;
                Ok(at.map(|i| Interval::new(i, i + 1)))
            }
            ast::Place::In(ranges) => {
                let mut region = extent;
                for (axis, lo, hi) in ranges {
                    let axis_id = self.axis_named(scope, axis)?;
                    let range = Interval::new(self.integer(scope, lo)?, self.integer(scope, hi)?);
                    let whole = extent[axis_id];
                    if range.is_empty() || range.lo < whole.lo || range.hi > whole.hi {
                        let message = if range.is_empty() {
                            format!("the range {range} along `{}` is empty", axis.node)
                        } else {
                            format!(
                                "the range {range} leaves the indices of `{name}` along `{}`, {whole}",
                                axis.node
                            )
                        };
                        let d = self
                            .error(codes::OUTSIDE, message, &scope.place(lo.span.to(hi.span)))
                            .hint("ranges are half-open: `0..64` ends with 63");
                        return self.fail(d);
                    }
                    region[axis_id] = range;
                }
                Ok(region)
            }
        }
    }

    /// Cell indices, within the extent of a component.
    fn index(
        &mut self,
        scope: &Scope,
        list: &[Expr],
        extent: Region,
        name: &str,
    ) -> Checked<PerAxis<i64>> {
        let axes = self.frame.axes.clone();
        if list.len() != axes.len() {
            let span = match (list.first(), list.last()) {
                (Some(a), Some(b)) => a.span.to(b.span),
                _ => Span::default(),
            };
            let d = self.error(
                codes::OUTSIDE,
                format!(
                    "{} given, but the scheme has {}",
                    count(list.len(), "index is", "indices are"),
                    count(axes.len(), "axis", "axes")
                ),
                &scope.place(span),
            );
            return self.fail(d);
        }
        let mut at = PerAxis::splat(0);
        for ((axis_name, axis), e) in axes.iter().zip(list) {
            at[*axis] = self.index_along(scope, e, extent[*axis], axis_name, name)?;
        }
        Ok(at)
    }

    fn index_along(
        &mut self,
        scope: &Scope,
        e: &Expr,
        range: Interval,
        axis: &str,
        name: &str,
    ) -> Checked<i64> {
        let i = self.integer(scope, e)?;
        if range.contains(i) {
            return Ok(i);
        }
        let mut d = self
            .error(
                codes::OUTSIDE,
                format!("`{name}` has no index {i} along {axis}"),
                &scope.place(e.span),
            )
            .hint(format!(
                "its indices along {axis} go from {} to {}",
                range.lo,
                range.hi - 1
            ));
        d.labels[0].text = "outside of the domain".to_string();
        self.fail(d)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of the statement")]
    fn probe(
        &mut self,
        scope: &Scope,
        target: &Target,
        at: &[Expr],
        name: Option<&Name>,
        grid: &Grid,
        place: &Place,
        results: &mut Results,
    ) -> Checked<()> {
        let Named {
            kind, components, ..
        } = self.newest(scope, target)?;
        for component in components {
            let facts = self.frame.components[component.index()].clone();
            let at = self.index(scope, at, grid.extent(facts.position), &facts.name)?;
            let name = match name {
                Some(n) if kind == Kind::Scalar => n.node.clone(),
                Some(n) => match facts.name.split_once('.') {
                    Some((_, part)) => format!("{}.{part}", n.node),
                    None => n.node.clone(),
                },
                None => {
                    let parts: Vec<String> = self
                        .frame
                        .axes
                        .iter()
                        .map(|(_, a)| at[*a].to_string())
                        .collect();
                    format!("{}_{}", facts.name, parts.join("_"))
                }
            };
            if !results.probe_names.insert(name.clone()) {
                let d = self
                    .error(
                        codes::SAME_NAME,
                        format!("there is another probe `{name}`"),
                        place,
                    )
                    .hint("name one of them: `probe ... as name`");
                return self.fail(d);
            }
            results.probes.push(Probe {
                name,
                component,
                at,
            });
        }
        Ok(())
    }

    fn every(&mut self, scope: &Scope, every: Option<&Expr>) -> Checked<u64> {
        every.map_or(Ok(1), |e| self.count_of(scope, e, 1))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of the statement")]
    fn slice(
        &mut self,
        scope: &Scope,
        target: &Target,
        axis: &Name,
        index: &Expr,
        every: Option<&Expr>,
        grid: &Grid,
        results: &mut Results,
    ) -> Checked<()> {
        let components = self.newest(scope, target)?.components;
        let every = self.every(scope, every)?;
        let axis_id = self.axis_named(scope, axis)?;
        for component in components {
            let facts = self.frame.components[component.index()].clone();
            let range = grid.extent(facts.position)[axis_id];
            let index = self.index_along(scope, index, range, &axis.node, &facts.name)?;
            let name = format!("{}-{}{index}", facts.name, axis.node);
            results.add_output(
                name,
                component,
                OutputKind::Slice {
                    axis: axis_id,
                    index,
                },
                every,
            );
        }
        Ok(())
    }

    fn volume(
        &mut self,
        scope: &Scope,
        target: &Target,
        every: Option<&Expr>,
        results: &mut Results,
    ) -> Checked<()> {
        let components = self.newest(scope, target)?.components;
        let every = self.every(scope, every)?;
        for component in components {
            let name = self.frame.components[component.index()].name.clone();
            results.add_output(name, component, OutputKind::Volume, every);
        }
        Ok(())
    }
}

impl Results {
    /// Outputs with one name get numbers.
    fn add_output(&mut self, name: String, component: ComponentId, kind: OutputKind, every: u64) {
        // A component's name has no `-`, so a numbered name is not wanted by another output.
        let count = self.output_names.entry(name.clone()).or_insert(0);
        *count += 1;
        let unique = match *count {
            1 => name,
            n => format!("{name}-{n}"),
        };
        self.outputs.push(Output {
            name: unique,
            component,
            kind,
            every,
        });
    }
}
