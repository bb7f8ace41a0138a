//! The meaning of a failure of the grammar for the user: a message, a place and a hint.

use crate::codes;
use crate::diag::{Code, Diagnostic};
use crate::layout::{Layout, Token, TokenKind, shorten};
use crate::source::{Source, Span};
use crate::tree::Failure;

/// The words that cannot be names.
pub const KEYWORDS: [&str; 19] = [
    "scheme", "problem", "schedule", "def", "const", "use", "axes", "param", "field", "coef",
    "step", "let", "where", "if", "then", "else", "and", "or", "not",
];

const ITEMS: [&str; 7] = [
    "use", "const", "def", "layer", "scheme", "problem", "schedule",
];
const SCHEME_STATEMENTS: [&str; 9] = [
    "axes", "param", "const", "field", "coef", "region", "boundary", "step", "allow",
];
const STEP_STATEMENTS: [&str; 3] = ["let", "where", "allow"];
const PROBLEM_STATEMENTS: [&str; 15] = [
    "scheme", "const", "domain", "boundary", "region", "coef", "init", "source", "incident",
    "total", "probe", "record", "output", "steps", "allow",
];

/// Whether a word begins statements, and no items.
pub(crate) fn is_statement_alone(word: &str) -> bool {
    let mut statements = SCHEME_STATEMENTS.iter().chain(&PROBLEM_STATEMENTS);
    statements.any(|own| *own == word) && !ITEMS.contains(&word)
}

/// Operators between two operands.
const OPERATORS: [&str; 13] = [
    "+", "-", "*", "/", "^", "<", "<=", ">", ">=", "==", "!=", "and", "or",
];
const UNTIL: &str = "until";

/// How statements of a scheme are written.
const SCHEME_FORMS: [(&str, &str); 8] = [
    ("axes", "`axes x, y, z`"),
    ("param", "`param h = 0.1`"),
    ("const", "`const c = 1`"),
    (
        "field",
        "`field E : vector on edges`, perhaps with `at 1/2` and `levels 2`",
    ),
    (
        "coef",
        "`coef eps = 1`, or `coef eps on cells = 1` for values on a grid",
    ),
    ("region", "`region disc = (x - 5)^2 + y^2 < 4`"),
    ("boundary", "`boundary free: p odd`"),
    ("allow", "`allow W0301`"),
];

/// How statements of a problem are written.
const PROBLEM_FORMS: [(&str, &str); 15] = [
    (
        "scheme",
        "`scheme name`, or `scheme name { h = 0.1, dt = 0.05 }` with parameters",
    ),
    ("const", "`const c = 1`"),
    ("domain", "`domain 200 x 100`: the cells along each axis"),
    ("boundary", "`boundary x: pec, y: periodic, z: pec | pmc`"),
    ("region", "`region disc = (x - 5)^2 + y^2 < 4`"),
    ("coef", "`coef eps = if x < 5 then 1 else 4`"),
    ("init", "`init u = exp(-x^2)`"),
    (
        "source",
        "`source u at (64, 64) += sin(t)`, with `at x = 1.5`, `in disc` or no place at all",
    ),
    (
        "incident",
        "`incident wave { direction (1, 2); drive u = sin(t) }`",
    ),
    ("total", "`total x = 20..80, y = 20..80 from wave`"),
    (
        "probe",
        "`probe u at (64, 64) as name every 10`; `at x = 1.5` and `in disc` name places too",
    ),
    ("record", "`record energy = sum(0.5 * u^2) every 10`"),
    (
        "output",
        "`output slice u z = 128 every 20`, `output volume u every 100`, or \
         `output spectrum u z = 128 for f = 0.02 every 5`",
    ),
    ("steps", "`steps 1000`, or `steps until 2.5`"),
    ("allow", "`allow W0301`"),
];

/// The text where the grammar failed.
struct Found<'s> {
    kind: Option<TokenKind>,
    word: &'s str,
    described: String,
    span: Span,
    /// The tokens around it.
    before: &'s str,
    after: &'s str,
    /// The token before ends an earlier line.
    continued: bool,
}

fn found<'s>(source: &'s Source, layout: &Layout, at: usize) -> Found<'s> {
    let text = |token: Option<&Token>| {
        token.map_or("", |token| {
            source
                .text()
                .get(token.span.start as usize..token.span.end as usize)
                .unwrap_or("")
        })
    };
    let previous = layout.token_before(at);
    let end = previous.map_or(at, |token| token.span.end as usize);
    let mut found = Found {
        kind: None,
        word: "",
        described: "the end of the text".to_string(),
        span: caret(layout, at),
        before: text(previous),
        after: text(layout.token_at(at + 1)),
        continued: source.text().get(end..at).unwrap_or("").contains('\n'),
    };
    let Some(token) = layout.token_at(at) else {
        found.span = caret(layout, layout.text.trim_end().len().min(at));
        return found;
    };
    // A separator between two items is no token: the place may lie before the next item.
    let gap = layout.text.get(at..token.span.start as usize).unwrap_or("");
    if gap.contains(['\n', ';']) {
        found.kind = Some(TokenKind::Separator);
        found.described = "the end of the line".to_string();
        return found;
    }
    found.kind = Some(token.kind);
    found.after = text(layout.token_at(token.span.end as usize));
    found.word = text(Some(token));
    found.described = match token.kind {
        TokenKind::Separator if found.word == "\n" => "the end of the line".to_string(),
        TokenKind::Word if KEYWORDS.contains(&found.word) => {
            format!("the keyword `{}`", found.word)
        }
        TokenKind::Text => "a string".to_string(),
        _ => format!("`{}`", shorten(found.word)),
    };
    found.span = if token.kind == TokenKind::Separator {
        caret(layout, token.span.start as usize)
    } else {
        token.span
    };
    found
}

/// The place right behind the text that precedes `at`, without the comment there: a caret under a line end would point
/// at nothing.
fn caret(layout: &Layout, at: usize) -> Span {
    let before = layout.text.get(..at).unwrap_or("");
    let end = before.trim_end_matches([' ', '\t']).len();
    Span::new(end, (end + 1).min(layout.text.len()))
}

/// A failure as the user should see it.
pub(crate) fn explain(source: &Source, layout: &Layout, failure: &Failure) -> Diagnostic {
    let found = found(source, layout, failure.at);
    let wants = failure.wants;
    let (word, span) = (found.word, found.span);
    if wants.stack {
        return Diagnostic::error(codes::TOO_DEEP, "the text is nested too deeply")
            .at(source, span, "here");
    }
    let is_word = found.kind == Some(TokenKind::Word) && !OPERATORS.contains(&word);
    let keyword = KEYWORDS.contains(&word);
    let statement = |of: &str, words: &[&str], and: &str| {
        unknown(source, &found, codes::UNKNOWN_STATEMENT, of, words, and)
    };
    if wants.item && is_word {
        return unknown(source, &found, codes::UNKNOWN_ITEM, "item", &ITEMS, "");
    }
    if wants.scheme_stmt && is_word {
        return statement("statement of a scheme", &SCHEME_STATEMENTS, "");
    }
    if wants.problem_stmt && is_word {
        return statement("statement of a problem", &PROBLEM_STATEMENTS, "");
    }
    if wants.step_stmt && keyword && !OPERATORS.contains(&word) {
        return statement(
            "statement of a step",
            &STEP_STATEMENTS,
            ", or is an update such as `E += ...`",
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
    let message = format!("expected {expected}, found {}", found.described);
    let error = Diagnostic::error(codes::UNEXPECTED, message).at(source, span, label);
    let update = match word {
        "[" => {
            "an update advances all values, and has no index on its left: `u += dt * (u[1] - u[-1])`"
        }
        _ => "an update names a field, or a component of one: `E += dt * curl(H)`, `E.x = 0`",
    };
    let hint = hint(failure, &found)
        .or_else(|| {
            let form = form(layout, failure.at)?;
            Some(match word {
                "," if wants.end => {
                    format!("{form}; each stands in a line of its own or behind a `;`")
                }
                _ => form,
            })
        })
        .or_else(|| (wants.updates && !wants.operator).then(|| update.to_string()));
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// How the statement is written in which a place lies.
fn form(layout: &Layout, at: usize) -> Option<String> {
    let before = layout.text.get(..at)?;
    let depth = |from: usize| {
        let inside = before.get(from..).unwrap_or("");
        inside.matches('{').count() as i64 - inside.matches('}').count() as i64
    };
    let is_word = |at: usize, word: &str| {
        let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        let text = &layout.text;
        text[..at].chars().next_back().is_none_or(ends)
            && text[at + word.len()..].chars().next().is_none_or(ends)
    };
    let problem = before
        .rmatch_indices("problem")
        .find(|(i, w)| is_word(*i, w));
    let forms = match problem {
        Some((from, _)) if depth(from) > 0 => &PROBLEM_FORMS[..],
        _ => &SCHEME_FORMS[..],
    };
    let line = before.rfind(['\n', ';', '{']).map_or(0, |i| i + 1);
    let first = layout.text.get(line..)?.split_whitespace().next()?;
    let (word, form) = forms.iter().find(|(word, _)| *word == first)?;
    let article = if word.starts_with(['a', 'i', 'o']) {
        "an"
    } else {
        "a"
    };
    Some(match *word {
        "axes" | "steps" => format!("`{word}` is written {form}"),
        _ => format!("{article} `{word}` is written {form}"),
    })
}

/// The word of the language that was meant by the one that was found, or by the one before it.
fn meant(failure: &Failure, found: &Found<'_>) -> Option<&'static str> {
    let word = |term: &&'static str| {
        let word = term.strip_prefix('`')?.strip_suffix('`')?;
        word.starts_with(|c: char| c.is_ascii_alphabetic())
            .then_some(word)
    };
    let words: Vec<&'static str> = failure.expected.iter().filter_map(word).collect();
    let of_statement = || match found.kind {
        // `steps untill 5` begins with a number of steps that is called `untill`.
        Some(TokenKind::Number | TokenKind::Word) if failure.wants.operator => {
            closest(found.before, &[UNTIL]).filter(|_| found.before != UNTIL)
        }
        _ => None,
    };
    match found.kind {
        Some(TokenKind::Word) => closest(found.word, &words).or_else(of_statement),
        _ => of_statement(),
    }
}

/// Remedies against the common mistakes.
fn hint(failure: &Failure, found: &Found<'_>) -> Option<String> {
    let wants = failure.wants;
    if let Some(word) = meant(failure, found) {
        return Some(format!("did you mean `{word}`?"));
    }
    let begins_statement = wants.item || wants.scheme_stmt || wants.problem_stmt || wants.step_stmt;
    let begins_line = found.continued || found.before == "\n";
    if begins_statement && begins_line && !wants.operator && OPERATORS.contains(&found.word) {
        return Some(format!(
            "the statement of the line before has ended: a line that goes on ends with `{}`, or stands in parentheses",
            found.word
        ));
    }
    let line_end = matches!(found.kind, None | Some(TokenKind::Separator));
    let begins_operand = matches!(
        found.kind,
        Some(TokenKind::Word | TokenKind::Number | TokenKind::Open(_))
    );
    let expects = |term: &str| failure.expected.contains(&term);
    let fixed = match found.word {
        _ if wants.expr && found.continued && !line_end => {
            return Some(format!(
                "the line before ends with `{}`, so the statement goes on here",
                shorten(found.before)
            ));
        }
        _ if wants.brace && !wants.name && line_end && found.after == "{" => {
            "put the `{` on the line of the word that it belongs to"
        }
        _ if wants.brace && !wants.name && line_end => "a block in `{ }` must follow",
        _ if wants.sign => "write `lean +x` or `lean -x`",
        _ if wants.level_word => {
            "`@prev` is the value one step before, `@next` the one after this step"
        }
        _ if wants.tuple && found.before == "at" => {
            "give all indices in parentheses, `at (64, 64, 64)`, or lengths, `at x = 1.5, y = 2`"
        }
        _ if wants.on && !wants.equals => "say where the values lie, as in `on nodes`",
        "=" if wants.clause => "arguments stand in parentheses, as in `torre(D = 2)`",
        ":" if wants.equals || wants.updates => "write `=`",
        _ if found.word == "if" && wants.operator || expects("`then`") => {
            "a choice is written `if x < 3 then 1 else 0`"
        }
        "{" if wants.operator => "braces hold blocks; group with `( )`",
        "}" if wants.def_body => "the block of a definition ends with its value",
        _ if wants.operator && wants.end && begins_operand => {
            "an operator is missing before it, or a line end; what is called has parentheses, as in `curl(E)`"
        }
        _ if wants.operator && begins_operand => "an operator or a `,` may be missing before it",
        _ => return None,
    };
    Some(fixed.to_string())
}

/// A word that begins nothing which may stand here.
fn unknown(
    source: &Source,
    found: &Found<'_>,
    code: Code,
    kind: &str,
    words: &[&str],
    and: &str,
) -> Diagnostic {
    let word = found.word;
    let hint = match closest(word, words)
        .or_else(|| elsewhere(word).filter(|close| words.contains(close)))
    {
        Some(close) => format!("did you mean `{close}`?"),
        None if words.contains(&"steps") && word == "param" => {
            "a problem sets parameters with the scheme: `scheme name { h = 0.1 }`".to_string()
        }
        None if words.contains(&"steps") && is_update(found.after) => {
            "a problem sets parameters with the scheme, `scheme name { h = 0.1 }`, and start values with `init`"
                .to_string()
        }
        None if word == "use" => "`use` stands outside of blocks".to_string(),
        None if words.contains(&"step") && !KEYWORDS.contains(&word) && is_update(found.after) => {
            "updates stand in a block `step { ... }`".to_string()
        }
        None => {
            let list: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            format!("what may stand here begins with {}{and}", enumerate(&list))
        }
    };
    Diagnostic::error(code, format!("`{}` begins no {kind}", shorten(word)))
        .at(source, found.span, "not known here")
        .hint(hint)
}

fn is_update(after: &str) -> bool {
    matches!(after, "=" | "+=" | "-=" | "." | "@")
}

/// Torre's word for a word of other languages.
fn elsewhere(word: &str) -> Option<&'static str> {
    Some(match word {
        "import" | "include" | "from" | "using" => "use",
        "fn" | "fun" | "func" | "function" | "operator" => "def",
        "var" | "val" | "constant" => "const",
        "parameter" | "input" => "param",
        "update" | "loop" => "step",
        "if" => "where",
        "grid" | "size" | "shape" => "domain",
        "iterations" | "time" => "steps",
        _ => return None,
    })
}

/// The candidate that a mistyped word is closest to, if any is close.
pub fn closest<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let limit = (word.chars().count() / 3).clamp(1, 3);
    let near = candidates
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate));
    // Words of three letters differ from others by one without being meant, unless two are swapped.
    let swapped = |candidate: &str| {
        let letters = |word: &str| {
            let mut letters: Vec<char> = word.chars().collect();
            letters.sort_unstable();
            letters
        };
        letters(word) == letters(candidate)
    };
    near.filter(|(distance, candidate)| {
        *distance <= limit && (word.len() > 3 || swapped(candidate))
    })
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
