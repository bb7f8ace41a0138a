//! Files that a folder of Torre's own takes, and files that it refuses.

use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;
use torre_trust::{Fault, Folder, Refusal};

/// An unused user ID.
const FOREIGN: u32 = 54321;

const NONE: Duration = Duration::ZERO;

/// A folder that is the user's alone, and its path without links.
fn scratch() -> (TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(scratch.path()).unwrap();
    (scratch, path)
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// Gives a file to another user; false, with a word about it, where only root could.
fn give_away(path: &Path) -> bool {
    let given = chown(path, Some(FOREIGN), None).is_ok();
    if !given {
        println!("skipped: files of other users, which need the rights of root");
    }
    given
}

#[track_caller]
fn fault<T: std::fmt::Debug>(result: Result<T, Refusal>, at: &Path) -> Fault {
    match result {
        Err(Refusal::Place { path, fault }) => {
            assert_eq!(path, at);
            fault
        }
        other => panic!("{} is expected to be refused, not {other:?}", at.display()),
    }
}

fn text(folder: &Folder, name: &str) -> Result<String, Refusal> {
    let (_, bytes) = folder.read(name, 1000)?;
    Ok(String::from_utf8(bytes).unwrap())
}

#[test]
fn what_is_made_is_for_the_user_alone() {
    let (_scratch, base) = scratch();
    let folder = Folder::below(&base.join("a/b"), &["torre", "objects"]).unwrap();
    assert_eq!(folder.path(), base.join("a/b/torre/objects"));
    folder.write("x", b"one").unwrap();
    folder.write("x", b"two").unwrap();
    assert_eq!(text(&folder, "x").unwrap(), "two");
    for made in ["a", "a/b", "a/b/torre", "a/b/torre/objects"] {
        assert_eq!(mode(&base.join(made)), 0o700, "{made}");
    }
    assert_eq!(mode(&folder.path().join("x")), 0o600);
    let names: Vec<String> = folder
        .entries()
        .unwrap()
        .into_iter()
        .map(|e| e.name)
        .collect();
    assert_eq!(names, ["x"]);
    folder.remove("x").unwrap();
    assert!(folder.entries().unwrap().is_empty());
    // A folder that others could read is closed to them.
    chmod(&base.join("a/b/torre"), 0o755);
    Folder::below(&base.join("a/b"), &["torre"]).unwrap();
    assert_eq!(mode(&base.join("a/b/torre")), 0o700);
}

#[test]
fn the_way_to_a_folder_is_the_users_and_the_systems() {
    let (_scratch, base) = scratch();
    let inner = base.join("inner");
    let open = || Folder::below(&inner, &["torre"]);
    open().unwrap();
    for (path, others, expected) in [
        (&base, 0o777, Fault::Everyone),
        (&base, 0o702, Fault::Everyone),
        (&inner, 0o777, Fault::Everyone),
        (&inner.join("torre"), 0o777, Fault::Everyone),
        // An entry that was planted while it was open stays refused: it does not help to be sticky.
        (&inner.join("torre"), 0o1777, Fault::Everyone),
    ] {
        chmod(path, others);
        assert_eq!(fault(open(), path), expected);
        chmod(path, 0o700);
    }
    // As below `/tmp`: others cannot replace files of the user.
    chmod(&inner, 0o1777);
    open().unwrap();
    chmod(&inner, 0o700);
    open().unwrap();
    for path in [&base, &inner, &inner.join("torre")] {
        if give_away(path) {
            assert_eq!(fault(open(), path), Fault::Owner(FOREIGN));
            chown(path, Some(rustix::process::geteuid().as_raw()), None).unwrap();
        }
    }
    // A file in the place of a folder.
    fs::write(base.join("file"), "").unwrap();
    let below = Folder::below(&base.join("file"), &["torre"]);
    assert_eq!(fault(below, &base.join("file")), Fault::NoFolder);
    assert_eq!(
        fault(Folder::below(&base, &["file"]), &base.join("file")),
        Fault::NoFolder
    );
    for name in ["", ".", "..", "../torre", "inner/torre"] {
        assert!(Folder::below(&base, &[name]).is_err(), "{name}");
        assert!(open().unwrap().write(name, b"").is_err(), "{name}");
    }
}

#[test]
fn a_group_that_may_write_is_another_user() {
    let (_scratch, base) = scratch();
    // Not the private group of a user.
    if chown(&base, None, Some(FOREIGN)).is_err() {
        return println!("skipped: groups of others, which need the rights of root");
    }
    chmod(&base, 0o770);
    assert_eq!(
        fault(Folder::below(&base, &["torre"]), &base),
        Fault::Group(FOREIGN)
    );
    chmod(&base, 0o750);
    Folder::below(&base, &["torre"]).unwrap();
}

#[test]
fn a_user_of_an_access_control_list_is_another_user() {
    let (_scratch, base) = scratch();
    // Where the group is the user's alone, it counts as the user.
    chmod(&base, 0o770);
    if Folder::below(&base, &["torre"]).is_err() {
        return println!("skipped: the group of this user has other members");
    }
    // Entries: tag, permissions, ID. The mask (16) gives the user 54321 (tag 2) the permissions of the group in the
    // mode.
    let anyone = u32::MAX;
    let entries = [
        (1, 7, anyone),
        (2, 7, FOREIGN),
        (4, 0, anyone),
        (16, 7, anyone),
        (32, 0, anyone),
    ];
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend([tag, 0, permissions, 0]);
        list.extend(u32::to_le_bytes(id));
    }
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(&base, "system.posix_acl_access", &list, flags).is_err() {
        return println!("skipped: no access control lists on this disk");
    }
    assert_eq!(mode(&base), 0o770);
    let group = fs::metadata(&base).unwrap().gid();
    assert_eq!(
        fault(Folder::below(&base, &["torre"]), &base),
        Fault::Group(group)
    );
}

#[test]
fn links_are_followed_above_the_own_folders_only() {
    let (_scratch, base) = scratch();
    let real = base.join("disk/cache");
    fs::create_dir_all(&real).unwrap();
    symlink("disk/cache", base.join("relative")).unwrap();
    symlink(&real, base.join("absolute")).unwrap();
    symlink("../base/../relative", base.join("disk/up")).unwrap();
    symlink(&base, base.join("base")).unwrap();
    for link in ["relative", "absolute", "base/disk/../relative"] {
        let folder = Folder::below(&base.join(link), &["torre"]).unwrap();
        assert_eq!(folder.path(), real.join("torre"), "{link}");
    }
    symlink("round", base.join("round")).unwrap();
    let round = Folder::below(&base.join("round"), &["torre"]);
    assert_eq!(fault(round, &base.join("round")), Fault::Links);
    // A link through a folder of others', and a link of others'.
    chmod(&base.join("disk"), 0o777);
    assert_eq!(
        fault(
            Folder::below(&base.join("relative"), &["torre"]),
            &base.join("disk")
        ),
        Fault::Everyone
    );
    chmod(&base.join("disk"), 0o755);
    if std::os::unix::fs::lchown(base.join("relative"), Some(FOREIGN), None).is_ok() {
        let foreign = Folder::below(&base.join("relative"), &["torre"]);
        assert_eq!(
            fault(foreign, &base.join("relative")),
            Fault::Owner(FOREIGN)
        );
    }
    // The own folder, and a file in it.
    symlink(&real, base.join("torre")).unwrap();
    assert_eq!(
        fault(Folder::below(&base, &["torre"]), &base.join("torre")),
        Fault::Link
    );
    let folder = Folder::below(&real, &["torre"]).unwrap();
    let file = base.join("file");
    fs::write(&file, "precious").unwrap();
    symlink(&file, folder.path().join("link")).unwrap();
    let link = folder.path().join("link");
    assert_eq!(fault(folder.open("link"), &link), Fault::Link);
    assert_eq!(fault(folder.lock("link", NONE), &link), Fault::Link);
    assert!(folder.entries().unwrap().is_empty());
    // Writing replaces the link, and not its target.
    folder.write("link", b"own").unwrap();
    assert_eq!(text(&folder, "link").unwrap(), "own");
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn files_that_others_may_have_written_are_refused() {
    let (_scratch, base) = scratch();
    let folder = Folder::below(&base, &["torre"]).unwrap();
    let path = folder.path().join("x");
    let open = || folder.open("x");
    folder.write("x", b"own").unwrap();
    for (others, expected) in [(0o602, Fault::Everyone), (0o666, Fault::Everyone)] {
        chmod(&path, others);
        assert_eq!(fault(open(), &path), expected);
    }
    chmod(&path, 0o600);
    open().unwrap();
    // A file that is planted by a link to another of the user's.
    let other = base.join("other");
    fs::hard_link(&path, &other).unwrap();
    assert_eq!(fault(open(), &path), Fault::Names);
    fs::remove_file(other).unwrap();
    open().unwrap();
    if give_away(&path) {
        assert_eq!(fault(open(), &path), Fault::Owner(FOREIGN));
        assert!(folder.entries().unwrap().is_empty());
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(fault(open(), &path), Fault::NoFile);
    assert!(folder.write("x", b"").is_err());
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "no temporary file stays"
    );
    // Everything is refused once the folder is open to others.
    folder.write("y", b"").unwrap();
    chmod(folder.path(), 0o777);
    let at = folder.path();
    assert_eq!(fault(folder.open("y"), at), Fault::Everyone);
    assert_eq!(fault(folder.write("z", b""), at), Fault::Everyone);
    assert_eq!(fault(folder.entries(), at), Fault::Everyone);
    assert_eq!(fault(folder.lock("l", NONE), at), Fault::Everyone);
}

#[test]
fn pipes_and_large_files_do_not_hold_it_up() {
    let (_scratch, base) = scratch();
    let folder = Folder::below(&base, &["torre"]).unwrap();
    let pipe = folder.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let start = Instant::now();
    assert_eq!(fault(folder.open("pipe"), &pipe), Fault::NoFile);
    assert_eq!(fault(folder.lock("pipe", NONE), &pipe), Fault::NoFile);
    assert!(folder.entries().unwrap().is_empty());
    // A file of 1 TB without content.
    let large = folder.path().join("large");
    File::create(&large).unwrap().set_len(1 << 40).unwrap();
    chmod(&large, 0o600);
    assert_eq!(
        fault(folder.read("large", 1000), &large),
        Fault::Size(1 << 40)
    );
    assert!(start.elapsed() < Duration::from_secs(5));
    folder.write("large", &[7; 1000]).unwrap();
    assert_eq!(folder.read("large", 1000).unwrap().1, [7; 1000]);
    assert_eq!(fault(folder.read("large", 999), &large), Fault::Size(1000));
}

#[test]
fn temporary_files_that_nobody_writes_are_removed() {
    let (_scratch, base) = scratch();
    let folder = Folder::below(&base, &["torre"]).unwrap();
    for name in [".x.1.0", ".x.1.1", ".y.1.0", ".bashrc", "x"] {
        let file = File::create(folder.path().join(name)).unwrap();
        let age = if name == ".x.1.1" { 10 } else { 1000 };
        file.set_modified(SystemTime::now() - Duration::from_secs(age))
            .unwrap();
    }
    let age = Duration::from_secs(100);
    folder.remove_abandoned(|name| name == "x", age).unwrap();
    let mut left: Vec<String> = folder
        .entries()
        .unwrap()
        .into_iter()
        .map(|e| e.name)
        .collect();
    left.sort();
    assert_eq!(left, [".bashrc", ".x.1.1", ".y.1.0", "x"]);
}

#[test]
fn a_lock_has_one_holder() {
    let (_scratch, base) = scratch();
    let one = Folder::below(&base, &["torre"]).unwrap();
    let two = Folder::below(&base, &["torre"]).unwrap();
    let held = one.lock("lock", NONE).unwrap();
    let path = one.path().join("lock");
    assert_eq!(fault(two.lock("lock", NONE), &path), Fault::Locked);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| two.lock("lock", Duration::from_secs(60)).map(drop));
        drop(held);
        waiting.join().unwrap().unwrap();
    });
}

/// Swaps two names as fast as possible while another thread uses one of them.
fn while_swapping(a: &Path, b: &Path, work: impl FnOnce()) {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let swaps = scope.spawn(|| {
            let mut swaps = 0;
            while !ended.load(Ordering::Relaxed) || swaps < 100 {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(CWD, a, CWD, b, flags).unwrap();
                swaps += 1;
            }
            swaps
        });
        work();
        ended.store(true, Ordering::Relaxed);
        println!("{} swaps", swaps.join().unwrap());
    });
}

/// Fills a folder below `base` with a file that must never be read, and returns the folder that `base` stands for.
fn planted(base: &Path, kind: &str) -> Option<()> {
    let real = match kind {
        "link" => base.with_extension("real"),
        _ => base.to_owned(),
    };
    let folder = Folder::below(&real, &["objects"]).unwrap();
    folder.write("x", b"foreign").unwrap();
    match kind {
        "link" => symlink(&real, base).unwrap(),
        "open" => chmod(&real, 0o777),
        "open inside" => chmod(folder.path(), 0o777),
        "foreign" => give_away(&real).then_some(())?,
        _ => give_away(&folder.path().join("x")).then_some(())?,
    }
    Some(())
}

#[test]
fn a_folder_that_is_swapped_on_the_way_is_never_used_unchecked() {
    for kind in ["link", "open", "open inside", "foreign", "foreign file"] {
        let (_scratch, base) = scratch();
        let (own, other) = (base.join("torre"), base.join("other"));
        Folder::below(&base, &["torre", "objects"])
            .unwrap()
            .write("x", b"own")
            .unwrap();
        if planted(&other, kind).is_none() {
            continue;
        }
        let (mut found, mut refused, mut foreign) = (0, 0, 0);
        while_swapping(&own, &other, || {
            let end = Instant::now() + Duration::from_secs(20);
            let mut tries = 0;
            // Both must have come up, so that it is known that the swaps were met.
            while tries < 300 || (found == 0 || refused == 0) && Instant::now() < end {
                tries += 1;
                let read = Folder::below(&base, &["torre", "objects"])
                    .and_then(|folder| text(&folder, "x"));
                match read {
                    Ok(text) if text == "own" => found += 1,
                    Ok(_) => foreign += 1,
                    Err(_) => refused += 1,
                }
            }
        });
        println!("{kind}: {found} found, {refused} refused");
        assert_eq!(foreign, 0, "{kind}");
        assert!(found > 0 && refused > 0, "{kind}: {found}, {refused}");
    }
}

#[test]
fn a_folder_that_is_swapped_later_is_not_noticed() {
    let (_scratch, base) = scratch();
    let folder = Folder::below(&base, &["torre"]).unwrap();
    folder.write("x", b"own").unwrap();
    let foreign = base.join("foreign");
    fs::create_dir(&foreign).unwrap();
    for name in ["x", "y"] {
        fs::write(foreign.join(name), "foreign").unwrap();
    }
    fs::rename(base.join("torre"), base.join("moved")).unwrap();
    symlink(&foreign, base.join("torre")).unwrap();
    assert_eq!(text(&folder, "x").unwrap(), "own");
    assert!(folder.open("y").is_err() && folder.remove("y").is_err());
    folder.write("z", b"new").unwrap();
    folder.remove("x").unwrap();
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 2);
    let mut moved = String::new();
    let mut file = File::open(base.join("moved/z")).unwrap();
    file.read_to_string(&mut moved).unwrap();
    assert_eq!(moved, "new");
}
