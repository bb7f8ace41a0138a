//! From ordered statements to stages: bodies, regions, time levels.

use super::codes;
use super::confine::confine;
use super::emit::{Coefs, Emitter, Refused};
use super::enclose::enclose;
use super::flush::add_flushes;
use super::order::{Advance, Statement};
use super::report::{Outcome, Reported, count};
use super::resolver::Resolver;
use super::zoned::Amending;
use super::zones::Kept;
use crate::lattice::PerAxis;
use crate::scheme::{
    Body, Cmp, Coef, CoefId, ComponentId, Grid, Op, Precision, Read, Scheme, Stage, State, Update,
    Value, Zone, ZoneId, ZoneSet, verify,
};
use torre_grammar::diag::Diagnostic;

/// The most sets of zones that have cells in common: each has kernels of its own.
const MOST_MEETINGS: usize = 128;

/// A scheme as its updates are made: the parts that they have in common.
struct Building<'p> {
    coefs: Coefs,
    states: Vec<State>,
    /// Where the states were read.
    kept: Vec<Kept>,
    precision: Precision,
    /// Per component, its updates in a step.
    per_step: &'p [u8],
    grid: &'p Grid,
}

impl Resolver<'_> {
    /// The scheme that the statements make up on the grid of the frame.
    pub fn assemble(&mut self, statements: &[Statement], precision: Precision) -> Outcome<Scheme> {
        let grid = self.frame.grid.clone().ok_or(Reported)?;
        let per_step = self.count_updates(statements)?;
        let mut building = Building {
            coefs: Coefs::default(),
            states: Vec::new(),
            kept: Vec::new(),
            precision,
            per_step: &per_step,
            grid: &grid,
        };
        let mut stages = Vec::new();
        let mut failed = false;
        for statement in statements {
            let mut updates = Vec::new();
            for advance in &statement.updates {
                match self.update(statement, advance, &mut building) {
                    Ok(update) => updates.push(update),
                    Err(Reported) => failed = true,
                }
            }
            self.warn_of_vanished(building.coefs.vanished.take(), statement, precision);
            stages.push(Stage { updates });
        }
        let Building {
            mut coefs,
            states,
            mut kept,
            ..
        } = building;
        self.frame.statements = statements.iter().map(|s| s.value.clone()).collect();
        if failed {
            return Err(Reported);
        }
        self.set_time_levels(&stages);
        self.restrict(statements, &mut stages, &grid, precision, &mut coefs)?;
        self.warn_of_skewed_times(statements, &stages, &coefs.list, &per_step);
        let mut scheme = Scheme {
            name: self.frame.name.clone(),
            precision,
            grid,
            components: self.frame.components.clone(),
            coefs: coefs.list,
            files: Vec::new(),
            stages,
            zones: self.zones(),
            states,
        };
        share_coefs(&mut scheme);
        drop_idle_zones(&mut scheme);
        self.check_meetings(&scheme)?;
        add_flushes(&mut scheme);
        find_axis_coefs(&mut scheme);
        let places = self.frame.statements.clone();
        let scheme = self.pair(scheme, &mut kept, &places)?;
        if let Err(reason) = verify(&scheme) {
            let d = Diagnostic::error(
                codes::INTERNAL,
                format!("the resolved scheme breaks a rule of its own: {reason}"),
            )
            .hint("this is a defect of Torre, not of your program: please report it");
            return self.fail(d);
        }
        self.zoned.kept = Some(kept);
        Ok(scheme)
    }

    /// The update of a component by a statement, in all the region that the boundary leaves free, with its amendments
    /// in zones. `building` gets the coefficients and states that it needs.
    fn update(
        &mut self,
        statement: &Statement,
        &Advance { target, value, .. }: &Advance,
        building: &mut Building<'_>,
    ) -> Outcome<Update> {
        let terms = self.terms(value.node, &statement.value)?;
        let plain = self.outside(value.node);
        let Building {
            precision,
            per_step,
            grid,
            ..
        } = *building;
        let emitter = Emitter::new(
            &mut self.graph,
            &self.frame.components,
            &mut building.coefs,
            precision,
            target,
            per_step,
            grid.cells,
        );
        let position = self.frame.components[target.index()].position;
        let body = emitter.body(plain);
        let mut amending = Amending {
            coefs: &mut building.coefs,
            states: &mut building.states,
            kept: &mut building.kept,
            target,
            precision,
            per_step,
            cells: grid.cells,
        };
        match body.and_then(|body| Ok((body, self.amend(&terms, &mut amending)?))) {
            Ok((body, amendments)) => Ok(Update {
                target,
                region: grid.live(position),
                mask: None,
                body,
                amendments,
            }),
            Err(refused) => {
                let name = self.frame.components[target.index()].name.clone();
                self.refuse(refused, statement, &name, precision)
            }
        }
    }

    /// Refuses a scheme whose zones have cells in common in too many ways.
    fn check_meetings(&mut self, scheme: &Scheme) -> Outcome<()> {
        let meetings = scheme.zone_map().occurring().len();
        if meetings <= MOST_MEETINGS {
            return Ok(());
        }
        let message = format!(
            "layers and regions with states meet in {meetings} ways, and code is made for up to {MOST_MEETINGS}"
        );
        let d = Diagnostic::error(codes::STATE, message)
            .hint("use fewer regions, or regions that do not overlap");
        self.fail(d)
    }

    /// Warns of a weight that the precision of a scheme does not have.
    fn warn_of_vanished(
        &mut self,
        vanished: Option<f64>,
        statement: &Statement,
        precision: Precision,
    ) {
        let (Some(n), Some(advance)) = (vanished, statement.updates.first()) else {
            return;
        };
        let name = &self.frame.components[advance.target.index()].name;
        let rounded = precision.round(n);
        let (is, effect) = match rounded == 0.0 {
            true => (
                "0".to_owned(),
                "the values that it multiplies have no effect",
            ),
            false => (
                format!("{rounded:.3e}"),
                "numbers as small as this have few digits",
            ),
        };
        let message = format!("a number of the update of `{name}`, {n:e}, is {is} in {precision}");
        let place = &statement.value;
        self.report.push(
            Diagnostic::warning(codes::VANISHED, message)
                .at(&place.source, place.span, effect)
                .hint("choose other units or `--precision f64`"),
        );
    }

    /// The zones of the frame, as the scheme has them.
    fn zones(&self) -> Vec<Zone> {
        let zones = self.frame.zones.iter();
        zones
            .map(|z| Zone {
                name: z.name.clone(),
                boxes: z.boxes.iter().filter(|b| !b.is_empty()).copied().collect(),
            })
            .collect()
    }

    fn count_updates(&mut self, statements: &[Statement]) -> Outcome<Vec<u8>> {
        let mut counts = vec![0usize; self.frame.components.len()];
        for statement in statements {
            for advance in &statement.updates {
                counts[advance.target.index()] += 1;
            }
        }
        // Ages are small numbers; a scheme does not have that many updates of one value in a step.
        if let Some(i) = counts.iter().position(|&n| n > 60) {
            let name = self.frame.components[i].name.clone();
            let last = statements
                .iter()
                .rfind(|s| s.updates.iter().any(|u| u.target.index() == i));
            let place = last.map(|s| s.place.clone()).ok_or(Reported)?;
            let d = self.error(
                codes::TOO_COMPLEX,
                format!("a step updates `{name}` more than 60 times"),
                &place,
            );
            return self.fail(d);
        }
        Ok(counts.into_iter().map(|n| n as u8).collect())
    }

    /// The fewest versions of each component such that every value that is read exists and nothing is overwritten
    /// before all that read it in the same stage have (rules 4 and 5 of [`crate::scheme`]).
    fn set_time_levels(&mut self, stages: &[Stage]) {
        let mut time_levels = vec![1u8; self.frame.components.len()];
        for stage in stages {
            for update in &stage.updates {
                for read in update.reads() {
                    let own = read.component == update.target && is_here(read);
                    let overwritten = stage.updates.iter().any(|u| u.target == read.component);
                    let needed = read.age + 1 + u8::from(overwritten && !own);
                    let time_levels = &mut time_levels[read.component.index()];
                    *time_levels = needed.max(*time_levels);
                }
            }
        }
        for (component, n) in self.frame.components.iter_mut().zip(time_levels) {
            component.time_levels = n;
        }
    }

    /// Applies the conditions of the statements: as regions and masks where a value can stay where it is, else by
    /// choosing between the new and the old value (rule 6 of [`crate::scheme`]).
    fn restrict(
        &mut self,
        statements: &[Statement],
        stages: &mut [Stage],
        grid: &Grid,
        precision: Precision,
        coefs: &mut Coefs,
    ) -> Outcome<()> {
        for (stage, statement) in stages.iter_mut().zip(statements) {
            self.warn_of_nowhere(statement, stage);
            for (update, advance) in stage.updates.iter_mut().zip(&statement.updates) {
                let Some(condition) = advance.condition.map(|c| c.node) else {
                    continue;
                };
                let component = self.frame.components[update.target.index()].clone();
                let constant = self.graph.as_number(condition);
                if constant.is_some_and(|n| n != 0.0) {
                    continue;
                }
                if component.time_levels > 1 && !update.amendments.is_empty() {
                    return self.refuse_choice_in_zone(&component.name, statement);
                }
                let mut mask = None;
                if component.time_levels == 1 {
                    let confined = confine(
                        &mut self.graph,
                        Some(condition),
                        component.position,
                        update.region,
                    );
                    update.region = confined.region;
                    mask = confined.rest;
                    if let Some(mask) = mask {
                        let (region, position) = (update.region, component.position);
                        let smaller = enclose(&mut self.graph, grid, mask, position, region);
                        // A region has kernels of its own at its ends, which has to pay.
                        if smaller.volume() < region.volume() / 2 {
                            update.region = smaller;
                        }
                    }
                } else if constant.is_some() {
                    update.body = Body {
                        ops: vec![Op::Read(own(update.target))],
                        result: Value(0),
                    };
                } else {
                    mask = Some(self.graph.truth(condition));
                }
                let Some(mask) = mask else { continue };
                match coefs.id(&mut self.graph, mask, component.position) {
                    Ok(id) if component.time_levels == 1 => update.mask = Some(id),
                    Ok(id) => keep_old(&mut update.body, update.target, id, precision),
                    Err(refused) => {
                        return self.refuse(refused, statement, &component.name, precision);
                    }
                }
            }
        }
        Ok(())
    }

    /// An update that reads values of its target elsewhere chooses between new and old values where it has a condition,
    /// and one in a zone has another body there.
    fn refuse_choice_in_zone<T>(&mut self, name: &str, statement: &Statement) -> Outcome<T> {
        let message = format!(
            "earlier values of `{name}` are read beside its new ones, so its update cannot have both a `where` and a \
             layer or a state in a region"
        );
        let d = self
            .error(codes::STATE, message, &statement.place)
            .hint("put the condition into the value, as in `u += if x > 10 then ... else 0`");
        self.fail(d)
    }

    /// Warns of a statement whose condition on single coordinates holds at none of its values, unless it says so by a
    /// constant, as a region does that problems are to replace.
    fn warn_of_nowhere(&mut self, statement: &Statement, stage: &Stage) {
        for (update, advance) in stage.updates.iter().zip(&statement.updates) {
            let Some(condition) = advance.condition.map(|c| c.node) else {
                return;
            };
            let position = self.frame.components[update.target.index()].position;
            let is_constant = self.graph.as_number(condition).is_some();
            let confined = confine(&mut self.graph, Some(condition), position, update.region);
            if is_constant || !confined.region.is_empty() {
                return;
            }
        }
        if let Some(advance) = statement.updates.first() {
            let name = self.frame.components[advance.target.index()].name.clone();
            self.warn_of_no_place(&name, "this statement acts", &statement.place);
        }
    }

    fn refuse<T>(
        &mut self,
        refused: Refused,
        statement: &Statement,
        name: &str,
        precision: Precision,
    ) -> Outcome<T> {
        let place = &statement.value;
        let d = match refused {
            Refused::TooLarge => self
                .error(
                    codes::TOO_MANY_TERMS,
                    format!("the update of `{name}` has too many terms"),
                    place,
                )
                .hint("use lower orders, or store an intermediate value in a field of its own"),
            Refused::NotFinite(n) => {
                let mut d = self.error(
                    codes::NOT_FINITE,
                    format!("a coefficient of the update of `{name}` is {n:e}"),
                    place,
                );
                if n.is_finite() {
                    d = d.hint(format!(
                        "the largest {precision} number is {:e}: choose other units or `--precision f64`",
                        f32::MAX
                    ));
                } else {
                    d = d.hint("look for a division by zero");
                }
                d
            }
            Refused::TooFar(cells) => return self.too_far(cells, statement),
        };
        self.fail(d)
    }

    fn too_far<T>(&mut self, cells: PerAxis<i64>, statement: &Statement) -> Outcome<T> {
        let widths = self.frame.grid.as_ref().map(|g| g.cells).ok_or(Reported)?;
        let axis = self
            .frame
            .axes
            .iter()
            .find(|(_, a)| cells[*a].abs() > widths[*a])
            .cloned();
        let (name, axis) = axis.ok_or(Reported)?;
        let d = self
            .error(
                codes::STENCIL,
                format!(
                    "this reads {} away along {name}, but the domain is only {} wide",
                    count(cells[axis].unsigned_abs() as usize, "cell", "cells"),
                    widths[axis]
                ),
                &statement.value,
            )
            .hint("use a larger domain or a lower order");
        self.fail(d)
    }
}

fn is_here(read: &Read) -> bool {
    read.offset.0 == [0; 3]
}

/// The read of a target's own newest value.
fn own(target: ComponentId) -> Read {
    Read {
        component: target,
        offset: PerAxis::splat(0),
        age: 0,
    }
}

/// Before: a body. After: its result where the coefficient is not 0, else the old value.
fn keep_old(body: &mut Body, target: ComponentId, mask: CoefId, precision: Precision) {
    let then = body.result;
    let mut push = |op: Op| {
        let known = body.ops.iter().position(|o| *o == op);
        let index = known.unwrap_or_else(|| {
            body.ops.push(op);
            body.ops.len() - 1
        });
        Value(index as u32)
    };
    let a = push(Op::Coef(mask));
    let b = push(Op::Const(precision.round(0.0)));
    let otherwise = push(Op::Read(own(target)));
    body.result = push(Op::Select {
        cmp: Cmp::Ne,
        a,
        b,
        then,
        otherwise,
    });
}

/// Leaves out the zones in which no update is amended.
fn drop_idle_zones(scheme: &mut Scheme) {
    let updates = || scheme.stages.iter().flat_map(|s| &s.updates);
    let used = updates().fold(ZoneSet::default(), |set, u| set.union(u.zones()));
    let mut kept = Vec::new();
    let mut map = Vec::new();
    for (i, zone) in scheme.zones.drain(..).enumerate() {
        map.push(ZoneId(kept.len() as u32));
        if used.contains(ZoneId(i as u32)) {
            kept.push(zone);
        }
    }
    scheme.zones = kept;
    let renumber = |id: &mut ZoneId| *id = map[id.index()];
    for state in &mut scheme.states {
        renumber(&mut state.zone);
    }
    let updates = scheme.stages.iter_mut().flat_map(|s| &mut s.updates);
    for amendment in updates.flat_map(|u| &mut u.amendments) {
        renumber(&mut amendment.zone);
    }
}

/// Finds the coefficients that only amendments read and that depend on one axis.
fn find_axis_coefs(scheme: &mut Scheme) {
    let mut elsewhere = vec![false; scheme.coefs.len()];
    for update in scheme.stages.iter().flat_map(|s| &s.updates) {
        for id in update.body.coefs().chain(update.mask) {
            elsewhere[id.index()] = true;
        }
    }
    for (coef, elsewhere) in scheme.coefs.iter_mut().zip(elsewhere) {
        coef.only_axis = match elsewhere {
            true => None,
            false => coef.value.only_axis(),
        };
    }
}

/// Makes coefficients with equal values at one position one.
fn share_coefs(scheme: &mut Scheme) {
    let mut kept: Vec<Coef> = Vec::new();
    let map: Vec<CoefId> = scheme
        .coefs
        .iter()
        .map(|coef| {
            let known = kept
                .iter()
                .position(|k| k.position == coef.position && k.value == coef.value);
            let index = known.unwrap_or_else(|| {
                kept.push(coef.clone());
                kept.len() - 1
            });
            CoefId(index as u32)
        })
        .collect();
    let renumber = |id: CoefId| map.get(id.index()).copied().unwrap_or(id);
    for stage in &mut scheme.stages {
        for update in &mut stage.updates {
            update.mask = update.mask.map(renumber);
            let amended = update.amendments.iter_mut().map(|a| &mut a.body);
            for body in std::iter::once(&mut update.body).chain(amended) {
                for op in &mut body.ops {
                    if let Op::Coef(id) = op {
                        *id = renumber(*id);
                    }
                }
            }
        }
    }
    scheme.coefs = kept;
}
