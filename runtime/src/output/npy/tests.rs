use std::io::Cursor;

use proptest::prelude::*;

use super::*;
use crate::output::array::View;

fn reader(bytes: &[u8]) -> Result<NpyReader<Cursor<&[u8]>>, NpyFault> {
    NpyReader::new(Cursor::new(bytes), Path::new("test.npy")).map_err(|error| match error.cause {
        Cause::Npy(fault) => fault,
        other => panic!("{other:?}"),
    })
}

fn file(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    raw(
        &format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"),
        data,
    )
}

fn raw(dictionary: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dictionary.len() as u16).to_le_bytes());
    bytes.extend(dictionary.as_bytes());
    bytes.extend(data);
    bytes
}

fn all<T: Element>(bytes: &[u8]) -> Vec<T> {
    reader(bytes).unwrap().read_all().unwrap()
}

#[test]
fn the_header_is_that_of_numpy() {
    // As `numpy.save` writes it for `zeros((3, 4), "f4")`.
    let mut expected = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    expected.extend(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
    expected.resize(127, b' ');
    expected.push(b'\n');
    assert_eq!(header::print("'<f4'", &[3, 4]), expected);
    let one = header::print("'<f8'", &[7]);
    assert!(String::from_utf8_lossy(&one).contains("'shape': (7,), }"));
    assert_eq!(one.len() % 64, 0);
    let none = header::print("'<f8'", &[]);
    assert!(String::from_utf8_lossy(&none).contains("'shape': (), }"));
}

#[test]
fn long_headers_take_version_2() {
    let descr = format!("'{}'", "x".repeat(65_000));
    let header = header::print(&descr, &[1]);
    assert_eq!(&header[6..8], [1, 0]);
    let descr = format!("'{}'", "x".repeat(66_000));
    let header = header::print(&descr, &[1]);
    assert_eq!((&header[6..8], header.len() % 64), (&[2, 0][..], 0));
    let length = u32::from_le_bytes(header[8..12].try_into().unwrap());
    assert_eq!(length as usize + 12, header.len());
}

#[test]
fn versions_2_and_3_are_read() {
    for version in [2, 3] {
        let one = file("'<f4'", "False", "(2,)", &[0, 0, 128, 63, 0, 0, 0, 64]);
        let mut bytes = b"\x93NUMPY".to_vec();
        bytes.extend([version, 0]);
        bytes.extend(&one[8..10]);
        bytes.extend([0, 0]);
        bytes.extend(&one[10..]);
        assert_eq!(all::<f32>(&bytes), [1.0, 2.0]);
    }
}

#[test]
fn types_are_converted() {
    let read = |descr: &str, shape: &str, data: &[u8]| {
        all::<f64>(&file(&format!("'{descr}'"), "False", shape, data))
    };
    assert_eq!(read(">f4", "(1,)", &(-2.5f32).to_be_bytes()), [-2.5]);
    assert_eq!(read(">f8", "(1,)", &1e300f64.to_be_bytes()), [1e300]);
    assert_eq!(
        read("<f2", "(2,)", &[0x00, 0x3c, 0x01, 0x80]),
        [1.0, -(2f64.powi(-24))]
    );
    assert_eq!(read("<f2", "(1,)", &[0x00, 0xfc]), [f64::NEG_INFINITY]);
    assert_eq!(read("|i1", "(2,)", &[255, 127]), [-1.0, 127.0]);
    assert_eq!(read("|u1", "(1,)", &[255]), [255.0]);
    assert_eq!(read(">i2", "(1,)", &(-300i16).to_be_bytes()), [-300.0]);
    assert_eq!(read("<u4", "(1,)", &u32::MAX.to_le_bytes()), [4294967295.0]);
    assert_eq!(read("<i8", "(1,)", &(-5i64).to_le_bytes()), [-5.0]);
    assert_eq!(read(">u8", "(1,)", &7u64.to_be_bytes()), [7.0]);
    assert_eq!(read("|b1", "(3,)", &[0, 1, 2]), [0.0, 1.0, 1.0]);
    assert_eq!(read("<f8", "()", &3.5f64.to_le_bytes()), [3.5]);
    assert_eq!(
        all::<f32>(&file("'<f8'", "False", "(1,)", &0.1f64.to_le_bytes())),
        [0.1f32]
    );
}

#[test]
fn fortran_order_becomes_c_order() {
    // (i, j, k) -> 100 i + 10 j + k, stored with i fastest.
    let shape = [2usize, 3, 4];
    let mut data = Vec::new();
    for k in 0..4 {
        for j in 0..3 {
            for i in 0..2u8 {
                data.push(100 * i + 10 * j + k);
            }
        }
    }
    let bytes = file("'|u1'", "True", "(2, 3, 4)", &data);
    let values = all::<f32>(&bytes);
    let mut n = 0;
    array::for_each_row::<()>(&shape, |first| {
        for k in 0..4 {
            assert_eq!(values[n], (100 * first[0] + 10 * first[1] + k) as f32);
            n += 1;
        }
        Ok(())
    })
    .unwrap();
    let mut axes = Vec::new();
    reader(&bytes)
        .unwrap()
        .for_each_run(|first, axis, run: &[f32]| axes.push((first.to_vec(), axis, run.len())))
        .unwrap();
    assert_eq!(axes.len(), 12);
    assert_eq!(axes[1], (vec![0, 1, 0], 0, 2));
}

#[test]
fn headers_of_other_writers_are_read() {
    let data = 1f64.to_le_bytes();
    for dictionary in [
        "{'shape': (1L,), 'fortran_order': False, 'descr': '<f8'}",
        "{\"descr\":\"<f8\",\"fortran_order\":False,\"shape\":(1,),}",
        "  { 'descr' : '=f8' , 'fortran_order' : True , 'shape' : ( 1 , ) }  \n",
    ] {
        assert_eq!(all::<f64>(&raw(dictionary, &data)), [1.0], "{dictionary}");
    }
}

#[test]
fn faults_are_told_apart() {
    let fault = |bytes: &[u8]| reader(bytes).unwrap_err();
    assert_eq!(fault(b"PNG and more"), NpyFault::Magic);
    assert_eq!(fault(b"\x93NUMPY"), NpyFault::HeaderEnds);
    assert_eq!(fault(b"\x93NUMPY\x07\x01    "), NpyFault::Version(7, 1));
    assert_eq!(
        fault(b"\x93NUMPY\x02\x00\xff\xff\xff\xff"),
        NpyFault::HeaderLength(0xffff_ffff)
    );
    let with = |descr, order, shape| fault(&file(descr, order, shape, &[0; 8]));
    assert_eq!(
        with("'<c16'", "False", "(1,)"),
        NpyFault::Dtype("<c16".into())
    );
    assert_eq!(
        with("'|f4'", "False", "(1,)"),
        NpyFault::Dtype("|f4".into())
    );
    assert_eq!(with("''", "False", "(1,)"), NpyFault::Dtype("".into()));
    assert_eq!(
        with("[('a', '<f4', (2,))]", "False", "(1,)"),
        NpyFault::Structured
    );
    assert!(matches!(
        with("[)", "False", "(1,)"),
        NpyFault::Syntax { .. } | NpyFault::Structured
    ));
    assert!(matches!(
        with("])", "False", "(1,)"),
        NpyFault::Syntax { .. }
    ));
    assert!(matches!(
        with("'<f4'", "0", "(1,)"),
        NpyFault::Syntax { .. }
    ));
    assert!(matches!(
        with("'<f4'", "False", "(-1,)"),
        NpyFault::Syntax { .. }
    ));
    assert!(matches!(
        with("'<f4'", "False", "(99999999999999999999,)"),
        NpyFault::Syntax { .. }
    ));
    assert_eq!(
        with("'<f4'", "False", "(9223372036854775807, 3)"),
        NpyFault::TooLarge
    );
    assert_eq!(
        with("'<f8'", "False", "(4611686018427387904,)"),
        NpyFault::TooLarge
    );
    assert!(matches!(
        with("'<f4'", "False", "(4000000000,)"),
        NpyFault::Short { found, .. } if found < 200
    ));
    assert_eq!(
        with("'<f4'", "False", &format!("({})", "1,".repeat(65))),
        NpyFault::Axes(65)
    );
    assert_eq!(
        fault(&raw("{'descr': '<f4', 'shape': ()}", &[])),
        NpyFault::Missing("fortran_order")
    );
    assert_eq!(
        fault(&raw("{'descr': '<f4', 'descr': '<f4'}", &[])),
        NpyFault::Key("descr".into())
    );
    assert_eq!(fault(&raw("{'a': 1}", &[])), NpyFault::Key("a".into()));
}

#[test]
fn huge_empty_shapes_cost_nothing() {
    let bytes = file(
        "'<f4'",
        "False",
        "(9223372036854775807, 9223372036854775807, 0)",
        &[],
    );
    assert!(all::<f32>(&bytes).is_empty());
}

#[test]
fn a_padded_volume_round_trips_through_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fields/E.z.npy");
    let data: Vec<f32> = (0..1000).map(|i| (i as f32).sin()).collect();
    let view = View::strided(&data, 3, &[4, 5, 7], &[200, 16, 1]).unwrap();
    write(&path, &view).unwrap();
    let mut reader = NpyReader::open(&path).unwrap();
    assert_eq!(reader.header().shape, [4, 5, 7]);
    assert_eq!(reader.header().dtype, Dtype::of(ElementType::F32));
    assert_eq!(reader.read_all::<f32>().unwrap(), array::collect(&view));
    // A second pass starts again.
    assert_eq!(reader.read_all::<f32>().unwrap(), array::collect(&view));
    assert_eq!(
        std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
        1
    );

    let missing = NpyReader::open(&folder.path().join("nothing.npy")).unwrap_err();
    assert_eq!(missing.attempt, Attempt::Open);
    assert!(missing.to_string().contains("nothing.npy"), "{missing}");
}

proptest! {
    #[test]
    fn arrays_round_trip(shape in prop::collection::vec(0usize..6, 1..4), seed: u64) {
        let n = count(&shape).unwrap();
        let data: Vec<f64> = (0..n as u64)
            .map(|i| f64::from_bits(seed.wrapping_mul(2 * i + 1)))
            .collect();
        let view = View::contiguous(&data, &shape).unwrap();
        let mut bytes = header::print("'<f8'", &shape);
        array::stream(&view, |b| { bytes.extend_from_slice(b); Ok(()) }).unwrap();
        let mut reader = reader(&bytes).unwrap();
        prop_assert_eq!(&reader.header().shape, &shape);
        let back: Vec<u64> = reader.read_all::<f64>().unwrap().iter().map(|x| x.to_bits()).collect();
        prop_assert_eq!(back, data.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        drop(reader(&bytes));
        let mut prefixed = b"\x93NUMPY\x01\x00".to_vec();
        prefixed.extend(&bytes);
        drop(reader(&prefixed));
    }

    #[test]
    fn arbitrary_dictionaries_never_panic(
        dictionary in r#"[{\[(]?('(descr|fortran_order|shape|<f4|>i2)'|[\[\](){}:,' ]|True|False|[0-9]{1,22}L?){0,16}"#,
    ) {
        if let Ok(mut reader) = reader(&raw(&dictionary, &[0; 64])) {
            prop_assert!(reader.read_all::<f32>().is_ok());
        }
    }

    #[test]
    fn a_damaged_file_never_panics(at in 0usize..160, byte: u8, cut in 0usize..200) {
        let mut bytes = header::print("'<f4'", &[2, 3]);
        bytes.extend([0; 24]);
        let n = bytes.len();
        bytes[at % n] = byte;
        bytes.truncate(cut);
        if let Ok(mut reader) = reader(&bytes) {
            prop_assert!(reader.read_all::<f32>().is_ok());
        }
    }
}
