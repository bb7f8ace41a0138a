//! Items and the statements of their blocks.

use super::expr::level;
use super::{Builder, Ordinal, Rule, first, parts};
use crate::ast::*;
use crate::codes;
use crate::diag::Diagnostic;
use crate::layout::shorten;
use crate::source::{Span, Spanned};
use pest::iterators::Pair;

pub(super) fn update_op(pair: &Pair<'_, Rule>) -> UpdateOp {
    match pair.as_str() {
        "+=" => UpdateOp::Add,
        "-=" => UpdateOp::Sub,
        _ => UpdateOp::Set,
    }
}

impl Builder<'_> {
    pub(super) fn build_item(&mut self, pair: Pair<'_, Rule>, ordinal: Ordinal) -> Option<Item> {
        let span = self.span(&pair);
        let mut comments = self.before(span.start as usize, ordinal);
        let comments_of = &mut comments;
        let kind = match pair.as_rule() {
            Rule::use_item => ItemKind::Use(self.simple(span, comments_of, |b| b.build_use(pair))?),
            Rule::const_item => {
                let (name, value) = self.simple(span, comments_of, |b| b.name_and_value(pair))?;
                ItemKind::Const { name, value }
            }
            Rule::def_item => ItemKind::Def(self.build_def(pair, comments_of)?.0),
            Rule::layer_item => {
                let (def, wall) = self.build_def(pair, comments_of)?;
                ItemKind::Layer(Layer { def, wall: wall? })
            }
            Rule::scheme_item => {
                let mut parts = parts(pair);
                let name = self.name(parts.next()?);
                let mut next = parts.next()?;
                let mut base = None;
                if next.as_rule() == Rule::derived {
                    base = Some(self.path(first(next)?));
                    next = parts.next()?;
                }
                let (body, end) = self.block(next, comments_of, Self::scheme_stmt)?;
                ItemKind::Scheme(Scheme {
                    name,
                    base,
                    body,
                    end,
                })
            }
            Rule::problem_item => {
                let mut parts = parts(pair);
                let name = self.name(parts.next()?);
                let (body, end) = self.block(parts.next()?, comments_of, Self::problem_stmt)?;
                ItemKind::Problem(Problem { name, body, end })
            }
            _ => {
                let mut parts = parts(pair);
                let name = self.name(parts.next()?);
                let mut next = parts.next()?;
                let mut scheme = None;
                if next.as_rule() == Rule::schedule_for {
                    scheme = Some(self.name(first(next)?));
                    next = parts.next()?;
                }
                let (levels, end) = self.block(next, comments_of, Self::schedule_level)?;
                ItemKind::Schedule(Schedule {
                    name,
                    scheme,
                    levels,
                    end,
                })
            }
        };
        Some(Item { comments, kind })
    }

    pub(super) fn path(&mut self, pair: Pair<'_, Rule>) -> Vec<Name> {
        self.names(pair)
    }

    /// The names that a match is made of.
    pub(super) fn names(&self, pair: Pair<'_, Rule>) -> Vec<Name> {
        parts(pair).map(|name| self.name(name)).collect()
    }

    /// A node without a block: all of its comments are its own.
    pub(super) fn simple<T>(
        &mut self,
        span: Span,
        comments: &mut Comments,
        build: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let node = build(self)?;
        self.within(span.end as usize, comments);
        Some(node)
    }

    /// The statements between braces. `comments` are the comments of the node that owns the block; it gets the comment
    /// behind the opening brace.
    pub(super) fn block<T>(
        &mut self,
        pair: Pair<'_, Rule>,
        comments: &mut Comments,
        mut stmt: impl FnMut(&mut Self, Pair<'_, Rule>, &mut Comments) -> Option<T>,
    ) -> Option<(Vec<Stmt<T>>, Comments)> {
        let span = self.span(&pair);
        self.within(span.start as usize + 1, comments);
        let mut body = Vec::new();
        for part in parts(pair) {
            body.push(self.stmt(part, Ordinal::after(&body), &mut stmt)?);
        }
        let end = self.end((span.end as usize).saturating_sub(1), Ordinal::after(&body));
        Some((body, end))
    }

    pub(super) fn stmt<T>(
        &mut self,
        pair: Pair<'_, Rule>,
        ordinal: Ordinal,
        build: &mut impl FnMut(&mut Self, Pair<'_, Rule>, &mut Comments) -> Option<T>,
    ) -> Option<Stmt<T>> {
        let span = self.span(&pair);
        let mut comments = self.before(span.start as usize, ordinal);
        let node = build(self, pair, &mut comments)?;
        Some(Stmt {
            comments,
            kind: Spanned::new(node, span),
        })
    }

    pub(super) fn name_and_value(&mut self, pair: Pair<'_, Rule>) -> Option<(Name, Expr)> {
        let mut parts = parts(pair);
        Some((self.name(parts.next()?), self.expr(parts.next()?)?))
    }

    fn build_let(&mut self, pair: Pair<'_, Rule>) -> Option<Let> {
        let (name, value) = self.name_and_value(pair)?;
        Some(Let { name, value })
    }

    fn build_use(&mut self, pair: Pair<'_, Rule>) -> Option<Use> {
        let mut path = Vec::new();
        let mut names = Vec::new();
        for part in parts(pair) {
            if part.as_rule() == Rule::use_list {
                names = parts(part).map(|name| self.name(name)).collect();
            } else {
                path.push(self.name(part));
            }
        }
        if names.is_empty() {
            names.push(path.pop()?);
        }
        if let ([], [name, ..]) = (path.as_slice(), names.as_slice()) {
            self.error(
                Diagnostic::error(codes::UNEXPECTED, "`use` needs the module and the item")
                    .at(self.source, name.span, "one name only")
                    .hint(format!(
                        "write `use {0}::item`, or `use module::{0}`",
                        shorten(&name.node)
                    )),
            );
        }
        Some(Use { path, names })
    }

    /// A definition, and the wall of one that is a layer.
    fn build_def(
        &mut self,
        pair: Pair<'_, Rule>,
        comments: &mut Comments,
    ) -> Option<(Def, Option<Name>)> {
        let span = self.span(&pair);
        let mut head = parts(pair);
        let name = self.name(head.next()?);
        let mut params = Vec::new();
        for param in parts(head.next()?) {
            let mut parts = parts(param);
            let name = self.name(parts.next()?);
            let default = match parts.next() {
                Some(pair) => Some(self.expr(pair)?),
                None => None,
            };
            params.push(Param { name, default });
        }
        let mut body = head.next()?;
        let mut wall = None;
        if body.as_rule() == Rule::wall {
            wall = Some(self.name(first(body)?));
            body = head.next()?;
        }
        if body.as_rule() == Rule::def_value {
            let body = self.simple(span, comments, |b| b.expr(first(body)?))?;
            let (body_comments, end) = Default::default();
            let def = Def {
                name,
                params,
                lines: Vec::new(),
                body,
                body_comments,
                end,
            };
            return Some((def, wall));
        }
        let block = self.span(&body);
        self.within(block.start as usize + 1, comments);
        let mut lines = Vec::new();
        let mut value = None;
        let mut body_comments = Comments::default();
        for part in parts(body) {
            if part.as_rule() != Rule::def_body {
                let mut build = |b: &mut Self, pair: Pair<'_, Rule>, comments: &mut Comments| {
                    let span = b.span(&pair);
                    b.simple(span, comments, |b| b.def_line(pair))
                };
                lines.push(self.stmt(part, Ordinal::after(&lines), &mut build)?);
            } else {
                let span = self.span(&part);
                body_comments = self.before(span.start as usize, Ordinal::after(&lines));
                value = Some(self.simple(span, &mut body_comments, |b| b.expr(first(part)?))?);
            }
        }
        let end = self.end((block.end as usize).saturating_sub(1), Ordinal::Later);
        let def = Def {
            name,
            params,
            lines,
            body: value?,
            body_comments,
            end,
        };
        Some((def, wall))
    }

    fn def_line(&mut self, pair: Pair<'_, Rule>) -> Option<DefLine> {
        Some(match pair.as_rule() {
            Rule::require_stmt => DefLine::Require(self.expr(first(pair)?)?),
            Rule::state_stmt => {
                let mut names = Vec::new();
                let mut region = None;
                for part in parts(pair) {
                    match part.as_rule() {
                        Rule::state_in => region = Some(self.expr(first(part)?)?),
                        _ => names.push(self.name(part)),
                    }
                }
                DefLine::State { names, region }
            }
            Rule::next_stmt => {
                let (name, value) = self.name_and_value(pair)?;
                DefLine::Next { name, value }
            }
            _ => DefLine::Let(self.build_let(pair)?),
        })
    }

    fn scheme_stmt(&mut self, pair: Pair<'_, Rule>, comments: &mut Comments) -> Option<SchemeStmt> {
        let span = self.span(&pair);
        let pair = first(pair)?;
        if pair.as_rule() == Rule::step_stmt {
            let (body, end) = self.block(first(pair)?, comments, Self::step_stmt)?;
            return Some(SchemeStmt::Step { body, end });
        }
        self.simple(span, comments, |b| match pair.as_rule() {
            Rule::axes_stmt => Some(SchemeStmt::Axes(b.names(pair))),
            Rule::param_stmt => {
                let (name, value) = b.name_and_value(pair)?;
                Some(SchemeStmt::Param { name, value })
            }
            Rule::const_item => {
                let (name, value) = b.name_and_value(pair)?;
                Some(SchemeStmt::Const { name, value })
            }
            Rule::field_stmt => b.field(pair).map(SchemeStmt::Field),
            Rule::region_stmt => b.region(pair).map(SchemeStmt::Region),
            Rule::side_stmt => b.kind_of_side(pair),
            Rule::allow_stmt => Some(SchemeStmt::Allow(b.names(pair))),
            _ => b.coef(pair).map(SchemeStmt::Coef),
        })
    }

    fn field(&mut self, pair: Pair<'_, Rule>) -> Option<Field> {
        let mut parts = parts(pair);
        let name = self.name(parts.next()?);
        let shape = self.shape(parts.next()?)?;
        let mut field = Field {
            name,
            shape,
            position: None,
            time: None,
            levels: None,
        };
        for part in parts {
            match part.as_rule() {
                Rule::position => field.position = Some(self.position(part)?),
                Rule::field_time => field.time = Some(self.expr(first(part)?)?),
                _ => field.levels = Some(self.expr(first(part)?)?),
            }
        }
        Some(field)
    }

    fn shape(&mut self, pair: Pair<'_, Rule>) -> Option<Shape> {
        Some(match pair.as_str() {
            "scalar" => Shape::Scalar,
            "vector" => Shape::Vector,
            "tensor" => Shape::Tensor,
            _ => {
                let mut components = Vec::new();
                for component in parts(pair) {
                    let mut parts = parts(component);
                    components.push((self.name(parts.next()?), self.position(parts.next()?)?));
                }
                Shape::Named(components)
            }
        })
    }

    fn position(&mut self, pair: Pair<'_, Rule>) -> Option<Spanned<Position>> {
        let span = self.span(&pair);
        let pair = first(pair)?;
        let position = match (pair.as_rule(), pair.as_str()) {
            (Rule::list, _) => Position::Explicit(self.exprs(parts(pair))?),
            (_, "nodes") => Position::Nodes,
            (_, "edges") => Position::Edges,
            (_, "faces") => Position::Faces,
            _ => Position::Cells,
        };
        Some(Spanned::new(position, span))
    }

    fn coef(&mut self, pair: Pair<'_, Rule>) -> Option<Coef> {
        let mut parts = parts(pair);
        let name = self.name(parts.next()?);
        let (mut shape, mut position) = (None, None);
        for part in parts {
            match part.as_rule() {
                Rule::coef_shape => {
                    let part = first(part)?;
                    let span = self.span(&part);
                    shape = Some(Spanned::new(self.shape(part)?, span));
                }
                Rule::coef_on => position = Some(self.position(first(part)?)?),
                _ => {
                    return Some(Coef {
                        name,
                        shape,
                        position,
                        value: self.expr(part)?,
                    });
                }
            }
        }
        None
    }

    pub(super) fn region(&mut self, pair: Pair<'_, Rule>) -> Option<Region> {
        let mut parts = parts(pair);
        let name = self.name(parts.next()?);
        let mut next = parts.next()?;
        let mut position = None;
        if next.as_rule() == Rule::coef_on {
            position = Some(self.position(first(next)?)?);
            next = parts.next()?;
        }
        Some(Region {
            name,
            position,
            condition: self.expr(next)?,
        })
    }

    fn kind_of_side(&mut self, pair: Pair<'_, Rule>) -> Option<SchemeStmt> {
        let mut rest = parts(pair);
        let name = self.name(rest.next()?);
        let mut parities = Vec::new();
        for pair in rest {
            let mut parts = parts(pair);
            let field = self.name(parts.next()?);
            let mut next = parts.next()?;
            let mut component = None;
            if next.as_rule() == Rule::member {
                component = Some(self.name(first(next)?));
                next = parts.next()?;
            }
            parities.push(SideParity {
                field,
                component,
                odd: next.as_str() == "odd",
            });
        }
        Some(SchemeStmt::Side { name, parities })
    }

    fn step_stmt(&mut self, pair: Pair<'_, Rule>, comments: &mut Comments) -> Option<StepStmt> {
        let span = self.span(&pair);
        let pair = first(pair)?;
        if pair.as_rule() == Rule::where_stmt {
            return self.branches(pair, comments);
        }
        self.simple(span, comments, |b| {
            if pair.as_rule() == Rule::let_stmt {
                return b.build_let(pair).map(StepStmt::Let);
            }
            if pair.as_rule() == Rule::allow_stmt {
                return Some(StepStmt::Allow(b.names(pair)));
            }
            let mut parts = parts(pair);
            let target = b.target(parts.next()?)?;
            let op = update_op(&parts.next()?);
            Some(StepStmt::Update {
                target,
                op,
                value: b.expr(parts.next()?)?,
            })
        })
    }

    /// The branches of a `where` that has the comments `own`.
    fn branches(&mut self, pair: Pair<'_, Rule>, own: &mut Comments) -> Option<StepStmt> {
        let mut rest = parts(pair);
        let condition = Some(self.expr(rest.next()?)?);
        let (body, end) = self.block(rest.next()?, own, Self::step_stmt)?;
        let mut branches = vec![Branch {
            comments: Comments::default(),
            condition,
            body,
            end,
        }];
        for pair in rest {
            let span = self.span(&pair);
            let mut comments = self.before(span.start as usize, Ordinal::First);
            // Blank lines before `else` are not kept.
            comments.before.retain(|line| !line.is_empty());
            let mut parts = parts(pair);
            let mut next = parts.next()?;
            let mut condition = None;
            if next.as_rule() == Rule::expr {
                condition = Some(self.expr(next)?);
                next = parts.next()?;
            }
            let (body, end) = self.block(next, &mut comments, Self::step_stmt)?;
            branches.push(Branch {
                comments,
                condition,
                body,
                end,
            });
        }
        Some(StepStmt::Where(branches))
    }

    pub(super) fn target(&mut self, pair: Pair<'_, Rule>) -> Option<Target> {
        let mut parts = parts(pair);
        let mut target = Target {
            state: None,
            field: self.name(parts.next()?),
            component: None,
            level: None,
        };
        for part in parts {
            match part.as_rule() {
                Rule::member => target.component = Some(self.name(first(part)?)),
                _ => {
                    let span = self.span(&part);
                    target.level = Some(Spanned::new(level(part)?, span));
                }
            }
        }
        Some(target)
    }
}
