//! The same calculation on the host.

use super::*;
use crate::ghost::ComponentGhosts;

/// A calculation on the host, row by row.
pub struct Host<'a> {
    pub scheme: &'a Scheme,
    pub layout: Layout,
    pub code: Interp,
    pub memory: Memory,
}

/// Where a single update stands among the kernels of all stages and phases.
pub fn kernel(scheme: &Scheme, stage: StageId, phase: u32, update: usize) -> usize {
    let before = |s: usize| scheme.stages[s].updates.len() * scheme.phases() as usize;
    let first: usize = (0..stage.index()).map(before).sum();
    first + phase as usize * scheme.stages[stage.index()].updates.len() + update
}

impl<'a> Host<'a> {
    pub fn new(scheme: &'a Scheme, rng: &mut Rng) -> Host<'a> {
        let layout = Layout::for_gpu(scheme).expect("a small scheme");
        let mut kernels = Vec::new();
        for stage in scheme.stage_ids() {
            for phase in 0..scheme.phases() {
                for update in 0..scheme.stages[stage.index()].updates.len() {
                    kernels.push(RowKernel {
                        stage,
                        phase,
                        updates: UpdateSet(1 << update),
                    });
                }
            }
        }
        let set = KernelSet {
            layout: layout.clone(),
            kernels,
        };
        let mut host = Host {
            scheme,
            code: Interp::new(scheme, &set),
            memory: Memory::new(&layout),
            layout,
        };
        host.fill(rng);
        host
    }

    /// Random values where values are free, and their ghosts.
    pub fn fill(&mut self, rng: &mut Rng) {
        for id in self.scheme.component_ids() {
            let live = self.scheme.grid.live(self.scheme.component(id).position);
            for slot in 0..self.scheme.component(id).time_levels {
                let row = self.layout.row(id, slot.into());
                crate::reference::for_each_index(live, |at| {
                    let value = rng.float() * 2.0 - 1.0;
                    self.memory
                        .set(self.layout.element(row, at) as usize, value);
                });
            }
        }
        self.all_ghosts();
        for coef in 0..self.scheme.coefs.len() as u32 {
            let id = crate::scheme::CoefId(coef);
            let row = self.layout.coef_row(id);
            let extent = self
                .scheme
                .grid
                .extent(self.scheme.coefs[coef as usize].position);
            crate::reference::for_each_index(extent, |at| {
                let value = if rng.once_in(4) { 0.0 } else { rng.float() };
                self.memory
                    .set(self.layout.element(row, at) as usize, value);
            });
        }
    }

    /// Those of all rows.
    pub fn all_ghosts(&mut self) {
        for id in self.scheme.component_ids() {
            let live = self.scheme.grid.live(self.scheme.component(id).position);
            let [lean, diamond, range] = live.0;
            for slot in 0..self.scheme.component(id).time_levels {
                let row = self.layout.row(id, slot.into());
                for x in lean.lo..lean.hi {
                    for y in diamond.lo..diamond.hi {
                        self.ghosts(id, row, [x, y], range);
                    }
                }
            }
        }
    }

    pub fn value(&self, element: i64) -> f64 {
        let bits = self.memory.bits(element as usize);
        match self.scheme.precision {
            Precision::F32 => f64::from(f32::from_bits(bits as u32)),
            Precision::F64 => f64::from_bits(bits),
        }
    }

    pub fn ghosts(
        &mut self,
        id: crate::scheme::ComponentId,
        row: crate::layout::RowId,
        [x, y]: [i64; 2],
        range: Interval,
    ) {
        let ghosts = ComponentGhosts::new(self.scheme, id);
        for z in range.lo..range.hi {
            let value = self.value(self.layout.element(row, PerAxis([x, y, z])));
            for (at, negated) in ghosts.of_cell(PerAxis([x, y, z])).into_iter().skip(1) {
                let to = self.layout.element(row, at) as usize;
                self.memory.set(to, if negated { -value } else { value });
            }
        }
    }

    pub fn advance(&mut self, stage: StageId, step: u64, update: usize, rows: Region) {
        let of = &self.scheme.stages[stage.index()].updates[update];
        let phase = (step % u64::from(self.scheme.phases())) as u32;
        let index = kernel(self.scheme, stage, phase, update);
        let row = self.layout.target_row(self.scheme, stage, phase, of.target);
        let [lean, diamond, range] = rows.0;
        let range = range.intersect(of.region[Axis::INNER]);
        for x in lean.lo..lean.hi {
            for y in diamond.lo..diamond.hi {
                let group = self.memory.pointer(self.layout.group(x, y));
                let run = kernel::Run {
                    offset: 0,
                    groups: 1,
                };
                // SAFETY: the rows lie in the layout, the range in the target's extent.
                unsafe { self.code.run(index, group, &[run], range) };
                self.ghosts(of.target, row, [x, y], range);
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

    pub fn bytes(&mut self) -> &mut [u8] {
        let length = self.layout.bytes() as usize;
        // SAFETY: the memory is as long as the layout says.
        unsafe { std::slice::from_raw_parts_mut(self.memory.pointer(0), length) }
    }
}
