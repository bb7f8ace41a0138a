//! Compiled objects kept on disk, so that a program that was compiled once starts at once the next time.
//!
//! The cache is never needed: where it cannot be relied on, read or written, code is compiled anew; `torre machine`
//! says why. One object is one file, named by a hash of everything its code depends on. Files appear under their names
//! when they are complete, so that processes which share the folder see whole files only; any other damage to a file
//! shows in its checksum. A loaded object is executed, so the folder and its files are the user's alone
//! (`torre_trust`); the checksum is no protection, since anyone can compute it.

use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use torre_compiler::backend::llvm::library::{
    self, Error, Library, Object, Options, Target, Version,
};
use torre_trust::{Folder, Refusal};

/// The most bytes of the user's cache on disk: some thousands of kernels.
const USER_LIMIT: u64 = 256 << 20;

/// The first bytes of every file; the digit changes with the layout of the file or with the fields that a key covers.
const MAGIC: [u8; 16] = *b"torre object 2\n\0";

/// Bytes of a SHA-256.
const HASH_BYTES: usize = 32;

/// Magic, key, checksum of the object and length of the object.
const HEADER_BYTES: usize = 16 + 2 * HASH_BYTES + 8;

/// The ending of a cached object's name.
const ENDING: &str = ".object";

/// The age after which a temporary file is taken for one that a killed process left behind.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The name of a compiled object: a hash of everything its bytes depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key([u8; HASH_BYTES]);

impl Key {
    /// The key of the object that this Torre makes of IR text with an LLVM of this version.
    pub fn new(version: Version, ir: &str, target: &Target, options: &Options) -> Self {
        let mut hash = Sha256::new();
        for field in [
            env!("CARGO_PKG_VERSION").as_bytes(),
            version.to_string().as_bytes(),
            target.triple.as_bytes(),
            target.cpu.as_bytes(),
            target.features.as_bytes(),
            options.passes.as_str().as_bytes(),
            &[options.level.number()],
            ir.as_bytes(),
        ] {
            // After its length, so that a border between fields cannot move.
            hash.update((field.len() as u64).to_le_bytes());
            hash.update(field);
        }
        Self(hash.finalize().into())
    }

    fn file_name(self) -> String {
        let digits: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        digits + ENDING
    }
}

/// Whether a file has a name that [`Key::file_name`] makes.
fn is_object(name: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    name.strip_suffix(ENDING)
        .is_some_and(|digits| digits.len() == 2 * HASH_BYTES && digits.bytes().all(digit))
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

/// A folder of compiled objects, or none.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: Option<Arc<Folder>>,
    /// Why there is no folder, where there should be one.
    refusal: Option<Refusal>,
    /// The bytes that all files together may take.
    limit: u64,
}

impl Cache {
    /// The cache in `$XDG_CACHE_HOME/torre`, or in `~/.cache/torre`.
    pub fn of_user() -> Self {
        Self::new(Folder::of_user(&["torre", "objects"]), USER_LIMIT)
    }

    /// The cache in the folder `objects` below another one. It is created if need be.
    pub fn below(base: &Path, limit: u64) -> Self {
        Self::new(Folder::below(base, &["objects"]), limit)
    }

    fn new(folder: Result<Folder, Refusal>, limit: u64) -> Self {
        let (folder, refusal) = match folder {
            Ok(folder) => (Some(Arc::new(folder)), None),
            Err(refusal) => (None, Some(refusal)),
        };
        Self {
            folder,
            refusal,
            limit,
        }
    }

    /// No cache: nothing is found, and nothing is kept.
    pub fn off() -> Self {
        Self {
            folder: None,
            refusal: None,
            limit: 0,
        }
    }

    /// The folder, or `None` where there is no cache.
    pub fn directory(&self) -> Option<&Path> {
        self.folder.as_ref().map(|folder| folder.path())
    }

    /// Why there is no cache where there should be one.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
    }

    /// The object of a key, if it is there, whole, and the user's.
    pub fn get(&self, key: Key) -> Option<Object> {
        let folder = self.folder.as_ref()?;
        let (file, bytes) = folder.read(&key.file_name(), self.limit).ok()?;
        let object = decode(key, bytes)?;
        // The time of the last use decides which objects are evicted; without it the time of writing does.
        let _ = file.set_modified(SystemTime::now());
        // SAFETY: `put` wrote these bytes from an object under this key: the file is the user's, no other user could
        // write it, and the checksum says that it is whole.
        Some(unsafe { Object::from_bytes(object) })
    }

    /// Keeps an object, if that is possible, and removes the objects unused for longest where the limit is exceeded.
    pub fn put(&self, key: Key, object: &Object) {
        let Some(folder) = &self.folder else {
            return;
        };
        let bytes = encode(key, object.bytes());
        if bytes.len() as u64 > self.limit {
            return;
        }
        // A cache that cannot be written is ignored.
        let _ = folder.write(&key.file_name(), &bytes);
        let _ = evict(folder, self.limit);
    }
}

/// A file of the cache: the header and the object.
fn encode(key: Key, object: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + object.len());
    bytes.extend(MAGIC);
    bytes.extend(key.0);
    bytes.extend(Sha256::digest(object));
    bytes.extend((object.len() as u64).to_le_bytes());
    bytes.extend(object);
    bytes
}

/// The object in a file of the cache, if the file is the output of [`encode`] for this key.
fn decode(key: Key, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let (header, object) = bytes.split_at_checked(HEADER_BYTES)?;
    let (magic, header) = header.split_at(16);
    let (stored_key, header) = header.split_at(HASH_BYTES);
    let (checksum, length) = header.split_at(HASH_BYTES);
    let whole = magic == MAGIC
        && stored_key == key.0
        && length == (object.len() as u64).to_le_bytes()
        && checksum == Sha256::digest(object).as_slice();
    whole.then(|| bytes.split_off(HEADER_BYTES))
}

/// Removes the objects unused for longest until the rest is within the limit, and temporary files that no process
/// writes any more. All other files are left alone.
fn evict(folder: &Folder, limit: u64) -> Result<(), Refusal> {
    folder.remove_abandoned(is_object, ABANDONED)?;
    let mut objects = folder.entries()?;
    objects.retain(|entry| is_object(&entry.name));
    objects.sort_by(|a, b| (a.modified, &a.name).cmp(&(b.modified, &b.name)));
    let mut total = objects
        .iter()
        .map(|entry| entry.bytes)
        .fold(0, u64::saturating_add);
    for entry in objects {
        if total <= limit {
            break;
        }
        // Another process has removed a file that vanishes meanwhile.
        let _ = folder.remove(&entry.name);
        total -= entry.bytes;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_told_by_their_names() {
        let name = Key([0xa7; HASH_BYTES]).file_name();
        assert_eq!(name, "a7".repeat(32) + ".object");
        assert!(is_object(&name));
        for other in [
            "object".to_owned(),
            "thesis.object".to_owned(),
            name.to_uppercase(),
            name.replace('a', "g"),
            format!("0{name}"),
            name[1..].to_owned(),
            format!("{name}.object"),
        ] {
            assert!(!is_object(&other), "{other}");
        }
    }

    #[test]
    fn a_file_changed_anywhere_is_refused() {
        let key = Key([1; HASH_BYTES]);
        let whole = encode(key, b"some object");
        assert_eq!(
            decode(key, whole.clone()).as_deref(),
            Some(&b"some object"[..])
        );
        assert_eq!(decode(Key([2; HASH_BYTES]), whole.clone()), None);
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
