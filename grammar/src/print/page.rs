//! The lines of a statement under way, with the comments inside of it.

use crate::ast::{Inside, Stand};
use crate::words::Count;

/// A line with the comments above it and behind it.
#[derive(Default)]
pub struct Row {
    /// Lines of their own.
    pub above: Vec<String>,
    pub text: String,
    pub comment: Option<String>,
}

/// Lines under way. A comment comes to the end of the first line that has all words before it, or above the next one.
pub struct Page<'c> {
    rows: Vec<Row>,
    /// The line under way.
    row: Row,
    count: Count,
    /// Comments without a place so far.
    left: &'c [Inside],
}

/// A comment as lines have it.
pub fn comment_text(comment: &str) -> String {
    match comment {
        " " => "//".to_string(),
        _ if comment.starts_with('/') => format!("//{comment}"),
        _ => format!("// {comment}"),
    }
}

fn blanks(count: usize) -> String {
    " ".repeat(count)
}

impl<'c> Page<'c> {
    pub fn new(indent: usize, comments: &'c [Inside]) -> Self {
        Self {
            rows: Vec::new(),
            row: Row {
                text: blanks(indent),
                ..Row::default()
            },
            count: Count::default(),
            left: comments,
        }
    }

    /// The width of the line so far.
    pub fn column(&self) -> usize {
        self.row.text.chars().count()
    }

    pub fn push(&mut self, text: &str) {
        if !self.left.is_empty() {
            self.count.read(text);
        }
        self.row.text.push_str(text);
    }

    /// Ends the line, and begins another one.
    pub fn break_line(&mut self, indent: usize) {
        self.begin_line(indent, indent);
    }

    /// The same before a bracket that closes: comments stand inside of the brackets.
    pub fn close_line(&mut self, indent: usize) {
        self.begin_line(indent, indent + 2);
    }

    /// `above`: the indent of comments between the two lines.
    fn begin_line(&mut self, indent: usize, above: usize) {
        let comments = self.end_row();
        let above = comments.iter().map(|c| blanks(above) + &comment_text(c));
        self.row = Row {
            above: above.collect(),
            text: blanks(indent),
            comment: None,
        };
    }

    /// Whether a comment stands before the next word.
    pub fn is_due(&self) -> bool {
        self.left.first().is_some_and(|c| self.has_passed(c))
    }

    fn has_passed(&self, comment: &Inside) -> bool {
        let Count { words, closed, .. } = self.count;
        comment.words < words || (comment.words == words && comment.closed <= closed)
    }

    /// The comments without a place, and the words before them that are written already.
    pub fn left(&self) -> (&'c [Inside], usize) {
        (self.left, self.count.words)
    }

    /// Ends the line. The last comment that stood behind words stands behind it, others before that above it. Returns
    /// the rest.
    fn end_row(&mut self) -> Vec<String> {
        let passed = self.left.iter().take_while(|c| self.has_passed(c)).count();
        let (due, left) = self.left.split_at(passed);
        self.left = left;
        let mut row = std::mem::take(&mut self.row);
        let behind = due.iter().rposition(|c| c.stand == Stand::Behind);
        let texts = |list: &[Inside]| list.iter().map(|c| c.text.clone()).collect::<Vec<_>>();
        let next = match behind {
            Some(at) => {
                row.put_above(texts(&due[..at]));
                row.comment = Some(due[at].text.clone());
                texts(&due[at + 1..])
            }
            None => texts(due),
        };
        self.rows.push(row);
        next
    }

    /// All lines; `trailing`: the comment behind the last one.
    pub fn finish(mut self, trailing: Option<&str>) -> Vec<Row> {
        // All words are there.
        self.count.words = usize::MAX;
        let more = self.end_row();
        if let Some(last) = self.rows.last_mut() {
            if let Some(trailing) = trailing {
                let own = last.comment.replace(trailing.to_owned());
                last.put_above(own.into_iter().collect());
            }
            last.put_above(more);
        }
        self.rows
    }
}

impl Row {
    /// Above a bracket that closes, comments stand inside of the brackets.
    fn put_above(&mut self, comments: Vec<String>) {
        let text = self.text.trim_start();
        let inside = if text.starts_with([')', ']', '}']) {
            2
        } else {
            0
        };
        let indent = self.text.len() - text.len() + inside;
        let lines = comments.iter().map(|c| blanks(indent) + &comment_text(c));
        self.above.extend(lines);
    }
}
