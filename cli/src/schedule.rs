//! From `--schedule` to a plan.

mod weighed;

pub use weighed::{Compiler, Weighed};

use crate::codes;
use crate::failure::Failure;
use crate::rates::{Expected, LearnedRates, Rates};
use torre_compiler::cost::{Choice, Machine};
use torre_compiler::resolve::Resolved;
use torre_compiler::schedule::frame::Needed;
use torre_compiler::schedule::{Illegal, Schedule, Template, notation};
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::Source;
use torre_grammar::{ast, parse_schedule};
use torre_runtime::host::{measure, threads};
use torre_runtime::plan::{Plan, PlanError, Planner};
use torre_runtime::rates::Computer;
use torre_runtime::simulation::SetupError;

/// The schedule that the user asked for, as a family of schedules: the name of a block of the program, or a schedule
/// written out.
pub fn template(
    text: &str,
    source: &Source,
    resolved: &Resolved,
    planner: &Planner<'_>,
) -> Result<Template, Failure> {
    let block = resolved.schedules.iter().find(|(name, _)| name == text);
    let read = |source: &Source, schedule: &ast::Schedule| {
        notation::read(source, schedule, &resolved.scheme, &planner.frame)
    };
    match block {
        Some((_, schedule)) => Ok(read(source, schedule)?),
        None => {
            let own = Source::new("--schedule", text);
            Ok(read(&own, &parse_schedule(&own)?)?)
        }
    }
}

/// The threads of a run on the processor, as many as are asked for or worthwhile.
pub fn threads(asked: Option<u32>, resolved: &Resolved) -> usize {
    asked.map_or_else(|| threads::worthwhile(&resolved.scheme), |n| n as usize)
}

/// The data of this computer for the model: measured when a choice or a prediction depends on it.
pub fn machine(threads: usize) -> Machine {
    measure::machine(threads)
}

/// The plan of a run on the processor, and its reason.
pub struct Planned {
    pub machine: Machine,
    pub plan: Plan,
    /// All members of the family, the one that the model likes best first.
    pub choices: Vec<Choice>,
    pub learned_rates: LearnedRates,
    pub expected: Expected,
    /// Whether the model chose among all schedules that it knows.
    is_auto: bool,
    /// The expected times, once compilation was weighed.
    pub weighed: Option<Weighed>,
}

/// Another plan, which tuning compares.
pub struct Other {
    pub plan: Plan,
    pub expected: Expected,
}

impl Planned {
    /// The plans that tuning compares with this one. Pyramids have arrays of their own, so that a run cannot change
    /// to them or from them.
    pub fn others(&self, resolved: &Resolved) -> Vec<Other> {
        let Ok(planner) = Planner::new(&resolved.scheme) else {
            return Vec::new();
        };
        let is_pyramid = |choice: &Choice| matches!(choice.schedule, Schedule::Pyramids(_));
        if is_pyramid(&self.plan.choice) {
            return Vec::new();
        }
        let (taken, rates) = (&self.plan.choice, &self.learned_rates);
        let tried = rates.worth_trying(taken, &self.choices).into_iter();
        let choices = tried.map(|index| &self.choices[index]);
        let plans = choices
            .filter(|choice| !is_pyramid(choice))
            .filter_map(|choice| planner.plan(choice.clone()).ok());
        let other = |plan: Plan| Other {
            expected: rates.expected_of(&plan.choice),
            plan,
        };
        plans.map(other).collect()
    }
}

/// The plan of the member of the family that is expected to be fastest, by the model and by learned rates.
pub fn plan(
    text: &str,
    source: &Source,
    resolved: &Resolved,
    threads: usize,
    rates: &Rates,
) -> Result<Planned, Failure> {
    let planner = Planner::new(&resolved.scheme).map_err(SetupError::from)?;
    let template = template(text, source, resolved, &planner)?;
    let measured = measure::measured(threads);
    let computer = Computer::of_processor(&measured);
    let learned_rates = rates.learned_rates(resolved, computer.filter(|_| rates.is_learning()));
    let machine = measured.machine;
    let choices = planner.choices(&template, &machine);
    let picked = choices.get(learned_rates.pick(&choices));
    // A schedule that cannot be planned is no choice of runs.
    let picked = picked.and_then(|choice| planner.plan(choice.clone()).ok());
    let plan = match picked {
        Some(plan) => plan,
        None => planner
            .best(&template, &machine)
            .map_err(|error| refused(error, &planner))?,
    };
    Ok(Planned {
        expected: learned_rates.expected(&plan.choice, &choices),
        machine,
        plan,
        choices,
        learned_rates,
        is_auto: template == Template::Auto,
        weighed: None,
    })
}

/// The diagnostic for a schedule that cannot be run.
pub fn refused(error: PlanError, planner: &Planner<'_>) -> Failure {
    let illegal = match error {
        PlanError::TooLarge => return SetupError::TooLarge.into(),
        PlanError::Illegal(illegal) => illegal,
        PlanError::Fault(fault) => {
            return Diagnostic::error(codes::BACKEND, format!("wrong tiles were made: {fault}"))
                .hint("this is a defect of Torre, not of your program: please report it")
                .into();
        }
    };
    let diagnostic = match illegal {
        Illegal::Slope { cut, needed } => {
            let form = planner.cones.form_name(cut.face.form);
            let Needed {
                slope,
                dependence,
                chain,
            } = *needed;
            let steepest = planner.frame.slope_of(&dependence, cut.face.form);
            // A step may reach far in one stage if it reaches less far in others.
            let why = if steepest > slope {
                let links: Vec<String> = chain.iter().map(|d| planner.cones.describe(d)).collect();
                format!(" on average, because {}", links.join(", "))
            } else {
                String::new()
            };
            Diagnostic::error(
                codes::SLOPE,
                format!(
                    "the face {form} with slope {} cuts a dependence: {}",
                    cut.face.slope,
                    planner.cones.describe(&dependence),
                ),
            )
            .hint(format!(
                "{form} needs a slope of at least {slope} cells per stage{why}; leave the slope out and it is derived"
            ))
        }
        Illegal::Mixed { .. } => Diagnostic::error(
            codes::SLOPE,
            "a face cannot cut the inner axis together with another one",
        ),
        Illegal::States => Diagnostic::error(
            codes::SLOPE,
            "overlapped tiles cannot run a scheme with layers or states: they compute values twice, which states do \
             not allow",
        )
        .hint(match planner.scheme.grid.present().count() {
            3 => "use tiles without overlap, such as `torre` or `layerwise`",
            _ => "use tiles without overlap, such as `diamond` or `layerwise`",
        }),
        Illegal::Endless => Diagnostic::error(
            codes::SLOPE,
            "a time block of this schedule has far more tiles than updates: nearly all are empty",
        )
        .hint("make tiles larger, slopes smaller, or the time block lower"),
        Illegal::Size => {
            Diagnostic::error(codes::SLOPE, "the sizes of a schedule must be positive")
        }
    };
    diagnostic.into()
}

/// A schedule as `--schedule` takes it, with all sizes and the directions of lean.
pub fn text(choice: &Choice, planner: &Planner<'_>) -> Option<String> {
    notation::write(&choice.schedule, planner.scheme, &planner.frame)
}

/// The name of a schedule in reports.
pub fn title(choice: &Choice) -> String {
    match &choice.schedule {
        Schedule::Layerwise => "layerwise".to_owned(),
        _ => choice.name.clone(),
    }
}
