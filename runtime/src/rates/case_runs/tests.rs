use super::super::computer::NAME;
use super::super::line_file::{MAX_BYTES, RECORDS};
use super::*;
use crate::host::measure::{Measured, usual};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn measured(threads: usize) -> Measured {
    Measured {
        machine: usual(threads),
        doubtful: false,
    }
}

fn computer(threads: usize) -> Computer {
    Computer::of_processor(&measured(threads)).unwrap()
}

fn case(class: u32) -> Case {
    Case {
        family: Family::named("f32, 3 axes"),
        kind: Kind::Towers,
        sizes: [8.0, 24.0, 12.0, 0.0],
        class,
    }
}

fn run(ratio: f64) -> CaseRuns {
    CaseRuns::new(computer(2), case(24), ratio)
}

fn scratch() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::below(folder.path());
    (folder, store)
}

#[test]
fn runs_of_a_case_make_one_record_with_the_last_ratios() {
    let (_folder, store) = scratch();
    assert_eq!(store.read(), Found::default());
    let ratios = [0.5, 0.1, 0.25, 1.0 / 3.0, 0.7, 0.6, 0.4];
    for ratio in ratios {
        assert!(store.add(run(ratio)));
    }
    assert!(store.add(CaseRuns::new(computer(2), case(25), 2.0)));
    assert!(store.add(CaseRuns::new(computer(4), case(24), 3.0)));
    let found = store.read();
    assert!(!found.damaged);
    assert_eq!(found.records.len(), 3);
    assert_eq!(found.records[0].runs, 7);
    assert_eq!(found.records[0].ratios, ratios[2..]);
    assert_eq!(found.records[0].ratio(), 0.4);
    assert_eq!(found.of(&computer(2)).len(), 2);
    // The record that changed last is last.
    assert!(store.add(run(0.5)));
    assert_eq!(store.read().records[2].case, case(24));
    assert_eq!(store.read().records[2].computer, computer(2));
}

#[test]
fn the_larger_of_two_middle_ratios_counts() {
    for (ratios, middle) in [
        (vec![0.3], 0.3),
        (vec![0.3, 0.9], 0.9),
        (vec![0.9, 0.3, 0.5], 0.5),
        (vec![0.2, 0.9, 0.3, 0.5], 0.5),
    ] {
        let record = CaseRuns { ratios, ..run(1.0) };
        assert_eq!(record.ratio(), middle);
    }
}

#[test]
fn a_doubtful_measurement_is_no_computer_and_other_rates_are_another_one() {
    assert_ne!(computer(2), computer(3));
    let doubtful = Measured {
        doubtful: true,
        ..measured(2)
    };
    assert_eq!(Computer::of_processor(&doubtful), None);
}

#[test]
fn a_damaged_file_counts_for_nothing_and_is_begun_anew() {
    let (folder, store) = scratch();
    for class in 20..23 {
        assert!(store.add(CaseRuns::new(computer(2), case(class), 0.5)));
    }
    let path = folder.path().join("torre").join(Store::name());
    let text = fs::read_to_string(&path).unwrap();
    let put = |text: &[u8]| {
        fs::write(&path, text).unwrap();
        store.read()
    };
    assert_eq!(put(text.as_bytes()).records.len(), 3);
    for cut in 0..text.len() {
        let found = put(&text.as_bytes()[..cut]);
        assert!(found.damaged && found.records.is_empty(), "cut at {cut}");
    }
    for (value, other) in [
        ("\t0.5\n", "\t\n"),
        ("\t0.5\n", "\tnan\n"),
        ("\t0.5\n", "\tinf\n"),
        ("\t0.5\n", "\t-0.5\n"),
        ("\t0.5\n", "\t1e9\n"),
        ("\t0.5\n", "\t0.5 0.5 0.5 0.5 0.5 0.5\n"),
        ("\ttowers\t", "\ttower\t"),
        ("\t8 24 12 0\t", "\t8 24 12\t"),
        ("\t8 24 12 0\t", "\t8 24 12 -1\t"),
        ("\t22\t1\t", "\t99\t1\t"),
        ("\t22\t1\t", "\t22\t0\t"),
        ("\t22\t1\t", "\t22\t1\t1\t"),
        ("end 3", "end 2"),
        ("torre rates 1", "torre rates"),
        ("torre rates 1", "rates of torre 1"),
    ] {
        let changed = text.replace(value, other);
        assert_ne!(changed, text);
        let found = put(changed.as_bytes());
        assert!(found.damaged && found.records.is_empty(), "{other}");
    }
    assert!(put(&[0xff; 100]).damaged);
    let long = text.replace("end", &"x".repeat(MAX_BYTES as usize));
    assert!(put(long.as_bytes()).damaged);
    // Another version is no damage, and says nothing.
    assert_eq!(
        put(text.replace("rates 1", "rates 2").as_bytes()),
        Found::default()
    );
    put(b"something else");
    assert!(store.add(run(0.5)));
    assert_eq!(store.read().records, [run(0.5)]);
}

#[test]
fn a_file_of_others_is_not_read_and_a_folder_of_others_not_used() {
    let (folder, store) = scratch();
    assert!(store.add(run(0.5)));
    let path = store.path().unwrap();
    assert!(path.starts_with(folder.path().canonicalize().unwrap()));
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    mode(&path, 0o666);
    assert_eq!(store.read(), Found::default());
    mode(&path, 0o600);
    assert_eq!(store.read().records.len(), 1);
    mode(path.parent().unwrap(), 0o777);
    assert_eq!(store.read(), Found::default());
    assert!(!store.add(run(0.5)));
    let refused = Store::below(folder.path());
    assert!(refused.path().is_err());
    assert!(!refused.add(run(0.5)) && refused.forget());
}

#[test]
fn what_is_impossible_is_not_recorded() {
    let (_folder, store) = scratch();
    for ratio in [0.0, -1.0, f64::NAN, f64::INFINITY, 0.01, 51.0] {
        assert!(!store.add(run(ratio)), "{ratio}");
    }
    let mut other = run(0.5);
    other.case.family = Family::named("with a\ttab");
    assert!(!store.add(other));
    assert_eq!(store.read(), Found::default());
}

#[test]
fn the_file_is_bounded_and_keeps_what_changed_last() {
    let (_folder, store) = scratch();
    let mut found = Found::default();
    for i in 0..RECORDS as u32 + 40 {
        let mut run = run(1.0 / 3.0);
        run.ratios = vec![1.0 / 3.0; RATIOS];
        run.runs = 1 << 39;
        run.case.sizes = [1.0 / 3.0, 100.0 / 3.0, f64::from(i), 1e9 / 3.0];
        run.case.family = Family::named(&"f".repeat(NAME));
        found.add(run);
    }
    let text = found.text();
    assert!((text.len() as u64) < MAX_BYTES, "{}", text.len());
    let folder = store.folder.as_ref().unwrap();
    folder.write(&Store::name(), text.as_bytes()).unwrap();
    let read = store.read();
    assert_eq!(read.records.len(), RECORDS);
    assert_eq!(read.records[0].case.sizes[2], 40.0);
    assert_eq!(read, found);
}

#[test]
fn runs_that_end_at_once_are_all_recorded() {
    let (folder, _) = scratch();
    let (threads, each) = (8, 5);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let store = Store::below(folder.path());
                for _ in 0..each {
                    assert!(store.add(run(0.5)));
                }
            });
        }
    });
    let found = Store::below(folder.path()).read();
    assert_eq!(found.records.len(), 1);
    assert_eq!(found.records[0].runs, threads * each);
}

#[test]
fn runs_are_forgotten() {
    let (_folder, store) = scratch();
    assert!(store.forget());
    assert!(store.add(run(0.5)));
    assert!(store.forget());
    assert_eq!(store.read(), Found::default());
}
