//! Comma-separated text (RFC 4180): a line of names, then one line per record, numbers as short as they can be
//! without losing a bit.

use std::fmt::Write as _;
use std::path::Path;

use super::array::Element;
use super::atomic::AtomicFile;
use super::error::FileError;

/// A table that is written line by line.
#[derive(Debug)]
pub struct CsvWriter {
    file: AtomicFile,
    line: String,
}

impl CsvWriter {
    /// Starts the file with the names of its columns.
    pub fn create<'a>(
        path: &Path,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, FileError> {
        let mut this = Self {
            file: AtomicFile::create(path)?,
            line: String::new(),
        };
        for name in names {
            this.separate();
            if name.contains([',', '"', '\n', '\r']) {
                let _ = write!(this.line, "\"{}\"", name.replace('"', "\"\""));
            } else {
                this.line.push_str(name);
            }
        }
        this.end_line()?;
        Ok(this)
    }

    /// Adds a number to the current line.
    pub fn number(&mut self, value: impl Element) {
        self.separate();
        self.line.push_str(&value.shortest());
    }

    /// Ends the current line.
    pub fn end_line(&mut self) -> Result<(), FileError> {
        self.line.push('\n');
        self.file.put(self.line.as_bytes())?;
        self.line.clear();
        Ok(())
    }

    /// Gives the file its final name.
    pub fn commit(self) -> Result<(), FileError> {
        self.file.commit()
    }

    fn separate(&mut self) {
        if !self.line.is_empty() {
            self.line.push(',');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_reads_as_expected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("probes.csv");
        let mut csv = CsvWriter::create(&path, ["t", "E.z", "a, \"b\""]).unwrap();
        for (t, a) in [(0.0, 0.1f32), (2.5e-17, f32::NAN)] {
            csv.number(t);
            csv.number(a);
            csv.number(-1e-30f32);
            csv.end_line().unwrap();
        }
        assert!(!path.exists());
        csv.commit().unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "t,E.z,\"a, \"\"b\"\"\"\n0,0.1,-1e-30\n2.5e-17,nan,-1e-30\n"
        );
    }
}
