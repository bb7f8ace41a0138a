//! The towers of a schedule, compiled for a device.

use super::device::{DeviceError, Facts};
use super::interruptions::Heights;
use super::time_block_error::TimeBlockError;
use crate::disk::RowGhosts;
use torre_compiler::backend::gpu::abi::TimeBlock;
use torre_compiler::backend::gpu::{Gpu, Module, Ptx, compile, tower};
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::ghost::AxisGhosts;
use torre_compiler::lattice::Axis;
use torre_compiler::layout::Layout;
use torre_compiler::scheme::Scheme;
use torre_compiler::tower::{self as towers, Order, TaskList, TowerProgram};

/// Blocks per multiprocessor that a launch starts at most.
const BLOCKS: u32 = 4;

/// The towers of a schedule, compiled: the program, its code, and the order of the towers of its time blocks.
#[derive(Clone, Debug)]
pub struct CompiledTowers {
    pub ptx: Ptx,
    pub program: TowerProgram,
    /// Steps of a time block, at most.
    pub steps: u64,
    /// All towers of such a time block.
    list: TaskList,
    pub order: Order,
    most_queues: u32,
}

/// How the towers of time blocks are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeBlockOrder {
    /// Steps of a time block, at most.
    pub steps: u64,
    pub order: Order,
    /// Work queues that the device can serve, at most.
    pub most_queues: u32,
}

/// The kernels of a tower program, as IR.
pub fn module(scheme: &Scheme, layout: &Layout, program: &TowerProgram) -> Module {
    let mut module = Module::new();
    tower::emit(&mut module, scheme, layout, program);
    module
}

impl CompiledTowers {
    /// Verifies and compiles a program.
    pub fn new(
        library: &Library,
        scheme: &Scheme,
        layout: &Layout,
        program: TowerProgram,
        gpu: Gpu,
        time_blocks: TimeBlockOrder,
    ) -> Result<CompiledTowers, TimeBlockError> {
        let TimeBlockOrder {
            steps,
            order,
            most_queues,
        } = time_blocks;
        towers::verify(scheme, layout, &program).map_err(TimeBlockError::Towers)?;
        let compiled = CompiledTowers {
            ptx: compile(library, &module(scheme, layout, &program), gpu)?,
            program,
            steps: 0,
            list: TaskList::default(),
            order,
            most_queues,
        };
        let ordered = compiled.in_order(scheme, layout, steps, order);
        ordered.ok_or(TimeBlockError::Order)
    }

    /// The same towers in time blocks of at most `steps` steps, in `order`. `None` where there are too many, or the
    /// order has queues from which no block would take.
    pub fn in_order(
        mut self,
        scheme: &Scheme,
        layout: &Layout,
        steps: u64,
        order: Order,
    ) -> Option<CompiledTowers> {
        let towers = &self.program.towers;
        let periods = (steps / towers.steps).max(1);
        if !(1..=self.most_queues).contains(&order.partitions) {
            return None;
        }
        self.list = towers::tasks(scheme, layout, towers, periods, order)?;
        self.order = order;
        self.steps = periods * towers.steps;
        Some(self)
    }

    /// The same with some of the towers of its highest time blocks.
    pub(super) fn with_list(self, list: TaskList) -> CompiledTowers {
        CompiledTowers { list, ..self }
    }

    /// Towers of a time block.
    pub fn count(&self) -> usize {
        self.list.tasks.len()
    }

    /// The towers of the highest time blocks, without the cuts of points.
    pub fn list(&self) -> &TaskList {
        &self.list
    }

    /// Whether a time block leaves ghosts along the inner axis out of date in memory.
    pub fn leaves_ghosts(&self) -> bool {
        self.program.block.ghosts.is_some()
    }

    /// How its towers come by ghosts along the inner axis.
    pub fn row_ghosts(&self, scheme: &Scheme) -> RowGhosts {
        let of = |id| AxisGhosts::new(scheme, id, Axis::INNER);
        match self.leaves_ghosts() {
            true => RowGhosts::OnArrival,
            false if scheme.component_ids().all(|id| of(id).is_empty()) => RowGhosts::Absent,
            false => RowGhosts::InMemory,
        }
    }

    /// Clusters of blocks that a launch starts at most where one launch runs at a time. Blocks that find no room on a
    /// multiprocessor wait without harm.
    pub(super) fn clusters(&self, facts: &Facts) -> u32 {
        let most = facts.multiprocessors.max(1).saturating_mul(BLOCKS);
        (most / self.program.block.lines.cluster()).max(1)
    }

    /// The same where several launches run at a time: no more than find room. More would keep blocks of the next launch
    /// from multiprocessors that have no towers left.
    pub(super) fn resident_clusters(&self, facts: &Facts) -> u32 {
        let block = &self.program.block;
        let resident = self.ptx.gpu.shared_per_block / block.all_shared().max(1);
        let most = facts.multiprocessors.max(1) * resident.clamp(1, BLOCKS);
        let clusters = most / block.lines.cluster();
        clusters.max(self.order.partitions).max(1)
    }

    /// An error unless towers can begin after this number of steps.
    pub(super) fn check_beginning(&self, steps: u64) -> Result<(), DeviceError> {
        let multiple = self.program.towers.steps.max(1);
        if steps.is_multiple_of(multiple) {
            return Ok(());
        }
        Err(DeviceError::Failed {
            operation: "beginning with time blocks",
            message: format!(
                "the run continues after step {steps}, and towers begin at multiples of {multiple} steps"
            ),
        })
    }

    /// The heights of its time blocks.
    pub fn heights(&self, scheme: &Scheme) -> Heights {
        Heights::new(self.steps, &self.program.towers, scheme)
    }

    /// The towers of a time block of `steps` steps.
    pub(super) fn list_of(&self, scheme: &Scheme, layout: &Layout, steps: u64) -> Option<TaskList> {
        if steps == self.steps {
            return Some(self.list.clone());
        }
        let towers = &self.program.towers;
        towers::tasks(scheme, layout, towers, steps / towers.steps, self.order)
    }

    /// The launches of a time block of `steps` steps.
    pub(super) fn time_block(
        &self,
        scheme: &Scheme,
        list: TaskList,
        steps: u64,
    ) -> Option<TimeBlock> {
        let TowerProgram { towers, block, .. } = &self.program;
        let periods = steps / towers.steps;
        TimeBlock::new(scheme, towers, block, list, self.order, periods)
    }
}
