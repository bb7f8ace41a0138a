//! Amplification matrices against steps of the reference, and the search for places and waves.

use super::cells::setting;
use super::matrix::Matrix;
use super::step::Step;
use super::*;
use crate::host::{HostBinary, HostExpr};
use crate::lattice::HalfIndex;
use crate::problem::{Init, Problem, StaticValue};
use crate::reference::{Reference, for_each_index};
use crate::scheme::{Coef, CoefId, ComponentId, FileId, Op, Precision, StaticFile, Value};
use crate::statics::NoFiles;
use crate::testing::{Limits, Rng, maxwell, random_linear_scheme};
use num_complex::Complex64;
use std::f64::consts::{PI, TAU};

const LIMITS: Limits = Limits {
    dimensions: 3,
    components: 3,
    stages: 3,
    ops: 6,
    length: 4,
    width: 3,
    reach: 2,
};

/// 1 at one index of a component, 0 elsewhere.
fn unit(scheme: &Scheme, component: ComponentId, at: PerAxis<i64>) -> HostExpr {
    let position = scheme.component(component).position;
    let mut product = HostExpr::Number(1.0);
    for axis in scheme.grid.present() {
        let place = (HalfIndex::cells(at[axis]) + position[axis]).as_f64();
        let here = HostExpr::Binary(
            HostBinary::Eq,
            Box::new(HostExpr::Coordinate(axis, HalfIndex::ZERO)),
            Box::new(HostExpr::Number(place)),
        );
        product = HostExpr::Binary(HostBinary::Mul, Box::new(product), Box::new(here));
    }
    product
}

/// The values of all versions of all components, one after the other.
fn state(scheme: &Scheme, run: &Reference<f64>) -> Vec<f64> {
    let versions = scheme.component_ids().flat_map(|id| {
        let levels = scheme.component(id).time_levels;
        (0..levels).map(move |age| (id, age))
    });
    versions
        .flat_map(|(id, age)| run.aged_values(id, age).to_vec())
        .collect()
}

/// A step of the whole grid as a matrix: the result of the reference for each unit vector, less its result for zeros.
fn operator(scheme: &Scheme) -> Matrix {
    let run = |init: Vec<Init>| {
        let problem = Problem {
            init,
            ..Problem::default()
        };
        let mut run = Reference::<f64>::new(scheme, &problem, &NoFiles);
        run.step();
        state(scheme, &run)
    };
    let rest = run(Vec::new());
    let mut matrix = Matrix::zero(rest.len());
    let mut column = 0;
    for component in scheme.component_ids() {
        for age in 0..scheme.component(component).time_levels {
            for_each_index(scheme.extent(component), |at| {
                let value = StaticValue::Expr(unit(scheme, component, at));
                // A start value of age 0 stands for older ones, too, unless they have their own.
                let mut init: Vec<Init> = (0..scheme.component(component).time_levels)
                    .map(|age| Init {
                        component,
                        age,
                        value: StaticValue::Expr(HostExpr::Number(0.0)),
                    })
                    .collect();
                init[usize::from(age)].value = value;
                for (row, (new, old)) in run(init).iter().zip(&rest).enumerate() {
                    matrix.set(row, column, Complex64::from(new - old));
                }
                column += 1;
            });
        }
    }
    matrix
}

/// The phases that waves on a periodic grid can have.
fn phases(scheme: &Scheme) -> Vec<Phase> {
    let mut list = Vec::new();
    for_each_index(
        scheme
            .grid
            .cells
            .map(|n| crate::lattice::Interval::new(0, n)),
        |m| {
            list.push(PerAxis::from_fn(|a| {
                TAU * m[a] as f64 / scheme.grid.cells[a] as f64
            }));
        },
    );
    list
}

fn random_schemes(seeds: std::ops::Range<u64>) -> impl Iterator<Item = (u64, Scheme, Step)> {
    seeds.map(|seed| {
        let scheme = random_linear_scheme(&mut Rng::new(seed), &LIMITS);
        crate::scheme::verify(&scheme).unwrap_or_else(|e| panic!("{seed}: {e}"));
        let step = Step::new(&scheme, &setting(&scheme, &NoFiles, PerAxis::splat(0)));
        let step = step.unwrap_or_else(|e| panic!("{seed}: {e:?}"));
        (seed, scheme, step)
    })
}

#[test]
fn random_steps_have_the_spectrum_of_their_amplification_matrices() {
    let mut moving = 0;
    for (seed, scheme, step) in random_schemes(0..150) {
        let whole = operator(&scheme);
        let matrices: Vec<Matrix> = phases(&scheme)
            .into_iter()
            .map(|p| step.amplification(&step.whole(), p))
            .collect();
        let powers = 6;
        let mut sums = vec![Complex64::ZERO; powers];
        for matrix in &matrices {
            for (sum, trace) in sums.iter_mut().zip(matrix.first_traces(powers)) {
                *sum += trace;
            }
        }
        let size = sums.iter().map(|s| s.norm()).fold(1.0, f64::max);
        for (found, expected) in whole.first_traces(powers).into_iter().zip(sums) {
            assert!(
                (found - expected).norm() < 1e-9 * size,
                "{seed}: {found} {expected}"
            );
        }
        moving += usize::from(size > 1.5);

        let largest = matrices
            .iter()
            .map(Matrix::growth)
            .fold(f64::NEG_INFINITY, f64::max);
        let of_blocks = step
            .blocks()
            .iter()
            .flat_map(|b| {
                phases(&scheme)
                    .into_iter()
                    .map(|p| step.amplification(b, p).growth())
            })
            .fold(f64::NEG_INFINITY, f64::max);
        let whole = whole.growth();
        for (name, growth) in [("all values", largest), ("blocks", of_blocks)] {
            let same = (growth - whole).abs() < 1e-6 || (growth < -8.0 && whole < -8.0);
            assert!(same, "{seed}: {name} grow by {growth}, the grid by {whole}");
        }
    }
    assert!(moving > 75, "{moving}");
}

#[test]
fn random_schemes_grow_in_runs_as_the_analysis_says() {
    let (mut stable, mut unstable) = (0, 0);
    for (seed, scheme, step) in random_schemes(1000..1150) {
        let found = stability(&scheme, &NoFiles, &Effort::THOROUGH).unwrap();
        let on_grid = phases(&scheme)
            .into_iter()
            .flat_map(|p| step.blocks().into_iter().map(move |b| (b, p)))
            .map(|(b, p)| step.amplification(&b, p).growth())
            .fold(f64::NEG_INFINITY, f64::max);
        // Waves on a small grid are some of all waves. Values that no statement advances stay as they are.
        assert!(
            on_grid <= found.worst.rate.max(0.0) + 1e-6,
            "{seed}: {on_grid} {:?}",
            found.worst
        );

        let steps = 400;
        let noise = HostExpr::Unary(
            crate::host::HostUnary::Sin,
            Box::new(
                scheme
                    .grid
                    .present()
                    .fold(HostExpr::Number(0.3), |sum, axis| {
                        let place = HostExpr::Coordinate(axis, HalfIndex::ZERO);
                        let factor = HostExpr::Number(7.3 + 5.0 * axis.index() as f64);
                        let part =
                            HostExpr::Binary(HostBinary::Mul, Box::new(place), Box::new(factor));
                        HostExpr::Binary(HostBinary::Add, Box::new(sum), Box::new(part))
                    }),
            ),
        );
        let init = scheme.component_ids().map(|component| Init {
            component,
            age: 0,
            value: StaticValue::Expr(noise.clone()),
        });
        let problem = Problem {
            init: init.collect(),
            ..Problem::default()
        };
        let mut run = Reference::<f64>::new(&scheme, &problem, &NoFiles);
        let mut sizes = Vec::new();
        for _ in 0..2 {
            for _ in 0..steps / 2 {
                run.step();
            }
            let values = state(&scheme, &run);
            sizes.push(values.iter().map(|v| v.abs()).fold(0.0, f64::max));
        }
        if !sizes[1].is_finite() || on_grid > 1.5 {
            unstable += 1;
            continue;
        }
        let measured = (sizes[1] / sizes[0]).ln() / f64::from(steps / 2);
        match on_grid > 1e-3 {
            true => {
                unstable += 1;
                // All waves are in the noise, so the fastest one wins.
                let slack = 0.02 + 3.0 / f64::from(steps);
                assert!(
                    (measured - on_grid).abs() < slack,
                    "{seed}: {measured} {on_grid}"
                );
            }
            false => {
                stable += 1;
                assert!(measured < 0.02, "{seed}: {measured} {on_grid}");
            }
        }
    }
    assert!(stable > 20 && unstable > 20, "{stable} {unstable}");
}

#[test]
fn maxwell_is_stable_up_to_its_limit() {
    for (order, sum) in [(2, 1.0), (4, 7.0 / 6.0)] {
        let mut scheme = maxwell(order, Precision::F64, [16, 16, 16]);
        let weights = |scheme: &Scheme| -> f64 {
            let step = Step::new(scheme, &setting(scheme, &NoFiles, PerAxis::splat(0))).unwrap();
            step.stages()[0][0]
                .taps
                .iter()
                .map(|t| t.weight.abs())
                .sum::<f64>()
                - 1.0
        };
        // The weights of a curl sum up to 4 s dt / h.
        let courant = weights(&scheme) / (4.0 * sum);
        let mut scaled = |factor: f64| {
            for update in scheme.stages.iter_mut().flat_map(|s| &mut s.updates) {
                for op in &mut update.body.ops {
                    if let crate::scheme::Op::Const(c) = op {
                        *c *= factor;
                    }
                }
            }
            stability(&scheme, &NoFiles, &Effort::QUICK).unwrap()
        };
        let limit = 1.0 / (sum * 3.0_f64.sqrt());
        assert!(scaled(0.99999 * limit / courant).is_stable());
        let beyond = scaled(1.00002);
        assert!(!beyond.is_stable(), "{beyond:?}");
        for phase in beyond.worst.phase.0 {
            assert!((phase.abs() - PI).abs() < 0.01, "{beyond:?}");
        }
    }
}

/// A wave equation along one axis whose squared Courant number is an expression of the place.
fn wave(cells: [i64; 3], courant2: HostExpr) -> Scheme {
    let mut scheme = crate::testing::star(1, Precision::F64, cells);
    scheme.coefs.push(Coef {
        name: "c2".to_owned(),
        position: scheme.components[0].position,
        value: courant2,
        only_axis: None,
    });
    let body = &mut scheme.stages[0].updates[0].body;
    let (sum, factor) = (body.result, Value(body.ops.len() as u32));
    body.ops.push(Op::Coef(CoefId(0)));
    body.ops.push(Op::Mul(factor, sum));
    body.result = Value(factor.0 + 1);
    scheme
}

#[test]
fn coefficients_that_no_wave_depends_on_give_no_places() {
    let along = |axis| HostExpr::Coordinate(axis, HalfIndex::ZERO);
    let mut scheme = wave([20, 30, 40], along(Axis::OUTER));
    let without = places(&scheme, &NoFiles, Patience::Long).unwrap();
    assert!(without.list.len() > 1);
    // As the profile of a layer is, which amendments alone read.
    let profile = Coef {
        value: along(Axis::INNER),
        ..scheme.coefs[0].clone()
    };
    scheme.coefs.push(profile);
    let found = places(&scheme, &NoFiles, Patience::Long).unwrap();
    let cells = |places: &Places| places.list.iter().map(|p| p.cell.index).collect::<Vec<_>>();
    assert_eq!(cells(&found), cells(&without));
    assert!(found.combined.is_empty());
}

#[test]
fn the_extremes_of_a_coefficient_are_found_in_a_huge_domain() {
    // One cell of another medium in 10^12, somewhere.
    let x = |axis| Box::new(HostExpr::Coordinate(axis, HalfIndex::ZERO));
    let near = |axis, place: f64| {
        let distance =
            HostExpr::Binary(HostBinary::Sub, x(axis), Box::new(HostExpr::Number(place)));
        let square = HostExpr::Binary(
            HostBinary::Pow,
            Box::new(distance),
            Box::new(HostExpr::Number(2.0)),
        );
        HostExpr::Binary(
            HostBinary::Lt,
            Box::new(square),
            Box::new(HostExpr::Number(0.5)),
        )
    };
    let inside = Axis::ALL
        .into_iter()
        .zip([7001.0, 12.0, 9043.0])
        .map(|(axis, place)| near(axis, place))
        .reduce(|a, b| HostExpr::Binary(HostBinary::And, Box::new(a), Box::new(b)))
        .unwrap();
    let value = HostExpr::If(
        Box::new(inside),
        Box::new(HostExpr::Number(0.7)),
        Box::new(HostExpr::Number(0.1)),
    );
    let scheme = wave([10_000; 3], value);
    let found = places(&scheme, &NoFiles, Patience::Long).unwrap();
    let cells: Vec<[i64; 3]> = found.list.iter().map(|p| p.cell.index.0).collect();
    assert!(cells.contains(&[7001, 12, 9043]), "{cells:?}");
}

/// A file whose values rise to a single peak.
struct Peak;

impl crate::statics::Files for Peak {
    fn value(&self, _: FileId, at: PerAxis<i64>) -> f64 {
        match at.0 {
            [3, 0, 37] => 9.0,
            [x, y, z] => (x + y + z) as f64 / 1000.0,
        }
    }
}

#[test]
fn the_extremes_of_a_file_are_found() {
    let mut scheme = wave([40, 1, 50], HostExpr::Number(0.0));
    scheme.grid.axes[Axis::MIDDLE] = None;
    scheme.files.push(StaticFile {
        path: "c.npy".to_owned(),
        position: scheme.components[0].position,
    });
    let file = |offset: [i32; 3]| HostExpr::File {
        file: FileId(0),
        offset: PerAxis(offset),
    };
    // A mean of neighbours, as media have it.
    let mean = HostExpr::Binary(
        HostBinary::Add,
        Box::new(file([0, 0, 0])),
        Box::new(file([0, 0, -1])),
    );
    scheme.coefs[0].value = mean;
    let found = places(&scheme, &Peak, Patience::Long).unwrap();
    let cells: Vec<[i64; 3]> = found.list.iter().map(|p| p.cell.index.0).collect();
    assert!(
        cells.contains(&[3, 0, 38]) || cells.contains(&[3, 0, 37]),
        "{cells:?}"
    );
}
