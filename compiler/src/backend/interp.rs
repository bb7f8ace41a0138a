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
        for record in records {
            let (offset, groups) = (record[0], record[1]);
            for i in 0..groups {
                // SAFETY: the caller vouches for the array, and the elements of an array of the layout's precision are
                // aligned.
                unsafe {
                    match self.precision {
                        Precision::F32 => {
                            let at = |(start, stride): (i64, i64)| {
                                base.wrapping_offset(start as isize)
                                    .cast::<f32>()
                                    .wrapping_offset((i * stride) as isize)
                            };
                            let streams = record[2..]
                                .iter()
                                .copied()
                                .zip(self.streams.iter().copied());
                            let streams: Vec<*mut f32> = streams.map(at).collect();
                            run_group(updates, at((offset, self.stride)), &streams, range);
                        }
                        Precision::F64 => {
                            let at = |(start, stride): (i64, i64)| {
                                base.wrapping_offset(start as isize)
                                    .cast::<f64>()
                                    .wrapping_offset((i * stride) as isize)
                            };
                            let streams = record[2..]
                                .iter()
                                .copied()
                                .zip(self.streams.iter().copied());
                            let streams: Vec<*mut f64> = streams.map(at).collect();
                            run_group(updates, at((offset, self.stride)), &streams, range);
                        }
                    }
                }
            }
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
        format!("interpreter, {}", self.precision)
    }
}

/// Evaluates all updates before it stores anything.
///
/// # Safety
/// As for [`crate::kernel::RowFn`], for one group.
unsafe fn run_group<T: Real>(
    updates: &[Update],
    group: *mut T,
    streams: &[*mut T],
    Interval { lo, hi }: Interval,
) {
    let length = (hi - lo) as usize;
    let start = |operand: Operand| operand.stream.map_or(group, |s| streams[s]);
    // SAFETY: the caller guarantees that the values that updates read lie in the array, and that no thread writes them
    // meanwhile. Nothing is written before the copies are made.
    let load = |operand: Operand| unsafe {
        let start = start(operand).wrapping_offset(operand.at as isize);
        match operand.uniform {
            true => vec![*start; length],
            false => {
                let start = start.wrapping_offset(lo as isize);
                std::slice::from_raw_parts(start, length).to_vec()
            }
        }
    };
    let evaluate = |body: &Bound, base: &[T]| {
        let mut values: Vec<Vec<T>> = Vec::with_capacity(body.ops.len());
        for (op, &operand) in body.ops.iter().zip(&body.reads) {
            let value = match op {
                Op::Base => base.to_vec(),
                op if op.is_operand() => load(operand),
                Op::Const(c) => vec![T::from_f64(*c); length],
                op => compute(op, &values),
            };
            values.push(value);
        }
        values
    };
    // The new value where a mask is not 0, else the old one.
    let masked = |mut new: Vec<T>, mask: Option<i64>, place: Operand| {
        if let Some(mask) = mask {
            let (mask, old) = (load(Operand::group(mask)), load(place));
            for ((new, mask), old) in new.iter_mut().zip(mask).zip(old) {
                if mask == T::from_f64(0.0) {
                    *new = old;
                }
            }
        }
        new
    };
    let mut results: Vec<(Operand, Vec<T>)> = Vec::new();
    for update in updates {
        let mut result = evaluate(&update.body, &[]).swap_remove(update.body.result);
        for amendment in &update.amendments {
            let values = evaluate(amendment, &result);
            for &(place, value) in &amendment.states {
                let new = masked(values[value].clone(), update.mask, place);
                results.push((place, new));
            }
            result.clone_from(&values[amendment.result]);
        }
        let target = Operand::group(update.target);
        results.push((target, masked(result, update.mask, target)));
    }
    for (place, result) in results {
        // SAFETY: the target's elements at these indices lie in the array, and no other thread accesses them.
        unsafe {
            let target = start(place).wrapping_offset((place.at + lo) as isize);
            std::ptr::copy_nonoverlapping(result.as_ptr(), target, length);
        }
    }
}

/// An operation on whole rows. One without operands gives an empty row. Iterators over references are inlined at all
/// levels of optimisation, iterators over copied values are not.
fn compute<T: Real>(op: &Op, values: &[Vec<T>]) -> Vec<T> {
    let of = |v: crate::scheme::Value| values[v.index()].iter();
    match *op {
        Op::Const(_) | Op::Read(_) | Op::Coef(_) | Op::Base | Op::State(_) => Vec::new(),
        Op::Neg(a) => of(a).map(|a| a.neg()).collect(),
        Op::Abs(a) => of(a).map(|a| a.abs()).collect(),
        Op::Flush(a) => of(a).map(|a| a.flush()).collect(),
        Op::Sqrt(a) => of(a).map(|a| a.sqrt()).collect(),
        Op::Power2(a) => of(a).map(|a| a.power2()).collect(),
        Op::Exponent(a) => of(a).map(|a| a.exponent()).collect(),
        Op::Add(a, b) => of(a).zip(of(b)).map(|(&a, &b)| a.add(b)).collect(),
        Op::Sub(a, b) => of(a).zip(of(b)).map(|(&a, &b)| a.sub(b)).collect(),
        Op::Mul(a, b) => of(a).zip(of(b)).map(|(&a, &b)| a.mul(b)).collect(),
        Op::Div(a, b) => of(a).zip(of(b)).map(|(&a, &b)| a.div(b)).collect(),
        Op::Fma(a, b, c) => of(a)
            .zip(of(b))
            .zip(of(c))
            .map(|((&a, &b), &c)| a.mul_add(b, c))
            .collect(),
        Op::Select {
            cmp,
            a,
            b,
            then,
            otherwise,
        } => of(a)
            .zip(of(b))
            .zip(of(then).zip(of(otherwise)))
            .map(|((&a, &b), (&then, &otherwise))| if a.compare(cmp, b) { then } else { otherwise })
            .collect(),
    }
}
