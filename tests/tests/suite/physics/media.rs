//! Interfaces between media. A pulse f(x - c1 t) meets an interface at right angles: with the impedances Z1, Z2 it
//! sends back `R f(2 a - x - c1 t)` and sends on `(1 + R) f(a + (x - a) c1 / c2 - c1 t)`, where a is the interface. The
//! means of the media that the library takes make that of second order; media that are off by one cell would make it of
//! first order, which the test also sees.

use torre_suite::physics::case::Case;
use torre_suite::physics::measure;

const INTERFACE: f64 = 0.5;
const TIME: f64 = 0.4;
const WIDTH: f64 = 0.04;

fn pulse(x: f64) -> f64 {
    (-((x - 0.25) / WIDTH).powi(2)).exp()
}

/// An interface of a scheme: unit media and unit speed on the left.
struct Interface {
    name: &'static str,
    /// `use`, scheme and the rest of the domain after the cells along x.
    scheme: &'static str,
    across: &'static str,
    boundary: &'static str,
    /// The media on the right side; the media on the left are `left`.
    media: &'static [(&'static str, f64, f64)],
    /// The component that is compared, and the other one that starts as a multiple of it.
    component: &'static str,
    partner: (&'static str, f64),
    /// Speed on the right, and R.
    speed: f64,
    reflection: f64,
    dt: f64,
}

impl Interface {
    /// The root mean square error at `n` cells, with the media moved by `shift` cells.
    fn error(&self, n: i64, shift: f64) -> f64 {
        let h = 1.0 / n as f64;
        let steps = (TIME / (self.dt * h)).round();
        let dt = TIME / steps;
        let f = format!("exp(-((x - t - 0.25) / {WIDTH:?})^2)");
        let edge = INTERFACE + shift * h;
        let (module, scheme) = self.scheme.split_once("::").expect("module::scheme");
        let mut text = format!(
            "use std::{module}::{scheme}
             problem test {{
               scheme {scheme} {{ h = {h:?}, dt = {dt:?}, order = 2 }}
               domain {n}{}
               boundary x: pec{}
               init {} = {f}
               init {} = ({:?}) * {f}
               steps 1
            ",
            self.across, self.boundary, self.component, self.partner.0, self.partner.1
        );
        for (name, left, right) in self.media {
            text += &format!("coef {name} = if x < {edge:?} then {left:?} else {right:?}\n");
        }
        let case = Case::new(&(text + "}"));
        let mut run = case.start();
        for _ in 0..steps as u64 {
            run.step();
        }
        let t = case.time(self.component, steps as u64);
        let places = case.places(self.component);
        let sum: f64 = places
            .iter()
            .zip(run.values(self.component))
            .map(|(p, value)| {
                let x = p[0];
                let exact = if x < INTERFACE {
                    pulse(x - t) + self.reflection * pulse(2.0 * INTERFACE - x - t)
                } else {
                    let back = INTERFACE + (x - INTERFACE) / self.speed - t;
                    (1.0 + self.reflection) * pulse(back)
                };
                (value - exact).powi(2)
            })
            .sum();
        (sum / places.len() as f64).sqrt()
    }

    fn check(&self) {
        let (n, m) = (100, 200);
        let (coarse, fine) = (self.error(n, 0.0), self.error(m, 0.0));
        let p = measure::order(coarse, fine, n, m);
        assert!(
            p > 1.8 && p < 2.3,
            "{}: order {p}, {coarse:e} to {fine:e}",
            self.name
        );
        let p = measure::order(self.error(n, 1.0), self.error(m, 1.0), n, m);
        assert!(
            p < 1.5,
            "{}: the wrong place is not seen, order {p}",
            self.name
        );
    }
}

/// Z = sqrt(mu / eps); R = (Z2 - Z1) / (Z2 + Z1) for E.
#[test]
fn light_is_reflected_by_the_ratio_of_impedances() {
    for (name, scheme, across, boundary, component, partner) in [
        ("1-D", "maxwell::maxwell_1d", "", "", "Ez", ("Hy", -1.0)),
        (
            "TM",
            "maxwell::maxwell_tm",
            " x 4",
            ", y: periodic",
            "Ez",
            ("H.y", -1.0),
        ),
        (
            "TE",
            "maxwell::maxwell_te",
            " x 4",
            ", y: periodic",
            "E.y",
            ("Hz", 1.0),
        ),
    ] {
        let (eps, mu) = (4.0f64, 1.96f64);
        let z = (mu / eps).sqrt();
        Interface {
            name,
            scheme,
            across,
            boundary,
            media: &[("eps", 1.0, 4.0), ("mu", 1.0, 1.96)],
            component,
            partner,
            speed: 1.0 / (eps * mu).sqrt(),
            reflection: (z - 1.0) / (z + 1.0),
            dt: 0.5,
        }
        .check();
    }
}

/// Z = rho c; R = (Z2 - Z1) / (Z2 + Z1) for the pressure.
#[test]
fn sound_is_reflected_by_the_ratio_of_impedances() {
    let (rho, kappa) = (2.5f64, 1.6f64);
    let z = (rho * kappa).sqrt();
    for (name, scheme, across, boundary, v) in [
        ("1-D", "acoustics::acoustics_1d", "", "", "v"),
        (
            "2-D",
            "acoustics::acoustics_2d",
            " x 4",
            ", y: periodic",
            "v.x",
        ),
    ] {
        Interface {
            name,
            scheme,
            across,
            boundary,
            media: &[("rho", 1.0, 2.5), ("kappa", 1.0, 1.6)],
            component: "p",
            partner: (v, 1.0),
            speed: (kappa / rho).sqrt(),
            reflection: (z - 1.0) / (z + 1.0),
            dt: 0.5,
        }
        .check();
    }
}

/// Z = rho c; R = (Z1 - Z2) / (Z1 + Z2) for the velocity; the stress of a wave to the right is -Z v. On the left vs = 1
/// or vp = 1.
#[test]
fn elastic_waves_are_reflected_by_the_ratio_of_impedances() {
    let z = (2.0f64 * 0.4).sqrt();
    let speed = (0.4f64 / 2.0).sqrt();
    let base = Interface {
        name: "S",
        scheme: "elastic::elastic_2d",
        across: " x 4",
        boundary: ", y: periodic",
        media: &[("rho", 1.0, 2.0), ("mu", 1.0, 0.4), ("lambda", 0.5, 0.3)],
        component: "v.y",
        partner: ("S.xy", -1.0),
        speed,
        reflection: (1.0 - z) / (1.0 + z),
        dt: 0.3,
    };
    base.check();
    Interface {
        name: "P",
        media: &[("rho", 1.0, 2.0), ("mu", 0.3, 0.1), ("lambda", 0.4, 0.2)],
        component: "v.x",
        partner: ("S.xx", -1.0),
        ..base
    }
    .check();
}
