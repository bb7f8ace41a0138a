//! The time of compilation and the time of the run, which `auto` weighs against each other.

use super::{Other, Planned, refused};
use crate::args::BackendArg;
use crate::failure::Failure;
use crate::rates::Expected;
use serde_json::{Value, json};
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::resolve::Resolved;
use torre_compiler::schedule::Schedule;
use torre_runtime::plan::compiling::expected_seconds;
use torre_runtime::plan::{Plan, Planner};
use torre_runtime::program::{Backend, BackendChoice};
use torre_runtime::simulation::SetupError;

/// Seconds of compilation that are not worth another schedule.
const LEAST: f64 = 1.0;

/// The largest share of a run's time that compiling schedules takes with which tuning compares its own.
const SHARE: f64 = 1.0 / 8.0;

/// The compiler of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    Llvm,
    /// A back end that takes little time, or none.
    Quick,
}

impl Compiler {
    /// Of a back end for the processor.
    pub fn of(backend: BackendArg) -> Self {
        let may_be = match backend.choice() {
            Some(BackendChoice::Auto) => true,
            Some(BackendChoice::Only(backend)) => backend == Backend::Llvm,
            None => false,
        };
        match may_be && Library::open().is_ok() {
            true => Compiler::Llvm,
            false => Compiler::Quick,
        }
    }
}

/// The expected time of a plan.
#[derive(Clone, Debug)]
pub struct Times {
    schedule: String,
    kernels: usize,
    /// Seconds, where no code is kept of an earlier run.
    pub compiling: f64,
    /// Seconds of all steps.
    pub stepping: f64,
}

impl Times {
    /// Of a plan with its expected rate.
    pub fn new(plan: &Plan, expected: &Expected, resolved: &Resolved, by: By) -> Self {
        let scheme = &resolved.scheme;
        let work = scheme.grid.cell_count() * resolved.problem.steps as f64;
        Self {
            schedule: super::title(&plan.choice),
            kernels: plan.kernels.kernels.len(),
            compiling: match by.compiler {
                Compiler::Llvm => expected_seconds(scheme, &plan.kernels, by.vector_bytes),
                Compiler::Quick => 0.0,
            },
            stepping: work / expected.rate(),
        }
    }

    fn all(&self) -> f64 {
        self.compiling + self.stepping
    }

    /// `31.2 s for 368 kernels, 0.46 s for the run`
    fn text(&self) -> String {
        format!(
            "{} s for {} kernels, {} s for the run",
            short(self.compiling),
            self.kernels,
            short(self.stepping)
        )
    }

    fn json(&self) -> Value {
        json!({
            "schedule": self.schedule,
            "kernels": self.kernels,
            "seconds": self.compiling,
            "run_seconds": self.stepping,
        })
    }
}

/// Seconds with three significant digits.
fn short(seconds: f64) -> String {
    crate::stability::significant(seconds, 3)
}

/// How kernels are compiled.
#[derive(Clone, Copy, Debug)]
pub struct By {
    pub compiler: Compiler,
    pub vector_bytes: usize,
}

/// The times of the plan that is taken.
#[derive(Clone, Debug)]
pub struct Weighed {
    pub taken: Times,
    /// The schedule that would run faster, and whose kernels take longer than that saves.
    pub instead_of: Option<Times>,
}

impl Weighed {
    /// In lines of `torre plan`.
    pub fn text(&self) -> String {
        let taken = format!("  compiling {} are expected\n", self.taken.text());
        match &self.instead_of {
            None => taken,
            Some(other) => format!(
                "{taken}  instead   of {}: {}\n",
                other.schedule,
                other.text()
            ),
        }
    }

    pub fn json(&self) -> Value {
        let mut value = self.taken.json();
        value["instead_of"] = self.instead_of.as_ref().map(Times::json).into();
        value
    }
}

impl Planned {
    /// Weighs the compilation: where `auto` has chosen a schedule whose kernels take longer to compile than the run
    /// gains, it becomes layerwise execution.
    pub fn weighed(mut self, resolved: &Resolved, compiler: Compiler) -> Result<Self, Failure> {
        let by = By {
            compiler,
            vector_bytes: self.machine.vector_bytes,
        };
        let own = Times::new(&self.plan, &self.expected, resolved, by);
        let choices = self.choices.iter().filter(|_| self.is_auto);
        let mut plain = choices.filter(|choice| choice.schedule == Schedule::Layerwise);
        let plain = plain.next().cloned();
        let plain = plain.filter(|plain| plain.schedule != self.plan.choice.schedule);
        let mut instead_of = None;
        let mut taken = own;
        if let Some(choice) = plain.filter(|_| taken.compiling > LEAST) {
            let planner = Planner::new(&resolved.scheme).map_err(SetupError::from)?;
            let plan = planner.plan(choice);
            let plan = plan.map_err(|error| refused(error, &planner))?;
            let expected = self.learned_rates.expected_of(&plan.choice);
            let other = Times::new(&plan, &expected, resolved, by);
            let is_less = taken.compiling - other.compiling > LEAST;
            if is_less && other.all() < taken.all() {
                instead_of = Some(std::mem::replace(&mut taken, other));
                (self.plan, self.expected) = (plan, expected);
            }
        }
        self.weighed = Some(Weighed { taken, instead_of });
        Ok(self)
    }

    /// The plans among others whose kernels take little time to compile beside the time of the run.
    pub fn soon_compiled(
        &self,
        others: Vec<Other>,
        resolved: &Resolved,
        compiler: Compiler,
    ) -> Vec<Other> {
        let Some(weighed) = self.weighed.as_ref().filter(|_| compiler == Compiler::Llvm) else {
            return others;
        };
        let Times {
            compiling,
            stepping,
            ..
        } = weighed.taken;
        let mut set = self.plan.kernels.clone();
        let mut is_soon = |other: &Other| {
            let both = set.clone().and(&other.plan.kernels);
            let bytes = self.machine.vector_bytes;
            let seconds = expected_seconds(&resolved.scheme, &both, bytes);
            let fits = seconds - compiling <= SHARE * stepping;
            if fits {
                set = both;
            }
            fits
        };
        others.into_iter().filter(|other| is_soon(other)).collect()
    }
}
