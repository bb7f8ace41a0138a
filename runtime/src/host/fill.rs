//! Start values: coefficients, and initial values with their ghosts.

mod culprit;

use super::ghosts::Ghosts;
use super::memory::Cells;
use super::threads;
use crate::simulation::SetupError;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use torre_compiler::host::{At, HostExpr};
use torre_compiler::host_row::RowExpr;
use torre_compiler::lattice::{Axis, Group, Interval, PerAxis};
use torre_compiler::layout::{Layout, RowId};
use torre_compiler::problem::{Problem, StaticValue};
use torre_compiler::real::Real;
use torre_compiler::scheme::{CoefId, ComponentId, Precision, Scheme};
use torre_compiler::statics::{Files, GridPoint, Start, coef_value, start_of};
use torre_compiler::taken::is_taken;

/// Values of coefficients along the inner axis that are kept for all rows, at most: 16 MB.
const MOST_KEPT: usize = 2 << 20;
/// Values that are looked at where no run needs them, at most: they take some seconds.
const MOST_CHECKED: f64 = (1_u64 << 28) as f64;
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

/// Memory that start values go to.
pub(super) struct Filled<'a, T> {
    pub ghosts: &'a Ghosts,
    pub cells: Cells<T>,
}

/// Computes start values.
pub(super) struct Fill<'a, T> {
    pub scheme: &'a Scheme,
    pub problem: &'a Problem,
    pub files: &'a dyn Files,
    pub layout: &'a Layout,
    /// `None`: values are only looked at, unless they are the same everywhere.
    pub to: Option<Filled<'a, T>>,
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
        let wanted = self.wanted();
        if wanted.starts.is_empty() && wanted.coefs.is_empty() && self.to.is_none() {
            return Ok(());
        }
        // Inner indices run up to the number of cells, that of the far end included.
        let pieces = self.scheme.grid.cells[Axis::INNER] / PIECE + 1;
        let nx = self.layout.extent[Axis::OUTER];
        each(threads, nx * pieces, |i| {
            let first = i % pieces * PIECE;
            self.piece(i / pieces, Interval::new(first, first + PIECE), &wanted)
        })?;
        let Some(to) = &self.to else {
            return Ok(());
        };
        each(threads, nx, |x| {
            self.ghosts_of(to, x);
            Ok(())
        })
    }

    /// The values that are computed row by row: all, or the part that is to be looked at.
    fn wanted(&self) -> Wanted<'_> {
        let scheme = self.scheme;
        let versions = scheme
            .component_ids()
            .flat_map(|id| (0..scheme.component(id).time_levels).map(move |age| (id, age)));
        let starts = versions.filter(
            |(id, age)| match start_of(scheme, self.problem, *id, *age) {
                None => false,
                Some(Start { init, time }) => match &init.value {
                    StaticValue::Expr(e) => self.is_looked_at(e, time),
                    StaticValue::File(_) => true,
                },
            },
        );
        let mut room = MOST_KEPT;
        let coefs = scheme.coefs.iter().zip((0..).map(CoefId));
        let coefs = coefs
            .filter(|(coef, _)| coef.only_axis.is_none() && self.is_looked_at(&coef.value, 0.0));
        let rows = coefs.map(|(coef, id)| {
            let cells = scheme.grid.extent(coef.position)[Axis::INNER];
            let point = self.coef_point(id, 0, 0);
            (id, RowExpr::new(&coef.value, &point, cells, &mut room))
        });
        Wanted {
            coefs: rows.collect(),
            starts: starts.collect(),
        }
    }

    /// Whether an expression is evaluated at each place: where memory is filled, or where it may be not finite there.
    fn is_looked_at(&self, value: &HostExpr, time: f64) -> bool {
        let depends = |e: &HostExpr| matches!(e, HostExpr::Coordinate(..) | HostExpr::File { .. });
        let at = At {
            position: [0.0; 3],
            time,
        };
        self.to.is_some()
            || value.any(&mut |e| depends(e))
            || !T::from_f64(value.eval(&at)).to_f64().is_finite()
    }

    /// Initial values and coefficients of a plane, at the inner indices `part`.
    fn piece(&self, x: i64, part: Interval, wanted: &Wanted<'_>) -> Result<(), SetupError> {
        for y in 0..self.layout.extent[Axis::MIDDLE] {
            let at = Group { x, y };
            for (id, age) in &wanted.starts {
                self.initial(*id, *age, at, part)?;
            }
            for (id, rows) in &wanted.coefs {
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
        self.store(row, Stored::Initial(id, age), at, &values)
    }

    /// The row of a component's values, `age` steps before the first step.
    fn initial_row(&self, id: ComponentId, age: u8) -> RowId {
        let time_levels = u64::from(self.scheme.component(id).time_levels);
        self.layout.row(id, time_levels - u64::from(age))
    }

    /// Ghosts of all rows of a plane, whose values are there; of zeros too, as an odd ghost of 0 is -0. Zeros that the
    /// boundary holds on a plane have no sign that a mirror could turn, so their ghosts stay as they are.
    fn ghosts_of(&self, to: &Filled<'_, T>, x: i64) {
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
                        to.ghosts
                            .update(self.layout, to.cells, id, row, Group { x, y }, range);
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
            let file = self.culprit(of, at);
            let at = self.scheme.grid.present().map(|a| at[a]).collect();
            return Err(match of {
                Stored::Initial(id, _) => SetupError::InitialNotFinite {
                    component: self.scheme.component(id).name.clone(),
                    at,
                    value,
                    file,
                },
                Stored::Coef(id) => SetupError::CoefNotFinite {
                    coef: self.scheme.coefs[id.index()].name.clone(),
                    at,
                    value,
                    file,
                },
            });
        }
        if let Some(to) = &self.to {
            // SAFETY: the element lies in the layout; it belongs to one call.
            unsafe { to.cells.set(element, rounded) };
        }
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
            Stored::Initial(..) => true,
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

/// Of each coefficient the bits of the largest magnitude, before there are values.
pub(super) fn sizes(scheme: &Scheme) -> Vec<AtomicU64> {
    scheme.coefs.iter().map(|_| AtomicU64::new(0)).collect()
}

/// The findings about start values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartValues {
    /// All are finite.
    Finite,
    /// There are too many to look at each.
    Unknown,
}

/// Computes the start values of a problem as a run does, and refuses a value that a run would refuse.
pub fn check_start_values(
    scheme: &Scheme,
    problem: &Problem,
    files: &dyn Files,
) -> Result<StartValues, SetupError> {
    match scheme.precision {
        Precision::F32 => check_in::<f32>(scheme, problem, files),
        Precision::F64 => check_in::<f64>(scheme, problem, files),
    }
}

fn check_in<T: Real>(
    scheme: &Scheme,
    problem: &Problem,
    files: &dyn Files,
) -> Result<StartValues, SetupError> {
    let fill = Fill::<T> {
        scheme,
        problem,
        files,
        layout: &Layout::new(scheme)?,
        to: None,
        sizes: sizes(scheme),
    };
    let Wanted { starts, coefs } = fill.wanted();
    let rows = (starts.len() + coefs.len()) as f64;
    if rows * scheme.grid.cell_count() > MOST_CHECKED {
        return Ok(StartValues::Unknown);
    }
    drop(coefs);
    fill.run(threads::worthwhile(scheme))?;
    Ok(StartValues::Finite)
}

/// A value that is stored.
#[derive(Clone, Copy)]
enum Stored {
    /// Of a component, some versions before the newest one.
    Initial(ComponentId, u8),
    Coef(CoefId),
}

/// Values that are computed row by row.
struct Wanted<'a> {
    /// Components and versions.
    starts: Vec<(ComponentId, u8)>,
    coefs: Vec<(CoefId, RowExpr<'a>)>,
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
