//! Row programs: the computation of a kernel for one index, as one straight line of operations for all its updates.
//!
//! This is the common ground of the code generators: rows have become displacements in memory, a value that is read
//! twice is loaded once, and a mask has become a choice between the new and the old value. The order of operations
//! within an update is the order in its body. No update of a stage reads a value that another one writes (rule 4 of
//! [`crate::scheme`]), so all loads of an index may come before all its stores, and loads and stores of other indices
//! may come before or after them.

use super::ends::RowEnds;
use crate::kernel::{KernelSet, RowKernel, Stream, record_width, run_axis};
use crate::lattice::Axis;
use crate::scheme::{
    Amendment, Body, Cmp, CoefId, Op, Scheme, StateId, Update, Value, ZoneId, ZoneSet,
};
use std::collections::BTreeMap;

/// Displacements are in elements, from the start of the target's group.
#[derive(Clone, Debug, PartialEq)]
pub struct RowProgram {
    /// The name of the compiled function.
    pub symbol: String,
    /// Operands come before their users; none appears twice, and all are used.
    pub ops: Vec<LaneOp>,
    /// The number of operations that `stores` need; the operations behind them are for bands.
    pub common: usize,
    pub stores: Vec<Store>,
    /// Instead of `stores` where a zone lies in a band ([`crate::kernel::Bands`]); empty if none does.
    pub in_bands: Vec<Store>,
    /// The streams that are read and written beside the group's rows.
    pub streams: Vec<StreamUse>,
    /// From a run to the next one in the list, in bytes.
    pub record: i64,
    /// Ghosts to write after each row.
    pub ends: Vec<RowEnds>,
    /// Where the rows of the targets end along the inner axis, the shortest ones: most calls end there.
    pub until: i64,
}

/// A stream of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamUse {
    pub stream: Stream,
    /// Where a run's record says where it begins, in bytes.
    pub record: i64,
    /// From a group to the next one of a run, in elements.
    pub stride: i64,
}

/// An operand in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamPlace {
    /// By its number in the program.
    pub stream: u32,
    /// In elements from where the stream is at a group: to the row's index 0, or to the value.
    pub at: i64,
    /// One value for the whole row, instead of a row.
    pub uniform: bool,
}

/// An operation on the values of one index of a row: [`Op`] with its memory resolved. Vectors of a CPU have an index in
/// each lane, and so have threads of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaneOp {
    Load(OperandPlace),
    Stream(StreamPlace),
    /// The bits of an `f64` that is exact in the scheme's precision.
    Const(u64),
    Neg(Value),
    Abs(Value),
    Flush(Value),
    Sqrt(Value),
    Power2(Value),
    Exponent(Value),
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
    /// A choice by the index along the row: whether it lies in a band of a zone.
    InBand {
        zone: ZoneId,
        then: Value,
        otherwise: Value,
    },
}

impl LaneOp {
    /// An operation of a body that brings in no value from memory.
    pub fn of(op: &Op) -> Option<LaneOp> {
        Some(match *op {
            Op::Read(_) | Op::Coef(_) | Op::Base | Op::State(_) => return None,
            Op::Const(c) => LaneOp::Const(c.to_bits()),
            Op::Neg(a) => LaneOp::Neg(a),
            Op::Abs(a) => LaneOp::Abs(a),
            Op::Flush(a) => LaneOp::Flush(a),
            Op::Sqrt(a) => LaneOp::Sqrt(a),
            Op::Power2(a) => LaneOp::Power2(a),
            Op::Exponent(a) => LaneOp::Exponent(a),
            Op::Add(a, b) => LaneOp::Add(a, b),
            Op::Sub(a, b) => LaneOp::Sub(a, b),
            Op::Mul(a, b) => LaneOp::Mul(a, b),
            Op::Div(a, b) => LaneOp::Div(a, b),
            Op::Fma(a, b, c) => LaneOp::Fma(a, b, c),
            Op::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            } => LaneOp::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            },
        })
    }

    /// The values from which it is computed.
    pub fn operands(&self) -> [Option<Value>; 4] {
        match *self {
            LaneOp::Load(_) | LaneOp::Stream(_) | LaneOp::Const(_) => [None; 4],
            LaneOp::Neg(a)
            | LaneOp::Abs(a)
            | LaneOp::Flush(a)
            | LaneOp::Sqrt(a)
            | LaneOp::Power2(a)
            | LaneOp::Exponent(a) => [Some(a), None, None, None],
            LaneOp::Add(a, b) | LaneOp::Sub(a, b) | LaneOp::Mul(a, b) | LaneOp::Div(a, b) => {
                [Some(a), Some(b), None, None]
            }
            LaneOp::Fma(a, b, c) => [Some(a), Some(b), Some(c), None],
            LaneOp::Select {
                a,
                b,
                then,
                otherwise,
                ..
            } => [Some(a), Some(b), Some(then), Some(otherwise)],
            LaneOp::InBand {
                then, otherwise, ..
            } => [Some(then), Some(otherwise), None, None],
        }
    }
}

/// An operand in memory, seen from inner index 0 of the target's group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperandPlace {
    /// To index 0 of the row: a whole number of lines.
    pub row: i64,
    /// Along the row.
    pub shift: i64,
}

impl OperandPlace {
    /// From the start of the target's group.
    pub fn displacement(self) -> i64 {
        self.row + self.shift
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// To index 0 of the target's row.
    pub row: i64,
    /// The stream that the row lies in, by its number in the program; `None`: the group.
    pub stream: Option<u32>,
    pub value: Value,
}

impl RowProgram {
    /// The program of a kernel whose zones all act in whole rows.
    pub fn new(scheme: &Scheme, set: &KernelSet, kernel: &RowKernel) -> RowProgram {
        Self::with_bands(scheme, set, kernel, ZoneSet::default())
    }

    /// The program of a kernel of which some zones act in bands only.
    pub fn with_bands(
        scheme: &Scheme,
        set: &KernelSet,
        kernel: &RowKernel,
        banded: ZoneSet,
    ) -> RowProgram {
        let mut builder = Builder {
            scheme,
            set,
            kernel,
            banded,
            ops: Vec::new(),
            known: BTreeMap::new(),
            streams: Vec::new(),
        };
        let stores = builder.updates(kernel.zones.without(banded));
        let common = builder.ops.len();
        let in_bands = match kernel.zones.intersect(banded).is_empty() {
            true => Vec::new(),
            false => builder.updates(kernel.zones),
        };
        RowProgram {
            symbol: format!("torre_{kernel}"),
            ops: builder.ops,
            common,
            stores,
            in_bands,
            streams: builder.streams,
            ends: RowEnds::of_kernel(scheme, set, kernel),
            until: (kernel.updates(scheme))
                .map(|u| scheme.extent(u.target)[Axis::INNER].hi)
                .min()
                .unwrap_or(0),
            record: 8 * match kernel.zones.is_empty() {
                true => 2,
                false => record_width(&set.layout) as i64,
            },
        }
    }

    /// One program for each kernel of a set, with its bands.
    pub fn all<'a>(
        scheme: &'a Scheme,
        set: &'a KernelSet,
    ) -> impl Iterator<Item = RowProgram> + 'a {
        set.kernels.iter().map(move |kernel| {
            let banded = set.bands.banded(kernel.zones);
            RowProgram::with_bands(scheme, set, kernel, banded)
        })
    }

    /// The places that are loaded where no zone lies in a band.
    pub fn loads(&self) -> impl Iterator<Item = OperandPlace> + '_ {
        self.ops[..self.common].iter().filter_map(|op| match op {
            LaneOp::Load(place) => Some(*place),
            _ => None,
        })
    }
}

struct Builder<'a> {
    scheme: &'a Scheme,
    set: &'a KernelSet,
    kernel: &'a RowKernel,
    banded: ZoneSet,
    ops: Vec<LaneOp>,
    known: BTreeMap<LaneOp, Value>,
    streams: Vec<StreamUse>,
}

impl Builder<'_> {
    /// The value of an operation: a new one, unless it was computed before.
    fn value(&mut self, op: LaneOp) -> Value {
        *self.known.entry(op).or_insert_with(|| {
            self.ops.push(op);
            Value(self.ops.len() as u32 - 1)
        })
    }

    fn row(&self, row: crate::layout::RowId) -> i64 {
        i64::from(row.0) * self.set.layout.row_stride
    }

    /// The stores of all updates where some of the kernel's zones act.
    fn updates(&mut self, zones: ZoneSet) -> Vec<Store> {
        let updates = self.kernel.updates(self.scheme);
        updates.flat_map(|u| self.update(u, zones)).collect()
    }

    /// The same of one update.
    fn update(&mut self, update: &Update, zones: ZoneSet) -> Vec<Store> {
        let layout = &self.set.layout;
        let target = layout.target_row(
            self.scheme,
            self.kernel.stage,
            self.kernel.phase,
            update.target,
        );
        let row = self.row(target);
        let values = self.body(&update.body, None);
        let mut value = values[update.body.result.index()];
        let mut states = Vec::new();
        for amendment in &update.amendments {
            let zone = amendment.zone;
            if !zones.contains(zone) {
                continue;
            }
            let values = self.body(&amendment.body, Some((value, amendment)));
            let amended = values[amendment.body.result.index()];
            let band = self.banded.contains(zone).then_some(zone);
            value = match band {
                Some(zone) if amended != value => self.value(LaneOp::InBand {
                    zone,
                    then: amended,
                    otherwise: value,
                }),
                _ => amended,
            };
            for advance in &amendment.advances {
                states.push((
                    self.state(advance.state),
                    values[advance.value.index()],
                    band,
                ));
            }
        }
        let mask = update.mask.map(|mask| OperandPlace {
            row: self.row(layout.coef_row(mask)),
            shift: 0,
        });
        // The mask comes before the old value, in case that the latter is already there.
        value = self.masked(mask, value, LaneOp::Load(OperandPlace { row, shift: 0 }));
        let mut stores = vec![Store {
            row,
            stream: None,
            value,
        }];
        for (place, mut value, band) in states {
            value = self.masked(mask, value, LaneOp::Stream(place));
            if let Some(zone) = band {
                let old = self.value(LaneOp::Stream(place));
                value = self.value(LaneOp::InBand {
                    zone,
                    then: value,
                    otherwise: old,
                });
            }
            stores.push(Store {
                row: place.at,
                stream: Some(place.stream),
                value,
            });
        }
        stores
    }

    /// A value where a mask is not 0, else the old one.
    fn masked(&mut self, mask: Option<OperandPlace>, value: Value, old: LaneOp) -> Value {
        let Some(mask) = mask else { return value };
        let mask = self.value(LaneOp::Load(mask));
        let zero = self.value(LaneOp::Const(0f64.to_bits()));
        let old = self.value(old);
        self.value(LaneOp::Select {
            cmp: Cmp::Ne,
            a: mask,
            b: zero,
            then: value,
            otherwise: old,
        })
    }

    /// The number of a stream in the program.
    fn stream(&mut self, stream: Stream) -> u32 {
        let known = self.streams.iter().position(|s| s.stream == stream);
        let index = known.unwrap_or_else(|| {
            let layout = &self.set.layout;
            self.streams.push(StreamUse {
                stream,
                record: 8 * (2 + stream.index() as i64),
                stride: stream.run_stride(layout, run_axis(self.scheme)),
            });
            self.streams.len() - 1
        });
        index as u32
    }

    fn state(&mut self, state: StateId) -> StreamPlace {
        let zone = self.scheme.states[state.index()].zone;
        let layout = &self.set.layout;
        let at = i64::from(layout.state_row(state)) * layout.zones[zone.index()].row_stride;
        StreamPlace {
            stream: self.stream(Stream::Zone(zone)),
            at,
            uniform: false,
        }
    }

    fn coef(&mut self, coef: CoefId) -> LaneOp {
        let layout = &self.set.layout;
        let axis = self.scheme.coefs[coef.index()].only_axis;
        let (Some(axis), Some(number)) = (axis, layout.axis_coef_number(coef)) else {
            return LaneOp::Load(OperandPlace {
                row: self.row(layout.coef_row(coef)),
                shift: 0,
            });
        };
        let at = i64::from(number) * layout.axis_coefs[axis].coef_stride;
        LaneOp::Stream(StreamPlace {
            stream: self.stream(Stream::AxisCoefs(axis)),
            at,
            uniform: axis != Axis::INNER,
        })
    }

    /// The values of a body's operations: of an amendment with the value so far, or of the update's own.
    fn body(&mut self, body: &Body, amended: Option<(Value, &Amendment)>) -> Vec<Value> {
        let roots = amended.map_or(&[][..], |(_, a)| &a.advances);
        let used = used(body, roots.iter().map(|a| a.value));
        let layout = &self.set.layout;
        let mut values = Vec::with_capacity(body.ops.len());
        for (op, used) in body.ops.iter().zip(used) {
            if !used {
                // A place for the index; nothing refers to it.
                values.push(Value(u32::MAX));
                continue;
            }
            let resolved = match op {
                Op::Base => {
                    values.push(amended.map_or(Value(u32::MAX), |(base, _)| base));
                    continue;
                }
                Op::Read(read) => {
                    let shift = i64::from(read.offset[Axis::INNER]);
                    let at = layout.displacement(
                        self.scheme,
                        self.kernel.stage,
                        self.kernel.phase,
                        read,
                    );
                    Some(LaneOp::Load(OperandPlace {
                        row: at - shift,
                        shift,
                    }))
                }
                Op::Coef(coef) => Some(self.coef(*coef)),
                Op::State(state) => Some(LaneOp::Stream(self.state(*state))),
                op => LaneOp::of(&op.map(|v| values[v.index()])),
            };
            values.push(resolved.map_or(Value(u32::MAX), |op| self.value(op)));
        }
        values
    }
}

/// Which operations the result and the other roots depend on.
fn used(body: &Body, roots: impl Iterator<Item = Value>) -> Vec<bool> {
    let mut used = vec![false; body.ops.len()];
    used[body.result.index()] = true;
    for root in roots {
        used[root.index()] = true;
    }
    for (i, op) in body.ops.iter().enumerate().rev() {
        if used[i] {
            op.operands(|v| used[v.index()] = true);
        }
    }
    used
}
