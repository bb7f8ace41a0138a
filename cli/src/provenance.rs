//! What a report says of where results come from: all that is needed to repeat the run, and where values lie.

use crate::machine;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use torre_compiler::lattice::Axis;
use torre_compiler::problem::{Output, OutputKind};
use torre_compiler::resolve::{Options, Resolved};
use torre_compiler::scheme::{ComponentId, Scheme};
use torre_compiler::statics::{coordinate, physical_time};
use torre_grammar::source::Source;
use torre_runtime::host::threads;

/// Bytes that are read at once.
const BLOCK: usize = 1 << 20;

/// The program, its numbers, its arrays, and the machine. `inputs` are the files of the arrays.
pub fn provenance<'a>(
    resolved: &Resolved,
    options: &Options,
    inputs: impl Iterator<Item = &'a Path>,
) -> Map<String, Value> {
    let Resolved {
        scheme, parameters, ..
    } = resolved;
    let grid = &scheme.grid;
    let along = |value: &dyn Fn(Axis) -> Value| -> Value {
        let entries = grid
            .present()
            .map(|a| (grid.axis_name(a).to_owned(), value(a)));
        Value::Object(entries.collect())
    };
    let named = |list: Vec<(String, Value)>| Value::Object(list.into_iter().collect());
    let parameters = parameters.iter().map(|p| (p.name.clone(), json!(p.value)));
    let set = options
        .overrides
        .iter()
        .map(|(name, text)| (name.clone(), json!(text)));
    let components = scheme.component_ids();
    let outputs = resolved.problem.outputs.iter();
    let fields = json!({
        "command": std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>(),
        "started_unix_s": since_1970(),
        "sources": resolved.sources.iter().map(source).collect::<Vec<_>>(),
        "inputs": inputs.map(input).collect::<Vec<_>>(),
        "set": named(set.collect()),
        "parameters": named(parameters.collect()),
        "dt": grid.dt,
        "cell_size": along(&|axis| json!(grid.spacing[axis])),
        "extent": along(&|axis| json!(grid.spacing[axis] * grid.cells[axis] as f64)),
        "boundaries": along(&|axis| json!(grid.boundary[axis].map(|b| b.to_string()))),
        "components": components.map(|id| component(scheme, id)).collect::<Vec<_>>(),
        "outputs": outputs.map(|o| output(scheme, o)).collect::<Vec<_>>(),
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

fn hex(digest: impl IntoIterator<Item = u8>) -> String {
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

/// What cannot be read again has no hash.
fn input(path: &Path) -> Value {
    let (bytes, sha256) = match hash_file(path) {
        Ok((bytes, hash)) => (Some(bytes), Some(hash)),
        Err(_) => (None, None),
    };
    json!({ "file": path.display().to_string(), "bytes": bytes, "sha256": sha256 })
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

/// Where the values of a component lie: the first one and the distance to the next along each axis, and at which time.
fn component(scheme: &Scheme, id: ComponentId) -> Value {
    let component = scheme.component(id);
    json!({
        "name": component.name,
        "axes": scheme.grid.present().map(|axis| coordinates(scheme, id, axis)).collect::<Vec<_>>(),
        "first_time": physical_time(scheme, id, 0),
    })
}

fn coordinates(scheme: &Scheme, id: ComponentId, axis: Axis) -> Value {
    let grid = &scheme.grid;
    json!({
        "axis": grid.axis_name(axis),
        "start": coordinate(grid, axis, scheme.component(id).position[axis], 0),
        "spacing": grid.spacing[axis],
        "count": scheme.extent(id)[axis].hi,
    })
}

fn output(scheme: &Scheme, output: &Output) -> Value {
    let id = output.component;
    let mut fields = json!({
        "name": output.name,
        "component": scheme.component(id).name,
        "every": output.every,
    });
    if let OutputKind::Slice { axis, index } = output.kind {
        let position = scheme.component(id).position[axis];
        fields["across"] = json!(scheme.grid.axis_name(axis));
        fields["index"] = json!(index);
        fields["at"] = json!(coordinate(&scheme.grid, axis, position, index));
    }
    fields
}

/// The machine that the program runs on. What the system does not tell is null.
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
