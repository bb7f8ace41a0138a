//! Boxes of total fields: the part of a plane wave that leaves them, the wave in them, and fields of expressions.

use std::path::Path;
use torre_compiler::driver::load;
use torre_compiler::incident::Shell;
use torre_compiler::lattice::Axis;
use torre_compiler::real::Real;
use torre_compiler::reference::{Reference, for_each_index};
use torre_compiler::resolve::{Options, Resolved};
use torre_compiler::statics::NoFiles;
use torre_grammar::source::Source;
use torre_runtime::world::FileWorld;

fn resolved<T: Real>(text: &str) -> Resolved {
    let options = Options {
        precision: T::PRECISION,
        ..Options::default()
    };
    let world = FileWorld::beside(Path::new(""));
    load(&world, &Source::new("test", text), &options).unwrap_or_else(|d| panic!("{:?}", d.0[0]))
}

/// The largest value of any component outside of the first box over that in it, up to the last step, in dB.
fn leakage<T: Real>(text: &str) -> f64 {
    let Resolved {
        scheme, problem, ..
    } = resolved::<T>(text);
    let shell = Shell::new(&scheme, &problem.incidents[0].boxes[0]);
    let mut reference: Reference<'_, T> = Reference::new(&scheme, &problem, &NoFiles);
    let [mut inside, mut outside] = [0.0f64; 2];
    while reference.steps() < problem.steps {
        reference.step();
        for id in scheme.component_ids() {
            let position = scheme.component(id).position;
            let mut values = reference.values(id).iter();
            for_each_index(scheme.extent(id), |at| {
                let value = values.next().map_or(f64::NAN, |v| v.to_f64().abs());
                match shell.has(position, at) {
                    true => inside = inside.max(value),
                    false => outside = outside.max(value),
                }
            });
        }
    }
    assert!(inside > 0.01, "nothing comes in: {inside}");
    20.0 * (outside.max(1e-300) / inside).log10()
}

fn check_double(text: &str) {
    let double = leakage::<f64>(text);
    println!("{double:.1} dB: {text}");
    assert!(double < -280.0, "{double} dB\n{text}");
}

/// Checks a problem in both precisions.
fn check(text: &str) {
    check_double(text);
    let single = leakage::<f32>(text);
    println!("{single:.1} dB in single precision");
    assert!(single < -115.0, "{single} dB in single precision\n{text}");
}

/// A pulse of waves of 10 cells.
const PULSE: &str = "(1 - 2*(0.314*(t - 16))^2) * exp(-(0.314*(t - 16))^2)";

/// Maxwell's equations in three dimensions.
fn maxwell(order: u32, direction: &str, drive: &str, steps: u32) -> String {
    let dt = if order == 2 { 0.5 } else { 0.45 };
    let drives = drive.replace('@', PULSE);
    format!(
        "use std::maxwell::maxwell
problem p {{
  scheme maxwell {{ order = {order}, dt = {dt} }}
  domain 17 x 16 x 15
  boundary all: pec
  incident wave {{
    direction {direction}
    {drives}
  }}
  total x = 4..13, y = 5..12, z = 4..11 from wave
  steps {steps}
}}"
    )
}

#[test]
fn plane_waves_of_maxwells_equations_stay_in_their_box() {
    let oblique = "drive E.x = 3*@; drive E.z = -@";
    check(&maxwell(2, "(1, 1, 0)", "drive E.z = @", 100));
    check_double(&maxwell(2, "(1, 2, 3)", oblique, 150));
    check(&maxwell(4, "(1, 0, 0)", "drive E.z = @", 100));
    check(&maxwell(4, "(1, 2, 3)", oblique, 150));
    let drive = "drive E.y = 3*@; drive E.z = @";
    check_double(&maxwell(4, "(-2, 1, -3)", drive, 150));
}

fn two_axes(scheme: &str, direction: &str, drive: &str, steps: u32) -> String {
    let drives = drive.replace('@', PULSE);
    let name = scheme.rsplit("::").next().unwrap_or_default();
    let module = scheme.split(" {").next().unwrap_or_default();
    format!(
        "use {module}
problem p {{
  scheme {name}
  domain 30 x 28
  boundary all: pec
  incident wave {{ direction {direction}; {drives} }}
  total x = 8..21, y = 9..19 from wave
  steps {steps}
}}"
    )
}

#[test]
fn plane_waves_of_other_schemes_stay_in_their_box() {
    let acoustics = "std::acoustics::acoustics_2d { order = 4, dt = 0.4 }";
    let elastic = "std::elastic::elastic_2d { order = 4, dt = 0.3 }";
    for direction in ["(1, 0)", "(3, -2)"] {
        check(&two_axes(acoustics, direction, "drive p = @", 240));
    }
    // Shear waves and pressure waves.
    for drive in [
        "drive v.x = 2*@; drive v.y = -@",
        "drive v.x = @; drive v.y = 2*@",
    ] {
        check(&two_axes(elastic, "(1, 2)", drive, 240));
    }
    // Two time levels.
    let wave = "std::wave::wave_2d";
    check_double(&two_axes(wave, "(1, 2)", "drive u = @", 240));
}

/// A wave at right angles to layers of media, with their reflections: glass with a coating, a medium that changes
/// all the way, a lossy half-space, sound in a heavy fluid.
#[test]
fn waves_through_layers_of_media_stay_in_their_box() {
    let of = |scheme: &str, media: &str, direction: &str, drive: &str| {
        let text = two_axes(scheme, direction, drive, 240);
        text.replace("boundary", &format!("{media}\n  boundary"))
    };
    let light = "std::maxwell::maxwell_tm { order = 4, dt = 0.5 }";
    let coated = "coef eps = if x < 13 then 1 else if x < 16 then 2 else 4";
    let graded = "coef eps = 1 + (y / 10)^2; coef sigma = if y < 13 then 0.1 else 0";
    check(&of(light, coated, "(1, 0)", "drive Ez = @"));
    for (media, direction) in [(coated, "(-1, 0)"), (graded, "(0, 1)"), (graded, "(0, -1)")] {
        check_double(&of(light, media, direction, "drive Ez = @"));
    }
    let sound = "std::acoustics::acoustics_2d { order = 4, dt = 0.4 }";
    let heavy = "coef rho = if x < 15 then 1 else 3; coef kappa = if x < 15 then 1 else 2";
    check_double(&of(sound, heavy, "(1, 0)", "drive p = @"));
    // A homogeneous medium, in any direction.
    let dense = "coef eps = 2.25; coef mu = 1.5";
    check_double(&of(light, dense, "(2, -1)", "drive Ez = @"));
}

/// The reflection in front of a coated glass equals the wave of the layers there.
#[test]
fn waves_of_layers_have_their_reflections() {
    let values = |media: &str| {
        let pulse = PULSE.replace("0.314", "0.0785").replace("16", "64");
        let drive = format!("drive Ez = {pulse}");
        let text = two_axes("std::maxwell::maxwell_tm", "(1, 0)", &drive, 300);
        let text = text.replace("boundary", &format!("{media}\n  boundary"));
        let Resolved {
            scheme, problem, ..
        } = resolved::<f64>(&text);
        let mut reference: Reference<'_, f64> = Reference::new(&scheme, &problem, &NoFiles);
        let mut series = Vec::new();
        while reference.steps() < problem.steps {
            reference.step();
            // Two cells behind the face.
            let id = scheme.stages[1].updates[0].target;
            let width = scheme.extent(id)[Axis::INNER].len() as usize;
            series.push(reference.values(id)[10 * width + 14]);
        }
        series
    };
    let peak = |u: &[f64]| u.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let alone = values("coef eps = 1");
    let glass = values("coef eps = if x < 17.5 then 1 else 4");
    let back: Vec<f64> = glass.iter().zip(&alone).map(|(a, b)| a - b).collect();
    let ratio = peak(&back) / peak(&alone);
    // (n - 1) / (n + 1) for waves of 40 cells.
    assert!((ratio - 1.0 / 3.0).abs() < 0.02, "{ratio}");
}
