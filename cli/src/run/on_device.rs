//! Runs on one GPU.

use super::{Made, Prepared, Run, TOO_MUCH};
use crate::device;
use crate::failure::Failure;
use crate::target::OnGpu;
use crate::window::Held;
use std::time::Instant;
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::layerwise::Shape;
use torre_runtime::disk::{RowGhosts, StateFolder};
use torre_runtime::gpu::{
    CompiledBlocks, Device, DeviceModel, DeviceProgram, Devices, InFlight, OnDevice, PIECE,
    Pipelined, code,
};
use torre_runtime::plan::gpu::{DevicePlan, DevicePlanner, NoWindow, Refusal};
use torre_runtime::program::CompileError;
use torre_runtime::simulation::{SetupError, Value};

impl<T: Value> Run<'_, T> {
    pub(super) fn run_on_device(
        &self,
        prepared: &Prepared<'_>,
        gpu: &OnGpu,
    ) -> Result<(), Failure> {
        let OnGpu {
            devices,
            model,
            plan,
            held,
            ..
        } = gpu;
        if let Some(Held::Stripes(stripes)) = held {
            return self.run_on_devices(prepared, gpu, stripes);
        }
        let device = &devices.devices()[0];
        let &Prepared { set, files, .. } = prepared;
        let start = Instant::now();
        let library = Library::open().map_err(CompileError::from)?;
        let shape = Shape::of(self.scheme);
        let ptx = code::ptx(library, self.scheme, &plan.kernels, shape, model.gpu);
        let ptx = ptx.map_err(CompileError::from)?;
        let blocks = plan.compile_blocks(library, self.scheme, model)?;
        let towers = blocks.as_ref().and_then(CompiledBlocks::towers);
        let program = DeviceProgram {
            set,
            ptx: &ptx,
            shape,
        };
        // Towers may be for a GPU of its own, where other kernels are not.
        let gpu = blocks.as_ref().map_or(ptx.gpu, |blocks| blocks.ptx().gpu);
        let compiling = start.elapsed();
        let ghosts = towers.map_or(RowGhosts::InMemory, |towers| towers.row_ghosts(self.scheme));
        let (calculation, state) = self.calculation(prepared, &set.layout, ghosts)?;
        let made = Made {
            backend: "cuda".to_owned(),
            code: format!("LLVM {}, {gpu}", library.version()),
            compiling,
            cached: false,
            field_bytes: calculation.memory_bytes(),
            spilled: 0,
            devices: devices
                .devices()
                .iter()
                .map(|device| device.facts().name.clone())
                .collect(),
            as_planned: true,
        };
        let how = held.as_ref().and_then(Held::how);
        let mut simulation = match (how, towers) {
            (Some(how), Some(towers)) => {
                let of = match devices.devices() {
                    [_, _, ..] => Devices::InTurns(devices),
                    _ => Devices::One(device),
                };
                let run = Pipelined::new(calculation, files, of, program, towers, how)?;
                let Some(simulation) = run else {
                    return Err(self.no_window(model, plan)?);
                };
                let mut simulation = self.prepared_in_flight(simulation, state, how)?;
                return self.run_checked(&mut simulation, prepared, made);
            }
            _ => OnDevice::new(calculation, files, device, program)?,
        };
        if let Some(blocks) = &blocks {
            simulation = simulation.by(blocks)?;
        }
        let reason = simulation.without_towers();
        let made = Made {
            spilled: simulation.spilled(),
            as_planned: reason.is_none() || blocks.is_none(),
            ..made
        };
        self.note_spills(made.spilled);
        if let Some(reason) = reason.filter(|_| plan.note.is_none()) {
            self.voice
                .note(format!("{reason}, so the GPU goes stage by stage"));
        }
        self.run_checked(&mut simulation, prepared, made)
    }

    /// Notes the bytes of a thread's values for which there are no registers.
    fn note_spills(&self, bytes: u64) {
        if bytes > 0 {
            self.voice.note(format!(
                "registers do not hold all values of a thread, {bytes} bytes of which are in memory; smaller tiles may \
                 be faster"
            ));
        }
    }

    /// A run with time blocks in flight, with the files of its state and its timeline, as far as they are asked for.
    fn prepared_in_flight<'b>(
        &self,
        mut simulation: Pipelined<'b, T>,
        state: Option<StateFolder>,
        how: InFlight,
    ) -> Result<Pipelined<'b, T>, Failure> {
        if let Some(state) = state {
            simulation = simulation.over(state, PIECE)?;
            if !simulation.is_direct() {
                self.say_cached();
            }
        }
        if self.args.timeline.is_some() {
            simulation = simulation.with_timeline()?;
        }
        if how.held.places().is_some() && !simulation.is_locked() {
            self.voice
                .note("the host's memory cannot be locked, so copies take longer");
        }
        Ok(simulation)
    }

    /// The diagnostic for sources and probes that keep a calculation window from its towers.
    fn no_window(&self, model: &DeviceModel, plan: &DevicePlan) -> Result<Failure, Failure> {
        let planner = DevicePlanner::new(self.scheme, self.problem, model);
        let planner = planner.map_err(SetupError::from)?;
        let reason = NoWindow::Points(TOO_MUCH.to_owned());
        let refused = planner.refused(&plan.choice.name, Refusal::Window(reason));
        Ok(device::refused(refused, &planner, model))
    }
}
