//! Kernels for zones: after the updates of a stage have computed all its values, they amend the values in the boxes of
//! a zone, a value a thread, and advance its states. Zones follow each other in the order of the amendments.
//!
//! Layerwise, every stage goes through memory anyway, so that the cost of a second kernel is the traffic of the box's
//! values. It cannot run where an amendment reads a value that its own stage overwrites ([`reads_overwritten`]).

use crate::backend::gpu::abi::Amend;
use crate::backend::gpu::ir::{Launch, Module, Operand, Type};
use crate::backend::gpu::kernel::{Access, IntCmp, IntOp, Kernel, Special};
use crate::backend::rows::RowOp;
use crate::ghost::AxisGhosts;
use crate::lattice::{Axis, Interval, PerAxis, Region};
use crate::layout::{BoxLayout, Layout};
use crate::scheme::{Amendment, Body, CoefId, Op, Scheme, StageId, StateId, Update, ZoneId};

/// Threads of a block along the inner axis and the middle axis.
const THREADS: [u32; 2] = [32, 4];

/// A kernel that amends the updates of a stage in a box of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmendKernel {
    pub stage: StageId,
    pub phase: u32,
    pub zone: ZoneId,
    /// By its number in the zone's layout.
    pub part: usize,
}

impl AmendKernel {
    /// The kernels of a stage in the order in which they run.
    pub fn all(scheme: &Scheme, layout: &Layout, stage: StageId, phase: u32) -> Vec<AmendKernel> {
        let updates = &scheme.stages[stage.index()].updates;
        let mut kernels = Vec::new();
        for (zone, own) in layout.zones.iter().enumerate() {
            let zone = ZoneId(zone as u32);
            if updates.iter().any(|u| u.zones().contains(zone)) {
                kernels.extend((0..own.boxes.len()).map(|part| AmendKernel {
                    stage,
                    phase,
                    zone,
                    part,
                }));
            }
        }
        kernels
    }

    pub fn symbol(&self) -> String {
        let AmendKernel {
            stage,
            phase,
            zone,
            part,
        } = self;
        format!("torre_amend_{stage}_p{phase}_{zone}_b{part}")
    }

    /// Blocks and threads; `None` where the box is too large for one launch.
    pub fn start(&self, layout: &Layout) -> Option<([u32; 3], [u32; 3])> {
        let [x, y, z] = layout.zones[self.zone.index()].boxes[self.part].region.0;
        let blocks = |range: Interval, per_block: u32, most: i64| {
            let n = (range.len() as u64).div_ceil(u64::from(per_block));
            u32::try_from(n).ok().filter(|n| i64::from(*n) <= most)
        };
        let blocks = [
            blocks(z, THREADS[0], i64::from(i32::MAX))?,
            blocks(y, THREADS[1], 65535)?,
            blocks(x, 1, 65535)?,
        ];
        Some((blocks, [THREADS[0], THREADS[1], 1]))
    }
}

/// Whether an amendment reads a value that its own stage overwrites, or the amendments of an update are not in the
/// order of their zones.
pub fn reads_overwritten(scheme: &Scheme) -> bool {
    let updates = scheme.stages.iter().flat_map(|s| &s.updates);
    let in_order = |update: &Update| update.amendments.iter().map(|a| a.zone).is_sorted();
    crate::tower::reads_overwritten(scheme) || !updates.into_iter().all(in_order)
}

/// Adds all kernels for zones.
pub fn emit(module: &mut Module, scheme: &Scheme, layout: &Layout) {
    for stage in scheme.stage_ids() {
        for phase in 0..scheme.phases() {
            for kernel in AmendKernel::all(scheme, layout, stage, phase) {
                let launch = Launch {
                    threads: [THREADS[0], THREADS[1], 1],
                    ..Launch::default()
                };
                let k = module.kernel(&kernel.symbol(), Amend::TYPES, launch);
                Writer {
                    scheme,
                    layout,
                    kernel,
                    own: &layout.zones[kernel.zone.index()].boxes[kernel.part],
                    real: Type::scalar(scheme.precision),
                }
                .write(k);
            }
        }
    }
}

struct Writer<'a> {
    scheme: &'a Scheme,
    layout: &'a Layout,
    kernel: AmendKernel,
    own: &'a BoxLayout,
    real: Type,
}

/// A thread's cell.
struct Cell {
    /// Indices.
    at: PerAxis<Operand>,
    /// Element 0 of the array.
    array: Operand,
    /// Row 0 of its group, and of the group of states, at its inner index.
    group: Operand,
    states: Operand,
}

impl Writer<'_> {
    fn write(&self, mut k: Kernel<'_>) {
        let cell = self.cell(&mut k);
        for update in &self.scheme.stages[self.kernel.stage.index()].updates {
            let amendment = update
                .amendments
                .iter()
                .find(|a| a.zone == self.kernel.zone);
            let Some(amendment) = amendment else { continue };
            let region = update.region.intersect(self.own.region);
            if region.is_empty() {
                continue;
            }
            match self.within(&mut k, &cell, region) {
                Some(within) => k.when(within, |k| self.update(k, &cell, update, amendment)),
                None => self.update(&mut k, &cell, update, amendment),
            }
        }
        k.finish();
    }

    fn cell(&self, k: &mut Kernel<'_>) -> Cell {
        let array = k.param(Amend::ARRAY);
        let region = self.own.region;
        let mut index = |block: u32, axis: Axis, per_block: u32| {
            let number = k.special(Special::Block(block as usize));
            let mut number = k.int(IntOp::Mul, number, Operand::i32(per_block as i32));
            if per_block > 1 {
                let thread = k.special(Special::Thread(block as usize));
                number = k.int(IntOp::Add, number, thread);
                let beyond = Operand::i32(region[axis].len() as i32);
                let beyond = k.compare(IntCmp::Ge, number, beyond);
                k.exit_if(beyond);
            }
            k.int(IntOp::Add, number, Operand::i32(region[axis].lo as i32))
        };
        let z = index(0, Axis::INNER, THREADS[0]);
        let y = index(1, Axis::MIDDLE, THREADS[1]);
        let x = index(2, Axis::OUTER, 1);
        let zone = &self.layout.zones[self.kernel.zone.index()];
        let layout = self.layout;
        let group = self.pointer(
            k,
            array,
            layout.group(0, 0),
            [
                (x, layout.stride[Axis::OUTER]),
                (y, layout.stride[Axis::MIDDLE]),
                (z, 1),
            ],
        );
        let states = self.pointer(
            k,
            array,
            self.own.group(zone, 0, 0),
            [(x, zone.plane), (y, zone.group), (z, 1)],
        );
        Cell {
            at: PerAxis([x, y, z]),
            array,
            group,
            states,
        }
    }

    /// An element of the array, some indices times strides further.
    fn pointer<const N: usize>(
        &self,
        k: &mut Kernel<'_>,
        array: Operand,
        first: i64,
        terms: [(Operand, i64); N],
    ) -> Operand {
        let mut at = k.offset(array, self.bytes(first));
        for (index, stride) in terms {
            let wide = k.resize(index, Type::I64);
            let by = k.int(IntOp::Mul, wide, Operand::i64(self.bytes(stride)));
            at = k.advance(at, by, 1);
        }
        at
    }

    fn bytes(&self, elements: i64) -> i64 {
        elements * self.layout.element_bytes as i64
    }

    /// Whether a cell lies in a part of the box; `None`: all do.
    fn within(&self, k: &mut Kernel<'_>, cell: &Cell, region: Region) -> Option<Operand> {
        let mut all = None;
        for axis in Axis::ALL {
            let (own, part) = (self.own.region[axis], region[axis]);
            let mut tests = Vec::new();
            if part.lo > own.lo {
                tests.push((IntCmp::Ge, part.lo));
            }
            if part.hi < own.hi {
                tests.push((IntCmp::Lt, part.hi));
            }
            for (cmp, bound) in tests {
                let holds = k.compare(cmp, cell.at[axis], Operand::i32(bound as i32));
                all = Some(match all {
                    None => holds,
                    Some(all) => k.int(IntOp::And, all, holds),
                });
            }
        }
        all
    }

    fn load(&self, k: &mut Kernel<'_>, from: Operand) -> Operand {
        k.load(self.real, from, self.real.bytes(), Access::Plain)
    }

    fn update(&self, k: &mut Kernel<'_>, cell: &Cell, update: &Update, amendment: &Amendment) {
        let Some(mask) = update.mask else {
            return self.amend(k, cell, update, amendment);
        };
        let from = k.offset(cell.group, self.row(self.layout.coef_row(mask)));
        let mask = self.load(k, from);
        let zero = Operand::real(self.real, 0f64.to_bits());
        let acts = k.differs(mask, zero);
        k.when(acts, |k| self.amend(k, cell, update, amendment));
    }

    fn row(&self, row: crate::layout::RowId) -> i64 {
        self.bytes(i64::from(row.0) * self.layout.row_stride)
    }

    fn state(&self, state: StateId) -> i64 {
        let zone = &self.layout.zones[self.kernel.zone.index()];
        self.bytes(i64::from(self.layout.state_row(state)) * zone.row_stride)
    }

    fn amend(&self, k: &mut Kernel<'_>, cell: &Cell, update: &Update, amendment: &Amendment) {
        let AmendKernel { stage, phase, .. } = self.kernel;
        let target = self
            .layout
            .target_row(self.scheme, stage, phase, update.target);
        let to = k.offset(cell.group, self.row(target));
        let base = self.load(k, to);
        let values = self.values(k, cell, &amendment.body, base);
        for advance in &amendment.advances {
            let to = k.offset(cell.states, self.state(advance.state));
            k.store(
                values[advance.value.index()],
                to,
                self.real.bytes(),
                Access::Plain,
            );
        }
        let value = values[amendment.body.result.index()];
        k.store(value, to, self.real.bytes(), Access::Plain);
        // The ghosts along the inner axis that the value has.
        let range = self.own.region[Axis::INNER];
        for (source, ghost) in AxisGhosts::new(self.scheme, update.target, Axis::INNER).pairs() {
            if !range.contains(source) {
                continue;
            }
            let here = k.compare(
                IntCmp::Eq,
                cell.at[Axis::INNER],
                Operand::i32(source as i32),
            );
            k.when(here, |k| {
                let value = if ghost.negated {
                    k.negated(value)
                } else {
                    value
                };
                let to = k.offset(to, self.bytes(ghost.index - source));
                k.store(value, to, self.real.bytes(), Access::Plain);
            });
        }
    }

    fn values(&self, k: &mut Kernel<'_>, cell: &Cell, body: &Body, base: Operand) -> Vec<Operand> {
        let AmendKernel { stage, phase, .. } = self.kernel;
        let mut values: Vec<Operand> = Vec::with_capacity(body.ops.len());
        for op in &body.ops {
            let value = match op {
                Op::Base => base,
                Op::Const(c) => Operand::real(self.real, c.to_bits()),
                Op::Read(read) => {
                    let at = self.layout.displacement(self.scheme, stage, phase, read);
                    let from = k.offset(cell.group, self.bytes(at));
                    self.load(k, from)
                }
                Op::Coef(coef) => self.coef(k, cell, *coef),
                Op::State(state) => {
                    let from = k.offset(cell.states, self.state(*state));
                    self.load(k, from)
                }
                op => RowOp::of(op)
                    .and_then(|op| k.number(&op, |v| values[v.index()]))
                    .unwrap_or(base),
            };
            values.push(value);
        }
        values
    }

    fn coef(&self, k: &mut Kernel<'_>, cell: &Cell, coef: CoefId) -> Operand {
        let from = match self.scheme.coefs[coef.index()].only_axis {
            None => k.offset(cell.group, self.row(self.layout.coef_row(coef))),
            Some(axis) => {
                let first = self.layout.axis_coef_element(axis, coef, 0);
                let stride = self.layout.axis_coefs[axis].stride;
                self.pointer(k, cell.array, first, [(cell.at[axis], stride)])
            }
        };
        self.load(k, from)
    }
}
