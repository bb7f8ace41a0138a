//! Looks through definitions that nothing uses: the items that they name must exist all the same.

use super::built_in;
use super::codes;
use super::elsewhere::Wanted;
use super::load::{Found, ModuleId};
use super::resolver::Resolver;
use super::space::Space;
use super::value::{Scope, Sight};
use std::collections::BTreeSet;
use torre_grammar::ast::{Def, DefLine, Expr, ExprKind, ItemKind};

/// Names that axes usually have; which exist is known where a definition is used.
const AXES: [&str; 3] = ["x", "y", "z"];

/// The names that the text of a layer sees beside its parameters.
const LAYER_NAMES: [&str; 7] = ["f", "a", "order", "h", "dt", "depth", "speed"];

impl Resolver<'_> {
    /// Reports names that no definition or constant of a module can mean.
    pub fn scan_definitions(&mut self, module: ModuleId) {
        let (source, ast) = {
            let m = self.library.module(module);
            (m.source.clone(), m.ast.clone())
        };
        let mut axes: BTreeSet<String> = AXES.iter().map(|s| s.to_string()).collect();
        for item in &ast.items {
            if let ItemKind::Scheme(scheme) = &item.kind {
                for stmt in &scheme.body {
                    if let torre_grammar::ast::SchemeStmt::Axes(names) = &stmt.kind.node {
                        axes.extend(names.iter().map(|n| n.node.clone()));
                    }
                }
            }
        }
        let scope = Scope {
            source,
            module,
            locals: Vec::new(),
            sight: Sight::Item,
        };
        for item in &ast.items {
            match &item.kind {
                ItemKind::Def(def) => self.scan_def(&scope, def, &axes),
                ItemKind::Layer(layer) => {
                    let mut known = axes.clone();
                    known.extend(LAYER_NAMES.map(str::to_string));
                    self.scan_def(&scope, &layer.def, &known);
                }
                ItemKind::Const { value, .. } => {
                    // A constant is simply computed.
                    let _ = self.number(&scope, value);
                }
                _ => {}
            }
        }
    }

    fn scan_def(&mut self, scope: &Scope, def: &Def, axes: &BTreeSet<String>) {
        let mut known = axes.clone();
        for param in &def.params {
            if let Some(default) = &param.default {
                self.scan_expr(scope, default, &known);
            }
            known.insert(param.name.node.clone());
        }
        for stmt in &def.lines {
            match &stmt.kind.node {
                DefLine::Require(condition) => self.scan_expr(scope, condition, &known),
                DefLine::Let(bound) => {
                    self.scan_expr(scope, &bound.value, &known);
                    known.insert(bound.name.node.clone());
                }
                DefLine::State { names, region } => {
                    if let Some(region) = region {
                        self.scan_expr(scope, region, &known);
                    }
                    known.extend(names.iter().map(|n| n.node.clone()));
                }
                DefLine::Next { value, .. } => self.scan_expr(scope, value, &known),
            }
        }
        self.scan_expr(scope, &def.body, &known);
    }

    fn scan_expr(&mut self, scope: &Scope, expr: &Expr, known: &BTreeSet<String>) {
        let mut open = vec![expr];
        while let Some(e) = open.pop() {
            match &e.node {
                ExprKind::Number(_) | ExprKind::Text(_) | ExprKind::Path(_) => {}
                ExprKind::Name(name) => self.scan_name(scope, e, name, known, Wanted::Value),
                ExprKind::Member(of, _) | ExprKind::Level(of, _) | ExprKind::Unary(_, of) => {
                    open.push(of);
                }
                ExprKind::Offset(of, list) => {
                    open.push(of);
                    open.extend(list);
                }
                ExprKind::List(list) => open.extend(list),
                ExprKind::Call { callee, args } => {
                    match &callee.node {
                        ExprKind::Name(name) => {
                            self.scan_name(scope, callee, name, known, Wanted::Operator)
                        }
                        _ => open.push(callee),
                    }
                    open.extend(args.iter().map(|a| &a.value));
                }
                ExprKind::Binary(_, a, b) => open.extend([&**a, &**b]),
                ExprKind::If {
                    condition,
                    then,
                    otherwise,
                } => open.extend([&**condition, &**then, &**otherwise]),
            }
        }
    }

    fn scan_name(
        &mut self,
        scope: &Scope,
        expr: &Expr,
        name: &str,
        known: &BTreeSet<String>,
        wanted: Wanted,
    ) {
        let called = wanted == Wanted::Operator;
        let found = known.contains(name)
            || called && ["layer", "depth"].contains(&name)
            || built_in::VALUES.contains(&name)
            || built_in::is_built_in(name)
            || !matches!(
                self.library.find(scope.module, Space::Value, name),
                Found::Nothing
            );
        if found || self.report.is_full() {
            return;
        }
        let kind = if called { "operator " } else { "" };
        let mut d = self.error(
            codes::UNKNOWN_NAME,
            format!("there is no {kind}`{name}` here"),
            &scope.place(expr.span),
        );
        d.labels[0].text = "not found".to_string();
        let built_in = match called {
            true => built_in::BUILT_IN,
            false => &built_in::VALUES[..],
        };
        let mut names = self.fitting(scope.module, wanted);
        names.extend(built_in);
        if !called {
            names.extend(known.iter().map(String::as_str));
        }
        d.hint = self.hint_for_missing(scope.module, name, wanted, names);
        let _ = self.fail::<()>(d);
    }
}
