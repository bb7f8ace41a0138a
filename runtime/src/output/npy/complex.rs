//! Complex numbers of double precision, as they were written.

use super::header::{self, NpyError};
use super::{FileError, NpyFault};
use crate::output::error::{Attempt, Cause};
use crate::output::open::open;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A `.npy` of complex numbers in C order, read part by part along its first axis.
#[derive(Debug)]
pub struct ComplexReader {
    source: BufReader<File>,
    path: PathBuf,
    /// Bytes before the first number.
    start: u64,
    /// Numbers with the same first index.
    each: usize,
}

impl ComplexReader {
    /// Opens a file of some shape.
    pub fn open(path: &Path, shape: &[usize]) -> Result<Self, FileError> {
        let refuse = |cause| FileError::new(path, Attempt::Read, cause);
        let file = open(path).map_err(FileError::io(path, Attempt::Open))?;
        let length = file
            .metadata()
            .map_err(FileError::io(path, Attempt::Read))?;
        let mut source = BufReader::with_capacity(1 << 20, file);
        let (found, start) = match header::parse_complex(&mut source) {
            Ok(header) => header,
            Err(NpyError::Fault(fault)) => return Err(refuse(Cause::Npy(fault))),
            Err(NpyError::Io(error)) => return Err(refuse(Cause::Io(error))),
        };
        if found != shape {
            return Err(refuse(Cause::Shape {
                expected: shape.to_vec(),
                found,
            }));
        }
        let bytes = shape
            .iter()
            .fold(16u64, |n, length| n.saturating_mul(*length as u64));
        let (expected, found) = (bytes.saturating_add(start), length.len());
        if found < expected {
            return Err(refuse(Cause::Npy(NpyFault::Short { expected, found })));
        }
        Ok(Self {
            source,
            path: path.to_owned(),
            start,
            each: shape.iter().skip(1).product(),
        })
    }

    /// The moduli of the numbers with a first index.
    pub fn moduli(&mut self, index: usize) -> Result<Vec<f64>, FileError> {
        let io = |error| FileError::new(&self.path, Attempt::Read, Cause::Io(error));
        let mut bytes = vec![0; 16 * self.each];
        let at = self.start + index as u64 * bytes.len() as u64;
        self.source.seek(SeekFrom::Start(at)).map_err(io)?;
        self.source.read_exact(&mut bytes).map_err(io)?;
        let (parts, _) = bytes.as_chunks::<8>();
        let (numbers, _) = parts.as_chunks::<2>();
        let modulus =
            |[re, im]: &[[u8; 8]; 2]| f64::from_le_bytes(*re).hypot(f64::from_le_bytes(*im));
        Ok(numbers.iter().map(modulus).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{write, write_complex};
    use super::*;
    use crate::output::View;

    #[test]
    fn moduli_are_read_part_by_part() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let numbers = (0..12).map(|n| [3.0 * f64::from(n), -4.0 * f64::from(n)]);
        write_complex(&path, &[3, 2, 2], numbers).unwrap();
        let mut reader = ComplexReader::open(&path, &[3, 2, 2]).unwrap();
        assert_eq!(reader.moduli(2).unwrap(), [40.0, 45.0, 50.0, 55.0]);
        assert_eq!(reader.moduli(0).unwrap(), [0.0, 5.0, 10.0, 15.0]);
        for shape in [&[3, 4][..], &[3, 2, 3], &[]] {
            ComplexReader::open(&path, shape).unwrap_err();
        }
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        ComplexReader::open(&path, &[3, 2, 2]).unwrap_err();
        write(&path, &View::line(&[1.0f64; 3])).unwrap();
        ComplexReader::open(&path, &[3]).unwrap_err();
    }
}
