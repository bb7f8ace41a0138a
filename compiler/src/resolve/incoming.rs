//! Incident fields and the boxes of total fields.

use super::codes;
use super::report::{Outcome, Place, Reported};
use super::resolver::Resolver;
use super::results::{Incoming, Results};
use super::silences::still_drive;
use super::value::Scope;
use crate::analysis;
use crate::host::HostExpr;
use crate::incident::{self, Refusal};
use crate::lattice::PerAxis;
use crate::problem::{Drive, Incident, IncidentField, PlaneWave, Problem, TotalBox};
use crate::scheme::{Coef, ComponentId, Scheme};
use crate::statics::NoFiles;
use torre_grammar::ast::{self, Ends, Expr, IncidentLine, Name, ProblemStmt, Stmt, Target};
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::Span;

/// The largest number of a direction.
const LARGEST: i64 = 1 << 20;

/// Places at faces that are looked at before a run; where there are more, the run looks at them.
const LOOKED_AT: u64 = 1 << 18;

/// The part of a value that an absorbing end takes in a step at most, in Courant numbers.
const LOSS: f64 = 0.4;

/// Numbers with their place.
#[derive(Clone, Copy)]
struct Numbers<'a> {
    list: &'a [Expr],
    span: Span,
}

/// The lines of an incident field, lines of a kind together.
#[derive(Default)]
struct Lines<'a> {
    direction: Option<Numbers<'a>>,
    drives: Vec<(&'a Target, &'a Expr)>,
    given: Vec<(&'a Target, &'a Expr)>,
}

impl Resolver<'_> {
    /// The incident fields of a problem, and the boxes in which they are part of the values.
    pub fn incoming(&mut self, scope: &Scope, problem: &ast::Problem) -> Outcome<Incoming> {
        let mut incoming = Incoming::default();
        let mut failed = false;
        for stmt in &problem.body {
            if let ProblemStmt::Incident { name, lines, .. } = &stmt.kind.node {
                failed |= self.incident(scope, name, lines, &mut incoming).is_err();
            }
        }
        for stmt in &problem.body {
            if let ProblemStmt::Total { ranges, from } = &stmt.kind.node {
                // It may be one of the wrong ones.
                if failed && incoming.list.iter().all(|i| i.name != from.node) {
                    continue;
                }
                let place = scope.place(stmt.kind.span);
                let found = self
                    .total(scope, ranges, from, &incoming)
                    .and_then(|(field, of)| {
                        let mut others = incoming.list[field].boxes.iter();
                        if let Some(first) = others.position(|other| other.meets(&of)) {
                            let first = &incoming.boxes[field][first];
                            self.boxes_meet(&from.node, &place, first)?;
                        }
                        Ok((field, of))
                    });
                failed |= found
                    .map(|(field, of)| {
                        incoming.list[field].boxes.push(of);
                        incoming.boxes[field].push(place);
                    })
                    .is_err();
            }
        }
        if failed {
            return Err(Reported);
        }
        for (field, name) in incoming.list.iter().zip(&incoming.names) {
            if field.boxes.is_empty() {
                let message = format!("no box has the incident field `{}`", field.name);
                let d = Diagnostic::warning(codes::UNUSED_INCIDENT, message)
                    .at(&name.source, name.span, "it has no effect")
                    .hint(format!("add `total x = 20..80 from {}`", field.name));
                self.report.push(d);
            }
        }
        Ok(incoming)
    }

    fn incident(
        &mut self,
        scope: &Scope,
        name: &Name,
        lines: &[Stmt<IncidentLine>],
        incoming: &mut Incoming,
    ) -> Outcome<()> {
        let place = scope.place(name.span);
        if let Some(first) = incoming.list.iter().position(|i| i.name == name.node) {
            let first = incoming.names[first].clone();
            let message = format!("the incident field `{}` is defined twice", name.node);
            let d = self.error(codes::DEFINED_TWICE, message, &place);
            return self.fail(d.at(&first.source, first.span, "first here"));
        }
        let field = self.incident_field(scope, name, lines);
        // A name that stands for a wrong field is known, so that boxes from it are not wrong as well.
        let is_wrong = field.is_err();
        incoming.list.push(Incident {
            name: name.node.clone(),
            field: field.unwrap_or(IncidentField::Given(Vec::new())),
            boxes: Vec::new(),
        });
        incoming.names.push(place);
        incoming.boxes.push(Vec::new());
        if is_wrong { Err(Reported) } else { Ok(()) }
    }

    fn incident_field(
        &mut self,
        scope: &Scope,
        name: &Name,
        lines: &[Stmt<IncidentLine>],
    ) -> Outcome<IncidentField> {
        let mut sorted = Lines::default();
        for line in lines {
            match &line.kind.node {
                IncidentLine::Direction(list) => {
                    if sorted.direction.is_some() {
                        let at = scope.place(line.kind.span);
                        let d = self.error(codes::STATED_TWICE, "`direction` is given twice", &at);
                        return self.fail(d);
                    }
                    sorted.direction = Some(Numbers {
                        list,
                        span: line.kind.span,
                    });
                }
                IncidentLine::Drive { target, value } => sorted.drives.push((target, value)),
                IncidentLine::Given { target, value } => sorted.given.push((target, value)),
            }
        }
        let place = scope.place(name.span);
        let wrong = |resolver: &Self, message: &str, hint: &str| {
            let message = format!("the incident field `{}` {message}", name.node);
            Err(resolver.error(codes::INCIDENT, message, &place).hint(hint))
        };
        const WAVE: &str = "a plane wave has `direction (1, 2)` and `drive p = sin(t)`";
        const BOTH: &str = "a plane wave has `direction` and `drive`; other fields have a value for each component";
        let refused = match (sorted.direction, sorted.drives.len(), sorted.given.len()) {
            (None, 0, 0) => wrong(self, "says nothing", BOTH),
            (Some(_), 0, 0) => wrong(self, "has a direction, and nothing drives it", WAVE),
            (None, _, 0) => wrong(self, "is driven, and has no direction", WAVE),
            (None, 0, _) => return self.given_field(scope, &sorted.given),
            (Some(direction), _, 0) => return self.plane_wave(scope, direction, &sorted.drives),
            _ => wrong(self, "is a plane wave with other values", BOTH),
        };
        refused.or_else(|d| self.fail(d))
    }

    /// Values of place and time.
    fn given_field(&mut self, scope: &Scope, given: &[(&Target, &Expr)]) -> Outcome<IncidentField> {
        let mut values = vec![None; self.frame.components.len()];
        for (target, value) in given {
            for (component, value, place) in self.incident_values(scope, target, value)? {
                if values[component.index()].replace(value).is_some() {
                    let name = &self.frame.components[component.index()].name;
                    let message = format!("`{name}` is given twice");
                    let d = self.error(codes::STATED_TWICE, message, &place);
                    return self.fail(d);
                }
            }
        }
        Ok(IncidentField::Given(values))
    }

    fn plane_wave(
        &mut self,
        scope: &Scope,
        direction: Numbers<'_>,
        drives: &[(&Target, &Expr)],
    ) -> Outcome<IncidentField> {
        let direction = self.direction(scope, direction)?;
        let mut found = Vec::new();
        let mut driven = vec![false; self.frame.components.len()];
        for (target, value) in drives {
            for (component, wave, place) in self.incident_values(scope, target, value)? {
                if std::mem::replace(&mut driven[component.index()], true) {
                    let name = &self.frame.components[component.index()].name;
                    let message = format!("`{name}` is driven twice");
                    let d = self.error(codes::STATED_TWICE, message, &place);
                    return self.fail(d);
                }
                if wave.depends_on_place() {
                    let d = self
                        .error(codes::INCIDENT, "a drive depends on time only", &place)
                        .hint("the wave that it makes goes to all places; write `p = ...` without `drive` for a field \
                            of place and time");
                    return self.fail(d);
                }
                if wave != HostExpr::Number(0.0) {
                    found.push(Drive { component, wave });
                }
            }
        }
        self.frame.asks_speed = true;
        let grid = self.frame.grid.as_ref().ok_or(Reported)?;
        let cell = incident::cell_along(grid, direction);
        let courant = self.speed.map_or(0.5, |speed| speed * grid.dt / cell);
        Ok(IncidentField::Plane(PlaneWave {
            direction,
            drives: found,
            loss: LOSS * courant,
        }))
    }

    /// Whole numbers, one for each axis, without a common factor.
    fn direction(&mut self, scope: &Scope, numbers: Numbers<'_>) -> Outcome<PerAxis<i64>> {
        let Numbers { list, span } = numbers;
        let axes = self.frame.present();
        let place = scope.place(span);
        if list.len() != axes.len() {
            let message = format!(
                "a direction has a number for each axis, here {}, not {}",
                axes.len(),
                list.len()
            );
            let d = self.error(codes::INCIDENT, message, &place);
            return self.fail(d);
        }
        let mut direction = PerAxis::splat(0);
        let mut divisor = 0;
        for ((_, axis), e) in axes.iter().zip(list) {
            const WHOLE: &str = "a direction is given in whole cells, such as (1, 2)";
            let n = self.counted(scope, e, Some(WHOLE))?;
            if n.abs() > LARGEST {
                let at = scope.place(e.span);
                let message = format!("the numbers of a direction are at most {LARGEST}");
                let d = self.error(codes::INCIDENT, message, &at);
                return self.fail(d);
            }
            direction[*axis] = n;
            divisor = common_divisor(divisor, n.abs());
        }
        if divisor == 0 {
            let d = self.error(codes::INCIDENT, "a direction that is 0 is none", &place);
            return self.fail(d);
        }
        Ok(direction.map(|n| n / divisor))
    }

    /// The values of a line for the components of its target.
    fn incident_values(
        &mut self,
        scope: &Scope,
        target: &Target,
        value: &Expr,
    ) -> Outcome<Vec<(ComponentId, HostExpr, Place)>> {
        let targeted = self.newest(scope, target)?;
        let sites = self.sites(&targeted.components);
        let operand = self.operand_at(scope, value, targeted.kind, &sites)?;
        let place = operand.place.clone();
        let (kind, components) = (targeted.kind, targeted.components);
        let items = self.values_for(kind, &components, operand, &targeted.place)?;
        let mut values = Vec::new();
        for (component, item) in components.into_iter().zip(items) {
            let value = self.host(item, component, &place, "an incident field")?;
            values.push((component, value, place.clone()));
        }
        Ok(values)
    }

    /// A box, and the number of its field.
    fn total(
        &mut self,
        scope: &Scope,
        ranges: &[Ends],
        from: &Name,
        incoming: &Incoming,
    ) -> Outcome<(usize, TotalBox)> {
        let field = incoming.list.iter().position(|i| i.name == from.node);
        let grid = self.frame.grid.clone().ok_or(Reported)?;
        let mut ends = grid.cells.map(|n| [0, n]);
        for (i, Ends { axis, from, to }) in ranges.iter().enumerate() {
            let id = self.axis_named(scope, axis)?;
            if ranges[..i].iter().any(|other| other.axis.node == axis.node) {
                let message = format!("`{}` is given twice", axis.node);
                let d = self.error(codes::STATED_TWICE, message, &scope.place(axis.span));
                return self.fail(d);
            }
            const CELLS: &str = "the ends of a box are counted in cells";
            let [lo, hi] = [
                self.counted(scope, from, Some(CELLS))?,
                self.counted(scope, to, Some(CELLS))?,
            ];
            let n = grid.cells[id];
            if !(0..hi).contains(&lo) || hi > n {
                let message = format!("`{} = {lo}..{hi}` is no part of the domain", axis.node);
                let at = scope.place(from.span.to(to.span));
                let d = self
                    .error(codes::OUTSIDE, message, &at)
                    .hint(format!("along {} it goes from 0 to {n}", axis.node));
                return self.fail(d);
            }
            ends[id] = [lo, hi];
        }
        match field {
            Some(field) => Ok((field, TotalBox { ends })),
            None => {
                let message = format!("there is no incident field `{}` here", from.node);
                let known = incoming.list.iter().map(|i| i.name.as_str());
                let mut d = self.error(codes::UNKNOWN_NAME, message, &scope.place(from.span));
                d.hint = super::suggest::did_you_mean(&from.node, known);
                self.fail(d)
            }
        }
    }

    /// Where boxes of one field have places in common the field would come in twice.
    fn boxes_meet(&mut self, name: &str, place: &Place, first: &Place) -> Outcome<()> {
        let message = format!("two boxes of the incident field `{name}` meet");
        let d = self
            .error(codes::INCIDENT, message, place)
            .at(&first.source, first.span, "the other one")
            .hint("where both are, the field would come in twice: leave a cell between them, or give one box");
        self.fail(d)
    }

    /// Checks the boxes of a problem's incident fields; `results` say where they are written.
    pub fn check_incoming(
        &mut self,
        scheme: &Scheme,
        problem: &Problem,
        results: &Results,
    ) -> Outcome<()> {
        let of_files = scheme.coefs.iter().any(Coef::is_of_file);
        let checked = incident::check_places(scheme, problem).and_then(|()| {
            let later = incident::places(scheme, problem) > LOOKED_AT;
            match later || of_files {
                true => incident::check_lengths(scheme, problem),
                false => incident::check(scheme, problem, &NoFiles),
            }
        });
        let Err(Refusal {
            incident,
            total,
            fault,
        }) = checked
        else {
            return match of_files {
                true => Ok(()),
                false => self.check_drives(scheme, problem, results),
            };
        };
        let places = &results.incoming;
        let place = places.boxes[incident]
            .get(total)
            .unwrap_or(&places.names[incident]);
        let d = self
            .error(codes::INCIDENT, fault.describe(scheme), place)
            .hint(fault.hint());
        self.fail(d)
    }
}

impl Resolver<'_> {
    /// Drives of plane waves have to make waves: of Maxwell's equations, E along the wave makes none.
    fn check_drives(
        &mut self,
        scheme: &Scheme,
        problem: &Problem,
        results: &Results,
    ) -> Outcome<()> {
        for drive in analysis::still_drives(scheme, problem, &NoFiles) {
            let place = &results.incoming.names[drive.incident];
            if drive.is_all() {
                let [message, remedy] = drive.describe(problem);
                let d = self.error(codes::INCIDENT, message, place).hint(remedy);
                return self.fail(d);
            }
            self.report.push(still_drive(&drive, problem, place));
        }
        Ok(())
    }
}

fn common_divisor(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
