//! The standard library's schemes as data: their media, and the plane waves that solve their difference equations.
//!
//! A plane wave of a linear scheme in a uniform medium is `F = F0 cos(k.r - w t)` for every component F, at its own
//! place and time, with real amplitudes F0: differences in space turn the phase factor exp(i (k.r - w t)) into i K
//! times it and differences in time into -i W, and the factors i cancel. Below, K is the vector of the symbols of
//! [`super::theory`], and W the symbol in time. With K = k and W = w the same formulas give the continuous plane wave.

use super::theory;

const AXES: [&str; 3] = ["x", "y", "z"];

/// Components with their amplitudes.
type Amplitudes = Vec<(&'static str, f64)>;

/// Where and how finely a model is computed.
pub struct Lattice {
    pub order: u32,
    /// Per axis of the scheme; the rest is not used.
    pub cells: [i64; 3],
    pub h: f64,
    /// `None`: the scheme's own.
    pub dt: Option<f64>,
}

/// A scheme of the standard library in a uniform medium, with one of its waves.
pub struct Model {
    pub module: &'static str,
    pub scheme: &'static str,
    /// Empty, or which wave.
    pub wave: &'static str,
    pub axes: usize,
    pub media: &'static [(&'static str, f64)],
    /// Speed of this wave.
    pub speed: f64,
    /// Speed of the fastest wave, which limits the step.
    pub fastest: f64,
    pub orders: &'static [u32],
    /// The scheme has the parameter `order`.
    pub has_order: bool,
    /// Second differences instead of staggered first ones.
    pub second: bool,
    /// From K and W the amplitude of every component; one that is not named is 0.
    pub amplitudes: fn([f64; 3], f64) -> Amplitudes,
}

fn length(k: [f64; 3]) -> f64 {
    k.iter().map(|k| k * k).sum::<f64>().sqrt()
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

/// A unit vector across K.
fn across(k: [f64; 3]) -> [f64; 3] {
    let v = cross(k, [0.3, 0.8, -0.5]);
    v.map(|c| c / length(v))
}

const EPS: f64 = 2.25;
const MU: f64 = 1.5;
const RHO: f64 = 1.7;
const KAPPA: f64 = 2.9;
const LAMBDA: f64 = 1.9;
const SHEAR: f64 = 1.2;

fn scalar(_: [f64; 3], _: f64) -> Amplitudes {
    vec![("u", 1.0)]
}

/// rho v_t = -grad p, p_t = -kappa div v: -i W rho v0 = -i K p0.
fn sound(k: [f64; 3], w: f64) -> Amplitudes {
    let v = k.map(|k| k / (RHO * w));
    vec![("p", 1.0), ("v.x", v[0]), ("v.y", v[1]), ("v.z", v[2])]
}

fn sound_1d(k: [f64; 3], w: f64) -> Amplitudes {
    vec![("p", 1.0), ("v", k[0] / (RHO * w))]
}

/// mu H_t = -curl E, eps E_t = curl H: mu W H0 = K x E0, and E0 across K.
fn light(k: [f64; 3], w: f64, mu: f64) -> Amplitudes {
    let e = across(k);
    let h = cross(k, e).map(|c| c / (mu * w));
    vec![
        ("E.x", e[0]),
        ("E.y", e[1]),
        ("E.z", e[2]),
        ("H.x", h[0]),
        ("H.y", h[1]),
        ("H.z", h[2]),
    ]
}

fn light_te(k: [f64; 3], w: f64) -> Amplitudes {
    let e = [-k[1], k[0], 0.0].map(|c| c / length(k));
    let h = cross(k, e).map(|c| c / (MU * w));
    vec![("E.x", e[0]), ("E.y", e[1]), ("Hz", h[2])]
}

fn light_tm(k: [f64; 3], w: f64) -> Amplitudes {
    let h = cross(k, [0.0, 0.0, 1.0]).map(|c| c / (MU * w));
    vec![("Ez", 1.0), ("H.x", h[0]), ("H.y", h[1])]
}

/// mu Hy_t = d Ez / dx.
fn light_1d(k: [f64; 3], w: f64) -> Amplitudes {
    vec![("Ez", 1.0), ("Hy", -k[0] / (MU * w))]
}

/// S_t = lambda div(v) 1 + mu (grad v + transposed): -i W S0 = i (lambda K.v0 1 + mu (K v0 + v0 K)). The velocity lies
/// along K (pressure waves) or across it (shear waves).
fn elastic(v: [f64; 3], k: [f64; 3], w: f64) -> Amplitudes {
    let div: f64 = (0..3).map(|a| k[a] * v[a]).sum();
    let s = |a: usize, b: usize| {
        let diagonal = if a == b { LAMBDA * div } else { 0.0 };
        -(diagonal + SHEAR * (k[a] * v[b] + k[b] * v[a])) / w
    };
    vec![
        ("v.x", v[0]),
        ("v.y", v[1]),
        ("v.z", v[2]),
        ("S.xx", s(0, 0)),
        ("S.yy", s(1, 1)),
        ("S.zz", s(2, 2)),
        ("S.yz", s(1, 2)),
        ("S.xz", s(0, 2)),
        ("S.xy", s(0, 1)),
    ]
}

fn pressure_wave(k: [f64; 3], w: f64) -> Amplitudes {
    elastic(k.map(|c| c / length(k)), k, w)
}

fn shear_wave(k: [f64; 3], w: f64) -> Amplitudes {
    elastic(across(k), k, w)
}

fn shear_wave_2d(k: [f64; 3], w: f64) -> Amplitudes {
    elastic([-k[1], k[0], 0.0].map(|c| c / length(k)), k, w)
}

/// All schemes of the library, elastic ones twice.
pub fn models() -> Vec<Model> {
    const ALL: &[u32] = &[2, 4, 6, 8];
    const SOUND: &[(&str, f64)] = &[("rho", RHO), ("kappa", KAPPA)];
    const LIGHT: &[(&str, f64)] = &[("eps", EPS), ("mu", MU)];
    const SOLID: &[(&str, f64)] = &[("rho", RHO), ("lambda", LAMBDA), ("mu", SHEAR)];
    let vp = ((LAMBDA + 2.0 * SHEAR) / RHO).sqrt();
    let vs = (SHEAR / RHO).sqrt();
    let wave = |scheme, axes| Model {
        module: "wave",
        scheme,
        wave: "",
        axes,
        media: &[("c", 1.3)],
        speed: 1.3,
        fastest: 1.3,
        orders: ALL,
        has_order: true,
        second: true,
        amplitudes: scalar,
    };
    let system = |module, scheme, axes, media, speed, amplitudes| Model {
        module,
        scheme,
        wave: "",
        axes,
        media,
        speed,
        fastest: speed,
        orders: ALL,
        has_order: true,
        second: false,
        amplitudes,
    };
    let vacuum = |scheme, orders| Model {
        has_order: scheme == "maxwell",
        orders,
        ..system("maxwell", scheme, 3, &[], 1.0, |k, w| light(k, w, 1.0))
    };
    let solid = |scheme, wave, axes, speed, amplitudes| Model {
        wave,
        fastest: vp,
        ..system("elastic", scheme, axes, SOLID, speed, amplitudes)
    };
    let sound_speed = (KAPPA / RHO).sqrt();
    let light_speed = 1.0 / (EPS * MU).sqrt();
    vec![
        wave("wave", 3),
        wave("wave_2d", 2),
        wave("wave_1d", 1),
        system("acoustics", "acoustics", 3, SOUND, sound_speed, sound),
        system("acoustics", "acoustics_2d", 2, SOUND, sound_speed, sound),
        system("acoustics", "acoustics_1d", 1, SOUND, sound_speed, sound_1d),
        vacuum("maxwell", ALL),
        vacuum("maxwell22", &[2]),
        vacuum("maxwell42", &[4]),
        vacuum("maxwell62", &[6]),
        system("maxwell", "maxwell_media", 3, LIGHT, light_speed, |k, w| {
            light(k, w, MU)
        }),
        system("maxwell", "maxwell_te", 2, LIGHT, light_speed, light_te),
        system("maxwell", "maxwell_tm", 2, LIGHT, light_speed, light_tm),
        system("maxwell", "maxwell_1d", 1, LIGHT, light_speed, light_1d),
        solid("elastic", "P", 3, vp, pressure_wave),
        solid("elastic", "S", 3, vs, shear_wave),
        solid("elastic_2d", "P", 2, vp, pressure_wave),
        solid("elastic_2d", "S", 2, vs, shear_wave_2d),
    ]
}

impl Model {
    /// K of the scheme's differences.
    pub fn symbol(&self, k: [f64; 3], h: f64, order: u32) -> [f64; 3] {
        if self.second {
            k.map(|k| theory::kappa2(k, h, order).sqrt())
        } else {
            k.map(|k| theory::kappa(k, h, order))
        }
    }

    /// W of a wave with the symbol K.
    pub fn rate(&self, symbol: [f64; 3]) -> f64 {
        self.speed * length(symbol)
    }

    /// The largest stable time step.
    pub fn longest_step(&self, h: f64, order: u32) -> f64 {
        let limit = if self.second {
            theory::second_limit(order, self.axes)
        } else {
            theory::staggered_limit(order, self.axes)
        };
        limit * h / self.fastest
    }

    /// Which components of the amplitudes the scheme has.
    fn has(&self, component: &str) -> bool {
        self.axes == 3 || !component.contains('z') || matches!(component, "Ez" | "Hz")
    }

    /// A problem named `test` that starts with values without symmetry, periodic on all sides.
    pub fn noise(&self, lattice: &Lattice) -> String {
        let place = [
            "12.9 * x",
            "12.9 * x + 7.8 * y * y",
            "12.9 * x + 7.8 * y * y + 3.7 * z * x",
        ];
        let mut text = self.problem(lattice);
        for (i, (component, _)) in (self.amplitudes)([0.1, 0.2, 0.3], 1.0).iter().enumerate() {
            if self.has(component) {
                let place = place[self.axes - 1];
                text += &format!("  init {component} = sin({place} + {i} + 40 * t)\n");
            }
        }
        text + "}\n"
    }

    /// A problem named `test` that starts with a plane wave, periodic on all sides.
    pub fn plane_wave(
        &self,
        lattice: &Lattice,
        k: [f64; 3],
        w: f64,
        amplitudes: &[(&str, f64)],
    ) -> String {
        let mut text = self.problem(lattice);
        let phase = (0..self.axes)
            .map(|a| format!("({:?}) * {}", k[a], AXES[a]))
            .collect::<Vec<_>>()
            .join(" + ");
        for (component, amplitude) in amplitudes {
            if self.has(component) {
                text +=
                    &format!("  init {component} = ({amplitude:?}) * cos({phase} - {w:?} * t)\n");
            }
        }
        text + "}\n"
    }

    /// The head of a problem, up to the initial values.
    fn problem(&self, lattice: &Lattice) -> String {
        let Lattice {
            order,
            cells,
            h,
            dt,
        } = *lattice;
        let list = |f: &dyn Fn(usize) -> String, by: &str| {
            (0..self.axes).map(f).collect::<Vec<_>>().join(by)
        };
        let mut text = format!(
            "use std::{}::{}\nproblem test {{\n  scheme {} {{ h = {h:?}",
            self.module, self.scheme, self.scheme
        );
        if let Some(dt) = dt {
            text += &format!(", dt = {dt:?}");
        }
        if self.has_order {
            text += &format!(", order = {order}");
        }
        text += &format!(
            " }}\n  domain {}\n  boundary {}\n  steps 1\n",
            list(&|a| cells[a].to_string(), " x "),
            list(&|a| format!("{}: periodic", AXES[a]), ", ")
        );
        for (name, value) in self.media {
            text += &format!("  coef {name} = {value:?}\n");
        }
        text
    }
}
