//! Boxes of total fields: how much of a plane wave leaves them, what the wave in them is, and that fields of
//! expressions come in.

use std::path::Path;
use torre_compiler::driver::load;
use torre_compiler::incident::Shell;
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
