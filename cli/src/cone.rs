//! `torre cone`: dependence vectors and slopes, as tables or as pictures, and how the faces of a schedule fit them.

mod picture;

use crate::args;
use crate::columns::{Set, table};
use crate::failure::Failure;
use crate::input;
use crate::render::Voice;
use crate::schedule;
use crate::write;
use std::fmt::Write;
use torre_compiler::cone::{Cones, Dependence, Form, Rational, axis_form};
use torre_compiler::lattice::{Axis, PerAxis};
use torre_compiler::resolve::Resolved;
use torre_compiler::schedule::{Frame, Illegal, Schedule, Template, Tiling, check_tiling};
use torre_compiler::scheme::Scheme;
use torre_grammar::source::Source;
use torre_runtime::plan::{PlanError, Planner};
use torre_runtime::simulation::SetupError;

pub fn cone(args: &args::Cone, voice: &Voice) -> Result<(), Failure> {
    let source = input::source(&args.subject.file)?;
    let resolved = input::inspected(&args.subject, voice)?;
    let planner = Planner::new(&resolved.scheme).map_err(SetupError::from)?;
    let given = match &args.schedule {
        Some(text) => given(text, &source, &resolved, &planner)?,
        None => None,
    };
    let tiling = match &given {
        Some(Schedule::Tiled(tiling)) => Some(tiling),
        _ => None,
    };
    let wrong = tiling.and_then(|tiling| check_tiling(&planner.frame, tiling).err());
    match &args.output {
        Some(file) => {
            let shown = match &args.schedule {
                None => tower(&source, &resolved, &planner)?,
                Some(_) => given,
            };
            let drawn = picture::draw(
                args,
                &planner,
                shown.as_ref(),
                violation(&wrong, &planner.cones),
            )?;
            write::result_to(Some(file), &drawn)?;
        }
        None => {
            let mut out = planner.cones.to_string();
            out.push_str(&frame_text(
                &resolved.scheme,
                &planner.frame,
                &planner.cones,
            ));
            if let Some(tiling) = tiling {
                out.push_str(&faces_text(&planner, tiling));
            }
            write::result(&out)?;
        }
    }
    match wrong {
        Some(illegal) => Err(schedule::refused(PlanError::Illegal(illegal), &planner)),
        None => Ok(()),
    }
}

/// The dependence that crosses a face against the order. Along a folded axis, one that does so in the direction in
/// which it is drawn, if there is one.
fn violation(wrong: &Option<Illegal>, cones: &Cones) -> Option<Dependence> {
    let Some(Illegal::Slope { cut, needed }) = wrong else {
        return None;
    };
    let drawn = cones.steepest(cut.face.form);
    let drawn = drawn.filter(|d| d.slope(cut.face.form) > cut.face.slope);
    Some(*drawn.unwrap_or(&needed.dependence))
}

/// The schedule that is asked for; of sizes that are open, the first ones. `None` for a schedule without tiles.
fn given(
    text: &str,
    source: &Source,
    resolved: &Resolved,
    planner: &Planner<'_>,
) -> Result<Option<Schedule>, Failure> {
    match schedule::template(text, source, resolved, planner)? {
        Template::Layerwise => Ok(None),
        Template::Auto => tower(source, resolved, planner),
        Template::Tiled(t) => {
            let first = t.sizes.iter().filter_map(|size| size.values.first());
            let values: Vec<Rational> = first.copied().collect();
            Ok(Some(t.close(&values, &planner.frame)))
        }
    }
}

/// The tiles that a picture shows where no schedule is given: DiamondTorre with D = 2; diamonds in x-t with fewer than
/// three axes.
fn tower(
    source: &Source,
    resolved: &Resolved,
    planner: &Planner<'_>,
) -> Result<Option<Schedule>, Failure> {
    let grid = &resolved.scheme.grid;
    let names: Vec<&str> = grid.present().map(|a| grid.axis_name(a)).collect();
    let text = match names[..] {
        [x, y, _] => format!("({x}, {y}): diamond(D = 2) height 8"),
        [x, ..] => format!("{x}: diamond(D = 4) height 16"),
        [] => return Ok(None),
    };
    given(&text, source, resolved, planner)
}

/// The forms that tilings cut by: along each axis, and the sums of the two axes that are not the inner axis.
fn forms(scheme: &Scheme) -> Vec<Form> {
    let present: Vec<Axis> = scheme.grid.present().collect();
    let mut forms: Vec<Form> = Vec::new();
    for &axis in &present {
        forms.extend([1, -1].map(|sign| axis_form(axis, sign)));
    }
    if present.len() == 3 {
        let sums = [[1, 1], [1, -1], [-1, 1], [-1, -1]];
        forms.extend(sums.map(|[x, y]| PerAxis([x, y, 0])));
    }
    forms
}

/// The slopes that the faces of tiles need, and the dependences that decide them.
fn frame_text(scheme: &Scheme, frame: &Frame, cones: &Cones) -> String {
    let mut rows = vec![["face", "slope", "decided by"].map(str::to_owned)];
    for form in forms(scheme) {
        let (slope, decides) = match frame.needed(form) {
            Some(needed) => (needed.slope, cones.describe(&needed.dependence)),
            None => (Rational::ZERO, "nothing".to_owned()),
        };
        rows.push([cones.form_name(form), slope.to_string(), decides]);
    }
    let mut out = "\nfaces of tiles, slopes in cells per stage\n".to_owned();
    out.push_str(&table(&[Set::Left, Set::Right, Set::Left], &rows));
    let name = |axis| scheme.grid.axis_name(axis);
    let anchors: Vec<String> = frame
        .anchors
        .iter()
        .enumerate()
        .map(|(stage, anchor)| format!("{anchor} in stage {stage}"))
        .collect();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\ntiles count all values of a stage at one place along {}: at {}",
        name(Axis::INNER),
        anchors.join(", "),
    );
    for axis in scheme.grid.present().filter(|&a| frame.folded[a]) {
        let name = name(axis);
        let _ = writeln!(
            out,
            "tiles measure {name} as the distance from 0 around the domain, so {name} and -{name} need the same slope"
        );
    }
    out
}

/// The faces of a tiling against the needs of the scheme.
fn faces_text(planner: &Planner<'_>, tiling: &Tiling) -> String {
    let Planner { frame, cones, .. } = planner;
    let head = ["level", "face", "slope", "needed", "pitch", ""];
    let mut rows = vec![head.map(str::to_owned)];
    for (number, level) in tiling.levels.iter().enumerate() {
        for cut in &level.cuts {
            let needed = frame.needed(cut.face.form);
            let slope = needed.as_ref().map_or(Rational::ZERO, |n| n.slope);
            let verdict = match needed {
                Some(needed) if slope > cut.face.slope => {
                    let dependence = cones.describe(&needed.dependence);
                    format!("cuts a dependence: {dependence}")
                }
                _ => String::new(),
            };
            rows.push([
                number.to_string(),
                cones.form_name(cut.face.form),
                cut.face.slope.to_string(),
                slope.to_string(),
                cut.pitch.to_string(),
                verdict,
            ]);
        }
    }
    let mut out = format!(
        "\ntiles of the schedule, {} step{} high\n",
        tiling.height,
        if tiling.height == 1 { "" } else { "s" },
    );
    let (left, right) = (Set::Left, Set::Right);
    out.push_str(&table(&[left, left, right, right, right, left], &rows));
    out
}
