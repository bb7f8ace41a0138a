//! `torre analyze`, and its results in `check` and `run`.

use crate::support::*;
use std::path::Path;

const MAXWELL: &str = "examples/08-maxwell42.torre";

fn book() -> String {
    std::fs::read_to_string(root().join("docs/src/analysis.md")).unwrap()
}

#[test]
fn the_book_shows_what_the_command_prints_and_draws() {
    let chapter = book();
    let shown = chapter
        .split("$ torre analyze examples/08-maxwell42.torre\n")
        .nth(1)
        .unwrap();
    let shown = shown.split("```").next().unwrap();
    assert!(shown.contains("this step is stable"), "{shown}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.svg");
    let printed = succeed(&format!("analyze {MAXWELL} -o {{0}}"), &[&file]);
    assert_eq!(printed, shown);
    let drawn = std::fs::read_to_string(&file).unwrap();
    assert_whole(&drawn, MAXWELL);
    let name = "docs/src/pictures/analysis-maxwell42.svg";
    let kept = std::fs::read_to_string(root().join(name)).unwrap_or_default();
    assert!(
        drawn == kept,
        "{name} differs: torre analyze {MAXWELL} -o {name}"
    );
}

/// A picture ends, and has a place for everything in it.
#[track_caller]
fn assert_whole(svg: &str, what: &str) {
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    for broken in ["NaN", "inf"] {
        assert!(!svg.contains(broken), "{what}: {broken}");
    }
}

#[test]
fn pictures_of_pixels_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.png");
    succeed("analyze examples/13-diffusion.torre -o {0}", &[&file]);
    assert!(std::fs::read(&file).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn the_report_has_all_numbers() {
    let json = succeed(
        &format!("analyze {MAXWELL} --set h=1 --set dt=0.4 --report json"),
        &[],
    );
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["stable"], true);
    let limit = report["limit"]["value"].as_f64().unwrap();
    assert!(
        (limit * 3f64.sqrt() * 7.0 / 6.0 - 1.0).abs() < 1e-6,
        "{limit}"
    );
    assert_eq!(report["accuracy"]["order_in_space"], 4);
    assert_eq!(report["accuracy"]["order_in_time"], 2);
    let waves = report["accuracy"]["waves"][0]["table"].as_array().unwrap();
    assert_eq!(waves.len(), 3);
    assert_eq!(report["pace"]["kind"], "Courant number");
}

#[test]
fn steps_cells_and_courant_numbers_are_printed() {
    for command in ["check", "run --set steps=1 --set domain=16x20x24"] {
        let (command, options) = command.split_once(' ').unwrap_or((command, ""));
        let source = edited(
            MAXWELL,
            &[
                ("(100, 64, 64)", "(4, 4, 4)"),
                ("(64, 64, 64) +", "(4, 4, 4) +"),
                ("z = 128", "z = 8"),
            ],
        );
        let output = run(&format!("{command} {{0}} {options}"), &[source.1.as_path()]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{stderr}");
        let line = stderr
            .lines()
            .find(|l| l.starts_with("pulse: "))
            .unwrap_or_else(|| panic!("{stderr}"));
        assert!(
            line.contains("dt 9e-9, cells of 2e-8 x 2e-8 x 2e-8, extent "),
            "{line}"
        );
        assert!(line.ends_with(", Courant number 0.45"), "{line}");
    }
}

/// An example with changes, in a folder that lives as long as the first part.
fn edited(example: &str, changes: &[(&str, &str)]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let mut text = std::fs::read_to_string(root().join(example)).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{example} has no {from}");
        text = text.replace(from, to);
    }
    let path = folder.path().join("edited.torre");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

#[test]
fn unstable_steps_are_refused_unless_they_are_allowed() {
    let wave = "examples/02-wave2d.torre --set dt=0.62 --set steps=2";
    for command in ["check", "run"] {
        let error = fail(1, &format!("{command} {wave}"), &[]);
        assert!(error.contains("E0815"), "{error}");
        assert!(
            error.contains("waves of 2 cells along x, y grow by a factor of"),
            "{error}"
        );
        assert!(
            error.contains("the largest stable `dt` is 0.612372"),
            "{error}"
        );
        let output = run(&format!("{command} {wave} --allow-unstable"), &[]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && stderr.contains("E0815"),
            "{stderr}"
        );
        succeed(
            &format!("{command} examples/02-wave2d.torre --set dt=0.61 --set steps=2"),
            &[],
        );
    }
    let report = run(&format!("check {wave} --report json"), &[]);
    assert_eq!(report.status.code(), Some(1));
    let list: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(list[0]["code"], "E0815");
    assert!(report.stderr.is_empty());
}

#[test]
fn waves_are_uniform_around_a_ring_of_one_cell() {
    let program = "scheme plate {
  axes x, y
  param dt = 0.99
  field u : scalar on nodes levels 2
  step { u@next = 2 * u - u@prev + dt^2 * (d2(u, x) + d2(u, y)) }
}
problem line {
  scheme plate
  domain 30 x 1
  boundary x: pec, y: periodic
  init u = exp(-((x - 15) / 3)^2)
  steps 200
}
";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("line.torre");
    std::fs::write(&path, program).unwrap();
    let path = path.display();
    succeed(&format!("run {path} --verify"), &[]);
    let error = fail(1, &format!("check {path} --set dt=1.01"), &[]);
    assert!(error.contains("the largest stable `dt` is 1,"), "{error}");
    let error = fail(1, &format!("check {path} --set domain=30x2"), &[]);
    assert!(error.contains("stable `dt` is 0.707107"), "{error}");
    let text = succeed(&format!("analyze {path}"), &[]);
    assert!(text.contains("waves of speed 1: phase velocity"), "{text}");
}

#[test]
fn media_from_files_count() {
    let bend = "examples/10-materials.torre";
    succeed(&format!("check {bend} --set dt=0.7"), &[]);
    let error = fail(1, &format!("check {bend} --set dt=0.71"), &[]);
    assert!(error.contains("with the coefficients of cell ("), "{error}");
}

#[test]
fn nonlinear_statements_are_named() {
    let error = fail(1, "analyze examples/15-gray-scott.torre", &[]);
    assert_eq!(error.matches("E0816\n").count(), 2, "{error}");
    assert!(
        error.contains("a product of field values, of `u`, `v`"),
        "{error}"
    );
    let output = run("run examples/16-burgers.torre --set steps=2", &[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success());
    assert!(
        stderr.contains("stability is not known: the update of `u` is not linear"),
        "{stderr}"
    );
}

#[test]
fn another_parameter_may_be_varied() {
    let shown = succeed("analyze examples/01-wave1d.torre --vary c", &[]);
    assert!(
        shown.contains("largest stable c 1 (this one is 0.9 of it)"),
        "{shown}"
    );
    let error = fail(2, "analyze examples/01-wave1d.torre --vary speed", &[]);
    assert!(error.contains("has no parameter `speed`"), "{error}");
    fail(
        2,
        "analyze examples/01-wave1d.torre --vary c --set c=0",
        &[],
    );
}

#[test]
fn every_example_that_is_linear_is_analysed_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.svg");
    let nonlinear = ["14-kerr", "15-gray-scott", "16-burgers"];
    for (name, _) in examples() {
        let path = format!("examples/{name}.torre");
        assert!(Path::new(&root().join(&path)).exists());
        if nonlinear.contains(&name.as_str()) {
            fail(1, &format!("analyze {path}"), &[]);
        } else if path != MAXWELL {
            let shown = succeed(&format!("analyze {path} -o {{0}}"), &[&file]);
            assert!(shown.contains("this step is stable"), "{shown}");
            assert_whole(&std::fs::read_to_string(&file).unwrap(), &name);
            // Layers change no waves: their profiles give no places to look at, nor a limit for all of them at once.
            match name.as_str() {
                "17-scattering" => assert!(shown.contains("(2 sets were looked at)"), "{shown}"),
                "18-own-layer" => assert!(!shown.contains("sets were looked at"), "{shown}"),
                _ => continue,
            }
            assert!(!shown.contains("the largest values of all"), "{shown}");
        }
    }
}
