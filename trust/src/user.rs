//! The user, and the other users who may write to a place.

use crate::refusal::{Fault, Refusal};
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::fs::{Mode, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// `/etc/passwd` and `/etc/group` are read up to here.
const MAX_ACCOUNT_BYTES: u64 = 16 << 20;

/// The folder for caches: `$XDG_CACHE_HOME`, or `.cache` below `$HOME`. Relative paths do not count.
pub fn cache_home() -> Result<PathBuf, Refusal> {
    let absolute = |name| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .ok_or(Refusal::NoHome)
}

/// The user on whose behalf the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub id: u32,
    /// The ID that files of the system have here.
    pub system: u32,
}

impl User {
    /// The user of this process. A process with the rights of another user than the one who started it relies on
    /// nothing, since its environment is not that user's.
    pub fn of_process() -> Result<User, Refusal> {
        use rustix::process::{getegid, geteuid, getgid, getuid};
        if getuid() != geteuid() || getgid() != getegid() {
            return Err(Refusal::Process(
                "has the rights of another user than the one who started it (setuid or setgid)",
            ));
        }
        let read = |path: &str| std::fs::read_to_string(path).ok();
        // Without `/proc` there are no user namespaces to be found out.
        let map = read("/proc/self/uid_map").map(|text| IdMap::parse(&text));
        let overflow = read("/proc/sys/fs/overflowuid").and_then(|text| text.trim().parse().ok());
        Self::in_namespace(geteuid().as_raw(), map.as_ref(), overflow.unwrap_or(65534))
    }

    /// The user with an ID in a namespace with this map (`None`: all IDs are as they are). IDs without an entry are
    /// all shown as `overflow`.
    fn in_namespace(id: u32, map: Option<&IdMap>, overflow: u32) -> Result<User, Refusal> {
        let mapped = |id| map.is_none_or(|map| map.contains(id));
        if !mapped(id) {
            return Err(Refusal::Process(
                "runs in a user namespace that does not know its user",
            ));
        }
        // In containers that map one user only, the system's files belong to the overflow ID.
        let system = match mapped(0) || mapped(overflow) {
            true => 0,
            false => overflow,
        };
        Ok(User { id, system })
    }

    /// Whether only its owner can write to an open file or folder, according to its mode.
    pub fn check_writers(&self, fd: BorrowedFd<'_>, stat: &Stat) -> Result<(), Fault> {
        let mode = Mode::from_raw_mode(stat.st_mode);
        if mode.contains(Mode::WOTH) {
            return Err(Fault::Everyone);
        }
        if mode.contains(Mode::WGRP) && (!self.is_alone_in(stat.st_gid) || has_list(fd)) {
            return Err(Fault::Group(stat.st_gid));
        }
        Ok(())
    }

    /// Whether a group has the user as its only member.
    fn is_alone_in(&self, group: u32) -> bool {
        static ACCOUNTS: OnceLock<Option<[String; 2]>> = OnceLock::new();
        let accounts = ACCOUNTS.get_or_init(|| Some([text("/etc/passwd")?, text("/etc/group")?]));
        accounts
            .as_ref()
            .is_some_and(|[users, groups]| is_private(self.id, group, users, groups))
    }
}

/// A text of the system, or nothing where it cannot be read or is too long.
fn text(path: &str) -> Option<String> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    let bytes = file.take(MAX_ACCOUNT_BYTES + 1).read_to_string(&mut text);
    (bytes.ok()? as u64 <= MAX_ACCOUNT_BYTES).then_some(text)
}

/// Whether a group is the one that many systems make for each user: with the user's name, as the user's own group,
/// without members, and no other user's own group. `users` and `groups` are texts like `/etc/passwd` and `/etc/group`.
/// A group of a user who is not in these files is not taken for private: its other members are not known.
fn is_private(user: u32, group: u32, users: &str, groups: &str) -> bool {
    let mut name = None;
    for line in users.lines() {
        // name:password:user:group:...
        let fields: Vec<&str> = line.split(':').collect();
        let &[account, _, id, primary, ..] = fields.as_slice() else {
            continue;
        };
        let same = id.parse() == Ok(user);
        match primary.parse() == Ok(group) {
            true if same => name = Some(account),
            true => return false,
            false if same => return false,
            false => {}
        }
    }
    let Some(name) = name else {
        return false;
    };
    let mut found = false;
    for line in groups.lines() {
        // name:password:group:members
        let fields: Vec<&str> = line.split(':').collect();
        let &[account, _, id, members] = fields.as_slice() else {
            continue;
        };
        if id.parse() == Ok(group) {
            let mut members = members.split(',').map(str::trim);
            if account != name || members.any(|member| !member.is_empty() && member != name) {
                return false;
            }
            found = true;
        }
    }
    found
}

/// Whether a file has an access control list, or may have one that cannot be seen.
fn has_list(fd: BorrowedFd<'_>) -> bool {
    // The descriptor may be one that can only be walked through, on which attributes cannot be read.
    let path = Path::new("/proc/self/fd").join(fd.as_raw_fd().to_string());
    match rustix::fs::getxattr_query(path, "system.posix_acl_access") {
        Err(errno) => errno != Errno::NODATA && errno != Errno::OPNOTSUPP,
        Ok(_) => true,
    }
}

/// Ranges of user IDs that a namespace knows: first ID and number of IDs.
struct IdMap(Vec<(u32, u32)>);

impl IdMap {
    /// Reads `/proc/self/uid_map`: first ID inside, first ID outside, number of IDs.
    fn parse(text: &str) -> Self {
        let range = |line: &str| {
            let mut fields = line.split_whitespace().map(str::parse);
            let (first, _, count) = (fields.next()?.ok()?, fields.next()?, fields.next()?.ok()?);
            Some((first, count))
        };
        Self(text.lines().filter_map(range).collect())
    }

    fn contains(&self, id: u32) -> bool {
        let inside = |&(first, count): &(u32, u32)| id >= first && id - first < count;
        self.0.iter().any(inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_group_has_one_member() {
        let users = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n\
                     bob:x:1001:100::/home/bob:/bin/sh\neve:x:1002:1002::/:/bin/sh\nmal:x:1003:1002::/:/bin/sh\n";
        let groups = "root:x:0:\nann:x:1000:\nusers:x:100:\neve:x:1002:\n";
        assert!(is_private(1000, 1000, users, groups));
        // Not the user's own group, a group of another name, one with a second user, an unknown user.
        assert!(!is_private(1000, 100, users, groups));
        assert!(!is_private(1001, 100, users, groups));
        assert!(!is_private(1002, 1002, users, groups));
        assert!(!is_private(2000, 2000, users, groups));
        let members = "ann:x:1000:bob\n";
        assert!(!is_private(1000, 1000, users, members));
        assert!(is_private(1000, 1000, users, "ann:x:1000:ann\n"));
        // The same ID a second time, with members.
        let twice = format!("{groups}ann:x:1000:eve\n");
        assert!(!is_private(1000, 1000, users, &twice));
        assert!(!is_private(1000, 1000, users, ""));
    }

    #[test]
    fn the_system_is_known_in_namespaces_too() {
        let user = |id, map: &str| User::in_namespace(id, Some(&IdMap::parse(map)), 65534);
        let whole = "         0          0 4294967295\n";
        assert_eq!(
            user(1000, whole),
            Ok(User {
                id: 1000,
                system: 0
            })
        );
        assert_eq!(
            user(65534, whole),
            Ok(User {
                id: 65534,
                system: 0
            })
        );
        // A container of one user: as root, and as oneself.
        assert_eq!(user(0, "0 1000 1\n"), Ok(User { id: 0, system: 0 }));
        let alone = Ok(User {
            id: 1000,
            system: 65534,
        });
        assert_eq!(user(1000, "1000 1000 1\n"), alone);
        let ranges = "0 1000 1\n1 100000 65536\n";
        assert_eq!(user(65534, ranges).map(|user| user.system), Ok(0));
        // No user is mapped: files of all users look like files of this one.
        assert!(user(65534, "").is_err() && user(65534, "0 1000 1\n").is_err());
        assert!(User::in_namespace(7, None, 65534).is_ok());
    }
}
