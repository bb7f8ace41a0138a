//! The places whose coefficients decide: where they are extreme.
//!
//! Coefficients are expressions of the place, so their extremes are found by halving boxes of cells, of which the
//! ranges of the expressions ([`crate::host_range`]) leave few: no array has to be filled, and no small body is missed
//! between samples. Where statements are confined to regions, each region has extremes of its own, and so has each
//! combination of statements and branches ([`super::forms`]).

use super::boxes::{Boxes, Candidate};
use super::cells::{Cell, Place, middle, of_waves, setting};
use super::cost::{self, Cost, Patience};
use super::forms::{Form, Forms};
use super::step::{NoStep, Setting, Step};
use super::zones::{ZONES, Zone, zones};
use crate::host_range::Range;
use crate::lattice::{Axis, Interval, PerAxis, Region};
use crate::scheme::Scheme;
use crate::statics::Files;
use std::collections::{BTreeSet, BinaryHeap};

/// Boxes that are looked at for the extreme of a coefficient, and of a step's vigour, which takes longer.
const BOXES: usize = 1000;
const VIGOUR_BOXES: usize = 1000;
/// Coefficients whose extremes are looked for one by one.
const COEFS: usize = 24;

/// The places that decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Places {
    /// With different settings, the most vigorous first.
    pub list: Vec<Place>,
    /// Per set of updates and branches that act together somewhere: every coefficient at its largest absolute value in
    /// that zone, whether or not these values occur at one place. Empty where one place has them all.
    pub combined: Vec<Setting>,
    /// Regions too thin for waves in them to mean anything: their bounds along an axis.
    pub thin: Vec<(Axis, Interval)>,
    /// Whether all combinations of updates and branches that act together somewhere are known.
    pub is_complete: bool,
    /// The work of looking for these.
    pub work: u64,
}

/// The places that decide about a scheme.
pub fn places(scheme: &Scheme, files: &dyn Files, patience: Patience) -> Result<Places, NoStep> {
    Cost::new(scheme).allow(1, patience)?;
    places_of(scheme, files, zones(scheme), patience)
}

/// The places that decide in some boxes.
pub fn places_in(
    scheme: &Scheme,
    files: &dyn Files,
    boxes: &[Region],
    patience: Patience,
) -> Result<Places, NoStep> {
    Cost::new(scheme).allow(1, patience)?;
    let zones = zones(scheme);
    let parts = zones.iter().flat_map(|zone| {
        let within = boxes.iter().map(|own| {
            let parts = zone.iter().map(|part| own.intersect(*part));
            parts.filter(|part| !part.is_empty()).collect::<Zone>()
        });
        within.filter(|zone| !zone.is_empty())
    });
    places_of(scheme, files, parts.collect(), patience)
}

fn places_of(
    scheme: &Scheme,
    files: &dyn Files,
    zones: Vec<Zone>,
    patience: Patience,
) -> Result<Places, NoStep> {
    let cost = Cost::new(scheme);
    let bounds = Boxes::new(scheme, files);
    let search = Search {
        scheme,
        used: of_waves(scheme),
        files,
        bounds: &bounds,
        forms: Forms::new(&bounds, cost::forms(patience)),
        boxes: cost.boxes(zones.len(), VIGOUR_BOXES),
        coef_boxes: (BOXES * ZONES / zones.len().max(ZONES)).max(8),
    };
    let mut found: Vec<Place> = Vec::new();
    let mut combined = Vec::new();
    let mut thin = Vec::new();
    let mut is_complete = true;
    let count = zones.len();
    for (number, zone) in zones.into_iter().enumerate() {
        let first = found.len();
        // Zones whose forms are soon found leave their share to others.
        let share = search.forms.share(count - number);
        let (cells, all_forms) = search.extremes(&zone, share);
        is_complete &= all_forms;
        for at in cells {
            let own = Place {
                cell: at.into(),
                setting: setting(scheme, files, at),
            };
            let beside = search
                .most_vigorous_beside(&own)
                .filter(|_| cost.is_small());
            for place in std::iter::once(own).chain(beside) {
                if !found.iter().any(|p| p.setting == place.setting) {
                    found.push(place);
                }
            }
        }
        combined.extend(extreme_settings(&search.forms, &found[first..]));
    }
    // Coefficients and updates of a few cells only are no medium for waves, unless there is nothing else.
    let (thick, dropped): (Vec<Place>, Vec<Place>) = found
        .iter()
        .cloned()
        .partition(|place| search.thinnest(place).is_none());
    if !thick.is_empty() {
        for part in dropped.iter().filter_map(|place| search.thinnest(place)) {
            if !thin.contains(&part) {
                thin.push(part);
            }
        }
        let forms: BTreeSet<Form> = thick
            .iter()
            .map(|p| search.forms.form(&p.setting))
            .collect();
        combined.retain(|c: &Setting| forms.contains(&search.forms.form(c)));
        found = thick;
    }
    cost.allow(found.len() + combined.len(), patience)?;
    // The first error is the answer: a step that cannot be analysed at one place cannot be analysed.
    let mut ranked = Vec::new();
    for place in found {
        match Step::new(scheme, &place.setting) {
            Ok(step) => ranked.push((step.vigour(), place)),
            Err(error) => return Err(error),
        }
    }
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let list: Vec<Place> = ranked.into_iter().map(|(_, p)| p).collect();
    combined.retain(|c| list.iter().all(|p| p.setting != *c));
    Ok(Places {
        list,
        combined,
        thin,
        is_complete,
        work: search.forms.work(),
    })
}

/// The same for some cells.
pub fn extremes_of_cells(scheme: &Scheme, files: &dyn Files, cells: &[Cell]) -> Vec<Setting> {
    let bounds = Boxes::new(scheme, files);
    let own = |cell: &Cell| Place {
        cell: *cell,
        setting: setting(scheme, files, *cell),
    };
    let places: Vec<Place> = cells.iter().map(own).collect();
    extreme_settings(&Forms::new(&bounds, 0), &places)
}

/// For each set of updates that act, and of branches that are taken, at some of the places: all coefficients at their
/// largest absolute values. Coefficients on which conditions depend have the values of these places, others the values
/// of all places where the same updates act.
fn extreme_settings(forms: &Forms, places: &[Place]) -> Vec<Setting> {
    let mut extremes: Vec<(Form, Setting)> = Vec::new();
    for place in places {
        let form = forms.form(&place.setting);
        if !extremes.iter().any(|(own, _)| *own == form) {
            extremes.push((form, place.setting.clone()));
        }
    }
    for place in places {
        let form = forms.form(&place.setting);
        for (own, extreme) in &mut extremes {
            if extreme.active != place.setting.active {
                continue;
            }
            let coefs = extreme.coefs.iter_mut().zip(&place.setting.coefs);
            for (number, (e, c)) in coefs.enumerate() {
                let counts = *own == form || !forms.is_condition(number);
                if counts && c.abs() > e.abs() {
                    *e = *c;
                }
            }
        }
    }
    extremes.into_iter().map(|(_, setting)| setting).collect()
}

struct Search<'a> {
    scheme: &'a Scheme,
    /// By coefficient whether waves depend on it.
    used: Vec<bool>,
    files: &'a dyn Files,
    bounds: &'a Boxes<'a>,
    forms: Forms<'a>,
    /// Boxes in which a step's vigour is looked for.
    boxes: usize,
    /// Boxes in which the extreme of a coefficient is looked for.
    coef_boxes: usize,
}

impl Search<'_> {
    /// Cells of a zone where coefficients are largest or smallest, where a step is most vigorous, also among the cells
    /// of each form, and the middle; and whether all forms are among them, which are looked for with some work.
    fn extremes(&self, zone: &[Region], work: u64) -> (Vec<PerAxis<i64>>, bool) {
        let largest = zone.iter().rev().max_by_key(|part| part.volume());
        let middle = largest.map_or(PerAxis::splat(0), |part| middle(*part));
        let mut found = vec![middle];
        let varies = |coef: usize| {
            let mut ranges = zone.iter().map(|part| self.bounds.range(coef, *part));
            let first = ranges.next();
            let alike = |range: Range| range.is_point() && Some(range) == first;
            first.is_some_and(|range| !range.is_point()) || !ranges.all(alike)
        };
        let varying: Vec<usize> = (0..self.scheme.coefs.len())
            .filter(|&c| self.used[c] && varies(c))
            .collect();
        let range = |coef: usize, part: Region| self.bounds.range(coef, part);
        for &coef in varying.iter().take(COEFS) {
            found.push(self.highest(zone, middle, self.coef_boxes, |part| range(coef, part).hi));
            found.push(self.highest(zone, middle, self.coef_boxes, |part| -range(coef, part).lo));
        }
        if varying.len() > 1 {
            found.push(self.highest(zone, middle, self.boxes, |part| self.vigour(part)));
        }
        let forms = self.forms.find(zone, work, |p| self.thinnest(p).is_some());
        let has_media = varying.iter().any(|c| !self.forms.is_condition(*c));
        let boxes = (self.boxes / forms.places.len().max(1)).max(8);
        for place in &forms.places {
            let (at, form) = (place.cell.index, self.forms.form(&place.setting));
            found.push(at);
            if has_media && forms.places.len() > 1 {
                found.push(self.highest(zone, at, boxes, |part| self.vigour_of(&form, part)));
            }
        }
        (found, forms.is_complete)
    }

    /// The cell of a zone with the highest value of a function that is given by upper bounds over boxes, exact ones
    /// over cells; the first cell where no other one has a higher value.
    fn highest(
        &self,
        zone: &[Region],
        first: PerAxis<i64>,
        boxes: usize,
        bound: impl Fn(Region) -> f64,
    ) -> PerAxis<i64> {
        let cell = |at: PerAxis<i64>| at.map(|i| Interval::new(i, i + 1));
        let mut best = (first, bound(cell(first)));
        let parts = zone.iter().map(|&zone| Candidate {
            bound: bound(zone),
            zone,
        });
        let mut queue: BinaryHeap<Candidate> = parts.collect();
        for _ in 0..boxes {
            let Some(Candidate { bound: top, zone }) = queue.pop() else {
                break;
            };
            // Bounds and values of the same expression differ by rounding.
            let is_known = top <= best.1 + 1e-12 * best.1.abs() || top == f64::NEG_INFINITY;
            if is_known || top.is_nan() {
                break;
            }
            let widest = Axis::ALL.into_iter().max_by_key(|&a| zone[a].len());
            let Some(axis) = widest.filter(|&a| zone[a].len() > 1) else {
                best = (middle(zone), top);
                break;
            };
            let cut = zone[axis].lo + zone[axis].len() / 2;
            for part in [
                Interval::new(zone[axis].lo, cut),
                Interval::new(cut, zone[axis].hi),
            ] {
                let half = zone.with(axis, part);
                let at = middle(half);
                let value = bound(cell(at));
                if value > best.1 {
                    best = (at, value);
                }
                queue.push(Candidate {
                    bound: bound(half),
                    zone: half,
                });
            }
        }
        best.0
    }

    /// The faces of the cell and of the one below that make the most vigorous step with it, if these are not its own
    /// lower ones: a coefficient on a face acts on both cells beside it.
    fn most_vigorous_beside(&self, own: &Place) -> Option<Place> {
        let grid = &self.scheme.grid;
        let mut cells = vec![own.cell];
        for axis in grid.present() {
            let more: Vec<Cell> = cells
                .iter()
                .flat_map(|cell| {
                    let mut above = *cell;
                    above.upper[axis] = true;
                    let mut below = above;
                    below.index[axis] = grid.around(axis, cell.index[axis] - 1, 0);
                    [above, below]
                })
                .filter(|cell| cell.index[axis] >= 0)
                .collect();
            cells.extend(more);
        }
        let vigour = |setting: &Setting| {
            let step = Step::new(self.scheme, setting).ok()?;
            Some(step.vigour())
        };
        let mut best: Option<(f64, Place)> = None;
        for cell in cells {
            let setting = setting(self.scheme, self.files, cell);
            if setting == own.setting || setting.active != own.setting.active {
                continue;
            }
            let found = vigour(&setting)?;
            if best.as_ref().is_none_or(|(most, _)| found > *most) {
                best = Some((found, Place { cell, setting }));
            }
        }
        let (most, place) = best?;
        (most > vigour(&own.setting)? + 1e-9).then_some(place)
    }

    /// The axis along which, and the cells in which, the same updates act and the same choices are made as at a place,
    /// where these are fewer than twice the reach of reads.
    fn thinnest(&self, place: &Place) -> Option<(Axis, Interval)> {
        let grid = &self.scheme.grid;
        let reach = self.scheme.reach();
        let own = self.forms.form(&place.setting);
        grid.present().find_map(|axis| {
            let enough = 2 * i64::from(reach[axis].into_iter().max().unwrap_or(0));
            let enough = enough.min(grid.cells[axis]);
            let like = |index: &i64| {
                let mut cell = place.cell;
                cell.index[axis] = grid.around(axis, *index, 0);
                let inside = (0..grid.cells[axis]).contains(&cell.index[axis]);
                inside && self.forms.form(&setting(self.scheme, self.files, cell)) == own
            };
            let here = place.cell.index[axis];
            let above = (here + 1..here + enough).take_while(like).count() as i64;
            let below = (1..enough).map(|d| here - d).take_while(like).count() as i64;
            (above + below + 1 < enough)
                .then(|| (axis, Interval::new(here - below, here + above + 1)))
        })
    }

    /// An upper bound of [`Step::vigour`] over a box: for all values that coefficients have there, and for all branches
    /// and updates that act. That of a cell is its own.
    fn vigour(&self, zone: Region) -> f64 {
        let step = match zone.volume() {
            1 => return self.vigour_in(zone.map(|i| i.lo)),
            _ => Step::bound(self.scheme, &self.bounds.spans(zone, &self.used)),
        };
        match step {
            Ok(step) => Some(step.vigour())
                .filter(|v| v.is_finite())
                .unwrap_or(f64::INFINITY),
            // Smaller boxes may have bounds.
            Err(NoStep::NotFinite { .. }) => f64::INFINITY,
            // Nonlinear updates are found later.
            Err(_) => f64::NAN,
        }
    }

    /// The same for the cells of a form alone.
    fn vigour_of(&self, form: &Form, zone: Region) -> f64 {
        let possible = self.forms.possible(zone);
        match possible.is_none_or(|forms| forms.contains(form)) {
            true => self.vigour(zone),
            false => f64::NEG_INFINITY,
        }
    }

    /// The vigour of a cell; of a last one, of its upper faces too.
    fn vigour_in(&self, at: PerAxis<i64>) -> f64 {
        let grid = &self.scheme.grid;
        let mut cells = vec![Cell::from(at)];
        for axis in grid.present() {
            if at[axis] == grid.cells[axis] - 1 && !grid.is_periodic(axis) {
                let upper: Vec<Cell> = cells
                    .iter()
                    .map(|cell| {
                        let mut above = *cell;
                        above.upper[axis] = true;
                        above
                    })
                    .collect();
                cells.extend(upper);
            }
        }
        let own = setting(self.scheme, self.files, at);
        let settings = cells.into_iter().filter_map(|cell| {
            let setting = setting(self.scheme, self.files, cell);
            (setting.active == own.active).then_some(setting)
        });
        let vigours = settings.map(|setting| match Step::new(self.scheme, &setting) {
            Ok(step) => Some(step.vigour())
                .filter(|v| v.is_finite())
                .unwrap_or(f64::NEG_INFINITY),
            // A cell without bounds is no place of waves.
            Err(NoStep::NotFinite { .. }) => f64::NEG_INFINITY,
            Err(_) => f64::NAN,
        });
        vigours.reduce(f64::max).unwrap_or(f64::NEG_INFINITY)
    }
}
