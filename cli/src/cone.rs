//! `torre cone`: dependence vectors and slopes, as a table or as a picture.

use crate::args;
use crate::failure::Failure;
use crate::input;
use crate::render::Voice;
use crate::write;
use torre_compiler::cone::draw::{Cut, Section, section};
use torre_compiler::cone::{Cones, Form, Rational, cones};
use torre_compiler::lattice::{Axis, PerAxis};
use torre_compiler::schedule::face::Face;
use torre_compiler::scheme::{ComponentId, Scheme};
use torre_runtime::output::atomic::write_file;

/// The half-diagonal of the tiles in a picture, in reaches of a stage.
const TILE: i64 = 2;

/// The steps that a picture looks back.
const STEPS: u32 = 3;

pub fn cone(args: &args::Cone, voice: &Voice) -> Result<(), Failure> {
    let scheme = input::inspected(&args.what, voice)?.scheme;
    let cones = cones(&scheme);
    let Some(file) = &args.output else {
        write::result(&cones.to_string());
        return Ok(());
    };
    let what = Section {
        component: component(&scheme, args.component.as_deref())?,
        axis: axis(&scheme, args.axis.as_deref())?,
        steps: STEPS,
        later: scheme.stages.len() as u32,
        cuts: towers(&scheme, &cones),
    };
    let text = section(&scheme, &cones, &what);
    Ok(write_file(file, text.as_bytes())?)
}

/// The component of a name; without a name the one that a step computes last.
fn component(scheme: &Scheme, name: Option<&str>) -> Result<ComponentId, Failure> {
    let names = || {
        scheme
            .component_ids()
            .map(|id| (id, &scheme.component(id).name))
    };
    match name {
        Some(name) => names()
            .find(|(_, n)| *n == name)
            .map(|(id, _)| id)
            .ok_or_else(|| {
                let all: Vec<&str> = names().map(|(_, n)| n.as_str()).collect();
                Failure::usage(format!(
                    "there is no component `{name}`; there are {}",
                    all.join(", ")
                ))
            }),
        None => {
            let updates = scheme.stages.iter().rev().flat_map(|s| s.updates.last());
            Ok(updates.map(|u| u.target).next().unwrap_or(ComponentId(0)))
        }
    }
}

/// The axis of a name; without a name the first.
fn axis(scheme: &Scheme, name: Option<&str>) -> Result<Axis, Failure> {
    let mut axes = scheme.grid.present();
    let found = match name {
        Some(name) => axes.find(|&a| scheme.grid.axis_name(a) == name),
        None => axes.next(),
    };
    found.ok_or_else(|| {
        Failure::usage(format!(
            "the scheme has no axis `{}`",
            name.unwrap_or_default()
        ))
    })
}

/// The faces of towers that lean along the first axis; with one axis, those of diamonds.
fn towers(scheme: &Scheme, cones: &Cones) -> Vec<Cut> {
    let axes: Vec<Axis> = scheme.grid.present().collect();
    let form = |sign: i32| -> Form {
        let mut form = PerAxis::splat(0);
        match axes[..] {
            [only] => form[only] = sign,
            [first, second, ..] => {
                form[first] = 1;
                form[second] = sign;
            }
            [] => {}
        }
        form
    };
    [1, -1]
        .into_iter()
        .filter_map(|sign| {
            let face = Face::fitting(cones, form(sign));
            // A reach in half cells, so that its multiples are exact.
            let reach = cones.slope(form(sign));
            let period = Rational::new(2 * TILE * reach.num().max(1), reach.den().max(1))?;
            Some(Cut { face, period })
        })
        .collect()
}
