//! The header of `.npy`: a magic number, a version, a length and a Python dictionary
//! (NEP 1, "A simple file format for NumPy arrays"; versions 1.0, 2.0 and 3.0).

use std::fmt;
use std::io::{self, Read};

use super::fault::{MAX_AXES, MAX_HEADER, NpyFault};
use crate::output::array::ElementType;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The header of a file: its description of the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyHeader {
    /// Type of the stored values.
    pub dtype: Dtype,
    /// Whether the first axis is the contiguous one, rather than the last.
    pub fortran_order: bool,
    /// Values per axis; empty for a single number.
    pub shape: Vec<usize>,
    /// Bytes before the first value.
    pub data_start: u64,
}

/// Type of the stored values, with their byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dtype {
    /// The meaning of the bytes.
    pub kind: Kind,
    /// Bytes of one value: 1, 2, 4 or 8.
    pub size: usize,
    /// Most significant byte first.
    pub big_endian: bool,
}

/// The meaning of the bytes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// IEEE binary16, 32 or 64.
    Float,
    /// Two's complement.
    Int,
    /// Unsigned.
    Uint,
    /// One byte, 0 or 1.
    Bool,
}

impl Dtype {
    /// Little-endian `f4` or `f8`, as Torre writes.
    pub const fn of(element: ElementType) -> Self {
        Self {
            kind: Kind::Float,
            size: element.size(),
            big_endian: false,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (order, rest) = match text.as_bytes().first()? {
            b'<' | b'>' | b'|' | b'=' => text.split_at(1),
            _ => ("=", text),
        };
        let (kind, size) = match rest {
            "f2" => (Kind::Float, 2),
            "f4" => (Kind::Float, 4),
            "f8" => (Kind::Float, 8),
            "i1" => (Kind::Int, 1),
            "i2" => (Kind::Int, 2),
            "i4" => (Kind::Int, 4),
            "i8" => (Kind::Int, 8),
            "u1" => (Kind::Uint, 1),
            "u2" => (Kind::Uint, 2),
            "u4" => (Kind::Uint, 4),
            "u8" => (Kind::Uint, 8),
            "b1" | "?" => (Kind::Bool, 1),
            _ => return None,
        };
        // `|` says that there is no order, `=` that it is the machine's; the files of others' machines are
        // taken as little endian.
        if order == "|" && size > 1 {
            return None;
        }
        Some(Self {
            kind,
            size,
            big_endian: order == ">" && size > 1,
        })
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match (self.size, self.big_endian) {
            (1, _) => '|',
            (_, true) => '>',
            (_, false) => '<',
        };
        let kind = match self.kind {
            Kind::Float => 'f',
            Kind::Int => 'i',
            Kind::Uint => 'u',
            Kind::Bool => 'b',
        };
        write!(f, "{order}{kind}{}", self.size)
    }
}

/// The bytes of a header for `descr` (a Python expression) and `shape`: version 1.0, or 2.0 where the length needs
/// it, padded so that the values start at a multiple of 64.
pub fn print(descr: &str, shape: &[usize]) -> Vec<u8> {
    let mut axes = String::new();
    for length in shape {
        axes.push_str(&format!("{length}, "));
    }
    // `(3,)` but `(3, 4)`, as Python prints tuples.
    let axes = match shape.len() {
        1 => axes.trim_end(),
        _ => axes.trim_end_matches(", "),
    };
    let dictionary = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ({axes}), }}");
    let long = dictionary.len() + 64 + 10 > u16::MAX as usize;
    let fixed = if long { 12 } else { 10 };
    let total = (fixed + dictionary.len() + 1).next_multiple_of(64);
    let length = total - fixed;
    let mut bytes = MAGIC.to_vec();
    if long {
        bytes.extend([2, 0]);
        bytes.extend((length as u32).to_le_bytes());
    } else {
        bytes.extend([1, 0]);
        bytes.extend((length as u16).to_le_bytes());
    }
    bytes.extend(dictionary.as_bytes());
    bytes.resize(total - 1, b' ');
    bytes.push(b'\n');
    bytes
}

/// The type of complex numbers, as Torre writes them.
pub const COMPLEX: &str = "<c16";

/// Reads a header and nothing behind it.
pub fn parse(source: &mut impl Read) -> Result<NpyHeader, NpyError> {
    let Described {
        descr,
        fortran_order,
        shape,
        data_start,
    } = described(source)?;
    let dtype = match descr {
        Descr::Plain(text) => Dtype::parse(&text).ok_or(NpyFault::Dtype(text))?,
        Descr::Structured => return Err(NpyFault::Structured.into()),
    };
    Ok(NpyHeader {
        dtype,
        fortran_order,
        shape,
        data_start,
    })
}

/// The same of complex numbers in C order: their shape, and the bytes before the first one.
pub fn parse_complex(source: &mut impl Read) -> Result<(Vec<usize>, u64), NpyError> {
    let found = described(source)?;
    match found.descr {
        Descr::Plain(text) if text != COMPLEX => Err(NpyFault::Dtype(text).into()),
        Descr::Plain(_) if !found.fortran_order => Ok((found.shape, found.data_start)),
        Descr::Plain(_) => Err(NpyFault::Key("fortran_order".to_owned()).into()),
        Descr::Structured => Err(NpyFault::Structured.into()),
    }
}

/// A header of whichever type.
struct Described {
    descr: Descr,
    fortran_order: bool,
    shape: Vec<usize>,
    data_start: u64,
}

fn described(source: &mut impl Read) -> Result<Described, NpyError> {
    let mut start = Vec::new();
    let read = source.by_ref().take(8).read_to_end(&mut start);
    read.map_err(NpyError::Io)?;
    let is_cut_short = start.len() < MAGIC.len() && MAGIC.starts_with(&start);
    if !start.starts_with(MAGIC) && !is_cut_short {
        return Err(NpyFault::Magic.into());
    }
    if start.len() < 8 {
        return Err(NpyFault::HeaderEnds.into());
    }
    let (length, fixed) = match (start[6], start[7]) {
        (1, 0) => {
            let mut bytes = [0u8; 2];
            fill(source, &mut bytes)?;
            (u16::from_le_bytes(bytes) as usize, 10)
        }
        (2 | 3, 0) => {
            let mut bytes = [0u8; 4];
            fill(source, &mut bytes)?;
            (u32::from_le_bytes(bytes) as usize, 12)
        }
        (major, minor) => return Err(NpyFault::Version(major, minor).into()),
    };
    if length > MAX_HEADER {
        return Err(NpyFault::HeaderLength(length).into());
    }
    let mut text = vec![0u8; length];
    fill(source, &mut text)?;
    let (descr, fortran_order, shape) = Dictionary::parse(&text)?;
    Ok(Described {
        descr,
        fortran_order,
        shape,
        data_start: (fixed + length) as u64,
    })
}

/// A fault of the content, or of the source of bytes.
#[derive(Debug)]
pub enum NpyError {
    /// The content is no array that can be read.
    Fault(NpyFault),
    /// Reading failed.
    Io(io::Error),
}

impl From<NpyFault> for NpyError {
    fn from(fault: NpyFault) -> Self {
        Self::Fault(fault)
    }
}

fn fill(source: &mut impl Read, bytes: &mut [u8]) -> Result<(), NpyError> {
    source
        .read_exact(bytes)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => NpyFault::HeaderEnds.into(),
            _ => NpyError::Io(error),
        })
}

enum Descr {
    Plain(String),
    Structured,
}

/// Reads the one form of Python dictionary that a header may have: the three keys in any order, strings without
/// escapes, `True` and `False`, a tuple of whole numbers.
struct Dictionary<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Dictionary<'a> {
    fn parse(text: &'a [u8]) -> Result<(Descr, bool, Vec<usize>), NpyFault> {
        let mut this = Self { text, at: 0 };
        let (mut descr, mut order, mut shape) = (None, None, None);
        this.expect(b'{', "{")?;
        while !this.take(b'}') {
            let key = this.string()?;
            this.expect(b':', ":")?;
            let again = match key {
                "descr" => descr.replace(this.descr()?).is_some(),
                "fortran_order" => order.replace(this.boolean()?).is_some(),
                "shape" => shape.replace(this.shape()?).is_some(),
                _ => return Err(NpyFault::Key(key.into())),
            };
            if again {
                return Err(NpyFault::Key(key.into()));
            }
            if !this.take(b',') {
                this.expect(b'}', "}")?;
                break;
            }
        }
        this.skip_space();
        if this.at != text.len() {
            return Err(this.unexpected("the end of the header"));
        }
        match (descr, order, shape) {
            (Some(descr), Some(order), Some(shape)) => Ok((descr, order, shape)),
            (None, ..) => Err(NpyFault::Missing("descr")),
            (_, None, _) => Err(NpyFault::Missing("fortran_order")),
            _ => Err(NpyFault::Missing("shape")),
        }
    }

    fn skip_space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), NpyFault> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.unexpected(expected))
        }
    }

    fn unexpected(&self, expected: &'static str) -> NpyFault {
        NpyFault::Syntax {
            at: self.at,
            expected,
        }
    }

    fn string(&mut self) -> Result<&'a str, NpyFault> {
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => quote,
            _ => return Err(self.unexpected("a string")),
        };
        let rest = &self.text[self.at + 1..];
        let end = rest.iter().position(|&b| b == quote);
        let content = end.and_then(|end| std::str::from_utf8(&rest[..end]).ok());
        match content {
            Some(content) if !content.contains('\\') => {
                self.at += content.len() + 2;
                Ok(content)
            }
            _ => Err(self.unexpected("a string")),
        }
    }

    fn descr(&mut self) -> Result<Descr, NpyFault> {
        if self.peek() != Some(b'[') {
            return Ok(Descr::Plain(self.string()?.into()));
        }
        // A structured type is only recognised, so that the error can say it.
        let mut depth = 0usize;
        loop {
            match self.peek() {
                Some(b'\'' | b'"') => {
                    self.string()?;
                    continue;
                }
                Some(b'[' | b'(') => depth += 1,
                Some(b']' | b')') => depth -= 1,
                Some(b',' | b'0'..=b'9') => {}
                _ => return Err(self.unexpected("a type")),
            }
            self.at += 1;
            if depth == 0 {
                return Ok(Descr::Structured);
            }
        }
    }

    fn boolean(&mut self) -> Result<bool, NpyFault> {
        self.skip_space();
        for (word, value) in [("True", true), ("False", false)] {
            if self.text[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.unexpected("True or False"))
    }

    fn shape(&mut self) -> Result<Vec<usize>, NpyFault> {
        self.expect(b'(', "(")?;
        let mut shape = Vec::new();
        while !self.take(b')') {
            shape.push(self.number()?);
            if shape.len() > MAX_AXES {
                return Err(NpyFault::Axes(shape.len()));
            }
            if !self.take(b',') {
                self.expect(b')', ")")?;
                break;
            }
        }
        Ok(shape)
    }

    fn number(&mut self) -> Result<usize, NpyFault> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let value = std::str::from_utf8(&rest[..digits])
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| self.unexpected("a length that fits the machine"))?;
        self.at += digits;
        // Python 2 wrote long integers with an `L`.
        if self.text.get(self.at) == Some(&b'L') {
            self.at += 1;
        }
        Ok(value)
    }
}
