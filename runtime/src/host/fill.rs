//! Start values: coefficients, and initial values with their ghosts.

use super::ghosts::Ghosts;
use super::memory::Cells;
use super::threads;
use crate::simulation::SetupError;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use torre_compiler::host_row::RowExpr;
use torre_compiler::lattice::{Axis, Group, Interval, PerAxis};
use torre_compiler::layout::{Layout, RowId};
use torre_compiler::problem::{Problem, StaticValue};
use torre_compiler::real::Real;
use torre_compiler::scheme::{CoefId, ComponentId, Scheme};
use torre_compiler::statics::{Files, GridPoint, Start, coef_value, start_of};
use torre_compiler::taken::is_taken;

/// Values of coefficients along the inner axis that are kept for all rows, at most: 16 MB.
const MOST_KEPT: usize = 2 << 20;
/// Cells along the inner axis whose values are computed together: expressions take several times 8 bytes for each of
/// them, and threads share long lines.
const PIECE: i64 = 1 << 14;

/// A coefficient of which all values are too small for the precision of the scheme, which has 0 or fewer digits there.
#[derive(Clone, Debug, PartialEq)]
pub struct TinyCoef {
    /// The coefficient's name.
    pub name: String,
    /// The largest magnitude of its values.
    pub largest: f64,
}

/// Fills memory with start values.
pub(super) struct Fill<'a, T> {
    pub scheme: &'a Scheme,
    pub problem: &'a Problem,
    pub files: &'a dyn Files,
    pub layout: &'a Layout,
    pub ghosts: &'a Ghosts,
    pub cells: Cells<T>,
    /// Per coefficient the bits of the largest magnitude of its values so far.
    pub sizes: Vec<AtomicU64>,
}

impl<T: Real> Fill<'_, T> {
    pub fn run(&self, threads: usize) -> Result<(), SetupError> {
        for (index, coef) in self.scheme.coefs.iter().enumerate() {
            if let Some(axis) = coef.only_axis {
                self.axis_coef(CoefId(index as u32), axis)?;
            }
        }
        let mut room = MOST_KEPT;
        let mut coefs = Vec::new();
        for (index, coef) in self.scheme.coefs.iter().enumerate() {
            if coef.only_axis.is_none() {
                let id = CoefId(index as u32);
                let cells = self.scheme.grid.extent(coef.position)[Axis::INNER];
                let point = self.coef_point(id, 0, 0);
                coefs.push((id, RowExpr::new(&coef.value, &point, cells, &mut room)));
            }
        }
        // Inner indices run up to the number of cells, that of the far end included.
        let pieces = self.scheme.grid.cells[Axis::INNER] / PIECE + 1;
        let nx = self.layout.extent[Axis::OUTER];
        each(threads, nx * pieces, |i| {
            let first = i % pieces * PIECE;
            self.piece(i / pieces, Interval::new(first, first + PIECE), &coefs)
        })?;
        each(threads, nx, |x| {
            self.ghosts_of(x);
            Ok(())
        })
    }

    /// Initial values and coefficients of a plane, at the inner indices `part`.
    fn piece(
        &self,
        x: i64,
        part: Interval,
        coefs: &[(CoefId, RowExpr<'_>)],
    ) -> Result<(), SetupError> {
        for y in 0..self.layout.extent[Axis::MIDDLE] {
            let at = Group { x, y };
            for id in self.scheme.component_ids() {
                for age in 0..self.scheme.component(id).time_levels {
                    self.initial(id, age, at, part)?;
                }
            }
            for (id, rows) in coefs {
                self.coef(*id, rows, at, part)?;
            }
        }
        Ok(())
    }

    fn initial(
        &self,
        id: ComponentId,
        age: u8,
        Group { x, y }: Group,
        part: Interval,
    ) -> Result<(), SetupError> {
        let Some(Start { init, time }) = start_of(self.scheme, self.problem, id, age) else {
            return Ok(());
        };
        let component = self.scheme.component(id);
        let live = self.scheme.grid.live(component.position);
        let range = live[Axis::INNER].intersect(part);
        if !live[Axis::OUTER].contains(x) || !live[Axis::MIDDLE].contains(y) || range.is_empty() {
            return Ok(());
        }
        let mut values = vec![0.0; range.len() as usize];
        let at = PerAxis([x, y, range.lo]);
        match &init.value {
            StaticValue::Expr(e) => {
                let point = GridPoint {
                    scheme: self.scheme,
                    files: self.files,
                    position: component.position,
                    at,
                    time,
                };
                e.eval_row(&point, range.lo, &mut values);
            }
            StaticValue::File(file) => {
                for (i, v) in values.iter_mut().enumerate() {
                    *v = self
                        .files
                        .value(*file, PerAxis([x, y, range.lo + i as i64]));
                }
            }
        }
        for value in &mut values {
            let flushed = T::from_f64(*value).flush().to_f64();
            // A value beyond the range stays as it is, for messages.
            if flushed.is_finite() {
                *value = flushed;
            }
        }
        let row = self.initial_row(id, age);
        self.store(row, Stored::Initial(id), at, &values)
    }

    /// The row of a component's values, `age` steps before the first step.
    fn initial_row(&self, id: ComponentId, age: u8) -> RowId {
        let time_levels = u64::from(self.scheme.component(id).time_levels);
        self.layout.row(id, time_levels - u64::from(age))
    }

    /// Ghosts of all rows of a plane, whose values are there; of zeros too, as an odd ghost of 0 is -0. Zeros that the
    /// boundary holds on a plane have no sign that a mirror could turn, so their ghosts stay as they are.
    fn ghosts_of(&self, x: i64) {
        for y in 0..self.layout.extent[Axis::MIDDLE] {
            for id in self.scheme.component_ids() {
                let whole = self.scheme.extent(id);
                let live = self.scheme.grid.live(self.scheme.component(id).position);
                if !live[Axis::OUTER].contains(x) || !live[Axis::MIDDLE].contains(y) {
                    continue;
                }
                for age in 0..self.scheme.component(id).time_levels {
                    let row = self.initial_row(id, age);
                    // SAFETY: each row, with its ghosts, belongs to one call, for each x on one thread; all values are
                    // written.
                    unsafe {
                        let range = whole[Axis::INNER];
                        self.ghosts
                            .update(self.layout, self.cells, id, row, Group { x, y }, range);
                    }
                }
            }
        }
    }

    /// The values of a coefficient that depends on one axis.
    fn axis_coef(&self, id: CoefId, axis: Axis) -> Result<(), SetupError> {
        let coef = &self.scheme.coefs[id.index()];
        for i in 0..self.scheme.grid.extent(coef.position)[axis].hi {
            let mut at = PerAxis::splat(0);
            at[axis] = i;
            let value = coef_value(self.scheme, self.files, coef.position, &coef.value, at);
            self.note_size(id, &[value]);
            let element = self.layout.axis_coef_element(axis, id, i);
            self.put(element, Stored::Coef(id), at, value)?;
        }
        Ok(())
    }

    /// Stores a value that must be finite, unless it is a coefficient that no update takes there.
    fn put(
        &self,
        element: i64,
        of: Stored,
        at: PerAxis<i64>,
        value: f64,
    ) -> Result<(), SetupError> {
        let rounded = T::from_f64(value);
        if !rounded.to_f64().is_finite() && self.is_taken(of, at) {
            let at = self.scheme.grid.present().map(|a| at[a]).collect();
            return Err(match of {
                Stored::Initial(id) => SetupError::InitialNotFinite {
                    component: self.scheme.component(id).name.clone(),
                    at,
                    value,
                },
                Stored::Coef(id) => SetupError::CoefNotFinite {
                    coef: self.scheme.coefs[id.index()].name.clone(),
                    at,
                    value,
                },
            });
        }
        // SAFETY: the element lies in the layout; it belongs to one call.
        unsafe { self.cells.set(element, rounded) };
        Ok(())
    }

    /// Takes values of a coefficient into its largest magnitude.
    fn note_size(&self, id: CoefId, values: &[f64]) {
        let largest = values
            .iter()
            .fold(0.0_f64, |most, value| most.max(value.abs()));
        // Numbers without a sign are in the order of their bits.
        self.sizes[id.index()].fetch_max(largest.to_bits(), Ordering::Relaxed);
    }

    /// A coefficient that is too small for the precision everywhere, once all values were filled in.
    pub fn tiny(&self) -> Option<TinyCoef> {
        let largest = |size: &AtomicU64| f64::from_bits(size.load(Ordering::Relaxed));
        let mut coefs = self.scheme.coefs.iter().zip(&self.sizes);
        coefs.find_map(|(coef, size)| {
            T::PRECISION.is_tiny(largest(size)).then(|| TinyCoef {
                name: coef.name.clone(),
                largest: largest(size),
            })
        })
    }

    /// Whether a step computes a value from the one at a place.
    fn is_taken(&self, of: Stored, at: PerAxis<i64>) -> bool {
        match of {
            Stored::Initial(_) => true,
            Stored::Coef(id) => is_taken(self.scheme, self.files, id, at),
        }
    }

    /// The first index of a row where a coefficient is evaluated.
    fn coef_point(&self, id: CoefId, x: i64, y: i64) -> GridPoint<'_> {
        GridPoint {
            scheme: self.scheme,
            files: self.files,
            position: self.scheme.coefs[id.index()].position,
            at: PerAxis([x, y, 0]),
            time: 0.0,
        }
    }

    fn coef(
        &self,
        id: CoefId,
        rows: &RowExpr<'_>,
        Group { x, y }: Group,
        part: Interval,
    ) -> Result<(), SetupError> {
        let coef = &self.scheme.coefs[id.index()];
        let extent = self.scheme.grid.extent(coef.position);
        let range = extent[Axis::INNER].intersect(part);
        if !extent[Axis::OUTER].contains(x) || !extent[Axis::MIDDLE].contains(y) || range.is_empty()
        {
            return Ok(());
        }
        let values = rows.eval(&self.coef_point(id, x, y), range);
        self.note_size(id, &values);
        let first = PerAxis([x, y, range.lo]);
        self.store(self.layout.coef_row(id), Stored::Coef(id), first, &values)
    }

    /// Stores values of a row from the index `first` on.
    fn store(
        &self,
        row: RowId,
        of: Stored,
        first: PerAxis<i64>,
        values: &[f64],
    ) -> Result<(), SetupError> {
        let start = self.layout.element(row, first);
        for (i, &value) in (0..).zip(values) {
            let mut at = first;
            at[Axis::INNER] += i;
            self.put(start + i, of, at, value)?;
        }
        Ok(())
    }
}

/// A value that is stored.
#[derive(Clone, Copy)]
enum Stored {
    Initial(ComponentId),
    Coef(CoefId),
}

/// Calls a function with each number below `count`, on several threads; gives the first failure that was noticed.
fn each(
    threads: usize,
    count: i64,
    call: impl Fn(i64) -> Result<(), SetupError> + Sync,
) -> Result<(), SetupError> {
    let next = AtomicI64::new(0);
    // The one of the least number: all lower ones have been taken before it, and run to their ends.
    let failure: Mutex<Option<(i64, SetupError)>> = Mutex::new(None);
    threads::run(threads, |_| {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                return;
            }
            if let Err(error) = call(i) {
                if let Ok(mut failure) = failure.lock()
                    && failure.as_ref().is_none_or(|(number, _)| i < *number)
                {
                    *failure = Some((i, error));
                }
                next.store(count, Ordering::Relaxed);
            }
        }
    })?;
    match failure.into_inner() {
        Ok(Some((_, error))) => Err(error),
        _ => Ok(()),
    }
}
