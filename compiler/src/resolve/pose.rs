//! The problem: domain, boundaries, initial values, sources and results.

use super::Options;
use super::codes;
use super::confine::confine;
use super::declare::{GivenCoef, GivenParam};
use super::evaluate::{LOCALS, Resolver, Scope, Typed, Value};
use super::load::{Found, ItemId, ModuleId, Space};
use super::operate::{Kind, Operand, count};
use super::order::Statement;
use super::report::{Checked, Place, Reported};
use super::revise::Settings;
use super::suggest::did_you_mean;
use crate::host::HostExpr;
use crate::lattice::{Axis, Interval, PerAxis, Region};
use crate::layout::Layout;
use crate::problem::{Init, Output, OutputKind, Probe, Problem, Source, StaticValue};
use crate::scheme::{Boundary, ComponentId, Grid, Precision, Scheme, StageId};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use torre_grammar::ast::{self, CoefValue, Expr, ItemKind, Level, Name, ProblemStmt, Target};
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::Span;

/// Cells along an axis.
const CELLS: i64 = 1 << 40;
/// Results of one problem.
const RESULTS: usize = 10_000;

type Schedules = Vec<(String, ast::Schedule)>;

/// Results of a problem while they are gathered.
#[derive(Default)]
struct Results {
    init: Vec<Init>,
    sources: Vec<Source>,
    probes: Vec<Probe>,
    outputs: Vec<Output>,
    probe_names: BTreeSet<String>,
    /// How often an output's name was wanted.
    output_names: BTreeMap<String, u64>,
}

impl Resolver<'_> {
    /// The scheme, the problem and the schedules of the problem that is meant.
    pub fn resolve_problem(
        &mut self,
        module: ModuleId,
        options: &Options,
    ) -> Checked<(Scheme, Problem, Schedules)> {
        let problems = self.library.own(module, Space::Problem);
        let names: Vec<String> = problems.iter().map(|(_, n)| n.node.clone()).collect();
        let item = match (&options.problem, problems.as_slice()) {
            (Some(name), _) => match problems.iter().find(|(_, n)| n.node == *name) {
                Some((item, _)) => *item,
                None => {
                    let mut d = Diagnostic::error(
                        codes::WHICH_PROBLEM,
                        format!("the file has no problem `{name}`"),
                    );
                    d.hint = did_you_mean(name, names.iter().map(String::as_str)).or_else(|| {
                        (!names.is_empty()).then(|| format!("it has {}", names.join(", ")))
                    });
                    return self.fail(d);
                }
            },
            (None, [(item, _)]) => *item,
            (None, []) => {
                let d = Diagnostic::error(codes::WHICH_PROBLEM, "the file has no problem")
                    .hint("add `problem name { scheme ... domain ... steps ... }`");
                return self.fail(d);
            }
            (None, several) => {
                let source = self.library.module(module).source.clone();
                let mut d =
                    Diagnostic::error(codes::WHICH_PROBLEM, "the file has several problems");
                for (_, name) in several.iter().take(4) {
                    d = d.at(&source, name.span, "one of them");
                }
                d = d.hint(format!("choose one: `--problem {}`", names[0]));
                return self.fail(d);
            }
        };
        let (scheme, problem, scheme_item) = self.pose(item, options)?;
        let schedules = self.schedules(module, scheme_item)?;
        Ok((scheme, problem, schedules))
    }

    /// Checks a scheme by itself.
    pub fn check_scheme(&mut self, item: ItemId, options: &Options) -> Checked<()> {
        self.reset();
        let (scope, scheme) = self.scheme_scope(item)?;
        self.declare_numbers(&scope, &scheme, &mut [])?;
        self.assume_grid();
        let declared = self.declare_fields(&scope, &scheme, &mut []);
        let statements = self.statements(&scope, &scheme);
        declared?;
        self.assemble(&statements?, options.precision)?;
        self.schedules(item.module, item).map(|_| ())
    }

    /// Checks a problem and the schedules that are written for its scheme.
    pub fn check_problem(&mut self, item: ItemId, options: &Options) -> Checked<()> {
        let (_, _, scheme) = self.pose(item, options)?;
        self.schedules(item.module, scheme).map(|_| ())
    }

    /// Schedules for a scheme, those of `module` first.
    fn schedules(&mut self, module: ModuleId, scheme: ItemId) -> Checked<Schedules> {
        let mut modules = vec![module];
        if scheme.module != module {
            modules.push(scheme.module);
        }
        let mut list = Vec::new();
        let mut failed = false;
        for m in modules {
            for (item, name) in self.library.own(m, Space::Schedule) {
                let (source, ast) = {
                    let module = self.library.module(m);
                    (module.source.clone(), module.ast.clone())
                };
                let Some(ItemKind::Schedule(s)) = ast.items.get(item.index).map(|i| &i.kind) else {
                    continue;
                };
                let fits = match &s.scheme {
                    None => true,
                    Some(target) => match self.library.find(m, Space::Scheme, &target.node) {
                        Found::Item(found) => found == scheme,
                        Found::Broken => false,
                        Found::Nothing => {
                            let mut d = Diagnostic::error(
                                codes::UNKNOWN_NAME,
                                format!("there is no scheme `{}` here", target.node),
                            )
                            .at(&source, target.span, "not found");
                            d.hint =
                                did_you_mean(&target.node, self.library.names(m, Space::Scheme));
                            failed |= self.fail::<()>(d).is_err();
                            false
                        }
                    },
                };
                if fits {
                    list.push((name.node, s.clone()));
                }
            }
        }
        if failed { Err(Reported) } else { Ok(list) }
    }

    /// Resolves a problem with its scheme.
    pub fn pose(&mut self, item: ItemId, options: &Options) -> Checked<(Scheme, Problem, ItemId)> {
        self.reset();
        let module = self.library.module(item.module);
        let (source, ast) = (module.source.clone(), module.ast.clone());
        let Some(ItemKind::Problem(problem)) = ast.items.get(item.index).map(|i| &i.kind) else {
            return Err(Reported);
        };
        let mut scope = Scope {
            source,
            module: item.module,
            locals: Vec::new(),
            in_scheme: true,
        };
        let unique = self.check_once(&scope, problem);
        let (scheme_item, mut params) = self.scheme_of(&scope, problem)?;
        let (scheme_scope, scheme_ast) = self.scheme_scope(scheme_item)?;
        // Constants may depend on parameters, and settings of parameters on constants: what can be is computed first.
        let early = self.constants(&scope, problem, true);
        scope.locals = early;
        let shared = Rc::new(scope.clone());
        for p in &mut params {
            p.scope = shared.clone();
        }
        let from_line = params.len();
        let settings = self.read_overrides(&options.overrides, &scope, &mut params)?;
        self.declare_numbers(&scheme_scope, &scheme_ast, &mut params)?;
        self.report_unknown_params(&params, from_line)?;
        scope.locals.clear();
        scope.locals = self.constants(&scope, problem, false);
        self.place_grid(&scope, problem, &settings)?;
        let mut coefs = given_coefs(&scope, problem);
        let declared = self.declare_fields(&scheme_scope, &scheme_ast, &mut coefs);
        let known = self.report_unknown_coefs(&coefs);
        let statements = self.statements(&scheme_scope, &scheme_ast);
        let scheme = match (&declared, &statements) {
            (Ok(()), Ok(list)) => self.assemble(list, options.precision),
            _ => Err(Reported),
        };
        let results = self.results(&scope, problem, statements.as_deref().unwrap_or(&[]));
        let steps = self.steps(&scope, problem, &settings);
        declared?;
        known?;
        unique?;
        let (mut scheme, results, steps) = (scheme?, results?, steps?);
        scheme.files = self.graph.files.clone();
        self.check_memory(&scheme, &scope.place(problem.name.span), options)?;
        let problem = Problem {
            name: problem.name.node.clone(),
            steps,
            init: results.init,
            sources: results.sources,
            probes: results.probes,
            outputs: results.outputs,
        };
        Ok((scheme, problem, scheme_item))
    }

    fn check_once(&mut self, scope: &Scope, problem: &ast::Problem) -> Checked<()> {
        let mut first: [Option<Span>; 4] = [None; 4];
        let mut failed = false;
        for stmt in &problem.body {
            let (kind, what) = match &stmt.kind.node {
                ProblemStmt::Scheme { .. } => (0, "scheme"),
                ProblemStmt::Domain(_) => (1, "domain"),
                ProblemStmt::Boundary(_) => (2, "boundary"),
                ProblemStmt::Steps(_) => (3, "steps"),
                _ => continue,
            };
            if let Some(span) = first[kind] {
                let d = Diagnostic::error(codes::STATED_TWICE, format!("`{what}` is given twice"))
                    .at(&scope.source, stmt.kind.span, "again here")
                    .at(&scope.source, span, "first here");
                failed |= self.fail::<()>(d).is_err();
            } else {
                first[kind] = Some(stmt.kind.span);
            }
        }
        if failed { Err(Reported) } else { Ok(()) }
    }

    fn missing<T>(
        &mut self,
        scope: &Scope,
        problem: &ast::Problem,
        what: &str,
        hint: &str,
    ) -> Checked<T> {
        let d = self
            .error(
                codes::MISSING,
                format!("problem `{}` has no `{what}`", problem.name.node),
                &scope.place(problem.name.span),
            )
            .hint(format!("add `{hint}`"));
        self.fail(d)
    }

    fn scheme_of(
        &mut self,
        scope: &Scope,
        problem: &ast::Problem,
    ) -> Checked<(ItemId, Vec<GivenParam>)> {
        for stmt in &problem.body {
            let ProblemStmt::Scheme { path, params } = &stmt.kind.node else {
                continue;
            };
            let span = match (path.first(), path.last()) {
                (Some(a), Some(b)) => a.span.to(b.span),
                _ => stmt.kind.span,
            };
            let item = self.item_at(scope, path, Space::Scheme, &scope.place(span))?;
            let mut given: Vec<GivenParam> = Vec::new();
            let shared = Rc::new(scope.clone());
            let mut names = BTreeSet::new();
            for (name, value) in params {
                if !names.insert(&name.node) {
                    let d = self.error(
                        codes::STATED_TWICE,
                        format!("`{}` is given twice", name.node),
                        &scope.place(name.span),
                    );
                    return self.fail(d);
                }
                given.push(GivenParam {
                    name: name.node.clone(),
                    value: value.clone(),
                    scope: shared.clone(),
                    used: false,
                });
            }
            if given.len() > LOCALS {
                return self.too_complex(&scope.place(stmt.kind.span));
            }
            return Ok((item, given));
        }
        self.missing(scope, problem, "scheme", "scheme name")
    }

    /// The constants of a problem. With `quietly`, those that cannot be computed yet are left out.
    fn constants(
        &mut self,
        scope: &Scope,
        problem: &ast::Problem,
        quietly: bool,
    ) -> Vec<(String, Value)> {
        let mut scope = scope.clone();
        let mark = self.report.mark();
        for stmt in &problem.body {
            let ProblemStmt::Const { name, value } = &stmt.kind.node else {
                continue;
            };
            if !quietly && scope.locals.iter().any(|(n, _)| *n == name.node) {
                let d = self.error(
                    codes::DEFINED_TWICE,
                    format!("`{}` is defined twice", name.node),
                    &scope.place(name.span),
                );
                let _ = self.fail::<()>(d);
            }
            match self.number(&scope, value) {
                Ok(n) => {
                    let value = self.scalar(n);
                    scope.locals.push((name.node.clone(), value));
                }
                Err(Reported) if !quietly => scope.locals.push((name.node.clone(), Value::Poison)),
                Err(Reported) => {}
            }
            if scope.locals.len() > LOCALS {
                let _ = self.too_complex::<()>(&scope.place(name.span));
                break;
            }
        }
        if quietly {
            self.report.forget(mark, &scope.source);
            self.forget_failures();
        }
        scope.locals
    }

    fn place_grid(
        &mut self,
        scope: &Scope,
        problem: &ast::Problem,
        settings: &Settings,
    ) -> Checked<()> {
        let mut cells = None;
        let mut boundary = PerAxis::splat([Boundary::Zero; 2]);
        let mut failed = false;
        for stmt in &problem.body {
            match &stmt.kind.node {
                ProblemStmt::Domain(list) => {
                    let place = scope.place(stmt.kind.span);
                    match self.domain(scope, list, &place) {
                        Ok(c) => cells = Some(c),
                        Err(Reported) => failed = true,
                    }
                }
                ProblemStmt::Boundary(clauses) => {
                    failed |= self.boundaries(scope, clauses, &mut boundary).is_err();
                }
                _ => {}
            }
        }
        if let Some(list) = &settings.domain {
            if list.len() != self.frame.axes.len() {
                let d = Diagnostic::error(
                    codes::BAD_VALUE,
                    format!(
                        "`domain` is set for {}, but the scheme has {}",
                        count(list.len(), "axis", "axes"),
                        self.frame.axes.len()
                    ),
                );
                return self.fail(d);
            }
            if list.iter().any(|&n| n > CELLS) {
                let d =
                    Diagnostic::error(codes::BAD_VALUE, format!("an axis has up to {CELLS} cells"));
                return self.fail(d);
            }
            cells = Some(self.per_axis(list, 1));
        }
        if failed {
            return Err(Reported);
        }
        let Some(cells) = cells else {
            let example = vec!["64"; self.frame.axes.len()].join(" x ");
            return self.missing(scope, problem, "domain", &format!("domain {example}"));
        };
        self.set_grid(cells, boundary);
        Ok(())
    }

    /// Values in the order of the scheme's axes, by role.
    fn per_axis<T: Copy>(&self, list: &[T], absent: T) -> PerAxis<T> {
        let mut values = PerAxis::splat(absent);
        for ((_, axis), value) in self.frame.axes.iter().zip(list) {
            values[*axis] = *value;
        }
        values
    }

    fn domain(&mut self, scope: &Scope, list: &[Expr], place: &Place) -> Checked<PerAxis<i64>> {
        let axes = self.frame.axes.len();
        if list.len() != axes {
            let d = self.error(
                codes::DOMAIN,
                format!(
                    "the domain has {}, but the scheme has {}",
                    count(list.len(), "extent", "extents"),
                    count(axes, "axis", "axes")
                ),
                place,
            );
            return self.fail(d);
        }
        let mut cells = Vec::new();
        let mut failed = false;
        for e in list {
            match self.integer(scope, e) {
                Ok(n) if (1..=CELLS).contains(&n) => cells.push(n),
                Ok(n) => {
                    let mut d = self.error(
                        codes::DOMAIN,
                        format!("an axis has from 1 to {CELLS} cells"),
                        &scope.place(e.span),
                    );
                    d.labels[0].text = format!("this is {n}");
                    failed |= self.fail::<()>(d).is_err();
                }
                Err(Reported) => failed = true,
            }
        }
        if failed {
            return Err(Reported);
        }
        Ok(self.per_axis(&cells, 1))
    }

    fn boundaries(
        &mut self,
        scope: &Scope,
        clauses: &[ast::BoundaryClause],
        boundary: &mut PerAxis<[Boundary; 2]>,
    ) -> Checked<()> {
        let mut failed = false;
        let mut done: Vec<Axis> = Vec::new();
        for clause in clauses {
            let Ok(axis) = self.axis_named(scope, &clause.axis) else {
                failed = true;
                continue;
            };
            if done.contains(&axis) {
                let d = self.error(
                    codes::STATED_TWICE,
                    format!("the boundary along `{}` is given twice", clause.axis.node),
                    &scope.place(clause.axis.span),
                );
                failed |= self.fail::<()>(d).is_err();
            }
            done.push(axis);
            let lower = self.boundary_kind(scope, &clause.lower);
            let upper = clause
                .upper
                .as_ref()
                .map_or(lower, |k| self.boundary_kind(scope, k));
            let (Ok(lower), Ok(upper)) = (lower, upper) else {
                failed = true;
                continue;
            };
            if (lower == Boundary::Periodic) != (upper == Boundary::Periodic) {
                let span = clause.upper.as_ref().map_or(clause.lower.name.span, |u| {
                    clause.lower.name.span.to(u.name.span)
                });
                let d = self.error(
                    codes::BOUNDARY,
                    format!(
                        "along `{}` both sides must be periodic or neither",
                        clause.axis.node
                    ),
                    &scope.place(span),
                );
                failed |= self.fail::<()>(d).is_err();
            }
            boundary[axis] = [lower, upper];
        }
        if failed { Err(Reported) } else { Ok(()) }
    }

    fn boundary_kind(&mut self, scope: &Scope, kind: &ast::BoundaryKind) -> Checked<Boundary> {
        const KINDS: [(&str, Boundary); 4] = [
            ("zero", Boundary::Zero),
            ("periodic", Boundary::Periodic),
            ("pec", Boundary::Pec),
            ("pmc", Boundary::Pmc),
        ];
        let name = &kind.name;
        let found = KINDS.iter().find(|(n, _)| *n == name.node);
        let Some((_, boundary)) = found else {
            let mut d = self.error(
                codes::BOUNDARY,
                format!("there is no boundary `{}`", name.node),
                &scope.place(name.span),
            );
            d.labels[0].text = "unknown".to_string();
            d.hint = did_you_mean(&name.node, KINDS.iter().map(|(n, _)| *n)).or(Some(
                "boundaries are zero, periodic, pec and pmc".to_string(),
            ));
            return self.fail(d);
        };
        if !kind.args.is_empty() {
            let d = self.error(
                codes::BOUNDARY,
                format!("the boundary `{}` takes no arguments", name.node),
                &scope.place(name.span),
            );
            return self.fail(d);
        }
        Ok(*boundary)
    }

    fn axis_named(&mut self, scope: &Scope, name: &Name) -> Checked<Axis> {
        if let Some(axis) = self.frame.axis(&name.node) {
            return Ok(axis);
        }
        let names: Vec<&str> = self.frame.axes.iter().map(|(n, _)| n.as_str()).collect();
        let hint = format!("the axes are {}", names.join(", "));
        let d = self
            .error(
                codes::NOT_AN_AXIS,
                format!("the scheme has no axis `{}`", name.node),
                &scope.place(name.span),
            )
            .hint(hint);
        self.fail(d)
    }

    fn report_unknown_coefs(&mut self, given: &[GivenCoef]) -> Checked<()> {
        let mut failed = false;
        for g in given.iter().filter(|g| !g.used) {
            let mut d = self.error(
                codes::NO_COEF,
                format!(
                    "scheme `{}` has no coefficient `{}`",
                    self.frame.name, g.name.node
                ),
                &g.scope.place(g.name.span),
            );
            let known = self.frame.names.iter().filter_map(|(n, v)| {
                let is_coef = !matches!(v, Value::Field(..) | Value::Axis(_))
                    && !self.frame.params.contains(n);
                is_coef.then_some(n.as_str())
            });
            d.hint = if self.frame.params.contains(&g.name.node) {
                Some(format!(
                    "`{0}` is a parameter: write `scheme {1} {{ {0} = ... }}`",
                    g.name.node, self.frame.name
                ))
            } else {
                did_you_mean(&g.name.node, known)
            };
            failed |= self.fail::<()>(d).is_err();
        }
        if failed { Err(Reported) } else { Ok(()) }
    }

    fn steps(
        &mut self,
        scope: &Scope,
        problem: &ast::Problem,
        settings: &Settings,
    ) -> Checked<u64> {
        let mut steps = None;
        for stmt in &problem.body {
            if let ProblemStmt::Steps(e) = &stmt.kind.node {
                steps = Some(self.count_of(scope, e, 0)?);
            }
        }
        match settings.steps.or(steps) {
            Some(n) => Ok(n),
            None => self.missing(scope, problem, "steps", "steps 1000"),
        }
    }

    /// A number of steps, at least `least`.
    fn count_of(&mut self, scope: &Scope, e: &Expr, least: i64) -> Checked<u64> {
        let n = self.integer(scope, e)?;
        if n >= least && n <= 1 << 52 {
            return Ok(n as u64);
        }
        let mut d = self.error(
            codes::COUNT,
            format!("a number of steps from {least} up is needed"),
            &scope.place(e.span),
        );
        d.labels[0].text = format!("this is {n}");
        self.fail(d)
    }

    fn results(
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
    fn newest(
        &mut self,
        scope: &Scope,
        target: &Target,
    ) -> Checked<(Kind, Vec<ComponentId>, Place)> {
        let (_, kind, components, place) = self.target(scope, target)?;
        if let Some(level) = &target.level {
            let d = self.error(
                codes::LEVEL_OF,
                "only the newest value can stand here",
                &scope.place(level.span),
            );
            return self.fail(d);
        }
        Ok((kind, components, place))
    }

    fn init(
        &mut self,
        scope: &Scope,
        target: &Target,
        value: &CoefValue,
        results: &mut Results,
    ) -> Checked<()> {
        let (field, kind, components, place) = self.target(scope, target)?;
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
        let (kind, components, place) = self.newest(scope, target)?;
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
        let (kind, components, _) = self.newest(scope, target)?;
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
        let (_, components, _) = self.newest(scope, target)?;
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
        let (_, components, _) = self.newest(scope, target)?;
        let every = self.every(scope, every)?;
        for component in components {
            let name = self.frame.components[component.index()].name.clone();
            results.add_output(name, component, OutputKind::Volume, every);
        }
        Ok(())
    }

    fn check_memory(&mut self, scheme: &Scheme, place: &Place, options: &Options) -> Checked<()> {
        let needed = Layout::new(scheme).map(|l| l.bytes());
        let d = match (needed, options.memory) {
            (Ok(needed), Some(limit)) if needed > limit => {
                let smaller = smaller_domain(scheme, needed, limit);
                let mut hints = Vec::new();
                if scheme.precision == Precision::F64 && needed / 2 <= limit {
                    hints.push("`--precision f32` needs half".to_string());
                }
                if let Some(domain) = smaller {
                    hints.push(format!("`--set domain={domain}` fits"));
                }
                let mut d = self.error(
                    codes::MEMORY,
                    format!(
                        "this needs {} of memory, but there are {}",
                        bytes(needed),
                        bytes(limit)
                    ),
                    place,
                );
                d.labels[0].text = format!("{} bytes per cell", scheme.bytes_per_cell());
                if !hints.is_empty() {
                    d = d.hint(hints.join(", "));
                }
                d
            }
            (Ok(_), _) => return Ok(()),
            (Err(_), _) => self
                .error(
                    codes::MEMORY,
                    "this needs more memory than can be addressed",
                    place,
                )
                .hint("use a smaller domain"),
        };
        self.fail(d)
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

fn given_coefs(scope: &Scope, problem: &ast::Problem) -> Vec<GivenCoef> {
    let shared = Rc::new(scope.clone());
    problem
        .body
        .iter()
        .filter_map(|stmt| match &stmt.kind.node {
            ProblemStmt::Coef {
                name,
                component,
                value,
            } => Some(GivenCoef {
                name: name.clone(),
                component: component.clone(),
                value: value.clone(),
                scope: shared.clone(),
                used: false,
            }),
            _ => None,
        })
        .collect()
}

/// A domain of the same form that fits.
fn smaller_domain(scheme: &Scheme, needed: u64, limit: u64) -> Option<String> {
    let mut smaller = scheme.clone();
    let ratio = limit as f64 / needed as f64;
    let mut scale = ratio.powf(1.0 / scheme.grid.dimensions() as f64);
    // What lies around the domain is in the way of an exact answer.
    for _ in 0..100 {
        let mut cells = Vec::new();
        for axis in scheme.grid.present() {
            let n = (scheme.grid.cells[axis] as f64 * scale) as i64;
            if n < 1 {
                return None;
            }
            smaller.grid.cells[axis] = n;
            cells.push(n.to_string());
        }
        if Layout::new(&smaller).is_ok_and(|l| l.bytes() <= limit) {
            return Some(cells.join("x"));
        }
        scale *= 0.98;
    }
    None
}

/// `1.5 GB`
fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if n < 1000 {
        return format!("{n} bytes");
    }
    let mut value = n as f64 / 1e3;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1e3;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}
