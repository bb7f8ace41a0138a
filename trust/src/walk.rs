//! The way from the root to a folder, one open folder after the other.

use crate::refusal::{Fault, Refusal};
use crate::user::User;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, mkdirat, open, openat, readlinkat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Symbolic links that are followed on one way, as many as the system itself follows.
const MAX_LINKS: usize = 40;

/// Opens a folder or file of any kind to be looked at and to be walked through; a link itself, not its target.
pub(crate) const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Whose folders are relied on, besides the user's and the system's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owners {
    NobodyElse,
    This(u32),
    Anyone,
}

/// A way to a folder.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'u> {
    pub user: &'u User,
    pub owners: Owners,
    /// Whether folders that do not exist are made, for the user alone.
    pub create: bool,
}

/// A folder at the end of a way that may be relied on.
pub(crate) struct Reached {
    /// To be walked through only.
    pub fd: OwnedFd,
    /// Where it is, without links.
    pub path: PathBuf,
    /// Whether others can make files in it, or in the folder above it.
    pub shared: [bool; 2],
}

impl Walk<'_> {
    /// Goes to an absolute path.
    pub fn to(&self, path: &Path) -> Result<Reached, Refusal> {
        let mut here = self.root()?;
        let mut links = 0;
        // The names still to go, the next one last.
        let mut ahead = Vec::new();
        push(&mut ahead, path);
        while let Some(name) = ahead.pop() {
            let path = match name == ".." {
                true => here.path.parent().unwrap_or(Path::new("/")).to_owned(),
                false => here.path.join(&name),
            };
            let fd = self.open(&here, &name, &path)?;
            let stat = fstat(&fd).map_err(Refusal::io(&path))?;
            self.check_owner(&stat, &path)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(Refusal::at(&path, Fault::Links));
                    }
                    let target = readlinkat(&fd, "", Vec::new()).map_err(Refusal::io(&path))?;
                    let target = Path::new(OsStr::from_bytes(target.as_bytes()));
                    if target.is_absolute() {
                        here = self.root()?;
                    }
                    push(&mut ahead, target);
                }
                FileType::Directory => {
                    let above = here.shared[0];
                    let shared = self.check_folder(&fd, &stat, &path)?;
                    here = Reached {
                        fd,
                        path,
                        shared: [shared, above],
                    };
                }
                _ => return Err(Refusal::at(&path, Fault::NoFolder)),
            }
        }
        Ok(here)
    }

    fn root(&self) -> Result<Reached, Refusal> {
        let path = PathBuf::from("/");
        let fd = open(&path, LOOK, Mode::empty()).map_err(Refusal::io(&path))?;
        let stat = fstat(&fd).map_err(Refusal::io(&path))?;
        self.check_owner(&stat, &path)?;
        let shared = self.check_folder(&fd, &stat, &path)?;
        Ok(Reached {
            fd,
            path,
            shared: [shared, false],
        })
    }

    /// Opens the entry with a name in a folder. A folder that is made here may be replaced before it is opened; it is
    /// checked like any other.
    fn open(&self, folder: &Reached, name: &OsStr, path: &Path) -> Result<OwnedFd, Refusal> {
        match openat(&folder.fd, name, LOOK, Mode::empty()) {
            Err(Errno::NOENT) if self.create && name != ".." => {
                match mkdirat(&folder.fd, name, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(Refusal::io(path)(errno)),
                }
                openat(&folder.fd, name, LOOK, Mode::empty()).map_err(Refusal::io(path))
            }
            opened => opened.map_err(Refusal::io(path)),
        }
    }

    /// Whether the owner of a file, a folder or a link is relied on.
    pub fn check_owner(&self, stat: &Stat, path: &Path) -> Result<(), Refusal> {
        let relied = match self.owners {
            Owners::Anyone => true,
            Owners::This(other) if stat.st_uid == other => true,
            _ => stat.st_uid == self.user.id || stat.st_uid == self.user.system,
        };
        match relied {
            true => Ok(()),
            false => Err(Refusal::at(path, Fault::Owner(stat.st_uid))),
        }
    }

    /// Whether a folder's mode lets no other user replace its entries; true where others can make files in it.
    fn check_folder(&self, fd: &OwnedFd, stat: &Stat, path: &Path) -> Result<bool, Refusal> {
        let sticky = Mode::from_raw_mode(stat.st_mode).contains(Mode::SVTX);
        match self.user.check_writers(fd.as_fd(), stat) {
            Ok(()) => Ok(false),
            Err(_) if sticky => Ok(true),
            Err(fault) => Err(Refusal::at(path, fault)),
        }
    }
}

/// Puts the names of a path on the list of names ahead.
fn push(ahead: &mut Vec<OsString>, path: &Path) {
    let names = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    ahead.extend(names);
}
