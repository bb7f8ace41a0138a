//! A plane wave of a scheme: one array for each component and version that is kept.
//!
//! In a wave along m = (m_x, m_y, m_z), whole numbers, the values of a component at all cells I with the same m . I are
//! equal. So a read from I + D becomes one from m . I + m . D, and an update of the grid becomes one of a line whose
//! points are numbered by m . I; reads of equal points are merged, and cancel where m is 0 along the axis of a
//! difference. The line is stable whenever the scheme is, since its waves are waves of the scheme. Where m lies along
//! an axis, the medium may vary along it: then points have the taps of their own medium.
//!
//! At a place before the boxes sources drive the wave, which goes both ways. All components are driven at one position
//! of the line, where m . (I + stagger) is the same; a component that has no value there gets it in parts at its two
//! neighbours, without which the polarisation would be another one by -40 dB. The position is the middle of some cells
//! over which the drive is spread ([`Spread`]). At both ends values lose a part in each step that rises with the third
//! power of the depth ([`Ends`]).

mod deep;
mod ends;
mod spread;

use super::background::Background;
use super::fault::Fault;
use super::shell::{OddAtMirror, Shell};
use crate::host::HostExpr;
use crate::lattice::PerAxis;
use crate::problem::PlaneWave;
use crate::scheme::{ComponentId, Grid, Scheme};
use crate::statics::{Files, GridPoint, physical_time};
use ends::{Ends, OwnUpdate};
use spread::Spread;
use std::ops::Range;

/// The depth of an absorbing end, in cells along the wave ([`cell_along`]).
const DEPTH: f64 = 100.0;

/// The depth of an end where waves are such that losses reflect them, which they do not notice in ends that are deep
/// beside their length ([`Line::needs_deep_ends`]). Of a plasma wave of 230 cells, at 1.07 times the cutoff frequency,
/// 0.37 came back from 100 cells, and 0.004 or less from 1000.
const DEEP: f64 = 2000.0;

/// The most points of a line.
const MOST_POINTS: i128 = 1 << 20;

/// A version of a component on the line: an index into its arrays.
pub type Slot = usize;

/// A value that an update reads.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tap {
    slot: Slot,
    shift: i64,
    weight: f64,
}

/// An update on the line.
#[derive(Clone, Debug)]
struct Row {
    target: ComponentId,
    /// In ascending order of points, without gaps.
    layers: Vec<Layer>,
}

impl Row {
    fn taps(&self) -> impl Iterator<Item = &Tap> {
        self.layers.iter().flat_map(|layer| &layer.taps)
    }
}

/// The reads of an update at the points of a medium.
#[derive(Clone, Debug)]
struct Layer {
    /// The number m . I of the point at which the next one begins.
    until: i64,
    taps: Vec<Tap>,
}

/// A source of the line.
#[derive(Clone, Debug)]
struct Driver {
    component: ComponentId,
    wave: HostExpr,
    /// Indices into the array, and the part that each gets.
    parts: Vec<(usize, f64)>,
}

/// Adds weighted values to sums, tap after tap.
pub(super) fn add_weighted<'v>(sums: &mut [f64], mut taps: impl Iterator<Item = (&'v [f64], f64)>) {
    // Several taps at a time, so that sums stay in registers from one to the next.
    loop {
        match [taps.next(), taps.next(), taps.next(), taps.next()] {
            [Some(a), Some(b), Some(c), Some(d)] => add_each(sums, [a, b, c, d]),
            [Some(a), Some(b), Some(c), None] => return add_each(sums, [a, b, c]),
            [Some(a), Some(b), None, _] => return add_each(sums, [a, b]),
            [Some(a), None, ..] => return add_each(sums, [a]),
            [None, ..] => return,
        }
    }
}

fn add_each<const N: usize>(sums: &mut [f64], taps: [(&[f64], f64); N]) {
    let count = sums.len();
    let taps = taps.map(|(values, weight)| (&values[..count], weight));
    for (n, sum) in sums.iter_mut().enumerate() {
        *sum = taps
            .iter()
            .fold(*sum, |sum, (values, weight)| sum + weight * values[n]);
    }
}

/// A plane wave after some steps and stages.
#[derive(Clone, Debug)]
pub struct Line {
    direction: PerAxis<i64>,
    /// The number m . I of the first point.
    start: i64,
    /// How far from the ends updates act.
    margin: usize,
    /// Per component the slot of its newest version; the older ones follow.
    first: Vec<Slot>,
    slots: Vec<Vec<f64>>,
    /// By stage.
    rows: Vec<Vec<Row>>,
    drivers: Vec<Driver>,
    /// By component.
    ends: Vec<Option<Ends>>,
    /// Room for a new version, one for each update of a stage.
    fresh: Vec<Vec<f64>>,
}

/// How far a line reaches.
struct Extent {
    /// The numbers of the first and the last point of the boxes.
    span: [i64; 2],
    /// How far the components of a cell lie from it, at most.
    shift: i64,
    /// The points of an absorbing end.
    depth: f64,
}

impl Extent {
    /// `depth`: of an absorbing end, in cells along the wave ([`cell_along`]).
    fn new(scheme: &Scheme, m: PerAxis<i64>, shells: &[Shell<'_>], depth: f64) -> Extent {
        let spans = shells.iter().map(|shell| shell.span(m));
        Extent {
            span: spans
                .reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])])
                .unwrap_or([0, 0]),
            shift: m.iter().map(|(_, m)| m.abs()).sum::<i64>() / 2 + 1,
            depth: (depth * Self::points_per_cell(scheme, m)).ceil(),
        }
    }

    /// Points of a line in the direction m in a cell along the wave.
    fn points_per_cell(scheme: &Scheme, m: PerAxis<i64>) -> f64 {
        cell_along(&scheme.grid, m) * point_density(&scheme.grid, m)
    }
}

/// The number of points of a line in the direction m in a unit of length.
fn point_density(grid: &Grid, m: PerAxis<i64>) -> f64 {
    let steep = grid
        .present()
        .map(|a| (m[a] as f64 / grid.spacing[a]).powi(2));
    steep.sum::<f64>().sqrt()
}

/// The length of which an absorbing end has some hundred: the smallest cell size, but at least the way in which a wave
/// in the direction m passes a cell along the axis that it crosses at the most points. Waves that are resolved have
/// several of these in a wavelength, however unlike cell sizes are.
pub fn cell_along(grid: &Grid, m: PerAxis<i64>) -> f64 {
    let sizes = grid.present().map(|a| grid.spacing[a]);
    let smallest = sizes.fold(f64::INFINITY, f64::min);
    let most = m.iter().map(|(_, m)| m.abs()).max().unwrap_or(0);
    let along = most as f64 / point_density(grid, m);
    // Rounding is no longer way.
    match along > smallest * (1.0 + 1e-9) {
        true => along,
        false => smallest,
    }
}

/// Refuses a line in the direction m that would be too long in any medium.
pub(super) fn check_length(
    scheme: &Scheme,
    m: PerAxis<i64>,
    shells: &[Shell<'_>],
) -> Result<(), Fault> {
    check_extent(m, &Extent::new(scheme, m, shells, DEPTH), 1)
}

/// Refuses a line in the direction m that would be too long, with updates that read up to `margin` points away.
fn check_extent(m: PerAxis<i64>, extent: &Extent, margin: i64) -> Result<(), Fault> {
    let &Extent {
        span: [lo, hi],
        shift,
        depth,
    } = extent;
    let most = m.iter().map(|(_, m)| m.abs()).max().unwrap_or(0);
    let steps = margin as f64 + shift as f64 + most as f64;
    let points = depth * 2.0 + (hi as f64 - lo as f64) + 8.0 * steps;
    if points.is_nan() || points >= MOST_POINTS as f64 {
        return Err(Fault::TooLong {
            points: points as i128,
        });
    }
    Ok(())
}

impl Line {
    /// The line of a wave before the first step, long enough for some boxes. A fault comes with the index of its box.
    pub fn new(
        scheme: &Scheme,
        wave: &PlaneWave,
        shells: &[Shell<'_>],
        files: &dyn Files,
    ) -> Result<Line, (usize, Fault)> {
        let mut first = Vec::new();
        let mut count = 0;
        for component in &scheme.components {
            first.push(count);
            count += usize::from(component.time_levels);
        }
        let mut line = Line {
            direction: wave.direction,
            start: 0,
            margin: 0,
            first,
            slots: vec![Vec::new(); count],
            rows: Vec::new(),
            drivers: Vec::new(),
            ends: Vec::new(),
            fresh: Vec::new(),
        };
        let part = read_elsewhere(scheme);
        for stage in &scheme.stages {
            let mut rows = Vec::new();
            for update in &stage.updates {
                let Some(shell) = shells.first() else {
                    continue;
                };
                if !part[update.target.index()] {
                    continue;
                }
                let mut background = Background::new(shell, update, wave.direction);
                for (number, shell) in shells.iter().enumerate() {
                    let looked = background.look(shell, files, update);
                    looked.map_err(|fault| (number, fault))?;
                }
                let layers = background.layers().map_err(|fault| (0, fault))?;
                let layers = layers.iter().map(|layer| Layer {
                    until: layer.until,
                    taps: line.taps(layer.weights.as_ref().as_ref().map_or(&[], Vec::as_slice)),
                });
                let layers: Vec<Layer> = layers.collect();
                if !layers.is_empty() {
                    rows.push(Row {
                        target: update.target,
                        layers,
                    });
                }
            }
            line.rows.push(rows);
        }
        line.check_mirrors(wave, shells)?;
        line.lay(scheme, wave, shells).map_err(|fault| (0, fault))?;
        Ok(line)
    }

    /// The taps of an update, equal ones merged. The rest of a sum by rounding is 0.
    fn taps(&self, weights: &[(crate::scheme::Read, f64)]) -> Vec<Tap> {
        let mut taps: Vec<Tap> = Vec::new();
        let mut sizes: Vec<f64> = Vec::new();
        for (read, weight) in weights {
            let along = self
                .direction
                .iter()
                .map(|(a, m)| m * i64::from(read.offset[a]));
            let tap = Tap {
                slot: self.slot(read.component, read.age),
                shift: along.sum(),
                weight: *weight,
            };
            let same = |t: &Tap| (t.slot, t.shift) == (tap.slot, tap.shift);
            match taps.iter().position(same) {
                Some(same) => {
                    taps[same].weight += tap.weight;
                    sizes[same] += tap.weight.abs();
                }
                None => {
                    taps.push(tap);
                    sizes.push(tap.weight.abs());
                }
            }
        }
        let mut sizes = sizes.into_iter();
        taps.retain(|t| t.weight.abs() > sizes.next().unwrap_or(0.0) * 8.0 * f64::EPSILON);
        taps
    }

    /// No component that is odd about a mirror may be part of a wave along it.
    fn check_mirrors(&self, wave: &PlaneWave, shells: &[Shell<'_>]) -> Result<(), (usize, Fault)> {
        let mut part = vec![false; self.first.len()];
        for drive in &wave.drives {
            part[drive.component.index()] = true;
        }
        let of = |slot: Slot| self.first.partition_point(|first| *first <= slot) - 1;
        let rows = || self.rows.iter().flatten();
        while let Some(row) = rows().find(|row| {
            let reads = row.taps().any(|tap| part[of(tap.slot)]);
            reads && !part[row.target.index()]
        }) {
            part[row.target.index()] = true;
        }
        for (number, shell) in shells.iter().enumerate() {
            let mut odd = shell.odd_at_mirrors().into_iter();
            if let Some(mirror) = odd.find(|mirror| part[mirror.component.index()]) {
                let OddAtMirror {
                    component,
                    axis,
                    upper,
                } = mirror;
                let fault = Fault::OddAtMirror {
                    axis,
                    upper,
                    component,
                };
                return Err((number, fault));
            }
        }
        Ok(())
    }

    /// Takes the arrays, with room for the places at faces, for the drivers and for the ends.
    fn lay(
        &mut self,
        scheme: &Scheme,
        wave: &PlaneWave,
        shells: &[Shell<'_>],
    ) -> Result<(), Fault> {
        let m = wave.direction;
        let farthest = self.rows.iter().flatten().flat_map(Row::taps);
        let margin = farthest.map(|tap| tap.shift.abs()).max().unwrap_or(0) + 1;
        let cells = match self.needs_deep_ends(scheme) {
            // As deep as there is room for, in directions of large numbers.
            true => {
                DEPTH.max(DEEP.min(MOST_POINTS as f64 / 4.0 / Extent::points_per_cell(scheme, m)))
            }
            false => DEPTH,
        };
        let loss = wave.loss * DEPTH / cells;
        let extent = Extent::new(scheme, m, shells, cells);
        check_extent(m, &extent, margin)?;
        let Extent {
            span: [lo, hi],
            shift,
            depth,
        } = extent;
        // Before the boxes: the drivers, then the end.
        let spread = Spread::new(m);
        let reach = spread.reach() as i64;
        let driver = lo - 2 * margin - 2 * shift - reach;
        let ends = [driver - 2 * margin - 2 * shift - reach, hi + margin + shift];
        self.start = ends[0] - depth as i64 - margin;
        self.margin = margin as usize;
        let length = (ends[1] + depth as i64 + margin + 1 - self.start) as usize;
        for slot in &mut self.slots {
            *slot = vec![0.0; length];
        }
        let staggers: Vec<f64> = scheme
            .component_ids()
            .map(|id| self.stagger(scheme, id))
            .collect();
        let stagger = |id: ComponentId| staggers[id.index()];
        for drive in &wave.drives {
            let place = driver as f64 - stagger(drive.component) - self.start as f64;
            self.drivers.push(Driver {
                component: drive.component,
                wave: drive.wave.clone(),
                parts: spread.at(place),
            });
        }
        for id in scheme.component_ids() {
            let updated = |stage: &Vec<Row>| stage.iter().any(|row| row.target == id);
            let last = self.rows.iter().rposition(updated);
            self.ends.push(last.map(|stage| {
                let left = (0..length).map(|i| {
                    let place = (i as i64 + self.start) as f64 + stagger(id);
                    let beyond = (ends[0] as f64 - place).max(place - ends[1] as f64);
                    let u = (beyond / depth).clamp(0.0, 1.0);
                    (-loss * u * u * u).exp()
                });
                let mut ends = Ends::new(stage, left.collect());
                if let Some(layers) = self.waves_alone(scheme, id) {
                    ends.match_outward(|i| {
                        let point = i as i64 + self.start;
                        let layer = layers.iter().find(|layer| point < layer.until);
                        layer.map(|layer| self.own_update(id, layer))
                    });
                }
                ends
            }));
        }
        Ok(())
    }

    /// In the numbers of points, how far from its cell's a component lies.
    fn stagger(&self, scheme: &Scheme, id: ComponentId) -> f64 {
        let position = scheme.component(id).position;
        let along = self.direction.iter().map(|(a, m)| m * position[a].0);
        along.sum::<i64>() as f64 / 2.0
    }

    /// The slots of a component.
    fn slots_of(&self, id: ComponentId) -> Range<Slot> {
        let end = self.first.get(id.index() + 1).copied();
        self.first[id.index()]..end.unwrap_or(self.slots.len())
    }

    /// The update of a component that makes waves alone: from two versions of its own, once in a step.
    fn waves_alone(&self, scheme: &Scheme, id: ComponentId) -> Option<&[Layer]> {
        let mut rows = self.rows.iter().flatten().filter(|row| row.target == id);
        let (row, None) = (rows.next()?, rows.next()) else {
            return None;
        };
        let own = [self.slot(id, 0), self.slot(id, 1)];
        let alone = row.taps().all(|tap| own.contains(&tap.slot));
        (scheme.component(id).time_levels == 2 && alone).then_some(&row.layers)
    }

    /// The update of a component that makes waves alone.
    fn own_update(&self, id: ComponentId, layer: &Layer) -> OwnUpdate {
        let newest = layer.taps.iter().filter(|tap| tap.slot == self.slot(id, 0));
        let newest: Vec<(i64, f64)> = newest.map(|tap| (tap.shift, tap.weight)).collect();
        let squares = newest
            .iter()
            .map(|(shift, weight)| weight * (shift * shift) as f64);
        let speed = (squares.sum::<f64>() / 2.0).max(0.0).sqrt();
        OwnUpdate { newest, speed }
    }

    /// The slot of a version: 0 is the newest.
    pub fn slot(&self, component: ComponentId, age: u8) -> Slot {
        self.first[component.index()] + usize::from(age)
    }

    /// The point of a cell: an index into the arrays of slots.
    pub fn point(&self, at: PerAxis<i64>) -> i64 {
        at.iter().map(|(a, i)| self.direction[a] * i).sum::<i64>() - self.start
    }

    /// How far the point moves with a cell's index along each axis.
    pub fn shift(&self) -> PerAxis<i64> {
        self.direction
    }

    /// Multiplications of a step.
    pub fn operations(&self) -> u64 {
        let length = self.slots.first().map_or(0, Vec::len);
        let taps: usize = self
            .rows
            .iter()
            .flatten()
            .map(|row| row.taps().count())
            .sum();
        ((taps + self.slots.len()) * length) as u64
    }

    /// Bytes of the values, and of the factors at the ends.
    pub fn bytes(&self) -> u64 {
        let outward = self
            .ends
            .iter()
            .flatten()
            .filter(|ends| ends.outward.is_some());
        let arrays = self.slots.len() + self.ends.len() + outward.count();
        (arrays * self.slots.first().map_or(0, Vec::len) * size_of::<f64>()) as u64
    }

    /// The values of a version.
    pub fn values(&self, slot: Slot) -> &[f64] {
        &self.slots[slot]
    }

    /// Runs a stage of step `step`, counted from 0.
    pub fn advance(&mut self, scheme: &Scheme, files: &dyn Files, stage: usize, step: u64) {
        let length = self.slots.first().map_or(0, Vec::len);
        let inner = self.margin..length.saturating_sub(self.margin);
        let rows = std::mem::take(&mut self.rows);
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.resize(rows[stage].len().max(fresh.len()), Vec::new());
        for (row, new) in rows[stage].iter().zip(&mut fresh) {
            new.clear();
            new.resize(length, 0.0);
            let mut points = inner.start..inner.start;
            for layer in &row.layers {
                let until = layer.until.saturating_sub(self.start).max(0) as usize;
                points = points.end..until.clamp(points.end, inner.end);
                let taps = layer.taps.iter().map(|tap| {
                    let from = (points.start as i64 + tap.shift) as usize;
                    let values = &self.slots[tap.slot][from..from + points.len()];
                    (values, tap.weight)
                });
                add_weighted(&mut new[points.clone()], taps);
            }
        }
        for (row, new) in rows[stage].iter().zip(&mut fresh) {
            let id = row.target;
            let first = self.slot(id, 0);
            let kept = first..first + usize::from(scheme.component(id).time_levels);
            self.slots[kept.clone()].rotate_right(1);
            std::mem::swap(&mut self.slots[first], new);
            let ends = self.ends[id.index()].as_ref();
            let Some(ends) = ends.filter(|ends| ends.stage == stage) else {
                continue;
            };
            for driver in self.drivers.iter().filter(|d| d.component == id) {
                let value = driver.wave.eval(&GridPoint {
                    scheme,
                    files,
                    position: scheme.component(id).position,
                    at: PerAxis::splat(0),
                    time: physical_time(scheme, id, step as i64 + 1),
                });
                for (point, part) in &driver.parts {
                    self.slots[first][*point] += part * value;
                }
            }
            if let [newest, before] = &mut self.slots[kept.clone()] {
                ends.let_in(newest, before);
            }
            kept.for_each(|slot| ends.absorb(&mut self.slots[slot]));
        }
        self.rows = rows;
        self.fresh = fresh;
    }
}

/// By component: whether its values are read at other places than that of the value that is updated, or values that are
/// depend on it. No read of another component crosses a face.
fn read_elsewhere(scheme: &Scheme) -> Vec<bool> {
    let updates = || scheme.stages.iter().flat_map(|stage| &stage.updates);
    let mut part = vec![false; scheme.components.len()];
    for update in updates() {
        let at = scheme.component(update.target).position;
        for read in update.reads() {
            let from = scheme.component(read.component).position;
            part[read.component.index()] |= read.offset != PerAxis::splat(0) || from != at;
        }
    }
    loop {
        let of_parts = updates().filter(|update| part[update.target.index()]);
        let read = of_parts.flat_map(|update| update.reads());
        match read
            .map(|read| read.component.index())
            .find(|id| !part[*id])
        {
            Some(more) => part[more] = true,
            None => return part,
        }
    }
}

#[cfg(test)]
mod tests;
