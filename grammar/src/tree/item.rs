//! Items and the statements of their blocks.

use super::expr::level;
use super::{Builder, Rule, first, parts};
use crate::ast::*;
use crate::codes;
use crate::diag::Diagnostic;
use crate::layout::shorten;
use crate::source::{Span, Spanned};
use pest::iterators::Pair;

/// The first part that matches a rule.
fn part(pair: Pair<'_, Rule>, rule: Rule) -> Option<Pair<'_, Rule>> {
    parts(pair).find(|part| part.as_rule() == rule)
}

impl Builder<'_> {
    pub(super) fn build_item(&mut self, pair: Pair<'_, Rule>, opening: bool) -> Option<Item> {
        let span = self.span(&pair);
        let mut comments = self.before(span.start as usize, opening);
        let comments_of = &mut comments;
        let kind = match pair.as_rule() {
            Rule::use_item => ItemKind::Use(self.simple(span, comments_of, |b| b.build_use(pair))?),
            Rule::const_item => {
                let (name, value) = self.simple(span, comments_of, |b| b.name_and_value(pair))?;
                ItemKind::Const { name, value }
            }
            Rule::def_item => ItemKind::Def(self.build_def(pair, comments_of)?),
            Rule::scheme_item => {
                let mut parts = parts(pair);
                let name = self.name(parts.next()?);
                let (body, end) =
                    self.block(parts.next()?, span, comments_of, Self::scheme_stmt)?;
                ItemKind::Scheme(Scheme { name, body, end })
            }
            Rule::problem_item => {
                let mut parts = parts(pair);
                let name = self.name(parts.next()?);
                let (body, end) =
                    self.block(parts.next()?, span, comments_of, Self::problem_stmt)?;
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
                let (levels, end) = self.block(next, span, comments_of, Self::schedule_level)?;
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

    /// A node without a block: all of its comments are its own.
    fn simple<T>(
        &mut self,
        span: Span,
        comments: &mut Comments,
        build: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let node = build(self)?;
        self.within(span.start as usize, span.end as usize, true, comments);
        Some(node)
    }

    /// The statements between braces. `comments` are those of the node that owns the block and begins at `owner`; it gets the
    /// comment behind the opening brace.
    fn block<T>(
        &mut self,
        pair: Pair<'_, Rule>,
        owner: Span,
        comments: &mut Comments,
        mut stmt: impl FnMut(&mut Self, Pair<'_, Rule>, &mut Comments) -> Option<T>,
    ) -> Option<(Vec<Stmt<T>>, Comments)> {
        let span = self.span(&pair);
        self.within(
            owner.start as usize,
            span.start as usize + 1,
            false,
            comments,
        );
        let mut body = Vec::new();
        for part in parts(pair) {
            body.push(self.stmt(part, body.is_empty(), &mut stmt)?);
        }
        let end = self.end((span.end as usize).saturating_sub(1), body.is_empty());
        Some((body, end))
    }

    fn stmt<T>(
        &mut self,
        pair: Pair<'_, Rule>,
        opening: bool,
        build: &mut impl FnMut(&mut Self, Pair<'_, Rule>, &mut Comments) -> Option<T>,
    ) -> Option<Stmt<T>> {
        let span = self.span(&pair);
        let mut comments = self.before(span.start as usize, opening);
        let node = build(self, pair, &mut comments)?;
        Some(Stmt {
            comments,
            kind: Spanned::new(node, span),
        })
    }

    fn name_and_value(&mut self, pair: Pair<'_, Rule>) -> Option<(Name, Expr)> {
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

    fn build_def(&mut self, pair: Pair<'_, Rule>, comments: &mut Comments) -> Option<Def> {
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
        let body = head.next()?;
        if body.as_rule() == Rule::def_value {
            let body = self.simple(span, comments, |b| b.expr(first(body)?))?;
            let (body_comments, end) = Default::default();
            return Some(Def {
                name,
                params,
                lets: Vec::new(),
                body,
                body_comments,
                end,
            });
        }
        let block = self.span(&body);
        self.within(
            span.start as usize,
            block.start as usize + 1,
            false,
            comments,
        );
        let mut lets = Vec::new();
        let mut value = None;
        let mut body_comments = Comments::default();
        for part in parts(body) {
            if part.as_rule() == Rule::let_stmt {
                let mut build = |b: &mut Self, pair: Pair<'_, Rule>, comments: &mut Comments| {
                    let span = b.span(&pair);
                    b.simple(span, comments, |b| b.build_let(pair))
                };
                lets.push(self.stmt(part, lets.is_empty(), &mut build)?);
            } else {
                let span = self.span(&part);
                body_comments = self.before(span.start as usize, lets.is_empty());
                value = Some(self.simple(span, &mut body_comments, |b| b.expr(first(part)?))?);
            }
        }
        let end = self.end((block.end as usize).saturating_sub(1), false);
        Some(Def {
            name,
            params,
            lets,
            body: value?,
            body_comments,
            end,
        })
    }

    fn scheme_stmt(&mut self, pair: Pair<'_, Rule>, comments: &mut Comments) -> Option<SchemeStmt> {
        let span = self.span(&pair);
        let pair = first(pair)?;
        if pair.as_rule() == Rule::step_stmt {
            let (body, end) = self.block(first(pair)?, span, comments, Self::step_stmt)?;
            return Some(SchemeStmt::Step { body, end });
        }
        self.simple(span, comments, |b| match pair.as_rule() {
            Rule::axes_stmt => Some(SchemeStmt::Axes(
                parts(pair).map(|name| b.name(name)).collect(),
            )),
            Rule::param_stmt => {
                let (name, value) = b.name_and_value(pair)?;
                Some(SchemeStmt::Param { name, value })
            }
            Rule::const_item => {
                let (name, value) = b.name_and_value(pair)?;
                Some(SchemeStmt::Const { name, value })
            }
            Rule::field_stmt => b.field(pair).map(SchemeStmt::Field),
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
                        value: self.coef_value(part)?,
                    });
                }
            }
        }
        None
    }

    fn coef_value(&mut self, pair: Pair<'_, Rule>) -> Option<CoefValue> {
        let pair = first(pair)?;
        if pair.as_rule() == Rule::file_value {
            return Some(CoefValue::File(self.string(part(pair, Rule::string)?)));
        }
        Some(CoefValue::Expr(self.expr(pair)?))
    }

    fn string(&mut self, pair: Pair<'_, Rule>) -> Spanned<String> {
        let span = self.span(&pair);
        // The source's own text: in the grammar's, nothing inside of strings differs.
        let text = self.text(
            span.start as usize + 1,
            (span.end as usize).saturating_sub(1),
        );
        Spanned::new(text.to_string(), span)
    }

    fn step_stmt(&mut self, pair: Pair<'_, Rule>, comments: &mut Comments) -> Option<StepStmt> {
        let span = self.span(&pair);
        let pair = first(pair)?;
        if pair.as_rule() == Rule::where_stmt {
            let mut parts = parts(pair);
            let condition = self.expr(parts.next()?)?;
            let (body, end) = self.block(parts.next()?, span, comments, Self::step_stmt)?;
            return Some(StepStmt::Where {
                condition,
                body,
                end,
            });
        }
        self.simple(span, comments, |b| {
            if pair.as_rule() == Rule::let_stmt {
                return b.build_let(pair).map(StepStmt::Let);
            }
            let mut parts = parts(pair);
            let target = b.target(parts.next()?)?;
            let op = match parts.next()?.as_str() {
                "+=" => UpdateOp::Add,
                "-=" => UpdateOp::Sub,
                _ => UpdateOp::Set,
            };
            Some(StepStmt::Update {
                target,
                op,
                value: b.expr(parts.next()?)?,
            })
        })
    }

    fn target(&mut self, pair: Pair<'_, Rule>) -> Option<Target> {
        let mut parts = parts(pair);
        let mut target = Target {
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

    fn problem_stmt(
        &mut self,
        pair: Pair<'_, Rule>,
        comments: &mut Comments,
    ) -> Option<ProblemStmt> {
        let span = self.span(&pair);
        self.simple(span, comments, |b| b.problem_line(first(pair)?))
    }

    fn problem_line(&mut self, pair: Pair<'_, Rule>) -> Option<ProblemStmt> {
        let rule = pair.as_rule();
        if rule == Rule::const_item {
            let (name, value) = self.name_and_value(pair)?;
            return Some(ProblemStmt::Const { name, value });
        }
        let mut parts = parts(pair);
        if rule == Rule::boundary_stmt {
            let clauses = parts
                .map(|pair| self.boundary(pair))
                .collect::<Option<_>>()?;
            return Some(ProblemStmt::Boundary(clauses));
        }
        if rule == Rule::domain_stmt {
            return Some(ProblemStmt::Domain(self.exprs(parts)?));
        }
        let head = parts.next()?;
        Some(match rule {
            Rule::use_scheme => {
                let mut params = Vec::new();
                for pair in parts.flat_map(super::parts) {
                    params.push(self.name_and_value(pair)?);
                }
                ProblemStmt::Scheme {
                    path: super::parts(head).map(|name| self.name(name)).collect(),
                    params,
                }
            }
            Rule::steps_stmt => ProblemStmt::Steps(self.expr(head)?),
            Rule::problem_coef => {
                let name = self.name(head);
                let mut component = None;
                let mut next = parts.next()?;
                if next.as_rule() == Rule::member {
                    component = Some(self.name(first(next)?));
                    next = parts.next()?;
                }
                ProblemStmt::Coef {
                    name,
                    component,
                    value: self.coef_value(next)?,
                }
            }
            Rule::init_stmt => ProblemStmt::Init {
                target: self.target(head)?,
                value: self.coef_value(parts.next()?)?,
            },
            Rule::source_stmt => {
                let target = self.target(head)?;
                let next = parts.next()?;
                match parts.next() {
                    Some(value) => ProblemStmt::Source {
                        target,
                        place: self.place(next)?,
                        value: self.expr(value)?,
                    },
                    None => ProblemStmt::Source {
                        target,
                        place: Place::All,
                        value: self.expr(next)?,
                    },
                }
            }
            Rule::probe_stmt => {
                let target = self.target(head)?;
                let at = self.exprs(super::parts(parts.next()?))?;
                let name = match parts.next() {
                    Some(pair) => Some(self.name(first(pair)?)),
                    None => None,
                };
                ProblemStmt::Probe { target, at, name }
            }
            Rule::slice_stmt => {
                let target = self.target(head)?;
                let axis = self.name(parts.next()?);
                let index = self.expr(parts.next()?)?;
                ProblemStmt::Slice {
                    target,
                    axis,
                    index,
                    every: self.every(parts.next())?,
                }
            }
            _ => ProblemStmt::Volume {
                target: self.target(head)?,
                every: self.every(parts.next())?,
            },
        })
    }

    /// The outer `None` is a fault, as everywhere here.
    fn every(&mut self, pair: Option<Pair<'_, Rule>>) -> Option<Option<Expr>> {
        match pair {
            Some(pair) => Some(Some(self.expr(first(pair)?)?)),
            None => Some(None),
        }
    }

    fn boundary(&mut self, pair: Pair<'_, Rule>) -> Option<BoundaryClause> {
        let mut parts = parts(pair);
        let axis = self.name(parts.next()?);
        let lower = self.side(parts.next()?)?;
        let upper = match parts.next() {
            Some(pair) => Some(self.side(pair)?),
            None => None,
        };
        Some(BoundaryClause { axis, lower, upper })
    }

    fn side(&mut self, pair: Pair<'_, Rule>) -> Option<BoundaryKind> {
        let mut parts = parts(pair);
        let name = self.name(parts.next()?);
        let args = match parts.next() {
            Some(pair) => self.args(pair)?,
            None => Vec::new(),
        };
        Some(BoundaryKind { name, args })
    }

    fn place(&mut self, pair: Pair<'_, Rule>) -> Option<Place> {
        Some(match pair.as_rule() {
            Rule::place_at => Place::At(self.exprs(parts(first(pair)?))?),
            Rule::place_where => Place::Where(self.expr(first(pair)?)?),
            _ => {
                let mut intervals = Vec::new();
                for interval in parts(pair) {
                    let mut parts = parts(interval);
                    let axis = self.name(parts.next()?);
                    intervals.push((axis, self.expr(parts.next()?)?, self.expr(parts.next()?)?));
                }
                Place::In(intervals)
            }
        })
    }

    pub(super) fn schedule_levels(
        &mut self,
        pair: Pair<'_, Rule>,
    ) -> Option<Vec<Stmt<ScheduleLevel>>> {
        let mut levels = Vec::new();
        for part in parts(pair) {
            levels.push(self.stmt(part, levels.is_empty(), &mut Self::schedule_level)?);
        }
        Some(levels)
    }

    fn schedule_level(
        &mut self,
        pair: Pair<'_, Rule>,
        comments: &mut Comments,
    ) -> Option<ScheduleLevel> {
        let span = self.span(&pair);
        self.simple(span, comments, |b| b.level_line(pair))
    }

    fn level_line(&mut self, pair: Pair<'_, Rule>) -> Option<ScheduleLevel> {
        let mut parts = parts(pair);
        let mut next = parts.next()?;
        let mut axes = Vec::new();
        if next.as_rule() == Rule::level_axes {
            axes = super::parts(next).map(|name| self.name(name)).collect();
            next = parts.next()?;
        }
        let mut term = super::parts(next);
        let name = self.name(term.next()?);
        let mut args = Vec::new();
        for arg in term.flat_map(super::parts) {
            args.push(self.term_arg(arg)?);
        }
        let clauses = parts.map(|pair| self.clause(pair)).collect::<Option<_>>()?;
        Some(ScheduleLevel {
            axes,
            shape: ScheduleTerm { name, args },
            clauses,
        })
    }

    fn term_arg(&mut self, pair: Pair<'_, Rule>) -> Option<ScheduleArg> {
        let mut name = None;
        for part in parts(pair) {
            if part.as_rule() == Rule::arg_name {
                name = Some(self.name(first(part)?));
            } else {
                return Some(ScheduleArg {
                    name,
                    value: self.schedule_value(part)?,
                });
            }
        }
        None
    }

    fn schedule_value(&mut self, pair: Pair<'_, Rule>) -> Option<ScheduleValue> {
        if pair.as_rule() == Rule::auto_value || pair.as_str().trim() == "auto" {
            return Some(ScheduleValue::Auto);
        }
        let mut parts = parts(pair);
        let from = self.expr(parts.next()?)?;
        Some(match parts.next() {
            Some(to) => ScheduleValue::Range(from, self.expr(to)?),
            None => ScheduleValue::Expr(from),
        })
    }

    fn clause(&mut self, pair: Pair<'_, Rule>) -> Option<ScheduleClause> {
        if pair.as_rule() == Rule::lean {
            let positive = pair
                .clone()
                .into_inner()
                .any(|part| part.as_rule() == Rule::sign && part.as_str() == "+");
            return Some(ScheduleClause::Lean {
                positive,
                axis: self.name(part(pair, Rule::name)?),
            });
        }
        let mut parts = parts(pair);
        let word = self.name(parts.next()?);
        let value = match parts.next() {
            Some(pair) => Some(self.schedule_value(pair)?),
            None => None,
        };
        Some(ScheduleClause::Word { word, value })
    }
}
