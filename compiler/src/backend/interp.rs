//! The interpreter: row kernels evaluated operation by operation over whole rows, in plain Rust.
//!
//! It shares nothing with the code generators but the layout, so that a difference shows a bug in either. It needs no
//! library and no features of the processor, and takes about a hundred times as long as compiled code.

use crate::kernel::{Code, KernelSet, Run};
use crate::lattice::Interval;
use crate::real::Real;
use crate::scheme::{Op, Precision, Scheme};

/// The kernels of a set, ready to be evaluated.
#[derive(Debug)]
pub struct Interp {
    precision: Precision,
    /// Between the groups of a run, in elements.
    stride: i64,
    kernels: Vec<Vec<Update>>,
}

/// An update with its memory resolved: displacements in elements from the start of a group.
#[derive(Debug)]
struct Update {
    target: i64,
    mask: Option<i64>,
    ops: Vec<Op>,
    /// Where each operation reads; 0 for those that do not.
    reads: Vec<i64>,
    result: usize,
}

impl Interp {
    pub fn new(scheme: &Scheme, set: &KernelSet) -> Interp {
        let layout = &set.layout;
        let row = |row: crate::layout::RowId| i64::from(row.0) * layout.row_stride;
        let kernels = set.kernels.iter().map(|kernel| {
            let (stage, phase) = (kernel.stage, kernel.phase);
            let updates = kernel.updates(scheme).map(|update| {
                let place = |op: &Op| match op {
                    Op::Read(read) => layout.displacement(scheme, stage, phase, read),
                    Op::Coef(coef) => row(layout.coef_row(*coef)),
                    _ => 0,
                };
                Update {
                    target: row(layout.target_row(scheme, stage, phase, update.target)),
                    mask: update.mask.map(|mask| row(layout.coef_row(mask))),
                    ops: update.body.ops.clone(),
                    reads: update.body.ops.iter().map(place).collect(),
                    result: update.body.result.index(),
                }
            });
            updates.collect()
        });
        Interp {
            precision: scheme.precision,
            stride: set.run_stride(scheme),
            kernels: kernels.collect(),
        }
    }
}

impl Code for Interp {
    unsafe fn run(&self, kernel: usize, base: *mut u8, runs: &[Run], range: Interval) {
        let updates = &self.kernels[kernel];
        let Interval { lo, hi } = range;
        if lo >= hi {
            return;
        }
        for (run, i) in runs.iter().flat_map(|r| (0..r.groups).map(move |i| (r, i))) {
            // SAFETY: the caller vouches for the array, and the elements of an array of the layout's precision are
            // aligned.
            unsafe {
                let group = base.wrapping_offset(run.offset as isize);
                match self.precision {
                    Precision::F32 => {
                        let group = group.cast::<f32>().offset((i * self.stride) as isize);
                        run_group(updates, group, lo, hi);
                    }
                    Precision::F64 => {
                        let group = group.cast::<f64>().offset((i * self.stride) as isize);
                        run_group(updates, group, lo, hi);
                    }
                }
            }
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
unsafe fn run_group<T: Real>(updates: &[Update], group: *mut T, lo: i64, hi: i64) {
    let length = (hi - lo) as usize;
    // SAFETY: the caller guarantees that what the updates read lies in the array, and that nobody writes it meanwhile.
    // Nothing is written before the copies are made.
    let load = |displacement: i64| unsafe {
        std::slice::from_raw_parts(group.offset((displacement + lo) as isize), length).to_vec()
    };
    let results: Vec<Vec<T>> = updates
        .iter()
        .map(|update| {
            let mut values: Vec<Vec<T>> = Vec::with_capacity(update.ops.len());
            for (op, &displacement) in update.ops.iter().zip(&update.reads) {
                let value = match op {
                    Op::Read(_) | Op::Coef(_) => load(displacement),
                    Op::Const(c) => vec![T::from_f64(*c); length],
                    op => compute(op, &values),
                };
                values.push(value);
            }
            let mut result = values.swap_remove(update.result);
            if let Some(mask) = update.mask {
                let (mask, old) = (load(mask), load(update.target));
                for ((new, mask), old) in result.iter_mut().zip(mask).zip(old) {
                    if mask == T::from_f64(0.0) {
                        *new = old;
                    }
                }
            }
            result
        })
        .collect();
    for (update, result) in updates.iter().zip(results) {
        // SAFETY: the target's elements at these indices lie in the array, and no one else accesses them.
        unsafe {
            let target = group.offset((update.target + lo) as isize);
            std::ptr::copy_nonoverlapping(result.as_ptr(), target, length);
        }
    }
}

/// An operation on whole rows. One without operands gives an empty row.
fn compute<T: Real>(op: &Op, values: &[Vec<T>]) -> Vec<T> {
    let of = |v: crate::scheme::Value| values[v.index()].iter().copied();
    match *op {
        Op::Const(_) | Op::Read(_) | Op::Coef(_) => Vec::new(),
        Op::Neg(a) => of(a).map(T::neg).collect(),
        Op::Abs(a) => of(a).map(T::abs).collect(),
        Op::Sqrt(a) => of(a).map(T::sqrt).collect(),
        Op::Add(a, b) => of(a).zip(of(b)).map(|(a, b)| a.add(b)).collect(),
        Op::Sub(a, b) => of(a).zip(of(b)).map(|(a, b)| a.sub(b)).collect(),
        Op::Mul(a, b) => of(a).zip(of(b)).map(|(a, b)| a.mul(b)).collect(),
        Op::Div(a, b) => of(a).zip(of(b)).map(|(a, b)| a.div(b)).collect(),
        Op::Fma(a, b, c) => of(a)
            .zip(of(b))
            .zip(of(c))
            .map(|((a, b), c)| a.mul_add(b, c))
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
            .map(|((a, b), (then, otherwise))| if a.compare(cmp, b) { then } else { otherwise })
            .collect(),
    }
}
