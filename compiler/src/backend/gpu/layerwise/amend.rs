//! Kernels for zones: after the updates of a stage have computed all its values, they amend the values in the boxes of
//! a zone, a value a thread, and advance its states. Zones follow each other in the order of the amendments. Values
//! that amendments read and the updates overwrite are kept before ([`super::kept`]).
//!
//! Layerwise, every stage goes through memory anyway, so that the cost of a second kernel is the traffic of the box's
//! values; of a third one, the traffic of the values that it copies.

use super::kept::{KeptBox, kept_updates};
use crate::backend::gpu::abi::{Amend, Argument, Kept};
use crate::backend::gpu::ir::{Launch, Module, Operand, Type};
use crate::backend::gpu::kernel::{Access, IntCmp, IntOp, Kernel, Special};
use crate::backend::rows::LaneOp;
use crate::ghost::AxisGhosts;
use crate::kernel::UpdateSet;
use crate::lattice::{Axis, Interval, PerAxis, Region};
use crate::layerwise::{MOST_BLOCKS, Shape};
use crate::layout::{BoxLayout, Layout, RowId};
use crate::scheme::{Amendment, CoefId, Op, Scheme, StageId, StateId, Update, ZoneId};

/// Threads of a block along the inner axis and the middle axis.
const THREADS: [u32; 2] = [32, 4];

/// A kernel for the updates of a stage in a box of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneKernel {
    pub stage: StageId,
    pub phase: u32,
    pub zone: ZoneId,
    /// By its number in the zone's layout.
    pub part: usize,
    pub act: ZoneAct,
}

/// The work of a kernel for a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneAct {
    /// Copies values that amendments read and the updates of the stage overwrite, before these do.
    Keep,
    /// Amends updates. `nth`: how many kernels of the same box come before, where amendments are not in the order of
    /// zones.
    Amend { nth: usize },
}

/// Amendments of a stage that may act together.
struct AmendmentSet {
    zone: ZoneId,
    updates: UpdateSet,
}

/// The amendments of a stage, each update's in their order; a set for each zone where that is the order of zones.
fn amendment_sets(scheme: &Scheme, stage: StageId) -> Vec<AmendmentSet> {
    let updates = &scheme.stages[stage.index()].updates;
    let mut done = vec![0; updates.len()];
    let mut sets = Vec::new();
    loop {
        let next = |done: &[usize], number: usize| {
            let amendment = updates[number].amendments.get(done[number]);
            amendment.map(|amendment| amendment.zone)
        };
        let zones = (0..updates.len()).filter_map(|number| next(&done, number));
        let Some(zone) = zones.min() else {
            return sets;
        };
        let mut own = UpdateSet::default();
        for number in 0..updates.len() {
            if next(&done, number) == Some(zone) {
                own.insert(number);
                done[number] += 1;
            }
        }
        sets.push(AmendmentSet { zone, updates: own });
    }
}

impl ZoneKernel {
    /// The kernels that run before the updates of a stage.
    pub fn before(scheme: &Scheme, layout: &Layout, stage: StageId, phase: u32) -> Vec<ZoneKernel> {
        let mut kernels = Vec::new();
        for (zone, own) in layout.zones.iter().enumerate() {
            let zone = ZoneId(zone as u32);
            if !kept_updates(scheme, stage, zone).is_empty() {
                kernels.extend((0..own.boxes.len()).map(|part| ZoneKernel {
                    stage,
                    phase,
                    zone,
                    part,
                    act: ZoneAct::Keep,
                }));
            }
        }
        kernels
    }

    /// The kernels that run after the updates of a stage, in their order.
    pub fn after(scheme: &Scheme, layout: &Layout, stage: StageId, phase: u32) -> Vec<ZoneKernel> {
        let sets = amendment_sets(scheme, stage);
        let mut kernels = Vec::new();
        for (number, AmendmentSet { zone, .. }) in sets.iter().enumerate() {
            let before = sets[..number].iter().filter(|other| other.zone == *zone);
            let nth = before.count();
            let boxes = layout.zones[zone.index()].boxes.len();
            kernels.extend((0..boxes).map(|part| ZoneKernel {
                stage,
                phase,
                zone: *zone,
                part,
                act: ZoneAct::Amend { nth },
            }));
        }
        kernels
    }

    /// All kernels of a stage.
    pub fn all(scheme: &Scheme, layout: &Layout, stage: StageId, phase: u32) -> Vec<ZoneKernel> {
        let mut all = ZoneKernel::before(scheme, layout, stage, phase);
        all.extend(ZoneKernel::after(scheme, layout, stage, phase));
        all
    }

    pub fn symbol(&self) -> String {
        let ZoneKernel {
            stage,
            phase,
            zone,
            part,
            act,
        } = self;
        let place = format!("{stage}_p{phase}_{zone}_b{part}");
        match act {
            ZoneAct::Keep => format!("torre_keep_{place}"),
            ZoneAct::Amend { nth: 0 } => format!("torre_amend_{place}"),
            ZoneAct::Amend { nth } => format!("torre_amend_{place}_t{nth}"),
        }
    }

    /// The updates on which it acts.
    pub(super) fn updates(&self, scheme: &Scheme) -> UpdateSet {
        match self.act {
            ZoneAct::Keep => kept_updates(scheme, self.stage, self.zone),
            ZoneAct::Amend { nth } => {
                let sets = amendment_sets(scheme, self.stage).into_iter();
                let mut own = sets.filter(|other| other.zone == self.zone);
                own.nth(nth).map_or(UpdateSet::default(), |own| own.updates)
            }
        }
    }

    /// Whether it accesses old values that are kept.
    fn has_kept(&self, scheme: &Scheme) -> bool {
        let kept = kept_updates(scheme, self.stage, self.zone);
        self.updates(scheme)
            .iter()
            .any(|update| kept.contains(update))
    }

    /// Its parameters, for an array and memory for old values.
    pub fn arguments(&self, scheme: &Scheme, array: u64, kept: u64) -> Vec<Argument> {
        match self.has_kept(scheme) {
            true => Kept { array, kept }.arguments(),
            false => Amend { array }.arguments(),
        }
    }

    /// Blocks and threads; `None` where the box is too large for one launch. Where it has more planes than `shape` has
    /// blocks along the outer axis, each of these takes planes in turn.
    pub fn start(&self, layout: &Layout, shape: Shape) -> Option<([u32; 3], [u32; 3])> {
        let [x, y, z] = layout.zones[self.zone.index()].boxes[self.part].region.0;
        let threads = threads_of(shape);
        let blocks = |range: Interval, per_block: u32, most: i64| {
            let n = (range.len() as u64).div_ceil(u64::from(per_block));
            u32::try_from(n).ok().filter(|n| i64::from(*n) <= most)
        };
        let blocks = [
            blocks(z, threads[0], i64::from(i32::MAX))?,
            blocks(y, threads[1], i64::from(MOST_BLOCKS))?,
            x.len().min(most_planes(shape)) as u32,
        ];
        Some((blocks, [threads[0], threads[1], 1]))
    }
}

/// Threads of a block along the inner axis and the middle axis: where there are many rows, as many for these as the
/// blocks of bare kernels have.
fn threads_of(shape: Shape) -> [u32; 2] {
    match shape.threads[1] > THREADS[1] {
        true => shape.threads,
        false => THREADS,
    }
}

/// The most blocks along the outer axis.
fn most_planes(shape: Shape) -> i64 {
    i64::from(shape.most_outer.clamp(1, MOST_BLOCKS))
}

/// Adds all kernels for zones.
pub fn emit(module: &mut Module, scheme: &Scheme, layout: &Layout, shape: Shape) {
    for stage in scheme.stage_ids() {
        for phase in 0..scheme.phases() {
            for kernel in ZoneKernel::all(scheme, layout, stage, phase) {
                let threads = threads_of(shape);
                let launch = Launch {
                    threads: [threads[0], threads[1], 1],
                    ..Launch::default()
                };
                let has_kept = kernel.has_kept(scheme);
                let params = match has_kept {
                    true => Kept::TYPES,
                    false => Amend::TYPES,
                };
                let k = module.kernel(&kernel.symbol(), params, launch);
                let kept = KeptBox::of(scheme, layout, &kernel);
                ZoneCode {
                    scheme,
                    layout,
                    kernel,
                    own: &layout.zones[kernel.zone.index()].boxes[kernel.part],
                    kept: kept.filter(|_| has_kept),
                    real: Type::scalar(scheme.precision),
                    threads,
                    most_planes: most_planes(shape),
                }
                .write(k);
            }
        }
    }
}

struct ZoneCode<'a> {
    scheme: &'a Scheme,
    layout: &'a Layout,
    kernel: ZoneKernel,
    own: &'a BoxLayout,
    /// Where old values are kept, if it accesses some.
    kept: Option<KeptBox>,
    real: Type,
    /// Threads of a block along the inner axis and the middle axis.
    threads: [u32; 2],
    /// Planes for each of which there is a block.
    most_planes: i64,
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
    /// The old value of the first update whose old values are kept, if some are accessed.
    kept: Option<Operand>,
}

/// An update whose values are amended.
#[derive(Clone, Copy)]
struct Amending<'a> {
    update: &'a Update,
    amendment: &'a Amendment,
    /// By its number in the stage.
    number: usize,
}

impl ZoneCode<'_> {
    fn write(&self, mut k: Kernel<'_>) {
        let planes = self.own.region[Axis::OUTER].len();
        let [z, y] =
            [(0, Axis::INNER), (1, Axis::MIDDLE)].map(|(n, axis)| self.index(&mut k, n, axis));
        let plane = k.special(Special::Block(2));
        match planes <= self.most_planes {
            true => self.plane(&mut k, [plane, y, z]),
            false => {
                let planes = Operand::i32(planes as i32);
                let blocks = k.special(Special::Blocks(2));
                k.repeat(plane, planes, blocks, None, |k, plane| {
                    self.plane(k, [plane, y, z]);
                });
            }
        }
        k.finish();
    }

    /// The index of a thread along an axis; threads beyond the box end.
    fn index(&self, k: &mut Kernel<'_>, n: usize, axis: Axis) -> Operand {
        let range = self.own.region[axis];
        let number = k.special(Special::Block(n));
        let number = k.int(IntOp::Mul, number, Operand::i32(self.threads[n] as i32));
        let thread = k.special(Special::Thread(n));
        let number = k.int(IntOp::Add, number, thread);
        let beyond = k.compare(IntCmp::Ge, number, Operand::i32(range.len() as i32));
        k.exit_if(beyond);
        k.int(IntOp::Add, number, Operand::i32(range.lo as i32))
    }

    /// The updates in a plane of the box, at y and z.
    fn plane(&self, k: &mut Kernel<'_>, [plane, y, z]: [Operand; 3]) {
        let first = Operand::i32(self.own.region[Axis::OUTER].lo as i32);
        let x = k.int(IntOp::Add, plane, first);
        let cell = self.cell(k, [x, y, z]);
        let updates = &self.scheme.stages[self.kernel.stage.index()].updates;
        for number in self.kernel.updates(self.scheme).iter() {
            let update = &updates[number];
            let mut amendments = update.amendments.iter();
            let Some(amendment) = amendments.find(|a| a.zone == self.kernel.zone) else {
                continue;
            };
            let region = update.region.intersect(self.own.region);
            if region.is_empty() {
                continue;
            }
            let own = Amending {
                update,
                amendment,
                number,
            };
            match self.within(k, &cell, region) {
                Some(within) => k.when(within, |k| self.act(k, &cell, own)),
                None => self.act(k, &cell, own),
            }
        }
    }

    fn act(&self, k: &mut Kernel<'_>, cell: &Cell, own: Amending<'_>) {
        match self.kernel.act {
            ZoneAct::Keep => self.keep(k, cell, own),
            ZoneAct::Amend { .. } => self.update(k, cell, own),
        }
    }

    fn cell(&self, k: &mut Kernel<'_>, [x, y, z]: [Operand; 3]) -> Cell {
        let array = k.param(Amend::ARRAY);
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
        let kept = self.kept.map(|own| {
            let [by_x, by_y, by_z] = own.stride.0;
            let terms = [(x, by_x), (y, by_y), (z, by_z)];
            let memory = k.param(Kept::KEPT);
            self.pointer(k, memory, own.first, terms)
        });
        Cell {
            at: PerAxis([x, y, z]),
            array,
            group,
            states,
            kept,
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

    /// Where the old value of an update is kept.
    fn kept(&self, k: &mut Kernel<'_>, cell: &Cell, update: usize) -> Option<Operand> {
        let (own, from) = self.kept.zip(cell.kept)?;
        Some(k.offset(from, self.bytes(own.of_update(update))))
    }

    fn keep(&self, k: &mut Kernel<'_>, cell: &Cell, own: Amending<'_>) {
        let from = k.offset(cell.group, self.row(self.target(own.update)));
        let value = self.load(k, from);
        if let Some(to) = self.kept(k, cell, own.number) {
            k.store(value, to, self.real.bytes(), Access::Plain);
        }
    }

    fn update(&self, k: &mut Kernel<'_>, cell: &Cell, own: Amending<'_>) {
        let Some(mask) = own.update.mask else {
            return self.amend(k, cell, own);
        };
        let from = k.offset(cell.group, self.row(self.layout.coef_row(mask)));
        let mask = self.load(k, from);
        let zero = Operand::real(self.real, 0f64.to_bits());
        let acts = k.differs(mask, zero);
        k.when(acts, |k| self.amend(k, cell, own));
    }

    /// The row that an update writes.
    fn target(&self, update: &Update) -> RowId {
        let ZoneKernel { stage, phase, .. } = self.kernel;
        self.layout
            .target_row(self.scheme, stage, phase, update.target)
    }

    fn row(&self, row: RowId) -> i64 {
        self.bytes(i64::from(row.0) * self.layout.row_stride)
    }

    fn state(&self, state: StateId) -> i64 {
        let zone = &self.layout.zones[self.kernel.zone.index()];
        self.bytes(i64::from(self.layout.state_row(state)) * zone.row_stride)
    }

    fn amend(&self, k: &mut Kernel<'_>, cell: &Cell, own: Amending<'_>) {
        let Amending {
            update, amendment, ..
        } = own;
        let to = k.offset(cell.group, self.row(self.target(update)));
        let base = self.load(k, to);
        let values = self.values(k, cell, own, base);
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

    fn values(
        &self,
        k: &mut Kernel<'_>,
        cell: &Cell,
        own: Amending<'_>,
        base: Operand,
    ) -> Vec<Operand> {
        let ZoneKernel { stage, phase, .. } = self.kernel;
        let ops = &own.amendment.body.ops;
        let mut values: Vec<Operand> = Vec::with_capacity(ops.len());
        for op in ops {
            let value = match op {
                Op::Base => base,
                Op::Const(c) => Operand::real(self.real, c.to_bits()),
                Op::Read(read) if self.scheme.is_overwritten(own.update, read) => {
                    let from = self.kept(k, cell, own.number);
                    from.map_or(base, |from| self.load(k, from))
                }
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
                op => LaneOp::of(op)
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
