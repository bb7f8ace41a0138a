//! Collecting diagnostics: none twice, not too many, in the order of the text.

use std::collections::BTreeSet;
use torre_grammar::codes::TOO_MANY;
use torre_grammar::diag::{Code, Diagnostic, Diagnostics, Label, Severity};
use torre_grammar::source::{Source, Span};

/// The number of errors, or of warnings, after which more are of no use.
const LIMIT: usize = 64;

/// On the uses of a definition in which an error lies.
pub const USED: &str = "used here";

/// An error that has been reported already.
#[derive(Clone, Copy, Debug)]
pub struct Reported;

pub type Outcome<T> = Result<T, Reported>;

/// A place in the user's text.
#[derive(Clone, Debug)]
pub struct Place {
    pub source: Source,
    pub span: Span,
}

impl Place {
    pub fn new(source: &Source, span: Span) -> Self {
        Self {
            source: source.clone(),
            span,
        }
    }

    /// The text there, if it is short enough to be repeated in a sentence.
    pub fn text(&self) -> Option<&str> {
        let range = self.span.start as usize..self.span.end as usize;
        let text = self.source.text().get(range)?.trim();
        (!text.is_empty() && text.len() <= 40 && !text.contains('\n')).then_some(text)
    }
}

/// A number as text, with an exponent if it had many digits without one.
pub fn short(n: f64) -> String {
    let plain = n.to_string();
    match plain.len() <= 24 {
        true => plain,
        false => format!("{n:e}"),
    }
}

/// The key by which two diagnostics are one: the code and the message, at one place.
type Key = (&'static str, String, String, (u32, u32));

/// A part of a text in which warnings and notes of a code are not wanted.
#[derive(Clone, Debug)]
pub struct Silence {
    pub code: String,
    pub place: Place,
}

impl Silence {
    /// Whether warnings of a code are not wanted at a place.
    pub fn covers(&self, code: Code, at: &Place) -> bool {
        let (outer, inner) = (self.place.span, at.span);
        self.code == code.0
            && self.place.source == at.source
            && outer.start <= inner.start
            && inner.end <= outer.end
    }
}

#[derive(Debug, Default)]
pub struct Report {
    list: Vec<Diagnostic>,
    silences: Vec<Silence>,
    seen: BTreeSet<Key>,
}

/// A diagnostic is the same as another one with its code at its first place, and as one with its message at its last
/// place: the use that the user wrote of a definition in which it occurs several times.
fn keys(d: &Diagnostic) -> Vec<Key> {
    let at = |l: &Label| (l.source.name().to_string(), (l.span.start, l.span.end));
    match d.labels.as_slice() {
        [] => vec![(d.code.0, d.message.clone(), String::new(), (0, 0))],
        [first, rest @ ..] => {
            let (name, span) = at(first);
            // Notes at one place may concern several values.
            let message = match d.severity {
                Severity::Note => d.message.clone(),
                Severity::Error | Severity::Warning => String::new(),
            };
            let mut keys = vec![(d.code.0, message, name, span)];
            if let Some(last) = rest.iter().rfind(|l| l.text == USED) {
                let (name, span) = at(last);
                keys.push((d.code.0, d.message.clone(), name, span));
            }
            keys
        }
    }
}

impl Report {
    pub fn silence(&mut self, silence: Silence) {
        self.silences.push(silence);
    }

    pub fn silences(&self) -> &[Silence] {
        &self.silences
    }

    /// Whether warnings of a code are not wanted at a place.
    pub fn is_allowed(&self, code: Code, at: &Place) -> bool {
        self.silences.iter().any(|silence| silence.covers(code, at))
    }

    pub fn push(&mut self, diagnostic: Diagnostic) {
        let main = diagnostic.labels.first();
        if diagnostic.severity != Severity::Error
            && main
                .is_some_and(|l| self.is_allowed(diagnostic.code, &Place::new(&l.source, l.span)))
        {
            return;
        }
        let keys = keys(&diagnostic);
        if self.count(diagnostic.severity) < LIMIT && !keys.iter().any(|k| self.seen.contains(k)) {
            self.seen.extend(keys);
            self.list.push(diagnostic);
        }
    }

    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// Whether no more errors are taken in.
    pub fn is_full(&self) -> bool {
        self.count(Severity::Error) >= LIMIT
    }

    fn count(&self, severity: Severity) -> usize {
        self.list.iter().filter(|d| d.severity == severity).count()
    }

    /// All, in the order of the text of `main`; then diagnostics that are in other sources only.
    pub fn finish(self, main: &Source) -> Diagnostics {
        let mut list = self.list;
        list.sort_by_key(|d| {
            let in_main = d.labels.iter().find(|l| l.source == *main);
            match (in_main, d.labels.first()) {
                (Some(l), _) => (1, String::new(), l.span.start),
                (None, Some(l)) => (2, l.source.name().to_string(), l.span.start),
                (None, None) => (0, String::new(), 0),
            }
        });
        let errors = list.iter().filter(|d| d.severity == Severity::Error);
        if errors.count() >= LIMIT {
            let message = format!(
                "`{}` may have more errors; the first {LIMIT} that were found are shown",
                main.name()
            );
            list.push(Diagnostic::error(TOO_MANY, message));
        }
        Diagnostics(list)
    }
}

/// `1 axis`, `2 axes`.
pub fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
