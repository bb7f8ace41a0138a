//! Names of programs that files and formats have for themselves, or that are too long for them.

use crate::support::*;
use serde_json::Value;

/// A field with the name of chunks' keys in Zarr stores, two with names of its coordinates, and two with long names
/// that differ at their ends.
const ODD: &str = "
scheme odd {
  axes x
  param dt = 0.1
  region part = x > 3 and x < 9
  field c : scalar on nodes
  field time : scalar on nodes
  field x_half : scalar on cells
  field LONG1 : scalar on nodes
  field LONG2 : scalar on nodes
  step {
    allow W0301
    c += dt * kept(c, part)
    time += dt * c
    x_half += dt * d(time, x)
    LONG1 = c
    LONG2 = 2 * c
  }
}
def kept(u, part) {
  state s in part
  s@next = 0.5 * (s + u)
  d2(u, x) + s@next
}
problem odd {
  scheme odd
  domain 20
  init c = x
  output volume c, time, x_half, LONG1, LONG2 every 2
  output volume s of c every 2
  steps 4
}
";

#[test]
fn no_name_keeps_results_from_being_written() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("odd.torre");
    std::fs::write(&source, ODD.replace("LONG", &"l".repeat(300))).unwrap();
    for (format, volumes, fields) in [("npy", 24, 5), ("vtk", 12, 5), ("zarr", 0, 0)] {
        let out = folder.path().join(format);
        let command = format!("run {{0}} --quiet --save-final --format {format} --out {{1}}");
        succeed(&command, &[&source, &out]);
        // A run that goes on finds its files.
        succeed(&command, &[&source, &out]);
        let found = files(&out);
        let of = |part: &str, ending: &str| {
            let names = found.keys().filter(|n| n.starts_with(part));
            names.filter(|n| n.ends_with(ending)).count()
        };
        match format {
            "npy" => {
                assert_eq!(
                    of("volumes/", "0000002.npy") + of("volumes/", "0000004.npy"),
                    volumes / 2
                );
                assert_eq!(of("fields/", ".npy"), fields);
            }
            "vtk" => {
                assert_eq!(of("volumes/", ".vti"), volumes);
                assert_eq!(of("fields/", ".vti"), fields);
            }
            _ => {
                for (store, arrays) in [("volumes.zarr", 6), ("fields.zarr", 5)] {
                    let text = &found[&format!("{store}/zarr.json")];
                    let group: Value = serde_json::from_slice(text).unwrap();
                    let all = &group["consolidated_metadata"]["metadata"];
                    let all = all.as_object().unwrap();
                    let values = all
                        .values()
                        .filter(|a| !a["attributes"]["stagger"].is_null());
                    assert_eq!(values.count(), arrays, "{store}");
                    assert_eq!(all["c_"]["attributes"]["long_name"], "c");
                    assert_eq!(all["time_"]["attributes"]["long_name"], "time");
                    assert_eq!(all["x_half_"]["attributes"]["long_name"], "x_half");
                }
            }
        }
    }
}
