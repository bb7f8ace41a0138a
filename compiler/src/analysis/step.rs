//! One time step with constant coefficients, and its amplification matrix.
//!
//! With the coefficients of one place used everywhere, a step maps a wave onto itself times a matrix. The state of a
//! cell is all versions that are kept of all components ([`Slot`]); a wave exp(i theta . x), `x` in cells, has an
//! amplitude for each. A read from a distance of `s` half cells multiplies by exp(i theta . s / 2), the half-cell
//! stagger of the components included; a stage replaces the newest version of its targets and moves the older ones on.
//! The product over all stages is the amplification matrix G(theta) (J. G. Charney, R. Fjortoft and J. von Neumann,
//! Tellus 2 (1950) 237-254, for one component).

use super::linear::{self, Nonlinear};
use super::matrix::Matrix;
use super::number::Number;
use super::parts::{Part, closure};
use super::sums::own_weight_of_sum;
use super::zone::TOLERANCE;
use crate::host_range::Range;
use crate::lattice::{Axis, PerAxis};
use crate::scheme::{Boundary, ComponentId, Read, Scheme, displacement};
use num_complex::Complex64;

/// The most that the old values of a sum may weigh together in a cell: with more it grows of itself.
pub const MOST_OF_OWN: f64 = 1.0 + TOLERANCE;

/// The most values of a cell that are followed.
pub const SLOTS: usize = 512;

/// A version of a component: 0 is the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub component: ComponentId,
    pub age: u8,
}

/// A value that an update reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tap {
    pub slot: usize,
    /// From the target, in half cells.
    pub distance: PerAxis<i64>,
    pub weight: f64,
}

/// The new value of a component as a sum of old ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub target: ComponentId,
    pub taps: Vec<Tap>,
    /// Whether it acts in all cells that are meant; elsewhere the component keeps its value.
    pub is_certain: bool,
}

/// The coefficients, and which updates act.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// By coefficient.
    pub coefs: Vec<f64>,
    /// By stage and update.
    pub active: Vec<Vec<bool>>,
}

/// The ranges of coefficients over some cells, and which updates act there.
#[derive(Clone, Debug, PartialEq)]
pub struct Spans {
    /// By coefficient.
    pub coefs: Vec<Range>,
    /// By stage and update; `None` where it acts in some cells only.
    pub active: Vec<Vec<Option<bool>>>,
}

/// An update that is not linear.
#[derive(Clone, Debug, PartialEq)]
pub struct NonlinearUpdate {
    pub stage: usize,
    pub target: ComponentId,
    pub why: Nonlinear,
}

/// Why a step has no amplification matrix.
#[derive(Clone, Debug, PartialEq)]
pub enum NoStep {
    /// All updates that are not linear.
    Nonlinear(Vec<NonlinearUpdate>),
    /// More values per cell than are followed.
    TooLarge { slots: usize },
    /// More values that depend on each other, or more media of them, than a run can wait for.
    TooSlow { values: usize },
    /// A weight is infinite or NaN.
    NotFinite { stage: usize, target: ComponentId },
}

/// The treatment of updates that are not linear.
#[derive(Clone, Copy)]
enum Nonlinears {
    /// They are refused, but for sums whose old values weigh so much together at most.
    Refused { most_of_own: f64 },
    /// Their linear terms are taken.
    OfLinearTerms,
}

/// One step in a uniform medium.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    slots: Vec<Slot>,
    /// Per component the slot of its newest version, if it is followed.
    first: Vec<usize>,
    stages: Vec<Vec<Row>>,
    /// Components whose updates are not linear and left out, as no other value depends on them: sums of products, such
    /// as spectra and energies.
    aside: Vec<ComponentId>,
    /// Farthest reads in half cells.
    reach: PerAxis<i64>,
    /// The largest absolute values that the elements of the amplification matrix could have, row after row.
    majorant: Vec<f64>,
}

/// Values that influence each other around a cycle of updates: only they can grow without bound on their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub slots: Vec<usize>,
    /// The divisor of the amplitude of each, so that all are of one size in any units.
    scale: Vec<f64>,
}

/// From a value of a component to one that its update reads, in half cells.
fn distance(scheme: &Scheme, target: ComponentId, read: &Read) -> PerAxis<i64> {
    let [to, from] = [target, read.component].map(|id| scheme.component(id).position);
    let distance = displacement(to, from, read.offset);
    // Around a ring of one cell all reads are of the same value: its waves are uniform along that axis.
    PerAxis::from_fn(
        |axis| match scheme.grid.is_periodic(axis) && scheme.grid.cells[axis] == 1 {
            true => 0,
            false => distance[axis].0,
        },
    )
}

impl Step {
    /// The step of a scheme in a setting.
    ///
    /// # Errors
    /// The scheme has too many values per cell, updates that are not linear, or weights that are not finite.
    pub fn new(scheme: &Scheme, setting: &Setting) -> Result<Self, NoStep> {
        Self::of_part(scheme, setting, &Part::whole(scheme))
    }

    /// The same for the values of a part of the scheme alone.
    ///
    /// # Errors
    /// The same.
    pub fn of_part(scheme: &Scheme, setting: &Setting, part: &Part) -> Result<Self, NoStep> {
        let sums = Nonlinears::Refused {
            most_of_own: MOST_OF_OWN,
        };
        Self::of(scheme, part, &setting.coefs, sums, |stage, number| {
            Some(setting.active[stage][number])
        })
    }

    /// The step with coefficients that need not occur together: the old values of sums may have any weights there.
    ///
    /// # Errors
    /// The same.
    pub fn combined(scheme: &Scheme, setting: &Setting, part: &Part) -> Result<Self, NoStep> {
        let sums = Nonlinears::Refused {
            most_of_own: f64::INFINITY,
        };
        Self::of(scheme, part, &setting.coefs, sums, |stage, number| {
            Some(setting.active[stage][number])
        })
    }

    /// The step whose weights are the largest absolute values of all linear steps in some cells: in all branches that
    /// are taken there, and with all updates that act there.
    ///
    /// # Errors
    /// The scheme has too many values per cell, or weights that are not finite.
    pub fn bound(scheme: &Scheme, spans: &Spans, part: &Part) -> Result<Self, NoStep> {
        let terms = Nonlinears::OfLinearTerms;
        Self::of(scheme, part, &spans.coefs, terms, |stage, number| {
            spans.active[stage][number]
        })
    }

    fn of<N: Number>(
        scheme: &Scheme,
        part: &Part,
        coefs: &[N],
        nonlinears: Nonlinears,
        active: impl Fn(usize, usize) -> Option<bool>,
    ) -> Result<Self, NoStep> {
        let mut slots = Vec::new();
        let mut first = Vec::new();
        for id in scheme.component_ids() {
            first.push(slots.len());
            if part.has(id) {
                let levels = 0..scheme.component(id).time_levels;
                slots.extend(levels.map(|age| Slot { component: id, age }));
            }
        }
        if slots.len() > SLOTS {
            return Err(NoStep::TooLarge { slots: slots.len() });
        }
        let mut stages = Vec::new();
        let mut reach = PerAxis::splat(0);
        let mut nonlinear = Vec::new();
        let mut aside: Vec<ComponentId> = Vec::new();
        for (index, stage) in scheme.stages.iter().enumerate() {
            let mut rows = Vec::new();
            for (number, update) in stage.updates.iter().enumerate() {
                let target = update.target;
                let acts = active(index, number);
                if acts == Some(false) || !part.has(target) {
                    continue;
                }
                if aside.contains(&target) {
                    continue;
                }
                let mut is_certain = acts.is_some();
                let weights = match (linear::weights(&update.body, coefs), nonlinears) {
                    (Ok(weights), _) => weights,
                    (Err(_), Nonlinears::OfLinearTerms) => {
                        // In cells where it is not linear, nothing is known.
                        is_certain = false;
                        linear::weights_of_linear_terms(&update.body, coefs)
                    }
                    (Err(why), Nonlinears::Refused { most_of_own }) => {
                        match own_weight_of_sum(scheme, target, coefs, &active) {
                            Some(own) if own <= most_of_own => aside.push(target),
                            _ => nonlinear.push(NonlinearUpdate {
                                stage: index,
                                target,
                                why,
                            }),
                        }
                        continue;
                    }
                };
                if weights.iter().any(|(_, w)| !w.largest().is_finite()) {
                    return Err(NoStep::NotFinite {
                        stage: index,
                        target,
                    });
                }
                let taps = weights
                    .into_iter()
                    .filter(|(read, _)| part.has(read.component));
                let taps = taps.map(|(read, weight)| Tap {
                    slot: first[read.component.index()] + usize::from(read.age),
                    distance: distance(scheme, target, &read),
                    weight: weight.largest(),
                });
                let taps: Vec<Tap> = taps.collect();
                for tap in &taps {
                    for (axis, d) in tap.distance.iter() {
                        reach[axis] = reach[axis].max(d.abs());
                    }
                }
                rows.push(Row {
                    target,
                    taps,
                    is_certain,
                });
            }
            stages.push(rows);
        }
        if !nonlinear.is_empty() {
            return Err(NoStep::Nonlinear(nonlinear));
        }
        // All updates of a sum are left out.
        for rows in &mut stages {
            rows.retain(|row: &Row| !aside.contains(&row.target));
        }
        let mut step = Self {
            slots,
            first,
            stages,
            aside,
            reach,
            majorant: Vec::new(),
        };
        step.majorant = step.bounds();
        Ok(step)
    }

    #[cfg(test)]
    pub fn stages(&self) -> &[Vec<Row>] {
        &self.stages
    }

    /// The components whose updates are left out.
    pub fn aside(&self) -> &[ComponentId] {
        &self.aside
    }

    /// Farthest reads of one update along each axis, in half cells.
    pub fn reach(&self) -> PerAxis<i64> {
        self.reach
    }

    /// The values whose rows and columns a matrix is to have, all of them.
    pub fn whole(&self) -> Block {
        let slots: Vec<usize> = (0..self.slots.len()).collect();
        self.balanced(slots)
    }

    /// Whether mirroring an axis leaves the step as it is, if values that are odd about a mirror boundary change their
    /// sign: then waves there are pairs of waves that the amplification matrix knows.
    pub fn is_mirrored(&self, scheme: &Scheme, axis: Axis, side: Boundary) -> bool {
        let odd = |c: ComponentId| side.is_odd(axis, scheme.component(c).position);
        self.stages.iter().flatten().all(|row| {
            row.taps.iter().all(|tap| {
                let flips = odd(row.target) != odd(self.slots[tap.slot].component);
                let mut distance = tap.distance;
                distance[axis] = -distance[axis];
                let weight = if flips { -tap.weight } else { tap.weight };
                let close = |w: f64| (w - weight).abs() <= 1e-6 * weight.abs();
                row.taps
                    .iter()
                    .any(|t| t.slot == tap.slot && t.distance == distance && close(t.weight))
            })
        })
    }

    /// The parts of the state that determine its growth: strongly connected parts of the graph "enters into" over one
    /// step. In the order of these parts every amplification matrix is block triangular, so its eigenvalues are the
    /// eigenvalues of the parts.
    pub fn blocks(&self) -> Vec<Block> {
        let n = self.slots.len();
        let reaches = closure(&self.majorant, n);
        let mut done = vec![false; n];
        let mut blocks = Vec::new();
        for i in 0..n {
            if done[i] || !reaches[i * n + i] {
                continue;
            }
            let members: Vec<usize> = (i..n)
                .filter(|&j| reaches[i * n + j] && reaches[j * n + i])
                .collect();
            for &j in &members {
                done[j] = true;
            }
            blocks.push(self.balanced(members));
        }
        blocks
    }

    /// The amplification matrix of a block at phases per cell.
    pub fn amplification(&self, block: &Block, theta: PerAxis<f64>) -> Matrix {
        let phases = Phases::new(theta, self.reach);
        let size = block.slots.len();
        let mut state = vec![Complex64::ZERO; self.slots.len() * size];
        for (column, &slot) in block.slots.iter().enumerate() {
            state[slot * size + column] = Complex64::ONE;
        }
        self.run(&mut state, size, |tap| phases.at(tap.distance) * tap.weight);
        let mut matrix = Matrix::zero(size);
        for (row, &slot) in block.slots.iter().enumerate() {
            for column in 0..size {
                let scale = block.scale[column] / block.scale[row];
                matrix.set(row, column, state[slot * size + column] * scale);
            }
        }
        matrix
    }

    /// How much of waves whose newest value of one component is 1 stays where it is: means of newest values over some
    /// steps, weighted so that values that oscillate cancel. A row for each component, with a column for each wave.
    /// `None` where values grow.
    pub fn means(
        &self,
        theta: PerAxis<f64>,
        waves: &[ComponentId],
        steps: u32,
    ) -> Option<Vec<Vec<Complex64>>> {
        let phases = Phases::new(theta, self.reach);
        let size = waves.len();
        let mut state = vec![Complex64::ZERO; self.slots.len() * size];
        for (column, id) in waves.iter().enumerate() {
            state[self.first[id.index()] * size + column] = Complex64::ONE;
        }
        let mut means = vec![vec![Complex64::ZERO; size]; self.first.len()];
        for n in 0..steps {
            let turn = std::f64::consts::TAU * (f64::from(n) + 0.5) / f64::from(steps);
            let weight = (1.0 - turn.cos()) / f64::from(steps);
            for (mean, first) in means.iter_mut().zip(&self.first) {
                for (sum, value) in mean.iter_mut().zip(&state[first * size..]) {
                    *sum += value * weight;
                }
            }
            self.run(&mut state, size, |tap| phases.at(tap.distance) * tap.weight);
        }
        let bounded = state.iter().all(|value| value.norm() < 1e30);
        bounded.then_some(means)
    }

    fn bounds(&self) -> Vec<f64> {
        let n = self.slots.len();
        let mut state = vec![Complex64::ZERO; n * n];
        for i in 0..n {
            state[i * n + i] = Complex64::ONE;
        }
        self.run(&mut state, n, |tap| Complex64::from(tap.weight.abs()));
        state.into_iter().map(|v| v.re).collect()
    }

    /// An upper bound of ln of the growth per step that depends on the sizes of the weights alone: the larger, the
    /// faster something spreads.
    pub fn vigour(&self) -> f64 {
        self.vigour_of(&self.blocks())
    }

    /// The same for the block of one component.
    pub fn vigour_with(&self, component: ComponentId) -> f64 {
        let mut blocks = self.blocks();
        blocks.retain(|block| self.components(block).any(|own| own == component));
        self.vigour_of(&blocks)
    }

    /// The components with values in a block.
    pub fn components(&self, block: &Block) -> impl Iterator<Item = ComponentId> {
        block.slots.iter().map(|slot| self.slots[*slot].component)
    }

    fn vigour_of(&self, blocks: &[Block]) -> f64 {
        let growth = |block: &Block| {
            let size = block.slots.len();
            let mut matrix = Matrix::zero(size);
            for (i, &row) in block.slots.iter().enumerate() {
                for (j, &column) in block.slots.iter().enumerate() {
                    let value = self.majorant[row * self.slots.len() + column];
                    matrix.set(
                        i,
                        j,
                        Complex64::from(value * block.scale[j] / block.scale[i]),
                    );
                }
            }
            matrix.growth_of_powers()
        };
        blocks.iter().map(growth).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Runs all stages on rows of `size` amplitudes, one row per slot.
    fn run(&self, state: &mut [Complex64], size: usize, weight: impl Fn(&Tap) -> Complex64) {
        let mut sums = vec![Complex64::ZERO; self.slots.len()];
        for rows in &self.stages {
            let mut fresh = Vec::with_capacity(rows.len() * size);
            for row in rows {
                sums.fill(Complex64::ZERO);
                for tap in &row.taps {
                    sums[tap.slot] += weight(tap);
                }
                let start = fresh.len();
                fresh.resize(start + size, Complex64::ZERO);
                for (slot, sum) in sums.iter().enumerate() {
                    if *sum != Complex64::ZERO {
                        let from = &state[slot * size..(slot + 1) * size];
                        for (out, value) in fresh[start..].iter_mut().zip(from) {
                            *out += sum * value;
                        }
                    }
                }
            }
            for (row, values) in rows.iter().zip(fresh.chunks_exact(size.max(1))) {
                let newest = self.first[row.target.index()];
                let levels = self.slots[newest..]
                    .iter()
                    .take_while(|s| s.component == row.target)
                    .count();
                let kept = match row.is_certain {
                    true => Vec::new(),
                    false => state[newest * size..(newest + levels) * size].to_vec(),
                };
                state.copy_within(
                    newest * size..(newest + levels - 1) * size,
                    (newest + 1) * size,
                );
                state[newest * size..(newest + 1) * size].copy_from_slice(values);
                // Of an update that may act, the larger values of both cases.
                for (new, old) in state[newest * size..].iter_mut().zip(kept) {
                    if old.re > new.re {
                        *new = old;
                    }
                }
            }
        }
    }

    /// A block whose scales make the sums of its rows and columns equal (E. E. Osborne, J. ACM 7 (1960) 338-345).
    fn balanced(&self, slots: Vec<usize>) -> Block {
        let n = self.slots.len();
        let matrix = &self.majorant;
        let mut scale = vec![1.0; slots.len()];
        for _ in 0..24 {
            for i in 0..slots.len() {
                let (mut row, mut column) = (0.0, 0.0);
                for j in (0..slots.len()).filter(|&j| j != i) {
                    row += matrix[slots[i] * n + slots[j]] * scale[j] / scale[i];
                    column += matrix[slots[j] * n + slots[i]] * scale[i] / scale[j];
                }
                let factor = f64::sqrt(row / column);
                if factor.is_finite() && factor > 0.0 {
                    scale[i] *= factor;
                }
            }
        }
        Block { slots, scale }
    }
}

/// The most values of a cell that depend on each other, whatever the weights are.
pub fn largest_block(scheme: &Scheme) -> usize {
    let mut first = Vec::new();
    let mut n = 0;
    for id in scheme.component_ids() {
        first.push(n);
        n += usize::from(scheme.component(id).time_levels);
    }
    if n > SLOTS {
        return n;
    }
    let mut edges = vec![0.0; n * n];
    for update in scheme.stages.iter().flat_map(|s| &s.updates) {
        let target = first[update.target.index()];
        for read in update.body.reads() {
            edges[target * n + first[read.component.index()] + usize::from(read.age)] = 1.0;
        }
        let levels = usize::from(scheme.component(update.target).time_levels);
        for age in 1..levels {
            edges[(target + age) * n + target + age - 1] = 1.0;
        }
    }
    let reaches = closure(&edges, n);
    let of = |i: usize| {
        (0..n)
            .filter(|&j| reaches[i * n + j] && reaches[j * n + i])
            .count()
    };
    (0..n).map(of).max().unwrap_or(0)
}

/// exp(i theta s / 2) for all distances s that occur along each axis.
struct Phases {
    tables: [Vec<Complex64>; 3],
    reach: PerAxis<i64>,
}

impl Phases {
    fn new(theta: PerAxis<f64>, reach: PerAxis<i64>) -> Self {
        let table = |axis: Axis| {
            let reach = reach[axis];
            (-reach..=reach)
                .map(|s| Complex64::cis(0.5 * theta[axis] * s as f64))
                .collect()
        };
        Self {
            tables: Axis::ALL.map(table),
            reach,
        }
    }

    fn at(&self, distance: PerAxis<i64>) -> Complex64 {
        Axis::ALL
            .iter()
            .map(|&a| self.tables[a.index()][(distance[a] + self.reach[a]) as usize])
            .product()
    }
}
