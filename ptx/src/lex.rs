//! From text to tokens: words, punctuation and strings, each with its line.

use crate::error::Error;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Names, opcodes, directives and numbers: letters, digits, `_`, `$`, `%`, `.` and `::`.
    Word,
    /// One character of punctuation.
    Punct,
    /// A text in quotes.
    Text,
}

/// A token, a piece of the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// Counted from one.
    pub(crate) line: u32,
}

impl Token<'_> {
    /// Whether it is this punctuation or word.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.kind != Kind::Text && self.text == text
    }
}

/// All tokens of a text; comments are dropped.
pub(crate) fn tokens(source: &str) -> Result<Vec<Token<'_>>, Error> {
    let bytes = source.as_bytes();
    let (mut at, mut line) = (0, 1);
    let mut tokens = Vec::new();
    while at < bytes.len() {
        let byte = bytes[at];
        let start = at;
        if byte == b'\n' {
            line += 1;
            at += 1;
        } else if byte.is_ascii_whitespace() {
            at += 1;
        } else if bytes[at..].starts_with(b"//") {
            at += length(&bytes[at..], |byte| byte != b'\n');
        } else if bytes[at..].starts_with(b"/*") {
            let Some(end) = source[at..].find("*/") else {
                return Err(Error::new(line, "this comment is never closed"));
            };
            line += count_lines(&bytes[at..at + end]);
            at += end + 2;
        } else if byte == b'"' {
            let inner = length(&bytes[at + 1..], |byte| byte != b'"' && byte != b'\n');
            at += inner + 2;
            if bytes.get(at - 1) != Some(&b'"') {
                return Err(Error::new(line, "this string is never closed"));
            }
            tokens.push(Token {
                kind: Kind::Text,
                text: &source[start + 1..at - 1],
                line,
            });
        } else if is_word(byte) {
            loop {
                at += length(&bytes[at..], is_word);
                let scoped = bytes[at..].starts_with(b"::");
                if !scoped || !bytes.get(at + 2).is_some_and(|byte| is_word(*byte)) {
                    break;
                }
                at += 2;
            }
            tokens.push(Token {
                kind: Kind::Word,
                text: &source[start..at],
                line,
            });
        } else if byte.is_ascii_punctuation() {
            at += 1;
            tokens.push(Token {
                kind: Kind::Punct,
                text: &source[start..at],
                line,
            });
        } else {
            return Err(Error::new(line, format!("unexpected byte 0x{byte:02x}")));
        }
    }
    Ok(tokens)
}

fn length(bytes: &[u8], accept: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| accept(**byte)).count()
}

fn count_lines(bytes: &[u8]) -> u32 {
    bytes.iter().map(|byte| u32::from(*byte == b'\n')).sum()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%' | b'.')
}

/// The bits of a number as written, and how it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// A whole number.
    Int(i128),
    /// `0f` and eight digits: the bits of an f32.
    Single(u32),
    /// `0d` and sixteen digits: the bits of an f64.
    Double(u64),
    /// A number with a point.
    Decimal(f64),
}

/// Reads a number; nothing if the word is not one.
pub(crate) fn number(word: &str) -> Option<Number> {
    if !word.as_bytes().first()?.is_ascii_digit() {
        return None;
    }
    let radix = |digits: &str, radix| i128::from_str_radix(digits, radix).ok().map(Number::Int);
    match word.as_bytes().get(1) {
        Some(b'f' | b'F') => u32::from_str_radix(&word[2..], 16).ok().map(Number::Single),
        Some(b'd' | b'D') => u64::from_str_radix(&word[2..], 16).ok().map(Number::Double),
        Some(b'x' | b'X') => radix(word[2..].trim_end_matches('U'), 16),
        Some(b'b' | b'B') => radix(word[2..].trim_end_matches('U'), 2),
        _ if word.contains('.') => word.parse().ok().map(Number::Decimal),
        _ => radix(word.trim_end_matches('U'), 10),
    }
}
