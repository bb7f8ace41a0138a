//! One pass over the bytes of a text.

use super::foreign;
use super::{Chunk, Layout, MAX_DEPTH, MAX_ERRORS, Token, TokenKind, Trivia, shorten};
use crate::codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::source::{Source, Span};

pub(super) struct Finished {
    pub layout: Layout,
    pub open_at_end: bool,
}

struct Frame {
    open: u8,
    at: usize,
    /// `if`s since the bracket opened or the last comma or separator in it.
    ifs: usize,
    /// A parenthesis right before an `if`, which does not count.
    free: bool,
}

pub(super) struct Scan<'s> {
    source: &'s Source,
    bytes: &'s [u8],
    pos: usize,
    /// Nothing but blanks was seen since the line began.
    line_empty: bool,
    line_start: usize,
    text: Vec<u8>,
    tokens: Vec<Token>,
    trivia: Vec<(usize, Trivia)>,
    chunks: Vec<Chunk>,
    frames: Vec<Frame>,
    ifs_outside: usize,
    ifs: usize,
    /// Frames that do not count.
    free: usize,
    chunk_start: usize,
    chunk_broken: bool,
    chunk_errors: Vec<usize>,
    items_at_margin: bool,
    diagnostics: &'s mut Diagnostics,
}

impl<'s> Scan<'s> {
    pub fn new(source: &'s Source, diagnostics: &'s mut Diagnostics) -> Self {
        let bytes = source.text().as_bytes();
        Self {
            source,
            bytes,
            pos: 0,
            line_empty: true,
            line_start: 0,
            text: bytes.to_vec(),
            tokens: Vec::new(),
            trivia: Vec::new(),
            chunks: Vec::new(),
            frames: Vec::new(),
            ifs_outside: 0,
            ifs: 0,
            free: 0,
            chunk_start: 0,
            chunk_broken: false,
            chunk_errors: Vec::new(),
            items_at_margin: false,
            diagnostics,
        }
    }

    /// Takes words of items at the left margin for the beginnings of items: brackets that are open there are closed.
    pub fn with_items_at_margin(mut self) -> Self {
        self.items_at_margin = true;
        self
    }

    pub fn run(mut self) -> Finished {
        if self.bytes.starts_with("\u{feff}".as_bytes()) {
            self.blank(0, 3);
            self.pos = 3;
            self.line_start = 3;
        }
        while let Some(&byte) = self.bytes.get(self.pos) {
            match byte {
                b' ' | b'\t' => self.pos += 1,
                b'\r' => {
                    self.blank(self.pos, self.pos + 1);
                    self.pos += 1;
                }
                b'\n' => self.line_end(),
                b'/' if self.next_is(b'/') => self.comment(),
                b'"' => self.string(),
                b'0'..=b'9' => self.number(),
                b'A'..=b'Z' | b'a'..=b'z' | b'_' => self.word(),
                b'(' | b'[' | b'{' => self.open(byte),
                b')' | b']' | b'}' => self.close(byte),
                _ => self.operator(),
            }
        }
        let open_at_end = !self.frames.is_empty();
        self.close_all();
        self.end_chunk();
        // Only whole characters were overwritten, so this is text.
        let text = String::from_utf8(self.text).unwrap_or_default();
        Finished {
            layout: Layout {
                text,
                tokens: self.tokens,
                trivia: self.trivia,
                chunks: self.chunks,
            },
            open_at_end,
        }
    }

    fn next_is(&self, byte: u8) -> bool {
        self.bytes.get(self.pos + 1) == Some(&byte)
    }

    fn blank(&mut self, from: usize, to: usize) {
        if let Some(bytes) = self.text.get_mut(from..to) {
            bytes.fill(b' ');
        }
    }

    fn slice(&self, from: usize, to: usize) -> &'s str {
        self.source.text().get(from..to).unwrap_or("")
    }

    /// The last token but separators.
    fn last_span(&self) -> Span {
        let mut tokens = self.tokens.iter().rev();
        let last = tokens.find(|token| token.kind != TokenKind::Separator);
        last.map_or(Span::default(), |token| token.span)
    }

    /// Where the run of word characters from `from` ends.
    fn word_end(&self, from: usize) -> usize {
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        from + self
            .bytes
            .iter()
            .skip(from)
            .take_while(|byte| word(byte))
            .count()
    }

    fn push(&mut self, kind: TokenKind, end: usize) {
        // Whether a parenthesis counts depends on the token that follows it.
        if !matches!(kind, TokenKind::Open(_)) {
            self.check_depth();
        }
        self.tokens.push(Token {
            kind,
            span: Span::new(self.pos, end),
        });
        self.pos = end;
        self.line_empty = false;
    }

    /// An error that leaves the rest of the item readable.
    fn error(&mut self, error: Diagnostic) {
        if self.chunk_errors.len() < MAX_ERRORS {
            self.chunk_errors.push(self.pos);
        }
        self.report(error);
    }

    fn report(&mut self, error: Diagnostic) {
        // One more than is shown, so that it is seen that some are left out.
        if self.diagnostics.0.len() <= MAX_ERRORS {
            self.diagnostics.push(error);
        }
    }

    fn line_end(&mut self) {
        let nested = matches!(self.frames.last(), Some(frame) if frame.open != b'{');
        if self.line_empty && !self.follows_blank() {
            self.trivia.push((self.line_start, Trivia::Blank));
        }
        if nested || self.continues() {
            self.blank(self.pos, self.pos + 1);
            self.pos += 1;
        } else {
            self.separator();
        }
        self.line_empty = true;
        self.line_start = self.pos;
    }

    fn follows_blank(&self) -> bool {
        let token = self
            .tokens
            .last()
            .map_or(0, |token| token.span.end as usize);
        matches!(self.trivia.last(), Some((at, Trivia::Blank)) if *at >= token)
    }

    /// Whether the statement goes on after a line end here.
    fn continues(&self) -> bool {
        let Some(last) = self.tokens.last() else {
            return false;
        };
        let text = self.slice(last.span.start as usize, last.span.end as usize);
        match last.kind {
            TokenKind::Operator => !matches!(text, ":" | "::" | "." | "@"),
            TokenKind::Word => matches!(text, "and" | "or" | "not"),
            _ => false,
        }
    }

    fn separator(&mut self) {
        let end = self.pos + 1;
        match self.frames.last_mut() {
            None => {
                self.end_chunk();
                self.pos = end;
                self.chunk_start = self.tokens.len();
                self.ifs = 0;
                self.ifs_outside = 0;
            }
            Some(frame) => {
                self.ifs -= std::mem::take(&mut frame.ifs);
                self.push(TokenKind::Separator, end);
            }
        }
    }

    /// Ends the item here, without a token for the separator.
    fn end_chunk(&mut self) {
        let tokens = self.chunk_start..self.tokens.len();
        let broken = std::mem::take(&mut self.chunk_broken);
        let errors = std::mem::take(&mut self.chunk_errors);
        if !tokens.is_empty() {
            self.chunks.push(Chunk {
                tokens,
                broken,
                errors,
            });
        }
        self.chunk_start = self.tokens.len();
    }

    fn comment(&mut self) {
        let start = self.pos;
        let length = self
            .bytes
            .iter()
            .skip(start)
            .take_while(|byte| **byte != b'\n')
            .count();
        let end = start + length;
        let text = self.slice(start + 2, end).trim_end();
        let text = text.strip_prefix(' ').unwrap_or(text);
        let text = if text.is_empty() { " " } else { text };
        self.trivia.push((start, Trivia::Comment(text.to_string())));
        self.blank(start, end);
        self.pos = end;
        self.line_empty = false;
    }

    fn string(&mut self) {
        let start = self.pos;
        let rest = self.bytes.iter().skip(start + 1);
        let length = rest
            .take_while(|byte| !matches!(**byte, b'"' | b'\n'))
            .count();
        let end = start + 1 + length;
        if self.bytes.get(end) == Some(&b'"') {
            self.push(TokenKind::Text, end + 1);
            return;
        }
        let span = Span::new(start, start + self.slice(start, end).trim_end().len());
        self.error(
            Diagnostic::error(codes::UNTERMINATED_STRING, "a string is not closed")
                .at(self.source, span, "begins here")
                .hint("put a `\"` at its end, on the same line"),
        );
        self.push(TokenKind::Text, end);
        // A bracket that was opened on its line was meant to be closed behind it.
        while matches!(self.frames.last(), Some(frame) if frame.open != b'{' && frame.at >= self.line_start)
        {
            if let Some(frame) = self.frames.pop() {
                self.forget(&frame);
            }
            self.chunk_broken = true;
        }
    }

    fn number(&mut self) {
        let digits = |from: usize| {
            from + self
                .bytes
                .iter()
                .skip(from)
                .take_while(|byte| byte.is_ascii_digit())
                .count()
        };
        let at = |index: usize| self.bytes.get(index).copied().unwrap_or(0);
        let start = self.pos;
        let mut end = digits(start);
        if at(end) == b'.' && at(end + 1) != b'.' {
            end = digits(end + 1);
        }
        if matches!(at(end), b'e' | b'E') {
            let sign = usize::from(matches!(at(end + 1), b'+' | b'-'));
            if at(end + 1 + sign).is_ascii_digit() {
                end = digits(end + 1 + sign);
            }
        }
        // `256x128` is a domain: the `x` is a word of its own.
        let letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
        let times = at(end) == b'x' && !letter(at(end + 1));
        if letter(at(end)) && !times {
            let end = self.word_end(end);
            let text = self.slice(start, end);
            let hint = match text.as_bytes() {
                [b'0', b'x' | b'b' | b'o', ..] => "numbers are decimal".to_string(),
                [.., b'e' | b'E'] => "digits must follow the `e`, as in `1e9`".to_string(),
                _ => "numbers are written as `1`, `0.5` or `3e14`; a product needs `*`, and a name cannot begin with \
                    a digit".to_string(),
            };
            let error = Diagnostic::error(
                codes::MALFORMED_NUMBER,
                format!("`{}` is not a number", shorten(text)),
            )
            .at(
                self.source,
                Span::new(start, end),
                "neither a number nor a name",
            )
            .hint(hint);
            self.error(error);
            self.push(TokenKind::Number, end);
            return;
        }
        self.push(TokenKind::Number, end);
    }

    fn word(&mut self) {
        let end = self.word_end(self.pos);
        let text = self.slice(self.pos, end);
        let item = matches!(
            text,
            "scheme" | "problem" | "schedule" | "def" | "use" | "const"
        ) || text == "layer"
            && self.slice(end, self.source.text().len()).starts_with(' ');
        if self.items_at_margin && item && self.pos == self.line_start && !self.frames.is_empty() {
            self.close_all();
            self.ifs = 0;
            self.ifs_outside = 0;
            // The line end before the word was taken for a part of the unclosed item.
            if matches!(self.tokens.last(), Some(token) if token.kind == TokenKind::Separator) {
                self.tokens.pop();
            }
            self.end_chunk();
        }
        if text == "if" {
            self.ifs += 1;
            let opened =
                matches!(self.tokens.last(), Some(token) if token.kind == TokenKind::Open(b'('));
            match self.frames.last_mut() {
                Some(frame) => {
                    frame.ifs += 1;
                    if opened && !frame.free {
                        frame.free = true;
                        self.free += 1;
                    }
                }
                None => self.ifs_outside += 1,
            }
        }
        self.push(TokenKind::Word, end);
    }

    /// A frame is gone.
    fn forget(&mut self, frame: &Frame) {
        self.ifs -= frame.ifs;
        self.free -= usize::from(frame.free);
    }

    fn check_depth(&mut self) {
        if self.frames.len() - self.free + self.ifs > MAX_DEPTH && !self.chunk_broken {
            self.chunk_broken = true;
            let error = Diagnostic::error(
                codes::TOO_DEEP,
                "brackets, blocks or `if` are nested too deeply",
            )
            .at(
                self.source,
                Span::new(self.pos, self.pos + 1),
                format!("more than {MAX_DEPTH} levels here"),
            )
            .hint("name the inner parts with `let` or `def`");
            self.report(error);
        }
    }

    fn open(&mut self, open: u8) {
        self.check_depth();
        self.frames.push(Frame {
            open,
            at: self.pos,
            ifs: 0,
            free: false,
        });
        self.push(TokenKind::Open(open), self.pos + 1);
    }

    fn close(&mut self, close: u8) {
        let matching = match close {
            b')' => b'(',
            b']' => b'[',
            _ => b'{',
        };
        // A bracket that was opened inside and is still open when its surroundings close was forgotten.
        if self
            .frames
            .iter()
            .rev()
            .take(MAX_DEPTH)
            .any(|frame| frame.open == matching)
        {
            while let Some(frame) = self.frames.pop() {
                self.forget(&frame);
                if frame.open == matching {
                    break;
                }
                self.unclosed(&frame, Some(self.pos));
            }
        } else {
            self.chunk_broken = true;
            let error = Diagnostic::error(
                codes::UNMATCHED,
                format!("`{}` closes nothing", close as char),
            )
            .at(
                self.source,
                Span::new(self.pos, self.pos + 1),
                format!("there is no open `{}` before it", matching as char),
            )
            .hint(format!(
                "remove it, or add the `{}` that it should close",
                matching as char
            ));
            self.report(error);
        }
        self.push(TokenKind::Close(close), self.pos + 1);
    }

    fn close_all(&mut self) {
        let mut count = 0;
        while let Some(frame) = self.frames.pop() {
            self.forget(&frame);
            // Below the first few it is noise.
            if count < 4 {
                self.unclosed(&frame, None);
            }
            count += 1;
            self.chunk_broken = true;
        }
    }

    fn unclosed(&mut self, frame: &Frame, found: Option<usize>) {
        self.chunk_broken = true;
        let close = match frame.open {
            b'(' => ')',
            b'[' => ']',
            _ => '}',
        };
        let mut error = Diagnostic::error(
            codes::UNCLOSED,
            format!("`{}` is not closed", frame.open as char),
        )
        .at(
            self.source,
            Span::new(frame.at, frame.at + 1),
            "opened here",
        );
        error = match found {
            Some(at) => error.at(
                self.source,
                Span::new(at, at + 1),
                format!("expected `{close}` before this"),
            ),
            None if frame.open != b'{' => error,
            None => {
                let text = format!("expected `{close}` after this");
                error.at(self.source, self.last_span(), text)
            }
        };
        self.report(error.hint(format!("add the missing `{close}`")));
    }

    fn operator(&mut self) {
        let rest = self.bytes.get(self.pos..).unwrap_or(&[]);
        let hint = match rest {
            [b';', ..] => {
                self.line_empty = false;
                return self.separator();
            }
            [b',', ..] => {
                match self.frames.last_mut() {
                    Some(frame) => self.ifs -= std::mem::take(&mut frame.ifs),
                    None => self.ifs -= std::mem::take(&mut self.ifs_outside),
                }
                return self.push(TokenKind::Operator, self.pos + 1);
            }
            [b'/', b'*', ..] => Some("comments run from `//` to the end of the line"),
            [b'*', b'*', ..] => Some("a power is written with `^`"),
            [b'*' | b'/', b'=', ..] => Some("an update is `=`, `+=` or `-=`"),
            [b'|', b'|', ..] => Some("write `or`"),
            [b':' | b'.', second, ..] if rest.first() == Some(second) => {
                return self.push(TokenKind::Operator, self.pos + 2);
            }
            [b'+' | b'-' | b'<' | b'>' | b'=' | b'!', b'=', ..] => {
                return self.push(TokenKind::Operator, self.pos + 2);
            }
            [b'.', b'0'..=b'9', ..] if !self.after_operand() => {
                let end = self.word_end(self.pos + 1);
                let text = self.slice(self.pos, end);
                let error = Diagnostic::error(
                    codes::MALFORMED_NUMBER,
                    format!("`{}` has no digit before the point", shorten(text)),
                )
                .at(self.source, Span::new(self.pos, end), "not a number")
                .hint(format!("write `0{}`", shorten(text)));
                self.error(error);
                return self.push(TokenKind::Number, end);
            }
            [
                b'+' | b'-' | b'*' | b'/' | b'^' | b'<' | b'>' | b'=' | b':' | b'.' | b'@' | b'|',
                ..,
            ] => {
                return self.push(TokenKind::Operator, self.pos + 1);
            }
            [b'!', ..] => Some("write `not`"),
            [b'&', ..] => Some("write `and`"),
            [b'#', ..] => Some("comments begin with `//`"),
            [b'\'', ..] => Some("strings are in double quotes"),
            _ => None,
        };
        let character = self
            .slice(self.pos, self.bytes.len())
            .chars()
            .next()
            .unwrap_or('\u{fffd}');
        let hint = hint.or_else(|| foreign::hint(character));
        let doubled = rest.get(1).is_some_and(|second| {
            matches!(
                (character, second),
                ('*', b'*') | ('&', b'&') | ('|', b'|') | ('/', b'*') | ('*' | '/', b'=')
            )
        });
        let length = if character.is_alphabetic() {
            let word = |c: &char| c.is_alphanumeric() || *c == '_';
            let rest = self.slice(self.pos, self.bytes.len()).chars();
            rest.take_while(word).map(char::len_utf8).sum()
        } else {
            character.len_utf8() + usize::from(doubled)
        };
        let end = self.pos + length;
        let shown = shorten(self.slice(self.pos, end));
        let mut error = Diagnostic::error(
            codes::UNEXPECTED_CHARACTER,
            format!("`{shown}` has no meaning here"),
        )
        .at(
            self.source,
            Span::new(self.pos, end),
            "not part of the language",
        );
        if let Some(hint) = hint {
            error = error.hint(hint);
        }
        self.error(error);
        self.push(TokenKind::Operator, end);
    }

    /// Whether the token before could end an operand, and touches this place.
    fn after_operand(&self) -> bool {
        self.tokens.last().is_some_and(|token| {
            token.span.end as usize == self.pos
                && matches!(
                    token.kind,
                    TokenKind::Word | TokenKind::Close(_) | TokenKind::Number
                )
        })
    }
}
