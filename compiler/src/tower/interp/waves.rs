//! Waves that are copied to slots, and added from there.

use super::TowerInterp;
use super::interior::Interior;
use super::state::SlotWaves;
use super::volume::VolumeAt;
use crate::real::Real;
use crate::scheme::{ComponentId, StageId};
use crate::tower::group::Group;
use crate::tower::residency::StageAt;

impl<T: Real> TowerInterp<'_, T> {
    /// The sources after an update whose waves are copied, by their numbers.
    pub(super) fn copied_sources(&self, stage: StageId, component: ComponentId) -> Vec<usize> {
        let all = self.program.sources.iter().enumerate();
        let own = all.filter(|(_, source)| source.is_copied() && source.is_after(stage, component));
        own.map(|(number, _)| number).collect()
    }

    /// The waves of a stage, slot by slot; none near faces.
    pub(super) fn waves(
        &self,
        of: Interior<'_>,
        volumes: &VolumeAt<'_, T>,
    ) -> Vec<(usize, SlotWaves)> {
        let mut slots = Vec::new();
        if of.placement.near.contains(&of.period) {
            return slots;
        }
        let at = StageAt::new(self.scheme, of.stage as i64);
        let origin = of.origin(self.program.towers.advance);
        for copy in &self.stages_of(of)[of.stage].waves {
            let component = at.updates(self.scheme)[copy.row.update].target;
            let Group { x, y } = origin + copy.row.at;
            for (n, source) in self
                .copied_sources(at.stage, component)
                .into_iter()
                .enumerate()
            {
                let Some(volume) = volumes.injected.volumes.get(source) else {
                    continue;
                };
                let cells = volume.cells.range([x, y, i64::MIN]..=[x, y, i64::MAX]);
                let cells = cells.filter(|([_, _, z], _)| !volume.hole.contains(*z));
                let wave = |wave: u32| (volumes.injected.wave)(volumes.step, wave);
                let waves = cells.map(|([_, _, z], cell)| (*z, wave(cell.wave)));
                slots.push((copy.slot + n, waves.collect()));
            }
        }
        slots
    }
}
