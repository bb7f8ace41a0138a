//! Statements of problems.

use super::*;

fn problem(line: &str) -> ProblemStmt {
    let ast = file(&format!("problem p {{ {line} }}"));
    match ast.items.into_iter().next().map(|item| item.kind) {
        Some(ItemKind::Problem(problem)) => match problem.body.into_iter().next() {
            Some(stmt) => stmt.kind.node,
            None => panic!("no statement"),
        },
        other => panic!("{other:#?}"),
    }
}

#[test]
fn domains() {
    let sizes = |line: &str| match problem(line) {
        ProblemStmt::Domain(sizes) => sizes.iter().map(show).collect::<Vec<_>>().join(" | "),
        other => panic!("{other:#?}"),
    };
    assert_eq!(sizes("domain 256 x 256 x 256"), "256 | 256 | 256");
    assert_eq!(sizes("domain 2*n x n x n"), "(Mul 2 n) | n | n");
    assert_eq!(sizes("domain 256x128"), "256 | 128");
    assert_eq!(sizes("domain 256x128x64"), "256 | 128 | 64");
    assert_eq!(sizes("domain x x x"), "x | x");
    assert_eq!(sizes("domain 4x n"), "4 | n");
    assert_eq!(sizes("domain (a + b) x 3"), "(Add a b) | 3");
    assert_eq!(sizes("domain 100"), "100");
}

#[test]
fn problems() {
    let ProblemStmt::Scheme { path, params } = problem("scheme std::m { h = 1e-9,\n dt = 2, }")
    else {
        panic!()
    };
    assert_eq!((path.len(), params.len()), (2, 2));
    assert!(matches!(problem("scheme m"), ProblemStmt::Scheme { params, .. } if params.is_empty()));
    let ProblemStmt::Boundary(clauses) =
        problem("boundary x: pec, y: cpml(10, order = 3), z: pec |\n pmc")
    else {
        panic!()
    };
    assert_eq!(clauses.len(), 3);
    assert_eq!(clauses[1].lower.args.len(), 2);
    assert!(clauses[2].upper.is_some());
    assert!(matches!(
        problem("coef eps.x = 3"),
        ProblemStmt::Coef {
            component: Some(_),
            ..
        }
    ));
    match problem("init E.z = 2 * file(\"ez.npy\") - table(\"t; u\", x, column = 2)") {
        ProblemStmt::Init { value, .. } => assert_eq!(
            show(&value),
            "(Sub (Mul 2 (call file \"ez.npy\")) (call table \"t; u\" x column=2))"
        ),
        other => panic!("{other:#?}"),
    }
    assert!(matches!(problem("const a = 1"), ProblemStmt::Const { .. }));
    assert!(matches!(
        problem("steps 10 * n"),
        ProblemStmt::Steps(Steps::Count(_))
    ));
    for (line, is_count) in [
        ("steps until 2 * n", false),
        ("steps until", true),
        ("steps (until) * 2", true),
        ("steps untilx", true),
    ] {
        let ProblemStmt::Steps(steps) = problem(line) else {
            panic!()
        };
        assert_eq!(matches!(steps, Steps::Count(_)), is_count, "{line}");
        let text = format!("problem p {{ {line} }}");
        assert_eq!(file(&print(&file(&text))), file(&text), "{line}");
    }
    let SchemeStmt::Side { name, parities } = &scheme("boundary free: S.xx odd, v even")[0] else {
        panic!()
    };
    assert_eq!((name.node.as_str(), parities.len()), ("free", 2));
    assert!(parities[0].odd && parities[0].component.is_some() && !parities[1].odd);
}

#[test]
fn sources_and_outputs() {
    let place = |line: &str| match problem(line) {
        ProblemStmt::Source { place, .. } => place,
        other => panic!("{other:#?}"),
    };
    assert!(
        matches!(place("source E.z at (64, n, 64) += f(t, f0 = 3e14)"), Place::At(at) if at.len() == 3)
    );
    let Place::In(parts) = place("source E.z in x = 3..9, y = n, disc and x == 3 += f(t)") else {
        panic!()
    };
    let parts: Vec<_> = parts
        .iter()
        .map(|part| match part {
            Within::Range { axis, from, to } => {
                let to = to.as_ref().map_or("-".to_string(), show);
                format!("{} {} {to}", axis.node, show(from))
            }
            Within::Region(condition) => show(condition),
        })
        .collect();
    assert_eq!(parts, ["x 3 9", "y n -", "(And disc (Eq x 3))"]);
    assert!(matches!(
        place("source E where x < 3 += t"),
        Place::Where(_)
    ));
    assert!(matches!(place("source E += t"), Place::All));
    let Place::Near(coordinates) = place("source E.z at x = 3.05, z = lz/2 = f(t)") else {
        panic!()
    };
    assert_eq!(show(&coordinates[1].1), "(Div lz 2)");
    for (line, expected) in [
        ("source E in disc = 3", UpdateOp::Set),
        ("source E in x = 3, disc -= 3", UpdateOp::Sub),
        ("source E at (1) += 3", UpdateOp::Add),
    ] {
        assert!(
            matches!(problem(line), ProblemStmt::Source { op, .. } if op == expected),
            "{line}"
        );
    }
    match problem("probe E.z, H in x = 3..9, y = 2 as line every 10") {
        ProblemStmt::Probe {
            targets,
            place: Place::In(parts),
            name: Some(_),
            every: Some(_),
        } => assert_eq!((targets.len(), parts.len()), (2, 2)),
        other => panic!("{other:#?}"),
    }
    match problem("record energy = sum(E.x^2 + E.y^2) in x = 3..9, disc every 10") {
        ProblemStmt::Record {
            name,
            within,
            every: Some(_),
            ..
        } => assert_eq!((name.node.as_str(), within.len()), ("energy", 2)),
        other => panic!("{other:#?}"),
    }
    match problem("output slice E, eps at z = 3.05 in x = 0..4 every 20") {
        ProblemStmt::Slice {
            targets,
            plane,
            within,
            every: Some(_),
        } => assert_eq!((targets.len(), plane.is_length, within.len()), (2, true, 1)),
        other => panic!("{other:#?}"),
    }
    let named = |targets: &[Target]| -> Vec<(Option<String>, String)> {
        let name = |n: &Name| n.node.clone();
        let one = |t: &Target| (t.state.as_ref().map(name), name(&t.field));
        targets.iter().map(one).collect()
    };
    match problem("output slice psi of E.z, of, psi, of of of z = 3 in layer(x)") {
        ProblemStmt::Slice {
            targets, within, ..
        } => {
            let [psi, of] = ["psi", "of"].map(str::to_string);
            let expected = [
                (Some(psi.clone()), "E".to_string()),
                (None, of.clone()),
                (None, psi),
                (Some(of.clone()), of),
            ];
            assert_eq!((named(&targets), within.len()), (expected.to_vec(), 1));
        }
        other => panic!("{other:#?}"),
    }
    assert!(matches!(
        problem("probe E.z at (1, 2, 3) as near"),
        ProblemStmt::Probe { name: Some(_), .. }
    ));
    assert!(matches!(
        problem("probe E.z at (1)"),
        ProblemStmt::Probe { name: None, .. }
    ));
    assert!(matches!(
        problem("output slice E.z z = 128 every 20"),
        ProblemStmt::Slice { every: Some(_), .. }
    ));
    assert!(matches!(
        problem("output slice p x = 1"),
        ProblemStmt::Slice { every: None, .. }
    ));
    match problem(
        "output spectrum E.z, psi of H.x at z = 3.05 in x = 0..4 for f = [0.1, 0.2] every 5",
    ) {
        ProblemStmt::Spectrum {
            targets,
            plane: Some(plane),
            within,
            frequencies,
            every: Some(_),
        } => {
            assert_eq!((targets.len(), plane.is_length, within.len()), (2, true, 1));
            assert!(matches!(frequencies.node, ExprKind::List(list) if list.len() == 2));
        }
        other => panic!("{other:#?}"),
    }
    assert!(matches!(
        problem("output spectrum E for f = linspace(f, 2 * f, 3)"),
        ProblemStmt::Spectrum {
            plane: None,
            every: None,
            ..
        }
    ));
    assert!(matches!(
        problem("output volume E.z every 100"),
        ProblemStmt::Volume { every: Some(_), .. }
    ));
}
