//! The places whose coefficients decide: where they are extreme.
//!
//! Coefficients are expressions of the place, so their extremes are found by halving boxes of cells, of which the
//! ranges of the expressions ([`crate::host_range`]) leave few: no array has to be filled, and no small body is missed
//! between samples. Where statements are confined to regions, each region has extremes of its own.

use super::cost::{Cost, Patience};
use super::linear::choices;
use super::step::{NoStep, Setting, Step};
use crate::distinct::distinct;
use crate::host_range::{HostBox, Range, range};
use crate::lattice::{Axis, HalfIndex, Interval, Offset, PerAxis, Position, Region};
use crate::scheme::{CoefId, FileId, Op, Scheme, Update};
use crate::statics::{Files, coef_value, coordinates};
use crate::taken::is_taken;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Boxes that are looked at for the extreme of a coefficient, and of a step's vigour, which takes longer.
const BOXES: usize = 1000;
const VIGOUR_BOXES: usize = 1000;
/// Coefficients whose extremes are looked for one by one.
const COEFS: usize = 24;
/// Regions with statements of their own.
const ZONES: usize = 64;
/// Cells per axis of the blocks that the extremes of files are kept for.
const BLOCK: i64 = 16;

/// A cell with one face across each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub index: PerAxis<i64>,
    /// Whether the face is the upper one.
    pub upper: PerAxis<bool>,
}

impl From<PerAxis<i64>> for Cell {
    /// With its lower faces, which have the indices of the cell.
    fn from(index: PerAxis<i64>) -> Self {
        Self {
            index,
            upper: PerAxis::splat(false),
        }
    }
}

/// A place with the coefficients and the updates that act there.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub cell: Cell,
    pub setting: Setting,
}

/// The places that decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Places {
    /// With different settings, the most vigorous first.
    pub list: Vec<Place>,
    /// Per set of updates that act together somewhere: every coefficient at its largest absolute value in that zone,
    /// whether or not these occur at one place. Empty where one place has them all.
    pub combined: Vec<Setting>,
    /// Regions too thin for waves in them to mean anything: their bounds along an axis.
    pub thin: Vec<(Axis, Interval)>,
}

/// By coefficient whether the waves of a scheme depend on it. Amendments are not part of the analysis: the profiles
/// of layers would only give many places whose steps are the same.
fn of_waves(scheme: &Scheme) -> Vec<bool> {
    let mut used = vec![false; scheme.coefs.len()];
    for update in scheme.stages.iter().flat_map(|s| &s.updates) {
        for op in &update.body.ops {
            if let Op::Coef(id) = op {
                used[id.index()] = true;
            }
        }
        if let Some(mask) = update.mask {
            used[mask.index()] = true;
        }
    }
    used
}

/// The value of a coefficient at an index, or 0 where it is no finite number and no update takes it.
fn coef_of_waves(scheme: &Scheme, files: &dyn Files, id: CoefId, at: PerAxis<i64>) -> f64 {
    let coef = &scheme.coefs[id.index()];
    let value = coef_value(scheme, files, coef.position, &coef.value, at);
    match scheme.precision.round(value).is_finite() || is_taken(scheme, files, id, at) {
        true => value,
        false => 0.0,
    }
}

/// The setting at a cell: coefficients at its middle and at its faces, or 0 where no wave depends on them.
pub fn setting(scheme: &Scheme, files: &dyn Files, cell: impl Into<Cell>) -> Setting {
    let cell: Cell = cell.into();
    let near = |position: Position, extent: Region| {
        PerAxis::from_fn(|a| {
            let is_above = cell.upper[a] && !position[a].is_half();
            let Interval { lo, hi } = extent[a];
            let index = scheme
                .grid
                .around(a, cell.index[a] + i64::from(is_above), lo);
            index.clamp(lo, (hi - 1).max(lo))
        })
    };
    let coefs: Vec<f64> = scheme
        .coefs
        .iter()
        .zip(of_waves(scheme))
        .enumerate()
        .map(|(index, (coef, used))| {
            if !used {
                return 0.0;
            }
            let at = near(coef.position, scheme.grid.extent(coef.position));
            let value = coef_of_waves(scheme, files, CoefId(index as u32), at);
            scheme.precision.round(value)
        })
        .collect();
    let acts = |update: &Update| {
        let position = scheme.component(update.target).position;
        let live = scheme.grid.live(position);
        let masked = update.mask.is_some_and(|m| coefs[m.index()] == 0.0);
        update.region.contains(near(position, live)) && !masked
    };
    let active = scheme
        .stages
        .iter()
        .map(|s| s.updates.iter().map(acts).collect())
        .collect();
    Setting { coefs, active }
}

/// The places that decide about a scheme.
pub fn places(scheme: &Scheme, files: &dyn Files, patience: Patience) -> Result<Places, NoStep> {
    Cost::new(scheme).allow(1, patience)?;
    let (zones, thin) = zones(scheme);
    places_of(scheme, files, zones, thin, patience)
}

/// The places that decide in some boxes.
pub fn places_in(
    scheme: &Scheme,
    files: &dyn Files,
    boxes: &[Region],
    patience: Patience,
) -> Result<Places, NoStep> {
    Cost::new(scheme).allow(1, patience)?;
    let (zones, _) = zones(scheme);
    let parts = zones.iter().flat_map(|zone| {
        let within = boxes.iter().map(|own| own.intersect(*zone));
        within.filter(|part| !part.is_empty())
    });
    places_of(scheme, files, parts.collect(), Vec::new(), patience)
}

fn places_of(
    scheme: &Scheme,
    files: &dyn Files,
    zones: Vec<Region>,
    mut thin: Vec<(Axis, Interval)>,
    patience: Patience,
) -> Result<Places, NoStep> {
    let cost = Cost::new(scheme);
    let search = Search {
        scheme,
        used: of_waves(scheme),
        files,
        bounds: FileBounds::new(scheme, files),
        boxes: cost.boxes(zones.len(), VIGOUR_BOXES),
    };
    let mut found: Vec<Place> = Vec::new();
    let mut combined = Vec::new();
    for zone in zones {
        let first = found.len();
        for at in search.extremes(zone) {
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
        combined.extend(extreme_settings(&found[first..]));
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
        combined.retain(|c: &Setting| thick.iter().any(|p| p.setting.active == c.active));
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
    })
}

/// For each set of updates that act at some of the places: all coefficients at their largest absolute values among
/// them.
pub fn extreme_settings(places: &[Place]) -> Vec<Setting> {
    let mut extremes: Vec<Setting> = Vec::new();
    for place in places {
        let same = |s: &&mut Setting| s.active == place.setting.active;
        match extremes.iter_mut().find(same) {
            None => extremes.push(place.setting.clone()),
            Some(extreme) => {
                for (e, c) in extreme.coefs.iter_mut().zip(&place.setting.coefs) {
                    if c.abs() > e.abs() {
                        *e = *c;
                    }
                }
            }
        }
    }
    extremes
}

/// The boxes that the ends of the updates' regions cut the domain into, without boxes that are thinner than twice the
/// reach of reads.
fn zones(scheme: &Scheme) -> (Vec<Region>, Vec<(Axis, Interval)>) {
    let grid = &scheme.grid;
    let reach = scheme.reach();
    let mut thin = Vec::new();
    let mut zones = vec![Region::from_fn(|a| Interval::new(0, grid.cells[a]))];
    for axis in grid.present() {
        let mut cuts = vec![0, grid.cells[axis]];
        for update in scheme.stages.iter().flat_map(|s| &s.updates) {
            let live = grid.live(scheme.component(update.target).position)[axis];
            let Interval { lo, hi } = update.region[axis];
            if !update.region.is_empty() {
                cuts.extend((lo > live.lo).then_some(lo));
                cuts.extend((hi < live.hi).then_some(hi));
            }
        }
        let cuts = distinct(cuts);
        let least = 2 * i64::from(reach[axis].into_iter().max().unwrap_or(0));
        let mut parts: Vec<Interval> = cuts.windows(2).map(|w| Interval::new(w[0], w[1])).collect();
        if parts.len() > 1 {
            thin.extend(parts.iter().filter(|p| p.len() < least).map(|p| (axis, *p)));
            let thick: Vec<Interval> = parts.iter().copied().filter(|p| p.len() >= least).collect();
            if !thick.is_empty() && zones.len() * thick.len() <= ZONES {
                parts = thick;
            } else {
                parts = vec![Interval::new(0, grid.cells[axis])];
            }
        }
        zones = zones
            .iter()
            .flat_map(|zone| {
                parts.iter().map(|p| {
                    let mut zone = *zone;
                    zone[axis] = *p;
                    zone
                })
            })
            .collect();
    }
    (zones, thin)
}

struct Search<'a> {
    scheme: &'a Scheme,
    /// By coefficient whether waves depend on it.
    used: Vec<bool>,
    files: &'a dyn Files,
    bounds: FileBounds<'a>,
    /// Boxes in which a step's vigour is looked for.
    boxes: usize,
}

impl Search<'_> {
    /// Cells of a zone where coefficients are largest or smallest, where a step is most vigorous, and the middle.
    fn extremes(&self, zone: Region) -> Vec<PerAxis<i64>> {
        let mut found = vec![zone.map(|i| i.lo + (i.len() - 1).max(0) / 2)];
        let varying: Vec<usize> = (0..self.scheme.coefs.len())
            .filter(|&c| self.used[c] && !self.range(c, zone).is_point())
            .collect();
        for &coef in varying.iter().take(COEFS) {
            found.push(self.highest(zone, BOXES, |part| self.range(coef, part).hi));
            found.push(self.highest(zone, BOXES, |part| -self.range(coef, part).lo));
        }
        if varying.len() > 1 {
            found.push(self.highest(zone, self.boxes, |part| self.vigour(part)));
        }
        found
    }

    /// The cell of a zone with the highest value of a function that is given by upper bounds over boxes, exact ones
    /// over cells.
    fn highest(&self, zone: Region, boxes: usize, bound: impl Fn(Region) -> f64) -> PerAxis<i64> {
        let middle = |r: Region| r.map(|i| i.lo + (i.len() - 1).max(0) / 2);
        let cell = |at: PerAxis<i64>| at.map(|i| Interval::new(i, i + 1));
        let mut best = (middle(zone), bound(cell(middle(zone))));
        let mut queue = BinaryHeap::from([Candidate {
            bound: bound(zone),
            zone,
        }]);
        for _ in 0..boxes {
            let Some(Candidate { bound: top, zone }) = queue.pop() else {
                break;
            };
            // Bounds and values of the same expression differ by rounding.
            if top <= best.1 + 1e-12 * best.1.abs() || top.is_nan() {
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
                let mut half = zone;
                half[axis] = part;
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
        let own = self.form(&place.setting);
        grid.present().find_map(|axis| {
            let enough = 2 * i64::from(reach[axis].into_iter().max().unwrap_or(0));
            let enough = enough.min(grid.cells[axis]);
            let like = |index: &i64| {
                let mut cell = place.cell;
                cell.index[axis] = grid.around(axis, *index, 0);
                let inside = (0..grid.cells[axis]).contains(&cell.index[axis]);
                inside && self.form(&setting(self.scheme, self.files, cell)) == own
            };
            let here = place.cell.index[axis];
            let above = (here + 1..here + enough).take_while(like).count() as i64;
            let below = (1..enough).map(|d| here - d).take_while(like).count() as i64;
            (above + below + 1 < enough)
                .then(|| (axis, Interval::new(here - below, here + above + 1)))
        })
    }

    /// Which updates act, and which way their choices go.
    fn form(&self, setting: &Setting) -> (Vec<Vec<bool>>, Vec<Vec<bool>>) {
        let updates = self.scheme.stages.iter().flat_map(|s| &s.updates);
        let choices = updates.map(|u| choices(&u.body, &setting.coefs)).collect();
        (setting.active.clone(), choices)
    }

    /// The values of a coefficient over a box of cells.
    fn range(&self, coef: usize, zone: Region) -> Range {
        let id = CoefId(coef as u32);
        let coef = &self.scheme.coefs[coef];
        let extent = self.scheme.grid.extent(coef.position);
        let zone = Region::from_fn(|a| {
            // The last cell stands for the plane at the end, too.
            let last = zone[a].hi == self.scheme.grid.cells[a];
            let hi = if last { extent[a].hi } else { zone[a].hi };
            Interval::new(zone[a].lo.min(extent[a].hi - 1), hi.min(extent[a].hi))
        });
        let single = zone.volume() == 1;
        if single {
            let at = zone.map(|i| i.lo);
            return Range::point(coef_of_waves(self.scheme, self.files, id, at));
        }
        let cells = Cells {
            scheme: self.scheme,
            bounds: &self.bounds,
            position: coef.position,
            zone,
        };
        range(&coef.value, &cells)
    }

    /// [`Step::vigour`] with all coefficients at their largest absolute values in a box.
    fn vigour(&self, zone: Region) -> f64 {
        let coefs = (0..self.scheme.coefs.len())
            .map(|c| match self.used[c] {
                true => self.range(c, zone).size().min(f64::MAX),
                false => 0.0,
            })
            .collect();
        let active = self
            .scheme
            .stages
            .iter()
            .map(|s| vec![true; s.updates.len()])
            .collect();
        match Step::new(self.scheme, &Setting { coefs, active }) {
            Ok(step) => match step.vigour() {
                vigour if vigour.is_finite() => vigour,
                _ => Self::without_bounds(zone),
            },
            Err(NoStep::NotFinite { .. }) => Self::without_bounds(zone),
            // Nonlinear updates are found later.
            Err(_) => f64::NAN,
        }
    }

    /// The vigour where a coefficient has no bounds: smaller boxes may have some, and a cell is no place of waves.
    fn without_bounds(zone: Region) -> f64 {
        match zone.volume() {
            1 => f64::NEG_INFINITY,
            _ => f64::INFINITY,
        }
    }
}

/// A box that may have the highest value.
#[derive(Clone, Copy, PartialEq)]
struct Candidate {
    bound: f64,
    zone: Region,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound.total_cmp(&other.bound)
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A box of cells as expressions see it.
struct Cells<'a> {
    scheme: &'a Scheme,
    bounds: &'a FileBounds<'a>,
    position: Position,
    zone: Region,
}

impl HostBox for Cells<'_> {
    fn coordinate(&self, axis: Axis, by: HalfIndex) -> Range {
        let grid = &self.scheme.grid;
        coordinates(grid, axis, self.position[axis] + by, self.zone[axis])
    }

    fn file(&self, file: FileId, offset: Offset) -> Range {
        let grid = &self.scheme.grid;
        let extent = grid.extent(self.scheme.files[file.index()].position);
        let zone = Region::from_fn(|a| {
            let o = i64::from(offset[a]);
            let (lo, hi) = (self.zone[a].lo + o, self.zone[a].hi + o);
            if grid.is_periodic(a) && (lo < 0 || hi > extent[a].hi) {
                return extent[a];
            }
            let last = extent[a].hi - 1;
            Interval::new(lo.clamp(0, last), (hi - 1).clamp(0, last) + 1)
        });
        self.bounds.range(file, zone)
    }
}

/// The ranges of files over blocks of cells.
struct FileBounds<'a> {
    files: &'a dyn Files,
    /// By file the number of blocks per axis, and their ranges.
    blocks: Vec<(PerAxis<i64>, Vec<Range>)>,
}

impl<'a> FileBounds<'a> {
    fn new(scheme: &Scheme, files: &'a dyn Files) -> Self {
        let ids = (0..scheme.files.len() as u32).map(FileId);
        let used = |id: FileId| {
            let is = |e: &crate::host::HostExpr| matches!(e, crate::host::HostExpr::File { file, .. } if *file == id);
            scheme.coefs.iter().any(|c| c.value.any(&mut |e| is(e)))
        };
        let bounds = ids.map(|id| {
            let extent = scheme.grid.extent(scheme.files[id.index()].position);
            if !used(id) {
                return (PerAxis::splat(0), Vec::new());
            }
            let counts = PerAxis::from_fn(|a| (extent[a].hi + BLOCK - 1) / BLOCK);
            let mut ranges = Vec::new();
            for_each(counts.map(|n| Interval::new(0, n)), |block| {
                let part = Region::from_fn(|a| {
                    Interval::new(block[a] * BLOCK, (block[a] + 1) * BLOCK).intersect(extent[a])
                });
                let mut range = Range::WHOLE;
                let mut first = true;
                for_each(part, |at| {
                    let value = Range::point(files.value(id, at));
                    range = if first { value } else { range.hull(value) };
                    first = false;
                });
                ranges.push(range);
            });
            (counts, ranges)
        });
        Self {
            files,
            blocks: bounds.collect(),
        }
    }

    fn range(&self, file: FileId, zone: Region) -> Range {
        let (counts, ranges) = &self.blocks[file.index()];
        let mut range: Option<Range> = None;
        let mut add = |own: Range| range = Some(range.map_or(own, |r| r.hull(own)));
        if zone.volume() <= BLOCK.pow(3) as u64 {
            for_each(zone, |at| add(Range::point(self.files.value(file, at))));
            return range.unwrap_or(Range::WHOLE);
        }
        let blocks = zone.map(|i| Interval::new(i.lo / BLOCK, (i.hi - 1) / BLOCK + 1));
        for_each(blocks, |block| {
            let index = Axis::ALL.iter().fold(0, |n, &a| n * counts[a] + block[a]);
            let own = ranges.get(index as usize).copied().unwrap_or(Range::WHOLE);
            add(own);
        });
        range.unwrap_or(Range::WHOLE)
    }
}

fn for_each(region: Region, f: impl FnMut(PerAxis<i64>)) {
    crate::lattice::for_each_index(region, f);
}
