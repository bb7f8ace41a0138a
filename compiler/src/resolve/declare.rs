//! The declarations of a scheme: axes, parameters, fields and coefficients.

use super::Parameter;
use super::built_in;
use super::codes;
use super::derive::{Declared, SchemeText};
use super::frame::{Definition, FieldFacts, Frame, GivenParam, Named};
use super::load::{taken, twice};
use super::report::{Outcome, Place, Reported, count};
use super::resolver::Resolver;
use super::value::{Kind, Scope, Table, Value};
use crate::lattice::{Axis, HalfIndex, PerAxis, Position};
use crate::scheme::{Boundary, Component, ComponentId, Grid};
use std::collections::BTreeMap;
use std::rc::Rc;
use torre_grammar::ast::{self, Name, SchemeStmt, Shape};
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::{Span, Spanned};

/// Cells per axis where there is no problem.
const ASSUMED: i64 = 1 << 16;
/// The most components of a scheme.
const COMPONENTS: usize = 256;
/// The most components of a field: an update of all of them is one stage.
const OF_A_FIELD: usize = 64;

/// The components of a shape.
pub struct Parts {
    pub kind: Kind,
    /// Names, which are empty for a scalar, and positions.
    pub parts: Vec<(String, Position)>,
}

impl Resolver<'_> {
    /// Notes a new name of the scheme.
    fn introduce(&mut self, scope: &Scope, name: &Name, named: Named) {
        self.introduce_into(Table::Scheme, scope, name, named);
    }

    /// Notes a new name in a table.
    pub fn introduce_into(&mut self, table: Table, scope: &Scope, name: &Name, named: Named) {
        let place = scope.place(name.span);
        if let Err(first) = self.frame.table(table).introduce(&name.node, place, named) {
            let d = twice(&scope.source, &name.node, &first, name.span);
            self.report.push(d);
            return;
        }
        if built_in::is_taken(&name.node) {
            self.report.push(taken(&scope.source, name));
        }
    }

    /// Begins with a scheme: its axes, of which a domain with fewer extents has the first ones. An error here leaves
    /// nothing to go on with.
    pub fn begin(&mut self, text: &SchemeText, extents: Option<usize>) -> Outcome<()> {
        self.frame = Frame {
            name: text.name.node.clone(),
            ..Frame::default()
        };
        self.declare_axes(text, extents)
    }

    /// Parameters and constants, cell size and time step. An error here leaves nothing to go on with.
    pub fn declare_numbers(&mut self, text: &SchemeText, given: &mut [GivenParam]) -> Outcome<()> {
        let mut numbers = Vec::new();
        let mut replaced = Vec::new();
        for Declared { scope, stmt, .. } in &text.body {
            let (name, value, is_param) = match stmt {
                SchemeStmt::Param { name, value } => (name, value, true),
                SchemeStmt::Const { name, value } => (name, value, false),
                _ => continue,
            };
            let mut definition = (value.clone(), scope.clone());
            if is_param {
                self.frame.params.push(name.node.clone());
                // The command line comes last and wins.
                for g in given.iter_mut().filter(|g| g.name == name.node) {
                    g.used = true;
                    replaced.push(definition);
                    definition = (g.value.clone(), g.scope.clone());
                }
            }
            let (value, of) = definition;
            let open = Named::Open(Definition::Number { value, scope: of });
            self.introduce(scope, name, open);
            numbers.push((scope, name));
        }
        for Declared { scope, stmt, .. } in &text.body {
            if let SchemeStmt::Coef(coef) = stmt {
                let open = Named::Open(Definition::Coef {
                    coef: Rc::new(coef.clone()),
                    scope: scope.clone(),
                });
                self.introduce(scope, &coef.name, open);
            }
        }
        let mut failed = false;
        for (scope, name) in numbers {
            let place = scope.place(name.span);
            let value = self.named(Table::Scheme, &name.node, &place);
            failed |= matches!(value, Some(Err(Reported)));
        }
        // Replaced values are checked all the same.
        for (value, scope) in replaced {
            failed |= self.number(&scope, &value).is_err();
        }
        failed |= self.declare_spacing(text).is_err();
        if failed { Err(Reported) } else { Ok(()) }
    }

    fn declare_axes(&mut self, text: &SchemeText, extents: Option<usize>) -> Outcome<()> {
        let mut found: Option<(&Vec<Name>, &Declared)> = None;
        for declared in &text.body {
            if let SchemeStmt::Axes(names) = &declared.stmt {
                if let Some((_, first)) = found {
                    let d = Diagnostic::error(codes::AXES, "the axes are given twice")
                        .at(&declared.scope.source, declared.span, "again here")
                        .at(&first.scope.source, first.span, "first here");
                    return self.fail(d);
                }
                found = Some((names, declared));
            }
        }
        let Some((names, Declared { scope, span, .. })) = found else {
            let d = self
                .error(
                    codes::AXES,
                    format!("scheme `{}` has no axes", text.name.node),
                    &text.place(),
                )
                .hint("begin with `axes x, y, z`");
            return self.fail(d);
        };
        if names.is_empty() || names.len() > 3 {
            let d = self.error(
                codes::AXES,
                format!("a scheme has one to three axes, not {}", names.len()),
                &scope.place(*span),
            );
            return self.fail(d);
        }
        if let Some(alike) = alike_components(names) {
            let d = self
                .error(
                    codes::AXES,
                    format!("with these axes two components of a tensor are called `{alike}`"),
                    &scope.place(*span),
                )
                .hint("give the axes other names");
            return self.fail(d);
        }
        let present = extents.unwrap_or(names.len()).clamp(1, names.len());
        let roles = Axis::roles(present);
        let others = Axis::ALL.into_iter().filter(|axis| !roles.contains(axis));
        let others: Vec<Axis> = others.take(names.len() - present).collect();
        self.frame.absent.clone_from(&others);
        for (name, axis) in names.iter().zip(roles.iter().copied().chain(others)) {
            self.introduce(scope, name, Named::Known(Value::Axis(axis)));
            self.frame.axes.push((name.node.clone(), axis));
            self.graph.axes[axis] = name.node.clone();
        }
        let distinct = self.frame.names.keys().count() == names.len();
        if distinct { Ok(()) } else { Err(Reported) }
    }

    fn declare_spacing(&mut self, text: &SchemeText) -> Outcome<()> {
        let place = text.place();
        let mut failed = false;
        self.graph.spacing = PerAxis::splat(1.0);
        // Also along axes without an extent, which have one cell.
        for (name, axis) in self.frame.axes.clone() {
            match self.given_cell_size(&name, &place) {
                Ok(h) => {
                    self.graph.spacing[axis] = h.unwrap_or(1.0);
                    self.frame.unsized_axes[axis] = h.is_none() && self.frame.is_present(axis);
                }
                Err(Reported) => failed = true,
            }
        }
        match self.positive(&["dt"], &place) {
            Ok(dt) => {
                self.frame.dt = dt.unwrap_or(1.0);
                self.frame.no_step = dt.is_none();
            }
            Err(Reported) => failed = true,
        }
        if failed { Err(Reported) } else { Ok(()) }
    }

    /// The parameters of the scheme at hand that have values.
    pub fn parameters(&self) -> Vec<Parameter> {
        let value = |name: &str| match self.frame.names.value(name)? {
            Value::Scalar(s) => self.graph.as_number(s.node),
            _ => None,
        };
        let params = self.frame.params.iter();
        params
            .filter_map(|name| {
                Some(Parameter {
                    name: name.clone(),
                    value: value(name)?,
                })
            })
            .collect()
    }

    /// The extents of a scheme that is checked without a problem: large enough for all places.
    pub fn assume_extents(&mut self) {
        for (name, _) in self.frame.axes.clone() {
            let cells = self.scalar(ASSUMED as f64);
            let extents = &mut self.frame.extents;
            extents.set(&format!("n{name}"), Named::Known(cells));
        }
    }

    /// A grid with these extents.
    pub fn assume_grid(&mut self) {
        let cells = PerAxis::from_fn(|a| {
            let present = self.frame.is_present(a);
            if present { ASSUMED } else { 1 }
        });
        self.set_grid(cells, PerAxis::splat([Boundary::Zero; 2]));
        self.frame.has_domain = false;
    }

    pub fn set_grid(&mut self, cells: PerAxis<i64>, boundary: PerAxis<[Boundary; 2]>) {
        let axes = PerAxis::from_fn(|a| {
            let present = self.frame.present();
            let found = present.into_iter().find(|(_, b)| *b == a);
            found.map(|(n, _)| n)
        });
        self.frame.has_domain = true;
        self.frame.grid = Some(Grid {
            axes,
            cells,
            spacing: self.graph.spacing,
            dt: self.frame.dt,
            boundary,
        });
    }

    pub fn declare_fields(&mut self, text: &SchemeText) -> Outcome<()> {
        let mut failed = false;
        for Declared { scope, stmt, .. } in &text.body {
            if let SchemeStmt::Field(field) = stmt
                && self.declare_field(scope, field).is_err()
            {
                failed = true;
                self.introduce(scope, &field.name, Named::Known(Value::Poison));
            }
        }
        if failed { Err(Reported) } else { Ok(()) }
    }

    /// Declares values that are known with the domain: coefficients and regions, also of the problem.
    pub fn declare_statics(
        &mut self,
        text: &SchemeText,
        problem: Option<(&Scope, &ast::Problem)>,
    ) -> Outcome<()> {
        let mut failed = false;
        for Declared { scope, stmt, .. } in &text.body {
            let name = match stmt {
                SchemeStmt::Coef(coef) => &coef.name,
                SchemeStmt::Region(region) => &region.name,
                _ => continue,
            };
            let place = scope.place(name.span);
            let found = self.named(Table::Scheme, &name.node, &place);
            failed |= matches!(found, Some(Err(Reported)));
        }
        if let Some((scope, problem)) = problem {
            failed |= self.compute_regions(scope, problem).is_err();
        }
        if failed { Err(Reported) } else { Ok(()) }
    }

    fn declare_field(&mut self, scope: &Scope, field: &ast::Field) -> Outcome<()> {
        let time = match &field.time {
            None => HalfIndex::ZERO,
            Some(e) => match self.number(scope, e)? {
                0.0 => HalfIndex::ZERO,
                0.5 => HalfIndex::HALF,
                n => {
                    let d = self.error(
                        codes::FIELD_TIME,
                        format!("a field lies at 0 or 1/2 within a step, not at {n}"),
                        &scope.place(e.span),
                    );
                    return self.fail(d);
                }
            },
        };
        let levels = match &field.levels {
            None => 1,
            Some(e) => match self.integer(scope, e)? {
                n @ (1 | 2) => n as u8,
                n => {
                    let d = self
                        .error(
                            codes::FIELD_LEVELS,
                            format!("a field has 1 or 2 levels, not {n}"),
                            &scope.place(e.span),
                        )
                        .hint("older values can be kept in a field of their own");
                    return self.fail(d);
                }
            },
        };
        let place = scope.place(field.name.span);
        let Parts { kind, parts } =
            self.positions(scope, &field.shape, field.position.as_ref(), &place)?;
        if parts.len() > OF_A_FIELD || self.frame.components.len() + parts.len() > COMPONENTS {
            let d = self.error(
                codes::TOO_MANY_COMPONENTS,
                format!(
                    "a field has up to {OF_A_FIELD} components and a scheme up to {COMPONENTS}"
                ),
                &place,
            );
            return self.fail(d);
        }
        let name = &field.name.node;
        let mut facts = FieldFacts {
            name: name.clone(),
            kind,
            names: Vec::new(),
            components: Vec::new(),
            levels,
            place,
        };
        for (part, position) in parts {
            let full = if part.is_empty() {
                name.clone()
            } else {
                format!("{name}.{part}")
            };
            facts
                .components
                .push(ComponentId(self.frame.components.len() as u32));
            facts.names.push(part);
            self.frame.components.push(Component {
                name: full,
                position,
                time,
                time_levels: levels,
            });
        }
        self.frame.fields.push(facts);
        let index = self.frame.fields.len() - 1;
        let value = Value::Field(index, None);
        self.introduce(scope, &field.name, Named::Known(value));
        Ok(())
    }

    /// The components of a shape with their positions.
    pub fn positions(
        &mut self,
        scope: &Scope,
        shape: &Shape,
        position: Option<&Spanned<ast::Position>>,
        place: &Place,
    ) -> Outcome<Parts> {
        if let Shape::Named(parts) = shape {
            return self.named_positions(scope, parts, place);
        }
        let Some(position) = position else {
            let d = self
                .error(
                    codes::POSITION_OF_SHAPE,
                    "the position of this field is missing",
                    place,
                )
                .hint("add `on nodes`, `on edges`, `on faces` or `on cells`");
            return self.fail(d);
        };
        let (word, span) = (&position.node, position.span);
        let axes = self.frame.axes.clone();
        let absent = self.frame.absent.clone();
        let build = |half: &dyn Fn(usize) -> bool| {
            let mut p = Position::default();
            for (i, (_, axis)) in axes.iter().enumerate() {
                p[*axis] = HalfIndex(i64::from(half(i) && !absent.contains(axis)));
            }
            p
        };
        let (kind, parts) = match shape {
            Shape::Named(_) => return Err(Reported),
            Shape::Scalar => {
                let p = self.scalar_position(scope, word, span)?;
                (Kind::Scalar, vec![(String::new(), p)])
            }
            Shape::Vector => {
                let mut list = Vec::new();
                for (i, (name, _)) in axes.iter().enumerate() {
                    let p = match word {
                        ast::Position::Nodes => build(&|_| false),
                        ast::Position::Cells => build(&|_| true),
                        ast::Position::Edges => build(&|j| i == j),
                        ast::Position::Faces => build(&|j| i != j),
                        ast::Position::Explicit(_) => {
                            return self.wrong_position(
                                scope,
                                span,
                                "the components of a vector lie on nodes, edges, faces or cells",
                            );
                        }
                    };
                    list.push((name.clone(), p));
                }
                (Kind::Vector, list)
            }
            Shape::Tensor => {
                let on_cells = match word {
                    ast::Position::Nodes => false,
                    ast::Position::Cells => true,
                    _ => {
                        return self.wrong_position(
                            scope,
                            span,
                            "a tensor lies on nodes or on cells",
                        );
                    }
                };
                let names = self.frame.tensor_names();
                let pairs = self.frame.tensor_pairs();
                let list = names
                    .into_iter()
                    .zip(pairs)
                    .map(|(name, &(a, b))| {
                        let p = build(&|j| on_cells != (a != b && (j == a || j == b)));
                        (name, p)
                    })
                    .collect();
                (Kind::Tensor, list)
            }
        };
        Ok(Parts { kind, parts })
    }

    fn named_positions(
        &mut self,
        scope: &Scope,
        parts: &[(Name, Spanned<ast::Position>)],
        place: &Place,
    ) -> Outcome<Parts> {
        let mut list: Vec<(String, Position)> = Vec::new();
        for (name, position) in parts {
            if list.iter().any(|(n, _)| *n == name.node) {
                let d = self.error(
                    codes::DEFINED_TWICE,
                    format!("component `{}` is defined twice", name.node),
                    &scope.place(name.span),
                );
                return self.fail(d);
            }
            let at = self.scalar_position(scope, &position.node, position.span)?;
            list.push((name.node.clone(), at));
        }
        if list.is_empty() {
            let d = self.error(codes::LIST, "a field needs a component", place);
            return self.fail(d);
        }
        Ok(Parts {
            kind: Kind::Vector,
            parts: list,
        })
    }

    fn wrong_position<T>(&mut self, scope: &Scope, span: Span, message: &str) -> Outcome<T> {
        let d = self
            .error(codes::POSITION_OF_SHAPE, message, &scope.place(span))
            .hint("components at other positions: `{ a on nodes, b on [1/2, 0, 0] }`");
        self.fail(d)
    }

    pub fn scalar_position(
        &mut self,
        scope: &Scope,
        position: &ast::Position,
        span: Span,
    ) -> Outcome<Position> {
        let axes = self.frame.axes.clone();
        let mut p = Position::default();
        match position {
            ast::Position::Nodes => {}
            ast::Position::Cells => {
                for (_, axis) in self.frame.present() {
                    p[axis] = HalfIndex::HALF;
                }
            }
            ast::Position::Edges | ast::Position::Faces => {
                return self.wrong_position(
                    scope,
                    span,
                    "a scalar lies on nodes, on cells or at a position such as [1/2, 0, 0]",
                );
            }
            ast::Position::Explicit(list) => {
                if list.len() != axes.len() {
                    let d = self.error(
                        codes::EXPLICIT_POSITION,
                        format!(
                            "the position has {}, but the scheme has {}",
                            count(list.len(), "entry", "entries"),
                            count(axes.len(), "axis", "axes")
                        ),
                        &scope.place(span),
                    );
                    return self.fail(d);
                }
                for ((_, axis), e) in axes.iter().zip(list) {
                    let half = match self.number(scope, e)? {
                        0.0 => HalfIndex::ZERO,
                        0.5 => HalfIndex::HALF,
                        n => {
                            let d = self.error(
                                codes::EXPLICIT_POSITION,
                                format!("positions in a cell are 0 or 1/2, not {n}"),
                                &scope.place(e.span),
                            );
                            return self.fail(d);
                        }
                    };
                    if self.frame.is_present(*axis) {
                        p[*axis] = half;
                    }
                }
            }
        }
        Ok(p)
    }
}

/// A name that two components of a tensor would have. Each is called by two axes, in either order.
fn alike_components(names: &[Name]) -> Option<String> {
    let mut found = BTreeMap::new();
    for (i, a) in names.iter().enumerate() {
        for (j, b) in names.iter().enumerate() {
            let pair = [&a.node, &b.node];
            // Names that occur twice are told elsewhere.
            if i != j && a.node == b.node {
                continue;
            }
            let joined = pair.map(String::as_str).concat();
            let mut sorted = pair;
            sorted.sort();
            if *found.entry(joined.clone()).or_insert(sorted) != sorted {
                return Some(joined);
            }
        }
    }
    None
}
