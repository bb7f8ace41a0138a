//! `require strength >= 0`: conditions on the parameters of a definition, which each call of it has to meet.

use super::codes;
use super::layers::mentions;
use super::report::{Outcome, Place};
use super::resolver::Resolver;
use super::value::{Scope, Value};
use torre_grammar::ast::{Def, DefLine, Expr};

impl Resolver<'_> {
    /// Refuses a call whose parameters, the locals of `inner`, do not meet a requirement. A condition that is no number
    /// here, as it depends on the place, the time or fields, is not looked at.
    pub fn requirements(&mut self, def: &Def, inner: &Scope, place: &Place) -> Outcome<()> {
        for line in &def.lines {
            let DefLine::Require(condition) = &line.kind.node else {
                continue;
            };
            // Parameters that were refused have been reported.
            let Ok(Value::Scalar(met)) = self.eval(inner, condition) else {
                continue;
            };
            if self.graph.as_number(met.node) == Some(0.0) {
                return self.refuse_parameters(def, inner, condition, place);
            }
        }
        Ok(())
    }

    fn refuse_parameters(
        &mut self,
        def: &Def,
        inner: &Scope,
        condition: &Expr,
        place: &Place,
    ) -> Outcome<()> {
        let span = condition.span;
        let text = (inner.source.text()).get(span.start as usize..span.end as usize);
        let text: Vec<&str> = text.unwrap_or_default().split_whitespace().collect();
        let message = format!("`{}` requires `{}`", def.name.node, text.join(" "));
        let named = def.params.iter().map(|param| param.name.node.as_str());
        let found: Vec<String> = named
            .filter(|name| mentions(condition, name))
            .filter_map(|name| {
                let (_, value) = inner.locals.iter().rev().find(|(own, _)| own == name)?;
                match value {
                    Value::Scalar(s) => {
                        Some(format!("`{name}` is {}", self.graph.as_number(s.node)?))
                    }
                    _ => None,
                }
            })
            .collect();
        let mut d = self.error(codes::REQUIREMENT, message, place).at(
            &inner.source,
            span,
            "the requirement",
        );
        if !found.is_empty() {
            d.labels[0].text = format!("here {}", found.join(", "));
        }
        self.fail(d)
    }
}
