//! Calls: definitions are put in at every use.

use super::built_in;
use super::codes;
use super::elsewhere::Wanted;
use super::load::{Found, ItemId};
use super::report::{Outcome, Place, Reported, count};
use super::resolver::{LOCALS, Resolver};
use super::space::{Space, item_name};
use super::suggest::did_you_mean;
use super::value::{Scope, Sight, Use, Value};
use super::zones::ArgumentKey;
use std::rc::Rc;
use torre_grammar::ast::{Arg, DefLine, Expr, ExprKind, ItemKind, Stmt};

/// Definitions inside definitions.
const INLINED: usize = 64;

impl Resolver<'_> {
    pub fn call(
        &mut self,
        scope: &Scope,
        callee: &Expr,
        args: &[Arg],
        place: &Place,
    ) -> Outcome<Value> {
        let at = scope.place(callee.span);
        let item = match &callee.node {
            ExprKind::Path(path) => self.item_at(scope, path, Space::Value, &at)?,
            ExprKind::Name(name) => {
                let hidden = scope.locals.iter().any(|(n, _)| n == name)
                    || scope
                        .sight
                        .tables()
                        .iter()
                        .any(|t| self.frame.table(*t).contains(name));
                if hidden {
                    let message = format!("`{name}` is not an operator");
                    let mut d = self.error(codes::WRONG_KIND, message, &at);
                    if self.frame.fields.iter().any(|f| f.name == *name) {
                        let mut offset = vec!["0"; self.frame.axes.len()];
                        offset[0] = "1";
                        let offset = offset.join(", ");
                        d = d.hint(format!(
                            "a value beside it is read by its distance in cells: `{name}[{offset}]`"
                        ));
                    }
                    return self.fail(d);
                }
                match self.library.find(scope.module, Space::Value, name) {
                    Found::Item(item) => item,
                    Found::Broken => return Err(Reported),
                    Found::Nothing if built_in::is_built_in(name) => {
                        return self.call_built_in(scope, name, args, place);
                    }
                    Found::Nothing if name == "layer" || name == "depth" => {
                        return self.call_layer(scope, name, args, place);
                    }
                    Found::Nothing => {
                        let message = format!("there is no operator `{name}`");
                        let mut d = self.error(codes::UNKNOWN_NAME, message, &at);
                        d.labels[0].text = "not found".to_string();
                        let own = self.fitting(scope.module, Wanted::Operator);
                        let known = own.into_iter().chain(built_in::BUILT_IN.iter().copied());
                        d.hint = self
                            .hint_for_missing(scope.module, name, Wanted::Operator, known)
                            .or_else(|| self.hint_for_uncalled(scope, name));
                        return self.fail(d);
                    }
                }
            }
            _ => {
                let d = self.error(codes::WRONG_KIND, "this is not an operator", &at);
                return self.fail(d);
            }
        };
        self.inline(scope, item, args, place, &at)
    }

    fn inline(
        &mut self,
        scope: &Scope,
        item: ItemId,
        args: &[Arg],
        place: &Place,
        callee: &Place,
    ) -> Outcome<Value> {
        let module = self.library.module(item.module);
        let (source, ast) = (module.source.clone(), Rc::clone(&module.ast));
        let Some(kind) = ast.items.get(item.index).map(|i| &i.kind) else {
            return Err(Reported);
        };
        let ItemKind::Def(def) = kind else {
            let name = item_name(kind).map_or("this", |(_, n)| &n.node);
            let message = format!("`{name}` is not an operator");
            let d = self.error(codes::WRONG_KIND, message, callee);
            return self.fail(d);
        };
        if self.inlined.iter().any(|u| u.item == item) {
            let message = format!("`{}` is defined by itself", def.name.node);
            let d = self
                .error(codes::RECURSIVE, message, place)
                .hint("definitions are inlined, so they cannot be recursive");
            return self.fail(d);
        }
        if self.inlined.len() >= INLINED || def.lines.len() + def.params.len() > LOCALS {
            return self.too_complex(place);
        }
        let names: Vec<&str> = def.params.iter().map(|p| p.name.node.as_str()).collect();
        let slots = self.arguments(scope, &def.name.node, &names, args, place)?;
        let mut inner = Scope {
            source,
            module: item.module,
            locals: Vec::new(),
            sight: Sight::Item,
        };
        let values: Vec<Option<Outcome<Value>>> = slots
            .into_iter()
            .map(|arg| arg.map(|a| self.eval(scope, &a.value)))
            .collect();
        self.inlined.push(Use {
            place: place.clone(),
            item,
        });
        let result = self.inline_body(def, values, &mut inner, place);
        self.inlined.pop();
        result
    }

    fn inline_body(
        &mut self,
        def: &torre_grammar::ast::Def,
        values: Vec<Option<Outcome<Value>>>,
        inner: &mut Scope,
        place: &Place,
    ) -> Outcome<Value> {
        for (param, value) in def.params.iter().zip(values) {
            let value = match (value, &param.default) {
                (Some(Ok(value)), _) => value,
                (Some(Err(Reported)), _) => Value::Poison,
                (None, Some(default)) => self.eval(inner, default).unwrap_or(Value::Poison),
                (None, None) => {
                    let message = format!(
                        "`{}` needs a value for `{}`",
                        def.name.node, param.name.node
                    );
                    let used = self.inlined.pop();
                    let d = self.error(codes::ARGUMENTS, message, place);
                    let failed = self.fail(d);
                    self.inlined.extend(used);
                    return failed;
                }
            };
            inner.locals.push((param.name.node.clone(), value));
        }
        self.requirements(def, inner, place)?;
        let plain = |line: &DefLine| matches!(line, DefLine::Let(_) | DefLine::Require(_));
        let keeps = |line: &Stmt<DefLine>| !plain(&line.kind.node);
        if !def.lines.iter().any(keeps) {
            self.def_lines(def, inner, None)?;
            return self.eval(inner, &def.body);
        }
        // One set of states for each distinct call.
        let item = self.inlined.last().map(|u| u.item).ok_or(Reported)?;
        let arguments: Option<Vec<_>> = (inner.locals.iter())
            .map(|(_, value)| ArgumentKey::of(value))
            .collect();
        let key = (item, arguments.ok_or(Reported)?);
        if let Some(known) = self.zoned.inlined.get(&key) {
            return Ok(known.clone());
        }
        let first = self.zoned.states.len();
        let before = self.zoned.plain;
        let result = self.def_lines(def, inner, None);
        let result = result.and_then(|()| self.eval(inner, &def.body));
        self.zoned.plain = before;
        let value = self.zoned_call(first, result?, place)?;
        self.zoned.inlined.insert(key, value.clone());
        Ok(value)
    }

    /// Which argument goes to which parameter.
    pub fn arguments<'a>(
        &mut self,
        scope: &Scope,
        callee: &str,
        params: &[&str],
        args: &'a [Arg],
        place: &Place,
    ) -> Outcome<Vec<Option<&'a Arg>>> {
        let mut slots: Vec<Option<&Arg>> = vec![None; params.len()];
        let mut failed = false;
        let mut next = 0;
        for arg in args {
            let index = match &arg.name {
                Some(name) => {
                    let known = params.iter().position(|p| *p == name.node);
                    if known.is_none() {
                        let message = format!("`{callee}` has no parameter `{}`", name.node);
                        let mut d = self.error(codes::ARGUMENTS, message, &scope.place(name.span));
                        d.hint = did_you_mean(&name.node, params.iter().copied()).or_else(|| {
                            (!params.is_empty())
                                .then(|| format!("its parameters are {}", params.join(", ")))
                        });
                        failed |= self.fail::<()>(d).is_err();
                        continue;
                    }
                    known
                }
                None => {
                    next += 1;
                    Some(next - 1)
                }
            };
            match index.and_then(|i| slots.get_mut(i)) {
                None => {
                    let message = format!(
                        "`{callee}` takes {}",
                        count(params.len(), "argument", "arguments")
                    );
                    let mut d = self.error(codes::ARGUMENTS, message, &scope.place(arg.value.span));
                    d.labels[0].text = "one too many".to_string();
                    return self.fail(d);
                }
                Some(slot @ None) => *slot = Some(arg),
                Some(Some(_)) => {
                    let param = index.and_then(|i| params.get(i)).unwrap_or(&"");
                    let message = format!("`{param}` of `{callee}` is given twice");
                    let d = self.error(codes::ARGUMENTS, message, &scope.place(arg.value.span));
                    failed |= self.fail::<()>(d).is_err();
                }
            }
        }
        let _ = place;
        if failed { Err(Reported) } else { Ok(slots) }
    }
}
