//! The problem: domain, boundaries, initial values, sources and results.

use super::bound::domain_of;
use super::codes;
use super::derive::SchemeText;
use super::frame::{Definition, GivenCoef, GivenParam, Named};
use super::load::{Found, ItemId, ModuleId};
use super::report::{Outcome, Place, Reported, count, short};
use super::resolver::{LOCALS, Resolver};
use super::revise::Settings;
use super::silences::{Silences, block_of_item};
use super::space::Space;
use super::suggest::did_you_mean;
use super::value::{Scope, Sight, Table};
use super::{Options, Resolved};
use crate::problem::{Init, Problem};
use crate::scheme::Scheme;
use std::collections::BTreeSet;
use std::rc::Rc;
use torre_grammar::ast::{self, Expr, ItemKind, ProblemStmt, SchemeStmt};
use torre_grammar::diag::{Diagnostic, Diagnostics};

/// Numbers of steps are exact in double precision up to there.
const TOO_MANY_STEPS: &str = "there may be 2^52 steps at most";

type Schedules = Vec<(String, ast::Schedule)>;

/// A problem with its scheme.
pub struct Posed {
    pub scheme: Scheme,
    pub problem: Problem,
    /// The scheme's item, and the items of the schemes from which it is derived.
    pub line: Vec<ItemId>,
    /// Where each incident field has its name.
    incidents: Vec<Place>,
}

/// The scheme that a problem names.
struct Chosen {
    item: ItemId,
    params: Vec<GivenParam>,
}

/// Start values whose ages count steps, with ages that count versions.
fn versions(scheme: &Scheme, mut init: Vec<Init>) -> Vec<Init> {
    for of in &mut init {
        let per_step = scheme
            .updates_per_step(of.component)
            .clamp(1, u8::MAX.into());
        of.age = of.age.saturating_mul(per_step as u8);
    }
    init
}

impl Resolver<'_> {
    /// The problem that is meant, with its scheme and the schedules for it.
    pub fn resolve_problem(&mut self, module: ModuleId, options: &Options) -> Outcome<Resolved> {
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
        let posed = self.pose(item, options)?;
        Ok(Resolved {
            parameters: self.parameters(),
            sides: self.frame.stated.clone(),
            sources: self.library.sources(),
            tables: self.files.tables(),
            statements: std::mem::take(&mut self.frame.statements),
            schedules: self.schedules(module, &posed.line)?,
            scheme: posed.scheme,
            without_phases: self.frame.without_phases.take(),
            problem: posed.problem,
            warnings: Diagnostics::default(),
            silences: Silences {
                list: self.report.silences().to_vec(),
                blocks: self.blocks(&posed.line, item),
                incidents: posed.incidents,
            },
        })
    }

    /// The blocks of a problem and of its schemes.
    fn blocks(&self, line: &[ItemId], problem: ItemId) -> Vec<Place> {
        let block = |id: &ItemId| {
            let module = self.library.module(id.module);
            block_of_item(&module.source, &module.ast.items.get(id.index)?.kind)
        };
        line.iter().chain([&problem]).filter_map(block).collect()
    }

    /// Checks a scheme by itself.
    pub fn check_scheme(&mut self, item: ItemId, options: &Options) -> Outcome<()> {
        self.reset();
        let text = self.scheme_text(item)?;
        self.begin(&text, None)?;
        self.assume_extents();
        self.declare_regions(&text, None);
        self.declare_numbers(&text, &mut [])?;
        let fields = self.declare_fields(&text);
        let sides = self.declare_sides(&text);
        self.assume_grid();
        let declared = self.declare_statics(&text, None);
        let declared = fields.and(sides).and(declared);
        let statements = self.statements(&text);
        declared?;
        self.warn_of_sizes(&text);
        self.assemble(&statements?, options.precision)?;
        self.schedules(item.module, &text.line).map(|_| ())
    }

    /// Checks a problem and the schedules that are written for its scheme.
    pub fn check_problem(&mut self, item: ItemId, options: &Options) -> Outcome<()> {
        let posed = self.pose(item, options)?;
        self.schedules(item.module, &posed.line).map(|_| ())
    }

    /// Schedules for a scheme and the schemes from which it is derived, schedules of `module` first.
    fn schedules(&mut self, module: ModuleId, line: &[ItemId]) -> Outcome<Schedules> {
        let mut modules = vec![module];
        for scheme in line {
            if !modules.contains(&scheme.module) {
                modules.push(scheme.module);
            }
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
                        Found::Item(found) => line.contains(&found),
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
    pub fn pose(&mut self, item: ItemId, options: &Options) -> Outcome<Posed> {
        self.reset();
        let module = self.library.module(item.module);
        let (source, ast) = (module.source.clone(), module.ast.clone());
        let Some(ItemKind::Problem(problem)) = ast.items.get(item.index).map(|i| &i.kind) else {
            return Err(Reported);
        };
        let scope = Scope {
            source,
            module: item.module,
            locals: Vec::new(),
            sight: Sight::Problem,
        };
        let unique = self.stated_once(&scope, problem);
        let Chosen {
            item: scheme_item,
            mut params,
        } = self.scheme_of(&scope, problem)?;
        let text = self.scheme_text(scheme_item)?;
        let settings = self.read_overrides(&options.overrides, &scope, &mut params);
        let (settings, revised) = match settings {
            Ok(settings) => (settings, Ok(())),
            Err(Reported) => (Settings::default(), Err(Reported)),
        };
        let domain = domain_of(problem);
        let stated = domain.map(|(list, _)| list.len());
        let stated = stated.or(settings.domain.as_ref().map(Vec::len));
        self.begin(&text, stated)?;
        if let Some((_, span)) = domain {
            self.note_absent_axes(&scope, span);
        }
        self.declare_constants(&scope, problem);
        let of_problem = Some((&scope, problem));
        self.declare_regions(&text, of_problem);
        let extents = self.declare_extents(&scope, problem, &settings);
        self.declare_numbers(&text, &mut params)?;
        let params = self.report_unknown_params(&params);
        let constants = self.constants_of(&scope, problem);
        extents?;
        let fields = self.declare_fields(&text);
        let sides = self.declare_sides(&text);
        let bounded = self.place_grid(&scope, problem, &settings)?;
        self.frame.given_coefs = given_coefs(&scope, problem);
        let declared = self.declare_statics(&text, of_problem);
        let declared = fields.and(sides).and(declared);
        let known = self.report_unknown_coefs(&text);
        let statements = self.statements(&text);
        let layers = match statements.is_ok() {
            true => self.report_idle_layers(),
            false => Ok(()),
        };
        let scheme = match (&declared, &statements) {
            (Ok(()), Ok(list)) => self.assemble(list, options.precision),
            _ => Err(Reported),
        };
        let statements = statements.unwrap_or_default();
        let results = self.results(&scope, problem, &statements);
        self.warn_of_sizes(&text);
        let steps = self.steps(&scope, problem, &settings);
        declared?;
        known?;
        layers?;
        bounded?;
        unique?;
        params?;
        constants?;
        revised?;
        let (mut scheme, mut results, steps) = (scheme?, results?, steps?);
        self.warn_of_unused_regions(&scope, problem);
        self.warn_of_empty_spectra(&scope, problem, steps);
        self.attach_sources(&scheme, &statements, &mut results)?;
        scheme.files = self.graph.files.clone();
        if let Some(plain) = &mut self.frame.without_phases {
            plain.files = scheme.files.clone();
        }
        self.check_memory(&scheme, &scope.place(problem.name.span), options)?;
        let problem = Problem {
            name: problem.name.node.clone(),
            steps,
            init: versions(&scheme, std::mem::take(&mut results.init)),
            incidents: std::mem::take(&mut results.incoming.list),
            sources: std::mem::take(&mut results.sources),
            probes: std::mem::take(&mut results.probes),
            state_probes: std::mem::take(&mut results.state_probes),
            series: std::mem::take(&mut results.series),
            outputs: std::mem::take(&mut results.outputs),
            statics: std::mem::take(&mut results.statics),
            media: self.media(),
        };
        self.check_incoming(&scheme, &problem, &results)?;
        Ok(Posed {
            scheme,
            problem,
            line: text.line,
            incidents: results.incoming.names,
        })
    }

    pub fn missing<T>(
        &mut self,
        scope: &Scope,
        problem: &ast::Problem,
        kind: &str,
        hint: &str,
    ) -> Outcome<T> {
        let d = self
            .error(
                codes::MISSING,
                format!("problem `{}` has no `{kind}`", problem.name.node),
                &scope.place(problem.name.span),
            )
            .hint(format!("add `{hint}`"));
        self.fail(d)
    }

    fn scheme_of(&mut self, scope: &Scope, problem: &ast::Problem) -> Outcome<Chosen> {
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
                    named: Some(name.span),
                    value: value.clone(),
                    scope: shared.clone(),
                    used: false,
                });
            }
            if given.len() > LOCALS {
                return self.too_complex(&scope.place(stmt.kind.span));
            }
            return Ok(Chosen {
                item,
                params: given,
            });
        }
        self.missing(scope, problem, "scheme", "scheme name")
    }

    /// Notes the constants of a problem. They are computed when they are needed: parameters may depend on them, or they
    /// on parameters.
    fn declare_constants(&mut self, scope: &Scope, problem: &ast::Problem) {
        let shared = Rc::new(scope.clone());
        for stmt in &problem.body {
            if let ProblemStmt::Const { name, value } = &stmt.kind.node {
                let definition = Definition::Number {
                    value: value.clone(),
                    scope: shared.clone(),
                };
                self.introduce_into(Table::Problem, scope, name, Named::Open(definition));
            }
        }
    }

    /// Computes the constants that nothing has needed so far.
    fn constants_of(&mut self, scope: &Scope, problem: &ast::Problem) -> Outcome<()> {
        let mut failed = false;
        for stmt in &problem.body {
            if let ProblemStmt::Const { name, .. } = &stmt.kind.node {
                let place = scope.place(name.span);
                let found = self.named(Table::Problem, &name.node, &place);
                failed |= matches!(found, Some(Err(Reported)));
            }
        }
        if failed { Err(Reported) } else { Ok(()) }
    }

    fn report_unknown_coefs(&mut self, text: &SchemeText) -> Outcome<()> {
        let mut failed = false;
        let coefs = text
            .body
            .iter()
            .filter_map(|declared| match &declared.stmt {
                SchemeStmt::Coef(coef) => Some(coef.name.node.as_str()),
                _ => None,
            });
        let known: Vec<&str> = coefs.collect();
        let given = std::mem::take(&mut self.frame.given_coefs);
        for g in given.iter().filter(|g| !g.used) {
            let mut d = self.error(
                codes::NO_COEF,
                format!(
                    "scheme `{}` has no coefficient `{}`",
                    self.frame.name, g.name.node
                ),
                &g.scope.place(g.name.span),
            );
            let frame = &self.frame;
            let is_param = frame.params.contains(&g.name.node);
            d.hint = match is_param {
                true => Some(format!(
                    "`{0}` is a parameter: write `scheme {1} {{ {0} = ... }}`",
                    g.name.node, frame.name
                )),
                false => did_you_mean(&g.name.node, known.iter().copied()).or_else(|| {
                    Some(match known.len() {
                        0 => "it has no coefficients".to_string(),
                        n if n <= 12 => format!("its coefficients are {}", known.join(", ")),
                        n => format!("it has {}", count(n, "coefficient", "coefficients")),
                    })
                }),
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
    ) -> Outcome<u64> {
        let mut steps = None;
        for stmt in &problem.body {
            match &stmt.kind.node {
                ProblemStmt::Steps(ast::Steps::Count(e)) => {
                    steps = Some(self.count_of(scope, e, 0)?);
                }
                ProblemStmt::Steps(ast::Steps::Until(e)) => {
                    steps = Some(self.steps_until(scope, e)?);
                }
                _ => {}
            }
        }
        match settings.steps.or(steps) {
            Some(n) => Ok(n),
            None => self.missing(scope, problem, "steps", "steps 1000"),
        }
    }

    /// The fewest steps that last until a time, up to rounding of the time and of the time step.
    fn steps_until(&mut self, scope: &Scope, e: &Expr) -> Outcome<u64> {
        let time = self.number(scope, e)?;
        let steps = time / self.frame.dt;
        let whole = steps.round();
        let steps = match (steps - whole).abs() <= 1e-9 * whole.max(1.0) {
            true => whole,
            false => steps.ceil(),
        };
        if (0.0..=(1u64 << 52) as f64).contains(&steps) {
            return Ok(steps as u64);
        }
        let message = match time > 0.0 {
            true => TOO_MANY_STEPS,
            false => "a run lasts until a time from 0 up",
        };
        let mut d = self.error(codes::COUNT, message, &scope.place(e.span));
        d.labels[0].text = match (steps.is_finite(), time > 0.0) {
            (true, true) => format!("these are {steps:.3e} steps of {}", self.frame.dt),
            (false, true) => format!("this is {}, with steps of {}", short(time), self.frame.dt),
            (_, false) => format!("this is {}", short(time)),
        };
        self.fail(d)
    }

    /// A number of steps, at least `least`.
    pub fn count_of(&mut self, scope: &Scope, e: &Expr, least: i64) -> Outcome<u64> {
        let hint = "steps are counted; `steps until 2.5` gives the end of a run as a time";
        let n = self.counted(scope, e, Some(hint))?;
        if n >= least && n <= 1 << 52 {
            return Ok(n as u64);
        }
        let message = match n < least {
            true => format!("a number of steps from {least} up is needed"),
            false => TOO_MANY_STEPS.to_string(),
        };
        let mut d = self.error(codes::COUNT, message, &scope.place(e.span));
        d.labels[0].text = format!("this is {n}");
        self.fail(d)
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
