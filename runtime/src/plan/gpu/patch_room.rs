//! Why a GPU cannot run pyramids of some base and height.

use super::patches::{MOST_BLOCKS_IN_SPACE, RESIDENT, may_need, registers_of};
use super::work::Work;
use super::{DevicePlanner, Refusal, shapes};
use torre_compiler::lattice::div_ceil;
use torre_compiler::patch::{AXES, MOST_TILES, Misfit, Shape, creep};
use torre_compiler::schedule::Pyramid;

impl DevicePlanner<'_> {
    /// Why no shape holds pyramids of this base.
    pub(super) fn too_wide(&self, pyramid: &Pyramid, base: [Option<i64>; 3]) -> Refusal {
        let (scheme, layout) = (self.planner.scheme, &self.planner.layout);
        let shapes = shapes::all(scheme);
        for (n, axis) in AXES.into_iter().enumerate() {
            if scheme.grid.axes[axis].is_none() {
                continue;
            }
            let halo = creep(scheme, layout, axis, pyramid.height);
            let needed = base[n].unwrap_or(1) + halo.iter().sum::<i64>();
            let most = shapes.iter().map(|s| s.tile()[n]).max().unwrap_or(0);
            if needed > most {
                let axis = scheme.grid.axis_name(axis).to_owned();
                return Refusal::Patches(Misfit::Base { axis, needed, most });
            }
        }
        let halo = self.halo(pyramid.height);
        let tiles = shapes.iter().filter_map(|shape| {
            let along = [0, 1, 2].map(|n| {
                let room = shape.tile()[n] - halo[n].iter().sum::<i64>();
                let own = base[n].unwrap_or(room);
                (own >= 1).then(|| div_ceil(layout.extent[AXES[n]], own))
            });
            let [x, y, z] = along;
            Some([x?, x?.saturating_mul(y?).saturating_mul(z?)])
        });
        let tiles = tiles.reduce(|a, b| [a[0].min(b[0]), a[1].min(b[1])]);
        let [along, all] = tiles.unwrap_or_default();
        let most = self.most_at_once(MOST_BLOCKS_IN_SPACE);
        Refusal::Patches(match self.has_patches() {
            false if all > most => Misfit::Many { tiles: all, most },
            true if along > MOST_TILES => Misfit::Tiles {
                tiles: along,
                most: MOST_TILES,
            },
            _ => self.too_large(pyramid.height, base),
        })
    }

    /// The room that pyramids of a base lack in all shapes that are wide enough.
    fn too_large(&self, height: u64, base: [Option<i64>; 3]) -> Misfit {
        let (scheme, gpu) = (self.planner.scheme, &self.model.gpu);
        let work = Work::new(scheme, &self.planner.layout);
        let halo = self.halo(height);
        let most = u64::from(gpu.shared_per_block);
        let mut bytes = None::<u64>;
        // Registers that a thread needs and may need, and how many too many that is.
        let mut lacking = None::<[u64; 3]>;
        let mut many = None::<[i64; 2]>;
        for shape in shapes::all(scheme) {
            let Some(base) = self.base_of(&shape, halo, base) else {
                continue;
            };
            let tiles = self.tiles(base);
            let shape = self.on_chip(&work, shape, tiles);
            let registers = work.registers(&shape, work.words_of(&shape)).ceil() as u64;
            let may = may_need(registers_of(&Shape { blocks: 1, ..shape }, gpu.registers));
            if registers > may {
                let own = [registers - may, registers, may];
                lacking = lacking.into_iter().chain([own]).min();
                continue;
            }
            let shared = self.shared_of(&work, &shape).ceil() as u64;
            if shared > most {
                bytes = bytes.into_iter().chain([shared]).min();
                continue;
            }
            let fits = |blocks: &u32| self.holds(&shape, *blocks, registers as f64, shared);
            let blocks = RESIDENT.into_iter().filter(fits).max();
            let found = blocks.map(|blocks| [tiles, self.most_at_once(blocks)]);
            many = many.into_iter().chain(found).min();
        }
        match (many, bytes, lacking) {
            (Some([tiles, most]), ..) => Misfit::Many { tiles, most },
            (None, Some(bytes), _) => Misfit::Shared { bytes, most },
            (None, None, Some([_, needed, may])) => Misfit::Registers { needed, may },
            (None, None, None) => Misfit::Wide,
        }
    }
}
