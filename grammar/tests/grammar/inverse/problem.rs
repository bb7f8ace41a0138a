//! Random statements of problems.

use super::{block, expr, name, region, seen, target, update_op, within};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use torre_grammar::ast::*;

fn args() -> impl Strategy<Value = Vec<Arg>> {
    vec(
        (option::of(name()), expr()).prop_map(|(name, value)| Arg { name, value }),
        0..3,
    )
}

fn incident() -> impl Strategy<Value = ProblemStmt> {
    let line = prop_oneof![
        vec(expr(), 1..4).prop_map(IncidentLine::Direction),
        (target(), expr()).prop_map(|(target, value)| IncidentLine::Drive { target, value }),
        (target(), expr()).prop_map(|(target, value)| IncidentLine::Given { target, value }),
    ];
    (name(), block(line.boxed())).prop_map(|(name, (lines, end))| ProblemStmt::Incident {
        name,
        lines,
        end,
    })
}

pub fn problem_stmt() -> BoxedStrategy<ProblemStmt> {
    let kind = || (name(), args()).prop_map(|(name, args)| BoundaryKind { name, args });
    let clause = (name(), kind(), option::of(kind()))
        .prop_map(|(axis, lower, upper)| BoundaryClause { axis, lower, upper });
    let place = prop_oneof![
        vec(expr(), 1..4).prop_map(Place::At),
        vec((name(), expr()), 1..3).prop_map(Place::Near),
        vec(within(), 1..3).prop_map(Place::In),
        expr().prop_map(Place::Where),
        Just(Place::All),
    ];
    let probed = prop_oneof![
        vec(expr(), 1..4).prop_map(Place::At),
        vec((name(), expr()), 1..3).prop_map(Place::Near),
        vec(within(), 1..3).prop_map(Place::In),
    ];
    prop_oneof![
        (vec(name(), 1..3), vec((name(), expr()), 0..3))
            .prop_map(|(path, params)| ProblemStmt::Scheme { path, params }),
        (name(), expr()).prop_map(|(name, value)| ProblemStmt::Const { name, value }),
        vec(expr(), 1..4).prop_map(ProblemStmt::Domain),
        vec(clause, 1..4).prop_map(ProblemStmt::Boundary),
        region().prop_map(ProblemStmt::Region),
        vec(name(), 1..3).prop_map(ProblemStmt::Allow),
        (name(), option::of(name()), expr()).prop_map(|(name, component, value)| {
            ProblemStmt::Coef {
                name,
                component,
                value,
            }
        }),
        (target(), expr()).prop_map(|(target, value)| ProblemStmt::Init { target, value }),
        (target(), place, update_op(), expr()).prop_map(|(target, place, op, value)| {
            ProblemStmt::Source {
                target,
                place,
                op,
                value,
            }
        }),
        incident(),
        (vec((name(), expr(), expr()), 1..4), name()).prop_map(|(ranges, from)| {
            let ends = |(axis, from, to)| Ends { axis, from, to };
            let ranges = ranges.into_iter().map(ends).collect();
            ProblemStmt::Total { ranges, from }
        }),
        (
            vec(seen(), 1..3),
            probed,
            option::of(name()),
            option::of(expr())
        )
            .prop_map(|(targets, place, name, every)| ProblemStmt::Probe {
                targets,
                place,
                name,
                every
            }),
        (name(), expr(), vec(within(), 0..3), option::of(expr())).prop_map(
            |(name, value, within, every)| ProblemStmt::Record {
                name,
                value,
                within,
                every
            }
        ),
        (
            vec(seen(), 1..3),
            (name(), expr(), any::<bool>()),
            vec(within(), 0..3),
            option::of(expr())
        )
            .prop_map(|(targets, (axis, at, is_length), within, every)| {
                let plane = Plane {
                    axis,
                    at,
                    is_length,
                };
                ProblemStmt::Slice {
                    targets,
                    plane,
                    within,
                    every,
                }
            }),
        (vec(seen(), 1..3), vec(within(), 0..3), option::of(expr())).prop_map(
            |(targets, within, every)| ProblemStmt::Volume {
                targets,
                within,
                every
            }
        ),
        (
            vec(seen(), 1..3),
            option::of((name(), expr(), any::<bool>())),
            vec(within(), 0..3),
            expr(),
            option::of(expr())
        )
            .prop_map(|(targets, plane, within, frequencies, every)| {
                let plane = plane.map(|(axis, at, is_length)| Plane {
                    axis,
                    at,
                    is_length,
                });
                ProblemStmt::Spectrum {
                    targets,
                    plane,
                    within,
                    frequencies,
                    every,
                }
            }),
        expr().prop_map(|count| ProblemStmt::Steps(Steps::Count(count))),
        expr().prop_map(|time| ProblemStmt::Steps(Steps::Until(time))),
    ]
    .boxed()
}
