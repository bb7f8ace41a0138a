//! Towers of random schemes, with random problems and zones.

use super::*;

#[test]
fn random_problems_by_towers_give_the_bits_of_the_reference() {
    random_problems_by_towers(seeds().step_by(2));
}

#[test]
fn more_random_problems_by_towers_give_the_bits_of_the_reference() {
    // In the last ones a zone has a box over the whole grid behind a small one, and rows of components that are odd and
    // even about an end take turns in a shared row.
    let seeds = (1..5 * seeds().end / 3).step_by(2);
    random_problems_by_towers(seeds.chain([199, 1263]));
}

/// Twice a slope with which towers come back to the lattice soon.
fn doubled_slope(scheme: &Scheme) -> i64 {
    let frame = Frame::new(scheme, &cones(scheme)).opened();
    let slopes = [[1, 1, 0], [1, -1, 0]].map(|form| frame.slope(PerAxis(form)));
    let doubled = slopes.map(|slope| (slope * Rational::whole(2)).ceil());
    doubled[0].max(doubled[1]).max(1)
}

fn random_problems_by_towers(seeds: impl Iterator<Item = u64>) {
    let Some(library) = library() else { return };
    let limits = Limits {
        length: 20,
        width: 12,
        reach: 2,
        ..LIMITS
    };
    let device = Interpreted::new();
    let (mut tried, mut in_blocks, mut rings, mut amended) = (0, 0, 0, 0);
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits);
        if scheme.grid.dimensions() < 3 {
            continue;
        }
        // Some are optimised, as users' are.
        let effort = match seed % 9 {
            0 => Effort::Quick,
            _ => Effort::Least,
        };
        effort.choose();
        let [width, height] = [rng.within(1, 6), rng.within(1, 4)];
        // Rings that are long enough to go around.
        let slope = doubled_slope(&scheme);
        let steps = 2 * scheme.stages.len() as i64 * height;
        for axis in [Axis::OUTER, Axis::MIDDLE] {
            let least = match (scheme.grid.is_periodic(axis), axis) {
                (true, Axis::OUTER) => slope * steps + 2 * width + 12,
                (true, _) => 4 * width,
                _ => 0,
            };
            let by = (least - scheme.grid.cells[axis]).max(0);
            lengthen(&mut scheme, axis, by + rng.within(0, 6));
        }
        if seed % 4 > 1 {
            add_random_zones(&mut Rng::new(seed), &limits, &mut scheme);
        }
        add_poles(&mut scheme);
        let mut problem = random_problem(&mut rng, &scheme);
        problem.steps = rng.within(3, 9) as u64;
        for output in &mut problem.outputs {
            output.every = rng.within(1, 5) as u64 + 2;
        }
        if let Some(source) = problem.sources.first().cloned() {
            problem.sources.push(source);
        }
        if rng.once_in(2) {
            let count = rng.within(1, 3) as usize;
            problem
                .sources
                .extend(volume_sources(&mut rng, &scheme, count));
        }
        let slope = slope as f64 / 2.0;
        let schedule =
            &format!("(outer, middle): diamond(W = {width}) slope {slope} height {height}");
        let Some((plan, model)) = planned(&device, &scheme, &problem, schedule) else {
            continue;
        };
        let towers = &compiled(library, &scheme, &plan, &model);
        tried += 1;
        let by_towers = starts(library, &device, seed, &scheme, &problem, Some(towers));
        let each = starts_per_step(library, &device, seed, &scheme, &problem);
        in_blocks += u64::from(by_towers < each * problem.steps);
        let ring = |axis: &Axis| scheme.grid.is_periodic(*axis);
        rings += u64::from([Axis::OUTER, Axis::MIDDLE].iter().any(ring));
        amended += u64::from(runs_amendments(towers));
    }
    assert!(8 * amended > tried, "{amended} of {tried}");
    assert!(tried > 0 && 2 * in_blocks > tried, "{in_blocks} of {tried}");
    assert!(5 * rings > tried, "{rings} of {tried}");
}

#[test]
fn programs_of_random_schemes_with_zones_keep_the_rules() {
    let limits = Limits {
        length: 20,
        width: 12,
        reach: 2,
        ..LIMITS
    };
    let device = Interpreted::new();
    let mut tried = 0;
    for seed in 0..700 {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits);
        if scheme.grid.dimensions() < 3 {
            continue;
        }
        let width = rng.within(1, 6);
        add_random_zones(&mut Rng::new(seed), &limits, &mut scheme);
        let slope = doubled_slope(&scheme) as f64 / 2.0;
        let problem = random_problem(&mut rng, &scheme);
        let schedule = &format!("(outer, middle): diamond(W = {width}) slope {slope} height 4");
        let Some((plan, _)) = planned(&device, &scheme, &problem, schedule) else {
            continue;
        };
        tried += 1;
        let program = &plan.towers().expect("towers").program;
        towers::verify(&scheme, &plan.kernels.layout, program)
            .unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
    }
    assert!(tried > 40, "{tried}");
}

/// A statement that acts nowhere has a stage of its own.
#[test]
fn stages_without_rows_have_no_towers() {
    let device = Interpreted::new();
    let text = "
scheme idle {
  axes x, y, z
  region far = z > 1000
  field u : scalar on nodes
  field w : scalar on nodes
  step {
    where far { u = 0.5 * w }
    w += 0.1 * (u[1, 0, 2] - w)
  }
}
problem p {
  scheme idle
  domain 12 x 12 x 6
  init u = sin(1.7*x + 2.3*y + z)
  steps 4
}
";
    for (begin, expected) in [("z > 1000", false), ("z > 2", true)] {
        let resolved = resolved_in(&text.replace("z > 1000", begin), Precision::F32);
        let (scheme, problem) = (&resolved.scheme, &resolved.problem);
        assert_eq!(scheme.stages.len(), 2);
        let schedule = "(x, y): diamond(W = 4) height 2";
        let by_towers = planned(&device, scheme, problem, schedule);
        let by_towers = by_towers.is_some_and(|(plan, _)| plan.towers().is_some());
        assert_eq!(by_towers, expected, "{begin}");
    }
}

/// Towers as narrow as the distance of rows: where all components lie at one position, every second one has no row, and
/// towers beside it depend on each other across it.
pub(super) const WITHOUT_ROWS: &str = "
scheme summed {
  axes x, y, z
  param h = 0.5
  param dt = 0.05
  field u : scalar on nodes levels 2
  field sum : scalar on nodes
  step {
    allow W0303
    u@next = 2*u - u@prev + dt^2 * (d2(u, x) + d2(u, y) + d2(u, z))
    sum += dt * u
  }
}
problem p {
  scheme summed
  domain 17 x 36 x 7
  boundary x: even, y: zero, z: odd
  init u = sin(1.7*x + 2.3*y) * z
  probe sum at (16, 16, 3)
  steps 8
}
";

#[test]
fn towers_without_rows_pass_on_what_is_done() {
    let Some(library) = library() else { return };
    for precision in [Precision::F32, Precision::F64] {
        let resolved = resolved_in(WITHOUT_ROWS, precision);
        let (scheme, problem) = (&resolved.scheme, &resolved.problem);
        let heights = match precision {
            Precision::F32 => &[2, 8][..],
            Precision::F64 => &[4],
        };
        for (seed, height) in heights.iter().enumerate() {
            let device = Interpreted::new();
            let schedule = &format!("torre(D = 1, TH = {height})");
            let (plan, model) = plan_of(&device, scheme, problem, schedule);
            let of = &plan.towers().expect("towers").program.towers;
            let rowless = of.alignments.iter();
            let rowless = rowless.filter(|a| a.stages.iter().all(|rows| rows.updates.is_empty()));
            assert_eq!(rowless.count(), 1);
            let towers = &compiled(library, scheme, &plan, &model);
            starts(library, &device, seed as u64, scheme, problem, Some(towers));
        }
    }
}
