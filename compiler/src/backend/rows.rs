//! Row programs: what a kernel computes for one index, as one straight line of operations for all its updates.
//!
//! This is the common ground of the code generators: rows have become displacements in memory, what is read twice is
//! loaded once, and a mask has become a choice between the new and the old value. The order of operations within an
//! update is that of its body. No update of a stage reads what another one writes (rule 4 of [`crate::scheme`]), so all
//! loads of an index may come before all its stores, and those of other indices may come before or after them.

use crate::kernel::{KernelSet, RowKernel};
use crate::scheme::{Body, Cmp, Op, Scheme, Update, Value};
use std::collections::BTreeMap;

/// Displacements are in elements, from the start of the target's group.
#[derive(Clone, Debug, PartialEq)]
pub struct RowProgram {
    /// The name of the compiled function.
    pub symbol: String,
    /// Operands come before their users; none appears twice, and all are used.
    pub ops: Vec<RowOp>,
    pub stores: Vec<Store>,
}

/// [`Op`] with its memory resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowOp {
    Load(Place),
    /// The bits of an `f64` that is exact in the scheme's precision.
    Const(u64),
    Neg(Value),
    Abs(Value),
    Sqrt(Value),
    Add(Value, Value),
    Sub(Value, Value),
    Mul(Value, Value),
    Div(Value, Value),
    Fma(Value, Value, Value),
    Select {
        cmp: Cmp,
        a: Value,
        b: Value,
        then: Value,
        otherwise: Value,
    },
}

impl RowOp {
    /// The same of an operation that reads nothing.
    pub fn of(op: &Op) -> Option<RowOp> {
        Some(match *op {
            Op::Read(_) | Op::Coef(_) => return None,
            Op::Const(c) => RowOp::Const(c.to_bits()),
            Op::Neg(a) => RowOp::Neg(a),
            Op::Abs(a) => RowOp::Abs(a),
            Op::Sqrt(a) => RowOp::Sqrt(a),
            Op::Add(a, b) => RowOp::Add(a, b),
            Op::Sub(a, b) => RowOp::Sub(a, b),
            Op::Mul(a, b) => RowOp::Mul(a, b),
            Op::Div(a, b) => RowOp::Div(a, b),
            Op::Fma(a, b, c) => RowOp::Fma(a, b, c),
            Op::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            } => RowOp::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            },
        })
    }

    /// The same operation on other values.
    fn map(self, of: impl Fn(Value) -> Value) -> RowOp {
        match self {
            RowOp::Load(_) | RowOp::Const(_) => self,
            RowOp::Neg(a) => RowOp::Neg(of(a)),
            RowOp::Abs(a) => RowOp::Abs(of(a)),
            RowOp::Sqrt(a) => RowOp::Sqrt(of(a)),
            RowOp::Add(a, b) => RowOp::Add(of(a), of(b)),
            RowOp::Sub(a, b) => RowOp::Sub(of(a), of(b)),
            RowOp::Mul(a, b) => RowOp::Mul(of(a), of(b)),
            RowOp::Div(a, b) => RowOp::Div(of(a), of(b)),
            RowOp::Fma(a, b, c) => RowOp::Fma(of(a), of(b), of(c)),
            RowOp::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            } => RowOp::Select {
                cmp,
                a: of(a),
                b: of(b),
                then: of(then),
                otherwise: of(otherwise),
            },
        }
    }

    /// What it is computed from.
    pub fn operands(&self) -> [Option<Value>; 4] {
        match *self {
            RowOp::Load(_) | RowOp::Const(_) => [None; 4],
            RowOp::Neg(a) | RowOp::Abs(a) | RowOp::Sqrt(a) => [Some(a), None, None, None],
            RowOp::Add(a, b) | RowOp::Sub(a, b) | RowOp::Mul(a, b) | RowOp::Div(a, b) => {
                [Some(a), Some(b), None, None]
            }
            RowOp::Fma(a, b, c) => [Some(a), Some(b), Some(c), None],
            RowOp::Select {
                a,
                b,
                then,
                otherwise,
                ..
            } => [Some(a), Some(b), Some(then), Some(otherwise)],
        }
    }
}

/// An operand in memory, seen from inner index 0 of the target's group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// To index 0 of the row: a whole number of lines.
    pub row: i64,
    /// Along the row.
    pub shift: i64,
}

impl Place {
    /// From the start of the target's group.
    pub fn displacement(self) -> i64 {
        self.row + self.shift
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// To index 0 of the target's row.
    pub row: i64,
    pub value: Value,
}

impl RowProgram {
    pub fn new(scheme: &Scheme, set: &KernelSet, kernel: &RowKernel) -> RowProgram {
        let mut builder = Builder {
            scheme,
            set,
            kernel,
            ops: Vec::new(),
            known: BTreeMap::new(),
        };
        let stores = kernel
            .updates(scheme)
            .map(|update| builder.update(update))
            .collect();
        RowProgram {
            symbol: format!("torre_{kernel}"),
            ops: builder.ops,
            stores,
        }
    }

    /// One program for each kernel of a set.
    pub fn all<'a>(
        scheme: &'a Scheme,
        set: &'a KernelSet,
    ) -> impl Iterator<Item = RowProgram> + 'a {
        set.kernels
            .iter()
            .map(move |kernel| RowProgram::new(scheme, set, kernel))
    }

    /// What is loaded.
    pub fn loads(&self) -> impl Iterator<Item = Place> + '_ {
        self.ops.iter().filter_map(|op| match op {
            RowOp::Load(place) => Some(*place),
            _ => None,
        })
    }
}

struct Builder<'a> {
    scheme: &'a Scheme,
    set: &'a KernelSet,
    kernel: &'a RowKernel,
    ops: Vec<RowOp>,
    known: BTreeMap<RowOp, Value>,
}

impl Builder<'_> {
    /// The value of an operation: a new one, unless it was computed before.
    fn value(&mut self, op: RowOp) -> Value {
        *self.known.entry(op).or_insert_with(|| {
            self.ops.push(op);
            Value(self.ops.len() as u32 - 1)
        })
    }

    fn row(&self, row: crate::layout::RowId) -> i64 {
        i64::from(row.0) * self.set.layout.row_stride
    }

    fn update(&mut self, update: &Update) -> Store {
        let layout = &self.set.layout;
        let target = layout.target_row(
            self.scheme,
            self.kernel.stage,
            self.kernel.phase,
            update.target,
        );
        let row = self.row(target);
        let mut value = self.body(&update.body);
        if let Some(mask) = update.mask {
            // The mask comes before the old value, in case that the latter is already there.
            let mask = Place {
                row: self.row(layout.coef_row(mask)),
                shift: 0,
            };
            let mask = self.value(RowOp::Load(mask));
            let zero = self.value(RowOp::Const(0f64.to_bits()));
            let old = self.value(RowOp::Load(Place { row, shift: 0 }));
            value = self.value(RowOp::Select {
                cmp: Cmp::Ne,
                a: mask,
                b: zero,
                then: value,
                otherwise: old,
            });
        }
        Store { row, value }
    }

    fn body(&mut self, body: &Body) -> Value {
        let used = used(body);
        let layout = &self.set.layout;
        let mut values = Vec::with_capacity(body.ops.len());
        for (op, used) in body.ops.iter().zip(used) {
            if !used {
                // A place for the index; nothing refers to it.
                values.push(Value(u32::MAX));
                continue;
            }
            let resolved = match op {
                Op::Read(read) => {
                    let shift = i64::from(read.offset[crate::lattice::Axis::INNER]);
                    let at = layout.displacement(
                        self.scheme,
                        self.kernel.stage,
                        self.kernel.phase,
                        read,
                    );
                    Some(RowOp::Load(Place {
                        row: at - shift,
                        shift,
                    }))
                }
                Op::Coef(coef) => Some(RowOp::Load(Place {
                    row: self.row(layout.coef_row(*coef)),
                    shift: 0,
                })),
                op => RowOp::of(op).map(|op| op.map(|v| values[v.index()])),
            };
            values.push(resolved.map_or(Value(u32::MAX), |op| self.value(op)));
        }
        values[body.result.index()]
    }
}

/// Which operations the result depends on.
fn used(body: &Body) -> Vec<bool> {
    let mut used = vec![false; body.ops.len()];
    used[body.result.index()] = true;
    for (i, op) in body.ops.iter().enumerate().rev() {
        if used[i] {
            op.operands(|v| used[v.index()] = true);
        }
    }
    used
}
