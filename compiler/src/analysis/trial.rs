//! Growth with the coefficients that the cells really have.
//!
//! A wave in a uniform medium tells nothing about a place where coefficients change within a cell, as 1/r does near an
//! axis: there waves seem to grow with every step. A piece of the lattice around such a place is stepped from random
//! values instead, with zeros beyond it.

use super::cells::{Cell, setting};
use super::linear;
use super::step::{MOST_OF_OWN, Setting};
use super::sums::own_weight_of_sum;
use crate::lattice::{Axis, Interval, PerAxis, Region, for_each_index};
use crate::scheme::{Grid, Located, Scheme};
use crate::statics::Files;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Cells along each axis of a piece, by the number of axes.
const SIDES: [i64; 3] = [256, 32, 12];
/// Values that are read in all steps together: some 1.5 seconds.
const READS: f64 = 1.2e9;
/// Steps, each of which takes time of its own in a small piece, and has its growth kept.
const STEPS: f64 = 1e6;
/// Steps of a small piece, at least: growth with the coefficients of the cells may be slower than it was expected.
const LEAST_STEPS: f64 = 1000.0;
/// ln of the growth that a trial is long enough for, and the least that says something.
const FOLDS: f64 = 40.0;
const LEAST_FOLDS: f64 = 12.0;
/// ln of the growth in all steps from which on values grow: the energy of values that swing changes, too.
const GROWTH: f64 = 4.0;

/// ln of the growth in the second half of the steps so far from which on there is no doubt, and the least of these
/// steps.
const SURE_GROWTH: f64 = 50.0;
const LEAST_TO_GROW: usize = 64;

/// The result of some steps of a piece of the lattice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    pub cells: i64,
    pub steps: usize,
    /// ln of the growth per step of all values together; `None` where waves grow too slowly for a trial.
    pub rate: Option<f64>,
}

impl Trial {
    /// Whether values grow; `None` where that was not tried.
    pub fn grows(&self) -> Option<bool> {
        let steps = self.steps as f64;
        self.rate.map(|rate| rate * steps > GROWTH)
    }

    /// ln of the least growth per step that the steps would show.
    pub fn least_rate(&self) -> f64 {
        GROWTH / self.steps as f64
    }
}

/// A value that an update reads: by version ([`Values::version`]) and index into the piece.
struct Read {
    version: u32,
    index: u32,
    weight: f64,
}

/// The new values of a component in a stage.
struct Advance {
    component: usize,
    /// Indices into the piece, and the end of the reads of each in the list of all reads.
    rows: Vec<(u32, u32)>,
    reads: Vec<Read>,
}

/// The updates in a piece.
struct Updates {
    stages: Vec<Vec<Advance>>,
    /// Whether all cells have the coefficients of one.
    is_uniform: bool,
}

/// Where the values of one component are.
struct Placed {
    region: Region,
    /// The number of the newest of its versions.
    newest: usize,
    levels: usize,
}

impl Placed {
    fn index(&self, at: PerAxis<i64>) -> Option<u32> {
        self.region.contains(at).then(|| {
            let place = |n: i64, (a, i): (Axis, &Interval)| n * i.len() + at[a] - i.lo;
            self.region.iter().fold(0, place) as u32
        })
    }
}

/// The values of all components.
struct Values {
    components: Vec<Placed>,
    /// By version where its values begin.
    starts: Vec<usize>,
    list: Vec<f64>,
}

impl Values {
    /// Zeros in a piece, the end planes of the domain included.
    fn new(scheme: &Scheme, piece: Region) -> Self {
        let mut values = Self {
            components: Vec::new(),
            starts: Vec::new(),
            list: Vec::new(),
        };
        for id in scheme.component_ids() {
            let extent = scheme.extent(id);
            let region = Region::from_fn(|a| match piece[a].hi == scheme.grid.cells[a] {
                true => Interval::new(piece[a].lo, extent[a].hi),
                false => piece[a],
            });
            let placed = Placed {
                region,
                newest: values.starts.len(),
                levels: usize::from(scheme.component(id).time_levels),
            };
            let len: i64 = region.iter().map(|(_, i)| i.len()).product();
            for _ in 0..placed.levels {
                values.starts.push(values.list.len());
                values.list.resize(values.list.len() + len as usize, 0.0);
            }
            values.components.push(placed);
        }
        values
    }

    /// The number of a version of a component.
    fn version(&self, component: usize, age: usize) -> u32 {
        (self.components[component].newest + age) as u32
    }

    /// The values of a version.
    fn of(&mut self, version: usize) -> &mut [f64] {
        let len = self.len(version);
        let start = self.starts[version];
        &mut self.list[start..start + len]
    }

    fn len(&self, version: usize) -> usize {
        let holds = |c: &&Placed| (c.newest..c.newest + c.levels).contains(&version);
        let placed = self.components.iter().find(holds);
        placed.map_or(0, |c| {
            c.region.iter().map(|(_, i)| i.len()).product::<i64>() as usize
        })
    }

    /// Runs a stage: all of its updates read the values before it.
    fn advance(&mut self, stage: &[Advance], fresh: &mut Vec<f64>) {
        fresh.clear();
        for advance in stage {
            let mut first = 0;
            for (_, end) in &advance.rows {
                let reads = &advance.reads[first..*end as usize];
                let value = |r: &Read| {
                    r.weight * self.list[self.starts[r.version as usize] + r.index as usize]
                };
                fresh.push(reads.iter().map(value).sum());
                first = *end as usize;
            }
        }
        let mut next = fresh.iter();
        for advance in stage {
            let Placed { newest, levels, .. } = self.components[advance.component];
            if levels > 1 {
                let len = self.len(newest);
                self.starts[newest..newest + levels].rotate_right(1);
                let (new, old) = (self.starts[newest], self.starts[newest + 1]);
                self.list.copy_within(old..old + len, new);
            }
            let start = self.starts[newest];
            for ((index, _), value) in advance.rows.iter().zip(&mut next) {
                self.list[start + *index as usize] = *value;
            }
        }
    }

    /// The root of the sum of all squares of newest values.
    fn norm(&mut self) -> f64 {
        let newest: Vec<usize> = self.components.iter().map(|c| c.newest).collect();
        let squares = newest.into_iter().map(|version| {
            let values = self.of(version).iter();
            values.map(|v| v * v).sum::<f64>()
        });
        squares.sum::<f64>().sqrt()
    }

    /// Numbers between -1 and 1, always the same, for all versions of some components.
    fn fill(&mut self, is_wanted: impl Fn(usize) -> bool) {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for component in (0..self.components.len()).filter(|c| is_wanted(*c)) {
            let Placed { newest, levels, .. } = self.components[component];
            for version in newest..newest + levels {
                for value in self.of(version) {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    *value = (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
                }
            }
        }
    }
}

/// Steps a piece of the lattice around a cell with whose coefficients waves grow by `rate`. `None` where all of it has
/// these coefficients.
pub fn trial(scheme: &Scheme, files: &dyn Files, cell: Cell, rate: f64) -> Option<Trial> {
    trial_of(scheme, files, cell, rate, READS)
}

/// The same with some values that are read in all steps together.
pub fn trial_of(
    scheme: &Scheme,
    files: &dyn Files,
    cell: Cell,
    rate: f64,
    most_reads: f64,
) -> Option<Trial> {
    if rate <= 0.0 {
        return None;
    }
    let piece = piece(&scheme.grid, cell.index);
    let own = setting(scheme, files, cell);
    let mut values = Values::new(scheme, piece);
    let Updates { stages, is_uniform } = rows(scheme, files, &values, &own)?;
    if is_uniform {
        return None;
    }
    let reads: usize = stages.iter().flatten().map(|a| a.reads.len()).sum();
    let most = (most_reads / reads.max(1) as f64).min(STEPS);
    let steps = (FOLDS / rate).max(LEAST_STEPS).min(most);
    let cells = piece.iter().map(|(_, i)| i.len()).product();
    if steps * rate < LEAST_FOLDS {
        return Some(Trial {
            cells,
            steps: 0,
            rate: None,
        });
    }
    let is_advanced = |component: usize| stages.iter().flatten().any(|a| a.component == component);
    values.fill(is_advanced);
    let logs = sizes(&mut values, &stages, steps as usize)?;
    // Means over a quarter of the steps: values swing.
    let (steps, quarter) = (logs.len(), logs.len() / 4);
    let mean = |from: usize| logs[from..from + quarter].iter().sum::<f64>() / quarter as f64;
    Some(Trial {
        cells,
        steps,
        rate: Some((mean(3 * quarter) - mean(quarter)) / (2 * quarter) as f64),
    })
}

/// ln of the size of all values together after each step, until they have grown beyond doubt; `None` where they have
/// none.
fn sizes(values: &mut Values, stages: &[Vec<Advance>], steps: usize) -> Option<Vec<f64>> {
    let mut log = 0.0;
    let mut fresh = Vec::new();
    let mut logs: Vec<f64> = Vec::with_capacity(steps);
    for _ in 0..steps {
        for stage in stages {
            values.advance(stage, &mut fresh);
        }
        let norm = values.norm();
        if norm == 0.0 || !norm.is_finite() {
            return None;
        }
        logs.push(log + norm.ln());
        if !(1e-50..1e50).contains(&norm) {
            for value in &mut values.list {
                *value /= norm;
            }
            log += norm.ln();
        }
        let (last, first) = (logs[logs.len() - 1], logs[logs.len() / 2]);
        if logs.len() >= LEAST_TO_GROW && last - first > SURE_GROWTH {
            break;
        }
    }
    Some(logs)
}

/// The cells that are stepped around one. Around a periodic axis, their indices go on beyond its ends.
fn piece(grid: &Grid, at: PerAxis<i64>) -> Region {
    let side = SIDES[grid.dimensions().clamp(1, SIDES.len()) - 1];
    Region::from_fn(|a| {
        let len = side.min(grid.cells[a]);
        let lo = match grid.is_periodic(a) && len < grid.cells[a] {
            true => at[a] - len / 2,
            false => (at[a] - len / 2).clamp(0, grid.cells[a] - len),
        };
        Interval::new(lo, lo + len)
    })
}

/// Whether a piece around one cell has another one in it, and the cells that the updates of that one read.
pub fn covers(scheme: &Scheme, tried: Cell, cell: Cell) -> bool {
    let grid = &scheme.grid;
    let reach = scheme.reach();
    let piece = piece(grid, tried.index);
    grid.present().all(|axis| {
        let reach = reach[axis].into_iter().max().unwrap_or(0);
        let (part, cells) = (piece[axis], grid.cells[axis]);
        let at = grid.around(axis, cell.index[axis], part.lo);
        let margin = 2 * i64::from(reach);
        // A part of a ring has no end of the domain.
        let has_ends = !grid.is_periodic(axis) || part.len() == cells;
        let below = (has_ends && part.lo == 0) || at - part.lo >= margin;
        let above = (has_ends && part.hi == cells) || part.hi - at > margin;
        part.contains(at) && below && above
    })
}

/// The updates in a piece; `None` where one is not linear.
fn rows(scheme: &Scheme, files: &dyn Files, values: &Values, own: &Setting) -> Option<Updates> {
    let mut is_uniform = true;
    let mut is_linear = true;
    let mut settings: BTreeMap<[i64; 3], Rc<Setting>> = BTreeMap::new();
    // All updates of a sum are left out.
    let mut sums = BTreeSet::new();
    let mut stages = Vec::new();
    for (number, stage) in scheme.stages.iter().enumerate() {
        let mut updates = Vec::new();
        for (place, update) in stage.updates.iter().enumerate() {
            let target = update.target.index();
            let live = scheme.grid.live(scheme.component(update.target).position);
            let placed = &values.components[target];
            let (mut rows, mut reads) = (Vec::new(), Vec::new());
            for_each_index(placed.region, |at| {
                let here = settings.entry(at.0);
                let here = here.or_insert_with(|| Rc::new(setting(scheme, files, at)));
                let here = Rc::clone(here);
                is_uniform &= *here == *own;
                let in_domain = PerAxis::from_fn(|a| scheme.grid.around(a, at[a], 0));
                if !live.contains(in_domain) || !here.active[number][place] {
                    return;
                }
                let weights = match linear::weights(&update.body, &here.coefs) {
                    Ok(weights) => weights,
                    Err(_) => {
                        let acts = |stage: usize, number: usize| Some(here.active[stage][number]);
                        let own = own_weight_of_sum(scheme, update.target, &here.coefs, acts);
                        is_linear &= own.is_some_and(|own| own <= MOST_OF_OWN);
                        sums.insert(target);
                        return;
                    }
                };
                let read = |(read, weight): (crate::scheme::Read, f64)| {
                    let from = PerAxis::from_fn(|a| at[a] + i64::from(read.offset[a]));
                    let position = scheme.component(read.component).position;
                    let Located::Stored { at, negated } = scheme.grid.resolve(position, from)
                    else {
                        return None;
                    };
                    let of = &values.components[read.component.index()];
                    let at = PerAxis::from_fn(|a| scheme.grid.around(a, at[a], of.region[a].lo));
                    Some(Read {
                        version: values.version(read.component.index(), usize::from(read.age)),
                        index: of.index(at)?,
                        weight: if negated { -weight } else { weight },
                    })
                };
                if let Some(index) = placed.index(at) {
                    reads.extend(weights.into_iter().filter_map(read));
                    rows.push((index, reads.len() as u32));
                }
            });
            updates.push(Advance {
                component: target,
                rows,
                reads,
            });
        }
        stages.push(updates);
    }
    for updates in &mut stages {
        updates.retain(|advance: &Advance| !sums.contains(&advance.component));
    }
    is_linear.then_some(Updates { stages, is_uniform })
}
