//! How much memory a run may take: the free memory of the machine, and the limit of the process's control group.

use std::fs;
use std::path::Path;

/// Memory that can still be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Available {
    pub bytes: u64,
    /// The origin of the bound.
    pub bound: Bound,
}

/// The origin of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The memory of the machine that is free or can be freed.
    Machine,
    /// The limit of a control group: a container or a batch job.
    Group,
}

/// The memory that this process can still take; `None` where the system does not say.
pub fn available() -> Option<Available> {
    available_under(Path::new("/"))
}

/// As [`available`], with another root of the file system.
fn available_under(root: &Path) -> Option<Available> {
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let machine = read("proc/meminfo")
        .and_then(|text| entry(&text, "MemAvailable:"))
        .map(|kib| Available {
            bytes: kib.saturating_mul(1024),
            bound: Bound::Machine,
        });
    let groups = read("proc/self/cgroup").unwrap_or_default();
    groups
        .lines()
        .filter_map(|line| group(root, line))
        .map(|bytes| Available {
            bytes,
            bound: Bound::Group,
        })
        .chain(machine)
        .min_by_key(|a| a.bytes)
}

/// Memory that the group of a line of `/proc/self/cgroup` and the groups above it leave.
fn group(root: &Path, line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let (mount, limit, usage, cached) = match controllers {
        "" => (
            "sys/fs/cgroup",
            "memory.max",
            "memory.current",
            ["file ", "shmem "],
        ),
        c if c.split(',').any(|c| c == "memory") => (
            "sys/fs/cgroup/memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            ["total_cache ", "total_shmem "],
        ),
        _ => return None,
    };
    let mount = root.join(mount);
    let inner = mount.join(path.trim_start_matches('/'));
    inner
        .ancestors()
        .take_while(|folder| folder.starts_with(&mount))
        .filter_map(|folder| {
            let number = |name: &str| -> Option<u64> {
                let text = fs::read_to_string(folder.join(name)).ok()?;
                text.trim().parse().ok()
            };
            let limit = number(limit)?;
            let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
            // Pages of files can be dropped when memory runs short, except those of files that lie in memory only.
            let [cached, kept] = cached.map(|key| entry(&stat, key).unwrap_or(0));
            let cached = cached.saturating_sub(kept);
            let used = number(usage)?.saturating_sub(cached);
            Some(limit.saturating_sub(used))
        })
        .min()
}

/// The number after a key at the start of a line.
fn entry(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The most memory that this process has had, in bytes; `None` where the system does not say.
pub fn peak() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    entry(&text, "VmHWM:").map(|kib| kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_tightest_bound_holds() {
        let root = tree(&[
            (
                "proc/meminfo",
                "MemTotal: 100 kB\nMemAvailable:      64 kB\n",
            ),
            ("proc/self/cgroup", "0::/job/step\n"),
            ("sys/fs/cgroup/job/memory.max", "40000\n"),
            ("sys/fs/cgroup/job/memory.current", "20000\n"),
            (
                "sys/fs/cgroup/job/memory.stat",
                "anon 13000\nfile 7000\nshmem 2000\nfile_mapped 7\n",
            ),
            ("sys/fs/cgroup/job/step/memory.max", "max\n"),
            ("sys/fs/cgroup/job/step/memory.current", "20000\n"),
        ]);
        let found = available_under(root.path()).unwrap();
        assert_eq!((found.bytes, found.bound), (25000, Bound::Group));
    }

    #[test]
    fn without_groups_the_machine_counts() {
        let root = tree(&[
            ("proc/meminfo", "MemAvailable: 64 kB\n"),
            ("proc/self/cgroup", "3:cpu:/\n1:name=systemd:/\n"),
        ]);
        let found = available_under(root.path()).unwrap();
        assert_eq!((found.bytes, found.bound), (65536, Bound::Machine));
        assert_eq!(available_under(Path::new("/nonexistent")), None);
    }

    #[test]
    fn the_older_hierarchy_is_read_too() {
        let root = tree(&[
            ("proc/self/cgroup", "4:memory,hugetlb:/docker/a\n"),
            (
                "sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes",
                "9000\n",
            ),
            (
                "sys/fs/cgroup/memory/docker/a/memory.usage_in_bytes",
                "4000\n",
            ),
            (
                "sys/fs/cgroup/memory/docker/a/memory.stat",
                "cache 9\ntotal_cache 1500\ntotal_shmem 500\n",
            ),
        ]);
        let found = available_under(root.path()).unwrap();
        assert_eq!((found.bytes, found.bound), (6000, Bound::Group));
    }
}
