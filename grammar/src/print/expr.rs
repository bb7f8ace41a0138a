//! Expressions, with as few parentheses as their meaning allows. A sum in parentheses at the head of a sum keeps them:
//! a record tells the places of its numbers by them.

use super::doc::Doc;
use crate::ast::*;

/// How tightly an expression binds, as the parser sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    If,
    Or,
    And,
    Not,
    Compare,
    Sum,
    Product,
    Sign,
    Power,
    Atom,
}

fn op_binding(op: BinaryOp) -> Binding {
    match op {
        BinaryOp::Or => Binding::Or,
        BinaryOp::And => Binding::And,
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::Eq | BinaryOp::Ne => {
            Binding::Compare
        }
        BinaryOp::Add | BinaryOp::Sub => Binding::Sum,
        BinaryOp::Mul | BinaryOp::Div => Binding::Product,
        BinaryOp::Pow => Binding::Power,
    }
}

fn op_text(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Pow => "^",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::And => "and",
        BinaryOp::Or => "or",
    }
}

fn binding(value: &Expr) -> Binding {
    match &value.node {
        ExprKind::If { .. } => Binding::If,
        ExprKind::Unary(UnaryOp::Not, _) => Binding::Not,
        ExprKind::Unary(UnaryOp::Neg, _) => Binding::Sign,
        ExprKind::Number(value) if value.is_sign_negative() => Binding::Sign,
        ExprKind::Binary(op, ..) => op_binding(*op),
        _ => Binding::Atom,
    }
}

/// How short products are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spacing {
    /// With spaces around operators.
    Spaced,
    /// Without.
    Tight,
}

/// An expression that stands alone.
pub fn expr(value: &Expr) -> Doc {
    doc(value, Spacing::Spaced)
}

/// An expression among words: short products are written without spaces.
pub fn tight(value: &Expr) -> Doc {
    doc(value, Spacing::Tight)
}

/// An expression with more behind it: an `if` stands in parentheses, so that one can tell where it ends.
pub fn operand(value: &Expr) -> Doc {
    at_least(value, Binding::Or)
}

/// An operand, in parentheses if it binds less than `least`.
fn at_least(value: &Expr, least: Binding) -> Doc {
    if binding(value) < least {
        parenthesised(value)
    } else {
        tight(value)
    }
}

fn parenthesised(value: &Expr) -> Doc {
    Doc::group("(", vec![tight(value)], ")")
}

fn is_plain(value: &Expr) -> bool {
    match &value.node {
        ExprKind::Number(_) | ExprKind::Name(_) => true,
        ExprKind::Member(base, _) => is_plain(base),
        _ => false,
    }
}

fn is_number(value: &Expr) -> bool {
    matches!(value.node, ExprKind::Number(_))
}

/// `1`, `-1`.
fn is_integer(value: &Expr) -> bool {
    match &value.node {
        ExprKind::Number(value) => value.fract() == 0.0,
        ExprKind::Unary(UnaryOp::Neg, inner) => is_number(inner) && is_integer(inner),
        _ => false,
    }
}

/// Products and quotients of plain operands.
fn is_short(value: &Expr) -> bool {
    match &value.node {
        ExprKind::Binary(BinaryOp::Mul | BinaryOp::Div, left, right) => {
            is_plain(right) && (is_plain(left) || is_integer(left) || is_short(left))
        }
        _ => false,
    }
}

fn doc(value: &Expr, spacing: Spacing) -> Doc {
    match &value.node {
        ExprKind::Number(value) => Doc::Text(number(*value)),
        ExprKind::Text(text) => Doc::Text(format!("\"{text}\"")),
        ExprKind::Name(name) => Doc::text(name),
        ExprKind::Path(names) => Doc::Text(path(names)),
        ExprKind::Member(base, name) => Doc::Seq(vec![
            postfix_base(base),
            Doc::Text(format!(".{}", name.node)),
        ]),
        ExprKind::Level(base, level) => {
            Doc::Seq(vec![postfix_base(base), Doc::text(level_text(*level))])
        }
        ExprKind::Offset(base, offsets) => Doc::Seq(vec![
            postfix_base(base),
            Doc::group("[", offsets.iter().map(offset).collect(), "]"),
        ]),
        ExprKind::List(elements) => Doc::group("[", elements.iter().map(expr).collect(), "]"),
        ExprKind::Call {
            callee,
            args: given,
        } => Doc::Seq(vec![postfix_base(callee), args(given)]),
        ExprKind::Unary(UnaryOp::Neg, inner) => {
            Doc::Seq(vec![Doc::text("-"), at_least(inner, Binding::Sign)])
        }
        ExprKind::Unary(UnaryOp::Not, inner) => {
            Doc::Seq(vec![Doc::text("not "), at_least(inner, Binding::Not)])
        }
        ExprKind::Binary(BinaryOp::Pow, base, exponent) => Doc::Seq(vec![
            at_least(base, Binding::Atom),
            Doc::text("^"),
            at_least(exponent, Binding::Sign),
        ]),
        ExprKind::Binary(op, left, right) => {
            let ratio = *op == BinaryOp::Div && is_integer(left) && is_integer(right);
            let spacing = match spacing {
                _ if !is_short(value) => Spacing::Spaced,
                _ if ratio => Spacing::Tight,
                spacing => spacing,
            };
            chain(*op, left, right, spacing)
        }
        ExprKind::If { .. } => cases(value),
    }
}

/// `if a then b`, `else if c then d`, `else e`.
fn cases(value: &Expr) -> Doc {
    let mut cases = Vec::new();
    let mut rest = value;
    let mut word = "if ";
    while let ExprKind::If {
        condition,
        then,
        otherwise,
    } = &rest.node
    {
        let (condition, then) = (operand(condition), operand(then));
        cases.push(Doc::Seq(vec![
            Doc::text(word),
            condition,
            Doc::text(" then "),
            then,
        ]));
        word = "else if ";
        rest = otherwise;
    }
    cases.push(Doc::Seq(vec![Doc::text("else "), expr(rest)]));
    Doc::Cases(cases)
}

/// A row of operators that bind alike, from the left.
fn chain(op: BinaryOp, left: &Expr, right: &Expr, spacing: Spacing) -> Doc {
    let own = op_binding(op);
    let above = match own {
        Binding::Or => Binding::And,
        Binding::And => Binding::Not,
        Binding::Compare => Binding::Sum,
        Binding::Sum => Binding::Product,
        _ => Binding::Sign,
    };
    let mut operands = vec![(op, right)];
    let mut first = left;
    // Comparisons do not chain.
    let is_sum = |value: &Expr| own == Binding::Sum && in_parentheses(value);
    while own != Binding::Compare
        && !is_sum(first)
        && let ExprKind::Binary(op, left, right) = &first.node
        && op_binding(*op) == own
    {
        operands.push((*op, &**right));
        first = left;
    }
    operands.reverse();
    // In one sum all products look alike.
    let alike = |value: &Expr| binding(value) != Binding::Product || is_short(value);
    let all_alike = || alike(first) && operands.iter().all(|(_, value)| alike(value));
    let inner = match own {
        Binding::Sum if !all_alike() => Spacing::Spaced,
        _ => Spacing::Tight,
    };
    let link = |value: &Expr, least: Binding| {
        if binding(value) < least {
            parenthesised(value)
        } else {
            doc(value, inner)
        }
    };
    let links: Vec<(BinaryOp, Doc)> = operands
        .iter()
        .map(|(op, value)| (*op, link(value, above)))
        .collect();
    let is_closed = own == Binding::Compare || is_sum(first);
    let first = link(first, if is_closed { above } else { own });
    let links: Vec<(&'static str, Doc)> = links
        .into_iter()
        .map(|(op, doc)| (op_text(op), doc))
        .collect();
    if spacing == Spacing::Tight {
        let rest = links.into_iter().flat_map(|(op, doc)| [Doc::text(op), doc]);
        return Doc::Seq(std::iter::once(first).chain(rest).collect());
    }
    Doc::Chain(Box::new(first), links)
}

fn postfix_base(base: &Expr) -> Doc {
    // `3.x` would be read as the number `3.`.
    if is_number(base) || binding(base) < Binding::Atom {
        return parenthesised(base);
    }
    tight(base)
}

/// An offset of a raw read shows its direction.
fn offset(value: &Expr) -> Doc {
    let positive = |value: &Expr| matches!(value.node, ExprKind::Number(value) if value > 0.0);
    let shows_plus = match &value.node {
        ExprKind::Binary(BinaryOp::Div, left, right) => positive(left) && is_number(right),
        _ => positive(value),
    };
    let doc = tight(value);
    if shows_plus {
        Doc::Seq(vec![Doc::text("+"), doc])
    } else {
        doc
    }
}

/// Arguments in parentheses.
pub fn args(args: &[Arg]) -> Doc {
    let args = args.iter().map(|arg| match &arg.name {
        Some(name) => Doc::Seq(vec![
            Doc::Text(format!("{} = ", name.node)),
            expr(&arg.value),
        ]),
        None => expr(&arg.value),
    });
    Doc::group("(", args.collect(), ")")
}

/// Indices in parentheses.
pub fn tuple(values: &[Expr]) -> Doc {
    Doc::group("(", values.iter().map(tight).collect(), ")")
}

pub fn path(names: &[Name]) -> String {
    let names: Vec<&str> = names.iter().map(|name| name.node.as_str()).collect();
    names.join("::")
}

fn level_text(level: Level) -> &'static str {
    match level {
        Level::Next => "@next",
        Level::Prev => "@prev",
    }
}

/// The operator of an update.
pub fn update_text(op: UpdateOp) -> &'static str {
    match op {
        UpdateOp::Set => " = ",
        UpdateOp::Add => " += ",
        UpdateOp::Sub => " -= ",
    }
}

/// The left side of an update.
pub fn member_target(target: &Target) -> Doc {
    let mut text = match &target.state {
        Some(state) => format!("{} of {}", state.node, target.field.node),
        None => target.field.node.clone(),
    };
    if let Some(component) = &target.component {
        text.push('.');
        text.push_str(&component.node);
    }
    if let Some(level) = &target.level {
        text.push_str(level_text(level.node));
    }
    Doc::Text(text)
}

/// The shortest text that reads back as the number, with an exponent only where that is easier to read.
fn number(value: f64) -> String {
    let plain = format!("{value}");
    let exponent = format!("{value:e}");
    let tiny = value != 0.0 && value.abs() < 1e-3;
    if !tiny && plain.len() <= exponent.len() + 3 {
        plain
    } else {
        exponent
    }
}
