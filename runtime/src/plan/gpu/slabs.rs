//! Overlapped slabs: their base and height for a device's memory.

use super::window::{COLUMNS, WindowKind, group_planes};
use super::{DevicePlanner, NoSlabs, NoWindow, Refusal, TowerPlan, Wanted, WindowPlan};
use crate::disk;
use crate::gpu::{HeldPlanes, InFlight, device_bytes};
use torre_compiler::backend::gpu::abi::TaskWord;
use torre_compiler::lattice::Axis;
use torre_compiler::pipeline::{
    BUFFERS, Footprints, LaidOutSlabs, NoLayout, Rates, Slab, SlabBuilder, SlabWork, SlabsRate,
    StatePlaces, wide_enough,
};

/// The sizes of slabs as one asks for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlabSizes {
    /// Planes of a base; `None`: as many as find room.
    pub base: Option<i64>,
    /// Steps of a pass; `None`: the number that is expected to be fastest.
    pub height: Option<u64>,
}

/// Slabs, planned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedSlabs {
    /// Planes of a base, and slabs of a pass.
    pub base: i64,
    pub count: usize,
    /// Cell-steps that are computed, and planes that are loaded, per cell-step and plane of the domain.
    pub computed: f64,
    pub loaded: f64,
    pub rate: SlabsRate,
}

/// Time blocks of a pass that are considered, and the most that there can be.
const BLOCKS: [u64; 10] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16];
const MOST_BLOCKS: u64 = 64;

/// How often a base is made smaller to find room.
const TRIALS: usize = 6;

/// A pass of slabs and its needs.
struct Fitted {
    slabs: Vec<Slab>,
    base: i64,
    places: i64,
}

impl Fitted {
    fn held(&self) -> HeldPlanes {
        HeldPlanes::Slabs {
            places: self.places,
            base: self.base,
        }
    }
}

fn places_of(slabs: &[Slab]) -> i64 {
    slabs.iter().map(|slab| slab.held.len()).max().unwrap_or(0)
}

fn narrow(error: NoLayout) -> NoSlabs {
    match error {
        NoLayout::Narrow { base, needed } => NoSlabs::Narrow { base, needed },
        // Nothing else is asked.
        NoLayout::TooFewPlaces { .. } | NoLayout::Stuck => NoSlabs::Narrow { base: 0, needed: 0 },
    }
}

/// Of two reasons the one that lacks less memory; the first one where either lacks something else.
fn nearer(first: Option<NoSlabs>, other: NoSlabs) -> NoSlabs {
    match (first, other) {
        (Some(NoSlabs::Memory { needed: first, .. }), NoSlabs::Memory { needed, .. })
            if needed < first =>
        {
            other
        }
        (first, other) => first.unwrap_or(other),
    }
}

impl DevicePlanner<'_> {
    /// Overlapped slabs over the host's memory, or over files.
    pub fn slabs(
        &self,
        plan: Option<&TowerPlan>,
        wanted: Wanted,
        sizes: SlabSizes,
    ) -> Result<WindowPlan, Refusal> {
        let refuse = |reason| Err(Refusal::Window(reason));
        if let Some(reason) = self.window_refusal(plan, wanted.every) {
            return refuse(reason);
        }
        if let Some(reason) = self.ring_refusal() {
            return refuse(reason);
        }
        let Some(plan) = plan else {
            return refuse(NoWindow::Layerwise);
        };
        if wanted.devices > 1 && wanted.disk.is_some() {
            return refuse(NoWindow::Slabs(NoSlabs::Devices));
        }
        let block = plan.height().max(1);
        let blocks: Vec<u64> = match (sizes.height, wanted.blocks) {
            (Some(height), asked) => {
                let blocks = height / block;
                let whole = height.is_multiple_of(block) && (1..=MOST_BLOCKS).contains(&blocks);
                if !whole || asked.is_some_and(|asked| asked as u64 != blocks) {
                    return refuse(NoWindow::Slabs(NoSlabs::Height { height, block }));
                }
                vec![blocks]
            }
            (None, Some(blocks)) => vec![blocks as u64],
            (None, None) => BLOCKS.to_vec(),
        };
        let (mut best, mut refused) = (None::<WindowPlan>, None);
        let mut all = None::<Footprints>;
        for columns in wanted.columns.map_or(COLUMNS.to_vec(), |n| vec![n]) {
            let group = group_planes(plan.fit.towers(), columns);
            let all = all.get_or_insert_with(|| self.footprints(plan, group));
            let mut footprints = all.regrouped(group, plan.height());
            for blocks in &blocks {
                let how = |held| InFlight {
                    blocks: *blocks as usize,
                    group,
                    ahead: 0,
                    spread: false,
                    held,
                };
                match self.slabs_of(&mut footprints, plan, &how, wanted.available, sizes) {
                    Ok(fitted) => {
                        let how = how(fitted.held());
                        let found = self.rated(&footprints, plan, how, fitted, wanted);
                        let is_better = |best: &WindowPlan| best.rate() < found.rate();
                        if best.as_ref().is_none_or(is_better) {
                            best = Some(found);
                        }
                    }
                    Err(reason) => refused = Some(nearer(refused, reason)),
                }
            }
        }
        let reason = refused.map_or(NoWindow::Way, NoWindow::Slabs);
        best.ok_or(Refusal::Window(reason))
    }

    /// The slabs of passes of some time blocks, as wide as asked for or as find room in the given bytes. `how`: the
    /// time blocks, by the planes that the device holds.
    fn slabs_of(
        &self,
        footprints: &mut Footprints,
        plan: &TowerPlan,
        how: &dyn Fn(HeldPlanes) -> InFlight,
        available: u64,
        sizes: SlabSizes,
    ) -> Result<Fitted, NoSlabs> {
        let (scheme, layout) = (self.planner.scheme, &self.window_layout);
        let plane_bytes = layout.stride[Axis::OUTER] as u64 * layout.element_bytes as u64;
        let waves = self.waves_per_step();
        // Besides planes.
        let how = how(HeldPlanes::Slabs { places: 0, base: 0 });
        let fixed = device_bytes(scheme, self.problem, layout, plan.height(), how, waves);
        let fixed = fixed.saturating_add(self.slab_tables(plan));
        let left = available.saturating_sub(fixed);
        let room = (left / (BUFFERS as u64 * plane_bytes).max(1)) as i64;
        let memory = |places: i64| NoSlabs::Memory {
            needed: fixed.saturating_add(places as u64 * BUFFERS as u64 * plane_bytes),
            available,
        };
        let planes = layout.visible(Axis::OUTER).len();
        let heights = vec![plan.height(); how.blocks];
        let least = footprints.least_held(scheme, &heights);
        if least > room {
            return Err(memory(least));
        }
        let mut of = |base: i64| footprints.slabs(scheme, layout, &heights, base);
        if let Some(base) = sizes.base {
            let slabs = of(base).ok_or(NoSlabs::Narrow { base, needed: 1 })?;
            wide_enough(&slabs).map_err(narrow)?;
            let places = places_of(&slabs);
            return match places <= room {
                true => Ok(Fitted {
                    slabs,
                    base,
                    places,
                }),
                false => Err(memory(places)),
            };
        }
        let mut base = room.min(planes);
        let mut least = memory(planes);
        let mut is_least = false;
        for _ in 0..TRIALS {
            if base < 1 {
                break;
            }
            // All bases about alike.
            let count = (planes - 1).div_euclid(base) + 1;
            let even = match is_least {
                true => base,
                false => (planes - 1).div_euclid(count) + 1,
            };
            let Some(slabs) = of(even) else {
                break;
            };
            let places = places_of(&slabs);
            if places > room {
                least = memory(places);
                if is_least {
                    break;
                }
                base = even.min(base) - (places - room);
                continue;
            }
            if let Err(NoLayout::Narrow { base: own, needed }) = wide_enough(&slabs) {
                least = memory((places + needed - own).max(room + 1));
                (base, is_least) = (needed, true);
                continue;
            }
            return Ok(Fitted {
                slabs,
                base: even,
                places,
            });
        }
        Err(least)
    }

    /// The prediction of slabs.
    fn rated(
        &self,
        footprints: &Footprints,
        plan: &TowerPlan,
        how: InFlight,
        fitted: Fitted,
        wanted: Wanted,
    ) -> WindowPlan {
        let (scheme, layout) = (self.planner.scheme, &self.window_layout);
        let Fitted { slabs, base, .. } = fitted;
        let plane_bytes = layout.stride[Axis::OUTER] as u64 * layout.element_bytes as u64;
        let planes = layout.visible(Axis::OUTER).len();
        let height = footprints.known(plan.height());
        let towers_of = |group: i64| height.map(|height| height.towers_of(group));
        let blocks = slabs.iter().flat_map(|slab| &slab.work.blocks);
        let groups = blocks.flat_map(|block| block.first..block.end());
        let towers: usize = groups.filter_map(towers_of).sum();
        let all = height.map_or(0, |height| height.all) * how.blocks;
        let loaded: i64 = slabs.iter().map(|slab| slab.loaded.len()).sum();
        let pass_steps = self.pass_steps(plan, how.blocks);
        let passes = self.problem.steps.div_ceil(pass_steps);
        let launches = self.launch_towers(plan, how.group).share();
        // Devices take slabs in turns; in the last round of a pass some may have none.
        let devices = wanted.devices.max(1);
        let rounds = slabs.len().div_ceil(devices);
        let busy = slabs.len() as f64 / rounds.max(1) as f64;
        let link = self.model.link_rate() * busy;
        let loaded = loaded as f64 / planes.max(1) as f64;
        let rates = Rates {
            cells: wanted.cells * launches * busy,
            // Planes that slabs have in common are read from files once.
            link: wanted
                .disk
                .map_or(link, |disk| link.min(disk / 2.0 * loaded)),
            copies: self.model.copy_rate,
        };
        let work = SlabWork {
            steps: pass_steps,
            bytes: self.bytes_of_a_cell(),
            computed: towers as f64 / all.max(1) as f64,
            loaded,
            // A pass over files ends before the next one begins.
            slabs: wanted.disk.map_or(passes, |_| 1) * rounds as u64,
        };
        // Planes that the next slab loads, too, of which memory of the host has a copy beside files.
        let common = slabs.iter().zip(slabs.iter().skip(1));
        let common = common.map(|(slab, next)| next.loaded.hi - slab.loaded.lo);
        let common = wanted.disk.and_then(|_| common.max());
        let rate = SlabsRate::new(rates, work);
        WindowPlan {
            how,
            devices,
            steps: pass_steps,
            planes,
            bytes: device_bytes(
                scheme,
                self.problem,
                layout,
                plan.height(),
                how,
                self.waves_per_step(),
            )
            .saturating_add(self.slab_tables(plan)),
            plane_bytes,
            cells_of_plane: self.cells_of_a_plane() as u64,
            copied: passes
                .saturating_mul(planes as u64)
                .saturating_mul(plane_bytes),
            files: wanted.disk.map(|_| disk::needed(layout)),
            again: common.unwrap_or(0),
            kind: WindowKind::Slabs(PlannedSlabs {
                base,
                count: slabs.len(),
                computed: work.computed,
                loaded: work.loaded,
                rate,
            }),
        }
    }

    /// Bytes of the tables of time blocks: each buffer has its own, with the tables of tasks twice.
    fn slab_tables(&self, plan: &TowerPlan) -> u64 {
        let each = plan.count as u64 * u64::from(TaskWord::BYTES);
        let tasks = self.table_heights(plan) * each;
        BUFFERS as u64 * (self.table_bytes(plan) + tasks)
    }

    /// The operations of two passes by slabs.
    pub fn laid_out_slabs(
        &self,
        plan: &TowerPlan,
        how: InFlight,
        devices: usize,
    ) -> Option<LaidOutSlabs> {
        let (scheme, layout) = (self.planner.scheme, &self.window_layout);
        let HeldPlanes::Slabs { places, base } = how.held else {
            return None;
        };
        let mut footprints = self.footprints(plan, how.group);
        let heights = vec![plan.height(); how.blocks];
        let slabs = footprints.slabs(scheme, layout, &heights, base)?;
        let held = footprints.held();
        let builder = SlabBuilder::on(devices, held, places, how.blocks, how.group);
        let builder = builder.with_states(StatePlaces::from(layout));
        LaidOutSlabs::new(builder, &slabs, 2, footprints.way()).ok()
    }
}
