//! Discrete conservation laws of leapfrog schemes.
//!
//! Let `a E_t = C' H` and `b H_t = -C E` with positive diagonal a, b and C' the transpose of C in the sum over the
//! lattice. The steps `b (H+ - H-) = -dt C E` and `a (E+ - E) = dt C' H+` conserve
//!
//! `W = <E, a E> + <H-, b H+>`,
//!
//! because `<E+ + E, a (E+ - E)> = dt <C (E+ + E), H+>` and `<H+, b (H++ - H-)> = -dt <H+, C (E+ + E)>`. Mirrors keep
//! C' the transpose of C: the sum is half of that over the mirrored lattice, so a value in a mirror plane counts half
//! (where it is odd it is 0).

use torre_suite::physics::case::{Case, Run};
use torre_suite::physics::theory;

/// Values without any symmetry, at any place.
const NOISE: &str = "sin(12.9 * x + 7.8 * y * y + 3.7 * z + 0.2 * x * y)";
const NOISE_2D: &str = "sin(12.9 * x + 7.8 * y * y + 0.2 * x * y)";

/// `sum weight(component, cell) * left * right` over the components, values in mirror planes of even fields counted
/// half.
fn form(
    case: &Case,
    components: &[&str],
    left: &Snapshot,
    right: &Snapshot,
    weight: &dyn Fn(&str, [f64; 3]) -> f64,
) -> f64 {
    let mut sum = 0.0;
    for &c in components {
        let (l, r) = (left.of(c), right.of(c));
        let parts = case.plane_weights(c);
        for (i, place) in case.places(c).into_iter().enumerate() {
            sum += weight(c, place) * parts[i] * l[i] * r[i];
        }
    }
    sum
}

/// Copies of all components.
struct Snapshot(Vec<(String, Vec<f64>)>);

impl Snapshot {
    fn take(run: &Run) -> Self {
        Self(
            run.case()
                .components()
                .map(|c| (c.to_string(), run.values(c).to_vec()))
                .collect(),
        )
    }

    fn of(&self, component: &str) -> &[f64] {
        &self
            .0
            .iter()
            .find(|(c, _)| c == component)
            .expect("a component of the scheme")
            .1
    }
}

/// Mean of a medium over the cells around a place: cells half a cell away along the axes at which the place is on a
/// node.
fn around(place: [f64; 3], axes: usize, medium: &dyn Fn([f64; 3]) -> f64) -> f64 {
    let mut places = vec![place];
    for a in 0..axes {
        if place[a].fract() == 0.0 {
            places = places
                .into_iter()
                .flat_map(|p| {
                    [-0.5, 0.5].map(|d| {
                        let mut p = p;
                        p[a] += d;
                        p
                    })
                })
                .collect();
        }
    }
    places.iter().map(|&p| medium(p)).sum::<f64>() / places.len() as f64
}

/// The largest deviations over time from the first value, relative to that.
struct Drift {
    /// Of the invariant W.
    invariant: f64,
    /// Of the sum of squares at one time.
    naive: f64,
}

fn drift(
    case: &Case,
    whole: &[&str],
    half: &[&str],
    weight: &dyn Fn(&str, [f64; 3]) -> f64,
    extra: &dyn Fn(&Snapshot) -> f64,
    steps: u64,
) -> Drift {
    let mut run = case.start();
    let mut old = Snapshot::take(&run);
    let (mut first, mut first_naive) = (None, None);
    let mut drift = Drift {
        invariant: 0.0,
        naive: 0.0,
    };
    for _ in 0..steps {
        run.step();
        let new = Snapshot::take(&run);
        // Between two steps, the older snapshot has E at n and H at n - 1/2, the newer H at n + 1/2.
        let e = form(case, whole, &old, &old, weight) + extra(&old);
        let w = e + form(case, half, &old, &new, weight);
        let naive = e + form(case, half, &old, &old, weight);
        let w0 = *first.get_or_insert(w);
        let naive0 = *first_naive.get_or_insert(naive);
        drift.invariant = drift.invariant.max((w / w0 - 1.0).abs());
        drift.naive = drift.naive.max((naive / naive0 - 1.0).abs());
        old = new;
    }
    drift
}

fn assert_conserved(name: &str, drift: Drift) {
    let Drift { invariant, naive } = drift;
    assert!(invariant < 1e-12, "{name}: energy drifts by {invariant:e}");
    // The plain sum of squares is no invariant; so the test sees more than that nothing happens.
    assert!(
        naive > 1e-3,
        "{name}: the naive energy is constant to {naive:e}"
    );
}

/// Maxwell's equations in a box of electric and magnetic mirrors, with media that vary from cell to cell.
#[test]
fn of_the_energy_of_light() {
    let eps_text = "2 + sin(5 * x) * cos(4 * y) * cos(3 * pi * z / 9)";
    let mu_text = "1.5 + 0.5 * cos(7 * x + 2 * y) * cos(2 * pi * z / 9)";
    let pi = std::f64::consts::PI;
    let eps =
        |p: [f64; 3]| 2.0 + (5.0 * p[0]).sin() * (4.0 * p[1]).cos() * (3.0 * pi * p[2] / 9.0).cos();
    let mu =
        |p: [f64; 3]| 1.5 + 0.5 * (7.0 * p[0] + 2.0 * p[1]).cos() * (2.0 * pi * p[2] / 9.0).cos();
    for order in [2, 4, 6] {
        let mut text = format!(
            "use std::maxwell::maxwell_media
             problem test {{
               scheme maxwell_media {{ order = {order} }}
               domain 7 x 8 x 9
               boundary x: pec, y: pec, z: pec | pmc
               coef eps = {eps_text}
               coef mu = {mu_text}
               steps 1
            "
        );
        for (i, c) in ["E.x", "E.y", "E.z", "H.x", "H.y", "H.z"]
            .iter()
            .enumerate()
        {
            text += &format!("init {c} = {NOISE} * cos({i} + x)\n");
        }
        let case = Case::new(&(text + "}"));
        // The mean of eps on an edge; the harmonic mean of mu on a face.
        let weight = |c: &str, p: [f64; 3]| {
            if c.starts_with('E') {
                around(p, 3, &eps)
            } else {
                1.0 / around(p, 3, &|p| 1.0 / mu(p))
            }
        };
        let drift = drift(
            &case,
            &["E.x", "E.y", "E.z"],
            &["H.x", "H.y", "H.z"],
            &weight,
            &|_| 0.0,
            60,
        );
        assert_conserved(&format!("maxwell_media order {order}"), drift);
    }
}

#[test]
fn of_the_energy_of_light_in_two_dimensions() {
    let media =
        "coef eps = 2 + sin(5 * x) * cos(4 * y)\ncoef mu = 1.5 + 0.5 * cos(7 * x + 2 * y)\n";
    let eps = |p: [f64; 3]| 2.0 + (5.0 * p[0]).sin() * (4.0 * p[1]).cos();
    let mu = |p: [f64; 3]| 1.5 + 0.5 * (7.0 * p[0] + 2.0 * p[1]).cos();
    for (scheme, whole, half) in [
        ("maxwell_te", &["E.x", "E.y"][..], &["Hz"][..]),
        ("maxwell_tm", &["Ez"][..], &["H.x", "H.y"][..]),
    ] {
        let mut text = format!(
            "use std::maxwell::{scheme}
             problem test {{
               scheme {scheme} {{ order = 4 }}
               domain 11 x 13
               boundary x: pec, y: pec
               {media}
               steps 1
            "
        );
        for (i, c) in whole.iter().chain(half).enumerate() {
            text += &format!("init {c} = {NOISE_2D} * cos({i} + x)\n");
        }
        let case = Case::new(&(text + "}"));
        let weight = |c: &str, p: [f64; 3]| {
            if c.starts_with('E') {
                around(p, 2, &eps)
            } else {
                1.0 / around(p, 2, &|p| 1.0 / mu(p))
            }
        };
        assert_conserved(scheme, drift(&case, whole, half, &weight, &|_| 0.0, 100));
    }
}

/// Sound: `<p, p / kappa> + <v-, rho v+>`, with the arithmetic mean of rho on a face.
#[test]
fn of_the_energy_of_sound() {
    let rho = |p: [f64; 3]| 2.0 + (5.0 * p[0]).sin() * (4.0 * p[1]).cos();
    let kappa = |p: [f64; 3]| 1.0 + 0.4 * (7.0 * p[0] + 2.0 * p[1]).cos();
    let text = format!(
        "use std::acoustics::acoustics_2d
         problem test {{
           scheme acoustics_2d {{ order = 4 }}
           domain 11 x 13
           boundary x: pec, y: pec | pec
           coef rho = 2 + sin(5 * x) * cos(4 * y)
           coef kappa = 1 + 0.4 * cos(7 * x + 2 * y)
           init p = {NOISE_2D}
           init v.x = {NOISE_2D} * cos(x + 1)
           init v.y = {NOISE_2D} * cos(x + 2)
           steps 1
         }}"
    );
    let case = Case::new(&text);
    let weight = |c: &str, p: [f64; 3]| {
        if c == "p" {
            1.0 / kappa(p)
        } else {
            around(p, 2, &rho)
        }
    };
    let drift = drift(&case, &["p"], &["v.x", "v.y"], &weight, &|_| 0.0, 100);
    assert_conserved("acoustics_2d", drift);
}

/// Elastic waves: the kinetic part `<v-, rho v+>`, and the strain energy of the stress, `S : D` with
/// `S = lambda tr(D) 1 + 2 mu D` solved for D: for plane strain with m = lambda + 2 mu,
/// `(m (Sxx^2 + Syy^2) - 2 lambda Sxx Syy) / (m^2 - lambda^2) + Sxy^2 / mu`, with the harmonic mean of mu at the place
/// of Sxy.
#[test]
fn of_the_energy_of_elastic_waves() {
    let rho = |p: [f64; 3]| 2.0 + (5.0 * p[0]).sin() * (4.0 * p[1]).cos();
    let lambda = |p: [f64; 3]| 1.0 + 0.5 * (3.0 * p[0] + p[1]).sin();
    let mu = |p: [f64; 3]| 1.0 + 0.4 * (7.0 * p[0] + 2.0 * p[1]).cos();
    let text = format!(
        "use std::elastic::elastic_2d
         problem test {{
           scheme elastic_2d
           domain 11 x 13
           boundary x: pec, y: pec
           coef rho = 2 + sin(5 * x) * cos(4 * y)
           coef lambda = 1 + 0.5 * sin(3 * x + y)
           coef mu = 1 + 0.4 * cos(7 * x + 2 * y)
           init S.xx = {NOISE_2D}
           init S.yy = {NOISE_2D} * cos(x + 1)
           init S.xy = {NOISE_2D} * cos(x + 2)
           init v.x = {NOISE_2D} * cos(x + 3)
           init v.y = {NOISE_2D} * cos(x + 4)
           steps 1
         }}"
    );
    let case = Case::new(&text);
    let weight = |c: &str, p: [f64; 3]| match c {
        "S.xy" => around(p, 2, &|p| 1.0 / mu(p)),
        _ => around(p, 2, &rho),
    };
    let normal = |s: &Snapshot| {
        let places = case.places("S.xx");
        let (xx, yy) = (s.of("S.xx"), s.of("S.yy"));
        places
            .iter()
            .enumerate()
            .map(|(i, &p)| {
                let (l, m) = (lambda(p), lambda(p) + 2.0 * mu(p));
                (m * (xx[i] * xx[i] + yy[i] * yy[i]) - 2.0 * l * xx[i] * yy[i]) / (m * m - l * l)
            })
            .sum()
    };
    let drift = drift(&case, &["S.xy"], &["v.x", "v.y"], &weight, &normal, 100);
    assert_conserved("elastic_2d", drift);
}

/// A conductor takes energy away and never gives any back.
#[test]
fn losses_only_lose() {
    let text = format!(
        "use std::maxwell::maxwell_tm
         problem test {{
           scheme maxwell_tm
           domain 11 x 13
           boundary x: pec, y: pec
           coef sigma = if x < 5 then 0.3 else 0.0
           init Ez = {NOISE_2D}
           steps 1
         }}"
    );
    let case = Case::new(&text);
    let mut run = case.start();
    let mut old = Snapshot::take(&run);
    let mut last = f64::INFINITY;
    let one = |_: &str, _: [f64; 3]| 1.0;
    for _ in 0..200 {
        run.step();
        let new = Snapshot::take(&run);
        let w =
            form(&case, &["Ez"], &old, &old, &one) + form(&case, &["H.x", "H.y"], &old, &new, &one);
        assert!(w < last * (1.0 + 1e-14), "{w} after {last}");
        last = w;
        old = new;
    }
    assert!(last > 0.0);
}

/// The divergence of H on cells with the differences of the scheme's order. The discrete divergence of a discrete curl
/// is a sum of pairs of equal terms with opposite signs, so it stays as at the start, up to the rounding of
/// the steps. With differences of another order that does not hold.
#[test]
fn of_the_divergence_of_h() {
    let n = 12;
    let mut text = format!(
        "use std::maxwell::maxwell42
         problem test {{
           scheme maxwell42
           domain {n} x {n} x {n}
           boundary x: periodic, y: periodic, z: periodic
           steps 1
        "
    );
    for (i, c) in ["E.x", "E.y", "E.z", "H.x", "H.y", "H.z"]
        .iter()
        .enumerate()
    {
        text += &format!("init {c} = {NOISE} * cos({i} + x)\n");
    }
    let case = Case::new(&(text + "}"));
    let mut run = case.start();
    let divergence = |run: &Run, order: u32| -> Vec<f64> {
        let fields = ["H.x", "H.y", "H.z"].map(|c| run.values(c));
        let at = |i: i64, j: i64, k: i64| {
            let [i, j, k] = [i, j, k].map(|i| i.rem_euclid(n));
            ((i * n + j) * n + k) as usize
        };
        let mut out = Vec::new();
        for i in 0..n {
            for j in 0..n {
                for k in 0..n {
                    let mut sum = 0.0;
                    for (m, c) in (1..).zip(theory::staggered(order)) {
                        // From faces at i to cells at i + 1/2: H of face i + m less that of face i + 1 - m.
                        sum += c * (fields[0][at(i + m, j, k)] - fields[0][at(i + 1 - m, j, k)]);
                        sum += c * (fields[1][at(i, j + m, k)] - fields[1][at(i, j + 1 - m, k)]);
                        sum += c * (fields[2][at(i, j, k + m)] - fields[2][at(i, j, k + 1 - m)]);
                    }
                    out.push(sum);
                }
            }
        }
        out
    };
    let first = [2, 4].map(|order| divergence(&run, order));
    let mut change = [0f64; 2];
    for _ in 0..60 {
        run.step();
        for (c, (order, first)) in change.iter_mut().zip([2, 4].into_iter().zip(&first)) {
            for (now, then) in divergence(&run, order).iter().zip(first) {
                *c = c.max((now - then).abs());
            }
        }
    }
    assert!(
        change[1] < 1e-13 * 60.0,
        "fourth order changes by {:e}",
        change[1]
    );
    assert!(
        change[0] > 1e-3,
        "second order changes by only {:e}",
        change[0]
    );
}
