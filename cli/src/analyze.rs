//! `torre analyze`: stability and accuracy from the scheme's own taps.

mod accuracy;

use crate::args;
use crate::codes;
use crate::failure::Failure;
use crate::input;
use crate::render::Voice;
use crate::stability::{
    Subject, cell, factor, name_own_growth, name_pace, name_trial, name_unsearched, name_wave,
    significant, sizes,
};
use crate::write;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use torre_compiler::analysis::{
    Analysis, Cell, Dispersion, Growth, Lattice, Limit, Side, Sizes, analyze as run, draw,
};
use torre_compiler::driver::Variable;
use torre_compiler::scheme::Scheme;
use torre_grammar::diag::{Diagnostic, Diagnostics};
use torre_runtime::files::LoadedFiles;
use torre_runtime::output::picture::{AxisText, LinePlot, Series};
use torre_runtime::world::FileWorld;

pub fn analyze(args: &args::Analyze, voice: &Voice) -> Result<(), Failure> {
    let report = args::report_file(args.report.as_deref());
    write::refuse_same_file(["--out", "--report"], [args.output.as_deref(), report])?;
    let world = FileWorld::beside(&args.subject.file);
    let source = input::source(&args.subject.file)?;
    let options = input::options(&args.subject, None);
    let variable = Variable::new(&world, &source, &options)?;
    let resolved = variable.base();
    voice.show(&resolved.warnings);
    let files = LoadedFiles::load(&world, &resolved.scheme)?;
    let subject = Subject {
        world: &world,
        source: &source,
        program: None,
        options: &options,
        resolved,
        files: &files,
    };
    let start = variable.parameter(&args.vary);
    if start.is_none() && args.vary != "dt" {
        let message = format!(
            "`{}` has no parameter `{}`",
            resolved.scheme.name, args.vary
        );
        return Err(Failure::usage(message));
    }
    if let Some(value) = start.filter(|v| *v <= 0.0) {
        let message = format!(
            "`{}` is {value}; the search starts from a positive value",
            args.vary
        );
        return Err(Failure::usage(message));
    }
    let mut with = |value: f64| variable.with(&[(args.vary.as_str(), value)]);
    let mut resolve = |lattice: &Lattice| variable.sized(lattice);
    let sizes = Sizes {
        start: start.unwrap_or(resolved.scheme.grid.dt),
        with_step: match start {
            Some(_) => Some(&mut with),
            None => None,
        },
        resolve: &mut resolve,
        without_phases: resolved.without_phases.as_ref(),
    };
    let found = run(&resolved.scheme, &files, sizes)
        .map_err(|error| Failure::from(Diagnostics(subject.obstacles(&error))))?;
    let page = Page {
        scheme: &resolved.scheme,
        problem: &resolved.problem.name,
        varied: &args.vary,
        start: start.unwrap_or(resolved.scheme.grid.dt),
        found: &found,
    };
    if let Some(path) = &args.output {
        picture(path, &resolved.scheme, found.dispersion.as_ref())?;
    }
    let shown = write::report(args.report.as_deref(), &format!("{:#}\n", page.json()))?;
    if !shown {
        write::result(&page.text())?;
    }
    Ok(())
}

/// Draws the errors of phase velocities, in the format that the file's name says.
fn picture(path: &Path, scheme: &Scheme, found: Option<&Dispersion>) -> Result<(), Failure> {
    let found = found.filter(|d| !d.kinds.is_empty());
    let Some(found) = found else {
        let message = "no waves move or decay in a way that could be drawn";
        return Err(Diagnostic::error(codes::NOT_ANALYSED, message).into());
    };
    if path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("png"))
    {
        return Ok(plot(scheme, found).write(path)?);
    }
    write::result_to(Some(path), &draw(scheme, found))
}

/// The curves over points per wavelength.
fn plot(scheme: &Scheme, found: &Dispersion) -> LinePlot {
    let text = |name: &str| AxisText {
        name: name.to_owned(),
        units: String::new(),
    };
    let mut series = Vec::new();
    for (number, kind) in found.kinds.iter().enumerate() {
        for (direction, curve) in found.directions.iter().zip(&kind.curves) {
            let name = match found.kinds.len() {
                1 => direction.name.clone(),
                _ => format!("{}: {}", number + 1, direction.name),
            };
            let shown = curve.iter().filter(|s| (2.99..=40.0).contains(&s.points));
            series.push(Series {
                name,
                points: shown.map(|s| (s.points, 100.0 * (s.ratio - 1.0))).collect(),
            });
        }
    }
    let quantity = match found.kinds.iter().all(|k| k.moves) {
        true => "error of the phase velocity, %",
        false => "error of the frequency, %",
    };
    LinePlot {
        title: format!("Numerical dispersion of {}", scheme.name),
        subtitle: sizes(scheme),
        across: text("points per wavelength"),
        up: text(quantity),
        series,
        ranges: [None; 2],
        marks: Vec::new(),
    }
}

/// The findings, to be reported.
struct Page<'a> {
    scheme: &'a Scheme,
    problem: &'a str,
    /// The parameter whose limit was looked for, and its value.
    varied: &'a str,
    start: f64,
    found: &'a Analysis,
}

impl Page<'_> {
    fn text(&self) -> String {
        let mut out = format!(
            "{} ({}): {}\n",
            self.problem,
            self.scheme.name,
            sizes(self.scheme)
        );
        self.stability(&mut out);
        if let Some(dispersion) = &self.found.dispersion {
            accuracy::text(&mut out, self.scheme, dispersion);
        }
        out
    }

    fn stability(&self, out: &mut String) {
        let Analysis {
            stability,
            pace,
            limit,
            safe_limit,
            trial,
            ..
        } = self.found;
        let scheme = self.scheme;
        // Writing to a string cannot fail.
        let _ = writeln!(out, "\nstability");
        let place = |at| match stability.settings {
            0 | 1 => String::new(),
            n => format!(
                ", with the coefficients of {} ({n} sets were looked at)",
                cell(scheme, at)
            ),
        };
        // A medium of one cell's coefficients tells nothing where values do not grow with the real ones.
        let refuted = trial.filter(|t| t.grows() == Some(false));
        let verdict = match (stability.is_stable(), self.found.of_equations, refuted) {
            (true, ..) => "this step is stable".to_owned(),
            (false, Some(rate), _) => name_own_growth(scheme, &stability.worst, rate),
            (false, None, found) => format!(
                "{}: {} grow by {}{}",
                match found {
                    Some(_) => "stability is not known",
                    None => "this step is unstable",
                },
                name_wave(scheme, &stability.worst),
                factor(stability.worst.rate),
                place(stability.at)
            ),
        };
        let _ = writeln!(out, "  {verdict}");
        if stability.is_stable() && stability.settings > 1 {
            let _ = writeln!(
                out,
                "  each of {} sets of coefficients was looked at alone; where they meet, a scheme that conserves no \
                 energy may let waves grow",
                stability.settings
            );
        }
        if let Some(trial) = trial {
            let _ = writeln!(out, "  {}", name_trial(trial));
        }
        if let Some(pace) = pace {
            let kind = match pace.moves {
                true => "the fastest waves have the speed",
                false => "the diffusivity is",
            };
            let _ = writeln!(
                out,
                "  {}; {kind} {}",
                name_pace(pace),
                significant(pace.coefficient, 4)
            );
        }
        match limit {
            Some(limit)
                if (refuted.is_some() || self.found.of_equations.is_some())
                    && limit.is_none_stable() => {}
            Some(limit) => {
                let of = match refuted {
                    Some(_) => "in a uniform medium: ",
                    None => "",
                };
                let at = match limit {
                    Limit::Step { at, .. } => place(*at),
                    Limit::None | Limit::Unstable => String::new(),
                };
                let _ = writeln!(out, "  {of}{}{at}", self.limit(limit));
            }
            None => {
                let _ = writeln!(
                    out,
                    "  the scheme has no parameter `dt`, so no largest step was looked for; `--vary NAME` takes \
                     another parameter"
                );
            }
        }
        if let Some(limit) = safe_limit.as_ref().filter(|_| refuted.is_none()) {
            let _ = writeln!(
                out,
                "  with the largest values of all coefficients at one place: {}",
                self.limit(limit)
            );
        }
        self.reservations(out);
    }

    /// Growth that is no instability, and parts of the scheme that the answer is not about.
    fn reservations(&self, out: &mut String) {
        let Analysis {
            stability,
            drift,
            unmirrored,
            ..
        } = self.found;
        let scheme = self.scheme;
        if stability.own > 0.0 {
            let _ = writeln!(
                out,
                "  uniform values grow by {} of themselves, which is not counted as instability",
                factor(stability.own)
            );
        }
        match drift {
            [0, 0] => {}
            [n, 0] => {
                let _ = writeln!(
                    out,
                    "  uniform values may grow as time^{n}, as those of the equations do"
                );
            }
            [_, n] => {
                let _ = writeln!(
                    out,
                    "  values that stand still may drive others, which then grow as time^{n}: no instability, but no \
                     bound either"
                );
            }
        }
        for axis in unmirrored {
            let name = scheme.grid.axis_name(*axis);
            let _ = writeln!(
                out,
                "  the scheme is not symmetric about mirrors across {name}: what its boundaries there do is not part \
                 of this answer"
            );
        }
        if !stability.aside.is_empty() {
            let names = stability.aside.iter();
            let names: Vec<String> = names
                .map(|c| format!("`{}`", scheme.component(*c).name))
                .collect();
            let _ = writeln!(
                out,
                "  the sums {} are not linear, and not part of this answer; no other value depends on them",
                names.join(", ")
            );
        }
        let kept = kept_in(scheme);
        if !kept.is_empty() {
            let _ = writeln!(
                out,
                "  states in {} and their effects there are not part of this answer",
                kept.join(", ")
            );
        }
        for (axis, part) in &stability.thin {
            let name = scheme.grid.axis_name(*axis);
            let _ = writeln!(
                out,
                "  what is computed for {name} in {part} alone is not part of this answer"
            );
        }
        if !stability.is_complete {
            let _ = writeln!(
                out,
                "  the answer is not known to be complete: not all combinations of statements and branches that act \
                 together were looked for"
            );
        }
        if stability.unsearched > 0 {
            let _ = writeln!(
                out,
                "  the answer is not known to be complete: {} were not looked for",
                name_unsearched(stability.unsearched)
            );
        }
    }

    fn limit(&self, limit: &Limit) -> String {
        let name = self.varied;
        match limit {
            Limit::Step {
                dt,
                side,
                wave,
                weak,
                at: _,
            } => {
                let used = match self.start / dt {
                    part if (part - 1.0).abs() < 1e-6 => {
                        "this one is at the limit, where waves may grow in proportion to time"
                            .to_owned()
                    }
                    part => format!("this one is {} of it", significant(part, 4)),
                };
                let beyond = name_wave(self.scheme, wave);
                match weak {
                    false => format!(
                        "{} stable {name} {} ({used}); beyond, {beyond} grow",
                        side.name(),
                        significant(*dt, 6)
                    ),
                    true => format!(
                        "no {name} is stable: {beyond} grow with every one, {} {name} = {} by less than a factor of \
                         e in 1e7 steps",
                        match side {
                            Side::Largest => "up to",
                            Side::Smallest => "from",
                        },
                        significant(*dt, 3)
                    ),
                }
            }
            Limit::None => format!("every {name} that was tried is stable"),
            Limit::Unstable => format!("no {name} that was tried is stable"),
        }
    }

    fn json(&self) -> Value {
        let found = self.found;
        let scheme = self.scheme;
        let present = || scheme.grid.present();
        let axis = |a| scheme.grid.axis_name(a);
        let wave = |g: &Growth| {
            json!({
                "phase_per_cell": present().map(|a| g.phase[a]).collect::<Vec<f64>>(),
                "growth_per_step": g.rate.exp(),
            })
        };
        let of_cell = |at: Cell| present().map(|a| at.index[a]).collect::<Vec<i64>>();
        let limit_of = |limit: &Limit| match limit {
            Limit::Step {
                dt,
                side,
                wave: w,
                at,
                weak,
            } => json!({
                "value": dt,
                "kind": side.name(),
                "wave": wave(w),
                "at_cell": of_cell(*at),
                "weakly_unstable_below": weak,
            }),
            Limit::None => json!("none"),
            Limit::Unstable => json!("always unstable"),
        };
        // Extremes of several cells at once are the coefficients of none.
        let limit_of_extremes = |limit: &Limit| {
            let mut all = limit_of(limit);
            if let Some(cell) = all.get_mut("at_cell") {
                *cell = Value::Null;
            }
            all
        };
        json!({
            "torre": env!("CARGO_PKG_VERSION"),
            "scheme": scheme.name,
            "problem": self.problem,
            "dt": scheme.grid.dt,
            "cell_sizes": present().map(|a| scheme.grid.spacing[a]).collect::<Vec<f64>>(),
            "domain": present().map(|a| scheme.grid.cells[a]).collect::<Vec<i64>>(),
            "stable": found.stability.is_stable(),
            "stable_with_all_extremes": found.stability.is_stable_in_any_case(),
            "worst_wave": wave(&found.stability.worst),
            "at_cell": of_cell(found.stability.at),
            "sets_of_coefficients": found.stability.settings,
            "all_combinations_known": found.stability.is_complete,
            "coefficients_not_searched": found.stability.unsearched,
            "with_all_coefficients": found.trial.map(|t| json!({
                "cells": t.cells,
                "steps": t.steps,
                "growth_per_step": t.rate.map(f64::exp),
                "grows": t.grows(),
            })),
            "own_growth_per_step": found.stability.own.exp(),
            "growth_rate_of_equations": found.of_equations,
            "pace": found.pace.map(|p| json!({
                "kind": if p.moves { "Courant number" } else { "diffusion number" },
                "number": p.number,
                "coefficient": p.coefficient,
            })),
            "varied": self.varied,
            "limit": found.limit.as_ref().map(limit_of),
            "limit_with_all_extremes": found.safe_limit.as_ref().map(limit_of_extremes),
            "polynomial_growth": { "uniform": found.drift[0], "other": found.drift[1] },
            "not_mirrored_along": found.unmirrored.iter().map(|a| axis(*a)).collect::<Vec<&str>>(),
            "not_analysed": found.stability.thin.iter().map(|(a, part)| json!({
                "axis": axis(*a),
                "from": part.lo,
                "to": part.hi,
            })).collect::<Vec<Value>>(),
            "states_not_analysed": kept_in(scheme),
            "left_out": found.stability.aside.iter().map(|c| &scheme.component(*c).name).collect::<Vec<&String>>(),
            "accuracy": found.dispersion.as_ref().map(accuracy::json),
        })
    }
}

/// The zones in which updates keep states.
fn kept_in(scheme: &Scheme) -> Vec<&str> {
    let kept: BTreeSet<usize> = scheme.states.iter().map(|s| s.zone.index()).collect();
    // A region is called by its condition.
    let names = kept
        .into_iter()
        .map(|zone| match &*scheme.zones[zone].name {
            "1" => "all cells",
            name => name,
        });
    names.collect()
}
