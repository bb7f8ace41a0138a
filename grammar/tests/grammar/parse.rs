//! One test for each construct of the language.

mod problem;

use torre_grammar::ast::*;
use torre_grammar::source::Source;
use torre_grammar::{parse, parse_expr, parse_schedule, print};

fn source(text: &str) -> Source {
    Source::new("test", text)
}

#[track_caller]
fn file(text: &str) -> Ast {
    parse(&source(text)).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// A compact form of an expression, fully bracketed.
fn show(expr: &Expr) -> String {
    let list = |exprs: &[Expr]| exprs.iter().map(show).collect::<Vec<_>>().join(" ");
    match &expr.node {
        ExprKind::Number(value) => format!("{value}"),
        ExprKind::Text(text) => format!("{text:?}"),
        ExprKind::Name(name) => name.clone(),
        ExprKind::Path(names) => names
            .iter()
            .map(|name| name.node.as_str())
            .collect::<Vec<_>>()
            .join("::"),
        ExprKind::Member(base, name) => format!("(. {} {})", show(base), name.node),
        ExprKind::Level(base, level) => format!("(@{level:?} {})", show(base)),
        ExprKind::Offset(base, offsets) => format!("(offset {} {})", show(base), list(offsets)),
        ExprKind::List(exprs) => format!("[{}]", list(exprs)),
        ExprKind::Call { callee, args } => {
            let args = args.iter().map(|arg| match &arg.name {
                Some(name) => format!("{}={}", name.node, show(&arg.value)),
                None => show(&arg.value),
            });
            format!(
                "(call {} {})",
                show(callee),
                args.collect::<Vec<_>>().join(" ")
            )
        }
        ExprKind::Unary(op, operand) => format!("({op:?} {})", show(operand)),
        ExprKind::Binary(op, left, right) => format!("({op:?} {} {})", show(left), show(right)),
        ExprKind::If {
            condition,
            then,
            otherwise,
        } => {
            format!(
                "(if {} {} {})",
                show(condition),
                show(then),
                show(otherwise)
            )
        }
    }
}

#[track_caller]
fn expr(text: &str) -> String {
    show(&parse_expr(&source(text)).unwrap_or_else(|errors| panic!("{errors:#?}")))
}

#[test]
fn precedence() {
    assert_eq!(expr("a + b * c ^ d"), "(Add a (Mul b (Pow c d)))");
    assert_eq!(expr("a - b - c"), "(Sub (Sub a b) c)");
    assert_eq!(expr("a / b * c"), "(Mul (Div a b) c)");
    assert_eq!(expr("2 ^ 3 ^ 2"), "(Pow 2 (Pow 3 2))");
    assert_eq!(expr("-x ^ 2"), "(Neg (Pow x 2))");
    assert_eq!(expr("-x * y"), "(Mul (Neg x) y)");
    assert_eq!(expr("x ^ -1 * y"), "(Mul (Pow x (Neg 1)) y)");
    assert_eq!(expr("- -x"), "(Neg (Neg x))");
    assert_eq!(expr("(a + b) * c"), "(Mul (Add a b) c)");
    assert_eq!(
        expr("a < b and not c >= d or e == f"),
        "(Or (And (Lt a b) (Not (Ge c d))) (Eq e f))"
    );
    assert_eq!(expr("not not a"), "(Not (Not a))");
    assert_eq!(expr("a != b"), "(Ne a b)");
}

#[test]
fn numbers() {
    for (text, value) in [
        ("1", "1"),
        ("0.5", "0.5"),
        ("3e14", "300000000000000"),
        ("1.5E-3", "0.0015"),
        ("3.", "3"),
        ("2.e1", "20"),
    ] {
        assert_eq!(expr(text), value);
    }
}

#[test]
fn postfixes() {
    assert_eq!(expr("F.x"), "(. F x)");
    assert_eq!(expr("u@prev + u@next"), "(Add (@Prev u) (@Next u))");
    assert_eq!(expr("Ez[0, +1/2, -1]"), "(offset Ez 0 (Div 1 2) (Neg 1))");
    assert_eq!(expr("S.xy@prev[0, 1]"), "(offset (@Prev (. S xy)) 0 1)");
    assert_eq!(expr("d(F.z, y, order = 4,)"), "(call d (. F z) y order=4)");
    assert_eq!(expr("f()"), "(call f )");
    assert_eq!(expr("f(a == b)"), "(call f (Eq a b))");
    assert_eq!(expr("std::units::c0 * 2"), "(Mul std::units::c0 2)");
    assert_eq!(expr("[1, [2, 3,], ]"), "[1 [2 3]]");
}

#[test]
fn conditions() {
    assert_eq!(
        expr("if a < b then 1 else if c then 2 else 3 + 4"),
        "(if (Lt a b) 1 (if c 2 (Add 3 4)))"
    );
    assert_eq!(expr("1 + (if a then b else c)"), "(Add 1 (if a b c))");
}

#[test]
fn keywords_begin_names() {
    assert_eq!(
        expr("iffy + notes + order + letter + steps + x"),
        "(Add (Add (Add (Add (Add iffy notes) order) letter) steps) x)"
    );
}

#[test]
fn line_ends_that_end_nothing() {
    assert_eq!(expr("a +\n b"), "(Add a b)");
    assert_eq!(expr("(a\n + b)"), "(Add a b)");
    assert_eq!(expr("a and // why\n\n not\n b"), "(And a (Not b))");
    assert_eq!(expr("[\n1,\n2\n]"), "[1 2]");
    assert!(parse_expr(&source("a\n+ b")).is_err());
    assert_eq!(
        file("const a =\n  1\nconst b = 2; const c = 3;")
            .items
            .len(),
        3
    );
}

#[test]
fn items() {
    let ast = file(
        "use std::curl::{curl, div}\nuse lib::name\nconst c0 = 3e8\ndef f(a, n = 2) = a * n\ndef g() { let b = 1; b }",
    );
    let kinds: Vec<&ItemKind> = ast.items.iter().map(|item| &item.kind).collect();
    let [
        ItemKind::Use(several),
        ItemKind::Use(one),
        ItemKind::Const { name, .. },
        ItemKind::Def(f),
        ItemKind::Def(g),
    ] = kinds[..]
    else {
        panic!("{kinds:#?}")
    };
    assert_eq!((several.path.len(), several.names.len()), (2, 2));
    assert_eq!((one.path.len(), one.names.len()), (1, 1));
    assert_eq!(name.node, "c0");
    assert_eq!(f.params.len(), 2);
    assert!(f.params[1].default.is_some());
    assert_eq!((g.lines.len(), show(&g.body)), (1, "b".to_string()));
}

fn scheme(body: &str) -> Vec<SchemeStmt> {
    let ast = file(&format!("scheme s {{\n{body}\n}}"));
    match ast.items.into_iter().next().map(|item| item.kind) {
        Some(ItemKind::Scheme(scheme)) => {
            scheme.body.into_iter().map(|stmt| stmt.kind.node).collect()
        }
        other => panic!("{other:#?}"),
    }
}

#[test]
fn fields() {
    let body = scheme(
        "axes x, y\nparam h = 1\nconst c = 2\nfield E : vector on edges at 1/2 levels 2\nfield p : scalar on [1/2, \
         0]\nfield v : { a on nodes,\n b on [0, 1/2] } at 0",
    );
    assert!(matches!(&body[0], SchemeStmt::Axes(axes) if axes.len() == 2));
    assert!(matches!(&body[1], SchemeStmt::Param { .. }));
    assert!(matches!(&body[2], SchemeStmt::Const { .. }));
    let SchemeStmt::Field(e) = &body[3] else {
        panic!()
    };
    assert_eq!(e.shape, Shape::Vector);
    assert!(matches!(
        e.position.as_ref().map(|position| &position.node),
        Some(Position::Edges)
    ));
    assert_eq!(e.time.as_ref().map(show).as_deref(), Some("(Div 1 2)"));
    assert_eq!(e.levels.as_ref().map(show).as_deref(), Some("2"));
    let SchemeStmt::Field(p) = &body[4] else {
        panic!()
    };
    assert!(
        matches!(p.position.as_ref().map(|position| &position.node), Some(Position::Explicit(list)) if list.len() == 2)
    );
    let SchemeStmt::Field(v) = &body[5] else {
        panic!()
    };
    assert!(matches!(&v.shape, Shape::Named(components) if components.len() == 2));
    assert!(v.position.is_none() && v.time.is_some());
}

#[test]
fn coefficients() {
    let body = scheme(
        "coef eps = 1 + x\ncoef mu : vector on faces = file(\"a // b.npy\")\ncoef k on nodes = 2",
    );
    let SchemeStmt::Coef(eps) = &body[0] else {
        panic!()
    };
    assert!(eps.shape.is_none() && eps.position.is_none() && show(&eps.value) == "(Add 1 x)");
    let SchemeStmt::Coef(mu) = &body[1] else {
        panic!()
    };
    assert!(mu.shape.is_some() && mu.position.is_some());
    assert_eq!(show(&mu.value), "(call file \"a // b.npy\")");
    let SchemeStmt::Coef(k) = &body[2] else {
        panic!()
    };
    assert!(k.shape.is_none() && k.position.is_some());
}

#[test]
fn steps() {
    let body = scheme(
        "step {\n E.x += a; H -= b\n u@next = c\n let d = e\n where x < 3 and y > 1 {\n  E = 0\n }\n}",
    );
    let SchemeStmt::Step { body, .. } = &body[0] else {
        panic!()
    };
    let ops: Vec<_> = body
        .iter()
        .filter_map(|stmt| match &stmt.kind.node {
            StepStmt::Update { target, op, .. } => Some((
                target.field.node.as_str(),
                target.component.is_some(),
                target.level.is_some(),
                *op,
            )),
            _ => None,
        })
        .collect();
    let expected = [
        ("E", true, false, UpdateOp::Add),
        ("H", false, false, UpdateOp::Sub),
        ("u", false, true, UpdateOp::Set),
    ];
    assert_eq!(ops, expected);
    assert!(matches!(&body[3].kind.node, StepStmt::Let(_)));
    assert!(matches!(&body[4].kind.node, StepStmt::Where(branches) if branches[0].body.len() == 1));
}

#[test]
fn branches() {
    let text = "step { where a { b = 1 }
      // why
      else where c { // here
      } else { d = 1; where e { } } // end
      f = 2 }";
    let SchemeStmt::Step { body, .. } = &scheme(text)[0] else {
        panic!()
    };
    let StepStmt::Where(branches) = &body[0].kind.node else {
        panic!()
    };
    let conditions: Vec<_> = branches
        .iter()
        .map(|branch| branch.condition.as_ref().map(show))
        .collect();
    assert_eq!(conditions, [Some("a".into()), Some("c".into()), None]);
    assert_eq!(branches[1].comments.before, ["why"]);
    assert_eq!(branches[1].comments.trailing.as_deref(), Some("here"));
    assert_eq!(branches[2].body.len(), 2);
    assert_eq!(branches[2].end.trailing.as_deref(), Some("end"));
    assert!(matches!(&body[1].kind.node, StepStmt::Update { .. }));
}

#[test]
fn schedules() {
    let schedule = |text: &str| {
        parse_schedule(&Source::new("--schedule", text))
            .unwrap_or_else(|errors| panic!("{errors:#?}"))
    };
    let towers = schedule("(x, y): diamond(D = 2) lean +x height 64 parallel slope 3/2; z: span");
    assert_eq!(towers.name.node, "--schedule");
    let [level, span] = &towers.levels[..] else {
        panic!()
    };
    let level = &level.kind.node;
    assert_eq!(
        (
            level.axes.len(),
            level.shape.name.node.as_str(),
            level.clauses.len()
        ),
        (2, "diamond", 4)
    );
    assert!(matches!(
        &level.clauses[0],
        ScheduleClause::Lean { positive: true, .. }
    ));
    assert!(matches!(
        &level.clauses[2],
        ScheduleClause::Word { value: None, .. }
    ));
    assert!(matches!(
        &level.clauses[3],
        ScheduleClause::Word {
            value: Some(ScheduleValue::Expr(_)),
            ..
        }
    ));
    assert_eq!(span.kind.node.axes.len(), 1);

    let torre = schedule("torre(D = auto, TH = 2..8, n, (auto))");
    let values: Vec<_> = torre.levels[0]
        .kind
        .node
        .shape
        .args
        .iter()
        .map(|arg| (arg.name.is_some(), &arg.value))
        .collect();
    assert!(matches!(
        values[..],
        [
            (true, ScheduleValue::Auto),
            (true, ScheduleValue::Range(..)),
            (false, ScheduleValue::Expr(_)),
            (false, ScheduleValue::Expr(_))
        ]
    ));
    assert!(torre.levels[0].kind.node.axes.is_empty());
    assert_eq!(schedule("layerwise").levels.len(), 1);
    assert_eq!(schedule("pyramid(base=16, height=4)").levels.len(), 1);
    assert!(matches!(
        &schedule("k: cut height auto").levels[0].kind.node.clauses[0],
        ScheduleClause::Word {
            value: Some(ScheduleValue::Auto),
            ..
        }
    ));

    let ast = file(
        "schedule a for m {\n (x, y): diamond(D = 2) lean -x\n z: span\n}\nschedule b { layerwise }",
    );
    let [ItemKind::Schedule(first), ItemKind::Schedule(second)] =
        [0, 1].map(|item| &ast.items[item].kind)
    else {
        panic!("{:?}", ast.items);
    };
    assert!(first.scheme.is_some() && first.levels.len() == 2);
    assert!(second.scheme.is_none());
}

#[test]
fn comments_find_their_nodes() {
    let ast = file(
        "// head\n\n\n// use\nuse a::b // trails\n\nscheme s { // s\n\n  // axes\n  axes x, // first\n    y // \
         second\n\n  // end\n} // closed\n// last\n",
    );
    assert_eq!(ast.items[0].comments.before, ["head", "", "use"]);
    assert_eq!(ast.items[0].comments.trailing.as_deref(), Some("trails"));
    assert_eq!(ast.items[1].comments.trailing.as_deref(), Some("s"));
    let ItemKind::Scheme(scheme) = &ast.items[1].kind else {
        panic!()
    };
    let of_axes = &scheme.body[0].comments;
    assert_eq!(of_axes.before, ["axes"]);
    let inside: Vec<_> = (of_axes.inside.iter())
        .map(|c| (c.words, c.stand, c.beside, c.text.as_str()))
        .collect();
    assert_eq!(inside, [(2, Stand::Behind, None, "first")]);
    assert_eq!(of_axes.trailing.as_deref(), Some("second"));
    assert_eq!(scheme.end.before, ["", "end"]);
    assert_eq!(scheme.end.trailing.as_deref(), Some("closed"));
    assert_eq!(ast.end.before, ["last"]);
}

#[test]
fn spans_are_exact() {
    let text = "\u{feff}// é\r\nconst  a = b +   c  // d\r\n";
    let ast = file(text);
    let ItemKind::Const { name, value } = &ast.items[0].kind else {
        panic!()
    };
    let slice = |span: torre_grammar::source::Span| &text[span.start as usize..span.end as usize];
    assert_eq!(slice(name.span), "a");
    assert_eq!(slice(value.span), "b +   c");
    assert_eq!(ast.items[0].comments.before, ["é"]);
}

#[test]
fn an_empty_file_is_a_file() {
    assert!(file("").items.is_empty());
    assert_eq!(file("\n\n// only\n\n").end.before, ["only"]);
}

/// The examples of the language's reference.
#[test]
fn the_reference_is_read() {
    let reference = include_str!("../../../docs/src/language.md");
    let mut blocks = 0;
    for block in reference.split("```torre\n").skip(1) {
        let text = block.split("```").next().unwrap_or("");
        assert!(!file(text).items.is_empty());
        blocks += 1;
    }
    assert!(blocks >= 3);
}
