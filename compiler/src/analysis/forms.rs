//! Forms of a step: which updates act in a cell, and which branches of their choices are taken there.
//!
//! The forms that occur are found by halving boxes of cells in which a condition holds in some cells only: thick and
//! large boxes first. A box all of whose possible forms are known is not halved, so the seam between two regions takes
//! no time.

use super::boxes::{Boxes, Candidate};
use super::cells::{Place, middle, setting};
use super::linear::choices;
use super::number::Number;
use super::step::{Setting, Spans};
use crate::host::HostExpr;
use crate::lattice::{Axis, Interval, Region};
use crate::scheme::{Body, Cmp, Coef, CoefId, Op, Scheme, Update, Value};
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Boxes that are halved in a zone.
const BOXES: usize = 2000;
/// Work on a coefficient's range.
const RANGE: u64 = 8;
/// Cells whose values of a file are looked at for its range, at most.
const READ: u64 = 4096;
/// Forms that are looked at.
const FORMS: usize = 32;
/// Forms that a box may have to be told from others.
const POSSIBLE: usize = 64;
/// Least sides of boxes that are told from each other.
const SIDES: i64 = 8;

/// Whether each update acts and, if so, which way the choices go that it comes to.
pub type Form = Vec<bool>;

/// A condition that has one truth in most cells: at different positions in a cell, it differs at seams only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Condition {
    /// The place is in an update's region.
    Region(usize),
    /// A coefficient, by the first one with its expression, against the bits of a number; `true`: the coefficient is
    /// the first operand.
    Coef(usize, Cmp, u64, bool),
    /// An operation of an update.
    Choice(usize, usize),
}

/// The forms that were found in some boxes.
pub struct Found {
    pub places: Vec<Place>,
    /// Whether all forms that occur were found.
    pub is_complete: bool,
}

/// The search of forms.
pub struct Forms<'a> {
    boxes: &'a Boxes<'a>,
    /// By coefficient whether conditions depend on it.
    conditions: Vec<bool>,
    /// By coefficient the first one with the same expression.
    first: Vec<usize>,
    /// How many coefficients conditions depend on, and how many of these depend on files.
    ranges: u64,
    of_files: u64,
    /// Work so far, and at most: decisions about an update, ranges of coefficients and values of files.
    work: Cell<u64>,
    most: u64,
}

impl<'a> Forms<'a> {
    pub fn new(boxes: &'a Boxes<'a>, most: u64) -> Self {
        let coefs = &boxes.scheme.coefs;
        let same = |c: &Coef| coefs.iter().position(|o| o.value == c.value);
        let conditions = conditions(boxes.scheme);
        let is_file = |e: &HostExpr| matches!(e, HostExpr::File { .. });
        let used = || coefs.iter().zip(&conditions).filter(|(_, used)| **used);
        Self {
            boxes,
            first: coefs.iter().map(|c| same(c).unwrap_or(0)).collect(),
            ranges: used().count() as u64,
            of_files: used()
                .filter(|(c, _)| c.value.any(&mut |e| is_file(e)))
                .count() as u64,
            work: Cell::new(0),
            most,
            conditions,
        }
    }

    /// The work of all searches so far.
    pub fn work(&self) -> u64 {
        self.work.get()
    }

    /// An equal share of the work that is left, for some searches.
    pub fn share(&self, searches: usize) -> u64 {
        self.most.saturating_sub(self.work()) / searches.max(1) as u64
    }

    fn spend(&self, work: u64) {
        self.work.set(self.work.get().saturating_add(work));
    }

    pub fn is_condition(&self, coef: usize) -> bool {
        self.conditions[coef]
    }

    /// The form of a setting.
    pub fn form(&self, setting: &Setting) -> Form {
        let form = self.walk(&self.facts_of(setting), |_, truth| truth);
        form.unwrap_or_default()
    }

    /// Whether a condition holds at one position of a cell, and not at another one: the cell is at a seam.
    fn is_mixed(&self, setting: &Setting) -> bool {
        let mut truths = BTreeSet::new();
        let _ = self.walk(&self.facts_of(setting), |condition, truth| {
            truths.insert((condition, truth));
            truth
        });
        let both = |(condition, truth): &(Condition, Option<bool>)| {
            *truth == Some(true) && truths.contains(&(*condition, Some(false)))
        };
        truths.iter().any(both)
    }

    /// All forms that cells of a box may have; `None` where these are many, or no work is left for them.
    pub fn possible(&self, zone: Region) -> Option<Vec<Form>> {
        if zone.volume() == 1 {
            let at = zone.map(|i| i.lo);
            let setting = setting(self.boxes.scheme, self.boxes.files, at);
            return Some(vec![self.form(&setting)]);
        }
        if self.work() >= self.most {
            return None;
        }
        self.spend(self.ranges * RANGE + self.of_files * zone.volume().min(READ));
        let facts = self.facts_over(zone);
        if facts.has_many_forms() {
            return None;
        }
        let mut open: Vec<BTreeMap<Condition, bool>> = vec![BTreeMap::new()];
        let mut forms = Vec::new();
        while let Some(assumed) = open.pop() {
            let known =
                |condition, truth: Option<bool>| truth.or_else(|| assumed.get(&condition).copied());
            match self.walk(&facts, known) {
                Ok(form) => forms.push(form),
                Err(condition) => open.extend([false, true].map(|truth| {
                    let mut more = assumed.clone();
                    more.insert(condition, truth);
                    more
                })),
            }
            if forms.len() + open.len() > POSSIBLE {
                return None;
            }
        }
        Some(forms)
    }

    /// A cell of each form that occurs in some boxes, in a medium of such cells where there is one. Boxes are halved
    /// until that took some work, thick ones first: lines and sheets may be many, and a body may have their form.
    pub fn find(&self, zone: &[Region], most: u64, is_thin: impl Fn(&Place) -> bool) -> Found {
        let end = self.work().saturating_add(most);
        let mut done: BTreeSet<Form> = BTreeSet::new();
        let mut thin: BTreeMap<Form, Place> = BTreeMap::new();
        let mut found = Vec::new();
        let open = |part: &Region| match self.work() < end {
            true => self.open(*part),
            false => self.unknown(*part),
        };
        let mut queue: BinaryHeap<Open> = zone.iter().map(open).collect();
        for _ in 0..BOXES + zone.len() {
            let may_go_on = done.len() < FORMS && self.work() < end;
            // A box that is left is one whose forms are not known.
            if !may_go_on {
                break;
            }
            let Some(Open { order, possible }) = queue.pop() else {
                break;
            };
            let zone = order.zone;
            if !is_open(possible.as_deref(), &done) {
                continue;
            }
            let Some([form]) = possible.as_deref() else {
                queue.extend(self.halves(zone));
                continue;
            };
            let place = self.place(zone);
            match is_thin(&place) {
                true => {
                    thin.entry(form.clone()).or_insert(place);
                }
                false => {
                    done.insert(form.clone());
                    found.push(place);
                }
            }
        }
        let mut rest = queue.iter();
        let is_complete = rest.all(|open| !is_open(open.possible.as_deref(), &done));
        let thin = thin.into_iter().filter(|(form, _)| !done.contains(form));
        let thin = thin.map(|(_, place)| place);
        found.extend(thin.filter(|place| !self.is_mixed(&place.setting)));
        Found {
            places: found,
            is_complete,
        }
    }

    fn open(&self, zone: Region) -> Open {
        Open {
            possible: self.possible(zone),
            ..self.unknown(zone)
        }
    }

    fn unknown(&self, zone: Region) -> Open {
        let sides = self.boxes.scheme.grid.present().map(|a| zone[a].len());
        let least = sides.min().unwrap_or(1).min(SIDES);
        // Volumes of boxes with the same least side, up to 2^44 cells.
        let volume = zone.volume().min(1 << 44);
        Open {
            order: Candidate {
                bound: (least << 45) as f64 + volume as f64,
                zone,
            },
            possible: None,
        }
    }

    /// The middle cell of a box.
    fn place(&self, zone: Region) -> Place {
        let cell = middle(zone);
        Place {
            cell: cell.into(),
            setting: setting(self.boxes.scheme, self.boxes.files, cell),
        }
    }

    /// A box, cut where the halves have the fewest possible forms.
    fn halves(&self, zone: Region) -> [Open; 2] {
        let halves = |axis: Axis| {
            let Interval { lo, hi } = zone[axis];
            let cut = lo + (hi - lo) / 2;
            let parts = [Interval::new(lo, cut), Interval::new(cut, hi)];
            parts.map(|part| self.open(zone.with(axis, part)))
        };
        let count = |half: &Open| half.possible.as_ref().map_or(POSSIBLE, |forms| forms.len());
        let mut axes: Vec<Axis> = Axis::ALL
            .into_iter()
            .filter(|a| zone[*a].len() > 1)
            .collect();
        axes.sort_by_key(|axis| -zone[*axis].len());
        let cuts = axes.into_iter().map(halves);
        let best = cuts.min_by_key(|halves| halves.iter().map(count).sum::<usize>());
        best.unwrap_or_else(|| halves(Axis::OUTER))
    }

    /// The form that follows from facts, where `decide` knows the truth of all conditions that it depends on; else the
    /// first condition that it does not know.
    fn walk(
        &self,
        facts: &Facts,
        mut decide: impl FnMut(Condition, Option<bool>) -> Option<bool>,
    ) -> Result<Form, Condition> {
        let mut form = Form::new();
        let updates = self.boxes.scheme.stages.iter().flat_map(|s| &s.updates);
        self.spend(facts.updates.len() as u64);
        for (number, (update, fact)) in updates.zip(&facts.updates).enumerate() {
            let Fact {
                condition,
                active,
                choices,
            } = fact;
            let acts = decide(*condition, *active).ok_or(*condition)?;
            form.push(acts);
            if !acts || choices.is_empty() {
                continue;
            }
            self.spend(update.body.ops.len() as u64);
            let body = &update.body;
            let mut needed = vec![false; body.ops.len()];
            needed[body.result.index()] = true;
            for (i, op) in body.ops.iter().enumerate().rev() {
                if !needed[i] {
                    continue;
                }
                let choice = choices.iter().find(|(number, _)| *number == i);
                match (*op, choice) {
                    (
                        Op::Select {
                            a,
                            b,
                            then,
                            otherwise,
                            ..
                        },
                        Some((_, truth)),
                    ) => {
                        let condition = self.of_choice(number, body, i);
                        let holds = decide(condition, *truth).ok_or(condition)?;
                        form.push(holds);
                        for value in [a, b, if holds { then } else { otherwise }] {
                            needed[value.index()] = true;
                        }
                    }
                    _ => op.operands(|v| needed[v.index()] = true),
                }
            }
        }
        Ok(form)
    }

    /// The facts of a cell.
    fn facts_of(&self, setting: &Setting) -> Facts {
        let active = setting.active.iter().flatten().map(|a| Some(*a));
        self.facts(active, &setting.coefs, None)
    }

    /// The facts of the cells of a box.
    fn facts_over(&self, zone: Region) -> Facts {
        let Spans { coefs, active } = self.boxes.spans(zone, &self.conditions);
        self.facts(active.into_iter().flatten(), &coefs, Some(zone))
    }

    fn facts<N: Number>(
        &self,
        active: impl Iterator<Item = Option<bool>>,
        coefs: &[N],
        zone: Option<Region>,
    ) -> Facts {
        let updates = self.boxes.scheme.stages.iter().flat_map(|s| &s.updates);
        let facts = updates.zip(active).enumerate();
        let fact = |(number, (update, active)): (usize, (&Update, Option<bool>))| Fact {
            condition: self.of_update(number, update, zone),
            active,
            choices: choices(&update.body, coefs),
        };
        Facts {
            updates: facts.map(fact).collect(),
        }
    }

    /// The condition of an update as a whole.
    fn of_update(&self, number: usize, update: &Update, zone: Option<Region>) -> Condition {
        let is_certain = zone.is_none_or(|zone| self.boxes.has(update, zone).is_some());
        match update.mask.filter(|_| is_certain) {
            Some(mask) => self.of_coef(mask, Cmp::Ne, 0.0),
            None => Condition::Region(number),
        }
    }

    fn of_choice(&self, number: usize, body: &Body, op: usize) -> Condition {
        let operand = |v: Value| body.ops[v.index()];
        match body.ops[op] {
            Op::Select { cmp, a, b, .. } => match (operand(a), operand(b)) {
                (Op::Coef(id), Op::Const(value)) => self.of_coef(id, cmp, value),
                (Op::Const(value), Op::Coef(id)) => {
                    Condition::Coef(self.first[id.index()], cmp, bits(value), false)
                }
                _ => Condition::Choice(number, op),
            },
            _ => Condition::Choice(number, op),
        }
    }

    fn of_coef(&self, id: CoefId, cmp: Cmp, value: f64) -> Condition {
        Condition::Coef(self.first[id.index()], cmp, bits(value), true)
    }
}

/// The same for 0 and -0, which compare alike.
fn bits(value: f64) -> u64 {
    (value + 0.0).to_bits()
}

/// A box to be looked at, and the forms that its cells may have, if these are few.
struct Open {
    order: Candidate,
    possible: Option<Vec<Form>>,
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Open {}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.cmp(&other.order)
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Whether forms are possible that were not found.
fn is_open(possible: Option<&[Form]>, done: &BTreeSet<Form>) -> bool {
    possible.is_none_or(|forms| forms.iter().any(|f| !done.contains(f)))
}

/// The choices of a body by the numbers of their operations, and their truths where these are known.
type Choices = Vec<(usize, Option<bool>)>;

/// The known facts of an update.
struct Fact {
    /// The condition under which it acts, and its truth.
    condition: Condition,
    active: Option<bool>,
    /// Which way its choices go.
    choices: Choices,
}

/// By update.
struct Facts {
    updates: Vec<Fact>,
}

impl Facts {
    /// Whether updates alone have more forms than a box may have: each truth of their conditions makes one.
    fn has_many_forms(&self) -> bool {
        let unknown = self.updates.iter().filter(|fact| fact.active.is_none());
        let unknown: BTreeSet<Condition> = unknown.map(|fact| fact.condition).collect();
        unknown.len() > POSSIBLE.ilog2() as usize
    }
}

/// By coefficient whether a mask or a choice depends on it.
fn conditions(scheme: &Scheme) -> Vec<bool> {
    let mut found = vec![false; scheme.coefs.len()];
    for update in scheme.stages.iter().flat_map(|s| &s.updates) {
        let mut needed = vec![false; update.body.ops.len()];
        for (i, op) in update.body.ops.iter().enumerate().rev() {
            if let Op::Select { a, b, .. } = op {
                needed[a.index()] = true;
                needed[b.index()] = true;
            }
            if needed[i] {
                op.operands(|v| needed[v.index()] = true);
            }
            if let (Op::Coef(id), true) = (op, needed[i]) {
                found[id.index()] = true;
            }
        }
        if let Some(mask) = update.mask {
            found[mask.index()] = true;
        }
    }
    found
}
