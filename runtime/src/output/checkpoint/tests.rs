use std::io::Cursor;
use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::output::array::View;

fn identity() -> Identity {
    Identity {
        scheme: "5d41402abc4b2a76".into(),
        problem: "b9719d911017c592".into(),
        precision: ElementType::F32,
    }
}

/// A checkpoint with a padded volume `E.z` (f32, 3 x 4 x 5), times (f64, 7) and an empty array.
fn sample() -> (Vec<u8>, Vec<f32>, Vec<f64>) {
    static SAMPLE: LazyLock<(Vec<u8>, Vec<f32>, Vec<f64>)> = LazyLock::new(write_sample);
    SAMPLE.clone()
}

fn write_sample() -> (Vec<u8>, Vec<f32>, Vec<f64>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.ckp");
    let data: Vec<f32> = (0..300).map(|i| i as f32 * 0.5).collect();
    let field = View::strided(&data, 2, &[3, 4, 5], &[90, 20, 1]).unwrap();
    let times: Vec<f64> = (0..7).map(|i| i as f64 * 1e-16).collect();
    let table = View::contiguous(&times, &[7]).unwrap();
    let none = View::<f32>::contiguous(&[], &[0, 4]).unwrap();
    let mut notes = Map::new();
    notes.insert("time".into(), json!(1.5e-15));
    let arrays = [
        ("E.z", AnyRows::F32(&field)),
        ("times", AnyRows::F64(&table)),
        ("none", AnyRows::F32(&none)),
    ];
    write(&path, &identity(), 1234, &notes, &arrays).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    (std::fs::read(&path).unwrap(), array::collect(&field), times)
}

fn open(bytes: &[u8]) -> Result<Checkpoint<Cursor<&[u8]>>, FileError> {
    Checkpoint::new(Cursor::new(bytes), Path::new("run/state.ckp"))
}

fn fault<T>(result: Result<T, FileError>) -> CheckpointFault {
    match result.err().map(|error| error.cause) {
        Some(Cause::Checkpoint(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

/// A file with this header, a right checksum, and `tail` behind it.
fn with_header(header: &str, tail: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((header.len() as u32).to_le_bytes());
    bytes.extend(Xxh64::of(header.as_bytes()).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(64), 0);
    bytes.extend(tail);
    bytes
}

#[test]
fn everything_comes_back() {
    let (bytes, field, times) = sample();
    let mut checkpoint = open(&bytes).unwrap();
    checkpoint.expect(&identity()).unwrap();
    checkpoint.verify().unwrap();
    assert_eq!(checkpoint.header().step, 1234);
    assert_eq!(checkpoint.header().notes["time"], 1.5e-15);
    let mut back = Vec::new();
    let mut firsts = Vec::new();
    checkpoint
        .read("E.z", &[3, 4, 5], |first, row: &[f32]| {
            firsts.push(first.to_vec());
            back.extend_from_slice(row);
        })
        .unwrap();
    assert_eq!((back, firsts.len()), (field, 12));
    assert_eq!(firsts[5], [1, 1, 0]);
    let mut back = Vec::new();
    checkpoint
        .read("times", &[7], |_, row: &[f64]| back.extend_from_slice(row))
        .unwrap();
    assert_eq!(back, times);
    checkpoint
        .read("none", &[0, 4], |_, _: &[f32]| panic!("no values"))
        .unwrap();
}

/// A run that goes on reads one checkpoint, also where the run that wrote it writes a later one meanwhile.
#[test]
fn an_open_checkpoint_stays_what_it_was() {
    let (bytes, field, _) = sample();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.ckp");
    std::fs::write(&path, bytes).unwrap();
    let first = Checkpoint::open(&path).unwrap();
    write(&path, &identity(), 2000, &Map::new(), &[]).unwrap();
    assert_eq!(Checkpoint::open(&path).unwrap().header().step, 2000);
    for _ in 0..2 {
        let mut again = first.again().unwrap();
        assert_eq!(again.header().step, 1234);
        let mut back = Vec::new();
        again
            .read("E.z", &[3, 4, 5], |_, row: &[f32]| {
                back.extend_from_slice(row)
            })
            .unwrap();
        assert_eq!(back, field);
    }
}

#[test]
fn another_calculation_is_refused() {
    let (bytes, ..) = sample();
    let checkpoint = open(&bytes).unwrap();
    let change = |edit: fn(&mut Identity)| {
        let mut other = identity();
        edit(&mut other);
        match fault(checkpoint.expect(&other)) {
            CheckpointFault::Other { what, .. } => what,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(change(|i| i.scheme = "x".into()), "scheme");
    assert_eq!(change(|i| i.problem = "x".into()), "problem");
    let double = |i: &mut Identity| {
        i.precision = ElementType::F64;
        // As the hash of the scheme, which holds the precision, too.
        i.scheme = "x".into();
    };
    assert_eq!(change(double), "precision");
}

#[test]
fn arrays_must_fit() {
    let (bytes, ..) = sample();
    let mut checkpoint = open(&bytes).unwrap();
    let missing = fault(checkpoint.read("H.z", &[1], |_, _: &[f32]| ()));
    assert_eq!(missing, CheckpointFault::NoArray("H.z".into()));
    let shape = checkpoint.read("E.z", &[3, 4, 6], |_, _: &[f32]| ());
    let text = shape.unwrap_err().to_string();
    assert_eq!(
        text,
        "cannot read `run/state.ckp`: the array `E.z` of the checkpoint is f32 [3, 4, 5], \
         this run needs f32 [3, 4, 6]"
    );
    let element = fault(checkpoint.read("E.z", &[3, 4, 5], |_, _: &[f64]| ()));
    assert!(matches!(element, CheckpointFault::Array { .. }));
}

#[test]
fn damage_is_told_apart() {
    let (bytes, ..) = sample();
    let n = bytes.len() as u64;
    assert_eq!(fault(open(b"short")), CheckpointFault::Magic);
    assert_eq!(fault(open(&bytes[1..])), CheckpointFault::Magic);
    assert_eq!(
        fault(open(&bytes[..bytes.len() - 1])),
        CheckpointFault::Length {
            expected: n,
            found: n - 1
        }
    );
    assert_eq!(fault(open(&bytes[..60])), CheckpointFault::HeaderDamaged);
    let damaged = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 4;
        bytes
    };
    assert_eq!(fault(open(&damaged(8))), CheckpointFault::Version(5));
    assert_eq!(fault(open(&damaged(40))), CheckpointFault::HeaderDamaged);
    let values = open(&bytes).unwrap().starts[0] as usize;
    let broken = damaged(values + 17);
    let mut checkpoint = open(&broken).unwrap();
    assert_eq!(
        fault(checkpoint.verify()),
        CheckpointFault::Checksum("E.z".into())
    );
    let read = checkpoint.read("E.z", &[3, 4, 5], |_, _: &[f32]| ());
    assert_eq!(fault(read), CheckpointFault::Checksum("E.z".into()));
    checkpoint.read("times", &[7], |_, _: &[f64]| ()).unwrap();
}

#[test]
fn headers_that_lie_are_refused() {
    let header = |arrays: &str| {
        format!(
            r#"{{"scheme":"a","problem":"b","precision":"f32","step":1,"notes":{{}},"arrays":{arrays}}}"#
        )
    };
    open(&with_header(&header("[]"), &[])).unwrap();
    for (arrays, entry) in [
        (r#"[{"name":"a","type":"f16","shape":[1]}]"#, "type"),
        (r#"[{"name":"a","type":"f32","shape":[-1]}]"#, "shape"),
        (
            r#"[{"name":"a","type":"f32","shape":[18446744073709551615,9]}]"#,
            "arrays",
        ),
        (
            r#"[{"name":"a","type":"f32","shape":[18446744073709551615]}]"#,
            "arrays",
        ),
        (r#"[{"name":"a","type":"f32","shape":[]}]"#, "arrays"),
        (
            r#"[{"name":"a","type":"f32","shape":[0]},{"name":"a","type":"f32","shape":[0]}]"#,
            "arrays",
        ),
        ("{}", "arrays"),
    ] {
        let refused = fault(open(&with_header(&header(arrays), &[0; 8])));
        assert_eq!(refused, CheckpointFault::Header(entry), "{arrays}");
    }
    let large = header(r#"[{"name":"a","type":"f32","shape":[1000000,1000000]}]"#);
    let refused = fault(open(&with_header(&large, &[0; 8])));
    assert!(
        matches!(refused, CheckpointFault::Length { .. }),
        "{refused:?}"
    );
    assert_eq!(
        fault(open(&with_header("[1", &[]))),
        CheckpointFault::HeaderDamaged
    );
}

#[test]
fn names_are_unique() {
    let folder = tempfile::tempdir().unwrap();
    let rows = View::contiguous(&[0f32], &[1]).unwrap();
    let twice = [("a", AnyRows::F32(&rows)), ("a", AnyRows::F32(&rows))];
    let path = folder.path().join("c");
    let error = write(&path, &identity(), 0, &Map::new(), &twice).unwrap_err();
    assert!(matches!(error.cause, Cause::Name(_)));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Zeros between arrays included.
#[test]
fn every_damaged_bit_is_noticed() {
    let (bytes, ..) = sample();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        let checked = open(&damaged).and_then(|mut checkpoint| checkpoint.verify());
        assert!(checked.is_err(), "byte {at} of {}", bytes.len());
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        drop(open(&bytes));
        let mut prefixed = MAGIC.to_vec();
        prefixed.extend(VERSION.to_le_bytes());
        prefixed.extend(&bytes);
        drop(open(&prefixed));
        drop(open(&with_header(&String::from_utf8_lossy(&bytes), &[0; 64])));
    }

    #[test]
    fn a_cut_file_is_refused(at: prop::sample::Index) {
        let (bytes, ..) = sample();
        let cut = at.index(bytes.len());
        prop_assert!(open(&bytes[..cut]).is_err());
    }
}
