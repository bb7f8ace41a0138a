//! Sides of the domain: the kinds that every scheme has, and the kinds that a scheme names.

use super::codes;
use super::derive::{Declared, SchemeText};
use super::order::Targeted;
use super::report::{Outcome, Reported};
use super::resolver::Resolver;
use super::suggest::did_you_mean;
use super::value::Scope;
use crate::lattice::{Axis, Position};
use crate::scheme::{Boundary, ComponentId, OddPositions};
use std::collections::BTreeSet;
use torre_grammar::ast::{self, Name, SchemeStmt, SideParity, Target};
use torre_grammar::diag::Diagnostic;

/// Sides that need no scheme. Values on an odd side are odd about it, so that they are 0; about an even one they are
/// even.
const KINDS: [(&str, Boundary); 7] = [
    ("zero", Boundary::Zero),
    ("periodic", Boundary::Periodic),
    (BLOCH, Boundary::Periodic),
    ("odd", Boundary::Pec),
    ("even", Boundary::Pmc),
    ("pec", Boundary::Pec),
    ("pmc", Boundary::Pmc),
];

/// Periodic with a phase: it takes a wave number.
const BLOCH: &str = "bloch";

/// The names of absorbing ends elsewhere.
const ABSORBING: [&str; 8] = [
    "pml",
    "upml",
    "absorbing",
    "absorb",
    "abc",
    "mur",
    "open",
    "radiation",
];

/// Two components at one position that a side would need to tell apart.
struct Unequal {
    odd: String,
    even: String,
}

impl Resolver<'_> {
    /// The sides that a scheme names.
    pub fn declare_sides(&mut self, text: &SchemeText) -> Outcome<()> {
        let mut failed = false;
        for Declared { scope, stmt, .. } in &text.body {
            if let SchemeStmt::Side { name, parities } = stmt
                && self.declare_side(scope, name, parities).is_err()
            {
                failed = true;
                // Problems that name it have no fault of their own.
                self.frame.sides.entry(name.node.clone()).or_default();
            }
        }
        if failed { Err(Reported) } else { Ok(()) }
    }

    fn declare_side(&mut self, scope: &Scope, name: &Name, parities: &[SideParity]) -> Outcome<()> {
        if KINDS.iter().any(|(n, _)| *n == name.node) {
            let message = format!("the side `{}` is built in and cannot be defined", name.node);
            let d = self.error(codes::BUILT_IN, message, &scope.place(name.span));
            return self.fail(d);
        }
        let mut odd = BTreeSet::new();
        for parity in parities {
            let target = Target {
                state: None,
                field: parity.field.clone(),
                component: parity.component.clone(),
                level: None,
            };
            let Targeted { components, .. } = self.target(scope, &target)?;
            match parity.odd {
                true => odd.extend(components),
                false => odd.retain(|id| !components.contains(id)),
            }
        }
        // Without an axis other components lie at one position, which concerns problems that have such a side.
        if self.frame.absent.is_empty()
            && let Err(Unequal { odd, even }) = self.odd_positions(&odd)
        {
            let message = format!(
                "`{odd}` is odd about the side `{}`, `{even}` is even, and both lie at one position, where a side has \
                 one parity",
                name.node
            );
            let d = self
                .error(codes::SIDE, message, &scope.place(name.span))
                .hint(format!("`{even} odd` makes both odd"));
            return self.fail(d);
        }
        if self.frame.sides.insert(name.node.clone(), odd).is_some() {
            let message = format!("the side `{}` is defined twice", name.node);
            let d = self.error(codes::DEFINED_TWICE, message, &scope.place(name.span));
            return self.fail(d);
        }
        Ok(())
    }

    /// The side that a problem states for an end of an axis, layers included.
    pub fn side_with_layer(
        &mut self,
        scope: &Scope,
        kind: &ast::BoundaryKind,
        axis: Axis,
        side: usize,
    ) -> Outcome<Boundary> {
        let name = &kind.name.node;
        let is_side = KINDS.iter().any(|(n, _)| n == name) || self.frame.sides.contains_key(name);
        let layer = match is_side {
            true => None,
            false => self.side_layer(scope, kind, axis)?,
        };
        let (layer, boundary) = match layer {
            Some((layer, wall)) => (Some(layer), wall),
            None => (None, self.side(scope, kind, axis)?),
        };
        self.frame.stated[axis][side] = Some(match &layer {
            Some(layer) => format!("{name}({})", layer.values[0]),
            None => name.clone(),
        });
        self.frame.layers[axis][side] = layer;
        Ok(boundary)
    }

    /// The kind of an end of an axis.
    pub fn side(
        &mut self,
        scope: &Scope,
        kind: &ast::BoundaryKind,
        axis: Axis,
    ) -> Outcome<Boundary> {
        let name = &kind.name;
        let built_in = KINDS.iter().find(|(n, _)| *n == name.node);
        let found = match (built_in, self.frame.sides.get(&name.node)) {
            (Some((_, boundary)), _) => *boundary,
            (None, Some(odd)) => match self.odd_positions(odd) {
                Ok(odd) => self.simplest(odd, axis),
                Err(unequal) => return self.unequal_without_axes(scope, name, unequal),
            },
            (None, None) => return self.unknown_side(scope, name),
        };
        if name.node == BLOCH {
            return self.bloch_side(scope, kind, axis);
        }
        if !kind.args.is_empty() {
            let d = self.error(
                codes::BOUNDARY,
                format!("the boundary `{}` takes no arguments", name.node),
                &scope.place(name.span),
            );
            return self.fail(d);
        }
        Ok(found)
    }

    /// `bloch(k)`: around the axis fields come back with the phase of the wave number `k`.
    fn bloch_side(
        &mut self,
        scope: &Scope,
        kind: &ast::BoundaryKind,
        axis: Axis,
    ) -> Outcome<Boundary> {
        let place = scope.place(kind.name.span);
        let slots = self.arguments(scope, BLOCH, &["k"], &kind.args, &place)?;
        let Some(Some(k)) = slots.first() else {
            return self.missing_argument(BLOCH, "k", &place);
        };
        let k = self.number(scope, &k.value)?;
        let known = self.frame.bloch[axis].replace(k);
        if !k.is_finite() || known.is_some_and(|known| known != k) {
            let message = match k.is_finite() {
                true => "both sides of an axis have one wave number",
                false => "a wave number is finite",
            };
            let d = self.error(codes::BOUNDARY, message, &place);
            return self.fail(d);
        }
        Ok(Boundary::Periodic)
    }

    /// The positions at which components are odd; or two components that lie at one position, of which one is odd.
    fn odd_positions(&self, odd: &BTreeSet<ComponentId>) -> Result<OddPositions, Unequal> {
        let mut positions = OddPositions::default();
        let components = &self.frame.components;
        for id in odd {
            let own = &components[id.index()];
            let even = components.iter().zip(0..).find(|(other, n)| {
                other.position == own.position && !odd.contains(&ComponentId(*n))
            });
            if let Some((even, _)) = even {
                return Err(Unequal {
                    odd: own.name.clone(),
                    even: even.name.clone(),
                });
            }
            positions.insert(own.position);
        }
        Ok(positions)
    }

    fn unequal_without_axes<T>(
        &mut self,
        scope: &Scope,
        side: &Name,
        Unequal { odd, even }: Unequal,
    ) -> Outcome<T> {
        let message = format!(
            "about the side `{}` `{odd}` is odd and `{even}` even, and in this domain both lie at one position",
            side.node
        );
        let names: Vec<String> = (self.frame.absent.iter())
            .map(|axis| format!("`{}`", self.frame.name_of(*axis)))
            .collect();
        let d = self
            .error(codes::SIDE, message, &scope.place(side.span))
            .hint(format!(
                "the domain has no extent along {}: give it one, or take a scheme without this axis",
                names.join(" and ")
            ));
        self.fail(d)
    }

    /// The built-in side with the same parities, if there is one.
    fn simplest(&self, odd: OddPositions, axis: Axis) -> Boundary {
        let own = Boundary::Mirror(odd);
        let same = |other: &Boundary| {
            let parity = |b: Boundary, p: Position| b.is_odd(axis, p);
            let components = &self.frame.components;
            components
                .iter()
                .all(|c| parity(own, c.position) == parity(*other, c.position))
        };
        let built_in = [Boundary::Pec, Boundary::Pmc];
        built_in.into_iter().find(same).unwrap_or(own)
    }

    fn unknown_side<T>(&mut self, scope: &Scope, name: &Name) -> Outcome<T> {
        let layers = self.layer_names(scope);
        let own = self.frame.sides.keys().map(String::as_str);
        let own = own.chain(layers.iter().map(String::as_str));
        let known: Vec<&str> = KINDS.iter().map(|(n, _)| *n).chain(own).collect();
        let mut d = Diagnostic::error(
            codes::BOUNDARY,
            format!("there is no boundary `{}`", name.node),
        )
        .at(&scope.source, name.span, "unknown");
        let elsewhere = match name.node.to_lowercase().as_str() {
            word if ABSORBING.contains(&word) => {
                Some("`cpml(10)` is an absorbing layer of 10 cells")
            }
            "dirichlet" => Some("`odd` holds values on the side at 0"),
            "neumann" => Some("`even` holds the slope across the side at 0"),
            "mirror" | "symmetric" | "symmetry" => {
                Some("`even` mirrors values at the side, `odd` with the other sign")
            }
            _ => None,
        };
        let meant = elsewhere
            .map(str::to_string)
            .or_else(|| did_you_mean(&name.node, known.iter().copied()));
        d.hint = meant.or_else(|| {
            let named = ["fixed", "free"].contains(&name.node.as_str());
            Some(match named {
                true => format!(
                    "scheme `{}` does not say what is odd about a {} side; boundaries are {}",
                    self.frame.name,
                    name.node,
                    known.join(", ")
                ),
                false => format!("boundaries are {}", known.join(", ")),
            })
        });
        self.fail(d)
    }
}
