//! The statements of problems.

use super::doc::{Doc, Lines};
use super::expr::{expr, member_target, operand, path, tuple, update_text};
use super::{listed, named, region_parts};
use crate::ast::*;

pub fn print_problem_stmts(lines: &mut Lines, body: &[Stmt<ProblemStmt>]) {
    for stmt in body {
        if let ProblemStmt::Incident {
            name,
            lines: body,
            end,
        } = &stmt.kind.node
        {
            let head = Doc::Text(format!("{:8} {}", "incident", name.node));
            lines.block(&stmt.comments, head, body, end, |lines, body| {
                for line in body {
                    lines.simple(&line.comments, &incident_line(&line.kind.node));
                }
            });
            continue;
        }
        let (word, mut parts) = problem_parts(&stmt.kind.node);
        parts.insert(0, Doc::Text(format!("{word:8} ")));
        lines.simple(&stmt.comments, &Doc::Seq(parts));
    }
}

/// A statement's word and the parts behind it.
fn problem_parts(stmt: &ProblemStmt) -> (&'static str, Vec<Doc>) {
    match stmt {
        ProblemStmt::Scheme { path: of, params } => ("scheme", scheme_parts(of, params)),
        ProblemStmt::Const { name, value } => {
            ("const", vec![named(name), Doc::text(" = "), expr(value)])
        }
        ProblemStmt::Domain(sizes) => ("domain", domain_parts(sizes)),
        ProblemStmt::Boundary(clauses) => (
            "boundary",
            vec![Doc::Listed(clauses.iter().map(boundary_doc).collect())],
        ),
        ProblemStmt::Allow(codes) => ("allow", vec![listed(codes)]),
        ProblemStmt::Region(region) => ("region", region_parts(region)),
        ProblemStmt::Coef {
            name,
            component,
            value,
        } => {
            let mut parts = vec![named(name)];
            if let Some(component) = component {
                parts.push(Doc::Text(format!(".{}", component.node)));
            }
            parts.extend([Doc::text(" = "), expr(value)]);
            ("coef", parts)
        }
        ProblemStmt::Init { target, value } => (
            "init",
            vec![member_target(target), Doc::text(" = "), expr(value)],
        ),
        ProblemStmt::Source {
            target,
            place,
            op,
            value,
        } => {
            let mut parts = vec![member_target(target)];
            place_parts(place, &mut parts);
            parts.extend([Doc::text(update_text(*op)), expr(value)]);
            ("source", parts)
        }
        // Printed as a block.
        ProblemStmt::Incident { name, .. } => ("incident", vec![named(name)]),
        ProblemStmt::Total { ranges, from } => {
            let ranges = ranges.iter().map(ends_doc).collect();
            let from = Doc::Text(format!(" from {}", from.node));
            ("total", vec![Doc::Listed(ranges), from])
        }
        ProblemStmt::Probe {
            targets,
            place,
            name,
            every,
        } => {
            let mut parts = vec![targets_doc(targets)];
            place_parts(place, &mut parts);
            if let Some(name) = name {
                parts.push(Doc::Text(format!(" as {}", name.node)));
            }
            every_parts(every, &mut parts);
            ("probe", parts)
        }
        ProblemStmt::Record {
            name,
            value,
            within,
            every,
        } => {
            let mut parts = vec![named(name), Doc::text(" = "), operand(value)];
            within_parts(within, &mut parts);
            every_parts(every, &mut parts);
            ("record", parts)
        }
        ProblemStmt::Slice {
            targets,
            plane,
            within,
            every,
        } => {
            let mut parts = slice_parts(targets, plane);
            within_parts(within, &mut parts);
            every_parts(every, &mut parts);
            ("output", parts)
        }
        ProblemStmt::Volume {
            targets,
            within,
            every,
        } => {
            let mut parts = vec![Doc::text("volume "), targets_doc(targets)];
            within_parts(within, &mut parts);
            every_parts(every, &mut parts);
            ("output", parts)
        }
        ProblemStmt::Spectrum {
            targets,
            plane,
            within,
            frequencies,
            every,
        } => {
            let mut parts = vec![Doc::text("spectrum "), targets_doc(targets)];
            parts.extend(plane.iter().flat_map(plane_parts));
            within_parts(within, &mut parts);
            parts.extend([Doc::text(" for f = "), operand(frequencies)]);
            every_parts(every, &mut parts);
            ("output", parts)
        }
        ProblemStmt::Steps(steps) => ("steps", steps_parts(steps)),
    }
}

fn scheme_parts(of: &[Name], params: &[(Name, Expr)]) -> Vec<Doc> {
    let mut parts = vec![Doc::Text(path(of))];
    if !params.is_empty() {
        let params = params
            .iter()
            .map(|(name, value)| Doc::Seq(vec![named(name), Doc::text(" = "), expr(value)]));
        parts.push(Doc::group(" { ", params.collect(), " }"));
    }
    parts
}

fn domain_parts(sizes: &[Expr]) -> Vec<Doc> {
    let mut parts = Vec::new();
    for size in sizes {
        if !parts.is_empty() {
            parts.push(Doc::text(" x "));
        }
        parts.push(operand(size));
    }
    parts
}

fn slice_parts(targets: &[Target], plane: &Plane) -> Vec<Doc> {
    let mut parts = vec![Doc::text("slice "), targets_doc(targets)];
    parts.extend(plane_parts(plane));
    parts
}

fn plane_parts(plane: &Plane) -> [Doc; 2] {
    let word = if plane.is_length { " at " } else { " " };
    let axis = Doc::Text(format!("{word}{} = ", plane.axis.node));
    [axis, operand(&plane.at)]
}

fn steps_parts(steps: &Steps) -> Vec<Doc> {
    let count = match steps {
        Steps::Count(count) => count,
        Steps::Until(time) => return vec![Doc::text("until "), expr(time)],
    };
    let doc = expr(count);
    // A name `until` would be read as the word.
    let begins = doc.flat();
    let guarded = begins
        .strip_prefix("until")
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'));
    vec![match guarded {
        true => Doc::group("(", vec![doc], ")"),
        false => doc,
    }]
}

fn every_parts(every: &Option<Expr>, parts: &mut Vec<Doc>) {
    if let Some(every) = every {
        parts.push(Doc::text(" every "));
        parts.push(operand(every));
    }
}

fn incident_line(line: &IncidentLine) -> Doc {
    let given = |word: &'static str, target: &Target, value: &Expr| {
        let parts = vec![
            Doc::text(word),
            member_target(target),
            Doc::text(" = "),
            expr(value),
        ];
        Doc::Seq(parts)
    };
    match line {
        IncidentLine::Direction(list) => Doc::Seq(vec![Doc::text("direction "), tuple(list)]),
        IncidentLine::Drive { target, value } => given("drive ", target, value),
        IncidentLine::Given { target, value } => given("", target, value),
    }
}

fn ends_doc(ends: &Ends) -> Doc {
    Doc::Seq(vec![
        Doc::Text(format!("{} = ", ends.axis.node)),
        operand(&ends.from),
        Doc::text(".."),
        operand(&ends.to),
    ])
}

fn targets_doc(targets: &[Target]) -> Doc {
    Doc::Listed(targets.iter().map(member_target).collect())
}

fn place_parts(place: &Place, parts: &mut Vec<Doc>) {
    match place {
        Place::At(at) => parts.extend([Doc::text(" at "), tuple(at)]),
        Place::Near(coordinates) => {
            let coordinates = coordinates.iter().map(|(axis, at)| {
                Doc::Seq(vec![Doc::Text(format!("{} = ", axis.node)), operand(at)])
            });
            parts.extend([Doc::text(" at "), Doc::Listed(coordinates.collect())]);
        }
        Place::In(list) => within_parts(list, parts),
        Place::Where(condition) => parts.extend([Doc::text(" where "), operand(condition)]),
        Place::All => {}
    }
}

fn within_parts(list: &[Within], parts: &mut Vec<Doc>) {
    if !list.is_empty() {
        let list = list.iter().map(within_doc).collect();
        parts.extend([Doc::text(" in "), Doc::Listed(list)]);
    }
}

fn within_doc(part: &Within) -> Doc {
    match part {
        Within::Range { axis, from, to } => {
            let mut parts = vec![Doc::Text(format!("{} = ", axis.node)), operand(from)];
            if let Some(to) = to {
                parts.extend([Doc::text(".."), operand(to)]);
            }
            Doc::Seq(parts)
        }
        Within::Region(condition) => operand(condition),
    }
}

fn boundary_doc(clause: &BoundaryClause) -> Doc {
    let side = |kind: &BoundaryKind| {
        if kind.args.is_empty() {
            return named(&kind.name);
        }
        Doc::Seq(vec![named(&kind.name), super::expr::args(&kind.args)])
    };
    let mut parts = vec![
        Doc::Text(format!("{}: ", clause.axis.node)),
        side(&clause.lower),
    ];
    if let Some(upper) = &clause.upper {
        parts.extend([Doc::text(" | "), side(upper)]);
    }
    Doc::Seq(parts)
}
