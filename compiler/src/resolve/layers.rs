//! Layers before the sides of the domain: the difference along an axis there, and the states that are kept for it.
//!
//! A side such as `cpml(10)` names a `layer` item. Inside of the layer the item defines each difference `d` along its
//! axis, outside it is the plain one ([`super::zoned`]). Cells belong to a layer by their index: the first or last
//! n of an axis, and the plane at its upper end. So the values at integer and at half-integer positions of a cell are
//! both in a layer or both outside.

use super::built_in::{SIZES_OF_LAYERS, VALUES_OF_LAYERS};
use super::codes;
use super::graph::NodeId;
use super::load::{Found, ItemId};
use super::report::{Outcome, Place, Reported, count};
use super::resolver::Resolver;
use super::space::Space;
use super::value::{Scope, Sight, Use, Value};
use super::zones::{SideLayer, ZoneFacts};
use crate::host::HostBinary;
use crate::lattice::{Axis, Interval, PerAxis};
use crate::scheme::Boundary;
use std::rc::Rc;
use torre_grammar::ast::{self, Arg, ExprKind, ItemKind};
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::{Source, Spanned};

/// The module of the library whose layers need no `use`.
const MODULE: [&str; 2] = ["std", "layers"];

impl SideLayer {
    fn cells(&self) -> i64 {
        self.values[0] as i64
    }

    fn is_like(&self, other: &SideLayer) -> bool {
        self.item == other.item && self.values == other.values
    }
}

impl Resolver<'_> {
    /// The layer that a problem names as a side, and the wall behind it. `None`: there is none of this name.
    pub fn side_layer(
        &mut self,
        scope: &Scope,
        kind: &ast::BoundaryKind,
        axis: Axis,
    ) -> Outcome<Option<(Rc<SideLayer>, Boundary)>> {
        let name = &kind.name;
        let place = scope.place(name.span);
        let item = match self.library.find(scope.module, Space::Value, &name.node) {
            Found::Item(item) => Some(item),
            Found::Broken => return Err(Reported),
            Found::Nothing => self.library_layer(scope, &name.node),
        };
        let Some(item) = item else { return Ok(None) };
        let module = self.library.module(item.module);
        let (source, ast) = (module.source.clone(), module.ast.clone());
        let Some(ItemKind::Layer(layer)) = ast.items.get(item.index).map(|i| &i.kind) else {
            return Ok(None);
        };
        let wall = ast::BoundaryKind {
            name: layer.wall.clone(),
            args: Vec::new(),
        };
        let inner = Scope {
            source,
            module: item.module,
            locals: Vec::new(),
            sight: Sight::Item,
        };
        let wall = self.side(&inner, &wall, axis)?;
        let values = self.layer_values(scope, inner, &layer.def, &kind.args, &place, axis)?;
        let cells = values.first().copied().unwrap_or(f64::NAN);
        if !(cells >= 1.0 && cells == cells.trunc() && cells < 1e9) {
            let mut d = self
                .error(codes::LAYER, "a layer has a whole number of cells", &place)
                .hint(format!("write `{}(10)`", name.node));
            d.labels[0].text = match cells.is_nan() {
                true => "how many are they?".to_string(),
                false => format!("these are {cells}"),
            };
            return self.fail(d);
        }
        let layer = SideLayer {
            item,
            values,
            place,
        };
        Ok(Some((Rc::new(layer), wall)))
    }

    /// A layer of the library, which needs no `use`.
    fn library_layer(&mut self, scope: &Scope, name: &str) -> Option<ItemId> {
        let path: Vec<ast::Name> = (MODULE.iter())
            .map(|word| Spanned {
                node: word.to_string(),
                span: Default::default(),
            })
            .collect();
        let known = self.world.module(&scope.source, &MODULE).is_some();
        let module = known.then(|| {
            self.library
                .open(self.world, &mut self.report, scope.module, &path)
        });
        match self.library.find(module??, Space::Value, name) {
            Found::Item(item) => Some(item),
            _ => None,
        }
    }

    /// The names of the layers of the library.
    pub fn layer_names(&mut self, scope: &Scope) -> Vec<String> {
        // The module is loaded now.
        let _ = self.library_layer(scope, "");
        let Some(source) = self.world.module(&scope.source, &MODULE) else {
            return Vec::new();
        };
        let names = |source: &Source| {
            let ast = torre_grammar::parse(source).ok()?;
            let name = |item: &ast::Item| match &item.kind {
                ItemKind::Layer(layer) => Some(layer.def.name.node.clone()),
                _ => None,
            };
            Some(ast.items.iter().filter_map(name).collect())
        };
        names(&source).unwrap_or_default()
    }

    /// The values of a layer's parameters, which later ones may depend on; they see the cell size `h`, the step `dt`
    /// and the speed of the fastest waves in the layers of the axis.
    fn layer_values(
        &mut self,
        scope: &Scope,
        mut inner: Scope,
        def: &ast::Def,
        args: &[Arg],
        place: &Place,
        axis: Axis,
    ) -> Outcome<Vec<f64>> {
        let names: Vec<&str> = def.params.iter().map(|p| p.name.node.as_str()).collect();
        let slots = self.arguments(scope, &def.name.node, &names, args, place)?;
        self.add_sizes(&mut inner, axis);
        // Where the speed of waves is not known, the layer is made for a usual step.
        let speed = self.layer_speeds[axis]
            .or(self.speed)
            .unwrap_or(0.5 * self.graph.spacing[axis] / self.frame.dt);
        let speed = self.scalar(speed);
        inner.locals.push(("speed".to_string(), speed));
        let mut values = Vec::new();
        for (param, arg) in def.params.iter().zip(slots) {
            let value = match (arg, &param.default) {
                (Some(arg), _) => self.number(scope, &arg.value)?,
                (None, Some(default)) => {
                    self.frame.asks_speed |= mentions(default, "speed");
                    self.number(&inner, default)?
                }
                (None, None) => {
                    let message = format!(
                        "`{}` needs a value for `{}`",
                        def.name.node, param.name.node
                    );
                    let d = self.error(codes::ARGUMENTS, message, place);
                    return self.fail(d);
                }
            };
            let known = self.scalar(value);
            inner.locals.push((param.name.node.clone(), known));
            values.push(value);
        }
        self.requirements(def, &inner, place)?;
        Ok(values)
    }

    /// The cell size along an axis and the time step, as layers see them.
    fn add_sizes(&mut self, scope: &mut Scope, axis: Axis) {
        let (h, dt) = (self.graph.spacing[axis], self.frame.dt);
        let (h, dt) = (self.scalar(h), self.scalar(dt));
        let names = SIZES_OF_LAYERS.map(str::to_string);
        scope.locals.extend(names.into_iter().zip([h, dt]));
    }

    /// The zones of the layers, once the grid is there.
    pub fn place_layers(&mut self) -> Outcome<()> {
        let Some(cells) = self.frame.grid.as_ref().map(|g| g.cells) else {
            return Err(Reported);
        };
        for (name, axis) in self.frame.present() {
            let sides = self.frame.layers[axis].clone();
            let total: i64 = sides.iter().flatten().map(|s| s.cells()).sum();
            if let Some(side) = sides.iter().flatten().next()
                && total > cells[axis]
            {
                let message = format!(
                    "the layers along `{name}` have {}, but the domain has {}",
                    count(total as usize, "cell", "cells"),
                    cells[axis]
                );
                let d = self.error(codes::LAYER, message, &side.place);
                return self.fail(d);
            }
            match &sides {
                [Some(lower), Some(upper)] if lower.is_like(upper) => {
                    self.add_layer(&name, axis, sides.clone(), cells);
                }
                [lower, upper] => {
                    let (lower, upper) = (lower.clone(), upper.clone());
                    if lower.is_some() {
                        self.add_layer(&name, axis, [lower, None], cells);
                    }
                    if upper.is_some() {
                        self.add_layer(&name, axis, [None, upper], cells);
                    }
                }
            }
        }
        Ok(())
    }

    fn add_layer(
        &mut self,
        name: &str,
        axis: Axis,
        sides: [Option<Rc<SideLayer>>; 2],
        cells: PerAxis<i64>,
    ) {
        // The plane at the upper end of an axis counts as a part of the last cell.
        let whole = cells.map(|n| Interval::new(0, n + 1));
        let n = cells[axis];
        let [lower, upper] = [&sides[0], &sides[1]].map(|s| s.as_ref().map(|s| s.cells()));
        let ranges = [
            lower.map(|own| Interval::new(0, own)),
            upper.map(|own| Interval::new(n - own, n + 1)),
        ];
        let boxes = ranges.into_iter().flatten().map(|range| {
            let mut region = whole;
            region[axis] = range;
            region
        });
        self.frame.zones.push(ZoneFacts {
            name: match (&sides[0], &sides[1]) {
                (Some(_), Some(_)) => format!("layers along {name}"),
                (Some(_), None) => format!("layer below {name}"),
                _ => format!("layer above {name}"),
            },
            boxes: boxes.collect(),
            mask: None,
            layer: Some((axis, sides)),
            in_layers: true,
        });
    }

    /// How deep a point lies in layers of an axis: from 0 at their inner end to 1 at the wall.
    pub fn depth(&mut self, axis: Axis, sides: &[Option<Rc<SideLayer>>; 2]) -> NodeId {
        let cells = self.frame.grid.as_ref().map_or(1, |g| g.cells[axis]);
        let coordinate = self.graph.coordinate(axis);
        let h = self.graph.number(self.graph.spacing[axis]);
        let place = self.graph.binary(HostBinary::Div, coordinate, h);
        let mut depth = self.graph.number(0.0);
        for (side, layer) in sides.iter().enumerate() {
            let Some(layer) = layer else { continue };
            let n = self.graph.number(layer.values[0]);
            let inside = match side {
                0 => self.graph.binary(HostBinary::Sub, n, place),
                _ => {
                    let end = self.graph.number(cells as f64 - layer.values[0]);
                    self.graph.binary(HostBinary::Sub, place, end)
                }
            };
            let own = self.graph.binary(HostBinary::Div, inside, n);
            depth = self.graph.binary(HostBinary::Max, own, depth);
        }
        if !self.graph.is_dynamic(depth) && self.graph.as_number(depth).is_none() {
            self.zoned.note_depth(depth);
        }
        depth
    }

    /// The difference of a value along the axis of a layer, inside of it: as the layer's item says.
    pub fn inside_layer(
        &mut self,
        zone: usize,
        layer: &SideLayer,
        difference: &LayeredDifference<'_>,
    ) -> Outcome<Value> {
        let Some((axis, sides)) = self.frame.zones[zone].layer.clone() else {
            return Err(Reported);
        };
        let module = self.library.module(layer.item.module);
        let (source, ast) = (module.source.clone(), module.ast.clone());
        let Some(ItemKind::Layer(item)) = ast.items.get(layer.item.index).map(|i| &i.kind) else {
            return Err(Reported);
        };
        let mut inner = Scope {
            source,
            module: layer.item.module,
            locals: Vec::new(),
            sight: Sight::Item,
        };
        self.add_sizes(&mut inner, axis);
        for (param, value) in item.def.params.iter().zip(&layer.values) {
            let value = self.scalar(*value);
            inner.locals.push((param.name.node.clone(), value));
        }
        let depth = self.depth(axis, &sides);
        let depth = Value::Scalar(super::value::Typed {
            node: depth,
            position: None,
        });
        let values = [
            depth,
            difference.value.clone(),
            Value::Axis(axis),
            difference.order.clone(),
        ];
        let names = VALUES_OF_LAYERS.map(str::to_string);
        inner.locals.extend(names.into_iter().zip(values));
        self.inlined.push(Use {
            place: difference.place.clone(),
            item: layer.item,
        });
        let before = std::mem::replace(&mut self.zoned.plain, true);
        let result = self.def_lines(&item.def, &mut inner, Some(zone));
        let result = result.and_then(|()| self.eval(&inner, &item.def.body));
        self.zoned.plain = before;
        self.inlined.pop();
        result
    }

    /// Says which layers no difference of the scheme meets.
    pub fn report_idle_layers(&mut self) -> Outcome<()> {
        let mut failed = false;
        for (name, axis) in self.frame.present() {
            let side = self.frame.layers[axis].iter().flatten().next().cloned();
            let Some(side) = side else { continue };
            if self.frame.layered[axis] {
                continue;
            }
            let message = format!(
                "the scheme takes no difference `d` along `{name}` that a layer could change"
            );
            let d = self
                .error(codes::LAYER, message, &side.place)
                .hint("a layer replaces first differences `d(f, a)`; second ones `d2` have none");
            failed |= self.fail::<()>(d).is_err();
        }
        if failed { Err(Reported) } else { Ok(()) }
    }

    /// A second or centred difference along an axis with layers: there is no rule for it.
    pub fn refuse_in_layers<T>(&mut self, name: &str, axis: Axis, place: &Place) -> Outcome<T> {
        let axis = self.frame.name_of(axis);
        let message = format!("`{name}` along `{axis}` has no form in the layers at its sides");
        let d = Diagnostic::error(codes::LAYER, message)
            .at(&place.source, place.span, "taken here")
            .hint(
                "write the equation with first differences `d`, as two updates, like those of `std::acoustics`; or use \
                 a boundary without a layer",
            );
        self.fail(d)
    }
}

/// Whether an expression names something.
pub fn mentions(expr: &ast::Expr, name: &str) -> bool {
    let mut open = vec![expr];
    while let Some(e) = open.pop() {
        match &e.node {
            ExprKind::Name(found) if found == name => return true,
            ExprKind::Number(_) | ExprKind::Text(_) | ExprKind::Name(_) | ExprKind::Path(_) => {}
            ExprKind::Member(a, _) | ExprKind::Level(a, _) | ExprKind::Unary(_, a) => open.push(a),
            ExprKind::Offset(a, list) => {
                open.push(a);
                open.extend(list);
            }
            ExprKind::List(list) => open.extend(list),
            ExprKind::Call { args, .. } => open.extend(args.iter().map(|a| &a.value)),
            ExprKind::Binary(_, a, b) => open.extend([&**a, &**b]),
            ExprKind::If {
                condition,
                then,
                otherwise,
            } => open.extend([&**condition, &**then, &**otherwise]),
        }
    }
    false
}

/// A difference that a layer changes.
pub struct LayeredDifference<'a> {
    /// The value of which it is taken.
    pub value: Value,
    /// The third argument of `d`.
    pub order: Value,
    pub place: &'a Place,
}
