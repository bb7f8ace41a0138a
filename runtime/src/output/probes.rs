//! Probes over time as a table: one record per step with the time and each probe's value.

use std::path::Path;

use super::array::{Element, ElementType};
use super::csv::CsvWriter;
use super::error::FileError;
use super::npy;

/// A record of several values over time.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeTable<T> {
    /// Name of the column of times.
    pub time_name: String,
    /// Names of the other columns.
    pub names: Vec<String>,
    times: Vec<f64>,
    /// One record after the other.
    values: Vec<T>,
}

impl<T: Element> ProbeTable<T> {
    /// An empty table.
    pub fn new(time_name: impl Into<String>, names: Vec<String>) -> Self {
        Self {
            time_name: time_name.into(),
            names,
            times: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Adds a record. False, and nothing is added, unless there is one value per name.
    #[must_use]
    pub fn push(&mut self, time: f64, values: &[T]) -> bool {
        let fits = values.len() == self.names.len();
        if fits {
            self.times.push(time);
            self.values.extend_from_slice(values);
        }
        fits
    }

    /// The times of the records.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// The values of one record, by its number.
    pub fn record(&self, index: usize) -> Option<&[T]> {
        let n = self.names.len();
        let start = index.checked_mul(n).filter(|_| index < self.times.len())?;
        self.values.get(start..start + n)
    }

    /// The values of one column over time.
    pub fn column(&self, column: usize) -> impl Iterator<Item = T> + '_ {
        let n = self.names.len();
        let skip = if column < n {
            column
        } else {
            self.values.len()
        };
        self.values.iter().skip(skip).step_by(n.max(1)).copied()
    }

    /// Writes comma-separated text.
    pub fn write_csv(&self, path: &Path) -> Result<(), FileError> {
        let names = std::iter::once(&self.time_name).chain(&self.names);
        let mut csv = CsvWriter::create(path, names.map(String::as_str))?;
        for (i, &time) in self.times.iter().enumerate() {
            csv.number(time);
            for &value in self.record(i).unwrap_or_default() {
                csv.number(value);
            }
            csv.end_line()?;
        }
        csv.commit()
    }

    /// Writes a structured `.npy`: `p = numpy.load(path)`, then `p["t"]` and `p["name"]`. Times are `f64`.
    pub fn write_npy(&self, path: &Path) -> Result<(), FileError> {
        let mut columns = vec![(self.time_name.as_str(), ElementType::F64)];
        columns.extend(self.names.iter().map(|name| (name.as_str(), T::TYPE)));
        npy::write_records(path, &columns, self.times.len(), |file| {
            let mut bytes = vec![0; 8 + self.names.len() * T::TYPE.size()];
            for (i, &time) in self.times.iter().enumerate() {
                let (head, tail) = bytes.split_at_mut(8);
                f64::encode(&[time], head);
                T::encode(self.record(i).unwrap_or_default(), tail);
                file.put(&bytes)?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Cause;

    #[test]
    fn both_formats_hold_every_record() {
        let folder = tempfile::tempdir().unwrap();
        let mut table = ProbeTable::new("t", vec!["a".into(), "E.z (1 2)".into()]);
        assert!(table.push(0.0, &[1.0f32, -1.0]) && table.push(0.5, &[2.0, f32::INFINITY]));
        assert!(!table.push(1.0, &[0.0]));
        assert_eq!(table.record(1), Some(&[2.0, f32::INFINITY][..]));
        assert_eq!((table.record(2), table.times().len()), (None, 2));
        assert!(table.column(0).eq([1.0, 2.0]) && table.column(2).next().is_none());

        let csv = folder.path().join("probes.csv");
        table.write_csv(&csv).unwrap();
        let text = std::fs::read_to_string(csv).unwrap();
        assert_eq!(text, "t,a,E.z (1 2)\n0,1,-1\n0.5,2,inf\n");

        let path = folder.path().join("probes.npy");
        table.write_npy(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes[..128]);
        assert!(
            text.contains("'descr': [('t', '<f8'), ('a', '<f4'), ('E.z (1 2)', '<f4')]"),
            "{text}"
        );
        assert!(text.contains("'shape': (2,)"));
        let mut data = Vec::new();
        for (t, a, b) in [(0.0f64, 1.0f32, -1.0f32), (0.5, 2.0, f32::INFINITY)] {
            data.extend(t.to_le_bytes());
            data.extend(a.to_le_bytes());
            data.extend(b.to_le_bytes());
        }
        assert!(bytes.len().is_multiple_of(32) && bytes.ends_with(&data));

        table.names[0] = "it's".into();
        let refused = table.write_npy(&path).unwrap_err();
        assert!(matches!(refused.cause, Cause::Name(name) if name == "it's"));
    }
}
