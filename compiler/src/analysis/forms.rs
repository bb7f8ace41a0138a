//! Forms of a step: which updates act in a cell, and which branches of their choices are taken there.
//!
//! The forms that occur are found by halving boxes of cells in which a condition holds in some cells only: large boxes
//! first. A box all of whose possible forms are known is not halved, so the seam between two regions takes no
//! time.

use super::boxes::{Boxes, Candidate};
use super::cells::{Place, middle, setting};
use super::linear::choices;
use super::number::Number;
use super::step::{Setting, Spans};
use crate::lattice::{Axis, Interval, Region};
use crate::scheme::{Body, Cmp, CoefId, Op, Scheme, Update, Value};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Boxes that are halved.
const BOXES: usize = 500;
/// Forms that are looked at.
const FORMS: usize = 32;
/// Forms that a box may have to be told from others.
const POSSIBLE: usize = 64;
/// Cells of a form that are looked at for one in a medium.
const TRIES: usize = 8;

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
}

impl<'a> Forms<'a> {
    pub fn new(boxes: &'a Boxes<'a>) -> Self {
        let coefs = &boxes.scheme.coefs;
        let same = |c: &crate::scheme::Coef| coefs.iter().position(|o| o.value == c.value);
        Self {
            boxes,
            conditions: conditions(boxes.scheme),
            first: coefs.iter().map(|c| same(c).unwrap_or(0)).collect(),
        }
    }

    pub fn is_condition(&self, coef: usize) -> bool {
        self.conditions[coef]
    }

    /// The form of a setting.
    pub fn form(&self, setting: &Setting) -> Form {
        let facts = Facts::new(self.boxes.scheme, setting);
        let form = self.walk(&facts, None, |_, truth| truth);
        form.unwrap_or_default()
    }

    /// Whether a condition holds at one position of a cell, and not at another one: the cell is at a seam.
    fn is_mixed(&self, setting: &Setting) -> bool {
        let facts = Facts::new(self.boxes.scheme, setting);
        let mut truths = BTreeSet::new();
        let _ = self.walk(&facts, None, |condition, truth| {
            truths.insert((condition, truth));
            truth
        });
        let both = |(condition, truth): &(Condition, Option<bool>)| {
            *truth == Some(true) && truths.contains(&(*condition, Some(false)))
        };
        truths.iter().any(both)
    }

    /// All forms that cells of a box may have; `None` where these are many.
    pub fn possible(&self, zone: Region) -> Option<Vec<Form>> {
        if zone.volume() == 1 {
            let at = zone.map(|i| i.lo);
            let setting = setting(self.boxes.scheme, self.boxes.files, at);
            return Some(vec![self.form(&setting)]);
        }
        let facts = Facts::over(self.boxes.scheme, &self.boxes.spans(zone, &self.conditions));
        let mut open: Vec<BTreeMap<Condition, bool>> = vec![BTreeMap::new()];
        let mut forms = Vec::new();
        while let Some(assumed) = open.pop() {
            let known =
                |condition, truth: Option<bool>| truth.or_else(|| assumed.get(&condition).copied());
            match self.walk(&facts, Some(zone), known) {
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

    /// A cell of each form that occurs in some boxes, in a medium of such cells where there is one.
    pub fn find(&self, zone: &[Region], is_thin: impl Fn(&Place) -> bool) -> Found {
        let mut done: BTreeSet<Form> = BTreeSet::new();
        let mut thin: BTreeMap<Form, Vec<Place>> = BTreeMap::new();
        let mut found = Vec::new();
        let mut queue = zone
            .iter()
            .copied()
            .map(candidate)
            .collect::<BinaryHeap<_>>();
        for _ in 0..BOXES + zone.len() {
            let Some(Candidate { zone, .. }) = queue.pop().filter(|_| done.len() < FORMS) else {
                break;
            };
            let possible = self.possible(zone);
            if !is_open(possible.as_deref(), &done) {
                continue;
            }
            let Some([form]) = possible.as_deref() else {
                queue.extend(self.halves(zone).map(candidate));
                continue;
            };
            let place = self.place(zone);
            let tries = thin.entry(form.clone()).or_default();
            if !is_thin(&place) {
                done.insert(form.clone());
                found.push(place);
                continue;
            }
            tries.push(place);
            if tries.len() >= TRIES {
                done.insert(form.clone());
            }
        }
        let mut rest = queue.into_iter();
        let is_complete = rest.all(|c| !is_open(self.possible(c.zone).as_deref(), &done));
        let medium: BTreeSet<Form> = found
            .iter()
            .map(|p: &Place| self.form(&p.setting))
            .collect();
        let thin = thin.into_iter().filter(|(form, _)| !medium.contains(form));
        let thin = thin.filter_map(|(_, places)| places.into_iter().next());
        found.extend(thin.filter(|place| !self.is_mixed(&place.setting)));
        Found {
            places: found,
            is_complete,
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
    fn halves(&self, zone: Region) -> [Region; 2] {
        let halves = |axis: Axis| {
            let Interval { lo, hi } = zone[axis];
            let cut = lo + (hi - lo) / 2;
            [Interval::new(lo, cut), Interval::new(cut, hi)].map(|part| zone.with(axis, part))
        };
        let count = |half: Region| self.possible(half).map_or(POSSIBLE, |forms| forms.len());
        let cuts = Axis::ALL.into_iter().filter(|a| zone[*a].len() > 1);
        let best = cuts.min_by_key(|axis| {
            let forms: usize = halves(*axis).map(count).into_iter().sum();
            (forms, -zone[*axis].len())
        });
        halves(best.unwrap_or(Axis::OUTER))
    }

    /// The form that follows from facts, where `decide` knows the truth of all conditions that it depends on; else the
    /// first condition that it does not know.
    fn walk(
        &self,
        facts: &Facts,
        zone: Option<Region>,
        mut decide: impl FnMut(Condition, Option<bool>) -> Option<bool>,
    ) -> Result<Form, Condition> {
        let mut form = Form::new();
        let updates = self.boxes.scheme.stages.iter().flat_map(|s| &s.updates);
        for (number, update) in updates.enumerate() {
            let (active, choices) = &facts.updates[number];
            let condition = self.of_update(number, update, zone);
            let acts = decide(condition, *active).ok_or(condition)?;
            form.push(acts);
            if !acts {
                continue;
            }
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

fn candidate(zone: Region) -> Candidate {
    Candidate {
        bound: zone.volume() as f64,
        zone,
    }
}

/// Whether forms are possible that were not found.
fn is_open(possible: Option<&[Form]>, done: &BTreeSet<Form>) -> bool {
    possible.is_none_or(|forms| forms.iter().any(|f| !done.contains(f)))
}

/// The choices of a body by the numbers of their operations, and their truths where these are known.
type Choices = Vec<(usize, Option<bool>)>;

/// By update whether it acts, and which way its choices go.
struct Facts {
    updates: Vec<(Option<bool>, Choices)>,
}

impl Facts {
    /// In a cell.
    fn new(scheme: &Scheme, setting: &Setting) -> Self {
        let active = setting.active.iter().flatten().map(|a| Some(*a));
        Self::of(scheme, active, &setting.coefs)
    }

    /// In the cells of a box.
    fn over(scheme: &Scheme, spans: &Spans) -> Self {
        let active = spans.active.iter().flatten().copied();
        Self::of(scheme, active, &spans.coefs)
    }

    fn of<N: Number>(
        scheme: &Scheme,
        active: impl Iterator<Item = Option<bool>>,
        coefs: &[N],
    ) -> Self {
        let updates = scheme.stages.iter().flat_map(|s| &s.updates);
        let own = updates.map(|update| choices(&update.body, coefs));
        Self {
            updates: active.zip(own).collect(),
        }
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
