//! Passes around a periodic first axis, whose planes are counted on.
//!
//! The planes of a time block lie where the seam of the one before has ended, so points, and the parts of the axis with
//! zones or sources, lie elsewhere for each time block: its towers have tables of tasks and points of their own
//! then. The list of towers, their order, their queues and their progress are the same for all time blocks of a height.
//! So are all tables where planes are alike and there are no points.

use super::Pipelined;
use super::pass_state::{BlockState, PassState};
use super::unit::Lie;
use crate::gpu::device::DeviceError;
use crate::gpu::tower_blocks::{HostTables, Listed};
use crate::gpu::towers::CompiledTowers;
use crate::host::threads;
use crate::simulation::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use torre_compiler::layout::Layout;
use torre_compiler::pipeline::Pass;
use torre_compiler::problem::OutputKind;
use torre_compiler::scheme::Scheme;
use torre_compiler::tower::{Points, TaskList};

/// Of which tables of time blocks around a ring are made.
struct TurnedTowers<'a> {
    scheme: &'a Scheme,
    layout: &'a Layout,
    towers: &'a CompiledTowers,
    points: &'a Points,
    /// By their steps.
    lists: &'a BTreeMap<u64, TaskList>,
}

impl TurnedTowers<'_> {
    /// The tables of some time blocks, each made on a thread of its own.
    fn all(&self, lies: &[Lie]) -> Vec<(Lie, Result<HostTables, DeviceError>)> {
        let (next, made) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = |_| {
            while let Some(lie) = lies.get(next.fetch_add(1, Ordering::Relaxed)) {
                let tables = self.tables(*lie);
                if let Ok(mut made) = made.lock() {
                    made.push((*lie, tables));
                }
            }
        };
        if threads::run(lies.len(), work).is_err() {
            // None of them did anything.
            work(0);
        }
        made.into_inner().unwrap_or_default()
    }

    fn tables(&self, lie: Lie) -> Result<HostTables, DeviceError> {
        let Lie { steps, rotation } = lie;
        let missing = || DeviceError::Failed {
            operation: "advancing by time blocks",
            message: format!("there are none of {steps} steps around the first axis"),
        };
        let of = &self.towers.program.towers;
        let rotated = of.rotated(rotation);
        let list = self.lists.get(&steps).ok_or_else(missing)?;
        let list = match of.rings.uniform {
            true => list.clone(),
            false => {
                let periods = steps / of.steps.max(1);
                let placed = list.placed_anew(self.scheme, self.layout, &rotated, periods);
                placed.ok_or_else(missing)?
            }
        };
        let mut listed = Listed {
            towers: &rotated,
            list,
            steps,
        };
        let tables = HostTables::new(
            self.towers,
            self.scheme,
            self.layout,
            self.points,
            &mut listed,
        )?;
        tables.map_err(|_| missing())
    }
}

impl<T: Value> Pipelined<'_, T> {
    /// Whether tables depend on where planes are around a ring.
    fn tables_differ(&self) -> bool {
        let points = !self.points.injections.is_empty() || !self.points.receivers.is_empty();
        let uniform = self.towers.program.towers.rings.uniform;
        self.footprints.ring().is_some() && (points || !uniform)
    }

    /// Says where the time blocks of a pass that begins next lie around a ring.
    pub(super) fn turn_blocks(&self, pass: &Pass, state: &mut PassState) {
        state.rotation = self.builder.rotation();
        let Some(ring) = self.footprints.ring() else {
            return;
        };
        for (own, block) in state.blocks.iter_mut().zip(&pass.blocks) {
            own.moved = block.moved;
            if self.tables_differ() {
                let rotation = self.footprints.way() * (state.rotation - block.moved);
                own.lie.rotation = rotation.rem_euclid(ring);
            }
        }
    }

    /// The towers of time blocks of a number of steps.
    pub(super) fn list_of(&mut self, steps: u64) -> Option<TaskList> {
        let (scheme, layout) = (self.calculation.scheme, &self.calculation.layout);
        if !self.tables_differ() {
            return self.footprints.tasks(scheme, layout, steps);
        }
        if !self.lists.contains_key(&steps) {
            let list = self.footprints.tasks(scheme, layout, steps)?;
            self.lists.insert(steps, list);
        }
        self.lists.get(&steps).cloned()
    }

    /// Makes the tables of time blocks that lie elsewhere around a ring, each on a thread of its own.
    pub(super) fn make_rotated(
        &mut self,
        number: usize,
        blocks: &[BlockState],
    ) -> Result<(), DeviceError> {
        let unit = &mut self.units[number];
        let lies = blocks.iter().map(|block| block.lie);
        // The tables of a height lie so that nothing is rotated.
        let lies = lies.filter(|lie| lie.rotation != 0 && !unit.rotated.contains_key(lie));
        let lies: BTreeSet<Lie> = lies.collect();
        let lies: Vec<Lie> = lies.into_iter().collect();
        let (scheme, layout) = (self.calculation.scheme, &self.calculation.layout);
        let of = TurnedTowers {
            scheme,
            layout,
            towers: &self.towers,
            points: &self.points,
            lists: &self.lists,
        };
        let device = self.devices.device(number);
        for lies in lies.chunks(threads::available()) {
            for (lie, tables) in of.all(lies) {
                let tables = tables?;
                let memory = &mut unit.table_memory;
                let tables = match memory.attempt(|memory| tables.send(memory, device)) {
                    // Memory of tables of other sizes may be in the way.
                    Err(DeviceError::Memory { .. }) => {
                        memory.give_back_spare(device)?;
                        memory.attempt(|memory| tables.send(memory, device))?
                    }
                    sent => sent?,
                };
                unit.rotated.insert(lie, tables);
            }
        }
        Ok(())
    }

    /// Leaves the tables of a pass that is over to later ones, if no other pass has them and they differ.
    pub(super) fn leave_lists(&mut self, pass: u64) {
        if !self.tables_differ() {
            return;
        }
        let device = self.builder.window().device(pass);
        let used = |lie: &Lie| {
            let mut same = self
                .active
                .numbered()
                .filter(|(number, _)| self.builder.window().device(*number) == device);
            same.any(|(_, state)| state.blocks.iter().any(|block| block.lie == *lie))
        };
        let rotated = self.units[device].rotated.keys();
        let unused: Vec<Lie> = rotated.filter(|lie| !used(lie)).copied().collect();
        let unit = &mut self.units[device];
        for lie in unused {
            if let Some(tables) = unit.rotated.remove(&lie) {
                unit.table_memory.leave(tables);
            }
        }
    }

    /// The next step after which a slice is due, where passes around a ring end for it.
    pub(super) fn next_slice_around(&self) -> u64 {
        if self.footprints.ring().is_none() {
            return u64::MAX;
        }
        let outputs = self.calculation.problem.outputs.iter();
        let slices = outputs.filter(|output| matches!(output.kind, OutputKind::Slice { .. }));
        let next =
            slices.map(|output| (self.steps / output.every.max(1) + 1) * output.every.max(1));
        next.min().unwrap_or(u64::MAX)
    }

    /// Takes the slices that are due after a pass around a ring from the host's array.
    pub(super) fn take_slices_around(&mut self) {
        if self.footprints.ring().is_some() {
            self.pictures.extend(self.calculation.slices_due());
        }
    }
}
