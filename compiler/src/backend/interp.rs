//! The interpreter: row kernels evaluated operation by operation over whole rows, in plain Rust.
//!
//! It shares nothing with the code generators but the layout, so that a difference shows a bug in either. It needs no
//! library and no features of the processor, and takes about a hundred times as long as compiled code.

use super::ends::{self, RowEnds};
use crate::kernel::{BandPart, Bands, Code, KernelSet, RowKernel, Run, Stream, run_axis};
use crate::lattice::{Axis, Interval};
use crate::layout::Layout;
use crate::real::Real;
use crate::scheme::{
    Amendment, Body, CoefId, Op, Precision, Scheme, StateAdvance, StateId, ZoneSet,
};

/// The kernels of a set, ready to be evaluated.
#[derive(Debug)]
pub struct Interp {
    precision: Precision,
    /// Between the groups of a run, in elements.
    stride: i64,
    /// The same of each stream.
    streams: Vec<i64>,
    kernels: Vec<Kernel>,
    layout: Layout,
    bands: Bands,
    /// Per kernel.
    ends: Vec<Vec<RowEnds>>,
}

/// The updates of a kernel for each set of zones that acts somewhere in its rows.
#[derive(Debug)]
struct Kernel {
    zones: ZoneSet,
    updates: Vec<(ZoneSet, Vec<Update>)>,
}

/// An update with its memory resolved.
#[derive(Debug)]
struct Update {
    target: i64,
    mask: Option<i64>,
    body: Bound,
    amendments: Vec<Bound>,
}

/// A body with its memory resolved.
#[derive(Debug)]
struct Bound {
    ops: Vec<Op>,
    /// Where each operation reads; that of others means nothing.
    reads: Vec<Operand>,
    result: usize,
    /// Where the new values of states go, and which they are.
    states: Vec<(Operand, usize)>,
}

/// Where a row lies, or a value that is the same for all of it.
#[derive(Clone, Copy, Debug)]
struct Operand {
    /// The number of its stream in a record; `None`: in the group.
    stream: Option<usize>,
    /// In elements from the group, or from where the stream is.
    at: i64,
    uniform: bool,
}

impl Operand {
    fn group(at: i64) -> Operand {
        Operand {
            stream: None,
            at,
            uniform: false,
        }
    }
}

/// Resolves the memory of bodies.
struct Binder<'a> {
    scheme: &'a Scheme,
    layout: &'a Layout,
    kernel: RowKernel,
}

impl Binder<'_> {
    fn update(&self, update: &crate::scheme::Update) -> Update {
        let RowKernel { stage, phase, .. } = self.kernel;
        let target = self
            .layout
            .target_row(self.scheme, stage, phase, update.target);
        let acts = |a: &&Amendment| self.kernel.zones.contains(a.zone);
        Update {
            target: self.row(target),
            mask: update.mask.map(|mask| self.row(self.layout.coef_row(mask))),
            body: self.body(&update.body, &[]),
            amendments: update
                .amendments
                .iter()
                .filter(acts)
                .map(|a| self.body(&a.body, &a.advances))
                .collect(),
        }
    }

    fn row(&self, row: crate::layout::RowId) -> i64 {
        i64::from(row.0) * self.layout.row_stride
    }

    fn body(&self, body: &Body, advances: &[StateAdvance]) -> Bound {
        let RowKernel { stage, phase, .. } = self.kernel;
        let place = |op: &Op| match op {
            Op::Read(read) => {
                let displacement = self.layout.displacement(self.scheme, stage, phase, read);
                Operand::group(displacement)
            }
            Op::Coef(coef) => self.coef(*coef),
            Op::State(state) => self.state(*state),
            _ => Operand::group(0),
        };
        let advances = advances.iter();
        Bound {
            ops: body.ops.clone(),
            reads: body.ops.iter().map(place).collect(),
            result: body.result.index(),
            states: advances
                .map(|a| (self.state(a.state), a.value.index()))
                .collect(),
        }
    }

    fn coef(&self, coef: CoefId) -> Operand {
        match self.scheme.coefs[coef.index()].only_axis {
            None => Operand::group(self.row(self.layout.coef_row(coef))),
            Some(axis) => Operand {
                stream: Some(Stream::AxisCoefs(axis).index()),
                at: self.layout.axis_coef_element(axis, coef, 0)
                    - self.layout.axis_coefs[axis].origin,
                uniform: axis != Axis::INNER,
            },
        }
    }

    fn state(&self, state: StateId) -> Operand {
        let zone = self.scheme.states[state.index()].zone;
        let row = i64::from(self.layout.state_row(state));
        Operand {
            stream: Some(Stream::Zone(zone).index()),
            at: row * self.layout.zones[zone.index()].row_stride,
            uniform: false,
        }
    }
}

impl Interp {
    pub fn new(scheme: &Scheme, set: &KernelSet) -> Interp {
        let layout = &set.layout;
        let updates = |kernel: &RowKernel, zones| {
            let binder = Binder {
                scheme,
                layout,
                kernel: RowKernel { zones, ..*kernel },
            };
            let updates = kernel.updates(scheme);
            (zones, updates.map(|u| binder.update(u)).collect())
        };
        let kernels = set.kernels.iter().map(|kernel| Kernel {
            zones: kernel.zones,
            updates: (set.bands.acting(kernel.zones).into_iter())
                .map(|zones| updates(kernel, zones))
                .collect(),
        });
        let axis = run_axis(scheme);
        Interp {
            precision: scheme.precision,
            stride: set.run_stride(scheme),
            streams: Stream::all(layout)
                .map(|s| s.run_stride(layout, axis))
                .collect(),
            kernels: kernels.collect(),
            layout: layout.clone(),
            bands: set.bands.clone(),
            ends: (set.kernels.iter())
                .map(|kernel| RowEnds::of_kernel(scheme, set, kernel))
                .collect(),
        }
    }

    /// Runs a kernel over one group after the other.
    ///
    /// # Safety
    /// As for [`Code::run`]; a record has the numbers of a [`Run`] and then where streams begin, if there are any.
    unsafe fn records(
        &self,
        kernel: usize,
        zones: ZoneSet,
        base: *mut u8,
        records: &[&[i64]],
        range: Interval,
    ) {
        let mut all = self.kernels[kernel].updates.iter();
        let found = all.find(|(own, _)| *own == zones);
        let Some((_, updates)) = found else { return };
        if range.is_empty() {
            return;
        }
        let (mut single, mut double) = (Pool::<f32>(Vec::new()), Pool::<f64>(Vec::new()));
        for record in records {
            // SAFETY: passed on.
            unsafe {
                match self.precision {
                    Precision::F32 => self.record(updates, base, record, range, &mut single),
                    Precision::F64 => self.record(updates, base, record, range, &mut double),
                }
            }
            let (offset, groups) = (record[0], record[1]);
            let first = base.wrapping_offset(offset as isize);
            let stride = self.stride * self.precision.bytes() as i64;
            // SAFETY: passed on.
            unsafe {
                ends::write(
                    &self.ends[kernel],
                    self.precision,
                    first,
                    groups,
                    stride,
                    range,
                )
            }
        }
    }

    /// The groups of one record, in the layout's precision.
    ///
    /// # Safety
    /// As for [`Self::records`].
    unsafe fn record<T: Real>(
        &self,
        updates: &[Update],
        base: *mut u8,
        record: &[i64],
        range: Interval,
        pool: &mut Pool<T>,
    ) {
        let element = |start: i64, group: i64, stride: i64| {
            base.wrapping_offset(start as isize)
                .cast::<T>()
                .wrapping_offset((group * stride) as isize)
        };
        for group in 0..record[1] {
            let streams = record[2..].iter().zip(&self.streams);
            let streams: Vec<*mut T> = streams
                .map(|(start, stride)| element(*start, group, *stride))
                .collect();
            let place = GroupMemory {
                group: element(record[0], group, self.stride),
                streams: &streams,
                range,
            };
            // SAFETY: the caller vouches for the array, and the elements of an array of the layout's precision are
            // aligned.
            unsafe { run_group(updates, place, pool) };
        }
    }
}

impl Code for Interp {
    unsafe fn run(&self, kernel: usize, base: *mut u8, runs: &[Run], range: Interval) {
        let records: Vec<[i64; 2]> = runs.iter().map(|r| [r.offset, r.groups]).collect();
        let records: Vec<&[i64]> = records.iter().map(|r| &r[..]).collect();
        // SAFETY: passed on.
        unsafe { self.records(kernel, ZoneSet::default(), base, &records, range) }
    }

    unsafe fn run_zoned(&self, kernel: usize, base: *mut u8, records: &[i64], range: Interval) {
        let zones = self.kernels[kernel].zones;
        for part in self.bands.parts(&self.layout, zones, range, records) {
            let BandPart {
                zones,
                range,
                records,
            } = &part;
            let records: Vec<&[i64]> = records.chunks_exact(part.width(&self.layout)).collect();
            // SAFETY: passed on.
            unsafe { self.records(kernel, *zones, base, &records, *range) }
        }
    }

    fn description(&self) -> String {
        "interpreter".to_owned()
    }
}

/// The values of a row.
enum Row<'a, T> {
    /// As they lie in memory.
    Memory(&'a [T]),
    Own(Vec<T>),
}

impl<T> std::ops::Deref for Row<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Row::Memory(values) => values,
            Row::Own(values) => values,
        }
    }
}

/// Rows that are no longer in use, whose memory the next ones take.
struct Pool<T>(Vec<Vec<T>>);

impl<T: Real> Pool<T> {
    /// A row with any values.
    #[inline(always)]
    fn row(&mut self, length: usize) -> Vec<T> {
        let mut row = self.0.pop().unwrap_or_default();
        row.resize(length, T::from_f64(0.0));
        row
    }

    #[inline(always)]
    fn filled(&mut self, length: usize, value: T) -> Vec<T> {
        let mut row = self.row(length);
        row.fill(value);
        row
    }

    #[inline(always)]
    fn copied(&mut self, values: &[T]) -> Vec<T> {
        let mut row = self.row(values.len());
        row.copy_from_slice(values);
        row
    }

    fn take_back(&mut self, rows: Vec<Row<'_, T>>) {
        for row in rows {
            if let Row::Own(row) = row {
                self.0.push(row);
            }
        }
    }
}

/// The memory of a group.
#[derive(Clone, Copy)]
struct GroupMemory<'a, T> {
    group: *mut T,
    streams: &'a [*mut T],
    range: Interval,
}

impl<T: Real> GroupMemory<'_, T> {
    fn start(&self, operand: Operand) -> *mut T {
        let start = operand.stream.map_or(self.group, |s| self.streams[s]);
        start.wrapping_offset(operand.at as isize)
    }

    /// # Safety
    /// The values lie in the array, and nothing writes them while the row is in use.
    #[inline(always)]
    unsafe fn load<'r>(&self, operand: Operand, pool: &mut Pool<T>) -> Row<'r, T> {
        let Interval { lo, hi } = self.range;
        let (start, length) = (self.start(operand), (hi - lo) as usize);
        // SAFETY: the caller's promise.
        unsafe {
            match operand.uniform {
                true => Row::Own(pool.filled(length, *start)),
                false => {
                    let start = start.wrapping_offset(lo as isize);
                    Row::Memory(std::slice::from_raw_parts(start, length))
                }
            }
        }
    }
}

/// Evaluates all updates before it stores anything.
///
/// # Safety
/// As for [`crate::kernel::RowFn`], for one group.
unsafe fn run_group<T: Real>(updates: &[Update], place: GroupMemory<'_, T>, pool: &mut Pool<T>) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: passed on; the processor has the features.
        return unsafe { run_group_avx2(updates, place, pool) };
    }
    // SAFETY: passed on.
    unsafe { run_group_any(updates, place, pool) }
}

/// The same code where a multiply-add is an instruction, and not a call. No bit depends on it.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn run_group_avx2<T: Real>(
    updates: &[Update],
    place: GroupMemory<'_, T>,
    pool: &mut Pool<T>,
) {
    // SAFETY: passed on.
    unsafe { run_group_any(updates, place, pool) }
}

#[inline(always)]
unsafe fn run_group_any<T: Real>(
    updates: &[Update],
    place: GroupMemory<'_, T>,
    pool: &mut Pool<T>,
) {
    // The new value where a mask is not 0, else the old one.
    let masked = |new: &[T], mask: Option<i64>, at: Operand, pool: &mut Pool<T>| {
        let mut new = pool.copied(new);
        if let Some(mask) = mask {
            // SAFETY: as below.
            let [mask, old] = [Operand::group(mask), at].map(|at| unsafe { place.load(at, pool) });
            for ((new, mask), old) in new.iter_mut().zip(mask.iter()).zip(old.iter()) {
                if *mask == T::from_f64(0.0) {
                    *new = *old;
                }
            }
            pool.take_back(vec![mask, old]);
        }
        new
    };
    let mut results: Vec<(Operand, Vec<T>)> = Vec::with_capacity(updates.len());
    for update in updates {
        // SAFETY: the caller guarantees that the values that updates read lie in the array, and that no thread writes
        // them meanwhile. Nothing is written before all results are there.
        let mut values = unsafe { evaluate(&update.body, &[], place, pool) };
        let mut result = update.body.result;
        for amendment in &update.amendments {
            // SAFETY: likewise.
            let amended = unsafe { evaluate(amendment, &values[result], place, pool) };
            for &(at, value) in &amendment.states {
                results.push((at, masked(&amended[value], update.mask, at, pool)));
            }
            pool.take_back(std::mem::replace(&mut values, amended));
            result = amendment.result;
        }
        let target = Operand::group(update.target);
        results.push((target, masked(&values[result], update.mask, target, pool)));
        pool.take_back(values);
    }
    for (at, result) in results {
        // SAFETY: the target's elements at these indices lie in the array, and no other thread accesses them.
        unsafe {
            let target = place.start(at).wrapping_offset(place.range.lo as isize);
            std::ptr::copy_nonoverlapping(result.as_ptr(), target, result.len());
        }
        pool.0.push(result);
    }
}

/// The values of all operations of a body.
///
/// # Safety
/// As for [`GroupMemory::load`].
#[inline(always)]
unsafe fn evaluate<'r, T: Real>(
    body: &Bound,
    base: &[T],
    place: GroupMemory<'_, T>,
    pool: &mut Pool<T>,
) -> Vec<Row<'r, T>> {
    let length = (place.range.hi - place.range.lo) as usize;
    let mut values: Vec<Row<'r, T>> = Vec::with_capacity(body.ops.len());
    for (op, &operand) in body.ops.iter().zip(&body.reads) {
        let value = match op {
            Op::Base => Row::Own(pool.copied(base)),
            // SAFETY: passed on.
            op if op.is_operand() => unsafe { place.load(operand, pool) },
            Op::Const(c) => Row::Own(pool.filled(length, T::from_f64(*c))),
            op => {
                let mut row = pool.row(length);
                compute(op, &values, &mut row);
                Row::Own(row)
            }
        };
        values.push(value);
    }
    values
}

/// An operation on whole rows; nothing for one without operands.
#[inline(always)]
fn compute<T: Real>(op: &Op, values: &[Row<'_, T>], row: &mut [T]) {
    let length = row.len();
    /// A value for each index, of the values of some rows there.
    macro_rules! each {
        ($($value:ident),+ => $result:expr) => {{
            $(let $value = &values[$value.index()][..length];)+
            for (i, new) in row.iter_mut().enumerate() {
                $(let $value = $value[i];)+
                *new = $result;
            }
        }};
    }
    match *op {
        Op::Const(_) | Op::Read(_) | Op::Coef(_) | Op::Base | Op::State(_) => {}
        Op::Neg(a) => each!(a => a.neg()),
        Op::Abs(a) => each!(a => a.abs()),
        Op::Flush(a) => each!(a => a.flush()),
        Op::Sqrt(a) => each!(a => a.sqrt()),
        Op::Power2(a) => each!(a => a.power2()),
        Op::Exponent(a) => each!(a => a.exponent()),
        Op::Add(a, b) => each!(a, b => a.add(b)),
        Op::Sub(a, b) => each!(a, b => a.sub(b)),
        Op::Mul(a, b) => each!(a, b => a.mul(b)),
        Op::Div(a, b) => each!(a, b => a.div(b)),
        Op::Fma(a, b, c) => each!(a, b, c => a.mul_add(b, c)),
        Op::Select {
            cmp,
            a,
            b,
            then,
            otherwise,
        } => each!(a, b, then, otherwise => if a.compare(cmp, b) { then } else { otherwise }),
    }
}
