//! Bloch-periodic sides: fields that come back with another phase around an axis, u(x + l) = exp(i k l) u(x).
//!
//! Such a field is exp(i k x) times a periodic one, w. The field w is computed, its real and its imaginary part by real
//! fields: the fields of the scheme and as many again, with `_im` behind their names. A tap of a linear update from p
//! to q has the factor exp(i k (q - p)) for w, so each update becomes two, which read both parts where it reads along
//! the axis. All else stays: positions, stages, regions, zones, time levels. So everything after this stage sees a
//! scheme with periodic sides. Records are about values at one position, whose phase they leave out: values that they
//! read at a distance have the phase between the two places.

use super::codes;
use super::emit::pruned_to;
use super::frame::Named;
use super::report::{Outcome, Place};
use super::resolver::Resolver;
use super::value::Value as Known;
use super::zones::Kept;
use crate::lattice::{Axis, PerAxis, Position};
use crate::scheme::{
    Amendment, Body, ComponentId, Op, Read, Scheme, Stage, StateAdvance, StateId, Update, Value,
    displacement,
};
use torre_grammar::diag::Diagnostic;

/// Behind the names of imaginary parts.
const SUFFIX: &str = "_im";

/// The two parts of a value of a body.
#[derive(Clone, Copy)]
enum Parts {
    /// The same in both updates: made of numbers and coefficients.
    Static(Value),
    Pair([Value; 2]),
}

/// An update is not linear.
struct Nonlinear;

/// Makes the operations of both parts of a body.
struct Pairing<'a> {
    scheme: &'a Scheme,
    target: ComponentId,
    /// Wave numbers in radians per cell.
    phases: PerAxis<f64>,
    ops: Vec<Op>,
    parts: Vec<Parts>,
}

impl Pairing<'_> {
    fn push(&mut self, op: Op) -> Value {
        self.ops.push(op);
        Value(self.ops.len() as u32 - 1)
    }

    fn number(&mut self, value: f64) -> Value {
        self.push(Op::Const(self.scheme.precision.round(value)))
    }

    fn of(&self, value: Value) -> Parts {
        self.parts[value.index()]
    }

    fn is_zero(&self, value: Value) -> bool {
        matches!(self.ops[value.index()], Op::Const(0.0))
    }

    /// The value of a read, with the phase between the two places.
    fn read(&mut self, read: Read) -> Parts {
        let number = self.scheme.components.len() as u32;
        let twin = ComponentId(read.component.0 + number);
        let re = self.push(Op::Read(read));
        let im = self.push(Op::Read(Read {
            component: twin,
            ..read
        }));
        let [from, to] = [self.target, read.component].map(|c| self.scheme.component(c).position);
        let by = displacement(from, to, read.offset);
        let angle = angle(self.phases, by);
        if angle == 0.0 {
            return Parts::Pair([re, im]);
        }
        let (sin, cos) = angle.sin_cos();
        let [cos, sin, negative] = [cos, sin, -sin].map(|n| self.number(n));
        let [a, b] = [
            self.push(Op::Mul(negative, im)),
            self.push(Op::Mul(sin, re)),
        ];
        let [re, im] = [
            self.push(Op::Fma(cos, re, a)),
            self.push(Op::Fma(cos, im, b)),
        ];
        Parts::Pair([re, im])
    }

    /// The same operation on both parts; a static value is the same for both.
    fn both<const N: usize>(
        &mut self,
        operands: [Parts; N],
        op: impl Fn([Value; N]) -> Op,
    ) -> Parts {
        let part = |n: usize| {
            operands.map(|o| match o {
                Parts::Static(value) => value,
                Parts::Pair(pair) => pair[n],
            })
        };
        let [re, im] = [0, 1].map(|n| op(part(n)));
        if operands.iter().all(|o| matches!(o, Parts::Static(_))) {
            return Parts::Static(self.push(re));
        }
        Parts::Pair([self.push(re), self.push(im)])
    }

    fn operation(&mut self, op: Op) -> Result<Parts, Nonlinear> {
        use Parts::{Pair, Static};
        // Only a pair, or nothing, is added to a pair.
        let sums = |this: &Self, a: Parts, b: Parts| match (a, b) {
            (Static(_), Static(_)) | (Pair(_), Pair(_)) => true,
            (Static(value), _) | (_, Static(value)) => this.is_zero(value),
        };
        let pairs = |list: &[Parts]| list.iter().filter(|p| matches!(p, Pair(_))).count();
        let linear = match op {
            Op::Const(_) | Op::Coef(_) => return Ok(Static(self.push(op))),
            Op::Read(read) => return Ok(self.read(read)),
            Op::Base => {
                let base = self.push(op);
                return Ok(Pair([base; 2]));
            }
            Op::State(state) => {
                let twin = StateId(state.0 + self.scheme.states.len() as u32);
                return Ok(Pair([state, twin].map(|s| self.push(Op::State(s)))));
            }
            Op::Neg(_) | Op::Flush(_) => true,
            Op::Abs(a) | Op::Sqrt(a) | Op::Power2(a) | Op::Exponent(a) => pairs(&[self.of(a)]) == 0,
            Op::Add(a, b) | Op::Sub(a, b) => sums(self, self.of(a), self.of(b)),
            Op::Mul(a, b) => pairs(&[self.of(a), self.of(b)]) < 2,
            Op::Div(_, b) => pairs(&[self.of(b)]) == 0,
            Op::Fma(a, b, c) => {
                let factors = [self.of(a), self.of(b)];
                let product = match pairs(&factors) {
                    0 => factors[0],
                    _ => Pair([a; 2]),
                };
                let product_adds = match (product, self.of(c)) {
                    (Static(_), Static(_)) | (Pair(_), Pair(_)) => true,
                    (Pair(_), Static(c)) => self.is_zero(c),
                    (Static(_), Pair(_)) => false,
                };
                pairs(&factors) < 2 && product_adds
            }
            Op::Select {
                a,
                b,
                then,
                otherwise,
                ..
            } => {
                let compared = [self.of(a), self.of(b)];
                pairs(&compared) == 0 && sums(self, self.of(then), self.of(otherwise))
            }
        };
        if !linear {
            return Err(Nonlinear);
        }
        let mut operands = Vec::new();
        op.operands(|v| operands.push(v));
        let parts: Vec<Parts> = operands.iter().map(|v| self.of(*v)).collect();
        // Operations name their operands in this order.
        let renamed = |now: &[Value]| {
            op.map(|v| {
                let place = operands.iter().position(|o| *o == v).unwrap_or(0);
                now[place]
            })
        };
        Ok(match parts.as_slice() {
            [a] => self.both([*a], |v| renamed(&v)),
            [a, b] => self.both([*a, *b], |v| renamed(&v)),
            [a, b, c] => self.both([*a, *b, *c], |v| renamed(&v)),
            [a, b, c, d] => self.both([*a, *b, *c, *d], |v| renamed(&v)),
            _ => return Err(Nonlinear),
        })
    }
}

/// The phase between two places.
fn angle(phases: PerAxis<f64>, by: Position) -> f64 {
    let axes = Axis::ALL.into_iter();
    axes.map(|a| phases[a] * by[a].as_f64()).sum()
}

/// A body with the states that it advances.
struct Part {
    body: Body,
    advances: Vec<StateAdvance>,
}

/// The real and the imaginary part of a body.
fn parts(
    scheme: &Scheme,
    target: ComponentId,
    phases: PerAxis<f64>,
    body: &Body,
    advances: &[StateAdvance],
) -> Result<[Part; 2], Nonlinear> {
    let mut pairing = Pairing {
        scheme,
        target,
        phases,
        ops: Vec::new(),
        parts: Vec::new(),
    };
    for op in &body.ops {
        let made = pairing.operation(*op)?;
        pairing.parts.push(made);
    }
    let number = scheme.states.len() as u32;
    // A value without fields would be the same in every cell, which is not periodic in this sense, unless it is 0.
    let part = |value: Value, n: usize| match pairing.of(value) {
        Parts::Pair(pair) => Ok(pair[n]),
        Parts::Static(value) if pairing.is_zero(value) => Ok(value),
        Parts::Static(_) => Err(Nonlinear),
    };
    let one = |n: usize| {
        let own = |a: &StateAdvance| {
            Ok(StateAdvance {
                state: StateId(a.state.0 + n as u32 * number),
                value: part(a.value, n)?,
            })
        };
        let advances: Result<Vec<StateAdvance>, Nonlinear> = advances.iter().map(own).collect();
        let (result, mut advances) = (part(body.result, n)?, advances?);
        let body = pruned_to(&pairing.ops, result, &mut advances);
        Ok(Part { body, advances })
    };
    Ok([one(0)?, one(1)?])
}

fn paired_update(
    scheme: &Scheme,
    update: &Update,
    phases: PerAxis<f64>,
) -> Result<[Update; 2], Nonlinear> {
    let target = update.target;
    let [re, im] = parts(scheme, target, phases, &update.body, &[])?;
    let mut amendments = [Vec::new(), Vec::new()];
    for own in &update.amendments {
        let made = parts(scheme, target, phases, &own.body, &own.advances)?;
        for (list, Part { body, advances }) in amendments.iter_mut().zip(made) {
            list.push(Amendment {
                zone: own.zone,
                body,
                advances,
            });
        }
    }
    let twin = ComponentId(target.0 + scheme.components.len() as u32);
    let [first, second] = amendments;
    let both = [(target, re, first), (twin, im, second)];
    Ok(both.map(|(target, part, amendments)| Update {
        target,
        region: update.region,
        mask: update.mask,
        body: part.body,
        amendments,
    }))
}

/// `E_im.z` for `E.z`.
fn twin_name(name: &str) -> String {
    match name.split_once('.') {
        Some((field, part)) => format!("{field}{SUFFIX}.{part}"),
        None => format!("{name}{SUFFIX}"),
    }
}

impl Resolver<'_> {
    /// The wave numbers of Bloch-periodic axes in radians per cell; `None` where there is no such axis.
    fn bloch_phases(&self) -> Option<PerAxis<f64>> {
        let known = self.frame.bloch;
        let any = Axis::ALL.into_iter().any(|a| known[a].is_some());
        any.then(|| {
            PerAxis::from_fn(|a| match (known[a], self.without_phases) {
                (Some(k), false) => k * self.graph.spacing[a],
                _ => 0.0,
            })
        })
    }

    /// Whether a name is that of an imaginary part that an error before has left out.
    pub fn lacks_part(&self, name: &str) -> bool {
        let of = name.strip_suffix(SUFFIX);
        let is_part = of.is_some_and(|of| self.frame.fields.iter().any(|f| f.name == of));
        let lacking = self.bloch_phases().is_some() && !self.frame.paired;
        is_part && lacking && self.report.has_errors()
    }

    /// Gives a scheme its imaginary parts, where an axis is Bloch-periodic.
    pub fn pair(
        &mut self,
        mut scheme: Scheme,
        kept: &mut Vec<Kept>,
        places: &[Place],
    ) -> Outcome<Scheme> {
        let Some(phases) = self.bloch_phases() else {
            return Ok(scheme);
        };
        self.frame.without_phases = Some(scheme.clone());
        let mut stages = Vec::new();
        for (number, stage) in scheme.stages.iter().enumerate() {
            let mut updates = Vec::new();
            for update in &stage.updates {
                match paired_update(&scheme, update, phases) {
                    Ok(pair) => updates.extend(pair),
                    Err(Nonlinear) => {
                        let message = format!(
                            "Bloch-periodic sides need updates that are linear in the fields, and that of `{}` is not",
                            scheme.component(update.target).name
                        );
                        let mut d = Diagnostic::error(codes::BOUNDARY, message);
                        if let Some(place) = places.get(number) {
                            d = d.at(&place.source, place.span, "in this update");
                        }
                        return self.fail(d);
                    }
                }
            }
            stages.push(Stage { updates });
        }
        scheme.stages = stages;
        self.add_twins(&mut scheme, kept)?;
        Ok(scheme)
    }

    /// The components, states and names of imaginary parts.
    fn add_twins(&mut self, scheme: &mut Scheme, kept: &mut Vec<Kept>) -> Outcome<()> {
        let (components, states) = (scheme.components.len() as u32, scheme.states.len() as u32);
        let mut twins = scheme.components.clone();
        for twin in &mut twins {
            twin.name = twin_name(&twin.name);
        }
        let mut more = scheme.states.clone();
        for of in kept.clone() {
            let [own, twin] = [&scheme.components, &twins].map(|c| &c[of.target.index()].name);
            let state = &mut more[of.id.index()];
            let [from, to] = [own, twin].map(|name| format!(" of {name} in "));
            state.name = state.name.replacen(&from, &to, 1);
            kept.push(Kept {
                id: StateId(of.id.0 + states),
                target: ComponentId(of.target.0 + components),
                ..of
            });
        }
        scheme.components.extend(twins);
        scheme.states.extend(more);
        self.frame.components.clone_from(&scheme.components);
        self.frame.paired = true;
        for mut field in self.frame.fields.clone() {
            field.name.push_str(SUFFIX);
            for component in &mut field.components {
                component.0 += components;
            }
            if self.frame.names.contains(&field.name) {
                let message = format!(
                    "Bloch-periodic sides give `{}` an imaginary part, `{}`, and there is something else of this name",
                    field.name.trim_end_matches(SUFFIX),
                    field.name
                );
                let d = self.error(codes::BOUNDARY, message, &field.place);
                return self.fail(d);
            }
            let value = Known::Field(self.frame.fields.len(), None);
            self.frame.names.set(&field.name, Named::Known(value));
            self.frame.fields.push(field);
        }
        Ok(())
    }

    /// The body of a record at a position: values that it reads elsewhere along a Bloch-periodic axis have the phase
    /// between the two places, which takes the other part of their field.
    pub fn in_phase(&self, body: Body, position: Position) -> Body {
        let Some(phases) = self.bloch_phases().filter(|_| self.frame.paired) else {
            return body;
        };
        let components = &self.frame.components;
        let half = components.len() as u32 / 2;
        let mut ops: Vec<Op> = Vec::new();
        let mut push = |op: Op| {
            ops.push(op);
            Value(ops.len() as u32 - 1)
        };
        let mut names: Vec<Value> = Vec::new();
        for op in &body.ops {
            let mut value = push(op.map(|v| names[v.index()]));
            if let Op::Read(read) = *op {
                let from = components[read.component.index()].position;
                let angle = angle(phases, displacement(position, from, read.offset));
                if angle != 0.0 {
                    let own = read.component.0;
                    let (other, sign) = match own < half {
                        true => (own + half, -1.0),
                        false => (own - half, 1.0),
                    };
                    let twin = push(Op::Read(Read {
                        component: ComponentId(other),
                        ..read
                    }));
                    let cos = push(Op::Const(angle.cos()));
                    let sin = push(Op::Const(sign * angle.sin()));
                    let product = push(Op::Mul(sin, twin));
                    value = push(Op::Fma(cos, value, product));
                }
            }
            names.push(value);
        }
        Body {
            result: names[body.result.index()],
            ops,
        }
    }
}
