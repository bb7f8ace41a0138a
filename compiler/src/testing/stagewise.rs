//! The reference of tests of towers: row kernels, stage by stage, on memory that lies as on a GPU.

use super::{Memory, Rng};
use crate::backend::interp::Interp;
use crate::ghost::ComponentGhosts;
use crate::kernel::{KernelSet, RowKernel, RunStart, UpdateSet, ZoneParts, ZoneSplitter};
use crate::lattice::{Axis, Group, Interval, PerAxis, Region};
use crate::layout::{Layout, RowId};
use crate::reference::for_each_index;
use crate::scheme::{CoefId, ComponentId, Precision, Scheme, StageId, StateId, ZoneSet};

/// A calculation that row kernels advance, one stage after the other.
pub struct Stagewise<'a> {
    pub scheme: &'a Scheme,
    pub layout: Layout,
    pub memory: Memory,
    code: Interp,
    kernels: Vec<RowKernel>,
    split: ZoneSplitter,
}

impl<'a> Stagewise<'a> {
    /// Random values where values are free, with their ghosts, and random coefficients, some of them 0.
    pub fn new(scheme: &'a Scheme, rng: &mut Rng) -> Stagewise<'a> {
        let layout = Layout::for_gpu(scheme).expect("a small scheme");
        let mut kernels = Vec::new();
        for stage in scheme.stage_ids() {
            for phase in 0..scheme.phases() {
                for update in 0..scheme.stages[stage.index()].updates.len() {
                    kernels.push(RowKernel {
                        stage,
                        phase,
                        updates: UpdateSet(1 << update),
                        zones: ZoneSet::default(),
                    });
                }
            }
        }
        let set = KernelSet::new(scheme, layout.clone(), kernels);
        let mut own = Stagewise {
            scheme,
            code: Interp::new(scheme, &set),
            split: ZoneSplitter::new(scheme, &layout),
            kernels: set.kernels,
            memory: Memory::new(&layout),
            layout,
        };
        own.fill(rng);
        own.fill_states(rng);
        own
    }

    fn fill(&mut self, rng: &mut Rng) {
        for (id, row) in self.rows() {
            let live = self.scheme.grid.live(self.scheme.component(id).position);
            for_each_index(live, |at| {
                let value = rng.float() * 2.0 - 1.0;
                let element = self.layout.element(row, at) as usize;
                self.memory.set(element, value);
            });
            let [outer, middle, inner] = live.0;
            for x in outer.lo..outer.hi {
                for y in middle.lo..middle.hi {
                    self.make_ghosts(id, row, [x, y], inner);
                }
            }
        }
        for (number, coef) in self.scheme.coefs.iter().enumerate() {
            let id = CoefId(number as u32);
            if let Some(axis) = coef.only_axis {
                for i in 0..self.layout.extent[axis] {
                    let element = self.layout.axis_coef_element(axis, id, i) as usize;
                    self.memory.set(element, rng.float() - 0.5);
                }
                continue;
            }
            let row = self.layout.coef_row(id);
            for_each_index(self.scheme.grid.extent(coef.position), |at| {
                let value = if rng.once_in(4) { 0.0 } else { rng.float() };
                let element = self.layout.element(row, at) as usize;
                self.memory.set(element, value);
            });
        }
    }

    /// Random states.
    fn fill_states(&mut self, rng: &mut Rng) {
        for (_, _, element) in self.states() {
            self.memory.set(element, rng.float() - 0.5);
        }
    }

    /// All states, their cells, and where they lie.
    fn states(&self) -> Vec<(StateId, PerAxis<i64>, usize)> {
        let mut all = Vec::new();
        for (number, state) in self.scheme.states.iter().enumerate() {
            let id = StateId(number as u32);
            for own in &self.layout.zones[state.zone.index()].boxes {
                for_each_index(own.region, |at| {
                    let element = self.layout.state_element(state.zone, id, at);
                    all.extend(element.map(|element| (id, at, element as usize)));
                });
            }
        }
        all
    }

    /// The rows of all time levels of all components.
    pub fn rows(&self) -> Vec<(ComponentId, RowId)> {
        let of = |id: ComponentId| {
            let levels = 0..self.scheme.component(id).time_levels;
            levels.map(move |level| (id, self.layout.row(id, level.into())))
        };
        self.scheme.component_ids().flat_map(of).collect()
    }

    fn value(&self, element: i64) -> f64 {
        let bits = self.memory.bits(element as usize);
        match self.scheme.precision {
            Precision::F32 => f64::from(f32::from_bits(bits as u32)),
            Precision::F64 => f64::from_bits(bits),
        }
    }

    /// The ghosts of some values of a row.
    fn make_ghosts(&mut self, id: ComponentId, row: RowId, [x, y]: [i64; 2], range: Interval) {
        let ghosts = ComponentGhosts::new(self.scheme, id);
        for z in range.lo..range.hi {
            let value = self.value(self.layout.element(row, PerAxis([x, y, z])));
            for (at, negated) in ghosts.of_cell(PerAxis([x, y, z])).into_iter().skip(1) {
                let to = self.layout.element(row, at) as usize;
                self.memory.set(to, if negated { -value } else { value });
            }
        }
    }

    /// Writes a value to all ghosts along the inner axis of rows that are not constant zeros.
    pub fn spoil_inner_ghosts(&mut self, value: f64) {
        let [outer, middle] = [Axis::OUTER, Axis::MIDDLE].map(|axis| self.layout.visible(axis));
        for (id, row) in self.rows() {
            let ghosts = ComponentGhosts::new(self.scheme, id).0;
            for (_, ghost) in ghosts[Axis::INNER].pairs() {
                for x in outer.lo..outer.hi {
                    for y in middle.lo..middle.hi {
                        let at = PerAxis([x, y, ghost.index]);
                        let element = self.layout.element(row, at) as usize;
                        // Rows on a plane about which they are odd stay 0.
                        if self.memory.bits(element) != 0 {
                            self.memory.set(element, value);
                        }
                    }
                }
            }
        }
    }

    /// An update of a step in some cells, with the ghosts of the new values.
    pub fn advance(&mut self, stage: StageId, step: u64, update: usize, cells: Region) {
        let updates = &self.scheme.stages[stage.index()].updates;
        let of = &updates[update];
        let phases = self.scheme.phases();
        let phase = (step % u64::from(phases)) as u32;
        let row = self.layout.target_row(self.scheme, stage, phase, of.target);
        let [outer, middle, range] = cells.0;
        let range = range.intersect(of.region[Axis::INNER]);
        for x in outer.lo..outer.hi {
            for y in middle.lo..middle.hi {
                let group = self.memory.pointer(self.layout.group(x, y));
                let start = RunStart {
                    place: Group { x, y },
                    offset: 0,
                    groups: 1,
                };
                let starts = std::iter::once(start);
                let mut parts = ZoneParts::default();
                self.split.split(
                    &self.layout,
                    of.zones(),
                    Group { x, y },
                    starts,
                    range,
                    &mut parts,
                );
                for part in parts.iter() {
                    let kernel = RowKernel {
                        stage,
                        phase,
                        updates: UpdateSet(1 << update),
                        zones: part.zones,
                    };
                    let index = self.kernels.iter().position(|k| *k == kernel);
                    let index = index.expect("a kernel for each update and set of zones");
                    // SAFETY: the rows lie in the layout, the range in the target's extent.
                    unsafe { part.run(&self.code, index, group, part.range) };
                }
                self.make_ghosts(of.target, row, [x, y], range);
            }
        }
    }

    /// A step, stage by stage.
    pub fn step(&mut self, step: u64) {
        for stage in self.scheme.stage_ids() {
            for (i, update) in self.scheme.stages[stage.index()].updates.iter().enumerate() {
                self.advance(stage, step, i, update.region);
            }
        }
    }

    /// Whether an update reads a value at its place.
    fn is_read(&self, id: ComponentId, at: PerAxis<i64>) -> bool {
        let mut updates = self.scheme.stages.iter().flat_map(|stage| &stage.updates);
        updates.any(|update| {
            let mut reads = update.reads().filter(|read| read.component == id);
            reads.any(|read| {
                let from = |axis: Axis| at[axis] - i64::from(read.offset[axis]);
                Axis::ALL
                    .into_iter()
                    .all(|axis| update.region[axis].contains(from(axis)))
            })
        })
    }

    /// The first value that updates may read, ghosts included, in which two calculations differ.
    pub fn difference(&self, other: &Stagewise<'_>) -> Option<String> {
        let mut found = None;
        for (id, row) in self.rows() {
            let extent = self.scheme.extent(id);
            for_each_index(self.scheme.visible(id), |at| {
                let beyond = |axis: Axis| !extent[axis].contains(at[axis]);
                if beyond(Axis::OUTER) && beyond(Axis::MIDDLE) && !self.is_read(id, at) {
                    return;
                }
                let element = self.layout.element(row, at) as usize;
                let [own, theirs] = [self, other].map(|one| one.memory.bits(element));
                if own != theirs && found.is_none() {
                    let name = &self.scheme.component(id).name;
                    found = Some(format!("{row} {name} at {at:?}: {own:x} and {theirs:x}"));
                }
            });
        }
        for (state, at, element) in self.states() {
            let [own, theirs] = [self, other].map(|one| one.memory.bits(element));
            if own != theirs && found.is_none() {
                found = Some(format!("state {state} at {at:?}: {own:x} and {theirs:x}"));
            }
        }
        found
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        let length = self.layout.bytes() as usize;
        // SAFETY: the memory is as long as the layout says.
        unsafe { std::slice::from_raw_parts_mut(self.memory.pointer(0), length) }
    }
}
