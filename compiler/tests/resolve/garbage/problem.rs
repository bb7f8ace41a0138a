//! Problems: boundaries, regions, incident fields, sources, probes and outputs.

use super::Bytes;
use torre_grammar::ast::*;

impl Bytes<'_> {
    pub(super) fn problem(&mut self) -> Problem {
        let mut kinds = vec![
            ProblemStmt::Scheme {
                path: vec![self.named(&["s", "s", "r"])],
                params: self.many(2, |b| (b.named(&["h", "dt"]), b.expr(1))),
            },
            ProblemStmt::Domain(match self.pick(4) {
                0 => self.many(3, |b| b.expr(1)),
                n => (0..n)
                    .map(|_| self.spanned(ExprKind::Number(8.0)))
                    .collect(),
            }),
            ProblemStmt::Steps(match self.pick(3) {
                0 => Steps::Until(self.expr(1)),
                _ => Steps::Count(self.expr(0)),
            }),
        ];
        kinds.extend(self.many(5, |b| match b.pick(13) {
            10 => ProblemStmt::Incident {
                name: b.named(&["w", "v"]),
                lines: b.incident(),
                end: Comments::default(),
            },
            11 => ProblemStmt::Total {
                ranges: b.many(3, |b| Ends {
                    axis: b.named(&["x", "y"]),
                    from: b.expr(0),
                    to: b.expr(0),
                }),
                from: b.named(&["w", "v"]),
            },
            0 => ProblemStmt::Boundary(b.many(3, |b| BoundaryClause {
                axis: b.named(&["x", "y", "z"]),
                lower: b.boundary(),
                upper: b.maybe(|b| b.boundary()),
            })),
            1 => ProblemStmt::Coef {
                name: b.named(&["eps", "k"]),
                component: b.maybe(|b| b.named(&["x", "xy"])),
                value: b.coef_value(),
            },
            2 => ProblemStmt::Init {
                target: b.target(),
                value: b.coef_value(),
            },
            3 => {
                let target = b.target();
                let place = match b.pick(3) {
                    0 => Place::Where(b.expr(3)),
                    1 => Place::All,
                    _ => b.place(),
                };
                ProblemStmt::Source {
                    target,
                    place,
                    op: *b.one(&[UpdateOp::Add, UpdateOp::Sub, UpdateOp::Set]),
                    value: b.expr(4),
                }
            }
            4 => ProblemStmt::Probe {
                targets: b.many(2, |b| b.shown()),
                place: b.place(),
                name: b.maybe(|b| b.name()),
                every: b.maybe(|b| b.expr(0)),
            },
            5 => ProblemStmt::Slice {
                targets: b.many(2, |b| b.shown()),
                plane: Plane {
                    axis: b.named(&["x", "y", "z"]),
                    at: b.expr(0),
                    is_length: b.pick(2) == 0,
                },
                within: b.within(),
                every: b.maybe(|b| b.expr(0)),
            },
            12 => ProblemStmt::Spectrum {
                targets: b.many(2, |b| b.shown()),
                plane: b.maybe(|b| Plane {
                    axis: b.named(&["x", "y", "z"]),
                    at: b.expr(0),
                    is_length: b.pick(2) == 0,
                }),
                within: b.within(),
                frequencies: b.coef_value(),
                every: b.maybe(|b| b.expr(0)),
            },
            6 => ProblemStmt::Volume {
                targets: b.many(2, |b| b.shown()),
                within: b.within(),
                every: b.maybe(|b| b.expr(0)),
            },
            7 => ProblemStmt::Region(b.region()),
            8 => ProblemStmt::Allow(b.many(2, |b| b.named(&["W0501", "N0501", "x"]))),
            9 => ProblemStmt::Record {
                name: b.named(&["e", "u"]),
                value: b.reduction(),
                within: b.within(),
                every: b.maybe(|b| b.expr(0)),
            },
            _ => ProblemStmt::Const {
                name: b.named(&["n", "h"]),
                value: b.expr(2),
            },
        }));
        Problem {
            name: self.named(&["p"]),
            body: kinds.into_iter().map(|k| self.stmt(k)).collect(),
            end: Comments::default(),
        }
    }

    pub(super) fn incident(&mut self) -> Vec<Stmt<IncidentLine>> {
        let lines = self.many(3, |b| match b.pick(3) {
            0 => IncidentLine::Direction(b.many(3, |b| b.expr(0))),
            1 => IncidentLine::Drive {
                target: b.target(),
                value: b.expr(3),
            },
            _ => IncidentLine::Given {
                target: b.target(),
                value: b.expr(3),
            },
        });
        lines.into_iter().map(|line| self.stmt(line)).collect()
    }

    pub(super) fn place(&mut self) -> Place {
        match self.pick(3) {
            0 => Place::At(self.many(3, |b| b.expr(0))),
            1 => Place::Near(self.many(3, |b| (b.named(&["x", "y"]), b.expr(0)))),
            _ => Place::In(self.within()),
        }
    }

    pub(super) fn within(&mut self) -> Vec<Within> {
        self.many(3, |b| match b.pick(3) {
            0 => Within::Region(b.expr(3)),
            _ => Within::Range {
                axis: b.named(&["x", "y"]),
                from: b.expr(0),
                to: b.maybe(|b| b.expr(0)),
            },
        })
    }

    /// A target that an output may show.
    pub(super) fn shown(&mut self) -> Target {
        match self.pick(4) {
            0 => Target {
                field: self.named(&["eps", "k", "disc", "h"]),
                ..self.target()
            },
            1 => Target {
                state: Some(self.named(&["psi", "q", "E"])),
                ..self.target()
            },
            _ => self.target(),
        }
    }

    pub(super) fn region(&mut self) -> Region {
        Region {
            name: self.named(&["disc", "q", "a"]),
            position: self.maybe(|b| b.position()),
            condition: self.expr(4),
        }
    }

    pub(super) fn boundary(&mut self) -> BoundaryKind {
        BoundaryKind {
            name: self.named(&["pec", "pmc", "zero", "periodic", "odd", "free", "fixed"]),
            args: Vec::new(),
        }
    }
}
