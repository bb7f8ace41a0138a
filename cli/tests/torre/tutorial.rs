//! The tutorial works as it stands: its programs are written to files, its commands are run, and their output is
//! compared. A line that ends in `...` is the beginning of one, and `...` alone stands for any lines.

use crate::support::*;
use std::path::Path;
use std::process::Command;

const CHAPTER: &str = include_str!("../../../docs/src/tutorial.md");

/// The code blocks of the chapter, with their languages, in order.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let parts: Vec<&str> = CHAPTER.split("```").collect();
    let inside = parts.iter().skip(1).step_by(2);
    inside
        .map(|block| block.split_once('\n').expect("a block has lines"))
        .collect()
}

/// Runs a line of a shell, with this `torre` in front; the output, and whether it succeeded.
pub fn shell(folder: &Path, line: &str) -> (String, bool) {
    let torre = Path::new(env!("CARGO_BIN_EXE_torre"));
    let path = format!(
        "{}:{}",
        torre.parent().expect("it lies in a folder").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    // One thread gives the same results, and the tests share the cores.
    let line = line.replace("torre run ", "torre run --threads 1 ");
    let output = Command::new("sh")
        .args(["-c", &format!("{line} 2>&1")])
        .env("PATH", path)
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env("TORRE_RATES", "modelled")
        .current_dir(folder)
        .output()
        .expect("there is a shell");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text, output.status.success())
}

/// The first expected line that the output does not have where it should be.
fn missing<'a>(expected: &'a str, output: &str) -> Option<&'a str> {
    let mut rest = output.lines().map(str::trim);
    for line in expected.lines().map(str::trim) {
        let start = line.strip_suffix("...");
        let found = match start {
            Some("") => continue,
            Some(start) => rest.any(|l| l.starts_with(start.trim_end())),
            None => rest.any(|l| l == line),
        };
        if !found {
            return Some(line);
        }
    }
    None
}

#[test]
fn lines_are_compared_in_order() {
    let output = "a\n  b\nc 3\n";
    assert_eq!(missing("a\nb\nc ...\n", output), None);
    assert_eq!(missing("a\n...\nc 3", output), None);
    assert_eq!(missing("b\na\n", output), Some("a"));
    assert_eq!(missing("c", output), Some("c"));
}

#[test]
fn every_step_of_the_tutorial_works() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let blocks = blocks();
    let mut commands = 0;
    for (i, (language, text)) in blocks.iter().enumerate() {
        match *language {
            "torre" => {
                let name = text.lines().next().and_then(|l| l.strip_prefix("// "));
                std::fs::write(at.join(name.expect("a name")), text).unwrap();
            }
            "sh" => {
                let expected = match blocks.get(i + 1) {
                    Some(("text", expected)) => expected,
                    _ => "",
                };
                let mut all = String::new();
                for line in text.lines() {
                    let (output, success) = shell(at, line);
                    assert_eq!(success, !expected.starts_with('E'), "{line}\n{output}");
                    all += &output;
                    commands += 1;
                }
                if let Some(line) = missing(expected, &all) {
                    panic!("`{line}` is not said by\n{text}\n{all}");
                }
            }
            "text" => {}
            other => panic!("a block in `{other}`"),
        }
    }
    assert!(commands >= 10, "{commands}");
    passes_the_ear(&at.join("pluck/probes.csv"));
    for picture in ["heavy/volumes/u.png", "lens/volumes/p-00000300.png"] {
        assert!(at.join(picture).exists(), "{picture}");
    }
    comes_back_upside_down(&at.join("lens/volumes/p-00000300.npy"));
}

/// The front that came back from the end without pressure is upside down; beside rigid walls fronts stay as they are.
fn comes_back_upside_down(file: &Path) {
    let bytes = std::fs::read(file).unwrap();
    let values = bytes[bytes.len() - 300 * 200 * 4..].chunks_exact(4);
    let values: Vec<f32> = values
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect();
    for y in [0, 100, 199] {
        assert!(values[78 * 200 + y] < -0.9, "{y}");
    }
    for y in [0, 199] {
        assert!(values[159 * 200 + y] > 0.9, "{y}");
    }
}

/// The times at which halves of the bump pass, with their signs, are as the chapter states.
fn passes_the_ear(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("t,ear"));
    let records: Vec<[f64; 2]> = lines
        .map(|line| {
            let (t, u) = line.split_once(',').unwrap();
            [t, u].map(|word| word.parse().unwrap())
        })
        .collect();
    let extreme = |w: &&[[f64; 2]]| {
        let [before, here, after] = [w[0][1], w[1][1], w[2][1]].map(f64::abs);
        here > 0.2 && here >= before && here > after
    };
    let found: Vec<[f64; 2]> = records.windows(3).filter(extreme).map(|w| w[1]).collect();
    let expected = [(0.8, 0.5), (1.8, -0.5), (2.2, -0.5), (3.2, 0.5)];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ([t, u], (time, height)) in found.into_iter().zip(expected) {
        assert!(
            (t - time).abs() < 0.015 && (u - height).abs() < 0.01,
            "{t} {u}"
        );
    }
}

/// Nothing flows through rigid walls, so all pressure together stays the same, whatever the order of the differences.
#[test]
fn walls_of_new_programs_are_rigid_for_all_orders() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    succeed("new {0} --dims 2", &[&at.join("sound")]);
    let file = at.join("sound.torre");
    let mut text = std::fs::read_to_string(&file).unwrap();
    for (old, new) in [
        ("[d(p, x), d(p, y)]", "[d(p, x, 4), d(p, y, 4)]"),
        ("d(v.x, x) + d(v.y, y)", "d(v.x, x, 4) + d(v.y, y, 4)"),
        ("y: wall | open", "y: wall"),
        ("if disc then 0.6 else 1", "1"),
        (
            "source   p at",
            "init p = exp(-20 * (x^2 + y^2))\n  record total = sum(p)\n  source p at",
        ),
        ("+= ricker(t, f0 = 4)", "+= 0"),
        ("300 x 200", "60 x 40"),
        ("param h  = 0.01", "param h  = 0.05"),
        ("until 2.5", "200"),
        ("use std::sources::ricker\n", ""),
    ] {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    std::fs::write(&file, text).unwrap();
    let results = at.join("out");
    let run = "run {0} --threads 1 --precision f64 --quiet --out {1}";
    succeed(run, &[&file, &results]);
    let series = std::fs::read_to_string(results.join("series.csv")).unwrap();
    let totals: Vec<f64> = series
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(1).unwrap().parse().unwrap())
        .collect();
    assert_eq!(totals.len(), 200);
    let (first, last) = (totals[0], totals[199]);
    assert!((last - first).abs() < 1e-9 * first.abs(), "{first} {last}");
}

#[test]
fn new_programs_are_laid_out_say_nothing_and_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (dims, name) in [("1", "string"), ("2", "sound.torre"), ("3", "my-box")] {
        let file = at
            .join(name.trim_end_matches(".torre"))
            .with_extension("torre");
        succeed(&format!("new {{0}} --dims {dims}"), &[&at.join(name)]);
        succeed("fmt --check {0}", &[&file]);
        let diagnostics = succeed("check {0} --report json", &[&file]);
        assert_eq!(diagnostics.trim(), "[]", "{name}");
        let results = at.join(format!("out-{dims}"));
        let steps = if dims == "1" { 445 } else { 20 };
        let run = format!("run {{0}} --threads 1 --set steps={steps} --out {{1}}");
        succeed(&run, &[&file, &results]);
        assert!(results.join("probes.png").exists(), "{name}");
        // An existing file is not overwritten.
        let text = std::fs::read_to_string(&file).unwrap();
        let error = fail(1, "new {0}", &[&file]);
        assert!(error.contains("E0802"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
    let text = std::fs::read_to_string(at.join("my-box.torre")).unwrap();
    assert!(text.contains("problem first {"), "{text}");
    let text = std::fs::read_to_string(at.join("string.torre")).unwrap();
    assert!(
        text.contains("problem string {") && !text.contains("NAME"),
        "{text}"
    );
    // Commands that are proposed take names as they are.
    let odd = at.join("it's mine.torre");
    let output = torre().arg("new").arg(&odd).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let proposed = format!("torre run '{}/it'\\''s mine.torre' --out out", at.display());
    assert!(said.contains(&proposed), "{said}");
    std::fs::write(&odd, "const  a = 1").unwrap();
    let output = torre()
        .arg("fmt")
        .arg("--check")
        .arg(&odd)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("`torre fmt '/"), "{said}");
    let nowhere = at.join("nowhere/first");
    let error = fail(1, "new {0}", &[&nowhere]);
    assert!(
        error.contains("E0802") && !error.contains("help: "),
        "{error}"
    );
    fail(2, "new {0} --dims 4", &[&at.join("four")]);
    assert!(!at.join("four.torre").exists());
}

#[test]
fn codes_are_explained() {
    let text = succeed("explain E0302", &[]);
    assert!(
        text.starts_with("E0302: dependence cycle within a step\n"),
        "{text}"
    );
    assert!(text.contains("\n    scheme s {\n"), "{text}");
    assert_eq!(succeed("explain w0301", &[]), succeed("explain W0301", &[]));
    let list = succeed("explain", &[]);
    assert!(
        list.lines().count() > 90 && list.contains("\nE0851: "),
        "{list}"
    );
    let error = fail(2, "explain E9999", &[]);
    assert!(error.contains("there is no code `E9999`"), "{error}");
}

#[test]
fn results_are_named_alike_by_all_commands() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let wave = "examples/01-wave1d.torre";
    for option in ["-o", "--out", "--output"] {
        let name = option.trim_start_matches('-');
        let [text, picture, built] = ["txt", "svg", "d"].map(|e| at(name).with_extension(e));
        succeed(&format!("emit {wave} --stage ast {option} {{0}}"), &[&text]);
        succeed(&format!("cone {wave} {option} {{0}}"), &[&picture]);
        for file in [&text, &picture] {
            assert!(file.is_file(), "{}", file.display());
        }
        if has_llvm() {
            succeed(&format!("build {wave} -q {option} {{0}}"), &[&built]);
            assert!(built.is_dir());
        }
    }
    for option in ["-o", "--out"] {
        let results = at(&format!("results{option}"));
        let run = format!("run {wave} --threads 1 --set steps=3 {option} {{0}}");
        succeed(&run, &[&results]);
        assert!(results.join("report.json").exists());
    }
}

#[test]
fn a_run_in_which_nothing_starts_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("still.torre");
    let problem = |init: &str| {
        format!(
            "use std::wave::wave_1d\nproblem still {{\n  scheme wave_1d\n  domain 50\n  init u = {init}\n  steps \
             4\n}}\n"
        )
    };
    let said = |init: &str| {
        std::fs::write(&file, problem(init)).unwrap();
        let output = run("run {0} --threads 1", &[&file]);
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    // The cells have the size 1.
    let note = "all values are 0 at the end";
    assert!(said("if x > 0.2 and x < 0.5 then 1 else 0").contains(note));
    assert!(!said("if x > 2 and x < 5 then 1 else 0").contains(note));
    let wave = "0\n  incident w { direction (1); drive u = sin(t) }\n  total x = 20..30 from w";
    assert!(unwrapped(&said(wave)).contains("no incident wave has reached its box"));
}

/// A coefficient that single precision does not have anywhere is told; one that falls to 0 somewhere is usual.
#[test]
fn coefficients_that_are_too_small_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.torre");
    let said = |coef: &str, precision: &str| {
        let text = format!(
            "scheme s {{\n  axes x\n  coef g on nodes = {coef}\n  field u : scalar on nodes\n  field v : scalar on \
             nodes\n  step {{\n    u = u\n    v = g * u\n  }}\n}}\nproblem p {{\n  scheme s\n  domain 40\n  init u = \
             1\n  steps 4\n}}\n"
        );
        std::fs::write(&file, text).unwrap();
        let command = format!("run {{0}} --threads 1 --precision {precision}");
        let output = run(&command, &[&file]);
        assert!(output.status.success());
        unwrapped(&String::from_utf8(output.stderr).unwrap())
    };
    let found = said("1.2e-50 * (1 + x)", "f32");
    assert!(found.contains("W0404"), "{found}");
    assert!(!said("1.2e-50 * (1 + x)", "f64").contains("W0404"));
    assert!(!said("exp(-x^2)", "f32").contains("W0404"));
    // Unless the block says so.
    assert!(!said("1.2e-50 * (1 + x)\n  allow W0404", "f32").contains("W0404"));
}
