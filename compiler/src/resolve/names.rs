//! Which value a name means, and the numbers that are computed when they are first needed.

use super::built_in;
use super::codes;
use super::elsewhere::Wanted;
use super::frame::{Definition, Named};
use super::load::{Found, ItemId};
use super::report::{Outcome, Place, Reported, short};
use super::resolver::{Constant, Resolver};
use super::space::Space;
use super::suggest::did_you_mean;
use super::value::{Scope, Sight, Table, Typed, Value};
use torre_grammar::ast::{ItemKind, Name};

impl Resolver<'_> {
    pub fn lookup(&mut self, scope: &Scope, name: &str, place: &Place) -> Outcome<Value> {
        if let Some((_, value)) = scope.locals.iter().rev().find(|(n, _)| n == name) {
            return match value {
                Value::Poison => Err(Reported),
                value => Ok(value.clone()),
            };
        }
        for table in scope.sight.tables() {
            if let Some(found) = self.named(*table, name, place) {
                self.frame.table(*table).note_use(name);
                return found;
            }
        }
        match self.library.find(scope.module, Space::Value, name) {
            Found::Item(item) => return self.constant(item, place),
            Found::Broken => return Err(Reported),
            Found::Nothing => {}
        }
        if let Some(axis) = self.frame.axis(name) {
            return Ok(Value::Axis(axis));
        }
        if scope.sight != Sight::Item
            && let Some(found) = self.extent(name, place)
        {
            return found;
        }
        match name {
            "pi" => return Ok(self.scalar(std::f64::consts::PI)),
            "dimensions" if !self.frame.axes.is_empty() => {
                return Ok(self.scalar(self.frame.axes.len() as f64));
            }
            "everywhere" => return Ok(self.scalar(1.0)),
            "nowhere" => return Ok(self.scalar(0.0)),
            "t" => {
                let node = self.graph.time();
                return Ok(Value::Scalar(Typed {
                    node,
                    position: None,
                }));
            }
            _ => {}
        }
        if built_in::is_built_in(name) {
            let message = format!("`{name}` is an operator and needs arguments");
            let d = self
                .error(codes::WRONG_KIND, message, place)
                .hint(format!("write `{name}(...)`"));
            return self.fail(d);
        }
        if self.lacks_part(name) {
            return Err(Reported);
        }
        let mut d = self.error(
            codes::UNKNOWN_NAME,
            format!("there is no `{name}` here"),
            place,
        );
        d.labels[0].text = "not found".to_string();
        d.hint = self.hint_for(scope, name);
        self.fail(d)
    }

    /// The value of a name in a table, computed now if it was not yet. `None`: the table does not have it.
    pub fn named(&mut self, table: Table, name: &str, place: &Place) -> Option<Outcome<Value>> {
        let definition = match self.frame.table(table).get(name)? {
            Named::Known(Value::Poison) => return Some(Err(Reported)),
            Named::Known(value) => return Some(Ok(value.clone())),
            Named::Running => {
                let message = format!("`{name}` is defined by itself");
                let d = self.error(codes::RECURSIVE, message, place);
                return Some(self.fail(d));
            }
            Named::Open(definition) => definition.clone(),
        };
        self.frame.table(table).set(name, Named::Running);
        let inlined = std::mem::take(&mut self.inlined);
        let site = std::mem::take(&mut self.files.site);
        let sites = std::mem::take(&mut self.files.sites);
        let found = match &definition {
            Definition::Number { value, scope } => {
                let n = self.number(scope, value);
                n.map(|n| self.scalar(n))
            }
            Definition::Cells { value, scope } => {
                let n = self.cells(scope, value);
                n.map(|n| self.scalar(n))
            }
            Definition::Region { region, scope } => self.region(scope, region, place),
            Definition::Coef { coef, scope } => self.coef(scope, coef, place),
        };
        self.inlined = inlined;
        (self.files.site, self.files.sites) = (site, sites);
        let value = found.unwrap_or(Value::Poison);
        self.frame.table(table).set(name, Named::Known(value));
        self.named(table, name, place)
    }

    /// A value that varies over the grid is known once the grid is placed: numbers cannot depend on it.
    pub fn needs_grid(&mut self, name: &str, kind: &str, place: &Place) -> Outcome<()> {
        if self.frame.grid.is_some() {
            return Ok(());
        }
        let message = "a number is needed here, one that is the same everywhere";
        let mut d = self.error(codes::NOT_A_NUMBER, message, place);
        d.labels[0].text = format!("`{name}` is a {kind}");
        self.fail(d)
    }

    /// `nx`, the cells of the domain along axis `x`, `hx`, their size, and `lx`, their product.
    fn extent(&mut self, name: &str, place: &Place) -> Option<Outcome<Value>> {
        let axis = |letter: char| {
            let rest = name.strip_prefix(letter)?;
            self.frame.axis(rest).map(|axis| (rest.to_string(), axis))
        };
        if axis('n').is_some() {
            return self.named(Table::Extents, name, place);
        }
        if let Some((axis, _)) = axis('h') {
            let size = self.cell_size(&axis, place);
            return Some(size.map(|h| self.scalar(h)));
        }
        let (axis, known) = axis('l')?;
        if let Some(lengths) = &self.lengths {
            let length = lengths[known];
            return Some(Ok(self.scalar(length)));
        }
        let cells = self.named(Table::Extents, &format!("n{axis}"), place)?;
        let size = self.cell_size(&axis, place);
        Some(match (cells, size) {
            (Ok(Value::Scalar(n)), Ok(h)) => {
                let n = self.graph.as_number(n.node).unwrap_or(f64::NAN);
                Ok(self.scalar(n * h))
            }
            _ => Err(Reported),
        })
    }

    /// The size of cells along an axis: the parameter `hx`, else `h`, else 1.
    pub fn cell_size(&mut self, axis: &str, place: &Place) -> Outcome<f64> {
        // Once the grid is there, a coefficient that is called `h` may have a value.
        if let Some(grid) = &self.frame.grid
            && let Some(axis) = self.frame.axis(axis)
        {
            return Ok(grid.spacing[axis]);
        }
        let size = self.given_cell_size(axis, place)?;
        Ok(size.unwrap_or(1.0))
    }

    /// The size of cells along an axis, if the scheme gives one.
    pub fn given_cell_size(&mut self, axis: &str, place: &Place) -> Outcome<Option<f64>> {
        self.positive(&[&format!("h{axis}"), "h"], place)
    }

    /// The first of some names that is a number of the scheme, if there is one; it must be positive.
    pub fn positive(&mut self, names: &[&str], place: &Place) -> Outcome<Option<f64>> {
        for name in names {
            // A depth `h` that varies over the grid is no size of cells.
            if let Some(Named::Open(Definition::Coef { .. } | Definition::Region { .. })) =
                self.frame.names.get(name)
            {
                continue;
            }
            let n = match self.named(Table::Scheme, name, place) {
                Some(Ok(Value::Scalar(s))) => self.graph.as_number(s.node),
                Some(Err(Reported)) => return Err(Reported),
                _ => None,
            };
            let Some(n) = n else { continue };
            if n > 0.0 && n.is_finite() && n.is_normal() {
                return Ok(Some(n));
            }
            let kind = match *name {
                "dt" => "the time step",
                _ => "the cell size",
            };
            let message = match n > 0.0 {
                true if n.is_infinite() => format!("{kind} `{name}` must be finite"),
                true => format!("{kind} `{name}` must be at least 2.3e-308"),
                false => format!("{kind} `{name}` must be a positive number"),
            };
            let at = self.frame.names.place(name).unwrap_or(place.clone());
            let mut d = self.error(codes::CELL_SIZE, message, &at);
            d.labels[0].text = format!("this is {}", short(n));
            return self.fail(d);
        }
        Ok(None)
    }

    fn hint_for(&self, scope: &Scope, name: &str) -> Option<String> {
        let frame = &self.frame;
        let hidden = scope.sight == Sight::Item
            && (frame.names.contains(name) || frame.extents.contains(name));
        if hidden {
            return Some(format!(
                "definitions see only their parameters: add a parameter and pass `{name}`"
            ));
        }
        let mut known: Vec<&str> = scope.locals.iter().rev().map(|(n, _)| n.as_str()).collect();
        if scope.sight == Sight::Problem {
            known.extend(frame.problem.keys());
        }
        if scope.sight != Sight::Item {
            known.extend(frame.names.keys());
            known.extend(frame.extents.keys());
        }
        known.extend(self.fitting(scope.module, Wanted::Value));
        known.extend(frame.axes.iter().map(|(n, _)| n.as_str()));
        known.extend(built_in::VALUES);
        if let Some(hint) = self.hint_for_missing(scope.module, name, Wanted::Value, known) {
            return Some(hint);
        }
        if ["x", "y", "z"].contains(&name) && !frame.axes.is_empty() {
            let axes: Vec<&str> = frame.axes.iter().map(|(n, _)| n.as_str()).collect();
            return Some(format!("the axes of the scheme are {}", axes.join(", ")));
        }
        if name == "e" {
            return Some("the exponential function is `exp(x)`".to_string());
        }
        match scope.sight {
            Sight::Problem => Some(format!(
                "a number gets a name by `const {name} = ...`, a part of the grid by `region {name} = ...`"
            )),
            Sight::Scheme => Some(format!(
                "a number gets a name by `param {name} = ...`, what varies from place to place by `coef {name} = ...`"
            )),
            Sight::Item => None,
        }
    }

    /// The item that a path such as `std::curl::curl` names.
    pub fn item_at(
        &mut self,
        scope: &Scope,
        path: &[Name],
        space: Space,
        place: &Place,
    ) -> Outcome<ItemId> {
        let Some((name, module)) = path.split_last() else {
            let d = self.error(codes::UNKNOWN_NAME, "a name is missing here", place);
            return self.fail(d);
        };
        if module.is_empty() {
            return match self.library.find(scope.module, space, &name.node) {
                Found::Item(item) => Ok(item),
                Found::Broken => Err(Reported),
                Found::Nothing => {
                    let kind = match space {
                        Space::Value => "definition",
                        Space::Scheme => "scheme",
                        Space::Problem => "problem",
                        Space::Schedule => "schedule",
                    };
                    let message = format!("there is no {kind} `{}` here", name.node);
                    let mut d = self.error(codes::UNKNOWN_NAME, message, place);
                    d.labels[0].text = "not found".to_string();
                    d.hint = match space {
                        Space::Scheme => self.hint_for_missing(
                            scope.module,
                            &name.node,
                            Wanted::Scheme,
                            self.fitting(scope.module, Wanted::Scheme),
                        ),
                        _ => did_you_mean(&name.node, self.library.names(scope.module, space)),
                    };
                    self.fail(d)
                }
            };
        }
        let opened = self
            .library
            .open(self.world, &mut self.report, scope.module, module);
        let from = opened.ok_or(Reported)?;
        if let Found::Item(item) = self.library.find(from, space, &name.node)
            && item.module == from
        {
            return Ok(item);
        }
        let own = self.library.own(from, space);
        let module = self.library.module(from).source.name();
        let message = format!("`{module}` has no item `{}`", name.node);
        let mut d = self.error(codes::UNKNOWN_ITEM, message, place);
        d.hint = did_you_mean(&name.node, own.iter().map(|(_, n)| n.node.as_str()));
        self.fail(d)
    }

    /// The value of a constant.
    pub fn constant(&mut self, item: ItemId, place: &Place) -> Outcome<Value> {
        match self.constants.get(&item) {
            Some(Constant::Done(Value::Poison)) => return Err(Reported),
            Some(Constant::Done(value)) => return Ok(value.clone()),
            Some(Constant::Running) => {
                let d = self.error(
                    codes::RECURSIVE,
                    "this constant is defined by itself",
                    place,
                );
                return self.fail(d);
            }
            None => {}
        }
        let module = self.library.module(item.module);
        let (source, ast) = (module.source.clone(), module.ast.clone());
        let value = match ast.items.get(item.index).map(|i| &i.kind) {
            Some(ItemKind::Const { value, .. }) => value,
            Some(ItemKind::Layer(layer)) => {
                let name = &layer.def.name.node;
                let message = format!("`{name}` is a layer");
                let d = self
                    .error(codes::WRONG_KIND, message, place)
                    .hint(format!("use it as a side: `boundary x: {name}(10)`"));
                return self.fail(d);
            }
            Some(ItemKind::Def(def)) => {
                let name = &def.name.node;
                let message = format!("`{name}` is an operator and needs arguments");
                let d = self
                    .error(codes::WRONG_KIND, message, place)
                    .hint(format!("write `{name}(...)`"));
                return self.fail(d);
            }
            _ => return Err(Reported),
        };
        self.constants.insert(item, Constant::Running);
        let scope = Scope {
            source,
            module: item.module,
            locals: Vec::new(),
            sight: Sight::Item,
        };
        // A constant sees no axes: it is the same for all schemes.
        let frame = std::mem::take(&mut self.frame);
        let result = self.number(&scope, value);
        self.frame = frame;
        let result = match result {
            Ok(n) => self.scalar(n),
            Err(Reported) => Value::Poison,
        };
        self.constants.insert(item, Constant::Done(result.clone()));
        match result {
            Value::Poison => Err(Reported),
            value => Ok(value),
        }
    }
}
