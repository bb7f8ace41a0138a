//! Tables: functions of one number that are known at some points and linear between them.

use std::fmt;

/// The most points of a table.
const POINTS: usize = 1 << 22;

/// Which column of a file holds a table's values; the first one holds the arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Counted from 1.
    Number(usize),
    /// As the line of names calls it.
    Named(String),
}

/// A table. Arguments rise strictly, and all numbers are finite.
#[derive(Clone)]
pub struct Table {
    /// The file that it was read from.
    name: String,
    points: Vec<Point>,
    /// The value beyond the ends; absent: that of the nearer end.
    outside: Option<f64>,
    blocks: Extremes,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub at: f64,
    pub value: f64,
}

/// Why a text is no table.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault(pub String);

impl Table {
    /// Reads a column of a text: lines of numbers with commas, semicolons or blanks between them. Empty lines and lines
    /// that begin with `#` or `%` are skipped; the first other line may name the columns.
    pub fn read(
        name: &str,
        text: &str,
        column: &Column,
        outside: Option<f64>,
    ) -> Result<Table, Fault> {
        let mut points: Vec<Point> = Vec::new();
        let mut index = match column {
            Column::Number(n) => Some(n.saturating_sub(1)),
            Column::Named(_) => None,
        };
        let mut begun = false;
        for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', '%']) {
                continue;
            }
            let fields = fields(line);
            let first = !std::mem::replace(&mut begun, true);
            if first && are_names(&fields) {
                if let Column::Named(name) = column {
                    let names: Vec<&str> = fields.iter().map(|f| unquoted(f)).collect();
                    let mut own = (0..names.len()).filter(|n| names[*n] == name);
                    index = own.next();
                    if own.next().is_some() {
                        return Err(Fault(format!("it has several columns `{name}`")));
                    }
                    if index.is_none() {
                        let known = names.join("`, `");
                        let reason = format!("it has no column `{name}`, but `{known}`");
                        return Err(Fault(reason));
                    }
                }
                continue;
            }
            let Some(index) = index else {
                return Err(Fault("it does not begin with names of columns".to_string()));
            };
            // A record that is not due at a time of others.
            if fields
                .get(index)
                .is_some_and(|f| f.eq_ignore_ascii_case("nan"))
                && index > 0
            {
                continue;
            }
            let point = Point {
                at: field(&fields, 0, number)?,
                value: field(&fields, index, number)?,
            };
            if points.last().is_some_and(|last| last.at >= point.at) {
                let reason = format!(
                    "line {}: the argument {} does not follow the one before it",
                    number + 1,
                    point.at
                );
                return Err(Fault(reason));
            }
            if points.len() == POINTS {
                return Err(Fault(format!("it has more than {POINTS} lines")));
            }
            points.push(point);
        }
        if points.len() < 2 {
            return Err(Fault("it has fewer than two lines of numbers".to_string()));
        }
        Ok(Table {
            name: name.to_string(),
            blocks: Extremes::new(&points),
            points,
            outside,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// In ascending order of the argument; two or more.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    pub fn outside(&self) -> Option<f64> {
        self.outside
    }

    /// The value at `x`: at points exactly theirs.
    pub fn value(&self, x: f64) -> f64 {
        if x.is_nan() {
            return f64::NAN;
        }
        let above = self.points.partition_point(|p| p.at <= x);
        let (Some(low), Some(high)) = (
            above.checked_sub(1).and_then(|i| self.points.get(i)),
            self.points.get(above),
        ) else {
            let end = &self.points[above.saturating_sub(1)];
            return match self.outside {
                Some(value) if x != end.at => value,
                _ => end.value,
            };
        };
        low.value + (high.value - low.value) * ((x - low.at) / (high.at - low.at))
    }

    /// The smallest and the largest value at arguments from `lo` to `hi`.
    pub fn extremes(&self, lo: f64, hi: f64) -> [f64; 2] {
        // Beyond the ends, values are the values at `lo` or `hi`.
        let ends = join(pair(self.value(lo)), pair(self.value(hi)));
        let first = self.points.partition_point(|p| p.at < lo);
        let last = self.points.partition_point(|p| p.at <= hi);
        match first < last {
            true => join(ends, self.blocks.within(&self.points, first, last)),
            false => ends,
        }
    }

    /// A number that differs for tables that differ (FNV-1a over all bits).
    fn fingerprint(&self) -> u64 {
        // A value outside of the points differs from none, also if it is 0.
        let outside = match self.outside {
            None => vec![0],
            Some(value) => vec![1, value.to_bits()],
        };
        let points = self
            .points
            .iter()
            .flat_map(|p| [p.at.to_bits(), p.value.to_bits()]);
        points
            .chain(outside)
            .fold(0xcbf2_9ce4_8422_2325, |hash, word| {
                word.to_le_bytes().iter().fold(hash, |h, b| {
                    (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3)
                })
            })
    }
}

/// Points whose extremes are kept together.
const BLOCK: usize = 64;

/// The smallest and the largest value of blocks of points, of pairs of blocks, of pairs of these, and so on: of node n
/// in nodes 2n and 2n + 1. Node 1 has all; block b is the node half way through the list plus b.
#[derive(Clone)]
struct Extremes(Vec<[f64; 2]>);

impl Extremes {
    fn new(points: &[Point]) -> Self {
        let blocks = points.chunks(BLOCK).map(of_points);
        let count = blocks.len();
        let mut nodes = vec![NOTHING; count];
        nodes.extend(blocks);
        for n in (1..count).rev() {
            nodes[n] = join(nodes[2 * n], nodes[2 * n + 1]);
        }
        Self(nodes)
    }

    /// The range of the points from `first` up to the one before `last`.
    fn within(&self, points: &[Point], first: usize, last: usize) -> [f64; 2] {
        let (mut low, mut high) = (first.div_ceil(BLOCK), last / BLOCK);
        if low >= high {
            return of_points(&points[first..last]);
        }
        let before = of_points(&points[first..low * BLOCK]);
        let mut found = join(before, of_points(&points[high * BLOCK..last]));
        let count = self.0.len() / 2;
        (low, high) = (low + count, high + count);
        while low < high {
            if low % 2 == 1 {
                found = join(found, self.0[low]);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                found = join(found, self.0[high]);
            }
            (low, high) = (low / 2, high / 2);
        }
        found
    }
}

/// The extremes of no values.
const NOTHING: [f64; 2] = [f64::INFINITY, f64::NEG_INFINITY];

fn pair(value: f64) -> [f64; 2] {
    [value; 2]
}

fn join(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0].min(b[0]), a[1].max(b[1])]
}

fn of_points(points: &[Point]) -> [f64; 2] {
    let values = points.iter().map(|p| pair(p.value));
    values.fold(NOTHING, join)
}

/// Tables are equal if they have the same values, wherever these come from.
impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        self.points == other.points && self.outside == other.outside
    }
}

/// Name and fingerprint, so that texts that stand for a calculation change with the values.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table({:?} {:016x})", self.name, self.fingerprint())
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn fields(line: &str) -> Vec<&str> {
    if begins_with_quotes(line) && line.matches('"').count().is_multiple_of(2) {
        return quoted_fields(line);
    }
    match [';', ','].into_iter().find(|c| line.contains(*c)) {
        Some(separator) => line.split(separator).map(str::trim).collect(),
        None => line.split_whitespace().collect(),
    }
}

/// Whether some field of a line begins with quotes. Others may be signs of inches.
fn begins_with_quotes(line: &str) -> bool {
    let mut begins = true;
    line.chars().any(|c| {
        let opens = begins && c == '"';
        begins = c == ',' || c == ';' || c.is_whitespace();
        opens
    })
}

/// The fields of a line with pairs of quotes: separators within them belong to a name.
fn quoted_fields(line: &str) -> Vec<&str> {
    let mut within = false;
    // Whether a character lies outside of quotes; asked from the first to the last one.
    let mut outside = |c: char| {
        within ^= c == '"';
        !within
    };
    let open: String = line.chars().filter(|c| outside(*c)).collect();
    match [';', ','].into_iter().find(|c| open.contains(*c)) {
        Some(separator) => {
            let fields = line.split(|c| outside(c) && c == separator);
            fields.map(str::trim).collect()
        }
        None => {
            let fields = line.split(|c: char| outside(c) && c.is_whitespace());
            fields.filter(|field| !field.is_empty()).collect()
        }
    }
}

/// A name without the quotes around it that some programs write.
fn unquoted(field: &str) -> &str {
    let inner = field.strip_prefix('"').and_then(|f| f.strip_suffix('"'));
    inner.unwrap_or(field)
}

/// Whether the fields of a first line are names. Fields that cannot be read beside a number are none, and neither are
/// fields that all begin like numbers.
fn are_names(fields: &[&str]) -> bool {
    let is_number = |field: &&str| field.parse::<f64>().is_ok();
    let begins_like_one =
        |field: &&str| field.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    !fields.iter().any(is_number) && !fields.iter().all(begins_like_one)
}

fn field(fields: &[&str], index: usize, line: usize) -> Result<f64, Fault> {
    let line = line + 1;
    let Some(text) = fields.get(index) else {
        let reason = format!("line {line} has no column {}", index + 1);
        return Err(Fault(reason));
    };
    match text.parse::<f64>() {
        Ok(n) if n.is_finite() => Ok(n),
        _ => {
            let shown: String = text.chars().take(32).collect();
            Err(Fault(format!("line {line}: `{shown}` is no finite number")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distinct::distinct;

    fn read(text: &str, column: Column, outside: Option<f64>) -> Result<Table, Fault> {
        Table::read("wave.csv", text, &column, outside)
    }

    #[test]
    fn values_are_linear_between_points() {
        let text = "\u{feff}# measured\n t, a, b\n\n0, 1, -1\n0.5, 3, -2\r\n2, 0, 5e-1\n";
        let a = read(text, Column::Number(2), None).expect("a table");
        let b = read(text, Column::Named("b".to_string()), Some(9.0)).expect("a table");
        let values = |t: &Table| [-1.0, 0.0, 0.25, 0.5, 1.25, 2.0, 3.0].map(|x| t.value(x));
        assert_eq!(values(&a), [1.0, 1.0, 2.0, 3.0, 1.5, 0.0, 0.0]);
        assert_eq!(values(&b), [9.0, -1.0, -1.5, -2.0, -0.75, 0.5, 9.0]);
        assert!(a.value(f64::NAN).is_nan());
        assert_eq!(a.value(f64::INFINITY), 0.0);
        let blanks = read("0 1\n1\t  2", Column::Number(2), None).expect("a table");
        assert_eq!(blanks.value(0.5), 1.5);
        let gaps = "t,a,b\n0,1,nan\n1,2,5\n2,3,NaN\n3,4,7\n";
        let gaps = read(gaps, Column::Named("b".to_string()), None).expect("a table");
        assert_eq!([1.0, 2.0, 3.0].map(|x| gaps.value(x)), [5.0, 6.0, 7.0]);
        let semicolons = read("0;5\n1;6", Column::Number(2), None).expect("a table");
        assert_eq!(semicolons.value(1.0), 6.0);
    }

    #[test]
    fn extremes_are_those_of_all_values() {
        let mut rng = crate::testing::Rng::new(3);
        for count in [2, 5, 63, 64, 65, 128, 300, 1000] {
            let values: Vec<f64> = (0..count).map(|_| rng.float()).collect();
            let lines = values.iter().enumerate();
            let text: String = lines.map(|(i, v)| format!("{i}, {v}\n")).collect();
            for outside in [None, Some(0.5), Some(7.0)] {
                let table = read(&text, Column::Number(2), outside).expect("a table");
                for _ in 0..200 {
                    let mut end = || rng.float() * (count + 4) as f64 - 2.0;
                    let (a, b) = (end(), end());
                    let (lo, hi) = (a.min(b), a.max(b));
                    let inside = (0..count)
                        .map(|i| i as f64)
                        .filter(|x| lo <= *x && *x <= hi);
                    let all: Vec<f64> = inside.chain([lo, hi]).map(|x| table.value(x)).collect();
                    let smallest = all.iter().copied().fold(f64::INFINITY, f64::min);
                    let largest = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    assert_eq!(table.extremes(lo, hi), [smallest, largest], "{lo} {hi}");
                }
            }
        }
    }

    #[test]
    fn fingerprints_tell_values_apart() {
        let table = |text: &str| {
            read(text, Column::Number(2), None)
                .expect("a table")
                .to_string()
        };
        assert_eq!(table("0 1\n1 2"), table("0, 1\n1, 2"));
        assert_ne!(table("0 1\n1 2"), table("0 1\n1 2.0000001"));
        assert_ne!(table("0 1\n1 2"), table("0 1\n1 2\n2 2"));
        let outside = [None, Some(0.0), Some(1.0)].map(|outside| {
            let table = read("0 1\n1 2", Column::Number(2), outside);
            table.expect("a table").to_string()
        });
        assert_eq!(distinct(outside).len(), 3);
    }

    #[test]
    fn faults_have_reasons() {
        let reason = |text: &str, column| read(text, column, None).expect_err("no table").0;
        let second = || Column::Number(2);
        assert_eq!(
            reason("", second()),
            "it has fewer than two lines of numbers"
        );
        assert_eq!(
            reason("1 2\n", second()),
            "it has fewer than two lines of numbers"
        );
        assert_eq!(reason("0 1\n1", second()), "line 2 has no column 2");
        assert_eq!(
            reason("0 1\n1 x", second()),
            "line 2: `x` is no finite number"
        );
        assert_eq!(
            reason("1d3 0.5\n2e3 1\n3e3 2", second()),
            "line 1: `1d3` is no finite number"
        );
        for text in ["O,1\n1,2\n2,3", " ,1\n1,2\n2,3"] {
            assert!(reason(text, second()).starts_with("line 1: "), "{text}");
        }
        assert_eq!(
            reason("t,a,a\n0,1,2\n1,2,3", Column::Named("a".to_string())),
            "it has several columns `a`"
        );
        assert!(read("2theta I\n0 1\n1 2", second(), None).is_ok());
        assert_eq!(
            reason("0,5;1,5\n1;2\n2;3", second()),
            "line 1: `0,5` is no finite number"
        );
        let quoted = Column::Named("u v".to_string());
        assert!(read("\"t\",\"u v\"\n0,1\n1,2", quoted, None).is_ok());
        for header in ["\"t\",\"u, v\"", "\"t\" ;\"u, v\"", "\"t\" \"u, v\""] {
            let quoted = Column::Named("u, v".to_string());
            let lines = match header.contains(';') {
                true => "0;1\n1;2",
                false => "0,1\n1,2",
            };
            let table = read(&format!("{header}\n{lines}"), quoted, None).expect("a table");
            assert_eq!(table.value(1.0), 2.0);
        }
        // One quote opens none.
        let inch = Column::Named("v\"".to_string());
        assert!(read("t, v\"\n0, 1\n1, 2", inch, None).is_ok());
        let named = Column::Named("v".to_string());
        assert!(read("time 5\", v, width 3\"\n0, 1, 2\n1, 2, 3", named, None).is_ok());
        assert_eq!(
            reason("0 1\n\n1 inf", second()),
            "line 3: `inf` is no finite number"
        );
        assert_eq!(
            reason("0 1\n0 2", second()),
            "line 2: the argument 0 does not follow the one before it"
        );
        assert_eq!(
            reason("t a\n0 1\n1 2", Column::Named("b".to_string())),
            "it has no column `b`, but `t`, `a`"
        );
        assert_eq!(
            reason("0 1\n1 2", Column::Named("b".to_string())),
            "it does not begin with names of columns"
        );
    }
}
