//! The formatter: a tree as text in canonical layout. `parse` reads it back as the same tree, comments included.
//!
//! Two spaces of indentation, one statement per line, `=` of neighbouring parameters and comments of neighbouring lines
//! aligned, lines broken at brackets and behind operators where they would pass the margin.

mod doc;
mod expr;
mod page;
mod problem;

use crate::ast::*;
use doc::{Doc, Lines};
use expr::{expr, member_target, operand, path, tight, update_text};
use problem::print_problem_stmts;

/// Prints a whole file.
pub fn print(ast: &Ast) -> String {
    let mut lines = Lines::default();
    for (index, item) in ast.items.iter().enumerate() {
        let previous = index.checked_sub(1).and_then(|index| ast.items.get(index));
        if previous.is_some_and(|previous| stands_apart(previous, item)) {
            lines.blank();
        }
        print_item(&mut lines, item);
    }
    lines.before(&ast.end);
    lines.finish()
}

/// Prints an expression on one line.
pub fn print_expr(value: &Expr) -> String {
    expr(value).flat()
}

/// Whether a blank line stands between two items, with or without one in the source.
pub(crate) fn stands_apart(previous: &Item, item: &Item) -> bool {
    has_block(&previous.kind) || has_block(&item.kind)
}

fn has_block(kind: &ItemKind) -> bool {
    match kind {
        ItemKind::Use(_) | ItemKind::Const { .. } => false,
        ItemKind::Def(def) => in_block_form(def),
        ItemKind::Layer(_) | ItemKind::Scheme(_) | ItemKind::Problem(_) | ItemKind::Schedule(_) => {
            true
        }
    }
}

/// Whether a definition needs braces: for its `let`s, or for comments that have no place otherwise.
fn in_block_form(def: &Def) -> bool {
    let none = Comments::default();
    !def.lines.is_empty() || def.body_comments != none || def.end != none
}

fn named(name: &Name) -> Doc {
    Doc::text(&name.node)
}

fn words(text: &str, name: &Name) -> Doc {
    Doc::Text(format!("{text} {}", name.node))
}

fn print_item(lines: &mut Lines, item: &Item) {
    let comments = &item.comments;
    match &item.kind {
        ItemKind::Use(item) => {
            let (prefix, names) = (Doc::Text(format!("use {}", path(&item.path))), &item.names);
            let doc = match names.as_slice() {
                [only] => Doc::Seq(vec![prefix, Doc::Text(format!("::{}", only.node))]),
                _ => Doc::Seq(vec![
                    prefix,
                    Doc::group("::{", names.iter().map(named).collect(), "}"),
                ]),
            };
            lines.simple(comments, &doc);
        }
        ItemKind::Const { name, value } => {
            lines.simple(
                comments,
                &Doc::Seq(vec![words("const", name), Doc::text(" = "), expr(value)]),
            );
        }
        ItemKind::Def(def) => print_def(lines, comments, def, None),
        ItemKind::Layer(layer) => print_def(lines, comments, &layer.def, Some(&layer.wall)),
        ItemKind::Scheme(scheme) => {
            let mut head = format!("scheme {}", scheme.name.node);
            if let Some(base) = &scheme.base {
                head.push_str(" : ");
                head.push_str(&path(base));
            }
            lines.block(
                comments,
                Doc::Text(head),
                &scheme.body,
                &scheme.end,
                print_scheme_stmts,
            );
        }
        ItemKind::Problem(problem) => {
            lines.block(
                comments,
                words("problem", &problem.name),
                &problem.body,
                &problem.end,
                print_problem_stmts,
            );
        }
        ItemKind::Schedule(schedule) => {
            let mut head = format!("schedule {}", schedule.name.node);
            if let Some(scheme) = &schedule.scheme {
                head.push_str(" for ");
                head.push_str(&scheme.node);
            }
            lines.block(
                comments,
                Doc::Text(head),
                &schedule.levels,
                &schedule.end,
                print_levels,
            );
        }
    }
}

fn print_def(lines: &mut Lines, comments: &Comments, def: &Def, wall: Option<&Name>) {
    let params = def.params.iter().map(|param| match &param.default {
        Some(default) => Doc::Seq(vec![named(&param.name), Doc::text(" = "), expr(default)]),
        None => named(&param.name),
    });
    let mut head = vec![
        words(if wall.is_some() { "layer" } else { "def" }, &def.name),
        Doc::group("(", params.collect(), ")"),
    ];
    head.extend(wall.map(|wall| Doc::Text(format!(" : {}", wall.node))));
    let head = Doc::Seq(head);
    if wall.is_none() && !in_block_form(def) {
        lines.simple(
            comments,
            &Doc::Seq(vec![head, Doc::text(" = "), expr(&def.body)]),
        );
        return;
    }
    lines.open(comments, head);
    for stmt in &def.lines {
        lines.simple(&stmt.comments, &def_line(&stmt.kind.node));
    }
    lines.simple(&def.body_comments, &expr(&def.body));
    lines.close(&def.end);
}

fn def_line(line: &DefLine) -> Doc {
    match line {
        DefLine::Require(condition) => Doc::Seq(vec![Doc::text("require "), expr(condition)]),
        DefLine::Let(stmt) => let_doc(stmt),
        DefLine::State { names, region } => {
            let mut parts = vec![Doc::text("state "), listed(names)];
            if let Some(region) = region {
                parts.extend([Doc::text(" in "), expr(region)]);
            }
            Doc::Seq(parts)
        }
        DefLine::Next { name, value } => Doc::Seq(vec![
            Doc::Text(format!("{}@next = ", name.node)),
            expr(value),
        ]),
    }
}

fn let_doc(stmt: &Let) -> Doc {
    Doc::Seq(vec![
        words("let", &stmt.name),
        Doc::text(" = "),
        expr(&stmt.value),
    ])
}

fn print_scheme_stmts(lines: &mut Lines, body: &[Stmt<SchemeStmt>]) {
    let mut width = 0;
    for (index, stmt) in body.iter().enumerate() {
        match &stmt.kind.node {
            SchemeStmt::Axes(axes) => {
                let doc = Doc::Seq(vec![Doc::text("axes "), listed(axes)]);
                lines.simple(&stmt.comments, &doc);
            }
            SchemeStmt::Param { name, value } => {
                if !continues_params(body, index) {
                    width = params_width(body, index);
                }
                let head = format!("param {:width$} = ", name.node);
                lines.simple(
                    &stmt.comments,
                    &Doc::Seq(vec![Doc::Text(head), expr(value)]),
                );
            }
            SchemeStmt::Const { name, value } => {
                lines.simple(
                    &stmt.comments,
                    &Doc::Seq(vec![words("const", name), Doc::text(" = "), expr(value)]),
                );
            }
            SchemeStmt::Field(field) => lines.simple(&stmt.comments, &field_doc(field)),
            SchemeStmt::Coef(coef) => lines.simple(&stmt.comments, &coef_doc(coef)),
            SchemeStmt::Region(region) => {
                let parts = [vec![Doc::text("region ")], region_parts(region)];
                lines.simple(
                    &stmt.comments,
                    &Doc::Seq(parts.into_iter().flatten().collect()),
                );
            }
            SchemeStmt::Side { name, parities } => {
                lines.simple(&stmt.comments, &side_doc(name, parities));
            }
            SchemeStmt::Allow(codes) => lines.simple(&stmt.comments, &allow_doc(codes)),
            SchemeStmt::Step { body, end } => lines.block(
                &stmt.comments,
                Doc::text("step"),
                body,
                end,
                print_step_stmts,
            ),
        }
    }
}

/// Whether the parameter at `index` stands right below another one.
fn continues_params(body: &[Stmt<SchemeStmt>], index: usize) -> bool {
    let is_param = |stmt: &Stmt<SchemeStmt>| matches!(stmt.kind.node, SchemeStmt::Param { .. });
    let here = body
        .get(index)
        .is_some_and(|stmt| is_param(stmt) && stmt.comments.before.is_empty());
    here && index
        .checked_sub(1)
        .and_then(|above| body.get(above))
        .is_some_and(is_param)
}

/// The longest name of the neighbouring parameters that begin at `index`.
fn params_width(body: &[Stmt<SchemeStmt>], index: usize) -> usize {
    let rest = body.iter().enumerate().skip(index);
    let run = rest.take_while(|(at, _)| *at == index || continues_params(body, *at));
    let widths = run.map(|(_, stmt)| match &stmt.kind.node {
        SchemeStmt::Param { name, .. } if name.node.len() <= 24 => name.node.len(),
        _ => 0,
    });
    widths.max().unwrap_or(0)
}

fn field_doc(field: &Field) -> Doc {
    let mut parts = vec![
        words("field", &field.name),
        Doc::text(" : "),
        shape_doc(&field.shape),
    ];
    if let Some(position) = &field.position {
        parts.push(Doc::text(" on "));
        parts.push(position_doc(&position.node));
    }
    for (word, value) in [(" at ", &field.time), (" levels ", &field.levels)] {
        if let Some(value) = value {
            parts.push(Doc::text(word));
            parts.push(operand(value));
        }
    }
    Doc::Seq(parts)
}

fn shape_doc(shape: &Shape) -> Doc {
    match shape {
        Shape::Scalar => Doc::text("scalar"),
        Shape::Vector => Doc::text("vector"),
        Shape::Tensor => Doc::text("tensor"),
        Shape::Named(components) => {
            let components = components.iter().map(|(name, position)| {
                Doc::Seq(vec![
                    named(name),
                    Doc::text(" on "),
                    position_doc(&position.node),
                ])
            });
            Doc::group("{ ", components.collect(), " }")
        }
    }
}

fn position_doc(position: &Position) -> Doc {
    match position {
        Position::Nodes => Doc::text("nodes"),
        Position::Edges => Doc::text("edges"),
        Position::Faces => Doc::text("faces"),
        Position::Cells => Doc::text("cells"),
        Position::Explicit(halves) => Doc::group("[", halves.iter().map(tight).collect(), "]"),
    }
}

fn coef_doc(coef: &Coef) -> Doc {
    let mut parts = vec![words("coef", &coef.name)];
    if let Some(shape) = &coef.shape {
        parts.push(Doc::text(" : "));
        parts.push(shape_doc(&shape.node));
    }
    if let Some(position) = &coef.position {
        parts.push(Doc::text(" on "));
        parts.push(position_doc(&position.node));
    }
    parts.push(Doc::text(" = "));
    parts.push(expr(&coef.value));
    Doc::Seq(parts)
}

fn side_doc(name: &Name, parities: &[SideParity]) -> Doc {
    let parity = |of: &SideParity| {
        let component = of.component.as_ref();
        let component = component.map_or(String::new(), |c| format!(".{}", c.node));
        let word = if of.odd { "odd" } else { "even" };
        Doc::Text(format!("{}{component} {word}", of.field.node))
    };
    let head = Doc::Text(format!("boundary {}: ", name.node));
    Doc::Seq(vec![
        head,
        Doc::Listed(parities.iter().map(parity).collect()),
    ])
}

fn allow_doc(codes: &[Name]) -> Doc {
    Doc::Seq(vec![Doc::text("allow "), listed(codes)])
}

/// Names between commas.
fn listed(names: &[Name]) -> Doc {
    Doc::Listed(names.iter().map(named).collect())
}

/// The parts behind `region`.
fn region_parts(region: &Region) -> Vec<Doc> {
    let mut parts = vec![named(&region.name)];
    if let Some(position) = &region.position {
        parts.extend([Doc::text(" on "), position_doc(&position.node)]);
    }
    parts.extend([Doc::text(" = "), expr(&region.condition)]);
    parts
}

fn print_step_stmts(lines: &mut Lines, body: &[Stmt<StepStmt>]) {
    for stmt in body {
        match &stmt.kind.node {
            StepStmt::Update { target, op, value } => {
                let op = Doc::text(update_text(*op));
                lines.simple(
                    &stmt.comments,
                    &Doc::Seq(vec![member_target(target), op, expr(value)]),
                );
            }
            StepStmt::Let(stmt_let) => lines.simple(&stmt.comments, &let_doc(stmt_let)),
            StepStmt::Allow(codes) => lines.simple(&stmt.comments, &allow_doc(codes)),
            StepStmt::Where(branches) => print_branches(lines, &stmt.comments, branches),
        }
    }
}

fn print_branches(lines: &mut Lines, comments: &Comments, branches: &[Branch]) {
    let head = |branch: &Branch, first: bool| {
        let word = if first { "" } else { "else " };
        match &branch.condition {
            Some(condition) => Doc::Seq(vec![Doc::Text(format!("{word}where ")), expr(condition)]),
            None => Doc::text("else"),
        }
    };
    let Some((first, rest)) = branches.split_first() else {
        return;
    };
    if rest.is_empty() {
        let (body, end) = (&first.body, &first.end);
        return lines.block(comments, head(first, true), body, end, print_step_stmts);
    }
    lines.open(comments, head(first, true));
    print_step_stmts(lines, &first.body);
    let mut end = &first.end;
    for branch in rest {
        lines.reopen(end, &branch.comments, head(branch, false));
        print_step_stmts(lines, &branch.body);
        end = &branch.end;
    }
    lines.close(end);
}

fn print_levels(lines: &mut Lines, levels: &[Stmt<ScheduleLevel>]) {
    for level in levels {
        lines.simple(&level.comments, &level_doc(&level.kind.node));
    }
}

fn level_doc(level: &ScheduleLevel) -> Doc {
    let mut parts = Vec::new();
    let axes: Vec<&str> = level.axes.iter().map(|axis| axis.node.as_str()).collect();
    match axes.as_slice() {
        [] => {}
        [axis] => parts.push(Doc::Text(format!("{axis}: "))),
        axes => parts.push(Doc::Text(format!("({}): ", axes.join(", ")))),
    }
    parts.push(named(&level.shape.name));
    if !level.shape.args.is_empty() {
        let args = level.shape.args.iter().map(|arg| {
            let value = value_doc(&arg.value, ValuePlace::Argument);
            match &arg.name {
                Some(name) => Doc::Seq(vec![named(name), Doc::text(" = "), value]),
                None => value,
            }
        });
        parts.push(Doc::group("(", args.collect(), ")"));
    }
    for clause in &level.clauses {
        match clause {
            ScheduleClause::Lean { positive, axis } => {
                parts.push(Doc::Text(format!(
                    " lean {}{}",
                    if *positive { '+' } else { '-' },
                    axis.node
                )));
            }
            ScheduleClause::Word { word, value } => {
                parts.push(Doc::Text(format!(" {}", word.node)));
                if let Some(value) = value {
                    parts.push(Doc::text(" "));
                    parts.push(value_doc(value, ValuePlace::Clause));
                }
            }
        }
    }
    Doc::Seq(parts)
}

/// Where a schedule's value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValuePlace {
    /// Between parentheses and commas.
    Argument,
    /// Behind a word.
    Clause,
}

/// A schedule's value. Behind a word, a value that begins with a name would be the next word, so it stands in
/// parentheses.
fn value_doc(value: &ScheduleValue, place: ValuePlace) -> Doc {
    let begins_with_name = |doc: &Doc| {
        doc.flat()
            .starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
    };
    let guarded = |doc: Doc| {
        if begins_with_name(&doc) {
            Doc::group("(", vec![doc], ")")
        } else {
            doc
        }
    };
    let placed = |doc: Doc| match place {
        ValuePlace::Argument => doc,
        ValuePlace::Clause => guarded(doc),
    };
    match value {
        ScheduleValue::Auto => Doc::text("auto"),
        ScheduleValue::Expr(value) => {
            let is_auto = matches!(&value.node, ExprKind::Name(name) if name == "auto");
            if is_auto {
                guarded(tight(value))
            } else {
                placed(tight(value))
            }
        }
        ScheduleValue::Range(from, to) => {
            Doc::Seq(vec![placed(operand(from)), Doc::text(".."), operand(to)])
        }
    }
}
