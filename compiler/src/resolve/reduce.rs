//! Reductions that a problem records over time.

use super::codes;
use super::confine::confine;
use super::emit::{Coefs, Emitter, Refused};
use super::enclose::enclose;
use super::files_read::Site;
use super::graph::{Node, NodeId};
use super::held;
use super::report::{Outcome, Place, Reported};
use super::resolver::Resolver;
use super::results::{Recorded, Results};
use super::value::Typed;
use crate::host::HostBinary;
use crate::lattice::Position;
use crate::problem::{Reduction, Series, SeriesTerm};
use crate::scheme::{ComponentId, Precision};
use torre_grammar::ast::{BinaryOp, Expr, ExprKind, Name, UnaryOp, Within, in_parentheses};

/// Terms of one sum.
const TERMS: usize = 256;
/// The deepest nesting of sums in products that is taken apart.
const DEPTH: usize = 64;

/// A term of a sum that may have sums inside.
struct Term {
    expr: Expr,
    /// Its number in the outermost sum, then in the sum that is this operand, and so on.
    path: Vec<usize>,
}

/// The position of a term that has one.
struct Placed {
    path: Vec<usize>,
    position: Position,
}

/// The part of a reduction at one position.
struct Part {
    position: Position,
    node: NodeId,
    place: Place,
}

impl Resolver<'_> {
    /// `record name = sum(...)`: one series.
    pub fn record(
        &mut self,
        recorded: &Recorded<'_>,
        name: &Name,
        value: &Expr,
        within: &[Within],
        results: &mut Results,
    ) -> Outcome<()> {
        let scope = recorded.scope;
        self.not_times(&name.node, &scope.place(name.span))?;
        let (reduction, of) = self.reduction(recorded, value)?;
        if !results.series_names.insert(name.node.clone()) {
            let message = format!("there is another record `{}`", name.node);
            let d = self.error(codes::SAME_NAME, message, &scope.place(name.span));
            return self.fail(d);
        }
        self.files.site = Site::Unplaced(name.node.clone());
        let terms = match reduction {
            Reduction::Sum => terms_of(of, 0),
            Reduction::Min | Reduction::Max => vec![Term::whole(of)],
        };
        let mut parts: Vec<Part> = Vec::new();
        let mut placed: Vec<Placed> = Vec::new();
        let mut unplaced: Vec<(&Term, NodeId)> = Vec::new();
        for term in &terms {
            let operand = self.operand(scope, &term.expr)?;
            let place = operand.place.clone();
            let scalar = self.one_scalar(operand, "a reduction")?;
            self.only_newest(scalar, &place)?;
            let Some(position) = scalar.position else {
                unplaced.push((term, scalar.node));
                continue;
            };
            placed.push(Placed {
                path: term.path.clone(),
                position,
            });
            match parts.iter_mut().find(|part| part.position == position) {
                Some(part) => {
                    part.node = self.graph.binary(HostBinary::Add, part.node, scalar.node)
                }
                None => parts.push(Part {
                    position,
                    node: scalar.node,
                    place,
                }),
            }
        }
        for (term, node) in unplaced {
            let position = term.position_among(&placed);
            let part = parts.iter_mut().find(|p| Some(p.position) == position);
            let Some(part) = part else {
                let place = scope.place(of.span);
                let d = self
                    .error(
                        codes::REDUCTION,
                        "a term of this reduction has no places of its own",
                        &place,
                    )
                    .hint("every term needs a field, or a coefficient with a position");
                return self.fail(d);
            };
            part.node = self.graph.binary(HostBinary::Add, part.node, node);
        }
        let mut list = Vec::new();
        for part in parts {
            list.extend(self.term(recorded, &name.node, part, within)?);
        }
        if list.is_empty() {
            self.warn_of_no_place(&name.node, "this record looks", recorded.place);
            return Ok(());
        }
        results.series.push(Series {
            name: name.node.clone(),
            reduction,
            terms: list,
            every: recorded.every,
        });
        Ok(())
    }

    /// The value of a record: a reduction of one expression.
    fn reduction<'e>(
        &mut self,
        recorded: &Recorded<'_>,
        value: &'e Expr,
    ) -> Outcome<(Reduction, &'e Expr)> {
        let called = match &value.node {
            ExprKind::Call { callee, args } => match (&callee.node, args.as_slice()) {
                (ExprKind::Name(name), [arg]) if arg.name.is_none() => Some((name.as_str(), arg)),
                _ => None,
            },
            _ => None,
        };
        let reduction = called.and_then(|(name, arg)| {
            let reduction = match name {
                "sum" => Reduction::Sum,
                "min" => Reduction::Min,
                "max" => Reduction::Max,
                _ => return None,
            };
            Some((reduction, &arg.value))
        });
        match reduction {
            Some(reduction) => Ok(reduction),
            None => {
                let d = self
                    .error(
                        codes::REDUCTION,
                        "a record is a `sum(...)`, `min(...)` or `max(...)` of one expression",
                        &recorded.scope.place(value.span),
                    )
                    .hint("factors go inside: `sum(0.5 * p^2)`");
                self.fail(d)
            }
        }
    }

    /// Refuses time levels but the newest.
    fn only_newest(&mut self, scalar: Typed, place: &Place) -> Outcome<()> {
        let mut levels = false;
        self.graph.visit(scalar.node, &mut |node| {
            levels |= matches!(node, Node::Field { level: Some(_), .. });
        });
        match levels {
            false => Ok(()),
            true => {
                let message = "only newest values can be recorded";
                let hint = "keep the earlier value in a field, `old = u` at the head of the step, and record that";
                let d = self.error(codes::LEVEL_OF, message, place).hint(hint);
                self.fail(d)
            }
        }
    }

    /// A term where it counts; `None` if that is nowhere.
    fn term(
        &mut self,
        recorded: &Recorded<'_>,
        name: &str,
        part: Part,
        within: &[Within],
    ) -> Outcome<Option<SeriesTerm>> {
        let Part {
            position,
            node,
            place,
        } = part;
        let scope = recorded.scope;
        let grid = self.frame.grid.clone().ok_or(Reported)?;
        let asked = self.box_of(scope, within, held::places(&grid, position), name)?;
        let components = &self.frame.components;
        let counted = held::counted(&mut self.graph, &grid, components, position, node);
        let mut region = asked.intersect(counted);
        let mut condition = None;
        if let Some(given) = self.condition_of(scope, within)? {
            let holds = self.at_position(&given, name, position)?;
            let confined = confine(&mut self.graph, Some(holds), position, region);
            region = confined.region;
            if let Some(rest) = confined.rest {
                region = enclose(&mut self.graph, &grid, rest, position, region);
                let typed = Typed {
                    node: rest,
                    position: None,
                };
                condition = Some(self.host_at(typed, position, &given.place, "a condition")?);
            }
        }
        if region.is_empty() {
            return Ok(None);
        }
        let mut coefs = Coefs::default();
        let emitter = Emitter::new(
            &mut self.graph,
            &self.frame.components,
            &mut coefs,
            Precision::F64,
            ComponentId(0),
            &[],
            grid.cells,
        );
        match emitter.body_at(position, node) {
            Ok(body) => Ok(Some(SeriesTerm {
                position,
                region,
                condition,
                body: self.in_phase(body, position),
                coefs: coefs.list.into_iter().map(|coef| coef.value).collect(),
            })),
            Err(refused) => self.refuse_term(&refused, &place),
        }
    }

    fn refuse_term<T>(&mut self, refused: &Refused, place: &Place) -> Outcome<T> {
        let d = match refused {
            Refused::TooLarge => self.error(
                codes::TOO_MANY_TERMS,
                "this reduction has too many terms",
                place,
            ),
            Refused::NotFinite(n) => {
                let message = format!("a number of this reduction is {n}");
                self.error(codes::NOT_FINITE, message, place)
            }
            Refused::TooFar(_) => {
                let message = "this reads further than the domain is wide";
                self.error(codes::STENCIL, message, place)
            }
        };
        self.fail(d)
    }
}

impl Term {
    fn whole(expr: &Expr) -> Self {
        Self {
            expr: expr.clone(),
            path: Vec::new(),
        }
    }

    /// The same term as a part of operand `i` of a sum.
    fn inside(mut self, i: usize) -> Self {
        self.path.insert(0, i);
        self
    }

    fn map(self, f: impl FnOnce(Expr) -> Expr) -> Self {
        Self {
            expr: f(self.expr),
            path: self.path,
        }
    }

    /// The position of a number: that of the innermost sum around it in which a term has one, if this is the only one.
    fn position_among(&self, placed: &[Placed]) -> Option<Position> {
        let sums = (0..self.path.len()).rev().map(|n| &self.path[..n]);
        for sum in sums {
            let mut positions = placed
                .iter()
                .filter(|p| p.path.starts_with(sum))
                .map(|p| p.position);
            if let Some(first) = positions.next() {
                return positions.all(|p| p == first).then_some(first);
            }
        }
        None
    }
}

/// The terms of a sum, each of which may lie at places of its own. Factors of sums go to their terms; the product of
/// two sums is one term.
fn terms_of(expr: &Expr, depth: usize) -> Vec<Term> {
    let whole = || vec![Term::whole(expr)];
    if depth > DEPTH {
        return whole();
    }
    let with = |node: ExprKind| Expr {
        span: expr.span,
        node,
    };
    let negated = |term: Term| term.map(|x| with(ExprKind::Unary(UnaryOp::Neg, Box::new(x))));
    let terms = match &expr.node {
        ExprKind::Unary(UnaryOp::Neg, a) => {
            terms_of(a, depth + 1).into_iter().map(negated).collect()
        }
        ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub, ..) => {
            // Long sums nest to the left.
            let mut operands = Vec::new();
            let mut rest = expr;
            while let ExprKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) = &rest.node {
                let right = terms_of(b, depth + 1).into_iter();
                operands.push(match op {
                    BinaryOp::Sub => right.map(negated).collect(),
                    _ => right.collect::<Vec<_>>(),
                });
                rest = a;
                if in_parentheses(rest) {
                    break;
                }
            }
            operands.push(terms_of(rest, depth + 1));
            let numbered = operands.into_iter().rev().enumerate();
            numbered
                .flat_map(|(i, list)| list.into_iter().map(move |term| term.inside(i)))
                .collect()
        }
        ExprKind::Binary(op @ (BinaryOp::Mul | BinaryOp::Div), a, b) => {
            let left = terms_of(a, depth + 1);
            let right = match op {
                BinaryOp::Mul => terms_of(b, depth + 1),
                _ => vec![Term::whole(b)],
            };
            let product = |x: Expr, y: Expr| with(ExprKind::Binary(*op, Box::new(x), Box::new(y)));
            match (left.len(), right.len()) {
                (_, 1) if left.len() > 1 => left
                    .into_iter()
                    .map(|term| term.map(|x| product(x, (**b).clone())))
                    .collect(),
                (1, _) if right.len() > 1 => right
                    .into_iter()
                    .map(|term| term.map(|y| product((**a).clone(), y)))
                    .collect(),
                _ => whole(),
            }
        }
        _ => whole(),
    };
    match terms.len() > TERMS {
        true => whole(),
        false => terms,
    }
}
