use std::fs;
use std::path::PathBuf;

use super::*;
use crate::output::array::View;

fn dimension(name: &str, start: f64) -> Dimension {
    Dimension {
        name: name.into(),
        start,
        spacing: 0.5,
        units: Some("m".into()),
    }
}

fn store(folder: &Path) -> (PathBuf, ZarrStore) {
    let path = folder.join("out.zarr");
    let mut attributes = Map::new();
    attributes.insert("title".into(), json!("pulse"));
    let store = ZarrStore::create(&path, "time", Some("s"), attributes).unwrap();
    (path, store)
}

fn json_of(path: PathBuf) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn values(path: PathBuf) -> Vec<f32> {
    let bytes = fs::read(path).unwrap();
    let mut values = vec![0f32; bytes.len() / 4];
    f32::decode(&bytes, &mut values);
    values
}

#[test]
fn series_have_time_and_coordinates() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut store) = store(folder.path());
    let ez = [dimension("x", 0.0), dimension("y", 0.25)];
    let hx = [dimension("x", 0.25), dimension("y", 0.25)];
    let mut attributes = Map::new();
    attributes.insert("units".into(), json!("V/m"));
    let a = store.add_series("E.z", ElementType::F32, &[2, 3], &ez, attributes);
    let b = store.add_series("H.x", ElementType::F32, &[2, 3], &hx, Map::new());
    let c = store.add_series("line", ElementType::F32, &[2], &ez[..1], Map::new());
    let (a, b, c) = (a.unwrap(), b.unwrap(), c.unwrap());
    for step in 0..3 {
        let data: Vec<f32> = (0..6).map(|i| (10 * step + i) as f32).collect();
        let view = View::contiguous(&data, &[2, 3]).unwrap();
        store.append(a, step as f64, &view).unwrap();
        store.append(b, step as f64, &view).unwrap();
        let line = View::contiguous(&data[..2], &[2]).unwrap();
        store.append(c, step as f64 * 2.0, &line).unwrap();
    }
    assert!(!path.exists());
    store.commit().unwrap();

    let group = json_of(path.join("zarr.json"));
    assert_eq!(group["node_type"], "group");
    assert_eq!(group["attributes"]["title"], "pulse");
    let all = &group["consolidated_metadata"]["metadata"];
    let names: Vec<_> = all.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        names,
        [
            "E.z", "H.x", "line", "time", "time_2", "x", "x_half", "y_half"
        ]
    );
    for name in &names {
        assert_eq!(all[name], json_of(path.join(name).join("zarr.json")));
    }
    let ez = &all["E.z"];
    assert_eq!(ez["shape"], json!([3, 2, 3]));
    assert_eq!(ez["data_type"], "float32");
    assert_eq!(ez["dimension_names"], json!(["time", "x", "y_half"]));
    assert_eq!(ez["attributes"]["units"], "V/m");
    assert_eq!(ez["fill_value"], "NaN");
    assert_eq!(
        ez["codecs"],
        json!([{"name": "bytes", "configuration": {"endian": "little"}}])
    );
    let chunk = &ez["chunk_grid"]["configuration"]["chunk_shape"];
    assert_eq!(*chunk, json!([1024, 2, 3]));
    assert_eq!(all["line"]["dimension_names"], json!(["time_2", "x"]));
    assert_eq!(all["x"]["attributes"]["units"], "m");

    let stored = values(path.join("E.z/c/0/0/0"));
    assert_eq!(stored.len(), 1024 * 6);
    assert_eq!(stored[12..18], [20., 21., 22., 23., 24., 25.]);
    assert!(stored[18..].iter().all(|v| v.is_nan()));
    let mut y = [0f64; 3];
    f64::decode(&fs::read(path.join("y_half/c/0")).unwrap(), &mut y);
    assert_eq!(y, [0.25, 0.75, 1.25]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn large_frames_are_cut_into_chunks() {
    assert_eq!(chunk_shape(&[1024, 1024, 1024], 4), [128, 128, 256]);
    assert_eq!(chunk_shape(&[100, 100, 100], 4), [100, 100, 100]);
    assert_eq!(chunk_shape(&[1 << 30], 8), [1 << 21]);
    assert_eq!(chunk_shape(&[0, 5], 4), [1, 5]);
    assert_eq!(chunk_shape(&[usize::MAX, 4], 4), [1 << 20, 4]);

    let folder = tempfile::tempdir().unwrap();
    let (path, mut store) = store(folder.path());
    let shape = [3, 2001, 1001];
    let data: Vec<f32> = (0..3 * 2001 * 1001).map(|i| i as f32).collect();
    let view = View::contiguous(&data, &shape).unwrap();
    let dimensions = ["x", "y", "z"].map(|name| dimension(name, 0.0));
    let id = store.add_series("E.z", ElementType::F32, &shape, &dimensions, Map::new());
    store.append(id.unwrap(), 0.0, &view).unwrap();
    store.commit().unwrap();
    let chunk = json_of(path.join("E.z/zarr.json"))["chunk_grid"]["configuration"].clone();
    assert_eq!(chunk["chunk_shape"], json!([1, 3, 1001, 1001]));
    let last = values(path.join("E.z/c/0/0/1/0"));
    for (i, j, k) in [(0, 0, 0), (2, 999, 1000), (1, 7, 9)] {
        let found = last[(i * 1001 + j) * 1001 + k];
        assert_eq!(found, data[(i * 2001 + 1001 + j) * 1001 + k]);
    }
    assert!(last[1000 * 1001].is_nan());
}

#[test]
fn single_arrays_have_no_time() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut store) = store(folder.path());
    let view = View::contiguous(&[1f64, 2.0], &[2]).unwrap();
    store
        .write("eps", &view, &[dimension("x", 0.0)], Map::new())
        .unwrap();
    store.commit().unwrap();
    let eps = json_of(path.join("eps/zarr.json"));
    assert_eq!(
        (&eps["shape"], &eps["dimension_names"]),
        (&json!([2]), &json!(["x"]))
    );
    assert_eq!(fs::read(path.join("eps/c/0")).unwrap().len(), 16);
}

#[test]
fn wrong_shapes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut store) = store(folder.path());
    let axes = [dimension("x", 0.0)];
    let mut add = |name: &str, shape: &[usize], axes: &[Dimension]| {
        store.add_series(name, ElementType::F32, shape, axes, Map::new())
    };
    let id = add("a", &[2], &axes).unwrap();
    assert!(add("b", &[2, 2], &axes).is_err());
    let long = View::contiguous(&[0f32; 3], &[3]).unwrap();
    assert!(store.append(id, 0.0, &long).is_err());
    let wide = View::contiguous(&[0f64; 2], &[2]).unwrap();
    assert!(store.append(id, 0.0, &wide).is_err());
    drop(store);
    assert!(!path.exists());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn every_array_has_a_name_that_readers_take() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut store) = store(folder.path());
    let mut axes = vec![dimension("x", 0.0)];
    let values = View::contiguous(&[1f32, 2.0], &[2]).unwrap();
    let long = "a".repeat(300);
    // Names of coordinates, of the format, and of nothing that it takes.
    let names = [
        "a",
        "a",
        "x",
        "x_",
        "x_half",
        "x_2",
        "x_half_3",
        "x_halfway",
        "time",
        "time_2",
        "c",
        "c_",
        "",
        "..",
        "p of u in layer(x)",
        "a/b",
        "__a",
        "\u{e9}",
        &long,
        &long,
    ];
    for (i, name) in names.iter().enumerate() {
        axes[0].start = 0.5 * i as f64;
        store.write(name, &values, &axes, Map::new()).unwrap();
    }
    store.commit().unwrap();
    let all = json_of(path.join("zarr.json"));
    let all = &all["consolidated_metadata"]["metadata"];
    let mut found: Vec<(&str, &str)> = Vec::new();
    for (name, array) in all.as_object().unwrap() {
        let axis = array["dimension_names"][0].as_str().unwrap();
        assert!(all[axis]["dimension_names"] == json!([axis]) && name.len() < 210);
        assert!(
            name.chars().all(is_plain) && !name.starts_with("__"),
            "{name}"
        );
        assert!(path.join(name).join("c/0").is_file());
        if axis != name {
            found.push((
                array["attributes"]["long_name"].as_str().unwrap_or(name),
                name,
            ));
        }
    }
    assert_eq!(found.len(), names.len());
    found.sort_unstable();
    let unchanged = found.iter().filter(|(long, name)| long == name);
    assert!(unchanged.map(|(_, name)| *name).eq(["a", "x_halfway"]));
    let of = |name: &str| found.iter().find(|(long, _)| *long == name).unwrap().1;
    assert_eq!(
        [of("x"), of("x_"), of("time"), of("c")],
        ["x_", "x__", "time_", "c_"]
    );
    assert_eq!(of("p of u in layer(x)"), "p of u in layer_x_");
}

#[test]
fn every_axis_has_a_coordinate_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut store) = store(folder.path());
    let values = View::contiguous(&[1f32, 2.0], &[2]).unwrap();
    let names = ["x", "c", "time", "x/y", "__x", "..", "\u{e9}", "x_half"];
    for name in names {
        let axes = [dimension(name, 0.5), dimension(name, 0.0)];
        store.write("u", &values, &axes[..1], Map::new()).unwrap();
        let series = store
            .add_series("v", ElementType::F32, &[2], &axes[1..], Map::new())
            .unwrap();
        store.append(series, 1.0, &values).unwrap();
    }
    store.commit().unwrap();
    let all = json_of(path.join("zarr.json"));
    let all = all["consolidated_metadata"]["metadata"]
        .as_object()
        .unwrap();
    let mut coordinates = std::collections::BTreeSet::new();
    let mut times = std::collections::BTreeSet::new();
    for array in all.values() {
        let axes = array["dimension_names"].as_array().unwrap();
        let axes: Vec<&str> = axes.iter().map(|a| a.as_str().unwrap()).collect();
        for axis in &axes {
            assert_eq!(all[*axis]["dimension_names"], json!([axis]), "{axis}");
        }
        match axes[..] {
            [time, axis] => {
                times.insert(time);
                coordinates.insert(axis);
            }
            [axis] => {
                coordinates.insert(axis);
            }
            _ => panic!("{axes:?}"),
        }
    }
    // One for the times.
    assert_eq!((coordinates.len(), times.len()), (2 * names.len() + 1, 1));
    assert!(!coordinates.contains("c") && coordinates.contains("time"));
    assert!(
        times
            .iter()
            .all(|time| *time != "time" && time.starts_with("time"))
    );
}

#[test]
fn an_empty_series_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut store) = store(folder.path());
    let axes = [dimension("x", 0.0)];
    let none = store.add_series("none", ElementType::F32, &[0], &axes, Map::new());
    let empty = View::<f32>::contiguous(&[], &[0]).unwrap();
    store.append(none.unwrap(), 0.0, &empty).unwrap();
    store
        .add_series("never", ElementType::F64, &[4], &axes, Map::new())
        .unwrap();
    store.commit().unwrap();
    assert_eq!(
        json_of(path.join("never/zarr.json"))["shape"],
        json!([0, 4])
    );
    assert_eq!(json_of(path.join("none/zarr.json"))["shape"], json!([1, 0]));
}
