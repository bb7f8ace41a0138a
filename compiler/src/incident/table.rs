//! The corrections of a problem. Places whose corrections are equal share a *wave*: a number that is computed once in a
//! step.
//!
//! For a plane wave the correction of a place depends on which of its reads cross a face, with which weights, its
//! *kind*, and on the point of the line that the place lies at. There are far fewer such pairs than places: in a cube
//! of n cells about n for each layer of places at a face instead of n squared. The waves of a kind are numbered by
//! their points. Of rows that meet faces in the same way, in a medium without coefficients that vary, one is looked at.

use super::fault::{Fault, Refusal};
use super::field::{Field, Given};
use super::rows::{CorrectedRows, RowPlace};
use super::shell::Shell;
use super::waves::{Gathered, Gathering, GivenPoint, Kind, POINT, Part, Summing, Waves};
use super::weigh::{Site, Sites, Term};
use crate::lattice::{Axis, Interval, PerAxis, Region};
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

/// The corrections of a problem and its incident fields, at some step.
#[derive(Clone, Debug, Default)]
pub struct Corrections {
    /// Corrections of different updates and boxes at one place act in their order.
    pub rows: Vec<CorrectedRows>,
    fields: Vec<Field>,
    /// By field.
    points: Vec<Vec<GivenPoint>>,
    /// Of the rows with the same index: of [`corrected_updates`](super::corrected_updates).
    waves: Vec<Waves>,
    /// Fields before the first step.
    start: Vec<Field>,
    step: u64,
}

impl Corrections {
    /// Finds all places.
    pub fn new(
        scheme: &Scheme,
        problem: &Problem,
        files: &dyn Files,
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
                        let Some(region) = shell.region(update) else {
                            continue;
                        };
                        let group = Group {
                            stage,
                            component: update.target,
                        };
                        let finder = Finder::new(&shell, &field, &mut points);
                        let mut sites = Sites::new(&shell, files, stage, update);
                        let found = finder.find(&mut sites, group, region, count);
                        let (rows, kinds, parts) = found.map_err(|fault| refused(total, fault))?;
                        let waves = Waves::new(number, &field, stage, kinds, parts);
                        count += waves.count as i64;
                        corrections.waves.push(waves);
                        corrections.rows.push(rows);
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
        self.waves.iter().map(|w| w.count).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.waves.is_empty()
    }

    /// Bytes of the tables of places of corrections and of their terms.
    pub fn bytes(&self) -> u64 {
        let of = |count: usize, each: usize| (count * each) as u64;
        let waves = self.waves.iter().map(Waves::bytes);
        let points = self.points.iter().map(Vec::len).sum::<usize>();
        let fields = self.fields.iter().map(Field::bytes).sum::<u64>();
        waves.sum::<u64>()
            + self.rows.iter().map(CorrectedRows::bytes).sum::<u64>()
            + of(points, size_of::<GivenPoint>() + size_of::<f64>())
            + 2 * fields
    }

    /// Appends the waves of a step, counted from 0, in their order. Steps that follow each other take the least time:
    /// others have to be gone through.
    pub fn waves(&mut self, scheme: &Scheme, files: &dyn Files, step: u64, out: &mut Vec<f64>) {
        let (mut gathering, summing) = self.from_step(scheme, files, step);
        let mut gathered = Gathered::default();
        gathering.gather(scheme, files, &mut gathered);
        summing.sum(scheme, files, &gathered, out);
    }

    /// The [`Gathering`] from a step on, counted from 0, and the [`Summing`] that makes waves of it. A step that
    /// follows the last one that was gathered takes the least time: all steps in between have to be run.
    pub fn from_step(
        &mut self,
        scheme: &Scheme,
        files: &dyn Files,
        step: u64,
    ) -> (Gathering<'_>, Summing<'_>) {
        if step < self.step {
            self.fields = self.start.clone();
            self.step = 0;
        }
        let fields = self.fields.iter_mut().map(|field| match field {
            Field::Plane(line) => (Some(line.as_mut()), None),
            Field::Given(given) => (None, Some(&*given)),
        });
        let (lines, given) = fields.unzip();
        let mut gathering = Gathering {
            waves: &self.waves,
            lines,
            step: &mut self.step,
        };
        while *gathering.step < step {
            gathering.skip(scheme, files);
        }
        let summing = Summing {
            waves: &self.waves,
            points: &self.points,
            given,
        };
        (gathering, summing)
    }

    /// Multiplications of a step that depend on the step before, and others.
    pub fn operations(&self) -> [u64; 2] {
        let serial = self.fields.iter().map(|field| match field {
            Field::Plane(line) => line.operations(),
            Field::Given(_) => 0,
        });
        let gathered = self.waves.iter().map(Waves::gathered).sum::<usize>() as u64;
        let points = self.points.iter().map(Vec::len).sum::<usize>() as u64;
        let summed = self.waves.iter().map(Waves::operations).sum::<u64>();
        [serial.sum::<u64>() + gathered, summed + POINT * points]
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

/// A place of a pattern before waves have numbers: its index along the inner axis, its kind, and the point of the line
/// at which it lies less the shift of the row.
type Found = (i64, u32, i64);

/// Finds the corrections of an update in a box.
struct Finder<'a> {
    shell: &'a Shell<'a>,
    field: &'a Field,
    points: &'a mut Points,
    kinds: Vec<Kind>,
    parts: Vec<Part>,
    known: HashMap<Vec<PartKey>, u32>,
    patterns: HashMap<Vec<Found>, u32>,
}

impl<'a> Finder<'a> {
    fn new(shell: &'a Shell<'a>, field: &'a Field, points: &'a mut Points) -> Finder<'a> {
        Finder {
            shell,
            field,
            points,
            kinds: Vec::new(),
            parts: Vec::new(),
            known: HashMap::new(),
            patterns: HashMap::new(),
        }
    }

    /// Looks at each row, or at one of equal rows; waves have numbers from `first` on.
    fn find(
        mut self,
        sites: &mut Sites<'_>,
        group: Group,
        region: Region,
        first: i64,
    ) -> Result<(CorrectedRows, Vec<Kind>, Vec<Part>), Fault> {
        let shift = match self.field {
            Field::Plane(line) => line.shift(),
            Field::Given(_) => PerAxis::splat(0),
        };
        let shift = [shift[Axis::OUTER], shift[Axis::MIDDLE]];
        let mut rows = CorrectedRows::new(self.shell, group, region, shift);
        let alike = sites.are_fixed() && matches!(self.field, Field::Plane(_));
        let [xs, ys] = [Axis::OUTER, Axis::MIDDLE].map(|axis| {
            let all = rows.region[axis];
            let alike = alike.then(|| self.shell.alike(axis).intersect(all));
            runs(all, alike.filter(|run| !run.is_empty()))
        });
        let mut places: Vec<Found> = Vec::new();
        for &x in &xs {
            for &y in &ys {
                let row = [x.lo, y.lo];
                let own = rows.shift(row);
                places.clear();
                sites.of_row(row, |site| {
                    let (kind, point) = self.kind(site)?;
                    places.push((site.at[Axis::INNER], kind, point - own));
                    Ok(())
                })?;
                if places.is_empty() {
                    continue;
                }
                for corner in [
                    [x.lo, y.lo],
                    [x.hi - 1, y.lo],
                    [x.lo, y.hi - 1],
                    [x.hi - 1, y.hi - 1],
                ] {
                    let own = rows.shift(corner);
                    for (_, kind, point) in &places {
                        let points = &mut self.kinds[*kind as usize].points;
                        *points = points.hull(Interval::new(point + own, point + own + 1));
                    }
                }
                let next = self.patterns.len() as u32;
                let pattern = match self.patterns.get(&places) {
                    Some(pattern) => *pattern,
                    None => *self.patterns.entry(places.clone()).or_insert(next),
                };
                rows.set([x, y], pattern);
            }
        }
        let mut next = first;
        for kind in &mut self.kinds {
            kind.first = next;
            next += kind.points.len();
        }
        if next > i64::from(i32::MAX) {
            return Err(Fault::TooLarge {
                places: next as u64,
            });
        }
        let mut patterns = vec![Vec::new(); self.patterns.len()];
        for (places, number) in self.patterns {
            let place = |(z, kind, point): Found| {
                let kind = &self.kinds[kind as usize];
                let wave = kind.first - kind.points.lo + point;
                RowPlace { z, wave }
            };
            patterns[number as usize] = places.into_iter().map(place).collect();
        }
        rows.patterns = patterns;
        Ok((rows, self.kinds, self.parts))
    }

    /// The kind of a place, and the point at which it lies.
    fn kind(&mut self, site: &Site<'_>) -> Result<(u32, i64), Fault> {
        let mut key: Vec<PartKey> = Vec::with_capacity(site.terms.len());
        match self.field {
            Field::Plane(line) => {
                let point = line.point(site.at);
                for term in site.terms {
                    let slot = line.slot(term.component, term.age) as u32;
                    let shift = (line.point(term.at) - point) as i32;
                    key.push((slot, shift, term.weight.to_bits()));
                }
                let kind = match self.known.get(&key) {
                    Some(kind) => *kind,
                    None => {
                        let kind = self.add_kind(&key);
                        self.known.insert(key, kind);
                        kind
                    }
                };
                Ok((kind, point))
            }
            // The row's shift is 0.
            Field::Given(given) => {
                for term in site.terms {
                    key.extend(self.point(given, site.stage, term)?);
                }
                Ok((self.add_kind(&key), 0))
            }
        }
    }

    fn point(
        &mut self,
        given: &Given,
        stage: StageId,
        term: &Term,
    ) -> Result<Option<PartKey>, Fault> {
        let lag = given.lag(self.shell.scheme, stage, term)?;
        Ok(lag.map(|lag| {
            let point = GivenPoint {
                component: term.component,
                lag,
                at: term.at,
            };
            (self.points.number(point), 0, term.weight.to_bits())
        }))
    }

    fn add_kind(&mut self, key: &[PartKey]) -> u32 {
        let parts = key.iter().map(|&(value, shift, weight)| Part {
            value,
            shift,
            weight: f64::from_bits(weight),
        });
        self.parts.extend(parts);
        self.kinds.push(Kind {
            parts: self.parts.len() as u32,
            points: Interval::new(0, 0),
            first: 0,
        });
        self.kinds.len() as u32 - 1
    }
}

/// A range cut into single indices, except a range of equal ones.
fn runs(all: Interval, alike: Option<Interval>) -> Vec<Interval> {
    let mut runs = Vec::new();
    let mut at = all.lo;
    while at < all.hi {
        let run = alike.filter(|run| run.lo == at);
        let run = run.unwrap_or(Interval::new(at, at + 1));
        at = run.hi;
        runs.push(run);
    }
    runs
}
