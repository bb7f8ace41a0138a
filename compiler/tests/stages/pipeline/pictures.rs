//! The pictures of the chapter on domains larger than memory.

use super::*;
use torre_compiler::pipeline::{Durations, timelines};

/// Two passes of each of some devices, of three time blocks, in a circular buffer.
fn drawn(planes: i64, devices: usize) -> String {
    let scheme = maxwell(4, Precision::F32, [planes, 30, 2]);
    let (layout, towers) = towers_by(&scheme, Rational::ONE, [6, 6]).expect("towers");
    let (height, group) = (8, 24);
    let mut footprints = Footprints::new(&scheme, &layout, &towers, ORDER, group, height);
    let heights = [height; 3];
    let pass = footprints.pass(&scheme, &layout, &heights).expect("groups");
    let mut window = Window {
        planes: footprints.held(),
        ring: None,
        buffer: DeviceBuffer::Circular { places: 0 },
        devices: 1,
        in_flight: 3,
        ahead: 2,
        spread: true,
    };
    let least = footprints.least_places(&scheme, &layout, &heights, &window, &[]);
    window.buffer = DeviceBuffer::Circular {
        places: 3 * least.expect("a large buffer") / 2,
    };
    window.devices = devices;
    let passes = vec![pass; 2 * devices];
    let laid_out = LaidOut::new(window, passes, footprints.way()).expect("a large buffer");
    assert_eq!(laid_out.check(), Ok(()));
    let durations = Durations {
        plane: 2.4 / group as f64,
    };
    timelines(&laid_out, durations)
}

/// They are stored like the pictures of the chapter on cones.
#[test]
fn the_pictures_of_windows() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/pictures");
    let update = std::env::var_os("UPDATE_PICTURES").is_some();
    let pictures = [
        ("window-pipeline.svg", drawn(500, 1)),
        ("window-turns.svg", drawn(500, 2)),
    ];
    for (name, drawn) in pictures {
        let path = format!("{folder}/{name}");
        if update {
            std::fs::write(&path, &drawn).expect("the folder exists");
        }
        let stored = std::fs::read_to_string(&path).expect("the picture is stored");
        assert!(stored == drawn, "{name} is out of date");
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
    }
}
