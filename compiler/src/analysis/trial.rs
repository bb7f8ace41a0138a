//! Growth with the coefficients that the cells really have.
//!
//! A wave in a uniform medium tells nothing about a place where coefficients change within a cell, as 1/r does near an
//! axis: there waves seem to grow with every step. A piece of the lattice around such a place is stepped from random
//! values instead, with zeros beyond it.

use super::cells::{Cell, setting};
use super::linear;
use super::step::{MOST_OF_OWN, Setting, is_aside};
use crate::lattice::{Axis, Interval, PerAxis, Region, for_each_index};
use crate::scheme::{Grid, Located, Scheme};
use crate::statics::Files;

/// Cells along each axis of a piece, by the number of axes.
const SIDES: [i64; 3] = [256, 32, 12];
/// Values that are read in all steps together.
const READS: f64 = 1e9;
/// Steps, each of which takes time of its own in a small piece, and has its growth kept.
const STEPS: f64 = 1e6;
/// Steps of a small piece, at least: growth with the coefficients of the cells may be slower than it was expected.
const LEAST_STEPS: f64 = 1000.0;
/// ln of the growth that a trial is long enough for, and the least that says something.
const FOLDS: f64 = 40.0;
const LEAST_FOLDS: f64 = 12.0;
/// ln of the growth in all steps from which on values grow: the energy of values that swing changes, too.
const GROWTH: f64 = 4.0;

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

/// A value that an update reads, by component, age and index into the piece.
struct Read {
    component: usize,
    age: usize,
    index: usize,
    weight: f64,
}

/// The new value at an index of a piece.
struct Row {
    index: usize,
    reads: Vec<Read>,
}

/// The new values of a component in a stage.
struct Advance {
    component: usize,
    rows: Vec<Row>,
}

/// The updates in a piece.
struct Updates {
    stages: Vec<Vec<Advance>>,
    /// Whether all cells have the coefficients of one.
    is_uniform: bool,
}

/// The values of one component.
struct Values {
    region: Region,
    /// By age.
    levels: Vec<Vec<f64>>,
}

impl Values {
    fn index(&self, at: PerAxis<i64>) -> Option<usize> {
        self.region.contains(at).then(|| {
            let place = |n: i64, (a, i): (Axis, &Interval)| n * i.len() + at[a] - i.lo;
            self.region.iter().fold(0, place) as usize
        })
    }
}

/// Steps a piece of the lattice around a cell with whose coefficients waves grow by `rate`. `None` where all of it has
/// these coefficients.
pub fn trial(scheme: &Scheme, files: &dyn Files, cell: Cell, rate: f64) -> Option<Trial> {
    if rate <= 0.0 {
        return None;
    }
    let piece = piece(&scheme.grid, cell.index);
    let own = setting(scheme, files, cell);
    let mut values: Vec<Values> = scheme
        .component_ids()
        .map(|id| {
            values_in(
                &scheme.extent(id),
                &scheme.grid,
                piece,
                scheme.component(id).time_levels,
            )
        })
        .collect();
    let Updates { stages, is_uniform } = rows(scheme, files, &values, &own)?;
    let reads: usize = stages
        .iter()
        .flatten()
        .flat_map(|a| &a.rows)
        .map(|r| r.reads.len())
        .sum();
    let most = (READS / reads.max(1) as f64).min(STEPS);
    let steps = (FOLDS / rate).max(LEAST_STEPS).min(most);
    if is_uniform {
        return None;
    }
    let cells = piece.iter().map(|(_, i)| i.len()).product();
    if steps * rate < LEAST_FOLDS {
        return Some(Trial {
            cells,
            steps: 0,
            rate: None,
        });
    }
    let steps = steps as usize;
    fill(&mut values);
    let mut log = 0.0;
    let mut logs = Vec::with_capacity(steps);
    for _ in 0..steps {
        for stage in &stages {
            advance(&mut values, stage);
        }
        let norm = norm(&values);
        if norm == 0.0 || !norm.is_finite() {
            return None;
        }
        if !(1e-50..1e50).contains(&norm) {
            for value in values.iter_mut().flat_map(|v| &mut v.levels).flatten() {
                *value /= norm;
            }
            log += norm.ln();
            logs.push(log);
        } else {
            logs.push(log + norm.ln());
        }
    }
    // Means over a quarter of the steps: values swing.
    let quarter = steps / 4;
    let mean = |from: usize| logs[from..from + quarter].iter().sum::<f64>() / quarter as f64;
    Some(Trial {
        cells,
        steps,
        rate: Some((mean(3 * quarter) - mean(quarter)) / (2 * quarter) as f64),
    })
}

/// The cells that are stepped around one. Around a periodic axis, their indices go on beyond its ends.
pub fn piece(grid: &Grid, at: PerAxis<i64>) -> Region {
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

/// The values of a component in a piece, the end planes of the domain included.
fn values_in(extent: &Region, grid: &Grid, piece: Region, levels: u8) -> Values {
    let region = Region::from_fn(|a| match piece[a].hi == grid.cells[a] {
        true => Interval::new(piece[a].lo, extent[a].hi),
        false => piece[a],
    });
    let len: i64 = region.iter().map(|(_, i)| i.len()).product();
    Values {
        region,
        levels: vec![vec![0.0; len as usize]; usize::from(levels)],
    }
}

/// The updates in a piece; `None` where one is not linear.
fn rows(scheme: &Scheme, files: &dyn Files, values: &[Values], own: &Setting) -> Option<Updates> {
    let mut is_uniform = true;
    let mut is_linear = true;
    let mut stages = Vec::new();
    for (number, stage) in scheme.stages.iter().enumerate() {
        let mut updates = Vec::new();
        for (place, update) in stage.updates.iter().enumerate() {
            let target = update.target.index();
            let live = scheme.grid.live(scheme.component(update.target).position);
            let mut rows = Vec::new();
            for_each_index(values[target].region, |at| {
                let here = setting(scheme, files, at);
                is_uniform &= here == *own;
                let in_domain = PerAxis::from_fn(|a| scheme.grid.around(a, at[a], 0));
                if !live.contains(in_domain) || !here.active[number][place] {
                    return;
                }
                let weights = match linear::weights(&update.body, &here.coefs) {
                    Ok(weights) => weights,
                    Err(_) => {
                        is_linear &= is_aside(scheme, update, &here.coefs, MOST_OF_OWN);
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
                    let of = &values[read.component.index()];
                    let at = PerAxis::from_fn(|a| scheme.grid.around(a, at[a], of.region[a].lo));
                    Some(Read {
                        component: read.component.index(),
                        age: usize::from(read.age),
                        index: of.index(at)?,
                        weight: if negated { -weight } else { weight },
                    })
                };
                rows.extend(values[target].index(at).map(|index| Row {
                    index,
                    reads: weights.into_iter().filter_map(read).collect(),
                }));
            });
            updates.push(Advance {
                component: target,
                rows,
            });
        }
        stages.push(updates);
    }
    is_linear.then_some(Updates { stages, is_uniform })
}

/// Numbers between -1 and 1, always the same.
fn fill(values: &mut [Values]) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for value in values.iter_mut().flat_map(|v| &mut v.levels).flatten() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        *value = (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
    }
}

/// Runs a stage: all of its updates read the values before it.
fn advance(values: &mut [Values], stage: &[Advance]) {
    let fresh: Vec<Vec<f64>> = stage
        .iter()
        .map(|of| {
            let mut new = values[of.component].levels[0].clone();
            for row in &of.rows {
                let terms = row.reads.iter();
                new[row.index] = terms
                    .map(|r| r.weight * values[r.component].levels[r.age][r.index])
                    .sum();
            }
            new
        })
        .collect();
    for (of, new) in stage.iter().zip(fresh) {
        let levels = &mut values[of.component].levels;
        levels.rotate_right(1);
        levels[0] = new;
    }
}

fn norm(values: &[Values]) -> f64 {
    let newest = values.iter().filter_map(|v| v.levels.first()).flatten();
    newest.map(|v| v * v).sum::<f64>().sqrt()
}
