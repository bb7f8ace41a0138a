//! Figures as text and as JSON.

use serde_json::{Value, json};
use std::fmt::Write;

/// The middle one of some times, and how far they spread.
#[derive(Clone, Debug)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// `None` if there are none.
    pub fn new(mut values: Vec<f64>) -> Option<Samples> {
        values.sort_by(f64::total_cmp);
        (!values.is_empty()).then_some(Samples(values))
    }

    pub fn median(&self) -> f64 {
        let n = self.0.len();
        (self.0[(n - 1) / 2] + self.0[n / 2]) / 2.0
    }

    /// Largest less smallest, as a part of the median.
    pub fn spread(&self) -> f64 {
        (self.0[self.0.len() - 1] - self.0[0]) / self.median()
    }

    pub fn sorted(&self) -> &[f64] {
        &self.0
    }
}

/// A table: a head and rows, its columns as wide as they need.
#[derive(Debug, Default)]
pub struct Table(Vec<Vec<String>>);

impl Table {
    pub fn new(head: &[&str]) -> Table {
        Table(vec![head.iter().map(|h| h.to_string()).collect()])
    }

    /// Whether there is nothing under the head.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 1
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.0.push(cells);
    }

    /// Columns of numbers stand to the right.
    pub fn text(&self) -> String {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &Vec<String>, c: usize| row.get(c).cloned().unwrap_or_default();
        let number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let mut out = String::new();
        let widths: Vec<usize> = (0..columns)
            .map(|c| self.0.iter().map(|r| cell(r, c).chars().count()).max())
            .map(|w| w.unwrap_or(0))
            .collect();
        let right: Vec<bool> = (0..columns)
            .map(|c| {
                self.0
                    .iter()
                    .skip(1)
                    .all(|r| number(&cell(r, c)) || cell(r, c) == "-")
            })
            .collect();
        for row in &self.0 {
            let mut line = String::new();
            for (c, (&width, &right)) in widths.iter().zip(&right).enumerate() {
                let text = cell(row, c);
                // Writing to a string does not fail.
                let _ = match right {
                    true => write!(line, "{text:>width$}  "),
                    false => write!(line, "{text:<width$}  "),
                };
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// All measurements, by section.
#[derive(Debug, Default)]
pub struct Report(serde_json::Map<String, Value>);

impl Report {
    pub fn set(&mut self, key: &str, value: Value) {
        self.0.insert(key.to_string(), value);
    }

    /// Adds a figure to a section.
    pub fn push(&mut self, section: &str, value: Value) {
        let list = self.0.entry(section).or_insert_with(|| json!([]));
        if let Value::Array(list) = list {
            list.push(value);
        }
    }

    pub fn json(&self) -> String {
        format!("{:#}\n", Value::Object(self.0.clone()))
    }
}

/// `256x256x256`.
pub fn domain(cells: &[i64]) -> String {
    let cells: Vec<String> = cells.iter().map(i64::to_string).collect();
    cells.join("x")
}
