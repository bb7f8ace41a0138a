//! Programs made of random bytes: trees of every form, with names that often mean something.

mod problem;

use torre_grammar::ast::*;
use torre_grammar::source::{Span, Spanned};

/// Draws choices from bytes; when they are used up, every choice is the first.
pub struct Bytes<'a> {
    bytes: &'a [u8],
    /// Ends the program before it grows too large.
    nodes: usize,
}

const NAMES: &[&str] = &[
    "x", "y", "z", "h", "dt", "t", "pi", "E", "H", "u", "S", "q", "eps", "k", "a", "b", "f", "g",
    "d", "dc", "d2", "avg", "sqrt", "exp", "min", "max", "sym", "abs", "hx", "xx", "xy", "yx", "n",
    "std", "curl", "nothing", "disc", "nowhere", "nx", "lx", "hy", "atan2", "floor", "s", "p",
];
const NUMBERS: &[f64] = &[
    0.0,
    1.0,
    2.0,
    0.5,
    4.0,
    -1.0,
    3.0,
    0.25,
    6.0,
    8.0,
    32.0,
    1e-3,
    1e300,
    1e-320,
    -0.0,
    64.0,
    f64::INFINITY,
    f64::NAN,
    1e18,
    0.1,
];

impl<'a> Bytes<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, nodes: 0 }
    }

    fn pick(&mut self, n: usize) -> usize {
        match self.bytes.split_first() {
            Some((first, rest)) => {
                self.bytes = rest;
                usize::from(*first) % n.max(1)
            }
            None => 0,
        }
    }

    fn one<'t, T>(&mut self, list: &'t [T]) -> &'t T {
        &list[self.pick(list.len())]
    }

    fn many<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.pick(most + 1)).map(|_| make(self)).collect()
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.pick(2) == 1).then(|| make(self))
    }

    fn span(&mut self) -> Span {
        Span::new(self.pick(64), self.pick(64))
    }

    fn spanned<T>(&mut self, node: T) -> Spanned<T> {
        Spanned::new(node, self.span())
    }

    fn name(&mut self) -> Name {
        let name = self.one(NAMES).to_string();
        self.spanned(name)
    }

    fn named(&mut self, names: &[&str]) -> Name {
        // Mostly one of these, so that programs get far.
        if self.pick(8) == 7 {
            return self.name();
        }
        let name = self.one(names).to_string();
        self.spanned(name)
    }

    /// Mostly an expression of a record.
    fn reduction(&mut self) -> Expr {
        if self.pick(8) == 7 {
            return self.expr(2);
        }
        let name = self.one(&["sum", "min", "max"]).to_string();
        let callee = Box::new(self.spanned(ExprKind::Name(name)));
        let args = vec![Arg {
            name: None,
            value: self.expr(3),
        }];
        self.spanned(ExprKind::Call { callee, args })
    }

    fn boxed(&mut self, depth: usize) -> Box<Expr> {
        Box::new(self.expr(depth))
    }

    pub fn expr(&mut self, depth: usize) -> Expr {
        self.nodes += 1;
        let kinds = if depth == 0 || self.nodes > 2000 {
            3
        } else {
            14
        };
        let d = depth.saturating_sub(1);
        let kind = match self.pick(kinds) {
            0 => ExprKind::Number(*self.one(NUMBERS)),
            1 | 2 => ExprKind::Name(self.one(NAMES).to_string()),
            3 => ExprKind::Path(self.many(3, |b| b.name())),
            4 => {
                let of = self.boxed(d);
                ExprKind::Member(of, self.name())
            }
            5 => {
                let of = self.boxed(d);
                ExprKind::Level(of, *self.one(&[Level::Next, Level::Prev]))
            }
            6 => {
                let of = self.boxed(d);
                ExprKind::Offset(of, self.many(3, |b| b.expr(d.min(1))))
            }
            7 => ExprKind::List(self.many(3, |b| b.expr(d))),
            8 | 9 => self.call(d),
            10 => ExprKind::Unary(*self.one(&[UnaryOp::Neg, UnaryOp::Not]), self.boxed(d)),
            11 | 12 => {
                use BinaryOp::*;
                let op = *self.one(&[
                    Add, Sub, Mul, Div, Pow, Lt, Le, Gt, Ge, Eq, Ne, And, Or, Add, Mul,
                ]);
                ExprKind::Binary(op, self.boxed(d), self.boxed(d))
            }
            _ => ExprKind::If {
                condition: self.boxed(d),
                then: self.boxed(d),
                otherwise: self.boxed(d),
            },
        };
        self.spanned(kind)
    }

    fn call(&mut self, depth: usize) -> ExprKind {
        const LATTICE: [&str; 4] = ["d", "dc", "d2", "avg"];
        if self.pick(2) == 0 {
            let callee = ExprKind::Name(self.one(&LATTICE).to_string());
            let callee = Box::new(self.spanned(callee));
            let axis = self.one(&["x", "y", "z"]).to_string();
            let mut args = vec![
                Arg {
                    name: None,
                    value: self.expr(depth),
                },
                Arg {
                    name: None,
                    value: self.spanned(ExprKind::Name(axis)),
                },
            ];
            args.extend(self.maybe(|b| Arg {
                name: b.maybe(|b| b.named(&["order"])),
                value: b.expr(1),
            }));
            return ExprKind::Call { callee, args };
        }
        let callee = ExprKind::Name(self.one(NAMES).to_string());
        let callee = match self.pick(6) {
            0 => self.boxed(depth),
            _ => Box::new(self.spanned(callee)),
        };
        let args = self.many(4, |b| Arg {
            name: match b.pick(4) {
                0 => Some(b.name()),
                _ => None,
            },
            value: b.expr(depth),
        });
        ExprKind::Call { callee, args }
    }

    fn stmt<T>(&mut self, kind: T) -> Stmt<T> {
        Stmt {
            comments: Comments::default(),
            kind: self.spanned(kind),
        }
    }

    fn position(&mut self) -> Spanned<Position> {
        let position = match self.pick(6) {
            0 => Position::Nodes,
            1 => Position::Edges,
            2 => Position::Faces,
            3 => Position::Cells,
            _ => Position::Explicit(self.many(3, |b| b.expr(0))),
        };
        self.spanned(position)
    }

    fn shape(&mut self) -> Shape {
        match self.pick(5) {
            0 | 1 => Shape::Scalar,
            2 => Shape::Vector,
            3 => Shape::Tensor,
            _ => Shape::Named(self.many(3, |b| (b.name(), b.position()))),
        }
    }

    fn coef_value(&mut self) -> Expr {
        match self.pick(5) {
            0 => {
                let (callee, file) = *self.one(&[
                    ("file", "eps.npy"),
                    ("file", "no.npy"),
                    ("table", "wave.csv"),
                    ("table", "eps.npy"),
                ]);
                let text = self.spanned(ExprKind::Text(file.to_string()));
                let mut args = vec![Arg {
                    name: None,
                    value: text,
                }];
                args.extend(self.many(2, |b| Arg {
                    name: b.maybe(|b| b.named(&["at", "column", "outside"])),
                    value: b.expr(1),
                }));
                let callee = self.spanned(ExprKind::Name(callee.to_string()));
                self.spanned(ExprKind::Call {
                    callee: Box::new(callee),
                    args,
                })
            }
            _ => self.expr(3),
        }
    }

    fn target(&mut self) -> Target {
        Target {
            state: None,
            field: self.named(&["E", "H", "u", "S"]),
            component: self.maybe(|b| b.named(&["x", "y", "xy"])),
            level: match self.pick(8) {
                0 => Some(self.spanned(Level::Next)),
                1 => Some(self.spanned(Level::Prev)),
                _ => None,
            },
        }
    }

    fn step(&mut self, depth: usize) -> Vec<Stmt<StepStmt>> {
        self.many(5, |b| {
            let kind = match b.pick(7) {
                6 => StepStmt::Allow(b.many(2, |b| b.named(&["W0301", "E0101", "all"]))),
                0 => StepStmt::Let(Let {
                    name: b.named(&["a", "b"]),
                    value: b.expr(4),
                }),
                1 if depth > 0 => {
                    let mut branches = b.many(3, |b| Branch {
                        comments: Comments::default(),
                        condition: b.maybe(|b| b.expr(3)),
                        body: b.step(depth - 1),
                        end: Comments::default(),
                    });
                    let first = Branch {
                        comments: Comments::default(),
                        condition: Some(b.expr(3)),
                        body: b.step(depth - 1),
                        end: Comments::default(),
                    };
                    branches.insert(0, first);
                    StepStmt::Where(branches)
                }
                _ => StepStmt::Update {
                    target: b.target(),
                    op: *b.one(&[UpdateOp::Add, UpdateOp::Sub, UpdateOp::Set]),
                    value: b.expr(5),
                },
            };
            b.stmt(kind)
        })
    }

    fn scheme(&mut self) -> Scheme {
        let axes = match self.pick(6) {
            0 => self.many(4, |b| b.name()),
            n => ["x", "y", "z"][..n.min(3)]
                .iter()
                .map(|a| self.spanned(a.to_string()))
                .collect(),
        };
        let mut body = vec![self.stmt(SchemeStmt::Axes(axes))];
        for name in ["h", "dt"] {
            if self.pick(3) == 0 {
                let statement = SchemeStmt::Param {
                    name: self.named(&[name]),
                    value: self.expr(1),
                };
                body.push(self.stmt(statement));
            }
        }
        for name in ["E", "H", "u", "S"] {
            let field = Field {
                name: self.named(&[name]),
                shape: self.shape(),
                position: match self.pick(8) {
                    0 => None,
                    _ => Some(self.position()),
                },
                time: self.maybe(|b| b.expr(0)),
                levels: match self.pick(2) {
                    0 => None,
                    _ => {
                        let two = ExprKind::Number(*self.one(&[2.0, 1.0, 3.0]));
                        Some(self.spanned(two))
                    }
                },
            };
            body.push(self.stmt(SchemeStmt::Field(field)));
        }
        for name in ["eps", "k"] {
            let coef = Coef {
                name: self.named(&[name]),
                shape: self.maybe(|b| {
                    let shape = b.shape();
                    b.spanned(shape)
                }),
                position: self.maybe(|b| b.position()),
                value: self.coef_value(),
            };
            body.push(self.stmt(SchemeStmt::Coef(coef)));
        }
        if self.pick(3) == 0 {
            let side = SchemeStmt::Side {
                name: self.named(&["free", "fixed", "pec"]),
                parities: self.many(3, |b| SideParity {
                    field: b.named(&["E", "H", "u", "S"]),
                    component: b.maybe(|b| b.named(&["x", "xy"])),
                    odd: b.pick(2) == 0,
                }),
            };
            body.push(self.stmt(side));
        }
        for _ in 0..self.pick(3) {
            let region = self.region();
            body.push(self.stmt(SchemeStmt::Region(region)));
        }
        for _ in 0..1 + self.pick(8) / 7 {
            let step = SchemeStmt::Step {
                body: self.step(2),
                end: Comments::default(),
            };
            body.push(self.stmt(step));
        }
        Scheme {
            name: self.named(&["s"]),
            base: None,
            body,
            end: Comments::default(),
        }
    }

    /// A scheme derived from another one, perhaps from itself.
    fn derived(&mut self) -> Scheme {
        let mut scheme = self.scheme();
        scheme.name = self.named(&["s", "r", "q"]);
        scheme.base = Some(vec![self.named(&["s", "r"])]);
        if self.pick(4) > 0 {
            scheme
                .body
                .retain(|stmt| !matches!(stmt.kind.node, SchemeStmt::Axes(_)));
        }
        let rest = self.pick(8);
        scheme.body.truncate(rest);
        if self.pick(3) > 0 {
            let step = SchemeStmt::Step {
                body: self.step(2),
                end: Comments::default(),
            };
            scheme.body.push(self.stmt(step));
        }
        scheme
    }

    pub fn ast(&mut self) -> Ast {
        let mut kinds = vec![
            ItemKind::Scheme(self.scheme()),
            ItemKind::Problem(self.problem()),
        ];
        kinds.extend(self.many(5, |b| match b.pick(5) {
            4 => ItemKind::Scheme(b.derived()),
            0 => ItemKind::Use(Use {
                path: b.many(2, |b| b.named(&["std", "curl"])),
                names: b.many(2, |b| b.named(&["curl", "f"])),
            }),
            1 => ItemKind::Const {
                name: b.named(&["n", "g"]),
                value: b.expr(3),
            },
            2 => ItemKind::Schedule(Schedule {
                name: b.name(),
                scheme: b.maybe(|b| b.named(&["s"])),
                levels: Vec::new(),
                end: Comments::default(),
            }),
            _ => ItemKind::Def(Def {
                name: b.named(&["f", "g"]),
                params: b.many(3, |b| Param {
                    name: b.named(&["a", "b"]),
                    default: b.maybe(|b| b.expr(1)),
                }),
                lines: {
                    let condition = b.maybe(|b| b.expr(2));
                    let condition = condition.map(|c| b.stmt(DefLine::Require(c)));
                    let bound = b.many(2, |b| {
                        let bound = Let {
                            name: b.named(&["a", "b"]),
                            value: b.expr(3),
                        };
                        b.stmt(DefLine::Let(bound))
                    });
                    condition.into_iter().chain(bound).collect()
                },
                body: b.expr(4),
                body_comments: Comments::default(),
                end: Comments::default(),
            }),
        }));
        Ast {
            items: kinds
                .into_iter()
                .map(|kind| Item {
                    comments: Comments::default(),
                    kind,
                })
                .collect(),
            end: Comments::default(),
        }
    }
}
