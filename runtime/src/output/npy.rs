//! `.npy`, the array file of NumPy: written as version 1.0 (2.0 for long headers), little endian, C order; read in
//! any byte order, either order of axes, from float, integer and bool types. Format: NEP 1 of NumPy.

mod complex;
mod fault;
mod header;

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

pub use complex::ComplexReader;
pub use fault::{MAX_AXES, MAX_HEADER, NpyFault};
pub use header::{Dtype, Kind, NpyError, NpyHeader};

use super::array::{self, Element, ElementType, Rows, count};
use super::atomic::AtomicFile;
use super::error::{Attempt, Cause, FileError};
use super::open::open;
use crate::room::try_list;

/// Writes an array, streamed, under a temporary name until it is complete.
pub fn write<T: Element>(path: &Path, rows: &(impl Rows<T> + ?Sized)) -> Result<(), FileError> {
    let mut file = AtomicFile::create(path)?;
    let descr = format!("'{}'", Dtype::of(T::TYPE));
    file.put(&header::print(&descr, rows.shape()))?;
    array::stream(rows, |bytes| std::io::Write::write_all(&mut file, bytes))
        .map_err(FileError::io(path, Attempt::Write))?;
    file.commit()
}

/// Writes complex numbers of double precision in C order, each as its real and its imaginary part.
pub fn write_complex(
    path: &Path,
    shape: &[usize],
    numbers: impl Iterator<Item = [f64; 2]>,
) -> Result<(), FileError> {
    let mut file = AtomicFile::create(path)?;
    file.put(&header::print(&format!("'{}'", header::COMPLEX), shape))?;
    for [re, im] in numbers {
        file.put(&re.to_le_bytes())?;
        file.put(&im.to_le_bytes())?;
    }
    file.commit()
}

/// Writes records: one named column per entry of `columns`, `records` bytes as `put` writes them.
pub(super) fn write_records(
    path: &Path,
    columns: &[(&str, ElementType)],
    records: usize,
    fill: impl FnOnce(&mut AtomicFile) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let mut fields = Vec::new();
    for (name, element) in columns {
        if name.is_empty()
            || name
                .bytes()
                .any(|b| !(b' '..=b'~').contains(&b) || b"'\\".contains(&b))
        {
            let cause = Cause::Name((*name).into());
            return Err(FileError::new(path, Attempt::Write, cause));
        }
        fields.push(format!("('{name}', '{}')", Dtype::of(*element)));
    }
    let mut file = AtomicFile::create(path)?;
    file.put(&header::print(
        &format!("[{}]", fields.join(", ")),
        &[records],
    ))?;
    fill(&mut file)?;
    file.commit()
}

/// A `.npy` whose header has been read and whose length fits it.
#[derive(Debug)]
pub struct NpyReader<R> {
    source: R,
    path: PathBuf,
    header: NpyHeader,
    /// Values in the array.
    count: usize,
}

impl NpyReader<BufReader<File>> {
    /// Opens a file and reads its header only.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let file = open(path).map_err(FileError::io(path, Attempt::Open))?;
        Self::new(BufReader::with_capacity(1 << 20, file), path)
    }
}

impl<R: Read + Seek> NpyReader<R> {
    /// Reads the header from any source; `path` is for messages.
    pub fn new(mut source: R, path: &Path) -> Result<Self, FileError> {
        let io = FileError::io(path, Attempt::Read);
        let fault = |fault| FileError::new(path, Attempt::Read, Cause::Npy(fault));
        let header = match header::parse(&mut source) {
            Ok(header) => header,
            Err(NpyError::Fault(error)) => return Err(fault(error)),
            Err(NpyError::Io(error)) => return Err(io(error)),
        };
        let count = count(&header.shape).ok_or_else(|| fault(NpyFault::TooLarge))?;
        let expected = (count as u64)
            .checked_mul(header.dtype.size as u64)
            .and_then(|bytes| bytes.checked_add(header.data_start))
            .ok_or_else(|| fault(NpyFault::TooLarge))?;
        let start = header.data_start;
        let measure = |source: &mut R| {
            let found = source.seek(SeekFrom::End(0))?;
            source.seek(SeekFrom::Start(start))?;
            Ok(found)
        };
        let found = measure(&mut source).map_err(io)?;
        if found < expected {
            return Err(fault(NpyFault::Short { expected, found }));
        }
        Ok(Self {
            source,
            path: path.to_path_buf(),
            header,
            count,
        })
    }

    /// Type, order and shape.
    pub fn header(&self) -> &NpyHeader {
        &self.header
    }

    /// Passes all values to `sink` in the order of the file, converted to `T`: the index of the first value, the axis
    /// along which the others follow, and the values. In C order the axis is the last, in Fortran order the first.
    /// A single number (no axes) comes with an empty index.
    pub fn for_each_run<T: Element>(
        &mut self,
        mut sink: impl FnMut(&[usize], usize, &[T]),
    ) -> Result<(), FileError> {
        let NpyHeader {
            dtype,
            fortran_order,
            ref shape,
            data_start,
        } = self.header;
        if self.count == 0 {
            return Ok(());
        }
        let io = |error| FileError::new(&self.path, Attempt::Read, Cause::Io(error));
        self.source.seek(SeekFrom::Start(data_start)).map_err(io)?;
        // Axes from the slowest to the fastest in the file.
        let mut order: Vec<usize> = (0..shape.len()).collect();
        if fortran_order {
            order.reverse();
        }
        let stored: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
        let run_axis = order.last().copied().unwrap_or(0);
        let run = stored.last().copied().unwrap_or(1);
        let most = run.min(1 << 16);
        let mut bytes = vec![0u8; most * dtype.size];
        let mut values = vec![T::default(); most];
        let mut index = vec![0; shape.len()];
        array::for_each_row(&stored, |first| {
            for (&axis, &i) in order.iter().zip(first) {
                index[axis] = i;
            }
            let mut done = 0;
            while done < run {
                let n = (run - done).min(most);
                let bytes = &mut bytes[..n * dtype.size];
                self.source.read_exact(bytes).map_err(io)?;
                convert(dtype, bytes, &mut values[..n]);
                if let Some(i) = index.get_mut(run_axis) {
                    *i = done;
                }
                sink(&index, run_axis, &values[..n]);
                done += n;
            }
            Ok(())
        })
    }

    /// All values in C order. The file's length has been checked, so the memory is bounded by it.
    pub fn read_all<T: Element>(&mut self) -> Result<Vec<T>, FileError> {
        let shape = self.header.shape.clone();
        let mut strides = vec![1usize; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
        }
        let mut all = try_list(self.count).map_err(|_| {
            FileError::new(&self.path, Attempt::Read, Cause::Npy(NpyFault::TooLarge))
        })?;
        all.resize(self.count, T::default());
        self.for_each_run(|first, axis, values: &[T]| {
            let start: usize = first.iter().zip(&strides).map(|(i, s)| i * s).sum();
            match strides.get(axis) {
                Some(&stride) if stride > 1 => {
                    for (k, &value) in values.iter().enumerate() {
                        all[start + k * stride] = value;
                    }
                }
                _ => all[start..start + values.len()].copy_from_slice(values),
            }
        })?;
        Ok(all)
    }
}

/// Decodes stored values. Integers beyond the precision of `T` are rounded.
fn convert<T: Element>(dtype: Dtype, bytes: &[u8], values: &mut [T]) {
    if dtype == Dtype::of(T::TYPE) {
        return T::decode(bytes, values);
    }
    macro_rules! as_float {
        ($t:ty, $n:literal, $widen:expr) => {
            for (value, bytes) in values.iter_mut().zip(bytes.as_chunks::<$n>().0) {
                let stored = if dtype.big_endian {
                    <$t>::from_be_bytes(*bytes)
                } else {
                    <$t>::from_le_bytes(*bytes)
                };
                *value = T::from_f64($widen(stored));
            }
        };
    }
    match (dtype.kind, dtype.size) {
        (Kind::Float, 2) => as_float!(u16, 2, half),
        (Kind::Float, 4) => as_float!(f32, 4, f64::from),
        (Kind::Float, _) => as_float!(f64, 8, |x: f64| x),
        (Kind::Int, 1) => as_float!(i8, 1, f64::from),
        (Kind::Int, 2) => as_float!(i16, 2, f64::from),
        (Kind::Int, 4) => as_float!(i32, 4, f64::from),
        (Kind::Int, _) => as_float!(i64, 8, |x: i64| x as f64),
        (Kind::Uint, 1) => as_float!(u8, 1, f64::from),
        (Kind::Uint, 2) => as_float!(u16, 2, f64::from),
        (Kind::Uint, 4) => as_float!(u32, 4, f64::from),
        (Kind::Uint, _) => as_float!(u64, 8, |x: u64| x as f64),
        (Kind::Bool, _) => as_float!(u8, 1, |x: u8| f64::from(u8::from(x != 0))),
    }
}

/// IEEE binary16 to binary64, exactly.
fn half(bits: u16) -> f64 {
    let exponent = i32::from(bits >> 10 & 31);
    let fraction = f64::from(bits & 1023);
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests;
