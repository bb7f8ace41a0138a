//! The places at faces are the places that read across them, and shared corrections equal the corrections of each
//! place.

use std::collections::BTreeSet;
use torre_compiler::host::{HostExpr, HostUnary};
use torre_compiler::incident::*;
use torre_compiler::lattice::{Axis, Interval, PerAxis, for_each_index};
use torre_compiler::problem::{Drive, Incident, IncidentField, PlaneWave, Problem, TotalBox};
use torre_compiler::scheme::{Boundary, Located, Precision, Scheme};
use torre_compiler::statics::NoFiles;
use torre_compiler::testing::{bounded, maxwell};

const BOXES: [[[i64; 2]; 3]; 4] = [
    [[4, 8], [5, 9], [4, 7]],
    [[0, 12], [4, 9], [4, 8]],
    [[3, 9], [0, 9], [0, 11]],
    [[5, 6], [0, 13], [0, 11]],
];

fn schemes() -> [Scheme; 2] {
    let mirrors = [Boundary::Pec, Boundary::Pmc];
    let walls = [mirrors, [Boundary::Pmc; 2], [Boundary::Periodic; 2]];
    [2, 4].map(|order| bounded(maxwell(order, Precision::F64, [12, 13, 11]), walls))
}

/// Every place that reads a value of the other kind is found once, for any ends of the domain between.
#[test]
fn all_places_that_read_across_faces_are_found() {
    let mut crossing = 0;
    for scheme in schemes() {
        for ends in BOXES {
            let of = TotalBox {
                ends: PerAxis(ends),
            };
            let shell = Shell::new(&scheme, &of);
            for stage in scheme.stage_ids() {
                for update in &scheme.stages[stage.index()].updates {
                    let mut found = Vec::new();
                    for_each_site(&shell, &NoFiles, stage, update, |site| {
                        found.push((site.at, site.terms.len()));
                        Ok(())
                    })
                    .expect("linear updates");
                    let mut expected = Vec::new();
                    let position = scheme.component(update.target).position;
                    for_each_index(update.region, |at| {
                        let reads = update.reads().filter(|read| {
                            let there = PerAxis::from_fn(|a| at[a] + i64::from(read.offset[a]));
                            let source = scheme.component(read.component).position;
                            let Located::Stored { at: of, .. } = scheme.grid.resolve(source, there)
                            else {
                                return false;
                            };
                            shell.has(source, of) != shell.has(position, at)
                        });
                        let count = reads.count();
                        if count > 0 {
                            expected.push((at, count));
                        }
                    });
                    assert_eq!(found, expected);
                    crossing += found.len();
                }
            }
        }
    }
    assert!(crossing > 1000, "{crossing}");
}

/// Parts of a shell have no place in common, and together they are all places.
#[test]
fn parts_are_disjoint() {
    for scheme in schemes() {
        for ends in BOXES {
            let of = TotalBox {
                ends: PerAxis(ends),
            };
            let shell = Shell::new(&scheme, &of);
            for id in scheme.component_ids() {
                let mut places = Vec::new();
                for part in shell.parts(id) {
                    for_each_index(part, |at| places.push(at));
                }
                let mut gone_through = Vec::new();
                let done: Result<(), ()> = shell.for_each(id, |at| {
                    gone_through.push(at);
                    Ok(())
                });
                assert_eq!(done, Ok(()));
                places.sort_unstable();
                assert_eq!(places, gone_through);
            }
        }
    }
}

fn with_wave(scheme: &Scheme, direction: [i64; 3], ends: [[i64; 2]; 3]) -> Problem {
    let drive = Drive {
        component: scheme.stages[0].updates[0].target,
        wave: HostExpr::unary(HostUnary::Cos, HostExpr::Time),
    };
    Problem {
        steps: 6,
        incidents: vec![Incident {
            name: "wave".to_owned(),
            field: IncidentField::Plane(PlaneWave {
                direction: PerAxis(direction),
                drives: vec![drive],
                loss: 0.2,
            }),
            boxes: vec![TotalBox {
                ends: PerAxis(ends),
            }],
        }],
        ..Problem::default()
    }
}

/// The waves that places share are the sums of their own terms, in any order of steps.
#[test]
fn shared_corrections_are_those_of_each_place() {
    for scheme in schemes() {
        let problem = with_wave(&scheme, [1, -2, 3], BOXES[0]);
        let mut table = Corrections::new(&scheme, &problem, &NoFiles).expect("a box");
        let of_rows = table.rows.iter();
        let places =
            of_rows.flat_map(|rows| rows.places().map(|(at, wave)| (rows.group, at, wave)));
        let places: Vec<(Group, PerAxis<i64>, u32)> = places.collect();
        let used: BTreeSet<u32> = places.iter().map(|place| place.2).collect();
        assert!(
            used.len() < places.len(),
            "{} of {}",
            used.len(),
            places.len()
        );
        assert!(used.iter().all(|wave| (*wave as usize) < table.len()));
        let mut waves = Vec::new();
        for step in 0..60 {
            table.waves(&scheme, &NoFiles, step, &mut waves);
        }
        // An earlier step, and one that is not the next.
        for step in [7, 30] {
            let mut again = Vec::new();
            table.waves(&scheme, &NoFiles, step, &mut again);
            let first = step as usize * table.len();
            assert_eq!(again, waves[first..first + table.len()]);
        }
        let incident = &problem.incidents[0];
        let shell = Shell::new(&scheme, &incident.boxes[0]);
        let mut field = Field::new(&scheme, incident, &NoFiles).expect("a wave");
        let mut largest = 0.0f64;
        for step in 0..60 {
            for stage in scheme.stage_ids() {
                let when = When {
                    scheme: &scheme,
                    files: &NoFiles,
                    stage,
                    step,
                };
                let mut own = places.iter().filter(|(group, ..)| group.stage == stage);
                for update in &scheme.stages[stage.index()].updates {
                    for_each_site(&shell, &NoFiles, stage, update, |site| {
                        let terms = site.terms.iter();
                        let sum = terms.fold(0.0, |sum, t| sum + t.weight * field.value(&when, t));
                        let (group, at, wave) = own.next().expect("as many places");
                        assert_eq!((group.component, *at), (site.target, site.at));
                        let shared = waves[step as usize * table.len() + *wave as usize];
                        assert_eq!(shared.to_bits(), settled(&scheme, sum).to_bits());
                        largest = largest.max(sum.abs());
                        Ok(())
                    })
                    .expect("linear updates");
                }
                field.advance(&when);
            }
        }
        assert!(largest > 0.01, "the wave has not arrived: {largest}");
    }
}

/// A box beside an end of zeros, in a ring, and a wave into a mirror.
#[test]
fn boxes_lie_where_they_can() {
    let [scheme, _] = schemes();
    let fault = |direction, ends| {
        let problem = with_wave(&scheme, direction, ends);
        check(&scheme, &problem, &NoFiles).map_err(|refusal| refusal.fault)
    };
    let ring = Axis::INNER;
    assert_eq!(fault([0, 0, 1], BOXES[0]), Ok(()));
    assert_eq!(
        fault([0, 0, 1], [[4, 8], [5, 9], [1, 7]]),
        Err(Fault::RingEnd { axis: ring })
    );
    assert_eq!(
        fault([1, 0, 1], [[4, 8], [5, 9], [0, 11]]),
        Err(Fault::AroundRing { axis: ring })
    );
    assert!(fault([0, 0, 1], [[0, 12], [0, 13], [0, 11]]).is_err());
    let upper = false;
    assert_eq!(
        fault([1, 0, 0], [[0, 8], [5, 9], [4, 7]]),
        Err(Fault::IntoMirror {
            axis: Axis::OUTER,
            upper
        })
    );
    let mut zoned = scheme.clone();
    zoned.zones.push(torre_compiler::scheme::Zone {
        name: "somewhere".to_owned(),
        boxes: vec![PerAxis::splat(Interval::new(0, 5))],
    });
    let problem = with_wave(&zoned, [0, 0, 1], BOXES[0]);
    // A zone in which nothing is amended is none.
    assert_eq!(check(&zoned, &problem, &NoFiles), Ok(()));
}
