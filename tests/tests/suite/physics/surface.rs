//! Free surfaces of elastic bodies: Lamb's problem, a line force on a half-space.
//!
//! H. Lamb, Phil. Trans. R. Soc. A 203 (1904) 1-42. With a normal traction -F at y = 0, the body below, wave number k
//! and frequency w, the normal displacement of the surface is -F a (w/beta)^2 / (mu R) with a^2 = k^2 - (w/alpha)^2,
//! b^2 = k^2 - (w/beta)^2 and Rayleigh's function R = (2 k^2 - (w/beta)^2)^2 - 4 k^2 a b. It is summed over wave
//! numbers and complex frequencies: M. Bouchon, Bull. Seismol. Soc. Am. 71 (1981) 959-971.

use num_complex::Complex64;
use std::f64::consts::{PI, TAU};
use torre_suite::physics::case::Case;

/// S waves per length, the width of the force and its delay.
struct Force {
    wave: f64,
    width: f64,
    delay: f64,
}

impl Force {
    /// A Ricker pulse.
    fn at(&self, t: f64) -> f64 {
        let u = (PI / self.wave * (t - self.delay)).powi(2);
        (1.0 - 2.0 * u) * (-u).exp()
    }

    /// The normal velocity of the surface at a distance, for P waves of speed sqrt(3), S waves and a density of 1.
    fn velocity(&self, distance: f64, times: &[f64]) -> Vec<f64> {
        // Repeats of the force come `period` apart, and are damped away.
        let period = 12.0 * self.wave;
        let damping = 2.0 * TAU / period;
        let highest = 3.0 * TAU / self.wave;
        let step = TAU / period;
        let mut sum = vec![0.0; times.len()];
        for n in 0..(highest / step) as usize {
            let w = Complex64::new((n as f64 + 0.5) * step, damping);
            let i = Complex64::i();
            let short = 0.1;
            let force: Complex64 = (0..(2.0 * self.delay / short) as usize)
                .map(|m| m as f64 * short)
                .map(|t| self.at(t) * (i * w * t).exp() * short)
                .sum();
            let response = -i * w * self.displacement(distance, w) * force;
            for (sum, t) in sum.iter_mut().zip(times) {
                *sum += (response * (-i * w * t).exp()).re * step / PI;
            }
        }
        sum
    }

    /// The normal displacement of the surface per force, at a frequency.
    fn displacement(&self, distance: f64, w: Complex64) -> Complex64 {
        let highest = 8.0 / self.width;
        let step = 0.2 / (12.0 * self.wave);
        let of = |n: usize| {
            let k = (n as f64 + 0.5) * step;
            let [p, s] = [w * w / 3.0, w * w];
            // The square root with a positive real part.
            let (a, b) = ((k * k - p).sqrt(), (k * k - s).sqrt());
            let rayleigh = (2.0 * k * k - s).powi(2) - 4.0 * k * k * a * b;
            let spread = (-(k * self.width).powi(2) / 4.0).exp();
            -a * s / rayleigh * spread * (k * distance).cos() * step / PI
        };
        (0..(highest / step) as usize).map(of).sum()
    }
}

#[test]
fn a_force_on_a_free_surface_makes_the_waves_of_lamb() {
    let force = Force {
        wave: 50.0,
        width: 8.0,
        delay: 60.0,
    };
    let case = Case::new(&format!(
        "use std::elastic::elastic_2d
         use std::sources::ricker
         problem lamb {{
           scheme elastic_2d {{ dt = 0.3 }}
           domain 134 x 62
           boundary x: cpml(10), y: free | cpml(10)
           // Half a cell takes the force.
           source v.y in x = 20..84, y = 0 += 2*dt * exp(-((x-52)/8)^2) / (8 * sqrt({PI})) * ricker(t - dt/2, f0 = \
           1/50, t0 = 60)
           probe v.y at (102, 0)
           steps 1
         }}"
    ));
    let mut run = case.start();
    let (mut found, mut times) = (Vec::new(), Vec::new());
    for step in 1..=530 {
        run.step();
        // Values lie half a cell to the right of the place that their index says.
        found.push(run.values("v.y")[102 * case.width("v.y")]);
        times.push(case.time("v.y", step));
    }
    let exact = force.velocity(50.5, &times);
    let largest = exact.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let differences = found.iter().zip(&exact).map(|(a, b)| (a - b).abs());
    let error = differences.fold(0.0, f64::max) / largest;
    assert!(error < 0.02, "{error}");
}
