//! Collecting diagnostics: none twice, not too many, in the order of the text.

use std::collections::BTreeSet;
use torre_grammar::diag::{Diagnostic, Diagnostics, Severity};
use torre_grammar::source::{Source, Span};

/// After so many errors, or warnings, there is no use in more.
const LIMIT: usize = 64;

/// An error that has been reported already.
#[derive(Clone, Copy, Debug)]
pub struct Reported;

pub type Checked<T> = Result<T, Reported>;

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

    /// What is written there, if it is short enough to be repeated in a sentence.
    pub fn text(&self) -> Option<&str> {
        let range = self.span.start as usize..self.span.end as usize;
        let text = self.source.text().get(range)?.trim();
        (!text.is_empty() && text.len() <= 40 && !text.contains('\n')).then_some(text)
    }
}

#[derive(Debug, Default)]
pub struct Report {
    list: Vec<Diagnostic>,
    seen: BTreeSet<(&'static str, String, u32, u32)>,
}

impl Report {
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let key = match diagnostic.labels.first() {
            Some(l) => (
                diagnostic.code.0,
                l.source.name().to_string(),
                l.span.start,
                l.span.end,
            ),
            None => (diagnostic.code.0, diagnostic.message.clone(), 0, 0),
        };
        if self.count(diagnostic.severity) < LIMIT && self.seen.insert(key) {
            self.list.push(diagnostic);
        }
    }

    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// How many were found so far, for [`Report::forget`].
    pub fn mark(&self) -> usize {
        self.list.len()
    }

    /// Whether no more errors are taken in.
    pub fn is_full(&self) -> bool {
        self.count(Severity::Error) >= LIMIT
    }

    fn count(&self, severity: Severity) -> usize {
        self.list.iter().filter(|d| d.severity == severity).count()
    }

    /// Takes back what was found after `mark` in `source`.
    pub fn forget(&mut self, mark: usize, source: &Source) {
        let found = self.list.split_off(mark.min(self.list.len()));
        for d in found {
            if d.labels.first().is_some_and(|l| l.source != *source) {
                self.list.push(d);
            } else if let Some(l) = d.labels.first() {
                let key = (
                    d.code.0,
                    l.source.name().to_string(),
                    l.span.start,
                    l.span.end,
                );
                self.seen.remove(&key);
            } else {
                self.seen.remove(&(d.code.0, d.message, 0, 0));
            }
        }
    }

    /// All, those of `main` first, each source in the order of its text.
    pub fn finish(self, main: &Source) -> Diagnostics {
        let mut list = self.list;
        list.sort_by_key(|d| match d.labels.first() {
            Some(l) => (
                1 + u8::from(l.source != *main),
                l.source.name().to_string(),
                l.span.start,
            ),
            None => (0, String::new(), 0),
        });
        Diagnostics(list)
    }
}
