//! Time blocks of a calculation on a device: which one comes next, and between which arrays.

use super::OnDevice;
use crate::gpu::device::{Address, DeviceError};
use crate::gpu::no_time_blocks::NoTimeBlocks;
use crate::gpu::patches::{CompiledPatches, Next, PatchBlocks};
use crate::gpu::time_blocks::{CompiledBlocks, TimeBlocks};
use crate::gpu::tower_blocks::{Injected, TowerBlocks};
use crate::gpu::towers::CompiledTowers;
use crate::gpu::volumes;
use crate::simulation::Value;
use torre_compiler::injection::receivers;
use torre_compiler::tower::Points;

impl<'a, T: Value> OnDevice<'a, T> {
    /// Advances by towers where nothing else happens in every step; the towers belong to the same scheme and layout.
    #[inline(never)]
    pub fn by_towers(mut self, towers: &CompiledTowers) -> Result<Self, DeviceError> {
        let found = self.time_blocks(towers)?;
        self.take(found)?;
        Ok(self)
    }

    /// Advances by time blocks of any kind, as [`OnDevice::by_towers`] does.
    #[inline(never)]
    pub fn by(mut self, blocks: &CompiledBlocks) -> Result<Self, DeviceError> {
        let found = self.blocks(blocks)?;
        self.take(found)?;
        Ok(self)
    }

    /// Goes on with time blocks, if there are some; else with single steps, which need no second array.
    fn take(&mut self, found: Result<TimeBlocks, NoTimeBlocks>) -> Result<(), DeviceError> {
        (self.time_blocks, self.without_towers) = match found {
            Ok(time_blocks) => (Some(time_blocks), None),
            Err(reason) => (None, Some(reason)),
        };
        if self.time_blocks.is_none()
            && self.array == self.home
            && let Some(Some(second)) = self.second.take()
        {
            self.device.give_back(second)?;
        }
        Ok(())
    }

    /// Time blocks made ready, to be exchanged for others, or why they cannot run the problem.
    #[inline(never)]
    pub fn blocks(
        &self,
        blocks: &CompiledBlocks,
    ) -> Result<Result<TimeBlocks, NoTimeBlocks>, DeviceError> {
        match blocks {
            CompiledBlocks::Towers(towers) => self.time_blocks(towers),
            CompiledBlocks::Patches(patches) => self.patch_blocks(patches),
        }
    }

    /// Why it does not advance by the time blocks that [`OnDevice::by`] was given; `None`: it does, but for steps that
    /// time blocks do not reach, or it was given none.
    pub fn without_towers(&self) -> Option<&NoTimeBlocks> {
        self.without_towers.as_ref()
    }

    /// Bytes of memory that a thread of its time blocks has of its own, for values that registers do not hold, as the
    /// device's assembler made them; 0 where there are none.
    pub fn spilled(&self) -> u64 {
        self.time_blocks.as_ref().map_or(0, TimeBlocks::spilled)
    }

    /// Towers made ready, to be exchanged for others, or why they cannot run the problem.
    pub fn time_blocks(
        &self,
        towers: &CompiledTowers,
    ) -> Result<Result<TimeBlocks, NoTimeBlocks>, DeviceError> {
        let (scheme, problem) = (self.scheme(), self.problem());
        let chosen = &self.interruptions.volumes;
        if !self.interruptions.always.is_empty() {
            let reasons = self.interruptions.always.clone();
            return Ok(Err(NoTimeBlocks::EveryStep(reasons)));
        }
        if !chosen.are_those_of(&towers.program, problem) {
            return Ok(Err(NoTimeBlocks::OtherSources));
        }
        if self.volumes.get().is_none() {
            let (_, steps) = self.waves;
            let placed = volumes::place(self.device, &self.injections, chosen, steps)?;
            self.volumes.get_or_init(|| placed);
        }
        let volumes = match self.volumes.get() {
            Some(Ok(volumes)) => volumes,
            Some(Err(reason)) => return Ok(Err(reason.clone())),
            None => return Ok(Err(NoTimeBlocks::LargeSources)),
        };
        let receivers = receivers(scheme, problem);
        let injected = Injected {
            points: Points::new(&self.injections, receivers, |source| chosen.has(source)),
            volumes: volumes.clone(),
        };
        let layout = &self.calculation.layout;
        let towers = TowerBlocks::new(self.device, towers, scheme, layout, injected)?;
        Ok(towers.map(|towers| TimeBlocks::Towers(Box::new(towers))))
    }

    /// Makes ghosts along the inner axis if they are out of date; gives the number of starts.
    pub(super) fn renew_ghosts(&mut self) -> Result<u64, DeviceError> {
        let Some(ghosts) = self.stale.take() else {
            return Ok(0);
        };
        ghosts.make(self.device, self.array)?;
        Ok(1)
    }

    /// Pyramids made ready, or why they cannot run the problem.
    fn patch_blocks(
        &self,
        patches: &CompiledPatches,
    ) -> Result<Result<TimeBlocks, NoTimeBlocks>, DeviceError> {
        let bytes = self.calculation.layout.bytes();
        if self.second.get().is_none() {
            let second = match self.device.take(bytes) {
                Err(DeviceError::Memory { .. }) => None,
                taken => Some(taken?),
            };
            if let Some(second) = second {
                // Coefficients are never stored again.
                self.device.copy(self.array, second, bytes)?;
            }
            self.second.get_or_init(|| second);
        }
        if self.second.get() == Some(&None) {
            let steps = patches.program.height;
            return Ok(Err(NoTimeBlocks::SecondArray { steps, bytes }));
        }
        let scheme = self.scheme();
        let receivers = receivers(scheme, self.problem());
        let layout = &self.calculation.layout;
        let injections = &self.injections;
        let blocks =
            PatchBlocks::new(self.device, patches, scheme, layout, injections, &receivers)?;
        Ok(blocks.map(|blocks| TimeBlocks::Patches(Box::new(blocks))))
    }

    /// Advances by other time blocks, or by none, from here on; leaves the ones before in `time_blocks`.
    pub fn exchange(&mut self, time_blocks: &mut Option<TimeBlocks>) {
        std::mem::swap(&mut self.time_blocks, time_blocks);
    }

    /// Steps for which nothing keeps time blocks apart, with room for their waves and records.
    fn room(&self, until: u64) -> u64 {
        let most = |count: usize, steps: u64| if count == 0 { u64::MAX } else { steps };
        let probes = self.probes.capacity() / self.probe_bytes().max(1);
        self.interruptions
            .room(self.asked, until)
            .min(most(self.injections.waves_per_step(), self.waves.1))
            .min(most(self.records.len(), probes))
    }

    /// The height of the time block that comes next, if one does: nothing keeps its steps apart, and there is room for
    /// its waves and records.
    pub(super) fn next_time_block(&self, until: u64) -> Option<u64> {
        let time_blocks = self.time_blocks.as_ref()?;
        time_blocks.next(self.asked, self.room(until))
    }

    /// Runs a time block if one comes next; gives the number of its steps, and of the towers or tiles that were
    /// started.
    pub(super) fn time_block(&mut self, until: u64) -> Result<Option<[u64; 2]>, DeviceError> {
        let Some(steps) = self.next_time_block(until) else {
            return Ok(None);
        };
        let Some(mut time_blocks) = self.time_blocks.take() else {
            return Ok(None);
        };
        let done = self.time_block_of(&mut time_blocks, until, steps);
        self.time_blocks = Some(time_blocks);
        done
    }

    fn time_block_of(
        &mut self,
        time_blocks: &mut TimeBlocks,
        until: u64,
        steps: u64,
    ) -> Result<Option<[u64; 2]>, DeviceError> {
        let scheme = self.calculation.scheme;
        if let TimeBlocks::Towers(towers) = time_blocks
            && !towers.has(self.device, scheme, &self.calculation.layout, steps)?
        {
            return Ok(None);
        }
        let waves = self.waves(until, steps)?;
        let each = self.probe_bytes();
        let records = self.room_for_probes(steps * each)?;
        let mut starts = 0;
        if time_blocks.leave_out() {
            for n in 0..steps {
                self.gather(self.asked + n, records.offset((n * each) as i64))?;
            }
            starts += steps;
        }
        starts += match time_blocks {
            TimeBlocks::Towers(towers) => self.tower_block(towers, steps, waves, records)?,
            TimeBlocks::Patches(patches) => {
                let left = self.room(until) - steps;
                let next = Next {
                    steps,
                    from: self.array,
                    to: self.other_array().ok_or(DeviceError::TooLong)?,
                    waves,
                    records,
                    all: patches.next(self.asked + steps, left).is_none(),
                };
                self.patch_block(patches, next)?
            }
        };
        self.probes.push(steps * each, ());
        Ok(Some([steps, starts]))
    }

    fn tower_block(
        &mut self,
        towers: &mut TowerBlocks,
        steps: u64,
        waves: Address,
        records: Address,
    ) -> Result<u64, DeviceError> {
        let ghosts = towers.ghosts();
        let mut starts = self.settle()?;
        // Pyramids before leave more ghosts out of date than these towers make themselves.
        if ghosts.is_none() || self.stale != ghosts {
            starts += self.renew_ghosts()?;
        }
        starts += towers.run(self.device, steps, self.array, waves, records)?;
        self.stale = ghosts;
        Ok(starts)
    }

    fn patch_block(&mut self, patches: &mut PatchBlocks, next: Next) -> Result<u64, DeviceError> {
        let to = next.to;
        patches.run(self.device, next)?;
        self.array = to;
        self.stale = patches.ghosts;
        Ok(1)
    }

    /// The array of the two that does not have the values.
    fn other_array(&self) -> Option<Address> {
        let second = (*self.second.get()?)?;
        Some(if self.array == self.home {
            second
        } else {
            self.home
        })
    }

    /// Brings the values to the array that kernels of whole stages work on; gives the number of starts.
    pub(super) fn settle(&mut self) -> Result<u64, DeviceError> {
        if self.array == self.home {
            return Ok(0);
        }
        let bytes = self.calculation.layout.bytes();
        self.device.copy(self.array, self.home, bytes)?;
        self.array = self.home;
        Ok(1)
    }
}
