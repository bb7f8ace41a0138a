//! Runs on several GPUs.

use super::{Made, Prepared, Run, TOO_MUCH};
use crate::device;
use crate::failure::Failure;
use crate::target::OnGpu;
use std::time::Instant;
use torre_compiler::backend::llvm::library::Library;
use torre_runtime::gpu::{Device, DeviceModel, Striped, StripedProgram, Striping};
use torre_runtime::host::Calculation;
use torre_runtime::plan::gpu::{DevicePlan, DevicePlanner, NoDevices, Refusal, StripesPlan};
use torre_runtime::program::CompileError;
use torre_runtime::simulation::{SetupError, Value};

impl<T: Value> Run<'_, T> {
    /// Runs on several GPUs, each with a stripe.
    pub(super) fn run_on_devices(
        &self,
        prepared: &Prepared<'_>,
        gpu: &OnGpu,
        stripes: &StripesPlan,
    ) -> Result<(), Failure> {
        let OnGpu {
            devices,
            model,
            plan,
            gap,
            ..
        } = gpu;
        let &Prepared { set, files, .. } = prepared;
        let start = Instant::now();
        let library = Library::open().map_err(CompileError::from)?;
        let Some(towers) = plan.towers() else {
            return Err(self.no_devices(model, plan, NoDevices::Layerwise)?);
        };
        let program = StripedProgram::new(
            library,
            self.scheme,
            towers.program.clone(),
            model.gpu,
            towers.order,
            Striping {
                stripes: stripes.stripes.clone(),
                in_flight: stripes.in_flight,
                gap: gap.as_ref().map_or(0, |gap| gap.rows),
            },
        )?;
        let compiling = start.elapsed();
        let (scheme, problem) = (self.scheme, self.problem);
        let layout = set.layout.clone();
        let mut calculation = Calculation::arranged(layout, scheme, problem, files, self.threads)?;
        self.warn_of_tiny(calculation.tiny.as_ref());
        prepared.folders.resume(&mut calculation)?;
        let names = devices.devices().iter();
        let made = Made {
            backend: "cuda".to_owned(),
            code: format!("LLVM {}, {}", library.version(), program.towers.ptx.gpu),
            compiling,
            cached: false,
            field_bytes: calculation.memory_bytes(),
            spilled: 0,
            devices: names.map(|device| device.facts().name.clone()).collect(),
            as_planned: true,
        };
        if !devices.is_direct() {
            self.voice.note(
                "the GPUs do not access each other's memory, so copies go through the host's",
            );
        }
        let run = Striped::new(calculation, files, devices, program)?;
        let Some(mut simulation) = run else {
            let reason = NoDevices::Points(TOO_MUCH.to_owned());
            return Err(self.no_devices(model, plan, reason)?);
        };
        if self.args.timeline.is_some() {
            simulation = simulation.with_timeline()?;
        }
        self.run_checked(&mut simulation, prepared, made)
    }

    /// The diagnostic for the reason that keeps several devices from towers.
    fn no_devices(
        &self,
        model: &DeviceModel,
        plan: &DevicePlan,
        reason: NoDevices,
    ) -> Result<Failure, Failure> {
        let planner = DevicePlanner::new(self.scheme, self.problem, model);
        let planner = planner.map_err(SetupError::from)?;
        let refused = planner.refused(&plan.choice.name, Refusal::Devices(reason));
        Ok(device::refused(refused, &planner, model))
    }
}
