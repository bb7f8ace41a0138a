//! The provenance of results in a report: all data that are needed to repeat the run, and the places of values.

use crate::input::Input;
use crate::machine;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use torre_compiler::lattice::{Axis, Position, Region};
use torre_compiler::problem::{Output, OutputKind, StaticOutput};
use torre_compiler::resolve::Resolved;
use torre_compiler::scheme::{ComponentId, Scheme};
use torre_compiler::statics::{coordinate, physical_time};
use torre_grammar::source::Source;
use torre_runtime::host::threads;
use torre_runtime::run::outputs::{series, static_series};

/// Bytes that are read at once.
const BLOCK: usize = 1 << 20;

/// The program, its numbers, its arrays and tables, and the machine. `arrays` are the files of the arrays.
pub fn provenance<'a>(read: &Input, arrays: impl Iterator<Item = &'a Path>) -> Map<String, Value> {
    let Resolved {
        scheme,
        problem,
        parameters,
        sides,
        sources,
        ..
    } = &read.resolved;
    let grid = &scheme.grid;
    let along = |value: &dyn Fn(Axis) -> Value| -> Value {
        let entries = grid
            .present()
            .map(|a| (grid.axis_name(a).to_owned(), value(a)));
        Value::Object(entries.collect())
    };
    let named = |list: Vec<(String, Value)>| Value::Object(list.into_iter().collect());
    let parameters = parameters.iter().map(|p| (p.name.clone(), json!(p.value)));
    let overrides = read.options.overrides.iter();
    let set = overrides.map(|(name, text)| (name.clone(), json!(text)));
    let tables = read.tables().map(|(path, text)| table(&path, text));
    let components = scheme.component_ids();
    let changing = problem.outputs.iter().map(|o| output(scheme, o));
    let statics = problem.statics.iter().map(|o| static_output(scheme, o));
    let fields = json!({
        "command": std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>(),
        "started_unix_s": since_1970(),
        "sources": sources.iter().map(source).collect::<Vec<_>>(),
        "inputs": arrays.map(input).chain(tables).collect::<Vec<_>>(),
        "set": named(set.collect()),
        "parameters": named(parameters.collect()),
        "dt": grid.dt,
        "cell_size": along(&|axis| json!(grid.spacing[axis])),
        "extent": along(&|axis| json!(grid.spacing[axis] * grid.cells[axis] as f64)),
        "boundaries": along(&|axis| {
            let sides = sides[axis].iter().zip(grid.boundary[axis]);
            let words = sides.map(|(stated, b)| stated.clone().unwrap_or_else(|| b.to_string()));
            json!(words.collect::<Vec<_>>())
        }),
        "components": components.map(|id| component(scheme, id)).collect::<Vec<_>>(),
        "outputs": changing.chain(statics).collect::<Vec<_>>(),
        "host": host(),
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn since_1970() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |time| time.as_secs())
}

/// Bytes as digits.
pub fn hex(digest: impl IntoIterator<Item = u8>) -> String {
    digest
        .into_iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn source(source: &Source) -> Value {
    json!({
        "name": source.name(),
        "sha256": hex(Sha256::digest(source.text())),
    })
}

/// A file that cannot be read again has no hash.
fn input(path: &Path) -> Value {
    let (bytes, sha256) = match hash_file(path) {
        Ok((bytes, hash)) => (Some(bytes), Some(hash)),
        Err(_) => (None, None),
    };
    json!({ "file": path.display().to_string(), "bytes": bytes, "sha256": sha256 })
}

fn table(path: &Path, text: &Source) -> Value {
    json!({
        "file": path.display().to_string(),
        "bytes": text.text().len(),
        "sha256": hex(Sha256::digest(text.text())),
    })
}

fn hash_file(path: &Path) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut block = vec![0; BLOCK];
    loop {
        match file.read(&mut block)? {
            0 => return Ok((bytes, hex(hash.finalize()))),
            read => {
                hash.update(&block[..read]);
                bytes += read as u64;
            }
        }
    }
}

/// Where the values of a component lie, and at which time.
fn component(scheme: &Scheme, id: ComponentId) -> Value {
    let component = scheme.component(id);
    json!({
        "name": component.name,
        "axes": axes(scheme, component.position, scheme.extent(id)),
        "first_time": physical_time(scheme, id, 0),
    })
}

/// Where the values of a box lie: along each axis the first one and the distance to the next.
fn axes(scheme: &Scheme, position: Position, region: Region) -> Value {
    let grid = &scheme.grid;
    let along = |axis: Axis| {
        json!({
            "axis": grid.axis_name(axis),
            "start": coordinate(grid, axis, position[axis], region[axis].lo),
            "spacing": grid.spacing[axis],
            "count": region[axis].len(),
        })
    };
    grid.present().map(along).collect()
}

fn output(scheme: &Scheme, output: &Output) -> Value {
    let component = scheme.component(output.component);
    let mut fields = written(scheme, output.kind, component.position, output.region);
    fields["name"] = json!(output.name);
    fields["file"] = json!(series(output));
    fields["component"] = json!(component.name);
    if output.state.is_some() {
        fields["state"] = json!(output.quantity(scheme));
    }
    fields["every"] = json!(output.every);
    if let Some(spectrum) = &output.spectrum {
        fields["frequencies"] = json!(spectrum.frequencies);
    }
    fields
}

/// A field that does not change belongs to no component, and is written once.
fn static_output(scheme: &Scheme, output: &StaticOutput) -> Value {
    let mut fields = written(scheme, output.kind, output.position, output.region);
    fields["name"] = json!(output.name);
    fields["file"] = json!(static_series(output));
    fields["component"] = Value::Null;
    fields["every"] = Value::Null;
    fields
}

/// The values that an output has.
fn written(scheme: &Scheme, kind: OutputKind, position: Position, region: Region) -> Value {
    let mut fields = json!({ "axes": axes(scheme, position, region) });
    if let OutputKind::Slice { axis, index } = kind {
        fields["across"] = json!(scheme.grid.axis_name(axis));
        fields["index"] = json!(index);
        fields["at"] = json!(coordinate(&scheme.grid, axis, position[axis], index));
    }
    fields
}

/// The machine that the program runs on. Facts that the system does not give are null.
fn host() -> Value {
    let told = |path: &str| {
        let text = std::fs::read_to_string(path).ok();
        text.map(|text| text.trim().to_owned())
    };
    json!({
        "name": told("/proc/sys/kernel/hostname"),
        "system": std::env::consts::OS,
        "kernel": told("/proc/sys/kernel/osrelease"),
        "architecture": std::env::consts::ARCH,
        "processor": machine::cpu_name(),
        "threads": threads::available(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_that_sha256sum_gives() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash_file(&path).unwrap(), (3, expected.to_owned()));
        assert_eq!(source(&Source::new("a", "abc"))["sha256"], expected);
        assert!(input(&folder.path().join("missing"))["sha256"].is_null());
    }
}
