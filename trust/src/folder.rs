//! A folder of Torre's own, opened once and used through its descriptor.

use crate::refusal::{Fault, Refusal};
use crate::user::{User, cache_home};
use crate::walk::{LOOK, Owners, Walk};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat, fchmod, flock, fstat, mkdirat,
    openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Opens a file of the folder. One that is a pipe in disguise is not waited for.
const OPEN: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// For the user alone.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// The permissions of all but the owner.
const OTHERS: Mode = Mode::RWXG.union(Mode::RWXO);

/// New temporary names that are tried: the ID of a process may be that of one in another container.
const ATTEMPTS: usize = 100;

/// A folder that only the user can read and change.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    /// Without links.
    path: PathBuf,
    user: User,
}

/// A regular file of the user's in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub bytes: u64,
    pub modified: SystemTime,
}

/// A lock that no other process has; given back when dropped, or when the process ends.
#[derive(Debug)]
pub struct Lock(
    #[expect(dead_code, reason = "the lock lasts as long as the file is open")] OwnedFd,
);

impl Folder {
    /// The folder with these names, one below the other, in the user's folder for caches. It is made if need be.
    pub fn of_user(names: &[&str]) -> Result<Self, Refusal> {
        Self::below(&cache_home()?, names)
    }

    /// The folder with these names, one below the other, below `base`, which may be reached through links of the
    /// user's. Missing folders are made.
    pub fn below(base: &Path, names: &[&str]) -> Result<Self, Refusal> {
        let user = User::of_process()?;
        let walk = Walk {
            user: &user,
            owners: Owners::NobodyElse,
            create: true,
        };
        let base = std::path::absolute(base).map_err(|error| Refusal::from_std(base, &error))?;
        let reached = walk.to(&base)?;
        let (mut fd, mut path) = (reached.fd, reached.path);
        for name in names {
            path.push(check_name(name, &path)?);
            fd = own(&user, &fd, name, &path)?;
        }
        let folder = Self { fd, path, user };
        folder.check()?;
        Ok(folder)
    }

    /// Where the folder was when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file for reading, if no other user can have written it.
    pub fn open(&self, name: &str) -> Result<File, Refusal> {
        self.check()?;
        let path = self.path.join(check_name(name, &self.path)?);
        let flags = OPEN | OFlags::RDONLY;
        let fd =
            openat(&self.fd, name, flags, Mode::empty()).map_err(|errno| self.at(&path, errno))?;
        self.check_file(&fd, &path)?;
        Ok(fd.into())
    }

    /// Reads a file of at most `limit` bytes, as [`Folder::open`] opens it.
    pub fn read(&self, name: &str, limit: u64) -> Result<(File, Vec<u8>), Refusal> {
        let file = self.open(name)?;
        let path = self.path.join(name);
        let size = file
            .metadata()
            .map_err(|error| Refusal::from_std(&path, &error))?
            .len();
        if size > limit {
            return Err(Refusal::at(&path, Fault::Size(size)));
        }
        let mut bytes = Vec::with_capacity(size as usize);
        // It may grow meanwhile.
        (&file)
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| Refusal::from_std(&path, &error))?;
        match bytes.len() as u64 > limit {
            true => Err(Refusal::at(&path, Fault::Size(bytes.len() as u64))),
            false => Ok((file, bytes)),
        }
    }

    /// Writes a file that appears under its name when it is complete. The disk is not waited for, unlike for a result:
    /// readers of the file have to check whether it is whole.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Refusal> {
        self.check()?;
        let path = self.path.join(check_name(name, &self.path)?);
        let (temporary, mut file) = self.temporary(name, &path)?;
        let written = file
            .write_all(bytes)
            .map_err(|error| Refusal::from_std(&path, &error))
            .and_then(|()| {
                renameat(&self.fd, &temporary, &self.fd, name).map_err(Refusal::io(&path))
            });
        if written.is_err() {
            // Nothing more can be done about a file that stays; it is removed some time later.
            let _ = unlinkat(&self.fd, &temporary, AtFlags::empty());
        }
        written
    }

    /// A new file for the content of another.
    fn temporary(&self, name: &str, path: &Path) -> Result<(String, File), Refusal> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut failed = Errno::EXIST;
        for _ in 0..ATTEMPTS {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let temporary = format!(".{name}.{}.{count}", process::id());
            let flags = OPEN | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            match openat(&self.fd, &temporary, flags, FILE_MODE) {
                Ok(fd) => return Ok((temporary, fd.into())),
                Err(errno) => failed = errno,
            }
            if failed != Errno::EXIST {
                break;
            }
        }
        Err(Refusal::io(path)(failed))
    }

    /// The regular files of the user's; other entries of the folder are not listed.
    pub fn entries(&self) -> Result<Vec<Entry>, Refusal> {
        self.check()?;
        let mut found = Vec::new();
        for entry in Dir::read_from(&self.fd).map_err(Refusal::io(&self.path))? {
            let entry = entry.map_err(Refusal::io(&self.path))?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            // Another process has removed an entry that vanishes meanwhile.
            let Ok(stat) = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            if regular && stat.st_uid == self.user.id {
                found.push(Entry {
                    name: name.to_owned(),
                    bytes: stat.st_size as u64,
                    modified: modified(&stat),
                });
            }
        }
        Ok(found)
    }

    /// Removes temporary files that no process writes any more: files that would have become a file with a name that is
    /// `mine`, and were not written to for `age`.
    pub fn remove_abandoned(
        &self,
        mine: impl Fn(&str) -> bool,
        age: Duration,
    ) -> Result<(), Refusal> {
        let now = SystemTime::now();
        for entry in self.entries()? {
            let old = now.duration_since(entry.modified).is_ok_and(|a| a > age);
            if old && temporary_of(&entry.name).is_some_and(&mine) {
                // Another process has removed a file that vanishes meanwhile.
                let _ = self.remove(&entry.name);
            }
        }
        Ok(())
    }

    /// Removes a name from the folder.
    pub fn remove(&self, name: &str) -> Result<(), Refusal> {
        let path = self.path.join(check_name(name, &self.path)?);
        unlinkat(&self.fd, name, AtFlags::empty()).map_err(Refusal::io(&path))
    }

    /// Waits until no other process has the lock of this name, but no longer than `patience`. The lock is a file that
    /// stays in the folder.
    pub fn lock(&self, name: &str, patience: Duration) -> Result<Lock, Refusal> {
        self.check()?;
        let path = self.path.join(check_name(name, &self.path)?);
        let flags = OPEN | OFlags::RDWR | OFlags::CREATE;
        let fd = openat(&self.fd, name, flags, FILE_MODE).map_err(|errno| self.at(&path, errno))?;
        self.check_file(&fd, &path)?;
        let start = Instant::now();
        loop {
            match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock(fd)),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) if start.elapsed() >= patience => {
                    return Err(Refusal::at(&path, Fault::Locked));
                }
                Err(Errno::WOULDBLOCK) => thread::sleep(Duration::from_millis(10)),
                Err(errno) => return Err(Refusal::io(&path)(errno)),
            }
        }
    }

    /// Whether the folder is still the user's alone.
    fn check(&self) -> Result<(), Refusal> {
        let stat = fstat(&self.fd).map_err(Refusal::io(&self.path))?;
        self.check_user(&stat, &self.path)?;
        self.user
            .check_writers(self.fd.as_fd(), &stat)
            .map_err(|fault| Refusal::at(&self.path, fault))
    }

    /// Whether an open file is a regular one of the user's, with one name, which no other user can have written.
    fn check_file(&self, fd: &OwnedFd, path: &Path) -> Result<(), Refusal> {
        let stat = fstat(fd).map_err(Refusal::io(path))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Refusal::at(path, Fault::NoFile));
        }
        self.check_user(&stat, path)?;
        self.user
            .check_writers(fd.as_fd(), &stat)
            .map_err(|fault| Refusal::at(path, fault))?;
        match stat.st_nlink {
            1 => Ok(()),
            _ => Err(Refusal::at(path, Fault::Names)),
        }
    }

    fn check_user(&self, stat: &Stat, path: &Path) -> Result<(), Refusal> {
        match stat.st_uid == self.user.id {
            true => Ok(()),
            false => Err(Refusal::at(path, Fault::Owner(stat.st_uid))),
        }
    }

    /// A failed opening, which for a link is known by its number.
    fn at(&self, path: &Path, errno: Errno) -> Refusal {
        match errno {
            Errno::LOOP => Refusal::at(path, Fault::Link),
            // A pipe or a socket without a listener.
            Errno::NXIO => Refusal::at(path, Fault::NoFile),
            errno => Refusal::io(path)(errno),
        }
    }
}

/// Opens a folder of the user's own, which is made if need be and closed to all others.
fn own(user: &User, above: &OwnedFd, name: &str, path: &Path) -> Result<OwnedFd, Refusal> {
    match mkdirat(above, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(Refusal::io(path)(errno)),
    }
    let found = openat(above, name, LOOK, Mode::empty()).map_err(Refusal::io(path))?;
    let stat = fstat(&found).map_err(Refusal::io(path))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => {}
        FileType::Symlink => return Err(Refusal::at(path, Fault::Link)),
        _ => return Err(Refusal::at(path, Fault::NoFolder)),
    }
    if stat.st_uid != user.id {
        return Err(Refusal::at(path, Fault::Owner(stat.st_uid)));
    }
    // Where others could write, they may have left something.
    user.check_writers(found.as_fd(), &stat)
        .map_err(|fault| Refusal::at(path, fault))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = openat(&found, ".", flags, Mode::empty()).map_err(Refusal::io(path))?;
    if Mode::from_raw_mode(stat.st_mode).intersects(OTHERS) {
        // A file system without modes stays as it is.
        let _ = fchmod(&fd, Mode::RWXU);
    }
    Ok(fd)
}

/// A name that cannot lead out of its folder.
fn check_name<'a>(name: &'a str, folder: &Path) -> Result<&'a str, Refusal> {
    match name.is_empty() || name.contains('/') || name == "." || name == ".." {
        true => Err(Refusal::at(&folder.join(name), Fault::NoFile)),
        false => Ok(name),
    }
}

/// The name of the file that a temporary file would have become.
fn temporary_of(name: &str) -> Option<&str> {
    let (rest, count) = name.strip_prefix('.')?.rsplit_once('.')?;
    let (name, process) = rest.rsplit_once('.')?;
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (number(count) && number(process) && !name.is_empty()).then_some(name)
}

#[allow(
    clippy::unnecessary_cast,
    reason = "the types differ between processors"
)]
fn modified(stat: &Stat) -> SystemTime {
    let seconds = Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0));
    let rest = Duration::from_nanos(stat.st_mtime_nsec as u64);
    SystemTime::UNIX_EPOCH + seconds + rest
}

#[cfg(test)]
mod tests {
    use super::temporary_of;

    #[test]
    fn temporary_files_are_told_by_their_names() {
        assert_eq!(temporary_of(".a.object.12.0"), Some("a.object"));
        let others = [
            "a.object", ".a", ".bashrc", ".a.12", ".a.x.0", ".a.1.", "..1.0", "a.1.0",
        ];
        for other in others {
            assert_eq!(temporary_of(other), None, "{other}");
        }
    }
}
