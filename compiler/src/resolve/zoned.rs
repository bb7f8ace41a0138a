//! Values that are other ones in a zone: how they are noted while expressions are evaluated, and how they become
//! amendments of updates.
//!
//! A call whose value is S inside of a zone and D outside is one node of the graph. An update with it computes its
//! value with D everywhere; in the zone it then adds w (S - D), where w is the factor of the call in the update. So the
//! update's own operations are the same as without the zone, and several zones at one place simply add up. The
//! update has to be linear in the call, but w may depend on field values.

mod amend;
mod misplaced;

pub use amend::Amending;

use super::codes;
use super::confine::confine;
use super::enclose::enclose;
use super::graph::{Node, NodeId, StateKey};
use super::report::{Outcome, Place, Reported};
use super::resolver::Resolver;
use super::value::{Items, Kind, Scope, Typed, Value};
use super::zones::{Call, StateFacts, ZoneFacts};
use crate::host::HostBinary;
use crate::lattice::{Axis, HalfIndex, Interval, PerAxis};
use crate::scheme::MOST_ZONES;
use misplaced::Misplaced;
use std::collections::HashMap;
use torre_grammar::ast::{self, DefLine};

/// The most states of a definition's calls, over a whole scheme.
const STATES: usize = 512;

impl Resolver<'_> {
    /// Evaluates the lines of a definition before its value; `zone` is that of its states, if it is known.
    pub fn def_lines(
        &mut self,
        def: &ast::Def,
        inner: &mut Scope,
        zone: Option<usize>,
    ) -> Outcome<()> {
        for stmt in &def.lines {
            match &stmt.kind.node {
                // Its parameters are known before.
                DefLine::Require(_) => {}
                DefLine::Let(bound) => {
                    let value = self.eval(inner, &bound.value).unwrap_or(Value::Poison);
                    inner.locals.push((bound.name.node.clone(), value));
                }
                DefLine::State { names, region } => {
                    let zone = match (region, zone) {
                        (Some(region), _) => self.zone_of(inner, region)?,
                        (None, Some(zone)) => zone,
                        (None, None) => {
                            let d = self
                                .error(
                                    codes::STATE,
                                    "a state needs a region to be kept in",
                                    &inner.place(stmt.kind.span),
                                )
                                .hint("write `state psi in layer(a)`, or name a region");
                            return self.fail(d);
                        }
                    };
                    // In a layer the definition itself defines differences.
                    self.zoned.plain |= self.frame.zones[zone].in_layers;
                    for name in names {
                        if self.zoned.states.len() >= STATES {
                            return self.too_complex(&inner.place(name.span));
                        }
                        let key = StateKey(self.zoned.states.len() as u32);
                        self.zoned.states.push(StateFacts {
                            name: name.node.clone(),
                            zone,
                            next: None,
                            position: None,
                            place: inner.place(name.span),
                        });
                        let node = self.graph.state(key);
                        let value = Value::Scalar(Typed {
                            node,
                            position: None,
                        });
                        inner.locals.push((name.node.clone(), value));
                    }
                }
                DefLine::Next { name, value } => self.next_line(inner, name, value)?,
            }
        }
        Ok(())
    }

    fn next_line(&mut self, inner: &Scope, name: &ast::Name, value: &ast::Expr) -> Outcome<()> {
        let place = inner.place(name.span);
        let local = inner.locals.iter().rev().find(|(n, _)| *n == name.node);
        let key = match local {
            Some((_, Value::Scalar(s))) => match self.graph.node(s.node) {
                Node::State(key) => Some(key),
                _ => None,
            },
            Some((_, Value::Poison)) => return Err(Reported),
            _ => None,
        };
        let Some(key) = key else {
            let message = format!("`{}` is no state of this definition", name.node);
            let d = self
                .error(codes::STATE, message, &place)
                .hint(format!("declare it: `state {} in layer(a)`", name.node));
            return self.fail(d);
        };
        let operand = self.operand(inner, value)?;
        let at = operand.place.clone();
        let Items { kind, items, .. } = self.scalars(operand.value, &at)?;
        let (Kind::Scalar, [item]) = (kind, items.as_slice()) else {
            let d = self.error(codes::STATE, "a state is a scalar", &at);
            return self.fail(d);
        };
        self.not_timed(item.node, "the next value of a state", &at)?;
        let facts = &mut self.zoned.states[key.0 as usize];
        facts.position = item.position;
        self.graph.advance_state(key, item.node);
        if facts.next.replace(item.node).is_some() {
            let message = format!("`{}` gets its next value twice", name.node);
            let d = self.error(codes::STATE, message, &place);
            return self.fail(d);
        }
        Ok(())
    }

    /// Refuses values that depend on time itself, as updates are the same in every step.
    pub fn not_timed(&mut self, node: NodeId, subject: &str, place: &Place) -> Outcome<()> {
        if !self.graph.facts(node).timed {
            return Ok(());
        }
        let message = format!("{subject} cannot depend on time itself");
        let mut d = self
            .error(codes::TIME_IN_STEP, message, place)
            .hint("what changes with time is added by a `source` of the problem");
        d.labels[0].text = "this depends on `t`".to_string();
        self.fail(d)
    }

    /// The next value that a definition, which has been evaluated, has given to a state.
    pub fn given_next(&mut self, key: StateKey) -> Outcome<NodeId> {
        let StateFacts {
            name, next, place, ..
        } = self.zoned.states[key.0 as usize].clone();
        if let Some(next) = next {
            return Ok(next);
        }
        let message = format!("the state `{name}` gets no next value");
        let d = self
            .error(codes::STATE, message, &place)
            .hint(format!("say `{name}@next = ...`"));
        self.fail(d)
    }

    /// The next value of a state that has been given.
    pub fn next_of_state(&mut self, key: StateKey, place: &Place) -> Outcome<Typed> {
        let facts = &self.zoned.states[key.0 as usize];
        match facts.next {
            Some(value) => Ok(Typed {
                node: self.graph.next(key, value),
                position: facts.position,
            }),
            None => {
                let message = format!("`{}@next` is not known here yet", facts.name);
                let d = self
                    .error(codes::STATE, message, place)
                    .hint(format!("first say `{}@next = ...`", facts.name));
                self.fail(d)
            }
        }
    }

    /// `layer(a)` and `depth(a)`: whether a point lies in the layers of an axis, and how deep.
    pub fn call_layer(
        &mut self,
        scope: &Scope,
        name: &str,
        args: &[ast::Arg],
        place: &Place,
    ) -> Outcome<Value> {
        let slots = self.arguments(scope, name, &["a"], args, place)?;
        let Some(Some(arg)) = slots.first() else {
            return self.missing_argument(name, "a", place);
        };
        let operand = self.operand(scope, &arg.value)?;
        let Value::Axis(axis) = operand.value else {
            let message = format!("`{name}` is that of an axis");
            let d = self.error(codes::NOT_AN_AXIS, message, &operand.place);
            return self.fail(d);
        };
        // Layers are placed after numbers.
        self.needs_grid(name, "value of each place", place)?;
        let sides = self.frame.layers[axis].clone();
        let depth = self.depth(axis, &sides);
        let mut node = depth;
        if name == "layer" {
            let zero = self.graph.number(0.0);
            node = self.graph.binary(HostBinary::Gt, depth, zero);
            let of_axis = |z: &ZoneFacts| {
                z.layer.as_ref().is_some_and(|(a, own)| {
                    *a == axis
                        && own
                            .iter()
                            .zip(&sides)
                            .all(|(a, b)| a.is_some() == b.is_some())
                })
            };
            self.frame.layered[axis] = true;
            let zone = self.frame.zones.iter().position(of_axis);
            let zone = match zone {
                None if sides.iter().any(Option::is_some) => Some(self.both_layers(axis, place)?),
                zone => zone,
            };
            if let Some(zone) = zone {
                self.zoned.layers.insert(node, zone);
            }
        }
        Ok(Value::Scalar(Typed {
            node,
            position: None,
        }))
    }

    /// The zone of the two unlike layers of an axis, for definitions.
    fn both_layers(&mut self, axis: Axis, place: &Place) -> Outcome<usize> {
        let name = format!("layers along {}", self.frame.name_of(axis));
        let known = |z: &ZoneFacts| z.in_layers && z.layer.is_none() && z.name == name;
        if let Some(zone) = self.frame.zones.iter().position(known) {
            return Ok(zone);
        }
        let own = self.frame.zones.iter().filter(|z| z.is_layer_of(axis));
        let zone = ZoneFacts {
            boxes: own.flat_map(|z| z.boxes.clone()).collect(),
            name,
            mask: None,
            layer: None,
            in_layers: true,
        };
        self.new_zone(zone, place)
    }

    /// The zone of a region that an expression names.
    fn zone_of(&mut self, scope: &Scope, region: &ast::Expr) -> Outcome<usize> {
        let condition = self.condition(scope, region)?;
        let Value::Scalar(c) = condition.value else {
            return Err(Reported);
        };
        if self.graph.as_number(c.node) == Some(0.0) {
            // There is none, such as where an axis has no layers.
            let known = self.frame.zones.iter().position(|z| z.boxes.is_empty());
            if let Some(zone) = known {
                return Ok(zone);
            }
            let zone = ZoneFacts {
                name: "nothing".to_string(),
                boxes: Vec::new(),
                mask: None,
                layer: None,
                in_layers: false,
            };
            return self.new_zone(zone, &condition.place);
        }
        if let Some(zone) = self.zoned.layers.get(&c.node) {
            return Ok(*zone);
        }
        let known = self.frame.zones.iter().position(|z| z.mask == Some(c.node));
        if let Some(zone) = known {
            return Ok(zone);
        }
        self.region_zone(c.node, &condition.place)
    }

    /// A zone of a region by its condition: the box around it, in which the condition is a mask.
    fn region_zone(&mut self, condition: NodeId, place: &Place) -> Outcome<usize> {
        let grid = self.frame.grid.clone().ok_or(Reported)?;
        let cells = grid.cells;
        // The last face of a ring is its first face.
        let whole =
            PerAxis::from_fn(|a| Interval::new(0, cells[a] + i64::from(!grid.is_periodic(a))));
        let mut hull = whole.map(|_| Interval::default());
        // Wherever in its cell a value lies.
        for bits in 0..8 {
            let position = PerAxis::from_fn(|a| {
                let half = bits >> a.index() & 1 == 1 && self.frame.is_present(a);
                HalfIndex(i64::from(half))
            });
            let confined = confine(&mut self.graph, Some(condition), position, whole);
            let mut own = confined.region;
            if let Some(rest) = confined.rest {
                own = enclose(&mut self.graph, &grid, rest, position, own);
            }
            if !own.is_empty() {
                hull = PerAxis::from_fn(|a| hull[a].hull(own[a]));
            }
        }
        let zone = ZoneFacts {
            name: self.region_name(condition),
            boxes: vec![hull],
            mask: Some(condition),
            layer: None,
            in_layers: false,
        };
        self.new_zone(zone, place)
    }

    /// The name of the region with a condition; the condition, if none has it.
    fn region_name(&self, condition: NodeId) -> String {
        let tables = [&self.frame.problem, &self.frame.names];
        let mut names = tables.iter().flat_map(|table| {
            let values = table.keys().map(|name| (name, table.value(name)));
            values.filter_map(|(name, value)| match value {
                Some(Value::Scalar(s)) if s.node == condition => Some(name.to_string()),
                _ => None,
            })
        });
        names
            .next()
            .unwrap_or_else(|| self.graph.describe(condition))
    }

    fn new_zone(&mut self, zone: ZoneFacts, place: &Place) -> Outcome<usize> {
        if self.frame.zones.len() >= MOST_ZONES {
            let message = format!("states lie in more than {MOST_ZONES} regions");
            let d = self.error(codes::STATE, message, place);
            return self.fail(d);
        }
        self.frame.zones.push(zone);
        Ok(self.frame.zones.len() - 1)
    }

    /// A value with all its calls as they are outside of their zones.
    pub fn outside(&mut self, node: NodeId) -> NodeId {
        self.graph.rewrite(node, &HashMap::new())
    }

    /// The value of a call of a definition with states: the value by the definition in the zone of its states, and
    /// outside the same with 0 for states and depths.
    pub fn zoned_call(&mut self, first: usize, result: Value, place: &Place) -> Outcome<Value> {
        let keys: Vec<StateKey> = (first..self.zoned.states.len())
            .map(|i| StateKey(i as u32))
            .collect();
        let Some(zone) = keys.first().map(|k| self.zoned.states[k.0 as usize].zone) else {
            return Ok(result);
        };
        let Items { kind, items, .. } = self.scalars(result, place)?;
        let (Kind::Scalar, [item]) = (kind, items.as_slice()) else {
            let d = self
                .error(
                    codes::STATE,
                    "a definition with states has a scalar as its value",
                    place,
                )
                .hint("use it for each component");
            return self.fail(d);
        };
        let zero = self.graph.number(0.0);
        let mut gone = HashMap::new();
        for key in &keys {
            let facts = self.zoned.states[key.0 as usize].clone();
            if facts.zone != zone {
                let mut zones = [zone, facts.zone].into_iter();
                let (message, hint) = match zones.find_map(|zone| self.layer_axis(zone)) {
                    Some(axis) => Misplaced::InLayer(axis).said(),
                    None => (
                        "the states of a definition lie in one region".to_owned(),
                        "write a definition for the states of each region, and add their values in the statement"
                            .to_owned(),
                    ),
                };
                let d = self.error(codes::STATE, message, place).hint(hint);
                return self.fail(d);
            }
            let next = self.given_next(*key)?;
            gone.insert(self.graph.state(*key), zero);
            gone.insert(self.graph.next(*key, next), zero);
        }
        gone.extend(self.zoned.depths.iter().map(|d| (*d, zero)));
        let outside = self.graph.rewrite(item.node, &gone);
        let node = self.zoned_node(zone, item.node, outside, keys, place);
        Ok(Value::Scalar(Typed { node, ..*item }))
    }

    /// The name of the axis along which a zone changes differences by itself.
    fn layer_axis(&self, zone: usize) -> Option<String> {
        let layer = self.frame.zones[zone].layer.as_ref();
        layer.map(|(axis, _)| self.graph.axes[*axis].clone())
    }

    /// The node of a call that is `inside` in a zone.
    pub fn zoned_node(
        &mut self,
        zone: usize,
        inside: NodeId,
        outside: NodeId,
        states: Vec<StateKey>,
        place: &Place,
    ) -> NodeId {
        let call = self.zoned.new_call(Call {
            zone,
            inside,
            states: states.clone(),
            place: place.clone(),
        });
        self.graph.zoned(call, inside, outside, &states)
    }
}
