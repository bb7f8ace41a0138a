//! The corrections of a problem. Places whose corrections are equal share a *wave*: a number that is computed once in a
//! step.
//!
//! For a plane wave the correction of a place depends on which of its reads cross a face, with which weights, and on
//! the point of the line that the place lies at. There are far fewer such pairs than places: in a cube of n cells about
//! n for each layer of places at a face instead of n squared.

use super::fault::{Fault, Refusal};
use super::field::{Field, Given, When};
use super::line::Line;
use super::settled;
use super::shell::Shell;
use super::weigh::{Site, Term, for_each_site};
use crate::lattice::PerAxis;
use crate::problem::Problem;
use crate::scheme::{ComponentId, Scheme, StageId};
use crate::statics::Files;
use std::collections::HashMap;

/// Corrections after an update, in a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    pub stage: StageId,
    pub component: ComponentId,
}

/// A value of the field times a weight.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// The slot of a line, or a point of a given field.
    value: u32,
    /// From the point of the place.
    shift: i32,
    weight: f64,
}

/// Equal corrections: the parts of its kind, from a point of the line on.
#[derive(Clone, Copy, Debug)]
struct Wave {
    kind: u32,
    point: u32,
}

/// The waves of an update in a box.
#[derive(Clone, Debug)]
struct Waves {
    field: usize,
    stage: StageId,
    /// Where the parts of each kind begin, and where the last ones end.
    kinds: Vec<u32>,
    parts: Vec<Part>,
    waves: Vec<Wave>,
}

/// A value of a given field that corrections need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct GivenPoint {
    component: ComponentId,
    lag: i64,
    at: PerAxis<i64>,
}

/// The corrections of a problem and its incident fields, at some step.
#[derive(Clone, Debug, Default)]
pub struct Corrections {
    fields: Vec<Field>,
    /// By field.
    points: Vec<Vec<GivenPoint>>,
    waves: Vec<Waves>,
    /// Fields before the first step.
    start: Vec<Field>,
    step: u64,
    /// Values of the points of a field.
    values: Vec<f64>,
}

impl Corrections {
    /// Finds all places: `place` gets each with the number of its wave, those of a group one after the other and the
    /// inner axis fastest. Those of different groups at one place act in their order.
    pub fn new(
        scheme: &Scheme,
        problem: &Problem,
        files: &dyn Files,
        mut place: impl FnMut(Group, PerAxis<i64>, u32),
    ) -> Result<Corrections, Refusal> {
        let mut corrections = Corrections::default();
        let mut count = 0;
        for (number, incident) in problem.incidents.iter().enumerate() {
            let refused = |total: usize, fault: Fault| Refusal {
                incident: number,
                total,
                fault,
            };
            let field = Field::new(scheme, incident, files).map_err(|(n, f)| refused(n, f))?;
            let mut points = Points::default();
            for (total, of) in incident.boxes.iter().enumerate() {
                let shell = Shell::new(scheme, of);
                for stage in scheme.stage_ids() {
                    for update in &scheme.stages[stage.index()].updates {
                        let mut finder = Finder::new(scheme, &field, number, stage, &mut points);
                        let group = Group {
                            stage,
                            component: update.target,
                        };
                        for_each_site(&shell, files, (stage, update), |site| {
                            place(group, site.at, count + finder.wave(site)?);
                            Ok(())
                        })
                        .map_err(|fault| refused(total, fault))?;
                        count += finder.found.waves.len() as u32;
                        let found = finder.found;
                        if !found.waves.is_empty() {
                            corrections.waves.push(found);
                        }
                    }
                }
            }
            corrections.points.push(points.list);
            corrections.fields.push(field);
        }
        corrections.start = corrections.fields.clone();
        Ok(corrections)
    }

    /// The number of waves.
    pub fn len(&self) -> usize {
        self.waves.iter().map(|w| w.waves.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.waves.is_empty()
    }

    /// Appends the waves of a step, counted from 0, in their order. Steps that follow each other take the least time:
    /// others have to be gone through.
    pub fn waves(&mut self, scheme: &Scheme, files: &dyn Files, step: u64, out: &mut Vec<f64>) {
        if step < self.step {
            self.fields = self.start.clone();
            self.step = 0;
        }
        let stages = || scheme.stage_ids();
        while self.step < step {
            for stage in stages() {
                let when = self.when(scheme, files, stage);
                self.fields.iter_mut().for_each(|f| f.advance(&when));
            }
            self.step += 1;
        }
        let begin = out.len();
        out.resize(begin + self.len(), 0.0);
        for field in 0..self.fields.len() {
            let first = self.when(scheme, files, StageId(0));
            if let Field::Given(given) = &self.fields[field] {
                let value = |p: &GivenPoint| given.value(&first, p.component, p.lag, p.at);
                self.values.clear();
                self.values.extend(self.points[field].iter().map(value));
            }
            for stage in stages() {
                let mut from = begin;
                for waves in &self.waves {
                    let to = from + waves.waves.len();
                    if (waves.field, waves.stage) == (field, stage) {
                        match &self.fields[field] {
                            Field::Plane(line) => waves.of_line(line, &mut out[from..to]),
                            Field::Given(_) => waves.of_points(&self.values, &mut out[from..to]),
                        }
                    }
                    from = to;
                }
                let when = self.when(scheme, files, stage);
                self.fields[field].advance(&when);
            }
        }
        for wave in &mut out[begin..] {
            *wave = settled(scheme, *wave);
        }
        self.step += 1;
    }

    fn when<'a>(&self, scheme: &'a Scheme, files: &'a dyn Files, stage: StageId) -> When<'a> {
        When {
            scheme,
            files,
            stage,
            step: self.step,
        }
    }
}

impl Waves {
    fn parts(&self, wave: &Wave) -> &[Part] {
        let kind = wave.kind as usize;
        &self.parts[self.kinds[kind] as usize..self.kinds[kind + 1] as usize]
    }

    fn of_line(&self, line: &Line, out: &mut [f64]) {
        for (wave, out) in self.waves.iter().zip(out) {
            let mut sum = 0.0;
            for part in self.parts(wave) {
                let point = i64::from(wave.point) + i64::from(part.shift);
                sum += part.weight * line.values(part.value as usize)[point as usize];
            }
            *out = sum;
        }
    }

    fn of_points(&self, values: &[f64], out: &mut [f64]) {
        for (wave, out) in self.waves.iter().zip(out) {
            let mut sum = 0.0;
            for part in self.parts(wave) {
                sum += part.weight * values[part.value as usize];
            }
            *out = sum;
        }
    }
}

/// The points of a given field, each once.
#[derive(Default)]
struct Points {
    list: Vec<GivenPoint>,
    known: HashMap<GivenPoint, u32>,
}

impl Points {
    fn number(&mut self, point: GivenPoint) -> u32 {
        let next = self.list.len() as u32;
        let number = *self.known.entry(point).or_insert(next);
        if number == next {
            self.list.push(point);
        }
        number
    }
}

/// A part of a correction as a key.
type PartKey = (u32, i32, u64);

/// Finds the waves of an update in a box.
struct Finder<'a> {
    scheme: &'a Scheme,
    field: &'a Field,
    points: &'a mut Points,
    found: Waves,
    kinds: HashMap<Vec<PartKey>, u32>,
    waves: HashMap<(u32, u32), u32>,
    key: Vec<PartKey>,
}

impl<'a> Finder<'a> {
    fn new(
        scheme: &'a Scheme,
        field: &'a Field,
        number: usize,
        stage: StageId,
        points: &'a mut Points,
    ) -> Finder<'a> {
        Finder {
            scheme,
            field,
            points,
            found: Waves {
                field: number,
                stage,
                kinds: vec![0],
                parts: Vec::new(),
                waves: Vec::new(),
            },
            kinds: HashMap::new(),
            waves: HashMap::new(),
            key: Vec::new(),
        }
    }

    /// The number of a place's wave.
    fn wave(&mut self, site: &Site<'_>) -> Result<u32, Fault> {
        match self.field {
            Field::Plane(line) => {
                let point = line.point(site.at);
                self.key.clear();
                for term in site.terms {
                    let slot = line.slot(term.component, term.age) as u32;
                    let shift = (line.point(term.at) - point) as i32;
                    self.key.push((slot, shift, term.weight.to_bits()));
                }
                let kind = match self.kinds.get(&self.key) {
                    Some(kind) => *kind,
                    None => {
                        let kind = self.add_kind();
                        self.kinds.insert(self.key.clone(), kind);
                        kind
                    }
                };
                let next = self.found.waves.len() as u32;
                let point = point as u32;
                let number = *self.waves.entry((kind, point)).or_insert(next);
                if number == next {
                    self.found.waves.push(Wave { kind, point });
                }
                Ok(number)
            }
            Field::Given(given) => {
                self.key.clear();
                for term in site.terms {
                    if let Some(key) = self.point(given, site.stage, term)? {
                        self.key.push(key);
                    }
                }
                let kind = self.add_kind();
                self.found.waves.push(Wave { kind, point: 0 });
                Ok(kind)
            }
        }
    }

    fn point(
        &mut self,
        given: &Given,
        stage: StageId,
        term: &Term,
    ) -> Result<Option<PartKey>, Fault> {
        let lag = given.lag(self.scheme, stage, term)?;
        Ok(lag.map(|lag| {
            let point = GivenPoint {
                component: term.component,
                lag,
                at: term.at,
            };
            (self.points.number(point), 0, term.weight.to_bits())
        }))
    }

    fn add_kind(&mut self) -> u32 {
        let parts = self.key.iter().map(|&(value, shift, weight)| Part {
            value,
            shift,
            weight: f64::from_bits(weight),
        });
        self.found.parts.extend(parts);
        self.found.kinds.push(self.found.parts.len() as u32);
        self.found.kinds.len() as u32 - 2
    }
}
