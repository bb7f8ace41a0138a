//! The problem: domain, boundaries, initial values, sources and results.

use super::codes;
use super::declare::{DeclaredScheme, GivenCoef, GivenParam};
use super::load::{Found, ItemId, ModuleId, Space};
use super::report::{Checked, Reported};
use super::resolver::{LOCALS, Resolver, Scope};
use super::revise::Settings;
use super::suggest::did_you_mean;
use super::value::Value;
use super::{Options, Resolved};
use crate::problem::Problem;
use crate::scheme::Scheme;
use std::collections::BTreeSet;
use std::rc::Rc;
use torre_grammar::ast::{self, Expr, ItemKind, ProblemStmt};
use torre_grammar::diag::{Diagnostic, Diagnostics};
use torre_grammar::source::Span;

type Schedules = Vec<(String, ast::Schedule)>;

/// A problem with its scheme.
pub struct Posed {
    pub scheme: Scheme,
    pub problem: Problem,
    /// The scheme's item.
    pub item: ItemId,
}

/// The scheme that a problem names.
struct Chosen {
    item: ItemId,
    params: Vec<GivenParam>,
}

impl Resolver<'_> {
    /// The problem that is meant, with its scheme and the schedules for it.
    pub fn resolve_problem(&mut self, module: ModuleId, options: &Options) -> Checked<Resolved> {
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
            sources: self.library.sources(),
            statements: std::mem::take(&mut self.frame.statements),
            schedules: self.schedules(module, posed.item)?,
            scheme: posed.scheme,
            problem: posed.problem,
            warnings: Diagnostics::default(),
        })
    }

    /// Checks a scheme by itself.
    pub fn check_scheme(&mut self, item: ItemId, options: &Options) -> Checked<()> {
        self.reset();
        let DeclaredScheme { scope, scheme } = self.scheme_scope(item)?;
        self.declare_numbers(&scope, &scheme, &mut [])?;
        self.assume_grid();
        let declared = self.declare_fields(&scope, &scheme, &mut []);
        let statements = self.statements(&scope, &scheme);
        declared?;
        self.warn_of_sizes(&scope, &scheme);
        self.assemble(&statements?, options.precision)?;
        self.schedules(item.module, item).map(|_| ())
    }

    /// Checks a problem and the schedules that are written for its scheme.
    pub fn check_problem(&mut self, item: ItemId, options: &Options) -> Checked<()> {
        let posed = self.pose(item, options)?;
        self.schedules(item.module, posed.item).map(|_| ())
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
    pub fn pose(&mut self, item: ItemId, options: &Options) -> Checked<Posed> {
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
        let Chosen {
            item: scheme_item,
            mut params,
        } = self.scheme_of(&scope, problem)?;
        let DeclaredScheme {
            scope: scheme_scope,
            scheme: scheme_ast,
        } = self.scheme_scope(scheme_item)?;
        // Constants may depend on parameters, and settings of parameters on constants: what can be is computed first.
        let early = self.constants(&scope, problem, true);
        scope.locals = early;
        let shared = Rc::new(scope.clone());
        for p in &mut params {
            p.scope = shared.clone();
        }
        let from_line = params.len();
        let settings = self.read_overrides(&options.overrides, &scope, &mut params);
        let (settings, revised) = match settings {
            Ok(settings) => (settings, Ok(())),
            Err(Reported) => (Settings::default(), Err(Reported)),
        };
        self.declare_numbers(&scheme_scope, &scheme_ast, &mut params)?;
        let params = self.report_unknown_params(&params, from_line);
        scope.locals.clear();
        scope.locals = self.constants(&scope, problem, false);
        self.place_grid(&scope, problem, &settings)?;
        let mut coefs = given_coefs(&scope, problem);
        let declared = self.declare_fields(&scheme_scope, &scheme_ast, &mut coefs);
        let known = self.report_unknown_coefs(&coefs);
        let statements = self.statements(&scheme_scope, &scheme_ast);
        self.warn_of_sizes(&scheme_scope, &scheme_ast);
        let scheme = match (&declared, &statements) {
            (Ok(()), Ok(list)) => self.assemble(list, options.precision),
            _ => Err(Reported),
        };
        let results = self.results(&scope, problem, statements.as_deref().unwrap_or(&[]));
        let steps = self.steps(&scope, problem, &settings);
        declared?;
        known?;
        unique?;
        params?;
        revised?;
        let (mut scheme, mut results, steps) = (scheme?, results?, steps?);
        self.attach_sources(&scheme, &mut results)?;
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
        Ok(Posed {
            scheme,
            problem,
            item: scheme_item,
        })
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

    pub fn missing<T>(
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

    fn scheme_of(&mut self, scope: &Scope, problem: &ast::Problem) -> Checked<Chosen> {
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
            return Ok(Chosen {
                item,
                params: given,
            });
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
    pub fn count_of(&mut self, scope: &Scope, e: &Expr, least: i64) -> Checked<u64> {
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
