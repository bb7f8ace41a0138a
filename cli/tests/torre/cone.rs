//! `torre cone`: tables, pictures, and schedules that do not fit.

use crate::support::*;
use std::path::Path;

const MAXWELL: &str = "examples/08-maxwell42.torre";

#[test]
fn the_tables_begin_with_the_cones_and_end_with_the_faces_of_tiles() {
    let table = succeed(&format!("cone {MAXWELL}"), &[]);
    let cones = succeed(&format!("emit {MAXWELL} --stage cones"), &[]);
    let faces = table.strip_prefix(&cones).expect("the cones come first");
    assert!(faces.contains("faces of tiles, slopes in cells per stage"));
    assert!(faces.contains("  x - y     3/2  "), "{faces}");
    assert!(faces.contains("tiles measure y as the distance from 0"));
    for example in ["01-wave1d", "06-maxwell-tm2d", "16-burgers"] {
        let table = succeed(&format!("cone examples/{example}.torre"), &[]);
        assert!(table.contains("faces of tiles"), "{table}");
    }
}

fn draw(file: &Path, arguments: &[&str]) -> String {
    let status = torre()
        .args(["cone", "-o", file.to_str().unwrap()])
        .args(arguments)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&status.stderr);
    assert!(status.status.success(), "{arguments:?}: {stderr}");
    assert!(status.stdout.is_empty());
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.starts_with("<svg") && text.ends_with("</svg>\n"));
    for broken in ["NaN", "\"inf", "-inf", "Linf", "Minf"] {
        assert!(!text.contains(broken), "{arguments:?}: {broken}");
    }
    text
}

#[test]
fn every_example_is_drawn_in_every_view() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("picture.svg");
    for (name, _) in examples() {
        let source = format!("examples/{name}.torre");
        draw(&file, &[&source]);
        let scheme = succeed(&format!("emit {source} --stage scheme"), &[]);
        let several = scheme.contains("axis y ");
        for view in ["footprint", "solid"] {
            let arguments = [&source[..], "--view", view];
            if several {
                draw(&file, &arguments);
            } else {
                let arguments = format!("cone {source} -o {{0}} --view {view}");
                assert!(fail(2, &arguments, &[&file]).contains("two axes"));
            }
        }
    }
}

#[test]
fn pictures_show_the_tiles_of_the_schedule() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("picture.svg");
    let all = |schedule: &str| {
        ["section", "footprint", "solid"]
            .map(|view| draw(&file, &[MAXWELL, "--view", view, "--schedule", schedule]))
    };
    let [section, footprint, solid] = all("torre(D = 1, TH = 4)");
    let [wide, wide_footprint, wide_solid] = all("torre(D = 2, TH = 4)");
    assert!(section != wide && footprint != wide_footprint && solid != wide_solid);
    // The default picture.
    assert_eq!(
        draw(&file, &[MAXWELL]),
        draw(
            &file,
            &[MAXWELL, "--schedule", "(x, y): diamond(D = 2) height 8"]
        )
    );
    // A macro tower's inner towers are drawn.
    assert_eq!(wide, all("torre(D = 2, G = 3, TH = 4)")[0]);
    // Other time blocks begin within the picture.
    assert_ne!(wide, all("torre(D = 2, TH = 2)")[0]);
    let plain = draw(&file, &[MAXWELL, "--schedule", "layerwise"]);
    assert!(!plain.contains("tile of"));
    assert!(wide.contains("tile of"));
    let of = |component: &str, axis: &str| {
        draw(&file, &[MAXWELL, "--component", component, "--axis", axis])
    };
    assert!(of("H.x", "y").contains("H.x of maxwell42 and its past along y"));
    assert!(of("E.x", "z").contains("E.x of maxwell42 and its past along z"));
}

#[test]
fn a_slope_that_is_too_small_is_shown_and_ends_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("picture.svg");
    let flat = "(x, y): diamond(W = 8) slope 1 height 4";
    let show = |more: &[&str]| {
        torre()
            .args(["cone", MAXWELL, "--schedule", flat])
            .args(more)
            .output()
            .unwrap()
    };
    let listed = show(&[]);
    assert_eq!(listed.status.code(), Some(1));
    let stdout = String::from_utf8(listed.stdout).unwrap();
    assert!(stdout.contains("cuts a dependence: "), "{stdout}");
    let stderr = String::from_utf8(listed.stderr).unwrap();
    assert!(stderr.contains("E0852"), "{stderr}");
    assert!(stderr.contains("at least 3/2 cells per stage"), "{stderr}");
    let drawn = show(&["-o", file.to_str().unwrap()]);
    assert_eq!(drawn.status.code(), Some(1));
    let picture = std::fs::read_to_string(&file).unwrap();
    assert!(picture.contains("a dependence that the tiles run against"));
    let fitting = draw(
        &file,
        &[MAXWELL, "--schedule", "(x, y): diamond(W = 8) height 4"],
    );
    assert!(!fitting.contains("run against"));
}

#[test]
fn wrong_names_end_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("picture.svg");
    for wrong in [
        "--component E.w",
        "--axis t",
        "--view sideways",
        "--view footprint --axis y",
        "--view solid --axis y",
    ] {
        fail(2, &format!("cone {MAXWELL} -o {{0}} {wrong}"), &[&file]);
    }
    assert!(!file.exists());
    fail(2, &format!("cone {MAXWELL} --view solid"), &[]);
    let error = fail(1, &format!("cone {MAXWELL} --schedule skewer"), &[]);
    assert!(error.contains("E0851"), "{error}");
}

/// A field that depends on its left side only, and another one on its right side only, are no symmetric scheme.
#[test]
fn fields_that_do_not_depend_on_each_other_are_symmetric_one_by_one() {
    let step = |u: &str, v: &str| {
        written(&format!(
            "scheme two {{
  axes x
  param dt = 0.5
  field u : scalar on nodes
  field v : scalar on nodes
  step {{
    allow W0301
    u -= dt * ({u})
    v += dt * ({v})
  }}
}}
problem p {{ scheme two; domain 100; boundary x: zero; steps 10 }}
"
        ))
    };
    for (u, v, symmetric) in [
        ("u - u[-1]", "v[1] - v", false),
        ("v - v[-1]", "u[1] - u", true),
        ("v - v[-1]", "u - u[-1]", false),
        ("v - v[-1]", "v[1] + v[-1]", false),
    ] {
        let (_folder, file) = step(u, v);
        let printed = succeed(&format!("cone {file}"), &[]);
        let expected = match symmetric {
            true => "\nthe cone is symmetric\n",
            false => "\nthe cone is not symmetric\n",
        };
        assert!(printed.contains(expected), "{u}, {v}: {printed}");
    }
}
