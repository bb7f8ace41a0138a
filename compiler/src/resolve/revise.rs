//! Values of the command line that replace values of the problem.

use super::codes;
use super::elsewhere::Wanted;
use super::frame::{Definition, GivenParam, Named};
use super::report::{Outcome, Reported, count};
use super::resolver::Resolver;
use super::suggest::did_you_mean;
use super::value::{Scope, Value};
use std::rc::Rc;
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::Source;

/// Numbers of steps are exact in double precision up to there.
const MOST_STEPS: u64 = 1 << 52;

/// Settings that are no parameters.
#[derive(Default)]
pub struct Settings {
    pub domain: Option<Vec<i64>>,
    pub steps: Option<u64>,
}

impl Resolver<'_> {
    /// Reads the overrides: settings are returned, parameters are added to `given`.
    pub fn read_overrides(
        &mut self,
        overrides: &[(String, String)],
        scope: &Scope,
        given: &mut Vec<GivenParam>,
    ) -> Outcome<Settings> {
        let mut settings = Settings::default();
        let mut failed = false;
        for (name, text) in overrides {
            let name = name.trim();
            let done = match name {
                "domain" => self
                    .read_domain(text)
                    .map(|cells| settings.domain = Some(cells)),
                "steps" => match text.trim().parse::<u64>() {
                    Ok(n) if n <= MOST_STEPS => {
                        settings.steps = Some(n);
                        Ok(())
                    }
                    _ => {
                        let expected = format!(
                            "a whole number up to {MOST_STEPS}, in digits, such as `steps=1000`"
                        );
                        self.bad_value(name, text, &expected)
                    }
                },
                _ => self
                    .read_param(name, text, scope)
                    .map(|param| given.push(param)),
            };
            failed |= done.is_err();
        }
        if failed { Err(Reported) } else { Ok(settings) }
    }

    fn bad_value<T>(&mut self, name: &str, text: &str, expected: &str) -> Outcome<T> {
        let d = Diagnostic::error(
            codes::BAD_VALUE,
            format!("`{}` is no value for `{name}`", shorten(text)),
        )
        .hint(format!("it is {expected}"));
        self.fail(d)
    }

    fn read_domain(&mut self, text: &str) -> Outcome<Vec<i64>> {
        let cells: Result<Vec<i64>, _> = text
            .split(['x', 'X'])
            .map(|n| n.trim().parse::<i64>())
            .collect();
        match cells {
            Ok(cells) if cells.iter().all(|&n| n > 0) => Ok(cells),
            _ => self.bad_value(
                "domain",
                text,
                "cells per axis, in digits, such as `domain=256x128x64`",
            ),
        }
    }

    fn read_param(&mut self, name: &str, text: &str, scope: &Scope) -> Outcome<GivenParam> {
        let source = Source::new(format!("--set {name}"), text);
        match torre_grammar::parse_expr(&source) {
            Ok(value) => Ok(GivenParam {
                name: name.to_string(),
                named: None,
                value,
                scope: Rc::new(Scope {
                    source,
                    ..scope.clone()
                }),
                used: false,
            }),
            Err(diagnostics) => {
                let Some(first) = diagnostics.0.into_iter().next() else {
                    return self.bad_value(name, text, "an expression such as `0.5` or `2 * h`");
                };
                let d = Diagnostic {
                    code: codes::BAD_VALUE,
                    message: format!(
                        "`{}` is no value for `{name}`: {}",
                        shorten(text),
                        first.message
                    ),
                    ..first
                };
                self.fail(d)
            }
        }
    }

    /// The kind of thing that a name means which is no parameter.
    fn other_than_parameter(&self, name: &str, scope: &Scope) -> Option<&'static str> {
        let tables = [&self.frame.problem, &self.frame.names];
        Some(match tables.iter().find_map(|names| names.get(name)) {
            Some(Named::Open(Definition::Coef { .. })) => "a coefficient",
            Some(Named::Open(Definition::Region { .. })) => "a region",
            Some(Named::Known(Value::Axis(_))) => "an axis",
            Some(_) => "a constant",
            None if self.fitting(scope.module, Wanted::Value).contains(&name) => "a constant",
            None => return None,
        })
    }

    /// Reports parameters that were set but do not exist.
    pub fn report_unknown_params(&mut self, given: &[GivenParam]) -> Outcome<()> {
        let mut failed = false;
        for g in given.iter().filter(|g| !g.used) {
            let known: Vec<&str> = self.frame.params.iter().map(String::as_str).collect();
            let message = format!("scheme `{}` has no parameter `{}`", self.frame.name, g.name);
            let mut d = Diagnostic::error(codes::UNKNOWN_PARAMETER, message);
            if let Some(name) = g.named {
                d = d.at(&g.scope.source, name, "set here");
            }
            let also = match g.named {
                Some(_) => &[][..],
                None => &["domain", "steps"][..],
            };
            let list = || match known.len() {
                0 => "it has no parameters".to_string(),
                n if n <= 12 => format!("its parameters are {}", known.join(", ")),
                n => format!("it has {}", count(n, "parameter", "parameters")),
            };
            d.hint = match self.other_than_parameter(&g.name, &g.scope) {
                Some(kind) => Some(format!("`{}` is {kind}, no parameter; {}", g.name, list())),
                None => did_you_mean(&g.name, known.iter().chain(also).copied())
                    .or_else(|| Some(list())),
            };
            failed |= self.fail::<()>(d).is_err();
        }
        if failed { Err(Reported) } else { Ok(()) }
    }
}

fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}
