//! Steps, cell sizes and Courant numbers, and the refusal of unstable steps.

use crate::args::Unstable;
use crate::codes;
use crate::input::Input;
use crate::render::Voice;
use std::collections::BTreeSet;
use std::f64::consts::TAU;
use torre_compiler::analysis::{
    Cell, Effort, Growth, Lattice, Limit, NoStep, Pace, Patience, Stability, Summary, Taken, Trial,
    gain_of_sites, growth_of_equations, largest_step, limit_is_quick, of_places, places, stability,
    summary, trial_of_interfaces, trial_of_part,
};
use torre_compiler::driver::Variable;
use torre_compiler::resolve::{Options, Program, Resolved};
use torre_compiler::scheme::{ComponentId, Scheme};
use torre_compiler::statics::Files;
use torre_compiler::world::World;
use torre_grammar::diag::{Diagnostic, Severity};
use torre_grammar::source::Source;

/// The calculation that is looked at.
pub struct Subject<'a> {
    pub world: &'a dyn World,
    pub source: &'a Source,
    /// The program, where its text is parsed.
    pub program: Option<&'a Program<'a>>,
    pub options: &'a Options,
    pub resolved: &'a Resolved,
    pub files: &'a dyn Files,
}

/// Halvings of a step that are tried where no step is stable in a uniform medium.
const HALVINGS: i32 = 4;

/// Reasons that are shown why stability is not known.
const SHOWN: usize = 3;

impl<'a> Subject<'a> {
    pub fn new(input: &'a Input, files: &'a dyn Files) -> Self {
        Self {
            world: &input.world,
            source: &input.source,
            program: None,
            options: &input.options,
            resolved: &input.resolved,
            files,
        }
    }

    /// The calculation, to be resolved with other numbers.
    fn variable(&self) -> Option<Variable<'a>> {
        let variable = match self.program {
            Some(program) => Variable::of(program, self.options),
            None => Variable::new(self.world, self.source, self.options),
        };
        variable.ok()
    }

    /// Reports the step and the cells, and refuses an unstable step; one that is allowed gives a warning.
    pub fn announce(
        &self,
        voice: &Voice,
        unstable: Unstable,
    ) -> Result<Option<Diagnostic>, Diagnostic> {
        let scheme = &self.resolved.scheme;
        let found = summary(scheme, self.resolved.without_phases.as_ref(), self.files);
        let mut line = sizes(scheme);
        match &found {
            Ok(Summary { pace, stability }) => {
                if let Some(pace) = pace {
                    line = format!("{line}, {}", name_pace(pace));
                }
                if let Some(part) = name_incomplete(stability) {
                    line = format!("{line}; {part}");
                }
            }
            Err(error) => {
                let why = self.obstacles(error).into_iter().map(|d| d.message);
                // A component that advances several times in a step has several updates.
                let mut why: Vec<String> = distinct(why);
                let more = match why.len().saturating_sub(SHOWN) {
                    0 => String::new(),
                    more => format!(", and {more} more"),
                };
                why.truncate(SHOWN);
                let why = why.join(", ");
                line = format!("{line}; stability is not known: {why}{more}");
            }
        }
        voice.note(format_args!("{}: {line}", self.resolved.problem.name));
        match found {
            Ok(Summary { stability, .. }) if stability.is_open() => {
                let found = self.with_gain().unwrap_or(stability);
                match found.is_stable() {
                    true => Ok(None),
                    false => self.refuse(&found, voice, unstable),
                }
            }
            _ => Ok(None),
        }
    }

    /// The stability where growth of uniform values is compared with that in short steps; `None` where that is not
    /// known soon.
    fn with_gain(&self) -> Option<Stability> {
        let variable = self.variable()?;
        let dt = variable.parameter("dt")?;
        let scheme = &self.resolved.scheme;
        let places = places(scheme, self.files, Patience::Short).ok()?;
        if !limit_is_quick(scheme, &places.list) {
            return None;
        }
        let mut with = |dt: f64| variable.with(&[("dt", dt)]);
        let gain = gain_of_sites(dt, &mut with, self.files, &places.list);
        of_places(scheme, self.files, &places, &Effort::QUICK, &gain).ok()
    }

    fn refuse(
        &self,
        found: &Stability,
        voice: &Voice,
        unstable: Unstable,
    ) -> Result<Option<Diagnostic>, Diagnostic> {
        let scheme = &self.resolved.scheme;
        let limit = self.limit(unstable);
        // Values that grow of themselves, and how fast, are known better where the step can be changed.
        if limit.is_some_and(|l| l.allows(scheme.grid.dt)) {
            return Ok(None);
        }
        let is_none_stable = limit.as_ref().is_some_and(Limit::is_none_stable);
        let tried = match is_none_stable {
            true => trial_of_part(scheme, self.files, found),
            false => trial_of_interfaces(scheme, self.files, found),
        };
        if let Some(tried) = tried.filter(|t| t.grows() == Some(false)) {
            voice.note(format_args!(
                "{}: stability is not known: {} grow by {} in a medium with the coefficients of {} alone, but {}",
                self.resolved.problem.name,
                name_wave(scheme, &found.worst),
                factor(found.worst.rate),
                cell(scheme, found.at),
                name_trial(&tried),
            ));
            return Ok(None);
        }
        if is_none_stable && let Some(rate) = self.growth_of_equations(found) {
            voice.note(format_args!(
                "{}: {}",
                self.resolved.problem.name,
                name_own_growth(scheme, &found.worst, rate)
            ));
            return Ok(None);
        }
        let place = match found.settings {
            0 | 1 => String::new(),
            _ => format!(" with the coefficients of {}", cell(scheme, found.at)),
        };
        let message = format!(
            "the step of `{}` is unstable: {} grow by {}{place}",
            self.resolved.problem.name,
            name_wave(scheme, &found.worst),
            factor(found.worst.rate),
        );
        let mut diagnostic = Diagnostic::error(codes::UNSTABLE, message);
        let advice = match limit {
            Some(Limit::Step {
                dt,
                side,
                weak: false,
                ..
            }) => format!(
                "the {} stable `dt` is {}{}, and this is {}; ",
                side.name(),
                significant(dt, 6),
                match found.settings {
                    0 | 1 => "",
                    _ => " in a medium with these coefficients alone",
                },
                significant(scheme.grid.dt, 6)
            ),
            _ if tried.is_some_and(|t| t.rate.is_none()) => {
                "no `dt` is stable in a medium with these coefficients alone, and waves grow too slowly for a trial \
                 with the coefficients around the cell; "
                    .to_owned()
            }
            _ if tried.is_some() => match self.shorter(found) {
                Some(dt) => format!(
                    "with `dt` = {} nothing grew there in a trial; ",
                    significant(dt, 6)
                ),
                None => String::new(),
            },
            _ if is_none_stable && self.is_without_step(found) => {
                "the updates do not depend on `dt`: is it missing from them? ".to_owned()
            }
            _ if is_none_stable => "no `dt` that was tried is stable; ".to_owned(),
            _ => String::new(),
        };
        let more = "`torre analyze` says more, `--allow-unstable` goes on all the same";
        diagnostic.hint = Some(format!("{advice}{more}"));
        if unstable == Unstable::Refused {
            return Err(diagnostic);
        }
        diagnostic.severity = Severity::Warning;
        diagnostic.hint = None;
        Ok(Some(diagnostic))
    }

    /// The rate at which waves grow, if that is the rate of the equations.
    fn growth_of_equations(&self, found: &Stability) -> Option<f64> {
        let variable = self.variable()?;
        let mut resolve = |lattice: &Lattice| variable.sized(lattice);
        growth_of_equations(found, &self.resolved.scheme, self.files, &mut resolve)
    }

    /// A part of the step with which values do not grow with the coefficients that the cells have.
    fn shorter(&self, found: &Stability) -> Option<f64> {
        let variable = self.variable()?;
        let own = variable.parameter("dt")?;
        (1..=HALVINGS).map(|n| own * 0.5_f64.powi(n)).find(|dt| {
            let grows = |scheme: &Scheme| {
                let shorter = stability(scheme, self.files, &Effort::QUICK).ok()?;
                let there = Stability {
                    worst: shorter.worst,
                    ..found.clone()
                };
                trial_of_part(scheme, self.files, &there)?.grows()
            };
            variable.with(&[("dt", *dt)]).and_then(|s| grows(&s)) == Some(false)
        })
    }

    /// Whether waves grow alike with another step.
    fn is_without_step(&self, found: &Stability) -> bool {
        let other = || {
            let variable = self.variable()?;
            let shorter = 0.5 * variable.parameter("dt")?;
            let scheme = variable.with(&[("dt", shorter)])?;
            stability(&scheme, self.files, &Effort::QUICK).ok()
        };
        other().is_some_and(|o| (o.worst.rate - found.worst.rate).abs() < 1e-4 * found.worst.rate)
    }

    /// The largest stable step; of a step that is allowed in any case only where it is found soon.
    fn limit(&self, unstable: Unstable) -> Option<Limit> {
        let variable = self.variable()?;
        variable.parameter("dt")?;
        let scheme = &variable.base().scheme;
        let places = places(scheme, self.files, Patience::Long).ok()?;
        if unstable == Unstable::Allowed && !limit_is_quick(scheme, &places.list) {
            return None;
        }
        let mut with = |dt: f64| variable.with(&[("dt", dt)]);
        largest_step(
            scheme.grid.dt,
            &mut with,
            self.files,
            &places.list,
            Taken::Each,
        )
    }

    /// The obstacles to the analysis of a scheme, at their places in the text.
    pub fn obstacles(&self, error: &NoStep) -> Vec<Diagnostic> {
        let scheme = &self.resolved.scheme;
        let name = |target: ComponentId| &scheme.component(target).name;
        let told = |stage: usize, message: String, label: String| {
            let diagnostic = Diagnostic::error(codes::NOT_ANALYSED, message);
            match self.resolved.statements.get(stage) {
                Some(place) => diagnostic.at(&place.source, place.span, label),
                None => diagnostic,
            }
        };
        match error {
            NoStep::Nonlinear(updates) => updates
                .iter()
                .map(|update| {
                    let components = update.why.components.iter();
                    let by: Vec<String> = components.map(|c| format!("`{}`", name(*c))).collect();
                    let message = format!("the update of `{}` is not linear", name(update.target));
                    let operation = update.why.operation.describe();
                    told(
                        update.stage,
                        message,
                        format!("{operation}, of {}", by.join(", ")),
                    )
                })
                .collect(),
            NoStep::NotFinite { stage, target } => {
                let message = format!(
                    "the update of `{}` has a coefficient that is not finite",
                    name(*target)
                );
                vec![told(*stage, message, "here".to_owned())]
            }
            NoStep::TooLarge { slots } => {
                let message = format!(
                    "a cell of `{}` has {slots} values, too many to be analysed",
                    scheme.name
                );
                vec![Diagnostic::error(codes::NOT_ANALYSED, message)]
            }
            NoStep::TooSlow { values } => {
                let message = format!(
                    "{values} values of a cell of `{}` depend on each other, which takes long: `torre analyze` looks \
                     at it",
                    scheme.name
                );
                vec![Diagnostic::error(codes::NOT_ANALYSED, message)]
            }
        }
    }
}

/// Step, cells and extents in words.
pub fn sizes(scheme: &Scheme) -> String {
    let grid = &scheme.grid;
    let list = |value: &dyn Fn(torre_compiler::lattice::Axis) -> f64| {
        let parts: Vec<String> = grid.present().map(|a| significant(value(a), 6)).collect();
        parts.join(" x ")
    };
    format!(
        "dt {}, cells of {}, extent {}",
        significant(grid.dt, 6),
        list(&|a| grid.spacing[a]),
        list(&|a| grid.spacing[a] * grid.cells[a] as f64),
    )
}

/// `values do not grow with the coefficients that the 1024 cells around it have, or by less than 0.4 % per step (1000
/// steps were tried)`
pub fn name_trial(trial: &Trial) -> String {
    let (grow, least) = match trial.grows() {
        Some(true) => ("grow, too,", String::new()),
        Some(false) => (
            "do not grow",
            format!(", or by less than {}", factor(trial.least_rate())),
        ),
        None => {
            return "waves grow too slowly for a trial with the coefficients around it".to_owned();
        }
    };
    format!(
        "values {grow} with the coefficients that the {} cells around it have{least} ({} steps were tried)",
        trial.cells, trial.steps
    )
}

/// `stability is known with 32 sets of coefficients, and not for all combinations of statements and branches that act
/// together`, where not all of a scheme was looked at.
fn name_incomplete(found: &Stability) -> Option<String> {
    let mut left_out = Vec::new();
    if !found.is_complete {
        left_out.push(
            "not for all combinations of statements and branches that act together".to_owned(),
        );
    }
    if found.unsearched > 0 {
        left_out.push(format!("not for {}", name_unsearched(found.unsearched)));
    }
    let sets = match found.settings {
        1 => "one set".to_owned(),
        n => format!("{n} sets"),
    };
    let is_partial = !left_out.is_empty();
    is_partial.then(|| {
        format!(
            "stability is known with {sets} of coefficients, and {}",
            left_out.join(", and ")
        )
    })
}

/// `the extremes of 3 further coefficients`
pub fn name_unsearched(coefficients: usize) -> String {
    match coefficients {
        1 => "the extremes of one further coefficient".to_owned(),
        n => format!("the extremes of {n} further coefficients"),
    }
}

/// `Courant number 0.45`
pub fn name_pace(pace: &Pace) -> String {
    let name = match pace.moves {
        true => "Courant number",
        false => "diffusion number",
    };
    format!("{name} {}", significant(pace.number, 4))
}

/// `waves of 8 cells along x grow at the rate 0.67, as those of the equations do: ...`
pub fn name_own_growth(scheme: &Scheme, wave: &Growth, rate: f64) -> String {
    format!(
        "{} grow at the rate {} per unit of time, as those of the equations do: shorter steps and smaller cells keep \
         that rate",
        name_wave(scheme, wave),
        significant(rate, 3)
    )
}

/// `waves of 2 cells along x and y`
pub fn name_wave(scheme: &Scheme, wave: &Growth) -> String {
    let grid = &scheme.grid;
    let mut lengths: Vec<(String, Vec<&str>)> = Vec::new();
    for axis in grid.present() {
        // A phase of 2 pi from cell to cell is none.
        let phase = wave.phase[axis].abs() % TAU;
        let phase = phase.min(TAU - phase);
        if phase < 1e-3 {
            continue;
        }
        let length = significant(TAU / phase, 3);
        match lengths.iter_mut().find(|(l, _)| *l == length) {
            Some((_, axes)) => axes.push(grid.axis_name(axis)),
            None => lengths.push((length, vec![grid.axis_name(axis)])),
        }
    }
    if lengths.is_empty() {
        return "uniform values".to_owned();
    }
    let parts: Vec<String> = lengths
        .iter()
        .map(|(length, axes)| format!("{length} cells along {}", axes.join(", ")))
        .collect();
    format!("waves of {}", parts.join(" and "))
}

/// `a factor of 1.31 per step`
pub fn factor(rate: f64) -> String {
    match rate {
        r if r < 0.01 => format!("{} % per step", significant(100.0 * r.exp_m1(), 3)),
        r => format!("a factor of {} per step", significant(r.exp(), 4)),
    }
}

/// `cell (1, 2, 3)`, `cell (9) with its upper face across x`
pub fn cell(scheme: &Scheme, cell: Cell) -> String {
    let grid = &scheme.grid;
    let indices: Vec<String> = grid.present().map(|a| cell.index[a].to_string()).collect();
    let upper = grid.present().filter(|a| cell.upper[*a]);
    let upper: Vec<&str> = upper.map(|a| grid.axis_name(a)).collect();
    let faces = match upper.len() {
        0 => String::new(),
        1 => format!(" with its upper face across {}", upper[0]),
        _ => format!(" with its upper faces across {}", upper.join(", ")),
    };
    format!("cell ({}){faces}", indices.join(", "))
}

/// A number with `digits` significant digits, without zeros at the end.
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let rounded: f64 = format!("{value:.*e}", digits - 1).parse().unwrap_or(value);
    match rounded.abs() {
        s if (1e-4..1e7).contains(&s) => format!("{rounded}"),
        _ => format!("{rounded:e}"),
    }
}

/// Texts in their order, each once.
fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    texts.filter(|text| seen.insert(text.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::significant;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.45, "0.45"),
            (1.0 / 3.0, "0.333333"),
            (2e-8, "2e-8"),
            (9.897433185385739e-9, "9.89743e-9"),
            (299792458.0, "2.99792e8"),
            (1234.5678, "1234.57"),
            (0.9999999, "1"),
            (-0.25, "-0.25"),
        ] {
            assert_eq!(significant(value, 6), text);
        }
    }
}
