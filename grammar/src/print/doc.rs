//! Text that knows where it may be broken, and the lines that it becomes.

use crate::ast::{Comments, Stmt};

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

    /// Appends to the last of `lines`, or breaks over new ones. `after` is the width of the text that follows on the
    /// last line.
    fn write(&self, lines: &mut Vec<String>, indent: usize, after: usize, enclosure: Enclosure) {
        let column = lines.last().map_or(0, |line| line.chars().count());
        let room = MARGIN.saturating_sub(column + after);
        if self.width(room) <= room {
            return self.write_flat(last(lines));
        }
        match self {
            Doc::Text(text) => last(lines).push_str(text),
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
                    part.write(lines, indent, after, enclosure);
                }
            }
            Doc::Group { elements, .. } if elements.is_empty() => self.write_flat(last(lines)),
            Doc::Group {
                open,
                elements,
                close,
            } => {
                last(lines).push_str(open.trim_end());
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
                    lines.push(" ".repeat(indent + 2));
                    element.write(lines, indent + 2, comma.len(), enclosure);
                    last(lines).push_str(comma);
                }
                lines.push(" ".repeat(indent) + close.trim_start());
            }
            Doc::Listed(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        last(lines).push(',');
                        lines.push(" ".repeat(indent + 2));
                    }
                    element.write(lines, indent + 2, 1, enclosure);
                }
            }
            Doc::Chain(first, links) => {
                let behind = links.first().map_or(0, |(op, _)| op.len() + 1);
                first.write(lines, indent, behind, enclosure);
                write_links(links, lines, indent, after, enclosure);
            }
            Doc::Cases(cases) => {
                let bracketed = enclosure == Enclosure::Brackets;
                let inner = if bracketed { indent } else { indent + 2 };
                if !bracketed {
                    last(lines).push('(');
                }
                for (index, case) in cases.iter().enumerate() {
                    if index > 0 || !bracketed {
                        lines.push(" ".repeat(inner));
                    }
                    case.write(lines, inner, after, Enclosure::Brackets);
                }
                if !bracketed {
                    lines.push(" ".repeat(indent) + ")");
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
    lines: &mut Vec<String>,
    indent: usize,
    after: usize,
    enclosure: Enclosure,
) {
    // Factors fill the lines; terms and conditions stand on lines of their own.
    let fills = links.iter().all(|(op, _)| matches!(*op, "*" | "/"));
    for (index, (op, operand)) in links.iter().enumerate() {
        let behind = if index + 1 == links.len() { after } else { 2 };
        let line = last(lines);
        line.push(' ');
        line.push_str(op);
        let here = MARGIN.saturating_sub(line.chars().count() + 1 + behind);
        let below = MARGIN.saturating_sub(indent + 2 + behind);
        // An operand that fits neither here nor on the next line is broken here, if its bracket opens here.
        let fits = operand.width(here) <= here
            || (operand.width(below) > below
                && operand.opening().is_some_and(|width| width <= here));
        if fills && fits {
            line.push(' ');
            operand.write(lines, indent, behind, enclosure);
        } else {
            lines.push(" ".repeat(indent + 2));
            operand.write(lines, indent + 2, behind.max(2), enclosure);
        }
    }
}

fn last(lines: &mut Vec<String>) -> &mut String {
    if lines.is_empty() {
        lines.push(String::new());
    }
    let end = lines.len() - 1;
    &mut lines[end]
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

fn comment_text(comment: &str) -> String {
    match comment {
        " " => "//".to_string(),
        _ if comment.starts_with('/') => format!("//{comment}"),
        _ => format!("// {comment}"),
    }
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

    fn write(&self, doc: &Doc, after: usize) -> Vec<String> {
        let mut lines = vec![" ".repeat(self.indent)];
        doc.write(&mut lines, self.indent, after, Enclosure::Statement);
        lines
    }

    /// A statement without a block. Its comment stands on the first line.
    pub fn simple(&mut self, comments: &Comments, doc: &Doc) {
        self.before(comments);
        for (index, text) in self.write(doc, 0).into_iter().enumerate() {
            let comment = if index == 0 {
                comments.trailing.as_deref()
            } else {
                None
            };
            self.push(text, comment);
        }
    }

    /// The head of a block. Its comment stands behind the brace.
    pub fn open(&mut self, comments: &Comments, head: Doc) {
        self.before(comments);
        let mut lines = self.write(&head, 2);
        last(&mut lines).push_str(" {");
        let count = lines.len();
        for (index, text) in lines.into_iter().enumerate() {
            let comment = if index + 1 == count {
                comments.trailing.as_deref()
            } else {
                None
            };
            self.push(text, comment);
        }
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
            let comments = Comments {
                trailing: None,
                before: comments.before.clone(),
            };
            return self.simple(&comments, &Doc::Seq(vec![head, Doc::text(" { }")]));
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
