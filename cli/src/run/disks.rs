//! Whether the states of a run fit on their disks.

use super::Run;
use crate::codes;
use crate::failure::Failure;
use crate::report::{bytes, bytes_up};
use std::path::Path;
use torre_compiler::layout::Layout;
use torre_grammar::diag::Diagnostic;
use torre_runtime::disk::{self, DiskSpace};
use torre_runtime::run::checkpoint;
use torre_runtime::simulation::Value;

/// Files that a run will write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Files<'a> {
    folder: &'a Path,
    name: &'static str,
    /// The verb of a sentence about one kind of them.
    take: &'static str,
    bytes: u64,
    /// Bytes of files that they take the place of.
    replaced: u64,
}

/// Why files do not fit: the sentence.
fn lack<'a>(files: &[Files<'a>], space: impl Fn(&Path) -> Option<DiskSpace>) -> Option<String> {
    let found = |files: &Files<'a>| Some((*files, space(files.folder)?));
    let found: Vec<(Files<'a>, DiskSpace)> = files.iter().filter_map(found).collect();
    found.iter().find_map(|(first, space)| {
        let beside = found.iter().filter(|(_, other)| other.disk == space.disk);
        let all: Vec<&Files<'_>> = beside.map(|(files, _)| files).collect();
        let sum =
            |of: fn(&Files<'_>) -> u64| all.iter().fold(0, |n: u64, f| n.saturating_add(of(f)));
        let needed = sum(|files| files.bytes);
        let available = space.free.saturating_add(sum(|files| files.replaced));
        let said = match all[..] {
            [one] => format!("{} {} {}", one.name, one.take, bytes_up(needed)),
            _ => {
                let names: Vec<&str> = all.iter().map(|files| files.name).collect();
                format!("{} take {}", names.join(" and "), bytes_up(needed))
            }
        };
        let place = first.folder.display();
        (needed > available)
            .then(|| format!("{said}, and the disk of `{place}` has {}", bytes(available)))
    })
}

/// The steps of the last two checkpoints of a run after `done` of its steps; the first of them if there are several.
fn last_two(done: u64, steps: u64, every: Option<u64>) -> (Option<u64>, u64) {
    let before = every.map(|every| steps.saturating_sub(1) / every * every);
    (before.filter(|step| *step > done), steps)
}

impl<T: Value> Run<'_, T> {
    /// Refuses states that do not fit, before anything is written.
    pub(super) fn check_disks(&self, layout: &Layout) -> Result<(), Failure> {
        let window = self.files_of_window(layout);
        let files: Vec<Files<'_>> = window.into_iter().chain(self.checkpoints()).collect();
        let Some(message) = lack(&files, DiskSpace::of) else {
            return Ok(());
        };
        let hint =
            "name a folder on another disk, or make the domain smaller: `--set domain=AxBxC`";
        Err(Diagnostic::error(codes::DISK, message).hint(hint).into())
    }

    /// The arrays of a run that begins in files, and two of its states: one replaces the other.
    fn files_of_window(&self, layout: &Layout) -> Option<Files<'_>> {
        let folder = self.args.holding.folder()?;
        let states = checkpoint::record_bytes(self.problem, self.problem.steps);
        (!self.goes_on(folder)).then(|| Files {
            folder,
            name: "the two files of the fields",
            take: "take",
            bytes: disk::needed(layout).saturating_add(states.saturating_mul(2)),
            replaced: disk::replaced_arrays(folder),
        })
    }

    /// A checkpoint, or two where one replaces another one of this run.
    fn checkpoints(&self) -> Option<Files<'_>> {
        let folder = self.args.checkpoint.as_deref()?;
        let (before, last) = last_two(self.start, self.problem.steps, self.args.every);
        let of = |step| checkpoint::bytes(self.scheme, self.problem, step);
        let one = Files {
            folder,
            name: "the checkpoint",
            take: "takes",
            bytes: of(last),
            replaced: 0,
        };
        let Some(before) = before else {
            return Some(one);
        };
        let replaced = disk::replaced_state(folder);
        let two = Files {
            name: "two checkpoints, of which one replaces the other,",
            take: "take",
            bytes: of(before).saturating_add(of(last)),
            replaced,
            ..one
        };
        // A large earlier one stays until the first of this run is complete.
        let needs_more = two.bytes.saturating_sub(replaced) > one.bytes;
        Some(if needs_more { two } else { one })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_on_one_disk_are_counted_together() {
        let [window, state] = ["window", "state"].map(Path::new);
        let files = |folder, bytes, replaced| Files {
            folder,
            name: if folder == window {
                "arrays"
            } else {
                "the checkpoint"
            },
            take: if folder == window { "take" } else { "takes" },
            bytes,
            replaced,
        };
        let both = [files(window, 70_000, 0), files(state, 40_000, 5_000)];
        let disks = |free: [u64; 2], numbers: [u64; 2]| {
            move |folder: &Path| {
                let n = usize::from(folder == Path::new("state"));
                let (free, disk) = (free[n], numbers[n]);
                Some(DiskSpace { disk, free })
            }
        };
        assert_eq!(lack(&both, disks([70_000, 35_000], [1, 2])), None);
        assert_eq!(lack(&both, disks([105_000; 2], [1, 1])), None);
        assert_eq!(
            lack(&both, disks([104_999; 2], [1, 1])).unwrap(),
            "arrays and the checkpoint take 110 kB, and the disk of `window` has 110 kB"
        );
        assert_eq!(
            lack(&both, disks([70_000, 20_000], [1, 2])).unwrap(),
            "the checkpoint takes 40.0 kB, and the disk of `state` has 25.0 kB"
        );
        assert_eq!(lack(&both, |_| None), None);
    }

    #[test]
    fn two_checkpoints_are_there_where_a_run_writes_several() {
        assert_eq!(last_two(0, 100, None), (None, 100));
        assert_eq!(last_two(0, 100, Some(30)), (Some(90), 100));
        assert_eq!(last_two(0, 100, Some(50)), (Some(50), 100));
        assert_eq!(last_two(0, 100, Some(100)), (None, 100));
        assert_eq!(last_two(90, 100, Some(30)), (None, 100));
        assert_eq!(last_two(0, 0, Some(3)), (None, 0));
    }
}
