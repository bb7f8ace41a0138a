//! Tilings on the command line: `HEIGHT; CUT, CUT; CUT, CUT`, levels from the outermost in, each cut a form and a pitch
//! in cells, such as `16; x+y:24, x-y:24; x+y:8, x-y:8`. Axes have the scheme's names; slopes are the smallest that the
//! scheme allows. `auto` is the tiling that the model expects to be fastest on all cores of this machine, `every` all
//! tilings that it looks at.

use torre_compiler::cone::{Form, Rational, cones};
use torre_compiler::cost::predict;
use torre_compiler::lattice::{Axis, PerAxis};
use torre_compiler::schedule::{Cut, Frame, Level, Schedule, Template, Tiling};
use torre_compiler::scheme::Scheme;
use torre_compiler::tile::{Checked, TileProgram, lower};
use torre_runtime::host::Execution;
use torre_runtime::host::{measure, threads};
use torre_runtime::plan::Planner;

/// A tiling ready to run.
#[derive(Clone, Debug)]
pub struct Tiles {
    pub name: String,
    pub program: Checked<TileProgram>,
    pub schedule: Schedule,
    /// Whether the model looks at it where it is asked for the best.
    pub modelled: bool,
}

/// The rate that the model expects of a schedule on `threads` cores of this machine, in 1e9 cell-steps per second.
pub fn expected(planner: &Planner<'_>, schedule: &Schedule, threads: usize) -> f64 {
    let machine = measure::machine(threads);
    predict(
        planner.scheme,
        &planner.layout,
        &planner.frame,
        schedule,
        &machine,
    )
    .rate
        * 1e-9
}

/// Reads tilings and fits them to a scheme.
pub fn all_tiles(scheme: &Scheme, texts: &[String]) -> Result<Vec<Tiles>, String> {
    let mut all = Vec::new();
    for text in texts {
        match text.as_str() {
            "auto" => all.extend(modelled(scheme, 1)?),
            "every" => all.extend(modelled(scheme, usize::MAX)?),
            text => all.push(tiles(scheme, text)?),
        }
    }
    Ok(all)
}

/// Reads a tiling and fits it to a scheme.
pub fn tiles(scheme: &Scheme, text: &str) -> Result<Tiles, String> {
    let frame = Frame::new(scheme, &cones(scheme));
    let tiling = parse(scheme, &frame, text)?;
    let program = lower(scheme, &frame, &tiling).map_err(|e| format!("`{text}`: {e}"))?;
    Ok(Tiles {
        name: text.to_string(),
        program,
        schedule: Schedule::Tiled(tiling),
        modelled: false,
    })
}

/// The first tilings in the order of the model.
fn modelled(scheme: &Scheme, count: usize) -> Result<Vec<Tiles>, String> {
    let planner = Planner::new(scheme).map_err(|_| "the grid is too large".to_string())?;
    let machine = measure::machine(threads::available());
    let choices = planner.choices(&Template::Auto, &machine).into_iter();
    choices
        .filter(|c| matches!(c.schedule, Schedule::Tiled(_)))
        .take(count)
        .map(|choice| {
            let plan = planner
                .plan(choice)
                .map_err(|e| format!("a tiling of the model: {e:?}"))?;
            Ok(Tiles {
                name: plan.choice.name,
                program: match plan.execution {
                    Execution::Tiles(program) => program,
                    _ => return Err("a tiling has a tile program".to_string()),
                },
                schedule: plan.choice.schedule,
                modelled: true,
            })
        })
        .collect()
}

/// The same tiling with another height.
pub fn with_height(text: &str, height: u64) -> String {
    match text.split_once(';') {
        Some((_, levels)) => format!("{height};{levels}"),
        None => height.to_string(),
    }
}

fn parse(scheme: &Scheme, frame: &Frame, text: &str) -> Result<Tiling, String> {
    let mut parts = text.split(';').map(str::trim);
    let height = parts.next().unwrap_or_default();
    let height = height
        .parse()
        .ok()
        .filter(|&h| h > 0)
        .ok_or_else(|| format!("`{height}` is no height in steps"))?;
    let level = |part: &str| {
        let cuts = part.split(',').map(|cut| parse_cut(scheme, frame, cut));
        Ok(Level {
            cuts: cuts.collect::<Result<_, String>>()?,
        })
    };
    Ok(Tiling {
        height,
        levels: parts.map(level).collect::<Result<_, String>>()?,
    })
}

fn parse_cut(scheme: &Scheme, frame: &Frame, text: &str) -> Result<Cut, String> {
    let (form, pitch) = text
        .split_once(':')
        .ok_or_else(|| format!("`{}` is no cut; write FORM:PITCH", text.trim()))?;
    let pitch = parse_rational(pitch.trim())
        .filter(|p| *p > Rational::ZERO)
        .ok_or_else(|| format!("`{}` is no pitch", pitch.trim()))?;
    Ok(Cut {
        face: frame.fitting(parse_form(scheme, form.trim())?),
        pitch,
    })
}

fn parse_rational(text: &str) -> Option<Rational> {
    match text.split_once('/') {
        Some((num, den)) => Rational::new(num.trim().parse().ok()?, den.trim().parse().ok()?),
        None => text.parse().ok().map(Rational::whole),
    }
}

/// `x+y`, `-x`, `x-2y`.
fn parse_form(scheme: &Scheme, text: &str) -> Result<Form, String> {
    let wrong = || format!("`{text}` is no sum of axes such as x+y");
    let mut form = PerAxis::splat(0);
    let spaced = text.replace('-', "+-");
    // Blanks may stand anywhere but in numbers and names.
    for term in spaced.split('+').map(str::trim).filter(|t| !t.is_empty()) {
        let (sign, term) = match term.strip_prefix('-') {
            Some(rest) => (-1, rest.trim()),
            None => (1, term),
        };
        let digits = term.len() - term.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (factor, name) = (&term[..digits], term[digits..].trim());
        let factor: i32 = match factor {
            "" => 1,
            f => f.parse().map_err(|_| wrong())?,
        };
        let axis = Axis::ALL
            .into_iter()
            .find(|&a| scheme.grid.axes[a].as_deref() == Some(name))
            .ok_or_else(wrong)?;
        form[axis] += sign * factor;
    }
    if form == PerAxis::splat(0) {
        return Err(wrong());
    }
    Ok(form)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::CASES;
    use crate::program::load;
    use torre_compiler::scheme::Precision;

    fn scheme() -> Scheme {
        let case = CASES.iter().find(|c| c.name == "maxwell42");
        let case = case.expect("the case exists");
        let resolved = load(case, Precision::F32, &[16, 16, 16]);
        resolved.expect("the case resolves").scheme
    }

    #[test]
    fn forms_are_sums_of_the_schemes_axes() {
        let scheme = scheme();
        let form = |text| parse_form(&scheme, text).map(|f| f.0);
        assert_eq!(form("x+y"), Ok([1, 1, 0]));
        assert_eq!(form("-x"), Ok([-1, 0, 0]));
        assert_eq!(form("2x - 3 z"), Ok([2, 0, -3]));
        for wrong in ["", "x-x", "t", "x y", "99999999999x"] {
            assert!(form(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tilings_that_make_no_sense_are_refused() {
        let scheme = scheme();
        assert!(tiles(&scheme, "16; x+y:17/2, x-y:24; z:8").is_ok());
        assert!(tiles(&scheme, "64").is_ok());
        for wrong in ["", "0; x:4", "8; x", "8; x:0", "8; x:1/0", "8;", "8; x+z:4"] {
            assert!(tiles(&scheme, wrong).is_err(), "{wrong}");
        }
        assert_eq!(with_height("16; x:4; y:2", 8), "8; x:4; y:2");
    }
}
