//! `parse(print(ast)) == ast` for random trees, and `print(parse(print(ast))) == print(ast)`.

mod problem;

use problem::problem_stmt;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use torre_grammar::ast::*;
use torre_grammar::source::{Source, Span, Spanned};
use torre_grammar::{KEYWORDS, parse, parse_expr, print, print_expr};

fn spanned<T>(node: T) -> Spanned<T> {
    Spanned::new(node, Span::default())
}

fn boxed(expr: Expr) -> Box<Expr> {
    Box::new(expr)
}

fn name() -> impl Strategy<Value = Name> {
    let usual = "x|at|on|auto|lean|file|every|levels|in|as|for|steps|prev|region|until|odd|drive|direction|from|total";
    let words = prop_oneof![4 => "[a-zA-Z_][a-zA-Z0-9_]{0,4}", 1 => usual];
    words
        .prop_filter("keyword", |name| !KEYWORDS.contains(&name.as_str()))
        .prop_map(spanned)
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        (0u32..300).prop_map(f64::from),
        (0.0..10.0),
        any::<f64>()
            .prop_map(f64::abs)
            .prop_filter("finite", |value| value.is_finite())
    ]
}

fn unary_op() -> impl Strategy<Value = UnaryOp> {
    prop_oneof![Just(UnaryOp::Neg), Just(UnaryOp::Not)]
}

fn binary_op() -> impl Strategy<Value = BinaryOp> {
    use BinaryOp::*;
    proptest::sample::select(vec![
        Add, Sub, Mul, Div, Pow, Lt, Le, Gt, Ge, Eq, Ne, And, Or,
    ])
}

fn level() -> impl Strategy<Value = Level> {
    prop_oneof![Just(Level::Next), Just(Level::Prev)]
}

fn expr() -> BoxedStrategy<Expr> {
    let leaf = prop_oneof![
        number().prop_map(ExprKind::Number),
        name().prop_map(|name| ExprKind::Name(name.node)),
        vec(name(), 2..4).prop_map(ExprKind::Path),
        "[^\"\n\r]{0,9}".prop_map(ExprKind::Text),
    ];
    leaf.prop_map(spanned)
        .prop_recursive(6, 48, 2, |inner| {
            let arg = (option::weighted(0.3, name()), inner.clone())
                .prop_map(|(name, value)| Arg { name, value });
            prop_oneof![
                (inner.clone(), name())
                    .prop_map(|(base, name)| ExprKind::Member(boxed(base), name)),
                (inner.clone(), level())
                    .prop_map(|(base, level)| ExprKind::Level(boxed(base), level)),
                (inner.clone(), vec(inner.clone(), 0..4))
                    .prop_map(|(base, offsets)| ExprKind::Offset(boxed(base), offsets)),
                vec(inner.clone(), 0..4).prop_map(ExprKind::List),
                (inner.clone(), vec(arg, 0..4)).prop_map(|(callee, args)| ExprKind::Call {
                    callee: boxed(callee),
                    args
                }),
                (unary_op(), inner.clone())
                    .prop_map(|(op, operand)| ExprKind::Unary(op, boxed(operand))),
                (binary_op(), inner.clone(), inner.clone())
                    .prop_map(|(op, left, right)| ExprKind::Binary(op, boxed(left), boxed(right))),
                (inner.clone(), inner.clone(), inner).prop_map(|(condition, then, otherwise)| {
                    ExprKind::If {
                        condition: boxed(condition),
                        then: boxed(then),
                        otherwise: boxed(otherwise),
                    }
                }),
            ]
            .prop_map(spanned)
        })
        .boxed()
}

/// Comment lines; an empty one is a blank line.
fn comment() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => "[a-zé(/*\"{;] ?[a-z(//\"}]{0,8}[a-z]",
        1 => Just(" ".to_string()),
        1 => Just("  indented".to_string()),
    ]
}

fn comments() -> BoxedStrategy<Comments> {
    let lines = vec(prop_oneof![2 => comment(), 1 => Just(String::new())], 0..3);
    let full = (lines, option::weighted(0.3, comment())).prop_map(|(lines, trailing)| Comments {
        before: canonical(lines),
        trailing,
        inside: Vec::new(),
    });
    prop_oneof![3 => Just(Comments::default()), 1 => full].boxed()
}

/// Blank lines stand alone.
fn canonical(mut lines: Vec<String>) -> Vec<String> {
    lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
    lines
}

/// No blank line opens a block.
fn without_first_blank(mut comments: Comments) -> Comments {
    if comments.before.first().is_some_and(String::is_empty) {
        comments.before.remove(0);
    }
    comments
}

fn without_last_blank(mut comments: Comments) -> Comments {
    while comments.before.last().is_some_and(String::is_empty) {
        comments.before.pop();
    }
    comments
}

fn block<T: std::fmt::Debug + Clone + 'static>(
    node: BoxedStrategy<T>,
) -> BoxedStrategy<(Vec<Stmt<T>>, Comments)> {
    let stmt = (comments(), node).prop_map(|(comments, node)| Stmt {
        comments,
        kind: spanned(node),
    });
    (vec(stmt, 0..5), comments())
        .prop_map(|(mut body, mut end)| {
            if let Some(first) = body.first_mut() {
                first.comments = without_first_blank(std::mem::take(&mut first.comments));
            } else {
                end = without_first_blank(end);
            }
            (body, without_last_blank(end))
        })
        .boxed()
}

fn position() -> impl Strategy<Value = Spanned<Position>> {
    let explicit = vec(expr(), 0..4).prop_map(Position::Explicit);
    prop_oneof![
        Just(Position::Nodes),
        Just(Position::Edges),
        Just(Position::Faces),
        Just(Position::Cells),
        explicit
    ]
    .prop_map(spanned)
}

fn shape() -> impl Strategy<Value = Shape> {
    let named = vec((name(), position()), 1..4).prop_map(Shape::Named);
    prop_oneof![
        Just(Shape::Scalar),
        Just(Shape::Vector),
        Just(Shape::Tensor),
        named
    ]
}

fn target() -> impl Strategy<Value = Target> {
    (
        name(),
        option::of(name()),
        option::of(level().prop_map(spanned)),
    )
        .prop_map(|(field, component, level)| Target {
            state: None,
            field,
            component,
            level,
        })
}

/// The target of a probe or an output.
fn seen() -> impl Strategy<Value = Target> {
    (target(), option::of(name())).prop_map(|(target, state)| Target { state, ..target })
}

fn update_op() -> impl Strategy<Value = UpdateOp> {
    prop_oneof![
        Just(UpdateOp::Set),
        Just(UpdateOp::Add),
        Just(UpdateOp::Sub)
    ]
}

fn step_stmt() -> BoxedStrategy<StepStmt> {
    let leaf = prop_oneof![
        3 => (target(), update_op(), expr()).prop_map(|(target, op, value)| StepStmt::Update { target, op, value }),
        1 => (name(), expr()).prop_map(|(name, value)| StepStmt::Let(Let { name, value })),
        1 => vec(name(), 1..3).prop_map(StepStmt::Allow),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let branch = || {
            (
                comments(),
                option::weighted(0.7, expr()),
                block(inner.clone()),
            )
                .prop_map(|(mut comments, condition, (body, end))| {
                    comments.before.retain(|line| !line.is_empty());
                    Branch {
                        comments,
                        condition,
                        body,
                        end,
                    }
                })
        };
        (branch(), expr(), vec(branch(), 0..3)).prop_map(|(mut first, condition, mut rest)| {
            first.comments = Comments::default();
            first.condition = Some(condition);
            let last = rest.iter().position(|branch| branch.condition.is_none());
            rest.truncate(last.map_or(rest.len(), |last| last + 1));
            StepStmt::Where(std::iter::once(first).chain(rest).collect())
        })
    })
    .boxed()
}

fn region() -> impl Strategy<Value = Region> {
    (name(), option::of(position()), expr()).prop_map(|(name, position, condition)| Region {
        name,
        position,
        condition,
    })
}

fn within() -> impl Strategy<Value = Within> {
    prop_oneof![
        (name(), expr(), option::of(expr())).prop_map(|(axis, from, to)| Within::Range {
            axis,
            from,
            to
        }),
        expr().prop_map(Within::Region),
    ]
}

fn scheme_stmt() -> BoxedStrategy<SchemeStmt> {
    let field = (
        name(),
        shape(),
        position(),
        option::of(expr()),
        option::of(expr()),
    )
        .prop_map(|(name, shape, position, time, levels)| {
            let position = if matches!(shape, Shape::Named(_)) {
                None
            } else {
                Some(position)
            };
            SchemeStmt::Field(Field {
                name,
                shape,
                position,
                time,
                levels,
            })
        });
    let parity = (name(), option::of(name()), any::<bool>()).prop_map(|(field, component, odd)| {
        SideParity {
            field,
            component,
            odd,
        }
    });
    let coef = (
        name(),
        option::of(shape().prop_map(spanned)),
        option::of(position()),
        expr(),
    )
        .prop_map(|(name, shape, position, value)| {
            SchemeStmt::Coef(Coef {
                name,
                shape,
                position,
                value,
            })
        });
    prop_oneof![
        vec(name(), 1..4).prop_map(SchemeStmt::Axes),
        (name(), expr()).prop_map(|(name, value)| SchemeStmt::Param { name, value }),
        (name(), expr()).prop_map(|(name, value)| SchemeStmt::Const { name, value }),
        field,
        coef,
        region().prop_map(SchemeStmt::Region),
        (name(), vec(parity, 1..3))
            .prop_map(|(name, parities)| SchemeStmt::Side { name, parities }),
        block(step_stmt()).prop_map(|(body, end)| SchemeStmt::Step { body, end }),
        vec(name(), 1..3).prop_map(SchemeStmt::Allow),
    ]
    .boxed()
}

fn schedule_level() -> BoxedStrategy<ScheduleLevel> {
    let value = || {
        prop_oneof![
            expr().prop_map(ScheduleValue::Expr),
            Just(ScheduleValue::Auto),
            (expr(), expr()).prop_map(|(from, to)| ScheduleValue::Range(from, to)),
        ]
    };
    let arg = (option::of(name()), value()).prop_map(|(name, value)| ScheduleArg { name, value });
    let word = name().prop_filter("not a clause", |name| {
        !matches!(name.node.as_str(), "lean" | "auto")
    });
    let clause = prop_oneof![
        (any::<bool>(), name())
            .prop_map(|(positive, axis)| ScheduleClause::Lean { positive, axis }),
        (word, option::of(value())).prop_map(|(word, value)| ScheduleClause::Word { word, value }),
    ];
    (vec(name(), 0..4), name(), vec(arg, 0..3), vec(clause, 0..4))
        .prop_map(|(axes, name, args, clauses)| ScheduleLevel {
            axes,
            shape: ScheduleTerm { name, args },
            clauses,
        })
        .boxed()
}

fn def() -> impl Strategy<Value = Def> {
    let param = (name(), option::of(expr())).prop_map(|(name, default)| Param { name, default });
    let line = prop_oneof![
        expr().prop_map(DefLine::Require),
        (name(), expr()).prop_map(|(name, value)| DefLine::Let(Let { name, value })),
        (name(), expr()).prop_map(|(name, value)| DefLine::Next { name, value }),
        (vec(name(), 1..3), option::of(expr()))
            .prop_map(|(names, region)| DefLine::State { names, region }),
    ]
    .boxed();
    (name(), vec(param, 0..4), block(line), expr(), comments()).prop_map(
        |(name, params, (mut lines, end), body, mut of_body)| {
            lines.sort_by_key(|line| !matches!(line.kind.node, DefLine::Require(_)));
            if let Some(first) = lines.first_mut() {
                first.comments = without_first_blank(std::mem::take(&mut first.comments));
            }
            if lines.is_empty() {
                of_body = without_first_blank(of_body);
            }
            Def {
                name,
                params,
                lines,
                body,
                body_comments: of_body,
                end,
            }
        },
    )
}

fn item() -> impl Strategy<Value = ItemKind> {
    prop_oneof![
        (vec(name(), 1..3), vec(name(), 1..4))
            .prop_map(|(path, names)| ItemKind::Use(Use { path, names })),
        (name(), expr()).prop_map(|(name, value)| ItemKind::Const { name, value }),
        def().prop_map(ItemKind::Def),
        (def(), name()).prop_map(|(def, wall)| ItemKind::Layer(Layer { def, wall })),
        (name(), option::of(vec(name(), 1..3)), block(scheme_stmt())).prop_map(
            |(name, base, (body, end))| ItemKind::Scheme(Scheme {
                name,
                base,
                body,
                end
            })
        ),
        (name(), block(problem_stmt()))
            .prop_map(|(name, (body, end))| ItemKind::Problem(Problem { name, body, end })),
        (name(), option::of(name()), block(schedule_level())).prop_map(
            |(name, scheme, (levels, end))| ItemKind::Schedule(Schedule {
                name,
                scheme,
                levels,
                end
            })
        ),
    ]
}

/// The comments that a blank line around a block implies are not recorded.
fn ast() -> impl Strategy<Value = Ast> {
    let item = (comments(), item()).prop_map(|(comments, kind)| Item { comments, kind });
    (vec(item, 0..4), comments()).prop_map(|(mut items, mut end)| {
        let none = Comments::default();
        let apart = |item: &Item| match &item.kind {
            ItemKind::Use(_) | ItemKind::Const { .. } => false,
            ItemKind::Def(def) => {
                !def.lines.is_empty() || def.body_comments != none || def.end != none
            }
            _ => true,
        };
        let blocks: Vec<bool> = items.iter().map(apart).collect();
        for (index, item) in items.iter_mut().enumerate() {
            if index == 0 || blocks[index] || blocks[index - 1] {
                item.comments = without_first_blank(std::mem::take(&mut item.comments));
            }
        }
        if items.is_empty() {
            end = without_first_blank(end);
        }
        end.trailing = None;
        Ast {
            items,
            end: without_last_blank(end),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn expressions_are_read_back(values in vec(expr(), 4)) {
        for value in values {
            let text = print_expr(&value);
            let read = parse_expr(&Source::new("expr", text.as_str()));
            prop_assert!(read.is_ok(), "{text}\n{read:#?}");
            prop_assert_eq!(read.ok(), Some(value), "{}", text);
        }
    }

    #[test]
    fn files_are_read_back(tree in ast()) {
        let text = print(&tree);
        match parse(&Source::new("file", text.as_str())) {
            Ok(read) => {
                prop_assert_eq!(&read, &tree, "{}", text);
                prop_assert_eq!(print(&read), text);
            }
            Err(errors) => prop_assert!(false, "{text}\n{errors:#?}"),
        }
    }

    /// Any text gives a tree or errors that point into it.
    #[test]
    fn any_text_is_answered(text in ".*") {
        if let Err(errors) = parse(&Source::new("text", text.as_str())) {
            prop_assert!(!errors.0.is_empty());
        }
    }

    /// Texts made of the language's own words reach further.
    #[test]
    fn any_words_are_answered(words in vec(proptest::sample::select(WORDS.to_vec()), 0..60)) {
        let text = words.join(" ");
        if let Ok(tree) = parse(&Source::new("words", text.as_str())) {
            let printed = print(&tree);
            let read = parse(&Source::new("printed", printed.as_str()));
            prop_assert_eq!(read.ok(), Some(tree), "{}\n{}", text, printed);
        }
    }
}

const WORDS: [&str; 63] = [
    "scheme", "problem", "schedule", "def", "const", "use", "axes", "param", "field", "coef",
    "step", "let", "where", "if", "then", "else", "and", "or", "not", "a", "x", "E", "domain",
    "boundary", "init", "source", "probe", "record", "output", "slice", "steps", "on", "at",
    "nodes", "vector", "scalar", "lean", "region", "in", "1", "0.5", "3..9", "\"s\"", "(", ")",
    "[", "]", "{", "}", ",", ":", "::", "=", "+=", "-", "+", "*", "^", "<", "\n", ";", "// c\n",
    "@prev",
];

/// A record tells the places of its numbers by parentheses at the head of a sum.
#[test]
fn a_sum_at_the_head_of_a_sum_keeps_its_parentheses() {
    for (text, printed) in [
        ("(a-2) + b", "(a - 2) + b"),
        ("((a + b) - c) + d", "((a + b) - c) + d"),
        ("(a*2) + b", "a*2 + b"),
        ("(a*b) * c", "a * b * c"),
        ("((a + b))", "a + b"),
        ("a + (b + c)", "a + (b + c)"),
    ] {
        let read = parse_expr(&Source::new("text", text)).expect(text);
        assert_eq!(print_expr(&read), printed);
        let again = parse_expr(&Source::new("printed", printed)).expect(printed);
        assert_eq!(print_expr(&again), printed);
    }
}
