//! Text that knows where it may be broken, and the lines that it becomes.

use super::page::{Page, Row, comment_text};
use crate::ast::{Bracket, Comments, Inside, Stmt};
use crate::words::Count;

/// The column that lines should not pass.
const MARGIN: usize = 100;

/// The width up to which a line's comment is aligned with the comments of its neighbours.
const ALIGNED: usize = 80;

/// A piece of a statement.
pub enum Doc {
    Text(String),
    Seq(Vec<Doc>),
    /// Between brackets, separated by commas; broken as one element per line, with a last comma.
    Group {
        open: &'static str,
        elements: Vec<Doc>,
        close: &'static str,
    },
    /// Separated by commas without brackets; broken behind commas.
    Listed(Vec<Doc>),
    /// Operands with operators between; broken behind the operators.
    Chain(Box<Doc>, Vec<(&'static str, Doc)>),
    /// Separated by spaces; broken as one per line, in parentheses unless there are brackets around already.
    Cases(Vec<Doc>),
}

/// The enclosure of a piece that is broken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Enclosure {
    /// Parentheses or square brackets: a line may end anywhere.
    Brackets,
    /// None, or braces: a line's end ends a statement, unless an operator or a comma stands before it.
    Statement,
}

impl Doc {
    pub fn text(text: &str) -> Doc {
        Doc::Text(text.to_string())
    }

    pub fn group(open: &'static str, elements: Vec<Doc>, close: &'static str) -> Doc {
        Doc::Group {
            open,
            elements,
            close,
        }
    }

    /// On one line.
    pub fn flat(&self) -> String {
        let mut out = String::new();
        self.write_flat(&mut out);
        out
    }

    fn write_flat(&self, out: &mut String) {
        match self {
            Doc::Text(text) => out.push_str(text),
            Doc::Seq(parts) => parts.iter().for_each(|part| part.write_flat(out)),
            Doc::Group {
                open,
                elements,
                close,
            } => {
                out.push_str(open);
                write_listed(elements, out);
                out.push_str(close);
            }
            Doc::Listed(elements) => write_listed(elements, out),
            Doc::Cases(cases) => {
                for (index, case) in cases.iter().enumerate() {
                    if index > 0 {
                        out.push(' ');
                    }
                    case.write_flat(out);
                }
            }
            Doc::Chain(first, links) => {
                first.write_flat(out);
                for (op, operand) in links {
                    out.push(' ');
                    out.push_str(op);
                    out.push(' ');
                    operand.write_flat(out);
                }
            }
        }
    }

    /// The width on one line, or anything above `limit` if it is wider.
    fn width(&self, limit: usize) -> usize {
        let listed = |elements: &[Doc]| {
            let separators = 2 * elements.len().saturating_sub(1);
            sum(elements.iter(), separators, limit)
        };
        match self {
            Doc::Text(text) => text.chars().count(),
            Doc::Seq(parts) => sum(parts.iter(), 0, limit),
            Doc::Group {
                open,
                elements,
                close,
            } => open.len() + close.len() + listed(elements),
            Doc::Listed(elements) => listed(elements),
            Doc::Cases(cases) => sum(cases.iter(), cases.len().saturating_sub(1), limit),
            Doc::Chain(first, links) => {
                let operators = links.iter().map(|(op, _)| op.len() + 2).sum();
                sum(
                    std::iter::once(&**first).chain(links.iter().map(|(_, operand)| operand)),
                    operators,
                    limit,
                )
            }
        }
    }

    /// Names, numbers and strings in it.
    fn words(&self) -> usize {
        let sum = |docs: &[Doc]| docs.iter().map(Doc::words).sum::<usize>();
        match self {
            Doc::Text(text) => Count::of(text).words,
            Doc::Seq(parts) => sum(parts),
            Doc::Group { elements, .. } | Doc::Listed(elements) => sum(elements),
            Doc::Cases(cases) => sum(cases),
            Doc::Chain(first, links) => {
                let links = links
                    .iter()
                    .map(|(op, operand)| Count::of(op).words + operand.words());
                first.words() + links.sum::<usize>()
            }
        }
    }

    /// Whether one of some comments stands where it can be broken. It begins behind `start` words.
    fn is_commented(&self, comments: &[Inside], start: usize) -> bool {
        if comments.is_empty() {
            return false;
        }
        let end = start + self.words();
        let inner = |c: &Inside| start < c.words && c.words < end;
        let any_of = |docs: &[Doc]| {
            let mut start = start;
            docs.iter().any(|doc| {
                let first = start;
                start += doc.words();
                doc.is_commented(comments, first)
            })
        };
        match self {
            Doc::Text(_) => false,
            Doc::Seq(parts) => any_of(parts),
            Doc::Group { elements, .. } if elements.is_empty() => false,
            Doc::Group { elements, .. } => {
                let closed = elements.last().map_or(0, |e| Count::of(&e.flat()).closed);
                let at_bracket = |c: &Inside| match c.beside {
                    Some(Bracket::Open) => c.words == start,
                    Some(Bracket::Close) => c.words == end && c.closed == closed,
                    None => false,
                };
                comments.iter().any(|c| inner(c) || at_bracket(c))
            }
            Doc::Listed(elements) => comments.iter().any(inner) || any_of(elements),
            Doc::Cases(cases) => comments.iter().any(inner) || any_of(cases),
            Doc::Chain(first, links) => {
                let mut start = start + first.words();
                let in_link = |(op, operand): &(&str, Doc)| {
                    let first = start + Count::of(op).words;
                    start = first + operand.words();
                    operand.is_commented(comments, first)
                };
                let in_first = first.is_commented(comments, end - self.words());
                comments.iter().any(inner) || in_first || links.iter().any(in_link)
            }
        }
    }

    /// Appends to the last line, or breaks over new ones. `after` is the width of the text that follows on the last
    /// line.
    fn write(&self, page: &mut Page<'_>, indent: usize, after: usize, enclosure: Enclosure) {
        let room = MARGIN.saturating_sub(page.column() + after);
        let (comments, written) = page.left();
        if self.width(room) <= room && !self.is_commented(comments, written) {
            return page.push(&self.flat());
        }
        match self {
            Doc::Text(text) => page.push(text),
            Doc::Seq(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    // The text that follows up to the next place where a line can end.
                    let following = parts
                        .iter()
                        .skip(index + 1)
                        .map_while(Doc::unbreakable)
                        .sum::<usize>();
                    let whole = index + 1 == parts.len();
                    let after = following + if whole { after } else { 0 };
                    part.write(page, indent, after, enclosure);
                }
            }
            Doc::Group { elements, .. } if elements.is_empty() => page.push(&self.flat()),
            Doc::Group {
                open,
                elements,
                close,
            } => {
                page.push(open.trim_end());
                // A parenthesis around one operand takes no comma.
                let comma = if elements.len() == 1 && *open == "(" {
                    ""
                } else {
                    ","
                };
                let enclosure = match open.ends_with(['{', ' ']) {
                    true => Enclosure::Statement,
                    false => Enclosure::Brackets,
                };
                for element in elements {
                    page.break_line(indent + 2);
                    element.write(page, indent + 2, comma.len(), enclosure);
                    page.push(comma);
                }
                page.close_line(indent);
                page.push(close.trim_start());
            }
            Doc::Listed(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        page.push(",");
                        page.break_line(indent + 2);
                    }
                    element.write(page, indent + 2, 1, enclosure);
                }
            }
            Doc::Chain(first, links) => {
                let behind = links.first().map_or(0, |(op, _)| op.len() + 1);
                first.write(page, indent, behind, enclosure);
                write_links(links, page, indent, after, enclosure);
            }
            Doc::Cases(cases) => {
                let bracketed = enclosure == Enclosure::Brackets;
                let inner = if bracketed { indent } else { indent + 2 };
                if !bracketed {
                    page.push("(");
                }
                for (index, case) in cases.iter().enumerate() {
                    if index > 0 || !bracketed {
                        page.break_line(inner);
                    }
                    case.write(page, inner, after, Enclosure::Brackets);
                }
                if !bracketed {
                    page.close_line(indent);
                    page.push(")");
                }
            }
        }
    }

    /// The width up to the bracket with which it ends on lines of its own, if it is a call or a bracket with several
    /// elements.
    fn opening(&self) -> Option<usize> {
        match self {
            Doc::Group { open, elements, .. } if elements.len() > 1 => Some(open.len()),
            Doc::Seq(parts) => match parts.as_slice() {
                [Doc::Text(name), group] => Some(name.chars().count() + group.opening()?),
                _ => None,
            },
            _ => None,
        }
    }

    /// The width, if no line can be broken in it.
    fn unbreakable(&self) -> Option<usize> {
        match self {
            Doc::Text(text) => Some(text.chars().count()),
            _ => None,
        }
    }
}

fn sum<'d>(mut docs: impl Iterator<Item = &'d Doc>, start: usize, limit: usize) -> usize {
    let mut total = start;
    while total <= limit
        && let Some(doc) = docs.next()
    {
        total += doc.width(limit - total);
    }
    total
}

fn write_listed(elements: &[Doc], out: &mut String) {
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        element.write_flat(out);
    }
}

/// Appends operators with their operands, broken over lines, as [`Doc::write`] does.
fn write_links(
    links: &[(&str, Doc)],
    page: &mut Page<'_>,
    indent: usize,
    after: usize,
    enclosure: Enclosure,
) {
    // Factors fill the lines; terms and conditions stand on lines of their own.
    let fills = links.iter().all(|(op, _)| matches!(*op, "*" | "/"));
    for (index, (op, operand)) in links.iter().enumerate() {
        let behind = if index + 1 == links.len() { after } else { 2 };
        page.push(" ");
        page.push(op);
        let here = MARGIN.saturating_sub(page.column() + 1 + behind);
        let below = MARGIN.saturating_sub(indent + 2 + behind);
        // An operand that fits neither here nor on the next line is broken here, if its bracket opens here.
        let fits = operand.width(here) <= here
            || (operand.width(below) > below
                && operand.opening().is_some_and(|width| width <= here));
        if fills && fits && !page.is_due() {
            page.push(" ");
            operand.write(page, indent, behind, enclosure);
        } else {
            page.break_line(indent + 2);
            operand.write(page, indent + 2, behind.max(2), enclosure);
        }
    }
}

struct Line {
    indent: usize,
    text: String,
    comment: Option<String>,
}

/// The lines of a file under way.
#[derive(Default)]
pub struct Lines {
    lines: Vec<Line>,
    indent: usize,
}

impl Lines {
    pub fn blank(&mut self) {
        self.lines.push(Line {
            indent: 0,
            text: String::new(),
            comment: None,
        });
    }

    fn push(&mut self, text: String, comment: Option<&str>) {
        self.lines.push(Line {
            indent: self.indent,
            text,
            comment: comment.map(comment_text),
        });
    }

    /// The comments and blank lines before a node.
    pub fn before(&mut self, comments: &Comments) {
        for comment in &comments.before {
            if comment.is_empty() {
                self.blank();
            } else {
                self.push(" ".repeat(self.indent) + &comment_text(comment), None);
            }
        }
    }

    fn write(&self, comments: &Comments, doc: &Doc, after: usize) -> Vec<Row> {
        let mut page = Page::new(self.indent, &comments.inside);
        doc.write(&mut page, self.indent, after, Enclosure::Statement);
        page.finish(comments.trailing.as_deref())
    }

    fn push_rows(&mut self, rows: Vec<Row>) {
        for row in rows {
            for line in row.above {
                self.push(line, None);
            }
            self.push(row.text, row.comment.as_deref());
        }
    }

    /// A statement without a block. Its comment stands on the last line.
    pub fn simple(&mut self, comments: &Comments, doc: &Doc) {
        self.before(comments);
        let rows = self.write(comments, doc, 0);
        self.push_rows(rows);
    }

    /// The head of a block. Its comment stands behind the brace.
    pub fn open(&mut self, comments: &Comments, head: Doc) {
        self.before(comments);
        let mut rows = self.write(comments, &head, 2);
        if let Some(last) = rows.last_mut() {
            last.text.push_str(" {");
        }
        self.push_rows(rows);
        self.indent += 2;
    }

    /// The end of a block.
    pub fn close(&mut self, end: &Comments) {
        self.before(end);
        self.indent -= 2;
        self.push(" ".repeat(self.indent) + "}", end.trailing.as_deref());
    }

    /// The end of a block and the head of the next one, on one line where no comment stands between.
    pub fn reopen(&mut self, end: &Comments, comments: &Comments, head: Doc) {
        if end.trailing.is_some() || !comments.before.is_empty() {
            self.close(end);
            return self.open(comments, head);
        }
        self.before(end);
        self.indent -= 2;
        self.open(comments, Doc::Seq(vec![Doc::text("} "), head]));
    }

    /// A node with a block of statements.
    pub fn block<T>(
        &mut self,
        comments: &Comments,
        head: Doc,
        body: &[Stmt<T>],
        end: &Comments,
        print: impl FnOnce(&mut Self, &[Stmt<T>]),
    ) {
        if body.is_empty() && comments.trailing.is_none() && *end == Comments::default() {
            return self.simple(comments, &Doc::Seq(vec![head, Doc::text(" { }")]));
        }
        self.open(comments, head);
        print(self, body);
        self.close(end);
    }

    /// The text, with the comments of neighbouring lines aligned.
    pub fn finish(self) -> String {
        let mut out = String::new();
        let mut rest = self.lines.as_slice();
        while let Some(line) = rest.first() {
            let width = |line: &Line| line.text.chars().count();
            let fits = |other: &&Line| {
                other.comment.is_some() && other.indent == line.indent && width(other) <= ALIGNED
            };
            let run = rest.iter().take_while(fits).count().max(1);
            let (lines, following) = rest.split_at(run);
            let column = lines.iter().map(width).max().unwrap_or(0) + 2;
            for line in lines {
                out.push_str(&line.text);
                if let Some(comment) = &line.comment {
                    let gap = column.saturating_sub(width(line));
                    out.extend(std::iter::repeat_n(' ', gap));
                    out.push_str(comment);
                }
                out.push('\n');
            }
            rest = following;
        }
        out
    }
}
