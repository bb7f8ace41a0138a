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
    /// Reads a column of a text: lines of numbers with commas, semicolons or blanks between them. Empty lines and those that begin
    /// with `#` or `%` are skipped; the first other line may name the columns.
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
            if first && fields[0].parse::<f64>().is_err() {
                if let Column::Named(name) = column {
                    index = fields.iter().position(|f| f == name);
                    if index.is_none() {
                        let known = fields.join("`, `");
                        let reason = format!("it has no column `{name}`, but `{known}`");
                        return Err(Fault(reason));
                    }
                }
                continue;
            }
            let Some(index) = index else {
                return Err(Fault("it does not begin with names of columns".to_string()));
            };
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

    /// A number that differs for tables that differ (FNV-1a over all bits).
    fn fingerprint(&self) -> u64 {
        let outside = [self.outside.map_or(0, f64::to_bits)];
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
    match [';', ','].into_iter().find(|c| line.contains(*c)) {
        Some(separator) => line.split(separator).map(str::trim).collect(),
        None => line.split_whitespace().collect(),
    }
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
        let semicolons = read("0;5\n1;6", Column::Number(2), None).expect("a table");
        assert_eq!(semicolons.value(1.0), 6.0);
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
