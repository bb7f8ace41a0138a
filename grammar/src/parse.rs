//! Source text to tree, with as many of its errors as can be told apart.

use crate::ast::{Ast, Comments, Expr, Item, Schedule};
use crate::codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::layout::{Chunk, Layout, MAX_ERRORS, Token, TokenKind, layout, shorten};
use crate::print::stands_apart;
use crate::source::{Source, Span, Spanned};
use crate::tree::{Builder, Failure};

/// How often an item is read again without a statement that has an error.
const MAX_ATTEMPTS: usize = MAX_ERRORS;

/// The words that begin an item.
const ITEMS: [&str; 6] = ["use", "const", "def", "scheme", "problem", "schedule"];
const SCHEME_STATEMENTS: [&str; 6] = ["axes", "param", "const", "field", "coef", "step"];
const STEP_STATEMENTS: [&str; 2] = ["let", "where"];
const PROBLEM_STATEMENTS: [&str; 10] = [
    "scheme", "const", "domain", "boundary", "coef", "init", "source", "probe", "output", "steps",
];
/// The words that cannot be names.
pub const KEYWORDS: [&str; 19] = [
    "scheme", "problem", "schedule", "def", "const", "use", "axes", "param", "field", "coef",
    "step", "let", "where", "if", "then", "else", "and", "or", "not",
];

/// Reads a file. Every error is reported that does not follow from another one.
pub fn parse(source: &Source) -> Result<Ast, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let Some(layout) = layout(source, &mut diagnostics) else {
        return Err(diagnostics);
    };
    let mut items = Vec::new();
    let mut builder = Builder::new(source, &layout, &mut diagnostics);
    for chunk in &layout.chunks {
        if builder.error_count() > MAX_ERRORS {
            break;
        }
        if chunk.broken {
            continue;
        }
        if let Some(item) = read_item(source, &layout, chunk, &mut builder, items.is_empty()) {
            items.push(item);
        }
    }
    let end = builder.rest(items.is_empty());
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

/// Reads a schedule as it is written on a command line: levels, separated by `;` or line ends. It is named after its source.
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
    opening: bool,
) -> Option<Item> {
    let tokens = layout.tokens.get(chunk.tokens.clone())?;
    let start = tokens.first()?.span.start as usize;
    let end = tokens.last()?.span.end as usize;
    let mut text = layout.text.get(start..end)?.to_string();
    // In a definition every line counts for the next ones.
    let divisible = !matches!(layout.text.get(start..end)?.get(..3), Some("def"));
    let mut clean = true;
    for at in &chunk.errors {
        clean = false;
        if !divisible || !leave_out(layout, chunk, &mut text, start, *at) {
            return None;
        }
    }
    let mut last = None;
    for _ in 0..MAX_ATTEMPTS {
        match builder.item(&text, start, opening) {
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
    .at(source, Span::new(at, at + 1), "here")
}

/// What stands at a place, for a message, and where to point.
fn found(source: &Source, layout: &Layout, at: usize) -> (String, Span, Option<TokenKind>, String) {
    let text = source.text();
    let Some(token) = layout.token_at(at) else {
        let end = text.trim_end().len().min(at);
        let end = if text.is_char_boundary(end) { end } else { at };
        return (
            "the end of the text".to_string(),
            caret(text, end),
            None,
            String::new(),
        );
    };
    let (start, end) = (token.span.start as usize, token.span.end as usize);
    // A separator between two items is no token: the place may lie before the next item.
    let gap = layout.text.get(at..start).unwrap_or("");
    if gap.contains('\n') || gap.contains(';') {
        return (
            "the end of the line".to_string(),
            caret(text, at),
            Some(TokenKind::Separator),
            String::new(),
        );
    }
    let word = text.get(start..end).unwrap_or("").to_string();
    let described = match token.kind {
        TokenKind::Separator if word == "\n" => "the end of the line".to_string(),
        TokenKind::Word if KEYWORDS.contains(&word.as_str()) => format!("the keyword `{word}`"),
        TokenKind::Text => "a string".to_string(),
        _ => format!("`{}`", shorten(&word)),
    };
    let span = if token.kind == TokenKind::Separator {
        caret(text, start)
    } else {
        token.span
    };
    (described, span, Some(token.kind), word)
}

/// The place right behind what precedes `at`: a caret under a line end would point at nothing.
fn caret(text: &str, at: usize) -> Span {
    let before = text
        .get(..at)
        .unwrap_or("")
        .trim_end_matches([' ', '\t', '\r']);
    let end = before.len();
    Span::new(end, end + 1)
}

/// A failure as the user should see it.
fn explain(source: &Source, layout: &Layout, failure: &Failure) -> Diagnostic {
    let (described, span, kind, word) = found(source, layout, failure.at);
    let wants = failure.wants;
    if wants.stack {
        return Diagnostic::error(codes::TOO_DEEP, "the text is nested too deeply")
            .at(source, span, "here");
    }
    let word = word.as_str();
    let is_word = kind == Some(TokenKind::Word);
    let keyword = KEYWORDS.contains(&word);
    if wants.item && is_word {
        return unknown(
            codes::UNKNOWN_ITEM,
            format!("`{}` begins no item", shorten(word)),
            source,
            span,
            word,
            &ITEMS,
        );
    }
    if wants.scheme_stmt && is_word {
        let message = format!("`{}` begins no statement of a scheme", shorten(word));
        return unknown(
            codes::UNKNOWN_STATEMENT,
            message,
            source,
            span,
            word,
            &SCHEME_STATEMENTS,
        );
    }
    if wants.problem_stmt && is_word {
        let message = format!("`{}` begins no statement of a problem", shorten(word));
        return unknown(
            codes::UNKNOWN_STATEMENT,
            message,
            source,
            span,
            word,
            &PROBLEM_STATEMENTS,
        );
    }
    if wants.step_stmt && keyword {
        let message = format!("`{word}` begins no statement of a step");
        return unknown(
            codes::UNKNOWN_STATEMENT,
            message,
            source,
            span,
            word,
            &STEP_STATEMENTS,
        );
    }
    if wants.name && keyword && !wants.operator {
        return Diagnostic::error(codes::KEYWORD_AS_NAME, format!("`{word}` cannot be a name"))
            .at(source, span, "this word has a meaning of its own")
            .hint(format!("choose another name, such as `{word}_`"));
    }
    if wants.operator && word == "=" {
        return Diagnostic::error(codes::ASSIGNMENT_IN_EXPRESSION, "`=` does not compare")
            .at(source, span, "inside of an expression")
            .hint("values are compared with `==`; an equation has a single name on its left");
    }
    let expected = enumerate(&failure.expected);
    let label = if failure.expected.len() > 2 {
        "not expected here".to_string()
    } else {
        format!("expected {expected}")
    };
    let error = Diagnostic::error(
        codes::UNEXPECTED,
        format!("expected {expected}, found {described}"),
    )
    .at(source, span, label);
    match hint(source, failure, layout, kind, word) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn hint(
    source: &Source,
    failure: &Failure,
    layout: &Layout,
    kind: Option<TokenKind>,
    word: &str,
) -> Option<String> {
    let wants = failure.wants;
    let text = |token: &Token| {
        source
            .text()
            .get(token.span.start as usize..token.span.end as usize)
    };
    let next = layout.token_at(failure.at + 1).and_then(text);
    let before = layout.token_before(failure.at).and_then(text);
    let line_end = kind.is_none() || kind == Some(TokenKind::Separator);
    Some(match word {
        _ if wants.brace && line_end && next == Some("{") => {
            "put the `{` on the line of the word that it belongs to".into()
        }
        _ if wants.brace && line_end => "a block in `{ }` must follow".into(),
        _ if wants.expr && wants.end && line_end => "the statement is not complete".into(),
        _ if wants.sign => "write `lean +x` or `lean -x`".into(),
        _ if wants.level_word => {
            "`@prev` is the value one step before, `@next` the one after this step".into()
        }
        _ if wants.tuple && before == Some("at") => {
            "give all indices in parentheses, as in `at (64, 64, 64)`".into()
        }
        "=" if wants.scope => "`use` takes a path such as `std::curl::curl`".into(),
        "{" | "}" if wants.operator && kind == Some(TokenKind::Open(b'{')) => {
            "braces hold blocks; group with `( )`".into()
        }
        _ if wants.operator
            && wants.end
            && matches!(
                kind,
                Some(TokenKind::Word | TokenKind::Number | TokenKind::Open(_))
            ) =>
        {
            "an operator is missing before it, or a line end".into()
        }
        _ if wants.operator && matches!(kind, Some(TokenKind::Word | TokenKind::Number)) => {
            "an operator or a `,` may be missing before it".into()
        }
        _ => return None,
    })
}

fn unknown(
    code: crate::diag::Code,
    message: String,
    source: &Source,
    span: Span,
    word: &str,
    words: &[&str],
) -> Diagnostic {
    let list: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    let hint = match closest(word, words) {
        Some(close) => format!("did you mean `{close}`?"),
        None => format!("what may stand here begins with {}", enumerate(&list)),
    };
    Diagnostic::error(code, message)
        .at(source, span, "not known here")
        .hint(hint)
}

/// The candidate that a mistyped word is closest to, if any is close.
pub fn closest<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let limit = (word.chars().count() / 3).clamp(1, 3);
    let near = candidates
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate));
    near.filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The edit distance of two words, with swaps of neighbours counted once. Long words are not compared.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.chars().take(33).collect(), b.chars().take(33).collect());
    if a.len().max(b.len()) > 32 {
        return usize::MAX;
    }
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for (i, &ca) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &cb) in b.iter().enumerate() {
            let mut best = (rows[i][j] + usize::from(ca != cb))
                .min(rows[i][j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && ca == b[j - 1] && a[i - 1] == cb {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// `a`, `a or b`, `a, b or c`.
fn enumerate(terms: &[impl AsRef<str>]) -> String {
    match terms {
        [] => "something else".to_string(),
        [only] => only.as_ref().to_string(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} or {}", first.join(", "), last.as_ref())
        }
    }
}
