//! The times of values within a step, and updates that are not centred in time.
//!
//! A warning is given where it is certain alone: of values whose time cannot be told, such as stages of a Runge-Kutta
//! method or the memory of an absorbing layer, nothing is said.

use super::codes;
use super::graph::{Graph, LevelKey, Node};
use super::order::Statement;
use super::resolver::Resolver;
use super::second_order::{Frozen, carries_centred, has_stage};
use super::stages::are_of_first_order;
use super::taylor::Rates;
use super::worth::value_of;
use crate::lattice::Position;
use crate::scheme::{Body, Coef, CoefId, ComponentId, Read, Stage, Update};
use std::collections::BTreeSet;
use torre_grammar::diag::Diagnostic;

/// Rounds in which times are passed on from statement to statement.
const ROUNDS: usize = 8;

/// The time of a component by the statements of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// It is that of its declaration.
    Declared,
    /// It is that of the values that it is made of, in half steps from the start of the step, once its statement has
    /// run.
    At(i64),
    /// Nothing.
    Nothing,
}

/// A read that lies off the middle of the time that an update spans.
struct Skewed {
    target: ComponentId,
    /// The time that the update spans, in half steps.
    from: i64,
    new: i64,
    read: ComponentId,
    /// When the value that is read lies.
    at: i64,
    /// Whether all that is read is of the start of that time.
    is_of_start: bool,
}

/// The times of values while the statements run.
struct Times<'a> {
    /// Of the declarations, in half steps.
    offsets: &'a [i64],
    /// The field of each component.
    fields: &'a [usize],
    told: Vec<Told>,
    per_step: &'a [u8],
    done: Vec<u8>,
}

impl Times<'_> {
    /// The time of the newest value, if it can be told.
    fn newest(&self, c: ComponentId) -> Option<i64> {
        let i = c.index();
        let after = match self.told[i] {
            Told::Declared => 2 - self.offsets[i],
            Told::At(time) => time,
            Told::Nothing => return None,
        };
        match (self.done[i], self.per_step[i]) {
            (_, 0) => None,
            (0, _) => Some(after - 2),
            (d, n) if d == n => Some(after),
            _ => None,
        }
    }

    fn of(&self, read: &Read) -> Option<i64> {
        Some(self.newest(read.component)? - 2 * i64::from(read.age.min(1)))
    }

    /// The time of the target of a statement by the statement itself.
    fn told_by(&self, update: &Update, statement: &Statement) -> Told {
        if self.per_step[update.target.index()] != 1 || advances(update, statement) {
            return Told::Declared;
        }
        let others = || {
            let reads = update.body.reads();
            reads.filter(|r| r.component != update.target && self.per_step[r.component.index()] > 0)
        };
        let times: Option<BTreeSet<i64>> = others().map(|r| self.of(r)).collect();
        let Some(times) = times else {
            return Told::Nothing;
        };
        let new = 2 - self.offsets[update.target.index()];
        let is_recursive = update.body.reads().any(|r| r.component == update.target);
        let fields: BTreeSet<usize> = others().map(|r| self.fields[r.component.index()]).collect();
        match times.iter().copied().collect::<Vec<i64>>().as_slice() {
            [] => Told::Declared,
            [time] if *time == new => Told::Declared,
            // A flux, such as a difference of one field, lies at the time of that field. An expression of several
            // fields may be a later stage of a Runge-Kutta method.
            [time] if !is_recursive && fields.len() == 1 && is_difference(&update.body) => {
                Told::At(*time)
            }
            _ => Told::Nothing,
        }
    }

    /// The read that makes an update one of first order, if one does.
    fn skewed(&self, update: &Update, statement: &Statement) -> Option<Skewed> {
        let target = update.target;
        if self.per_step[target.index()] != 1 || !advances(update, statement) {
            return None;
        }
        let old = self.newest(target)?;
        let new = old + 2;
        let from = if spans_two_steps(update) {
            old - 2
        } else {
            old
        };
        let mut reads: Vec<(ComponentId, i64)> = Vec::new();
        for read in update.body.reads() {
            let is_own = read.component == target;
            let is_static = self.per_step[read.component.index()] == 0;
            if is_static || (is_own && is_here(read)) {
                continue;
            }
            reads.push((read.component, self.of(read)?));
        }
        let hull = |of: &mut dyn Iterator<Item = i64>| {
            of.fold(None, |hull: Option<(i64, i64)>, t| {
                Some(hull.map_or((t, t), |(lo, hi)| (lo.min(t), hi.max(t))))
            })
        };
        let (lo, hi) = hull(&mut reads.iter().map(|(_, t)| *t))?;
        if lo + hi == from + new {
            return None;
        }
        // The component whose own values lie off the middle; that farthest off, and the first of equals. Weights of
        // values of several times may make them centred: of such components nothing is said.
        let mut components: Vec<(ComponentId, i64)> = Vec::new();
        for (c, time) in &reads {
            let alone = reads.iter().all(|(r, t)| r != c || t == time);
            if alone && !components.contains(&(*c, *time)) {
                components.push((*c, *time));
            }
        }
        let off = |time: i64| (2 * time - from - new).abs();
        let most = components.iter().map(|(_, t)| off(*t)).max()?;
        let (read, at) = *components.iter().find(|(_, t)| off(*t) == most)?;
        (most > 0).then_some(Skewed {
            target,
            from,
            new,
            read,
            at,
            is_of_start: lo == hi && lo == old,
        })
    }

    /// Runs the statements once, with a look at each update before.
    fn walk(
        &mut self,
        statements: &[Statement],
        stages: &[Stage],
        mut look: impl FnMut(&mut Self, usize, &Update, &Statement),
    ) {
        self.done.fill(0);
        for (n, (stage, statement)) in stages.iter().zip(statements).enumerate() {
            for update in &stage.updates {
                look(self, n, update, statement);
            }
            for update in &stage.updates {
                self.done[update.target.index()] += 1;
            }
        }
    }
}

impl Resolver<'_> {
    /// Warns where updates take values from other times than the middle of the time that they span: once, with all
    /// places.
    pub fn warn_of_skewed_times(
        &mut self,
        statements: &[Statement],
        stages: &[Stage],
        coefs: &[Coef],
        per_step: &[u8],
    ) {
        let confused = self.warn_of_next_beside_newest(statements);
        self.warn_of_halfway_values(statements, per_step);
        let components = &self.frame.components;
        let offsets: Vec<i64> = components.iter().map(|c| c.time.0).collect();
        let ids = (0..components.len()).map(|i| ComponentId(i as u32));
        let fields: Vec<usize> = ids.map(|c| self.frame.field_of(c).unwrap_or(0)).collect();
        let mut times = Times {
            offsets: &offsets,
            fields: &fields,
            told: vec![Told::Declared; components.len()],
            per_step,
            done: vec![0; components.len()],
        };
        for _ in 0..ROUNDS {
            let before = times.told.clone();
            times.walk(statements, stages, |times, _, update, statement| {
                times.told[update.target.index()] = times.told_by(update, statement);
            });
            if times.told == before {
                break;
            }
        }
        let frozen = self.frozen_places();
        let positions: Vec<Position> = components.iter().map(|c| c.position).collect();
        let rates = Rates {
            stages,
            coefs,
            positions: &positions,
            advances: &|stage, update| advances(update, &statements[stage]),
        };
        let by_taylor = |skewed: &Skewed| {
            let places = frozen.iter();
            let terms = places.filter_map(|at| rates.has_second_term(skewed.target, at));
            let terms: Vec<bool> = terms.collect();
            skewed.is_of_start && !terms.is_empty() && !terms.contains(&false)
        };
        let mut found: Vec<(usize, Skewed)> = Vec::new();
        times.walk(statements, stages, |times, n, update, statement| {
            let said = found.last().is_some_and(|(last, _)| *last == n);
            if said || confused.contains(&n) || is_sum(update, stages) {
                return;
            }
            if let Some(skewed) = times.skewed(update, statement)
                && !carries_centred(update, coefs, &frozen)
                && !by_taylor(&skewed)
                && !has_stages(&mut self.graph, statement, update.target, &frozen)
            {
                found.push((n, skewed));
            }
        });
        found.retain(|(n, _)| {
            let at = &statements[*n].value;
            !self.report.is_allowed(codes::NOT_CENTRED, at)
        });
        let Some((_, first)) = found.first() else {
            return;
        };
        let name = |c: ComponentId| components[c.index()].name.as_str();
        let takes = |s: &Skewed| {
            format!(
                "takes `{}` from {} to {}, but reads `{}` at {}",
                name(s.target),
                show(s.from),
                show(s.new),
                name(s.read),
                show(s.at),
            )
        };
        let message = format!("this update is not centred in time: it {}", takes(first));
        let mut d = Diagnostic::warning(codes::NOT_CENTRED, message);
        for (i, (n, skewed)) in found.iter().enumerate() {
            let text = match i {
                0 => "first order in time".to_string(),
                _ => takes(skewed),
            };
            let at = &statements[*n].value;
            d = d.at(&at.source, at.span, text);
        }
        let cure = self.later(first).map(|c| {
            format!(
                "if the values of `{}` lie half a step later, declare its field `at 1/2`; ",
                self.frame.components[c.index()].name
            )
        });
        d.hint = Some(format!(
            "{}`allow {}` in the step silences this",
            cure.unwrap_or_default(),
            codes::NOT_CENTRED.0
        ));
        self.report.push(d);
    }

    /// The component that, half a step later, would make an update centred.
    fn later(&self, skewed: &Skewed) -> Option<ComponentId> {
        let off = 2 * skewed.at - skewed.from - skewed.new;
        let movable = |c: ComponentId| self.frame.components[c.index()].time.0 == 0;
        // A value that is declared half a step later lies half a step earlier relative to the end of the step.
        match off {
            _ if skewed.read == skewed.target => None,
            -2 if movable(skewed.target) => Some(skewed.target),
            2 if movable(skewed.read) => Some(skewed.read),
            _ => None,
        }
    }

    /// The components of which a statement reads a level; `None` is the newest value.
    fn read_by(
        &mut self,
        statement: &Statement,
        wanted: Option<LevelKey>,
    ) -> BTreeSet<ComponentId> {
        let mut found = BTreeSet::new();
        for advance in &statement.updates {
            self.graph.visit(advance.value.node, &mut |node| {
                if let Node::Field { component, level } = node
                    && level == wanted
                {
                    found.insert(component);
                }
            });
        }
        found
    }

    /// Warns where `u@prev` is read between two updates of `u`: it is then the value that the one before gave in the
    /// last step, not the value at the end of that step.
    fn warn_of_halfway_values(&mut self, statements: &[Statement], per_step: &[u8]) {
        let mut done = vec![0_u8; per_step.len()];
        for statement in statements {
            let read = self.read_by(statement, Some(LevelKey::Prev));
            let halfway = read.into_iter().find(|c| {
                let done = done[c.index()];
                done > 0 && done < per_step[c.index()]
            });
            if let Some(c) = halfway {
                let name = &self.frame.components[c.index()].name;
                let (done, all) = (done[c.index()], per_step[c.index()]);
                let message = format!(
                    "`{name}@prev` is not the value at the end of the last step here, but the one after update {done} \
                     of {all} of `{name}` in it"
                );
                let hint = format!(
                    "a field keeps the value of that end: `old = {name}` before the first update, and `old` here"
                );
                let at = &statement.value;
                let d = Diagnostic::warning(codes::HALFWAY, message)
                    .at(&at.source, at.span, "read here")
                    .hint(hint);
                self.report.push(d);
            }
            for advance in &statement.updates {
                done[advance.target.index()] += 1;
            }
        }
    }

    /// Warns where a statement reads `P@next` and plain `P`, which is then the same value. The statements that do.
    fn warn_of_next_beside_newest(&mut self, statements: &[Statement]) -> BTreeSet<usize> {
        let mut confused = BTreeSet::new();
        for (n, statement) in statements.iter().enumerate() {
            if statement.next.is_empty() {
                continue;
            }
            let newest = self.read_by(statement, None);
            let both = statement.next.iter().find(|&&c| {
                let own = statement.advances(c);
                !own && newest.contains(&c)
            });
            let Some(&c) = both else { continue };
            confused.insert(n);
            let Some(field) = self.frame.field_of(c).map(|f| &self.frame.fields[f]) else {
                continue;
            };
            let at = &statement.value;
            let name = &self.frame.components[c.index()].name;
            let message = format!(
                "`{name}` is the next value here, as `{name}@next` is: the statement that computes it runs first"
            );
            let hint = match field.levels {
                1 => format!(
                    "the old value is `{name}@prev`: declare `field {} : ... levels 2`",
                    field.name
                ),
                _ => format!("the old value is `{name}@prev`"),
            };
            let d = Diagnostic::warning(codes::NEXT_TWICE, message)
                .at(&at.source, at.span, "reads both")
                .hint(hint);
            self.report.push(d);
        }
        confused
    }
}

/// Whether the value that a statement gives a component may be one of a Runge-Kutta method of second order or more.
fn has_stages(
    graph: &mut Graph,
    statement: &Statement,
    target: ComponentId,
    places: &[Frozen],
) -> bool {
    let mut places = places.iter();
    has_stage(graph, statement, target)
        && !places.any(|at| are_of_first_order(graph, statement, target, at))
}

/// Whether an update adds to its old value the change over the time that it spans: `u += ...`, or `u = u + ...`, where
/// differences of `u` may stand in place of `u`.
fn advances(update: &Update, statement: &Statement) -> bool {
    if !statement.sets {
        return true;
    }
    let target = update.target;
    let is_recursive = update.body.reads().any(|r| r.component == target);
    let keeps = |s: f64| {
        let value = on_constants(
            &update.body,
            |r| if r.component == target { s } else { 0.0 },
        );
        (value - s).abs() < 1e-5 * s
    };
    is_recursive && keeps(0.7) && keeps(1.9)
}

/// Whether an update takes its target from the step before the last one on: a uniform older value enters into it. Of a
/// method of several steps, which weights rates of change, only differences of older values do.
fn spans_two_steps(update: &Update) -> bool {
    let is_older = |r: &Read| r.component == update.target && r.age > 0;
    let value = |s: f64| on_constants(&update.body, |r| if is_older(r) { s } else { 0.0 });
    (value(1.9) - value(0.7)).abs() > 1e-5
}

/// Whether constant fields give zero.
fn is_difference(body: &Body) -> bool {
    let vanishes = |s: f64| on_constants(body, |_| s).abs() < 1e-5 * s;
    vanishes(0.7) && vanishes(1.9)
}

/// Whether nothing but the update itself reads its target, and at its own place alone: a sum over time, such as a mean.
fn is_sum(update: &Update, stages: &[Stage]) -> bool {
    let all = stages.iter().flat_map(|s| &s.updates);
    let mut reads = all.flat_map(|u| u.body.reads().map(move |r| (u.target, r)));
    reads
        .all(|(by, read)| read.component != update.target || (by == update.target && is_here(read)))
}

/// The value of a body where each read has a value, such as one that is constant over the grid. Coefficients have
/// values of no meaning, each its own.
fn on_constants(body: &Body, field: impl Fn(&Read) -> f64) -> f64 {
    let own = |id: CoefId| 0.4 + 0.3 * (1.0 + id.index() as f64).sin();
    value_of(body, field, own)
}

/// A time in half steps: `n - 1/2`.
fn show(half: i64) -> String {
    let sign = if half < 0 { '-' } else { '+' };
    match half.abs() {
        0 => "n".to_string(),
        h if h % 2 == 0 => format!("n {sign} {}", h / 2),
        h => format!("n {sign} {h}/2"),
    }
}

fn is_here(read: &Read) -> bool {
    read.offset.0 == [0; 3]
}
