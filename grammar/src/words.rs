//! Words of a text. Layout adds or removes commas, the signs of offsets, and parentheses around operands, but never a
//! word.

/// Words before which an operand may stand in parentheses of its own.
const BEFORE_OPERANDS: [&str; 10] = [
    "and", "else", "every", "if", "in", "not", "or", "require", "then", "where",
];

/// A place in a text without comments, by the words before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Count {
    /// Names, numbers and strings.
    pub words: usize,
    /// Brackets that close behind the last word, but for parentheses around operands.
    pub closed: usize,
    /// By open bracket whether it counts.
    open: Vec<bool>,
    /// Whether a parenthesis that opens here holds arguments.
    behind_operand: bool,
}

impl Count {
    /// Of a whole text.
    pub fn of(text: &str) -> Self {
        let mut count = Self::default();
        count.read(text);
        count
    }

    /// Goes on over a text.
    pub fn read(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let end = match byte {
                b'"' => string_end(bytes, at),
                b'0'..=b'9' => number_end(bytes, at),
                byte if is_letter(*byte) => name_end(bytes, at),
                byte => {
                    self.sign(*byte);
                    at += 1;
                    continue;
                }
            };
            self.words += 1;
            self.closed = 0;
            let word = text.get(at..end).unwrap_or("");
            self.behind_operand = !BEFORE_OPERANDS.contains(&word);
            at = end;
        }
    }

    fn sign(&mut self, byte: u8) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'(' => {
                self.open.push(self.behind_operand);
                self.behind_operand = false;
            }
            b'[' | b'{' => {
                self.open.push(true);
                self.behind_operand = false;
            }
            b')' | b']' | b'}' => {
                self.closed += usize::from(self.open.pop().unwrap_or(true));
                self.behind_operand = true;
            }
            _ => self.behind_operand = false,
        }
    }
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// The first place from `at` on whose byte is another one.
fn skip(bytes: &[u8], at: usize, is: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.iter().skip(at);
    at + rest.take_while(|byte| is(**byte)).count()
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    1 + skip(bytes, at + 1, |byte| byte != b'"')
}

fn name_end(bytes: &[u8], at: usize) -> usize {
    // `256x128` has a number, an `x` and a number.
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    if bytes.get(at) == Some(&b'x') && at > 0 && digit(at - 1) && digit(at + 1) {
        return at + 1;
    }
    skip(bytes, at, |byte| is_letter(byte) || byte.is_ascii_digit())
}

fn number_end(bytes: &[u8], at: usize) -> usize {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let digits = |at: usize| skip(bytes, at, |byte| byte.is_ascii_digit());
    let mut end = digits(at);
    if byte(end) == b'.' && byte(end + 1) != b'.' {
        end = digits(end + 1);
    }
    if matches!(byte(end), b'e' | b'E') {
        let sign = usize::from(matches!(byte(end + 1), b'+' | b'-'));
        if byte(end + 1 + sign).is_ascii_digit() {
            end = digits(end + 1 + sign);
        }
    }
    end
}
