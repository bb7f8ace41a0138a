//! The grammar's matches become the tree. Nothing outside of this module knows the grammar's rules.
//!
//! The functions here return `None` only if a match lacks a part that the grammar demands; `parse` reports that as a
//! fault of the compiler.

mod expected;
mod expr;
mod item;
mod problem;
mod schedule;

use crate::ast::{Bracket, Comments, Expr, Inside, Item, Name, ScheduleLevel, Stand, Stmt};
use crate::codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::layout::{Layout, Trivia};
use crate::source::{Source, Span, Spanned};
use crate::words::Count;
use pest::Parser;
use pest::iterators::Pair;

pub(crate) use expected::Failure;

#[derive(pest_derive::Parser)]
#[grammar = "torre.pest"]
struct Torre;

/// How deep an expression's tree may be. A chain of operators is as deep as it is long, and code that walks the tree
/// recurses.
pub const MAX_EXPRESSION: u32 = 256;

/// Builds the trees of one source, in the order of the text.
pub(crate) struct Builder<'s> {
    source: &'s Source,
    /// Where the text that the grammar reads begins in the source.
    base: usize,
    /// The source's text without comments, at the same offsets.
    bare: &'s str,
    trivia: &'s [(usize, Trivia)],
    /// Where the node begins whose comments were looked for last.
    begun: usize,
    /// The trivia before this index have found their place.
    taken: usize,
    /// An expression of this item is too long; one report is enough.
    long: bool,
    diagnostics: &'s mut Diagnostics,
}

/// A node's place among the nodes of its block. Blank lines before the first one are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ordinal {
    First,
    Later,
}

impl Ordinal {
    /// The place of the node behind these.
    pub(crate) fn after<T>(nodes: &[T]) -> Ordinal {
        if nodes.is_empty() {
            Ordinal::First
        } else {
            Ordinal::Later
        }
    }
}

/// A match without the tokens that say nothing by themselves.
fn parts(pair: Pair<'_, Rule>) -> impl Iterator<Item = Pair<'_, Rule>> {
    pair.into_inner()
        .filter(|part| !expected::is_punctuation(part.as_rule()))
}

fn first(pair: Pair<'_, Rule>) -> Option<Pair<'_, Rule>> {
    parts(pair).next()
}

impl<'s> Builder<'s> {
    pub fn new(source: &'s Source, layout: &'s Layout, diagnostics: &'s mut Diagnostics) -> Self {
        Self {
            source,
            base: 0,
            bare: &layout.text,
            trivia: &layout.trivia,
            begun: 0,
            taken: 0,
            long: false,
            diagnostics,
        }
    }

    /// Reads one item. `Ok(None)` if its tree could not be made.
    pub fn item(
        &mut self,
        text: &str,
        base: usize,
        ordinal: Ordinal,
    ) -> Result<Option<Item>, Failure> {
        self.base = base;
        self.long = false;
        let pair = self.matched(Rule::item_text, text)?;
        Ok(pair
            .and_then(first)
            .and_then(|pair| self.build_item(pair, ordinal)))
    }

    /// Reads a schedule's levels.
    pub fn schedule(&mut self, text: &str) -> Result<Option<Vec<Stmt<ScheduleLevel>>>, Failure> {
        let pair = self.matched(Rule::schedule_text, text)?;
        Ok(pair.and_then(|pair| self.schedule_levels(pair)))
    }

    /// Reads an expression.
    pub fn expression(&mut self, text: &str) -> Result<Option<Expr>, Failure> {
        let pair = self.matched(Rule::expr_text, text)?;
        Ok(pair.and_then(first).and_then(|pair| self.expr(pair)))
    }

    fn matched<'i>(
        &mut self,
        rule: Rule,
        text: &'i str,
    ) -> Result<Option<Pair<'i, Rule>>, Failure> {
        match Torre::parse(rule, text) {
            Ok(mut pairs) => Ok(pairs.next()),
            Err(error) => Err(Failure::new(&error, self.base)),
        }
    }

    /// The place of a match, without the blanks that follow it.
    fn span(&self, pair: &Pair<'_, Rule>) -> Span {
        let start = self.base + pair.as_span().start();
        Span::new(start, start + pair.as_str().trim_end().len())
    }

    fn name(&self, pair: Pair<'_, Rule>) -> Name {
        let span = self.span(&pair);
        Spanned::new(pair.as_str().to_string(), span)
    }

    /// How many errors there are so far.
    pub fn error_count(&self) -> usize {
        self.diagnostics.0.len()
    }

    pub fn error(&mut self, error: Diagnostic) {
        self.diagnostics.push(error);
    }

    /// The comments before a node that begins at `start`. Blank lines collapse; blank lines at a block's beginning are
    /// dropped.
    fn before(&mut self, start: usize, ordinal: Ordinal) -> Comments {
        let mut before = Vec::new();
        self.begun = start;
        while let Some((at, trivia)) = self.trivia.get(self.taken) {
            if *at >= start {
                break;
            }
            self.taken += 1;
            match trivia {
                Trivia::Comment(text) => before.push(text.clone()),
                Trivia::Blank => {
                    let redundant = match before.last() {
                        Some(last) => last.is_empty(),
                        None => ordinal == Ordinal::First,
                    };
                    if !redundant {
                        before.push(String::new());
                    }
                }
            }
        }
        Comments {
            before,
            ..Comments::default()
        }
    }

    /// Takes the comments inside of the node that began last, up to `end`, and the one behind it on the same line.
    fn within(&mut self, end: usize, comments: &mut Comments) {
        while let Some((at, trivia)) = self.trivia.get(self.taken) {
            if *at >= end {
                break;
            }
            self.taken += 1;
            if let Trivia::Comment(text) = trivia {
                comments.inside.push(self.inside(*at, text));
            }
        }
        self.behind(end, comments);
    }

    /// A comment inside of the node that began last.
    fn inside(&self, at: usize, text: &str) -> Inside {
        let before = self.bare.get(self.begun..at).unwrap_or("");
        let behind = self.bare.get(at..).unwrap_or("");
        let lines = self.text(self.begun, at);
        let line = lines.rsplit('\n').next().unwrap_or("");
        let opens = before.trim_end().ends_with(['(', '[', '{']);
        let closes = behind.trim_start().starts_with([')', ']', '}']);
        let count = Count::of(before);
        Inside {
            words: count.words,
            closed: count.closed,
            stand: match line.trim().is_empty() {
                true => Stand::Alone,
                false => Stand::Behind,
            },
            beside: match (opens, closes) {
                (true, _) => Some(Bracket::Open),
                (false, true) => Some(Bracket::Close),
                (false, false) => None,
            },
            text: text.to_owned(),
        }
    }

    /// Takes the comment right behind `end`, on its line, if there is one.
    fn behind(&mut self, end: usize, comments: &mut Comments) {
        if let Some((at, Trivia::Comment(text))) = self.trivia.get(self.taken) {
            let between = self.text(end, *at);
            if between
                .bytes()
                .all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b';' | b','))
            {
                comments.trailing = Some(text.clone());
                self.taken += 1;
            }
        }
    }

    /// The comments between a block's last statement and its closing brace at `close`, and the one behind that.
    fn end(&mut self, close: usize, ordinal: Ordinal) -> Comments {
        let mut comments = self.before(close, ordinal);
        while comments.before.last().is_some_and(String::is_empty) {
            comments.before.pop();
        }
        self.behind(close + 1, &mut comments);
        comments
    }

    /// The comments after the last item.
    pub fn rest(&mut self, ordinal: Ordinal) -> Comments {
        let length = self.source.text().len();
        self.end(length, ordinal)
    }

    fn text(&self, from: usize, to: usize) -> &'s str {
        self.source.text().get(from..to).unwrap_or("")
    }

    fn too_long(&mut self, span: Span) {
        if std::mem::replace(&mut self.long, true) {
            return;
        }
        self.error(
            Diagnostic::error(
                codes::TOO_LONG,
                "an expression has too many operations in a row",
            )
            .at(
                self.source,
                span,
                format!("more than {MAX_EXPRESSION} in this expression"),
            )
            .hint("name parts of it with `let`, or put them in parentheses"),
        );
    }
}
