//! Vectors and legality against all pairs of events of small calculations, and the past against the reach of perturbed
//! single inputs of the reference.

use super::*;
use std::collections::BTreeMap;
use torre_compiler::problem::Problem;
use torre_compiler::reference::Reference;
use torre_compiler::scheme::Located;
use torre_compiler::statics::NoFiles;

/// An event of a finite calculation: component, cell index, time index.
type Run = (u32, PerAxis<i64>, i64);

/// The run that computed the value in a time level, and the runs that have read it since.
type Used = (Option<Run>, Vec<Run>);

/// The value of a form at a displacement, in half cells.
fn rise(form: Form, space: PerAxis<HalfIndex>) -> i64 {
    let along = |a: &Axis| i64::from(form[*a]) * space[*a].0;
    Axis::ALL.iter().map(along).sum()
}

/// Every pair of events of `steps` steps that must keep their order, by running all reads and writes one by one.
fn pairs(scheme: &Scheme, steps: i64) -> Vec<(Run, Run)> {
    let count = scheme.stages.len() as i64;
    let mut memory: BTreeMap<(u32, u64, PerAxis<i64>), Used> = BTreeMap::new();
    let mut versions = vec![0u64; scheme.components.len()];
    let mut out = Vec::new();
    for time in 0..steps * count {
        let stage = &scheme.stages[(time % count) as usize];
        for update in &stage.updates {
            torre_compiler::reference::for_each_index(update.region, |at| {
                let here = (update.target.0, at, time);
                for read in update.body.reads() {
                    let component = scheme.component(read.component);
                    let from = PerAxis::from_fn(|a| at[a] + i64::from(read.offset[a]));
                    let Located::Stored { at, .. } = scheme.grid.resolve(component.position, from)
                    else {
                        continue;
                    };
                    let time_levels = u64::from(component.time_levels);
                    let newest = versions[read.component.index()] + time_levels;
                    let time_level = (newest - u64::from(read.age)) % time_levels;
                    let cell = memory
                        .entry((read.component.0, time_level, at))
                        .or_default();
                    out.extend(cell.0.map(|writer| (writer, here)));
                    cell.1.push(here);
                }
            });
        }
        for update in &stage.updates {
            let version = &mut versions[update.target.index()];
            *version += 1;
            let time_level = *version % u64::from(scheme.component(update.target).time_levels);
            torre_compiler::reference::for_each_index(update.region, |at| {
                let here = (update.target.0, at, time);
                let cell = memory.entry((update.target.0, time_level, at)).or_default();
                out.extend(cell.0.map(|writer| (writer, here)));
                let readers = std::mem::take(&mut cell.1);
                out.extend(readers.iter().filter(|r| **r != here).map(|&r| (r, here)));
                cell.0 = Some(here);
            });
        }
    }
    out
}

fn shrink(mut scheme: Scheme, cells: i64) -> Scheme {
    let old = scheme.grid.clone();
    for axis in old.present() {
        scheme.grid.cells[axis] = cells;
    }
    let grid = &scheme.grid;
    for stage in &mut scheme.stages {
        for update in &mut stage.updates {
            let position = scheme.components[update.target.index()].position;
            update.region = grid.live(position);
        }
    }
    scheme
}

fn place(scheme: &Scheme, run: Run) -> PerAxis<HalfIndex> {
    let position = scheme.component(ComponentId(run.0)).position;
    PerAxis::from_fn(|a| position[a] + HalfIndex::cells(run.1[a]))
}

/// A vector: both sites, stages, displacement.
type Vector = (Site, Site, i64, PerAxis<HalfIndex>);

/// The vectors that a finite calculation shows.
fn observed(scheme: &Scheme, steps: i64) -> BTreeSet<Vector> {
    let count = scheme.stages.len() as i64;
    let site = |run: Run| Site {
        stage: StageId((run.2 % count) as u32),
        component: ComponentId(run.0),
    };
    pairs(scheme, steps)
        .into_iter()
        .map(|(a, b)| {
            let (p, q) = (place(scheme, a), place(scheme, b));
            (
                site(a),
                site(b),
                b.2 - a.2,
                PerAxis::from_fn(|i| q[i] - p[i]),
            )
        })
        .collect()
}

#[test]
fn the_vectors_are_those_that_calculations_show() {
    let ends = [
        Boundary::Zero,
        Boundary::Pec,
        Boundary::Pmc,
        Boundary::Periodic,
    ];
    let mut schemes: Vec<Scheme> = ends.iter().map(|&b| shrink(maxwell(4, b), 5)).collect();
    schemes.extend(ends.iter().map(|&b| shrink(upwind(2, b), 9)));
    schemes.extend([
        shrink(maxwell(2, Boundary::Pec), 5),
        shrink(wave([true, false, true], 4), 9),
        shrink(diffusion(), 9),
        shrink(elastic(), 9),
        shrink(multistage(), 9),
    ]);
    schemes.extend((0..80).map(random));
    for scheme in &schemes {
        let cones = cones(scheme);
        let derived: BTreeSet<Vector> = cones
            .dependences
            .iter()
            .map(|d| (d.from, d.to, d.stages, d.space))
            .collect();
        let ends = scheme.grid.boundary;
        let steps = if scheme.components.len() > 4 { 4 } else { 9 };
        assert_eq!(derived, observed(scheme, steps), "{ends:?} {scheme}");
    }
}

/// Pairs of events that tiles of half-width D in x-y would run in the wrong order.
fn out_of_order(scheme: &Scheme, pairs: &[(Run, Run)], slope: Rational) -> usize {
    let count = rational(4, 1) * slope;
    let wrong = |form: [i32; 3]| {
        let face = Face {
            form: PerAxis(form),
            slope,
        };
        pairs
            .iter()
            .filter(|(a, b)| {
                let tile = |run: &Run| face.index(count, place(scheme, *run), run.2);
                tile(b) > tile(a)
            })
            .count()
    };
    wrong([1, 1, 0]) + wrong([1, -1, 0])
}

#[test]
fn towers_by_brute_force() {
    for (order, legal, illegal) in [
        (4, rational(3, 2), rational(5, 4)),
        (2, rational(1, 2), rational(3, 8)),
    ] {
        let scheme = shrink(maxwell(order, Boundary::Zero), 10);
        let pairs = pairs(&scheme, 3);
        assert!(pairs.len() > 100_000);
        assert_eq!(out_of_order(&scheme, &pairs, legal), 0);
        assert!(out_of_order(&scheme, &pairs, illegal) > 0);
    }
}

/// The initial values that reach the newest value of each component after some steps, found by changing them one by
/// one.
fn reached(scheme: &Scheme, steps: u64) -> Vec<BTreeSet<Initial>> {
    let middle = PerAxis::from_fn(|a| scheme.grid.cells[a] / 2);
    let problem = Problem {
        name: String::new(),
        steps,
        ..Problem::default()
    };
    let mut found = vec![BTreeSet::new(); scheme.components.len()];
    for changed in scheme.component_ids() {
        torre_compiler::reference::for_each_index(scheme.extent(changed), |at| {
            // The scheme is linear and everything else is 0: values that are not 0 in the end were reached.
            let mut reference = Reference::<f64>::new(scheme, &problem, &NoFiles);
            reference.set_value(changed, at, 1.0);
            reference.run();
            for id in scheme.component_ids() {
                if reference.value(id, middle) != 0.0 {
                    let p = place(scheme, (id.0, middle, 0));
                    let q = place(scheme, (changed.0, at, 0));
                    found[id.index()].insert(Initial {
                        component: changed,
                        age: 0,
                        space: PerAxis::from_fn(|a| q[a] - p[a]),
                    });
                }
            }
        });
    }
    found
}

#[test]
fn the_past_is_what_perturbations_reach() {
    let one = [false, false, true];
    let mut schemes = vec![
        (shrink(maxwell(2, Boundary::Zero), 6), 2),
        (shrink(wave([true, false, true], 4), 14), 3),
        (shrink(wave(one, 2), 16), 5),
        (diffusion(), 5),
        (upwind(2, Boundary::Zero), 6),
        (shrink(elastic(), 14), 2),
        (multistage(), 3),
        (mixed_orders(), 4),
    ];
    for seed in 0..40 {
        let mut scheme = random(seed);
        scheme.grid.boundary = PerAxis::splat([Boundary::Zero; 2]);
        if scheme.grid.dimensions() == 1 {
            schemes.push((shrink(scheme, 36), 2));
        }
    }
    for (scheme, steps) in &schemes {
        let cones = cones(scheme);
        let found = reached(scheme, u64::from(*steps));
        for id in scheme.component_ids() {
            let past = past(scheme, &cones, id, *steps);
            let newest = past.initial.iter().filter(|i| i.age == 0).copied();
            let derived: BTreeSet<Initial> = newest.collect();
            assert_eq!(derived, found[id.index()], "{id} of {scheme}");
            // The past lies within the cone: no faster than the slopes.
            let last = past.events.last().expect("updated").time;
            for form in forms() {
                let slope = cones.slope(form);
                for event in &past.events {
                    let up = -rise(form, event.space);
                    let limit = slope * Rational::whole(last - event.time);
                    assert!(Rational::halves(up) <= limit);
                }
            }
        }
    }
}

#[test]
fn the_past_spreads_with_the_speed() {
    let scheme = mixed_orders();
    let cones = cones(&scheme);
    let reach = |steps| {
        let past = past(&scheme, &cones, ComponentId(0), steps);
        past.initial.iter().map(|i| i.space[Axis::INNER].0).max()
    };
    // 2 cells per step.
    assert_eq!(reach(9).zip(reach(4)).map(|(a, b)| a - b), Some(5 * 2 * 2));
}
