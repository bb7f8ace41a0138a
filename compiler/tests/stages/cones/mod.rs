//! Vectors and slopes of known schemes, faces, and tables.

mod brute;
mod pictures;
mod schemes;

use schemes::*;
use std::collections::BTreeSet;
use torre_compiler::cone::*;
use torre_compiler::lattice::{Axis, Interval, Offset};
use torre_compiler::lattice::{HalfIndex, PerAxis};
use torre_compiler::schedule::face::Face;
use torre_compiler::scheme::{Boundary, Scheme};
use torre_compiler::scheme::{ComponentId, StageId};

fn rational(num: i64, den: i64) -> Rational {
    Rational::new(num, den).expect("a denominator")
}

/// Forms with small coefficients.
fn forms() -> Vec<Form> {
    let small = || -2..=2;
    let mut forms = Vec::new();
    for x in small() {
        for y in small() {
            forms.extend(small().map(|z| PerAxis([x, y, z])));
        }
    }
    forms
}

fn slope(cones: &Cones, form: [i32; 3]) -> Rational {
    cones.slope(PerAxis(form))
}

#[test]
fn maxwell_slopes() {
    for (order, s) in [
        (2, rational(1, 2)),
        (4, rational(3, 2)),
        (6, rational(5, 2)),
    ] {
        let cones = cones(&maxwell(order, Boundary::Zero));
        for form in [
            [1, 0, 0],
            [-1, 0, 0],
            [0, 0, 1],
            [1, 1, 0],
            [1, -1, 0],
            [-1, 0, 1],
            [1, 1, 1],
        ] {
            assert_eq!(slope(&cones, form), s, "{form:?}");
        }
        assert_eq!(slope(&cones, [2, 1, 0]), s + s);
        assert_eq!(cones.slope_per_step(PerAxis([1, 1, 0])), s + s);
        assert_eq!(cones.speed(PerAxis([1, 0, 0])), s + s);
        assert!(cones.is_symmetric());
        assert_eq!(cones.slopes(), PerAxis::splat([s, s]));
    }
}

#[test]
fn maxwell_vectors() {
    let cones = cones(&maxwell(4, Boundary::Zero));
    // Per component: 8 curl reads and itself.
    let count = |kind| cones.dependences.iter().filter(|d| d.kind == kind).count();
    assert_eq!(count(Kind::Flow), 6 * 9);
    // Its own old value is overwritten by the same update; so only the curls' reads count.
    assert_eq!(count(Kind::Anti), 6 * 8);
    assert_eq!(count(Kind::Output), 6);
    assert!(
        cones
            .dependences
            .iter()
            .all(|d| d.stages == 1 || d.stages == 2 && d.space == PerAxis::default())
    );
    // Ex reads Hz at y +3/2: the vector from Hz to Ex is y -3/2.
    let (ex, hz) = (ComponentId(0), ComponentId(5));
    let between: Vec<i64> = cones
        .dependences
        .iter()
        .filter(|d| d.from.component == hz && d.to.component == ex && d.kind == Kind::Flow)
        .map(|d| {
            assert_eq!(
                (d.from.stage, d.to.stage, d.stages),
                (StageId(0), StageId(1), 1)
            );
            assert_eq!((d.space.0[0].0, d.space.0[2].0), (0, 0));
            d.space.0[1].0
        })
        .collect();
    assert_eq!(between, [-3, -1, 1, 3]);
}

#[test]
fn wave_in_place() {
    let cones = cones(&wave([true, false, true], 2));
    assert_eq!(slope(&cones, [1, 0, 0]), Rational::ONE);
    assert_eq!(slope(&cones, [1, 0, 1]), Rational::ONE);
    assert_eq!(slope(&cones, [1, 0, 2]), rational(2, 1));
    // The newest level, read with neighbours, is overwritten by the next step's update; the older one, read at the
    // same place, by the same update, which orders nothing.
    let anti: BTreeSet<_> = cones
        .dependences
        .iter()
        .filter(|d| d.kind == Kind::Anti)
        .map(|d| (d.stages, d.space.map(|h| h.0).0))
        .collect();
    let star = [[0, 0, 0], [2, 0, 0], [-2, 0, 0], [0, 0, 2], [0, 0, -2]];
    assert_eq!(anti, star.map(|p| (1, p)).into());
    let flow: BTreeSet<_> = cones
        .dependences
        .iter()
        .filter(|d| d.kind == Kind::Flow && d.stages == 2)
        .map(|d| d.space.map(|h| h.0).0)
        .collect();
    assert_eq!(flow, [[0, 0, 0]].into());
}

#[test]
fn stars_reach_half_their_order() {
    for radius in 1..=4 {
        let cones = cones(&wave([true; 3], 2 * radius));
        for form in [[1, 0, 0], [0, -1, 0], [1, 1, 0], [1, -1, 1]] {
            assert_eq!(slope(&cones, form), Rational::whole(i64::from(radius)));
        }
    }
}

#[test]
fn time_levels_hide_no_reader() {
    // Two time levels: the reader of version v must run before version v + 2 overwrites it, so upwind needs both
    // directions.
    let two = cones(&upwind(2, Boundary::Zero));
    assert_eq!(slope(&two, [0, 0, 1]), Rational::ONE);
    assert_eq!(slope(&two, [0, 0, -1]), Rational::ONE);
    assert_eq!(two.speed(PerAxis([0, 0, 1])), Rational::ONE);
    assert_eq!(two.speed(PerAxis([0, 0, -1])), Rational::ZERO);
    // Its slopes are alike, but values depend on one side alone.
    assert!(!two.is_symmetric());
    // More time levels leave more time.
    let four = cones(&upwind(4, Boundary::Zero));
    assert_eq!(slope(&four, [0, 0, 1]), Rational::ONE);
    assert_eq!(slope(&four, [0, 0, -1]), rational(1, 3));
    assert!(!four.is_symmetric());
    assert_eq!(slope(&cones(&diffusion()), [0, 0, -1]), Rational::ONE);
}

#[test]
fn versions_across_stages() {
    let cones = cones(&multistage());
    let (u, w) = (ComponentId(0), ComponentId(1));
    let site = |stage, component| Site {
        stage: StageId(stage),
        component,
    };
    let stages = |kind, from, to, z| {
        let mut found: Vec<i64> = cones
            .dependences
            .iter()
            .filter(|d| (d.kind, d.from, d.to) == (kind, from, to))
            .filter(|d| d.space == PerAxis([HalfIndex(0), HalfIndex(0), HalfIndex(z)]))
            .map(|d| d.stages)
            .collect();
        found.dedup();
        found
    };
    // Stage 0 reads u's newest version (stage 2 of the step before) and the one before it (stage 0 of the step before).
    assert_eq!(stages(Kind::Flow, site(2, u), site(0, u), -2), [1]);
    assert_eq!(stages(Kind::Flow, site(0, u), site(0, u), 4), [3]);
    // Stage 1 reads age 2: newest is of stage 0 of this step, then stage 2, then stage 0 of the step before.
    assert_eq!(stages(Kind::Flow, site(0, u), site(1, w), 3), [4]);
    // That version's time level is taken by the third version after it: stage 2 of this step.
    assert_eq!(stages(Kind::Anti, site(1, w), site(2, u), -3), [1]);
    assert_eq!(stages(Kind::Output, site(0, u), site(2, u), 0), [5]);
    assert_eq!(stages(Kind::Output, site(2, u), site(0, u), 0), [4]);
    assert_eq!(stages(Kind::Output, site(1, w), site(1, w), 0), [3]);
}

#[test]
fn speed_is_the_mean_over_stages() {
    let cones = cones(&mixed_orders());
    assert_eq!(slope(&cones, [0, 0, 1]), rational(3, 2));
    assert_eq!(cones.slope_per_step(PerAxis([0, 0, 1])), rational(3, 1));
    assert_eq!(cones.speed(PerAxis([0, 0, 1])), rational(2, 1));
}

#[test]
fn elastic_slopes() {
    let cones = cones(&elastic());
    for form in [[1, 0, 0], [0, 0, -1], [1, 0, 1], [-1, 0, 1]] {
        assert_eq!(slope(&cones, form), rational(3, 2));
    }
    assert!(cones.is_symmetric());
}

#[test]
fn limited_updates_pass_the_old_value_on() {
    let line = vec![(1, along(2, 1), 0)];
    let mut scheme = schemes::scheme(
        "limited",
        [false, false, true],
        Boundary::Zero,
        &[("u", [0; 3], 1), ("w", [0; 3], 1)],
        vec![vec![(0, line)], vec![(1, vec![(0, along(2, 0), 0)])]],
    );
    let own = |cones: &Cones| {
        let own = |d: &&Dependence| d.kind == Kind::Flow && d.from == d.to;
        cones.dependences.iter().filter(own).count()
    };
    assert_eq!(own(&cones(&scheme)), 0);
    scheme.stages[0].updates[0].region[Axis::INNER] = Interval::new(4, 9);
    assert_eq!(own(&cones(&scheme)), 1);
}

#[test]
fn nothing_to_compute() {
    let scheme = schemes::scheme(
        "empty",
        [true; 3],
        Boundary::Zero,
        &[("u", [0; 3], 1)],
        vec![],
    );
    let cones = cones(&scheme);
    assert_eq!(cones.dependences, []);
    assert_eq!(slope(&cones, [1, 1, 1]), Rational::ZERO);
    assert_eq!(cones.speed(PerAxis([1, 0, 0])), Rational::ZERO);
    assert!(cones.is_symmetric());
}

#[test]
fn slopes_are_those_of_the_steepest_reads() {
    let cones = cones(&maxwell(4, Boundary::Pec));
    let form = PerAxis([1, -1, 0]);
    assert_eq!(Face::fitting(&cones, form).slope, rational(3, 2));
    let steepest = cones.dependences.iter();
    let steepest = steepest.filter(|d| d.slope(form) == rational(3, 2));
    let names: Vec<String> = steepest.map(|d| cones.describe(d)).collect();
    let expected = "E.z reads H.x at [0, +3/2, 0] from 1 stage before";
    assert!(names.iter().any(|name| name == expected), "{names:?}");
    assert_eq!(cones.slope(PerAxis::default()), Rational::ZERO);
}

#[test]
fn face_values_and_tiles() {
    let face = Face {
        form: PerAxis([1, -1, 0]),
        slope: rational(3, 2),
    };
    let at = PerAxis([HalfIndex(5), HalfIndex(-2), HalfIndex(7)]);
    assert_eq!(face.value(at, 3), rational(7 - 9, 2));
    assert_eq!(face.index(rational(3, 1), at, 3), Some(-1));
    assert_eq!(face.index(Rational::ZERO, at, 3), None);
}

#[test]
fn mirrors_never_reach_farther_but_may_turn() {
    for end in [Boundary::Pec, Boundary::Pmc] {
        let (bare, mirrored) = (cones(&maxwell(4, Boundary::Zero)), cones(&maxwell(4, end)));
        for form in forms() {
            assert_eq!(bare.slope(form), mirrored.slope(form), "{form:?}");
        }
        let (bare, mirrored) = (cones(&upwind(6, Boundary::Zero)), cones(&upwind(6, end)));
        // A cell that reads itself through the mirror has no displacement, which changes no slope.
        for form in forms() {
            assert_eq!(bare.slope(form), mirrored.slope(form), "{form:?}");
        }
    }
    // Two cells upwind, the mirror shows a value on the other side of the reader.
    let far = |end| {
        let reads = vec![(0, [0; 3], 0), (0, along(2, -2), 0)];
        let u = [("u", [0, 0, 1], 6)];
        let axes = [false, false, true];
        cones(&schemes::scheme(
            "far",
            axes,
            end,
            &u,
            vec![vec![(0, reads)]],
        ))
    };
    assert_eq!(slope(&far(Boundary::Zero), [0, 0, -1]), rational(2, 5));
    assert_eq!(slope(&far(Boundary::Pec), [0, 0, -1]), Rational::ONE);
}

#[test]
fn periodic_ends_need_periodic_tilings() {
    let cones = cones(&maxwell(4, Boundary::Periodic));
    assert_eq!(cones.wraps(), PerAxis::splat(true));
    assert_eq!(slope(&cones, [1, 1, 0]), rational(3, 2));
    // The largest slope of dependences that do not go around an axis in `closed` the long way.
    let needed = |form: Form, closed: [bool; 3]| {
        let around = |d: &Dependence| {
            let mut ways = d.via.iter();
            ways.any(|(axis, via)| *via == Via::Wrap && PerAxis(closed)[axis])
        };
        let counted = cones.dependences.iter().filter(|d| !around(d));
        let slopes = counted.map(|d| d.slope(form));
        slopes.fold(Rational::ZERO, |a, b| if b > a { b } else { a })
    };
    let form = PerAxis([1, 1, 0]);
    let far = rational(2 * CELLS - 1, 2);
    assert_eq!(needed(form, [false; 3]), far);
    assert_eq!(needed(form, [true, true, false]), rational(3, 2));
    assert!(needed(form, [true, false, false]) > rational(3, 2));
    // Faces along other axes do not care.
    let form = PerAxis([1, 0, 0]);
    assert_eq!(needed(form, [true, false, false]), cones.slope(form));
}

#[test]
fn a_slope_is_the_largest_over_all_vectors() {
    for scheme in [
        maxwell(4, Boundary::Pec),
        elastic(),
        multistage(),
        upwind(3, Boundary::Zero),
    ] {
        let cones = cones(&scheme);
        for form in forms() {
            let s = cones.slope(form);
            // Legal, and nothing smaller is.
            let fits = |s: Rational| {
                cones.local().all(|d| {
                    let up: i64 = d.space.iter().map(|(a, h)| h.0 * i64::from(form[a])).sum();
                    Rational::halves(up) <= s * Rational::whole(d.stages)
                })
            };
            assert!(fits(s));
            assert!(!fits(s - rational(1, 1_000_000)));
            assert!(cones.speed(form) <= cones.slope_per_step(form));
            let steepest = cones.steepest(form).expect("has vectors");
            assert_eq!(steepest.slope(form), s);
        }
    }
}

#[test]
fn absurd_offsets_stay_bounded() {
    let huge = i32::MAX - 1;
    let offset: Offset = PerAxis([0, 0, -huge]);
    let mut scheme = diffusion();
    scheme.grid.cells[Axis::INNER] = i64::from(i32::MAX);
    scheme.grid.boundary[Axis::INNER] = [Boundary::Pec; 2];
    for op in &mut scheme.stages[0].updates[0].body.ops {
        if let torre_compiler::scheme::Op::Read(read) = op {
            read.offset = offset;
        }
    }
    let cones = cones(&scheme);
    assert!(cones.dependences.len() < 100);
    assert_eq!(slope(&cones, [0, 0, 1]), rational(i64::from(huge), 1));
}

#[test]
fn the_tables() {
    let scheme = upwind(2, Boundary::Pec);
    let expected = "\
cones of upwind: 1 stage per step

flow
  computed by  read by  stages  vectors, in cells
  u/0          u/0      1       0, z +1

anti
  read by  overwritten by  stages  vectors, in cells
  u/0      u/0             1       0, z -1

output
  computed by  overwritten by  stages  vectors, in cells
  u/0          u/0             2       0

slopes, in cells
  along  per stage  per step  influence per step
  z      1          1         1
  -z     1          1         0

the cone is not symmetric
";
    assert_eq!(cones(&scheme).to_string(), expected);
    let printed = cones(&maxwell(4, Boundary::Periodic)).to_string();
    let has = |line: &str| printed.lines().any(|l| l == line);
    assert!(has("  E.z/1        H.x/0    1       y ±1/2 ±3/2"));
    assert!(has("  x - y   3/2        3         3"));
    assert!(has("reads at the ends of y go around the domain"));
    // A box: 26 neighbours, 6 of them on the axes.
    let offsets = (0..27).map(|n| [n / 9 - 1, n / 3 % 3 - 1, n % 3 - 1]);
    let reads = offsets.map(|o| (0, o, 0)).collect();
    let u = [("u", [0; 3], 2)];
    let scheme = schemes::scheme("box", [true; 3], Boundary::Zero, &u, vec![vec![(0, reads)]]);
    let printed = cones(&scheme).to_string();
    assert!(printed.contains("0, x ±1, y ±1, z ±1, 20 in [-1..=1, -1..=1, -1..=1]\n"));
    assert_eq!(slope(&cones(&scheme), [1, 1, 0]), rational(2, 1));
}
