//! The search of places in the zones of a part of a scheme.

use super::boxes::{Boxes, Candidate};
use super::cells::{Cell, Place, middle, of_waves, setting};
use super::forms::{Form, Forms};
use super::parts::Part;
use super::step::{NoStep, Setting, Step};
use crate::host_range::Range;
use crate::lattice::{Axis, Interval, PerAxis, Region};
use crate::scheme::{ComponentId, Scheme};
use crate::statics::Files;
use std::collections::BinaryHeap;

/// How much is looked for.
#[derive(Clone, Copy)]
pub struct Extent {
    /// Boxes in which a step's vigour is looked for.
    pub boxes: usize,
    /// Boxes in which the extreme of a coefficient is looked for.
    pub coef_boxes: usize,
    /// Coefficients whose extremes are looked for one by one.
    pub coefs: usize,
}

pub struct Search<'a> {
    /// A scheme with the updates of one part.
    pub scheme: &'a Scheme,
    pub part: &'a Part,
    pub files: &'a dyn Files,
    pub bounds: &'a Boxes<'a>,
    pub forms: Forms<'a>,
    pub extent: Extent,
    /// By coefficient whether waves depend on it.
    used: Vec<bool>,
}

/// The cells that were found in a zone.
pub struct Extremes {
    pub cells: Vec<PerAxis<i64>>,
    /// Whether the cells have all forms.
    pub has_all_forms: bool,
    /// Coefficients that vary, and whose extremes were not looked for.
    pub unsearched: usize,
}

/// Cells beside one that make a more vigorous step with it.
pub struct Beside {
    /// With the same updates and branches.
    pub alike: Option<Place>,
    /// At a seam.
    pub mixed: Option<Place>,
}

impl<'a> Search<'a> {
    pub fn new(
        scheme: &'a Scheme,
        part: &'a Part,
        bounds: &'a Boxes<'a>,
        forms: Forms<'a>,
        extent: Extent,
    ) -> Self {
        Self {
            used: of_waves(scheme),
            files: bounds.files,
            scheme,
            part,
            bounds,
            forms,
            extent,
        }
    }

    pub fn setting(&self, cell: impl Into<Cell>) -> Setting {
        setting(self.scheme, self.files, cell)
    }

    pub fn step(&self, setting: &Setting) -> Result<Step, NoStep> {
        Step::of_part(self.scheme, setting, self.part)
    }

    /// Cells of a zone where coefficients are largest or smallest, where a step is most vigorous, also among the cells
    /// of each form, and the middle. All forms are looked for with some work.
    pub fn extremes(&self, zone: &[Region], work: u64) -> Extremes {
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
        let Extent {
            boxes,
            coef_boxes,
            coefs,
        } = self.extent;
        for &coef in varying.iter().take(coefs) {
            found.push(self.highest(zone, middle, coef_boxes, |part| range(coef, part).hi));
            found.push(self.highest(zone, middle, coef_boxes, |part| -range(coef, part).lo));
        }
        let has_media = varying.iter().any(|c| !self.forms.is_condition(*c));
        let mut vigorous = Vec::new();
        if varying.len() > 1 {
            vigorous.push(self.highest(zone, middle, boxes, |part| self.vigour(part, None)));
        }
        let forms = self.forms.find(zone, work, |p| self.thinnest(p).is_some());
        let each = (boxes / forms.places.len().max(1)).max(8);
        for place in &forms.places {
            let (at, form) = (place.cell.index, self.forms.form(&place.setting));
            found.push(at);
            if has_media && forms.places.len() > 1 {
                vigorous.push(self.highest(zone, at, each, |part| self.vigour_of(&form, part)));
            }
        }
        if has_media {
            // Where values do not depend on each other, vigorous values hide others.
            for component in self.hidden(vigorous.iter().chain([&middle])) {
                let bound = |part| self.vigour(part, Some(component));
                vigorous.push(self.highest(zone, middle, boxes, bound));
            }
        }
        found.extend(vigorous);
        Extremes {
            cells: found,
            has_all_forms: forms.is_complete,
            unsearched: varying.len().saturating_sub(coefs),
        }
    }

    /// A component of each block of values that is not the only one in some cells.
    fn hidden<'c>(&self, cells: impl Iterator<Item = &'c PerAxis<i64>>) -> Vec<ComponentId> {
        let mut known: Vec<Vec<ComponentId>> = Vec::new();
        for cell in cells {
            let Ok(step) = self.step(&self.setting(*cell)) else {
                continue;
            };
            let blocks = step.blocks();
            for block in blocks.iter().filter(|_| blocks.len() > 1) {
                let components: Vec<ComponentId> = step.components(block).collect();
                if !known.contains(&components) {
                    known.push(components);
                }
            }
        }
        known
            .iter()
            .filter_map(|own| own.first().copied())
            .collect()
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
    pub fn most_vigorous_beside(&self, own: &Place) -> Beside {
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
        let vigour =
            |setting: &Setting| self.step(setting).map_or(f64::NEG_INFINITY, |s| s.vigour());
        let least = vigour(&own.setting) + 1e-9;
        let form = self.forms.form(&own.setting);
        let [mut alike, mut mixed]: [Option<(f64, Place)>; 2] = [None, None];
        for cell in cells {
            let setting = self.setting(cell);
            let found = match setting == own.setting {
                true => continue,
                false => vigour(&setting),
            };
            let best = match self.forms.form(&setting) == form {
                true => &mut alike,
                false => &mut mixed,
            };
            let most = best.as_ref().map_or(least, |(most, _)| *most);
            if found > most {
                *best = Some((found, Place { cell, setting }));
            }
        }
        let [alike, mixed] = [alike, mixed].map(|best| best.map(|(_, place)| place));
        Beside { alike, mixed }
    }

    /// The axis along which, and the cells in which, the same updates act and the same choices are made as at a place,
    /// where these are fewer than twice the reach of reads.
    pub fn thinnest(&self, place: &Place) -> Option<(Axis, Interval)> {
        self.thinner_than(place, self.scheme.reach())
    }

    /// The same where these are fewer than twice some reach.
    pub fn thinner_than(
        &self,
        place: &Place,
        reach: PerAxis<[i32; 2]>,
    ) -> Option<(Axis, Interval)> {
        let grid = &self.scheme.grid;
        let own = self.forms.form(&place.setting);
        grid.present().find_map(|axis| {
            let enough = 2 * i64::from(reach[axis].into_iter().max().unwrap_or(0));
            let enough = enough.min(grid.cells[axis]);
            let like = |index: &i64| {
                let mut cell = place.cell;
                cell.index[axis] = grid.around(axis, *index, 0);
                let inside = (0..grid.cells[axis]).contains(&cell.index[axis]);
                inside && self.forms.form(&self.setting(cell)) == own
            };
            let here = place.cell.index[axis];
            let above = (here + 1..here + enough).take_while(like).count() as i64;
            let below = (1..enough).map(|d| here - d).take_while(like).count() as i64;
            (above + below + 1 < enough)
                .then(|| (axis, Interval::new(here - below, here + above + 1)))
        })
    }

    /// An upper bound of [`Step::vigour`] over a box, of all values or of the block of one component: for all values
    /// that coefficients have there, and for all branches and updates that act. That of a cell is its own.
    fn vigour(&self, zone: Region, component: Option<ComponentId>) -> f64 {
        let step = match zone.volume() {
            1 => return self.vigour_in(zone.map(|i| i.lo), component),
            _ => Step::bound(self.scheme, &self.bounds.spans(zone, &self.used), self.part),
        };
        // Smaller boxes may have bounds.
        let vigour = step.map(|step| vigour_of_step(&step, component));
        vigour
            .ok()
            .filter(|v| v.is_finite())
            .unwrap_or(f64::INFINITY)
    }

    /// The same for the cells of a form alone.
    fn vigour_of(&self, form: &Form, zone: Region) -> f64 {
        let possible = self.forms.possible(zone);
        match possible.is_none_or(|forms| forms.contains(form)) {
            true => self.vigour(zone, None),
            false => f64::NEG_INFINITY,
        }
    }

    /// The vigour of a cell; of a last one, of its upper faces too. A cell without bounds, or with an update that is
    /// not linear, is no place of waves.
    fn vigour_in(&self, at: PerAxis<i64>, component: Option<ComponentId>) -> f64 {
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
        let own = self.setting(at);
        let settings = cells.into_iter().filter_map(|cell| {
            let setting = self.setting(cell);
            (setting.active == own.active).then_some(setting)
        });
        let vigours = settings.filter_map(|setting| {
            let vigour = vigour_of_step(&self.step(&setting).ok()?, component);
            Some(vigour).filter(|v| v.is_finite())
        });
        vigours.reduce(f64::max).unwrap_or(f64::NEG_INFINITY)
    }
}

fn vigour_of_step(step: &Step, component: Option<ComponentId>) -> f64 {
    match component {
        Some(component) => step.vigour_with(component),
        None => step.vigour(),
    }
}
