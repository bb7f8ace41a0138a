//! Compiled objects kept on disk, so that a program that was compiled once starts at once the next time.
//!
//! The cache is never needed: where it cannot be read or written, code is compiled anew, and nothing is said. One
//! object is one file, named by a hash of everything its code depends on. Files are written under a temporary name and
//! renamed, so that processes which share the directory see whole files only; whatever else may have happened
//! to a file shows in its checksum.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use torre_compiler::backend::llvm::library::{
    self, Error, Library, Object, Options, Target, Version,
};

/// What the user's cache may take on disk, in bytes: some thousands of kernels.
pub const USER_LIMIT: u64 = 256 << 20;

/// The first bytes of every file; the digit changes with the layout of the file or with what a key covers.
const MAGIC: [u8; 16] = *b"torre object 1\n\0";

/// Magic, key, checksum of the object and length of the object.
const HEADER_BYTES: usize = 16 + 16 + 16 + 8;

/// The ending of a cached object's name.
const EXTENSION: &str = "object";

/// The age after which a temporary file is taken for one that a killed process left behind.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The name of a compiled object: a hash of everything its bytes depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(u128);

impl Key {
    /// The key of what this Torre makes of IR text with an LLVM of this version.
    pub fn new(version: Version, ir: &str, target: &Target, options: &Options) -> Self {
        let mut hash = Fnv::new();
        hash.field(env!("CARGO_PKG_VERSION").as_bytes());
        hash.field(version.to_string().as_bytes());
        hash.field(target.triple.as_bytes());
        hash.field(target.cpu.as_bytes());
        hash.field(target.features.as_bytes());
        hash.field(options.passes.as_str().as_bytes());
        hash.field(&[options.level.number()]);
        hash.field(ir.as_bytes());
        Self(hash.0)
    }

    fn file_name(self) -> String {
        format!("{:032x}.{EXTENSION}", self.0)
    }
}

/// FNV-1a with 128 bits: stable between versions and machines, and no two inputs that are not made for it collide.
/// (Fowler, Noll, Vo, Eastlake, "The FNV Non-Cryptographic Hash Algorithm", RFC 9923.)
struct Fnv(u128);

impl Fnv {
    const PRIME: u128 = (1 << 88) + 0x13b;

    fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(Self::PRIME);
        }
    }

    /// Adds bytes after their number, so that a border between fields cannot move.
    fn field(&mut self, bytes: &[u8]) {
        self.bytes(&(bytes.len() as u64).to_le_bytes());
        self.bytes(bytes);
    }

    fn of(bytes: &[u8]) -> u128 {
        let mut hash = Self::new();
        hash.bytes(bytes);
        hash.0
    }
}

/// Whether an object was compiled or found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// LLVM made it.
    Compiled,
    /// It was in the cache.
    Cached,
}

/// Compiles IR text, or takes the object from the cache.
pub fn compile(
    cache: &Cache,
    library: &Library,
    ir: &str,
    target: &Target,
    options: &Options,
) -> Result<(Object, Origin), Error> {
    let key = Key::new(library.version(), ir, target, options);
    if let Some(object) = cache.get(key) {
        return Ok((object, Origin::Cached));
    }
    let object = library::compile(library, ir, target, options)?;
    cache.put(key, &object);
    Ok((object, Origin::Compiled))
}

/// A directory of compiled objects, or none.
#[derive(Clone, Debug)]
pub struct Cache {
    /// A directory that this user owns and nobody else may write to: what lies there is executed.
    directory: Option<PathBuf>,
    /// The bytes that all files together may take.
    limit: u64,
}

impl Cache {
    /// The cache in `$XDG_CACHE_HOME/torre`, or in `~/.cache/torre`.
    pub fn of_user() -> Self {
        let absolute = |name| {
            env::var_os(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute())
        };
        let home =
            absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        match home {
            Some(home) => Self::at(&home.join("torre").join("objects"), USER_LIMIT),
            None => Self::off(),
        }
    }

    /// The cache in a directory, which is created if need be. One that cannot be used is no cache.
    pub fn at(directory: &Path, limit: u64) -> Self {
        Self {
            directory: prepare(directory).ok(),
            limit,
        }
    }

    /// No cache: nothing is found, and nothing is kept.
    pub fn off() -> Self {
        Self {
            directory: None,
            limit: 0,
        }
    }

    /// The directory, or `None` where there is no cache.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The object of a key, if it is there and whole.
    pub fn get(&self, key: Key) -> Option<Object> {
        let path = self.directory.as_ref()?.join(key.file_name());
        let mut file = File::open(path).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let object = decode(key, bytes)?;
        // The time of the last use decides what is evicted; without it the time of writing does.
        let _ = file.set_modified(SystemTime::now());
        // SAFETY: `put` wrote these bytes from an object under this key, as the checksum says, in a directory that
        // only this user can write to.
        Some(unsafe { Object::from_bytes(object) })
    }

    /// Keeps an object, if that is possible, and removes those unused for longest where the limit is exceeded.
    pub fn put(&self, key: Key, object: &Object) {
        let Some(directory) = &self.directory else {
            return;
        };
        let bytes = encode(key, object.bytes());
        if bytes.len() as u64 > self.limit {
            return;
        }
        // A cache that cannot be written is ignored.
        let _ = write_whole(directory, &key.file_name(), &bytes);
        let _ = evict(directory, self.limit);
    }
}

/// Creates the directory, and refuses one that others may write to.
fn prepare(directory: &Path) -> io::Result<PathBuf> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let metadata = fs::metadata(directory)?;
    let user = fs::metadata("/proc/self")?.uid();
    let others_may_write = metadata.mode() & 0o022 != 0;
    if metadata.uid() != user || others_may_write {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(directory.to_owned())
}

/// A file of the cache: the header and the object.
fn encode(key: Key, object: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + object.len());
    bytes.extend(MAGIC);
    bytes.extend(key.0.to_le_bytes());
    bytes.extend(Fnv::of(object).to_le_bytes());
    bytes.extend((object.len() as u64).to_le_bytes());
    bytes.extend(object);
    bytes
}

/// The object in a file of the cache, if the file is what [`encode`] gives for this key.
fn decode(key: Key, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let (header, object) = bytes.split_at_checked(HEADER_BYTES)?;
    let (magic, header) = header.split_at(16);
    let (stored_key, header) = header.split_at(16);
    let (checksum, length) = header.split_at(16);
    let whole = magic == MAGIC
        && stored_key == key.0.to_le_bytes()
        && length == (object.len() as u64).to_le_bytes()
        && checksum == Fnv::of(object).to_le_bytes();
    whole.then(|| bytes.split_off(HEADER_BYTES))
}

/// Writes a file under a temporary name and renames it. The disk is not waited for, unlike for a result: what a loss of
/// power damages is found by its checksum and compiled again.
fn write_whole(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = directory.join(format!(".{name}.{}.{count}", process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&temporary)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| fs::rename(&temporary, directory.join(name)));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Removes the files unused for longest until the rest is within the limit, and temporary files that nobody writes any
/// more. Files that vanish meanwhile are the work of another process.
fn evict(directory: &Path, limit: u64) -> io::Result<()> {
    let now = SystemTime::now();
    let mut objects = Vec::new();
    let mut total = 0;
    for entry in fs::read_dir(directory)?.flatten() {
        let path = entry.path();
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let Ok(used) = metadata.modified() else {
            continue;
        };
        if path.extension().is_some_and(|e| e == EXTENSION) {
            total += metadata.len();
            objects.push((used, path, metadata.len()));
        } else if now.duration_since(used).is_ok_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(path);
        }
    }
    objects.sort();
    for (_, path, bytes) in objects {
        if total <= limit {
            break;
        }
        let _ = fs::remove_file(path);
        total -= bytes;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_gives_its_published_values() {
        assert_eq!(Fnv::of(b""), 0x6c62272e07bb014262b821756295c58d);
        assert_eq!(Fnv::of(b"a"), 0xd228cb696f1a8caf78912b704e4a8964);
        assert_eq!(Fnv::of(b"foobar"), 0x343e1662793c64bf6f0d3597ba446f18);
    }

    #[test]
    fn a_file_changed_anywhere_is_refused() {
        let key = Key(1);
        let whole = encode(key, b"some object");
        assert_eq!(
            decode(key, whole.clone()).as_deref(),
            Some(&b"some object"[..])
        );
        assert_eq!(decode(Key(2), whole.clone()), None);
        for i in 0..whole.len() {
            let mut changed = whole.clone();
            changed[i] ^= 1;
            assert_eq!(decode(key, changed), None, "byte {i}");
            assert_eq!(decode(key, whole[..i].to_vec()), None, "cut at {i}");
        }
        let mut longer = whole;
        longer.push(0);
        assert_eq!(decode(key, longer), None);
    }
}
