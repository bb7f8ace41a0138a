//! The outputs of a problem: slices and volumes of fields, states and coefficients, and their spectra.

use super::codes;
use super::confine::confine;
use super::enclose::enclose;
use super::kept::ShownStates;
use super::order::Targeted;
use super::report::{Outcome, Place, Reported};
use super::resolver::Resolver;
use super::results::{Recorded, Results};
use super::suggest::did_you_mean;
use super::value::{Items, Kind, Scope, Typed, Value};
use crate::host::HostExpr;
use crate::lattice::{Axis, HalfIndex, Interval, PerAxis, Position, Region};
use crate::problem::{Medium, Output, OutputKind, Spectrum, StaticOutput, is_in_file_names};
use crate::scheme::{ComponentId, StateId};
use std::collections::BTreeMap;
use torre_grammar::ast::{Name, Plane, Target, Within};

/// The part of the grid that an output takes: a plane of it, or all of it, within a box or region.
#[derive(Clone, Copy)]
pub struct OutputPart<'a> {
    pub plane: Option<&'a Plane>,
    pub within: &'a [Within],
}

/// A component or a static value, as far as results know them.
pub struct Shown {
    pub name: String,
    pub position: Position,
    source: Source,
}

enum Source {
    /// A component, or a state that its updates keep.
    Changing(ComponentId, Option<StateId>),
    Static(Typed),
}

impl Resolver<'_> {
    /// A slice if there is a plane, otherwise a volume; its values or their spectrum.
    pub fn output(
        &mut self,
        recorded: &Recorded<'_>,
        targets: &[Target],
        part: &OutputPart<'_>,
        spectrum: Option<&Spectrum>,
        results: &mut Results,
    ) -> Outcome<()> {
        let scope = recorded.scope;
        let OutputPart { plane, within } = *part;
        for target in targets {
            let (shown, place) = match &target.state {
                Some(state) => self.shown_states(scope, state, target, within)?,
                None => self.shown(scope, target)?,
            };
            for shown in shown {
                let grid = self.frame.grid.as_ref().ok_or(Reported)?;
                let extent = grid.extent(shown.position);
                let mut region = self.window(scope, within, &shown, extent)?;
                let (mut kind, mut name) = (OutputKind::Volume, shown.name.clone());
                if let Some(plane) = plane {
                    let axis = self.axis_named(scope, &plane.axis)?;
                    let index = self.plane(scope, plane, &shown, extent[axis], axis)?;
                    region[axis] = region[axis].intersect(Interval::new(index, index + 1));
                    kind = OutputKind::Slice { axis, index };
                    name = format!("{name}-{}{index}", plane.axis.node);
                }
                if region.is_empty() {
                    self.warn_of_no_place(&shown.name, "this output looks", &place);
                    continue;
                }
                match shown.source {
                    Source::Changing(component, state) => {
                        let names = match spectrum {
                            Some(_) => &mut results.spectrum_names,
                            None => &mut results.output_names,
                        };
                        results.outputs.push(Output {
                            name: own_name(names, name),
                            component,
                            state,
                            kind,
                            region,
                            every: recorded.every,
                            spectrum: spectrum.cloned(),
                        });
                    }
                    Source::Static(_) if spectrum.is_some() => {
                        let message =
                            format!("`{}` does not change, so it has no spectrum", shown.name);
                        let d = self.error(codes::SPECTRUM, message, &place);
                        return self.fail(d);
                    }
                    Source::Static(value) => {
                        let value = self.host_at(value, shown.position, &place, "an output")?;
                        results.statics.push(StaticOutput {
                            name: own_name(&mut results.output_names, name),
                            position: shown.position,
                            value,
                            kind,
                            region,
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// The index of a plane, by itself or by its place.
    fn plane(
        &mut self,
        scope: &Scope,
        plane: &Plane,
        shown: &Shown,
        range: Interval,
        axis: Axis,
    ) -> Outcome<i64> {
        if !plane.is_length {
            return self.index_along(scope, &plane.at, range, &plane.axis.node, &shown.name);
        }
        let stagger = shown.position[axis];
        let place = self.nearest(scope, &plane.axis, &plane.at, stagger, range)?;
        if place.is_moved {
            let found = format!("{} = {}", plane.axis.node, place.shown);
            self.note_nearest(&shown.name, &[found], &scope.place(plane.at.span));
        }
        Ok(place.index)
    }

    /// The box of an output: of a region that is no box the smallest one around it.
    fn window(
        &mut self,
        scope: &Scope,
        within: &[Within],
        shown: &Shown,
        extent: Region,
    ) -> Outcome<Region> {
        let region = self.box_of(scope, within, extent, &shown.name)?;
        let Some(condition) = self.condition_of(scope, within)? else {
            return Ok(region);
        };
        let node = self.at_position(&condition, &shown.name, shown.position)?;
        let confined = confine(&mut self.graph, Some(node), shown.position, region);
        let (Some(rest), Some(grid)) = (confined.rest, &self.frame.grid) else {
            return Ok(confined.region);
        };
        Ok(enclose(
            &mut self.graph,
            grid,
            rest,
            shown.position,
            confined.region,
        ))
    }

    /// The states that an output names.
    fn shown_states(
        &mut self,
        scope: &Scope,
        state: &Name,
        target: &Target,
        within: &[Within],
    ) -> Outcome<(Vec<Shown>, Place)> {
        let ShownStates { list, place, .. } = self.states_of(scope, state, target, within)?;
        let shown = list.into_iter().map(|state| Shown {
            name: state.name,
            position: self.frame.components[state.component.index()].position,
            source: Source::Changing(state.component, Some(state.id)),
        });
        Ok((shown.collect(), place))
    }

    /// Refuses an output of a name that neither the scheme nor the problem has.
    fn nothing_to_show<T>(&mut self, scope: &Scope, name: &Name) -> Outcome<T> {
        if self.lacks_part(&name.node) {
            return Err(Reported);
        }
        let message = format!("there is no field, coefficient or region `{}`", name.node);
        let mut d = self.error(codes::UNKNOWN_NAME, message, &scope.place(name.span));
        d.labels[0].text = "not found".to_string();
        let frame = &self.frame;
        let known = frame.problem.keys().chain(frame.names.keys());
        let fields: Vec<&str> = frame.fields.iter().map(|f| f.name.as_str()).collect();
        d.hint = did_you_mean(&name.node, known)
            .or_else(|| Some(format!("the fields are {}", fields.join(", "))));
        self.fail(d)
    }

    /// The meaning of an output's target: the components of a field, or a coefficient or region of the scheme or
    /// problem.
    fn shown(&mut self, scope: &Scope, target: &Target) -> Outcome<(Vec<Shown>, Place)> {
        let name = &target.field.node;
        let place = scope.place(target.field.span);
        let known = [&self.frame.problem, &self.frame.names];
        let value = known.iter().find_map(|names| names.value(name)).cloned();
        let value = match value {
            Some(value @ (Value::Scalar(_) | Value::Vector(..) | Value::Tensor(_))) => value,
            None if known.iter().all(|names| !names.contains(name)) => {
                return self.nothing_to_show(scope, &target.field);
            }
            _ => {
                let Targeted {
                    components, place, ..
                } = self.newest(scope, target)?;
                let shown = components.into_iter().map(|id| {
                    let facts = &self.frame.components[id.index()];
                    Shown {
                        name: facts.name.clone(),
                        position: facts.position,
                        source: Source::Changing(id, None),
                    }
                });
                return Ok((shown.collect(), place));
            }
        };
        self.frame.problem.note_use(name);
        if let Some(level) = &target.level {
            let d = self.error(
                codes::LEVEL_OF,
                format!("`{name}` does not change"),
                &scope.place(level.span),
            );
            return self.fail(d);
        }
        let value = match &target.component {
            Some(component) => self.member(scope, value, component)?,
            None => value,
        };
        let Items { kind, items, .. } = self.scalars(value, &place)?;
        let parts = match (kind, &target.component) {
            (Kind::Scalar, Some(component)) => vec![component.node.clone()],
            _ => self.part_names(kind),
        };
        let cells = self.middle_of_cells();
        let shown = items.into_iter().zip(parts).map(|(item, part)| Shown {
            name: match part.as_str() {
                "" => name.clone(),
                part => format!("{name}.{part}"),
            },
            position: item.position.unwrap_or(cells),
            source: Source::Static(item),
        });
        Ok((shown.collect(), place))
    }

    /// The names of the parts of a value of this kind.
    fn part_names(&self, kind: Kind) -> Vec<String> {
        let axes = self.frame.axes.iter().map(|(n, _)| n.clone());
        match kind {
            Kind::Scalar => vec![String::new()],
            Kind::Vector => axes.collect(),
            Kind::Tensor => self.frame.tensor_names(),
        }
    }

    /// Where values are shown that have no position of their own.
    fn middle_of_cells(&self) -> Position {
        PerAxis::from_fn(|a| HalfIndex(i64::from(self.frame.is_present(a))))
    }

    /// The coefficients and regions with names that vary over the grid and not in time.
    pub fn media(&mut self) -> Vec<Medium> {
        let tables = [&self.frame.problem, &self.frame.names];
        let known = tables.iter().flat_map(|names| {
            let values = names.keys().map(|name| (name, names.value(name)));
            values.filter_map(|(name, value)| Some((name.to_owned(), value?.clone())))
        });
        let known: Vec<(String, Value)> = known.collect();
        let cells = self.middle_of_cells();
        let mut media = Vec::new();
        for (name, value) in known {
            let (kind, items) = match value {
                Value::Scalar(item) => (Kind::Scalar, vec![item]),
                Value::Vector(items, _) => (Kind::Vector, items),
                Value::Tensor(items) => (Kind::Tensor, items),
                _ => continue,
            };
            for (item, part) in items.into_iter().zip(self.part_names(kind)) {
                let position = item.position.unwrap_or(cells);
                if self.graph.is_dynamic(item.node) {
                    continue;
                }
                let value = self.graph.host(item.node, position);
                let varies = |e: &HostExpr| e.depends_on_place() && !e.depends_on_time();
                if let Some(value) = value.filter(varies) {
                    let name = match part.as_str() {
                        "" => name.clone(),
                        part => format!("{name}.{part}"),
                    };
                    media.push(Medium {
                        name,
                        position,
                        value,
                    });
                }
            }
        }
        media
    }
}

/// Outputs whose files would have one name get numbers. `names`: as [`Results::output_names`].
fn own_name(names: &mut BTreeMap<String, u64>, name: String) -> String {
    let key = |name: &str| -> String {
        let sign = |c| if is_in_file_names(c) { c } else { '_' };
        name.chars().map(sign).collect()
    };
    let first = key(&name);
    let mut number = names.get(&first).map_or(1, |last| last + 1);
    loop {
        let own = match number {
            1 => name.clone(),
            number => format!("{name}-{number}"),
        };
        if number == 1 || !names.contains_key(&key(&own)) {
            names.insert(key(&own), 1);
            names.insert(first, number);
            return own;
        }
        number += 1;
    }
}
