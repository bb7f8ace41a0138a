//! Files and folders that appear under their final name only when they are complete.
//!
//! The content goes to `NAME.BOOT-PID-N.part` beside the final name, is synchronised to the disk and then renamed,
//! and the folder is synchronised so that the new name survives a loss of power. Dropping an unfinished file
//! removes it; a killed process leaves a `.part`, which [`remove_leftovers`] clears: `BOOT` names the machine and
//! its last start, so the file of a process that runs on another machine of a shared disk is left alone.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::{Attempt, Cause, FileError};

/// How temporary names end.
pub const SUFFIX: &str = ".part";

/// A file being written under a temporary name.
#[derive(Debug)]
pub struct AtomicFile {
    /// None only after `commit` took it.
    file: Option<BufWriter<File>>,
    temporary: PathBuf,
    target: PathBuf,
}

impl AtomicFile {
    /// Starts a file that will be called `target`; makes the folders above it.
    pub fn create(target: &Path) -> Result<Self, FileError> {
        let fail = |error| FileError::new(target, Attempt::Create, Cause::Io(error));
        let temporary = temporary_name(target).map_err(fail)?;
        make_parent(target).map_err(fail)?;
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary)
            .map_err(fail)?;
        Ok(Self {
            file: Some(BufWriter::with_capacity(1 << 16, file)),
            temporary,
            target: target.to_path_buf(),
        })
    }

    /// The final name.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Writes `bytes`, with an error that names the file.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.write_all(bytes)
            .map_err(FileError::io(&self.target, Attempt::Write))
    }

    /// Makes the content durable and gives the file its final name, replacing what had it.
    pub fn commit(mut self) -> Result<(), FileError> {
        let Some(buffer) = self.file.take() else {
            return Ok(());
        };
        let finished = buffer
            .into_inner()
            .map_err(|error| error.into_error())
            .and_then(|file| file.sync_all())
            .map_err(FileError::io(&self.target, Attempt::Write))
            .and_then(|()| {
                fs::rename(&self.temporary, &self.target)
                    .map_err(FileError::io(&self.target, Attempt::Rename))
            });
        if finished.is_err() {
            discard(fs::remove_file(&self.temporary));
        }
        finished?;
        sync_folder(parent(&self.target)).map_err(FileError::io(&self.target, Attempt::Rename))
    }

    fn open_file(&mut self) -> io::Result<&mut BufWriter<File>> {
        self.file
            .as_mut()
            .ok_or_else(|| io::Error::other("the file is already finished"))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.open_file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.open_file()?.flush()
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.open_file()?.seek(to)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // Without a flush of what is buffered: the content is given up.
            drop(file.into_parts());
            discard(fs::remove_file(&self.temporary));
        }
    }
}

/// Writes a whole small file.
pub fn write_file(target: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut file = AtomicFile::create(target)?;
    file.put(bytes)?;
    file.commit()
}

/// A folder being filled under a temporary name.
#[derive(Debug)]
pub struct AtomicFolder {
    temporary: PathBuf,
    target: PathBuf,
    marker: &'static str,
    finished: bool,
}

impl AtomicFolder {
    /// Starts a folder that will be called `target`. A folder of that name is replaced in `commit` only if it is
    /// empty or contains the file `marker`, so that a wrong path never costs a user their data.
    pub fn create(target: &Path, marker: &'static str) -> Result<Self, FileError> {
        check_replaceable(target, marker, Attempt::Create)?;
        let fail = |error| FileError::new(target, Attempt::Create, Cause::Io(error));
        let temporary = temporary_name(target).map_err(fail)?;
        make_parent(target).map_err(fail)?;
        fs::create_dir(&temporary).map_err(fail)?;
        Ok(Self {
            temporary,
            target: target.to_path_buf(),
            marker,
            finished: false,
        })
    }

    /// The final name.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Writes a whole file inside the folder and makes it durable; makes the folders above it.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), FileError> {
        let path = self.temporary.join(name);
        let write = || {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            let mut file = File::create(&path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(FileError::io(&self.target.join(name), Attempt::Write))
    }

    /// Gives the folder its final name. An older one steps aside under a temporary name first, since folders
    /// cannot be replaced in one step; a kill between the two leaves both complete, under temporary names.
    pub fn commit(mut self) -> Result<(), FileError> {
        check_replaceable(&self.target, self.marker, Attempt::Rename)?;
        let rename = || {
            sync_tree(&self.temporary)?;
            if self.target.is_dir() {
                let aside = temporary_name(&self.target)?;
                fs::rename(&self.target, &aside)?;
                if let Err(error) = fs::rename(&self.temporary, &self.target) {
                    discard(fs::rename(&aside, &self.target));
                    return Err(error);
                }
                fs::remove_dir_all(&aside)?;
            } else {
                fs::rename(&self.temporary, &self.target)?;
            }
            sync_folder(parent(&self.target))
        };
        rename().map_err(FileError::io(&self.target, Attempt::Rename))?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for AtomicFolder {
    fn drop(&mut self) {
        if !self.finished && self.temporary.exists() {
            discard(fs::remove_dir_all(&self.temporary));
        }
    }
}

/// Removes the temporary files and folders in `folder` (not below) that killed processes of this machine left,
/// and returns their paths. Those of living processes and of other machines stay.
pub fn remove_leftovers(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let mut removed = Vec::new();
    let Some(boot) = boot() else {
        return Ok(removed);
    };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(removed),
        Err(error) => return Err(FileError::io(folder, Attempt::Read)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(FileError::io(folder, Attempt::Read))?;
        let name = entry.file_name();
        let Some((owner, pid)) = name.to_str().and_then(owner) else {
            continue;
        };
        if owner != boot || Path::new("/proc").join(pid.to_string()).exists() {
            continue;
        }
        let path = entry.path();
        let gone = match entry.file_type() {
            Ok(kind) if kind.is_dir() => fs::remove_dir_all(&path),
            _ => fs::remove_file(&path),
        };
        gone.map_err(FileError::io(&path, Attempt::Remove))?;
        removed.push(path);
    }
    removed.sort();
    Ok(removed)
}

/// Machine and process of a temporary name.
fn owner(name: &str) -> Option<(&str, u32)> {
    let stem = name.strip_suffix(SUFFIX)?;
    let mut parts = stem.rsplit_once('.')?.1.split('-');
    let (boot, pid, number) = (parts.next()?, parts.next()?, parts.next()?);
    let hex = boot.len() == 8 && boot.bytes().all(|b| b.is_ascii_hexdigit());
    let plain = hex && number.bytes().all(|b| b.is_ascii_digit()) && parts.next().is_none();
    plain.then_some((boot, pid.parse().ok()?))
}

/// `NAME.BOOT-PID-N.part` beside `target`, new with each call.
fn temporary_name(target: &Path) -> io::Result<PathBuf> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = target
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name"))?;
    let mut temporary = OsString::from(name);
    let boot = boot().unwrap_or("00000000");
    let pid = std::process::id();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    temporary.push(OsStr::new(&format!(".{boot}-{pid}-{number}{SUFFIX}")));
    Ok(target.with_file_name(temporary))
}

/// Eight hexadecimal digits that change with the machine and with each of its starts; none off Linux.
fn boot() -> Option<&'static str> {
    static BOOT: OnceLock<Option<String>> = OnceLock::new();
    BOOT.get_or_init(|| {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        id.get(..8).map(str::to_owned)
    })
    .as_deref()
}

fn check_replaceable(
    target: &Path,
    marker: &'static str,
    attempt: Attempt,
) -> Result<(), FileError> {
    let mut entries = match fs::read_dir(target) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(FileError::io(target, attempt)(error)),
    };
    if target.join(marker).is_file() || entries.next().is_none() {
        return Ok(());
    }
    Err(FileError::new(
        target,
        attempt,
        Cause::ForeignFolder { marker },
    ))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn make_parent(path: &Path) -> io::Result<()> {
    fs::create_dir_all(parent(path))
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        }
    }
    sync_folder(folder)
}

/// For clean-up on a path that already reports an error, or in `drop`, where nothing can be reported.
fn discard<T>(_: io::Result<T>) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_complete_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("deep/er/a.npy");
        let mut file = AtomicFile::create(&target).unwrap();
        file.put(b"first").unwrap();
        file.flush().unwrap();
        assert!(!target.exists());
        let during = names(target.parent().unwrap());
        assert!(
            during.len() == 1 && during[0].ends_with(SUFFIX),
            "{during:?}"
        );
        drop(file);
        assert!(names(target.parent().unwrap()).is_empty());

        write_file(&target, b"second").unwrap();
        write_file(&target, b"third").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"third");
        assert_eq!(names(target.parent().unwrap()), ["a.npy"]);
    }

    #[test]
    fn an_abandoned_replacement_keeps_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a");
        write_file(&target, b"old").unwrap();
        let mut file = AtomicFile::create(&target).unwrap();
        file.put(&vec![1; 1 << 20]).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"old");
        drop(file);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn two_writers_of_one_name_do_not_meet() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a");
        let mut one = AtomicFile::create(&target).unwrap();
        let mut two = AtomicFile::create(&target).unwrap();
        one.put(b"one").unwrap();
        two.put(b"two").unwrap();
        one.commit().unwrap();
        two.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"two");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn folders_replace_only_their_kind() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("store");
        for text in ["old", "new"] {
            let store = AtomicFolder::create(&target, "mark").unwrap();
            store.write("mark", b"").unwrap();
            store.write("c/0/0", text.as_bytes()).unwrap();
            assert_ne!(fs::read(target.join("c/0/0")).ok(), Some(text.into()));
            store.commit().unwrap();
            assert_eq!(fs::read(target.join("c/0/0")).unwrap(), text.as_bytes());
        }
        assert_eq!(names(folder.path()), ["store"]);

        let thesis = folder.path().join("thesis");
        fs::create_dir(&thesis).unwrap();
        drop(AtomicFolder::create(&thesis, "mark").unwrap());
        fs::write(thesis.join("chapter"), "text").unwrap();
        let refused = AtomicFolder::create(&thesis, "mark").unwrap_err();
        assert!(matches!(refused.cause, Cause::ForeignFolder { .. }));
        assert!(refused.to_string().contains("thesis"), "{refused}");
        // A folder that fills up meanwhile is not replaced either.
        let late = folder.path().join("late");
        let store = AtomicFolder::create(&late, "mark").unwrap();
        fs::create_dir(&late).unwrap();
        fs::write(late.join("chapter"), "text").unwrap();
        store.commit().unwrap_err();
        assert_eq!(names(&late), ["chapter"]);
        assert_eq!(names(folder.path()), ["late", "store", "thesis"]);
    }

    #[test]
    fn leftovers_of_dead_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mine = AtomicFile::create(&at("living.npy")).unwrap();
        let Some(boot) = boot() else { return };
        // Larger than any process id of Linux (2^22).
        let dead = at(&format!("E.z.npy.{boot}-4194999-0.part"));
        let dead_store = at(&format!("out.zarr.{boot}-4194999-1.part"));
        let foreign = at("E.z.npy.gggggggg-4194999-0.part");
        let elsewhere = at("E.z.npy.0123abcd-4194999-0.part");
        for path in [&dead, &foreign, &elsewhere, &at("note.part"), &at("b.npy")] {
            fs::write(path, "x").unwrap();
        }
        fs::create_dir(&dead_store).unwrap();
        fs::write(dead_store.join("c"), "x").unwrap();
        assert_eq!(remove_leftovers(folder.path()).unwrap(), [dead, dead_store]);
        assert_eq!(names(folder.path()).len(), 5);
        assert!(remove_leftovers(&at("missing")).unwrap().is_empty());
        mine.commit().unwrap();
    }

    /// Names the folder for `a_process_to_be_killed`.
    const KILLED: &str = "TORRE_TEST_KILLED_WRITER";

    #[test]
    fn a_process_to_be_killed() {
        // Does something only in the process that the next test starts.
        let Some(folder) = std::env::var_os(KILLED) else {
            return;
        };
        let folder = Path::new(&folder);
        let mut file = AtomicFile::create(&folder.join("a.npy")).unwrap();
        file.put(&vec![1; 1 << 20]).unwrap();
        let store = AtomicFolder::create(&folder.join("a.zarr"), "mark").unwrap();
        store.write("c/0", b"chunk").unwrap();
        println!("\nready");
        // Until the kill; if the other process is gone, the input ends.
        let mut line = String::new();
        io::stdin().read_line(&mut line).unwrap();
    }

    #[test]
    fn a_killed_process_leaves_the_old_file_and_only_temporary_names() {
        use std::io::BufRead;
        use std::process::{Command, Stdio};
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.npy");
        write_file(&target, b"old").unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "output::atomic::tests::a_process_to_be_killed"])
            .arg("--nocapture")
            .env(KILLED, folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = io::BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines.map_while(Result::ok).any(|line| line == "ready");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(ready);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        let left = names(folder.path());
        assert_eq!(left.len(), 3, "{left:?}");
        assert!(
            left[1..].iter().all(|name| name.ends_with(SUFFIX)),
            "{left:?}"
        );
        if boot().is_some() {
            assert_eq!(remove_leftovers(folder.path()).unwrap().len(), 2);
            assert_eq!(names(folder.path()), ["a.npy"]);
        }
    }

    #[test]
    fn errors_name_the_path_and_the_attempt() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "x").unwrap();
        let error = AtomicFile::create(&folder.path().join("file/a.npy")).unwrap_err();
        assert_eq!(error.attempt, Attempt::Create);
        assert!(error.to_string().contains("file/a.npy"), "{error}");
        fs::create_dir(folder.path().join("taken")).unwrap();
        let error = write_file(&folder.path().join("taken"), b"").unwrap_err();
        assert_eq!(error.attempt, Attempt::Rename);
        assert_eq!(names(folder.path()), ["file", "taken"]);
        assert!(AtomicFile::create(Path::new("/")).is_err());
    }
}
