//! A file with the values of an array.

use crate::output::checksum::words;
use crate::output::open::Place;
use crate::output::{Attempt, FileError};
use memmap2::{MmapMut, MmapOptions};
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes, places in the file and places in memory of direct accesses are multiples of this.
pub const BLOCK: u64 = 4096;

/// Bytes that are read at a time to sum them up.
const SUMMED: u64 = 4 << 20;

/// Bytes of zeros that are written at a time.
const ZEROS: u64 = 1 << 20;

/// The checksum of the bytes that are written.
#[derive(Debug, Default)]
struct Tally {
    sum: AtomicU64,
    /// How many bytes it is of.
    bytes: AtomicU64,
}

impl Tally {
    fn set(&self, sum: u64, bytes: u64) {
        self.sum.store(sum, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    fn add(&self, at: u64, bytes: &[u8]) {
        if let Some(sum) = words(at, bytes) {
            self.sum.fetch_add(sum, Ordering::Relaxed);
            self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
    }
}

/// A file with an array, filled up to whole blocks.
#[derive(Debug)]
pub struct ArrayFile {
    path: PathBuf,
    file: File,
    /// The same file, without the system's cache; `None` where the file system has no such access.
    direct: Option<File>,
    /// Direct accesses have not failed.
    works: AtomicBool,
    bytes: u64,
    /// The checksum of all bytes of [`ArrayFile::write_summed`].
    tally: Tally,
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options
}

/// The file at a path once more, for direct accesses.
#[cfg(target_os = "linux")]
fn open_direct(path: &Path) -> Option<File> {
    let flags = OFlags::NOFOLLOW | OFlags::DIRECT;
    let file = options().custom_flags(flags.bits() as i32).open(path);
    file.ok()
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_: &Path) -> Option<File> {
    None
}

/// Makes an empty file one of zeros with all of its room on the disk. `given` says whether the file system gave room
/// ahead of time; where it cannot do so, zeros are written. In a file of holes, room that is not there would be missed
/// at an access to the file as memory, which ends the process.
fn take_room(file: &File, bytes: u64, given: rustix::io::Result<()>) -> io::Result<()> {
    match given {
        Ok(()) => file.set_len(bytes),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
            let zeros = vec![0; bytes.min(ZEROS) as usize];
            for at in (0..bytes).step_by(ZEROS as usize) {
                let length = bytes - at;
                file.write_all_at(&zeros[..length.min(ZEROS) as usize], at)?;
            }
            // Some file systems look for room no earlier.
            file.sync_all()
        }
        Err(error) => Err(error.into()),
    }
}

impl ArrayFile {
    /// Makes a file of zeros in place of a file of the same name, with all of its room on the disk.
    pub fn create(path: &Path, bytes: u64) -> Result<ArrayFile, FileError> {
        let fail = || FileError::io(path, Attempt::Create);
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail()(error)),
            _ => {}
        }
        let flags = OFlags::NOFOLLOW.bits() as i32;
        let file = options().create_new(true).custom_flags(flags).open(path);
        let file = file.map_err(fail())?;
        let bytes = bytes.max(1).next_multiple_of(BLOCK);
        let given = fallocate(&file, FallocateFlags::empty(), 0, bytes);
        if let Err(error) = take_room(&file, bytes, given) {
            // A part of a file is of no use. A failure here only leaves it.
            let _ = std::fs::remove_file(path);
            return Err(fail()(error));
        }
        Ok(ArrayFile::of(path, file, bytes))
    }

    /// Opens a file that was made for `bytes` bytes.
    pub fn open(path: &Path, bytes: u64) -> Result<ArrayFile, FileError> {
        let fail = || FileError::io(path, Attempt::Open);
        // A pipe would be waited for.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let file = options().custom_flags(flags).open(path).map_err(fail())?;
        let found = file.metadata().map_err(fail())?;
        let bytes = bytes.max(1).next_multiple_of(BLOCK);
        if !found.is_file() || found.len() != bytes {
            let message = format!("it is no file of {bytes} bytes");
            return Err(fail()(io::Error::new(io::ErrorKind::InvalidData, message)));
        }
        Ok(ArrayFile::of(path, file, bytes))
    }

    fn of(path: &Path, file: File, bytes: u64) -> ArrayFile {
        ArrayFile {
            path: path.to_owned(),
            file,
            direct: open_direct(path),
            works: AtomicBool::new(true),
            bytes,
            tally: Tally::default(),
        }
    }

    /// An error where the file is not at its path any more.
    pub fn check_place(&self) -> Result<(), FileError> {
        let place = Place::of(&self.file, &self.path);
        place
            .map_err(FileError::io(&self.path, Attempt::Write))?
            .check()
    }

    /// Whole blocks.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether accesses go past the system's cache.
    pub fn is_direct(&self) -> bool {
        self.direct().is_some()
    }

    fn direct(&self) -> Option<&File> {
        let works = self.works.load(Ordering::Relaxed);
        self.direct.as_ref().filter(|_| works)
    }

    /// Whether an error says that a file system knows no direct accesses, or none like this; they are not tried again.
    fn refuses(&self, error: &io::Error) -> bool {
        let refuses = error.raw_os_error() == Some(Errno::INVAL.raw_os_error());
        if refuses {
            self.works.store(false, Ordering::Relaxed);
        }
        refuses
    }

    /// Reads whole blocks into memory that begins at one.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        let fail = || FileError::io(&self.path, Attempt::Read);
        if let Some(direct) = self.direct() {
            match direct.read_exact_at(bytes, at) {
                Err(error) if self.refuses(&error) => {}
                other => return other.map_err(fail()),
            }
        }
        self.file.read_exact_at(bytes, at).map_err(fail())
    }

    /// Writes bytes; their places in memory and in the file are equally far from the beginnings of blocks. A block is
    /// either written as a whole and directly, or through the system's cache.
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<(), FileError> {
        let fail = || FileError::io(&self.path, Attempt::Write);
        let end = at + bytes.len() as u64;
        let first = at.next_multiple_of(BLOCK).min(end);
        let last = (end / BLOCK * BLOCK).max(first);
        let part = |from: u64, to: u64| &bytes[(from - at) as usize..(to - at) as usize];
        let cached = |from: u64, to: u64| match from < to {
            true => self.file.write_all_at(part(from, to), from),
            false => Ok(()),
        };
        cached(at, first).map_err(fail())?;
        let written = match self.direct() {
            Some(direct) if first < last => direct.write_all_at(part(first, last), first),
            _ => cached(first, last),
        };
        let written = match written {
            Err(error) if self.is_direct() && self.refuses(&error) => cached(first, last),
            other => other,
        };
        written.map_err(fail())?;
        cached(last, end).map_err(fail())
    }

    /// The same, for writers that write each byte once between [`ArrayFile::begin_sum`] and [`ArrayFile::sum`].
    pub fn write_summed(&self, at: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.tally.add(at, bytes);
        self.write(at, bytes)
    }

    /// All bytes are about to be written anew.
    pub fn begin_sum(&self) {
        self.tally.set(0, 0);
    }

    /// The checksum of the whole file, if all of it was written or checked.
    pub fn sum(&self) -> Option<u64> {
        let whole = self.tally.bytes.load(Ordering::Relaxed) == self.bytes;
        whole.then(|| self.tally.sum.load(Ordering::Relaxed))
    }

    /// The bytes of the array before and after the ones that were written have their values in its map; the rest of the
    /// last block are zeros.
    pub fn add_around(&self, written: &Range<u64>, array: &[u8]) {
        let [start, end] = [written.start, written.end].map(|at| at as usize);
        self.tally.add(0, &array[..start]);
        self.tally.add(written.end, &array[end..]);
        let rest = self.bytes - array.len() as u64;
        self.tally.bytes.fetch_add(rest, Ordering::Relaxed);
    }

    /// The checksum of the whole file, which is read where the writers do not know it.
    pub fn whole_sum(&self) -> Result<u64, FileError> {
        match self.sum() {
            Some(sum) => Ok(sum),
            None => self.read_sum(),
        }
    }

    /// Reads the whole file: whether it has a checksum.
    pub fn has_sum(&self, expected: u64) -> Result<bool, FileError> {
        Ok(self.read_sum()? == expected)
    }

    fn read_sum(&self) -> Result<u64, FileError> {
        let length = SUMMED.min(self.bytes);
        let buffer = MmapMut::map_anon(length as usize);
        let mut buffer = buffer.map_err(FileError::io(&self.path, Attempt::Read))?;
        let mut sum = 0u64;
        for at in (0..self.bytes).step_by(length as usize) {
            let part = &mut buffer[..length.min(self.bytes - at) as usize];
            self.read(at, part)?;
            sum = sum.wrapping_add(words(at, part).unwrap_or(0));
        }
        self.tally.set(sum, self.bytes);
        Ok(sum)
    }

    /// Waits until everything that was written is on the disk.
    pub fn sync(&self) -> Result<(), FileError> {
        let synced = self.file.sync_data();
        synced.map_err(FileError::io(&self.path, Attempt::Write))
    }

    /// The first bytes of the file as memory.
    pub fn map(&self, bytes: u64) -> Result<MmapMut, FileError> {
        let fail = || FileError::io(&self.path, Attempt::Open);
        let length = usize::try_from(bytes.min(self.bytes));
        let length = length.map_err(|_| fail()(io::ErrorKind::OutOfMemory.into()))?;
        // SAFETY: the folder belongs to this run alone, so no other process makes the file shorter. Only the owner of
        // the folder changes it, and not while the memory is read.
        let map = unsafe { MmapOptions::new().len(length).map_mut(&self.file) };
        map.map_err(fail())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checksums are those of the whole file, in whichever order it was written, and tell each changed bit.
    #[test]
    fn checksums_tell_changed_bits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("array");
        let file = ArrayFile::create(&path, 3 * BLOCK).unwrap();
        let mut memory = MmapMut::map_anon(3 * BLOCK as usize).unwrap();
        for (n, byte) in memory.iter_mut().enumerate() {
            *byte = (n % 251) as u8;
        }
        let write = |order: [u64; 3]| {
            file.begin_sum();
            for n in order {
                assert_eq!(file.sum(), None);
                let from = (n * BLOCK) as usize;
                let part = &memory[from..from + BLOCK as usize];
                file.write_summed(n * BLOCK, part).unwrap();
            }
            file.sum().unwrap()
        };
        let sum = write([0, 1, 2]);
        assert_eq!(write([2, 0, 1]), sum);
        assert!(file.has_sum(sum).unwrap());
        for (at, bit) in [(0, 1u8), (5000, 128), (12287, 4)] {
            let flip = |of: &mut [u8]| of[0] ^= bit;
            let mut byte = [0];
            file.file.read_exact_at(&mut byte, at).unwrap();
            flip(&mut byte);
            file.file.write_all_at(&byte, at).unwrap();
            assert!(!file.has_sum(sum).unwrap(), "{at}");
            flip(&mut byte);
            file.file.write_all_at(&byte, at).unwrap();
            assert!(file.has_sum(sum).unwrap(), "{at}");
        }
        // Blocks that change places.
        file.write(0, &memory[BLOCK as usize..2 * BLOCK as usize])
            .unwrap();
        file.write(BLOCK, &memory[..BLOCK as usize]).unwrap();
        assert!(!file.has_sum(sum).unwrap());
    }

    /// Where a file system gives no room ahead of time, a file has it all the same.
    #[test]
    fn files_have_their_room() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let bytes = 2 * ZEROS + BLOCK;
        for refusal in [Errno::OPNOTSUPP, Errno::NOSYS, Errno::INVAL] {
            let path = folder.path().join("array");
            let file = options().create_new(true).open(&path).unwrap();
            take_room(&file, bytes, Err(refusal)).unwrap();
            let found = file.metadata().unwrap();
            assert_eq!(found.len(), bytes);
            assert!(found.blocks() * 512 >= bytes, "{refusal}");
            std::fs::remove_file(&path).unwrap();
        }
        let full = options().open("/dev/full").unwrap();
        let error = take_room(&full, bytes, Err(Errno::OPNOTSUPP)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    /// Writes at all distances from blocks change the bytes that they name and nothing else, directly and through the
    /// cache.
    #[test]
    fn pieces_are_where_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("array");
        let all = 5 * BLOCK as usize + 100;
        let file = ArrayFile::create(&path, all as u64).unwrap();
        assert_eq!(file.bytes(), 6 * BLOCK);
        let mut expected = vec![0u8; file.bytes() as usize];
        let mut memory = MmapMut::map_anon(expected.len()).unwrap();
        for (turn, (from, to)) in [(10, 20), (0, 4096), (4000, 13000), (4096, 12288), (1, all)]
            .into_iter()
            .enumerate()
        {
            let value = turn as u8 + 1;
            memory[from..to].fill(value);
            file.write(from as u64, &memory[from..to]).unwrap();
            expected[from..to].fill(value);
            memory.fill(0xee);
            file.read(0, &mut memory).unwrap();
            assert!(memory[..] == expected[..], "{from}..{to}");
            if turn == 2 {
                file.works.store(false, Ordering::Relaxed);
            }
        }
        file.sync().unwrap();
        assert!(file.map(all as u64).unwrap()[..] == expected[..all]);
        drop(file);
        ArrayFile::open(&path, all as u64).unwrap();
        ArrayFile::open(&path, 2 * all as u64).unwrap_err();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        ArrayFile::open(&link, all as u64).unwrap_err();
        // The target of a link is left alone.
        ArrayFile::create(&link, 10).unwrap();
        ArrayFile::open(&path, all as u64).unwrap();
    }
}
