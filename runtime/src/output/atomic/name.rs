//! Temporary names, and operations on the folders around them.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// How temporary names end.
pub const SUFFIX: &str = ".part";

/// New temporary names that are tried: the ID of a process may be that of one in another container.
pub const ATTEMPTS: usize = 100;

/// `NAME.BOOT-PID-N.part` beside `target`, new with each call.
pub fn temporary_name(target: &Path) -> io::Result<PathBuf> {
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
pub fn boot() -> Option<&'static str> {
    static BOOT: OnceLock<Option<String>> = OnceLock::new();
    BOOT.get_or_init(|| {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        id.get(..8).map(str::to_owned)
    })
    .as_deref()
}

pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

pub fn make_parent(path: &Path) -> io::Result<()> {
    make_folder(parent(path))
}

/// Makes a folder with all folders above it, where there are none. Where one of them is a file, or a link without a
/// target, the error names it.
pub fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path).map_err(|error| {
        let fault = |path: &Path| match path.metadata() {
            Ok(found) if !found.is_dir() => Some("is a file and no folder"),
            Err(_) if path.is_symlink() => Some("is a symbolic link that leads nowhere"),
            _ => None,
        };
        let mut faults = path
            .ancestors()
            .filter_map(|path| Some((path, fault(path)?)));
        match faults.next() {
            Some((path, fault)) => {
                let message = format!("`{}` {fault}", path.display());
                io::Error::new(io::ErrorKind::NotADirectory, message)
            }
            None => error,
        }
    })
}

pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// For clean-up on a path that already reports an error, or in `drop`, where nothing can be reported.
pub fn discard<T>(_: io::Result<T>) {}
