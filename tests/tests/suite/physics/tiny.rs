//! Tiny values: a pulse in a background of zeros has a front without subnormal numbers.

use torre_suite::physics::case::Case;

/// A narrow pulse in a long domain; `init` names the component that it is given to.
fn pulse(uses: &str, scheme: &str, cells: &str, init: &str, boundary: &str) -> Case {
    Case::new(&format!(
        "{uses}
         problem pulse {{
           scheme {scheme}
           domain {cells}
           boundary {boundary}
           init {init} = exp(-(x - 30)^2)
           steps 1
         }}"
    ))
}

#[test]
fn fronts_of_pulses_have_no_subnormal_numbers() {
    let heat = "scheme heat {
        axes x
        field u : scalar on nodes
        step { u += 0.2 * d2(u, x) }
      }";
    let kerr = "scheme kerr {
        axes x
        field e : scalar on nodes
        field h : scalar on cells at 1/2
        step {
          h += 0.5 * d(e, x)
          e += 0.5 * d(h, x) / (1 + e^2)
        }
      }";
    let cases = [
        pulse(
            "use std::maxwell::maxwell42",
            "maxwell42",
            "80 x 5 x 6",
            "E.z",
            "all: pec",
        ),
        pulse(
            "use std::maxwell::maxwell22",
            "maxwell22",
            "80 x 5 x 6",
            "H.y",
            "x: cpml(5), y: periodic, z: pmc",
        ),
        pulse(
            "use std::wave::wave_2d",
            "wave_2d",
            "80 x 7",
            "u",
            "all: pec",
        ),
        pulse(
            "use std::elastic::elastic_2d",
            "elastic_2d",
            "80 x 7",
            "v.x",
            "all: pec",
        ),
        pulse(
            "use std::acoustics::acoustics_2d",
            "acoustics_2d",
            "80 x 7",
            "p",
            "x: cpml(5), y: pec",
        ),
        pulse(heat, "heat", "80", "u", "x: zero"),
        pulse(kerr, "kerr", "80", "e", "x: pec"),
    ];
    for case in &cases {
        let mut run = case.start();
        let mut tiny = 0;
        for _ in 0..40 {
            for component in case.components() {
                for value in run.values(component) {
                    assert!(!value.is_subnormal(), "{}: {component}", case.scheme().name);
                    tiny += usize::from(value.abs() < 1e-200 && *value != 0.0);
                }
            }
            run.step();
        }
        // The front is there.
        assert!(tiny > 20, "{}: {tiny}", case.scheme().name);
    }
}

/// Values below the threshold are 0 from the beginning; all others are as given.
#[test]
fn start_values_are_flushed_below_the_threshold() {
    let case = pulse(
        "use std::wave::wave_2d",
        "wave_2d",
        "80 x 7",
        "u",
        "all: pec",
    );
    let run = case.start();
    let width = case.width("u");
    let row: Vec<f64> = run
        .values("u")
        .iter()
        .skip(3)
        .step_by(width)
        .copied()
        .collect();
    for (x, value) in row.iter().enumerate().skip(1).take(78) {
        let given = (-(x as f64 - 30.0).powi(2)).exp();
        let expected = if given < 2f64.powi(-960) { 0.0 } else { given };
        assert!(
            (value - expected).abs() <= 1e-15 * expected,
            "{x}: {value:e}, {given:e}"
        );
    }
    // exp(-25^2) = 4e-272 stays, exp(-26^2) = 3e-294 does not.
    assert!(row[5] > 0.0 && row[4] == 0.0);
}
