//! Checkpoints: one file with the state of a run, complete and checked or refused.
//!
//! ```text
//! "TORRECKP", version (u32), length of the header (u32), XXH64 of the header (u64)
//! header: JSON with the hashes of scheme and problem, the step, the precision, the arrays and notes
//! zeros up to a multiple of 64; then for each array its values in C order and zeros up to a multiple of 64
//! XXH64 of each array's values (u64 each)
//! ```
//! All numbers are little endian. It is one file, so that a newer checkpoint replaces an older one in one step.

mod fault;

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

pub use fault::{CheckpointFault, VERSION};

use super::array::{self, AnyRows, Element, ElementType, count};
use super::atomic::AtomicFile;
use super::checksum::Xxh64;
use super::error::{Attempt, Cause, FileError};
use super::open::open;

const MAGIC: &[u8; 8] = b"TORRECKP";
/// Headers longer than this are refused.
const MAX_HEADER: usize = 1 << 24;
const FIXED: usize = 24;

/// Which calculation a checkpoint belongs to. Hashes are texts of the caller's choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Hash of the scheme with its parameters.
    pub scheme: String,
    /// Hash of the problem, without the number of steps and the outputs.
    pub problem: String,
    /// Precision of the fields.
    pub precision: ElementType,
}

/// The header of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointHeader {
    /// Which calculation it belongs to.
    pub identity: Identity,
    /// Steps that are done.
    pub step: u64,
    /// Its arrays, in the order of the file.
    pub arrays: Vec<ArrayEntry>,
    /// Anything else that the writer wants back.
    pub notes: Map<String, Value>,
}

/// One array of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayEntry {
    /// Its name, unique in the file.
    pub name: String,
    /// Type of its values.
    pub element: ElementType,
    /// Values per axis, C order.
    pub shape: Vec<usize>,
}

/// The name of the record of a probe.
pub fn probe_name(index: usize) -> String {
    format!("probe {index}")
}

/// Writes a checkpoint. Array names must be unique.
pub fn write(
    path: &Path,
    identity: &Identity,
    step: u64,
    notes: &Map<String, Value>,
    arrays: &[(&str, AnyRows<'_>)],
) -> Result<(), FileError> {
    let mut entries = Vec::new();
    for (i, (name, rows)) in arrays.iter().enumerate() {
        if arrays[..i].iter().any(|(other, _)| other == name) {
            let cause = Cause::Name((*name).into());
            return Err(FileError::new(path, Attempt::Write, cause));
        }
        entries.push(json!({
            "name": name,
            "type": rows.element().name(),
            "shape": rows.shape(),
        }));
    }
    let header = json!({
        "format": "torre checkpoint",
        "scheme": identity.scheme,
        "problem": identity.problem,
        "precision": identity.precision.name(),
        "step": step,
        "arrays": entries,
        "notes": notes,
    });
    let header = header.to_string();
    let length = u32::try_from(header.len())
        .ok()
        .filter(|&length| length as usize <= MAX_HEADER)
        .ok_or_else(|| {
            let error = io::Error::other("the header is too long");
            FileError::io(path, Attempt::Write)(error)
        })?;

    let mut file = AtomicFile::create(path)?;
    file.put(MAGIC)?;
    file.put(&VERSION.to_le_bytes())?;
    file.put(&length.to_le_bytes())?;
    file.put(&Xxh64::of(header.as_bytes()).to_le_bytes())?;
    file.put(header.as_bytes())?;
    file.put(&[0; 64][..padding(FIXED as u64 + u64::from(length))])?;
    let mut sums = Vec::new();
    for (_, rows) in arrays {
        let mut sum = Xxh64::default();
        let mut bytes = 0;
        let mut sink = |block: &[u8]| {
            sum.update(block);
            bytes += block.len() as u64;
            file.write_all(block)
        };
        rows.stream(&mut sink)
            .map_err(FileError::io(path, Attempt::Write))?;
        file.put(&[0; 64][..padding(bytes)])?;
        sums.extend(sum.value().to_le_bytes());
    }
    file.put(&sums)?;
    file.commit()
}

/// A checkpoint whose header has been read and checked and whose length fits it.
#[derive(Debug)]
pub struct Checkpoint<R = BufReader<File>> {
    source: R,
    path: PathBuf,
    header: CheckpointHeader,
    /// First byte of each array; one more for the checksums.
    starts: Vec<u64>,
}

impl Checkpoint {
    /// Opens a file and checks everything but the values.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let file = open(path).map_err(FileError::io(path, Attempt::Open))?;
        Self::of_file(file, path)
    }

    /// Reads a file that is open from its beginning on; `path` is for messages.
    fn of_file(mut file: File, path: &Path) -> Result<Self, FileError> {
        file.rewind().map_err(FileError::io(path, Attempt::Read))?;
        Self::new(BufReader::with_capacity(1 << 16, file), path)
    }

    /// The same file once more, from its beginning on, also where another one has its name by now. Only one of both is
    /// read at a time.
    pub fn again(&self) -> Result<Self, FileError> {
        let file = self.source.get_ref().try_clone();
        let file = file.map_err(FileError::io(&self.path, Attempt::Open))?;
        Self::of_file(file, &self.path)
    }
}

impl<R: Read + Seek> Checkpoint<R> {
    /// Reads from any source; `path` is for messages.
    pub fn new(mut source: R, path: &Path) -> Result<Self, FileError> {
        let refuse = |fault| FileError::new(path, Attempt::Read, Cause::Checkpoint(fault));
        let mut fixed = [0; FIXED];
        let mut fill = |bytes: &mut [u8], fault| {
            source
                .read_exact(bytes)
                .map_err(|error| match error.kind() {
                    io::ErrorKind::UnexpectedEof => refuse(fault),
                    _ => FileError::io(path, Attempt::Read)(error),
                })
        };
        fill(&mut fixed, CheckpointFault::Magic)?;
        if &fixed[..8] != MAGIC {
            return Err(refuse(CheckpointFault::Magic));
        }
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| fixed[at + i]));
        let (version, length) = (word(8), word(12) as usize);
        let sum = u64::from(word(16)) | u64::from(word(20)) << 32;
        if version != VERSION {
            return Err(refuse(CheckpointFault::Version(version)));
        }
        if length > MAX_HEADER {
            return Err(refuse(CheckpointFault::HeaderDamaged));
        }
        let mut text = vec![0; length];
        fill(&mut text, CheckpointFault::HeaderDamaged)?;
        if Xxh64::of(&text) != sum {
            return Err(refuse(CheckpointFault::HeaderDamaged));
        }
        let header = parse_header(&text).map_err(refuse)?;

        let mut at = FIXED as u64 + length as u64;
        let mut zeros = [0; 64];
        let zeros = &mut zeros[..padding(at)];
        fill(zeros, CheckpointFault::HeaderDamaged)?;
        if zeros.iter().any(|byte| *byte != 0) {
            return Err(refuse(CheckpointFault::HeaderDamaged));
        }
        at += zeros.len() as u64;
        let mut starts = vec![at];
        for entry in &header.arrays {
            at = count(&entry.shape)
                .and_then(|n| (n as u64).checked_mul(entry.element.size() as u64))
                .and_then(|bytes| bytes.checked_next_multiple_of(64))
                .and_then(|bytes| at.checked_add(bytes))
                .ok_or_else(|| refuse(CheckpointFault::Header("arrays")))?;
            starts.push(at);
        }
        let expected = at.saturating_add(8 * header.arrays.len() as u64);
        let found = source
            .seek(SeekFrom::End(0))
            .map_err(FileError::io(path, Attempt::Read))?;
        if found != expected {
            return Err(refuse(CheckpointFault::Length { expected, found }));
        }
        Ok(Self {
            source,
            path: path.to_path_buf(),
            header,
            starts,
        })
    }

    /// The header of the checkpoint.
    pub fn header(&self) -> &CheckpointHeader {
        &self.header
    }

    /// Refuses a checkpoint of another calculation.
    pub fn expect(&self, identity: &Identity) -> Result<(), FileError> {
        let found = &self.header.identity;
        let precision = |identity: &Identity| identity.precision.name().to_owned();
        for (what, expected, found) in [
            // The hash of a scheme depends on its precision, which says more than a hash.
            ("precision", precision(identity), precision(found)),
            ("scheme", identity.scheme.clone(), found.scheme.clone()),
            ("problem", identity.problem.clone(), found.problem.clone()),
        ] {
            if expected != found {
                return Err(self.refuse(CheckpointFault::Other {
                    what,
                    expected,
                    found,
                }));
            }
        }
        Ok(())
    }

    /// Reads every array once and compares its checksum, before anything is overwritten with it.
    pub fn verify(&mut self) -> Result<(), FileError> {
        for i in 0..self.header.arrays.len() {
            let entry = &self.header.arrays[i];
            let bytes =
                array::count(&entry.shape).unwrap_or(0) as u64 * entry.element.size() as u64;
            let mut block = vec![0; 1 << 20];
            let mut sum = Xxh64::default();
            self.seek(self.starts[i])?;
            let mut left = bytes;
            while left > 0 {
                let n = left.min(block.len() as u64) as usize;
                self.fill(&mut block[..n])?;
                sum.update(&block[..n]);
                left -= n as u64;
            }
            self.compare(i, &sum)?;
        }
        Ok(())
    }

    /// Passes an array to `sink` by pieces of rows, in C order: the index of the first value, and values along
    /// the last axis. The array must have this type and shape. The checksum is known at the end only: on an error, the
    /// values that were passed must not be used.
    pub fn read<T: Element>(
        &mut self,
        name: &str,
        shape: &[usize],
        mut sink: impl FnMut(&[usize], &[T]),
    ) -> Result<(), FileError> {
        let found = self.header.arrays.iter().position(|e| e.name == name);
        let Some(i) = found else {
            return Err(self.refuse(CheckpointFault::NoArray(name.into())));
        };
        let entry = &self.header.arrays[i];
        if entry.element != T::TYPE || entry.shape != shape {
            return Err(self.refuse(CheckpointFault::Array {
                name: name.into(),
                expected: (T::TYPE, shape.to_vec()),
                found: (entry.element, entry.shape.clone()),
            }));
        }
        self.seek(self.starts[i])?;
        let run = shape.last().copied().unwrap_or(1);
        let most = run.min(1 << 16);
        let mut bytes = vec![0; most * T::TYPE.size()];
        let mut values = vec![T::default(); most];
        let mut sum = Xxh64::default();
        array::for_each_row(shape, |first| {
            let mut at = first.to_vec();
            let mut done = 0;
            while done < run {
                let n = (run - done).min(most);
                let bytes = &mut bytes[..n * T::TYPE.size()];
                self.fill(bytes)?;
                sum.update(bytes);
                T::decode(bytes, &mut values[..n]);
                if let Some(last) = at.last_mut() {
                    *last = done;
                }
                sink(&at, &values[..n]);
                done += n;
            }
            Ok(())
        })?;
        self.compare(i, &sum)
    }

    /// Refuses an array whose values have another checksum than the stored one, or are not followed by zeros.
    fn compare(&mut self, array: usize, sum: &Xxh64) -> Result<(), FileError> {
        let entry = &self.header.arrays[array];
        let name = entry.name.clone();
        let bytes = count(&entry.shape).unwrap_or(0) as u64 * entry.element.size() as u64;
        self.seek(self.starts[array] + bytes)?;
        let mut zeros = [0; 64];
        let zeros = &mut zeros[..padding(bytes)];
        self.fill(zeros)?;
        let sums = self.starts.last().copied().unwrap_or(0);
        self.seek(sums + 8 * array as u64)?;
        let mut stored = [0; 8];
        self.fill(&mut stored)?;
        if u64::from_le_bytes(stored) == sum.value() && zeros.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        Err(self.refuse(CheckpointFault::Checksum(name)))
    }

    fn seek(&mut self, to: u64) -> Result<(), FileError> {
        let sought = self.source.seek(SeekFrom::Start(to));
        sought
            .map(drop)
            .map_err(FileError::io(&self.path, Attempt::Read))
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), FileError> {
        let filled = self.source.read_exact(bytes);
        filled.map_err(FileError::io(&self.path, Attempt::Read))
    }

    fn refuse(&self, fault: CheckpointFault) -> FileError {
        FileError::new(&self.path, Attempt::Read, Cause::Checkpoint(fault))
    }
}

/// Bytes up to the next multiple of 64.
fn padding(bytes: u64) -> usize {
    (bytes.wrapping_neg() % 64) as usize
}

fn parse_header(text: &[u8]) -> Result<CheckpointHeader, CheckpointFault> {
    let json: Value = serde_json::from_slice(text).map_err(|_| CheckpointFault::HeaderDamaged)?;
    let string = |json: &Value, key| {
        let value = json.get(key).and_then(Value::as_str);
        value.map(str::to_owned).ok_or(CheckpointFault::Header(key))
    };
    let element = |json: &Value, key| match json.get(key).and_then(Value::as_str) {
        Some("f32") => Ok(ElementType::F32),
        Some("f64") => Ok(ElementType::F64),
        _ => Err(CheckpointFault::Header(key)),
    };
    let list = |json: &Value, key| {
        let value = json.get(key).and_then(Value::as_array);
        value.cloned().ok_or(CheckpointFault::Header(key))
    };
    let mut arrays: Vec<ArrayEntry> = Vec::new();
    for entry in list(&json, "arrays")? {
        let length = |value: &Value| usize::try_from(value.as_u64()?).ok();
        let shape: Option<Vec<usize>> = list(&entry, "shape")?.iter().map(length).collect();
        let entry = ArrayEntry {
            name: string(&entry, "name")?,
            element: element(&entry, "type")?,
            shape: shape.ok_or(CheckpointFault::Header("shape"))?,
        };
        let fits = (1..=3).contains(&entry.shape.len());
        if !fits || arrays.iter().any(|other| other.name == entry.name) {
            return Err(CheckpointFault::Header("arrays"));
        }
        arrays.push(entry);
    }
    Ok(CheckpointHeader {
        identity: Identity {
            scheme: string(&json, "scheme")?,
            problem: string(&json, "problem")?,
            precision: element(&json, "precision")?,
        },
        step: json
            .get("step")
            .and_then(Value::as_u64)
            .ok_or(CheckpointFault::Header("step"))?,
        arrays,
        notes: match json.get("notes") {
            Some(Value::Object(notes)) => notes.clone(),
            _ => return Err(CheckpointFault::Header("notes")),
        },
    })
}

#[cfg(test)]
mod tests;
