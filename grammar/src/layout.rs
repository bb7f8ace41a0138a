//! The scan before the parser: finds tokens, comments, blank lines and the items' extents, and makes the text that the
//! grammar reads, in which comments and the line ends that end nothing are spaces at the same offsets.
//!
//! It also refuses texts that would overflow a stack later: the grammar recurses only where a bracket opens or an `if`
//! begins, and their depth is bounded here, before the grammar sees the text.

mod foreign;
mod scan;

use crate::codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::source::{Source, Span};
use scan::Scan;

/// How deep brackets, blocks and `if` may nest, together. Parentheses around an `if` do not count, as the formatter may
/// add them.
pub const MAX_DEPTH: usize = 64;

/// The size of a source text that is still read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// How many errors are reported for one text.
pub const MAX_ERRORS: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    Word,
    Number,
    Text,
    Operator,
    Open(u8),
    Close(u8),
    /// A line end or `;` that separates statements.
    Separator,
}

#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

/// The text between the tokens, as far as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub enum Trivia {
    Comment(String),
    Blank,
}

/// The tokens of one statement outside of all blocks, which should be an item.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// Indices into the tokens.
    pub tokens: std::ops::Range<usize>,
    /// Brackets do not match or the nesting is too deep: an error was reported and the grammar must not see it.
    pub broken: bool,
    /// Where other errors were reported.
    pub errors: Vec<usize>,
}

pub struct Layout {
    /// As long as the source's text.
    pub text: String,
    pub tokens: Vec<Token>,
    pub trivia: Vec<(usize, Trivia)>,
    pub chunks: Vec<Chunk>,
}

/// Scans a source. `None` if it is too large to look at, or if its lines end by carriage returns.
pub fn layout(source: &Source, diagnostics: &mut Diagnostics) -> Option<Layout> {
    if source.text().len() > MAX_BYTES {
        diagnostics.push(
            Diagnostic::error(
                codes::TOO_LARGE,
                format!("`{}` is too large", source.name()),
            )
            .hint(format!(
                "a source text may have {} MiB; read large tables with `file(\"name.npy\")`",
                MAX_BYTES >> 20
            )),
        );
        return None;
    }
    if let Some(line) = lone_return(source.text()) {
        diagnostics.push(
            Diagnostic::error(
                codes::UNEXPECTED_CHARACTER,
                format!(
                    "line {line} of `{}` has a carriage return without a line feed",
                    source.name()
                ),
            )
            .hint("lines end with a line feed, with or without a carriage return before it"),
        );
        return None;
    }
    let mut first = Diagnostics::default();
    let scan = Scan::new(source, &mut first).run();
    if !scan.open_at_end {
        diagnostics.0.append(&mut first.0);
        return Some(scan.layout);
    }
    // A bracket is missing. Items that begin at the left margin show where.
    let scan = Scan::new(source, diagnostics).with_items_at_margin();
    Some(scan.run().layout)
}

/// The line, counted from 1, with a carriage return that neither a line feed nor the end of the text follows. If it
/// ended no line, a comment would hide all that follows.
fn lone_return(text: &str) -> Option<usize> {
    let mut bytes = text.bytes().peekable();
    let mut line = 1;
    while let Some(byte) = bytes.next() {
        match (byte, bytes.peek()) {
            (b'\r', Some(next)) if !matches!(next, b'\r' | b'\n') => return Some(line),
            (b'\n', _) => line += 1,
            _ => {}
        }
    }
    None
}

/// A text short enough for a message.
pub fn shorten(text: &str) -> String {
    let mut shown: String = text.chars().take(32).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    let mut out = String::new();
    for c in shown.chars() {
        match c {
            '\'' | '"' | '\\' => out.push(c),
            c => out.extend(c.escape_debug()),
        }
    }
    out
}

impl Layout {
    /// The statement around a place within an item: a range of bytes to leave out so that the rest can be read. `None`
    /// if the place is in the item's own head.
    pub fn statement_at(&self, chunk: &Chunk, pos: usize) -> Option<std::ops::Range<usize>> {
        let tokens = self.tokens.get(chunk.tokens.clone())?;
        let mut here = tokens.partition_point(|token| (token.span.end as usize) <= pos);
        let at_end = |token: &Token| {
            token.span.start as usize >= pos
                && matches!(token.kind, TokenKind::Separator | TokenKind::Close(b'}'))
        };
        // An error at a statement's end belongs to the token before it.
        if here >= tokens.len() || (tokens.get(here).is_some_and(at_end) && here > 0) {
            here = here.checked_sub(1)?;
        }
        let mut first = here;
        let mut depth = 0usize;
        loop {
            let before = tokens.get(first.checked_sub(1)?)?;
            match before.kind {
                TokenKind::Close(_) => depth += 1,
                TokenKind::Open(b'{') if depth == 0 => break,
                TokenKind::Open(_) => depth = depth.saturating_sub(1),
                TokenKind::Separator if depth == 0 => break,
                _ => {}
            }
            first -= 1;
        }
        let mut last = first;
        depth = 0;
        while let Some(token) = tokens.get(last) {
            match token.kind {
                TokenKind::Open(_) => depth += 1,
                TokenKind::Close(b'}') if depth == 0 => break,
                TokenKind::Close(_) => depth = depth.saturating_sub(1),
                TokenKind::Separator if depth == 0 => break,
                _ => {}
            }
            last += 1;
        }
        let start = tokens.get(first)?.span.start as usize;
        let end = tokens.get(last.checked_sub(1)?)?.span.end as usize;
        (start < end).then_some(start..end)
    }

    /// The token that covers or follows a place.
    pub fn token_at(&self, pos: usize) -> Option<&Token> {
        self.tokens.get(
            self.tokens
                .partition_point(|token| (token.span.end as usize) <= pos),
        )
    }

    /// The last token that ends at a place or before it.
    pub fn token_before(&self, pos: usize) -> Option<&Token> {
        let count = self
            .tokens
            .partition_point(|token| (token.span.end as usize) <= pos);
        self.tokens.get(count.checked_sub(1)?)
    }
}
