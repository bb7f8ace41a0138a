//! The text for the user on stderr: diagnostics with their places in the source and notes; with `--quiet` only errors.
//! Programs, tables and names of files may hold control characters. These are escaped, as a terminal would obey them.

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceSpan, ThemeCharacters,
    ThemeStyles,
};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::io::{IsTerminal, Write};
use torre_grammar::diag::{Diagnostic, Diagnostics, Label, Severity};
use torre_grammar::source::Source;

/// Lines between two labels that are shown together, at the most.
const MOST_BETWEEN: usize = 6;

/// The words of miette before a related report, which is no advice here.
const RELATED: &str = "\nAdvice: \n";

/// Lines with more bytes are not drawn: they are hard to read, and a column from 65,535 on cannot be drawn at all.
const LONGEST_LINE: usize = 1000;

/// Bytes that are shown before and after a place in such a line.
const AROUND: usize = 40;

/// How messages look.
pub struct Voice {
    pub quiet: bool,
    /// Whether stderr is a terminal: colours, drawn lines, progress bars.
    pub terminal: bool,
    handler: GraphicalReportHandler,
}

impl Voice {
    pub fn new(quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let plain = !terminal || is_plain(std::env::var_os);
        let theme = GraphicalTheme {
            characters: match terminal {
                true => ThemeCharacters::unicode(),
                false => ThemeCharacters::ascii(),
            },
            styles: match plain {
                true => ThemeStyles::none(),
                false => ThemeStyles::ansi(),
            },
        };
        let width = match terminal {
            true => terminal_width(),
            false => 100,
        };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(width)
            .with_links(false)
            .with_wrap_lines(terminal);
        Self {
            quiet,
            terminal,
            handler,
        }
    }

    /// Shows diagnostics; warnings only where they are wanted.
    pub fn show(&self, diagnostics: &Diagnostics) {
        let mut text = String::new();
        let mut codes = BTreeSet::new();
        for diagnostic in &diagnostics.0 {
            if self.quiet && diagnostic.severity != Severity::Error {
                continue;
            }
            if diagnostic.severity == Severity::Note {
                text.push_str(&plain(&in_a_line(diagnostic)));
                continue;
            }
            let mut own = String::new();
            // Writing to a string cannot fail.
            let _ = self
                .handler
                .render_report(&mut own, &Shown::new(diagnostic));
            text.push_str(&own.replace(RELATED, "\n"));
            if !text.ends_with("\n\n") {
                text.push('\n');
            }
            codes.insert(diagnostic.code.0);
        }
        let codes: Vec<&str> = codes.into_iter().collect();
        match codes.as_slice() {
            [] => {}
            [code] => text.push_str(&format!("`torre explain {code}` says more.\n")),
            codes => text.push_str(&format!(
                "`torre explain CODE` says more about {}.\n",
                codes.join(", ")
            )),
        }
        self.write(&text);
    }

    /// Says something that is neither a result nor an error.
    pub fn note(&self, text: impl fmt::Display) {
        if !self.quiet {
            self.write(&plain(&format!("{text}\n")));
        }
    }

    fn write(&self, text: &str) {
        // A closed stderr cannot be reported.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
}

/// Text whose control characters are escaped, but those between columns and lines.
fn plain(text: &str) -> Cow<'_, str> {
    if unshown(text).next().is_none() {
        return text.into();
    }
    let (mut shown, mut from) = (String::new(), 0);
    for (at, c) in unshown(text) {
        shown.push_str(&text[from..at]);
        shown.extend(c.escape_default());
        from = at + c.len_utf8();
    }
    shown.push_str(&text[from..]);
    shown.into()
}

/// The place in [`plain`] text of a place in a text.
fn place_in_plain(text: &str, at: usize) -> usize {
    let before = unshown(text).take_while(|(place, _)| *place < at);
    let longer = before.map(|(_, c)| c.escape_default().count() - c.len_utf8());
    at + longer.sum::<usize>()
}

/// The control characters that are not shown as they are, and their places.
fn unshown(text: &str) -> impl Iterator<Item = (usize, char)> {
    text.char_indices().filter(|&(at, c)| match c {
        '\t' | '\n' => false,
        '\r' => !text[at + 1..].starts_with('\n'),
        c => c.is_control(),
    })
}

/// Whether the environment asks for no colours: by `NO_COLOR`, or for a terminal that knows none.
fn is_plain(variable: impl Fn(&'static str) -> Option<OsString>) -> bool {
    let unwanted = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    unwanted || variable("TERM").is_some_and(|value| value == "dumb")
}

/// A note takes one line: `waves.torre:12: note N0501: ...`.
fn in_a_line(note: &Diagnostic) -> String {
    let place = note.labels.first().map_or(String::new(), |label| {
        let before = label.source.text().get(..label.span.start as usize);
        let line = before.unwrap_or("").matches('\n').count() + 1;
        format!("{}:{line}: ", label.source.name())
    });
    format!("{place}note {}: {}\n", note.code.0, note.message)
}

/// The columns of the terminal on stderr, within a readable width.
fn terminal_width() -> usize {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: TIOCGWINSZ fills the structure that it is given, which lives during the call.
    let known = unsafe { libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &mut size) } == 0;
    match known && size.ws_col > 0 {
        true => usize::from(size.ws_col).clamp(60, 120),
        false => 100,
    }
}

/// A diagnostic in miette's terms. Labels in other sources than the first, and far from it, follow as related reports.
#[derive(Debug)]
struct Shown {
    severity: Severity,
    code: String,
    message: String,
    help: Option<String>,
    source: Option<NamedSource<String>>,
    labels: Vec<LabeledSpan>,
    related: Vec<Shown>,
}

impl Shown {
    fn new(diagnostic: &Diagnostic) -> Self {
        if diagnostic.labels.iter().any(is_in_long_line) {
            return Self::told(diagnostic);
        }
        let first = diagnostic.labels.first();
        let is_near = |l: &&Label| first.is_some_and(|first| is_beside(first, l));
        let here = diagnostic.labels.iter().filter(is_near);
        let elsewhere = diagnostic.labels.iter().filter(|l| !is_near(l));
        let first = first.map(|label| &label.source);
        Self {
            severity: diagnostic.severity,
            code: diagnostic.code.0.to_owned(),
            message: plain(&diagnostic.message).into(),
            help: help(diagnostic),
            source: first.map(named),
            labels: here.enumerate().map(|(i, l)| span(i, l)).collect(),
            related: elsewhere.map(Shown::place).collect(),
        }
    }

    /// A diagnostic whose places are told by their lines and columns.
    fn told(diagnostic: &Diagnostic) -> Self {
        let mut message = diagnostic.message.clone();
        for label in &diagnostic.labels {
            let place = excerpt(label);
            message.push_str(&format!("\n{place}"));
        }
        Self {
            severity: diagnostic.severity,
            code: diagnostic.code.0.to_owned(),
            message: plain(&message).into(),
            help: help(diagnostic),
            source: None,
            labels: Vec::new(),
            related: Vec::new(),
        }
    }

    /// A place in another source, or far away.
    fn place(label: &Label) -> Self {
        Self {
            severity: Severity::Warning,
            code: String::new(),
            message: format!("in `{}`", plain(label.source.name())),
            help: None,
            source: Some(named(&label.source)),
            labels: vec![span(0, label)],
            related: Vec::new(),
        }
    }
}

fn help(diagnostic: &Diagnostic) -> Option<String> {
    let hint = diagnostic.hint.as_deref()?;
    Some(plain(hint).into())
}

fn named(source: &Source) -> NamedSource<String> {
    NamedSource::new(plain(source.name()), plain(source.text()).into())
}

/// The first label is the primary one.
fn span(number: usize, label: &Label) -> LabeledSpan {
    let [start, end] = ends(label).map(|at| place_in_plain(label.source.text(), at));
    let span = SourceSpan::new(start.into(), end - start);
    let text = (!label.text.is_empty()).then(|| plain(&label.text).into());
    match number {
        0 => LabeledSpan::new_primary_with_span(text, span),
        _ => LabeledSpan::new_with_span(text, span),
    }
}

/// The first and the last byte of a label, within its source.
fn ends(label: &Label) -> [usize; 2] {
    let length = label.source.text().len();
    let start = (label.span.start as usize).min(length);
    [start, (label.span.end as usize).clamp(start, length)]
}

/// Whether two labels stand in one source, with few lines between them: all of these are shown.
fn is_beside(first: &Label, other: &Label) -> bool {
    if first.source != other.source {
        return false;
    }
    let ([from, to], [start, end]) = (ends(first), ends(other));
    let between = match to <= start {
        true => to..start,
        false => end..from.max(end),
    };
    let text = first.source.text().as_bytes();
    let lines = text[between].iter().filter(|b| **b == b'\n').count();
    lines <= MOST_BETWEEN
}

/// Whether a label, or a line beside it that would be drawn with it, is in a line that is too long.
fn is_in_long_line(label: &Label) -> bool {
    let text = label.source.text().as_bytes();
    let [start, end] = ends(label);
    let line_start = |at: usize| {
        text[..at]
            .iter()
            .rposition(|&b| b == b'\n')
            .map_or(0, |n| n + 1)
    };
    let line_end = |at: usize| {
        let rest = text[at..].iter().position(|&b| b == b'\n');
        rest.map_or(text.len(), |n| at + n)
    };
    let first = line_start(line_start(start).saturating_sub(1));
    let last = line_end((line_end(end) + 1).min(text.len()));
    let mut lines = text[first..last].split(|&b| b == b'\n');
    lines.any(|line| line.len() > LONGEST_LINE)
}

/// The place of a label, and the text there.
fn excerpt(label: &Label) -> String {
    let text = label.source.text();
    let [start, end] = ends(label);
    let before = &text[..text.floor_char_boundary(start)];
    let line = before.matches('\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |n| n + 1);
    let column = before[line_start..].chars().count() + 1;
    let from = text.floor_char_boundary(start.saturating_sub(AROUND).max(line_start));
    let line_end = text[before.len()..]
        .find('\n')
        .map_or(text.len(), |n| before.len() + n);
    let to = text
        .ceil_char_boundary(end.min(start + AROUND).max(start) + AROUND)
        .min(line_end);
    let part = text.get(from..to).unwrap_or_default().trim();
    let name = label.source.name();
    let says = match label.text.as_str() {
        "" => String::new(),
        says => format!(": {says}"),
    };
    format!("{name}:{line}:{column}{says}, in `{part}`")
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Shown {}

impl miette::Diagnostic for Shown {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        if self.code.is_empty() {
            return None;
        }
        Some(Box::new(&self.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match (self.code.is_empty(), self.severity) {
            (true, _) => miette::Severity::Advice,
            (false, Severity::Error) => miette::Severity::Error,
            (false, Severity::Warning) => miette::Severity::Warning,
            (false, Severity::Note) => miette::Severity::Advice,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.help.as_ref()?))
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(self.source.as_ref()?)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn miette::Diagnostic> + 'a>> {
        if self.related.is_empty() {
            return None;
        }
        Some(Box::new(
            self.related.iter().map(|r| r as &dyn miette::Diagnostic),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert!(matches!(plain("a\tb\r\nc\u{e9}"), Cow::Borrowed(_)));
        let text = "a\u{1b}[31m\r\u{9b}\r\nz";
        assert_eq!(plain(text), "a\\u{1b}[31m\\r\\u{9b}\r\nz");
        let place = |part: &str| {
            let at = text.find(part).unwrap();
            place_in_plain(text, at)
        };
        for part in ["a", "[31m", "z"] {
            assert_eq!(Some(place(part)), plain(text).find(part));
        }
        assert_eq!(place_in_plain(text, text.len()), plain(text).len());
    }

    #[test]
    fn terminals_without_colours_get_none() {
        let of = |name: &'static str, value: &'static str| {
            is_plain(|asked| (asked == name).then(|| value.into()))
        };
        assert!(of("NO_COLOR", "1") && of("TERM", "dumb"));
        assert!(!of("NO_COLOR", "") && !of("TERM", "xterm-256color"));
        assert!(!is_plain(|_| None));
    }
}
