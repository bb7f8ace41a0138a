//! Absorbing layers: their reflections, the places of their states, and static fields, which stay.

use torre_suite::physics::case::Case;

/// The records of probes, step by step; places are `by` farther along both axes.
fn series(text: &str, steps: u64, probes: &[(&str, [usize; 2])], by: usize) -> Vec<Vec<f64>> {
    let case = Case::new(text);
    let mut run = case.start();
    let mut series = vec![Vec::new(); probes.len()];
    for _ in 0..steps {
        run.step();
        for ((name, [x, y]), values) in probes.iter().zip(&mut series) {
            values.push(run.values(name)[(x + by) * case.width(name) + y + by]);
        }
    }
    series
}

/// The largest difference of records of probes to records without reflections, over the largest value there,
/// in dB.
fn reflection(near: &[Vec<f64>], far: &[Vec<f64>]) -> f64 {
    let worst = near.iter().zip(far).map(|(a, b)| {
        let peak = b.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let largest = a
            .iter()
            .zip(b)
            .fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
        assert!(peak > 1e-6, "nothing arrives");
        20.0 * (largest / peak).log10()
    });
    worst.fold(f64::NEG_INFINITY, f64::max)
}

/// A pulse of waves of 20 cells near a side and a corner.
fn text(scheme: &str, target: &str, cells: usize, source: usize, boundary: &str) -> String {
    format!(
        "{scheme}
problem p {{
  domain {cells} x {cells}
  boundary all: {boundary}
  source {target} at ({source}, {}) += (1 - 2*(0.157*(t - 32))^2) * exp(-(0.157*(t - 32))^2)
  steps 1
}}",
        source + 8
    )
    .replace(
        "problem p {",
        &format!("problem p {{\n  scheme {}", name_of(scheme)),
    )
}

fn name_of(scheme: &str) -> &str {
    let last = scheme.rsplit("::").next().unwrap_or_default();
    last.trim()
}

#[test]
fn layers_of_ten_cells_let_little_come_back() {
    let cases = [
        ("use std::maxwell::maxwell_tm", "Ez", "cpml(10)", -60.0),
        ("use std::acoustics::acoustics_2d", "p", "cpml(10)", -60.0),
    ];
    for (scheme, target, layer, most) in cases {
        let probes = [(target, [30, 31]), (target, [12, 30]), (target, [31, 12])];
        // Waves go from the source to the sides of the large domain and back in more time than this, and through the
        // layers to their walls and back in less.
        let steps = 240;
        let far = text(scheme, target, 164, 73, "pec");
        let far = series(&far, steps, &probes, 60);
        let of = |boundary: &str| {
            let near = text(scheme, target, 44, 13, boundary);
            reflection(&series(&near, steps, &probes, 0), &far)
        };
        let found = of(layer);
        println!("{scheme}: {found:.1} dB");
        assert!(found < most, "{scheme}: {found}");
        // Nothing else keeps the waves from coming back, and fewer cells take less.
        let (bare, thin) = (of("pec"), of("cpml(3)"));
        assert!(bare > -10.0, "{scheme}: {bare}");
        assert!(thin > found + 10.0, "{scheme}: {thin}");
    }
}

/// A wall on one side and a layer on the other, for Maxwell's equations of sixth order.
#[test]
fn thick_layers_opposite_walls_let_nothing_back() {
    let probes = [("Ez", [22, 22]), ("Ez", [3, 22]), ("Ez", [22, 3])];
    let of = |cells: usize, boundary: &str| {
        let text = text("use std::maxwell::maxwell_tm", "Ez", cells, 4, boundary);
        let scheme = "scheme maxwell_tm { order = 6, dt = 0.45 }";
        let text = text.replace("scheme maxwell_tm", scheme);
        series(&text, 300, &probes, 0)
    };
    // The way from the source to the far sides and back takes longer than the steps; that through the layers to their
    // walls and back takes less.
    let far = of(84, "pec");
    for (cells, most) in [(10, -67.0), (20, -100.0)] {
        let near = of(24 + cells, &format!("pec | cpml({cells})"));
        let found = reflection(&near, &far);
        println!("{cells} cells: {found:.1} dB");
        assert!(found < most, "{cells} cells: {found} dB");
    }
}

const BOX: &str = "use std::maxwell::maxwell42
problem p {
  scheme maxwell42
  domain 20 x 24 x 28
  boundary x: cpml(5), y: pec | cpml(4), z: cpml(6)
  source E.z at (10, 12, 14) += exp(-((t - 8)/3)^2)
  steps 10
}";

/// Each difference of the curls that crosses a layer keeps one number in each of its cells.
#[test]
fn states_are_kept_in_their_layers_only() {
    let case = Case::new(BOX);
    let scheme = case.scheme();
    assert_eq!(scheme.states.len(), 12);
    let layout = torre_compiler::layout::Layout::new(scheme).expect("a small domain");
    // Along x a layer of 5 cells at both ends, with the plane at the upper one; along y 4 cells above; along z 6 cells
    // at both.
    let cells = [[5 + 6, 25, 29], [21, 5, 29], [21, 25, 6 + 7]];
    let mut stored = 0;
    for (zone, [x, y, z]) in scheme.zones.iter().zip(cells) {
        assert_eq!(zone.volume(), x * y * z, "{}", zone.name);
        // Four differences cross each layer; rows are rounded to lines of 8 values, in both boxes along z.
        stored += 4 * x * y * (z + 14);
    }
    let elements = layout.state_elements() as u64;
    assert!(elements <= stored, "{elements} of {stored}");
    let whole = 12 * 20 * 24 * 28;
    assert!(elements < whole, "{elements} of {whole}");
}

/// The layer of the library is no more than a user can write in a file.
#[test]
fn a_layer_of_ones_own_is_as_good() {
    let library = include_str!("../../../../stdlib/layers.torre").replace("cpml", "own");
    let own = format!("{library}\n{}", BOX.replace("cpml", "own"));
    let by_hand = BOX
        .replace("use std::maxwell::maxwell42", "use std::maxwell::maxwell")
        .replace(
            "scheme maxwell42",
            "scheme maxwell { order = 4, dt = 0.45 }",
        );
    let values = |text: &str| {
        let case = Case::new(text);
        let mut run = case.start();
        (0..40).for_each(|_| run.step());
        run.values("E.y").to_vec()
    };
    let expected = values(BOX);
    assert!(expected.iter().any(|v| v.abs() > 1e-9));
    assert_eq!(values(&own), expected);
    assert_eq!(values(&by_hand), expected);
}

/// Charge that stays behind leaves a static field, which reaches into the layers. With `TORRE_TEST_SOAK` for 100,000
/// steps.
#[test]
fn static_fields_do_not_grow() {
    let steps = match std::env::var("TORRE_TEST_SOAK").is_ok() {
        true => 50_000,
        false => 1_500,
    };
    let text = "use std::maxwell::maxwell_te
problem p {
  scheme maxwell_te
  domain 30 x 30
  boundary all: cpml(8)
  source E.x at (15, 15) += exp(-((t - 10)/3)^2)
  steps 1
}";
    let case = Case::new(text);
    let mut run = case.start();
    let mut largest = || {
        for _ in 0..steps {
            run.step();
        }
        let of = |m: f64, v: &f64| m.max(v.abs());
        run.values("E.x").iter().fold(0.0, of)
    };
    let (early, late) = (largest(), largest());
    assert!(early > 1e-3, "{early}");
    assert!(late <= early * 1.001, "{early} {late}");
}

/// The example with a layer that is not the library's, which the book explains.
#[test]
fn the_layer_of_the_book_absorbs() {
    let example = include_str!("../../../../examples/18-own-layer.torre");
    let chapter = include_str!("../../../../docs/src/layers.md");
    assert!(chapter.contains(example), "the chapter has another program");
    let layer = example.find("layer fading").expect("a layer");
    let layer = &example[layer..example.find("problem").expect("a problem")];
    let probes = [("Ez", [22, 22]), ("Ez", [3, 22]), ("Ez", [22, 3])];
    let of = |cells: usize, boundary: &str| {
        let text = text("use std::maxwell::maxwell_tm", "Ez", cells, 4, boundary);
        series(&format!("{layer}\n{text}"), 260, &probes, 0)
    };
    // Waves come back from behind the layers within the steps, and from the far sides only later.
    let far = of(80, "pec");
    for (cells, most) in [(8, -63.0), (16, -69.0)] {
        let found = reflection(&of(24 + cells, &format!("pec | fading({cells})")), &far);
        println!("{cells} cells: {found:.1} dB");
        assert!(found < most, "{cells}: {found} dB");
    }
}

/// A layer is made for the fastest waves of the scheme, which users need not give.
#[test]
fn layers_know_how_fast_waves_are() {
    let text = |layer: &str| {
        format!(
            "use std::elastic::elastic_2d
problem p {{
  scheme elastic_2d
  domain 30 x 30
  boundary all: {layer}
  source v.x at (15, 15) += exp(-((t - 10)/3)^2)
  steps 1
}}"
        )
    };
    let values = |layer: &str| {
        let case = Case::new(&text(layer));
        let mut run = case.start();
        (0..80).for_each(|_| run.step());
        run.values("v.x").to_vec()
    };
    let found = values("cpml(8)");
    assert!(found.iter().any(|v| v.abs() > 1e-9));
    // sqrt((lambda + 2 mu) / rho) of the default media.
    assert_eq!(found, values("cpml(8, c = 1.7321)"));
    assert_ne!(found, values("cpml(8, c = 1)"));
}

/// A definition with states that a scheme calls by hand gives the same as the layer of the library.
#[test]
fn definitions_with_states_are_layers_too() {
    let own = "def phi(w) = if w == 0 then 1 else (1 - exp(-w)) / w
def ds(f, a, dt, order = 2) {
  state psi in layer(a)
  let u = depth(a)^2
  let kappa = 1 + 2 * u
  let w = (3 * u / kappa + 0.05 * (1 - depth(a))) * dt
  let g = d(f, a, order)
  psi@next = exp(-w) * psi + -3 * u * dt / kappa^2 * phi(w) * g
  1/kappa*g + psi@next
}
scheme sound {
  axes x, y
  param dt = 0.5
  field v : vector on faces at 1/2
  field p : scalar on cells
  step {
    v -= dt * [D(p, x), D(p, y)]
    p -= dt * (D(v.x, x) + D(v.y, y))
  }
}
problem pulse {
  scheme sound
  domain 26 x 24
  boundary x: cpml(7, c = 1) | cpml(4, c = 1), y: pec | cpml(5, c = 1)
  source p at (12, 11) += exp(-((t - 8)/3)^2)
  steps 1
}";
    let values = |by_hand: bool, shift: &str| {
        let text = match by_hand {
            false => own.replace("D(", "d("),
            true => own
                .replace("D(", "ds(")
                .replace(", x)", ", x, dt)")
                .replace(", y)", ", y, dt)"),
        };
        let case = Case::new(&text.replace("0.05", shift));
        let mut run = case.start();
        (0..60).for_each(|_| run.step());
        run.values("p").to_vec()
    };
    let expected = values(false, "0.05");
    assert!(expected.iter().any(|v| v.abs() > 1e-6));
    let found = values(true, "0.05");
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-14;
    assert!(found.iter().zip(&expected).all(close));
    // Another layer is another result.
    let other = values(true, "0.06");
    assert!(!other.iter().zip(&expected).all(close));
}

/// Outside of layers a state is 0, and so is its next value; the same value elsewhere in the definition is not.
#[test]
fn values_that_a_state_takes_over_stay_outside() {
    let values = |value: &str| {
        let case = Case::new(&format!(
            "def delayed(f, a) {{
  state old in layer(a)
  old@next = d(f, a)
  {value}
}}
scheme string {{
  axes x
  field u : scalar on nodes
  field v : scalar on cells at 1/2
  step {{
    v += 0.5 * delayed(u, x)
    u += 0.5 * d(v, x)
  }}
}}
problem p {{
  scheme string
  domain 40
  boundary x: cpml(5)
  init u = exp(-((x - 20)/3)^2)
  steps 1
}}"
        ));
        let mut run = case.start();
        (0..12).for_each(|_| run.step());
        run.values("u").to_vec()
    };
    let plain = values("d(f, a) + 0 * old");
    let more = values("d(f, a) + 0.5 * old@next");
    // The pulse moves, and in twelve steps nothing comes from the layers to the middle.
    assert!(plain[20] < 0.5);
    assert_eq!(plain[19..21], more[19..21]);
    assert_ne!(plain, more);
}
