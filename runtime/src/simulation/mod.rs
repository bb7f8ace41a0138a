//! A calculation that can be advanced and looked at, independent of the engine.

mod device_error;
mod error;
pub mod guard;
mod picture;
mod progress;
mod setup_error;
mod tuning;
mod values;

pub use device_error::DeviceError;
pub use error::{Difference, RunError};
pub use guard::BlowUp;
pub use picture::{Picture, slice_shape};
pub use progress::Progress;
pub use setup_error::{NoThreads, SetupError};
pub use tuning::{Tried, TuningResult};
pub use values::{Part, PartOf, Values};

use crate::output::{AnyRows, Element, Rows};
use crate::timeline::Timeline;
use std::time::Duration;
use torre_compiler::lattice::PerAxis;
use torre_compiler::problem::Problem;
use torre_compiler::real::Real;
use torre_compiler::scheme::{ComponentId, Scheme, StateId};

/// `f32` or `f64`, to compute with and to write.
pub trait Value: Real + Element {
    /// Rows of this type as rows of any type.
    fn any<'a>(rows: &'a dyn Rows<Self>) -> AnyRows<'a>;
}

impl Value for f32 {
    fn any<'a>(rows: &'a dyn Rows<f32>) -> AnyRows<'a> {
        AnyRows::F32(rows)
    }
}

impl Value for f64 {
    fn any<'a>(rows: &'a dyn Rows<f64>) -> AnyRows<'a> {
        AnyRows::F64(rows)
    }
}

/// A calculation in progress.
pub trait Simulation<T>: Sync {
    fn scheme(&self) -> &Scheme;
    fn problem(&self) -> &Problem;
    /// Steps done, from the beginning of the problem: not only since a checkpoint.
    fn steps(&self) -> u64;
    /// The next step after which an output must be taken.
    fn next_pause(&self) -> u64;
    /// The step at which it must pause for a state that it keeps itself.
    fn next_state(&self) -> u64 {
        u64::MAX
    }
    /// Steps that it advances at a time: it can end at multiples of them only.
    fn stride(&self) -> u64 {
        1
    }
    /// Runs until `until` steps are done, and counts cell-stages in `progress`. [`RunError::BlowUp`] where the guard
    /// found a value that is too large: fewer steps may be done then. After another error the values are of no use.
    fn run(&mut self, until: u64, progress: &Progress) -> Result<(), RunError>;
    /// Brings the values to where [`Simulation::row`] finds them, if they are elsewhere while steps run.
    fn fetch(&mut self) -> Result<(), RunError> {
        Ok(())
    }
    /// Brings at least these values; the others may be older ones until [`Simulation::fetch`] is called.
    fn fetch_parts(&mut self, parts: &[Part]) -> Result<(), RunError> {
        match parts.is_empty() {
            true => Ok(()),
            false => self.fetch(),
        }
    }
    /// Fetches `values`, then begins the steps up to `until`, if it can. Until [`Simulation::run`] is called with the
    /// same step, readers see the state of the current step.
    fn run_ahead(&mut self, _until: u64, values: &Values) -> Result<(), RunError> {
        match values {
            Values::All => self.fetch(),
            Values::Parts(parts) => self.fetch_parts(parts),
        }
    }
    /// Whether it keeps states from which a run goes on.
    fn keeps_states(&self) -> bool {
        false
    }
    /// All results up to the current step are on disk: the state that a calculation keeps itself is valid from now on.
    /// `records` was recorded beside probes, by the names of a checkpoint.
    fn confirm_state(&mut self, _records: Vec<(String, Vec<f64>)>) -> Result<(), RunError> {
        Ok(())
    }
    /// For how long, in all, steps went on outside of [`Simulation::run`].
    fn overlapped(&self) -> Duration {
        Duration::ZERO
    }
    /// The row of a component at (x, y), indices along the outer and the middle axis: its element `z` is the value at
    /// the index `z` along the inner axis, up to the end of the component's extent; elements before the extent are no
    /// values.
    /// `age` counts the versions that are kept: 0 is the newest. The row is of the steps done, after
    /// [`Simulation::fetch`].
    ///
    /// Panics where (x, y) is outside of memory.
    fn row(&self, id: ComponentId, age: u8, x: i64, y: i64) -> &[T];
    /// The value of a state at a cell of its zone, after [`Simulation::fetch`].
    fn state(&self, id: StateId, at: PerAxis<i64>) -> T;
    /// The record of the probe with some index in the problem: one value per step, up to
    /// [`Simulation::steps_recorded`].
    ///
    /// Panics where there is no such probe.
    fn probe(&self, index: usize) -> Vec<f64>;
    /// The pictures of slices that were due and have not been taken yet.
    fn take_pictures(&mut self) -> Vec<Picture>;
    /// The step up to which all probes have recorded: a later one than is done where the guard stopped the run.
    fn steps_recorded(&self) -> u64 {
        self.steps()
    }
    /// The pictures that are complete where the guard stopped the run.
    fn take_complete_pictures(&mut self) -> Vec<Picture> {
        self.take_pictures()
    }
    /// Whether a device had no memory to look at values while steps ran.
    fn is_unwatched(&self) -> bool {
        false
    }
    /// The result of tuning, if the run was tuned.
    fn tuning(&self) -> Option<TuningResult> {
        None
    }
    /// When operations of devices ran, if that was recorded.
    fn timeline(&self) -> Option<Timeline> {
        None
    }
}

/// The next step behind `steps` and up to the problem's end after which an output is taken from the values.
pub fn next_output(problem: &Problem, steps: u64) -> u64 {
    let outputs = problem.outputs.iter();
    outputs
        .filter(|o| o.needs_values())
        .map(|o| (steps / o.every + 1).saturating_mul(o.every))
        .fold(problem.steps, u64::min)
}

/// The cell-stages of one step, as [`Progress`] counts them: cells of an update's region times stages.
pub fn cell_stages_per_step(scheme: &Scheme) -> u64 {
    scheme
        .stage_ids()
        .flat_map(|stage| torre_compiler::kernel::stage_boxes(scheme, stage))
        .map(|block| block.cell_stages())
        .fold(0, u64::saturating_add)
}
