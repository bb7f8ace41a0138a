//! Source text to tree, with as many of its errors as can be told apart.

use crate::ast::{Ast, Comments, Expr, Item, Schedule};
use crate::codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::explain::{explain, is_statement_alone};
use crate::layout::{Chunk, Layout, MAX_BYTES, MAX_ERRORS, TokenKind, layout};
use crate::print::stands_apart;
use crate::source::{Source, Span, Spanned};
use crate::tree::{Builder, Failure, Ordinal};

/// How often an item is read, each time without one more statement that has an error.
const MAX_ATTEMPTS: usize = MAX_ERRORS;

/// How many bytes these attempts may read in all, so that errors at the end of a large item do not take seconds.
const MAX_REREAD: usize = 4 * MAX_BYTES;

/// Reads a file. Every error is reported that does not follow from another one.
pub fn parse(source: &Source) -> Result<Ast, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let Some(layout) = layout(source, &mut diagnostics) else {
        return Err(diagnostics);
    };
    let mut items = Vec::new();
    let mut builder = Builder::new(source, &layout, &mut diagnostics);
    let mut failed = false;
    for chunk in &layout.chunks {
        if builder.error_count() > MAX_ERRORS {
            break;
        }
        let first = layout.tokens.get(chunk.tokens.start);
        let belongs_before = first.is_some_and(|first| {
            let word = layout
                .text
                .get(first.span.start as usize..first.span.end as usize);
            first.kind == TokenKind::Open(b'{') || word.is_some_and(is_statement_alone)
        });
        if chunk.broken {
            failed = true;
            continue;
        }
        if failed && belongs_before {
            // A block by itself, or a statement, belongs to the failed item before it.
            continue;
        }
        let ordinal = Ordinal::after(&items);
        match read_item(source, &layout, chunk, &mut builder, ordinal) {
            Some(item) => items.push(item),
            None => failed = true,
        }
    }
    let end = builder.rest(Ordinal::after(&items));
    drop_implied_blanks(&mut items);
    finish(source, diagnostics, Ast { items, end })
}

/// The formatter sets a blank line around items with blocks, so none is recorded there.
fn drop_implied_blanks(items: &mut [Item]) {
    for index in 1..items.len() {
        let (before, after) = items.split_at_mut(index);
        if let ([.., previous], [item, ..]) = (before, after)
            && stands_apart(previous, item)
            && item.comments.before.first().is_some_and(String::is_empty)
        {
            item.comments.before.remove(0);
        }
    }
}

/// Reads a schedule as it is written on a command line: levels, separated by `;` or line ends. It is named after its
/// source.
pub fn parse_schedule(source: &Source) -> Result<Schedule, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let Some(layout) = layout(source, &mut diagnostics) else {
        return Err(diagnostics);
    };
    let levels = read_whole(source, &layout, &mut diagnostics, Builder::schedule);
    let name = Spanned::new(source.name().to_string(), Span::new(0, source.text().len()));
    let levels = levels.unwrap_or_default();
    finish(
        source,
        diagnostics,
        Schedule {
            name,
            scheme: None,
            levels,
            end: Comments::default(),
        },
    )
}

/// Reads one expression, such as the value of `--set`.
pub fn parse_expr(source: &Source) -> Result<Expr, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let Some(layout) = layout(source, &mut diagnostics) else {
        return Err(diagnostics);
    };
    match read_whole(source, &layout, &mut diagnostics, Builder::expression) {
        Some(expr) => finish(source, diagnostics, expr),
        None => Err(diagnostics),
    }
}

fn finish<T>(source: &Source, mut diagnostics: Diagnostics, value: T) -> Result<T, Diagnostics> {
    if diagnostics.0.is_empty() {
        return Ok(value);
    }
    diagnostics.0.sort_by_key(|diagnostic| {
        diagnostic
            .labels
            .first()
            .map_or(0, |label| label.span.start)
    });
    if diagnostics.0.len() > MAX_ERRORS {
        diagnostics.0.truncate(MAX_ERRORS);
        let message = format!(
            "`{}` has more errors; the first {MAX_ERRORS} are shown",
            source.name()
        );
        diagnostics.push(Diagnostic::error(codes::TOO_MANY, message));
    }
    Err(diagnostics)
}

/// Reads a text that is not divided into items.
fn read_whole<'s, T>(
    source: &'s Source,
    layout: &'s Layout,
    diagnostics: &'s mut Diagnostics,
    read: impl FnOnce(&mut Builder<'s>, &str) -> Result<Option<T>, Failure>,
) -> Option<T> {
    if layout
        .chunks
        .iter()
        .any(|chunk| chunk.broken || !chunk.errors.is_empty())
    {
        return None;
    }
    let mut builder = Builder::new(source, layout, diagnostics);
    match read(&mut builder, &layout.text) {
        Ok(Some(value)) => Some(value),
        Ok(None) => {
            builder.error(fault(source, 0));
            None
        }
        Err(failure) => {
            builder.error(explain(source, layout, &failure));
            None
        }
    }
}

/// Reads one item. After an error its statement is left out and the rest is read again, to find the next one.
fn read_item(
    source: &Source,
    layout: &Layout,
    chunk: &Chunk,
    builder: &mut Builder<'_>,
    ordinal: Ordinal,
) -> Option<Item> {
    let tokens = layout.tokens.get(chunk.tokens.clone())?;
    let start = tokens.first()?.span.start as usize;
    let end = tokens.last()?.span.end as usize;
    let mut text = layout.text.get(start..end)?.to_string();
    // In a definition every line counts for the next ones.
    let head = layout.text.get(start..end)?;
    let divisible = !head.starts_with("def") && !head.starts_with("layer");
    let mut clean = true;
    for at in &chunk.errors {
        clean = false;
        if !divisible || !leave_out(layout, chunk, &mut text, start, *at) {
            return None;
        }
    }
    let mut last = None;
    let attempts = (MAX_REREAD / text.len().max(1)).min(MAX_ATTEMPTS);
    for _ in 0..attempts {
        match builder.item(&text, start, ordinal) {
            Ok(Some(item)) => return clean.then_some(item),
            Ok(None) => {
                builder.error(fault(source, start));
                return None;
            }
            Err(failure) => {
                if last.replace(failure.at) == Some(failure.at) {
                    return None;
                }
                clean = false;
                builder.error(explain(source, layout, &failure));
                if !divisible || !leave_out(layout, chunk, &mut text, start, failure.at) {
                    return None;
                }
            }
        }
    }
    None
}

/// Overwrites the statement around a place with spaces. False if there is none but the item itself.
fn leave_out(layout: &Layout, chunk: &Chunk, text: &mut String, base: usize, at: usize) -> bool {
    let Some(statement) = layout.statement_at(chunk, at) else {
        return false;
    };
    let (Some(from), Some(to)) = (
        statement.start.checked_sub(base),
        statement.end.checked_sub(base),
    ) else {
        return false;
    };
    let Some(old) = text.get(from..to) else {
        return false;
    };
    if old.trim().is_empty() {
        return false;
    }
    text.replace_range(from..to, &" ".repeat(to - from));
    true
}

fn fault(source: &Source, at: usize) -> Diagnostic {
    Diagnostic::error(
        codes::UNEXPECTED,
        "the compiler cannot make sense of this, which is its own fault",
    )
    .at(
        source,
        Span::new(at, (at + 1).min(source.text().len())),
        "here",
    )
}
